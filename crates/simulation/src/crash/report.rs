//! What a crash test reports, as plain data: a list of what was judged, each with its promises, its figures
//! and its failures in the terms of the program.
//!
//! Invariants: everything but `wall_s` and the outcome's `host` follows from the experiment and the request.
//! Serialised under the names of the fields; judgements under the names that [`Levels`] gives them.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::conditions::Condition;
use super::found::Found;
use super::output::OutputCounts;
use super::promise::Promise;
use crate::outcome::{End, Outcome};
use durawarp_oracle::verdict::Verdict;
use durawarp_persist::vocab::Domain;

/// What is judged, in the order of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JudgedLevel {
    /// What no single state shows.
    History,
    /// Level A.
    Actual,
    /// Level B.
    Allowed,
    /// Level C.
    Overtaking,
    /// Recovery by the hardware of a scheme of recoverable regions, cut off.
    CutOff,
    /// The program resumed, where hardware recovers it.
    Resumed,
    /// What clients posted over the network: changes of what is durable of it, and acknowledgements.
    Verbs,
    /// States of it that the promise allows.
    AllowedVerbs,
}

impl JudgedLevel {
    /// As a report names it.
    pub fn name(self) -> &'static str {
        match self {
            JudgedLevel::History => "history",
            JudgedLevel::Actual => "level A, actual states",
            JudgedLevel::Allowed => "level B, allowed states",
            JudgedLevel::Overtaking => "level C, overtaking warps",
            JudgedLevel::CutOff => "recovery cut off",
            JudgedLevel::Resumed => "resume",
            JudgedLevel::Verbs => "verbs",
            JudgedLevel::AllowedVerbs => "verbs, allowed states",
        }
    }
}

/// What one judgement came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// What was judged.
    #[serde(skip)]
    pub level: JudgedLevel,
    /// By what.
    #[serde(skip)]
    pub promises: Vec<Promise>,
    /// Its figures.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Its failures, with their places in the program.
    pub found: Vec<Found>,
}

impl Judgement {
    /// Without places of its failures, which the driver finds.
    pub(super) fn new(level: JudgedLevel, promises: &[Promise], verdict: Verdict) -> Judgement {
        Judgement { level, promises: promises.to_vec(), verdict, found: Vec::new() }
    }

    /// This one and that of another server. Failures stay beside what was found of them.
    fn add(&mut self, other: Judgement, keep: usize) {
        let (verdict, of) = (&mut self.verdict, other.verdict);
        verdict.points += of.points;
        verdict.distinct += of.distinct;
        verdict.judged += of.judged;
        verdict.passed += of.passed;
        verdict.left_out += of.left_out;
        verdict.failed += of.failed;
        verdict.exhaustive &= of.exhaustive;
        verdict.stopped |= of.stopped;
        verdict.failures.extend(of.failures);
        verdict.failures.truncate(keep);
        self.found.extend(other.found);
        self.found.truncate(keep);
        self.promises.extend(other.promises);
    }
}

/// What clients, and harts of other servers, posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Channels {
    /// Channels, one a client, that posted something.
    pub channels: u64,
    /// Verbs posted.
    pub verbs: u64,
    pub acknowledgements: u64,
}

/// All that was judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Levels {
    /// In the order of [`JudgedLevel`].
    pub judgements: Vec<Judgement>,
    /// What the judgements of verbs are of, where there are some.
    pub channels: Option<Channels>,
}

impl Levels {
    /// Of a history and its promises, and of states and theirs.
    pub(super) fn by_states(
        (of_history, history): (&[Promise], Verdict),
        of_states: &[Promise],
        states: Vec<(JudgedLevel, Verdict)>,
    ) -> Levels {
        let history = Judgement::new(JudgedLevel::History, of_history, history);
        let states = states.into_iter().map(|(level, verdict)| Judgement::new(level, of_states, verdict));
        Levels { judgements: [history].into_iter().chain(states).collect(), channels: None }
    }

    /// A judgement, where it was made.
    pub fn of(&self, level: JudgedLevel) -> Option<&Judgement> {
        self.judgements.iter().find(|judgement| judgement.level == level)
    }
}

impl Serialize for Levels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Posted<'a> {
            #[serde(flatten)]
            counts: Channels,
            history: Option<&'a Judgement>,
            allowed: Option<&'a Judgement>,
        }
        let mut keys = serializer.serialize_map(None)?;
        keys.serialize_entry("history", &self.of(JudgedLevel::History))?;
        keys.serialize_entry("actual", &self.of(JudgedLevel::Actual))?;
        keys.serialize_entry("allowed", &self.of(JudgedLevel::Allowed))?;
        keys.serialize_entry("overtaking", &self.of(JudgedLevel::Overtaking))?;
        if let Some(cut_off) = self.of(JudgedLevel::CutOff) {
            keys.serialize_entry("double", cut_off)?;
        }
        if let Some(counts) = self.channels {
            let [history, allowed] = [JudgedLevel::Verbs, JudgedLevel::AllowedVerbs].map(|level| self.of(level));
            keys.serialize_entry("channels", &Posted { counts, history, allowed })?;
        }
        if let Some(resumed) = self.of(JudgedLevel::Resumed) {
            keys.serialize_entry("resume", resumed)?;
        }
        keys.end()
    }
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
    /// What is promised: that by which something was judged, and sentences on what was not.
    pub promises: Vec<Promise>,
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
    /// What was judged.
    #[serde(flatten)]
    pub levels: Levels,
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
            && self.levels.judgements.iter().all(|judgement| judgement.verdict.holds())
    }

    /// This one and that of another server; the first `keep` failures of each judgement.
    pub(super) fn with(mut self, other: CrashReport, keep: usize) -> CrashReport {
        self.changes += other.changes;
        for judgement in other.levels.judgements {
            match self.levels.judgements.iter_mut().find(|own| own.level == judgement.level) {
                Some(own) => own.add(judgement, keep),
                None => self.levels.judgements.push(judgement),
            }
        }
        if let (Some(own), Some(of)) = (&mut self.levels.channels, other.levels.channels) {
            own.channels += of.channels;
            own.verbs += of.verbs;
            own.acknowledgements += of.acknowledgements;
        }
        self
    }

    /// The run itself finished with the result of the functional driver.
    pub fn ended_well(&self) -> bool {
        self.outcome.end == End::Finished && self.outcome.verification.as_ref().is_some_and(|v| v.passed)
    }

    /// Everything that was judged, and what it is called.
    pub fn judgements(&self) -> impl Iterator<Item = (&'static str, &Judgement)> {
        self.levels.judgements.iter().map(|judgement| (judgement.level.name(), judgement))
    }

    /// What came of a level, where it was judged.
    pub fn level(&self, level: JudgedLevel) -> Option<&Judgement> {
        self.levels.of(level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_written_under_the_names_of_their_keys_and_those_of_verbs_below_their_channels() {
        let all = [
            JudgedLevel::History,
            JudgedLevel::Actual,
            JudgedLevel::Allowed,
            JudgedLevel::Overtaking,
            JudgedLevel::CutOff,
            JudgedLevel::Resumed,
            JudgedLevel::Verbs,
            JudgedLevel::AllowedVerbs,
        ];
        let judgement = |(level, points)| Judgement::new(level, &[], Verdict { points, ..Verdict::default() });
        let of = |levels: &[JudgedLevel], channels| {
            let judgements = levels.iter().copied().zip(1..).map(judgement).collect();
            serde_json::to_value(Levels { judgements, channels }).unwrap()
        };
        let channels = Channels { channels: 2, verbs: 30, acknowledgements: 4 };
        let written = of(&all, Some(channels));
        for (key, points) in
            [("history", 1), ("actual", 2), ("allowed", 3), ("overtaking", 4), ("double", 5), ("resume", 6)]
        {
            assert_eq!(written[key]["points"], points, "{key}");
        }
        let posted = &written["channels"];
        assert_eq!([&posted["verbs"], &posted["history"]["points"], &posted["allowed"]["points"]], [30, 7, 8]);
        // Those that were not judged: none, or no key.
        let written = of(&all[..1], None);
        let keys: Vec<&str> = written.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["actual", "allowed", "history", "overtaking"]);
        assert!(written["actual"].is_null() && written["history"]["found"].is_array());
    }

    #[test]
    fn servers_are_added_up_and_the_first_failures_kept() {
        let of = |points, failed, stopped| {
            let verdict = Verdict { points, failed, stopped, exhaustive: true, ..Verdict::default() };
            Judgement::new(JudgedLevel::Actual, &[Promise::Values], verdict)
        };
        let mut one = of(3, 1, false);
        one.add(Judgement { promises: vec![Promise::Fences], ..of(4, 0, true) }, 8);
        assert_eq!((one.verdict.points, one.verdict.failed, one.verdict.stopped), (7, 1, true));
        assert_eq!(one.promises, [Promise::Values, Promise::Fences]);
    }
}
