//! The load-store unit's books: instructions waiting for their turn, and loads under way.
//!
//! Entries are served in order, one line access (or one pass through the shared-memory banks) a cycle. Store
//! data and atomic operands are gathered at issue, so later writes to the registers do not matter; load data
//! goes to the registers when it comes, and the scoreboard keeps everybody away until then.
//!
//! Invariants: an entry is released when its last access has left; a pending load is released when its last
//! byte has come. Entries and loads are recycled: no allocation once warm.

use std::collections::VecDeque;

use crate::address::Interleave;
use crate::coalescer::{LineAccess, lanes_of};
use crate::l1::Waiter;
use crate::msg::{Atomics, Payload, RequestKind};
use durawarp_checkpoint::{LoadFault, StateReader, StateWriter, Storable, state, value};
use durawarp_engine::Time;
use durawarp_kernel::fault::FaultKind;
use durawarp_kernel::ir::{Inst, MemKind, Op};
use durawarp_persist::handler::Marker;

use super::address_units::AddressUnits;
use super::copies::{CopyUnderWay, arrive, write_copy};
use super::core::IssueCore;
use super::launches::LaunchTable;
use super::record::Record;
use super::seat::RemoteQueues;
use super::slots::{Fault, WarpSlot};
use super::wiring::SmParameters;

/// What an entry does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// So many passes through the shared-memory banks.
    Shared(u32),
    /// Loads through the L1.
    Load,
    /// Loads that neither use nor fill the L1.
    LoadPast,
    /// Stores or atomics: requests whose payloads are ready.
    Send,
    /// A marker that has not been to the handler yet; then `Send`.
    Mark,
    /// A request to shared memory of another SM leaves.
    Leaves,
    /// A request of another SM, and its passes through the shared-memory banks.
    Served(u32),
}

value!(choice Work { Shared(passes), Load, LoadPast, Send, Mark, Leaves, Served(passes) });

/// One memory instruction (or the part of it in one space).
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) warp: u8,
    pub(super) work: Work,
    /// What a `Send` without atomics asks of the L2.
    pub(super) kind: RequestKind,
    /// Pending load, or [`NO_LOAD`].
    pub(super) load: u16,
    /// Of a bulk copy: its number and 1; else 0.
    pub(super) bulk: u16,
    pub(super) accesses: Vec<LineAccess>,
    /// Part of a multi-word local access, beside each access.
    pub(super) parts: Vec<u8>,
    /// One payload an access, in order, for `Send`.
    pub(super) payloads: Vec<Payload>,
    /// Accesses done.
    pub(super) next: usize,
    /// When a warp issued it, for persists.
    pub(super) issued: Time,
    /// What must be durable before its accesses leave, by its scheme's numbers.
    pub(super) after: u64,
    /// The mark that its scheme gives it.
    pub(super) mark: u64,
    /// A log update.
    pub(super) log: bool,
    /// Stores that must not stay in the L1: volatile ones, and those past it.
    pub(super) past_l1: bool,
    /// In local memory.
    pub(super) local: bool,
    /// Of a `Mark`.
    pub(super) marker: Option<Marker>,
}

value!(record Entry {
    warp, work, kind, load, bulk, accesses, parts, payloads, next, issued, after, mark, log, past_l1, local, marker,
});

impl Default for Entry {
    fn default() -> Self {
        Entry {
            warp: 0,
            work: Work::Shared(1),
            kind: RequestKind::Write,
            load: NO_LOAD,
            bulk: 0,
            accesses: Vec::new(),
            parts: Vec::new(),
            payloads: Vec::new(),
            next: 0,
            issued: 0,
            after: 0,
            mark: 0,
            log: false,
            past_l1: false,
            local: false,
            marker: None,
        }
    }
}

/// Stands for the kernel where a warp would be named.
pub(super) const GRID: u8 = u8::MAX;

/// No pending load.
pub(super) const NO_LOAD: u16 = u16::MAX;

/// A load (or atomic) under way.
#[derive(Debug)]
pub(super) struct PendingLoad {
    pub(super) warp: u8,
    pub(super) pc: u32,
    pub(super) inst: Inst,
    pub(super) lanes: u64,
    /// Byte offset of each lane in its line.
    pub(super) offset: [u16; 64],
    /// Line accesses (shared passes count as one) not yet answered.
    pub(super) left: u32,
    /// Cycle from which the registers may be read, as known so far.
    pub(super) ready: u32,
    /// What does not go to registers line by line collects here, 16 bytes a lane: words of a local access
    /// wider than 4 bytes, and the bytes of an asynchronous copy.
    pub(super) staging: Option<Box<[u8; 1024]>>,
    /// It is an asynchronous copy: where to.
    pub(super) copy: Option<Box<CopyUnderWay>>,
    /// As of its entry.
    pub(super) bulk: u16,
}

/// But for the instruction, which is the launch's ([`Lsu::find_instructions`]).
impl Storable for PendingLoad {
    fn save(&self, out: &mut StateWriter) {
        let PendingLoad { warp, pc, inst: _, lanes, offset, left, ready, staging, copy, bulk } = self;
        (*warp, *pc, *lanes).save(out);
        (*offset, *left, *ready).save(out);
        staging.save(out);
        copy.save(out);
        bulk.save(out);
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        let (warp, pc, lanes) = Storable::read(from)?;
        let (offset, left, ready) = Storable::read(from)?;
        let (staging, copy, bulk) = Storable::read(from)?;
        Ok(PendingLoad { warp, pc, inst: Inst::NOP, lanes, offset, left, ready, staging, copy, bulk })
    }
}

impl PendingLoad {
    /// Gives the bytes of a line to its lanes that wait for them.
    #[inline]
    pub(super) fn deliver(
        &mut self,
        slots: &mut [WarpSlot],
        part: u8,
        lanes: u64,
        bytes: &[u8],
        launches: &LaunchTable,
    ) {
        match &mut self.staging {
            None => {
                let slot = &mut slots[usize::from(self.warp)];
                let launch = launches.of(slot);
                slot.warp.write_back(&self.inst, launch, lanes, &self.offset, bytes);
            }
            Some(words) => {
                let each = if self.copy.is_some() { copied_bytes(&self.inst) } else { 4 };
                for lane in lanes_of(lanes) {
                    let (from, to) = (usize::from(self.offset[lane]), 16 * lane + 4 * usize::from(part));
                    words[to..to + each].copy_from_slice(&bytes[from..from + each]);
                }
            }
        }
    }

    /// Gives old values to the lanes of an atomic that returns them.
    #[inline]
    pub(super) fn deliver_atomics(&self, slots: &mut [WarpSlot], atomics: &Atomics) {
        if matches!(self.inst.op, Op::Mem(mem) if mem.kind == MemKind::Atomic) {
            for i in 0..usize::from(atomics.count) {
                let (lane, half) = (u32::from(atomics.lane[i]), atomics.half(i));
                slots[usize::from(self.warp)].warp.write_atomic(&self.inst, lane, half, atomics.a[i]);
            }
        }
    }
}

/// Bytes that a lane of an asynchronous copy writes.
fn copied_bytes(inst: &Inst) -> usize {
    let Op::Mem(mem) = inst.op else { unreachable!("a copy is a memory instruction") };
    mem.bytes() as usize
}

/// A load whose last byte has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LoadDone {
    /// Its warp and instruction.
    pub(super) warp: usize,
    pub(super) pc: usize,
    /// Cycle from which the registers may be read.
    pub(super) ready: u32,
    /// It is an asynchronous copy, which stays open until its bytes have landed.
    pub(super) copies: bool,
    /// As of its entry.
    pub(super) bulk: u16,
}

/// Queue and pending loads of one SM.
#[derive(Debug)]
pub(super) struct Lsu {
    /// Boxed, as entries go in and out for every memory instruction.
    pub(super) queue: VecDeque<Box<Entry>>,
    #[allow(clippy::vec_box)]
    spare: Vec<Box<Entry>>,
    capacity: usize,
    loads: Vec<PendingLoad>,
    free: Vec<u16>,
    #[allow(clippy::vec_box, reason = "boxes are what is recycled")]
    stagings: Vec<Box<[u8; 1024]>>,
    /// Empty; recycled from instruction to instruction.
    pub(super) accesses: Vec<LineAccess>,
    /// Where the addresses of an instruction's lanes are written; away while one issues.
    pub(super) lane_addresses: Option<Box<[u64; 64]>>,
    /// Empty; recycled from fill to fill.
    pub(super) waiters: Vec<Waiter>,
    #[allow(clippy::vec_box, reason = "boxes are what is recycled: they travel in messages")]
    pub(super) spare_atomics: Vec<Box<Atomics>>,
    /// Cycle from which the next access may start.
    pub(super) free_at: u32,
    /// The head lacks an MSHR or room in the miss queue: nothing to do until a reply or a credit comes.
    pub(super) blocked: bool,
    /// What new entries bear: a bulk copy's number and 1 while a line of it leaves, else 0.
    bulk: u16,
    /// Requests of entries since that line began to leave.
    bulk_requests: u32,
    /// Requests between SMs.
    pub(super) remote: RemoteQueues,
    /// What each scheduler has of it for itself.
    pub(super) addresses: AddressUnits,
}

state!(Lsu {
    saved: queue, loads, free, free_at, blocked; parts: remote, addresses; kept: spare, capacity, stagings, accesses, lane_addresses, waiters, spare_atomics,
    bulk, bulk_requests
});

impl Lsu {
    pub(super) fn new(p: &SmParameters) -> Self {
        Lsu {
            queue: VecDeque::new(),
            spare: Vec::new(),
            capacity: p.sm.lsu_entries as usize,
            loads: Vec::new(),
            free: Vec::new(),
            stagings: Vec::new(),
            accesses: Vec::new(),
            lane_addresses: None,
            waiters: Vec::new(),
            spare_atomics: Vec::new(),
            free_at: 0,
            blocked: false,
            bulk: 0,
            bulk_requests: 0,
            remote: RemoteQueues::default(),
            addresses: AddressUnits::new(p),
        }
    }

    /// Gives loads that were read from a checkpoint their instructions. What lies in free places is of other
    /// launches, too, and no matter.
    pub(super) fn find_instructions(&mut self, launches: &LaunchTable, slots: &[WarpSlot]) {
        for load in &mut self.loads {
            let launch = launches.of(&slots[usize::from(load.warp)]);
            load.inst = launch.kernel.code.get(load.pc as usize).copied().unwrap_or(Inst::NOP);
        }
    }

    /// Another instruction may issue to it.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.queue.len() < self.capacity
    }

    /// An empty entry.
    pub(super) fn entry(&mut self, warp: u8, work: Work, load: u16) -> Box<Entry> {
        let mut entry = self.spare.pop().unwrap_or_default();
        entry.warp = warp;
        entry.work = work;
        entry.load = load;
        entry.kind = RequestKind::Write;
        entry.log = false;
        entry.past_l1 = false;
        entry.local = false;
        entry.after = 0;
        entry.mark = 0;
        entry.bulk = self.bulk;
        entry
    }

    /// A marker: an entry with one access to each slice.
    pub(super) fn marker(&mut self, warp: u8, marker: Marker, map: &Interleave, now: Time) -> Box<Entry> {
        let mut entry = self.entry(warp, Work::Mark, NO_LOAD);
        entry.kind = RequestKind::Marker;
        entry.marker = Some(marker);
        entry.issued = now;
        for slice in 0..map.slices() {
            entry.accesses.push(LineAccess { line: map.some_line_of(slice), sectors: 0, lanes: 0 });
            entry.payloads.push(Payload::None);
        }
        entry
    }

    /// The marker at the head goes to the handler: from now on its accesses are sent.
    pub(super) fn send_marker(&mut self) -> Marker {
        let Some(head) = self.queue.front_mut() else { unreachable!("there is a head") };
        head.work = Work::Send;
        let Some(marker) = head.marker.take() else { unreachable!("a marker's entry") };
        marker
    }

    /// Takes back an entry that was never queued.
    pub(super) fn discard(&mut self, mut entry: Box<Entry>) {
        entry.accesses.clear();
        entry.payloads.clear();
        self.spare.push(entry);
    }

    /// An entry waits for its turn.
    #[inline]
    pub(super) fn push(&mut self, entry: Box<Entry>) {
        if self.addresses.is_present() {
            self.addresses.enter();
        }
        self.queue.push_back(entry);
    }

    /// Cycle from which the head, if there is one, may go on.
    #[inline]
    pub(super) fn next_at(&self) -> u32 {
        if self.addresses.is_present() { self.free_at.max(self.addresses.next_from()) } else { self.free_at }
    }

    /// Takes back the head entry, whose work is done.
    #[inline]
    pub(super) fn retire_head(&mut self, cycle: u32) {
        let Some(mut entry) = self.queue.pop_front() else { unreachable!("there is a head") };
        if self.addresses.is_present() {
            self.addresses.leave(cycle);
        }
        entry.accesses.clear();
        entry.parts.clear();
        entry.payloads.clear();
        entry.next = 0;
        self.spare.push(entry);
    }

    /// Opens a pending load with nothing left to wait for yet.
    pub(super) fn open_load(&mut self, warp: u8, pc: u32, inst: Inst, lanes: u64) -> u16 {
        let bulk = self.bulk;
        let load = |offset| {
            let (staging, copy) = (None, None);
            PendingLoad { warp, pc, inst, lanes, offset, left: 0, ready: 0, staging, copy, bulk }
        };
        match self.free.pop() {
            Some(index) => {
                let slot = &mut self.loads[usize::from(index)];
                slot.warp = warp;
                slot.pc = pc;
                slot.inst = inst;
                slot.lanes = lanes;
                slot.left = 0;
                slot.ready = 0;
                slot.bulk = bulk;
                index
            }
            None => {
                self.loads.push(load([0; 64]));
                (self.loads.len() - 1) as u16
            }
        }
    }

    /// Loads and atomics under way.
    pub(super) fn open_loads(&self) -> impl Iterator<Item = &PendingLoad> {
        let open = |index: &usize| !self.free.contains(&(*index as u16));
        (0..self.loads.len()).filter(open).map(|index| &self.loads[index])
    }

    #[inline]
    pub(super) fn load(&mut self, index: u16) -> &mut PendingLoad {
        &mut self.loads[usize::from(index)]
    }

    /// Gives a load room for the words of each lane.
    pub(super) fn stage(&mut self, index: u16) {
        let room = self.stagings.pop().unwrap_or_else(|| Box::new([0; 1024]));
        self.loads[usize::from(index)].staging = Some(room);
    }

    /// A line access of a load is answered, and usable from `ready` on. After the last, the load is closed.
    #[inline]
    pub(super) fn answer(
        &mut self,
        load: u16,
        ready: u32,
        slots: &mut [WarpSlot],
        launches: &LaunchTable,
    ) -> Option<LoadDone> {
        let pending = self.load(load);
        pending.left -= 1;
        pending.ready = pending.ready.max(ready);
        if pending.left > 0 {
            return None;
        }
        let copies = pending.copy.is_some();
        let (warp, pc) = (usize::from(pending.warp), pending.pc as usize);
        let done = LoadDone { warp, pc, ready: pending.ready, copies, bulk: pending.bulk };
        // What an asynchronous copy brought lands in shared memory, later.
        if copies {
            return Some(done);
        }
        if let Some(words) = &pending.staging {
            let apart = std::array::from_fn(|lane| 16 * lane as u16);
            let slot = &mut slots[done.warp];
            let launch = launches.of(slot);
            slot.warp.write_back(&pending.inst, launch, pending.lanes, &apart, &words[..]);
        }
        self.close_load(load);
        Some(done)
    }

    /// Puts an entry with line accesses into the queue and counts what must come back to its warp.
    #[inline]
    pub(super) fn enqueue(&mut self, mut entry: Box<Entry>, slot: &mut WarpSlot, record: &mut Record) {
        let accesses = entry.accesses.len() as u32;
        self.bulk_requests += accesses;
        if entry.kind.persists() {
            entry.issued = record.now;
            slot.under_way.persists += accesses;
            slot.under_way.throughs += if entry.kind == RequestKind::NonTemporal { accesses } else { 0 };
            record.counters.persists += u64::from(accesses);
        } else if entry.load == NO_LOAD {
            slot.under_way.stores += accesses;
        } else {
            self.load(entry.load).left += accesses;
        }
        self.push(entry);
    }

    /// A line of a bulk copy begins to leave: entries bear the copy's number until [`Lsu::end_bulk`].
    pub(super) fn begin_bulk(&mut self, number: u16) {
        self.bulk = number + 1;
        self.bulk_requests = 0;
    }

    /// The line has left. Returns how many requests its entries make.
    pub(super) fn end_bulk(&mut self) -> u32 {
        self.bulk = 0;
        self.bulk_requests
    }

    /// Makes a load with its accesses in the queue an asynchronous copy.
    pub(super) fn copies(&mut self, load: u16, copy: CopyUnderWay) {
        self.stage(load);
        self.load(load).copy = Some(Box::new(copy));
    }

    /// Closes a copy all of whose bytes are there: they go to shared memory, and lanes arrive that wait for
    /// them. Its warp, which may go on.
    ///
    /// # Errors
    /// What is wrong with a barrier.
    pub(super) fn land(&mut self, load: u16, core: &mut IssueCore, launches: &LaunchTable) -> Result<usize, Fault> {
        let pending = self.load(load);
        let Op::Mem(mem) = pending.inst.op else { unreachable!("a copy is a memory instruction") };
        let (warp, copy) = (usize::from(pending.warp), pending.copy.take());
        let (Some(copy), Some(words)) = (copy, &pending.staging) else { unreachable!("a copy has its bytes") };
        let slot = &mut core.slots[warp];
        let cta = &mut core.ctas[usize::from(slot.cta)];
        write_copy(warp, slot, cta, &copy, mem, &words[..]);
        self.close_load(load);
        let arrivals = core.copies.groups[warp].land(copy.ticket);
        if let Err(misuse) = arrive(&mut cta.shared, &arrivals) {
            let kind = FaultKind::Asynchronous(misuse.to_string());
            let lane = slot.warp.live().trailing_zeros().min(31);
            return Err(Box::new(slot.fault(lane, kind, launches.of(slot))));
        }
        slot.under_way.loads -= 1;
        Ok(warp)
    }

    #[inline]
    fn close_load(&mut self, index: u16) {
        if let Some(room) = self.loads[usize::from(index)].staging.take() {
            self.stagings.push(room);
        }
        self.free.push(index);
    }
}
