//! Writes to the cells of a channel's NVM by bank and, when asked for, by line; and rows opened by medium.
//!
//! | `nvm.write_mode` | a write of a line counts |
//! |---|---|
//! | `through`, `latency` | each time, as each drives its cells |
//! | `row_buffer` | once until the cells of its row are written: later writes meet it in the row |
//! | any, of a device with a buffer | as one line of the buffer, when that becomes dirty |
//!
//! Bytes count alike: those of whole granules under `through`, those that a row gained under `row_buffer`,
//! and whole lines of a buffer. What a row or a buffer still holds when a run ends counts, as it has to be
//! written. Each line of a buffer that becomes dirty is written to cells once. Source: the rules of
//! [`media`](crate::media). Cost: a few operations a write of NVM; counts by line are a search in an
//! ordered map. Invariant: the model never reads any of it. Not modelled: levelling, cells that fail.

use std::collections::BTreeMap;

use crate::media::{BankId, DeviceRow, Media, SlotId};
use durawarp_checkpoint::state;
use durawarp_engine::Time;
use durawarp_kernel::memory::Medium;

/// What the cells of a channel's NVM went through.
#[derive(Debug, Clone)]
pub struct CellWear {
    /// The first bank of NVM.
    first: BankId,
    activates: [u64; 2],
    cell_bytes: u64,
    bank_writes: Vec<u64>,
    /// Of each bank, lines and bytes that its open row has and its cells have not. Of `row_buffer` alone.
    rows: Vec<Vec<(u64, u128)>>,
    lines: Option<BTreeMap<u64, u64>>,
}

state!(CellWear { saved: activates, cell_bytes, lines; sized: bank_writes, rows; kept: first });

impl CellWear {
    /// Of devices that nothing was written to.
    pub(super) fn new(media: &Media) -> Self {
        let (first, count) = media.nvm_banks();
        let count = usize::from(count);
        let rows = if media.writes_without_row(Medium::Nvm) { 0 } else { count };
        CellWear {
            first,
            activates: [0; 2],
            cell_bytes: 0,
            bank_writes: vec![0; count],
            rows: vec![Vec::new(); rows],
            lines: None,
        }
    }

    /// Counts by line from now on.
    pub(super) fn count_lines(&mut self) {
        self.lines.get_or_insert_default();
    }

    /// A row of a medium was opened.
    pub(super) fn opened(&mut self, medium: Medium) {
        self.activates[medium as usize] += 1;
    }

    /// A write of some bytes of a line goes to a place of NVM at `now`; the media have not taken it yet. Of a
    /// device with a buffer, the line is the buffer's.
    pub(super) fn write(&mut self, media: &Media, place: DeviceRow, (line, mask): (u64, u128), now: Time) {
        let at = usize::from(place.bank - self.first);
        if let Some(line_bytes) = media.buffer_line_bytes() {
            if !media.is_dirty(place) {
                self.count(at, line, u64::from(line_bytes));
            }
            return;
        }
        let driven = media.driven_bytes(Medium::Nvm, mask);
        let (new_bytes, new_line) = match self.rows.get_mut(at) {
            None => (driven, true),
            Some(row) => {
                // The row's cells have what was written before, so that this write begins anew.
                if media.written_at(SlotId::from(place.bank)).is_some_and(|written| written <= now) {
                    row.clear();
                }
                join(row, line, driven)
            }
        };
        if new_line {
            self.count(at, line, u64::from(new_bytes.count_ones()));
        } else {
            self.cell_bytes += u64::from(new_bytes.count_ones());
        }
    }

    /// A bank writes so many bytes of a line to its cells.
    fn count(&mut self, at: usize, line: u64, bytes: u64) {
        self.cell_bytes += bytes;
        self.bank_writes[at] += 1;
        if let Some(lines) = &mut self.lines {
            *lines.entry(line).or_default() += 1;
        }
    }

    /// Rows opened: of DRAM, of NVM.
    pub fn activates(&self) -> [u64; 2] {
        self.activates
    }

    /// Bytes whose cells were written.
    pub fn cell_bytes(&self) -> u64 {
        self.cell_bytes
    }

    /// Lines written to the cells of each bank.
    pub fn bank_writes(&self) -> &[u64] {
        &self.bank_writes
    }

    /// How often the cells of each line were written, where that was counted: address and writes.
    pub fn lines(&self) -> Option<impl Iterator<Item = (u64, u64)>> {
        self.lines.as_ref().map(|lines| lines.iter().map(|(&line, &writes)| (line, writes)))
    }
}

/// Bytes of a line join an open row: those that are new to it, and whether the line is.
fn join(row: &mut Vec<(u64, u128)>, line: u64, mask: u128) -> (u128, bool) {
    match row.iter_mut().find(|(own, _)| *own == line) {
        Some((_, has)) => {
            let new = mask & !*has;
            *has |= mask;
            (new, false)
        }
        None => {
            row.push((line, mask));
            (mask, true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_joins_an_open_row_once_and_each_of_its_bytes_once() {
        let mut row = Vec::new();
        assert_eq!(join(&mut row, 128, 0b0011), (0b0011, true));
        assert_eq!(join(&mut row, 128, 0b0110), (0b0100, false), "one byte is new");
        assert_eq!(join(&mut row, 256, 0b0110), (0b0110, true));
        assert_eq!(row, [(128, 0b0111), (256, 0b0110)]);
    }
}
