//! A line, or a part of it: its bytes, which of them are meant, its sectors; boxes for lines.
//!
//! Caches and memory transfer *sectors*; stores name bytes. A mask has one bit a byte, a set of sectors one
//! bit a sector. Source: `SM6_TITANX` (32 B sectors, the atom of DRAM). Invariant: a box from the pool has an
//! empty mask.

use durawarp_checkpoint::value;

pub use durawarp_persist::bytes::{copy_masked, differ_masked};

/// The largest line any cache of a machine may have, in bytes.
pub const MAX_LINE_BYTES: usize = 128;

/// Bytes of one sector: the unit of validity in caches and of transfer below the L2 (SM6, 32 B DRAM atom).
pub const SECTOR_BYTES: u32 = 32;

/// The content of a line, or of a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Bytes by offset in the line.
    pub bytes: [u8; MAX_LINE_BYTES],
    /// Which bytes are meant, one bit a byte.
    pub mask: u128,
    /// A log update writes it, or reads it to save it: schemes at the L2 are told.
    pub log: bool,
    /// Place of the launch whose warp stores or loads it, for the same; 0 where launches run one after the
    /// other.
    pub launch: u8,
}

value!(record Line { bytes, mask, log, launch });

impl Default for Line {
    fn default() -> Self {
        Line { bytes: [0; MAX_LINE_BYTES], mask: 0, log: false, launch: 0 }
    }
}

/// Boxes for lines, used again and again.
#[derive(Debug, Default)]
pub struct LinePool {
    #[allow(clippy::vec_box, reason = "boxes are what is recycled: they travel in messages")]
    free: Vec<Box<Line>>,
}

impl LinePool {
    /// A box with any content and an empty mask.
    pub fn take(&mut self) -> Box<Line> {
        let mut room = self.free.pop().unwrap_or_default();
        room.mask = 0;
        room.log = false;
        room.launch = 0;
        room
    }

    /// A box that is no longer needed.
    pub fn give(&mut self, room: Box<Line>) {
        self.free.push(room);
    }
}

/// The bytes that sectors cover in a line, as a byte mask.
#[inline]
pub fn sector_bytes(sectors: u8) -> u128 {
    const ONE: u128 = u32::MAX as u128;
    const OF: [u128; 16] = {
        let mut of = [0; 16];
        let mut sectors = 0;
        while sectors < 16 {
            let mut sector = 0;
            while sector < 4 {
                if sectors >> sector & 1 == 1 {
                    of[sectors] |= ONE << (32 * sector);
                }
                sector += 1;
            }
            sectors += 1;
        }
        of
    };
    OF[usize::from(sectors & 15)]
}

/// The sectors that a byte mask touches.
pub fn sectors_touched(mask: u128) -> u8 {
    (0..4).filter(|s| (mask >> (32 * s)) as u32 != 0).fold(0, |acc, s| acc | 1 << s)
}

/// The sectors that a byte mask covers completely.
pub fn sectors_covered(mask: u128) -> u8 {
    (0..4).filter(|s| (mask >> (32 * s)) as u32 == u32::MAX).fold(0, |acc, s| acc | 1 << s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_and_bytes_convert_both_ways() {
        assert_eq!(sector_bytes(0b0101), 0x0000_0000_ffff_ffff_0000_0000_ffff_ffff);
        assert_eq!(sectors_touched(1 << 33), 0b0010);
        assert_eq!(sectors_covered(sector_bytes(0b1010) | 1), 0b1010);
    }

    #[test]
    fn a_masked_copy_touches_only_its_bytes() {
        let from: [u8; 128] = std::array::from_fn(|i| i as u8);
        let mut to = [255; 128];
        copy_masked(&mut to, &from, sector_bytes(0b1000) | 0b110);
        for (i, &byte) in to.iter().enumerate() {
            let copied = (96..128).contains(&i) || i == 1 || i == 2;
            assert_eq!(byte, if copied { i as u8 } else { 255 }, "byte {i}");
        }
    }
}
