//! `durawarp completions` and `durawarp man`: the command line as shells and `man` know it, from the same
//! arguments that are parsed.

use clap::CommandFactory as _;

use super::args::{Cli, CompletionsArgs, ManArgs};
use super::exit::{Exit, Stop};
use super::terminal;

pub(super) fn completions(args: &CompletionsArgs) -> Result<Exit, Stop> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "durawarp", &mut script);
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
