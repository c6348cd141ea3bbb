//! How an L2 slice serves requests: hits, misses, merges, evictions, atomics, fills.
//!
//! Requests are served in the order of arrival; the head of the input waits, and everything behind it, while it lacks an
//! MSHR, a way or a memory credit. Invariants: requests to one line are performed in the order of arrival, also those that
//! wait for its fill; a line with a fill under way is never evicted. Source: AGPM Table IV (write-back, write-allocate,
//! allocate on miss, LRU). Not modelled: banks within a slice.

use crate::engine::{Ctx, Time};
use crate::kernel::memory::Medium;
use crate::kernel::semantics::atomic::apply_atomic;
use crate::machine::msg::{Atomics, Line, MemoryRead, Msg, Payload, Reply, Request, RequestKind};
use crate::machine::msg::{SECTOR_BYTES, copy_masked, sector_bytes, sectors_covered};

use crate::persist::handler::{Access, Admission, Offer};

use super::{Arrival, L2Slice, Mshr, NO_MSHR, Served, WriteMiss};

impl L2Slice {
    /// The sectors that must be there before a request is performed, of a line of which `dirty` bytes are.
    fn wanted(&self, dirty: u128, request: &Request) -> u8 {
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
    fn wanted_of(&self, place: usize, request: &Request) -> u8 {
        self.wanted(self.dirty[place], request)
    }

    /// Whether a resident line has what the request needs.
    fn satisfies(&self, place: usize, request: &Request) -> bool {
        let wanted = self.wanted_of(place, request);
        self.valid[place] & wanted == wanted
    }

    /// Performs a request on a line that satisfies it, replies, and returns the bytes moved through the data port.
    fn perform(&mut self, place: usize, request: Request, cx: &mut Ctx<'_, Msg>) -> u32 {
        match request.kind {
            RequestKind::NonTemporal => return self.write_through(Some(place), request, cx),
            RequestKind::WriteBack | RequestKind::WriteBackToL2 | RequestKind::Flush => {
                return self.write_back_line(Some(place), request, cx);
            }
            _ => {}
        }
        let Request { tag, from, kind, sectors, payload, .. } = request;
        self.tags.touch(place);
        match (kind, payload) {
            (RequestKind::Read, Payload::Line(mut room)) => {
                room.mask = sector_bytes(sectors);
                copy_masked(&mut room.bytes, &self.data[place], room.mask);
                let bytes = sectors.count_ones() * SECTOR_BYTES;
                self.reply(from, Reply { tag, kind, sectors, payload: Payload::Line(room) }, bytes, 0, cx);
                bytes
            }
            (RequestKind::Write, Payload::Line(line)) => {
                copy_masked(&mut self.data[place], &line.bytes, line.mask);
                self.dirty[place] |= line.mask;
                self.valid[place] |= sectors_covered(self.dirty[place]);
                self.note_performed(place, line.mask, from, cx);
                let bytes = line.mask.count_ones();
                self.reply(from, Reply { tag, kind, sectors, payload: Payload::Line(line) }, 0, 0, cx);
                bytes
            }
            (RequestKind::Atomic, Payload::Atomics(mut atomics)) => {
                let (lanes, passes) = (u32::from(atomics.count), atomics.passes());
                let written = self.perform_atomics(place, &mut atomics);
                self.note_performed(place, written, from, cx);
                let extra = self.clock.cycles(u64::from(self.spec.atomic_pass_cycles * passes));
                self.data_port_free = self.data_port_free.max(cx.now()) + extra;
                let bytes = lanes * atomics.elem.bytes();
                // Who asked for no old values is told that it was performed.
                let sent = if atomics.returns { bytes } else { 0 };
                self.reply(from, Reply { tag, kind, sectors, payload: Payload::Atomics(atomics) }, sent, extra, cx);
                bytes
            }
            (kind, payload) => panic!("a {kind:?} request with payload {payload:?}"),
        }
    }

    /// Performs the lanes' operations in order; returns the bytes written.
    fn perform_atomics(&mut self, place: usize, atomics: &mut Atomics) -> u128 {
        let size = atomics.elem.bytes() as usize;
        let mut written = 0;
        self.counters.atomic_lanes += u64::from(atomics.count);
        for i in 0..usize::from(atomics.count) {
            let at = usize::from(atomics.offset[i]);
            let bytes = &mut self.data[place][at..at + size];
            let mut word = [0; 8];
            word[..size].copy_from_slice(bytes);
            let old = u64::from_le_bytes(word);
            let new = apply_atomic(atomics.op, atomics.elem, old, atomics.a[i], atomics.b[i]);
            bytes.copy_from_slice(&new.to_le_bytes()[..size]);
            written |= ((1u128 << size) - 1) << at;
            (atomics.a[i], atomics.b[i]) = (old, new);
        }
        self.dirty[place] |= written;
        written
    }

    /// Asks memory for the sectors of a request that are neither there nor on their way, if it may.
    fn fetch(&mut self, mshr: u16, line: u64, wanted: u8, cx: &mut Ctx<'_, Msg>) {
        let Mshr { place, pending, .. } = &mut self.mshrs[usize::from(mshr)];
        let sectors = wanted & !self.valid[*place] & !*pending;
        if sectors == 0 || self.read_credits == 0 {
            return;
        }
        *pending |= sectors;
        self.read_credits -= 1;
        self.counters.fetches += 1;
        let room = self.line_pool.take();
        let read = MemoryRead { line, tag: mshr, slice: self.at_controller, sectors, room };
        self.send_to_memory(Msg::MemoryRead(read), cx);
    }

    /// Writes a place's dirty bytes back, if it has any.
    pub(super) fn write_back(&mut self, place: usize, cx: &mut Ctx<'_, Msg>) {
        if self.dirty[place] == 0 || self.tags.line_at(place).is_none() {
            return;
        }
        if self.drops && Medium::of(self.address[place]) == Medium::Nvm {
            self.counters.dropped_lines += 1;
            self.dirty[place] = 0;
            return;
        }
        self.counters.writebacks += 1;
        let mut data = self.line_pool.take();
        *data = Line { bytes: self.data[place], mask: self.dirty[place], log: false };
        self.dirty[place] = 0;
        self.write_memory(self.address[place], data, cx);
    }

    fn serve(&mut self, request: Request, cx: &mut Ctx<'_, Msg>) -> Served {
        if self.durability.is_held_up() {
            return Served::Stalled(request);
        }
        match request.kind {
            RequestKind::WriteBackAll => return self.sweep(request, cx),
            RequestKind::Marker => return self.marker(request, cx),
            _ => {}
        }
        let number = self.line_number(request.line);
        let found = self.tags.find(number);
        if let Some(place) = found {
            let mshr = self.mshr_of[place];
            if mshr != NO_MSHR {
                if self.mshrs[usize::from(mshr)].queue.len() >= self.spec.mshr_merges as usize {
                    return Served::Stalled(request);
                }
                self.counters.mshr_merges += 1;
                let (line, wanted) = (request.line, self.wanted_of(place, &request));
                self.mshrs[usize::from(mshr)].queue.push_back(request);
                // What it lacks is asked for at once, not when its turn comes.
                self.fetch(mshr, line, wanted, cx);
                return Served::Done(0);
            }
            if self.satisfies(place, &request) {
                match request.kind {
                    RequestKind::Read => self.counters.read_hits += 1,
                    RequestKind::Write => self.counters.write_hits += 1,
                    RequestKind::Atomic => self.counters.atomic_hits += 1,
                    _ => {}
                }
                return Served::Done(self.perform(place, request, cx));
            }
        }
        match request.kind {
            RequestKind::NonTemporal if self.write_credits == 0 => return Served::Stalled(request),
            RequestKind::NonTemporal => return Served::Done(self.write_through(None, request, cx)),
            RequestKind::WriteBack | RequestKind::WriteBackToL2 | RequestKind::Flush => {
                return Served::Done(self.write_back_line(None, request, cx));
            }
            _ => {}
        }
        let writes_on = found.is_none() && self.writes_on(&request);
        if writes_on && self.write_credits == 0 {
            return Served::Stalled(request);
        }
        let wanted =
            if writes_on { request.sectors } else { self.wanted(found.map_or(0, |at| self.dirty[at]), &request) };
        let fetches = wanted != 0;
        if fetches && (self.free_mshrs.is_empty() || self.read_credits == 0) {
            return Served::Stalled(request);
        }
        let place = match found {
            Some(place) => place,
            None => {
                let Some(place) = self.victim(number) else {
                    return Served::Stalled(request);
                };
                if self.dirty[place] != 0 && self.write_credits == 0 {
                    return Served::Stalled(request);
                }
                self.tell_replaced(place);
                self.invalidate_above(place, cx);
                self.write_back(place, cx);
                self.tell_durable(self.address[place]);
                self.tags.replace(place, number);
                self.address[place] = request.line;
                self.valid[place] = 0;
                self.dirty[place] = 0;
                place
            }
        };
        if !fetches {
            return Served::Done(self.perform(place, request, cx));
        }
        let Some(mshr) = self.free_mshrs.pop() else { unreachable!("checked above") };
        self.tags.lock(place, true);
        self.mshr_of[place] = mshr;
        self.mshrs[usize::from(mshr)].place = place;
        let (line, mut bytes) = (request.line, 0);
        if writes_on {
            bytes = self.write_on(place, request, cx);
        } else {
            self.mshrs[usize::from(mshr)].queue.push_back(request);
        }
        self.fetch(mshr, line, wanted, cx);
        Served::Done(bytes)
    }

    /// Whether a write that misses goes on to memory. Where dirty lines of persistent memory are never
    /// written, none does.
    fn writes_on(&self, request: &Request) -> bool {
        let kept_back = self.drops && Medium::of(request.line) == Medium::Nvm;
        self.spec.write_miss == WriteMiss::Naive && request.kind == RequestKind::Write && !kept_back
    }

    /// A write that misses goes on to memory; its place waits for what memory has then. Returns the bytes
    /// moved.
    fn write_on(&mut self, place: usize, request: Request, cx: &mut Ctx<'_, Msg>) -> u32 {
        let Request { line: address, tag, from, kind, sectors, payload } = request;
        let Payload::Line(line) = payload else { panic!("a write without a line") };
        copy_masked(&mut self.data[place], &line.bytes, line.mask);
        self.note_performed(place, line.mask, from, cx);
        let mut data = self.line_pool.take();
        *data = Line { bytes: line.bytes, mask: line.mask, log: false };
        self.write_memory(address, data, cx);
        let bytes = line.mask.count_ones();
        self.reply(from, Reply { tag, kind, sectors, payload: Payload::Line(line) }, 0, 0, cx);
        bytes
    }

    /// The place that a line may take: the least recently used, or the first of those that the handler wants to look at which it
    /// does not keep.
    fn victim(&mut self, number: u64) -> Option<usize> {
        let (Some(handler), Some(search)) = (&mut self.handler, self.wants.victims) else {
            return self.tags.victim(number);
        };
        let (tags, dirty, address, outbox) = (&self.tags, &self.dirty, &self.address, &mut self.outbox);
        let mut goes = |line: u64| handler.offer(&Offer::Victim(line), outbox) == Admission::Goes;
        tags.victims(number)
            .take(search.ways(self.spec.ways as usize))
            .find(|&place| dirty[place] == 0 || Medium::of(address[place]) == Medium::Dram || goes(address[place]))
    }

    /// Serves the input in order as far as it can at `now`, and asks to be woken for the rest.
    pub(super) fn serve_input(&mut self, cx: &mut Ctx<'_, Msg>) {
        let now = cx.now();
        while let Some(head) = self.input.front() {
            let room = self.injection.backlog_at_most(self.spec.reply_flits);
            let at = head.ready.max(self.data_port_free).max(room);
            if at > now {
                cx.wake_at(at);
                return;
            }
            let Some(Arrival { ready, request }) = self.input.pop_front() else { unreachable!() };
            let (from, kind) = (request.from, request.kind);
            let slice = self.map.slice_of(request.line) as u16;
            let seen = self.seen(&request);
            match self.serve(request, cx) {
                Served::Done(bytes) => {
                    if let Some(access) = seen {
                        self.tell(&access);
                    }
                    self.stalled = false;
                    match kind {
                        RequestKind::Read => self.counters.reads += 1,
                        RequestKind::Write => self.counters.writes += 1,
                        RequestKind::Atomic => self.counters.atomics += 1,
                        _ => {}
                    }
                    self.occupy(bytes, now);
                    self.return_credit(from, slice, cx);
                }
                Served::Stalled(request) => {
                    self.counters.stalls += u64::from(!self.stalled);
                    self.stalled = true;
                    self.input.push_front(Arrival { ready, request });
                    return;
                }
            }
        }
    }

    /// What the handler will be told of a request, if it is to be told.
    fn seen(&self, request: &Request) -> Option<Access> {
        let concerns = self.wants.accesses
            && Medium::of(request.line) == Medium::Nvm
            && !matches!(request.kind, RequestKind::WriteBackAll | RequestKind::Marker);
        let from = self.ports.sm_of(request.from).filter(|_| concerns);
        from.map(|from| {
            let place = self.tags.find(self.line_number(request.line));
            let hit = place.is_some_and(|place| self.mshr_of[place] == NO_MSHR && self.satisfies(place, request));
            let bytes = match request.kind {
                RequestKind::Read => sector_bytes(request.sectors),
                _ => request.payload.bytes(),
            };
            let log = request.payload.is_log();
            let mark = request.payload.mark();
            let kind = request.kind.access();
            Access { line: request.line, bytes, kind, half_warps: 0, by: (0, 0), from, mark, log, hit }
        })
    }

    fn occupy(&mut self, bytes: u32, now: Time) {
        let cycles = u64::from(bytes.div_ceil(self.spec.port_bytes).max(1));
        self.data_port_free = self.data_port_free.max(now) + self.clock.cycles(cycles);
    }

    /// A fill: merges it under the dirty bytes and serves those who wait for the line, in order.
    pub(super) fn fill(&mut self, mshr: u16, sectors: u8, data: Box<Line>, cx: &mut Ctx<'_, Msg>) {
        self.read_credits += 1;
        let place = self.mshrs[usize::from(mshr)].place;
        let mask = sector_bytes(sectors) & !self.dirty[place];
        copy_masked(&mut self.data[place], &data.bytes, mask);
        self.valid[place] |= sectors;
        self.mshrs[usize::from(mshr)].pending &= !sectors;
        self.line_pool.give(data);
        while let Some(request) = self.mshrs[usize::from(mshr)].queue.pop_front() {
            if self.satisfies(place, &request) {
                let bytes = self.perform(place, request, cx);
                self.occupy(bytes, cx.now());
            } else {
                let (line, wanted) = (request.line, self.wanted_of(place, &request));
                self.mshrs[usize::from(mshr)].queue.push_front(request);
                self.fetch(mshr, line, wanted, cx);
                return;
            }
        }
        if self.mshrs[usize::from(mshr)].pending != 0 {
            // A store has written sectors whole that a later load had asked for: the line waits for them all the same.
            return;
        }
        self.tags.lock(place, false);
        self.mshr_of[place] = NO_MSHR;
        self.free_mshrs.push(mshr);
    }
}
