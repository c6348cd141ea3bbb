//! Where a hart stands in its regions: which boundary it executes next, and what that one stores.
//!
//! Source: LightWSP, sections III-C and IV-A. The functional driver and the cores of the timed machine keep
//! one of these for each hart, so that both execute the same boundaries on the same path.
//!
//! A region without a store of the program is no region. At a boundary that a hart comes to without one it
//! stores nothing: recovery would go on from its last boundary, and what it has done since it does again. It
//! has stored nothing and called no system; what it has read, another hart may have changed, as if this hart
//! had been slower. What was to be stored counts as written still, and the next boundary stores it.
//!
//! | at the boundary | the program has stored | it has not |
//! |---|---|---|
//! | before a system call | executed | executed: the system acts once (`recovered.rs`) |
//! | any other | executed at its turn | left out; its loop begins to count turns again |
//!
//! The table counts a region's stores as if each boundary were executed. Behind one that is left out with
//! registers to be stored, the hart counts itself: it ends the region, with all that is live, before an
//! instruction that could take the next boundary over the threshold. Invariant: no region stores more than
//! the threshold.

use durawarp_checkpoint::value;

use super::table::{Boundary, RegionTable};
use super::terms::{COMPLETE, RegisterSet, stores};
use crate::instruction::{Class, Inst, Op};

/// No boundary was executed just now.
const NOWHERE: u64 = u64::MAX;
/// Most instructions from `lr` to its `sc`, if the loop is one that ends surely: unprivileged ISA, "Eventual
/// Success of Store-Conditional Instructions". Recovery between them would have the `sc` fail.
const RESERVED: u32 = 16;

/// What the next boundary of a hart depends on, before an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionPath {
    /// Registers that were written since they were stored.
    dirty: RegisterSet,
    /// Stores of the program since the region began, with the system call behind which it ends.
    stores: u32,
    /// Boundaries that were passed since the last one that was executed or left out.
    passed: u8,
    /// A boundary was left out with registers to be stored.
    carries: bool,
    /// The instruction before which a boundary was executed, if that is the next one.
    ended_at: u64,
    /// The last instruction may have gone anywhere.
    anywhere: bool,
}

value!(record RegionPath { dirty, stores, passed, carries, ended_at, anywhere });

impl RegionPath {
    /// All registers are in their slots.
    pub const BEGIN: RegionPath =
        RegionPath { dirty: 0, stores: 0, passed: 0, carries: false, ended_at: NOWHERE, anywhere: false };

    /// Behind the boundary before an instruction, which recovery goes on with; these registers it computed.
    pub const fn recovered(pc: u64, computed: RegisterSet) -> RegionPath {
        RegionPath { dirty: computed, ended_at: pc, ..RegionPath::BEGIN }
    }

    /// Registers that were written since they were stored.
    pub const fn dirty(&self) -> RegisterSet {
        self.dirty
    }

    /// The program has stored in the region, or called the system.
    pub const fn has_stored(&self) -> bool {
        self.stores > 0
    }

    /// The boundary that is executed before an instruction, and the value of its slot of the program counter;
    /// none where there is none, or it was executed, or is left out.
    #[inline]
    pub fn boundary(&self, pc: u64, inst: Option<&Inst>, table: &RegionTable) -> Option<(Boundary, u64)> {
        if self.ended_at == pc {
            return None;
        }
        let found = table.at(pc);
        let (boundary, value) = match found {
            found if self.anywhere && found.is_none_or(|boundary| boundary.every > 1) => {
                (Some(Boundary::at_a_jump()), pc | COMPLETE)
            }
            found => (found.copied(), pc),
        };
        let calls = inst.is_some_and(|inst| inst.op == Op::Ecall);
        let is_due = |boundary: &Boundary| (calls || self.stores > 0) && self.passed + 1 >= boundary.every;
        let carries = self.carries || boundary.is_some() && self.leaves_registers();
        match boundary.filter(is_due) {
            Some(boundary) => Some((boundary, value)),
            None if carries && self.may_exceed(pc, inst?, table) => {
                Some((Boundary::at_the_threshold(table.live(pc)), pc | COMPLETE))
            }
            None => None,
        }
    }

    /// A boundary here is left out, with registers to be stored.
    const fn leaves_registers(&self) -> bool {
        self.stores == 0 && self.dirty != 0
    }

    /// A boundary could exceed the threshold behind this instruction; of `lr`, up to its `sc`.
    fn may_exceed(&self, pc: u64, inst: &Inst, table: &RegionTable) -> bool {
        let reserves = if inst.class() == Class::LoadReserved { RESERVED } else { 0 };
        let written = self.dirty & table.live(pc) | table.written(inst);
        let most = self.stores + u32::from(stores(inst)) + reserves + written.count_ones() + 1;
        most > table.options().threshold_stores
    }

    /// A boundary was executed before an instruction.
    pub fn end(&mut self, pc: u64, boundary: &Boundary) {
        *self = RegionPath { dirty: self.dirty & boundary.computed, ended_at: pc, ..RegionPath::BEGIN };
    }

    /// An instruction of the program was executed.
    #[inline]
    pub fn step(&mut self, pc: u64, inst: &Inst, table: &RegionTable) {
        if self.ended_at != pc && (self.anywhere || table.at(pc).is_some()) {
            if self.stores == 0 {
                self.carries |= self.leaves_registers();
                self.passed = 0;
            } else {
                self.passed += 1;
            }
        }
        self.ended_at = NOWHERE;
        self.stores += u32::from(stores(inst) || inst.op == Op::Ecall);
        self.dirty |= table.written(inst);
        self.anywhere = table.jumps_anywhere(pc);
    }
}
