//! LightWSP's handlers one by one: who waits for whom.

mod overlay;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::messages::{Copied, RegionMessage, Tag};
use super::*;
use crate::entry::values_of;
use durawarp_persist::handler::{
    Admission, ControllerEvent, CoreEvent, CoreOffer, Handler, HandlerReport, Outbox, PathStore, Peer, SliceEvent,
    SmEvent, opened, report_of,
};
use durawarp_persist::journal::Author;
use durawarp_persist::regions::{Checkpoints, Overflow, WarpWaits};

fn spec(change: impl Fn(&mut LightWspSpec)) -> Arc<LightWspSpec> {
    let mut spec: LightWspSpec =
        serde_json::from_value(serde_json::Value::Object(values_of::<LightWspSpec>(DEFAULTS))).unwrap();
    change(&mut spec);
    assert!(spec.faults().is_empty());
    Arc::new(spec)
}

/// A GHz of ticks.
fn place(index: u16, controllers: u16) -> HandlerPlace {
    HandlerPlace { index, sms: 2, slices: controllers, controllers, tick_khz: 1_000_000, ..HandlerPlace::default() }
}

/// What was sent, and when it leaves.
fn sent(outbox: &mut Outbox) -> Vec<(Peer, RegionMessage, u64)> {
    outbox.take_timed().map(|(to, message, delay)| (to, opened(message), delay)).collect()
}

fn tag(number: u32) -> Tag {
    Tag { order: 0, id: number as u16, number }
}

fn copied(line: u64, byte: u8) -> Copied {
    Copied { line, mask: 1, bytes: Box::new([byte; 128]), entries: 1 }
}

/// A controller's handler with its outbox.
struct Controller {
    handler: gate::GatedQueue,
    outbox: Outbox,
}

impl Controller {
    fn new(spec: &Arc<LightWspSpec>, index: u16, controllers: u16) -> Self {
        Controller {
            handler: gate::GatedQueue::new(spec.clone(), place(index, controllers)),
            outbox: Outbox::default(),
        }
    }

    fn hears(&mut self, from: Peer, word: RegionMessage) -> &mut Self {
        self.handler.message(from, Box::new(word), &mut self.outbox);
        self
    }

    /// What follows happens then.
    fn at(&mut self, now: u64) -> &mut Self {
        self.outbox.at(now);
        self
    }

    fn stores(&mut self, region: u32, line: u64) -> &mut Self {
        self.hears(Peer::Sm(0), RegionMessage::Store(tag(region), region as u8, copied(line, region as u8 + 1)))
    }

    fn ends(&mut self, region: u32) -> &mut Self {
        self.hears(Peer::Sm(0), RegionMessage::Boundary(tag(region), region as u8))
    }

    /// The lines that it has asked to be written since, and whether with a log.
    fn writes(&mut self) -> Vec<(u64, bool)> {
        self.outbox.flushes().iter().map(|flush| (flush.line, flush.logged)).collect()
    }

    /// The write queue takes all of it.
    fn written(&mut self) -> &mut Self {
        while let Some(flush) = self.outbox.flushes().pop_front() {
            self.handler.event(&ControllerEvent::Flushed(flush.token), &mut self.outbox);
        }
        self
    }

    /// The write queue takes the first of it.
    fn written_once(&mut self) -> &mut Self {
        let flush = self.outbox.flushes().pop_front().expect("something to write");
        self.handler.event(&ControllerEvent::Flushed(flush.token), &mut self.outbox);
        self
    }

    fn sent(&mut self) -> Vec<(Peer, RegionMessage)> {
        sent(&mut self.outbox).into_iter().map(|(to, word, _)| (to, word)).collect()
    }

    /// Warps whose stores it has taken since.
    fn taken(&mut self) -> Vec<u8> {
        let taken = |(_, word)| if let RegionMessage::Taken(warp, _) = word { Some(warp) } else { None };
        self.sent().into_iter().filter_map(taken).collect()
    }
}

#[test]
fn a_region_is_written_when_every_controller_has_its_boundary_and_committed_when_all_have_written() {
    let mut mc = Controller::new(&spec(|_| {}), 0, 3);
    mc.stores(0, 0).stores(0, 128).ends(0);
    assert_eq!(mc.writes(), [(0u64, false); 0], "no other controller is known to have the boundary");
    let acks = |sent: Vec<(Peer, RegionMessage)>| {
        sent.iter().filter(|(_, word)| matches!(word, RegionMessage::BoundaryAck(_))).count()
    };
    assert_eq!(acks(mc.sent()), 2);
    mc.hears(Peer::Controller(1), RegionMessage::BoundaryAck(tag(0)));
    assert_eq!(mc.writes(), [(0u64, false); 0], "one early");
    mc.hears(Peer::Controller(2), RegionMessage::BoundaryAck(tag(0)));
    assert_eq!(mc.writes(), [(0, false), (128, false)], "on time");
    let is_flush_ack = |(_, word): &(Peer, RegionMessage)| matches!(word, RegionMessage::FlushAck(_));
    assert!(!mc.sent().iter().any(is_flush_ack), "not before they are written");
    assert_eq!(mc.written().sent().iter().filter(|word| is_flush_ack(word)).count(), 2);
    // The next region is ready, but has to wait for the flush ID.
    mc.stores(1, 256).ends(1);
    for other in [1, 2] {
        mc.hears(Peer::Controller(other), RegionMessage::BoundaryAck(tag(1)));
    }
    assert_eq!(mc.hears(Peer::Controller(1), RegionMessage::FlushAck(tag(0))).writes(), [(0u64, false); 0]);
    assert_eq!(mc.hears(Peer::Controller(2), RegionMessage::FlushAck(tag(0))).writes(), [(256, false)]);
}

#[test]
fn pipelined_a_controller_goes_on_once_its_own_stores_are_written() {
    let pipelined = spec(|spec| spec.commit = Commit::Pipelined);
    for index in [0, 1] {
        let mut mc = Controller::new(&pipelined, index, 3);
        let others: Vec<u16> = (0..3).filter(|&other| other != index).collect();
        mc.stores(0, 0).ends(0).stores(1, 256).ends(1);
        for (region, other) in [(0, 0), (0, 1), (1, 0)] {
            mc.hears(Peer::Controller(others[other]), RegionMessage::BoundaryAck(tag(region)));
        }
        assert_eq!(mc.writes(), [(0, false)]);
        mc.hears(Peer::Controller(others[1]), RegionMessage::BoundaryAck(tag(1)));
        assert_eq!(mc.writes(), [(0, false)], "all have the boundary, and the region before is not written: one early");
        mc.sent();
        assert_eq!(mc.written_once().writes(), [(256, false)], "on time, without a flush-ACK");
        let acks = mc.sent().into_iter().filter(|(_, word)| matches!(word, RegionMessage::FlushAck(_)));
        let to: Vec<Peer> = acks.map(|(to, _)| to).collect();
        assert_eq!(to, if index == 0 { vec![] } else { vec![Peer::Controller(0)] }, "the first keeps the account");
        // The next one has the boundary of all but one.
        mc.written().stores(2, 512).ends(2).hears(Peer::Controller(others[0]), RegionMessage::BoundaryAck(tag(2)));
        assert_eq!(mc.writes(), [(0u64, false); 0]);
    }
}

#[test]
fn a_sequencer_gathers_boundary_acks_for_all_and_the_others_go_on_with_its_word() {
    let acks = |sent: Vec<(Peer, RegionMessage)>| -> Vec<Peer> {
        let acks = sent.into_iter().filter(|(_, word)| matches!(word, RegionMessage::BoundaryAck(_)));
        acks.map(|(to, _)| to).collect()
    };
    let spec = spec(|spec| spec.commit = Commit::Sequencer);
    let mut first = Controller::new(&spec, 0, 3);
    first.stores(0, 0).ends(0).stores(1, 256).ends(1);
    assert_eq!(acks(first.sent()), []);
    // The second region's come first: the word does not wait for the first one's writes.
    for (region, other, told) in [(1, 1, false), (1, 2, true), (0, 2, false), (0, 1, true)] {
        first.hears(Peer::Controller(other), RegionMessage::BoundaryAck(tag(region)));
        let others = if told { vec![Peer::Controller(1), Peer::Controller(2)] } else { vec![] };
        assert_eq!(acks(first.sent()), others, "region {region}, controller {other}");
    }
    assert_eq!(first.writes(), [(0, false)]);
    assert_eq!(first.written_once().writes(), [(256, false)]);
    let mut other = Controller::new(&spec, 1, 3);
    other.stores(0, 0).ends(0);
    assert_eq!(acks(other.sent()), [Peer::Controller(0)]);
    assert_eq!(other.writes(), [(0u64, false); 0], "one early");
    assert_eq!(other.hears(Peer::Controller(0), RegionMessage::BoundaryAck(tag(0))).writes(), [(0, false)], "on time");
}

#[test]
fn pipelined_an_id_may_be_used_again_when_all_controllers_have_written_its_region() {
    let mut mc = Controller::new(&spec(|spec| spec.commit = Commit::Pipelined), 0, 3);
    for region in 0..2 {
        mc.ends(region);
        for other in [1, 2] {
            mc.hears(Peer::Controller(other), RegionMessage::BoundaryAck(tag(region)));
        }
    }
    mc.sent();
    let mut committed = |other: u16, region: u32| {
        mc.hears(Peer::Controller(other), RegionMessage::FlushAck(tag(region)));
        mc.sent().iter().filter(|(to, word)| *to == Peer::Sm(0) && matches!(word, RegionMessage::Committed)).count()
    };
    assert_eq!([committed(1, 0), committed(1, 1)], [0, 0], "one controller is behind by two regions");
    assert_eq!([committed(2, 0), committed(2, 1)], [1, 1]);
    // The first controller's own write comes last.
    mc.stores(2, 0).ends(2);
    for other in [1, 2] {
        mc.hears(Peer::Controller(other), RegionMessage::BoundaryAck(tag(2)))
            .hears(Peer::Controller(other), RegionMessage::FlushAck(tag(2)));
    }
    let committed = |sent: Vec<(Peer, RegionMessage)>| {
        sent.iter().filter(|(_, word)| matches!(word, RegionMessage::Committed)).count()
    };
    assert_eq!(committed(mc.sent()), 0);
    assert_eq!(committed(mc.written().sent()), 1);
}

#[test]
fn a_younger_region_waits_for_older_ones_whatever_comes_first() {
    let mut mc = Controller::new(&spec(|_| {}), 0, 1);
    mc.stores(1, 128).ends(1).stores(0, 0);
    assert_eq!(mc.writes(), [(0u64, false); 0]);
    let mut bytes = [0; 128];
    assert!(mc.handler.overlay(128, 3, &mut bytes) && !mc.handler.overlay(128, 2, &mut bytes));
    assert_eq!(bytes[..2], [2, 0], "a read takes what is held");
    mc.ends(0);
    assert_eq!(mc.writes(), [(0, false)]);
    mc.written();
    assert_eq!(mc.writes(), [(0u64, false); 0], "all is written");
    assert!(mc.handler.lines().is_empty());
}

#[test]
fn a_full_queue_lets_in_the_oldest_region_with_a_log_and_nobody_else_until_its_boundary() {
    let mut mc = Controller::new(&spec(|spec| spec.wpq_entries = 2), 0, 1);
    mc.stores(0, 0).stores(1, 128);
    assert_eq!(mc.taken(), [0u8, 1]);
    assert_eq!(mc.writes(), [(0u64, false); 0], "there is room");
    mc.stores(2, 256);
    assert_eq!(mc.writes(), [(0, true)], "the oldest region's makes room");
    assert_eq!(mc.taken(), [0u8; 0], "but not for others");
    mc.stores(0, 384);
    assert_eq!(mc.writes(), [(0, true), (384, true)]);
    assert_eq!(mc.taken(), [0]);
    mc.written().ends(0);
    assert_eq!(mc.taken(), [2], "its boundary ends it");
    mc.ends(1).written().ends(2).written();
    assert!(mc.handler.lines().is_empty());
    assert_eq!(report_of(&mc.handler).waits, []);
}

#[test]
fn a_boundary_behind_a_store_that_waits_counts_when_that_is_in() {
    let mut mc = Controller::new(&spec(|spec| spec.wpq_entries = 1), 0, 2);
    mc.stores(1, 0).stores(2, 128).ends(2);
    let bounded = |sent: Vec<(Peer, RegionMessage)>| {
        sent.iter().filter(|(_, word)| matches!(word, RegionMessage::Bounded(..))).count()
    };
    assert_eq!(bounded(mc.sent()), 0);
    mc.ends(0)
        .hears(Peer::Controller(1), RegionMessage::BoundaryAck(tag(0)))
        .hears(Peer::Controller(1), RegionMessage::FlushAck(tag(0)));
    mc.sent();
    // Region 1 is the oldest now and without a boundary: it spills, and its boundary lets the other in.
    assert_eq!(mc.writes(), [(0, true)]);
    mc.written().ends(1);
    assert_eq!(bounded(mc.sent()), 2);
}

/// How many stores a read of the line's first byte waits for.
fn awaited(mc: &mut Controller, line: u64) -> usize {
    mc.handler.awaited(line, 1, &mut mc.outbox).len()
}

#[test]
fn a_read_waits_for_a_store_when_its_region_and_all_before_it_have_ended_here() {
    let mut mc = Controller::new(&spec(|spec| spec.wpq_hit = WpqHit::Wait), 0, 2);
    mc.stores(0, 0).stores(1, 128).stores(2, 256).stores(2, 128);
    mc.ends(2);
    assert_eq!([128, 256].map(|line| awaited(&mut mc, line)), [0, 0], "older ones have not ended");
    mc.ends(0);
    assert_eq!([128, 256].map(|line| awaited(&mut mc, line)), [0, 0], "one early");
    mc.ends(1);
    assert_eq!([0, 128, 256].map(|line| awaited(&mut mc, line)), [1, 2, 1], "on time");
    assert_eq!(mc.handler.awaited(0, 2, &mut mc.outbox).len(), 0, "other bytes");
    assert_eq!(mc.writes(), [(0u64, false); 0], "what has ended needs no fallback");
    let mut merges = Controller::new(&spec(|_| {}), 0, 2);
    assert_eq!(awaited(merges.stores(0, 0).ends(0), 0), 0);
}

#[test]
fn a_read_of_the_oldest_regions_store_has_the_region_written_with_a_log() {
    let mut mc = Controller::new(&spec(|spec| spec.wpq_hit = WpqHit::Wait), 0, 1);
    mc.stores(1, 128).stores(0, 0).stores(0, 256);
    assert_eq!(awaited(&mut mc, 128), 0, "it may be the reader's own, and is not the oldest");
    assert_eq!(mc.writes(), [(0u64, false); 0]);
    assert_eq!(awaited(&mut mc, 0), 1);
    assert_eq!(mc.writes(), [(0, true), (256, true)]);
    assert_eq!((awaited(&mut mc, 256), mc.writes().len()), (1, 2), "under way already");
    assert!(!mc.written().handler.holds(0) && mc.handler.holds(128));
    // What comes of it later goes the same way, others wait; the boundary ends that.
    mc.stores(0, 384).stores(2, 512);
    assert_eq!((mc.writes(), mc.taken()), (vec![(384, true)], vec![1, 0, 0, 0]));
    assert_eq!(mc.written().ends(0).taken(), [2]);
    assert_eq!(awaited(&mut mc, 128), 1, "it is the oldest now");
    mc.written().ends(1).ends(2).written();
    assert!(mc.handler.lines().is_empty() && report_of(&mc.handler).waits.is_empty());
    let counted: BTreeMap<_, _> = report_of(&mc.handler).counters.into_iter().collect();
    let counted =
        ["hit_fallbacks", "hits_waited", "hits_merged", "overflows"].map(|name| counted[&*format!("wpq_{name}")]);
    assert_eq!(counted, [2, 3, 1, 0]);
}

#[test]
fn with_an_order_for_each_sm_a_read_waits_by_the_order_of_what_it_finds() {
    let own = |spec: &mut LightWspSpec| (spec.wpq_hit, spec.order) = (WpqHit::Wait, RegionOrder::Sm);
    let mut mc = Controller::new(&spec(own), 0, 1);
    let store =
        |number: u32, order: u16, line: u64| RegionMessage::Store(Tag { order, ..tag(number) }, 0, copied(line, 1));
    mc.hears(Peer::Sm(0), store(1, 0, 128)).hears(Peer::Sm(1), store(0, 1, 256));
    assert_eq!((awaited(&mut mc, 128), awaited(&mut mc, 256)), (0, 1));
    assert_eq!(mc.writes(), [(256, true)]);
}

#[test]
fn ids_wrap() {
    let spec = spec(|spec| spec.id_bits = 4);
    let mut mc = Controller::new(&spec, 0, 1);
    for number in 0..100 {
        let region = Tag { order: 0, id: number % 16, number: u32::from(number) };
        let younger = Tag { id: (number + 7) % 16, number: region.number + 7, ..region };
        mc.hears(Peer::Sm(0), RegionMessage::Store(younger, 1, copied(u64::from(number + 7) * 128, 1)));
        mc.hears(Peer::Sm(0), RegionMessage::Store(region, 0, copied(u64::from(number) * 128, 1)));
        mc.hears(Peer::Sm(0), RegionMessage::Boundary(region, 0));
        let expected = u64::from(number) * 128;
        assert!(mc.writes().iter().all(|&(line, logged)| line == expected && !logged), "{number}");
        assert_eq!(mc.written().writes(), [(0u64, false); 0]);
    }
}

#[test]
fn atomics_on_a_line_have_ids_in_the_order_in_which_they_are_performed() {
    let mut handler = sequencer::RegionSequencer::new(spec(|_| {}));
    let mut outbox = Outbox::default();
    let mut granted = |sm: u16, word: RegionMessage| {
        handler.message(Peer::Sm(sm), Box::new(word), &mut outbox);
        let granted =
            |(to, word, _)| if let RegionMessage::Granted(_, tag) = word { Some((to, tag.number)) } else { None };
        sent(&mut outbox).into_iter().filter_map(granted).collect::<Vec<_>>()
    };
    assert_eq!(granted(0, RegionMessage::Draw(0, vec![0, 128])), [(Peer::Sm(0), 0)]);
    assert_eq!(granted(1, RegionMessage::Draw(0, vec![128, 256])), [(Peer::Hub, 0); 0], "a line is another's");
    assert_eq!(
        granted(1, RegionMessage::Draw(1, vec![256])),
        [(Peer::Hub, 0); 0],
        "behind the one that waits: no two overtake each other"
    );
    assert_eq!(granted(0, RegionMessage::Draw(1, vec![])), [(Peer::Sm(0), 1)], "stores wait for nobody");
    assert_eq!(granted(0, RegionMessage::Performed(0)), [(Peer::Sm(1), 2)]);
    assert_eq!(granted(1, RegionMessage::Performed(0)), [(Peer::Sm(1), 3)]);
}

#[test]
fn a_controller_tells_what_its_oldest_region_waited_for_and_for_whom() {
    let mut mc = Controller::new(&spec(|spec| spec.wpq_entries = 2), 0, 2);
    mc.at(10).stores(0, 0).stores(0, 128);
    mc.at(30).ends(0);
    mc.at(50).hears(Peer::Controller(1), RegionMessage::BoundaryAck(tag(0)));
    mc.at(80).written();
    mc.at(100).hears(Peer::Controller(1), RegionMessage::FlushAck(tag(0)));
    let report = report_of(&mc.handler).regions.unwrap();
    let waits = &report.controllers[0];
    assert_eq!([waits.boundary_ticks, waits.boundary_ack_ticks], [20, 20]);
    assert_eq!([waits.flush_ticks, waits.flush_ack_ticks], [30, 20]);
    assert_eq!(waits.for_controller_ticks, [0, 20 + 20]);
    assert_eq!((report.sizes.largest_entries, report.sizes.beyond_queue, report.overflow_episodes), (2, 0, 0));
    // Nothing is under way until a third entry of the next region comes, and the queue has two.
    mc.at(500).stores(1, 0).stores(1, 128).stores(2, 256).stores(1, 384);
    let report = report_of(&mc.handler).regions.unwrap();
    assert_eq!(report.controllers[0].boundary_ticks, 20);
    assert_eq!((report.sizes.largest_entries, report.sizes.beyond_queue), (3, 1));
    let overflow = Overflow { at_ticks: 500, controller: 0, order: 0, region: 1, stores: 2, waiting: 1 };
    assert_eq!((report.overflows, report.overflow_episodes), (vec![overflow], 1));
}

/// An SM's handler, 1 tick an ns.
fn front_end(change: impl Fn(&mut LightWspSpec)) -> (front_end::FrontEndBuffer, Outbox) {
    (front_end::FrontEndBuffer::new(spec(change), place(1, 2)), Outbox::default())
}

fn store(handler: &mut front_end::FrontEndBuffer, outbox: &mut Outbox, warp: u8, line: u64) {
    let bytes = [7; 128];
    handler.copy(
        &PathStore { by: warp, author: Author::default(), line, mask: u128::MAX, bytes: &bytes, checkpoint: false },
        outbox,
    );
}

#[test]
fn copies_leave_with_their_regions_id_at_the_paths_bandwidth_and_the_boundary_behind_them() {
    // 16 entries of 8 bytes at 4 GB/s: 32 ns.
    let (mut handler, mut outbox) = front_end(|spec| (spec.entry_bytes, spec.path_mb_s) = (8, 4000));
    store(&mut handler, &mut outbox, 3, 0);
    store(&mut handler, &mut outbox, 3, 128);
    handler.end_region(3, Author::default(), &mut outbox);
    let drawn = sent(&mut outbox);
    assert!(matches!(drawn[..], [(Peer::Hub, RegionMessage::Draw(3, _), 0)]), "one ID for both, {drawn:?}");
    handler.message(Peer::Hub, Box::new(RegionMessage::Granted(3, tag(5))), &mut outbox);
    let left = sent(&mut outbox);
    let times: Vec<u64> = left.iter().map(|(.., delay)| *delay).collect();
    assert_eq!(times, [32, 64, 66, 66], "two stores, and a boundary for each controller");
    assert!(matches!(left[3], (Peer::Controller(1), RegionMessage::Boundary(tag, 3), _) if tag.id == 5), "{left:?}");
    assert!(!handler.is_drained(3));
    for _ in 0..2 {
        handler.message(Peer::Controller(0), Box::new(RegionMessage::Taken(3, 16)), &mut outbox);
        handler.message(Peer::Controller(0), Box::new(RegionMessage::Bounded(tag(5), 3)), &mut outbox);
    }
    assert!(handler.is_drained(3));
}

#[test]
fn an_sm_tells_how_large_regions_were_what_was_checkpoints_and_what_warps_waited_for() {
    let (mut handler, mut outbox) = front_end(|spec| spec.feb_entries = 3);
    let bytes = [7; 128];
    let stores =
        |handler: &mut front_end::FrontEndBuffer, outbox: &mut Outbox, warp: u8, mask: u128, checkpoint: bool| {
            handler.copy(
                &PathStore { by: warp, author: Author::default(), line: 0, mask, bytes: &bytes, checkpoint },
                outbox,
            );
        };
    stores(&mut handler, &mut outbox, 3, u128::MAX, false);
    stores(&mut handler, &mut outbox, 3, 0xff, true);
    handler.end_region(3, Author::default(), &mut outbox);
    stores(&mut handler, &mut outbox, 4, 0xf, true);
    // Full: the buffer lets a warp in that has nothing in it.
    handler.awaits_admission(3, true, 0);
    outbox.at(40);
    assert!(!handler.asks_leave(5, &[128], &mut outbox));
    outbox.at(100);
    handler.message(Peer::Hub, Box::new(RegionMessage::Granted(5, tag(0))), &mut outbox);
    let mut told = HandlerReport::default();
    handler.report(&mut told);
    let report = told.regions.unwrap();
    let sizes = &report.sizes;
    assert_eq!((sizes.regions, sizes.stores, sizes.entries, sizes.bytes), (1, 3, 3, 128 + 8 + 4));
    assert_eq!(sizes.by_stores, BTreeMap::from([(2, 1)]));
    assert_eq!(report.checkpoints, Checkpoints { stores: 2, bytes: 12 });
    assert_eq!(report.warps, WarpWaits { room: 1, ids: 0, turns: 1, turn_ticks: 60 });
}

#[test]
fn in_an_order_of_its_own_a_warp_is_done_when_its_regions_have_committed() {
    // What the next launch stores may be in another SM's order, which knows nothing of this one.
    let (mut handler, mut outbox) = front_end(|spec| spec.order = RegionOrder::Sm);
    for warp in [3, 4] {
        store(&mut handler, &mut outbox, warp, 0);
        SmHandler::event(&mut handler, &SmEvent::WarpExits { warp, author: Author::default() }, &mut outbox);
        handler.message(Peer::Controller(0), Box::new(RegionMessage::Taken(warp, 1)), &mut outbox);
        let tag = Tag { order: 1, ..tag(u32::from(warp) - 3) };
        for controller in 0..2 {
            handler.message(Peer::Controller(controller), Box::new(RegionMessage::Bounded(tag, warp)), &mut outbox);
        }
    }
    assert!(!handler.is_drained(3) && !handler.is_drained(4), "controllers have all of it");
    handler.message(Peer::Controller(0), Box::new(RegionMessage::Committed), &mut outbox);
    assert!(handler.is_drained(3) && !handler.is_drained(4));
    handler.message(Peer::Controller(0), Box::new(RegionMessage::Committed), &mut outbox);
    assert!(handler.is_drained(4));
}

#[test]
fn an_atomic_goes_with_the_id_of_its_own_region_not_of_an_earlier_one() {
    let (mut handler, mut outbox) = front_end(|_| {});
    store(&mut handler, &mut outbox, 3, 0);
    handler.end_region(3, Author::default(), &mut outbox);
    assert!(!handler.asks_leave(3, &[128], &mut outbox));
    handler.message(Peer::Hub, Box::new(RegionMessage::Granted(3, tag(0))), &mut outbox);
    assert!(handler.awaits_leave(3), "one early");
    handler.message(Peer::Hub, Box::new(RegionMessage::Granted(3, tag(1))), &mut outbox);
    assert!(!handler.awaits_leave(3) && handler.asks_leave(3, &[128], &mut outbox), "on time");
    assert!(handler.awaits_leave(3), "the next has to wait until it is performed");
    handler.performed(3, &mut outbox);
    assert!(!handler.awaits_leave(3));
}

/// Regions whose stores, and whose boundaries, have left for controller 0.
fn left(outbox: &mut Outbox) -> (Vec<u32>, Vec<u32>) {
    let (mut stores, mut ends) = (Vec::new(), Vec::new());
    for (to, word, _) in sent(outbox) {
        match word {
            RegionMessage::Store(tag, ..) => stores.push(tag.number),
            RegionMessage::Boundary(tag, _) if to == Peer::Controller(0) => ends.push(tag.number),
            _ => {}
        }
    }
    (stores, ends)
}

/// The handler of an SM whose regions are CTAs', with warps 0 to 2 of CTA 0 and warp 3 of CTA 1. Each region
/// gets its ID at once.
struct Shared {
    handler: front_end::FrontEndBuffer,
    outbox: Outbox,
}

impl Shared {
    fn new() -> Self {
        let (mut handler, outbox) = front_end(|spec| (spec.owner, spec.order) = (RegionOwner::Cta, RegionOrder::Sm));
        for (warp, cta) in [(0, 0), (1, 0), (2, 0), (3, 1)] {
            handler.enter(warp, cta);
        }
        Shared { handler, outbox }
    }

    fn stores(&mut self, warp: u8) -> &mut Self {
        store(&mut self.handler, &mut self.outbox, warp, 0);
        self
    }

    fn passes(&mut self, warp: u8) -> &mut Self {
        self.handler.end_region(warp, Author::default(), &mut self.outbox);
        self
    }

    fn left(&mut self) -> (Vec<u32>, Vec<u32>) {
        left(&mut self.outbox)
    }
}

#[test]
fn a_ctas_region_ends_when_every_warp_in_it_has_come_to_a_boundary() {
    let mut sm = Shared::new();
    sm.stores(0).stores(1).stores(3).passes(0);
    assert_eq!(sm.left(), (vec![0, 0, 1], vec![]), "another CTA's are another region's; one early");
    // Nobody waits: behind its boundary a warp opens the next, which the other joins in its turn.
    sm.stores(0).stores(1);
    assert_eq!(sm.left(), (vec![2, 0], vec![]), "one early");
    sm.passes(1).stores(1).stores(2);
    assert_eq!(sm.left(), (vec![2, 2], vec![0]), "on time");
    SmHandler::event(&mut sm.handler, &SmEvent::WarpExits { warp: 0, author: Author::default() }, &mut sm.outbox);
    sm.passes(1).passes(2);
    assert_eq!(sm.left(), (vec![], vec![2]));
}

#[test]
fn a_fence_and_an_atomic_take_a_warp_out_of_regions_that_have_their_ids() {
    let mut sm = Shared::new();
    sm.stores(0).stores(1);
    assert_eq!(sm.left().0, [0, 0], "one early");
    let fenced = SmEvent::Fenced { warp: 2 };
    SmHandler::event(&mut sm.passes(1).handler, &fenced, &mut Outbox::default());
    sm.stores(0).stores(2).stores(1);
    assert_eq!(sm.left().0, [0, 1, 1], "it was opened behind the fence");
    SmHandler::event(&mut sm.handler, &fenced, &mut Outbox::default());
    assert!(sm.handler.asks_leave(0, &[128], &mut sm.outbox));
    sm.passes(0).stores(0).passes(2).stores(2);
    assert_eq!(sm.left().0, [2, 2]);
}

#[test]
fn an_atomics_region_is_its_warps_alone_and_what_follows_is_behind_it() {
    let (mut handler, mut outbox) = front_end(|spec| spec.owner = RegionOwner::Cta);
    for warp in [0, 1] {
        handler.enter(warp, 0);
    }
    assert!(!handler.asks_leave(0, &[128], &mut outbox));
    store(&mut handler, &mut outbox, 1, 0);
    let draws = |sent: Vec<(Peer, RegionMessage, u64)>| {
        sent.iter().filter(|(_, word, _)| matches!(word, RegionMessage::Draw(..))).count()
    };
    assert_eq!(draws(sent(&mut outbox)), 2, "another warp does not join it");
    // The atomic waited for its line: the region opened behind it has the earlier ID.
    handler.message(Peer::Hub, Box::new(RegionMessage::Granted(1, tag(0))), &mut outbox);
    handler.message(Peer::Hub, Box::new(RegionMessage::Granted(0, tag(1))), &mut outbox);
    assert!(handler.asks_leave(0, &[128], &mut outbox));
    store(&mut handler, &mut outbox, 0, 128);
    handler.performed(0, &mut outbox);
    handler.end_region(0, Author::default(), &mut outbox);
    assert_eq!(left(&mut outbox), (vec![0, 1], vec![1]));
    store(&mut handler, &mut outbox, 0, 256);
    assert_eq!(draws(sent(&mut outbox)), 1, "the open region's ID is the earlier one");
    assert!(!handler.is_drained(0) && !handler.is_drained(1));
}

fn admits(handler: &front_end::FrontEndBuffer, warp: u8) -> bool {
    handler.admitted() >> warp & 1 == 1
}

#[test]
fn half_of_all_ids_are_in_use_at_most_an_equal_share_in_each_sm() {
    let (mut handler, mut outbox) = front_end(|spec| spec.id_bits = 4);
    for warp in 0..3 {
        assert!(admits(&handler, warp), "7 for 2 SMs; one early");
        store(&mut handler, &mut outbox, warp, 0);
    }
    assert!(!admits(&handler, 4) && admits(&handler, 2), "who is inside of a region needs none");
    handler.end_region(2, Author::default(), &mut outbox);
    assert!(!admits(&handler, 2));
    handler.awaits_admission(4, true, 0);
    handler.awaits_admission(2, true, 0);
    handler.message(Peer::Controller(0), Box::new(RegionMessage::Committed), &mut outbox);
    assert!(admits(&handler, 4) && !admits(&handler, 2) && !admits(&handler, 5), "on time, whoever waits longest");
    handler.message(Peer::Controller(0), Box::new(RegionMessage::Committed), &mut outbox);
    assert!(admits(&handler, 2) && !admits(&handler, 5));
    handler.awaits_admission(4, false, 0);
    assert!(admits(&handler, 5), "it needed none");
    let fits = |id_bits, sms| {
        let scheme = LightWsp { spec: spec(|spec| spec.id_bits = id_bits) };
        scheme.unfit(HandlerPlace { sms, ..HandlerPlace::default() }).is_none()
    };
    assert!(fits(4, 7) && !fits(4, 8) && fits(5, 8));
}

#[test]
fn who_waits_for_room_keeps_its_place_among_those_that_wait_for_ids() {
    let (mut handler, mut outbox) = front_end(|spec| (spec.id_bits, spec.feb_entries, spec.entry_bytes) = (4, 2, 128));
    store(&mut handler, &mut outbox, 0, 0);
    handler.end_region(0, Author::default(), &mut outbox);
    store(&mut handler, &mut outbox, 1, 0);
    assert!(!admits(&handler, 0), "there is an ID, and no room");
    handler.awaits_admission(0, true, 0);
    // Others, which spin perhaps, have the IDs when there is room.
    store(&mut handler, &mut outbox, 2, 0);
    handler.awaits_admission(3, true, 0);
    for warp in [0, 1, 2] {
        handler.message(Peer::Controller(0), Box::new(RegionMessage::Taken(warp, 1)), &mut outbox);
    }
    assert!(!admits(&handler, 0) && !admits(&handler, 3));
    handler.message(Peer::Controller(0), Box::new(RegionMessage::Committed), &mut outbox);
    assert!(admits(&handler, 0) && !admits(&handler, 3), "one ID, for the first");
}

#[test]
fn an_id_is_kept_for_the_region_that_an_atomic_begins_when_it_is_back() {
    let (mut handler, mut outbox) = front_end(|spec| (spec.id_bits, spec.id_draw) = (4, IdDraw::Paper));
    for warp in 0..2 {
        store(&mut handler, &mut outbox, warp, 0);
    }
    assert!(admits(&handler, 8) && handler.asks_leave(7, &[0], &mut outbox));
    assert!(!admits(&handler, 8));
    store(&mut handler, &mut outbox, 7, 0);
    assert!(!admits(&handler, 8), "it is that one");
    handler.message(Peer::Controller(0), Box::new(RegionMessage::Committed), &mut outbox);
    assert!(admits(&handler, 8));
}

#[test]
fn a_full_buffer_lets_a_warp_in_that_has_nothing_in_it() {
    let (mut handler, mut outbox) = front_end(|spec| (spec.feb_entries, spec.entry_bytes) = (16, 8));
    assert!(admits(&handler, 0));
    store(&mut handler, &mut outbox, 0, 0);
    assert!(!admits(&handler, 0) && admits(&handler, 1), "the oldest region may be another's");
    handler.message(Peer::Controller(0), Box::new(RegionMessage::Taken(0, 1)), &mut outbox);
    assert!(admits(&handler, 0));
}

#[test]
fn a_line_leaves_the_l2_when_the_copies_of_its_stores_have_come() {
    use durawarp_persist::handler::{Access, AccessKind};
    let mut handler = snoop::VictimSnoop::new(spec(|spec| spec.victims = Victims::Half).search(Snoop::Count));
    let mut outbox = Outbox::default();
    let access = Access {
        line: 128,
        bytes: 1,
        kind: AccessKind::Store,
        half_warps: 1,
        by: (0, 0),
        launch: 0,
        from: 0,
        mark: 0,
        log: false,
        hit: true,
    };
    let mut arrives = |handler: &mut snoop::VictimSnoop| {
        handler.message(Peer::Controller(0), Box::new(RegionMessage::Arrived(128)), &mut outbox)
    };
    // Its copy was faster.
    arrives(&mut handler);
    let mut outbox = Outbox::default();
    SliceHandler::event(&mut handler, &SliceEvent::Accessed(&access), &mut outbox);
    let keeps = |handler: &mut snoop::VictimSnoop, line| SliceHandler::keeps(handler, line, &mut Outbox::default());
    assert!(!keeps(&mut handler, 128));
    SliceHandler::event(&mut handler, &SliceEvent::Accessed(&access), &mut outbox);
    assert!(keeps(&mut handler, 128) && !keeps(&mut handler, 256));
    assert_eq!(handler.interests().victims.map(|search| [16, 1].map(|ways| search.ways(ways))), Some([8, 1]));
}

#[test]
fn a_core_that_searches_its_buffer_finds_a_line_until_all_its_copies_have_come() {
    let mut outbox = Outbox::default();
    let of_core = HandlerPlace { sms: 0, cores: 2, harts: 1, ..place(1, 2) };
    let mut handler = front_end::FrontEndBuffer::new(spec(|spec| spec.snoop = Snoop::Feb), of_core);
    let stays = |handler: &mut front_end::FrontEndBuffer, line| {
        CoreHandler::offer(handler, &CoreOffer::Victim(line), &mut Outbox::default()) != Admission::Goes
    };
    for line in [128, 128, 256] {
        store(&mut handler, &mut outbox, 0, line);
    }
    let arrives = |handler: &mut front_end::FrontEndBuffer, line| {
        handler.message(Peer::Controller(0), Box::new(RegionMessage::Arrived(line)), &mut Outbox::default())
    };
    arrives(&mut handler, 128);
    assert!(stays(&mut handler, 128) && stays(&mut handler, 256) && !stays(&mut handler, 384));
    arrives(&mut handler, 128);
    assert!(!stays(&mut handler, 128) && stays(&mut handler, 256));
    // A probe takes it, and nobody knows of its copies.
    CoreHandler::event(&mut handler, &CoreEvent::Given(256), &mut outbox);
    assert!(outbox.take_dependencies().is_none() && stays(&mut handler, 256));
    let report = report_of(&handler);
    let count = |name| report.counters.iter().find(|(of, _)| *of == name).map(|(_, count)| *count);
    assert_eq!([count("victims_searched_lines"), count("victim_conflicts_lines")], [Some(6), Some(4)]);
}

#[test]
fn a_controller_tells_who_keeps_a_line_that_a_copy_has_come() {
    let kept_by = |change: fn(&mut LightWspSpec)| {
        let mut mc = Controller::new(&spec(change), 0, 1);
        let arrived = |(to, word)| if let RegionMessage::Arrived(256) = word { Some(to) } else { None };
        mc.stores(0, 256).sent().into_iter().find_map(arrived)
    };
    assert_eq!(kept_by(|_| {}), Some(Peer::SliceOf(256)));
    assert_eq!(kept_by(|spec| spec.snoop = Snoop::Feb), Some(Peer::Sm(0)));
    assert_eq!(kept_by(|spec| (spec.snoop, spec.victims) = (Snoop::Feb, Victims::Stale)), None);
}

#[test]
fn buffers_are_searched_on_cpus_alone() {
    let scheme = LightWsp { spec: spec(|spec| spec.snoop = Snoop::Feb) };
    assert_eq!(scheme.unfit(place(0, 1)).unwrap().0, "light_wsp.snoop");
    assert!(scheme.unfit(HandlerPlace { sms: 0, cores: 2, harts: 1, ..place(0, 1) }).is_none());
}
