//! Products of matrices (PTX ISA 9.7.14, "Warp Level Matrix Multiply-Accumulate Instructions"): `mma.sync`.
//!
//! ```text
//! lane = 4 g + t          a: 16 rows          b: 8 columns        c, d: 16 x 8
//! register n of a         row g + 8 (n & 1)   elements w t .. of step n / 2
//! register n of b                             column g, elements w t .. of step n
//! register n of c, d      row g + 8 (n / 2), column 2 t + (n & 1); of f16: row g + 8 n, columns 2 t, 2 t + 1
//! ```
//! `w` is the number of elements in a register: 2 of 16 bits, 1 of `tf32`, 4 bytes or 8-bit floats. A step is
//! 4 `w` deep. These are the ISA's layouts of m16n8k16 and m16n8k8 (16 bits), m16n8k8 and m16n8k4 (`tf32`),
//! m16n8k32 and m16n8k16 (bytes, 8-bit floats), in one rule.
//!
//! | choice where the ISA leaves order and precision of sums open | |
//! |---|---|
//! | products | exact |
//! | sums of floats | in the order of k, from c on, each rounded to single precision, to nearest, ties to even |
//! | result in `f16` | the single, rounded once more |
//! | denormals | kept |
//! | NaN | `0x7fffffff`, in `f16` `0x7fff` |
//!
//! Sums of bytes are exact, then clamped or taken modulo 2^32. Measured tensor cores add several products at
//! once and truncate (Fasi et al., "Numerical behavior of NVIDIA tensor cores", PeerJ CS 2021): results of
//! floats differ from theirs in the last bits. Sums of 8-bit floats differ more: an H800 keeps some 14 bits
//! of them (DeepSeek-V3 Technical Report, arXiv 2412.19437, 3.3.2; `wgmma`), where here are 24.
//!
//! Invariants: the same bits on every host; sources are read before destinations are written. Not modelled:
//! sparse matrices, single bits. Products of 8 x 8 matrices are in `matrix_small.rs`.

use super::super::alu::{HalfFormat, MatrixFactors, MatrixOp, MatrixSums, Round};
use super::super::ir::{Fragments, Inst, LANES, Slot};
use super::canonical::canon32;
use super::{Frame, V32, half, matrix_small, narrow, rounding};

/// Rows of a, c and d.
const ROWS: usize = 16;
/// Columns of b, c and d.
const COLUMNS: usize = 8;

/// d = a b + c in one register group, all lanes of which take part.
pub(crate) fn multiply(f: &mut Frame<'_>, inst: &Inst, op: MatrixOp, fragments: &Fragments) {
    match op.factors {
        MatrixFactors::Half(HalfFormat::F16) => {
            // 22 bits of a product, with exponents from -48 to 32, fit a single.
            let value = |bits, n| half_of(HalfFormat::F16, bits, n);
            floats::<2>(f, inst, op, fragments, [&value; 2], |a, b, sum| sum + a * b);
        }
        MatrixFactors::Half(HalfFormat::Bf16) => {
            let value = |bits, n| half_of(HalfFormat::Bf16, bits, n);
            floats::<2>(f, inst, op, fragments, [&value; 2], fused);
        }
        MatrixFactors::Tf32 => {
            let value = |bits: u32, _| f32::from_bits(bits & 0xffff_e000);
            floats::<1>(f, inst, op, fragments, [&value; 2], fused);
        }
        MatrixFactors::Fp8(of_a, of_b) => {
            // 8 bits of a product, with exponents from -32 to 31, fit a single.
            let value = |format| move |bits: u32, n: usize| narrow::single_of_fp8(format, bits >> (8 * n));
            let [a, b] = [of_a, of_b].map(value);
            floats::<4>(f, inst, op, fragments, [&a, &b], |a, b, sum| sum + a * b);
        }
        MatrixFactors::Double => matrix_small::doubles(f, inst, fragments),
        MatrixFactors::Quads(of) => matrix_small::quads(f, inst, of, op.sums, fragments),
        MatrixFactors::Bytes(a_signed, b_signed) => bytes(f, inst, op, fragments, [a_signed, b_signed]),
    }
}

/// Half `n` of a register.
#[inline]
fn half_of(format: HalfFormat, bits: u32, n: usize) -> f32 {
    half::to_single(format, (bits >> (16 * n)) as u16, false)
}

/// a b + sum with one rounding, for factors of at most 24 bits.
#[inline]
fn fused(a: f32, b: f32, sum: f32) -> f32 {
    rounding::fma32(a, b, sum, Round::Nearest)
}

/// Elements of one row of a and of one column of b, in the order of k; 32 bytes at most.
const DEEPEST: usize = 32;

/// The factors as `value` makes them of registers with `W` elements: rows of a, columns of b, depth.
#[inline]
fn factors<T: Copy + Default, const W: usize>(
    f: &Frame<'_>,
    inst: &Inst,
    op: MatrixOp,
    fragments: &Fragments,
    a_value: impl Fn(u32, usize) -> T,
    b_value: impl Fn(u32, usize) -> T,
) -> ([[T; DEEPEST]; ROWS], [[T; DEEPEST]; COLUMNS], usize) {
    let (mut a, mut b) = ([[T::default(); DEEPEST]; ROWS], [[T::default(); DEEPEST]; COLUMNS]);
    let steps = if op.deep { 2 } else { 1 };
    for step in 0..steps {
        let [upper, lower] = [0, 1].map(|half| f.get32(inst.src[2 * step + half]));
        let right = f.get32(fragments.b[step]);
        for lane in 0..LANES {
            let (g, first) = (lane / 4, (4 * step + lane % 4) * W);
            for n in 0..W {
                a[g][first + n] = a_value(upper[lane], n);
                a[g + 8][first + n] = a_value(lower[lane], n);
                b[g][first + n] = b_value(right[lane], n);
            }
        }
    }
    (a, b, 4 * W * steps)
}

/// Where an element of c and d is: its register and lane, both halves of which it fills when there are 4
/// registers.
#[inline]
fn place(row: usize, column: usize, singles: bool) -> (usize, usize) {
    let (half, lane) = (row / 8, 4 * (row % 8) + column / 2);
    (if singles { 2 * half + column % 2 } else { half }, lane)
}

fn floats<const W: usize>(
    f: &mut Frame<'_>,
    inst: &Inst,
    op: MatrixOp,
    fragments: &Fragments,
    [a_value, b_value]: [&impl Fn(u32, usize) -> f32; 2],
    add: impl Fn(f32, f32, f32) -> f32,
) {
    let (a, b, depth) = factors::<f32, W>(f, inst, op, fragments, a_value, b_value);
    let singles = op.sums == MatrixSums::F32;
    let mut out: [V32; 4] = [[0; LANES]; 4];
    let c = sums(f, fragments, singles);
    for (row, a) in a.iter().enumerate() {
        for (column, b) in b.iter().enumerate() {
            // Two sums in halves share a register.
            let (register, lane) = place(row, column, singles);
            let shift = if singles { 0 } else { 16 * (column % 2) };
            let bits = c[register][lane] >> shift;
            let start = if singles { f32::from_bits(bits) } else { half_of(HalfFormat::F16, bits, 0) };
            let sum = a.iter().zip(b).take(depth).fold(start, |sum, (&a, &b)| add(a, b, sum));
            out[register][lane] |= if singles {
                canon32(sum)
            } else {
                u32::from(half::convert(f64::from(sum), HalfFormat::F16, Round::Nearest, false)) << shift
            };
        }
    }
    put(f, inst, singles, &out);
}

fn bytes(f: &mut Frame<'_>, inst: &Inst, op: MatrixOp, fragments: &Fragments, signed: [bool; 2]) {
    let value = |signed: bool| {
        move |bits: u32, n: usize| {
            let byte = (bits >> (8 * n)) as u8;
            if signed { i32::from(byte as i8) } else { i32::from(byte) }
        }
    };
    let [a_value, b_value] = signed.map(value);
    let (a, b, depth) = factors::<i32, 4>(f, inst, op, fragments, a_value, b_value);
    let mut out: [V32; 4] = [[0; LANES]; 4];
    let c = sums(f, fragments, true);
    for (row, a) in a.iter().enumerate() {
        for (column, b) in b.iter().enumerate() {
            let (register, lane) = place(row, column, true);
            // At most 32 products of 16 bits: no 32-bit sum of them overflows.
            let product: i32 = a.iter().zip(b).take(depth).map(|(a, b)| a * b).sum();
            let sum = i64::from(c[register][lane] as i32) + i64::from(product);
            let clamped = sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
            out[register][lane] = if op.sums == MatrixSums::S32(true) { clamped as u32 } else { sum as u32 };
        }
    }
    put(f, inst, true, &out);
}

/// The registers of c.
fn sums(f: &Frame<'_>, fragments: &Fragments, singles: bool) -> [V32; 4] {
    let of = |slot: Slot| *f.get32(slot);
    let [c0, c1, c2, c3] = fragments.c;
    if singles { [c0, c1, c2, c3].map(of) } else { [of(c0), of(c1), [0; LANES], [0; LANES]] }
}

fn put(f: &mut Frame<'_>, inst: &Inst, singles: bool, out: &[V32; 4]) {
    for (&d, value) in inst.dst.iter().zip(out).take(if singles { 4 } else { 2 }) {
        f.put32(d, value);
    }
}
