//! The words of persistency: which part of a machine survives a power failure, which way a store takes, what
//! a fence waits for.
//!
//! Sources: the domains of Intel's persistent-memory programming model (ADR: the write-pending queue is
//! drained by the power supply's reserve; eADR: the caches too); paths and transactions as in AGPM section
//! II; `p_barrier` of Gope et al. (scoped persist barriers).

use durawarp_base::choice;
use durawarp_base::spec::{Kind, Parameter};
use durawarp_checkpoint::value;
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

impl Parameter for Domain {
    const KIND: Kind = Kind::Choice(&["media", "adr", "eadr"]);
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

value!(choice Route { Temporal, NonTemporal, Dropped });

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
    /// What it waits for on its way, where the handler keeps order by departures.
    pub order: Option<IssueOrder>,
    /// Given back to the scheme with each of its accesses at the slices; 0 for none.
    pub mark: u64,
}

impl StoreRule {
    /// A way, and whether the warp waits; without an order.
    pub fn new(route: Route, wait: bool) -> StoreRule {
        StoreRule { route, wait, order: None, mark: 0 }
    }
}

/// What a store waits for before it leaves its SM, by numbers of the scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IssueOrder {
    /// Up to this number, what the warp's SM or CTA has stored must be durable.
    pub after: u64,
    /// Of a non-temporal store: its own number. A fence that does not wait for it makes its warp, and who
    /// learns of the fence, know it ([`Store::knows`](super::handler::Store::knows)).
    pub number: u64,
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
    /// The host writes the line back.
    Written,
    /// The scheme has no use for it.
    Dropped,
}

/// Whose stores a persist barrier orders (Gope et al., section 5): each scope contains the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PersistScope {
    /// Those of the threads of the warp that issues it; the paper's workitem, at the grain of a warp.
    Thread,
    /// Those of a CTA, the paper's workgroup.
    Cta,
    /// Those of a kernel.
    Kernel,
}

value!(choice PersistScope { Thread, Cta, Kernel });

impl PersistScope {
    /// Every scope, the narrowest first.
    pub const ALL: [PersistScope; 3] = [PersistScope::Thread, PersistScope::Cta, PersistScope::Kernel];

    /// Its name in the instruction: `pm.barrier.NAME`.
    pub fn name(self) -> &'static str {
        match self {
            PersistScope::Thread => "wi",
            PersistScope::Cta => "wg",
            PersistScope::Kernel => "kr",
        }
    }
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

value!(choice FenceKind { Sfence, Ofence, Dfence, BarrierThread, BarrierCta, BarrierKernel });

/// Why a region of a hart ends that hardware delimits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegionEnd {
    /// Stores hold too many registers.
    Registers,
    /// An atomic operation.
    Atomic,
    /// A fence of visibility.
    Fence,
    /// A system call.
    Call,
}

/// The machines that a scheme is for, by what computes in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machines {
    /// Those with GPUs.
    pub gpu: bool,
    /// Those of CPU cores.
    pub cpu: bool,
}

impl FenceKind {
    /// Its instruction.
    pub fn name(self) -> &'static str {
        match self {
            FenceKind::Sfence => "pm.sfence",
            FenceKind::Ofence => "pm.ofence",
            FenceKind::Dfence => "pm.dfence",
            FenceKind::BarrierThread => "pm.barrier.wi",
            FenceKind::BarrierCta => "pm.barrier.wg",
            FenceKind::BarrierKernel => "pm.barrier.kr",
        }
    }

    /// Whose stores it is about.
    pub fn scope(self) -> PersistScope {
        match self {
            FenceKind::BarrierCta => PersistScope::Cta,
            FenceKind::BarrierKernel => PersistScope::Kernel,
            FenceKind::Sfence | FenceKind::Ofence | FenceKind::Dfence | FenceKind::BarrierThread => {
                PersistScope::Thread
            }
        }
    }
}

/// What a fence does to the warp that issues it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FenceRule {
    /// Nothing.
    Pass,
    /// It waits until every earlier persist of the warp is durable.
    WaitDurable,
    /// It waits until every earlier write-back of the warp is durable. The host, or the handler where it
    /// orders what leaves a combining L1, orders the other stores before whatever follows
    /// ([`NonTemporalOrder`]).
    Ordered,
    /// It waits for a marker, which brings all that its scope has stored to durability: caches flush what
    /// their handlers name, in order (`SliceEvent::Drain`).
    Marker,
}

value!(choice FenceRule { Pass, WaitDurable, Ordered, Marker });

/// What hardware orders of non-temporal stores, beyond what fences wait for. Stores are of one SM, in the
/// order of issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NonTemporalOrder {
    /// Nothing.
    #[default]
    ByFences,
    /// They are durable before a later store through the caches is performed. Those of a warp before a fence
    /// that did not wait for them are durable before anything that the program orders behind the fence is
    /// performed.
    BeforeCached,
    /// As [`NonTemporalOrder::BeforeCached`], of stores of one CTA.
    BeforeCachedOfCta,
    /// Those of a warp before a fence that did not wait for them are durable before any store to persistent
    /// memory that the program orders behind the fence is performed.
    Epochs,
    /// The same, and all of earlier launches: durable before any store to persistent memory that the program
    /// orders behind them is durable. It may be performed before, since caches keep the order on.
    EpochsInCaches,
    /// As [`NonTemporalOrder::BeforeCached`], and one is durable before that of a later instruction is
    /// performed, unless both are of one line.
    Fifo,
}

/// What happens at the end of a CTA or a kernel, before it counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Boundary {
    /// Nothing.
    #[default]
    None,
    /// Every dirty line of persistent memory in the L2 is written back, and all are durable.
    WriteBackL2,
}

value!(choice Boundary { None, WriteBackL2 });

/// When a controller of a scheme of recoverable regions goes on to the next region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CommitRule {
    /// When all controllers have written this one's stores.
    #[default]
    Acked,
    /// When it has written this one's stores itself.
    Pipelined,
    /// The same, and stores of later regions may be written before, with an undo log.
    Speculative,
}

choice! {
    /// Where threads of CPU cores that synchronise end regions, beside atomics.
    pub enum BoundaryAt {
        /// At fences that order stores before loads, which alone are instructions on x86. The paper's.
        X86 = "x86",
        /// At these, before loads that acquire, and at `pause`. Ours.
        Acquires = "acquires",
        /// At every fence, before and behind, behind stores that release, and at `pause`. Ours.
        Fences = "fences",
    }
}

/// How a scheme of recoverable regions has kernels formed, and commits regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionRule {
    /// Most words of 8 bytes that a lane stores in a region.
    pub threshold_stores: u32,
    /// Unroll loops whose number of turns is known.
    pub unroll: bool,
    /// Unroll other loops with their exit conditions.
    pub speculative_unroll: bool,
    /// Most copies of a loop's body.
    pub unroll_factor: u32,
    /// Leave out checkpoints of what can be computed.
    pub prune: bool,
    /// Checkpoint what all lanes of a warp share the value of once a warp.
    pub uniform_once: bool,
    /// Boundaries behind what synchronises too, not only before.
    pub after_sync: bool,
    /// On CPU cores: which fences and loads have boundaries.
    pub boundary_at: BoundaryAt,
    /// Warps of a CTA have regions together.
    pub of_ctas: bool,
    /// When a controller goes on to the next region.
    pub commit: CommitRule,
    /// On GPUs: each SM orders its own regions, as they begin.
    pub by_sm: bool,
}

/// What becomes of a region's stores, in the hardware of a scheme of recoverable regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegionStep {
    /// At an SM: a store left the front-end buffer for its controller, with its bytes; program order within a
    /// region.
    Stored,
    /// At an SM: the region ended; its boundary left for every controller, behind its stores.
    Ended,
    /// At a controller: the gated WPQ has taken a store, with its bytes.
    Buffered,
    /// At a controller: the boundary has come. Its acknowledgement goes to all other controllers and is sure
    /// to arrive.
    Bounded,
    /// At a controller: bytes of a buffered store went on to memory. They survive from now on.
    Flushed,
    /// At a controller: all of the region's stores here are flushed. Its acknowledgement goes to others,
    /// surely.
    Done,
    /// At a controller: the region is committed here; the flush ID is that of the next.
    Committed,
    /// At a controller: bytes that memory had, saved before a store without a boundary overwrites them.
    Logged,
    /// At a controller: a store of the oldest region went to memory before the region's boundary, its old
    /// bytes logged.
    Spilled,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_have_the_name_of_their_instruction_and_barriers_a_scope() {
        use FenceKind::{BarrierCta, BarrierKernel, BarrierThread, Dfence, Ofence, Sfence};
        for (kind, name, scope) in [
            (Sfence, "pm.sfence", PersistScope::Thread),
            (Ofence, "pm.ofence", PersistScope::Thread),
            (Dfence, "pm.dfence", PersistScope::Thread),
            (BarrierThread, "pm.barrier.wi", PersistScope::Thread),
            (BarrierCta, "pm.barrier.wg", PersistScope::Cta),
            (BarrierKernel, "pm.barrier.kr", PersistScope::Kernel),
        ] {
            assert_eq!((kind.name(), kind.scope()), (name, scope));
        }
        assert_eq!(PersistScope::ALL.map(PersistScope::name), ["wi", "wg", "kr"]);
        assert!(PersistScope::ALL.is_sorted());
    }

    #[test]
    fn domains_have_the_names_of_machine_files() {
        for (domain, name) in [(Domain::Media, "media"), (Domain::Adr, "adr"), (Domain::Eadr, "eadr")] {
            assert_eq!((domain.name(), serde_json::to_value(domain).unwrap()), (name, name.into()));
        }
    }
}
