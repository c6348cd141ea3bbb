//! The way from an experiment to its report, one for all that power failures are judged of.
//!
//! ```text
//!  Crashed ─ run ─> journals ─┬─ initial image ── states, recovery, conditions (judge) ─> verdicts by level
//!                             └─ verbs of clients ──────────────────────────────────────> verdicts by level
//!                                 failures in the terms of the program (tell, place) ───> CrashReport
//! ```
//! What differs between kernels, programs of CPUs and what recovers them is [`Crashed`]. Servers have nothing
//! in common: each has a journal, and is judged as one alone would be. Their numbers are added up, and
//! failures are told with their server, those of the first one first.
//!
//! Invariants: what cannot be judged is refused before anything is simulated; one run gives every state.

use std::time::Instant;

use super::channels;
use super::conditions::Bound;
use super::found::{Found, Placed};
use super::image::covering;
use super::ran::JournaledRun;
use super::report::{CrashReport, JudgedLevel, Judgement};
use super::request::{CrashRequest, Watching};
use super::subject::{Site, Subject};
use crate::run::{Conduct, Finished};
use durawarp_base::diagnostic::Diagnostics;
use durawarp_oracle::order::RunOrder;
use durawarp_oracle::verbs::is_of_clients;
use durawarp_oracle::verdict::{Failure, Persist};
use durawarp_persist::Journal;

/// Somebody whose power fails, and what recovers.
pub(super) trait Crashed {
    /// The program and its machine.
    fn subject(&self) -> Subject<'_>;

    /// The machine, with what its scheme promises and who posts at it.
    fn site(&self) -> Site {
        self.subject().site()
    }

    /// Judges what a server left: points, their images, recovery of these, and conditions on both. The
    /// promises that it lists are sentences on what is not judged.
    ///
    /// # Errors
    /// A state is asked for that does not exist.
    fn judge(&self, ran: &JournaledRun<'_>) -> Result<CrashReport, Diagnostics>;

    /// The manifest's conditions, in the order in which verdicts count them.
    fn conditions(&self) -> &[Bound] {
        &[]
    }

    /// What more can be told of a failure.
    fn tell(&self, _: &JournaledRun<'_>, failure: &Failure) -> Failure {
        self.subject().tell(failure)
    }

    /// A persist in the terms of the program.
    fn place(&self, finished: &Finished, persist: &Persist) -> Placed {
        self.subject().place(finished, persist)
    }
}

/// Runs once and judges what power failures leave.
///
/// # Errors
/// What `crashed` refuses, and those of [`Crashed`].
#[expect(clippy::disallowed_methods, reason = "the wall time of a test is part of its report, not of its model")]
pub(super) fn judge_failures<'a>(
    crashed: impl FnOnce() -> Result<Box<dyn Crashed + 'a>, Diagnostics>,
    request: &CrashRequest,
    watching: &Watching<'_>,
) -> Result<CrashReport, Diagnostics> {
    let began = Instant::now();
    let crashed = crashed()?;
    let (site, subject) = (crashed.site(), crashed.subject());
    let finished = subject.run(&Conduct { journal: true, ..watching.conduct.clone() });
    let simulated = began.elapsed();
    let initial = covering(&subject.image(&finished), &finished);
    let several = !finished.other_journals.is_empty();
    let mut servers = Vec::new();
    for (journal, server) in finished.journal.iter().chain(&finished.other_journals).zip(0..) {
        // What others post is no memory of the server's own program.
        let parts = site.posted.as_ref().map(|posted| journal.parted(|fact| is_of_clients(fact, posted)));
        let (posted, journal) = parts.as_ref().map_or((None, journal), |[posted, own]| (Some(posted), own));
        let journal = &*journal.held_to(&site.model.promises);
        let order = &RunOrder::new(journal, &initial, site.model);
        let ran =
            JournaledRun { finished: &finished, journal, initial: &initial, order, site: &site, request, watching };
        servers.push(judge_server(&*crashed, &ran, posted, several.then_some(server))?);
    }
    let all = servers.into_iter().reduce(|one, other| one.with(other, request.keep));
    let Some(mut report) = all else { unreachable!("no machine is without a server, and a journal was asked for") };
    let judged_by = report.levels.judgements.iter().flat_map(|judgement| &judgement.promises);
    report.promises.extend(judged_by.cloned());
    report.promises.sort_unstable();
    report.promises.dedup();
    report.wall_s = [simulated.as_secs_f64(), (began.elapsed() - simulated).as_secs_f64()];
    Ok(report)
}

/// Judges a server by itself; one of several is named.
fn judge_server(
    crashed: &dyn Crashed,
    ran: &JournaledRun<'_>,
    posted: Option<&Journal>,
    server: Option<u32>,
) -> Result<CrashReport, Diagnostics> {
    let mut report = crashed.judge(ran)?;
    if let Some(posted) = posted {
        channels::judge(posted, ran, &mut report.levels);
    }
    let ticks_a_cycle = ran.site.ticks_a_cycle;
    let place = |persist: &Persist| crashed.place(ran.finished, persist);
    let found = |failure: &Failure| Found::new(crashed.tell(ran, failure), ticks_a_cycle, &place);
    for Judgement { level, verdict, found: all, .. } in &mut report.levels.judgements {
        let found = |failure: &Failure| match level {
            JudgedLevel::Verbs | JudgedLevel::AllowedVerbs => {
                Found::new(failure.clone(), ticks_a_cycle, &channels::place)
            }
            _ => found(failure),
        };
        *all = verdict.failures.iter().map(|failure| Found { server, ..found(failure) }).collect();
    }
    let states = [JudgedLevel::Actual, JudgedLevel::Allowed, JudgedLevel::Overtaking].map(|level| report.level(level));
    // A condition that must be violated is found wanting only by judgements of all that may be judged, which
    // came to their ends.
    let whole = !ran.request.is_of_one_state() && (report.regions.is_some() || ran.request.allowed.is_some());
    let complete = whole && !states.iter().flatten().any(|judgement| judgement.verdict.stopped);
    let conditions = crashed.conditions().iter().enumerate().map(|(number, bound)| {
        bound.report(states.map(|judgement| judgement?.verdict.conditions.get(number)), complete, &found)
    });
    report.conditions = conditions.collect();
    Ok(report)
}
