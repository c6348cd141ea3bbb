//! What a run counted by launch: every counter of every component, read whenever a launch is over.
//!
//! ```text
//!   launch 1 ───── over: halt, read ── launch 2 ───── over: halt, read ── ... ── the program's end
//! ```
//! The simulation halts at the end of the round in which the launch ended, and goes on as if it had not. That
//! round follows from the experiment alone, and so do the readings. A launch has what was counted since the
//! launch before it was over: transfers of the host between the two included. What it leaves to be written
//! (dirty lines of the L2, write-pending queues) is counted when it moves, with a later launch or after all.
//!
//! Where launches overlap, the readings are in the order of their ends, and a launch has what was counted
//! since the end before its own, as Accel-Sim prints it.

use std::time::{Duration as WallTime, Instant};

use super::tables::counters;
use crate::assemble::Assembly;
use crate::outcome::Launch;
use durawarp_base::stats::{CounterSums, Table};

/// The readings of a run, one a launch that is over, each with the wall time up to it.
#[derive(Debug)]
pub(super) struct ByLaunch {
    began: Instant,
    readings: Vec<(CounterSums, WallTime)>,
}

impl ByLaunch {
    /// Of a run that begins.
    pub(super) fn begun(began: Instant) -> ByLaunch {
        ByLaunch { began, readings: Vec::new() }
    }

    /// A launch is over.
    pub(super) fn read(&mut self, machine: &Assembly) {
        self.readings.push((reading(machine), self.began.elapsed()));
    }

    /// How many launches are over.
    pub(super) fn len(&self) -> usize {
        self.readings.len()
    }

    /// Wall time up to the end of each launch, in seconds, in the order of ends.
    pub(super) fn wall_s(&self) -> impl Iterator<Item = f64> {
        self.readings.iter().map(|(_, wall)| wall.as_secs_f64())
    }

    /// Gives each launch what was counted of it; one that was cut short has what was counted up to the cut.
    pub(super) fn attribute(&self, machine: &Assembly, launches: &mut [Launch]) {
        let end = reading(machine);
        let none = CounterSums::new();
        let mut before = &none;
        let mut by_end: Vec<&mut Launch> = launches.iter_mut().collect();
        by_end.sort_by_key(|launch| launch.start.ticks + launch.length.ticks);
        for (number, launch) in by_end.into_iter().enumerate() {
            let after = self.readings.get(number).map_or(&end, |(reading, _)| reading);
            let growth = |(name, count): (&String, &u64)| (name.clone(), count - before.get(name).unwrap_or(&0));
            launch.counters = after.iter().map(growth).collect();
            before = after;
        }
    }
}

fn reading(machine: &Assembly) -> CounterSums {
    counters(machine).iter().flat_map(Table::totals).collect()
}
