//! Crash tests of a scheme that saves registers when power fails: nothing starts anew, the program goes on
//! where it was.
//!
//! ```text
//!  experiment ─ run (journals on) ─┬─ every change: durable bytes and replayed stores = all stores
//!                                  └─ end, output
//!       again, to some instants ──── replay, registers, calls ─ functional driver ─> the same end
//! ```
//! The first is judged by facts alone ([`replay`](durawarp_oracle::replay)), at every instant. The second
//! takes what the machine has saved: retired registers and pc of each hart, stores of its store buffer, and
//! what system calls have done, which is no component's memory but the OS' own and survives. It runs the
//! machine once more, which does the same, and stops it at instants that are drawn. An instant at which a
//! system call is under way is put off until it is answered: calls are executed at once or not at all.
//!
//! With [`CrashRequest::double`] the replay is cut off after some of its lines and begins anew. Levels B and
//! C do not apply: what is durable decides nothing that the replay does not set right. Not modelled: time and
//! energy of saving.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::assemble::Assembly;
use crate::outcome::{End, Outcome};
use crate::run::{Conduct, CpuExperiment, PausedCpu, failures, load_of, run_cpu};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_engine::Time;
use durawarp_machine::core::{Core, SavedThread, Standing};
use durawarp_machine::cpu::CpuMemory;
use durawarp_machine::ports::Requester;
use durawarp_oracle::crash::{CrashStates, Plan};
use durawarp_oracle::history::judge_history;
use durawarp_oracle::order::{Model, RunOrder};
use durawarp_oracle::replay::{Replay, SavedStores, judge_replay};
use durawarp_oracle::verdict::{Failure, Level, Property, Verdict};
use durawarp_oracle::{Draw, verdict};
use durawarp_persist::PmImage;
use durawarp_persist::promises::Promises;
use durawarp_riscv::functional::{self, Options, SavedHart, SavedProcess};
use durawarp_riscv::process::Process;
use durawarp_workload::{CpuProgram, Ran};

use super::found::{Found, Placed};
use super::gone_on;
use super::image::{initial_image, windows_of};
use super::report::{CrashReport, Judgement};
use super::request::{CrashRequest, Phase, Watching};

/// Bytes of a line of CPUs.
const LINE_BYTES: usize = 64;

/// Where a replay is cut off, at most: after each of its first lines.
const CUTS: usize = 8;

/// How many times an instant is put off, each time by a 1024th of the run.
const PUT_OFF: u32 = 64;

/// Runs a program of CPUs once and judges what power failures leave under a scheme that saves registers.
///
/// # Errors
/// A machine with clients or several servers; states of levels that do not apply.
#[expect(clippy::disallowed_methods, reason = "the wall time of a test is part of its report, not of its model")]
pub(super) fn crash_saved(
    experiment: &CpuExperiment,
    request: &CrashRequest,
    watching: &Watching<'_>,
) -> Result<CrashReport, Diagnostics> {
    let began = Instant::now();
    let (spec, program) = (&experiment.machine.spec, &experiment.program);
    let domain = spec.persist.domain;
    if spec.nodes.clients > 0 || spec.nodes.servers > 1 || request.claim.is_some() || request.only_allowed.is_some() {
        let message = "clients, several servers, claims, and states of levels B and C are not judged under a scheme that saves registers";
        return Err(Diagnostic::nowhere(&program.name, message).with_help("`--only A:POINT`").into());
    }
    // One run gives every state: journals keep all that changes what is durable or replayed.
    let process = program.process()?;
    let load = load_of(experiment, &process, None);
    let memory = load.memory();
    let finished = run_cpu(experiment, &Conduct { journal: true, ..watching.conduct.clone() });
    let simulated = began.elapsed();
    let Some(journal) = &finished.journal else { unreachable!("a journal was asked for") };
    let initial = initial_image(&load.image());
    let outside = |outside| Diagnostic::nowhere("journal", format!("a write outside persistent memory: {outside}"));

    // What no image shows, and every image by what changed last.
    let host = Requester::os(spec.core.count as u16).number();
    let order = RunOrder::new(journal, &initial, Model { domain, promises: Promises::NONE, host });
    let states = CrashStates::new(journal, &initial, domain).map_err(outside)?;
    let keep = request.keep;
    let replayed = judge_replay(journal, &initial, LINE_BYTES, Replay::All, keep).map_err(outside)?;
    let history = judge_history(&states, &order, keep).with(replayed, keep);
    let wanted = request.resume > 0 && !matches!(request.plan, Plan::Only(_));
    let resume = wanted.then(|| {
        let going_on = GoingOn {
            experiment,
            process: &process,
            memory,
            initial: &initial,
            double: request.double,
            stop: watching.stop,
        };
        going_on.judge(&finished.outcome, request, watching)
    });
    // Promises are those that were judged, in this order.
    let ticks_a_cycle = spec.timebase().map_or(1, |base| base.clock(spec.clock.core_mhz.khz).period_ticks());
    let judgement = |verdict: Verdict| judgement(verdict, program, ticks_a_cycle);
    let mut promises = vec![
        "durable bytes are bytes that were stored, and never go back (P0)".to_owned(),
        "after the replay memory has all stores that have retired, at every instant (P4')".to_owned(),
    ];
    let goes_on = "from the retired pc of each hart the program goes on to its end and its result (P4')".to_owned();
    promises.extend(wanted.then_some(goes_on));
    let again = "a replay cut off anywhere can begin anew (P8)".to_owned();
    promises.extend((wanted && request.double).then_some(again));
    promises.push("levels A and B do not apply: the replay sets right what the write-backs leave open".to_owned());
    // Nothing of levels that do not apply, and no recovery of the program's own.
    Ok(CrashReport {
        domain,
        recovery: "saved registers and a replay of stores".to_owned(),
        promises,
        unjudged: None,
        transactions: 0,
        image_bytes: initial.bytes().len() as u64,
        changes: states.changes(),
        seed: request.seed,
        history: judgement(history),
        actual: None,
        allowed: None,
        overtaking: None,
        channels: None,
        regions: None,
        double: None,
        resume: resume.map(judgement),
        output: None,
        conditions: Vec::new(),
        wall_s: [simulated.as_secs_f64(), (began.elapsed() - simulated).as_secs_f64()],
        outcome: finished.outcome.clone(),
    })
}

/// Findings in the terms of a program of CPUs.
pub(super) fn judgement(verdict: Verdict, program: &CpuProgram, ticks_a_cycle: u64) -> Judgement {
    let place = |persist: &verdict::Persist| Placed {
        persist: persist.clone(),
        kernel: None,
        function: Some(program.image.code_name(persist.pc.into())),
        source: None,
        buffer: None,
        channel: None,
    };
    let found = |failure: &Failure| Found {
        missing: failure.witness.as_ref().and_then(|witness| witness.missing.as_ref()).map(place),
        present: failure.witness.as_ref().and_then(|witness| witness.present.as_ref()).map(place),
        core_cycle: failure.time / ticks_a_cycle,
        server: None,
        failure: failure.clone(),
    };
    Judgement { found: verdict.failures.iter().map(found).collect(), verdict }
}

/// The program goes on from instants of its run.
struct GoingOn<'a> {
    experiment: &'a CpuExperiment,
    process: &'a Process,
    memory: CpuMemory,
    initial: &'a PmImage,
    double: bool,
    stop: &'a AtomicBool,
}

impl GoingOn<'_> {
    /// Draws instants and judges them, in their order.
    fn judge(&self, outcome: &Outcome, request: &CrashRequest, watching: &Watching<'_>) -> Verdict {
        let end = outcome.time.ticks;
        let mut draw = Draw::new(request.seed ^ 3);
        let mut instants: Vec<Time> = (0..request.resume).map(|_| draw.below(end.max(1))).collect();
        instants.sort_unstable();
        instants.dedup();
        let total = instants.len() as u64;
        let mut verdict = Verdict::default();
        let mut paused = PausedCpu::new(self.experiment, self.process);
        for (done, &at) in instants.iter().enumerate() {
            let found = self.at(&mut paused, at, end, outcome);
            if self.stop.load(Ordering::Relaxed) {
                verdict.stopped = true;
                break;
            }
            match found {
                Some(found) => verdict.add(found.err(), request.keep),
                None => verdict.left_out += 1,
            }
            (watching.progress)(Phase::Resume, done as u64 + 1, total);
        }
        (verdict.points, verdict.distinct) = (verdict.judged, verdict.judged);
        verdict
    }

    /// Judges one instant, or a later one at which no call is under way; none where there is no such.
    fn at(&self, paused: &mut PausedCpu, at: Time, end: Time, outcome: &Outcome) -> Option<Result<(), Failure>> {
        let step = (end / 1024).max(1);
        let (mut at, mut tries) = (at.max(paused.machine.simulation.reached()), 0);
        let saved = loop {
            if !paused.go_on(at) || tries == PUT_OFF {
                return None;
            }
            match saved_harts(&paused.machine) {
                Some(saved) => break saved,
                None => (at, tries) = (at + step, tries + 1),
            }
        };
        let judged = self.go_on(&paused.machine, &saved, at, outcome);
        let point = paused.machine.journal().facts().len() as u64;
        let (property, level, choice, values) = (Property::Resume, Level::Actual, None, Vec::new());
        Some(judged.map_err(|what| Failure { property, level, point, choice, time: at, what, values, witness: None }))
    }

    /// Replays, goes on, and compares with the run without a failure.
    fn go_on(&self, machine: &Assembly, saved: &[SavedThread], at: Time, run: &Outcome) -> Result<(), String> {
        let journal = machine.journal();
        let mut image =
            SavedStores::new(&journal, self.initial, Replay::All).recovered().map_err(|outside| outside.to_string())?;
        self.write_retired(saved, &mut image)?;
        // Power fails in the replay, too.
        for lines in (1..=CUTS).filter(|_| self.double) {
            let stores = SavedStores::new(&journal, self.initial, Replay::All);
            let mut again = stores.cut_off(lines).map_err(|outside| outside.to_string())?;
            self.write_retired(saved, &mut again)?;
            if again != image {
                return Err(format!("a replay cut off after {lines} lines and begun anew leaves other bytes"));
            }
        }
        // The system is persisted with the rest; harts go on from their saved registers.
        let Some(os) = machine.systems().next().and_then(|os| os.idle()) else { unreachable!("no call is under way") };
        let harts = saved
            .iter()
            .map(|thread| SavedHart { state: thread.state.clone(), running: thread.standing == Standing::Runs });
        let now_ns = self.experiment.machine.spec.timebase().map_or(0, |base| base.ps_of_ticks(at) / 1000);
        let saved = SavedProcess {
            memory: windows_of(self.process, &self.memory, &image),
            os: os.clone(),
            harts: harts.collect(),
            now_ns,
        };
        // What it posts to others is not looked at: machines of several servers are refused.
        let options = Options {
            harts: self.experiment.machine.spec.harts(),
            instructions: gone_on::most_instructions(run),
            files: self.experiment.program.files.clone(),
            stop: Some(self.stop),
            ..Options::default()
        };
        let ended = functional::resume(self.process, saved, &options);
        let exit_code = gone_on::exit_code(ended.end, &self.process.image, options.instructions, run.process.as_ref())?;
        let Some(exit_code) = exit_code else { return Ok(()) };
        let ran = Ran {
            exit_code,
            stdout: &ended.stdout,
            files: &ended.files,
            persistent: ended.memory.persistent(),
            logs: &[],
        };
        let wrong = failures(&self.experiment.program.verify(&ran, None));
        if run.end == End::Finished && !wrong.is_empty() {
            return Err(format!("gone on, {}", wrong.join("; ")));
        }
        Ok(())
    }

    /// Replays what has retired and was not performed.
    fn write_retired(&self, saved: &[SavedThread], image: &mut PmImage) -> Result<(), String> {
        for &(address, value, width) in saved.iter().flat_map(|thread| &thread.stores) {
            let bytes = value.to_le_bytes();
            image.write(address, &bytes[..width.into()]).map_err(|outside| outside.to_string())?;
        }
        Ok(())
    }
}

/// What is saved of every hart; none while a call is under way anywhere, or its answer, or a wake.
fn saved_harts(machine: &Assembly) -> Option<Vec<SavedThread>> {
    let os = machine.systems().next()?.idle()?;
    let waiting = os.waiting();
    let mut saved = Vec::new();
    for core in machine.cores() {
        for index in 0..core.harts() {
            let thread = Core::saved(core, index);
            let hart = saved.len() as u32;
            let standing = match (os.thread(hart), waiting.iter().any(|wait| wait.hart == Some(hart))) {
                (0, _) => Standing::Idle,
                (_, true) => Standing::Waits,
                (_, false) => Standing::Runs,
            };
            if thread.standing != standing {
                return None;
            }
            saved.push(thread);
        }
    }
    Some(saved)
}
