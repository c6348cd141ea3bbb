//! The one barrier of a round: each worker writes a line of its own and reads the others'.
//!
//! ```text
//!   worker 0:  even [stamp next... events heaviest sent flags]   odd [...]   two lines a worker, by the round's parity
//!   worker 1:  even [stamp next... events heaviest sent flags]   odd [...]
//! ```
//! A worker publishes the result of its round, stamped with the round's number, then reads every other
//! worker's line once that carries the same stamp. No worker is ahead of a reader by more than one round:
//! before it publishes round r + 2 it has read all lines of r + 1, and each of those was published after its
//! worker read r. So two lines a worker suffice, and a line is never written while it is read. The minimum of
//! all `next` is taken from the same lines; no second barrier is needed.
//!
//! Waiting: spin a bounded while (the common case takes 50 to 200 ns), then yield, then park. A pure spin is
//! a thousand times slower as soon as another process wants the core. No wake-up is lost: a sleeper first
//! says so and then looks again, a publisher first stamps and then looks for sleepers, with a full fence
//! between the two steps on both sides.
//!
//! Source: the flag barrier with piggy-backed minimum that was measured best (48 ns against 12 us of `std`'s
//! barrier). Checked with loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p durawarp-engine --release --lib driver::lines`.

#[cfg(loom)]
use loom::{
    hint::spin_loop,
    sync::Mutex,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
    thread::{self, Thread},
};
#[cfg(not(loom))]
use std::{
    hint::spin_loop,
    sync::Mutex,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
    thread::{self, Thread},
};

use crossbeam_utils::CachePadded;

use crate::tiers::{MAX_TIERS, PerTier};
#[cfg(test)]
use crate::time::Time;

/// What one worker says of its round, and what all say together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Report {
    /// By tier: nothing can happen before, in its partition or by what it sent.
    pub(crate) next: PerTier,
    /// Events handled.
    pub(crate) events: u64,
    /// The most events of one component.
    pub(crate) heaviest: u64,
    /// To whom it sent: bit `worker % 64`.
    pub(crate) sent: u64,
    /// Reasons to leave the round loop, see [`super::rounds`].
    pub(crate) flags: u64,
}

impl Report {
    /// What two workers say together; `sent` has no common meaning and is cleared.
    #[inline]
    pub(crate) fn with(self, other: Report) -> Report {
        Report {
            next: std::array::from_fn(|tier| self.next[tier].min(other.next[tier])),
            events: self.events + other.events,
            heaviest: self.heaviest.max(other.heaviest),
            sent: 0,
            flags: self.flags | other.flags,
        }
    }
}

/// How long to wait in each way before the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) spins: u32,
    pub(crate) yields: u32,
}

impl Patience {
    /// Every worker has a core: about 10 us of spinning, then some 50 us of yielding.
    pub(crate) const OWN_CORE: Patience = Patience { spins: 300, yields: 50 };
    /// More workers than cores: the awaited worker probably waits for this very core.
    pub(crate) const SHARED_CORE: Patience = Patience { spins: 8, yields: 4 };
}

#[derive(Debug)]
struct Line {
    /// The round it is of, plus one.
    stamp: AtomicU64,
    next: [AtomicU64; MAX_TIERS],
    events: AtomicU64,
    heaviest: AtomicU64,
    sent: AtomicU64,
    flags: AtomicU64,
}

#[derive(Debug)]
struct Bed {
    asleep: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

/// The lines of all workers.
#[derive(Debug)]
pub(crate) struct Lines {
    lines: Box<[[CachePadded<Line>; 2]]>,
    beds: Box<[CachePadded<Bed>]>,
    sleepers: CachePadded<AtomicUsize>,
    abandoned: AtomicBool,
    patience: Patience,
}

/// Another worker ended without finishing its round: a bug of the engine, as components' panics are caught.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Abandoned;

impl Lines {
    pub(crate) fn new(workers: usize, patience: Patience) -> Self {
        let line = || {
            CachePadded::new(Line {
                stamp: AtomicU64::new(0),
                next: std::array::from_fn(|_| AtomicU64::new(0)),
                events: AtomicU64::new(0),
                heaviest: AtomicU64::new(0),
                sent: AtomicU64::new(0),
                flags: AtomicU64::new(0),
            })
        };
        let bed = || CachePadded::new(Bed { asleep: AtomicBool::new(false), thread: Mutex::new(None) });
        Lines {
            lines: (0..workers).map(|_| [line(), line()]).collect(),
            beds: (0..workers).map(|_| bed()).collect(),
            sleepers: CachePadded::new(AtomicUsize::new(0)),
            abandoned: AtomicBool::new(false),
            patience,
        }
    }

    pub(crate) fn workers(&self) -> usize {
        self.lines.len()
    }

    /// The calling thread is `worker` from now on. Before its first round.
    pub(crate) fn sit_down(&self, worker: usize) {
        if let Ok(mut thread) = self.beds[worker].thread.lock() {
            *thread = Some(thread::current());
        }
    }

    /// Says what the round came to. Rounds of a worker count up by one.
    #[inline]
    pub(crate) fn publish(&self, worker: usize, round: u64, report: Report) {
        let line = &self.lines[worker][(round & 1) as usize];
        for (next, time) in line.next.iter().zip(report.next) {
            next.store(time, Ordering::Relaxed);
        }
        line.events.store(report.events, Ordering::Relaxed);
        line.heaviest.store(report.heaviest, Ordering::Relaxed);
        line.sent.store(report.sent, Ordering::Relaxed);
        line.flags.store(report.flags, Ordering::Relaxed);
        line.stamp.store(round + 1, Ordering::Release);
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.wake_sleepers();
        }
    }

    /// What `other` says of the round, once it does.
    ///
    /// # Errors
    /// When a worker was [`Self::abandon`]ed.
    #[inline]
    pub(crate) fn read(&self, me: usize, other: usize, round: u64) -> Result<Report, Abandoned> {
        let line = &self.lines[other][(round & 1) as usize];
        if line.stamp.load(Ordering::Acquire) != round + 1 {
            self.wait(me, line, round)?;
        }
        Ok(Report {
            next: std::array::from_fn(|tier| line.next[tier].load(Ordering::Relaxed)),
            events: line.events.load(Ordering::Relaxed),
            heaviest: line.heaviest.load(Ordering::Relaxed),
            sent: line.sent.load(Ordering::Relaxed),
            flags: line.flags.load(Ordering::Relaxed),
        })
    }

    /// Whether `other` has published the round.
    #[inline]
    pub(crate) fn is_there(&self, other: usize, round: u64) -> bool {
        self.lines[other][(round & 1) as usize].stamp.load(Ordering::Relaxed) == round + 1
    }

    #[cold]
    fn wait(&self, me: usize, line: &Line, round: u64) -> Result<(), Abandoned> {
        let there = || line.stamp.load(Ordering::Acquire) == round + 1;
        for _ in 0..self.patience.spins {
            spin_loop();
            if there() {
                return Ok(());
            }
        }
        for _ in 0..self.patience.yields {
            thread::yield_now();
            if there() {
                return Ok(());
            }
        }
        let bed = &self.beds[me];
        bed.asleep.store(true, Ordering::Relaxed);
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let mut found = there();
        while !found && !self.abandoned.load(Ordering::Relaxed) {
            thread::park();
            found = there();
        }
        bed.asleep.store(false, Ordering::Relaxed);
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        if found { Ok(()) } else { Err(Abandoned) }
    }

    #[cold]
    #[inline(never)]
    fn wake_sleepers(&self) {
        for bed in &self.beds {
            if bed.asleep.load(Ordering::Relaxed)
                && let Ok(thread) = bed.thread.lock()
                && let Some(thread) = &*thread
            {
                thread.unpark();
            }
        }
    }

    /// Marks that a worker will never publish again, and wakes all that wait for it.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.wake_sleepers();
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn report(next: Time) -> Report {
        Report { next: [next; MAX_TIERS], events: 1, heaviest: 1, sent: 0, flags: 0 }
    }

    fn rounds(workers: usize, rounds: u64, patience: Patience) {
        let lines = Lines::new(workers, patience);
        thread::scope(|scope| {
            for me in 0..workers {
                let lines = &lines;
                scope.spawn(move || {
                    lines.sit_down(me);
                    for round in 0..rounds {
                        let mine = report(round * 100 + me as u64);
                        lines.publish(me, round, mine);
                        let all = (0..workers)
                            .filter(|&other| other != me)
                            .map(|other| lines.read(me, other, round).unwrap())
                            .fold(mine, Report::with);
                        assert_eq!((all.next, all.events), ([round * 100; MAX_TIERS], workers as u64));
                    }
                });
            }
        });
    }

    #[test]
    fn everybody_reads_the_same_minimum_of_the_same_round() {
        rounds(2, 20_000, Patience::OWN_CORE);
        rounds(5, 2_000, Patience::SHARED_CORE);
    }

    #[test]
    fn nobody_sleeps_through_a_round() {
        rounds(3, 5_000, Patience { spins: 0, yields: 0 });
    }

    #[test]
    fn who_waits_for_an_abandoned_worker_learns_so() {
        let lines = Lines::new(2, Patience { spins: 1, yields: 1 });
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                lines.sit_down(0);
                lines.read(0, 1, 0)
            });
            thread::sleep(std::time::Duration::from_millis(20));
            lines.abandon();
            assert_eq!(waiting.join().unwrap(), Err(Abandoned));
        });
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;

    /// Two workers, two rounds, straight to sleep: every interleaving ends, and each reads the other's own
    /// round.
    #[test]
    fn two_workers_meet_twice() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let lines = Arc::new(Lines::new(2, Patience { spins: 0, yields: 0 }));
            let worker = |me: usize, lines: Arc<Lines>| {
                lines.sit_down(me);
                for round in 0..2 {
                    let next = round * 10 + me as u64;
                    lines.publish(
                        me,
                        round,
                        Report { next: [next; MAX_TIERS], events: 1, heaviest: 1, sent: 0, flags: 0 },
                    );
                    let other = lines.read(me, 1 - me, round).unwrap();
                    assert_eq!(other.next, [round * 10 + 1 - me as u64; MAX_TIERS]);
                }
            };
            let theirs = Arc::clone(&lines);
            let other = thread::spawn(move || worker(1, theirs));
            worker(0, lines);
            other.join().unwrap();
        });
    }
}
