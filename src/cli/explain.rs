//! `durawarp explain WORKLOAD`: what a scheme did in a run, and why; of a program of CPUs, where its
//! time went.

use std::path::Path;

use durawarp::diagnostic::Diagnostic;
use durawarp::report;
use durawarp::run::{AnyExperiment, Conduct};
use durawarp::schemes::catalogue;

use super::args::ExplainArgs;
use super::exit::{Exit, Stop};
use super::output::Outputs;
use super::recipe::{SMALL, experiment};
use super::run_progress::with_progress;
use super::simulate::{complain, exit_of, threads, warn_of};
use super::terminal;

/// `durawarp explain`.
pub(super) fn explain(args: &ExplainArgs) -> Result<Exit, Stop> {
    let asked = args.scheme.as_deref();
    let experiment = experiment(&args.workload, asked, &args.subject, Some(SMALL)).map_err(|stop| {
        // A scheme alone: its workload was forgotten.
        if asked.is_none() && catalogue::find(&args.workload).is_ok() {
            let name = &args.workload;
            let message = format!("`{name}` is a scheme; which workload? `durawarp explain WORKLOAD --scheme {name}`");
            return Diagnostic::nowhere("explain", message).into();
        }
        stop
    })?;
    let scheme = match &experiment {
        AnyExperiment::Gpu(of) => {
            report::can_be_explained(of.scheme.built.name(), &of.scheme.name)?;
            &of.scheme
        }
        AnyExperiment::Cpu(of) => &of.scheme,
    };
    let scheme_name = &scheme.name;
    let of_a_gpu = experiment.gpu().is_some();
    if args.svg.is_some() && !(of_a_gpu && report::drawn().any(|name| name == scheme.built.name())) {
        let names: Vec<&str> = report::drawn().collect();
        let of = if of_a_gpu { format!("of scheme `{scheme_name}`") } else { "of a program of CPUs".to_owned() };
        let message = format!("there is no drawing {of}; there is of {}", names.join(", "));
        return Err(Diagnostic::nowhere("--svg", message).into());
    }
    let mut outputs = Outputs::default();
    let (json, svg) = (outputs.open("--json", args.json.as_deref()), outputs.open("--svg", args.svg.as_deref()));
    // Standard output has no neighbour.
    let beside = args.svg.as_deref().filter(|path| *path != Path::new("-")).map(|path| path.with_extension("csv"));
    let csv = outputs.open("--svg", beside.as_deref());
    let stdout_is_taken = outputs.ready()?;
    if let Some(of) = experiment.gpu() {
        terminal::warn(of.workload.warnings());
    }
    let conduct = Conduct { places: true, ..threads(args.threads) };
    let outcome = with_progress(&experiment, scheme_name, &conduct, args.quiet).outcome;
    warn_of(&outcome);
    let exit = exit_of(&outcome);
    if exit != Exit::Good {
        complain(&outcome, true);
    }
    let Some(explanation) = report::explanation(&outcome, &experiment.storage()) else {
        return Err(Stop::File(format!("the run of scheme `{scheme_name}` left nothing to explain")));
    };
    if !args.quiet {
        // Which logging kernels had; a program of CPUs logs for itself.
        let program = if of_a_gpu { format!("  {}", report::programs([&outcome])) } else { String::new() };
        terminal::show(&format!("{}{program}", explanation.text), stdout_is_taken);
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
