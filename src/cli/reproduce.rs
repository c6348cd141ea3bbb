//! `durawarp reproduce`: a paper's experiments, ours beside the published numbers.

use durawarp::diagnostic::{Diagnostic, Diagnostics};
use durawarp::papers::{self, PaperPlan, Reproduction, Request};

use super::args::ReproduceArgs;
use super::exit::{Exit, Stop};
use super::output::Output;
use super::settings::Settings;
use super::{runs, terminal};

pub(super) fn reproduce(args: &ReproduceArgs) -> Result<Exit, Stop> {
    let plan = PaperPlan::new(request(args)?)?;
    if let Some(folder) = &args.out {
        terminal::make_folder(folder)?;
        Output::at(&folder.join(format!("{}.md", args.paper)))?;
    }
    let kept = (!args.no_store).then_some(args.results.as_path());
    let results = runs::outcomes(&args.paper, plan.batch(), kept, &args.work, args.quiet)?;

    let found = Reproduction::of(&plan, &results);
    // The tables first: they must not be lost to a full disk.
    if !args.quiet {
        terminal::print(&found.text());
    }
    if let Some(folder) = &args.out {
        for (name, content) in found.files() {
            Output::at(&folder.join(name))?.write(content.as_bytes())?;
        }
    }
    let left = runs::not_run(&results);
    if left > 0 {
        let again = if args.no_store { "" } else { ", what is done is kept: run the same command again" };
        terminal::note(&format!("{left} of {} runs are left{again}", results.len()));
    }
    let [_, not_met, _] = found.tally();
    Ok(match runs::complain_of(plan.batch(), &results) {
        Exit::Good if args.strict && not_met > 0 => Exit::Unequal,
        exit => exit,
    })
}

/// What was asked for; every fault at once.
fn request(args: &ReproduceArgs) -> Result<Request, Diagnostics> {
    let mut faults = Diagnostics::default();
    let Settings { machine: set, schemes: scheme_set, params, faults: unread } = Settings::read(&args.set);
    // Which figures and kernels there are is known of a paper only.
    let chosen = papers::find(&args.paper).map_err(Diagnostics::from);
    let chosen = chosen.and_then(|paper| Request::new(paper).only(&args.figure, &args.kernels));
    let request = chosen.map_err(|found| faults.0.extend(found.0)).ok();
    faults.0.extend(unread.0);
    for (name, _) in params {
        let message = format!("`params.{name}`: sizes follow from --profile here");
        faults.push(Diagnostic::nowhere("--set", message));
    }
    let Some(mut request) = request else { return Err(faults) };
    request.bracket = !args.no_readings;
    request.instrument.flag_barrier = args.flag_barrier.or(request.instrument.flag_barrier);
    request.instrument.loop_log = args.loop_log.or(request.instrument.loop_log);
    let (profile, machine) = (args.profile.clone(), args.machine.clone().unwrap_or(request.machine));
    faults.into_result(Request { profile, machine, set, scheme_set, seed: args.seed, ..request })
}
