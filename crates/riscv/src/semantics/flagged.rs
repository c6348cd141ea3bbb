//! Words of floating point: exceptions, rounding modes, a result with the exceptions that it raises.
//!
//! Source: The RISC-V Instruction Set Manual, volume I, chapter F, "Floating-Point Control and Status
//! Register".

/// Exceptions of floating point, as bits of `fflags`.
pub mod flag {
    /// Inexact.
    pub const NX: u8 = 1;
    /// Underflow.
    pub const UF: u8 = 2;
    /// Overflow.
    pub const OF: u8 = 4;
    /// Division by zero.
    pub const DZ: u8 = 8;
    /// Invalid operation.
    pub const NV: u8 = 16;
    /// All of them.
    pub const ALL: u8 = 31;
}

/// Rounding modes, as they are encoded.
pub mod mode {
    /// To nearest, ties to even.
    pub const NEAREST_EVEN: u8 = 0;
    /// Towards zero.
    pub const TOWARDS_ZERO: u8 = 1;
    /// Down.
    pub const DOWN: u8 = 2;
    /// Up.
    pub const UP: u8 = 3;
    /// To nearest, ties away from zero.
    pub const NEAREST_AWAY: u8 = 4;
    /// Of an instruction: the one in `fcsr`.
    pub const DYNAMIC: u8 = 7;
}

/// A result of floating point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flagged {
    /// What goes to the destination.
    pub value: u64,
    /// The exceptions that were raised, by [`flag`].
    pub flags: u8,
}
