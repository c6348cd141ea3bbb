//! Workloads and experiments of either kind, where it does not matter which: kernels on a machine with a GPU,
//! or a program of CPUs on a machine of CPU cores.

use std::sync::atomic::AtomicBool;

use super::cpu_experiment::CpuExperiment;
use super::experiment_ref::ExperimentRef;
use super::{Conduct, Experiment, Finished, length, run, run_cpu};
use crate::assemble::{first_place, first_place_of_cores};
use durawarp_base::diagnostic::Diagnostic;
use durawarp_base::spec::Megahertz;
use durawarp_engine::Timebase;
use durawarp_persist::storage::StorageCost;
use durawarp_workload::{CpuProgram, Description, Resolved};

/// Checks that a host of `most_bytes` can hold what a run begins with: full caches, and what its program
/// holds in all servers.
pub(crate) fn begins_within(most_bytes: u64, cache_bytes: u64, filled_bytes: u64) -> Result<(), Diagnostic> {
    let needed = cache_bytes.saturating_add(filled_bytes);
    if needed <= most_bytes {
        return Ok(());
    }
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let (needed, host) = (gib(needed), gib(most_bytes));
    let message = format!("this run needs about {needed:.1} GiB of memory, and this host has {host:.1} GiB");
    let help = "choose a smaller profile, or a machine of fewer nodes or smaller caches";
    Err(Diagnostic::nowhere("", message).with_help(help))
}

/// A workload ready to run.
#[derive(Debug, Clone)]
pub enum AnyResolved {
    /// Kernels and their host program.
    Kernels(Box<Resolved>),
    /// A program of CPUs.
    Process(Box<CpuProgram>),
}

impl From<Resolved> for AnyResolved {
    fn from(resolved: Resolved) -> Self {
        AnyResolved::Kernels(Box::new(resolved))
    }
}

impl From<CpuProgram> for AnyResolved {
    fn from(program: CpuProgram) -> Self {
        AnyResolved::Process(Box::new(program))
    }
}

impl AnyResolved {
    /// As [`Resolved::fingerprint`].
    pub fn fingerprint(&self, take: &mut dyn FnMut(&str, &[u8])) {
        match self {
            AnyResolved::Kernels(resolved) => resolved.fingerprint(take),
            AnyResolved::Process(program) => program.fingerprint(take),
        }
    }

    /// As plain data.
    pub fn describe(&self) -> Description {
        match self {
            AnyResolved::Kernels(resolved) => resolved.describe(),
            AnyResolved::Process(program) => program.describe(),
        }
    }

    /// Bytes that it holds before the first step, in one server: zeroed buffers of kernels take memory as
    /// they are written to.
    pub fn filled_bytes(&self) -> u64 {
        match self {
            AnyResolved::Kernels(resolved) => resolved.filled_bytes(),
            AnyResolved::Process(_) => self.bytes(),
        }
    }

    /// Bytes of its buffers, or of its executable: the pages that a program touches are not known before.
    pub fn bytes(&self) -> u64 {
        match self {
            AnyResolved::Kernels(resolved) => resolved.addresses().ranges().iter().map(|range| range.bytes).sum(),
            AnyResolved::Process(program) => program.image.segments.iter().map(|part| part.memory_bytes).sum(),
        }
    }

    /// As [`Resolved::warnings`].
    pub fn warnings(&self) -> Vec<&Diagnostic> {
        match self {
            AnyResolved::Kernels(resolved) => resolved.warnings().collect(),
            AnyResolved::Process(_) => Vec::new(),
        }
    }

    /// As [`Resolved::largest_cta`].
    pub(crate) fn largest_cta(&self) -> Option<u64> {
        self.kernels().and_then(Resolved::largest_cta)
    }

    /// The workload, if it has kernels.
    pub fn kernels(&self) -> Option<&Resolved> {
        match self {
            AnyResolved::Kernels(resolved) => Some(resolved),
            AnyResolved::Process(_) => None,
        }
    }
}

/// An experiment on a machine of either kind.
#[derive(Debug, Clone)]
pub enum AnyExperiment {
    /// With a GPU.
    Gpu(Box<Experiment>),
    /// With CPU cores.
    Cpu(Box<CpuExperiment>),
}

impl From<Experiment> for AnyExperiment {
    fn from(experiment: Experiment) -> Self {
        AnyExperiment::Gpu(Box::new(experiment))
    }
}

impl<'a> From<&'a AnyExperiment> for ExperimentRef<'a> {
    fn from(experiment: &'a AnyExperiment) -> Self {
        match experiment {
            AnyExperiment::Gpu(experiment) => ExperimentRef::Kernels(experiment),
            AnyExperiment::Cpu(experiment) => ExperimentRef::Process(experiment),
        }
    }
}

impl AnyExperiment {
    /// The same, to be cut after this many core cycles.
    #[must_use]
    pub fn with_max_cycles(mut self, cycles: Option<u64>) -> Self {
        match &mut self {
            AnyExperiment::Gpu(experiment) => experiment.max_cycles = cycles,
            AnyExperiment::Cpu(experiment) => experiment.max_cycles = cycles,
        }
        self
    }

    /// The same, compared with the functional driver or not.
    #[must_use]
    pub fn with_reference(mut self, compared: bool) -> Self {
        match &mut self {
            AnyExperiment::Gpu(experiment) => experiment.reference = compared,
            AnyExperiment::Cpu(experiment) => experiment.reference = compared,
        }
        self
    }

    /// What it is made of, as plain data.
    pub fn describe(&self) -> Description {
        match self {
            AnyExperiment::Gpu(experiment) => experiment.workload.describe(),
            AnyExperiment::Cpu(experiment) => experiment.program.describe(),
        }
    }

    /// Bytes that its machine's caches take of the host.
    pub fn cache_bytes(&self) -> u64 {
        match self {
            AnyExperiment::Gpu(experiment) => experiment.machine.spec.cache_bytes(),
            AnyExperiment::Cpu(experiment) => experiment.machine.spec.cache_bytes(),
        }
    }

    /// Bytes that its program holds before the first step, in all servers, and those that it may come to
    /// hold: zeroed buffers of kernels take memory of the host as they are written to.
    pub fn content_bytes(&self) -> (u64, u64) {
        match self {
            AnyExperiment::Gpu(experiment) => {
                let all = experiment.workload.addresses().ranges().iter().map(|range| range.bytes).sum();
                (experiment.workload.filled_bytes(), all)
            }
            AnyExperiment::Cpu(experiment) => {
                let segments = experiment.program.image.segments.iter();
                let of_one: u64 = segments.map(|part| part.memory_bytes).sum();
                let all = of_one.saturating_mul(experiment.machine.spec.nodes.servers.into());
                (all, all)
            }
        }
    }

    /// Checks that a host of so many bytes can hold what the run begins with.
    pub(super) fn fits(&self, most_bytes: u64) -> Result<(), Diagnostic> {
        begins_within(most_bytes, self.cache_bytes(), self.content_bytes().0)
    }

    /// Ticks of a core cycle of its machine.
    pub fn cycle_ticks(&self) -> u64 {
        let (base, core) = self.clocks();
        base.map_or(1, |base| base.clock(core.khz).period_ticks())
    }

    /// The tick rate of its machine, and the clock of its cores.
    pub(super) fn clocks(&self) -> (Option<Timebase>, Megahertz) {
        match self {
            AnyExperiment::Gpu(experiment) => {
                let spec = &experiment.machine.spec;
                (spec.timebase(), spec.clock.core_mhz)
            }
            AnyExperiment::Cpu(experiment) => {
                let spec = &experiment.machine.spec;
                (spec.timebase(), spec.clock.core_mhz)
            }
        }
    }

    /// The experiment, if it is of a GPU.
    pub fn gpu(&self) -> Option<&Experiment> {
        match self {
            AnyExperiment::Gpu(experiment) => Some(experiment),
            AnyExperiment::Cpu(_) => None,
        }
    }

    /// What its scheme adds to its machine.
    pub fn storage(&self) -> Vec<StorageCost> {
        match self {
            AnyExperiment::Gpu(of) => of.scheme.built.storage(first_place(&of.machine.spec)),
            AnyExperiment::Cpu(of) => of.scheme.built.storage(first_place_of_cores(&of.machine.spec)),
        }
    }

    /// Workload, profile, machine and scheme, in a line.
    pub fn title(&self) -> String {
        let Description { workload, profile, .. } = self.describe();
        let (machine, scheme) = match self {
            AnyExperiment::Gpu(experiment) => (&experiment.machine.name, &experiment.scheme.name),
            AnyExperiment::Cpu(experiment) => (&experiment.machine.name, &experiment.scheme.name),
        };
        format!("{workload} ({profile}) on {machine}, scheme {scheme}")
    }

    /// Its instructions on the functional driver, warp instructions on a GPU: how long it is, as a guide.
    /// `None` where that is not known (recoverable regions, clients), or where `stop` was set.
    pub fn functional_instructions(&self, stop: &AtomicBool) -> Option<u64> {
        match self {
            AnyExperiment::Gpu(experiment) => length::of_kernels(experiment, stop),
            AnyExperiment::Cpu(experiment) => length::of_process(experiment, stop),
        }
    }

    /// Simulates.
    pub fn run(&self, conduct: &Conduct<'_>) -> Finished {
        match self {
            AnyExperiment::Gpu(experiment) => run(experiment, conduct),
            AnyExperiment::Cpu(experiment) => run_cpu(experiment, conduct),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_cannot_hold_before_the_first_step_is_refused_from_the_first_byte_on() {
        assert!(begins_within(8 << 30, 5 << 30, 3 << 30).is_ok());
        let told = |caches, filled| begins_within(8 << 30, caches, filled).unwrap_err().to_string();
        assert!(told(5 << 30, (3 << 30) + 1).contains("needs about 8.0 GiB of memory, and this host has 8.0 GiB"));
        assert!(told(u64::MAX, 4 << 30).contains("choose a smaller profile"), "no overflow");
    }
}
