//! Tag arrays with an XOR-folded set index, of the L1Ds of SMs, L2 slices and home slices.
//!
//! Which line leaves is the replacement policy's ([`replacement`](crate::replacement)). Source: AGPM Table IV
//! ("XOR-indexing, allocate-on-miss"). The fold XORs every group of index bits of the line number, so that
//! lines a power of two apart spread over the sets.
//!
//! Invariants: a line is in at most one way; a locked way (one with a fill under way) is never a victim.
//! Data, sector validity and dirtiness belong to the owner, in arrays parallel to the ways.

use durawarp_checkpoint::state;
use smallvec::SmallVec;

use crate::replacement::{EvictionOrder, Replacement};

/// A line number that no line has.
const EMPTY: u64 = u64::MAX;

/// Tags of a set-associative cache. A *place* is `set * ways + way`.
#[derive(Debug, Clone)]
pub struct TagArray {
    ways: usize,
    /// Ways of each set that may hold a line: the first ones.
    open: usize,
    set_bits: u32,
    tags: Vec<u64>,
    order: EvictionOrder,
    locked: Vec<bool>,
}

state!(TagArray { parts: order; sized: tags, locked; saved: open; kept: ways, set_bits });

impl TagArray {
    /// An empty array of `sets` (a power of two) times `ways`, with a policy and the seed of its draws.
    ///
    /// # Panics
    /// When `sets` is not a power of two or `ways` is 0.
    pub fn new(sets: usize, ways: usize, policy: Replacement, seed: u32) -> Self {
        assert!(sets.is_power_of_two() && ways > 0, "{sets} sets of {ways} ways");
        TagArray {
            ways,
            open: ways,
            set_bits: sets.trailing_zeros(),
            tags: vec![EMPTY; sets * ways],
            order: EvictionOrder::new(policy, seed, sets, ways),
            locked: vec![false; sets * ways],
        }
    }

    /// From now on lines are put into the first `ways` ways of each set, one at least; a way that still holds
    /// a line stays open.
    pub fn open(&mut self, ways: usize) {
        let held = (0..self.places()).filter(|&place| self.tags[place] != EMPTY).map(|place| place % self.ways + 1);
        self.open = held.max().unwrap_or(0).max(ways).clamp(1, self.ways);
    }

    /// Number of places.
    pub fn places(&self) -> usize {
        self.tags.len()
    }

    fn first_place(&self, line: u64) -> usize {
        // The lowest group of bits takes up the next one, both then the two behind them, and so on.
        let (mut set, mut groups) = (line, self.set_bits);
        if self.set_bits > 0 {
            while groups < u64::BITS && set >> groups != 0 {
                set ^= set >> groups;
                groups *= 2;
            }
        }
        (set & ((1 << self.set_bits) - 1)) as usize * self.ways
    }

    /// The place of a line number, if it is there.
    pub fn find(&self, line: u64) -> Option<usize> {
        /// Ways that are compared without a branch between them, in sets of more than these.
        const TOGETHER: usize = 32;
        let first = self.first_place(line);
        let tags = &self.tags[first..first + self.open];
        let mut from = 0;
        if tags.len() > TOGETHER {
            let among = |tags: &[u64]| tags.iter().fold(false, |found, &tag| found | (tag == line));
            from = tags.chunks(TOGETHER).position(among)? * TOGETHER;
        }
        tags[from..].iter().position(|&tag| tag == line).map(|way| first + from + way)
    }

    /// Ways of each set.
    pub fn ways(&self) -> usize {
        self.ways
    }

    /// The line in a place is used.
    #[inline]
    pub fn touch(&mut self, place: usize) {
        self.order.hit(place);
    }

    /// The place to take for a line that is not there: an empty way, else the first to leave of those that
    /// are not locked; `None` when every way is locked.
    pub fn victim(&self, line: u64) -> Option<usize> {
        let first = self.first_place(line);
        self.order.first_unlocked(first, &self.locked[first..first + self.open])
    }

    /// The places that a line which is not there could take, in the order in which their lines leave.
    pub fn victims(&self, line: u64) -> SmallVec<[usize; 16]> {
        let mut places: SmallVec<[usize; 16]> = self.unlocked(line).collect();
        self.order.sort(&mut places);
        places
    }

    #[inline]
    fn unlocked(&self, line: u64) -> impl Iterator<Item = usize> {
        let first = self.first_place(line);
        (first..first + self.open).filter(|&place| !self.locked[place])
    }

    /// Puts a line into a place; returns the line number that was there.
    pub fn replace(&mut self, place: usize, line: u64) -> Option<u64> {
        let old = std::mem::replace(&mut self.tags[place], line);
        self.order.insert(place);
        (old != EMPTY).then_some(old)
    }

    /// The line number in a place.
    pub fn line_at(&self, place: usize) -> Option<u64> {
        (self.tags[place] != EMPTY).then_some(self.tags[place])
    }

    /// The line in a place is about to leave for another, though the place is emptied before that comes.
    pub fn give_way(&mut self, place: usize) {
        self.order.give_way(place);
    }

    /// Empties a place; it will be taken first.
    pub fn invalidate(&mut self, place: usize) {
        self.tags[place] = EMPTY;
        self.order.remove(place);
    }

    /// Locks or unlocks a place.
    pub fn lock(&mut self, place: usize, locked: bool) {
        self.locked[place] = locked;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_least_recently_used_unlocked_way_is_the_victim() {
        let mut tags = TagArray::new(1, 3, Replacement::Lru, 0);
        for line in 0..3 {
            let place = tags.victim(line).unwrap();
            assert_eq!(tags.replace(place, line), None);
        }
        tags.touch(tags.find(0).unwrap());
        assert_eq!(tags.victim(9), tags.find(1));
        tags.lock(tags.find(1).unwrap(), true);
        assert_eq!(tags.victim(9), tags.find(2));
        tags.lock(tags.find(0).unwrap(), true);
        tags.lock(tags.find(2).unwrap(), true);
        assert_eq!(tags.victim(9), None);
    }

    proptest! {
        #[test]
        fn a_set_is_the_parity_of_every_group_of_bits(line: u64, set_bits in 0u32..12) {
            let tags = TagArray::new(1 << set_bits, 2, Replacement::Lru, 0);
            let (mut set, mut rest) = (0, line);
            while set_bits > 0 && rest != 0 {
                set ^= rest & ((1 << set_bits) - 1);
                rest >>= set_bits;
            }
            prop_assert_eq!(tags.first_place(line), 2 * set as usize);
        }
    }

    #[test]
    fn lines_a_power_of_two_apart_use_every_set() {
        let tags = TagArray::new(32, 6, Replacement::Lru, 0);
        for stride in [32, 64, 1024, 4096] {
            let sets: std::collections::BTreeSet<_> = (0..32).map(|i| tags.first_place(i * stride)).collect();
            assert!(sets.len() >= 16, "stride {stride} uses {} sets", sets.len());
        }
    }

    fn a_policy() -> impl Strategy<Value = Replacement> {
        use Replacement::{Fifo, Lru, Random, Srrip, TreePlru};
        prop::sample::select(vec![Lru, Fifo, Random, Srrip, TreePlru])
    }

    proptest! {
        /// Under each policy.
        #[test]
        fn a_victim_is_open_and_unlocked_and_an_empty_way_goes_first(
            policy in a_policy(),
            (ways, open) in prop::sample::select(vec![(1, 1), (3, 3), (6, 4), (16, 16), (96, 64)]),
            steps in prop::collection::vec((0u64..300, 0u8..8, any::<u16>()), 1..600),
        ) {
            let mut tags = TagArray::new(4, ways, policy, 5);
            tags.open(open);
            for (line, verb, place) in steps {
                let place = usize::from(place) % tags.places();
                match verb {
                    0 => tags.lock(place, true),
                    1 | 2 => tags.lock(place, false),
                    3 if !tags.locked[place] => tags.invalidate(place),
                    _ => {
                        if let Some(place) = tags.find(line) {
                            tags.touch(place);
                            continue;
                        }
                        let first = tags.first_place(line);
                        let mut free: Vec<_> = (first..first + open).filter(|&place| !tags.locked[place]).collect();
                        let mut victims = tags.victims(line);
                        let victim = tags.victim(line);
                        prop_assert_eq!(victim, victims.first().copied());
                        prop_assert_eq!(tags.victim(line), victim, "to look changes nothing");
                        victims.sort_unstable();
                        prop_assert_eq!(&victims[..], &free[..], "each once");
                        free.retain(|&place| tags.line_at(place).is_none());
                        if let Some(place) = victim {
                            prop_assert!(free.is_empty() || free.contains(&place));
                            tags.replace(place, line);
                        }
                    }
                }
            }
        }

        /// Against a list of lines per set, kept in order of use.
        #[test]
        fn it_agrees_with_a_recency_list(
            lines in prop::collection::vec(0u64..400, 1..700),
            (ways, open) in prop::sample::select(vec![(3, 3), (100, 67), (64, 1)]),
        ) {
            let mut tags = TagArray::new(4, ways, Replacement::Lru, 0);
            tags.open(open);
            let mut lists: Vec<Vec<u64>> = vec![Vec::new(); 4];
            for line in lines {
                let list = &mut lists[tags.first_place(line) / ways];
                let hit = list.iter().position(|&l| l == line);
                prop_assert_eq!(tags.find(line).is_some(), hit.is_some());
                match (tags.find(line), hit) {
                    (Some(place), Some(at)) => {
                        tags.touch(place);
                        list.remove(at);
                    }
                    _ => {
                        let place = tags.victim(line).unwrap();
                        let old = tags.replace(place, line);
                        let oldest = (list.len() == open).then(|| list.remove(0));
                        prop_assert_eq!(old, oldest);
                    }
                }
                list.push(line);
            }
        }
    }
}
