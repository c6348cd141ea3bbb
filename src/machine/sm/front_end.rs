//! A scheme's front-end buffer at an SM: copies of what warps store to persistent memory, and when a warp has to wait for it.
//!
//! ```text
//!   issue ──stores──> LSU, caches            atomics: ──> L2 ──old and new values──> registers, and the copy
//!     └────copies────> front-end buffer (the scheme's handler) ──messages──> memory controllers
//! ```
//! Source: LightWSP sections III and IV (stores go to the cache and to a buffer of their own). A warp waits, before it issues
//! an instruction that stores or ends a region, for room; before an atomic, for leave; before a region's end, for its atomics. It is retired when its copies have arrived,
//! or what more its handler waits for.
//! Invariants: copies are made in program order; a wait holds nobody else of the SM up. An instruction enters whole, so that
//! the buffer may be over its entries by one instruction a warp.

use crate::engine::Ctx;
use crate::kernel::ir::{MemKind, Op, PmOp, Space};
use crate::kernel::launch::Launch;
use crate::kernel::memory::{Medium, resolve_generic};
use crate::machine::coalescer::coalesce;
use crate::machine::msg::{Atomics, Line, Msg, Payload};
use crate::persist::handler::{Admission, Event, Offer, PathStore};

use super::Sm;
use super::lsu::Entry;
use super::memory::lanes_of;
use super::wait::Wait;

/// Who waits for the handler's front-end buffer, by warp slot, and where the launch keeps its checkpoints.
#[derive(Debug, Default)]
pub(super) struct FrontEndWaits {
    /// There is such a buffer.
    pub(super) present: bool,
    /// Warps whose next instruction waits for it ([`Wait::FrontEnd`]).
    pub(super) waiting: u64,
    /// Warps that have found it full since they last went on.
    pub(super) full: u64,
    /// Warps that have exited and wait for their copies to arrive.
    pub(super) draining: u64,
    /// The launch's checkpoint area: its first address, and that behind it.
    pub(super) checkpoint_area: (u64, u64),
}

impl Sm {
    /// The picked warp's next instruction has to wait for the front-end buffer; it is set aside then.
    pub(super) fn held_by_path(&mut self, warp: usize, cycle: u32, launch: &Launch) -> bool {
        let waits = self.path_blocks(warp, launch, true);
        let full = waits && self.front_end.full >> warp & 1 == 1;
        self.host.tell(&Event::AwaitsIssue { warp: warp as u8, waits: full });
        if waits {
            self.front_end.waiting |= 1 << warp;
            self.core.enter(warp, Wait::FrontEnd, cycle);
        }
        waits
    }

    /// A warp's next instruction may not issue yet. An atomic asks for leave if it is to `ask`.
    pub(super) fn path_blocks(&mut self, warp: usize, launch: &Launch, ask: bool) -> bool {
        let slot = &self.core.slots[warp];
        let inst = &launch.kernel.code[slot.warp.pc() as usize];
        let (atomic, ends) = match inst.op {
            Op::Mem(mem) if matches!(mem.space, Space::Global | Space::Generic) => match mem.kind {
                MemKind::Store => (false, false),
                MemKind::Atomic | MemKind::Reduction => (true, false),
                MemKind::Load | MemKind::Texture(_) => return false,
            },
            Op::Pm(PmOp::Region) => (false, true),
            _ => return false,
        };
        let (lanes, copying) = (slot.warp.guarded(inst), slot.under_way.copying);
        if lanes == 0 {
            return false;
        }
        if ends {
            return copying > 0;
        }
        let slot = warp as u8;
        if !self.host.allows(&Offer::Issue { warp: slot }) {
            self.front_end.full |= 1 << warp;
            return true;
        }
        let look = Offer::Atomic { warp: slot, lines: &[], asks: false };
        atomic && !if ask { self.may_issue_atomic(warp, lanes, launch) } else { self.host.allows(&look) }
    }

    fn may_issue_atomic(&mut self, warp: usize, lanes: u64, launch: &Launch) -> bool {
        let inst = &launch.kernel.code[self.core.slots[warp].warp.pc() as usize];
        let mut address = [0; 64];
        self.core.slots[warp].warp.addresses(inst, launch, lanes, &mut address);
        if let Op::Mem(mem) = inst.op
            && mem.space == Space::Generic
        {
            for lane in lanes_of(lanes) {
                let (space, at) = resolve_generic(address[lane]);
                // What is not global memory is nobody else's.
                address[lane] = if space == Space::Global { at } else { 0 };
            }
        }
        self.lsu.accesses.clear();
        coalesce(self.p.sm.coalescer, &address, lanes, 1, self.w.line_bytes, &mut self.lsu.accesses);
        self.host.lines.clear();
        for access in self.lsu.accesses.iter().filter(|access| Medium::of(access.line) == Medium::Nvm) {
            if !self.host.lines.contains(&access.line) {
                self.host.lines.push(access.line);
            }
        }
        if self.host.lines.is_empty() {
            return true;
        }
        let offer = Offer::Atomic { warp: warp as u8, lines: &self.host.lines, asks: true };
        self.host.handler.offer(&offer, &mut self.host.outbox) == Admission::Goes
    }

    /// A message has come: whoever waited for the front-end buffer looks again.
    pub(super) fn path_changed(&mut self, cycle: u32, cx: &mut Ctx<'_, Msg>) {
        let Some(launch) = self.launch.take() else { return };
        let mut waiting = self.front_end.waiting;
        while waiting != 0 {
            let warp = waiting.trailing_zeros() as usize;
            waiting &= waiting - 1;
            // Whoever waits at the end of a region waits for its own atomics, not for messages.
            if !self.host.allows(&Offer::Issue { warp: warp as u8 }) || self.path_blocks(warp, &launch, false) {
                continue;
            }
            self.front_end.waiting &= !(1 << warp);
            let waited = u64::from(cycle - self.core.slots[warp].since.min(cycle));
            self.record.counters.path_wait_cycles += waited;
            self.record.counters.path_full_cycles += if self.front_end.full >> warp & 1 == 1 { waited } else { 0 };
            self.front_end.full &= !(1 << warp);
            self.core.settle(warp, cycle, &launch);
        }
        let mut draining = std::mem::take(&mut self.front_end.draining);
        while draining != 0 {
            let warp = draining.trailing_zeros() as usize;
            draining &= draining - 1;
            self.retire_if_drained(warp, cycle, cx);
        }
        self.launch = Some(launch);
    }

    /// Copies a store's access to persistent memory.
    pub(super) fn copy_store(&mut self, warp: usize, line: u64, content: &Line) {
        let author = self.record.author(&self.core.slots[warp]);
        let checkpoint = (self.front_end.checkpoint_area.0..self.front_end.checkpoint_area.1).contains(&line);
        let store = PathStore { warp: warp as u8, author, line, mask: content.mask, bytes: &content.bytes, checkpoint };
        self.host.tell(&Event::Stored(&store));
    }

    /// Atomics on persistent memory leave: their lines go with them, and the warp's region lasts until they are back.
    pub(super) fn begin_copying(&mut self, warp: usize, entry: &mut Entry) {
        for (access, payload) in entry.accesses.iter().zip(&mut entry.payloads) {
            if let Payload::Atomics(atomics) = payload {
                atomics.line = access.line;
                self.core.slots[warp].under_way.copying += u32::from(Medium::of(access.line) == Medium::Nvm);
            }
        }
    }

    /// Atomics are back from the L2 with what they wrote.
    pub(super) fn copy_atomics(&mut self, warp: usize, atomics: &Atomics) {
        if Medium::of(atomics.line) != Medium::Nvm {
            return;
        }
        let mut content = self.port.line_pool.take();
        let size = atomics.elem.bytes() as usize;
        for i in 0..usize::from(atomics.count) {
            let at = usize::from(atomics.offset[i]);
            content.bytes[at..at + size].copy_from_slice(&atomics.b[i].to_le_bytes()[..size]);
            content.mask |= ((1u128 << size) - 1) << at;
        }
        self.copy_store(warp, atomics.line, &content);
        self.port.line_pool.give(content);
        self.core.slots[warp].under_way.copying -= 1;
        if self.core.slots[warp].under_way.copying == 0 {
            self.host.tell(&Event::AtomicPerformed { warp: warp as u8 });
        }
    }

    /// The picked warp issues a fence.
    pub(super) fn orders_copies(&mut self, warp: usize) {
        if self.front_end.present {
            self.host.tell(&Event::Fenced { warp: warp as u8 });
        }
    }

    /// The picked warp's region ends.
    pub(super) fn end_region(&mut self, warp: usize) {
        if self.front_end.present {
            let author = self.record.author(&self.core.slots[warp]);
            self.host.tell(&Event::RegionEnds { warp: warp as u8, author });
        }
    }

    /// A warp has exited, and nothing of it is under way but copies.
    pub(super) fn is_copied(&mut self, warp: usize) -> bool {
        let author = self.record.author(&self.core.slots[warp]);
        self.host.tell(&Event::WarpExits { warp: warp as u8, author });
        self.host.allows(&Offer::Retire { warp: warp as u8 })
    }
}
