//! A run that stops after instructions of its own, is looked at, and goes on as if it had never stopped.
//!
//! Invariant: where it stops changes nothing of what follows, turns of harts and the clock among it.

use crate::hart_state::HartState;
use crate::memory::Memory;
use crate::process::Process;
use crate::syscalls::Os;

use super::{End, Machine, Observer, Options, Outcome};

/// A process under way.
#[derive(Debug)]
pub struct FunctionalRun<'a, O> {
    machine: Machine<O>,
    options: Options<'a>,
    end: Option<End>,
}

impl<'a, O: Observer> FunctionalRun<'a, O> {
    /// Before the first instruction. The limit of instructions among the options has no part.
    pub fn new(process: &Process, memory: Memory, options: &Options<'a>, observer: O) -> FunctionalRun<'a, O> {
        let machine = Machine::begun(process, memory, options, observer);
        FunctionalRun { machine, options: options.clone(), end: None }
    }

    /// Executes up to `instructions` more, of all harts together. True while the program is not over.
    pub fn advance(&mut self, instructions: u64) -> bool {
        if self.end.is_none() {
            let end = self.machine.run(instructions, self.options.stop);
            self.end = (end != End::Limit).then_some(end);
        }
        self.end.is_none()
    }

    /// Instructions of all harts so far.
    pub fn instructions(&self) -> u64 {
        self.machine.harts.iter().map(|hart| hart.instructions).sum()
    }

    /// What it shows itself to.
    pub fn observer(&self) -> &O {
        &self.machine.shared.observer
    }

    /// What it has shown itself to.
    pub fn into_observer(self) -> O {
        self.machine.shared.observer
    }

    /// Memory now.
    pub fn memory(&self) -> &Memory {
        &self.machine.shared.memory
    }

    /// What system calls have done.
    pub fn os(&self) -> &Os {
        &self.machine.os
    }

    /// A hart, between two instructions.
    pub fn hart(&self, number: usize) -> HartState {
        let hart = &self.machine.harts[number];
        HartState { registers: hart.registers.first(), pc: hart.pc, fcsr: hart.fcsr }
    }

    /// Nanoseconds since the process began.
    pub fn now_ns(&self) -> u64 {
        self.machine.now_ns
    }

    /// How it ended; [`End::Limit`] where it was not over.
    pub fn into_outcome(self) -> Outcome {
        self.machine.outcome(self.end.unwrap_or(End::Limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::{Executable, Segment};
    use crate::process::Start;

    /// Counts down from 3000 with a `pause` in each turn of the loop, reads the clock, and exits with its low
    /// bits.
    fn process() -> Process {
        let words: [u32; 10] = [
            0x0000_12b7, // lui t0, 1
            0xbb82_8293, // addi t0, t0, -1096: 3000
            0x0100_000f, // pause
            0xfff2_8293, // addi t0, t0, -1
            0xfe02_9ce3, // bne t0, x0, -8
            0xc010_2573, // csrrs a0, time, x0
            0x00a5_5513, // srli a0, a0, 10
            0x05d0_0893, // addi a7, x0, 93
            0x0000_0073, // ecall
            0x0000_0013,
        ];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let segments = vec![Segment { address: 0x10000, memory_bytes: 40, bytes, executable: true }];
        let (functions, objects) = (vec![], vec![]);
        let image = Executable { entry: 0x10000, segments, functions, objects, headers: None, header_count: 0 };
        Process::new(image, Start::default()).unwrap()
    }

    #[test]
    fn where_it_stops_changes_nothing() {
        let process = process();
        let whole = super::super::run(&process, process.memory(), &Options::default());
        assert!(matches!(whole.end, End::Exited(code) if code > 2000), "{:?}", whole.end);
        for step in [1, 7, 999, 1000, 1001] {
            let mut run = FunctionalRun::new(&process, process.memory(), &Options::default(), ());
            let mut before = 0;
            while run.advance(step) {
                assert_eq!(run.instructions(), before + step);
                before += step;
            }
            let found = run.into_outcome();
            assert_eq!((&found.end, &found.instructions), (&whole.end, &whole.instructions), "{step}");
        }
    }
}
