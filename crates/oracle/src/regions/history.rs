//! Order of recoverable regions, which no image shows: the protocol keeps its order, and regions commit in an
//! order that the program allows.
//!
//! *Protocol*: each controller commits the regions of an order one after the other; none flushes a region
//! before all have its boundary, none commits it before all are done with it ([`CommitRule::Pipelined`]:
//! before it is itself; [`CommitRule::Speculative`]: the same, with spills of later regions); a boundary
//! comes after the stores. *Program*: a region is before another when one of its stores is, by program
//! order, a barrier of the CTA, the end of a launch; and by *coherence*: of two stores of different values
//! to a byte, the region of the one performed first commits first. Atomics are stores; so regions drawn
//! before an atomic (the published order) that then happens late are seen. Clocks are scalars, since commit
//! order is total: the number of a region within one order; between orders of several SMs, the crash point
//! from which a region survives.
//!
//! Sources: LightWSP, sections IV-B to IV-D; happens-before as in `overtaking`. Invariants: what passes a
//! barrier together is taken to have met at it, so that nothing is ordered that the program does not. Not
//! modelled: order by loads (an atomic that writes nothing is one), by `bar.arrive`; memory fences order
//! nothing by themselves.

use std::collections::{BTreeMap, BTreeSet};

use super::super::order::is_store;
use super::super::runs;
use super::super::verdict::{Failure, Level, Property, Verdict, Witness};
use super::gate::{Gates, step_of};
use super::{NONE, RegionFacts, RegionStore};
use durawarp_persist::journal::{Author, Fact, FactKind, Thread};
use durawarp_persist::vocab::{CommitRule, RegionStep};

/// Judges the history of a run: what the facts say of each other, and the order of regions. Keeps the first
/// `keep` failures. With `finished`, the run came to its end, by which all regions are committed.
pub fn judge_regions(facts: &RegionFacts<'_>, finished: bool, keep: usize) -> Verdict {
    let points = facts.changes();
    let verdict = Verdict { points, distinct: points, judged: points, exhaustive: true, ..Verdict::default() };
    let mut history = History { facts, keep, failed: BTreeSet::new(), verdict };
    for contradiction in &facts.contradictions {
        history.fail(Property::Facts, contradiction.fact, contradiction.what.clone(), None);
    }
    for fault in facts.order.faults() {
        history.fail(Property::Facts, fault.fact as u32, fault.what.clone(), None);
    }
    history.protocol(finished);
    history.happens_before();
    history.coherence();
    let History { failed, mut verdict, .. } = history;
    verdict.passed = points.saturating_sub(failed.len() as u64);
    verdict.settle(keep)
}

struct History<'f, 'a> {
    facts: &'f RegionFacts<'a>,
    keep: usize,
    /// Points with failures.
    failed: BTreeSet<u64>,
    verdict: Verdict,
}

/// A store that others come after: how late its region commits, and itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Latest {
    rank: u32,
    order: usize,
    number: u32,
    store: u32,
    program: u32,
}

impl Latest {
    /// Its bytes reach memory later than these do.
    fn commits_behind(&self, other: &Latest) -> bool {
        let same = (self.order, self.number) == (other.order, other.number);
        self.rank > other.rank || same && self.store > other.store
    }
}

impl History<'_, '_> {
    fn fail(&mut self, property: Property, at: u32, what: String, witness: Option<Witness>) {
        let point = self.facts.point_of(at);
        self.failed.insert(point);
        self.verdict.failed += 1;
        let time = self.facts.fact(at).time;
        let (level, choice) = (Level::Actual, None);
        // They come by kind; that many of each kind suffice to find the first ones of all.
        let same = |failure: &&Failure| failure.property == property;
        if self.verdict.failures.iter().filter(same).count() < self.keep.saturating_mul(4) {
            let values = Vec::new();
            self.verdict.failures.push(Failure { property, level, point, choice, time, what, values, witness });
        }
    }

    fn protocol(&mut self, finished: bool) {
        let facts = self.facts;
        let mut gates = Gates::new(facts);
        // By order and region: controllers that have its boundary, and that are done.
        let mut told: BTreeMap<(usize, u32), [BTreeSet<u16>; 2]> = BTreeMap::new();
        for &at in &facts.changes {
            let fact = facts.fact(at);
            let (Some(step), Some(place)) = (step_of(fact), gates.place(facts, fact)) else { continue };
            let Author::HeldRegion { controller, region: number, .. } = fact.author else { continue };
            let order = place / facts.controllers;
            let gate = &gates.gates[place];
            let [bounded, done] = told.entry((order, number)).or_default();
            let all = facts.controllers;
            let of_order = facts.of_order(order);
            let mut wrong: Option<String> = None;
            // The first broken rule of a fact is reported; what else is wrong with it mostly follows from
            // that.
            let mut check = |holds: bool, what: &dyn Fn() -> String| {
                if !holds && wrong.is_none() {
                    wrong = Some(what());
                }
            };
            match step {
                RegionStep::Stored | RegionStep::Ended => {}
                RegionStep::Buffered => {
                    check(!bounded.contains(&controller), &|| "takes a store behind its boundary".to_owned());
                }
                RegionStep::Bounded => {
                    check(bounded.insert(controller), &|| "has its boundary twice".to_owned());
                    let region = facts.regions[order].get(number as usize);
                    check(region.is_some_and(|region| region.ended), &|| "has its boundary before its end".to_owned());
                }
                RegionStep::Flushed => {
                    let have = bounded.len();
                    check(have == all, &|| format!("flushes it when {have} of {all} controllers have its boundary"));
                    let next = gate.next;
                    check(next == number, &|| format!("flushes it with flush ID {next}"));
                }
                // A store may be spilled only as long as its region still gathers stores, and only over bytes
                // that the undo log has.
                RegionStep::Logged | RegionStep::Spilled => {
                    let next = gate.next;
                    let ahead = facts.commit == CommitRule::Speculative && next < number;
                    check(next == number || ahead, &|| format!("spills it with flush ID {next}"));
                    check(!bounded.contains(&controller), &|| "spills it behind its boundary".to_owned());
                    if step == RegionStep::Spilled {
                        let of_line = |log: &&u32| {
                            let log = facts.fact(**log);
                            (log.line, log.author.region()) == (fact.line, Some(number))
                        };
                        let logged = gate.log.iter().filter(of_line).fold(0, |mask, &log| mask | facts.fact(log).mask);
                        check(fact.mask & !logged == 0, &|| "writes over bytes that it has not logged".to_owned());
                    }
                }
                RegionStep::Done => {
                    done.insert(controller);
                    let have = bounded.len();
                    check(have == all, &|| format!("is done with it when {have} of {all} have its boundary"));
                    let held = gate.held.get(&number).map_or(0, Vec::len);
                    check(held == 0, &|| format!("is done with it and holds {held} of its stores"));
                }
                RegionStep::Committed => {
                    let have = done.len();
                    // What a controller must wait for is all that the two rules differ in.
                    match facts.commit {
                        CommitRule::Acked => check(have == all, &|| {
                            format!("commits it when {have} of {all} controllers are done with it")
                        }),
                        CommitRule::Pipelined | CommitRule::Speculative => {
                            check(done.contains(&controller), &|| "commits it before it is done with it".to_owned());
                        }
                    }
                    let next = gate.next;
                    check(next == number, &|| format!("commits it with flush ID {next}"));
                }
            }
            // Only now does the gate follow: each rule above looks at the state before the step.
            let known = gates.note(facts, at, fact, step);
            if wrong.is_none() && !known {
                wrong = Some("flushes bytes that it does not hold".to_owned());
            }
            if let Some(wrong) = wrong {
                let what = format!("region {number}{of_order}: controller {controller} {wrong}");
                let witness = self.of_region(order, number, fact);
                self.fail(Property::Regions, at, what, witness);
            }
        }
        if finished {
            self.all_commit(&gates);
        }
    }

    /// The first store of a region, or the one of a fact.
    fn of_region(&self, order: usize, number: u32, fact: &Fact) -> Option<Witness> {
        let stores = &self.facts.regions[order].get(number as usize)?.stores;
        let of_line = |store: &&RegionStore| {
            let store = self.facts.fact(store.fact);
            (store.line, store.mask & fact.mask) == (fact.line, fact.mask)
        };
        let store = stores.iter().find(of_line).or(stores.first())?;
        let address = self.facts.fact(store.fact);
        let first = address.line + u64::from(address.mask.trailing_zeros() % 128);
        Some(Witness { missing: None, present: Some(self.facts.persist(*store, first)) })
    }

    /// At the end of a run nothing is pending.
    fn all_commit(&mut self, gates: &Gates) {
        let facts = self.facts;
        let Some(last) = facts.journal.facts().len().checked_sub(1) else { return };
        for (order, regions) in facts.regions.iter().enumerate() {
            let least = gates.of_order(order).iter().map(|gate| gate.next).min().unwrap_or_default();
            if (least as usize) < regions.len() {
                let drawn = regions.len();
                let state = match &regions[least as usize] {
                    region if region.author.is_none() => "was never used",
                    region if !region.ended => "did not end",
                    _ => "ended",
                };
                let what = format!(
                    "at the end of the run {least} of {drawn} regions{} are committed: region {least} {state}",
                    facts.of_order(order)
                );
                let witness = self.of_region(order, least, facts.fact(last as u32));
                self.fail(Property::Regions, last as u32, what, witness);
            }
        }
    }

    /// How late a region commits, in the terms in which two can be compared.
    fn rank(&self, order: usize, number: u32) -> u32 {
        match self.facts.names.len() {
            1 => number,
            _ => self.facts.regions[order].get(number as usize).map_or(NONE, |region| region.persisted),
        }
    }

    /// Where the bytes that an issued store left in commit: the first and the last.
    fn left(&self, program: u32) -> Option<(Latest, Latest)> {
        let latest = |store: u32| {
            let (order, number) = self.facts.region_of_sm(self.facts.fact(store).author)?;
            Some(Latest { rank: self.rank(order, number), order, number, store, program })
        };
        let left = || self.facts.left_in(program).iter().filter_map(|issued| latest(issued.store));
        Some((left().min()?, left().max()?))
    }

    fn happens_before(&mut self) {
        /// What a warp's stores come after, or a CTA's, or a launch's.
        type Before = Option<Latest>;
        /// When a barrier opened, and of which CTA.
        type Group = (u64, Option<(u32, u32)>);
        let facts = self.facts.journal.facts();
        let mut warps: BTreeMap<Option<Thread>, Before> = BTreeMap::new();
        // What a warp knew when it came to a barrier.
        let mut reached: BTreeMap<Option<Thread>, Before> = BTreeMap::new();
        // Everything stored so far, and what was stored before this launch.
        let (mut stored, mut launch): (Before, Before) = (None, None);
        // Warps of a CTA that pass a barrier at the same time, and what they knew.
        let mut passing: Option<(Group, Vec<Option<Thread>>)> = None;
        for (fact, at) in facts.iter().zip(0..) {
            let key = fact.author.thread();
            if let Some((group, _)) = &passing
                && (fact.time > group.0)
                && let Some((_, together)) = passing.take()
            {
                meet(&mut warps, &mut reached, &together);
            }
            match fact.kind {
                FactKind::KernelStarted => launch = stored,
                FactKind::BarrierReached => {
                    let known = warps.get(&key).copied().flatten().max(launch);
                    reached.insert(key, known);
                }
                FactKind::BarrierPassed => {
                    let group = (fact.time, fact.author.cta());
                    match &mut passing {
                        Some((other, together)) if *other == group => together.push(key),
                        _ => {
                            if let Some((_, together)) = passing.replace((group, vec![key])) {
                                meet(&mut warps, &mut reached, &together);
                            }
                        }
                    }
                }
                kind if is_store(kind) => {
                    let Some((first, last)) = self.left(at) else { continue };
                    let known = warps.get(&key).copied().flatten().max(launch);
                    if let Some(before) = known.filter(|before| before.rank > first.rank) {
                        self.inverted(first, before, "comes behind that in the program");
                    }
                    stored = stored.max(Some(last));
                    warps.insert(key, known.max(Some(last)));
                }
                _ => {}
            }
        }
    }

    /// `later` should reach memory after `earlier`, and does before.
    fn inverted(&mut self, later: Latest, earlier: Latest, why: &str) {
        let facts = self.facts;
        let name = |of: Latest| format!("region {}{}", of.number, facts.of_order(of.order));
        let what = match (later.order, later.number) == (earlier.order, earlier.number) {
            true => format!("a store of {} leaves before another, and {why}", name(later)),
            false => format!("{} commits before {}, and {why}", name(later), name(earlier)),
        };
        let persist = |of: Latest| {
            let fact = facts.fact(of.store);
            let address = fact.line + u64::from(fact.mask.trailing_zeros() % 128);
            facts.persist(RegionStore { fact: of.store, program: of.program }, address)
        };
        let witness = Witness { missing: Some(persist(earlier)), present: Some(persist(later)) };
        self.fail(Property::Regions, later.store, what, Some(witness));
    }

    fn coherence(&mut self) {
        let facts = self.facts;
        let order = facts.order;
        for line in order.lines() {
            // Of each byte: the latest to commit, with its value; and the latest of another value.
            let mut latest: [Option<(Latest, u8)>; 128] = [None; 128];
            let mut other: [Option<(Latest, u8)>; 128] = [None; 128];
            for version in &line.versions {
                for program in order.programs(version) {
                    let mut found: Option<(Latest, Latest)> = None;
                    for issued in facts.left_in(program) {
                        let fact = facts.fact(issued.store);
                        let Some((of, number)) = facts.region_of_sm(fact.author) else { continue };
                        let bytes = facts.bytes(fact);
                        let own =
                            Latest { rank: self.rank(of, number), order: of, number, store: issued.store, program };
                        for at in runs(issued.mask).flat_map(|(start, count)| start..start + count) {
                            let value = bytes[at];
                            let differs = |seen: &(Latest, u8)| seen.1 != value;
                            let before = latest[at].filter(differs).max(other[at].filter(differs));
                            if let Some((before, _)) = before.filter(|(before, _)| before.commits_behind(&own)) {
                                found = found.or(Some((own, before)));
                            }
                            let mine = Some((own, value));
                            // Of each byte two stores are enough: a later store is compared with the latest
                            // to commit whose value differs from its own, and that is one of these two.
                            match latest[at] {
                                Some(seen) if seen.0.commits_behind(&own) => {
                                    if seen.1 != value {
                                        other[at] = other[at].max(mine);
                                    }
                                }
                                Some(seen) if seen.1 != value => {
                                    other[at] = Some(seen);
                                    latest[at] = mine;
                                }
                                _ => latest[at] = mine,
                            }
                        }
                    }
                    if let Some((later, earlier)) = found {
                        self.inverted(later, earlier, "is performed after that, on the same bytes");
                    }
                }
                self.host_between(version.performed, line.address, version.program, &latest);
            }
        }
    }

    /// What the host writes over must be committed by then: no region writes over it later.
    fn host_between(
        &mut self,
        performed: u32,
        address: u64,
        program: Option<u32>,
        latest: &[Option<(Latest, u8)>; 128],
    ) {
        let fact = self.facts.fact(performed);
        if program.is_some() {
            return;
        }
        // The host writes between launches. The regions that stored these bytes must survive a power failure
        // at that point.
        let point = self.facts.point_of(performed);
        for at in runs(fact.mask).flat_map(|(start, count)| start..start + count) {
            let Some((of, _)) = latest[at] else { continue };
            let persisted =
                self.facts.regions[of.order].get(of.number as usize).map_or(NONE, |region| region.persisted);
            if u64::from(persisted) > point {
                let what = format!(
                    "the host writes {:#x} when region {}{}, which stored there before, has not committed",
                    address + at as u64,
                    of.number,
                    self.facts.of_order(of.order)
                );
                let store = RegionStore { fact: of.store, program: of.program };
                let missing = Some(self.facts.persist(store, address + at as u64));
                self.fail(Property::Regions, performed, what, Some(Witness { missing, present: None }));
                return;
            }
        }
    }
}

/// Warps that pass a barrier together come after what each of them came after when it got there.
fn meet(
    warps: &mut BTreeMap<Option<Thread>, Option<Latest>>,
    reached: &mut BTreeMap<Option<Thread>, Option<Latest>>,
    together: &[Option<Thread>],
) {
    let known = together.iter().filter_map(|key| reached.remove(key).flatten()).max();
    for key in together {
        let own = warps.entry(*key).or_default();
        *own = (*own).max(known);
    }
}
