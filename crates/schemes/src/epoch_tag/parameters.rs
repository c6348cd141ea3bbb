//! Parameters of the tags. Defaults with their sources: `epoch_tag.toml`.

use durawarp_base::choice;
use durawarp_base::spec;

choice! {
    /// Which caches have tags.
    pub enum TagLevels {
        /// L1s and L2: what L1s clean goes to the L2 with its tag.
        Both = "both",
        /// L1s alone: what they clean goes to memory.
        L1 = "l1",
    }
}

spec! {
    /// Parameters of the tags, and of their stand-in where L1s do not combine stores.
    pub struct EpochTagSpec {
        /// Caches whose lines have tags, where L1s combine stores: both, or l1 (what they clean persists).
        levels: TagLevels,
        /// Non-temporal stores that may be under way, of an SM whose L1 does not combine stores.
        past_entries: u32 where 1..=65536,
        /// Requests that such an SM may hold back until these are durable.
        held_entries: u32 where 1..=65536,
    }
}
