//! The place of a scheme's handler in an SM: what it wants to hear of, what it has written, what its host keeps for it.

use crate::persist::handler::SmHandler;
use crate::persist::outbox::Outbox;

use super::gate::Gate;

/// A handler and what belongs to it.
#[derive(Debug)]
pub(super) struct HandlerHost {
    pub(super) handler: Box<dyn SmHandler>,
    /// It wants to hear of accesses.
    pub(super) watched: bool,
    /// Its fences order what they do not wait for.
    pub(super) orders: bool,
    /// It wants to be asked about loads.
    pub(super) steers: bool,
    pub(super) outbox: Outbox,
    /// What it has kept in order.
    pub(super) gate: Option<Box<Gate>>,
    /// Lines of the instruction that issues; empty between instructions.
    pub(super) lines: Vec<u64>,
    /// The warp that issues now waits until its store is durable.
    pub(super) store_waits: bool,
    /// Slices that have not acknowledged the kernel's marker.
    pub(super) grid_left: u32,
}

impl HandlerHost {
    /// Hosts a handler in an SM with so many CTA slots, and with a journal or without.
    pub(super) fn new(handler: Box<dyn SmHandler>, cta_slots: usize, journal: bool) -> Self {
        HandlerHost {
            watched: handler.watches(),
            orders: handler.orders_persists(),
            steers: handler.steers_loads(),
            outbox: Outbox::of_host(journal),
            gate: handler.gate().map(|spec| Box::new(Gate::new(spec, cta_slots))),
            lines: Vec::new(),
            store_waits: false,
            grid_left: 0,
            handler,
        }
    }
}
