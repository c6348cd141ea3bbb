//! `durawarp diff`: two runs, as `run --json` wrote them, side by side.

use std::path::Path;

use durawarp::diagnostic::Diagnostics;
use durawarp::outcome::Outcome;
use durawarp::report::Differences;

use super::args::DiffArgs;
use super::exit::{Exit, Stop};
use super::output::Outputs;
use super::terminal;

pub(super) fn diff(args: &DiffArgs) -> Result<Exit, Stop> {
    let mut faults = Diagnostics::default();
    let mut read = |path: &Path| Outcome::read(path).map_err(|fault| faults.push(fault)).ok();
    let sides = (read(&args.one), read(&args.other));
    let (Some(one), Some(other)) = sides else { return Err(faults.into()) };
    let mut outputs = Outputs::default();
    let json = outputs.open("--json", args.json.as_deref());
    let stdout_is_taken = outputs.ready()?;
    let differences = Differences::of(&one, &other);
    terminal::show(&differences.text(), stdout_is_taken);
    json.map_or(Ok(()), |output| output.write_json(&differences))?;
    Ok(if differences.is_empty() { Exit::Good } else { Exit::Unequal })
}
