//! Runs the points of a sweep, many at a time, each on one thread while there are more points than cores.
//!
//! Invariants: results come in the order of the points, whatever the order of running; a point that fails, or
//! whose simulation panics, is that point's result and not the end; once the stop flag is set nothing new
//! begins, what runs ends early and is not kept, what is done is. Wall clocks are read here for progress
//! only.
//!
//! [`run_each`] takes the function that turns a point into its result; what that does, and whether there is a
//! store of results, is [`campaign`](super::campaign)'s. At the end of a sweep cores are idle: a point that
//! starts when fewer points than jobs remain is told to take more threads, on which its result does not
//! depend.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

pub use super::book::{Need, Progress};
use super::book::{Next, Tally, Waiting};
use super::host::Memory;
use crate::outcome::{End, Outcome};
use durawarp_engine::Snapshot;

/// How to sweep: nothing here changes what comes of a point.
#[derive(Clone, Copy)]
pub struct Workers<'a> {
    /// Points that run at a time; 0 for one a core.
    pub jobs: usize,
    /// A point that has several cores to itself takes as many of them as are predicted to pay.
    pub auto: bool,
    /// Bytes of memory that all running points may need together, as estimated.
    pub bytes: u64,
    /// Set it to end the sweep early.
    pub stop: Option<&'a AtomicBool>,
    /// Told how the sweep is getting on, by whichever worker has news.
    pub observer: Option<&'a (dyn Fn(&Progress) + Sync)>,
}

impl Default for Workers<'_> {
    /// As many points at a time as the host has cores and memory for.
    fn default() -> Self {
        Workers { jobs: 0, auto: false, bytes: Memory::of_host().available_bytes, stop: None, observer: None }
    }
}

impl std::fmt::Debug for Workers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workers").field("jobs", &self.jobs).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Workers<'_> {
    /// Points that run at a time on this host.
    pub(super) fn jobs(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        if self.jobs == 0 { cores() } else { self.jobs }
    }
}

/// What came of a point.
#[derive(Debug, Clone, PartialEq)]
pub enum Done {
    /// It ran to its end and its result is right.
    Good(Box<Outcome>),
    /// Its cycle limit cut it: figures of the part that ran count, its result was not checked.
    Cut(Box<Outcome>),
    /// It did not, or it is not: why, and the outcome if there is one.
    Failed {
        /// In a sentence.
        why: String,
        /// What is known of the run.
        outcome: Option<Box<Outcome>>,
    },
    /// The sweep was stopped before it was done.
    NotRun,
}

impl Done {
    /// The outcome of a run that went well to its end.
    pub fn good(&self) -> Option<&Outcome> {
        match self {
            Done::Good(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// The outcome of a run that counts: one that went well, or was cut.
    pub fn counts(&self) -> Option<&Outcome> {
        match self {
            Done::Good(outcome) | Done::Cut(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// What an outcome is worth.
    pub fn of(outcome: Outcome) -> Self {
        let why = match (&outcome.end, &outcome.verification) {
            (End::Finished, Some(check)) if !check.passed => {
                format!("the result is wrong: {}", check.failures.join("; "))
            }
            (End::Finished, _) => return Done::Good(Box::new(outcome)),
            (End::Stopped, _) => return Done::NotRun,
            (End::Cut { .. }, _) => return Done::Cut(Box::new(outcome)),
            (end, _) => end.to_string(),
        };
        Done::Failed { why, outcome: Some(Box::new(outcome)) }
    }
}

/// A point whose turn it is.
#[derive(Clone, Copy)]
pub struct Turn<'a> {
    /// Its number.
    pub point: usize,
    /// Threads that its simulation may take.
    pub threads: usize,
    /// It was put off before.
    pub again: bool,
    /// For the simulation.
    pub observer: &'a (dyn Fn(&Snapshot) + Sync),
}

impl std::fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turn").field("point", &self.point).field("threads", &self.threads).finish_non_exhaustive()
    }
}

/// What came of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came<R> {
    /// A result.
    Of {
        result: R,
        /// It counts as failed.
        failed: bool,
        /// Warp instructions that were simulated, where that is known.
        instructions: Option<u64>,
    },
    /// Nothing yet: the point comes again, after all others.
    Later,
}

/// What two workers share.
struct Shared<'a, R> {
    needs: &'a [Need],
    waiting: Mutex<Waiting>,
    changed: Condvar,
    results: Mutex<Vec<Option<R>>>,
    tally: Tally,
    sweep: &'a Workers<'a>,
    began: Instant,
}

/// Nothing that a lock guards here can be left half done by a panic.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a simulation that panicked failed.
pub(super) fn told(panic: &(dyn std::any::Any + Send)) -> String {
    let message = panic.downcast_ref::<String>().map(String::as_str);
    let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    format!("the simulator failed, which is a defect: {message}")
}

/// Turns every point into its result by `one`, and one whose turn panics by `panicked`. `None` for points
/// that did not begin before the sweep was stopped.
///
/// # Panics
/// When the host cannot start one thread.
#[expect(clippy::disallowed_methods, reason = "progress is told in seconds of the host; no result depends on it")]
pub fn run_each<R, F, P>(needs: &[Need], sweep: &Workers<'_>, one: F, panicked: P) -> Vec<Option<R>>
where
    R: Send,
    F: Fn(&Turn<'_>) -> Came<R> + Sync,
    P: Fn(String) -> R + Sync,
{
    let needs: Vec<Need> = needs.iter().map(|need| Need { work: need.work.max(1), bytes: need.bytes }).collect();
    let shared = Shared {
        needs: &needs,
        waiting: Mutex::new(Waiting::new(&needs, sweep.bytes)),
        changed: Condvar::new(),
        results: Mutex::new(needs.iter().map(|_| None).collect()),
        tally: Tally::new(needs.clone()),
        sweep,
        began: Instant::now(),
    };
    let jobs = sweep.jobs();
    let workers = jobs.clamp(1, needs.len().max(1));
    let pool = pool(workers);
    // What no worker uses, as there are fewer points, is for the threads of points.
    let jobs = if pool.current_num_threads() < workers { pool.current_num_threads() } else { jobs };
    pool.broadcast(|_| {
        while let Some((point, threads, again)) = shared.next(jobs) {
            shared.one(point, threads, again, &one, &panicked);
            shared.changed.notify_all();
        }
    });
    shared.tell();
    shared.results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// So many threads, and fewer where the host does not give as many.
fn pool(mut workers: usize) -> rayon::ThreadPool {
    loop {
        match rayon::ThreadPoolBuilder::new().num_threads(workers).build() {
            Ok(pool) => return pool,
            Err(why) => assert!(workers > 1, "no thread can be started: {why}"),
        }
        workers /= 2;
    }
}

impl<R: Send> Shared<'_, R> {
    fn stopped(&self) -> bool {
        self.sweep.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// The next point of this worker, when there is memory for it; its threads; whether it was put off
    /// before.
    fn next(&self, jobs: usize) -> Option<(usize, usize, bool)> {
        let mut waiting = lock(&self.waiting);
        loop {
            if self.stopped() {
                return None;
            }
            match waiting.next() {
                // Its share of the cores, when there are no points for the others.
                Next::Run(point) => {
                    return Some((point, (jobs / waiting.remaining()).max(1), waiting.is_back(point)));
                }
                Next::Nothing => return None,
                Next::Wait => waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn one<F, P>(&self, point: usize, threads: usize, again: bool, one: &F, panicked: &P)
    where
        F: Fn(&Turn<'_>) -> Came<R> + Sync,
        P: Fn(String) -> R + Sync,
    {
        self.tally.begin();
        self.tell();
        let observer = |now: &Snapshot| {
            self.tally.advance(point, now.progress.work);
            self.tell();
        };
        let turn = Turn { point, threads, again, observer: &observer };
        // A panic is the result of this point; the sweep goes on.
        let came = catch_unwind(AssertUnwindSafe(|| one(&turn))).unwrap_or_else(|panic| Came::Of {
            result: panicked(told(&*panic)),
            failed: true,
            instructions: None,
        });
        match came {
            Came::Of { result, failed, instructions } => {
                if let Some(instructions) = instructions {
                    self.tally.advance(point, instructions);
                }
                self.tally.end(point, failed);
                lock(&self.waiting).done(self.needs[point]);
                lock(&self.results)[point] = Some(result);
            }
            Came::Later => {
                self.tally.put_back();
                lock(&self.waiting).put_back(point, self.needs[point]);
            }
        }
        self.tell();
    }

    fn tell(&self) {
        if let Some(observer) = self.sweep.observer {
            observer(&self.tally.progress(self.began.elapsed().as_secs_f64()));
        }
    }
}
