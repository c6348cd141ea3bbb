//! How a launch splits the memory that the L1 and the shared memory of an SM have together.
//!
//! A launch takes the least step of shared memory that holds what its CTAs on an SM take at once, as many of
//! them as fit (`occupancy`); the L1 has the rest. How many CTAs the grid has does not count. A program that
//! wishes for a share (`carveout_percent`, `cudaFuncAttributePreferredSharedMemoryCarveout`) has the least
//! step that holds it and one CTA; that step then bounds how many CTAs fit.
//!
//! Source: CUDA C++ Programming Guide, compute capability 7.x (the driver chooses by what the kernel needs),
//! and an H200, whose L1 ends where this rule says (`tests/machine/unified_l1.rs`). GPGPU-Sim's adaptive
//! cache (`shader_core_config::max_cta`) takes fewer CTAs where the grid has fewer. Not modelled: the time
//! that a change of the split takes.

use durawarp_checkpoint::value;
use durawarp_kernel::launch::Launch;

use super::l1::L1Spec;
use super::shared_memory::SharedSpec;

/// A split between L1 and shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carveout {
    /// Capacity of the L1, in KiB.
    pub l1_kb: u32,
    /// Capacity of shared memory, in KiB.
    pub shared_kb: u32,
}

value!(record Carveout { l1_kb, shared_kb });

impl Carveout {
    /// The split for a launch of which an SM holds `ctas` at once; none where the L1's capacity is fixed.
    pub fn of(launch: &Launch, ctas: u32, shared: &SharedSpec, l1: &L1Spec) -> Option<Self> {
        if l1.kb > 0 {
            return None;
        }
        let shared_kb = match launch.carveout_percent {
            Some(percent) => shared.wished_kb(percent, launch.shared_bytes),
            // What fits is at most `shared.kb`, and no more than the largest step.
            None => shared.steps_kb.at_least((ctas * shared.taken_bytes(launch.shared_bytes)).div_ceil(1024)),
        }?;
        Some(Carveout { l1_kb: l1.unified_kb - shared_kb, shared_kb })
    }

    /// Ways of each set that are left to the L1. Whole: a machine with other steps is refused.
    pub fn l1_ways(&self, l1: &L1Spec) -> u32 {
        l1.ways * self.l1_kb / l1.unified_kb
    }
}
