//! A requester's end of the crossbar (an SM, the command processor): the miss queue, credits, injection, and
//! replies on their way out of the ejection port.
//!
//! Requests leave in order. A request waits in the miss queue while its slice has no credit left or the
//! injection port holds more than its share of flits; the queue is finite, and a full one stops the
//! load-store unit.

use std::collections::VecDeque;

use super::crossbar::{Credits, CrossbarSpec, PortEnd};
use super::msg::{Credit, HEADER_BYTES, Msg, Payload, Reply, Request, RequestKind, SECTOR_BYTES, SliceMsg, SwitchMsg};
use super::ports::Ports;
use durawarp_checkpoint::state;
use durawarp_engine::{Ctx, Time};

/// Payload bytes of a reply, after its header.
pub(super) fn reply_bytes(reply: &Reply) -> u32 {
    match (&reply.payload, reply.kind) {
        (_, RequestKind::Read) => reply.sectors.count_ones() * SECTOR_BYTES,
        // A requester that wants no values back hears only that it was performed.
        (Payload::Atomics(atomics), _) if atomics.returns => u32::from(atomics.count) * atomics.elem.bytes(),
        _ => 0,
    }
}

/// A requester's end of the crossbar; requests go to the switch where there is one.
#[derive(Debug)]
pub(super) struct Network {
    ports: Ports,
    injection_flits: u32,
    capacity: usize,
    queue: VecDeque<Request>,
    credits: Credits,
    injection: PortEnd,
    ejection: PortEnd,
    arriving: VecDeque<(Time, Reply)>,
    /// Bytes sent and received, headers included.
    pub(super) bytes_out: u64,
    pub(super) bytes_in: u64,
}

state!(Network {
    parts: credits, injection, ejection; saved: queue, arriving, bytes_out, bytes_in; kept: ports, injection_flits,
    capacity
});

impl Network {
    /// An idle end with room for `capacity` waiting requests.
    pub(super) fn new(spec: &CrossbarSpec, ports: Ports, port: PortEnd, capacity: u32) -> Self {
        Network {
            injection_flits: spec.injection_flits,
            capacity: capacity as usize,
            queue: VecDeque::new(),
            credits: Credits::new(ports.map().slices(), spec),
            ports,
            injection: port.clone(),
            ejection: port,
            arriving: VecDeque::new(),
            bytes_out: 0,
            bytes_in: 0,
        }
    }

    /// Another request may be pushed.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.queue.len() < self.capacity
    }

    /// So many more requests may be pushed.
    pub(super) fn has_room_for(&self, requests: usize) -> bool {
        self.queue.len() + requests <= self.capacity
    }

    /// The slice of a line has room for a request.
    pub(super) fn has_credit(&self, line: u64) -> bool {
        self.credits.has(self.ports.map().slice_of(line))
    }

    /// Requests that there is room for.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Requests that wait, for a report.
    pub(super) fn waiting(&self) -> Option<(usize, u64)> {
        self.queue.front().map(|head| (self.queue.len(), head.line))
    }

    /// Queues a request and sends what can be sent. Credits and ports decide when it leaves.
    pub(super) fn push(&mut self, request: Request, cx: &mut Ctx<'_, Msg>) {
        if self.queue.is_empty() && self.may_leave(request.line, cx) {
            self.inject(request, cx);
        } else {
            self.queue.push_back(request);
            self.pump(cx);
        }
    }

    /// Credits came back.
    pub(super) fn credit(&mut self, Credit { slice, packets }: Credit) {
        self.credits.give(slice, packets);
    }

    /// Sends waiting requests as far as credits and the injection port allow; wakes the owner when the port
    /// empties.
    #[inline]
    pub(super) fn pump(&mut self, cx: &mut Ctx<'_, Msg>) {
        if !self.queue.is_empty() {
            self.pump_all(cx);
        }
    }

    fn pump_all(&mut self, cx: &mut Ctx<'_, Msg>) {
        while let Some(head) = self.queue.front()
            && self.may_leave(head.line, cx)
            && let Some(request) = self.queue.pop_front()
        {
            self.inject(request, cx);
        }
    }

    /// There are a credit and room in the injection port for a request that is the next to leave. Asks for a
    /// wake-up when only the port holds it back; a credit comes as a message.
    fn may_leave(&self, line: u64, cx: &mut Ctx<'_, Msg>) -> bool {
        if !self.has_credit(line) || self.ports.to_switch().is_some() && !self.credits.has(self.ports.map().slices()) {
            return false;
        }
        let room_at = self.injection.backlog_at_most(self.injection_flits);
        if room_at > cx.now() {
            cx.wake_at(room_at);
            return false;
        }
        true
    }

    fn inject(&mut self, mut request: Request, cx: &mut Ctx<'_, Msg>) {
        let slice = self.ports.map().slice_of(request.line);
        self.credits.take(slice);
        if self.ports.to_switch().is_some() {
            self.credits.take(self.ports.map().slices());
        }
        let bytes = request.payload_bytes();
        self.bytes_out += u64::from(HEADER_BYTES + bytes);
        let tail = self.injection.inject(cx.now(), bytes);
        if let Payload::Persist(persist) = &mut request.payload {
            persist.passed.sent = tail;
        }
        let delay = tail - cx.now();
        match self.ports.to_switch() {
            None => self.ports.to_slice(slice as u16).send(SliceMsg::Request(request), delay, cx),
            Some(switch) => switch.send(SwitchMsg::Request(request), delay, cx),
        }
    }

    /// A reply's tail has arrived: hands it over when the ejection port is done with it now, else keeps it
    /// until [`Network::ejected`] finds it due.
    pub(super) fn eject(&mut self, reply: Reply, cx: &mut Ctx<'_, Msg>) -> Option<Reply> {
        let bytes = reply_bytes(&reply);
        self.bytes_in += u64::from(HEADER_BYTES + bytes);
        let done = self.ejection.eject(cx.now(), bytes);
        if done <= cx.now() {
            return Some(reply);
        }
        self.arriving.push_back((done, reply));
        cx.wake_at(done);
        None
    }

    /// The next reply that is out of the ejection port by now; asks for a wake-up for the one after.
    #[inline]
    pub(super) fn ejected(&mut self, cx: &mut Ctx<'_, Msg>) -> Option<Reply> {
        let &(done, _) = self.arriving.front()?;
        if done > cx.now() {
            cx.wake_at(done);
            return None;
        }
        self.arriving.pop_front().map(|(_, reply)| reply)
    }
}
