//! What caches and branch predictor would hold, as the functional driver goes on: of each line when it was
//! used last and whether it was changed since it was written back, and the last branches.
//!
//! A table by line, in place of caches: what a use costs does not depend on the machine. Not in it: what
//! speculation fetches, and lines that the OS reads for a call.

use durawarp_machine::coherence::CPU_LINE_BYTES;
use durawarp_riscv::functional::Observer;
use durawarp_riscv::instruction::{Class, Inst, Op};
use durawarp_riscv::memory::{PM_START, Windows};
use durawarp_riscv::semantics;

/// Branches that are kept. Chosen: several times the counters of a predictor.
const BRANCHES: usize = 1 << 16;

/// The uses of a program's lines and its last branches.
#[derive(Debug)]
pub(super) struct LastUses {
    /// By line of the main window, and of the persistent one: the number of the last use, and in the lowest
    /// bit whether memory may lack its bytes. 0 for a line that was never used, or is in no cache.
    uses: [Vec<u64>; 2],
    /// Uses so far.
    number: u64,
    /// A ring.
    branches: Vec<(u64, bool)>,
    oldest: usize,
    /// The branch before, and where it goes on if it is not taken.
    open: Option<(u64, u64)>,
}

impl LastUses {
    /// Of a program with this memory.
    pub(super) fn new(windows: Windows) -> LastUses {
        let lines = |bytes: u64| vec![0; bytes.div_ceil(CPU_LINE_BYTES) as usize];
        LastUses {
            uses: [lines(windows.memory_bytes), lines(windows.pm_bytes)],
            number: 0,
            branches: Vec::new(),
            oldest: 0,
            open: None,
        }
    }

    /// What is known of the line of an address; none outside memory.
    #[inline]
    fn line(&mut self, address: u64) -> Option<&mut u64> {
        let [main, persistent] = &mut self.uses;
        match address.checked_sub(PM_START) {
            None => main.get_mut((address / CPU_LINE_BYTES) as usize),
            Some(offset) => persistent.get_mut((offset / CPU_LINE_BYTES) as usize),
        }
    }

    #[inline]
    fn use_lines(&mut self, address: u64, bytes: u64, changes: bool) {
        let mut line = address & !(CPU_LINE_BYTES - 1);
        while line < address.saturating_add(bytes) {
            self.number += 1;
            let number = self.number << 1;
            if let Some(last) = self.line(line) {
                *last = number | (*last & 1) | u64::from(changes);
            }
            line += CPU_LINE_BYTES;
        }
    }

    /// Virtual addresses of the `most` lines that were used last, the oldest first, and which memory may
    /// lack.
    pub(super) fn lines(&self, most: usize) -> Vec<(u64, bool)> {
        let of = |(start, uses): (u64, &'_ [u64])| -> Vec<(u64, u64)> {
            let lines = (start..).step_by(CPU_LINE_BYTES as usize).zip(uses);
            lines.filter(|&(_, &last)| last != 0).map(|(line, &last)| (last, line)).collect()
        };
        let [main, persistent] = &self.uses;
        let mut lines = of((0, main));
        lines.extend(of((PM_START, persistent)));
        if lines.len() > most {
            let first = lines.len() - most;
            lines.select_nth_unstable(first);
            lines.drain(..first);
        }
        lines.sort_unstable();
        lines.into_iter().map(|(last, line)| (line, last & 1 == 1)).collect()
    }

    /// The last branches, the oldest first.
    pub(super) fn branches(&self) -> Vec<(u64, bool)> {
        let (newer, older) = self.branches.split_at(self.oldest);
        [older, newer].concat()
    }
}

impl Observer for LastUses {
    #[inline]
    fn executes(&mut self, _hart: u32, pc: u64, inst: &Inst, base: u64) {
        if let Some((branch, behind)) = self.open {
            self.open = None;
            let seen = (branch, pc != behind);
            if self.branches.len() < BRANCHES {
                self.branches.push(seen);
            } else {
                self.branches[self.oldest] = seen;
                self.oldest = (self.oldest + 1) % BRANCHES;
            }
        }
        match inst.class() {
            Class::Branch => self.open = Some((pc, pc.wrapping_add(u64::from(inst.length)))),
            Class::Load | Class::LoadReserved | Class::Amo => {
                self.use_lines(semantics::address(inst, base), inst.width().into(), false);
            }
            Class::CacheLine if inst.op == Op::CboFlush => {
                // It leaves every cache.
                if let Some(last) = self.line(base) {
                    *last = 0;
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn store(&mut self, _hart: u32, address: u64, bytes: &[u8]) {
        self.use_lines(address, bytes.len() as u64, true);
    }

    #[inline]
    fn clean(&mut self, _hart: u32, line: u64) {
        if let Some(last) = self.line(line) {
            *last &= !1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_riscv::instruction::X0;

    fn uses() -> LastUses {
        LastUses::new(Windows { memory_bytes: 1 << 16, pm_bytes: 1 << 12 })
    }

    fn load(uses: &mut LastUses, address: u64) {
        uses.executes(0, 0x1_0000, &Inst { rs1: 5, ..Inst::new(Op::Ld) }, address);
    }

    #[test]
    fn lines_come_in_the_order_of_their_last_uses() {
        let mut uses = uses();
        [0x1000, 0x2000, PM_START + 64, 0x1008].into_iter().for_each(|address| load(&mut uses, address));
        assert_eq!(uses.lines(9), [(0x2000, false), (PM_START + 64, false), (0x1000, false)]);
        assert_eq!(uses.lines(2), [(PM_START + 64, false), (0x1000, false)], "the newest");
    }

    #[test]
    fn a_line_is_changed_from_a_store_to_its_writing_back_and_gone_when_it_is_flushed() {
        let mut uses = uses();
        // Eight bytes of two lines.
        uses.store(0, 0x103c, &[0; 8]);
        load(&mut uses, 0x1000);
        assert_eq!(uses.lines(9), [(0x1040, true), (0x1000, true)]);
        uses.clean(0, 0x1000);
        assert_eq!(uses.lines(9), [(0x1040, true), (0x1000, false)]);
        uses.executes(0, 0x1_0000, &Inst { rs1: 5, ..Inst::new(Op::CboFlush) }, 0x1040);
        uses.clean(0, 0x1040);
        assert_eq!(uses.lines(9), [(0x1000, false)]);
    }

    #[test]
    fn a_branch_is_kept_with_its_outcome() {
        let mut uses = uses();
        let branch = Inst { rs1: X0, imm: -8, ..Inst::new(Op::Bne) };
        let other = Inst::new(Op::Addi);
        for (pc, inst) in [(0x100, &branch), (0x104, &other), (0x108, &branch), (0x100, &branch), (0xf8, &other)] {
            uses.executes(0, pc, inst, 0);
        }
        assert_eq!(uses.branches(), [(0x100, false), (0x108, true), (0x100, true)]);
    }
}
