//! Worked examples: lines that are used one after the other, and which leaves for which.

use super::*;

/// One set, whose lines have letters for names.
struct Set {
    order: EvictionOrder,
    lines: Vec<Option<char>>,
}

impl Set {
    fn new(policy: Replacement, ways: usize) -> Set {
        Set { order: EvictionOrder::new(policy, 7, 1, ways), lines: vec![None; ways] }
    }

    /// Uses a line. What leaves for it; `.` where nothing does.
    fn uses(&mut self, line: char) -> char {
        if let Some(way) = self.lines.iter().position(|&held| held == Some(line)) {
            self.order.hit(way);
            return '.';
        }
        let way = self.order.first(0..self.lines.len()).unwrap();
        self.order.insert(way);
        self.lines[way].replace(line).unwrap_or('.')
    }
}

/// Uses lines of a set one after the other, and compares what leaves for each.
fn check(policy: Replacement, ways: usize, uses: &str, leave: &str) {
    let mut set = Set::new(policy, ways);
    let left: String = uses.chars().map(|line| set.uses(line)).collect();
    assert_eq!(left, leave, "{policy:?}, {ways} ways: {uses}");
}

#[test]
fn lru_takes_what_was_used_longest_ago() {
    check(Replacement::Lru, 4, "ABCDAE", ".....B");
    check(Replacement::Lru, 4, "ABCDACEFG", "......BDA");
}

#[test]
fn fifo_takes_what_came_first_used_or_not() {
    check(Replacement::Fifo, 4, "ABCDAE", ".....A");
    check(Replacement::Fifo, 4, "ABCDACEFG", "......ABC");
}

#[test]
fn srrip_takes_a_scan_rather_than_what_was_hit() {
    // The paper's mixed pattern: A and B are used again behind a scan. LRU has lost them by then.
    check(Replacement::Srrip, 4, "ABBAwxyzAB", "......wx..");
    check(Replacement::Lru, 4, "ABBAwxyzAB", "......BAwx");
}

#[test]
fn srrip_ages_a_set_until_a_line_is_distant() {
    // A and B are near (0), C and D long (2). All age by 1: C and D are distant (3), and leave for E and F.
    // All age by 1: E and F leave for G and H. Now A, B, G and H are long. All age by 1, and A is the first.
    check(Replacement::Srrip, 4, "ABCDABEFGHI", "......CDEFA");
}

#[test]
fn srrip_has_its_first_way_leave_without_hits() {
    check(Replacement::Srrip, 4, "ABCDEFGHI", "....ABCDE");
}

#[test]
fn srrip_ages_a_set_for_a_line_that_leaves_before_the_other_comes() {
    let mut set = Set::new(Replacement::Srrip, 2);
    "ABAB".chars().for_each(|line| _ = set.uses(line));
    set.order.give_way(0);
    set.order.remove(0);
    assert_eq!(set.order.first(0..2), Some(0), "it is empty");
    set.order.insert(0);
    assert_eq!(set.order.first(0..2), Some(1), "B is distant, what came is long");
}

#[test]
fn tree_plru_takes_the_half_and_the_quarter_that_were_not_used_last() {
    // After D the root leads left; A turns it to the right, where D has turned the node to C. LRU takes B.
    check(Replacement::TreePlru, 4, "ABCDAE", ".....C");
    // C turns the root to the left again, where A has turned the node to B.
    check(Replacement::TreePlru, 4, "ABCDACE", "......B");
    check(Replacement::TreePlru, 4, "ABCDEFGH", "....ACBD");
}

#[test]
fn tree_plru_passes_by_ways_that_a_set_does_not_have() {
    // Three ways: the right half has one.
    check(Replacement::TreePlru, 3, "ABCDE", "...AC");
    check(Replacement::TreePlru, 1, "ABC", ".AB");
}

#[test]
fn an_empty_way_goes_first() {
    for policy in [Replacement::Lru, Replacement::Fifo, Replacement::Random, Replacement::Srrip, Replacement::TreePlru]
    {
        let mut set = Set::new(policy, 4);
        "ABCDABC".chars().for_each(|line| _ = set.uses(line));
        set.order.remove(1);
        assert_eq!(set.order.first(0..4), Some(1), "{policy:?}");
    }
}

#[test]
fn the_order_goes_on_behind_ways_that_may_not_leave() {
    for (policy, wanted) in [
        (Replacement::Lru, [1, 2, 3, 0]),
        (Replacement::Fifo, [0, 1, 2, 3]),
        (Replacement::Srrip, [1, 2, 3, 0]),
        (Replacement::TreePlru, [2, 3, 1, 0]),
    ] {
        let mut set = Set::new(policy, 4);
        "ABCDA".chars().for_each(|line| _ = set.uses(line));
        let mut places = [3, 2, 1, 0];
        set.order.sort(&mut places);
        assert_eq!(places, wanted, "{policy:?}");
        for kept in 1..4 {
            assert_eq!(set.order.first(wanted[kept..].iter().copied()), Some(wanted[kept]), "{policy:?}");
        }
    }
}

#[test]
fn draws_depend_on_the_seed_alone_and_take_every_way_alike() {
    let draws = |seed| {
        let mut order = EvictionOrder::new(Replacement::Random, seed, 2, 4);
        (0..8).for_each(|place| order.insert(place));
        let taken = (0..4000).map(|_| {
            let place = order.first(4..8).unwrap();
            order.insert(place);
            place - 4
        });
        taken.collect::<Vec<_>>()
    };
    assert_eq!(draws(1), draws(1));
    assert_ne!(draws(1), draws(2));
    for way in 0..4 {
        let times = draws(1).iter().filter(|&&taken| taken == way).count();
        assert!((900..1100).contains(&times), "way {way} left {times} times of 4000");
    }
}
