//! A part of a launch: what a sampled run simulates of it.
//!
//! The machine runs some CTAs of the grid, numbered and indexed as in the whole. In the middle of a grid
//! CTAs end at different times, and so the next ones begin at different times; a part that begins there
//! would start as many as fit at once, in step. `fill_interval` spreads the first ones over the time that a
//! CTA takes.
//!
//! Not modelled: what the CTAs before the part left in caches, queues and open rows; a sampled run warms
//! these up by CTAs that it does not count.

use crate::checkpoint::value;
use crate::engine::Time;

/// The CTAs of a launch that run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchPart {
    /// The first.
    pub first: u64,
    /// How many.
    pub ctas: u64,
    /// Ticks between departures of the first CTAs, as many as fit on the SMs, where that is longer than the
    /// usual interval.
    pub fill_interval: Time,
    /// The simulation halts when so many of them have ended.
    pub halt_after: Option<u64>,
}

value!(record LaunchPart { first, ctas, fill_interval, halt_after });

impl LaunchPart {
    /// All CTAs of a launch.
    pub fn whole(ctas: u64) -> Self {
        LaunchPart { first: 0, ctas, fill_interval: 0, halt_after: None }
    }
}
