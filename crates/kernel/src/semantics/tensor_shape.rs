//! What the descriptor of a product in tensor memory says (`tcgen05.mma` without scaled blocks): types,
//! sizes, signs, and with them in which lanes and columns d lies.
//!
//! ```text
//! descriptor of the instruction   2 sparse   3 saturate   5-4 d: 0 f16, 1 f32, 2 s32   9-7 a   12-10 b
//!                                 13, 14 negate a, b   15, 16 across: a, b   22-17 columns / 8   28-24 rows / 16
//! ```
//! Row r of d is lane r of 128 rows, and lane 32 (r / 16) + r % 16 of 64, from the address' lane on. Of a
//! pair of CTAs 64 rows are lanes 0 to 63, with the upper half of the columns in lanes 64 to 127.
//!
//! Source: PTX ISA 9.7.16.4.2 (descriptor), 9.7.16.10.5 (layouts A, B, D and F of d); where rows of 64 lie
//! was tried with kernels of Triton. Invariant: a shape is one that is supported. Not supported: sparse a,
//! `tf32` across, elements of fewer than 8 bits across.

use super::super::alu::{Fp8, HalfFormat, MatrixFactors, MatrixOp, MatrixSums, TinyFloat};
use super::super::ir::{GroupElements, TensorKind};

/// Rows of a product of `matrix`.
pub(super) const ROWS: u32 = 16;

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
    pub(super) across: [bool; 2],
    /// Elements of a, b of fewer than 8 bits, which become those of `e4m3`.
    pub(super) tiny: [Option<TinyFloat>; 2],
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
    #[inline]
    pub(super) fn lane(&self, row: u32) -> u32 {
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
    #[inline]
    pub(super) fn fold(&self, column: u32) -> [u32; 2] {
        let half = self.columns / 2;
        if self.is_folded() && column >= half { [64, column - half] } else { [0, column] }
    }
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
