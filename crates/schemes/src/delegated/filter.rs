//! The Bloom filter of a fence entry: the lines that were stored behind the fence.
//!
//! Source: persistence parallelism, section IV-E: 320 B a core beside the buffer; we take 8 filters of 256
//! bits and 8 B of accumulated dependencies for each of 8 entries from it. Two hash functions: chosen, the
//! paper gives none. Invariant: a line that was added is found. One that was not may be found, which only
//! adds order.

use durawarp_checkpoint::value;

/// Bits of a filter.
const BITS: u64 = 256;

/// A set of lines.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Filter {
    bits: [u64; (BITS / 64) as usize],
}

value!(record Filter { bits });

fn places(line: u64) -> [usize; 2] {
    let number = line >> 6;
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [(number % BITS) as usize, (mixed >> 56) as usize]
}

impl Filter {
    /// Adds a line.
    pub(super) fn add(&mut self, line: u64) {
        for place in places(line) {
            self.bits[place / 64] |= 1 << (place % 64);
        }
    }

    /// The line was added, or looks like one that was.
    pub(super) fn may_have(&self, line: u64) -> bool {
        places(line).iter().all(|place| self.bits[place / 64] >> (place % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_added_is_found_and_most_others_are_not() {
        let mut filter = Filter::default();
        let lines: Vec<u64> = (0..16).map(|n| n * 0x1740 + 64).map(|at| at & !63).collect();
        lines.iter().for_each(|&line| filter.add(line));
        assert!(lines.iter().all(|&line| filter.may_have(line)));
        let others = (0..1000u64).map(|n| 0x100_0000 + n * 64).filter(|&line| filter.may_have(line)).count();
        assert!((1..100).contains(&others), "{others} of 1,000: 16 lines set 32 of 256 bits, (1/8)^2 is 16");
    }
}
