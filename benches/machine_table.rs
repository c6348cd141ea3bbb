//! The machine's headline figures in one table: `cargo bench --bench machine_table [part of a workload's name]`.
//!
//! Whole runs of the default profiles on the default machine. Ways of running take turns, so that a slow spell of the
//! computer meets all of them, and the best of each counts; beside them stand the round trip between the cores, the
//! bound that the model's imbalance sets, and the most memory that the process had (fresh for each workload).

#![allow(clippy::disallowed_methods, reason = "measuring time is what this is for")]

#[path = "../src/allocator.rs"]
mod allocator;
#[path = "../src/cli/bench/round_trip.rs"]
mod round_trip;

use std::process::Command;
use std::time::Instant;

use durawarp::assemble::{Assembly, assemble};
use durawarp::config::MachineConfig;
use durawarp::config::presets::DEFAULT_MACHINE;
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::kernel::functional::Limits;
use durawarp::kernel::memory::FlatMemory;
use durawarp::workload::{Choice, Resolved, Workload};

const TURNS: usize = 3;

/// Target of one thread, in million warp instructions a second.
const WORKLOADS: [(&str, f64); 4] = [("gemm_tiled", 2.0), ("gemm", 1.0), ("stream_triad", 1.0), ("fma", 5.0)];

struct Timed {
    seconds: f64,
    machine: Assembly,
}

fn timed(config: &MachineConfig, workload: &Resolved, threads: usize) -> Timed {
    let local = workload.local_bytes() as u32;
    let mut machine = assemble(&config.spec, workload.image(), local, Box::new(workload.host()));
    let since = Instant::now();
    let end = durawarp::machine::run(&mut machine.simulation, &RunOptions { threads, ..RunOptions::default() });
    let seconds = since.elapsed().as_secs_f64();
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    Timed { seconds, machine }
}

fn functional(workload: &Resolved) -> f64 {
    let since = Instant::now();
    workload.run_functional(&Limits::default()).expect("a built-in workload has no faults");
    since.elapsed().as_secs_f64()
}

/// The most memory this process had so far, in MiB; 0 where the system does not tell.
fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok()).map_or(0.0, |kib| kib / 1024.0)
}

fn measure(name: &str, target: f64) {
    let config = MachineConfig::load(DEFAULT_MACHINE, &[]).expect("the default machine");
    let workload = Workload::load(name).and_then(|workload| workload.resolve(&Choice::default()));
    let workload = workload.expect("a built-in workload");
    let (mut plain, mut one, mut two) = (f64::MAX, f64::MAX, f64::MAX);
    let mut first = None;
    let (mut shares, mut peak) = (0.0, 0.0);
    for _ in 0..TURNS {
        let Timed { seconds, machine } = timed(&config, &workload, 1);
        one = one.min(seconds);
        let digest = machine.simulation.digest();
        let known = *first.get_or_insert_with(|| {
            // What one run needs: nothing else was done before.
            let mut memory = FlatMemory::new(workload.addresses());
            machine.collect(&mut memory);
            peak = peak_mib();
            let stats = machine.simulation.stats();
            let instructions: u64 = machine.sms().map(|sm| sm.counters().warp_instructions).sum();
            (digest, instructions, stats.speedup_bound(2), stats.mean_events_per_round())
        });
        assert_eq!(known.0, digest, "{name}: two runs, two results");
        drop(machine);
        let run = timed(&config, &workload, 2);
        two = two.min(run.seconds);
        shares =
            run.machine.simulation.stats().solo_rounds as f64 / run.machine.simulation.stats().totals.rounds as f64;
        assert_eq!(known.0, run.machine.simulation.digest(), "{name}: two threads, two results");
        drop(run);
        plain = plain.min(functional(&workload));
    }
    let Some((_, instructions, bound, per_round)) = first else { return };
    println!(
        "{name:13} {:5.1} M wi | 1 thread {:5.2} M/s (target {target:.0}) | functional {:5.1} M/s, timed/functional {:4.1}x | \
         2 threads {:4.2}x (bound {bound:.2}, alone {:3.0} %, {per_round:.0} ev/round, trip {:.0} ns) | peak {peak:.0} MiB",
        instructions as f64 / 1e6,
        instructions as f64 / one / 1e6,
        instructions as f64 / plain / 1e6,
        one / plain,
        one / two,
        100.0 * shares,
        round_trip::round_trip_ns(),
    );
}

fn main() {
    let filters: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    if let [only, child] = &filters[..]
        && child == "here"
    {
        let (name, target) = WORKLOADS.iter().find(|(name, _)| name == only).expect("a workload of the table");
        return measure(name, *target);
    }
    let this = std::env::current_exe().expect("the path of this program");
    for (name, _) in WORKLOADS {
        if filters.is_empty() || filters.iter().any(|filter| name.contains(&filter[..])) {
            let done = Command::new(&this).args([name, "here"]).status().expect("a process of its own");
            assert!(done.success(), "{name} failed");
        }
    }
}
