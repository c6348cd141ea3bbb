//! A program of CPUs of which only parts are simulated in detail: a region of interest, or samples of its
//! phases.
//!
//! ```text
//!   functional:  ──bounds, or vectors of basic blocks──> end         where to simulate, and how long
//!   functional:  ──────────┬───────────────┬────────────> end        values, final memory, checks
//!   machines:         warm-up, counted  warm-up, counted             (detail) ─> sum, interval
//! ```
//! Each part has a machine of its own, which begins with the functional driver's state and with warm caches
//! (`last_uses`), executes a warm-up that is not counted, and then what is (`detail`). `bounds` finds
//! regions, `blocks` and `phases` choose samples.
//!
//! Invariants: final memory, output and exit code are those of the functional driver; a region that is the
//! whole program takes exactly as long as a whole run; all is chosen by counts alone, so that results are the
//! same on every host and at any number of threads. Not here: programs of several threads, schemes under
//! which all memory is persistent (`CpuExperiment::check_extent`). Not modelled: what a scheme's handlers,
//! queues and open rows would hold where a warm-up begins.

mod blocks;
mod bounds;
mod detail;
mod last_uses;
mod phases;

use std::collections::BTreeMap;
use std::time::Instant;

use super::conduct::Conduct;
use super::cpu::{assembled, blame, counters, describe, digest_of, fold, load_of, missing_calls, process_of, why};
use super::cpu_experiment::CpuExperiment;
use super::end::Clocks;
use super::estimate::{Model, Predicted, Unit};
use super::extent::Extent;
use super::finished::{Finished, failures};
use super::region_of_interest::RegionOfInterest;
use super::simulated::Simulated;
use crate::assemble::{CpuLoad, TOUCHED_BYTES};
use crate::outcome::{self, End, FileOutcome, Outcome, ProcessOutcome, SampledPhase, SampledProcess, Sampling};
use crate::outcome::{SimulatedRegion, Verification};
use blocks::{BlockProfile, Interval};
use detail::Stretch;
use durawarp_base::stats::Table;
use durawarp_engine::Time;
use durawarp_riscv::functional::{self, FunctionalRun, Options};
use durawarp_riscv::process::Process;
use durawarp_workload::Ran;
use last_uses::LastUses;

/// Instructions that are simulated before those that count. Chosen: under `broi`, whose buffers fill for
/// long, 5,000 were up to 7 % short and 20,000 up to 5 % (`benches/results/accuracy.md`).
const WARM_UP: u64 = 50_000;

/// Nothing is skipped where more than this part of the program would be simulated. Chosen.
const WORTH: f64 = 0.6;

/// What was simulated, and what it came to.
struct SimulatedParts {
    ran: Simulated,
    /// Of the whole, or of the region.
    ticks: f64,
    counters: Vec<Table>,
    scheme_counters: BTreeMap<String, u64>,
    /// Why not all of it was simulated.
    fault: Option<String>,
    /// All that was simulated counts: nothing was a warm-up.
    is_pure: bool,
    /// Of several machines.
    digest: Option<u64>,
    sampling: Option<Sampling>,
    region: Option<SimulatedRegion>,
}

impl SimulatedParts {
    /// One stretch; `fault` says that it was not whole.
    fn of(ran: Simulated, stretch: Stretch, is_pure: bool, fault: &str) -> SimulatedParts {
        let Stretch { ticks, counters, scheme_counters, is_whole, .. } = stretch;
        SimulatedParts {
            ran,
            ticks: ticks as f64,
            counters,
            scheme_counters,
            fault: (!is_whole).then(|| fault.to_owned()),
            is_pure,
            digest: None,
            sampling: None,
            region: None,
        }
    }
}

/// Runs an experiment whose program is not simulated as a whole.
#[expect(clippy::disallowed_methods, reason = "the wall time of a run is part of its report, not of its model")]
pub(super) fn run(experiment: &CpuExperiment, conduct: &Conduct<'_>) -> Finished {
    let began = Instant::now();
    // A part has no journal, no timeline and no epochs.
    let conduct = &Conduct {
        threads: conduct.threads,
        stop: conduct.stop,
        observer: conduct.observer,
        oversubscribe: conduct.oversubscribe,
        ..Conduct::default()
    };
    let (process, _) = process_of(experiment);
    let load = load_of(experiment, &process, None);
    let options = Options {
        harts: experiment.machine.spec.harts(),
        files: experiment.program.files.clone(),
        stop: conduct.stop,
        ..Options::default()
    };
    let walk = PartialRun { experiment, conduct, process: &process, load, options };
    let made = match &experiment.extent {
        Extent::Region(region) => walk.region(region),
        Extent::Samples(samples) => walk.samples(*samples),
        Extent::Whole => unreachable!("a whole program has one machine"),
    };
    let mut finished = match made {
        Ok((parts, whole)) => walk.finished(parts, whole),
        Err(error) => walk.failed(error),
    };
    finished.outcome.host.wall_s = began.elapsed().as_secs_f64();
    Finished { outcome: outcome::computed(finished.outcome), ..finished }
}

/// A program on its way.
struct PartialRun<'a> {
    experiment: &'a CpuExperiment,
    conduct: &'a Conduct<'a>,
    process: &'a Process,
    load: CpuLoad<'a>,
    options: Options<'a>,
}

impl PartialRun<'_> {
    fn clocks(&self) -> Clocks {
        let spec = &self.experiment.machine.spec;
        Clocks::of(spec.timebase(), spec.clock.core_mhz)
    }

    /// The functional driver before the first instruction.
    fn begun(&self) -> FunctionalRun<'_, LastUses> {
        let uses = LastUses::new(self.process.start.windows);
        FunctionalRun::new(self.process, self.process.memory(), &self.options, uses)
    }

    fn simulate(&self, run: &FunctionalRun<'_, LastUses>, warm_up: u64, length: u64) -> (Simulated, Stretch) {
        detail::simulate(self.experiment, self.load, run, (warm_up, length), self.conduct)
    }

    /// A region of interest.
    fn region(&self, region: &RegionOfInterest) -> Result<(SimulatedParts, functional::Outcome), String> {
        let (from, to) = bounds::find(region, self.process, &self.options)?;
        // Before the region there may be fewer instructions than a warm-up has.
        let (warm_up, length) = (WARM_UP.min(from), to.map_or(u64::MAX, |to| to - from));
        let mut run = self.begun();
        if !run.advance(from - warm_up) {
            let executed = run.instructions();
            return Err(format!("the program ends after {executed} instructions, before the region begins ({region})"));
        }
        let (ran, stretch) = self.simulate(&run, warm_up, length);
        run.advance(u64::MAX);
        let program_instructions = run.instructions();
        if from >= program_instructions {
            return Err(format!(
                "the program ends after {program_instructions} instructions, before the region begins ({region})"
            ));
        }
        // Now that all of it was executed it is known whether others began.
        several_threads(run.os().threads_begun())?;
        let region = SimulatedRegion {
            of: region.to_string(),
            from_instruction: from,
            to_instruction: to.map_or(program_instructions, |to| to.min(program_instructions)),
            warm_up_instructions: warm_up,
            instructions: stretch.instructions,
            program_instructions,
        };
        let parts = SimulatedParts::of(ran, stretch, warm_up == 0, "the region was not simulated to its end");
        let parts = SimulatedParts { region: Some(region), ..parts };
        Ok((parts, run.into_outcome()))
    }

    /// Intervals of each phase.
    fn samples(&self, samples: u32) -> Result<(SimulatedParts, functional::Outcome), String> {
        let profile = BlockProfile::new(&self.process.image);
        let mut profiled = FunctionalRun::new(self.process, self.process.memory(), &self.options, profile);
        profiled.advance(u64::MAX);
        several_threads(profiled.os().threads_begun())?;
        let intervals = profiled.into_observer().into_intervals();
        let phases = phases::phases(&intervals);
        let chosen = phases::chosen(&phases, samples as usize);
        let mut order: Vec<usize> = chosen.iter().flatten().copied().collect();
        order.sort_unstable();
        let warm_up = |nth: usize| WARM_UP.min(intervals[nth].from);
        let all: u64 = intervals.iter().map(|interval| interval.instructions).sum();
        let detailed: u64 = order.iter().map(|&nth| intervals[nth].instructions + warm_up(nth)).sum();
        let mut run = self.begun();
        let plan = SamplingPlan { intervals: &intervals, phases: &phases, samples };
        if detailed as f64 > WORTH * all as f64 {
            let (ran, stretch) = self.simulate(&run, 0, u64::MAX);
            run.advance(u64::MAX);
            return Ok((plan.whole(ran, stretch), run.into_outcome()));
        }
        let (mut found, mut machine) = (BTreeMap::<usize, Stretch>::new(), None::<(Simulated, u64)>);
        for nth in order {
            // Intervals begin one after the other, and so do their warm-ups.
            run.advance(intervals[nth].from - warm_up(nth) - run.instructions());
            let (ran, stretch) = self.simulate(&run, warm_up(nth), intervals[nth].instructions);
            let is_whole = stretch.is_whole;
            found.insert(nth, stretch);
            // Of all machines together.
            let digest = fold(machine.map_or(0, |(_, digest)| digest), ran.machine.simulation.digest());
            machine = Some((ran, digest));
            if !is_whole {
                break;
            }
        }
        run.advance(u64::MAX);
        let Some((ran, digest)) = machine else { return Err("the program has no instruction".to_owned()) };
        let parts = SimulatedParts { digest: Some(digest), ..plan.estimated(ran, &found, detailed, self.clocks()) };
        Ok((parts, run.into_outcome()))
    }

    /// What the whole comes to: times and counters of the parts, all else of the functional driver.
    fn finished(&self, parts: SimulatedParts, whole: functional::Outcome) -> Finished {
        let CpuExperiment { machine, program, scheme, .. } = self.experiment;
        let SimulatedParts { ran, ticks, counters, scheme_counters, fault, is_pure, digest, sampling, region } = parts;
        let clocks = self.clocks();
        let described = serde_json::to_value(program.describe()).unwrap_or_default();
        let detail = ran.outcome(describe(machine, clocks.base), scheme, described, self.conduct);
        let end = match (&whole.end, fault) {
            (functional::End::Stopped, _) => End::Stopped,
            (functional::End::Exited(_), None) => End::Finished,
            // The machine says why it did not come to its end.
            (functional::End::Exited(_), Some(error)) if detail.end == End::Finished => End::Failed { error },
            (functional::End::Exited(_), Some(_)) => detail.end.clone(),
            (other, _) => End::Failed { error: why(other, &self.process.image) },
        };
        let exit_code = if let functional::End::Exited(code) = whole.end { Some(code) } else { None };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let process = ProcessOutcome {
            exit_code,
            ended: None,
            stdout: text(&whole.stdout),
            stderr: text(&whole.stderr),
            files: FileOutcome::of_all(&whole.files),
            unsupported_calls: whole.unsupported_calls.clone(),
            slots: None,
        };
        let pages = self.load.pages(&whole.memory).map(|(address, _)| (address, TOUCHED_BYTES)).collect::<Vec<_>>();
        let memory = self.load.image_midway(&whole.memory);
        let (own, digest) = (detail.digest.clone(), digest.map(|digest| format!("{digest:016x}")));
        let mut outcome = Outcome {
            end,
            time: clocks.duration(ticks.round() as Time),
            process: Some(process),
            counters,
            scheme_counters,
            // These are not counted apart from a warm-up.
            scheme_report: detail.scheme_report.filter(|_| is_pure),
            devices: detail.devices.filter(|_| is_pure),
            backlog: None,
            sampling,
            region,
            digest: digest.unwrap_or(own),
            memory_digest: format!("{:016x}", digest_of(&memory, &pages)),
            ..detail
        };
        if outcome.end == End::Finished {
            let (stdout, files) = (&whole.stdout, &whole.files);
            let (persistent, logs) = (whole.memory.persistent(), whole.logs.bytes());
            // Values are the functional driver's own: nothing else is there to compare them with.
            let ran = Ran { exit_code: exit_code.unwrap_or_default(), stdout, files, persistent, logs };
            let verification = program.verify(&ran, None);
            outcome.verification = Some(Verification::of(&verification, failures(&verification)));
        }
        if let Some(missing) = missing_calls(&whole.unsupported_calls) {
            blame(&missing, &mut outcome);
        }
        Finished { memory, files: whole.files, ..ran.finished(outcome, self.conduct) }
    }

    /// Nothing could be simulated.
    fn failed(&self, error: String) -> Finished {
        let CpuExperiment { machine, program, scheme, .. } = self.experiment;
        let ran = Simulated::idle(assembled(self.experiment, self.load, self.conduct), self.clocks());
        let described = serde_json::to_value(program.describe()).unwrap_or_default();
        let outcome = ran.outcome(describe(machine, self.clocks().base), scheme, described, self.conduct);
        let outcome = Outcome { end: End::Failed { error }, counters: counters(&ran.machine), ..outcome };
        ran.finished(outcome, self.conduct)
    }
}

/// A manifest may say less threads than there are.
fn several_threads(begun: u64) -> Result<(), String> {
    match begun {
        0 | 1 => Ok(()),
        _ => Err(format!(
            "the program has {begun} threads: a part of it cannot be simulated without the rest, as its threads wait for each other"
        )),
    }
}

/// What of a program is sampled.
struct SamplingPlan<'a> {
    intervals: &'a [Interval],
    phases: &'a [Vec<usize>],
    samples: u32,
}

impl SamplingPlan<'_> {
    fn instructions(&self, phase: &[usize]) -> u64 {
        phase.iter().map(|&nth| self.intervals[nth].instructions).sum()
    }

    fn process(&self, in_detail: &dyn Fn(usize) -> bool, simulated: u64) -> SampledProcess {
        let phase = |phase: &Vec<usize>| SampledPhase {
            intervals: phase.len() as u64,
            intervals_in_detail: phase.iter().filter(|&&nth| in_detail(nth)).count() as u64,
            instructions: self.instructions(phase),
        };
        let phases: Vec<SampledPhase> = self.phases.iter().map(phase).collect();
        SampledProcess {
            interval_instructions: self.intervals.first().map_or(0, |interval| interval.instructions),
            warm_up_instructions: WARM_UP,
            intervals: self.intervals.len() as u64,
            intervals_in_detail: phases.iter().map(|phase| phase.intervals_in_detail).sum(),
            instructions: phases.iter().map(|phase| phase.instructions).sum(),
            instructions_in_detail: simulated,
            phases,
        }
    }

    /// Too little would have been skipped.
    fn whole(&self, ran: Simulated, stretch: Stretch) -> SimulatedParts {
        let time = ran.clocks.duration(stretch.ticks);
        let process = self.process(&|_| true, stretch.instructions);
        let parts = SimulatedParts::of(ran, stretch, true, "the program was not simulated to its end");
        SimulatedParts { sampling: Some(Sampling::of_process(self.samples, [time, time], process)), ..parts }
    }

    /// The whole, from what came of some intervals: each phase has the mean of its own.
    fn estimated(
        &self,
        ran: Simulated,
        found: &BTreeMap<usize, Stretch>,
        simulated: u64,
        clocks: Clocks,
    ) -> SimulatedParts {
        let mut total = Predicted::default();
        let (mut tables, mut scheme_counters) = (Scaled::default(), BTreeMap::<String, f64>::new());
        for phase in self.phases {
            let own = || phase.iter().filter_map(|nth| found.get(nth));
            let units: Vec<Unit> =
                own().map(|of| Unit { size: of.instructions as f64, ticks: of.ticks as f64 }).collect();
            let rest = phase.iter().filter(|nth| !found.contains_key(nth));
            let sizes = rest.map(|&nth| self.intervals[nth].instructions as f64);
            // What was simulated has no spread.
            let ticks = units.iter().map(|unit| unit.ticks).sum();
            total = total.plus(Predicted { ticks, ..Predicted::default() });
            if let Some(model) = Model::of(&units, 1) {
                total = total.plus(model.sum(sizes));
            }
            // Counters of a phase grow with its instructions.
            let counted: u64 = own().map(|of| of.instructions).sum();
            let factor = self.instructions(phase) as f64 / counted.max(1) as f64;
            for of in own() {
                tables.add(&of.counters, factor);
                for (name, count) in &of.scheme_counters {
                    *scheme_counters.entry(name.clone()).or_default() += *count as f64 * factor;
                }
            }
        }
        let is_whole = found.values().all(|stretch| stretch.is_whole);
        let process = self.process(&|nth| found.contains_key(&nth), simulated);
        let half = total.half_width();
        let at = |ticks: f64| clocks.duration(ticks.max(0.0).round() as Time);
        let sampling = Sampling::of_process(self.samples, [at(total.ticks - half), at(total.ticks + half)], process);
        SimulatedParts {
            ran,
            ticks: total.ticks,
            counters: tables.rounded(),
            scheme_counters: scheme_counters.into_iter().map(|(name, sum)| (name, sum.round() as u64)).collect(),
            fault: (!is_whole).then(|| "an interval was not simulated to its end".to_owned()),
            is_pure: false,
            digest: None,
            sampling: Some(sampling),
            region: None,
        }
    }
}

/// A sum of tables of counters, each times a factor.
#[derive(Default)]
struct Scaled {
    tables: Vec<Table>,
    sums: Vec<f64>,
}

impl Scaled {
    fn add(&mut self, tables: &[Table], factor: f64) {
        let values = || tables.iter().flat_map(|table| table.rows.iter().flatten());
        if self.tables.is_empty() {
            (self.tables, self.sums) = (tables.to_vec(), vec![0.0; values().count()]);
        }
        self.sums.iter_mut().zip(values()).for_each(|(sum, value)| *sum += *value as f64 * factor);
    }

    fn rounded(mut self) -> Vec<Table> {
        let values = self.tables.iter_mut().flat_map(|table| table.rows.iter_mut().flatten());
        values.zip(&self.sums).for_each(|(value, sum)| *value = sum.round() as u64);
        self.tables
    }
}
