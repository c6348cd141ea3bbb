//! What came of a plan: figures with what was found, under each reading, and a record of every run.
//!
//! Invariant: it is a pure function of the plan and its outcomes.

use super::ask::Verdict;
use super::paper::{Figure, Finding, Paper, Reading};
use super::plan::PaperPlan;
use super::runs::Runs;
use durawarp_simulation::sweep::Done;
use durawarp_simulation::sweep::batch::Point;

/// A run of the reproduction, for the record.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
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
    pub records: Vec<RunRecord>,
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
    pub fn of(plan: &PaperPlan, results: &[Done]) -> Self {
        assert_eq!(plan.batch().points().len(), results.len(), "one result a point");
        let request = plan.request();
        let found =
            |runs: &Runs<'_>| request.figures.iter().map(|&figure| (figure, figure.found(request, runs))).collect();
        let readings =
            plan.readings().iter().map(|(reading, points)| (*reading, found(&plan.runs_at(points, results))));
        let points = plan.batch().points().iter().zip(results).enumerate();
        let record = |(number, (point, done)): (usize, (&Point, &Done))| RunRecord {
            label: point.label.clone(),
            command: plan.batch().command(number),
            result: match done {
                Done::Good(outcome) => Ok([outcome.digest.clone(), outcome.memory_digest.clone()]),
                Done::Cut(_) => Err("cut by a cycle limit".to_owned()),
                Done::Failed { why, .. } => Err(why.clone()),
                Done::NotRun => Err("not run: stopped".to_owned()),
            },
        };
        // Parameters without a source are listed as the first run that succeeded has them.
        let first = results.iter().find_map(Done::good);
        let assumed = first.map(|outcome| outcome.assumptions()).unwrap_or_default();
        let assumed = assumed.into_iter().map(|(key, of)| [key.to_owned(), of.value.to_string(), of.source.clone()]);
        Reproduction {
            paper: request.paper,
            settings: request.settings(),
            assumptions: assumed.collect(),
            findings: found(&plan.runs_at(plan.points(), results)),
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
