//! `durawarp sensitivity`: which of a machine's numbers matter.

use durawarp::config::Settings;
use durawarp::diagnostic::{Diagnostic, Diagnostics};
use durawarp::schemes::catalogue::DEFAULT_SCHEME;
use durawarp::sensitivity::{Plan, Request, Sensitivity};

use super::args::SensitivityArgs;
use super::exit::{Exit, Stop};
use super::output::Outputs;
use super::{runs, terminal};

pub(super) fn sensitivity(args: &SensitivityArgs) -> Result<Exit, Stop> {
    let plan = Plan::new(&request(args)?)?;
    let mut outputs = Outputs::default();
    let csv = outputs.open("--csv", args.csv.as_deref());
    let markdown = outputs.open("--markdown", args.markdown.as_deref());
    let stdout_is_taken = outputs.ready()?;
    let results = runs::outcomes("sensitivity", plan.batch(), args.results.as_deref(), &args.work, args.quiet)?;

    let found = Sensitivity::of(&plan, &results);
    if !args.quiet {
        terminal::show(&found.text(), stdout_is_taken);
    }
    if let Some(output) = csv {
        output.write(found.csv().as_bytes())?;
    }
    if let Some(output) = markdown {
        output.write(found.markdown().as_bytes())?;
    }
    let left = runs::not_run(&results);
    if left > 0 {
        terminal::note(&format!("{left} of {} runs are left", results.len()));
    }
    Ok(runs::complain_of(plan.batch(), &results))
}

/// What was asked for; every fault at once.
fn request(args: &SensitivityArgs) -> Result<Request, Diagnostics> {
    let Settings { machine, schemes, params, mut faults } = Settings::read(&args.set);
    for (name, _) in params {
        let message = format!("`params.{name}`: sizes follow from --profile here");
        faults.push(Diagnostic::nowhere("--set", message));
    }
    faults.into_result(Request {
        machine: args.machine.clone(),
        machine_set: machine,
        scheme: args.scheme.scheme.clone().unwrap_or_else(|| DEFAULT_SCHEME.to_owned()),
        scheme_set: schemes,
        workloads: args.workloads.clone(),
        profile: args.profile.clone(),
        seed: args.seed,
        all: args.all,
        keys: args.keys.clone(),
    })
}
