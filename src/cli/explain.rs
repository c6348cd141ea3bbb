//! `durawarp explain SCHEME WORKLOAD`: what a scheme did in a run, and why.

use durawarp::assemble::first_seat;
use durawarp::diagnostic::Diagnostic;
use durawarp::report;
use durawarp::run::Experiment;

use super::args::ExplainArgs;
use super::output::Outputs;
use super::simulate::{complain, exit_of, threads, warn_of, with_progress};
use super::{Exit, SMALL, Stop, experiment, terminal};

/// `durawarp explain`.
pub(super) fn explain(args: &ExplainArgs) -> Result<Exit, Stop> {
    let experiment = experiment(&args.workload, &args.scheme, &args.subject, Some(SMALL))?;
    let Experiment { machine, workload, scheme, .. } = &experiment;
    if !report::explained().any(|name| name == scheme.built.name()) {
        let names: Vec<&str> = report::explained().collect();
        let message =
            format!("scheme `{}` does nothing that could be explained; {} can be", args.scheme, names.join(", "));
        return Err(Diagnostic::nowhere("explain", message).into());
    }
    let mut outputs = Outputs::default();
    let json = outputs.open("--json", args.json.as_deref());
    let stdout_is_taken = outputs.ready()?;
    terminal::warn(workload.warnings());
    let name = scheme.name.clone();
    let storage = scheme.built.storage(first_seat(&machine.spec));
    let outcome = with_progress(&experiment, &name, &threads(args.threads), args.quiet).outcome;
    warn_of(&outcome);
    let exit = exit_of(&outcome);
    if exit != Exit::Good {
        complain(&outcome, true);
    }
    let Some(explanation) = report::explanation(&outcome, &storage) else {
        return Err(Stop::File(format!("the run of scheme `{}` left nothing to explain", args.scheme)));
    };
    if !args.quiet {
        terminal::show(&explanation.text, stdout_is_taken);
    }
    if let Some(output) = json {
        output.write_json(&explanation.data)?;
    }
    Ok(exit)
}
