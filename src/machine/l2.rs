//! One slice of the shared L2: write-back, write-allocate, sectored, with an atomic unit.
//!
//! ```text
//!  requesters ─[ejection port]─> input buffer ─> tags ──hit──> data ─[injection port]─> requesters
//!                                                 └─miss─> MSHR ──> memory controller ──fill──> MSHR's queue in order
//! ```
//! Requests are served in the order of arrival, one at a time; each occupies the data port for its bytes. A
//! store writes its bytes at once and marks them (no fetch on a write miss, unless `write_miss` has it;
//! GPGPU-Sim's policies are its other readings: fetch-on-write, and the naive one, by which a write that
//! misses goes on to memory and reads its sectors); a load fetches the sectors it lacks, and the fill leaves
//! marked bytes alone. Every request to a line with a fill under way queues behind it, so that requests to
//! one line take effect in the order of their arrival. Atomics are performed here, lane by lane.
//!
//! Source: AGPM Table IV (128 KB a partition, 16-way, 128 B, 256 MSHRs, WBWA, XOR index, LRU, allocate-on-miss);
//! `SM6_TITANX` for sectors, the pipeline before the tags (a part of the request link's latency here) and the port
//! width. Invariants: a line with a fill under way is not evicted; bytes marked dirty are never overwritten by a fill.
//! A requester's packet never arrives without room for it. Where it is inclusive, a
//! line that leaves has every L1 give it up, in order with its replies (no directory says who has it); one dirty there sends its bytes down, and so comes back.
//! Not modelled: prefetch, compression.

mod durability;
mod look;
mod service;

use std::collections::VecDeque;

use crate::choice;
use crate::counters;
use crate::engine::{Clock, Component, Ctx, StateDigest, Time, Wait};
use crate::kernel::memory::Medium;
use crate::spec;

use crate::persist::handler::{Access, Event, Handler, Interests, Move, Outbox, Peer, report_of};

use super::address::Interleave;
use super::cache::TagArray;
use super::crossbar::PortEnd;
use super::msg::{LinePool, MAX_LINE_BYTES, MemoryRead, Msg, Payload, Reply, Request, sectors_touched};
use super::ports::{Endpoint, Ports, Requester};

use durability::Durability;
pub use durability::SliceTimeline;

choice! {
    /// What a store to a line that is not there does.
    pub enum WriteMiss {
        /// It takes a line and marks its bytes; nothing is fetched.
        Validate = "validate",
        /// It waits until the sectors that it writes in part are fetched.
        Fetch = "fetch",
        /// It goes on to memory, and the line is fetched with it.
        Naive = "naive",
    }
}

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
        /// L2 cycles that the atomic unit takes for a pass: over a sector at a time, over lanes on one address one at a time.
        atomic_pass_cycles: u32 where 0..=1000,
        /// Reply flits that may wait before the slice stops serving requests.
        reply_flits: u32 where 1..=4096,
        /// A line that leaves the L2 leaves the L1s: these hear of it.
        inclusive: bool,
        /// What a store to a line that is not there does: validate (its bytes), fetch (what it writes in
        /// part) or naive (goes on to memory, and fetches).
        write_miss: WriteMiss,
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
        /// Dirty lines of persistent memory that left without being written (lines)
        dropped_lines,
        /// Write-backs and flushes of a line asked for by programs (requests)
        write_backs_asked,
        /// Writes past the array (requests)
        write_throughs,
        /// Bytes that requesters sent to this slice, headers included (bytes)
        bytes_in,
        /// Bytes that this slice sent to requesters, headers included (bytes)
        bytes_out,
        /// Packets that had L1s give up lines (packets)
        back_invalidations,
        /// Lines that the host's warm steps put there (lines)
        warmed_lines,
        /// Requests found at the head of the input buffer without the MSHR, way or credit they needed (requests)
        stalls,
    }
}

/// No MSHR.
const NO_MSHR: u16 = u16::MAX;

/// A fill under way, and who waits for it.
#[derive(Debug)]
struct Mshr {
    place: usize,
    /// Sectors that memory was asked for.
    pending: u8,
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
    slice: u16,
    /// This slice's place at its memory controller.
    at_controller: u8,
    ports: Ports,
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
    line_pool: LinePool,
    durability: Durability,
    handler: Option<Box<dyn Handler>>,
    /// What its handler wants to hear of.
    wants: Interests,
    /// Dirty lines of persistent memory leave without being written: a controller's handler has their bytes.
    drops: bool,
    outbox: Outbox,
    /// Lines of DRAM of this slice that the handler moves bytes to, in turn.
    reserved: Vec<u64>,
    next_reserved: usize,
    /// Moves from memory that wait for a read credit, by their bytes.
    moves_in: VecDeque<u32>,
    counters: L2Counters,
}

/// How a slice is wired and what it may use of its neighbours.
#[derive(Debug, Clone)]
pub struct L2Wiring {
    /// L2 clock.
    pub clock: Clock,
    /// The slice's ports.
    pub ports: Ports,
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
        let Endpoint::Slice(slice) = wiring.ports.owner() else { panic!("the ports of {}", wiring.ports.owner()) };
        let map = wiring.ports.map();
        let places = (spec.slice_kb * 1024 / spec.line_bytes) as usize;
        let tags = TagArray::new(places / spec.ways as usize, spec.ways as usize);
        L2Slice {
            line_bytes: spec.line_bytes,
            clock: wiring.clock,
            map,
            slice,
            at_controller: (u32::from(slice) % map.slices_per_channel()) as u8,
            ports: wiring.ports,
            address: vec![0; tags.places()],
            valid: vec![0; tags.places()],
            dirty: vec![0; tags.places()],
            data: vec![[0; MAX_LINE_BYTES]; tags.places()],
            mshr_of: vec![NO_MSHR; tags.places()],
            tags,
            mshrs: (0..spec.mshr_entries).map(|_| Mshr { place: 0, pending: 0, queue: VecDeque::new() }).collect(),
            free_mshrs: (0..spec.mshr_entries as u16).rev().collect(),
            read_credits: wiring.memory_credits.0,
            write_credits: wiring.memory_credits.1,
            input: VecDeque::new(),
            ejection: wiring.port.clone(),
            injection: wiring.port,
            data_port_free: 0,
            stalled: false,
            credit_batch: (wiring.buffer_packets / 4).max(1) as u16,
            credits_due: vec![0; usize::from(wiring.ports.roster().requesters())],
            line_pool: LinePool::default(),
            durability: Durability::new(),
            handler: None,
            wants: Interests::default(),
            drops: false,
            outbox: Outbox::default(),
            reserved: Vec::new(),
            next_reserved: 0,
            moves_in: VecDeque::new(),
            counters: L2Counters::default(),
            spec,
        }
    }

    /// Hosts a scheme's handler from now on, which may move bytes to these lines of DRAM.
    pub fn host(&mut self, handler: Option<Box<dyn Handler>>, reserved: Vec<u64>) {
        self.wants = handler.as_ref().map(|handler| handler.interests()).unwrap_or_default();
        self.handler = handler;
        self.reserved = reserved;
    }

    /// Dirty lines of persistent memory leave without being written from now on.
    pub fn drop_write_backs(&mut self) {
        self.drops = true;
    }

    fn next_reserved(&mut self) -> u64 {
        self.next_reserved = (self.next_reserved + 1) % self.reserved.len();
        self.reserved[self.next_reserved]
    }

    /// Moves what the handler has asked for: writes and reads of DRAM that nobody waits for.
    fn transfer(&mut self, cx: &mut Ctx<'_, Msg>) {
        for bytes in self.outbox.take_moves() {
            match bytes {
                Move::Out(bytes) => {
                    let bytes = bytes.min(self.line_bytes);
                    let mut data = self.line_pool.take();
                    data.mask = u128::MAX >> (MAX_LINE_BYTES as u32 - bytes);
                    let line = self.next_reserved();
                    self.write_memory(line, data, cx);
                }
                Move::In(bytes) => self.moves_in.push_back(bytes.min(self.line_bytes)),
            }
        }
        while self.read_credits > 0 {
            let Some(bytes) = self.moves_in.pop_front() else { return };
            self.read_credits -= 1;
            let sectors = sectors_touched(u128::MAX >> (MAX_LINE_BYTES as u32 - bytes));
            let (line, room) = (self.next_reserved(), self.line_pool.take());
            let read = MemoryRead { line, tag: NO_MSHR, slice: self.at_controller, sectors, room };
            self.send_to_memory(Msg::MemoryRead(read), cx);
        }
    }

    /// Tells the handler of a request that was served.
    fn tell(&mut self, access: &Access) {
        if let Some(handler) = &mut self.handler {
            handler.event(&Event::Accessed(access), &mut self.outbox);
        }
    }

    /// A line leaves an inclusive L2: the L1s hear of it behind the replies that they got before.
    fn invalidate_above(&mut self, place: usize, cx: &mut Ctx<'_, Msg>) {
        if !self.spec.inclusive || self.tags.line_at(place).is_none() {
            return;
        }
        let line = self.address[place];
        // The command processor has no cache.
        for sm in self.ports.roster().sms() {
            let tail = self.injection.inject(cx.now(), 0);
            self.counters.bytes_out += u64::from(super::msg::HEADER_BYTES);
            self.counters.back_invalidations += 1;
            cx.send(self.ports.to(sm), Msg::Invalidate { line }, tail - cx.now());
        }
    }

    /// Tells the handler that a line of persistent memory makes room for another.
    fn tell_replaced(&mut self, place: usize) {
        let line = self.address[place];
        if let Some(handler) = &mut self.handler
            && self.tags.line_at(place).is_some()
            && Medium::of(line) == Medium::Nvm
        {
            handler.event(&Event::Replaced(line), &mut self.outbox);
        }
    }

    /// Sends what the handler has written.
    fn send_messages(&mut self, cx: &mut Ctx<'_, Msg>) {
        if !self.outbox.cleans().is_empty() {
            self.clean_asked(cx);
        }
        if self.outbox.is_empty() && self.moves_in.is_empty() {
            return;
        }
        self.transfer(cx);
        for (to, message) in self.outbox.take() {
            cx.send(self.ports.to_peer(to), Msg::Scheme { from: Peer::Slice(self.slice), message }, 0);
        }
    }

    /// What its handler counted.
    pub fn tally(&self, add: &mut dyn FnMut(&'static str, u64)) {
        if let Some(handler) = &self.handler {
            report_of(&**handler).counters.into_iter().for_each(|(name, value)| add(name, value));
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
    fn reply(&mut self, to: Requester, reply: Reply, payload_bytes: u32, delay: Time, cx: &mut Ctx<'_, Msg>) {
        let tail = self.injection.inject(cx.now() + delay, payload_bytes);
        self.counters.bytes_out += u64::from(super::msg::HEADER_BYTES + payload_bytes);
        match self.ports.to_switch() {
            None => cx.send(self.ports.to_requester(to), Msg::Reply(reply), tail - cx.now()),
            Some(switch) => cx.send(switch, Msg::Switched { from: self.slice, to, reply }, tail - cx.now()),
        }
    }

    /// Returns the input-buffer room of a requester's packet.
    fn return_credit(&mut self, to: Requester, slice: u16, cx: &mut Ctx<'_, Msg>) {
        let due = &mut self.credits_due[to.index()];
        *due += 1;
        if *due >= self.credit_batch {
            let packets = std::mem::take(due);
            cx.send(self.ports.to_requester(to), Msg::Credit { slice, packets }, 0);
        }
    }
}

impl Component<Msg> for L2Slice {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        self.outbox.at(cx.now());
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
            Msg::MemoryData { tag: NO_MSHR, data, .. } => {
                self.read_credits += 1;
                self.line_pool.give(data);
            }
            Msg::MemoryData { tag, sectors, data } => self.fill(tag, sectors, data, cx),
            Msg::MemoryAccepted { token, durable, at, room } => {
                self.write_credits += 1;
                self.line_pool.give(room);
                self.pump_memory(cx);
                self.accepted(token, at);
                if durable {
                    self.durable(token, at, cx);
                }
            }
            Msg::MemoryDurable { token, at } => self.durable(token, at, cx),
            Msg::Look(look) => self.look(&look, cx),
            Msg::Lines(lines) => self.looked(lines, cx),
            Msg::Scheme { from, message } => {
                if let Some(handler) = &mut self.handler {
                    handler.message(from, message, &mut self.outbox);
                }
            }
            other => panic!("an L2 slice received {other:?}"),
        }
        self.serve_input(cx);
        self.send_messages(cx);
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        self.outbox.at(cx.now());
        self.serve_input(cx);
        self.send_messages(cx);
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
        let mut digest = StateDigest::default();
        for place in (0..self.valid.len()).filter(|&place| self.valid[place] != 0 || self.dirty[place] != 0) {
            let dirty = self.dirty[place];
            let words = [self.address[place], u64::from(self.valid[place]), dirty as u64, (dirty >> 64) as u64];
            words.into_iter().for_each(|word| digest.word(word));
            digest.bytes(&self.data[place]);
        }
        digest.word(self.input.len() as u64);
        digest.word((self.mshrs.len() - self.free_mshrs.len()) as u64);
        digest.value()
    }
}
