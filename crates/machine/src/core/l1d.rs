//! The L1 data cache of a core: tags, coherence states and bytes.
//!
//! Which line leaves is the replacement policy's. Invariants: a line is in at most one place; the state of an
//! empty place is [`LineState::Invalid`]. Not modelled: banks and ports of the array.

use smallvec::SmallVec;

use crate::coherence::CPU_LINE_BYTES;
use crate::replacement::EvictionOrder;
use durawarp_checkpoint::{state, value};

use super::parameters::L1dSpec;

/// The bytes of a line.
pub(super) type LineBytes = [u8; CPU_LINE_BYTES as usize];

/// What a core may do with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LineState {
    /// The line is not there.
    Invalid,
    /// It may read it; others may have copies.
    Shared,
    /// It may read it, and write it at once; nobody else has it, and its home has the same bytes.
    Exclusive,
    /// As exclusive, and its home lacks its bytes.
    Modified,
}

value!(choice LineState { Invalid, Shared, Exclusive, Modified });

/// The address of the first byte of the line of an address.
#[inline]
pub(super) fn line_of(address: u64) -> u64 {
    address & !(CPU_LINE_BYTES - 1)
}

/// The tag of an empty place: no line begins there.
const EMPTY: u64 = u64::MAX;

/// A core's L1 data cache.
#[derive(Debug)]
pub(super) struct L1d {
    ways: usize,
    set_mask: u64,
    tags: Vec<u64>,
    states: Vec<LineState>,
    bytes: Vec<LineBytes>,
    order: EvictionOrder,
    /// The place of each set that was found last, where a line is looked for first.
    found: Vec<u32>,
    /// Writes after which a byte had another value: nothing of the model reads it.
    changes: u64,
}

// Where a line is looked for first decides nothing but how long that takes the host.
state!(L1d { sized: tags, states, bytes; parts: order; saved: changes; kept: ways, set_mask, found });

impl L1d {
    /// An empty cache. Sets are a power of two, as the machine's faults say.
    pub(super) fn new(spec: &L1dSpec) -> L1d {
        let ways = spec.ways as usize;
        let places = (u64::from(spec.kb) * 1024 / CPU_LINE_BYTES) as usize;
        L1d {
            ways,
            set_mask: (places / ways) as u64 - 1,
            tags: vec![EMPTY; places],
            states: vec![LineState::Invalid; places],
            bytes: vec![[0; CPU_LINE_BYTES as usize]; places],
            order: EvictionOrder::new(spec.replacement, spec.replacement_seed, places / ways, ways),
            found: (0..places as u32).step_by(ways).collect(),
            changes: 0,
        }
    }

    #[inline]
    fn set(&self, line: u64) -> usize {
        ((line / CPU_LINE_BYTES) & self.set_mask) as usize
    }

    #[inline]
    fn first_place(&self, line: u64) -> usize {
        self.set(line) * self.ways
    }

    /// The place of a line.
    #[inline]
    pub(super) fn find(&self, line: u64) -> Option<usize> {
        let found = self.found[self.set(line)] as usize;
        if self.tags[found] == line { Some(found) } else { self.search(line) }
    }

    fn search(&self, line: u64) -> Option<usize> {
        let first = self.first_place(line);
        self.tags[first..first + self.ways].iter().position(|&tag| tag == line).map(|way| first + way)
    }

    /// The place of a line, which is used.
    #[inline]
    pub(super) fn look_up(&mut self, line: u64) -> Option<usize> {
        let place = self.find(line)?;
        let set = self.set(line);
        self.found[set] = place as u32;
        self.order.hit(place);
        Some(place)
    }

    /// The place of a line, which is used, if the core may do that much with it.
    #[inline]
    pub(super) fn look_up_in(&mut self, line: u64, least: LineState) -> Option<usize> {
        self.look_up(line).filter(|&place| self.states[place] >= least)
    }

    /// What the core may do with a line.
    #[inline]
    pub(super) fn state(&self, line: u64) -> LineState {
        self.find(line).map_or(LineState::Invalid, |place| self.states[place])
    }

    /// Changes what the core may do with the line in a place.
    pub(super) fn set_state(&mut self, place: usize, state: LineState) {
        self.states[place] = state;
    }

    /// `width` bytes of the line in a place, from an offset on, little-endian.
    #[inline]
    pub(super) fn read(&self, place: usize, offset: usize, width: usize) -> u64 {
        let line = &self.bytes[place];
        let mut word = [0; 8];
        match (width, line.get(offset..offset + 8)) {
            // One load of the host, and a mask.
            (_, Some(bytes)) => {
                word.copy_from_slice(bytes);
                u64::from_le_bytes(word) & ones(width)
            }
            (_, None) => {
                word[..width].copy_from_slice(&line[offset..offset + width]);
                u64::from_le_bytes(word)
            }
        }
    }

    /// Writes `width` bytes into the line in a place, which is modified now. True if a byte changed.
    #[inline]
    pub(super) fn write(&mut self, place: usize, offset: usize, width: usize, value: u64) -> bool {
        self.states[place] = LineState::Modified;
        let changes = self.read(place, offset, width) != value & ones(width);
        self.changes += u64::from(changes);
        let line = &mut self.bytes[place];
        // As for reads: one load and one store of the host where the line has eight bytes from there on.
        match line.get_mut(offset..offset + 8) {
            Some(bytes) => {
                let mut word = [0; 8];
                word.copy_from_slice(bytes);
                let word = u64::from_le_bytes(word) & !ones(width) | value & ones(width);
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            None => line[offset..offset + width].copy_from_slice(&value.to_le_bytes()[..width]),
        }
        changes
    }

    /// How often a write has changed a value here.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// The bytes of the line in a place.
    pub(super) fn line(&self, place: usize) -> &LineBytes {
        &self.bytes[place]
    }

    /// The place that a line has, or is to take: an empty one, else that of the line which leaves first.
    pub(super) fn place_for(&self, line: u64) -> usize {
        let first = self.first_place(line);
        self.find(line).or_else(|| self.order.first(first..first + self.ways)).unwrap_or(first)
    }

    /// The places that a line may take which is not there, in the order in which their lines leave.
    pub(super) fn places_for(&self, line: u64) -> SmallVec<[usize; 8]> {
        let first = self.first_place(line);
        let mut places: SmallVec<[usize; 8]> = (first..first + self.ways).collect();
        self.order.sort(&mut places);
        places
    }

    /// Ways of a set.
    pub(super) fn ways(&self) -> usize {
        self.ways
    }

    /// The line in a place, and its state; none where the place is empty.
    pub(super) fn occupant(&self, place: usize) -> Option<(u64, LineState)> {
        (self.tags[place] != EMPTY).then(|| (self.tags[place], self.states[place]))
    }

    /// Puts a line into a place.
    pub(super) fn install(&mut self, place: usize, line: u64, state: LineState, bytes: &[u8]) {
        let old = std::mem::replace(&mut self.tags[place], line);
        self.states[place] = state;
        self.bytes[place].copy_from_slice(&bytes[..CPU_LINE_BYTES as usize]);
        // A line that was there, for fewer rights, is used and does not come.
        if old == line { self.order.hit(place) } else { self.order.insert(place) }
    }

    /// Puts a line into its place before the simulation: the one that left for it, and its state.
    pub(super) fn warm(&mut self, line: u64, bytes: &LineBytes, changed: bool) -> Option<(u64, LineState)> {
        let place = self.place_for(line);
        let left = self.occupant(place).filter(|&(old, _)| old != line);
        self.install(place, line, if changed { LineState::Modified } else { LineState::Exclusive }, bytes);
        left
    }

    /// Empties a place; it is taken first.
    pub(super) fn remove(&mut self, place: usize) {
        self.tags[place] = EMPTY;
        self.states[place] = LineState::Invalid;
        self.order.remove(place);
    }

    /// The lines that their homes lack, in the order of places.
    pub(super) fn modified(&self) -> impl Iterator<Item = (u64, &LineBytes)> {
        let places = (0..self.tags.len()).filter(|&place| self.states[place] == LineState::Modified);
        places.map(|place| (self.tags[place], &self.bytes[place]))
    }
}

/// The low `width` bytes.
#[inline]
pub(super) fn ones(width: usize) -> u64 {
    if width >= 8 { u64::MAX } else { (1 << (8 * width)) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replacement::Replacement;

    fn cache() -> L1d {
        // 4 lines: 2 sets of 2 ways would need 256 B; the smallest is 1 KiB, 16 lines.
        L1d::new(&L1dSpec { kb: 1, ways: 2, replacement: Replacement::Lru, replacement_seed: 0, hit_cycles: 4 })
    }

    #[test]
    fn the_least_recently_used_line_of_a_set_is_replaced() {
        let mut l1 = cache();
        let set = |n: u64| n * 8 * CPU_LINE_BYTES;
        for line in [set(1), set(2)] {
            let place = l1.place_for(line);
            assert_eq!(l1.occupant(place), None);
            l1.install(place, line, LineState::Shared, &[7; 64]);
        }
        l1.look_up(set(1));
        let place = l1.place_for(set(3));
        assert_eq!(l1.occupant(place), Some((set(2), LineState::Shared)));
        l1.remove(place);
        assert_eq!((l1.state(set(2)), l1.state(set(1))), (LineState::Invalid, LineState::Shared));
    }

    #[test]
    fn bytes_are_read_and_written_at_any_offset() {
        let mut l1 = cache();
        l1.install(0, 0, LineState::Exclusive, &std::array::from_fn::<u8, 64, _>(|i| i as u8));
        assert_eq!(l1.read(0, 62, 2), 0x3f3e);
        assert_eq!(l1.read(0, 3, 1), 3);
        l1.write(0, 60, 4, 0x0403_0201);
        assert_eq!((l1.read(0, 59, 4), l1.state(0)), (0x0302_013b, LineState::Modified));
    }
}
