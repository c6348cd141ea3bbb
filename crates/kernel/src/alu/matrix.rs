//! Products of matrices: shapes, factors and sums of `mma` and its kin (PTX ISA 9.7.14).
//!
//! Meaning is in [`crate::semantics`]; this file is vocabulary only.

use super::convert::Fp8;
use super::float::HalfFormat;
use super::tiny::{ScaledFactors, TinyFloat};

/// A product of matrices, `mma.sync` with m = 16 and n = 8, or 8 and 8: elements of a and b, and those of c
/// and d.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixOp {
    /// Elements of a and b.
    pub factors: MatrixFactors,
    /// Elements of c and d.
    pub sums: MatrixSums,
    /// a has four registers and b two (else half of that): k is 16 for 16-bit elements, 8 for `tf32`, 32 for
    /// bytes and 8-bit floats, 64 for 4-bit integers, 256 for single bits.
    pub deep: bool,
    /// Which elements of its rows a has (`mma.sp`): half of them, with metadata and twice the registers of b.
    pub sparsity: Sparsity,
}

impl MatrixOp {
    /// A product whose a has every element.
    pub const fn dense(factors: MatrixFactors, sums: MatrixSums, deep: bool) -> Self {
        MatrixOp { factors, sums, deep, sparsity: Sparsity::Dense }
    }
}

/// The metadata of a sparse factor, by the number of those lanes in a group of four that have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sparsity {
    /// Every element is there.
    Dense,
    /// `mma.sp`
    AnyOrder(u8),
    /// `mma.sp::ordered_metadata`: indices ascend.
    Ascending(u8),
}

/// Elements of the factors of a matrix product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatrixFactors {
    /// Two half-precision values a register.
    Half(HalfFormat),
    /// `tf32`: the upper 19 bits of a single.
    Tf32,
    /// Four bytes a register, of a and of b signed or not.
    Bytes(bool, bool),
    /// Four 8-bit floats a register, of a and of b.
    Fp8(Fp8, Fp8),
    /// Four floats of 8, 6 or 4 bits a register, in a byte each, of a and of b.
    Tiny(TinyFloat, TinyFloat),
    /// The same, or eight 4-bit floats, of which each block has a scale factor.
    Scaled(ScaledFactors),
    /// Eight 4-bit integers a register, of a and of b signed or not.
    Nibbles(bool, bool),
    /// 32 bits a register.
    Bits(BitProduct),
    /// Doubles, one a register (m8n8k4).
    Double,
    /// `f16` by quads of lanes (m8n8k4).
    Quads(QuadFactors),
}

/// What stands for the product of two bits, which are counted where it is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BitProduct {
    And,
    Xor,
}

/// The factors of `mma.m8n8k4` with halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuadFactors {
    /// a lies by columns.
    pub a_by_columns: bool,
    /// b lies by rows.
    pub b_by_rows: bool,
    /// Of sums in single precision: registers 4 to 7 (else 0 to 3).
    pub upper: bool,
}

/// Elements of the sums of a matrix product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatrixSums {
    /// Two `f16` a register.
    F16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// 32-bit integers, clamped to their range when `true` (`.satfinite`), else modulo 2^32.
    S32(bool),
}
