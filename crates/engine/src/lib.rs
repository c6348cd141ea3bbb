//! A conservative parallel discrete-event engine that knows no GPU.
//!
//! Components own all of their state and meet only by timestamped messages over links of latency >= 1 tick.
//! See `ARCHITECTURE.md` for the rules; each file below states its own.
//!
//! ```text
//!   topology ──> simulation ──> driver (legs, crew, lines) ──> partition (rounds) ──> component
//!                    │         tiers, horizon: which windows      queue, agenda          Ctx: send, wake_at
//!                    └─> stats, digests, RunEnd                   (what is due)
//!                    └─> trace ──> scaling                        what more threads would give
//!   reference: the same results by one heap, for tests
//! ```

#![warn(missing_docs)]

pub(crate) mod component;
pub(crate) mod deadlock;
pub(crate) mod reference;
pub(crate) mod stats;
pub(crate) mod time;

mod agenda;
mod cell;
mod context;
mod digest;
#[allow(clippy::disallowed_methods, reason = "clocks and threads decide placement there, never a result")]
mod driver;
mod event;
mod horizon;
mod lending;
mod loan;
mod message;
mod options;
mod partition;
mod placement;
mod queue;
mod scaling;
mod simulation;
mod state;
mod tiers;
mod topology;
mod trace;
mod wires;

pub use component::{Component, Progress, Wait};
pub use context::Ctx;
pub use deadlock::{Blockage, blockage};
pub use digest::{EpochDigests, StateDigest, first_difference};
pub use driver::Barrier;
pub use event::{MAX_COMPONENTS, MAX_PHASE, Tie};
pub use horizon::{Clip, Horizon, Window};
pub use message::{ComponentId, Message, Port};
pub use options::{Fallback, Inspection, Lookout, Rebalance, RunEnd, RunOptions, Snapshot};
pub use placement::Placement;
pub use reference::Reference;
pub use scaling::{Parts, Scaling, ThreadScaling};
pub use simulation::Simulation;
pub use state::{align, load_simulation, save_simulation};
pub use stats::{EngineStats, RoundTotals};
pub use time::{Clock, Time, Timebase};
pub use topology::{Link, Topology, TopologyError, TopologyFault};
