//! How a run's counters grew, and the rates that follow: a point a look, and when there are too many, every
//! second of them.

use durawarp::run::{LiveCounts, LiveState};
use serde::Serialize;

/// Points that are kept, at most.
const POINTS: usize = 240;

#[derive(Debug, Clone, Copy)]
struct Look {
    core_cycles: u64,
    simulated_ps: u64,
    counts: LiveCounts,
}

/// Counters over simulated time, from 0 on.
#[derive(Debug, Default)]
pub(super) struct History {
    points: Vec<Look>,
}

/// What happened between two points, one value each.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Rates {
    /// Where each stretch ends (core cycles).
    core_cycles: Vec<u64>,
    /// Instructions a core cycle.
    ipc: Vec<f64>,
    /// Moved to and from DRAM (GB/s).
    dram_gb_per_s: Vec<f64>,
    /// The same of NVM (GB/s).
    nvm_gb_per_s: Vec<f64>,
    /// Loads that hit the first-level caches (percent).
    l1_hits_percent: Vec<f64>,
    /// Reads that hit the shared cache (percent).
    l2_hits_percent: Vec<f64>,
}

impl History {
    /// A look, later than the last; one at the same simulated time replaces it.
    pub(super) fn add(&mut self, state: &LiveState) {
        let LiveState { core_cycles, simulated_ps, counts, .. } = *state;
        if self.points.last().is_some_and(|last| last.core_cycles == core_cycles) {
            self.points.pop();
        }
        if self.points.len() == POINTS {
            // The later of two stays, so that what happened before it is all in one stretch.
            let mut at = 0;
            self.points.retain(|_| {
                at += 1;
                at % 2 == 0
            });
        }
        self.points.push(Look { core_cycles, simulated_ps, counts });
    }

    /// Rates from point to point.
    pub(super) fn rates(&self) -> Rates {
        let mut rates = Rates::default();
        let mut before = Look { core_cycles: 0, simulated_ps: 0, counts: LiveCounts::default() };
        for &point in &self.points {
            let (was, is) = (&before.counts, &point.counts);
            let seconds = point.simulated_ps.saturating_sub(before.simulated_ps) as f64 * 1e-12;
            let moved = |was: u64, is: u64| ratio((is - was) as f64 * 1e-9, seconds);
            // A miss may be found after the stretch of its load: hits may have become fewer.
            let hits = |was: (u64, u64), is: (u64, u64)| {
                ratio(100.0 * is.1.saturating_sub(was.1) as f64, (is.0 - was.0) as f64)
            };
            rates.core_cycles.push(point.core_cycles);
            let cycles = (point.core_cycles - before.core_cycles) as f64;
            rates.ipc.push(ratio((is.instructions - was.instructions) as f64, cycles));
            rates.dram_gb_per_s.push(moved(was.dram_bytes, is.dram_bytes));
            rates.nvm_gb_per_s.push(moved(was.nvm_bytes, is.nvm_bytes));
            rates.l1_hits_percent.push(hits((was.l1_loads, was.l1_hits), (is.l1_loads, is.l1_hits)));
            rates.l2_hits_percent.push(hits((was.l2_reads, was.l2_hits), (is.l2_reads, is.l2_hits)));
            before = point;
        }
        rates
    }
}

/// To three decimals; 0 over nothing.
fn ratio(amount: f64, over: f64) -> f64 {
    if over == 0.0 { 0.0 } else { (amount / over * 1000.0).round() / 1000.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(core_cycles: u64, instructions: u64, nvm_bytes: u64) -> LiveState {
        let counts = LiveCounts {
            instructions,
            nvm_bytes,
            l1_loads: 2 * instructions,
            l1_hits: instructions,
            ..LiveCounts::default()
        };
        LiveState { core_cycles, simulated_ps: 1000 * core_cycles, counts, ..LiveState::default() }
    }

    #[test]
    fn rates_are_what_grew_between_two_looks() {
        let mut history = History::default();
        for state in [look(100, 50, 0), look(300, 250, 1000), look(300, 450, 2000)] {
            history.add(&state);
        }
        let rates = history.rates();
        assert_eq!((&rates.core_cycles[..], &rates.ipc[..]), (&[100, 300][..], &[0.5, 2.0][..]));
        // 2,000 bytes in 200 ns.
        assert_eq!((&rates.nvm_gb_per_s[..], &rates.l1_hits_percent[..]), (&[0.0, 10.0][..], &[50.0, 50.0][..]));
        assert_eq!(rates.l2_hits_percent, [0.0, 0.0]);
    }

    #[test]
    fn a_long_run_keeps_few_points_and_loses_no_count() {
        let mut history = History::default();
        (1..=10_000).for_each(|at| history.add(&look(10 * at, 7 * at, 0)));
        let rates = history.rates();
        assert!((POINTS / 2..=POINTS).contains(&rates.ipc.len()));
        assert_eq!(rates.core_cycles.last(), Some(&100_000));
        assert!(rates.ipc.iter().all(|&ipc| ipc == 0.7), "{:?}", rates.ipc);
    }
}
