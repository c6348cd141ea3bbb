//! The memory side of an SM: the L1, what leaves it, and the port to the slices.
//!
//! What combines in the L1 and how it leaves is in `combine.rs`; in which order, where a handler says so, in
//! `ordered.rs`.

use crate::l1::{L1, L1Writes};
use durawarp_checkpoint::state;

use super::cleaning::Cleaning;
use super::persist_order::PersistOrder;
use super::port::SlicePort;
use super::wiring::{SmParameters, SmWiring};

/// What leaves a combining L1: cleanings, who waits for them, and the order that a handler keeps.
#[derive(Debug)]
pub(super) struct Leaving {
    pub(super) cleaning: Cleaning,
    /// Fences and CTAs that wait for cleanings.
    pub(super) releases: u32,
    /// Persist order of dirty lines: present only where the handler orders what leaves a combining L1.
    pub(super) order: Option<Box<PersistOrder>>,
}

state!(Leaving { saved: cleaning, releases, order });

impl Leaving {
    /// The release that waits for this cleaning, 0 for none, is complete.
    pub(super) fn is_complete(&self, releasing: u64) -> bool {
        releasing != 0 && releasing <= self.cleaning.settled()
    }
}

/// The L1, what leaves it, and the port.
#[derive(Debug)]
pub(super) struct MemorySide {
    pub(super) l1: L1,
    /// Lines that leave a write-combining L1.
    pub(super) leaving: Leaving,
    pub(super) port: SlicePort,
}

state!(MemorySide { parts: l1, leaving, port });

/// An idle memory side; `persist_order` where a handler orders what leaves the L1.
pub(super) fn memory_side(p: &SmParameters, w: &SmWiring, persist_order: bool) -> MemorySide {
    let ordered = persist_order && p.l1.writes == L1Writes::Combine;
    MemorySide {
        l1: L1::new(&p.l1, w.line_bytes),
        leaving: Leaving { cleaning: Cleaning::default(), releases: 0, order: ordered.then(Box::default) },
        port: SlicePort::new(p, w),
    }
}
