//! Conversions (PTX ISA 9.7.9.21): number types, and formats of 8 and 19 bits.
//!
//! Meaning is in [`crate::semantics`]; this file is vocabulary only.

use super::float::{HalfFormat, Round};

/// Number types as a conversion sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Num {
    /// 8 bits, unsigned.
    U8,
    /// 8 bits, signed.
    S8,
    /// 16 bits, unsigned.
    U16,
    /// 16 bits, signed.
    S16,
    /// 32 bits, unsigned.
    U32,
    /// 32 bits, signed.
    S32,
    /// 64 bits, unsigned.
    U64,
    /// 64 bits, signed.
    S64,
    /// Half precision (in a 16-bit register).
    F16,
    /// The upper half of a single (in a 16-bit register).
    Bf16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl Num {
    /// Floating point?
    pub fn is_float(self) -> bool {
        matches!(self, Num::F16 | Num::Bf16 | Num::F32 | Num::F64)
    }

    /// Bits.
    pub fn bits(self) -> u32 {
        match self {
            Num::U8 | Num::S8 => 8,
            Num::U16 | Num::S16 | Num::F16 | Num::Bf16 => 16,
            Num::U32 | Num::S32 | Num::F32 => 32,
            Num::U64 | Num::S64 | Num::F64 => 64,
        }
    }

    /// Signed integer?
    pub fn is_signed(self) -> bool {
        matches!(self, Num::S8 | Num::S16 | Num::S32 | Num::S64)
    }
}

/// A conversion. `wide_from` and `wide_to` tell the register banks, which may be wider than the types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cvt {
    /// Source type.
    pub from: Num,
    /// Destination type.
    pub to: Num,
    /// Direction of rounding, where the conversion can be inexact.
    pub round: Round,
    /// Round a float to an integral float (`.rni` and the others between equal float types).
    pub integral: bool,
    /// Flush single-precision denormals.
    pub ftz: bool,
    /// Clamp: integers to the destination's range, floats to [0, 1].
    pub sat: bool,
    /// A negative half becomes +0.
    pub relu: bool,
    /// A half that is too large becomes the largest number (`.satfinite`).
    pub finite: bool,
    /// The source register is 64-bit.
    pub wide_from: bool,
    /// The destination register is 64-bit; a narrower integer result is extended by its own sign.
    pub wide_to: bool,
}

impl Cvt {
    /// A conversion between 32-bit registers that is never inexact and clamps nothing.
    pub fn exact(from: Num, to: Num) -> Self {
        Cvt {
            from,
            to,
            round: Round::Nearest,
            integral: false,
            ftz: false,
            sat: false,
            relu: false,
            finite: false,
            wide_from: false,
            wide_to: false,
        }
    }
}

/// The formats of 8-bit floats: 4 bits of exponent and 3 of fraction, or 5 and 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fp8 {
    /// `.e4m3`
    E4m3,
    /// `.e5m2`
    E5m2,
}

/// A conversion to a pair of 8-bit floats (`.rn.satfinite`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ToFp8 {
    /// Format of both results.
    pub format: Fp8,
    /// From the two `f16` in a (else: the upper one from the single a, the lower one from the single b).
    pub halves: bool,
    /// Negative results become +0.
    pub relu: bool,
}

/// A conversion of a single to `tf32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CvtTf32 {
    /// Direction of rounding.
    pub round: Tf32Round,
    /// Negative results become +0.
    pub relu: bool,
    /// What is too large becomes the largest number (`.satfinite`).
    pub finite: bool,
}

/// Rounding to `tf32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tf32Round {
    /// To nearest, ties away from zero (`.rna`).
    Away,
    /// To nearest, ties to even (`.rn`).
    Even,
    /// Towards zero (`.rz`).
    Zero,
}

/// `cvt.pack`: a and b clamped, side by side, b lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CvtPack {
    /// Bits of each.
    pub bits: u8,
    /// Clamped to a signed range.
    pub signed: bool,
    /// The bits above them are the low bits of c.
    pub merges: bool,
}

/// A conversion of two singles to a pair of halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CvtPair {
    /// Format of both results.
    pub to: HalfFormat,
    /// Direction of rounding.
    pub round: Round,
    /// Negative results become +0.
    pub relu: bool,
    /// What is too large becomes the largest number (`.satfinite`).
    pub finite: bool,
}
