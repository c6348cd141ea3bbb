//! What a controller's oldest regions wait for, who is waited for, and what overflows: a report that no
//! decision reads.
//!
//! After every event the controller says in which stage the oldest region of an order is; the time since the
//! stage began is the stage's. A wait for ACKs is put down to the controller whose ACK ends it, or to several
//! where another's came at the same instant, as links of one latency have it. Invariant: an order with
//! nothing under way waits for nothing.

use durawarp_checkpoint::value;
use durawarp_engine::Time;
use durawarp_persist::regions::{ControllerWaits, Overflow, RegionReport, RegionSizes};

/// How far the oldest region of an order is at a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    /// Nothing is known of it.
    #[default]
    Unknown,
    /// Its boundary, or stores before that, are to come.
    Boundary,
    /// Other controllers' bdry-ACKs are to come.
    BoundaryAcks,
    /// Its stores are on their way to the write-pending queue.
    Flush,
    /// Other controllers' flush-ACKs are to come.
    FlushAcks,
}

value!(choice Stage { Unknown, Boundary, BoundaryAcks, Flush, FlushAcks });

/// The oldest region of an order, since when it is in its stage.
#[derive(Debug, Clone, Copy, Default)]
struct Watch {
    region: u32,
    stage: Stage,
    since: Time,
    /// When a controller's last ACK came that did not end the stage.
    acknowledged: Option<Time>,
}

value!(record Watch { region, stage, since, acknowledged });

/// The account of a controller.
#[derive(Debug)]
pub struct Account {
    watches: Vec<Watch>,
    waits: ControllerWaits,
    sizes: RegionSizes,
    overflows: Vec<Overflow>,
    episodes: u64,
}

value!(record Account { watches, waits, sizes, overflows, episodes });

impl Account {
    /// Of so many orders, among so many controllers.
    pub fn new(orders: usize, controllers: u16) -> Self {
        let for_controller_ticks = vec![0; usize::from(controllers)];
        Account {
            watches: vec![Watch::default(); orders],
            waits: ControllerWaits { for_controller_ticks, ..ControllerWaits::default() },
            sizes: RegionSizes::default(),
            overflows: Vec::new(),
            episodes: 0,
        }
    }

    /// The oldest region of an order is this one, in this stage, behind an event that came `from` a
    /// controller or not.
    pub fn see(&mut self, order: usize, region: u32, stage: Stage, from: Option<u16>, now: Time) {
        let watch = &mut self.watches[order];
        if (watch.region, watch.stage) == (region, stage) {
            watch.acknowledged = from.map(|_| now).or(watch.acknowledged);
            return;
        }
        // The stage is over: its time goes to what it waited for, and if ACKs ended it, to whose.
        let ticks = now - watch.since;
        let waits = &mut self.waits;
        let sum = match watch.stage {
            Stage::Unknown => None,
            Stage::Boundary => Some(&mut waits.boundary_ticks),
            Stage::BoundaryAcks => Some(&mut waits.boundary_ack_ticks),
            Stage::Flush => Some(&mut waits.flush_ticks),
            Stage::FlushAcks => Some(&mut waits.flush_ack_ticks),
        };
        sum.into_iter().for_each(|sum| *sum += ticks);
        if matches!(watch.stage, Stage::BoundaryAcks | Stage::FlushAcks)
            && let Some(other) = from
        {
            let several = watch.acknowledged == Some(now);
            let sum = if several {
                &mut waits.for_several_ticks
            } else {
                &mut waits.for_controller_ticks[usize::from(other)]
            };
            *sum += ticks;
        }
        *watch = Watch { region, stage, since: now, acknowledged: None };
    }

    /// A region has so many entries here now, `more` of them just come, of a queue of so many.
    pub fn grew(&mut self, entries: u32, more: u32, queue: u32) {
        self.sizes.largest_entries = self.sizes.largest_entries.max(u64::from(entries));
        self.sizes.beyond_queue += u64::from(entries > queue && entries - more <= queue);
    }

    /// An episode of the fallback.
    pub fn overflowed(&mut self, overflow: Overflow) {
        self.episodes += 1;
        if self.overflows.len() < RegionReport::KEPT {
            self.overflows.push(overflow);
        }
    }

    /// What there is to tell.
    pub fn report(&self) -> RegionReport {
        RegionReport {
            sizes: self.sizes.clone(),
            controllers: vec![self.waits.clone()],
            overflows: self.overflows.clone(),
            overflow_episodes: self.episodes,
            ..RegionReport::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_has_its_time_and_an_ack_the_time_that_it_ends() {
        let mut account = Account::new(1, 3);
        account.see(0, 0, Stage::Boundary, None, 10);
        account.see(0, 0, Stage::Boundary, Some(1), 12);
        account.see(0, 0, Stage::BoundaryAcks, None, 15);
        account.see(0, 0, Stage::BoundaryAcks, Some(1), 20);
        account.see(0, 0, Stage::Flush, Some(2), 27);
        account.see(0, 0, Stage::FlushAcks, None, 30);
        // The next one's boundary and ACKs have come before.
        account.see(0, 1, Stage::FlushAcks, Some(1), 41);
        account.see(0, 2, Stage::Unknown, Some(2), 43);
        account.see(0, 2, Stage::BoundaryAcks, None, 100);
        account.see(0, 2, Stage::BoundaryAcks, Some(1), 104);
        account.see(0, 2, Stage::Flush, Some(2), 104);
        let waits = &account.report().controllers[0];
        assert_eq!((waits.boundary_ticks, waits.boundary_ack_ticks), (5, 12 + 4));
        assert_eq!((waits.flush_ticks, waits.flush_ack_ticks), (3, 11 + 2));
        assert_eq!((&waits.for_controller_ticks[..], waits.for_several_ticks), (&[0, 11, 12 + 2][..], 4));
    }

    #[test]
    fn a_region_is_beyond_its_queue_once() {
        let mut account = Account::new(1, 1);
        for (entries, more) in [(3, 3), (4, 1), (6, 2), (7, 1), (5, 5)] {
            account.grew(entries, more, 4);
        }
        let sizes = account.report().sizes;
        assert_eq!((sizes.largest_entries, sizes.beyond_queue), (7, 2));
    }
}
