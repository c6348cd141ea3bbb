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

/// Rounding modes, in the order of their encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounding {
    /// To nearest, ties to even.
    NearestEven,
    /// Towards zero.
    TowardsZero,
    /// Down.
    Down,
    /// Up.
    Up,
    /// To nearest, ties away from zero.
    NearestAway,
}

impl Rounding {
    /// The encoding by which an instruction asks for the mode in `fcsr`.
    pub(super) const DYNAMIC: u8 = 7;

    /// The mode of an encoding; none of one that is reserved.
    #[inline]
    pub(super) fn decoded(encoding: u8) -> Option<Rounding> {
        Some(match encoding {
            0 => Rounding::NearestEven,
            1 => Rounding::TowardsZero,
            2 => Rounding::Down,
            3 => Rounding::Up,
            4 => Rounding::NearestAway,
            _ => return None,
        })
    }
}

/// A result of floating point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flagged {
    /// What goes to the destination.
    pub value: u64,
    /// The exceptions that were raised, by [`flag`].
    pub flags: u8,
}
