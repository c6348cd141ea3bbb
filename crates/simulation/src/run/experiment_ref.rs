//! An experiment of either kind, borrowed, as checkpoints and forks see it: what its events follow from, and
//! the machine that it runs on.
//!
//! Not here: what it is compared with, and for how long it runs: these are the run's own.

use std::collections::BTreeMap;

use serde_json::Value;

use super::conduct::Conduct;
use super::cpu::machine_of_cores;
use super::cpu_experiment::CpuExperiment;
use super::end::Clocks;
use super::extent::Extent;
use super::program::{Experiment, Program};
use super::whole::{clocks_of, machine_of};
use crate::assemble::Assembly;
use crate::config::SchemeConfig;

/// An experiment of either kind.
#[derive(Debug, Clone, Copy)]
pub enum ExperimentRef<'a> {
    /// Kernels on a machine with a GPU.
    Kernels(&'a Experiment),
    /// A program of CPUs.
    Process(&'a CpuExperiment),
}

impl<'a> From<&'a Experiment> for ExperimentRef<'a> {
    fn from(experiment: &'a Experiment) -> Self {
        ExperimentRef::Kernels(experiment)
    }
}

impl<'a> From<&'a CpuExperiment> for ExperimentRef<'a> {
    fn from(experiment: &'a CpuExperiment) -> Self {
        ExperimentRef::Process(experiment)
    }
}

impl ExperimentRef<'_> {
    pub(super) fn scheme(&self) -> &SchemeConfig {
        match self {
            ExperimentRef::Kernels(of) => &of.scheme,
            ExperimentRef::Process(of) => &of.scheme,
        }
    }

    /// The parameters of its machine.
    pub(super) fn machine_values(&self) -> BTreeMap<String, Value> {
        match self {
            ExperimentRef::Kernels(of) => of.machine.values(),
            ExperimentRef::Process(of) => of.machine.values(),
        }
    }

    pub(super) fn clocks(&self) -> Clocks {
        match self {
            ExperimentRef::Kernels(of) => clocks_of(of),
            ExperimentRef::Process(of) => of.clocks(),
        }
    }

    /// Simulates parts of it only.
    pub(super) fn is_in_part(&self) -> bool {
        match self {
            ExperimentRef::Kernels(of) => of.sample.is_some(),
            ExperimentRef::Process(of) => of.extent != Extent::Whole,
        }
    }

    pub(super) fn max_cycles(&self) -> Option<u64> {
        match self {
            ExperimentRef::Kernels(of) => of.max_cycles,
            ExperimentRef::Process(of) => of.max_cycles,
        }
    }

    /// A hash of what its events follow from.
    pub(super) fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut take = |name: &str, bytes: &[u8]| {
            for part in [name.as_bytes(), bytes] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        };
        // Maps with sorted keys: equal values have equal texts.
        let machine = serde_json::to_vec(&self.machine_values()).unwrap_or_default();
        let scheme = serde_json::to_vec(&self.scheme().values).unwrap_or_default();
        take("machine", &machine);
        take(self.scheme().built.name(), &scheme);
        match self {
            ExperimentRef::Kernels(of) => of.workload.fingerprint(&mut take),
            ExperimentRef::Process(of) => {
                take("all of its memory persists", &[of.persistent.into()]);
                of.program.fingerprint(&mut take);
            }
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Its machine before the first event.
    pub(super) fn machine(&self, conduct: &Conduct<'_>) -> Assembly {
        match self {
            ExperimentRef::Kernels(of) => {
                let Program { formed, host, .. } = Program::of(of, conduct.stop);
                machine_of(of, of.image(formed.as_ref()), host, conduct)
            }
            ExperimentRef::Process(of) => machine_of_cores(of, conduct),
        }
    }
}
