//! What a run did, epoch by epoch, as a file: for a comparison with a run of another version of the
//! simulator.
//!
//! JSON. Only components that handled something in an epoch are in its row. The digests are those of
//! [`Trail`]: they hold what [`Message::digest`](durawarp_engine::Message::digest) makes of messages, which a
//! version may change; then all runs part at their first event, and the words of the events are what is left
//! to compare.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::{Bisected, Parting, Steps, events_in, events_of, first_of};
use crate::outcome::End;
use crate::run::{AnyExperiment, Epochs, TracedEvent, TracedRun, Trail};

/// Version of the file; raised when a field changes its meaning or goes.
pub const FORMAT: u32 = 1;

/// What a run did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`FORMAT`] of the program that wrote it.
    pub format: u32,
    /// Version of the simulator.
    pub version: String,
    /// What ran, in words.
    pub title: String,
    pub epochs: Epochs,
    /// Names of the components.
    pub components: Vec<String>,
    /// Stretches of epochs in which anything happened, in order.
    pub rows: Vec<EpochRow>,
    /// Events of one epoch, where they were asked for.
    pub events: Option<RecordedEvents>,
    /// Components' final states, in the order of the names.
    pub states: Vec<u64>,
}

/// What happened in an epoch, or in some of which all but one may be idle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochRow {
    /// The first epoch.
    pub from: u64,
    /// The first epoch after it.
    pub to: u64,
    /// Components that handled something, by their place among the names: events so far, and the digest of
    /// their trails.
    pub trails: Vec<(usize, u64, u64)>,
}

/// Events of one epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedEvents {
    /// Its number.
    pub epoch: u64,
    /// Its events, by component.
    pub of: BTreeMap<String, Vec<TracedEvent>>,
}

impl RunRecord {
    /// Runs an experiment and records it; `None` when it was stopped. The events of `told` are kept.
    pub fn of(
        experiment: &AnyExperiment,
        title: String,
        epochs: Epochs,
        told: Option<u64>,
        stop: Option<&AtomicBool>,
    ) -> Option<RunRecord> {
        let mut run = TracedRun::new(experiment, epochs, stop);
        let components = run.names();
        let (mut rows, mut before) = (Vec::new(), vec![Trail::default(); components.len()]);
        let mut steps = Steps::new();
        loop {
            let goes_on = run.go_on(steps.to);
            let trails = run.trails();
            // Most components are idle in most epochs: only those that were not are kept.
            let changed = trails.iter().zip(&before).enumerate().filter(|(_, (now, before))| now != before);
            let trails_now: Vec<_> = changed.map(|(at, (now, _))| (at, now.events, now.digest)).collect();
            if !trails_now.is_empty() {
                rows.push(EpochRow { from: steps.from, to: steps.to, trails: trails_now });
            }
            if !goes_on {
                break;
            }
            steps.advance(events_in(&trails));
            before = trails;
        }
        if run.end() == Some(&End::Stopped) {
            return None;
        }
        // The run is over, and events are kept by another one that begins at their epoch.
        let events = told.map(|epoch| {
            let to = rows.iter().find(|row| row.from == epoch).map_or(epoch + 1, |row| row.to);
            RecordedEvents { epoch, of: events_of(experiment, epochs, (epoch, to), stop) }
        });
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Some(RunRecord { format: FORMAT, version, title, epochs, components, rows, events, states: run.state() })
    }

    /// Compares the run with another; events where both have those of the epoch in which they part.
    pub fn compare(&self, other: &RunRecord) -> Bisected {
        let [mut own, mut others] = [self, other].map(|record| record.rows.iter().peekable());
        let mut trails = [BTreeMap::new(), BTreeMap::new()];
        loop {
            let epoch = match (own.peek(), others.peek()) {
                (None, None) => break,
                (Some(a), Some(b)) => a.from.min(b.from),
                (Some(row), None) | (None, Some(row)) => row.from,
            };
            // A run without a row there has done nothing since its last one.
            let rows = [own.next_if(|row| row.from == epoch), others.next_if(|row| row.from == epoch)];
            let to = rows.iter().flatten().map(|row| row.to).max().unwrap_or(epoch + 1);
            for ((record, row), trails) in [self, other].into_iter().zip(rows).zip(&mut trails) {
                for &(at, events, digest) in row.into_iter().flat_map(|row| &row.trails) {
                    let name = record.components.get(at).map_or("?", String::as_str);
                    trails.insert(name, Trail { events, digest });
                }
            }
            let found = super::differing(&trails[0], &trails[1]);
            if !found.is_empty() {
                let told = |record: &'_ RunRecord| Some(record.events.clone()?).filter(|events| events.epoch == epoch);
                let events = told(self).zip(told(other));
                let first = events.and_then(|(own, others)| first_of(&found, &own.of, &others.of));
                return Bisected::Parted(Parting::of(first, self.epochs, (epoch, to), &found));
            }
        }
        // Bytes that messages carried are in no trail, but in states.
        let states = [self, other].map(|record| super::by_name(&record.components, record.states.clone()));
        match super::differing(&states[0], &states[1]).pop_first() {
            Some(component) => Bisected::States { component },
            None => {
                let epochs = self.rows.last().map_or(0, |row| row.to);
                Bisected::Equal { epochs, events: events_in(trails[0].values()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A component, its events, its digest.
    type Handled = (usize, u64, u64);

    fn record(rows: &[(u64, &[Handled])]) -> RunRecord {
        RunRecord {
            format: FORMAT,
            version: "1".to_owned(),
            title: "a run".to_owned(),
            epochs: Epochs { ticks: 10, tick_khz: 1_000_000 },
            components: ["sm0", "sm1"].map(str::to_owned).to_vec(),
            rows: rows.iter().map(|&(from, row)| EpochRow { from, to: from + 1, trails: row.to_vec() }).collect(),
            events: None,
            states: vec![7, 8],
        }
    }

    #[test]
    fn a_record_parts_from_another_in_the_first_epoch_that_differs() {
        let a = record(&[(0, &[(0, 1, 11)]), (4, &[(1, 2, 22)])]);
        assert_eq!(a.compare(&a), Bisected::Equal { epochs: 5, events: 3 });
        // The same event, two epochs before.
        let b = record(&[(0, &[(0, 1, 11)]), (2, &[(1, 2, 22)])]);
        let Bisected::Parted(found) = a.compare(&b) else { panic!("they differ") };
        assert_eq!((found.epochs, found.component.as_str(), found.differing), ((2, 3), "sm1", 1));
        let other_state = RunRecord { states: vec![7, 9], ..a.clone() };
        assert_eq!(a.compare(&other_state), Bisected::States { component: "sm1".to_owned() });
    }

    #[test]
    fn events_of_the_epoch_tell_which_one_differs() {
        let told = |digest| {
            let event = TracedEvent { ps: 40_000, what: "Cta(3)".to_owned(), digest };
            Some(RecordedEvents { epoch: 4, of: BTreeMap::from([("sm1".to_owned(), vec![event])]) })
        };
        let of = |digest| RunRecord { events: told(digest), ..record(&[(4, &[(1, 1, digest)])]) };
        let Bisected::Parted(found) = of(5).compare(&of(6)) else { panic!("they differ") };
        let event = found.event.unwrap();
        assert_eq!((event.before, event.of.map(|of| of.unwrap().digest)), (0, [5, 6]));
    }
}
