//! The timeline of a memory controller: occupancy of its write-pending queue, writes to its media; under a
//! scheme of recoverable regions what its gated queue holds, its flush ID, and what each region waits for
//! here. Nothing here is read by the model.
//!
//! ```text
//!   boundary here ──bdry-ACKs──> first flush ──flush──> all flushed ──flush-ACKs──> committed
//! ```
//! A region's "bdry-ACKs" are its wait for others' acknowledgements and for its turn.

use std::collections::BTreeMap;

use crate::engine::Time;
use crate::kernel::memory::Medium;
use crate::persist::journal::Author;
use crate::persist::vocab::RegionStep;
use crate::timeline::{Label, Level, Recorder};

use super::MemoryController;
use super::gated::Gated;

/// What a controller keeps for a timeline.
#[derive(Debug)]
pub struct ControllerTimeline {
    /// By bank: writes from their column command until the bank has done with them.
    pub media: Recorder,
    /// Entries of the WPQ in use.
    pub wpq: Level,
    /// What it keeps of regions.
    pub regions: RegionTimeline,
}

/// What a controller keeps of recoverable regions.
#[derive(Debug)]
pub struct RegionTimeline {
    spans: usize,
    /// Entries that the gated queue holds.
    pub gated: Level,
    /// By order: the number of the oldest region, whose ID is the flush ID.
    pub flush_ids: BTreeMap<u16, Level>,
    /// What regions wait for, one after another.
    pub waits: Recorder,
    /// By order and number: what a region waits for, since when.
    under_way: BTreeMap<(u16, u32), (&'static str, Time)>,
}

impl RegionTimeline {
    fn new(spans: usize) -> Self {
        RegionTimeline {
            spans,
            gated: Level::new(spans),
            flush_ids: BTreeMap::new(),
            waits: Recorder::new(spans),
            under_way: BTreeMap::new(),
        }
    }

    /// A region of an order has come so far.
    pub(super) fn step(&mut self, step: RegionStep, order: u16, region: u32, now: Time) {
        let next = match step {
            RegionStep::Bounded => Some("bdry-ACKs"),
            RegionStep::Flushed => Some("flush"),
            RegionStep::Done => Some("flush-ACKs"),
            RegionStep::Committed => None,
            RegionStep::Stored
            | RegionStep::Ended
            | RegionStep::Buffered
            | RegionStep::Logged
            | RegionStep::Spilled => {
                return;
            }
        };
        let key = (order, region);
        let before = self.under_way.get(&key).copied();
        if before.map(|(what, _)| what) == next && next.is_some() {
            return;
        }
        if let Some((what, since)) = before {
            self.waits.whole(0, since, now, Label::Region { what, order, region });
        }
        match next {
            Some(what) => {
                self.under_way.insert(key, (what, now));
            }
            None => {
                self.under_way.remove(&key);
                let spans = self.spans;
                self.flush_ids.entry(order).or_insert_with(|| Level::new(spans)).note(now, u64::from(region) + 1);
            }
        }
    }
}

impl MemoryController {
    /// Keeps a timeline from now on, of up to so many spans and values.
    pub fn keep_timeline(&mut self, spans: usize) {
        let (media, wpq, regions) = (Recorder::new(spans), Level::new(spans), RegionTimeline::new(spans));
        self.timeline = Some(Box::new(ControllerTimeline { media, wpq, regions }));
    }

    /// Notes what a handler says of regions, in the journal and in the timeline, where there are such.
    pub(super) fn note_regions(&mut self, gated: &mut Gated, now: Time) {
        if let Some(timeline) = &mut self.timeline {
            let regions = &mut timeline.regions;
            gated.outbox.notes().for_each(|(step, author)| regions.step(step, author.warp, author.pc, now));
            regions.gated.note(now, gated.handler.held().entries);
        }
        if self.journal.is_some() {
            gated.outbox.write_notes(self.journal.as_deref_mut(), now);
        } else {
            gated.outbox.drop_notes();
        }
    }

    /// The timeline it kept.
    pub fn timeline(&self) -> Option<&ControllerTimeline> {
        self.timeline.as_deref()
    }

    /// A store of a region enters the write queue.
    pub(super) fn note_step(&mut self, step: RegionStep, author: Author, now: Time) {
        if let Some(timeline) = &mut self.timeline {
            timeline.regions.step(step, author.warp, author.pc, now);
        }
    }

    pub(super) fn note_occupancy(&mut self, now: Time) {
        if let Some(timeline) = &mut self.timeline {
            timeline.wpq.note(now, self.writes.len() as u64);
        }
    }

    /// A bank writes a line from `now` until `done`.
    pub(super) fn note_media_write(&mut self, bank: usize, line: u64, now: Time, done: Time) {
        if let Some(timeline) = &mut self.timeline {
            let label = Label::Write { line, persistent: Medium::of(line) == Medium::Nvm };
            timeline.media.whole(bank, now, done, label);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_waits_for_acks_is_flushed_and_waits_again_until_the_flush_id_moves_on() {
        let mut timeline = RegionTimeline::new(16);
        let steps = [
            (RegionStep::Buffered, 5),
            (RegionStep::Bounded, 10),
            (RegionStep::Flushed, 30),
            (RegionStep::Flushed, 32),
            (RegionStep::Done, 40),
            (RegionStep::Committed, 75),
        ];
        steps.into_iter().for_each(|(step, now)| timeline.step(step, 0, 3, now));
        let spans: Vec<_> = timeline.waits.slices(100).map(|(_, span)| (span.start, span.end, span.label)).collect();
        let of = |what| Label::Region { what, order: 0, region: 3 };
        assert_eq!(spans, [(10, 30, of("bdry-ACKs")), (30, 40, of("flush")), (40, 75, of("flush-ACKs"))]);
        assert_eq!(timeline.flush_ids[&0].samples(), [(75, 4)]);
        // One without stores here, whose commit needs no other controller.
        timeline.step(RegionStep::Bounded, 0, 4, 80);
        timeline.step(RegionStep::Done, 0, 4, 80);
        timeline.step(RegionStep::Committed, 0, 4, 80);
        assert_eq!((timeline.flush_ids[&0].samples(), timeline.under_way.len()), (&[(75, 4), (80, 5)][..], 0));
    }
}
