//! Video instructions, scalar and SIMD (PTX ISA 9.7.17, 9.7.18).
//!
//! Meaning is in [`crate::semantics`]; this file is vocabulary only.

use super::compare::IntCmp;

/// What a video instruction does first. Operands are extended by their types, results are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VideoOp {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// |a - b|
    AbsDiff,
    /// (a + b) / 2, halves away from zero
    Average,
    /// min(a, b)
    Min,
    /// max(a, b)
    Max,
    /// a << b; b modulo 32 when `true`, else at most 32
    Shl(bool),
    /// a >> b, by the sign of a; b as above
    Shr(bool),
    /// compare(a, b) ? 1 : 0, on the extended values: signed comparisons only
    Set(IntCmp),
}

/// What a scalar video instruction does with its result and c.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VideoSecond {
    /// Nothing.
    None,
    /// result + c
    Add,
    /// min(result, c)
    Min,
    /// max(result, c)
    Max,
    /// c with the result in the part of d.
    Merge,
}

/// A scalar video instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Video {
    /// The first operation.
    pub op: VideoOp,
    /// The second operation.
    pub second: VideoSecond,
    pub a_signed: bool,
    pub b_signed: bool,
    /// The result and c are signed.
    pub signed: bool,
    /// Clamp the first result to the range of d, or of its part.
    pub sat: bool,
}

/// Which part of a register a scalar video instruction uses; the numbers are those in `imm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum VideoPart {
    /// All 32 bits.
    Word,
    /// Bits 0 to 7.
    B0,
    /// Bits 8 to 15.
    B1,
    /// Bits 16 to 23.
    B2,
    /// Bits 24 to 31.
    B3,
    /// Bits 0 to 15.
    H0,
    /// Bits 16 to 31.
    H1,
}

impl VideoPart {
    /// Every part, by its number.
    pub(crate) const ALL: [VideoPart; 7] =
        [VideoPart::Word, VideoPart::B0, VideoPart::B1, VideoPart::B2, VideoPart::B3, VideoPart::H0, VideoPart::H1];

    /// First bit and number of bits.
    pub(crate) fn bits(self) -> (u32, u32) {
        match self {
            VideoPart::Word => (0, 32),
            VideoPart::B0 => (0, 8),
            VideoPart::B1 => (8, 8),
            VideoPart::B2 => (16, 8),
            VideoPart::B3 => (24, 8),
            VideoPart::H0 => (0, 16),
            VideoPart::H1 => (16, 16),
        }
    }
}

/// `vmad`: d = (a * b + c + carry) >> shift.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VideoMad {
    pub a_signed: bool,
    pub b_signed: bool,
    /// -(a * b)
    pub minus_product: bool,
    pub minus_c: bool,
    /// One more (`.po`).
    pub plus_one: bool,
    /// Clamp to 32 bits.
    pub sat: bool,
    /// 0, 7 or 15.
    pub shift: u8,
}

/// A video instruction on pairs of 16 bits or quads of 8 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VideoSimd {
    /// What is done to each element.
    pub op: VideoOp,
    /// Four elements of 8 bits (else two of 16).
    pub quads: bool,
    /// Elements of a are signed.
    pub a_signed: bool,
    /// Elements of b are signed.
    pub b_signed: bool,
    /// Results are signed, for `sat`.
    pub signed: bool,
    /// Clamp each result to an element's range.
    pub sat: bool,
    /// c plus the results (else: the results, c where the mask is 0).
    pub accumulate: bool,
}
