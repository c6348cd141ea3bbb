//! Durawarp: a fast, deterministic, parallel discrete-event simulator of GPUs with persistent memory.
//!
//! A run takes a machine (SMs, caches, memory controllers, DRAM, NVM), a persistency scheme and a workload
//! (PTX kernels with a manifest), and gives an [`Outcome`]: times, counters, digests, and a verdict on the
//! memory that the program left. The same inputs give the same bits at any number of threads. `README.md` is
//! the manual of the command line; `ARCHITECTURE.md` is the map of the source.
//!
//! # Run a workload
//!
//! [`Experiment::of`] begins a [`Recipe`]. Its setters do not fail: [`Recipe::run`] tells all that is wrong
//! at once. What follows from the scheme (undo logs, buffers that must be persistent) is no setting.
//!
//! ```
//! use durawarp::Experiment;
//!
//! # fn main() -> Result<(), durawarp::Diagnostics> {
//! let recipe = Experiment::of("atax").profile("ci").set("params.NX", 16);
//! let recipe = recipe.machine("agpm-table4").scheme("nt-store").set("l2.slice_kb", 256);
//! let outcome = recipe.run()?;
//! println!("{} cycles, digest {}", outcome.time.core_cycles, outcome.digest);
//! # Ok(())
//! # }
//! ```
//! [`Recipe::crash`] lets power fail at every instant that matters and judges what is left; [`Recipe::sweep`]
//! varies keys.
//!
//! # Read an outcome
//!
//! An [`Outcome`] is plain data, the same as the JSON of `durawarp run --json`. Look at how the run ended and
//! whether the result is right before its numbers are used; [`Outcome::validity`](outcome::Outcome::validity)
//! says what may make them worth less.
//!
//! ```
//! use durawarp::Experiment;
//! use durawarp::outcome::End;
//!
//! let outcome = Experiment::of("atax").profile("ci").scheme("store+clwb").run().unwrap();
//! assert_eq!(outcome.end, End::Finished);
//! assert!(outcome.verification.as_ref().unwrap().passed);
//! let written = outcome.total("memory_controller", "nvm_written_bytes");
//! let json = serde_json::to_string(&outcome).unwrap();
//! assert!(written > 0 && json.contains("nvm_written_bytes"));
//! ```
//!
//! # Write a scheme
//!
//! A [`Scheme`](persist::Scheme) makes handlers, one for each SM and one for the host, which decide which way
//! a store takes, what a fence waits for and what a boundary writes back. What it promises of a power failure
//! it declares ([`Scheme::promises`](persist::Scheme::promises)), and crash tests judge its handlers by that;
//! the one below declares nothing, so that it promises nothing. A recipe takes a scheme in place of a name.
//! `examples/own_scheme.rs` is one with a policy; [`schemes`] has those that are built in, and their
//! catalogue.
//!
//! ```
//! use durawarp::Experiment;
//! use durawarp::persist::{Handler, HandlerPlace, Outbox, Route, Scheme, SmHandler, Store, StoreRule};
//!
//! /// Stores bypass the caches.
//! #[derive(Debug)]
//! struct Bypass;
//!
//! impl Handler for Bypass {}
//!
//! impl SmHandler for Bypass {
//!     fn store(&mut self, _: &Store<'_>, _: &mut Outbox) -> StoreRule {
//!         StoreRule::new(Route::NonTemporal, false)
//!     }
//! }
//!
//! impl Scheme for Bypass {
//!     fn name(&self) -> &'static str {
//!         "bypass"
//!     }
//!     fn description(&self) -> &'static str {
//!         "stores to persistent memory bypass the caches"
//!     }
//!     fn sm_handler(&self, _: HandlerPlace) -> Option<Box<dyn SmHandler>> {
//!         Some(Box::new(Bypass))
//!     }
//!     fn logs(&self) -> bool {
//!         false
//!     }
//! }
//!
//! let outcome = Experiment::of("atax").profile("ci").scheme(Bypass).run().unwrap();
//! assert!(outcome.verification.unwrap().passed);
//! ```
//!
//! # Use the engine alone
//!
//! [`engine`] is a parallel discrete-event engine that knows no GPU. Its page is a guide with a first model;
//! `crates/engine/examples` has a standard load, a queueing network beside its theory, and a ring.
//!
//! # Features
//!
//! | feature | what it adds | crates to compile |
//! |---|---|---|
//! | none | experiments, crashes, sweeps, the engine: all that these pages show | 82 |
//! | `report` | outcomes as tables, figures and pages; papers' experiments | 93 |
//! | `cli` (default) | the binary `durawarp`; has `report` | 126 |
//!
//! A program that uses the library takes `durawarp = { path = "..", default-features = false }`. A
//! [`Diagnostic`] prints as `file:line:column: message (help)` there; the binary draws the line and a caret
//! as well.
//!
//! # What is API
//!
//! What these pages show. Other modules are public because the binary, tests and benches of this project are
//! crates of their own; they are hidden here, and change without notice. What only this crate uses is
//! `pub(crate)`: the lint `unreachable_pub` tells where that is forgotten.

#![warn(missing_docs)]

#[doc(inline)]
pub use durawarp_checkpoint as checkpoint;
#[doc(inline)]
pub use durawarp_engine as engine;
#[doc(inline)]
pub use durawarp_persist as persist;
#[doc(inline)]
pub use durawarp_schemes as schemes;
#[doc(inline)]
pub use durawarp_simulation::{experiment, outcome};

#[doc(hidden)]
pub use durawarp_base::{diagnostic, input, spec, stats, timeline};
#[doc(hidden)]
pub use durawarp_kernel as kernel;
#[doc(hidden)]
pub use durawarp_machine as machine;
#[doc(hidden)]
pub use durawarp_oracle as oracle;
#[cfg(feature = "report")]
#[doc(hidden)]
pub use durawarp_plot as plot;
#[doc(hidden)]
pub use durawarp_riscv as riscv;
#[doc(hidden)]
pub use durawarp_simulation::{assemble, bisect, config, crash, determinism, one_channel, run, sweep};
#[cfg(feature = "report")]
#[doc(hidden)]
pub use durawarp_studies::{devices, papers, report, sensitivity};
#[doc(hidden)]
pub use durawarp_workload as workload;

#[doc(inline)]
pub use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
#[doc(inline)]
pub use durawarp_simulation::config::{MachineConfig, Override, SchemeConfig};
#[doc(inline)]
pub use durawarp_simulation::crash::{CrashReport, CrashRequest};
#[doc(inline)]
pub use durawarp_simulation::experiment::{Sweep, SweepPoint};
#[doc(inline)]
pub use durawarp_simulation::outcome::Outcome;
#[doc(inline)]
pub use durawarp_simulation::run::{Conduct, Experiment, Finished, Part, Recipe};
#[doc(inline)]
pub use durawarp_simulation::sweep::Done;
#[doc(inline)]
pub use durawarp_workload::{Choice, Workload};
