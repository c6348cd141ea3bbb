//! Where a product in tensor memory has its factors: registers of a lane, matrices in shared memory, a in
//! tensor memory.
//!
//! ```text
//!   registers ── TensorValues ── descriptors read ── TensorOperands ── loaded ──> registers of `mma`, m = 16
//! ```
//! a in tensor memory has 32 bytes a row in 8 columns, in the lanes of d. Elements of fewer than 8 bits
//! become those of `e4m3`, which has all their values.
//!
//! Source: PTX ISA 9.7.16.4.1 (descriptors of matrices), 9.7.16.10. Invariants: functional driver and timed
//! machine take values from here; what is not in the CTA's memories is a misfit, found before d is written of
//! the rows that lack it. Not supported: swizzles of 32-byte atoms, absolute strides.

use durawarp_checkpoint::value;

use super::super::alu::TinyFloat;
use super::super::ir::{LANES, NONE, TensorKind, TensorProduct};
use super::super::tensor_memory::TensorMemory;
use super::matrix_group::{GroupMisfit, loaded};
use super::shared_matrix::SharedMatrix;
use super::tensor_shape::ProductShape;
use super::tiny::{fragment, shared_line, tensor_line};
use super::{Frame, V32};

/// Columns of tensor memory that a has of a row: 32 bytes.
const FACTOR_COLUMNS: u32 = 8;

/// Why a product is not defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TensorMisfit {
    Unsupported(String),
    /// Not in shared memory.
    Outside(u32),
}

/// Where a product has its factors and its sums.
pub(crate) struct TensorOperands {
    pub(crate) shape: ProductShape,
    /// The address of d.
    pub(super) d: u32,
    /// a in shared memory, or its address in tensor memory.
    a: Result<SharedMatrix, u32>,
    pub(super) b: SharedMatrix,
}

impl TensorOperands {
    /// Those of a lane.
    ///
    /// # Errors
    /// What a descriptor says that is not supported.
    pub(crate) fn of(values: &TensorValues) -> Result<Self, TensorMisfit> {
        let TensorValues { kind, paired, instruction, .. } = *values;
        let shape = ProductShape::of(kind, paired, instruction).map_err(TensorMisfit::Unsupported)?;
        let bytes = 32 / shape.elements.depth();
        let shared = |descriptor, across| matrix_of(descriptor, across, bytes, "a matrix of `tcgen05.mma`");
        let [a_across, b_across] = shape.across;
        let a = if values.a_in_tensor_memory { Err(values.a as u32) } else { Ok(shared(values.a, a_across)?) };
        Ok(TensorOperands { shape, d: values.d, a, b: shared(values.b, b_across)? })
    }

    /// The address of each chunk of shared memory of a CTA that is read.
    pub(crate) fn chunks(&self) -> Vec<u32> {
        let a = self.a.iter().flat_map(|a| a.chunks(0..self.shape.rows));
        a.chain(self.b.chunks(0..self.columns_of_b())).collect()
    }

    /// Columns of b that a CTA has.
    fn columns_of_b(&self) -> u32 {
        if self.shape.paired { self.shape.columns / 2 } else { self.shape.columns }
    }

    /// The columns of b that a CTA has, eight by eight.
    ///
    /// # Errors
    /// They are not in its shared memory.
    pub(super) fn load_b(&self, shared: &[u8]) -> Result<Vec<[V32; 2]>, TensorMisfit> {
        (0..self.columns_of_b() / 8).map(|tile| self.load_tile_of_b(8 * tile, shared)).collect()
    }

    /// Registers of b, 8 columns of it from `first` on.
    fn load_tile_of_b(&self, first: u32, shared: &[u8]) -> Result<[V32; 2], TensorMisfit> {
        let line = |of: TinyFloat, line| shared_line(&self.b, line, shared).map(|bytes| of.as_e4m3(&bytes, false));
        match self.shape.tiny[1] {
            Some(of) => fragment([0, 1], [first; 2], |at| line(of, at)).map_err(TensorMisfit::Outside),
            None => loaded(&self.b, self.shape.op, first, [0, 1], [0, 0], shared).map_err(outside),
        }
    }

    /// Registers of 16 rows of a, from row `first` on. In tensor memory `below` is added to their lanes.
    pub(super) fn load_a(
        &self,
        first: u32,
        below: u32,
        memory: &mut TensorMemory,
        shared: &[u8],
    ) -> Result<[V32; 4], TensorMisfit> {
        let (steps, rows) = ([0, 0, 1, 1], [0, 8, 0, 8]);
        let [lane, column] = match &self.a {
            Ok(_) => [0; 2],
            Err(address) => self.place(*address, FACTOR_COLUMNS, memory)?,
        };
        let lane = lane + below;
        match (&self.a, self.shape.tiny[0]) {
            (Ok(a), None) => loaded(a, self.shape.op, first, steps, rows, shared).map_err(outside),
            (Err(_), None) => Ok(factor_of(&self.shape, [lane, column], first, memory)),
            (a, Some(of)) => fragment(steps, rows.map(|row| first + row), |row| match a {
                Ok(a) => shared_line(a, row, shared).map(|bytes| of.as_e4m3(&bytes, false)),
                Err(_) => Ok(of.as_e4m3(&tensor_line(column, lane + self.shape.lane(row), memory), true)),
            })
            .map_err(TensorMisfit::Outside),
        }
    }

    /// First lane and column of an address in tensor memory, from where on the CTA has these columns.
    pub(super) fn place(&self, address: u32, columns: u32, memory: &TensorMemory) -> Result<[u32; 2], TensorMisfit> {
        let [lane, column] = [address >> 16, address & 0xffff];
        let last = self.shape.lane(self.shape.rows - 1) + self.shape.fold(self.shape.columns - 1)[0];
        if lane + last >= 128 || !matches!(lane, 0 | 16) || !memory.owns(column..column + columns) {
            return Err(TensorMisfit::Unsupported(format!(
                "`tcgen05.mma` at lane {lane} and columns {column} to {} of tensor memory, of which its CTA has not all",
                column + columns - 1
            )));
        }
        Ok([lane, column])
    }
}

/// What the operands of a product of a thread are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorValues {
    pub(super) kind: TensorKind,
    /// Of both CTAs of a pair.
    pub(super) paired: bool,
    /// The address of d, the descriptor of a, or its address in tensor memory, that of b, and the
    /// instruction's.
    pub(super) d: u32,
    pub(super) a: u64,
    pub(super) a_in_tensor_memory: bool,
    pub(super) b: u64,
    pub(super) instruction: u32,
    /// d is added to.
    pub(super) adds: bool,
    /// Masks of lanes of d that stay as they are; of a pair, those of the CTA of odd rank come last.
    pub(super) disabled: [u32; 8],
    pub(super) scale: u8,
    /// Of scaled blocks, addresses of the scale factors of a and b.
    pub(super) scales: [u32; 2],
}

value!(record TensorValues {
    kind, paired, d, a, a_in_tensor_memory, b, instruction, adds, disabled, scale, scales,
});

impl TensorValues {
    /// Those of a lane.
    pub(crate) fn of(f: &Frame<'_>, lane: usize, (kind, paired): (TensorKind, bool), of: &TensorProduct) -> Self {
        let (adds, when) = of.adds;
        let word = |slot| if slot == NONE { 0 } else { f.get32(slot)[lane] };
        TensorValues {
            kind,
            paired,
            d: f.get32(of.d)[lane],
            a: if of.a_in_tensor_memory { f.get32(of.a)[lane].into() } else { f.get64(of.a)[lane] },
            a_in_tensor_memory: of.a_in_tensor_memory,
            b: f.get64(of.b)[lane],
            instruction: f.get32(of.instruction)[lane],
            adds: (f.get_p(adds) >> lane & 1 == 1) == when,
            disabled: of.disabled.map(word),
            scale: of.scale,
            scales: of.scales.map(word),
        }
    }
}

/// The matrix that a descriptor names. `bytes` are those of an element; `what` begins the message of a fault.
///
/// # Errors
/// What the descriptor says that is not supported.
pub(super) fn matrix_of(descriptor: u64, across: bool, bytes: u32, what: &str) -> Result<SharedMatrix, TensorMisfit> {
    SharedMatrix::of_tensor_core(descriptor, across, bytes).ok_or_else(|| {
        let has = "has a swizzle of 32-byte atoms or an absolute stride, which are not supported";
        TensorMisfit::Unsupported(format!("{what} ({descriptor:#018x}) {has}"))
    })
}

/// A matrix of a lane lies outside of shared memory.
fn outside(misfit: GroupMisfit) -> TensorMisfit {
    match misfit {
        GroupMisfit::Outside { address, .. } => TensorMisfit::Outside(address),
        GroupMisfit::Several(_) => unreachable!("a lane has one descriptor"),
        GroupMisfit::Metadata(_) => unreachable!("a is dense"),
    }
}

/// Registers of a, as of `mma` with m = 16, from tensor memory.
fn factor_of(shape: &ProductShape, [lane, column]: [u32; 2], first: u32, memory: &mut TensorMemory) -> [V32; 4] {
    let mut registers = [[0; LANES]; 4];
    for (n, register) in (0..).zip(&mut registers) {
        for (thread, word) in (0..).zip(register.iter_mut()) {
            let row = first + thread / 4 + 8 * (n & 1);
            *word = *memory.cell(lane + shape.lane(row), column + 4 * (n / 2) + thread % 4);
        }
    }
    registers
}
