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

use std::sync::atomic::Ordering;

use crate::assemble::Assembly;
use crate::outcome::End;
use crate::run::{CpuExperiment, PausedCpu, failures};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_engine::Time;
use durawarp_machine::core::{Core, SavedThread, Standing};
use durawarp_oracle::Draw;
use durawarp_oracle::crash::Plan;
use durawarp_oracle::history::judge_history;
use durawarp_oracle::replay::{Replay, SavedStores, judge_replay};
use durawarp_oracle::verdict::{Failure, Level, Property, Verdict};
use durawarp_persist::PmImage;
use durawarp_riscv::functional::{self, Options, SavedHart, SavedProcess};
use durawarp_riscv::process::Process;
use durawarp_workload::Ran as RanProgram;

use super::driver::Crashed;
use super::gone_on;
use super::image::windows_of;
use super::promise::Promise;
use super::ran::{JournaledRun, outside};
use super::report::{CrashReport, JudgedLevel, Judgement, Levels};
use super::request::{CrashRequest, Phase};
use super::subject::{Subject, own_load};

/// Bytes of a line of CPUs.
const LINE_BYTES: usize = 64;

/// Where a replay is cut off, at most: after each of its first lines.
const CUTS: usize = 8;

/// How many times an instant is put off, each time by a 1024th of the run.
const PUT_OFF: u32 = 64;

/// A program of CPUs whose registers are saved.
pub(super) struct SavedCores<'a> {
    experiment: &'a CpuExperiment,
    process: Process,
}

impl<'a> SavedCores<'a> {
    /// # Errors
    /// A machine with clients or several servers; states of levels that do not apply.
    pub(super) fn new(experiment: &'a CpuExperiment, request: &CrashRequest) -> Result<Self, Diagnostics> {
        let (nodes, program) = (&experiment.machine.spec.nodes, &experiment.program);
        if nodes.clients > 0 || nodes.servers > 1 || request.is_about_barriers() || request.only_allowed.is_some() {
            let message = "clients, several servers, claims, and states of levels B and C are not judged under a scheme that saves registers";
            return Err(Diagnostic::nowhere(&program.name, message).with_help("`--only A:POINT`").into());
        }
        Ok(SavedCores { experiment, process: program.process()? })
    }
}

impl Crashed for SavedCores<'_> {
    fn subject(&self) -> Subject<'_> {
        Subject::Cores(self.experiment, &self.process, None)
    }

    fn judge(&self, ran: &JournaledRun<'_>) -> Result<CrashReport, Diagnostics> {
        let request = ran.request;
        // What no image shows, and every image by what changed last.
        let states = ran.states()?;
        let keep = request.keep;
        let replayed = judge_replay(ran.journal, ran.initial, LINE_BYTES, Replay::All, keep).map_err(outside)?;
        let history = judge_history(&states, ran.order, keep).with(replayed, keep);
        let of_history = [Promise::Values, Promise::Replayed];
        let mut judgements = vec![Judgement::new(JudgedLevel::History, &of_history, history)];
        if request.resume > 0 && !matches!(request.plan, Plan::Only(_)) {
            let resumed = self.judge_resumed(ran);
            let mut promises = vec![Promise::GoesOn];
            promises.extend(request.double.then_some(Promise::ReplayAgain));
            judgements.push(Judgement::new(JudgedLevel::Resumed, &promises, resumed));
        }
        Ok(CrashReport {
            recovery: "saved registers and a replay of stores".to_owned(),
            changes: states.changes(),
            levels: Levels { judgements, channels: None },
            promises: vec![Promise::NoStatesOfReplay],
            ..ran.report()
        })
    }
}

/// The program goes on from instants of its run.
impl SavedCores<'_> {
    /// Draws instants and judges them, in their order.
    fn judge_resumed(&self, ran: &JournaledRun<'_>) -> Verdict {
        let JournaledRun { request, watching, .. } = *ran;
        let end = ran.finished.outcome.time.ticks;
        let mut draw = Draw::new(request.seed ^ 3);
        let mut instants: Vec<Time> = (0..request.resume).map(|_| draw.below(end.max(1))).collect();
        instants.sort_unstable();
        instants.dedup();
        let total = instants.len() as u64;
        let mut verdict = Verdict::default();
        let mut paused = PausedCpu::new(self.experiment, &self.process);
        for (done, &at) in instants.iter().enumerate() {
            let found = self.at(&mut paused, at, end, ran);
            if watching.stop.load(Ordering::Relaxed) {
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
    fn at(&self, paused: &mut PausedCpu, at: Time, end: Time, ran: &JournaledRun<'_>) -> Option<Result<(), Failure>> {
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
        let judged = self.go_on(&paused.machine, &saved, at, ran);
        let point = paused.machine.journal().facts().len() as u64;
        let (property, level, choice, values) = (Property::Resume, Level::Actual, None, Vec::new());
        Some(judged.map_err(|what| Failure { property, level, point, choice, time: at, what, values, witness: None }))
    }

    /// Replays, goes on, and compares with the run without a failure.
    fn go_on(&self, machine: &Assembly, saved: &[SavedThread], at: Time, ran: &JournaledRun<'_>) -> Result<(), String> {
        let run = &ran.finished.outcome;
        let journal = machine.journal();
        let mut image =
            SavedStores::new(&journal, ran.initial, Replay::All).recovered().map_err(|outside| outside.to_string())?;
        write_retired(saved, &mut image)?;
        // Power fails in the replay, too.
        for lines in (1..=CUTS).filter(|_| ran.request.double) {
            let stores = SavedStores::new(&journal, ran.initial, Replay::All);
            let mut again = stores.cut_off(lines).map_err(|outside| outside.to_string())?;
            write_retired(saved, &mut again)?;
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
            memory: windows_of(&self.process, &own_load(self.experiment, &self.process, None).memory(), &image),
            os: os.clone(),
            harts: harts.collect(),
            now_ns,
        };
        // What it posts to others is not looked at: machines of several servers are refused.
        let options = Options {
            harts: self.experiment.machine.spec.harts(),
            instructions: gone_on::most_instructions(run),
            files: self.experiment.program.files.clone(),
            stop: Some(ran.watching.stop),
            ..Options::default()
        };
        let ended = functional::resume(&self.process, saved, &options);
        let exit_code = gone_on::exit_code(ended.end, &self.process.image, options.instructions, run.process.as_ref())?;
        let Some(exit_code) = exit_code else { return Ok(()) };
        let left = RanProgram {
            exit_code,
            stdout: &ended.stdout,
            files: &ended.files,
            persistent: ended.memory.persistent(),
            logs: &[],
        };
        let wrong = failures(&self.experiment.program.verify(&left, None));
        if run.end == End::Finished && !wrong.is_empty() {
            return Err(format!("gone on, {}", wrong.join("; ")));
        }
        Ok(())
    }
}

/// Replays what has retired and was not performed.
fn write_retired(saved: &[SavedThread], image: &mut PmImage) -> Result<(), String> {
    for &(address, value, width) in saved.iter().flat_map(|thread| &thread.stores) {
        let bytes = value.to_le_bytes();
        image.write(address, &bytes[..width.into()]).map_err(|outside| outside.to_string())?;
    }
    Ok(())
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
