//! A sampled run: some launches and waves of CTAs simulated in detail, everything executed on the
//! functional driver, and the time of the whole estimated with an interval.
//!
//! ```text
//!   functional:  ──launch──copy──launch──────────────────────────────launch──  all of it: values, final memory
//!                                    │bytes of memory                    │bytes of memory
//!   machine:     ──launch──copy──head, samples, tail ──────────> head, samples, tail ──> ...   (detail)
//!                    ticks           ticks ─> model of the launch or group (estimate) ─> sum, interval
//! ```
//! `plan` decides what runs in detail, `walk` does it, `estimate` is the arithmetic. There is one machine
//! (`detail`), which keeps its caches, queues and open rows over what is skipped; only the bytes of memory
//! and of cached lines are brought to what the functional driver has. Within a launch that is cut they are
//! not: its CTAs do not wait for each other, and of bytes that several CTAs change the machine has those in
//! detail alone.
//!
//! Invariants: final memory is that of the functional driver; a program of which nothing is worth skipping
//! takes exactly as long as unsampled; decisions rest on counts alone, so that a sampled run is the same on
//! every host and at any number of threads. Not modelled: lines that skipped parts would have brought into
//! caches, and the state that they would have left in a scheme's handlers. Persists are not told of, nor is
//! the backlog.

mod detail;

mod plan;
mod walk;

use std::collections::BTreeMap;
use std::time::Instant;

use super::conduct::Conduct;
use super::end::Clocks;
use super::estimate::{Model, Predicted, Unit};
use super::finished::{Finished, failures};
use super::program::Experiment;
use super::streams;
use super::tables::{counters, describe, warnings};
use super::whole::clocks_of;
use crate::outcome::{self, Duration, End, KernelTotals, Launch, Outcome, SampledKernel, Sampling};
use durawarp_engine::Time;
use durawarp_kernel::functional::RunError;
use durawarp_workload::{Evidence, FunctionalError};
use walk::{Ended, LaunchWay, SampledLaunch, SampledWalk};

/// Runs an experiment by `windows` samples of each launch of many waves.
#[expect(clippy::disallowed_methods, reason = "the wall time of a run is part of its report, not of its model")]
pub(super) fn run(experiment: &Experiment, conduct: &Conduct<'_>, windows: u32) -> Finished {
    let began = Instant::now();
    let (workload, clocks) = (&experiment.workload, clocks_of(experiment));
    let mut host = workload.host();
    let bindings = host.bindings();
    let mut walk = SampledWalk::new(experiment, conduct, clocks, windows);
    let ended = walk.walk(&mut host).err();
    // Also of a run that ended early, which reports how far it came.
    walk.note_times();
    let ran = &walk.detail.ran;
    let described = serde_json::to_value(workload.describe()).unwrap_or_default();
    let detail = ran.outcome(describe(&experiment.machine, clocks.base), &experiment.scheme, described, conduct);
    let end = match ended {
        None => End::Finished,
        Some(Ended::Detail(end)) => end,
        Some(Ended::Functional(FunctionalError::Kernel(RunError::Stopped))) => End::Stopped,
        Some(Ended::Functional(why)) => End::Failed { error: why.to_string() },
    };
    let estimate = Estimate::of(&walk, clocks);
    // Of the machine, that is of what ran in detail.
    let mut tables = counters(&ran.machine);
    let simulated = tables.iter().find(|table| table.kind == "sm").map_or(0, |sms| sms.total("warp_instructions"));
    let sampling = estimate.sampling(&walk, simulated, windows, clocks);
    // Counters include warm-ups; scaled so, the instructions are exactly those of the program.
    let factor = if simulated > 0 { sampling.warp_instructions as f64 / simulated as f64 } else { 1.0 };
    let mut scheme_counters = detail.scheme_counters.clone();
    if !sampling.is_whole() {
        let scale = |count: &mut u64| *count = (*count as f64 * factor).round() as u64;
        tables.iter_mut().flat_map(|table| table.rows.iter_mut().flatten()).for_each(scale);
        scheme_counters.values_mut().for_each(scale);
    }
    let warnings = warnings(&ran.machine);
    let memory = &walk.memory;
    let mut outcome = Outcome {
        end,
        time: clocks.duration(estimate.total.ticks.round() as Time),
        kernels: estimate.kernels(clocks),
        launches: estimate.launches,
        counters: tables,
        scheme_counters,
        scheme_report: None,
        sampling: Some(sampling),
        streams: streams::of(&ran.machine, Some("samples are of one launch after another".to_owned())),
        devices: None,
        persists: None,
        backlog: None,
        warnings,
        memory_digest: format!("{:016x}", memory.digest()),
        host: outcome::Host { wall_s: began.elapsed().as_secs_f64(), functional_s: 0.0, ..detail.host },
        ..detail
    };
    // Values are the functional driver's own, so that there is nothing else to compare them with.
    if outcome.end == End::Finished {
        let verification = workload.verify(memory, &bindings, Evidence::default());
        let failures = failures(&verification);
        outcome.verification = Some(outcome::Verification::of(&verification, failures));
    }
    // A sample has no journal, no epochs and no timeline.
    let finished = ran.finished(outcome::computed(outcome), &Conduct::default());
    Finished { memory: walk.memory, bindings, epochs: None, ..finished }
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
            LaunchWay::Cut(cut) => cut.rest(),
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
                [Model::of(&units(|launch| launch.ticks), 1), Model::of(&units(|launch| launch.own_ticks), 1)]
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
                // Launches of a group may be of any.
                stream: None,
                grid: group.grid,
                block: group.block,
                ctas_per_sm: launch.occupancy.ctas,
                limited_by: launch.occupancy.limit.clone(),
                l1_kb: launch.carveout.map(|carveout| carveout.l1_kb),
                shared_kb: launch.carveout.map(|carveout| carveout.shared_kb),
                start: clocks.duration(now.round() as Time),
                length: clocks.duration(own.round() as Time),
                counters: BTreeMap::new(),
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
            LaunchWay::Cut(cut) => cut.ctas(),
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
            of.cut += u64::from(matches!(launch.way, LaunchWay::Cut(_)));
        }
        // The interval is around the sum, and no time is before 0.
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
            stretches: walk.stretches,
            process: None,
        }
    }
}
