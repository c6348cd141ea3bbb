//! Whole-machine throughput: `cargo bench --bench machine`. Elements are warp instructions, simulated and executed.
//!
//! Each run is a fixed stretch of simulated time of a built-in workload's default profile, launch latency included, on
//! the default machine; the machine is assembled outside the measurement. `benches/machine_table.rs` measures whole runs.

#[path = "../src/allocator.rs"]
mod allocator;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use durawarp::assemble::{Assembly, assemble};
use durawarp::config::MachineConfig;
use durawarp::config::presets::DEFAULT_MACHINE;
use durawarp::engine::{RunOptions, Time};
use durawarp::workload::{Choice, Resolved, Workload};

/// Workload, and core cycles of it.
const STRETCHES: [(&str, u64); 4] =
    [("gemm_tiled", 60_000), ("gemm", 60_000), ("stream_triad", 200_000), ("fma", 60_000)];

fn machine(config: &MachineConfig, workload: &Resolved) -> Assembly {
    assemble(&config.spec, workload.image(), workload.local_bytes() as u32, Box::new(workload.host()))
}

fn run(machine: &mut Assembly, threads: usize, limit: Time) -> u64 {
    durawarp::machine::run(
        &mut machine.simulation,
        &RunOptions { threads, time_limit: Some(limit), ..RunOptions::default() },
    );
    machine.sms().map(|sm| sm.counters().warp_instructions).sum()
}

fn throughput(c: &mut Criterion) {
    let config = MachineConfig::load(DEFAULT_MACHINE, &[]).expect("the default machine");
    let core = config.spec.timebase().expect("its timebase").clock(config.spec.clock.core_mhz.khz);
    let mut group = c.benchmark_group("machine");
    group.sample_size(10);
    for (name, cycles) in STRETCHES {
        let workload = Workload::load(name).and_then(|workload| workload.resolve(&Choice::default()));
        let workload = workload.expect("a built-in workload");
        let limit = core.cycles(cycles);
        group.throughput(Throughput::Elements(run(&mut machine(&config, &workload), 1, limit)));
        for threads in [1, 2] {
            group.bench_function(format!("{name}/{threads}"), |bencher| {
                bencher.iter_batched_ref(
                    || machine(&config, &workload),
                    |machine| run(machine, threads, limit),
                    BatchSize::PerIteration,
                );
            });
        }
    }
    group.finish();
}

criterion_group!(benches, throughput);
criterion_main!(benches);
