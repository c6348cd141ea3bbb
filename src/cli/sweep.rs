//! `durawarp sweep run` and `durawarp sweep status`: the points of a sweep file, run or looked up; `durawarp
//! sweep lint`.

use std::path::Path;

use durawarp::report;
use durawarp::sweep;
use durawarp::sweep::Plan;
use durawarp::sweep::campaign::{self, Fate, Outlook, Part, Report};
use durawarp::sweep::file::text_of;
use durawarp::sweep::slurm::{self, Job};

use super::args::{SweepLintArgs, SweepRunArgs, SweepStatusArgs};
use super::exit::{Exit, Stop};
use super::output::Output;
use super::{runs, terminal};

pub(super) fn run(args: &SweepRunArgs) -> Result<Exit, Stop> {
    let plan = Plan::load(&args.spec)?;
    if let Some(tasks) = args.slurm {
        return submit(args, &plan, tasks);
    }
    let mut store = runs::open(&args.results, args.dry_run)?;
    let part = Part { shard: args.shard, keep_failed: args.keep_failed };
    let outlook = campaign::outlook(&plan.batch, &store, &part);
    if !args.quiet {
        terminal::print(&told(args, &plan, &outlook));
    }
    if args.dry_run {
        return Ok(Exit::Good);
    }
    let report = runs::run(&plan.batch, &mut store, &outlook, &part, &args.work, args.quiet)?;
    Ok(tell(args, &plan, &outlook, &report))
}

/// What is there and what is to be done.
fn told(args: &SweepRunArgs, plan: &Plan, outlook: &Outlook) -> String {
    let shard = args.shard.map_or_else(String::new, |(nth, of)| format!(" of shard {}/{of}", nth + 1));
    let what = format!("{}: {} points{shard}", plan.file.name, outlook.points.len());
    let mut text = runs::told(&what, outlook, &args.work);
    if args.dry_run {
        for &at in &outlook.to_run {
            let planned = &plan.points[at];
            text += &format!("{}  {}\n", &planned.key[..12], planned.label);
        }
        // What cannot be read is told when it is run.
        let warnings = sweep::lint(plan).map_or(0, |warnings| warnings.len());
        if warnings > 0 {
            text += &format!("{warnings} warnings: durawarp sweep lint {}\n", args.spec.display());
        }
    }
    text
}

/// Says what came of it.
fn tell(args: &SweepRunArgs, plan: &Plan, outlook: &Outlook, report: &Report) -> Exit {
    let count = |wanted: fn(&Fate) -> bool| report.fates.iter().filter(|fate| wanted(fate)).count();
    let (ran, cached) = (count(|fate| matches!(fate, Fate::Ran | Fate::Cut)), count(|fate| *fate == Fate::Cached));
    let cut = outlook.cut + count(|fate| *fate == Fate::Cut);
    let left = count(|fate| *fate == Fate::NotRun);
    // Points that failed before count here only where they were not run again; else the report has their new
    // fates.
    let failed: Vec<(usize, &str)> = match args.keep_failed {
        true => outlook.failed.iter().map(|(at, why)| (*at, why.as_str())).collect(),
        false => Vec::new(),
    };
    let now = outlook.to_run.iter().zip(&report.fates).filter_map(|(at, fate)| match fate {
        Fate::Failed(why) => Some((*at, why.as_str())),
        _ => None,
    });
    let failed: Vec<(usize, &str)> = failed.into_iter().chain(now).collect();
    if !args.quiet {
        let mut text = format!("done {} ({} cached)", outlook.done + cached + ran, outlook.done + cached);
        for (count, what) in [(cut, "cut by their cycle limit"), (failed.len(), "failed"), (left, "not run")] {
            if count > 0 {
                text += &format!(", {count} {what}");
            }
        }
        terminal::print(&format!("{text}\n"));
    }
    let exit = runs::complain(&plan.batch, &failed, left);
    if let Some(why) = &report.broken {
        terminal::error(&format!("{why}; {left} points are left, what is done is kept: run the same command again"));
        return Exit::BadInput;
    }
    exit
}

/// Writes the script of an array job and hands it in.
fn submit(args: &SweepRunArgs, plan: &Plan, tasks: u32) -> Result<Exit, Stop> {
    let whole = |path: &Path| {
        std::path::absolute(path)
            .map_err(|fault| Stop::File(format!("cannot tell where `{}` is: {fault}", path.display())))
    };
    let program =
        std::env::current_exe().map_err(|fault| Stop::File(format!("cannot tell where this program is: {fault}")))?;
    let job = Job {
        name: plan.file.name.clone(),
        program,
        spec: whole(&args.spec)?,
        results: whole(&args.results)?,
        // Relative paths in the sweep file are relative to here if they are not beside it.
        folder: whole(Path::new("."))?,
        tasks,
        jobs: args.work.jobs,
        keep_failed: args.keep_failed,
        sbatch: args.sbatch_arg.clone(),
    };
    if args.dry_run {
        terminal::print(&job.script());
        return Ok(Exit::Good);
    }
    let store = runs::open(&args.results, false)?;
    let outlook = campaign::outlook(&plan.batch, &store, &Part { shard: None, keep_failed: args.keep_failed });
    if !args.quiet {
        terminal::print(&told(args, plan, &outlook));
    }
    if outlook.to_run.is_empty() {
        return Ok(Exit::Good);
    }
    let path = job.results.join(format!("{}.sbatch", job.name));
    Output::at(&path)?.write(job.script().as_bytes())?;
    let answer = slurm::submit(&path).map_err(Stop::File)?;
    terminal::print(&format!("{answer}\n"));
    Ok(Exit::Good)
}

pub(super) fn status(args: &SweepStatusArgs) -> Result<Exit, Stop> {
    let plan = Plan::load(&args.spec)?;
    let store = runs::open(&args.results, true)?;
    let outlook = campaign::outlook(&plan.batch, &store, &Part::default());
    // Points that failed are to be run again, so that `to_run` has them, too: the rest of it is missing.
    let failed: Vec<usize> = outlook.failed.iter().map(|(at, _)| *at).collect();
    let (all, missing) = (plan.points.len(), outlook.to_run.len() - failed.len());
    let mut text = format!(
        "{}: {all} points, {} done{}, {} failed, {missing} missing\n",
        plan.file.name,
        outlook.done,
        runs::cut_of_them(outlook.cut),
        failed.len()
    );
    let mut table = report::plain_table();
    table.set_header(["axis", "value", "done", "failed", "missing"]);
    for (column, key) in plan.columns.iter().enumerate() {
        let mut values: Vec<String> = Vec::new();
        for planned in &plan.points {
            let value = text_of(&planned.values[column]);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        // An axis with one value would repeat the totals.
        if values.len() < 2 {
            continue;
        }
        for value in values {
            let of = |at: &usize| text_of(&plan.points[*at].values[column]) == value;
            let here = (0..all).filter(of).count();
            let bad = failed.iter().filter(|at| of(at)).count();
            let gone = outlook.to_run.iter().filter(|at| of(at)).count() - bad;
            let shown = if value.is_empty() { "does not apply".to_owned() } else { value };
            let counts = [here - bad - gone, bad, gone].map(|n| report::count(n as u64));
            let [done, bad, gone] = counts;
            table.add_row([key.clone(), shown, done, bad, gone]);
        }
    }
    if !table.is_empty() {
        text += &report::lines(&table, 0);
    }
    for (at, why) in &outlook.failed {
        text += &format!("FAILED {}: {why}\n  {}\n", plan.points[*at].label, plan.batch.command(*at));
    }
    terminal::print(&text);
    Ok(Exit::Good)
}

pub(super) fn lint(args: &SweepLintArgs) -> Result<Exit, Stop> {
    let plan = Plan::load(&args.spec)?;
    let warnings = sweep::lint(&plan)?;
    terminal::warn(&warnings);
    let (points, axes) = (plan.points.len(), plan.file.axes.len());
    let count = warnings.len();
    terminal::print(&format!("{}: {points} points, {axes} axes, {count} warnings\n", plan.file.name));
    Ok(if args.strict && count > 0 { Exit::Unequal } else { Exit::Good })
}
