//! Parameters and counters of an L2 slice.

use durawarp_base::choice;
use durawarp_base::counters;
use durawarp_base::spec;

use crate::replacement::Replacement;

choice! {
    /// What a store to a line that is not there does.
    pub enum WriteMiss {
        /// It takes a line and marks its bytes; nothing is fetched.
        Validate = "validate",
        /// It waits until the sectors that it writes in part are fetched.
        Fetch = "fetch",
        /// It goes on to memory, and the line is fetched with it.
        Naive = "naive",
    }
}

choice! {
    /// What an MSHR of the L2 is of.
    pub enum MshrUnit {
        /// A line: a fill of however many sectors is one, and all requests to the line share its merges.
        Line = "line",
        /// A sector: each that memory is asked for is one, with merges of its own.
        Sector = "sector",
    }
}

spec! {
    /// Parameters of the shared L2 cache.
    pub struct L2Spec {
        /// Bytes of a line, in the L1s as in the L2.
        line_bytes: u32 where 32..=128,
        /// Slices (partitions) of the L2.
        slices: u32 where 1..=512,
        /// Capacity of one slice, in KiB.
        slice_kb: u32 where 1..=65536,
        /// Ways of a set.
        ways: u32 where 1..=64,
        /// Which line of a full set leaves for another: lru, fifo, random, srrip (2 bits, hit priority) or
        /// tree_plru.
        replacement: Replacement,
        /// Seed of random replacement.
        replacement_seed: u32,
        /// Misses under way, each of a line or a sector (`mshr_unit`).
        mshr_entries: u32 where 1..=4096,
        /// What an MSHR is of: the line, or a sector of it.
        mshr_unit: MshrUnit,
        /// Requests that one MSHR holds.
        mshr_merges: u32 where 1..=4096,
        /// L2 cycles from the crossbar to the tags, on every request.
        pipeline_cycles: u32 where 0..=10000,
        /// Bytes that the data port moves in one L2 cycle.
        port_bytes: u32 where 8..=256,
        /// L2 cycles that the atomic unit takes for a pass: over a sector at a time, over lanes on one
        /// address one at a time.
        atomic_pass_cycles: u32 where 0..=1000,
        /// Reply flits that may wait before the slice stops serving requests.
        reply_flits: u32 where 1..=4096,
        /// A line that leaves the L2 leaves the L1s: these hear of it.
        inclusive: bool,
        /// What a store to a line that is not there does: validate (its bytes), fetch (what it writes in
        /// part) or naive (goes on to memory, and fetches).
        write_miss: WriteMiss,
        /// Bytes of consecutive addresses on one slice, before the next slice's.
        interleave_bytes: u32 where 32..=65536,
    }
}

counters! {
    /// What one L2 slice counted.
    pub struct L2Counters {
        /// Read requests (requests)
        reads,
        /// Read requests whose sectors were all there (requests)
        read_hits,
        /// Write requests (requests)
        writes,
        /// Write requests whose line was there (requests)
        write_hits,
        /// Atomic requests (requests)
        atomics,
        /// Atomic requests whose sectors were all there (requests)
        atomic_hits,
        /// Atomic operations, one a lane (operations)
        atomic_lanes,
        /// Requests that waited for a fill already under way (requests)
        mshr_merges,
        /// Lines fetched from memory, whole or in part (lines)
        fetches,
        /// Dirty lines written back to memory (lines)
        writebacks,
        /// Dirty lines of persistent memory that left without being written (lines)
        dropped_lines,
        /// Write-backs and flushes of a line asked for by programs (requests)
        write_backs_asked,
        /// Writes past the array (requests)
        write_throughs,
        /// Bytes that requesters sent to this slice, headers included (bytes)
        bytes_in,
        /// Bytes that this slice sent to requesters, headers included (bytes)
        bytes_out,
        /// Packets that had L1s give up lines (packets)
        back_invalidations,
        /// Lines that the host's warm steps put there (lines)
        warmed_lines,
        /// Requests at the head of the input buffer that lacked an MSHR, a way or a credit (requests)
        stalls,
    }
}
