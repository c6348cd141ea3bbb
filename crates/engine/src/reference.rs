//! The simplest driver: one heap of all events, one event at a time. The others are tested against it.
//!
//! It shares with them how a message gets its time and tie ([`Ctx`]), what a digest is, and nothing of
//! rounds, wheels, partitions or threads. Use it to find out whether an odd result is the model's or the
//! engine's: the digests of [`Reference::digest`] and [`Simulation::digest`](super::Simulation::digest) are
//! equal, or the engine has a bug.
//!
//! Not here: limits, epochs, statistics. About 3 to 5 times slower.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::component::Component;
use super::context::{Ctx, Sink};
use super::digest;
use super::event::{Event, Key, NEVER, OUTSIDE, Tie};
use super::message::{ComponentId, Message};
use super::queue::Queue;
use super::time::Time;
use super::topology::{Topology, TopologyError};
use super::wires::Wires;

/// A topology that runs one event at a time.
#[derive(Debug)]
pub struct Reference<M> {
    nodes: Vec<Node<M>>,
    heap: BinaryHeap<Reverse<Key>>,
    messages: Vec<Option<M>>,
    sink: Sink<M>,
    last_event: Time,
}

struct Node<M> {
    component: Box<dyn Component<M>>,
    wires: Wires,
    wake: Time,
    tie: u64,
    digest: u64,
    messages: u64,
    wakes: u64,
}

impl<M> std::fmt::Debug for Node<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("wake", &self.wake).finish_non_exhaustive()
    }
}

/// Everything is elsewhere, so that every message comes out of the outbox.
const ELSEWHERE: u16 = 1;

impl<M: Message> Reference<M> {
    /// Checks the topology and makes it ready to run.
    ///
    /// # Errors
    /// As [`Simulation::new`](super::Simulation::new).
    pub fn new(topology: Topology<M>) -> Result<Self, TopologyError> {
        let parts = topology.assemble()?;
        let mut reference = Reference {
            nodes: Vec::new(),
            heap: BinaryHeap::new(),
            messages: Vec::new(),
            sink: Sink::new(vec![Queue::new(parts.tiers.slots(0), 0)], 2),
            last_event: 0,
        };
        for (id, (component, mut wires)) in parts.components.into_iter().zip(parts.wires).enumerate() {
            // `Ctx::send` takes every receiver for one in another partition and puts the message into the
            // outbox, from where `handle` moves it to the heap.
            wires.wires.iter_mut().for_each(|wire| wire.partition = ELSEWHERE);
            let (wake, tie, digest) = (NEVER, Tie::new(0, ComponentId(id as u32), 0).0, digest::START);
            reference.nodes.push(Node { component, wires, wake, tie, digest, messages: 0, wakes: 0 });
        }
        for (id, time) in parts.wakes {
            let wake = &mut reference.nodes[id.0 as usize].wake;
            *wake = time.min(*wake);
            reference.push_wake(time, id.0);
        }
        // Numbered as `Simulation::post` numbers them: ties, and with them digests, are the same.
        for (sequence, (to, time, message)) in parts.posts.into_iter().enumerate() {
            let tie = Tie::new(0, ComponentId(OUTSIDE), sequence as u64);
            reference.push(Event { time, tie, to: to.0, message });
        }
        Ok(reference)
    }

    /// Handles every event at or before `limit`, stopping early when a component fails or halts. Returns the
    /// time of the last event.
    ///
    /// # Panics
    /// When a component does.
    pub fn run(&mut self, limit: Option<Time>) -> Time {
        while let Some(&Reverse(key)) = self.heap.peek() {
            if limit.is_some_and(|limit| key.time > limit) || self.sink.verdict.is_given() {
                break;
            }
            self.heap.pop();
            self.handle(key);
        }
        self.last_event
    }

    fn handle(&mut self, key: Key) {
        let node = &mut self.nodes[key.to as usize];
        if key.payload == Key::WAKE && node.wake != key.time {
            return; // it woke earlier instead
        }
        self.last_event = key.time;
        // A wake-up that is handled is used up before the component runs, which may ask for another one at
        // once.
        let noted = if key.payload == Key::WAKE { NEVER } else { node.wake };
        let mut cx = Ctx {
            now: key.time,
            wake: noted,
            tie: node.tie,
            from: 0,
            stop: NEVER,
            tier: 0,
            id: ComponentId(key.to),
            partition: 0,
            wires: &node.wires,
            sink: &mut self.sink,
        };
        if key.payload == Key::WAKE {
            node.digest = digest::fold(node.digest, key.time, Tie::WAKE.0, 0);
            node.wakes += 1;
            node.component.wake(&mut cx);
        } else if let Some(message) = self.messages[key.payload as usize].take() {
            node.digest = digest::fold(node.digest, key.time, key.tie, message.digest());
            node.messages += 1;
            node.component.handle(message, &mut cx);
        }
        (node.wake, node.tie) = (cx.wake, cx.tie);
        // An entry of the heap is never removed. The old one is found to be stale above when its time comes.
        if node.wake != noted {
            let wake = node.wake;
            self.push_wake(wake, key.to);
        }
        for event in std::mem::take(&mut self.sink.outboxes[ELSEWHERE as usize]) {
            self.push(event);
        }
    }

    fn push_wake(&mut self, time: Time, to: u32) {
        let key = Key { time, tie: Tie::WAKE.0, to, payload: Key::WAKE };
        self.heap.push(Reverse(key));
    }

    fn push(&mut self, event: Event<M>) {
        let payload = self.messages.len() as u32;
        self.heap.push(Reverse(Key { time: event.time, tie: event.tie.0, to: event.to, payload }));
        self.messages.push(Some(event.message));
    }

    /// A number that stands for every event handled so far and the state of all components.
    pub fn digest(&self) -> u64 {
        self.nodes.iter().enumerate().fold(digest::START, |whole, (id, node)| {
            let whole = digest::fold(whole, node.digest, node.messages, node.wakes);
            digest::fold(whole, node.component.digest(), id as u64, 0)
        })
    }

    /// Messages and wake-ups handled so far.
    pub fn events(&self) -> u64 {
        self.nodes.iter().map(|node| node.messages + node.wakes).sum()
    }

    /// One component; cast it through `dyn Any` to its own type.
    pub fn component(&self, id: ComponentId) -> &dyn Component<M> {
        &*self.nodes[id.0 as usize].component
    }
}
