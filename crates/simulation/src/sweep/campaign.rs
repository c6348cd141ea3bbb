//! Runs the points of a batch that a store of results does not have yet, and keeps what comes of them; or all
//! of them without a store.
//!
//! Several processes may work on one folder: a point that another one runs is put off, and run at the end if
//! that process is gone (`claims`).
//!
//! Workers hand what they have to one thread that writes (`Writer::serve`) and go on with the next point.
//! Invariants: a point that the report of the whole sweep calls done is on the disk (its line of progress may
//! come a sync earlier); when results cannot be written the sweep ends early, and what was written stays.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use super::batch::Batch;
use super::beginnings::BeginningFiles;
use super::book::in_order;
use super::claims::{Claims, Known};
use super::key;
use super::record::{Record, State};
use super::runner::{Came, Done, Need, Turn, Workers, lock, run_each};
use super::shared::SharedParts;
use super::store::{Author, Order, Store, Writer};
use crate::outcome::Outcome;
use crate::run::Conduct;
use crate::run::checkpoint::Beginnings;

/// Which points of a batch, and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct Part {
    /// One of so many parts that the points are divided into by their keys: its number from 0, and how many
    /// there are.
    pub shard: Option<(u32, u32)>,
    /// Points that failed before are not run again.
    pub keep_failed: bool,
}

/// What came of a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It was there before, or another process ran it in the meantime.
    Cached,
    /// It was run.
    Ran,
    /// It was run, and its cycle limit cut it.
    Cut,
    /// It failed: why.
    Failed(String),
    /// It was not run: the sweep was stopped.
    NotRun,
}

/// What is there and what is to be done.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlook {
    /// Points of this part of the batch.
    pub points: Vec<usize>,
    /// Of these, points with a result.
    pub done: usize,
    /// Of these, points that their cycle limit cut.
    pub cut: usize,
    /// Of these, points that failed, and why.
    pub failed: Vec<(usize, String)>,
    /// Points to run.
    pub to_run: Vec<usize>,
    /// Seconds that these take on one thread, as results that are there suggest; `None` when none is like
    /// them.
    pub seconds: Option<f64>,
}

/// Looks up what is done.
pub fn outlook(batch: &Batch, store: &Store, part: &Part) -> Outlook {
    let mine = |at: &usize| part.shard.is_none_or(|(nth, of)| key::shard(&batch.points()[*at].key, of) == nth);
    let points: Vec<usize> = (0..batch.points().len()).filter(mine).collect();
    let (mut done, mut cut, mut failed, mut to_run) = (0, 0, Vec::new(), Vec::new());
    for &at in &points {
        match store.result(&batch.points()[at].key) {
            Some(entry) if entry.head.state.counts() => {
                done += 1;
                cut += usize::from(entry.head.state == State::Cut);
            }
            Some(entry) => {
                failed.push((at, entry.head.why.clone().unwrap_or_default()));
                if !part.keep_failed {
                    to_run.push(at);
                }
            }
            None => to_run.push(at),
        }
    }
    let known: Vec<f64> = estimates(batch, store, &to_run).into_iter().flatten().collect();
    // Points of which nothing is known take as long as the others.
    let seconds = (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64 * to_run.len() as f64);
    Outlook { points, done, cut, failed, to_run, seconds }
}

/// Seconds that points take: the mean of results with the same workload and content, else of the same
/// workload by size.
fn estimates(batch: &Batch, store: &Store, points: &[usize]) -> Vec<Option<f64>> {
    // Sums of seconds, and of points or bytes.
    let mut of_content: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    let mut of_name: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    for head in store.results().map(|entry| &entry.head) {
        let (Some(seconds), Some(content), Some(name)) = (head.seconds, &head.content, &head.workload) else {
            continue;
        };
        let sum = of_content.entry(content).or_default();
        *sum = [sum[0] + seconds, sum[1] + 1.0];
        let sum = of_name.entry(name).or_default();
        *sum = [sum[0] + seconds, sum[1] + head.bytes.unwrap_or(1).max(1) as f64];
    }
    let one = |&at: &usize| {
        let (name, content, bytes) = batch.content(at);
        let exact = of_content.get(content).map(|[seconds, count]| seconds / count);
        exact.or_else(|| of_name.get(name).map(|[seconds, of]| seconds / of * bytes as f64))
    };
    points.iter().map(one).collect()
}

/// What came of a part of a batch.
#[derive(Debug)]
pub struct Report {
    /// What came of each point that was to run, in the order of [`Outlook::to_run`].
    pub fates: Vec<Fate>,
    /// Why results could not be written.
    pub broken: Option<String>,
}

struct Shared<'a, 's> {
    batch: &'a Batch,
    author: Author,
    orders: Sender<Order>,
    claims: Claims<'s>,
    broken: &'a Mutex<Option<String>>,
    sweep: &'a Workers<'a>,
    references: SharedParts<'a>,
}

/// How long to wait at most before looking again whether another process is done.
const AGAIN: Duration = Duration::from_millis(100);

/// What points need: work in microseconds where that is known of all, else as the batch says where that is
/// known of all, else in bytes: the unit must be the same.
fn needs(batch: &Batch, points: &[usize], seconds: &[Option<f64>]) -> Vec<Need> {
    let (timed, told) = (seconds.iter().all(Option::is_some), points.iter().all(|&at| batch.points()[at].work > 0));
    let need = |(&at, seconds): (&usize, &Option<f64>)| {
        let bytes = batch.content(at).2;
        let work = match seconds {
            Some(seconds) if timed => (seconds * 1e6) as u64,
            _ if told => batch.points()[at].work,
            _ => bytes,
        };
        let caches = batch.cache_bytes(at);
        Need { work, bytes: super::host::memory_of(bytes).saturating_add(caches) }
    };
    points.iter().zip(seconds).map(need).collect()
}

/// Simulates a point whose turn it is.
fn simulate(batch: &Batch, shared: &SharedParts<'_>, point: usize, turn: &Turn<'_>, sweep: &Workers<'_>) -> Done {
    let (stop, observer) = (sweep.stop, Some(turn.observer));
    shared.within(batch, point, |references, beginnings| {
        let (threads, auto, beginnings) = (turn.threads, sweep.auto, Some(beginnings));
        let conduct = Conduct { threads, auto, stop, observer, references, beginnings, ..Conduct::default() };
        match batch.experiment(point) {
            Ok(experiment) => Done::of(experiment.run(&conduct).outcome),
            Err(faults) => Done::Failed { why: faults.to_string(), outcome: None },
        }
    })
}

/// Runs every point of a batch, and keeps nothing: what came of each, in their order.
pub fn without_store(batch: &Batch, sweep: &Workers<'_>) -> Vec<Done> {
    let points: Vec<usize> = (0..batch.points().len()).collect();
    let shared = SharedParts::new(batch, &points, Beginnings::default());
    let came = |turn: &Turn<'_>| {
        let result = simulate(batch, &shared, turn.point, turn, sweep);
        let instructions = result.counts().map(Outcome::warp_instructions);
        Came::Of { failed: matches!(result, Done::Failed { .. }), instructions, result }
    };
    let panicked = |why| Done::Failed { why, outcome: None };
    let done = run_each(&needs(batch, &points, &vec![None; points.len()]), sweep, came, panicked);
    done.into_iter().map(|done| done.unwrap_or(Done::NotRun)).collect()
}

/// What a store has of each point of a batch, in their order; [`Done::NotRun`] where it has nothing.
///
/// # Errors
/// A result cannot be read.
pub fn results(batch: &Batch, store: &Store) -> Result<Vec<Done>, String> {
    let one = |point: &super::batch::Point| {
        let Some(entry) = store.result(&point.key) else { return Ok(Done::NotRun) };
        let outcome = store.outcome(entry)?.map(Box::new);
        Ok(match (entry.head.state, outcome) {
            (State::Good, Some(outcome)) => Done::Good(outcome),
            (State::Cut, Some(outcome)) => Done::Cut(outcome),
            (_, outcome) => Done::Failed { why: entry.head.why.clone().unwrap_or_default(), outcome },
        })
    };
    batch.points().iter().map(one).collect()
}

/// Runs what is to be run. Afterwards the store has what came of it.
///
/// # Errors
/// Results cannot be written, before the first point ran.
pub fn run(
    batch: &Batch,
    store: &mut Store,
    outlook: &Outlook,
    part: &Part,
    sweep: &Workers<'_>,
) -> Result<Report, String> {
    let to_run = &outlook.to_run;
    if to_run.is_empty() {
        return Ok(Report { fates: Vec::new(), broken: None });
    }
    let writer = Writer::new(store.folder())?;
    store.leave_out(Some(&writer));
    let needs = needs(batch, to_run, &estimates(batch, store, to_run));
    let (orders, inbox) = Writer::orders();
    let files = BeginningFiles::new(store.folder(), writer.author().clone(), sweep.stop);
    let beginnings = Beginnings::shared_by(Box::new(move |key, make| files.of(key, make)));
    let (broken, lost) = (Mutex::new(None), Mutex::new(Vec::new()));
    let keys = batch.points().iter().map(|point| point.key.as_str()).collect();
    let order = in_order(&needs).into_iter().map(|nth| to_run[nth]).collect();
    let author = writer.author().clone();
    let shared = Shared {
        batch,
        claims: Claims::new(store, keys, order, author.clone(), part.keep_failed, orders.clone(), sweep.jobs()),
        author,
        orders,
        broken: &broken,
        sweep,
        references: SharedParts::new(batch, to_run, beginnings),
    };
    let could_not = |points: &[usize], why| {
        lock(&lost).extend_from_slice(points);
        lock(&broken).get_or_insert(why);
    };
    // The scope waits for the writer, which ends when `shared` is gone and no order can come.
    let (store, fates) = thread::scope(|scope| {
        scope.spawn(|| writer.serve(&inbox, &could_not));
        let fates = run_each(&needs, sweep, |turn| shared.one(to_run[turn.point], turn), Fate::Failed);
        let Shared { claims, .. } = shared;
        (claims.into_store(), fates)
    });
    let mut broken = broken.into_inner().unwrap_or_else(PoisonError::into_inner);
    let lost = lost.into_inner().unwrap_or_else(PoisonError::into_inner);
    // A point whose result could not be written counts as not run, whatever its worker returned.
    let came = |(at, fate): (&usize, Option<Fate>)| fate.filter(|_| !lost.contains(at)).unwrap_or(Fate::NotRun);
    let fates = to_run.iter().zip(fates).map(came).collect();
    // The writer is gone: its file is read from now on like those of other processes.
    store.leave_out(None);
    if let Err(why) = store.refresh() {
        broken.get_or_insert(why);
    }
    Ok(Report { fates, broken })
}

impl Shared<'_, '_> {
    #[expect(clippy::disallowed_methods, reason = "how long points take; no result depends on it")]
    fn one(&self, point: usize, turn: &Turn<'_>) -> Came<Fate> {
        let of = |result: Fate, instructions| {
            let failed = matches!(result, Fate::Failed(_));
            Came::Of { result, failed, instructions }
        };
        if lock(self.broken).is_some() {
            return of(Fate::NotRun, None);
        }
        let mut wait = Duration::from_millis(1);
        loop {
            match self.claims.known(point, turn.again) {
                Ok(Known::Done) => return of(Fate::Cached, None),
                Ok(Known::Failed(why)) => return of(Fate::Failed(why), None),
                Ok(Known::Begun) if !turn.again => return Came::Later,
                Ok(Known::Begun) => {
                    std::thread::sleep(wait);
                    wait = AGAIN.min(wait * 2);
                }
                Ok(Known::Own) => break,
                Err(why) => {
                    lock(self.broken).get_or_insert(why);
                    return of(Fate::NotRun, None);
                }
            }
            if self.sweep.stop.is_some_and(|stop: &AtomicBool| stop.load(Ordering::Relaxed)) {
                return of(Fate::NotRun, None);
            }
        }
        // What points take says how many of them one look at the folder is to serve.
        let from = Instant::now();
        let done = self.simulate(point, turn);
        self.claims.ran(from.elapsed());
        let instructions = done.counts().map(Outcome::warp_instructions);
        of(self.keep(point, &done), instructions)
    }

    /// What came of a simulation. One that panics has failed, and that is kept too.
    fn simulate(&self, point: usize, turn: &Turn<'_>) -> Done {
        let simulated =
            std::panic::AssertUnwindSafe(|| simulate(self.batch, &self.references, point, turn, self.sweep));
        std::panic::catch_unwind(simulated)
            .unwrap_or_else(|panic| Done::Failed { why: super::runner::told(&*panic), outcome: None })
    }

    /// Hands what came of a point to the thread that writes.
    fn keep(&self, point: usize, done: &Done) -> Fate {
        let (name, content, bytes) = self.batch.content(point);
        let Some(record) = Record::done(&self.batch.points()[point].key, name, content, bytes, done) else {
            return Fate::NotRun;
        };
        let kept = self.author.line(&record).and_then(|(line, _)| {
            let keep = Order::Keep { point, line };
            self.orders.send(keep).map_err(|_| "the thread that writes results has ended".to_owned())
        });
        if let Err(why) = kept {
            lock(self.broken).get_or_insert(why);
            return Fate::NotRun;
        }
        match done {
            Done::Failed { why, .. } => Fate::Failed(why.clone()),
            Done::Cut(_) => Fate::Cut,
            _ => Fate::Ran,
        }
    }
}
