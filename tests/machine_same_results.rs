//! Every built-in workload on the timed machine: its memory is the functional run's, its checks pass, its accounts
//! balance, and whatever drives the simulation, every event is the same.
//!
//! `bfs` has benign races (several threads may claim one node): its levels are checked, its memory is not compared.

mod bench_machine;

use bench_machine::{machine, sum};
use durawarp::assemble::{Assembly, assemble};
use durawarp::engine::{Fallback, Placement, Rebalance, RunEnd, RunOptions};
use durawarp::kernel::functional::Limits;
use durawarp::kernel::memory::FlatMemory;
use durawarp::machine::MachineSpec;
use durawarp::workload::{Choice, Evidence, FunctionalRun, Resolved, Workload};

/// Workloads whose final memory depends on who comes first.
const RACES: [&str; 1] = ["bfs"];

fn resolved(name: &str) -> Resolved {
    let workload = Workload::load(name).unwrap_or_else(|faults| panic!("{faults}"));
    let choice = Choice { profile: Some("ci".to_owned()), ..Choice::default() };
    workload.resolve(&choice).unwrap_or_else(|faults| panic!("{faults}"))
}

/// A timed run to its end.
struct Timed {
    assembly: Assembly,
    memory: FlatMemory,
    verdict: Option<String>,
}

fn timed(spec: &MachineSpec, workload: &Resolved, reference: &FunctionalRun, options: &RunOptions<'_>) -> Timed {
    let host = workload.host();
    let bindings = host.bindings();
    let mut memory = workload.image();
    let mut assembly = assemble(spec, &memory, 256, Box::new(host));
    let end = assembly.simulation.run(options);
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    assembly.collect(&mut memory);
    let verdict = workload.verify(&memory, &bindings, Evidence { functional: Some(reference), metrics: None });
    let verdict = (!verdict.passed()).then(|| format!("{verdict:#?}"));
    Timed { assembly, memory, verdict }
}

/// The accounts of a run that is over, each side of each boundary.
fn assert_conserved(name: &str, spec: &MachineSpec, run: &Timed) {
    let a = &run.assembly;
    for (index, sm) in a.sms().enumerate() {
        let c = sm.counters();
        let accounts = c.slots_issued
            + c.slots_not_selected
            + c.slots_unit_busy
            + c.slots_memory_full
            + c.slots_execution
            + c.slots_memory
            + c.slots_barrier
            + c.slots_fence
            + c.slots_draining;
        assert_eq!(accounts, c.slots_resident, "{name}: warp slots of SM {index}");
        let paired = c.warp_instructions - c.slots_issued;
        let pairs = u64::from(spec.sm.issue_width - 1) * c.slots_issued;
        assert!(paired <= pairs, "{name}: SM {index} issued {paired} second instructions of at most {pairs}");
    }
    let sm = |counter: &str| sum(a.sms().map(|s| s.counters()), counter);
    let l2 = |counter: &str| sum(a.slices().map(|s| *s.counters()), counter);
    let mc = |counter: &str| sum(a.controllers().map(|s| *s.counters()), counter);
    // Loads that neither hit nor joined a fill, and those past the L1, are the slices' reads; likewise stores.
    let host = a.dispatch().counters();
    let misses = sm("l1_loads") - sm("l1_hits") - sm("l1_merges") + sm("l1_bypasses");
    assert_eq!(misses + host.host_reads, l2("reads"), "{name}: reads");
    assert_eq!(sm("l1_stores") + host.host_writes, l2("writes") + l2("atomics"), "{name}: writes and atomics");
    assert_eq!(sm("atomic_lanes"), l2("atomic_lanes"), "{name}: atomics lane by lane");
    assert_eq!(sm("bytes_out") + host.bytes_out, l2("bytes_in"), "{name}: bytes towards the L2");
    assert_eq!(sm("bytes_in") + host.bytes_in, l2("bytes_out"), "{name}: bytes from the L2");
    // Every fetch is a read of memory, every write-back a write; what was accepted is at the media.
    assert_eq!(l2("fetches"), mc("dram_reads") + mc("nvm_reads"), "{name}: fetches");
    assert_eq!(l2("writebacks"), mc("dram_writes") + mc("nvm_writes"), "{name}: write-backs");
    let accepted = mc("dram_accepted_bytes") + mc("nvm_accepted_bytes");
    let written = mc("dram_written_bytes") + mc("nvm_written_bytes");
    assert_eq!(accepted, written + mc("merged_bytes"), "{name}: accepted bytes");
}

/// Real threads, from the first round on.
fn threads(threads: usize, placement: Placement) -> RunOptions<'static> {
    RunOptions {
        threads,
        oversubscribe: true,
        fallback: Fallback::Never,
        rebalance: Rebalance::Never,
        placement,
        ..RunOptions::default()
    }
}

/// Runs a workload every way and checks everything about it.
fn check(machine_name: &str, name: &str, ways: &[RunOptions<'_>]) {
    let spec = machine(machine_name, "");
    let workload = resolved(name);
    let reference = workload.run_functional(&Limits::default()).unwrap_or_else(|error| panic!("{error}"));
    let first = timed(&spec, &workload, &reference, &RunOptions::default());
    assert_eq!(first.verdict.as_deref().filter(|_| !RACES.contains(&name)), None, "{name}");
    if !RACES.contains(&name) {
        assert!(first.memory == *reference.memory(), "{name}: memory differs from the functional run's");
        let instructions = sum(first.assembly.sms().map(|s| s.counters()), "warp_instructions") as f64;
        assert_eq!(instructions, reference.metrics()["warp_instructions"], "{name}");
    }
    assert_conserved(name, &spec, &first);
    let of = |run: &Timed| (run.assembly.simulation.digest(), run.assembly.simulation.stats().events());
    for options in ways {
        let other = timed(&spec, &workload, &reference, options);
        assert_eq!(of(&other), of(&first), "{name} with {options:?}");
        assert!(other.memory == first.memory, "{name} with {options:?}: memory");
    }
}

fn some_ways() -> Vec<RunOptions<'static>> {
    let mut ways =
        vec![threads(2, Placement::Auto), threads(3, Placement::Shuffled(5)), threads(8, Placement::RoundRobin)];
    ways.push(RunOptions { rebalance: Rebalance::Forced { rounds: 7 }, ..threads(2, Placement::Shuffled(99)) });
    ways
}

macro_rules! on_table4 {
    ($($name:ident,)*) => {
        $(#[test]
        fn $name() {
            check("agpm-table4", stringify!($name), &some_ways());
        })*

        #[test]
        fn no_builtin_workload_is_missing_here() {
            let here = [$(stringify!($name),)*];
            for listing in Workload::builtin() {
                assert!(here.contains(&listing.name.as_str()), "{}", listing.name);
            }
        }
    };
}

on_table4! {
    atax, backprop, bfs, conv2d, fma, gemm, gemm_tiled, histogram, pointer_chase, stream_triad, vecadd,
}

#[test]
fn titan_x_agrees_too() {
    for name in ["backprop", "gemm_tiled", "histogram", "vecadd"] {
        check("titan-x", name, &[threads(2, Placement::Shuffled(3))]);
    }
}
