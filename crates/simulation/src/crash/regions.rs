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
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_kernel::functional::Limits;
use durawarp_kernel::memory::{FlatMemory, Medium};
use durawarp_oracle::judge::{Check, Watch};
use durawarp_oracle::order::{Model, RunOrder};
use durawarp_oracle::regions::{
    AsPublished, JudgeOptions, RegionFacts, Resumes, TwiceResumed, judge_checks, judge_recovery, judge_regions,
    judge_resume,
};
use durawarp_oracle::verdict::Verdict;
use durawarp_persist::promises::Promises;
use durawarp_persist::vocab::{Domain, RegionRule};
use durawarp_persist::{FactKind, Journal, PmImage};

use crate::run::failures;
use durawarp_workload::{Bindings, Evidence, FormedProgram, FunctionalRun, Resolved};

use super::image::{LINE_BYTES, initial_image};
use super::report::{CrashReport, Judgement};
use super::request::{CrashRequest, Phase, Watching};

/// How many times as many instructions as the run had a resumed program may take, and how many more.
const EXTRA: (u64, u64) = (4, 1 << 20);

/// The machine and the run that was made on it.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) journal: &'a Journal,
    pub(super) outcome: &'a Outcome,
    pub(super) controllers: usize,
    /// Of the scheme.
    pub(super) rule: RegionRule,
    pub(super) host: u16,
    /// The manifest's conditions.
    pub(super) checks: &'a [&'a dyn Check],
    /// What is compared of the program that goes on, to stand among the promises.
    pub(super) compared: Option<&'a str>,
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
                bytes.copy_from_slice(survived);
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

/// What was judged.
pub(super) struct Verdicts {
    pub(super) history: Verdict,
    pub(super) actual: Verdict,
    pub(super) double: Option<Verdict>,
    pub(super) resume: Option<Verdict>,
    pub(super) changes: u64,
    pub(super) regions: u64,
    pub(super) promises: Vec<String>,
}

impl Verdicts {
    /// The report on them, with findings put into the terms of the program. Conditions are the caller's.
    pub(super) fn report(
        self,
        run: &Outcome,
        initial: &PmImage,
        (domain, seed): (Domain, u64),
        wall_s: [f64; 2],
        judgement: impl Fn(Verdict) -> Judgement,
    ) -> CrashReport {
        CrashReport {
            domain,
            recovery: "hardware, to the latest region that all controllers have".to_owned(),
            promises: self.promises,
            unjudged: None,
            transactions: 0,
            image_bytes: initial.bytes().len() as u64,
            changes: self.changes,
            regions: Some(self.regions),
            seed,
            history: judgement(self.history),
            actual: Some(judgement(self.actual)),
            // Levels B and C do not apply.
            allowed: None,
            overtaking: None,
            double: self.double.map(&judgement),
            resume: self.resume.map(&judgement),
            channels: None,
            output: None,
            conditions: Vec::new(),
            wall_s,
            outcome: run.clone(),
        }
    }
}

/// An image of all that regions stored to; what is behind `image` is 0.
pub(super) fn covering(image: PmImage, journal: &Journal) -> PmImage {
    let stored = journal.facts().iter().filter(|fact| matches!(fact.kind, FactKind::Region(_)) && fact.mask != 0);
    let end = stored.map(|fact| fact.line + LINE_BYTES as u64).max().unwrap_or_default();
    let bytes = end.saturating_sub(image.base()).max(image.bytes().len() as u64) as usize;
    let mut all = image.bytes().to_vec();
    all.resize(bytes.next_multiple_of(LINE_BYTES), 0);
    PmImage::new(image.base(), all)
}

/// Judges a run. `resumes` runs the program on; without it, resuming is not judged, for a reason.
pub(super) fn judge(
    run: Run<'_>,
    initial: &PmImage,
    resumes: Result<&dyn Resumes, &str>,
    request: &CrashRequest,
    watching: &Watching<'_>,
) -> Result<Verdicts, Diagnostics> {
    let Run { journal, outcome, controllers, rule, host, checks, compared } = run;
    if request.only_allowed.is_some() || request.only_overtaking.is_some() {
        let message = "levels B and C do not apply to a scheme of recoverable regions";
        return Err(Diagnostic::nowhere("--only", message).with_help("`--only A:POINT`").into());
    }
    // No guarantee enters the order: the hardware commits regions whole, whatever the fences are.
    let order = RunOrder::new(journal, initial, Model { domain: Domain::Adr, promises: Promises::NONE, host });
    let facts = RegionFacts::new(&order, initial, controllers, host, rule.of_ctas)
        .map_err(|outside| Diagnostic::nowhere("journal", format!("a write outside persistent memory: {outside}")))?
        .committed_by(rule.commit);
    let history = judge_regions(&facts, outcome.end == End::Finished, request.keep);
    let asked = JudgeOptions { plan: request.plan, double: request.double, seed: request.seed, keep: request.keep };
    let show = |phase: Phase| move |done: u64, total: u64| (watching.progress)(phase, done, total);
    let (of_actual, of_resume) = (show(Phase::Actual), show(Phase::Resume));
    let (mut actual, double, firsts) =
        judge_recovery(&facts, &asked, &AsPublished, &Watch { stop: watching.stop, progress: &of_actual })
            .map_err(|beyond| Diagnostic::nowhere("--only", beyond.to_string()))?;
    let watch = Watch { stop: watching.stop, progress: &of_actual };
    judge_checks(&facts, &firsts, &asked, &AsPublished, checks, &watch, &mut actual);
    // Resuming runs the program on from each point, so that only as many points as asked for are tried.
    let resume = resumes.ok().filter(|_| request.resume > 0).map(|resumes| {
        let watch = Watch { stop: watching.stop, progress: &of_resume };
        judge_resume(&facts, &firsts, request.resume, &asked, &AsPublished, resumes, &watch)
    });
    let mut promises: Vec<&str> = vec![
        "after recovery, memory has the stores of exactly the regions before one, the same at all controllers (P4)",
        "regions commit in an order that program order, barriers, launches and coherence allow (P4)",
    ];
    if resume.is_some() {
        promises.push("resumed from there, twice too, the program comes to its result (P4)");
        promises.extend(compared);
    }
    promises.extend(request.double.then_some("recovery cut off anywhere can start again (P8)"));
    promises.push(
        "levels B and C do not apply: the hardware commits whole regions in one order, fences leave nothing open",
    );
    // Why resuming was not judged stands among the promises, so that the report claims no more than it shows.
    let mut promises: Vec<String> = promises.into_iter().map(str::to_owned).collect();
    promises.extend(resumes.err().map(|why| format!("resuming is not judged: {why}")));
    Ok(Verdicts { history, actual, double, resume, changes: facts.changes(), regions: facts.regions(), promises })
}
