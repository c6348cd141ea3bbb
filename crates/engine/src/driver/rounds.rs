//! The loop over rounds that every worker runs in step: same windows, same reasons to leave, at any number of
//! workers.
//!
//! ```text
//!   next ──> windows ──> run the partition ──> meet ──> next, flags ──> leave? ──> ...
//! ```
//! A worker sets a flag in its line to end the loop. Worker 0 does so when a leg is over or the caller's stop
//! flag is set; any worker does so when one of its components failed. All read the same lines, so all leave
//! after the same round.
//!
//! A run that ends at once (stopped, failed, halted) first brings every tier as far as the furthest one. Then
//! every event before one instant is handled, and none after it.
//!
//! Invariant: the number and the bounds of rounds depend on the model and its limits only.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::exchange::Exchange;
use super::lines::{Abandoned, Report};
use super::tracer::Tracer;
use crate::event::NEVER;
use crate::horizon::Clip;
use crate::message::Message;
use crate::partition::{Meter, NoMeter, Partition, RoundCount};
use crate::stats::RoundTotals;
use crate::tiers::{PerTier, Tiers, Windows, least};
use crate::time::Time;
use crate::trace::RoundTrace;

/// Flag: worker 0 ends the leg.
pub(crate) const LEG_OVER: u64 = 1;
/// Flag: the caller's stop flag is set.
pub(crate) const STOP: u64 = 2;
/// Flag: a component failed or halted.
pub(crate) const VERDICT: u64 = 4;
/// Flag: a component panicked.
pub(crate) const CRASH: u64 = 8;
/// Flag: a component of the answering tier makes no promise. No reason to leave.
pub(crate) const RESTLESS: u64 = 16;

/// Component costs are sampled in one of this many rounds.
const SAMPLE_EVERY: u64 = 16;
/// Rounds with fewer events are not worth it: reading the clock would cost more than what it tells.
const SAMPLE_EVENTS: u64 = 32;

/// The time between two looks at the clock by worker 0, about; it counts rounds in between.
const LOOK_EVERY: Duration = Duration::from_micros(20);
const MOST_ROUNDS_UNSEEN: u64 = 1024;

/// What all workers of a leg start from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    pub(crate) tiers: Tiers,
    pub(crate) clip: Clip,
    /// The round after which nothing is pending before this time is the last.
    pub(crate) pause_at: Option<Time>,
    /// By tier: nothing is pending before.
    pub(crate) next: PerTier,
    /// Whether components of the answering tier are restless.
    pub(crate) flags: u64,
    /// The epoch that has begun and is not recorded, if any.
    pub(crate) open_epoch: Option<u64>,
    /// Rounds run before, for sampling.
    pub(crate) rounds: u64,
    /// Whether costs are worth sampling.
    pub(crate) sample: bool,
    /// The seed of the workers' dice, where these decide.
    pub(crate) dice: Option<u64>,
}

/// Where the loop was left. The same for all workers.
#[derive(Debug, Clone)]
pub(crate) struct LegEnd {
    /// By tier: nothing is pending before; [`NEVER`] when nothing is pending.
    pub(crate) next: PerTier,
    pub(crate) flags: u64,
    pub(crate) open_epoch: Option<u64>,
    /// The epochs whose digests were recorded, in order: one row of `Recorded` each.
    pub(crate) epochs: Vec<u64>,
    /// For each of `epochs`, the digests of the partition's components in its order.
    pub(crate) rows: Vec<u64>,
}

/// Looks at every round as it ends.
pub(crate) trait Watch {
    /// After the worker's own part of a round: flags to raise.
    fn own(&mut self) -> u64;
    /// After the meeting: what all came to.
    fn all(&mut self, report: &Report);
    /// Where the next round is traced, if it is.
    #[inline]
    fn trace(&mut self) -> Option<&mut RoundTrace> {
        None
    }
}

/// The watch of every worker but the first.
#[derive(Debug)]
pub(crate) struct Follow;

impl Watch for Follow {
    fn own(&mut self) -> u64 {
        0
    }
    fn all(&mut self, _: &Report) {}
}

/// Runs rounds until nothing is pending, the limit is reached, or a flag is raised.
pub(crate) fn run<M: Message>(
    partition: &mut Partition<M>,
    exchange: &mut impl Exchange<M>,
    watch: &mut impl Watch,
    start: Start,
) -> Result<LegEnd, Abandoned> {
    let Start { tiers, clip, pause_at, next, flags, open_epoch, mut rounds, sample, .. } = start;
    let mut left = LegEnd { next, flags, open_epoch, epochs: Vec::new(), rows: Vec::new() };
    let mut busy = true;
    // The time of the furthest tier, once the run is to end; no tier goes beyond it.
    let mut align: Option<Time> = None;
    loop {
        let earliest = least(&left.next);
        if earliest == NEVER || clip.is_over(earliest) || left.flags & CRASH != 0 {
            break;
        }
        if left.flags & (STOP | VERDICT) != 0 {
            let furthest = *align.get_or_insert_with(|| partition.furthest());
            if earliest >= furthest {
                break;
            }
        } else if left.flags & !RESTLESS != 0 || pause_at.is_some_and(|pause| earliest >= pause) {
            break;
        }
        if clip.epoch_ticks.is_some() {
            enter_epoch(partition, clip.epoch_of(earliest), &mut left);
        }
        let clipped = match (clip.window_end(earliest), align) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, other) => one.or(other),
        };
        let windows = tiers.windows(&left.next, clipped, left.flags & RESTLESS == 0);
        let count = if let Some(trace) = watch.trace() {
            let mut tracer = Tracer::new(trace);
            let count = run_round(partition, exchange, &tiers, &windows, &mut tracer);
            tracer.end();
            count
        } else if sample && busy && rounds.is_multiple_of(SAMPLE_EVERY) {
            run_round(partition, exchange, &tiers, &windows, &mut Stopwatch { last: Instant::now() })
        } else {
            run_round(partition, exchange, &tiers, &windows, &mut NoMeter)
        };
        rounds += 1;
        busy = count.events >= SAMPLE_EVENTS;
        let mut flags = watch.own();
        if partition.sink.verdict.is_given() {
            flags |= VERDICT;
        }
        if partition.crash.is_some() {
            flags |= CRASH;
        }
        if partition.is_restless() {
            flags |= RESTLESS;
        }
        // As if what was sent lay in a queue already: the same number wherever its receiver is.
        let (pending, sent) = (partition.earliest(), partition.earliest_sent(&tiers));
        let next = std::array::from_fn(|tier| pending[tier].min(sent[tier]));
        let report = Report { next, events: count.events, heaviest: count.heaviest, sent: 0, flags };
        let all = exchange.meet(partition, report)?;
        watch.all(&all);
        // A reason to end at once stays one while tiers are brought up.
        (left.next, left.flags) = (all.next, all.flags | left.flags & (STOP | VERDICT));
    }
    Ok(left)
}

/// Runs the partition's own part of a round, then what is lent and nobody runs.
#[inline]
fn run_round<M: Message>(
    partition: &mut Partition<M>,
    exchange: &mut impl Exchange<M>,
    tiers: &Tiers,
    windows: &Windows,
    meter: &mut impl Meter,
) -> RoundCount {
    let mut count = partition.run_round(tiers, windows, exchange, meter);
    while let Some(mut loan) = exchange.take() {
        partition.run_loan(&mut loan, tiers, windows, &mut count, meter);
        exchange.give_back(loan);
    }
    count
}

fn enter_epoch<M>(partition: &Partition<M>, epoch: u64, left: &mut LegEnd) {
    if let Some(open) = left.open_epoch.filter(|&open| open != epoch) {
        left.epochs.push(open);
        left.rows.extend(partition.cells.iter().map(|cell| cell.digest));
    }
    left.open_epoch = Some(epoch);
}

struct Stopwatch {
    last: Instant,
}

impl Meter for Stopwatch {
    #[inline]
    fn lap(&mut self) -> Option<u64> {
        let now = Instant::now();
        let ns = now.duration_since(self.last).as_nanos() as u64;
        self.last = now;
        Some(ns)
    }
}

/// When worker 0 ends the leg.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    /// Not measured: caches and threads get warm.
    pub(crate) warm_up: Duration,
    /// Measured, after the warm-up.
    pub(crate) measured: Duration,
    /// What is measured at least, even when it takes longer than `measured`.
    pub(crate) least: Least,
    pub(crate) rounds: u64,
}

/// The least to measure: a number of rounds, or of events in all rounds together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Least {
    pub(crate) rounds: u64,
    pub(crate) events: u64,
}

/// What a leg came to, after its warm-up.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    pub(crate) events: u64,
    pub(crate) elapsed: Duration,
}

/// The watch of worker 0: counts, and ends the leg.
#[derive(Debug)]
pub(crate) struct Lead<'a> {
    pub(crate) totals: RoundTotals,
    /// Every component-round of a solo leg is timed into it.
    pub(crate) trace: Option<RoundTrace>,
    stop: Option<&'a AtomicBool>,
    budget: Budget,
    began: Instant,
    warm: Option<(Instant, u64)>,
    pub(crate) pace: Pace,
    rounds: u64,
    /// Rounds until the next look at the clock, how many there were between the last two, and when that was.
    unseen: u64,
    stride: u64,
    looked: Instant,
}

impl<'a> Lead<'a> {
    pub(crate) fn new(stop: Option<&'a AtomicBool>, budget: Budget) -> Self {
        let began = Instant::now();
        Lead {
            totals: RoundTotals::default(),
            trace: None,
            stop,
            budget,
            began,
            warm: budget.warm_up.is_zero().then_some((began, 0)),
            pace: Pace::default(),
            rounds: 0,
            unseen: 1,
            stride: 1,
            looked: began,
        }
    }

    /// Looks at the clock: is the leg over?
    #[cold]
    fn look(&mut self) -> bool {
        let now = Instant::now();
        let apart = now - self.looked;
        if apart < LOOK_EVERY / 2 {
            self.stride = (self.stride * 2).min(MOST_ROUNDS_UNSEEN);
        } else if apart > LOOK_EVERY * 2 {
            self.stride = (self.stride / 2).max(1);
        }
        (self.looked, self.unseen) = (now, self.stride);
        let Some((since, events)) = self.warm else {
            if now - self.began >= self.budget.warm_up {
                self.warm = Some((now, self.totals.events));
            }
            return false;
        };
        self.pace = Pace { events: self.totals.events - events, elapsed: now - since };
        let Least { rounds, events } = self.budget.least;
        self.pace.elapsed >= self.budget.measured && (self.rounds >= rounds || self.pace.events >= events)
    }
}

impl Watch for Lead<'_> {
    #[inline]
    fn own(&mut self) -> u64 {
        self.rounds += 1;
        self.unseen -= 1;
        let mut flags = 0;
        if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            flags |= STOP;
        }
        // Also where the rounds are used up: a run that halts goes on after them.
        let time_is_up = self.unseen == 0 && self.look();
        if time_is_up || self.rounds >= self.budget.rounds {
            flags |= LEG_OVER;
        }
        flags
    }

    #[inline]
    fn all(&mut self, report: &Report) {
        self.totals.add(report.events, report.heaviest);
    }

    #[inline]
    fn trace(&mut self) -> Option<&mut RoundTrace> {
        let trace = self.trace.as_mut()?;
        trace.takes_next().then_some(trace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of a leg that ends as soon as it may, where a round of ten events takes so long.
    fn rounds_of_leg(rounds: u64, events: u64, round: Duration) -> u64 {
        let least = Least { rounds, events };
        let budget = Budget { warm_up: Duration::ZERO, measured: Duration::ZERO, least, rounds: u64::MAX };
        let mut lead = Lead::new(None, budget);
        let mut rounds = 0;
        loop {
            rounds += 1;
            std::thread::sleep(round);
            if lead.own() & LEG_OVER != 0 {
                return rounds;
            }
            lead.totals.add(10, 10);
        }
    }

    #[test]
    fn rounds_after_the_last_of_a_leg_are_rounds_as_any() {
        // Those that bring up tiers behind when the run halts or is stopped.
        for rounds in 1..20 {
            let budget = Budget { warm_up: Duration::ZERO, measured: Duration::MAX, least: Least::default(), rounds };
            let mut lead = Lead::new(None, budget);
            let over: Vec<bool> = (0..40).map(|_| lead.own() & LEG_OVER != 0).collect();
            assert_eq!(over, (1..=40).map(|round| round >= rounds).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_leg_of_long_rounds_has_the_least_number_of_them_and_no_more() {
        let long = LOOK_EVERY * 5;
        assert_eq!([0, 1, 2, 16].map(|least| rounds_of_leg(least, u64::MAX, long)), [1, 1, 2, 16]);
        // The least number of events ends it as well; those of the present round are not counted yet.
        assert_eq!([20, 21, 1000].map(|events| rounds_of_leg(16, events, long)), [3, 4, 16]);
        // The clock is not looked at in every short round.
        assert!((16..=2 * 16).contains(&rounds_of_leg(16, u64::MAX, Duration::ZERO)));
    }
}
