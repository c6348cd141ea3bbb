//! The architectural state of one warp, and how an instruction changes it: registers, predicates, SIMT stack.
//!
//! Used by the functional driver and by the timed SMs alike. A warp of 64 lanes is two register groups of 32.
//! Lane masks are `u64`; bit `i` is lane `i`.

use super::ir::{Inst, LANES, Slot};
use super::launch::Launch;

/// Registers of 32 lanes, one array a slot.
#[derive(Debug, Clone, Default)]
pub struct Registers {
    /// 32-bit slots.
    pub r32: Vec<[u32; LANES]>,
    /// 64-bit slots.
    pub r64: Vec<[u64; LANES]>,
    /// Predicate slots, one bit a lane.
    pub predicates: Vec<u32>,
}

/// One path of a diverged warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// Where it executes next.
    pub pc: u32,
    /// Where it joins the path below it on the stack.
    pub reconverge: u32,
    /// Its lanes.
    pub mask: u64,
}

/// A warp: registers and SIMT stack.
#[derive(Debug, Clone, Default)]
pub struct Warp {
    groups: Vec<Registers>,
    stack: Vec<Path>,
    cta: u64,
    first_thread: u32,
}

impl Warp {
    /// Makes this the warp `warp_in_cta` of CTA number `cta`: registers zeroed, special registers written, one path
    /// of all existing lanes at pc 0. Allocations are reused.
    pub fn start(&mut self, _launch: &Launch, _cta: u64, _warp_in_cta: u32, _warp_size: u32) {
        todo!()
    }

    /// Every lane has exited.
    pub fn is_done(&self) -> bool {
        self.stack.is_empty()
    }

    /// The program counter of the current path.
    pub fn pc(&self) -> u32 {
        self.stack.last().map_or(0, |p| p.pc)
    }

    /// Lanes of the current path.
    pub fn active(&self) -> u64 {
        self.stack.last().map_or(0, |p| p.mask)
    }

    /// Lanes not yet exited, on any path.
    pub fn live(&self) -> u64 {
        self.stack.first().map_or(0, |p| p.mask)
    }

    /// Active lanes for which the instruction's guard holds.
    pub fn guarded(&self, _inst: &Inst) -> u64 {
        todo!()
    }

    /// Executes a register-to-register instruction on `lanes` (already guarded). Does not move the pc.
    pub fn alu(&mut self, _inst: &Inst, _launch: &Launch, _lanes: u64) {
        todo!()
    }

    /// Moves the current path to the next instruction, joining paths that reconverge there.
    pub fn advance(&mut self) {
        todo!()
    }

    /// Executes a branch whose guard holds for `taken`, joining or splitting paths.
    pub fn branch(&mut self, _taken: u64, _target: u32, _reconverge: u32) {
        todo!()
    }

    /// Ends `lanes` of the current path; the rest of it, if any, advances.
    pub fn exit(&mut self, _lanes: u64) {
        todo!()
    }

    /// The byte address that each of `lanes` accesses: as written for the instruction's space (texture: global
    /// addresses of the texels). Other entries of `out` are left alone.
    pub fn addresses(&self, _inst: &Inst, _launch: &Launch, _lanes: u64, _out: &mut [u64; 64]) {
        todo!()
    }

    /// Writes loaded data to the destination registers of `lanes`: lane `i`'s bytes start at `data[offset[i]]`.
    pub fn write_back(&mut self, _inst: &Inst, _launch: &Launch, _lanes: u64, _offset: &[u16; 64], _data: &[u8]) {
        todo!()
    }

    /// Reads the data operands of a store of `lanes`: lane `i`'s bytes go to `data[offset[i]..]`, in lane order, so of
    /// two lanes that store to one place the higher wins.
    pub fn gather(&self, _inst: &Inst, _launch: &Launch, _lanes: u64, _offset: &[u16; 64], _data: &mut [u8]) {
        todo!()
    }

    /// The operands `a`, `b` of one lane of an atomic.
    pub fn atomic_operands(&self, _inst: &Inst, _launch: &Launch, _lane: u32) -> (u64, u64) {
        todo!()
    }

    /// Writes one lane's old value of an atomic to its destination register.
    pub fn write_atomic(&mut self, _inst: &Inst, _lane: u32, _old: u64) {
        todo!()
    }

    /// Writes a value that only the machine knows to every one of `lanes` of a destination register.
    pub fn write_machine(&mut self, _inst: &Inst, _lanes: u64, _value: u64) {
        todo!()
    }

    /// CTA number and thread number (in the CTA) of a lane, for a fault report.
    pub fn thread_of(&self, lane: u32) -> (u64, u32) {
        (self.cta, self.first_thread + lane)
    }

    /// A register's value in one lane, for tests and debuggers.
    pub fn read32(&self, slot: Slot, lane: u32) -> u32 {
        self.groups[lane as usize / LANES].r32[usize::from(slot)][lane as usize % LANES]
    }
}
