//! P3 and P8: the promise of undo logging for an image after recovery, and the two persists that broke it.
//!
//! An element's expected content follows from the flags after recovery: the new value of the latest complete
//! transaction that covers it, else the old value of the first one. Where several launches use one flag after
//! the other, the flag alone does not say how far they came: any number of them that agrees with it and with
//! the data is accepted.
//!
//! ```text
//!  flag before recovery   fault shows as            missing persist     present persist
//!  idle                   data changed              flag := in tx       data
//!  in the transaction     log is not the old value  log                 flag := in tx
//!  complete               data is not new           data                flag := complete
//! ```
//! Source: AGPM section II-B and Fig. 1; the values of the flag as in [`durawarp_persist::undo`]. Invariants:
//! slots may overlap across launches in any way (they are cut into segments covered alike). Not modelled:
//! host writes to elements between launches; flags whose address is inside an element or a log.

use super::LINE;
use super::cuts::{self, Cuts};
use super::order::RunOrder;
use super::verdict::{Failure, Finding, Level, Persist, Property, Witness, WrongValue};
use durawarp_persist::image::PmImage;
use durawarp_persist::undo::{COMPLETE, IDLE, IN_TX, RecoveryStep, UndoLog};

/// What a transaction changes: the bytes of its slots, one slot after the other, before and after.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expected {
    /// Before.
    pub old: Vec<u8>,
    /// After.
    pub new: Vec<u8>,
}

/// A transaction's hold on a segment.
#[derive(Debug, Clone, Copy)]
struct Cover {
    transaction: u32,
    /// Where the segment's bytes are in `old` and `new`.
    at: u32,
    /// Where their old value is in the log.
    log: u64,
}

/// Bytes of persistent memory that the same transactions change.
#[derive(Debug, Clone)]
struct Segment {
    address: u64,
    bytes: u32,
    /// By launch.
    covers: Vec<Cover>,
}

/// A wrong element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wrong {
    segment: usize,
    /// The transaction to blame.
    transaction: usize,
}

/// An undo log with all that is needed to judge images by it.
#[derive(Debug, Clone)]
pub struct UndoRule {
    log: UndoLog,
    /// The same with slots joined, for recovery whose steps do not matter.
    joined: UndoLog,
    expected: Vec<Expected>,
    segments: Vec<Segment>,
    /// By flag: the transactions that use it, by launch, and the segments that no other transaction covers.
    chains: Vec<(Vec<usize>, Vec<usize>)>,
    /// Cut recovery off and run it again.
    double: bool,
}

impl UndoRule {
    /// A rule for `log`, whose transactions change what `expected` says, in the same order. With `double`
    /// recovery is cut off after each of its steps (at fewer places, evenly spaced, when there are many) and
    /// run again (P8).
    ///
    /// # Panics
    /// When a transaction has no expectation, or one whose bytes are not those of its slots.
    pub fn new(log: UndoLog, expected: Vec<Expected>, double: bool) -> UndoRule {
        assert_eq!(log.transactions.len(), expected.len(), "an expectation for each transaction");
        for (transaction, expected) in log.transactions.iter().zip(&expected) {
            let bytes: usize = transaction.slots.iter().map(|slot| slot.bytes as usize).sum();
            assert_eq!((expected.old.len(), expected.new.len()), (bytes, bytes), "bytes of all slots of a transaction");
        }
        let mut order: Vec<usize> = (0..log.transactions.len()).collect();
        order.sort_by_key(|&transaction| log.transactions[transaction].launch);
        let segments = segments(&log, &order);
        let mut flags: Vec<u64> = log.transactions.iter().map(|transaction| transaction.flag).collect();
        flags.sort_unstable();
        flags.dedup();
        let mut chains: Vec<(Vec<usize>, Vec<usize>)> = vec![Default::default(); flags.len()];
        let chain_of = |transaction: usize| flags.partition_point(|&flag| flag < log.transactions[transaction].flag);
        for &transaction in &order {
            chains[chain_of(transaction)].0.push(transaction);
        }
        for (number, segment) in segments.iter().enumerate() {
            let chain = chain_of(segment.covers[0].transaction as usize);
            if segment.covers.iter().all(|cover| chain_of(cover.transaction as usize) == chain) {
                chains[chain].1.push(number);
            }
        }
        UndoRule { joined: log.joined(), log, expected, segments, chains, double }
    }

    /// The log.
    pub fn log(&self) -> &UndoLog {
        &self.log
    }

    /// Log slots, and homes, that two transactions of one launch share: the first overlap of either kind a
    /// launch.
    pub fn overlaps(&self) -> Vec<Failure> {
        let mut failures = Vec::new();
        for log in [true, false] {
            let mut ranges: Vec<(u32, u64, u64, usize)> = Vec::new();
            for (number, transaction) in self.log.transactions.iter().enumerate() {
                let start = |slot: &durawarp_persist::undo::LogSlot| if log { slot.log } else { slot.home };
                let of = |slot| (transaction.launch, start(slot), start(slot) + u64::from(slot.bytes), number);
                ranges.extend(transaction.slots.iter().map(of));
            }
            // Sorted by launch and start, an overlap of any two means one of two neighbours.
            ranges.sort_unstable();
            let mut reported = None;
            for pair in ranges.windows(2) {
                let ((launch, _, end, one), (next, start, _, other)) = (pair[0], pair[1]);
                if launch != next || start >= end || reported == Some(launch) {
                    continue;
                }
                reported = Some(launch);
                let (what, one, other) = (if log { "log slots" } else { "elements" }, self.name(one), self.name(other));
                failures.push(Failure {
                    property: Property::Disjoint,
                    level: Level::Program,
                    point: 0,
                    choice: None,
                    time: 0,
                    what: format!("{what} of {one} and of {other} overlap at {start:#x}"),
                    values: Vec::new(),
                    witness: None,
                });
            }
        }
        failures
    }

    fn name(&self, transaction: usize) -> String {
        let transaction = &self.log.transactions[transaction];
        match transaction.cta {
            Some(cta) => format!("CTA {cta} of launch {}", transaction.launch),
            None => format!("launch {}", transaction.launch),
        }
    }

    /// Judges what recovery made of an image that was left when `begun` launches had begun: before its first
    /// launch, an element is the host's. Cost: the bytes of all elements.
    pub(super) fn judge(
        &self,
        survived: &PmImage,
        begun: u32,
        recovered: &PmImage,
        order: Option<&RunOrder<'_>>,
        out: &mut Vec<Finding>,
    ) {
        let finding = |what| Finding::in_words(Property::Undo, what);
        let mut complete = vec![false; self.log.transactions.len()];
        for (transactions, own) in &self.chains {
            let address = self.log.transactions[transactions[0]].flag;
            match recovered.word(address) {
                Ok(flag @ (IDLE | COMPLETE)) => {
                    let reached = self.reached(transactions, own, flag == COMPLETE, recovered);
                    for &transaction in &transactions[..reached] {
                        complete[transaction] = true;
                    }
                }
                Ok(flag) => out.push(finding(format!("the flag at {address:#x} is {flag} after recovery"))),
                Err(outside) => out.push(finding(outside.to_string())),
            }
        }
        // The flags say what is complete; only then is it known which content each segment must have.
        let mut wrong = 0_u64;
        let mut first = None;
        let counts = |segment: &Segment| self.log.transactions[segment.covers[0].transaction as usize].launch < begun;
        for (number, segment) in self.segments.iter().enumerate().filter(|(_, segment)| counts(segment)) {
            if !self.is_expected(segment, recovered, |transaction| complete[transaction]) {
                wrong += 1;
                first = first.or(Some(number));
            }
        }
        if let Some(first) = first {
            let wrong_one = Wrong { segment: first, transaction: self.blame(first, &complete, survived, recovered) };
            let segment = &self.segments[first];
            let is = recovered.read(segment.address, segment.bytes as usize).unwrap_or_default();
            let should_be = self.expected_of(segment, |transaction| complete[transaction]);
            let values = vec![WrongValue::of_bytes(segment.address, is, should_be)];
            out.push(Finding { values, ..self.explain(wrong_one, wrong, survived, order) });
        }
    }

    /// How many of the transactions of a flag are complete, as the flag and the segments that only they cover
    /// say.
    fn reached(&self, transactions: &[usize], own: &[usize], complete: bool, recovered: &PmImage) -> usize {
        if transactions.len() == 1 {
            return usize::from(complete);
        }
        let mismatches = |reached: usize| {
            let done = &transactions[..reached];
            own.iter()
                .filter(|&&segment| !self.is_expected(&self.segments[segment], recovered, |t| done.contains(&t)))
                .count()
        };
        let candidates = (usize::from(complete)..=transactions.len()).rev();
        candidates.min_by_key(|&reached| mismatches(reached)).unwrap_or_default()
    }

    /// What a segment should hold when these transactions are complete.
    fn expected_of(&self, segment: &Segment, complete: impl Fn(usize) -> bool) -> &[u8] {
        let latest = segment.covers.iter().rev().find(|cover| complete(cover.transaction as usize));
        match latest {
            Some(cover) => self.new_of(segment, cover),
            None => self.old_of(segment, &segment.covers[0]),
        }
    }

    fn is_expected(&self, segment: &Segment, recovered: &PmImage, complete: impl Fn(usize) -> bool) -> bool {
        let expected = self.expected_of(segment, complete);
        recovered.read(segment.address, segment.bytes as usize).is_ok_and(|found| found == expected)
    }

    fn old_of(&self, segment: &Segment, cover: &Cover) -> &[u8] {
        &self.expected[cover.transaction as usize].old[cover.at as usize..][..segment.bytes as usize]
    }

    fn new_of(&self, segment: &Segment, cover: &Cover) -> &[u8] {
        &self.expected[cover.transaction as usize].new[cover.at as usize..][..segment.bytes as usize]
    }

    /// The transaction whose promise a wrong segment breaks.
    fn blame(&self, segment: usize, complete: &[bool], survived: &PmImage, recovered: &PmImage) -> usize {
        let segment = &self.segments[segment];
        let found = recovered.read(segment.address, segment.bytes as usize).ok();
        let flag = |cover: &&Cover| survived.word(self.log.transactions[cover.transaction as usize].flag).ok();
        let is_complete = |cover: &&Cover| complete[cover.transaction as usize];
        let covers = || segment.covers.iter().rev();
        let not_rolled_back =
            covers().filter(|cover| !is_complete(cover)).find(|c| found == Some(self.new_of(segment, c)));
        let rolled_back = || covers().find(|cover| flag(cover) == Some(IN_TX));
        let unfinished = || covers().find(is_complete);
        let to_blame = not_rolled_back.or_else(rolled_back).or_else(unfinished).unwrap_or(&segment.covers[0]);
        to_blame.transaction as usize
    }

    fn explain(&self, wrong: Wrong, count: u64, survived: &PmImage, order: Option<&RunOrder<'_>>) -> Finding {
        let segment = &self.segments[wrong.segment];
        let transaction = &self.log.transactions[wrong.transaction];
        let name = self.name(wrong.transaction);
        let bytes = segment.bytes as usize;
        let covers = segment.covers.iter().find(|cover| cover.transaction as usize == wrong.transaction);
        let Some(cover) = covers else { unreachable!("a transaction is blamed for what it covers") };
        let (old, new) = (self.old_of(segment, cover), self.new_of(segment, cover));
        let seek = |role: &str, address: u64, wanted: &[u8]| {
            order.and_then(|order| seek(order, role, address, wanted, transaction.launch))
        };
        let durable = |address: u64| survived.read(address, bytes).unwrap_or_default();
        let home = durable(segment.address);
        // The flag before recovery says which branch recovery took, and so which persist it lacked.
        let (why, missing, present) = match survived.word(transaction.flag) {
            Ok(IN_TX) if durable(cover.log) != old => (
                "the flag is durable and the log is not",
                seek("log", cover.log, old),
                seek("flag", transaction.flag, &IN_TX.to_le_bytes()),
            ),
            Ok(IN_TX) => ("the log is durable, but rolling it back does not give the expected bytes", None, None),
            Ok(COMPLETE) => (
                "the flag says complete and the data is not durable",
                seek("data", segment.address, new),
                seek("flag", transaction.flag, &COMPLETE.to_le_bytes()),
            ),
            _ => (
                "data is durable and the flag is not",
                seek("flag", transaction.flag, &IN_TX.to_le_bytes()),
                seek("data", segment.address, home),
            ),
        };
        let witness = (missing.is_some() || present.is_some()).then_some(Witness { missing, present });
        let more = if count > 1 { format!(" ({} more elements are wrong)", count - 1) } else { String::new() };
        let what = format!("{name}: an element is wrong after recovery: {why}{more}");
        Finding { witness, ..Finding::in_words(Property::Undo, what) }
    }

    /// Recovery of an image, and its steps if they are needed for [`UndoRule::judge_cuts`].
    pub(super) fn recover(&self, image: &mut PmImage) -> Result<Vec<RecoveryStep>, String> {
        if !self.double {
            return self.recover_at_once(image).map(|()| Vec::new());
        }
        let steps = self.log.recovery(image).map_err(|outside| outside.to_string())?;
        for step in &steps {
            image.write(step.address, &step.data).map_err(|outside| outside.to_string())?;
        }
        Ok(steps)
    }

    fn recover_at_once(&self, image: &mut PmImage) -> Result<(), String> {
        // A transaction that cannot be rolled back keeps its flag: it is reported again, by the faulty slot.
        self.joined.recover(image).or_else(|_| self.log.recover(image)).map_err(|outside| outside.to_string())
    }

    /// P8: recovery that is cut off after any of its steps and started again comes to the same image.
    pub(super) fn judge_cuts(
        &self,
        survived: &PmImage,
        steps: &[RecoveryStep],
        recovered: &PmImage,
        out: &mut Vec<Finding>,
    ) {
        if !self.double {
            return;
        }
        out.extend(cuts::judge(Cuts::TO_THE_SAME_IMAGE, survived, steps, recovered, &|image| {
            self.recover_at_once(image)
        }));
    }
}

/// Cuts all slots into segments that the same transactions cover.
fn segments(log: &UndoLog, order: &[usize]) -> Vec<Segment> {
    let mut bounds: Vec<u64> = Vec::new();
    for slot in log.transactions.iter().flat_map(|transaction| &transaction.slots).filter(|slot| slot.bytes != 0) {
        bounds.extend([slot.home, slot.home + u64::from(slot.bytes)]);
    }
    bounds.sort_unstable();
    bounds.dedup();
    let segment = |pair: &[u64]| Segment { address: pair[0], bytes: (pair[1] - pair[0]) as u32, covers: Vec::new() };
    let mut segments: Vec<Segment> = bounds.windows(2).map(segment).collect();
    for &number in order {
        let mut before = 0;
        for slot in log.transactions[number].slots.iter() {
            let first = bounds.partition_point(|&bound| bound < slot.home);
            let end = slot.home + u64::from(slot.bytes);
            for segment in segments.iter_mut().skip(first).take_while(|segment| segment.address < end) {
                let offset = segment.address - slot.home;
                let (transaction, at) = (number as u32, before + offset as u32);
                segment.covers.push(Cover { transaction, at, log: slot.log + offset });
            }
            before += slot.bytes;
        }
    }
    segments.retain(|segment| !segment.covers.is_empty());
    segments
}

/// The write of the program that gave the bytes at an address these values: the launch's own, if one did.
fn seek(order: &RunOrder<'_>, role: &str, address: u64, wanted: &[u8], launch: u32) -> Option<Persist> {
    // Lines are named by their own addresses; an image's base may be anything.
    let line = order.line_with(address)?;
    let line_address = order.lines()[line].address;
    let start = (address - line_address) as usize;
    let bytes = wanted.len().min(order.extent(line) - start);
    let touched = (u128::MAX >> (LINE - bytes)) << start;
    let mut found = None;
    for (at, version) in order.lines()[line].versions.iter().enumerate() {
        let version_number = at as u32 + 1;
        let mask = order.journal.facts()[version.performed as usize].mask;
        let Some(author) = order.author(line, version_number).filter(|_| mask & touched != 0) else { continue };
        if order.content(line, version_number, 0)[start..start + bytes] != wanted[..bytes] {
            continue;
        }
        let persist = Persist::new(role, author, line_address, address);
        if author.cta().is_some_and(|(of, _)| of == launch) {
            return Some(persist);
        }
        found = found.or(Some(persist));
    }
    found
}

#[cfg(test)]
mod tests;
