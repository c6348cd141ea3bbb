//! One channel's memory controller: read queue, write-pending queue (WPQ), FR-FCFS scheduling, and the bytes themselves.
//!
//! ```text
//!  slice ──reads──> ingress ──> read queue ──┐
//!        ──writes─> ingress ──> WPQ ─────────┴─> FR-FCFS ──> media (banks, bus) ──> data back to the slice
//!                                └─ accepted ──> acknowledgement to the slice (durable under ADR)
//! ```
//! A write is *accepted* when it has a WPQ entry: that is when it is acknowledged, and all that ADR promises. It reaches
//! the *media* when the queue drains, in bursts between two watermarks. Reads see accepted and waiting writes.
//! FR-FCFS takes the oldest request whose row is open, else opens the row of the oldest; a cap on how many row hits may
//! pass an older request of the same bank bounds its age. When the media alone is persistent, a second message says that
//! a write's cells are written; a journal, when kept, notes both facts.
//!
//! Source: AGPM Table IV (FR-FCFS, 8 channels, ADR at the NVMC's WPQ); watermarks and front/back-end latency as in gem5's
//! memory controller. Invariants: queues never exceed their capacities (slices hold credits for the ingress); bytes
//! accepted = bytes written to media + bytes merged + bytes still queued; reads and writes of one line keep their order.
//! Not modelled: refresh, ECC, wear levelling.

mod gated;
mod look;
mod open_rows;
mod schedule;
mod timeline;
mod undo_log;

use std::collections::VecDeque;

use crate::counters;
use crate::engine::{Clock, Component, Ctx, StateDigest, Time, Wait};
use crate::kernel::memory::Medium;
use crate::machine::persistence::{PastAck, PersistSpec};
use crate::machine::ports::Ports;
use crate::persist::journal::{Author, FactKind, Notebook};
use crate::persist::vocab::Domain;
use crate::spec;

use super::address::Interleave;
use super::image::Image;
use super::media::{Access, Media, Place};
use super::msg::sectors_covered;
use super::msg::{Line, MemoryRead, MemoryWrite, Msg, copy_masked, sector_bytes};
use super::request_queue::RequestQueue;
use crate::spec::Nanos;

use gated::{Gated, NOBODY};
use open_rows::OpenRows;
pub use timeline::{ControllerTimeline, RegionTimeline};

spec! {
    /// Parameters of every memory controller.
    pub struct ControllerSpec {
        /// Memory channels, each with a controller.
        channels: u32 where 1..=256,
        /// Reads that the scheduler chooses from.
        read_queue_entries: u32 where 1..=256,
        /// Write-pending queue: writes accepted and not yet at the media.
        write_queue_entries: u32 where 1..=1024,
        /// Reads of one L2 slice that may be on their way or in the controller.
        ingress_reads: u32 where 1..=1024,
        /// Writes of one L2 slice that may be on their way or waiting for a WPQ entry.
        ingress_writes: u32 where 1..=1024,
        /// WPQ entries at which draining starts.
        drain_high_entries: u32 where 1..=1024,
        /// WPQ entries at which draining stops when reads wait; where it does not get there, as many writes as the WPQ has entries
        /// are drained, and reads have their turn.
        drain_low_entries: u32 where 0..=1024,
        /// WPQ entries that are left waiting while no read waits and no drain is under way: later writes to their lines merge.
        /// Without effect where only the media survive a power failure.
        drain_idle_entries: u32 where 0..=1024,
        /// Writes drained at least before reads are served again.
        drain_min_writes: u32 where 1..=1024,
        /// Row hits that may pass an older request of the same bank.
        row_hit_cap: u32 where 1..=1024,
        /// L2 slice to controller.
        front_ns: Nanos,
        /// Controller to L2 slice.
        back_ns: Nanos,
        /// A read that the WPQ answers whole: from its arrival to its data.
        forward_ns: Nanos,
    }
}

counters! {
    /// What one memory controller counted.
    pub struct ControllerCounters {
        /// Read requests to DRAM (requests)
        dram_reads,
        /// Read requests to NVM (requests)
        nvm_reads,
        /// Bytes read from DRAM devices (bytes)
        dram_read_bytes,
        /// Bytes read from NVM devices (bytes)
        nvm_read_bytes,
        /// Write requests accepted for DRAM (requests)
        dram_writes,
        /// Write requests accepted for NVM (requests)
        nvm_writes,
        /// Bytes accepted for DRAM (bytes)
        dram_accepted_bytes,
        /// Bytes accepted for NVM (bytes)
        nvm_accepted_bytes,
        /// Bytes written to DRAM devices (bytes)
        dram_written_bytes,
        /// Bytes written to NVM devices (bytes)
        nvm_written_bytes,
        /// Bytes of accepted writes that a younger write in the WPQ replaced (bytes)
        merged_bytes,
        /// Writes merged into a waiting WPQ entry (requests)
        merged_writes,
        /// Reads answered by the WPQ alone (requests)
        forwarded_reads,
        /// Column commands, one a request served by the media (commands)
        column_commands,
        /// Column commands to DRAM that t_ccd_ns alone kept from an earlier edge (commands)
        dram_ccd_held,
        /// Column commands to NVM that t_ccd_ns alone kept from an earlier edge (commands)
        nvm_ccd_held,
        /// Column commands to DRAM that t_ccd_l_ns alone kept from an earlier edge (commands)
        dram_ccd_l_held,
        /// Column commands to NVM that t_ccd_l_ns alone kept from an earlier edge (commands)
        nvm_ccd_l_held,
        /// Rows opened (commands)
        activates,
        /// WPQ entries in use, summed over time (entry ticks)
        wpq_entry_ticks,
        /// Writes that found the WPQ full on arrival (requests)
        wpq_full_arrivals,
        /// Changes between serving reads and draining writes (changes)
        turnarounds,
    }
}

/// A write in the WPQ.
#[derive(Debug, Default)]
struct PendingWrite {
    mask: u128,
    /// Writes that are durable only when this entry has reached the media, and are told then.
    told_later: smallvec::SmallVec<[(u8, u16); 2]>,
    /// What was accepted, where reads may already see younger bytes and the journal needs the accepted ones.
    accepted: Option<Box<Line>>,
}

/// The controller of one channel.
#[derive(Debug)]
pub struct MemoryController {
    spec: ControllerSpec,
    clock: Clock,
    map: Interleave,
    ports: Ports,
    media: Media,
    forward: Time,
    reads: RequestQueue<MemoryRead>,
    writes: RequestQueue<PendingWrite>,
    waiting_reads: VecDeque<MemoryRead>,
    waiting_writes: VecDeque<MemoryWrite>,
    /// Writes in rows that are not in cells, where a power failure loses them.
    open_rows: Option<Box<OpenRows>>,
    /// Row hits in a row that passed an older request, one counter a bank.
    passed: Vec<u32>,
    /// Writes are being drained because the WPQ reached its high watermark.
    must_drain: bool,
    /// Writes drained since then.
    drained: u32,
    /// Reads whose turn it is before the next drain.
    turn: u32,
    last_access: Access,
    images: [Image; 2],
    occupancy_since: Time,
    domain: Domain,
    /// Nobody is told late of a write: it may wait for others to merge with it.
    may_idle: bool,
    journal: Option<Box<Notebook>>,
    timeline: Option<Box<ControllerTimeline>>,
    /// A scheme's handler here, where it has one.
    gated: Option<Box<Gated>>,
    counters: ControllerCounters,
}

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
        let banks = media.banks();
        MemoryController {
            clock,
            map: ports.map(),
            ports,
            media,
            forward,
            reads: RequestQueue::new(Access::Read, banks),
            writes: RequestQueue::new(Access::Write, banks),
            waiting_reads: VecDeque::new(),
            waiting_writes: VecDeque::new(),
            open_rows: None,
            passed: vec![0; banks],
            must_drain: false,
            drained: 0,
            turn: 0,
            last_access: Access::Read,
            images,
            occupancy_since: 0,
            domain: Domain::Adr,
            may_idle: true,
            journal: None,
            timeline: None,
            gated: None,
            counters: ControllerCounters::default(),
            spec,
        }
    }

    /// What survives a power failure, and hence when a write is acknowledged as durable; and whether it keeps a journal.
    pub fn set_persistence(&mut self, spec: &PersistSpec, journal: bool) {
        let domain = spec.domain;
        self.domain = domain;
        self.may_idle = domain != Domain::Media && spec.past_ack != PastAck::Media;
        let loses = domain == Domain::Media && self.media.loses_rows();
        self.open_rows = loses.then(|| Box::new(OpenRows::new(self.media.banks())));
        self.journal = journal.then(Box::default);
    }

    /// The journal it kept.
    pub fn journal(&self) -> Option<&Notebook> {
        self.journal.as_deref()
    }

    /// What it counted.
    pub fn counters(&self) -> &ControllerCounters {
        &self.counters
    }

    /// The bytes of a medium as reads would see them, by channel-local address.
    pub fn image(&self, medium: Medium) -> &Image {
        &self.images[medium as usize]
    }

    /// The bytes of both media.
    pub fn into_images(self) -> [Image; 2] {
        self.images
    }

    /// Writes to the media that are under way: in the WPQ, or waiting for an entry.
    pub fn pending_writes(&self) -> u64 {
        (self.writes.len() + self.waiting_writes.len()) as u64
    }

    /// When the WPQ took or gave up an entry last, in ticks.
    pub fn wpq_changed(&self) -> Time {
        self.occupancy_since
    }

    fn image_place(&self, line: u64) -> (usize, usize) {
        (Medium::of(line) as usize, self.map.in_channel(line) as usize)
    }

    fn place(&self, line: u64) -> Place {
        self.media.place(Medium::of(line), self.map.in_channel(line))
    }

    fn read_image(&self, line: u64, sectors: u8, room: &mut Line) {
        let (medium, start) = self.image_place(line);
        for sector in 0..4 {
            if sectors >> sector & 1 == 1 {
                let at = 32 * sector;
                self.images[medium].read(start + at, &mut room.bytes[at..at + 32]);
            }
        }
        room.mask = sector_bytes(sectors);
    }

    fn write_image(&mut self, line: u64, data: &Line) {
        let (medium, start) = self.image_place(line);
        self.images[medium].write_line(start, data);
    }

    fn touch_image(&self, line: u64) {
        let (medium, start) = self.image_place(line);
        self.images[medium].touch(start);
    }

    fn count_occupancy(&mut self, now: Time) {
        self.counters.wpq_entry_ticks += self.writes.len() as u64 * (now - self.occupancy_since);
        self.occupancy_since = now;
    }

    /// A write takes a free entry of the WPQ.
    fn push_write(&mut self, place: Place, line: u64, mask: u128, now: Time) {
        self.count_occupancy(now);
        self.writes.push(place, line, PendingWrite { mask, ..Default::default() });
        self.note_occupancy(now);
    }

    /// The WPQ takes a write, if it can: as a merge, or into a free entry.
    fn accept(&mut self, write: &MemoryWrite, now: Time) -> bool {
        let bytes = u64::from(write.data.mask.count_ones());
        let place = self.place(write.line);
        if let Some(entry) = self.writes.find_mut(place, write.line) {
            self.counters.merged_writes += 1;
            self.counters.merged_bytes += u64::from((entry.mask & write.data.mask).count_ones());
            entry.mask |= write.data.mask;
        } else if self.writes.len() < self.spec.write_queue_entries as usize {
            self.push_write(place, write.line, write.data.mask, now);
        } else {
            return false;
        }
        // What a handler writes is noted by what it says of it.
        if Medium::of(write.line) == Medium::Nvm && write.slice != NOBODY {
            self.accept_persistent(place, write, now);
        }
        match Medium::of(write.line) {
            Medium::Dram => {
                self.counters.dram_writes += 1;
                self.counters.dram_accepted_bytes += bytes;
            }
            Medium::Nvm => {
                self.counters.nvm_writes += 1;
                self.counters.nvm_accepted_bytes += bytes;
            }
        }
        true
    }

    /// What acceptance of a write to persistent memory means beside its place in the WPQ.
    fn accept_persistent(&mut self, place: Place, write: &MemoryWrite, now: Time) {
        let late = self.domain == Domain::Media || write.late;
        if !late && self.journal.is_none() {
            return;
        }
        let Some(entry) = self.writes.find_mut(place, write.line) else { unreachable!("it was accepted") };
        if late {
            entry.told_later.push((write.slice, write.token));
        }
        if let Some(journal) = &mut self.journal {
            let author = Author::default();
            journal.note_data(now, FactKind::Accepted, write.line, write.data.mask, author, &write.data.bytes);
            if self.domain == Domain::Media {
                let accepted = entry.accepted.get_or_insert_with(Box::default);
                copy_masked(&mut accepted.bytes, &write.data.bytes, write.data.mask);
            }
        }
    }

    /// The cells of a WPQ entry to persistent memory are written at `done`.
    fn reach_media(&mut self, line: u64, write: &PendingWrite, now: Time, done: Time, cx: &mut Ctx<'_, Msg>) {
        for &(slice, token) in &write.told_later {
            cx.send(self.ports.to_own_slice(slice), Msg::MemoryDurable { token, at: done }, done - now);
        }
        if let (Some(journal), Some(accepted)) = (&mut self.journal, &write.accepted) {
            let author = Author::default();
            journal.note_data(done, FactKind::AtMedia, line, write.mask, author, &accepted.bytes);
        }
    }

    fn acknowledge(&self, write: MemoryWrite, cx: &mut Ctx<'_, Msg>) {
        let late = self.domain == Domain::Media || write.late;
        let durable = !late || Medium::of(write.line) == Medium::Dram;
        let accepted = Msg::MemoryAccepted { token: write.token, durable, at: cx.now(), room: write.data };
        cx.send(self.ports.to_own_slice(write.slice), accepted, 0);
    }

    fn receive_read(&mut self, read: MemoryRead, cx: &mut Ctx<'_, Msg>) {
        self.touch_image(read.line);
        match Medium::of(read.line) {
            Medium::Dram => self.counters.dram_reads += 1,
            Medium::Nvm => self.counters.nvm_reads += 1,
        }
        self.begin_read(read, cx);
        // A handler has asked for something where the read waits for it.
        self.carry_out(cx);
    }

    /// A read is answered by the WPQ, or waits for the media.
    fn begin_read(&mut self, read: MemoryRead, cx: &mut Ctx<'_, Msg>) {
        if self.forwards(read.line, read.sectors) {
            self.counters.forwarded_reads += 1;
            self.answer(read, self.forward, cx);
        } else {
            self.push_read(read);
        }
    }

    /// The WPQ has all that a read wants.
    fn forwards(&mut self, line: u64, sectors: u8) -> bool {
        let place = self.place(line);
        let pending = self.writes.find_mut(place, line).map_or(0, |write| write.mask);
        sectors_covered(pending) & sectors == sectors
    }

    /// The read queue has room; while any read waits for it, it has none.
    fn takes_read(&self) -> bool {
        self.reads.len() < self.spec.read_queue_entries as usize
    }

    fn push_read(&mut self, read: MemoryRead) {
        if self.takes_read() {
            let place = self.place(read.line);
            self.reads.push(place, read.line, read);
        } else {
            self.waiting_reads.push_back(read);
        }
    }

    /// Sends the data of a read, `delay` from now, unless a handler has it wait.
    fn answer(&mut self, read: MemoryRead, delay: Time, cx: &mut Ctx<'_, Msg>) {
        let mut read = read;
        if read.slice == NOBODY {
            // For a handler's undo log.
            if let Some(gated) = &mut self.gated {
                gated.undo_log.has_read(read.tag);
            }
            return;
        }
        self.read_image(read.line, read.sectors, &mut read.room);
        if let Some(MemoryRead { tag, slice, sectors, room, .. }) = self.overlay(read, cx.now()) {
            cx.send(self.ports.to_own_slice(slice), Msg::MemoryData { tag, sectors, data: room }, delay);
        }
    }

    fn receive_write(&mut self, write: MemoryWrite, cx: &mut Ctx<'_, Msg>) {
        let Some(write) = self.holds_back(write) else { return };
        // Later reads must see it even while it waits for an entry.
        self.write_image(write.line, &write.data);
        if self.waiting_writes.is_empty() && self.accept(&write, cx.now()) {
            self.acknowledge(write, cx);
        } else {
            self.counters.wpq_full_arrivals += 1;
            self.waiting_writes.push_back(write);
        }
    }
}

impl Component<Msg> for MemoryController {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        match message {
            Msg::MemoryRead(read) => self.receive_read(read, cx),
            Msg::MemoryWrite(write) => self.receive_write(write, cx),
            Msg::Lines(lines) => {
                // No access: the controller is not woken for it.
                self.look(lines, cx);
                return;
            }
            Msg::Scheme { from, message } => self.receive_message(from, message, cx),
            other => panic!("a memory controller received {other:?}"),
        }
        if !(self.reads.is_empty() && self.writes.is_empty()) {
            cx.wake_at(self.clock.edge_at_or_after(cx.now()));
        }
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        self.schedule(cx);
    }

    fn waits(&self, out: &mut Vec<Wait>) {
        if let Some(what) = self.gated.as_ref().and_then(|gated| gated.handler.waits()) {
            out.push(Wait { who: "gated WPQ".to_owned(), what, on: None, since: self.occupancy_since });
        }
        if let Some(parked) = self.gated.as_ref().map(|gated| gated.parked()).filter(|&parked| parked > 0) {
            let what = format!("stores in the gated WPQ to be written: {parked} reads want their bytes");
            out.push(Wait { who: "controller".to_owned(), what, on: None, since: self.occupancy_since });
        }
        if !self.waiting_writes.is_empty() || !self.waiting_reads.is_empty() {
            out.push(Wait {
                who: "controller".to_owned(),
                what: format!(
                    "room: {} writes wait for the WPQ, {} reads for the read queue",
                    self.waiting_writes.len(),
                    self.waiting_reads.len()
                ),
                on: None,
                since: self.occupancy_since,
            });
        }
    }

    fn digest(&self) -> u64 {
        let mut digest = StateDigest::default();
        self.images.iter().for_each(|image| image.digest(&mut digest));
        let waiting = [self.waiting_reads.len(), self.waiting_writes.len(), self.reads.len(), self.writes.len()];
        let in_rows = self.open_rows.as_ref().map(|rows| rows.len());
        waiting.into_iter().chain(in_rows).for_each(|count| digest.word(count as u64));
        digest.value()
    }
}
