//! Recoverable regions on a timeline, of an SM or of a core, as its handler of a front-end buffer notes them.
//!
//! A region lasts from its first store's leaving the front-end buffer until its boundary does; one that
//! several warps share is that of the warp whose store left first. Nothing here is read by the model.

use durawarp_base::timeline::{Label, Recorder};
use durawarp_engine::Time;
use durawarp_persist::vocab::RegionStep;

/// Regions by lane: a warp slot of an SM, or a hart of a core.
#[derive(Debug)]
pub struct RegionSpans {
    spans: Recorder,
    /// Regions whose boundary has not left: number, lane, since when.
    open: Vec<(u32, usize, Time)>,
}

impl RegionSpans {
    /// An empty one of at most `spans` spans.
    pub(super) fn new(spans: usize) -> Self {
        RegionSpans { spans: Recorder::new(spans), open: Vec::new() }
    }

    /// What it kept.
    pub fn spans(&self) -> &Recorder {
        &self.spans
    }

    /// A region of a lane takes a step; `order` is the SM's, or the core's.
    pub(super) fn step(&mut self, step: RegionStep, region: u32, lane: usize, order: u16, now: Time) {
        let open = self.open.iter().position(|(number, ..)| *number == region);
        match (step, open) {
            (RegionStep::Stored, None) => self.open.push((region, lane, now)),
            (RegionStep::Ended, Some(at)) => {
                let (region, lane, since) = self.open.swap_remove(at);
                self.spans.whole(lane, since, now, Label::Region { what: "region", order, region });
            }
            _ => {}
        }
    }
}
