//! Writes that wait in open rows of NVM, where a power failure loses what a row holds until it is in its cells
//! (`nvm.write_mode=row_buffer`, domain `media`, rows not durable).
//!
//! | row is written | when |
//! |---|---|
//! | `idle` | by the devices, behind its last write |
//! | `close` | by the devices, when another row needs the bank; by the controller, when no request waits for the bank |
//!
//! The second case of `close` is our choice: else a fence would wait until another row happens to be needed. Invariant: a
//! write is told durable, and its bytes are noted at the media, when the row that it went to is in its cells.

use smallvec::SmallVec;

use super::{MemoryController, PendingWrite};
use crate::engine::{Ctx, Time};
use crate::machine::media::BankId;
use crate::machine::msg::Msg;

/// Writes to the row that is open in a bank.
#[derive(Debug, Default)]
struct OpenRow {
    writes: SmallVec<[(u64, PendingWrite); 4]>,
}

/// Open rows with writes that are not in cells, by bank of the channel.
#[derive(Debug)]
pub(super) struct OpenRows {
    rows: Vec<OpenRow>,
    /// Banks with such a row.
    held: Vec<BankId>,
}

impl OpenRows {
    pub(super) fn new(banks: usize) -> Self {
        OpenRows { rows: (0..banks).map(|_| OpenRow::default()).collect(), held: Vec::new() }
    }

    /// Writes that are not in cells.
    pub(super) fn len(&self) -> usize {
        self.held.iter().map(|&bank| self.rows[usize::from(bank)].writes.len()).sum()
    }

    fn hold(&mut self, bank: BankId, line: u64, write: PendingWrite) {
        let row = &mut self.rows[usize::from(bank)];
        if row.writes.is_empty() {
            self.held.push(bank);
        }
        row.writes.push((line, write));
    }

    fn take(&mut self, bank: BankId) -> SmallVec<[(u64, PendingWrite); 4]> {
        self.held.retain(|&held| held != bank);
        std::mem::take(&mut self.rows[usize::from(bank)].writes)
    }
}

impl MemoryController {
    /// A write to persistent memory has been transferred to a bank; its bytes are in cells at `done`, or when its row is.
    pub(super) fn transferred(
        &mut self,
        bank: BankId,
        line: u64,
        write: PendingWrite,
        done: Time,
        cx: &mut Ctx<'_, Msg>,
    ) {
        match &mut self.open_rows {
            Some(rows) => rows.hold(bank, line, write),
            None => self.reach_media(line, &write, cx.now(), done, cx),
        }
    }

    /// The row that was open in a bank is in its cells at `done`.
    pub(super) fn row_is_written(&mut self, bank: BankId, done: Time, cx: &mut Ctx<'_, Msg>) {
        let Some(rows) = &mut self.open_rows else { return };
        for (line, write) in rows.take(bank) {
            self.reach_media(line, &write, cx.now(), done.max(cx.now()), cx);
        }
    }

    /// Rows that are in their cells by now are told of; rows that nobody needs any more are written. Returns when to look again.
    pub(super) fn look_after_rows(&mut self, cx: &mut Ctx<'_, Msg>) -> Time {
        let now = cx.now();
        let mut next = Time::MAX;
        let Some(rows) = &self.open_rows else { return next };
        for bank in rows.held.clone() {
            match self.media.row_written_at(bank) {
                Some(at) if at <= now => self.row_is_written(bank, now, cx),
                Some(at) => next = next.min(at),
                // Whoever waits for the bank closes the row, or writes to it once more.
                None if self.reads.waits_for(bank) || self.writes.waits_for(bank) => {}
                None => {
                    let ready = self.media.row_write_ready(bank);
                    if ready <= now {
                        let done = self.media.write_row(bank, now);
                        self.row_is_written(bank, done, cx);
                        self.changed(bank);
                    } else {
                        next = next.min(ready);
                    }
                }
            }
        }
        next
    }
}
