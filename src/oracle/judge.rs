//! The judge's bench: takes images one by one through recovery and every rule, on as many threads as there are.
//!
//! ```text
//!  points or choices ─ hash ─> distinct images ─ chunks ─> [survived ─ recovery ─> recovered ─> rules] ─> verdict
//! ```
//! Equal images are judged once: first all hashes are taken, then each distinct image is judged at the first point that
//! has it. (Images are equal when as many launches had begun, too: a transaction's elements count from its launch on.)
//! Chunks do not depend on the number of threads, and failures are sorted, so neither does the verdict.
//!
//! Source: `fail -> recover -> check` as in XFDetector (ASPLOS'20). Invariants: an image is judged by its bytes alone.
//! Not modelled: time that recovery takes.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rayon::prelude::*;

use super::allowed::Allowed;
use super::crash::{BeyondEnd, CrashStates, Plan};
use super::order::Order;
use super::overtaking::Overtaking;
use super::undo::{Finding, UndoRule};
use super::verdict::{Failure, Level, Property, Verdict};
use super::{Regions, mix};
use crate::persist::image::PmImage;

/// Pieces of work, each of which starts with a replay.
const CHUNKS: usize = 64;
/// How many images are judged between two reports of progress.
const REPORT: u64 = 32;

/// A condition of the caller's on images.
pub trait Check: Sync {
    /// What it is called in a verdict.
    fn name(&self) -> &str;

    /// Whether what recovery made of what survived is right; else what is wrong.
    ///
    /// # Errors
    /// It is not.
    fn judge(&self, survived: &PmImage, recovered: &PmImage) -> Result<(), String>;
}

/// A condition on the recovered image, from a closure.
pub struct Condition<F> {
    name: String,
    holds: F,
}

impl<F: Fn(&PmImage) -> Result<(), String> + Sync> Condition<F> {
    /// A condition with a name.
    pub fn new(name: &str, holds: F) -> Condition<F> {
        Condition { name: name.to_owned(), holds }
    }
}

impl<F> fmt::Debug for Condition<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Condition({})", self.name)
    }
}

impl<F: Fn(&PmImage) -> Result<(), String> + Sync> Check for Condition<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn judge(&self, _: &PmImage, recovered: &PmImage) -> Result<(), String> {
        (self.holds)(recovered)
    }
}

/// Software that runs at boot and changes the image.
pub type Recovery<'a> = &'a (dyn Fn(&mut PmImage) -> Result<(), String> + Sync);

/// What images are judged by.
#[derive(Clone, Copy, Default)]
pub struct Rules<'a> {
    /// Undo logging (P3 and P8); its own recovery runs unless there is another.
    pub undo: Option<&'a UndoRule>,
    /// What runs at boot, in place of the undo log's own recovery.
    pub recovery: Option<Recovery<'a>>,
    /// Conditions on the result.
    pub checks: &'a [&'a dyn Check],
    /// States are judged only when so many launches had begun: 1 when the host first has to put the input there.
    pub launches: u32,
    /// How many failures to keep.
    pub keep: usize,
}

impl fmt::Debug for Rules<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.checks.iter().map(|check| check.name()).collect();
        let (undo, recovery) = (self.undo.is_some(), self.recovery.is_some());
        write!(f, "Rules(undo {undo}, recovery {recovery}, {names:?}, keep {})", self.keep)
    }
}

impl Rules<'_> {
    /// Judges one image; `recovered` is room for what recovery makes of it.
    fn judge(
        &self,
        survived: &PmImage,
        begun: u32,
        recovered: &mut PmImage,
        order: Option<&Order<'_>>,
    ) -> Vec<Finding> {
        let mut found = Vec::new();
        if recovered.write(survived.base(), survived.bytes()).is_err() {
            *recovered = survived.clone();
        }
        let steps = match (self.recovery, self.undo) {
            (Some(recovery), _) => recovery(recovered).map(|()| Vec::new()),
            (None, Some(undo)) => undo.recover(recovered),
            (None, None) => Ok(Vec::new()),
        };
        let steps = match steps {
            Ok(steps) => steps,
            Err(what) => return vec![Finding { property: Property::Recovery, what, witness: None }],
        };
        if let Some(undo) = self.undo {
            undo.judge(survived, begun, recovered, order, &mut found);
            undo.judge_cuts(survived, &steps, recovered, &mut found);
        }
        for check in self.checks {
            if let Err(what) = check.judge(survived, recovered) {
                found.push(Finding { property: Property::Check(check.name().to_owned()), what, witness: None });
            }
        }
        found
    }
}

/// How a judgement is watched and stopped.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Set it, and the judgement ends soon with what was judged so far.
    pub stop: &'a AtomicBool,
    /// Told how many images are judged, of how many.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watch(stop {:?})", self.stop)
    }
}

/// What a chunk came to.
#[derive(Default)]
struct Part {
    judged: u64,
    passed: u64,
    failed: u64,
    failures: Vec<Failure>,
}

/// What a worker judges with.
struct Bench<'a> {
    rules: &'a Rules<'a>,
    order: &'a Order<'a>,
    watch: &'a Watch<'a>,
    done: &'a AtomicU64,
    total: u64,
    recovered: PmImage,
    part: Part,
}

impl Bench<'_> {
    fn stopped(&self) -> bool {
        self.watch.stop.load(Ordering::Relaxed)
    }

    fn judge(&mut self, survived: &PmImage, begun: u32, failure: &Failure) {
        // Witnesses are sought for the failures that are kept.
        let order = (self.part.failures.len() < self.rules.keep).then_some(self.order);
        let found = self.rules.judge(survived, begun, &mut self.recovered, order);
        self.part.judged += 1;
        self.part.passed += u64::from(found.is_empty());
        self.part.failed += found.len() as u64;
        for Finding { property, what, witness } in found {
            if self.part.failures.len() < self.rules.keep {
                self.part.failures.push(Failure { property, what, witness, ..failure.clone() });
            }
        }
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(REPORT) || done == self.total {
            (self.watch.progress)(done, self.total);
        }
    }
}

/// A failure but for what was found.
fn place(level: Level, point: u64, choice: Option<u64>, time: u64) -> Failure {
    Failure { property: Property::Facts, level, point, choice, time, what: String::new(), witness: None }
}

/// Cuts `count` items into chunks, in order.
fn chunks(count: usize) -> Vec<Range<usize>> {
    let size = count.div_ceil(CHUNKS).max(1);
    (0..count).step_by(size).map(|start| start..(start + size).min(count)).collect()
}

/// What rules say of an image depends on how many launches had begun, too.
fn with_launches(hash: u128, begun: u32) -> u128 {
    hash.wrapping_add(u128::from(mix(u64::from(begun))) << 64 | u128::from(mix(!u64::from(begun))))
}

/// For each hash its first place, in the order of places.
fn first_of_each<P: Ord + Copy + Send>(mut hashes: Vec<(u128, P)>) -> Vec<P> {
    hashes.par_sort_unstable();
    hashes.dedup_by_key(|(hash, _)| *hash);
    let mut places: Vec<P> = hashes.into_iter().map(|(_, place)| place).collect();
    places.sort_unstable();
    places
}

fn sum(mut verdict: Verdict, parts: Vec<Part>, rules: &Rules<'_>) -> Verdict {
    for part in parts {
        verdict.judged += part.judged;
        verdict.passed += part.passed;
        verdict.failed += part.failed;
        verdict.failures.extend(part.failures);
    }
    verdict.stopped = verdict.judged < verdict.distinct;
    verdict.exhaustive &= !verdict.stopped;
    verdict.settle(rules.keep)
}

/// Level A: judges the states that the machine really left, at the points of a plan; a failure of the program's own
/// description (P3) comes first. `order` names witnesses.
///
/// # Errors
/// The plan asks for a point that there is not.
pub fn judge_actual(
    states: &CrashStates<'_>,
    order: &Order<'_>,
    rules: &Rules<'_>,
    regions: &Regions,
    plan: Plan,
    seed: u64,
    watch: &Watch<'_>,
) -> Result<Verdict, BeyondEnd> {
    let mut planned = states.points(plan, &regions.flag, seed)?;
    let counts = |point: &u64| states.launches_begun(*point) >= rules.launches;
    planned.points.retain(|point| matches!(plan, Plan::Only(_)) || counts(point));
    let mut cursor = states.cursor(planned.points.first().copied().unwrap_or_default())?;
    let hash = |&point: &u64| {
        cursor.advance_to(point);
        (with_launches(cursor.hash(), states.launches_begun(point)), point)
    };
    let distinct = first_of_each(planned.points.iter().map(hash).collect());
    let failures = rules.undo.map(UndoRule::overlaps).unwrap_or_default();
    let verdict = Verdict {
        points: planned.points.len() as u64,
        distinct: distinct.len() as u64,
        left_out: ((0..=states.changes()).filter(counts).count() as u64).saturating_sub(planned.points.len() as u64),
        exhaustive: planned.exhaustive,
        failed: failures.len() as u64,
        failures,
        ..Verdict::default()
    };
    let (done, total) = (AtomicU64::new(0), verdict.distinct);
    let judge = |chunk: Range<usize>| {
        let recovered = states.initial().clone();
        let mut bench = Bench { rules, order, watch, done: &done, total, recovered, part: Part::default() };
        let Ok(mut cursor) = states.cursor(distinct[chunk.start]) else { return bench.part };
        for &point in &distinct[chunk] {
            if bench.stopped() {
                break;
            }
            cursor.advance_to(point);
            let time = states.time(point).unwrap_or_default();
            bench.judge(cursor.image(), states.launches_begun(point), &place(Level::Actual, point, None, time));
        }
        bench.part
    };
    let parts = chunks(distinct.len()).into_par_iter().map(judge).collect();
    Ok(sum(verdict, parts, rules))
}

/// Level B: judges the states that the model allows.
pub fn judge_allowed(allowed: &Allowed<'_>, rules: &Rules<'_>, watch: &Watch<'_>) -> Verdict {
    let (mut instants, left_out) = allowed.instants();
    instants.retain(|&instant| allowed.launches_begun(instant) >= rules.launches);
    let chunks = chunks(instants.len());
    // First all hashes, then each distinct image where it comes first.
    let hash = |chunk: &Range<usize>| {
        let mut walk = allowed.walk();
        let mut hashes = Vec::new();
        let mut exhaustive = true;
        for &instant in &instants[chunk.clone()] {
            if watch.stop.load(Ordering::Relaxed) {
                break;
            }
            walk.advance_to(instant);
            let choices = walk.choices();
            exhaustive &= choices.is_exhaustive();
            let numbered = (0..).zip(walk.hashes(&choices));
            let begun = allowed.launches_begun(instant);
            let placed = |(choice, hash): (u32, u128)| (with_launches(hash, begun), (instant as u32, choice));
            hashes.extend(numbered.map(placed));
        }
        (hashes, exhaustive)
    };
    let hashed: Vec<(Vec<_>, bool)> = chunks.par_iter().map(hash).collect();
    let exhaustive = hashed.iter().all(|(_, exhaustive)| *exhaustive);
    let hashes: Vec<(u128, (u32, u32))> = hashed.into_iter().flat_map(|(hashes, _)| hashes).collect();
    let points = hashes.len() as u64;
    let distinct = first_of_each(hashes);
    let verdict = Verdict {
        points,
        distinct: distinct.len() as u64,
        left_out,
        exhaustive: exhaustive && left_out == 0,
        ..Verdict::default()
    };
    let (done, total) = (AtomicU64::new(0), verdict.distinct);
    let judge = |chunk: Range<usize>| {
        let order = allowed.order();
        let recovered = allowed.initial().clone();
        let mut bench = Bench { rules, order, watch, done: &done, total, recovered, part: Part::default() };
        let mut walk = allowed.walk();
        for same in distinct[chunk].chunk_by(|one, other| one.0 == other.0) {
            let instant = same[0].0 as usize;
            walk.advance_to(instant);
            let choices = walk.choices();
            for &(_, choice) in same {
                if bench.stopped() {
                    return bench.part;
                }
                let choice = u64::from(choice);
                let failure = place(Level::Allowed, instant as u64, Some(choice), allowed.time(instant));
                let begun = allowed.launches_begun(instant);
                walk.with(&choices, choice, |survived| bench.judge(survived, begun, &failure));
            }
        }
        bench.part
    };
    let parts = self::chunks(distinct.len()).into_par_iter().map(judge).collect();
    let mut verdict = sum(verdict, parts, rules);
    verdict.stopped |= watch.stop.load(Ordering::Relaxed);
    verdict.exhaustive &= !verdict.stopped;
    verdict
}

/// Judges one allowed state again, by the instant and number of a failure; none when there is no such number.
pub fn judge_choice(allowed: &Allowed<'_>, rules: &Rules<'_>, instant: usize, choice: u64) -> Option<Vec<Failure>> {
    let survived = allowed.image(instant, choice)?;
    let found = rules.judge(&survived, allowed.launches_begun(instant), &mut survived.clone(), Some(allowed.order()));
    let failure = place(Level::Allowed, instant as u64, Some(choice), allowed.time(instant));
    let failure = |Finding { property, what, witness }| Failure { property, what, witness, ..failure.clone() };
    Some(found.into_iter().map(failure).collect())
}

/// Level C: judges the states in which one store is durable that its warp could have issued earlier, `count` of them.
pub fn judge_overtaking(
    overtaking: &Overtaking<'_>,
    rules: &Rules<'_>,
    count: u64,
    seed: u64,
    watch: &Watch<'_>,
) -> Verdict {
    let (mut stores, left_out) = overtaking.stores(count, seed);
    stores.retain(|&store| overtaking.launches_begun(store) >= rules.launches);
    let verdict = Verdict {
        points: stores.len() as u64,
        distinct: stores.len() as u64,
        left_out,
        exhaustive: left_out == 0,
        ..Verdict::default()
    };
    let (done, total) = (AtomicU64::new(0), verdict.distinct);
    let judge = |chunk: Range<usize>| {
        let (order, recovered) = (overtaking.order(), overtaking.initial().clone());
        let mut bench = Bench { rules, order, watch, done: &done, total, recovered, part: Part::default() };
        for &store in &stores[chunk] {
            if bench.stopped() {
                break;
            }
            if let Some(survived) = overtaking.image(store) {
                let failure = place(Level::Overtaking, store as u64, None, overtaking.time(store));
                bench.judge(&survived, overtaking.launches_begun(store), &failure);
            }
        }
        bench.part
    };
    let parts = chunks(stores.len()).into_par_iter().map(judge).collect();
    sum(verdict, parts, rules)
}

/// Judges one state of level C again; none when there is no such store.
pub fn judge_store(overtaking: &Overtaking<'_>, rules: &Rules<'_>, store: usize) -> Option<Vec<Failure>> {
    let survived = overtaking.image(store)?;
    let begun = overtaking.launches_begun(store);
    let found = rules.judge(&survived, begun, &mut survived.clone(), Some(overtaking.order()));
    let failure = place(Level::Overtaking, store as u64, None, overtaking.time(store));
    let failure = |Finding { property, what, witness }| Failure { property, what, witness, ..failure.clone() };
    Some(found.into_iter().map(failure).collect())
}

#[cfg(test)]
mod tests;
