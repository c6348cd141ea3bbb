//! Whatever the sizes of queues, caches, buffers and whatever the policies, a workload ends, with the memory of its
//! functional run, and its accounts balance: sizes change when things happen, never what.

use crate::bench_machine::machine;
use durawarp::assemble::assemble;
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::kernel::functional::Limits;
use durawarp::workload::{Choice, Workload};
use proptest::prelude::*;

/// Values from far too small to the preset's; the first of each makes everything wait for everything.
const SIZES: [(&str, &[&str]); 31] = [
    ("sm.count", &["1", "3", "20"]),
    ("sm.warp_size", &["32", "64"]),
    ("sm.schedulers", &["1", "3", "4"]),
    ("sm.issue_width", &["1", "2"]),
    ("sm.policy", &["lrr", "gto", "gty"]),
    ("sm.lsu_entries", &["1", "2", "8"]),
    ("sm.coalescer", &["half_warp_legacy", "warp_sectored", "warp_by_sector"]),
    ("l1.kb", &["3", "24"]),
    ("l1.mshr_entries", &["1", "4", "256"]),
    ("l1.mshr_merges", &["1", "8"]),
    ("l1.miss_queue_entries", &["1", "16"]),
    ("l1.hit_cycles", &["2", "82", "300"]),
    ("l1.global_loads", &["true", "false"]),
    ("crossbar.buffer_packets", &["1", "5", "32"]),
    ("crossbar.injection_flits", &["1", "64"]),
    ("crossbar.switch", &["input_queued", "ports"]),
    ("crossbar.switch_packets", &["1", "64"]),
    ("crossbar.switch_speedup", &["1", "2"]),
    ("l2.slice_kb", &["2", "128"]),
    ("l2.mshr_entries", &["1", "3", "256"]),
    ("l2.mshr_unit", &["sector", "line"]),
    ("l2.mshr_merges", &["1", "64"]),
    ("l2.reply_flits", &["1", "160"]),
    ("controller.read_queue_entries", &["1", "64"]),
    ("controller.ingress_reads", &["1", "64"]),
    ("controller.ingress_writes", &["1", "32"]),
    ("controller.row_hit_cap", &["1", "4"]),
    ("controller.page", &["closed", "open", "open_adaptive", "closed_adaptive", "timeout"]),
    ("controller.scheduler", &["fcfs", "frfcfs", "frfcfs_row_hit", "bliss", "atlas"]),
    ("dispatch.host_requests", &["1", "64"]),
    ("dispatch.concurrent_launches", &["1", "128"]),
];

const WORKLOADS: [&str; 8] =
    ["atax", "backprop", "conv2d", "gemm_tiled", "histogram", "pointer_chase", "stream_triad", "vecadd"];

fn check(name: &str, overrides: &str) {
    let spec = machine("agpm-table4", overrides);
    let choice = Choice::of_profile("ci");
    let workload = Workload::load(name).unwrap().resolve(&choice).unwrap();
    let limits = Limits { warp_size: spec.sm.warp_size, ..Limits::default() };
    let reference = workload.run_functional(&limits).unwrap();
    let mut memory = workload.image();
    let mut assembly = assemble(&spec, memory.clone(), 256, Box::new(workload.host()));
    let end = durawarp::machine::run(&mut assembly.simulation, &RunOptions::default());
    assert!(matches!(end, RunEnd::Finished { .. }), "{name} with {overrides}: {end:?}");
    assembly.collect(&mut memory);
    assert!(memory == *reference.memory(), "{name} with {overrides}: memory differs from the functional run's");
    crate::accounts::assert_conserved(&format!("{name} with {overrides}"), &spec, &assembly);
}

#[test]
fn everything_at_its_smallest_still_ends() {
    let smallest: Vec<String> = SIZES.iter().map(|(key, values)| format!("{key}={}", values[0])).collect();
    for name in WORKLOADS {
        check(name, &smallest.join(" "));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sizes_give_the_functional_memory(
        workload in prop::sample::select(&WORKLOADS[..]),
        picks in prop::collection::vec(any::<prop::sample::Index>(), SIZES.len()),
        wpq in prop::sample::select(&["write_queue_entries=2 controller.drain_high_entries=2 controller.drain_low_entries=0", "write_queue_entries=64"][..]),
    ) {
        let mut overrides: Vec<String> =
            SIZES.iter().zip(&picks).map(|((key, values), pick)| format!("{key}={}", pick.get(values))).collect();
        overrides.push(format!("controller.{wpq}"));
        check(workload, &overrides.join(" "));
    }
}
