//! `durawarp validate`: memory devices by themselves, beside two other simulators and arithmetic.

use durawarp::devices::Validation;

use super::args::ValidateArgs;
use super::exit::{Exit, Stop};
use super::output::Output;
use super::terminal;

pub(super) fn validate(args: &ValidateArgs) -> Result<Exit, Stop> {
    if let Some(folder) = &args.out {
        terminal::make_folder(folder)?;
    }
    let found = Validation::run()?;
    let tables = found.tables();
    if !args.quiet {
        terminal::print(&tables.each_ref().map(|table| table.text()).join("\n"));
    }
    if let Some(folder) = &args.out {
        for table in &tables {
            Output::at(&folder.join(format!("{}.csv", table.name)))?.write(table.csv().as_bytes())?;
        }
    }
    let beyond = found.beyond();
    if beyond > 0 {
        terminal::note(&format!("{beyond} figures are beyond their bounds"));
    }
    Ok(if beyond > 0 { Exit::Unequal } else { Exit::Good })
}
