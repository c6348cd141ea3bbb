//! Parameters of PMEM-Spec. The defaults, with the source of each, are in `pmem_spec.toml`.

use durawarp_base::choice;
use durawarp_base::spec;
use durawarp_base::spec::Nanos;

choice! {
    /// What keeps non-temporal stores in order.
    pub enum Order {
        /// The program's fences.
        Fence = "fence",
        /// The persist path of each SM, strictly.
        Fifo = "fifo",
    }
}

spec! {
    /// Parameters of PMEM-Spec.
    pub struct PmemSpecSpec {
        /// What keeps non-temporal stores in order.
        order: Order,
        /// Persist path of an SM, where it keeps order: stores that are not durable yet.
        path_entries: u32 where 1..=4096,
        /// Detect mis-speculation.
        detect: bool,
        /// A store is at most so long on the persist path: for that time after an eviction a late one is
        /// looked for.
        window_ns: Nanos,
        /// Bytes of persistent memory that share a last speculation id.
        bucket_bytes: u64 where 32..=1_073_741_824,
        /// Last speculation ids that a slice keeps.
        bucket_entries: u32 where 1..=65_536,
    }
}
