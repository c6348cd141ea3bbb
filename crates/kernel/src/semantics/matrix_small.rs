//! Products of 8 x 8 matrices (PTX ISA 9.7.14.5): `mma.m8n8k4` of doubles, and of halves by quads of lanes.
//!
//! ```text
//! f64: lane = 4 g + t     a: row g, column t      b: row t, column g      c, d: row g, columns 2 t, 2 t + 1
//!
//! f16: four products. Number q is by lanes 4 q .. 4 q + 3 (its low lanes) and 16 + 4 q .. 16 + 4 q + 3. Line i is
//! lane i of these 8; element n of a lane is half n of its registers.
//! a by rows, b by columns    line i of the matrix in lane i, along k
//! a by columns, b by rows    lines 0 to 3 in the low lanes, 4 to 7 in the others; lane % 4 is k
//! c, d of f16                row i in lane i
//! c, d of f32                register i: row (lane & 1) + (i & 2), 4 more in the upper lanes;
//!                            column (i & 4) + (lane & 2) + (i & 1)
//! ```
//! Sums are taken in the order of k, from c on: doubles fused, halves as `semantics/matrix.rs` says. Of 8
//! registers of sums an instruction has 4, so a product with `f32` is two. An H200 has these layouts.

use super::super::alu::{HalfFormat, MatrixSums, QuadFactors, Round};
use super::super::ir::{Fragments, Inst, LANES};
use super::canonical::{canon32, canon64};
use super::{Frame, V32, half};

/// d = a b + c of doubles in one register group.
pub(super) fn doubles(f: &mut Frame<'_>, inst: &Inst, fragments: &Fragments) {
    let (a, b) = (*f.get64(inst.src[0]), *f.get64(fragments.b[0]));
    let c = [*f.get64(fragments.c[0]), *f.get64(fragments.c[1])];
    let value = f64::from_bits;
    for (n, c) in c.iter().enumerate() {
        let out = std::array::from_fn(|lane| {
            let (row, column) = (lane / 4, 2 * (lane % 4) + n);
            let sum =
                (0..4).fold(value(c[lane]), |sum, k| libm::fma(value(a[4 * row + k]), value(b[4 * column + k]), sum));
            canon64(sum)
        });
        f.put64(inst.dst[n], &out);
    }
}

/// d = a b + c of halves, of each quad.
pub(super) fn quads(f: &mut Frame<'_>, inst: &Inst, of: QuadFactors, sums: MatrixSums, fragments: &Fragments) {
    let [a, b] =
        [[inst.src[0], inst.src[1]], [fragments.b[0], fragments.b[1]]].map(|slots| slots.map(|slot| *f.get32(slot)));
    let c: [V32; 4] = fragments.c.map(|slot| *f.get32(slot));
    let half = |registers: &[V32], lane: usize, n: usize| {
        half::to_single(HalfFormat::F16, (registers[n / 2][lane] >> (16 * (n % 2))) as u16, false)
    };
    let mut out: [V32; 4] = [[0; LANES]; 4];
    for quad in 0..4 {
        // Both factors are read by line and k, whichever way they lie; b's lines are its columns.
        let lane_of = |line: usize| 4 * quad + line % 4 + 16 * (line / 4);
        let element = |registers: &[V32; 2], across: bool, line: usize, k: usize| match across {
            true => half(registers, 4 * quad + k + 16 * (line / 4), line % 4),
            false => half(registers, lane_of(line), k),
        };
        let product = |row: usize, column: usize, start: f32| {
            (0..4)
                .fold(start, |sum, k| sum + element(&a, of.a_by_columns, row, k) * element(&b, of.b_by_rows, column, k))
        };
        for line in 0..8 {
            let lane = lane_of(line);
            for n in 0..if sums == MatrixSums::F32 { 4 } else { 8 } {
                // Lanes hold sums of one row in halves, but of two rows in singles.
                if sums == MatrixSums::F32 {
                    let i = n + if of.upper { 4 } else { 0 };
                    let row = (lane & 1) + (i & 2) + 4 * (line / 4);
                    let column = (i & 4) + (lane & 2) + (i & 1);
                    out[n][lane] = canon32(product(row, column, f32::from_bits(c[n][lane])));
                } else {
                    let sum = f64::from(product(line, n, half(&c, lane, n)));
                    let bits = half::convert(sum, HalfFormat::F16, Round::Nearest, false);
                    out[n / 2][lane] |= u32::from(bits) << (16 * (n % 2));
                }
            }
        }
    }
    for (&d, value) in inst.dst.iter().zip(&out) {
        f.put32(d, value);
    }
}
