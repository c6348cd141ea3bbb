//! A deterministic, parallel discrete-event engine with conservative synchronisation. It knows no GPU.
//!
//! A model is *components* that own their state and meet only by *messages* with timestamps, over *links*
//! that take at least one tick. The engine runs it on any number of threads, and gives the same result on
//! each: the same events in the same order at every component, the same final state, the same statistics.
//!
//! ```text
//!   Topology ── add, connect, wake_at, post ──> Simulation ── run(RunOptions) ──> RunEnd, digest, EngineStats
//!                                                   │  ^
//!                                                   └──┘  run again: on from a limit, a pause, a stop
//! ```
//!
//! # A first model
//!
//! ```
//! use durawarp_engine::{Component, Ctx, Link, Message, Port, RunEnd, RunOptions, Simulation, Topology};
//!
//! #[derive(Debug)]
//! struct Token(u64);
//!
//! impl Message for Token {}
//!
//! /// Passes a token on until it has gone round often enough.
//! struct Node;
//!
//! impl Component<Token> for Node {
//!     fn handle(&mut self, Token(hops): Token, cx: &mut Ctx<'_, Token>) {
//!         if hops < 10 {
//!             cx.send(Port(0), Token(hops + 1), 0);
//!         }
//!     }
//!     fn wake(&mut self, cx: &mut Ctx<'_, Token>) {
//!         cx.send(Port(0), Token(1), 0);
//!     }
//! }
//!
//! let mut topology = Topology::new();
//! let [a, b] = ["a", "b"].map(|name| topology.add(name, Box::new(Node)));
//! topology.connect(a, Port(0), b, Link { latency: 7, phase: 0 });
//! topology.connect(b, Port(0), a, Link { latency: 5, phase: 0 });
//! topology.wake_at(a, 0);
//! let mut simulation = Simulation::new(topology).unwrap();
//! let end = simulation.run(&RunOptions::default());
//! // Ten hops, five of 7 ticks and five of 5.
//! assert!(matches!(end, RunEnd::Finished { at: 60 }), "{end:?}");
//! ```
//! Larger ones are in `examples/`; `tests/library.rs` runs each at 1, 2, 3 and 8 threads:
//!
//! | example | what it shows |
//! |---|---|
//! | `phold.rs` | the standard load of parallel simulators: random numbers as state, any size, uneven work |
//! | `queueing_network.rs` | wake-ups as ends of services; means within 2 % of the exact ones of theory |
//! | `ring.rs` | ends of runs: finished, cut by a limit, saved and loaded, deadlocked |
//!
//! # Writing a component
//!
//! * [`Component::handle`] gets one message, [`Component::wake`] the time that the component asked for. Both
//!   act through [`Ctx`] alone: [`Ctx::send`] out of a port, [`Ctx::wake_at`] for itself. At most one wake-up
//!   is pending; the earlier of two is kept.
//! * State is the component's own. A component shares no memory with another, reads no clock of the host,
//!   draws random numbers from a generator that is part of its state, and iterates over no hash map. The
//!   engine cannot check these four; a component that breaks one loses determinism.
//! * Messages are plain data of one type, usually an enum. They are moved, never cloned: up to 64 bytes are
//!   cheap, larger contents are boxed.
//! * [`Component::digest`] and [`Message::digest`] put contents into the digest of a run. Without them it
//!   covers times and order only.
//! * Of one instant, a component handles messages by the phase of their link, then by the sender's id, then
//!   in the order in which that sender sent them; its wake-up comes last. The order never depends on the
//!   order of insertion or on threads ([`Tie`]).
//! * Back-pressure is a message, too: a credit that travels back. No component looks into another.
//!
//! # Links and lookahead
//!
//! The least latency between two different components is the *lookahead*: how far all components run without
//! hearing from each other. A round is a window of that width ([`Horizon`]); in it each component handles all
//! of its events, alone, before the next component is run. So constant delays belong on links
//! ([`Link::latency`]), not into the extra delay of [`Ctx::send`]: a link of 100 ticks with rounds of 100
//! ticks is a hundred times less synchronisation than one of 1. A link to itself bounds nothing, and a
//! latency of 0 is refused.
//!
//! Where latencies differ much by direction, components are dealt into *tiers* ([`Topology::put_in_tier`]),
//! each with windows of its own. Components that talk at short latency are *fused* ([`Topology::fuse`]) and
//! share a thread. Results depend on neither, counts of rounds do.
//!
//! Times are whole ticks; [`Timebase`] finds the tick in which every edge of several clocks is whole.
//!
//! # Ends of runs
//!
//! A run ends as data ([`RunEnd`]), and most ends can be gone on from:
//!
//! | end | cause | goes on |
//! |---|---|---|
//! | `Finished` | nothing is pending, and no component waits | after [`Simulation::post`] |
//! | `Deadlock` | nothing is pending, and [`Component::waits`] names waits; [`blockage`] finds the cycle | the same |
//! | `TimeLimit` | every event up to the limit is handled, none later | yes |
//! | `Paused`, `Stopped`, `Quiet` | a pause, a flag of the caller's, a [`Lookout`] that saw no activity | yes |
//! | `Halted` | a component called [`Ctx::halt`] | yes |
//! | `Failed` | a component called [`Ctx::fail`] with an error | not promised |
//! | `Panicked` | a component panicked; the others finished the round | no |
//!
//! Of several components that fail or halt in a round, the one with the least (time, id) is reported, at any
//! number of threads. [`save_simulation`] writes a simulation between two runs as bytes, [`load_simulation`]
//! takes them over into one that was built anew.
//!
//! # What holds, and what holds it
//!
//! * Events, digests and [`RoundTotals`] are equal at any number of threads, placement, loan or fallback.
//!   Held by `tests/rules/same_results.rs`: random models, dice in place of the clock, beside [`Reference`].
//! * No message arrives in the round in which it was sent, but at its sender: [`Ctx::send`] panics, in
//!   release builds, too.
//! * A topology that runs has sound links and ports: [`Simulation::new`] returns all faults at once.
//! * The wall clock decides placement and how many threads work, never a result. It is read in `driver` only;
//!   clippy refuses it elsewhere.
//! * The barrier loses no wake-up: loom, in `driver/lines.rs`.
//!
//! [`Reference`] runs a topology by one heap, one event at a time, and shares nothing with the parallel
//! drivers but the order: equal digests mean that an odd result is the model's. With
//! [`RunOptions::epoch_ticks`], [`first_difference`] takes two runs that differ to an epoch and a component.
//!
//! # Speed
//!
//! `threads` is a limit. When one thread is faster, it takes over ([`Fallback`]); when loads are uneven,
//! components move ([`Rebalance`]) and are lent for a round. [`EngineStats::mean_events_per_round`] says
//! whether more threads can pay: below about 1,000 events of 50 ns, hardly. [`Simulation::scaling`] predicts
//! more threads from a traced run. Steady state allocates nothing. `benches/engine_table.rs` of the
//! repository measures; `benches/RESULTS.md` has figures.
//!
//! # What it is not for
//!
//! * Models without delays between components: with links of 1 tick a round is one tick, and a plain event
//!   loop is faster. A look into another component at the same instant does not exist.
//! * Optimistic execution: nothing is rolled back.
//! * Several processes or hosts: threads of one process only.
//! * Real-time or hardware in the loop: simulated time has no tie to the wall clock.
//! * Topologies that change: components and links are fixed once a simulation is made. At most 2^20
//!   components.
//!
//! # The wall around it
//!
//! The engine uses no crate of the workspace but `durawarp_checkpoint`. What would bend it towards one model
//! does not compile:
//!
//! ```compile_fail,E0432
//! use durawarp_kernel::ir::Kernel; // error[E0432]: unresolved import
//! ```
//!
//! # Inside
//!
//! ```text
//!   topology ──> simulation ──> driver (legs, crew, lines) ──> partition (rounds) ──> component
//!                    │         tiers, horizon: which windows      queue, agenda          Ctx: send, wake_at
//!                    └─> stats, digests, RunEnd                   (what is due)
//!                    └─> trace ──> scaling                        what more threads would give
//!   reference: the same results by one heap, for tests
//! ```
//! Threads meet once a round (`driver/lines.rs`): they spin, then yield, then park. Messages between
//! partitions travel in recycled batches, swapped under a lock that is never contended
//! (`driver/exchange.rs`): a round of two threads takes 0.14, 2.0 and 7.4 µs with 0, 128 and 1,024 events
//! each, over channels 5.4, 3.9 and 9.7 (`benches/engine.rs`, `handover`). The head of each file states its
//! source and its invariants.

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
