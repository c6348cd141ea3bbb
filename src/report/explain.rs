//! What a scheme did in a run, and why: for each scheme that can be explained a renderer, found by the scheme's name.

mod markers;
mod regions;
mod selection;

use serde_json::Value;

use crate::outcome::Outcome;
use crate::persist::storage::StorageCost;

pub use selection::reasons;

/// An explanation.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// To be read.
    pub text: String,
    /// The same, and what was too much for it, as data.
    pub data: Value,
}

type Explain = fn(&Outcome, &[StorageCost]) -> Option<Explanation>;

/// Schemes that can be explained, by name.
const EXPLAINED: [(&str, Explain); 3] =
    [("agpm", selection::explain), ("nvw-fifo", markers::explain), ("light-wsp", regions::explain)];

/// Names of the schemes whose runs can be explained.
pub fn explained() -> impl Iterator<Item = &'static str> {
    EXPLAINED.iter().map(|(name, _)| *name)
}

/// What a run's scheme did, if it can be told; `storage` is what the scheme adds to the machine.
pub fn explanation(outcome: &Outcome, storage: &[StorageCost]) -> Option<Explanation> {
    EXPLAINED.iter().find(|(name, _)| *name == outcome.scheme).and_then(|(_, explain)| explain(outcome, storage))
}
