//! Persistency at an SM: the way of stores to persistent memory, write-backs, fences, and what a CTA must make durable.
//!
//! What a scheme decides comes from its handler ([`SmHandler`](crate::persist::SmHandler)); the traffic, and the waiting, is done
//! here. A *persist* is a write-through or a write-back whose acknowledgement says that it is durable; a warp counts its
//! own. Accesses to DRAM never come to a handler: persistency operations on them have their plain meaning and are counted.
//!
//! Invariants: requests of one SM to one line are performed in the order of issue, so that a write-back covers every
//! earlier store of the SM; a fence that waits passes only when the warp has no persist under way. Over 500 lines by a few:
//! stores, write-backs and fences of a warp share its count of persists.

use crate::engine::Ctx;
use crate::kernel::fault::FaultKind;
use crate::kernel::ir::{Inst, MemKind, Op, PmOp, Scope, StoreHint};
use crate::kernel::launch::Launch;
use crate::kernel::memory::{Medium, resolve_generic};
use crate::machine::coalescer::{LineAccess, coalesce};
use crate::machine::msg::{MAX_LINE_BYTES, Msg, Payload, Persist, Request, RequestKind, sector_bytes};
use crate::machine::on_dram::OnDram;
use crate::machine::persistence::Clwb;
use crate::machine::persistence::MembarRule;
use crate::machine::stalls::PersistStalls;
use crate::persist::handler::{Access, AccessKind, Event, Load, Store, Synchronisation, WriteBack};
use crate::persist::journal::{FactKind, Notebook};
use crate::persist::vocab::{
    Boundary, FenceKind, FenceRule, PersistScope, Route, StoreClass, WriteBackClass, WriteBackRule,
};

use super::Sm;
use super::lsu::{Entry, NO_LOAD, Work};
use super::memory::{Fault, lanes_of};
use super::wait::Wait;

/// What a store of the program is to a scheme.
pub(super) fn class_of(hint: StoreHint) -> StoreClass {
    match hint {
        StoreHint::Plain => StoreClass::Data,
        StoreHint::NonTemporal => StoreClass::NonTemporal,
        StoreHint::Log => StoreClass::Log,
    }
}

impl Sm {
    /// The journal it kept.
    pub fn journal(&self) -> Option<&Notebook> {
        self.record.journal.as_deref()
    }

    /// Where its persists waited.
    pub fn stalls(&self) -> &PersistStalls {
        &self.record.stalls
    }

    /// For each kernel that used persistency operations on DRAM: the first such instruction.
    pub fn on_dram(&self) -> &[OnDram] {
        &self.record.on_dram
    }

    /// Sends held requests that nothing holds any more, as far as the miss queue has room.
    pub(super) fn release_held(&mut self, cx: &mut Ctx<'_, Msg>) {
        while self.port.network.has_room()
            && let Some(mut request) = self.host.release()
        {
            if let Payload::Persist(persist) = &mut request.payload {
                persist.passed.left = self.record.now;
            }
            self.port.network.push(request, cx);
        }
    }

    /// Tells the handler of a load's access to a line of persistent memory, and of the line that left the L1 for it.
    pub(super) fn tell_load(&mut self, access: LineAccess, load: u16, hit: bool) {
        self.tell_replaced();
        if Medium::of(access.line) != Medium::Nvm {
            return;
        }
        let pending = self.lsu.load(load);
        let Op::Mem(mem) = pending.inst.op else { unreachable!("a load is a memory instruction") };
        // A texel's size is not the instruction's; textures are read by sectors.
        let bytes = match mem.kind {
            MemKind::Texture(_) => sector_bytes(access.sectors),
            _ => lanes_of(access.lanes).fold(0, |mask, lane| {
                mask | ((1u128 << mem.bytes()) - 1) << (pending.offset[lane] & (MAX_LINE_BYTES as u16 - 1))
            }),
        };
        let log = mem.hint == StoreHint::Log;
        let by = (pending.warp, self.core.slots[usize::from(pending.warp)].cta);
        let (line, kind, half_warps) = (access.line, AccessKind::Load, access.half_warps());
        let access = Access { line, bytes, kind, half_warps, by, from: 0, mark: 0, log, hit };
        self.host.tell(&Event::Accessed(&access));
    }

    /// Tells a handler that watches of the line that left the L1 since it was told last.
    pub(super) fn tell_replaced(&mut self) {
        if let Some(line) = self.l1.take_replaced()
            && self.host.wants.accesses
            && Medium::of(line) == Medium::Nvm
        {
            self.host.tell(&Event::Replaced(line));
        }
    }

    /// Tells the handler of a request that passes the L1.
    pub(super) fn tell_passing(
        &mut self,
        access: LineAccess,
        kind: RequestKind,
        payload: &Payload,
        warp: u8,
        hit: bool,
    ) {
        if Medium::of(access.line) == Medium::Nvm {
            let by = self.core.slots.get(usize::from(warp)).map_or((0, 0), |slot| (warp, slot.cta));
            let (bytes, log) = (payload.bytes(), payload.is_log());
            let (line, kind, half_warps) = (access.line, kind.access(), access.half_warps());
            let access = Access { line, bytes, kind, half_warps, by, from: 0, mark: 0, log, hit };
            self.host.tell(&Event::Accessed(&access));
        }
    }

    /// A persist's acknowledgement is here.
    pub(super) fn end_persist(&mut self, mut persist: Box<Persist>) {
        if let Some(line) = persist.line.take() {
            self.port.line_pool.give(line);
        }
        let number = std::mem::take(&mut persist.number);
        self.record.stalls.record(&persist.passed, self.w.link, self.record.now);
        if number != 0 || self.host.wants.accesses {
            let cycles = (self.record.now - persist.passed.issued) / self.w.clock.period_ticks();
            self.host.tell(&Event::Acknowledged { number, cycles });
            for author in self.host.outbox.settled().drain(..) {
                self.record.note_of(author, FactKind::FenceSettled, 0);
            }
        }
        self.port.spare_persists.push(persist);
    }

    /// Asks a handler that steers loads whether one goes past the L1.
    pub(super) fn steer_load(&mut self, entry: &mut Entry, read_only: bool) {
        let degree = entry.accesses.len() as u32;
        if self.host.handler.bypasses_l1(&Load { degree, read_only, stalled: false, slice_busy: false }) {
            entry.work = Work::LoadPast;
            self.record.counters.l1_loads_steered += u64::from(degree);
        }
    }

    /// Sends the line accesses of a store whose payloads are ready: those to persistent memory as the scheme says.
    pub(super) fn send_stores(&mut self, warp: usize, class: StoreClass, mut entry: Box<Entry>, launch: &Launch) {
        if entry.accesses.iter().all(|access| Medium::of(access.line) == Medium::Dram) {
            entry.after = self.core.slots[warp].order.fenced;
            if class != StoreClass::Data {
                self.record.note_on_dram(&self.core.slots[warp], launch);
            }
            self.enqueue(warp, NO_LOAD, entry);
            return;
        }
        self.keep_lines(&entry);
        let persistent = entry.accesses.iter().filter(|access| Medium::of(access.line) == Medium::Nvm).count();
        let slot = &self.core.slots[warp];
        let store = Store {
            class,
            warp: warp as u8,
            degree: entry.accesses.len() as u32,
            atomic: false,
            lines: &self.host.lines,
            accesses: persistent as u32,
            cta: slot.cta,
            knows: slot.order.fenced,
        };
        let rule = self.host.handler.store(&store, &mut self.host.outbox);
        self.record.counters.pm_stores += 1;
        if class == StoreClass::Log {
            self.record.counters.pm_log_stores += 1;
            self.record.counters.pm_log_stores_past += u64::from(rule.route == Route::NonTemporal);
            self.record.counters.pm_log_stores_dropped += u64::from(rule.route == Route::Dropped);
        }
        self.host.store_waits |= rule.wait && rule.route != Route::Dropped;
        // Lanes may store to both media; each line goes its way.
        entry.log = class == StoreClass::Log;
        let mut past = self.lsu.entry(warp as u8, Work::Send, NO_LOAD);
        past.log = entry.log;
        // Where the handler orders what leaves a combining L1, such a store joins its line there.
        past.kind = if self.leaving.order.is_some() { RequestKind::Write } else { RequestKind::NonTemporal };
        past.mark = rule.mark;
        let mut at = 0;
        while at < entry.accesses.len() {
            let persistent = Medium::of(entry.accesses[at].line) == Medium::Nvm;
            if persistent && rule.route != Route::Dropped {
                self.record.counters.pm_store_accesses += 1;
                self.record.counters.pm_log_store_accesses += u64::from(class == StoreClass::Log);
                let past = rule.route == Route::NonTemporal;
                let kind = if past { FactKind::StoredNonTemporal } else { FactKind::Stored };
                self.record.note_store(&self.core.slots[warp], kind, entry.accesses[at], &entry.payloads[at]);
                if self.front_end.present
                    && let Payload::Line(content) = std::mem::replace(&mut entry.payloads[at], Payload::None)
                {
                    self.copy_store(warp, entry.accesses[at].line, &content);
                    entry.payloads[at] = Payload::Line(content);
                }
            }
            if persistent && rule.route != Route::Temporal {
                let access = entry.accesses.remove(at);
                let payload = entry.payloads.remove(at);
                if rule.route == Route::NonTemporal {
                    past.accesses.push(access);
                    past.payloads.push(payload);
                } else if let Payload::Line(room) = payload {
                    self.port.line_pool.give(room);
                }
            } else {
                at += 1;
            }
        }
        if let Some(books) = &mut self.leaving.order {
            let slot = &mut self.core.slots[warp];
            past.after = slot.order.fenced;
            if !past.accesses.is_empty() {
                slot.order.past = books.issue(slot.cta, past.accesses.len() as u64);
            }
        }
        if let Some(order) = rule.order {
            let slot = &mut self.core.slots[warp];
            let cached = rule.route == Route::Temporal;
            entry.after = if cached { order.after } else { slot.order.fenced };
            if !past.accesses.is_empty() {
                past.after = order.after;
                slot.order.past = order.number;
            }
        }
        for entry in [entry, past] {
            if entry.accesses.is_empty() {
                self.lsu.discard(entry);
            } else {
                self.enqueue(warp, NO_LOAD, entry);
            }
        }
        if rule.wait && rule.route == Route::Temporal {
            self.write_back_lines(warp, RequestKind::WriteBack);
        }
    }

    /// Sends an atomic. It is performed at the L2; a scheme that waits for every store has its lines written back then.
    pub(super) fn send_atomics(&mut self, warp: usize, load: u16, mut entry: Box<Entry>) {
        let persistent = entry.accesses.iter().filter(|access| Medium::of(access.line) == Medium::Nvm).count();
        let (cta, knows) = (self.core.slots[warp].cta, self.core.slots[warp].order.fenced);
        entry.after = knows;
        self.record.counters.pm_store_accesses += persistent as u64;
        let mut wait = false;
        if persistent > 0 {
            self.keep_lines(&entry);
            let store = Store {
                class: StoreClass::Data,
                warp: warp as u8,
                degree: entry.accesses.len() as u32,
                atomic: true,
                lines: &self.host.lines,
                accesses: persistent as u32,
                cta,
                knows,
            };
            let rule = self.host.handler.store(&store, &mut self.host.outbox);
            wait = rule.wait;
            entry.after = rule.order.map_or(knows, |order| order.after);
        }
        if self.record.journal.is_some() {
            for access in entry.accesses.iter().filter(|access| Medium::of(access.line) == Medium::Nvm) {
                self.record.note(&self.core.slots[warp], FactKind::Updated, access.line);
            }
        }
        if self.front_end.present {
            self.begin_copying(warp, &mut entry);
        }
        self.enqueue(warp, load, entry);
        if wait {
            self.host.store_waits = true;
            self.write_back_lines(warp, RequestKind::WriteBack);
        }
    }

    /// Keeps the lines of persistent memory that an entry accesses, each once.
    fn keep_lines(&mut self, entry: &Entry) {
        self.host.lines.clear();
        for access in &entry.accesses {
            if Medium::of(access.line) == Medium::Nvm && !self.host.lines.contains(&access.line) {
                self.host.lines.push(access.line);
            }
        }
    }

    /// Writes back the kept lines, behind every earlier access of the SM.
    fn write_back_lines(&mut self, warp: usize, kind: RequestKind) {
        let mut entry = self.lsu.entry(warp as u8, Work::Send, NO_LOAD);
        entry.kind = kind;
        for at in 0..self.host.lines.len() {
            entry.accesses.push(LineAccess { line: self.host.lines[at], sectors: 0, lanes: 0 });
            entry.payloads.push(Payload::None);
            self.record.note(&self.core.slots[warp], FactKind::WroteBack, self.host.lines[at]);
        }
        self.enqueue(warp, NO_LOAD, entry);
    }

    /// Issues a persistency operation that is no store: what the warp has to wait for.
    pub(super) fn issue_persistency(
        &mut self,
        warp: usize,
        inst: &Inst,
        op: PmOp,
        lanes: u64,
        launch: &Launch,
    ) -> Result<Option<(FenceKind, FenceRule)>, Fault> {
        if lanes == 0 {
            return Ok(None);
        }
        let fence = match op {
            PmOp::Clwb => return self.issue_write_back(warp, inst, WriteBackClass::Data, lanes, launch),
            PmOp::ClwbLog => return self.issue_write_back(warp, inst, WriteBackClass::Log, lanes, launch),
            PmOp::ClflushOpt => return self.issue_write_back(warp, inst, WriteBackClass::Flush, lanes, launch),
            PmOp::Sfence => FenceKind::Sfence,
            PmOp::Ofence => FenceKind::Ofence,
            PmOp::Dfence => FenceKind::Dfence,
            PmOp::BarrierWi => FenceKind::BarrierThread,
            PmOp::BarrierWg => FenceKind::BarrierCta,
            PmOp::BarrierKr => FenceKind::BarrierKernel,
            PmOp::Release(scope) => {
                self.orders_copies(warp);
                return Ok(self.release_persists(warp, scope != Scope::Cta));
            }
            PmOp::Acquire(scope) => {
                self.orders_copies(warp);
                self.acquire_persists(warp, scope != Scope::Cta);
                return Ok(None);
            }
            PmOp::Region => {
                self.end_region(warp);
                return Ok(None);
            }
            // Marks of schemes that are not there yet.
            PmOp::TxBegin | PmOp::TxEnd => return Ok(None),
        };
        self.orders_copies(warp);
        self.record.counters.pm_fences += 1;
        Ok(Some((fence, self.host.handler.fence(fence))))
    }

    /// A warp releases: where its handler orders persists, a fence whose order passes on to who acquires.
    fn release_persists(&mut self, warp: usize, wide: bool) -> Option<(FenceKind, FenceRule)> {
        if !self.host.wants.persist_order {
            return None;
        }
        let rule = self.host.handler.synchronise(Synchronisation::Release { wide }).fence;
        if rule == FenceRule::Pass {
            return None;
        }
        self.record.note(&self.core.slots[warp], FactKind::Synchronised, 0);
        self.record.counters.pm_fences += 1;
        let slot = &self.core.slots[warp];
        let cta = &mut self.core.ctas[usize::from(slot.cta)];
        cta.fenced = cta.fenced.max(slot.order.past);
        Some((FenceKind::Ofence, rule))
    }

    /// A warp acquires: what its CTA has released comes before what it stores from now on.
    fn acquire_persists(&mut self, warp: usize, wide: bool) {
        if !self.host.wants.persist_order {
            return;
        }
        self.record.note(&self.core.slots[warp], FactKind::Synchronised, 0);
        self.core.share_fences(warp);
        if self.host.handler.synchronise(Synchronisation::Acquire { wide }).forgets {
            self.l1.invalidate_all();
        }
    }

    fn issue_write_back(
        &mut self,
        warp: usize,
        inst: &Inst,
        class: WriteBackClass,
        lanes: u64,
        launch: &Launch,
    ) -> Result<Option<(FenceKind, FenceRule)>, Fault> {
        let mut address = [0; 64];
        self.core.slots[warp].warp.addresses(inst, launch, lanes, &mut address);
        for lane in (0..64).filter(|lane| lanes >> lane & 1 == 1) {
            address[lane] = resolve_generic(address[lane]).1;
            if launch.addresses.containing(address[lane], address[lane]).is_none() {
                let hint = launch.addresses.describe(address[lane]);
                let kind = FaultKind::OutOfBounds { address: address[lane], bytes: 1, space: "global", hint };
                return Err(Box::new(self.fault(warp, lane as u32, kind, launch)));
            }
        }
        // One write-back a line and warp instruction.
        let mut touched = self.lsu.entry(warp as u8, Work::Send, NO_LOAD);
        coalesce(self.p.sm.coalescer, &address, lanes, 1, self.w.line_bytes, &mut touched.accesses);
        self.keep_lines(&touched);
        // Write-backs of a line by several accesses are one request, but counted as the coalescer makes them.
        let persistent = touched.accesses.iter().filter(|access| Medium::of(access.line) == Medium::Nvm).count();
        let on_dram = persistent < touched.accesses.len();
        self.lsu.discard(touched);
        if on_dram {
            self.record.note_on_dram(&self.core.slots[warp], launch);
        }
        self.record.counters.pm_write_backs += 1;
        let write_back = WriteBack { class, warp: warp as u8, lines: &self.host.lines };
        if !self.host.lines.is_empty()
            && self.host.handler.write_back(&write_back, &mut self.host.outbox) == WriteBackRule::Done
        {
            self.record.counters.pm_write_back_accesses += persistent as u64;
            self.record.counters.pm_log_write_back_accesses +=
                if class == WriteBackClass::Log { persistent as u64 } else { 0 };
            let kind = match (class, self.w.persist.clwb) {
                (WriteBackClass::Flush, _) => RequestKind::Flush,
                (_, Clwb::Write) => RequestKind::WriteBack,
                (_, Clwb::L2) => RequestKind::WriteBackToL2,
            };
            self.write_back_lines(warp, kind);
        }
        Ok(None)
    }

    /// What an ordinary fence means for persistency: true when it waits for durability too.
    pub(super) fn fence_persists(&self, scope: Scope) -> bool {
        let rule = match scope {
            Scope::Cta => MembarRule::Fence,
            Scope::Gpu => self.w.persist.membar_gl,
            Scope::Sys => self.w.persist.membar_sys,
        };
        rule == MembarRule::Sfence
    }

    /// The warp goes on, or comes to the persist barrier that follows, when all its persists are durable; where the others
    /// are `ordered`, when its write-backs are.
    pub(super) fn wait_durable(
        &mut self,
        warp: usize,
        ordered: bool,
        then: Option<PersistScope>,
        from: u32,
        launch: &Launch,
        cx: &mut Ctx<'_, Msg>,
    ) {
        // One that is no fence is a store that its scheme has the warp wait for.
        self.record.stall_begins(warp, &self.core.slots[warp], "durable store", from);
        let flushing = !ordered && self.is_unpersisted(warp);
        if flushing {
            let (cta, past) = (self.core.slots[warp].cta, self.core.slots[warp].order.past);
            self.host.tell(&Event::Flush { cta, number: past });
        }
        if self.core.slots[warp].under_way.awaited(ordered) == 0 && !flushing {
            self.core.slots[warp].since = from;
            self.pass_durable(warp, then, from, launch, cx);
        } else {
            self.core.enter(warp, Wait::Durable { ordered, flushing, then }, from);
        }
    }

    /// What a warp waited for is durable.
    pub(super) fn pass_durable(
        &mut self,
        warp: usize,
        then: Option<PersistScope>,
        cycle: u32,
        launch: &Launch,
        cx: &mut Ctx<'_, Msg>,
    ) {
        let waited = cycle - self.core.slots[warp].since.min(cycle);
        self.record.stalls.fences.record(self.w.clock.cycles(u64::from(waited)));
        if self.core.slots[warp].under_way.persists == 0 && !self.is_unpersisted(warp) {
            self.record.note(&self.core.slots[warp], FactKind::FencePassed, 0);
        } else {
            self.record.note(&self.core.slots[warp], FactKind::FenceOrdered, 0);
            self.record.counters.pm_fences_ordered += 1;
            self.core.slots[warp].order.fenced =
                self.core.slots[warp].order.fenced.max(self.core.slots[warp].order.past);
            let (number, author) = (self.core.slots[warp].order.past, self.record.author(&self.core.slots[warp]));
            let cta = self.core.slots[warp].cta;
            self.host.tell(&Event::FenceOrdered { cta, number, author });
            if self.record.journal.is_some()
                && let Some(order) = &mut self.leaving.order
            {
                order.fence(cta, number, author);
            }
        }
        match then {
            Some(scope) => self.arrive_persist(warp, scope, false, cycle, launch, cx),
            None => {
                self.record.stall_ends(warp, cycle);
                self.core.settle(warp, cycle, launch);
            }
        }
    }

    /// A CTA's last warp is gone: ends the CTA, once what its scheme wants durable is.
    pub(super) fn end_cta(&mut self, cta: usize, cx: &mut Ctx<'_, Msg>) {
        self.core.ctas[cta].boundary = self.host.handler.boundary(&mut self.host.outbox);
        if !self.release_cta(cta) {
            self.leave_cta(cta, cx);
        }
    }

    /// Ends a CTA all of whose stores are performed.
    pub(super) fn leave_cta(&mut self, cta: usize, cx: &mut Ctx<'_, Msg>) {
        if self.core.ctas[cta].boundary == Boundary::WriteBackL2 {
            let slices = self.w.ports.map().slices();
            self.core.ctas[cta].flushing = slices;
            self.core.ctas[cta].ended = cx.now();
            for slice in 0..slices {
                self.port.network.push(self.write_back_slice(slice, cta as u32), cx);
            }
        } else {
            self.report_cta(cta, cx);
        }
    }

    fn write_back_slice(&self, slice: u32, tag: u32) -> Request {
        let line = self.w.ports.map().some_line_of(slice);
        Request {
            line,
            tag,
            from: self.w.ports.requester(),
            kind: RequestKind::WriteBackAll,
            sectors: 0,
            payload: Payload::None,
        }
    }

    /// A slice has written back everything for a CTA that ends.
    pub(super) fn slice_written_back(&mut self, cta: usize, cx: &mut Ctx<'_, Msg>) {
        self.core.ctas[cta].flushing -= 1;
        if self.core.ctas[cta].flushing == 0 {
            self.record.stalls.boundaries.record(cx.now() - self.core.ctas[cta].ended);
            self.report_cta(cta, cx);
        }
    }

    fn report_cta(&mut self, cta: usize, cx: &mut Ctx<'_, Msg>) {
        self.record.cta_ends(cta, &self.core.ctas[cta]);
        cx.send(self.dispatch_port(), Msg::CtaDone { sm: self.w.index }, 0);
    }
}
