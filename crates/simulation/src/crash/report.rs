//! What a crash test reports, as plain data: judgements with their failures in the terms of the program.
//!
//! Invariants: everything but `wall_s` and the outcome's `host` follows from the experiment and the request.
//! Serialised under the names of the fields.

use serde::Serialize;

use super::conditions::Condition;
use super::found::Found;
use super::output::OutputCounts;
use crate::outcome::{End, Outcome};
use durawarp_oracle::verdict::Verdict;
use durawarp_persist::vocab::Domain;

/// What one judgement came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// Its figures.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Its failures, with their places in the program.
    pub found: Vec<Found>,
}

/// What was judged of the verbs that clients posted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Channels {
    /// Channels, one a client, that posted something.
    pub channels: u64,
    /// Verbs posted.
    pub verbs: u64,
    pub acknowledgements: u64,
    /// Changes of what is durable of them, and acknowledgements.
    pub history: Judgement,
    /// States that the promise allows.
    pub allowed: Option<Judgement>,
}

/// A crash test's result.
#[derive(Debug, Clone, Serialize)]
pub struct CrashReport {
    /// The run that was judged.
    pub outcome: Outcome,
    /// What survives a power failure.
    pub domain: Domain,
    /// How recovery works.
    pub recovery: String,
    /// What is promised, in words.
    pub promises: Vec<String>,
    /// Why nothing that could be wrong was judged, in a sentence without a full stop: neither scheme nor
    /// program promise anything of what survives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unjudged: Option<String>,
    /// Transactions of the program.
    pub transactions: u64,
    /// Bytes of persistent memory judged.
    pub image_bytes: u64,
    /// Changes of what is durable: level A has one point more.
    pub changes: u64,
    /// Recoverable regions, where hardware commits them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regions: Option<u64>,
    /// Seed of everything drawn.
    pub seed: u64,
    /// What no single state shows.
    pub history: Judgement,
    /// Level A.
    pub actual: Option<Judgement>,
    /// Level B.
    pub allowed: Option<Judgement>,
    /// Level C.
    pub overtaking: Option<Judgement>,
    /// The hardware's recovery cut off, of a scheme of recoverable regions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub double: Option<Judgement>,
    /// What clients posted over the network, where there are some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channels: Option<Channels>,
    /// The program resumed, under a scheme of recoverable regions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<Judgement>,
    /// How output compared where a program of CPUs was resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputCounts>,
    /// The manifest's conditions.
    pub conditions: Vec<Condition>,
    /// Wall time of simulation and judgements, in s: of the host, not of the model.
    pub wall_s: [f64; 2],
}

impl CrashReport {
    /// Nothing was found, in a run that came to its end with the right result, and conditions are as the
    /// manifest says. That says something only where something was judged ([`CrashReport::unjudged`]).
    pub fn holds(&self) -> bool {
        self.ended_well()
            && self.conditions.iter().all(|condition| condition.as_expected)
            && self.judgements().all(|(_, judgement)| judgement.verdict.holds())
    }

    /// The run itself finished with the result of the functional driver.
    pub fn ended_well(&self) -> bool {
        self.outcome.end == End::Finished && self.outcome.verification.as_ref().is_some_and(|v| v.passed)
    }

    /// A judgement was stopped before its end.
    pub fn stopped(&self) -> bool {
        self.outcome.end == End::Stopped || self.judgements().any(|(_, judgement)| judgement.verdict.stopped)
    }

    /// Everything that was judged, and what it is called.
    pub fn judgements(&self) -> impl Iterator<Item = (&'static str, &Judgement)> {
        let channels = self.channels.as_ref();
        let all = [
            ("history", Some(&self.history)),
            ("level A, actual states", self.actual.as_ref()),
            ("level B, allowed states", self.allowed.as_ref()),
            ("level C, overtaking warps", self.overtaking.as_ref()),
            ("recovery cut off", self.double.as_ref()),
            ("resume", self.resume.as_ref()),
            ("verbs", channels.map(|channels| &channels.history)),
            ("verbs, allowed states", channels.and_then(|channels| channels.allowed.as_ref())),
        ];
        all.into_iter().filter_map(|(name, judgement)| Some((name, judgement?)))
    }
}
