//! Checkpoints as `durawarp run` writes them and goes on from them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use durawarp::Recipe;
use durawarp::diagnostic::Diagnostic;
use durawarp::input;
use durawarp::outcome::Outcome;
use durawarp::report;
use durawarp::run::Beginning;
use durawarp::run::checkpoint::{Checkpoint, CheckpointWhen};
use durawarp::sweep::host::Memory;

use super::args::RunArgs;
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
    pub(super) when: CheckpointWhen,
    file: PathBuf,
}

impl Ordered {
    /// The option that ordered it.
    pub(super) fn option(&self) -> &'static str {
        match self.when {
            CheckpointWhen::Cycle(_) => "--checkpoint-at",
            CheckpointWhen::Launch(_) => "--checkpoint-at-kernel",
        }
    }
}

/// What was ordered: `CYCLE FILE`, or `N FILE` of the kernel that comes next.
pub(super) fn ordered(args: &RunArgs) -> Result<Option<Ordered>, Diagnostic> {
    let of = |words: &[String], option: &str, what: &str, when: fn(u64) -> CheckpointWhen, least: u64| {
        let [number, file] = words else { unreachable!("the option takes two values") };
        let number = number
            .parse()
            .ok()
            .filter(|&number| number >= least)
            .ok_or_else(|| Diagnostic::nowhere(option, format!("expected {what}, and a file; got `{number}`")))?;
        Ok(Ordered { when: when(number), file: file.into() })
    };
    let at = args.checkpoint_at.as_deref();
    let at = at.map(|words| of(words, "--checkpoint-at", "a core cycle, a whole number", CheckpointWhen::Cycle, 0));
    let kernel = args
        .checkpoint_at_kernel
        .as_deref()
        .map(|words| of(words, "--checkpoint-at-kernel", "the number of a launch, from 1", CheckpointWhen::Launch, 1));
    at.or(kernel).transpose()
}

/// A checkpoint that is to be written.
#[derive(Debug)]
pub(super) struct Writing<'a> {
    ordered: &'a Ordered,
    recipe: &'a Recipe,
    /// Taken when it is written.
    output: Mutex<Option<Output>>,
    /// The core cycle of what was written, or why it is not.
    written: Mutex<Option<Result<u64, Stop>>>,
}

impl<'a> Writing<'a> {
    /// Makes sure that it can be written.
    pub(super) fn open(ordered: &'a Ordered, recipe: &'a Recipe, outputs: &mut Outputs) -> Writing<'a> {
        let output = outputs.open(ordered.option(), Some(&ordered.file));
        Writing { ordered, recipe, output: Mutex::new(output), written: Mutex::new(None) }
    }

    /// Writes it while the run waits.
    pub(super) fn write(&self, made: &Checkpoint) {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner).take();
        let written = output.map(|output| {
            output.stream(|file| made.write(self.recipe, file))?;
            Ok(made.cycle)
        });
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) = written;
    }

    /// What came of it.
    pub(super) fn end(&self, outcome: &Outcome) -> Result<(), Stop> {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner).take();
        let file = self.ordered.file.display();
        match written {
            Some(Ok(cycle)) => {
                let cycle = report::count(cycle);
                terminal::say(&format!("`{file}` has the run at cycle {cycle}: `durawarp run --from {file}` goes on"));
                Ok(())
            }
            Some(Err(stop)) => Err(stop),
            None => {
                let end = report::count(outcome.time.core_cycles);
                let before = match self.ordered.when {
                    CheckpointWhen::Cycle(cycle) => report::count(cycle),
                    CheckpointWhen::Launch(number) => format!("launch {number}"),
                };
                Err(Stop::File(format!("`{file}` is not written: the run was over at cycle {end}, before {before}")))
            }
        }
    }
}
