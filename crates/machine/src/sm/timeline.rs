//! The timeline of an SM: its CTAs, its warps' waits for durability, its CTAs' persist barriers, its warps'
//! recoverable regions; what it counted over time.
//!
//! A wait begins in the cycle after its instruction issued and is over in the cycle in which the warp goes
//! on, as the counters of stalls have it. Nothing here is read by the model.

use crate::region_spans::RegionSpans;
use durawarp_base::timeline::{Growth, Label, Recorder};
use durawarp_engine::Time;

/// What an SM keeps.
#[derive(Debug)]
pub struct SmTimeline {
    /// By CTA slot: resident CTAs.
    pub ctas: Recorder,
    /// By warp slot: waits for durability and at persist barriers.
    pub stalls: Recorder,
    /// By CTA slot: persist barriers of CTA scope.
    pub barriers: Recorder,
    /// By warp slot: regions.
    pub regions: RegionSpans,
    /// Warp instructions, lookups and hits of the L1; resident warps and those that wait for memory, in warp
    /// cycles.
    pub growth: Growth,
}

impl SmTimeline {
    /// A timeline of at most `spans` spans of each kind.
    pub(super) fn new(spans: usize) -> Self {
        let recorder = || Recorder::new(spans);
        let (ctas, stalls, barriers) = (recorder(), recorder(), recorder());
        SmTimeline { ctas, stalls, barriers, regions: RegionSpans::new(spans), growth: Growth::new(3, 2) }
    }

    /// A warp has come to a persist barrier of its CTA; one of the kernel is kept by the command processor.
    pub(super) fn barrier_begins(&mut self, slot: usize, at: &'static str, launch: u32, cta: u32, time: Time) {
        self.barriers.begin(slot, time, Label::Barrier { at, launch, cta: Some(cta) });
    }
}
