//! A paper's experiments run again: what each figure needs, ours beside the published numbers, and what may be asked.
//!
//! ```text
//! kernels + figures ─ plan ─> points ─ sweep ─> outcomes ─ measured ─> numbers of each kernel ─┬─> tables ─> CSV, text, page
//! published (CSV, with its place in the paper) ─────────────────────────────────────────────────┴─> asks: met or not
//! ```
//! So far AGPM (Table II and III, Figures 3, 4, 5, 7, section IV-C). Bars of its figures are in no text, so the numbers
//! that its text gives stand beside ours, and an *ask* is what a simulator of our own may honestly claim of them: an
//! order, a sign, a broad band. An ask that is not met is a finding. Nothing here changes a model.
//!
//! Invariants: a run serves every figure that needs it; tables and verdicts are pure functions of outcomes; a scheme that
//! the catalogue does not have is left out and said so.

pub mod ask;
pub mod figure;
pub mod figures;
pub mod kernels;
pub mod measured;
pub mod page;
pub mod picture;
pub mod plan;
pub mod published;
pub mod table;

pub use ask::{Ask, Verdict};
pub use figure::Figure;
pub use plan::{Plan, Protocol, Request};
pub use table::{Cell, Table};

use crate::sweep::Done;

/// A figure of the paper, reproduced.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Which.
    pub figure: Figure,
    /// Ours beside the published numbers.
    pub tables: Vec<Table>,
    /// What was asked of it.
    pub asks: Vec<Ask>,
    /// What to know when reading it.
    pub notes: Vec<String>,
}

/// A run of the reproduction, for the record.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Workload, scheme and coalescer.
    pub label: String,
    /// Digest of the run, and of its final memory; why there is none.
    pub result: Result<[String; 2], String>,
}

/// Everything that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Reproduction {
    /// What was asked for, and the machine, in words: name and value.
    pub settings: Vec<(String, String)>,
    /// Parameters of the machine whose value was chosen for lack of a source: name, value, why.
    pub assumptions: Vec<[String; 3]>,
    /// Figures in the order of the request.
    pub findings: Vec<Finding>,
    /// Every run, in the order of the plan.
    pub records: Vec<Record>,
    /// What was left out.
    pub notes: Vec<String>,
}

impl Reproduction {
    /// What came of a plan's points.
    ///
    /// # Panics
    /// When there is not one result a point.
    pub fn of(plan: &Plan, results: &[Done]) -> Self {
        assert_eq!(plan.points().len(), results.len(), "one result a point");
        let runs = measured::Runs::of(plan, results);
        let findings = plan.request().figures.iter().map(|figure| figures::finding(*figure, plan.request(), &runs));
        let record = |(point, done): (&crate::sweep::Point, &Done)| Record {
            label: point.label.clone(),
            result: match done {
                Done::Good(outcome) => Ok([outcome.digest.clone(), outcome.memory_digest.clone()]),
                Done::Failed { why, .. } => Err(why.clone()),
                Done::NotRun => Err("not run: stopped".to_owned()),
            },
        };
        let first = results.iter().find_map(Done::good);
        let assumed = first.map(|outcome| outcome.assumptions()).unwrap_or_default();
        let assumed = assumed.into_iter().map(|(key, of)| [key.to_owned(), of.value.to_string(), of.source.clone()]);
        Reproduction {
            settings: plan.request().settings(),
            assumptions: assumed.collect(),
            findings: findings.collect(),
            records: plan.points().iter().zip(results).map(record).collect(),
            notes: plan.notes().to_vec(),
        }
    }

    /// Every run went well.
    pub fn complete(&self) -> bool {
        self.records.iter().all(|record| record.result.is_ok())
    }
}
