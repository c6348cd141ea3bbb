//! Level A of P4 at each crash point: the image after hardware recovery, recovery cut off, and the program's
//! conditions.
//!
//! One walk over the points keeps controllers' states and memory up with the facts, and memory as it should
//! be up with f. Facts are never taken back, so that recovery goes at least as far as it went from the point
//! before; and only lines of which something was held, written or committed since then can have become wrong:
//! a point costs what has changed. Every point is a state of its own, since a controller's state changed;
//! images after recovery differ only where f does, so resuming is judged once for each f.
//!
//! Source: P4 and P8 of the oracle's design. Invariants: f never falls along a run. Not modelled: power
//! failures within a tick.

mod resume;

use std::sync::atomic::Ordering;

use hashbrown::HashMap;

use super::super::crash::{BeyondEnd, Plan};
use super::super::judge::{Check, Violation, Watch};
use super::super::order::word_of;
use super::super::verdict::{ConditionCount, Failure, Level, Property, Verdict, Witness, WrongValue};
use super::super::{Draw, WORDS};
use super::gate::{Gates, Memory, step_of};
use super::recovery::{AtPowerFailure, GateStep, Reach, Recovered, reach, recover, recovered_line};
use super::{RegionFacts, RegionStore, words_of};
use durawarp_persist::journal::{Author, FactKind};
use durawarp_persist::vocab::RegionStep;
pub use resume::{Resumes, TwiceResumed, judge_resume};

/// Up to this many points all are judged, by default.
const EXHAUSTIVE: u64 = 1 << 18;
/// Points at which recovery is cut off, at most.
const CUT_POINTS: usize = 512;
/// The most places at which it is cut off at one point, and about how many steps are taken again there.
const CUTS: usize = 64;
const STEPS_AGAIN: usize = 1 << 10;
/// Points judged between two reports of progress.
const REPORT: u64 = 1 << 10;

/// Which states to judge.
#[derive(Debug, Clone, Copy)]
pub struct JudgeOptions {
    /// Crash points.
    pub plan: Plan,
    /// Cut recovery off.
    pub double: bool,
    /// Seed of what is drawn.
    pub seed: u64,
    /// Failures to keep.
    pub keep: usize,
}

/// A walk over crash points, forward only.
struct Walk<'f, 'a> {
    facts: &'f RegionFacts<'a>,
    point: u64,
    next_change: usize,
    gates: Gates,
    memory: Memory,
    /// Of each order, up to which region memory should have its stores.
    settled: Vec<u32>,
    /// How far recovery goes from here.
    reach: Reach,
}

impl<'f, 'a> Walk<'f, 'a> {
    fn new(facts: &'f RegionFacts<'a>) -> Walk<'f, 'a> {
        let (gates, memory) = (Gates::new(facts), Memory::new(facts.initial));
        let settled = vec![0; facts.names.len()];
        Walk { facts, point: 0, next_change: 0, gates, memory, settled, reach: Reach::default() }
    }

    fn advance_to(&mut self, point: u64) {
        while self.point < point.min(self.facts.changes()) {
            let end = self.facts.points[self.point as usize] as usize;
            for at in self.next_change..end {
                self.note(self.facts.changes[at]);
            }
            self.next_change = end;
            self.point += 1;
        }
    }

    fn note(&mut self, at: u32) {
        let fact = self.facts.fact(at);
        let Some(step) = step_of(fact) else {
            // The host's: durable, and meant to be, over what regions stored that were sure to commit by now.
            let sure = |region: &super::NotedRegion| u64::from(region.persisted) <= self.point + 1;
            let until: Vec<u32> =
                self.facts.regions.iter().map(|regions| regions.partition_point(sure) as u32).collect();
            self.settle(&until);
            let bytes = self.facts.bytes(fact);
            self.memory.write(fact.line, fact.mask, &bytes);
            self.memory.intend(fact.line, fact.mask, &bytes);
            return;
        };
        if matches!(step, RegionStep::Done | RegionStep::Committed)
            && let (Some(place), Some(region)) = (self.gates.place(self.facts, fact), fact.author.region())
        {
            // What it holds of the region is lost.
            self.touch_held(place, region, region + 1);
        }
        self.gates.note(self.facts, at, fact, step);
        if fact.mask != 0 {
            self.memory.touch(fact.line, fact.mask);
        }
        if matches!(step, RegionStep::Flushed | RegionStep::Spilled) {
            self.memory.write(fact.line, fact.mask, &self.facts.bytes(fact));
        }
    }

    /// What a gate holds, or has logged, of regions from one to another has to be compared again.
    fn touch_held(&mut self, place: usize, from: u32, to: u32) {
        let gate = &self.gates.gates[place];
        let held = gate.held.range(from..to.max(from)).flat_map(|(_, held)| held).map(|held| held.fact);
        let is_of = |&log: &u32| self.facts.fact(log).author.region().is_some_and(|of| (from..to).contains(&of));
        let logged = gate.log.iter().copied().filter(is_of);
        for fact in held.chain(logged) {
            let fact = self.facts.fact(fact);
            self.memory.touch(fact.line, fact.mask);
        }
    }

    /// How far recovery goes from here.
    fn recover(&mut self, hardware: &dyn AtPowerFailure) {
        let now = reach(self.facts, &self.gates, hardware, &self.reach);
        let before = std::mem::replace(&mut self.reach, now);
        for place in 0..self.gates.gates.len() {
            let (next, until) = (self.reach.next[place], self.reach.until[place]);
            let from = |before: &[u32]| before.get(place).copied().unwrap_or_default();
            let (was_next, was_until) = (from(&before.next), from(&before.until));
            if (next, until) != (was_next, was_until) {
                self.touch_held(place, was_next.min(was_until).min(next), until.max(next).max(was_until));
            }
        }
    }

    /// Memory should have the stores of the regions of each order before these. Regions of several orders go
    /// in the order of coherence.
    fn settle(&mut self, until: &[u32]) {
        let mut stores: Vec<RegionStore> = Vec::new();
        let mut orders = 0;
        for (order, &until) in until.iter().enumerate() {
            let regions = &self.facts.regions[order];
            let (from, until) = (self.settled[order] as usize, (until as usize).min(regions.len()));
            if from < until {
                orders += 1;
                stores.extend(regions[from..until].iter().flat_map(|region| &region.stores));
                self.settled[order] = until as u32;
            }
        }
        if orders > 1 {
            let version = |store: &RegionStore| {
                (store.program != super::NONE).then(|| self.facts.order.version_of(store.program as usize)).flatten()
            };
            stores.sort_by_key(version);
        }
        for store in stores {
            let fact = self.facts.fact(store.fact);
            self.memory.intend(fact.line, fact.mask, &self.facts.bytes(fact));
        }
    }

    fn over(&self, steps: &[GateStep]) -> HashMap<u32, u64> {
        let mut over = HashMap::new();
        for step in steps {
            step.write(self.facts, &self.memory, &mut over);
        }
        over
    }

    /// What is wrong after recovery, from all its steps and all of memory: words by address.
    #[cfg(test)]
    fn wrong_from_nothing(&self, hardware: &dyn AtPowerFailure) -> Vec<u64> {
        let recovered = recover(self.facts, &self.gates, hardware);
        assert_eq!(recovered.next, self.reach.next);
        let image = self.memory.image(&self.over(&recovered.steps));
        let words = image.bytes().chunks(8).zip((image.base()..).step_by(8));
        let wrong = words.filter(|(word, at)| {
            word.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)) != self.memory.word_wanted(*at)
        });
        wrong.map(|(_, at)| at).collect()
    }

    fn place(&self, property: Property) -> Failure {
        let (point, time) = (self.point, self.facts.time(self.point));
        let (level, choice, what) = (Level::Actual, None, String::new());
        Failure { property, level, point, choice, time, what, values: Vec::new(), witness: None }
    }

    /// Judges the point; true when regions committed that had not before.
    fn judge(&mut self, hardware: &dyn AtPowerFailure, found: &mut Vec<Failure>, detailed: bool) -> bool {
        self.recover(hardware);
        let mut agreed = Vec::with_capacity(self.settled.len());
        for (order, next) in self.reach.next.chunks(self.facts.controllers).enumerate() {
            let (Some(&least), Some(&most)) = (next.iter().min(), next.iter().max()) else { continue };
            let of_order = self.facts.of_order(order);
            let mut fail = |what: String| found.push(Failure { what, ..self.place(Property::Regions) });
            if least != most {
                let holder = |of: u32| next.iter().position(|&next| next == of).unwrap_or_default();
                fail(format!(
                    "flush IDs{of_order} differ after recovery: {most} at controller {}, {least} at controller {}",
                    holder(most),
                    holder(least)
                ));
            }
            if least < self.settled[order] {
                let before = self.settled[order];
                fail(format!(
                    "recovery commits the regions{of_order} below {least}, and did those below {before} earlier"
                ));
            }
            agreed.push(least);
        }
        let goes_on = agreed.iter().zip(&self.settled).any(|(agreed, settled)| agreed > settled);
        // Memory as it should be goes on to the new f before it is compared.
        self.settle(&agreed);
        if !found.is_empty() {
            return goes_on;
        }
        let (facts, gates, reach) = (self.facts, &self.gates, &self.reach);
        self.memory.compare(|address, line| recovered_line(facts, gates, reach, hardware, address, line));
        if let Some((&address, &line)) = self.memory.wrong.first_key_value() {
            let mut failure = self.place(Property::Regions);
            if detailed {
                (failure.what, failure.values, failure.witness) = self.explain(line, address, &agreed, hardware);
            }
            found.push(failure);
        }
        goes_on
    }

    /// Describes a wrong word, and the stores that explain it.
    fn explain(
        &self,
        line: u64,
        address: u64,
        agreed: &[u32],
        hardware: &dyn AtPowerFailure,
    ) -> (String, Vec<WrongValue>, Option<Witness>) {
        let facts = self.facts;
        let mut bytes = self.memory.line(line);
        recovered_line(facts, &self.gates, &self.reach, hardware, line, &mut bytes);
        let (is, should_be) = (word_of(&bytes, (address - line) as usize / 8), self.memory.word_wanted(address));
        let count = self.memory.wrong.len();
        // The latest committed store whose bytes are not there, and one whose bytes are there and should not
        // be.
        let (mut missing, mut present) = (None, None);
        for (order, regions) in facts.regions.iter().enumerate() {
            for (number, region) in (0..).zip(regions) {
                for &store in &region.stores {
                    let fact = facts.fact(store.fact);
                    let Some(word) = address.checked_sub(fact.line).map(|offset| offset as usize / 8) else { continue };
                    let bytes = facts.bytes(fact);
                    let touched = words_of(fact.mask, &bytes).find(|(at, ..)| word < WORDS && *at == word);
                    let Some((_, bits, value)) = touched else { continue };
                    let wrong = (is ^ should_be) & bits;
                    if number < agreed[order] && wrong != 0 && value & wrong == should_be & wrong {
                        missing = Some((order, number, store));
                    } else if number >= agreed[order] && wrong != 0 && value & wrong == is & wrong {
                        present = present.or(Some((order, number, store)));
                    }
                }
            }
        }
        // The words: how far regions are committed, then what is lacking and what is too much.
        let below = agreed.iter().enumerate().map(|(order, f)| format!("{f}{}", facts.of_order(order)));
        let mut what =
            format!("with the regions below {} committed, a word is wrong", below.collect::<Vec<_>>().join(", "));
        let lacks = |what: &mut String, lead: &str, found: Option<(usize, u32, RegionStore)>| {
            let Some((order, number, store)) = found else { return };
            *what += &format!("; {lead} region {number}{}", facts.of_order(order));
            if let Some(controller) = self.controller_of(order, number, store) {
                *what += &format!(", a store of controller {controller}");
            }
        };
        lacks(&mut what, "it lacks", missing);
        lacks(&mut what, "it has", present);
        if count > 1 {
            what += &format!(" ({count} words are wrong)");
        }
        let persist = |(_, _, store): (usize, u32, RegionStore)| facts.persist(store, address);
        let values = vec![WrongValue::of_bytes(address, &is.to_le_bytes(), &should_be.to_le_bytes())];
        (what, values, Some(Witness { missing: missing.map(persist), present: present.map(persist) }))
    }

    /// The controller that a store went to, if it ever came.
    fn controller_of(&self, order: usize, number: u32, store: RegionStore) -> Option<u16> {
        let line = self.facts.fact(store.fact).line;
        let came = |&at: &u32| {
            let fact = self.facts.fact(at);
            let taken = matches!(fact.kind, FactKind::Region(RegionStep::Buffered | RegionStep::Spilled));
            match fact.author {
                Author::HeldRegion { controller, order: name, region }
                    if taken && (fact.line, region, name) == (line, number, self.facts.names[order]) =>
                {
                    Some(controller)
                }
                _ => None,
            }
        };
        self.facts.changes.iter().find_map(came)
    }

    /// Cuts recovery off and starts it again.
    fn cut(&self, recovered: &Recovered, hardware: &dyn AtPowerFailure) -> Option<Failure> {
        let count = recovered.steps.len();
        let cuts = (STEPS_AGAIN / count.max(1)).clamp(3, CUTS);
        let stride = count.div_ceil(cuts).max(1);
        let (mut gates, mut over) = (self.gates.clone(), HashMap::new());
        let whole = self.over(&recovered.steps);
        for (done, step) in (1..).zip(&recovered.steps) {
            step.take(self.facts, &mut gates);
            step.write(self.facts, &self.memory, &mut over);
            if done % stride != 0 && done != count {
                continue;
            }
            let again = recover(self.facts, &gates, hardware);
            let mut after = over.clone();
            again.steps.iter().for_each(|step| step.write(self.facts, &self.memory, &mut after));
            let touched = whole.keys().chain(after.keys());
            let same = |place: &&u32| self.memory.value(&whole, **place) == self.memory.value(&after, **place);
            let what = match touched.filter(|place| !same(place)).min() {
                None if again.next == recovered.next => continue,
                None => "comes to other flush IDs".to_owned(),
                Some(&place) => format!("comes to another image, at {:#x}", self.memory.address(place)),
            };
            let what = format!("recovery cut off after {done} of {count} steps and started again {what}");
            return Some(Failure { what, ..self.place(Property::Idempotent) });
        }
        None
    }
}

/// At every point, the words that are found wrong step by step and from nothing; panics where they differ.
#[cfg(test)]
pub(super) fn compare_both_ways(facts: &RegionFacts<'_>, hardware: &dyn AtPowerFailure) {
    let mut walk = Walk::new(facts);
    for point in 0..=facts.changes() {
        walk.advance_to(point);
        walk.recover(hardware);
        let next = |order: usize| walk.reach.next.chunks(facts.controllers).nth(order).unwrap().iter().min().copied();
        let agreed: Vec<u32> = (0..facts.names.len()).map(|order| next(order).unwrap()).collect();
        walk.settle(&agreed);
        let (gates, reach) = (&walk.gates, &walk.reach);
        walk.memory.compare(|address, line| recovered_line(facts, gates, reach, hardware, address, line));
        let found: Vec<u64> = walk.memory.wrong.keys().copied().collect();
        assert_eq!(found, walk.wrong_from_nothing(hardware), "point {point}");
    }
}

/// The points of a plan, and whether they are all.
fn points(facts: &RegionFacts<'_>, options: &JudgeOptions) -> Result<(Vec<u64>, bool), BeyondEnd> {
    let last = facts.changes();
    let mut points: Vec<u64> = match options.plan {
        Plan::Only(point) if point > last => return Err(BeyondEnd { asked: point, changes: last }),
        Plan::Only(point) => vec![point],
        Plan::Count(count) if count <= last => {
            let gaps = u128::from(count.saturating_sub(1).max(1));
            (0..count).map(|at| (u128::from(last) * u128::from(at) / gaps) as u64).collect()
        }
        Plan::Boundaries => {
            let ends = |at: &&u32| {
                let step = step_of(facts.fact(**at));
                matches!(step, Some(RegionStep::Bounded | RegionStep::Committed | RegionStep::Spilled))
            };
            let ends = facts.changes.iter().filter(ends).map(|&at| facts.point_of(at));
            ends.flat_map(|point| [point - 1, point]).chain([0, last]).collect()
        }
        _ => (0..=last).collect(),
    };
    if options.plan == Plan::Auto && last > EXHAUSTIVE {
        Draw::new(options.seed).thin(&mut points, EXHAUSTIVE as usize);
    }
    points.sort_unstable();
    points.dedup();
    let exhaustive = points.len() as u64 == last + 1;
    Ok((points, exhaustive))
}

/// Level A, and with `double` recovery cut off: the hardware's recovery at the points of a plan. The third
/// result are the first judged points of each f.
///
/// # Errors
/// The plan names a point beyond the last one.
pub fn judge_recovery(
    facts: &RegionFacts<'_>,
    options: &JudgeOptions,
    hardware: &dyn AtPowerFailure,
    watch: &Watch<'_>,
) -> Result<(Verdict, Option<Verdict>, Vec<u64>), BeyondEnd> {
    let (points, exhaustive) = points(facts, options)?;
    let total = points.len() as u64;
    let left_out = facts.changes() + 1 - total;
    let planned = Verdict { points: total, distinct: total, left_out, exhaustive, ..Verdict::default() };
    // Recovery cut off costs many images a point: it is judged at some of the points, drawn by the seed.
    let mut cut_points = points.clone();
    Draw::new(options.seed ^ 1).thin(&mut cut_points, CUT_POINTS);
    let cut = cut_points.len() as u64;
    let mut double = options.double.then(|| Verdict {
        points: cut,
        distinct: cut,
        left_out: facts.changes() + 1 - cut,
        exhaustive: false,
        ..Verdict::default()
    });
    let (mut actual, mut firsts) = (planned, Vec::new());
    let mut walk = Walk::new(facts);
    for &point in &points {
        if watch.stop.load(Ordering::Relaxed) {
            break;
        }
        // Points ascend: the walk takes no fact back, and f never falls.
        walk.advance_to(point);
        let mut found = Vec::new();
        if walk.judge(hardware, &mut found, actual.failures.len() < options.keep) || firsts.is_empty() {
            firsts.push(point);
        }
        actual.add(found, options.keep);
        if let Some(double) = &mut double
            && cut_points.binary_search(&point).is_ok()
        {
            double.add(walk.cut(&recover(facts, &walk.gates, hardware), hardware), options.keep);
        }
        if actual.judged.is_multiple_of(REPORT) || actual.judged == total {
            (watch.progress)(actual.judged, total);
        }
    }
    // A verdict that was stopped is not exhaustive, whatever its plan was.
    for verdict in [&mut actual].into_iter().chain(&mut double) {
        verdict.stopped = verdict.judged < verdict.distinct;
        verdict.exhaustive &= !verdict.stopped;
    }
    Ok((actual, double, firsts))
}

/// Judges the caller's conditions on what recovery leaves at the first point of each f, as part of level A.
pub fn judge_checks(
    facts: &RegionFacts<'_>,
    firsts: &[u64],
    options: &JudgeOptions,
    hardware: &dyn AtPowerFailure,
    checks: &[&dyn Check],
    watch: &Watch<'_>,
    actual: &mut Verdict,
) {
    actual.conditions = checks.iter().map(|check| ConditionCount::new(check.name())).collect();
    let mut walk = Walk::new(facts);
    for &point in firsts.iter().filter(|_| !checks.is_empty()) {
        if watch.stop.load(Ordering::Relaxed) {
            actual.stopped = true;
            break;
        }
        walk.advance_to(point);
        let image = walk.memory.image(&walk.over(&recover(facts, &walk.gates, hardware).steps));
        // The point was counted as passed by level A. It loses that once, however many conditions are
        // violated.
        let before = actual.failed;
        for (check, count) in checks.iter().zip(&mut actual.conditions) {
            let Err(Violation { what, values }) = check.judge(&image, &image) else {
                count.held += 1;
                continue;
            };
            let failure = Failure { what, values, ..walk.place(Property::Check(check.name().to_owned())) };
            count.violated += 1;
            count.first.get_or_insert_with(|| failure.clone());
            if check.binds() {
                actual.failed += 1;
                actual.failures.push(failure);
            }
        }
        actual.passed = actual.passed.saturating_sub(u64::from(actual.failed > before));
    }
    *actual = std::mem::take(actual).settle(options.keep);
}
