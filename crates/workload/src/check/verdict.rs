//! What verification says, as plain data, and the judgement of expected figures.
//!
//! A figure is as expected if `|got - expected| <= tol * |expected|`. Expectations of a profile are not
//! judged where a parameter or an input was replaced: they hold for the profile as it is.

use std::collections::BTreeMap;

use crate::expr::Value;
use crate::host::functional::FunctionalRun;
use crate::manifest::checks::Expectation;
use crate::plan::RunPlan;
use durawarp_base::diagnostic::nearest;

/// What verification compares a final memory with, beside the manifest's own checks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Evidence<'a> {
    /// The functional run; without it, the checks that need it are not done.
    pub functional: Option<&'a FunctionalRun>,
    /// The same with other numbers where the program asks for what only a machine knows
    /// ([`other_machine_sms`](durawarp_kernel::functional::Limits::other_machine_sms)): an element that
    /// differs between the two is not compared.
    pub other_machine: Option<&'a FunctionalRun>,
    /// Figures of the run by name, for `[expect]`.
    pub metrics: Option<&'a BTreeMap<String, f64>>,
}

/// The verdict.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Verification {
    /// One a check, in manifest order; the check that inputs are unchanged comes first.
    pub checks: Vec<CheckResult>,
    /// One an expectation of the profile.
    pub expectations: Vec<ExpectationResult>,
}

impl Verification {
    /// No check and no expectation failed.
    pub fn passed(&self) -> bool {
        let checks = self.checks.iter().all(|check| check.outcome != Outcome::Failed);
        checks && self.expectations.iter().all(|expectation| expectation.outcome != Outcome::Failed)
    }
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Everything compared is as it should be.
    Passed,
    /// Something is not.
    Failed,
    /// What it needs was not there (a functional run, a metric).
    Skipped,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CheckResult {
    /// Name of the check.
    pub name: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Elements compared.
    pub compared: u64,
    /// Elements that differ.
    pub mismatches: u64,
    /// The first that differs.
    pub first: Option<Mismatch>,
    /// Why it failed or was skipped where no element says it.
    pub message: Option<String>,
}

/// An element that is not as it should be.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Mismatch {
    /// Buffer, or `buffer.field`.
    pub buffer: String,
    /// Element number.
    pub index: u64,
    /// What the final memory holds, as a number.
    pub got: String,
    /// What it should hold.
    pub expected: String,
}

/// The result of one expectation.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ExpectationResult {
    /// Name of the figure.
    pub metric: String,
    /// How it ended.
    pub outcome: Outcome,
    /// What was expected.
    pub expected: f64,
    /// Relative tolerance.
    pub tolerance: f64,
    /// What the run gave.
    pub got: Option<f64>,
    /// Where the expected figure comes from.
    pub source: Option<String>,
    /// Why it was skipped, or failed without a figure.
    pub message: Option<String>,
}

/// The expectations of a plan's profile; where the run was altered, only those that hold for every profile.
pub(crate) fn expected(plan: &RunPlan) -> impl Iterator<Item = &Expectation> {
    let holds =
        |form: &&Expectation| form.profiles.is_empty() || form.profiles.contains(&plan.profile) && !plan.altered;
    plan.manifest.expectations.iter().filter(holds)
}

/// Judges the expectations of a plan's profile.
pub(crate) fn expectations(plan: &RunPlan, metrics: Option<&BTreeMap<String, f64>>) -> Vec<ExpectationResult> {
    expected(plan).map(|form| expectation(plan, form, metrics)).collect()
}

fn expectation(plan: &RunPlan, form: &Expectation, metrics: Option<&BTreeMap<String, f64>>) -> ExpectationResult {
    let value = plan.value(&form.value);
    let got = metrics.and_then(|metrics| metrics.get(&form.metric)).copied();
    let (outcome, message) = match (&value, got) {
        (Err(fault), _) => (Outcome::Failed, Some(fault.to_string())),
        (Ok(_), None) => (Outcome::Skipped, Some(no_metric(&form.metric, metrics))),
        (Ok(expected), Some(got)) => {
            let expected = expected.as_f64();
            let near = (got - expected).abs() <= form.tolerance * expected.abs();
            (if near { Outcome::Passed } else { Outcome::Failed }, None)
        }
    };
    ExpectationResult {
        metric: form.metric.clone(),
        outcome,
        expected: value.map_or(f64::NAN, Value::as_f64),
        tolerance: form.tolerance,
        got,
        source: form.source.clone(),
        message,
    }
}

fn no_metric(name: &str, metrics: Option<&BTreeMap<String, f64>>) -> String {
    let known = metrics.into_iter().flat_map(|metrics| metrics.keys().map(String::as_str));
    match nearest(name, known) {
        Some(near) => format!("this run gives no figure `{name}` (did you mean `{near}`?)"),
        None => format!("this run gives no figure `{name}`"),
    }
}
