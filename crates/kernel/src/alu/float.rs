//! Operations on floats of 16, 32 and 64 bits (PTX ISA 9.7.3 to 9.7.5): formats, rounding, approximations.
//!
//! Meaning is in [`crate::semantics`]; this file is vocabulary only.

use durawarp_checkpoint::value;

/// Float arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FloatOp {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// a * b
    Mul,
    /// a * b + c, one rounding
    Fma,
    /// a / b
    Div,
    /// 1 / a
    Rcp,
    /// square root of a
    Sqrt,
    /// The smaller number; a NaN loses.
    Min,
    /// The larger number; a NaN loses.
    Max,
    /// The smaller number; a NaN wins (`.NaN`).
    MinNan,
    /// The larger number; a NaN wins (`.NaN`).
    MaxNan,
    /// |a|
    Abs,
    /// -a
    Neg,
    /// b with the sign of a
    CopySign,
}

/// Rounding directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Round {
    /// To nearest, ties to even (`.rn`, `.rni`).
    Nearest,
    /// Towards zero (`.rz`, `.rzi`).
    Zero,
    /// Towards minus infinity (`.rm`, `.rmi`).
    Down,
    /// Towards plus infinity (`.rp`, `.rpi`).
    Up,
}

/// How a single-precision operation rounds and what it does at the ends of the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FloatMode {
    /// Direction.
    pub round: Round,
    /// Denormal inputs and results become zeros of the same sign.
    pub ftz: bool,
    /// The result is clamped to [0, 1], NaN to 0.
    pub sat: bool,
}

impl FloatMode {
    /// Round to nearest, denormals kept, no clamping.
    pub const PLAIN: FloatMode = FloatMode { round: Round::Nearest, ftz: false, sat: false };
}

/// The formats of half precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HalfFormat {
    /// IEEE binary16: 5 bits of exponent, 10 of fraction.
    F16,
    /// The upper half of a single: 8 bits of exponent, 7 of fraction.
    Bf16,
}

value!(choice HalfFormat { F16, Bf16 });

/// The types of half precision: one value in a 16-bit register, or two in a 32-bit one, the first in the
/// lower half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HalfType {
    /// `.f16`
    F16,
    /// `.f16x2`
    F16x2,
    /// `.bf16`
    Bf16,
    /// `.bf16x2`
    Bf16x2,
}

value!(choice HalfType { F16, F16x2, Bf16, Bf16x2 });

impl HalfType {
    /// The format of each value.
    pub fn format(self) -> HalfFormat {
        match self {
            HalfType::F16 | HalfType::F16x2 => HalfFormat::F16,
            HalfType::Bf16 | HalfType::Bf16x2 => HalfFormat::Bf16,
        }
    }

    /// Two values?
    pub fn is_pair(self) -> bool {
        matches!(self, HalfType::F16x2 | HalfType::Bf16x2)
    }
}

/// Half-precision operations; all that round do so to nearest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HalfOp {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// a * b
    Mul,
    /// a * b + c, one rounding
    Fma,
    /// The smaller number.
    Min(HalfExtreme),
    /// The larger number.
    Max(HalfExtreme),
    /// |a|
    Abs,
    /// -a
    Neg,
    /// 2^a
    Ex2,
    /// tanh(a)
    Tanh,
}

/// What modifies `min` and `max` of halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HalfExtreme {
    /// A NaN wins (`.NaN`); else it loses.
    pub nan: bool,
    /// Magnitudes are compared, and the sign is the exclusive or of both signs (`.xorsign.abs`).
    pub xorsign: bool,
}

/// On which halves an operation works, and what it does at the ends of the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HalfMode {
    /// Format, one value or two.
    pub ty: HalfType,
    /// Denormal inputs and results become zeros of the same sign.
    pub ftz: bool,
    /// The result is clamped to [0, 1], NaN to 0.
    pub sat: bool,
    /// A negative result becomes +0.
    pub relu: bool,
}

/// Single-precision approximations (`.approx`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApproxOp {
    /// 2^a
    Ex2,
    /// log2(a)
    Lg2,
    /// sin(a)
    Sin,
    /// cos(a)
    Cos,
    /// tanh(a)
    Tanh,
    /// 1 / sqrt(a)
    Rsqrt,
    /// 1 / a
    Rcp,
    /// sqrt(a)
    Sqrt,
    /// a / b, 0 when 2^126 < |b| < 2^128
    Div,
    /// a / b over the full range
    DivFull,
}

/// Float properties (`testp`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TestOp {
    /// Neither infinite nor NaN.
    Finite,
    Infinite,
    /// Not NaN.
    Number,
    /// NaN.
    NotANumber,
    /// Neither zero, denormal, infinite nor NaN.
    Normal,
    /// Denormal.
    Subnormal,
}
