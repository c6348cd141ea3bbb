//! The lines of a slice: tags, contents, which sectors are valid and which bytes are dirty.
//!
//! A *place* is a way of a set (`cache`). A sector is *valid* when the array has what memory has, or newer
//! bytes; a byte is *dirty* when memory does not have it yet. Invariants: bytes marked dirty are never
//! overwritten by a fill; a place with a fill under way is locked and keeps its line. Source: `SM6_TITANX`
//! for sectors; AGPM Table IV for the rest (16-way, XOR index, allocate-on-miss).

use crate::address::Interleave;
use crate::cache::TagArray;
use crate::contents::Contents;
use crate::msg::{
    Atomics, Line, MAX_LINE_BYTES, SECTOR_BYTES, copy_masked, differ_masked, sector_bytes, sectors_covered,
};
use durawarp_checkpoint::state;
use durawarp_engine::StateDigest;
use durawarp_kernel::memory::Medium;
use durawarp_kernel::semantics::atomic::{apply_atomic, swap_pair};

/// Tags and contents.
#[derive(Debug)]
pub(super) struct LineArray {
    map: Interleave,
    line_bytes: u32,
    tags: TagArray,
    address: Vec<u64>,
    valid: Vec<u8>,
    dirty: Vec<u128>,
    data: Vec<[u8; MAX_LINE_BYTES]>,
    /// Stores and atomics after which a byte had another value: nothing of the model reads it.
    changes: u64,
}

state!(LineArray { parts: tags; sized: address, valid, dirty, data; kept: map, line_bytes, changes });

impl LineArray {
    /// An empty array of lines with these tags.
    pub(super) fn new(map: Interleave, line_bytes: u32, tags: TagArray) -> Self {
        let places = tags.places();
        LineArray {
            map,
            line_bytes,
            tags,
            address: vec![0; places],
            valid: vec![0; places],
            dirty: vec![0; places],
            data: vec![[0; MAX_LINE_BYTES]; places],
            changes: 0,
        }
    }

    /// Number of places.
    pub(super) fn places(&self) -> usize {
        self.tags.places()
    }

    /// The number of a line among those of this slice, by which it finds its set; media have ranges of their
    /// own.
    fn number(&self, line: u64) -> u64 {
        let medium = if Medium::of(line) == Medium::Nvm { 1 << 50 } else { 0 };
        self.map.in_slice(line) >> self.line_bytes.trailing_zeros() | medium
    }

    /// The place of a line, if it is there.
    pub(super) fn find(&self, line: u64) -> Option<usize> {
        self.tags.find(self.number(line))
    }

    /// The line in a place is used.
    pub(super) fn touch(&mut self, place: usize) {
        self.tags.touch(place);
    }

    /// Locks or unlocks a place: a locked one keeps its line.
    pub(super) fn lock(&mut self, place: usize, locked: bool) {
        self.tags.lock(place, locked);
    }

    /// The place to take for a line that is not there: empty, else the first to leave that is not locked.
    pub(super) fn victim(&self, line: u64) -> Option<usize> {
        self.tags.victim(self.number(line))
    }

    /// The places that a line which is not there could take, in the order in which their lines leave.
    pub(super) fn victims(&self, line: u64) -> impl Iterator<Item = usize> {
        self.tags.victims(self.number(line)).into_iter()
    }

    /// The address of the line at a place; none where the place is empty.
    pub(super) fn line_at(&self, place: usize) -> Option<u64> {
        self.tags.line_at(place).map(|_| self.address[place])
    }

    /// The address of the line that a place has or had last.
    pub(super) fn address(&self, place: usize) -> u64 {
        self.address[place]
    }

    /// The dirty bytes of a place.
    pub(super) fn dirty(&self, place: usize) -> u128 {
        self.dirty[place]
    }

    /// The content of a place.
    pub(super) fn data(&self, place: usize) -> &[u8; MAX_LINE_BYTES] {
        &self.data[place]
    }

    /// The sectors of a place that are not valid, of those given.
    pub(super) fn missing(&self, place: usize, sectors: u8) -> u8 {
        sectors & !self.valid[place]
    }

    /// Puts a line without bytes into a place, whose line has left.
    pub(super) fn replace(&mut self, place: usize, line: u64) {
        self.tags.replace(place, self.number(line));
        self.address[place] = line;
        self.valid[place] = 0;
        self.dirty[place] = 0;
    }

    /// Reads the masked bytes.
    pub(super) fn read(&self, place: usize, into: &mut [u8; MAX_LINE_BYTES], mask: u128) {
        copy_masked(into, &self.data[place], mask);
    }

    /// A store's bytes: dirty from now on; a sector that is dirty as a whole is valid.
    pub(super) fn store(&mut self, place: usize, line: &Line) {
        self.overlay(place, line);
        self.dirty[place] |= line.mask;
        self.valid[place] |= sectors_covered(self.dirty[place]);
    }

    /// Bytes that go to memory as well: there is nothing to write back for them.
    pub(super) fn update(&mut self, place: usize, line: &Line) {
        self.overlay(place, line);
        self.dirty[place] &= !line.mask;
    }

    /// Bytes that go to memory as well, into a place whose sectors are fetched after them.
    pub(super) fn overlay(&mut self, place: usize, line: &Line) {
        let data = &mut self.data[place];
        self.changes += u64::from(differ_masked(data, &line.bytes, line.mask));
        copy_masked(data, &line.bytes, line.mask);
    }

    /// Bytes go to memory that the array does not have.
    pub(super) fn passed_by(&mut self) {
        self.changes += 1;
    }

    /// How often a store or an atomic has changed a value here.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Sectors from memory, under the dirty bytes and those that are newer than what memory had.
    pub(super) fn fill(&mut self, place: usize, sectors: u8, newer: u128, bytes: &[u8; MAX_LINE_BYTES]) {
        copy_masked(&mut self.data[place], bytes, sector_bytes(sectors) & !(self.dirty[place] | newer));
        self.valid[place] |= sectors;
    }

    /// A whole line from memory, under the dirty bytes.
    pub(super) fn fill_whole(&mut self, place: usize, bytes: &[u8; MAX_LINE_BYTES]) {
        copy_masked(&mut self.data[place], bytes, !self.dirty[place]);
        self.valid[place] = (1 << (self.line_bytes / SECTOR_BYTES)) - 1;
    }

    /// Every line takes its bytes from what memory holds now; what is dirty or valid stays so.
    pub(super) fn take_over(&mut self, contents: &Contents) {
        for place in 0..self.places() {
            if let Some(line) = self.line_at(place) {
                contents.read(line, &mut self.data[place][..self.line_bytes as usize]);
            }
        }
    }

    /// No sector is valid any more; the tag stays, of a line without bytes.
    pub(super) fn invalidate_sectors(&mut self, place: usize) {
        self.valid[place] = 0;
    }

    /// The dirty bytes of a place become clean: their line and their mask, if there are any.
    pub(super) fn clean(&mut self, place: usize) -> Option<(u64, u128)> {
        let line = self.line_at(place).filter(|_| self.dirty[place] != 0)?;
        Some((line, std::mem::take(&mut self.dirty[place])))
    }

    /// The line at a place, if it has dirty bytes.
    pub(super) fn dirty_line(&self, place: usize) -> Option<u64> {
        self.line_at(place).filter(|_| self.dirty[place] != 0)
    }

    /// Every line with bytes that memory does not have yet: address, content, dirty bytes.
    pub(super) fn dirty_lines(&self) -> impl Iterator<Item = (u64, &[u8; MAX_LINE_BYTES], u128)> {
        (0..self.places())
            .filter_map(|place| self.dirty_line(place).map(|line| (line, &self.data[place], self.dirty[place])))
    }

    /// The atomic unit: performs the lanes' operations in order, gives them old and new values; returns the
    /// bytes written.
    pub(super) fn perform_atomics(&mut self, place: usize, atomics: &mut Atomics) -> u128 {
        let size = atomics.elem.bytes() as usize;
        let mut written = 0;
        if atomics.pairs {
            return self.perform_pairs(place, atomics);
        }
        for i in 0..usize::from(atomics.count) {
            let at = usize::from(atomics.offset[i]);
            let bytes = &mut self.data[place][at..at + size];
            let mut word = [0; 8];
            word[..size].copy_from_slice(bytes);
            let old = u64::from_le_bytes(word);
            let new = apply_atomic(atomics.op, atomics.elem, old, atomics.a[i], atomics.b[i]);
            self.changes += u64::from(old != new);
            bytes.copy_from_slice(&new.to_le_bytes()[..size]);
            written |= ((1u128 << size) - 1) << at;
            (atomics.a[i], atomics.b[i]) = (old, new);
        }
        self.dirty[place] |= written;
        written
    }

    /// The same of atomics of 16 bytes: both halves of a lane's at once.
    fn perform_pairs(&mut self, place: usize, atomics: &mut Atomics) -> u128 {
        let mut written = 0;
        for low in (0..usize::from(atomics.count)).step_by(2) {
            let (high, at) = (low + 1, usize::from(atomics.offset[low]));
            let bytes = &mut self.data[place][at..at + 16];
            let operands = [low, high].map(|i| (atomics.a[i], atomics.b[i]));
            let [old, new] = swap_pair(atomics.op, bytes, operands);
            self.changes += u64::from(old != new);
            written |= 0xffff_u128 << at;
            for (half, i) in [low, high].into_iter().enumerate() {
                (atomics.a[i], atomics.b[i]) = (old[half], new[half]);
            }
        }
        self.dirty[place] |= written;
        written
    }

    /// Adds every place with bytes to a digest.
    pub(super) fn digest(&self, digest: &mut StateDigest) {
        for place in (0..self.valid.len()).filter(|&place| self.valid[place] != 0 || self.dirty[place] != 0) {
            let dirty = self.dirty[place];
            let words = [self.address[place], u64::from(self.valid[place]), dirty as u64, (dirty >> 64) as u64];
            words.into_iter().for_each(|word| digest.word(word));
            digest.bytes(&self.data[place]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replacement::Replacement;

    fn line(byte: u8, mask: u128) -> Line {
        Line { bytes: [byte; MAX_LINE_BYTES], mask, log: false, launch: 0 }
    }

    #[test]
    fn a_fill_goes_under_the_dirty_bytes_and_a_clean_takes_them_once() {
        let mut array = LineArray::new(Interleave::new(1, 1, 256), 128, TagArray::new(2, 2, Replacement::Lru, 0));
        array.replace(0, 256);
        array.store(0, &line(7, 0b11));
        assert_eq!(array.missing(0, 0b0011), 0b0011, "two bytes make no sector valid");
        array.fill(0, 0b0001, 0, &[9; MAX_LINE_BYTES]);
        assert_eq!((&array.data(0)[..3], array.missing(0, 0b0011)), (&[7, 7, 9][..], 0b0010));
        assert_eq!((array.clean(0), array.clean(0)), (Some((256, 0b11)), None));
    }

    #[test]
    fn a_sector_that_is_dirty_as_a_whole_is_valid() {
        let mut array = LineArray::new(Interleave::new(1, 1, 256), 128, TagArray::new(2, 2, Replacement::Lru, 0));
        array.replace(1, 128);
        array.store(1, &line(1, u128::from(u32::MAX) ^ 1));
        assert_eq!(array.missing(1, 0b0001), 0b0001, "one byte is not written");
        array.store(1, &line(1, 1));
        assert_eq!(array.missing(1, 0b0001), 0);
        array.update(1, &line(3, 0b1));
        assert_eq!(array.dirty(1), u128::from(u32::MAX) ^ 1, "memory gets this byte otherwise");
    }
}
