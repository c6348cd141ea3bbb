//! Programmatic launches: when they begin, what they wait for, what they see of the launch before them, and that it is the
//! same at any number of threads.

use crate::bench_machine::{Bench, one_gigahertz};
use crate::streams::{assert_goes_on, assert_same_events, intervals, overlapped};
use durawarp::engine::Time;
use durawarp::kernel::memory::Medium;

/// Counts to `n`.
fn count(n: u32, label: &str) -> String {
    format!("mov.u32 %r1, 0;\n{label}:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, {n};\n@%p1 bra {label};\n")
}

const LETS_GO: &str = "griddepcontrol.launch_dependents;\n";

/// Counts to `before`, lets the next launch begin or does not, counts to `after`, and stores 7 at `out`.
fn primary(before: u32, lets_go: &str, after: u32) -> String {
    count(before, "BEFORE") + lets_go + &count(after, "AFTER") + "mov.u32 %r2, 7;\nst.global.u32 [%out], %r2;"
}

/// Counts to `prologue`, waits, and stores at `out` one more than what lies at `a`.
fn secondary(prologue: u32) -> String {
    let follow = "ld.global.u32 %r2, [%a];\nadd.u32 %r2, %r2, 1;\nst.global.u32 [%out], %r2;";
    count(prologue, "PROLOGUE") + "griddepcontrol.wait;\n" + follow
}

/// Two launches of a stream, the second programmatic or not, and what the second stored.
fn two(overrides: &str, primary: &str, secondary: &str, programmatic: bool) -> ([(Time, Time); 2], u32) {
    let mut bench = Bench::new(one_gigahertz(overrides));
    let words = bench.buffer(4096, Medium::Dram);
    bench.launch(primary, 2, 32, (words, 0, 0, 0));
    bench.launch(secondary, 2, 32, (words + 256, words, 0, 0));
    if programmatic {
        bench.programmatic();
    }
    let ran = overlapped(&bench);
    (intervals(&ran).try_into().expect("two launches"), ran.u32s(words + 256, 1)[0])
}

#[test]
fn a_programmatic_launch_begins_when_the_one_before_lets_it_and_waits_for_its_end() {
    let (first, second) = (primary(500, LETS_GO, 3000), secondary(1000));
    let ([a, b], stored) = two("", &first, &second, false);
    assert_eq!((a.1, stored), (b.0, 8), "one after another without the attribute");
    let ([c, d], stored) = two("", &first, &second, true);
    assert_eq!((c, stored), (a, 8), "the first takes as long");
    assert!(d.0 > c.0 && d.0 < c.1 / 2 && d.1 > c.1, "{c:?} {d:?}");
    assert!(d.1 + 800 < b.1, "the launch and its prologue are hidden: {d:?} {b:?}");
    // What hides behind the first costs nothing, and what does not costs all of itself.
    let end = |prologue: u32| two("", &first, &secondary(prologue), true).0[1].1;
    assert_eq!(end(10), d.1);
    let [short, long] = [end(20_000), end(20_100)];
    assert!(short > d.1 && long > short, "{short} {long}");
    // Nobody waits where nothing was let go: the second begins when all CTAs of the first have ended.
    let ([e, f], _) = two("", &primary(500, "", 3000), &second, true);
    assert_eq!(e.1, f.0);
}

#[test]
fn every_cta_lets_the_next_launch_begin_or_has_ended() {
    // The second CTA never says so, and ends while the first still runs.
    let of_first = format!("setp.ne.u32 %p2, %cta, 0;\n@%p2 bra SHORT;\n{LETS_GO}{}SHORT:\n", count(3000, "LONG"));
    let ([a, b], _) = two("", &(of_first.clone() + &count(900, "BOTH")), &secondary(1), true);
    assert!(b.0 > 900 && b.0 < a.1, "{a:?} {b:?}");
    // The other way round, nothing is left to hide behind.
    let neither = of_first.replace(LETS_GO, "") + &count(900, "BOTH");
    let ([a, b], _) = two("", &neither, &secondary(1), true);
    assert_eq!(a.1, b.0);
}

#[test]
fn launches_end_in_the_order_of_their_stream_and_events_with_them() {
    let mut bench = Bench::new(one_gigahertz(""));
    let words = bench.buffer(4096, Medium::Dram);
    bench.launch(&primary(100, LETS_GO, 5000), 1, 1, (words, 0, 0, 0)).in_stream(1, &[]);
    // It waits for nobody, and is done long before the first.
    bench.launch(&primary(10, LETS_GO, 10), 1, 1, (words + 64, 0, 0, 0)).in_stream(1, &[]).programmatic();
    bench.launch(&secondary(10), 1, 1, (words + 128, words, 0, 0)).in_stream(1, &[]).programmatic();
    // Behind the second, in another stream: what the first stores is there.
    let reads = "ld.global.u32 %r2, [%a];\nst.global.u32 [%out], %r2;";
    bench.launch(reads, 1, 1, (words + 192, words, 0, 0)).in_stream(2, &[1]);
    let ran = overlapped(&bench);
    let [a, b, c, d] = intervals(&ran)[..] else { panic!("four launches") };
    assert!(b.0 < a.1 && c.0 < a.1, "{a:?} {b:?} {c:?}");
    assert_eq!((a.1, b.1), (b.1, d.0), "{a:?} {b:?} {d:?}");
    assert!(c.1 > a.1, "{c:?}");
    assert_eq!([0, 64, 128, 192].map(|at| ran.u32s(words + at, 1)[0]), [7, 7, 8, 7]);
    assert_eq!(ran.assembly.command_processor().most_at_once(), 3);
}

#[test]
fn a_line_that_was_loaded_before_the_wait_is_loaded_anew_behind_it() {
    let look = "ld.global.ca.u32 %r3, [%a];\nst.global.u32 [%out+4], %r3;\n";
    let again = "griddepcontrol.wait;\nld.global.ca.u32 %r2, [%a];\nst.global.u32 [%out], %r2;";
    // On an SM of its own: a store of the same SM would leave nothing old in the L1.
    let mut bench = Bench::new(one_gigahertz("sm.count=2"));
    let words = bench.buffer(4096, Medium::Dram);
    bench.launch(&primary(10, LETS_GO, 5000), 1, 1, (words, 0, 0, 0));
    bench.launch(&(look.to_owned() + again), 1, 1, (words + 256, words, 0, 0)).programmatic();
    let ran = overlapped(&bench);
    assert_eq!(ran.u32s(words + 256, 2), [7, 0], "behind the wait, and before");
}

#[test]
fn room_that_a_launch_leaves_which_is_not_over_yet_is_taken_at_once() {
    let mut bench = Bench::new(one_gigahertz("sm.count=1 sm.ctas=2"));
    let words = bench.buffer(4096, Medium::Dram);
    bench.launch(&primary(10, LETS_GO, 9000), 1, 1, (words, 0, 0, 0));
    bench.launch(&primary(10, LETS_GO, 300), 1, 1, (words + 64, 0, 0, 0)).programmatic();
    bench.launch(&secondary(3000), 1, 1, (words + 128, words, 0, 0)).programmatic();
    let ran = overlapped(&bench);
    let [a, b, c] = intervals(&ran)[..] else { panic!("three launches") };
    assert_eq!(a.1, b.1, "it ends in its turn");
    // Its 3000 turns are behind it when the first ends.
    assert!(c.1 < a.1 + 1000, "{a:?} {c:?}");
    assert_eq!(ran.u32s(words + 128, 1), [8]);
}

/// A chain of launches of many CTAs that overlap, and one beside them.
fn chain() -> Bench {
    let mut bench = Bench::new(one_gigahertz("sm.count=4"));
    let words = bench.buffer(1 << 16, Medium::Dram);
    let follows = |prologue: u32| LETS_GO.to_owned() + &secondary(prologue);
    bench.launch(&primary(50, LETS_GO, 700), 11, 96, (words, 0, 0, 0)).in_stream(1, &[]);
    bench.launch(&follows(90), 7, 64, (words + 256, words, 0, 0)).in_stream(1, &[]).programmatic();
    bench.launch(&primary(5, "", 400), 3, 64, (words + 512, 0, 0, 0)).in_stream(2, &[]);
    bench.launch(&follows(20), 40, 128, (words + 768, words + 256, 0, 0)).in_stream(1, &[]).programmatic();
    bench.launch(&secondary(1), 5, 32, (words + 1024, words + 768, 0, 0)).in_stream(1, &[2]).programmatic();
    bench
}

#[test]
fn any_number_of_threads_and_any_partitioning_have_the_same_events() {
    let bench = chain();
    let first = overlapped(&bench);
    assert!(first.assembly.command_processor().most_at_once() >= 3);
    assert!(first.memory == bench.functional(), "as one after another");
    assert_same_events("programmatic", &bench);
}

#[test]
fn a_machine_that_is_saved_while_a_launch_waits_for_another_goes_on_as_if_it_had_not_been() {
    let bench = chain();
    let end = intervals(&overlapped(&bench))[0].1;
    assert_goes_on(&bench, [end / 8, end / 3, end / 2, end - 60, end + 10, end + 90]);
}
