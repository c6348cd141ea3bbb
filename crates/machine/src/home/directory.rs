//! The lines of a home slice: tags, bytes, and who has copies.
//!
//! A *place* is a way of a set (`cache`). A line at a place is whole. It has an *owner*, a core that may
//! change it without asking, or *sharers*, cores that may read it, or neither; copies may be gone, since
//! cores drop clean lines without a word. A place with a transaction is locked while a step of it is under
//! way, and no victim then.
//!
//! Invariants: a line has no owner beside sharers; a core that has a copy is the owner or a sharer; without
//! an owner the bytes here are the newest. Source: Sorin, Hill, Wood, *A Primer on Memory Consistency and
//! Cache Coherence*, section 8.2 (full map).

use std::ops::Range;

use smallvec::SmallVec;

use crate::address::Interleave;
use crate::cache::TagArray;
use crate::coherence::{CPU_LINE_BYTES, CPU_LINE_MASK, Grant, Want};
use crate::line::Line;
use durawarp_checkpoint::{state, value};
use durawarp_engine::StateDigest;
use durawarp_kernel::memory::Medium;

use super::request::{CoreSet, TransactionId};

/// Bytes of a line.
const BYTES: usize = CPU_LINE_BYTES as usize;

/// What the slice knows of the line at a place.
#[derive(Debug, Clone, Copy, Default)]
struct DirectoryEntry {
    address: u64,
    /// The core that may change it: one bit, or none.
    owner: CoreSet,
    /// Cores that may read it.
    sharers: CoreSet,
    /// Memory does not have its bytes.
    dirty: bool,
    /// Of these are some that no scheme writes.
    plain: bool,
    transaction: Option<TransactionId>,
}

value!(record DirectoryEntry { address, owner, sharers, dirty, plain, transaction });

/// Lines and their directory.
#[derive(Debug)]
pub(super) struct Directory {
    map: Interleave,
    tags: TagArray,
    lines: Vec<DirectoryEntry>,
    /// Of all places, one after the other: as zeros, so that memory of the host is taken by lines that come.
    bytes: Vec<u8>,
}

state!(Directory { parts: tags; sized: lines, bytes; kept: map });

impl Directory {
    /// No lines, with these tags.
    pub(super) fn new(map: Interleave, tags: TagArray) -> Self {
        let places = tags.places();
        Directory { map, tags, lines: vec![DirectoryEntry::default(); places], bytes: vec![0; BYTES * places] }
    }

    /// The number of a line among those of this slice, by which it finds its set; media have ranges of their
    /// own.
    fn number(&self, line: u64) -> u64 {
        let medium = if Medium::of(line) == Medium::Nvm { 1 << 50 } else { 0 };
        self.map.in_slice(line) >> CPU_LINE_BYTES.trailing_zeros() | medium
    }

    /// The place of a line, if it is there.
    #[inline]
    pub(super) fn find(&self, line: u64) -> Option<usize> {
        self.tags.find(self.number(line))
    }

    /// The line in a place is used.
    pub(super) fn touch(&mut self, place: usize) {
        self.tags.touch(place);
    }

    /// The place to take for a line that is not there: empty, else the first to leave that is not locked.
    pub(super) fn victim(&self, line: u64) -> Option<usize> {
        self.tags.victim(self.number(line))
    }

    /// The places that it may take, in the order in which their lines leave.
    pub(super) fn victims(&self, line: u64) -> SmallVec<[usize; 16]> {
        self.tags.victims(self.number(line))
    }

    /// Ways of a set.
    pub(super) fn ways(&self) -> usize {
        self.tags.ways()
    }

    /// The address of the line at a place; none where the place is empty.
    pub(super) fn line_at(&self, place: usize) -> Option<u64> {
        self.tags.line_at(place).map(|_| self.lines[place].address)
    }

    /// Puts a line without copies into a place, whose line has left.
    pub(super) fn replace(&mut self, place: usize, line: u64) {
        self.tags.replace(place, self.number(line));
        self.lines[place] = DirectoryEntry { address: line, ..DirectoryEntry::default() };
    }

    /// Puts a line and its bytes into a place before the simulation.
    pub(super) fn warm(&mut self, place: usize, line: u64, bytes: &[u8; BYTES]) {
        self.replace(place, line);
        self.bytes[of_place(place)].copy_from_slice(bytes);
    }

    /// The owner has given a line up whose bytes are here and not in memory.
    pub(super) fn take_back(&mut self, place: usize) {
        let state = &mut self.lines[place];
        (state.owner, state.dirty) = (0, true);
    }

    /// The line in a place is about to leave for another, though the place is emptied before that comes.
    pub(super) fn give_way(&mut self, place: usize) {
        self.tags.give_way(place);
    }

    /// Empties a place; it will be taken first.
    pub(super) fn remove(&mut self, place: usize) {
        self.tags.invalidate(place);
        self.tags.lock(place, false);
        self.lines[place] = DirectoryEntry::default();
    }

    /// The transaction of a place's line.
    #[inline]
    pub(super) fn transaction(&self, place: usize) -> Option<TransactionId> {
        self.lines[place].transaction
    }

    /// A transaction of the line begins (a step of it, where it has one), or its last ends.
    pub(super) fn set_transaction(&mut self, place: usize, transaction: Option<TransactionId>) {
        self.lines[place].transaction = transaction;
    }

    /// Locks or unlocks a place: a locked one keeps its line.
    pub(super) fn lock(&mut self, place: usize, locked: bool) {
        self.tags.lock(place, locked);
    }

    /// The core that owns the line, as a set.
    #[inline]
    pub(super) fn owner(&self, place: usize) -> CoreSet {
        self.lines[place].owner
    }

    /// Every core that may have a copy.
    #[inline]
    pub(super) fn holders(&self, place: usize) -> CoreSet {
        self.lines[place].owner | self.lines[place].sharers
    }

    /// These cores have no copy any more.
    pub(super) fn release(&mut self, place: usize, cores: CoreSet) {
        self.lines[place].owner &= !cores;
        self.lines[place].sharers &= !cores;
    }

    /// The owner, if there is one still, keeps a copy to read.
    pub(super) fn share(&mut self, place: usize) {
        let state = &mut self.lines[place];
        state.sharers |= std::mem::take(&mut state.owner);
    }

    /// Who has asked gets a copy. Nobody else has one that this grant excludes.
    #[inline]
    pub(super) fn grant(&mut self, place: usize, to: CoreSet, want: Want) -> Grant {
        let state = &mut self.lines[place];
        match want {
            Want::Once => Grant::Once,
            // Its owner asks again: it has given the line up, which it had not changed.
            Want::Shared if state.sharers == 0 => {
                state.owner = to;
                Grant::Exclusive
            }
            Want::Shared => {
                state.sharers |= to;
                Grant::Shared
            }
            Want::Exclusive => {
                state.owner = to;
                state.sharers = 0;
                Grant::Modified
            }
        }
    }

    /// A core's bytes, which memory lacks.
    pub(super) fn store(&mut self, place: usize, line: &Line) {
        self.bytes[of_place(place)].copy_from_slice(&line.bytes[..BYTES]);
        self.lines[place].dirty = true;
    }

    /// A whole line that memory lacks; `plain` where no scheme writes it.
    pub(super) fn store_whole(&mut self, place: usize, line: &Line, plain: bool) {
        self.store(place, line);
        self.lines[place].plain = plain;
    }

    /// Memory lacks bytes of a line that no scheme writes.
    pub(super) fn is_plain(&self, place: usize) -> bool {
        self.lines[place].plain
    }

    /// Memory's bytes.
    pub(super) fn fill(&mut self, place: usize, line: &Line) {
        self.bytes[of_place(place)].copy_from_slice(&line.bytes[..BYTES]);
    }

    /// Copies the bytes out.
    #[inline]
    pub(super) fn read(&self, place: usize, into: &mut Line) {
        into.bytes[..BYTES].copy_from_slice(&self.bytes[of_place(place)]);
        into.mask = CPU_LINE_MASK;
        into.log = false;
    }

    /// The line's bytes go to memory, if it lacks them: true when it does.
    pub(super) fn clean(&mut self, place: usize) -> bool {
        self.lines[place].plain = false;
        std::mem::take(&mut self.lines[place].dirty)
    }

    /// Every line whose bytes memory does not have yet: address, bytes.
    pub(super) fn dirty_lines(&self) -> impl Iterator<Item = (u64, &[u8])> {
        (0..self.lines.len())
            .filter(|&place| self.lines[place].dirty)
            .map(|place| (self.lines[place].address, &self.bytes[of_place(place)]))
    }

    /// Adds every place with a line to a digest.
    pub(super) fn digest(&self, digest: &mut StateDigest) {
        for place in (0..self.lines.len()).filter(|&place| self.line_at(place).is_some()) {
            let state = &self.lines[place];
            let words = [state.address, state.owner, state.sharers, u64::from(state.dirty)];
            words.into_iter().for_each(|word| digest.word(word));
            digest.bytes(&self.bytes[of_place(place)]);
        }
    }
}

/// Where a place's bytes are among those of all.
fn of_place(place: usize) -> Range<usize> {
    place * BYTES..(place + 1) * BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replacement::Replacement;

    fn directory() -> Directory {
        let mut directory = Directory::new(Interleave::new(1, 1, 256), TagArray::new(2, 2, Replacement::Lru, 0));
        directory.replace(0, 64);
        directory
    }

    #[test]
    fn the_first_to_read_owns_the_line_and_two_share_it() {
        let mut directory = directory();
        assert_eq!(directory.grant(0, 0b01, Want::Shared), Grant::Exclusive);
        assert_eq!(directory.grant(0, 0b01, Want::Shared), Grant::Exclusive, "given up silently");
        directory.share(0);
        assert_eq!(directory.grant(0, 0b01, Want::Shared), Grant::Shared, "as any sharer that asks again");
        assert_eq!(directory.grant(0, 0b10, Want::Shared), Grant::Shared);
        assert_eq!((directory.owner(0), directory.holders(0)), (0, 0b11));
        assert_eq!(directory.grant(0, 0, Want::Once), Grant::Once);
        assert_eq!(directory.grant(0, 0b10, Want::Exclusive), Grant::Modified);
        assert_eq!((directory.owner(0), directory.holders(0)), (0b10, 0b10));
        directory.release(0, 0b10);
        assert_eq!(directory.holders(0), 0);
    }

    #[test]
    fn stored_bytes_are_dirty_until_they_are_cleaned_once() {
        let mut directory = directory();
        let line = Line { bytes: [7; 128], ..Line::default() };
        directory.fill(0, &line);
        assert_eq!(directory.dirty_lines().count(), 0, "memory has them");
        directory.store(0, &line);
        assert_eq!(directory.dirty_lines().collect::<Vec<_>>(), [(64, &[7; 64][..])]);
        assert_eq!((directory.clean(0), directory.clean(0)), (true, false));
        let mut read = Line::default();
        directory.read(0, &mut read);
        assert_eq!((read.bytes[63], read.bytes[64], read.mask), (7, 0, CPU_LINE_MASK));
    }
}
