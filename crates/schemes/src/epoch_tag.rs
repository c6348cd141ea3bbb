//! `epoch-tag`: scoped persist barriers that order and do not wait, by tags of dirty lines in both caches
//! (buffered epochs).
//!
//! ```text
//!   barrier ──> later stores are of a new epoch; no warp waits
//!   line must leave the L1 (way, S-FIFO, release, other access) ──> older epochs of its scope instance go first;
//!                              when these are in the L2, the line goes there with its tag
//!   line must leave the L2 (way, store of another epoch, pm.dfence) ──> older epochs of its instance are written;
//!                              when these are durable, the line is
//!   store to a line of an older epoch, or of another instance ──> the old version leaves that cache first
//! ```
//! A tag is the instance (the CTA), the place of the line's first store in the SM's order, and up to which
//! place stores of that instance come before the line: the *barrier id*. Barriers of a kernel order all SMs'
//! lines, and so does the start of a launch those of launches that are over by then (of a programmatic one,
//! for what it stores behind `griddepcontrol.wait`, the end of what it depends on); launches in flight
//! together have no order: at the L1s each SM drains what is before,
//! and nothing behind leaves until all SMs are done (`kernel_order.rs`); in the L2 what is behind fewer
//! barriers is written first.
//!
//! Source: Gope, Basu, Puthoor, Meswani, "Scoped persist barriers for GPUs", section 6.1 ("Alternative
//! implementation": GPU caches are extended; the eviction of a block first triggers those of blocks that come
//! before it) and 8.1; Condit et al. (BPFS, SOSP'09) section 4.4. `levels = "l1"` has the tags in L1s alone:
//! lines leave these for memory, past the L2, in order; an overflow of the S-FIFO, which the paper cleans to
//! the next level, persists.
//!
//! Readings: a barrier of a thread orders its warp's stores. It also orders those of other warps of the CTA
//! that learn of it (by a barrier, shared memory, an atomic), as undo logs rely on: that is what `pm.sfence`
//! does here. The paper needs no arrival at barriers of a workgroup or kernel; the instruction has one here,
//! under every scheme. A line that comes to the L2 has all that precedes it there or in memory, so that the
//! L2 never waits for an L1. A way is taken from the first line that may leave at once; others begin to
//! drain. Launches are ordered, which the paper's equations, of one kernel, leave open: as their intervals in
//! time are, which streams and events allow, and the tags can tell. Write-backs of the
//! program are dropped; `pm.dfence` waits. An atomic on persistent memory waits until its CTA's earlier
//! stores and itself are durable.
//!
//! Where L1s do not combine stores nothing is dirty there: stores bypass the caches at once,
//! [`store_order`](super::store_order) keeps the order, and a barrier of a kernel waits for durability.
//! Invariants: a line waits for lines of lower places of its instance, or of earlier barriers of the kernel,
//! only: there is no cycle. Not modelled: time and area of tag walks; that the L2 serves others while a store
//! to a line of another epoch waits at the head of its input.

mod hub;
mod kernel_order;
mod message;
mod parameters;
mod slice;
mod sm;

use std::sync::Arc;

use durawarp_checkpoint::{LoadFault, StateReader, Storable};
use durawarp_persist::promises::{Fences, Promises};
use durawarp_persist::{Handler, HandlerPlace, NonTemporalOrder, Scheme, SchemeMessage, SliceHandler, SmHandler};

use hub::EpochTagHub;
use message::TagMessage;
pub use parameters::{EpochTagSpec, TagLevels};
use slice::EpochTagSlice;
use sm::EpochTagSm;

/// The defaults, with sources, as a scheme file.
pub const DEFAULTS: &str = include_str!("epoch_tag.toml");

/// The scheme.
#[derive(Debug, Clone)]
pub struct EpochTag {
    spec: Arc<EpochTagSpec>,
}

impl EpochTag {
    /// Tags with these parameters.
    pub fn new(spec: EpochTagSpec) -> Self {
        EpochTag { spec: Arc::new(spec) }
    }
}

impl Scheme for EpochTag {
    fn read_message(&self, from: &mut StateReader<'_>) -> Result<Box<dyn SchemeMessage>, LoadFault> {
        TagMessage::read(from).map(|message| Box::new(message) as _)
    }

    fn name(&self) -> &'static str {
        "epoch-tag"
    }

    fn description(&self) -> &'static str {
        "scoped persist barriers that do not wait: lines leave L1s and L2 in the order of their epochs' tags (Gope et al., BPFS)"
    }

    fn sm_handler(&self, place: HandlerPlace) -> Option<Box<dyn SmHandler>> {
        Some(Box::new(EpochTagSm::new(&self.spec, place)))
    }

    fn slice_handler(&self, place: HandlerPlace) -> Option<Box<dyn SliceHandler>> {
        let tags = self.spec.levels == TagLevels::Both && place.l1_combines;
        tags.then(|| Box::new(EpochTagSlice::new(place)) as Box<dyn SliceHandler>)
    }

    fn hub_handler(&self, place: HandlerPlace) -> Option<Box<dyn Handler>> {
        place.l1_combines.then(|| Box::new(EpochTagHub::new(place)) as Box<dyn Handler>)
    }

    /// Barriers order without a wait: buffered epochs (Gope et al., section 6.1).
    fn promises(&self) -> Promises {
        let non_temporal = match self.spec.levels {
            TagLevels::Both => NonTemporalOrder::EpochsInCaches,
            TagLevels::L1 => NonTemporalOrder::Epochs,
        };
        Promises { fences: Fences::Dfence, non_temporal, ..Promises::NONE }
    }

    /// Launches in flight together have no order among their lines. Where L1s do not combine stores, what a
    /// launch stored is durable when it ends.
    fn one_by_one(&self) -> Option<&'static str> {
        None
    }

    fn logs(&self) -> bool {
        true
    }
}
