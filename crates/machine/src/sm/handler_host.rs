//! The place of a scheme's handler in an SM: what it wants to hear of, what it has written, what its host
//! keeps for it.
//!
//! The host gives handlers three verbs (see [`persist::event`](durawarp_persist::event)) and knows no
//! scheme's mechanism. It keeps requests that a handler has it hold, and offers their release in their order
//! whenever there is room.

use std::collections::VecDeque;

use crate::coalescer::LineAccess;
use crate::msg::Request;
use durawarp_checkpoint::state;
use durawarp_kernel::memory::Medium;
use durawarp_persist::handler::{
    Admission, Departure, HandlerReport, Outbox, SmEvent, SmHandler, SmInterests, SmOffer, report_of,
};

/// A handler and what belongs to it.
#[derive(Debug)]
pub(super) struct SmHost {
    pub(super) handler: Box<dyn SmHandler>,
    pub(super) wants: SmInterests,
    pub(super) outbox: Outbox,
    /// Departures so far.
    departures: u64,
    /// Requests that the handler has held, by the numbers of their departures.
    held: VecDeque<(u64, Request)>,
    /// Lines of the instruction that issues; empty between instructions.
    pub(super) lines: Vec<u64>,
    /// The warp that issues now waits until its store is durable.
    pub(super) store_waits: bool,
    /// Slices that have not acknowledged the kernel's marker.
    pub(super) grid_left: u32,
}

state!(SmHost { parts: handler, outbox; saved: departures, held, lines, store_waits, grid_left; kept: wants });

impl SmHost {
    /// Hosts a handler, with a journal or without.
    pub(super) fn new(handler: Box<dyn SmHandler>, journal: bool) -> Self {
        SmHost {
            wants: handler.interests(),
            outbox: Outbox::of_host(journal),
            departures: 0,
            held: VecDeque::new(),
            lines: Vec::new(),
            store_waits: false,
            grid_left: 0,
            handler,
        }
    }

    /// Something has happened.
    pub(super) fn tell(&mut self, event: &SmEvent<'_>) {
        self.handler.event(event, &mut self.outbox);
    }

    /// Something is about to happen.
    pub(super) fn ask(&mut self, offer: &SmOffer<'_>) -> Admission {
        self.handler.offer(offer, &mut self.outbox)
    }

    /// It goes on now.
    pub(super) fn allows(&mut self, offer: &SmOffer<'_>) -> bool {
        self.ask(offer) == Admission::Goes
    }

    /// What becomes of a request that is about to leave.
    pub(super) fn admits(&mut self, departure: Departure) -> Admission {
        if self.wants.departures { self.ask(&SmOffer::Departure(departure)) } else { Admission::Goes }
    }

    /// A request leaves the load-store unit, or is held: the number of its departure; 0 where nobody asks.
    pub(super) fn departs(&mut self, departure: Departure, held: bool) -> u64 {
        if !self.wants.departures {
            return 0;
        }
        self.departures += 1;
        self.tell(&SmEvent::Departed { departure, number: self.departures, held });
        self.departures
    }

    /// Keeps a request.
    pub(super) fn hold(&mut self, number: u64, request: Request) {
        self.held.push_back((number, request));
    }

    /// Requests are held.
    #[inline]
    pub(super) fn holds_any(&self) -> bool {
        !self.held.is_empty()
    }

    /// The next held request that may leave, in their order.
    pub(super) fn release(&mut self) -> Option<Request> {
        for at in 0..self.held.len() {
            let number = self.held[at].0;
            if self.allows(&SmOffer::Release(number)) {
                self.tell(&SmEvent::Released(number));
                return self.held.remove(at).map(|(_, request)| request);
            }
        }
        None
    }

    /// Keeps the lines of persistent memory among these accesses, each once.
    pub(super) fn keep_lines(&mut self, accesses: &[LineAccess]) {
        self.lines.clear();
        for access in accesses.iter().filter(|access| Medium::of(access.line) == Medium::Nvm) {
            if !self.lines.contains(&access.line) {
                self.lines.push(access.line);
            }
        }
    }

    /// What the handler reports.
    pub(super) fn report(&self) -> HandlerReport {
        report_of(&*self.handler)
    }
}
