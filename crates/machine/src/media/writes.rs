//! What a write costs, in ticks: the readings of [`NvmSpec`] as arithmetic.
//!
//! Source: `media.rs` has the rules. Invariant: DRAM is a row buffer whose cells need no write of their own.

use durawarp_base::spec::Nanos;
use durawarp_engine::{Time, Timebase};

use super::parameters::{NvmSpec, RowWriteWhen, WriteMode};

/// What a write costs, in ticks.
#[derive(Debug, Clone, Copy)]
pub(super) enum Writes {
    /// To the cells, without a row. A write of a part of a granule reads the rest first, where there are
    /// granules.
    Cells { cells: Time, hold: Time, granule: Option<u32> },
    /// To the open row.
    Row { cells: Time, when: RowWriteWhen, hit: Time },
    /// To the device's buffer, without a row.
    Buffer,
}

impl Writes {
    /// DRAM's: nothing but the write recovery.
    pub(super) const ROW: Writes = Writes::Row { cells: 0, when: RowWriteWhen::Idle, hit: 0 };

    pub(super) fn new(spec: &NvmSpec, base: Timebase) -> Self {
        let t = |ns: Nanos| base.ticks_of_ps(ns.ps);
        let cells = t(spec.cell_write_ns);
        match spec.write_mode {
            WriteMode::Through => Writes::Cells { cells, hold: cells, granule: Some(spec.write_granule_bytes) },
            WriteMode::Latency => Writes::Cells { cells, hold: t(spec.write_hold_ns), granule: None },
            WriteMode::RowBuffer => {
                Writes::Row { cells: t(spec.row_write_ns), when: spec.row_write_when, hit: t(spec.write_hit_ns) }
            }
        }
    }
}
