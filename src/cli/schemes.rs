//! `durawarp compare` and `durawarp stalls`: one workload under several schemes, what each costs, and where
//! persists waited.

use durawarp::config::{Compute, Override, SchemeConfig};
use durawarp::diagnostic::{Diagnostic, Diagnostics};
use durawarp::outcome::{End, Outcome};
use durawarp::plot::Figure;
use durawarp::report;
use durawarp::run::Recipe;
use durawarp::schemes::catalogue::{self, DEFAULT_SCHEME};
use durawarp::sweep::{Batch, Done};
use durawarp::workload::Workload;

use super::args::SchemesArgs;
use super::exit::{Exit, Stop};
use super::output::Outputs;
use super::recipe::{SMALL, recipe};
use super::settings::Settings;
use super::simulate::warn_of;
use super::{runs, terminal};

/// `durawarp stalls`.
pub(super) fn stalls(args: &SchemesArgs) -> Result<Exit, Stop> {
    if is_of_a_cpu(args) {
        let message = "stages of persists are those of a GPU's; `run` says where the slots of cores went";
        return Err(Diagnostic::nowhere("stalls", message).into());
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
    let fitting = if is_of_a_cpu(args) { catalogue::of_cpus() } else { catalogue::all() };
    let catalogue: Vec<String> = fitting.iter().map(|scheme| scheme.name().to_owned()).collect();
    let all = args.schemes.is_empty() || args.schemes.iter().any(|name| name == "all");
    let asked = if all { &catalogue } else { &args.schemes };
    // What cycles are relative to is run first, asked for or not.
    let mut names = vec![DEFAULT_SCHEME];
    names.extend(asked.iter().map(String::as_str).filter(|&name| name != DEFAULT_SCHEME));
    let (mut batch, mut points) = batch_of(args, &names)?;
    // Every scheme of kernels fits every machine with a GPU.
    if is_of_a_cpu(args) {
        let fit = those_that_fit(args, &names, asked)?;
        if fit.len() < names.len() {
            names = fit;
            (batch, points) = batch_of(args, &names)?;
        }
    }
    let mut outputs = Outputs::default();
    let (svg, json) = (outputs.open("--svg", args.svg.as_deref()), outputs.open("--json", args.json.as_deref()));
    let stdout_is_taken = outputs.ready()?;
    terminal::warn(batch.warnings(points[0].1));
    let done = runs::outcomes(&args.workload, &batch, args.results.as_deref(), &args.work, args.quiet)?;
    let outcomes: Vec<Option<Outcome>> = points.iter().map(|(name, at)| outcome(&done[*at], name)).collect();
    let exit = told(&batch, &done);
    let Some(base) = &outcomes[0] else { return Ok(exit) };
    warn_of(base);
    let of_asked = |(name, outcome): (&str, _)| asked.iter().any(|asked| asked == name).then_some(outcome);
    let shown: Vec<&Outcome> = names.iter().copied().zip(&outcomes).filter_map(of_asked).flatten().collect();
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

/// All schemes are those of the machine; where none is named, of the workload's. What cannot be read is told
/// when the batch is made.
fn is_of_a_cpu(args: &SchemesArgs) -> bool {
    match &args.subject.machine {
        Some(machine) => Compute::of(machine) == Compute::Cpu,
        None => Workload::load(&args.workload).is_ok_and(|workload| workload.is_of_a_cpu()),
    }
}

/// Whether a run under a scheme, as it is without changes, could begin.
fn fits(args: &SchemesArgs, scheme: &str) -> Result<(), Diagnostics> {
    let (of_machine, _) = recipe_without_schemes(args);
    of_machine.scheme(scheme).build_any().map(drop)
}

/// What is asked for but the schemes and their changes, which are beside it, with the faults of changes.
fn recipe_without_schemes(args: &SchemesArgs) -> (Recipe, (Vec<Override>, Diagnostics)) {
    let Settings { machine, schemes, params, faults } = Settings::read(&args.subject.set);
    let recipe = machine.into_iter().fold(recipe(&args.workload, &args.subject, Some(SMALL)), Recipe::change);
    (params.iter().fold(recipe, |recipe, (name, value)| recipe.param(name, value)), (schemes, faults))
}

/// The schemes that fit the machine; each other is told (nobody persists what clients post, say). Of those
/// that are asked for one must.
fn those_that_fit<'a>(args: &SchemesArgs, schemes: &[&'a str], asked: &[String]) -> Result<Vec<&'a str>, Diagnostics> {
    let (mut fit, mut left_out, mut faults) = (Vec::new(), Vec::new(), Diagnostics::default());
    for &scheme in schemes {
        match fits(args, scheme) {
            Ok(()) => fit.push(scheme),
            Err(found) => {
                left_out.push((scheme, found.0.first().map_or_else(String::new, |fault| fault.message.clone())));
                faults.0.extend(found.0);
            }
        }
    }
    if !asked.iter().any(|asked| fit.contains(&asked.as_str())) {
        return Err(faults);
    }
    left_out.iter().for_each(|(scheme, why)| terminal::note(&format!("`{scheme}` is left out: {why}")));
    Ok(fit)
}

/// The workload under each scheme: what is to be run, and each scheme's name and point. Every fault at once.
fn batch_of(args: &SchemesArgs, schemes: &[&str]) -> Result<(Batch, Vec<(String, usize)>), Diagnostics> {
    let (recipe, (set, mut faults)) = recipe_without_schemes(args);
    let mut keep = |found: Diagnostics| faults.0.extend(found.0);
    // Whom an override is for is known when all schemes are read.
    let loaded = SchemeConfig::load_each(schemes, &set).map_err(&mut keep).ok();
    let (mut batch, mut points) = (Batch::default(), Vec::new());
    // Where one is wrong, the faults of machine and workload are told with it.
    let loaded = loaded.map_or_else(|| SchemeConfig::load_each(&schemes[..1], &[]), Ok)?;
    for (named, scheme) in schemes.iter().zip(loaded) {
        let of_scheme = set.iter().filter(|over| over.table() == scheme.table()).cloned();
        let recipe = of_scheme.fold(recipe.clone().scheme(*named), Recipe::change);
        match batch.add(&format!("{} {}", args.workload, scheme.name), 0, recipe) {
            Ok(point) => points.push((scheme.name, point)),
            Err(found) => {
                // The others have the same.
                keep(found);
                break;
            }
        }
    }
    faults.into_result((batch, points))
}

/// What is known of a run, under the name that was asked for: results do not depend on names, so that one
/// that is kept may have another.
fn outcome(done: &Done, scheme: &str) -> Option<Outcome> {
    let mut outcome = match done {
        Done::Good(outcome) | Done::Cut(outcome) => (**outcome).clone(),
        Done::Failed { outcome, .. } => (**outcome.as_ref()?).clone(),
        Done::NotRun => return None,
    };
    outcome.scheme_variant = (outcome.scheme != scheme).then(|| scheme.to_owned());
    Some(outcome)
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
