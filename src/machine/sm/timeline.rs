//! The timeline of an SM: its CTAs, its warps' waits for durability, its CTAs' persist barriers.
//!
//! A wait begins in the cycle after its instruction issued and is over in the cycle in which the warp goes on, as the
//! counters of stalls have it. Nothing here is read by the model.

use crate::persist::vocab::PersistScope;
use crate::timeline::{Label, Recorder};

use super::Sm;

/// What an SM keeps.
#[derive(Debug)]
pub struct SmTimeline {
    /// By CTA slot: resident CTAs.
    pub ctas: Recorder,
    /// By warp slot: waits for durability and at persist barriers.
    pub stalls: Recorder,
    /// By CTA slot: persist barriers of CTA scope.
    pub barriers: Recorder,
}

impl Sm {
    /// Keeps a timeline from now on, of up to so many spans of each kind.
    pub fn keep_timeline(&mut self, spans: usize) {
        let recorder = || Recorder::new(spans);
        self.timeline = Some(Box::new(SmTimeline { ctas: recorder(), stalls: recorder(), barriers: recorder() }));
    }

    /// The timeline it kept.
    pub fn timeline(&self) -> Option<&SmTimeline> {
        self.timeline.as_deref()
    }

    /// A warp waits from `cycle` on, at an instruction of this name, unless it waits already.
    pub(super) fn stall_begins(&mut self, warp: usize, at: &'static str, cycle: u32) {
        if self.timeline.is_some() {
            let author = self.author(warp);
            let label = Label::Stall { at, launch: author.launch, cta: author.cta, warp: author.warp };
            let time = self.w.clock.cycles(u64::from(cycle));
            if let Some(timeline) = &mut self.timeline {
                timeline.stalls.begin(warp, time, label);
            }
        }
    }

    /// A warp goes on.
    pub(super) fn stall_ends(&mut self, warp: usize, cycle: u32) {
        if let Some(timeline) = &mut self.timeline {
            timeline.stalls.end(warp, self.w.clock.cycles(u64::from(cycle)));
        }
    }

    /// A warp has come to a persist barrier of its CTA; one of the kernel is kept by the command processor.
    pub(super) fn barrier_begins(&mut self, cta: usize, scope: PersistScope, at: &'static str, cycle: u32) {
        if let Some(timeline) = self.timeline.as_mut().filter(|_| scope == PersistScope::Cta) {
            let launch = self.launches.wrapping_sub(1);
            let label = Label::Barrier { at, launch, cta: Some(self.ctas[cta].cta as u32) };
            timeline.barriers.begin(cta, self.w.clock.cycles(u64::from(cycle)), label);
        }
    }

    /// A persist barrier of a CTA opens.
    pub(super) fn barrier_ends(&mut self, cta: usize, scope: PersistScope, cycle: u32) {
        if let Some(timeline) = self.timeline.as_mut().filter(|_| scope == PersistScope::Cta) {
            timeline.barriers.end(cta, self.w.clock.cycles(u64::from(cycle)));
        }
    }

    /// A CTA begins.
    pub(super) fn cta_begins(&mut self, cta: usize) {
        if let Some(timeline) = &mut self.timeline {
            let launch = self.launches.wrapping_sub(1);
            timeline.ctas.begin(cta, self.now, Label::Cta { launch, cta: self.ctas[cta].cta as u32 });
        }
    }

    /// A CTA has ended.
    pub(super) fn cta_ends(&mut self, cta: usize) {
        if let Some(timeline) = &mut self.timeline {
            timeline.ctas.end(cta, self.now);
        }
    }
}
