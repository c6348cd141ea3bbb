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

use durawarp_persist::vocab::{CommitRule, RegionRule};

use super::core_regions::buffer::PathRule;
use super::core_regions::{CoreRegions, REGIONS};

pub use parameters::CapriSpec;

/// The defaults, with sources, as a scheme file.
pub const DEFAULTS: &str = include_str!("capri/capri.toml");

/// Bytes that it adds to each core: LightWSP section V-G4.
pub const BYTES_PER_CORE: u64 = 54 << 10;

/// With these parameters.
pub fn capri(spec: CapriSpec) -> CoreRegions {
    let CapriSpec { feb_entries, entry_bytes, path_mb_s, path_latency_ns, ack_latency_ns, .. } = spec;
    let CapriSpec { threshold_stores, unroll, speculative_unroll, unroll_factor, prune, .. } = spec;
    let commit = CommitRule::Pipelined;
    let spec = Arc::new(spec);
    CoreRegions {
        name: "capri",
        description: "whole-system persistence: regions over a path of whole lines that stops at every boundary (Capri, HPDC'22)",
        path: PathRule { feb_entries, entry_bytes, path_mb_s, stops: true },
        latencies: (path_latency_ns, ack_latency_ns),
        regions: RegionRule { threshold_stores, unroll, speculative_unroll, unroll_factor, prune, commit, ..REGIONS },
        controller: Box::new(move |place| Box::new(back_end::BackEndBuffer::new(spec.clone(), place))),
    }
}
