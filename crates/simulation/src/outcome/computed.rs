//! What follows from the rest of an outcome: energy, wear, caveats.
//!
//! Pure functions, so that any result can be computed again.

mod energy;
mod wear;

use super::{Outcome, validity};

/// The outcome with all that follows from the rest of it.
#[must_use]
pub fn computed(outcome: Outcome) -> Outcome {
    let (energy, wear) = (energy::of(&outcome), wear::of(&outcome));
    Outcome { energy, wear, validity: validity::of(&outcome), ..outcome }
}
