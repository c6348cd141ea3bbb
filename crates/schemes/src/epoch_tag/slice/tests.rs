//! The tags of a slice by themselves: what joins, what is written when, what waits.

use super::*;

fn slice(slices: u16) -> (EpochTagSlice, Outbox) {
    let place = HandlerPlace { sms: 2, slices, l1_combines: true, ..HandlerPlace::default() };
    (EpochTagSlice::new(place), Outbox::default())
}

fn access(line: u64, kind: AccessKind, from: u16, mark: u64) -> Access {
    Access { line, bytes: 1, kind, half_warps: 0, by: (0, 0), launch: 0, from, mark, log: false, hit: true }
}

/// A tag comes, and its line: true when it is served.
fn store(slice: &mut EpochTagSlice, outbox: &mut Outbox, sm: u16, tag: LineTag) -> bool {
    slice.message(Peer::Sm(sm), Box::new(TagMessage::Tag(tag)), outbox);
    let store = access(tag.line, AccessKind::Store, sm, tag.id);
    let admits = slice.admits(&store, outbox);
    if admits {
        slice.event(&SliceEvent::Accessed(&store), outbox);
    }
    admits
}

fn tag(line: u64, id: u64, after: u64) -> LineTag {
    LineTag { line, id, cta: 0, after, kernel: 0 }
}

fn written(outbox: &mut Outbox) -> Vec<u64> {
    std::mem::take(outbox.cleans())
}

fn sent(outbox: &mut Outbox) -> Vec<(Peer, TagMessage)> {
    outbox.take().into_iter().map(|(to, message)| (to, opened(message))).collect()
}

#[test]
fn an_eviction_first_has_the_older_epochs_of_its_instance_written() {
    let (slice, outbox) = &mut self::slice(1);
    assert!(store(slice, outbox, 0, tag(0, 1, 0)) && store(slice, outbox, 0, tag(128, 2, 0)));
    assert!(store(slice, outbox, 0, tag(256, 3, 2)));
    assert!(store(slice, outbox, 1, tag(384, 1, 0)), "another SM's");
    assert!(!slice.keeps(0, outbox) && written(outbox).is_empty(), "the oldest may leave");
    assert!(slice.keeps(256, outbox));
    assert_eq!(written(outbox), [0, 128], "nothing of other instances");
    slice.event(&SliceEvent::Durable(128), outbox);
    assert!(written(outbox).is_empty() && slice.keeps(256, outbox));
    slice.event(&SliceEvent::Durable(0), outbox);
    assert_eq!(written(outbox), [256]);
    slice.event(&SliceEvent::Durable(256), outbox);
    assert_eq!(sent(outbox), [2, 1, 3].map(|id| (Peer::Sm(0), TagMessage::Durable(id))));
}

#[test]
fn a_store_joins_its_epoch_and_waits_for_the_line_of_another() {
    let (slice, outbox) = &mut self::slice(1);
    assert!(store(slice, outbox, 0, tag(0, 2, 0)));
    assert!(store(slice, outbox, 0, tag(0, 3, 1)), "behind what the line is not part of");
    assert!(!store(slice, outbox, 0, tag(0, 4, 2)), "behind the line");
    assert_eq!(written(outbox), [0]);
    assert!(store(slice, outbox, 0, tag(0, 4, 2)), "it has left");
    assert!(!store(slice, outbox, 1, tag(0, 1, 0)), "another instance's");
    assert!(written(outbox).is_empty(), "the line is behind its own older bytes, which are on their way");
    slice.event(&SliceEvent::Durable(0), outbox);
    assert_eq!(written(outbox), [0]);
    assert!(store(slice, outbox, 1, tag(0, 1, 0)));
}

#[test]
fn what_has_no_tag_waits_until_the_line_has_left() {
    for kind in [AccessKind::Atomic, AccessKind::WriteBack, AccessKind::Store] {
        let (slice, outbox) = &mut self::slice(1);
        assert!(slice.admits(&access(0, kind, 0, 0), outbox));
        store(slice, outbox, 0, tag(128, 1, 0));
        store(slice, outbox, 0, tag(0, 2, 1));
        assert!(!slice.admits(&access(0, kind, 1, 0), outbox));
        assert_eq!(written(outbox), [128], "{kind:?}");
        slice.event(&SliceEvent::Durable(128), outbox);
        assert_eq!(written(outbox), [0]);
        assert!(slice.admits(&access(0, kind, 1, 0), outbox));
    }
}

#[test]
fn a_barrier_of_the_kernel_orders_the_lines_of_all_sms() {
    let (slice, outbox) = &mut self::slice(1);
    store(slice, outbox, 1, tag(0, 1, 0));
    store(slice, outbox, 0, LineTag { kernel: 1, ..tag(128, 7, 0) });
    assert!(slice.keeps(128, outbox));
    assert_eq!(written(outbox), [0]);
    slice.event(&SliceEvent::Durable(0), outbox);
    assert_eq!(written(outbox), [128]);
}

#[test]
fn a_flush_has_what_is_there_written_and_what_comes() {
    let (slice, outbox) = &mut self::slice(1);
    store(slice, outbox, 0, tag(0, 1, 0));
    slice.message(Peer::Sm(0), Box::new(TagMessage::Flush { cta: 0, number: 2 }), outbox);
    assert_eq!(written(outbox), [0]);
    store(slice, outbox, 0, tag(128, 2, 0));
    store(slice, outbox, 0, tag(256, 3, 0));
    assert_eq!(written(outbox), [128], "and no later ones");
}

#[test]
fn a_line_that_leaves_by_itself_is_durable_when_its_write_is() {
    let (slice, outbox) = &mut self::slice(1);
    store(slice, outbox, 0, tag(0, 1, 0));
    slice.event(&SliceEvent::Durable(0), outbox);
    assert_eq!(sent(outbox), [], "an older write of the line");
    slice.event(&SliceEvent::Replaced(0), outbox);
    slice.event(&SliceEvent::Durable(0), outbox);
    assert_eq!(sent(outbox), [(Peer::Sm(0), TagMessage::Durable(1))]);
}

#[test]
fn other_slices_are_asked_once_and_answer_when_they_have_written_what_comes_first() {
    let (one, outbox) = &mut slice(2);
    store(one, outbox, 0, tag(256, 3, 2));
    assert!(one.keeps(256, outbox) && one.keeps(256, outbox));
    let earlier = Earlier::Cta { sm: 0, cta: 0, number: 2 };
    assert_eq!(sent(outbox), [(Peer::Hub, TagMessage::Ask(earlier))]);
    let (other, theirs) = &mut slice(2);
    store(other, theirs, 0, tag(128, 2, 0));
    other.message(Peer::Hub, Box::new(TagMessage::Want(earlier)), theirs);
    assert_eq!((written(theirs), sent(theirs)), (vec![128], vec![]));
    other.event(&SliceEvent::Durable(128), theirs);
    let drained = TagMessage::Drained(earlier);
    assert_eq!(sent(theirs), [(Peer::Sm(0), TagMessage::Durable(2)), (Peer::Hub, drained.clone())]);
    one.message(Peer::Hub, Box::new(TagMessage::Want(earlier)), outbox);
    assert_eq!(sent(outbox), [(Peer::Hub, drained)], "it has none of these");
    assert!(written(outbox).is_empty());
    one.message(Peer::Hub, Box::new(TagMessage::Open(earlier)), outbox);
    assert_eq!(written(outbox), [256]);
    let mut report = HandlerReport::default();
    one.report(&mut report);
    let counted: Vec<_> = report.counters.into_iter().filter(|&(_, count)| count != 0).collect();
    assert_eq!(counted, [("l2_tagged_versions", 1), ("l2_kept_victims", 1), ("l2_asked_slices", 1)]);
}

#[test]
fn lines_of_launches_in_flight_together_have_no_order_and_those_of_the_next_come_behind_both() {
    let (slice, outbox) = &mut self::slice(1);
    // Launches behind barriers 1 and 2 run at once; that behind 3 begins when the first is over.
    for (kernel, with) in [(2, vec![1]), (3, vec![2])] {
        slice.message(Peer::Sm(0), Box::new(TagMessage::Beside { kernel, with }), outbox);
    }
    let of = |line, id, kernel| LineTag { kernel, ..tag(line, id, 0) };
    assert!(store(slice, outbox, 0, of(0, 1, 1)) && store(slice, outbox, 1, of(128, 1, 2)));
    assert!(!slice.keeps(128, outbox), "it does not wait for the other launch");
    assert!(store(slice, outbox, 0, of(256, 2, 3)));
    assert!(slice.keeps(256, outbox));
    assert_eq!(written(outbox), [0], "of the first launch, not of the second");
    slice.event(&SliceEvent::Durable(0), outbox);
    assert_eq!(written(outbox), [256]);
    // Behind both: the launch that follows begins when none runs.
    assert!(store(slice, outbox, 0, of(384, 3, 4)) && slice.keeps(384, outbox));
    assert_eq!(written(outbox), [128], "what has left is on its way");
}

#[test]
fn other_slices_are_asked_for_launches_that_are_over_alone() {
    let (slice, outbox) = &mut self::slice(2);
    slice.message(Peer::Sm(0), Box::new(TagMessage::Beside { kernel: 2, with: vec![1] }), outbox);
    let of = |line, id, kernel| LineTag { kernel, ..tag(line, id, 0) };
    assert!(store(slice, outbox, 0, of(0, 1, 0)) && store(slice, outbox, 1, of(128, 1, 1)));
    slice.message(Peer::Hub, Box::new(TagMessage::Want(Earlier::Kernel(2))), outbox);
    assert_eq!(written(outbox), [0], "of the launch that is over");
    slice.event(&SliceEvent::Durable(0), outbox);
    let drained = TagMessage::Drained(Earlier::Kernel(2));
    assert_eq!(sent(outbox), [(Peer::Sm(0), TagMessage::Durable(1)), (Peer::Hub, drained)]);
}
