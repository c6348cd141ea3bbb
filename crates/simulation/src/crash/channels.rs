//! Crash tests of what clients, or harts of other servers, posted over the network: the verbs of each channel
//! (P6), beside the server's own program.
//!
//! Clients do not fail: one whose server comes back writes again what was not acknowledged. That is judged in
//! memory, not run.

use durawarp_oracle::allowed::Budget;
use durawarp_oracle::verbs::{VerbOrder, VerbStates, judge_states};
use durawarp_oracle::verdict::Persist;
use durawarp_persist::Journal;

use super::found::Placed;
use super::promise::Promise;
use super::ran::JournaledRun;
use super::report::{Channels, JudgedLevel, Judgement, Levels};
use super::request::Phase;
use super::subject::{Site, own_load};
use crate::run::CpuExperiment;
use durawarp_riscv::process::Process;

/// Judges the facts of clients and of their memory, beside what was judged of the server.
pub(super) fn judge(journal: &Journal, ran: &JournaledRun<'_>, levels: &mut Levels) {
    let (order, request) = (VerbOrder::new(journal, ran.site.domain), ran.request);
    let judgement = |level, verdict| Judgement::new(level, &[Promise::Verbs], verdict);
    levels.judgements.push(judgement(JudgedLevel::Verbs, order.judge_history(request.keep)));
    if let Some(budget) = request.allowed.filter(|_| !request.is_of_one_state()) {
        let states = VerbStates::new(&order, Budget { seed: request.seed, ..budget });
        let verdict = ran.watching.during(Phase::Allowed, |watch| judge_states(&states, request.keep, watch));
        levels.judgements.push(judgement(JudgedLevel::AllowedVerbs, verdict));
    }
    let (channels, verbs, acknowledgements) = (order.channels(), order.verbs(), order.acknowledgements());
    levels.channels = Some(Channels { channels, verbs, acknowledgements });
}

/// A line that a verb wrote.
pub(super) fn place(persist: &Persist) -> Placed {
    Placed { channel: Some(persist.warp), ..Placed::nowhere(persist) }
}

/// A site with the memory that others post to, where there are such.
pub(super) fn site(experiment: &CpuExperiment, process: &Process, site: Site) -> Site {
    let spec = &experiment.machine.spec;
    let posts = spec.nodes.clients > 0 || spec.nodes.peers() > 0;
    let remote = own_load(experiment, process, None).remote();
    Site { posted: posts.then(|| remote..remote + spec.remote_bytes()), ..site }
}
