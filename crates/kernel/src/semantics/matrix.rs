//! Products of matrices (PTX ISA 9.7.14, "Warp Level Matrix Multiply-Accumulate Instructions"): `mma.sync`.
//!
//! ```text
//! lane = 4 g + t          a: 16 rows          b: 8 columns        c, d: 16 x 8
//! register n of a         row g + 8 (n & 1)   elements w t .. of step n / 2
//! register n of b                             column g, elements w t .. of step n
//! register n of c, d      row g + 8 (n / 2), column 2 t + (n & 1); of f16: row g + 8 n, columns 2 t, 2 t + 1
//! ```
//! `w` is the number of elements in a register: 2 of 16 bits, 1 of `tf32`, 4 bytes or 8-bit floats, 8
//! integers of 4 bits, 32 bits. A step is 4 `w` deep, and a product has two or one. These are the ISA's
//! layouts in one rule; those of m8n8k16 (bytes), m8n8k32 (4 bits) and m8n8k128 (bits) are its upper half, of
//! one step. Of a sparse a, b has twice the steps.
//!
//! | choice where the ISA leaves order and precision of sums open | |
//! |---|---|
//! | products | exact |
//! | sums of floats | in the order of k, from c on, each rounded to single precision, to nearest, ties to even |
//! | result in `f16` | the single, rounded once more |
//! | denormals | kept |
//! | NaN | `0x7fffffff`, in `f16` `0x7fff` |
//!
//! Sums of integers and of bits are exact, then clamped or taken modulo 2^32. Measured tensor cores add
//! several products at once and truncate (Fasi et al., "Numerical behavior of NVIDIA tensor cores", PeerJ CS
//! 2021): results of floats differ from theirs in the last bits. Sums of 8-bit floats differ more: an H800
//! keeps some 14 bits of them (DeepSeek-V3 Technical Report, arXiv 2412.19437, 3.3.2; `wgmma`), where here
//! are 24.
//!
//! Invariants: the same bits on every host; sources are read before destinations are written. Where elements
//! of sparse matrices lie is in `matrix_sparse.rs`; what is not multiplied there is not looked at. Products
//! m8n8k4 are in `matrix_small.rs`.

use super::super::alu::{BitProduct, HalfFormat, MatrixFactors, MatrixOp, MatrixSums, Round, ScaledFactors, TinyFloat};
use super::super::ir::{Fragments, Inst, LANES, NONE};
use super::canonical::canon32;
use super::matrix_sparse::{Misfit, columns};
use super::{Frame, V32, half, matrix_small, narrow, rounding, tiny};

/// Rows of a, c and d.
const ROWS: usize = 16;
/// Columns of b, c and d.
const COLUMNS: usize = 8;

/// What a product of 16 rows and 8 columns is made of: registers of a and b as far as there are, and those of
/// c, zeros where there are fewer than four.
pub(crate) struct MatrixTile<'a> {
    pub(crate) a: [Option<&'a V32>; 4],
    pub(crate) b: [Option<&'a V32>; 4],
    pub(crate) c: [V32; 4],
    /// Of a sparse a.
    pub(crate) metadata: Option<&'a V32>,
}

/// d = a b + c in one register group, all lanes of which take part.
///
/// # Errors
/// Metadata of a sparse a that name no elements.
pub(crate) fn multiply(f: &mut Frame<'_>, inst: &Inst, op: MatrixOp, fragments: &Fragments) -> Result<(), Misfit> {
    match op.factors {
        MatrixFactors::Double => matrix_small::doubles(f, inst, fragments),
        MatrixFactors::Quads(of) => matrix_small::quads(f, inst, of, op.sums, fragments),
        MatrixFactors::Half(_)
        | MatrixFactors::Tf32
        | MatrixFactors::Bytes(..)
        | MatrixFactors::Fp8(..)
        | MatrixFactors::Tiny(..)
        | MatrixFactors::Scaled(_)
        | MatrixFactors::Nibbles(..)
        | MatrixFactors::Bits(_) => {
            let there = |slot| (slot != NONE).then(|| f.get32(slot));
            let tile = MatrixTile {
                a: inst.src.map(there),
                b: fragments.b.map(there),
                c: fragments.c.map(|slot| there(slot).copied().unwrap_or([0; LANES])),
                metadata: there(fragments.metadata),
            };
            let out = product(op, &tile)?;
            for (&d, value) in inst.dst.iter().zip(&out).filter(|(slot, _)| **slot != NONE) {
                f.put32(d, value);
            }
        }
    }
    Ok(())
}

/// The registers of d = a b + c, of elements of 32 bits or less.
///
/// # Errors
/// Metadata of a sparse a that name no elements.
pub(crate) fn product(op: MatrixOp, tile: &MatrixTile<'_>) -> Result<[V32; 4], Misfit> {
    match op.factors {
        MatrixFactors::Half(HalfFormat::F16) => {
            // 22 bits of a product, with exponents from -48 to 32, fit a single.
            let value = |bits, n| half_of(HalfFormat::F16, bits, n);
            floats::<2, 16, 32>(op, tile, [&value; 2], |a, b, sum| sum + a * b)
        }
        MatrixFactors::Half(HalfFormat::Bf16) => {
            let value = |bits, n| half_of(HalfFormat::Bf16, bits, n);
            floats::<2, 16, 32>(op, tile, [&value; 2], fused)
        }
        MatrixFactors::Tf32 => {
            let value = |bits: u32, _| f32::from_bits(bits & 0xffff_e000);
            floats::<1, 8, 16>(op, tile, [&value; 2], fused)
        }
        MatrixFactors::Fp8(of_a, of_b) => {
            // 8 bits of a product, with exponents from -32 to 31, fit a single.
            let value = |format| move |bits: u32, n: u32| narrow::single_of_fp8(format, bits >> (8 * n));
            let [a, b] = [of_a, of_b].map(value);
            floats::<4, 32, 64>(op, tile, [&a, &b], |a, b, sum| sum + a * b)
        }
        MatrixFactors::Tiny(of_a, of_b) => {
            let value = |of: TinyFloat| move |bits: u32, n: u32| of.contained((bits >> (8 * n)) as u8);
            let [a, b] = [of_a, of_b].map(value);
            floats::<4, 32, 64>(op, tile, [&a, &b], |a, b, sum| sum + a * b)
        }
        MatrixFactors::Scaled(of) => scaled(op, of, tile),
        MatrixFactors::Bytes(a, b) => {
            let values = [a, b].map(|signed| move |bits: u32, n: u32| field::<8>(bits, n, signed));
            integers::<4, 32, 64>(op, tile, &values, |a, b| a * b)
        }
        MatrixFactors::Nibbles(a, b) => {
            let values = [a, b].map(|signed| move |bits: u32, n: u32| field::<4>(bits, n, signed));
            integers::<8, 64, 128>(op, tile, &values, |a, b| a * b)
        }
        MatrixFactors::Bits(product) => {
            // A register of bits is one element.
            let values = [(); 2].map(|()| |bits: u32, _: u32| bits as i32);
            let counted = |a: i32, b: i32| match product {
                BitProduct::And => (a & b).count_ones() as i32,
                BitProduct::Xor => (a ^ b).count_ones() as i32,
            };
            integers::<1, 8, 16>(op, tile, &values, counted)
        }
        MatrixFactors::Double | MatrixFactors::Quads(_) => unreachable!("these have rules of their own"),
    }
}

/// Half `n` of a register.
#[inline]
fn half_of(format: HalfFormat, bits: u32, n: u32) -> f32 {
    half::to_single(format, (bits >> (16 * n)) as u16, false)
}

/// a b + sum with one rounding, for factors of at most 24 bits.
#[inline]
fn fused(a: f32, b: f32, sum: f32) -> f32 {
    rounding::fma32(a, b, sum, Round::Nearest)
}

/// Integer `n` of `BITS` bits in a register.
#[inline]
fn field<const BITS: u32>(bits: u32, n: u32, signed: bool) -> i32 {
    let upper = bits << (32 - BITS * (n + 1));
    if signed { upper as i32 >> (32 - BITS) } else { (upper >> (32 - BITS)) as i32 }
}

/// Elements of rows of a and of columns of b, in the order of k: `A` and, for a sparse a, `B` at most.
struct Factors<T, const A: usize, const B: usize> {
    a: [[T; A]; ROWS],
    b: [[T; B]; COLUMNS],
    /// Elements of a row of a.
    depth: usize,
    /// Where in b's columns their factors are, of a sparse a.
    columns: Option<[[u8; A]; ROWS]>,
}

impl<T: Copy, const A: usize, const B: usize> Factors<T, A, B> {
    /// The products of a row and a column, added to `start` one after another.
    #[inline]
    fn fold<S>(&self, row: usize, column: usize, start: S, add: impl Fn(T, T, S) -> S) -> S {
        let (a, b) = (&self.a[row], &self.b[column]);
        match &self.columns {
            None => a.iter().zip(b).take(self.depth).fold(start, |sum, (&a, &b)| add(a, b, sum)),
            Some(columns) => {
                let places = a.iter().zip(&columns[row]).take(self.depth);
                places.fold(start, |sum, (&a, &at)| add(a, b[usize::from(at)], sum))
            }
        }
    }
}

/// The factors as the values make them of registers with `W` elements.
#[inline]
fn factors<T: Copy + Default, const W: usize, const A: usize, const B: usize>(
    op: MatrixOp,
    tile: &MatrixTile<'_>,
    a_value: impl Fn(u32, u32) -> T,
    b_value: impl Fn(u32, u32) -> T,
) -> Result<Factors<T, A, B>, Misfit> {
    let (mut a, mut b) = ([[T::default(); A]; ROWS], [[T::default(); B]; COLUMNS]);
    let steps = if op.deep { 2 } else { 1 };
    for step in 0..steps {
        for half in 0..2 {
            // Of 8 rows there are no lower ones: zeros.
            let (Some(registers), first_row) = (tile.a[2 * step + half], 8 * half) else { continue };
            for (lane, &register) in registers.iter().enumerate() {
                for n in 0..W {
                    a[lane / 4 + first_row][(4 * step + lane % 4) * W + n] = a_value(register, n as u32);
                }
            }
        }
    }
    // A sparse a has half of the elements of its rows, and b all of its columns.
    for (step, registers) in tile.b.iter().enumerate() {
        for (lane, &register) in registers.iter().flat_map(|register| register.iter().enumerate()) {
            for n in 0..W {
                b[lane / 4][(4 * step + lane % 4) * W + n] = b_value(register, n as u32);
            }
        }
    }
    Ok(Factors { a, b, depth: 4 * W * steps, columns: columns::<A>(op, tile.metadata)? })
}

/// Where an element of c and d is: its register and lane, both halves of which it fills when there are 4
/// registers.
#[inline]
fn place(row: usize, column: usize, singles: bool) -> (usize, usize) {
    let (half, lane) = (row / 8, 4 * (row % 8) + column / 2);
    (if singles { 2 * half + column % 2 } else { half }, lane)
}

fn floats<const W: usize, const A: usize, const B: usize>(
    op: MatrixOp,
    tile: &MatrixTile<'_>,
    [a_value, b_value]: [&impl Fn(u32, u32) -> f32; 2],
    add: impl Fn(f32, f32, f32) -> f32,
) -> Result<[V32; 4], Misfit> {
    let factors = factors::<f32, W, A, B>(op, tile, a_value, b_value)?;
    let singles = op.sums == MatrixSums::F32;
    let mut out: [V32; 4] = [[0; LANES]; 4];
    for (row, column) in (0..ROWS).flat_map(|row| (0..COLUMNS).map(move |column| (row, column))) {
        // Two sums in halves share a register.
        let (register, lane) = place(row, column, singles);
        let shift = if singles { 0 } else { 16 * (column % 2) };
        let bits = tile.c[register][lane] >> shift;
        let start = if singles { f32::from_bits(bits) } else { half_of(HalfFormat::F16, bits, 0) };
        let sum = factors.fold(row, column, start, &add);
        out[register][lane] |= if singles {
            canon32(sum)
        } else {
            u32::from(half::convert(f64::from(sum), HalfFormat::F16, Round::Nearest, false)) << shift
        };
    }
    Ok(out)
}

/// Where a product with scaled blocks has its scale factors, among the registers that a tile has of b: those
/// of a's rows, those of b's columns, and which bytes of which lanes these are.
pub(crate) const SCALES: [usize; 2] = [2, 3];

/// d = (a scale_a) (b scale_b) + c (PTX ISA 9.7.14.3). Lane 4 g + 2 s or 4 g + 2 s + 1 has the factors of row
/// g or g + 8, where s is a's selector of lanes; lane 4 g + s those of column g.
#[cold]
fn scaled(op: MatrixOp, of: ScaledFactors, tile: &MatrixTile<'_>) -> Result<[V32; 4], Misfit> {
    let [b0, b1, ..] = tile.b;
    let plain = MatrixTile { a: tile.a, b: [b0, b1, None, None], c: tile.c, metadata: None };
    let packed = |bits: u32, n: u32| TinyFloat::E2m1.value(bits >> (4 * n));
    let bytes = |of: TinyFloat| move |bits: u32, n: u32| of.contained((bits >> (8 * n)) as u8);
    // Both kinds have a depth of their own; what is beyond stays zero.
    let (a, b, depth) = if of.factors == 1 {
        let Factors { a, b, depth, .. } = factors::<f32, 4, 64, 64>(op, &plain, bytes(of.a), bytes(of.b))?;
        (a, b, depth)
    } else {
        let Factors { a, b, depth, .. } = factors::<f32, 8, 64, 64>(op, &plain, packed, packed)?;
        (a, b, depth)
    };
    let selectors = tile.metadata.map_or(0, |words| words[0]);
    let scale = |slot: usize, lane: u32, byte: u32, k: usize| {
        let word = tile.b[SCALES[slot]].map_or(0, |words| words[lane as usize]);
        let block = (k * usize::from(of.factors) / depth) as u32;
        tiny::scale_factor(of.powers, (word >> (8 * (byte + block))) as u8)
    };
    let field = |n: u32| selectors >> (4 * n) & 0xf;
    let (of_a, of_b) = ((field(0), field(1) & 1), (field(2), field(3) & 3));
    let mut out: [V32; 4] = [[0; LANES]; 4];
    for (row, column) in (0..ROWS).flat_map(|row| (0..COLUMNS).map(move |column| (row, column))) {
        let (register, lane) = place(row, column, true);
        let lane_a = (4 * (row % 8) + row / 8) as u32 + 2 * of_a.1;
        let lane_b = 4 * column as u32 + of_b.1;
        let sum = (0..depth).fold(f32::from_bits(tile.c[register][lane]), |sum, k| {
            let scales = scale(0, lane_a, of_a.0, k) * scale(1, lane_b, of_b.0, k);
            rounding::plus(sum, f64::from(a[row][k] * b[column][k]) * scales)
        });
        out[register][lane] = canon32(sum);
    }
    Ok(out)
}

fn integers<const W: usize, const A: usize, const B: usize>(
    op: MatrixOp,
    tile: &MatrixTile<'_>,
    [a_value, b_value]: &[impl Fn(u32, u32) -> i32; 2],
    multiply: impl Fn(i32, i32) -> i32,
) -> Result<[V32; 4], Misfit> {
    let factors = factors::<i32, W, A, B>(op, tile, a_value, b_value)?;
    let mut out: [V32; 4] = [[0; LANES]; 4];
    for (row, column) in (0..ROWS).flat_map(|row| (0..COLUMNS).map(move |column| (row, column))) {
        let (register, lane) = place(row, column, true);
        // At most 32 products of 16 bits, or 64 of 8: no 32-bit sum of them overflows.
        let product: i32 = factors.fold(row, column, 0, |a, b, sum| sum + multiply(a, b));
        let sum = i64::from(tile.c[register][lane] as i32) + i64::from(product);
        let clamped = sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
        out[register][lane] = if op.sums == MatrixSums::S32(true) { clamped as u32 } else { sum as u32 };
    }
    Ok(out)
}
