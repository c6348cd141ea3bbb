//! How launches ran that may overlap: those of several streams, and programmatic ones.

use serde::{Deserialize, Serialize};

/// Launches of a program with several streams, or with programmatic launches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streams {
    /// Streams that launches were of.
    pub streams: u64,
    /// Launches that may begin before the one before them in their stream is over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub programmatic: u64,
    /// The most launches that ran at once.
    pub most_at_once: u64,
    /// Why they ran one after another, where they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_by_one: Option<String>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Streams {
    /// As a caveat says it; none where launches could have overlapped and did not.
    pub fn told(&self) -> Option<String> {
        let Streams { streams, programmatic, most_at_once, one_by_one } = self;
        let which = match (streams, programmatic) {
            (1, 1) => "a programmatic launch and the one before it".to_owned(),
            (1, _) => format!("{programmatic} programmatic launches and those before them"),
            _ => format!("launches of {streams} streams"),
        };
        match one_by_one {
            Some(why) => Some(format!("{which} ran one after another, though they may have overlapped: {why}")),
            None if *most_at_once > 1 => Some(format!(
                "up to {most_at_once} launches ran at once: counters of a launch are what the whole machine counted \
                 between the end of the one that ended before it and its own end; counters of a kernel are exact only \
                 where its CTAs shared no SM with those of another"
            )),
            None => None,
        }
    }
}
