//! A scheme's handler in a controller: stores that bypass the caches, which the handler holds and has written
//! in its order.
//!
//! ```text
//!  SMs ──messages──> handler (holds) ──flushes, in order──> write queue ──> media
//!  other controllers <──messages──>  └── over what reads return
//! ```
//! | what comes | the handler holds none of its line | the handler holds bytes of its line |
//! |---|---|---|
//! | read | memory's bytes | these over memory's; or *parked* until the flushes it awaits are written |
//! | write of a slice | goes to the write queue | waits until the handler holds none |
//!
//! Source: LightWSP section IV (the WPQ gated by region); what is gated, and until when, is the handler's.
//! Invariants: flushes enter the write queue in the order of asking, each when the queue has room, and count
//! as durable from then on (the queue is of the domain ADR). A parked read is repeated once, when its flushes
//! are in the write queue: stores cannot overtake it for ever. A slice has one read of a line under way, so
//! that none is answered with older bytes after one with newer. A flush with an undo log waits for the read
//! of the old bytes (`undo_log`).

use smallvec::SmallVec;

use crate::msg::{Line, MAX_LINE_BYTES, MemoryRead, MemoryWrite, Msg};
use crate::ports::Ports;
use durawarp_checkpoint::{state, value};
use durawarp_engine::{Ctx, Time};
use durawarp_kernel::memory::Medium;
use durawarp_persist::handler::{
    ControllerEvent, ControllerHandler, Flush, HandlerReport, Held, Outbox, Peer, SchemeMessage, report_of,
};
use durawarp_persist::journal::FactKind;
use durawarp_persist::vocab::RegionStep;

use super::channel::Channel;
use super::pending_write::NOBODY;
use super::undo_log::UndoLog;

/// A read that waits for stores which the handler holds.
#[derive(Debug)]
struct ParkedRead {
    read: MemoryRead,
    /// Their flushes.
    tokens: SmallVec<[u64; 2]>,
}

value!(record ParkedRead { read, tokens });

/// A handler and what its host does for it.
#[derive(Debug)]
pub(super) struct ControllerHost {
    handler: Box<dyn ControllerHandler>,
    outbox: Outbox,
    undo_log: UndoLog,
    /// Writes of slices to lines that the handler holds something of.
    slice_writes: Vec<MemoryWrite>,
    parked: Vec<ParkedRead>,
    /// Reads that have waited, by slice and MSHR: they wait no more.
    repeated: Vec<(u8, u16)>,
    /// Plain writes on their way to the cells: when they are there, and their tokens.
    under_way: Vec<(Time, u64)>,
}

state!(ControllerHost { parts: handler, outbox; saved: undo_log, slice_writes, parked, repeated, under_way });

impl ControllerHost {
    /// Hosts a handler; `noting` where what it says of regions is written down.
    pub(super) fn new(handler: Box<dyn ControllerHandler>, noting: bool) -> Self {
        ControllerHost {
            handler,
            outbox: Outbox::of_host(noting),
            undo_log: UndoLog::default(),
            slice_writes: Vec::new(),
            parked: Vec::new(),
            repeated: Vec::new(),
            under_way: Vec::new(),
        }
    }

    /// What the handler reports.
    pub(super) fn report(&self) -> HandlerReport {
        report_of(&*self.handler)
    }

    /// How much the handler holds.
    pub(super) fn held(&self) -> Held {
        self.handler.held()
    }

    /// What the handler holds of lines: address, content, bytes held.
    pub(super) fn held_lines(&self) -> impl Iterator<Item = (u64, Box<[u8; MAX_LINE_BYTES]>, u128)> {
        self.handler.lines().into_iter().map(|(line, held)| {
            let mut bytes = Box::new([0; MAX_LINE_BYTES]);
            self.handler.overlay(line, held, &mut bytes);
            (line, bytes, held)
        })
    }

    /// Reads that are parked.
    pub(super) fn parked(&self) -> usize {
        self.parked.len()
    }

    /// Plain writes are on their way to the cells.
    pub(super) fn has_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Flushes wait for room.
    pub(super) fn has_flushes(&self) -> bool {
        self.outbox.has_flushes()
    }

    /// The old bytes of a flush have been read.
    pub(super) fn has_read(&mut self, tag: u16) {
        self.undo_log.has_read(tag);
    }

    /// A message for the handler.
    pub(super) fn receive(&mut self, from: Peer, message: Box<dyn SchemeMessage>, now: Time) {
        self.outbox.at(now);
        self.handler.message(from, message, &mut self.outbox);
    }

    /// Writes flushes as far as the write queue has room. Returns the reads that are to be repeated.
    pub(super) fn write_flushes(&mut self, channel: &mut Channel, now: Time) -> Vec<MemoryRead> {
        self.outbox.at(now);
        let mut ready = Vec::new();
        while let Some(flush) = self.next_flush(channel, now) {
            let token = flush.token;
            self.note_regions(channel, now);
            if flush.plain {
                if write_plain(flush, channel, now) {
                    self.handler.event(&ControllerEvent::Persisted(token), &mut self.outbox);
                }
            } else {
                write_flush(flush, channel, now);
                self.handler.event(&ControllerEvent::Flushed(token), &mut self.outbox);
                self.unpark(token, &mut ready);
            }
        }
        self.note_regions(channel, now);
        ready
    }

    /// Tells the handler of plain writes that are durable by now. When the next one will be.
    pub(super) fn hear_of_media(&mut self, channel: &mut Channel, now: Time) -> Option<Time> {
        self.under_way.append(&mut channel.finished);
        if self.under_way.iter().any(|&(at, _)| at <= now) {
            self.outbox.at(now);
            // In the order of time, then of the media's own.
            let mut due: Vec<(Time, u64)> = self.under_way.extract_if(.., |&mut (at, _)| at <= now).collect();
            due.sort_by_key(|&(at, _)| at);
            for (_, token) in due {
                self.handler.event(&ControllerEvent::Persisted(token), &mut self.outbox);
            }
        }
        self.under_way.iter().map(|&(at, _)| at).min()
    }

    /// The next flush, where the write queue has room for it and its undo log is there.
    fn next_flush(&mut self, channel: &mut Channel, now: Time) -> Option<Flush> {
        let logged = self.outbox.flushes().front()?.logged;
        if logged && !self.is_logged(channel, now) || !channel.writes.has_room() {
            return None;
        }
        self.undo_log.begin_next();
        self.outbox.flushes().pop_front()
    }

    /// The first flush, which is logged, may be written: its log is in the write queue.
    fn is_logged(&mut self, channel: &mut Channel, now: Time) -> bool {
        self.undo_log.read_old_bytes(self.outbox.flushes(), channel);
        if self.undo_log.may_write(channel) {
            // What the handler has said so far comes before the log's line in the journal.
            self.note_regions(channel, now);
            let Some(first) = self.outbox.flushes().front() else { unreachable!("it has been read for") };
            self.undo_log.write_line(first, channel, now);
        }
        self.undo_log.is_written()
    }

    /// Writes down what the handler says of regions.
    fn note_regions(&mut self, channel: &mut Channel, now: Time) {
        if let Some(timeline) = &mut channel.notes.timeline {
            timeline.queues.note(&*self.handler, now);
        }
        channel.notes.regions(&mut self.outbox, || self.handler.held().entries, now);
    }

    /// A flush is in the write queue: parked reads that waited for nothing else are ready.
    fn unpark(&mut self, token: u64, ready: &mut Vec<MemoryRead>) {
        self.parked.iter_mut().for_each(|parked| parked.tokens.retain(|awaited| *awaited != token));
        for parked in self.parked.extract_if(.., |parked| parked.tokens.is_empty()) {
            self.repeated.push((parked.read.slice, parked.read.tag));
            ready.push(parked.read);
        }
    }

    /// Sends what the handler has written.
    pub(super) fn send_messages(&mut self, ports: &Ports, cx: &mut Ctx<'_, Msg>) {
        for (to, message, delay) in self.outbox.take_timed() {
            ports.tell(to, message, delay, cx);
        }
    }

    /// A write of a slice, unless the handler holds something of its line: then the write has to come after
    /// that.
    pub(super) fn admit(&mut self, write: MemoryWrite) -> Option<MemoryWrite> {
        if Medium::of(write.line) == Medium::Nvm && self.handler.holds(write.line) {
            self.slice_writes.push(write);
            return None;
        }
        Some(write)
    }

    /// Writes of slices that wait no more, in order.
    pub(super) fn admitted(&mut self) -> Vec<MemoryWrite> {
        let handler = &self.handler;
        self.slice_writes.extract_if(.., |write| !handler.holds(write.line)).collect()
    }

    /// What a look sees of a line, without the handler's hearing of it.
    pub(super) fn look(&self, line: u64, mask: u128, bytes: &mut [u8; MAX_LINE_BYTES]) {
        if Medium::of(line) == Medium::Nvm {
            self.handler.overlay(line, mask, bytes);
        }
    }

    /// Puts what the handler holds over what a read got from memory; none where the read is parked.
    pub(super) fn overlay(&mut self, read: MemoryRead, now: Time) -> Option<MemoryRead> {
        let mut read = read;
        if Medium::of(read.line) != Medium::Nvm {
            return Some(read);
        }
        let repeated = self.repeated.iter().position(|&who| who == (read.slice, read.tag));
        let finds = self.handler.overlay(read.line, read.room.mask, &mut read.room.bytes);
        if let Some(place) = repeated {
            self.repeated.swap_remove(place);
        } else if finds {
            self.outbox.at(now);
            self.handler.event(&ControllerEvent::ReadHit, &mut self.outbox);
            let tokens = self.handler.awaited(read.line, read.room.mask, &mut self.outbox);
            if !tokens.is_empty() {
                self.parked.push(ParkedRead { read, tokens });
                return None;
            }
        }
        Some(read)
    }
}

/// Puts a plain flush into the write queue; true when it is durable with that.
fn write_plain(flush: Flush, channel: &mut Channel, now: Time) -> bool {
    let (line, row) = (flush.line, channel.row_of(flush.line));
    let data = Box::new(Line { bytes: *flush.bytes, mask: flush.mask, log: false, launch: 0 });
    channel.images.write(line, &data);
    let write = MemoryWrite { line, slice: NOBODY, token: 0, late: false, through: false, data };
    let accepted = channel.accept(&write, now);
    assert!(accepted, "there was room");
    channel.writes.accept_plain(row, &flush, now, &mut channel.notes)
}

/// Puts a flush into the write queue.
fn write_flush(flush: Flush, channel: &mut Channel, now: Time) {
    let Flush { author, line, mask, bytes, logged, .. } = flush;
    let data = Box::new(Line { bytes: *bytes, mask, log: false, launch: 0 });
    channel.images.write(line, &data);
    let step = if logged { RegionStep::Spilled } else { RegionStep::Flushed };
    channel.notes.region_step(step, author, now);
    channel.notes.data_of(author, now, FactKind::Region(step), line, mask, &data.bytes);
    let accepted =
        channel.accept(&MemoryWrite { line, slice: NOBODY, token: 0, late: false, through: false, data }, now);
    assert!(accepted, "there was room");
}
