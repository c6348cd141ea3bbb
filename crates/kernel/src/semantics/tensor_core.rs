//! Products that sum in tensor memory (`tcgen05.mma`, PTX ISA 9.7.16.10): d = a b + d of 64 or 128 rows of a
//! CTA, with a from shared or tensor memory and b from shared memory. What a pair of CTAs makes of it is in
//! `tensor_pair`.
//!
//! ```text
//! descriptor of the instruction   2 sparse   3 saturate   5-4 d: 0 f16, 1 f32, 2 s32   9-7 a   12-10 b
//!                                 13, 14 negate a, b   15, 16 across: a, b   22-17 columns / 8   28-24 rows / 16
//! ```
//! Row r of d is lane r of 128 rows, and lane 32 (r / 16) + r % 16 of 64, from the address' lane on; a column
//! is one of tensor memory, of `f16` its lower half. a in tensor memory has 32 bytes a row in 8 columns, in
//! the same lanes. A product is one of [`matrix`](super::matrix) for each 16 rows and 8 columns, and sums
//! are taken as there.
//!
//! Source: PTX ISA 9.7.16.4.2 (descriptor), 9.7.16.10.5 (layouts D and F of d); where rows of 64 lie was
//! tried with kernels of Triton. Chosen as for other products: order and precision of sums. Invariant: d is
//! written at once, although a program may count on it only behind an arrival.

use durawarp_checkpoint::value;

use super::super::alu::{Fp8, HalfFormat, MatrixFactors, MatrixOp, MatrixSums, Round, TinyFloat};
use super::super::ir::{GroupElements, LANES, NONE, TensorKind, TensorProduct};
use super::super::tensor_memory::TensorMemory;
use super::matrix::{MatrixTile, product};
use super::matrix_group::{GroupMisfit, loaded, signs_of};
use super::shared_matrix::SharedMatrix;
use super::tiny::{fragment, shared_line, tensor_line};
use super::{Frame, V32, half};

/// Rows of a product of `matrix`.
const ROWS: u32 = 16;
/// Columns of tensor memory that a has of a row: 32 bytes.
const FACTOR_COLUMNS: u32 = 8;

/// What the descriptor of an instruction says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProductShape {
    pub(crate) op: MatrixOp,
    pub(crate) elements: GroupElements,
    /// Rows of a CTA.
    pub(crate) rows: u32,
    pub(crate) columns: u32,
    pub(super) negates: bool,
    /// a, b lie across.
    across: [bool; 2],
    /// Elements of a, b of fewer than 8 bits, which become those of `e4m3`.
    tiny: [Option<TinyFloat>; 2],
    /// Of both CTAs of a pair.
    pub(super) paired: bool,
}

impl ProductShape {
    /// # Errors
    /// What it says that is not supported.
    pub(crate) fn of(kind: TensorKind, paired: bool, descriptor: u32) -> Result<ProductShape, String> {
        let bits = |from: u32, count: u32| descriptor >> from & ((1 << count) - 1);
        let not = |what: &str| format!("`tcgen05.mma` with the descriptor {descriptor:#010x}: {what}");
        if bits(2, 1) != 0 {
            return Err(not("a sparse a is not supported"));
        }
        let (a, b) = (bits(7, 3), bits(10, 3));
        let floats = if kind == TensorKind::Fp8 { [a, b].map(TinyFloat::of) } else { [None; 2] };
        // What is narrower is read as `e4m3`, which has all its values.
        let fp8 = |of: TinyFloat| of.eight().unwrap_or(Fp8::E4m3);
        let tiny = floats.map(|of| of.filter(|of| of.eight().is_none()));
        let (factors, elements) = match (kind, a, b) {
            (TensorKind::Half, 0, 0) => (MatrixFactors::Half(HalfFormat::F16), GroupElements::Half),
            (TensorKind::Half, 1, 1) => (MatrixFactors::Half(HalfFormat::Bf16), GroupElements::Half),
            (TensorKind::Tf32, 2, 2) => (MatrixFactors::Tf32, GroupElements::Tf32),
            (TensorKind::Fp8, ..) => match floats {
                [Some(a), Some(b)] => (MatrixFactors::Fp8(fp8(a), fp8(b)), GroupElements::Fp8),
                _ => return Err(not("the types of a and b are none of this kind")),
            },
            (TensorKind::Bytes, 0 | 1, 0 | 1) => (MatrixFactors::Bytes(a == 1, b == 1), GroupElements::Bytes),
            _ => return Err(not("the types of a and b are none of this kind, or differ")),
        };
        // Sums of integers are integers, those of floats halves or singles.
        let of_integers = kind == TensorKind::Bytes;
        let sums = match bits(4, 2) {
            0 if matches!(kind, TensorKind::Half | TensorKind::Fp8) => MatrixSums::F16,
            1 if !of_integers => MatrixSums::F32,
            2 if of_integers => MatrixSums::S32(bits(3, 1) == 1),
            _ => return Err(not("d has no such type")),
        };
        let (rows, columns) = (16 * bits(24, 5), 8 * bits(17, 6));
        // Of a pair each CTA has half of the rows, and half of the columns of b.
        let (sizes, ctas) = if paired { ("128 or 256 and 16, 32 to", 2) } else { ("64 or 128 and 8 to", 1) };
        let fits = matches!(rows / ctas, 64 | 128) && (8 * ctas..=256).contains(&columns);
        if !fits || !columns.is_multiple_of(8 * ctas) {
            return Err(not(&format!("{rows} rows and {columns} columns, where {sizes} 256 are supported")));
        }
        let rows = rows / ctas;
        let across = [bits(15, 1) == 1, bits(16, 1) == 1];
        if across.contains(&true) && elements == GroupElements::Tf32 {
            return Err(not("`tf32` across, whose swizzle has atoms of 32 bytes, is not supported"));
        }
        if tiny.iter().zip(across).any(|(of, across)| across && of.is_some()) {
            return Err(not("elements of fewer than 8 bits have no rows that lie across"));
        }
        let negates = (bits(13, 1) ^ bits(14, 1)) == 1;
        let op = MatrixOp::dense(factors, sums, true);
        Ok(ProductShape { op, elements, rows, columns, negates, across, tiny, paired })
    }

    /// The lane of a row, from that of the address on.
    fn lane(&self, row: u32) -> u32 {
        if self.rows == 128 || self.paired { row } else { 32 * (row / ROWS) + row % ROWS }
    }

    /// Columns of tensor memory that d has.
    pub(super) fn columns_of_sums(&self) -> u32 {
        if self.is_folded() { self.columns / 2 } else { self.columns }
    }

    /// The upper half of its columns lies in the upper half of the lanes (layout B).
    fn is_folded(&self) -> bool {
        self.paired && self.rows == 64
    }

    /// How many lanes below its rows, and in which column of d, a column of the product lies.
    fn fold(&self, column: u32) -> [u32; 2] {
        let half = self.columns / 2;
        if self.is_folded() && column >= half { [64, column - half] } else { [0, column] }
    }
}

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
    fn load_a(
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

/// d = a b + d of one CTA.
///
/// # Errors
/// What is not supported, or not there.
pub(crate) fn multiply_in_tensor_memory(
    values: &TensorValues,
    memory: &mut TensorMemory,
    shared: &[u8],
) -> Result<(), TensorMisfit> {
    let operands = TensorOperands::of(values)?;
    operands.place(operands.d, operands.shape.columns, memory)?;
    // All of b is brought into registers once, and 16 rows of a at a time.
    let b = operands.load_b(shared)?;
    let [masks @ .., _, _, _, _] = values.disabled;
    multiply_rows(&operands, values, masks, b.iter(), memory, shared)
}

/// The rows of a CTA, by all of b, of which eight columns come at a time.
///
/// # Errors
/// What is not supported, or not there.
pub(super) fn multiply_rows<'b>(
    operands: &TensorOperands,
    values: &TensorValues,
    disabled: [u32; 4],
    b: impl Iterator<Item = &'b [V32; 2]> + Clone,
    memory: &mut TensorMemory,
    shared: &[u8],
) -> Result<(), TensorMisfit> {
    let shape = operands.shape;
    let d = operands.place(operands.d, shape.columns_of_sums(), memory)?;
    let signs = if shape.negates { signs_of(shape.op.factors) } else { 0 };
    // The signs of products are those of a.
    for first in (0..shape.rows).step_by(ROWS as usize) {
        let (mut a, mut of) = ([[0; LANES]; 4], None);
        for (tile, b) in (0..).zip(b.clone()) {
            let [below, column] = shape.fold(8 * tile);
            // Sums in the upper half of the lanes have their a there, too.
            if of != Some(below) {
                of = Some(below);
                a = operands.load_a(first, below, memory, shared)?;
                a.iter_mut().flatten().for_each(|word| *word ^= signs);
            }
            let mut sums = Sums { shape, at: [d[0] + below, d[1]], first, column, memory, disabled };
            let c = if values.adds { sums.read(values.scale) } else { [[0; LANES]; 4] };
            let tile =
                MatrixTile { a: a.each_ref().map(Some), b: [Some(&b[0]), Some(&b[1]), None, None], c, metadata: None };
            let Ok(out) = product(shape.op, &tile) else { unreachable!("a dense product has no metadata") };
            sums.write(&out);
        }
    }
    Ok(())
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

/// 16 rows and 8 columns of d.
struct Sums<'m> {
    shape: ProductShape,
    at: [u32; 2],
    first: u32,
    column: u32,
    memory: &'m mut TensorMemory,
    disabled: [u32; 4],
}

impl Sums<'_> {
    /// Calls `f` with each cell, the register that has its value, and which half of it; lanes that stay as
    /// they are left out where it `writes`.
    fn each(&mut self, writes: bool, mut f: impl FnMut(&mut u32, usize, usize, u32)) {
        let of_halves = self.shape.op.sums == MatrixSums::F16;
        let [lane, column] = self.at;
        for thread in 0..LANES as u32 {
            for n in 0..4 {
                let row = self.first + thread / 4 + 8 * (n / 2);
                let lane = lane + self.shape.lane(row);
                if writes && self.disabled[lane as usize / 32] >> (lane % 32) & 1 == 1 {
                    continue;
                }
                let cell = self.memory.cell(lane, column + self.column + 2 * (thread % 4) + n % 2);
                let (register, half) = if of_halves { (n / 2, n % 2) } else { (n, 0) };
                f(cell, register as usize, thread as usize, half);
            }
        }
    }

    /// Its registers, as those of `mma`, by 2 to the power of minus `scale`.
    fn read(&mut self, scale: u8) -> [V32; 4] {
        let mut registers = [[0; LANES]; 4];
        let sums = self.shape.op.sums;
        self.each(false, |cell, register, thread, half| {
            let value = match sums {
                MatrixSums::F16 => u32::from(scaled_half(*cell as u16, scale)) << (16 * half),
                MatrixSums::F32 if scale > 0 => (f32::from_bits(*cell) * power(scale)).to_bits(),
                MatrixSums::F32 | MatrixSums::F64 | MatrixSums::S32(_) => *cell,
            };
            registers[register][thread] |= value;
        });
        registers
    }

    fn write(&mut self, registers: &[V32; 4]) {
        let of_halves = self.shape.op.sums == MatrixSums::F16;
        self.each(true, |cell, register, thread, half| {
            let word = registers[register][thread];
            *cell = if of_halves { word >> (16 * half) & 0xffff } else { word };
        });
    }
}

/// 2 to the power of minus `scale`, which is 15 at most.
fn power(scale: u8) -> f32 {
    f32::from_bits((127 - u32::from(scale)) << 23)
}

fn scaled_half(bits: u16, scale: u8) -> u16 {
    if scale == 0 {
        return bits;
    }
    let scaled = half::to_single(HalfFormat::F16, bits, false) * power(scale);
    half::convert(scaled.into(), HalfFormat::F16, Round::Nearest, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_says_types_sizes_and_signs() {
        let of = |kind, bits| ProductShape::of(kind, false, bits);
        // 128 rows, 64 columns, single precision of f16: what Triton has for a tile of that size.
        let shape = of(TensorKind::Half, 8 << 24 | 8 << 17 | 1 << 4).unwrap();
        assert_eq!((shape.rows, shape.columns, shape.negates, shape.across), (128, 64, false, [false; 2]));
        assert_eq!(shape.op, MatrixOp::dense(MatrixFactors::Half(HalfFormat::F16), MatrixSums::F32, true));
        let bytes = of(TensorKind::Bytes, 4 << 24 | 1 << 17 | 2 << 4 | 1 << 7 | 1 << 3).unwrap();
        assert_eq!(bytes.op, MatrixOp::dense(MatrixFactors::Bytes(true, false), MatrixSums::S32(true), true));
        assert_eq!([0, 15, 16, 63].map(|row| bytes.lane(row)), [0, 15, 32, 96 + 15]);
        assert!(of(TensorKind::Half, 8 << 24 | 8 << 17 | 1 << 4 | 1 << 13 | 1 << 14).is_ok_and(|of| !of.negates));
        for wrong in [1 << 2, 3 << 4, 1 << 7] {
            assert!(of(TensorKind::Half, 8 << 24 | 8 << 17 | 1 << 4 | wrong).is_err(), "{wrong:#x}");
        }
        let tiny = of(TensorKind::Fp8, 8 << 24 | 8 << 17 | 1 << 4 | 3 << 7).unwrap();
        assert_eq!(
            (tiny.tiny, tiny.op.factors),
            ([Some(TinyFloat::E2m3), None], MatrixFactors::Fp8(Fp8::E4m3, Fp8::E4m3))
        );
        assert!(of(TensorKind::Fp8, 8 << 24 | 8 << 17 | 1 << 4 | 3 << 7 | 1 << 15).is_err(), "6 bits, across");
        assert!(of(TensorKind::Fp8, 8 << 24 | 8 << 17 | 1 << 4 | 2 << 7).is_err(), "none of the codes");
        assert!(of(TensorKind::Tf32, 8 << 24 | 8 << 17 | 1 << 4 | 2 << 7 | 2 << 10 | 1 << 15).is_err(), "across");
        assert!(of(TensorKind::Half, 2 << 24 | 8 << 17 | 1 << 4).is_err(), "32 rows");
    }
}
