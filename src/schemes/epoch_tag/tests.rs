//! Tests of the site by itself: what joins, what leaves when, what is kept back.

use super::*;

fn site() -> Site {
    Site::new(&Arc::new(EpochTagSpec { past_entries: 1, held_entries: 1 }), true)
}

/// A store of a CTA's warp; true when it joins.
fn store(site: &mut Site, post: &mut Post, line: u64, cta: u8, number: u64, after: u64) -> bool {
    site.join(&Joining { line, by: (0, cta), number, after }, post)
}

fn left(post: &mut Post) -> Vec<(u64, u64)> {
    post.persists().drain(..).collect()
}

#[test]
fn nothing_leaves_until_something_wants_it_and_then_older_epochs_first() {
    let (mut site, post) = (site(), &mut Post::default());
    assert!(store(&mut site, post, 0, 0, 1, 0));
    assert!(store(&mut site, post, 128, 0, 2, 0));
    assert!(store(&mut site, post, 256, 0, 3, 2), "behind a barrier");
    assert_eq!(left(post), []);
    site.wanted(256, post);
    assert_eq!(left(post), [(0, 1), (128, 2)], "the older epoch, all at once");
    site.persisted(2, post);
    assert_eq!(left(post), [], "one of it is not durable");
    site.persisted(1, post);
    assert_eq!(left(post), [(256, 3)]);
}

#[test]
fn other_instances_are_not_waited_for() {
    let (mut site, post) = (site(), &mut Post::default());
    store(&mut site, post, 0, 0, 1, 0);
    store(&mut site, post, 128, 1, 2, 0);
    store(&mut site, post, 256, 1, 3, 2);
    site.wanted(256, post);
    assert_eq!(left(post), [(128, 2)], "not CTA 0's");
}

#[test]
fn a_line_combines_within_its_epoch_and_leaves_before_a_newer_one() {
    let (mut site, post) = (site(), &mut Post::default());
    store(&mut site, post, 0, 0, 1, 0);
    assert!(store(&mut site, post, 0, 0, 2, 0));
    assert!(!store(&mut site, post, 0, 0, 3, 2), "an older epoch's version");
    assert_eq!(left(post), [(0, 1)]);
    assert!(store(&mut site, post, 0, 0, 3, 2), "it has left");
    site.wanted(0, post);
    assert_eq!(left(post), [], "the old version is not durable");
    site.persisted(1, post);
    assert_eq!(left(post), [(0, 3)]);
}

#[test]
fn false_sharing_has_the_other_ctas_version_leave() {
    let (mut site, post) = (site(), &mut Post::default());
    store(&mut site, post, 0, 0, 1, 0);
    assert!(!store(&mut site, post, 0, 1, 2, 0));
    assert_eq!(left(post), [(0, 1)]);
    assert!(store(&mut site, post, 0, 1, 2, 0));
}

#[test]
fn a_flush_takes_along_stores_that_come_late() {
    let (mut site, post) = (site(), &mut Post::default());
    store(&mut site, post, 0, 0, 1, 0);
    site.flush(0, 2, post);
    store(&mut site, post, 128, 0, 2, 0);
    store(&mut site, post, 256, 0, 3, 0);
    assert_eq!(left(post), [(0, 1), (128, 2)], "and no later ones");
}

#[test]
fn a_kernels_barrier_drains_and_what_is_behind_waits_for_the_hub() {
    let (mut site, post) = (site(), &mut Post::default());
    let mut hub = Gathering::new(1);
    store(&mut site, post, 0, 0, 1, 0);
    site.kernel_barrier(2, post);
    assert_eq!(left(post), [(0, 1)]);
    site.persisted(1, post);
    assert!(post.take().is_empty(), "the second store before the barrier is still to come");
    store(&mut site, post, 128, 1, 2, 0);
    assert_eq!(left(post), [(128, 2)], "it leaves at once");
    store(&mut site, post, 256, 1, 3, 0);
    site.wanted(256, post);
    assert_eq!(left(post), [], "behind the barrier");
    site.persisted(2, post);
    for _ in 0..2 {
        for (to, letter) in post.take() {
            match to {
                Peer::Hub => hub.letter(Peer::Sm(0), letter, post),
                _ => site.letter(Peer::Hub, letter, post),
            }
        }
    }
    assert_eq!(left(post), [(256, 3)]);
}
