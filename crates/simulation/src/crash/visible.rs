//! Crash tests where caches survive a power failure, of a program of CPUs without a recovery of its own:
//! memory is judged alone.
//!
//! ```text
//!  experiment ─ run (journals on) ── order in which stores were performed, at every change
//!       again, to some instants ──── caches, messages, queues, memory = initial memory and these stores
//! ```
//! What is durable in domain eADR is what is performed. The first judgement is of facts: each hart's stores
//! are performed in its program order, once, and as they retired ([`visible`](durawarp_oracle::visible)). The
//! second runs the machine once more, which does the same, stops it at crash points of the plan, and looks
//! where each line's newest bytes are ([`SurvivingLines`]); the end of the first run is the last of them.
//! Registers are lost, so that the program is not resumed: whether it could make its data consistent is not
//! judged.
//!
//! A program without a persistent window has all of its memory in persistent memory. Levels B and C do not
//! apply: nothing that is performed may be missing. Not modelled: the battery.

use std::time::Instant;

use crate::assemble::SurvivingLines;
use crate::outcome::End;
use crate::run::{Conduct, CpuExperiment, PausedCpu, load_of, run_cpu};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_kernel::memory::FlatMemory;
use durawarp_machine::core::Core;
use durawarp_machine::ports::Requester;
use durawarp_oracle::crash::{CrashStates, Plan};
use durawarp_oracle::history::judge_history;
use durawarp_oracle::order::{Model, RunOrder};
use durawarp_oracle::verdict::Verdict;
use durawarp_oracle::visible::{VisibleStores, judge_visibility};
use durawarp_persist::promises::Promises;
use durawarp_persist::vocab::Domain;

use super::image::initial_image;
use super::report::CrashReport;
use super::request::{CrashRequest, Phase, Watching};
use super::saved::judgement;

/// Caches survive, no handler in a controller holds stores back, and the program has no recovery by which its
/// images could be judged.
pub(super) fn is_judged_by_visibility(experiment: &CpuExperiment) -> bool {
    let CpuExperiment { machine, program, scheme, .. } = experiment;
    machine.spec.persist.domain == Domain::Eadr && scheme.built.path_links().is_none() && program.recovery.is_none()
}

/// Runs a program of CPUs once and judges memory after power failures that caches survive; the test `began`.
///
/// # Errors
/// A machine with clients or several servers; states of levels that do not apply; a crash point beyond the
/// end.
pub(super) fn crash_visible(
    experiment: &CpuExperiment,
    request: &CrashRequest,
    watching: &Watching<'_>,
    began: Instant,
) -> Result<CrashReport, Diagnostics> {
    let CpuExperiment { program, machine, .. } = experiment;
    let spec = &machine.spec;
    let others = request.claim.is_some() || request.only_allowed.is_some() || request.only_overtaking.is_some();
    if spec.nodes.clients > 0 || spec.nodes.servers > 1 || others {
        let message = "clients, several servers, claims, and states of levels B and C are not judged where caches survive and the program has no recovery";
        return Err(Diagnostic::nowhere(&program.name, message).with_help("`--only A:POINT`").into());
    }
    // Without a window of its own nothing of the program would be persistent.
    let all_persistent = experiment.persistent || program.start.windows.pm_bytes == 0;
    let experiment = &CpuExperiment { persistent: all_persistent, ..experiment.clone() };
    let process = program.process()?;
    let initial = initial_image(&load_of(experiment, &process, None).image());
    let finished = run_cpu(experiment, &Conduct { journal: true, ..watching.conduct.clone() });
    let simulated = began.elapsed();
    let Some(journal) = &finished.journal else { unreachable!("a journal was asked for") };
    let outside = |outside| Diagnostic::nowhere("journal", format!("a write outside persistent memory: {outside}"));

    // What no single image shows, at every change.
    let host = Requester::os(spec.core.count as u16).number();
    let order = RunOrder::new(journal, &initial, Model { domain: Domain::Eadr, promises: Promises::NONE, host });
    let states = CrashStates::new(journal, &initial, Domain::Eadr).map_err(outside)?;
    let ended = finished.outcome.end == End::Finished;
    let visible = judge_visibility(journal, ended, request.keep);
    let history = judge_history(&states, &order, request.keep).with(visible, request.keep);
    // Images, at crash points of the plan.
    let stores = VisibleStores::new(journal, &initial, spec.core.count as usize);
    let images = Images { states: &states, request, watching };
    let actual = images.judge(stores, PausedCpu::new(experiment, &process), &finished.memory)?;

    // Promises are those that were judged; the last ones say what was not.
    let ticks_a_cycle = spec.timebase().map_or(1, |base| base.clock(spec.clock.core_mhz.khz).period_ticks());
    let judgement = |verdict: Verdict| judgement(verdict, program, ticks_a_cycle);
    let of_memory = match all_persistent {
        true => "all of the program's memory is persistent, and no DRAM cache lies before it",
        false => "the program's persistent window is judged; its main memory is lost",
    };
    let alone =
        "the program has no recovery: it is not resumed, and whether it could go on with that memory is not judged";
    let nothing_to_cut = "nothing recovers, so that nothing is cut off (--double)";
    let mut promises = vec![
        "durable bytes are bytes that were stored, and never go back (P0)",
        "a store is durable when it is performed; those of a hart are performed in program order",
        "caches, messages, queues and memory together hold all that was performed, at crash points of the plan",
        of_memory,
        alone,
    ];
    promises.extend(request.double.then_some(nothing_to_cut));
    Ok(CrashReport {
        domain: Domain::Eadr,
        recovery: "nothing: caches survive, registers are lost".to_owned(),
        promises: promises.into_iter().map(str::to_owned).collect(),
        unjudged: None,
        transactions: 0,
        image_bytes: initial.bytes().len() as u64,
        changes: states.changes(),
        seed: request.seed,
        history: judgement(history),
        actual: Some(judgement(actual)),
        allowed: None,
        overtaking: None,
        regions: None,
        double: None,
        channels: None,
        resume: None,
        output: None,
        conditions: Vec::new(),
        wall_s: [simulated.as_secs_f64(), (began.elapsed() - simulated).as_secs_f64()],
        outcome: finished.outcome.clone(),
    })
}

/// What images are judged with.
struct Images<'a> {
    states: &'a CrashStates<'a>,
    request: &'a CrashRequest,
    watching: &'a Watching<'a>,
}

impl Images<'_> {
    /// Stops the machine behind the changes of the plan, and looks at memory at the end of the whole run.
    fn judge(
        &self,
        mut stores: VisibleStores<'_>,
        mut paused: PausedCpu,
        at_end: &FlatMemory,
    ) -> Result<Verdict, Diagnostics> {
        let (states, keep) = (self.states, self.request.keep);
        let planned = states.points(self.request.plan, &[], self.request.seed);
        let planned = planned.map_err(|beyond| Diagnostic::nowhere("--only", beyond.to_string()))?;
        let outside = |outside| Diagnostic::nowhere("journal", format!("a store outside persistent memory: {outside}"));
        let mut verdict =
            Verdict { points: planned.points.len() as u64, exhaustive: planned.exhaustive, ..Verdict::default() };
        let mut last = None;
        for (done, &point) in planned.points.iter().enumerate() {
            if self.watching.stop.load(std::sync::atomic::Ordering::Relaxed) {
                verdict.stopped = true;
                break;
            }
            (self.watching.progress)(Phase::Actual, done as u64, verdict.points);
            // Changes of one instant have one image.
            let Ok(time) = states.time(point) else { unreachable!("the plan has points of the run") };
            if last.replace(time) == Some(time) {
                continue;
            }
            // Behind the events of the instant. A core may have executed some cycles more: what it says that
            // it has performed is what is compared.
            let runs = paused.go_on(time + 1);
            stores.advance(paused.machine.cores().map(Core::performed)).map_err(outside)?;
            let left = SurvivingLines::of(&paused.machine);
            verdict.add(stores.judge(|line| left.line(line), point, time), keep);
            if !runs {
                break;
            }
        }
        if !matches!(self.request.plan, Plan::Only(_)) && !verdict.stopped {
            stores.advance(std::iter::repeat(u64::MAX)).map_err(outside)?;
            let last = states.changes();
            let time = states.time(last).unwrap_or_default();
            let line = |line| at_end.slice(line, 64).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; 64]);
            verdict.add(stores.judge(line, last, time), keep);
            verdict.points += 1;
        }
        verdict.distinct = verdict.judged;
        Ok(verdict)
    }
}
