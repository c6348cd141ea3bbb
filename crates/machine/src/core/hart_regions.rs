//! The recoverable regions of a hart: which boundary is executed next, and what it stores.
//!
//! What that depends on (registers written since they were stored, boundaries passed) is known twice: as of
//! dispatch, which may be on a wrong path, and as of retirement. Behind a squash the first is made of the
//! second and of what the window has left, as registers are.
//!
//! Source: LightWSP, sections III-C and IV-A; the table is [`durawarp_riscv::regions`]. Invariant: what is
//! executed is what [`RegionRun`](durawarp_riscv::functional::RegionRun) executes on the same path.

use std::sync::Arc;

use durawarp_checkpoint::{state, value};
use durawarp_riscv::code::CodeTable;
use durawarp_riscv::instruction::Inst;
use durawarp_riscv::regions::{Boundary, COMPLETE, RegionTable, RegisterSet};

use super::window::{Retires, RobEntry, Window};

/// No boundary was executed just now.
const NOWHERE: u64 = u64::MAX;

/// What regions of a hart depend on, before an instruction.
#[derive(Debug, Clone, Copy)]
struct RegionState {
    /// Registers that were written since they were stored.
    dirty: RegisterSet,
    /// Boundaries that were passed since the last one that was executed.
    passed: u8,
    /// The instruction before which a boundary was executed, if that is the next one.
    ended_at: u64,
    /// The last instruction may have gone anywhere.
    anywhere: bool,
}

value!(record RegionState { dirty, passed, ended_at, anywhere });

impl RegionState {
    const BEGIN: RegionState = RegionState { dirty: 0, passed: 0, ended_at: NOWHERE, anywhere: false };

    /// The boundary that is before an instruction, and the value of its slot of the program counter.
    fn boundary(&self, pc: u64, table: &RegionTable) -> Option<(Boundary, u64)> {
        let found = table.at(pc).copied();
        if self.anywhere && found.is_none_or(|boundary| boundary.every > 1) {
            return Some((Boundary::at_a_jump(), pc | COMPLETE));
        }
        found.map(|boundary| (boundary, pc))
    }

    /// A boundary was executed before an instruction.
    fn end(&mut self, pc: u64, table: &RegionTable) {
        let left = self.boundary(pc, table).map_or(0, |(boundary, _)| boundary.computed);
        *self = RegionState { dirty: self.dirty & left, ended_at: pc, ..RegionState::BEGIN };
    }

    /// An instruction of the program.
    fn step(&mut self, pc: u64, inst: &Inst, table: &RegionTable) {
        if self.ended_at != pc && table.at(pc).is_some() {
            self.passed += 1;
        }
        self.ended_at = NOWHERE;
        self.dirty |= table.written(inst);
        self.anywhere = table.jumps_anywhere(pc);
    }
}

/// Where dispatch stands in what is inserted before the instruction at its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Insertion {
    /// It has not looked.
    Unknown,
    /// These registers are yet to be stored, then this value in the program counter's slot.
    Left(RegisterSet, u64),
    /// All that there was.
    Done,
}

value!(choice Insertion { Unknown, Left(registers, value), Done });

/// The regions of a hart.
#[derive(Debug, Clone)]
pub(super) struct HartRegions {
    table: Arc<RegionTable>,
    code: Arc<CodeTable>,
    front: RegionState,
    retired: RegionState,
    pub(super) insertion: Insertion,
    /// Its thread has not begun to dispatch.
    pub(super) begins: bool,
}

state!(HartRegions { saved: front, retired, insertion, begins; kept: table, code });

impl HartRegions {
    /// Of a hart without a thread.
    pub(super) fn new(table: Arc<RegionTable>, code: Arc<CodeTable>) -> HartRegions {
        let begin = RegionState::BEGIN;
        HartRegions { table, code, front: begin, retired: begin, insertion: Insertion::Unknown, begins: true }
    }

    /// A thread begins: its slots are complete.
    pub(super) fn begin(&mut self) {
        (self.front, self.retired) = (RegionState::BEGIN, RegionState::BEGIN);
        self.insertion = Insertion::Unknown;
        self.begins = true;
    }

    /// Nothing is to be inserted before the instruction at the head of dispatch, or nothing more.
    #[inline]
    pub(super) fn are_inserted(&mut self, pc: u64) -> bool {
        if self.insertion == Insertion::Unknown {
            self.insertion = match self.front.boundary(pc, &self.table) {
                Some((boundary, value)) if self.front.passed + 1 >= boundary.every => {
                    Insertion::Left(self.front.dirty & boundary.stored, value)
                }
                _ => Insertion::Done,
            };
        }
        self.insertion == Insertion::Done
    }

    /// The program counter's store is dispatched: the region ends.
    pub(super) fn ended(&mut self, pc: u64) {
        self.front.end(pc, &self.table);
        self.insertion = Insertion::Done;
    }

    /// An instruction was dispatched.
    pub(super) fn dispatched(&mut self, pc: u64, inst: &Inst) {
        self.front.step(pc, inst, &self.table);
        self.insertion = Insertion::Unknown;
    }

    /// An instruction that is executed alone was. A call has no place in the window.
    pub(super) fn performed(&mut self, pc: u64, inst: &Inst, in_window: bool) {
        self.dispatched(pc, inst);
        if !in_window {
            self.retired = self.front;
        }
    }

    /// An instruction retires.
    pub(super) fn retired(&mut self, entry: &RobEntry) {
        step(&mut self.retired, entry, &self.table, &self.code);
    }

    /// What was dispatched from `first` on is forgotten; dispatch goes on at `pc`.
    pub(super) fn squash(&mut self, window: &Window, first: u64, pc: u64) {
        self.front = self.retired;
        for entry in window.before(first) {
            step(&mut self.front, entry, &self.table, &self.code);
        }
        // A load that is executed again has its boundary before it still.
        let done = self.front.ended_at == pc;
        self.insertion = if done { Insertion::Done } else { Insertion::Unknown };
    }
}

fn step(state: &mut RegionState, entry: &RobEntry, table: &RegionTable, code: &CodeTable) {
    match entry.retires {
        Retires::Checkpoint | Retires::StatusCheckpoint => {}
        Retires::RegionEnd => state.end(entry.pc, table),
        _ => {
            if let Some(inst) = code.at(entry.pc) {
                state.step(entry.pc, inst, table);
            }
        }
    }
}
