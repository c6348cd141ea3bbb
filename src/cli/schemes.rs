//! `durawarp compare` and `durawarp stalls`: one workload under several schemes, what each costs, and where persists waited.

use durawarp::outcome::Outcome;
use durawarp::report;
use durawarp::report::figure::Figure;
use durawarp::run::Experiment;
use durawarp::schemes::catalogue::{self, DEFAULT_SCHEME};

use super::args::SchemesArgs;
use super::simulate::{complain, exit_of, threads, warn_of, with_progress};
use super::{Exit, Resolution, Stop, resolve_schemes, resolve_under, terminal};

/// The profile when none is named: small, as every scheme is run.
const PROFILE: &str = "ci";

/// `durawarp stalls`.
pub(super) fn stalls(args: &SchemesArgs) -> Result<Exit, Stop> {
    under_each(args, report::stalls_table, report::stalls_figure)
}

/// `durawarp compare`.
pub(super) fn compare(args: &SchemesArgs) -> Result<Exit, Stop> {
    under_each(args, report::comparison, report::comparison_figure)
}

/// Runs the workload under every scheme asked for, prints what `show` makes of it, and draws what `draw` does.
fn under_each(
    args: &SchemesArgs,
    show: fn(&Outcome, &[&Outcome]) -> String,
    draw: fn(&Outcome, &[&Outcome]) -> Figure,
) -> Result<Exit, Stop> {
    for path in args.json.iter().chain(&args.svg) {
        terminal::check_writable(path)?;
    }
    let catalogue: Vec<String> = catalogue::all().iter().map(|scheme| scheme.name().to_owned()).collect();
    let all = args.schemes.is_empty() || args.schemes.iter().any(|name| name == "all");
    let asked = if all { &catalogue } else { &args.schemes };
    // What cycles are relative to is run first, asked for or not.
    let mut names = vec![DEFAULT_SCHEME];
    names.extend(asked.iter().map(String::as_str).filter(|&name| name != DEFAULT_SCHEME));
    let schemes = resolve_schemes(&args.workload, &names, &args.subject, Some(PROFILE))?;
    let mut outcomes: Vec<Outcome> = Vec::new();
    let mut exit = Exit::Good;
    for (nth, scheme) in schemes.into_iter().enumerate() {
        let name = scheme.name.clone();
        let Resolution { machine, workload, scheme } =
            resolve_under(&args.workload, Ok(scheme), &args.subject, Some(PROFILE))?;
        if nth == 0 {
            terminal::warn(workload.warnings());
        }
        let experiment = Experiment { machine, workload, scheme, max_cycles: None, reference: true };
        let outcome = with_progress(&experiment, &name, &threads(args.threads), args.quiet).outcome;
        if nth == 0 {
            warn_of(&outcome);
        }
        if exit_of(&outcome) != Exit::Good {
            terminal::error(&format!("under scheme {name}:"));
            complain(&outcome, true);
            exit = exit_of(&outcome);
        }
        outcomes.push(outcome);
        if exit != Exit::Good {
            break;
        }
    }
    let of_asked = |(name, outcome)| asked.iter().any(|asked| asked == name).then_some(outcome);
    let shown: Vec<&Outcome> = names.iter().copied().zip(&outcomes).filter_map(of_asked).collect();
    if !args.quiet {
        terminal::print(&show(&outcomes[0], &shown));
    }
    if let Some(path) = &args.svg {
        let drawn = draw(&outcomes[0], &shown).svg().map_err(|fault| Stop::File(format!("no figure: {fault}")))?;
        terminal::write_file(path, drawn.as_bytes())?;
    }
    if let Some(path) = &args.json {
        let mut text = serde_json::to_string_pretty(&shown).map_err(|fault| Stop::File(fault.to_string()))?;
        text.push('\n');
        terminal::write_file(path, text.as_bytes())?;
    }
    Ok(exit)
}
