//! A machine of cores that stops at some instants to be looked at, and goes on.

use super::conduct::Conduct;
use super::cpu::{assembled, load_of};
use super::cpu_experiment::CpuExperiment;
use crate::assemble::Assembly;
use durawarp_engine::{RunEnd, RunOptions, Time};
use durawarp_riscv::process::Process;

/// A machine of cores under way.
#[derive(Debug)]
pub struct PausedCpu {
    pub machine: Assembly,
}

impl PausedCpu {
    /// Before the first instruction, with a journal.
    pub fn new(experiment: &CpuExperiment, process: &Process) -> PausedCpu {
        let conduct = Conduct { journal: true, ..Conduct::default() };
        PausedCpu { machine: assembled(experiment, load_of(experiment, process, None), &conduct) }
    }

    /// Goes on to an instant, in ticks; false when the program was over before, or has failed.
    pub fn go_on(&mut self, until: Time) -> bool {
        let options = RunOptions { threads: 1, time_limit: Some(until), ..RunOptions::default() };
        matches!(durawarp_machine::run(&mut self.machine.simulation, &options), RunEnd::TimeLimit { .. })
    }
}
