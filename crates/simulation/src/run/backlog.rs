//! What is left to be written when the host program is over, and how long that takes.
//!
//! The simulation halts once, at the end of the round of the host program's end, and goes on: so what is
//! counted is of that round's end, up to a lookahead later than the program's. Not counted: lines that are
//! dirty in caches, which are not written.

use crate::assemble::Assembly;
use crate::outcome::{Backlog, Duration};
use durawarp_engine::Time;
use durawarp_machine::memory_controller::MemoryController;

/// What was left at the program's end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Left {
    at: Time,
    gated_stores: u64,
    gated_entries: u64,
    queued_writes: u64,
}

impl Left {
    /// Of a machine that has halted, as its host program was over `at` this time.
    pub(super) fn of(machine: &Assembly, at: Time) -> Left {
        let held = || machine.controllers().map(MemoryController::held);
        Left {
            at,
            gated_stores: held().map(|held| held.stores).sum(),
            gated_entries: held().map(|held| held.entries).sum(),
            queued_writes: machine.controllers().map(MemoryController::pending_writes).sum(),
        }
    }

    /// The same with what came of it, when the machine has drained.
    pub(super) fn backlog(self, machine: &Assembly, duration: impl Fn(Time) -> Duration) -> Backlog {
        let last = machine.controllers().map(MemoryController::wpq_changed).max().unwrap_or(self.at);
        Backlog {
            gated_stores: self.gated_stores,
            gated_entries: self.gated_entries,
            queued_writes: self.queued_writes,
            kept_writes: machine.controllers().map(MemoryController::pending_writes).sum(),
            drain: duration(last.saturating_sub(self.at)),
        }
    }
}
