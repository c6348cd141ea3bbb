//! Runs of sweeps, comparisons and papers: the same store, the same progress, the same words.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use durawarp::sweep::campaign::{self, Outlook, Part, Report};
use durawarp::sweep::host::Memory;
use durawarp::sweep::{Batch, Done, Progress, Store, Workers};

use super::args::{PointThreads, Work};
use super::exit::{Exit, Stop};
use super::progress::{self, SweepProgress};
use super::terminal;

/// Logs of jobs have no terminal: a line so often.
const LINE: Duration = Duration::from_secs(60);

/// Opens a folder of results, and tells what was passed over.
pub(super) fn open(folder: &Path, existing: bool) -> Result<Store, Stop> {
    let open = if existing { Store::open_existing } else { Store::open };
    let store = open(folder).map_err(Stop::File)?;
    store.notes().iter().for_each(|note| terminal::note(note));
    Ok(store)
}

/// How many of the points that are done were cut, where any was.
pub(super) fn cut_of_them(cut: usize) -> String {
    if cut > 0 { format!(" ({cut} cut by their cycle limit)") } else { String::new() }
}

/// What is there and what is to be done, in a line.
pub(super) fn told(what: &str, outlook: &Outlook, work: &Work) -> String {
    let Outlook { done, cut, failed, to_run, seconds, .. } = outlook;
    let mut text = format!("{what}, {done} done{}, {} to run", cut_of_them(*cut), to_run.len());
    if !failed.is_empty() {
        text += &format!(", {} failed before", failed.len());
    }
    if !to_run.is_empty() {
        let jobs = if work.jobs == 0 { std::thread::available_parallelism().map_or(1, usize::from) } else { work.jobs };
        text += &match seconds {
            Some(seconds) => format!("; about {} at {jobs} a time", progress::minutes(seconds / jobs as f64)),
            None => "; how long is not known yet".to_owned(),
        };
    }
    text + "\n"
}

/// Runs what a store does not have, with progress.
pub(super) fn run(
    batch: &Batch,
    store: &mut Store,
    outlook: &Outlook,
    part: &Part,
    work: &Work,
    quiet: bool,
) -> Result<Report, Stop> {
    let cached = outlook.points.len() - outlook.to_run.len();
    with_progress(outlook.points.len(), cached, work, quiet, |sweep| {
        campaign::run(batch, store, outlook, part, sweep).map_err(Stop::File)
    })
}

/// What came of every point of a batch: those that a folder has from there, the others run; without a folder
/// all are run.
pub(super) fn outcomes(
    name: &str,
    batch: &Batch,
    results: Option<&Path>,
    work: &Work,
    quiet: bool,
) -> Result<Vec<Done>, Stop> {
    let points = batch.points().len();
    let Some(folder) = results.filter(|_| points > 0) else {
        return Ok(with_progress(points, 0, work, quiet, |sweep| campaign::without_store(batch, sweep)));
    };
    let mut store = open(folder, false)?;
    let outlook = campaign::outlook(batch, &store, &Part::default());
    if !quiet {
        let what = format!("{name}: {points} runs, in `{}`", folder.display());
        terminal::print(&told(&what, &outlook, work));
    }
    let report = run(batch, &mut store, &outlook, &Part::default(), work, quiet)?;
    if let Some(why) = report.broken {
        return Err(Stop::File(format!("{why}; what is done is kept: run the same command again")));
    }
    campaign::results(batch, &store).map_err(Stop::File)
}

#[expect(clippy::disallowed_methods, reason = "progress is told now and then; no result depends on it")]
fn with_progress<T>(points: usize, cached: usize, work: &Work, quiet: bool, run: impl FnOnce(&Workers<'_>) -> T) -> T {
    let bar = SweepProgress::new(points, cached, quiet);
    let next = Mutex::new(Instant::now() + LINE);
    let observer = |now: &Progress| {
        bar.show(now);
        let mut next = next.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !quiet && bar.is_hidden() && Instant::now() >= *next {
            *next = Instant::now() + LINE;
            terminal::print(&format!("{}\n", bar.line(now)));
        }
    };
    let bytes = work.memory_gib.map_or_else(|| Memory::of_host().available_bytes, |gib| gib << 30);
    let done = run(&Workers {
        jobs: work.jobs,
        auto: work.threads == PointThreads::Auto,
        bytes,
        stop: Some(terminal::stop_flag()),
        observer: Some(&observer),
    });
    bar.finish();
    done
}

/// As [`complain`], of what came of every point.
pub(super) fn complain_of(batch: &Batch, done: &[Done]) -> Exit {
    let failed = done.iter().enumerate().filter_map(|(at, done)| match done {
        Done::Failed { why, .. } => Some((at, why.as_str())),
        _ => None,
    });
    complain(batch, &failed.collect::<Vec<_>>(), not_run(done))
}

/// Points that were not run.
pub(super) fn not_run(done: &[Done]) -> usize {
    done.iter().filter(|done| **done == Done::NotRun).count()
}

/// Tells which points failed, why, and how to repeat them; how many are left. The exit code.
pub(super) fn complain(batch: &Batch, failed: &[(usize, &str)], left: usize) -> Exit {
    for (at, why) in failed {
        let label = &batch.points()[*at].label;
        terminal::error(&format!("`{label}` failed: {why}\n  run it by itself: {}", batch.command(*at)));
    }
    match failed.is_empty() {
        _ if left > 0 && terminal::interrupted() => terminal::interrupted_exit(),
        true => Exit::Good,
        false => Exit::ProgramFailed,
    }
}
