//! A controller's state from its facts: gated entries, boundaries, finished regions, the flush ID, the undo
//! log; and persistent memory as it is and as it should be.
//!
//! Source: LightWSP, sections IV-B and IV-D. Invariants: a gate holds what is buffered and neither flushed
//! nor spilled; words that differ between memory as it is and as it should be are known at any time, so that
//! comparing costs what differs.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::super::order::read_line;
use super::super::{LINE, runs};
use super::{RegionFacts, words_of};
use durawarp_persist::image::PmImage;
use durawarp_persist::journal::{Author, Fact, FactKind};
use durawarp_persist::vocab::{CommitRule, RegionStep};

/// Bytes of a store that a gated queue holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    /// The fact that it was buffered.
    pub(super) fact: u32,
    /// Those of its bytes that are still there.
    pub(super) mask: u128,
}

/// What a controller has of one order.
#[derive(Debug, Clone, Default)]
pub(super) struct Gate {
    /// The flush ID: the oldest region that is not committed here.
    pub(super) next: u32,
    /// By region, in the order of arrival.
    pub(super) held: BTreeMap<u32, Vec<Held>>,
    /// Regions whose boundary has come.
    pub(super) bounded: BTreeSet<u32>,
    /// Regions with all stores flushed.
    pub(super) done: BTreeSet<u32>,
    /// Facts of old bytes that were saved, for regions that are not committed.
    pub(super) log: Vec<u32>,
}

impl Gate {
    /// Makes a fact so, but for what memory has; false where it takes a store out that is not in.
    pub(super) fn note(&mut self, facts: &RegionFacts<'_>, at: u32, fact: &Fact, step: RegionStep) -> bool {
        let Some(number) = fact.author.region() else { return true };
        match step {
            RegionStep::Stored | RegionStep::Ended => {}
            RegionStep::Buffered => {
                self.held.entry(number).or_default().push(Held { fact: at, mask: fact.mask });
            }
            RegionStep::Bounded => {
                self.bounded.insert(number);
            }
            RegionStep::Done => {
                self.done.insert(number);
            }
            RegionStep::Committed => {
                self.next = number + 1;
                self.log.retain(|&log| facts.fact(log).author.region() > Some(number));
            }
            RegionStep::Logged => self.log.push(at),
            // Written ahead of its turn it never had a place: what is held of its bytes came behind it.
            RegionStep::Spilled if facts.commit == CommitRule::Speculative => {}
            // Without a place in the queue it comes straight from the SM.
            RegionStep::Spilled => {
                self.take(facts, fact);
            }
            RegionStep::Flushed => return self.take(facts, fact),
        }
        true
    }

    /// Takes the bytes of a fact out: those of one entry, or of several of a line that were joined.
    fn take(&mut self, facts: &RegionFacts<'_>, fact: &Fact) -> bool {
        let Some(number) = fact.author.region() else { return false };
        let Some(held) = self.held.get_mut(&number) else { return false };
        let same = |entry: &Held| {
            let buffered = facts.fact(entry.fact);
            entry.mask == fact.mask
                && (buffered.line, buffered.mask) == (fact.line, fact.mask)
                && facts.journal.data(buffered) == facts.journal.data(fact)
        };
        let mut known = true;
        // An entry that leaves as it came leaves alone: another with the same bytes stays.
        if let Some(one) = held.iter().position(same) {
            held.remove(one);
        } else {
            let (mut bytes, mut there) = ([0; LINE], 0);
            for entry in held.iter_mut().filter(|entry| facts.fact(entry.fact).line == fact.line) {
                let own = facts.bytes(facts.fact(entry.fact));
                for (start, count) in runs(entry.mask & fact.mask) {
                    bytes[start..start + count].copy_from_slice(&own[start..start + count]);
                }
                there |= entry.mask & fact.mask;
                entry.mask &= !fact.mask;
            }
            held.retain(|entry| entry.mask != 0);
            let moved = facts.bytes(fact);
            known = there == fact.mask
                && runs(there).all(|(start, count)| bytes[start..start + count] == moved[start..start + count]);
        }
        if held.is_empty() {
            self.held.remove(&number);
        }
        known
    }

    /// Forgets regions below this one: they are committed at all controllers.
    pub(super) fn forget_below(&mut self, number: u32) {
        while self.bounded.first().is_some_and(|&first| first < number) {
            self.bounded.pop_first();
        }
        while self.done.first().is_some_and(|&first| first < number) {
            self.done.pop_first();
        }
    }
}

/// The gates of all controllers: those of an order one after the other.
#[derive(Debug, Clone)]
pub(super) struct Gates {
    pub(super) gates: Vec<Gate>,
    pub(super) controllers: usize,
    /// By line: gates and regions that hold, or held, something of it, in the order in which recovery flushes
    /// them.
    pub(super) by_line: HashMap<u64, Vec<(usize, u32)>>,
}

impl Gates {
    pub(super) fn new(facts: &RegionFacts<'_>) -> Gates {
        let controllers = facts.controllers;
        Gates { gates: vec![Gate::default(); controllers * facts.names.len()], controllers, by_line: HashMap::new() }
    }

    /// Where the gate of a controller's fact is; none for a fact of no order.
    pub(super) fn place(&self, facts: &RegionFacts<'_>, fact: &Fact) -> Option<usize> {
        let Author::HeldRegion { controller, order, .. } = fact.author else { return None };
        Some(facts.order_named(order)? * self.controllers + usize::from(controller))
    }

    /// Those of an order.
    pub(super) fn of_order(&self, order: usize) -> &[Gate] {
        &self.gates[order * self.controllers..(order + 1) * self.controllers]
    }

    /// Makes a fact so.
    pub(super) fn note(&mut self, facts: &RegionFacts<'_>, at: u32, fact: &Fact, step: RegionStep) -> bool {
        let Some(place) = self.place(facts, fact) else { return true };
        let known = self.gates[place].note(facts, at, fact, step);
        if step == RegionStep::Buffered
            && let Some(region) = fact.author.region()
        {
            let gates = &self.gates;
            let holders = self.by_line.entry(fact.line).or_default();
            holders.retain(|(gate, region)| gates[*gate].held.contains_key(region));
            let own = (place, region);
            // A line is one controller's, so that gates of an order differ in nothing here.
            if let Err(at) = holders.binary_search(&own) {
                holders.insert(at, own);
            }
        }
        if step == RegionStep::Committed {
            let order = place / self.controllers;
            let oldest = self.of_order(order).iter().map(|gate| gate.next).min().unwrap_or_default();
            for gate in &mut self.gates[order * self.controllers..(order + 1) * self.controllers] {
                gate.forget_below(oldest);
            }
        }
        known
    }
}

/// Persistent memory, line by line: as it is, and as it should be after recovery.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    is: PmImage,
    should_be: PmImage,
    /// Words, by address, that are not as they should be after recovery, and their lines.
    pub(super) wrong: BTreeMap<u64, u64>,
    /// Bytes of lines that may have changed since they were compared.
    touched: Vec<(u64, u128)>,
}

impl Memory {
    pub(super) fn new(initial: &PmImage) -> Memory {
        let (is, should_be) = (initial.clone(), initial.clone());
        Memory { is, should_be, wrong: BTreeMap::new(), touched: Vec::new() }
    }

    /// Bytes of a line have to be compared again.
    pub(super) fn touch(&mut self, line: u64, mask: u128) {
        match self.touched.last_mut() {
            Some((last, touched)) if *last == line => *touched |= mask,
            _ => self.touched.push((line, mask)),
        }
    }

    /// Writes memory as it is.
    pub(super) fn write(&mut self, line: u64, mask: u128, bytes: &[u8; LINE]) {
        write(&mut self.is, line, mask, bytes);
        self.touch(line, mask);
    }

    /// Writes memory as it should be.
    pub(super) fn intend(&mut self, line: u64, mask: u128, bytes: &[u8; LINE]) {
        write(&mut self.should_be, line, mask, bytes);
        self.touch(line, mask);
    }

    /// A line as it is; what is outside is 0.
    pub(super) fn line(&self, line: u64) -> [u8; LINE] {
        line_of(&self.is, line)
    }

    /// A word as it should be.
    pub(super) fn word_wanted(&self, address: u64) -> u64 {
        self.should_be.read(address, 8).map_or(0, word)
    }

    /// Compares what was touched; `recovered` makes of a line as it is what recovery makes of it.
    pub(super) fn compare(&mut self, mut recovered: impl FnMut(u64, &mut [u8; LINE])) {
        self.touched.sort_unstable();
        let mut touched = std::mem::take(&mut self.touched);
        for same in touched.chunk_by_mut(|one, other| one.0 == other.0) {
            let (address, mask) = (same[0].0, same.iter().fold(0, |all, (_, mask)| all | mask));
            let mut line = self.line(address);
            recovered(address, &mut line);
            let wanted = line_of(&self.should_be, address);
            for at in (0..LINE).step_by(8).filter(|at| mask >> at & 0xff != 0) {
                let place = address + at as u64;
                if line[at..at + 8] == wanted[at..at + 8] {
                    self.wrong.remove(&place);
                } else {
                    self.wrong.insert(place, address);
                }
            }
        }
        touched.clear();
        self.touched = touched;
    }

    /// Lays bytes of a line over memory as it is.
    pub(super) fn lay(&self, over: &mut HashMap<u32, u64>, line: u64, mask: u128, bytes: &[u8; LINE]) {
        let first = ((line - self.is.base()) / 8) as u32;
        for (at, bits, value) in words_of(mask, bytes) {
            let place = first + at as u32;
            let word = over.entry(place).or_insert_with(|| self.word(place));
            *word = *word & !bits | value;
        }
    }

    fn word(&self, place: u32) -> u64 {
        self.is.read(self.address(place), 8).map_or(0, word)
    }

    /// The address of a word.
    pub(super) fn address(&self, place: u32) -> u64 {
        self.is.base() + u64::from(place) * 8
    }

    /// What memory has, with these laid over.
    pub(super) fn image(&self, over: &HashMap<u32, u64>) -> PmImage {
        let mut image = self.is.clone();
        for (&place, value) in over {
            let written = image.write(self.address(place), &value.to_le_bytes());
            assert!(written.is_ok(), "what regions store is inside: {written:?}");
        }
        image
    }

    /// The value of a word with these laid over.
    pub(super) fn value(&self, over: &HashMap<u32, u64>, place: u32) -> u64 {
        over.get(&place).copied().unwrap_or_else(|| self.word(place))
    }
}

fn line_of(image: &PmImage, address: u64) -> [u8; LINE] {
    image.read(address, LINE).map_or_else(|_| read_line(image, address), |line| std::array::from_fn(|at| line[at]))
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

fn write(image: &mut PmImage, line: u64, mask: u128, bytes: &[u8; LINE]) {
    for (start, count) in runs(mask) {
        let written = image.write(line + start as u64, &bytes[start..start + count]);
        assert!(written.is_ok(), "a change was checked when the facts were read: {written:?}");
    }
}

/// Whether a fact is noted by a controller.
pub(super) fn step_of(fact: &Fact) -> Option<RegionStep> {
    match fact.kind {
        FactKind::Region(step) => Some(step),
        _ => None,
    }
}
