//! `durawarp bisect`: the first epoch, component and event at which two runs part.

use std::path::Path;

use durawarp::bisect::{Bisected, FORMAT, Parting, RunRecord, bisect as compare};
use durawarp::diagnostic::{Diagnostic, Diagnostics};
use durawarp::input;
use durawarp::outcome::Outcome;
use durawarp::report;
use durawarp::run::{AnyExperiment, Epochs, Recipe, recipe_of};
use durawarp::workload::Description;

use super::args::BisectArgs;
use super::exit::{Exit, Stop};
use super::output::Outputs;
use super::recipe::{SMALL, recipe};
use super::terminal;

/// What is compared with what, when nothing is said.
const NOTHING: &str = "nothing to compare with: name another run, change something of it with --other, or name a file \
                       with --save or --against";

pub(super) fn bisect(args: &BisectArgs) -> Result<Exit, Stop> {
    let second = args.second.is_some() || !args.other.is_empty();
    if !second && args.save.is_none() && args.against.is_none() {
        return Err(Diagnostic::nowhere("bisect", NOTHING).into());
    }
    let against = args.against.as_deref().map(read).transpose()?;
    let one = experiment(&args.first, args, &[])?;
    let epochs = against.as_ref().map_or_else(
        || Epochs::of(&one, args.epoch_cycles),
        // Those of the file, so that rows can be compared.
        |(record, _)| record.epochs,
    );
    if !second {
        return with_file(args, &one, epochs, against);
    }
    let other = experiment(args.second.as_ref().unwrap_or(&args.first), args, &args.other)?;
    terminal::print(&format!("A: {}\nB: {}\n", one.title(), other.title()));
    let found = compare([&one, &other], epochs, Some(terminal::stop_flag()));
    Ok(tell(&found, args.epoch_cycles, None))
}

/// The run is saved, or compared with one that was.
fn with_file(
    args: &BisectArgs,
    one: &AnyExperiment,
    epochs: Epochs,
    against: Option<(RunRecord, String)>,
) -> Result<Exit, Stop> {
    let mut outputs = Outputs::default();
    let save = outputs.open("--save", args.save.as_deref());
    outputs.ready()?;
    // Events of the epoch that the file has events of.
    let told = against.as_ref().and_then(|(record, _)| Some(record.events.as_ref()?.epoch)).or(args.epoch);
    let Some(record) = RunRecord::of(one, one.title(), epochs, told, Some(terminal::stop_flag())) else {
        return Ok(terminal::interrupted_exit());
    };
    if let Some(save) = save {
        save.write_json(&record)?;
    }
    let Some((saved, file)) = against else { return Ok(Exit::Good) };
    terminal::print(&format!("A: {}, version {}, from {file}\nB: {}\n", saved.title, saved.version, record.title));
    // Cycles of the run's own core clock: the file may have other epochs than --epoch-cycles.
    let cycles = epochs.ticks / one.cycle_ticks().max(1);
    Ok(tell(&saved.compare(&record), cycles, Some(&file)))
}

/// A file of `--save`, and its name.
fn read(path: &Path) -> Result<(RunRecord, String), Diagnostic> {
    let name = path.display().to_string();
    let text = input::text(path).map_err(|fault| Diagnostic::nowhere(&name, format!("cannot be read: {fault}")))?;
    let record: RunRecord = serde_json::from_str(&text).map_err(|fault| {
        let fault = Diagnostic::nowhere(&name, format!("this is no file of `durawarp bisect --save`: {fault}"));
        fault.with_help("`durawarp bisect WORKLOAD --save FILE` writes one")
    })?;
    if record.format > FORMAT {
        let message = format!("is of format {}, and this program knows formats up to {FORMAT}", record.format);
        return Err(Diagnostic::nowhere(&name, message));
    }
    Ok((record, name))
}

/// The experiment of a workload's name, or of a file of `run --json`, with what is changed of it.
fn experiment(named: &str, args: &BisectArgs, changes: &[String]) -> Result<AnyExperiment, Stop> {
    let of_result = Path::new(named).extension().is_some_and(|end| end == "json");
    let (recipe, recorded) = if of_result {
        let outcome = Outcome::read(Path::new(named))?;
        (recipe_of(&outcome), Some(outcome.workload))
    } else {
        let recipe = recipe(named, &args.subject, Some(SMALL)).changes(&args.subject.set);
        let scheme = args.scheme.scheme.as_ref();
        (scheme.map_or(recipe.clone(), |scheme| recipe.scheme(scheme)), None)
    };
    let experiment =
        recipe.clone().max_cycles(args.max_cycles.or(recipe.most_cycles())).reference(false).build_any()?;
    if let Some(recorded) = recorded {
        of_the_same(named, &recorded, &experiment.describe())?;
    }
    if changes.is_empty() {
        return Ok(experiment);
    }
    let changed = changes.iter().fold(recipe.reference(false), |recipe, text| changed(recipe, text));
    let built = changed.max_cycles(args.max_cycles).build_any();
    Ok(built.map_err(|faults| as_typed(faults, changes))?)
}

/// A recipe with a change that `--other` names.
fn changed(recipe: Recipe, text: &str) -> Recipe {
    match text.split_once('=') {
        Some((key, value)) => recipe.set(key.trim(), value.trim()),
        None => recipe.fault(Diagnostic::nowhere("--other", format!("expected KEY=VALUE; got `{text}`"))),
    }
}

/// Faults of what `--other` changes, under that option: a recipe knows changes as `--set`.
fn as_typed(mut faults: Diagnostics, changes: &[String]) -> Diagnostics {
    for fault in &mut faults.0 {
        let change = fault.file.strip_prefix("--set ").map(str::to_owned);
        if let Some(change) = change.filter(|change| changes.contains(change)) {
            fault.file = format!("--other {change}");
        }
    }
    faults
}

/// What a result says of its workload is what would run now.
fn of_the_same(file: &str, recorded: &serde_json::Value, now: &Description) -> Result<(), Diagnostics> {
    let now = serde_json::to_value(now).unwrap_or_default();
    if now == *recorded {
        return Ok(());
    }
    let differs = recorded.as_object().into_iter().flatten().find(|(key, value)| now[key.as_str()] != **value);
    let what = differs.map_or("workload", |(key, _)| key.as_str());
    let message = format!("the run cannot be repeated from its result: `{what}` of the workload would be another");
    let help = "a result holds no options like --persistent and --input, and no arguments of a program: name the \
                workload with them";
    Err(Diagnostic::nowhere(file, message).with_help(help).into())
}

/// Tells how two runs compare. The exit code.
fn tell(found: &Bisected, epoch_cycles: u64, file: Option<&str>) -> Exit {
    let count = report::count;
    let (text, exit) = match found {
        Bisected::Equal { epochs, events } => (
            format!("equal: {} events in {} epochs, and all final states\n", count(*events), count(*epochs)),
            Exit::Good,
        ),
        Bisected::Parted(parting) => (parted(parting, epoch_cycles, file), Exit::Unequal),
        Bisected::States { component } => {
            let text = "all events are equal, but not the bytes that they carried: the final state differs";
            (format!("{text}, first that of `{component}`\n"), Exit::Unequal)
        }
        Bisected::Ends([one, other]) => {
            let text = "all events are equal, but the runs ended differently";
            (format!("{text}:\n  A: {one}\n  B: {other}\n"), Exit::Unequal)
        }
        Bisected::Stopped => return terminal::interrupted_exit(),
    };
    terminal::print(&text);
    exit
}

fn parted(parting: &Parting, epoch_cycles: u64, file: Option<&str>) -> String {
    let Parting { epochs: (from, to), component, differing, event } = parting;
    let cycles = format!("core cycles {} to {}", from * epoch_cycles, to * epoch_cycles);
    let when = if to - from == 1 { format!("epoch {from}") } else { format!("epochs {from} to {}", to - 1) };
    let mut out = format!("they part in {when} ({cycles}), ");
    out += &match (event, differing - 1) {
        (_, 0) => format!("at `{component}`\n"),
        (Some(_), others) => format!("at `{component}`, with {others} other components that differ there\n"),
        (None, others) => format!("at {} components, among them `{component}`\n", others + 1),
    };
    let Some(event) = event else {
        if let Some(file) = file {
            out += &format!("which event: write {file} again by its own version, with --epoch {from}\n");
        }
        return out;
    };
    out += &format!("its events in the epoch are equal up to {}; then\n", event.before);
    for (name, told) in ["A", "B"].into_iter().zip(&event.of) {
        out += &match told {
            Some(told) => format!("  {name}: at {:.3} ns: {}\n", told.ps as f64 / 1e3, told.what),
            None => format!("  {name}: nothing more in the epoch\n"),
        };
    }
    out
}
