//! Instructions at which a core halts the simulation, and when it was there: the bounds of what is measured
//! of a run.
//!
//! A mark is passed in the cycle in which its instruction retires. Invariant: nothing of the model reads
//! them; a run that was halted goes on as one without marks.

/// How far a core was when it passed a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassedMark {
    /// Cycles before, that of the mark among them.
    pub cycles: u64,
    /// Instructions that had retired: at most a cycle's more than the mark says.
    pub instructions: u64,
}

/// Marks of a core.
#[derive(Debug)]
pub(super) struct Marks {
    /// The next one; beyond any run without one.
    pub(super) next: u64,
    /// Those after it, the last one first.
    later: Vec<u64>,
    pub(super) passed: Vec<PassedMark>,
}

impl Marks {
    /// These, in rising order.
    pub(super) fn new(instructions: &[u64]) -> Marks {
        let mut later: Vec<u64> = instructions.iter().rev().copied().collect();
        Marks { next: later.pop().unwrap_or(u64::MAX), later, passed: Vec::new() }
    }

    /// The next one is passed, perhaps with others.
    #[cold]
    pub(super) fn pass(&mut self, cycles: u64, instructions: u64) {
        while instructions >= self.next {
            self.passed.push(PassedMark { cycles, instructions });
            self.next = self.later.pop().unwrap_or(u64::MAX);
        }
    }
}
