//! What a run begins with that goes on from a file of a checkpoint: its recipe, its experiment, and the
//! state.
//!
//! With changes the rest of the run is a fork. Invariant: the state fits the experiment.

use super::checkpoint::{Checkpoint, Resumed};
use super::{AnyExperiment, Recipe};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};

/// A run that goes on.
#[derive(Debug)]
pub struct Beginning {
    /// The recipe of the run that the checkpoint is of.
    pub recipe: Recipe,
    /// What is simulated from there on.
    pub experiment: AnyExperiment,
    /// The state.
    pub from: Resumed,
}

impl Beginning {
    /// Reads the checkpoint in the bytes of file `name`. `set` are changes (`KEY=VALUE`) that act from its
    /// cycle on. `most_bytes` is the host's memory: a program that needs more is refused.
    ///
    /// # Errors
    /// It is no checkpoint, or of other sources of the simulator; what it names has changed since; a change
    /// that is not possible where a run goes on.
    pub fn read(name: &str, bytes: &[u8], set: &[String], most_bytes: u64) -> Result<Self, Diagnostics> {
        let (recipe, checkpoint) =
            Checkpoint::read(bytes).map_err(|why| Diagnostic::nowhere("--from", format!("`{name}` {why}")))?;
        let recipe = recipe.most_bytes(most_bytes);
        let experiment = recipe.build_any()?;
        if set.is_empty() {
            let from = checkpoint.resume(&experiment)?;
            return Ok(Beginning { recipe, experiment, from });
        }
        refuse_programs(set)?;
        let changed = recipe.clone().changes(set).build_any()?;
        let from = checkpoint.fork(&experiment, &changed)?;
        Ok(Beginning { recipe, experiment: changed, from })
    }
}

/// A program cannot become another where it is half done.
fn refuse_programs(set: &[String]) -> Result<(), Diagnostics> {
    let mut faults = Diagnostics::default();
    for text in set.iter().filter(|text| text.starts_with("params.")) {
        let message = "a parameter of the workload, which has begun: a run that goes on may change parameters of the \
                       machine and of the scheme";
        faults.push(Diagnostic::nowhere(&format!("--set {text}"), message));
    }
    faults.into_result(())
}
