//! Timing of one channel's memory devices: banks, rows, the data bus. Pure arithmetic; it schedules nothing.
//!
//! DRAM reads and writes go through an open row: precharge (`t_rp`), activate (`t_rcd`), then column accesses. NVM
//! reads do too (the row buffer holds what was sensed); an NVM write drives the cells directly and occupies its bank
//! for `cell_write`, long after the write was *accepted*: acceptance is the controller's business, not the media's.
//! Both media share the channel's data bus; a change of its direction costs a turnaround.
//!
//! Source: the shape of gem5's `NVMInterface` and of DRAM timing tables (JEDEC names); the numbers are each preset's.
//! Invariants: a bank does one thing at a time; the data bus carries one burst at a time; a command that comes too
//! early panics. Commands are issued on memory clock edges by the controller. Not modelled: refresh, bank groups, command-bus slots beyond one row and one column command
//! a cycle, wear.

use crate::engine::{Clock, Time, Timebase};
use crate::kernel::memory::Medium;
use crate::spec;

use super::msg::{SECTOR_BYTES, sectors_touched};
use crate::spec::Nanos;

spec! {
    /// One medium's device timing.
    pub struct MediaSpec {
        /// Banks of one channel.
        banks: u32 where 1..=256,
        /// Bytes of one row (row buffer) of a bank.
        row_bytes: u32 where 128..=65536,
        /// Activate to column command: sensing a row.
        t_rcd_ns: Nanos,
        /// Column read to its first data.
        t_cl_ns: Nanos,
        /// Column write to its first data.
        t_wl_ns: Nanos,
        /// Precharge: closing a row.
        t_rp_ns: Nanos,
        /// Activate to precharge, least.
        t_ras_ns: Nanos,
        /// Column command to column command of the medium, least.
        t_ccd_ns: Nanos,
        /// Activate to activate of different banks, least.
        t_rrd_ns: Nanos,
        /// End of write data to precharge, least (write recovery).
        t_wr_ns: Nanos,
        /// How long a write occupies its bank, from its command, when it drives the cells directly; 0 when writes go through the row buffer.
        cell_write_ns: Nanos,
        /// Bytes whose cells are written together: a direct write of a part of them reads the rest first.
        write_granule_bytes: u32 where 32..=128,
    }
}

spec! {
    /// A channel's data bus.
    pub struct BusSpec {
        /// Bytes moved in one memory cycle.
        bytes_per_cycle: u32 where 1..=256,
        /// End of read data to first write data, least.
        read_to_write_ns: Nanos,
        /// End of write data to the next column read, least.
        write_to_read_ns: Nanos,
    }
}

/// Read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Column read.
    Read,
    /// Column write.
    Write,
}

/// A bank's place in the channel: DRAM banks first, then NVM banks.
pub type BankId = u16;

/// Where a channel-local address lies in the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
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
    rrd: Time,
    wr: Time,
    cell_write: Time,
    granule: u32,
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
            rrd: t(spec.t_rrd_ns),
            wr: t(spec.t_wr_ns),
            cell_write: t(spec.cell_write_ns),
            granule: spec.write_granule_bytes,
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Bank {
    open: Option<u32>,
    /// Earliest column command.
    column_at: Time,
    /// Earliest precharge, or activate when no row is open.
    precharge_at: Time,
}

/// The devices and the data bus of one channel.
#[derive(Debug, Clone)]
pub struct Media {
    clock: Clock,
    devices: [Ticks; 2],
    banks: Vec<Bank>,
    last_column: [Option<Time>; 2],
    last_activate: [Option<Time>; 2],
    bus_free: Time,
    bus_last: Option<Access>,
    read_to_write: Time,
    write_to_read: Time,
    bytes_per_cycle: u32,
}

impl Media {
    /// Idle devices with every row closed.
    pub fn new(dram: &MediaSpec, nvm: &MediaSpec, bus: &BusSpec, clock: Clock, base: Timebase) -> Self {
        let devices = [Ticks::new(dram, base), Ticks::new(nvm, base)];
        Media {
            clock,
            devices,
            banks: vec![Bank::default(); (dram.banks + nvm.banks) as usize],
            last_column: [None; 2],
            last_activate: [None; 2],
            bus_free: 0,
            bus_last: None,
            read_to_write: base.ticks_of_ps(bus.read_to_write_ns.ps),
            write_to_read: base.ticks_of_ps(bus.write_to_read_ns.ps),
            bytes_per_cycle: bus.bytes_per_cycle,
        }
    }

    /// The bank and row of a channel-local address: consecutive rows go to different banks, by a hash of the row's
    /// number so that power-of-two strides do not share a bank.
    pub fn place(&self, medium: Medium, channel_address: u64) -> Place {
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
        Place { bank: (u64::from(first) + bank) as BankId, row: row as u32, medium }
    }

    /// Banks of the channel, those of both devices.
    pub fn banks(&self) -> usize {
        self.banks.len()
    }

    /// The row that is open in a bank.
    #[inline]
    pub fn open_row_of(&self, bank: BankId) -> Option<u32> {
        self.banks[usize::from(bank)].open
    }

    /// Row 0 of a bank.
    #[inline]
    pub fn place_in(&self, bank: BankId) -> Place {
        let medium = if u32::from(bank) < self.devices[0].banks { Medium::Dram } else { Medium::Nvm };
        Place { bank, row: 0, medium }
    }

    /// A write to this medium needs no open row.
    pub fn writes_cells_directly(&self, medium: Medium) -> bool {
        self.devices[medium as usize].cell_write > 0
    }

    /// The earliest time at which the place's row can start to be opened, not rounded to an edge.
    pub fn row_ready(&self, place: Place) -> Time {
        let device = &self.devices[place.medium as usize];
        let bank = &self.banks[usize::from(place.bank)];
        let after_other = self.last_activate[place.medium as usize].map_or(0, |t| t + device.rrd);
        let precharge = if bank.open.is_some() { device.rp } else { 0 };
        bank.precharge_at.max(after_other.saturating_sub(precharge))
    }

    /// Opens the place's row at `at` (precharging first when another row is open).
    ///
    /// # Panics
    /// When it is too early.
    pub fn open_row(&mut self, place: Place, at: Time) {
        assert!(self.row_ready(place) <= at, "row command at {at}, ready at {}", self.row_ready(place));
        let device = self.devices[place.medium as usize];
        let bank = &mut self.banks[usize::from(place.bank)];
        let activate = at + if bank.open.is_some() { device.rp } else { 0 };
        bank.open = Some(place.row);
        bank.column_at = activate + device.rcd;
        bank.precharge_at = activate + device.ras.max(device.rcd);
        self.last_activate[place.medium as usize] = Some(activate);
    }

    /// The earliest time at which the bus and the medium, banks apart, can take a column command.
    pub fn channel_ready(&self, medium: Medium, access: Access) -> Time {
        let device = &self.devices[medium as usize];
        let to_data = if access == Access::Read { device.cl } else { device.wl };
        let bus_ready = match (self.bus_last, access) {
            (Some(Access::Read), Access::Write) => self.bus_free + self.read_to_write,
            (Some(Access::Write), Access::Read) => self.bus_free + self.write_to_read + to_data,
            _ => self.bus_free,
        };
        let after_other = self.last_column[medium as usize].map_or(0, |t| t + device.ccd);
        after_other.max(bus_ready.saturating_sub(to_data))
    }

    /// The earliest time at which the place's bank, its row being open (or written directly), can take a column command.
    pub fn bank_ready(&self, place: Place, access: Access) -> Time {
        let bank = &self.banks[usize::from(place.bank)];
        if access == Access::Write && self.writes_cells_directly(place.medium) {
            bank.column_at.max(bank.precharge_at)
        } else {
            bank.column_at
        }
    }

    /// Issues a column command at `at` for `bytes` bytes. Returns when its data has crossed the bus and when the
    /// media has finished with it (for a read the same).
    ///
    /// # Panics
    /// When it is too early.
    pub fn column(&mut self, place: Place, access: Access, bytes: u32, at: Time) -> Transfer {
        self.transfer(place, access, bytes, at, 0)
    }

    /// Issues a write of `mask`'s bytes of a line: as [`Media::column`], but a write straight to the cells that covers
    /// only a part of a granule reads it first (sensing and column read).
    ///
    /// # Panics
    /// When it is too early.
    pub fn write(&mut self, place: Place, mask: u128, at: Time) -> Transfer {
        let device = self.devices[place.medium as usize];
        let partial = device.cell_write > 0 && covers_a_part(mask, device.granule);
        let before = if partial { device.rcd + device.cl } else { 0 };
        self.transfer(place, Access::Write, sectors_touched(mask).count_ones() * SECTOR_BYTES, at, before)
    }

    fn transfer(&mut self, place: Place, access: Access, bytes: u32, at: Time, read_first: Time) -> Transfer {
        assert!(
            self.channel_ready(place.medium, access).max(self.bank_ready(place, access)) <= at,
            "column command at {at}, too early"
        );
        let device = self.devices[place.medium as usize];
        let burst = self.clock.cycles(u64::from(bytes.div_ceil(self.bytes_per_cycle)));
        let bank = &mut self.banks[usize::from(place.bank)];
        let data_end = at + if access == Access::Read { device.cl } else { device.wl } + burst;
        let media_done = match access {
            Access::Read => {
                bank.precharge_at = bank.precharge_at.max(at + burst);
                data_end
            }
            Access::Write if device.cell_write > 0 => {
                let done = (at + read_first + device.cell_write).max(data_end);
                bank.column_at = done;
                bank.precharge_at = bank.precharge_at.max(done);
                done
            }
            Access::Write => {
                bank.precharge_at = bank.precharge_at.max(data_end + device.wr);
                data_end + device.wr
            }
        };
        self.last_column[place.medium as usize] = Some(at);
        self.bus_free = data_end;
        self.bus_last = Some(access);
        Transfer { data_end, media_done }
    }
}

/// Some granule of a line has bytes in `mask`, but not all of them.
fn covers_a_part(mask: u128, granule: u32) -> bool {
    let full = u128::MAX >> (128 - granule);
    (0..128 / granule).map(|at| mask >> (at * granule) & full).any(|bytes| bytes != 0 && bytes != full)
}

/// When a column access is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// The last byte has crossed the data bus.
    pub data_end: Time,
    /// The bank has finished with it: for a write, the data is in the cells.
    pub media_done: Time,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(ns: u64) -> Nanos {
        Nanos { ps: ns * 1000 }
    }

    /// DRAM 124 + 36 ns, NVM the same with a 480 ns cell write; a 1 GHz clock, so a tick is a nanosecond.
    fn media() -> Media {
        let dram = MediaSpec {
            banks: 4,
            row_bytes: 2048,
            t_rcd_ns: ns(124),
            t_cl_ns: ns(36),
            t_wl_ns: ns(20),
            t_rp_ns: ns(15),
            t_ras_ns: ns(130),
            t_ccd_ns: ns(4),
            t_rrd_ns: ns(6),
            t_wr_ns: ns(12),
            cell_write_ns: ns(0),
            write_granule_bytes: 32,
        };
        let nvm = MediaSpec { cell_write_ns: ns(480), ..dram.clone() };
        let bus = BusSpec { bytes_per_cycle: 32, read_to_write_ns: ns(7), write_to_read_ns: ns(9) };
        Media::new(&dram, &nvm, &bus, Clock::of_period(1), Timebase::of_khz(&[1_000_000]).unwrap())
    }

    fn at(bank: BankId, row: u32) -> Place {
        Place { bank, row, medium: if bank < 4 { Medium::Dram } else { Medium::Nvm } }
    }

    /// The column command is blocked until just before `t` and ready on time.
    fn assert_column_earliest(m: &Media, place: Place, access: Access, t: Time) {
        assert_eq!(m.channel_ready(place.medium, access).max(m.bank_ready(place, access)), t);
        let issue = |at| std::panic::catch_unwind(|| m.clone().column(place, access, 32, at));
        assert!(issue(t - 1).is_err(), "early");
        assert!(issue(t).is_ok(), "on time");
    }

    #[test]
    fn a_write_of_a_part_of_a_granule_reads_it_first() {
        let whole = media().write(at(4, 0), u128::from(u32::MAX), 0);
        let part = media().write(at(4, 0), 0xffff, 0);
        assert_eq!(part.media_done - whole.media_done, 124 + 36);
        // Through a row buffer there is nothing to read.
        let dram = |mask| {
            let mut m = media();
            m.open_row(at(0, 0), 0);
            m.write(at(0, 0), mask, 124).media_done
        };
        assert_eq!(dram(0xffff), dram(u128::from(u32::MAX)));
        assert!(covers_a_part(u128::from(u32::MAX), 64) && !covers_a_part(u128::from(u64::MAX) << 64, 64));
    }

    #[test]
    fn read_waits_trcd_after_activate_and_data_follow_after_tcl() {
        let mut m = media();
        m.open_row(at(0, 5), 100);
        assert_column_earliest(&m, at(0, 5), Access::Read, 224);
        let transfer = m.column(at(0, 5), Access::Read, 128, 224);
        assert_eq!(transfer.data_end, 224 + 36 + 4);
    }

    #[test]
    fn a_second_column_waits_tccd_and_for_the_bus() {
        let mut m = media();
        m.open_row(at(0, 5), 0);
        m.column(at(0, 5), Access::Read, 32, 124);
        assert_column_earliest(&m, at(0, 5), Access::Read, 128);
        m.column(at(0, 5), Access::Read, 256, 128);
        assert_column_earliest(&m, at(0, 5), Access::Read, 136);
    }

    #[test]
    fn another_row_waits_tras_then_trp() {
        let mut m = media();
        m.open_row(at(0, 5), 0);
        assert_eq!(m.row_ready(at(0, 6)), 130, "tRAS");
        m.open_row(at(0, 6), 130);
        assert_column_earliest(&m, at(0, 6), Access::Read, 130 + 15 + 124);
    }

    #[test]
    fn activates_of_two_banks_are_trrd_apart() {
        let mut m = media();
        m.open_row(at(0, 5), 10);
        assert_eq!(m.row_ready(at(1, 5)), 16);
    }

    #[test]
    fn precharge_after_a_write_waits_write_recovery() {
        let mut m = media();
        m.open_row(at(0, 5), 0);
        let written = m.column(at(0, 5), Access::Write, 128, 124);
        assert_eq!(written, Transfer { data_end: 148, media_done: 160 });
        assert_eq!(m.row_ready(at(0, 6)), 160);
    }

    #[test]
    fn the_bus_turns_around_both_ways() {
        let mut m = media();
        m.open_row(at(0, 5), 0);
        m.column(at(0, 5), Access::Read, 32, 200); // data until 237
        assert_column_earliest(&m, at(0, 5), Access::Write, 237 + 7 - 20);
        m.column(at(0, 5), Access::Write, 32, 224); // data until 245
        assert_column_earliest(&m, at(0, 5), Access::Read, 245 + 9);
    }

    #[test]
    fn an_nvm_write_needs_no_row_but_holds_its_bank_for_the_cell_write() {
        let mut m = media();
        let written = m.column(at(4, 9), Access::Write, 128, 10);
        assert_eq!(written, Transfer { data_end: 34, media_done: 490 });
        assert_column_earliest(&m, at(4, 1), Access::Write, 490);
        assert_eq!(m.row_ready(at(4, 1)), 490);
        assert_eq!(m.bank_ready(at(5, 1), Access::Write), 0, "another bank is free");
    }

    #[test]
    fn consecutive_rows_go_to_different_banks_of_their_medium() {
        let m = media();
        let banks: Vec<_> = (0..4).map(|r| m.place(Medium::Nvm, r * 2048).bank).collect();
        assert_eq!(banks, [4, 5, 6, 7]);
        let of_stride = |stride: u64| -> std::collections::BTreeSet<_> {
            (0..64).map(|r| m.place(Medium::Dram, r * stride).bank).collect()
        };
        assert_eq!(of_stride(2048 * 4).len(), 4, "a stride over all banks does not camp");
    }
}
