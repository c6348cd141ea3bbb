//! Comparisons and what joins them (PTX ISA 9.7.6, 9.7.7).
//!
//! Meaning is in [`crate::semantics`]; this file is vocabulary only.

use super::float::{HalfFormat, HalfType};

/// A comparison and what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Compare {
    /// How, on what.
    pub kind: CompareKind,
    /// How the predicate c joins in; `imm` bit 0 negates it.
    pub combine: Combine,
}

/// Comparison by operand type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompareKind {
    /// 16-bit integers.
    Int16(IntCmp),
    /// 32-bit integers.
    Int32(IntCmp),
    /// 64-bit integers.
    Int64(IntCmp),
    /// Single precision; `true` flushes denormals.
    F32(FloatCmp, bool),
    /// Double precision.
    F64(FloatCmp),
    /// Half precision; `true` flushes denormals.
    Half(FloatCmp, HalfType, bool),
}

/// What `set` writes when the comparison holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Truth {
    /// All ones.
    Ones,
    /// 1.0 in single precision.
    Single,
    /// 1.0 of a half-precision format.
    Half(HalfFormat),
}

/// Integer comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IntCmp {
    /// a == b
    Eq,
    /// a != b
    Ne,
    /// a < b, signed
    LtS,
    /// a <= b, signed
    LeS,
    /// a > b, signed
    GtS,
    /// a >= b, signed
    GeS,
    /// a < b, unsigned
    LtU,
    /// a <= b, unsigned
    LeU,
    /// a > b, unsigned
    GtU,
    /// a >= b, unsigned
    GeU,
}

/// Float comparisons; those that end in `u` are also true when an operand is NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FloatCmp {
    /// a == b, ordered
    Eq,
    /// a != b, ordered
    Ne,
    /// a < b
    Lt,
    /// a <= b
    Le,
    /// a > b
    Gt,
    /// a >= b
    Ge,
    /// a == b or unordered
    Equ,
    /// a != b or unordered
    Neu,
    /// a < b or unordered
    Ltu,
    /// a <= b or unordered
    Leu,
    /// a > b or unordered
    Gtu,
    /// a >= b or unordered
    Geu,
    /// Neither is NaN.
    Num,
    /// Either is NaN.
    Nan,
}

/// How a comparison joins a predicate: p = cmp op c, q = !cmp op c.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Combine {
    /// Not at all.
    None,
    And,
    Or,
    /// exclusive or
    Xor,
}
