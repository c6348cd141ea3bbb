//! Tests of the handler by itself: what joins, what leaves when, what is kept back.

use super::*;

fn handler() -> EpochTagSm {
    EpochTagSm::new(&Arc::new(EpochTagSpec { past_entries: 1, held_entries: 1 }), true)
}

/// A store of a CTA's warp; true when it joins.
fn store(handler: &mut EpochTagSm, outbox: &mut Outbox, line: u64, cta: u8, number: u64, after: u64) -> bool {
    handler.join(&Joining { line, by: (0, cta), number, after }, outbox)
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
    let mut hub = Gathering::new(1);
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
