//! Which basic blocks a program executes when: a vector of instructions by block for each interval of its
//! run, projected to few dimensions.
//!
//! Intervals have one length, which doubles, two by two, when they become too many: how long the program is
//! need not be known before. Each block has a direction that follows from its address alone. Source:
//! Sherwood, Perelman, Hamerly, Calder, *Automatically Characterizing Large Scale Program Behavior*, ASPLOS
//! 2002: vectors of basic blocks weighted by their instructions, random projection to 15 dimensions.

use durawarp_riscv::elf::Executable;
use durawarp_riscv::functional::Observer;
use durawarp_riscv::instruction::{Class, Inst};

/// Dimensions of a projected vector, as in the source.
pub(super) const DIMENSIONS: usize = 15;

/// A vector of basic blocks, projected.
pub(super) type BlockVector = [f64; DIMENSIONS];

/// Instructions of the shortest interval. Chosen: many times a reorder buffer.
const SHORTEST: u64 = 10_000;

/// Intervals of a run, at most. Chosen: what is clustered in a small part of a second.
const MOST: usize = 1024;

/// An interval of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    /// The first instruction.
    pub(super) from: u64,
    pub(super) instructions: u64,
    /// Of the interval's instructions.
    pub(super) vector: BlockVector,
}

/// The profile of a run of one thread.
#[derive(Debug)]
pub(super) struct BlockProfile {
    /// Address of the first instruction of the program.
    base: u64,
    /// Instructions by the block that they are of, of the interval under way: by the last instruction of the
    /// block, in half words from the base.
    counts: Vec<u64>,
    /// Blocks with a count.
    touched: Vec<usize>,
    /// Where the interval under way begins, how long intervals are, and what is left of this one.
    from: u64,
    length: u64,
    left: u64,
    /// What was left of it when the block under way began.
    left_before: u64,
    intervals: Vec<Interval>,
}

impl BlockProfile {
    /// Of a program.
    pub(super) fn new(image: &Executable) -> BlockProfile {
        let code = || image.segments.iter().filter(|segment| segment.executable);
        let base = code().map(|segment| segment.address).min().unwrap_or(0);
        let end = code().map(|segment| segment.address + segment.bytes.len() as u64).max().unwrap_or(0);
        BlockProfile {
            base,
            counts: vec![0; ((end - base) / 2) as usize],
            touched: Vec::new(),
            from: 0,
            length: SHORTEST,
            left: SHORTEST,
            left_before: SHORTEST,
            intervals: Vec::new(),
        }
    }

    /// The block under way ends at an address, or the interval does there.
    fn end_block(&mut self, pc: u64) {
        let instructions = self.left_before - self.left;
        self.left_before = self.left;
        let block = (pc.wrapping_sub(self.base) / 2) as usize;
        if let Some(count) = self.counts.get_mut(block).filter(|_| instructions > 0) {
            if *count == 0 {
                self.touched.push(block);
            }
            *count += instructions;
        }
    }

    fn end_interval(&mut self) {
        let mut vector = [0.0; DIMENSIONS];
        for block in self.touched.drain(..) {
            let count = std::mem::take(&mut self.counts[block]) as f64;
            for (dimension, sum) in (0..).zip(&mut vector) {
                *sum += count * direction(block as u64, dimension);
            }
        }
        let instructions = self.length - self.left;
        self.intervals.push(Interval { from: self.from, instructions, vector });
        self.from += instructions;
        if self.intervals.len() == MOST {
            self.intervals = self.intervals.chunks(2).map(joined).collect();
            self.length *= 2;
        }
        (self.left, self.left_before) = (self.length, self.length);
    }

    /// The intervals of the run, which is over. A last one that is short is part of the one before.
    pub(super) fn into_intervals(mut self) -> Vec<Interval> {
        if self.left < self.length {
            self.end_interval();
        }
        let mut intervals = self.intervals;
        if let [.., before, last] = intervals[..]
            && last.instructions < self.length
        {
            intervals.truncate(intervals.len() - 2);
            intervals.push(joined(&[before, last]));
        }
        intervals
    }
}

/// Intervals that follow each other as one.
fn joined(intervals: &[Interval]) -> Interval {
    let mut whole = intervals[0];
    for interval in &intervals[1..] {
        whole.instructions += interval.instructions;
        whole.vector.iter_mut().zip(&interval.vector).for_each(|(sum, part)| *sum += part);
    }
    whole
}

/// Where a block lies along a dimension: from -1 to 1, evenly spread (SplitMix64; Steele, Lea, Flood, OOPSLA
/// 2014).
fn direction(block: u64, dimension: u64) -> f64 {
    let mut bits = (block * DIMENSIONS as u64 + dimension + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

impl Observer for BlockProfile {
    #[inline]
    fn executes(&mut self, _hart: u32, pc: u64, inst: &Inst, _base: u64) {
        self.left -= 1;
        if matches!(inst.class(), Class::Branch | Class::Jump | Class::System) || self.left == 0 {
            self.end_block(pc);
            if self.left == 0 {
                self.end_interval();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_riscv::elf::Segment;
    use durawarp_riscv::instruction::Op;

    fn profile() -> BlockProfile {
        let segments = vec![Segment { address: 0x1000, memory_bytes: 64, bytes: vec![0; 64], executable: true }];
        let (functions, objects) = (vec![], vec![]);
        BlockProfile::new(&Executable { entry: 0x1000, segments, functions, objects, headers: None, header_count: 0 })
    }

    /// Executes instructions of a run, those of a loop of `block` instructions at an address.
    fn execute(profile: &mut BlockProfile, at: u64, block: u64, executed: std::ops::Range<u64>) {
        for nth in executed {
            let inst = Inst::new(if (nth + 1) % block == 0 { Op::Bne } else { Op::Addi });
            profile.executes(0, at + 4 * (nth % block), &inst, 0);
        }
    }

    #[test]
    fn equal_stretches_have_equal_vectors_and_others_do_not() {
        let mut profile = profile();
        execute(&mut profile, 0x1000, 4, 0..2 * SHORTEST);
        execute(&mut profile, 0x1020, 5, 2 * SHORTEST..4 * SHORTEST);
        let intervals = profile.into_intervals();
        assert_eq!(
            intervals.iter().map(|of| (of.from / SHORTEST, of.instructions)).collect::<Vec<_>>(),
            [(0, SHORTEST), (1, SHORTEST), (2, SHORTEST), (3, SHORTEST)]
        );
        assert_eq!((intervals[0].vector, intervals[2].vector), (intervals[1].vector, intervals[3].vector));
        assert_ne!(intervals[1].vector, intervals[2].vector);
    }

    #[test]
    fn many_intervals_become_half_as_many_and_a_short_last_one_is_part_of_another() {
        let mut profile = profile();
        execute(&mut profile, 0x1000, 4, 0..MOST as u64 * SHORTEST + 2 * SHORTEST + 8);
        let intervals = profile.into_intervals();
        assert_eq!(intervals.len(), MOST / 2 + 1);
        assert_eq!(intervals[MOST / 2 - 1].instructions, 2 * SHORTEST);
        assert_eq!(intervals[MOST / 2].instructions, 2 * SHORTEST + 8);
        assert_eq!(intervals.iter().map(|of| of.instructions).sum::<u64>(), MOST as u64 * SHORTEST + 2 * SHORTEST + 8);
    }
}
