//! How far apart two cores are just now: two threads pass a cache line to and fro. For `durawarp bench` and
//! the benches.

#![allow(clippy::disallowed_methods, reason = "measuring time is what this is for")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

/// A cache line's round trip between two threads, in ns: the median of short bursts. It changes from second
/// to second.
pub(crate) fn round_trip_ns() -> f64 {
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
