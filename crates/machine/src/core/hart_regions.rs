//! The recoverable regions of a hart: which boundary is executed next, and what it stores.
//!
//! What that depends on ([`RegionPath`]) is known twice: as of
//! dispatch, which may be on a wrong path, and as of retirement. Behind a squash the first is made of the
//! second and of what the window has left, as registers are.
//!
//! Source: LightWSP, sections III-C and IV-A; the table is [`durawarp_riscv::regions`]. Invariant: what is
//! executed is what [`RegionRun`](durawarp_riscv::functional::RegionRun) executes on the same path.

use std::sync::Arc;

use durawarp_checkpoint::{state, value};
use durawarp_riscv::code::CodeTable;
use durawarp_riscv::instruction::Inst;
use durawarp_riscv::regions::{RegionPath, RegionTable, RegisterSet};

use super::window::{Retires, RobEntry, Window};

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
    front: RegionPath,
    retired: RegionPath,
    pub(super) insertion: Insertion,
    /// Its thread has not begun to dispatch.
    pub(super) begins: bool,
}

state!(HartRegions { saved: front, retired, insertion, begins; kept: table, code });

impl HartRegions {
    /// Of a hart without a thread.
    pub(super) fn new(table: Arc<RegionTable>, code: Arc<CodeTable>) -> HartRegions {
        let begin = RegionPath::BEGIN;
        HartRegions { table, code, front: begin, retired: begin, insertion: Insertion::Unknown, begins: true }
    }

    /// A thread begins: its slots are complete.
    pub(super) fn begin(&mut self) {
        (self.front, self.retired) = (RegionPath::BEGIN, RegionPath::BEGIN);
        self.insertion = Insertion::Unknown;
        self.begins = true;
    }

    /// Nothing is to be inserted before the instruction at the head of dispatch, or nothing more.
    #[inline]
    pub(super) fn are_inserted(&mut self, pc: u64) -> bool {
        if self.insertion == Insertion::Unknown {
            let found = self.front.boundary(pc, self.code.at(pc), &self.table);
            self.insertion = found.map_or(Insertion::Done, |(boundary, value)| {
                Insertion::Left(self.front.dirty() & boundary.stored, value)
            });
        }
        self.insertion == Insertion::Done
    }

    /// The program counter's store is dispatched: the region ends.
    pub(super) fn ended(&mut self, pc: u64) {
        end(&mut self.front, pc, &self.table, &self.code);
        self.insertion = Insertion::Done;
    }

    /// The program has stored in the region that is under way.
    pub(super) fn have_stored(&self) -> bool {
        self.retired.has_stored()
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

    /// What was dispatched from `first` on is forgotten. A load that is executed again has its boundary
    /// before it still.
    pub(super) fn squash(&mut self, window: &Window, first: u64) {
        self.front = self.retired;
        for entry in window.before(first) {
            step(&mut self.front, entry, &self.table, &self.code);
        }
        self.insertion = Insertion::Unknown;
    }
}

/// A boundary was executed.
fn end(state: &mut RegionPath, pc: u64, table: &RegionTable, code: &CodeTable) {
    let Some((boundary, _)) = state.boundary(pc, code.at(pc), table) else {
        unreachable!("a region ends at {pc:#x} without a boundary")
    };
    state.end(pc, &boundary);
}

fn step(state: &mut RegionPath, entry: &RobEntry, table: &RegionTable, code: &CodeTable) {
    match entry.retires {
        Retires::Checkpoint | Retires::StatusCheckpoint => {}
        Retires::RegionEnd => end(state, entry.pc, table, code),
        _ => {
            if let Some(inst) = code.at(entry.pc) {
                state.step(entry.pc, inst, table);
            }
        }
    }
}
