//! What memory holds before the first write, or from a step of a sampled run on: shared with whoever made it,
//! and read where it lies.
//!
//! A channel's [`Image`](super::image::Image) takes bytes over page by page, when it is first written to:
//! what a program only reads is never copied. Invariant: ranges are sorted by address and do not overlap;
//! what lies in none of them is zeros.

use std::sync::Arc;

use super::address::{Interleave, offset_in_medium};
use durawarp_kernel::memory::Medium;

/// Initial contents of both media.
#[derive(Debug)]
pub struct Contents {
    map: Interleave,
    /// By medium: offsets in it, bytes.
    ranges: [Vec<(u64, Arc<Vec<u8>>)>; 2],
}

impl Contents {
    /// Ranges of bytes by their first addresses, in their order.
    pub fn new(map: Interleave, ranges: impl Iterator<Item = (u64, Arc<Vec<u8>>)>) -> Contents {
        let mut contents = Contents { map, ranges: Default::default() };
        for (start, bytes) in ranges {
            contents.ranges[Medium::of(start) as usize].push((offset_in_medium(start), bytes));
        }
        contents
    }

    /// All bytes of a medium, chunk by chunk: channel, place in its share, bytes.
    pub fn chunks(&self, medium: Medium) -> impl Iterator<Item = (usize, u64, &[u8])> {
        let map = self.map;
        self.ranges[medium as usize].iter().flat_map(move |(start, bytes)| {
            let mut at = 0;
            std::iter::from_fn(move || {
                let offset = start + at as u64;
                let left = (map.chunk_bytes() - offset % map.chunk_bytes()) as usize;
                let piece = &bytes[at..bytes.len().min(at + left)];
                at += piece.len();
                let address = medium.base() + offset;
                (!piece.is_empty()).then(|| (map.channel_of(address), map.in_channel(address), piece))
            })
        })
    }

    /// Copies the bytes from an address on into `out`: zeros where no range is.
    pub fn read(&self, address: u64, out: &mut [u8]) {
        self.piece(Medium::of(address), offset_in_medium(address), out);
    }

    /// Bytes of one chunk, from an offset in the medium on.
    fn piece(&self, medium: Medium, offset: u64, out: &mut [u8]) {
        let ranges = &self.ranges[medium as usize];
        let at = ranges.partition_point(|(start, _)| *start <= offset);
        if let Some((start, bytes)) = at.checked_sub(1).map(|at| &ranges[at]) {
            let from = (offset - start) as usize;
            if let Some(found) = bytes.get(from..from + out.len()) {
                out.copy_from_slice(found);
                return;
            }
        }
        // A chunk in which a range ends or begins.
        out.fill(0);
        let end = offset + out.len() as u64;
        for (start, bytes) in ranges[at.saturating_sub(1)..].iter().take_while(|(start, _)| *start < end) {
            let (first, last) = ((*start).max(offset), (start + bytes.len() as u64).min(end));
            if first < last {
                let found = &bytes[(first - start) as usize..(last - start) as usize];
                out[(first - offset) as usize..(last - offset) as usize].copy_from_slice(found);
            }
        }
    }
}

/// The contents of one medium as a channel has them.
#[derive(Debug, Clone)]
pub struct Origin {
    contents: Arc<Contents>,
    medium: Medium,
    channel: u32,
}

impl Origin {
    /// The same part of other contents.
    pub fn of(&self, contents: Arc<Contents>) -> Origin {
        Origin { contents, ..*self }
    }

    /// Of a channel.
    pub fn new(contents: Arc<Contents>, medium: Medium, channel: u32) -> Origin {
        Origin { contents, medium, channel }
    }

    /// Copies the bytes from `at` of the channel's share on into `out`.
    pub fn read(&self, mut at: usize, mut out: &mut [u8]) {
        let map = self.contents.map;
        let chunk_bytes = map.chunk_bytes() as usize;
        while !out.is_empty() {
            let length = out.len().min(chunk_bytes - at % chunk_bytes);
            let (now, rest) = out.split_at_mut(length);
            self.contents.piece(self.medium, map.offset_of(self.channel, at as u64), now);
            (at, out) = (at + length, rest);
        }
    }

    /// The bytes at `at`, of one chunk, lie where `bytes` do.
    pub fn lies_at(&self, at: usize, bytes: &[u8]) -> bool {
        let ranges = &self.contents.ranges[self.medium as usize];
        let offset = self.contents.map.offset_of(self.channel, at as u64);
        let last = ranges.partition_point(|(start, _)| *start <= offset).checked_sub(1);
        last.is_some_and(|last| {
            let (start, found) = &ranges[last];
            let from = (offset - start) as usize;
            found.get(from..from + bytes.len()).is_some_and(|found| std::ptr::eq(found, bytes))
        })
    }

    /// Asks the computer for the bytes at `at`, some time before they are needed.
    #[inline]
    pub fn touch(&self, at: usize) {
        let ranges = &self.contents.ranges[self.medium as usize];
        let offset = self.contents.map.offset_of(self.channel, at as u64);
        let last = ranges.partition_point(|(start, _)| *start <= offset).checked_sub(1);
        if let Some((start, bytes)) = last.map(|last| &ranges[last]) {
            std::hint::black_box(bytes.get((offset - start) as usize).copied());
            std::hint::black_box(bytes.get((offset - start) as usize + 64).copied());
        }
    }
}
