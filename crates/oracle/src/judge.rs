//! Takes images one by one through recovery and every rule, on all threads.
//!
//! ```text
//!  points or choices ─ hash ─> distinct images ─ chunks ─> [survived ─ recovery ─> recovered ─> rules] ─> verdict
//! ```
//! Equal images are judged once: first all hashes are taken, then each distinct image is judged at the first
//! point that has it. (Images are equal when as many launches had begun, too: a transaction's elements count
//! from its launch on.) Chunks do not depend on the number of threads, and failures are sorted, so neither
//! does the verdict.
//!
//! Source: `fail -> recover -> check` as in XFDetector (ASPLOS'20). Invariants: an image is judged by its
//! bytes alone. Not modelled: time that recovery takes.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rayon::prelude::*;

use super::allowed::Allowed;
use super::crash::{BeyondEnd, CrashStates, Plan, hash_of};
use super::cuts::{self, Cuts};
use super::epochs::EpochStates;
use super::order::RunOrder;
use super::overtaking::Overtaking;
use super::undo::UndoRule;
use super::verdict::{ConditionCount, Failure, Finding, Level, Property, Verdict, WrongValue};
use super::{Regions, mix};
use durawarp_persist::image::PmImage;
use durawarp_persist::undo::RecoveryStep;

/// Pieces of work, each of which starts with a replay.
const CHUNKS: usize = 64;
/// How many images are judged between two reports of progress.
const REPORT: u64 = 32;

/// Why a condition of the caller's does not hold on an image.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Violation {
    /// In words; perhaps none, where none were wanted.
    pub what: String,
    /// The values that show it.
    pub values: Vec<WrongValue>,
}

impl Violation {
    /// A violation described in words alone.
    pub fn in_words(what: String) -> Violation {
        Violation { what, values: Vec::new() }
    }
}

/// A condition of the caller's on images.
pub trait Check: Sync {
    /// What it is called in a verdict.
    fn name(&self) -> &str;

    /// Judges the image after recovery, `recovered`, against the one before, `survived`.
    ///
    /// # Errors
    /// It is not.
    fn judge(&self, survived: &PmImage, recovered: &PmImage) -> Result<(), Violation>;

    /// The same, with words only if `told`: of very many images few are reported.
    ///
    /// # Errors
    /// It is not; perhaps without words.
    fn judge_briefly(&self, survived: &PmImage, recovered: &PmImage, told: bool) -> Result<(), Violation> {
        let _ = told;
        self.judge(survived, recovered)
    }

    /// Whether a violation is a failure; else it is only counted.
    fn binds(&self) -> bool {
        true
    }
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

    fn judge(&self, _: &PmImage, recovered: &PmImage) -> Result<(), Violation> {
        (self.holds)(recovered).map_err(Violation::in_words)
    }
}

/// Software that runs at boot and changes the image. It tells its durable steps, in order, where it is to be
/// cut off (P8): several sequences where they may become durable in several orders.
pub type Recovery<'a> = &'a (dyn Fn(&mut PmImage) -> Result<Vec<Vec<RecoveryStep>>, String> + Sync);

/// What images are judged by.
#[derive(Clone, Copy, Default)]
pub struct Rules<'a> {
    /// Undo logging (P3 and P8); its own recovery runs unless there is another.
    pub undo: Option<&'a UndoRule>,
    /// What runs at boot, in place of the undo log's own recovery.
    pub recovery: Option<Recovery<'a>>,
    /// Cut `recovery` off after its steps and run it again (P8). For an undo log's own recovery its rule says
    /// so.
    pub double: Option<Cuts>,
    /// Conditions on the result.
    pub checks: &'a [&'a dyn Check],
    /// States are judged once this many launches have begun: 1 when the host first writes the input.
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

/// What was found on an image.
struct Judged {
    found: Vec<Finding>,
    /// Checks that do not hold, by number, in words where these are wanted; none were looked at when recovery
    /// failed.
    violated: Option<Vec<(usize, Violation)>>,
}

impl Rules<'_> {
    /// Judges one image; `recovered` is overwritten with the image after recovery. With `order`, findings are
    /// described with witnesses; `known` are the earlier results of checks, whose first violations are
    /// described.
    fn judge(
        &self,
        survived: &PmImage,
        begun: u32,
        recovered: &mut PmImage,
        order: Option<&RunOrder<'_>>,
        known: &[ConditionCount],
    ) -> Judged {
        let mut found = Vec::new();
        if recovered.write(survived.base(), survived.bytes()).is_err() {
            *recovered = survived.clone();
        }
        // A recovery of the caller takes the place of the undo log's own recovery.
        let own = |image: &mut PmImage| self.undo.map_or(Ok(Vec::new()), |undo| Ok(vec![undo.recover(image)?]));
        let recovery = self.recovery.unwrap_or(&own);
        // Without a recovered image no other rule has anything to judge.
        let sequences = match recovery(recovered) {
            Ok(sequences) => sequences,
            Err(what) => {
                found.push(Finding::in_words(Property::Recovery, what));
                return Judged { found, violated: None };
            }
        };
        if let Some(undo) = self.undo {
            undo.judge(survived, begun, recovered, order, &mut found);
        }
        // A second failure, during recovery: cut off after some of its steps and begun again, it must come to
        // the same image.
        for steps in &sequences {
            match (self.recovery, self.undo, self.double) {
                (Some(recovery), _, Some(kind)) => {
                    let again = |image: &mut PmImage| recovery(image).map(drop);
                    found.extend(cuts::judge(kind, survived, steps, recovered, &again));
                }
                (None, Some(undo), _) => undo.judge_cuts(survived, steps, recovered, &mut found),
                _ => {}
            }
        }
        let mut violated = Vec::new();
        for (number, check) in self.checks.iter().enumerate() {
            // Words cost time and few are reported: only those of a condition's first violation, or where
            // findings are described.
            let told = known[number].first.is_none() || order.is_some() && check.binds();
            let Err(violation) = check.judge_briefly(survived, recovered, told) else { continue };
            if check.binds() {
                let Violation { what, values } = violation.clone();
                let property = Property::Check(check.name().to_owned());
                found.push(Finding { values, ..Finding::in_words(property, what) });
            }
            violated.push((number, violation));
        }
        Judged { found, violated: Some(violated) }
    }

    /// Counts of the checks, all 0.
    fn conditions(&self) -> Vec<ConditionCount> {
        self.checks.iter().map(|check| ConditionCount::new(check.name())).collect()
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
struct ChunkVerdict {
    judged: u64,
    passed: u64,
    failed: u64,
    failures: Vec<Failure>,
    conditions: Vec<ConditionCount>,
}

/// What a worker judges with.
struct Bench<'a> {
    rules: &'a Rules<'a>,
    order: &'a RunOrder<'a>,
    watch: &'a Watch<'a>,
    done: &'a AtomicU64,
    total: u64,
    recovered: PmImage,
    part: ChunkVerdict,
}

impl<'a> Bench<'a> {
    fn new(
        rules: &'a Rules<'a>,
        order: &'a RunOrder<'a>,
        watch: &'a Watch<'a>,
        total: (&'a AtomicU64, u64),
        image: &PmImage,
    ) -> Self {
        let part = ChunkVerdict { conditions: rules.conditions(), ..ChunkVerdict::default() };
        Bench { rules, order, watch, done: total.0, total: total.1, recovered: image.clone(), part }
    }

    fn stopped(&self) -> bool {
        self.watch.stop.load(Ordering::Relaxed)
    }

    fn judge(&mut self, survived: &PmImage, begun: u32, failure: &Failure) {
        // Witnesses are sought for the failures that are kept.
        let order = (self.part.failures.len() < self.rules.keep).then_some(self.order);
        let Judged { found, violated } =
            self.rules.judge(survived, begun, &mut self.recovered, order, &self.part.conditions);
        let of_recovery = |finding: &Finding| matches!(finding.property, Property::Recovery | Property::Idempotent);
        if self.stopped() && found.iter().any(of_recovery) {
            // Recovery was stopped, too: nothing is known of this image.
            return;
        }
        self.part.judged += 1;
        if let Some(violated) = violated {
            count(&mut self.part.conditions, violated, failure);
        }
        self.part.passed += u64::from(found.is_empty());
        self.part.failed += found.len() as u64;
        for finding in found {
            if self.part.failures.len() < self.rules.keep {
                self.part.failures.push(failure_of(finding, failure));
            }
        }
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(REPORT) || done == self.total {
            (self.watch.progress)(done, self.total);
        }
    }
}

/// Adds what one image came to.
fn count(conditions: &mut [ConditionCount], violated: Vec<(usize, Violation)>, place: &Failure) {
    conditions.iter_mut().for_each(|count| count.held += 1);
    for (number, Violation { what, values }) in violated {
        let count = &mut conditions[number];
        count.held -= 1;
        count.violated += 1;
        if count.first.is_none() {
            let property = Property::Check(count.name.clone());
            count.first = Some(Failure { property, what, values, ..place.clone() });
        }
    }
}

/// A failure but for what was found.
fn place(level: Level, point: u64, choice: Option<u64>, time: u64) -> Failure {
    let (property, what, values, witness) = (Property::Facts, String::new(), Vec::new(), None);
    Failure { property, level, point, choice, time, what, values, witness }
}

/// A finding at its place.
fn failure_of(finding: Finding, place: &Failure) -> Failure {
    let Finding { property, what, values, witness } = finding;
    Failure { property, what, values, witness, ..place.clone() }
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

fn sum(mut verdict: Verdict, parts: Vec<ChunkVerdict>, rules: &Rules<'_>) -> Verdict {
    for part in parts {
        verdict.judged += part.judged;
        verdict.passed += part.passed;
        verdict.failed += part.failed;
        verdict.failures.extend(part.failures);
        for (all, count) in verdict.conditions.iter_mut().zip(part.conditions) {
            all.held += count.held;
            all.violated += count.violated;
            // Parts come in the order of their places.
            all.first = all.first.take().or(count.first);
        }
    }
    verdict.stopped = verdict.judged < verdict.distinct;
    verdict.exhaustive &= !verdict.stopped;
    verdict.settle(rules.keep)
}

/// Level A: judges the states that the machine really left, at the points of a plan; a failure of the
/// program's own description (P3) comes first. `order` names witnesses.
///
/// # Errors
/// The plan names a point beyond the last one.
pub fn judge_actual(
    states: &CrashStates<'_>,
    order: &RunOrder<'_>,
    rules: &Rules<'_>,
    regions: &Regions,
    plan: Plan,
    seed: u64,
    watch: &Watch<'_>,
) -> Result<Verdict, BeyondEnd> {
    // A point before the launches from which rules hold is not judged, unless it was asked for by number.
    let mut planned = states.points(plan, &regions.flag, seed)?;
    let counts = |point: &u64| states.launches_begun(*point) >= rules.launches;
    planned.points.retain(|point| matches!(plan, Plan::Only(_)) || counts(point));
    let mut cursor = states.cursor(planned.points.first().copied().unwrap_or_default())?;
    // Points ascend, so one cursor hashes all of them in one pass over the changes.
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
        conditions: rules.conditions(),
        ..Verdict::default()
    };
    let (done, total) = (AtomicU64::new(0), verdict.distinct);
    // Each chunk has a cursor of its own and touches nothing of the others, but the count of what is done.
    let judge = |chunk: Range<usize>| {
        let mut bench = Bench::new(rules, order, watch, (&done, total), states.initial());
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
        conditions: rules.conditions(),
        ..Verdict::default()
    };
    let (done, total) = (AtomicU64::new(0), verdict.distinct);
    let judge = |chunk: Range<usize>| {
        let mut bench = Bench::new(rules, allowed.order(), watch, (&done, total), allowed.initial());
        let mut walk = allowed.walk();
        // Places are sorted by instant: the choices of an instant are made once for all of its images.
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
    // A stop during the first pass left images without a hash; no chunk has noticed that.
    let mut verdict = sum(verdict, parts, rules);
    verdict.stopped |= watch.stop.load(Ordering::Relaxed);
    verdict.exhaustive &= !verdict.stopped;
    verdict
}

/// Level B where hardware orders epochs: judges the states that this order allows.
pub fn judge_epochs(states: &EpochStates<'_>, order: &RunOrder<'_>, rules: &Rules<'_>, watch: &Watch<'_>) -> Verdict {
    let (instants, left_out) = states.instants();
    let all: Vec<(u32, u32)> = instants
        .iter()
        .flat_map(|&instant| (0..states.choices() as u32).map(move |choice| (instant as u32, choice)))
        .collect();
    // Images are made twice, once for their hash, as they are too many to be kept.
    let hash = |&(instant, choice): &(u32, u32)| {
        let stopped = watch.stop.load(Ordering::Relaxed);
        (!stopped).then(|| (hash_of(&states.image(instant as usize, choice.into())), (instant, choice)))
    };
    let distinct = first_of_each(all.par_iter().filter_map(hash).collect());
    let verdict = Verdict {
        points: all.len() as u64,
        distinct: distinct.len() as u64,
        left_out,
        conditions: rules.conditions(),
        ..Verdict::default()
    };
    let (done, total) = (AtomicU64::new(0), verdict.distinct);
    let judge = |chunk: Range<usize>| {
        let mut bench = Bench::new(rules, order, watch, (&done, total), states.initial());
        for &(instant, choice) in &distinct[chunk] {
            if bench.stopped() {
                break;
            }
            let (instant, choice) = (instant as usize, u64::from(choice));
            let failure = place(Level::Allowed, instant as u64, Some(choice), states.time(instant));
            bench.judge(&states.image(instant, choice), 0, &failure);
        }
        bench.part
    };
    let parts = self::chunks(distinct.len()).into_par_iter().map(judge).collect();
    let mut verdict = sum(verdict, parts, rules);
    verdict.stopped |= watch.stop.load(Ordering::Relaxed);
    verdict
}

/// Judges one such state again, by the instant and number of a failure; none beyond the last.
pub fn judge_epoch_choice(
    states: &EpochStates<'_>,
    order: &RunOrder<'_>,
    rules: &Rules<'_>,
    instant: usize,
    choice: u64,
) -> Option<Verdict> {
    if instant > states.persists() || choice >= states.choices() {
        return None;
    }
    let place = place(Level::Allowed, instant as u64, Some(choice), states.time(instant));
    Some(judge_one(&states.image(instant, choice), 0, rules, order, &place))
}

/// Judges one allowed state again, by the instant and number of a failure; none beyond the last number.
pub fn judge_choice(allowed: &Allowed<'_>, rules: &Rules<'_>, instant: usize, choice: u64) -> Option<Verdict> {
    let place = place(Level::Allowed, instant as u64, Some(choice), allowed.time(instant));
    Some(judge_one(&allowed.image(instant, choice)?, allowed.launches_begun(instant), rules, allowed.order(), &place))
}

/// Level C: judges the states in which one store is durable that its warp could have issued earlier, `count`
/// of them.
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
        conditions: rules.conditions(),
        ..Verdict::default()
    };
    // Images are not hashed first as in the other levels: each store has one image, which is made only when
    // it is judged.
    let (done, total) = (AtomicU64::new(0), verdict.distinct);
    let judge = |chunk: Range<usize>| {
        let mut bench = Bench::new(rules, overtaking.order(), watch, (&done, total), overtaking.initial());
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

/// Judges one state of level C again; none when fact `store` is not a store.
pub fn judge_store(overtaking: &Overtaking<'_>, rules: &Rules<'_>, store: usize) -> Option<Verdict> {
    let image = overtaking.image(store)?;
    let place = place(Level::Overtaking, store as u64, None, overtaking.time(store));
    Some(judge_one(&image, overtaking.launches_begun(store), rules, overtaking.order(), &place))
}

fn judge_one(survived: &PmImage, begun: u32, rules: &Rules<'_>, order: &RunOrder<'_>, place: &Failure) -> Verdict {
    let mut conditions = rules.conditions();
    let Judged { found, violated } = rules.judge(survived, begun, &mut survived.clone(), Some(order), &conditions);
    if let Some(violated) = violated {
        count(&mut conditions, violated, place);
    }
    let failures: Vec<Failure> = found.into_iter().map(|finding| failure_of(finding, place)).collect();
    let (failed, passed) = (failures.len() as u64, u64::from(failures.is_empty()));
    Verdict { points: 1, distinct: 1, judged: 1, passed, failed, failures, conditions, ..Verdict::default() }
}

#[cfg(test)]
mod tests;
