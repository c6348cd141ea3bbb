//! `durawarp reproduce`: a paper's experiments, ours beside the published numbers.

use durawarp::diagnostic::{Diagnostic, Diagnostics};
use durawarp::reproduce::kernels::{self, KERNELS, PaperKernel};
use durawarp::reproduce::{Figure, Plan, Protocol, Reproduction, Request};
use durawarp::sweep::{self, Sweep};

use super::args::ReproduceArgs;
use super::progress::SweepProgress;
use super::settings::Settings;
use super::{Exit, Stop, terminal};

/// The papers that there are.
const PAPERS: [&str; 1] = ["agpm"];

pub(super) fn reproduce(args: &ReproduceArgs) -> Result<Exit, Stop> {
    let plan = Plan::new(request(args)?)?;
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder)
            .map_err(|fault| Stop::File(format!("cannot make the folder `{}`: {fault}", folder.display())))?;
        terminal::check_writable(&folder.join("agpm.md"))?;
    }
    let progress = SweepProgress::new(plan.points().len(), args.quiet);
    let observer = |now: &sweep::Progress| progress.show(now);
    let sweep =
        Sweep { jobs: args.jobs, stop: Some(terminal::stop_flag()), observer: Some(&observer), ..Sweep::default() };
    let results = sweep::run(plan.points(), &sweep);
    progress.finish();

    let found = Reproduction::of(&plan, &results);
    // The tables first: they must not be lost to a full disk.
    if !args.quiet {
        terminal::print(&found.text());
    }
    if let Some(folder) = &args.out {
        for (name, content) in found.files() {
            terminal::write_file(&folder.join(name), content.as_bytes())?;
        }
    }
    for record in &found.records {
        if let Err(why) = &record.result {
            terminal::error(&format!("run `{}`: {why}", record.label));
        }
    }
    Ok(match found.complete() {
        true => Exit::Good,
        false if terminal::interrupted() => Exit::Interrupted,
        false => Exit::ProgramFailed,
    })
}

/// What was asked for; every fault at once.
fn request(args: &ReproduceArgs) -> Result<Request, Diagnostics> {
    let mut faults = Diagnostics::default();
    if !PAPERS.contains(&args.paper.as_str()) {
        let message = format!("there is no paper `{}` to reproduce; there are {}", args.paper, PAPERS.join(", "));
        faults.push(Diagnostic::nowhere("", message).with_nearest(&args.paper, PAPERS));
    }
    let figures = Figure::parse(&args.figure).unwrap_or_else(|found| {
        faults.0.extend(found.0);
        Vec::new()
    });
    let mut chosen: Vec<&'static PaperKernel> = Vec::new();
    for name in &args.kernels {
        match kernels::find(name) {
            Some(kernel) => chosen.push(kernel),
            None => {
                let names = || KERNELS.iter().map(|kernel| kernel.name);
                let all: Vec<&str> = names().collect();
                let message = format!("the paper has no kernel `{name}`; it has {}", all.join(", "));
                faults.push(Diagnostic::nowhere("--kernels", message).with_nearest(name, names()));
            }
        }
    }
    // In the paper's order, each once.
    let wanted = |kernel: &&PaperKernel| args.kernels.is_empty() || chosen.contains(kernel);
    let kernels = KERNELS.iter().filter(wanted).collect();
    let Settings { machine: set, schemes: scheme_set, params, faults: unread } = Settings::read(&args.set);
    faults.0.extend(unread.0);
    for (name, _) in params {
        let message = format!("`params.{name}`: sizes follow from --profile here");
        faults.push(Diagnostic::nowhere("--set", message));
    }
    faults.into_result(Request {
        figures,
        kernels,
        profile: args.profile.clone(),
        machine: args.machine.clone(),
        set,
        scheme_set,
        seed: args.seed,
        protocol: Protocol { loop_log: args.loop_log, flag_barrier: args.flag_barrier },
    })
}
