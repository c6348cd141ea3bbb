//! `durawarp explain SCHEME WORKLOAD`: what a scheme did in a run, and why.

use std::path::Path;

use durawarp::assemble::first_place;
use durawarp::diagnostic::Diagnostic;
use durawarp::report;
use durawarp::run::Experiment;

use super::args::ExplainArgs;
use super::exit::{Exit, Stop};
use super::output::Outputs;
use super::recipe::{SMALL, of_kernels};
use super::simulate::{complain, exit_of, threads, warn_of, with_progress};
use super::terminal;

/// `durawarp explain`.
pub(super) fn explain(args: &ExplainArgs) -> Result<Exit, Stop> {
    let experiment = of_kernels("explain", &args.workload, &args.scheme, &args.subject, Some(SMALL))?;
    let Experiment { machine, workload, scheme, .. } = &experiment;
    // A scheme without anything to explain or to draw is refused before the run.
    if !report::explained().any(|name| name == scheme.built.name()) {
        let names: Vec<&str> = report::explained().collect();
        let message =
            format!("scheme `{}` does nothing that could be explained; {} can be", args.scheme, names.join(", "));
        return Err(Diagnostic::nowhere("explain", message).into());
    }
    if args.svg.is_some() && !report::drawn().any(|name| name == scheme.built.name()) {
        let names: Vec<&str> = report::drawn().collect();
        let message = format!("there is no drawing of scheme `{}`; there is of {}", args.scheme, names.join(", "));
        return Err(Diagnostic::nowhere("--svg", message).into());
    }
    let mut outputs = Outputs::default();
    let (json, svg) = (outputs.open("--json", args.json.as_deref()), outputs.open("--svg", args.svg.as_deref()));
    // Standard output has no neighbour.
    let beside = args.svg.as_deref().filter(|path| *path != Path::new("-")).map(|path| path.with_extension("csv"));
    let csv = outputs.open("--svg", beside.as_deref());
    let stdout_is_taken = outputs.ready()?;
    terminal::warn(workload.warnings());
    let name = scheme.name.clone();
    let storage = scheme.built.storage(first_place(&machine.spec));
    let outcome = with_progress(&experiment.into(), &name, &threads(args.threads), args.quiet).outcome;
    warn_of(&outcome);
    let exit = exit_of(&outcome);
    if exit != Exit::Good {
        complain(&outcome, true);
    }
    let Some(explanation) = report::explanation(&outcome, &storage) else {
        return Err(Stop::File(format!("the run of scheme `{}` left nothing to explain", args.scheme)));
    };
    if !args.quiet {
        let program = report::programs([&outcome]);
        terminal::show(&format!("{}  {program}", explanation.text), stdout_is_taken);
    }
    if let Some(output) = json {
        output.write_json(&explanation.data)?;
    }
    if let Some(output) = svg {
        let drawing = report::drawing(&outcome).ok_or_else(|| Stop::File(NOTHING_DRAWN.to_owned()))?;
        let told = |fault| Stop::File(format!("{NOTHING_DRAWN}: {fault}"));
        let (drawn, data) = (drawing.svg().map_err(told)?, drawing.csv().map_err(told)?);
        output.write(drawn.as_bytes())?;
        if let Some(output) = csv {
            output.write(data.as_bytes())?;
        }
    }
    Ok(exit)
}

/// Why there is no drawing.
const NOTHING_DRAWN: &str = "the run has no period to draw";
