//! Options of a run, its progress, and its end.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::component::{Progress, Wait};
use super::message::ComponentId;
use super::placement::Placement;
use super::time::Time;

/// How to run a simulation. Nothing here but the limits can change its results.
#[derive(Clone)]
pub struct RunOptions<'a> {
    /// Threads to use at most; 0 for one a core. Never more than cores, unless `oversubscribe`.
    pub threads: usize,
    /// Choose how many of these, from what more are predicted to give after the first part of the run.
    pub auto: bool,
    /// Run on one thread, and time every component in every round
    /// ([`Simulation::scaling`](super::Simulation::scaling)).
    pub trace: bool,
    /// Where components start.
    pub placement: Placement,
    /// When components move.
    pub rebalance: Rebalance,
    /// When one thread takes over from many.
    pub fallback: Fallback,
    /// All events at or before this time are handled, and none later.
    pub time_limit: Option<Time>,
    /// Pause at the end of the first round with every event before this time handled. Some events after it
    /// may be handled, too: rounds stay what they are in a run without a pause.
    pub pause_at: Option<Time>,
    /// Look now and then whether anything changes, and pause where nothing does.
    pub lookout: Option<Lookout>,
    /// Keep every component's rolling digest at multiples of this (at least 1).
    pub epoch_ticks: Option<Time>,
    /// Ends the run at the end of a round once it is set.
    pub stop: Option<&'a AtomicBool>,
    /// Called on the caller's thread about every `observe_every`, between rounds.
    pub observer: Option<&'a (dyn Fn(&Snapshot) + Sync)>,
    /// The least time between two calls of the observer.
    pub observe_every: Duration,
    /// Called like the observer about every `inspect_every`, and at the end of the run.
    pub inspector: Option<&'a (dyn Fn(&Inspection<'_>) + Sync)>,
    /// The least time between two calls of the inspector.
    pub inspect_every: Duration,
    /// Start `threads` threads even on fewer cores: for tests.
    pub oversubscribe: bool,
}

impl Default for RunOptions<'_> {
    /// One thread, no limits.
    fn default() -> Self {
        RunOptions {
            threads: 1,
            auto: false,
            trace: false,
            placement: Placement::Auto,
            rebalance: Rebalance::Measured,
            fallback: Fallback::Measured,
            time_limit: None,
            pause_at: None,
            lookout: None,
            epoch_ticks: None,
            stop: None,
            observer: None,
            observe_every: Duration::from_millis(100),
            inspector: None,
            inspect_every: Duration::from_millis(500),
            oversubscribe: false,
        }
    }
}

impl fmt::Debug for RunOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOptions")
            .field("threads", &self.threads)
            .field("placement", &self.placement)
            .field("rebalance", &self.rebalance)
            .field("fallback", &self.fallback)
            .field("time_limit", &self.time_limit)
            .field("pause_at", &self.pause_at)
            .field("lookout", &self.lookout)
            .field("epoch_ticks", &self.epoch_ticks)
            .finish_non_exhaustive()
    }
}

/// Looks at a run at set simulated times: where no component was active between two of them, the run pauses.
///
/// A look changes no round: it is made at the end of the first round with every event before its time
/// handled, as a pause is ([`RunOptions::pause_at`]). So neither results nor what it finds depend on threads.
#[derive(Debug, Clone, Copy)]
pub struct Lookout {
    /// The time of the next look.
    pub next: Time,
    /// Ticks between two looks, at least 1. A long run is looked at more rarely: a look at `t` is followed by
    /// one at `t + max(every, t / 16)`.
    pub every: Time,
    /// What the last look found; none before the first.
    pub found: Option<u64>,
    /// The time of the first look that found it.
    pub since: Time,
    /// A component's activity so far, and the messages that it has received: a number that grows whenever it
    /// did something that the lookout is to see.
    pub activity: fn(&dyn Any, u64) -> u64,
}

impl Lookout {
    /// The look that follows this one.
    #[must_use]
    pub fn after(self, found: u64) -> Lookout {
        let since = if self.found == Some(found) { self.since } else { self.next };
        Lookout { next: self.next + self.every.max(self.next / 16), found: Some(found), since, ..self }
    }
}

/// When components move from partition to partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rebalance {
    /// When measured costs say that it pays.
    #[default]
    Measured,
    /// Never: the placement stays.
    Never,
    /// At random, every `rounds` rounds (at least 1). For tests.
    Forced {
        /// The rounds between two moves.
        rounds: u64,
    },
    /// By dice, as all else that the wall clock and the host decide otherwise: how long legs are, who runs
    /// them, who runs loans. `fallback` is not looked at. For tests.
    Dice {
        /// What the dice follow from.
        seed: u64,
    },
}

impl Rebalance {
    /// The seed of dice, where they decide.
    pub(crate) fn dice(self) -> Option<u64> {
        if let Rebalance::Dice { seed } = self { Some(seed) } else { None }
    }
}

/// How a run is getting on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// Every event before this time is handled.
    pub time: Time,
    /// Events handled so far, in all runs of the simulation.
    pub events: u64,
    /// Rounds run so far.
    pub rounds: u64,
    /// The components' own account, summed.
    pub progress: Progress,
    /// Wall-clock time since the run began.
    pub elapsed: Duration,
    /// Threads at work just now.
    pub workers: usize,
}

/// A look at all components between two events. Cost of making one: every component's waits.
#[derive(Debug)]
pub struct Inspection<'a> {
    /// How the run is getting on.
    pub snapshot: Snapshot,
    /// All components with their names, in the order of their ids; each can be cast to its own type.
    pub components: Vec<(&'a str, &'a dyn Any)>,
    /// What components wait for just now, in order of components: id, name, wait.
    pub waits: Vec<(ComponentId, String, Wait)>,
    /// The run is over; it may go on if it was halted or cut.
    pub over: bool,
}

/// How a run ended.
#[derive(Debug)]
pub enum RunEnd {
    /// Nothing is pending and no component waits.
    Finished {
        /// The time of the last event.
        at: Time,
    },
    /// Nothing is pending, but components wait: see `deadlock` for who blocks whom.
    Deadlock {
        /// The time of the last event.
        at: Time,
        /// In order of components: id, name, and what it waits for.
        waits: Vec<(ComponentId, String, Wait)>,
    },
    /// Events are pending after the limit. The run can go on.
    TimeLimit {
        /// The limit: every event at or before it was handled.
        at: Time,
    },
    /// The time at which to pause has come. The run can go on.
    Paused {
        /// Every event before it was handled, and some after it may be.
        at: Time,
    },
    /// No component was active between two looks of the lookout. The run can go on.
    Quiet {
        /// Every event before it was handled, and some after it may be.
        at: Time,
        /// The look that is next.
        lookout: Lookout,
    },
    /// The stop flag was set. The run can go on.
    Stopped {
        /// Every event before it was handled, and none after.
        at: Time,
    },
    /// A component called [`Ctx::halt`](super::Ctx::halt), and its round was finished. The run can go on.
    Halted {
        /// When it called.
        at: Time,
        /// The first that did: least in (time, id).
        component: ComponentId,
        /// Its name.
        name: String,
    },
    /// A component called [`Ctx::fail`](super::Ctx::fail), and its round was finished.
    Failed {
        /// When it called.
        at: Time,
        /// The first that did: least in (time, id).
        component: ComponentId,
        /// Its name.
        name: String,
        /// What it failed with.
        error: Box<dyn Error + Send + Sync>,
    },
    /// A component panicked. The others finished the round; the simulation cannot go on.
    Panicked {
        /// The panicked component of the least id in the round.
        component: ComponentId,
        /// Its name.
        name: String,
        /// What it panicked with.
        message: String,
    },
}

/// Whether a run may fall back to one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fallback {
    /// When it is measured to be faster.
    #[default]
    Measured,
    /// Never: all workers from the first round on. For measurements.
    Never,
    /// Back and forth after this many rounds (at least 1). For tests.
    Forced {
        /// The rounds between two changes.
        rounds: u64,
    },
}
