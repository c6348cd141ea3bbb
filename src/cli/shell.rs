//! `durawarp completions` and `durawarp man`: the command line as shells and `man` know it, from the same
//! arguments that are parsed.

use clap::CommandFactory as _;
use clap_complete::CompleteEnv;
use clap_complete::env::Shells;

use super::args::{Cli, CompletionsArgs, ManArgs};
use super::exit::{Exit, Stop};
use super::names::VARIABLE;
use super::terminal;

/// As it is typed.
const PROGRAM: &str = "durawarp";

/// Answers a shell that asks how a line could go on, and ends the program then.
pub(super) fn complete() {
    CompleteEnv::with_factory(Cli::command).var(VARIABLE).bin(PROGRAM).completer(PROGRAM).complete();
}

pub(super) fn completions(args: &CompletionsArgs) -> Result<Exit, Stop> {
    let shells = Shells::builtins();
    let shell = args.shell.to_string();
    let Some(shell) = shells.completer(&shell) else { unreachable!("each shell has its script: a test asks for all") };
    let mut script = Vec::new();
    shell
        .write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)
        .map_err(|fault| Stop::File(format!("no script for this shell: {fault}")))?;
    terminal::print_by(|out| out.write_all(&script))?;
    Ok(Exit::Good)
}

pub(super) fn man(args: &ManArgs) -> Result<Exit, Stop> {
    let Some(folder) = &args.out else {
        let page = clap_mangen::Man::new(Cli::command());
        terminal::print_by(|out| page.render(out))?;
        return Ok(Exit::Good);
    };
    terminal::make_folder(folder)?;
    clap_mangen::generate_to(Cli::command(), folder)
        .map_err(|fault| Stop::File(format!("cannot write pages to `{}`: {fault}", folder.display())))?;
    Ok(Exit::Good)
}
