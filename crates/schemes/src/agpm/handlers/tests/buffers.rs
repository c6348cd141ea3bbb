//! The L1's buffer: which SMs have one, what it counts, and what leaves it for the L2.

use super::*;

fn store(line: u64, bytes: u128) -> Access {
    access(AccessKind::Store, line, bytes)
}

fn load(line: u64, bytes: u128) -> Access {
    access(AccessKind::Load, line, bytes)
}

/// Lines of entries that leave, with whom they go to.
fn moved(messages: Vec<(Peer, AgpmMessage)>) -> Vec<(Peer, u64)> {
    messages
        .into_iter()
        .map(|(to, word)| match word {
            AgpmMessage::Moved { entry, .. } => (to, entry.line),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn the_sampled_sm_has_a_buffer_or_each_has() {
    for (changes, expected) in [
        (&[][..], [true, false, false]),
        (&[("sampled_sm", json!(2))], [false, false, true]),
        (&[("l1_buffers", json!("each"))], [true, true, true]),
    ] {
        let have = [0, 1, 2].map(|index| Sm::at(index, changes).handler.l1.is_some());
        assert_eq!(have, expected, "{changes:?}");
    }
}

#[test]
fn a_buffer_tells_what_it_counted_and_forgets_it() {
    // Counters over 1 and the block counters, or repetitions.
    for (statistics, locality) in [
        ("counter_sum", Locality { t_all: 6, t_log: 4, s_all: 8, s_log: 5 }),
        ("hits", Locality { t_all: 2, t_log: 1, s_all: 2, s_log: 1 }),
    ] {
        let mut sm = Sm::new(&[("statistics", json!(statistics))]);
        for access in [store(0, 0b11), store(0, 0b11), load(0, 0b11)] {
            assert!(sm.access(access).is_empty());
        }
        assert_eq!(counted(sm.message(AgpmMessage::Count(0))), (locality, 0, 0, 0), "{statistics}");
        assert_eq!(counted(sm.message(AgpmMessage::Count(0))), (Locality::default(), 0, 0, 0), "{statistics}");
        sm.access(load(0, 0b11));
        assert_eq!(counted(sm.message(AgpmMessage::Count(0))).0, Locality::default(), "{statistics}: no entry is left");
    }
}

#[test]
fn an_sm_without_a_buffer_counts_nothing() {
    let mut sm = Sm::at(1, &[]);
    (0..3).for_each(|_| assert!(sm.access(store(0, 1)).is_empty()));
    assert_eq!(counted(sm.message(AgpmMessage::Count(0))), (Locality::default(), 0, 0, 0));
}

#[test]
fn counters_of_so_many_bits_saturate_and_are_told() {
    let mut sm = Sm::new(&[("counter_bits", json!(3))]);
    (0..10).for_each(|_| assert!(sm.access(store(0, 1)).is_empty()));
    // Ten references, nine of them repetitions; a counter holds 7.
    assert_eq!(
        counted(sm.message(AgpmMessage::Count(0))),
        (Locality { t_all: 7, t_log: 7, s_all: 14, s_log: 14 }, 10, 0, 0)
    );
}

#[test]
fn a_byte_that_a_log_update_is_first_to_touch_counts_or_does_not() {
    for (first_byte, t_all) in [("set", 1), ("literal", 0)] {
        let mut sm = Sm::new(&[("pm_first_byte", json!(first_byte)), ("statistics", json!("hits"))]);
        [0b01, 0b10, 0b10].into_iter().for_each(|bytes| assert!(sm.access(store(0, bytes)).is_empty()));
        assert_eq!(counted(sm.message(AgpmMessage::Count(0))).0, Locality { t_all, t_log: t_all, s_all: 2, s_log: 2 });
    }
}

#[test]
fn an_entry_leaves_for_its_lines_slice_when_there_is_no_room_or_its_line_is_replaced() {
    let mut sm = Sm::new(&[("entries", json!(4))]);
    assert!(moved(sm.access(store(0, 1))).is_empty());
    assert!(moved(sm.access(store(128, 1))).is_empty(), "two lines have room");
    assert_eq!(moved(sm.access(store(256, 1))), [(Peer::SliceOf(0), 0)]);
    sm.handler.event(&SmEvent::Replaced(256), &mut sm.outbox);
    assert_eq!(moved(written(&mut sm.outbox)), [(Peer::SliceOf(256), 256)]);
    sm.handler.event(&SmEvent::Replaced(0), &mut sm.outbox);
    assert!(written(&mut sm.outbox).is_empty(), "it has left already");
}

#[test]
fn a_write_back_and_the_logs_own_lines_are_not_counted() {
    let mut sm = Sm::new(&[]);
    sm.access(store(0, 1));
    sm.access(access(AccessKind::WriteBack, 0, 1));
    sm.access(Access { log: true, ..store(0, 1) });
    assert_eq!(counted(sm.message(AgpmMessage::Count(0))).0, Locality::default());
}

/// The buffer of the only launch has an entry of a line.
fn has(sm: &Sm, line: u64) -> bool {
    sm.handler.l1.as_ref().unwrap().buffers.get(&0).is_some_and(|buffer| buffer.has(line))
}

#[test]
fn a_write_back_and_the_logs_own_lines_make_no_entry() {
    let mut sm = Sm::new(&[]);
    sm.access(access(AccessKind::WriteBack, 0, 1));
    sm.access(Access { log: true, ..store(128, 1) });
    assert_eq!([0, 128].map(|line| has(&sm, line)), [false, false]);
    let mut slot = Sm::new(&[("key", json!("slot"))]);
    slot.access(Access { log: true, ..store(128, 1) });
    assert!(has(&slot, 128));
}

#[test]
fn a_shadow_counts_whatever_the_cache_holds_and_else_hits_count_alone() {
    for (hit, s_all) in [("shadow", 2), ("cache", 1)] {
        let mut sm = Sm::new(&[("hit", json!(hit)), ("statistics", json!("hits"))]);
        sm.access(store(0, 1));
        sm.access(load(0, 1));
        sm.access(Access { hit: true, ..load(0, 1) });
        assert_eq!(
            counted(sm.message(AgpmMessage::Count(0))).0,
            Locality { t_all: s_all, s_all, ..Locality::default() },
            "{hit}"
        );
    }
}

#[test]
fn a_store_that_evicts_its_line_takes_the_entry_along_unless_the_buffer_is_a_shadow() {
    let leaves = |hit: &str, kind: AccessKind, in_cache: bool| {
        let mut sm = Sm::new(&[("hit", json!(hit))]);
        sm.access(store(0, 1));
        moved(sm.access(Access { hit: in_cache, ..access(kind, 0, 1) }))
    };
    for kind in [AccessKind::Store, AccessKind::Atomic] {
        assert_eq!(leaves("cache", kind, true), [(Peer::SliceOf(0), 0)], "{kind:?}");
        assert!(leaves("cache", kind, false).is_empty() && leaves("shadow", kind, true).is_empty(), "{kind:?}");
    }
    assert!(leaves("cache", AccessKind::Load, true).is_empty(), "a load leaves the line there");
}
