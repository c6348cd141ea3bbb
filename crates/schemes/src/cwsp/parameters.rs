//! Parameters of `cwsp`. The defaults, with the source of each, are in `cwsp.toml`.

use crate::core_regions;
use crate::entry::Faults;
use durawarp_base::spec;
use durawarp_base::spec::Nanos;

spec! {
    /// Parameters of cWSP.
    pub struct CwspSpec {
        /// Entries of a core's front-end buffer.
        feb_entries: u32 where 1..=65536,
        /// Bytes that a store takes on the persist path.
        entry_bytes: u32 where 8..=64,
        /// From a core to a controller, and back.
        path_latency_ns: Nanos,
        /// Bandwidth of a core's persist path, in MB/s.
        path_mb_s: u32 where 1..=100_000_000,
        /// From a controller to another.
        ack_latency_ns: Nanos,
        /// Most words of 8 bytes that a hart stores in a region.
        threshold_stores: u32 where 2..=65536,
        /// Unroll loops whose number of turns is known.
        unroll: bool,
        /// Unroll other loops with their exit conditions.
        speculative_unroll: bool,
        /// Most copies of a loop's body.
        unroll_factor: u32 where 1..=64,
        /// Leave out checkpoints of what can be computed.
        prune: bool,
    }
}

impl CwspSpec {
    /// What is wrong with the values together: the key to blame, and why.
    pub fn faults(&self) -> Faults {
        core_regions::link_faults(self.path_latency_ns, self.ack_latency_ns)
    }
}
