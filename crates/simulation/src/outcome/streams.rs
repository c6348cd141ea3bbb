//! How launches of several streams ran.

use serde::{Deserialize, Serialize};

/// Launches of a program with several streams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streams {
    /// Streams that launches were of.
    pub streams: u64,
    /// The most launches that ran at once.
    pub most_at_once: u64,
    /// Why they ran one after another, where they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_by_one: Option<String>,
}

impl Streams {
    /// As a caveat says it; none where launches could have overlapped and did not.
    pub fn told(&self) -> Option<String> {
        let Streams { streams, most_at_once, one_by_one } = self;
        match one_by_one {
            Some(why) => Some(format!(
                "launches of {streams} streams ran one after another, though they may have overlapped: {why}"
            )),
            None if *most_at_once > 1 => Some(format!(
                "up to {most_at_once} launches ran at once: counters of a launch are what the whole machine counted \
                 between the end of the one that ended before it and its own end; counters of a kernel are exact only \
                 where its CTAs shared no SM with those of another"
            )),
            None => None,
        }
    }
}
