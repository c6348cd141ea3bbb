//! Tag arrays with LRU replacement and an XOR-folded set index, shared by the L1D and the L2 slices.
//!
//! Source: AGPM Table IV ("XOR-indexing, allocate-on-miss, LRU"). The fold XORs every group of index bits of
//! the line number, so that lines a power of two apart spread over the sets.
//!
//! Invariants: a line is in at most one way; a locked way (one with a fill under way) is never a victim.
//! Data, sector validity and dirtiness belong to the owner, in arrays parallel to the ways.

use durawarp_checkpoint::state;

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
    used: Vec<u64>,
    locked: Vec<bool>,
    uses: u64,
}

state!(TagArray { sized: tags, used, locked; saved: uses, open; kept: ways, set_bits });

impl TagArray {
    /// An empty array of `sets` (a power of two) times `ways`.
    ///
    /// # Panics
    /// When `sets` is not a power of two or `ways` is 0.
    pub fn new(sets: usize, ways: usize) -> Self {
        assert!(sets.is_power_of_two() && ways > 0, "{sets} sets of {ways} ways");
        TagArray {
            ways,
            open: ways,
            set_bits: sets.trailing_zeros(),
            tags: vec![EMPTY; sets * ways],
            used: vec![0; sets * ways],
            locked: vec![false; sets * ways],
            uses: 0,
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
        let mut set = 0;
        let mut rest = line;
        if self.set_bits > 0 {
            while rest != 0 {
                set ^= rest;
                rest >>= self.set_bits;
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

    /// Marks a place as the most recently used.
    pub fn touch(&mut self, place: usize) {
        self.uses += 1;
        self.used[place] = self.uses;
    }

    /// The place to take for a line that is not there: an empty way, else the least recently used one that is
    /// not locked; `None` when every way is locked.
    pub fn victim(&self, line: u64) -> Option<usize> {
        let first = self.first_place(line);
        (first..first + self.open).filter(|&place| !self.locked[place]).min_by_key(|&place| self.used[place])
    }

    /// The places that a line which is not there could take, the least recently used first.
    pub fn victims(&self, line: u64) -> impl Iterator<Item = usize> {
        let first = self.first_place(line);
        let mut ways: smallvec::SmallVec<[usize; 16]> =
            (first..first + self.open).filter(|&place| !self.locked[place]).collect();
        ways.sort_unstable_by_key(|&place| self.used[place]);
        ways.into_iter()
    }

    /// Puts a line into a place and marks it used; returns the line number that was there.
    pub fn replace(&mut self, place: usize, line: u64) -> Option<u64> {
        let old = std::mem::replace(&mut self.tags[place], line);
        self.touch(place);
        (old != EMPTY).then_some(old)
    }

    /// The line number in a place.
    pub fn line_at(&self, place: usize) -> Option<u64> {
        (self.tags[place] != EMPTY).then_some(self.tags[place])
    }

    /// Empties a place; it will be taken first.
    pub fn invalidate(&mut self, place: usize) {
        self.tags[place] = EMPTY;
        self.used[place] = 0;
    }

    /// Empties every place; locks stay.
    pub fn invalidate_all(&mut self) {
        self.tags.fill(EMPTY);
        self.used.fill(0);
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
        let mut tags = TagArray::new(1, 3);
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

    #[test]
    fn lines_a_power_of_two_apart_use_every_set() {
        let tags = TagArray::new(32, 6);
        for stride in [32, 64, 1024, 4096] {
            let sets: std::collections::BTreeSet<_> = (0..32).map(|i| tags.first_place(i * stride)).collect();
            assert!(sets.len() >= 16, "stride {stride} uses {} sets", sets.len());
        }
    }

    proptest! {
        /// Against a list of lines per set, kept in order of use.
        #[test]
        fn it_agrees_with_a_recency_list(
            lines in prop::collection::vec(0u64..400, 1..700),
            (ways, open) in prop::sample::select(vec![(3, 3), (100, 67), (64, 1)]),
        ) {
            let mut tags = TagArray::new(4, ways);
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
