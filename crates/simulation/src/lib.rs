//! Experiments: a machine, a scheme and a workload that are made one, run, let crash, and varied.
//!
//! ```text
//! config ─┐
//! schemes ┼─> run::Recipe ─> run::Experiment ─> assemble ─> engine ─> outcome
//! workload┘        │                │                                   ^
//!                  │                └─> crash: power failures, judged ──┤
//!                  └─> sweep: many recipes over the cores of hosts ─────┘
//! ```
//! | module | what it has |
//! |---|---|
//! | [`config`] | machines and schemes as documents, presets, imports of other simulators' files |
//! | [`assemble`] | components and links of a machine |
//! | [`mod@run`] | recipes, experiments, checkpoints, sampling, the reference beside a run |
//! | [`outcome`] | what came of a run, as plain data |
//! | [`crash`] | power failures at every instant that matters |
//! | [`bisect`], [`determinism`] | where two runs part; whether any number of threads gives the same |
//! | [`sweep`] | many experiments, stored and resumed |
//! | [`one_channel`] | a memory channel by itself, driven by streams of requests |
//! | [`experiment`] | the short way of the facade |

pub mod assemble;
pub mod bisect;
pub mod config;
pub mod crash;
pub mod determinism;
pub mod experiment;
pub mod one_channel;
pub mod outcome;
pub mod run;
pub mod sweep;

pub use config::{MachineConfig, Override, SchemeConfig};
pub use crash::{CrashReport, CrashRequest};
pub use experiment::{Sweep, SweepPoint};
pub use outcome::Outcome;
pub use run::{Conduct, Experiment, Finished, Part, Recipe, run};
pub use sweep::Done;
