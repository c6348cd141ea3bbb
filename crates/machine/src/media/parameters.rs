//! Parameters of memory devices and of a channel's data bus; what a write to NVM costs, as papers read it.
//!
//! Source: the doc of each key says which simulators have it; `media.rs` has the rules.

use durawarp_base::choice;
use durawarp_base::spec;
use durawarp_base::spec::Nanos;

use crate::device::{PLAIN, RefreshPolicy};
use crate::msg::{SECTOR_BYTES, sectors_touched};

spec! {
    /// DRAM devices, which are read and written through rows: their timing, or which ones they are.
    pub struct MediaSpec {
        /// The device: a built-in name, a path to a `.toml` file of one, or `plain` for the timing of the
        /// keys below.
        device: String,
        /// Which of the device's speeds; empty for its first, and for a plain one.
        bin: String,
        /// Which of the device's sizes; empty for its first, and for a plain one.
        density: String,
        /// Timings of the device that are others here, between commas: `RFC = 295ns, FAW = 20`.
        timing: String,
        /// Ranks of one channel, of a device that has them.
        ranks: u32 where 1..=16,
        /// How it is refreshed: none, all_bank (of a rank at once), per_bank (one after another), same_bank
        /// (the same one of every group).
        refresh: RefreshPolicy,
        /// Ranks are refreshed one after another, not at once.
        refresh_stagger: bool,
        /// Refreshes that may wait for requests at most; JEDEC allows 8.
        refresh_postpone: u32 where 0..=8,
        /// Banks of one channel.
        banks: u32 where 1..=256,
        /// Bytes of one row (row buffer) of a bank.
        row_bytes: u32 where 64..=65536,
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
        /// Groups of banks: bank `i` belongs to group `i` modulo their number.
        bank_groups: u32 where 1..=16,
        /// Column command to column command of one bank group, least; what is longer than a sector is a
        /// command a sector.
        t_ccd_l_ns: Nanos,
        /// Activate to activate of different banks, least.
        t_rrd_ns: Nanos,
        /// End of write data to precharge, least (write recovery).
        t_wr_ns: Nanos,
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

choice! {
    /// What a write costs.
    pub enum WriteMode {
        /// Each write drives the cells: it needs no row, and holds its bank for `cell_write_ns` (gem5
        /// NVMInterface).
        Through = "through",
        /// Writes go to the open row, whose cells are written together (NVMain, Ramulator PCM, BROI).
        RowBuffer = "row_buffer",
        /// Writes take `cell_write_ns` and overlap: a bank is free after `write_hold_ns` (GPGPU-Sim, SBRP).
        Latency = "latency",
    }
}

choice! {
    /// When the cells of a row are written that writes went to.
    pub enum RowWriteWhen {
        /// Behind the last write to it, at once.
        Idle = "idle",
        /// When its bank needs another row, however long ago the write was.
        Close = "close",
    }
}

choice! {
    /// What a write takes of `write_bandwidth_mb_s`.
    pub enum WriteCharge {
        /// The bytes that it writes.
        Bytes = "bytes",
        /// The sectors of 32 B that it touches.
        Sector32 = "sector_32",
        /// A line of Optane's cells, 256 B: no buffer of the device joins writes to one.
        Line256 = "line_256",
    }
}

impl WriteCharge {
    /// Bytes that a write of these bytes of a line is charged.
    pub fn bytes(self, mask: u128) -> u32 {
        match self {
            WriteCharge::Bytes => mask.count_ones(),
            WriteCharge::Sector32 => sectors_touched(mask).count_ones() * SECTOR_BYTES,
            WriteCharge::Line256 => 256,
        }
    }
}

spec! {
    /// NVM devices: their timing, or which ones they are. Reads of a plain one go through rows, writes as
    /// `write_mode` says.
    pub struct NvmSpec {
        /// The device: a built-in name, a path to a `.toml` file of one, or `plain` for the timing of the
        /// keys below.
        device: String,
        /// Which of the device's speeds; empty for its first, and for a plain one.
        bin: String,
        /// Which of the device's sizes; empty for its first, and for a plain one.
        density: String,
        /// Timings of the device that are others here, between commas: `RFC = 295ns, FAW = 20`.
        timing: String,
        /// Banks of one channel.
        banks: u32 where 1..=256,
        /// Bytes of one row (row buffer) of a bank.
        row_bytes: u32 where 64..=65536,
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
        /// Groups of banks: bank `i` belongs to group `i` modulo their number.
        bank_groups: u32 where 1..=16,
        /// Column command to column command of one bank group, least; what is longer than a sector is a
        /// command a sector.
        t_ccd_l_ns: Nanos,
        /// Activate to activate of different banks, least.
        t_rrd_ns: Nanos,
        /// End of write data to precharge, least (write recovery). Under `row_buffer`.
        t_wr_ns: Nanos,
        /// What a write costs: through (each drives the cells and holds its bank), row_buffer (to the open
        /// row), latency (they overlap).
        write_mode: WriteMode,
        /// From a write's command until its bytes are in the cells. Under `through` and `latency`.
        cell_write_ns: Nanos,
        /// How long a write holds its bank. Under `latency`.
        write_hold_ns: Nanos,
        /// Bytes whose cells are written together: a write of a part of them reads the rest first. Under
        /// `through`.
        write_granule_bytes: u32 where 32..=128,
        /// Writing the cells of a row. Under `row_buffer`.
        row_write_ns: Nanos,
        /// When a row that was written to is written to its cells: idle (behind the last write), close
        /// (before another row). Under `row_buffer`.
        row_write_when: RowWriteWhen,
        /// A column write to the next column command of its bank, least. Under `row_buffer`.
        write_hit_ns: Nanos,
        /// What a row holds survives a power failure as its cells do. Under `row_buffer`, where the media
        /// alone are the persistence domain.
        row_buffer_durable: bool,
        /// Writes that the devices of a channel take, in every mode; as much as the bus carries is no bound.
        write_bandwidth_mb_s: u32 where 1..=10000000,
        /// What a write takes of `write_bandwidth_mb_s`: bytes (its own), sector_32 (the sectors of
        /// 32 B that it touches), line_256 (a line of Optane's cells: no buffer joins writes to one).
        write_charge: WriteCharge,
        /// Writes that a cell takes before it fails; 0 where there is no such bound. Nothing fails in a run:
        /// lifetimes follow from it.
        endurance_writes: u64,
        /// Size of a channel's devices. No address beyond it is refused: wear levelling spreads writes over
        /// it.
        capacity_gb: u32 where 1..=1048576,
    }
}

impl Default for MediaSpec {
    /// One plain bank that is never refreshed and answers at once.
    fn default() -> Self {
        let none = Nanos::default();
        MediaSpec {
            device: PLAIN.to_owned(),
            bin: String::new(),
            density: String::new(),
            timing: String::new(),
            ranks: 1,
            refresh: RefreshPolicy::None,
            refresh_stagger: false,
            refresh_postpone: 0,
            banks: 1,
            row_bytes: 64,
            t_rcd_ns: none,
            t_cl_ns: none,
            t_wl_ns: none,
            t_rp_ns: none,
            t_ras_ns: none,
            t_ccd_ns: none,
            bank_groups: 1,
            t_ccd_l_ns: none,
            t_rrd_ns: none,
            t_wr_ns: none,
        }
    }
}

impl NvmSpec {
    /// NVM with such rows, whose writes each drive the cells of a sector; the rest is of no effect then.
    pub fn through(rows: &MediaSpec, cell_write_ns: Nanos) -> Self {
        // Of readings that these writes do not have.
        let none = Nanos::default();
        NvmSpec {
            device: rows.device.clone(),
            bin: rows.bin.clone(),
            density: rows.density.clone(),
            timing: rows.timing.clone(),
            banks: rows.banks,
            row_bytes: rows.row_bytes,
            t_rcd_ns: rows.t_rcd_ns,
            t_cl_ns: rows.t_cl_ns,
            t_wl_ns: rows.t_wl_ns,
            t_rp_ns: rows.t_rp_ns,
            t_ras_ns: rows.t_ras_ns,
            t_ccd_ns: rows.t_ccd_ns,
            bank_groups: rows.bank_groups,
            t_ccd_l_ns: rows.t_ccd_l_ns,
            t_rrd_ns: rows.t_rrd_ns,
            t_wr_ns: rows.t_wr_ns,
            write_mode: WriteMode::Through,
            cell_write_ns,
            write_hold_ns: none,
            write_granule_bytes: 32,
            row_write_ns: none,
            row_write_when: RowWriteWhen::Idle,
            write_hit_ns: none,
            row_buffer_durable: false,
            write_bandwidth_mb_s: 10_000_000,
            write_charge: WriteCharge::Sector32,
            endurance_writes: 0,
            capacity_gb: 1,
        }
    }

    /// The timing of its rows.
    pub fn rows(&self) -> MediaSpec {
        MediaSpec {
            device: self.device.clone(),
            bin: self.bin.clone(),
            density: self.density.clone(),
            timing: self.timing.clone(),
            banks: self.banks,
            row_bytes: self.row_bytes,
            t_rcd_ns: self.t_rcd_ns,
            t_cl_ns: self.t_cl_ns,
            t_wl_ns: self.t_wl_ns,
            t_rp_ns: self.t_rp_ns,
            t_ras_ns: self.t_ras_ns,
            t_ccd_ns: self.t_ccd_ns,
            bank_groups: self.bank_groups,
            t_ccd_l_ns: self.t_ccd_l_ns,
            t_rrd_ns: self.t_rrd_ns,
            t_wr_ns: self.t_wr_ns,
            ..MediaSpec::default()
        }
    }

    /// Under `media`, what is in an open row is lost until it is written to its cells.
    pub fn loses_rows(&self) -> bool {
        self.write_mode == WriteMode::RowBuffer && !self.row_buffer_durable
    }
}
