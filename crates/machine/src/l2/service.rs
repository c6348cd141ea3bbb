//! How an L2 slice serves requests: hits, misses, merges, evictions, write-backs on demand, fills.
//!
//! Requests are served in the order of arrival; the head of the input waits, and every request after it,
//! while it lacks an MSHR, a way or a memory credit. Invariants: requests to one line are performed in the
//! order of arrival, also those that wait for its fill; a line with a fill under way is never evicted; an
//! acknowledged byte is durable. Source: AGPM Table IV (write-back, write-allocate, allocate on miss, LRU).
//! Not modelled: banks within a slice.

use crate::msg::{Credit, HEADER_BYTES, Line, Msg, Payload, Reply, Request, RequestKind, SmMsg, SwitchMsg};
use crate::msg::{SECTOR_BYTES, sector_bytes, sectors_covered};
use crate::ports::Requester;
use durawarp_engine::{Ctx, Time};
use durawarp_kernel::memory::Medium;
use durawarp_persist::handler::{Access, AccessKind, SliceEvent};

use super::durability::PendingAck;
use super::input::Arrival;
use super::parameters::WriteMiss;
use super::{L2Slice, NO_MSHR};

/// What the head of the input came to.
enum Served {
    /// It is done, or waits in an MSHR; the bytes that moved through the data port.
    Done(u32),
    /// It lacks a resource; tried again when one comes back.
    Stalled(Request),
}

impl L2Slice {
    /// Serves the input in order as far as it can now, and asks to be woken for the rest.
    pub(super) fn serve_input(&mut self, cx: &mut Ctx<'_, Msg>) {
        let now = cx.now();
        // What the handler asks for before requests are served may be what the first of them waits for.
        if self.host.wants.admissions {
            self.clean_requested(cx);
        }
        while let Some(head) = self.input.head() {
            // A reply needs room in the injection port, so that a slice that cannot answer takes nothing in.
            let room = self.injection.backlog_at_most(self.spec.reply_flits);
            let at = head.ready.max(self.data_port.free_at()).max(room);
            if at > now {
                cx.wake_at(at);
                return;
            }
            let Some(Arrival { ready, request }) = self.input.pop() else { unreachable!() };
            let (from, kind) = (request.from, request.kind);
            let slice = self.ports.map().slice_of(request.line) as u16;
            // Serving changes what the access finds: what the handler hears is fixed before.
            let access = self.access_of(&request);
            let served =
                if self.host.admits(access.as_ref()) { self.serve(request, cx) } else { Served::Stalled(request) };
            match served {
                Served::Done(bytes) => {
                    if let Some(access) = access {
                        self.host.tell(&SliceEvent::Accessed(&access));
                    }
                    match kind {
                        RequestKind::Read => self.counters.reads += 1,
                        RequestKind::Write => self.counters.writes += 1,
                        RequestKind::Atomic => self.counters.atomics += 1,
                        _ => {}
                    }
                    self.data_port.occupy(bytes, now);
                    if let Some(packets) = self.input.served(from) {
                        self.ports.to_requester(from).send(Credit { slice, packets }, 0, cx);
                    }
                }
                Served::Stalled(request) => {
                    let fresh = self.input.stall(Arrival { ready, request });
                    self.counters.stalls += u64::from(fresh);
                    // The handler may have named what is to leave first: the head tries again once it has.
                    if !self.host.wants.admissions || !self.clean_requested(cx) {
                        return;
                    }
                }
            }
        }
    }

    /// What the handler will hear of a request; none of those that do not concern it.
    fn access_of(&self, request: &Request) -> Option<Access> {
        let concerns = self.host.hears_accesses()
            && Medium::of(request.line) == Medium::Nvm
            && !matches!(request.kind, RequestKind::WriteBackAll | RequestKind::Marker);
        let from = self.ports.sm_of(request.from).filter(|_| concerns)?;
        let place = self.array.find(request.line);
        let hit = place.is_some_and(|place| self.mshrs.of(place).is_none() && self.satisfies(place, request));
        let bytes = match request.kind {
            RequestKind::Read => sector_bytes(request.sectors),
            _ => request.payload.bytes(),
        };
        let (kind, mark, log) = (request.kind.access(), request.payload.mark(), request.payload.is_log());
        let launch = request.payload.launch();
        // Of others the tag is a load's or an MSHR's number.
        let warp = if matches!(kind, AccessKind::Store | AccessKind::WriteBack) { request.tag as u8 } else { 0 };
        Some(Access { line: request.line, bytes, kind, half_warps: 0, by: (warp, 0), launch, from, mark, log, hit })
    }

    fn serve(&mut self, request: Request, cx: &mut Ctx<'_, Msg>) -> Served {
        // Messages to the controller wait for a credit: what is served now would be sent after them.
        if self.memory.is_held_up() {
            return Served::Stalled(request);
        }
        match request.kind {
            RequestKind::WriteBackAll => return self.write_back_all(request, cx),
            RequestKind::Marker => return self.marker(request, cx),
            _ => {}
        }
        let Some(place) = self.array.find(request.line) else { return self.serve_miss(request, None, cx) };
        if let Some(mshr) = self.mshrs.of(place) {
            let (line, wanted, from) = (request.line, self.wanted(place, &request), request.from);
            let more = self.lacking(mshr, wanted);
            if !self.mshrs.has_room(mshr, request.sectors, more) {
                return Served::Stalled(request);
            }
            self.counters.mshr_merges += 1;
            self.mshrs.push(mshr, request);
            // What it lacks is requested at once, not when its turn comes.
            self.fetch(mshr, line, more, from, cx);
            return Served::Done(0);
        }
        if !self.satisfies(place, &request) {
            return self.serve_miss(request, Some(place), cx);
        }
        match request.kind {
            RequestKind::Read => self.counters.read_hits += 1,
            RequestKind::Write => self.counters.write_hits += 1,
            RequestKind::Atomic => self.counters.atomic_hits += 1,
            _ => {}
        }
        Served::Done(self.perform(place, request, cx))
    }

    /// Serves a request that finds no line, or one at `found` without all its sectors.
    fn serve_miss(&mut self, request: Request, found: Option<usize>, cx: &mut Ctx<'_, Msg>) -> Served {
        // What allocates no line goes first: it needs neither a way nor an MSHR.
        match request.kind {
            RequestKind::NonTemporal if !self.memory.may_write() => return Served::Stalled(request),
            RequestKind::NonTemporal => return Served::Done(self.non_temporal(None, request, cx)),
            RequestKind::WriteBack | RequestKind::WriteBackToL2 | RequestKind::Flush => {
                return Served::Done(self.write_back_line(None, request, cx));
            }
            _ => {}
        }
        let writes_on = found.is_none() && self.writes_on(&request);
        if writes_on && !self.memory.may_write() {
            return Served::Stalled(request);
        }
        let dirty = found.map_or(0, |place| self.array.dirty(place));
        let wanted = if writes_on { request.sectors } else { self.wanted_over(dirty, &request) };
        let fetches = wanted != 0;
        let missing = found.map_or(wanted, |place| self.array.missing(place, wanted));
        // Every resource is checked before the first is taken: a stalled request leaves no trace.
        if fetches && (!self.mshrs.has_free(missing) || !self.memory.may_read()) {
            return Served::Stalled(request);
        }
        let place = match found.or_else(|| self.victim(request.line)) {
            None => return Served::Stalled(request),
            Some(place) if found.is_some() => place,
            Some(place) if self.array.dirty(place) != 0 && !self.memory.may_write() => return Served::Stalled(request),
            Some(place) => {
                self.evict(place, cx);
                self.array.replace(place, request.line);
                place
            }
        };
        if !fetches {
            return Served::Done(self.perform(place, request, cx));
        }
        // From here on nothing can stall. The lock keeps the line from eviction until its fill.
        let mshr = self.mshrs.allocate(place);
        self.array.lock(place, true);
        let (line, from, mut bytes) = (request.line, request.from, 0);
        if writes_on {
            bytes = self.write_on(place, request, cx);
        } else {
            self.mshrs.push(mshr, request);
        }
        self.fetch(mshr, line, self.lacking(mshr, wanted), from, cx);
        Served::Done(bytes)
    }

    /// The sectors that must be there before a request is performed, of a line of which `dirty` bytes are.
    fn wanted_over(&self, dirty: u128, request: &Request) -> u8 {
        match request.kind {
            RequestKind::Read | RequestKind::Atomic => request.sectors,
            RequestKind::Write if self.spec.write_miss == WriteMiss::Fetch => {
                let mask = request.payload.line().map_or(0, |line| line.mask);
                request.sectors & !sectors_covered(mask | dirty)
            }
            RequestKind::Write
            | RequestKind::NonTemporal
            | RequestKind::WriteBack
            | RequestKind::WriteBackToL2
            | RequestKind::Flush => 0,
            RequestKind::WriteBackAll | RequestKind::Marker => unreachable!("it concerns no one line"),
        }
    }

    /// The same, of a resident line.
    fn wanted(&self, place: usize, request: &Request) -> u8 {
        self.wanted_over(self.array.dirty(place), request)
    }

    /// Whether a resident line has what the request needs.
    fn satisfies(&self, place: usize, request: &Request) -> bool {
        self.array.missing(place, self.wanted(place, request)) == 0
    }

    /// Performs a request on a line that satisfies it, replies, and returns the bytes moved through the data
    /// port.
    fn perform(&mut self, place: usize, request: Request, cx: &mut Ctx<'_, Msg>) -> u32 {
        match request.kind {
            RequestKind::NonTemporal => return self.non_temporal(Some(place), request, cx),
            RequestKind::WriteBack | RequestKind::WriteBackToL2 | RequestKind::Flush => {
                return self.write_back_line(Some(place), request, cx);
            }
            _ => {}
        }
        let Request { tag, from, kind, sectors, payload, .. } = request;
        self.array.touch(place);
        match (kind, payload) {
            (RequestKind::Read, Payload::Line(mut room)) => {
                room.mask = sector_bytes(sectors);
                self.array.read(place, &mut room.bytes, room.mask);
                let bytes = sectors.count_ones() * SECTOR_BYTES;
                self.reply(from, Reply { tag, kind, sectors, payload: Payload::Line(room) }, bytes, 0, cx);
                bytes
            }
            (RequestKind::Write, Payload::Line(line)) => {
                self.array.store(place, &line);
                self.note_performed(place, line.mask, from, cx);
                let bytes = line.mask.count_ones();
                self.reply(from, Reply { tag, kind, sectors, payload: Payload::Line(line) }, 0, 0, cx);
                bytes
            }
            // A line that its SM's handler has leave: its box goes back with the reply.
            (RequestKind::Write, Payload::Persist(persist)) => {
                let line = persist.line.as_deref().expect("a line that its SM's handler has leave has bytes");
                let (mask, bytes) = (line.mask, line.mask.count_ones());
                self.array.store(place, line);
                self.note_performed(place, mask, from, cx);
                self.reply(from, Reply { tag, kind, sectors, payload: Payload::Persist(persist) }, 0, 0, cx);
                bytes
            }
            (RequestKind::Atomic, Payload::Atomics(mut atomics)) => {
                let (operations, passes) = (atomics.operations(), atomics.passes());
                let written = self.array.perform_atomics(place, &mut atomics);
                self.counters.atomic_lanes += u64::from(operations);
                self.note_performed(place, written, from, cx);
                let extra = self.data_port.hold(u64::from(self.spec.atomic_pass_cycles * passes), cx.now());
                let bytes = u32::from(atomics.count) * atomics.elem.bytes();
                // A requester that wants no old values hears only that it was performed.
                let sent = if atomics.returns { bytes } else { 0 };
                self.reply(from, Reply { tag, kind, sectors, payload: Payload::Atomics(atomics) }, sent, extra, cx);
                bytes
            }
            (kind, payload) => panic!("a {kind:?} request with payload {payload:?}"),
        }
    }

    /// Journals bytes of a place as they become visible to all.
    fn note_performed(&mut self, place: usize, mask: u128, from: Requester, cx: &Ctx<'_, Msg>) {
        let (line, data) = (self.array.address(place), self.array.data(place));
        self.durability.note_performed(line, mask, self.ports.sm_of(from), data, cx.now());
    }

    /// Performs a non-temporal store: a copy in the array takes the bytes too, but has nothing to write back
    /// for them; or it leaves, by the reading of that (`past_l2`). Returns the bytes moved.
    fn non_temporal(&mut self, place: Option<usize>, request: Request, cx: &mut Ctx<'_, Msg>) -> u32 {
        let (address, from) = (request.line, request.from);
        let (ack, Some(line)) = PendingAck::of(request, cx.now()) else {
            panic!("a non-temporal store without a line")
        };
        self.counters.write_throughs += 1;
        if let Some(place) = place {
            self.array.update(place, &line);
            self.mshrs.left(place, line.mask);
            if self.durability.non_temporal_invalidates() {
                self.write_back(place, cx);
                self.array.invalidate_sectors(place);
            }
        } else {
            self.array.passed_by();
        }
        let by = self.ports.sm_of(from);
        self.durability.note_performed(address, line.mask, by, &line.bytes, cx.now());
        let bytes = line.mask.count_ones();
        let late = self.durability.waits_for_media(address);
        let token = self.write_memory(address, late, line, cx);
        let due = self.durability.await_write(token, ack);
        self.acknowledge_now(due, cx);
        bytes
    }

    /// Performs a write-back or a flush of a line that may be at `place`. Returns the bytes moved.
    fn write_back_line(&mut self, place: Option<usize>, request: Request, cx: &mut Ctx<'_, Msg>) -> u32 {
        let (line, kind) = (request.line, request.kind);
        let (ack, _) = PendingAck::of(request, cx.now());
        self.counters.write_backs_asked += 1;
        if kind == RequestKind::WriteBackToL2 {
            // Its bytes have come to the L2: that is all it is for.
            self.acknowledge_now(Some(ack), cx);
            return 0;
        }
        let mut bytes = 0;
        let survives = self.durability.l2_survives() && kind == RequestKind::WriteBack;
        if let Some(place) = place {
            if !survives {
                bytes = self.array.dirty(place).count_ones();
                self.write_back(place, cx);
            }
            if kind == RequestKind::Flush {
                self.array.invalidate_sectors(place);
            }
        }
        // The line may be clean because earlier writes of it are on their way: those are waited for, too.
        let due = self.durability.await_lines(ack, |of| of == line);
        self.acknowledge_now(due, cx);
        bytes
    }

    /// A marker of a persist barrier: the lines that the handler names are written back, and the marker waits
    /// for them.
    fn marker(&mut self, request: Request, cx: &mut Ctx<'_, Msg>) -> Served {
        if self.fills_hold_stores() {
            return Served::Stalled(request);
        }
        let mut lines = self.host.drain(request.from.number());
        let (ack, _) = PendingAck::of(request, cx.now());
        let mut bytes = 0;
        if self.durability.l2_survives() {
            self.acknowledge_now(Some(ack), cx);
        } else {
            for &line in &lines {
                if let Some(place) = self.array.find(line) {
                    bytes += self.array.dirty(place).count_ones();
                    self.write_back(place, cx);
                }
            }
            lines.sort_unstable();
            let due = self.durability.await_lines(ack, |line| lines.binary_search(&line).is_ok());
            self.acknowledge_now(due, cx);
        }
        for &line in &lines {
            self.tell_durable(line);
        }
        self.host.keep(lines);
        Served::Done(bytes)
    }

    /// A line of persistent memory has stores that its fill under way keeps back, or that the fill must not
    /// overwrite.
    fn fills_hold_stores(&self) -> bool {
        self.mshrs.waiting().any(|(place, queue)| {
            Medium::of(self.array.address(place)) == Medium::Nvm
                && (self.array.dirty(place) != 0 || queue.iter().any(|request| request.kind.stores()))
        })
    }

    /// Goes on writing back every dirty line of persistent memory, as far as credits and fills under way
    /// allow.
    fn write_back_all(&mut self, request: Request, cx: &mut Ctx<'_, Msg>) -> Served {
        let mut bytes = 0;
        while let Some(place) = self.write_back_all.place(self.array.places()) {
            let dirty = self.array.dirty_line(place).is_some_and(|line| Medium::of(line) == Medium::Nvm);
            if dirty && !self.durability.l2_survives() {
                if !self.memory.may_write() || self.mshrs.of(place).is_some() {
                    return Served::Stalled(request);
                }
                bytes += self.array.dirty(place).count_ones();
                self.write_back(place, cx);
            }
            self.write_back_all.advance();
        }
        let (ack, _) = PendingAck::of(request, cx.now());
        let due = self.durability.await_lines(ack, |line| Medium::of(line) == Medium::Nvm);
        self.acknowledge_now(due, cx);
        Served::Done(bytes)
    }

    /// Writes back the lines that the handler wants to leave early; a line with a fill under way, for which
    /// its stores wait, later. True when any was dealt with.
    pub(super) fn clean_requested(&mut self, cx: &mut Ctx<'_, Msg>) -> bool {
        let (mut later, mut any) = (Vec::new(), false);
        // Told that a line is durable, the handler may name others.
        while self.host.has_cleans() {
            for line in std::mem::take(self.host.outbox.cleans()) {
                let place = self.array.find(line);
                if place.is_some_and(|place| self.is_filling(place)) {
                    later.push(line);
                    continue;
                }
                if let Some(place) = place.filter(|_| !self.durability.l2_survives()) {
                    self.write_back(place, cx);
                }
                self.tell_durable(line);
                any = true;
            }
        }
        *self.host.outbox.cleans() = later;
        any
    }

    /// The place has a fill under way that keeps stores back, or that must not overwrite them.
    fn is_filling(&self, place: usize) -> bool {
        let stores = |mshr| self.array.dirty(place) != 0 || self.mshrs.holds_stores(mshr);
        self.mshrs.of(place).is_some_and(stores)
    }

    /// The sectors of those wanted that are neither there nor on their way.
    fn lacking(&self, mshr: u16, wanted: u8) -> u8 {
        self.mshrs.not_requested(mshr, self.array.missing(self.mshrs.place(mshr), wanted))
    }

    /// Requests sectors that are neither there nor on their way, if there are any and a credit.
    fn fetch(&mut self, mshr: u16, line: u64, sectors: u8, from: Requester, cx: &mut Ctx<'_, Msg>) {
        if sectors != 0 && self.memory.may_read() {
            self.mshrs.requested(mshr, sectors);
            self.counters.fetches += 1;
            self.memory.read(line, mshr, sectors, Some(from), cx);
        }
    }

    /// Writes a place's dirty bytes back, if it has any.
    fn write_back(&mut self, place: usize, cx: &mut Ctx<'_, Msg>) {
        let Some((line, mask)) = self.array.clean(place) else { return };
        self.mshrs.left(place, mask);
        if self.drops && Medium::of(line) == Medium::Nvm {
            self.counters.dropped_lines += 1;
            return;
        }
        self.counters.writebacks += 1;
        let mut data = self.memory.line_pool.take();
        *data = Line { bytes: *self.array.data(place), mask, log: false, launch: 0 };
        self.write_memory(line, false, data, cx);
    }

    /// Writes to memory and returns the token of the write; where `late`, it is durable only when its cells
    /// are written.
    pub(super) fn write_memory(&mut self, line: u64, late: bool, data: Box<Line>, cx: &mut Ctx<'_, Msg>) -> u16 {
        let token = self.durability.open(line, cx.now());
        self.memory.write(line, token, late, data, cx);
        token
    }

    /// Whether a write that misses goes on to memory. Where dirty lines of persistent memory are never
    /// written, none does, nor one whose line a handler orders.
    fn writes_on(&self, request: &Request) -> bool {
        let kept_back = self.drops && Medium::of(request.line) == Medium::Nvm;
        let ordered = matches!(request.payload, Payload::Persist(_));
        self.spec.write_miss == WriteMiss::Naive && request.kind == RequestKind::Write && !kept_back && !ordered
    }

    /// A write that misses goes on to memory; its place waits for what memory has then. Returns the bytes
    /// moved.
    fn write_on(&mut self, place: usize, request: Request, cx: &mut Ctx<'_, Msg>) -> u32 {
        let Request { line: address, tag, from, kind, sectors, payload } = request;
        let Payload::Line(line) = payload else { panic!("a write without a line") };
        self.array.overlay(place, &line);
        self.note_performed(place, line.mask, from, cx);
        let mut data = self.memory.line_pool.take();
        *data = Line { bytes: line.bytes, mask: line.mask, log: false, launch: 0 };
        self.write_memory(address, false, data, cx);
        let bytes = line.mask.count_ones();
        self.reply(from, Reply { tag, kind, sectors, payload: Payload::Line(line) }, 0, 0, cx);
        bytes
    }

    /// The place that a line may take: that of the line which leaves first, or the first of those that the
    /// handler wants to look at which it does not keep.
    fn victim(&mut self, line: u64) -> Option<usize> {
        let Some(search) = self.host.wants.victims else { return self.array.victim(line) };
        let (array, host) = (&self.array, &mut self.host);
        array.victims(line).take(search.ways(self.spec.ways as usize)).find(|&place| {
            let address = array.address(place);
            array.dirty(place) == 0 || Medium::of(address) == Medium::Dram || !host.keeps(address)
        })
    }

    /// The line of a place makes room for another.
    fn evict(&mut self, place: usize, cx: &mut Ctx<'_, Msg>) {
        self.tell_replaced(place);
        self.invalidate_above(place, cx);
        self.write_back(place, cx);
        self.tell_durable(self.array.address(place));
    }

    /// Has the L1s above an inclusive L2 give up a line, after the replies that they got before.
    fn invalidate_above(&mut self, place: usize, cx: &mut Ctx<'_, Msg>) {
        let Some(line) = self.array.line_at(place).filter(|_| self.spec.inclusive) else { return };
        // The command processor has no cache.
        for sm in self.ports.to_sms() {
            let tail = self.injection.inject(cx.now(), 0);
            self.counters.bytes_out += u64::from(HEADER_BYTES);
            self.counters.back_invalidations += 1;
            sm.send(SmMsg::Invalidate { line, bytes: HEADER_BYTES }, tail - cx.now(), cx);
        }
    }

    /// Tells the handler that a line of persistent memory makes room for another.
    pub(super) fn tell_replaced(&mut self, place: usize) {
        if let Some(line) = self.array.line_at(place).filter(|&line| Medium::of(line) == Medium::Nvm) {
            self.host.tell(&SliceEvent::Replaced(line));
        }
    }

    /// Tells a handler that tracks durability of a line that has no write on its way any more.
    pub(super) fn tell_durable(&mut self, line: u64) {
        // One that is to be written back yet is not durable, whatever earlier writes of it are.
        let concerns = self.host.wants.durability && Medium::of(line) == Medium::Nvm;
        if concerns && self.durability.is_durable(line) && !self.host.outbox.cleans().contains(&line) {
            self.host.tell(&SliceEvent::Durable(line));
        }
    }

    /// A write is durable since `at`: every request that waited for it alone, or for it last, is
    /// acknowledged.
    pub(super) fn durable(&mut self, token: u16, at: Time, cx: &mut Ctx<'_, Msg>) {
        let (line, due) = self.durability.durable(token, at, cx.now());
        for (ack, times) in due {
            self.acknowledge(ack, times, cx);
        }
        self.tell_durable(line);
    }

    /// Acknowledges what is due at once, if anything is.
    fn acknowledge_now(&mut self, due: Option<PendingAck>, cx: &mut Ctx<'_, Msg>) {
        if let Some(ack) = due {
            self.acknowledge(ack, [cx.now(); 2], cx);
        }
    }

    /// Acknowledges a request; the last write that it waited for was accepted and durable at `times`, perhaps
    /// before it was served.
    fn acknowledge(&mut self, ack: PendingAck, times: [Time; 2], cx: &mut Ctx<'_, Msg>) {
        let PendingAck { from, tag, kind, persist } = ack;
        // A non-temporal store brought a box, which went to the controller: another one goes back.
        let line = (kind == RequestKind::NonTemporal).then(|| self.memory.line_pool.take());
        let payload = match (persist, line) {
            (Some(mut persist), line) => {
                persist.line = line;
                let passed = &mut persist.passed;
                passed.accepted = times[0].max(passed.served);
                passed.durable = times[1].max(passed.accepted);
                Payload::Persist(persist)
            }
            (None, Some(line)) => Payload::Line(line),
            (None, None) => Payload::None,
        };
        self.reply(from, Reply { tag, kind, sectors: 0, payload }, 0, 0, cx);
    }

    /// Sends a reply that is ready `delay` from now; its payload's bytes decide how long it holds the port.
    fn reply(&mut self, to: Requester, reply: Reply, payload_bytes: u32, delay: Time, cx: &mut Ctx<'_, Msg>) {
        let tail = self.injection.inject(cx.now() + delay, payload_bytes);
        self.counters.bytes_out += u64::from(HEADER_BYTES + payload_bytes);
        let delay = tail - cx.now();
        match self.ports.to_stage_of(to) {
            None => self.ports.to_requester(to).send(reply, delay, cx),
            Some(stage) => stage.send(SwitchMsg::Switched { from: self.slice, to, reply }, delay, cx),
        }
    }

    /// Data of a fill, or of a move that no request waits for: serves the requests that wait for the line, in
    /// order.
    pub(super) fn fill(&mut self, mshr: u16, sectors: u8, data: Box<Line>, cx: &mut Ctx<'_, Msg>) {
        self.memory.read_done();
        if mshr == NO_MSHR {
            self.memory.line_pool.give(data);
            return;
        }
        let place = self.mshrs.place(mshr);
        // A request may have been asked for before the write of one that waited in front of it was sent.
        let newer = self.mshrs.arrived(mshr, sectors);
        self.array.fill(place, sectors, newer, &data.bytes);
        self.memory.line_pool.give(data);
        while let Some(request) = self.mshrs.pop(mshr) {
            if self.satisfies(place, &request) {
                let bytes = self.perform(place, request, cx);
                self.data_port.occupy(bytes, cx.now());
            } else {
                let (line, wanted, from) = (request.line, self.wanted(place, &request), request.from);
                self.mshrs.push_front(mshr, request);
                self.fetch(mshr, line, self.lacking(mshr, wanted), from, cx);
                return;
            }
        }
        // A store may have written sectors whole that a later load had asked for: the line waits for them all
        // the same.
        if let Some(place) = self.mshrs.release(mshr) {
            self.array.lock(place, false);
        }
    }
}
