//! One channel's memory controller: read queue, write-pending queue (WPQ), scheduling, and the bytes
//! themselves.
//!
//! ```text
//!  slice ──reads──> ingress ──> read queue ──┐
//!        ──writes─> ingress ──> WPQ ─────────┴─> FR-FCFS ──> media (banks, bus) ──> data back to the slice
//!                                └─ accepted ──> acknowledgement to the slice (durable under ADR)
//! ```
//! A write is *accepted* when it has a WPQ entry: that is when it is acknowledged, and all that ADR promises.
//! It reaches the *media* when the queue drains, in bursts between two watermarks. Reads see accepted and
//! waiting writes. FR-FCFS takes the oldest request whose row is open, else opens the row of the oldest; a
//! cap on how many row hits may pass an older request of the same bank bounds its age. Other schedulers are
//! in `scheduler`, what closes rows in `pages`. When the media alone
//! is persistent, a second message says that a write's cells are written; a journal, when kept, notes both
//! facts.
//!
//! Source: AGPM Table IV (FR-FCFS, 8 channels, ADR at the NVMC's WPQ); watermarks and front/back-end latency
//! as in gem5's memory controller. Invariants: queues never exceed their capacities (slices hold credits for
//! the ingress); bytes accepted = bytes written to media + bytes merged + bytes still queued; reads and
//! writes of one line keep their order. Not modelled: refresh, ECC, wear levelling.

mod arbiter;
mod channel;
mod dram_cache;
mod handler_host;
mod held_writes;
mod images;
mod notes;
mod pages;
mod parameters;
mod pending_write;
mod schedule;
mod scheduler;
mod timeline;
mod undo_log;
mod wear;
mod write_queue;

use durawarp_base::timeline::Growth;
use durawarp_checkpoint::{state, state_methods};
use durawarp_engine::{Clock, Component, Ctx, StateDigest, Time, Wait};
use durawarp_kernel::memory::Medium;
use durawarp_persist::handler::{Banks, ControllerHandler, Held};
use durawarp_persist::journal::Notebook;
use durawarp_persist::regions::RegionReport;
use durawarp_persist::vocab::Domain;

use super::image::Image;
use super::look::{Lines, LookKind};
use super::media::{CommandRecord, Direction, Media};
use super::msg::{
    ControllerMsg, Line, MAX_LINE_BYTES, MemoryRead, MemoryWrite, Msg, PeerMessage, Receiver, SliceMsg, deliver,
};
use super::persistence::{PastAck, PersistSpec};
use super::ports::Ports;
use super::queue_level::QueueLevel;

pub use parameters::{
    ControllerCounters, ControllerSpec, DramCacheCounters, DramCacheSpec, LINK_WITHOUT_LATENCY, MemoryScheduler,
    PagePolicy,
};
pub use timeline::{ControllerTimeline, RegionTimeline};
pub use wear::CellWear;

use channel::Channel;
use dram_cache::{DirtyVictims, DramCache};
use handler_host::ControllerHost;
use held_writes::HeldWrites;
use images::is_cached;
use pending_write::{DRAM_CACHE, NOBODY};

/// The controller of one channel.
#[derive(Debug)]
pub struct MemoryController {
    channel: Channel,
    /// From the arrival of a read that the WPQ answers to its data.
    forward: Time,
    /// A scheme's handler here, where it has one.
    handler_host: Option<Box<ControllerHost>>,
    /// In front of persistent memory, where that is used as volatile memory.
    dram_cache: Option<Box<DramCache>>,
}

state!(MemoryController { parts: channel, handler_host, dram_cache; kept: forward });

impl MemoryController {
    /// An idle controller over the given bytes: its share of DRAM and of NVM, by channel-local address.
    pub fn new(
        spec: ControllerSpec,
        clock: Clock,
        forward: Time,
        ports: Ports,
        media: Media,
        images: [Image; 2],
    ) -> Self {
        let channel = Channel::new(spec, clock, ports, media, images);
        MemoryController { channel, forward, handler_host: None, dram_cache: None }
    }

    /// What survives a power failure, and hence when a write is acknowledged as durable; and whether it keeps
    /// a journal.
    pub fn set_persistence(&mut self, spec: &PersistSpec, journal: bool) {
        let Channel { media, writes, arbiter, notes, .. } = &mut self.channel;
        let loses = spec.domain == Domain::Media && media.loses_held();
        writes.set_domain(spec.domain, loses.then(|| Box::new(HeldWrites::new(media.slots()))));
        arbiter.set_may_idle(spec.domain != Domain::Media && spec.past_ack != PastAck::Media);
        notes.journal = journal.then(Box::default);
    }

    /// Keeps a timeline from now on, of at most `spans` spans and values.
    pub fn keep_timeline(&mut self, spans: usize) {
        self.channel.notes.timeline = Some(Box::new(ControllerTimeline::new(spans)));
    }

    /// Hosts a scheme's handler from now on.
    pub fn host(&mut self, handler: Option<Box<dyn ControllerHandler>>) {
        let notes = &self.channel.notes;
        let noting = notes.journal.is_some() || notes.timeline.is_some();
        let (media, map) = (self.channel.media.clone(), *self.channel.ports.map());
        self.handler_host = handler.map(|mut handler| {
            let (first, count) = media.nvm_banks();
            let of = Box::new(move |line| media.place(Medium::Nvm, images::in_channel(&map, line)).bank - first);
            handler.banks(Banks { count, of });
            Box::new(ControllerHost::new(handler, noting))
        });
    }

    /// Puts a DRAM cache of `bytes` bytes in front of persistent memory, whose bytes may then be lost with
    /// it. Beside a scheme's handler, hosted before, it drops what it has to make room for: persistent memory
    /// has its bytes from the handler.
    ///
    /// # Panics
    /// When it has no line.
    pub fn cache_in_dram(&mut self, bytes: u64) {
        let victims = if self.handler_host.is_some() { DirtyVictims::Dropped } else { DirtyVictims::Written };
        self.dram_cache = Some(Box::new(DramCache::new(bytes, victims, &mut self.channel.images)));
    }

    /// What its DRAM cache counted.
    pub fn dram_cache_counters(&self) -> Option<&DramCacheCounters> {
        self.dram_cache.as_ref().map(|cache| &cache.counters)
    }

    /// Lines of persistent memory of which its DRAM cache has newer bytes.
    pub fn dirty_lines(&self) -> Vec<(u64, Box<Line>)> {
        self.dram_cache.iter().flat_map(|cache| cache.dirty_lines(&self.channel.images)).collect()
    }

    /// The journal it kept.
    pub fn journal(&self) -> Option<&Notebook> {
        self.channel.notes.journal.as_deref()
    }

    /// The timeline it kept.
    pub fn timeline(&self) -> Option<&ControllerTimeline> {
        self.channel.notes.timeline.as_deref()
    }

    /// Notes what was counted before the event at `now`, where a timeline is kept.
    fn note_growth(&mut self, now: Time) {
        let moved = self.bytes_moved();
        if let Some(timeline) = self.channel.notes.timeline.as_deref_mut() {
            timeline.growth.note(now, &moved);
        }
    }

    /// How its counters grew until `now`, where it kept a timeline.
    pub fn growth(&self, now: Time) -> Option<Growth> {
        let mut growth = self.timeline()?.growth.clone();
        growth.note(now, &self.bytes_moved());
        Some(growth)
    }

    /// Bytes of DRAM, and of NVM.
    fn bytes_moved(&self) -> [u64; 2] {
        let counted = &self.channel.counters;
        [counted.dram_read_bytes + counted.dram_written_bytes, counted.nvm_read_bytes + counted.nvm_written_bytes]
    }

    /// Counts writes to cells line by line, too, from now on.
    pub fn count_lines(&mut self) {
        self.channel.wear.count_lines();
    }

    /// Writes to the cells of its NVM, and rows opened.
    pub fn wear(&self) -> &CellWear {
        &self.channel.wear
    }

    /// How full its queues are.
    pub fn queues(&self) -> [QueueLevel; 2] {
        let Channel { reads, writes, spec, .. } = &self.channel;
        [
            QueueLevel::new("read queue", reads.queue.len() + reads.waiting(), spec.read_queue_entries as usize),
            QueueLevel::new("WPQ", writes.len() + writes.waiting(), writes.len() + writes.free()),
        ]
    }

    /// The commands that its devices were given, where the media keep them.
    pub fn commands(&self) -> &[CommandRecord] {
        self.channel.media.commands()
    }

    /// What it counted.
    pub fn counters(&self) -> &ControllerCounters {
        &self.channel.counters
    }

    /// What its handler counted.
    pub fn tally(&self, add: &mut dyn FnMut(&'static str, u64)) {
        if let Some(host) = &self.handler_host {
            host.report().counters.into_iter().for_each(|(name, value)| add(name, value));
        }
    }

    /// What its handler saw of recoverable regions.
    pub fn region_report(&self) -> Option<RegionReport> {
        self.handler_host.as_ref()?.report().regions
    }

    /// How much its handler holds.
    pub fn held(&self) -> Held {
        self.handler_host.as_ref().map_or_else(Held::default, |host| host.held())
    }

    /// What its handler holds of lines: address, content, bytes held.
    pub fn held_lines(&self) -> impl Iterator<Item = (u64, Box<[u8; MAX_LINE_BYTES]>, u128)> {
        self.handler_host.iter().flat_map(|host| host.held_lines())
    }

    /// The bytes of a medium as reads would see them, by channel-local address.
    pub fn image(&self, medium: Medium) -> &Image {
        self.channel.images.of(medium)
    }

    /// The bytes of both media.
    pub fn into_images(self) -> [Image; 2] {
        self.channel.images.into_inner()
    }

    /// Writes to the media that are under way: in the WPQ, or waiting for an entry.
    pub fn pending_writes(&self) -> u64 {
        (self.channel.writes.len() + self.channel.writes.waiting()) as u64
    }

    /// When the WPQ took or gave up an entry last, in ticks.
    pub fn wpq_changed(&self) -> Time {
        self.channel.writes.changed_at()
    }

    fn receive_read(&mut self, read: MemoryRead, cx: &mut Ctx<'_, Msg>) {
        let read = match &mut self.dram_cache {
            Some(cache) => cache.receive_read(read, &self.channel),
            None => Some(read),
        };
        if let Some(read) = read {
            self.count_read(read, cx);
        }
    }

    /// A read of one of the media begins.
    fn count_read(&mut self, read: MemoryRead, cx: &mut Ctx<'_, Msg>) {
        self.channel.images.touch(read.line);
        match Medium::of(read.line) {
            Medium::Dram => self.channel.counters.dram_reads += 1,
            Medium::Nvm => self.channel.counters.nvm_reads += 1,
        }
        self.begin_read(read, cx);
        // A handler has asked for something where it has the read wait.
        self.carry_out(cx);
    }

    /// A read is answered by the WPQ, or waits for the media.
    fn begin_read(&mut self, read: MemoryRead, cx: &mut Ctx<'_, Msg>) {
        if self.channel.forwards(read.line, read.sectors) {
            self.channel.counters.forwarded_reads += 1;
            self.answer(read, self.forward, cx);
        } else {
            self.channel.push_read(read);
        }
    }

    /// Sends the data of a read, `delay` from now, unless a handler has it wait.
    fn answer(&mut self, mut read: MemoryRead, delay: Time, cx: &mut Ctx<'_, Msg>) {
        if read.slice == NOBODY {
            // For a handler's undo log.
            if let Some(host) = &mut self.handler_host {
                host.has_read(read.tag);
            }
            return;
        }
        if is_cached(read.line) {
            // It has had its bytes since it came.
            match &mut self.dram_cache {
                Some(cache) if read.slice == DRAM_CACHE => cache.written_back(read.tag, &mut self.channel, cx),
                _ => self.channel.send_data(read, delay, cx),
            }
            return;
        }
        self.channel.images.read(read.line, read.sectors, &mut read.room);
        let answered = match &mut self.handler_host {
            Some(host) => host.overlay(read, cx.now()),
            None => Some(read),
        };
        if let Some(read) = answered {
            if let Some(cache) = &mut self.dram_cache {
                cache.keep(&read, &mut self.channel, cx);
            }
            self.channel.send_data(read, delay, cx);
        }
    }

    fn receive_write(&mut self, write: MemoryWrite, cx: &mut Ctx<'_, Msg>) {
        if let Some(cache) = &mut self.dram_cache {
            return cache.receive_write(write, &mut self.channel, cx);
        }
        let admitted = match &mut self.handler_host {
            Some(host) => host.admit(write),
            None => Some(write),
        };
        if let Some(write) = admitted {
            self.channel.receive_write(write, cx);
        }
    }

    /// Misses of the DRAM cache that waited for the WPQ begin.
    fn begin_held(&mut self, cx: &mut Ctx<'_, Msg>) {
        while let Some(read) = self.dram_cache.as_mut().and_then(|cache| cache.pop_held(&self.channel)) {
            self.count_read(read, cx);
        }
    }

    /// Does what the handler has asked for, as far as the write queue has room.
    fn carry_out(&mut self, cx: &mut Ctx<'_, Msg>) {
        let Some(host) = &mut self.handler_host else { return };
        let next = host.hear_of_media(&mut self.channel, cx.now());
        if let Some(next) = next {
            cx.wake_at(self.channel.clock.edge_at_or_after(next));
        }
        let ready = host.write_flushes(&mut self.channel, cx.now());
        host.send_messages(&self.channel.ports, cx);
        for write in host.admitted() {
            self.channel.receive_write(write, cx);
        }
        for read in ready {
            self.begin_read(read, cx);
        }
    }

    /// One edge of the memory's clock: a row is opened, a request transfers.
    fn edge(&mut self, cx: &mut Ctx<'_, Msg>) {
        if self.handler_host.as_ref().is_some_and(|host| host.has_under_way()) {
            self.carry_out(cx);
        }
        let flushes_wait = self.handler_host.as_ref().is_some_and(|host| host.has_flushes());
        let Some(edge) = self.channel.begin_edge(flushes_wait, cx) else { return };
        match edge.column {
            Some((Direction::Read, at)) => {
                let (read, delay) = self.channel.transfer_read(at, cx);
                self.answer(read, delay, cx);
                self.channel.refill_reads();
                self.carry_out(cx);
            }
            Some((Direction::Write, at)) => {
                self.channel.transfer_write(at, cx);
                self.begin_held(cx);
                self.carry_out(cx);
            }
            None => {}
        }
        self.channel.end_edge(&edge, cx);
    }

    /// Answers a look of the host's outside simulated time: the bytes that reads would return, with no read.
    fn look(&mut self, mut lines: Box<Lines>, cx: &mut Ctx<'_, Msg>) {
        if let LookKind::Replace(contents) = &lines.kind {
            self.channel.images.take_over(contents);
        }
        let length = lines.line_bytes as usize;
        let mask = u128::MAX >> (MAX_LINE_BYTES - length);
        for (line, bytes) in &mut lines.lines {
            self.channel.images.look(*line, &mut bytes[..length]);
            if let Some(host) = &self.handler_host {
                host.look(*line, mask, bytes);
            }
        }
        self.channel.ports.to_own_slice(lines.slice).send(SliceMsg::Lines(lines), 0, cx);
    }
}

impl Receiver for MemoryController {
    type Inbox = ControllerMsg;

    fn receive(&mut self, message: ControllerMsg, cx: &mut Ctx<'_, Msg>) {
        self.note_growth(cx.now());
        self.channel.look_after_pages(cx);
        match message {
            ControllerMsg::MemoryRead(read) => self.receive_read(read, cx),
            ControllerMsg::MemoryWrite(write) => self.receive_write(write, cx),
            ControllerMsg::Lines(lines) => {
                // No access: the controller is not woken for it.
                self.look(lines, cx);
                return;
            }
            ControllerMsg::Peer(PeerMessage { from, message }) => {
                let Some(host) = &mut self.handler_host else {
                    panic!("a controller without a handler received a message");
                };
                host.receive(from, message, cx.now());
                self.carry_out(cx);
            }
        }
        if !self.channel.is_empty() {
            cx.wake_at(self.channel.clock.edge_at_or_after(cx.now()));
        }
    }
}

impl Component<Msg> for MemoryController {
    state_methods!();

    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        deliver(self, message, cx);
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        self.note_growth(cx.now());
        self.edge(cx);
    }

    fn waits(&self, out: &mut Vec<Wait>) {
        let since = self.wpq_changed();
        let of_handler = self.handler_host.as_ref().map(|host| host.report().waits).unwrap_or_default();
        out.extend(of_handler.into_iter().map(|(who, what)| Wait { who, what, on: None, since }));
        if let Some(parked) = self.handler_host.as_ref().map(|host| host.parked()).filter(|&parked| parked > 0) {
            let what = format!("stores in the gated WPQ to be written: {parked} reads want their bytes");
            out.push(Wait { who: "controller".to_owned(), what, on: None, since });
        }
        let held = self.dram_cache.as_ref().map_or(0, |cache| cache.under_way()[0]);
        let (writes, reads) = (self.channel.writes.waiting(), self.channel.reads.waiting() + held);
        if writes + reads > 0 {
            let what = format!("room: {writes} writes wait for the WPQ, {reads} reads for the read queue");
            out.push(Wait { who: "controller".to_owned(), what, on: None, since });
        }
    }

    fn digest(&self) -> u64 {
        let mut digest = StateDigest::default();
        let Channel { images, reads, writes, .. } = &self.channel;
        images.digest(&mut digest);
        let waiting = [reads.waiting(), writes.waiting(), reads.queue.len(), writes.len()];
        let in_devices = writes.held.as_ref().map(|held| held.len());
        let cached = self.dram_cache.iter().flat_map(|cache| cache.under_way());
        waiting.into_iter().chain(in_devices).chain(cached).for_each(|count| digest.word(count as u64));
        digest.value()
    }
}
