//! The command line: what is typed, what is printed, which exit code comes back. No model lives here.

mod args;
mod bench;
mod config;
mod crash;
mod determinism;
mod explain;
mod figures;
mod output;
mod progress;
mod regions;
mod reproduce;
mod results;
mod runs;
mod schemes;
mod sensitivity;
mod settings;
mod show;
mod simulate;
mod sweep;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;
use durawarp::diagnostic::{Diagnostic, Diagnostics};
use durawarp::run::{Experiment, Recipe};
use durawarp::sweep::host::Memory;
use durawarp::workload::{Mode, Overrides, Workload};

use args::{Cli, Command, ConfigCommand, PtxCommand, Subject};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    Good = 0,
    /// What was compared differs, there are warnings and none are wanted, or a paper's asks are not met and all are wanted.
    Unequal = 1,
    /// The input is wrong, or an output cannot be written.
    BadInput = 2,
    ProgramFailed = 3,
    Different = 4,
    Defect = 70,
    Interrupted = 130,
    Terminated = 143,
}

/// Why a command stopped before it had done anything.
#[derive(Debug)]
enum Stop {
    /// The input is wrong.
    Input(Diagnostics),
    /// A file could not be read or written.
    File(String),
}

impl Stop {
    /// Says it on standard error. How the command ends then.
    fn tell(self) -> Exit {
        match self {
            Stop::Input(faults) => terminal::complain(&faults),
            Stop::File(message) => terminal::error(&message),
        }
        Exit::BadInput
    }
}

impl From<Diagnostics> for Stop {
    fn from(faults: Diagnostics) -> Self {
        Stop::Input(faults)
    }
}

impl From<Diagnostic> for Stop {
    fn from(fault: Diagnostic) -> Self {
        Stop::Input(fault.into())
    }
}

pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Also help and version, which are to be seen.
        Err(shown) => {
            let printed = shown.print().and_then(|()| std::io::Write::flush(&mut std::io::stdout()));
            return ExitCode::from(if printed.is_ok() { shown.exit_code() as u8 } else { Exit::BadInput as u8 });
        }
    };
    terminal::listen_for_signals();
    let done = match &cli.command {
        Command::Run(args) => simulate::run(args),
        Command::Stalls(args) => schemes::stalls(args),
        Command::Compare(args) => schemes::compare(args),
        Command::Explain(args) => explain::explain(args),
        Command::Crash(args) => crash::crash(args),
        Command::Regions(args) => regions::regions(args),
        Command::Check(args) => determinism::check(args),
        Command::Bench(args) => bench::bench(args),
        Command::Sweep(args) => sweep::sweep(args),
        Command::SweepStatus(args) => sweep::status(args),
        Command::Results(args) => results::results(args),
        Command::Figures(args) => figures::figures(args),
        Command::Report(args) => figures::report(args),
        Command::Reproduce(args) => reproduce::reproduce(args),
        Command::Sensitivity(args) => sensitivity::sensitivity(args),
        Command::List(args) => show::list(args),
        Command::Config(ConfigCommand::Show(args)) => show::config(args),
        Command::Config(ConfigCommand::Check(args)) => show::check_configs(args),
        Command::Config(ConfigCommand::Diff(args)) => config::diff(args),
        Command::Config(ConfigCommand::Explain(args)) => config::explain(args),
        Command::Config(ConfigCommand::Lint(args)) => config::lint(args),
        Command::Ptx(PtxCommand::Check(args)) => show::check_ptx(args),
        Command::Ptx(PtxCommand::Instrument(args)) => show::instrumented(args),
    };
    let exit = done.unwrap_or_else(Stop::tell);
    let exit = if exit == Exit::Good && terminal::stdout_failed() { Exit::BadInput } else { exit };
    ExitCode::from(exit as u8)
}

/// The profile where many runs or much judging follow and none is named: small.
const SMALL: &str = "ci";

/// The experiment that a command line names; the faults of machine, workload and scheme at once.
fn experiment(
    workload: &str,
    scheme: &str,
    subject: &Subject,
    default_profile: Option<&str>,
) -> Result<Experiment, Stop> {
    Ok(recipe(workload, subject, default_profile).scheme(scheme).changes(&subject.set).build()?)
}

/// What is typed about machine and workload, but for `--set`.
fn recipe(workload: &str, subject: &Subject, default_profile: Option<&str>) -> Recipe {
    let Subject { instrument: mode, flag_barrier, loop_log, seed, persistent, ref machine, .. } = *subject;
    let mut recipe = Experiment::of(workload).machine(machine).seed(seed).persistent(persistent);
    recipe = recipe.most_bytes(Memory::of_host().total_bytes);
    recipe = match (&subject.profile, default_profile) {
        (Some(asked), _) => recipe.profile(asked),
        (None, Some(default)) => recipe.profile_if_any(default),
        (None, None) => recipe,
    };
    for text in &subject.input {
        recipe = match text.split_once('=') {
            Some((buffer, file)) => recipe.input(buffer, file),
            None => recipe.fault(Diagnostic::nowhere("--input", format!("expected BUFFER=FILE; got `{text}`"))),
        };
    }
    let mut instrument = Overrides { mode, flag_barrier, loop_log };
    match subject.program.as_ref().map(|paper| durawarp::papers::find(paper)) {
        None => {}
        Some(Ok(paper)) => {
            // A workload that does not load is told by the recipe.
            let of_manifest = Workload::load(workload).map_or(Mode::None, |workload| workload.instrument());
            instrument = instrument.or(paper.instrument.of_manifest(of_manifest));
        }
        Some(Err(fault)) => recipe = recipe.fault(fault),
    }
    recipe.instrument(instrument)
}
