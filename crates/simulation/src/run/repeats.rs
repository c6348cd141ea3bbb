//! Ends a run in which all that runs only repeats itself: a flag that is never set, a lock that is never
//! released.
//!
//! ```text
//!   every `repeat_cycles`: has anything changed a value, called the system, started a CTA?   (counters)
//!        └─ no ─> does each hart, each warp repeat itself as long as memory stays?   (executed alone)
//!                   └─ yes, at two looks in a row ─> it repeats itself for ever: the run ends
//! ```
//! Why that is a proof. At the first look every hart is in a loop that changes nothing unless memory
//! changes. What it has under way is looked at, too: stores in store buffers, results of loads and atomics,
//! stores of warps. Between the looks nothing changed, so that all are in their loops still. Only loops
//! that store the value that is there need the second look: what was under way at the first has arrived
//! since (`repeat_cycles` is longer than a message is under way). Who waits for a time (a sleep, a time
//! limit of a wait, a client) is not stuck, nor is who reads a clock.
//!
//! Two cases are no proof. A hart whose `sc` fails again and again may succeed in the end. A warp that reads
//! old bytes in its L1 gets on when another one of its SM evicts the line. Both count as ones that repeat
//! themselves once nothing has changed for [`LIVELOCK`] times as long.
//!
//! Looks are made at set simulated times ([`Lookout`]), so that what is found does not depend on threads,
//! and a run in which nothing is found is as one without looks. A long run is looked at more rarely.
//! Counters are of the components and no part of their statistics. Not found: loops that change values for
//! ever, loops with system calls, samples of a sampled run.

mod harts;
mod warps;

use std::any::Any;

use super::conduct::Conduct;
use super::end::Clocks;
use crate::assemble::Assembly;
use crate::outcome::{Repeating, Repeats};
use durawarp_engine::{Lookout, RunEnd, RunOptions, Time};
use durawarp_machine::MAX_CORE_CYCLES;
use durawarp_machine::client::Client;
use durawarp_machine::command_processor::CommandProcessor;
use durawarp_machine::core::Core;
use durawarp_machine::l2::L2Slice;
use durawarp_machine::nic::Nic;
use durawarp_machine::os::OperatingSystem;
use durawarp_machine::poster::Poster;

pub(super) use harts::of_harts;
pub(super) use warps::of_warps;

/// How many times `repeat_cycles` nothing must have changed before failed `sc` count as a livelock, and old
/// bytes in an L1 as ones that stay. Chosen: who gets on at all does so within a small part of that.
const LIVELOCK: u64 = 16;

/// What is asked of a machine at a look: who repeats what and who waits beside them; none where somebody may
/// get on. Whether nothing has changed for long is the second argument.
pub(super) type Question<'a> = &'a dyn Fn(&Assembly, bool) -> Option<(Vec<Repeating>, Vec<String>)>;

/// Watches the runs of a machine.
pub(super) struct RepeatWatch<'a> {
    asked: Option<Question<'a>>,
    clocks: Clocks,
    /// In ticks.
    every: Time,
    /// The beginning of the time in which nothing changed and all repeated themselves at the last look.
    before: Option<Time>,
    found: Option<Box<Repeats>>,
}

impl<'a> RepeatWatch<'a> {
    /// None is asked of what cannot be: a trace has no values.
    pub(super) fn new(clocks: Clocks, conduct: &Conduct<'_>, asked: Option<Question<'a>>) -> Self {
        let every = clocks.core.cycles(conduct.repeat_cycles.min(MAX_CORE_CYCLES));
        RepeatWatch { asked: asked.filter(|_| every > 0), clocks, every, before: None, found: None }
    }

    /// What is repeated, where the last run ended for that.
    pub(super) fn found(&mut self) -> Option<Box<Repeats>> {
        self.found.take()
    }

    /// Runs the machine to an end of its own, or until all that runs repeats itself.
    pub(super) fn run(&mut self, machine: &mut Assembly, options: &RunOptions<'_>) -> RunEnd {
        let Some(asked) = self.asked else { return durawarp_machine::run(&mut machine.simulation, options) };
        let next = (machine.simulation.reached() / self.every + 1) * self.every;
        let mut lookout = Lookout { next, every: self.every, found: None, since: 0, activity };
        loop {
            let end = durawarp_machine::run(
                &mut machine.simulation,
                &RunOptions { lookout: Some(lookout), ..options.clone() },
            );
            let RunEnd::Quiet { at, lookout: after } = end else { return end };
            lookout = after;
            let long = at.saturating_sub(lookout.since) >= LIVELOCK * self.every;
            let may_be = machine.ended().is_none() && !machine.awaits_time();
            let Some((repeating, waits)) = may_be.then(|| asked(machine, long)).flatten() else {
                self.before = None;
                continue;
            };
            if self.before.replace(lookout.since) == Some(lookout.since) {
                let since = self.clocks.duration(lookout.since).core_cycles;
                self.found = Some(Box::new(Repeats::new(since, repeating, waits)));
                return end;
            }
        }
    }
}

/// What a lookout sees of a component: a number that grows with all that could let others get on.
fn activity(component: &dyn Any, messages: u64) -> u64 {
    if let Some(core) = component.downcast_ref::<Core>() {
        core.changes()
    } else if let Some(slice) = component.downcast_ref::<L2Slice>() {
        slice.changes()
    } else if component.is::<OperatingSystem>()
        || component.is::<CommandProcessor>()
        || component.is::<Nic>()
        || component.is::<Client>()
        || component.is::<Poster>()
    {
        messages
    } else {
        0
    }
}
