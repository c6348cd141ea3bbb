//! Tests on runs of a small machine of the protocol, which random choices drive: warps, controllers with
//! gated queues, messages that come late. The right protocol holds, each fault of it is found.
//!
//! Over 500 lines, since the machine, its faults, and what is found of each are read together.

mod persisted;
mod recoveries;
mod texts;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::AtomicBool;

use super::super::Draw;
use super::super::crash::Plan;
use super::super::judge::Watch;
use super::super::order::Model;
use super::super::verdict::{Failure, Property, Verdict, WrongBytes, WrongValue};
use super::*;
use durawarp_persist::promises::Promises;
use durawarp_persist::vocab::Domain;
use recoveries::{AsksNobody, DoesNotRollBack, Drains};

/// Words 0 to 15 are shared, then 16 private ones for each warp, the last of which is its program counter.
const SHARED: u64 = 16;
const PRIVATE: u64 = 16;
const WARPS: usize = 4;
const WORDS: u64 = SHARED + PRIVATE * WARPS as u64;

/// A region of the machine's one order, as a controller has it.
fn held(controller: u16, region: u32) -> Author {
    Author::HeldRegion { controller, order: 0, region }
}

fn initial() -> PmImage {
    PmImage::new(0, (0..WORDS).flat_map(|word| (word * 1000).to_le_bytes()).collect())
}

/// What is wrong with the protocol.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    BoundaryNotSentToTheLast,
    FlushBeforeBoundariesAreAcknowledged,
    CommitBeforeOthersAreDone,
    CommitBeforeDone,
    SpillWithoutLog,
    StoreLost,
    BoundaryOvertakesStores,
    DrawnBeforeTheAtomic,
    BarrierDoesNotEndRegions,
}

#[derive(Debug, Clone, Copy)]
enum Op {
    /// Stores to a private word.
    Store { word: u64, value: u64 },
    /// Adds to a shared word, in a region of its own.
    Add { word: u64, value: u64 },
    /// Ends the region.
    Boundary,
    /// All warps meet.
    Barrier,
}

/// The program of a warp.
fn program(warp: usize, draw: &mut Draw) -> Vec<Op> {
    let mut ops = Vec::new();
    for step in 0..draw.below(5) + 4 {
        for _ in 0..draw.below(4) {
            let word = SHARED + PRIVATE * warp as u64 + draw.below(PRIVATE - 1);
            ops.push(Op::Store { word, value: draw.next() });
        }
        if step == 2 {
            ops.push(Op::Store { word: SHARED + PRIVATE * warp as u64, value: draw.next() });
            ops.push(Op::Barrier);
        }
        ops.push(match draw.below(3) {
            0 => Op::Add { word: draw.below(SHARED), value: draw.below(100) + 1 },
            _ => Op::Boundary,
        });
    }
    ops.push(Op::Boundary);
    ops
}

/// A message on its way from a warp to a controller, or waiting in its buffer.
#[derive(Debug, Clone, Copy)]
enum Message {
    Store { region: u32, word: u64, value: u64 },
    Boundary { region: u32 },
}

#[derive(Debug, Default)]
struct Controller {
    next: u32,
    queue: Vec<(u32, u64, u64)>,
    bounded: BTreeSet<u32>,
    done: BTreeSet<u32>,
    /// Acknowledgements received: of boundaries, and of being done, by region and sender.
    heard: [BTreeSet<(u32, usize)>; 2],
}

#[derive(Debug, Default)]
struct Warp {
    ops: Vec<Op>,
    at: usize,
    region: Option<u32>,
    /// Drawn ahead, by the faulty order.
    drawn: Option<u32>,
    waits: bool,
    to: Vec<VecDeque<Message>>,
}

/// The machine under way.
struct Machine {
    fault: Fault,
    commit: CommitRule,
    draw: Draw,
    journal: Journal,
    time: u64,
    visible: Vec<u64>,
    durable: Vec<u64>,
    drawn: u32,
    warps: Vec<Warp>,
    controllers: Vec<Controller>,
    entries: usize,
    acks: Vec<(usize, usize, u32, usize)>,
    spills: u64,
}

/// Which programs ran, and what was noted.
struct RegionRun {
    journal: Journal,
    programs: Vec<Vec<Op>>,
    visible: Vec<u64>,
    controllers: usize,
    commit: CommitRule,
    spills: u64,
}

impl Machine {
    fn run(seed: u64, controllers: usize, fault: Fault) -> RegionRun {
        Machine::run_by(seed, controllers, fault, CommitRule::Acked)
    }

    fn run_by(seed: u64, controllers: usize, fault: Fault, commit: CommitRule) -> RegionRun {
        let mut draw = Draw::new(seed);
        let programs: Vec<Vec<Op>> = (0..WARPS).map(|warp| program(warp, &mut draw)).collect();
        let values: Vec<u64> = (0..WORDS).map(|word| word * 1000).collect();
        let warp = |ops: &Vec<Op>| Warp { ops: ops.clone(), to: vec![VecDeque::new(); controllers], ..Warp::default() };
        let mut machine = Machine {
            fault,
            commit,
            entries: draw.below(6) as usize + 2,
            draw,
            journal: Journal::default(),
            time: 0,
            visible: values.clone(),
            durable: values,
            drawn: 0,
            warps: programs.iter().map(warp).collect(),
            controllers: (0..controllers).map(|_| Controller::default()).collect(),
            acks: Vec::new(),
            spills: 0,
        };
        machine.journal.note(0, FactKind::KernelStarted, 0, 0, Author::Launch(0));
        let mut idle = 0;
        while idle < 2000 {
            idle = if machine.step() { 0 } else { idle + 1 };
        }
        let Machine { journal, visible, spills, .. } = machine;
        RegionRun { journal, programs, visible, controllers, commit, spills }
    }

    fn note(&mut self, kind: FactKind, author: Author, word: Option<(u64, u64)>) {
        self.time += self.draw.below(3);
        let Some((word, value)) = word else {
            self.journal.note(self.time, kind, 0, 0, author);
            return;
        };
        let (line, at) = (word / 16 * 128, (word % 16 * 8) as usize);
        let mut bytes = [0; 128];
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        self.journal.note_data(self.time, kind, line, 0xff << at, author, &bytes);
    }

    fn author(warp: usize, pc: u32) -> Author {
        Author::Warp { sm: (warp / 2) as u16, launch: 0, cta: 0, warp: warp as u8, pc }
    }

    fn region(&mut self, warp: usize) -> u32 {
        let drawn = self.warps[warp].drawn.take();
        *self.warps[warp].region.get_or_insert_with(|| {
            drawn.unwrap_or_else(|| {
                self.drawn += 1;
                self.drawn - 1
            })
        })
    }

    /// Stores, visibly at once, and sends a copy on its way.
    fn store(&mut self, warp: usize, word: u64, value: u64) {
        let pc = self.warps[warp].at as u32;
        self.visible[word as usize] = value;
        self.note(FactKind::Stored, Self::author(warp, pc), Some((word, value)));
        self.note(FactKind::Performed, Author::Sm((warp / 2) as u16), Some((word, value)));
        let region = self.region(warp);
        let author = Self::author(warp, pc).in_region(region);
        self.note(FactKind::Region(RegionStep::Stored), author, Some((word, value)));
        let to = (word / 4) as usize % self.controllers.len();
        let lost = self.fault == Fault::StoreLost && self.draw.below(8) == 0;
        if !lost {
            self.warps[warp].to[to].push_back(Message::Store { region, word, value });
        }
    }

    /// Ends the region: its program counter is its last store.
    fn end(&mut self, warp: usize, pc: usize) {
        self.store(warp, SHARED + PRIVATE * (warp as u64 + 1) - 1, pc as u64);
        let region = self.region(warp);
        self.note(FactKind::Region(RegionStep::Ended), Self::author(warp, 0).in_region(region), None);
        self.warps[warp].region = None;
        let count = self.controllers.len();
        let sent = if self.fault == Fault::BoundaryNotSentToTheLast { count - 1 } else { count };
        for to in &mut self.warps[warp].to[..sent] {
            match self.fault {
                Fault::BoundaryOvertakesStores => to.push_front(Message::Boundary { region }),
                _ => to.push_back(Message::Boundary { region }),
            }
        }
    }

    /// One random thing happens, if it can.
    fn step(&mut self) -> bool {
        let (warp, at) =
            (self.draw.below(WARPS as u64) as usize, self.draw.below(self.controllers.len() as u64) as usize);
        match self.draw.below(8) {
            0 => self.issue(warp),
            1 | 2 => self.deliver(warp, at),
            3 => self.spill(at),
            4 | 5 => self.hear(),
            _ => self.persist(at),
        }
    }

    fn issue(&mut self, warp: usize) -> bool {
        let at = self.warps[warp].at;
        let Some(&op) = self.warps[warp].ops.get(at).filter(|_| !self.warps[warp].waits) else { return false };
        match op {
            Op::Store { word, value } => self.store(warp, word, value),
            Op::Add { .. } if self.warps[warp].region.is_some() => {
                self.end(warp, at);
                // The boundary before the atomic draws the number, the atomic happens when it does.
                if self.fault == Fault::DrawnBeforeTheAtomic {
                    self.warps[warp].drawn = Some(self.drawn);
                    self.drawn += 1;
                }
                return true;
            }
            Op::Add { word, value } => {
                self.store(warp, word, self.visible[word as usize] + value);
                self.end(warp, at + 1);
            }
            Op::Boundary => self.end(warp, at + 1),
            Op::Barrier => {
                if self.fault != Fault::BarrierDoesNotEndRegions {
                    self.end(warp, at + 1);
                }
                self.warps[warp].waits = true;
                self.note(FactKind::BarrierReached, Self::author(warp, at as u32), None);
                if self.warps.iter().all(|warp| warp.waits) {
                    self.time += 1;
                    for warp in 0..WARPS {
                        let author = Self::author(warp, 0);
                        self.journal.note(self.time, FactKind::BarrierPassed, 0, 0, author);
                        self.warps[warp].waits = false;
                    }
                    self.time += 1;
                }
            }
        }
        self.warps[warp].at += 1;
        true
    }

    fn fact(&mut self, at: usize, step: RegionStep, region: u32, word: Option<(u64, u64)>) {
        self.note(FactKind::Region(step), held(at as u16, region), word);
    }

    fn tell(&mut self, what: usize, region: u32, from: usize) {
        self.acks.extend((0..self.controllers.len()).filter(|to| *to != from).map(|to| (what, to, region, from)));
    }

    fn hear(&mut self) -> bool {
        if self.acks.is_empty() {
            return false;
        }
        let at = self.draw.below(self.acks.len() as u64) as usize;
        let (what, to, region, from) = self.acks.swap_remove(at);
        self.controllers[to].heard[what].insert((region, from))
    }

    fn deliver(&mut self, warp: usize, at: usize) -> bool {
        let Some(&message) = self.warps[warp].to[at].front() else { return false };
        // What is buffered of the region goes first.
        let oldest = |entry: &(u32, u64, u64)| entry.0 == self.controllers[at].next;
        let falls_back = self.falls_back(at) && !self.controllers[at].queue.iter().any(oldest);
        let controller = &mut self.controllers[at];
        match message {
            Message::Store { region, word, value } if controller.queue.len() < self.entries => {
                controller.queue.push((region, word, value));
                self.fact(at, RegionStep::Buffered, region, Some((word, value)));
            }
            Message::Store { region, word, value } if falls_back && region == controller.next => {
                self.overwrite(at, region, word, value);
            }
            Message::Store { .. } => return false,
            Message::Boundary { region } => {
                controller.bounded.insert(region);
                self.fact(at, RegionStep::Bounded, region, None);
                self.tell(0, region, at);
            }
        }
        self.warps[warp].to[at].pop_front();
        true
    }

    /// The queue is full, and the oldest region has not ended.
    fn falls_back(&self, at: usize) -> bool {
        let controller = &self.controllers[at];
        controller.queue.len() >= self.entries && !controller.bounded.contains(&controller.next)
    }

    fn overwrite(&mut self, at: usize, region: u32, word: u64, value: u64) {
        self.spills += 1;
        if self.fault != Fault::SpillWithoutLog {
            self.fact(at, RegionStep::Logged, region, Some((word, self.durable[word as usize])));
        }
        self.durable[word as usize] = value;
        self.fact(at, RegionStep::Spilled, region, Some((word, value)));
    }

    fn spill(&mut self, at: usize) -> bool {
        if !self.falls_back(at) {
            return false;
        }
        let controller = &mut self.controllers[at];
        let Some(oldest) = controller.queue.iter().position(|entry| entry.0 == controller.next) else { return false };
        let (region, word, value) = controller.queue.remove(oldest);
        self.overwrite(at, region, word, value);
        true
    }

    /// Flushes, or commits.
    fn persist(&mut self, at: usize) -> bool {
        let (count, fault, commit) = (self.controllers.len(), self.fault, self.commit);
        let controller = &mut self.controllers[at];
        let region = controller.next;
        let silent = |of: usize| fault == Fault::BoundaryNotSentToTheLast && of + 1 == count;
        let heard = |what: usize| {
            let mut others = (0..count).filter(|of| *of != at && !(what == 0 && silent(*of)));
            others.all(|of| controller.heard[what].contains(&(region, of)))
        };
        if !controller.done.contains(&region) {
            let bounded = controller.bounded.contains(&region) || silent(at);
            let early = fault == Fault::FlushBeforeBoundariesAreAcknowledged;
            if !bounded || !early && !heard(0) {
                return false;
            }
            let left = controller.queue.iter().position(|entry| entry.0 == region);
            if left.is_some() && fault == Fault::CommitBeforeDone {
                controller.next += 1;
                self.fact(at, RegionStep::Committed, region, None);
            } else if let Some(entry) = left {
                let (_, word, value) = controller.queue.remove(entry);
                self.durable[word as usize] = value;
                self.fact(at, RegionStep::Flushed, region, Some((word, value)));
            } else {
                controller.done.insert(region);
                self.fact(at, RegionStep::Done, region, None);
                self.tell(1, region, at);
            }
            return true;
        }
        if commit == CommitRule::Acked && fault != Fault::CommitBeforeOthersAreDone && !heard(1) {
            return false;
        }
        controller.next += 1;
        self.fact(at, RegionStep::Committed, region, None);
        true
    }
}

/// The programs, run on from an image.
struct Programs<'a> {
    run: &'a RegionRun,
    expected: Vec<u64>,
}

impl Programs<'_> {
    fn on(&self, image: &PmImage, mut regions: u64) -> (bool, PmImage) {
        let mut words: Vec<u64> =
            image.bytes().chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
        for (warp, ops) in self.run.programs.iter().enumerate() {
            let counter = (SHARED + PRIVATE * (warp as u64 + 1) - 1) as usize;
            let (mut at, mut pending) = (words[counter] as usize, words.clone());
            if at > ops.len() {
                // No boundary yet: the counter is as it was.
                at = 0;
            }
            for (pc, op) in ops.iter().enumerate().skip(at) {
                match *op {
                    Op::Store { word, value } => pending[word as usize] = value,
                    Op::Add { word, value } => pending[word as usize] += value,
                    Op::Boundary | Op::Barrier => {}
                }
                if !matches!(op, Op::Store { .. }) {
                    pending[counter] = pc as u64 + 1;
                    words.clone_from(&pending);
                    if regions == 0 {
                        return (false, image_of(&words));
                    }
                    regions -= 1;
                }
            }
        }
        (true, image_of(&words))
    }
}

fn image_of(words: &[u64]) -> PmImage {
    PmImage::new(0, words.iter().flat_map(|word| word.to_le_bytes()).collect())
}

impl Resumes for Programs<'_> {
    fn finish(&self, recovered: &PmImage) -> Result<(), String> {
        let (_, end) = self.on(recovered, u64::MAX);
        if end == image_of(&self.expected) { Ok(()) } else { Err("another result".to_owned()) }
    }

    fn finish_twice(&self, recovered: &PmImage, regions: u64) -> Result<(), TwiceResumed> {
        let (ended, image) = self.on(recovered, regions);
        if ended { Ok(()) } else { self.finish(&image).map_err(TwiceResumed::After) }
    }
}

struct Judged {
    history: Verdict,
    actual: Verdict,
    double: Verdict,
    resume: Verdict,
}

impl Judged {
    fn all(&self) -> [&Verdict; 4] {
        [&self.history, &self.actual, &self.double, &self.resume]
    }

    /// The verdicts that found something: H(istory), A(ctual), D(ouble), R(esume).
    fn messages(&self) -> String {
        "HADR".chars().zip(self.all()).filter(|(_, verdict)| !verdict.holds()).map(|(letter, _)| letter).collect()
    }
}

fn judge(run: &RegionRun, hardware: &dyn AtPowerFailure) -> Judged {
    let initial = initial();
    let model = Model { domain: Domain::Adr, promises: Promises::NONE };
    let order = RunOrder::new(&run.journal, &initial, model);
    let facts = RegionFacts::new(&order, &initial, run.controllers, false).unwrap().committed_by(run.commit);
    let history = judge_regions(&facts, true, 8);
    let asked = JudgeOptions { plan: Plan::All, double: true, seed: 1, keep: 8 };
    let stop = AtomicBool::new(false);
    let watch = Watch { stop: &stop, progress: &|_, _| {} };
    let (actual, double, firsts) = judge_recovery(&facts, &asked, hardware, &watch).unwrap();
    assert_eq!((actual.judged, actual.exhaustive), (facts.changes() + 1, true));
    actual::compare_both_ways(&facts, hardware);
    for failure in &actual.failures {
        let asked = JudgeOptions { plan: Plan::Only(failure.point), ..asked };
        let (again, ..) = judge_recovery(&facts, &asked, hardware, &watch).unwrap();
        assert!(!again.holds(), "{failure:?}");
    }
    let programs = Programs { run, expected: run.visible.clone() };
    let resume = judge_resume(&facts, &firsts, 6, &asked, hardware, &programs, &watch);
    Judged { history, actual, double: double.unwrap(), resume }
}

#[test]
fn the_protocol_holds_whenever_messages_come() {
    for (commit, seeds, most) in [(CommitRule::Acked, 200, 1), (CommitRule::Pipelined, 80, 5)] {
        let (mut points, mut spills, mut regions, mut ahead) = (0, 0, 0, 0);
        for seed in 0..seeds {
            let run = Machine::run_by(seed, seed as usize % 4 + 1, Fault::None, commit);
            let judged = judge(&run, &AsPublished);
            for verdict in judged.all() {
                assert!(verdict.holds(), "{commit:?}, seed {seed}: {:#?}", verdict.failures);
            }
            points += judged.actual.judged;
            regions += judged.resume.judged;
            spills += run.spills;
            ahead = ahead.max(most_apart(&run));
        }
        // Nothing of this is empty.
        let counted = format!("{commit:?}: {points} points, {spills} spills, {regions} resumed, {ahead} apart");
        let enough = points > 100 * seeds && spills > 2 * seeds && regions > 5 * seeds;
        assert!(enough, "{counted}");
        assert!(if most == 1 { ahead == 1 } else { ahead >= most }, "{counted}");
    }
}

/// By how many regions the flush IDs of two controllers differed at most.
fn most_apart(run: &RegionRun) -> u32 {
    let mut next = vec![0; run.controllers];
    let committed = |fact: &&Fact| fact.kind == FactKind::Region(RegionStep::Committed);
    let apart = run.journal.facts().iter().filter(committed).map(|fact| {
        let Author::HeldRegion { controller, region, .. } = fact.author else { unreachable!("{fact:?}") };
        next[usize::from(controller)] = region + 1;
        next.iter().max().unwrap() - next.iter().min().unwrap()
    });
    apart.max().unwrap_or_default()
}

/// For each judgement, the number of runs in which it finds a fault.
fn kills(fault: Fault, hardware: &dyn AtPowerFailure, commit: CommitRule) -> BTreeMap<char, u32> {
    let mut found = BTreeMap::new();
    for seed in 0..25 {
        let judged = judge(&Machine::run_by(seed, seed as usize % 3 + 2, fault, commit), hardware);
        judged.messages().chars().for_each(|letter| *found.entry(letter).or_default() += 1);
    }
    found
}

#[test]
fn faults_of_the_protocol_are_found() {
    use CommitRule::{Acked, Pipelined};
    // Each fault, and the judgements of which each must find it.
    let faults = [
        (Fault::None, ""),
        (Fault::BoundaryNotSentToTheLast, "HA"),
        (Fault::FlushBeforeBoundariesAreAcknowledged, "HA"),
        // The acknowledgements arrive at a power failure, which hides it. Pipelined, it is the rule.
        (Fault::CommitBeforeOthersAreDone, "H"),
        (Fault::CommitBeforeDone, "HA"),
        (Fault::SpillWithoutLog, "HA"),
        (Fault::StoreLost, "AR"),
        (Fault::BoundaryOvertakesStores, "HA"),
        (Fault::DrawnBeforeTheAtomic, "HR"),
        (Fault::BarrierDoesNotEndRegions, "H"),
    ];
    for ((fault, by), commit) in faults.into_iter().flat_map(|fault| [(fault, Acked), (fault, Pipelined)]) {
        let by = if (fault, commit) == (Fault::CommitBeforeOthersAreDone, Pipelined) { "" } else { by };
        let found = kills(fault, &AsPublished, commit);
        for letter in by.chars() {
            assert!(found.contains_key(&letter), "{fault:?}, {commit:?} is not found by {letter}: {found:?}");
        }
        assert_eq!(found.is_empty(), by.is_empty(), "{fault:?}, {commit:?}: {found:?}");
    }
}

#[test]
fn faults_of_recovery_are_found_in_states_that_are_right() {
    for (name, hardware) in [
        ("drains", &Drains as &dyn AtPowerFailure),
        ("asks nobody", &AsksNobody),
        ("does not roll back", &DoesNotRollBack),
    ] {
        for commit in [CommitRule::Acked, CommitRule::Pipelined] {
            let found = kills(Fault::None, hardware, commit);
            assert!(found.contains_key(&'A') && !found.contains_key(&'H'), "{name}, {commit:?}: {found:?}");
        }
    }
}

/// Two critical sections behind one lock; `late` is the number that the second to enter has drawn.
fn critical_sections(numbers: [u32; 3]) -> RegionRun {
    let mut run = Machine::run(0, 2, Fault::None);
    let mut journal = Journal::default();
    let mut time = 0;
    let mut note = |kind: FactKind, author: Author, at: u64, value: Option<u8>| {
        time += 1;
        let mut bytes = [0; 128];
        bytes[at as usize] = value.unwrap_or_default();
        match value {
            Some(_) => journal.note_data(time, kind, 0, 1 << at, author, &bytes),
            None => journal.note(time, kind, 0, 0, author),
        }
    };
    let lock = |warp: usize, region: u32, at: u64, value: u8| (warp, region, at, value);
    let [first, release, second] = numbers;
    // Warp 1 takes the lock, stores x, and releases it; warp 2 takes it, and stores x.
    let stores = [
        lock(1, first, 0, 1),
        lock(1, first, 8, 11),
        lock(1, release, 0, 0),
        lock(2, second, 0, 2),
        lock(2, second, 8, 22),
    ];
    for (warp, region, at, value) in stores {
        note(FactKind::Stored, Machine::author(warp, u32::from(value)), at, Some(value));
        note(FactKind::Performed, Author::Sm((warp / 2) as u16), at, Some(value));
        note(FactKind::Region(RegionStep::Stored), Machine::author(warp, 0).in_region(region), at, Some(value));
    }
    for (warp, region) in [(1, first), (1, release), (2, second)] {
        note(FactKind::Region(RegionStep::Ended), Machine::author(warp, 0).in_region(region), 0, None);
    }
    let at = |region: u32| held(0, region);
    for (_, region, place, value) in stores {
        note(FactKind::Region(RegionStep::Buffered), at(region), place, Some(value));
    }
    for region in 0..3 {
        note(FactKind::Region(RegionStep::Bounded), at(region), 0, None);
        for (_, _, place, value) in stores.iter().filter(|store| store.1 == region) {
            note(FactKind::Region(RegionStep::Flushed), at(region), *place, Some(*value));
        }
        note(FactKind::Region(RegionStep::Done), at(region), 0, None);
        note(FactKind::Region(RegionStep::Committed), at(region), 0, None);
    }
    run.journal = journal;
    run.controllers = 1;
    run
}

#[test]
fn a_number_drawn_before_the_lock_is_taken_contradicts_the_order_of_the_sections() {
    assert_eq!(judge(&critical_sections([0, 1, 2]), &AsPublished).messages().replace('R', ""), "");
    // Warp 2 drew its number while it waited for the lock.
    let judged = judge(&critical_sections([1, 2, 0]), &AsPublished);
    assert_eq!(judged.messages().replace('R', ""), "H", "each image is a prefix of the wrong order");
    let failure = judged.history.failures.iter().find(|failure| failure.what.contains("region 0")).unwrap();
    assert_eq!(failure.property, Property::Regions);
    assert!(failure.what.contains("is performed after that"), "{}", failure.what);
    let witness = failure.witness.as_ref().unwrap();
    assert_eq!((witness.missing.as_ref().unwrap().warp, witness.present.as_ref().unwrap().warp), (1, 2));
}

#[test]
fn stores_of_a_region_that_leave_in_another_order_than_they_are_performed_are_found() {
    // Performed as 1, 2; left as 2, 1: as an atomic's copy would, which comes later than that of a store
    // after it.
    let run = |order: [u8; 2]| {
        let mut run = critical_sections([0, 1, 2]);
        let mut journal = Journal::default();
        let mut note = |kind: FactKind, author: Author, value: u8| {
            let time = journal.facts().len() as u64;
            match value {
                0 => journal.note(time, kind, 0, 0, author),
                _ => journal.note_data(time, kind, 0, 1, author, &[value; 128]),
            }
        };
        let (warp, region) = (Machine::author(1, 0).in_region(0), held(0, 0));
        for value in [1, 2] {
            note(FactKind::Stored, Machine::author(1, value.into()), value);
            note(FactKind::Performed, Author::Sm(0), value);
        }
        for value in order {
            note(FactKind::Region(RegionStep::Stored), warp, value);
        }
        note(FactKind::Region(RegionStep::Ended), warp, 0);
        for value in order {
            note(FactKind::Region(RegionStep::Buffered), region, value);
        }
        note(FactKind::Region(RegionStep::Bounded), region, 0);
        for value in order {
            note(FactKind::Region(RegionStep::Flushed), region, value);
        }
        note(FactKind::Region(RegionStep::Done), region, 0);
        note(FactKind::Region(RegionStep::Committed), region, 0);
        run.journal = journal;
        judge(&run, &AsPublished).messages().replace('R', "")
    };
    assert_eq!(run([1, 2]), "");
    assert_eq!(run([2, 1]), "H");
}

#[test]
fn what_is_held_stays_when_an_older_store_to_its_bytes_is_written_ahead() {
    let run = |commit: CommitRule| {
        let mut run = critical_sections([0, 1, 2]);
        let mut journal = Journal::default();
        let mut note = |kind: FactKind, author: Author, value: Option<u8>| {
            let time = journal.facts().len() as u64;
            match value {
                None => journal.note(time, kind, 0, 0, author),
                Some(value) => journal.note_data(time, kind, 0, 1, author, &[value; 128]),
            }
        };
        let (warp, region) = (Machine::author(1, 0).in_region(0), held(0, 0));
        for value in [1, 2] {
            note(FactKind::Stored, Machine::author(1, value.into()), Some(value));
            note(FactKind::Performed, Author::Sm(0), Some(value));
        }
        for value in [1, 2] {
            note(FactKind::Region(RegionStep::Stored), warp, Some(value));
        }
        note(FactKind::Region(RegionStep::Ended), warp, None);
        // The first was to be written ahead; while its old byte is read, the region becomes the oldest.
        note(FactKind::Region(RegionStep::Buffered), region, Some(2));
        note(FactKind::Region(RegionStep::Logged), region, Some(0));
        note(FactKind::Region(RegionStep::Spilled), region, Some(1));
        note(FactKind::Region(RegionStep::Bounded), region, None);
        note(FactKind::Region(RegionStep::Flushed), region, Some(2));
        note(FactKind::Region(RegionStep::Done), region, None);
        note(FactKind::Region(RegionStep::Committed), region, None);
        (run.journal, run.commit) = (journal, commit);
        judge(&run, &AsPublished).messages().replace('R', "")
    };
    assert_eq!(run(CommitRule::Speculative), "");
    // Elsewhere a store that is spilled had its place in the queue.
    assert!(run(CommitRule::Pipelined).contains('H'));
}

#[test]
fn a_wrong_image_is_told_with_its_word_region_and_controller() {
    let journal_of = |lost: bool| {
        let mut run = critical_sections([0, 1, 2]);
        if lost {
            let mut journal = Journal::default();
            for fact in run.journal.facts() {
                let flushed = matches!(fact.kind, FactKind::Region(RegionStep::Flushed | RegionStep::Buffered));
                let gone = flushed && (fact.author.region(), fact.mask) == (Some(2), 1 << 8);
                let bytes = bytes_of(&run.journal, fact);
                match run.journal.data(fact) {
                    _ if gone => {}
                    [] => journal.note(fact.time, fact.kind, fact.line, fact.mask, fact.author),
                    _ => journal.note_data(fact.time, fact.kind, fact.line, fact.mask, fact.author, &bytes),
                }
            }
            run.journal = journal;
        }
        run
    };
    assert!(judge(&journal_of(false), &AsPublished).actual.holds());
    let judged = judge(&journal_of(true), &AsPublished);
    let failure = &judged.actual.failures[0];
    for words in ["regions below 3", "it lacks region 2"] {
        assert!(failure.what.contains(words), "no `{words}` in {}", failure.what);
    }
    let word = |value: u64| value.to_le_bytes().to_vec();
    let wrong = WrongBytes { address: 8, found: word(0x30b), expected: Some(word(0x316)) };
    assert_eq!(failure.values, [WrongValue { bytes: Some(wrong), element: None }]);
    let missing = failure.witness.as_ref().unwrap().missing.as_ref().unwrap();
    assert_eq!((missing.warp, missing.address), (2, 8));
}

#[test]
fn orders_of_several_sms_commit_each_by_itself() {
    // Two SMs with an order each; SM 1's store after SM 0's launch commits before it.
    let run = |inverted: bool| {
        let mut run = critical_sections([0, 1, 2]);
        let mut journal = Journal::default();
        let (mut time, bytes) = (0, [7; 128]);
        let mut note = |kind: FactKind, author: Author, mask: u128| {
            time += 1;
            match mask {
                0 => journal.note(time, kind, 0, 0, author),
                _ => journal.note_data(time, kind, 0, mask, author, &bytes),
            }
        };
        for which in [0, 1] {
            let launch = u32::from(which);
            let warp = Author::Warp { sm: which, launch, cta: 0, warp: 0, pc: 9 };
            note(FactKind::KernelStarted, Author::Launch(launch), 0);
            note(FactKind::Stored, warp, 1 << which);
            note(FactKind::Performed, Author::Sm(which), 1 << which);
            note(FactKind::Region(RegionStep::Stored), warp.in_region(0), 1 << which);
            note(FactKind::Region(RegionStep::Ended), warp.in_region(0), 0);
        }
        for which in if inverted { [1, 0] } else { [0, 1] } {
            let at = Author::HeldRegion { controller: 0, order: which, region: 0 };
            for (step, mask) in [
                (RegionStep::Buffered, 1 << which),
                (RegionStep::Bounded, 0),
                (RegionStep::Flushed, 1 << which),
                (RegionStep::Done, 0),
                (RegionStep::Committed, 0),
            ] {
                note(FactKind::Region(step), at, mask);
            }
        }
        run.journal = journal;
        run
    };
    assert_eq!(judge(&run(false), &AsPublished).messages().replace('R', ""), "");
    let inverted = judge(&run(true), &AsPublished);
    assert_eq!(inverted.messages().replace('R', ""), "H");
    let what = &inverted.history.failures[0].what;
    assert_eq!(what, "region 0 of SM 1 commits before region 0 of SM 0, and comes behind that in the program");
}

#[test]
fn the_hosts_writes_are_part_of_what_memory_should_have() {
    let write = |journal: &mut Journal, time: u64, value: u8| {
        let author = Author::Host;
        journal.note_data(time, FactKind::Performed, 128, 1, author, &[value; 128]);
        journal.note_data(time + 1, FactKind::Accepted, 128, 1, Author::default(), &[value; 128]);
    };
    let mut run = critical_sections([0, 1, 2]);
    let last = run.journal.facts().last().unwrap().time;
    write(&mut run.journal, last + 1, 5);
    let judged = judge(&run, &AsPublished);
    assert_eq!(judged.messages().replace('R', ""), "");
    assert_eq!(judged.actual.points, crash_points(&critical_sections([0, 1, 2])) + 1);
    // It writes over a store of a region that never commits.
    let mut early = critical_sections([0, 1, 2]);
    let mut journal = Journal::default();
    for fact in early.journal.facts().iter().filter(|fact| !matches!(fact.kind, FactKind::Region(RegionStep::Bounded)))
    {
        let bytes = bytes_of(&early.journal, fact);
        let step = gate::step_of(fact);
        match (step, early.journal.data(fact)) {
            (Some(step), _) if at_controller(step) => {}
            (_, []) => journal.note(fact.time, fact.kind, fact.line, fact.mask, fact.author),
            _ => journal.note_data(fact.time, fact.kind, fact.line, fact.mask, fact.author, &bytes),
        }
    }
    let author = Author::Host;
    journal.note_data(last + 1, FactKind::Performed, 0, 1 << 8, author, &[9; 128]);
    journal.note_data(last + 2, FactKind::Accepted, 0, 1 << 8, Author::default(), &[9; 128]);
    early.journal = journal;
    let judged = judge(&early, &AsPublished);
    let told = |failure: &Failure| failure.what.contains("the host writes 0x8 when region 2");
    assert!(judged.history.failures.iter().any(told), "{:?}", judged.history.failures);
}

fn crash_points(run: &RegionRun) -> u64 {
    let initial = initial();
    let model = Model { domain: Domain::Adr, promises: Promises::NONE };
    let order = RunOrder::new(&run.journal, &initial, model);
    RegionFacts::new(&order, &initial, run.controllers, false).unwrap().changes() + 1
}
