//! The place of a scheme's handler in a slice: its messages, and the memory that it moves bytes to.
//!
//! A scheme may have no handler here. Moves of bytes take bandwidth to memory and nothing waits for them;
//! they go to lines of DRAM that the slice has reserved, in turn. Invariant: a handler that does not track
//! durability hears nothing of it.

use std::collections::VecDeque;

use durawarp_checkpoint::state;
use durawarp_persist::handler::{
    Access, AccessKind, Outbox, Peer, SchemeMessage, SliceEvent, SliceHandler, SliceInterests, report_of,
};

/// A handler, if there is one, and what belongs to it.
#[derive(Debug, Default)]
pub(super) struct SliceHost {
    handler: Option<Box<dyn SliceHandler>>,
    /// What the handler wants to hear of, beside accesses; nothing without one.
    pub(super) wants: SliceInterests,
    pub(super) outbox: Outbox,
    /// Lines of DRAM of this slice that the handler moves bytes to, in turn.
    reserved: Vec<u64>,
    next_reserved: usize,
    /// Moves from memory that wait for a read credit, by their bytes.
    pub(super) moves_in: VecDeque<u32>,
    /// Lines that a marker waits for; empty between markers, and used again.
    named: Vec<u64>,
}

state!(SliceHost { parts: handler, outbox; saved: next_reserved, moves_in, named; kept: wants, reserved });

impl SliceHost {
    /// Hosts a handler, which may move bytes to these lines of DRAM.
    pub(super) fn new(handler: Option<Box<dyn SliceHandler>>, reserved: Vec<u64>) -> Self {
        let wants = handler.as_ref().map(|handler| handler.interests()).unwrap_or_default();
        SliceHost { handler, wants, reserved, ..SliceHost::default() }
    }

    /// The next line that bytes are moved to.
    pub(super) fn next_reserved(&mut self) -> u64 {
        self.next_reserved = (self.next_reserved + 1) % self.reserved.len();
        self.reserved[self.next_reserved]
    }

    /// The handler hears of accesses, where there is one.
    #[inline]
    pub(super) fn hears_accesses(&self) -> bool {
        self.handler.is_some()
    }

    /// Something has happened.
    pub(super) fn tell(&mut self, event: &SliceEvent<'_>) {
        if let Some(handler) = &mut self.handler {
            handler.event(event, &mut self.outbox);
        }
    }

    /// The lines that a marker of a requester waits for; to be given back by [`SliceHost::keep`].
    pub(super) fn drain(&mut self, from: u16) -> Vec<u64> {
        let mut lines = std::mem::take(&mut self.named);
        lines.clear();
        // The handler names lines in its outbox; those that wait there to be cleaned are no marker's.
        std::mem::swap(self.outbox.cleans(), &mut lines);
        self.tell(&SliceEvent::Drain(from));
        std::mem::swap(self.outbox.cleans(), &mut lines);
        lines
    }

    /// Keeps a list for the next marker.
    pub(super) fn keep(&mut self, lines: Vec<u64>) {
        self.named = lines;
    }

    /// The handler has a dirty line of persistent memory stay.
    pub(super) fn keeps(&mut self, line: u64) -> bool {
        self.handler.as_mut().is_some_and(|handler| handler.keeps(line, &mut self.outbox))
    }

    /// The handler, where it wants to be asked, lets the slice serve a request. One to a line that is to be
    /// written back waits until it is: what it stores is not to leave with that.
    pub(super) fn admits(&mut self, access: Option<&Access>) -> bool {
        let Some(access) = access.filter(|access| self.wants.admissions && access.kind != AccessKind::Load) else {
            return true;
        };
        let Some(handler) = &mut self.handler else { return true };
        !self.outbox.cleans().contains(&access.line) && handler.admits(access, &mut self.outbox)
    }

    /// The handler has named lines to be written back.
    pub(super) fn has_cleans(&mut self) -> bool {
        !self.outbox.cleans().is_empty()
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
