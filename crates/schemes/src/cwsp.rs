//! `cwsp`: whole-system persistence by recoverable regions whose stores are written ahead of their turn, with
//! an undo log; on machines of CPU cores. Its regions are LightWSP's: idempotence is not formed.
//!
//! ```text
//!   core ──8 B a store──> front-end buffer ──persist path──> controller ─┬ oldest region of the core: held
//!     ▲                                                                  └ a later one: old bytes ──> undo log,
//!     └────── persisted, from every controller ──────────                       then to the write queue
//! ```
//! The path never stops. A controller writes the stores of a region that is not its core's oldest at once,
//! guessing that no power failure comes before the regions ahead have persisted: it reads the bytes that a
//! store replaces first, and logs them. A region has persisted when all controllers have its boundary and all
//! stores before that; then its log is gone, and the core is told. After a power failure regions that have
//! persisted stay, all later ones are undone, the youngest store first, and each core goes on from the last
//! region that persisted.
//!
//! Source: cWSP, as LightWSP's sections I, II-C2 and V-E tell of it, which compares itself with it: memory
//! controller speculation, data undo-logged by the controllers, cores that are told.
//!
//! Readings:
//! * cWSP's compiler forms idempotent regions, which may be executed again over what they have stored. Ours
//!   are LightWSP's, which may not. So the oldest region is written when all controllers have its boundary,
//!   not at once without a log: what it has stored in part is in the buffer then, and is dropped.
//! * A store to a line of which the controller holds something older waits for that, too.
//! * How cores are ordered is in the head of [`super::core_regions`]: a core's regions persist
//!   in their order, and no region has an ID that others know.
//!
//! Not modelled: the circuits that shorten undo logging; a bound on regions that have not persisted, other
//! than that of the front-end buffer's entries; time of recovery.

mod parameters;
mod speculative;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use durawarp_persist::vocab::{CommitRule, Machines, RegionRule};
use durawarp_persist::{ControllerHandler, Handler, HandlerPlace, PathLinks, Scheme, SmHandler};

use super::core_regions::buffer::{CoreBuffer, PathRule};
use super::core_regions::{self, lines::HomeLines};

pub use parameters::CwspSpec;

/// The defaults, with sources, as a scheme file.
pub const DEFAULTS: &str = include_str!("cwsp/cwsp.toml");

/// The scheme.
#[derive(Debug, Clone)]
pub struct Cwsp {
    spec: Arc<CwspSpec>,
}

impl Cwsp {
    /// With these parameters.
    pub fn new(spec: CwspSpec) -> Cwsp {
        Cwsp { spec: Arc::new(spec) }
    }
}

impl Scheme for Cwsp {
    fn name(&self) -> &'static str {
        "cwsp"
    }

    fn description(&self) -> &'static str {
        "whole-system persistence: stores are written ahead with undo logs, in LightWSP's regions (cWSP; no idempotence)"
    }

    fn sm_handler(&self, place: HandlerPlace) -> Box<dyn SmHandler> {
        let &CwspSpec { feb_entries, entry_bytes, path_mb_s, .. } = &*self.spec;
        Box::new(CoreBuffer::new(PathRule { feb_entries, entry_bytes, path_mb_s, stops: false }, place))
    }

    fn slice_handler(&self, place: HandlerPlace) -> Option<Box<dyn Handler>> {
        Some(Box::new(HomeLines::new(place)))
    }

    fn controller_handler(&self, place: HandlerPlace) -> Option<Box<dyn ControllerHandler>> {
        Some(Box::new(speculative::SpeculativeWrites::new(place)))
    }

    fn path_links(&self) -> Option<PathLinks> {
        Some(core_regions::path_links(self.spec.path_latency_ns, self.spec.ack_latency_ns))
    }

    fn drops_evictions(&self) -> bool {
        true
    }

    fn machines(&self) -> Machines {
        Machines::Cpu
    }

    fn unfit(&self, place: HandlerPlace) -> Option<(String, String)> {
        core_regions::unfit(place)
    }

    fn regions(&self) -> Option<RegionRule> {
        let spec = &self.spec;
        Some(RegionRule {
            threshold_stores: spec.threshold_stores,
            unroll: spec.unroll,
            speculative_unroll: spec.speculative_unroll,
            unroll_factor: spec.unroll_factor,
            prune: spec.prune,
            uniform_once: false,
            after_sync: true,
            of_ctas: false,
            commit: CommitRule::Speculative,
        })
    }

    fn logs(&self) -> bool {
        false
    }
}
