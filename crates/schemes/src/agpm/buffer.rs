//! The AGPM buffer: how often each byte of recently logged lines, and each line, was referred to.
//!
//! ```text
//!   entry = tag | log way: 128 byte counters, block counter | all way: the same
//! ```
//! The log way counts references of log updates, the all way all. An entry comes with a log update and leaves
//! to make room, when its line leaves the cache, or at the end of a period. Counters saturate.
//!
//! | placement | an entry makes room for |
//! |---|---|
//! | `indexed` | another line of its set, which is the line's number modulo the sets |
//! | `associative` | any, when the buffer is full and it is the least recently used |
//!
//! Source: AGPM section IV-B: "similar to a 2-way set-associative cache", one way for log updates, the other
//! for all requests, so that a set has one line (`indexed`). Readings: a log update gives bytes that it is
//! first to touch a count of 1, other accesses leave them at 0 (A5); the two ways of a line are one entry
//! here, so `lines` is half the number of the paper's entries.

use hashbrown::HashMap;

use durawarp_checkpoint::value;
use durawarp_persist::selection::Locality;

/// Bytes of a line that counters are kept for.
const BYTES: usize = 128;

/// The counters of one way of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way {
    byte: [u8; BYTES],
    block: u8,
}

value!(record Way { byte, block });

/// A line and its counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BufferEntry {
    pub(super) line: u64,
    log: Way,
    all: Way,
}

value!(record BufferEntry { line, log, all });

/// How counters count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counting {
    /// The most that a counter holds.
    pub(super) most: u8,
    /// A log update sets a byte counter of 0 to 1.
    pub(super) first_sets: bool,
}

value!(record Counting { most, first_sets });

/// Which entry makes room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Places {
    /// Sets of one line each.
    Sets(usize),
    /// Lines of one set, the least recently used first to go.
    Lines(usize),
}

value!(choice Places { Sets(sets), Lines(lines) });

/// Spreads eight bits over the bytes of a word, each to 0 or 1.
fn spread(bits: u8) -> u64 {
    let apart = u64::from(bits).wrapping_mul(0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
    let carried = (apart & 0x7f7f_7f7f_7f7f_7f7f) + 0x7f7f_7f7f_7f7f_7f7f;
    ((carried | apart) >> 7) & 0x0101_0101_0101_0101
}

/// A mask of bits as a mask of bytes.
fn spread_all(bits: u128) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (to, from) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(bits.to_le_bytes()) {
        *to = spread(from).to_le_bytes();
    }
    bytes
}

/// What one reference did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Touched {
    again: bool,
    saturated: u64,
}

impl Way {
    const NEW: Way = Way { byte: [0; BYTES], block: 0 };

    fn first(bytes: &[u8; BYTES]) -> Way {
        Way { byte: *bytes, block: 0 }
    }

    fn touch(&mut self, bytes: &[u8; BYTES], sets: bool, most: u8) -> Touched {
        let (mut again, mut full) = (0u8, 0u32);
        let sets = u8::from(sets);
        for (counter, &touched) in self.byte.iter_mut().zip(bytes) {
            let counted = u8::from(*counter != 0) & touched;
            let at_most = counted & u8::from(*counter == most);
            again |= counted;
            full += u32::from(at_most);
            *counter += (counted ^ at_most) | touched & sets & !counted;
        }
        full += u32::from(self.block == most);
        self.block += u8::from(self.block < most);
        Touched { again: again != 0, saturated: u64::from(full) }
    }

    fn merge(&mut self, other: &Way, most: u8) {
        for (counter, &more) in self.byte.iter_mut().zip(&other.byte) {
            *counter = (u16::from(*counter) + u16::from(more)).min(u16::from(most)) as u8;
        }
        self.block = (u16::from(self.block) + u16::from(other.block)).min(u16::from(most)) as u8;
    }

    /// The sum of byte counters over 1, and that sum and the block counter's.
    fn sums(&self) -> (u64, u64) {
        let temporal = self.byte.iter().map(|&count| u64::from(if count > 1 { count } else { 0 })).sum();
        (temporal, temporal + u64::from(self.block))
    }
}

/// No neighbour.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Slot {
    entry: BufferEntry,
    newer: u32,
    older: u32,
}

value!(record Slot { entry, newer, older });

/// A buffer of entries.
#[derive(Debug)]
pub(super) struct Buffer {
    places: Places,
    counting: Counting,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// By set, or by line where there is one set.
    index: HashMap<u64, u32>,
    newest: u32,
    oldest: u32,
    /// Accesses that touched again, since the last flush.
    hits: Locality,
    saturated: u64,
}

value!(record Buffer { places, counting, slots, free, index, newest, oldest, hits, saturated });

impl Buffer {
    /// An empty buffer.
    pub(super) fn new(places: Places, counting: Counting) -> Self {
        Buffer {
            places,
            counting,
            slots: Vec::new(),
            free: Vec::new(),
            index: HashMap::new(),
            newest: NONE,
            oldest: NONE,
            hits: Locality::default(),
            saturated: 0,
        }
    }

    fn key(&self, line: u64) -> u64 {
        match self.places {
            Places::Sets(sets) => line / BYTES as u64 % sets.max(1) as u64,
            Places::Lines(_) => line,
        }
    }

    fn find(&self, line: u64) -> Option<u32> {
        let slot = self.index.get(&self.key(line)).copied()?;
        (self.slots[slot as usize].entry.line == line).then_some(slot)
    }

    /// The line whose entry makes room for another line's.
    fn in_the_way(&self, line: u64) -> Option<u64> {
        let slot = match self.places {
            Places::Sets(_) => self.index.get(&self.key(line)).copied()?,
            Places::Lines(lines) => (self.index.len() >= lines.max(1)).then_some(self.oldest)?,
        };
        Some(self.slots[slot as usize].entry.line)
    }

    /// The line has an entry.
    pub(super) fn has(&self, line: u64) -> bool {
        self.find(line).is_some()
    }

    /// An access refers to bytes of a line, a log update or another. Returns an entry that had to make room.
    pub(super) fn refer(&mut self, line: u64, bytes: u128, log: bool) -> Option<BufferEntry> {
        let bytes = spread_all(bytes);
        let Some(slot) = self.find(line) else {
            if !log {
                return None;
            }
            let first = Way::first(&bytes);
            return self.insert(BufferEntry { line, log: first, all: first });
        };
        let Counting { most, first_sets } = self.counting;
        let entry = &mut self.slots[slot as usize].entry;
        let all = entry.all.touch(&bytes, log && first_sets, most);
        self.saturated += all.saturated;
        self.hits.t_all += u64::from(all.again);
        self.hits.s_all += 1;
        if log {
            let own = entry.log.touch(&bytes, first_sets, most);
            self.saturated += own.saturated;
            self.hits.t_log += u64::from(own.again);
            self.hits.s_log += 1;
        }
        self.unlink(slot);
        self.link(slot);
        None
    }

    /// Puts an entry in, or adds it to the line's own. Returns an entry that had to make room.
    pub(super) fn insert(&mut self, entry: BufferEntry) -> Option<BufferEntry> {
        if let Some(slot) = self.find(entry.line) {
            let most = self.counting.most;
            let own = &mut self.slots[slot as usize].entry;
            own.log.merge(&entry.log, most);
            own.all.merge(&entry.all, most);
            return None;
        }
        let gone = self.in_the_way(entry.line).and_then(|line| self.take(line));
        let key = self.key(entry.line);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize].entry = entry;
                slot
            }
            None => {
                self.slots.push(Slot { entry, newer: NONE, older: NONE });
                (self.slots.len() - 1) as u32
            }
        };
        self.index.insert(key, slot);
        self.link(slot);
        gone
    }

    /// Takes the entry of a line out.
    pub(super) fn take(&mut self, line: u64) -> Option<BufferEntry> {
        let slot = self.find(line)?;
        self.index.remove(&self.key(line));
        self.unlink(slot);
        self.free.push(slot);
        let empty = BufferEntry { line: 0, log: Way::NEW, all: Way::NEW };
        Some(std::mem::replace(&mut self.slots[slot as usize].entry, empty))
    }

    /// What the counters that are here add up to.
    pub(super) fn sums(&self) -> Locality {
        let mut sums = Locality::default();
        let mut at = self.newest;
        while at != NONE {
            let slot = &self.slots[at as usize];
            let ((t_all, s_all), (t_log, s_log)) = (slot.entry.all.sums(), slot.entry.log.sums());
            sums.add(&Locality { t_all, t_log, s_all, s_log });
            at = slot.older;
        }
        sums
    }

    /// Accesses that touched bytes, or lines, again since the last flush.
    pub(super) fn hits(&self) -> Locality {
        self.hits
    }

    /// Increments that a full counter did not take, since the last flush.
    pub(super) fn saturated(&self) -> u64 {
        self.saturated
    }

    /// Empties it.
    pub(super) fn flush(&mut self) {
        self.slots.clear();
        self.free.clear();
        self.index.clear();
        (self.newest, self.oldest) = (NONE, NONE);
        self.hits = Locality::default();
        self.saturated = 0;
    }

    fn link(&mut self, slot: u32) {
        let before = self.newest;
        self.slots[slot as usize].older = before;
        self.slots[slot as usize].newer = NONE;
        match before {
            NONE => self.oldest = slot,
            other => self.slots[other as usize].newer = slot,
        }
        self.newest = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let Slot { newer, older, .. } = self.slots[slot as usize];
        match newer {
            NONE => self.newest = older,
            other => self.slots[other as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            other => self.slots[other as usize].newer = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HARDWARE: Counting = Counting { most: 31, first_sets: true };

    fn buffer(lines: usize) -> Buffer {
        Buffer::new(Places::Lines(lines), HARDWARE)
    }

    #[test]
    fn a_log_update_makes_an_entry_and_other_accesses_do_not() {
        let mut b = buffer(4);
        b.refer(0, 0xf, false);
        assert!(!b.has(0));
        b.refer(0, 0xf, true);
        assert!(b.has(0));
        assert_eq!((b.sums(), b.hits()), (Locality::default(), Locality::default()), "the first is no repetition");
    }

    #[test]
    fn the_sums_are_those_of_counters_over_one_and_of_block_counters() {
        let mut b = buffer(4);
        b.refer(0, 0xf, true);
        // The same four bytes by another access: counters of the all way go to 2, its block counter to 1.
        b.refer(0, 0xf, false);
        assert_eq!(b.sums(), Locality { t_all: 8, t_log: 0, s_all: 9, s_log: 0 });
        assert_eq!(b.hits(), Locality { t_all: 1, t_log: 0, s_all: 1, s_log: 0 });
        // The neighbours by a log update: spatial in both ways, and counted from now on.
        b.refer(0, 0xf0, true);
        assert_eq!(b.sums(), Locality { t_all: 8, t_log: 0, s_all: 10, s_log: 1 });
        b.refer(0, 0xf0, true);
        assert_eq!(b.sums(), Locality { t_all: 16, t_log: 8, s_all: 19, s_log: 10 });
        assert_eq!(b.hits(), Locality { t_all: 2, t_log: 1, s_all: 3, s_log: 2 });
    }

    #[test]
    fn literally_a_byte_counter_of_0_stays_0() {
        let mut b = Buffer::new(Places::Lines(4), Counting { first_sets: false, ..HARDWARE });
        b.refer(0, 0xf, true);
        b.refer(0, 0xf0, true);
        b.refer(0, 0xf0, true);
        assert_eq!(b.hits(), Locality { t_all: 0, t_log: 0, s_all: 2, s_log: 2 });
    }

    #[test]
    fn five_bits_count_to_31_and_no_further() {
        let mut b = buffer(4);
        for _ in 0..40 {
            b.refer(0, 1, true);
        }
        assert_eq!(b.sums().t_log, 31);
        assert_eq!(b.sums().s_log, 62);
        // 40 references: the byte counter is full after 31 of them, the block counter after 31 repetitions.
        assert_eq!(b.saturated(), 2 * (9 + 8));
    }

    #[test]
    fn the_least_recently_used_makes_room() {
        let mut b = buffer(2);
        assert_eq!(b.refer(0, 1, true), None);
        assert_eq!(b.refer(128, 1, true), None);
        b.refer(0, 1, false);
        assert_eq!(b.refer(256, 1, true).map(|entry| entry.line), Some(128));
        assert!(b.has(0) && b.has(256) && !b.has(128));
    }

    #[test]
    fn in_sets_of_one_line_the_sets_own_makes_room_however_recently_it_was_used() {
        let mut b = Buffer::new(Places::Sets(4), HARDWARE);
        for line in [0, 128, 256] {
            assert_eq!(b.refer(line, 1, true), None);
        }
        b.refer(0, 1, false);
        assert_eq!(b.refer(512, 1, true).map(|entry| entry.line), Some(0), "the fifth line is of the first's set");
        assert!(!b.has(0) && b.has(512) && b.has(128) && b.has(256));
        assert_eq!((b.take(0), b.take(512).map(|entry| entry.line)), (None, Some(512)));
        assert_eq!(b.refer(0, 1, true), None, "its set is free");
    }

    #[test]
    fn an_entry_that_comes_back_is_added() {
        let (mut b, mut other) = (buffer(4), buffer(4));
        for buffer in [&mut b, &mut other] {
            buffer.refer(0, 1, true);
            buffer.refer(0, 1, true);
        }
        let moved = other.take(0).unwrap();
        assert_eq!(other.sums(), Locality::default());
        b.insert(moved);
        assert_eq!(b.sums(), Locality { t_all: 4, t_log: 4, s_all: 6, s_log: 6 });
    }

    proptest! {
        /// Against counters kept one by one.
        #[test]
        fn it_counts_as_a_simple_model_does(
            accesses in prop::collection::vec((0u64..6, any::<u128>(), any::<bool>()), 1..200),
        ) {
            let mut b = buffer(3);
            let mut model: Vec<(u64, [[u32; 129]; 2])> = Vec::new();
            for (line, bytes, log) in accesses {
                let gone = b.refer(128 * line, bytes, log).map(|entry| entry.line / 128);
                match model.iter().position(|(other, _)| *other == line) {
                    Some(at) => {
                        let (_, mut ways) = model.remove(at);
                        for (way, counters) in ways.iter_mut().enumerate() {
                            if way == 0 || log {
                                for byte in (0..128).filter(|byte| bytes >> byte & 1 == 1) {
                                    if counters[byte] > 0 || log {
                                        counters[byte] = (counters[byte] + 1).min(31);
                                    }
                                }
                                counters[128] = (counters[128] + 1).min(31);
                            }
                        }
                        model.push((line, ways));
                        prop_assert_eq!(gone, None);
                    }
                    None if log => {
                        let expected = (model.len() == 3).then(|| model.remove(0).0);
                        prop_assert_eq!(gone, expected);
                        let first: [u32; 129] = std::array::from_fn(|byte| u32::from(byte < 128 && bytes >> byte & 1 == 1));
                        model.push((line, [first, first]));
                    }
                    None => prop_assert_eq!(gone, None),
                }
            }
            let t = |way: usize| -> u64 {
                model.iter().flat_map(|(_, ways)| &ways[way][..128]).filter(|&&n| n > 1).map(|&n| u64::from(n)).sum()
            };
            let s = |way: usize| -> u64 { t(way) + model.iter().map(|(_, ways)| u64::from(ways[way][128])).sum::<u64>() };
            prop_assert_eq!(b.sums(), Locality { t_all: t(0), t_log: t(1), s_all: s(0), s_log: s(1) });
        }
    }
}
