//! A scheme's front-end buffer at an SM: copies of what warps store to persistent memory, and when a warp has
//! to wait for it.
//!
//! ```text
//!   issue ──stores──> LSU, caches            atomics: ──> L2 ──old and new values──> registers, and the copy
//!     └────copies────> front-end buffer (the scheme's handler) ──messages──> memory controllers
//! ```
//! Source: LightWSP sections III and IV (stores go to the cache and to a buffer of their own). A warp waits,
//! before it issues an instruction that stores or ends a region, for room; before an atomic, for leave;
//! before a region's end, for its atomics and bulk stores; behind a bulk reduction, for that to have leave.
//! It is retired when its copies have arrived, or what more its handler waits for. When lines of bulk stores
//! enter is in [`bulk_admission`](super::bulk_admission). Invariants: copies are made in program order; a
//! wait holds nobody else of the SM up. An instruction enters whole, so that the buffer may be over its
//! entries by one instruction a warp.

use crate::coalescer::{LineAccess, Rule, coalesce, lanes_of};
use crate::msg::{Atomics, Line, LinePool, Payload};
use durawarp_checkpoint::state;
use durawarp_kernel::ir::{MemKind, Op, PmOp, Space};
use durawarp_kernel::launch::Launch;
use durawarp_kernel::memory::{CHECKPOINT_AREA, Medium, resolve_generic};
use durawarp_persist::handler::{Admission, PathStore, SmEvent, SmOffer};

use super::core::IssueCore;
use super::handler_host::SmHost;
use super::launches::LaunchTable;
use super::lsu::Entry;
use super::record::Record;
use super::slots::WarpSlot;
use super::wait::Wait;

/// Who waits for the handler's front-end buffer, by warp slot, and where the launch keeps its checkpoints.
#[derive(Debug)]
pub(super) struct FrontEndWaits {
    /// There is such a buffer.
    pub(super) present: bool,
    /// Warps whose next instruction waits for it ([`Wait::FrontEnd`]).
    waiting: u64,
    /// Warps that have found it full since they last went on.
    full: u64,
    /// Warps that have exited and wait for their copies to arrive.
    draining: u64,
    /// The launch's checkpoint area: its first address, and that behind it.
    checkpoint_area: (u64, u64),
    /// How lanes' addresses become line accesses, of lines of so many bytes.
    coalescer: Rule,
    line_bytes: u32,
    /// Empty; recycled from atomic to atomic.
    accesses: Vec<LineAccess>,
}

state!(FrontEndWaits {
    saved: waiting, full, draining, checkpoint_area; kept: present, coalescer, line_bytes, accesses
});

impl FrontEndWaits {
    /// Nobody waits.
    pub(super) fn new(present: bool, coalescer: Rule, line_bytes: u32) -> Self {
        FrontEndWaits {
            present,
            waiting: 0,
            full: 0,
            draining: 0,
            checkpoint_area: (0, 0),
            coalescer,
            line_bytes,
            accesses: Vec::new(),
        }
    }

    /// A launch begins.
    pub(super) fn begin_launch(&mut self, launch: &Launch) {
        self.checkpoint_area = launch.addresses.extent_of(CHECKPOINT_AREA).unwrap_or_default();
    }

    /// The picked warp's next instruction has to wait for the front-end buffer; it is set aside then.
    pub(super) fn holds(
        &mut self,
        warp: usize,
        cycle: u32,
        launch: &Launch,
        core: &mut IssueCore,
        host: &mut SmHost,
    ) -> bool {
        let waits = self.blocks(warp, launch, true, &core.slots[warp], host);
        let full = waits && self.full >> warp & 1 == 1;
        host.tell(&SmEvent::AwaitsIssue { warp: warp as u8, waits: full });
        if waits {
            self.waiting |= 1 << warp;
            core.enter(warp, Wait::FrontEnd, cycle);
        }
        waits
    }

    /// A warp's next instruction may not issue yet. An atomic asks for leave if it is to `ask`.
    pub(super) fn blocks(
        &mut self,
        warp: usize,
        launch: &Launch,
        ask: bool,
        slot: &WarpSlot,
        host: &mut SmHost,
    ) -> bool {
        let inst = &launch.kernel.code[slot.warp.pc() as usize];
        let (atomic, ends) = match inst.op {
            Op::Mem(mem) if matches!(mem.space, Space::Global | Space::Generic) => match mem.kind {
                MemKind::Store => (false, false),
                MemKind::Atomic | MemKind::Reduction => (true, false),
                MemKind::Load | MemKind::Texture(_) | MemKind::Matrix(_) | MemKind::Copy => return false,
            },
            Op::Pm(PmOp::Region) => (false, true),
            _ => return false,
        };
        // An instruction of no lanes stores nothing and ends nothing.
        let lanes = slot.warp.guarded(inst);
        if lanes == 0 {
            return false;
        }
        if ends {
            return slot.under_way.copying > 0;
        }
        if slot.under_way.turn {
            return true;
        }
        // Room comes before an atomic's leave: the warp is noted as waiting for room, and asks for leave when
        // it has it.
        if !host.allows(&SmOffer::Issue { warp: warp as u8 }) {
            self.full |= 1 << warp;
            return true;
        }
        let look = SmOffer::Atomic { warp: warp as u8, lines: &[], asks: false };
        atomic && !if ask { self.may_issue_atomic(warp, lanes, launch, slot, host) } else { host.allows(&look) }
    }

    fn may_issue_atomic(
        &mut self,
        warp: usize,
        lanes: u64,
        launch: &Launch,
        slot: &WarpSlot,
        host: &mut SmHost,
    ) -> bool {
        let inst = &launch.kernel.code[slot.warp.pc() as usize];
        let mut address = [0; 64];
        slot.warp.addresses(inst, launch, lanes, &mut address);
        if let Op::Mem(mem) = inst.op
            && mem.space == Space::Generic
        {
            for lane in lanes_of(lanes) {
                let (space, at) = resolve_generic(address[lane]);
                // What is not global memory is nobody else's.
                address[lane] = if space == Space::Global { at } else { 0 };
            }
        }
        self.accesses.clear();
        coalesce(self.coalescer, &address, lanes, 1, self.line_bytes, &mut self.accesses);
        host.keep_lines(&self.accesses);
        if host.lines.is_empty() {
            return true;
        }
        let offer = SmOffer::Atomic { warp: warp as u8, lines: &host.lines, asks: true };
        host.handler.offer(&offer, &mut host.outbox) == Admission::Goes
    }

    /// A message has come: whoever waited for the front-end buffer looks again. Gives back the warps that
    /// have exited and whose copies may have arrived; they wait here no more.
    pub(super) fn changed(
        &mut self,
        cycle: u32,
        launches: &LaunchTable,
        core: &mut IssueCore,
        host: &mut SmHost,
        record: &mut Record,
    ) -> u64 {
        let mut waiting = self.waiting;
        while waiting != 0 {
            let warp = waiting.trailing_zeros() as usize;
            waiting &= waiting - 1;
            let launch = launches.of(&core.slots[warp]);
            // Whoever waits at the end of a region waits for its own atomics, not for messages.
            if !host.allows(&SmOffer::Issue { warp: warp as u8 })
                || self.blocks(warp, launch, false, &core.slots[warp], host)
            {
                continue;
            }
            self.waiting &= !(1 << warp);
            let waited = u64::from(cycle - core.slots[warp].since.min(cycle));
            record.counters.path_wait_cycles += waited;
            record.counters.path_full_cycles += if self.full >> warp & 1 == 1 { waited } else { 0 };
            self.full &= !(1 << warp);
            core.settle(warp, cycle, launch);
        }
        std::mem::take(&mut self.draining)
    }

    /// Copies a store's access to persistent memory.
    pub(super) fn copy_store(
        &self,
        warp: usize,
        slot: &WarpSlot,
        line: u64,
        content: &Line,
        host: &mut SmHost,
        record: &Record,
    ) {
        let author = record.author(slot);
        let checkpoint = (self.checkpoint_area.0..self.checkpoint_area.1).contains(&line);
        let store = PathStore { by: warp as u8, author, line, mask: content.mask, bytes: &content.bytes, checkpoint };
        host.tell(&SmEvent::Stored(&store));
    }

    /// Atomics on persistent memory leave: their lines go with them, and the warp's region lasts until they
    /// are back.
    pub(super) fn begin_copying(&self, slot: &mut WarpSlot, entry: &mut Entry) {
        for (access, payload) in entry.accesses.iter().zip(&mut entry.payloads) {
            if let Payload::Atomics(atomics) = payload {
                atomics.line = access.line;
                slot.under_way.copying += u32::from(Medium::of(access.line) == Medium::Nvm);
            }
        }
    }

    /// Atomics are back from the L2 with what they wrote. True when the warp, which waited for them, may go
    /// on.
    pub(super) fn copy_atomics(
        &mut self,
        warp: usize,
        slot: &mut WarpSlot,
        atomics: &Atomics,
        pool: &mut LinePool,
        host: &mut SmHost,
        record: &Record,
    ) -> bool {
        if Medium::of(atomics.line) == Medium::Nvm {
            // The copy holds the new values. They are known only now, as the atomics were performed at the
            // L2.
            let mut content = pool.take();
            let size = atomics.elem.bytes() as usize;
            for i in 0..usize::from(atomics.count) {
                let at = usize::from(atomics.offset[i]);
                content.bytes[at..at + size].copy_from_slice(&atomics.b[i].to_le_bytes()[..size]);
                content.mask |= ((1u128 << size) - 1) << at;
            }
            self.copy_store(warp, slot, atomics.line, &content, host, record);
            pool.give(content);
            return self.copied(warp, slot, host);
        }
        // A warp that waits does so for the last of its atomics, not for this one.
        slot.under_way.copying == 0 && self.goes_on(warp)
    }

    /// Something that the warp's region lasted for is over. True when the warp, which waited, may go on.
    pub(super) fn copied(&mut self, warp: usize, slot: &mut WarpSlot, host: &mut SmHost) -> bool {
        slot.under_way.copying -= 1;
        if slot.under_way.copying > 0 {
            return false;
        }
        host.tell(&SmEvent::AtomicPerformed { warp: warp as u8 });
        // Reductions of which no line is there have asked for nothing.
        slot.under_way.turn = false;
        self.goes_on(warp)
    }

    /// What the warp may have waited for is over: true when it did. It looks again.
    pub(super) fn goes_on(&mut self, warp: usize) -> bool {
        let waited = self.waiting >> warp & 1 == 1;
        self.waiting &= !(1 << warp);
        self.full &= !(u64::from(waited) << warp);
        waited
    }

    /// The picked warp issues a fence.
    pub(super) fn orders_copies(&self, warp: usize, host: &mut SmHost) {
        if self.present {
            host.tell(&SmEvent::Fenced { warp: warp as u8 });
        }
    }

    /// The picked warp's region ends.
    pub(super) fn end_region(&self, warp: usize, slot: &WarpSlot, host: &mut SmHost, record: &Record) {
        if self.present {
            let author = record.author(slot);
            host.tell(&SmEvent::RegionEnds { warp: warp as u8, author });
        }
    }

    /// A warp has exited, and nothing of it is under way but copies: true when these have arrived; else it
    /// waits here.
    pub(super) fn is_copied(&mut self, warp: usize, slot: &WarpSlot, host: &mut SmHost, record: &Record) -> bool {
        let author = record.author(slot);
        host.tell(&SmEvent::WarpExits { warp: warp as u8, author });
        let copied = host.allows(&SmOffer::Retire { warp: warp as u8 });
        if !copied {
            self.draining |= 1 << warp;
        }
        copied
    }
}
