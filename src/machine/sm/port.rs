//! The SM's way to its slices: the crossbar port, and the boxes that travel through it and are recycled.

use crate::engine::Time;
use crate::machine::msg::{LinePool, Payload, Persist};
use crate::machine::network::Network;

use super::wiring::{SmParameters, SmWiring};

/// What requests leave by.
#[derive(Debug)]
pub(super) struct MemoryPort {
    pub(super) network: Network,
    pub(super) line_pool: LinePool,
    #[allow(clippy::vec_box, reason = "boxes are what is recycled: they travel in messages")]
    pub(super) spare_persists: Vec<Box<Persist>>,
}

impl MemoryPort {
    /// An idle port.
    pub(super) fn new(p: &SmParameters, w: &SmWiring) -> Self {
        MemoryPort {
            network: Network::new(&p.crossbar, w.ports, w.port.clone(), p.l1.miss_queue_entries),
            line_pool: LinePool::default(),
            spare_persists: Vec::new(),
        }
    }

    /// A persist leaves the load-store unit, with what it writes: from now on its record travels with it.
    pub(super) fn begin_persist(&mut self, payload: Payload, issued: Time, mark: u64, now: Time) -> Payload {
        let mut persist = self.spare_persists.pop().unwrap_or_default();
        if let Payload::Line(line) = payload {
            persist.line = Some(line);
        }
        persist.mark = mark;
        persist.passed.issued = issued;
        persist.passed.left = now;
        Payload::Persist(persist)
    }
}
