//! Durawarp: a fast, deterministic, parallel discrete-event simulator of GPUs with persistent memory.
//!
//! The rooms, top (the user) to bottom (the ground), are mapped in `ARCHITECTURE.md`; a test
//! (`tests/architecture.rs`) holds the directions that must never exist between them.

pub mod assemble;
pub mod config;
pub mod crash;
pub mod determinism;
pub mod diagnostic;
mod document;
pub mod engine;
pub mod experiment;
pub mod input;
pub mod kernel;
pub mod machine;
pub mod oracle;
pub mod outcome;
pub mod persist;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod schemes;
pub mod sensitivity;
pub mod spec;
pub mod stats;
pub mod sweep;
pub mod timeline;
pub mod workload;

pub use crash::{CrashReport, CrashRequest};
pub use experiment::{Sweep, SweepPoint};
pub use outcome::Outcome;
pub use run::{Experiment, Recipe};
