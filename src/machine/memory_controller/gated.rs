//! A scheme's handler in a controller: stores that bypass the caches, which the handler holds back and has written in its order.
//!
//! ```text
//!  SMs ──messages──> handler (holds) ──flushes, in order──> write queue ──> media
//!  other controllers <──messages──>  └── over what reads return
//! ```
//! Source: LightWSP section IV (the WPQ gated by region); what is gated, and until when, is the handler's. Invariants: flushes enter the
//! write queue in the order of asking, each when the queue has room, and count as durable from then on (the queue is of the
//! domain ADR); a write of the host to a line that the handler holds something of waits; a read returns memory's bytes under those held,
//! all as they are when it is answered. A read that the handler has wait for flushes is repeated when these are in the write queue, once: it
//! cannot be overtaken by stores for ever. A slice has one read of a line under way, so that none is answered with older bytes behind
//! one with newer.
//! A flush with an undo log waits for the read of the old bytes: see [`undo_log`](super::undo_log).

use smallvec::SmallVec;

use crate::engine::{Ctx, Time};
use crate::kernel::memory::Medium;
use crate::machine::msg::{Line, MAX_LINE_BYTES, MemoryRead, MemoryWrite, Msg};
use crate::machine::ports::Role;
use crate::persist::handler::{ControllerHandler, Flush, Held, Outbox, Peer};
use crate::persist::journal::FactKind;
use crate::persist::regions::RegionReport;
use crate::persist::vocab::RegionStep;

use super::MemoryController;
use super::undo_log::UndoLog;

/// A read that nobody waits for: its place at the controller instead of a slice's.
pub(super) const NOBODY: u8 = u8::MAX;

/// A read that waits for stores which the handler holds.
#[derive(Debug)]
struct Parked {
    read: MemoryRead,
    /// Their flushes.
    tokens: SmallVec<[u64; 2]>,
}

/// A handler and what its host does for it.
#[derive(Debug)]
pub(super) struct Gated {
    pub(super) handler: Box<dyn ControllerHandler>,
    pub(super) outbox: Outbox,
    pub(super) undo_log: UndoLog,
    /// Writes of the host to lines that the handler holds something of.
    host_writes: Vec<MemoryWrite>,
    parked: Vec<Parked>,
    /// Reads that have waited, by slice and MSHR: they wait no more.
    repeated: Vec<(u8, u16)>,
}

impl Gated {
    /// A flush is in the write queue: reads that waited for nothing else are to be repeated.
    fn written(&mut self, token: u64, ready: &mut Vec<MemoryRead>) {
        self.parked.iter_mut().for_each(|parked| parked.tokens.retain(|awaited| *awaited != token));
        for parked in self.parked.extract_if(.., |parked| parked.tokens.is_empty()) {
            self.repeated.push((parked.read.slice, parked.read.tag));
            ready.push(parked.read);
        }
    }

    /// Reads that wait.
    pub(super) fn parked(&self) -> usize {
        self.parked.len()
    }
}

impl MemoryController {
    /// Hosts a scheme's handler from now on.
    pub fn host(&mut self, handler: Option<Box<dyn ControllerHandler>>) {
        self.gated = handler.map(|handler| {
            let outbox = Outbox::of_host(self.journal.is_some() || self.timeline.is_some());
            let (host_writes, parked, repeated) = (Vec::new(), Vec::new(), Vec::new());
            Box::new(Gated { handler, outbox, undo_log: UndoLog::default(), host_writes, parked, repeated })
        });
    }

    /// What its handler counted.
    pub fn tally(&self, add: &mut dyn FnMut(&'static str, u64)) {
        if let Some(gated) = &self.gated {
            gated.handler.tally(add);
        }
    }

    /// What its handler saw of recoverable regions.
    pub fn region_report(&self) -> Option<RegionReport> {
        self.gated.as_ref()?.handler.region_report()
    }

    /// How much its handler holds.
    pub fn held(&self) -> Held {
        self.gated.as_ref().map_or_else(Held::default, |gated| gated.handler.held())
    }

    /// What its handler holds of lines: address, content, bytes held.
    pub fn held_lines(&self) -> impl Iterator<Item = (u64, Box<[u8; MAX_LINE_BYTES]>, u128)> {
        self.gated.iter().flat_map(|gated| {
            let handler = &gated.handler;
            handler.lines().into_iter().map(|(line, held)| {
                let mut bytes = Box::new([0; MAX_LINE_BYTES]);
                handler.overlay(line, held, &mut bytes);
                (line, bytes, held)
            })
        })
    }

    /// A message for the handler.
    pub(super) fn receive_message(
        &mut self,
        from: Peer,
        message: Box<dyn crate::persist::handler::SchemeMessage>,
        cx: &mut Ctx<'_, Msg>,
    ) {
        let Some(gated) = &mut self.gated else { panic!("a controller without a handler received a message") };
        gated.outbox.at(cx.now());
        gated.handler.message(from, message, &mut gated.outbox);
        self.carry_out(cx);
    }

    /// Does what the handler has asked for, as far as the write queue has room.
    pub(super) fn carry_out(&mut self, cx: &mut Ctx<'_, Msg>) {
        let Some(mut gated) = self.gated.take() else { return };
        gated.outbox.at(cx.now());
        let mut ready = Vec::new();
        while let Some(flush) = self.next_flush(&mut gated, cx.now()) {
            let token = flush.token;
            self.note_regions(&mut gated, cx.now());
            self.write_flush(flush, cx);
            gated.handler.flushed(token, &mut gated.outbox);
            gated.written(token, &mut ready);
        }
        self.note_regions(&mut gated, cx.now());
        let Role::Controller(channel) = self.ports.owner() else { unreachable!("checked when it was made") };
        let from = Peer::Controller(channel);
        for (to, message, delay) in gated.outbox.take_timed() {
            cx.send(self.ports.to_peer(to), Msg::Scheme { from, message }, delay);
        }
        if !gated.host_writes.is_empty() {
            let (held, free) = std::mem::take(&mut gated.host_writes)
                .into_iter()
                .partition::<Vec<_>, _>(|write| gated.handler.holds(write.line));
            gated.host_writes = held;
            self.gated = Some(gated);
            for write in free {
                self.receive_write(write, cx);
            }
        } else {
            self.gated = Some(gated);
        }
        for read in ready {
            self.begin_read(read, cx);
        }
    }

    /// The next flush, where the write queue has room for it and its undo log is there.
    fn next_flush(&mut self, gated: &mut Gated, now: Time) -> Option<Flush> {
        let logged = gated.outbox.flushes().front()?.logged;
        if logged && !self.is_logged(gated, now) || !self.has_room() {
            return None;
        }
        gated.undo_log.begin_next();
        gated.outbox.flushes().pop_front()
    }

    /// The write queue takes one more of a handler.
    pub(super) fn has_room(&self) -> bool {
        self.waiting_writes.is_empty() && self.writes.len() < self.spec.write_queue_entries as usize
    }

    /// Flushes wait for room.
    pub(super) fn flush_waits(&self) -> bool {
        self.gated.as_ref().is_some_and(|gated| gated.outbox.has_flushes())
    }

    /// A write of the host to a line that the handler holds something of: it has to come behind that.
    pub(super) fn holds_back(&mut self, write: MemoryWrite) -> Option<MemoryWrite> {
        match &mut self.gated {
            Some(gated) if Medium::of(write.line) == Medium::Nvm && gated.handler.holds(write.line) => {
                gated.host_writes.push(write);
                None
            }
            _ => Some(write),
        }
    }

    /// Puts what the handler holds over what a read got from memory; none where the read has to wait for some of that.
    pub(super) fn overlay(&mut self, read: MemoryRead, now: Time) -> Option<MemoryRead> {
        let mut read = read;
        let Some(gated) = self.gated.as_deref_mut().filter(|_| Medium::of(read.line) == Medium::Nvm) else {
            return Some(read);
        };
        let repeated = gated.repeated.iter().position(|&who| who == (read.slice, read.tag));
        let finds = gated.handler.overlay(read.line, read.room.mask, &mut read.room.bytes);
        if let Some(place) = repeated {
            gated.repeated.swap_remove(place);
        } else if finds {
            gated.handler.hit();
            gated.outbox.at(now);
            let tokens = gated.handler.awaited(read.line, read.room.mask, &mut gated.outbox);
            if !tokens.is_empty() {
                gated.parked.push(Parked { read, tokens });
                return None;
            }
        }
        Some(read)
    }

    /// Puts a flush into the write queue.
    fn write_flush(&mut self, flush: Flush, cx: &mut Ctx<'_, Msg>) {
        let Flush { author, line, mask, bytes, logged, .. } = flush;
        let data = Box::new(Line { bytes: *bytes, mask, log: false });
        self.write_image(line, &data);
        let step = if logged { RegionStep::Spilled } else { RegionStep::Flushed };
        self.note_step(step, author, cx.now());
        if let Some(journal) = &mut self.journal {
            journal.note_data(cx.now(), FactKind::Region(step), line, mask, author, &data.bytes);
        }
        let accepted = self.accept(&MemoryWrite { line, slice: NOBODY, token: 0, late: false, data }, cx.now());
        assert!(accepted, "there was room");
    }
}
