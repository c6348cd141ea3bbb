//! Parameters of the shared cache, and what a slice of it counts.

use durawarp_base::counters;
use durawarp_base::spec;

use crate::replacement::Replacement;

spec! {
    /// Parameters of the shared, inclusive last-level cache.
    pub struct LlcSpec {
        /// Home slices.
        slices: u32 where 1..=256,
        /// Capacity of one slice, in KiB.
        slice_kb: u32 where 1..=1048576,
        /// Ways of a set.
        ways: u32 where 1..=64,
        /// Which line of a full set leaves for another: lru, fifo, random, srrip (2 bits, hit priority) or
        /// tree_plru.
        replacement: Replacement,
        /// Seed of random replacement.
        replacement_seed: u32,
        /// Lines under way from memory, each with the line that makes room for it, for each slice.
        mshr_entries: u32 where 1..=1024,
        /// Core cycles from a core to a home slice.
        request_cycles: u32 where 1..=10000,
        /// Core cycles that a home slice takes for tags and data.
        service_cycles: u32 where 0..=10000,
        /// Core cycles from a home slice to a core.
        reply_cycles: u32 where 1..=10000,
        /// Bytes of consecutive addresses on one slice, before the next slice's.
        interleave_bytes: u32 where 64..=65536,
    }
}

counters! {
    /// What one home slice counted.
    pub struct HomeCounters {
        /// Lines that cores and the OS asked for (requests)
        gets,
        /// Lines asked for that were there when their turn came (requests)
        get_hits,
        /// Lines fetched from memory (lines)
        fetches,
        /// Probes sent to cores (messages)
        probes,
        /// Probes whose core had changed the line (messages)
        dirty_probe_acks,
        /// Lines that their cores had to give up because they made room in the slice (lines)
        recalls,
        /// Changed lines that cores gave up (messages)
        puts,
        /// Puts, and bytes of cleans, of a core that did not own the line: dropped (messages)
        stale_bytes,
        /// Cleans and flushes that cores asked for (requests)
        cleans,
        /// Lines that the NIC wrote (lines)
        nic_writes,
        /// Of these, that were there when their turn came (lines)
        nic_write_hits,
        /// Lines written to memory (lines)
        writebacks,
        /// Changed lines of persistent memory that left unwritten, as the scheme had written them (lines)
        dropped_lines,
        /// Lines that had to stay until what their cores had stored there was durable (lines)
        kept_lines,
        /// Requests that waited behind another of their line (requests)
        queued,
        /// Time that requests waited behind others of their line, summed (request ticks)
        queued_ticks,
        /// Fetches that waited for an MSHR, a way or memory credit (lines)
        held_fetches,
        /// Time that fetches waited for an MSHR, a way or memory credit, summed (line ticks)
        held_fetch_ticks,
    }
}
