//! Products of four warps at once (`wgmma`, PTX ISA 9.7.15), as instructions name them.
//!
//! A warp of such a group has 16 of the 64 rows of a and d. Its part is as many products of m = 16 and n = 8
//! ([`MatrixOp`]) as d has columns by 8. Registers of d are more than an instruction has room for: they are
//! in a table of the kernel (`Kernel::group_products`). Operands are slots.

use super::super::alu::{MatrixFactors, MatrixOp, MatrixSums};

/// Rows of a and d of a product of four warps.
pub const GROUP_ROWS: u32 = 64;

/// What a warp of a group does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupStep {
    /// Accesses of registers are in order here (`wgmma.fence`).
    Fence,
    /// A product, of entry `imm` of the kernel's table (`wgmma.mma_async`).
    Multiply,
    /// The products since the last commit are a group (`wgmma.commit_group`).
    Commit,
    /// Waits for all groups but the last ones, of this number (`wgmma.wait_group`).
    Wait(u32),
}

impl GroupStep {
    /// The instruction's name.
    pub fn name(self) -> &'static str {
        match self {
            GroupStep::Fence => "wgmma.fence",
            GroupStep::Multiply => "wgmma.mma_async",
            GroupStep::Commit => "wgmma.commit_group",
            GroupStep::Wait(_) => "wgmma.wait_group",
        }
    }
}

/// Elements of a and b, as far as the time of a product depends on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupElements {
    /// `f16`, `bf16`
    Half,
    Tf32,
    /// 8-bit floats.
    Fp8,
    /// 8-bit integers.
    Bytes,
    /// Single bits.
    Bits,
    /// 4-bit floats, two a byte, in tensor memory alone.
    Fp4,
}

impl GroupElements {
    /// Those of a product of each warp; none, where products of four warps have no such.
    pub(crate) fn of(factors: MatrixFactors) -> Option<GroupElements> {
        match factors {
            MatrixFactors::Half(_) => Some(GroupElements::Half),
            MatrixFactors::Tf32 => Some(GroupElements::Tf32),
            MatrixFactors::Fp8(..) => Some(GroupElements::Fp8),
            MatrixFactors::Bytes(..) => Some(GroupElements::Bytes),
            MatrixFactors::Bits(_) => Some(GroupElements::Bits),
            MatrixFactors::Nibbles(..)
            | MatrixFactors::Tiny(..)
            | MatrixFactors::Scaled(_)
            | MatrixFactors::Double
            | MatrixFactors::Quads(_) => None,
        }
    }

    /// Elements of a row of a: 32 bytes of them. Of a sparse a they are those that are there: no others are
    /// multiplied.
    pub fn depth(self) -> u32 {
        match self {
            GroupElements::Tf32 => 8,
            GroupElements::Half => 16,
            GroupElements::Fp8 | GroupElements::Bytes => 32,
            GroupElements::Bits => 256,
            GroupElements::Fp4 => 64,
        }
    }
}

/// d = a b + d of four warps, or d = a b.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupProduct {
    pub elements: GroupElements,
    /// Columns of b and d, a multiple of 8.
    pub columns: u16,
    /// a is in registers.
    pub a_in_registers: bool,
    /// The first register of d: products to the same one are in order.
    pub accumulator: u16,
    /// It ends a group, as some do in a trace; in PTX `wgmma.commit_group` does.
    pub ends_group: bool,
    /// What it computes with; none in a trace, which has no values.
    pub operands: Option<GroupOperands>,
}

impl GroupProduct {
    /// Multiplications and additions of all four warps, which is what rates of tensor cores count.
    pub fn operations(&self) -> u32 {
        2 * GROUP_ROWS * u32::from(self.columns) * self.elements.depth()
    }
}

/// Registers of d for 8 columns.
pub(crate) fn group_registers(sums: MatrixSums) -> usize {
    if sums == MatrixSums::F16 { 2 } else { 4 }
}

/// Operands of a [`GroupProduct`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupOperands {
    /// The product of each 8 columns.
    pub op: MatrixOp,
    pub a: GroupFactor,
    /// The metadata of a sparse a.
    pub metadata: u16,
    /// The 64-bit descriptor of b in shared memory.
    pub b: u16,
    /// b lies by rows.
    pub b_by_rows: bool,
    /// A predicate, and what it is where d is added to; else d starts from 0 (`scale-d`).
    pub adds: (u16, bool),
    /// The product is subtracted: one of `imm-scale-a` and `imm-scale-b` is -1.
    pub subtracts: bool,
    /// 32-bit registers of d, in the order of columns: four for 8 of them, of `f16` two.
    pub d: Box<[u16]>,
}

/// Where a is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupFactor {
    /// In registers, as that of `mma` with m = 16.
    Registers([u16; 4]),
    /// In shared memory, by a 64-bit descriptor; by columns or by rows.
    Shared {
        /// The descriptor.
        descriptor: u16,
        /// It lies by columns.
        by_columns: bool,
    },
}
