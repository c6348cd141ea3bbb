//! What a memory controller does at an edge of its clock: reads or writes, and which, by FR-FCFS.
//!
//! Source: watermarks and the least number of writes of a drain as in gem5's memory controller, which ends a drain after that many
//! when reads wait; here it goes on to the low watermark, but not without end. Invariants: one column and one row command an edge; no
//! read waits for ever, whatever else comes: of a bank's row hits so many pass an older request, of writes as many as the queue holds pass
//! a read. Below the high watermark a write waits as long as reads come without a gap, as in gem5.

use crate::engine::{Ctx, Time};
use crate::kernel::memory::Medium;
use crate::machine::media::{Access, BankId, ColumnGap, Place};
use crate::machine::msg::{Msg, SECTOR_BYTES};
use crate::machine::request_queue::{At, Choice, NO_BANKS};

use super::MemoryController;

impl MemoryController {
    /// One edge of the memory's clock: a row is opened, a request transfers.
    pub(super) fn schedule(&mut self, cx: &mut Ctx<'_, Msg>) {
        let now = cx.now();
        let rows = self.look_after_rows(cx);
        if rows < Time::MAX {
            cx.wake_at(self.clock.edge_at_or_after(rows));
        }
        let mut access = self.direction();
        if self.may_idle() {
            return;
        }
        let mut choice = self.choose(access, now);
        let other_may = || match access {
            Access::Write => !self.reads.is_empty(),
            // A write that keeps the bus from reads is not followed by another.
            Access::Read => {
                let ready = |medium| self.media.channel_ready(medium, Access::Read) <= now;
                self.turn > 0 && ready(Medium::Dram) && ready(Medium::Nvm)
            }
        };
        if !choice.acts() && other_may() {
            // Every request of the direction waits for its bank: the bus is better used by the other one.
            let other = if access == Access::Write { Access::Read } else { Access::Write };
            let of_other = self.choose(other, now);
            let next = choice.next.min(of_other.next);
            (access, choice) = (other, Choice { next, ..of_other });
        }
        if let Some(at) = choice.row {
            let row = match access {
                Access::Read => self.reads.row(at),
                Access::Write => self.writes.row(at),
            };
            let written_at = self.media.open_row(Place { row, ..self.media.place_in(at.bank) }, now);
            self.row_is_written(at.bank, written_at, cx);
            self.passed[usize::from(at.bank)] = 0;
            self.changed(at.bank);
            self.counters.activates += 1;
        }
        if let Some(at) = choice.column {
            self.serve(access, at, now, cx);
        }
        if !(self.reads.is_empty() && self.writes.is_empty()) {
            let next = if choice.acts() { now + 1 } else { choice.next };
            cx.wake_at(self.clock.edge_at_or_after(next.min(rows)));
        } else if self.open_rows.is_some() && choice.acts() {
            // The row that was written to may have to be written.
            cx.wake_at(self.clock.edge_at_or_after(now + 1));
        }
    }

    /// Writes that may wait for others to merge with them.
    fn may_idle(&self) -> bool {
        let idle = if self.may_idle { self.spec.drain_idle_entries } else { 0 };
        let idles = !self.must_drain && self.reads.is_empty() && self.writes.len() as u32 <= idle;
        idles && !self.flush_waits()
    }

    /// Reads or writes first, at this edge: writes between the watermarks, and when no read waits. A drain that does not get
    /// to the low watermark, as writes go on coming, ends with as many writes as the queue has entries: reads that wait then have
    /// their turn, and writes go to other banks than theirs, while no read can.
    fn direction(&mut self) -> Access {
        let waiting = self.writes.len() as u32;
        if self.reads.is_empty() {
            self.turn = 0;
        }
        if !self.must_drain && self.turn == 0 && waiting >= self.spec.drain_high_entries {
            self.must_drain = true;
            self.drained = 0;
        }
        let enough = waiting <= self.spec.drain_low_entries && self.drained >= self.spec.drain_min_writes;
        let too_many = self.drained >= self.spec.write_queue_entries && !self.reads.is_empty();
        if self.must_drain && (enough || too_many || waiting == 0) {
            self.must_drain = false;
            self.turn = if too_many { self.reads.len() as u32 } else { 0 };
        }
        if self.must_drain || self.reads.is_empty() { Access::Write } else { Access::Read }
    }

    /// FR-FCFS over the requests of one direction.
    fn choose(&mut self, access: Access, now: Time) -> Choice {
        let (passed, cap) = (&self.passed, self.spec.row_hit_cap);
        let capped = |bank: BankId| passed[usize::from(bank)] >= cap;
        match access {
            Access::Read => self.reads.choose(&self.media, capped, &NO_BANKS, now),
            Access::Write => {
                // In the reads' turn their banks are theirs.
                let but = if self.turn > 0 { self.reads.banks() } else { &NO_BANKS };
                self.writes.choose(&self.media, capped, but, now)
            }
        }
    }

    /// A bank's open row or its count of passed requests has changed.
    fn changed(&mut self, bank: BankId) {
        self.reads.changed(bank);
        self.writes.changed(bank);
    }

    fn serve(&mut self, access: Access, at: At, now: Time, cx: &mut Ctx<'_, Msg>) {
        let passes = match access {
            Access::Read => self.reads.passes_an_older(at),
            Access::Write => self.writes.passes_an_older(at),
        };
        if passes {
            self.passed[usize::from(at.bank)] += 1;
            self.changed(at.bank);
        }
        let place = self.media.place_in(at.bank);
        self.counters.column_commands += 1;
        if access != self.last_access {
            self.last_access = access;
            self.counters.turnarounds += 1;
        }
        match access {
            Access::Read => {
                let (row, _, read) = self.reads.remove(at);
                self.turn = self.turn.saturating_sub(1);
                let bytes = read.sectors.count_ones() * SECTOR_BYTES;
                let transfer = self.media.column(Place { row, ..place }, access, bytes, now);
                self.count_gap(place.medium, transfer.held_by);
                match place.medium {
                    Medium::Dram => self.counters.dram_read_bytes += u64::from(bytes),
                    Medium::Nvm => self.counters.nvm_read_bytes += u64::from(bytes),
                }
                self.answer(read, transfer.data_end - now, cx);
                if let Some(next) = self.waiting_reads.pop_front() {
                    let place = self.place(next.line);
                    self.reads.push(place, next.line, next);
                }
                self.carry_out(cx);
            }
            Access::Write => {
                self.count_occupancy(now);
                let (row, line, write) = self.writes.remove(at);
                let mask = write.mask;
                let transfer = self.media.write(Place { row, ..place }, mask, now);
                self.count_gap(place.medium, transfer.held_by);
                self.note_occupancy(now);
                self.note_media_write(usize::from(at.bank), line, now, transfer.media_done);
                match (&mut self.open_rows, place.medium) {
                    (_, Medium::Dram) => {}
                    (Some(rows), Medium::Nvm) => rows.hold(at.bank, line, write),
                    (None, Medium::Nvm) => self.reach_media(line, &write, now, transfer.media_done, cx),
                }
                self.drained += 1;
                let written = u64::from(mask.count_ones());
                match place.medium {
                    Medium::Dram => self.counters.dram_written_bytes += written,
                    Medium::Nvm => self.counters.nvm_written_bytes += written,
                }
                while let Some(waiting) = self.waiting_writes.pop_front() {
                    if !self.accept(&waiting, now) {
                        self.waiting_writes.push_front(waiting);
                        break;
                    }
                    self.acknowledge(waiting, cx);
                }
                self.carry_out(cx);
            }
        }
    }

    fn count_gap(&mut self, medium: Medium, gap: Option<ColumnGap>) {
        let c = &mut self.counters;
        let held = match (medium, gap) {
            (_, None) => return,
            (Medium::Dram, Some(ColumnGap::Medium)) => &mut c.dram_ccd_held,
            (Medium::Dram, Some(ColumnGap::Group)) => &mut c.dram_ccd_l_held,
            (Medium::Nvm, Some(ColumnGap::Medium)) => &mut c.nvm_ccd_held,
            (Medium::Nvm, Some(ColumnGap::Group)) => &mut c.nvm_ccd_l_held,
        };
        *held += 1;
    }

    /// Tells of open rows that are in their cells by now, and has those written that no request waits for. Returns when to
    /// look again.
    fn look_after_rows(&mut self, cx: &mut Ctx<'_, Msg>) -> Time {
        let now = cx.now();
        let (mut next, mut at) = (Time::MAX, 0);
        while let Some(bank) = self.open_rows.as_ref().and_then(|rows| rows.bank(at)) {
            let later = match self.media.row_written_at(bank) {
                Some(written_at) if written_at <= now => {
                    self.row_is_written(bank, now, cx);
                    continue;
                }
                Some(written_at) => written_at,
                // The request that waits for the bank closes the row, or writes to it again.
                None if self.reads.waits_for(bank) || self.writes.waits_for(bank) => Time::MAX,
                None if self.media.row_write_ready(bank) <= now => {
                    let done = self.media.write_row(bank, now);
                    self.changed(bank);
                    self.row_is_written(bank, done, cx);
                    continue;
                }
                None => self.media.row_write_ready(bank),
            };
            next = next.min(later);
            at += 1;
        }
        next
    }

    /// The row that was open in a bank is in its cells at `done`, or was before.
    fn row_is_written(&mut self, bank: BankId, done: Time, cx: &mut Ctx<'_, Msg>) {
        let Some(rows) = &mut self.open_rows else { return };
        for (line, write) in rows.take(bank) {
            self.reach_media(line, &write, cx.now(), done.max(cx.now()), cx);
        }
    }
}
