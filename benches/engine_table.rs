//! The engine's headline figures in one table, in under a minute: `cargo bench --bench engine_table`.

#[path = "engine_models/phold.rs"]
mod phold;
#[path = "engine_models/ticks.rs"]
mod ticks;

use std::time::Instant;

use durawarp::engine::{Message, RunOptions, Simulation};
use phold::Phold;
use ticks::Ticks;

fn rate<M: Message>(build: impl Fn() -> Simulation<M>, options: &RunOptions<'_>, times: usize) -> (f64, u64, f64) {
    let mut best = 0.0f64;
    let mut digest = 0;
    let mut mean = 0.0;
    for _ in 0..times {
        let mut simulation = build();
        let since = Instant::now();
        simulation.run(options);
        let rate = simulation.stats().events() as f64 / since.elapsed().as_secs_f64() / 1e6;
        best = best.max(rate);
        digest = simulation.digest();
        mean = simulation.stats().mean_events_per_round();
    }
    (best, digest, mean)
}

fn main() {
    let one = RunOptions::default();
    let only = std::env::args().nth(1).unwrap_or_default();
    for (name, p) in [
        (
            "phold 32x16 r.5",
            Phold {
                components: 32,
                each: 16,
                remote: 512,
                work: 0,
                heavy: 0,
                until: 4_000_000,
            },
        ),
        (
            "phold 32x16 r.1",
            Phold {
                components: 32,
                each: 16,
                remote: 102,
                work: 0,
                heavy: 0,
                until: 4_000_000,
            },
        ),
        (
            "phold 32x512 r.5",
            Phold {
                components: 32,
                each: 512,
                remote: 512,
                work: 0,
                heavy: 0,
                until: 200_000,
            },
        ),
        (
            "phold 1024x16 r.5",
            Phold {
                components: 1024,
                each: 16,
                remote: 512,
                work: 0,
                heavy: 0,
                until: 200_000,
            },
        ),
        (
            "phold 16384x1 r.5",
            Phold {
                components: 16384,
                each: 1,
                remote: 512,
                work: 0,
                heavy: 0,
                until: 200_000,
            },
        ),
        (
            "phold 16384x16 r.5",
            Phold {
                components: 16384,
                each: 16,
                remote: 512,
                work: 0,
                heavy: 0,
                until: 12_000,
            },
        ),
    ] {
        if !name.contains(only.trim_start_matches("--bench")) {
            continue;
        }
        let (rate, digest, mean) = rate(|| p.simulation(), &one, 3);
        println!(
            "{name:24} {rate:8.1} M/s  {:6.1} ns  {mean:8.0} ev/round {digest:016x}",
            1e3 / rate
        );
    }
    for (name, t) in [
        (
            "ticks 32+8 W120",
            Ticks {
                cores: 32,
                slices: 8,
                latency: 120,
                work: 0,
                until: 2_000_000,
            },
        ),
        (
            "ticks 32+8 W1400",
            Ticks {
                cores: 32,
                slices: 8,
                latency: 1400,
                work: 0,
                until: 2_000_000,
            },
        ),
        (
            "ticks 32+8 W14",
            Ticks {
                cores: 32,
                slices: 8,
                latency: 14,
                work: 0,
                until: 2_000_000,
            },
        ),
    ] {
        if !name.contains(only.trim_start_matches("--bench")) {
            continue;
        }
        let (rate, digest, mean) = rate(|| t.simulation(), &one, 3);
        println!(
            "{name:24} {rate:8.1} M/s  {:6.1} ns  {mean:8.0} ev/round {digest:016x}",
            1e3 / rate
        );
    }
}
