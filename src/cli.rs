//! The command line: what is typed, what is printed, which exit code comes back. No model lives here.

mod args;
mod bench;
mod bisect;
mod checkpoint;
mod config;
mod crash;
mod determinism;
mod difference;
mod doctor;
mod exit;
mod explain;
mod figures;
mod monitor;
mod names;
mod output;
mod progress;
mod recipe;
mod regions;
mod reproduce;
mod run_progress;
mod runs;
mod scaling;
mod schemes;
mod sensitivity;
mod shell;
mod show;
mod simulate;
mod sweep;
mod table;
mod terminal;
mod validate;
mod written_files;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, Parser as _};
use durawarp::diagnostic::nearest;

use args::{Cli, Command, ConfigCommand, PtxCommand, SweepCommand, typed};
use exit::Exit;

pub(crate) fn main() -> ExitCode {
    shell::complete();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Also help and version, which are to be seen.
        Err(shown) => {
            let code = shown.exit_code() as u8;
            let printed =
                with_nearest(shown, typed()).print().and_then(|()| std::io::Write::flush(&mut std::io::stdout()));
            return ExitCode::from(if printed.is_ok() { code } else { Exit::BadInput as u8 });
        }
    };
    terminal::listen_for_signals();
    terminal::heed_aborts();
    // How things are shown is said once, before any command shows something.
    terminal::tell_all_errors(cli.all_errors);
    durawarp::report::group_digits(cli.human);
    let done = match &cli.command {
        Command::Run(args) => simulate::run(args),
        Command::Stalls(args) => schemes::stalls(args),
        Command::Compare(args) => schemes::compare(args),
        Command::Explain(args) => explain::explain(args),
        Command::Crash(args) => crash::crash(args),
        Command::Regions(args) => regions::regions(args),
        Command::Check(args) => determinism::check(args),
        Command::Bench(args) => bench::bench(args),
        Command::Scaling(args) => scaling::scaling(args),
        Command::Sweep(SweepCommand::Run(args)) => sweep::run(args),
        Command::Sweep(SweepCommand::Status(args)) => sweep::status(args),
        Command::Sweep(SweepCommand::Table(args)) => table::table(args),
        Command::Sweep(SweepCommand::Figures(args)) => figures::figures(args),
        Command::Sweep(SweepCommand::Report(args)) => figures::report(args),
        Command::Sweep(SweepCommand::Lint(args)) => sweep::lint(args),
        Command::Reproduce(args) => reproduce::reproduce(args),
        Command::Validate(args) => validate::validate(args),
        Command::Sensitivity(args) => sensitivity::sensitivity(args),
        Command::Diff(args) => difference::diff(args),
        Command::Bisect(args) => bisect::bisect(args),
        Command::Doctor => doctor::doctor(),
        Command::Completions(args) => shell::completions(args),
        Command::Man(args) => shell::man(args),
        Command::List(args) => show::list(args),
        Command::Config(ConfigCommand::Show(args)) => show::config(args),
        Command::Config(ConfigCommand::Check(args)) => show::check_configs(args),
        Command::Config(ConfigCommand::Diff(args)) => config::diff(args),
        Command::Config(ConfigCommand::Explain(args)) => config::explain(args),
        Command::Config(ConfigCommand::Device(args)) => config::device(args),
        Command::Config(ConfigCommand::Import(args)) => config::import(args),
        Command::Ptx(PtxCommand::Check(args)) => show::check_ptx(args),
        Command::Ptx(PtxCommand::Instrument(args)) => show::instrumented(args),
    };
    let exit = done.unwrap_or_else(terminal::tell);
    let exit = if exit == Exit::Good && terminal::stdout_failed() { Exit::BadInput } else { exit };
    ExitCode::from(exit as u8)
}

/// The nearest command for one that is not known, where the parser has no tip: of short words it has none.
fn with_nearest(mut error: clap::Error, typed: impl Iterator<Item = String>) -> clap::Error {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return error;
    }
    // The group that the command was looked for in.
    let mut group = &Cli::command();
    for word in typed.skip(1).take_while(|word| word != unknown) {
        group = group.find_subcommand(&word).unwrap_or(group);
    }
    let names = group.get_subcommands().map(clap::Command::get_name);
    if let Some(near) = nearest(unknown, names).map(str::to_owned) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![near]));
    }
    error
}
