//! The timeline of a memory controller: occupancy of its write-pending queue, writes to its media; the
//! requests of a scheme's handler that orders persists; under a scheme of recoverable regions what its gated
//! queue holds, its flush ID, and what each region waits for here. Nothing here is read by the model.
//!
//! ```text
//!   boundary here ──bdry-ACKs──> first flush ──flush──> all flushed ──flush-ACKs──> committed
//! ```
//! A region's "bdry-ACKs" are its wait for others' acknowledgements and for its turn.

use std::collections::BTreeMap;

use crate::handler_levels::HandlerLevels;
use durawarp_base::timeline::{Growth, Label, Level, Recorder};
use durawarp_engine::Time;
use durawarp_persist::vocab::RegionStep;

/// What a controller keeps for a timeline.
#[derive(Debug)]
pub struct ControllerTimeline {
    /// By bank: writes from their column command until the bank has done with them.
    pub media: Recorder,
    /// Entries of the WPQ in use.
    pub wpq: Level,
    /// Bytes read from and written to DRAM, then NVM.
    pub growth: Growth,
    /// What it keeps of regions.
    pub regions: RegionTimeline,
    /// Requests that the scheme's handler has, by hart of the machine, then by channel of the NIC.
    pub queues: HandlerLevels,
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
        // Several steps belong to one wait: a span is as long as what it waits for stays the same.
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

impl ControllerTimeline {
    /// An empty timeline of at most `spans` spans and values of a kind.
    pub(super) fn new(spans: usize) -> Self {
        let (media, wpq, regions) = (Recorder::new(spans), Level::new(spans), RegionTimeline::new(spans));
        ControllerTimeline { media, wpq, growth: Growth::new(2, 0), regions, queues: HandlerLevels::new(spans) }
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
