//! What one lane of a bulk copy copies, and which byte in shared memory belongs to which in global memory.
//!
//! ```text
//!   bytes of the copy    0 .................................................. bytes
//!   global memory        runs: one stretch each, or elements that are not there, or bytes that stay
//!   shared memory        pieces: one each, or chunks of 16 bytes that a swizzle moves
//! ```
//! Source: PTX ISA 9.7.9.25.5, `cp.async.bulk` with `.cp_mask` and with ignored bytes; of tiles
//! [`tensor_map`](super::super::super::tensor_map). Invariants: runs follow each other without a gap and are
//! the whole copy, and so are pieces of each part. What operands must be is in `checks`.

use super::super::super::tensor_map::{Tile, TilePlace, TileRun};
use super::super::lanes_of;
use durawarp_checkpoint::value;

/// Addresses and sizes are multiples of this.
pub(super) const ALIGN: u64 = 16;

/// What one lane copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BulkOperands {
    /// First address in global memory; of a tile, that of its tensor; of a copy between shared memories, that
    /// in the own one which it reads; of a request for a cluster, 0.
    pub global: u64,
    /// First address in shared memory, the same in every CTA that gets the bytes.
    pub shared: u64,
    pub bytes: u32,
    /// Address in shared memory of the barrier at which bytes complete, in these CTAs too.
    pub barrier: u64,
    /// Of a copy for pairs of CTAs: the last bit of the rank of that one of each pair whose barrier it is.
    pub barrier_of_pair: Option<u8>,
    /// Which of these bytes are moved.
    pub moved: MovedBytes,
    /// Ranks of the CTAs whose shared memory it is, a bit each: the own one's alone where bytes leave it.
    pub ranks: u16,
    /// Whose bytes they are, where they are not one stretch of global memory.
    pub tile: Option<Tile>,
    /// The tile's map is to be read first. Until then `global` and `bytes` are 0.
    pub unread: Option<UnreadMap>,
}

value!(record BulkOperands { global, shared, bytes, barrier, barrier_of_pair, moved, ranks, tile, unread });

/// The bytes of a copy that are moved; the others stay as they are where they would come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MovedBytes {
    All,
    /// All but some at the beginning and at the end: how many there.
    Within {
        left: u8,
        right: u8,
    },
    /// Those of each 16 whose bits are set.
    Masked(u16),
}

value!(choice MovedBytes { All, Within { left, right }, Masked(mask) });

impl MovedBytes {
    /// Bytes of a copy of `bytes` from byte `from` on that are all moved, or all are not: whether they are,
    /// and how many.
    fn run(self, from: u32, bytes: u32) -> (bool, u32) {
        match self {
            MovedBytes::All => (true, bytes - from),
            MovedBytes::Within { left, right } => {
                let (begin, end) = (u32::from(left).min(bytes), bytes.saturating_sub(right.into()));
                match from {
                    _ if from < begin => (false, begin - from),
                    _ if from < end => (true, end - from),
                    _ => (false, bytes - from),
                }
            }
            MovedBytes::Masked(0) => (false, bytes - from),
            MovedBytes::Masked(u16::MAX) => (true, bytes - from),
            MovedBytes::Masked(mask) => {
                let rotated = mask.rotate_right(from % 16);
                let (moved, same) = match rotated & 1 {
                    1 => (true, rotated.trailing_ones()),
                    _ => (false, rotated.trailing_zeros()),
                };
                (moved, same.min(bytes - from))
            }
        }
    }
}

/// A tensor's map in global memory, and where a tile of the tensor lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadMap {
    pub address: u64,
    pub place: TilePlace,
}

value!(record UnreadMap { address, place });

/// Bytes of a copy that lie one behind the other in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedPiece {
    /// How many bytes of the part that was asked for lie before them.
    pub from: usize,
    /// Where they are in shared memory.
    pub shared: usize,
    pub bytes: usize,
}

impl BulkOperands {
    /// Bytes from byte `from` of the copy on that are one stretch of global memory, or elements that are not
    /// there, or bytes that stay as they are: as many as there are, or `most` at least.
    #[inline]
    pub fn run(&self, from: u32, most: u32) -> TileRun {
        match &self.tile {
            None => {
                let (moved, bytes) = self.moved.run(from, self.bytes);
                TileRun { global: moved.then_some(self.global + u64::from(from)), bytes }
            }
            Some(tile) => tile.run(from, most),
        }
    }

    /// All of these, each with the number of its first byte in the copy.
    pub fn runs(&self) -> impl Iterator<Item = (u32, TileRun)> {
        let mut from = 0;
        std::iter::from_fn(move || {
            if from == self.bytes {
                return None;
            }
            let (at, run) = (from, self.run(from, self.bytes));
            from += run.bytes;
            Some((at, run))
        })
    }

    /// Where `bytes` bytes of the copy from byte `from` on lie in shared memory.
    #[inline]
    pub fn pieces(&self, from: u32, bytes: u32) -> impl Iterator<Item = SharedPiece> + use<> {
        let swizzle = self.tile.and_then(|tile| tile.map.swizzle.span_bytes().map(|_| tile.map.swizzle));
        let first = self.shared + u64::from(from);
        let mut at = 0;
        std::iter::from_fn(move || {
            let left = u64::from(bytes) - at;
            if left == 0 {
                return None;
            }
            let (place, length) = match swizzle {
                None => (first + at, left),
                // Units of 16 bytes stay whole.
                Some(swizzle) => (swizzle.place(first + at), left.min(ALIGN - (first + at) % ALIGN)),
            };
            let piece = SharedPiece { from: at as usize, shared: place as usize, bytes: length as usize };
            at += length;
            Some(piece)
        })
    }

    /// The ranks of the CTAs whose shared memory it writes, or reads.
    #[inline]
    pub fn ranks(&self) -> impl Iterator<Item = u32> + use<> {
        lanes_of(self.ranks.into()).map(|rank| rank as u32)
    }

    /// For each of these, the rank of the CTA at whose barrier its bytes complete.
    #[inline]
    pub fn barrier_ranks(&self) -> impl Iterator<Item = u32> + use<> {
        let parity = self.barrier_of_pair;
        self.ranks().map(move |rank| parity.map_or(rank, |parity| rank & !1 | u32::from(parity)))
    }

    /// Fills shared memory with what a load has where its tensor has no elements.
    #[cold]
    pub fn fill(&self, from: u32, bytes: u32, memory: &mut [u8]) {
        let Some(tile) = &self.tile else { return };
        // Elements are whole: a run ends where one does.
        let (filling, size) = (tile.map.filling(), tile.map.elem.bytes() as usize);
        for SharedPiece { shared, bytes, .. } in self.pieces(from, bytes) {
            memory[shared..shared + bytes]
                .chunks_mut(size)
                .for_each(|element| element.copy_from_slice(&filling[..element.len()]));
        }
    }
}
