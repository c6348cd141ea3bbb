//! What the load-store unit sends: L1 lookups, misses, stores, atomics, persists.
//!
//! The head of the queue starts one line access a cycle; it waits, and everything behind it, while it lacks
//! an MSHR or room in the miss queue. What the core has to do then is given back as a [`Stepped`].
//!
//! Invariants: accesses leave in the order of issue; a load's registers may be read once its last answer has
//! come; nothing overtakes a request to its line that is held. Source: the pipeline of
//! GPGPU-Sim's `ldst_unit`, one access a cycle. Not modelled: replays out of order.

use crate::coalescer::{LineAccess, lanes_of};
use crate::l1::{Lookup, Waiter};
use crate::msg::{MAX_LINE_BYTES, Msg, Payload, Request, RequestKind, sector_bytes, sectors_touched};
use crate::persistence::PastL1;
use durawarp_engine::Ctx;
use durawarp_kernel::ir::{CacheOp, MemKind, Op, Space, StoreHint};
use durawarp_kernel::memory::Medium;
use durawarp_persist::handler::{Access, AccessKind, Admission, Departure, Load, SmEvent};

use super::handler_host::SmHost;
use super::lsu::{Entry, Lsu, NO_LOAD, Work};
use super::memory_side::MemorySide;
use super::moment::Moment;
use super::slots::WarpSlot;

/// What the load-store unit's access means for the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stepped {
    /// Nothing yet.
    Nothing,
    /// A line access of a load is answered, and usable from `ready` on.
    Answered {
        load: u16,
        /// A cycle.
        ready: u32,
    },
    /// A request to shared memory of another SM leaves.
    Leaves,
    /// A request of another SM is served.
    Serves {
        /// Passes through the banks.
        passes: u32,
    },
    /// A store of a warp has joined its line: it is performed.
    Joined {
        warp: usize,
        /// As of its entry.
        bulk: u16,
    },
}

/// Where the number of a bulk copy begins in a request's tag, above its warp's.
pub(super) const BULK_SHIFT: u32 = 8;

/// A line access of a load.
#[derive(Clone, Copy)]
struct LoadAccess {
    access: LineAccess,
    part: u8,
    load: u16,
}

impl LoadAccess {
    fn waiter(self) -> Waiter {
        Waiter { load: self.load, part: self.part, lanes: self.access.lanes }
    }
}

/// A load has to wait for what is held.
pub(super) fn load_waits(line: u64, host: &mut SmHost) -> bool {
    let load = Departure { cta: 0, line, is_load: true, is_non_temporal: false, after: 0 };
    host.wants.departures && host.admits(load) != Admission::Goes
}

/// An entry's store joins its line in the L1.
fn combines(entry: &Entry, line: u64, memory: &MemorySide) -> bool {
    let store = entry.kind == RequestKind::Write && entry.load == NO_LOAD && !entry.past_l1;
    store && memory.l1.combines_store(line, entry.local)
}

impl Lsu {
    /// The next access of the head entry.
    #[inline]
    pub(super) fn step(
        &mut self,
        memory: &mut MemorySide,
        slots: &mut [WarpSlot],
        m: &mut Moment<'_>,
        cx: &mut Ctx<'_, Msg>,
    ) -> Stepped {
        let Some(head) = self.queue.front_mut() else { return Stepped::Nothing };
        let (work, load) = (head.work, head.load);
        if let Work::Shared(passes) = work {
            let least = m.p.interval.request_cycles;
            let held = passes.max(least);
            self.free_at = m.cycle + held;
            self.retire_head(m.cycle);
            let ready = m.cycle + m.p.shared.latency_cycles - 1 + (held - least);
            return if load == NO_LOAD { Stepped::Nothing } else { Stepped::Answered { load, ready } };
        }
        if let Work::Leaves | Work::Served(_) = work {
            return self.step_remote(work, m.cycle);
        }
        let access = head.accesses[head.next];
        let part = head.parts.get(head.next).copied().unwrap_or(0);
        let of_load = LoadAccess { access, part, load };
        let done = match work {
            Work::Mark => {
                let marker = self.send_marker();
                memory.marker_at_head(&marker, m.host);
                return Stepped::Nothing;
            }
            Work::Send if combines(head, access.line, memory) => {
                let (warp, bulk) = (usize::from(head.warp), head.bulk);
                memory
                    .combine(head, (slots[warp].cta, slots[warp].launch), m.host, m.record, cx)
                    .then_some(Stepped::Joined { warp, bulk })
            }
            Work::Send => self.send_next(access, memory, slots, m, cx).then_some(Stepped::Nothing),
            // What is held for the line has not been performed.
            _ if load_waits(access.line, m.host) => None,
            Work::Load => self.look_up(of_load, memory, slots, m, cx),
            Work::LoadPast | Work::Shared(_) | Work::Leaves | Work::Served(_) => {
                self.bypass_l1(of_load, memory, slots, m, cx).then_some(Stepped::Nothing)
            }
        };
        let Some(stepped) = done else {
            // What the head waits for may have to leave first.
            self.blocked = m.host.outbox.persists().is_empty();
            return Stepped::Nothing;
        };
        let Some(head) = self.queue.front_mut() else { unreachable!("the head is still there") };
        self.free_at = m.cycle + m.p.interval.request_cycles;
        head.next += 1;
        if head.next == head.accesses.len() {
            self.retire_head(m.cycle);
        }
        stepped
    }

    /// The head is a request between SMs.
    fn step_remote(&mut self, work: Work, cycle: u32) -> Stepped {
        self.retire_head(cycle);
        match work {
            Work::Served(passes) => {
                self.free_at = cycle + passes;
                Stepped::Serves { passes }
            }
            _ => {
                self.free_at = cycle + 1;
                Stepped::Leaves
            }
        }
    }

    /// A store or an atomic leaves for its slice, or is held; false when there is no room for it.
    fn send_next(
        &mut self,
        access: LineAccess,
        memory: &mut MemorySide,
        slots: &[WarpSlot],
        m: &mut Moment<'_>,
        cx: &mut Ctx<'_, Msg>,
    ) -> bool {
        let Some(head) = self.queue.front_mut() else { unreachable!("there is a head") };
        let after = head.after;
        // A marker of a barrier of the kernel is no warp's.
        let slot = slots.get(usize::from(head.warp));
        let by = slot.map_or((0, 0), |slot| (head.warp, slot.cta));
        let is_non_temporal = head.kind == RequestKind::NonTemporal;
        let departure = Departure { cta: by.1, line: access.line, is_load: false, is_non_temporal, after };
        let admission = m.host.admits(departure);
        let held = admission == Admission::Held;
        if admission == Admission::Waits || !held && !memory.port.network.has_room() {
            return false;
        }
        // What the L1 has combined of the line is older.
        let is_atomic = matches!(head.payloads[head.next], Payload::Atomics(_));
        if head.kind != RequestKind::Marker && memory.must_leave(access.line, m.host)
            || is_atomic && memory.atomic_waits(access.line, by.1, after, m.host)
        {
            return false;
        }
        if head.kind != RequestKind::Marker && memory.l1.is_dirty(access.line) {
            if !memory.port.network.has_room_for(2) {
                return false;
            }
            memory.clean_now(access.line, m.host, m.record, cx);
        }
        // Nothing refuses any more: from here on the access leaves the entry for good.
        let mut payload = std::mem::replace(&mut head.payloads[head.next], Payload::None);
        if let Some(line) = payload.line_mut() {
            line.log = head.log;
        }
        let (kind, tag) = match payload {
            Payload::Atomics(_) => (RequestKind::Atomic, u32::from(head.load)),
            _ => (head.kind, u32::from(head.warp) | u32::from(head.bulk) << BULK_SHIFT),
        };
        // The L1's own copy, if any, must not outlive a store past it: it is updated or evicted, in the order
        // of accesses.
        let hit = match kind {
            RequestKind::Marker => false,
            RequestKind::WriteBack | RequestKind::WriteBackToL2 => {
                m.host.wants.accesses && memory.l1.hits(access.line, 0)
            }
            RequestKind::NonTemporal if m.w.persist.past_l1 == PastL1::Update => {
                memory.l1.update(access.line, payload.line())
            }
            _ => memory.l1.evict(access.line),
        };
        if kind.stores() {
            m.record.counters.l1_stores += 1;
            m.record.counters.l1_store_evictions += u64::from(hit && !memory.l1.hits(access.line, 0));
        }
        if m.host.wants.accesses && kind != RequestKind::Marker && Medium::of(access.line) == Medium::Nvm {
            let (bytes, log) = (payload.bytes(), payload.is_log());
            let (line, kind, half_warps) = (access.line, kind.access(), access.half_warps());
            let launch = slot.map_or(0, |slot| slot.launch);
            let (from, mark) = (0, 0);
            m.host.tell(&SmEvent::Accessed(&Access {
                line,
                bytes,
                kind,
                half_warps,
                by,
                launch,
                from,
                mark,
                log,
                hit,
            }));
        }
        let sectors = payload.line().map_or(access.sectors, |line| sectors_touched(line.mask));
        if kind.persists() {
            payload = memory.port.begin_persist(payload, head.issued, head.mark, m.record.now);
        }
        if m.host.wants.accesses {
            payload.set_launch(slot.map_or(0, |slot| slot.launch));
        }
        // A held request too has departed as the scheme counts: departures are numbered in the queue's order.
        let number = m.host.departs(departure, held);
        if kind == RequestKind::NonTemporal
            && let Payload::Persist(persist) = &mut payload
        {
            persist.number = number;
        }
        let request = Request { line: access.line, tag, from: memory.port.requester, kind, sectors, payload };
        if held {
            m.record.counters.pm_held += 1;
            m.host.hold(number, request);
        } else {
            memory.port.network.push(request, cx);
        }
        true
    }

    /// A load looks into the L1; none when it lacks an MSHR, a way or room in the miss queue.
    fn look_up(
        &mut self,
        load: LoadAccess,
        memory: &mut MemorySide,
        slots: &mut [WarpSlot],
        m: &mut Moment<'_>,
        cx: &mut Ctx<'_, Msg>,
    ) -> Option<Stepped> {
        let access = LineAccess { sectors: memory.l1.looked_up(load.access.sectors), ..load.access };
        let load = LoadAccess { access, ..load };
        // Only where the answer matters: the load itself looks again.
        let hits = |memory: &MemorySide| memory.l1.hits(access.line, access.sectors);
        if !memory.port.network.has_room() && !hits(memory) {
            return None;
        }
        if memory.l1.may_be_dirty() && !hits(memory) {
            // The fill must have what was combined of the line; the line that makes room must have nothing.
            if !memory.port.network.has_room_for(3) || memory.must_leave(access.line, m.host) {
                return None;
            }
            memory.clean_now(access.line, m.host, m.record, cx);
            if !memory.make_way(access.line, m.host, m.record, cx) {
                return None;
            }
        }
        // Room for the request of a miss is certain by now; the L1 itself may still lack an MSHR or a way.
        let found = memory.l1.load(access.line, access.sectors, load.waiter());
        if m.host.wants.accesses && !matches!(found, Lookup::Full | Lookup::Reserved) {
            self.tell_load(load, matches!(found, Lookup::Hit(_)), memory, slots, m.host);
        }
        let mut stepped = Stepped::Nothing;
        match found {
            Lookup::Reserved if m.host.wants.loads => {
                return self.load_stalled(load, memory, slots, m, cx).then_some(stepped);
            }
            Lookup::Full | Lookup::Reserved => return None,
            Lookup::Hit(place) => {
                m.record.counters.l1_hits += 1;
                self.load(load.load).deliver(slots, load.part, access.lanes, memory.l1.data(place), m.launches);
                let ready = m.cycle + m.p.l1.hit_cycles - 1;
                stepped = Stepped::Answered { load: load.load, ready };
            }
            Lookup::Merged => m.record.counters.l1_merges += 1,
            Lookup::Miss(mshr) => self.send_read(load, mshr, memory, slots, cx),
        }
        m.record.counters.l1_loads += 1;
        Some(stepped)
    }

    /// A load finds every way reserved: its scheme may have it go past the L1 at once.
    fn load_stalled(
        &mut self,
        load: LoadAccess,
        memory: &mut MemorySide,
        slots: &[WarpSlot],
        m: &mut Moment<'_>,
        cx: &mut Ctx<'_, Msg>,
    ) -> bool {
        let Op::Mem(mem) = self.load(load.load).inst.op else { return false };
        let global =
            matches!(mem.kind, MemKind::Load | MemKind::Copy) && matches!(mem.space, Space::Global | Space::Generic);
        let read_only = mem.cache == CacheOp::ReadOnly;
        let degree = self.queue.front().map_or(0, |head| head.accesses.len() as u32);
        let slice_busy = !memory.port.network.has_credit(load.access.line);
        if !global || !m.host.handler.bypasses_l1(&Load { degree, read_only, stalled: true, slice_busy }) {
            return false;
        }
        let past = self.bypass_l1(load, memory, slots, m, cx);
        m.record.counters.l1_stalls_past += u64::from(past);
        past
    }

    /// A load that leaves the L1 alone; false when it lacks an MSHR or room in the miss queue.
    fn bypass_l1(
        &mut self,
        load: LoadAccess,
        memory: &mut MemorySide,
        slots: &[WarpSlot],
        m: &mut Moment<'_>,
        cx: &mut Ctx<'_, Msg>,
    ) -> bool {
        let access = load.access;
        if !memory.port.network.has_room_for(if memory.l1.may_be_dirty() { 2 } else { 1 })
            || memory.must_leave(access.line, m.host)
        {
            return false;
        }
        memory.clean_now(access.line, m.host, m.record, cx);
        // A copy in the L1 must not answer later loads with older bytes than this one returns.
        memory.l1.evict(access.line);
        match memory.l1.bypass(access.line, access.sectors, load.waiter()) {
            Lookup::Miss(mshr) => {
                m.record.counters.l1_bypasses += 1;
                if m.host.wants.accesses {
                    self.tell_load(load, false, memory, slots, m.host);
                }
                self.send_read(load, mshr, memory, slots, cx);
                true
            }
            _ => false,
        }
    }

    fn send_read(
        &mut self,
        load: LoadAccess,
        mshr: u16,
        memory: &mut MemorySide,
        slots: &[WarpSlot],
        cx: &mut Ctx<'_, Msg>,
    ) {
        let mut content = memory.port.line_pool.take();
        let pending = self.load(load.load);
        content.log = matches!(pending.inst.op, Op::Mem(mem) if mem.hint == StoreHint::Log);
        content.launch = slots[usize::from(pending.warp)].launch;
        let request = Request {
            line: load.access.line,
            tag: u32::from(mshr),
            from: memory.port.requester,
            kind: RequestKind::Read,
            sectors: load.access.sectors,
            payload: Payload::Line(content),
        };
        memory.port.network.push(request, cx);
    }

    /// Tells the handler of a load's access to a line of persistent memory, and of the line that left the L1
    /// for it.
    fn tell_load(
        &mut self,
        load: LoadAccess,
        hit: bool,
        memory: &mut MemorySide,
        slots: &[WarpSlot],
        host: &mut SmHost,
    ) {
        memory.tell_replaced(host);
        let access = load.access;
        if Medium::of(access.line) != Medium::Nvm {
            return;
        }
        let pending = self.load(load.load);
        let Op::Mem(mem) = pending.inst.op else { unreachable!("a load is a memory instruction") };
        // A texel's size is not the instruction's; textures are read by sectors.
        let bytes = match mem.kind {
            MemKind::Texture(_) => sector_bytes(access.sectors),
            _ => lanes_of(access.lanes).fold(0, |mask, lane| {
                mask | ((1u128 << mem.bytes()) - 1) << (pending.offset[lane] & (MAX_LINE_BYTES as u16 - 1))
            }),
        };
        let log = mem.hint == StoreHint::Log;
        let slot = &slots[usize::from(pending.warp)];
        let (by, launch) = ((pending.warp, slot.cta), slot.launch);
        let (line, kind, half_warps) = (access.line, AccessKind::Load, access.half_warps());
        let (from, mark) = (0, 0);
        host.tell(&SmEvent::Accessed(&Access { line, bytes, kind, half_warps, by, launch, from, mark, log, hit }));
    }
}
