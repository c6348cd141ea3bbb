//! A bank of the L2's buffer: its room, the reservation buffer behind it, and what it tells.

use super::*;

struct Slice {
    bank: Bank,
    outbox: Outbox,
}

impl Slice {
    /// Twelve entries are six lines: two in each of four slices, which any line may have.
    fn new(changes: &[(&str, Value)]) -> Slice {
        let own = [("entries", json!(12)), ("charge_reservation", json!(true)), ("placement", json!("associative"))];
        let all = [&own, changes].concat();
        Slice { bank: Bank::new(&AgpmSpec::with(&all), place(0)), outbox: Outbox::default() }
    }

    /// An access; what it moves to the reservation buffer and back.
    fn access(&mut self, access: Access) -> Vec<Move> {
        self.bank.access(&access, &mut self.outbox);
        self.outbox.take_moves()
    }

    fn store(&mut self, line: u64) -> Vec<Move> {
        self.access(access(AccessKind::Store, line, 1))
    }

    fn load(&mut self, line: u64) -> Vec<Move> {
        self.access(access(AccessKind::Load, line, 1))
    }

    fn count(&mut self) -> (Locality, u64, u64, u64) {
        self.bank.message(Peer::Hub, Box::new(AgpmMessage::Count(0)), &mut self.outbox);
        counted(written(&mut self.outbox))
    }
}

const OUT: Move = Move::Out(89);
const IN: Move = Move::In(89);

#[test]
fn entries_without_room_go_to_the_reservation_buffer_and_come_back_with_their_counts() {
    let mut slice = Slice::new(&[]);
    slice.store(0);
    slice.store(0);
    assert_eq!(slice.store(128), [], "two lines have room");
    assert_eq!(slice.store(256), [OUT], "that of 0");
    assert_eq!(slice.load(0), [IN, OUT], "that of 128 makes room");
    // Line 0: counters of 3 and 2, block counters of 2 and 1. Line 256 was touched once.
    assert_eq!(slice.count(), (Locality { t_all: 3, t_log: 2, s_all: 5, s_log: 3 }, 0, 2, 1));
}

#[test]
fn a_bank_that_told_has_forgotten_entries_spills_and_refills() {
    let mut slice = Slice::new(&[]);
    [0, 128, 256, 0].into_iter().for_each(|line| drop(slice.store(line)));
    assert_eq!(slice.count(), (Locality { t_all: 2, t_log: 2, s_all: 3, s_log: 3 }, 0, 2, 1));
    assert_eq!(slice.count(), (Locality::default(), 0, 0, 0));
    assert_eq!(slice.load(128), [], "nor is it in the reservation buffer");
    [0, 128, 256].into_iter().for_each(|line| drop(slice.store(line)));
    assert_eq!(slice.count(), (Locality::default(), 0, 1, 0));
}

#[test]
fn moves_are_charged_only_where_the_parameters_say_so() {
    let mut free = Slice::new(&[("charge_reservation", json!(false))]);
    assert!([0, 128, 256, 0].into_iter().all(|line| free.store(line).is_empty()));
    assert_eq!(free.count(), (Locality { t_all: 2, t_log: 2, s_all: 3, s_log: 3 }, 0, 2, 1), "but counted");
    let mut other = Slice::new(&[("reservation_bytes", json!(40))]);
    let moves: Vec<Vec<Move>> = [0, 128, 256, 0].into_iter().map(|line| other.store(line)).collect();
    assert_eq!(moves[2..], [vec![Move::Out(40)], vec![Move::In(40), Move::Out(40)]]);
}

#[test]
fn the_l2s_entries_are_divided_among_its_slices_rounded_up() {
    for (entries, slices, lines) in [(12, 4, 2), (14, 4, 2), (16, 4, 2), (18, 4, 3), (12, 1, 6), (2, 4, 1)] {
        let associative = ("placement", json!("associative"));
        let spec = AgpmSpec::with(&[("entries", json!(entries)), ("charge_reservation", json!(true)), associative]);
        let bank = Bank::new(&spec, HandlerPlace { slices, ..place(0) });
        let mut slice = Slice { bank, outbox: Outbox::default() };
        let first = (0..).position(|line| !slice.store(128 * line).is_empty());
        assert_eq!(first, Some(lines), "{entries} entries, {slices} slices");
    }
}

#[test]
fn where_sets_are_indexed_a_bank_has_those_of_the_whole_buffer_for_its_lines() {
    let mut slice = Slice::new(&[("placement", json!("indexed"))]);
    for line in 0..6 {
        assert_eq!(slice.store(128 * line), [], "six sets, one line each");
    }
    assert_eq!(slice.store(128 * 8), [OUT], "that of line 2");
    assert_eq!(slice.load(128 * 2), [IN, OUT]);
}

#[test]
fn a_bank_counts_saturated_counters_by_the_statistics_of_its_parameters() {
    let mut slice = Slice::new(&[("counter_bits", json!(2)), ("statistics", json!("hits"))]);
    (0..6).for_each(|_| assert!(slice.store(0).is_empty()));
    // Of each way: the byte counter holds 3 of 6 references, the block counter 3 of 5.
    assert_eq!(slice.count(), (Locality { t_all: 5, t_log: 5, s_all: 5, s_log: 5 }, 2 * (3 + 2), 0, 0));
}

#[test]
fn an_entry_from_the_l1_joins_that_of_the_line_or_takes_room() {
    let mut l1 = Buffer::new(Places::Lines(1), Counting { most: 31, first_sets: true });
    l1.refer(0, 1, true);
    l1.refer(0, 1, false);
    let entry = l1.take(0).unwrap();
    let mut slice = Slice::new(&[]);
    let moved = |slice: &mut Slice| {
        slice.bank.message(
            Peer::Sm(0),
            Box::new(AgpmMessage::Moved { launch: 0, entry: Box::new(entry.clone()) }),
            &mut slice.outbox,
        );
        slice.outbox.take_moves()
    };
    slice.store(0);
    assert_eq!(moved(&mut slice), []);
    assert_eq!(slice.count(), (Locality { t_all: 3, t_log: 2, s_all: 4, s_log: 2 }, 0, 0, 0));
    slice.store(128);
    slice.store(256);
    assert_eq!(moved(&mut slice), [OUT]);
    assert_eq!(slice.count(), (Locality { t_all: 2, t_log: 0, s_all: 3, s_log: 0 }, 0, 1, 0));
}

#[test]
fn a_line_that_is_replaced_takes_its_entry_to_the_reservation_buffer() {
    let mut slice = Slice::new(&[]);
    slice.store(0);
    slice.bank.event(&SliceEvent::Replaced(128), &mut slice.outbox);
    assert_eq!(slice.outbox.take_moves(), []);
    slice.bank.event(&SliceEvent::Replaced(0), &mut slice.outbox);
    assert_eq!(slice.outbox.take_moves(), [OUT]);
    assert_eq!(slice.count(), (Locality::default(), 0, 1, 0));
}

#[test]
fn with_a_shadow_every_access_fetches_and_a_write_back_keeps_the_entry() {
    let mut slice = Slice::new(&[]);
    for kind in [AccessKind::Store, AccessKind::Load, AccessKind::Atomic, AccessKind::WriteBack] {
        slice.store(0);
        slice.bank.event(&SliceEvent::Replaced(0), &mut slice.outbox);
        slice.outbox.take_moves();
        assert_eq!(slice.access(access(kind, 0, 1)), [IN], "{kind:?}");
    }
    assert_eq!(slice.access(access(AccessKind::WriteBack, 0, 1)), []);
}

#[test]
fn with_hits_in_the_cache_loads_fetch_and_a_write_back_takes_the_entry_along() {
    for (kind, moves) in [
        (AccessKind::Store, &[][..]),
        (AccessKind::Load, &[IN]),
        (AccessKind::Atomic, &[]),
        (AccessKind::WriteBack, &[]),
    ] {
        let mut slice = Slice::new(&[("hit", json!("cache"))]);
        slice.store(0);
        assert_eq!(slice.access(access(AccessKind::WriteBack, 0, 1)), [OUT], "written back");
        assert_eq!(slice.access(access(kind, 0, 1)), moves, "{kind:?}");
    }
}
