//! Where room, MSHRs or credits run out.

use durawarp::engine::Time;
use durawarp::kernel::memory::{DRAM_BASE, NVM_BASE};
use durawarp::machine::home::LlcSpec;

use super::bench::{Bench, MEMORY, Ran, llc};
use super::core::Act::{Clean, Load, Store};
use super::random::check;

const X: u64 = DRAM_BASE;
/// In the same row of the devices: what a read takes there less.
const ACTIVATE: Time = 124;

/// Two misses at one instant: when each comes.
fn two_misses(mshr_entries: u32, reads: u32) -> [Option<Time>; 2] {
    let bench = Bench::scripts(&[&[(0, Load(X))], &[(0, Load(X + 64))]]);
    let ran = Bench { llc: LlcSpec { mshr_entries, ..llc() }, credits: (reads, 4), ..bench }.finish();
    [ran.granted(0, X, 0), ran.granted(1, X + 64, 0)]
}

#[test]
fn a_miss_that_finds_no_mshr_or_credit_waits_for_the_bytes_of_the_one_before() {
    let first = 14 + MEMORY + 26;
    assert_eq!(two_misses(2, 2), [Some(first), Some(first + 2)], "the bus takes 2 cycles a line");
    let waited = [Some(first), Some(first + MEMORY - ACTIVATE)];
    assert_eq!(two_misses(1, 2), waited, "for an MSHR");
    assert_eq!(two_misses(2, 1), waited, "for a credit");
}

#[test]
fn writes_without_a_credit_wait_for_the_one_before() {
    let line = |i| NVM_BASE + 256 * i;
    let stores = (0..3).map(|i| (300 * i, Store(line(i), i + 1)));
    let script: Vec<_> = stores.chain((0..3).map(|i| (2000, Clean(line(i))))).collect();
    let cleaned = |writes| {
        let ran = Bench { credits: (8, writes), ..Bench::scripts(&[&script]) }.finish();
        [0, 1, 2].map(|i| ran.cleaned(0, line(i), 0))
    };
    assert_eq!(cleaned(4), [Some(2060), Some(2060), Some(2060)]);
    assert_eq!(cleaned(1), [Some(2060), Some(2080), Some(2100)], "20 ticks there and back");
}

/// A core stores 17 lines to a home with 16 places in one set, then another reads the first.
fn overflow(l1_lines: usize) -> Ran {
    let line = |i| NVM_BASE + 64 * i;
    let stores: Vec<_> = (0..17).map(|i| (300 * i, Store(line(i), i + 1))).collect();
    let bench = Bench::scripts(&[&stores, &[(6000, Load(line(0)))]]);
    let ran = Bench { llc: LlcSpec { ways: 16, ..llc() }, l1_lines, ..bench }.run();
    check(&ran).unwrap_or_else(|why| panic!("{why}"));
    ran
}

#[test]
fn a_line_that_makes_room_is_recalled_and_written() {
    let ran = overflow(32);
    let counters = ran.counters[0];
    assert_eq!((counters.recalls, counters.puts, counters.writebacks), (2, 0, 2), "the second for the reader");
    // Recalled while memory reads the new line; which comes as if there had been room.
    assert_eq!(ran.granted(0, NVM_BASE + 64 * 16, 0), ran.granted(0, NVM_BASE + 64, 300).map(|at| at + 300 * 15));
}

#[test]
fn a_line_that_its_core_has_put_is_written_without_a_recall() {
    let counters = overflow(4).counters[0];
    assert_eq!((counters.recalls, counters.puts, counters.writebacks), (0, 13, 2));
}

#[test]
fn a_line_that_is_asked_for_all_the_time_makes_room_for_another_of_its_set() {
    // Sets of one way; the two lines' numbers fold to one set.
    let (hot, other) = (DRAM_BASE, DRAM_BASE + 64 * 0x11);
    let hammer: Vec<_> = (0..200).map(|i| (i, Store(hot, i + 1))).collect();
    let scripts = [&hammer[..], &hammer, &hammer, &[(1000, Load(other)), (1001, Store(other, 5))]];
    let ran = Bench { llc: LlcSpec { ways: 1, ..llc() }, ..Bench::scripts(&scripts) }.finish();
    let last = (0..3).filter_map(|core| ran.of(core, hot).last().map(|(at, _)| *at)).max();
    assert!(last > Some(5000), "stores go on: {last:?}");
    assert!(ran.granted(3, other, 0) < Some(1000 + 14 + 80 + MEMORY + 26 + 1), "after one transaction of the line");
    assert!(ran.counters[0].held_fetch_ticks > 0);
}

#[test]
fn requests_queue_for_a_line_and_the_time_is_counted() {
    let ran = Bench::scripts(&[&[(0, Load(X))], &[(0, Load(X))], &[(0, Load(X))]]).finish();
    let counters = ran.counters[0];
    assert_eq!((counters.fetches, counters.queued, counters.get_hits), (1, 2, 2));
    // The second waits for memory, the third for the probe of the first besides.
    assert_eq!(counters.queued_ticks, MEMORY + (MEMORY + 40));
}
