//! A controller by itself, message by message: what is held, what is written ahead.

use super::*;
use crate::core_regions::messages::{CoreRegion, CoreRegionMessage};
use crate::core_regions::tests::{PLACE, copied, sent};
use durawarp_persist::handler::{ControllerEvent, Outbox, Peer};
use durawarp_persist::{ControllerHandler, Handler};

struct Controller {
    handler: speculative::SpeculativeWrites,
    outbox: Outbox,
}

impl Controller {
    fn hears(&mut self, from: Peer, word: CoreRegionMessage) -> &mut Self {
        self.handler.message(from, Box::new(word), &mut self.outbox);
        self
    }

    fn stores(&mut self, number: u32, line: u64) -> &mut Self {
        self.hears(Peer::Core(1), CoreRegionMessage::Store(CoreRegion { core: 1, number }, copied(line)))
    }

    /// Writes that are asked for: line, and whether it is logged; the write queue takes them.
    fn writes(&mut self) -> Vec<(u64, bool)> {
        let flushes: Vec<_> = self.outbox.flushes().drain(..).collect();
        for flush in &flushes {
            self.handler.event(&ControllerEvent::Flushed(flush.token), &mut self.outbox);
        }
        flushes.iter().map(|flush| (flush.line, flush.logged)).collect()
    }

    /// Places in the front-end buffer that are free again.
    fn taken(&mut self) -> usize {
        sent(&mut self.outbox).iter().filter(|(_, word, _)| matches!(word, CoreRegionMessage::Taken)).count()
    }

    /// Regions that the core is told of.
    fn persisted(&mut self) -> Vec<u32> {
        let of =
            |(_, word, _)| if let CoreRegionMessage::Persisted(region) = word { Some(region.number) } else { None };
        sent(&mut self.outbox).into_iter().filter_map(of).collect()
    }
}

#[test]
fn the_oldest_region_waits_for_all_boundaries_and_later_ones_are_logged_unless_they_would_pass_it() {
    let mut mc = Controller { handler: speculative::SpeculativeWrites::new(PLACE), outbox: Outbox::default() };
    let region = |number| CoreRegion { core: 1, number };
    mc.stores(0, 0).stores(1, 64).stores(1, 0);
    assert_eq!(mc.writes(), [(64, true)], "line 0 is held");
    mc.hears(Peer::Core(1), CoreRegionMessage::Boundary(region(1)));
    mc.hears(Peer::Controller(1), CoreRegionMessage::BoundaryAck(region(1)));
    assert_eq!((mc.writes(), mc.persisted()), (vec![], vec![]), "region 0 is before it");
    mc.hears(Peer::Core(1), CoreRegionMessage::Boundary(region(0)));
    assert_eq!(mc.writes(), [], "one early");
    mc.hears(Peer::Controller(1), CoreRegionMessage::BoundaryAck(region(0)));
    assert_eq!((mc.writes(), mc.persisted()), (vec![(0, false)], vec![0]));
    assert_eq!((mc.writes(), mc.persisted()), (vec![(0, false)], vec![1]), "what was held of the next");
}

#[test]
fn a_store_frees_its_place_when_it_is_written_or_its_region_is_the_oldest() {
    let mut mc = Controller { handler: speculative::SpeculativeWrites::new(PLACE), outbox: Outbox::default() };
    assert_eq!(mc.stores(0, 0).taken(), 1);
    assert_eq!(mc.stores(1, 64).stores(1, 0).taken(), 0, "one early");
    assert_eq!((mc.writes(), mc.taken()), (vec![(64, true)], 1));
    mc.hears(Peer::Core(1), CoreRegionMessage::Boundary(CoreRegion { core: 1, number: 0 }));
    mc.hears(Peer::Controller(1), CoreRegionMessage::BoundaryAck(CoreRegion { core: 1, number: 0 }));
    mc.taken();
    assert_eq!((mc.writes(), mc.taken()), (vec![(0, false)], 1), "region 1 is the oldest");
}

#[test]
fn a_boundary_counts_when_what_is_written_ahead_of_it_is_in_the_write_queue() {
    let mut mc = Controller { handler: speculative::SpeculativeWrites::new(PLACE), outbox: Outbox::default() };
    let acks = |mc: &mut Controller| {
        sent(&mut mc.outbox).iter().filter(|(_, word, _)| matches!(word, CoreRegionMessage::BoundaryAck(_))).count()
    };
    let next = CoreRegion { core: 1, number: 1 };
    mc.stores(1, 64).hears(Peer::Core(1), CoreRegionMessage::Boundary(next));
    assert_eq!(acks(&mut mc), 0, "one early");
    assert_eq!((mc.writes(), acks(&mut mc)), (vec![(64, true)], 1), "on time");
}
