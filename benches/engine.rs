//! The engine under criterion: `cargo bench --bench engine [part of a name]`. Elements are events, all through the public
//! API with digests and statistics on; `benches/engine_table.rs` prints the headline figures in one table instead.
//!
//! * `hold/N`: the pending-event set: one component with N events to itself, each making the next.
//! * `phold/L/R/T`: L logical processes of 16 events, R of 1024 events go to another, T threads.
//! * `batches/T`: nearly all events cross partitions, hardly any work: what handing over messages costs.
//! * `ticks/T`, `skew/T`: a load shaped like a GPU; one component in eight with eight times the work.
//! * `handover/W/N`: two threads that hand over N events each a round, by swapping batches or over a channel; elements are
//!   rounds.

#[path = "../src/allocator.rs"]
mod allocator;
#[path = "engine_models/handover.rs"]
mod handover;
#[path = "../crates/engine/examples/phold.rs"]
#[allow(dead_code, reason = "an example has more than its model")]
mod phold;
#[path = "engine_models/ticks.rs"]
mod ticks;

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use durawarp::engine::{Message, RunOptions, Simulation};
use handover::{Way, hand_over};
use phold::Phold;
use ticks::Ticks;

/// Measures runs of what `build` makes, in events.
fn runs<M: Message>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    threads: usize,
    build: impl Fn() -> Simulation<M>,
) {
    let options = RunOptions { threads, ..RunOptions::default() };
    let mut once = build();
    once.run(&options);
    group.throughput(Throughput::Elements(once.stats().events()));
    group.bench_function(name, |bencher| {
        bencher.iter_batched_ref(&build, |simulation| simulation.run(&options), BatchSize::PerIteration);
    });
}

fn engine(c: &mut Criterion) {
    let mut group = c.benchmark_group("engine");
    group.sample_size(10);
    let phold = |components: u64, each: u64, remote: u64, work: u32, heavy: u64, events: u64| {
        // An event is followed by another after 500 ticks in the mean.
        let until = (events * 500 / (components * each)).max(1000);
        Phold { components, each, remote, work, heavy, until }
    };
    for pending in [16, 512, 16_384, 1 << 20] {
        let model = phold(1, pending, 0, 0, 0, 2_000_000);
        runs(&mut group, &format!("hold/{pending}"), 1, || model.simulation());
    }
    for components in [32, 1024, 16_384] {
        for remote in [102, 512, 1024] {
            for threads in [1, 2] {
                let model = phold(components, 16, remote, 0, 0, 2_000_000);
                runs(&mut group, &format!("phold/{components}/{remote}/{threads}"), threads, || model.simulation());
            }
        }
    }
    for threads in [1, 2] {
        let batches = phold(64, 160, 1024, 0, 0, 2_000_000);
        runs(&mut group, &format!("batches/{threads}"), threads, || batches.simulation());
        let skew = phold(64, 80, 512, 76, 1, 1_000_000);
        runs(&mut group, &format!("skew/{threads}"), threads, || skew.simulation());
        let load = Ticks { cores: 32, slices: 8, latency: 1400, work: 0, until: 500_000 };
        runs(&mut group, &format!("ticks/{threads}"), threads, || load.simulation());
    }
    const ROUNDS: u64 = 20_000;
    for events in [0, 8, 128, 1024] {
        for (name, way) in [("swap", Way::Swap), ("channel", Way::Channel)] {
            let rounds = if events > 100 { ROUNDS / 10 } else { ROUNDS };
            group.throughput(Throughput::Elements(rounds));
            group.bench_function(format!("handover/{name}/{events}"), |bencher| {
                bencher.iter(|| hand_over(way, rounds, events));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, engine);
criterion_main!(benches);
