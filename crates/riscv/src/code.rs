//! The code of a program, decoded once: one entry for every two bytes of its executable segments.
//!
//! What is executed is what the file has. A store to code is a fault (as it is where pages are protected), so
//! that the decoded form cannot grow stale; programs that write code as they run are not supported.

use super::decode::{decode, length};
use super::instruction::Inst;

/// A decoded segment.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CodeSegment {
    start: u64,
    /// Address after its last byte.
    end: u64,
    /// The instruction that begins at `start` + 2 i, wherever that is: every jump finds one.
    instructions: Vec<Inst>,
}

impl CodeSegment {
    /// The instruction at an address, if that is even and in the segment.
    #[inline]
    fn at(&self, pc: u64) -> Option<&Inst> {
        // An odd offset, rotated, is past every end.
        self.instructions.get(pc.wrapping_sub(self.start).rotate_right(1) as usize)
    }
}

/// Decoded code, by address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodeTable {
    regions: Vec<CodeSegment>,
    /// Address after all of it.
    end: u64,
}

impl CodeTable {
    /// Decodes executable bytes and where they begin, an even address each.
    pub fn new<'a>(segments: impl IntoIterator<Item = (u64, &'a [u8])>) -> CodeTable {
        let regions: Vec<CodeSegment> = segments.into_iter().map(|(start, bytes)| region(start, bytes)).collect();
        let end = regions.iter().map(|region| region.end).max().unwrap_or(0);
        CodeTable { regions, end }
    }

    /// The instruction at an address; `None` where no code is, and at odd addresses.
    #[inline]
    pub fn at(&self, pc: u64) -> Option<&Inst> {
        // Most programs have one segment.
        let (first, others) = self.regions.split_first()?;
        first.at(pc).or_else(|| others.iter().find_map(|region| region.at(pc)))
    }

    /// Whether any of `bytes` bytes from an address on is code.
    #[inline]
    pub fn overlaps(&self, address: u64, bytes: u64) -> bool {
        // Data usually lies above code.
        address < self.end
            && self
                .regions
                .iter()
                .any(|region| address < region.end && region.start - address.min(region.start) < bytes)
    }
}

fn region(start: u64, bytes: &[u8]) -> CodeSegment {
    let halves: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    let instruction = |i: usize| {
        let low = u32::from(halves[i]);
        match halves.get(i + 1) {
            _ if length(halves[i]) == 2 => decode(low),
            Some(&high) => decode(low | u32::from(high) << 16),
            // The second half of its word is missing.
            None => Inst::illegal(low, 2),
        }
    };
    CodeSegment {
        start,
        end: start + 2 * halves.len() as u64,
        instructions: (0..halves.len()).map(instruction).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::instruction::Op;
    use super::*;

    /// `c.nop`, `addi a0, a0, 1`, and the first half of another `addi`.
    const BYTES: [u8; 8] = [0x01, 0x00, 0x13, 0x05, 0x15, 0x00, 0x13, 0x05];

    #[test]
    fn every_even_address_has_an_instruction() {
        let code = CodeTable::new([(0x1000, &BYTES[..])]);
        let at = |pc| code.at(pc).map(|inst| (inst.op, inst.length));
        assert_eq!(at(0x1000), Some((Op::Addi, 2)));
        assert_eq!(at(0x1002), Some((Op::Addi, 4)));
        // The second half of the word before, taken as a compressed word: `c.addi a0, ...` or nothing, never
        // a panic.
        assert!(at(0x1004).is_some());
        assert_eq!(at(0x1006), Some((Op::Illegal, 2)));
        assert_eq!([at(0x0ffe), at(0x1001), at(0x1008), at(u64::MAX)], [None; 4]);
    }

    #[test]
    fn an_access_overlaps_code_by_a_byte_or_does_not() {
        let code = CodeTable::new([(0x1000, &BYTES[..]), (0x3000, &BYTES[..])]);
        for (address, bytes, overlaps) in [
            (0xff8, 8, false),
            (0xff9, 8, true),
            (0x1007, 1, true),
            (0x1008, 8, false),
            (0x2ffc, 8, true),
            (0x3008, 8, false),
        ] {
            assert_eq!(code.overlaps(address, bytes), overlaps, "{bytes} bytes at {address:#x}");
        }
    }
}
