//! Recoverable regions that each core commits in an order of its own: what `capri` and `cwsp` share.
//!
//! ```text
//!  core ──copy of each store──> buffer ──persist path──> controllers: when a region is written is the scheme's
//!    ▲  └── boundary of a region, to all ─────────────────┘ └─ persisted, to the core
//!    └── waits at atomics, fences and calls for regions of other cores whose lines it took
//! ```
//! No ID is drawn: a region is known by its core, and a core's regions persist one after the other. Among
//! cores there is order by waiting alone. A line that goes from a core to another brings the last region that
//! stored to it, while that has not persisted. At an atomic operation, at a `fence` behind loads, at a system
//! call and where a thread begins, a hart waits until all regions that its core was brought have persisted at
//! all controllers. An atomic asks for its line first, so that the region which released a lock has persisted
//! before the lock is taken.
//!
//! Source: LightWSP's section II-C tells of both schemes, and of neither how cores are ordered: all that
//! waits for other cores here is a reading of ours. It has programs without data races persist in an order
//! that their synchronisation allows. The OS is a line that all who call it take: each answer and wake brings
//! the last regions of the cores that called before, and a hart goes on from it when these have persisted.
//! When the process ends, harts that run end their regions where they stand, with all registers. Invariants:
//! who waits at a synchronisation has no region open, so that nobody waits in a circle; a path never waits
//! for another core. A thread that spins with plain loads has ended its region before the loop: regions are
//! formed with a boundary there (`regions` of the crate `riscv`). Not modelled: cores of several harts, which
//! are refused; what keeping the last region of a line costs.

pub mod account;
pub mod asked;
pub mod buffer;
pub mod held;
pub mod lines;
pub mod messages;
mod scheme;
#[cfg(test)]
pub(crate) mod tests;

use durawarp_base::spec::Nanos;

use super::entry::Faults;

pub use scheme::{CoreRegions, REGIONS};

/// What is wrong with the latencies of its links.
pub fn link_faults(path: Nanos, ack: Nanos) -> Faults {
    let links = [("path_latency_ns", path), ("ack_latency_ns", ack)];
    links.into_iter().filter(|(_, link)| link.ps == 0).map(|(key, _)| (key, "a link takes time".to_owned())).collect()
}
