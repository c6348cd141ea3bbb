//! Levels A, B and C of programs that recover by themselves, or by their undo logs: kernels, and programs of
//! CPUs. Which of them are judged follows from the request.
//!
//! Invariant: a state that is named by its number is judged alone.

use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_oracle::Regions;
use durawarp_oracle::allowed::Allowed;
use durawarp_oracle::crash::CrashStates;
use durawarp_oracle::epochs::EpochStates;
use durawarp_oracle::judge::{
    Rules, Watch, judge_actual, judge_allowed, judge_choice, judge_epoch_choice, judge_epochs, judge_overtaking,
    judge_store,
};
use durawarp_oracle::order::RunOrder;
use durawarp_oracle::overtaking::Overtaking;
use durawarp_oracle::verdict::Verdict;
use durawarp_persist::PmImage;

use super::ran::JournaledRun;
use super::report::JudgedLevel;
use super::request::{CrashRequest, Phase};

/// The states that a scheme's promise allows.
pub(super) enum AllowedStates<'a> {
    /// Fences wait: any line may have been written back before.
    ByFences(Allowed<'a>),
    /// Hardware orders epochs.
    ByEpochs(EpochStates<'a>, &'a RunOrder<'a>),
}

impl AllowedStates<'_> {
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

    /// The last instant, and how many states this one has.
    fn count(&self, facts: usize, instant: usize) -> (usize, Option<u64>) {
        match self {
            AllowedStates::ByFences(allowed) => (facts, allowed.count(instant)),
            AllowedStates::ByEpochs(states, _) => {
                let last = states.persists();
                (last, (instant <= last).then(|| states.choices()))
            }
        }
    }

    /// The image of a state, and how many of the `facts` were there by then.
    pub(super) fn image(&self, instant: usize, choice: u64, facts: usize) -> Option<(PmImage, usize)> {
        match self {
            AllowedStates::ByFences(allowed) => Some((allowed.image(instant, choice)?, instant)),
            AllowedStates::ByEpochs(states, _) => Some((states.image(instant, choice), facts)),
        }
    }
}

/// What states are judged by.
pub(super) struct StateRules<'a> {
    pub(super) rules: Rules<'a>,
    /// Recovery is cut off at level B, too.
    pub(super) cuts_allowed: bool,
    /// What parts of memory are for.
    pub(super) regions: Regions,
    /// Level B is judged: an order of lines one by one says all that the promises do.
    pub(super) intervals: bool,
    /// The order in which warps may run ahead of each other, if they may.
    pub(super) overtaking: Option<&'a RunOrder<'a>>,
    /// Levels B and C have something to judge.
    pub(super) promises: bool,
}

/// Judges levels A, B and C as far as asked for.
///
/// # Errors
/// There is no such state as is asked for.
pub(super) fn judge_states(
    ran: &JournaledRun<'_>,
    states: &CrashStates<'_>,
    allowed: &AllowedStates<'_>,
    by: &StateRules<'_>,
) -> Result<Vec<(JudgedLevel, Verdict)>, Diagnostics> {
    let CrashRequest { plan, seed, only_allowed, only_overtaking, .. } = *ran.request;
    let rules = &by.rules;
    let fault = |what: String| Diagnostic::nowhere("--only", what);
    let overtaking = || by.overtaking.map(|order| Overtaking::new(order, ran.initial));
    if let Some((instant, choice)) = only_allowed {
        let (last, count) = allowed.count(ran.journal.facts().len(), instant as usize);
        let Some(count) = count else {
            return Err(fault(format!("there is no instant {instant}: they are 0 to {last}")).into());
        };
        let verdict = allowed.judge_one(rules, instant as usize, choice).ok_or_else(|| {
            fault(format!("there is no state {choice} at instant {instant}: it has {count}, numbered from 0"))
        })?;
        return Ok(vec![(JudgedLevel::Allowed, verdict)]);
    }
    // A store is named by its place in the journal that the order of level C reads.
    if let Some(store) = only_overtaking {
        let nothing = || fault(format!("fact {store} is not a store of a warp"));
        let judged = overtaking().and_then(|states| judge_store(&states, rules, store as usize));
        let verdict = judged.ok_or_else(nothing)?;
        return Ok(vec![(JudgedLevel::Overtaking, verdict)]);
    }
    let watching = ran.watching;
    let actual =
        watching.during(Phase::Actual, |watch| judge_actual(states, ran.order, rules, &by.regions, plan, seed, watch));
    let mut levels = vec![(JudgedLevel::Actual, actual.map_err(|beyond| fault(beyond.to_string()))?)];
    // With one actual state named, the levels of the whole run are left out as well.
    if ran.request.allowed.is_some() && by.promises && !ran.request.is_of_one_state() {
        if by.intervals {
            let once = Rules { double: rules.double.filter(|_| by.cuts_allowed), ..*rules };
            let verdict = watching.during(Phase::Allowed, |watch| allowed.judge(&once, watch));
            levels.push((JudgedLevel::Allowed, verdict));
        }
        if let Some(states) = overtaking() {
            let judge = |watch: &Watch<'_>| judge_overtaking(&states, rules, ran.request.overtaking, seed, watch);
            levels.push((JudgedLevel::Overtaking, watching.during(Phase::Overtaking, judge)));
        }
    }
    Ok(levels)
}
