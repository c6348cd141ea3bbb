//! The proof behind "same inputs, same bits": one experiment run in several ways, compared epoch by epoch.
//!
//! The reference is the sequential driver. Every other way (threads, placements, forced moves of components
//! between threads) must give the same digest of every component at the end of every epoch, the same final
//! memory and the same counters. A difference is told by its first epoch and component, which is where to
//! look for the fault.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::outcome::{End, Outcome};
use crate::run::{AnyExperiment, Conduct, Finished};
use durawarp_engine::{EpochDigests, Fallback, Placement, Rebalance, first_difference};

/// One way to run an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// Threads; 1 is the sequential driver.
    pub threads: usize,
    /// Where components start.
    pub placement: Placement,
    /// When components move.
    pub rebalance: Rebalance,
}

/// A way, and how it compares with the reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    pub way: Way,
    /// Digest of the run.
    pub digest: String,
    /// The first difference; `None` when all is equal.
    pub difference: Option<String>,
}

impl Way {
    /// The reference: the sequential driver.
    pub const REFERENCE: Way = Way { threads: 1, placement: Placement::Auto, rebalance: Rebalance::Measured };

    /// The ways to check at `threads`: with one thread the reference once more; with more, measured
    /// placement, in turns, two shuffles, and components that move at random.
    pub fn at(threads: usize) -> Vec<Way> {
        let way = |placement, rebalance| Way { threads, placement, rebalance };
        if threads <= 1 {
            return vec![Way { threads: 1, ..Way::REFERENCE }];
        }
        vec![
            way(Placement::Auto, Rebalance::Measured),
            way(Placement::RoundRobin, Rebalance::Never),
            way(Placement::Shuffled(1), Rebalance::Never),
            way(Placement::Shuffled(2), Rebalance::Never),
            way(Placement::Shuffled(3), Rebalance::Forced { rounds: 16 }),
        ]
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let placement = match &self.placement {
            Placement::Auto => "measured placement".to_owned(),
            Placement::Blocks => "blocks".to_owned(),
            Placement::RoundRobin => "in turns".to_owned(),
            Placement::Shuffled(seed) => format!("shuffle {seed}"),
            Placement::Explicit(_) => "given placement".to_owned(),
        };
        let moves = match self.rebalance {
            Rebalance::Forced { rounds } => format!(", moved every {rounds} rounds"),
            _ => String::new(),
        };
        write!(f, "{} thread{}, {placement}{moves}", self.threads, if self.threads == 1 { "" } else { "s" })
    }
}

/// Runs the experiment one way, keeping digests every `epoch_cycles` core cycles.
pub fn run_one(experiment: &AnyExperiment, way: &Way, epoch_cycles: u64, stop: Option<&AtomicBool>) -> Finished {
    let conduct = Conduct {
        threads: way.threads,
        oversubscribe: true,
        placement: way.placement.clone(),
        rebalance: way.rebalance,
        // What is to be checked is the threads, also where they do not pay.
        fallback: Fallback::Never,
        epoch_cycles: Some(epoch_cycles),
        stop,
        ..Conduct::default()
    };
    experiment.run(&conduct)
}

/// Runs the experiment in every way and compares each with `reference`. `told` hears of each comparison as it
/// is made. Ends early when `stop` is set.
pub fn compare_all(
    experiment: &AnyExperiment,
    reference: &Finished,
    ways: &[Way],
    epoch_cycles: u64,
    stop: Option<&AtomicBool>,
    mut told: impl FnMut(&Compared),
) -> Vec<Compared> {
    let mut all = Vec::new();
    // The reference has the verdict on the memory; the others must have its memory.
    let unverified = experiment.clone().with_reference(false);
    for way in ways {
        let other = run_one(&unverified, way, epoch_cycles, stop);
        if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            break;
        }
        let difference = difference(reference, &other, epoch_cycles);
        let compared = Compared { way: way.clone(), digest: other.outcome.digest, difference };
        told(&compared);
        all.push(compared);
    }
    all
}

/// The first thing in which two finished runs differ, in words.
pub fn difference(a: &Finished, b: &Finished, epoch_cycles: u64) -> Option<String> {
    let epochs = match (&a.epochs, &b.epochs) {
        (Some(x), Some(y)) => first_epoch(x, y, &a.components, epoch_cycles),
        _ => None,
    };
    epochs.or_else(|| in_outcomes(&a.outcome, &b.outcome))
}

fn first_epoch(a: &EpochDigests, b: &EpochDigests, names: &[String], epoch_cycles: u64) -> Option<String> {
    let (epoch, id) = first_difference(a, b)?;
    let unknown = String::new();
    let name = names.get(id.0 as usize).unwrap_or(&unknown);
    let (from, to) = (epoch * epoch_cycles, (epoch + 1) * epoch_cycles);
    Some(format!("first differs in epoch {epoch} (core cycles {from} to {to}) at component {id} `{name}`"))
}

fn in_outcomes(a: &Outcome, b: &Outcome) -> Option<String> {
    if let (End::Panicked { message }, _) | (_, End::Panicked { message }) = (&a.end, &b.end) {
        return Some(format!("the simulator failed: {message}"));
    }
    if a.end != b.end {
        return Some(format!("one run ended with \"{}\", the other with \"{}\"", a.end, b.end));
    }
    for (x, y) in a.counters.iter().zip(&b.counters) {
        for (index, (row, other)) in x.rows.iter().zip(&y.rows).enumerate() {
            if let Some(column) = (0..row.len()).find(|&c| row[c] != other[c]) {
                let (kind, name) = (&x.kind, &x.names[column]);
                return Some(format!("{kind}{index}: counter {name} is {} and {}", row[column], other[column]));
            }
        }
    }
    let pairs = [
        ("simulated time", a.time.ticks.to_string(), b.time.ticks.to_string()),
        ("final memory", a.memory_digest.clone(), b.memory_digest.clone()),
        ("digest", a.digest.clone(), b.digest.clone()),
        ("number of events", a.engine.events.to_string(), b.engine.events.to_string()),
        ("number of rounds", a.engine.rounds.to_string(), b.engine.rounds.to_string()),
    ];
    pairs.into_iter().find(|(_, x, y)| x != y).map(|(what, x, y)| format!("{what} differs: {x} and {y}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_its_first_epoch_and_component() {
        let names = ["sm0", "sm1"].map(str::to_owned);
        let of = |rows: &[[u64; 2]]| {
            let mut epochs = EpochDigests::new(100);
            for (epoch, row) in rows.iter().enumerate() {
                epochs.record(epoch as u64, row.to_vec());
            }
            epochs
        };
        let a = of(&[[1, 2], [3, 4], [5, 6]]);
        assert_eq!(first_epoch(&a, &a, &names, 1000), None);
        let b = of(&[[1, 2], [3, 9], [7, 8]]);
        let told = first_epoch(&a, &b, &names, 1000).unwrap();
        assert_eq!(told, "first differs in epoch 1 (core cycles 1000 to 2000) at component #1 `sm1`");
    }

    #[test]
    fn every_thread_count_but_one_is_tried_in_five_ways() {
        assert_eq!(Way::at(1), [Way::REFERENCE]);
        let ways = Way::at(3);
        assert_eq!(ways.len(), 5);
        assert_eq!(ways[0].to_string(), "3 threads, measured placement");
        assert_eq!(ways[4].to_string(), "3 threads, shuffle 3, moved every 16 rounds");
    }
}
