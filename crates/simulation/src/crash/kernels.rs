//! Power fails under kernels: they recover by kernels of their own, by an undo log, or not at all.
//!
//! What is judged follows from what the scheme promises, the program's own undo log, and the conditions of
//! its manifest. Where nothing is promised, every state is allowed, and that is said. Invariant: a promise is
//! listed only where the scheme makes it and the request asks about it.

use std::sync::atomic::AtomicBool;

use crate::run::Experiment;
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_kernel::functional::Limits;
use durawarp_oracle::Regions;
use durawarp_oracle::allowed::{Allowed, Budget};
use durawarp_oracle::cuts::Cuts;
use durawarp_oracle::history::{judge_claim, judge_history};
use durawarp_oracle::judge::{Check, Recovery, Rules};
use durawarp_oracle::order::{Model, RunOrder};
use durawarp_oracle::undo::{Expected, UndoRule};
use durawarp_persist::promises::Fences;
use durawarp_persist::vocab::NonTemporalOrder;
use durawarp_persist::{Fact, FactKind, PmImage, Promises, Scheme};
use durawarp_workload::{Resolved, Role, Space};

use super::conditions::Bound;
use super::driver::Crashed;
use super::promise::Promise;
use super::ran::JournaledRun;
use super::report::{CrashReport, Levels};
use super::request::{Basis, CrashRequest};
use super::states::{AllowedStates, StateRules, judge_states};
use super::subject::{Site, Subject};

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

/// Kernels that recover by kernels of their own, by an undo log, or not at all.
pub(super) struct Kernels<'a> {
    experiment: &'a Experiment,
    undo: Option<UndoRule>,
    /// What its scheme promises: its handlers are not asked.
    promised: Promises,
    bound: Vec<Bound>,
}

impl<'a> Kernels<'a> {
    /// # Errors
    /// An undo log that cannot be laid out.
    pub(super) fn new(
        experiment: &'a Experiment,
        request: &CrashRequest,
        stop: &AtomicBool,
    ) -> Result<Self, Diagnostics> {
        let undo = undo_rule(&experiment.workload, experiment.machine.spec.sm.warp_size, request.double, stop)?;
        let promised = experiment.scheme.built.promises();
        Ok(Kernels { experiment, undo, promised, bound: bound(experiment) })
    }

    /// What is known of durable bytes where a persist barrier is what its equations say: what survives, and
    /// nothing that a scheme promises beyond.
    fn definition(&self) -> Model {
        Model { promises: Promises::NONE, ..self.site().model }
    }

    /// What the history is judged by, and what states are.
    fn promises(&self, barriers: bool, request: &CrashRequest) -> [Vec<Promise>; 2] {
        let Promises { strict, cta_end, kernel_end, non_temporal, .. } = self.promised;
        let (undo, kernels) = (self.undo.is_some(), self.experiment.workload.recovery().is_some());
        let history = [
            Some(Promise::Values),
            strict.then_some(Promise::ProgramOrder),
            cta_end.then_some(Promise::CtaEnd),
            kernel_end.then_some(Promise::KernelEnd),
            request.claim.map(Promise::claimed),
            (barriers && request.claim.is_none()).then_some(Promise::Scopes),
            match non_temporal {
                NonTemporalOrder::ByFences => None,
                NonTemporalOrder::Epochs => Some(Promise::WarpEpochs),
                NonTemporalOrder::EpochsInCaches => Some(Promise::CachedEpochs),
                NonTemporalOrder::BeforeCachedOfCta => Some(Promise::PastCachesOfCta),
                NonTemporalOrder::BeforeCached | NonTemporalOrder::Fifo => Some(Promise::PastCaches),
            },
            Some(Promise::Fences),
        ];
        let states = [
            undo.then_some(Promise::Transactions),
            kernels.then_some(Promise::RecoveryEnds),
            ((undo || kernels) && request.double).then_some(Promise::RecoveryAgain),
            (request.by == Basis::Definition).then_some(Promise::Definition),
        ];
        [history.into_iter().flatten().collect(), states.into_iter().flatten().collect()]
    }
}

impl Crashed for Kernels<'_> {
    fn subject(&self) -> Subject<'_> {
        Subject::Kernels(self.experiment)
    }

    fn site(&self) -> Site {
        let site = self.subject().site();
        Site { model: Model { promises: self.promised, ..site.model }, ..site }
    }

    fn judge(&self, ran: &JournaledRun<'_>) -> Result<CrashReport, Diagnostics> {
        let Kernels { experiment, undo, promised, .. } = self;
        let (workload, scheme, request) = (&experiment.workload, &*experiment.scheme.built, ran.request);
        let kernels = workload.recovery();
        let at_boot = kernels.as_ref().map(|kernels| {
            move |image: &mut PmImage| {
                let (base, warp_size) = (image.base(), experiment.machine.spec.sm.warp_size);
                let stop = Some(ran.watching.stop);
                let steps = kernels.run(base, image.bytes_mut(), warp_size, request.double, stop)?;
                Ok(vec![steps])
            }
        });
        let checks: Vec<&dyn Check> = self.bound.iter().map(|bound| bound as &dyn Check).collect();
        let rules = Rules {
            undo: undo.as_ref(),
            recovery: at_boot.as_ref().map(|recovery| recovery as Recovery<'_>),
            double: request.double.then_some(Cuts::TO_THE_SAME_IMAGE),
            checks: &checks,
            launches: 0,
            keep: request.keep,
        };
        // Facts of the run and promises of the scheme decide which judgements mean anything.
        let fact = |kinds: &[FactKind]| ran.journal.facts().iter().any(|fact| kinds.contains(&fact.kind));
        let barriers = ran.journal.facts().iter().any(|fact| matches!(fact.kind, FactKind::PersistReached(_)));
        let fences = barriers || fact(&[FactKind::FencePassed, FactKind::FenceOrdered, FactKind::FenceSettled]);
        let ordered = Promises { fences: Fences::None, ..*promised } != Promises::NONE;
        let stores = fact(&[FactKind::Stored, FactKind::StoredNonTemporal, FactKind::Updated]);
        let conditions = self.bound.iter().any(Bound::is_expected);
        let judges = ordered || fences || undo.is_some() || kernels.is_some();
        let unjudged = nothing_to_judge((scheme, workload), stores, judges, conditions);
        let states = ran.states()?;
        let history = match request.claim {
            Some(claim) => judge_claim(&states, ran.order, claim, request.keep),
            None => judge_history(&states, ran.order, request.keep),
        };
        let regions = undo.as_ref().map_or_else(|| by_role(workload), |undo| Regions::of(undo.log()));
        let budget = Budget { seed: request.seed, ..request.allowed.unwrap_or_default() };
        let allowed = AllowedStates::ByFences(Allowed::new(ran.order, ran.initial, regions.clone(), budget));
        // Without a promise every state is allowed, and level B finds nothing in millions of them.
        let promises = unjudged.is_none();
        let definition = request.by == Basis::Definition;
        if definition && !barriers {
            let name = scheme.name();
            let what = format!("the program has no persist barrier, or scheme {name} makes nothing of them");
            return Err(Diagnostic::nowhere("--by", what).with_help("a scheme of scoped barriers, as nvw-fifo").into());
        }
        // What a barrier or a fence let pass is no evidence then.
        let passes = |fact: &Fact| {
            use FactKind::{FenceOrdered, FencePassed, FenceSettled, PersistPassed};
            matches!(fact.kind, PersistPassed(_) | FencePassed | FenceOrdered | FenceSettled)
        };
        let defined = definition.then(|| ran.journal.parted(passes));
        let defined = defined.as_ref().map(|[_, others]| RunOrder::new(others, ran.initial, self.definition()));
        let overtaking = Some(defined.as_ref().unwrap_or(ran.order));
        let by = StateRules { rules, cuts_allowed: true, regions, intervals: !definition, overtaking, promises };
        let levels = judge_states(ran, &states, &allowed, &by)?;
        let [of_history, of_states] = self.promises(barriers, request);
        Ok(CrashReport {
            recovery: match (&kernels, undo) {
                (Some(_), _) => "the program's own kernels",
                (None, Some(_)) => "undo log",
                (None, None) => "none",
            }
            .to_owned(),
            unjudged,
            transactions: undo.as_ref().map_or(0, |undo| undo.log().transactions.len() as u64),
            changes: states.changes(),
            levels: Levels::by_states((&of_history, history), &of_states, levels),
            ..ran.report()
        })
    }

    fn conditions(&self) -> &[Bound] {
        &self.bound
    }
}

/// Why there is nothing to judge, where that is so: beyond that bytes are bytes that were stored, a test has
/// to judge by an order, fences or a recovery, or by conditions of which the manifest expects something.
fn nothing_to_judge(
    (scheme, workload): (&dyn Scheme, &Resolved),
    stores: bool,
    judges: bool,
    conditions: bool,
) -> Option<String> {
    if stores && (judges || conditions) {
        return None;
    }
    if !stores && !conditions {
        return Some("the program stored nothing to persistent memory".to_owned());
    }
    let name = scheme.name();
    let keeps = match (scheme.logs(), workload.settings()) {
        (false, _) => format!("scheme {name} keeps no logs and orders nothing"),
        (true, None) => {
            format!("scheme {name} keeps undo logs, but the workload has no [instrument] that says of what")
        }
        (true, Some(_)) => format!("scheme {name} keeps undo logs, but this program has none"),
    };
    Some(format!("{keeps}, the program executed no fence, and no [[crash]] condition is expected to hold or not"))
}

/// The manifest's conditions under the run's scheme and domain.
pub(super) fn bound(experiment: &Experiment) -> Vec<Bound> {
    let (scheme, domain) = (experiment.scheme.built.name(), experiment.machine.spec.persist.domain);
    experiment.workload.conditions().map(|condition| Bound::new(condition, scheme, domain)).collect()
}
