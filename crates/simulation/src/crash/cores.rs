//! Crash tests of programs of CPUs: the states that a power failure leaves, recovered by the program itself.
//!
//! ```text
//!  experiment ─ run (journals on) ─┬─ crash states ──┐  the same executable with its manifest's recovery
//!                                  └─ allowed states ┴─ arguments, on the functional driver: exit code 0?
//! ```
//! Facts are those of GPUs, with a core for an SM and a hart for a warp: so are history, level A and level B
//! (every line may have been written back early, whatever is not fenced). Level C, warps of a CTA that run
//! ahead, has no meaning here: threads of CPUs pass messages by memory, whose order the cores have seen to.
//! What clients over the network, or harts of other servers, posted is judged by itself
//! ([`channels`](super::channels)): that memory is theirs. It is all there is where the program has no
//! persistent memory ([`posts`](super::posts)). A program without recovery can be judged where caches survive
//! ([`visible`](super::visible)).
//! Main memory is lost where it is DRAM; recovery starts as a new process on the persistent window. With
//! [`CrashRequest::double`] recovery of level A is cut off at places of its own ([`super::durable_steps`])
//! and starts again. Level B is judged once: each start is a run of the program, and its images are many.
//!
//! Not modelled: power failures of the second recovery, time that recovery takes.

use std::sync::atomic::AtomicBool;

use crate::run::{CpuExperiment, Extent, Finished};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::sparse;
use durawarp_machine::cpu::CpuMemory;
use durawarp_machine::nodes::NodesSpec;
use durawarp_oracle::Regions;
use durawarp_oracle::allowed::{Allowed, Budget};
use durawarp_oracle::crash::Plan;
use durawarp_oracle::cuts::Cuts;
use durawarp_oracle::epochs::{EpochStates, PersistOrder};
use durawarp_oracle::history::judge_history;
use durawarp_oracle::judge::{Recovery, Rules};
use durawarp_oracle::verdict::{Failure, Level, Persist, Witness};
use durawarp_persist::promises::Survives;
use durawarp_persist::undo::RecoveryStep;
use durawarp_persist::{Fact, FactKind, Journal, PmImage};
use durawarp_riscv::functional::{self, End, Observer, Options};
use durawarp_riscv::process::Process;
use durawarp_workload::CpuProgram;

use super::channels;
use super::driver::{Crashed, judge_failures};
use super::durable_steps::DurableSteps;
use super::found::Placed;
use super::posts::{PostsAlone, posts_alone};
use super::promise::Promise;
use super::ran::JournaledRun;
use super::regions_of_cores::FormedCores;
use super::report::{CrashReport, Levels};
use super::request::{CrashRequest, Watching};
use super::saved::SavedCores;
use super::states::{AllowedStates, StateRules, judge_states};
use super::subject::{Site, Subject, own_load};
use super::visible::{SurvivingCores, is_judged_by_visibility};

/// How much of level B is judged of a program of CPUs unless something else is asked for: recovery runs a
/// whole program on each image, thousands of times the work of undoing a log.
pub const CPU_BUDGET: Budget =
    Budget { instants: 128, boundaries: 512, product: 64, singles: 32, pairs: 16, random: 16, torn: 8, seed: 0 };

/// As reports name the file that is persistent memory.
const PM_FILE: &str = "/pm";

/// Instructions that recovery may take.
const RECOVERY_INSTRUCTIONS: u64 = 1 << 30;

/// Runs a program of CPUs once and judges what power failures leave.
///
/// # Errors
/// A program without recovery arguments, unless caches survive; one without persistent memory, unless
/// clients post; a crash point beyond the end of the run; one state of several servers; a claim, which is
/// about kernels.
pub fn crash_cpu(
    experiment: &CpuExperiment,
    request: &CrashRequest,
    watching: &Watching<'_>,
) -> Result<CrashReport, Diagnostics> {
    let crashed = || -> Result<Box<dyn Crashed + '_>, Diagnostics> {
        experiment.check()?;
        if experiment.fork.is_some() {
            return Err(of_fork().into());
        }
        if experiment.extent != Extent::Whole {
            let message =
                "a program that is simulated in part cannot be judged: most of its stores are never simulated";
            let fault = Diagnostic::nowhere("sample", message);
            return Err(fault.with_help("crash tests simulate the whole program").into());
        }
        let scheme = &experiment.scheme.built;
        Ok(match scheme.regions() {
            _ if scheme.promises().survives == Survives::Registers => Box::new(SavedCores::new(experiment, request)?),
            Some(rule) => Box::new(FormedCores::new(experiment, rule, request)?),
            None if is_judged_by_visibility(experiment) => Box::new(SurvivingCores::new(experiment, request)?),
            None if posts_alone(&experiment.program) => Box::new(PostsAlone::new(experiment, request)?),
            None => Box::new(RecoveringCores::new(experiment, request, watching.stop)?),
        })
    };
    judge_failures(crashed, request, watching)
}

/// Why an experiment with a fork cannot be judged.
pub(super) fn of_fork() -> Diagnostic {
    let message = "a run whose parameters change on the way cannot be judged: what is before is not in its journal";
    Diagnostic::nowhere("fork_at_cycle", message)
}

/// A program of CPUs that recovers by itself.
struct RecoveringCores<'a> {
    experiment: &'a CpuExperiment,
    process: Process,
    /// With its recovery arguments.
    recovery: Process,
    stop: &'a AtomicBool,
}

impl<'a> RecoveringCores<'a> {
    fn new(experiment: &'a CpuExperiment, request: &CrashRequest, stop: &'a AtomicBool) -> Result<Self, Diagnostics> {
        let (spec, program) = (&experiment.machine.spec, &experiment.program);
        refuse(program, &spec.nodes, request)?;
        // The same executable at boot, in a process of its own.
        let Some(recovery) = program.recovery_process() else { unreachable!("it is refused without") };
        Ok(RecoveringCores { experiment, process: program.process()?, recovery: recovery?, stop })
    }

    /// Where persistent memory lies in an image.
    fn memory(&self) -> CpuMemory {
        own_load(self.experiment, &self.process, None).memory()
    }

    /// Recovers an image in place, and tells where it may be cut off.
    fn run_with_steps(&self, image: &mut PmImage) -> Result<Vec<Vec<RecoveryStep>>, String> {
        let survived = image.clone();
        let mut steps = DurableSteps::new(&survived, self.memory(), self.experiment.machine.spec.persist.domain);
        self.run(image, &mut steps)?;
        Ok(steps.into_sequences())
    }

    /// Recovers an image in place.
    fn run(&self, image: &mut PmImage, observer: &mut impl Observer) -> Result<(), String> {
        // Main memory is that of a new process; only the persistent window has survived.
        let mut memory = self.recovery.memory();
        let bytes = memory.persistent().len();
        let start = (self.memory().persistent - image.base()) as usize;
        sparse::overwrite(memory.persistent_mut(), &image.bytes()[start..start + bytes]);
        let options = Options {
            harts: self.experiment.machine.spec.harts(),
            instructions: RECOVERY_INSTRUCTIONS,
            files: self.experiment.program.files.clone(),
            stop: Some(self.stop),
            ..Options::default()
        };
        let outcome = functional::run_observed(&self.recovery, memory, &options, observer);
        sparse::overwrite(&mut image.bytes_mut()[start..start + bytes], outcome.memory.persistent());
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
                let waits = functional::waits_in_words(&harts, &self.experiment.program.image);
                Err(format!("the program's recovery waits for ever: {waits}"))
            }
            End::Repeats(harts) => {
                let told = functional::repeats_in_words(&harts, &self.experiment.program.image);
                Err(format!("the program's recovery repeats itself for ever: {told}"))
            }
            End::Limit => Err(format!("the program's recovery did not end in {RECOVERY_INSTRUCTIONS} instructions")),
            End::Stopped => Err("stopped".to_owned()),
        }
    }

    /// The order that hardware keeps among epochs, where it does.
    fn ordered<'j>(&self, journal: &'j Journal) -> Option<PersistOrder<'j>> {
        self.experiment.scheme.built.promises().epochs.then(|| PersistOrder::new(journal))
    }

    /// Two stores: an earlier one that the image lacks, and the next one after it that it has, of one hart if
    /// there are such, else of two.
    fn witness(&self, ran: &JournaledRun<'_>, failure: &Failure) -> Option<Witness> {
        let facts = ran.journal.facts().len();
        let (image, before) = match failure.level {
            Level::Allowed => {
                let ordered = self.ordered(ran.journal);
                allowed_states(ran, ordered.as_ref()).image(failure.point as usize, failure.choice?, facts)?
            }
            Level::Actual => (ran.states().ok()?.cursor(failure.point).ok()?.image().clone(), facts),
            _ => return None,
        };
        witness(ran.journal, before, failure.time, &image)
    }
}

/// What the scheme allows a power failure to leave.
fn allowed_states<'a>(ran: &JournaledRun<'a>, ordered: Option<&'a PersistOrder<'a>>) -> AllowedStates<'a> {
    let budget = Budget { seed: ran.request.seed, ..ran.request.allowed.unwrap_or_default() };
    match ordered {
        Some(epochs) => AllowedStates::ByEpochs(EpochStates::new(epochs, ran.initial, budget), ran.order),
        None => AllowedStates::ByFences(Allowed::new(ran.order, ran.initial, Regions::default(), budget)),
    }
}

impl Crashed for RecoveringCores<'_> {
    fn subject(&self) -> Subject<'_> {
        Subject::Cores(self.experiment, &self.process, None)
    }

    fn site(&self) -> Site {
        channels::site(self.experiment, &self.process, self.subject().site())
    }

    fn judge(&self, ran: &JournaledRun<'_>) -> Result<CrashReport, Diagnostics> {
        let request = ran.request;
        let states = ran.states()?;
        // Steps are noted only where recovery is cut off at them: that takes longer than recovery alone.
        let at_boot = |image: &mut PmImage| match request.double {
            true => self.run_with_steps(image),
            false => self.run(image, &mut ()).map(|()| Vec::new()),
        };
        let double = request.double.then_some(Cuts::TO_A_GOOD_END);
        let rules = Rules { recovery: Some(&at_boot as Recovery<'_>), double, keep: request.keep, ..Rules::default() };
        let regions = Regions::default();
        let by = StateRules { rules, cuts_allowed: false, regions, overtaking: None, intervals: true, promises: true };
        let ordered = self.ordered(ran.journal);
        let levels = judge_states(ran, &states, &allowed_states(ran, ordered.as_ref()), &by)?;
        // What no image shows: acknowledgements that came too early, values that go back, order that is
        // missing.
        let mut history = judge_history(&states, ran.order, request.keep);
        let mut of_history = vec![Promise::Values];
        if let Some(epochs) = &ordered {
            history = history.with(epochs.judge_history(ran.site.domain, request.keep), request.keep);
            of_history.push(Promise::ThreadEpochs);
        }
        let fences = ran.journal.facts().iter().any(|fact| fact.kind == FactKind::FencePassed);
        of_history.extend(fences.then_some(Promise::Fences));
        let mut of_states = vec![Promise::RecoveryExits];
        of_states.extend(request.double.then_some(Promise::ActualRecoveryAgain));

        let arguments = self.experiment.program.recovery.as_deref().unwrap_or_default();
        Ok(CrashReport {
            recovery: format!("the program itself, with `{}`", arguments.join(" ")),
            changes: states.changes(),
            levels: Levels::by_states((&of_history, history), &of_states, levels),
            ..ran.report()
        })
    }

    fn tell(&self, ran: &JournaledRun<'_>, failure: &Failure) -> Failure {
        let witness = failure.witness.clone().or_else(|| self.witness(ran, failure));
        Failure { witness, ..failure.clone() }
    }

    fn place(&self, finished: &Finished, persist: &Persist) -> Placed {
        // A process has one file of persistent memory, whatever its name.
        let CpuMemory { windows, persistent, .. } = self.memory();
        let is_of_file = (persistent..persistent + windows.pm_bytes).contains(&persist.address);
        let buffer = is_of_file.then(|| (PM_FILE.to_owned(), persist.address - persistent));
        Placed { buffer, ..self.subject().place(finished, persist) }
    }
}

/// What cannot be judged costs no simulation.
fn refuse(program: &CpuProgram, nodes: &NodesSpec, request: &CrashRequest) -> Result<(), Diagnostics> {
    let mut faults = Diagnostics::default();
    let mut fault = |what: String, help: &str| {
        faults.push(Diagnostic::nowhere(&program.name, what).with_help(help.to_owned()));
    };
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
    if request.is_about_barriers() || request.only_overtaking.is_some() {
        fault(
            "persist barriers and overtaking warps are of kernels".into(),
            "without --claim and --by, and no state `C`",
        );
    }
    faults.into_result(())
}

/// The bytes of a store are those of the image.
fn is_in(image: &PmImage, journal: &Journal, fact: &Fact) -> bool {
    let data = journal.data(fact);
    let bytes = (0..128u64).filter(|byte| fact.mask >> byte & 1 == 1);
    bytes.zip(data).all(|(byte, &stored)| image.read(fact.line + byte, 1).is_ok_and(|found| found[0] == stored))
}

/// See [`RecoveringCores::witness`]. The last such pair before the failure: what came before it is settled.
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
                (stores[at].author.thread() == fact.author.thread()) == one_hart && fact.line != stores[at].line
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
            let author = Author::Hart { core: hart, hart: 0, pc: 0 };
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
