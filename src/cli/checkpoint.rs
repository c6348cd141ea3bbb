//! Checkpoints as `durawarp run` writes them and goes on from them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use durawarp::Recipe;
use durawarp::diagnostic::Diagnostic;
use durawarp::input;
use durawarp::outcome::Outcome;
use durawarp::report;
use durawarp::run::Beginning;
use durawarp::run::checkpoint::Checkpoint;
use durawarp::sweep::host::Memory;

use super::exit::Stop;
use super::output::{Output, Outputs};
use super::terminal;

/// Most bytes of a file: the memory of a large machine.
const MOST_BYTES: u64 = 256 << 30;

/// Reads a checkpoint, to go on from it with these changes.
pub(super) fn read(file: &Path, set: &[String]) -> Result<Beginning, Stop> {
    let name = file.display();
    let bytes = input::bytes(file, MOST_BYTES).map_err(|why| Stop::File(format!("cannot read `{name}`: {why}")))?;
    Ok(Beginning::read(&name.to_string(), &bytes, set, Memory::of_host().total_bytes)?)
}

/// A checkpoint as it was asked for.
#[derive(Debug)]
pub(super) struct Ordered {
    pub(super) cycle: u64,
    file: PathBuf,
}

/// Reads `CYCLE FILE`.
pub(super) fn ordered(words: &[String]) -> Result<Ordered, Diagnostic> {
    let [cycle, file] = words else { unreachable!("the option takes two values") };
    let cycle = cycle.parse().map_err(|_| {
        let message = format!("expected a core cycle, a whole number, and a file; got `{cycle}`");
        Diagnostic::nowhere("--checkpoint-at", message)
    })?;
    Ok(Ordered { cycle, file: file.into() })
}

/// A checkpoint that is to be written.
#[derive(Debug)]
pub(super) struct Writing<'a> {
    ordered: &'a Ordered,
    recipe: &'a Recipe,
    /// Taken when it is written.
    output: Mutex<Option<Output>>,
    written: Mutex<Option<Result<(), Stop>>>,
}

impl<'a> Writing<'a> {
    /// Makes sure that it can be written.
    pub(super) fn open(ordered: &'a Ordered, recipe: &'a Recipe, outputs: &mut Outputs) -> Writing<'a> {
        let output = outputs.open("--checkpoint-at", Some(&ordered.file));
        Writing { ordered, recipe, output: Mutex::new(output), written: Mutex::new(None) }
    }

    /// Writes it while the run waits.
    pub(super) fn write(&self, made: &Checkpoint) {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner).take();
        let written = output.map(|output| output.stream(|file| made.write(self.recipe, file)));
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) = written;
    }

    /// What came of it.
    pub(super) fn end(&self, outcome: &Outcome) -> Result<(), Stop> {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (file, cycle) = (self.ordered.file.display(), report::count(self.ordered.cycle));
        match written {
            Some(Ok(())) => {
                terminal::say(&format!("`{file}` has the run at cycle {cycle}: `durawarp run --from {file}` goes on"));
                Ok(())
            }
            Some(Err(stop)) => Err(stop),
            None => {
                let end = report::count(outcome.time.core_cycles);
                Err(Stop::File(format!("`{file}` is not written: the run was over at cycle {end}, before {cycle}")))
            }
        }
    }
}
