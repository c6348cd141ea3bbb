//! When a clean is acknowledged: not before what it covers survives a power failure, and no later.

use durawarp::engine::Time;
use durawarp::kernel::memory::{DRAM_BASE, NVM_BASE};
use durawarp::machine::persistence::{Clwb, PersistSpec};
use durawarp::persist::vocab::Domain;

use super::bench::{Bench, MEMORY, Ran};
use super::core::Act::{Clean, Evict, Flush, Load, Store};
use super::l1::State;
use crate::memory_controller::persist;

const X: u64 = NVM_BASE;

fn run(domain: Domain, scripts: &[&[(Time, super::core::Act)]]) -> Ran {
    Bench { persist: persist(domain), ..Bench::scripts(scripts) }.finish()
}

/// When the line was durable for the first time.
fn durable(ran: &Ran, line: u64) -> Option<Time> {
    ran.durable.iter().find(|fact| fact.line == line).map(|fact| fact.at)
}

const CLEANED: [(Time, super::core::Act); 2] = [(0, Store(X, 7)), (1000, Clean(X))];

#[test]
fn under_adr_a_clean_is_acknowledged_when_the_controller_has_accepted_the_bytes() {
    let ran = run(Domain::Adr, &[&CLEANED]);
    assert_eq!(durable(&ran, X), Some(1000 + 14 + 10));
    assert_eq!(ran.cleaned(0, X, 0), Some(1024 + 10 + 12 + 14));
    assert_eq!(ran.state(0, X), Some(State::Exclusive), "the core keeps it, unchanged");
    assert_eq!(ran.counters[0].writebacks, 1);
}

#[test]
fn under_media_it_is_acknowledged_when_the_cells_are_written() {
    let ran = run(Domain::Media, &[&CLEANED]);
    let at_media = durable(&ran, X).expect("it is written");
    assert_eq!(at_media, 1024 + 480, "cells take 480 ns");
    assert_eq!(ran.cleaned(0, X, 0), Some(at_media + 10 + 12 + 14));
}

#[test]
fn under_eadr_and_for_dram_it_is_acknowledged_at_once() {
    assert_eq!(run(Domain::Eadr, &[&CLEANED]).cleaned(0, X, 0), Some(1040));
    for domain in [Domain::Media, Domain::Adr] {
        let ran = run(domain, &[&[(0, Store(DRAM_BASE, 7)), (1000, Clean(DRAM_BASE))]]);
        assert_eq!(ran.cleaned(0, DRAM_BASE, 0), Some(1040));
        assert_eq!(ran.counters[0].writebacks, 1, "it is written all the same");
    }
}

#[test]
fn a_clean_that_ends_at_the_shared_cache_writes_nothing_and_a_flush_does() {
    let persist = PersistSpec { clwb: Clwb::L2, ..persist(Domain::Adr) };
    let script = [(0, Store(X, 7)), (1000, Clean(X)), (2000, Flush(X))];
    let ran = Bench { persist, ..Bench::scripts(&[&script]) }.finish();
    assert_eq!((ran.cleaned(0, X, 0), durable(&ran, X)), (Some(1040), Some(2000 + 14 + 40 + 10)));
    assert_eq!(ran.counters[0].writebacks, 1);
}

#[test]
fn a_clean_without_bytes_waits_for_a_write_that_is_under_way() {
    let ran = run(Domain::Media, &[&CLEANED, &[(1001, Clean(X))]]);
    let at_media = durable(&ran, X).expect("it is written");
    assert_eq!([0, 1].map(|core| ran.cleaned(core, X, 0)), [Some(at_media + 36); 2]);
    assert_eq!(ran.counters[0].writebacks, 1);
    let later = run(Domain::Media, &[&CLEANED, &[(3000, Clean(X))]]);
    assert_eq!(later.cleaned(1, X, 0), Some(3080), "nothing is under way any more; the owner is asked");
}

#[test]
fn a_clean_of_a_line_that_has_left_waits_for_its_write() {
    // The flush of the first core empties the place; the second's clean finds no line.
    let ran = run(Domain::Media, &[&[(0, Store(X, 7)), (1000, Flush(X))], &[(1100, Clean(X))]]);
    assert_eq!(ran.cleaned(1, X, 0), Some(durable(&ran, X).expect("it is written") + 36));
}

#[test]
fn a_clean_has_another_cores_bytes_made_durable() {
    let ran = run(Domain::Adr, &[&[(0, Store(X, 7))], &[(1000, Clean(X))]]);
    assert_eq!(durable(&ran, X), Some(1000 + 14 + (12 + 14 + 14) + 10));
    assert_eq!(ran.cleaned(1, X, 0), Some(1064 + 10 + 26));
    assert_eq!(ran.durable[0].value, Some(7));
    assert_eq!(ran.state(0, X), Some(State::Shared));
}

#[test]
fn a_put_is_written_by_a_clean_that_follows() {
    let ran = run(Domain::Adr, &[&[(0, Store(X, 7)), (1000, Evict(X)), (1001, Clean(X))]]);
    assert_eq!(ran.cleaned(0, X, 0), Some(1001 + 14 + 20 + 26));
    assert_eq!(ran.durable[0].value, Some(7));
}

#[test]
fn a_flushed_line_leaves_every_cache() {
    let scripts = [&[(0, Load(X)), (2000, Load(X))][..], &[(500, Load(X)), (1000, Flush(X))], &[(700, Load(X))]];
    let ran = run(Domain::Adr, &scripts);
    assert_eq!(ran.cleaned(1, X, 0), Some(1000 + 14 + 40 + 26), "when all have given it up");
    assert_eq!([1, 2].map(|core| ran.state(core, X)), [None; 2]);
    assert_eq!(ran.granted(0, X, 2000), Some(2040 + MEMORY - 124), "from memory, whose row is open");
    assert_eq!((ran.counters[0].fetches, ran.counters[0].writebacks), (2, 0));
}

#[test]
fn a_flush_with_bytes_asks_nobody() {
    let ran = run(Domain::Adr, &[&[(0, Store(X, 7)), (1000, Flush(X))]]);
    assert_eq!((ran.cleaned(0, X, 0), ran.counters[0].probes), (Some(1060), 0));
}
