//! One slice of the shared L2: write-back, write-allocate, sectored, with an atomic unit.
//!
//! ```text
//!  requesters ─[ejection port]─> input ──> array ──hit──> data port ─[injection port]─> requesters
//!                                            └─miss─> mshr ──> memory_port ──> memory controller
//!                                                      ▲                             │
//!                                                      └────────────fill─────────────┘
//!  writes: array ──> durability (token) ──> memory_port ──> controller ──durable──> acknowledgement
//! ```
//! Each part owns its state; `service` is the walk of a request through them. Requests are served in the
//! order of arrival, one at a time; each occupies the data port for its bytes. A store writes its bytes at
//! once and marks them (no fetch on a write miss, unless `write_miss` has it; GPGPU-Sim's policies are its
//! other readings: fetch-on-write, and the naive one, by which a write that misses goes on to memory and
//! reads its sectors); a load fetches the sectors it lacks, and the fill leaves marked bytes alone. Every
//! request to a line with a fill under way queues for it, so that requests to one line take effect in the
//! order of their arrival. Atomics are performed here, lane by lane.
//!
//! Source: AGPM Table IV (128 KB a partition, 16-way, 128 B, 256 MSHRs, WBWA, XOR index, LRU,
//! allocate-on-miss); `SM6_TITANX` for sectors, the pipeline before the tags (a part of the request link's
//! latency here) and the port width. Invariants: a line with a fill under way is not evicted; bytes marked
//! dirty are never overwritten by a fill. A requester's packet never arrives without room for it. Where the
//! L2 is inclusive, a line that leaves it leaves every L1, in order with the replies to that L1 (no directory
//! says which L1 has it); one dirty there sends its bytes down, and so comes back. Not modelled: prefetch,
//! compression.

mod array;
mod durability;
mod handler_host;
mod input;
mod mshr;
mod parameters;
mod service;
mod write_back_all;

use durawarp_base::timeline::Growth;
use durawarp_checkpoint::{state, state_methods};
use durawarp_engine::{Clock, Component, Ctx, StateDigest, Time, Wait};
use durawarp_persist::handler::{Move, SliceHandler};
use durawarp_persist::journal::Notebook;

use super::cache::TagArray;
use super::crossbar::PortEnd;
use super::look::{Lines, Look, LookKind};
use super::memory_port::MemoryPort;
use super::msg::{
    CommandProcessorMsg, ControllerMsg, HEADER_BYTES, MAX_LINE_BYTES, MemoryAccepted, MemoryData, MemoryDurable, Msg,
    PeerMessage, Receiver, SliceMsg, SmMsg, deliver, sectors_touched,
};
use super::persistence::PersistSpec;
use super::ports::{Endpoint, Ports};
use super::queue_level::QueueLevel;
use super::slice_timeline::SliceTimeline;

use array::LineArray;
use durability::Durability;
use handler_host::SliceHost;
use input::{DataPort, InputBuffer};
use mshr::{MshrFile, NO_MSHR};
pub use parameters::{L2Counters, L2Spec, MshrUnit, WriteMiss};
use write_back_all::WriteBackAll;

/// One L2 slice.
#[derive(Debug)]
pub struct L2Slice {
    spec: L2Spec,
    slice: u16,
    ports: Ports,
    input: InputBuffer,
    array: LineArray,
    mshrs: MshrFile,
    data_port: DataPort,
    injection: PortEnd,
    memory: MemoryPort,
    durability: Durability,
    write_back_all: WriteBackAll,
    host: SliceHost,
    /// Dirty lines of persistent memory leave without being written: a controller's handler has their bytes.
    drops: bool,
    counters: L2Counters,
}

state!(L2Slice {
    parts: input, array, mshrs, data_port, injection, memory, durability, write_back_all, host; saved: counters;
    kept: spec, slice, ports, drops
});

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
    ///
    /// # Panics
    /// When the ports are those of another component.
    pub fn new(spec: L2Spec, wiring: L2Wiring) -> Self {
        let Endpoint::Slice(slice) = wiring.ports.owner() else { panic!("the ports of {}", wiring.ports.owner()) };
        let (map, requesters) = (wiring.ports.map(), wiring.ports.roster().requesters());
        let (places, ways) = ((spec.slice_kb * 1024 / spec.line_bytes) as usize, spec.ways as usize);
        let tags = TagArray::new(places / ways, ways, spec.replacement, spec.replacement_seed);
        L2Slice {
            slice,
            ports: wiring.ports,
            input: InputBuffer::new(wiring.port.clone(), wiring.buffer_packets, requesters),
            array: LineArray::new(*map, spec.line_bytes, tags),
            mshrs: MshrFile::new(places, &spec),
            data_port: DataPort::new(wiring.clock, spec.port_bytes),
            injection: wiring.port,
            memory: MemoryPort::new(wiring.ports, wiring.memory_credits),
            durability: Durability::new(),
            write_back_all: WriteBackAll::default(),
            host: SliceHost::default(),
            drops: false,
            counters: L2Counters::default(),
            spec,
        }
    }

    /// Hosts a scheme's handler from now on, which may move bytes to these lines of DRAM.
    pub fn host(&mut self, handler: Option<Box<dyn SliceHandler>>, reserved: Vec<u64>) {
        self.host = SliceHost::new(handler, reserved);
    }

    /// Dirty lines of persistent memory leave without being written from now on.
    pub fn drop_write_backs(&mut self) {
        self.drops = true;
    }

    /// What survives a power failure, and hence when a write is acknowledged as durable, with what
    /// non-temporal stores do; and whether it keeps a journal.
    pub fn set_persistence(&mut self, spec: &PersistSpec, journal: bool) {
        self.durability.set(spec, journal);
    }

    /// The journal, where it keeps one.
    pub fn journal(&self) -> Option<&Notebook> {
        self.durability.journal()
    }

    /// Keeps a timeline from now on, of at most `spans` spans and values.
    pub fn keep_timeline(&mut self, spans: usize) {
        self.durability.keep_timeline(spans);
    }

    /// The timeline, where it keeps one.
    pub fn timeline(&self) -> Option<&SliceTimeline> {
        self.durability.timeline()
    }

    /// Notes what was counted before the event at `now`, where a timeline is kept.
    fn note_growth(&mut self, now: Time) {
        if let Some(timeline) = self.durability.timeline_mut() {
            timeline.growth.note(now, &[self.counters.reads, self.counters.read_hits]);
        }
    }

    /// How its counters grew until `now`, where it kept a timeline.
    pub fn growth(&self, now: Time) -> Option<Growth> {
        let mut growth = self.timeline()?.growth.clone();
        growth.note(now, &[self.counters.reads, self.counters.read_hits]);
        Some(growth)
    }

    /// How often a store or an atomic has changed a value here.
    pub fn changes(&self) -> u64 {
        self.array.changes()
    }

    /// What its handler counted.
    pub fn tally(&self, add: &mut dyn FnMut(&'static str, u64)) {
        self.host.tally(add);
    }

    /// How full its queues are.
    pub fn queues(&self) -> [QueueLevel; 2] {
        [
            QueueLevel::new("L2 input buffer", self.input.len(), self.input.capacity()),
            QueueLevel::new("L2 MSHRs", self.mshrs.in_use(), self.spec.mshr_entries as usize),
        ]
    }

    /// What it counted.
    pub fn counters(&self) -> &L2Counters {
        &self.counters
    }

    /// Every line with bytes that memory does not have yet: address, content, dirty bytes.
    pub fn dirty_lines(&self) -> Vec<(u64, &[u8; MAX_LINE_BYTES], u128)> {
        self.array.dirty_lines().collect()
    }

    /// Does what the handler has asked for: write-backs, moves of bytes, messages.
    fn send_messages(&mut self, cx: &mut Ctx<'_, Msg>) {
        if !self.host.outbox.cleans().is_empty() {
            self.clean_requested(cx);
        }
        if self.host.outbox.is_empty() && self.host.moves_in.is_empty() {
            return;
        }
        self.transfer(cx);
        for (to, message) in self.host.outbox.take() {
            self.ports.tell(to, message, 0, cx);
        }
    }

    /// Moves the handler's bytes: writes and reads of DRAM that no request waits for.
    fn transfer(&mut self, cx: &mut Ctx<'_, Msg>) {
        let mask_of = |bytes: u32| u128::MAX >> (MAX_LINE_BYTES as u32 - bytes);
        for bytes in self.host.outbox.take_moves() {
            match bytes {
                Move::Out(bytes) => {
                    let mut data = self.memory.line_pool.take();
                    data.mask = mask_of(bytes.min(self.spec.line_bytes));
                    let line = self.host.next_reserved();
                    self.write_memory(line, false, data, cx);
                }
                Move::In(bytes) => self.host.moves_in.push_back(bytes.min(self.spec.line_bytes)),
            }
        }
        while self.memory.may_read() {
            let Some(bytes) = self.host.moves_in.pop_front() else { return };
            let line = self.host.next_reserved();
            self.memory.read(line, NO_MSHR, sectors_touched(mask_of(bytes)), None, cx);
        }
    }

    /// Asks the controller for the slice's lines of a look of the host's, after all writes that are on their
    /// way.
    fn look(&mut self, look: &Look, cx: &mut Ctx<'_, Msg>) {
        let own = |line: &u64| self.ports.map().slice_of(*line) == u32::from(self.slice);
        let line_bytes = self.spec.line_bytes;
        let mut lines: Vec<_> =
            look.lines(u64::from(line_bytes)).filter(own).map(|line| (line, [0; MAX_LINE_BYTES])).collect();
        if let LookKind::Warm = look.kind {
            lines.drain(..lines.len().saturating_sub(self.array.places()));
        }
        if let LookKind::Replace(contents) = &look.kind {
            self.array.take_over(contents);
        }
        let lines = Lines { slice: self.memory.at_controller(), kind: look.kind.clone(), line_bytes, lines };
        self.memory.send(ControllerMsg::Lines(Box::new(lines)), cx);
    }

    /// The lines as memory has them: takes them in, or answers with the dirty bytes over them.
    fn looked(&mut self, mut lines: Box<Lines>, cx: &mut Ctx<'_, Msg>) {
        if let LookKind::Warm = lines.kind {
            for (line, bytes) in std::mem::take(&mut lines.lines) {
                self.warm(line, &bytes, cx);
            }
        } else {
            for (line, bytes) in &mut lines.lines {
                if let Some(place) = self.array.find(*line) {
                    self.array.read(place, bytes, self.array.dirty(place));
                }
            }
        }
        self.ports.to_command_processor().send(CommandProcessorMsg::Lines(lines), 0, cx);
    }

    /// A warm start brings a line: clean, whole, used in the order of coming. It displaces no dirty line and
    /// none with a fill under way.
    fn warm(&mut self, line: u64, bytes: &[u8; MAX_LINE_BYTES], cx: &mut Ctx<'_, Msg>) {
        let place = match self.array.find(line) {
            Some(place) if self.mshrs.of(place).is_some() => return,
            Some(place) => {
                self.array.touch(place);
                place
            }
            None => {
                let Some(place) = self.array.victims(line).find(|&place| self.array.dirty(place) == 0) else { return };
                self.tell_replaced(place);
                if let Some(line) = self.array.line_at(place).filter(|_| self.spec.inclusive) {
                    // The L1s give the line up, without traffic: this is outside simulated time.
                    self.ports.to_sms().for_each(|sm| sm.send(SmMsg::Invalidate { line, bytes: 0 }, 0, cx));
                }
                self.tell_durable(self.array.address(place));
                self.array.replace(place, line);
                place
            }
        };
        self.array.fill_whole(place, bytes);
        self.counters.warmed_lines += 1;
    }
}

impl Receiver for L2Slice {
    type Inbox = SliceMsg;

    fn receive(&mut self, message: SliceMsg, cx: &mut Ctx<'_, Msg>) {
        self.host.outbox.at(cx.now());
        // First: what was counted before this event grew before it.
        self.note_growth(cx.now());
        match message {
            SliceMsg::Request(request) => {
                self.counters.bytes_in += u64::from(HEADER_BYTES + request.payload_bytes());
                self.input.arrive(request, cx.now());
                if self.input.len() > 1 {
                    return; // served after the others
                }
            }
            SliceMsg::MemoryData(MemoryData { tag, sectors, data }) => self.fill(tag, sectors, data, cx),
            SliceMsg::MemoryAccepted(MemoryAccepted { token, durable, at, room }) => {
                self.memory.write_accepted(room, cx);
                self.durability.accepted(token, at);
                if durable {
                    self.durable(token, at, cx);
                }
            }
            SliceMsg::MemoryDurable(MemoryDurable { token, at }) => self.durable(token, at, cx),
            SliceMsg::Look(look) => self.look(&look, cx),
            SliceMsg::Lines(lines) => self.looked(lines, cx),
            SliceMsg::Peer(PeerMessage { from, message }) => self.host.message(from, message),
        }
        self.serve_input(cx);
        self.send_messages(cx);
    }
}

impl Component<Msg> for L2Slice {
    state_methods!();

    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        deliver(self, message, cx);
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        self.host.outbox.at(cx.now());
        self.note_growth(cx.now());
        self.serve_input(cx);
        self.send_messages(cx);
    }

    fn waits(&self, out: &mut Vec<Wait>) {
        if let Some(head) = self.input.head() {
            out.push(Wait {
                who: format!("input buffer, {} requests", self.input.len()),
                what: format!("an MSHR, a way or memory credit for line {:#x}", head.request.line),
                on: None,
                since: head.ready,
            });
        }
        for (place, queue) in self.mshrs.waiting() {
            out.push(Wait {
                who: format!("{} requests", queue.len()),
                what: format!("the fill of line {:#x}", self.array.address(place)),
                on: None,
                since: 0,
            });
        }
    }

    fn digest(&self) -> u64 {
        let mut digest = StateDigest::default();
        self.array.digest(&mut digest);
        digest.word(self.input.len() as u64);
        digest.word(self.mshrs.in_use() as u64);
        digest.value()
    }
}
