//! Many experiments: a sweep's plan, its points here or elsewhere, and what came of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use durawarp::run::Conduct;
use durawarp::sweep::campaign::{self, Part};
use durawarp::sweep::host::Memory;
use durawarp::sweep::{self, Batch, Done, Progress, Store, SweepFile, Workers, table};
use durawarp::{Diagnostic, Diagnostics, Outcome, report};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use serde_json::json;

use crate::errors;
use crate::request::{Work, of_keys};
use crate::runs::{known_metrics, outcome_of, text_of};
use crate::watch::{News, Watch, watched};

/// What came of a run, as plain data.
#[derive(Debug, Clone, IntoPyObject, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Worth {
    /// `good`, `cut`, `failed` or `not_run`.
    pub(crate) state: String,
    /// Why it failed.
    pub(crate) why: Option<String>,
    /// Its outcome as JSON.
    pub(crate) outcome: Option<String>,
}

impl Worth {
    /// As plain data.
    pub(crate) fn of(done: &Done) -> Self {
        let outcome = match done {
            Done::Good(outcome) | Done::Cut(outcome) => Some(&**outcome),
            Done::Failed { outcome, .. } => outcome.as_deref(),
            Done::NotRun => None,
        };
        Self::under(done, outcome)
    }

    /// The same, of an outcome that has another name.
    pub(crate) fn under(done: &Done, outcome: Option<&Outcome>) -> Self {
        let (state, why) = match done {
            Done::Good(_) => ("good", None),
            Done::Cut(_) => ("cut", None),
            Done::Failed { why, .. } => ("failed", Some(why.clone())),
            Done::NotRun => ("not_run", None),
        };
        Worth { state: state.to_owned(), why, outcome: outcome.map(text_of) }
    }

    /// What it was made of.
    fn done(&self) -> PyResult<Done> {
        let outcome = self.outcome.as_deref().map(outcome_of).transpose()?.map(Box::new);
        match (self.state.as_str(), outcome) {
            ("good", Some(outcome)) => Ok(Done::Good(outcome)),
            ("cut", Some(outcome)) => Ok(Done::Cut(outcome)),
            ("failed", outcome) => Ok(Done::Failed { why: self.why.clone().unwrap_or_default(), outcome }),
            ("not_run", None) => Ok(Done::NotRun),
            (state, _) => Err(PyValueError::new_err(format!("`{state}` is no state of a point with what it has"))),
        }
    }
}

fn news(now: &Progress, cached: usize) -> News {
    let failed = if now.failed > 0 { format!(", {} failed", now.failed) } else { String::new() };
    let speed = report::rate(now.warp_instructions_per_s);
    News {
        what: "points",
        done: (cached + now.done) as u64,
        total: Some((cached + now.points) as u64),
        left_s: now.left_s,
        text: format!("{} at work, {speed}warp instr/s{failed}", now.running),
    }
}

/// Calls `run` with workers that are watched.
fn working<T>(work: &Work, watch: &Watch, cached: usize, run: impl FnOnce(&Workers<'_>) -> T) -> T {
    let observer = |now: &Progress| watch.put(news(now, cached));
    let bytes = work.memory_gib.map_or_else(|| Memory::of_host().available_bytes, |gib| gib << 30);
    run(&Workers { jobs: work.jobs, auto: false, bytes, stop: Some(&watch.stop), observer: Some(&observer) })
}

/// Runs what a folder of results lacks of a batch, and keeps it there.
fn run_missing(batch: &Batch, folder: &Path, work: &Work, watch: &Watch) -> Result<Store, String> {
    let mut store = Store::open(folder)?;
    let part = Part { shard: work.shard, keep_failed: work.keep_failed };
    let outlook = campaign::outlook(batch, &store, &part);
    let cached = outlook.points.len() - outlook.to_run.len();
    let report = working(work, watch, cached, |workers| campaign::run(batch, &mut store, &outlook, &part, workers))?;
    report.broken.map_or(Ok(store), Err)
}

/// What came of every point of a batch: those that a folder has from there; without a folder all are run.
pub(crate) fn points_done(batch: &Batch, work: &Work, watch: &Watch) -> Result<Vec<Done>, String> {
    match &work.results {
        Some(folder) => campaign::results(batch, &run_missing(batch, folder, work, watch)?),
        None => Ok(working(work, watch, 0, |workers| campaign::without_store(batch, workers))),
    }
}

/// A sweep, checked, before it runs.
#[pyclass(frozen, module = "durawarp._native")]
#[derive(Debug)]
pub(crate) struct Plan {
    plan: Arc<sweep::Plan>,
}

/// A point for a worker: its number, key, label, the keys of its recipe, whether it is compared with the
/// functional driver.
type Task = (usize, String, String, Vec<(String, String)>, bool);

#[pymethods]
impl Plan {
    /// Of a sweep file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Self::planned(py, move || sweep::Plan::load(&path))
    }

    /// Of the same as JSON; paths in it are looked for in a folder first.
    #[staticmethod]
    fn read(py: Python<'_>, json: &str, folder: PathBuf) -> PyResult<Self> {
        let wrong = |why: String| PyValueError::new_err(format!("this is not what a sweep file holds: {why}"));
        let value: toml::Table = serde_json::from_str(json).map_err(|why| wrong(why.to_string()))?;
        let text = toml::to_string_pretty(&value).map_err(|why| wrong(why.to_string()))?;
        Self::planned(py, move || sweep::Plan::new(SweepFile::read("<sweep>", text, &folder)?))
    }

    /// Name of the sweep.
    #[getter]
    fn name(&self) -> &str {
        &self.plan.file.name
    }

    /// Runs what a folder of results lacks.
    #[pyo3(signature = (work, progress))]
    fn run(&self, py: Python<'_>, work: Work, progress: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let plan = Arc::clone(&self.plan);
        let came = watched(py, progress.as_ref(), move |watch| {
            let folder = work.results.as_deref().ok_or("name a folder of results")?;
            run_missing(&plan.batch, folder, &work, watch).map(drop)
        })?;
        came.map_err(errors::results)
    }

    /// What of it a folder of results lacks, for workers.
    fn to_run(&self, py: Python<'_>, work: Work) -> PyResult<Vec<Task>> {
        let plan = Arc::clone(&self.plan);
        watched(py, None, move |_| -> PyResult<_> {
            let part = Part { shard: work.shard, keep_failed: work.keep_failed };
            let store = Store::open(&work.results.unwrap_or_default()).map_err(errors::results)?;
            let (mut there, mut tasks) = (Batch::default(), Vec::new());
            for at in campaign::outlook(&plan.batch, &store, &part).to_run {
                let point = &plan.batch.points()[at];
                let here = plan.batch.recipe(at).keys();
                let keys: Vec<_> = here.iter().map(|(key, value)| (key.clone(), elsewhere(key, value))).collect();
                // Places in files are part of what a run tells, so that paths are part of the key.
                let key = if keys == here {
                    point.key.clone()
                } else {
                    let added = there.add(&point.label, 0, of_keys(&keys).reference(plan.file.reference));
                    there.points()[added.map_err(errors::input)?].key.clone()
                };
                tasks.push((at, key, point.label.clone(), keys, plan.file.reference));
            }
            Ok(tasks)
        })?
    }

    /// Keeps in a folder of results what workers hand back.
    fn keeper(&self, folder: PathBuf) -> PyResult<Keeper> {
        let keeper = Store::open(&folder).and_then(|store| sweep::Keeper::new(&store));
        Ok(Keeper { plan: Arc::clone(&self.plan), keeper: keeper.map_err(errors::results)? })
    }

    /// What a folder has of it.
    fn results(&self, py: Python<'_>, folder: PathBuf) -> PyResult<Results> {
        let store = py.detach(|| Store::open_existing(&folder)).map_err(errors::results)?;
        Ok(Results { plan: Arc::clone(&self.plan), store })
    }
}

/// A key's value for a worker, whose working directory is another: files by their absolute paths.
fn elsewhere(key: &str, value: &str) -> String {
    let is_path = match key {
        // A path that exists wins over a name.
        "workload" => true,
        "machine" | "scheme" => value.ends_with(".toml") || value.contains(['/', '\\']),
        _ => key.starts_with("inputs."),
    };
    let path = Path::new(value);
    let whole = (is_path && path.exists()).then(|| std::path::absolute(path).ok()).flatten();
    whole.map_or_else(|| value.to_owned(), |whole| whole.to_string_lossy().into_owned())
}

impl Plan {
    fn planned(
        py: Python<'_>,
        plan: impl FnOnce() -> Result<sweep::Plan, Diagnostics> + Send + 'static,
    ) -> PyResult<Self> {
        let plan = watched(py, None, move |_| plan())?.map_err(errors::input)?;
        Ok(Plan { plan: Arc::new(plan) })
    }
}

/// Writes what workers hand back.
#[pyclass(module = "durawarp._native")]
#[derive(Debug)]
pub(crate) struct Keeper {
    plan: Arc<sweep::Plan>,
    keeper: sweep::Keeper,
}

#[pymethods]
impl Keeper {
    /// Keeps what came of a point; it is on the disk then.
    fn keep(&mut self, point: usize, worth: Worth) -> PyResult<()> {
        self.keeper.keep(&self.plan.batch, point, &worth.done()?).map_err(errors::results)
    }
}

/// What a folder of results has of a sweep.
#[pyclass(frozen, module = "durawarp._native")]
#[derive(Debug)]
pub(crate) struct Results {
    plan: Arc<sweep::Plan>,
    store: Store,
}

#[pymethods]
impl Results {
    /// Every point, as a list of JSON objects.
    fn points(&self) -> String {
        let columns = &self.plan.columns;
        let one = |planned: &sweep::plan::Planned| {
            let entry = self.store.result(&planned.key);
            let values: serde_json::Map<_, _> = columns.iter().cloned().zip(planned.values.iter().cloned()).collect();
            json!({
                "key": planned.key,
                "label": planned.label,
                "values": values,
                "state": entry.map_or("missing", |entry| entry.head.state.name()),
                "why": entry.and_then(|entry| entry.head.why.clone()),
            })
        };
        text_of(&self.plan.points.iter().map(one).collect::<Vec<_>>())
    }

    /// The outcome of a point as JSON; none of a point that has none.
    fn outcome(&self, py: Python<'_>, point: usize) -> PyResult<Option<String>> {
        let Some(planned) = self.plan.points.get(point) else {
            return Err(PyIndexError::new_err(format!("the sweep has {} points", self.plan.points.len())));
        };
        let Some(entry) = self.store.result(&planned.key) else { return Ok(None) };
        let outcome = py.detach(|| self.store.outcome(entry)).map_err(errors::results)?;
        Ok(outcome.map(|outcome| text_of(&outcome)))
    }

    /// The table of `durawarp sweep table`: names of the columns, and rows as JSON.
    #[pyo3(signature = (metrics, wide))]
    fn table(&self, py: Python<'_>, metrics: Option<Vec<String>>, wide: bool) -> PyResult<(Vec<String>, String)> {
        let names = known_metrics(metrics, &self.plan.file.metrics)?;
        let made = py.detach(|| table::of(&self.plan, &self.store, &names, wide)).map_err(errors::results)?;
        Ok((made.columns.into_iter().map(|column| column.name).collect(), text_of(&made.rows)))
    }

    /// The figures that the file asks for: name and SVG.
    fn figures(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let drawn: Result<Vec<_>, String> = py.detach(|| {
            let one = |drawn: report::sweep::Drawn| {
                let why = |why: String| format!("no figure `{}`: {why}", drawn.name);
                let figure = drawn.figure.map_err(why)?;
                Ok((drawn.name.clone(), figure.svg().map_err(|fault| why(fault.to_string()))?))
            };
            report::sweep::Showing::read(&self.plan, &self.store)?.figures().into_iter().map(one).collect()
        });
        drawn.map_err(errors::results)
    }
}

/// Runs a point on a worker: what came of it. Its key is computed again, so that a worker whose files or
/// version differ says so.
#[pyfunction]
pub(crate) fn run_point(
    py: Python<'_>,
    key: String,
    label: String,
    keys: Vec<(String, String)>,
    reference: bool,
) -> PyResult<Worth> {
    let came = watched(py, None, move |watch| -> Result<_, Diagnostics> {
        let mut batch = Batch::default();
        batch.add(&label, 0, of_keys(&keys).reference(reference))?;
        if batch.points()[0].key != key {
            let message =
                "this worker has another version of durawarp, or other files, than the sweep was planned with";
            return Err(Diagnostic::nowhere(&label, message).into());
        }
        let conduct = Conduct { stop: Some(&watch.stop), ..Conduct::default() };
        Ok(Worth::of(&Done::of(batch.experiment(0)?.run(&conduct).outcome)))
    })?;
    came.map_err(errors::input)
}
