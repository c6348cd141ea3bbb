//! How long a program is: the instructions that the functional driver counts. They say how far a simulation
//! is, and nothing else rests on them.
//!
//! Threads of CPUs that spin execute more or fewer instructions on the timed machine: the count is a guide.
//! Not counted: programs formed into recoverable regions, which execute checkpoints beside their own
//! instructions, programs that are simulated in part, and servers whose clients end the run.

use std::sync::atomic::AtomicBool;

use super::{CpuExperiment, Experiment, Extent};
use durawarp_kernel::functional::Limits;
use durawarp_riscv::functional::{self, End, Options};

/// Warp instructions; `None` where they are not known, or `stop` was set before the end.
pub(super) fn of_kernels(experiment: &Experiment, stop: &AtomicBool) -> Option<u64> {
    if experiment.scheme.built.regions().is_some() {
        return None;
    }
    if let Some(instructions) = experiment.workload.traced_instructions() {
        return Some(instructions);
    }
    let limits = Limits {
        warp_size: experiment.machine.spec.sm.warp_size,
        stop: Some(stop),
        drops_log_stores: experiment.scheme.built.drops_log_stores(),
        ..Limits::default()
    };
    let run = experiment.workload.run_functional(&limits).ok()?;
    Some(run.launches().iter().map(|launch| launch.counts.warp_instructions).sum())
}

/// Instructions of all threads of all servers; `None` as above.
pub(super) fn of_process(experiment: &CpuExperiment, stop: &AtomicBool) -> Option<u64> {
    let nodes = &experiment.machine.spec.nodes;
    let is_whole = experiment.extent == Extent::Whole;
    if experiment.scheme.built.regions().is_some() || nodes.clients > 0 || !is_whole {
        return None;
    }
    let process = experiment.program.process().ok()?;
    let options = Options {
        harts: experiment.machine.spec.harts(),
        files: experiment.program.files.clone(),
        stop: Some(stop),
        ..Options::default()
    };
    let outcome = functional::run(&process, process.memory(), &options);
    let all: u64 = outcome.instructions.iter().sum();
    matches!(outcome.end, End::Exited(_)).then_some(all * u64::from(nodes.servers))
}
