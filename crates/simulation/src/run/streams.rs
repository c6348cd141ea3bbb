//! Whether launches overlap in a run that may, those of several streams and programmatic ones, and if not,
//! why.
//!
//! A scheme whose handlers hear of one kernel at a time has launches one after another, in the order of the
//! program, and the outcome says so.

use super::program::Experiment;
use crate::assemble::Assembly;
use crate::outcome::Streams;
use durawarp_kernel::host::HostProgram;
use durawarp_persist::Scheme;

/// Why launches that may overlap, if the program has any, run one after another; none where they overlap.
pub(super) fn one_by_one(experiment: &Experiment, host: &dyn HostProgram) -> Option<String> {
    let scheme: &dyn Scheme = &*experiment.scheme.built;
    if let Some(why) = scheme.one_by_one() {
        Some(format!("scheme {} {why}", scheme.name()))
    } else if experiment.machine.spec.dispatch.concurrent_launches == 1 {
        Some("dispatch.concurrent_launches is 1".to_owned())
    } else if !host.overlaps() {
        Some("the host program sees to transactions between launches".to_owned())
    } else {
        None
    }
}

/// How launches ran that may overlap; none of a program without.
pub(super) fn of(machine: &Assembly, one_by_one: Option<String>) -> Option<Streams> {
    let processor = machine.command_processor();
    let mut streams: Vec<u64> = processor.launches().iter().map(|launch| launch.stream).collect();
    streams.sort_unstable();
    streams.dedup();
    let programmatic = processor.launches().iter().filter(|launch| launch.programmatic).count() as u64;
    (streams.len() > 1 || programmatic > 0).then(|| Streams {
        streams: streams.len() as u64,
        programmatic,
        most_at_once: u64::from(processor.most_at_once()),
        one_by_one,
    })
}
