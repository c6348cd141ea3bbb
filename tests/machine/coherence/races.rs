//! Messages that cross: what each of two cores sees, and what the home makes of it.

use durawarp::kernel::memory::{DRAM_BASE, NVM_BASE};
use durawarp::machine::coherence::{CPU_LINE_MASK, HomeMsg};
use durawarp::machine::home::LlcSpec;
use durawarp::machine::msg::Line;
use durawarp::machine::ports::Requester;

use super::bench::{Bench, Ran, llc};
use super::core::Act::{Clean, Evict, Flush, Load, Store};
use super::l1::State;
use super::log::What;
use super::random::check;

const X: u64 = NVM_BASE + 512;

/// Runs to the end; everything that always holds, holds.
fn ran(bench: Bench) -> Ran {
    let ran = bench.run();
    check(&ran).unwrap_or_else(|why| panic!("{why}"));
    ran
}

#[test]
fn of_two_upgrades_the_loser_is_invalidated_and_gets_the_winners_bytes() {
    let first = [(0, Load(X)), (1000, Store(X, 8))];
    let second = [(500, Load(X)), (1001, Store(X, 9))];
    let ran = ran(Bench::scripts(&[&first, &second]));
    assert_eq!(ran.granted(0, X, 1000), Some(1080));
    let loser = ran.of(1, X);
    let lost = (1040, What::State(None));
    assert!(loser.contains(&lost), "its copy goes while its own Get waits: {loser:?}");
    // Its turn comes when the winner has the line.
    assert!(loser.contains(&(1054 + 80 - 14, What::Granted(Some(8)))), "{loser:?}");
    assert_eq!((ran.state(0, X), ran.state(1, X)), (None, Some(State::Modified)));
}

#[test]
fn a_put_that_crosses_a_probe_brings_the_bytes_and_the_answer_nothing() {
    // The probe leaves the home 10 ticks before the Put comes there.
    let ran = ran(Bench::scripts(&[&[(0, Store(X, 7)), (1000, Evict(X))], &[(990, Load(X))]]));
    assert_eq!(ran.when(0, X, 900, |what| *what == What::Obeyed), Some(990 + 14 + 12 + 14));
    assert!(ran.of(1, X).contains(&(990 + 80, What::Granted(Some(7)))));
    assert_eq!(ran.state(1, X), Some(State::Exclusive), "nobody else has it");
    let counters = ran.counters[0];
    assert_eq!((counters.puts, counters.stale_bytes, counters.dirty_probe_acks), (1, 0, 1));
}

#[test]
fn a_put_that_comes_before_anybody_asks_leaves_the_line_at_home() {
    let ran = ran(Bench::scripts(&[&[(0, Store(X, 7)), (1000, Evict(X))], &[(1001, Load(X))]]));
    assert!(ran.of(1, X).contains(&(1041, What::Granted(Some(7)))), "a hit");
    assert_eq!(ran.counters[0].probes, 0);
}

#[test]
fn a_core_may_ask_again_for_a_line_that_leaves() {
    let again = [(0, Store(X, 7)), (1000, Evict(X)), (1001, Load(X))];
    let ran = ran(Bench::scripts(&[&again, &[(1001, Store(X, 8))]]));
    assert!(ran.of(0, X).contains(&(1041, What::Granted(Some(7)))), "the Put came first");
    assert_eq!(ran.granted(1, X, 0), Some(1081), "then it is asked to give it up");
}

#[test]
fn bytes_of_a_core_that_does_not_own_the_line_are_dropped_and_acknowledged() {
    let stale = Line { bytes: [9; 128], mask: CPU_LINE_MASK, log: false, launch: 0 };
    let put = HomeMsg::Put { line: X, from: Requester::core(0), data: Box::new(stale.clone()), dependencies: None };
    let absent = HomeMsg::Put { line: X + 64, from: Requester::core(0), data: Box::new(stale), dependencies: None };
    let bench = Bench::scripts(&[&[], &[(0, Store(X, 7)), (1500, Evict(X))]]);
    let ran = Bench { posts: vec![(1000, put), (1001, absent)], ..bench }.finish();
    assert_eq!((ran.counters[0].stale_bytes, ran.strays), (2, 2), "of a line of another, and of one that is not there");
    assert_eq!(ran.memory.into_iter().collect::<Vec<_>>(), [(X, Some(7))]);
}

#[test]
fn a_probe_of_a_line_that_was_given_up_silently_is_answered_without_bytes() {
    let ran = ran(Bench::scripts(&[&[(0, Load(X)), (500, Evict(X))], &[(1000, Store(X, 7))]]));
    assert_eq!(ran.granted(1, X, 0), Some(1080));
    assert_eq!((ran.counters[0].probes, ran.counters[0].dirty_probe_acks), (1, 0));
}

#[test]
fn a_store_is_done_when_its_line_comes_though_a_probe_comes_at_once() {
    // Both Gets are at the home at 1014; it grants the first and asks for the line back in one event.
    let ran = ran(Bench::scripts(&[&[(0, Load(X)), (500, Evict(X)), (1000, Store(X, 8))], &[(1000, Store(X, 9))]]));
    let first: Vec<What> = ran.of(0, X).into_iter().filter(|(at, _)| *at == 1040).map(|(_, what)| what).collect();
    let place = |what| first.iter().position(|of| *of == what);
    assert!(place(What::Stored(8)) < place(What::Obeyed) && place(What::Obeyed).is_some(), "{first:?}");
    assert!(ran.of(1, X).contains(&(1080, What::Granted(Some(8)))));
}

#[test]
fn bytes_of_a_clean_are_in_before_its_turn_comes() {
    // The second core's Get is under way when the clean comes; its store is what the clean finds then.
    let ran = ran(Bench::scripts(&[&[(0, Store(X, 7)), (1000, Clean(X))], &[(990, Store(X, 8))]]));
    assert!(ran.of(1, X).contains(&(1070, What::Granted(Some(7)))));
    // The clean's turn at 1044: the new owner is asked, memory has the line 54 later.
    assert_eq!(ran.cleaned(0, X, 0), Some(1044 + 40 + 20 + 26));
    assert_eq!((ran.state(0, X), ran.state(1, X)), (None, Some(State::Shared)));
    assert_eq!((ran.counters[0].stale_bytes, ran.counters[0].writebacks), (0, 1));
}

#[test]
fn a_flush_that_is_sent_while_the_line_is_on_its_way_has_it_given_up() {
    let ran = ran(Bench::scripts(&[&[(1000, Load(X)), (1001, Flush(X))], &[(2000, Store(X, 7)), (2500, Load(X))]]));
    assert_eq!(ran.state(0, X), None);
    let probed = ran.when(0, X, 0, |what| *what == What::Obeyed);
    assert_eq!(probed, ran.granted(0, X, 0), "in order after the line");
    assert_eq!(ran.counters[0].fetches, 2, "it has left the home");
}

#[test]
fn a_busy_line_is_no_victim() {
    let llc = LlcSpec { ways: 16, ..llc() };
    let line = |i| DRAM_BASE + 64 * i;
    let fill: Vec<_> = (0..16).map(|i| (300 * i, Load(line(i)))).collect();
    // Line 0 is the oldest; its owner is asked when the seventeenth line comes.
    let other = [(6000, Load(line(0))), (6001, Load(line(16)))];
    let ran = ran(Bench { llc, l1_lines: 32, ..Bench::scripts(&[&fill, &other]) });
    assert_eq!((ran.state(0, line(0)), ran.state(1, line(0))), (Some(State::Shared), Some(State::Shared)));
    assert_eq!(ran.state(0, line(1)), None, "the next one is recalled");
    assert_eq!(ran.counters[0].recalls, 1);
}

#[test]
fn requests_of_a_line_that_is_recalled_wait_and_fetch_it_again() {
    let llc = LlcSpec { ways: 16, ..llc() };
    let line = |i| DRAM_BASE + 64 * i;
    let fill: Vec<_> = (0..16).map(|i| (300 * i, Store(line(i), i + 1))).collect();
    let other = [(6000, Load(line(16))), (6001, Load(line(0)))];
    let ran = ran(Bench { llc, l1_lines: 32, ..Bench::scripts(&[&fill, &other]) });
    assert!(ran.of(1, line(0)).iter().any(|(_, what)| *what == What::Granted(Some(1))));
    assert_eq!((ran.counters[0].recalls, ran.counters[0].writebacks, ran.counters[0].fetches), (2, 2, 18));
}
