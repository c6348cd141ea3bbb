//! Which line of a full set makes room for another: replacement policies, by name.
//!
//! | policy | the line that leaves first | state |
//! |---|---|---|
//! | `lru` | that was used least recently | a count a way |
//! | `fifo` | that came first | a count a way |
//! | `random` | a draw, by seed, place and lines that have come | a byte a way |
//! | `srrip` | that is predicted to be used last: 2 bits a way, which a hit sets to near | a byte a way |
//! | `tree_plru` | to which a tree of bits leads, each away from what was used last | a byte a node |
//!
//! Every policy gives each way of a set a *rank*. The line of the least rank leaves; among equals the first
//! way counts. Ways that are locked, or whose lines a scheme keeps, are left out, and the least of the others
//! is taken. An empty way has rank 0. Invariant: ranks change when lines are hit, come or leave, never when
//! they are looked at. So two looks with nothing in between have one answer.
//!
//! Source: of `srrip` Jaleel et al., *High Performance Cache Replacement Using Re-Reference Interval
//! Prediction (RRIP)*, ISCA 2010 (SRRIP with hit priority, M = 2); of `tree_plru` Al-Zoubi et al.,
//! *Performance Evaluation of Cache Replacement Policies for the SPEC CPU2000 Benchmark Suite*, ACMSE 2004.
//! Where a tree leads to ways that may not leave, or that a set does not have, its other half is taken. Not
//! modelled: policies that choose between two by the misses of some sets (DRRIP, DIP), and bypass.

use std::ops::Range;

use durawarp_base::choice;
use durawarp_checkpoint::state;

use crate::address::mixed;

choice! {
    /// Which line of a full set makes room for another.
    pub enum Replacement {
        /// The least recently used.
        Lru = "lru",
        /// The first that came.
        Fifo = "fifo",
        /// One that is drawn.
        Random = "random",
        /// One whose next use is predicted to be distant.
        Srrip = "srrip",
        /// One that a tree of bits leads to: about the least recently used.
        TreePlru = "tree_plru",
    }
}

/// Of SRRIP, 4 less the predicted interval (RRPV): a line that has come, that has been hit, that leaves.
const LONG: u8 = 2;
const NEAR: u8 = 4;
const DISTANT: u8 = 1;
/// Of `random` and `tree_plru`: a way has a line.
const HELD: u8 = 1;

/// In which order the lines of a cache leave it. A *place* is `set * ways + way`.
///
/// # Example: lines leave in the order of their last use
/// ```
/// use durawarp_machine::replacement::{EvictionOrder, Replacement};
/// let mut order = EvictionOrder::new(Replacement::Lru, 0, 1, 2);
/// order.insert(0);
/// order.insert(1);
/// order.hit(0);
/// assert_eq!(order.first(0..2), Some(1));
/// ```
#[derive(Debug, Clone)]
pub struct EvictionOrder {
    policy: Replacement,
    seed: u64,
    ways: usize,
    /// Of `lru` and `fifo`, by place: `uses` when it was used, or its line came; 0 of an empty one.
    used: Vec<u64>,
    /// Of the others, by place: 0 of an empty one. A tree has its nodes before its ways: the root at 1, below
    /// node n those at 2n and 2n + 1; a node is 1 if it leads to the latter.
    marks: Vec<u8>,
    /// Lines that came, and under `lru` hits.
    uses: u64,
}

state!(EvictionOrder { sized: used, marks; saved: uses; kept: policy, seed, ways });

impl EvictionOrder {
    /// Of an empty cache.
    pub fn new(policy: Replacement, seed: u32, sets: usize, ways: usize) -> Self {
        let (used, marks) = match policy {
            Replacement::Lru | Replacement::Fifo => (sets * ways, 0),
            Replacement::Random | Replacement::Srrip => (0, sets * ways),
            Replacement::TreePlru => (0, sets * 2 * ways.next_power_of_two()),
        };
        EvictionOrder { policy, seed: u64::from(seed) << 32, ways, used: vec![0; used], marks: vec![0; marks], uses: 0 }
    }

    /// The line in a place is used.
    #[inline]
    pub fn hit(&mut self, place: usize) {
        match self.policy {
            Replacement::Lru => self.stamp(place),
            Replacement::Fifo | Replacement::Random => {}
            Replacement::Srrip => self.marks[place] = NEAR,
            Replacement::TreePlru => self.point_away(place),
        }
    }

    /// A line comes into a place, whose line has left if it had one.
    #[inline]
    pub fn insert(&mut self, place: usize) {
        match self.policy {
            Replacement::Lru | Replacement::Fifo => self.stamp(place),
            Replacement::Random => {
                self.uses += 1;
                self.marks[place] = HELD;
            }
            Replacement::Srrip => {
                self.age(place);
                self.marks[place] = LONG;
            }
            Replacement::TreePlru => {
                let (tree, leaf) = self.leaf(place);
                self.marks[tree + leaf] = HELD;
                self.point_away(place);
            }
        }
    }

    /// The line in a place is about to leave for another, though the place is emptied before that comes.
    pub fn give_way(&mut self, place: usize) {
        if self.policy == Replacement::Srrip {
            self.age(place);
        }
    }

    /// A place is empty from now on.
    pub fn remove(&mut self, place: usize) {
        match self.policy {
            Replacement::Lru | Replacement::Fifo => self.used[place] = 0,
            Replacement::Random | Replacement::Srrip => self.marks[place] = 0,
            Replacement::TreePlru => {
                let (tree, leaf) = self.leaf(place);
                self.marks[tree + leaf] = 0;
            }
        }
    }

    /// Which of these places of a set is taken for a line that comes.
    #[inline]
    pub fn first(&self, places: impl Iterator<Item = usize>) -> Option<usize> {
        match self.policy {
            Replacement::Lru | Replacement::Fifo => places.min_by_key(|&place| self.used[place]),
            Replacement::Random | Replacement::Srrip | Replacement::TreePlru => {
                places.min_by_key(|&place| self.rank(place))
            }
        }
    }

    /// Which of the places from `first` on is taken for a line that comes, of those that are not locked.
    #[inline]
    pub fn first_unlocked(&self, first: usize, locked: &[bool]) -> Option<usize> {
        match self.policy {
            Replacement::Lru | Replacement::Fifo => {
                // A loop without branches: a miss looks at all ways of its set.
                let (mut least, mut found) = (u64::MAX, None);
                for ((&used, &locked), place) in self.used[first..][..locked.len()].iter().zip(locked).zip(first..) {
                    let is_less = used < least && !locked;
                    (least, found) = if is_less { (used, Some(place)) } else { (least, found) };
                }
                found
            }
            Replacement::Random | Replacement::Srrip | Replacement::TreePlru => {
                self.first((first..).zip(locked).filter(|(_, locked)| !**locked).map(|(place, _)| place))
            }
        }
    }

    /// Puts places of a set into the order in which they would be taken.
    pub fn sort(&self, places: &mut [usize]) {
        places.sort_unstable_by_key(|&place| (self.rank(place), place));
    }

    #[inline]
    fn stamp(&mut self, place: usize) {
        self.uses += 1;
        self.used[place] = self.uses;
    }

    fn rank(&self, place: usize) -> u64 {
        match self.policy {
            Replacement::Lru | Replacement::Fifo => self.used[place],
            Replacement::Random if self.marks[place] == 0 => 0,
            Replacement::Random => mixed(mixed(self.seed ^ self.uses) ^ place as u64) | 1,
            Replacement::Srrip => self.marks[place].into(),
            Replacement::TreePlru => self.distance(place),
        }
    }

    /// A line leaves whose interval may not be the longest one: all of its set become longer until it is.
    fn age(&mut self, place: usize) {
        let by = self.marks[place].saturating_sub(DISTANT);
        for mark in &mut self.marks[of_set(place, self.ways)] {
            if *mark > 0 {
                *mark = mark.saturating_sub(by).max(DISTANT);
            }
        }
    }

    /// Where the tree of a place's set begins, and its way in it.
    fn leaf(&self, place: usize) -> (usize, usize) {
        let leaves = self.ways.next_power_of_two();
        (place / self.ways * 2 * leaves, leaves + place % self.ways)
    }

    /// Every node above a place leads to its other half.
    fn point_away(&mut self, place: usize) {
        let (tree, mut node) = self.leaf(place);
        while node > 1 {
            self.marks[tree + node / 2] = u8::from(node & 1 == 0);
            node /= 2;
        }
    }

    /// A bit for each node above a place, the root's the highest: set if it leads to the other half. Plus 1.
    fn distance(&self, place: usize) -> u64 {
        let (tree, mut node) = self.leaf(place);
        if self.marks[tree + node] == 0 {
            return 0;
        }
        let (mut distance, mut weight) = (1, 1);
        while node > 1 {
            if usize::from(self.marks[tree + node / 2]) != node & 1 {
                distance += weight;
            }
            (node, weight) = (node / 2, weight * 2);
        }
        distance
    }
}

/// The places of the set of one of them.
fn of_set(place: usize, ways: usize) -> Range<usize> {
    let first = place / ways * ways;
    first..first + ways
}

#[cfg(test)]
mod tests;
