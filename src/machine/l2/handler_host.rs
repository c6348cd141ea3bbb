//! The place of a scheme's handler in a slice: its messages, and the memory that it moves bytes to.
//!
//! A scheme may have no handler here. Moves of bytes take bandwidth to memory and nothing waits for them;
//! they go to lines of DRAM that the slice has reserved, in turn. Invariant: a handler that does not track
//! durability hears nothing of it.

use std::collections::VecDeque;

use crate::persist::handler::{
    Access, Admission, Event, Handler, Interests, Offer, Outbox, Peer, SchemeMessage, report_of,
};

/// A handler, if there is one, and what belongs to it.
#[derive(Debug, Default)]
pub(super) struct HandlerHost {
    handler: Option<Box<dyn Handler>>,
    /// What the handler wants to hear of.
    wants: Interests,
    pub(super) outbox: Outbox,
    /// Lines of DRAM of this slice that the handler moves bytes to, in turn.
    reserved: Vec<u64>,
    next_reserved: usize,
    /// Moves from memory that wait for a read credit, by their bytes.
    pub(super) moves_in: VecDeque<u32>,
    /// Lines that a marker waits for; empty between markers, and used again.
    named: Vec<u64>,
}

impl HandlerHost {
    /// Hosts a handler, which may move bytes to these lines of DRAM.
    pub(super) fn new(handler: Option<Box<dyn Handler>>, reserved: Vec<u64>) -> Self {
        let wants = handler.as_ref().map(|handler| handler.interests()).unwrap_or_default();
        HandlerHost { handler, wants, reserved, ..HandlerHost::default() }
    }

    /// The handler hears of accesses.
    pub(super) fn wants_accesses(&self) -> bool {
        self.wants.accesses
    }

    /// The handler hears when lines are durable.
    pub(super) fn tracks_durability(&self) -> bool {
        self.wants.durability
    }

    /// The next line that bytes are moved to.
    pub(super) fn next_reserved(&mut self) -> u64 {
        self.next_reserved = (self.next_reserved + 1) % self.reserved.len();
        self.reserved[self.next_reserved]
    }

    /// The slice has served an access.
    pub(super) fn access(&mut self, access: &Access) {
        if let Some(handler) = &mut self.handler {
            handler.event(&Event::Accessed(access), &mut self.outbox);
        }
    }

    /// A line of persistent memory makes room for another.
    pub(super) fn replaced(&mut self, line: u64) {
        if let Some(handler) = &mut self.handler {
            handler.event(&Event::Replaced(line), &mut self.outbox);
        }
    }

    /// No write of a line is on its way to durability any more.
    pub(super) fn durable(&mut self, line: u64) {
        if let Some(handler) = self.handler.as_mut().filter(|_| self.wants.durability) {
            handler.event(&Event::Durable(line), &mut self.outbox);
        }
    }

    /// The lines that a marker of a requester waits for; to be given back by [`HandlerHost::keep`].
    pub(super) fn drain(&mut self, from: u16) -> Vec<u64> {
        let mut lines = std::mem::take(&mut self.named);
        lines.clear();
        if let Some(handler) = &mut self.handler {
            // Lines that wait to be cleaned are no marker's.
            std::mem::swap(self.outbox.cleans(), &mut lines);
            handler.event(&Event::Drain(from), &mut self.outbox);
            std::mem::swap(self.outbox.cleans(), &mut lines);
        }
        lines
    }

    /// Keeps a list for the next marker.
    pub(super) fn keep(&mut self, lines: Vec<u64>) {
        self.named = lines;
    }

    /// Of `ways` of a set, how many the handler wants to look at for one to make room; none to take the
    /// first.
    pub(super) fn victims(&self, ways: usize) -> Option<usize> {
        self.wants.victims.map(|search| search.ways(ways))
    }

    /// The handler does not let a dirty line of persistent memory make room now.
    pub(super) fn keeps(&mut self, line: u64) -> bool {
        let offer = Offer::Victim(line);
        self.handler.as_mut().is_some_and(|handler| handler.offer(&offer, &mut self.outbox) != Admission::Goes)
    }

    /// A peer has written.
    pub(super) fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>) {
        if let Some(handler) = &mut self.handler {
            handler.message(from, message, &mut self.outbox);
        }
    }

    /// What the handler counted.
    pub(super) fn tally(&self, add: &mut dyn FnMut(&'static str, u64)) {
        if let Some(handler) = &self.handler {
            report_of(&**handler).counters.into_iter().for_each(|(name, value)| add(name, value));
        }
    }
}
