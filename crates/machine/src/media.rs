//! Timing of one channel's memory devices: banks, rows, the data bus, refresh. Pure arithmetic; it schedules
//! nothing.
//!
//! A device is a table of least times between commands (`table`): one from a file
//! ([`Device`](crate::device::Device)), or that of the parameters of `dram` and `nvm` (`plain`). DRAM reads
//! and writes go through an open row: precharge, activate, then column accesses. NVM reads do too (the row
//! buffer holds what was sensed). What an NVM write costs is a reading of its own, [`WriteMode`]:
//!
//! | mode | a write needs its row | its bank is held | its bytes are in cells |
//! |---|---|---|---|
//! | `through` | no | `cell_write_ns` | after `cell_write_ns` |
//! | `row_buffer` | yes | `t_ccd_ns` or `write_hit_ns`; the row, until it is written | with its row |
//! | `latency` | no | `write_hold_ns` | after `cell_write_ns` |
//!
//! A row of `row_buffer` is written `row_write_ns` long: after the last write to it (`idle`), or when
//! another row needs the bank (`close`). Acceptance of a write is the controller's business, not the media's.
//! Both media share the channel's data bus; a change of its direction costs a turnaround.
//! `write_bandwidth_mb_s` bounds what NVM takes of writes, of which `write_charge` says how much each takes.
//!
//! Requests of an NVM device with a buffer need no row: a write goes to its line, which is fetched; a read
//! asks for its line and has the bus when its data is ready, out of order (`buffer`, `held`).
//!
//! Source: the shape of gem5's `NVMInterface` (`through`), of NVMain, Ramulator's PCM and BROI's Table III
//! (`row_buffer`), of GPGPU-Sim's `dram_latency` and SBRP's `pm_latency` (`latency`), of DRAM timing tables
//! (JEDEC names) and Ramulator's constraint tables; the numbers are each preset's and each device's.
//! Invariants: a bank does one thing at a time; a data bus carries one burst at a time; a row command is one
//! precharge or one activation, issued when it can be and never booked ahead; a command that comes too early
//! panics. Commands are issued on memory clock edges by the controller. Not modelled: power-down. Cells never
//! fail: the controller counts their writes.

mod buffer;
mod bus;
mod devices;
mod held;
mod parameters;
mod plain;
mod refresh;
mod table;
mod writes;

use durawarp_base::spec::Nanos;
use durawarp_checkpoint::{state, value};
use durawarp_engine::{Clock, Time, Timebase};
use durawarp_kernel::memory::Medium;

use super::mapping::RowMap;
use super::msg::{SECTOR_BYTES, sectors_touched};

pub use devices::Devices;
pub use held::{Fetched, SlotId};
pub use parameters::{BusSpec, MediaSpec, NvmSpec, RowWriteWhen, WriteCharge, WriteMode};

pub use bus::Direction;

use buffer::Buffers;
use bus::{Bursts, Calendar, DataBus};
use devices::{DeviceTiming, Transport};
use refresh::Refreshing;
use table::{Act, CommandTimes};
use writes::Writes;

/// A bank's place in the channel: DRAM banks first, then NVM banks.
pub type BankId = u16;

/// Where a channel-local address lies in the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceRow {
    /// Bank in the channel.
    pub bank: BankId,
    /// Row in the bank.
    pub row: u32,
    /// Which device.
    pub medium: Medium,
}

/// What a bank has open.
#[derive(Debug, Clone, Copy, Default)]
struct BankRow {
    open: Option<u32>,
    /// The open row holds bytes that its closing writes to the cells.
    dirty: bool,
    /// When the bytes that were written to the open row are in its cells, unless it is dirty.
    written_at: Time,
}

value!(record BankRow { open, dirty, written_at });

/// A command that a device of a table was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandRecord {
    /// When, in ticks.
    pub at: Time,
    /// Its index among the device's commands.
    pub command: u8,
    /// The bank, over all levels, the innermost fastest; of a command to many, one for each.
    pub bank: BankId,
    /// The row of a command that opens one or transfers.
    pub row: u32,
}

/// What a row command did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowCommand {
    /// It closed the row that was open, whose bytes are in cells at this time.
    pub closed: Option<Time>,
    /// It opened the row: also at once where closing another takes no time.
    pub opens: bool,
}

/// The devices and the data buses of one channel.
#[derive(Debug, Clone)]
pub struct Media {
    clock: Clock,
    devices: [DeviceTiming; 2],
    tables: [CommandTimes; 2],
    rows: Vec<BankRow>,
    first_of_nvm: BankId,
    /// One, or one for each pseudo channel.
    buses: Vec<DataBus>,
    /// Slots of the bus of column commands.
    slots: Calendar,
    /// When the bus of row commands takes the next.
    row_slot: Time,
    refreshing: Refreshing,
    /// NVM's, where it has some.
    buffers: Buffers,
    /// Banks whose refresh is pending, a bit each: no request's command may go to them.
    held_back: Vec<u64>,
    /// From the end of reads to writes, and from that of writes to reads.
    turns: [Time; 2],
    /// What NVM takes of writes, and when it takes the next.
    write_rate: Rate,
    write_free: Time,
    loses_held: bool,
    /// Commands of DRAM, where they are kept.
    trace: Option<Vec<CommandRecord>>,
}

state!(Media {
    parts: tables, buses, refreshing, buffers; sized: rows, held_back; saved: slots, row_slot, write_free;
    kept: first_of_nvm, clock, devices, turns, write_rate, loses_held, trace
});

impl Media {
    /// Idle devices with every row closed: those of the parameters, or of tables.
    pub fn new(dram: &MediaSpec, nvm: &NvmSpec, bus: &BusSpec, clock: Clock, base: Timebase) -> Self {
        Media::of(&Devices::default(), dram, nvm, bus, clock, base)
    }

    /// The same with devices of tables where there are any.
    pub fn of(
        devices: &Devices<'_>,
        dram: &MediaSpec,
        nvm: &NvmSpec,
        bus: &BusSpec,
        clock: Clock,
        base: Timebase,
    ) -> Self {
        let of_dram = devices.dram(dram, bus, clock, base);
        let of_nvm = devices.nvm(nvm, bus, clock, base);
        let (tables, timings) = ([of_dram.1, of_nvm.1], [of_dram.0, of_nvm.0]);
        // Both media are on the same data buses; one that has fewer uses the first ones.
        let banks = tables.iter().map(CommandTimes::banks).sum();
        // Of DRAM none has a buffer: machines that name one are refused.
        let buffer = devices.nvm.and_then(|device| device.buffer.as_ref());
        let lanes = timings.iter().map(|device| device.lanes).max().unwrap_or(1);
        Media {
            clock,
            refreshing: Refreshing::new(devices.dram, dram, clock),
            devices: timings,
            first_of_nvm: tables[0].banks() as BankId,
            buffers: Buffers::new(buffer, tables[1].banks(), base),
            tables,
            rows: vec![BankRow::default(); banks],
            buses: vec![DataBus::default(); lanes],
            slots: Calendar::default(),
            row_slot: 0,
            held_back: vec![0; banks.div_ceil(64)],
            turns: [bus.read_to_write_ns, bus.write_to_read_ns].map(|ns| base.ticks_of_ps(ns.ps)),
            write_rate: Rate { mb_s: nvm.write_bandwidth_mb_s, charge: nvm.write_charge, base },
            write_free: 0,
            loses_held: buffer.map_or(nvm.loses_rows(), |own| !own.durable),
            trace: None,
        }
    }

    /// The same with banks and rows by a mapping, for DRAM and for NVM, where there is one.
    pub fn mapped(mut self, maps: &[Option<RowMap>; 2]) -> Self {
        for (device, map) in self.devices.iter_mut().zip(maps) {
            if let Some(map) = map {
                device.map = map.clone();
            }
        }
        self
    }

    /// A duration in ticks.
    pub fn ticks(&self, duration: Nanos) -> Time {
        self.write_rate.base.ticks_of_ps(duration.ps)
    }

    /// The bank and row of a channel-local address.
    pub fn place(&self, medium: Medium, channel_address: u64) -> DeviceRow {
        let (bank, row) = self.devices[medium as usize].map.place(channel_address);
        DeviceRow { bank: self.first_of(medium) + bank, row, medium }
    }

    /// Keeps the commands that DRAM of a table is given from now on.
    pub fn keep_commands(&mut self) {
        self.trace = Some(Vec::new());
    }

    /// Those that were kept, in the order in which they were decided.
    pub fn commands(&self) -> &[CommandRecord] {
        self.trace.as_deref().unwrap_or_default()
    }

    /// Keeps a command where commands are kept.
    fn note(&mut self, medium: Medium, act: Act, (bank, row): (usize, u32), at: Time) {
        if let (Some(trace), Some(command)) = (&mut self.trace, self.tables[medium as usize].command(act))
            && medium == Medium::Dram
        {
            trace.push(CommandRecord { at, command, bank: bank as u16, row });
        }
    }

    /// The first bank of a medium in the channel.
    #[inline]
    fn first_of(&self, medium: Medium) -> BankId {
        if medium == Medium::Nvm { self.first_of_nvm } else { 0 }
    }

    /// A place's bank in its device.
    #[inline]
    fn in_device(&self, place: DeviceRow) -> usize {
        usize::from(place.bank - self.first_of(place.medium))
    }

    /// Banks of the channel, those of both devices.
    pub fn banks(&self) -> usize {
        self.rows.len()
    }

    /// The first bank of NVM, and how many there are.
    pub fn nvm_banks(&self) -> (BankId, BankId) {
        (self.first_of(Medium::Nvm), self.tables[1].banks() as BankId)
    }

    /// Bytes of a line whose cells a write of `mask` drives: whole granules where cells are written by
    /// granules.
    pub fn driven_bytes(&self, medium: Medium, mask: u128) -> u128 {
        match self.devices[medium as usize].writes {
            Writes::Cells { granule: Some(granule), .. } => whole_granules(mask, granule),
            _ => mask,
        }
    }

    /// The row that is open in a bank.
    #[inline]
    pub fn open_row_of(&self, bank: BankId) -> Option<u32> {
        self.rows[usize::from(bank)].open
    }

    /// Row 0 of a bank.
    #[inline]
    pub fn place_in(&self, bank: BankId) -> DeviceRow {
        let medium = if bank < self.first_of(Medium::Nvm) { Medium::Dram } else { Medium::Nvm };
        DeviceRow { bank, row: 0, medium }
    }

    /// A write to this medium needs no open row.
    pub fn writes_without_row(&self, medium: Medium) -> bool {
        !matches!(self.devices[medium as usize].writes, Writes::Row { .. })
    }

    /// The earliest time at which a row command may come that brings the place's row nearer, not rounded to
    /// an edge: the precharge of another one that is open, or the activation.
    #[inline]
    pub fn row_ready(&self, place: DeviceRow) -> Time {
        let table = &self.tables[place.medium as usize];
        let bank = self.in_device(place);
        match self.rows[usize::from(place.bank)].open {
            Some(_) => table.of_bank(bank, Act::Close).max(table.of_channel(Act::Close)),
            None => table.opens_at(bank),
        }
    }

    /// Gives a row command at `at`: another row that is open is closed, and written to its cells before where
    /// it must be; else the place's row is opened.
    ///
    /// # Panics
    /// When it is too early.
    pub fn row_command(&mut self, place: DeviceRow, at: Time) -> RowCommand {
        let earliest = self.row_ready(place).max(self.row_slot_ready(place.medium, at));
        assert!(earliest <= at, "row command at {at}, ready at {earliest}");
        let bank = self.in_device(place);
        let is_open = self.rows[usize::from(place.bank)].open.is_some();
        self.take_row_slot(place.medium, is_open, at);
        let mut closed = None;
        if is_open {
            closed = Some(self.close(place, at));
            self.note(place.medium, Act::Close, (bank, place.row), at);
            if self.tables[place.medium as usize].opens_at(bank) > at {
                return RowCommand { closed, opens: false };
            }
        }
        self.rows[usize::from(place.bank)].open = Some(place.row);
        self.tables[place.medium as usize].issue(Act::Open, bank, at, at, 1);
        self.note(place.medium, Act::Open, (bank, place.row), at);
        RowCommand { closed, opens: true }
    }

    /// A row command has a slot of its bus: a precharge, or an activation.
    #[inline]
    fn take_row_slot(&mut self, medium: Medium, precharge: bool, at: Time) {
        let device = &self.devices[medium as usize];
        let slots = device.row_slots[usize::from(precharge)];
        if device.one_command_bus {
            self.slots.take(at, slots, self.clock.period_ticks());
        }
        self.row_slot = at + self.clock.cycles(u64::from(slots));
    }

    /// Closes the row of a bank at `at`. Returns when its bytes are in cells.
    #[inline]
    fn close(&mut self, place: DeviceRow, at: Time) -> Time {
        let bank = self.in_device(place);
        let row = &mut self.rows[usize::from(place.bank)];
        // Cells that the row is to be written to come first; the precharge counts from then on.
        let begins = match self.devices[place.medium as usize].writes {
            Writes::Row { cells, .. } if row.dirty => at + cells,
            _ => at,
        };
        let written_at = if row.dirty { begins } else { row.written_at };
        *row = BankRow { open: None, dirty: false, written_at };
        self.tables[place.medium as usize].issue(Act::Close, bank, begins, begins, 1);
        written_at
    }

    /// The earliest time from `now` on at which the bus of commands has a slot for a row command.
    #[inline]
    pub fn row_slot_ready(&self, medium: Medium, now: Time) -> Time {
        let period = self.clock.period_ticks();
        let device = &self.devices[medium as usize];
        if device.one_command_bus {
            // Whichever of both commands it is.
            let slots = device.row_slots[0].max(device.row_slots[1]);
            return self.slots.room_from(now, slots, period).max(self.row_slot);
        }
        self.row_slot
    }

    /// A row command and a column command cannot go at the same edge.
    pub fn has_one_command_bus(&self, medium: Medium) -> bool {
        self.devices[medium as usize].one_command_bus
    }

    /// The earliest time from `now` on at which the bus and the medium, banks apart, can take a column
    /// command.
    #[inline]
    pub fn channel_ready(&self, medium: Medium, access: Direction, now: Time) -> Time {
        let of_medium = self.tables[medium as usize].of_channel(act_of(access));
        // Of several buses a bank knows its own.
        let of_bus = if self.buses.len() == 1 { self.bus_ready(0, medium, access, now) } else { 0 };
        of_medium.max(of_bus).max(self.slot_ready(medium, access, now))
    }

    /// When the bus of commands has a slot for a column command.
    #[inline]
    fn slot_ready(&self, medium: Medium, access: Direction, now: Time) -> Time {
        match self.devices[medium as usize].transport {
            Transport::Bursts { slots, .. } => {
                self.slots.room_from(now, slots[access as usize], self.clock.period_ticks())
            }
            Transport::Stream { .. } => 0,
        }
    }

    /// The earliest column command whose data finds the bus free, and NVM ready for what it writes.
    #[inline]
    fn bus_ready(&self, lane: usize, medium: Medium, access: Direction, now: Time) -> Time {
        let device = &self.devices[medium as usize];
        let to_data = if access == Direction::Read { device.cl } else { device.wl };
        let bus = &self.buses[lane];
        let room = if access == Direction::Write && medium == Medium::Nvm { self.write_free } else { 0 };
        let ready = match (bus.last, device.transport) {
            (Some((last, of)), Transport::Bursts { cycles, .. }) if (last, of) == (access, medium) => {
                return bus.room_from(now, cycles[access as usize], self.clock.period_ticks()).max(room);
            }
            // The table of a device says what a turn of its own bus takes.
            (Some((_, of)), Transport::Bursts { .. }) if of == medium => bus.free,
            (Some((Direction::Read, _)), _) if access == Direction::Write => bus.free + self.turns[0],
            (Some((Direction::Write, _)), _) if access == Direction::Read => bus.free + self.turns[1] + to_data,
            _ => bus.free,
        };
        ready.saturating_sub(to_data).max(room)
    }

    /// The earliest time from `now` on at which the place's bank, its row being open (or written directly),
    /// can take a column command.
    pub fn bank_ready(&self, place: DeviceRow, access: Direction, now: Time) -> Time {
        self.bank_times(place.medium, access, now).column(place.bank)
    }

    /// When the banks of a medium take commands, from `now` on.
    #[inline]
    pub fn bank_times(&self, medium: Medium, access: Direction, now: Time) -> BankTimes<'_> {
        let (table, act) = (&self.tables[medium as usize], act_of(access));
        let direct = access == Direction::Write && self.writes_without_row(medium);
        BankTimes {
            media: self,
            table,
            medium,
            access,
            now,
            first: self.first_of(medium),
            columns: table.of_banks(act),
            above: table.held_at(act),
            direct,
            several_buses: self.buses.len() > 1,
        }
    }

    /// The data bus of a place.
    fn lane(&self, place: DeviceRow) -> usize {
        match self.devices[place.medium as usize].lane_level {
            0 => 0,
            level => self.tables[place.medium as usize].index_at(self.in_device(place), level),
        }
    }

    /// The gap between column commands that alone kept one that is issued at `at` from an earlier edge, if
    /// one did.
    fn held_by(&self, place: DeviceRow, access: Direction, at: Time) -> Option<ColumnGap> {
        let (medium, bank, act) = (place.medium as usize, self.in_device(place), act_of(access));
        let table = &self.tables[medium];
        let last_edge = at.saturating_sub(self.clock.cycles(1));
        // Mostly no gap reaches beyond the edge before.
        let (of_medium, of_bank) = (table.of_channel(act), table.of_bank(bank, act));
        if of_medium <= last_edge && of_bank <= last_edge {
            return None;
        }
        let lane = self.lane(place);
        let turns = matches!(self.buses[lane].last, Some((Direction::Write, of)) if of == place.medium && access == Direction::Read);
        let of_bus = self.bus_ready(lane, place.medium, access, last_edge);
        let alone = self.alone(place, access);
        let rest = of_bus.max(alone);
        match () {
            () if of_bank.max(rest) <= last_edge => Some(ColumnGap::Medium),
            () if of_medium.max(rest) <= last_edge && alone < of_bank => {
                Some(if turns && self.is_of_table(place.medium) { ColumnGap::Turn } else { ColumnGap::Group })
            }
            () => None,
        }
    }

    /// When the bank alone takes a column command.
    fn alone(&self, place: DeviceRow, access: Direction) -> Time {
        let (bank, table) = (self.in_device(place), &self.tables[place.medium as usize]);
        if access == Direction::Write && self.writes_without_row(place.medium) {
            table.of_cells(bank)
        } else {
            table.of_bank_alone(bank, act_of(access))
        }
    }

    /// The device comes from a table.
    fn is_of_table(&self, medium: Medium) -> bool {
        matches!(self.devices[medium as usize].transport, Transport::Bursts { .. })
    }

    /// The least time between activations that alone kept one that may come at `at` from an earlier edge.
    pub fn opening_held_by(&self, place: DeviceRow, at: Time) -> Option<RowGap> {
        let (bank, table) = (self.in_device(place), &self.tables[place.medium as usize]);
        let last_edge = at.saturating_sub(self.clock.cycles(1));
        let (windows, others) = (table.windows_at(bank), table.opens_but_for_windows(bank));
        let alone = table.of_bank_alone(bank, Act::Open);
        match () {
            () if windows > last_edge && others <= last_edge => Some(RowGap::Window),
            () if others > last_edge && windows.max(alone) <= last_edge => Some(RowGap::Banks),
            () => None,
        }
    }

    /// Issues a column command at `at` for `bytes` bytes. Returns when its data has crossed the bus and when
    /// the media has finished with it (for a read the same).
    ///
    /// # Panics
    /// When it is too early.
    pub fn column(&mut self, place: DeviceRow, access: Direction, bytes: u32, at: Time) -> Transfer {
        self.transfer(place, access, (bytes, bytes), at, 0)
    }

    /// Issues a write of `mask`'s bytes of a line: as [`Media::column`], but a write straight to the cells
    /// that covers only a part of a granule reads it first (sensing and column read).
    ///
    /// # Panics
    /// When it is too early.
    pub fn write(&mut self, place: DeviceRow, mask: u128, at: Time) -> Transfer {
        let device = &self.devices[place.medium as usize];
        let before = match device.writes {
            Writes::Cells { granule: Some(granule), .. } if covers_a_part(mask, granule) => device.rcd + device.cl,
            _ => 0,
        };
        // The bus carries whole sectors, whatever the devices are charged.
        let bytes = (sectors_touched(mask).count_ones() * SECTOR_BYTES, self.write_rate.charge.bytes(mask));
        self.transfer(place, Direction::Write, bytes, at, before)
    }

    /// Of bytes on the bus, and bytes that a bound of writes is charged.
    fn transfer(
        &mut self,
        place: DeviceRow,
        access: Direction,
        (bytes, charged): (u32, u32),
        at: Time,
        read_first: Time,
    ) -> Transfer {
        let earliest = self.channel_ready(place.medium, access, at).max(self.bank_ready(place, access, at));
        assert!(earliest <= at, "column command at {at}, too early");
        let held_by = self.held_by(place, access, at);
        let (lane, bank, medium) = (self.lane(place), self.in_device(place), place.medium as usize);
        let (commands, last, burst) = self.book(place, access, bytes, lane, at);
        let device = &self.devices[medium];
        let (writes, cl, wl, wr) = (device.writes, device.cl, device.wl, device.wr);
        let data_end = last + if access == Direction::Read { cl } else { wl } + burst;
        self.tables[medium].issue(act_of(access), bank, at, last, commands);
        let table = &mut self.tables[medium];
        let row = &mut self.rows[usize::from(place.bank)];
        let mut media_done = match (access, writes) {
            (Direction::Read, _) => data_end,
            (Direction::Write, Writes::Buffer) => {
                self.buffers.of_mut(bank).write(place.row, data_end);
                data_end
            }
            // Cells may be driven for longer than the bank is held: under `latency` writes overlap.
            (Direction::Write, Writes::Cells { cells, hold, .. }) => {
                let free = (at + read_first + hold).max(data_end);
                table.hold_bank(bank, &[Act::Read, Act::Write, Act::Close, Act::Open], free);
                (at + read_first + cells).max(data_end)
            }
            (Direction::Write, Writes::Row { cells, when, .. }) => {
                row.dirty = when == RowWriteWhen::Close;
                let written = if row.dirty { data_end } else { data_end + cells };
                row.written_at = written.max(data_end + wr);
                table.hold_bank(bank, &[Act::Close], row.written_at);
                row.written_at
            }
        };
        // What the devices take of writes bounds every mode, and a write is not in its cells before they have
        // taken it. A buffer has such a bound of its own.
        if access == Direction::Write && !self.has_buffer(place.medium) && place.medium == Medium::Nvm {
            self.write_free = self.write_rate.next(self.write_free, at, charged);
            media_done = media_done.max(self.write_free);
        }
        let bus = &mut self.buses[lane];
        (bus.free, bus.last) = (data_end.max(bus.free), Some((access, place.medium)));
        Transfer { data_end, media_done, held_by, last_command: last }
    }

    /// Gives a request its column commands: how many, when the last one goes, and how long its data takes
    /// from where that of its first command would end.
    fn book(&mut self, place: DeviceRow, access: Direction, bytes: u32, lane: usize, at: Time) -> (u32, Time, Time) {
        match self.devices[place.medium as usize].transport {
            Transport::Stream { bytes_per_cycle } => {
                let commands = bytes.div_ceil(plain::COMMAND_BYTES);
                let unit = self.clock.cycles(u64::from(plain::COMMAND_BYTES.div_ceil(bytes_per_cycle)));
                let burst = self.clock.cycles(u64::from(bytes.div_ceil(bytes_per_cycle)));
                (commands, at + burst.saturating_sub(unit), burst.min(unit))
            }
            Transport::Bursts { atom_bytes, cycles, spacing_cycles, slots: of_command, data_cycles } => {
                let commands = bytes.div_ceil(atom_bytes);
                let request = Bursts {
                    way: (access, place.medium),
                    burst_cycles: cycles[access as usize],
                    spacing_cycles: spacing_cycles[access as usize],
                    slot_cycles: of_command[access as usize],
                };
                let (buses, slots) = (&mut self.buses, &mut self.slots);
                let times = buses[lane].book(at, commands, request, slots, self.clock.period_ticks());
                let last = times.last().copied().unwrap_or(at);
                if self.trace.is_some() {
                    let bank = self.in_device(place);
                    times.iter().for_each(|&at| self.note(place.medium, act_of(access), (bank, place.row), at));
                }
                (commands, last, self.clock.cycles(u64::from(data_cycles)))
            }
        }
    }

    /// Goes on with refreshes of DRAM, of which requests wait for the banks that `wanted` says, where there
    /// is something to do. Returns when to look again while one is pending.
    #[inline]
    pub fn refresh(&mut self, now: Time, wanted: impl Fn(BankId) -> bool, counts: &mut RefreshCounts) -> Time {
        if self.refreshing.next <= now {
            self.go_on_with_refreshes(now, &wanted, counts);
        }
        self.refreshing.pending_at
    }

    fn go_on_with_refreshes(&mut self, now: Time, wanted: &dyn Fn(BankId) -> bool, counts: &mut RefreshCounts) {
        let (refreshing, table) = (&mut self.refreshing, &mut self.tables[Medium::Dram as usize]);
        let (mut pending_at, mut next) = (Time::MAX, Time::MAX);
        for rank in 0..refreshing.ranks.len() {
            counts.refreshes += refreshing.skip_rounds(rank, now);
            loop {
                let is_wanted = refreshing.target(rank).iter().any(|&bank| wanted(bank));
                if !refreshing.is_pending(rank, now, is_wanted) {
                    break;
                }
                let since = refreshing.ranks[rank].pending.unwrap_or(now);
                let target = refreshing.target(rank);
                let is_open = |bank: &&u16| self.rows[usize::from(**bank)].open.is_some();
                let whole = refreshing.is_of_all() && table.command(Act::CloseAll).is_some();
                let act = match target.iter().any(|bank| is_open(&bank)) {
                    true if whole => Act::CloseAll,
                    true => Act::Close,
                    false => Act::Refresh,
                };
                // What is closed bank by bank is closed one after another; all else goes to the whole target.
                let of = |bank: &u16| table.of_bank(usize::from(*bank), act).max(table.of_channel(act));
                let next_open = target.iter().filter(is_open).min_by_key(|bank| of(bank));
                let meant = match next_open {
                    Some(bank) if act == Act::Close => std::slice::from_ref(bank),
                    _ => target,
                };
                let at = self.clock.edge_at_or_after(meant.iter().map(of).fold(since, Time::max));
                let pending = at > now || act != Act::Refresh;
                for &bank in target {
                    let word = &mut self.held_back[usize::from(bank / 64)];
                    *word = *word & !(1 << (bank % 64)) | u64::from(pending) << (bank % 64);
                }
                if at > now {
                    pending_at = pending_at.min(at);
                    break;
                }
                // A command to all banks is one to each: what they share waits for it once.
                for &bank in meant {
                    table.issue(act, usize::from(bank), at, at, 1);
                    if act != Act::Refresh {
                        self.rows[usize::from(bank)].open = None;
                        counts.closed = true;
                    }
                }
                if let (Some(trace), Some(command)) = (&mut self.trace, table.command(act)) {
                    trace.extend(meant.iter().map(|&bank| CommandRecord { at, command, bank, row: 0 }));
                }
                if act == Act::Refresh {
                    counts.refreshes += 1;
                    counts.blocked += if is_wanted { at - since } else { 0 };
                    refreshing.done(rank);
                }
            }
            // One that was put off is looked at again at each edge.
            let own = &refreshing.ranks[rank];
            next = next.min(if own.owed > 0 { now } else { own.due });
        }
        (refreshing.next, refreshing.pending_at) = (next.min(pending_at), pending_at);
    }

    /// When a refresh falls due next, or may go on.
    #[inline]
    pub fn next_refresh(&self) -> Time {
        self.refreshing.next
    }

    /// A refresh of the bank is pending.
    pub fn is_held_back(&self, bank: BankId) -> bool {
        self.held_back[usize::from(bank / 64)] >> (bank % 64) & 1 == 1
    }

    /// 64 banks, those whose refresh is pending.
    #[inline]
    pub fn held_back(&self, word: usize) -> u64 {
        self.held_back[word]
    }
}

/// When banks of a medium take commands: what is asked of every bank at an edge, with what is the same for
/// all of them looked up once.
#[derive(Debug)]
pub struct BankTimes<'a> {
    media: &'a Media,
    table: &'a CommandTimes,
    medium: Medium,
    access: Direction,
    now: Time,
    first: BankId,
    columns: &'a [Time],
    /// Levels between the channel and banks that hold column commands back.
    above: &'a [u8],
    /// Writes go to cells, without a row.
    direct: bool,
    several_buses: bool,
}

impl BankTimes<'_> {
    /// When a bank takes a column command, its row being open (or written directly).
    #[inline]
    pub fn column(&self, bank: BankId) -> Time {
        let own = usize::from(bank - self.first);
        let mut ready = self.columns[own];
        if !self.above.is_empty() {
            ready = ready.max(self.table.of_bank(own, act_of(self.access)));
        }
        if self.direct {
            ready = ready.max(self.table.of_cells(own));
        }
        if self.several_buses {
            let place = DeviceRow { bank, row: 0, medium: self.medium };
            ready = ready.max(self.media.bus_ready(self.media.lane(place), self.medium, self.access, self.now));
        }
        ready
    }
}

/// The table's command of a column access.
#[inline]
fn act_of(access: Direction) -> Act {
    if access == Direction::Read { Act::Read } else { Act::Write }
}

/// Some granule of a line has bytes in `mask`, but not all of them.
fn covers_a_part(mask: u128, granule: u32) -> bool {
    let full = u128::MAX >> (128 - granule);
    (0..128 / granule).map(|at| mask >> (at * granule) & full).any(|bytes| bytes != 0 && bytes != full)
}

/// All bytes of the granules that have one in `mask`.
fn whole_granules(mask: u128, granule: u32) -> u128 {
    let full = u128::MAX >> (128 - granule);
    let granules = (0..128 / granule).map(|at| full << (at * granule));
    granules.filter(|bytes| mask & bytes != 0).fold(0, |all, bytes| all | bytes)
}

/// A bandwidth.
#[derive(Debug, Clone, Copy)]
struct Rate {
    mb_s: u32,
    charge: WriteCharge,
    base: Timebase,
}

impl Rate {
    /// When the next write may come after one of `bytes` at `at`. The medium took the one before until
    /// `free`.
    fn next(self, free: Time, at: Time, bytes: u32) -> Time {
        // A MB/s is a byte in 1,000,000 ps.
        free.max(at) + self.base.ticks_of_ps((u64::from(bytes) * 1_000_000).div_ceil(u64::from(self.mb_s)))
    }
}

/// A least time between column commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnGap {
    /// `t_ccd_ns`.
    Medium,
    /// `t_ccd_l_ns`.
    Group,
    /// From writes of its rank or group to reads, of a device from a table.
    Turn,
}

/// A least time between activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowGap {
    /// From one to the next, of different banks: `t_rrd_ns`.
    Banks,
    /// From the fourth last: tFAW.
    Window,
}

/// What refreshes came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RefreshCounts {
    /// Refreshes issued.
    pub refreshes: u64,
    /// Ticks from the time when one fell due to its issue, where requests waited for its banks.
    pub blocked: Time,
    /// Rows were closed for one.
    pub closed: bool,
}

/// When a column access is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// The last byte has crossed the data bus.
    pub data_end: Time,
    /// For a write: the data is in the cells, or in a row buffer whose closing writes them
    /// ([`Media::written_at`]).
    pub media_done: Time,
    /// Without this gap its command would have gone at an earlier edge.
    pub held_by: Option<ColumnGap>,
    /// When its last column command goes.
    pub last_command: Time,
}

#[cfg(test)]
mod tests;
