//! Every built-in workload on the timed machine: its memory is the functional run's, its checks pass, its accounts
//! balance, and whatever drives the simulation, every event is the same.
//!
//! `bfs` has benign races (several threads may claim one node): its levels are checked, its memory is not compared.

use crate::bench_machine::{machine, sum};
use durawarp::assemble::{Assembly, assemble};
use durawarp::engine::{Fallback, Placement, Rebalance, RunEnd, RunOptions};
use durawarp::kernel::functional::Limits;
use durawarp::kernel::memory::FlatMemory;
use durawarp::machine::MachineSpec;
use durawarp::workload::{Choice, Evidence, FunctionalRun, Resolved, Workload};

/// Workloads whose final memory depends on who comes first.
const RACES: [&str; 1] = ["bfs"];

/// Workloads that test a barrier in shared memory until copies have come, which takes no time on the functional run.
const WAITS: [&str; 2] = ["bulk_stream", "tensor_transpose"];

fn resolved(name: &str) -> Resolved {
    let workload = Workload::load(name).unwrap_or_else(|faults| panic!("{faults}"));
    let choice = Choice::of_profile("ci");
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
    let mut assembly = assemble(spec, memory.clone(), 256, Box::new(host));
    let end = durawarp::machine::run(&mut assembly.simulation, options);
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    assembly.collect(&mut memory);
    let verdict = workload.verify(&memory, &bindings, Evidence { functional: Some(reference), ..Evidence::default() });
    let verdict = (!verdict.passed()).then(|| format!("{verdict:#?}"));
    Timed { assembly, memory, verdict }
}

/// Real threads, from the first round on.
pub(super) fn threads(threads: usize, placement: Placement) -> RunOptions<'static> {
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
pub(crate) fn check(machine_name: &str, name: &str, ways: &[RunOptions<'_>]) {
    let spec = machine(machine_name, "");
    let workload = resolved(name);
    let reference = workload.run_functional(&Limits::default()).unwrap_or_else(|error| panic!("{error}"));
    let first = timed(&spec, &workload, &reference, &RunOptions::default());
    assert_eq!(first.verdict.as_deref().filter(|_| !RACES.contains(&name)), None, "{name}");
    if !RACES.contains(&name) {
        assert!(first.memory == *reference.memory(), "{name}: memory differs from the functional run's");
        let instructions = sum(first.assembly.sms().map(|s| s.counters()), "warp_instructions") as f64;
        let functional = reference.metrics()["warp_instructions"];
        // All warps of these test their barriers, on both drivers as often as it takes.
        if ![&crate::triton::PROGRAMS[..], &crate::tensor_memory::PROGRAMS[..]]
            .into_iter()
            .flatten()
            .chain(&crate::tensor_pairs::PROGRAMS)
            .any(|known| *known == name)
        {
            let waits = WAITS.contains(&name);
            assert!(if waits { instructions > functional } else { instructions == functional }, "{name}");
        }
    }
    crate::accounts::assert_conserved(name, &spec, &first.assembly);
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
                let elsewhere = Workload::load(&listing.name).unwrap().needs_tensor_cores();
                assert!(elsewhere || here.contains(&listing.name.as_str()), "{}", listing.name);
            }
        }
    };
}

on_table4! {
    atax, backprop, bfs, bplus_tree, bplus_tree_dram, conv2d, fma, gemm, gemm_tiled, gesummv, grid_binning, grid_reorder,
    histogram, kv_store, mm2, mm3, mvt, nw, pathfinder, pointer_chase, ra, sad, sad_shared_log, sgemm, split_sort, sssp,
    stencil, stream_triad, vecadd,
}

#[test]
fn machines_with_tensor_cores_agree_too() {
    for machine in ["volta-v100", "ampere-a100"] {
        check(machine, "gemm_tensor", &[threads(2, Placement::Shuffled(3))]);
        check(machine, "bulk_stream", &[threads(2, Placement::Shuffled(3)), threads(8, Placement::Shuffled(1))]);
    }
    let ways = [threads(2, Placement::Shuffled(3)), threads(8, Placement::Shuffled(1))];
    check("hopper-h100", "tensor_transpose", &ways);
}

#[test]
fn titan_x_agrees_too() {
    for name in ["backprop", "gemm_tiled", "histogram", "vecadd"] {
        check("titan-x", name, &[threads(2, Placement::Shuffled(3))]);
    }
}

#[test]
fn who_looks_at_warps_from_outside_finds_all_values_computed() {
    let (spec, workload) = (machine("agpm-table4", ""), resolved("fma"));
    let mut assembly = assemble(&spec, workload.image(), 256, Box::new(workload.host()));
    let ticks = spec.timebase().expect("a machine has one").tick_khz() / spec.clock.core_mhz.khz;
    let mut seen = 0;
    // To the end of the run, at different places of stretches of code.
    for cycles in (1..).step_by(101) {
        let options = RunOptions { time_limit: Some(cycles * ticks), ..RunOptions::default() };
        if let RunEnd::Finished { .. } = assembly.simulation.run(&options) {
            break;
        }
        for resident in assembly.sms().filter_map(|sm| sm.residents()).flat_map(|sm| sm.warps) {
            // Without a launch to compute with, a warp that lacks values would panic.
            seen += usize::from(!resident.warp.caught_up(None).is_done());
        }
    }
    assert!(seen > 100, "{seen} warps");
}
