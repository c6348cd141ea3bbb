//! What devices hold between the bus and their cells: the open row of each bank, or the lines of a buffer.
//!
//! A *slot* is where writes are held together, and from where they go to cells together:
//!
//! | device | slots | written to cells | also |
//! |---|---|---|---|
//! | `write_mode=row_buffer` | one a bank: its open row | after the last write, or at the close | on request |
//! | with a buffer | one a line | when the line makes room | on request |
//!
//! A row may be closed without another one being wanted: behind a column command, or after a time.
//!
//! | device | closed behind a column command |
//! |---|---|
//! | DRAM of a table with `RDA` and `WRA` | the request's last command is that; the table says what follows |
//! | any other | the precharge begins as soon as it can, and takes no slot of a bus |
//!
//! Source: `media` and `buffer`; auto-precharge of JESD79-4 (4.24). Invariants: a slot that was written to
//! cells keeps its row or line; a bank's state is that of a closed row from the command on that closes it,
//! and its next activation waits for the precharge. Not modelled: a table whose `RDA` must wait longer than
//! its `RD`: both go when `RD` may.

use durawarp_engine::Time;
use durawarp_kernel::memory::Medium;

use super::table::Act;
use super::writes::Writes;
use super::{BankId, BankRow, DeviceRow, Direction, Media, Transfer};

/// A place where a device holds writes, among all of the channel.
pub type SlotId = u32;

/// A line of a buffer that a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetched {
    /// A read has its data, in the device.
    pub ready: Time,
    /// The cells were read.
    pub missed: bool,
    /// Another line made room: what its slot held is in cells at this time.
    pub evicted: Option<(SlotId, Time)>,
}

impl Media {
    /// Requests to this medium go to a buffer: a read asks for its line, and transfers when that is ready.
    #[inline]
    pub fn has_buffer(&self, medium: Medium) -> bool {
        medium == Medium::Nvm && self.buffers.count() > 0
    }

    /// Bytes of a line of the buffers, where there are any.
    pub fn buffer_line_bytes(&self) -> Option<u32> {
        (self.buffers.count() > 0).then_some(self.buffers.line_bytes)
    }

    /// When a buffer takes a write to the place: it may need the room of a dirty line.
    pub fn room_at(&self, place: DeviceRow) -> Time {
        self.buffers.of(self.in_device(place)).room_at(place.row)
    }

    /// A buffer has bytes of the place's line that its cells have not.
    pub fn is_dirty(&self, place: DeviceRow) -> bool {
        let buffer = self.buffers.of(self.in_device(place));
        buffer.find(place.row).is_some_and(|index| buffer.is_dirty(index))
    }

    /// A request needs its line in the buffer.
    pub fn fetch(&mut self, place: DeviceRow, at: Time) -> Fetched {
        let bank = self.in_device(place);
        let fetched = self.buffers.of_mut(bank).fetch(place.row, at);
        let evicted = fetched.evicted.map(|line| (self.slot(bank, line.index), line.done));
        Fetched { ready: fetched.ready, missed: fetched.missed, evicted }
    }

    /// The same of a read, which asks by a command of its own.
    ///
    /// # Panics
    /// When the bus of commands has no slot.
    pub fn ask(&mut self, place: DeviceRow, at: Time) -> Fetched {
        let earliest = self.row_slot_ready(place.medium, at);
        assert!(earliest <= at, "read asked for at {at}, ready at {earliest}");
        if self.has_one_command_bus(place.medium) {
            self.slots.take(at, 1, self.clock.period_ticks());
        }
        self.row_slot = at + self.clock.cycles(1);
        self.fetch(place, at)
    }

    /// How many slots the channel has.
    pub fn slots(&self) -> usize {
        if self.buffers.count() > 0 { self.buffers.count() * self.buffers.lines } else { self.banks() }
    }

    /// The slot that holds a write to the place, once it was transferred.
    pub fn slot_of(&self, place: DeviceRow) -> SlotId {
        if !self.has_buffer(place.medium) {
            return SlotId::from(place.bank);
        }
        let bank = self.in_device(place);
        let Some(index) = self.buffers.of(bank).find(place.row) else { unreachable!("a write leaves its line there") };
        self.slot(bank, index)
    }

    /// Where the writes go that a slot holds.
    pub fn place_of(&self, slot: SlotId) -> DeviceRow {
        let (place, row) = match self.line_of(slot) {
            Some((bank, index)) => {
                (self.place_in(self.first_of_nvm + bank as BankId), self.buffers.of(bank).row(index))
            }
            None => (self.place_in(slot as BankId), self.open_row_of(slot as BankId)),
        };
        DeviceRow { row: row.unwrap_or(0), ..place }
    }

    /// When the cells have what is in a slot, if no other write comes to it: `None` when nothing writes them
    /// before the row closes, or before the line makes room.
    pub fn written_at(&self, slot: SlotId) -> Option<Time> {
        match self.line_of(slot) {
            Some((bank, index)) => (!self.buffers.of(bank).is_dirty(index)).then_some(0),
            None => {
                let bank = &self.rows[slot as usize];
                (!bank.dirty).then_some(bank.written_at)
            }
        }
    }

    /// Writes a slot to its cells at `at`. Returns when that is done.
    ///
    /// # Panics
    /// When it is too early.
    pub fn write_back(&mut self, slot: SlotId, at: Time) -> Time {
        let ready = self.write_back_ready(slot);
        assert!(ready <= at, "written to cells at {at}, ready at {ready}");
        if let Some((bank, index)) = self.line_of(slot) {
            return self.buffers.of_mut(bank).write_back(index, at);
        }
        let place = self.place_in(slot as BankId);
        let Writes::Row { cells, .. } = self.devices[place.medium as usize].writes else {
            unreachable!("only row buffers are written back")
        };
        let done = at + cells;
        let row = &mut self.rows[usize::from(place.bank)];
        *row = BankRow { written_at: done, dirty: false, ..*row };
        let in_device = self.in_device(place);
        self.tables[place.medium as usize].hold_bank(in_device, &[Act::Read, Act::Write, Act::Close], done);
        done
    }

    /// The earliest time at which [`Media::write_back`] may come.
    pub fn write_back_ready(&self, slot: SlotId) -> Time {
        if let Some((bank, index)) = self.line_of(slot) {
            return self.buffers.of(bank).write_back_ready(index);
        }
        let place = self.place_in(slot as BankId);
        self.tables[place.medium as usize].of_bank(self.in_device(place), Act::Close)
    }

    /// The row of the place stays open behind a column command, so that it can be closed there.
    pub fn leaves_row_open(&self, place: DeviceRow, access: Direction) -> bool {
        let needs_none = access == Direction::Write && self.writes_without_row(place.medium);
        !needs_none && !self.has_buffer(place.medium)
    }

    /// Closes the row of the transfer that went last, behind it. Returns when the row's bytes are in cells.
    pub fn close_behind(&mut self, place: DeviceRow, access: Direction, transfer: &Transfer) -> Time {
        let act = if access == Direction::Read { Act::ReadClose } else { Act::WriteClose };
        let (bank, table) = (self.in_device(place), &mut self.tables[place.medium as usize]);
        match table.command(act).filter(|_| place.medium == Medium::Dram) {
            Some(command) => {
                let at = transfer.last_command;
                table.issue(act, bank, at, at, 1);
                // The last command that was noted is that column command.
                if let Some(last) = self.trace.as_mut().and_then(|trace| trace.last_mut()) {
                    last.command = command;
                }
                let row = &mut self.rows[usize::from(place.bank)];
                *row = BankRow { open: None, ..*row };
                row.written_at
            }
            None => self.close(place, self.row_ready(place)),
        }
    }

    /// When the open row of a bank can be closed that nothing has used since `idle_from`: an edge.
    pub fn unused_closes_at(&self, place: DeviceRow, idle_from: Time) -> Time {
        let from = self.clock.edge_at_or_after(self.slots.not_before(idle_from.max(self.row_ready(place))));
        self.clock.edge_at_or_after(self.row_slot_ready(place.medium, from).max(from))
    }

    /// Closes it then. Returns when its bytes are in cells.
    pub fn close_unused(&mut self, place: DeviceRow, at: Time) -> Time {
        self.take_row_slot(place.medium, true, at);
        self.note(place.medium, Act::Close, (self.in_device(place), 0), at);
        self.close(place, at)
    }

    /// A power failure loses what slots of NVM hold.
    pub fn loses_held(&self) -> bool {
        self.loses_held
    }

    /// The slot of a line.
    fn slot(&self, bank: usize, index: usize) -> SlotId {
        (bank * self.buffers.lines + index) as SlotId
    }

    /// The line of a slot: the bank, and where in its buffer.
    fn line_of(&self, slot: SlotId) -> Option<(usize, usize)> {
        let lines = self.buffers.lines;
        (lines > 0).then(|| (slot as usize / lines, slot as usize % lines))
    }
}
