//! Crash tests of programs of CPUs: the states that a power failure leaves, recovered by the program itself.
//!
//! ```text
//!  experiment ─ run (journals on) ─┬─ crash states ──┐  the same executable with its manifest's recovery
//!                                  └─ allowed states ┴─ arguments, on the functional driver: exit code 0?
//! ```
//! Facts are those of GPUs, with a core for an SM and a hart for a warp: so are history, level A and level B
//! (every line may have been written back early, whatever is not fenced). Level C, warps of a CTA that run
//! ahead, has no meaning here: threads of CPUs pass messages by memory, whose order the cores have seen to.
//! What clients over the network, or harts of other servers, posted is judged by itself ([`channels`]): that
//! memory is theirs.
//! Each of several servers is judged by itself ([`servers`](super::servers)). A program without recovery
//! can be judged where caches survive ([`visible`](super::visible)).
//! Main memory is lost where it is DRAM; recovery starts as a new process on the persistent window. With
//! [`CrashRequest::double`] recovery of level A is cut off at places of its own ([`super::durable_steps`])
//! and starts again. Level B is judged once: each start is a run of the program, and its images are many.
//!
//! Not modelled: power failures of the second recovery, time that recovery takes.

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::assemble::CpuLoad;
use crate::run::{Conduct, CpuExperiment, run_cpu};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_machine::cpu::CpuMemory;
use durawarp_machine::nodes::NodesSpec;
use durawarp_machine::ports::Requester;
use durawarp_oracle::Regions;
use durawarp_oracle::allowed::{Allowed, Budget};
use durawarp_oracle::crash::{CrashStates, Plan};
use durawarp_oracle::cuts::Cuts;
use durawarp_oracle::epochs::{EpochStates, PersistOrder};
use durawarp_oracle::history::judge_history;
use durawarp_oracle::judge::{
    Recovery, Rules, Watch, judge_actual, judge_allowed, judge_choice, judge_epoch_choice, judge_epochs,
};
use durawarp_oracle::order::{Model, RunOrder};
use durawarp_oracle::verbs::is_of_clients;
use durawarp_oracle::verdict::{Failure, Level, Persist, Verdict, Witness};
use durawarp_persist::promises::Promises;
use durawarp_persist::promises::Survives;
use durawarp_persist::undo::RecoveryStep;
use durawarp_persist::vocab::Domain;
use durawarp_persist::{Fact, FactKind, Journal, PmImage};
use durawarp_riscv::elf::Executable;
use durawarp_riscv::functional::{self, End, Observer, Options};
use durawarp_riscv::process::Process;
use durawarp_workload::CpuProgram;

use super::channels;
use super::durable_steps::DurableSteps;
use super::found::{Found, Placed};
use super::image::initial_image;
use super::regions_of_cores::crash_regions_of_cores;
use super::report::{CrashReport, Judgement};
use super::request::{CrashRequest, Phase, Watching};
use super::saved::crash_saved;
use super::servers::{JudgedServer, together};
use super::visible::{crash_visible, is_judged_by_visibility};

/// How much of level B is judged of a program of CPUs unless something else is asked for: recovery runs a
/// whole program on each image, thousands of times the work of undoing a log.
pub const CPU_BUDGET: Budget =
    Budget { instants: 128, boundaries: 512, product: 64, singles: 32, pairs: 16, random: 16, torn: 8, seed: 0 };

/// As reports name the file that is persistent memory.
const PM_FILE: &str = "/pm";

/// Instructions that recovery may take.
const RECOVERY_INSTRUCTIONS: u64 = 1 << 30;

/// The program with its recovery arguments, and where its persistent memory lies.
struct ProcessRecovery<'a> {
    process: Process,
    program: &'a CpuProgram,
    /// Where persistent memory lies in an image.
    memory: CpuMemory,
    domain: Domain,
    harts: u32,
    stop: &'a AtomicBool,
}

impl ProcessRecovery<'_> {
    /// Recovers an image in place, and tells where it may be cut off.
    fn run_with_steps(&self, image: &mut PmImage) -> Result<Vec<Vec<RecoveryStep>>, String> {
        let survived = image.clone();
        let mut steps = DurableSteps::new(&survived, self.memory, self.domain);
        self.run(image, &mut steps)?;
        Ok(steps.into_sequences())
    }

    /// Recovers an image in place.
    fn run(&self, image: &mut PmImage, observer: &mut impl Observer) -> Result<(), String> {
        // Main memory is that of a new process; only the persistent window has survived.
        let mut memory = self.process.memory();
        let bytes = memory.persistent().len();
        let start = (self.memory.persistent - image.base()) as usize;
        memory.persistent_mut().copy_from_slice(&image.bytes()[start..start + bytes]);
        let options = Options {
            harts: self.harts,
            instructions: RECOVERY_INSTRUCTIONS,
            files: self.program.files.clone(),
            stop: Some(self.stop),
            ..Options::default()
        };
        let outcome = functional::run_observed(&self.process, memory, &options, observer);
        image.bytes_mut()[start..start + bytes].copy_from_slice(outcome.memory.persistent());
        // Exit code 0 says that all is right; any other that something is not.
        match outcome.end {
            End::Exited(0) => Ok(()),
            End::Exited(code) => {
                let told = String::from_utf8_lossy(&outcome.stderr).trim().to_owned();
                let told =
                    if told.is_empty() { String::from_utf8_lossy(&outcome.stdout).trim().to_owned() } else { told };
                let last = told.lines().last().map(|line| format!(": {line}")).unwrap_or_default();
                Err(format!("the program's recovery exited with {code}{last}"))
            }
            End::Fault(fault) => Err(format!("the program's recovery failed: {fault}")),
            End::Deadlock(harts) => {
                let waits = functional::waits_in_words(&harts, &self.program.image);
                Err(format!("the program's recovery waits for ever: {waits}"))
            }
            End::Repeats(harts) => {
                let told = functional::repeats_in_words(&harts, &self.program.image);
                Err(format!("the program's recovery repeats itself for ever: {told}"))
            }
            End::Limit => Err(format!("the program's recovery did not end in {RECOVERY_INSTRUCTIONS} instructions")),
            End::Stopped => Err("stopped".to_owned()),
        }
    }
}

/// Runs a program of CPUs once and judges what power failures leave.
///
/// # Errors
/// A program without persistent memory or without recovery arguments, unless caches survive; a crash point
/// beyond the end of the run; one state of several servers; a claim, which is about kernels.
#[expect(clippy::disallowed_methods, reason = "the wall time of a test is part of its report, not of its model")]
pub fn crash_cpu(
    experiment: &CpuExperiment,
    request: &CrashRequest,
    watching: &Watching<'_>,
) -> Result<CrashReport, Diagnostics> {
    let began = Instant::now();
    let (spec, program) = (&experiment.machine.spec, &experiment.program);
    let domain = spec.persist.domain;
    experiment.check()?;
    if experiment.scheme.built.promises().survives == Survives::Registers {
        return crash_saved(experiment, request, watching);
    }
    if experiment.scheme.built.regions().is_some() {
        return crash_regions_of_cores(experiment, request, watching);
    }
    if is_judged_by_visibility(experiment) {
        return crash_visible(experiment, request, watching, began);
    }
    refuse(program, &spec.nodes, request)?;
    let Some(arguments) = &program.recovery else { unreachable!("it is refused without") };
    let process = program.process()?;
    // The program's own memory; that of clients lies behind it.
    let load = CpuLoad {
        process: &process,
        files: &program.files,
        all_persistent: experiment.persistent,
        remote_bytes: 0,
        regions: None,
    };
    let remote = load.remote()..load.remote() + spec.remote_bytes();
    let memory: CpuMemory = load.memory();
    let Some(recovering) = program.recovery_process() else { unreachable!("it is refused without") };
    // The same executable at boot, in a process of its own.
    let recovery =
        ProcessRecovery { process: recovering?, program, memory, domain, harts: spec.harts(), stop: watching.stop };

    // One run gives every state: journals keep all that changes what is durable.
    let finished = run_cpu(experiment, &Conduct { journal: true, ..watching.conduct.clone() });
    let simulated = began.elapsed();
    let initial = initial_image(&load.image());
    let tested = TestedServer { experiment, initial: &initial, remote, recovery: &recovery, request, watching };
    let journals = finished.journal.iter().chain(&finished.other_journals);
    let judged: Vec<JudgedServer> = journals.map(|journal| tested.judge(journal)).collect::<Result<_, _>>()?;
    let JudgedServer { changes, fences, history, actual, allowed, channels } = together(judged, request.keep);

    let mut promises = vec![
        "durable bytes are bytes that were stored, and never go back (P0)".to_owned(),
        "the program's own recovery exits with 0".to_owned(),
    ];
    if experiment.scheme.built.promises().epochs {
        promises.push("what a thread stored before a fence is durable before what follows from it (P5)".to_owned());
    }
    if channels.is_some() {
        promises.push(
            "of what a client, or a hart of another server, posted a prefix of verbs is durable, with all that is \
             acknowledged (P6)"
                .to_owned(),
        );
    }
    let twice = "recovery of level A, cut off after a durable step, ends well when it starts again (P8)".to_owned();
    promises.extend(request.double.then_some(twice));
    promises.extend(fences.then(|| "what a fence let pass is durable (P9)".to_owned()));
    Ok(CrashReport {
        domain,
        recovery: format!("the program itself, with `{}`", arguments.join(" ")),
        promises,
        unjudged: None,
        transactions: 0,
        image_bytes: initial.bytes().len() as u64,
        changes,
        seed: request.seed,
        history,
        actual,
        allowed,
        overtaking: None,
        regions: None,
        double: None,
        resume: None,
        channels,
        output: None,
        conditions: Vec::new(),
        wall_s: [simulated.as_secs_f64(), (began.elapsed() - simulated).as_secs_f64()],
        outcome: finished.outcome.clone(),
    })
}

/// What the journal of a server is judged with.
struct TestedServer<'a> {
    experiment: &'a CpuExperiment,
    /// Persistent memory of the program, as it begins.
    initial: &'a PmImage,
    /// Addresses of the clients' memory.
    remote: Range<u64>,
    recovery: &'a ProcessRecovery<'a>,
    request: &'a CrashRequest,
    watching: &'a Watching<'a>,
}

impl TestedServer<'_> {
    /// Judges what power failures leave of a server.
    fn judge(&self, whole: &Journal) -> Result<JudgedServer, Diagnostics> {
        let TestedServer { experiment, initial, ref remote, recovery, request, watching } = *self;
        let (spec, program) = (&experiment.machine.spec, &experiment.program);
        let domain = spec.persist.domain;
        let [of_clients, journal] = &whole.parted(|fact| is_of_clients(fact, remote));
        let host = Requester::os(spec.core.count as u16).number();
        let order = RunOrder::new(journal, initial, Model { domain, promises: Promises::NONE, host });
        let states = CrashStates::new(journal, initial, domain).map_err(|outside| {
            Diagnostic::nowhere("journal", format!("a write outside persistent memory: {outside}"))
        })?;
        // Steps are noted only where recovery is cut off at them: that takes longer than recovery alone.
        let at_boot = |image: &mut PmImage| match request.double {
            true => recovery.run_with_steps(image),
            false => recovery.run(image, &mut ()).map(|()| Vec::new()),
        };
        let double = request.double.then_some(Cuts::TO_A_GOOD_END);
        let rules = Rules { recovery: Some(&at_boot as Recovery<'_>), double, keep: request.keep, ..Rules::default() };
        let budget = Budget { seed: request.seed, ..request.allowed.unwrap_or_default() };
        let ordered = experiment.scheme.built.promises().epochs.then(|| PersistOrder::new(journal));
        let allowed = match &ordered {
            Some(epochs) => AllowedStates::ByEpochs(EpochStates::new(epochs, initial, budget), &order),
            None => AllowedStates::ByFences(Allowed::new(&order, initial, Regions::default(), budget)),
        };
        let [actual, of_allowed] = judge(&states, &allowed, &rules, request, watching)?;
        let posted = spec.nodes.clients > 0 || spec.nodes.peers() > 0;
        let channels = posted.then(|| channels::judge(of_clients, domain, request, watching));
        // What no image shows: acknowledgements that came too early, values that go back, order that is
        // missing.
        let mut history = judge_history(&states, &order, request.keep);
        if let Some(epochs) = &ordered {
            history = history.with(epochs.judge_history(domain, request.keep), request.keep);
        }

        let ticks_a_cycle = spec.timebase().map_or(1, |base| base.clock(spec.clock.core_mhz.khz).period_ticks());
        let CpuMemory { windows, persistent, .. } = self.recovery.memory;
        let pm = persistent..persistent + windows.pm_bytes;
        let places = Places { states: &states, allowed: &allowed, image: &program.image, pm, ticks_a_cycle };
        Ok(JudgedServer {
            changes: states.changes(),
            fences: journal.facts().iter().any(|fact| fact.kind == FactKind::FencePassed),
            history: places.judgement(history),
            actual: actual.map(|verdict| places.judgement(verdict)),
            allowed: of_allowed.map(|verdict| places.judgement(verdict)),
            channels: channels.map(|verdicts| verdicts.report(ticks_a_cycle)),
        })
    }
}

/// What cannot be judged costs no simulation.
fn refuse(program: &CpuProgram, nodes: &NodesSpec, request: &CrashRequest) -> Result<(), Diagnostics> {
    let mut faults = Diagnostics::default();
    let mut fault = |what: String, help: &str| {
        faults.push(Diagnostic::nowhere(&program.name, what).with_help(help.to_owned()));
    };
    if program.start.windows.pm_bytes == 0 && !program.clients.is_empty() {
        let what = "the server's program has no persistent memory, beside which what clients post is judged";
        fault(what.into(), "a program that has some: `durawarp crash hash --machine broi-cluster --scheme broi`");
        return faults.into_result(());
    }
    if program.start.windows.pm_bytes == 0 {
        fault("the program has no persistent memory: a power failure leaves nothing to judge".into(), "`pm_mb` of it");
    }
    if program.recovery.is_none() {
        let help = "`recovery = { args = [...] }`: the same program on what is left, with exit code 0 where it is right; \
                    without it memory alone is judged where caches survive (--set persist.domain=eadr, --scheme psp-ideal)";
        fault("the manifest does not say how the program recovers".into(), help);
    }
    if nodes.servers > 1 && (request.only_allowed.is_some() || matches!(request.plan, Plan::Only(_))) {
        let what = format!("one state is asked for, of {} servers that each have states", nodes.servers);
        fault(what, "without --only; or --set nodes.servers=1: servers have nothing in common");
    }
    if request.claim.is_some() || request.only_overtaking.is_some() {
        fault("persist barriers and overtaking warps are of kernels".into(), "without --claim, and no state `c`");
    }
    faults.into_result(())
}

/// The states that a scheme's promise allows.
enum AllowedStates<'a> {
    /// Fences wait: any line may have been written back before.
    ByFences(Allowed<'a>),
    /// Hardware orders epochs.
    ByEpochs(EpochStates<'a>, &'a RunOrder<'a>),
}

impl<'a> AllowedStates<'a> {
    fn order(&self) -> &'a RunOrder<'a> {
        match self {
            AllowedStates::ByFences(allowed) => allowed.order(),
            AllowedStates::ByEpochs(_, order) => order,
        }
    }

    fn judge(&self, rules: &Rules<'_>, watch: &Watch<'_>) -> Verdict {
        match self {
            AllowedStates::ByFences(allowed) => judge_allowed(allowed, rules, watch),
            AllowedStates::ByEpochs(states, order) => judge_epochs(states, order, rules, watch),
        }
    }

    fn judge_one(&self, rules: &Rules<'_>, instant: usize, choice: u64) -> Option<Verdict> {
        match self {
            AllowedStates::ByFences(allowed) => judge_choice(allowed, rules, instant, choice),
            AllowedStates::ByEpochs(states, order) => judge_epoch_choice(states, order, rules, instant, choice),
        }
    }

    /// The image of a failure, and how many facts were there by then.
    fn image(&self, instant: usize, choice: u64, facts: usize) -> Option<(PmImage, usize)> {
        match self {
            AllowedStates::ByFences(allowed) => Some((allowed.image(instant, choice)?, instant)),
            AllowedStates::ByEpochs(states, _) => Some((states.image(instant, choice), facts)),
        }
    }
}

/// Levels A and B, as far as asked for.
fn judge(
    states: &CrashStates<'_>,
    allowed: &AllowedStates<'_>,
    rules: &Rules<'_>,
    request: &CrashRequest,
    watching: &Watching<'_>,
) -> Result<[Option<Verdict>; 2], Diagnostics> {
    if let Some((instant, choice)) = request.only_allowed {
        let verdict = allowed.judge_one(rules, instant as usize, choice).ok_or_else(|| {
            let message = format!("there is no state {choice} at instant {instant}");
            Diagnostic::nowhere("--only", message)
        })?;
        return Ok([None, Some(verdict)]);
    }
    let show = |done, total| (watching.progress)(Phase::Actual, done, total);
    let watch = Watch { stop: watching.stop, progress: &show };
    let (order, regions) = (allowed.order(), Regions::default());
    let actual = judge_actual(states, order, rules, &regions, request.plan, request.seed, &watch)
        .map_err(|beyond| Diagnostic::nowhere("--only", beyond.to_string()))?;
    let show = |done, total| (watching.progress)(Phase::Allowed, done, total);
    let watch = Watch { stop: watching.stop, progress: &show };
    // With one actual state named, the levels of the whole run are left out as well.
    let wanted = request.allowed.is_some() && !matches!(request.plan, Plan::Only(_));
    let once = Rules { double: None, ..*rules };
    Ok([Some(actual), wanted.then(|| allowed.judge(&once, &watch))])
}

/// Puts findings into the terms of the program.
struct Places<'a> {
    states: &'a CrashStates<'a>,
    allowed: &'a AllowedStates<'a>,
    image: &'a Executable,
    /// Addresses of the program's persistent memory.
    pm: Range<u64>,
    ticks_a_cycle: u64,
}

impl Places<'_> {
    fn judgement(&self, verdict: Verdict) -> Judgement {
        Judgement { found: verdict.failures.iter().map(|failure| self.found(failure)).collect(), verdict }
    }

    fn found(&self, failure: &Failure) -> Found {
        let witness = failure.witness.clone().or_else(|| self.witness(failure));
        let place = |persist: Option<Persist>| persist.map(|persist| self.place(persist));
        let (missing, present) = match &witness {
            Some(witness) => (place(witness.missing.clone()), place(witness.present.clone())),
            None => (None, None),
        };
        let failure = Failure { witness, ..failure.clone() };
        Found { missing, present, core_cycle: failure.time / self.ticks_a_cycle, server: None, failure }
    }

    fn place(&self, persist: Persist) -> Placed {
        let function = self.image.code_name(persist.pc.into());
        // A process has one file of persistent memory, whatever its name.
        let is_of_file = self.pm.contains(&persist.address);
        let buffer = is_of_file.then(|| (PM_FILE.to_owned(), persist.address - self.pm.start));
        Placed { persist, kernel: None, function: Some(function), channel: None, source: None, buffer }
    }

    /// Two stores: an earlier one that the image lacks, and the next one after it that it has, of one hart if
    /// there are such, else of two.
    fn witness(&self, failure: &Failure) -> Option<Witness> {
        let (image, before) = match failure.level {
            Level::Allowed => {
                let facts = self.states.journal().facts().len();
                self.allowed.image(failure.point as usize, failure.choice?, facts)?
            }
            Level::Actual => {
                let cursor = self.states.cursor(failure.point).ok()?;
                (cursor.image().clone(), self.states.journal().facts().len())
            }
            _ => return None,
        };
        witness(self.states.journal(), before, failure.time, &image)
    }
}

/// The bytes of a store are those of the image.
fn is_in(image: &PmImage, journal: &Journal, fact: &Fact) -> bool {
    let data = journal.data(fact);
    let bytes = (0..128u64).filter(|byte| fact.mask >> byte & 1 == 1);
    bytes.zip(data).all(|(byte, &stored)| image.read(fact.line + byte, 1).is_ok_and(|found| found[0] == stored))
}

/// See [`Places::witness`]. The last such pair before the failure: what came before it has been settled.
fn witness(journal: &Journal, before: usize, time: u64, image: &PmImage) -> Option<Witness> {
    let facts = journal.facts();
    let stores =
        facts[..before.min(facts.len())].iter().filter(|fact| fact.kind == FactKind::Stored && fact.time <= time);
    let stores: Vec<&Fact> = stores.collect();
    let persist =
        |fact: &Fact| Persist::new("store", fact.author, fact.line, fact.line + u64::from(fact.mask.trailing_zeros()));
    // Whether a later store of the same bytes hides it: then nothing can be said of it.
    let hidden = |at: usize| {
        let fact = stores[at];
        stores[at + 1..].iter().any(|later| later.line == fact.line && later.mask & fact.mask != 0)
    };
    let missing: Vec<usize> =
        (0..stores.len()).rev().filter(|&at| !is_in(image, journal, stores[at]) && !hidden(at)).collect();
    // A fence of the hart is what is missing more often than an order between harts, which needs two.
    for one_hart in [true, false] {
        for &at in &missing {
            let fits = |fact: &&&Fact| {
                let (own, author) = (stores[at].author, fact.author);
                ((own.sm, own.warp) == (author.sm, author.warp)) == one_hart && fact.line != stores[at].line
            };
            if let Some(present) = stores[at + 1..].iter().filter(fits).find(|fact| is_in(image, journal, fact)) {
                return Some(Witness { missing: Some(persist(stores[at])), present: Some(persist(present)) });
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_persist::journal::Author;

    /// Stores of one byte each, of harts to lines: the witness of an image that has the stores of `durable`.
    fn found(stores: &[(u16, u64)], durable: &[usize]) -> Option<(u64, u64)> {
        let (mut journal, mut image) = (Journal::default(), PmImage::new(0, vec![0; 512]));
        for (number, &(hart, line)) in stores.iter().enumerate() {
            let author = Author { sm: hart, ..Author::default() };
            journal.note_data(number as u64, FactKind::Stored, line, 1, author, &[number as u8 + 1; 128]);
            if durable.contains(&number) {
                image.write(line, &[number as u8 + 1]).unwrap();
            }
        }
        let Witness { missing, present } = witness(&journal, stores.len(), u64::MAX, &image)?;
        Some((missing?.line, present?.line))
    }

    #[test]
    fn the_stores_of_a_failure_are_of_one_hart_or_else_of_two() {
        // One hart: the log at 0 is missing, what it is of at 128 is there.
        assert_eq!(found(&[(0, 0), (0, 128)], &[1]), Some((0, 128)));
        // Two harts: the first's store is missing, and the second's is there.
        assert_eq!(found(&[(0, 0), (1, 128)], &[1]), Some((0, 128)));
        // Both: that of one hart is told, though the other is later.
        assert_eq!(found(&[(0, 0), (0, 128), (0, 256), (1, 384)], &[1, 3]), Some((0, 128)));
        // Nothing is missing that something followed.
        assert_eq!(found(&[(0, 0), (1, 128)], &[0]), None);
    }
}
