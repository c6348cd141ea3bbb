//! A reason to look twice at a result, as it stands in the outcome's JSON.

use serde::{Deserialize, Serialize};

/// Why a result may be worth less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Only a sample was simulated in detail: times and counters are estimates.
    Sampled,
    /// Times and counters are of a region of interest.
    Region,
    /// It went on from a checkpoint with other parameters: times and counters are of both parts together.
    Forked,
    /// What the program took for durable need not be.
    Undurable,
    /// Parameters that it depends on have no source of their own.
    Unsourced,
    /// Something was configured and had no part in the run.
    Unexercised,
    /// A limit was hit: of the run, of a queue, of what is kept.
    Cap,
    /// A counter was full, or a histogram holds most in its last, open bucket.
    Saturated,
    /// The program asked for something that is not modelled, or not counted apart.
    Unmodelled,
    /// The program is a trace: what came of it is timing alone.
    Trace,
}

impl Kind {
    /// Every kind, with its word in tables.
    pub const ALL: [(Kind, &str); 10] = [
        (Kind::Sampled, "sampled"),
        (Kind::Region, "region"),
        (Kind::Forked, "forked"),
        (Kind::Undurable, "undurable"),
        (Kind::Unsourced, "unsourced"),
        (Kind::Unexercised, "unexercised"),
        (Kind::Cap, "cap"),
        (Kind::Saturated, "saturated"),
        (Kind::Unmodelled, "unmodelled"),
        (Kind::Trace, "trace"),
    ];

    /// Its word.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// A reason to look twice at a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caveat {
    /// Of what kind.
    pub kind: Kind,
    /// What, in a sentence without a full stop.
    pub text: String,
}
