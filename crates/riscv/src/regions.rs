//! LightWSP's compiler over decoded RISC-V: where a program's recoverable regions end, and which registers
//! are stored there.
//!
//! ```text
//! Executable ─ graph ─ liveness ─┬─ place: boundaries of the rules, threshold, merging, unrolling ─>
//! RegionTable
//!                  └─ values ────┘      (bounds: the most stores of a region, on every path)
//! ```
//! Source: Zhou, Zeng, Jung, "LightWSP: Whole-System Persistence on the Cheap", sections III-C and IV-A (the
//! compiler), IV-C (boundaries at synchronisation), IV-F (recovery). The paper's compiler changes the
//! program. Here the binary stays as it is: what comes of it is a table by pc ([`RegionTable`]), from which
//! a core executes boundaries as operations of its own.
//!
//! # A boundary
//! A boundary is before an instruction. The hart stores the registers that are live there and that it has
//! written since they were stored last, each to its slot (slot r is register r; slot 0, which x0 does not
//! need, `fcsr`), then the pc. A compiler would put each store behind the last update; a core that
//! keeps a bit for each register knows on every path which was the last, and stores nothing twice.
//!
//! | boundary | because |
//! |---|---|
//! | functions begin and return (before), calls | the paper's rule |
//! | loops with stores | a region holds at most the threshold |
//! | fences, atomics (before) | the paper's rule; which fences, [`SyncPlacement`] says |
//! | loads that acquire (before) | what a region has seen must not commit before the region that stored it |
//! | fences, atomics (behind) | the next region draws its ID once they are done ([`RegionOptions::after_sync`]) |
//! | system calls (before and behind) | what the system does is a region of its own |
//! | `pm.region`, `pause` | the program asks for it; the hart is about to wait |
//! | loops that poll: no store, a load from one address | the same: others may wait for its region |
//! | too many stores in a row | a region holds at most the threshold |
//! | indirect jumps that are no returns | as one is executed, unless its target has a boundary |
//! | before each instruction of unknown code | nothing is known of it |
//!
//! A boundary that a hart comes to without a store since its last one is left out: see `path.rs`.
//!
//! Before `lr` and behind `sc` there are boundaries; between them only where the threshold is too small for
//! what is there. An `sc` that recovery begins with fails.
//!
//! Accrued exceptions of floating point are a part of `fcsr`: in a program that reads them anywhere,
//! arithmetic writes it. In others nobody can tell what they are, and no slot is kept up for them.
//!
//! Registers that recovery can compute are not stored (`values.rs`); what is live is in `liveness.rs`, how
//! stores are counted in `bounds.rs`, merging and unrolling in `place.rs`; `path.rs` follows a hart.
//!
//! Invariants: the stores of a region, checkpoints and pc included, never exceed the threshold; those that
//! the system makes for a hart are not counted. Not modelled: the paper's unrolling of loops whose number of
//! turns is known beyond the factor of others; I/O; signals.

mod bounds;
mod graph;
mod liveness;
mod path;
mod place;
mod places;
mod table;
mod terms;
mod units;
mod values;

pub use path::RegionPath;
pub use table::{Boundary, FunctionRegions, RegionTable, Restore, check, form};
pub use terms::{
    ALL, BoundaryReason, COMPLETE, PC_SLOT, RegionError, RegionOptions, RegisterSet, SLOTS_BYTES, STATUS, STEP_SLOT,
    SyncPlacement, THRESHOLD_MIN, UNROLL_MAX, stores, written,
};
pub use values::Recipe;
