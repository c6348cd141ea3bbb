//! `capri`: whole-system persistence by recoverable regions, a buffer that survives at the controllers, and a
//! path that stops at every boundary; on machines of CPU cores.
//!
//! ```text
//!   core ──64 B a store──> front-end buffer ──persist path──> back-end buffer ──region by region──> NVM
//!                               ▲ stops behind a boundary          └─ bdry-ACKs among controllers
//!                               └───── persisted, from every controller ──┘
//! ```
//! Programs run formed into LightWSP's regions. A store sends a whole line over the path, at a boundary the
//! path stops until all controllers have written the region. A controller writes a region once all have its
//! boundary. Its back-end buffer survives a power failure: regions whose boundary all controllers have are
//! written then, all others are dropped.
//!
//! Source: Jeong, Zeng, Jung, "Capri" (HPDC'22), as LightWSP tells of it, which compares itself with it:
//! sections II-C2 (front-end and back-end buffers, a line for 8 B, 54 KB a core) and V-B (with several
//! controllers the path stops; 4 GB/s, 32 GB/s by default).
//!
//! Readings:
//! * What is on the path and in the buffers is a line, of which the bytes that were stored count: the rest
//!   may be another core's, of a region that has not ended.
//! * No region has an ID. A controller takes all that it holds of a core for the region whose boundary has
//!   come, which is so as long as the path stops. Numbers in messages are for journals and for cores that
//!   ask.
//! * With several controllers each tells the others that a boundary has come, as under LightWSP: a region is
//!   sure once all have it. Controllers tell the core that they have written it.
//! * Lines that leave the shared cache are dropped: what persists comes by the path. So undo logs are never
//!   used.
//! * How cores are ordered is in the head of [`super::core_regions`].
//!
//! Not modelled: energy and time of recovery; a back-end buffer that is full. It holds one region of a core,
//! and more than its entries only where a system call stores more (`backend_most_entries`).

mod back_end;
mod parameters;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use durawarp_persist::vocab::{CommitRule, Machines, RegionRule};
use durawarp_persist::{ControllerHandler, Handler, HandlerPlace, PathLinks, Scheme, SmHandler};

use super::core_regions::buffer::{CoreBuffer, PathRule};
use super::core_regions::{self, lines::HomeLines};

pub use parameters::CapriSpec;

/// The defaults, with sources, as a scheme file.
pub const DEFAULTS: &str = include_str!("capri/capri.toml");

/// Bytes that it adds to each core: LightWSP section V-G4.
pub const BYTES_PER_CORE: u64 = 54 << 10;

/// The scheme.
#[derive(Debug, Clone)]
pub struct Capri {
    spec: Arc<CapriSpec>,
}

impl Capri {
    /// With these parameters.
    pub fn new(spec: CapriSpec) -> Capri {
        Capri { spec: Arc::new(spec) }
    }
}

impl Scheme for Capri {
    fn name(&self) -> &'static str {
        "capri"
    }

    fn description(&self) -> &'static str {
        "whole-system persistence: regions over a path of whole lines that stops at every boundary (Capri, HPDC'22)"
    }

    fn sm_handler(&self, place: HandlerPlace) -> Box<dyn SmHandler> {
        let &CapriSpec { feb_entries, entry_bytes, path_mb_s, .. } = &*self.spec;
        Box::new(CoreBuffer::new(PathRule { feb_entries, entry_bytes, path_mb_s, stops: true }, place))
    }

    fn slice_handler(&self, place: HandlerPlace) -> Option<Box<dyn Handler>> {
        Some(Box::new(HomeLines::new(place)))
    }

    fn controller_handler(&self, place: HandlerPlace) -> Option<Box<dyn ControllerHandler>> {
        Some(Box::new(back_end::BackEndBuffer::new(self.spec.clone(), place)))
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
            commit: CommitRule::Pipelined,
        })
    }

    fn logs(&self) -> bool {
        false
    }
}
