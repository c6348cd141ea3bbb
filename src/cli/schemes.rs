//! `durawarp compare` and `durawarp stalls`: one workload under several schemes, what each costs, and where
//! persists waited.

use durawarp::outcome::{End, Outcome};
use durawarp::plot::Figure;
use durawarp::report;
use durawarp::run::Recipe;
use durawarp::sweep::{Batch, Comparison, Done};

use super::args::SchemesArgs;
use super::exit::{Exit, Stop};
use super::output::Outputs;
use super::recipe::{SMALL, recipe};
use super::simulate::warn_of;
use super::{runs, terminal};

/// `durawarp stalls`.
pub(super) fn stalls(args: &SchemesArgs) -> Result<Exit, Stop> {
    if recipe_of(args).is_of_a_cpu() {
        return Err(report::no_stalls_of_cpus().into());
    }
    under_each(args, report::stalls_table, report::stalls_figure)
}

/// `durawarp compare`.
pub(super) fn compare(args: &SchemesArgs) -> Result<Exit, Stop> {
    under_each(args, report::comparison, report::comparison_figure)
}

/// Runs the workload under every scheme asked for, prints what `show` makes of it, and draws what `draw`
/// does.
fn under_each(
    args: &SchemesArgs,
    show: fn(&Outcome, &[&Outcome]) -> String,
    draw: fn(&Outcome, &[&Outcome]) -> Figure,
) -> Result<Exit, Stop> {
    let comparison = Comparison::of(&recipe_of(args), &args.schemes)?;
    let Comparison { batch, points, asked, .. } = &comparison;
    // All inputs are read by now: a path that cannot be written must not cost a simulation.
    let mut outputs = Outputs::default();
    let (svg, json) = (outputs.open("--svg", args.svg.as_deref()), outputs.open("--json", args.json.as_deref()));
    let stdout_is_taken = outputs.ready()?;
    for (scheme, why) in &comparison.left_out {
        terminal::note(&format!("`{scheme}` is left out: {why}"));
    }
    terminal::warn(batch.warnings(points[0].1));
    let done = runs::outcomes(&args.workload, batch, args.results.as_deref(), &args.work, args.quiet)?;
    let outcomes = comparison.outcomes(&done);
    let exit = told(batch, &done);
    let Some(base) = &outcomes[0] else { return Ok(exit) };
    warn_of(base);
    let shown: Vec<&Outcome> =
        asked.iter().zip(&outcomes).filter_map(|(asked, of)| of.as_ref().filter(|_| *asked)).collect();
    if !args.quiet {
        let program = report::programs(shown.iter().copied());
        let program = if base.is_of_a_cpu() { String::new() } else { format!("\n  {program}") };
        terminal::show(&format!("{}{program}", show(base, &shown)), stdout_is_taken);
    }
    if let Some(output) = svg {
        let drawn = draw(base, &shown).svg().map_err(|fault| Stop::File(format!("no figure: {fault}")))?;
        output.write(drawn.as_bytes())?;
    }
    if let Some(output) = json {
        output.write_json(&shown)?;
    }
    Ok(exit)
}

/// What is asked for; its changes of schemes are for those that are compared.
fn recipe_of(args: &SchemesArgs) -> Recipe {
    recipe(&args.workload, &args.subject, Some(SMALL)).changes(&args.subject.set)
}

/// Says what failed; the exit code.
fn told(batch: &Batch, done: &[Done]) -> Exit {
    let exit = runs::complain_of(batch, done);
    let defect = |done: &Done| match done {
        Done::Failed { outcome, .. } => {
            outcome.as_ref().is_none_or(|outcome| matches!(outcome.end, End::Panicked { .. }))
        }
        _ => false,
    };
    if exit == Exit::ProgramFailed && done.iter().any(defect) { Exit::Defect } else { exit }
}
