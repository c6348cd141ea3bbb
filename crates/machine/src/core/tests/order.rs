//! Loads that bind before older ones, by the sequence of calls of a core: when a line that is lost has them
//! executed again, to the cycle.

use super::*;

/// `x`, and in other lines `y` and `z`.
const X: u64 = DATA;
const Y: u64 = DATA + 4096;
const Z: u64 = DATA + 8192;

/// Copies of `x`, of the line after it and of `z`; then `y`, which misses, a load whose address follows from
/// it, and a load that is early.
fn words(older: u32, early: i32) -> Vec<u32> {
    let copies = [ld(5, 10, 0), ld(5, 10, 64), ld(5, 12, 0), FENCE];
    program(&[&copies, &[ld(6, 11, 0), add(7, older, 6), ld(8, 7, 0), ld(9, 10, early)], &exit()])
}

/// The cycles in which a line may leave so that loads are executed again.
fn again(consistency: Consistency, words: &[u32], line: u64) -> Vec<u64> {
    let clock = Timebase::of_khz(&[2_000_000]).unwrap().clock(2_000_000);
    let line = DRAM_BASE + line;
    let count = |cycle: u64| {
        let probe = CoreMsg::Probe { line, invalidate: true, recall: false, room: Box::default() };
        let sends = [(clock.cycles(cycle - REPLY), probe)].into();
        let registers = [(10, X), (11, Y), (12, Z)];
        let spec = CoreSpec { consistency, ..spec() };
        let world = World::under(Box::new(CorePolicy::default()), DRAM_BASE, spec, words, &registers, sends);
        world.core().counters().order_squashes
    };
    (REPLY + 30..REPLY + 120).filter(|&cycle| count(cycle) == 1).collect()
}

/// Fence, `y`, addition and older load are dispatched when the copies are there, the early load a cycle
/// later, after the messages of that cycle. The line of `y` takes as long as the copies did.
fn until_the_older_load_binds() -> Vec<u64> {
    let hit = 4 + REQUEST + SERVICE + REPLY;
    (hit + 2..hit + hit).collect()
}

#[test]
fn the_weak_order_executes_a_load_again_whose_line_is_lost_before_an_older_one_of_the_line_binds() {
    let of_x = words(10, 0);
    assert_eq!(again(Consistency::Rvwmo, &of_x, X), until_the_older_load_binds());
    // Another location, or another line that is lost: nothing is out of order.
    assert!(again(Consistency::Rvwmo, &words(12, 0), X).is_empty());
    assert!(again(Consistency::Rvwmo, &of_x, Z).is_empty());
}

#[test]
fn total_store_order_executes_an_early_load_again_whatever_the_older_one_loads() {
    for older in [10, 12] {
        assert_eq!(again(Consistency::Tso, &words(older, 0), X), until_the_older_load_binds());
    }
}

#[test]
fn both_lines_of_a_load_across_lines_are_watched() {
    for consistency in [Consistency::Rvwmo, Consistency::Tso] {
        for line in [X, X + 64] {
            assert_eq!(again(consistency, &words(10, 60), line), until_the_older_load_binds(), "{line:#x}");
        }
    }
}
