//! A component with the engine's state for it, and what running it costs.
//!
//! Invariants: a cell is plain movable data; costs serve placement only, and no result depends on them.

use std::fmt;

use super::component::Component;
use super::context::Ctx;
use super::digest;
use super::event::{NEVER, Tie};
use super::message::{ComponentId, Message};
use super::time::Time;
use super::wires::Wires;

/// Where a component stands in its topology.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Standing {
    /// What it is fused with, by number; its own where it is fused with nothing.
    pub(crate) block: u32,
    /// It is fused with others.
    pub(crate) fused: bool,
    /// It is of the answering tier.
    pub(crate) answers: bool,
}

/// A component, with the engine's state for it.
pub(crate) struct Cell<M> {
    pub(crate) id: ComponentId,
    pub(crate) tier: u8,
    pub(crate) standing: Standing,
    /// Other workers may run it in a round, see `loan.rs`.
    pub(crate) lent: bool,
    pub(crate) component: Box<dyn Component<M>>,
    pub(crate) wires: Wires,
    /// Its pending wake-up, or [`NEVER`].
    pub(crate) wake: Time,
    /// The time of its latest note in the queue, or [`NEVER`] once that was opened.
    pub(crate) noted: Time,
    /// The tie of its next message, less the phase: its id, and how many messages it has sent.
    pub(crate) tie: u64,
    pub(crate) digest: u64,
    pub(crate) messages: u64,
    pub(crate) wakes: u64,
    pub(crate) cost: Cost,
}

/// What running a component costs, measured now and then. Serves placement only: results never depend on it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    sampled_ns: f32,
    sampled_events: f32,
    /// Its events when its load was last taken.
    pub(crate) events_before: u64,
}

impl Cost {
    /// Takes in one sample. The average is over the last few thousand events; an outlier (the thread was
    /// descheduled) counts as a few usual events only.
    pub(crate) fn sample(&mut self, ns: u64, events: u64) {
        let (ns, events) = (ns as f32, events as f32);
        if self.sampled_events == 0.0 {
            (self.sampled_ns, self.sampled_events) = (ns, events);
        } else {
            self.sampled_ns += ns.min(4.0 * self.ns_per_event() * events);
            self.sampled_events += events;
        }
        if self.sampled_events > 4096.0 {
            self.sampled_ns /= 2.0;
            self.sampled_events /= 2.0;
        }
    }

    /// What an event of it costs, in ns; 0 when it was never sampled.
    pub(crate) fn ns_per_event(&self) -> f32 {
        if self.sampled_events > 0.0 { self.sampled_ns / self.sampled_events } else { 0.0 }
    }
}

impl<M> Cell<M> {
    /// A component that has not run yet.
    pub(crate) fn new(
        id: ComponentId,
        tier: u8,
        standing: Standing,
        component: Box<dyn Component<M>>,
        wires: Wires,
    ) -> Self {
        Cell {
            id,
            tier,
            standing,
            lent: false,
            component,
            wires,
            wake: NEVER,
            noted: NEVER,
            tie: Tie::new(0, id, 0).0,
            digest: digest::START,
            messages: 0,
            wakes: 0,
            cost: Cost::default(),
        }
    }

    pub(crate) fn events(&self) -> u64 {
        self.messages + self.wakes
    }

    /// Whether its wake-up has no note in the queue yet.
    #[inline]
    pub(crate) fn lacks_note(&self) -> bool {
        self.wake != self.noted && self.wake != NEVER
    }

    /// Whether other workers may run it, for all that is known of it.
    pub(crate) fn may_be_lent(&self) -> bool {
        !self.standing.fused && !self.standing.answers
    }
}

impl<M: Message> Cell<M> {
    /// What stands in the place of a component that is away.
    pub(crate) fn absent(id: ComponentId) -> Self {
        Cell::new(id, 0, Standing::default(), Box::new(Absent), Wires::default())
    }
}

/// In the place of a component that is away.
pub(crate) struct Absent;

impl<M: Message> Component<M> for Absent {
    fn handle(&mut self, _: M, _: &mut Ctx<'_, M>) {
        unreachable!("a component that is away handles nothing")
    }

    fn wake(&mut self, _: &mut Ctx<'_, M>) {
        unreachable!("a component that is away does not wake")
    }
}

impl<M> fmt::Debug for Cell<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cell").field("id", &self.id).field("wake", &self.wake).finish_non_exhaustive()
    }
}
