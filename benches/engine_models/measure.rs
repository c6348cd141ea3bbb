//! Measuring runs on a noisy machine: best of several, and how far apart the two cores are just now.

#![allow(clippy::disallowed_methods, reason = "measuring time is what this is for")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
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

/// A cache line's round trip between two threads, in ns: the median of short bursts. It changes from second to second.
pub(crate) fn ping_pong() -> f64 {
    const TRIPS: u64 = 2000;
    let ball = AtomicU64::new(0);
    let mut bursts: Vec<f64> = thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0..TRIPS * 9 {
                wait(&ball, 2 * i + 1);
                ball.store(2 * i + 2, Ordering::Release);
            }
        });
        (0..9)
            .map(|burst| {
                let since = Instant::now();
                for i in burst * TRIPS..(burst + 1) * TRIPS {
                    ball.store(2 * i + 1, Ordering::Release);
                    wait(&ball, 2 * i + 2);
                }
                since.elapsed().as_nanos() as f64 / TRIPS as f64
            })
            .collect()
    });
    bursts.sort_by(f64::total_cmp);
    bursts[bursts.len() / 2]
}

fn wait(ball: &AtomicU64, value: u64) {
    let mut spins = 0u32;
    while ball.load(Ordering::Acquire) != value {
        std::hint::spin_loop();
        spins += 1;
        if spins.is_multiple_of(10_000) {
            thread::yield_now();
        }
    }
}
