//! A bulk copy under way, and its parts: one a line of global memory.
//!
//! Invariant: parts leave in the order of addresses, and together they are the copy.

use durawarp_checkpoint::value;
use durawarp_kernel::fault::{FaultKind, ProgramFault};
use durawarp_kernel::ir::Bulk;
use durawarp_kernel::tensor_map::{MAP_BYTES, TileRun};
use durawarp_kernel::traced::TracedCopy;
use durawarp_kernel::warp::{BulkOperands, SharedPiece};
use smallvec::SmallVec;

use super::copies::Ticket;
use super::launches::LaunchTable;
use super::slots::{Fault, WarpSlot};
use crate::remote::ClusterCta;

/// A bulk copy under way.
#[derive(Debug)]
pub(super) struct BulkCopy {
    pub(super) warp: u8,
    pub(super) lane: u8,
    /// Its instruction.
    pub(super) pc: u32,
    pub(super) bulk: Bulk,
    pub(super) operands: BulkOperands,
    /// Bytes whose lines have left.
    pub(super) sent: u32,
    /// Requests that are not answered.
    pub(super) left: u32,
    /// Of a store or a reduction: reads of shared memory, and the whole.
    pub(super) tickets: Option<[Ticket; 2]>,
    /// Of a load: it goes to shared memory of the own CTA.
    pub(super) home: bool,
    /// It goes to shared memory of these CTAs, too.
    pub(super) peers: SmallVec<[ClusterCta; 2]>,
    /// Other CTAs at whose barriers its bytes complete, and how often they do so at home.
    pub(super) barriers: SmallVec<[ClusterCta; 2]>,
    pub(super) home_barriers: u8,
    /// Parts on their way to these, or back.
    pub(super) apart: u32,
    /// Its bytes are complete at home; of one that goes to others, their parts may be under way.
    pub(super) landed: bool,
    /// The tensor's map that is read first, as far as it has come.
    pub(super) map: Option<Box<MapRead>>,
    /// Where it lies in global memory, of a copy of a trace, which names no place in shared memory.
    pub(super) traced: Option<Box<TracedCopy>>,
}

value!(record BulkCopy { warp, lane, pc, bulk, operands, sent, left, tickets, home, peers, barriers, home_barriers,
    apart, landed, map, traced });

impl BulkCopy {
    /// The part from its byte `at` on.
    #[inline]
    pub(super) fn part(&self, at: u32, line_bytes: u32) -> CopyPart {
        match &self.traced {
            None => CopyPart::of(&self.operands, at, line_bytes),
            Some(traced) => {
                let (global, bytes) = traced.run(at);
                CopyPart::of_run(TileRun { global, bytes }, at, line_bytes)
            }
        }
    }

    /// A copy of which nothing has left: the warp slot, lane and instruction that issue it, whether it goes
    /// to shared memory at home and to which other CTAs, and at which barriers it completes there.
    pub(super) fn new(
        (warp, lane, pc): (u8, u8, u32),
        (bulk, operands): (Bulk, BulkOperands),
        tickets: Option<[Ticket; 2]>,
        (home, peers): (bool, SmallVec<[ClusterCta; 2]>),
        (home_barriers, barriers): (u8, SmallVec<[ClusterCta; 2]>),
        traced: Option<&TracedCopy>,
    ) -> Self {
        BulkCopy {
            warp,
            lane,
            pc,
            bulk,
            operands,
            sent: 0,
            left: 0,
            tickets,
            home,
            peers,
            barriers,
            home_barriers,
            apart: 0,
            landed: false,
            map: operands.unread.map(|_| MapRead::new()),
            traced: traced.cloned().map(Box::new),
        }
    }

    /// All of its map has come: what it copies is known.
    ///
    /// # Errors
    /// What is wrong with the map, or with the copy.
    #[cold]
    pub(super) fn know(&mut self, slots: &[WarpSlot], launches: &LaunchTable) -> Result<(), Fault> {
        let Some(map) = &self.map else { unreachable!("a map came that was not read") };
        let launch = launches.of(&slots[usize::from(self.warp)]);
        let known = self.operands.with_map(self.bulk, &map.bytes, launch);
        let (bulk, operands) = known.map_err(|kind| self.fault(kind, slots, launches))?;
        (self.bulk, self.operands, self.map) = (bulk, operands, None);
        Ok(())
    }

    /// A fault of its instruction.
    #[cold]
    pub(super) fn fault(&self, kind: FaultKind, slots: &[WarpSlot], launches: &LaunchTable) -> Fault {
        let slot = &slots[usize::from(self.warp)];
        Box::new(ProgramFault::new(kind, launches.of(slot), &slot.warp, self.pc, u32::from(self.lane)))
    }

    /// Where `bytes` bytes from its byte `at` on lie in shared memory, where it says.
    #[inline]
    pub(super) fn pieces(&self, at: u32, bytes: u32) -> impl Iterator<Item = SharedPiece> + use<> {
        let known = if self.traced.is_some() { 0 } else { bytes };
        self.operands.pieces(at, known)
    }
}

/// A tensor's map in global memory on its way to the engine.
#[derive(Debug)]
pub(super) struct MapRead {
    pub(super) bytes: [u8; MAP_BYTES],
    /// Bytes whose lines have left, and bytes that have come.
    pub(super) sent: u32,
    pub(super) came: u32,
}

value!(record MapRead { bytes, sent, came });

impl MapRead {
    /// Nothing has left.
    pub(super) fn new() -> Box<Self> {
        Box::new(MapRead { bytes: [0; MAP_BYTES], sent: 0, came: 0 })
    }

    /// The part of a map at this address from its byte `at` on that lies in one line.
    pub(super) fn part(address: u64, at: u32, line_bytes: u32) -> LinePart {
        let from = address + u64::from(at);
        let offset = (from % u64::from(line_bytes)) as u32;
        let bytes = (line_bytes - offset).min(MAP_BYTES as u32 - at);
        LinePart { line: from - u64::from(offset), offset, at, bytes }
    }
}

/// What a copy does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyPart {
    Line(LinePart),
    /// So many bytes of a tile are of elements that its tensor has not.
    Absent(u32),
}

/// The part of a copy in one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LinePart {
    /// The line's first address.
    pub(super) line: u64,
    /// The first byte in the line.
    pub(super) offset: u32,
    /// Bytes of the copy before it.
    pub(super) at: u32,
    pub(super) bytes: u32,
}

impl CopyPart {
    /// The part of a copy from its byte `at` on.
    pub(super) fn of(operands: &BulkOperands, at: u32, line_bytes: u32) -> CopyPart {
        Self::of_run(operands.run(at, line_bytes), at, line_bytes)
    }

    /// The part at the beginning of a run, which begins with the copy's byte `at`.
    fn of_run(run: TileRun, at: u32, line_bytes: u32) -> CopyPart {
        let Some(from) = run.global else { return CopyPart::Absent(run.bytes) };
        let offset = (from % u64::from(line_bytes)) as u32;
        let bytes = (line_bytes - offset).min(run.bytes);
        CopyPart::Line(LinePart { line: from - u64::from(offset), offset, at, bytes })
    }
}

impl LinePart {
    /// Its bytes in the line.
    pub(super) fn mask(&self) -> u128 {
        u128::MAX >> (128 - self.bytes) << self.offset
    }
}

/// Puts a value into a list with free places.
pub(super) fn insert<T>(list: &mut Vec<T>, free: &mut Vec<u16>, value: T) -> u16 {
    match free.pop() {
        Some(place) => {
            list[usize::from(place)] = value;
            place
        }
        None => {
            // A tag has 16 bits for a copy's number and 1.
            assert!(list.len() < usize::from(u16::MAX), "{} bulk copies of an SM under way", list.len());
            list.push(value);
            (list.len() - 1) as u16
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_kernel::tensor_map::{Fill, Swizzle, TensorElem, TensorMap, Tile, TilePlace};
    use durawarp_kernel::warp::MovedBytes;

    /// Of a line its address, the first byte in it, the byte of the copy, bytes, bits of the mask; bytes that
    /// are not there.
    type Seen = Result<(u64, u32, u32, u32, u32), u32>;

    fn operands(global: u64, shared: u64, bytes: u32, tile: Option<Tile>) -> BulkOperands {
        let moved = MovedBytes::All;
        BulkOperands { global, shared, bytes, barrier: 0, barrier_of_pair: None, moved, ranks: 1, tile, unread: None }
    }

    /// All parts.
    fn parts(operands: &BulkOperands) -> Vec<Seen> {
        let (mut parts, mut at) = (Vec::new(), 0);
        while at < operands.bytes {
            let part = CopyPart::of(operands, at, 128);
            parts.push(match part {
                CopyPart::Line(part) => Ok((part.line, part.offset, part.at, part.bytes, part.mask().count_ones())),
                CopyPart::Absent(bytes) => Err(bytes),
            });
            at += match part {
                CopyPart::Line(LinePart { bytes, .. }) | CopyPart::Absent(bytes) => bytes,
            };
        }
        parts
    }

    #[test]
    fn a_copy_is_cut_at_lines_and_the_parts_are_all_of_it() {
        let operands = operands(4096 + 112, 32, 160, None);
        let expected = [(4096, 112, 0, 16, 16), (4224, 0, 16, 128, 128), (4352, 0, 144, 16, 16)];
        assert_eq!(parts(&operands), expected.map(Ok));
    }

    #[test]
    fn of_a_copy_of_some_bytes_the_parts_are_those_and_the_stretches_between_them() {
        let some = |moved| BulkOperands { moved, ..operands(4096 + 112, 32, 48, None) };
        let within = some(MovedBytes::Within { left: 3, right: 15 });
        assert_eq!(parts(&within), [Err(3), Ok((4096, 115, 3, 13, 13)), Ok((4224, 0, 16, 17, 17)), Err(15)]);
        // Bytes 14 and 15 of each 16, and 0 and 1.
        let masked = some(MovedBytes::Masked(0xc003));
        let line = |line, offset, at| Ok((line, offset, at, 2, 2));
        let joined = |at| Ok((4224, at, at + 16, 4, 4));
        let expected = [line(4096, 112, 0), Err(12), line(4096, 126, 14), line(4224, 0, 16), Err(12)];
        assert_eq!(parts(&masked), [&expected[..], &[joined(14), Err(12), line(4224, 30, 46)]].concat());
        assert_eq!(parts(&some(MovedBytes::Masked(0))), [Err(48)]);
    }

    #[test]
    fn a_tile_is_cut_at_rows_and_lines_and_has_parts_that_are_not_there() {
        // Rows of 10 elements of 4 bytes, 64 bytes apart; boxes of 8 x 3 elements, the last row outside.
        let map = TensorMap {
            dimensions: 2,
            elem: TensorElem::U32,
            swizzle: Swizzle::None,
            fill: Fill::Zeros,
            address: 4096,
            strides: [64, 0, 0, 0],
            sizes: [10, 5, 1, 1, 1],
            box_sizes: [8, 3, 1, 1, 1],
            steps: [1; 5],
            im2col: None,
        };
        let tile = Tile { map, place: TilePlace::Box([4, 3, 0, 0, 0]) };
        let operands = operands(4096, 0, 96, Some(tile));
        let (row, next) = ((4096 + 128, 64 + 16, 0, 24, 24), (4096 + 256, 16, 32, 24, 24));
        assert_eq!(parts(&operands), [Ok(row), Err(8), Ok(next), Err(8), Err(32)]);
    }
}
