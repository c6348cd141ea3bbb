//! Register-to-register operations, fully resolved by type, rounding and saturation.

/// An ALU operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AluOp {
    /// 32-bit move.
    Mov32,
}
