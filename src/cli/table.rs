//! `durawarp sweep table`: what a sweep came to, as a table for other programs.

use std::path::Path;

use durawarp::diagnostic::{Diagnostic, Diagnostics};
use durawarp::report::{lines, plain_table};
use durawarp::sweep::file::WORDS;
use durawarp::sweep::record::State;
use durawarp::sweep::table::{self, Column};
use durawarp::sweep::{Plan, metrics};

use super::args::SweepTableArgs;
use super::exit::{Exit, Stop};
use super::output::Outputs;
use super::{runs, terminal};

pub(super) fn table(args: &SweepTableArgs) -> Result<Exit, Stop> {
    let plan = args.spec.as_deref().map(Plan::load).transpose()?;
    if args.columns {
        terminal::print(&columns(plan.as_ref()));
        return Ok(Exit::Good);
    }
    let Some(plan) = plan else { return Err(Diagnostic::nowhere("", "name a sweep file").into()) };
    // All unknown metrics are reported at once, before the results are read.
    let (known, mut faults) = (metrics::all(), Diagnostics::default());
    for name in args.metrics.iter().filter(|name| known.iter().all(|metric| metric.name != **name)) {
        let fault = Diagnostic::nowhere("--metrics", format!("there is no metric `{name}`"));
        faults.push(fault.with_nearest(name, known.iter().map(|metric| metric.name.as_str())));
    }
    faults.into_result(())?;
    let store = runs::open(&args.results, true)?;
    let names = if args.metrics.is_empty() { &plan.file.metrics } else { &args.metrics };
    let stdout = Path::new("-");
    // Without any output the table is CSV on standard output.
    let nothing = args.csv.is_none() && args.json.is_none() && args.parquet.is_none();
    let mut outputs = Outputs::default();
    let csv = outputs.open("--csv", args.csv.as_deref().or(nothing.then_some(stdout)));
    let (json, parquet) =
        (outputs.open("--json", args.json.as_deref()), outputs.open("--parquet", args.parquet.as_deref()));
    outputs.ready()?;
    let table = match args.launches {
        true => table::of_launches(&plan, &store),
        false => table::of(&plan, &store, names, args.wide),
    };
    let table = table.map_err(Stop::File)?;
    if args.launches && !plan.file.launches {
        terminal::note("the sweep file has no `launches = true` under [base]: its results have no counters by launch");
    }
    if let Some(output) = csv {
        output.write(&table.csv())?;
    }
    if let Some(output) = json {
        output.write(&table.json())?;
    }
    if let Some(output) = parquet {
        output.write(&table.parquet().map_err(Stop::File)?)?;
    }
    // An incomplete table is no fault: a sweep may still be running. A note keeps it from passing for the
    // whole.
    let state = |at: &&durawarp::sweep::plan::Planned| store.result(&at.key).map(|entry| entry.head.state);
    let failed = plan.points.iter().filter(|at| state(at) == Some(State::Failed)).count();
    let missing = plan.points.iter().filter(|at| state(at).is_none()).count();
    if failed + missing > 0 {
        let all = plan.points.len();
        terminal::note(&format!(
            "of {all} points {missing} are missing and {failed} failed: run `durawarp sweep run` again"
        ));
    }
    Ok(Exit::Good)
}

/// Columns of the long form, and all metrics.
fn columns(plan: Option<&Plan>) -> String {
    let words: Vec<String> = WORDS.iter().map(|word| (*word).to_owned()).collect();
    let keys = plan.map_or(&words, |plan| &plan.columns);
    let mut shown = plain_table();
    shown.set_header(["column", "unit", "what it is"]);
    for Column { name, unit, meaning } in table::long_columns(keys) {
        shown.add_row([name, unit, meaning]);
    }
    let mut text = lines(&shown, 0);
    text +=
        "\nWith --wide `state`, `why` and `warnings` follow the keys, then NAME and NAME.relative of each metric.\n\n";
    let mut shown = plain_table();
    shown.set_header(["metric", "unit", "what it is"]);
    for metric in metrics::all() {
        shown.add_row([metric.name, metric.unit, metric.meaning]);
    }
    text + &lines(&shown, 0)
}
