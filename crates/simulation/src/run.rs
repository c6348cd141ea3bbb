//! From an experiment to its [`Outcome`](crate::outcome::Outcome): assemble the machine, simulate, collect
//! the memory, compare with the functional reference, judge.
//!
//! Invariants: everything in an outcome but `host` follows from the experiment alone; threads, placement and
//! observers change nothing else. The functional reference runs after the simulation, bounded by what the
//! simulation executed, so that a program that never ends cannot hang here. Wall clocks are read here and
//! never below.

mod any;
mod backlog;
mod beginning;
mod by_kernel;
mod by_launch;
pub mod checkpoint;
mod conduct;
mod cpu;
mod cpu_experiment;
mod default_machine;
mod end;
mod estimate;
mod experiment_ref;
mod extent;
mod finished;
mod forked;
mod kept;
mod length;
mod live;
mod parameters;
mod paused;
mod points;
mod program;
mod rates;
mod recipe;
mod references;
mod region_of_interest;
pub(crate) mod regions_of_cores;
mod repeated;
mod repeats;
mod sampling;
mod simulated;
mod slot_places;
mod streams;
mod tables;
mod timeline;
mod traced;
mod whole;

pub(crate) use any::begins_within;
pub use any::{AnyExperiment, AnyResolved};
pub use beginning::Beginning;
pub use conduct::{Conduct, REPEAT_CYCLES};
pub(crate) use cpu::load_of;
pub use cpu_experiment::CpuExperiment;
pub(crate) use default_machine::default_machine;
pub use durawarp_persist::Part;
pub use extent::Extent;
pub use finished::Finished;
pub(crate) use finished::failures;
pub use live::{LiveCounts, LiveQueue, LiveState, LiveWait};
pub use paused::PausedCpu;
use program::Program;
pub use program::{Experiment, demands, region_options};
pub use recipe::Recipe;
pub use references::References;
pub use region_of_interest::RegionOfInterest;
pub use repeated::recipe_of;
pub use tables::counter_descriptions;
pub use traced::{Epochs, TracedEvent, TracedRun, Trail};
use whole::run_program;

/// Simulates.
///
/// # Panics
/// The checkpoint that it is to go on from is of another experiment.
pub fn run(experiment: &Experiment, conduct: &Conduct<'_>) -> Finished {
    // What came before a checkpoint is not known by launch.
    let whole = conduct.from.is_none() && experiment.fork.is_none();
    let launches = whole && (conduct.launches || experiment.launches);
    let conduct = &Conduct { launches, ..conduct.clone() };
    // Parts of the program are machines of their own then.
    if let Some(windows) = experiment.sample {
        return sampling::run(experiment, conduct, windows);
    }
    if let Some(fork) = &experiment.fork {
        return forked::run(experiment, fork, conduct);
    }
    run_program(experiment, Program::of(experiment, conduct.stop), conduct)
}

/// Simulates a program of CPUs.
///
/// # Panics
/// When the program does not fit its memory, which is a fault of its resolution; the checkpoint that it is to
/// go on from is of another experiment.
pub fn run_cpu(experiment: &CpuExperiment, conduct: &Conduct<'_>) -> Finished {
    match (&experiment.fork, &experiment.extent) {
        (Some(fork), _) => forked::run_of_cpus(experiment, fork, conduct),
        (None, Extent::Whole) => cpu::run_process(experiment, conduct),
        (None, Extent::Region(_) | Extent::Samples(_)) => points::run(experiment, conduct),
    }
}

#[cfg(test)]
mod tests;
