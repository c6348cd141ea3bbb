//! Whose power fails, of either kind: its machine, its run, and findings in the terms of its program.

use std::ops::Range;

use crate::assemble::{CpuLoad, FormedProcess};
use crate::run::{Conduct, CpuExperiment, Experiment, Finished, load_of, run, run_cpu};
use durawarp_kernel::memory::FlatMemory;
use durawarp_oracle::order::Model;
use durawarp_oracle::verdict::{Failure, Persist, WrongBytes};
use durawarp_persist::Promises;
use durawarp_persist::vocab::Domain;
use durawarp_riscv::process::Process;
use durawarp_workload::FormedProgram;

use super::conditions::wrong_value;
use super::found::Placed;

/// What a machine of cores runs: the program's own memory. That of clients lies behind it.
pub(super) fn own_load<'a>(
    experiment: &'a CpuExperiment,
    process: &'a Process,
    formed: Option<&'a FormedProcess>,
) -> CpuLoad<'a> {
    CpuLoad { remote_bytes: 0, ..load_of(experiment, process, formed) }
}

/// The machine, as the judge sees it.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) domain: Domain,
    /// What the order of a run is read with.
    pub(super) model: Model,
    pub(super) ticks_a_cycle: u64,
    /// Addresses of what others post over the network, where somebody does.
    pub(super) posted: Option<Range<u64>>,
}

/// A program on its machine.
#[derive(Clone, Copy)]
pub(super) enum Subject<'a> {
    Kernels(&'a Experiment),
    /// With its process, and what that is formed into under a scheme of recoverable regions.
    Cores(&'a CpuExperiment, &'a Process, Option<&'a FormedProcess>),
}

impl Subject<'_> {
    /// Its machine, which promises nothing, and over whose network nobody posts anything.
    pub(super) fn site(self) -> Site {
        let (timebase, core, domain) = match self {
            Subject::Kernels(Experiment { machine, .. }) => {
                let spec = &machine.spec;
                (spec.timebase(), spec.clock.core_mhz, spec.persist.domain)
            }
            Subject::Cores(CpuExperiment { machine, .. }, ..) => {
                let spec = &machine.spec;
                (spec.timebase(), spec.clock.core_mhz, spec.persist.domain)
            }
        };
        let ticks_a_cycle = timebase.map_or(1, |base| base.clock(core.khz).period_ticks());
        let model = Model { domain, promises: Promises::NONE };
        Site { domain, model, ticks_a_cycle, posted: None }
    }

    /// Simulates.
    pub(super) fn run(self, conduct: &Conduct<'_>) -> Finished {
        match self {
            Subject::Kernels(experiment) => run(experiment, conduct),
            Subject::Cores(experiment, ..) => run_cpu(experiment, conduct),
        }
    }

    /// Memory before the program begins.
    pub(super) fn image(self, finished: &Finished) -> FlatMemory {
        match self {
            Subject::Kernels(experiment) => {
                finished.formed.as_ref().map_or_else(|| experiment.workload.image(), FormedProgram::image)
            }
            Subject::Cores(experiment, process, formed) => own_load(experiment, process, formed).image(),
        }
    }

    /// A failure whose wrong bytes are named as elements of the program where they are some.
    pub(super) fn tell(self, failure: &Failure) -> Failure {
        let mut failure = failure.clone();
        let Subject::Kernels(Experiment { workload, .. }) = self else { return failure };
        for value in failure.values.iter_mut().filter(|value| value.element.is_none()) {
            let Some(WrongBytes { address, found, expected: Some(expected) }) = &value.bytes else { continue };
            let named = workload.wrong_element(*address, found, expected);
            value.element = named.and_then(|named| wrong_value(named).element);
        }
        failure
    }

    /// A persist of a core or of a kernel.
    pub(super) fn place(self, finished: &Finished, persist: &Persist) -> Placed {
        let workload = match self {
            Subject::Kernels(experiment) => &experiment.workload,
            Subject::Cores(experiment, ..) => {
                let function = Some(experiment.program.image.code_name(persist.pc.into()));
                return Placed { function, ..Placed::nowhere(persist) };
            }
        };
        let formed = finished.formed.as_ref();
        let kernel = finished.outcome.launches.get(persist.launch as usize);
        let kernel = kernel.map(|launch| launch.kernel.clone());
        let source = kernel.as_deref().and_then(|kernel| match formed {
            Some(formed) => formed.source_of(kernel, persist.pc),
            None => workload.source_of(kernel, persist.pc),
        });
        let addresses = formed.map_or(workload.addresses(), FormedProgram::addresses);
        let range = addresses.containing(persist.address, persist.address);
        let buffer = range.map(|range| range.part(persist.address));
        Placed { kernel, source, buffer, ..Placed::nowhere(persist) }
    }
}
