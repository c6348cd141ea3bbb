//! How an experiment is simulated: threads, what is kept beside the outcome, who may stop it and who watches.

use std::sync::atomic::AtomicBool;

use super::kept::{Beginnings, CheckpointAt, CheckpointWhen, Resumed};
use super::{LiveState, References};
use durawarp_engine::{Fallback, Placement, Rebalance, Snapshot};

/// Core cycles between two looks whether all that runs only repeats itself, unless others are asked for.
/// Chosen: longer than any message is under way, and well below a second of simulation.
pub const REPEAT_CYCLES: u64 = 50_000;

/// How to simulate: nothing here changes a result, only `host` of the outcome.
#[derive(Clone)]
pub struct Conduct<'a> {
    /// Threads: 0 for one a core, 1 for the sequential driver.
    pub threads: usize,
    /// Choose how many of these threads, from what the first part of the run says that more would give.
    pub auto: bool,
    /// Run on one thread, and predict what the run would come to on these numbers of threads.
    pub scaling: Option<&'a [usize]>,
    /// Start all `threads` even where there are fewer cores.
    pub oversubscribe: bool,
    /// Where components start.
    pub placement: Placement,
    /// When components move.
    pub rebalance: Rebalance,
    /// When one thread takes over from many.
    pub fallback: Fallback,
    /// Keep every component's digest at multiples of this many core cycles.
    pub epoch_cycles: Option<u64>,
    /// Keep a journal of what happens to persistent memory.
    pub journal: bool,
    /// Keep a timeline for a file of up to this many bytes.
    pub timeline: Option<u64>,
    /// Tell where cores lost their dispatch slots: by hart, function and instruction. Of machines of cores.
    pub places: bool,
    /// Make a checkpoint on the way.
    pub checkpoint: Option<CheckpointAt<'a>>,
    /// Go on from a checkpoint in place of the beginning: one that fits the experiment. Without journals,
    /// timelines, places and epochs, which would lack what came before.
    pub from: Option<&'a Resumed>,
    /// Beginnings that this run shares with others whose parameters change at a cycle.
    pub beginnings: Option<&'a Beginnings<'a>>,
    /// Count writes to the cells of NVM line by line.
    pub line_writes: bool,
    /// Look for races on the functional run. Of kernels.
    pub races: bool,
    /// Read all counters whenever a launch is over. Of kernels, from their beginning.
    pub launches: bool,
    /// Functional references of the experiment's workload that this run shares with others.
    pub references: Option<&'a References>,
    /// Core cycles between two looks whether all that runs only repeats itself ([`REPEAT_CYCLES`]); 0 for
    /// never.
    pub repeat_cycles: u64,
    /// Set it to end the run early; what is known by then is reported.
    pub stop: Option<&'a AtomicBool>,
    /// Told about every 100 ms how the simulation is getting on.
    pub observer: Option<&'a (dyn Fn(&Snapshot) + Sync)>,
    /// Told about every 500 ms, and at the end, how the machine is. Not of samples.
    pub monitor: Option<&'a (dyn Fn(LiveState) + Sync)>,
}

impl Default for Conduct<'_> {
    /// The sequential driver, unobserved.
    fn default() -> Self {
        Conduct {
            threads: 1,
            auto: false,
            scaling: None,
            oversubscribe: false,
            placement: Placement::Auto,
            rebalance: Rebalance::Measured,
            fallback: Fallback::Measured,
            epoch_cycles: None,
            journal: false,
            timeline: None,
            places: false,
            checkpoint: None,
            from: None,
            beginnings: None,
            line_writes: false,
            races: false,
            launches: false,
            references: None,
            repeat_cycles: REPEAT_CYCLES,
            stop: None,
            observer: None,
            monitor: None,
        }
    }
}

impl Conduct<'_> {
    /// Something is done whenever a launch is over.
    pub(super) fn halts_after_launches(&self) -> bool {
        self.launches || self.checkpoint.as_ref().is_some_and(|at| matches!(at.when, CheckpointWhen::Launch(_)))
    }
}

impl std::fmt::Debug for Conduct<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Conduct");
        out.field("threads", &self.threads).field("placement", &self.placement).field("rebalance", &self.rebalance);
        out.finish_non_exhaustive()
    }
}
