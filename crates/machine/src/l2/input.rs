//! The input of a slice: requests in the order of arrival, the data port they occupy, and credits on their
//! way back.
//!
//! One request is served at a time; each occupies the data port for its bytes. Credits go back in batches,
//! since each is a message. Invariant: the buffer never holds more packets of a requester than the credits
//! that it got (`crossbar`).

use std::collections::VecDeque;

use crate::crossbar::PortEnd;
use crate::msg::{Payload, Request};
use crate::ports::Requester;
use durawarp_checkpoint::{state, value};
use durawarp_engine::{Clock, Time};

/// A request at the input, and when its tail is out of the ejection port.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) ready: Time,
    pub(super) request: Request,
}

value!(record Arrival { ready, request });

/// The input buffer after the ejection port.
#[derive(Debug)]
pub(super) struct InputBuffer {
    ejection: PortEnd,
    queue: VecDeque<Arrival>,
    /// The head lacks a resource.
    stalled: bool,
    /// Packets of all requesters that it has room for.
    capacity: usize,
    credit_batch: u16,
    /// By requester: packets that have left and whose credits have not gone back.
    credits_due: Vec<u16>,
}

state!(InputBuffer { parts: ejection; saved: queue, stalled; sized: credits_due; kept: capacity, credit_batch });

impl InputBuffer {
    /// An empty buffer with room for `packets` of each of `requesters` requesters.
    pub(super) fn new(ejection: PortEnd, packets: u32, requesters: u16) -> Self {
        InputBuffer {
            ejection,
            queue: VecDeque::new(),
            stalled: false,
            capacity: packets as usize * usize::from(requesters),
            credit_batch: (packets / 4).max(1) as u16,
            credits_due: vec![0; usize::from(requesters)],
        }
    }

    /// The tail of a request has arrived.
    pub(super) fn arrive(&mut self, mut request: Request, now: Time) {
        let ready = self.ejection.eject(now, request.payload_bytes());
        if let Payload::Persist(persist) = &mut request.payload {
            persist.passed.reached = ready;
        }
        self.queue.push_back(Arrival { ready, request });
    }

    /// Requests in the buffer.
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Requests that it has room for.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// The request to be served next.
    pub(super) fn head(&self) -> Option<&Arrival> {
        self.queue.front()
    }

    /// Takes the head.
    pub(super) fn pop(&mut self) -> Option<Arrival> {
        self.queue.pop_front()
    }

    /// Puts a head back that lacks a resource; true when it lacks one for the first time.
    pub(super) fn stall(&mut self, head: Arrival) -> bool {
        self.queue.push_front(head);
        !std::mem::replace(&mut self.stalled, true)
    }

    /// The head was served: the credits that go back to its requester now, if any.
    pub(super) fn served(&mut self, from: Requester) -> Option<u16> {
        self.stalled = false;
        let due = &mut self.credits_due[from.index()];
        *due += 1;
        (*due >= self.credit_batch).then(|| std::mem::take(due))
    }
}

/// The data port of the array.
#[derive(Debug)]
pub(super) struct DataPort {
    clock: Clock,
    /// Bytes that it moves in a cycle.
    bytes: u32,
    free_at: Time,
}

state!(DataPort { saved: free_at; kept: clock, bytes });

impl DataPort {
    /// A free port.
    pub(super) fn new(clock: Clock, bytes: u32) -> Self {
        DataPort { clock, bytes, free_at: 0 }
    }

    /// When it is free, in ticks.
    pub(super) fn free_at(&self) -> Time {
        self.free_at
    }

    /// Moves bytes; a request without any takes a cycle.
    pub(super) fn occupy(&mut self, bytes: u32, now: Time) {
        let cycles = u64::from(bytes.div_ceil(self.bytes).max(1));
        self.free_at = self.free_at.max(now) + self.clock.cycles(cycles);
    }

    /// The atomic unit works for `cycles` on what the port holds; returns them in ticks.
    pub(super) fn hold(&mut self, cycles: u64, now: Time) -> Time {
        let ticks = self.clock.cycles(cycles);
        self.free_at = self.free_at.max(now) + ticks;
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_port_is_busy_for_the_bytes_of_each_request_in_turn() {
        let mut port = DataPort::new(Clock::of_period(10), 32);
        port.occupy(0, 100);
        assert_eq!(port.free_at(), 110, "a cycle without bytes");
        port.occupy(33, 105);
        assert_eq!(port.free_at(), 130, "two cycles after it");
        assert_eq!((port.hold(3, 200), port.free_at()), (30, 230));
    }

    #[test]
    fn credits_go_back_in_batches_by_requester() {
        let mut input = InputBuffer::new(PortEnd::new(Clock::of_period(10), 32), 8, 2);
        let served = [0, 1, 0, 1, 1].map(|sm| input.served(Requester::sm(sm)));
        assert_eq!(served, [None, None, Some(2), Some(2), None]);
    }
}
