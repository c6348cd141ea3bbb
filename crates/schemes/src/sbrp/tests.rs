//! Tests of the handler by itself: what joins, what leaves when, what is kept back.

use super::*;

fn handler(pb_entries: u32, window: u32) -> PersistBuffer {
    PersistBuffer::new(&Arc::new(SbrpSpec { pb_entries, window }), true)
}

/// A store of a warp of CTA 0; true when it joins.
fn store(handler: &mut PersistBuffer, outbox: &mut Outbox, line: u64, warp: u8, number: u64, after: u64) -> bool {
    handler.join(&Joining { line, by: (warp, 0), launch: 0, number, after }, outbox)
}

fn left(outbox: &mut Outbox) -> Vec<(u64, u64)> {
    outbox.persists().drain(..).collect()
}

fn count(handler: &PersistBuffer, wanted: &str) -> u64 {
    let mut report = HandlerReport::default();
    handler.report(&mut report);
    report.counters.into_iter().find_map(|(name, count)| (name == wanted).then_some(count)).unwrap()
}

#[test]
fn so_many_lines_are_under_way_and_the_next_leaves_when_one_is_durable() {
    let (mut handler, outbox) = (handler(8, 2), &mut Outbox::default());
    for number in 1..=4 {
        assert!(store(&mut handler, outbox, 128 * number, 0, number, 0));
    }
    assert_eq!(left(outbox), [(128, 1), (256, 2)]);
    handler.event(&SmEvent::Persisted(2), outbox);
    assert_eq!(left(outbox), [(384, 3)]);
}

#[test]
fn a_block_behind_a_fence_waits_for_its_ctas_blocks_before_it_and_holds_up_the_rest() {
    let (mut handler, outbox) = (handler(8, 8), &mut Outbox::default());
    store(&mut handler, outbox, 0, 0, 1, 0);
    store(&mut handler, outbox, 128, 0, 2, 1);
    store(&mut handler, outbox, 256, 1, 3, 0);
    assert_eq!(left(outbox), [(0, 1)], "the buffer is a FIFO");
    handler.event(&SmEvent::Persisted(1), outbox);
    assert_eq!(left(outbox), [(128, 2), (256, 3)]);
}

#[test]
fn a_store_merges_unless_an_order_lies_between() {
    let (mut handler, outbox) = (handler(8, 1), &mut Outbox::default());
    store(&mut handler, outbox, 0, 0, 1, 0);
    store(&mut handler, outbox, 128, 0, 2, 0);
    assert!(store(&mut handler, outbox, 128, 1, 3, 0));
    assert!(!store(&mut handler, outbox, 128, 0, 4, 3), "the warp's own fence lies between");
    assert!(!store(&mut handler, outbox, 128, 0, 4, 3), "asked again");
    assert_eq!((count(&handler, "pb_merged_stores"), count(&handler, "pb_delayed_stores")), (1, 1));
    left(outbox);
    handler.event(&SmEvent::Persisted(1), outbox);
    assert_eq!(left(outbox), [(128, 2)]);
    assert!(store(&mut handler, outbox, 128, 0, 4, 3));
    assert_eq!(left(outbox), [], "behind what is under way");
}

#[test]
fn a_fence_is_one_entry_ahead_of_the_first_block_behind_it() {
    let (mut handler, outbox) = (handler(8, 1), &mut Outbox::default());
    for (number, warp) in [(1, 0), (2, 1)] {
        store(&mut handler, outbox, 128 * number, warp, number, 0);
    }
    store(&mut handler, outbox, 512, 0, 3, 2);
    store(&mut handler, outbox, 640, 0, 4, 2);
    assert_eq!(count(&handler, "pb_orders"), 1, "the second store is behind the same fence");
    store(&mut handler, outbox, 768, 1, 5, 2);
    assert_eq!(count(&handler, "pb_orders"), 2, "another warp's, with a block between");
}

#[test]
fn a_store_behind_a_fence_needs_two_entries_and_any_other_one() {
    let full = |behind_fence: bool| {
        let (mut handler, outbox) = (handler(2, 1), &mut Outbox::default());
        assert!(store(&mut handler, outbox, 128, 0, 1, 0), "it leaves at once");
        assert!(store(&mut handler, outbox, 256, 0, 2, 0), "one of two entries");
        !store(&mut handler, outbox, 384, 0, 3, if behind_fence { 2 } else { 0 })
    };
    assert_eq!([false, true].map(full), [false, true]);
}

#[test]
fn a_full_buffer_keeps_stores_back_and_one_of_a_single_entry_works() {
    let (mut handler, outbox) = (handler(1, 1), &mut Outbox::default());
    assert!(store(&mut handler, outbox, 0, 0, 1, 0), "it leaves at once");
    assert!(store(&mut handler, outbox, 128, 0, 2, 1));
    assert!(!store(&mut handler, outbox, 256, 0, 3, 2));
    assert_eq!((left(outbox), count(&handler, "pb_full_stores")), (vec![(0, 1)], 1));
    handler.event(&SmEvent::Persisted(1), outbox);
    assert!(store(&mut handler, outbox, 256, 0, 3, 2));
    assert_eq!(left(outbox), [(128, 2)]);
}

#[test]
fn what_orders_and_what_waits() {
    let mut handler = handler(1, 1);
    for kind in [FenceKind::Sfence, FenceKind::Ofence, FenceKind::BarrierThread, FenceKind::BarrierCta] {
        assert_eq!(handler.fence(kind), FenceRule::Ordered);
    }
    for kind in [FenceKind::Dfence, FenceKind::BarrierKernel] {
        assert_eq!(handler.fence(kind), FenceRule::WaitDurable);
    }
    let mut released = |wide| handler.synchronise(Synchronisation::Release { wide }).fence;
    assert_eq!([false, true].map(&mut released), [FenceRule::Ordered, FenceRule::WaitDurable]);
    let mut forgets = |wide| handler.synchronise(Synchronisation::Acquire { wide }).forgets;
    assert_eq!([false, true].map(&mut forgets), [false, true]);
}
