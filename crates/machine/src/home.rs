//! A slice of the shared cache, the home of its lines: their directory, and the way to memory.
//!
//! ```text
//!  cores, OS ──Get, Put, Clean, ProbeAck──> home: line busy? ──yes──> queue of the line's transaction
//!            <──Data, Probe, PutAck, Cleaned──┤  no
//!                                             ├─> directory: grant, or probe owner and sharers first
//!                                             └─> absent: MSHR, victim (recalled, written) ──> memory_port
//!  Clean: bytes ──> writes_under_way (token) ──> memory_port ──> controller ──durable──> Cleaned
//! ```
//! The cache is inclusive. The directory is a full map and blocks: a line has one transaction at a time,
//! later requests of it wait in their order. The states of a line, with what follows:
//!
//! | at the home | Get shared | Get exclusive | Get once | Put | makes room |
//! |---|---|---|---|---|---|
//! | no copies | Data E | Data M | Data | dropped | freed |
//! | sharers | Data S | others invalidated, Data M | Data | dropped | recalled, freed |
//! | owner asks | Data E | Data M | Data | bytes in | - |
//! | another owns | it shares; Data S | it is invalidated; Data M | it shares; Data | dropped | recalled, freed |
//! | busy | waits | waits | waits | bytes in if of the owner | is no victim |
//!
//! A Write, the NIC's, has every copy invalidated, and then its bytes in.
//!
//! Every Put is acknowledged at once. A line that is freed is written to memory first if that lacks its
//! bytes. Cores drop clean lines silently, so that a holder may have no copy, and its owner may ask again. A
//! Put that crosses a probe of its line comes before the acknowledgement, since links are FIFO: its bytes are
//! in, and the acknowledgement brings nothing new. Bytes that a Clean brings are in at once, too. The rest of
//! it waits its turn; then an owner keeps a copy to read (flush: every copy leaves, the line leaves the
//! slice), the bytes go to memory, and `Cleaned` follows when every write of the line is durable. A flush
//! without bytes has its sender probed, too: a copy may have been on its way there when it was sent.
//!
//! | domain | a clean of persistent memory is acknowledged when |
//! |---|---|
//! | media | the cells are written |
//! | ADR | the controller has accepted the writes |
//! | eADR | the bytes are here: caches survive |
//!
//! A clean of DRAM is acknowledged when its bytes are sent: there is nothing to make durable. Likewise where
//! `persist.clwb` is `l2`, which writes nothing unless the line is flushed. Where controllers have a DRAM
//! cache, a clean of a line whose bytes are not here goes on to there.
//!
//! A `Write` brings a whole line of the NIC's (data direct I/O): one that is absent takes a place as a fetch
//! does, and reads nothing. Under a scheme that writes persistent memory itself the line depends on the NIC's
//! entry from then on, and leaves unwritten when that is durable; the answer says what the entry has to wait
//! for. A line that no entry makes durable (`rdma_write`) is written to memory when it leaves, and what
//! overwrites it is answered when that is durable, as its own way to memory is another.
//!
//! Every message to a core, to the OS or to the NIC leaves `llc.service_cycles` after the message that it
//! follows from, so that these links stay FIFO; messages to memory leave at once. A Get that hits takes
//! request, service and reply; one that misses, without a recall, the ways to memory and back and the read
//! beside these.
//!
//! Source: `hosts` of the design notes, section 2.3; Sorin, Hill, Wood, *A Primer on Memory Consistency and
//! Cache Coherence*, chapter 8. Invariants: one owner or sharers; a line with a step under way is no victim;
//! a fetch takes its turn before requests that queue for a line in its set, so that no line starves. Not
//! modelled: bandwidth of ports and banks, limits on requests that wait, prefetch.

mod directory;
mod handler_host;
mod parameters;
mod request;
mod service;
#[cfg(test)]
mod tests;
mod transactions;
mod waits;

use durawarp_base::timeline::Growth;
use durawarp_checkpoint::{state, state_methods};
use durawarp_engine::{Clock, Component, Ctx, StateDigest, Time, Wait};
use durawarp_kernel::memory::Medium;
use durawarp_persist::handler::{Dependencies, HandlerReport, HomeHandler};
use durawarp_persist::journal::Notebook;
use durawarp_persist::vocab::Domain;

use super::cache::TagArray;
use super::coherence::{CPU_LINE_BYTES, CPU_LINE_MASK, CoreMsg, HomeMsg, Want};
use super::memory_port::MemoryPort;
use super::msg::{Line, MemoryAccepted, MemoryData, MemoryDurable, MemoryWrite, Msg, PeerMessage, Receiver, deliver};
use super::persistence::{Clwb, PersistSpec};
use super::ports::{Ports, Requester};
use super::queue_level::QueueLevel;
use super::slice_timeline::SliceTimeline;
use super::verbs::NicMsg;
use super::writes_under_way::WritesUnderWay;

use directory::Directory;
use handler_host::HomeHost;
pub use parameters::{HomeCounters, LlcSpec};
use request::{Answer, Ask, CoreSet, HomeRequest, PendingAnswer};
use transactions::Transactions;

/// How a home slice is wired and what it may use of its neighbours.
#[derive(Debug, Clone)]
pub struct HomeWiring {
    /// The cores' clock.
    pub clock: Clock,
    /// The slice's ports.
    pub ports: Ports,
    /// Reads and writes that the memory controller has room for.
    pub memory_credits: (u32, u32),
}

/// One slice of the shared cache.
#[derive(Debug)]
pub struct HomeSlice {
    ports: Ports,
    cores: usize,
    /// From a message to one to a core that follows from it, in ticks.
    service: Time,
    mshrs: u32,
    domain: Domain,
    clwb: Clwb,
    /// Memory below may keep dirty bytes of a line that is clean here: a clean asks it, too.
    memory_caches: bool,
    directory: Directory,
    transactions: Transactions,
    memory: MemoryPort,
    writes: WritesUnderWay<PendingAnswer>,
    journal: Option<Box<Notebook>>,
    timeline: Option<Box<SliceTimeline>>,
    counters: HomeCounters,
    host: Option<Box<HomeHost>>,
}

state!(HomeSlice {
    parts: directory, memory, host; saved: transactions, writes, counters;
    kept: ports, cores, service, mshrs, domain, clwb, memory_caches, journal, timeline
});

impl HomeSlice {
    /// An empty slice in domain ADR.
    ///
    /// # Panics
    /// When the ports are those of another component.
    pub fn new(spec: LlcSpec, wiring: HomeWiring) -> HomeSlice {
        let HomeWiring { clock, ports, memory_credits } = wiring;
        let (places, ways) = (spec.slice_kb as usize * 1024 / CPU_LINE_BYTES as usize, spec.ways as usize);
        let tags = TagArray::new(places / ways, ways, spec.replacement, spec.replacement_seed);
        HomeSlice {
            ports,
            cores: ports.roster().cores().count(),
            service: clock.cycles(u64::from(spec.service_cycles)),
            mshrs: spec.mshr_entries,
            domain: Domain::Adr,
            clwb: Clwb::Write,
            memory_caches: false,
            directory: Directory::new(*ports.map(), tags),
            transactions: Transactions::default(),
            memory: MemoryPort::new(ports, memory_credits),
            writes: WritesUnderWay::new(),
            journal: None,
            timeline: None,
            counters: HomeCounters::default(),
            host: None,
        }
    }

    /// What survives a power failure, and hence when a clean is acknowledged; and whether it keeps a journal.
    pub fn set_persistence(&mut self, persist: &PersistSpec, journal: bool) {
        (self.domain, self.clwb) = (persist.domain, persist.clwb);
        self.journal = journal.then(Box::default);
    }

    /// Memory controllers have DRAM caches from now on: a clean goes through these.
    pub fn set_memory_caches(&mut self) {
        self.memory_caches = true;
    }

    /// Keeps a timeline from now on, of at most `spans` spans and values.
    pub fn keep_timeline(&mut self, spans: usize) {
        self.timeline = Some(Box::new(SliceTimeline::new(spans)));
    }

    /// The timeline, where it keeps one.
    pub fn timeline(&self) -> Option<&SliceTimeline> {
        self.timeline.as_deref()
    }

    /// How hits of requests, and fetches, grew until `now`, where it kept a timeline.
    pub fn growth(&self, now: Time) -> Option<Growth> {
        let mut growth = self.timeline()?.growth.clone();
        growth.note(now, &[self.counters.get_hits, self.counters.fetches]);
        Some(growth)
    }

    /// Hosts a scheme's handler from now on. Persistent memory is written by the scheme: lines of it leave
    /// without, or to the DRAM caches.
    pub fn host(&mut self, handler: Option<Box<dyn HomeHandler>>) {
        self.host = handler.map(|handler| Box::new(HomeHost::new(handler, self.ports)));
    }

    /// Before the simulation: a line is here, and this core alone has a copy, `changed` or not. The line
    /// whose place it takes; memory has the bytes of both.
    pub fn warm_line(
        &mut self,
        line: u64,
        bytes: &[u8; CPU_LINE_BYTES as usize],
        core: u16,
        changed: bool,
    ) -> Option<u64> {
        let Some(place) = self.directory.victim(line) else { unreachable!("nothing is locked before the simulation") };
        let left = self.directory.line_at(place);
        self.directory.warm(place, line, bytes);
        self.directory.grant(place, 1 << core, if changed { Want::Exclusive } else { Want::Shared });
        left
    }

    /// Before the simulation: a core has given up a line that it has changed.
    pub fn take_back(&mut self, line: u64) {
        if let Some(place) = self.directory.find(line) {
            self.directory.take_back(place);
        }
    }

    /// What its handler has to tell.
    pub fn report(&self) -> HandlerReport {
        self.host.as_ref().map(|host| host.report()).unwrap_or_default()
    }

    /// How full its queues are.
    pub fn queues(&self) -> [QueueLevel; 1] {
        [QueueLevel::new("home MSHRs", self.transactions.fetching() as usize, self.mshrs as usize)]
    }

    /// What it counted.
    pub fn counters(&self) -> &HomeCounters {
        &self.counters
    }

    /// Every line with bytes that memory does not have yet: address, content, dirty bytes. Owners may have
    /// newer ones.
    pub fn dirty_lines(&self) -> Vec<(u64, &[u8], u128)> {
        self.directory.dirty_lines().map(|(line, bytes)| (line, bytes, CPU_LINE_MASK)).collect()
    }

    /// Writes that wait for credit to their controller, in the order in which they will leave.
    pub fn held_writes(&self) -> impl Iterator<Item = &MemoryWrite> {
        self.memory.held_writes()
    }

    /// The journal, where it keeps one. Controllers note what becomes durable and cores what they store: it
    /// is empty.
    pub fn journal(&self) -> Option<&Notebook> {
        self.journal.as_deref()
    }

    /// The requester's bit: none of the OS, which keeps no copies.
    #[inline]
    fn core(&self, from: Requester) -> CoreSet {
        if from.index() < self.cores { 1 << from.index() } else { 0 }
    }

    /// Sends a message to a core. All messages take the same time, so that none overtakes another.
    #[inline]
    fn send(&self, to: Requester, message: CoreMsg, cx: &mut Ctx<'_, Msg>) {
        self.ports.to_core(to.number()).send(message, self.service, cx);
    }

    /// Sends an answer that nothing holds any more.
    fn send_answer(&self, PendingAnswer { to, answer, .. }: PendingAnswer, cx: &mut Ctx<'_, Msg>) {
        match answer {
            Answer::Cleaned { tag, room } => self.send(to, CoreMsg::Cleaned { tag, room }, cx),
            Answer::Written { tag, room, dependencies } => {
                self.ports.to_nic().send(NicMsg::Written { tag, room, dependencies }, self.service, cx);
            }
        }
    }

    /// A changed line leaves its core.
    fn put(&mut self, line: u64, from: Requester, data: Box<Line>, cx: &mut Ctx<'_, Msg>) {
        self.counters.puts += 1;
        self.take_bytes(line, from, &data, true);
        self.send(from, CoreMsg::PutAck { line, room: data }, cx);
    }

    /// Bytes that a core has changed come, also while the line is busy; the core may keep its copy. They are
    /// dropped unless the core owns the line.
    fn take_bytes(&mut self, line: u64, from: Requester, data: &Line, leaves: bool) {
        let core = self.core(from);
        let Some(place) = self.directory.find(line).filter(|&place| self.directory.owner(place) == core && core != 0)
        else {
            self.counters.stale_bytes += 1;
            return;
        };
        self.directory.touch(place);
        self.directory.store(place, data);
        if leaves {
            self.directory.release(place, core);
        }
    }

    /// A write is durable: answers that waited for it last are sent.
    fn durable(&mut self, token: u16, at: Time, cx: &mut Ctx<'_, Msg>) {
        let (_, due) = self.writes.durable(token, at);
        if let Some(timeline) = &mut self.timeline {
            timeline.durable(token, at, cx.now(), self.writes.len());
        }
        due.into_iter().for_each(|(answer, _)| self.send_answer(answer, cx));
    }

    /// A write of the line is durable when its bytes are here, or needs not be.
    fn is_durable_here(&self, line: u64) -> bool {
        self.domain == Domain::Eadr || Medium::of(line) == Medium::Dram
    }

    /// A core brings a line, or its bytes, which depend on something.
    fn note_dependencies(&mut self, line: u64, dependencies: Option<Box<Dependencies>>, cx: &mut Ctx<'_, Msg>) {
        if let (Some(host), Some(dependencies)) = (&mut self.host, dependencies) {
            host.taken(line, &dependencies, cx);
        }
    }
}

impl Receiver for HomeSlice {
    type Inbox = HomeMsg;

    fn receive(&mut self, message: HomeMsg, cx: &mut Ctx<'_, Msg>) {
        // First: what was counted before this event grew before it.
        if let Some(timeline) = &mut self.timeline {
            timeline.growth.note(cx.now(), &[self.counters.get_hits, self.counters.fetches]);
        }
        let arrived = cx.now();
        match message {
            HomeMsg::Get { line, from, tag, want, room } => {
                self.counters.gets += 1;
                let request = HomeRequest { from, tag, ask: Ask::Get(want), room, dependencies: None, arrived };
                self.request(line, request, cx);
            }
            HomeMsg::ProbeAck { line, from, dirty, room, dependencies } => {
                self.note_dependencies(line, dependencies, cx);
                self.probe_ack(line, from, dirty, room, cx);
            }
            HomeMsg::Put { line, from, data, dependencies } => {
                self.note_dependencies(line, dependencies, cx);
                self.put(line, from, data, cx);
            }
            HomeMsg::Clean { line, from, tag, flush, at_once, dirty, room, dependencies } => {
                self.note_dependencies(line, dependencies, cx);
                self.counters.cleans += 1;
                if dirty {
                    // A flush that brings bytes gives up the copy that has them. One without may have been
                    // sent while a copy was on its way to the core, which is probed then.
                    self.take_bytes(line, from, &room, flush);
                }
                let ask = Ask::Clean { flush };
                let request = HomeRequest { from, tag, ask, room, dependencies: None, arrived };
                if at_once {
                    self.clean_at_once(line, request, cx);
                } else {
                    self.request(line, request, cx);
                }
            }
            HomeMsg::Write { line, from, tag, data, dependencies } => {
                self.counters.nic_writes += 1;
                self.request(line, HomeRequest { from, tag, ask: Ask::Write, room: data, dependencies, arrived }, cx);
            }
            HomeMsg::MemoryData(MemoryData { tag, data, .. }) => self.memory_data(tag, data, cx),
            HomeMsg::MemoryAccepted(MemoryAccepted { token, durable, at, room }) => {
                self.memory.write_accepted(room, cx);
                self.writes.accepted(token, at);
                if durable {
                    self.durable(token, at, cx);
                }
            }
            HomeMsg::MemoryDurable(MemoryDurable { token, at }) => self.durable(token, at, cx),
            HomeMsg::Peer(PeerMessage { from, message }) => {
                let Some(host) = &mut self.host else { panic!("a slice without a handler received a message") };
                host.receive(from, message, cx);
                self.release_kept(cx);
            }
        }
        if !self.transactions.is_settled() {
            self.settle(cx);
        }
    }
}

impl Component<Msg> for HomeSlice {
    state_methods!();

    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        deliver(self, message, cx);
    }

    fn wake(&mut self, _: &mut Ctx<'_, Msg>) {
        unreachable!("a home slice asks for no wake-up")
    }

    fn waits(&self, out: &mut Vec<Wait>) {
        out.extend(waits::waits(self.ports.roster(), &self.transactions, &self.writes));
    }

    fn digest(&self) -> u64 {
        let mut digest = StateDigest::default();
        self.directory.digest(&mut digest);
        digest.word(self.transactions.open().count() as u64);
        digest.word(self.writes.len() as u64);
        digest.value()
    }
}
