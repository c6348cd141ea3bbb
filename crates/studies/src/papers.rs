//! Papers' experiments run again: what each figure needs, ours beside the published numbers, and what may be
//! asked.
//!
//! ```text
//! paper: figures ─ plan ─> runs, each once ─ sweep ─> outcomes ─> numbers ─┬─> tables ─> CSV, text, page
//! published (CSV, with its place in the paper) ─────────────────────────────┴─> asks: met or not
//! ```
//! Bars of figures are seldom in a text, so the numbers that a paper's text gives stand beside ours, and an
//! *ask* is what a simulator of our own may honestly claim of them: an order, a sign, a broad band. An ask
//! that is not met is a finding. Nothing here changes a model.
//!
//! # To add a paper
//!
//! A folder `papers/NAME/` beside `agpm/`, a file `papers/NAME.rs` that opens it with a `pub const PAPER:`
//! [`Paper`], and its line in [`PAPERS`]: the command line, files, pages and tests find it there. It has
//!
//! * its [`Figure`]s, a row each: name, title, and three functions. `runs` says what the figure needs of a
//!   [`Request`], as [`Run`]s: workload, scheme, and changes of machine, scheme or parameters as one would
//!   type them behind `--set`. Runs that figures share are run once. `finding` makes tables, asks and notes
//!   of the [`Runs`], where it looks an outcome up by the very same `Run`; where a run failed there is none,
//!   which leaves a gap. `draw` makes a picture of the tables;
//! * for each ask, in the tests of its asks, numbers of a machine that meets it and of one that misses it
//!   (`papers/tests/pairs.rs`): what every machine meets is no ask. An ask without them fails a test;
//! * its published values as a CSV file, each with its place in the paper ([`Published`]);
//! * what its figures show one by one (`kernels`), and what it does otherwise than our manifests about undo
//!   logging.
//!
//! Runs, tables and asks are functions, and no files with expressions. Figures share runs, and every reading
//! of a text repeats them. Tables join runs with facts of a workload. An ask depends on which runs there are,
//! and says what its verdict rests on. A language for all that would be larger than the functions.
//!
//! Invariants: a run serves every figure that needs it; tables and verdicts are pure functions of outcomes; a
//! scheme that the catalogue does not have is left out and said so.

pub mod agpm;
pub mod ask;
mod asked;
pub mod broi;
pub mod lightwsp;
pub mod lightwsp_cpu;
mod others;
pub mod page;
pub mod paper;
pub mod plan;
pub mod published;
pub mod reproduction;
pub mod runs;
pub mod scoped;
pub mod table;

pub use ask::{Ask, Verdict};
pub use asked::Asked;
pub use paper::{Figure, Finding, Paper, Reading, Request};
pub use plan::PaperPlan;
pub use published::Published;
pub use reproduction::{Reproduction, RunRecord};
pub use runs::{Run, Runs};
pub use table::{Cell, FigureTable};

use durawarp_base::diagnostic::Diagnostic;

/// The papers that there are.
pub const PAPERS: [&Paper; 5] = [&agpm::PAPER, &scoped::PAPER, &lightwsp::PAPER, &lightwsp_cpu::PAPER, &broi::PAPER];

/// The paper of a name.
///
/// # Errors
/// There is none; the nearest that there is.
pub fn find(name: &str) -> Result<&'static Paper, Diagnostic> {
    let names = || PAPERS.iter().map(|paper| paper.name);
    PAPERS.into_iter().find(|paper| paper.name == name).ok_or_else(|| {
        let all: Vec<&str> = names().collect();
        let message = format!("there is no paper `{name}` to reproduce; there are {}", all.join(", "));
        Diagnostic::nowhere("", message).with_nearest(name, names())
    })
}

#[cfg(test)]
mod tests;
