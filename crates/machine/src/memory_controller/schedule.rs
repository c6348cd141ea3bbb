//! What a memory controller does at an edge of its clock: a row is opened, a request transfers.
//!
//! ```text
//!   edge ─ open rows written back ─ direction (arbiter) ─ choice of row and column ─ transfer ─ next edge
//! ```
//! Invariants: one column and one row command an edge; no read waits for ever (`arbiter`).

use crate::media::{BankId, ColumnGap, DeviceRow, Direction, Fetched, RefreshCounts, RowGap, SlotId, Transfer};
use crate::msg::{MemoryRead, Msg, SECTOR_BYTES};
use crate::request_queue::{At, Choice, NO_BANKS};
use durawarp_engine::{Ctx, Time};
use durawarp_kernel::memory::Medium;

use super::channel::{Channel, source_of};

/// What an edge came to.
#[derive(Debug)]
pub(super) struct Edge {
    /// The request that transfers, and which way.
    pub(super) column: Option<(Direction, At)>,
    /// A command was given.
    acts: bool,
    /// When something that was not ready becomes ready.
    next: Time,
    /// When what devices hold is to be looked at again.
    rows: Time,
}

impl Channel {
    /// Begins an edge of the memory's clock: opens a row, and chooses a request to transfer. None where all
    /// writes there are may wait for others to merge with them, unless `flushes_wait`.
    pub(super) fn begin_edge(&mut self, flushes_wait: bool, cx: &mut Ctx<'_, Msg>) -> Option<Edge> {
        let now = cx.now();
        let rows = self.look_after_held(cx);
        if rows < Time::MAX {
            cx.wake_at(self.clock.edge_at_or_after(rows));
        }
        if let Some(ranking) = &mut self.ranking {
            ranking.look(&mut self.reads.queue, now);
        }
        let (reads, writes) = (self.reads.queue.len(), self.writes.len());
        let mut direction = self.arbiter.direction(&self.spec, reads, writes);
        if self.arbiter.idles(&self.spec, reads, writes) && !flushes_wait {
            return None;
        }
        if self.pages.may_be_due(now) {
            self.close_unused(now.min(self.media.next_refresh().saturating_sub(1)), cx);
        }
        let refresh = self.refresh(now);
        if self.pages.may_be_due(now) {
            self.close_unused(now, cx);
        }
        let mut choice = self.choose(direction, now);
        if !choice.acts() && self.other_may_go(direction, now) {
            // Every request of the direction waits for its bank: the bus is better used by the other one.
            let other = if direction == Direction::Write { Direction::Read } else { Direction::Write };
            let of_other = self.choose(other, now);
            let next = choice.next.min(of_other.next);
            (direction, choice) = (other, Choice { next, ..of_other });
        }
        // Where both kinds of commands share a bus, the column command has it.
        let has_slot =
            |at: &At| choice.column.is_none() || !self.media.has_one_command_bus(self.media.place_in(at.bank).medium);
        if let Some(at) = choice.row.filter(has_slot) {
            self.give_row_command(direction, at, cx);
        }
        let next = choice.next.min(refresh);
        Some(Edge { acts: choice.acts(), column: choice.column.map(|at| (direction, at)), next, rows })
    }

    /// Goes on with refreshes; returns when requests that wait for one are to look again.
    fn refresh(&mut self, now: Time) -> Time {
        let (mut counts, reads, writes) = (RefreshCounts::default(), &self.reads.queue, &self.writes.queue);
        let next = self.media.refresh(now, |bank| reads.waits_for(bank) || writes.waits_for(bank), &mut counts);
        self.counters.refreshes += counts.refreshes;
        self.counters.refresh_blocked_ticks += counts.blocked;
        if counts.closed {
            (0..self.media.banks() as BankId).for_each(|bank| self.bank_changed(bank));
        }
        next
    }

    /// A bank is to have a request's row: the one that is open is closed, or its own is opened. A read of a
    /// buffer asks for its line.
    fn give_row_command(&mut self, direction: Direction, at: At, cx: &mut Ctx<'_, Msg>) {
        let now = cx.now();
        let row = match direction {
            Direction::Read => self.reads.queue.row(at),
            Direction::Write => self.writes.queue.row(at),
        };
        let place = DeviceRow { row, ..self.media.place_in(at.bank) };
        if self.media.has_buffer(place.medium) {
            let fetched = self.media.ask(place, now);
            self.reads.queue.asked(at, fetched.ready);
            return self.count_fetch(fetched, cx);
        }
        let gap = self.media.opening_held_by(place, now);
        let command = self.media.row_command(place, now);
        if let Some(written_at) = command.closed.filter(|_| place.medium == Medium::Nvm) {
            // With that it is written to its cells.
            self.is_written(SlotId::from(at.bank), written_at, cx);
        }
        if command.opens {
            match gap {
                Some(RowGap::Banks) => self.counters.rrd_held += 1,
                Some(RowGap::Window) => self.counters.faw_held += 1,
                None => {}
            }
            self.arbiter.row_opened(at.bank);
            self.pages.used(at.bank, now);
            self.counters.activates += 1;
            self.wear.opened(place.medium);
        }
        if let (Direction::Read, Some(ranking)) = (direction, &mut self.ranking) {
            let media = &self.media;
            let done = if command.opens { media.bank_ready(place, direction, now) } else { media.row_ready(place) };
            ranking.serve(self.reads.queue.source(at), done.saturating_sub(now));
        }
        self.bank_changed(at.bank);
    }

    /// A line came to a buffer, or was there.
    fn count_fetch(&mut self, fetched: Fetched, cx: &mut Ctx<'_, Msg>) {
        if fetched.missed {
            self.counters.activates += 1;
            self.wear.opened(Medium::Nvm);
        }
        if let Some((slot, done)) = fetched.evicted {
            self.is_written(slot, done, cx);
        }
    }

    /// Ends an edge: asks for the next one that has something to do.
    pub(super) fn end_edge(&self, edge: &Edge, cx: &mut Ctx<'_, Msg>) {
        let now = cx.now();
        if !self.is_empty() {
            let next = if edge.acts { now + 1 } else { edge.next };
            cx.wake_at(self.clock.edge_at_or_after(next.min(edge.rows)));
        } else if self.writes.held.is_some() && edge.acts {
            // What was written to may have to be written to cells.
            cx.wake_at(self.clock.edge_at_or_after(now + 1));
        }
    }

    /// Requests of the other direction may use an edge that this one cannot.
    fn other_may_go(&self, direction: Direction, now: Time) -> bool {
        match direction {
            Direction::Write => !self.reads.queue.is_empty(),
            // A write that keeps the bus from reads is not followed by another.
            Direction::Read => {
                let ready = |medium| self.media.channel_ready(medium, Direction::Read, now) <= now;
                self.arbiter.is_turn_of_reads() && ready(Medium::Dram) && ready(Medium::Nvm)
            }
        }
    }

    /// The scheduler's choice among the requests of one direction.
    fn choose(&mut self, direction: Direction, now: Time) -> Choice {
        let arbiter = &self.arbiter;
        let capped = |bank: BankId| arbiter.is_capped(bank);
        match direction {
            Direction::Read => self.reads.queue.choose(&self.media, capped, &NO_BANKS, now),
            Direction::Write => {
                // In the reads' turn their banks are theirs.
                let but = if arbiter.is_turn_of_reads() { self.reads.queue.banks() } else { &NO_BANKS };
                self.writes.queue.choose(&self.media, capped, but, now)
            }
        }
    }

    /// A bank's open row or its count of passed requests has changed.
    fn bank_changed(&mut self, bank: BankId) {
        self.reads.queue.changed(bank);
        self.writes.queue.changed(bank);
    }

    /// Counts a column command of a request that `passes` an older one of its bank, or does not.
    fn count_column(&mut self, direction: Direction, bank: BankId, passes: bool) {
        if passes {
            self.arbiter.count_pass(bank);
            self.bank_changed(bank);
        }
        self.counters.column_commands += 1;
        self.counters.turnarounds += u64::from(self.arbiter.serve(direction));
    }

    /// A read transfers: the read, and how long until its last byte.
    pub(super) fn transfer_read(&mut self, at: At, cx: &mut Ctx<'_, Msg>) -> (MemoryRead, Time) {
        let now = cx.now();
        // Reads of a buffer come in the order in which they have their data.
        let passes =
            !self.media.has_buffer(self.media.place_in(at.bank).medium) && self.reads.queue.passes_an_older(at);
        self.count_column(Direction::Read, at.bank, passes);
        let source = self.reads.queue.source(at);
        let (row, _, read) = self.reads.queue.remove(at);
        let place = DeviceRow { row, ..self.media.place_in(at.bank) };
        let bytes = read.sectors.count_ones() * SECTOR_BYTES;
        let transfer = self.media.column(place, Direction::Read, bytes, now);
        if let Some(ranking) = &mut self.ranking {
            ranking.served(&mut self.reads.queue, source);
            ranking.serve(source, transfer.data_end - now);
        }
        self.pages.used(at.bank, now);
        if self.pages.closes_behind(&self.reads.queue, place) {
            self.close_behind(place, Direction::Read, &transfer, cx);
        }
        self.count_gap(place.medium, transfer.held_by);
        match place.medium {
            Medium::Dram => self.counters.dram_read_bytes += u64::from(bytes),
            Medium::Nvm => self.counters.nvm_read_bytes += u64::from(bytes),
        }
        (read, transfer.data_end - now)
    }

    /// The oldest read that waits for the read queue, if any, takes the entry that is free.
    pub(super) fn refill_reads(&mut self) {
        if let Some(next) = self.reads.pop_waiting() {
            let row = self.row_of(next.line);
            self.reads.queue.push(row, next.line, source_of(&next), next);
        }
    }

    /// A write transfers, and is durable when its row is.
    pub(super) fn transfer_write(&mut self, at: At, cx: &mut Ctx<'_, Msg>) {
        let now = cx.now();
        let passes = self.writes.queue.passes_an_older(at);
        self.count_column(Direction::Write, at.bank, passes);
        let (row, line, write) = self.writes.remove(at, now, &mut self.counters, &mut self.notes);
        let place = DeviceRow { row, ..self.media.place_in(at.bank) };
        if place.medium == Medium::Nvm {
            self.wear.write(&self.media, place, (self.cell_line(line), write.mask), now);
        }
        if self.media.has_buffer(place.medium) {
            // Its line comes first: what makes room for it is in cells before this write can be.
            let fetched = self.media.fetch(place, now);
            self.count_fetch(fetched, cx);
        }
        let transfer = self.media.write(place, write.mask, now);
        if !self.media.writes_without_row(place.medium) {
            self.pages.used(at.bank, now);
        }
        self.count_gap(place.medium, transfer.held_by);
        self.notes.media_write(usize::from(at.bank), line, now, transfer.media_done);
        let written = u64::from(write.mask.count_ones());
        match place.medium {
            Medium::Dram => self.counters.dram_written_bytes += written,
            Medium::Nvm => self.counters.nvm_written_bytes += written,
        }
        match (&mut self.writes.held, place.medium) {
            (_, Medium::Dram) => {}
            (Some(held), Medium::Nvm) => held.hold(self.media.slot_of(place), line, write),
            (None, Medium::Nvm) => {
                let done = transfer.media_done;
                write.reach_media(line, done, &self.ports, &mut self.notes, &mut self.finished, cx);
            }
        }
        if self.pages.closes_behind(&self.writes.queue, place) {
            self.close_behind(place, Direction::Write, &transfer, cx);
        }
        self.accept_waiting(cx);
    }

    fn count_gap(&mut self, medium: Medium, gap: Option<ColumnGap>) {
        let c = &mut self.counters;
        let held = match (medium, gap) {
            (_, None) => return,
            (Medium::Dram, Some(ColumnGap::Medium)) => &mut c.dram_ccd_held,
            (Medium::Dram, Some(ColumnGap::Group)) => &mut c.dram_ccd_l_held,
            (Medium::Nvm, Some(ColumnGap::Medium)) => &mut c.nvm_ccd_held,
            (Medium::Nvm, Some(ColumnGap::Group)) => &mut c.nvm_ccd_l_held,
            (_, Some(ColumnGap::Turn)) => &mut c.wtr_held,
        };
        *held += 1;
    }

    /// Reports slots that are in their cells by now, and writes those that no request waits for. Returns when
    /// to look again.
    fn look_after_held(&mut self, cx: &mut Ctx<'_, Msg>) -> Time {
        let now = cx.now();
        let (mut next, mut at) = (Time::MAX, 0);
        while let Some(slot) = self.writes.held.as_ref().and_then(|held| held.slot(at)) {
            let later = match self.media.written_at(slot) {
                Some(written_at) if written_at <= now => {
                    // The slot is no longer in the list: its place has the next one.
                    self.is_written(slot, now, cx);
                    continue;
                }
                Some(written_at) => written_at,
                None if self.is_waited_for(slot) => Time::MAX,
                None if self.media.write_back_ready(slot) <= now => {
                    let done = self.media.write_back(slot, now);
                    self.bank_changed(self.media.place_of(slot).bank);
                    self.is_written(slot, done, cx);
                    continue;
                }
                None => self.media.write_back_ready(slot),
            };
            next = next.min(later);
            at += 1;
        }
        next
    }

    /// A request waits that closes the row of a slot or writes to it again; or that writes to its line again.
    fn is_waited_for(&self, slot: SlotId) -> bool {
        let place = self.media.place_of(slot);
        if self.media.has_buffer(place.medium) {
            return self.writes.queue.waits_for_row(place);
        }
        self.reads.queue.waits_for(place.bank) || self.writes.queue.waits_for(place.bank)
    }

    /// What a slot held is in its cells at `done`, or was before.
    fn is_written(&mut self, slot: SlotId, done: Time, cx: &mut Ctx<'_, Msg>) {
        let Some(held) = &mut self.writes.held else { return };
        for (line, write) in held.take(slot) {
            let done = done.max(cx.now());
            write.reach_media(line, done, &self.ports, &mut self.notes, &mut self.finished, cx);
        }
    }

    /// Closes the row of a transfer behind it.
    fn close_behind(&mut self, place: DeviceRow, access: Direction, transfer: &Transfer, cx: &mut Ctx<'_, Msg>) {
        if !self.media.leaves_row_open(place, access) {
            return;
        }
        let written_at = self.media.close_behind(place, access, transfer);
        self.is_closed(place, written_at, cx);
    }

    /// Closes rows that timed out by `until`, one after another as they do.
    fn close_unused(&mut self, until: Time, cx: &mut Ctx<'_, Msg>) {
        loop {
            let mut first: Option<(Time, DeviceRow)> = None;
            for bank in 0..self.media.banks() as BankId {
                let Some(row) = self.media.open_row_of(bank).filter(|_| !self.media.is_held_back(bank)) else {
                    continue;
                };
                let place = DeviceRow { row, ..self.media.place_in(bank) };
                // When it is used, its time begins again.
                if self.reads.queue.waits_for_row(place) || self.writes.queue.waits_for_row(place) {
                    continue;
                }
                let at = self.media.unused_closes_at(place, self.pages.idle_from(bank));
                if first.is_none_or(|(earliest, _)| at < earliest) {
                    first = Some((at, place));
                }
            }
            self.pages.set_next(first.map_or(Time::MAX, |(at, _)| at));
            let Some((at, place)) = first.filter(|(at, _)| *at <= until) else { return };
            let written_at = self.media.close_unused(place, at);
            self.is_closed(place, written_at, cx);
        }
    }

    /// The row of a bank is closed; its bytes are in cells then.
    fn is_closed(&mut self, place: DeviceRow, written_at: Time, cx: &mut Ctx<'_, Msg>) {
        // A slot of DRAM's number is another one, where NVM has a buffer.
        if place.medium == Medium::Nvm {
            self.is_written(SlotId::from(place.bank), written_at, cx);
        }
        self.bank_changed(place.bank);
    }

    /// Before a request comes: closes rows that timed out before the edge at which it is looked at.
    #[inline]
    pub(super) fn look_after_pages(&mut self, cx: &mut Ctx<'_, Msg>) {
        if self.pages.may_be_due(cx.now()) {
            let edge = self.clock.edge_at_or_after(cx.now());
            self.close_unused(edge.min(self.media.next_refresh()).saturating_sub(1), cx);
        }
    }
}
