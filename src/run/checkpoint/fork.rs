//! Experiments whose parameters change at a core cycle, and what several of them share: their beginning.
//!
//! ```text
//!   before ── to the cycle ──> Checkpoint ─┬─ fork ──> the rest with one set of parameters
//!                          (Beginnings)    └─ fork ──> the rest with another
//! ```
//! Invariant: a run comes to the same whether its beginning was shared or made for it alone.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Checkpoint, hash_of};
use crate::assemble::checkpoint;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::engine::{RunEnd, RunOptions};
use crate::run::program::Program;
use crate::run::simulated::options;
use crate::run::{Conduct, Experiment, Finished, clocks_of, machine_of, run_program};
use crate::workload::FormedProgram;

/// How an experiment begins whose parameters change on the way.
#[derive(Debug, Clone)]
pub struct Fork {
    /// The core cycle from which on it has its own parameters.
    pub cycle: u64,
    /// The same with the parameters up to there.
    pub before: Box<Experiment>,
}

impl Fork {
    /// Finds what keeps an experiment from beginning so.
    ///
    /// # Errors
    /// All parameters that differ and may not; it is sampled.
    pub(in crate::run) fn check(&self, of: &Experiment) -> Result<(), Diagnostics> {
        if of.sample.is_some() {
            let message = "a sampled run has no one state from which it could go on";
            return Err(Diagnostic::nowhere("fork_at_cycle", message).with_help("take out `sample`").into());
        }
        super::changes(&self.before, of).map(drop)
    }
}

/// Bytes of beginnings that are kept at a time, at most.
const KEPT_BYTES: usize = 1 << 30;

/// One beginning; locked while it is made.
type Kept = Arc<Mutex<Option<Checkpoint>>>;

/// Beginnings that several runs share. The oldest make room.
#[derive(Debug, Default)]
pub struct Beginnings {
    kept: Mutex<(BTreeMap<String, Kept>, VecDeque<String>)>,
}

impl Beginnings {
    /// The beginning that is known by a key, or what `make` makes.
    fn of(&self, key: &str, make: impl FnOnce() -> Begun) -> Begun {
        let place = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.0.entry(key.to_owned()).or_default().clone()
        };
        // Held while it is made: another run that begins so has nothing better to do than to wait for it.
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = &*place {
            return Begun::At(kept.clone());
        }
        let begun = make();
        if let Begun::At(made) = &begun {
            *place = Some(made.clone());
            drop(place);
            self.make_room(key);
        }
        begun
    }

    /// Forgets the oldest beginnings until all together fit.
    fn make_room(&self, newest: &str) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, order) = &mut *kept;
        order.push_back(newest.to_owned());
        // One that is being made counts nothing yet.
        let bytes_of = |kept: &Kept| kept.try_lock().ok().and_then(|kept| Some(kept.as_ref()?.bytes())).unwrap_or(0);
        while order.len() > 1 && all.values().map(bytes_of).sum::<usize>() > KEPT_BYTES {
            if let Some(oldest) = order.pop_front() {
                all.remove(&oldest);
            }
        }
    }
}

/// What came of a beginning.
enum Begun {
    At(Checkpoint),
    /// The stop flag was set.
    Stopped,
    /// Why it did not come so far.
    Over(String),
}

/// Simulates an experiment with a fork.
pub(in crate::run) fn run_forked(experiment: &Experiment, fork: &Fork, conduct: &Conduct<'_>) -> Finished {
    let whole = Experiment { fork: None, ..experiment.clone() };
    let make = || begin(fork, conduct);
    let begun = match conduct.beginnings {
        Some(shared) => shared.of(&format!("{} {} {}", hash_of(&fork.before), fork.cycle, conduct.line_writes), make),
        None => make(),
    };
    let refused = |why: String| run_program(&whole, Program::refused(&whole, why), conduct);
    let checkpoint = match begun {
        Begun::At(checkpoint) => checkpoint,
        // The flag ends it at once.
        Begun::Stopped => return run_program(&whole, Program::of(&whole, conduct.stop), conduct),
        Begun::Over(why) => return refused(why),
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
fn begin(fork: &Fork, conduct: &Conduct<'_>) -> Begun {
    let before = &fork.before;
    let Program { formed, host, .. } = Program::of(before, conduct.stop);
    let image = formed.as_ref().map_or_else(|| before.workload.image(), FormedProgram::image);
    let mut machine = machine_of(before, image, host, conduct);
    let clocks = clocks_of(before);
    let pause_at = Some(clocks.core.cycles(fork.cycle));
    let end = machine.simulation.run(&RunOptions { pause_at, ..options(clocks, before.max_cycles, conduct) });
    match end {
        RunEnd::Paused { .. } => match checkpoint::save(&machine) {
            Ok(state) => Begun::At(Checkpoint {
                cycle: fork.cycle,
                line_writes: conduct.line_writes,
                experiment: hash_of(before),
                state: Arc::new(state),
            }),
            Err(fault) => Begun::Over(format!("a run under `{}` cannot be saved yet: {fault}", before.scheme.name)),
        },
        RunEnd::Stopped { .. } => Begun::Stopped,
        _ => Begun::Over(format!("the run is over before cycle {}, from which on parameters change", fork.cycle)),
    }
}
