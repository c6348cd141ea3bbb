//! P4' of a machine that saves registers when power fails: durable bytes, and over them the stores that no
//! acknowledgement has come for, are all that was stored.
//!
//! ```text
//!  stored         s1 s2 s3 s4 s5        (performed; one core owns a line at a time)
//!  durable        s1 .. s3              accepted by a controller
//!  replayed          s2 .. s4 s5        not forgotten: by core, in the order in which it performed them
//! ```
//! Every change of what is performed, durable or forgotten is an instant at which power may fail. Only the
//! line that it concerns can be wrong then: it is compared with what was stored there. Each core replays its
//! own stores in order, and nothing orders those of two cores: the result must be the same either way. Stores
//! that have retired and are not performed are replayed last, and change both sides alike.
//!
//! Source: P4' of the oracle's design; Persistent Processor Architecture (MICRO'23). Invariants: facts alone
//! are read; the same journal gives the same verdict. Not modelled: registers that are lost, power failures
//! during the replay, which begins anew and writes the same bytes.

use std::collections::BTreeMap;

use super::runs;
use super::verdict::{Failure, Level, Persist, Property, Verdict, Witness, WrongValue};
use durawarp_persist::image::{OutsideImage, PmImage};
use durawarp_persist::journal::{Author, Fact, FactKind, Journal};

/// Which of the stores that no acknowledgement has come for recovery replays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Replay {
    /// All of them.
    #[default]
    All,
    /// All but the last one that each core has performed: a machine with a fault.
    WithoutLast,
}

/// Which core replays first.
#[derive(Debug, Clone, Copy)]
enum CoreOrder {
    Rising,
    Falling,
}

/// A store that is not forgotten.
#[derive(Debug, Clone, Copy)]
struct Pending {
    core: u16,
    /// Counted by core, from 1.
    number: u32,
    fact: u32,
}

/// Memory while a journal is followed.
#[derive(Debug)]
pub struct SavedStores<'a> {
    journal: &'a Journal,
    replay: Replay,
    performed: PmImage,
    durable: PmImage,
    /// By line, in the order in which they were performed.
    pending: BTreeMap<u64, Vec<Pending>>,
    /// Stores performed, by core.
    counts: BTreeMap<u16, u32>,
}

impl<'a> SavedStores<'a> {
    /// Before the first fact of a journal.
    pub fn new(journal: &'a Journal, initial: &PmImage, replay: Replay) -> SavedStores<'a> {
        SavedStores {
            journal,
            replay,
            performed: initial.clone(),
            durable: initial.clone(),
            pending: BTreeMap::new(),
            counts: BTreeMap::new(),
        }
    }

    /// Follows a fact; the line that it concerns, if it changes anything.
    ///
    /// # Errors
    /// It writes outside of persistent memory.
    fn follow(&mut self, at: usize) -> Result<Option<u64>, OutsideImage> {
        let fact = &self.journal.facts()[at];
        match (fact.kind, fact.author) {
            (FactKind::Performed, Author::Hart { core, .. }) => {
                write(&mut self.performed, self.journal, fact)?;
                let number = self.counts.entry(core).or_default();
                *number += 1;
                let pending = Pending { core, number: *number, fact: at as u32 };
                self.pending.entry(fact.line).or_default().push(pending);
            }
            (FactKind::Accepted, _) => write(&mut self.durable, self.journal, fact)?,
            (FactKind::Forgotten, Author::Core { core, stores: last }) => {
                if let Some(pending) = self.pending.get_mut(&fact.line) {
                    pending.retain(|store| store.core != core || store.number > last);
                    if pending.is_empty() {
                        self.pending.remove(&fact.line);
                    }
                }
            }
            _ => return Ok(None),
        }
        Ok(Some(fact.line))
    }

    fn replays(&self, store: &Pending) -> bool {
        self.replay == Replay::All || self.counts.get(&store.core) != Some(&store.number)
    }

    /// Replays the stores of a line, core after core in an order of their numbers: nothing else orders cores.
    fn replay_line(&self, image: &mut PmImage, pending: &[Pending], order: CoreOrder) -> Result<(), OutsideImage> {
        let mut stores: Vec<&Pending> = pending.iter().filter(|store| self.replays(store)).collect();
        match order {
            CoreOrder::Rising => stores.sort_by_key(|store| store.core),
            CoreOrder::Falling => stores.sort_by_key(|store| std::cmp::Reverse(store.core)),
        }
        for store in stores {
            write(image, self.journal, &self.journal.facts()[store.fact as usize])?;
        }
        Ok(())
    }

    /// What is wrong with a line after the replay.
    fn wrong(&self, line: u64, bytes: usize) -> Result<Option<WrongValue>, OutsideImage> {
        let expected = self.performed.read(line, bytes)?;
        let pending = self.pending.get(&line).map_or(&[][..], Vec::as_slice);
        for order in [CoreOrder::Rising, CoreOrder::Falling] {
            let mut found = PmImage::new(line, self.durable.read(line, bytes)?.to_vec());
            self.replay_line(&mut found, pending, order)?;
            let first = found.bytes().iter().zip(expected).position(|(found, expected)| found != expected);
            if let Some(at) = first {
                let word = at & !7..((at & !7) + 8).min(bytes);
                let found = &found.bytes()[word.clone()];
                return Ok(Some(WrongValue::of_bytes(line + word.start as u64, found, &expected[word])));
            }
        }
        Ok(None)
    }

    /// Memory after the replay, once all facts are followed.
    ///
    /// # Errors
    /// A write outside of persistent memory.
    pub fn recovered(self) -> Result<PmImage, OutsideImage> {
        self.cut_off(0)
    }

    /// Memory after a replay that power cut off behind its first `lines` lines, and a second, whole one.
    ///
    /// # Errors
    /// A write outside of persistent memory.
    pub fn cut_off(mut self, lines: usize) -> Result<PmImage, OutsideImage> {
        for at in 0..self.journal.facts().len() {
            self.follow(at)?;
        }
        let mut image = self.durable.clone();
        for pending in self.pending.values().take(lines).chain(self.pending.values()) {
            self.replay_line(&mut image, pending, CoreOrder::Rising)?;
        }
        Ok(image)
    }
}

fn write(image: &mut PmImage, journal: &Journal, fact: &Fact) -> Result<(), OutsideImage> {
    let (data, mut at) = (journal.data(fact), 0);
    for (start, bytes) in runs(fact.mask) {
        image.write(fact.line + start as u64, &data[at..at + bytes])?;
        at += bytes;
    }
    Ok(())
}

/// Judges every instant of a run, in lines of `line_bytes` bytes.
///
/// # Errors
/// A write outside of persistent memory.
pub fn judge_replay(
    journal: &Journal,
    initial: &PmImage,
    line_bytes: usize,
    replay: Replay,
    keep: usize,
) -> Result<Verdict, OutsideImage> {
    let mut verdict = Verdict { exhaustive: true, ..Verdict::default() };
    let mut stores = SavedStores::new(journal, initial, replay);
    for (at, fact) in journal.facts().iter().enumerate() {
        let Some(line) = stores.follow(at)? else { continue };
        verdict.points += 1;
        let found = stores.wrong(line, line_bytes)?.map(|value| Failure {
            property: Property::Replay,
            level: Level::Actual,
            point: at as u64,
            choice: None,
            time: fact.time,
            what: "after the replay a line has not what was stored there last".to_owned(),
            values: vec![value],
            witness: Some(Witness { missing: missing(journal, at, line), present: None }),
        });
        verdict.add(found, keep);
    }
    verdict.distinct = verdict.points;
    Ok(verdict.settle(keep))
}

/// The last store to a line up to a fact.
fn missing(journal: &Journal, at: usize, line: u64) -> Option<Persist> {
    let last = journal.facts()[..=at].iter().rfind(|fact| fact.kind == FactKind::Performed && fact.line == line)?;
    Some(Persist::new("store", last.author, line, line + u64::from(last.mask.trailing_zeros())))
}

#[cfg(test)]
mod tests {
    use super::*;
    const LINE: u64 = 64;

    /// A journal of facts of one line: kind, core (or number forgotten), byte.
    fn verdict(facts: &[(FactKind, u16, u32, u8)], replay: Replay) -> Verdict {
        let mut journal = Journal::default();
        for (time, &(kind, core, stores, byte)) in facts.iter().enumerate() {
            let author = match kind {
                FactKind::Performed => Author::Hart { core, hart: 0, pc: 0 },
                FactKind::Forgotten => Author::Core { core, stores },
                _ => Author::Unknown,
            };
            let mask = if kind == FactKind::Forgotten { 0 } else { 1 };
            journal.note_data(time as u64, kind, LINE, mask, author, &[byte; 128]);
        }
        judge_replay(&journal, &PmImage::new(0, vec![0; 256]), 64, replay, 8).unwrap()
    }

    use FactKind::{Accepted, Forgotten, Performed};

    #[test]
    fn a_store_may_be_forgotten_once_it_is_durable_and_not_before() {
        let good = [(Performed, 0, 0, 1), (Accepted, 0, 0, 1), (Forgotten, 0, 1, 0)];
        let verdict_of = |facts: &[_]| verdict(facts, Replay::All);
        let all = verdict_of(&good);
        assert!(all.holds() && all.points == 3);
        let early = verdict_of(&[good[0], good[2], good[1]]);
        assert_eq!((early.failed, early.failures[0].point), (1, 1));
        // A newer store of the line is not forgotten with it.
        let newer = [good[0], (Performed, 0, 0, 2), good[1], good[2]];
        assert!(verdict_of(&newer).holds());
        let both = verdict_of(&[newer[0], newer[1], newer[2], (Forgotten, 0, 2, 0)]);
        assert_eq!((both.failed, both.failures[0].point), (1, 3));
    }

    #[test]
    fn a_replay_without_its_last_store_is_found() {
        let facts = [(Performed, 0, 0, 1), (Accepted, 0, 0, 1)];
        assert!(verdict(&facts, Replay::All).holds());
        assert_eq!(verdict(&facts, Replay::WithoutLast).failed, 1);
    }

    #[test]
    fn what_is_durable_must_have_been_stored() {
        assert_eq!(verdict(&[(Accepted, 0, 0, 7)], Replay::All).failed, 1);
    }

    #[test]
    fn a_store_that_another_core_has_overwritten_must_not_come_back() {
        // Core 0's store is still replayed when core 1's newer one is durable and forgotten.
        let facts = [(Performed, 0, 0, 1), (Performed, 1, 0, 2), (Accepted, 1, 0, 2), (Forgotten, 1, 1, 0)];
        let found = verdict(&facts, Replay::All);
        assert!(
            (1..=3).contains(&found.failed) && found.failures.iter().any(|failure| failure.point == 3),
            "{found:?}"
        );
    }

    #[test]
    fn nothing_orders_the_replays_of_two_cores() {
        for [first, second] in [[0, 1], [1, 0]] {
            let found = verdict(&[(Performed, first, 0, 1), (Performed, second, 0, 2)], Replay::All);
            assert_eq!((found.failed, found.failures[0].point), (1, 1));
        }
    }
}
