//! Tests on runs of a small machine of the protocol. The right protocol holds, each fault of it is found.

mod persisted;
mod protocol;
mod recoveries;
mod texts;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use super::super::Draw;
use super::super::crash::Plan;
use super::super::judge::Watch;
use super::super::order::Model;
use super::super::verdict::{Failure, Property, Verdict, WrongBytes, WrongValue};
use super::*;
use durawarp_persist::promises::Promises;
use durawarp_persist::vocab::Domain;
use protocol::{Fault, Machine, Programs, RegionRun, held, initial};
use recoveries::{AsksNobody, DoesNotRollBack, Drains};

struct Judged {
    history: Verdict,
    actual: Verdict,
    double: Verdict,
    resume: Verdict,
}

impl Judged {
    fn all(&self) -> [&Verdict; 4] {
        [&self.history, &self.actual, &self.double, &self.resume]
    }

    /// The verdicts that found something: H(istory), A(ctual), D(ouble), R(esume).
    fn messages(&self) -> String {
        "HADR".chars().zip(self.all()).filter(|(_, verdict)| !verdict.holds()).map(|(letter, _)| letter).collect()
    }
}

fn judge(run: &RegionRun, hardware: &dyn AtPowerFailure) -> Judged {
    let initial = initial();
    let model = Model { domain: Domain::Adr, promises: Promises::NONE };
    let order = RunOrder::new(&run.journal, &initial, model);
    let facts = RegionFacts::new(&order, &initial, run.controllers, false).unwrap().committed_by(run.commit);
    let history = judge_regions(&facts, true, 8);
    let asked = JudgeOptions { plan: Plan::All, double: true, seed: 1, keep: 8 };
    let stop = AtomicBool::new(false);
    let watch = Watch { stop: &stop, progress: &|_, _| {} };
    let (actual, double, firsts) = judge_recovery(&facts, &asked, hardware, &watch).unwrap();
    assert_eq!((actual.judged, actual.exhaustive), (facts.changes() + 1, true));
    actual::compare_both_ways(&facts, hardware);
    for failure in &actual.failures {
        let asked = JudgeOptions { plan: Plan::Only(failure.point), ..asked };
        let (again, ..) = judge_recovery(&facts, &asked, hardware, &watch).unwrap();
        assert!(!again.holds(), "{failure:?}");
    }
    let programs = Programs { run, expected: run.visible.clone() };
    let resume = judge_resume(&facts, &firsts, 6, &asked, hardware, &programs, &watch);
    Judged { history, actual, double: double.unwrap(), resume }
}

#[test]
fn the_protocol_holds_whenever_messages_come() {
    for (commit, seeds, most) in [(CommitRule::Acked, 200, 1), (CommitRule::Pipelined, 80, 5)] {
        let (mut points, mut spills, mut regions, mut ahead) = (0, 0, 0, 0);
        for seed in 0..seeds {
            let run = Machine::run_by(seed, seed as usize % 4 + 1, Fault::None, commit);
            let judged = judge(&run, &AsPublished);
            for verdict in judged.all() {
                assert!(verdict.holds(), "{commit:?}, seed {seed}: {:#?}", verdict.failures);
            }
            points += judged.actual.judged;
            regions += judged.resume.judged;
            spills += run.spills;
            ahead = ahead.max(most_apart(&run));
        }
        // Nothing of this is empty.
        let counted = format!("{commit:?}: {points} points, {spills} spills, {regions} resumed, {ahead} apart");
        let enough = points > 100 * seeds && spills > 2 * seeds && regions > 5 * seeds;
        assert!(enough, "{counted}");
        assert!(if most == 1 { ahead == 1 } else { ahead >= most }, "{counted}");
    }
}

/// By how many regions the flush IDs of two controllers differed at most.
fn most_apart(run: &RegionRun) -> u32 {
    let mut next = vec![0; run.controllers];
    let committed = |fact: &&Fact| fact.kind == FactKind::Region(RegionStep::Committed);
    let apart = run.journal.facts().iter().filter(committed).map(|fact| {
        let Author::HeldRegion { controller, region, .. } = fact.author else { unreachable!("{fact:?}") };
        next[usize::from(controller)] = region + 1;
        next.iter().max().unwrap() - next.iter().min().unwrap()
    });
    apart.max().unwrap_or_default()
}

/// For each judgement, the number of runs in which it finds a fault.
fn kills(fault: Fault, hardware: &dyn AtPowerFailure, commit: CommitRule) -> BTreeMap<char, u32> {
    let mut found = BTreeMap::new();
    for seed in 0..25 {
        let judged = judge(&Machine::run_by(seed, seed as usize % 3 + 2, fault, commit), hardware);
        judged.messages().chars().for_each(|letter| *found.entry(letter).or_default() += 1);
    }
    found
}

#[test]
fn faults_of_the_protocol_are_found() {
    use CommitRule::{Acked, Pipelined};
    // Each fault, and the judgements of which each must find it.
    let faults = [
        (Fault::None, ""),
        (Fault::BoundaryNotSentToTheLast, "HA"),
        (Fault::FlushBeforeBoundariesAreAcknowledged, "HA"),
        // The acknowledgements arrive at a power failure, which hides it. Pipelined, it is the rule.
        (Fault::CommitBeforeOthersAreDone, "H"),
        (Fault::CommitBeforeDone, "HA"),
        (Fault::SpillWithoutLog, "HA"),
        (Fault::StoreLost, "AR"),
        (Fault::BoundaryOvertakesStores, "HA"),
        (Fault::DrawnBeforeTheAtomic, "HR"),
        (Fault::BarrierDoesNotEndRegions, "H"),
    ];
    for ((fault, by), commit) in faults.into_iter().flat_map(|fault| [(fault, Acked), (fault, Pipelined)]) {
        let by = if (fault, commit) == (Fault::CommitBeforeOthersAreDone, Pipelined) { "" } else { by };
        let found = kills(fault, &AsPublished, commit);
        for letter in by.chars() {
            assert!(found.contains_key(&letter), "{fault:?}, {commit:?} is not found by {letter}: {found:?}");
        }
        assert_eq!(found.is_empty(), by.is_empty(), "{fault:?}, {commit:?}: {found:?}");
    }
}

#[test]
fn faults_of_recovery_are_found_in_states_that_are_right() {
    for (name, hardware) in [
        ("drains", &Drains as &dyn AtPowerFailure),
        ("asks nobody", &AsksNobody),
        ("does not roll back", &DoesNotRollBack),
    ] {
        for commit in [CommitRule::Acked, CommitRule::Pipelined] {
            let found = kills(Fault::None, hardware, commit);
            assert!(found.contains_key(&'A') && !found.contains_key(&'H'), "{name}, {commit:?}: {found:?}");
        }
    }
}

/// Two critical sections behind one lock; `late` is the number that the second to enter has drawn.
fn critical_sections(numbers: [u32; 3]) -> RegionRun {
    let mut run = Machine::run(0, 2, Fault::None);
    let mut journal = Journal::default();
    let mut time = 0;
    let mut note = |kind: FactKind, author: Author, at: u64, value: Option<u8>| {
        time += 1;
        let mut bytes = [0; 128];
        bytes[at as usize] = value.unwrap_or_default();
        match value {
            Some(_) => journal.note_data(time, kind, 0, 1 << at, author, &bytes),
            None => journal.note(time, kind, 0, 0, author),
        }
    };
    let lock = |warp: usize, region: u32, at: u64, value: u8| (warp, region, at, value);
    let [first, release, second] = numbers;
    // Warp 1 takes the lock, stores x, and releases it; warp 2 takes it, and stores x.
    let stores = [
        lock(1, first, 0, 1),
        lock(1, first, 8, 11),
        lock(1, release, 0, 0),
        lock(2, second, 0, 2),
        lock(2, second, 8, 22),
    ];
    for (warp, region, at, value) in stores {
        note(FactKind::Stored, Machine::author(warp, u32::from(value)), at, Some(value));
        note(FactKind::Performed, Author::Sm((warp / 2) as u16), at, Some(value));
        note(FactKind::Region(RegionStep::Stored), Machine::author(warp, 0).in_region(region), at, Some(value));
    }
    for (warp, region) in [(1, first), (1, release), (2, second)] {
        note(FactKind::Region(RegionStep::Ended), Machine::author(warp, 0).in_region(region), 0, None);
    }
    let at = |region: u32| held(0, region);
    for (_, region, place, value) in stores {
        note(FactKind::Region(RegionStep::Buffered), at(region), place, Some(value));
    }
    for region in 0..3 {
        note(FactKind::Region(RegionStep::Bounded), at(region), 0, None);
        for (_, _, place, value) in stores.iter().filter(|store| store.1 == region) {
            note(FactKind::Region(RegionStep::Flushed), at(region), *place, Some(*value));
        }
        note(FactKind::Region(RegionStep::Done), at(region), 0, None);
        note(FactKind::Region(RegionStep::Committed), at(region), 0, None);
    }
    run.journal = journal;
    run.controllers = 1;
    run
}

#[test]
fn a_number_drawn_before_the_lock_is_taken_contradicts_the_order_of_the_sections() {
    assert_eq!(judge(&critical_sections([0, 1, 2]), &AsPublished).messages().replace('R', ""), "");
    // Warp 2 drew its number while it waited for the lock.
    let judged = judge(&critical_sections([1, 2, 0]), &AsPublished);
    assert_eq!(judged.messages().replace('R', ""), "H", "each image is a prefix of the wrong order");
    let failure = judged.history.failures.iter().find(|failure| failure.what.contains("region 0")).unwrap();
    assert_eq!(failure.property, Property::Regions);
    assert!(failure.what.contains("is performed after that"), "{}", failure.what);
    let witness = failure.witness.as_ref().unwrap();
    assert_eq!((witness.missing.as_ref().unwrap().warp, witness.present.as_ref().unwrap().warp), (1, 2));
}

#[test]
fn stores_of_a_region_that_leave_in_another_order_than_they_are_performed_are_found() {
    // Performed as 1, 2; left as 2, 1: as an atomic's copy would, which comes later than that of a store
    // after it.
    let run = |order: [u8; 2]| {
        let mut run = critical_sections([0, 1, 2]);
        let mut journal = Journal::default();
        let mut note = |kind: FactKind, author: Author, value: u8| {
            let time = journal.facts().len() as u64;
            match value {
                0 => journal.note(time, kind, 0, 0, author),
                _ => journal.note_data(time, kind, 0, 1, author, &[value; 128]),
            }
        };
        let (warp, region) = (Machine::author(1, 0).in_region(0), held(0, 0));
        for value in [1, 2] {
            note(FactKind::Stored, Machine::author(1, value.into()), value);
            note(FactKind::Performed, Author::Sm(0), value);
        }
        for value in order {
            note(FactKind::Region(RegionStep::Stored), warp, value);
        }
        note(FactKind::Region(RegionStep::Ended), warp, 0);
        for value in order {
            note(FactKind::Region(RegionStep::Buffered), region, value);
        }
        note(FactKind::Region(RegionStep::Bounded), region, 0);
        for value in order {
            note(FactKind::Region(RegionStep::Flushed), region, value);
        }
        note(FactKind::Region(RegionStep::Done), region, 0);
        note(FactKind::Region(RegionStep::Committed), region, 0);
        run.journal = journal;
        judge(&run, &AsPublished).messages().replace('R', "")
    };
    assert_eq!(run([1, 2]), "");
    assert_eq!(run([2, 1]), "H");
}

#[test]
fn what_is_held_stays_when_an_older_store_to_its_bytes_is_written_ahead() {
    let run = |commit: CommitRule| {
        let mut run = critical_sections([0, 1, 2]);
        let mut journal = Journal::default();
        let mut note = |kind: FactKind, author: Author, value: Option<u8>| {
            let time = journal.facts().len() as u64;
            match value {
                None => journal.note(time, kind, 0, 0, author),
                Some(value) => journal.note_data(time, kind, 0, 1, author, &[value; 128]),
            }
        };
        let (warp, region) = (Machine::author(1, 0).in_region(0), held(0, 0));
        for value in [1, 2] {
            note(FactKind::Stored, Machine::author(1, value.into()), Some(value));
            note(FactKind::Performed, Author::Sm(0), Some(value));
        }
        for value in [1, 2] {
            note(FactKind::Region(RegionStep::Stored), warp, Some(value));
        }
        note(FactKind::Region(RegionStep::Ended), warp, None);
        // The first was to be written ahead; while its old byte is read, the region becomes the oldest.
        note(FactKind::Region(RegionStep::Buffered), region, Some(2));
        note(FactKind::Region(RegionStep::Logged), region, Some(0));
        note(FactKind::Region(RegionStep::Spilled), region, Some(1));
        note(FactKind::Region(RegionStep::Bounded), region, None);
        note(FactKind::Region(RegionStep::Flushed), region, Some(2));
        note(FactKind::Region(RegionStep::Done), region, None);
        note(FactKind::Region(RegionStep::Committed), region, None);
        (run.journal, run.commit) = (journal, commit);
        judge(&run, &AsPublished).messages().replace('R', "")
    };
    assert_eq!(run(CommitRule::Speculative), "");
    // Elsewhere a store that is spilled had its place in the queue.
    assert!(run(CommitRule::Pipelined).contains('H'));
}

#[test]
fn a_wrong_image_is_told_with_its_word_region_and_controller() {
    let journal_of = |lost: bool| {
        let mut run = critical_sections([0, 1, 2]);
        if lost {
            let mut journal = Journal::default();
            for fact in run.journal.facts() {
                let flushed = matches!(fact.kind, FactKind::Region(RegionStep::Flushed | RegionStep::Buffered));
                let gone = flushed && (fact.author.region(), fact.mask) == (Some(2), 1 << 8);
                let bytes = bytes_of(&run.journal, fact);
                match run.journal.data(fact) {
                    _ if gone => {}
                    [] => journal.note(fact.time, fact.kind, fact.line, fact.mask, fact.author),
                    _ => journal.note_data(fact.time, fact.kind, fact.line, fact.mask, fact.author, &bytes),
                }
            }
            run.journal = journal;
        }
        run
    };
    assert!(judge(&journal_of(false), &AsPublished).actual.holds());
    let judged = judge(&journal_of(true), &AsPublished);
    let failure = &judged.actual.failures[0];
    for words in ["regions below 3", "it lacks region 2"] {
        assert!(failure.what.contains(words), "no `{words}` in {}", failure.what);
    }
    let word = |value: u64| value.to_le_bytes().to_vec();
    let wrong = WrongBytes { address: 8, found: word(0x30b), expected: Some(word(0x316)) };
    assert_eq!(failure.values, [WrongValue { bytes: Some(wrong), element: None }]);
    let missing = failure.witness.as_ref().unwrap().missing.as_ref().unwrap();
    assert_eq!((missing.warp, missing.address), (2, 8));
}

#[test]
fn orders_of_several_sms_commit_each_by_itself() {
    // Two SMs with an order each; SM 1's store after SM 0's launch commits before it.
    let run = |inverted: bool| {
        let mut run = critical_sections([0, 1, 2]);
        let mut journal = Journal::default();
        let (mut time, bytes) = (0, [7; 128]);
        let mut note = |kind: FactKind, author: Author, mask: u128| {
            time += 1;
            match mask {
                0 => journal.note(time, kind, 0, 0, author),
                _ => journal.note_data(time, kind, 0, mask, author, &bytes),
            }
        };
        for which in [0, 1] {
            let launch = u32::from(which);
            let warp = Author::Warp { sm: which, launch, cta: 0, warp: 0, pc: 9 };
            note(FactKind::KernelStarted, Author::Launch(launch), 0);
            note(FactKind::Stored, warp, 1 << which);
            note(FactKind::Performed, Author::Sm(which), 1 << which);
            note(FactKind::Region(RegionStep::Stored), warp.in_region(0), 1 << which);
            note(FactKind::Region(RegionStep::Ended), warp.in_region(0), 0);
        }
        for which in if inverted { [1, 0] } else { [0, 1] } {
            let at = Author::HeldRegion { controller: 0, order: which, region: 0 };
            for (step, mask) in [
                (RegionStep::Buffered, 1 << which),
                (RegionStep::Bounded, 0),
                (RegionStep::Flushed, 1 << which),
                (RegionStep::Done, 0),
                (RegionStep::Committed, 0),
            ] {
                note(FactKind::Region(step), at, mask);
            }
        }
        run.journal = journal;
        run
    };
    assert_eq!(judge(&run(false), &AsPublished).messages().replace('R', ""), "");
    let inverted = judge(&run(true), &AsPublished);
    assert_eq!(inverted.messages().replace('R', ""), "H");
    let what = &inverted.history.failures[0].what;
    assert_eq!(what, "region 0 of SM 1 commits before region 0 of SM 0, and comes behind that in the program");
}

#[test]
fn the_hosts_writes_are_part_of_what_memory_should_have() {
    let write = |journal: &mut Journal, time: u64, value: u8| {
        let author = Author::Host;
        journal.note_data(time, FactKind::Performed, 128, 1, author, &[value; 128]);
        journal.note_data(time + 1, FactKind::Accepted, 128, 1, Author::default(), &[value; 128]);
    };
    let mut run = critical_sections([0, 1, 2]);
    let last = run.journal.facts().last().unwrap().time;
    write(&mut run.journal, last + 1, 5);
    let judged = judge(&run, &AsPublished);
    assert_eq!(judged.messages().replace('R', ""), "");
    assert_eq!(judged.actual.points, crash_points(&critical_sections([0, 1, 2])) + 1);
    // It writes over a store of a region that never commits.
    let mut early = critical_sections([0, 1, 2]);
    let mut journal = Journal::default();
    for fact in early.journal.facts().iter().filter(|fact| !matches!(fact.kind, FactKind::Region(RegionStep::Bounded)))
    {
        let bytes = bytes_of(&early.journal, fact);
        let step = gate::step_of(fact);
        match (step, early.journal.data(fact)) {
            (Some(step), _) if at_controller(step) => {}
            (_, []) => journal.note(fact.time, fact.kind, fact.line, fact.mask, fact.author),
            _ => journal.note_data(fact.time, fact.kind, fact.line, fact.mask, fact.author, &bytes),
        }
    }
    let author = Author::Host;
    journal.note_data(last + 1, FactKind::Performed, 0, 1 << 8, author, &[9; 128]);
    journal.note_data(last + 2, FactKind::Accepted, 0, 1 << 8, Author::default(), &[9; 128]);
    early.journal = journal;
    let judged = judge(&early, &AsPublished);
    let told = |failure: &Failure| failure.what.contains("the host writes 0x8 when region 2");
    assert!(judged.history.failures.iter().any(told), "{:?}", judged.history.failures);
}

fn crash_points(run: &RegionRun) -> u64 {
    let initial = initial();
    let model = Model { domain: Domain::Adr, promises: Promises::NONE };
    let order = RunOrder::new(&run.journal, &initial, model);
    RegionFacts::new(&order, &initial, run.controllers, false).unwrap().changes() + 1
}
