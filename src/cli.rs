//! The command line: what is typed, what is printed, which exit code comes back. No model lives here.

mod args;
mod crash;
mod determinism;
mod explain;
mod progress;
mod regions;
mod reproduce;
mod results;
mod schemes;
mod settings;
mod show;
mod simulate;
mod sweep;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;
use durawarp::config::{MachineConfig, SchemeConfig};
use durawarp::diagnostic::{Diagnostic, Diagnostics};
use durawarp::workload::{Choice, Overrides, Resolved, Workload};

use args::{Cli, Command, ConfigCommand, PtxCommand, Subject};
use settings::Settings;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    Good = 0,
    BadInput = 2,
    ProgramFailed = 3,
    Different = 4,
    Defect = 70,
    Interrupted = 130,
}

/// Why a command stopped before it had done anything.
#[derive(Debug)]
enum Stop {
    /// The input is wrong.
    Input(Diagnostics),
    /// A file could not be read or written.
    File(String),
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
    let cli = Cli::parse();
    terminal::listen_for_interrupts();
    let done = match &cli.command {
        Command::Run(args) => simulate::run(args),
        Command::Stalls(args) => schemes::stalls(args),
        Command::Compare(args) => schemes::compare(args),
        Command::Explain(args) => explain::explain(args),
        Command::Crash(args) => crash::crash(args),
        Command::Regions(args) => regions::regions(args),
        Command::Check(args) => determinism::check(args),
        Command::Sweep(args) => sweep::sweep(args),
        Command::SweepStatus(args) => sweep::status(args),
        Command::Results(args) => results::results(args),
        Command::Reproduce(args) => reproduce::reproduce(args),
        Command::List(args) => show::list(args),
        Command::Config(ConfigCommand::Show(args)) => show::config(args),
        Command::Config(ConfigCommand::Check(args)) => show::check_configs(args),
        Command::Ptx(PtxCommand::Check(args)) => show::check_ptx(args),
        Command::Ptx(PtxCommand::Instrument(args)) => show::instrumented(args),
    };
    let exit = done.unwrap_or_else(|stop| {
        match stop {
            Stop::Input(faults) => terminal::complain(&faults),
            Stop::File(message) => terminal::error(&message),
        }
        Exit::BadInput
    });
    ExitCode::from(exit as u8)
}

/// What a command line names, read and checked.
struct Resolution {
    machine: MachineConfig,
    workload: Resolved,
    scheme: SchemeConfig,
}

/// Reads machine, workload and scheme; the faults of all at once.
fn resolve(workload: &str, scheme: &str, subject: &Subject, default_profile: Option<&str>) -> Result<Resolution, Stop> {
    let settings = Settings::read(&subject.set);
    resolve_under(workload, SchemeConfig::load(scheme, &settings.schemes), subject, default_profile)
}

/// Reads several schemes. Where one is wrong, the faults of machine and workload are told with it.
fn resolve_schemes(
    workload: &str,
    schemes: &[&str],
    subject: &Subject,
    default_profile: Option<&str>,
) -> Result<Vec<SchemeConfig>, Stop> {
    let settings = Settings::read(&subject.set);
    let loaded = SchemeConfig::load_each(schemes, &settings.schemes);
    loaded.or_else(|found| resolve_under(workload, Err(found), subject, default_profile).map(|_| Vec::new()))
}

/// Reads machine and workload for a scheme, or for the faults of one; the faults of all at once.
fn resolve_under(
    workload: &str,
    scheme: Result<SchemeConfig, Diagnostics>,
    subject: &Subject,
    default_profile: Option<&str>,
) -> Result<Resolution, Stop> {
    let Settings { machine: overrides, params, mut faults, .. } = Settings::read(&subject.set);
    let mut inputs = Vec::new();
    for text in &subject.input {
        match text.split_once('=') {
            Some((buffer, file)) => inputs.push((buffer.to_owned(), file.into())),
            None => faults.push(Diagnostic::nowhere("--input", format!("expected BUFFER=FILE; got `{text}`"))),
        }
    }
    let mut keep = |found: Diagnostics| faults.0.extend(found.0);
    let machine = MachineConfig::load(&subject.machine, &overrides).map_err(&mut keep).ok();
    let scheme = scheme.map_err(&mut keep).ok();
    let logs = scheme.as_ref().is_some_and(|scheme| scheme.built.logs());
    let Subject { instrument: mode, flag_barrier, loop_log, seed, .. } = *subject;
    let instrument = Overrides { mode, flag_barrier, loop_log };
    let loaded = Workload::load(workload).and_then(|found| {
        // Small programs have no profiles.
        let has = |name: &&str| found.listing().profiles.iter().any(|profile| profile == name);
        let profile = subject.profile.clone().or_else(|| default_profile.filter(has).map(str::to_owned));
        found.resolve(&Choice { profile, params, seed, inputs, logs, instrument })
    });
    let workload = loaded.map_err(&mut keep).ok();
    match (machine, workload, scheme) {
        (Some(machine), Some(workload), Some(scheme)) if faults.0.is_empty() => {
            Ok(Resolution { machine, workload, scheme })
        }
        _ => Err(faults.into()),
    }
}
