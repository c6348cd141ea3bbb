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

use crate::assemble::SurvivingLines;
use crate::outcome::End;
use crate::run::{CpuExperiment, PausedCpu};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_machine::core::Core;
use durawarp_oracle::crash::{CrashStates, Plan};
use durawarp_oracle::history::judge_history;
use durawarp_oracle::verdict::Verdict;
use durawarp_oracle::visible::{VisibleStores, judge_visibility};
use durawarp_persist::vocab::Domain;
use durawarp_riscv::process::Process;

use super::driver::Crashed;
use super::promise::Promise;
use super::ran::JournaledRun;
use super::report::{CrashReport, JudgedLevel, Judgement, Levels};
use super::request::{CrashRequest, Phase};
use super::subject::Subject;

/// Caches survive, no handler in a controller holds stores back, and the program has no recovery by which its
/// images could be judged.
pub(super) fn is_judged_by_visibility(experiment: &CpuExperiment) -> bool {
    let CpuExperiment { machine, program, scheme, .. } = experiment;
    machine.spec.persist.domain == Domain::Eadr && scheme.built.path_links().is_none() && program.recovery.is_none()
}

/// A program of CPUs whose caches survive.
pub(super) struct SurvivingCores {
    experiment: CpuExperiment,
    process: Process,
}

impl SurvivingCores {
    /// # Errors
    /// A machine with clients or several servers; states of levels that do not apply.
    pub(super) fn new(experiment: &CpuExperiment, request: &CrashRequest) -> Result<Self, Diagnostics> {
        let CpuExperiment { program, machine, .. } = experiment;
        let nodes = &machine.spec.nodes;
        let others = request.is_about_barriers() || request.only_allowed.is_some() || request.only_overtaking.is_some();
        if nodes.clients > 0 || nodes.servers > 1 || others {
            let message = "clients, several servers, claims, and states of levels B and C are not judged where caches survive and the program has no recovery";
            return Err(Diagnostic::nowhere(&program.name, message).with_help("`--only A:POINT`").into());
        }
        // Without a window of its own nothing of the program would be persistent.
        let persistent = experiment.persistent || program.start.windows.pm_bytes == 0;
        let process = program.process()?;
        Ok(SurvivingCores { experiment: CpuExperiment { persistent, ..experiment.clone() }, process })
    }
}

impl Crashed for SurvivingCores {
    fn subject(&self) -> Subject<'_> {
        Subject::Cores(&self.experiment, &self.process, None)
    }

    fn judge(&self, ran: &JournaledRun<'_>) -> Result<CrashReport, Diagnostics> {
        let (SurvivingCores { experiment, process }, request) = (self, ran.request);
        // What no single image shows, at every change.
        let states = ran.states()?;
        let ended = ran.finished.outcome.end == End::Finished;
        let visible = judge_visibility(ran.journal, ended, request.keep);
        let history = judge_history(&states, ran.order, request.keep).with(visible, request.keep);
        // Images, at crash points of the plan.
        let actual = judge_images(ran, &states, experiment, process)?;
        let judgements = vec![
            Judgement::new(JudgedLevel::History, &[Promise::Values, Promise::Performed], history),
            Judgement::new(JudgedLevel::Actual, &[Promise::Surviving], actual),
        ];
        let of_memory = if experiment.persistent { Promise::AllMemory } else { Promise::WindowAlone };
        let mut promises = vec![of_memory, Promise::NoRecovery];
        promises.extend(request.double.then_some(Promise::NothingToCut));
        Ok(CrashReport {
            recovery: "nothing: caches survive, registers are lost".to_owned(),
            changes: states.changes(),
            levels: Levels { judgements, channels: None },
            promises,
            ..ran.report()
        })
    }
}

/// Stops the machine behind the changes of the plan, and looks at memory at the end of the whole run.
fn judge_images(
    ran: &JournaledRun<'_>,
    states: &CrashStates<'_>,
    experiment: &CpuExperiment,
    process: &Process,
) -> Result<Verdict, Diagnostics> {
    let JournaledRun { request, watching, .. } = *ran;
    let mut stores = VisibleStores::new(ran.journal, ran.initial, experiment.machine.spec.core.count as usize);
    let mut paused = PausedCpu::new(experiment, process);
    let at_end = &ran.finished.memory;
    let planned = states.points(request.plan, &[], request.seed);
    let planned = planned.map_err(|beyond| Diagnostic::nowhere("--only", beyond.to_string()))?;
    let outside = |outside| Diagnostic::nowhere("journal", format!("a store outside persistent memory: {outside}"));
    let mut verdict =
        Verdict { points: planned.points.len() as u64, exhaustive: planned.exhaustive, ..Verdict::default() };
    let mut last = None;
    for (done, &point) in planned.points.iter().enumerate() {
        if watching.stop.load(std::sync::atomic::Ordering::Relaxed) {
            verdict.stopped = true;
            break;
        }
        (watching.progress)(Phase::Actual, done as u64, verdict.points);
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
        verdict.add(stores.judge(|line| left.line(line), point, time), request.keep);
        if !runs {
            break;
        }
    }
    if !matches!(request.plan, Plan::Only(_)) && !verdict.stopped {
        stores.advance(std::iter::repeat(u64::MAX)).map_err(outside)?;
        let last = states.changes();
        let time = states.time(last).unwrap_or_default();
        let line = |line| at_end.slice(line, 64).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; 64]);
        verdict.add(stores.judge(line, last, time), request.keep);
        verdict.points += 1;
    }
    verdict.distinct = verdict.judged;
    Ok(verdict)
}
