//! A sampled run: some launches and waves of CTAs simulated in detail, everything executed on the
//! functional driver, and the time of the whole estimated with an interval.
//!
//! ```text
//!   functional:  ──launch──copy──launch──────────────────────────────launch──  all of it: values, final memory
//!                  │copy of memory         │          │          │
//!   detail:        └─ stretch ─────────>   └─ warm-up, sample ─> ...           each on a machine of its own (stretch)
//!                       ticks                    ticks ─> model of the launch or group (estimate) ─> sum, interval
//! ```
//! `plan` decides what runs in detail, `walk` does it, `estimate` is the arithmetic, `sums` adds up counters.
//!
//! Invariants: final memory is that of the functional driver; a program of which nothing is worth skipping
//! runs in one stretch and takes exactly as long as unsampled; decisions rest on counts alone, so that a
//! sampled run is the same on every host and at any number of threads. Not modelled: what a skipped part
//! leaves in caches, queues, open rows and in the state of a scheme's handlers. Persists are not told of,
//! nor is the backlog.

mod estimate;
mod plan;
mod stretch;
mod sums;
mod walk;

use std::time::Instant;

use super::conduct::Conduct;
use super::end::Clocks;
use super::finished::{Finished, failures};
use super::program::Experiment;
use super::tables::{describe, digest_of};
use crate::engine::Time;
use crate::kernel::functional::RunError;
use crate::outcome::{self, Duration, End, KernelTotals, Launch, Outcome, SampledKernel, Sampling};
use crate::workload::{Evidence, FunctionalError};
use estimate::{Model, Predicted, Unit};
use walk::{Ended, LaunchWay, SampledLaunch, SampledWalk};

/// Runs an experiment by a sample of `windows` waves of each launch of many.
#[expect(clippy::disallowed_methods, reason = "the wall time of a run is part of its report, not of its model")]
pub(super) fn run(experiment: &Experiment, conduct: &Conduct<'_>, windows: u32) -> Finished {
    let began = Instant::now();
    let (spec, workload) = (&experiment.machine.spec, &experiment.workload);
    let Some(base) = spec.timebase() else { unreachable!("a machine that was loaded has a timebase") };
    let clocks = Clocks { base, core: base.clock(spec.clock.core_mhz.khz) };
    let mut host = workload.host();
    let bindings = host.bindings();
    let mut walk = SampledWalk::new(experiment, conduct, clocks, windows);
    let ended = walk.walk(&mut host).err();
    // What an outcome has beside times and counters is that of any stretch.
    let last = walk.last_machine();
    let components = last.machine.component_names();
    let described = serde_json::to_value(workload.describe()).unwrap_or_default();
    let detail = last.outcome(describe(&experiment.machine, base), &experiment.scheme, described, conduct);
    let end = match ended {
        None => End::Finished,
        Some(Ended::Detail) => detail.end.clone(),
        Some(Ended::Functional(FunctionalError::Kernel(RunError::Stopped))) => End::Stopped,
        Some(Ended::Functional(why)) => End::Failed { error: why.to_string() },
    };
    let estimate = Estimate::of(&walk, clocks);
    let simulated = walk.sums.total("sm", "warp_instructions");
    let sampling = estimate.sampling(&walk, simulated, windows, clocks);
    let memory = walk.memory;
    // Counters include warm-ups; scaled so, the instructions are exactly those of the program.
    let factor = if simulated > 0 { sampling.warp_instructions as f64 / simulated as f64 } else { 1.0 };
    let engine = walk.sums.engine.unwrap_or(detail.engine);
    let (digest, warnings) = (walk.sums.digest, walk.sums.warnings.clone());
    let threads = walk.sums.threads.max(1);
    let (counters, scheme_counters) = walk.sums.scaled(if sampling.is_whole() { 1.0 } else { factor });
    let mut outcome = Outcome {
        end,
        time: clocks.duration(estimate.total.ticks.round() as Time),
        kernels: estimate.kernels(clocks),
        launches: estimate.launches,
        counters,
        scheme_counters,
        scheme_report: None,
        sampling: Some(sampling),
        devices: None,
        persists: None,
        backlog: None,
        warnings,
        digest: format!("{digest:016x}"),
        memory_digest: format!("{:016x}", digest_of(&memory)),
        engine,
        host: outcome::Host { threads, wall_s: began.elapsed().as_secs_f64(), functional_s: 0.0, ..detail.host },
        ..detail
    };
    // Values are the functional driver's own, so that there is nothing else to compare them with.
    if outcome.end == End::Finished {
        let verification = workload.verify(&memory, &bindings, Evidence::default());
        let failures = failures(&verification);
        outcome.verification = Some(outcome::Verification {
            passed: failures.is_empty(),
            checks: serde_json::to_value(&verification).unwrap_or_default(),
            failures,
        });
    }
    Finished {
        outcome: outcome::computed(outcome),
        memory,
        bindings,
        formed: None,
        epochs: None,
        components,
        journal: None,
        other_journals: Vec::new(),
        timeline: None,
        scaling: None,
        os: None,
    }
}

/// What the run came to.
struct Estimate {
    total: Predicted,
    launches: Vec<Launch>,
}

impl Estimate {
    fn of(walk: &SampledWalk<'_>, clocks: Clocks) -> Estimate {
        let in_detail = |launch: &&SampledLaunch| launch.way != LaunchWay::Skipped;
        let rest = |launch: &SampledLaunch| match &launch.way {
            LaunchWay::Cut { rest, .. } => *rest,
            _ => Predicted::default(),
        };
        // Of each group: with what the host does after a launch, and without.
        let models: Vec<[Option<Model>; 2]> = (0..walk.groups.len())
            .map(|group| {
                let of_group = || walk.launches.iter().filter(in_detail).filter(move |launch| launch.group == group);
                let units = |ticks: fn(&SampledLaunch) -> Time| -> Vec<Unit> {
                    let unit = |launch: &SampledLaunch| Unit {
                        size: launch.instructions as f64,
                        ticks: ticks(launch) as f64 + rest(launch).ticks,
                    };
                    of_group().map(unit).collect()
                };
                [Model::of(&units(|launch| launch.ticks)), Model::of(&units(|launch| launch.own_ticks))]
            })
            .collect();
        // What was simulated has no spread.
        let exact = |ticks: f64| Predicted { ticks, ..Predicted::default() };
        let mut total = exact(walk.before_ticks as f64);
        let mut launches = Vec::new();
        let mut now = walk.before_ticks as f64;
        for launch in &walk.launches {
            let (own, whole) = match &launch.way {
                LaunchWay::Skipped => {
                    let ticks = |model: &Option<Model>| {
                        model.as_ref().map_or(0.0, |model| model.ticks(launch.instructions as f64))
                    };
                    let [whole, own] = &models[launch.group];
                    (ticks(own), ticks(whole))
                }
                _ => {
                    let rest = rest(launch);
                    total = total.plus(exact(launch.ticks as f64)).plus(rest);
                    (launch.own_ticks as f64 + rest.ticks, launch.ticks as f64 + rest.ticks)
                }
            };
            let group = &walk.groups[launch.group];
            launches.push(Launch {
                kernel: group.kernel.clone(),
                grid: group.grid,
                block: group.block,
                ctas_per_sm: launch.occupancy.ctas,
                limited_by: launch.occupancy.limit.clone(),
                start: clocks.duration(now.round() as Time),
                length: clocks.duration(own.round() as Time),
            });
            now += whole;
        }
        // Skipped launches of a group share the error of its model: they are predicted together.
        for (group, [model, _]) in models.iter().enumerate() {
            let skipped = walk.launches.iter().filter(|of| of.group == group && of.way == LaunchWay::Skipped);
            if let Some(model) = model {
                total = total.plus(model.sum(skipped.map(|launch| launch.instructions as f64)));
            }
        }
        Estimate { total, launches }
    }

    /// Launches by kernel, in the order of first launches; their counters are not known.
    fn kernels(&self, clocks: Clocks) -> Vec<KernelTotals> {
        let mut kernels: Vec<KernelTotals> = Vec::new();
        for launch in &self.launches {
            match kernels.iter_mut().find(|of| of.kernel == launch.kernel) {
                Some(of) => {
                    of.launches += 1;
                    of.time = clocks.duration(of.time.ticks + launch.length.ticks);
                }
                None => kernels.push(KernelTotals {
                    kernel: launch.kernel.clone(),
                    launches: 1,
                    time: launch.length,
                    counters: Default::default(),
                }),
            }
        }
        kernels
    }

    fn sampling(&self, walk: &SampledWalk<'_>, simulated: u64, windows: u32, clocks: Clocks) -> Sampling {
        let ctas_of = |launch: &SampledLaunch| -> u64 {
            walk.groups[launch.group].grid.iter().map(|&axis| u64::from(axis)).product()
        };
        let in_detail = |launch: &SampledLaunch| match &launch.way {
            LaunchWay::Skipped => 0,
            LaunchWay::Whole => ctas_of(launch),
            LaunchWay::Cut { ctas, .. } => *ctas,
        };
        // A list, not a map: the order is that of first launches, and kernels are few.
        let mut kernels: Vec<SampledKernel> = Vec::new();
        for launch in &walk.launches {
            let group = &walk.groups[launch.group];
            let at = kernels.iter().position(|of| of.kernel == group.kernel).unwrap_or_else(|| {
                kernels.push(SampledKernel {
                    kernel: group.kernel.clone(),
                    launches: 0,
                    in_detail: 0,
                    cut: 0,
                    whole_because: group.uncut.map(str::to_owned),
                });
                kernels.len() - 1
            });
            let of = &mut kernels[at];
            of.launches += 1;
            of.in_detail += u64::from(launch.way != LaunchWay::Skipped);
            of.cut += u64::from(matches!(launch.way, LaunchWay::Cut { .. }));
        }
        let half = self.total.half_width();
        let at = |ticks: f64| -> Duration { clocks.duration(ticks.max(0.0).round() as Time) };
        Sampling {
            windows,
            low: at(self.total.ticks - half),
            high: at(self.total.ticks + half),
            kernels,
            ctas: walk.launches.iter().map(ctas_of).sum(),
            ctas_in_detail: walk.launches.iter().map(in_detail).sum(),
            warp_instructions: walk.launches.iter().map(|launch| launch.instructions).sum(),
            warp_instructions_in_detail: simulated,
            stretches: walk.sums.stretches,
        }
    }
}
