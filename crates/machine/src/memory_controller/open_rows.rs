//! Writes that wait in open rows of NVM, where a power failure loses what a row holds until it is in its
//! cells (`nvm.write_mode=row_buffer`, domain `media`, rows not durable).
//!
//! | `row_write_when` | the row is written | by |
//! |---|---|---|
//! | `idle` | after its last write | the devices |
//! | `close` | when another row needs the bank | the devices |
//! | `close` | when no request waits for the bank | the controller |
//!
//! The last case is our choice: without it a fence waits until another row happens to be needed. Invariant: a
//! write counts as durable, and the journal has its bytes at the media, when its row is in the cells.

use smallvec::SmallVec;

use crate::media::BankId;
use durawarp_checkpoint::state;

use super::pending_write::PendingWrite;

/// Writes to the row that is open in a bank, each with its line.
pub(super) type RowWrites = SmallVec<[(u64, PendingWrite); 4]>;

/// Open rows with writes that are not in cells, by bank of the channel.
#[derive(Debug)]
pub(super) struct OpenRows {
    rows: Vec<RowWrites>,
    /// Banks with such a row.
    held: Vec<BankId>,
}

state!(OpenRows { sized: rows; saved: held });

impl OpenRows {
    pub(super) fn new(banks: usize) -> Self {
        OpenRows { rows: (0..banks).map(|_| RowWrites::default()).collect(), held: Vec::new() }
    }

    /// Writes that are not in cells.
    pub(super) fn len(&self) -> usize {
        self.held.iter().map(|&bank| self.rows[usize::from(bank)].len()).sum()
    }

    /// The bank of the `at`-th row with such writes.
    pub(super) fn bank(&self, at: usize) -> Option<BankId> {
        self.held.get(at).copied()
    }

    /// A write has been transferred to the row that is open in a bank.
    pub(super) fn hold(&mut self, bank: BankId, line: u64, write: PendingWrite) {
        let row = &mut self.rows[usize::from(bank)];
        if row.is_empty() {
            self.held.push(bank);
        }
        row.push((line, write));
    }

    /// The row that was open in a bank is in its cells: what it held, which is forgotten here.
    pub(super) fn take(&mut self, bank: BankId) -> RowWrites {
        self.held.retain(|&held| held != bank);
        std::mem::take(&mut self.rows[usize::from(bank)])
    }
}
