//! Floats of 8, 6 and 4 bits, and their conversions (PTX ISA 5.2.3, "Alternate floating-point data formats",
//! and 9.7.9.21).
//!
//! Meaning is in [`crate::semantics`]; this file is vocabulary only.

use super::convert::Fp8;
use super::float::HalfFormat;

/// A float of 8 bits or fewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TinyFloat {
    Eight(Fp8),
    /// 6 bits: 2 of exponent, 3 of fraction.
    E2m3,
    /// 6 bits: 3 of exponent, 2 of fraction.
    E3m2,
    /// 4 bits: 2 of exponent, 1 of fraction.
    E2m1,
}

/// Elements of a product of matrices whose blocks have scale factors (`mma` with `.block_scale`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ScaledFactors {
    /// Elements of a; of 4 bits, those of b are the same.
    pub a: TinyFloat,
    /// Elements of b.
    pub b: TinyFloat,
    /// Scale factors of a row of a: one of 32 elements in bytes, two or four of 64 of 4 bits.
    pub factors: u8,
    /// They are `ue8m0`, else `ue4m3`.
    pub powers: bool,
}

/// A conversion of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TinyCvt {
    /// To floats of fewer than 8 bits (`.rn.satfinite`).
    To { format: TinyFloat, from: PairOf, relu: bool },
    /// From these to `f16`.
    From { format: TinyFloat, relu: bool },
    /// To `ue8m0`, of singles or `bf16`: away from zero where they lie between two powers (`.rp`), else to
    /// the lesser one (`.rz`).
    ToPowers { from: PairOf, up: bool, finite: bool },
    /// From `ue8m0` to `bf16`.
    FromPowers,
}

/// Which registers a pair comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PairOf {
    /// The upper one from the single a, the lower one from the single b.
    Singles,
    /// The halves of a.
    Halves(HalfFormat),
}
