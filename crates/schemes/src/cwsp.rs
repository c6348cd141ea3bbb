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

use durawarp_persist::vocab::{CommitRule, RegionRule};

use super::core_regions::buffer::PathRule;
use super::core_regions::{CoreRegions, REGIONS};

pub use parameters::CwspSpec;

/// The defaults, with sources, as a scheme file.
pub const DEFAULTS: &str = include_str!("cwsp/cwsp.toml");

/// With these parameters.
pub fn cwsp(spec: &CwspSpec) -> CoreRegions {
    let &CwspSpec { feb_entries, entry_bytes, path_mb_s, path_latency_ns, ack_latency_ns, .. } = spec;
    let &CwspSpec { threshold_stores, unroll, speculative_unroll, unroll_factor, prune, .. } = spec;
    let commit = CommitRule::Speculative;
    CoreRegions {
        name: "cwsp",
        description: "whole-system persistence: stores are written ahead with undo logs, in LightWSP's regions (cWSP; no idempotence)",
        path: PathRule { feb_entries, entry_bytes, path_mb_s, stops: false },
        latencies: (path_latency_ns, ack_latency_ns),
        regions: RegionRule { threshold_stores, unroll, speculative_unroll, unroll_factor, prune, commit, ..REGIONS },
        controller: Box::new(|place| Box::new(speculative::SpeculativeWrites::new(place))),
    }
}
