//! Options of region formation, its errors, and the reasons and roles that formed kernels carry.
//!
//! Source: LightWSP, section IV-A; options that the paper does not have say so.

use serde::Serialize;

/// How regions are formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RegionOptions {
    /// Most words of 8 bytes that a lane stores in a region, checkpoints and the boundary's own included. The
    /// paper: half the write pending queue of 64 entries (section IV-A).
    pub threshold_stores: u32,
    /// Unroll loops whose number of turns is known.
    pub unroll: bool,
    /// Unroll other loops with their exit conditions.
    pub speculative_unroll: bool,
    /// Most copies of a loop's body. Chosen: the paper has regions almost three times as long, and no number.
    pub unroll_factor: u32,
    /// Leave out checkpoints of registers that can be computed from others, constants and parameters.
    pub prune: bool,
    /// Boundaries after atomics and barriers too, not only before (the paper's way).
    pub after_sync: bool,
    /// Shared and local memory have shadows that persist, shared atomics order threads, and barriers are
    /// counted: without, a kernel that uses them cannot be resumed in its middle. The paper's whole system
    /// has no memory that does not persist.
    pub scratch: bool,
    /// A register that all lanes of a warp share the value of is checkpointed as one word of 8 bytes, not as
    /// one a lane, where that is sound (`regions/homes.rs`). Ours: the paper's machine has no warps.
    pub uniform_once: bool,
}

impl Default for RegionOptions {
    fn default() -> Self {
        RegionOptions {
            threshold_stores: 32,
            unroll: true,
            speculative_unroll: true,
            unroll_factor: 4,
            prune: true,
            after_sync: true,
            scratch: true,
            uniform_once: false,
        }
    }
}

/// Why a kernel cannot be formed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegionError {
    /// The threshold is used up by a boundary's own store.
    #[error("a threshold of {0} stores is too small: a boundary is one itself, so at least 2 are needed")]
    Threshold(u32),
    /// The kernel has no instruction.
    #[error("the kernel has no instructions")]
    Empty,
    /// Recursive functions.
    #[error("the kernel has recursive functions, whose calls under way are no part of a checkpoint: not supported")]
    Recursion,
    /// The IR's limits of registers or constants are exceeded.
    #[error("the kernel has too many registers or constants for boundaries to be added")]
    TooLarge,
}

/// Why there is a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The kernel starts.
    Entry,
    /// The program has a `pm.region` here.
    Asked,
    /// A fence, a barrier or an atomic follows.
    Order,
    /// A barrier or an atomic precedes.
    AfterOrder,
    /// A loop stores, or may wait for others.
    Loop,
    /// Lanes exit.
    Exit,
    /// Lanes are about to wait for others of their warp, or a warp for others.
    Waiting,
    /// The region would hold too many stores.
    Threshold,
}

/// What an instruction of a formed kernel is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The program's own.
    Program,
    /// Computes where the thread's checkpoint and shadows are.
    Address,
    /// Stores a register.
    Checkpoint,
    /// Turns a predicate into a number to store.
    Select,
    /// Repeats a write to shared or local memory at its shadow.
    Shadow,
    /// Counts a barrier, and stores the count.
    Count,
    /// A boundary: stores the program counter.
    Counter,
    /// A boundary's `pm.region`. The paper's boundary is the store alone, which the hardware knows; two
    /// instructions here.
    Marker,
}
