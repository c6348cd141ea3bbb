//! `light-wsp`: whole-system persistence by recoverable regions, gated write-pending queues, and lazy
//! region-level persist ordering; a port of a CPU scheme to GPUs.
//!
//! ```text
//!   warp ──store──> caches                        sequencer: region IDs
//!     └──copy──> front-end buffer ──persist path──> a controller's gated WPQ ──region by region──> write queue ──> NVM
//!                                     boundaries to all ──> bdry-ACKs, flush-ACKs among controllers
//! ```
//! A kernel runs formed into regions ([`durawarp_persist::RegionRule`]). A store's copy is tagged with its
//! region's ID; the region's end is broadcast to all controllers behind its stores. A controller has the
//! stores of the oldest region written once it knows that all have that region's boundary, and goes on to the
//! next region once all have written theirs (or, `commit = "pipelined"`, once it has; with `"sequencer"` one
//! controller says for all which regions may be written).
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
//! lines here: a slice counts a line's copies on their way (`snoop = "feb"`, the paper's, on cores alone: the
//! L1 searches its core's buffer before it evicts a dirty line). A read takes what the WPQ has of its line
//! (L4; `wait`: it is repeated once that is written, where that comes without it). What is evicted dirty is
//! dropped. On CPU cores a hart stands for a warp; its regions are formed over decoded code
//! (`riscv/regions`), copies are made as stores leave the store buffer, and an atomic is performed in the
//! event in which its region draws an ID, so that it needs no leave; a region's boundary is the store of its
//! program counter, which is broadcast; when the process ends, harts that run end the regions in which they
//! have stored where they stand, as an interrupt of the paper's system would (a reading: V-A).
//! Bulk stores (TMA), which the paper's machine has not, are stores of the region that issues them: it ends
//! when their lines have left shared memory. A bulk reduction is an atomic on all its lines.
//! On GPUs launches run one after another, also those of several streams. Regions of all could commit in the
//! one order, and handlers tell owners apart by their slots, whatever launch they are of. What takes one
//! launch for granted is recovery (`formed/resume.rs` of the workloads): all launches share one checkpoint
//! area, whose rows name the launch that wrote them last, and each before the latest that is named there
//! counts as done. Several in flight need an area each, chosen as the launch is read; a durable record of
//! which launches are over, as a later launch takes over an area; a restart of each that is not, in list
//! order, which is right as launches in flight together do not race; and an oracle that orders launches as
//! their intervals are (`regions/history.rs` puts all that was stored before a launch began before it).
//! Invariants: no wait of a warp is for a younger region than its own. Not modelled: the power failure
//! itself, which the oracle does from journals; bandwidth of ACKs; time to search buffers.

mod front_end;
mod gate;
pub mod messages;
mod parameters;
mod sequencer;
mod snoop;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use durawarp_checkpoint::{LoadFault, StateReader, Storable};
use durawarp_persist::{
    CommitRule, ControllerHandler, CoreHandler, Handler, HandlerPlace, HomeHandler, PathLinks, RegionRule, Scheme,
    SchemeMessage, SliceHandler, SmHandler,
};

use messages::RegionMessage;
pub use parameters::{Checkpoints, Commit, IdDraw, LightWspSpec, RegionOrder, RegionOwner, Snoop, Victims, WpqHit};

/// The defaults, with sources, as a scheme file.
pub const DEFAULTS: &str = include_str!("light_wsp.toml");

/// The same on CPU cores: the paper's own machine.
pub const DEFAULTS_ON_CORES: &str = include_str!("light_wsp_on_cores.toml");

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
    fn read_message(&self, from: &mut StateReader<'_>) -> Result<Box<dyn SchemeMessage>, LoadFault> {
        RegionMessage::read(from).map(|message| Box::new(message) as _)
    }

    fn name(&self) -> &'static str {
        "light-wsp"
    }

    fn description(&self) -> &'static str {
        "LightWSP (on GPUs a port): recoverable regions, a persist path beside the caches, WPQs gated by region ID"
    }

    fn sm_handler(&self, place: HandlerPlace) -> Option<Box<dyn SmHandler>> {
        Some(Box::new(front_end::FrontEndBuffer::new(self.spec.clone(), place)))
    }

    fn core_handler(&self, place: HandlerPlace) -> Option<Box<dyn CoreHandler>> {
        Some(Box::new(front_end::FrontEndBuffer::new(self.spec.clone(), place)))
    }

    fn slice_handler(&self, _: HandlerPlace) -> Option<Box<dyn SliceHandler>> {
        let search = self.spec.search(Snoop::Count)?;
        Some(Box::new(snoop::VictimSnoop::new(Some(search))))
    }

    /// Without one a home slice would write what it drops.
    fn home_handler(&self, _: HandlerPlace) -> Option<Box<dyn HomeHandler>> {
        Some(Box::new(snoop::VictimSnoop::new(self.spec.search(Snoop::Count))))
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
        if spec.snoop == Snoop::Feb && place.cores == 0 {
            let why = "no line is dirty in an L1 of a GPU: there it is L2 slices that count copies (snoop = \"count\")";
            return Some(("light_wsp.snoop".to_owned(), why.to_owned()));
        }
        (spec.share(place.computes()) == 0).then(|| {
            let of = if place.cores > 0 { "cores" } else { "SMs" };
            let why = format!(
                "{} bits are {} IDs in use at a time, less than one for each of {} {of}: the {of} share them",
                spec.id_bits,
                spec.window() - 1,
                place.computes()
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
            boundary_at: spec.boundary_at,
            of_ctas: spec.owner == RegionOwner::Cta,
            commit: match spec.commit {
                Commit::Acked => CommitRule::Acked,
                Commit::Pipelined | Commit::Sequencer => CommitRule::Pipelined,
            },
            by_sm: spec.order == RegionOrder::Sm,
        })
    }

    fn one_by_one(&self) -> Option<&'static str> {
        Some("forms regions that recovery resumes launch by launch")
    }

    fn logs(&self) -> bool {
        false
    }

    fn drops_evictions(&self) -> bool {
        true
    }
}
