//! The functional driver: runs a launch on a flat memory image, without time. The reference that timed runs
//! are compared with, and the way host programs are tried out.
//!
//! CTAs run in order, the warps of a CTA round-robin between barriers. A CTA that runs long (it may be
//! waiting for another one: a grid barrier, a lock) is set aside after a while and later ones get their
//! turn, up to a number of resident CTAs. One that has arrived at `pm.barrier.kr` is not counted among
//! these: every CTA of the grid begins before the first passes, however many there are. All of it is
//! deterministic. The CTAs of a cluster begin together (`cluster`). A launch all of whose warps only repeat
//! themselves ends ([`alone`]).
//!
//! Not modelled: caches, persistence (PM operations are counted and their addresses checked), concurrency
//! finer than `SLICE` instructions.

#[allow(clippy::result_large_err, reason = "a fault ends the run: it is made once")]
mod access;
pub mod alone;
mod beside;
#[allow(clippy::result_large_err, reason = "a fault ends the run: it is made once")]
mod bulk;
mod clocks;
mod cluster;
#[allow(clippy::result_large_err, reason = "a fault ends the run: it is made once")]
mod convergence;
mod copies;
#[allow(clippy::result_large_err, reason = "a fault ends the run: it is made once")]
mod cta;
mod interface;
mod memories;
mod pairs;
pub mod races;
pub mod scrutiny;
#[allow(clippy::result_large_err, reason = "a fault ends the run: it is made once")]
mod spaces;
mod tensor;
mod unbegun;
mod under_way;
pub mod unwritten;
mod watched;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::Ordering;

use super::launch::Launch;
use super::memory::FlatMemory;
use cluster::{Cluster, has_clusters};
use cta::{Cta, CtaProgress};
use unbegun::Unbegun;

pub use interface::{
    AccessKind, Counts, Event, Limits, Observer, RunError, Start, Starts, Wanted, WarpAccess, Writer, Writes,
};

/// Warp instructions of one CTA before another CTA gets its turn.
const TURN: u64 = 1 << 16;
/// The same of a cooperative launch, or one with clusters, whose CTAs ask again and again whether others have
/// come.
const SHORT_TURN: u64 = 1 << 9;

/// Runs a launch to its end.
///
/// # Errors
/// The first fault of the program, a deadlock, the instruction limit, or the stop flag; memory keeps what was
/// written until then.
pub fn run(launch: &Launch, memory: &mut FlatMemory, limits: &Limits<'_>) -> Result<Counts, RunError> {
    run_watched(launch, memory, limits, None)
}

/// Runs some CTAs of a launch, which wait for no other of its CTAs, to their end: by their places in the
/// order in which CTAs begin ([`Launch::cta_at`]), whole clusters of them.
///
/// # Errors
/// As [`run`].
pub fn run_ctas(
    launch: &Launch,
    memory: &mut FlatMemory,
    limits: &Limits<'_>,
    ctas: Range<u64>,
) -> Result<Counts, RunError> {
    drive(launch, ctas, memory, limits, &mut None, &mut None)
}

/// Runs a launch to its end and tells every write to global memory.
///
/// # Errors
/// As [`run`].
pub fn run_watched(
    launch: &Launch,
    memory: &mut FlatMemory,
    limits: &Limits<'_>,
    writes: Option<Writes<'_>>,
) -> Result<Counts, RunError> {
    match writes {
        None => drive(launch, 0..launch.ctas(), memory, limits, &mut None, &mut None),
        Some(writes) => {
            let mut only_writes = |event: Event<'_>| {
                if let Event::Wrote { writer, address, bytes } = event {
                    writes(writer, address, bytes);
                }
            };
            let wanted = Wanted { writes: true, ..Wanted::default() };
            let observer = Observer { wanted, tell: &mut only_writes };
            drive(launch, 0..launch.ctas(), memory, limits, &mut Some(observer), &mut None)
        }
    }
}

/// Runs a launch to its end under observation. `starts` may let warps start elsewhere than at the entry
/// ([`super::regions::Restart`]).
///
/// # Errors
/// As [`run`].
pub fn run_observed(
    launch: &Launch,
    memory: &mut FlatMemory,
    limits: &Limits<'_>,
    mut observer: Option<Observer<'_>>,
    mut starts: Option<Starts<'_>>,
) -> Result<Counts, RunError> {
    drive(launch, 0..launch.ctas(), memory, limits, &mut observer, &mut starts)
}

fn drive(
    launch: &Launch,
    ctas: Range<u64>,
    memory: &mut FlatMemory,
    limits: &Limits<'_>,
    observer: &mut Option<Observer<'_>>,
    starts: &mut Option<Starts<'_>>,
) -> Result<Counts, RunError> {
    let limit_reached = |cta: &Cta| {
        let (kernel, limit) = (launch.kernel.name.clone(), limits.warp_instructions);
        RunError::InstructionLimit { kernel, limit, at: cta.place(launch) }
    };
    let mut counts = Counts::default();
    let mut resident: std::collections::VecDeque<Cta> = std::collections::VecDeque::new();
    // CTAs at `pm.barrier.kr`. Those that have ended are not awaited.
    let mut at_grid: Vec<Cta> = Vec::new();
    // Finished CTAs, whose allocations are used again.
    let mut spare: Vec<Cta> = Vec::new();
    let mut unbegun = Unbegun::new(ctas, launch.cluster_ctas());
    let (of_cluster, clustered) = (launch.cluster_ctas(), has_clusters(launch));
    let mut clusters: BTreeMap<u64, Cluster> = BTreeMap::new();
    // Turns in which nothing was executed, as all that had one wait at the barrier of their cluster.
    let mut idle = 0;
    // CTAs of a cooperative launch wait for each other: all are resident, and none waits for long. Those of a
    // cluster may wait for each other's copies.
    let (at_once, turn) = match launch.kernel.is_cooperative() {
        true => (usize::MAX, SHORT_TURN),
        false if of_cluster > 1 => (limits.resident_ctas.max(1), SHORT_TURN),
        false => (limits.resident_ctas.max(1), TURN),
    };
    // Turns since a CTA began or came to an end, and when it is looked whether all only repeat themselves.
    let (mut turns, mut look) = (0, 1);
    loop {
        if unbegun.is_empty() && resident.is_empty() {
            if at_grid.is_empty() {
                return Ok(counts);
            }
            at_grid.sort_unstable_by_key(Cta::index);
            if let Some(observer) = observer {
                (observer.tell)(Event::Gathered);
            }
            at_grid.iter_mut().for_each(Cta::pass_grid);
            resident.extend(at_grid.drain(..));
        }
        let begins = if resident.len() < at_once { unbegun.take() } else { None };
        let mut cta = if let Some(place) = begins {
            (turns, look) = (0, 1);
            let mut begin = |rank: u32| {
                let mut cta = spare.pop().unwrap_or_default();
                cta.start(launch, launch.cta_at(place + u64::from(rank)), limits, memory, starts);
                if clustered {
                    let number = place / u64::from(of_cluster);
                    let cluster = clusters.entry(number).or_insert_with(|| Cluster::new(number, of_cluster));
                    cta.join(cluster, rank);
                }
                cta
            };
            // A cluster begins as a whole; its first CTA runs, then the others.
            (1..of_cluster).rev().for_each(|rank| resident.push_front(begin(rank)));
            begin(0)
        } else {
            resident.pop_front().expect("a CTA is under way")
        };
        let left = limits.warp_instructions.saturating_sub(counts.warp_instructions);
        if left == 0 {
            return Err(limit_reached(&cta));
        }
        if limits.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(RunError::Stopped);
        }
        let (budget, before) = (left.min(turn), counts.warp_instructions);
        let number = if clustered { launch.cluster_of(cta.index()).0 } else { 0 };
        let progress = match clusters.get_mut(&number) {
            None => cta.run(launch, memory, &mut counts, budget, observer, &mut unbegun, &mut None)?,
            Some(cluster) => cta.run_in(cluster, launch, memory, &mut counts, budget, observer, &mut unbegun)?,
        };
        idle = if counts.warp_instructions == before { idle + 1 } else { 0 };
        match progress {
            CtaProgress::Done => {
                if let Some(observer) = observer {
                    (observer.tell)(Event::Ended { cta: cta.index() });
                }
                if clusters.get(&number).is_some_and(Cluster::is_over) {
                    clusters.remove(&number);
                }
                spare.push(cta);
                (turns, look) = (0, 1);
            }
            // The CTA that ran last is reported, not one that has only begun.
            CtaProgress::Paused if counts.warp_instructions >= limits.warp_instructions => {
                return Err(limit_reached(&cta));
            }
            CtaProgress::Paused => {
                resident.push_back(cta);
                turns += 1;
                // Ever more rarely, and when all have had their turn. One that has yet to begin may end
                // all waits.
                let may_begin = !unbegun.is_empty() && resident.len() < at_once;
                if !may_begin && turns >= look * resident.len() {
                    look *= 2;
                    let mut repeats = |cta: &mut Cta| match clusters.get_mut(&launch.cluster_of(cta.index()).0) {
                        Some(cluster) => cta.repeats_in(cluster, launch, memory),
                        None => cta.repeats(launch, memory),
                    };
                    if resident.iter_mut().all(&mut repeats) {
                        let first = resident.iter().min_by_key(|cta| cta.index());
                        let at = first.map(|cta| cta.place(launch)).unwrap_or_default();
                        return Err(RunError::Repeats { kernel: launch.kernel.name.clone(), at });
                    }
                }
            }
            CtaProgress::AtCluster => {
                if idle > resident.len() {
                    return Err(cta.deadlock(launch));
                }
                resident.push_back(cta);
            }
            CtaProgress::AtGrid => at_grid.push(cta),
        }
    }
}
