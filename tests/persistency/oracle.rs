//! The oracle through its public face: a whole undo-logging run judged at both levels, and how fast that is.

use std::sync::atomic::AtomicBool;

use durawarp::oracle::Regions;
use durawarp::oracle::allowed::{Allowed, Budget};
use durawarp::oracle::crash::{CrashStates, Plan};
use durawarp::oracle::history::judge_history;
use durawarp::oracle::judge::{Rules, Watch, judge_actual, judge_allowed};
use durawarp::oracle::order::{Model, RunOrder};
use durawarp::oracle::undo::{Expected, UndoRule};
use durawarp::oracle::verdict::Verdict;
use durawarp::persist::image::PmImage;
use durawarp::persist::journal::{Author, FactKind, Journal};
use durawarp::persist::promises::Promises;
use durawarp::persist::undo::{COMPLETE, IN_TX, LogSlot, Transaction, UndoLog};
use durawarp::persist::vocab::Domain;

/// Stores a word and makes it durable.
fn persist(journal: &mut Journal, author: Author, address: u64, value: u32) {
    let (line, at) = (address & !127, (address & 127) as usize);
    let (mut bytes, mask) = ([0; 128], 0xf << at);
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    let time = journal.facts().last().map_or(0, |fact| fact.time) + 1;
    journal.note_data(time, FactKind::Stored, line, mask, author, &bytes);
    journal.note_data(time + 1, FactKind::Performed, line, mask, Author::Sm(0), &bytes);
    journal.note(time + 2, FactKind::WroteBack, line, 0, author);
    journal.note_data(time + 3, FactKind::Accepted, line, mask, Author::Unknown, &bytes);
    journal.note(time + 4, FactKind::FencePassed, 0, 0, author);
}

/// `ctas` CTAs change `elements` words each, all at the same time: the most that recovery may have to roll back.
fn judge(ctas: u64, elements: u64, double: bool, mut lap: impl FnMut(&str, &Verdict)) -> [Verdict; 3] {
    let (log, flag, bytes) = (ctas * elements * 4, 2 * ctas * elements * 4, (2 * elements * 4 + 128) * ctas);
    let mut initial = PmImage::new(0, vec![0; bytes as usize]);
    initial.write(0, &3_u32.to_le_bytes().repeat((ctas * elements) as usize)).expect("inside");
    let element = |cta: u64, at: u64| (cta * elements + at) * 4;
    let transaction = |cta: u64| {
        let slot = |at: u64| LogSlot { home: element(cta, at), log: log + element(cta, at), bytes: 4 };
        Transaction {
            launch: 0,
            cta: Some(cta as u32),
            flag: flag + cta * 128,
            slots: (0..elements).map(slot).collect(),
        }
    };
    let words = |value: u32| value.to_le_bytes().repeat(elements as usize);
    let expected = (0..ctas).map(|_| Expected { old: words(3), new: words(5) }).collect();
    let rule = UndoRule::new(UndoLog { transactions: (0..ctas).map(transaction).collect() }, expected, double);
    let mut journal = Journal::default();
    journal.note(1, FactKind::KernelStarted, 0, 0, Author::Launch(0));
    for step in 0..2 * elements + 2 {
        for cta in 0..ctas {
            let (address, value) = match step {
                step if step < elements => (log + element(cta, step), 3),
                step if step == elements => (flag + cta * 128, IN_TX),
                step if step <= 2 * elements => (element(cta, step - elements - 1), 5),
                _ => (flag + cta * 128, COMPLETE),
            };
            let author = Author::Warp { sm: 0, launch: 0, cta: cta as u32, warp: 0, pc: 0 };
            persist(&mut journal, author, address, value);
        }
    }
    let model = Model { domain: Domain::Adr, promises: Promises { strict: true, ..Promises::NONE } };
    let order = RunOrder::new(&journal, &initial, model);
    let states = CrashStates::new(&journal, &initial, Domain::Adr).expect("all inside");
    lap("order", &Verdict { points: journal.facts().len() as u64, ..Verdict::default() });
    let history = judge_history(&states, &order, 10);
    lap("history", &history);
    let stop = AtomicBool::new(false);
    let watch = Watch { stop: &stop, progress: &|_, _| {} };
    let (rules, regions) = (Rules { undo: Some(&rule), keep: 10, ..Rules::default() }, Regions::of(rule.log()));
    let actual = judge_actual(&states, &order, &rules, &regions, Plan::All, 0, &watch).expect("all points");
    lap("actual", &actual);
    let budget = Budget { instants: 64, boundaries: 1024, ..Budget::default() };
    let allowed = judge_allowed(&Allowed::new(&order, &initial, regions, budget), &rules, &watch);
    lap("allowed", &allowed);
    [history, actual, allowed]
}

#[test]
fn undo_logging_with_every_fence_in_place_holds_at_both_levels() {
    let [history, actual, allowed] = judge(3, 4, true, |_, _| {});
    assert_eq!((&history.failures, &actual.failures, &allowed.failures), (&vec![], &vec![], &vec![]));
    assert!(actual.exhaustive && allowed.exhaustive);
    assert_eq!((actual.points, actual.passed), (31, actual.distinct));
}

#[test]
#[ignore = "prints how fast judging is"]
#[allow(clippy::disallowed_methods)]
fn speed_of_judging() {
    for double in [false, true] {
        let mut start = std::time::Instant::now();
        judge(64, 128, double, |what, verdict| {
            println!("{what}: {} of {} points in {:?}", verdict.judged, verdict.points, start.elapsed());
            start = std::time::Instant::now();
        });
    }
}
