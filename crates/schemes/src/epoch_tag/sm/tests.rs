//! Tests of the handler by itself: what joins, what leaves when, what is kept back.

use super::super::hub::EpochTagHub;
use super::*;

fn of(levels: TagLevels) -> EpochTagSm {
    let place = HandlerPlace { sms: 1, slices: 2, l1_combines: true, ..HandlerPlace::default() };
    EpochTagSm::new(&EpochTagSpec { levels, past_entries: 1, held_entries: 1 }, place)
}

fn handler() -> EpochTagSm {
    of(TagLevels::L1)
}

/// A launch starts behind `number` stores. No other is in flight.
fn launch_starts(number: u64) -> SmEvent<'static> {
    SmEvent::LaunchStarts { number, launch: 0, beside: LaunchSet::default(), again: false }
}

/// A store of a CTA's warp; true when it joins.
fn store(handler: &mut EpochTagSm, outbox: &mut Outbox, line: u64, cta: u8, number: u64, after: u64) -> bool {
    handler.join(&Joining { line, by: (0, cta), launch: 0, number, after }, outbox)
}

fn left(outbox: &mut Outbox) -> Vec<(u64, u64)> {
    outbox.persists().drain(..).collect()
}

#[test]
fn nothing_leaves_until_something_wants_it_and_then_older_epochs_first() {
    let (mut handler, outbox) = (handler(), &mut Outbox::default());
    assert!(store(&mut handler, outbox, 0, 0, 1, 0));
    assert!(store(&mut handler, outbox, 128, 0, 2, 0));
    assert!(store(&mut handler, outbox, 256, 0, 3, 2), "behind a barrier");
    assert_eq!(left(outbox), []);
    handler.wanted(256, outbox);
    assert_eq!(left(outbox), [(0, 1), (128, 2)], "the older epoch, all at once");
    handler.persisted(2, outbox);
    assert_eq!(left(outbox), [], "one of it is not durable");
    handler.persisted(1, outbox);
    assert_eq!(left(outbox), [(256, 3)]);
}

#[test]
fn other_instances_are_not_waited_for() {
    let (mut handler, outbox) = (handler(), &mut Outbox::default());
    store(&mut handler, outbox, 0, 0, 1, 0);
    store(&mut handler, outbox, 128, 1, 2, 0);
    store(&mut handler, outbox, 256, 1, 3, 2);
    handler.wanted(256, outbox);
    assert_eq!(left(outbox), [(128, 2)], "not CTA 0's");
}

#[test]
fn a_line_combines_within_its_epoch_and_leaves_before_a_newer_one() {
    let (mut handler, outbox) = (handler(), &mut Outbox::default());
    store(&mut handler, outbox, 0, 0, 1, 0);
    assert!(store(&mut handler, outbox, 0, 0, 2, 0));
    assert!(!store(&mut handler, outbox, 0, 0, 3, 2), "an older epoch's version");
    assert_eq!(left(outbox), [(0, 1)]);
    assert!(store(&mut handler, outbox, 0, 0, 3, 2), "it has left");
    handler.wanted(0, outbox);
    assert_eq!(left(outbox), [], "the old version is not durable");
    handler.persisted(1, outbox);
    assert_eq!(left(outbox), [(0, 3)]);
}

#[test]
fn false_sharing_has_the_other_ctas_version_leave() {
    let (mut handler, outbox) = (handler(), &mut Outbox::default());
    store(&mut handler, outbox, 0, 0, 1, 0);
    assert!(!store(&mut handler, outbox, 0, 1, 2, 0));
    assert_eq!(left(outbox), [(0, 1)]);
    assert!(store(&mut handler, outbox, 0, 1, 2, 0));
}

#[test]
fn a_flush_takes_along_stores_that_come_late() {
    let (mut handler, outbox) = (handler(), &mut Outbox::default());
    store(&mut handler, outbox, 0, 0, 1, 0);
    handler.flush(0, 2, outbox);
    store(&mut handler, outbox, 128, 0, 2, 0);
    store(&mut handler, outbox, 256, 0, 3, 0);
    assert_eq!(left(outbox), [(0, 1), (128, 2)], "and no later ones");
}

#[test]
fn a_kernels_barrier_drains_and_what_is_behind_waits_for_the_hub() {
    let (mut handler, outbox) = (handler(), &mut Outbox::default());
    let mut hub = EpochTagHub::new(HandlerPlace { sms: 1, ..HandlerPlace::default() });
    store(&mut handler, outbox, 0, 0, 1, 0);
    handler.kernel_barrier(2, outbox);
    assert_eq!(left(outbox), [(0, 1)]);
    handler.persisted(1, outbox);
    assert!(outbox.take().is_empty(), "the second store before the barrier is still to come");
    store(&mut handler, outbox, 128, 1, 2, 0);
    assert_eq!(left(outbox), [(128, 2)], "it leaves at once");
    store(&mut handler, outbox, 256, 1, 3, 0);
    handler.wanted(256, outbox);
    assert_eq!(left(outbox), [], "behind the barrier");
    handler.persisted(2, outbox);
    for _ in 0..2 {
        for (to, message) in outbox.take() {
            match to {
                Peer::Hub => hub.message(Peer::Sm(0), message, outbox),
                _ => handler.message(Peer::Hub, message, outbox),
            }
        }
    }
    assert_eq!(left(outbox), [(256, 3)]);
}

/// Messages that are for slices.
fn to_slices(outbox: &mut Outbox) -> Vec<(Peer, TagMessage)> {
    let opened = |(to, message)| (to, opened(message));
    outbox.take().into_iter().map(opened).filter(|(to, _)| *to != Peer::Hub).collect()
}

#[test]
fn a_line_goes_to_its_slice_with_its_tag_and_a_flush_is_told_once() {
    let (mut handler, outbox) = (of(TagLevels::Both), &mut Outbox::default());
    assert!(handler.interests().persists_by_l2);
    store(&mut handler, outbox, 0, 3, 1, 0);
    store(&mut handler, outbox, 128, 3, 2, 1);
    handler.wanted(128, outbox);
    let tag = |line, id, after| TagMessage::Tag(LineTag { line, id, cta: 3, after, kernel: 0 });
    assert_eq!((left(outbox), to_slices(outbox)), (vec![(0, 1)], vec![(Peer::SliceOf(0), tag(0, 1, 0))]));
    handler.persisted(1, outbox);
    assert_eq!(to_slices(outbox), [(Peer::SliceOf(128), tag(128, 2, 1))], "the first has come to the L2");
    for number in [2, 2, 1] {
        handler.flush(3, number, outbox);
    }
    let flush = TagMessage::Flush { cta: 3, number: 2 };
    assert_eq!(to_slices(outbox), [(Peer::Slice(0), flush.clone()), (Peer::Slice(1), flush)]);
    handler.message(Peer::Slice(0), Box::new(TagMessage::Durable(2)), outbox);
    assert_eq!(*outbox.durables(), [2]);
}

#[test]
fn a_launch_is_behind_those_before_it() {
    let (mut handler, outbox) = (of(TagLevels::Both), &mut Outbox::default());
    handler.event(&launch_starts(0), outbox);
    assert_eq!(handler.kernel.epoch_of(0, 9), 0, "the first");
    store(&mut handler, outbox, 0, 0, 1, 0);
    handler.event(&launch_starts(1), outbox);
    assert_eq!([1, 2].map(|number| handler.kernel.epoch_of(0, number)), [0, 1]);
    let mut l1 = self::handler();
    (0..2).for_each(|number| l1.event(&launch_starts(number), outbox));
    assert_eq!(l1.kernel.epoch_of(0, 9), 0, "all of it is durable");
}

/// An SM's tags with two slices behind it, and what it tells them of launches.
fn starts(index: u16, events: &[(u64, u8, &[u8], bool)]) -> (EpochTagSm, Vec<TagMessage>) {
    let place = HandlerPlace { index, sms: 2, slices: 2, l1_combines: true, ..HandlerPlace::default() };
    let spec = EpochTagSpec { levels: TagLevels::Both, past_entries: 1, held_entries: 1 };
    let (mut handler, outbox) = (EpochTagSm::new(&spec, place), &mut Outbox::default());
    for &(number, launch, beside, again) in events {
        let beside = LaunchSet::of(beside.iter().copied());
        handler.event(&SmEvent::LaunchStarts { number, launch, beside, again }, outbox);
    }
    let told = outbox.take().into_iter().filter(|(to, _)| *to == Peer::Slice(1));
    (handler, told.map(|(_, message)| opened(message)).collect())
}

#[test]
fn stores_are_behind_the_barrier_at_which_their_own_launch_began() {
    // The launch in place 1 begins behind 4 stores of that in place 0, and a third when both are over.
    let (handler, told) = starts(0, &[(0, 0, &[], false), (4, 1, &[0], false), (9, 0, &[], false)]);
    assert_eq!([5, 7, 9].map(|number| handler.kernel.epoch_of(1, number)), [1; 3]);
    assert_eq!([5, 10].map(|number| handler.kernel.epoch_of(0, number)), [0, 2]);
    assert_eq!(told, [TagMessage::Beside { kernel: 1, with: vec![0] }], "nothing of the third: it is behind all");
    assert!(starts(1, &[(0, 0, &[], false), (4, 1, &[0], false)]).1.is_empty(), "one SM tells for all");
}

#[test]
fn what_a_launch_stores_behind_its_wait_is_behind_a_barrier_of_its_own() {
    // A launch, beside it one that depends on it, which runs on when that is over.
    let (handler, told) = starts(0, &[(0, 0, &[], false), (4, 1, &[0], false), (6, 1, &[1], true)]);
    assert_eq!([5, 6, 7].map(|number| handler.kernel.epoch_of(1, number)), [1, 1, 2]);
    let expected = [(1, vec![0]), (2, vec![1])].map(|(kernel, with)| TagMessage::Beside { kernel, with });
    assert_eq!(told, expected, "the second time the first launch comes before");
}

#[test]
fn a_launch_that_starts_has_nothing_of_others_leave() {
    let (mut handler, _) = starts(0, &[(0, 0, &[], false)]);
    let outbox = &mut Outbox::default();
    assert!(store(&mut handler, outbox, 0, 0, 1, 0));
    let beside = LaunchSet::of([0]);
    handler.event(&SmEvent::LaunchStarts { number: 1, launch: 1, beside, again: false }, outbox);
    assert!(store(&mut handler, outbox, 128, 0, 2, 0));
    assert_eq!(left(outbox), []);
    // Nor does a line that the other launch stores to stay back.
    let other = Joining { line: 128, by: (1, 1), launch: 1, number: 3, after: 0 };
    assert!(!handler.join(&other, outbox));
    assert_eq!(left(outbox), [(128, 2)]);
}
