//! `light-wsp`: whole-system persistence by recoverable regions, gated write-pending queues, and lazy
//! region-level persist ordering; a port of a CPU scheme to GPUs.
//!
//! ```text
//!   warp ──store──> caches                        sequencer: region IDs
//!     └──copy──> front-end buffer ──persist path──> a controller's gated WPQ ──region by region──> write queue ──> NVM
//!                                     boundaries to all ──> bdry-ACKs, flush-ACKs among controllers
//! ```
//! A kernel runs formed into regions ([`crate::persist::RegionRule`]). A store's copy is tagged with its
//! region's ID; the region's end is broadcast to all controllers behind its stores. A controller has the
//! stores of the oldest region written once it knows that all have that region's boundary, and goes on to the
//! next region once all have written theirs (or, `commit = "pipelined"`, once it has).
//!
//! Source: Zhou, Zeng, Jung, "LightWSP: Whole-System Persistence on the Cheap", sections III and IV, Table I.
//! Readings: the owner of a region is a warp, or a CTA whose warps share it (L14); IDs are drawn from one
//! sequencer (L1), when a region stores first. Half of all IDs may be in use, an equal share for each SM,
//! where warps wait before they begin a region if it is used up (L3). Before an atomic leaves, the sequencer
//! gives its region an ID and keeps its lines for it until it is performed, so that IDs and atomics have one
//! order (L2; `paper`: drawn at the boundary). The front-end buffer is a FIFO for each warp (L5), and lets
//! each warp in with one instruction, so that the oldest region's stores always get through. A store that
//! finds the WPQ full waits; of those that wait the oldest region's is let in first. In the fallback (section
//! IV-D) the oldest region's stores are written with an undo log. Snooping is at the L2, which has the dirty
//! lines here: a slice counts a line's copies on their way. A read takes what the WPQ has of its line (L4;
//! `wait`: it is repeated once that is written, where that comes without it). What is evicted dirty is
//! dropped. Invariants: no wait of a warp is for a younger region than its own. Not modelled: the power
//! failure itself, which the oracle does from journals; bandwidth of ACKs; time to search buffers.

mod account;
mod front_end;
mod gate;
pub mod messages;
mod sequencer;
mod snoop;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::choice;
use crate::persist::{CommitRule, ControllerHandler, Handler, HandlerPlace, PathLinks, RegionRule, Scheme, SmHandler};
use crate::spec;
use crate::spec::Nanos;
use messages::Tag;

/// The defaults, with sources, as a scheme file.
pub const DEFAULTS: &str = include_str!("light_wsp.toml");

choice! {
    /// Among whom regions are ordered (L1).
    pub enum RegionOrder {
        /// All of the machine: one order.
        Global = "global",
        /// Those of an SM: an order each. Sound where CTAs of different SMs do not communicate in a kernel;
        /// CTAs end when their regions have committed.
        Sm = "sm",
    }
}

choice! {
    /// Whose stores a region has (L14).
    pub enum RegionOwner {
        /// A warp's.
        Warp = "warp",
        /// Those of a CTA's warps between boundaries that they pass together.
        Cta = "cta",
    }
}

choice! {
    /// When a controller goes on to the next region ("What a power failure leaves" in `light_wsp/gate.rs`).
    pub enum Commit {
        /// When all controllers have written this one's stores: flush-ACKs of all others have come.
        Acked = "acked",
        /// When it has written this one's stores itself. Ours.
        Pipelined = "pipelined",
    }
}

choice! {
    /// When a region's ID is drawn (L2).
    pub enum IdDraw {
        /// When it stores first; of an atomic's region, in the order in which atomics are performed.
        AtSyncCompletion = "at_sync_completion",
        /// At the boundary before it, as the paper says.
        Paper = "paper",
    }
}

choice! {
    /// At how many lines of its set a dirty one that leaves the L2 is looked for, while copies of the first
    /// are on their way.
    pub enum Victims {
        /// At all.
        Full = "full",
        /// At half of them.
        Half = "half",
        /// At the first: it waits.
        Zero = "zero",
        /// Buffers are not snooped: loads may be stale (the paper's Fig. 6).
        Stale = "stale",
    }
}

choice! {
    /// What a read does that finds some of its bytes in a WPQ (L4).
    pub enum WpqHit {
        /// It takes them from there.
        Merge = "merge",
        /// It waits until they are written, and is repeated, where that is sure to come; else it takes them.
        Wait = "wait",
    }
}

choice! {
    /// How many words a checkpoint store of a warp writes. Ours: the paper's registers are 8 bytes of one
    /// thread.
    pub enum Checkpoints {
        /// One for each lane.
        Lanes = "lanes",
        /// One for all lanes where they share the register's value, as far as that is sound; else one for
        /// each lane.
        UniformOnce = "uniform_once",
    }
}

spec! {
    /// Parameters of LightWSP.
    pub struct LightWspSpec {
        /// Entries of an SM's front-end buffer.
        feb_entries: u32 where 1..=65536,
        /// Entries of a controller's gated write-pending queue.
        wpq_entries: u32 where 1..=1048576,
        /// Bytes of an entry of either, on the persist path too: a power of two.
        entry_bytes: u32 where 8..=128,
        /// From an SM to a controller, and back.
        path_latency_ns: Nanos,
        /// Bandwidth of an SM's persist path, in MB/s.
        path_mb_s: u32 where 1..=100_000_000,
        /// From a controller to another.
        ack_latency_ns: Nanos,
        /// More for each controller that lies between: they stand in a row, SMs before the first.
        controller_step_ns: Nanos,
        /// Between the sequencer and SMs, one way.
        sequencer_latency_ns: Nanos,
        /// Among whom regions are ordered.
        order: RegionOrder,
        /// Whose stores a region has.
        owner: RegionOwner,
        /// When a controller goes on to the next region.
        commit: Commit,
        /// When a region's ID is drawn.
        id_draw: IdDraw,
        /// Bits of a region's ID: half of all IDs may be in use.
        id_bits: u32 where 4..=16,
        /// Most words of 8 bytes that a lane stores in a region.
        threshold_stores: u32 where 2..=65536,
        /// Where a line without copies on their way is looked for.
        victims: Victims,
        /// What a read does that finds some of its bytes in a WPQ.
        wpq_hit: WpqHit,
        /// Unroll loops whose number of turns is known.
        unroll: bool,
        /// Unroll other loops with their exit conditions.
        speculative_unroll: bool,
        /// Most copies of a loop's body.
        unroll_factor: u32 where 1..=64,
        /// Leave out checkpoints of what can be computed.
        prune: bool,
        /// How many words a checkpoint store of a warp writes.
        checkpoints: Checkpoints,
    }
}

impl LightWspSpec {
    /// What is wrong with the values together: the key to blame, and why.
    pub fn faults(&self) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        if !self.entry_bytes.is_power_of_two() {
            faults.push(("entry_bytes", format!("{} is not a power of two", self.entry_bytes)));
        }
        if self.order == RegionOrder::Sm && self.id_draw == IdDraw::Paper {
            let why = "the paper's draw is from one counter: order = \"global\"".to_owned();
            faults.push(("id_draw", why));
        }
        if self.owner == RegionOwner::Cta && self.id_draw == IdDraw::Paper {
            faults.push(("id_draw", "the paper's draw is a thread's at its boundary: owner = \"warp\"".to_owned()));
        }
        for (key, link) in [
            ("path_latency_ns", self.path_latency_ns),
            ("ack_latency_ns", self.ack_latency_ns),
            ("sequencer_latency_ns", self.sequencer_latency_ns),
        ] {
            if link.ps == 0 {
                faults.push((key, "a link takes time".to_owned()));
            }
        }
        faults
    }

    /// Entries that bytes of a line take.
    fn entries_of(&self, mask: u128) -> u32 {
        let bytes = self.entry_bytes;
        let entry = if bytes == 128 { u128::MAX } else { (1 << bytes) - 1 };
        (0..128 / bytes).filter(|at| mask >> (at * bytes) & entry != 0).count() as u32
    }

    /// IDs that may be in use at a controller, in an order: half of all, so that serial numbers compare.
    fn window(&self) -> u32 {
        1 << (self.id_bits - 1)
    }

    /// IDs that an SM of so many may have in use.
    fn share(&self, sms: u16) -> u32 {
        // SMs hear of commits from the first controller: another may be one region behind.
        let ids = self.window() - 1;
        match self.order {
            RegionOrder::Global => ids / u32::from(sms.max(1)),
            RegionOrder::Sm => ids,
        }
    }

    /// The ID of a region by its number in its order.
    fn id(&self, number: u32) -> u16 {
        (number & ((1 << self.id_bits) - 1)) as u16
    }

    /// A region by its order and its number there.
    fn tag(&self, order: u16, number: u32) -> Tag {
        Tag { order, id: self.id(number), number }
    }
}

/// The scheme.
#[derive(Debug, Clone)]
pub struct LightWsp {
    spec: Arc<LightWspSpec>,
}

impl LightWsp {
    /// LightWSP with these parameters.
    pub fn new(spec: LightWspSpec) -> Self {
        LightWsp { spec: Arc::new(spec) }
    }
}

impl Scheme for LightWsp {
    fn name(&self) -> &'static str {
        "light-wsp"
    }

    fn description(&self) -> &'static str {
        "LightWSP (a port to GPUs): recoverable regions, a persist path beside the caches, WPQs gated by region ID"
    }

    fn sm_handler(&self, place: HandlerPlace) -> Box<dyn SmHandler> {
        Box::new(front_end::FrontEndBuffer::new(self.spec.clone(), place))
    }

    fn slice_handler(&self, _: HandlerPlace) -> Option<Box<dyn Handler>> {
        (self.spec.victims != Victims::Stale)
            .then(|| -> Box<dyn Handler> { Box::new(snoop::VictimSnoop::new(self.spec.victims)) })
    }

    fn controller_handler(&self, place: HandlerPlace) -> Option<Box<dyn ControllerHandler>> {
        Some(Box::new(gate::GatedQueue::new(self.spec.clone(), place)))
    }

    fn path_links(&self) -> Option<PathLinks> {
        let spec = &self.spec;
        Some(PathLinks {
            path_ps: spec.path_latency_ns.ps,
            ack_ps: spec.ack_latency_ns.ps,
            step_ps: spec.controller_step_ns.ps,
            hub_ps: spec.sequencer_latency_ns.ps,
        })
    }

    fn hub_handler(&self, _: HandlerPlace) -> Option<Box<dyn Handler>> {
        Some(Box::new(sequencer::RegionSequencer::new(self.spec.clone())))
    }

    fn unfit(&self, place: HandlerPlace) -> Option<(String, String)> {
        let spec = &self.spec;
        (spec.share(place.sms) == 0).then(|| {
            let why = format!(
                "{} bits are {} IDs in use at a time, less than one for each of {} SMs: the SMs share them",
                spec.id_bits,
                spec.window() - 1,
                place.sms
            );
            ("light_wsp.id_bits".to_owned(), why)
        })
    }

    fn regions(&self) -> Option<RegionRule> {
        let spec = &self.spec;
        Some(RegionRule {
            threshold_stores: spec.threshold_stores,
            unroll: spec.unroll,
            speculative_unroll: spec.speculative_unroll,
            unroll_factor: spec.unroll_factor,
            prune: spec.prune,
            uniform_once: spec.checkpoints == Checkpoints::UniformOnce,
            after_sync: spec.id_draw == IdDraw::AtSyncCompletion,
            of_ctas: spec.owner == RegionOwner::Cta,
            commit: match spec.commit {
                Commit::Acked => CommitRule::Acked,
                Commit::Pipelined => CommitRule::Pipelined,
            },
        })
    }

    fn logs(&self) -> bool {
        false
    }
}
