//! How a run ended and how long it took, in words of its report.

use crate::assemble::Assembly;
use crate::outcome::{Duration, End};
use durawarp_base::spec::Megahertz;
use durawarp_engine::{Blockage, Clock, RunEnd, Time, Timebase, Wait, blockage};

/// Waits that are told of a run that was cut short: with a flag that nobody sets, who should set it is among
/// the first.
const WAITS_TOLD: usize = 8;

/// The tick rate of a machine and its core clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clocks {
    pub(super) base: Timebase,
    pub(super) core: Clock,
}

impl Clocks {
    /// Of a machine that was loaded.
    pub(super) fn of(base: Option<Timebase>, core: Megahertz) -> Clocks {
        let Some(base) = base else { unreachable!("a machine that was loaded has a timebase") };
        Clocks { base, core: base.clock(core.khz) }
    }

    /// A time in ticks, in words of outcomes.
    pub(super) fn duration(&self, ticks: Time) -> Duration {
        let core_cycles = ticks.div_ceil(self.core.period_ticks());
        Duration { ticks, ps: self.base.ps_of_ticks(ticks), core_cycles }
    }
}

/// The end of a run of this machine.
pub(super) fn end_of(end: &RunEnd, machine: &Assembly, clocks: Clocks) -> End {
    let cycle = |ticks: Time| clocks.duration(ticks).core_cycles;
    let told = |name: &str, wait: &Wait| {
        let on = wait.on.map_or_else(String::new, |on| format!(" (from {})", machine.simulation.name(on)));
        format!("{name}: {} waits for {}{on} since cycle {}", wait.who, wait.what, cycle(wait.since))
    };
    match end {
        RunEnd::Finished { .. } => End::Finished,
        RunEnd::Deadlock { waits, .. } => {
            let name = |id| machine.simulation.name(id);
            let mut lines: Vec<String> = Vec::new();
            match blockage(waits.iter().map(|(id, _, wait)| (*id, wait))) {
                Some(Blockage::Cycle(ids)) => {
                    let names: Vec<&str> = ids.iter().chain(ids.first()).map(|&id| name(id)).collect();
                    lines.push(format!("each waits for the next: {}", names.join(" -> ")));
                }
                Some(Blockage::Chain(ids)) if ids.len() > 1 => {
                    let names: Vec<&str> = ids.iter().map(|&id| name(id)).collect();
                    lines.push(format!("waiting in a row: {}", names.join(" -> ")));
                }
                _ => {}
            }
            lines.extend(waits.iter().map(|(_, name, wait)| told(name, wait)));
            End::Deadlock { waits: lines }
        }
        RunEnd::Quiet { .. } => End::Stopped,
        RunEnd::TimeLimit { .. } => {
            let mut waits = machine.simulation.waits();
            // Of some it is not known since when.
            waits.sort_by_key(|(id, _, wait)| (wait.since == 0, wait.since, *id));
            waits.truncate(WAITS_TOLD);
            End::Cut { waits: waits.iter().map(|(_, name, wait)| told(name, wait)).collect() }
        }
        RunEnd::Stopped { .. } | RunEnd::Halted { .. } | RunEnd::Paused { .. } => End::Stopped,
        RunEnd::Failed { at, name, error, .. } => {
            End::Failed { error: format!("{error} [{name}, cycle {}]", cycle(*at)) }
        }
        RunEnd::Panicked { name, message, .. } => End::Panicked { message: format!("{name}: {message}") },
    }
}
