//! Time that a hart spends in turns of a loop that change nothing: it waits for a word of another one.
//!
//! A turn goes from the retirement of an instruction to that of the same instruction, to which the program
//! has gone back. It changes nothing if the hart has stored nothing meanwhile, no atomic of it has changed a
//! value, and all registers are as they were. A loop with a counter is none of these. The model reads none
//! of it.

use durawarp_riscv::instruction::REGISTERS;

use super::window::{Retires, Window};

/// Heads of loops that are kept in mind: a loop that calls functions goes back at their returns, too.
const HEADS: usize = 4;

/// A point to which the program has gone back.
#[derive(Debug, Clone)]
struct Head {
    pc: u64,
    since: u64,
    changes: u64,
    registers: [u64; REGISTERS],
}

/// What a hart has spun.
#[derive(Debug, Clone, Default)]
pub(super) struct Spinning {
    heads: Vec<Head>,
    /// The head that is replaced next.
    oldest: usize,
    last_pc: u64,
    /// Stores, and atomics that changed a value.
    changes: u64,
    counted_until: u64,
    cycles: u64,
}

impl Spinning {
    /// Cycles in turns that changed nothing.
    pub(super) fn cycles(&self) -> u64 {
        self.cycles
    }

    /// The hart has changed memory.
    pub(super) fn changed(&mut self) {
        self.changes += 1;
    }

    /// An instruction of a window has retired in a cycle.
    pub(super) fn retired(&mut self, window: &Window, number: u64, retires: Retires, cycle: u64) {
        match retires {
            Retires::Store => self.changes += 1,
            // These are none of the program's.
            Retires::Checkpoint | Retires::StatusCheckpoint | Retires::RegionEnd => return,
            Retires::Plain | Retires::Load | Retires::Operation => {}
        }
        let pc = window.entry(number).pc;
        if pc <= self.last_pc {
            self.gone_back(pc, window.retired_values(), cycle);
        }
        self.last_pc = pc;
    }

    fn gone_back(&mut self, pc: u64, registers: [u64; REGISTERS], cycle: u64) {
        let now = Head { pc, since: cycle, changes: self.changes, registers };
        let Some(head) = self.heads.iter_mut().find(|head| head.pc == pc) else {
            if self.heads.len() < HEADS {
                self.heads.push(now);
            } else {
                self.heads[self.oldest] = now;
                self.oldest = (self.oldest + 1) % HEADS;
            }
            return;
        };
        if head.changes == now.changes && head.registers == now.registers {
            self.cycles += cycle.saturating_sub(head.since.max(self.counted_until));
            self.counted_until = cycle;
        }
        *head = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Retires an instruction at an address that leaves x5 with a value.
    fn retire(spinning: &mut Spinning, window: &mut Window, pc: u64, value: u64, retires: Retires, cycle: u64) {
        window.push(pc, 5, retires, value, cycle);
        let (number, retires) = window.retire(cycle).unwrap();
        spinning.retired(window, number, retires, cycle);
    }

    #[test]
    fn turns_that_leave_everything_as_it_was_are_spinning() {
        let (mut spinning, mut window) = (Spinning::default(), Window::new(8));
        let mut turn = |value: u64, retires: Retires, cycle: u64| {
            retire(&mut spinning, &mut window, 100, value, Retires::Load, cycle);
            retire(&mut spinning, &mut window, 104, value, retires, cycle + 1);
            spinning.cycles()
        };
        assert_eq!(turn(0, Retires::Plain, 10), 0);
        assert_eq!(turn(0, Retires::Plain, 20), 0, "the first time that it goes back");
        assert_eq!(turn(0, Retires::Plain, 30), 10);
        assert_eq!(turn(1, Retires::Plain, 45), 10, "another value");
        assert_eq!(turn(1, Retires::Store, 50), 15);
        assert_eq!(turn(1, Retires::Plain, 60), 15, "a store");
        assert_eq!(turn(1, Retires::Plain, 70), 25);
        spinning.changed();
        retire(&mut spinning, &mut window, 100, 1, Retires::Load, 80);
        assert_eq!(spinning.cycles(), 25, "an atomic");
    }

    #[test]
    fn a_loop_that_calls_a_function_is_counted_once() {
        let (mut spinning, mut window) = (Spinning::default(), Window::new(8));
        for turn in 0..5 {
            // A loop at 100 that calls what is at 200.
            for (at, pc) in [100, 200, 104].into_iter().enumerate() {
                retire(&mut spinning, &mut window, pc, 7, Retires::Plain, 10 * turn + at as u64);
            }
        }
        // Known from the second time that it went back to 104.
        assert_eq!(spinning.cycles(), 42 - 2);
    }
}
