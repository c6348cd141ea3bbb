//! Parameters of the shared cache.

use crate::spec;

spec! {
    /// Parameters of the shared, inclusive last-level cache.
    pub struct LlcSpec {
        /// Home slices.
        slices: u32 where 1..=256,
        /// Capacity of one slice, in KiB.
        slice_kb: u32 where 1..=1048576,
        /// Ways of a set.
        ways: u32 where 1..=64,
        /// Lines under way from and to memory, for each slice.
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
