//! Durawarp as a Python module: the native half of the package `durawarp`.
//!
//! ```text
//!  durawarp/*.py (what users call) ──keys and values──> request ─> Recipe ─> runs, sweeps ─┐
//!              <──────JSON text────────────────── outcomes, reports, tables <──────────────┘
//! ```
//! What crosses is plain: texts, numbers, and JSON of the schemas of `--json`. Invariants: the interpreter's
//! lock is released while anything is read or simulated; signals are heeded and progress is told by the
//! thread that called ([`watch`]); no result differs from the command line's. Not here: defaults, frames,
//! bars and executors, which are Python.

mod errors;
mod request;
mod runs;
mod studies;
mod sweeps;
mod watch;

use pyo3::prelude::*;

/// The native half of `durawarp`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::runs::{check, compare, crash, default_metrics, metric_values, metrics, run, summary};
    #[pymodule_export]
    use super::studies::{bisect, diff, explain, read_outcome, reproduce};
    #[pymodule_export]
    use super::sweeps::{Keeper, Plan, Results, run_point};
}
