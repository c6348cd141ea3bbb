//! Experiments whose parameters change at a core cycle, and what several of them share: their beginning.
//!
//! ```text
//!   before ── to the cycle ──> Checkpoint ─┬─ fork ──> the rest with one set of parameters
//!                          (Beginnings)    └─ fork ──> the rest with another
//! ```
//! Invariant: a run comes to the same whether its beginning was shared or made for it alone.

use super::checkpoint::{changes, hash_of};
use super::conduct::Conduct;
use super::finished::Finished;
use super::kept::{Checkpoint, checkpoint_of};
use super::program::{Experiment, Fork, Program};
use super::simulated::options;
use super::whole::{clocks_of, machine_of, run_program};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_engine::{RunEnd, RunOptions};

/// Finds what keeps an experiment from beginning so.
///
/// # Errors
/// All parameters that differ and may not; it is sampled.
pub(super) fn check(fork: &Fork, of: &Experiment) -> Result<(), Diagnostics> {
    if of.sample.is_some() {
        let message = "a sampled run has no one state from which it could go on";
        return Err(Diagnostic::nowhere("fork_at_cycle", message).with_help("take out `sample`").into());
    }
    changes(&fork.before, of).map(drop)
}

/// Why there is no checkpoint to go on from.
enum NoBeginning {
    /// The stop flag was set.
    Stopped,
    /// Why it did not come so far.
    Over(String),
}

/// Simulates an experiment with a fork.
pub(super) fn run(experiment: &Experiment, fork: &Fork, conduct: &Conduct<'_>) -> Finished {
    let whole = Experiment { fork: None, ..experiment.clone() };
    let make = || begin(fork, conduct);
    let begun = match conduct.beginnings {
        Some(shared) => shared.of(&Checkpoint::key(&hash_of(&fork.before), fork.cycle, conduct.line_writes), make),
        None => make(),
    };
    let refused = |why: String| run_program(&whole, Program::refused(&whole, why), conduct);
    let checkpoint = match begun {
        Ok(checkpoint) => checkpoint,
        // The flag ends it at once.
        Err(NoBeginning::Stopped) => return run_program(&whole, Program::of(&whole, conduct.stop), conduct),
        Err(NoBeginning::Over(why)) => return refused(why),
    };
    match checkpoint.fork(&fork.before, &whole) {
        Ok(from) => {
            let conduct = Conduct { from: Some(&from), ..conduct.clone() };
            run_program(&whole, Program::of(&whole, conduct.stop), &conduct)
        }
        Err(faults) => refused(faults.to_string()),
    }
}

/// Runs to the cycle.
fn begin(fork: &Fork, conduct: &Conduct<'_>) -> Result<Checkpoint, NoBeginning> {
    let before = &fork.before;
    let Program { formed, host, .. } = Program::of(before, conduct.stop);
    let image = before.image(formed.as_ref());
    // A checkpoint of the whole run is none of its beginning.
    let mut machine = machine_of(before, image, host, &Conduct { checkpoint: None, ..conduct.clone() });
    let clocks = clocks_of(before);
    let pause_at = Some(clocks.core.cycles(fork.cycle));
    let end = durawarp_machine::run(
        &mut machine.simulation,
        &RunOptions { pause_at, ..options(clocks, before.max_cycles, conduct) },
    );
    match end {
        RunEnd::Paused { .. } => {
            checkpoint_of(&machine, fork.cycle, conduct.line_writes, hash_of(before)).map_err(|fault| {
                NoBeginning::Over(format!("a run under `{}` cannot be saved yet: {fault}", before.scheme.name))
            })
        }
        RunEnd::Stopped { .. } => Err(NoBeginning::Stopped),
        _ => Err(NoBeginning::Over(format!(
            "the run is over before cycle {}, from which on parameters change",
            fork.cycle
        ))),
    }
}
