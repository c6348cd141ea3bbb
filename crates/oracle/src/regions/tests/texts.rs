//! Every message of the judges of regions, and counts of their verdicts, on hand-made facts.

use super::super::super::crash::BeyondEnd;
use super::super::super::judge::{Check, Condition};
use super::super::super::script;
use super::*;
use durawarp_persist::promises::Promises;

/// Facts by hand, one tick after the other; bytes are of the line at 0.
#[derive(Clone, Default)]
struct Hand(Journal);

impl Hand {
    fn note(&mut self, kind: FactKind, author: Author, mask: u128, value: u8) -> &mut Hand {
        let time = self.0.facts().len() as u64 + 1;
        match mask {
            0 => self.0.note(time, kind, 0, 0, author),
            _ => self.0.note_data(time, kind, 0, mask, author, &[value; 128]),
        }
        self
    }

    /// A warp's store that leaves in a region.
    fn stored(&mut self, warp: u8, region: u32, mask: u128, value: u8) -> &mut Hand {
        self.note(FactKind::Stored, script::warp(warp), mask, value);
        self.note(FactKind::Performed, Author::Sm(0), mask, value);
        self.left(warp, region, mask, value)
    }

    fn left(&mut self, warp: u8, region: u32, mask: u128, value: u8) -> &mut Hand {
        self.note(FactKind::Region(RegionStep::Stored), script::warp(warp).in_region(region), mask, value)
    }

    fn ended(&mut self, warp: u8, region: u32) -> &mut Hand {
        self.note(FactKind::Region(RegionStep::Ended), script::warp(warp).in_region(region), 0, 0)
    }

    /// A step of a region at a controller; bytes are 7.
    fn at(&mut self, controller: u16, step: RegionStep, region: u32, mask: u128) -> &mut Hand {
        self.note(FactKind::Region(step), held(controller, region), mask, 7)
    }

    fn bounded(&mut self, region: u32) -> &mut Hand {
        self.at(0, RegionStep::Bounded, region, 0).at(1, RegionStep::Bounded, region, 0)
    }
}

/// One region of a store of 7 to byte 0, which has ended.
fn one() -> Hand {
    let mut hand = Hand::default();
    hand.stored(0, 0, 1, 7).ended(0, 0);
    hand
}

/// Two of them.
fn two() -> Hand {
    let mut hand = one();
    hand.stored(0, 1, 0b10, 7).ended(0, 1);
    hand
}

/// The whole of [`one`] as it should be: 8 changes at two controllers.
fn right() -> Hand {
    let mut hand = one();
    hand.at(0, RegionStep::Buffered, 0, 1).bounded(0).at(0, RegionStep::Flushed, 0, 1);
    hand.at(0, RegionStep::Done, 0, 0).at(1, RegionStep::Done, 0, 0);
    hand.at(0, RegionStep::Committed, 0, 0).at(1, RegionStep::Committed, 0, 0);
    hand
}

fn with<R>(hand: &Hand, of_ctas: bool, judge: impl FnOnce(&RegionFacts<'_>) -> R) -> R {
    of(hand, of_ctas, |facts| judge(&facts))
}

fn of<R>(hand: &Hand, of_ctas: bool, judge: impl FnOnce(RegionFacts<'_>) -> R) -> R {
    let initial = initial();
    let model = Model { domain: Domain::Adr, promises: Promises::NONE };
    let order = RunOrder::new(&hand.0, &initial, model);
    judge(RegionFacts::new(&order, &initial, 2, of_ctas).unwrap())
}

fn messages(hand: &Hand, finished: bool) -> Vec<String> {
    let verdict = with(hand, false, |facts| judge_regions(facts, finished, 20));
    assert_eq!(verdict.failed, verdict.failures.len() as u64);
    verdict.failures.into_iter().map(|failure| failure.what).collect()
}

fn check(hand: &Hand, what: &str) {
    assert_eq!(messages(hand, false), [what]);
}

#[test]
fn a_controller_out_of_the_protocols_order_is_told() {
    use RegionStep::{Bounded, Buffered, Committed, Done, Flushed, Logged, Spilled};
    assert_eq!(messages(&right(), true), [""; 0]);
    check(one().at(0, Bounded, 0, 0).at(0, Buffered, 0, 1), "region 0: controller 0 takes a store behind its boundary");
    check(one().at(1, Bounded, 0, 0).at(1, Bounded, 0, 0), "region 0: controller 1 has its boundary twice");
    let mut open = Hand::default();
    check(open.stored(0, 0, 1, 7).at(0, Bounded, 0, 0), "region 0: controller 0 has its boundary before its end");
    check(
        one().at(0, Buffered, 0, 1).at(0, Bounded, 0, 0).at(0, Flushed, 0, 1),
        "region 0: controller 0 flushes it when 1 of 2 controllers have its boundary",
    );
    check(
        two().at(0, Buffered, 1, 0b10).bounded(1).at(0, Flushed, 1, 0b10),
        "region 1: controller 0 flushes it with flush ID 0",
    );
    check(one().bounded(0).at(0, Flushed, 0, 1), "region 0: controller 0 flushes bytes that it does not hold");
    check(two().at(0, Logged, 1, 0b10), "region 1: controller 0 spills it with flush ID 0");
    check(one().at(0, Bounded, 0, 0).at(0, Logged, 0, 1), "region 0: controller 0 spills it behind its boundary");
    let unlogged = "region 0: controller 0 writes over bytes that it has not logged";
    check(one().at(0, Spilled, 0, 1), unlogged);
    check(one().at(0, Logged, 0, 0b10).at(0, Spilled, 0, 0b11), unlogged);
    assert_eq!(messages(one().at(0, Logged, 0, 0b11).at(0, Spilled, 0, 0b11), false), [""; 0]);
    check(
        one().at(0, Bounded, 0, 0).at(0, Done, 0, 0),
        "region 0: controller 0 is done with it when 1 of 2 have its boundary",
    );
    check(
        one().at(0, Buffered, 0, 1).bounded(0).at(0, Done, 0, 0),
        "region 0: controller 0 is done with it and holds 1 of its stores",
    );
    check(
        one().bounded(0).at(1, Done, 0, 0).at(1, Committed, 0, 0),
        "region 0: controller 1 commits it when 1 of 2 controllers are done with it",
    );
    // Pipelined, that is the rule; its own stores it waits for.
    let pipelined = |hand: &Hand| {
        let judged =
            |facts: RegionFacts<'_>| judge_regions(&facts.committed_by(CommitRule::Pipelined), false, 20).failures;
        of(hand, false, judged).into_iter().map(|failure| failure.what).collect::<Vec<String>>()
    };
    assert_eq!(pipelined(one().bounded(0).at(1, Done, 0, 0).at(1, Committed, 0, 0)), [""; 0]);
    let early = "region 0: controller 1 commits it before it is done with it";
    assert_eq!(pipelined(one().bounded(0).at(0, Done, 0, 0).at(1, Committed, 0, 0)), [early]);
    let ahead = "region 1: controller 0 flushes it with flush ID 0";
    let mut next = two();
    next.at(0, Buffered, 1, 0b10).bounded(0).bounded(1);
    assert_eq!(pipelined(next.clone().at(0, Flushed, 1, 0b10)), [ahead]);
    let settled = next.at(0, Done, 0, 0).at(0, Committed, 0, 0).at(0, Flushed, 1, 0b10);
    assert_eq!(pipelined(settled), [""; 0], "whatever controller 1 has done");
    check(
        two().bounded(1).at(0, Done, 1, 0).at(1, Done, 1, 0).at(0, Committed, 1, 0),
        "region 1: controller 0 commits it with flush ID 0",
    );
}

#[test]
fn a_flush_moves_the_bytes_of_entries_that_were_joined_and_no_others() {
    // Byte 1 is 7 and byte 2 is `second`; the flush is of 7s.
    let flushed = |entries: &[(u128, u8)], second: u8| {
        let mut hand = Hand::default();
        hand.stored(0, 0, 0b010, 7).stored(0, 0, 0b100, second).ended(0, 0);
        for &(mask, value) in entries {
            hand.note(FactKind::Region(RegionStep::Buffered), held(0, 0), mask, value);
        }
        hand.bounded(0).note(FactKind::Region(RegionStep::Flushed), held(0, 0), 0b110, 7);
        messages(&hand, false).is_empty()
    };
    assert!(flushed(&[(0b010, 7), (0b100, 7)], 7));
    assert!(!flushed(&[(0b010, 7)], 7), "one byte of two");
    assert!(!flushed(&[(0b010, 7), (0b100, 9)], 9), "another value");
}

#[test]
fn a_fault_at_a_controller_names_the_store_whose_bytes_it_is_of() {
    let named = |mask: u128| {
        let mut hand = Hand::default();
        hand.stored(0, 0, 0b0001, 7).stored(0, 0, 0b1100, 7).ended(0, 0).bounded(0);
        hand.at(0, RegionStep::Flushed, 0, mask);
        let verdict = with(&hand, false, |facts| judge_regions(facts, false, 20));
        verdict.failures[0].witness.as_ref().unwrap().present.as_ref().unwrap().address
    };
    assert_eq!([0b0001, 0b0100, 0b1100].map(named), [0, 2, 2]);
}

#[test]
fn what_is_not_committed_at_the_end_of_a_run_is_told_with_its_state() {
    let start =
        |committed: u32, drawn: u32| format!("at the end of the run {committed} of {drawn} regions are committed");
    assert_eq!(messages(&one(), true), [format!("{}: region 0 ended", start(0, 1))]);
    let mut open = Hand::default();
    open.stored(0, 0, 1, 7);
    assert_eq!(messages(&open, true), [format!("{}: region 0 did not end", start(0, 1))]);
    let mut unused = Hand::default();
    unused.stored(0, 1, 1, 7);
    assert_eq!(messages(&unused, true), [format!("{}: region 0 was never used", start(0, 2))]);
    assert_eq!(messages(&unused, false), [""; 0]);
    let mut second = right();
    second.stored(0, 1, 0b10, 7);
    assert_eq!(messages(&second, true), [format!("{}: region 1 did not end", start(1, 2))]);
}

#[test]
fn facts_of_regions_that_contradict_each_other_are_told() {
    check(one().at(2, RegionStep::Bounded, 0, 0), "there is no controller 2");
    // Five facts draw at most five regions.
    check(one().at(0, RegionStep::Bounded, 6, 0), "region 6 of order 0 is beyond all that were drawn");
    check(one().ended(0, 6), "region 6 is beyond all that were drawn");
    assert_eq!(messages(one().ended(0, 5), false), [""; 0]);
    check(one().ended(1, 0), "region 0 belongs to two warps");
    let of_ctas = |cta: u32| {
        let mut hand = one();
        hand.note(FactKind::Region(RegionStep::Ended), script::warp_of(cta, 1).in_region(0), 0, 0);
        let failures = with(&hand, true, |facts| judge_regions(facts, false, 20)).failures;
        failures.into_iter().map(|failure| failure.what).collect::<Vec<_>>()
    };
    assert_eq!((of_ctas(0), of_ctas(1)), (vec![], vec!["region 0 belongs to two CTAs".to_owned()]));
    check(one().stored(0, 0, 0b10, 7), "a store of region 0 left its SM behind the region's end");
    let mut unknown = Hand::default();
    check(unknown.left(0, 0, 1, 7), "what left in region 0 to line 0x0 is nothing that its warp stored");
    let mut other = Hand::default();
    other.note(FactKind::Stored, script::warp(0), 0b111, 7).note(FactKind::Performed, Author::Sm(0), 0b111, 7);
    check(other.left(0, 0, 0b110, 8), "2 bytes left in region 0 to line 0x0 with other values");
    // A step of a controller with the author of a warp's: its SM would be read as the controller.
    let foreign = script::warp(0).in_region(0);
    let what =
        format!("{:?} is noted of {foreign:?}, which cannot have done it", FactKind::Region(RegionStep::Bounded));
    check(one().note(FactKind::Region(RegionStep::Bounded), foreign, 0, 0), &what);
}

#[test]
fn regions_that_commit_in_another_order_than_the_programs_are_told() {
    let mut program = Hand::default();
    program.stored(0, 1, 1, 7).stored(0, 0, 0b1_0000_0000, 7);
    check(&program, "region 0 commits before region 1, and comes behind that in the program");
    // Two warps, which nothing orders but the bytes.
    let mut bytes = Hand::default();
    bytes.stored(0, 1, 1, 7).stored(1, 0, 1, 9);
    check(&bytes, "region 0 commits before region 1, and is performed after that, on the same bytes");
    let mut same = Hand::default();
    same.stored(0, 1, 1, 7).stored(1, 0, 1, 7);
    assert_eq!(messages(&same, false), [""; 0], "equal values hide the order");
    let mut host = one();
    host.note(FactKind::Performed, Author::Host, 0b11, 5);
    check(&host, "the host writes 0x0 when region 0, which stored there before, has not committed");
}

static NOBODY: AtomicBool = AtomicBool::new(false);

/// points, distinct, judged, passed, left out, failed; exhaustive, stopped.
fn counts(verdict: &Verdict) -> ([u64; 6], [bool; 2]) {
    let Verdict { points, distinct, judged, passed, left_out, failed, .. } = *verdict;
    ([points, distinct, judged, passed, left_out, failed], [verdict.exhaustive, verdict.stopped])
}

#[test]
fn a_history_of_regions_counts_its_changes_and_those_with_failures() {
    let of = |hand: &Hand| counts(&with(hand, false, |facts| judge_regions(facts, false, 20)));
    assert_eq!(of(&right()), ([8, 8, 8, 8, 0, 0], [true, false]));
    assert_eq!(of(right().at(1, RegionStep::Bounded, 0, 0)), ([9, 9, 9, 8, 0, 1], [true, false]));
    let found = with(&right(), false, |facts| (facts.changes(), facts.regions(), facts.orders()));
    assert_eq!((found, with(&two(), false, |facts| facts.regions())), ((8, 1, 1), 2));
}

#[test]
fn the_points_of_a_plan_are_counted_and_the_first_of_each_number_of_regions_is_told() {
    let of = |plan: Plan, stop: bool| {
        let stop = AtomicBool::new(stop);
        let told = std::sync::Mutex::new(Vec::new());
        let progress = |done, total| told.lock().unwrap().push((done, total));
        let watch = Watch { stop: &stop, progress: &progress };
        let options = JudgeOptions { plan, double: true, seed: 1, keep: 8 };
        let found = with(&right(), false, |facts| judge_recovery(facts, &options, &AsPublished, &watch))?;
        let (actual, double, firsts) = found;
        let told = told.lock().unwrap().clone();
        Ok::<_, BeyondEnd>((counts(&actual), counts(&double.unwrap()), firsts, told))
    };
    let all = ([9, 9, 9, 9, 0, 0], [true, false]);
    let cut = ([9, 9, 9, 9, 0, 0], [false, false]);
    // Recovery commits the region once both have its boundary.
    assert_eq!(of(Plan::All, false), Ok((all, cut, vec![0, 3], vec![(9, 9)])));
    assert_eq!(of(Plan::Auto, false).unwrap().0, all);
    assert_eq!(of(Plan::Count(9), false).unwrap().0, all);
    assert_eq!(of(Plan::Count(8), false).unwrap().0, ([8, 8, 8, 8, 1, 0], [false, false]));
    // 0, 2, 5 and 8.
    let (four, _, firsts, told) = of(Plan::Count(4), false).unwrap();
    assert_eq!((four, firsts, told), (([4, 4, 4, 4, 5, 0], [false, false]), vec![0, 5], vec![(4, 4)]));
    // All but 4 and 5: next to boundaries and commits, and both ends.
    assert_eq!(of(Plan::Boundaries, false).unwrap().0, ([7, 7, 7, 7, 2, 0], [false, false]));
    assert_eq!(of(Plan::Only(3), false).unwrap().0, ([1, 1, 1, 1, 8, 0], [false, false]));
    assert_eq!(of(Plan::Only(9), false), Err(BeyondEnd { asked: 9, changes: 8 }));
    let stopped = ([9, 9, 0, 0, 0, 0], [false, true]);
    assert_eq!(of(Plan::All, true), Ok((stopped, stopped, vec![], vec![])));
}

/// What is found at the last point.
fn last(hand: &Hand) -> Vec<String> {
    let watch = Watch { stop: &NOBODY, progress: &|_, _| {} };
    let verdict = with(hand, false, |facts| {
        let options = JudgeOptions { plan: Plan::Only(facts.changes()), double: false, seed: 1, keep: 8 };
        judge_recovery(facts, &options, &AsPublished, &watch).unwrap().0
    });
    verdict.failures.into_iter().map(|failure| failure.what).collect()
}

#[test]
fn a_wrong_image_is_told_with_what_it_lacks_or_has() {
    assert_eq!(last(&right()), [""; 0]);
    let lacks = "with the regions below 1 committed, a word is wrong; it lacks region 0";
    assert_eq!(last(one().bounded(0)), [lacks]);
    // Another store of the region came, to the next word, which was 1000.
    let mut beside = Hand::default();
    beside.stored(0, 0, 1, 7).stored(0, 0, 1 << 8, 7).ended(0, 0);
    assert_eq!(
        last(beside.clone().at(1, RegionStep::Buffered, 0, 1 << 8).bounded(0)),
        [format!("{lacks}, a store of controller 1")]
    );
    assert_eq!(last(beside.bounded(0)), [format!("{lacks} (2 words are wrong)")]);
    let has = "with the regions below 0 committed, a word is wrong; it has region 0, a store \
               of controller 1";
    assert_eq!(last(one().at(1, RegionStep::Spilled, 0, 1)), [has]);
    let differ = "flush IDs differ after recovery: 1 at controller 1, 0 at controller 0";
    assert_eq!(last(one().at(1, RegionStep::Committed, 0, 0)), [differ]);
}

#[test]
fn conditions_are_judged_once_for_each_number_of_regions() {
    let condition = Condition::new("no seven", |image: &PmImage| match image.word(0) {
        Ok(7) => Err("seven".to_owned()),
        _ => Ok(()),
    });
    let checks: [&dyn Check; 1] = [&condition];
    let of = |stop: bool| {
        let stop = AtomicBool::new(stop);
        let watch = Watch { stop: &stop, progress: &|_, _| {} };
        let options = JudgeOptions { plan: Plan::All, double: false, seed: 1, keep: 8 };
        with(&right(), false, |facts| {
            let mut actual = Verdict { judged: 9, passed: 9, ..Verdict::default() };
            judge_checks(facts, &[0, 3], &options, &AsPublished, &checks, &watch, &mut actual);
            actual
        })
    };
    let found = of(false);
    assert_eq!((found.passed, found.failed, found.stopped), (8, 1, false));
    let count = &found.conditions[0];
    assert_eq!((count.name.as_str(), count.held, count.violated), ("no seven", 1, 1));
    assert_eq!(count.first.as_ref(), Some(&found.failures[0]));
    // Four facts of the program, then three of controllers.
    assert_eq!((found.failures[0].point, found.failures[0].time, found.failures[0].what.as_str()), (3, 7, "seven"));
    let stopped = of(true);
    assert_eq!((stopped.passed, stopped.failed, stopped.stopped), (9, 0, true));
}

/// Fails at a given step.
struct Runs {
    finish: bool,
    interrupt: bool,
    again: bool,
}

impl Resumes for Runs {
    fn finish(&self, _: &PmImage) -> Result<(), String> {
        if self.finish { Err("stuck".to_owned()) } else { Ok(()) }
    }

    fn finish_twice(&self, _: &PmImage, _: u64) -> Result<(), TwiceResumed> {
        match (self.interrupt, self.again) {
            (true, _) => Err(TwiceResumed::Before("stuck".to_owned())),
            (false, true) => Err(TwiceResumed::After("stuck".to_owned())),
            (false, false) => Ok(()),
        }
    }
}

#[test]
fn a_program_that_does_not_run_on_is_told_with_how_far_it_came() {
    let of = |finish, interrupt, again, count: u64| {
        let watch = Watch { stop: &NOBODY, progress: &|_, _| {} };
        let options = JudgeOptions { plan: Plan::All, double: false, seed: 1, keep: 1 };
        let runs = Runs { finish, interrupt, again };
        let resume =
            |facts: &RegionFacts<'_>| judge_resume(facts, &[0, 3], count, &options, &AsPublished, &runs, &watch);
        let verdict = with(&right(), false, resume);
        let what = verdict.failures.first().map(|failure| failure.what.clone());
        (counts(&verdict), what.unwrap_or_default())
    };
    let failed = ([2, 2, 2, 0, 7, 2], [false, false]);
    assert_eq!(of(false, false, false, 6), (([2, 2, 2, 2, 7, 0], [false, false]), String::new()));
    assert_eq!(of(true, false, false, 6), (failed, "resumed: stuck".to_owned()));
    let what = "resumed, up to a second failure 1 regions later: stuck";
    assert_eq!(of(false, true, false, 6), (failed, what.to_owned()));
    let what = "resumed after a second failure 1 regions later: stuck";
    assert_eq!(of(false, false, true, 6), (failed, what.to_owned()));
    // One, and no ends besides.
    assert_eq!(of(false, false, false, 1).0, ([1, 1, 1, 1, 8, 0], [false, false]));
}
