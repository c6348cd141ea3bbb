//! `durawarp diff`: two runs, as `run --json` wrote them, side by side.

use std::path::Path;

use durawarp::diagnostic::{Diagnostic, Diagnostics};
use durawarp::input;
use durawarp::outcome::{Outcome, SCHEMA};
use durawarp::report::Differences;

use super::args::DiffArgs;
use super::exit::{Exit, Stop};
use super::output::Outputs;
use super::terminal;

pub(super) fn diff(args: &DiffArgs) -> Result<Exit, Stop> {
    let mut faults = Diagnostics::default();
    let mut read = |path: &Path| outcome(path).map_err(|fault| faults.push(fault)).ok();
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

/// The run in a file.
pub(super) fn outcome(path: &Path) -> Result<Outcome, Diagnostic> {
    let name = path.display().to_string();
    let text = input::text(path).map_err(|fault| Diagnostic::nowhere(&name, format!("cannot be read: {fault}")))?;
    let wrong = |fault: serde_json::Error| {
        // The line and column of a fault are the reader's to find; a column of 0 is none.
        let line = text.lines().take(fault.line().saturating_sub(1)).map(|line| line.len() + 1).sum::<usize>();
        let at = (line + fault.column().saturating_sub(1)).min(text.len().saturating_sub(1));
        let message = format!("this is no result of a run: {fault}");
        let place = if text.is_char_boundary(at) { at..at + 1 } else { 0..1 };
        Diagnostic::at(&name, &text, place, message).with_help("`durawarp run WORKLOAD --json FILE` writes one")
    };
    let outcome: Outcome = serde_json::from_str(&text).map_err(wrong)?;
    if outcome.schema > SCHEMA {
        let message = format!("is of schema {}, and this program knows schemas up to {SCHEMA}", outcome.schema);
        return Err(Diagnostic::nowhere(&name, message));
    }
    Ok(outcome)
}
