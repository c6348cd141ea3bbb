//! `durawarp run`.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use durawarp::diagnostic::{Diagnostic, Diagnostics};
use durawarp::engine::Snapshot;
use durawarp::outcome::{End, Outcome};
use durawarp::report::{self, Kept};
use durawarp::run::{Conduct, Experiment, Finished, run as simulate};
use durawarp::timeline::Timeline;
use durawarp::workload::Resolved;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::args::RunArgs;
use super::progress::Progress;
use super::{Exit, Resolution, Stop, resolve, terminal};

pub(super) fn run(args: &RunArgs) -> Result<Exit, Stop> {
    let Resolution { machine, workload, scheme } = resolve(&args.workload, &args.scheme.scheme, &args.subject, None)?;
    let dumps = dumps(args, &workload)?;
    for path in args.json.iter().chain(&args.timeline).chain(dumps.iter().map(|(_, path)| path)) {
        terminal::check_writable(path)?;
    }
    terminal::warn(workload.warnings());

    let name = workload.describe().workload;
    let experiment =
        Experiment { machine, workload, scheme, max_cycles: args.max_cycles, reference: !args.no_reference };
    experiment.check()?;
    let budget = args.timeline_budget_mib << 20;
    let conduct = Conduct { timeline: args.timeline.as_ref().map(|_| budget), ..threads(args.threads) };
    let finished = with_progress(&experiment, &name, &conduct, args.quiet);

    let outcome = &finished.outcome;
    // The table first: it must not be lost to a full disk.
    if !args.quiet {
        terminal::print(&report::summary(outcome));
    }
    if let Some(path) = &args.json {
        terminal::write_json(path, outcome)?;
    }
    if let (Some(path), Some(timeline)) = (&args.timeline, &finished.timeline) {
        write_timeline(path, timeline, outcome, budget)?;
    }
    for (buffer, path) in &dumps {
        let bytes = experiment.workload.dump(buffer, &finished.memory, &finished.bindings)?;
        terminal::write_file(path, &bytes)?;
    }
    warn_of(outcome);
    complain(outcome, args.quiet);
    Ok(exit_of(outcome))
}

/// Writes a timeline, compressed where its name says so, and says on standard error what is not in it.
fn write_timeline(path: &Path, timeline: &Timeline, outcome: &Outcome, budget: u64) -> Result<(), Stop> {
    let mut kept = Vec::new();
    terminal::stream_file(path, |file| {
        let mut out = BufWriter::new(file);
        if path.extension().is_some_and(|end| end == "gz") {
            let mut packed = GzEncoder::new(out, Compression::default());
            kept = report::chrome_trace(timeline, outcome, budget, &mut packed)?;
            packed.finish()?.flush()
        } else {
            kept = report::chrome_trace(timeline, outcome, budget, &mut out)?;
            out.flush()
        }
    })?;
    for Kept { class, kept, noted } in kept.iter().filter(|class| class.kept < class.noted) {
        let (kept, noted) = (report::count(*kept), report::count(*noted));
        terminal::note(&format!(
            "the timeline holds {kept} of {noted} {class}, evenly spread; --timeline-budget-mib raises its size"
        ));
    }
    Ok(())
}

/// So many threads, and nothing else out of the ordinary.
pub(super) fn threads(threads: usize) -> Conduct<'static> {
    Conduct { threads, ..Conduct::default() }
}

/// Simulates; says how far it is, under a name, unless it is to be quiet, and heeds Ctrl-C.
pub(super) fn with_progress(experiment: &Experiment, name: &str, conduct: &Conduct<'_>, quiet: bool) -> Finished {
    let spec = &experiment.machine.spec;
    let cycle_ticks = spec.timebase().map_or(1, |base| base.clock(spec.clock.core_mhz.khz).period_ticks());
    let progress = Progress::new(name, experiment.workload.total_ctas(), cycle_ticks, quiet);
    let observer = |now: &Snapshot| progress.show(now);
    let conduct = Conduct { stop: Some(terminal::stop_flag()), observer: Some(&observer), ..conduct.clone() };
    let finished = simulate(experiment, &conduct);
    progress.finish();
    finished
}

/// What to dump where; a buffer that does not exist is told before the run.
fn dumps(args: &RunArgs, workload: &Resolved) -> Result<Vec<(String, PathBuf)>, Stop> {
    let buffers: Vec<&str> = workload.buffer_names().collect();
    let (mut dumps, mut faults) = (Vec::new(), Diagnostics::default());
    for text in &args.dump {
        match text.split_once('=') {
            Some((buffer, file)) if buffers.contains(&buffer) => {
                dumps.push((buffer.to_owned(), PathBuf::from(file)));
            }
            Some((buffer, _)) => {
                let message = format!("there is no buffer `{buffer}`; there are {}", buffers.join(", "));
                let fault = Diagnostic::nowhere("--dump", message);
                faults.push(fault.with_nearest(buffer, buffers.iter().copied()));
            }
            None => faults.push(Diagnostic::nowhere("--dump", format!("expected BUFFER=FILE; got `{text}`"))),
        }
    }
    Ok(faults.into_result(dumps)?)
}

/// Says on standard error what is odd about the program.
pub(super) fn warn_of(outcome: &Outcome) {
    for warning in &outcome.warnings {
        terminal::note(&warning.message);
    }
}

/// Says on standard error what the table may have said on standard output, for scripts and logs.
pub(super) fn complain(outcome: &Outcome, quiet: bool) {
    match (&outcome.end, &outcome.verification) {
        (End::Failed { error }, _) => terminal::error(&format!("the simulated program failed: {error}")),
        (End::Deadlock { waits }, _) => {
            let first = if quiet { waits.join("\n  ") } else { waits.first().cloned().unwrap_or_default() };
            terminal::error(&format!("deadlock: {first}"));
        }
        (End::Panicked { message }, _) => {
            terminal::error(&format!("the simulator failed, which is a defect: {message}"));
        }
        (End::Finished, Some(check)) if !check.passed => {
            terminal::error(&format!("the result is wrong: {}", check.failures.join("\n  ")));
        }
        _ => {}
    }
}

pub(super) fn exit_of(outcome: &Outcome) -> Exit {
    match (&outcome.end, &outcome.verification) {
        (End::Panicked { .. }, _) => Exit::Defect,
        (End::Failed { .. } | End::Deadlock { .. }, _) => Exit::ProgramFailed,
        _ if terminal::interrupted() => Exit::Interrupted,
        (_, Some(check)) if !check.passed => Exit::ProgramFailed,
        _ => Exit::Good,
    }
}
