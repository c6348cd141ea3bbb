//! What is kept of a point's outcome: the values of metrics, what its figures need, and what tells whether to
//! believe it.
//!
//! Invariant: of a point that failed no value is kept, whatever it left.

use std::collections::BTreeMap;

use durawarp_simulation::outcome::validity::Kind;
use durawarp_simulation::outcome::{Outcome, Sampling, ratio};
use durawarp_simulation::sweep::Plan;
use durawarp_simulation::sweep::Store;
use durawarp_simulation::sweep::file::figure::Latency;
use durawarp_simulation::sweep::file::figure::Shown;
use durawarp_simulation::sweep::metrics;
use durawarp_simulation::sweep::record::State as Recorded;

/// A point as far as it is known.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) state: PointState,
    /// Values of the file's metrics.
    pub(super) metrics: Vec<Option<f64>>,
    /// What each figure of the file shows of it.
    pub(super) data: Vec<Datum>,
    /// How wide the confidence interval of its time is to either side, in percent, where it is an estimate.
    pub(super) sampled: Option<f64>,
    /// Who it is; `None` without a result.
    pub(super) facts: Option<Facts>,
}

/// What came of a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PointState {
    /// A result that counts.
    Good,
    /// One of the part that ran before the cycle limit.
    Cut,
    /// None that counts: why.
    Failed(String),
    /// It was not run.
    Missing,
}

/// What a figure shows of a point.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Datum {
    /// Nothing: why.
    None(String),
    Value(f64),
    /// Parts by name; and what the whole of them is over that of the baseline.
    Parts(Vec<(String, f64)>, f64),
    /// Latencies in ns, and how often each was met.
    Steps(Vec<(f64, u64)>),
}

/// What a result is told apart and judged by.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Facts {
    pub(super) version: String,
    pub(super) schema: u32,
    pub(super) digest: String,
    pub(super) memory_digest: String,
    /// Whether it was compared with a reference, or by the manifest's checks.
    pub(super) checked: bool,
    pub(super) warnings: Vec<String>,
    /// Every parameter of machine, scheme and workload: value, source.
    pub(super) parameters: BTreeMap<String, (String, String)>,
    /// Keys of parameters that have no source of their own.
    pub(super) assumed: Vec<String>,
}

pub(super) fn read(plan: &Plan, store: &Store, point: usize) -> Result<Reading, String> {
    let none = |state, why: &str| {
        let data = plan.file.figures.iter().map(|_| Datum::None(why.to_owned())).collect();
        Reading { state, metrics: vec![None; plan.file.metrics.len()], data, sampled: None, facts: None }
    };
    let Some(entry) = store.result(&plan.points[point].key) else {
        return Ok(none(PointState::Missing, "was not run"));
    };
    if !entry.head.state.counts() {
        let why = entry.head.why.clone().unwrap_or_default();
        return Ok(none(PointState::Failed(why), "failed"));
    }
    let Some(outcome) = store.outcome(entry)? else {
        return Ok(none(PointState::Failed("its record has no outcome".to_owned()), "failed"));
    };
    Ok(Reading {
        state: if entry.head.state == Recorded::Cut { PointState::Cut } else { PointState::Good },
        metrics: plan.file.metrics.iter().map(|name| metrics::value(&outcome, name)).collect(),
        data: plan.file.figures.iter().map(|figure| datum(&outcome, &figure.shown)).collect(),
        sampled: outcome.sampling.as_ref().map(Sampling::half_width_percent),
        facts: Some(facts(&outcome)),
    })
}

fn datum(outcome: &Outcome, shown: &Shown) -> Datum {
    match shown {
        Shown::Metric(metric) => match metrics::value(outcome, &metric.name) {
            Some(value) => Datum::Value(value),
            None => Datum::None(format!("has no `{}`", metric.name)),
        },
        Shown::Metrics(all) => {
            let values = all.iter().map(|metric| Some((metric.name.clone(), metrics::value(outcome, &metric.name)?)));
            sum(values.collect::<Option<Vec<_>>>(), "has not all of these metrics")
        }
        Shown::Traffic => {
            let bytes = [("DRAM read", "dram_read_bytes"), ("DRAM written", "dram_written_bytes")];
            let bytes = bytes.into_iter().chain([("NVM read", "nvm_read_bytes"), ("NVM written", "nvm_written_bytes")]);
            let parts = bytes.map(|(name, counter)| {
                Some((name.to_owned(), metrics::value(outcome, &format!("memory_controller.{counter}"))?))
            });
            sum(parts.collect(), "has no counters of memory controllers")
        }
        Shown::Stalls => stalls(outcome),
        // Stages are means over all persists, so that they add up to the mean of the whole.
        Shown::Persists => match outcome.persists.as_ref().filter(|persists| persists.total.count > 0) {
            Some(persists) => {
                let count = persists.total.count as f64;
                let stage =
                    |stage: &durawarp_simulation::outcome::Stage| (stage.name.clone(), stage.spread.sum_ns / count);
                sum(Some(persists.stages.iter().map(stage).collect()), "")
            }
            None => Datum::None("has no persists".to_owned()),
        },
        Shown::Latency(latency) => steps(outcome, *latency),
    }
}

fn sum(parts: Option<Vec<(String, f64)>>, otherwise: &str) -> Datum {
    match parts {
        Some(parts) => {
            let whole = parts.iter().map(|(_, value)| value).sum();
            Datum::Parts(parts, whole)
        }
        None => Datum::None(otherwise.to_owned()),
    }
}

/// Shares of resident warp cycles; the whole is the run's time.
fn stalls(outcome: &Outcome) -> Datum {
    let Some(sm) = outcome.counters.iter().find(|table| table.kind == "sm") else {
        return Datum::None("has no counters of SMs".to_owned());
    };
    let accounts = sm.names.iter().filter_map(|name| Some((name, name.strip_prefix("slots_")?)));
    let accounts: Vec<(String, u64)> = accounts
        .filter(|(_, account)| *account != "resident")
        .map(|(name, account)| (account.replace('_', " "), sm.total(name)))
        .collect();
    let resident = accounts.iter().map(|(_, cycles)| cycles).sum();
    let shares = accounts.into_iter().map(|(account, cycles)| (account, ratio(cycles, resident)));
    Datum::Parts(shares.collect(), outcome.time.core_cycles as f64)
}

fn steps(outcome: &Outcome, latency: Latency) -> Datum {
    let (what, found) = match (latency, &outcome.persists) {
        (Latency::Persists, persists) => {
            ("persists", persists.as_ref().map(|p| (p.total.count, &p.distributions.total)))
        }
        (Latency::Fences, persists) => {
            ("waits at fences", persists.as_ref().map(|p| (p.fences.count, &p.distributions.fences)))
        }
        (Latency::Boundaries, persists) => {
            ("waits at boundaries", persists.as_ref().map(|p| (p.boundaries.count, &p.distributions.boundaries)))
        }
    };
    match found.filter(|(count, _)| *count > 0) {
        None => Datum::None(format!("has no {what}")),
        Some((_, steps)) if steps.is_empty() => {
            Datum::None("was kept by a program that kept no distributions: run it again into a new folder".to_owned())
        }
        Some((_, steps)) => Datum::Steps(steps.clone()),
    }
}

/// What should be known before a result is believed. Parameters without a source have a section of their own.
fn warnings(outcome: &Outcome) -> Vec<String> {
    let caveats = outcome.validity.iter().filter(|caveat| caveat.kind != Kind::Unsourced);
    let texts = caveats.map(|caveat| caveat.text.clone());
    outcome.warnings.iter().map(|warning| warning.message.clone()).chain(texts).collect()
}

fn facts(outcome: &Outcome) -> Facts {
    let text = |value: &serde_json::Value| durawarp_simulation::sweep::file::text_of(value);
    let mut parameters: BTreeMap<String, (String, String)> = BTreeMap::new();
    let mut add =
        |key: &str, value: String, source: &str| parameters.insert(key.to_owned(), (value, source.to_owned()));
    for (key, parameter) in outcome.machine.parameters.iter().chain(&outcome.scheme_parameters) {
        add(key, text(&parameter.value), &parameter.source);
    }
    add("machine", outcome.machine.name.clone(), "sweep file");
    add("scheme", outcome.scheme_name().to_owned(), "sweep file");
    for key in ["workload", "profile", "seed"] {
        add(key, text(&outcome.workload[key]), "sweep file");
    }
    for (name, value) in outcome.workload["params"].as_object().into_iter().flatten() {
        add(&format!("params.{name}"), text(value), "manifest or sweep file");
    }
    Facts {
        version: outcome.version.clone(),
        schema: outcome.schema,
        digest: outcome.digest.clone(),
        memory_digest: outcome.memory_digest.clone(),
        checked: outcome.verification.as_ref().is_some_and(|verification| verification.passed),
        warnings: warnings(outcome),
        parameters,
        assumed: outcome.assumptions().into_iter().map(|(key, _)| key.to_owned()).collect(),
    }
}

/// What a sweep came to, ready to be shown.
#[derive(Debug)]
pub struct Showing<'a> {
    pub(super) plan: &'a Plan,
    pub(super) readings: Vec<Reading>,
    pub(super) baselines: Vec<Option<usize>>,
}

impl<'a> Showing<'a> {
    /// Reads the results of a plan's points.
    ///
    /// # Errors
    /// A result cannot be read.
    pub fn read(plan: &'a Plan, store: &Store) -> Result<Self, String> {
        let readings = (0..plan.points.len()).map(|point| read(plan, store, point));
        Ok(Showing { plan, readings: readings.collect::<Result<_, _>>()?, baselines: plan.baselines() })
    }

    /// What is told of the points that have results, by point.
    pub(super) fn facts(&self) -> impl Iterator<Item = (usize, &Facts)> {
        self.readings.iter().enumerate().filter_map(|(at, reading)| Some((at, reading.facts.as_ref()?)))
    }
}

#[cfg(test)]
mod tests;
