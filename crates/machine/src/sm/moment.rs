//! What a verb of a part needs besides the parts themselves.

use durawarp_kernel::ir::MachineRead;
use durawarp_kernel::launch::Launch;

use super::handler_host::SmHost;
use super::launches::LaunchTable;
use super::record::Record;
use super::slots::WarpSlot;
use super::wiring::{SmParameters, SmWiring};

/// A cycle of the SM: which it is, for which launches, and who hears of what happens in it.
#[derive(Debug)]
pub(super) struct Moment<'a> {
    pub(super) cycle: u32,
    pub(super) launches: &'a LaunchTable,
    pub(super) p: &'a SmParameters,
    pub(super) w: &'a SmWiring,
    pub(super) host: &'a mut SmHost,
    pub(super) record: &'a mut Record,
}

impl<'a> Moment<'a> {
    /// A warp's launch.
    #[inline]
    pub(super) fn launch(&self, slot: &WarpSlot) -> &'a Launch {
        self.launches.of(slot)
    }

    /// What a warp reads of the machine.
    pub(super) fn read(&self, read: MachineRead, warp: usize) -> u64 {
        match read {
            MachineRead::Clock | MachineRead::Clock64 => u64::from(self.cycle),
            MachineRead::ClockHigh => u64::from(self.cycle) >> 32,
            MachineRead::GlobalTimer => self.w.timebase.ps_of_ticks(self.record.now) / 1000,
            MachineRead::SmId => u64::from(self.w.index),
            MachineRead::NSmId => u64::from(self.p.sm.count),
            MachineRead::WarpId => warp as u64,
            MachineRead::NWarpId => u64::from(self.p.sm.warps),
        }
    }
}

/// A cycle of an SM, with the fields that it takes. The other fields stay free for the parts.
macro_rules! moment {
    ($sm:ident, $cycle:expr, $launches:expr) => {
        Moment {
            cycle: $cycle,
            launches: $launches,
            p: &$sm.p,
            w: &$sm.w,
            host: &mut $sm.host,
            record: &mut $sm.record,
        }
    };
}

pub(super) use moment;
