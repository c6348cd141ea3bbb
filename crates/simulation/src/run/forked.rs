//! Experiments whose parameters change at a core cycle, and what several of them share: their beginning.
//!
//! ```text
//!   before ── to the cycle ──> Checkpoint ─┬─ fork ──> the rest with one set of parameters
//!                          (Beginnings)    └─ fork ──> the rest with another
//! ```
//! Invariant: a run comes to the same whether its beginning was shared or made for it alone.

use super::checkpoint::changes;
use super::conduct::Conduct;
use super::cpu::{refused_process, run_process};
use super::cpu_experiment::CpuExperiment;
use super::experiment_ref::ExperimentRef;
use super::finished::Finished;
use super::kept::{Checkpoint, Fork, Resumed, checkpoint_of};
use super::program::{Experiment, Program};
use super::simulated::{options, past_program};
use super::whole::run_program;
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_engine::{RunEnd, RunOptions};

/// Finds what keeps an experiment from beginning so.
///
/// # Errors
/// All parameters that differ and may not; it is sampled.
pub(super) fn check<'a>(
    before: impl Into<ExperimentRef<'a>>,
    of: impl Into<ExperimentRef<'a>>,
) -> Result<(), Diagnostics> {
    let of = of.into();
    if of.is_in_part() {
        let message = "a run that is simulated in part has no one state from which it could go on";
        return Err(Diagnostic::nowhere("fork_at_cycle", message).with_help("take out `sample` or `roi`").into());
    }
    changes(before.into(), of).map(drop)
}

/// Why there is no checkpoint to go on from.
enum NoBeginning {
    /// The stop flag was set.
    Stopped,
    /// Why it did not come so far.
    Over(String),
}

/// Simulates an experiment of kernels with a fork.
pub(super) fn run(experiment: &Experiment, fork: &Fork<Experiment>, conduct: &Conduct<'_>) -> Finished {
    let whole = Experiment { fork: None, ..experiment.clone() };
    match begun((&*fork.before).into(), fork.cycle, (&whole).into(), conduct) {
        Ok(from) => {
            let conduct = Conduct { from: Some(&from), ..conduct.clone() };
            run_program(&whole, Program::of(&whole, conduct.stop), &conduct)
        }
        // The flag ends it at once.
        Err(NoBeginning::Stopped) => run_program(&whole, Program::of(&whole, conduct.stop), conduct),
        Err(NoBeginning::Over(why)) => run_program(&whole, Program::refused(&whole, why), conduct),
    }
}

/// Simulates a program of CPUs with a fork.
pub(super) fn run_of_cpus(experiment: &CpuExperiment, fork: &Fork<CpuExperiment>, conduct: &Conduct<'_>) -> Finished {
    let whole = CpuExperiment { fork: None, ..experiment.clone() };
    match begun((&*fork.before).into(), fork.cycle, (&whole).into(), conduct) {
        Ok(from) => run_process(&whole, &Conduct { from: Some(&from), ..conduct.clone() }),
        // The flag ends it at once.
        Err(NoBeginning::Stopped) => run_process(&whole, conduct),
        Err(NoBeginning::Over(why)) => refused_process(&whole, why, conduct),
    }
}

/// What the rest goes on from.
fn begun(
    before: ExperimentRef<'_>,
    cycle: u64,
    whole: ExperimentRef<'_>,
    conduct: &Conduct<'_>,
) -> Result<Resumed, NoBeginning> {
    let make = || begin(before, cycle, conduct);
    let checkpoint = match conduct.beginnings {
        Some(shared) => shared.of(&Checkpoint::key(&before.hash(), cycle, conduct.line_writes), make),
        None => make(),
    }?;
    checkpoint.fork(before, whole).map_err(|faults| NoBeginning::Over(faults.to_string()))
}

/// Runs to the cycle.
fn begin(before: ExperimentRef<'_>, cycle: u64, conduct: &Conduct<'_>) -> Result<Checkpoint, NoBeginning> {
    // A checkpoint of the whole run is none of its beginning.
    let mut machine = before.machine(&Conduct { checkpoint: None, ..conduct.clone() });
    let clocks = before.clocks();
    let pause_at = Some(clocks.core.cycles(cycle));
    let options = RunOptions { pause_at, ..options(clocks, before.max_cycles(), conduct) };
    let end = past_program(&mut machine, |machine| durawarp_machine::run(&mut machine.simulation, &options));
    match end {
        RunEnd::Paused { .. } => checkpoint_of(&machine, cycle, conduct.line_writes, before.hash()).map_err(|fault| {
            NoBeginning::Over(format!("a run under `{}` cannot be saved yet: {fault}", before.scheme().name))
        }),
        RunEnd::Stopped { .. } => Err(NoBeginning::Stopped),
        _ => Err(NoBeginning::Over(format!("the run is over before cycle {cycle}, from which on parameters change"))),
    }
}
