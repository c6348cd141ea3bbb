//! One slice of the shared L2: write-back, write-allocate, sectored, with an atomic unit.
//!
//! ```text
//!  requesters ─[ejection port]─> input buffer ─> tags ──hit──> data ─[injection port]─> requesters
//!                                                 └─miss─> MSHR ──> memory controller ──fill──> MSHR's queue in order
//! ```
//! Requests are served in the order of arrival, one at a time; each occupies the data port for its bytes. A store
//! writes its bytes at once and marks them (no fetch on a write miss); a load fetches the sectors it lacks, and the fill
//! leaves marked bytes alone. Every request to a line with a fill under way queues behind it, so that requests to one
//! line take effect in the order of their arrival. Atomics are performed here, lane by lane.
//!
//! Source: AGPM Table IV (128 KB a partition, 16-way, 128 B, 256 MSHRs, WBWA, XOR index, LRU, allocate-on-miss);
//! `SM6_TITANX` for sectors, the pipeline before the tags (a part of the request link's latency here) and the port
//! width. Invariants: a line with a fill under way is not evicted; bytes marked dirty are never overwritten by a fill.
//! A requester's packet never arrives without room for it. Not modelled: prefetch, compression, inclusion of L1s.

mod durability;

use std::collections::VecDeque;

use crate::counters;
use crate::engine::{Clock, Component, Ctx, Port, Time, Wait};
use crate::kernel::memory::Medium;
use crate::kernel::semantics::atomic::apply_atomic;
use crate::spec;

use super::address::Interleave;
use super::cache::TagArray;
use super::crossbar::PortEnd;
use super::msg::{Atomics, Line, MAX_LINE_BYTES, MemoryRead, Msg, Payload, Reply, Request, RequestKind};
use super::msg::{Rooms, SECTOR_BYTES, copy_masked, sector_bytes, sectors_covered};

use durability::Durability;

spec! {
    /// Parameters of the shared L2 cache.
    pub struct L2Spec {
        /// Bytes of a line, in the L1s as in the L2.
        line_bytes: u32 where 32..=128,
        /// Slices (partitions) of the L2.
        slices: u32 where 1..=512,
        /// Capacity of one slice, in KiB.
        slice_kb: u32 where 1..=65536,
        /// Ways of a set.
        ways: u32 where 1..=64,
        /// Misses under way, each of one line.
        mshr_entries: u32 where 1..=4096,
        /// Requests that one MSHR holds.
        mshr_merges: u32 where 1..=4096,
        /// L2 cycles from the crossbar to the tags, on every request.
        pipeline_cycles: u32 where 0..=10000,
        /// Bytes that the data port moves in one L2 cycle.
        port_bytes: u32 where 8..=256,
        /// L2 cycles that the atomic unit takes for each lane.
        atomic_lane_cycles: u32 where 0..=1000,
        /// Reply flits that may wait before the slice stops serving requests.
        reply_flits: u32 where 1..=4096,
        /// Bytes of consecutive addresses on one slice, before the next slice's.
        interleave_bytes: u32 where 32..=65536,
    }
}

counters! {
    /// What one L2 slice counted.
    pub struct L2Counters {
        /// Read requests (requests)
        reads,
        /// Read requests whose sectors were all there (requests)
        read_hits,
        /// Write requests (requests)
        writes,
        /// Write requests whose line was there (requests)
        write_hits,
        /// Atomic requests (requests)
        atomics,
        /// Atomic requests whose sectors were all there (requests)
        atomic_hits,
        /// Atomic operations, one a lane (operations)
        atomic_lanes,
        /// Requests that waited for a fill already under way (requests)
        mshr_merges,
        /// Lines fetched from memory, whole or in part (lines)
        fetches,
        /// Dirty lines written back to memory (lines)
        writebacks,
        /// Write-backs and flushes of a line asked for by programs (requests)
        write_backs_asked,
        /// Writes past the array (requests)
        write_throughs,
        /// Bytes that requesters sent to this slice, headers included (bytes)
        bytes_in,
        /// Bytes that this slice sent to requesters, headers included (bytes)
        bytes_out,
        /// Requests found at the head of the input buffer without the MSHR, way or credit they needed (requests)
        stalls,
    }
}

/// No MSHR.
const NO_MSHR: u16 = u16::MAX;

/// Port number of the memory controller, after all requesters'.
fn memory_port(requesters: usize) -> Port {
    Port(requesters as u16)
}

/// A fill under way, and who waits for it.
#[derive(Debug)]
struct Mshr {
    place: usize,
    queue: VecDeque<Request>,
}

/// A request at the input, and when its tail is out of the ejection port.
#[derive(Debug)]
struct Arrival {
    ready: Time,
    request: Request,
}

/// What the head of the input came to.
enum Served {
    /// Done with it, or it waits in an MSHR: so many bytes moved through the data port.
    Done(u32),
    /// It lacks a resource; tried again when one comes back.
    Stalled(Request),
}

/// One L2 slice.
#[derive(Debug)]
pub struct L2Slice {
    spec: L2Spec,
    line_bytes: u32,
    clock: Clock,
    map: Interleave,
    /// This slice's place at its memory controller.
    at_controller: u8,
    requesters: usize,
    tags: TagArray,
    address: Vec<u64>,
    valid: Vec<u8>,
    dirty: Vec<u128>,
    data: Vec<[u8; MAX_LINE_BYTES]>,
    mshr_of: Vec<u16>,
    mshrs: Vec<Mshr>,
    free_mshrs: Vec<u16>,
    read_credits: u32,
    write_credits: u32,
    input: VecDeque<Arrival>,
    ejection: PortEnd,
    injection: PortEnd,
    data_port_free: Time,
    /// The head lacks a resource.
    stalled: bool,
    credit_batch: u16,
    credits_due: Vec<u16>,
    rooms: Rooms,
    durability: Durability,
    counters: L2Counters,
}

/// How a slice is wired and what it may use of its neighbours.
#[derive(Debug, Clone)]
pub struct L2Wiring {
    /// The slice's number in the machine: packets and credits carry it.
    pub slice: u16,
    /// L2 clock.
    pub clock: Clock,
    /// Address mapping.
    pub map: Interleave,
    /// Requesters: SMs and the command processor; port `i` leads to requester `i`, the next one to memory.
    pub requesters: usize,
    /// Reads and writes that the memory controller has room for.
    pub memory_credits: (u32, u32),
    /// Packets of one requester that fit into the input buffer.
    pub buffer_packets: u32,
    /// The crossbar's port at this end, as made for both directions.
    pub port: PortEnd,
}

impl L2Slice {
    /// An empty slice.
    pub fn new(spec: L2Spec, wiring: L2Wiring) -> Self {
        let places = (spec.slice_kb * 1024 / spec.line_bytes) as usize;
        let tags = TagArray::new(places / spec.ways as usize, spec.ways as usize);
        L2Slice {
            line_bytes: spec.line_bytes,
            clock: wiring.clock,
            map: wiring.map,
            at_controller: (u32::from(wiring.slice) % wiring.map.slices_per_channel()) as u8,
            requesters: wiring.requesters,
            address: vec![0; tags.places()],
            valid: vec![0; tags.places()],
            dirty: vec![0; tags.places()],
            data: vec![[0; MAX_LINE_BYTES]; tags.places()],
            mshr_of: vec![NO_MSHR; tags.places()],
            tags,
            mshrs: (0..spec.mshr_entries).map(|_| Mshr { place: 0, queue: VecDeque::new() }).collect(),
            free_mshrs: (0..spec.mshr_entries as u16).rev().collect(),
            read_credits: wiring.memory_credits.0,
            write_credits: wiring.memory_credits.1,
            input: VecDeque::new(),
            ejection: wiring.port.clone(),
            injection: wiring.port,
            data_port_free: 0,
            stalled: false,
            credit_batch: (wiring.buffer_packets / 4).max(1) as u16,
            credits_due: vec![0; wiring.requesters],
            rooms: Rooms::default(),
            durability: Durability::new(),
            counters: L2Counters::default(),
            spec,
        }
    }

    /// What it counted.
    pub fn counters(&self) -> &L2Counters {
        &self.counters
    }

    /// Every line with bytes that memory does not have yet: address, content, dirty bytes.
    pub fn dirty_lines(&self) -> impl Iterator<Item = (u64, &[u8; MAX_LINE_BYTES], u128)> {
        (0..self.tags.places())
            .filter(|&place| self.dirty[place] != 0 && self.tags.line_at(place).is_some())
            .map(|place| (self.address[place], &self.data[place], self.dirty[place]))
    }

    fn line_number(&self, line: u64) -> u64 {
        let medium = if Medium::of(line) == Medium::Nvm { 1 << 50 } else { 0 };
        self.map.in_slice(line) >> self.line_bytes.trailing_zeros() | medium
    }

    /// Sends a reply that is ready `delay` from now; its payload's bytes decide how long it holds the port.
    fn reply(&mut self, to: u16, reply: Reply, payload_bytes: u32, delay: Time, cx: &mut Ctx<'_, Msg>) {
        let tail = self.injection.inject(cx.now() + delay, payload_bytes);
        self.counters.bytes_out += u64::from(super::msg::HEADER_BYTES + payload_bytes);
        cx.send(Port(to), Msg::Reply(reply), tail - cx.now());
    }

    /// Returns the input-buffer room of a requester's packet.
    fn return_credit(&mut self, to: u16, slice: u16, cx: &mut Ctx<'_, Msg>) {
        let due = &mut self.credits_due[usize::from(to)];
        *due += 1;
        if *due >= self.credit_batch {
            let packets = std::mem::take(due);
            cx.send(Port(to), Msg::Credit { slice, packets }, 0);
        }
    }

    /// Whether a resident line has what the request needs.
    fn satisfies(&self, place: usize, request: &Request) -> bool {
        match request.kind {
            RequestKind::Write => true,
            RequestKind::Read | RequestKind::Atomic => self.valid[place] & request.sectors == request.sectors,
            RequestKind::WriteThrough | RequestKind::WriteBack | RequestKind::Flush => true,
            RequestKind::WriteBackAll => unreachable!("it concerns no one line"),
        }
    }

    /// Performs a request on a line that satisfies it, replies, and returns the bytes moved through the data port.
    fn perform(&mut self, place: usize, request: Request, cx: &mut Ctx<'_, Msg>) -> u32 {
        match request.kind {
            RequestKind::WriteThrough => return self.write_through(Some(place), request, cx),
            RequestKind::WriteBack | RequestKind::Flush => return self.write_back_line(Some(place), request, cx),
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
                let lanes = u32::from(atomics.count);
                let written = self.perform_atomics(place, &mut atomics);
                self.note_performed(place, written, from, cx);
                let extra = self.clock.cycles(u64::from(self.spec.atomic_lane_cycles * lanes));
                self.data_port_free = self.data_port_free.max(cx.now()) + extra;
                let bytes = lanes * atomics.elem.bytes();
                self.reply(from, Reply { tag, kind, sectors, payload: Payload::Atomics(atomics) }, bytes, extra, cx);
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
            atomics.a[i] = old;
        }
        self.dirty[place] |= written;
        written
    }

    /// Asks memory for the sectors that the request at the head of the MSHR's queue lacks.
    fn fetch(&mut self, mshr: u16, line: u64, wanted: u8, cx: &mut Ctx<'_, Msg>) {
        debug_assert!(self.read_credits > 0);
        self.read_credits -= 1;
        self.counters.fetches += 1;
        let place = self.mshrs[usize::from(mshr)].place;
        let sectors = wanted & !self.valid[place];
        let room = self.rooms.take();
        let read = MemoryRead { line, tag: mshr, slice: self.at_controller, sectors, room };
        self.send_to_memory(Msg::MemoryRead(read), cx);
    }

    /// Writes a place's dirty bytes back, if it has any.
    fn write_back(&mut self, place: usize, cx: &mut Ctx<'_, Msg>) {
        if self.dirty[place] == 0 || self.tags.line_at(place).is_none() {
            return;
        }
        self.counters.writebacks += 1;
        let mut data = self.rooms.take();
        *data = Line { bytes: self.data[place], mask: self.dirty[place] };
        self.dirty[place] = 0;
        self.write_memory(self.address[place], data, cx);
    }

    fn serve(&mut self, request: Request, cx: &mut Ctx<'_, Msg>) -> Served {
        if self.durability.is_held_up() {
            return Served::Stalled(request);
        }
        if request.kind == RequestKind::WriteBackAll {
            return self.sweep(request, cx);
        }
        let number = self.line_number(request.line);
        let found = self.tags.find(number);
        if let Some(place) = found {
            let mshr = self.mshr_of[place];
            if mshr != NO_MSHR {
                let queue = &mut self.mshrs[usize::from(mshr)].queue;
                if queue.len() >= self.spec.mshr_merges as usize {
                    return Served::Stalled(request);
                }
                self.counters.mshr_merges += 1;
                queue.push_back(request);
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
            RequestKind::WriteThrough if self.write_credits == 0 => return Served::Stalled(request),
            RequestKind::WriteThrough => return Served::Done(self.write_through(None, request, cx)),
            RequestKind::WriteBack | RequestKind::Flush => {
                return Served::Done(self.write_back_line(None, request, cx));
            }
            _ => {}
        }
        let fetches = request.kind != RequestKind::Write;
        if fetches && (self.free_mshrs.is_empty() || self.read_credits == 0) {
            return Served::Stalled(request);
        }
        let place = match found {
            Some(place) => place,
            None => {
                let Some(place) = self.tags.victim(number) else {
                    return Served::Stalled(request);
                };
                if self.dirty[place] != 0 && self.write_credits == 0 {
                    return Served::Stalled(request);
                }
                self.write_back(place, cx);
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
        let (line, wanted) = (request.line, request.sectors);
        self.mshrs[usize::from(mshr)].queue.push_back(request);
        self.fetch(mshr, line, wanted, cx);
        Served::Done(0)
    }

    /// Serves the input in order as far as it can at `now`, and asks to be woken for the rest.
    fn serve_input(&mut self, cx: &mut Ctx<'_, Msg>) {
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
            match self.serve(request, cx) {
                Served::Done(bytes) => {
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

    fn occupy(&mut self, bytes: u32, now: Time) {
        let cycles = u64::from(bytes.div_ceil(self.spec.port_bytes).max(1));
        self.data_port_free = self.data_port_free.max(now) + self.clock.cycles(cycles);
    }

    /// A fill: merges it under the dirty bytes and serves those who wait for the line, in order.
    fn fill(&mut self, mshr: u16, sectors: u8, data: Box<Line>, cx: &mut Ctx<'_, Msg>) {
        self.read_credits += 1;
        let place = self.mshrs[usize::from(mshr)].place;
        let mask = sector_bytes(sectors) & !self.dirty[place];
        copy_masked(&mut self.data[place], &data.bytes, mask);
        self.valid[place] |= sectors;
        self.rooms.give(data);
        while let Some(request) = self.mshrs[usize::from(mshr)].queue.pop_front() {
            if self.satisfies(place, &request) {
                let bytes = self.perform(place, request, cx);
                self.occupy(bytes, cx.now());
            } else {
                let (line, wanted) = (request.line, request.sectors);
                self.mshrs[usize::from(mshr)].queue.push_front(request);
                self.fetch(mshr, line, wanted, cx);
                return;
            }
        }
        self.tags.lock(place, false);
        self.mshr_of[place] = NO_MSHR;
        self.free_mshrs.push(mshr);
    }
}

impl Component<Msg> for L2Slice {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        match message {
            Msg::Request(mut request) => {
                let bytes = request.payload_bytes();
                self.counters.bytes_in += u64::from(super::msg::HEADER_BYTES + bytes);
                let ready = self.ejection.eject(cx.now(), bytes);
                if let Payload::Persist(persist) = &mut request.payload {
                    persist.passed.reached = ready;
                }
                self.input.push_back(Arrival { ready, request });
                if self.input.len() > 1 {
                    return; // served behind the others
                }
            }
            Msg::MemoryData { tag, sectors, data } => self.fill(tag, sectors, data, cx),
            Msg::MemoryAccepted { token, durable, at, room } => {
                self.write_credits += 1;
                self.rooms.give(room);
                self.pump_memory(cx);
                self.accepted(token, at);
                if durable {
                    self.durable(token, at, cx);
                }
            }
            Msg::MemoryDurable { token, at } => self.durable(token, at, cx),
            other => panic!("an L2 slice received {other:?}"),
        }
        self.serve_input(cx);
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        self.serve_input(cx);
    }

    fn waits(&self, out: &mut Vec<Wait>) {
        if let Some(head) = self.input.front() {
            out.push(Wait {
                who: format!("input buffer, {} requests", self.input.len()),
                what: format!("an MSHR, a way or memory credit for line {:#x}", head.request.line),
                on: None,
                since: head.ready,
            });
        }
        for mshr in self.mshrs.iter().filter(|m| !m.queue.is_empty()) {
            out.push(Wait {
                who: format!("{} requests", mshr.queue.len()),
                what: format!("the fill of line {:#x}", self.address[mshr.place]),
                on: None,
                since: 0,
            });
        }
    }

    fn digest(&self) -> u64 {
        let mut hash = 0u64;
        for (address, bytes, mask) in self.dirty_lines() {
            hash = hash.rotate_left(5) ^ address ^ mask as u64 ^ (mask >> 64) as u64;
            for chunk in bytes.as_chunks::<8>().0 {
                hash = (hash ^ u64::from_le_bytes(*chunk)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            }
        }
        hash
    }
}
