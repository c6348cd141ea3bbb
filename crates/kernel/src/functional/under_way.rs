//! What goes on beside the warps of a CTA: bulk copies, products of four warps and in tensor memory, as
//! parties with clocks of their own, and the groups by which warps wait for them.
//!
//! Source: PTX ISA 9.7.9.25.5 (bulk groups), 9.7.16 (`wgmma`). Invariant: numbers of a warp's copies, and of
//! its products, rise by one. Not modelled: a party of each copy, so that one that is waited for stands for
//! those before it.

/// What does something in a CTA, by its place among the clocks of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Party {
    /// Copies of a warp to shared memory.
    Loads = 1,
    /// Those out of shared memory, as they read it.
    Reads,
    /// The same, as they write global memory.
    Writes,
    /// Products of a warp and its three neighbours.
    Products,
    /// Products of a warp in tensor memory.
    TensorProducts,
}

impl Party {
    /// With the warps themselves.
    pub(super) const COUNT: usize = 6;

    /// Its place. Products are those of the first of the four warps.
    pub(super) fn of(self, warp: u32, warps: usize) -> u32 {
        let warp = if self == Party::Products { warp & !3 } else { warp };
        self as u32 * warps as u32 + warp
    }
}

/// What a warp has under way beside it.
#[derive(Debug, Clone, Default)]
pub(super) struct UnderWay {
    /// Copies, and products of either kind, that it has issued: their clocks.
    pub(super) copies: u32,
    pub(super) products: u32,
    pub(super) tensor_products: u32,
    /// These numbers at each commit of a group.
    pub(super) committed: Vec<u32>,
    pub(super) committed_products: Vec<u32>,
}

/// The number of the last one of all groups but the `left` last ones.
pub(super) fn waited(committed: &[u32], left: u32) -> Option<u32> {
    committed.iter().rev().nth(left as usize).copied()
}
