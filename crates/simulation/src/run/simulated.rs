//! A machine of either kind, simulated: how far it came, and what is asked of every machine for an outcome.

use std::collections::BTreeMap;
use std::time::{Duration as WallTime, Instant};

use super::backlog::Left;
use super::by_launch::ByLaunch;
use super::conduct::Conduct;
use super::end::{Clocks, end_of};
use super::finished::Finished;
use super::kept::{CheckpointWhen, checkpoint_of};
use super::live;
use super::repeats::{Question, RepeatWatch};
use crate::assemble::Assembly;
use crate::config::SchemeConfig;
use crate::outcome::{self, Devices, Engine, Host, LineWrites, Outcome, Parameter, Repeats};
use durawarp_engine::{Barrier, Inspection, RunEnd, RunOptions, Scaling, Time};
use durawarp_kernel::memory::{FlatMemory, Medium};
use durawarp_machine::MAX_CORE_CYCLES;
use durawarp_machine::memory_controller::{CellWear, MemoryController};
use durawarp_machine::ports::Endpoint;
use durawarp_workload::Bindings;

/// A machine that has run.
pub(super) struct Simulated {
    pub(super) machine: Assembly,
    pub(super) clocks: Clocks,
    pub(super) end: RunEnd,
    /// What it repeats, where all that runs does.
    repeats: Option<Box<Repeats>>,
    /// What was left to be written when the program was over.
    left: Option<Left>,
    pub(super) by_launch: ByLaunch,
    wall: WallTime,
}

impl Simulated {
    /// Simulates to the end, or for `max_cycles` core cycles.
    #[expect(clippy::disallowed_methods, reason = "the wall time of a run is part of its report, not of its model")]
    pub(super) fn of(
        mut machine: Assembly,
        clocks: Clocks,
        max_cycles: Option<u64>,
        conduct: &Conduct<'_>,
        asked: Option<Question<'_>>,
    ) -> Simulated {
        let began = Instant::now();
        let inspector = conduct.monitor.map(|monitor| move |seen: &Inspection<'_>| monitor(live::state(seen, clocks)));
        let options = RunOptions {
            inspector: inspector.as_ref().map(|inspector| inspector as _),
            ..options(clocks, max_cycles, conduct)
        };
        let mut watch = RepeatWatch::new(clocks, conduct, asked);
        let mut by_launch = ByLaunch::begun(began);
        let mut end = pause(&mut machine, clocks, conduct, &options, (&mut watch, &mut by_launch));
        // The engine halts when the program is done: what is still to be written then is the backlog.
        let mut left = None;
        if let RunEnd::Halted { at, .. } = end {
            // What clients persist goes on, so that there it is no backlog.
            left = machine.nics().next().is_none().then(|| Left::of(&machine, at));
            end = durawarp_machine::run(&mut machine.simulation, &options);
        }
        if let RunEnd::TimeLimit { at } = end
            && machine.ended().is_some()
            && machine.simulation.waits().is_empty()
        {
            // All that lay beyond the limit was a wake-up for a deadline that is no more.
            end = RunEnd::Finished { at };
        }
        Simulated { machine, clocks, end, repeats: watch.found(), left, by_launch, wall: began.elapsed() }
    }

    /// A machine whose program cannot begin: which component says so, and why.
    pub(super) fn refused(machine: Assembly, clocks: Clocks, by: Endpoint, why: String) -> Simulated {
        let Some(component) = machine.id(by) else { unreachable!("a machine without {by}") };
        let name = machine.simulation.name(component).to_owned();
        let end = RunEnd::Failed { at: 0, component, name, error: why.into() };
        Simulated { end, ..Simulated::idle(machine, clocks) }
    }

    /// A machine that has done nothing.
    #[expect(clippy::disallowed_methods, reason = "the wall time of a run is part of its report, not of its model")]
    pub(super) fn idle(machine: Assembly, clocks: Clocks) -> Simulated {
        let end = RunEnd::Finished { at: 0 };
        Simulated {
            machine,
            clocks,
            end,
            repeats: None,
            left: None,
            by_launch: ByLaunch::begun(Instant::now()),
            wall: WallTime::ZERO,
        }
    }

    /// Simulates until it halts.
    #[expect(clippy::disallowed_methods, reason = "the wall time of a run is part of its report, not of its model")]
    pub(super) fn go_on(&mut self, conduct: &Conduct<'_>) {
        let began = Instant::now();
        self.end = durawarp_machine::run(&mut self.machine.simulation, &options(self.clocks, None, conduct));
        self.wall += began.elapsed();
    }

    /// When the program and all clients were done; for a run that was cut short, how far it came.
    pub(super) fn time(&self) -> Time {
        match self.end {
            // Write-backs may go on after the program is over.
            RunEnd::Finished { at } => self.machine.ended().unwrap_or(at).max(self.machine.committed().unwrap_or(0)),
            RunEnd::Deadlock { at, .. }
            | RunEnd::TimeLimit { at }
            | RunEnd::Stopped { at }
            | RunEnd::Paused { at }
            | RunEnd::Quiet { at, .. }
            | RunEnd::Halted { at, .. }
            | RunEnd::Failed { at, .. } => at,
            RunEnd::Panicked { .. } => self.machine.simulation.reached(),
        }
    }

    /// What the run would come to on the numbers of threads that were asked for.
    fn scaling(&self, conduct: &Conduct<'_>) -> Option<(Scaling, Barrier)> {
        let counts = conduct.scaling?;
        let barrier = Barrier::of_host();
        let scaling = self.machine.simulation.scaling(counts, |threads| barrier.ns(threads))?;
        Some((scaling, barrier))
    }

    /// What an outcome of either kind has; its tables, launches and the digest of memory are the caller's.
    pub(super) fn outcome(
        &self,
        machine: outcome::Machine,
        scheme: &SchemeConfig,
        workload: serde_json::Value,
        conduct: &Conduct<'_>,
    ) -> Outcome {
        let finished = matches!(self.end, RunEnd::Finished { .. });
        let simulated = &self.machine;
        Outcome {
            schema: outcome::SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine,
            scheme: scheme.built.name().to_owned(),
            scheme_variant: variant(scheme),
            scheme_logs: scheme.built.logs(),
            scheme_parameters: scheme_parameters(scheme),
            workload,
            end: match &self.repeats {
                Some(repeats) => outcome::End::Repeats(repeats.clone()),
                None => end_of(&self.end, simulated, self.clocks),
            },
            time: self.clocks.duration(self.time()),
            kernels: Vec::new(),
            launches: Vec::new(),
            // Of the kind of machine: launches and kernels, or a process.
            process: None,
            counters: Vec::new(),
            devices: Some(devices(simulated)),
            energy: None,
            wear: None,
            persists: None,
            races: None,
            sampling: None,
            region: None,
            streams: None,
            from_checkpoint: None,
            backlog: self
                .left
                .filter(|_| finished)
                .map(|left| left.backlog(simulated, |ticks| self.clocks.duration(ticks))),
            scheme_report: simulated.scheme_report(),
            scheme_counters: self.scheme_counters(),
            // These follow from the whole outcome and from memory, which are not known yet.
            warnings: Vec::new(),
            validity: Vec::new(),
            verification: None,
            digest: format!("{:016x}", simulated.simulation.digest()),
            memory_digest: String::new(),
            engine: self.engine(),
            host: self.host(conduct),
        }
    }

    /// What a run of either kind gives, so far as it is asked of the machine before memory, which takes it
    /// apart. Memory, and what one kind alone has, is the caller's.
    pub(super) fn finished(&self, outcome: Outcome, conduct: &Conduct<'_>) -> Finished {
        let mut journals = conduct.journal.then(|| self.machine.journals()).into_iter().flatten();
        Finished {
            outcome,
            memory: FlatMemory::default(),
            bindings: Bindings::default(),
            formed: None,
            epochs: self.machine.simulation.epoch_digests().cloned(),
            components: self.machine.component_names(),
            journal: journals.next(),
            other_journals: journals.collect(),
            timeline: None,
            scaling: self.scaling(conduct),
            files: Vec::new(),
            os: None,
            os_log: None,
        }
    }

    /// What the scheme's handlers counted.
    pub(super) fn scheme_counters(&self) -> BTreeMap<String, u64> {
        scheme_counters(&self.machine)
    }

    /// What the engine did.
    pub(super) fn engine(&self) -> Engine {
        engine_of(&self.machine)
    }

    fn host(&self, conduct: &Conduct<'_>) -> Host {
        let stats = self.machine.simulation.stats();
        let blocked: f64 = stats.blocked.iter().map(WallTime::as_secs_f64).sum();
        let wall_s = self.wall.as_secs_f64();
        Host {
            threads: stats.workers.max(1),
            threads_asked: conduct.threads,
            wall_s,
            blocked_share: (blocked / (wall_s * stats.workers.max(1) as f64).max(1e-9)).min(1.0),
            functional_s: 0.0,
            launches_s: self.by_launch.wall_s().collect(),
        }
    }
}

/// Runs to an end of its own, and hands out a checkpoint on the way where one is asked for. What cannot be
/// saved was found before the run ([`CheckpointAt::new`](super::checkpoint::CheckpointAt::new)).
fn pause(
    machine: &mut Assembly,
    clocks: Clocks,
    conduct: &Conduct<'_>,
    options: &RunOptions<'_>,
    (watch, by_launch): (&mut RepeatWatch<'_>, &mut ByLaunch),
) -> RunEnd {
    let halts = conduct.halts_after_launches();
    let mut whole = |machine: &mut Assembly, options: &RunOptions<'_>, until| {
        if !halts {
            return watch.run(machine, options);
        }
        launches(machine, options, watch, conduct.launches.then_some(&mut *by_launch), until)
    };
    let Some(checkpoint) = &conduct.checkpoint else { return whole(machine, options, None) };
    // The first launch has none before it: all that comes before is at cycle 0.
    let (cycle, launch) = match checkpoint.when {
        CheckpointWhen::Cycle(cycle) => (cycle, None),
        CheckpointWhen::Launch(0 | 1) => (0, None),
        CheckpointWhen::Launch(launch) => (MAX_CORE_CYCLES, Some(launch - 1)),
    };
    let pause_at = Some(clocks.core.cycles(cycle.min(MAX_CORE_CYCLES)));
    // A limit cuts rounds, and a checkpoint must not: up to it there is none, unless it comes first.
    let most = Some(clocks.core.cycles(MAX_CORE_CYCLES));
    let time_limit = if pause_at <= options.time_limit { most } else { options.time_limit };
    let paused = RunOptions { pause_at, time_limit, ..options.clone() };
    let end = match launch {
        None => past_program(machine, |machine| whole(machine, &paused, None)),
        launch => whole(machine, options, launch),
    };
    let cycle = match end {
        RunEnd::Paused { .. } => cycle,
        RunEnd::Halted { at, .. } if launch.is_some() && machine.ended().is_none() => clocks.duration(at).core_cycles,
        end => return end,
    };
    let line_writes = conduct.line_writes || conduct.from.is_some_and(|from| from.line_writes);
    match checkpoint_of(machine, cycle, line_writes, checkpoint.experiment.clone()) {
        Ok(made) => (checkpoint.keep)(made),
        Err(fault) => panic!("a machine that was checked cannot be saved: {fault}"),
    }
    whole(machine, options, None)
}

/// Runs a machine to an end of its own: where clients go on after the server's program, that is none.
pub(super) fn past_program(machine: &mut Assembly, mut run: impl FnMut(&mut Assembly) -> RunEnd) -> RunEnd {
    match run(machine) {
        RunEnd::Halted { .. } if machine.nics().next().is_some() => run(machine),
        end => end,
    }
}

/// Runs on over the ends of launches, and reads the counters at each where that is asked for; up to the end
/// of launch `until`, counted from 1, or to an end of its own.
fn launches(
    machine: &mut Assembly,
    options: &RunOptions<'_>,
    watch: &mut RepeatWatch<'_>,
    mut by_launch: Option<&mut ByLaunch>,
    until: Option<u64>,
) -> RunEnd {
    loop {
        let end = watch.run(machine, options);
        if !matches!(end, RunEnd::Halted { .. }) {
            return end;
        }
        // Several launches may end in one round.
        let over = machine.launches_over();
        if let Some(by_launch) = by_launch.as_mut() {
            (by_launch.len()..over).for_each(|_| by_launch.read(machine));
        }
        if machine.ended().is_some() || until.is_some_and(|until| over as u64 >= until) {
            return end;
        }
    }
}

pub(super) fn options<'a>(clocks: Clocks, max_cycles: Option<u64>, conduct: &Conduct<'a>) -> RunOptions<'a> {
    RunOptions {
        threads: conduct.threads,
        auto: conduct.auto,
        trace: conduct.scaling.is_some(),
        placement: conduct.placement.clone(),
        rebalance: conduct.rebalance,
        fallback: conduct.fallback,
        time_limit: Some(clocks.core.cycles(max_cycles.unwrap_or(u64::MAX).min(MAX_CORE_CYCLES))),
        epoch_ticks: conduct.epoch_cycles.map(|cycles| clocks.core.cycles(cycles)),
        stop: conduct.stop,
        observer: conduct.observer,
        oversubscribe: conduct.oversubscribe,
        ..RunOptions::default()
    }
}

fn scheme_counters(machine: &Assembly) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    let mut add = |name: &'static str, count: u64| *counters.entry(name.to_owned()).or_default() += count;
    machine.sms().for_each(|sm| sm.tally(&mut add));
    machine.slices().for_each(|slice| slice.tally(&mut add));
    machine.controllers().for_each(|controller| controller.tally(&mut add));
    let of_cpus = machine.cores().map(|core| core.report()).chain(machine.homes().map(|home| home.report()));
    let of_cpus = of_cpus.chain(machine.nics().map(|nic| nic.report()));
    of_cpus.flat_map(|report| report.counters).for_each(|(name, value)| add(name, value));
    counters
}

/// What devices did: their rows and cells.
fn devices(machine: &Assembly) -> Devices {
    let wear = || machine.controllers().map(MemoryController::wear);
    let rows = |medium: Medium| wear().map(|wear| wear.activates()[medium as usize]).sum();
    Devices {
        dram_activates: rows(Medium::Dram),
        nvm_activates: rows(Medium::Nvm),
        nvm_cell_bytes: wear().map(CellWear::cell_bytes).sum(),
        nvm_bank_writes: wear().map(|wear| wear.bank_writes().to_vec()).collect(),
        nvm_lines: wear()
            .map(CellWear::lines)
            .collect::<Option<Vec<_>>>()
            .map(|all| LineWrites::of(all.into_iter().flatten())),
    }
}

fn engine_of(machine: &Assembly) -> Engine {
    let stats = machine.simulation.stats();
    Engine {
        events: stats.events(),
        messages: stats.messages,
        rounds: stats.totals.rounds,
        lookahead_ticks: machine.simulation.horizon().lookahead(),
        parallelism_bound: stats.parallelism(),
    }
}

/// What the scheme's file calls it.
fn variant(config: &SchemeConfig) -> Option<String> {
    (config.name != config.built.name()).then(|| config.name.clone())
}

fn scheme_parameters(config: &SchemeConfig) -> BTreeMap<String, Parameter> {
    let of = |(name, value): (&String, &serde_json::Value)| {
        let source = config.sources.get(name).cloned().unwrap_or_default();
        (name.clone(), Parameter { value: value.clone(), source })
    };
    config.values.iter().map(of).collect()
}
