//! Power fails at any instant: one run with journals, then every state that a failure can leave is recovered
//! and judged.
//!
//! ```text
//!  experiment ─ run (journals on) ─┬─ crash states ─ recovery ─┐
//!                                  └─ allowed states ──────────┴─ oracle ─> CrashReport
//! ```
//! Four judgements: the *history* (acknowledgements, order, values: what no single image shows), *level A*
//! (the states that this run really left, one for each change of what is durable), *level B* (states that the
//! persistency model allows although this run's timing did not leave them) and *level C* (states in which a
//! warp has run ahead of the others of its CTA as far as barriers let it). The scheme declares what it
//! promises ([`Promises`]), and its handlers are not asked; the program adds its undo log, and the conditions
//! of its manifest ([`conditions`]). Recovery is the program's own kernels where it has some, else that of
//! the undo log. Where hardware commits recoverable regions, it recovers by itself, and the program is
//! resumed (`regions`).
//!
//! Invariants: as of the report ([`CrashReport`]). DRAM is lost: recovery kernels find its initial contents
//! there. Not modelled: time that recovery takes.

mod channels;
pub mod conditions;
mod cores;
mod durable_steps;
mod found;
mod gone_on;
mod image;
mod output;
mod regions;
mod regions_of_cores;
mod report;
mod request;
mod saved;
mod servers;
mod visible;

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::outcome::Outcome;
use crate::run::{Conduct, Experiment, run};
use conditions::Bound;
pub use cores::{CPU_BUDGET, crash_cpu};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_kernel::functional::Limits;
use durawarp_machine::ports::Requester;
use durawarp_oracle::Regions;
use durawarp_oracle::allowed::{Allowed, Budget};
use durawarp_oracle::crash::{CrashStates, Plan};
use durawarp_oracle::cuts::Cuts;
use durawarp_oracle::history::{judge_claim, judge_history};
use durawarp_oracle::judge::{
    Check, Recovery, Rules, Watch, judge_actual, judge_allowed, judge_choice, judge_overtaking, judge_store,
};
use durawarp_oracle::order::{Model, RunOrder};
use durawarp_oracle::overtaking::Overtaking;
use durawarp_oracle::regions::Resumes;
use durawarp_oracle::undo::{Expected, UndoRule};
use durawarp_oracle::verdict::{Failure, Persist, Verdict, WrongBytes};
use durawarp_persist::promises::Fences;
use durawarp_persist::vocab::NonTemporalOrder;
use durawarp_persist::{FactKind, Journal, PmImage, Promises, Scheme};
use durawarp_schemes::catalogue;
use durawarp_workload::{FormedProgram, Resolved, Role, Space};
pub use found::{Found, Placed};
use image::initial_image;
pub use output::OutputCounts;
pub use regions_of_cores::journal_of_cores;
pub use report::{Channels, CrashReport, Judgement};
pub use request::{CrashRequest, Phase, Watching};

/// Puts findings into the terms of the program.
struct Places<'a> {
    workload: &'a Resolved,
    /// What ran in its place, under a scheme of recoverable regions.
    formed: Option<&'a FormedProgram>,
    outcome: &'a Outcome,
    ticks_a_cycle: u64,
}

impl Places<'_> {
    fn place(&self, persist: &Persist, of_warp: bool) -> Placed {
        let kernel = self.outcome.launches.get(persist.launch as usize).filter(|_| of_warp);
        let kernel = kernel.map(|launch| launch.kernel.clone());
        let source = kernel.as_deref().and_then(|kernel| match self.formed {
            Some(formed) => formed.source_of(kernel, persist.pc),
            None => self.workload.source_of(kernel, persist.pc),
        });
        let addresses = self.formed.map_or(self.workload.addresses(), FormedProgram::addresses);
        let range = addresses.containing(persist.address, persist.address);
        let buffer = range.map(|range| range.part(persist.address));
        Placed { persist: persist.clone(), kernel, function: None, channel: None, source, buffer }
    }

    fn judgement(&self, verdict: Verdict, host: u16) -> Judgement {
        let place = |persist: &Persist| self.place(persist, persist.sm != host);
        let found = |failure: &Failure| {
            let witness = failure.witness.as_ref();
            Found {
                missing: witness.and_then(|witness| witness.missing.as_ref()).map(place),
                present: witness.and_then(|witness| witness.present.as_ref()).map(place),
                ..self.found(failure)
            }
        };
        Judgement { found: verdict.failures.iter().map(found).collect(), verdict }
    }

    /// A failure without witnesses. Bytes that are wrong are named as elements of the program where they are
    /// some.
    fn found(&self, failure: &Failure) -> Found {
        let core_cycle = failure.time / self.ticks_a_cycle;
        let mut failure = failure.clone();
        for value in failure.values.iter_mut().filter(|value| value.element.is_none()) {
            let Some(WrongBytes { address, found, expected: Some(expected) }) = &value.bytes else { continue };
            let named = self.workload.wrong_element(*address, found, expected);
            value.element = named.and_then(|named| conditions::wrong_value(named).element);
        }
        Found { missing: None, present: None, core_cycle, server: None, failure }
    }
}

/// What buffers are for, by their roles, where conditions are all that says what is consistent.
fn by_role(workload: &Resolved) -> Regions {
    let mut regions = [Vec::new(), Vec::new(), Vec::new()];
    if workload.conditions().next().is_some() {
        for buffer in workload.describe().buffers.iter().filter(|buffer| buffer.space == Space::Pm) {
            let kind = match buffer.role {
                Role::TxFlag => 0,
                Role::UndoLog => 1,
                _ => 2,
            };
            regions[kind].push(buffer.address..buffer.address + buffer.bytes);
        }
    }
    let [flag, log, data] = regions;
    Regions::new(flag, log, data)
}

/// The undo log of the program, with what its transactions do, from a functional run.
fn undo_rule(
    workload: &Resolved,
    warp_size: u32,
    double: bool,
    stop: &AtomicBool,
) -> Result<Option<UndoRule>, Diagnostics> {
    let Some(log) = workload.undo()? else { return Ok(None) };
    let limits = Limits { warp_size, stop: Some(stop), ..Limits::default() };
    let expected =
        workload.expected(&limits).map_err(|fault| Diagnostic::nowhere("functional run", fault.to_string()))?;
    let expected = expected.into_iter().map(|(old, new)| Expected { old, new }).collect();
    Ok(Some(UndoRule::new((*log).clone(), expected, double)))
}

/// Runs once and judges what power failures leave.
///
/// # Errors
/// A sampled run; a workload without persistent memory; a crash point beyond the end of the run; an undo log
/// that cannot be laid out; a condition that names an unknown scheme.
#[expect(clippy::disallowed_methods, reason = "the wall time of a test is part of its report, not of its model")]
pub fn crash(
    experiment: &Experiment,
    request: &CrashRequest,
    watching: &Watching<'_>,
) -> Result<CrashReport, Diagnostics> {
    let began = Instant::now();
    let (spec, workload, scheme) = (&experiment.machine.spec, &experiment.workload, &*experiment.scheme.built);
    let domain = spec.persist.domain;
    if experiment.sample.is_some() {
        let message = "a sampled run cannot be judged: most of its stores are never simulated";
        return Err(Diagnostic::nowhere("sample", message).with_help("crash tests simulate the whole program").into());
    }
    if experiment.fork.is_some() {
        let message = "a run whose parameters change on the way cannot be judged: what is before is not in its journal";
        return Err(Diagnostic::nowhere("fork_at_cycle", message).into());
    }
    if workload.is_trace() {
        let message = "a trace has no values: what a power failure leaves of it cannot be recovered, nor judged";
        let fault = Diagnostic::nowhere(&workload.describe().workload, message);
        return Err(fault.with_help("`durawarp run` times it; kernels in PTX can be judged").into());
    }
    if !workload.has_persistent_memory() {
        let message = "the workload has no buffer in persistent memory: a power failure leaves nothing to judge";
        let name = workload.describe().workload;
        return Err(Diagnostic::nowhere(&name, message).with_help("`space = \"pm\"` of a buffer").into());
    }
    // Conditions name schemes. A scheme of the caller's own is a valid name, too.
    let known = catalogue::all();
    let mut known: Vec<&str> = known.iter().map(|scheme| scheme.name()).collect();
    known.push(scheme.name());
    workload.check_schemes(&known)?;
    if scheme.regions().is_some() {
        return crash_regions(experiment, request, watching);
    }
    // Before the run: what cannot be judged costs no simulation.
    let undo = undo_rule(workload, spec.sm.warp_size, request.double, watching.stop)?;
    let finished = run(experiment, &Conduct { journal: true, ..watching.conduct.clone() });
    let simulated = began.elapsed();
    let Some(journal) = &finished.journal else { unreachable!("a journal was asked for") };

    let initial = initial_image(&workload.image());
    let host = Requester::command_processor(spec.sm.count as u16).number();
    let promises = scheme.promises();
    let journal = &*journal.held_to(&promises);
    let order = RunOrder::new(journal, &initial, Model { domain, promises, host });
    let states = CrashStates::new(journal, &initial, domain)
        .map_err(|outside| Diagnostic::nowhere("journal", format!("a write outside persistent memory: {outside}")))?;
    let regions = undo.as_ref().map_or_else(|| by_role(workload), |undo| Regions::of(undo.log()));
    let kernels = workload.recovery();
    let at_boot = kernels.as_ref().map(|kernels| {
        move |image: &mut PmImage| {
            let (base, warp_size, stop) = (image.base(), spec.sm.warp_size, Some(watching.stop));
            let steps = kernels.run(base, image.bytes_mut(), warp_size, request.double, stop)?;
            Ok(vec![steps])
        }
    });
    let bound = bound(experiment);
    let checks: Vec<&dyn Check> = bound.iter().map(|bound| bound as &dyn Check).collect();
    let rules = Rules {
        undo: undo.as_ref(),
        recovery: at_boot.as_ref().map(|recovery| recovery as Recovery<'_>),
        double: request.double.then_some(Cuts::TO_THE_SAME_IMAGE),
        checks: &checks,
        launches: 0,
        keep: request.keep,
    };
    let places = Places {
        workload,
        formed: None,
        outcome: &finished.outcome,
        ticks_a_cycle: spec.timebase().map_or(1, |base| base.clock(spec.clock.core_mhz.khz).period_ticks()),
    };
    // Facts of the run and promises of the scheme decide which judgements mean anything.
    let fact = |kinds: &[FactKind]| journal.facts().iter().any(|fact| kinds.contains(&fact.kind));
    let barriers = journal.facts().iter().any(|fact| matches!(fact.kind, FactKind::PersistReached(_)));
    let judges = Judges {
        scheme,
        workload,
        stores: fact(&[FactKind::Stored, FactKind::StoredNonTemporal]),
        order: Promises { fences: Fences::None, ..promises } != Promises::NONE,
        fences: barriers || fact(&[FactKind::FencePassed, FactKind::FenceOrdered, FactKind::FenceSettled]),
        recovery: undo.is_some() || kernels.is_some(),
        conditions: bound.iter().any(Bound::is_expected),
    };
    // Without a promise every state is allowed, and level B finds nothing in millions of them.
    let unjudged = judges.nothing();
    let request = &CrashRequest { allowed: request.allowed.filter(|_| unjudged.is_none()), ..*request };
    let [actual, allowed, overtaking] = judge_states(&states, &order, &rules, regions, &initial, request, watching)?;
    let history = match request.claim {
        Some(claim) => judge_claim(&states, &order, claim, request.keep),
        None => judge_history(&states, &order, request.keep),
    };
    // Only promises that the scheme makes and the request asks about are listed.
    let mut promised = Vec::new();
    let mut promise = |holds: bool, what: &str| promised.extend(holds.then(|| what.to_owned()));
    promise(true, "durable bytes are bytes that were stored, and never go back (P0)");
    promise(promises.strict, "a warp's stores become durable in program order (P1)");
    promise(promises.cta_end, "all stores of a CTA are durable when it ends (P2)");
    promise(promises.kernel_end, "all stores of a kernel are durable when it ends (P2)");
    if let Some(claim) = request.claim {
        promised.push(format!("claimed: every persist barrier orders as pm.barrier.{} would (P2)", claim.name()));
    }
    // A second closure, as the first one's borrow had to end for the line above.
    let mut promise = |holds: bool, what: &str| promised.extend(holds.then(|| what.to_owned()));
    promise(
        barriers && request.claim.is_none(),
        "what a scope stored before a persist barrier is durable before what it stored after (P2)",
    );
    let epochs = promises.non_temporal == NonTemporalOrder::Epochs;
    let in_order = promises.non_temporal != NonTemporalOrder::ByFences && !epochs;
    promise(epochs, "what a warp stored before a fence is durable before what the program orders behind it (P5)");
    let of_cta = promises.non_temporal == NonTemporalOrder::BeforeCachedOfCta;
    promise(
        of_cta,
        "stores past the caches are durable before later ones of their CTA through them are performed (P5)",
    );
    promise(
        in_order && !of_cta,
        "stores past the caches are durable before later ones through them are performed (P5)",
    );
    promise(undo.is_some(), "after recovery, a transaction's data is all old or all new (P3)");
    let recovers = undo.is_some() || kernels.is_some();
    promise(kernels.is_some(), "recovery comes to its end without a fault");
    promise(recovers && request.double, "recovery cut off anywhere can start again (P8)");
    promise(true, "what a fence let pass is durable (P9)");
    let changes = states.changes();
    let verdicts = [actual, allowed, overtaking];
    // A condition that must be violated is found wanting only by judgements that came to their ends.
    let complete = verdicts.iter().all(|verdict| verdict.as_ref().is_some_and(|verdict| !verdict.stopped));
    let found = |failure: &Failure| places.found(failure);
    let conditions = bound.iter().enumerate().map(|(number, bound)| {
        bound.report(verdicts.each_ref().map(|verdict| verdict.as_ref()?.conditions.get(number)), complete, &found)
    });
    let conditions = conditions.collect();
    let [actual, allowed, overtaking] = verdicts;
    let transactions = undo.as_ref().map_or(0, |undo| undo.log().transactions.len() as u64);
    let report = CrashReport {
        domain,
        recovery: match (&kernels, &undo) {
            (Some(_), _) => "the program's own kernels",
            (None, Some(_)) => "undo log",
            (None, None) => "none",
        }
        .to_owned(),
        promises: promised,
        unjudged,
        transactions,
        image_bytes: initial.bytes().len() as u64,
        changes,
        seed: request.seed,
        history: places.judgement(history, host),
        actual: actual.map(|verdict| places.judgement(verdict, host)),
        allowed: allowed.map(|verdict| places.judgement(verdict, host)),
        overtaking: overtaking.map(|verdict| places.judgement(verdict, host)),
        regions: None,
        double: None,
        resume: None,
        channels: None,
        output: None,
        conditions,
        wall_s: [simulated.as_secs_f64(), (began.elapsed() - simulated).as_secs_f64()],
        outcome: finished.outcome.clone(),
    };
    Ok(report)
}

/// What a crash test has to judge by, beyond that bytes are bytes that were stored.
struct Judges<'a> {
    scheme: &'a dyn Scheme,
    workload: &'a Resolved,
    /// The program stores to persistent memory.
    stores: bool,
    /// The scheme promises an order, or durability at a boundary.
    order: bool,
    /// The program executed fences or persist barriers.
    fences: bool,
    /// Somebody recovers: an undo log, or the program's kernels.
    recovery: bool,
    /// The manifest expects something.
    conditions: bool,
}

impl Judges<'_> {
    /// Why there is nothing to judge, where that is so.
    fn nothing(&self) -> Option<String> {
        let scheme = self.scheme.name();
        if self.stores && (self.order || self.fences || self.recovery || self.conditions) {
            return None;
        }
        if !self.stores && !self.conditions {
            return Some("the program stored nothing to persistent memory".to_owned());
        }
        let keeps = match (self.scheme.logs(), self.workload.settings()) {
            (false, _) => format!("scheme {scheme} keeps no logs and orders nothing"),
            (true, None) => {
                format!("scheme {scheme} keeps undo logs, but the workload has no [instrument] that says of what")
            }
            (true, Some(_)) => format!("scheme {scheme} keeps undo logs, but this program has none"),
        };
        Some(format!("{keeps}, the program executed no fence, and no [[crash]] condition is expected to hold or not"))
    }
}

/// The manifest's conditions under the run's scheme and domain.
fn bound(experiment: &Experiment) -> Vec<Bound> {
    let (scheme, domain) = (experiment.scheme.built.name(), experiment.machine.spec.persist.domain);
    experiment.workload.conditions().map(|condition| Bound::new(condition, scheme, domain)).collect()
}

/// The same under a scheme whose hardware recovers.
#[expect(clippy::disallowed_methods, reason = "the wall time of a test is part of its report, not of its model")]
fn crash_regions(
    experiment: &Experiment,
    request: &CrashRequest,
    watching: &Watching<'_>,
) -> Result<CrashReport, Diagnostics> {
    let began = Instant::now();
    let (spec, workload) = (&experiment.machine.spec, &experiment.workload);
    let domain = spec.persist.domain;
    experiment.check()?;
    let finished = run(experiment, &Conduct { journal: true, ..watching.conduct.clone() });
    let simulated = began.elapsed();
    let Some(journal) = &finished.journal else { unreachable!("a journal was asked for") };
    // What ran is the program with its checkpoints: what is found is said in its terms.
    let formed = match finished.formed.clone() {
        Some(formed) => formed,
        // The run could not begin: for this reason.
        None => experiment.formed(Some(watching.stop))?.expect("the scheme has kernels formed"),
    };
    let initial = regions::covering(initial_image(&formed.image()), journal);
    let warp_size = spec.sm.warp_size;
    let resumption = regions::Resumption::new(&formed, workload, &finished.outcome, warp_size, watching.stop);
    let resumes = resumption.as_ref().map(|resumption| resumption as &dyn Resumes).map_err(String::as_str);
    let host = Requester::command_processor(spec.sm.count as u16).number();
    let controllers = spec.controller.channels as usize;
    let rule = experiment.scheme.built.regions().expect("the scheme commits regions");
    let mut bound = bound(experiment);
    // The program's own recovery is not run: what it would make of an image is not known.
    bound.retain(|bound| bound.on_survived() || workload.recovery().is_none());
    let checks: Vec<&dyn Check> = bound.iter().map(|bound| bound as &dyn Check).collect();
    let compared = None;
    let judged =
        regions::Run { journal, outcome: &finished.outcome, controllers, rule, host, checks: &checks, compared };
    let verdicts = regions::judge(judged, &initial, resumes, request, watching)?;
    let places = Places {
        workload,
        formed: Some(&formed),
        outcome: &finished.outcome,
        ticks_a_cycle: spec.timebase().map_or(1, |base| base.clock(spec.clock.core_mhz.khz).period_ticks()),
    };
    let judgement = |verdict: Verdict| places.judgement(verdict, host);
    let complete = !verdicts.actual.stopped && !matches!(request.plan, Plan::Only(_));
    let found = |failure: &Failure| places.found(failure);
    let conditions = bound.iter().zip(&verdicts.actual.conditions);
    let conditions = conditions.map(|(bound, count)| bound.report([Some(count), None, None], complete, &found));
    let conditions = conditions.collect();
    let wall_s = [simulated.as_secs_f64(), (began.elapsed() - simulated).as_secs_f64()];
    let report = verdicts.report(&finished.outcome, &initial, (domain, request.seed), wall_s, judgement);
    Ok(CrashReport { conditions, ..report })
}

/// Levels A and B, as far as asked for.
fn judge_states(
    states: &CrashStates<'_>,
    order: &RunOrder<'_>,
    rules: &Rules<'_>,
    regions: Regions,
    initial: &PmImage,
    request: &CrashRequest,
    watching: &Watching<'_>,
) -> Result<[Option<Verdict>; 3], Diagnostics> {
    let watch = |phase: Phase| move |done: u64, total: u64| (watching.progress)(phase, done, total);
    let budget = request.allowed.unwrap_or_default();
    let allowed = Allowed::new(order, initial, regions.clone(), Budget { seed: request.seed, ..budget });
    let overtaking = || Overtaking::new(order, initial);
    // A state that is named by its number is judged alone: no other level runs.
    if let Some((instant, choice)) = request.only_allowed {
        let count = allowed.count(instant as usize).ok_or_else(|| {
            let last = states.journal().facts().len();
            Diagnostic::nowhere("--only", format!("there is no instant {instant}: they are 0 to {last}"))
        })?;
        let nothing = || {
            let message = format!("there is no state {choice} at instant {instant}: it has {count}, numbered from 0");
            Diagnostic::nowhere("--only", message)
        };
        let verdict = judge_choice(&allowed, rules, instant as usize, choice).ok_or_else(nothing)?;
        return Ok([None, Some(verdict), None]);
    }
    if let Some(store) = request.only_overtaking {
        let nothing = || Diagnostic::nowhere("--only", format!("fact {store} is not a store of a warp"));
        let verdict = judge_store(&overtaking(), rules, store as usize).ok_or_else(nothing)?;
        return Ok([None, None, Some(verdict)]);
    }
    let show = watch(Phase::Actual);
    let actual = judge_actual(
        states,
        order,
        rules,
        &regions,
        request.plan,
        request.seed,
        &Watch { stop: watching.stop, progress: &show },
    )
    .map_err(|beyond| Diagnostic::nowhere("--only", beyond.to_string()))?;
    let show = watch(Phase::Allowed);
    // With one actual state named, the levels of the whole run are left out as well.
    let wanted = request.allowed.is_some() && !matches!(request.plan, Plan::Only(_));
    let verdict = wanted.then(|| judge_allowed(&allowed, rules, &Watch { stop: watching.stop, progress: &show }));
    let show = watch(Phase::Overtaking);
    let watch = Watch { stop: watching.stop, progress: &show };
    let overtaken = wanted.then(|| judge_overtaking(&overtaking(), rules, request.overtaking, request.seed, &watch));
    Ok([Some(actual), verdict, overtaken])
}

/// What happened to persistent memory in a run, and where it began: for tests that judge by themselves.
pub fn journal_of(experiment: &Experiment, conduct: &Conduct<'_>) -> (Journal, PmImage) {
    let finished = run(experiment, &Conduct { journal: true, ..conduct.clone() });
    let image = finished.formed.map_or_else(|| experiment.workload.image(), |formed| formed.image());
    (finished.journal.unwrap_or_default(), initial_image(&image))
}
