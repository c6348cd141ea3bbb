//! `durawarp reproduce`: a paper's experiments, ours beside the published numbers.

use durawarp::papers::{Asked, PaperPlan, Reproduction};

use super::args::ReproduceArgs;
use super::exit::{Exit, Stop};
use super::output::Output;
use super::{runs, terminal};

pub(super) fn reproduce(args: &ReproduceArgs) -> Result<Exit, Stop> {
    let plan = PaperPlan::new(asked(args).request()?)?;
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

/// What was asked for.
fn asked(args: &ReproduceArgs) -> Asked {
    Asked {
        paper: args.paper.clone(),
        figures: args.figure.clone(),
        kernels: args.kernels.clone(),
        programs: args.programs.clone(),
        profile: args.profile.clone(),
        machine: args.machine.clone(),
        set: args.set.clone(),
        no_readings: args.no_readings,
        flag_barrier: args.flag_barrier,
        loop_log: args.loop_log,
        reload: args.reload,
        seed: args.seed,
    }
}
