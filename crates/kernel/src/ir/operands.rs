//! Source operands of an instruction of SASS, as the register file of an SM serves them.
//!
//! Only traces of SASS have them: registers of PTX are virtual, so that neither their banks nor their places
//! in an instruction are those of the hardware. Invariant: an operand lies in vector registers; those that
//! read as zero, uniform registers, constants and immediates leave their slot empty.

/// Source operands in vector registers that an instruction has, at most.
pub const OPERAND_SLOTS: usize = 3;

/// A source operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceOperand {
    /// Its first register.
    pub register: u8,
    /// How many it has, from that one on.
    pub count: u8,
    /// The register file cache is to keep it (`.reuse`).
    pub reuse: bool,
}

/// The source operands of an instruction, by their slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OperandReads {
    /// The instruction has a fixed latency. Others wait in a queue and read when ports are free.
    pub fixed: bool,
    /// What it reads, by the place of the operand in the instruction.
    pub slots: [Option<SourceOperand>; OPERAND_SLOTS],
}
