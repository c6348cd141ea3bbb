//! Measuring runs on a noisy machine: best of several, taking turns.

#![allow(clippy::disallowed_methods, reason = "measuring time is what this is for")]

use std::time::Instant;

use durawarp::engine::{Message, RoundTotals, RunOptions, Simulation};

/// The best of several runs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Best {
    /// Million events a second.
    pub(crate) rate: f64,
    pub(crate) digest: u64,
    pub(crate) totals: RoundTotals,
}

/// Runs it once.
pub(crate) fn once<M: Message>(build: &dyn Fn() -> Simulation<M>, options: &RunOptions<'_>) -> Best {
    let mut simulation = build();
    let since = Instant::now();
    simulation.run(options);
    let elapsed = since.elapsed().as_secs_f64();
    let stats = simulation.stats();
    Best { rate: stats.events() as f64 / elapsed / 1e6, digest: simulation.digest(), totals: stats.totals }
}

/// Runs every kind `times` times, taking turns, so that a slow spell of the machine meets all of them.
pub(crate) fn in_turns<M: Message, const N: usize>(
    build: &dyn Fn() -> Simulation<M>,
    kinds: &[RunOptions<'_>; N],
    times: usize,
) -> [Best; N] {
    let mut best = [Best::default(); N];
    for _ in 0..times {
        for (best, options) in best.iter_mut().zip(kinds) {
            let run = once(build, options);
            if run.rate > best.rate {
                *best = run;
            }
        }
    }
    assert!(best.iter().all(|one| one.digest == best[0].digest), "two ways of running gave two results");
    best
}
