//! The timeline of an SM: its CTAs, its warps' waits for durability, its CTAs' persist barriers, its warps'
//! recoverable regions.
//!
//! A wait begins in the cycle after its instruction issued and is over in the cycle in which the warp goes
//! on, as the counters of stalls have it. A region lasts from its first store's leaving the front-end buffer
//! until its boundary does; one that several warps share is that of the warp whose store left first. Nothing
//! here is read by the model.

use crate::engine::Time;
use crate::persist::journal::Author;
use crate::persist::vocab::{PersistScope, RegionStep};
use crate::timeline::{Label, Recorder};

use super::Sm;
use super::wait::Wait;

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
    pub regions: Recorder,
    /// Regions whose boundary has not left: number, warp slot, since when.
    open: Vec<(u32, usize, Time)>,
}

impl Sm {
    /// Keeps a timeline from now on, of up to so many spans of each kind.
    pub fn keep_timeline(&mut self, spans: usize) {
        let recorder = || Recorder::new(spans);
        let (ctas, stalls, barriers, regions) = (recorder(), recorder(), recorder(), recorder());
        self.timeline = Some(Box::new(SmTimeline { ctas, stalls, barriers, regions, open: Vec::new() }));
        self.outbox.keep_notes();
    }

    /// Notes what the handler says of regions, in the journal and in the timeline, where there are such.
    pub(super) fn note_regions(&mut self) {
        if self.timeline.is_some() {
            let said: Vec<(RegionStep, Author)> = self.outbox.notes().collect();
            for (step, author) in said {
                self.region_step(step, author);
            }
        }
        if self.journal.is_some() {
            self.outbox.write_notes(self.journal.as_deref_mut(), self.now);
        } else {
            self.outbox.drop_notes();
        }
    }

    fn region_step(&mut self, step: RegionStep, author: Author) {
        let is_author = |&warp: &usize| {
            let of = |own: Author| (own.cta, own.warp) == (author.cta, author.warp);
            self.slots[warp].wait != Wait::NoWarp && of(self.author(warp))
        };
        let slot = (0..self.slots.len()).find(is_author).unwrap_or_default();
        let (now, order) = (self.now, self.w.index);
        let Some(timeline) = &mut self.timeline else { return };
        let open = timeline.open.iter().position(|(number, ..)| *number == author.pc);
        match (step, open) {
            (RegionStep::Stored, None) => timeline.open.push((author.pc, slot, now)),
            (RegionStep::Ended, Some(at)) => {
                let (region, slot, since) = timeline.open.swap_remove(at);
                timeline.regions.whole(slot, since, now, Label::Region { what: "region", order, region });
            }
            _ => {}
        }
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
