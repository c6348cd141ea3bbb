//! What a machine's scheduler knows of an instruction: the unit that executes it, registers it reads and
//! writes, and where it stands in the text.

use durawarp_checkpoint::value;

/// What unit executes an instruction and how long it takes: the key into a machine's latency table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// 32- and 64-bit integer addition and subtraction, `sad`, `abs`, `neg`, and their video instructions.
    ///
    /// A video instruction has the class of its first operation: `vmad` multiplies, `vset` compares, `vshl`
    /// shifts.
    Int,
    /// Integer multiply and multiply-add.
    IntMul,
    /// Integer division and remainder.
    IntDiv,
    /// Moves, selects, logic, shifts, bit operations, signs of floats.
    Logic,
    /// Comparisons: `setp`, `set`, `testp`.
    Compare,
    /// `min` and `max` of integers, single and half precision.
    MinMax,
    /// Conversions: `cvt`.
    Convert,
    /// Single- and half-precision add, multiply, fused multiply-add.
    Fp32,
    /// Single-precision IEEE division, reciprocal and square root (`.rn` and the other roundings).
    Fp32Div,
    /// Double-precision add, multiply, fused multiply-add, `min`, `max`.
    Fp64,
    /// Double-precision division, reciprocal, square root.
    Fp64Div,
    /// Special functions (`.approx`): ex2, lg2, sin, cos, rsqrt, rcp, sqrt, div.
    Sfu,
    /// Shuffles, `match`, `redux`.
    Shuffle,
    /// Votes and the active mask.
    Vote,
    /// Reads of kernel parameters and constants.
    Const,
    /// Memory accesses (their latency is the memory system's).
    Mem,
    /// Branches, barriers, fences, exit.
    Control,
    /// Products of matrices: `mma` with four registers of a.
    Matrix,
    /// The same with two, half as deep.
    MatrixHalf,
}

value!(choice Class {
    Int, IntMul, IntDiv, Logic, Compare, MinMax, Convert, Fp32, Fp32Div, Fp64, Fp64Div, Sfu, Shuffle, Vote, Const, Mem,
    Control, Matrix, MatrixHalf,
});

impl Class {
    /// How many there are.
    pub const COUNT: usize = Class::MatrixHalf as usize + 1;
}

/// A place in a PTX file, 1-based.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SourcePos {
    pub line: u32,
    pub column: u32,
}

/// Registers that an instruction reads and writes, at most: fragments of `mma.sp`, metadata and its guard.
pub const MOST_CHECKS: usize = 18;

/// The registers an instruction must find ready, and those it makes busy, as scoreboard indices.
///
/// Scoreboard index of a register: 32-bit slots first, then 64-bit slots, then predicates
/// ([`super::Kernel`]).
/// Unused entries hold [`super::Kernel::no_register`], a scoreboard entry that is always ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hazards {
    /// Registers read (guard included), then those that are only written: all must be ready before issue.
    /// Never a constant.
    pub check: [u16; MOST_CHECKS],
    /// How many of `check` are read, and how many are used; [`MANY_CHECKS`] where all are in `many`.
    pub reads: u8,
    pub checks: u8,
    /// Registers written.
    pub set: [u16; 4],
    /// How many of `set` are used.
    pub sets: u8,
    /// The registers of an instruction that has more than there is room for.
    pub many: Option<Box<ManyRegisters>>,
}

/// [`Hazards::checks`] of an instruction whose registers are in [`Hazards::many`].
pub const MANY_CHECKS: u8 = u8::MAX;

/// Registers of a product of four warps, as scoreboard indices, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManyRegisters {
    /// Registers read, guard included.
    pub reads: Vec<u16>,
    /// Registers written.
    pub writes: Vec<u16>,
}

impl Hazards {
    /// Of an instruction that reads and writes these; `none` stands for no register. Doubles are left out.
    pub fn of(none: u16, reads: &[u16], writes: &[u16]) -> Hazards {
        let mut hazards =
            Hazards { check: [none; MOST_CHECKS], reads: 0, checks: 0, set: [none; 4], sets: 0, many: None };
        let mut checks: Vec<u16> = Vec::new();
        let mut add = |registers: &[u16]| {
            registers.iter().for_each(|register| {
                if !checks.contains(register) {
                    checks.push(*register);
                }
            });
            checks.len()
        };
        let (read, all) = (add(reads), add(writes));
        if all > MOST_CHECKS || writes.len() > hazards.set.len() {
            checks.truncate(read);
            hazards.checks = MANY_CHECKS;
            hazards.many = Some(Box::new(ManyRegisters { reads: checks, writes: writes.to_vec() }));
            return hazards;
        }
        hazards.check[..all].copy_from_slice(&checks);
        hazards.set[..writes.len()].copy_from_slice(writes);
        (hazards.reads, hazards.checks, hazards.sets) = (read as u8, all as u8, writes.len() as u8);
        hazards
    }

    /// The registers read, guard included.
    #[inline]
    pub fn read(&self) -> &[u16] {
        self.many.as_ref().map_or(&self.check[..usize::from(self.reads)], |many| &many.reads)
    }

    /// The registers written.
    #[inline]
    pub fn written(&self) -> &[u16] {
        self.many.as_ref().map_or(&self.set[..usize::from(self.sets)], |many| &many.writes)
    }
}
