//! The engine's account of a run: how much work, in how many rounds, and how much of it could go side by
//! side.
//!
//! Components that are fused count as one: no number of threads parts them. Everything in [`RoundTotals`] and
//! the counts of events depend on the model only, hence are equal at every thread count and placement; the
//! other figures say how a particular run went.

use std::time::Duration;

/// The partition counts for which a bound is kept, besides "as many as components".
pub(crate) const BOUND_WORKERS: [u32; 7] = [2, 4, 8, 16, 32, 64, 128];

/// Sums over rounds; the same at every thread count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoundTotals {
    /// Rounds in which anything was handled.
    pub rounds: u64,
    /// Messages and wakes handled.
    pub events: u64,
    /// The events of the busiest component of each round, with those fused with it, summed: no number of
    /// threads needs fewer steps.
    pub critical_path: u64,
    /// For each of `BOUND_WORKERS`, what rounds need beyond `critical_path` because workers are fewer than
    /// components: events divided by workers, where that is more than the events of the busiest component.
    pub beyond: [u64; BOUND_WORKERS.len()],
}

impl RoundTotals {
    /// Counts one round.
    #[inline]
    pub(crate) fn add(&mut self, events: u64, heaviest: u64) {
        if events == 0 {
            return;
        }
        self.rounds += 1;
        self.events += events;
        self.critical_path += heaviest;
        for (i, beyond) in self.beyond.iter_mut().enumerate() {
            let share = (events + (2 << i) - 1) >> (i + 1);
            if share <= heaviest {
                break; // shares only get smaller
            }
            *beyond += share - heaviest;
        }
    }

    /// Takes in later rounds.
    pub(crate) fn merge(&mut self, later: &RoundTotals) {
        self.rounds += later.rounds;
        self.events += later.events;
        self.critical_path += later.critical_path;
        for (beyond, more) in self.beyond.iter_mut().zip(&later.beyond) {
            *beyond += more;
        }
    }
}

/// The engine's account of all runs of a simulation so far.
#[derive(Debug, Clone, Default)]
pub struct EngineStats {
    /// Sums over rounds, equal at every thread count.
    pub totals: RoundTotals,
    /// Messages handled; equal at every thread count.
    pub messages: u64,
    /// Wake-ups handled; equal at every thread count.
    pub wakes: u64,
    /// Messages that went from one partition to another.
    pub messages_across: u64,
    /// By worker: time spent waiting for other workers at the end of rounds.
    pub blocked: Vec<Duration>,
    /// The most workers that ever ran at a time.
    pub workers: usize,
    /// Rounds run by one worker, because there was one, or because more did not pay.
    pub solo_rounds: u64,
    /// How often the run fell back from several workers to one.
    pub fallbacks: u64,
    /// How often partitions were formed anew from measured costs.
    pub rebalances: u64,
    /// Components moved by that.
    pub migrations: u64,
}

impl EngineStats {
    /// Messages and wakes handled.
    pub fn events(&self) -> u64 {
        self.messages + self.wakes
    }

    /// Mean events a round: below about 1000 of 50 ns each, a second thread gains little.
    pub fn mean_events_per_round(&self) -> f64 {
        ratio(self.totals.events, self.totals.rounds)
    }

    /// Total work over critical path, in events: the speedup with a thread for each component and free
    /// barriers.
    pub fn parallelism(&self) -> f64 {
        ratio(self.totals.events, self.totals.critical_path)
    }

    /// The speedup that `workers` threads could reach at best, in events; exact for `BOUND_WORKERS`, else a
    /// bound of these.
    pub fn speedup_bound(&self, workers: u32) -> f64 {
        if workers <= 1 {
            return 1.0;
        }
        let bound = BOUND_WORKERS.iter().position(|&known| known >= workers);
        let path = self.totals.critical_path + bound.map_or(0, |i| self.totals.beyond[i]);
        ratio(self.totals.events, path).min(f64::from(workers))
    }
}

fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_work_over_the_longest_share() {
        let mut totals = RoundTotals::default();
        totals.add(100, 10); // two workers: 50 each; 16 workers: the busiest component's 10
        totals.add(7, 1); // two workers: 4
        totals.add(0, 0); // not a round
        assert_eq!((totals.rounds, totals.events, totals.critical_path), (2, 107, 11));
        assert_eq!(totals.beyond[..4], [54 - 11, 27 - 11, 14 - 11, 0]);
        let stats = EngineStats { totals, ..EngineStats::default() };
        assert_eq!(stats.speedup_bound(1), 1.0);
        assert_eq!(stats.speedup_bound(2), 107.0 / 54.0);
        assert_eq!((stats.speedup_bound(3), stats.speedup_bound(4)), (3.0, 107.0 / 27.0));
        assert_eq!(stats.speedup_bound(1000), stats.parallelism());
    }

    #[test]
    fn nothing_done_bounds_nothing() {
        assert_eq!(EngineStats::default().speedup_bound(4), 0.0);
        assert_eq!(EngineStats::default().mean_events_per_round(), 0.0);
    }
}
