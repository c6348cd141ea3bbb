//! Level B of verbs: states that the promise allows, though the machine did not come through them, and what
//! writing transactions again makes of them.
//!
//! At an instant a channel has so many verbs that are acknowledged and so many that are posted. A state has
//! the first verbs, at least the acknowledged ones, and a part of the next one. They are too many: some are
//! drawn.
//!
//! | kind | of each channel |
//! |---|---|
//! | 0 | what is acknowledged, and no more |
//! | 1 | all that is posted |
//! | single | one more than is acknowledged, and so on, with one line of the next |
//! | random | a number that is drawn, with lines of the next |
//! | torn | the same, with words of 8 bytes of the next |
//!
//! Invariants: choices are numbered; a state follows from instant, choice and seed.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::Ordering;

use super::{Channel, LineBytes, VerbOrder};
use crate::allowed::Budget;
use crate::judge::Watch;
use crate::verdict::{Failure, Level, Property, Verdict, WrongValue};
use crate::{Draw, LINE, WORDS, mix};
use durawarp_persist::journal::FactKind;

/// Bytes of a line that a failure shows: those of a line of cores.
const SHOWN: usize = 64;

/// What a channel has of its lines.
pub(super) type ChannelMemory = BTreeMap<u64, LineBytes>;

/// The states of a run that P6 allows.
#[derive(Debug, Clone)]
pub struct VerbStates<'o, 'a> {
    order: &'o VerbOrder<'a>,
    budget: Budget,
    /// When a verb has been posted or acknowledged: its fact.
    instants: Vec<u32>,
}

impl<'o, 'a> VerbStates<'o, 'a> {
    /// The states of a run; how many of each kind, and the seed of what is drawn.
    pub fn new(order: &'o VerbOrder<'a>, budget: Budget) -> VerbStates<'o, 'a> {
        let posted = order.channels.values().flat_map(|channel| &channel.verbs);
        let posted = posted.filter_map(|verb| verb.lines.values().max().copied());
        let facts = order.journal.facts().iter().enumerate();
        let acknowledged = facts.filter(|(_, fact)| fact.kind == FactKind::VerbAcknowledged).map(|(at, _)| at as u32);
        let mut instants: Vec<u32> = posted.chain(acknowledged).collect();
        instants.sort_unstable();
        VerbStates { order, budget, instants }
    }

    /// Instants to judge, and how many are left out.
    fn instants(&self) -> (Vec<usize>, u64) {
        let all = self.instants.len();
        let count = (self.budget.instants as usize).clamp(1, all.max(1));
        let mut instants: Vec<usize> = (0..count).map(|at| at * (all - 1) / (count - 1).max(1)).collect();
        instants.dedup();
        let left_out = (all - instants.len()) as u64;
        (instants, left_out)
    }

    /// States of an instant.
    fn choices(&self) -> u64 {
        2 + self.budget.singles + self.budget.random + self.budget.torn
    }

    /// Verbs of a channel that are acknowledged, and posted, after an instant.
    fn bounds(&self, number: u16, instant: usize) -> Range<usize> {
        let channel = &self.order.channels[&number];
        let until = self.instants[instant];
        let posted = channel.verbs.partition_point(|verb| verb.lines.values().all(|&fact| fact <= until));
        let facts = self.instants[..=instant].iter().rev().map(|&at| self.order.fact(at));
        let mut acks = facts.filter(|fact| fact.kind == FactKind::VerbAcknowledged);
        // A machine that acknowledges what nobody posted is judged elsewhere.
        let acknowledged = acks.find_map(|fact| {
            let (_, sequence) = fact.author.verb().filter(|&(of, _)| of == number)?;
            channel.numbered(sequence)
        });
        let acknowledged = acknowledged.map_or(0, |verb| verb + 1);
        acknowledged.min(posted)..posted
    }

    /// What a channel has at an instant in every state.
    fn base(&self, number: u16, instant: usize) -> ChannelMemory {
        self.order.applied(&self.order.channels[&number], 0..self.bounds(number, instant).start)
    }

    /// The clients at an instant, in the order of channels, as `ends` are.
    fn clients<'s>(&self, instant: usize, ends: &'s [ChannelMemory]) -> Vec<Client<'s>> {
        let of = |((&number, channel), end)| {
            let again = self.order.applied(channel, self.again(number, instant));
            Client { number, end, base: self.base(number, instant), again }
        };
        self.order.channels.iter().zip(ends).map(of).collect()
    }

    /// The lines that a state has beside what every state has, `base`, as they are then.
    fn changes(&self, number: u16, instant: usize, choice: u64, base: &ChannelMemory) -> ChannelMemory {
        let (channel, bounds) = (&self.order.channels[&number], self.bounds(number, instant));
        let mut draw = Draw::new(mix(self.budget.seed ^ (instant as u64) << 20 ^ choice) ^ u64::from(number) << 48);
        let pending = bounds.len() as u64;
        let (singles, random) = (self.budget.singles, self.budget.random);
        let (whole, part): (u64, NextPart) = match choice {
            0 => (0, NextPart::None),
            1 => (pending, NextPart::None),
            single if single < 2 + singles => ((single - 2) % (pending + 1), NextPart::OneLine),
            of if of < 2 + singles + random => (draw.below(pending + 1), NextPart::Lines),
            _ => (draw.below(pending + 1), NextPart::Words),
        };
        let whole = bounds.start + whole as usize;
        // The lines as they are before, and then verb by verb.
        let end = bounds.end.min(whole + 1);
        let lines = channel.verbs[bounds.start..end].iter().flat_map(|verb| verb.lines.keys());
        let mut changes: ChannelMemory =
            lines.map(|line| (*line, base.get(line).copied().unwrap_or([0; LINE]))).collect();
        self.order.apply(channel, bounds.start..whole, &mut changes);
        if whole < bounds.end {
            self.order.apply_part(channel, whole, part, &mut draw, &mut changes);
        }
        changes
    }

    /// What a channel has in a state.
    #[cfg(test)]
    pub(super) fn memory(&self, number: u16, instant: usize, choice: u64) -> ChannelMemory {
        let mut memory = self.base(number, instant);
        memory.extend(self.changes(number, instant, choice, &memory));
        memory
    }

    /// The verbs that a client writes again after an instant.
    pub(super) fn again(&self, number: u16, instant: usize) -> Range<usize> {
        let channel = &self.order.channels[&number];
        channel.over(self.bounds(number, instant).start)..channel.verbs.len()
    }
}

/// What is durable of the verb behind those that are durable as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextPart {
    None,
    OneLine,
    Lines,
    Words,
}

impl VerbOrder<'_> {
    /// Writes verbs, one after the other.
    pub(super) fn apply(&self, channel: &Channel, verbs: Range<usize>, memory: &mut ChannelMemory) {
        for (&line, &fact) in channel.verbs[verbs].iter().flat_map(|verb| &verb.lines) {
            self.write(memory.entry(line).or_insert([0; LINE]), self.fact(fact));
        }
    }

    /// What verbs leave in memory that has nothing.
    fn applied(&self, channel: &Channel, verbs: Range<usize>) -> ChannelMemory {
        let mut memory = ChannelMemory::new();
        self.apply(channel, verbs, &mut memory);
        memory
    }

    /// What a channel's client is to have in the end.
    fn promised(&self, channel: &Channel) -> ChannelMemory {
        let mut memory = self.applied(channel, 0..channel.verbs.len());
        memory.retain(|line, _| channel.last.contains_key(line));
        memory
    }

    fn apply_part(&self, channel: &Channel, verb: usize, part: NextPart, draw: &mut Draw, memory: &mut ChannelMemory) {
        let lines = &channel.verbs[verb].lines;
        let one = draw.below(lines.len() as u64) as usize;
        for (nth, (&line, &fact)) in lines.iter().enumerate() {
            let words = match part {
                NextPart::None => 0,
                NextPart::OneLine => u64::from(nth == one) * u64::MAX,
                NextPart::Lines => draw.below(2) * u64::MAX,
                NextPart::Words => draw.below(1 << WORDS),
            };
            let to = memory.entry(line).or_insert([0; LINE]);
            let mut new = *to;
            self.write(&mut new, self.fact(fact));
            for word in (0..WORDS).filter(|word| words >> word & 1 == 1) {
                to[8 * word..8 * word + 8].copy_from_slice(&new[8 * word..8 * word + 8]);
            }
        }
    }
}

/// A channel at an instant, for all its states: what its client writes again is done once.
struct Client<'s> {
    number: u16,
    /// Without a failure, in the end.
    end: &'s ChannelMemory,
    base: ChannelMemory,
    /// Lines that it writes again, all of each.
    again: ChannelMemory,
}

impl Client<'_> {
    /// A line that is not what it is in the end, when the client has written again what was not acknowledged.
    fn wrong(&self, line: u64, content: &LineBytes) -> bool {
        // Nobody promises a line that was written last without being made durable.
        self.end.get(&line).is_some_and(|end| self.again.get(&line).unwrap_or(content) != end)
    }

    /// A wrong line of some.
    fn wrong_of(&self, lines: &ChannelMemory) -> Option<(u16, WrongValue)> {
        let found = lines.iter().find(|(line, content)| self.wrong(**line, content));
        found.map(|found| (self.number, self.wrong_value(found)))
    }

    /// A wrong line where a state has what every state has.
    fn always_wrong(&self) -> Option<(u16, WrongValue)> {
        let of_base = |line: &u64| (*line, self.base.get(line).copied().unwrap_or([0; LINE]));
        self.wrong_of(&self.end.keys().map(of_base).collect())
    }

    fn wrong_value(&self, (line, content): (&u64, &LineBytes)) -> WrongValue {
        let found = self.again.get(line).unwrap_or(content);
        WrongValue::of_bytes(*line, &found[..SHOWN], &self.end[line][..SHOWN])
    }
}

/// Judges states: in each, a client writes all transactions again that were not acknowledged, and has the
/// memory that it has without a failure.
pub fn judge_states(states: &VerbStates<'_, '_>, keep: usize, watch: &Watch<'_>) -> Verdict {
    let order = states.order;
    let ends: Vec<ChannelMemory> = order.channels.values().map(|channel| order.promised(channel)).collect();
    let mut verdict = Verdict::default();
    if states.instants.is_empty() {
        return Verdict { exhaustive: true, ..verdict };
    }
    let (instants, left_out) = states.instants();
    let total = instants.len() as u64 * states.choices();
    (verdict.points, verdict.distinct, verdict.left_out) = (total, total, left_out);
    for instant in instants {
        let clients = states.clients(instant, &ends);
        // What no state changes is looked at once.
        let always = clients.iter().find_map(Client::always_wrong);
        for choice in 0..states.choices() {
            if watch.stop.load(Ordering::Relaxed) {
                verdict.stopped = true;
                return verdict.settle(keep);
            }
            let changed = clients
                .iter()
                .find_map(|client| client.wrong_of(&states.changes(client.number, instant, choice, &client.base)));
            // One wrong line is enough of a state.
            let failure = changed.or_else(|| always.clone()).map(|(number, value)| Failure {
                property: Property::Verbs,
                level: Level::Allowed,
                point: instant as u64,
                choice: Some(choice),
                time: order.fact(states.instants[instant]).time,
                what: format!("channel {number}: what was not acknowledged is written again, and a line is wrong"),
                values: vec![value],
                witness: None,
            });
            verdict.add(failure, keep);
        }
        (watch.progress)(verdict.judged, total);
    }
    verdict.settle(keep)
}
