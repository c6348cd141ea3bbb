//! One experiment: run, crashed, compared under several schemes, checked.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use durawarp::crash::{CPU_BUDGET, CrashRequest, Phase, Watching, crash as judge, crash_cpu};
use durawarp::determinism::{Way, compare_all, run_one};
use durawarp::engine::Snapshot;
use durawarp::oracle::allowed::Budget;
use durawarp::oracle::crash::Plan;
use durawarp::persist::PersistScope;
use durawarp::run::checkpoint::{Checkpoint, CheckpointAt, CheckpointWhen};
use durawarp::run::{AnyExperiment, Beginning, Conduct, Finished};
use durawarp::sweep::counting::{COUNTING_BEGINS, run_counted};
use durawarp::sweep::host::{Memory, Need, shortage};
use durawarp::sweep::{Comparison, Done, SweepFile, metrics as all_metrics};
use durawarp::{Diagnostic, Diagnostics, Outcome, report};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::json;

use crate::errors;
use crate::request::{Request, Work};
use crate::sweeps::{Worth, points_done};
use crate::watch::{News, Watch, watched};

/// Bytes of a judging thread's stack.
const STACK_BYTES: usize = 8 << 20;

/// JSON of plain data of ours, which has no keys that are no texts.
pub(crate) fn text_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|why| unreachable!("plain data is JSON: {why}"))
}

/// A drawing: its SVG and its data as CSV.
pub(crate) type Drawn = (String, String);

pub(crate) fn drawn(figure: &durawarp::plot::Figure) -> Option<Drawn> {
    Some((figure.svg().ok()?, figure.csv().ok()?))
}

/// What is odd about a workload, and a host with too little memory for it.
pub(crate) fn notes(experiment: &AnyExperiment) -> Vec<String> {
    let warnings = experiment.gpu().into_iter().flat_map(|of| of.workload.warnings()).map(ToString::to_string);
    warnings.chain(shortage(Need::of(experiment), Memory::of_host())).collect()
}

/// Simulates; tells how far it is, by the instructions that a thread of its own counts.
pub(crate) fn simulated(experiment: &AnyExperiment, conduct: Conduct<'_>, watch: &Watch, shown: bool) -> Finished {
    let counted = AtomicU64::new(0);
    let ticks = experiment.cycle_ticks();
    let observer = |now: &Snapshot| {
        let (done, elapsed) = (now.progress.work, now.elapsed.as_secs_f64().max(1e-9));
        let total = Some(counted.load(Ordering::Relaxed)).filter(|&total| total > 0);
        let left_s = total.filter(|&total| done > 0 && total > done);
        watch.put(News {
            what: "run",
            done,
            total,
            left_s: left_s.map(|total| elapsed * (total - done) as f64 / done as f64),
            text: format!("{} cycles, {}instr/s", report::count(now.time / ticks), report::rate(done as f64 / elapsed)),
        });
    };
    let conduct = Conduct { stop: Some(&watch.stop), observer: Some(&observer), ..conduct };
    let begins = shown.then_some(COUNTING_BEGINS);
    run_counted(experiment, &conduct, begins, &|instructions| counted.store(instructions, Ordering::Relaxed))
}

/// What a run is asked beside its recipe, as plain data.
#[derive(Debug, Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Extras {
    /// File of a checkpoint to go on from, in place of a recipe.
    from: Option<PathBuf>,
    /// Changes from there on, as `KEY=VALUE`.
    set: Vec<String>,
    /// Core cycle of a checkpoint, and its file.
    checkpoint: Option<(u64, PathBuf)>,
    /// File of a timeline.
    timeline: Option<PathBuf>,
    timeline_budget_mib: u64,
    /// Count writes of NVM line by line.
    wear: bool,
    max_cycles: Option<u64>,
}

/// Simulates: what it is worth, and notes.
#[pyfunction]
#[pyo3(signature = (request, extras, threads, progress))]
pub(crate) fn run(
    py: Python<'_>,
    request: Request,
    extras: Extras,
    threads: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<(Worth, Vec<String>)> {
    let shown = progress.is_some();
    watched(py, progress.as_ref(), move |watch| run_with(&request, &extras, threads, watch, shown))?
}

fn run_with(
    request: &Request,
    extras: &Extras,
    threads: usize,
    watch: &Watch,
    shown: bool,
) -> PyResult<(Worth, Vec<String>)> {
    let (recipe, experiment, from) = match &extras.from {
        Some(file) => {
            let bytes = std::fs::read(file)?;
            let most = Memory::of_host().total_bytes;
            let begun = Beginning::read(&file.display().to_string(), &bytes, &extras.set, most);
            let Beginning { recipe, experiment, from } = begun.map_err(errors::input)?;
            (recipe, experiment, Some(from))
        }
        None => {
            let recipe = request.recipe();
            let experiment = recipe.build_any().map_err(errors::input)?;
            (recipe, experiment, None)
        }
    };
    let experiment = experiment.with_max_cycles(extras.max_cycles).with_reference(request.reference);
    let mut notes = notes(&experiment);
    // Files are made before the run: a path that cannot be written must not cost a simulation.
    let mut timeline = extras.timeline.as_ref().map(File::create).transpose()?;
    let file = extras.checkpoint.as_ref().map(|(_, path)| File::create(path)).transpose()?;
    let saved = Mutex::new((file, None));
    let keep = |made: Checkpoint| {
        let mut saved = saved.lock().unwrap_or_else(PoisonError::into_inner);
        saved.1 = saved.0.take().map(|mut file| made.write(&recipe, &mut file));
    };
    let at = extras.checkpoint.as_ref();
    let at = at.map(|(cycle, _)| CheckpointAt::new(&experiment, CheckpointWhen::Cycle(*cycle), &keep));
    let checkpoint = at.transpose().map_err(errors::input)?;
    let budget = extras.timeline_budget_mib << 20;
    let conduct = Conduct {
        threads,
        timeline: timeline.as_ref().map(|_| budget),
        line_writes: extras.wear,
        checkpoint,
        from: from.as_ref(),
        ..Conduct::default()
    };
    let finished = simulated(&experiment, conduct, watch, shown);
    let outcome = finished.outcome;
    if let (Some(file), Some(noted), Some(path)) = (timeline.take(), &finished.timeline, &extras.timeline) {
        let packed = path.extension().is_some_and(|end| end == "gz");
        let kept = report::write_timeline(noted, &outcome, budget, packed, BufWriter::new(file))?;
        notes.extend(kept.iter().filter_map(report::Kept::told));
    }
    let (cycles, mut worth) = (outcome.time.core_cycles, Worth::of(&Done::of(outcome)));
    if let Some((cycle, path)) = &extras.checkpoint {
        match saved.into_inner().unwrap_or_else(PoisonError::into_inner).1 {
            Some(written) => written?,
            // The file is empty: it was made to see that it can be.
            None => {
                std::fs::remove_file(path)?;
                let why =
                    format!("`{}` is not written: the run was over at cycle {cycles}, before {cycle}", path.display());
                worth = Worth { state: "failed".to_owned(), why: Some(worth.why.unwrap_or(why)), ..worth };
            }
        }
    }
    Ok((worth, notes))
}

/// What a crash test is asked, as plain data.
#[derive(Debug, Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Ask {
    points: String,
    double: bool,
    actual_only: bool,
    claim: Option<String>,
    resume: u64,
    keep: usize,
}

impl Ask {
    fn request(&self, seed: u64, of_a_gpu: bool) -> PyResult<CrashRequest> {
        let plan = match self.points.as_str() {
            "auto" => Plan::Auto,
            "all" => Plan::All,
            "boundaries" => Plan::Boundaries,
            number => match number.parse() {
                Ok(count @ 1..) => Plan::Count(count),
                _ => return Err(PyValueError::new_err("points: expected auto, all, boundaries or a number from 1")),
            },
        };
        let claim = self.claim.as_ref().map(|name| {
            let found = PersistScope::ALL.into_iter().find(|scope| scope.name() == name);
            found.ok_or_else(|| PyValueError::new_err("claim: expected wi, wg or kr"))
        });
        let budget = if of_a_gpu { Budget::default() } else { CPU_BUDGET };
        Ok(CrashRequest {
            plan,
            double: self.double,
            claim: claim.transpose()?,
            allowed: (!self.actual_only).then_some(budget),
            seed,
            keep: self.keep.max(1),
            resume: self.resume,
            ..CrashRequest::default()
        })
    }
}

/// Lets power fail: whether all holds, the report as JSON, notes.
#[pyfunction]
#[pyo3(signature = (request, ask, threads, progress))]
pub(crate) fn crash(
    py: Python<'_>,
    request: Request,
    ask: Ask,
    threads: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<(bool, String, Vec<String>)> {
    let seed = request.value("seed").and_then(|seed| seed.parse().ok()).unwrap_or_default();
    // What is wrong with the question is said before anything is read.
    ask.request(seed, true)?;
    watched(py, progress.as_ref(), move |watch| -> PyResult<_> {
        let experiment = request.recipe().build_any().map_err(errors::input)?;
        let notes = notes(&experiment);
        let asked = ask.request(seed, experiment.gpu().is_some())?;
        let conduct = Conduct { threads, stop: Some(&watch.stop), ..Conduct::default() };
        let observer = |phase: Phase, done: u64, total: u64| {
            let what = match phase {
                Phase::Actual => "states left",
                Phase::Allowed => "states allowed",
                Phase::Overtaking => "overtaking warps",
                Phase::Resume => "states resumed",
            };
            watch.put(News { what, done, total: Some(total), left_s: None, text: String::new() });
        };
        let watching = Watching { conduct: &conduct, stop: &watch.stop, progress: &observer };
        // A pool of its own, which ends with the test: processes forked later find no threads that are gone.
        let pool = rayon::ThreadPoolBuilder::new().stack_size(STACK_BYTES).build();
        let pool = pool.map_err(|why| errors::defect(format!("no thread can be started: {why}")))?;
        let report = pool.install(|| match &experiment {
            AnyExperiment::Gpu(experiment) => judge(experiment, &asked, &watching),
            AnyExperiment::Cpu(experiment) => crash_cpu(experiment, &asked, &watching),
        });
        let report = report.map_err(errors::input)?;
        Ok((report.holds(), text_of(&report), notes))
    })?
}

/// Runs several ways and compares epoch by epoch: a JSON object.
#[pyfunction]
#[pyo3(signature = (request, threads, epoch_cycles, progress))]
pub(crate) fn check(
    py: Python<'_>,
    request: Request,
    threads: Vec<usize>,
    epoch_cycles: u64,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let came = watched(py, progress.as_ref(), move |watch| -> Result<_, Diagnostics> {
        let experiment = request.recipe().build_any()?;
        let ways: Vec<Way> = threads.iter().flat_map(|&threads| Way::at(threads)).collect();
        let put = |done: usize, text: String| {
            let total = Some(ways.len() as u64 + 1);
            watch.put(News { what: "check", done: done as u64, total, left_s: None, text });
        };
        put(0, Way::REFERENCE.to_string());
        let reference = run_one(&experiment, &Way::REFERENCE, epoch_cycles, Some(&watch.stop));
        let mut done = 1;
        let compared = compare_all(&experiment, &reference, &ways, epoch_cycles, Some(&watch.stop), |compared| {
            done += 1;
            put(done, compared.way.to_string());
        });
        let equal = compared.iter().all(|compared| compared.difference.is_none());
        let of_way = |of: &durawarp::determinism::Compared| {
            let way = of.way.to_string();
            json!({ "way": way, "digest": of.digest, "difference": of.difference })
        };
        let epochs = reference.epochs.as_ref().map_or(0, |epochs| epochs.rows().count());
        let ways: Vec<_> = compared.iter().map(of_way).collect();
        let outcome = reference.outcome;
        let told = json!({
            "equal": equal,
            "machine": outcome.machine.name,
            "cycles": outcome.time.core_cycles,
            "epochs": epochs,
            "digest": outcome.digest,
            "ways": ways,
        });
        Ok((Worth::of(&Done::of(outcome)).why, told))
    })?;
    let (why, mut told) = came.map_err(errors::input)?;
    told["failure"] = json!(why);
    Ok(told.to_string())
}

/// What each run of a comparison came to, the baseline first; where all have outcomes what the program prints
/// and draws of them; notes.
type Compared = (Vec<Worth>, String, Option<Drawn>, Vec<String>);

/// Runs a workload under several schemes.
#[pyfunction]
#[pyo3(signature = (request, schemes, stalls, work, progress))]
pub(crate) fn compare(
    py: Python<'_>,
    request: Request,
    schemes: Vec<String>,
    stalls: bool,
    work: Work,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Compared> {
    watched(py, progress.as_ref(), move |watch| -> PyResult<_> {
        if stalls && request.recipe().is_of_a_cpu() {
            return Err(errors::input(report::no_stalls_of_cpus().into()));
        }
        let comparison = Comparison::of(&request.recipe(), &schemes).map_err(errors::input)?;
        let left_out = |(scheme, why): &(String, String)| format!("`{scheme}` is left out: {why}");
        let mut notes: Vec<String> = comparison.left_out.iter().map(left_out).collect();
        notes.extend(comparison.batch.warnings(comparison.points[0].1).iter().map(ToString::to_string));
        let done = points_done(&comparison.batch, &work, watch).map_err(errors::results)?;
        let outcomes = comparison.outcomes(&done);
        let runs = comparison.points.iter().zip(&outcomes);
        let runs = runs.map(|((_, at), outcome)| Worth::under(&done[*at], outcome.as_ref())).collect();
        let all: Option<Vec<&Outcome>> = outcomes.iter().map(Option::as_ref).collect();
        let (text, drawing) = match all.as_deref() {
            Some(all @ [base, ..]) if stalls => (report::stalls_table(base, all), report::stalls_figure(base, all)),
            Some(all @ [base, ..]) => (report::comparison(base, all), report::comparison_figure(base, all)),
            _ => return Ok((runs, String::new(), None, notes)),
        };
        Ok((runs, text, drawn(&drawing), notes))
    })?
}

/// Every metric, as a list of JSON objects.
#[pyfunction]
pub(crate) fn metrics() -> String {
    text_of(&all_metrics::all())
}

/// Metrics of a table for which none are named: those of a sweep file that names none.
#[pyfunction]
pub(crate) fn default_metrics() -> PyResult<Vec<String>> {
    const FILE: &str = "schema = 1\nname = 'one'\n[base]\nworkload = 'vecadd'\n";
    Ok(SweepFile::read("", FILE.to_owned(), Path::new("")).map_err(errors::input)?.metrics)
}

/// The default metrics where none are named, else these, and all that are unknown at once.
pub(crate) fn known_metrics(names: Option<Vec<String>>, default: &[String]) -> PyResult<Vec<String>> {
    let Some(names) = names else { return Ok(default.to_vec()) };
    let (known, mut faults) = (all_metrics::all(), Diagnostics::default());
    for name in names.iter().filter(|name| known.iter().all(|metric| metric.name != **name)) {
        let fault = Diagnostic::nowhere("metrics", format!("there is no metric `{name}`"));
        faults.push(fault.with_nearest(name, known.iter().map(|metric| metric.name.as_str())));
    }
    faults.into_result(names).map_err(errors::input)
}

/// An outcome that was written as JSON.
pub(crate) fn outcome_of(text: &str) -> PyResult<Outcome> {
    serde_json::from_str(text).map_err(|why| PyValueError::new_err(format!("no outcome of a run: {why}")))
}

/// Metrics of an outcome by name, of all that are named.
#[pyfunction]
#[pyo3(signature = (outcome, names))]
pub(crate) fn metric_values(outcome: &str, names: Vec<String>) -> PyResult<Vec<Option<f64>>> {
    let names = known_metrics(Some(names), &[])?;
    let outcome = outcome_of(outcome)?;
    Ok(names.iter().map(|name| all_metrics::value(&outcome, name)).collect())
}

/// What `durawarp run` prints of an outcome.
#[pyfunction]
pub(crate) fn summary(outcome: &str) -> PyResult<String> {
    Ok(report::summary(&outcome_of(outcome)?))
}
