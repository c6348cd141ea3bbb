//! The context of a handler: a component sends messages and asks for wake-ups through it alone.
//!
//! ```text
//!   send ──> arrives in this round? ── yes: self link ──> early    (handled in this very round)
//!              │ no
//!              ├── same partition ─────────────────────> queue     (slab + wheel)
//!              └── other partition ────────────────────> outbox    (one batch a round and pair of partitions)
//! ```
//! Invariant: what arrives inside the open round is the component's own; anything else would break the
//! lookahead, and panics naming both components, in release builds too: the comparison is needed anyway.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;
use std::fmt;

use super::agenda::{RoundKey, round_key};
use super::event::{Event, NEVER, Tie};
use super::message::{ComponentId, Message, Port};
use super::queue::Queue;
use super::tiers::{MAX_TIERS, PerTier};
use super::time::Time;
use super::wires::Wires;

/// A component's only way to reach outside while it handles an event.
pub struct Ctx<'a, M> {
    pub(crate) now: Time,
    /// Its pending wake-up, or [`NEVER`].
    pub(crate) wake: Time,
    /// Origin and sequence number of the next message.
    pub(crate) tie: u64,
    pub(crate) from: Time,
    /// It runs to here: the bound of its round, or before an answer that it may get in it.
    pub(crate) stop: Time,
    /// The component's own tier.
    pub(crate) tier: usize,
    pub(crate) id: ComponentId,
    pub(crate) partition: u32,
    pub(crate) wires: &'a Wires,
    pub(crate) sink: &'a mut Sink<M>,
}

impl<M: Message> Ctx<'_, M> {
    /// The current simulated time.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The component that is handling the event.
    #[inline]
    pub fn id(&self) -> ComponentId {
        self.id
    }

    /// How many ports the component has.
    #[inline]
    pub fn ports(&self) -> usize {
        self.wires.wires.len()
    }

    /// Sends `message` out of `port`; it arrives at `now + the link's latency + extra_delay`. O(1).
    ///
    /// # Panics
    /// When no link is connected to `port`, or the arrival is past the end of time.
    #[inline]
    pub fn send(&mut self, port: Port, message: M, extra_delay: Time) {
        let Some(wire) = self.wires.wires.get(usize::from(port.0)) else { no_such_port(self.id, port, self.ports()) };
        let arrival = self.now.checked_add(wire.latency).and_then(|time| time.checked_add(extra_delay));
        let Some(time) = arrival.filter(|&time| time != NEVER) else { past_the_end(self.id, port) };
        let tie = u64::from(wire.phase) << 60 | self.tie;
        self.tie += 1;
        let tier = wire.tier();
        if tier == self.sink.answer.tier {
            self.stop = self.stop.min(self.sink.answer.before(time));
        }
        if time < self.sink.bounds[tier] {
            if !wire.to_self() {
                lookahead_broken(self.id, self.wires.ends[usize::from(port.0)], time, self.sink.bounds[tier]);
            }
            let payload = self.sink.queues[self.tier].store(message);
            self.sink.early.push(Reverse(round_key((time - self.from) as u32, tie, payload)));
        } else if u32::from(wire.partition) == self.partition {
            self.sink.queues[tier].push(time, tie, wire.index, message);
        } else {
            self.sink.least_sent[tier] = self.sink.least_sent[tier].min(time);
            let event = Event { time, tie: Tie(tie), to: wire.index, message };
            self.sink.outboxes[wire.partition as usize].push(event);
        }
    }

    /// Asks for [`Component::wake`](super::Component::wake) at `time` (>= now). At most one wake-up is
    /// pending: the earlier one is kept. A wake at the current instant follows all messages of the instant. A
    /// few ns, no queue.
    ///
    /// # Panics
    /// When `time` is in the past.
    #[inline]
    pub fn wake_at(&mut self, time: Time) {
        if time < self.now {
            wake_in_the_past(self.id, time, self.now);
        }
        self.wake = self.wake.min(time);
    }

    /// The pending wake-up, if there is one.
    #[inline]
    pub fn pending_wake(&self) -> Option<Time> {
        (self.wake != NEVER).then_some(self.wake)
    }

    /// Ends the run: the simulated program failed. The round is finished first, and of several failures in it
    /// the one with the least (time, component) is reported, so the report does not depend on threads.
    pub fn fail(&mut self, error: Box<dyn Error + Send + Sync>) {
        self.sink.verdict.fail(self.now, self.id, error);
    }

    /// Ends the run at the end of this round, as [`RunEnd::Halted`](super::RunEnd): a budget of the model is
    /// used up.
    pub fn halt(&mut self) {
        self.sink.verdict.halt(self.now, self.id);
    }
}

impl<M> fmt::Debug for Ctx<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ctx").field("id", &self.id).field("now", &self.now).finish_non_exhaustive()
    }
}

/// Takes in what the components of one partition send.
#[derive(Debug)]
pub(crate) struct Sink<M> {
    /// By tier.
    pub(crate) queues: Vec<Queue<M>>,
    /// By tier: what arrives before is of the open round, hence the running component's own.
    pub(crate) bounds: PerTier,
    /// Where who sends to the answering tier stops, in rounds that rest on its promises.
    pub(crate) answer: Answer,
    /// What the running component stopped before, in no particular order.
    pub(crate) left: Vec<RoundKey>,
    /// What the running component sent itself inside the open round.
    pub(crate) early: BinaryHeap<Reverse<RoundKey>>,
    /// By partition; its own stays empty.
    pub(crate) outboxes: Vec<Vec<Event<M>>>,
    /// By tier: the least arrival time in the outboxes.
    pub(crate) least_sent: PerTier,
    pub(crate) verdict: Verdict,
}

impl<M> Sink<M> {
    /// Nothing was sent, and no round is open.
    pub(crate) fn new(queues: Vec<Queue<M>>, partitions: usize) -> Sink<M> {
        Sink {
            queues,
            bounds: [0; MAX_TIERS],
            answer: Answer::NONE,
            left: Vec::new(),
            early: BinaryHeap::new(),
            outboxes: (0..partitions).map(|_| Vec::new()).collect(),
            least_sent: [NEVER; MAX_TIERS],
            verdict: Verdict::default(),
        }
    }
}

/// When answers of the answering tier may arrive in the tier that runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    /// The answering tier; [`usize::MAX`] where nothing rests on a promise.
    pub(crate) tier: usize,
    /// From the arrival of a message there, at least.
    pub(crate) after: Time,
    /// The width of the running tier's slots, less one.
    pub(crate) slot_mask: Time,
}

impl Answer {
    /// No component stops before its round is over.
    pub(crate) const NONE: Answer = Answer { tier: usize::MAX, after: 0, slot_mask: 0 };

    /// The slot in which the answer to a message that arrives at `time` may arrive.
    #[inline]
    fn before(self, time: Time) -> Time {
        time.saturating_add(self.after) & !self.slot_mask
    }
}

/// A failure and where it happened.
pub(crate) type Failure = (Time, ComponentId, Box<dyn Error + Send + Sync>);

/// Whether components asked to end the run: of each kind, the one with the least (time, component).
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) failure: Option<Failure>,
    pub(crate) halt: Option<(Time, ComponentId)>,
}

impl Verdict {
    #[cold]
    fn fail(&mut self, now: Time, id: ComponentId, error: Box<dyn Error + Send + Sync>) {
        if self.failure.as_ref().is_none_or(|(time, other, _)| (now, id) < (*time, *other)) {
            self.failure = Some((now, id, error));
        }
    }

    #[cold]
    fn halt(&mut self, now: Time, id: ComponentId) {
        if self.halt.is_none_or(|least| (now, id) < least) {
            self.halt = Some((now, id));
        }
    }

    /// Whether anybody asked to end the run.
    #[inline]
    pub(crate) fn is_given(&self) -> bool {
        self.failure.is_some() || self.halt.is_some()
    }

    /// Takes over another partition's verdict.
    pub(crate) fn merge(&mut self, other: Verdict) {
        if let Some((time, id, error)) = other.failure {
            self.fail(time, id, error);
        }
        if let Some((time, id)) = other.halt {
            self.halt(time, id);
        }
    }
}

#[cold]
#[inline(never)]
fn no_such_port(id: ComponentId, port: Port, ports: usize) -> ! {
    panic!("component {id} sent out of port {}, but has {ports} ports", port.0)
}

#[cold]
#[inline(never)]
fn past_the_end(id: ComponentId, port: Port) -> ! {
    panic!("component {id} sent out of port {} with a delay past the end of time", port.0)
}

#[cold]
#[inline(never)]
fn wake_in_the_past(id: ComponentId, time: Time, now: Time) -> ! {
    panic!("component {id} asked at {now} to wake at {time}, which is past")
}

#[cold]
#[inline(never)]
fn lookahead_broken(from: ComponentId, to: ComponentId, time: Time, bound: Time) -> ! {
    panic!("a message from {from} to {to} arrives at {time}, inside the round that ends at {bound}")
}
