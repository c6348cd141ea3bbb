//! Reads of the register file: the Allocate stage of a scheduler, its banks, and its register file cache.
//!
//! ```text
//!   issue ──> Control ──> Allocate ──> reads, for a fixed number of cycles ──> execution
//!                │            └─ until a port is free for each operand in these cycles
//!                └─ variable latency ──> a queue
//! ```
//! Each stage has one instruction. One that waits in Allocate holds the one in Control, which holds the
//! scheduler. So the instruction that issues right after one that waits issues in time, and the next one is
//! late. A cycle's read of a bank is one bit: what has to wait is known when an instruction issues.
//!
//! Source: Huerta et al., "Dissecting and Modeling the Architecture of Modern GPU Cores" (MICRO 2025).
//! * Section 5.1.1: the stage "only exists for fixed-latency instructions"; "Variable-latency instructions
//!   (e.g., memory instructions) are delivered directly to a queue after going through the Control stage".
//! * Section 5.3: "Each bank of the register file has one read port of 1024 bits"; "all the fixed-latency
//!   instructions spend three cycles for reading source operands"; "If the instruction in the Allocate stage
//!   realizes that it cannot read all its operands in the next three cycles, it is held in this stage
//!   (stalling the pipeline upwards) and generates bubbles until it can reserve all ports needed".
//! * Section 5.3.1, of the cache: "it has one entry for each of the two register file banks in each
//!   sub-core. Each entry stores three 1024-bit values"; an operand is obtained from it "if the instruction
//!   is from the same warp, the register ID matches the one stored in the RFC, and the operand position in
//!   the instruction is the same"; "A cached value is unavailable after a read request arrives to the same
//!   bank and operand position, regardless of whether it hits in the RFC".
//!
//! Readings: a register lies in the bank of its number modulo the banks, as in listing 1. An operand takes
//! the earliest cycles that are free. A result is late by what its instruction waits. Operands of more than
//! two registers, of which the paper says nothing, are read in twice the cycles, and the cache keeps none.
//!
//! Invariants: a port reads one register a cycle; an instruction waits for its window of cycles at most; a
//! hit takes no port. Not modelled: reads of instructions of variable latency, which give way to others, and
//! what they wait; write ports; registers of PTX, whose numbers are not those of the hardware.

use durawarp_checkpoint::{state, value};
use durawarp_kernel::ir::{OPERAND_SLOTS, OperandReads};

use super::wiring::SmParameters;

/// Banks at most: the range of `sm.register_banks`.
const MOST_BANKS: usize = 4;

/// A value of the cache that is none.
const UNAVAILABLE: u32 = u32::MAX;

/// The register file of a scheduler.
#[derive(Debug, Clone, Copy)]
struct RegisterFile {
    /// Banks; 0: reads are not modelled.
    banks: usize,
    /// Cycles in which an instruction reads its operands.
    read_cycles: u32,
}

/// One scheduler's stage.
#[derive(Debug)]
struct Allocate {
    /// Cycle from which it takes another instruction: its last one has left.
    free_at: u32,
    /// Cycle from which its scheduler issues another one.
    next_from: u32,
    /// Cycles in which ports read, a bit each: the lowest is that of `first`.
    first: u32,
    reserved: [u32; MOST_BANKS],
    /// What the cache has: a warp and its register, by bank and slot of the operand.
    cached: [u32; MOST_BANKS * OPERAND_SLOTS],
}

value!(record Allocate { free_at, next_from, first, reserved, cached });

impl Default for Allocate {
    fn default() -> Self {
        let cached = [UNAVAILABLE; MOST_BANKS * OPERAND_SLOTS];
        Allocate { free_at: 0, next_from: 0, first: 0, reserved: [0; MOST_BANKS], cached }
    }
}

impl Allocate {
    /// Registers that a warp's instruction has to read of each bank. The cache has afterwards what it keeps.
    fn misses(&mut self, warp: u8, reads: &OperandReads, banks: usize) -> [u32; MOST_BANKS] {
        let mut misses = [0; MOST_BANKS];
        for (slot, operand) in reads.slots.iter().enumerate() {
            let Some(operand) = operand else { continue };
            let keeps = operand.reuse && operand.count <= 2;
            for nth in 0..operand.count {
                let register = operand.register.saturating_add(nth);
                let bank = usize::from(register) % banks;
                let cached = &mut self.cached[bank * OPERAND_SLOTS + slot];
                let value = u32::from(warp) << 8 | u32::from(register);
                misses[bank] += u32::from(*cached != value);
                *cached = if keeps { value } else { UNAVAILABLE };
            }
        }
        misses
    }

    /// Reserves these reads in `window` cycles from `from` on, or in the first later ones that have room for
    /// all of them. How many cycles later.
    fn reserve(&mut self, reads: [u32; MOST_BANKS], window: u32, from: u32) -> u32 {
        let passed = from - self.first;
        self.reserved.iter_mut().for_each(|bank| *bank = bank.checked_shr(passed).unwrap_or(0));
        let mask = (1 << window) - 1;
        let reads = reads.map(|reads| reads.min(window));
        let mut waits = 0;
        while self.reserved.iter().zip(reads).any(|(bank, reads)| (!bank & mask).count_ones() < reads) {
            self.reserved.iter_mut().for_each(|bank| *bank >>= 1);
            waits += 1;
        }
        for (bank, reads) in self.reserved.iter_mut().zip(reads) {
            // The lowest bit that is not set.
            (0..reads).for_each(|_| *bank |= *bank + 1);
        }
        self.first = from + waits;
        waits
    }
}

/// What becomes of an instruction that issues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Issued {
    /// Cycles by which its result is later.
    pub(super) late: u32,
    /// Cycle from which its scheduler issues another one.
    pub(super) next_from: u32,
}

/// The stages of all schedulers.
#[derive(Debug)]
pub(super) struct RegisterReads {
    file: RegisterFile,
    stages: Vec<Allocate>,
}

state!(RegisterReads { sized: stages; kept: file });

impl RegisterReads {
    pub(super) fn new(p: &SmParameters) -> Self {
        let file = RegisterFile { banks: p.sm.register_banks as usize, read_cycles: p.latency.read_cycles };
        RegisterReads::of(file, p.sm.schedulers)
    }

    fn of(file: RegisterFile, schedulers: u32) -> Self {
        RegisterReads { file, stages: (0..schedulers).map(|_| Allocate::default()).collect() }
    }

    /// The machine has banks of registers.
    #[inline]
    pub(super) fn is_present(&self) -> bool {
        self.file.banks > 0
    }

    /// A warp's instruction issues at `cycle`.
    pub(super) fn issue(&mut self, scheduler: usize, warp: u8, reads: &OperandReads, cycle: u32) -> Issued {
        let stage = &mut self.stages[scheduler];
        if !reads.fixed {
            // It leaves Control for a queue, whatever waits in Allocate.
            stage.next_from = cycle + 1;
            return Issued { late: 0, next_from: cycle + 1 };
        }
        let at_best = cycle + 2;
        let enters = stage.free_at.max(at_best);
        let misses = stage.misses(warp, reads, self.file.banks);
        let many = reads.slots.iter().flatten().any(|operand| operand.count > 2);
        let window = self.file.read_cycles << u32::from(many);
        let waits = stage.reserve(misses, window, enters + 1);
        stage.free_at = enters + waits + 1;
        // It is in Control until it enters: the next one issues in the cycle before.
        stage.next_from = enters - 1;
        Issued { late: enters + waits - at_best, next_from: stage.next_from }
    }

    /// Cycle before which a scheduler issues nothing.
    #[inline]
    pub(super) fn held_until(&self, scheduler: usize) -> u32 {
        self.stages[scheduler].next_from
    }

    /// A warp has exited: another one in its slot finds nothing of it.
    pub(super) fn forget(&mut self, warp: u8) {
        if self.is_present() {
            let of_warp = |value: &&mut u32| **value >> 8 == u32::from(warp);
            let values = self.stages.iter_mut().flat_map(|stage| &mut stage.cached);
            values.filter(of_warp).for_each(|value| *value = UNAVAILABLE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_kernel::ir::SourceOperand;

    const PAPER: RegisterFile = RegisterFile { banks: 2, read_cycles: 3 };

    /// An instruction of fixed latency with these source registers; one that is 0 is none, one below 0 has
    /// `.reuse`.
    fn fixed(registers: [i16; OPERAND_SLOTS]) -> OperandReads {
        let operand =
            |register: i16| SourceOperand { register: register.unsigned_abs() as u8, count: 1, reuse: register < 0 };
        let slots = registers.map(|register| (register != 0).then(|| operand(register)));
        OperandReads { fixed: true, slots }
    }

    const NOP: [i16; OPERAND_SLOTS] = [0; OPERAND_SLOTS];

    /// The cycles in which instructions of one warp issue, each as early as it may.
    fn issue_cycles(file: RegisterFile, instructions: &[[i16; OPERAND_SLOTS]]) -> Vec<u32> {
        let mut reads = RegisterReads::of(file, 1);
        let mut cycle = 0;
        instructions
            .iter()
            .map(|&registers| {
                let at = cycle;
                cycle = reads.issue(0, 3, &fixed(registers), at).next_from.max(at + 1);
                at
            })
            .collect()
    }

    /// Listing 1: cycles from the first clock to the second.
    fn listing_1(file: RegisterFile, x: i16, y: i16) -> u32 {
        issue_cycles(file, &[NOP, NOP, [10, 12, 14], [16, x, y], NOP, NOP])[5]
    }

    /// "when the two registers had an odd number (e.g., R19 and R21), we get an elapsed time of five cycles";
    /// "If we change R_X to an even number (e.g., R18) [...] six"; "seven cycles if we use an even number for
    /// both".
    #[test]
    fn two_instructions_take_the_cycles_that_were_measured() {
        assert_eq!([listing_1(PAPER, 19, 21), listing_1(PAPER, 18, 21), listing_1(PAPER, 18, 20)], [5, 6, 7]);
        assert_eq!(listing_1(PAPER, 19, 20), 6);
        // "do not stall the issue of the second CLOCK if we remove the NOP after the last FFMA".
        assert_eq!(issue_cycles(PAPER, &[NOP, NOP, [10, 12, 14], [16, 18, 20], NOP])[4], 4);
    }

    #[test]
    fn a_window_of_another_length_takes_other_cycles() {
        let of = |read_cycles| {
            let file = RegisterFile { read_cycles, ..PAPER };
            [listing_1(file, 19, 21), listing_1(file, 18, 21), listing_1(file, 18, 20)]
        };
        assert_eq!(of(4), [5, 5, 6], "a cycle more to read in is a bubble less");
    }

    /// "FMUL instructions with both source operands in the same bank create a 1-cycle bubble, whereas if the
    /// two operands are in different banks, there is no bubble. FFMA instructions with all three source
    /// operands in the same bank generate a 2-cycle bubble."
    #[test]
    fn streams_have_the_bubbles_that_were_measured() {
        for (registers, cycles) in [([2, 4, 0], 2), ([2, 5, 0], 1), ([2, 4, 6], 3), ([2, 4, 7], 2), ([3, 5, 9], 3)] {
            let issued = issue_cycles(PAPER, &[registers; 40]);
            assert_eq!(issued[39] - issued[19], 20 * cycles, "{registers:?}");
        }
    }

    #[test]
    fn what_waits_is_late_and_an_instruction_one_cycle_later_waits_one_less() {
        for (gap, late) in [(1, 2), (2, 1), (3, 0), (40, 0)] {
            let mut reads = RegisterReads::of(PAPER, 1);
            assert_eq!(reads.issue(0, 0, &fixed([10, 12, 14]), 5), Issued { late: 0, next_from: 6 });
            assert_eq!(reads.issue(0, 0, &fixed([16, 18, 20]), 5 + gap), Issued { late, next_from: 6 + gap });
        }
    }

    #[test]
    fn an_instruction_of_variable_latency_leaves_control_while_allocate_is_held() {
        let mut reads = RegisterReads::of(PAPER, 1);
        reads.issue(0, 0, &fixed([10, 12, 14]), 5);
        reads.issue(0, 0, &fixed([16, 18, 20]), 6);
        let memory = OperandReads { fixed: false, ..fixed([22, 24, 0]) };
        assert_eq!(reads.issue(0, 0, &memory, 7), Issued { late: 0, next_from: 8 });
        assert_eq!(reads.issue(0, 0, &fixed([1, 0, 0]), 8), Issued { late: 1, next_from: 10 });
        assert_eq!(reads.held_until(0), 10);
    }

    #[test]
    fn schedulers_have_ports_of_their_own() {
        let mut reads = RegisterReads::of(PAPER, 2);
        reads.issue(0, 0, &fixed([10, 12, 14]), 5);
        assert_eq!(reads.issue(1, 1, &fixed([16, 18, 20]), 6), Issued { late: 0, next_from: 7 });
    }

    #[test]
    fn a_product_of_four_registers_an_operand_reads_in_twice_the_cycles() {
        let mut reads = RegisterReads::of(PAPER, 1);
        let operand = |register, count| Some(SourceOperand { register, count, reuse: false });
        let product = OperandReads { fixed: true, slots: [operand(8, 4), operand(12, 2), operand(4, 4)] };
        assert_eq!(reads.issue(0, 0, &product, 5), Issued { late: 0, next_from: 6 });
        // Five of each bank are read in cycles 8 to 12.
        assert_eq!(reads.issue(0, 0, &fixed([1, 0, 0]), 6).late, 2, "9 to 11 are taken");
    }

    /// Which operands of the last of these instructions hit, by slot.
    fn hits(instructions: &[[i16; OPERAND_SLOTS]]) -> [bool; OPERAND_SLOTS] {
        let (mut stage, last) = (Allocate::default(), instructions.len() - 1);
        for &registers in &instructions[..last] {
            stage.misses(3, &fixed(registers), 2);
        }
        // Slot by slot: one operand touches no other's value.
        [0, 1, 2].map(|slot| {
            let alone: [i16; 3] = std::array::from_fn(|at| if at == slot { instructions[last][at] } else { 0 });
            alone[slot] != 0 && stage.misses(3, &fixed(alone), 2) == [0; MOST_BANKS]
        })
    }

    /// Listing 4, all of it.
    #[test]
    fn the_cache_hits_as_in_the_examples_that_were_measured() {
        let first = [-2, 3, 4];
        // 1: "R2 hits and becomes unavailable", "R2 misses".
        assert_eq!(hits(&[first, [2, 7, 8]]), [true, false, false]);
        assert_eq!(hits(&[first, [2, 7, 8], [2, 12, 13]]), [false; 3]);
        // 2: "R2 hits and is retained", "R2 hits".
        assert_eq!(hits(&[first, [-2, 7, 8], [2, 12, 13]]), [true, false, false]);
        // 3: "R2 misses in the second instruction since it is cached in another slot. R2 remains available in
        // the first slot since R7 uses a different bank".
        assert_eq!(hits(&[first, [7, 2, 8]]), [false; 3]);
        assert_eq!(hits(&[first, [7, 2, 8], [2, 12, 13]]), [true, false, false]);
        // 4: "R4 misses and R2 becomes unavailable", "R2 misses".
        assert_eq!(hits(&[first, [4, 7, 8]]), [false; 3]);
        assert_eq!(hits(&[first, [4, 7, 8], [2, 12, 13]]), [false; 3]);
    }

    #[test]
    fn a_hit_takes_no_port_and_is_of_its_warp_alone() {
        let of = |warp, exits| {
            let mut reads = RegisterReads::of(PAPER, 1);
            reads.issue(0, 3, &fixed([-10, 12, 14]), 5);
            if exits {
                reads.forget(3);
            }
            reads.issue(0, warp, &fixed([10, 18, 21]), 6).late
        };
        assert_eq!([of(3, false), of(4, false), of(3, true)], [0, 1, 1]);
    }

    #[test]
    fn what_reads_more_than_the_window_has_waits_for_all_of_it() {
        let narrow = RegisterFile { banks: 1, read_cycles: 2 };
        let issued = issue_cycles(narrow, &[[2, 3, 4]; 40]);
        assert_eq!(issued[39] - issued[19], 40);
    }
}
