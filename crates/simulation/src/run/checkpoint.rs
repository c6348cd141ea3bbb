//! An experiment that goes on from a checkpoint: what is kept of a machine between two rounds, and what may
//! be changed where a run goes on.
//!
//! ```text
//!   run to a cycle ──> Checkpoint ──resume──> Resumed ──Conduct::from──> the rest of the run, bit for bit
//!                               └──fork────>            the rest of a run whose parameters change there
//! ```
//! A checkpoint is made at the end of the first round with every event before its cycle handled: which events
//! after it are handled too follows from the experiment alone. Rounds are those of a run without a
//! checkpoint. One at a launch is made at the end of the round in which the launch before it was over.
//!
//! A *fork* first brings every component to one instant, and goes on from there with other values of
//! parameters that nothing in the machine's state was sized or placed by: durations, bandwidths, energies,
//! thresholds ([`may_change`]). What is under way then goes on as it began. No link may become shorter: new
//! messages would overtake those under way.
//!
//! The host program of kernels is saved as what its steps received, and replayed: launches follow from it,
//! and components name them by number. A scheme whose handlers cannot be saved is refused before the run.
//!
//! Invariant: a [`Resumed`] fits its experiment: loading it was tried. Not here: files (`file`), experiments
//! that are forks from the first (`fork`).

mod file;

use std::sync::Arc;

use super::conduct::Conduct;
pub use super::experiment_ref::ExperimentRef;
#[cfg(test)]
pub(crate) use super::kept::of_zeros;
pub use super::kept::{Beginnings, Checkpoint, CheckpointAt, CheckpointWhen, Fork, Resumed};
use crate::assemble::{Assembly, checkpoint};
use crate::outcome::FromCheckpoint;
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_checkpoint::LoadFault;
use durawarp_engine::{RunEnd, Time, align};

impl<'a> CheckpointAt<'a> {
    /// A checkpoint of runs of this experiment, made then. `keep` takes it while the run waits, and
    /// is not called where the run ends before.
    ///
    /// # Errors
    /// Its scheme cannot be saved yet; it is to be sampled.
    pub fn new<'e>(
        experiment: impl Into<ExperimentRef<'e>>,
        when: CheckpointWhen,
        keep: &'a (dyn Fn(Checkpoint) + Sync),
    ) -> Result<CheckpointAt<'a>, Diagnostics> {
        let experiment = experiment.into();
        check(experiment, when)?;
        Ok(CheckpointAt { when, experiment: experiment.hash(), keep })
    }
}

/// Units, as the last words of keys, of parameters that may change in a fork: nothing is sized by them.
const UNITS: [&str; 5] = ["_ns", "_cycles", "_pj", "_percent", "_logs"];

/// Parameters without such a unit that may change, too.
const OTHERS: [&str; 8] = [
    "controller.drain_high_entries",
    "controller.drain_low_entries",
    "controller.drain_idle_entries",
    "controller.drain_min_writes",
    "controller.row_hit_cap",
    "nvm.write_bandwidth_mb_s",
    "nvm.endurance_writes",
    "nvm.capacity_gb",
];

/// How long components hold messages back that have to stay in their order: they may only become longer.
const ORDERED: [&str; 3] = ["llc.service_cycles", "os.syscall_ns", "os.switch_ns"];

/// A parameter may have another value in a fork than before it.
///
/// # Example: latencies, and no sizes
/// ```
/// use durawarp_simulation::run::checkpoint::may_change;
/// assert!(may_change("nvm.t_rcd_ns") && may_change("sm.latency_cycles"));
/// assert!(!may_change("l2.slice_kb") && !may_change("clock.core_mhz"));
/// ```
pub fn may_change(key: &str) -> bool {
    UNITS.iter().any(|unit| key.ends_with(unit)) || OTHERS.contains(&key)
}

impl Checkpoint {
    /// What one before a core cycle is known by; `experiment` is the hash of what it is of.
    pub(super) fn key(experiment: &str, cycle: u64, line_writes: bool) -> String {
        format!("{experiment} {cycle} {line_writes}")
    }

    /// It is the one that is known by this key.
    pub(crate) fn is_of(&self, key: &str) -> bool {
        Checkpoint::key(&self.experiment, self.cycle, self.line_writes) == key
    }

    /// Bytes of the state.
    pub fn bytes(&self) -> usize {
        self.state.len()
    }

    /// To go on as the run that it is of did.
    ///
    /// # Errors
    /// It is of another experiment.
    pub fn resume<'e>(&self, experiment: impl Into<ExperimentRef<'e>>) -> Result<Resumed, Diagnostics> {
        let experiment = experiment.into();
        if experiment.hash() != self.experiment {
            let message = "it is of another experiment: machine, scheme or workload, or a file that they name, has \
                           changed since";
            return Err(Diagnostic::nowhere("checkpoint", message).into());
        }
        let resumed = Resumed { state: self.state.clone(), line_writes: self.line_writes, forked: None };
        assembled(experiment, Some(&resumed)).map_err(told)?;
        Ok(resumed)
    }

    /// To go on with the changed parameters of `changed`, which is otherwise `experiment`, the one that it is
    /// of.
    ///
    /// # Errors
    /// Parameters that may not change in a run; other differences; it is of another experiment.
    pub fn fork<'e>(
        &self,
        experiment: impl Into<ExperimentRef<'e>>,
        changed: impl Into<ExperimentRef<'e>>,
    ) -> Result<Resumed, Diagnostics> {
        let (experiment, changed) = (experiment.into(), changed.into());
        let set = changes(experiment, changed)?;
        if set.is_empty() {
            return self.resume(experiment);
        }
        // What is under way goes on as it began, so that all is at one instant first.
        let mut machine = assembled(experiment, Some(&self.resume(experiment)?)).map_err(told)?;
        let at: Time = match align(&mut machine.simulation) {
            RunEnd::Stopped { at } => at,
            _ => {
                let message = "the program ends within a few cycles of the checkpoint: no parameter would matter";
                return Err(Diagnostic::nowhere("--set", message).into());
            }
        };
        let cycle = experiment.clocks().duration(at).core_cycles;
        let state = checkpoint::save(&machine).map_err(told)?;
        let resumed = Resumed {
            state: Arc::new(state),
            line_writes: self.line_writes,
            forked: Some(FromCheckpoint { cycle, set }),
        };
        assembled(changed, Some(&resumed)).map_err(|fault| {
            let message = format!("the machine cannot go on with these parameters: {fault}");
            Diagnostics::from(Diagnostic::nowhere("--set", message))
        })?;
        Ok(resumed)
    }
}

/// Finds what keeps an experiment from being saved, before it runs.
fn check(experiment: ExperimentRef<'_>, when: CheckpointWhen) -> Result<(), Diagnostics> {
    if experiment.is_in_part() {
        return Err(Diagnostic::nowhere("sample", "a run that is simulated in part has no one state to save").into());
    }
    if matches!((experiment, when), (ExperimentRef::Process(_), CheckpointWhen::Launch(_))) {
        let message = "launches are of kernels, and this is a program of CPUs";
        let fault = Diagnostic::nowhere("--checkpoint-at-kernel", message);
        return Err(fault.with_help("--checkpoint-at takes a core cycle").into());
    }
    let machine = assembled(experiment, None).map_err(told)?;
    match checkpoint::save(&machine) {
        Ok(_) => Ok(()),
        Err(fault) => {
            let message = format!("a run under `{}` cannot be saved yet: {fault}", experiment.scheme().name);
            Err(Diagnostic::nowhere("--checkpoint-at", message).into())
        }
    }
}

/// The machine of an experiment, at a checkpoint or before its first event.
fn assembled(experiment: ExperimentRef<'_>, from: Option<&Resumed>) -> Result<Assembly, LoadFault> {
    let conduct = Conduct { line_writes: from.is_some_and(|from| from.line_writes), ..Conduct::default() };
    let mut machine = experiment.machine(&conduct);
    from.map_or(Ok(()), |from| from.load(&mut machine, &experiment.scheme().built))?;
    Ok(machine)
}

fn told(fault: LoadFault) -> Diagnostics {
    Diagnostic::nowhere("checkpoint", fault.to_string()).into()
}

/// The parameters in which two experiments differ, as `key=value` of the second.
pub(super) fn changes(from: ExperimentRef<'_>, to: ExperimentRef<'_>) -> Result<Vec<String>, Diagnostics> {
    let mut faults = Diagnostics::default();
    if from.scheme().built.name() != to.scheme().built.name() {
        faults.push(Diagnostic::nowhere("--scheme", "a run cannot go on under another scheme"));
    }
    let (before, after) = (from.machine_values(), to.machine_values());
    let both = before.iter().zip(&after).chain(from.scheme().values.iter().zip(&to.scheme().values));
    let mut set = Vec::new();
    for ((key, old), (_, new)) in both.filter(|((_, old), (_, new))| old != new) {
        if ORDERED.contains(&key.as_str()) && new.as_f64() < old.as_f64() {
            let message = format!(
                "`{key}` is {old} up to the checkpoint and cannot become {new}: new messages would overtake those under \
                 way, which have to stay in their order"
            );
            faults.push(Diagnostic::nowhere(key, message).with_help("it may only become longer"));
        } else if may_change(key) {
            set.push(format!("{key}={}", new.as_str().map_or_else(|| new.to_string(), str::to_owned)));
        } else {
            let message =
                format!("`{key}` is {old} up to the checkpoint and cannot become {new}: the state is made for it");
            let help = "durations, bandwidths, energies and thresholds may change where a run goes on";
            faults.push(Diagnostic::nowhere(key, message).with_help(help));
        }
    }
    faults.into_result(set)
}
