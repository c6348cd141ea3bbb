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
use durawarp::config::{MachineConfig, SchemeConfig};
use durawarp::diagnostic::{Diagnostic, Diagnostics};
use durawarp::run::{Experiment, demands};
use durawarp::sweep::host::Memory;
use durawarp::workload::{Choice, Demands, Mode, Overrides, Workload};

use args::{Cli, Command, ConfigCommand, PtxCommand, Subject};
use settings::Settings;

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
    let Settings { machine: overrides, schemes, params, mut faults } = Settings::read(&subject.set);
    let mut keep = |found: Diagnostics| faults.0.extend(found.0);
    let machine = MachineConfig::load(&subject.machine, &overrides).map_err(&mut keep).ok();
    let scheme = SchemeConfig::load(scheme, &schemes).map_err(&mut keep).ok();
    let choice = choice(workload, subject, params, default_profile);
    let demands = scheme.as_ref().map_or_else(Demands::default, |scheme| demands(&*scheme.built));
    let resolved = choice.and_then(|choice| Workload::load(workload)?.resolve_under(&choice, demands));
    let resolved = resolved.map_err(&mut keep).ok();
    match (machine, resolved, scheme) {
        (Some(machine), Some(resolved), Some(scheme)) if faults.0.is_empty() => {
            Ok(Experiment::of_resolved(machine, resolved, scheme)?)
        }
        _ => Err(faults.into()),
    }
}

/// The profile that was asked for, else the default if the workload has it: small programs have no profiles.
fn profile(workload: &Workload, asked: Option<&str>, default: Option<&str>) -> Option<String> {
    let has = |name: &&str| workload.listing().profiles.iter().any(|profile| profile == name);
    asked.or(default.filter(has)).map(str::to_owned)
}

/// What is typed about a workload.
///
/// # Errors
/// It does not load, or what is typed cannot be read.
fn choice(
    workload: &str,
    subject: &Subject,
    params: Vec<(String, String)>,
    default_profile: Option<&str>,
) -> Result<Choice, Diagnostics> {
    let (mut faults, mut inputs) = (Diagnostics::default(), Vec::new());
    for text in &subject.input {
        match text.split_once('=') {
            Some((buffer, file)) => inputs.push((buffer.to_owned(), file.into())),
            None => faults.push(Diagnostic::nowhere("--input", format!("expected BUFFER=FILE; got `{text}`"))),
        }
    }
    let loaded = Workload::load(workload).map_err(|found| faults.0.extend(found.0)).ok();
    let of_manifest = loaded.as_ref().map_or(Mode::None, Workload::instrument);
    let profile = loaded.and_then(|workload| profile(&workload, subject.profile.as_deref(), default_profile));
    let Subject { instrument: mode, flag_barrier, loop_log, seed, ref program, .. } = *subject;
    let named = program.as_ref().map(|paper| durawarp::reproduce::find(paper)).transpose();
    let named = named.map_err(|fault| faults.push(fault)).ok().flatten();
    let of_paper = named.map_or_else(Overrides::default, |paper| paper.instrument.of_manifest(of_manifest));
    let instrument = Overrides { mode, flag_barrier, loop_log }.or(of_paper);
    faults.into_result(Choice {
        profile,
        params,
        seed,
        inputs,
        instrument,
        persistent: subject.persistent,
        most_bytes: Some(Memory::of_host().total_bytes),
    })
}
