//! Timing of one channel's memory devices: banks, rows, the data bus. Pure arithmetic; it schedules nothing.
//!
//! DRAM reads and writes go through an open row: precharge (`t_rp`), activate (`t_rcd`), then column
//! accesses. NVM reads do too (the row buffer holds what was sensed). What an NVM write costs is a reading of
//! its own, [`WriteMode`]:
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
//! `write_bandwidth_mb_s` bounds what NVM takes of writes.
//!
//! Source: the shape of gem5's `NVMInterface` (`through`), of NVMain, Ramulator's PCM and BROI's Table III
//! (`row_buffer`), of GPGPU-Sim's `dram_latency` and SBRP's `pm_latency` (`latency`), and of DRAM timing
//! tables (JEDEC names); the numbers are each preset's. Invariants: a bank does one thing at a time; the data
//! bus carries one burst at a time; a command that comes too early panics. Commands are issued on memory
//! clock edges by the controller. Not modelled: refresh, tFAW, command-bus slots beyond one row and one
//! column command a cycle. Cells never fail: the controller counts
//! their writes.

mod parameters;
mod writes;

use durawarp_checkpoint::{state, value};
use durawarp_engine::{Clock, Time, Timebase};
use durawarp_kernel::memory::Medium;

use super::msg::{SECTOR_BYTES, sectors_touched};
use durawarp_base::spec::Nanos;

pub use parameters::{BusSpec, MediaSpec, NvmSpec, RowWriteWhen, WriteMode};
use writes::Writes;

/// Read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Column read.
    Read,
    /// Column write.
    Write,
}

value!(choice Direction { Read, Write });

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

/// Device timing in ticks.
#[derive(Debug, Clone, Copy)]
struct Ticks {
    banks: u32,
    row_shift: u32,
    rcd: Time,
    cl: Time,
    wl: Time,
    rp: Time,
    ras: Time,
    ccd: Time,
    ccd_l: Time,
    groups: u16,
    rrd: Time,
    wr: Time,
    writes: Writes,
}

impl Ticks {
    fn new(spec: &MediaSpec, base: Timebase) -> Self {
        let t = |ns: Nanos| base.ticks_of_ps(ns.ps);
        Ticks {
            banks: spec.banks,
            row_shift: spec.row_bytes.trailing_zeros(),
            rcd: t(spec.t_rcd_ns),
            cl: t(spec.t_cl_ns),
            wl: t(spec.t_wl_ns),
            rp: t(spec.t_rp_ns),
            ras: t(spec.t_ras_ns),
            ccd: t(spec.t_ccd_ns),
            ccd_l: t(spec.t_ccd_l_ns),
            groups: spec.bank_groups as u16,
            rrd: t(spec.t_rrd_ns),
            wr: t(spec.t_wr_ns),
            writes: Writes::ROW,
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct BankTiming {
    open: Option<u32>,
    /// Earliest column command.
    column_at: Time,
    /// Earliest precharge, or activate when no row is open.
    precharge_at: Time,
    /// The open row holds bytes that its closing writes to the cells.
    dirty: bool,
    /// When the bytes that were written to the open row are in its cells, unless it is dirty.
    row_written_at: Time,
}

value!(record BankTiming { open, column_at, precharge_at, dirty, row_written_at });

/// The devices and the data bus of one channel.
#[derive(Debug, Clone)]
pub struct Media {
    clock: Clock,
    devices: [Ticks; 2],
    banks: Vec<BankTiming>,
    last_column: [Option<Time>; 2],
    /// When each bank group can take its next column command, by medium.
    group_ready: [[Time; 16]; 2],
    last_activate: [Option<Time>; 2],
    bus_free: Time,
    bus_last: Option<Direction>,
    read_to_write: Time,
    write_to_read: Time,
    bytes_per_cycle: u32,
    /// What NVM takes of writes, and when it takes the next.
    write_rate: Rate,
    write_free: Time,
    loses_rows: bool,
}

state!(Media {
    sized: banks; saved: last_column, group_ready, last_activate, bus_free, bus_last, write_free; kept: clock, devices,
    read_to_write, write_to_read, bytes_per_cycle, write_rate, loses_rows
});

impl Media {
    /// Idle devices with every row closed.
    pub fn new(dram: &MediaSpec, nvm: &NvmSpec, bus: &BusSpec, clock: Clock, base: Timebase) -> Self {
        let writes = Writes::new(nvm, base);
        let devices = [Ticks::new(dram, base), Ticks { writes, ..Ticks::new(&nvm.rows(), base) }];
        Media {
            clock,
            devices,
            banks: vec![BankTiming::default(); (dram.banks + nvm.banks) as usize],
            last_column: [None; 2],
            group_ready: [[0; 16]; 2],
            last_activate: [None; 2],
            bus_free: 0,
            bus_last: None,
            read_to_write: base.ticks_of_ps(bus.read_to_write_ns.ps),
            write_to_read: base.ticks_of_ps(bus.write_to_read_ns.ps),
            bytes_per_cycle: bus.bytes_per_cycle,
            write_rate: Rate { mb_s: nvm.write_bandwidth_mb_s, base },
            write_free: 0,
            loses_rows: nvm.loses_rows(),
        }
    }

    /// The bank and row of a channel-local address: consecutive rows go to different banks, by a hash of the
    /// row's number so that power-of-two strides do not share a bank.
    pub fn place(&self, medium: Medium, channel_address: u64) -> DeviceRow {
        let device = &self.devices[medium as usize];
        let row_number = channel_address >> device.row_shift;
        let banks = u64::from(device.banks);
        let turned = |row: u64| row ^ row >> 4 ^ row >> 8;
        let (row, bank) = if device.banks.is_power_of_two() {
            let row = row_number >> device.banks.trailing_zeros();
            (row, (row_number + turned(row)) & (banks - 1))
        } else {
            let (row, column) = (row_number / banks, row_number % banks);
            (row, (column + turned(row)) % banks)
        };
        let first = if medium == Medium::Nvm { self.devices[0].banks } else { 0 };
        DeviceRow { bank: (u64::from(first) + bank) as BankId, row: row as u32, medium }
    }

    /// Banks of the channel, those of both devices.
    pub fn banks(&self) -> usize {
        self.banks.len()
    }

    /// The first bank of NVM, and how many there are.
    pub fn nvm_banks(&self) -> (BankId, BankId) {
        (self.devices[0].banks as BankId, self.devices[1].banks as BankId)
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
        self.banks[usize::from(bank)].open
    }

    /// Row 0 of a bank.
    #[inline]
    pub fn place_in(&self, bank: BankId) -> DeviceRow {
        let medium = if u32::from(bank) < self.devices[0].banks { Medium::Dram } else { Medium::Nvm };
        DeviceRow { bank, row: 0, medium }
    }

    /// A write to this medium needs no open row.
    pub fn writes_cells_directly(&self, medium: Medium) -> bool {
        matches!(self.devices[medium as usize].writes, Writes::Cells { .. })
    }

    /// How long closing a bank's row takes: writing what it holds, then precharging.
    fn closing(&self, place: DeviceRow) -> Time {
        let device = &self.devices[place.medium as usize];
        let bank = &self.banks[usize::from(place.bank)];
        match device.writes {
            Writes::Row { cells, .. } if bank.dirty => cells + device.rp,
            _ if bank.open.is_some() => device.rp,
            _ => 0,
        }
    }

    /// When the cells of the row that is open in a bank will hold its bytes, if no other write comes to it:
    /// `None` when nothing writes them before the row closes.
    pub fn row_written_at(&self, bank: BankId) -> Option<Time> {
        let bank = &self.banks[usize::from(bank)];
        (!bank.dirty).then_some(bank.row_written_at)
    }

    /// Writes the row of a bank to its cells at `at`, and leaves it open. Returns when that is done.
    ///
    /// # Panics
    /// When it is too early.
    pub fn write_row(&mut self, bank: BankId, at: Time) -> Time {
        let device = self.devices[self.place_in(bank).medium as usize];
        let bank = &mut self.banks[usize::from(bank)];
        assert!(bank.precharge_at <= at, "row written at {at}, ready at {}", bank.precharge_at);
        let Writes::Row { cells, .. } = device.writes else { unreachable!("only row buffers are written back") };
        let done = at + cells;
        *bank = BankTiming { column_at: done, precharge_at: done, row_written_at: done, dirty: false, ..*bank };
        done
    }

    /// A power failure loses what NVM's open rows hold.
    pub fn loses_rows(&self) -> bool {
        self.loses_rows
    }

    /// The earliest time at which [`Media::write_row`] may come.
    pub fn row_write_ready(&self, bank: BankId) -> Time {
        self.banks[usize::from(bank)].precharge_at
    }

    /// The earliest time at which the place's row can start to be opened, not rounded to an edge.
    pub fn row_ready(&self, place: DeviceRow) -> Time {
        let device = &self.devices[place.medium as usize];
        let bank = &self.banks[usize::from(place.bank)];
        let after_other = self.last_activate[place.medium as usize].map_or(0, |t| t + device.rrd);
        bank.precharge_at.max(after_other.saturating_sub(self.closing(place)))
    }

    /// Opens the place's row at `at`: another row that is open is written where it must be, and closed,
    /// first. Returns when the bytes of the row that was open are in cells.
    ///
    /// # Panics
    /// When it is too early.
    pub fn open_row(&mut self, place: DeviceRow, at: Time) -> Time {
        assert!(self.row_ready(place) <= at, "row command at {at}, ready at {}", self.row_ready(place));
        let device = self.devices[place.medium as usize];
        let closing = self.closing(place);
        let bank = &mut self.banks[usize::from(place.bank)];
        let activate = at + closing;
        let written_at = if bank.dirty { activate - device.rp } else { bank.row_written_at };
        *bank = BankTiming {
            open: Some(place.row),
            column_at: activate + device.rcd,
            precharge_at: activate + device.ras.max(device.rcd),
            dirty: false,
            row_written_at: written_at,
        };
        self.last_activate[place.medium as usize] = Some(activate);
        written_at
    }

    /// The earliest time at which the bus and the medium, banks apart, can take a column command.
    pub fn channel_ready(&self, medium: Medium, access: Direction) -> Time {
        let after_other = self.last_column[medium as usize].map_or(0, |t| t + self.devices[medium as usize].ccd);
        after_other.max(self.bus_ready(medium, access))
    }

    /// The earliest column command whose data finds the bus free, and NVM ready for what it writes.
    fn bus_ready(&self, medium: Medium, access: Direction) -> Time {
        let device = &self.devices[medium as usize];
        let to_data = if access == Direction::Read { device.cl } else { device.wl };
        let bus_ready = match (self.bus_last, access) {
            (Some(Direction::Read), Direction::Write) => self.bus_free + self.read_to_write,
            (Some(Direction::Write), Direction::Read) => self.bus_free + self.write_to_read + to_data,
            _ => self.bus_free,
        };
        let room = if access == Direction::Write && medium == Medium::Nvm { self.write_free } else { 0 };
        bus_ready.saturating_sub(to_data).max(room)
    }

    /// The earliest time at which the place's bank, its row being open (or written directly), can take a
    /// column command.
    pub fn bank_ready(&self, place: DeviceRow, access: Direction) -> Time {
        self.of_bank(place, access).max(self.group_ready[place.medium as usize][self.group(place)])
    }

    /// The same, whatever its group does.
    fn of_bank(&self, place: DeviceRow, access: Direction) -> Time {
        let bank = &self.banks[usize::from(place.bank)];
        if access == Direction::Write && self.writes_cells_directly(place.medium) {
            bank.column_at.max(bank.precharge_at)
        } else {
            bank.column_at
        }
    }

    /// The gap between column commands that alone kept one that is issued at `at` from an earlier edge, if
    /// one did.
    fn held_by(&self, place: DeviceRow, access: Direction, at: Time) -> Option<ColumnGap> {
        let medium = place.medium as usize;
        let of_medium = self.last_column[medium].map_or(0, |t| t + self.devices[medium].ccd);
        let of_group = self.group_ready[medium][self.group(place)];
        let last_edge = at.saturating_sub(self.clock.cycles(1));
        // Mostly no gap reaches beyond the edge before.
        if of_medium <= last_edge && of_group <= last_edge {
            return None;
        }
        let bus = self.bus_ready(place.medium, access);
        let rest = bus.max(self.of_bank(place, access));
        match () {
            () if of_group.max(rest) <= last_edge => Some(ColumnGap::Medium),
            () if of_medium.max(rest) <= last_edge => Some(ColumnGap::Group),
            () => None,
        }
    }

    /// The bank group of a place.
    fn group(&self, place: DeviceRow) -> usize {
        // Asked of every bank at every edge: no division where there is one group.
        match self.devices[place.medium as usize].groups {
            1 => 0,
            groups => usize::from(place.bank % groups),
        }
    }

    /// Issues a column command at `at` for `bytes` bytes. Returns when its data has crossed the bus and when
    /// the media has finished with it (for a read the same).
    ///
    /// # Panics
    /// When it is too early.
    pub fn column(&mut self, place: DeviceRow, access: Direction, bytes: u32, at: Time) -> Transfer {
        self.transfer(place, access, bytes, at, 0)
    }

    /// Issues a write of `mask`'s bytes of a line: as [`Media::column`], but a write straight to the cells
    /// that covers only a part of a granule reads it first (sensing and column read).
    ///
    /// # Panics
    /// When it is too early.
    pub fn write(&mut self, place: DeviceRow, mask: u128, at: Time) -> Transfer {
        let device = self.devices[place.medium as usize];
        let before = match device.writes {
            Writes::Cells { granule: Some(granule), .. } if covers_a_part(mask, granule) => device.rcd + device.cl,
            _ => 0,
        };
        self.transfer(place, Direction::Write, sectors_touched(mask).count_ones() * SECTOR_BYTES, at, before)
    }

    fn transfer(&mut self, place: DeviceRow, access: Direction, bytes: u32, at: Time, read_first: Time) -> Transfer {
        assert!(
            self.channel_ready(place.medium, access).max(self.bank_ready(place, access)) <= at,
            "column command at {at}, too early"
        );
        let held_by = self.held_by(place, access, at);
        let device = self.devices[place.medium as usize];
        let burst = self.clock.cycles(u64::from(bytes.div_ceil(self.bytes_per_cycle)));
        let bank = &mut self.banks[usize::from(place.bank)];
        let data_end = at + if access == Direction::Read { device.cl } else { device.wl } + burst;
        let mut media_done = match (access, device.writes) {
            (Direction::Read, _) => {
                bank.precharge_at = bank.precharge_at.max(at + burst);
                data_end
            }
            // Cells may be driven for longer than the bank is held: under `latency` writes overlap.
            (Direction::Write, Writes::Cells { cells, hold, .. }) => {
                let free = (at + read_first + hold).max(data_end);
                bank.column_at = free;
                bank.precharge_at = bank.precharge_at.max(free);
                (at + read_first + cells).max(data_end)
            }
            (Direction::Write, Writes::Row { cells, when, hit }) => {
                bank.column_at = bank.column_at.max(at + hit);
                bank.dirty = when == RowWriteWhen::Close;
                let written = if bank.dirty { data_end } else { data_end + cells };
                bank.row_written_at = written.max(data_end + device.wr);
                bank.precharge_at = bank.precharge_at.max(bank.row_written_at);
                bank.row_written_at
            }
        };
        // What the devices take of writes bounds every mode, and a write is not in its cells before they have
        // taken it.
        if access == Direction::Write && place.medium == Medium::Nvm {
            self.write_free = self.write_rate.next(self.write_free, at, bytes);
            media_done = media_done.max(self.write_free);
        }
        self.last_column[place.medium as usize] = Some(at);
        if device.groups > 1 {
            let group = self.group(place);
            // More than a sector is a command a sector, each of which the group spaces.
            let commands = Time::from(bytes.div_ceil(SECTOR_BYTES));
            self.group_ready[place.medium as usize][group] = at + device.ccd_l * commands;
        }
        self.bus_free = data_end;
        self.bus_last = Some(access);
        Transfer { data_end, media_done, held_by }
    }
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
}

/// When a column access is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// The last byte has crossed the data bus.
    pub data_end: Time,
    /// For a write: the data is in the cells, or in a row buffer whose closing writes them
    /// ([`Media::row_written_at`]).
    pub media_done: Time,
    /// Without this gap its command would have gone at an earlier edge.
    pub held_by: Option<ColumnGap>,
}

#[cfg(test)]
mod tests;
