//! Runs the points of a sweep, each on one thread, many at a time.
//!
//! Invariants: results come in the order of the points, whatever the order of running; a point that fails, or whose
//! simulation panics, is that point's result and not the end; once the stop flag is set nothing new begins, what runs ends
//! early and is not kept, what is done is. Wall clocks are read here for progress only.
//!
//! [`run_with`] takes the function that turns a point into its result. That is the place for a store of results: look the
//! point up, simulate it if it is not there, keep what came of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::book::{Need, Next, Tally, Waiting};
use crate::engine::Snapshot;
use crate::outcome::{End, Outcome};
use crate::run::{self, Conduct, Experiment};

/// An experiment of a sweep.
#[derive(Debug, Clone)]
pub struct Point {
    /// What it is called in messages.
    pub label: String,
    /// What is run.
    pub experiment: Experiment,
    /// How long it takes compared with the others, in any unit.
    pub work: u64,
    /// Bytes of memory that it needs while it runs.
    pub bytes: u64,
}

/// A running simulation holds its image, the controllers' shares of it, and the final memory.
const COPIES_OF_IMAGE: u64 = 3;

impl Point {
    /// A point that needs as much memory as its buffers suggest.
    pub fn new(label: impl Into<String>, experiment: Experiment, work: u64) -> Self {
        let buffers: u64 = experiment.workload.addresses().ranges().iter().map(|range| range.bytes).sum();
        Point { label: label.into(), experiment, work, bytes: COPIES_OF_IMAGE * buffers }
    }
}

/// How to sweep: nothing here changes what comes of a point.
#[derive(Clone, Copy)]
pub struct Sweep<'a> {
    /// Points that run at a time; 0 for one a core.
    pub jobs: usize,
    /// Bytes of memory that all running points may need together, as estimated.
    pub bytes: u64,
    /// Set it to end the sweep early.
    pub stop: Option<&'a AtomicBool>,
    /// Told how the sweep is getting on, by whichever worker has news.
    pub observer: Option<&'a (dyn Fn(&Progress) + Sync)>,
}

/// Memory of running points together, when nobody says otherwise: 8 GiB.
pub const DEFAULT_BYTES: u64 = 8 << 30;

impl Default for Sweep<'_> {
    fn default() -> Self {
        Sweep { jobs: 0, bytes: DEFAULT_BYTES, stop: None, observer: None }
    }
}

impl std::fmt::Debug for Sweep<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sweep").field("jobs", &self.jobs).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// How a sweep is getting on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Points of the sweep.
    pub points: usize,
    /// Points that are done, failed ones too.
    pub done: usize,
    /// Points that run.
    pub running: usize,
    /// Points that failed.
    pub failed: usize,
    /// Warp instructions simulated so far, all points together.
    pub warp_instructions: u64,
    /// These, a second.
    pub warp_instructions_per_s: f64,
    /// Seconds since the sweep began.
    pub elapsed_s: f64,
    /// Seconds left, as the work that is done suggests; unknown before the first point is done.
    pub left_s: Option<f64>,
}

/// What came of a point.
#[derive(Debug, Clone, PartialEq)]
pub enum Done {
    /// It ran to its end and its result is right.
    Good(Box<Outcome>),
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
    /// The outcome of a run that went well.
    pub fn good(&self) -> Option<&Outcome> {
        match self {
            Done::Good(outcome) => Some(outcome),
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
            (End::CycleLimit, _) => "the cycle limit was reached".to_owned(),
            (End::Deadlock { waits }, _) => format!("deadlock: {}", waits.join("; ")),
            (End::Failed { error }, _) => error.clone(),
            (End::Panicked { message }, _) => format!("the simulator failed, which is a defect: {message}"),
        };
        Done::Failed { why, outcome: Some(Box::new(outcome)) }
    }
}

/// What came of each point, in the order of the points.
pub type Results = Vec<Done>;

/// Simulates every point.
pub fn run(points: &[Point], sweep: &Sweep<'_>) -> Results {
    run_with(points, sweep, |point, observer| {
        let conduct = Conduct { threads: 1, stop: sweep.stop, observer: Some(observer), ..Conduct::default() };
        Done::of(run::run(&point.experiment, &conduct).outcome)
    })
}

/// What two workers share.
struct Shared<'a> {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    results: Mutex<Results>,
    tally: Tally,
    sweep: &'a Sweep<'a>,
    began: Instant,
}

/// Nothing that a lock guards here can be left half done by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Turns every point into its result by `one`, which is given an observer for the simulation it runs.
///
/// # Panics
/// When the host cannot start threads.
#[expect(clippy::disallowed_methods, reason = "progress is told in seconds of the host; no result depends on it")]
pub fn run_with<F>(points: &[Point], sweep: &Sweep<'_>, one: F) -> Results
where
    F: Fn(&Point, &(dyn Fn(&Snapshot) + Sync)) -> Done + Sync,
{
    let needs: Vec<Need> = points.iter().map(|point| Need { work: point.work.max(1), bytes: point.bytes }).collect();
    let shared = Shared {
        waiting: Mutex::new(Waiting::new(&needs, sweep.bytes)),
        changed: Condvar::new(),
        results: Mutex::new(points.iter().map(|_| Done::NotRun).collect()),
        tally: Tally::new(needs.clone()),
        sweep,
        began: Instant::now(),
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(sweep.jobs).build().expect("threads can be started");
    pool.broadcast(|_| {
        while let Some(point) = shared.next() {
            let done = shared.one(point, &points[point], &one);
            lock(&shared.waiting).done(needs[point]);
            lock(&shared.results)[point] = done;
            shared.changed.notify_all();
        }
    });
    shared.tell();
    shared.results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl Shared<'_> {
    fn stopped(&self) -> bool {
        self.sweep.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// The next point of this worker, when there is memory for it.
    fn next(&self) -> Option<usize> {
        let mut waiting = lock(&self.waiting);
        loop {
            if self.stopped() {
                return None;
            }
            match waiting.next() {
                Next::Run(point) => return Some(point),
                Next::Nothing => return None,
                Next::Wait => waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn one<F>(&self, number: usize, point: &Point, one: &F) -> Done
    where
        F: Fn(&Point, &(dyn Fn(&Snapshot) + Sync)) -> Done + Sync,
    {
        self.tally.begin();
        self.tell();
        let observer = |now: &Snapshot| {
            self.tally.advance(number, now.progress.work);
            self.tell();
        };
        let done = catch_unwind(AssertUnwindSafe(|| one(point, &observer))).unwrap_or_else(|panic| {
            let message = panic.downcast_ref::<String>().map(String::as_str);
            let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Done::Failed { why: format!("the simulator failed, which is a defect: {message}"), outcome: None }
        });
        if let Done::Good(outcome) = &done {
            self.tally.advance(number, outcome.warp_instructions());
        }
        self.tally.end(number, matches!(done, Done::Failed { .. }));
        self.tell();
        done
    }

    fn tell(&self) {
        if let Some(observer) = self.sweep.observer {
            observer(&self.tally.progress(self.began.elapsed().as_secs_f64()));
        }
    }
}
