//! Litmus programs of epoch order, fact by fact, and what a machine that forgot a rule would leave.

use std::collections::BTreeSet;

use super::*;
use crate::allowed::Budget;
use durawarp_persist::image::PmImage;

const BASE: u64 = 1 << 40;
/// Lines of persistent memory.
const A: u64 = BASE;
const B: u64 = BASE + 64;
const C: u64 = BASE + 128;
/// Lines that are not.
const LOCK: u64 = 1 << 20;
const FLAG: u64 = LOCK + 64;

/// A run, fact by fact. Persists have entries of their own.
#[derive(Default)]
struct Facts {
    journal: Journal,
    time: u64,
    entries: u32,
}

impl Facts {
    /// The hart of a core.
    fn author(core: u16) -> Author {
        Author::Hart { core, hart: 0, pc: 0 }
    }

    fn note(&mut self, kind: FactKind, line: u64, author: Author) -> &mut Self {
        self.time += 10;
        self.journal.note(self.time, kind, line, 0, author);
        self
    }

    /// A store to persistent memory, whose entry is numbered in turn.
    fn persist(&mut self, hart: u16, line: u64) -> &mut Self {
        self.time += 10;
        self.entries += 1;
        let (author, bytes) = (Facts::author(hart), [self.entries as u8; 128]);
        self.journal.note_data(self.time, FactKind::Performed, line, 0xff, author, &bytes);
        self.journal.note(self.time, FactKind::Buffered, 0, 0, author.in_entry(self.entries, 1));
        self
    }

    fn fence(&mut self, hart: u16) -> &mut Self {
        self.note(FactKind::EpochEnded, 0, Facts::author(hart))
    }

    fn stores(&mut self, hart: u16, line: u64) -> &mut Self {
        self.note(FactKind::PerformedVolatile, line, Facts::author(hart))
    }

    fn sees(&mut self, hart: u16, line: u64) -> &mut Self {
        self.note(FactKind::Observed, line, Facts::author(hart))
    }

    /// Entries of harts reach the media, each at a time of its own.
    fn durable(&mut self, entries: &[(u16, u32)]) -> &mut Self {
        for &(hart, entry) in entries {
            self.time += 10;
            let author = Facts::author(hart).in_entry(entry, 1);
            self.journal.note_data(self.time, FactKind::AtMedia, A, 0xff, author, &[0; 128]);
        }
        self
    }

    /// What is wrong with what became durable.
    fn found(&self) -> Vec<(Property, Option<u64>, Option<u64>)> {
        let verdict = PersistOrder::new(&self.journal).judge_history(Domain::Media, 10);
        assert_eq!(verdict.failed as usize, verdict.failures.len());
        let line = |persist: &Option<Persist>| persist.as_ref().map(|persist| persist.line);
        let of = |failure: &Failure| {
            let witness = failure.witness.as_ref().unwrap();
            (failure.property.clone(), line(&witness.missing), line(&witness.present))
        };
        verdict.failures.iter().map(of).collect()
    }

    /// Every state that is drawn, as the numbers of the last persists to A, B and C.
    fn states(&self) -> BTreeSet<[u8; 3]> {
        let order = PersistOrder::new(&self.journal);
        let initial = PmImage::new(BASE, vec![0; 256]);
        let budget = Budget { instants: 64, singles: 32, random: 64, torn: 16, ..Budget::default() };
        let states = EpochStates::new(&order, &initial, budget);
        let all =
            states.instants().0.into_iter().flat_map(|instant| (0..states.choices()).map(move |of| (instant, of)));
        all.map(|(instant, choice)| {
            let image = states.image(instant, choice);
            [A, B, C].map(|line| image.read(line, 1).unwrap()[0])
        })
        .collect()
    }
}

#[test]
fn a_fence_orders_what_is_before_it_and_nothing_else() {
    let mut run = Facts::default();
    run.persist(0, A).persist(0, B).fence(0).persist(0, C);
    let expected: BTreeSet<[u8; 3]> = [[0, 0, 0], [1, 0, 0], [0, 2, 0], [1, 2, 0], [1, 2, 3]].into();
    assert_eq!(run.states(), expected, "C never without A and B, which are in no order");
    run.durable(&[(0, 2), (0, 1), (0, 3)]);
    assert_eq!(run.found(), []);
    let mut early = Facts::default();
    early.persist(0, A).persist(0, B).fence(0).persist(0, C).durable(&[(0, 1), (0, 3), (0, 2)]);
    assert_eq!(early.found(), [(Property::Epochs, Some(B), Some(C))]);
}

#[test]
fn a_lock_carries_what_is_before_the_givers_fence() {
    // persist_chain: A; ofence; unlock | lock; C.
    let chain = |fenced: bool| {
        let mut run = Facts::default();
        run.persist(0, A);
        if fenced {
            run.fence(0);
        }
        run.stores(0, LOCK).sees(1, LOCK).persist(1, C);
        run
    };
    assert!(!chain(true).states().contains(&[0, 0, 2]));
    assert!(chain(false).states().contains(&[0, 0, 2]), "without a fence they are in no order");
    assert_eq!(chain(true).durable(&[(1, 2), (0, 1)]).found(), [(Property::Epochs, Some(A), Some(C))]);
    assert_eq!(chain(true).durable(&[(0, 1), (1, 2)]).found(), []);
}

#[test]
fn what_is_seen_before_the_lock_is_given_orders_nothing() {
    let mut run = Facts::default();
    run.sees(1, LOCK).persist(0, A).fence(0).stores(0, LOCK).persist(1, C);
    assert!(run.states().contains(&[0, 0, 2]));
}

#[test]
fn a_chain_holds_over_a_hart_that_persists_nothing() {
    // A; ofence; flag | sees flag; stores lock | sees lock; C.
    let mut run = Facts::default();
    run.persist(0, A).fence(0).stores(0, FLAG).sees(1, FLAG).fence(1).stores(1, LOCK).sees(2, LOCK).persist(2, C);
    assert!(!run.states().contains(&[0, 0, 2]));
    let mut unfenced = Facts::default();
    unfenced.persist(0, A).fence(0).stores(0, FLAG).sees(1, FLAG).stores(1, LOCK).sees(2, LOCK).persist(2, C);
    assert!(unfenced.states().contains(&[0, 0, 2]), "hart 1 has put no fence behind what it saw");
}

#[test]
fn persists_of_a_line_are_durable_in_their_order() {
    let mut run = Facts::default();
    run.persist(0, A).persist(1, A).durable(&[(1, 2), (0, 1)]);
    assert_eq!(run.found(), [(Property::Epochs, Some(A), Some(A))]);
    // A hart that sees a line is ordered behind the persist of that line.
    let mut seen = Facts::default();
    seen.persist(0, A).sees(1, A).persist(1, C);
    assert!(!seen.states().contains(&[0, 0, 2]));
}

#[test]
fn figure_5_and_its_twin() {
    // Hart 0: b; ofence; d. Hart 1: a; ofence; c. a and d are stores to one line, and d is visible first.
    let mut figure = Facts::default();
    figure.persist(0, B).fence(0).persist(0, A).persist(1, A).fence(1).persist(1, C);
    assert!(!figure.states().iter().any(|[_, b, c]| *b == 0 && *c != 0), "b is durable before c");
    // The twin has the two the other way round: b and c are in no order.
    let mut twin = Facts::default();
    twin.persist(1, A).fence(1).persist(1, C).persist(0, B).fence(0).persist(0, A);
    let states = twin.states();
    assert!(states.iter().any(|[_, b, c]| *b == 0 && *c != 0) && states.iter().any(|[_, b, c]| *b != 0 && *c == 0));
}

#[test]
fn a_fence_that_waits_is_judged_when_it_lets_its_hart_go_on() {
    let mut early = Facts::default();
    early.persist(0, A).note(FactKind::FencePassed, 0, Facts::author(0)).durable(&[(0, 1)]);
    assert_eq!(early.found(), [(Property::Acknowledged, Some(A), None)]);
    let mut run = Facts::default();
    run.persist(0, A).durable(&[(0, 1)]).note(FactKind::FencePassed, 0, Facts::author(0)).persist(0, C);
    assert_eq!(run.found(), []);
    let order = PersistOrder::new(&run.journal);
    let initial = PmImage::new(BASE, vec![0; 256]);
    let states = EpochStates::new(&order, &initial, Budget::default());
    let without = (0..states.choices()).any(|choice| states.image(2, choice).read(A, 1).unwrap()[0] == 0);
    assert!(!without, "what it waited for is durable in each state after it");
}

#[test]
fn stores_to_a_line_in_one_epoch_may_be_durable_in_part() {
    let mut run = Facts::default();
    run.persist(0, A);
    run.time += 10;
    run.journal.note_data(run.time, FactKind::Performed, A, 0xff00, Facts::author(0), &[9; 128]);
    let order = PersistOrder::new(&run.journal);
    let initial = PmImage::new(BASE, vec![0; 256]);
    let states = EpochStates::new(&order, &initial, Budget::default());
    let of = |choice| {
        let image = states.image(2, choice);
        [0, 8].map(|at| image.read(A + at, 1).unwrap()[0])
    };
    let seen: BTreeSet<[u8; 2]> = (0..states.choices()).map(of).collect();
    assert_eq!(seen, [[0, 0], [1, 0], [0, 9], [1, 9]].into());
}

#[test]
fn an_entry_is_durable_as_far_as_its_write_had_its_stores() {
    let mut run = Facts::default();
    let author = Facts::author(0);
    for number in 1..=2 {
        run.time += 10;
        run.journal.note_data(run.time, FactKind::Performed, A, 0xff, author, &[number as u8; 128]);
        run.journal.note(run.time, FactKind::Buffered, 0, 0, author.in_entry(1, number));
    }
    run.fence(0);
    run.time += 10;
    run.journal.note_data(run.time, FactKind::Performed, C, 0xff, author, &[3; 128]);
    run.journal.note(run.time, FactKind::Buffered, 0, 0, author.in_entry(3, 1));
    let mut whole = Facts { journal: run.journal.clone(), ..Facts { time: run.time, ..Facts::default() } };
    // The write has the first store of two: C comes too early.
    run.durable(&[(0, 1), (0, 3)]);
    assert_eq!(run.found(), [(Property::Epochs, Some(A), Some(C))]);
    whole.time += 10;
    let both = author.in_entry(1, 2);
    whole.journal.note_data(whole.time, FactKind::AtMedia, A, 0xff, both, &[2; 128]);
    whole.durable(&[(0, 3)]);
    assert_eq!(whole.found(), []);
}
