//! What the load-store unit sends, and what comes back: L1 lookups, misses, stores, atomics, persists, and their replies.
//!
//! The head of the queue starts one line access a cycle; it waits, and everything behind it, while it lacks an MSHR or room in
//! the miss queue. Invariants: accesses leave in the order of issue; a load's registers may be read once its last answer
//! has come; nothing overtakes a request to its line that is held at the gate. Source: the pipeline of GPGPU-Sim's `ldst_unit`, one access a cycle. Not modelled: replays out of order.

use crate::engine::Ctx;
use crate::kernel::ir::{CacheOp, MemKind, Op, Space, StoreHint};
use crate::kernel::launch::Launch;
use crate::machine::coalescer::LineAccess;
use crate::machine::l1::{Lookup, Waiter};
use crate::machine::msg::{Msg, Payload, Reply, Request, RequestKind, sectors_touched};
use crate::machine::persistence::PastL1;
use crate::persist::handler::{Admission, Departure, Load};

use super::Sm;
use super::lsu::{Entry, NO_LOAD, Work};
use super::marker::GRID;
use super::memory::lanes_of;
use super::wait::Wait;

impl Sm {
    /// One cycle of the load-store unit: the next access of the head entry.
    pub(super) fn step_lsu(&mut self, cycle: u32, launch: &Launch, cx: &mut Ctx<'_, Msg>) {
        self.lsu.blocked &= self.host.outbox.persists().is_empty() || !self.port.network.has_room();
        if self.lsu.blocked || self.lsu.free_at > cycle || self.step_cleaning(cycle, launch, cx) {
            return;
        }
        let Some(head) = self.lsu.queue.front() else { return };
        let (work, load) = (head.work, head.load);
        if work == Work::Shared {
            let passes = head.passes;
            self.lsu.free_at = cycle + passes;
            self.lsu.retire_head();
            if load != NO_LOAD {
                let ready = cycle + self.p.shared.latency_cycles - 1 + (passes - 1);
                self.answered(load, 1, ready, cycle, launch, cx);
            }
            return;
        }
        let access = head.accesses[head.next];
        let part = head.parts.get(head.next).copied().unwrap_or(0);
        let done = match work {
            Work::Mark => return self.drain(),
            Work::Send if self.combines(head, access.line) => self.combine_next(access, cycle, launch, cx),
            Work::Send => self.send_next(access, cx),
            // What is held for the line has not been performed.
            _ if self.load_waits(access.line) => false,
            Work::Load => self.look_up(access, part, load, cycle, launch, cx),
            Work::LoadPast | Work::Shared => self.bypasses_l1(access, part, load, cx),
        };
        if !done {
            // What the head waits for may have to leave first.
            self.lsu.blocked = self.host.outbox.persists().is_empty();
            return;
        }
        let Some(head) = self.lsu.queue.front_mut() else { unreachable!("the head is still there") };
        head.next += 1;
        if head.next == head.accesses.len() {
            self.lsu.retire_head();
        }
    }

    /// A load has to wait for what is held.
    fn load_waits(&mut self, line: u64) -> bool {
        let load = Departure { cta: 0, line, is_load: true, is_non_temporal: false, after: 0 };
        self.host.wants.departures && self.host.admits(load) != Admission::Goes
    }

    /// An entry's store joins its line in the L1.
    fn combines(&self, entry: &Entry, line: u64) -> bool {
        let store = entry.kind == RequestKind::Write && entry.load == NO_LOAD && !entry.past_l1;
        store && self.l1.combines_store(line, entry.local)
    }

    /// A store or an atomic leaves for its slice, or is held at the gate; false when there is no room for it.
    fn send_next(&mut self, access: LineAccess, cx: &mut Ctx<'_, Msg>) -> bool {
        let Some(head) = self.lsu.queue.front_mut() else { unreachable!("there is a head") };
        let after = head.after;
        // A marker of a barrier of the kernel is no warp's.
        let cta = self.core.slots.get(usize::from(head.warp)).map_or(0, |slot| slot.cta);
        let is_non_temporal = head.kind == RequestKind::NonTemporal;
        let departure = Departure { cta, line: access.line, is_load: false, is_non_temporal, after };
        let admission = self.host.admits(departure);
        let held = admission == Admission::Held;
        if admission == Admission::Waits || !held && !self.port.network.has_room() {
            return false;
        }
        // What the L1 has combined of the line is older.
        let (warp, is_atomic) = (usize::from(head.warp), matches!(head.payloads[head.next], Payload::Atomics(_)));
        if head.kind != RequestKind::Marker && self.must_leave(access.line)
            || is_atomic && self.atomic_waits(access.line, warp, after)
        {
            return false;
        }
        let Some(head) = self.lsu.queue.front() else { unreachable!("there is a head") };
        if head.kind != RequestKind::Marker && self.l1.is_dirty(access.line) {
            if !self.port.network.has_room_for(2) {
                return false;
            }
            self.clean_now(access.line, cx);
        }
        let Some(head) = self.lsu.queue.front_mut() else { unreachable!("there is a head") };
        let mut payload = std::mem::replace(&mut head.payloads[head.next], Payload::None);
        if let Some(line) = payload.line_mut() {
            line.log = head.log;
        }
        let (kind, tag) = match payload {
            Payload::Atomics(_) => (RequestKind::Atomic, u32::from(head.load)),
            _ => (head.kind, u32::from(head.warp)),
        };
        let (issued, mark) = (head.issued, head.mark);
        let warp = head.warp;
        let hit = match kind {
            RequestKind::Marker => false,
            RequestKind::WriteBack | RequestKind::WriteBackToL2 => {
                self.host.wants.accesses && self.l1.hits(access.line, 0)
            }
            RequestKind::NonTemporal if self.w.persist.past_l1 == PastL1::Update => {
                self.l1.update(access.line, payload.line())
            }
            _ => self.l1.evict(access.line),
        };
        if kind.stores() {
            self.record.counters.l1_stores += 1;
            self.record.counters.l1_store_evictions += u64::from(hit && !self.l1.hits(access.line, 0));
        }
        if self.host.wants.accesses && kind != RequestKind::Marker {
            self.tell_passing(access, kind, &payload, warp, hit);
        }
        let sectors = payload.line().map_or(access.sectors, |line| sectors_touched(line.mask));
        let mut payload =
            if kind.persists() { self.port.begin_persist(payload, issued, mark, self.record.now) } else { payload };
        let number = self.host.departs(departure, held);
        if kind == RequestKind::NonTemporal
            && let Payload::Persist(persist) = &mut payload
        {
            persist.number = number;
        }
        let request = Request { line: access.line, tag, from: self.w.ports.requester(), kind, sectors, payload };
        if held {
            self.record.counters.pm_held += 1;
            self.host.hold(number, request);
        } else {
            self.port.network.push(request, cx);
        }
        true
    }

    /// A load looks into the L1; false when it lacks an MSHR, a way or room in the miss queue.
    fn look_up(
        &mut self,
        access: LineAccess,
        part: u8,
        load: u16,
        cycle: u32,
        launch: &Launch,
        cx: &mut Ctx<'_, Msg>,
    ) -> bool {
        let hits = self.l1.hits(access.line, access.sectors);
        if !self.port.network.has_room() && !hits {
            return false;
        }
        if self.l1.may_be_dirty() && !hits {
            // The fill must have what was combined of the line; the line that makes room must have nothing.
            if !self.port.network.has_room_for(3) || self.must_leave(access.line) {
                return false;
            }
            self.clean_now(access.line, cx);
            if !self.make_way(access.line, cx) {
                return false;
            }
        }
        let found = self.l1.load(access.line, access.sectors, Waiter { load, part, lanes: access.lanes });
        if self.host.wants.accesses && !matches!(found, Lookup::Full | Lookup::Reserved) {
            self.tell_load(access, load, matches!(found, Lookup::Hit(_)));
        }
        match found {
            Lookup::Reserved if self.host.wants.loads => return self.load_stalled(access, part, load, cx),
            Lookup::Full | Lookup::Reserved => return false,
            Lookup::Hit(place) => {
                self.record.counters.l1_hits += 1;
                let pending = self.lsu.load(load);
                deliver(pending, &mut self.core.slots, part, access.lanes, self.l1.data(place), launch);
                let ready = cycle + self.p.l1.hit_cycles - 1;
                self.answered(load, 1, ready, cycle, launch, cx);
            }
            Lookup::Merged => self.record.counters.l1_merges += 1,
            Lookup::Miss(mshr) => self.send_read(access, load, mshr, cx),
        }
        self.record.counters.l1_loads += 1;
        true
    }

    /// A load finds every way reserved: its scheme may have it go past the L1 at once.
    fn load_stalled(&mut self, access: LineAccess, part: u8, load: u16, cx: &mut Ctx<'_, Msg>) -> bool {
        let Op::Mem(mem) = self.lsu.load(load).inst.op else { return false };
        let global = mem.kind == MemKind::Load && matches!(mem.space, Space::Global | Space::Generic);
        let read_only = mem.cache == CacheOp::ReadOnly;
        let degree = self.lsu.queue.front().map_or(0, |head| head.accesses.len() as u32);
        let slice_busy = !self.port.network.has_credit(access.line);
        if !global || !self.host.handler.bypasses_l1(&Load { degree, read_only, stalled: true, slice_busy }) {
            return false;
        }
        let past = self.bypasses_l1(access, part, load, cx);
        self.record.counters.l1_stalls_past += u64::from(past);
        past
    }

    fn bypasses_l1(&mut self, access: LineAccess, part: u8, load: u16, cx: &mut Ctx<'_, Msg>) -> bool {
        if !self.port.network.has_room_for(if self.l1.may_be_dirty() { 2 } else { 1 }) || self.must_leave(access.line) {
            return false;
        }
        self.clean_now(access.line, cx);
        // A copy in the L1 must not answer later loads with older bytes than this one returns.
        self.l1.evict(access.line);
        match self.l1.bypasses_l1(access.line, access.sectors, Waiter { load, part, lanes: access.lanes }) {
            Lookup::Miss(mshr) => {
                self.record.counters.l1_bypasses += 1;
                if self.host.wants.accesses {
                    self.tell_load(access, load, false);
                }
                self.send_read(access, load, mshr, cx);
                true
            }
            _ => false,
        }
    }

    fn send_read(&mut self, access: LineAccess, load: u16, mshr: u16, cx: &mut Ctx<'_, Msg>) {
        let mut room = self.port.line_pool.take();
        room.log = matches!(self.lsu.load(load).inst.op, Op::Mem(mem) if mem.hint == StoreHint::Log);
        let request = Request {
            line: access.line,
            tag: u32::from(mshr),
            from: self.w.ports.requester(),
            kind: RequestKind::Read,
            sectors: access.sectors,
            payload: Payload::Line(room),
        };
        self.port.network.push(request, cx);
    }

    /// `count` line accesses of a load are answered, the last of them usable from `ready` on.
    fn answered(&mut self, load: u16, count: u32, ready: u32, cycle: u32, launch: &Launch, cx: &mut Ctx<'_, Msg>) {
        let pending = self.lsu.load(load);
        pending.left -= count;
        pending.ready = pending.ready.max(ready);
        if pending.left > 0 {
            return;
        }
        let (warp, pc, lanes, inst, ready) =
            (usize::from(pending.warp), pending.pc as usize, pending.lanes, pending.inst, pending.ready);
        if let Some(words) = &pending.staging {
            let apart = std::array::from_fn(|lane| 16 * lane as u16);
            self.core.slots[warp].warp.write_back(&inst, launch, lanes, &apart, &words[..]);
        }
        self.lsu.close_load(load);
        self.core.write_from(warp, pc, ready, launch);
        self.core.slots[warp].under_way.loads -= 1;
        self.resume(warp, cycle, launch, cx);
    }

    /// Something a warp may have waited for has come.
    pub(super) fn resume(&mut self, warp: usize, cycle: u32, launch: &Launch, cx: &mut Ctx<'_, Msg>) {
        let slot = &self.core.slots[warp];
        match slot.wait {
            Wait::Register => self.core.settle(warp, cycle, launch),
            Wait::Performed { then, cleaning: 0 } if slot.under_way.is_performed() => {
                self.release(warp, then, cycle, launch, cx);
            }
            Wait::Durable { ordered, flushing: false, then } if slot.under_way.awaited(ordered) == 0 => {
                self.pass_durable(warp, then, cycle, launch, cx);
            }
            Wait::Marker(scope) if slot.under_way.persists == 0 => self.marker_passed(warp, scope, cycle, launch),
            Wait::Drained => self.retire_if_drained(warp, cycle, cx),
            _ => {}
        }
    }

    /// A reply is out of the ejection port.
    pub(super) fn reply(&mut self, reply: Reply, launch: &Launch, cx: &mut Ctx<'_, Msg>) {
        let cycle = self.cycle_from(cx.now());
        self.lsu.blocked = false;
        match (reply.kind, reply.payload) {
            (RequestKind::Read, Payload::Line(line)) => {
                let mut waiters = std::mem::take(&mut self.lsu.waiters);
                self.l1.fill(reply.tag as u16, reply.sectors, &line, &mut waiters);
                for Waiter { load, part, lanes } in waiters.drain(..) {
                    let pending = self.lsu.load(load);
                    deliver(pending, &mut self.core.slots, part, lanes, &line.bytes, launch);
                    self.answered(load, 1, cycle, cycle, launch, cx);
                }
                self.lsu.waiters = waiters;
                self.port.line_pool.give(line);
            }
            (RequestKind::Write, Payload::Line(line)) => {
                self.port.line_pool.give(line);
                if Sm::is_cleaning(reply.tag) {
                    self.cleaned(reply.tag, cycle, launch, cx);
                    return;
                }
                let warp = reply.tag as usize;
                self.core.slots[warp].under_way.stores -= 1;
                self.resume(warp, cycle, launch, cx);
            }
            (RequestKind::Atomic, Payload::Atomics(atomics)) => {
                let load = reply.tag as u16;
                if self.front_end.present {
                    let warp = usize::from(self.lsu.load(load).warp);
                    self.copy_atomics(warp, &atomics);
                    if self.core.slots[warp].under_way.copying == 0 && self.front_end.waiting >> warp & 1 == 1 {
                        self.front_end.waiting &= !(1 << warp);
                        self.core.settle(warp, cycle, launch);
                    }
                }
                let pending = self.lsu.load(load);
                let returns = matches!(pending.inst.op, Op::Mem(m) if m.kind == MemKind::Atomic);
                if returns {
                    let (warp, inst) = (usize::from(pending.warp), pending.inst);
                    for i in 0..usize::from(atomics.count) {
                        self.core.slots[warp].warp.write_atomic(&inst, u32::from(atomics.lane[i]), atomics.a[i]);
                    }
                }
                self.lsu.spare_atomics.push(atomics);
                self.answered(load, 1, cycle, cycle, launch, cx);
            }
            (RequestKind::WriteBackAll, _) => self.slice_written_back(reply.tag as usize, cx),
            (RequestKind::NonTemporal, Payload::Persist(persist)) if Sm::is_cleaning(reply.tag) => {
                self.persisted(persist, cycle, launch, cx);
            }
            (_, Payload::Persist(persist)) => {
                self.end_persist(persist);
                if reply.tag == u32::from(GRID) {
                    self.grid_acknowledged(cx);
                    return;
                }
                let warp = reply.tag as usize;
                self.core.slots[warp].under_way.persists -= 1;
                self.core.slots[warp].under_way.throughs -= u32::from(reply.kind == RequestKind::NonTemporal);
                self.resume(warp, cycle, launch, cx);
            }
            (kind, payload) => panic!("a reply to a {kind:?} with {payload:?}"),
        }
    }
}

/// Gives the bytes of a line to the lanes of a load that wait for them.
fn deliver(
    pending: &mut super::lsu::PendingLoad,
    slots: &mut [super::slots::WarpSlot],
    part: u8,
    lanes: u64,
    bytes: &[u8],
    launch: &Launch,
) {
    match &mut pending.staging {
        None => {
            slots[usize::from(pending.warp)].warp.write_back(&pending.inst, launch, lanes, &pending.offset, bytes);
        }
        Some(words) => {
            for lane in lanes_of(lanes) {
                let (from, to) = (usize::from(pending.offset[lane]), 16 * lane + 4 * usize::from(part));
                words[to..to + 4].copy_from_slice(&bytes[from..from + 4]);
            }
        }
    }
}
