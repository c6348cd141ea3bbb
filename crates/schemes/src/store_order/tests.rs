//! What waits for what, by itself.

use super::*;
use durawarp_persist::StoreClass;

const LINE: u64 = 1 << 40;

/// An order, and numbers of departures.
struct Sm {
    order: StoreOrder,
    outbox: Outbox,
    departures: u64,
}

impl Sm {
    fn new(order: NonTemporalOrder, non_temporal_entries: u32, held_entries: u32) -> Self {
        let order = StoreOrder::new(StoreOrderSpec { order, non_temporal_entries, held_entries });
        Sm { order, outbox: Outbox::default(), departures: 0 }
    }

    /// A warp of a CTA, which knows of fences up to `knows`, issues a non-temporal store.
    fn non_temporal(&mut self, cta: u8, lines: &[u64], knows: u64) -> u64 {
        let store = Store { cta, knows, ..Store::to(StoreClass::Log, lines) };
        self.order.issue(&store, Route::NonTemporal).after
    }

    /// The same of one through the caches.
    fn cached(&mut self, cta: u8) -> u64 {
        self.order.issue(&Store { cta, ..Store::to(StoreClass::Data, &[LINE]) }, Route::Temporal).after
    }

    fn offer(&mut self, departure: Departure) -> Admission {
        self.order.offer(&SmOffer::Departure(departure))
    }

    fn leaves(&mut self, departure: Departure, held: bool) -> u64 {
        self.departures += 1;
        self.order.event(&SmEvent::Departed { departure, number: self.departures, held }, &mut self.outbox);
        self.departures
    }

    /// Issues a non-temporal store to one line, which leaves.
    fn sends(&mut self, cta: u8, line: u64) -> u64 {
        let after = self.non_temporal(cta, &[line], 0);
        let departure = to(cta, line, after, true);
        assert_eq!(self.offer(departure), Admission::Goes);
        self.leaves(departure, false)
    }

    fn acknowledge(&mut self, number: u64) {
        self.order.event(&SmEvent::Acknowledged { number, cycles: 1, launch: 0 }, &mut self.outbox);
    }

    /// The host looks for what it may release, in order.
    fn released(&mut self) -> Option<u64> {
        let held: Vec<(u64, u64)> = self.order.held.iter().map(|held| (held.number, held.line)).collect();
        let may = |order: &mut StoreOrder, number| order.offer(&SmOffer::Release(number)) == Admission::Goes;
        let (number, line) = held.into_iter().find(|&(number, _)| may(&mut self.order, number))?;
        self.order.event(&SmEvent::Released(number), &mut self.outbox);
        Some(line)
    }
}

fn to(cta: u8, line: u64, after: u64, is_non_temporal: bool) -> Departure {
    Departure { cta, line, is_load: false, is_non_temporal, after }
}

fn load(line: u64) -> Departure {
    Departure { cta: 0, line, is_load: true, is_non_temporal: false, after: 0 }
}

#[test]
fn a_store_through_the_caches_waits_for_the_last_non_temporal_one_before_it_and_no_longer() {
    let mut sm = Sm::new(NonTemporalOrder::BeforeCached, 8, 8);
    let numbers = [0, 128, 256].map(|line| sm.sends(0, line));
    let cached = to(0, LINE, sm.cached(0), false);
    assert_eq!(sm.offer(cached), Admission::Held);
    sm.leaves(cached, true);
    // A later one is not waited for.
    sm.sends(0, 384);
    for number in [numbers[2], numbers[0]] {
        sm.acknowledge(number);
        assert_eq!(sm.released(), None, "one early");
    }
    sm.acknowledge(numbers[1]);
    assert_eq!(sm.released(), Some(LINE), "on time");
    assert_eq!(sm.offer(cached), Admission::Goes);
}

#[test]
fn non_temporal_stores_and_those_on_dram_wait_behind_a_known_fence_only() {
    let mut sm = Sm::new(NonTemporalOrder::BeforeCached, 8, 8);
    let (first, second) = (sm.sends(0, 0), sm.sends(0, 128));
    let author = Author::Warp { sm: 0, launch: 0, cta: 0, warp: 3, pc: 0 };
    sm.order.event(&SmEvent::FenceOrdered { cta: 0, number: 2, author }, &mut sm.outbox);
    // One warp knows of the fence, another does not.
    assert_eq!(sm.offer(to(0, 512, 0, false)), Admission::Goes);
    let behind = sm.non_temporal(0, &[256], 2);
    assert_eq!(behind, 2);
    assert_eq!(sm.offer(to(0, 512, 2, false)), Admission::Held);
    sm.acknowledge(first);
    assert_eq!(sm.offer(to(0, 256, behind, true)), Admission::Held);
    assert!(sm.outbox.settled().is_empty());
    sm.acknowledge(second);
    assert_eq!(sm.offer(to(0, 256, behind, true)), Admission::Goes);
    assert_eq!(*sm.outbox.settled(), [author]);
}

#[test]
fn nothing_overtakes_a_held_request_to_its_line() {
    let mut sm = Sm::new(NonTemporalOrder::BeforeCached, 8, 2);
    let first = sm.sends(0, 0);
    sm.leaves(to(0, LINE, 1, false), true);
    for is_non_temporal in [false, true] {
        assert_eq!(sm.offer(to(0, LINE, 0, is_non_temporal)), Admission::Held);
    }
    assert_eq!((sm.offer(load(LINE)), sm.offer(load(0))), (Admission::Waits, Admission::Goes));
    assert_eq!(sm.offer(to(0, 0, 0, false)), Admission::Goes, "another line's");
    sm.leaves(to(0, LINE, 0, false), true);
    assert_eq!(sm.offer(to(0, LINE, 0, false)), Admission::Waits, "full");
    assert_eq!(sm.released(), None, "in order");
    sm.acknowledge(first);
    assert_eq!([sm.released(), sm.released(), sm.released()], [Some(LINE), Some(LINE), None]);
}

#[test]
fn as_many_non_temporal_stores_are_under_way_as_there_are_entries() {
    let mut sm = Sm::new(NonTemporalOrder::BeforeCached, 2, 2);
    let (first, second) = (sm.sends(0, 0), sm.sends(0, 128));
    sm.acknowledge(second);
    assert_eq!(sm.offer(to(0, 256, 0, true)), Admission::Waits, "the buffer is a FIFO");
    sm.acknowledge(first);
    assert_eq!(sm.offer(to(0, 256, 0, true)), Admission::Goes);
}

#[test]
fn a_fifo_orders_instructions_but_not_a_run_to_one_line() {
    let mut sm = Sm::new(NonTemporalOrder::Fifo, 64, 8);
    assert_eq!(sm.non_temporal(0, &[0, 128], 0), 0);
    assert_eq!(sm.non_temporal(0, &[256], 0), 2, "lanes of one instruction have no order, the next one waits");
    assert_eq!(sm.non_temporal(0, &[256], 0), 2, "coherence orders these two");
    assert_eq!(sm.non_temporal(0, &[0], 0), 4);
    assert_eq!(sm.non_temporal(0, &[256], 0), 5);
}

#[test]
fn with_an_order_a_cta_a_store_waits_for_those_of_its_own_cta_alone() {
    let mut sm = Sm::new(NonTemporalOrder::BeforeCachedOfCta, 3, 8);
    let (first, other) = (sm.sends(0, 0), sm.sends(1, 128));
    assert_eq!((sm.cached(0), sm.cached(1)), (1, 1));
    for (cta, line) in [(0, LINE), (1, LINE + 128), (1, LINE)] {
        assert_eq!(sm.offer(to(cta, line, 1, false)), Admission::Held);
        sm.leaves(to(cta, line, 1, false), true);
    }
    sm.acknowledge(other);
    assert_eq!(sm.released(), Some(LINE + 128), "it overtakes another CTA's");
    assert_eq!(sm.released(), None, "but none to its line");
    // The buffer is the SM's.
    sm.sends(1, 256);
    sm.sends(1, 384);
    assert_eq!(sm.offer(to(1, 512, 0, true)), Admission::Waits);
    sm.acknowledge(first);
    assert_eq!([sm.released(), sm.released()], [Some(LINE); 2]);
    assert_eq!(sm.offer(to(1, 512, 0, true)), Admission::Goes);
}
