//! A process that goes on from the middle: what a machine saved of it when power failed.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::hart_state::HartState;
use crate::memory::Memory;
use crate::process::Process;
use crate::syscalls::Os;
use crate::verbs::Logs;

use super::hart::{Hart, Registers, SharedState};
use super::{Machine, Options, Outcome, PmCounts, Round};

/// A hart between two instructions, and whether it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedHart {
    /// Its registers, and where it goes on.
    pub state: HartState,
    /// It runs a thread, which does not wait.
    pub running: bool,
}

/// A process between instructions of all its harts, none of which has a system call under way.
#[derive(Debug, Clone)]
pub struct SavedProcess {
    pub memory: Memory,
    /// What system calls have done; waits among it.
    pub os: Os,
    pub harts: Vec<SavedHart>,
    /// Nanoseconds since it began.
    pub now_ns: u64,
}

/// Goes on to the process' end. Reservations are lost.
pub fn resume(process: &Process, saved: SavedProcess, options: &Options<'_>) -> Outcome {
    let SavedProcess { memory, os, harts, now_ns } = saved;
    let harts: Vec<Hart> = harts.iter().zip(0..).map(|(saved, number)| hart(number, saved)).collect();
    let observer = &mut ();
    let logs = Logs::new(options.peers, options.harts.max(1));
    let shared = SharedState { memory, code: process.code.clone(), pm: PmCounts::default(), logs, observer };
    let (image, off) = (Arc::clone(&process.image), BTreeMap::new());
    let mut machine = Machine { shared, os, harts, off, image, now_ns, last: 0, round: Round::default() };
    let end = machine.run(options.instructions, options.stop);
    machine.outcome(end)
}

fn hart(number: u32, saved: &SavedHart) -> Hart {
    let mut hart = Hart::new(number);
    hart.registers = Registers::of(&saved.state.registers);
    (hart.pc, hart.fcsr, hart.running) = (saved.state.pc, saved.state.fcsr, saved.running);
    hart
}
