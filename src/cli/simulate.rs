//! `durawarp run`.

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use durawarp::diagnostic::{Diagnostic, Diagnostics};
use durawarp::outcome::{End, Outcome, Repeats};
use durawarp::report::{self, Kept};
use durawarp::run::checkpoint::{Checkpoint, CheckpointAt};
use durawarp::run::{AnyExperiment, Beginning, Conduct};
use durawarp::sweep::host::{self, Memory, Need};
use durawarp::timeline::Timeline;
use durawarp::workload::Resolved;

use super::args::{Compat, RunArgs, Threads};
use super::checkpoint::{self, Writing};
use super::exit::{Exit, Stop};
use super::monitor::{Monitor, Title};
use super::output::{Output, Outputs};
use super::recipe::whole_recipe;
use super::run_progress::monitored;
use super::terminal;
use super::written_files::WrittenFiles;

pub(super) fn run(args: &RunArgs) -> Result<Exit, Stop> {
    let (recipe, experiment, from) = match &args.from {
        Some(file) => {
            let Beginning { recipe, experiment, from } = checkpoint::read(file, &args.subject.set)?;
            (recipe, experiment, Some(from))
        }
        None => {
            // Where there is no checkpoint there is a workload: the arguments say so.
            let workload = args.workload.as_deref().unwrap_or_default();
            let recipe = whole_recipe(workload, args.scheme.scheme.as_deref(), &args.subject, None);
            let experiment = recipe.clone().sample(args.sample).roi(args.roi.clone()).build_any()?;
            (recipe, experiment, None)
        }
    };
    let experiment = experiment.with_max_cycles(args.max_cycles).with_reference(!args.no_reference);
    let ordered = checkpoint::ordered(args)?;
    if let Some(ordered) = &ordered
        && from.as_ref().is_some_and(|from| from.forked().is_some())
    {
        let message = "a run whose parameters have changed on the way has no recipe that a checkpoint could name";
        return Err(Diagnostic::nowhere(ordered.option(), message).with_help("leave out --set").into());
    }
    if args.compat.is_some() && experiment.gpu().is_none() {
        let message = "accelsim has names of counters of GPUs, and this is a program of CPUs";
        return Err(Diagnostic::nowhere("--compat", message).into());
    }
    if args.launches && experiment.gpu().is_none() {
        let message = "counters by launch are of kernels, and this is a program of CPUs";
        return Err(Diagnostic::nowhere("--launches", message).into());
    }
    let kernels = experiment.gpu().map(|experiment| &experiment.workload);
    if args.races && kernels.is_none_or(Resolved::is_trace) {
        let message = "races are looked for in programs of GPUs, and in no traces: these have no values";
        return Err(Diagnostic::nowhere("--races", message).into());
    }
    let dumps = dumps(args, kernels)?;
    let mut outputs = Outputs::default();
    let json = outputs.open("--json", args.json.as_deref());
    let timeline_file = outputs.open("--timeline", args.timeline.as_deref());
    let dumps: Vec<(String, Option<Output>)> =
        dumps.into_iter().map(|(buffer, path)| (buffer, outputs.open("--dump", Some(&path)))).collect();
    let writing = ordered.as_ref().map(|ordered| Writing::open(ordered, &recipe, &mut outputs));
    let stdout_is_taken = outputs.ready()?;
    let folder = args.file_out.as_deref().map(|folder| WrittenFiles::below(folder, &experiment)).transpose()?;
    let keep = |made: Checkpoint| writing.iter().for_each(|writing| writing.write(&made));
    let at = ordered.as_ref().map(|ordered| CheckpointAt::new(&experiment, ordered.when, &keep));
    let checkpoint = at.transpose()?;
    // Before the run, which may be long: an address that is taken is told at once.
    let monitor = args.monitor.map(|address| Monitor::open(address, title(&experiment))).transpose()?;
    if let Some(monitor) = &monitor {
        terminal::say(&format!("this run is shown at http://{}/ until it ends", monitor.address()));
    }
    if let Some(kernels) = kernels {
        terminal::warn(kernels.warnings());
    }
    // Before anything is assembled.
    let (need, memory) = (Need::of(&experiment), Memory::of_host());
    host::shortage(need, memory).iter().for_each(|told| terminal::note(told));
    if !args.quiet {
        host::large(need, memory).iter().for_each(|told| terminal::say(told));
    }

    let name = experiment.describe().workload;
    let budget = args.timeline_budget_mib << 20;
    let timeline = args.timeline.as_ref().map(|_| budget);
    let Threads { most, auto } = args.threads;
    let repeat_cycles = args.repeat_cycles;
    let conduct = Conduct {
        repeat_cycles,
        timeline,
        line_writes: args.wear,
        races: args.races,
        // What came before a checkpoint is not known by launch.
        launches: (args.launches || args.compat.is_some()) && from.is_none(),
        auto,
        checkpoint,
        from: from.as_ref(),
        ..threads(most)
    };
    let finished = monitored(&experiment, &name, &conduct, args.quiet, monitor.as_ref());

    let outcome = &finished.outcome;
    // The table first: it must not be lost to a full disk.
    if !args.quiet {
        let text = match args.compat {
            Some(Compat::Accelsim) => report::accelsim(outcome),
            None => report::summary(outcome),
        };
        terminal::show(&text, stdout_is_taken);
    }
    let mut written = Vec::new();
    written.extend(json.map(|output| output.write_json(outcome)));
    if let (Some(output), Some(timeline)) = (timeline_file, &finished.timeline) {
        written.push(write_timeline(output, timeline, outcome, budget, args.quiet));
    }
    for (buffer, output) in dumps {
        let Some(kernels) = kernels else { break };
        let bytes = kernels.dump(&buffer, &finished.memory, &finished.bindings)?;
        written.extend(output.map(|output| output.write(&bytes)));
    }
    written.extend(writing.iter().map(|writing| writing.end(outcome)));
    written.extend(folder.iter().flat_map(|folder| folder.write(&finished.files)));
    warn_of(outcome);
    complain(outcome, args.quiet);
    if args.races && outcome.races.is_none() {
        terminal::note("races were not looked for, as there was no functional run to the end");
    }
    let mut exit = exit_of(outcome);
    monitor.iter().for_each(Monitor::close);
    // One file that cannot be written does not keep the others from being.
    for stop in written.into_iter().filter_map(Result::err) {
        let failed = terminal::tell(stop);
        exit = if exit == Exit::Good { failed } else { exit };
    }
    Ok(exit)
}

/// What is run, for its page.
fn title(experiment: &AnyExperiment) -> Title {
    let (machine, scheme) = match experiment {
        AnyExperiment::Gpu(of) => (&of.machine.name, &of.scheme.name),
        AnyExperiment::Cpu(of) => (&of.machine.name, &of.scheme.name),
    };
    Title {
        workload: experiment.describe().workload,
        machine: machine.clone(),
        scheme: scheme.clone(),
        instructions: if experiment.gpu().is_some() { "warp instructions" } else { "instructions" },
    }
}

/// Writes a timeline, compressed where its name says so, and says on standard error what is not in it.
fn write_timeline(
    output: Output,
    timeline: &Timeline,
    outcome: &Outcome,
    budget: u64,
    quiet: bool,
) -> Result<(), Stop> {
    let mut kept = Vec::new();
    let file = output.path().to_owned();
    let compressed = output.path().extension().is_some_and(|end| end == "gz");
    output.stream(|file| {
        kept = report::write_timeline(timeline, outcome, budget, compressed, BufWriter::new(file))?;
        Ok(())
    })?;
    if !quiet && file != Path::new("-") {
        terminal::say(&format!("the timeline is in `{}`: open it with https://ui.perfetto.dev", file.display()));
    }
    kept.iter().filter_map(Kept::told).for_each(|told| terminal::note(&told));
    Ok(())
}

/// So many threads, and nothing else out of the ordinary.
pub(super) fn threads(threads: usize) -> Conduct<'static> {
    Conduct { threads, ..Conduct::default() }
}

/// What to dump where; a buffer that does not exist is told before the run.
fn dumps(args: &RunArgs, workload: Option<&Resolved>) -> Result<Vec<(String, PathBuf)>, Stop> {
    let buffers: Vec<&str> = workload.map_or_else(Vec::new, |workload| workload.buffer_names().collect());
    let (mut dumps, mut faults) = (Vec::new(), Diagnostics::default());
    for text in &args.dump {
        match text.split_once('=') {
            Some((buffer, file)) if buffers.contains(&buffer) => {
                dumps.push((buffer.to_owned(), PathBuf::from(file)));
            }
            Some((buffer, _)) => {
                let message = match buffers.is_empty() {
                    true if workload.is_some_and(Resolved::is_trace) => {
                        format!("there is no buffer `{buffer}`: a trace has no values")
                    }
                    true => format!("there is no buffer `{buffer}`: a program of CPUs has none"),
                    false => format!("there is no buffer `{buffer}`; there are {}", buffers.join(", ")),
                };
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
        (End::Repeats(repeats), _) => terminal::error(&told_of(repeats, quiet)),
        (End::Panicked { message }, _) => {
            terminal::error(&format!("the simulator failed, which is a defect: {message}"));
        }
        (End::Cut { .. }, _) => {
            let cycles = report::count(outcome.time.core_cycles);
            terminal::note(&format!("cut at its cycle limit, after {cycles} cycles: the result was not checked"));
        }
        (End::Finished, Some(check)) if !check.passed => {
            terminal::error(&format!("the result is wrong: {}", check.failures.join("\n  ")));
        }
        _ => {}
    }
    for race in outcome.races.iter().flatten() {
        terminal::error(&format!("race: {race}"));
    }
}

/// In words, a run that only repeats itself: all of it, or its first line.
pub(super) fn told_of(repeats: &Repeats, whole: bool) -> String {
    let lines = repeats.lines();
    let text = if whole { lines.join("\n  ") } else { lines.first().cloned().unwrap_or_default() };
    format!("the run only repeats itself, and no value has changed since cycle {}: {text}", repeats.since)
}

pub(super) fn exit_of(outcome: &Outcome) -> Exit {
    match (&outcome.end, &outcome.verification) {
        (End::Panicked { .. }, _) => Exit::Defect,
        (End::Failed { .. } | End::Deadlock { .. } | End::Repeats(_), _) => Exit::ProgramFailed,
        _ if terminal::interrupted() => terminal::interrupted_exit(),
        (_, Some(check)) if !check.passed => Exit::ProgramFailed,
        _ if outcome.races.as_ref().is_some_and(|races| !races.is_empty()) => Exit::ProgramFailed,
        _ => Exit::Good,
    }
}
