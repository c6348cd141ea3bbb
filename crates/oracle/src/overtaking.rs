//! Level C, overtaking: states that a run could have left if one warp of a CTA had run ahead of the others.
//!
//! ```text
//!   warp 0:  log  fence  |  flag := 1  fence             data          s: data of warp 1
//!   warp 1:  log  fence  |                       s       ...           durable for certain: both logs
//!                     bar.sync                                         not certain: the flag, unless a barrier follows
//! ```
//! Levels A and B look at instants of one run, where a slow warp's flag is durable long before a fast warp's
//! first store. Here each store of the program is a state of its own: the store is durable, and of everything
//! else only what must be durable whenever that store has been issued. Between warps of a CTA that follows
//! from *happens-before*: program order, barriers, and whatever else warps can pass messages by. What other
//! CTAs and launches made durable is as it was in time. Where the machine orders non-temporal stores by
//! itself, those that come before the store in this sense are durable, too: warps of a CTA are of one SM, and
//! issue in an order that respects it. What persist barriers order before the store is durable as well,
//! whether they wait or not: the state is closed under their order (`scopes`), also between CTAs.
//!
//! Source: happens-before by vector clocks (Lamport; FastTrack, PLDI'09), applied to persist-before as
//! XFDetector (ASPLOS'20) applies program order. Invariants: a state judged here respects every fence,
//! barrier, atomic and memory fence of the CTA and the coherence order of each line, so a correct program has
//! no failure here. Not modelled: two warps that run ahead at once; atomics and memory fences count as
//! synchronising with all earlier ones of the CTA, whatever they address, so that a hole after one of these
//! can be overlooked; spinning on plain loads is seen as no synchronisation at all. Over 500 lines, a third
//! of them tests.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::launch_order::{LaunchOrder, LaunchPart};
use super::order::{Bounds, Effect, RunOrder, is_store, same_instruction};
use super::scopes::Scopes;
use super::{Draw, inside};
use durawarp_engine::Time;
use durawarp_persist::image::PmImage;
use durawarp_persist::journal::{Author, Fact, FactKind, Thread};
use durawarp_persist::vocab::{NonTemporalOrder, PersistScope};

/// A warp's knowledge of the warps of its CTA: of each, how many of its facts come before.
type Clock = BTreeMap<u8, u32>;

/// The place of a fact in happens-before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    /// Its place in the warp's own order.
    number: u32,
    /// What the warp knows of others.
    clock: u32,
    /// The warp, by its number in the CTA.
    warp: u8,
}

/// Something that is guaranteed from a fact on.
#[derive(Debug, Clone, Copy)]
struct Guarantee {
    fact: u32,
    line: u32,
    version: u32,
    through: bool,
}

/// Launches whose stores are all in a state.
#[derive(Debug, Default)]
struct WholeLaunches {
    /// Where launches have one order: those of lower numbers than this.
    below: u32,
    /// Where some overlap: their CTAs, and parts of launches that were asked what comes before them.
    ctas: BTreeSet<(u32, u32)>,
    looked: BTreeSet<LaunchPart>,
}

/// The states of a run in which a warp has run ahead.
#[derive(Debug)]
pub struct Overtaking<'a> {
    order: &'a RunOrder<'a>,
    initial: &'a PmImage,
    /// Of facts of warps: where they position; by place in the journal.
    positions: BTreeMap<u32, Position>,
    clocks: Vec<Clock>,
    guarantees: Vec<Guarantee>,
    /// Where the machine orders them: of each CTA, its non-temporal stores, and its fences that did not wait
    /// for them.
    paths: BTreeMap<(u32, u32), [Vec<u32>; 2]>,
    /// What persist barriers order.
    scopes: Scopes,
    launches: Vec<u32>,
    /// Which launches come before which.
    launch_order: LaunchOrder,
}

impl<'a> Overtaking<'a> {
    /// The states that `order` allows from an initial image on. Cost: facts × warps of a CTA.
    pub fn new(order: &'a RunOrder<'a>, initial: &'a PmImage) -> Overtaking<'a> {
        let mut readers: BTreeMap<Option<Thread>, (u32, u32)> = BTreeMap::new();
        let (mut positions, mut clocks) = (BTreeMap::new(), vec![Clock::new()]);
        let mut paths: BTreeMap<(u32, u32), [Vec<u32>; 2]> = BTreeMap::new();
        // By CTA: what came before its barriers opened, what was passed on otherwise, and passes of persist
        // barriers: all of a CTA pass one together, and know that what it guarantees is durable.
        let mut meetings: BTreeMap<(u32, u32), [Clock; 3]> = BTreeMap::new();
        for (at, fact) in order.journal.facts().iter().enumerate() {
            let of_warp = is_store(fact.kind)
                || matches!(
                    fact.kind,
                    FactKind::FencePassed
                        | FactKind::FenceOrdered
                        | FactKind::BarrierReached
                        | FactKind::BarrierPassed
                        | FactKind::Synchronised
                        | FactKind::PersistPassed(_)
                );
            let Author::Warp { launch, cta, warp, .. } = fact.author else { continue };
            if !of_warp {
                continue;
            }
            let which = match fact.kind {
                FactKind::StoredNonTemporal => Some(0),
                FactKind::FenceOrdered => Some(1),
                _ => None,
            };
            if let Some(which) = which.filter(|_| order.promises.non_temporal != NonTemporalOrder::ByFences) {
                paths.entry((launch, cta)).or_default()[which].push(at as u32);
            }
            // A store's position has the clock before its own fact: it does not come before itself.
            let (number, clock) = readers.entry(fact.author.thread()).or_default();
            positions.insert(at as u32, Position { number: *number, clock: *clock, warp });
            *number += 1;
            let meeting = meetings.entry((launch, cta)).or_default();
            let (gives, takes, which) = match fact.kind {
                FactKind::BarrierReached => (true, false, 0),
                FactKind::BarrierPassed => (false, true, 0),
                FactKind::Synchronised => (true, true, 1),
                FactKind::PersistPassed(PersistScope::Cta | PersistScope::Kernel) => (true, true, 2),
                _ => continue,
            };
            // A fact that does both gives first, so that all others of the CTA that synchronise later know of
            // it.
            if gives {
                join(&mut meeting[which], &clocks[*clock as usize]);
                meeting[which].insert(warp, *number);
            }
            if takes {
                // Facts share clocks: a warp gets a new one only when it learns something new.
                let mut known = clocks[*clock as usize].clone();
                join(&mut known, &meeting[which]);
                if known != clocks[*clock as usize] {
                    clocks.push(known);
                    *clock = (clocks.len() - 1) as u32;
                }
            }
        }
        let guarantee = |event: &super::order::IntervalEvent| {
            let through = match event.effect {
                Effect::May => return None,
                Effect::Prefix => false,
                Effect::NonTemporal => true,
            };
            Some(Guarantee { fact: event.fact, line: event.line, version: event.version, through })
        };
        let guarantees = order.events.iter().filter_map(guarantee).collect();
        let launches = super::crash::launches(order.journal);
        let scopes = Scopes::new(order, None);
        let launch_order = LaunchOrder::of(order.journal.facts());
        Overtaking { order, initial, positions, clocks, guarantees, paths, scopes, launches, launch_order }
    }

    /// The order that allows them.
    pub fn order(&self) -> &'a RunOrder<'a> {
        self.order
    }

    /// The image before the first fact.
    pub fn initial(&self) -> &'a PmImage {
        self.initial
    }

    /// The stores that are a state each, by their places in the journal, thinned to `count`; and how many
    /// were left out.
    pub fn stores(&self, count: u64, seed: u64) -> (Vec<usize>, u64) {
        let facts = self.order.journal.facts().iter().enumerate();
        let performed = |at: &usize| self.order.version_of(*at).is_some();
        let mut stores: Vec<usize> =
            facts.filter(|(_, f)| is_store(f.kind)).map(|(at, _)| at).filter(performed).collect();
        let all = stores.len() as u64;
        Draw::new(seed).thin(&mut stores, count as usize);
        let left_out = all - stores.len() as u64;
        (stores, left_out)
    }

    /// How many launches had begun when a store was issued.
    pub fn launches_begun(&self, store: usize) -> u32 {
        self.launches.partition_point(|&launch| (launch as usize) < store) as u32
    }

    /// When a store was issued, in ticks.
    pub fn time(&self, store: usize) -> Time {
        self.order.journal.facts()[store].time
    }

    /// What the stores of `facts` could count on, all together.
    fn knowledge(&self, facts: impl Iterator<Item = u32>) -> Knowledge {
        let mut knowledge = Knowledge::default();
        for fact in facts {
            let Some(cta) = self.fact(fact).author.cta() else { continue };
            if let Some(position) = self.positions.get(&fact) {
                let clock = knowledge.of_cta.entry(cta).or_default();
                join(clock, &self.clocks[position.clock as usize]);
                let own = clock.entry(position.warp).or_default();
                *own = position.number.max(*own);
            }
            let known = &mut knowledge.latest;
            match known.iter_mut().find(|(of, _)| *of == cta) {
                Some((_, latest)) => *latest = fact.max(*latest),
                None => known.push((cta, fact)),
            }
            known.sort_unstable_by_key(|&(_, latest)| std::cmp::Reverse(latest));
            known.truncate(2);
        }
        knowledge
    }

    /// Whether a guarantee holds whenever the stores of a knowledge have been issued.
    fn comes_before(&self, guarantee: &Guarantee, knowledge: &Knowledge) -> bool {
        let facts = self.order.journal.facts();
        let fact = &facts[guarantee.fact as usize];
        let version = || self.order.lines()[guarantee.line as usize].versions[guarantee.version as usize - 1];
        let cta = match fact.kind {
            FactKind::FencePassed | FactKind::FenceOrdered | FactKind::FenceSettled | FactKind::PersistPassed(_) => {
                fact.author.cta()
            }
            // Performed is durable (eADR), or orders what bypassed the caches before. But another warp of the
            // CTA had no way to count on it without a fence.
            FactKind::Performed => version().program.and_then(|store| facts[store as usize].author.cta()),
            _ => None,
        };
        let in_time = knowledge.latest.iter().any(|&(other, latest)| Some(other) != cta && guarantee.fact < latest);
        let by_order = || {
            let position = self.positions.get(&guarantee.fact)?;
            let known = knowledge.of_cta.get(&cta?)?.get(&position.warp)?;
            Some(position.number < *known)
        };
        in_time || by_order() == Some(true)
    }

    /// What a store's warp knows when it issues it, itself left out.
    fn clock_at(&self, fact: u32) -> Clock {
        let Some(position) = self.positions.get(&fact) else { return Clock::new() };
        let mut clock = self.clocks[position.clock as usize].clone();
        let own = clock.entry(position.warp).or_default();
        *own = position.number.max(*own);
        clock
    }

    fn fact(&self, fact: u32) -> &Fact {
        &self.order.journal.facts()[fact as usize]
    }

    /// The fact comes before the warp with this clock, of the same CTA.
    fn is_known(&self, fact: u32, clock: &Clock) -> bool {
        let known = |position: &Position| clock.get(&position.warp).is_some_and(|known| position.number < *known);
        self.positions.get(&fact).is_some_and(known)
    }

    /// The non-temporal stores that the machine makes durable before it performs a store of the same CTA.
    fn ordered_before(&self, store: u32) -> Vec<u32> {
        let own = self.fact(store);
        let paths = own.author.cta().and_then(|cta| self.paths.get(&cta));
        let Some([past, fences]) = paths else { return Vec::new() };
        let clock = self.clock_at(store);
        let whole = match self.order.promises.non_temporal {
            NonTemporalOrder::Fifo => true,
            NonTemporalOrder::Epochs | NonTemporalOrder::EpochsInCaches => false,
            NonTemporalOrder::ByFences | NonTemporalOrder::BeforeCached | NonTemporalOrder::BeforeCachedOfCta => {
                own.kind != FactKind::StoredNonTemporal
            }
        };
        let clock = if whole {
            clock
        } else {
            // A fence is one of its own warp's stores.
            let mut fenced = Clock::new();
            for &fence in fences.iter().filter(|&&fence| self.is_known(fence, &clock)) {
                let Position { number, warp, .. } = self.positions[&fence];
                let own = fenced.entry(warp).or_default();
                *own = number.max(*own);
            }
            fenced
        };
        let before = |past: &&u32| self.is_known(**past, &clock) && !same_instruction(self.fact(**past), own);
        past.iter().filter(before).copied().collect()
    }

    /// Where launches are ordered, the non-temporal stores of those before a store's own, but for launches
    /// that are `whole`, which they are then.
    fn of_earlier_launches(&self, store: u32, whole: &mut WholeLaunches) -> Vec<u32> {
        let ordered = self.order.promises.non_temporal == NonTemporalOrder::EpochsInCaches;
        let Some(cta) = self.fact(store).author.cta().filter(|_| ordered) else { return Vec::new() };
        let launch = cta.0;
        if self.launch_order.is_total() {
            let from = whole.below.max(launch);
            let from = std::mem::replace(&mut whole.below, from);
            let stores = self.paths.range((from, 0)..(whole.below, 0));
            return stores.flat_map(|(_, [past, _])| past).copied().collect();
        }
        let part = self.launch_order.part_of(cta, store);
        if !whole.looked.insert(part) {
            return Vec::new();
        }
        let before = |of: u32| self.launch_order.is_before(of, part);
        let earlier = self.paths.iter().filter(|&(&(of, cta), _)| before(of) && whole.ctas.insert((of, cta)));
        earlier.flat_map(|(_, [past, _])| past).copied().collect()
    }

    /// Raises bounds until they contain all that the machine and persist barriers order before these stores,
    /// and before what comes along with that in a line. Cost: the stores of the epochs before.
    fn close(&self, mut stores: Vec<u32>, bounds: &mut BTreeMap<u32, Bounds>) {
        let mut closed: BTreeMap<usize, usize> = BTreeMap::new();
        // Of each warp, the latest store looked at; what is ordered before a store through the caches is so
        // before later ones.
        let mut followed: BTreeMap<Option<Thread>, (u32, bool)> = BTreeMap::new();
        let mut whole = WholeLaunches::default();
        while let Some(store) = stores.pop() {
            let own = self.fact(store);
            for past in self.of_earlier_launches(store, &mut whole) {
                let Some((line, version)) = self.order.version_of(past as usize) else { continue };
                let bound = &mut bounds.entry(line as u32).or_default().through;
                let from = std::mem::replace(bound, version.max(*bound));
                stores.extend(self.along(line, from..version, true));
            }
            let through = own.kind == FactKind::StoredNonTemporal;
            let latest = followed.entry(own.author.thread()).or_insert((0, true));
            if store >= latest.0 || latest.1 && !through {
                *latest = (store.max(latest.0), latest.1 && through);
                for past in self.ordered_before(store) {
                    let Some((line, version)) = self.order.version_of(past as usize) else { continue };
                    let bound = &mut bounds.entry(line as u32).or_default().through;
                    let from = std::mem::replace(bound, version.max(*bound));
                    stores.extend(self.along(line, from..version, true));
                }
            }
            for (number, epoch) in self.scopes.epochs_of(store) {
                let done = closed.entry(number).or_default();
                let epochs = &self.scopes.instances[number].epochs;
                let before = epochs[(*done).min(epoch)..epoch].iter().flatten();
                *done = epoch.max(*done);
                for &earlier in before {
                    let Some((line, version)) = self.order.version_of(earlier as usize) else { continue };
                    let through = self.fact(earlier).kind == FactKind::StoredNonTemporal;
                    let bounds = bounds.entry(line as u32).or_default();
                    let bound = if through { &mut bounds.through } else { &mut bounds.must };
                    let from = std::mem::replace(bound, version.max(*bound));
                    stores.extend(self.along(line, from..version, through));
                }
            }
        }
    }

    /// The stores of these versions of a line; with `through` of the non-temporal ones among them.
    fn along(&self, line: usize, versions: Range<u32>, through: bool) -> impl Iterator<Item = u32> {
        let versions = self.order.lines()[line].versions.get(versions.start as usize..versions.end as usize);
        let versions = versions.unwrap_or_default().iter().filter(move |version| !through || version.through);
        versions.flat_map(|version| self.order.programs(version))
    }

    /// The image in which `store` is durable, and else only what must be; none when fact `store` is not a
    /// store. Cost: versions of the line and guarantees before the store.
    pub fn image(&self, store: usize) -> Option<PmImage> {
        let fact = self.order.journal.facts().get(store)?;
        let (line, version) = self.order.version_of(store).filter(|_| is_store(fact.kind))?;
        let through = fact.kind == FactKind::StoredNonTemporal;
        // Earlier versions of its line come with it, and what these could count on.
        let with = || self.along(line, 0..version, through);
        let knowledge = self.knowledge(with());
        let last = with().max().unwrap_or(store as u32);
        let mut bounds: BTreeMap<u32, Bounds> = BTreeMap::new();
        let end = self.guarantees.partition_point(|guarantee| guarantee.fact < last);
        for guarantee in self.guarantees[..end].iter().filter(|guarantee| self.comes_before(guarantee, &knowledge)) {
            let bounds = bounds.entry(guarantee.line).or_default();
            let bound = if guarantee.through { &mut bounds.through } else { &mut bounds.must };
            *bound = guarantee.version.max(*bound);
        }
        let own = bounds.entry(line as u32).or_default();
        let bound = if through { &mut own.through } else { &mut own.must };
        *bound = version.max(*bound);
        let mut stores: Vec<u32> = with().collect();
        // So does what is in a line with a store that is certain, where the machine orders it by itself.
        if self.order.promises.non_temporal != NonTemporalOrder::ByFences {
            for (&line, bounds) in &bounds {
                stores.extend(self.along(line as usize, 0..bounds.must, false));
                stores.extend(self.along(line as usize, 0..bounds.through, true));
            }
        }
        self.close(stores, &mut bounds);
        let mut image = self.initial.clone();
        for (line, Bounds { must, through, .. }) in bounds {
            let address = self.order.lines()[line as usize].address;
            let content = self.order.content(line as usize, must, through);
            let inside = inside(&image, address, self.order.extent(line as usize));
            // What is outside of the image is not looked at.
            let _ = image.write(address + inside.start as u64, &content[inside]);
        }
        Some(image)
    }
}

/// What a set of stores could count on.
#[derive(Debug, Default)]
struct Knowledge {
    /// Of each CTA with such a store: of its warps, how many of their facts come before.
    of_cta: BTreeMap<(u32, u32), Clock>,
    /// The latest of the stores, and the latest of another CTA.
    latest: Vec<((u32, u32), u32)>,
}

fn join(clock: &mut Clock, other: &Clock) {
    for (&warp, &known) in other {
        let entry = clock.entry(warp).or_default();
        *entry = known.max(*entry);
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::Model;
    use super::super::script::{Script, warp, warp_of};
    use super::*;
    use durawarp_persist::journal::Author;
    use durawarp_persist::promises::Promises;
    use durawarp_persist::vocab::Domain;

    const LOG: u64 = 0;
    const FLAG: u64 = 128;
    const DATA: u64 = 256;

    /// The image in which the `nth` store from the end is durable: the first byte of each of three lines.
    fn state(script: &Script, nth_from_end: usize) -> [u8; 3] {
        state_of(script, nth_from_end, NonTemporalOrder::ByFences)
    }

    /// The same of the last store, where the machine orders non-temporal stores.
    fn ordered_state(script: &Script, past: NonTemporalOrder) -> [u8; 3] {
        state_of(script, 0, past)
    }

    fn state_of(script: &Script, nth_from_end: usize, past: NonTemporalOrder) -> [u8; 3] {
        let initial = PmImage::new(0, vec![0; 512]);
        let promises = Promises { non_temporal: past, ..Promises::NONE };
        let model = Model { domain: Domain::Adr, promises };
        let order = RunOrder::new(&script.journal, &initial, model);
        assert!(order.faults().is_empty(), "{:?}", order.faults());
        let overtaking = Overtaking::new(&order, &initial);
        let (stores, _) = overtaking.stores(u64::MAX, 0);
        let image = overtaking.image(stores[stores.len() - 1 - nth_from_end]).unwrap();
        [LOG, FLAG, DATA].map(|at| image.bytes()[at as usize])
    }

    fn barrier(script: &mut Script) {
        for kind in [FactKind::BarrierReached, FactKind::BarrierPassed] {
            script.fact(kind, 0, warp(0)).fact(kind, 0, warp(1));
        }
    }

    /// Warp 0 logs and sets the flag, warp 1 writes the data long afterwards.
    fn transaction(barrier_behind_log: bool, barrier_behind_flag: bool) -> Script {
        let mut script = Script::default();
        script.persist(warp(0), LOG, 1);
        if barrier_behind_log {
            barrier(&mut script);
        }
        script.persist(warp(0), FLAG, 2);
        if barrier_behind_flag {
            barrier(&mut script);
        }
        script.persist(warp(1), DATA, 3);
        script
    }

    #[test]
    fn a_warp_runs_ahead_of_another_up_to_a_barrier() {
        assert_eq!(state(&transaction(true, true), 0), [1, 2, 3]);
        assert_eq!(state(&transaction(true, false), 0), [1, 0, 3], "the flag is not certain");
        assert_eq!(state(&transaction(false, false), 0), [0, 0, 3], "nor is the log");
    }

    #[test]
    fn a_warp_does_not_run_ahead_of_itself() {
        let mut script = Script::default();
        script.persist(warp(0), LOG, 1).persist(warp(0), FLAG, 2).persist(warp(0), DATA, 3);
        assert_eq!(state(&script, 0), [1, 2, 3]);
        assert_eq!(state(&script, 1), [1, 2, 0]);
    }

    #[test]
    fn atomics_order_warps_of_a_cta() {
        let mut script = Script::default();
        script.persist(warp(0), FLAG, 2).fact(FactKind::Synchronised, 0, warp(0));
        script.fact(FactKind::Synchronised, 0, warp(1)).persist(warp(1), DATA, 3);
        assert_eq!(state(&script, 0), [0, 2, 3]);
        let mut too_early = Script::default();
        too_early.fact(FactKind::Synchronised, 0, warp(0)).persist(warp(0), FLAG, 2);
        too_early.fact(FactKind::Synchronised, 0, warp(1)).persist(warp(1), DATA, 3);
        assert_eq!(state(&too_early, 0), [0, 0, 3]);
    }

    #[test]
    fn what_the_machine_orders_before_a_store_is_certain_with_it() {
        // Warp 0 logs by non-temporal stores, its fence does not wait; after a barrier, warp 1 stores data,
        // long afterwards.
        let run = |fence: bool, barrier_between: bool, past: bool| {
            let mut script = Script::default();
            script.through(warp(0), LOG, 1);
            if fence {
                script.ordered(warp(0));
            }
            if barrier_between {
                barrier(&mut script);
            }
            // A store of another CTA of the SM makes the log durable in time: no reason for warp 1 to count
            // on it.
            script.store(warp_of(7, 0), DATA + 128, 9);
            if past {
                script.through(warp(1), DATA, 3)
            } else {
                script.store(warp(1), DATA, 3)
            };
            script
        };
        let certain = |script: &Script, past| ordered_state(script, past)[0] == 1;
        for fence in [false, true] {
            assert!(certain(&run(fence, true, false), NonTemporalOrder::BeforeCached));
            assert!(!certain(&run(fence, false, false), NonTemporalOrder::BeforeCached), "warp 1 may run ahead");
            assert!(!certain(&run(fence, true, false), NonTemporalOrder::ByFences));
            assert!(certain(&run(fence, true, true), NonTemporalOrder::Fifo));
        }
        assert!(certain(&run(true, true, true), NonTemporalOrder::BeforeCached), "the fence orders both");
        assert!(!certain(&run(false, true, true), NonTemporalOrder::BeforeCached), "nothing does");
        // Another warp's fence is none of this warp's stores.
        let mut other = Script::default();
        other.through(warp(0), LOG, 1);
        barrier(&mut other);
        other.through(warp(1), FLAG, 2).ordered(warp(1)).through(warp(1), DATA, 3);
        assert_eq!(ordered_state(&other, NonTemporalOrder::BeforeCached), [0, 2, 3]);
    }

    #[test]
    fn what_earlier_launches_stored_is_durable_first_where_caches_keep_the_order_on() {
        let later = Author::Warp { sm: 1, launch: 1, cta: 0, warp: 0, pc: 0 };
        let mut script = Script::default();
        script.through(warp_of(7, 0), LOG, 1).through(later, DATA, 3);
        assert_eq!(ordered_state(&script, NonTemporalOrder::EpochsInCaches), [1, 0, 3]);
        assert_eq!(ordered_state(&script, NonTemporalOrder::Epochs), [0, 0, 3]);
    }

    #[test]
    fn what_a_buffered_barrier_orders_before_a_store_is_durable_with_it() {
        let other = warp_of(7, 0);
        let run = |scope: PersistScope, who: Author| {
            let mut script = Script::default();
            script.through(warp(0), LOG, 1);
            script.fact(FactKind::PersistReached(scope), 0, warp(0)).fact(FactKind::PersistReached(scope), 0, who);
            script.through(who, DATA, 3);
            ordered_state(&script, NonTemporalOrder::Epochs)
        };
        assert_eq!(run(PersistScope::Cta, warp(1)), [1, 0, 3]);
        assert_eq!(run(PersistScope::Kernel, other), [1, 0, 3]);
        assert_eq!(run(PersistScope::Cta, other), [0, 0, 3], "another instance");
        assert_eq!(run(PersistScope::Thread, warp(1)), [0, 0, 3]);
        // Knowing of a fence counts as its own does: a barrier between the warps.
        let mut script = Script::default();
        script.through(warp(0), LOG, 1).ordered(warp(0));
        barrier(&mut script);
        script.through(warp(1), DATA, 3);
        assert_eq!(ordered_state(&script, NonTemporalOrder::Epochs), [1, 0, 3]);
    }

    #[test]
    fn what_comes_along_in_a_line_brings_what_is_ordered_before_it() {
        let reached = FactKind::PersistReached(PersistScope::Thread);
        let mut script = Script::default();
        script.through(warp(1), LOG, 1).fact(reached, 0, warp(1)).through(warp(1), FLAG + 8, 9);
        script.through(warp(0), FLAG, 2).fact(reached, 0, warp(0)).through(warp(0), DATA, 3);
        assert_eq!(ordered_state(&script, NonTemporalOrder::Epochs), [1, 2, 3]);
        assert_eq!(state_of(&script, 2, NonTemporalOrder::Epochs), [1, 0, 0]);
    }

    #[test]
    fn a_flag_of_another_cta_that_comes_along_in_a_line_brings_its_log() {
        // Warp 1's flag is certain, beside which another CTA's flag is, which comes after a log.
        let other = warp_of(7, 0);
        for (logged, expected) in [(true, [1, 2, 3]), (false, [0, 2, 3])] {
            let mut script = Script::default();
            script.through(other, LOG, 1);
            if logged {
                script.ordered(other);
            }
            script.through(other, FLAG + 8, 9);
            // By the machine's order, and by a fence that waited.
            let [mut by_order, mut by_fence] = [script.clone(), script];
            by_order.through(warp(1), FLAG, 2).ordered(warp(1)).through(warp(1), DATA, 3);
            by_fence.through(warp(1), FLAG, 2).fact(FactKind::FencePassed, 0, warp(1)).store(warp(1), DATA, 3);
            for script in [by_order, by_fence] {
                assert_eq!(ordered_state(&script, NonTemporalOrder::Epochs), expected);
            }
        }
    }

    #[test]
    fn other_ctas_are_as_they_were_in_time() {
        let (mut script, other) = (Script::default(), warp_of(7, 0));
        script.persist(other, FLAG, 2).persist(warp(1), DATA, 3);
        assert_eq!(state(&script, 0), [0, 2, 3]);
    }

    #[test]
    fn earlier_versions_of_the_line_bring_what_they_could_count_on() {
        let mut script = Script::default();
        script.persist(warp(0), FLAG, 2).persist(warp(0), DATA, 3).persist(warp(1), DATA + 8, 4);
        assert_eq!(state(&script, 0), [0, 2, 3], "warp 1's store persists with warp 0's, in one line");
    }
}
