//! Undo logging in persistent memory, added to plain kernels as a manifest's `[instrument]` says.
//!
//! ```text
//! [instrument] ─ read ─> Instrument ─┐
//! Demands, Overrides ────────────────┼─ apply ─> Plan with logs, flags and steps ─┬─> host program
//! kernel.ptx ─ kernel::ptx::sites ───┴─ text ──> PTX with logging ────────────────┘
//!                                       layout: the same expressions for every thread ─> persist::undo::UndoLog
//! ```
//! Source: AGPM section II-B and Fig. 1 (a CTA's transaction), the public PACT 2019 kernels (values of the
//! flag, kernel undo logs, idempotent CTAs).
//!
//! A log mirrors its buffer: the old value of element `i` goes to element `i` of the log. A manifest may
//! choose another element (`log_index`). CTAs may share slots then, as in a published kernel, and lose each
//! other's old values. A log serves all launches, because a launch's transactions are complete, durably,
//! before the next launch begins; flags are a word a transaction, in the order in which transactions begin,
//! and never used twice.
//!
//! Invariants: without [`Demands::undo_logs`](super::Demands::undo_logs) the kernels are the manifest's own
//! and addresses are the same as with it, except for the loop log, which comes last; every original line of
//! PTX keeps its number.
//!
//! Not modelled: undo logging of single iterations of a loop, logs of launches whose number is known only at
//! run time.

pub(crate) mod apply;
mod launches;
pub(crate) mod layout;
mod text;
