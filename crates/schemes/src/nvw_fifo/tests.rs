//! The FIFOs by themselves: entries, markers, what left early.

use super::*;

fn spec(l1_entries: u32, l2_entries: u32, l2_fifo: L2Fifo) -> NvwFifo {
    NvwFifo::new(NvwFifoSpec { l1_entries, l2_entries, l2_fifo, kernel_end: KernelEnd::None })
}

fn place() -> HandlerPlace {
    HandlerPlace { sms: 2, slices: 1, l1_combines: true, ..HandlerPlace::default() }
}

fn stored(line: u64, by: (u8, u8), from: u16) -> Access {
    Access {
        line,
        bytes: 1,
        kind: AccessKind::Store,
        half_warps: 1,
        by,
        launch: 0,
        from,
        mark: 0,
        log: false,
        hit: false,
    }
}

#[test]
fn a_line_has_one_entry_and_a_full_fifo_flushes_its_head_early() {
    let mut handler = spec(2, 2, L2Fifo::Shared).sm_handler(place()).unwrap();
    let outbox = &mut Outbox::default();
    for line in [0, 128, 0, 128] {
        handler.event(&SmEvent::Accessed(&stored(line, (0, 0), 0)), outbox);
    }
    assert!(outbox.cleans().is_empty(), "two lines fit");
    handler.event(&SmEvent::Accessed(&stored(256, (0, 0), 0)), outbox);
    assert_eq!(*outbox.cleans(), [0], "the oldest line goes first");
}

#[test]
fn a_marker_drains_what_is_ahead_in_order_whoever_stored_it() {
    let mut handler = spec(16, 64, L2Fifo::Shared).sm_handler(place()).unwrap();
    let outbox = &mut Outbox::default();
    for (line, by) in [(384, (0, 0)), (0, (1, 0)), (128, (2, 1))] {
        handler.event(&SmEvent::Accessed(&stored(line, by, 0)), outbox);
    }
    outbox.cleans().clear();
    handler.event(&SmEvent::Marker(&Marker { scope: PersistScope::Cta, by: (0, 0) }), outbox);
    assert_eq!(*outbox.cleans(), [384, 0, 128]);
    let mut report = HandlerReport::default();
    handler.report(&mut report);
    let count = |wanted: &str| report.counters.iter().find(|(name, _)| *name == wanted).unwrap().1;
    assert_eq!((count("l1_wg_own_entries"), count("l1_wg_other_entries")), (2, 1));
    outbox.cleans().clear();
    handler.event(&SmEvent::Marker(&Marker { scope: PersistScope::Cta, by: (0, 0) }), outbox);
    assert!(outbox.cleans().is_empty(), "nothing was stored since");
}

#[test]
fn a_line_that_is_cleaned_takes_its_entry_along() {
    let count = |handler: &dyn SmHandler, wanted: &str| {
        let mut report = HandlerReport::default();
        handler.report(&mut report);
        report.counters.into_iter().find_map(|(name, count)| (name == wanted).then_some(count)).unwrap()
    };
    let mut handler = spec(2, 64, L2Fifo::Shared).sm_handler(place()).unwrap();
    let outbox = &mut Outbox::default();
    handler.event(&SmEvent::Accessed(&stored(0, (0, 0), 0)), outbox);
    handler.event(&SmEvent::Accessed(&stored(128, (0, 0), 0)), outbox);
    handler.event(&SmEvent::Cleaned(0), outbox);
    handler.event(&SmEvent::Cleaned(512), outbox);
    assert_eq!(count(&*handler, "l1_evicted_entries"), 1, "the other line had none");
    handler.event(&SmEvent::Accessed(&stored(256, (0, 0), 0)), outbox);
    assert!(outbox.cleans().is_empty(), "its place is free");
    handler.event(&SmEvent::Accessed(&stored(384, (0, 0), 0)), outbox);
    assert_eq!((&**outbox.cleans(), count(&*handler, "l1_early_entries")), (&[128][..], 1));
    outbox.cleans().clear();
    handler.event(&SmEvent::Marker(&Marker { scope: PersistScope::Thread, by: (0, 0) }), outbox);
    assert_eq!(*outbox.cleans(), [256, 384]);
}

#[test]
fn what_an_atomic_or_a_write_back_performs_at_the_l2_has_no_entry_in_the_l1() {
    for (kind, left) in
        [(AccessKind::Load, &[0, 128][..]), (AccessKind::Atomic, &[128]), (AccessKind::WriteBack, &[128])]
    {
        let mut handler = spec(16, 64, L2Fifo::Shared).sm_handler(place()).unwrap();
        let outbox = &mut Outbox::default();
        handler.event(&SmEvent::Accessed(&stored(0, (0, 0), 0)), outbox);
        handler.event(&SmEvent::Accessed(&stored(128, (0, 0), 0)), outbox);
        handler.event(&SmEvent::Accessed(&Access { kind, ..stored(0, (0, 0), 0) }), outbox);
        handler.event(&SmEvent::Marker(&Marker { scope: PersistScope::Thread, by: (0, 0) }), outbox);
        assert_eq!(*outbox.cleans(), left, "{kind:?}");
    }
}

#[test]
fn what_left_the_l2_by_itself_is_the_next_markers_until_it_is_durable() {
    let mut handler = spec(16, 64, L2Fifo::Shared).slice_handler(place()).unwrap();
    let outbox = &mut Outbox::default();
    handler.event(&SliceEvent::Accessed(&stored(0, (0, 0), 0)), outbox);
    handler.event(&SliceEvent::Replaced(0), outbox);
    let drained = |handler: &mut Box<dyn SliceHandler>, from| {
        let outbox = &mut Outbox::default();
        handler.event(&SliceEvent::Drain(from), outbox);
        std::mem::take(outbox.cleans())
    };
    assert_eq!(drained(&mut handler, 1), [0], "every marker waits for it");
    assert_eq!(drained(&mut handler, 0), [0]);
    handler.event(&SliceEvent::Durable(0), outbox);
    assert!(drained(&mut handler, 0).is_empty());
}

#[test]
fn a_part_of_its_own_keeps_a_marker_from_others_lines() {
    let mut handler = spec(16, 1, L2Fifo::PerCu).slice_handler(place()).unwrap();
    let outbox = &mut Outbox::default();
    handler.event(&SliceEvent::Accessed(&stored(0, (0, 0), 0)), outbox);
    handler.event(&SliceEvent::Accessed(&stored(128, (0, 0), 1)), outbox);
    assert!(outbox.cleans().is_empty(), "each has its entry");
    handler.event(&SliceEvent::Drain(0), outbox);
    assert_eq!(*outbox.cleans(), [0]);
}
