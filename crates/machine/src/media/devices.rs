//! What the devices of a channel are: tables from files, or the parameters of the machine; and how their
//! column commands use the data bus.
//!
//! | device | a request of several column commands |
//! |---|---|
//! | of parameters | one burst without gaps; its group is held once for each |
//! | of a table | each is spaced as the table says; others fill the gaps |
//!
//! Source: `table` and `plain`. Invariant: what is here does not change while a machine runs.

use durawarp_base::spec::Nanos;
use durawarp_engine::{Clock, Time, Timebase};

use crate::device::{Device, RefreshPolicy};
use crate::mapping::RowMap;

use super::parameters::{BusSpec, MediaSpec, NvmSpec};
use super::plain;
use super::table::{self, Act, CommandTimes, Rules};
use super::writes::Writes;

/// The devices of a channel that come from tables.
#[derive(Debug, Clone, Copy, Default)]
pub struct Devices<'a> {
    /// DRAM's.
    pub dram: Option<&'a Device>,
    /// NVM's.
    pub nvm: Option<&'a Device>,
}

/// How column commands use a data bus.
#[derive(Debug, Clone, Copy)]
pub(super) enum Transport {
    /// A request is one burst.
    Stream { bytes_per_cycle: u32 },
    /// A request is a burst for each `atom_bytes`. Reads come first in each pair, then writes: cycles of a
    /// burst, cycles from one to the next, slots of a command.
    Bursts { atom_bytes: u32, cycles: [u32; 2], spacing_cycles: [u32; 2], slots: [u32; 2], data_cycles: u32 },
}

/// Timing of a device in ticks, its table apart.
#[derive(Debug, Clone)]
pub(super) struct DeviceTiming {
    /// Which bank and row an address lies in.
    pub(super) map: RowMap,
    pub(super) rcd: Time,
    pub(super) cl: Time,
    pub(super) wl: Time,
    pub(super) wr: Time,
    pub(super) writes: Writes,
    pub(super) transport: Transport,
    /// Data buses, and the level whose nodes have one each.
    pub(super) lanes: usize,
    pub(super) lane_level: usize,
    /// Row and column commands share a bus.
    pub(super) one_command_bus: bool,
    /// Slots of the bus of row commands that an activation takes, and a precharge.
    pub(super) row_slots: [u32; 2],
}

impl Devices<'_> {
    /// DRAM's timing.
    pub(super) fn dram(
        &self,
        spec: &MediaSpec,
        bus: &BusSpec,
        clock: Clock,
        base: Timebase,
    ) -> (DeviceTiming, CommandTimes) {
        match self.dram {
            Some(device) => of_table(device, spec.refresh, Writes::ROW, clock),
            None => of_parameters(spec, Writes::ROW, bus, clock, base),
        }
    }

    /// NVM's timing.
    pub(super) fn nvm(
        &self,
        spec: &NvmSpec,
        bus: &BusSpec,
        clock: Clock,
        base: Timebase,
    ) -> (DeviceTiming, CommandTimes) {
        match self.nvm {
            Some(device) if device.buffer.is_some() => of_table(device, RefreshPolicy::None, Writes::Buffer, clock),
            Some(device) => of_table(device, RefreshPolicy::None, Writes::new(spec, base), clock),
            None => of_parameters(&spec.rows(), Writes::new(spec, base), bus, clock, base),
        }
    }
}

fn of_parameters(
    spec: &MediaSpec,
    writes: Writes,
    bus: &BusSpec,
    clock: Clock,
    base: Timebase,
) -> (DeviceTiming, CommandTimes) {
    let t = |ns: Nanos| base.ticks_of_ps(ns.ps);
    let timing = DeviceTiming {
        map: RowMap::turned((0..spec.banks as u16).collect(), spec.row_bytes),
        rcd: t(spec.t_rcd_ns),
        cl: t(spec.t_cl_ns),
        wl: t(spec.t_wl_ns),
        wr: t(spec.t_wr_ns),
        writes,
        transport: Transport::Stream { bytes_per_cycle: bus.bytes_per_cycle },
        lanes: 1,
        lane_level: 0,
        one_command_bus: false,
        row_slots: [1; 2],
    };
    (timing, plain::table(spec, bus.bytes_per_cycle, writes, clock, base))
}

fn of_table(device: &Device, refresh: RefreshPolicy, writes: Writes, clock: Clock) -> (DeviceTiming, CommandTimes) {
    let own = &device.organisation;
    let counts: Vec<u32> = own.levels.iter().map(|(_, count)| *count).collect();
    let lane_level = own.bus_levels as usize;
    let by_direction = |of: fn(&Device, Act) -> u32| [of(device, Act::Read), of(device, Act::Write)];
    let timing = DeviceTiming {
        // Of a device with a buffer a row is a line of it.
        map: RowMap::turned(outermost_first(&counts).into(), own.row_bytes),
        rcd: 0,
        cl: clock.cycles(u64::from(own.read_cycles)),
        wl: clock.cycles(u64::from(own.write_cycles)),
        wr: 0,
        writes,
        transport: Transport::Bursts {
            atom_bytes: own.atom_bytes,
            cycles: by_direction(table::slot_cycles),
            spacing_cycles: by_direction(table::spacing_cycles),
            slots: by_direction(table::slots),
            data_cycles: own.burst_cycles,
        },
        lanes: counts[..lane_level].iter().product::<u32>() as usize,
        lane_level,
        one_command_bus: !own.two_command_buses,
        row_slots: [table::slots(device, Act::Open), table::slots(device, Act::Close)],
    };
    (timing, CommandTimes::new(&counts, Rules::of(device, refresh, clock)))
}

/// Banks in an order in which neighbours lie in different pseudo channels, ranks and groups.
fn outermost_first(counts: &[u32]) -> Vec<u16> {
    let banks: u32 = counts.iter().product();
    let of = |mut place: u32| {
        let mut bank = 0;
        let mut below = banks;
        for &count in counts {
            below /= count;
            bank += place % count * below;
            place /= count;
        }
        bank as u16
    };
    (0..banks).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::outermost_first;

    #[test]
    fn neighbours_in_the_order_of_banks_differ_in_the_outermost_level() {
        // Two ranks of two groups of two banks.
        assert_eq!(outermost_first(&[2, 2, 2]), [0, 4, 2, 6, 1, 5, 3, 7]);
        assert_eq!(outermost_first(&[1, 3, 2]), [0, 2, 4, 1, 3, 5]);
    }
}
