//! Power fails under a scheme of recoverable regions: what its hardware recovers is judged, and the program
//! resumed from it.
//!
//! Levels B and C do not apply: they are about what a program's fences leave open, and here hardware commits
//! regions whole and in one order, whatever fences there are. Another timing gives another order, which
//! another run shows. Nor do undo logs: the program does not recover, it goes on. Conditions of its manifest
//! are judged on what the hardware recovers; those on what the program's own recovery leaves are left out, as
//! that is not run.
//!
//! Source: P4 of the oracle's design. Invariants: the image covers what regions stored, checkpoints too,
//! behind all that the program allocates; what was never stored there is 0. Not modelled: time that recovery
//! takes.

use std::sync::atomic::AtomicBool;

use crate::outcome::{End, Outcome};
use crate::run::{Experiment, failures};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::sparse;
use durawarp_kernel::functional::Limits;
use durawarp_kernel::memory::{FlatMemory, Medium};
use durawarp_oracle::judge::Check;
use durawarp_oracle::regions::{
    AsPublished, JudgeOptions, RegionFacts, Resumes, TwiceResumed, judge_checks, judge_recovery, judge_regions,
    judge_resume,
};
use durawarp_persist::PmImage;
use durawarp_persist::vocab::RegionRule;
use durawarp_workload::{Bindings, Evidence, FormedProgram, FunctionalRun, Resolved};

use super::conditions::Bound;
use super::driver::Crashed;
use super::image::initial_image;
use super::kernels::bound;
use super::promise::Promise;
use super::ran::{JournaledRun, outside};
use super::report::{CrashReport, JudgedLevel, Judgement, Levels};
use super::request::{CrashRequest, Phase};
use super::subject::Subject;

/// How many times as many instructions as the run had a resumed program may take, and how many more.
const EXTRA: (u64, u64) = (4, 1 << 20);

/// The hardware that recovers.
pub(super) struct Hardware<'a> {
    pub(super) controllers: usize,
    /// Of the scheme.
    pub(super) rule: RegionRule,
    /// The manifest's conditions.
    pub(super) checks: &'a [&'a dyn Check],
}

/// Kernels in recoverable regions.
pub(super) struct FormedKernels<'a> {
    experiment: &'a Experiment,
    rule: RegionRule,
    bound: Vec<Bound>,
    stop: &'a AtomicBool,
}

impl<'a> FormedKernels<'a> {
    /// # Errors
    /// States of levels that do not apply; kernels that cannot be formed.
    pub(super) fn new(
        experiment: &'a Experiment,
        rule: RegionRule,
        request: &CrashRequest,
        stop: &'a AtomicBool,
    ) -> Result<Self, Diagnostics> {
        experiment.check()?;
        refuse(request)?;
        let mut bound = bound(experiment);
        // The program's own recovery is not run: what it would make of an image is not known.
        bound.retain(|bound| bound.on_survived() || experiment.workload.recovery().is_none());
        Ok(FormedKernels { experiment, rule, bound, stop })
    }
}

impl Crashed for FormedKernels<'_> {
    fn subject(&self) -> Subject<'_> {
        Subject::Kernels(self.experiment)
    }

    fn judge(&self, ran: &JournaledRun<'_>) -> Result<CrashReport, Diagnostics> {
        let FormedKernels { experiment, rule, bound, stop } = self;
        let spec = &experiment.machine.spec;
        // What ran is the program with its checkpoints, unless it could not begin.
        let Some(formed) = &ran.finished.formed else {
            return Err(experiment.formed(Some(stop)).err().unwrap_or_default());
        };
        let resumption = Resumption::new(formed, &experiment.workload, &ran.finished.outcome, spec.sm.warp_size, stop);
        let resumes = resumption.as_ref().map(|resumption| resumption as &dyn Resumes).map_err(String::as_str);
        let checks: Vec<&dyn Check> = bound.iter().map(|bound| bound as &dyn Check).collect();
        let hardware = Hardware { controllers: spec.controller.channels as usize, rule: *rule, checks: &checks };
        judge(ran, &hardware, resumes)
    }

    fn conditions(&self) -> &[Bound] {
        &self.bound
    }
}

/// The program, resumed on the functional driver and compared as a run is.
pub(super) struct Resumption<'a> {
    program: &'a FormedProgram,
    workload: &'a Resolved,
    functional: FunctionalRun,
    limits: Limits<'a>,
}

impl<'a> Resumption<'a> {
    /// # Errors
    /// Why there is nothing to compare with, or nothing to resume, in words.
    pub(super) fn new(
        program: &'a FormedProgram,
        workload: &'a Resolved,
        outcome: &Outcome,
        warp_size: u32,
        stop: &'a AtomicBool,
    ) -> Result<Resumption<'a>, String> {
        if let Some((what, why)) = program.obstacles().first() {
            return Err(format!("{what}: {why}"));
        }
        let warp_instructions = outcome.warp_instructions() * EXTRA.0 + EXTRA.1;
        let limits = Limits { warp_instructions, warp_size, stop: Some(stop), ..Limits::default() };
        let functional = workload.run_functional(&limits).map_err(|fault| fault.to_string())?;
        Ok(Resumption { program, workload, functional, limits })
    }

    /// Persistent memory as recovery left it, in the ranges that the program has.
    fn durable(&self, image: &PmImage) -> FlatMemory {
        let mut memory = self.program.image();
        memory.retain(|start| Medium::of(start) == Medium::Nvm);
        for (start, bytes) in memory.ranges_mut() {
            if let Ok(survived) = image.read(start, bytes.len()) {
                sparse::overwrite(bytes, survived);
            }
        }
        memory
    }

    fn compare(&self, memory: &FlatMemory, bindings: &Bindings) -> Result<(), String> {
        let evidence = Evidence { functional: Some(&self.functional), ..Evidence::default() };
        let wrong = failures(&self.workload.verify(memory, bindings, evidence));
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
    }
}

impl Resumes for Resumption<'_> {
    fn finish(&self, recovered: &PmImage) -> Result<(), String> {
        let resumed = self.program.resume(&self.durable(recovered), &self.limits).map_err(|fault| fault.to_string())?;
        self.compare(&resumed.memory, &resumed.bindings)
    }

    fn finish_twice(&self, recovered: &PmImage, regions: u64) -> Result<(), TwiceResumed> {
        let resumed = self.program.advance(&self.durable(recovered), &self.limits, Some(regions));
        let resumed = resumed.map_err(|fault| TwiceResumed::Before(fault.to_string()))?;
        if resumed.finished {
            return Ok(());
        }
        self.finish(&initial_image(&resumed.memory)).map_err(TwiceResumed::After)
    }
}

/// Levels B and C do not apply.
///
/// # Errors
/// One of their states is asked for.
pub(super) fn refuse(request: &CrashRequest) -> Result<(), Diagnostics> {
    if request.only_allowed.is_some() || request.only_overtaking.is_some() {
        let message = "levels B and C do not apply to a scheme of recoverable regions";
        return Err(Diagnostic::nowhere("--only", message).with_help("`--only A:POINT`").into());
    }
    Ok(())
}

/// Judges a run. `resumes` runs the program on; without it, resuming is not judged, for a reason.
pub(super) fn judge(
    ran: &JournaledRun<'_>,
    hardware: &Hardware<'_>,
    resumes: Result<&dyn Resumes, &str>,
) -> Result<CrashReport, Diagnostics> {
    let (Hardware { controllers, rule, checks }, request) = (hardware, ran.request);
    // The hardware commits regions whole, whatever the fences are: no guarantee enters the order.
    let facts = RegionFacts::new(ran.order, ran.initial, *controllers, rule.of_ctas)
        .map_err(outside)?
        .committed_by(rule.commit);
    let history = judge_regions(&facts, ran.finished.outcome.end == End::Finished, request.keep);
    let asked = JudgeOptions { plan: request.plan, double: request.double, seed: request.seed, keep: request.keep };
    let (actual, cut_off, firsts) = ran.watching.during(Phase::Actual, |watch| {
        let (mut actual, cut_off, firsts) = judge_recovery(&facts, &asked, &AsPublished, watch)
            .map_err(|beyond| Diagnostic::nowhere("--only", beyond.to_string()))?;
        judge_checks(&facts, &firsts, &asked, &AsPublished, checks, watch, &mut actual);
        Ok::<_, Diagnostic>((actual, cut_off, firsts))
    })?;
    // Resuming runs the program on from each point, so that only as many points as asked for are tried.
    let resumed = resumes.ok().filter(|_| request.resume > 0).map(|resumes| {
        ran.watching.during(Phase::Resume, |watch| {
            judge_resume(&facts, &firsts, request.resume, &asked, &AsPublished, resumes, watch)
        })
    });
    let levels = [
        (JudgedLevel::History, Promise::RegionOrder, Some(history)),
        (JudgedLevel::Actual, Promise::WholeRegions, Some(actual)),
        (JudgedLevel::CutOff, Promise::RecoveryAgain, cut_off),
        (JudgedLevel::Resumed, Promise::Resumes, resumed),
    ];
    let judged = |(level, promise, verdict)| Some(Judgement::new(level, &[promise], verdict?));
    let judgements = levels.into_iter().filter_map(judged).collect();
    // Why resuming was not judged is told, so that the report claims no more than it shows.
    let not_resumed = resumes.err().map(|why| Promise::NotResumed(why.to_owned()));
    Ok(CrashReport {
        recovery: "hardware, to the latest region that all controllers have".to_owned(),
        promises: [Promise::NoStatesOfRegions].into_iter().chain(not_resumed).collect(),
        changes: facts.changes(),
        regions: Some(facts.regions()),
        levels: Levels { judgements, channels: None },
        ..ran.report()
    })
}
