//! Crash tests of what clients, or harts of other servers, posted over the network: the verbs of each channel
//! (P6), beside the server's own program.
//!
//! Clients do not fail: one whose server comes back writes again what was not acknowledged. That is judged in
//! memory, not run.

use durawarp_oracle::crash::Plan;
use durawarp_oracle::judge::Watch;
use durawarp_oracle::verbs::{VerbOrder, VerbStates, judge_states};
use durawarp_oracle::verdict::{Failure, Persist, Verdict};
use durawarp_persist::Journal;
use durawarp_persist::vocab::Domain;

use super::found::{Found, Placed};
use super::report::{Channels, Judgement};
use super::request::{CrashRequest, Phase, Watching};

/// What was judged of channels.
pub(super) struct ChannelVerdicts {
    channels: u64,
    verbs: u64,
    acknowledgements: u64,
    history: Verdict,
    allowed: Option<Verdict>,
}

/// Judges the facts of clients and of their memory.
pub(super) fn judge(
    journal: &Journal,
    domain: Domain,
    request: &CrashRequest,
    watching: &Watching<'_>,
) -> ChannelVerdicts {
    let order = VerbOrder::new(journal, domain);
    let one = request.only_allowed.is_some() || matches!(request.plan, Plan::Only(_));
    let budget = request.allowed.filter(|_| !one);
    let allowed = budget.map(|budget| {
        let show = |done, total| (watching.progress)(Phase::Allowed, done, total);
        let watch = Watch { stop: watching.stop, progress: &show };
        let states = VerbStates::new(&order, durawarp_oracle::allowed::Budget { seed: request.seed, ..budget });
        judge_states(&states, request.keep, &watch)
    });
    ChannelVerdicts {
        channels: order.channels(),
        verbs: order.verbs(),
        acknowledgements: order.acknowledgements(),
        history: order.judge_history(request.keep),
        allowed,
    }
}

impl ChannelVerdicts {
    /// The same, with times in core cycles.
    pub(super) fn report(self, ticks_a_cycle: u64) -> Channels {
        let judgement = |verdict: Verdict| {
            let found = verdict.failures.iter().map(|failure| found(failure, ticks_a_cycle)).collect();
            Judgement { verdict, found }
        };
        Channels {
            channels: self.channels,
            verbs: self.verbs,
            acknowledgements: self.acknowledgements,
            history: judgement(self.history),
            allowed: self.allowed.map(judgement),
        }
    }
}

fn found(failure: &Failure, ticks_a_cycle: u64) -> Found {
    let place = |persist: &Persist| Placed {
        channel: Some(persist.warp),
        persist: persist.clone(),
        kernel: None,
        function: None,
        source: None,
        buffer: None,
    };
    let witness = failure.witness.as_ref();
    Found {
        missing: witness.and_then(|witness| witness.missing.as_ref()).map(place),
        present: witness.and_then(|witness| witness.present.as_ref()).map(place),
        core_cycle: failure.time / ticks_a_cycle,
        server: None,
        failure: failure.clone(),
    }
}
