//! Papers' experiments run again: what each figure needs, ours beside the published numbers, and what may be asked.
//!
//! ```text
//! paper: figures ─ plan ─> runs, each once ─ sweep ─> outcomes ─> numbers ─┬─> tables ─> CSV, text, page
//! published (CSV, with its place in the paper) ─────────────────────────────┴─> asks: met or not
//! ```
//! Bars of figures are seldom in a text, so the numbers that a paper's text gives stand beside ours, and an *ask* is what
//! a simulator of our own may honestly claim of them: an order, a sign, a broad band. An ask that is not met is a finding.
//! Nothing here changes a model.
//!
//! # To add a paper
//!
//! A folder `reproduce/NAME/` beside `agpm/`, a file `reproduce/NAME.rs` that opens it with a `pub const PAPER:`
//! [`Paper`], and its line in [`PAPERS`]: the command line, files, pages and tests find it there. It has
//!
//! * its [`Figure`]s, a row each: name, title, and three functions. `runs` says what the figure needs of a [`Request`], as
//!   [`Run`]s: workload, scheme, and changes of machine, scheme or parameters as one would type them behind `--set`. Runs
//!   that figures share are run once. `finding` makes tables, asks and notes of the [`Runs`], where it looks an outcome up
//!   by the very same `Run`; where a run failed there is none, which leaves a gap. `draw` makes a picture of the tables;
//! * its published values as a CSV file, each with its place in the paper ([`Published`]);
//! * what its figures show one by one (`kernels`), and what it does otherwise than our manifests about undo logging.
//!
//! Invariants: a run serves every figure that needs it; tables and verdicts are pure functions of outcomes; a scheme that
//! the catalogue does not have is left out and said so.

pub mod agpm;
pub(crate) mod ask;
pub(crate) mod figure;
pub mod lightwsp;
pub(crate) mod page;
pub(crate) mod plan;
pub(crate) mod published;
pub(crate) mod reading;
pub(crate) mod request;
pub(crate) mod runs;
pub mod scoped;
pub(crate) mod table;

pub use ask::{Ask, Verdict};
pub use figure::{Figure, Finding};
pub use plan::Plan;
pub use published::Published;
pub use reading::Reading;
pub use request::Request;
pub use runs::{Run, Runs};
pub use table::{Cell, Table};

use crate::diagnostic::Diagnostic;
use crate::sweep::Done;
use crate::workload::Overrides;

/// A paper that can be reproduced.
#[derive(Debug)]
pub struct Paper {
    /// As typed, and the name of its page.
    pub name: &'static str,
    /// What it is called.
    pub title: &'static str,
    /// Its machine, unless another is named.
    pub machine: &'static str,
    /// What its figures show one by one, as it calls them, in its order: kernels or programs.
    pub kernels: &'static [&'static str],
    /// Its figures and tables.
    pub figures: &'static [Figure],
    /// Thousands of warp instructions of a workload at its profile `paper`, where that is known: which run begins first, and
    /// the time left.
    pub work: fn(&str) -> Option<u64>,
    /// How undo logging is done there, where that is not as the manifests say.
    pub instrument: Overrides,
    /// What the paper's text may mean besides what its machine takes it to mean: every figure is made of each too.
    pub readings: &'static [Reading],
}

/// The papers that there are.
pub const PAPERS: [&Paper; 3] = [&agpm::PAPER, &scoped::PAPER, &lightwsp::PAPER];

/// The paper of a name.
///
/// # Errors
/// There is none; the nearest that there is.
pub fn find(name: &str) -> Result<&'static Paper, Diagnostic> {
    let names = || PAPERS.iter().map(|paper| paper.name);
    PAPERS.into_iter().find(|paper| paper.name == name).ok_or_else(|| {
        let all: Vec<&str> = names().collect();
        let message = format!("there is no paper `{name}` to reproduce; there are {}", all.join(", "));
        Diagnostic::nowhere("", message).with_nearest(name, names())
    })
}

/// A run of the reproduction, for the record.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// What was run.
    pub label: String,
    /// Digest of the run, and of its final memory; why there is none.
    pub result: Result<[String; 2], String>,
    /// The command line that runs it by itself, with the same digests.
    pub command: String,
}

/// Everything that was found.
#[derive(Debug, Clone)]
pub struct Reproduction {
    /// The paper.
    pub paper: &'static Paper,
    /// What was asked for, and the machine, in words: name and value.
    pub settings: Vec<(String, String)>,
    /// Parameters of the machine whose value was chosen for lack of a source: name, value, why.
    pub assumptions: Vec<[String; 3]>,
    /// Figures in the order of the request, and what was found.
    pub findings: Vec<(&'static Figure, Finding)>,
    /// The same figures under each of the other readings.
    pub readings: Vec<(&'static Reading, Vec<(&'static Figure, Finding)>)>,
    /// Every run, in the order of the plan.
    pub records: Vec<Record>,
    /// Which programs were run: how they keep undo logs, and their log updates.
    pub program: String,
    /// What was left out.
    pub notes: Vec<String>,
}

impl Reproduction {
    /// What came of a plan's points.
    ///
    /// # Panics
    /// When there is not one result a point.
    pub fn of(plan: &Plan, results: &[Done]) -> Self {
        assert_eq!(plan.batch().points().len(), results.len(), "one result a point");
        let request = plan.request();
        let found =
            |runs: &Runs<'_>| request.figures.iter().map(|&figure| (figure, figure.found(request, runs))).collect();
        let readings =
            plan.readings().iter().map(|(reading, points)| (*reading, found(&Runs::of(plan, points, results))));
        let points = plan.batch().points().iter().zip(results).enumerate();
        let record = |(number, (point, done)): (usize, (&crate::sweep::batch::Point, &Done))| Record {
            label: point.label.clone(),
            command: plan.batch().command(number),
            result: match done {
                Done::Good(outcome) => Ok([outcome.digest.clone(), outcome.memory_digest.clone()]),
                Done::Cut(_) => Err("cut by a cycle limit".to_owned()),
                Done::Failed { why, .. } => Err(why.clone()),
                Done::NotRun => Err("not run: stopped".to_owned()),
            },
        };
        let first = results.iter().find_map(Done::good);
        let assumed = first.map(|outcome| outcome.assumptions()).unwrap_or_default();
        let assumed = assumed.into_iter().map(|(key, of)| [key.to_owned(), of.value.to_string(), of.source.clone()]);
        Reproduction {
            paper: request.paper,
            settings: request.settings(),
            assumptions: assumed.collect(),
            findings: found(&Runs::of(plan, plan.points(), results)),
            readings: readings.collect(),
            records: points.map(record).collect(),
            program: crate::report::programs(results.iter().filter_map(Done::good)),
            notes: plan.notes().to_vec(),
        }
    }

    /// Asks that are met, those that are not, and those that cannot be judged, under the paper's own reading.
    pub fn tally(&self) -> [usize; 3] {
        let verdicts = || self.findings.iter().flat_map(|(_, finding)| &finding.asks).map(|ask| ask.verdict);
        let of = |wanted: Verdict| verdicts().filter(|verdict| *verdict == wanted).count();
        [Verdict::Met, Verdict::NotMet, Verdict::NotApplicable].map(of)
    }

    /// Every run went well.
    pub fn complete(&self) -> bool {
        self.records.iter().all(|record| record.result.is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paper_is_found_by_its_name_or_the_nearest_is_told() {
        for paper in PAPERS {
            assert_eq!(find(paper.name).unwrap().title, paper.title);
        }
        assert!(find("agmp").unwrap_err().to_string().contains("did you mean `agpm`?"));
    }

    #[test]
    fn names_of_figures_kernels_and_papers_tell_them_apart() {
        for paper in PAPERS {
            for names in [paper.kernels.to_vec(), paper.figures.iter().map(|figure| figure.name).collect()] {
                let lower = |name: &str| name.to_lowercase();
                let mut all: Vec<String> = names.iter().map(|name| lower(name)).chain(["all".to_owned()]).collect();
                all.sort_unstable();
                all.dedup();
                assert_eq!(all.len(), names.len() + 1, "{}: {names:?}", paper.name);
            }
        }
    }
}
