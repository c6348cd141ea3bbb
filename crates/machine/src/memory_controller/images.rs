//! The bytes of a channel: its share of DRAM and of NVM, by channel-local address.
//!
//! They are what reads return, not what survives: a write changes them when it arrives, also while it waits
//! for an entry of the WPQ. What a power failure leaves is in journals.

use std::sync::Arc;

use crate::address::Interleave;
use crate::contents::Contents;
use crate::image::Image;
use crate::msg::{Line, SECTOR_BYTES, sector_bytes};
use durawarp_checkpoint::state;
use durawarp_engine::StateDigest;
use durawarp_kernel::memory::{Medium, NVM_BASE};

/// Lines of a DRAM cache are named by where they lie in the channel's DRAM, from here on: no program's memory
/// does.
pub(super) const CACHED: u64 = 1 << 39;

/// Lines of an undo log have no address that programs could have.
pub(super) const LOG: u64 = 1 << 62;

/// A name is that of a line of an undo log.
pub(super) fn is_log(line: u64) -> bool {
    line & LOG != 0
}

/// A name is that of a line of the DRAM cache.
pub(super) fn is_cached(line: u64) -> bool {
    (CACHED..NVM_BASE).contains(&line)
}

/// Where a line, or one of the DRAM cache, lies in its channel's share of its medium.
#[inline]
pub(super) fn in_channel(map: &Interleave, line: u64) -> u64 {
    if is_cached(line) { line - CACHED } else { map.in_channel(line) }
}

/// The bytes of a channel.
#[derive(Debug)]
pub(super) struct ChannelImages {
    map: Interleave,
    images: [Image; 2],
}

state!(ChannelImages { parts: images; kept: map });

impl ChannelImages {
    pub(super) fn new(map: Interleave, images: [Image; 2]) -> Self {
        ChannelImages { map, images }
    }

    /// The bytes of a medium.
    pub(super) fn of(&self, medium: Medium) -> &Image {
        &self.images[medium as usize]
    }

    pub(super) fn into_inner(self) -> [Image; 2] {
        self.images
    }

    /// Both media hold other bytes from now on.
    pub(super) fn take_over(&mut self, contents: &Arc<Contents>) {
        self.images.iter_mut().for_each(|image| image.replace_all(contents));
    }

    /// Makes DRAM larger.
    pub(super) fn grow_dram(&mut self, bytes: u64) {
        self.images[Medium::Dram as usize].grow(bytes as usize);
    }

    fn start(&self, line: u64) -> usize {
        in_channel(&self.map, line) as usize
    }

    /// Fills in sectors of a line, and says which bytes these are.
    pub(super) fn read(&self, line: u64, sectors: u8, room: &mut Line) {
        let (image, start) = (self.of(Medium::of(line)), self.start(line));
        // Neighbours at once: most requests want the whole line.
        let mut left = sectors;
        while left != 0 {
            let first = left.trailing_zeros() as usize;
            let count = (left >> first).trailing_ones() as usize;
            let (from, to) = (first * SECTOR_BYTES as usize, (first + count) * SECTOR_BYTES as usize);
            image.read(start + from, &mut room.bytes[from..to]);
            left &= u8::MAX.checked_shl((first + count) as u32).unwrap_or(0);
        }
        room.mask = sector_bytes(sectors);
    }

    /// Fills in as much of a line as the medium has.
    pub(super) fn look(&self, line: u64, bytes: &mut [u8]) {
        let (image, start) = (self.of(Medium::of(line)), self.start(line));
        let there = bytes.len().min(image.len() - start);
        image.read(start, &mut bytes[..there]);
    }

    /// Writes the masked bytes of a line.
    pub(super) fn write(&mut self, line: u64, data: &Line) {
        let start = self.start(line);
        self.images[Medium::of(line) as usize].write_line(start, data);
    }

    /// A read of the line will follow: its bytes are brought near.
    pub(super) fn touch(&self, line: u64) {
        self.of(Medium::of(line)).touch(self.start(line));
    }

    pub(super) fn digest(&self, digest: &mut StateDigest) {
        self.images.iter().for_each(|image| image.digest(digest));
    }
}
