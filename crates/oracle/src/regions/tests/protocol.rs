//! A small machine of the protocol, which random choices drive, with one fault or none: warps, controllers
//! with gated queues, messages that come late. It notes what a simulated machine does. Its programs run on
//! from a recovered image.

use std::collections::{BTreeSet, VecDeque};

use super::*;

/// Words 0 to 15 are shared, then 16 private ones for each warp, the last of which is its program counter.
const SHARED: u64 = 16;
const PRIVATE: u64 = 16;
pub(super) const WARPS: usize = 4;
pub(super) const WORDS: u64 = SHARED + PRIVATE * WARPS as u64;

/// A region of the machine's one order, as a controller has it.
pub(super) fn held(controller: u16, region: u32) -> Author {
    Author::HeldRegion { controller, order: 0, region }
}

pub(super) fn initial() -> PmImage {
    PmImage::new(0, (0..WORDS).flat_map(|word| (word * 1000).to_le_bytes()).collect())
}

/// What is wrong with the protocol.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fault {
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
pub(super) enum Op {
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
pub(super) struct Machine {
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
pub(super) struct RegionRun {
    pub(super) journal: Journal,
    pub(super) programs: Vec<Vec<Op>>,
    pub(super) visible: Vec<u64>,
    pub(super) controllers: usize,
    pub(super) commit: CommitRule,
    pub(super) spills: u64,
}

impl Machine {
    pub(super) fn run(seed: u64, controllers: usize, fault: Fault) -> RegionRun {
        Machine::run_by(seed, controllers, fault, CommitRule::Acked)
    }

    pub(super) fn run_by(seed: u64, controllers: usize, fault: Fault, commit: CommitRule) -> RegionRun {
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

    pub(super) fn author(warp: usize, pc: u32) -> Author {
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
pub(super) struct Programs<'a> {
    pub(super) run: &'a RegionRun,
    pub(super) expected: Vec<u64>,
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

pub(super) fn image_of(words: &[u64]) -> PmImage {
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
