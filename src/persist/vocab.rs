//! The words of persistency: which part of a machine survives a power failure, which way a store takes, what a fence
//! waits for.
//!
//! Sources: the domains of Intel's persistent-memory programming model (ADR: the write-pending queue is drained by the
//! power supply's reserve; eADR: the caches too); paths and transactions as in AGPM section II; `p_barrier` of Gope et
//! al. (scoped persist barriers).

use serde::{Deserialize, Serialize};

/// What survives a power failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Domain {
    /// The media alone: a write is durable when its cells are written.
    Media,
    /// The media and the controllers' write-pending queues: a write is durable when it is accepted there.
    Adr,
    /// The L2 too: a write is durable when it is performed there.
    Eadr,
}

impl Domain {
    /// Its name in a machine file.
    pub fn name(self) -> &'static str {
        match self {
            Domain::Media => "media",
            Domain::Adr => "adr",
            Domain::Eadr => "eadr",
        }
    }
}

/// The way a store takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Through the caches: dirty in the L2 until it is written back.
    Temporal,
    /// Past the arrays of L1 and L2 to the memory controller.
    NonTemporal,
    /// Not at all: the scheme has no use for it.
    Dropped,
}

/// What the program says about a store to persistent memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreClass {
    /// An ordinary store (`st`, an atomic).
    Data,
    /// `pm.st.nt`.
    NonTemporal,
    /// `pm.st.log`: a log update.
    Log,
}

/// What becomes of a store, and what follows it at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreRule {
    /// Its way.
    pub route: Route,
    /// The warp waits until it is durable before its next instruction.
    pub wait: bool,
}

/// A write-back that the program asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteBackClass {
    /// `pm.clwb`.
    Data,
    /// `pm.clwb.log`: it belongs to a log update.
    Log,
    /// `pm.clflushopt`: the line leaves the caches.
    Flush,
}

/// What becomes of a write-back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteBackRule {
    /// It is done.
    Done,
    /// The scheme has no use for it.
    Dropped,
}

/// Fences and barriers of persistency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FenceKind {
    /// `pm.sfence`.
    Sfence,
    /// `pm.ofence`: order without waiting.
    Ofence,
    /// `pm.dfence`: wait for durability.
    Dfence,
    /// `pm.barrier.wi`, of a thread.
    BarrierThread,
    /// `pm.barrier.wg`, of a CTA.
    BarrierCta,
    /// `pm.barrier.kr`, of a kernel.
    BarrierKernel,
}

/// What a fence does to the warp that issues it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FenceRule {
    /// Nothing.
    Pass,
    /// It waits until every earlier persist of the warp is durable.
    WaitDurable,
    /// It waits until every earlier write-back of the warp is durable. The host orders what went past the caches before
    /// whatever follows ([`PastOrder`]).
    Ordered,
}

/// What hardware orders of stores past the caches, beyond what fences wait for. Stores are of one SM, in the order of issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PastOrder {
    /// Nothing.
    #[default]
    ByFences,
    /// They are durable before a later store through the caches is performed. Behind a fence that did not wait for them, no
    /// store is performed before they are durable.
    BeforeCached,
    /// The same, and one is durable before that of a later instruction is performed, unless both are of one line.
    Fifo,
}

/// What happens at the end of a CTA or a kernel, before it counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// Nothing.
    None,
    /// Every dirty line of persistent memory in the L2 is written back, and all are durable.
    WriteBackL2,
}
