//! The engine's headline figures in one table, in under a minute: `cargo bench --bench engine_table [part of a name]`.
//!
//! Everything goes through the public API, with digests and statistics on. Rates are the best of several runs that take
//! turns; beside every parallel figure stand the round trip between the cores (it changes from second to second), the
//! bound that the model's imbalance sets, and the bound N / ceil(N / P) of N equal components on P threads.

#[path = "../src/allocator.rs"]
mod allocator;
#[path = "engine_models/measure.rs"]
mod measure;
#[path = "../crates/engine/examples/phold.rs"]
#[allow(dead_code, reason = "an example has more than its model")]
mod phold;
#[path = "../src/cli/bench/round_trip.rs"]
mod round_trip;
#[path = "engine_models/ticks.rs"]
mod ticks;

use durawarp::engine::{EngineStats, Fallback, Message, Placement, Rebalance, RunOptions, Simulation};
use measure::in_turns;
use phold::Phold;
use round_trip::round_trip_ns;
use ticks::Ticks;

fn one_core<M: Message>(name: &str, target: f64, build: &dyn Fn() -> Simulation<M>) {
    if !wanted(name) {
        return;
    }
    let [best] = in_turns(build, &[RunOptions::default()], 3);
    let per_round = best.totals.events as f64 / best.totals.rounds as f64;
    let target = if target > 0.0 { format!(">= {target:.0}") } else { String::new() };
    println!("{name:34} {:7.1} M/s {:6.1} ns {per_round:9.0} ev/round   target {target}", best.rate, 1e3 / best.rate);
}

fn two_threads<M: Message>(name: &str, components: u64, target: &str, build: &dyn Fn() -> Simulation<M>) {
    if !wanted(name) {
        return;
    }
    let crew = RunOptions { threads: 2, fallback: Fallback::Never, ..RunOptions::default() };
    let free = RunOptions { threads: 2, ..RunOptions::default() };
    let fixed = RunOptions { placement: Placement::Blocks, rebalance: Rebalance::Never, ..crew.clone() };
    let trip = round_trip_ns();
    let [one, fixed, crew, free] = in_turns(build, &[RunOptions::default(), fixed, crew, free], 5);
    let stats = EngineStats { totals: one.totals, ..EngineStats::default() };
    println!(
        "{name:34} {:7.1} M/s | fixed {:4.2}x  crew {:4.2}x  free {:4.2}x | {:6.0} ev/round  bound {:4.2}  N/ceil(N/P) {:4.2}  trip {trip:4.0} ns | target {target}",
        one.rate,
        fixed.rate / one.rate,
        crew.rate / one.rate,
        free.rate / one.rate,
        stats.mean_events_per_round(),
        stats.speedup_bound(2),
        components as f64 / components.div_ceil(2) as f64,
    );
}

fn wanted(name: &str) -> bool {
    let mut filters = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).peekable();
    filters.peek().is_none() || filters.any(|filter| name.contains(&filter))
}

fn main() {
    let phold = |components, each, remote, work, until| Phold { components, each, remote, work, heavy: 0, until };
    let ticks = |latency, work, until| Ticks { cores: 32, slices: 8, latency, work, until };
    println!("One thread");
    for (name, target, p) in [
        ("PHOLD 32 x 16, remote .1", 25.0, phold(32, 16, 102, 0, 4_000_000)),
        ("PHOLD 32 x 16, remote .5", 25.0, phold(32, 16, 512, 0, 4_000_000)),
        ("PHOLD 32 x 16, remote 1", 25.0, phold(32, 16, 1024, 0, 4_000_000)),
        ("PHOLD 32 x 512, remote .5", 18.0, phold(32, 512, 512, 0, 200_000)),
        ("PHOLD 1024 x 16, remote .5", 18.0, phold(1024, 16, 512, 0, 200_000)),
        ("PHOLD 16384 x 1, remote .5", 0.0, phold(16384, 1, 512, 0, 100_000)),
        ("PHOLD 16384 x 16, remote .5", 7.0, phold(16384, 16, 512, 0, 8_000)),
    ] {
        one_core(name, target, &|| p.simulation());
    }
    one_core("GPU ticks 32 + 8, latency 120", 50.0, &|| ticks(120, 0, 3_000_000).simulation());
    one_core("GPU ticks 32 + 8, latency 1400", 50.0, &|| ticks(1400, 0, 3_000_000).simulation());
    println!("\nTwo threads against one: fixed halves; crew: kept busy, moving; free: may fall back to one");
    for (name, target, p) in [
        ("PHOLD 32 x 512, no work", "", phold(32, 512, 512, 0, 400_000)),
        ("PHOLD 32 x 160, 50 ns", "crew >= 1.8", phold(32, 160, 512, 38, 400_000)),
        ("PHOLD 32 x 512, 50 ns", "crew >= 1.8", phold(32, 512, 512, 38, 150_000)),
        ("PHOLD 1024 x 16, 50 ns", "crew >= 1.8", phold(1024, 16, 512, 38, 150_000)),
        ("PHOLD 32 x 16, 200 ns (100 ev/round)", "crew >= 1.75", phold(32, 16, 512, 154, 1_500_000)),
    ] {
        two_threads(name, p.components, target, &|| p.simulation());
    }
    let skew = Phold { components: 64, each: 80, remote: 512, work: 76, heavy: 1, until: 300_000 };
    two_threads("skew: 8x on 1/8 of 64 LPs", 64, "crew >= 1.9", &|| skew.simulation());
    two_threads("GPU ticks 32 + 8, latency 1400", 40, "", &|| ticks(1400, 0, 4_000_000).simulation());
    two_threads("GPU ticks, latency 1400, 50 ns", 40, "crew >= 1.8", &|| ticks(1400, 38, 2_000_000).simulation());
    for (name, p) in [
        ("tiny: PHOLD 8 x 1 (2 ev/round)", phold(8, 1, 512, 0, 60_000_000)),
        ("tiny: PHOLD 16 x 3 (10 ev/round)", phold(16, 3, 512, 0, 20_000_000)),
    ] {
        two_threads(name, p.components, "free >= 0.9", &|| p.simulation());
    }
    two_threads("tiny: GPU ticks, latency 14", 40, "free >= 0.9", &|| ticks(14, 0, 1_500_000).simulation());
}
