//! A hart between two instructions, as plain data: what a thread takes along to another hart, what a machine
//! saves of it when power fails, and what tells whether it repeats itself.
//!
//! Not in it: a reservation, which does not last, and what the hart waits for.

use durawarp_checkpoint::value;

/// A hart between two instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HartState {
    /// x0 to x31, then f0 to f31: by [`instruction`](super::instruction)'s numbers.
    pub registers: [u64; 64],
    /// Address of the next instruction.
    pub pc: u64,
    /// Rounding mode and accrued exceptions of floating point, as in the register.
    pub fcsr: u8,
}

value!(record HartState { registers, pc, fcsr });
