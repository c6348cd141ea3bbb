//! Threads by themselves: who is woken, who gets a hart.

use super::*;

/// Threads 100, 101, ... on harts 0, 1, ...
fn all_on(harts: u32) -> Threads {
    let mut threads = Threads::new(harts);
    (1..harts).for_each(|hart| threads.start(Some(hart), FIRST_THREAD + u64::from(hart), None, 0));
    threads
}

fn harts((_, wakes): (u64, Vec<Wake>)) -> Vec<u32> {
    wakes.iter().map(|wake| wake.hart).collect()
}

/// All moves of an instant.
fn moves(threads: &mut Threads, now_ns: u64) -> Vec<Move> {
    std::iter::from_fn(|| threads.next_move(now_ns)).collect()
}

#[test]
fn waiters_of_an_address_are_woken_in_their_order_up_to_a_count() {
    let mut threads = all_on(4);
    for (hart, address) in [(3, 64), (1, 64), (2, 128), (0, 64)] {
        threads.wait(hart, Some(address), u32::MAX, None);
    }
    assert_eq!(harts(threads.wake(64, 2, u32::MAX)), [3, 1]);
    assert_eq!(harts(threads.wake(64, 2, u32::MAX)), [0]);
    assert_eq!(threads.waiting(), [WaitingThread { thread: 102, hart: Some(2), futex: Some(128) }]);
    assert_eq!((threads.requeue(128, 64, 5), harts(threads.wake(64, 1, 1))), (1, vec![2]));
}

#[test]
fn a_wake_reaches_those_that_asked_for_one_of_its_bits() {
    let mut threads = all_on(2);
    threads.wait(0, Some(8), 0b01, None);
    threads.wait(1, Some(8), 0b10, None);
    assert_eq!(threads.wake(8, 9, 0b10), (1, vec![Wake { hart: 1, result: 0 }]));
}

#[test]
fn a_deadline_ends_a_waiting_at_its_instant() {
    let mut threads = all_on(2);
    threads.wait(0, None, 0, Some((500, 7)));
    threads.wait(1, Some(8), 1, Some((400, 9)));
    assert_eq!(threads.next_deadline(), Some(400));
    assert_eq!((threads.expired(399), threads.expired(400)), (vec![], vec![Wake { hart: 1, result: 9 }]));
}

#[test]
fn a_thread_that_ends_frees_its_hart_and_wakes_one_waiter() {
    let mut threads = Threads::new(2);
    assert_eq!(threads.next(), Some((Some(1), 101)));
    threads.start(Some(1), 101, Some(96), 0);
    assert_eq!(threads.next(), None);
    threads.wait(0, Some(96), u32::MAX, None);
    assert_eq!(threads.ended(1), Ok(vec![Wake { hart: 0, result: 0 }]));
    assert_eq!(threads.next(), Some((Some(1), 102)));
    threads.ending(0, 3);
    assert_eq!(threads.ended(0), Err(3));
}

#[test]
fn with_as_many_harts_as_threads_nobody_moves() {
    let mut threads = all_on(2);
    threads.share(10);
    threads.wait(0, Some(8), 1, None);
    threads.yields(1, 5);
    assert_eq!((moves(&mut threads, 1000), threads.next_deadline()), (vec![], None));
}

#[test]
fn a_thread_that_waits_gives_its_hart_to_one_that_could_go_on_and_gets_one_back_when_it_is_woken() {
    let mut threads = all_on(2);
    threads.share(1000);
    assert_eq!(threads.next(), Some((None, 102)));
    threads.start(None, 102, None, 0);
    // Its registers are not there yet.
    threads.wait(0, Some(8), 1, None);
    assert_eq!(moves(&mut threads, 0), []);
    threads.born(102);
    assert_eq!(moves(&mut threads, 0), [Move::Take { hart: 0, preempts: false }]);
    // Nobody else is taken from a hart for the same thread.
    threads.wait(1, Some(16), 1, None);
    assert_eq!(moves(&mut threads, 0), []);
    threads.left(0, true);
    assert_eq!(moves(&mut threads, 5), [Move::Give { hart: 0, thread: 102, result: None }]);
    assert_eq!((threads.number(0), threads.waiting()[0].hart), (102, None));
    // Woken without a hart: it takes that of the other one, which waits.
    assert_eq!(threads.wake(8, 1, 1), (1, vec![]));
    assert_eq!(moves(&mut threads, 6), [Move::Take { hart: 1, preempts: false }]);
    threads.left(1, true);
    assert_eq!(moves(&mut threads, 7), [Move::Give { hart: 1, thread: 100, result: Some(0) }]);
}

#[test]
fn a_wake_that_comes_while_a_thread_leaves_its_hart_is_kept_for_it() {
    let mut threads = all_on(1);
    threads.share(1000);
    threads.start(None, 101, None, 0);
    threads.born(101);
    threads.wait(0, None, 0, Some((50, 7)));
    assert_eq!(moves(&mut threads, 0), [Move::Take { hart: 0, preempts: false }]);
    assert_eq!(threads.expired(50), []);
    threads.left(0, true);
    assert_eq!(moves(&mut threads, 60), [Move::Give { hart: 0, thread: 101, result: None }]);
    threads.ending(0, 0);
    assert_eq!(threads.ended(0), Ok(vec![]));
    assert_eq!(moves(&mut threads, 70), [Move::Give { hart: 0, thread: 100, result: Some(7) }]);
}

#[test]
fn a_thread_that_runs_keeps_its_hart_for_a_quantum_and_goes_behind_the_others_then() {
    let mut threads = all_on(1);
    threads.share(1000);
    for thread in [101, 102] {
        threads.start(None, thread, None, 0);
        threads.born(thread);
    }
    assert_eq!((threads.next_deadline(), moves(&mut threads, 999)), (Some(1000), vec![]));
    assert_eq!(moves(&mut threads, 1000), [Move::Take { hart: 0, preempts: true }]);
    threads.left(0, false);
    let mut order = Vec::new();
    for turn in 1..5 {
        let now = 1000 * turn;
        let Some(Move::Give { thread, .. }) = threads.next_move(now) else { panic!("a free hart") };
        order.push(thread);
        assert_eq!((threads.next_deadline(), moves(&mut threads, now + 999)), (Some(now + 1000), vec![]), "early");
        assert_eq!(moves(&mut threads, now + 1000), [Move::Take { hart: 0, preempts: true }], "on time");
        threads.left(0, false);
    }
    assert_eq!(order, [101, 102, 100, 101]);
}

#[test]
fn a_thread_that_yields_gives_its_hart_up_at_once() {
    let mut threads = all_on(1);
    threads.share(1000);
    threads.start(None, 101, None, 0);
    threads.born(101);
    assert_eq!(moves(&mut threads, 100), []);
    threads.yields(0, 100);
    assert_eq!(moves(&mut threads, 100), [Move::Take { hart: 0, preempts: true }]);
}
