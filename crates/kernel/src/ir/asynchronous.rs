//! Asynchronous copies, bulk copies, and the barriers at which they arrive (PTX ISA 9.7.9.25, 9.7.13.15), as
//! instructions name them.
//!
//! Not here: what a step makes of a barrier's word (`semantics::phase`), and when a copy arrives, which is
//! the machine's.

use durawarp_checkpoint::value;

/// What a warp does with the groups of its asynchronous copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyStep {
    /// The copies since the last commit are a group (`cp.async.commit_group`).
    Commit,
    /// Waits for all groups but the last ones, of this number (`cp.async.wait_group`).
    Wait(u32),
    /// Waits for all copies (`cp.async.wait_all`).
    WaitAll,
}

/// What a warp does with the groups of its bulk copies from shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkStep {
    /// The copies since the last commit are a group (`cp.async.bulk.commit_group`).
    Commit,
    /// Waits for all groups but the last ones, of this number (`cp.async.bulk.wait_group`).
    Wait(u32),
    /// Waits until these have read shared memory (`cp.async.bulk.wait_group.read`).
    WaitRead(u32),
}

/// Where a bulk copy goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkKind {
    /// Global memory to shared memory, which completes bytes at its `mbarrier`.
    Load,
    /// Shared memory to global memory, in a group.
    Store,
    /// Each element of shared memory is combined with one of global memory, in a group.
    Reduce,
    /// Global memory to the L2.
    Prefetch,
    /// Shared memory of the own CTA to that of a CTA of the cluster, which completes bytes at its `mbarrier`;
    /// elements there are written over, or combined with what comes.
    Send,
    /// Takes a cluster that has not begun from the grid: the answer goes to shared memory, and completes its
    /// bytes at its `mbarrier` (`launch_control`).
    Cancel,
}

value!(choice BulkKind { Load, Store, Reduce, Prefetch, Send, Cancel });

impl BulkKind {
    /// It writes shared memory, and completes bytes at a barrier there.
    pub fn completes(self) -> bool {
        matches!(self, BulkKind::Load | BulkKind::Send | BulkKind::Cancel)
    }

    /// It writes global memory, in a group.
    pub fn writes_global(self) -> bool {
        matches!(self, BulkKind::Store | BulkKind::Reduce)
    }

    /// It reads shared memory.
    pub fn reads_shared(self) -> bool {
        self.writes_global() || self == BulkKind::Send
    }
}

/// Which bytes of a copy are moved, by further operands of its instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkBytes {
    All,
    /// All but some at either end, which may lie outside an allocation (`.ignore_oob`).
    Within,
    /// Those of each 16 whose bits are set (`.cp_mask`).
    Masked,
}

value!(choice BulkBytes { All, Within, Masked });

/// What a copy of a tile has of its tensor (PTX ISA 5.5.3, 5.5.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TileMode {
    /// A box (`.tile`).
    Box,
    /// Four rows of a tensor of two dimensions, by their numbers (`.tile::gather4`, `.tile::scatter4`).
    Rows,
    /// Pixels in the order of a convolution (`.im2col`, `.im2col_no_offs`).
    Pixels,
}

value!(choice TileMode { Box, Rows, Pixels });

/// A step of the word of an `mbarrier`; a and b are the operands of the atomic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseOp {
    /// A word whose phases expect a arrivals.
    Begin,
    /// No barrier is there any more.
    End,
    /// The word after a arrivals. Bit 0 of b: they must not end the phase; bit 1: later phases expect as
    /// many fewer.
    Arrive,
    /// The same, when all asynchronous copies that the warp has issued before have arrived.
    ArriveBehindCopies,
    /// The same, when all products in tensor memory that its CTA has begun before are done.
    ArriveBehindProducts,
    /// The word with a more arrivals pending.
    Await,
    /// The word with a more bytes awaited (`expect_tx`).
    Expect,
    /// The word with a fewer bytes awaited (`complete_tx`).
    Complete,
    /// The word with a more bytes awaited, after one arrival; b as of an arrival.
    ArriveExpecting,
}

value!(choice PhaseOp { Begin, End, Arrive, ArriveBehindCopies, ArriveBehindProducts, Await, Expect, Complete, ArriveExpecting });
