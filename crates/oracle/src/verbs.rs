//! What clients over a network are promised of the verbs that they post (P6).
//!
//! ```text
//!  channel:   verb 1 ─ verb 2 ─ verb 3 ─ verb 4        durable: whole verbs, in order, and a part of the next
//!             ████     ████     ██░░     ░░░░
//!                      └─ acknowledged: 1 and 2 are durable
//! ```
//! * A line of a verb is durable only when all lines of the verbs before it in its channel are. Lines of one
//!   verb are in no order, and channels are in none.
//! * A verb that is acknowledged is durable, and so are all before it in its channel.
//! * A transaction is over when its last verb is acknowledged. A client that writes all its other
//!   transactions again, in their order, has the memory that it would have had without a failure.
//! * A line has, when it is durable, what its client posted.
//! * A verb that is not persistent ([`FactKind::VerbWritten`]) is promised nothing: its lines may be durable
//!   at any time after it was posted, in any order, or never. What a persistent one wrote over it stays.
//!
//! The truth is what clients noted when they posted ([`FactKind::VerbPosted`]): nothing here is what the
//! server believes, but that a write says which verb it is of, and its bytes must agree.
//!
//! Source: persistence parallelism, sections III and V (`rdma_pwrite`, its acknowledgement, buffered strict
//! persistence over the network); `hosts` of the design notes, section 5. Invariants: it reads facts alone; a
//! channel's verbs are numbered in the order in which they were posted. Not modelled: memory that two
//! channels, or a channel and a hart, write (a machine gives each its own).

mod states;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::authors::misattributed;
use super::runs;
use super::verdict::{Failure, Level, Persist, Property, Verdict, Witness};
use durawarp_persist::journal::{Author, Fact, FactKind, Journal};
use durawarp_persist::vocab::Domain;

pub use states::{VerbStates, judge_states};

/// Bytes of a line.
type LineBytes = [u8; super::LINE];

/// A verb.
#[derive(Debug, Clone)]
struct Verb {
    number: u32,
    transaction: u32,
    /// The fact of each of its lines, by address.
    lines: BTreeMap<u64, u32>,
}

/// A channel, which a client posts to.
#[derive(Debug, Clone, Default)]
struct Channel {
    /// In the order in which they were posted.
    verbs: Vec<Verb>,
    /// By line: the last verb that writes it, unless one that is not persistent does after it.
    last: BTreeMap<u64, usize>,
    /// By line: what verbs that are not persistent wrote.
    plain: BTreeMap<u64, Vec<u32>>,
}

/// The verbs of a run, by channel.
#[derive(Debug, Clone)]
pub struct VerbOrder<'a> {
    journal: &'a Journal,
    domain: Domain,
    channels: BTreeMap<u16, Channel>,
}

/// The facts that are changes of what is durable of clients' memory: no cache has its lines.
fn change_kind(domain: Domain) -> FactKind {
    if domain == Domain::Media { FactKind::AtMedia } else { FactKind::Accepted }
}

/// The facts of clients and of the server's memory that they have: what the judge of the server's own program
/// does not look at. `remote` are the addresses of that memory.
pub fn is_of_clients(fact: &Fact, remote: &std::ops::Range<u64>) -> bool {
    matches!(fact.kind, FactKind::VerbPosted | FactKind::VerbWritten | FactKind::VerbAcknowledged)
        || remote.contains(&fact.line)
}

impl Channel {
    /// So many verbs are of transactions that are over, when so many verbs are acknowledged.
    fn over(&self, acknowledged: usize) -> usize {
        let Some(first_open) = self.verbs.get(acknowledged) else { return self.verbs.len() };
        let of_open = |verb: &&Verb| verb.transaction == first_open.transaction;
        acknowledged - self.verbs[..acknowledged].iter().rev().take_while(of_open).count()
    }

    fn numbered(&self, number: u32) -> Option<usize> {
        self.verbs.binary_search_by_key(&number, |verb| verb.number).ok()
    }
}

impl<'a> VerbOrder<'a> {
    /// The verbs of a journal.
    pub fn new(journal: &'a Journal, domain: Domain) -> VerbOrder<'a> {
        let mut channels: BTreeMap<u16, Channel> = BTreeMap::new();
        for (at, fact) in journal.facts().iter().enumerate() {
            if !matches!(fact.kind, FactKind::VerbPosted | FactKind::VerbWritten) {
                continue;
            }
            let Author::PostedVerb { channel, transaction, sequence: number } = fact.author else { continue };
            let channel = channels.entry(channel).or_default();
            if fact.kind == FactKind::VerbWritten {
                channel.plain.entry(fact.line).or_default().push(at as u32);
                channel.last.remove(&fact.line);
                continue;
            }
            if channel.verbs.last().is_none_or(|verb| verb.number != number) {
                channel.verbs.push(Verb { number, transaction, lines: BTreeMap::new() });
            }
            let verb = channel.verbs.len() - 1;
            channel.verbs[verb].lines.insert(fact.line, at as u32);
            channel.last.insert(fact.line, verb);
        }
        VerbOrder { journal, domain, channels }
    }

    /// Channels that posted something.
    pub fn channels(&self) -> u64 {
        self.channels.len() as u64
    }

    /// Verbs that were posted and are to be durable.
    pub fn verbs(&self) -> u64 {
        self.channels.values().map(|channel| channel.verbs.len() as u64).sum()
    }

    /// Acknowledgements that were noted.
    pub fn acknowledgements(&self) -> u64 {
        self.journal.facts().iter().filter(|fact| fact.kind == FactKind::VerbAcknowledged).count() as u64
    }

    fn fact(&self, at: u32) -> &'a Fact {
        &self.journal.facts()[at as usize]
    }

    /// Writes what a fact has of a line.
    fn write(&self, to: &mut LineBytes, fact: &Fact) {
        let (data, mut taken) = (self.journal.data(fact), 0);
        for (start, bytes) in runs(fact.mask) {
            to[start..start + bytes].copy_from_slice(&data[taken..taken + bytes]);
            taken += bytes;
        }
    }

    /// Judges every change of what is durable, every acknowledgement, and what writing transactions again
    /// comes to then. Writes that are durable at one time are so together. Keeps the first `keep` failures.
    pub fn judge_history(&self, keep: usize) -> Verdict {
        let mut verdict = Verdict { exhaustive: true, ..Verdict::default() };
        let mut now: BTreeMap<u16, ChannelProgress<'_, 'a>> = self
            .channels
            .iter()
            .map(|(&number, channel)| (number, ChannelProgress::new(self, number, channel)))
            .collect();
        let (change, facts) = (change_kind(self.domain), self.journal.facts());
        let mut point = 0;
        let mut at = 0;
        while at < facts.len() {
            let together = facts[at..].iter().take_while(|fact| fact.time == facts[at].time).count();
            let of_time = &facts[at..at + together];
            let of = |kind: FactKind| of_time.iter().filter(move |fact| fact.kind == kind);
            let foreign = of_time.iter().filter_map(|fact| Some(wrong(Property::Facts, fact, misattributed(fact)?)));
            let mut failures: Vec<Failure> = foreign.collect();
            let mut new = Vec::new();
            for fact in of(change) {
                let durable = match fact.author {
                    Author::Verb { channel, sequence } => now.get_mut(&channel).map(|of| (of, channel, sequence)),
                    // What a cache has written is of no verb.
                    _ => {
                        let plain = now.values_mut().find(|of| of.channel.plain.contains_key(&fact.line));
                        if let Some(channel) = plain {
                            failures.extend(channel.durable_plain(fact));
                            continue;
                        }
                        None
                    }
                };
                match durable {
                    Some((of, channel, sequence)) => match of.durable(fact, sequence) {
                        Ok(verb) => new.push((fact, channel, verb)),
                        Err(failure) => failures.push(*failure),
                    },
                    None => failures.push(wrong(Property::Facts, fact, "a durable line is of no channel")),
                }
            }
            failures.extend(new.into_iter().filter_map(|(fact, of, verb)| now[&of].out_of_order(fact, verb)));
            for fact in of(FactKind::VerbAcknowledged) {
                let Author::Verb { channel, sequence } = fact.author else { continue };
                match now.get_mut(&channel) {
                    Some(channel) => failures.extend(channel.acknowledged(fact, sequence)),
                    None => failures.push(wrong(Property::Facts, fact, "an acknowledgement is of no channel")),
                }
            }
            let states = (of(change).count() + of(FactKind::VerbAcknowledged).count()) as u64;
            point += states;
            verdict.points += states;
            verdict.judged += states;
            verdict.passed += states.saturating_sub(failures.len() as u64);
            verdict.failed += failures.len() as u64;
            let room = keep.saturating_sub(verdict.failures.len());
            verdict.failures.extend(failures.into_iter().take(room).map(|failure| Failure { point, ..failure }));
            at += together;
        }
        verdict.distinct = verdict.points;
        verdict.settle(keep)
    }
}

/// A failure of a fact, but for its point.
fn wrong(property: Property, fact: &Fact, what: impl Into<String>) -> Failure {
    let (level, choice, values, witness) = (Level::Actual, None, Vec::new(), None);
    Failure { property, level, point: 0, choice, time: fact.time, what: what.into(), values, witness }
}

/// How far a channel has come while a history is judged.
struct ChannelProgress<'o, 'a> {
    order: &'o VerbOrder<'a>,
    number: u16,
    channel: &'o Channel,
    /// By verb: lines that are not durable.
    missing: Vec<BTreeMap<u64, u32>>,
    /// Verbs from the first on that are durable.
    whole: usize,
    /// Verbs from the first on that are acknowledged.
    acknowledged: usize,
    /// What is durable.
    memory: BTreeMap<u64, LineBytes>,
}

impl<'o, 'a> ChannelProgress<'o, 'a> {
    fn new(order: &'o VerbOrder<'a>, number: u16, channel: &'o Channel) -> ChannelProgress<'o, 'a> {
        let missing = channel.verbs.iter().map(|verb| verb.lines.clone()).collect();
        ChannelProgress { order, number, channel, missing, whole: 0, acknowledged: 0, memory: BTreeMap::new() }
    }

    /// A write of a verb is durable: the verb's place in the channel.
    fn durable(&mut self, fact: &Fact, number: u32) -> Result<usize, Box<Failure>> {
        let line = self.memory.entry(fact.line).or_insert([0; super::LINE]);
        self.order.write(line, fact);
        let verb = self.channel.numbered(number);
        let posted = verb.and_then(|verb| self.channel.verbs[verb].lines.get(&fact.line));
        let (Some(verb), Some(&posted)) = (verb, posted) else {
            let what = format!("a durable line at {:#x} is none of verb {number}", fact.line);
            return Err(Box::new(wrong(Property::Facts, fact, what)));
        };
        let posted = self.order.fact(posted);
        if posted.time > fact.time {
            let what = format!("verb {number} is durable before it was posted");
            return Err(Box::new(wrong(Property::Facts, fact, what)));
        }
        if (posted.mask, self.order.journal.data(posted)) != (fact.mask, self.order.journal.data(fact)) {
            let what = format!("a durable line at {:#x} is not what verb {number} posted", fact.line);
            return Err(Box::new(wrong(Property::Value, fact, what)));
        }
        self.missing[verb].remove(&fact.line);
        while self.missing.get(self.whole).is_some_and(BTreeMap::is_empty) {
            self.whole += 1;
        }
        match self.lost(verb..verb + 1, Some(fact.line)) {
            Some((line, _)) => Err(Box::new(self.not_repeated(fact, line))),
            None => Ok(verb),
        }
    }

    /// A line is durable that a cache has written, with what verbs wrote that are not persistent.
    fn durable_plain(&mut self, fact: &Fact) -> Option<Failure> {
        let line = self.memory.entry(fact.line).or_insert([0; super::LINE]);
        self.order.write(line, fact);
        let journal = self.order.journal;
        let same = |posted: &Fact| {
            posted.time <= fact.time && (posted.mask, journal.data(posted)) == (fact.mask, journal.data(fact))
        };
        if !self.channel.plain[&fact.line].iter().any(|&posted| same(self.order.fact(posted))) {
            let what =
                format!("a durable line at {:#x} is none that was written without being made durable", fact.line);
            return Some(wrong(Property::Value, fact, what));
        }
        let last = *self.channel.last.get(&fact.line)?;
        self.lost(last..last + 1, Some(fact.line)).map(|(line, _)| self.not_repeated(fact, line))
    }

    /// A line of a verb is durable, and one of an earlier verb is not.
    fn out_of_order(&self, fact: &Fact, verb: usize) -> Option<Failure> {
        if verb <= self.whole {
            return None;
        }
        let what = "a line of a verb is durable, and one of an earlier verb of its channel is not";
        let present = Some(self.named(verb, self.order.fact(self.channel.verbs[verb].lines[&fact.line])));
        let witness = Some(Witness { missing: self.first_missing(), present });
        Some(Failure { witness, ..wrong(Property::Verbs, fact, what) })
    }

    /// A verb is acknowledged.
    fn acknowledged(&mut self, fact: &Fact, number: u32) -> Option<Failure> {
        let Some(verb) = self.channel.numbered(number) else {
            return Some(wrong(Property::Facts, fact, "what is acknowledged was not posted"));
        };
        let before = self.channel.over(self.acknowledged);
        self.acknowledged = self.acknowledged.max(verb + 1);
        if verb >= self.whole {
            let what = "a verb is acknowledged, and a line of it, or of one before it, is not durable";
            let witness = Some(Witness { missing: self.first_missing(), present: None });
            return Some(Failure { witness, ..wrong(Property::Acknowledged, fact, what) });
        }
        let over = before..self.channel.over(self.acknowledged);
        self.lost(over, None).map(|(line, _)| self.not_repeated(fact, line))
    }

    /// A line that one of these verbs writes last, and whose transaction is over, does not have what it is to
    /// have in the end: nobody writes it again. Of all their lines, or of one.
    fn lost(&self, verbs: std::ops::Range<usize>, of: Option<u64>) -> Option<(u64, usize)> {
        let over = self.channel.over(self.acknowledged);
        let lines = verbs.flat_map(|verb| self.channel.verbs[verb].lines.keys().map(move |&line| (line, verb)));
        let mut lines = lines.filter(|&(line, _)| of.is_none_or(|of| of == line));
        lines.find(|(line, _)| {
            let last = self.channel.last.get(line).copied().filter(|&last| last < over);
            last.is_some_and(|last| self.memory.get(line) != Some(&self.content(last, *line)))
        })
    }

    /// What a verb writes to a line that it writes whole.
    fn content(&self, verb: usize, line: u64) -> LineBytes {
        let mut content = [0; super::LINE];
        self.order.write(&mut content, self.order.fact(self.channel.verbs[verb].lines[&line]));
        content
    }

    fn not_repeated(&self, fact: &Fact, line: u64) -> Failure {
        let what = format!(
            "channel {}: when all transactions that are not acknowledged are written again, the line at {line:#x} has \
             not what it is to have",
            self.number
        );
        wrong(Property::Verbs, fact, what)
    }

    fn first_missing(&self) -> Option<Persist> {
        let fact = self.order.fact(*self.missing.get(self.whole)?.values().next()?);
        Some(self.named(self.whole, fact))
    }

    fn named(&self, verb: usize, fact: &Fact) -> Persist {
        let role = format!("verb {}", self.channel.verbs[verb].number);
        Persist::new(&role, fact.author, fact.line, fact.line + u64::from(fact.mask.trailing_zeros()))
    }
}
