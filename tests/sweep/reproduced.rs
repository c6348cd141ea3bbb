//! What tests of reproduced papers ask of plans, their results and what was found.

use durawarp::outcome::Outcome;
use durawarp::papers::{Cell, Finding, PaperPlan, Run, Verdict};
use durawarp::sweep::campaign::without_store;
use durawarp::sweep::{Done, Workers};

/// Every run of a plan.
pub(crate) fn run(plan: &PaperPlan) -> Vec<Done> {
    without_store(plan.batch(), &Workers { jobs: 2, ..Workers::default() })
}

/// What came of a run.
pub(crate) fn outcome<'r>(plan: &PaperPlan, results: &'r [Done], wanted: &Run) -> &'r Outcome {
    let point = plan.point_of(wanted).unwrap();
    results[point].good().unwrap()
}

/// The number in a cell.
pub(crate) fn number(cell: &Cell) -> f64 {
    match cell {
        Cell::Number(value, _) => *value,
        Cell::Count(count) => *count as f64,
        other => panic!("no number: {other:?}"),
    }
}

/// How many asks have a verdict.
pub(crate) fn judged(finding: &Finding) -> usize {
    finding.asks.iter().filter(|ask| ask.verdict != Verdict::NotApplicable).count()
}
