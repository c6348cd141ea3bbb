//! Persistency at an SM: the way of stores to persistent memory, write-backs, fences, and what a CTA must make durable.
//!
//! What a scheme decides comes from its handler ([`SmHandler`](crate::persist::SmHandler)); the traffic, and the waiting, is done
//! here. A *persist* is a write-through or a write-back whose acknowledgement says that it is durable; a warp counts its
//! own. Accesses to DRAM never come to a handler: persistency operations on them have their plain meaning and are counted.
//!
//! Invariants: requests of one SM to one line are performed in the order of issue, so that a write-back covers every
//! earlier store of the SM; a fence that waits passes only when the warp has no persist under way. Over 500 lines by a few:
//! stores, write-backs and fences of a warp share its count of persists.

use crate::engine::{Ctx, Time};
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
use crate::persist::handler::{Access, AccessKind, Load, Store, WriteBack};
use crate::persist::journal::{Author, FactKind, Notebook};
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
        self.journal.as_deref()
    }

    /// Where its persists waited.
    pub fn stalls(&self) -> &PersistStalls {
        &self.stalls
    }

    /// For each kernel that used persistency operations on DRAM: the first such instruction.
    pub fn on_dram(&self) -> &[OnDram] {
        &self.on_dram
    }

    fn note_on_dram(&mut self, warp: usize, launch: &Launch) {
        self.counters.pm_on_dram += 1;
        let pc = self.slots[warp].warp.pc();
        OnDram::note(&mut self.on_dram, self.launches.wrapping_sub(1), pc, launch);
    }

    /// Sends held requests that nothing holds any more, as far as the miss queue has room.
    pub(super) fn release_held(&mut self, cx: &mut Ctx<'_, Msg>) {
        while self.network.has_room()
            && let Some(mut request) = self.gate.as_mut().and_then(|gate| gate.release())
        {
            if let Payload::Persist(persist) = &mut request.payload {
                persist.passed.left = self.now;
            }
            self.network.push(request, cx);
        }
    }

    /// A persist leaves the load-store unit, with what it writes: from now on its record travels with it.
    pub(super) fn begin_persist(&mut self, payload: Payload, issued: Time, mark: u64) -> Payload {
        let mut persist = self.spare_persists.pop().unwrap_or_default();
        if let Payload::Line(line) = payload {
            persist.line = Some(line);
        }
        persist.mark = mark;
        persist.passed.issued = issued;
        persist.passed.left = self.now;
        Payload::Persist(persist)
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
        let by = (pending.warp, self.slots[usize::from(pending.warp)].cta);
        let (line, kind, half_warps) = (access.line, AccessKind::Load, access.half_warps());
        let access = Access { line, bytes, kind, half_warps, by, from: 0, mark: 0, log, hit };
        self.handler.access(&access, &mut self.outbox);
    }

    /// Tells a handler that watches of the line that left the L1 since it was told last.
    pub(super) fn tell_replaced(&mut self) {
        if let Some(line) = self.l1.take_replaced()
            && self.watched
            && Medium::of(line) == Medium::Nvm
        {
            self.handler.replaced(line, &mut self.outbox);
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
            let by = self.slots.get(usize::from(warp)).map_or((0, 0), |slot| (warp, slot.cta));
            let (bytes, log) = (payload.bytes(), payload.is_log());
            let (line, kind, half_warps) = (access.line, kind.access(), access.half_warps());
            let access = Access { line, bytes, kind, half_warps, by, from: 0, mark: 0, log, hit };
            self.handler.access(&access, &mut self.outbox);
        }
    }

    /// A persist's acknowledgement is here.
    pub(super) fn end_persist(&mut self, mut persist: Box<Persist>) {
        if let Some(line) = persist.line.take() {
            self.line_pool.give(line);
        }
        if let Some(gate) = self.gate.as_mut().filter(|_| persist.number != 0) {
            gate.acknowledge(std::mem::take(&mut persist.number));
            while let Some(author) = gate.settled() {
                if let Some(journal) = &mut self.journal {
                    journal.note(self.now, FactKind::FenceSettled, 0, author);
                }
            }
        }
        self.stalls.record(&persist.passed, self.w.link, self.now);
        if self.watched {
            self.handler.acknowledged((self.now - persist.passed.issued) / self.w.clock.period_ticks());
        }
        self.spare_persists.push(persist);
    }

    /// Asks a handler that steers loads whether one goes past the L1.
    pub(super) fn steer_load(&mut self, entry: &mut Entry, read_only: bool) {
        let degree = entry.accesses.len() as u32;
        if self.handler.bypasses_l1(&Load { degree, read_only, stalled: false, slice_busy: false }) {
            entry.work = Work::LoadPast;
            self.counters.l1_loads_steered += u64::from(degree);
        }
    }

    /// Sends the line accesses of a store whose payloads are ready: those to persistent memory as the scheme says.
    pub(super) fn send_stores(&mut self, warp: usize, class: StoreClass, mut entry: Box<Entry>, launch: &Launch) {
        if entry.accesses.iter().all(|access| Medium::of(access.line) == Medium::Dram) {
            entry.after = self.slots[warp].fenced;
            if class != StoreClass::Data {
                self.note_on_dram(warp, launch);
            }
            self.enqueue(warp, NO_LOAD, entry);
            return;
        }
        self.keep_lines(&entry);
        let (degree, lines) = (entry.accesses.len() as u32, &self.lines[..]);
        let store = Store { class, warp: warp as u8, degree, atomic: false, lines };
        let rule = self.handler.store(&store, &mut self.outbox);
        self.counters.pm_stores += 1;
        if class == StoreClass::Log {
            self.counters.pm_log_stores += 1;
            self.counters.pm_log_stores_past += u64::from(rule.route == Route::NonTemporal);
            self.counters.pm_log_stores_dropped += u64::from(rule.route == Route::Dropped);
        }
        self.store_waits |= rule.wait && rule.route != Route::Dropped;
        // Lanes may store to both media; each line goes its way.
        entry.log = class == StoreClass::Log;
        let mut past = self.lsu.entry(warp as u8, Work::Send, NO_LOAD);
        past.log = entry.log;
        // Where the handler orders what leaves a combining L1, such a store joins its line there.
        past.kind = if self.books.is_some() { RequestKind::Write } else { RequestKind::NonTemporal };
        past.mark = if self.watched { self.handler.mark() } else { 0 };
        let mut at = 0;
        while at < entry.accesses.len() {
            let persistent = Medium::of(entry.accesses[at].line) == Medium::Nvm;
            if persistent && rule.route != Route::Dropped {
                self.counters.pm_store_accesses += 1;
                self.counters.pm_log_store_accesses += u64::from(class == StoreClass::Log);
                let past = rule.route == Route::NonTemporal;
                let kind = if past { FactKind::StoredNonTemporal } else { FactKind::Stored };
                self.note_store(warp, kind, &entry, at);
                if self.paths
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
                    self.line_pool.give(room);
                }
            } else {
                at += 1;
            }
        }
        if let Some(books) = &mut self.books {
            let slot = &mut self.slots[warp];
            past.after = slot.fenced;
            if !past.accesses.is_empty() {
                slot.past = books.issue(slot.cta, past.accesses.len() as u64);
            }
        }
        if let Some(gate) = &mut self.gate {
            let slot = &mut self.slots[warp];
            let persistent = entry.accesses.iter().any(|access| Medium::of(access.line) == Medium::Nvm);
            entry.after = gate.cached(slot.cta, persistent, slot.fenced);
            if !past.accesses.is_empty() {
                past.after = gate.past(slot.cta, past.accesses.iter().map(|access| access.line), slot.fenced);
                slot.past = gate.issued(slot.cta);
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
        let (cta, fenced) = (self.slots[warp].cta, self.slots[warp].fenced);
        entry.after = match &self.gate {
            Some(gate) => gate.cached(cta, persistent > 0, fenced),
            None => fenced,
        };
        self.counters.pm_store_accesses += persistent as u64;
        let mut wait = false;
        if persistent > 0 {
            self.keep_lines(&entry);
            let (degree, lines) = (entry.accesses.len() as u32, &self.lines[..]);
            let store = Store { class: StoreClass::Data, warp: warp as u8, degree, atomic: true, lines };
            wait = self.handler.store(&store, &mut self.outbox).wait;
        }
        if self.journal.is_some() {
            for access in entry.accesses.iter().filter(|access| Medium::of(access.line) == Medium::Nvm) {
                self.note(warp, FactKind::Updated, access.line);
            }
        }
        if self.paths {
            self.begin_copying(warp, &mut entry);
        }
        self.enqueue(warp, load, entry);
        if wait {
            self.store_waits = true;
            self.write_back_lines(warp, RequestKind::WriteBack);
        }
    }

    /// Keeps the lines of persistent memory that an entry accesses, each once.
    fn keep_lines(&mut self, entry: &Entry) {
        self.lines.clear();
        for access in &entry.accesses {
            if Medium::of(access.line) == Medium::Nvm && !self.lines.contains(&access.line) {
                self.lines.push(access.line);
            }
        }
    }

    /// Writes back the kept lines, behind every earlier access of the SM.
    fn write_back_lines(&mut self, warp: usize, kind: RequestKind) {
        let mut entry = self.lsu.entry(warp as u8, Work::Send, NO_LOAD);
        entry.kind = kind;
        for at in 0..self.lines.len() {
            entry.accesses.push(LineAccess { line: self.lines[at], sectors: 0, lanes: 0 });
            entry.payloads.push(Payload::None);
            self.note(warp, FactKind::WroteBack, self.lines[at]);
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
        self.counters.pm_fences += 1;
        Ok(Some((fence, self.handler.fence(fence))))
    }

    /// A warp releases: where its handler orders persists, a fence whose order passes on to who acquires.
    fn release_persists(&mut self, warp: usize, wide: bool) -> Option<(FenceKind, FenceRule)> {
        if !self.orders {
            return None;
        }
        let rule = self.handler.release(wide);
        if rule == FenceRule::Pass {
            return None;
        }
        self.note(warp, FactKind::Synchronised, 0);
        self.counters.pm_fences += 1;
        let slot = &self.slots[warp];
        let cta = &mut self.ctas[usize::from(slot.cta)];
        cta.fenced = cta.fenced.max(slot.past);
        Some((FenceKind::Ofence, rule))
    }

    /// A warp acquires: what its CTA has released comes before what it stores from now on.
    fn acquire_persists(&mut self, warp: usize, wide: bool) {
        if !self.orders {
            return;
        }
        self.note(warp, FactKind::Synchronised, 0);
        self.share_fences(warp);
        if self.handler.acquire(wide) {
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
        self.slots[warp].warp.addresses(inst, launch, lanes, &mut address);
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
            self.note_on_dram(warp, launch);
        }
        self.counters.pm_write_backs += 1;
        let write_back = WriteBack { class, warp: warp as u8, lines: &self.lines };
        if !self.lines.is_empty() && self.handler.write_back(&write_back, &mut self.outbox) == WriteBackRule::Done {
            self.counters.pm_write_back_accesses += persistent as u64;
            self.counters.pm_log_write_back_accesses +=
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
        self.stall_begins(warp, "durable store", from);
        let flushing = !ordered && self.is_unpersisted(warp);
        if flushing {
            let (cta, past) = (self.slots[warp].cta, self.slots[warp].past);
            self.handler.flush(cta, past, &mut self.outbox);
        }
        if self.slots[warp].awaited(ordered) == 0 && !flushing {
            self.slots[warp].since = from;
            self.pass_durable(warp, then, from, launch, cx);
        } else {
            self.enter(warp, Wait::Durable { ordered, flushing, then }, from);
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
        let waited = cycle - self.slots[warp].since.min(cycle);
        self.stalls.fences.record(self.w.clock.cycles(u64::from(waited)));
        if self.slots[warp].persists == 0 && !self.is_unpersisted(warp) {
            self.note(warp, FactKind::FencePassed, 0);
        } else {
            self.note(warp, FactKind::FenceOrdered, 0);
            self.counters.pm_fences_ordered += 1;
            self.slots[warp].fenced = self.slots[warp].fenced.max(self.slots[warp].past);
            if self.journal.is_some() {
                let (past, author) = (self.slots[warp].past, self.author(warp));
                let cta = self.slots[warp].cta;
                if let Some(gate) = &mut self.gate {
                    gate.fence(cta, past, author);
                }
                if let Some(books) = &mut self.books {
                    books.fence(cta, past, author);
                }
            }
        }
        match then {
            Some(scope) => self.arrive_persist(warp, scope, false, cycle, launch, cx),
            None => {
                self.stall_ends(warp, cycle);
                self.settle(warp, cycle, launch);
            }
        }
    }

    /// A CTA's last warp is gone: ends the CTA, once what its scheme wants durable is.
    pub(super) fn end_cta(&mut self, cta: usize, cx: &mut Ctx<'_, Msg>) {
        self.ctas[cta].boundary = self.handler.cta_end(&mut self.outbox);
        if !self.release_cta(cta) {
            self.leave_cta(cta, cx);
        }
    }

    /// Ends a CTA all of whose stores are performed.
    pub(super) fn leave_cta(&mut self, cta: usize, cx: &mut Ctx<'_, Msg>) {
        if self.ctas[cta].boundary == Boundary::WriteBackL2 {
            let slices = self.w.ports.map().slices();
            self.ctas[cta].flushing = slices;
            self.ctas[cta].ended = cx.now();
            for slice in 0..slices {
                self.network.push(self.write_back_slice(slice, cta as u32), cx);
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
        self.ctas[cta].flushing -= 1;
        if self.ctas[cta].flushing == 0 {
            self.stalls.boundaries.record(cx.now() - self.ctas[cta].ended);
            self.report_cta(cta, cx);
        }
    }

    fn report_cta(&mut self, cta: usize, cx: &mut Ctx<'_, Msg>) {
        self.note_cta(cta, FactKind::CtaEnded);
        self.cta_ends(cta);
        self.counters.ctas += 1;
        cx.send(self.dispatch_port(), Msg::CtaDone { sm: self.w.index }, 0);
    }

    pub(super) fn note_cta(&mut self, cta: usize, kind: FactKind) {
        let launch = self.launches.wrapping_sub(1);
        let author = Author { sm: self.w.index, launch, cta: self.ctas[cta].cta as u32, ..Author::default() };
        if let Some(journal) = &mut self.journal {
            journal.note(self.now, kind, 0, author);
        }
    }

    /// The author of what a warp does now.
    pub(super) fn author(&self, warp: usize) -> Author {
        let slot = &self.slots[warp];
        let (cta, thread) = slot.warp.thread_of(0);
        Author {
            sm: self.w.index,
            launch: self.launches.wrapping_sub(1),
            cta: cta as u32,
            warp: (thread / self.p.sm.warp_size) as u16,
            pc: slot.warp.pc(),
        }
    }

    /// Notes a fact of a warp, where a journal is kept.
    pub(super) fn note(&mut self, warp: usize, kind: FactKind, line: u64) {
        if self.journal.is_some() {
            let (author, time) = (self.author(warp), self.now);
            if let Some(journal) = &mut self.journal {
                journal.note(time, kind, line, author);
            }
        }
    }

    fn note_store(&mut self, warp: usize, kind: FactKind, entry: &Entry, at: usize) {
        if self.journal.is_some()
            && let Payload::Line(line) = &entry.payloads[at]
        {
            let (author, time, address) = (self.author(warp), self.now, entry.accesses[at].line);
            if let Some(journal) = &mut self.journal {
                journal.note_data(time, kind, address, line.mask, author, &line.bytes);
            }
        }
    }
}
