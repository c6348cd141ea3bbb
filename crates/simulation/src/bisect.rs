//! Where two runs part: the first epoch, component and event in which they differ.
//!
//! ```text
//!   both runs ─ an epoch each in turn, trails compared by name ─> first epoch that differs
//!   both again ─ unwatched up to there, then every event kept ─> first event that differs
//! ```
//! The runs may be of different machines, schemes or workloads: components are known by name and times are in
//! ps. A run is compared with one of another version through a file ([`RunRecord`]), which holds trails, and
//! the events of one epoch when asked for. Invariant: runs of equal inputs never part. Left out: who sent a
//! message, which the engine's digests have.

mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use crate::outcome::End;
use crate::run::{AnyExperiment, Epochs, TracedEvent, TracedRun, Trail};

pub use record::{EpochRow, FORMAT, RecordedEvents, RunRecord};

/// Where two runs part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Parting {
    /// The first epoch that differs, and the one after it; more where it is not known which of them.
    pub epochs: (u64, u64),
    /// The component that differs first there; where no event is known, one that does.
    pub component: String,
    /// Components that differ there, or that are in one run only.
    pub differing: usize,
    /// The first event that differs, where it is known.
    pub event: Option<PartingEvent>,
}

/// The first event in which two runs differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartingEvent {
    /// How many events the component had handled in the epoch that are the same in both.
    pub before: usize,
    /// The event of each; `None` where the component handled no more in the epoch.
    pub of: [Option<TracedEvent>; 2],
}

/// How two runs compare.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bisected {
    /// All events and final states are the same: epochs and events compared.
    Equal {
        epochs: u64,
        /// Events of each.
        events: u64,
    },
    /// They part.
    Parted(Parting),
    /// All events are the same, but not the final state of a component: bytes that messages carried.
    States {
        /// The first such component.
        component: String,
    },
    /// All events are the same, but they did not end alike.
    Ends([End; 2]),
    /// It was stopped.
    Stopped,
}

/// Components that differ between two sets of trails; one that a run does not have has handled nothing.
fn differing<T: Copy + PartialEq + Default>(a: &BTreeMap<&str, T>, b: &BTreeMap<&str, T>) -> BTreeSet<String> {
    let of = |trails: &BTreeMap<&str, T>, name: &str| trails.get(name).copied().unwrap_or_default();
    let names = a.keys().chain(b.keys()).filter(|name| of(a, name) != of(b, name));
    names.map(|name| (*name).to_owned()).collect()
}

/// Values of components by name.
fn by_name<T>(names: &[String], values: Vec<T>) -> BTreeMap<&str, T> {
    names.iter().map(String::as_str).zip(values).collect()
}

/// The epochs that are simulated next, as one step. Steps grow while nothing happens: a run may wait for a
/// deadline that lies far ahead.
#[derive(Debug)]
struct Steps {
    from: u64,
    to: u64,
    events: u64,
}

impl Steps {
    /// Epochs of a step, at most.
    const MOST: u64 = 1 << 16;

    fn new() -> Self {
        Steps { from: 0, to: 1, events: 0 }
    }

    /// The step is done, after which so many events are handled.
    fn advance(&mut self, events: u64) {
        let length = if events > self.events { 1 } else { ((self.to - self.from) * 2).min(Self::MOST) };
        *self = Steps { from: self.to, to: self.to + length, events };
    }
}

/// Events of all trails.
fn events_in<'a>(trails: impl IntoIterator<Item = &'a Trail>) -> u64 {
    trails.into_iter().map(|trail| trail.events).sum()
}

/// Compares two runs.
pub fn bisect(experiments: [&AnyExperiment; 2], epochs: Epochs, stop: Option<&AtomicBool>) -> Bisected {
    let mut runs = experiments.map(|experiment| TracedRun::new(experiment, epochs, stop));
    let names = [runs[0].names(), runs[1].names()];
    let mut steps = Steps::new();
    loop {
        let go_on = runs.each_mut().map(|run| run.go_on(steps.to));
        if runs.iter().any(|run| run.end() == Some(&End::Stopped)) {
            return Bisected::Stopped;
        }
        let trails = [0, 1].map(|at| by_name(&names[at], runs[at].trails()));
        let found = differing(&trails[0], &trails[1]);
        if !found.is_empty() {
            return Bisected::Parted(parting(experiments, epochs, (steps.from, steps.to), &found, stop));
        }
        let events = events_in(trails[0].values());
        // One that ended before the other parts from it at the other's next event.
        if go_on == [false; 2] {
            steps.events = events;
            break;
        }
        steps.advance(events);
    }
    // Bytes that messages carried are in no trail, but in states.
    let states = [0, 1].map(|at| by_name(&names[at], runs[at].state()));
    let ends = runs.map(|run| run.end().cloned().unwrap_or(End::Stopped));
    match differing(&states[0], &states[1]).pop_first() {
        Some(component) => Bisected::States { component },
        None if ends[0] != ends[1] => Bisected::Ends(ends),
        None => Bisected::Equal { epochs: steps.to, events: steps.events },
    }
}

/// The first event that differs in some epochs, of components that are known to differ there.
fn parting(
    experiments: [&AnyExperiment; 2],
    epochs: Epochs,
    (from, to): (u64, u64),
    found: &BTreeSet<String>,
    stop: Option<&AtomicBool>,
) -> Parting {
    let [a, b] = experiments.map(|experiment| events_of(experiment, epochs, (from, to), stop));
    Parting::of(first_of(found, &a, &b), epochs, (from, to), found)
}

impl Parting {
    /// With the first event that differs, where it is known.
    fn of(
        first: Option<(String, PartingEvent)>,
        epochs: Epochs,
        (from, to): (u64, u64),
        found: &BTreeSet<String>,
    ) -> Parting {
        let differing = found.len();
        let Some((component, event)) = first else {
            let component = found.first().cloned().unwrap_or_default();
            return Parting { epochs: (from, to), component, differing, event: None };
        };
        let ps = event.of.iter().flatten().map(|told| told.ps).min().unwrap_or(0);
        let epoch = epochs.of_ps(ps).clamp(from, to - 1);
        Parting { epochs: (epoch, epoch + 1), component, differing, event: Some(event) }
    }
}

/// The events of every component in some epochs, by name.
pub fn events_of(
    experiment: &AnyExperiment,
    epochs: Epochs,
    (from, to): (u64, u64),
    stop: Option<&AtomicBool>,
) -> BTreeMap<String, Vec<TracedEvent>> {
    let mut run = TracedRun::told_from(experiment, epochs, from, stop);
    run.go_on(to);
    run.names().into_iter().zip(run.events()).collect()
}

/// Of these components, the event that differs first: least in time, then in name.
fn first_of(
    found: &BTreeSet<String>,
    a: &BTreeMap<String, Vec<TracedEvent>>,
    b: &BTreeMap<String, Vec<TracedEvent>>,
) -> Option<(String, PartingEvent)> {
    let none = Vec::new();
    let of = |name: &String| {
        let [own, other] = [a, b].map(|events| events.get(name).unwrap_or(&none));
        let same = |(one, two): &(&TracedEvent, &TracedEvent)| (one.ps, one.digest) == (two.ps, two.digest);
        let before = own.iter().zip(other).take_while(same).count();
        let of = [own.get(before).cloned(), other.get(before).cloned()];
        let ps = of.iter().flatten().map(|event| event.ps).min()?;
        Some((ps, name.clone(), PartingEvent { before, of }))
    };
    let (_, component, event) = found.iter().filter_map(of).min_by_key(|(ps, ..)| *ps)?;
    Some((component, event))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(ps: u64, digest: u64) -> TracedEvent {
        TracedEvent { ps, what: format!("message {digest}"), digest }
    }

    #[test]
    fn components_are_compared_by_name_and_one_that_is_missing_has_done_nothing() {
        let trail = |events| Trail { events, digest: events };
        let a = BTreeMap::from([("sm0", trail(3)), ("sm1", trail(4)), ("hub", trail(0))]);
        let b = BTreeMap::from([("sm0", trail(3)), ("sm1", trail(5)), ("sm2", trail(1))]);
        assert_eq!(differing(&a, &b), BTreeSet::from(["sm1", "sm2"].map(str::to_owned)));
    }

    #[test]
    fn steps_grow_while_nothing_happens() {
        let mut steps = Steps::new();
        let mut next = |events| {
            steps.advance(events);
            (steps.from, steps.to)
        };
        assert_eq!([5, 9, 9, 9, 12].map(&mut next), [(1, 2), (2, 3), (3, 5), (5, 9), (9, 10)]);
    }

    #[test]
    fn the_event_that_differs_first_in_time_is_told() {
        let found = BTreeSet::from(["l2", "sm0"].map(str::to_owned));
        let of = |l2: &[(u64, u64)], sm: &[(u64, u64)]| {
            let events = |all: &[(u64, u64)]| all.iter().map(|&(ps, digest)| event(ps, digest)).collect();
            BTreeMap::from([("l2".to_owned(), events(l2)), ("sm0".to_owned(), events(sm))])
        };
        let a = of(&[(10, 1), (40, 2)], &[(20, 1), (30, 2)]);
        let b = of(&[(10, 1), (40, 3)], &[(20, 1)]);
        let (component, first) = first_of(&found, &a, &b).unwrap();
        assert_eq!((component.as_str(), first.before), ("sm0", 1));
        assert_eq!(first.of, [Some(event(30, 2)), None], "the other run has no such event");
    }
}
