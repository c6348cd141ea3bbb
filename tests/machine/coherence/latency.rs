//! The home as a data sheet: 14 cycles there, 12 at the home, 14 back, memory 10 away.

use durawarp::kernel::memory::DRAM_BASE;

use super::bench::{Bench, MEMORY};
use super::core::Act::{Evict, Load, Once, Store};
use super::l1::State;
use super::log::What;

const X: u64 = DRAM_BASE + 256;

#[test]
fn a_hit_takes_request_service_and_reply() {
    let ran = Bench::scripts(&[&[(0, Load(X)), (900, Evict(X)), (1000, Load(X))]]).finish();
    assert_eq!(ran.granted(0, X, 1000), Some(1000 + 14 + 12 + 14), "not a tick earlier or later");
    assert_eq!(ran.state(0, X), Some(State::Exclusive), "its own line, which it had given up");
    assert_eq!((ran.counters[0].gets, ran.counters[0].get_hits, ran.counters[0].fetches), (2, 1, 1));
}

#[test]
fn a_miss_takes_the_way_to_memory_and_the_read_more() {
    let ran = Bench::scripts(&[&[(100, Load(X))]]).finish();
    assert_eq!(MEMORY, 10 + 124 + 36 + 64 / 32 + 10);
    assert_eq!(ran.granted(0, X, 0), Some(100 + 14 + MEMORY + 12 + 14));
}

#[test]
fn a_line_of_another_core_takes_a_probe_and_its_answer_more() {
    for (act, left) in [(Load(X), Some(State::Shared)), (Store(X, 8), None)] {
        let ran = Bench::scripts(&[&[(0, Store(X, 7))], &[(1000, act)]]).finish();
        assert_eq!(ran.granted(1, X, 0), Some(1000 + 14 + (12 + 14 + 14) + 12 + 14));
        assert!(ran.of(1, X).contains(&(1080, What::Granted(Some(7)))), "{act:?}: the owner's bytes");
        assert_eq!(ran.state(0, X), left, "{act:?}");
    }
}

#[test]
fn a_store_waits_for_the_last_of_the_sharers() {
    let scripts = [&[(0, Load(X))][..], &[(500, Load(X))], &[(700, Load(X))], &[(1000, Store(X, 8))]];
    let ran = Bench::scripts(&scripts).finish();
    assert_eq!(ran.granted(3, X, 0), Some(1000 + 80), "all are asked at once");
    for core in 0..3 {
        assert_eq!(ran.when(core, X, 1000, |what| *what == What::Obeyed), Some(1000 + 14 + 12 + 14));
        assert_eq!(ran.state(core, X), None);
    }
    assert_eq!(ran.counters[0].probes, 1 + 3, "the first reader owned it");
}

#[test]
fn a_sharer_that_stores_is_not_asked_itself() {
    let ran = Bench::scripts(&[&[(0, Load(X)), (1000, Store(X, 1))], &[(500, Load(X)), (800, Evict(X))]]).finish();
    assert_eq!(ran.granted(0, X, 1000), Some(1080), "the other has no copy, which the home does not know");
    assert_eq!((ran.state(0, X), ran.counters[0].probes), (Some(State::Modified), 2));
}

#[test]
fn a_look_has_the_bytes_of_the_owner_who_keeps_a_copy() {
    let bench = Bench::scripts(&[&[(0, Store(X, 7)), (2000, Load(X))]]);
    let ran = Bench { os: vec![(1000, Once(X)), (1500, Once(X))], ..bench }.finish();
    let looked: Vec<_> = ran.of(1, X).into_iter().filter(|(_, what)| matches!(what, What::Looked(_))).collect();
    assert_eq!(looked, [(1080, What::Looked(Some(7))), (1540, What::Looked(Some(7)))]);
    assert!(ran.of(0, X).contains(&(2000, What::Loaded(Some(7)))), "without a message");
    assert_eq!((ran.state(0, X), ran.state(1, X)), (Some(State::Shared), None));
}
