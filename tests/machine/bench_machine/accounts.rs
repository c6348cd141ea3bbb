//! What must balance when a run is over: warp slots against cycles, and each side of each boundary against the other.

#![allow(unreachable_pub, reason = "tests include this file as a module")]

use crate::bench_machine::sum;
use durawarp::assemble::Assembly;
use durawarp::machine::MachineSpec;

/// The accounts of a run that is over, each side of each boundary.
pub fn assert_conserved(name: &str, spec: &MachineSpec, a: &Assembly) {
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
            + c.slots_persist
            + c.slots_draining;
        assert_eq!(accounts, c.slots_resident, "{name}: warp slots of SM {index}");
        let paired = c.warp_instructions - c.slots_issued;
        let pairs = u64::from(spec.sm.issue_width - 1) * c.slots_issued;
        assert!(paired <= pairs, "{name}: SM {index} issued {paired} second instructions of at most {pairs}");
    }
    let sm = |counter: &str| sum(a.sms().map(|s| s.counters()), counter);
    let l2 = |counter: &str| sum(a.slices().map(|s| *s.counters()), counter);
    let mc = |counter: &str| sum(a.controllers().map(|s| *s.counters()), counter);
    // Loads that neither hit nor joined a fill, those past the L1, and lines of bulk copies are the slices' reads; likewise stores.
    let host = a.command_processor().counters();
    let misses = sm("l1_loads") - sm("l1_hits") - sm("l1_merges") + sm("l1_bypasses");
    let bulk: u64 =
        ["bulk_reads", "bulk_map_reads"].map(|name| sum(a.sms().map(|s| s.bulk_counters()), name)).iter().sum();
    assert_eq!(misses + bulk + host.host_reads, l2("reads"), "{name}: reads");
    let writes = l2("writes") + l2("atomics") + l2("write_throughs");
    assert_eq!(sm("l1_stores") + host.host_writes, writes, "{name}: writes and atomics");
    assert_eq!(sm("atomic_lanes"), l2("atomic_lanes"), "{name}: atomics lane by lane");
    assert_eq!(sm("bytes_out") + host.bytes_out, l2("bytes_in"), "{name}: bytes towards the L2");
    assert_eq!(sm("bytes_in") + host.bytes_in, l2("bytes_out"), "{name}: bytes from the L2");
    // Every fetch is a read of memory, every write-back a write; what was accepted is at the media.
    assert_eq!(l2("fetches"), mc("dram_reads") + mc("nvm_reads"), "{name}: fetches");
    assert_eq!(l2("writebacks") + l2("write_throughs"), mc("dram_writes") + mc("nvm_writes"), "{name}: write-backs");
    let accepted = mc("dram_accepted_bytes") + mc("nvm_accepted_bytes");
    let written = mc("dram_written_bytes") + mc("nvm_written_bytes");
    assert_eq!(accepted, written + mc("merged_bytes"), "{name}: accepted bytes");
}
