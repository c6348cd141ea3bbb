//! Caches that survive a power failure: memory is all that was performed, in the order of visibility.
//!
//! ```text
//!  retired     hart 0: a b c      hart 1: x y          program order of each hart
//!  performed   a x b y c                               order of visibility: each hart's in its program order
//!  left                                                caches, messages, queues and memory: a line each
//! ```
//! Two judgements. [`judge_visibility`]: each store is performed once, as it retired, and no store of a hart
//! before an older one of it. What is durable in domain eADR is what is performed, so that every such instant
//! is a crash point. [`VisibleStores`]: what the machine really holds at an instant is the initial memory
//! with all stores performed by then.
//!
//! Source: `psp-ideal` of the oracle's design, "image = all Performed"; LightWSP, section V-D. Invariants:
//! facts and bytes alone are read; the same input gives the same verdict. Not modelled: registers, which are
//! lost; whether the program could go on with that memory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::authors::ShownAuthor;
use super::runs;
use super::verdict::{Failure, Level, Persist, Property, Verdict, Witness, WrongValue};
use durawarp_persist::image::{OutsideImage, PmImage};
use durawarp_persist::journal::{Fact, FactKind, Journal, Thread};

/// Bytes of a line of CPUs.
const LINE_BYTES: usize = 64;

/// Judges the order in which a run's stores were performed. In a run that `ended`, all that retired must have
/// been.
pub fn judge_visibility(journal: &Journal, ended: bool, keep: usize) -> Verdict {
    let mut verdict = Verdict { exhaustive: true, ..Verdict::default() };
    let mut retired: BTreeMap<Thread, VecDeque<usize>> = BTreeMap::new();
    let facts = journal.facts();
    for (at, fact) in facts.iter().enumerate() {
        // What no hart has done is a fault of the facts, which the order of the run reports.
        let Some(hart) = fact.author.thread() else { continue };
        let of_hart = retired.entry(hart);
        match fact.kind {
            FactKind::Retired => of_hart.or_default().push_back(at),
            FactKind::Performed => {
                verdict.points += 1;
                let found = performed(journal, fact, of_hart.or_default());
                verdict.add(found.map(|(what, missing)| order_failure(verdict.points, fact, what, missing)), keep);
            }
            _ => {}
        }
    }
    let last = facts.last().map_or(0, |fact| fact.time);
    for &at in retired.values().flatten().filter(|_| ended) {
        let mut fact = facts[at];
        fact.time = last;
        let what = format!("pc {:#x} retired a store that was never performed", ShownAuthor::from(fact.author).pc);
        verdict.failed += 1;
        verdict.failures.push(order_failure(verdict.points, &fact, what, Some(persist(&fact))));
    }
    verdict.distinct = verdict.points;
    verdict.settle(keep)
}

/// What is wrong with a store that is performed, and the older one that it has overtaken. Takes it out of
/// those that have retired.
fn performed(journal: &Journal, fact: &Fact, retired: &mut VecDeque<usize>) -> Option<(String, Option<Persist>)> {
    let facts = journal.facts();
    let same = |at: usize| {
        let issued = &facts[at];
        let place = (issued.author.pc(), issued.line, issued.mask);
        place == (fact.author.pc(), fact.line, fact.mask) && journal.data(issued) == journal.data(fact)
    };
    let ShownAuthor { sm: core, warp: hart, pc, .. } = fact.author.into();
    let Some(place) = retired.iter().position(|&at| same(at)) else {
        return Some((format!("hart {hart} of core {core} performed a store of pc {pc:#x} that did not retire"), None));
    };
    let oldest = &facts[retired[0]];
    retired.remove(place);
    (place > 0).then(|| {
        let older = ShownAuthor::from(oldest.author).pc;
        let what = format!(
            "hart {hart} of core {core} performed the store of pc {pc:#x} before that of pc {older:#x}, which is older"
        );
        (what, Some(persist(oldest)))
    })
}

fn order_failure(point: u64, fact: &Fact, what: String, missing: Option<Persist>) -> Failure {
    let present = (fact.kind == FactKind::Performed).then(|| persist(fact));
    Failure {
        property: Property::Visible,
        level: Level::Actual,
        point,
        choice: None,
        time: fact.time,
        what,
        values: Vec::new(),
        witness: Some(Witness { missing, present }),
    }
}

fn persist(fact: &Fact) -> Persist {
    Persist::new("store", fact.author, fact.line, fact.line + u64::from(fact.mask.trailing_zeros()))
}

/// Memory with the stores that were performed up to an instant. It goes forward only.
#[derive(Debug)]
pub struct VisibleStores<'a> {
    journal: &'a Journal,
    image: PmImage,
    /// By core: where its performed stores are in the journal, and how many of them are in the image.
    cores: Vec<(Vec<u32>, usize)>,
    /// Lines with stores, each with the last of them.
    lines: BTreeMap<u64, u32>,
}

impl<'a> VisibleStores<'a> {
    /// Before the first store of a machine of `cores` cores.
    pub fn new(journal: &'a Journal, initial: &PmImage, cores: usize) -> VisibleStores<'a> {
        let mut of_cores = vec![(Vec::new(), 0); cores];
        for (at, fact) in journal.facts().iter().enumerate().filter(|(_, fact)| fact.kind == FactKind::Performed) {
            let core = fact.author.processor().map(usize::from);
            if let Some((performed, _)) = core.and_then(|core| of_cores.get_mut(core)) {
                performed.push(at as u32);
            }
        }
        VisibleStores { journal, image: initial.clone(), cores: of_cores, lines: BTreeMap::new() }
    }

    /// Goes on to where each core has performed so many stores. A line has one core at a time that may write
    /// it, so that cores that are ahead of others do not change its order.
    ///
    /// # Errors
    /// A store outside of persistent memory.
    pub fn advance(&mut self, performed: impl IntoIterator<Item = u64>) -> Result<(), OutsideImage> {
        let mut new = BTreeSet::new();
        for ((of_core, done), count) in self.cores.iter_mut().zip(performed) {
            let count = of_core.len().min(count as usize).max(*done);
            new.extend(&of_core[*done..count]);
            *done = count;
        }
        for at in new {
            let fact = &self.journal.facts()[at as usize];
            let (data, mut from) = (self.journal.data(fact), 0);
            for (start, bytes) in runs(fact.mask) {
                self.image.write(fact.line + start as u64, &data[from..from + bytes])?;
                from += bytes;
            }
            self.lines.insert(fact.line, at);
        }
        Ok(())
    }

    /// What is wrong with what a machine has of the lines: the first of them, with the last store to it, of
    /// how many that are wrong.
    pub fn judge(&self, left: impl Fn(u64) -> [u8; LINE_BYTES], point: u64, time: u64) -> Option<Failure> {
        let mut wrong = self.lines.iter().filter_map(|(&line, &last)| {
            let (found, expected) = (left(line), self.image.read(line, LINE_BYTES).ok()?);
            let at = found.iter().zip(expected).position(|(found, expected)| found != expected)?;
            let word = at / 8 * 8..at / 8 * 8 + 8;
            let value = WrongValue::of_bytes(line + word.start as u64, &found[word.clone()], &expected[word]);
            Some((value, last))
        });
        let (value, last) = wrong.next()?;
        let others = match wrong.count() {
            0 => String::new(),
            others => format!(", as {others} others"),
        };
        Some(Failure {
            property: Property::Visible,
            level: Level::Actual,
            point,
            choice: None,
            time,
            what: format!("a line has not all stores that were performed by then{others}"),
            values: vec![value],
            witness: Some(Witness { missing: Some(persist(&self.journal.facts()[last as usize])), present: None }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use FactKind::{Performed, Retired};
    use durawarp_persist::journal::Author;

    /// A journal of words: kind, core, hart, line, value; each a tick after the other.
    fn journal(facts: &[(FactKind, u16, u8, u64, u8)]) -> Journal {
        let mut journal = Journal::default();
        for (time, &(kind, core, hart, line, value)) in facts.iter().enumerate() {
            // The program counter is the store's value: each store has its own.
            let author = Author::Hart { core, hart, pc: value.into() };
            journal.note_data(time as u64, kind, line, 0xff, author, &[value; 128]);
        }
        journal
    }

    fn order(facts: &[(FactKind, u16, u8, u64, u8)]) -> Verdict {
        judge_visibility(&journal(facts), true, 8)
    }

    #[test]
    fn stores_of_harts_may_interleave_and_those_of_one_may_not_overtake() {
        // Two harts of one core, in one line: no order but each hart's own.
        let stores = [(0, 0, 0, 1), (0, 1, 0, 2), (0, 1, 64, 3)];
        let fact = |kind, (core, hart, line, value)| (kind, core, hart, line, value);
        let with = |performed: [usize; 3]| {
            let retired = stores.map(|store| fact(Retired, store));
            order(&[retired, performed.map(|at| fact(Performed, stores[at]))].concat())
        };
        assert!(with([0, 1, 2]).holds() && with([1, 0, 2]).holds() && with([1, 2, 0]).holds());
        let swapped = with([0, 2, 1]);
        assert_eq!((swapped.failed, swapped.failures[0].point), (1, 2));
        let witness = swapped.failures[0].witness.as_ref().unwrap();
        let pc = |persist: &Option<Persist>| persist.as_ref().map(|persist| persist.pc);
        assert_eq!((pc(&witness.missing), pc(&witness.present)), (Some(2), Some(3)));
    }

    #[test]
    fn a_store_that_retired_must_be_performed_once_and_as_it_was() {
        let lost = order(&[(Retired, 0, 0, 0, 1), (Retired, 0, 0, 0, 2), (Performed, 0, 0, 0, 1)]);
        assert_eq!((lost.failed, lost.passed), (1, 1));
        assert!(lost.failures[0].what.contains("never performed"), "{lost:?}");
        // A run that was cut off has stores in its store buffers.
        assert!(judge_visibility(&journal(&[(Retired, 0, 0, 0, 1)]), false, 8).holds());
        let twice = order(&[(Retired, 0, 0, 0, 1), (Performed, 0, 0, 0, 1), (Performed, 0, 0, 0, 1)]);
        assert!(twice.failures[0].what.contains("did not retire"), "{twice:?}");
        let elsewhere = order(&[(Retired, 0, 0, 0, 1), (Performed, 0, 0, 64, 1)]);
        assert_eq!(elsewhere.failed, 2, "one that did not retire, and one that is never performed: {elsewhere:?}");
    }

    #[test]
    fn a_line_must_have_the_last_of_its_stores_at_every_instant() {
        let facts = [(Performed, 0, 0, 64, 1), (Performed, 1, 0, 128, 2), (Performed, 0, 0, 64, 3)];
        let (journal, initial) = (journal(&facts), PmImage::new(0, vec![9; 256]));
        let mut stores = VisibleStores::new(&journal, &initial, 2);
        let left = |first: u8, second: u8| {
            move |line: u64| {
                std::array::from_fn(|at| match (at, line) {
                    (8.., _) => 9,
                    (_, 64) => first,
                    _ => second,
                })
            }
        };
        // Lines without stores are not looked at.
        assert_eq!(stores.judge(left(0, 0), 0, 0), None);
        stores.advance([1, 0]).unwrap();
        assert_eq!(stores.judge(left(1, 0), 0, 0), None);
        assert!(stores.judge(left(9, 0), 0, 0).is_some(), "the store is lost");
        stores.advance([2, 1]).unwrap();
        assert_eq!(stores.judge(left(3, 2), 0, 0), None);
        for (first, second, others) in [(1, 2, ""), (3, 9, ""), (1, 9, ", as 1 others")] {
            let failure = stores.judge(left(first, second), 7, 8).unwrap();
            assert!(failure.what.ends_with(&format!("by then{others}")), "{failure:?}");
            assert_eq!((failure.point, failure.time), (7, 8));
        }
    }
}
