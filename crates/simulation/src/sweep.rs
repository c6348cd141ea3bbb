//! Many experiments over the cores of a host, and of many hosts.
//!
//! ```text
//! sweep .toml ─ file ─> plan ─> batch: points with keys ─ campaign ─> runner ─> outcomes ─┐
//!      comparisons, papers ──────^             store of results <────────── record ────────┘ ─> table ─> CSV, JSON
//!                       └─> grid: which point stands where in a figure (`report::sweep` draws them)
//! ```
//! Runs of a sweep are independent, so each gets one thread and as many run at a time as there are cores:
//! that is faster than any number of threads in one run. What a point came to does not depend on the others,
//! on their order or on how many run at a time. A point's key is a hash of everything that its outcome
//! follows from, so that whatever is interrupted goes on where it was, and sweeps share what they have in
//! common.

pub mod batch;
mod beginnings;
mod book;
pub mod campaign;
mod claims;
pub(crate) mod comparison;
pub mod counting;
pub mod file;
pub mod grid;
pub mod host;
mod keeper;
pub(crate) mod key;
mod lint;
pub mod metrics;
pub mod plan;
pub mod record;
pub mod runner;
#[cfg(any(test, feature = "samples"))]
#[doc(hidden)]
pub mod sample;
mod shared;
pub mod slurm;
mod store;
#[cfg(feature = "tables")]
pub mod table;

pub use batch::Batch;
pub use comparison::Comparison;
pub use file::SweepFile;
pub use keeper::Keeper;
pub use lint::lint;
pub use plan::Plan;
pub use runner::{Done, Progress, Workers};
pub use store::Store;
