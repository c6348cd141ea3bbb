//! What is made of outcomes, or of several runs: differences, explanations, where two runs part, papers'
//! experiments.

use std::path::PathBuf;

use durawarp::bisect::{Bisected, bisect as parted};
use durawarp::papers::{Asked, PaperPlan, Reproduction, Verdict};
use durawarp::report::{self, Differences};
use durawarp::run::{AnyExperiment, Conduct, Epochs};
use durawarp::sweep::Done;
use durawarp::{Diagnostics, Outcome};
use pyo3::prelude::*;
use serde_json::json;

use crate::errors;
use crate::request::{Request, Work};
use crate::runs::{Drawn, drawn, notes, outcome_of, simulated, text_of};
use crate::sweeps::{Worth, points_done};
use crate::watch::watched;

/// The outcome in a file of `run --json`, as JSON.
#[pyfunction]
pub(crate) fn read_outcome(path: PathBuf) -> PyResult<String> {
    let outcome = Outcome::read(&path).map_err(|fault| errors::input(fault.into()))?;
    Ok(text_of(&outcome))
}

/// Two outcomes side by side: whether nothing differs, what does as JSON, and as the program prints it.
#[pyfunction]
pub(crate) fn diff(one: &str, other: &str) -> PyResult<(bool, String, String)> {
    let differences = Differences::of(&outcome_of(one)?, &outcome_of(other)?);
    Ok((differences.is_empty(), text_of(&differences), differences.text()))
}

/// What a scheme did in a run: what the run is worth; text, JSON and drawing of the explanation; notes.
type Explained = (Worth, Option<(String, String, Option<Drawn>)>, Vec<String>);

/// Simulates, and explains what the scheme did.
#[pyfunction]
#[pyo3(signature = (request, threads, progress))]
pub(crate) fn explain(
    py: Python<'_>,
    request: Request,
    threads: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Explained> {
    let shown = progress.is_some();
    let came = watched(py, progress.as_ref(), move |watch| -> Result<_, Diagnostics> {
        let experiment = request.recipe().build_any()?;
        if let AnyExperiment::Gpu(of) = &experiment {
            report::can_be_explained(of.scheme.built.name(), &of.scheme.name)?;
        }
        let notes = notes(&experiment);
        let conduct = Conduct { threads, places: true, ..Conduct::default() };
        let outcome = simulated(&experiment, conduct, watch, shown).outcome;
        let explanation = report::explanation(&outcome, &experiment.storage()).map(|explanation| {
            let drawing = report::drawing(&outcome).and_then(|figure| drawn(&figure));
            (explanation.text, text_of(&explanation.data), drawing)
        });
        Ok((Worth::of(&Done::of(outcome)), explanation, notes))
    })?;
    came.map_err(errors::input)
}

/// Where two runs part: a JSON object.
#[pyfunction]
#[pyo3(signature = (first, second, epoch_cycles))]
pub(crate) fn bisect(py: Python<'_>, first: Request, second: Request, epoch_cycles: u64) -> PyResult<String> {
    let came = watched(py, None, move |watch| -> Result<_, Diagnostics> {
        let [one, other] = [first, second].map(|request| request.recipe().reference(false).build_any());
        let (one, other) = (one?, other?);
        let found = parted([&one, &other], Epochs::of(&one, epoch_cycles), Some(&watch.stop));
        let equal = matches!(found, Bisected::Equal { .. });
        let titles = [one.title(), other.title()];
        Ok(json!({ "equal": equal, "runs": titles, "epoch_cycles": epoch_cycles, "found": found }))
    })?;
    came.map(|told| told.to_string()).map_err(errors::input)
}

/// What is asked of a paper, as plain data.
#[derive(Debug, Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct PaperAsk {
    paper: String,
    figures: Vec<String>,
    kernels: Vec<String>,
    profile: String,
    machine: Option<String>,
    set: Vec<String>,
    no_readings: bool,
    seed: u64,
}

/// Files by name, in the order in which the program writes them.
type Files = Vec<(String, String)>;

/// Runs a paper's experiments: what was found as JSON, as the program prints it, and as files.
#[pyfunction]
#[pyo3(signature = (ask, work, progress))]
pub(crate) fn reproduce(
    py: Python<'_>,
    ask: PaperAsk,
    work: Work,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<(String, String, Files)> {
    let PaperAsk { paper, figures, kernels, profile, machine, set, no_readings, seed } = ask;
    let asked = Asked { paper, figures, kernels, profile, machine, set, no_readings, seed, ..Asked::default() };
    watched(py, progress.as_ref(), move |watch| -> PyResult<_> {
        let plan = asked.request().and_then(PaperPlan::new).map_err(errors::input)?;
        let done = points_done(plan.batch(), &work, watch).map_err(errors::results)?;
        let found = Reproduction::of(&plan, &done);
        let told = |verdict: Verdict| verdict.words();
        let asks = found.findings.iter().flat_map(|(figure, finding)| {
            finding.asks.iter().map(move |ask| {
                json!({ "figure": figure.name, "verdict": told(ask.verdict), "text": ask.text, "evidence": ask.evidence })
            })
        });
        let asks: Vec<_> = asks.collect();
        let failed =
            found.records.iter().filter_map(|run| Some((run.label.clone(), run.result.as_ref().err()?.clone())));
        let failed: Vec<(String, String)> = failed.collect();
        let told = json!({
            "paper": asked.paper,
            "complete": found.complete(),
            "tally": found.tally(),
            "asks": asks,
            "failed": failed,
        });
        Ok((told.to_string(), found.text(), found.files()))
    })?
}
