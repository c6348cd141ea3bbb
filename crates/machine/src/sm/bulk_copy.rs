//! A bulk copy under way, and its parts: one a line of global memory.
//!
//! Invariant: parts leave in the order of addresses, and together they are the copy.

use durawarp_checkpoint::value;
use durawarp_kernel::ir::Bulk;
use durawarp_kernel::warp::BulkOperands;

use super::copies::Ticket;

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
}

value!(record BulkCopy { warp, lane, pc, bulk, operands, sent, left, tickets });

/// The part of a copy in one line.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinePart {
    /// The line's first address.
    pub(super) line: u64,
    /// The first byte in the line.
    pub(super) offset: u32,
    /// Where the part lies in shared memory.
    pub(super) shared: usize,
    pub(super) bytes: u32,
}

impl LinePart {
    /// The part of a copy from its byte `at` on.
    pub(super) fn of(operands: &BulkOperands, at: u32, line_bytes: u32) -> LinePart {
        let from = operands.global + u64::from(at);
        let offset = (from % u64::from(line_bytes)) as u32;
        let bytes = (line_bytes - offset).min(operands.bytes - at);
        LinePart { line: from - u64::from(offset), offset, shared: operands.shared as usize + at as usize, bytes }
    }

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

    #[test]
    fn a_copy_is_cut_at_lines_and_the_parts_are_all_of_it() {
        let operands = BulkOperands { global: 4096 + 112, shared: 32, bytes: 160, barrier: 0 };
        let mut parts = Vec::new();
        let mut at = 0;
        while at < operands.bytes {
            let part = LinePart::of(&operands, at, 128);
            parts.push((part.line, part.offset, part.shared, part.bytes, part.mask().count_ones()));
            at += part.bytes;
        }
        let expected = [(4096, 112, 32, 16, 16), (4224, 0, 48, 128, 128), (4352, 0, 176, 16, 16)];
        assert_eq!(parts, expected);
    }
}
