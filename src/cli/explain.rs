//! `durawarp explain SCHEME WORKLOAD`: what a scheme decided in a run, and why.

use durawarp::diagnostic::Diagnostic;
use durawarp::report;
use durawarp::run::Experiment;
use durawarp::schemes::catalogue;

use super::args::ExplainArgs;
use super::simulate::{complain, exit_of, warn_of, with_progress};
use super::{Exit, Resolution, Stop, resolve, terminal};

/// The profile when none is named, as for `compare`.
const PROFILE: &str = "ci";

/// `durawarp explain`.
pub(super) fn explain(args: &ExplainArgs) -> Result<Exit, Stop> {
    if let Some(path) = &args.json {
        terminal::check_writable(path)?;
    }
    let Resolution { machine, workload, scheme } = resolve(&args.workload, &args.scheme, &args.subject, Some(PROFILE))?;
    if scheme.built.hub_site(durawarp::persist::Seat::default()).is_none() {
        let all = catalogue::all();
        let deciding = all.iter().filter(|scheme| scheme.hub_site(durawarp::persist::Seat::default()).is_some());
        let names: Vec<&str> = deciding.map(|scheme| scheme.name()).collect();
        let message = format!("scheme `{}` decides nothing while it runs; {} does", args.scheme, names.join(", "));
        return Err(Diagnostic::nowhere("explain", message).into());
    }
    terminal::warn(workload.warnings());
    let name = scheme.name.clone();
    let experiment = Experiment { machine, workload, scheme, max_cycles: None, reference: true };
    let outcome = with_progress(&experiment, &name, args.threads, args.quiet).outcome;
    warn_of(&outcome);
    let exit = exit_of(&outcome);
    if exit != Exit::Good {
        complain(&outcome, true);
    }
    if !args.quiet {
        match outcome.selection() {
            Some(selection) => terminal::print(&report::explanation(&outcome, &selection)),
            // A scheme that tells something else: as it tells it.
            None => {
                let text = serde_json::to_string_pretty(&outcome.scheme_report);
                terminal::print(&(text.map_err(|fault| Stop::File(fault.to_string()))? + "\n"));
            }
        }
    }
    if let Some(path) = &args.json {
        let report = serde_json::to_string_pretty(&outcome.scheme_report);
        let mut text = report.map_err(|fault| Stop::File(fault.to_string()))?;
        text.push('\n');
        terminal::write_file(path, text.as_bytes())?;
    }
    Ok(exit)
}
