//! A run of one machine from its beginning, or from a checkpoint, to its end: what it came to, and whether
//! that is right.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::conduct::Conduct;
use super::end::Clocks;
use super::finished::{Finished, failures};
use super::program::{Experiment, Program};
use super::repeats;
use super::simulated::Simulated;
use super::tables::{counters, describe, persists, warnings};
use super::{by_kernel, streams, timeline};
use crate::assemble::{Assembly, Persistency, assemble_with};
use crate::outcome::{self, End, Launch, Outcome, Warning};
use durawarp_base::stats::Table;
use durawarp_engine::Time;
use durawarp_kernel::functional::races::Race;
use durawarp_kernel::functional::scrutiny::Scrutiny;
use durawarp_kernel::functional::unwritten::Unwritten;
use durawarp_kernel::functional::{Limits, RunError};
use durawarp_kernel::host::HostProgram;
use durawarp_kernel::ir::Kernel;
use durawarp_kernel::memory::FlatMemory;
use durawarp_workload::{Evidence, FunctionalError, FunctionalRun, Verification};

/// Instructions that the functional reference may execute beyond those of the simulation, and at most how
/// many times as many: a program with races may take another way, but not without end.
const REFERENCE_EXTRA: u64 = 1 << 20;
const REFERENCE_FACTOR: u64 = 4;

/// The clocks of an experiment's machine.
pub(super) fn clocks_of(experiment: &Experiment) -> Clocks {
    let spec = &experiment.machine.spec;
    Clocks::of(spec.timebase(), spec.clock.core_mhz)
}

/// Simulates a program whole, or from a checkpoint on.
pub(super) fn run_program(experiment: &Experiment, program: Program, conduct: &Conduct<'_>) -> Finished {
    let (spec, workload) = (&experiment.machine.spec, &experiment.workload);
    let clocks = clocks_of(experiment);
    let base = clocks.base;
    let Program { formed, host, bindings } = program;
    let image = || experiment.image(formed.as_ref());
    let one_by_one = streams::one_by_one(experiment, &*host);
    let mut machine = machine_of(experiment, image(), host, conduct);
    if let Some(from) = conduct.from
        && let Err(fault) = from.load(&mut machine, &experiment.scheme.built)
    {
        panic!("the checkpoint is of another experiment: {fault}");
    }
    let asked = |machine: &Assembly, long: bool| repeats::of_warps(machine, image(), long);
    // Warps of several kernels on an SM are not followed.
    let overlaps = machine.command_processor().overlaps();
    let asked = (!workload.is_trace() && !overlaps).then_some(&asked as repeats::Question<'_>);
    let ran = Simulated::of(machine, clocks, experiment.max_cycles, conduct, asked);

    let (machine, time) = (&ran.machine, ran.time());
    let mut launches = launches(machine, time, clocks);
    if conduct.launches {
        ran.by_launch.attribute(machine, &mut launches);
    }
    let described = serde_json::to_value(workload.describe()).unwrap_or_default();
    let outcome = Outcome {
        kernels: by_kernel::totals(machine, &launches, |ticks| clocks.duration(ticks)),
        launches,
        counters: counters(machine),
        streams: streams::of(machine, one_by_one),
        persists: persists(machine, base),
        warnings: warnings(machine),
        from_checkpoint: conduct.from.and_then(|from| from.forked.clone()),
        ..ran.outcome(describe(&experiment.machine, base), &experiment.scheme, described, conduct)
    };
    // All that is asked of the machine is asked before its memory: `into_memory` takes it apart.
    let timeline = conduct.timeline.map(|_| {
        let open = base.ticks_of_ps(spec.dispatch.command_ns.ps);
        let selection = outcome.selection();
        timeline::timeline(machine, &outcome.launches, selection.as_ref(), time, (base.tick_khz(), clocks.core), open)
    });
    let finished = ran.finished(outcome, conduct);
    let memory = ran.machine.into_memory(image());
    let mut finished = Finished { memory, bindings, formed, timeline, ..finished };
    finished.outcome.memory_digest = format!("{:016x}", finished.memory.digest());
    // A trace has no values to judge.
    if finished.outcome.end == End::Finished && !workload.is_trace() {
        judge(experiment, conduct, &mut finished);
    }
    // Last, as this follows from the whole outcome.
    Finished { outcome: outcome::computed(finished.outcome), ..finished }
}

/// The machine around a memory image and a host program, ready to run.
pub(super) fn machine_of(
    experiment: &Experiment,
    image: FlatMemory,
    host: Box<dyn HostProgram>,
    conduct: &Conduct<'_>,
) -> Assembly {
    let spec = &experiment.machine.spec;
    let persistency = Persistency {
        scheme: experiment.scheme.built.clone(),
        devices: experiment.machine.devices.clone(),
        journal: conduct.journal,
        timeline: conduct
            .timeline
            .map(|bytes| timeline::spans_each(bytes, spec.sm.count + spec.l2.slices + spec.controller.channels + 1)),
        places: false,
        line_writes: conduct.line_writes || conduct.from.is_some_and(|from| from.line_writes),
        halts_at_end: true,
        halts_after_launches: conduct.halts_after_launches(),
        overlaps: streams::one_by_one(experiment, &*host).is_none(),
    };
    assemble_with(spec, image, experiment.workload.local_bytes() as u32, host, &persistency)
}

/// Runs the reference and the checks.
#[expect(clippy::disallowed_methods, reason = "the wall time of the reference is part of the report")]
pub(super) fn judge(experiment: &Experiment, conduct: &Conduct<'_>, finished: &mut Finished) {
    let began = Instant::now();
    let limits = limits_of(experiment, conduct, &finished.outcome);
    let reference = experiment.reference.then(|| functional_run(experiment, conduct, &limits));
    if reference.is_some() {
        finished.outcome.host.functional_s = began.elapsed().as_secs_f64();
    }
    if let Some(Err(FunctionalError::Kernel(RunError::Stopped))) = reference {
        // Nobody knows whether the result is right: it is no failure, and a sweep runs the point again.
        finished.outcome.end = End::Stopped;
        return;
    }
    let functional = reference.as_ref().and_then(|result| result.as_deref().ok());
    let metrics = metrics(&finished.outcome);
    let evidence = Evidence { functional, other_machine: None, metrics: Some(&metrics) };
    let mut verification = experiment.workload.verify(&finished.memory, &finished.bindings, evidence);
    // What follows from numbers of this machine alone is not wrong: a second reference tells it apart.
    if functional.is_some()
        && experiment.workload.differs_from_functional(&verification)
        && let Some((kernel, pc)) = experiment.workload.first_machine_read()
    {
        let limits = Limits { other_machine_sms: Some(experiment.machine.spec.sm.count), ..limits };
        match functional_run(experiment, conduct, &limits) {
            Ok(other) => {
                let evidence = Evidence { other_machine: Some(&other), ..evidence };
                verification = experiment.workload.verify(&finished.memory, &finished.bindings, evidence);
                finished.outcome.warnings.extend(not_judged(&verification, kernel, pc));
            }
            Err(FunctionalError::Kernel(RunError::Stopped)) => {
                finished.outcome.end = End::Stopped;
                return;
            }
            Err(_) => {}
        }
    }
    if let Some(functional) = functional {
        let scrutiny = functional.scrutiny();
        finished.outcome.warnings.extend(scrutiny.unwritten().iter().map(unwritten));
        finished.outcome.races = scrutiny.races().map(<[Race]>::to_vec);
    }
    let mut failures = failures(&verification);
    if let Some(Err(why)) = &reference {
        failures.push(format!("there is no reference to compare with: {why}"));
    }
    finished.outcome.verification = Some(outcome::Verification::of(&verification, failures));
}

/// A functional run: this run's own, or one that it shares. That of another machine is not watched.
fn functional_run(
    experiment: &Experiment,
    conduct: &Conduct<'_>,
    limits: &Limits<'_>,
) -> Result<Arc<FunctionalRun>, FunctionalError> {
    let watched = limits.other_machine_sms.is_none();
    let run = || {
        let scrutiny = if watched { Scrutiny::new(conduct.races) } else { Scrutiny::default() };
        let mut run = experiment.workload.run_under(limits, scrutiny)?;
        experiment.workload.forget_unneeded(&mut run);
        Ok(run)
    };
    match conduct.references.filter(|_| !(conduct.races && watched)) {
        Some(references) => references.of(limits, run),
        None => run().map(Arc::new),
    }
}

/// What checks that found nothing wrong could not judge, as values of the machine decide it.
fn not_judged(verification: &Verification, kernel: &Kernel, pc: u32) -> impl Iterator<Item = Warning> {
    let skipped = verification.checks.iter().filter(|check| check.outcome == durawarp_workload::Outcome::Skipped);
    skipped.map(move |skipped| Warning {
        message: format!("check `{}`: {}", skipped.name, skipped.message.as_deref().unwrap_or_default()),
        kernel: kernel.name.clone(),
        file: kernel.file.to_string(),
        line: kernel.pos.get(pc as usize).map_or(0, |pos| pos.line),
        launch: 0,
    })
}

fn unwritten(found: &Unwritten) -> Warning {
    Warning {
        message: found.message.clone(),
        kernel: found.kernel.clone(),
        file: found.file.to_string(),
        line: found.line,
        launch: found.launch,
    }
}

/// How far the functional run may go.
fn limits_of<'a>(experiment: &Experiment, conduct: &Conduct<'a>, outcome: &Outcome) -> Limits<'a> {
    Limits {
        warp_instructions: outcome.warp_instructions() * REFERENCE_FACTOR + REFERENCE_EXTRA,
        warp_size: experiment.machine.spec.sm.warp_size,
        stop: conduct.stop,
        drops_log_stores: experiment.scheme.built.drops_log_stores(),
        ..Limits::default()
    }
}

/// The figures of a timed run that a manifest's expectations may name.
fn metrics(outcome: &Outcome) -> BTreeMap<String, f64> {
    let mut metrics = BTreeMap::from([
        ("launches".to_owned(), outcome.launches.len() as f64),
        ("ctas".to_owned(), outcome.total("sm", "ctas") as f64),
        ("cycles".to_owned(), outcome.time.core_cycles as f64),
    ]);
    metrics.extend(outcome.counters.iter().flat_map(Table::totals).map(|(name, total)| (name, total as f64)));
    for name in ["warp_instructions", "thread_instructions"] {
        metrics.insert(name.to_owned(), outcome.total("sm", name) as f64);
    }
    metrics
}

fn launches(machine: &Assembly, time: Time, clocks: Clocks) -> Vec<Launch> {
    let records = machine.command_processor().launches();
    let several = records.iter().any(|record| record.stream != records[0].stream);
    let of = |record: &durawarp_machine::command_processor::LaunchRecord| {
        // One that was cut short lasts until the cut; one that had to wait until then has not begun.
        let start = record.start.min(time);
        let end = if record.end == 0 { time } else { record.end }.max(start);
        Launch {
            kernel: record.kernel.clone(),
            stream: several.then_some(record.stream),
            grid: record.grid,
            block: record.block,
            ctas_per_sm: record.occupancy.ctas,
            limited_by: record.occupancy.limit.clone(),
            l1_kb: record.carveout.map(|carveout| carveout.l1_kb),
            shared_kb: record.carveout.map(|carveout| carveout.shared_kb),
            start: clocks.duration(start),
            length: clocks.duration(end - start),
            counters: BTreeMap::new(),
        }
    };
    // Behind the last that began are launches that were read ahead, or one that no SM can hold.
    let begun = records.iter().rposition(|record| record.start != Time::MAX).map_or(0, |last| last + 1);
    records[..begun].iter().map(of).collect()
}
