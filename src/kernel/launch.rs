//! A kernel with everything a launch fixes: grid, block, parameters, constant pools, address map.

use std::sync::Arc;

use super::ir::{Kernel, LANES};
use super::memory::AddressMap;

/// A bound launch, immutable and shared by every SM that runs a CTA of it.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program.
    pub kernel: Arc<Kernel>,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// Shared memory of a CTA in bytes, static and dynamic.
    pub shared_bytes: u32,
    /// Hardware registers a thread occupies (the kernel's estimate, or the manifest's override).
    pub registers_per_thread: u32,
    /// 32-bit constants, one value in every lane.
    pub consts32: Vec<[u32; LANES]>,
    /// 64-bit constants, one value in every lane.
    pub consts64: Vec<[u64; LANES]>,
    /// Content of the constant bank.
    pub const_bank: Arc<[u8]>,
    /// Textures, in the order of the kernel's texture names.
    pub textures: Vec<Texture>,
    /// What is allocated in global memory.
    pub addresses: Arc<AddressMap>,
}

/// A texture bound to a launch: a pitched array in global memory, point-sampled, clamped at its edges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texture {
    /// First address.
    pub address: u64,
    /// Texels in x.
    pub width: u32,
    /// Rows (1 for a 1D texture).
    pub height: u32,
    /// Bytes from row to row.
    pub pitch: u32,
    /// Channels a texel, 1, 2 or 4.
    pub channels: u8,
    /// Type of a channel in memory.
    pub elem: super::ir::Elem,
    /// Integer channels are returned as floats in [0, 1] (`cudaReadModeNormalizedFloat`).
    pub normalized_read: bool,
}

impl Launch {
    /// CTAs of the grid.
    pub fn ctas(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }

    /// Threads of a CTA.
    pub fn threads_per_cta(&self) -> u32 {
        self.block.iter().product()
    }

    /// Warps of a CTA at a warp size.
    pub fn warps_per_cta(&self, warp_size: u32) -> u32 {
        self.threads_per_cta().div_ceil(warp_size)
    }

    /// The index of CTA number `linear` (x fastest).
    pub fn cta_index(&self, linear: u64) -> [u32; 3] {
        let [gx, gy, _] = self.grid.map(u64::from);
        [
            (linear % gx) as u32,
            (linear / gx % gy) as u32,
            (linear / (gx * gy)) as u32,
        ]
    }

    /// The index of thread number `linear` of a CTA (x fastest).
    pub fn thread_index(&self, linear: u32) -> [u32; 3] {
        let [bx, by, _] = self.block;
        [linear % bx, linear / bx % by, linear / (bx * by)]
    }
}
