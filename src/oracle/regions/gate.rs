//! A controller's state as its facts tell it: gated entries, boundaries, what is done, the flush ID, the undo log; and
//! persistent memory beside what it should be.
//!
//! Source: LightWSP, sections IV-B and IV-D. Invariants: a gate holds what is buffered and neither flushed nor spilled;
//! words that differ between memory as it is and as it should be are known at any time, so that comparing costs
//! what differs.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{LINE, runs};
use super::{RegionFacts, words_of};
use crate::persist::image::PmImage;
use crate::persist::journal::{Fact, FactKind};
use crate::persist::vocab::RegionStep;

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
    /// Regions all of whose stores are flushed.
    pub(super) done: BTreeSet<u32>,
    /// Facts of old bytes that were saved, for regions that are not committed.
    pub(super) log: Vec<u32>,
}

impl Gate {
    /// Makes a fact so, but for what memory has; false where it takes a store out that is not in.
    pub(super) fn note(&mut self, facts: &RegionFacts<'_>, at: u32, fact: &Fact, step: RegionStep) -> bool {
        let number = fact.author.pc;
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
                self.log.retain(|&log| facts.fact(log).author.pc > number);
            }
            RegionStep::Logged => self.log.push(at),
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
        let number = fact.author.pc;
        let Some(held) = self.held.get_mut(&number) else { return false };
        let same = |entry: &Held| {
            let buffered = facts.fact(entry.fact);
            entry.mask == fact.mask
                && (buffered.line, buffered.mask) == (fact.line, fact.mask)
                && facts.journal.data(buffered) == facts.journal.data(fact)
        };
        let mut known = true;
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

    /// Forgets what nobody asks for again: regions below this one are committed at all controllers.
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
}

impl Gates {
    pub(super) fn new(facts: &RegionFacts<'_>) -> Gates {
        let controllers = facts.controllers;
        Gates { gates: vec![Gate::default(); controllers * facts.names.len()], controllers }
    }

    /// Where the gate of a controller's fact is; none for a fact of no order.
    pub(super) fn place(&self, facts: &RegionFacts<'_>, fact: &Fact) -> Option<usize> {
        Some(facts.order_named(fact.author.warp)? * self.controllers + usize::from(fact.author.sm))
    }

    /// Those of an order.
    pub(super) fn of_order(&self, order: usize) -> &[Gate] {
        &self.gates[order * self.controllers..(order + 1) * self.controllers]
    }

    /// Makes a fact so.
    pub(super) fn note(&mut self, facts: &RegionFacts<'_>, at: u32, fact: &Fact, step: RegionStep) -> bool {
        let Some(place) = self.place(facts, fact) else { return true };
        let known = self.gates[place].note(facts, at, fact, step);
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

/// Persistent memory, word by word: as it is, and as it should be.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    base: u64,
    bytes: usize,
    is: Vec<u64>,
    should_be: Vec<u64>,
    differs: BTreeSet<u32>,
}

impl Memory {
    pub(super) fn new(initial: &PmImage) -> Memory {
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
        let words: Vec<u64> = initial.bytes().chunks(8).map(word).collect();
        let bytes = initial.bytes().len();
        Memory { base: initial.base(), bytes, is: words.clone(), should_be: words, differs: BTreeSet::new() }
    }

    /// The words that bytes of a line touch: place, bits, value.
    fn touched<'b>(
        &self,
        line: u64,
        mask: u128,
        bytes: &'b [u8; LINE],
    ) -> impl Iterator<Item = (u32, u64, u64)> + use<'b> {
        let first = ((line - self.base) / 8) as u32;
        words_of(mask, bytes).map(move |(word, bits, value)| (first + word as u32, bits, value))
    }

    fn compare(&mut self, place: u32) {
        if self.is[place as usize] == self.should_be[place as usize] {
            self.differs.remove(&place);
        } else {
            self.differs.insert(place);
        }
    }

    /// Writes memory as it is.
    pub(super) fn write(&mut self, line: u64, mask: u128, bytes: &[u8; LINE]) {
        for (place, bits, value) in self.touched(line, mask, bytes) {
            let word = &mut self.is[place as usize];
            *word = *word & !bits | value;
            self.compare(place);
        }
    }

    /// Writes memory as it should be.
    pub(super) fn intend(&mut self, line: u64, mask: u128, bytes: &[u8; LINE]) {
        for (place, bits, value) in self.touched(line, mask, bytes) {
            let word = &mut self.should_be[place as usize];
            *word = *word & !bits | value;
            self.compare(place);
        }
    }

    /// Lays bytes of a line over memory as it is.
    pub(super) fn lay(&self, over: &mut BTreeMap<u32, u64>, line: u64, mask: u128, bytes: &[u8; LINE]) {
        for (place, bits, value) in self.touched(line, mask, bytes) {
            let word = over.entry(place).or_insert(self.is[place as usize]);
            *word = *word & !bits | value;
        }
    }

    /// The first word that is not as it should be with these laid over, and how many there are: its place, what it is,
    /// what it should be.
    pub(super) fn wrong(&self, over: &BTreeMap<u32, u64>) -> Option<(u32, u64, u64, usize)> {
        let own = self
            .differs
            .iter()
            .filter(|place| !over.contains_key(place))
            .map(|&place| (place, self.is[place as usize]));
        let laid = over.iter().map(|(&place, &value)| (place, value));
        let wrong =
            || own.clone().chain(laid.clone()).filter(|&(place, value)| value != self.should_be[place as usize]);
        let (place, value) = wrong().min()?;
        Some((place, value, self.should_be[place as usize], wrong().count()))
    }

    /// The address of a word.
    pub(super) fn address(&self, place: u32) -> u64 {
        self.base + u64::from(place) * 8
    }

    /// What memory has, with these laid over.
    pub(super) fn image(&self, over: &BTreeMap<u32, u64>) -> PmImage {
        let mut words = self.is.clone();
        for (&place, &value) in over {
            words[place as usize] = value;
        }
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(self.bytes);
        PmImage::new(self.base, bytes)
    }

    /// The value of a word with these laid over.
    pub(super) fn value(&self, over: &BTreeMap<u32, u64>, place: u32) -> u64 {
        over.get(&place).copied().unwrap_or(self.is[place as usize])
    }
}

/// Whether a fact is noted by a controller.
pub(super) fn step_of(fact: &Fact) -> Option<RegionStep> {
    match fact.kind {
        FactKind::Region(step) => Some(step),
        _ => None,
    }
}
