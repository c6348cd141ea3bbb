//! What memory holds before the first write, or from a step of a sampled run on: shared with whoever made it,
//! and read where it lies.
//!
//! A channel's [`Image`](super::image::Image) takes bytes over page by page, when it is first written to:
//! what a program only reads is never copied. Invariant: ranges are sorted by address and do not overlap;
//! what lies in none of them is zeros.

use std::borrow::Cow;
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

    /// A piece of a medium, if it lies in one range.
    #[inline]
    fn whole(&self, medium: Medium, offset: u64, bytes: usize) -> Option<&[u8]> {
        let ranges = &self.ranges[medium as usize];
        let (start, range) = &ranges[ranges.partition_point(|(start, _)| *start <= offset).checked_sub(1)?];
        let from = (offset - start) as usize;
        range.get(from..from + bytes)
    }

    /// Whether a range of memory is what lies here: the very bytes, or, where only their number is given,
    /// zeros that no range has.
    pub fn has(&self, start: u64, range: Result<&[u8], usize>) -> bool {
        let (medium, offset) = (Medium::of(start), offset_in_medium(start));
        match range {
            Ok(bytes) => self.whole(medium, offset, bytes.len()).is_some_and(|whole| std::ptr::eq(whole, bytes)),
            Err(bytes) => !self.is_anything(medium, offset, offset + bytes as u64),
        }
    }

    /// Whether any range has bytes between two offsets in a medium.
    fn is_anything(&self, medium: Medium, first: u64, end: u64) -> bool {
        let ranges = &self.ranges[medium as usize];
        let last = ranges.partition_point(|(start, _)| *start < end).checked_sub(1).map(|last| &ranges[last]);
        last.is_some_and(|(start, bytes)| start + bytes.len() as u64 > first)
    }

    /// Copies the bytes from an address on into `out`: zeros where no range is.
    pub fn read(&self, address: u64, out: &mut [u8]) {
        self.piece(Medium::of(address), offset_in_medium(address), out);
    }

    /// Bytes of one chunk, from an offset in the medium on.
    fn piece(&self, medium: Medium, offset: u64, out: &mut [u8]) {
        if let Some(found) = self.whole(medium, offset, out.len()) {
            out.copy_from_slice(found);
            return;
        }
        // A chunk in which a range ends or begins.
        let ranges = &self.ranges[medium as usize];
        let at = ranges.partition_point(|(start, _)| *start <= offset);
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

    /// The bytes from `at` on, chunk by chunk.
    pub fn pieces(&self, at: usize, bytes: usize) -> impl Iterator<Item = Cow<'_, [u8]>> {
        let map = self.contents.map;
        let (chunk_bytes, end) = (map.chunk_bytes() as usize, at + bytes);
        let mut next = at;
        std::iter::from_fn(move || {
            let at = next;
            next = end.min((at / chunk_bytes + 1) * chunk_bytes);
            (at < end).then(|| {
                let offset = map.offset_of(self.channel, at as u64);
                match self.contents.whole(self.medium, offset, next - at) {
                    Some(whole) => Cow::Borrowed(whole),
                    None => {
                        let mut piece = vec![0; next - at];
                        self.contents.piece(self.medium, offset, &mut piece);
                        Cow::Owned(piece)
                    }
                }
            })
        })
    }

    /// Whether all bytes from `at` on are zeros. It costs little where no range is, and where they are not.
    pub fn is_zero(&self, at: usize, bytes: usize) -> bool {
        let (first, end) = self.contents.map.offsets_of(at as u64, bytes as u64);
        !self.contents.is_anything(self.medium, first, end)
            || self.pieces(at, bytes).all(|piece| piece.iter().all(|&byte| byte == 0))
    }

    /// Whose part this is.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The bytes at `at`, of one chunk, lie where `bytes` do.
    pub fn lies_at(&self, at: usize, bytes: &[u8]) -> bool {
        let offset = self.contents.map.offset_of(self.channel, at as u64);
        self.contents.whole(self.medium, offset, bytes.len()).is_some_and(|whole| std::ptr::eq(whole, bytes))
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
