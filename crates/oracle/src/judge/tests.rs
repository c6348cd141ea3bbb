//! Tests of whole judgements on runs made by hand: undo logging and message passing with what can go wrong in
//! each.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;

use super::super::allowed::Budget;
use super::super::order::Model;
use super::super::script::{Script, warp};
use super::super::undo::Expected;
use super::*;
use durawarp_persist::journal::{Author, FactKind};
use durawarp_persist::promises::Promises;
use durawarp_persist::undo::{COMPLETE, IN_TX, LogSlot, Transaction, UndoLog};
use durawarp_persist::vocab::Domain;

const DATA: u64 = 0;
const LOG: u64 = 256;
const FLAG: u64 = 512;

/// An image in which the two data words are 1 and 2.
fn initial() -> PmImage {
    let mut image = PmImage::new(0, vec![0; 1024]);
    image.write(DATA, &1u32.to_le_bytes()).unwrap();
    image.write(DATA + 128, &2u32.to_le_bytes()).unwrap();
    image
}

/// One transaction: words at [`DATA`] and 128 bytes on become 10 and 20.
fn rule() -> UndoRule {
    let slot = |at: u64| LogSlot { home: DATA + at * 128, log: LOG + at * 128, bytes: 4 };
    let transaction = Transaction { launch: 0, cta: Some(0), flag: FLAG, slots: vec![slot(0), slot(1)] };
    let words = |words: [u32; 2]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let expected = Expected { old: words([1, 2]), new: words([10, 20]) };
    UndoRule::new(UndoLog { transactions: vec![transaction] }, vec![expected], true)
}

struct Both {
    actual: Verdict,
    allowed: Verdict,
}

fn judge(script: &Script, rules: &Rules<'_>, domain: Domain) -> Both {
    let initial = initial();
    let order = RunOrder::new(&script.journal, &initial, Model { domain, promises: Promises::NONE });
    assert_eq!(order.faults(), []);
    let states = CrashStates::new(&script.journal, &initial, domain).unwrap();
    let regions = rules.undo.map(|undo| Regions::of(undo.log())).unwrap_or_default();
    let stop = AtomicBool::new(false);
    let watch = Watch { stop: &stop, progress: &|_, _| {} };
    let actual = judge_actual(&states, &order, rules, &regions, Plan::All, 0, &watch).unwrap();
    let allowed = Allowed::new(&order, &initial, regions, Budget::default());
    let verdict = judge_allowed(&allowed, rules, &watch);
    // Every failure is seen again by its instant and number.
    for failure in &verdict.failures {
        let again = judge_choice(&allowed, rules, failure.point as usize, failure.choice.unwrap()).unwrap();
        assert!(again.failures.contains(failure), "{failure:?} {again:?}");
    }
    for failure in &actual.failures {
        let again = judge_actual(&states, &order, rules, &Regions::default(), Plan::Only(failure.point), 0, &watch);
        assert!(again.unwrap().failures.contains(failure), "{failure:?}");
    }
    Both { actual, allowed: verdict }
}

fn judge_undo(script: &Script) -> Both {
    let rule = rule();
    judge(script, &Rules { undo: Some(&rule), keep: 10, ..Rules::default() }, Domain::Adr)
}

/// (role, warp) of the persist that is missing and of the one that is there.
fn witness(verdict: &Verdict) -> [(&str, u16); 2] {
    let witness = verdict.failures[0].witness.as_ref().expect("a witness");
    [&witness.missing, &witness.present].map(|persist| {
        let persist = persist.as_ref().expect("a persist");
        (persist.role.as_str(), persist.warp)
    })
}

/// The log of both words by their warps, durable.
fn log(script: &mut Script) {
    script.launch(0).persist(warp(0), LOG, 1).persist(warp(1), LOG + 128, 2);
}

#[test]
fn undo_logging_done_right_holds_in_every_state() {
    let mut script = Script::default();
    log(&mut script);
    script.persist(warp(0), FLAG, IN_TX).persist(warp(0), DATA, 10).persist(warp(1), DATA + 128, 20);
    script.persist(warp(0), FLAG, COMPLETE);
    let Both { actual, allowed } = judge_undo(&script);
    assert_eq!((&actual.failures, &allowed.failures), (&Vec::new(), &Vec::new()));
    assert!(actual.exhaustive && allowed.exhaustive && !actual.stopped);
    assert_eq!((actual.points, actual.distinct, actual.judged, actual.passed), (7, 7, 7, 7));
    assert_eq!(allowed.judged, allowed.passed);
    assert!(allowed.points > allowed.distinct && allowed.distinct >= 7);
}

#[test]
fn without_a_barrier_after_the_flag_another_warps_data_may_be_durable_before_it() {
    // As in AGPM Fig. 1: the flag is stored, written back and fenced by warp 0; warp 1 does not wait for it.
    let mut script = Script::default();
    log(&mut script);
    script.store(warp(0), FLAG, IN_TX).store(warp(1), DATA + 128, 20).write_back(warp(0), FLAG);
    // Timing makes the flag durable first.
    script.accepted(FLAG, IN_TX).fence(warp(0)).persist(warp(0), DATA, 10);
    script.write_back(warp(1), DATA + 128).accepted(DATA + 128, 20).fence(warp(1)).persist(warp(0), FLAG, COMPLETE);
    let Both { actual, allowed } = judge_undo(&script);
    assert_eq!(actual.failures, []);
    assert!(!allowed.holds());
    assert_eq!(witness(&allowed), [("flag", 0), ("data", 1)]);
    assert!(allowed.failures[0].what.contains("data is durable and the flag is not"));
    // A barrier after the flag's fence, that is, warp 1 stores after it, mends it.
    let mut script = Script::default();
    log(&mut script);
    script.persist(warp(0), FLAG, IN_TX).store(warp(1), DATA + 128, 20).persist(warp(0), DATA, 10);
    script.write_back(warp(1), DATA + 128).accepted(DATA + 128, 20).fence(warp(1)).persist(warp(0), FLAG, COMPLETE);
    assert!(judge_undo(&script).allowed.holds());
}

#[test]
fn a_flag_that_may_be_durable_before_the_log_is_found() {
    // Warp 1's log has no fence before the flag.
    let mut script = Script::default();
    script.launch(0).persist(warp(0), LOG, 1).store(warp(1), LOG + 128, 2).write_back(warp(1), LOG + 128);
    script.accepted(LOG + 128, 2).persist(warp(0), FLAG, IN_TX).fence(warp(1));
    script.persist(warp(0), DATA, 10).persist(warp(1), DATA + 128, 20).persist(warp(0), FLAG, COMPLETE);
    let Both { actual, allowed } = judge_undo(&script);
    assert!(actual.holds() && !allowed.holds());
    assert_eq!(witness(&allowed), [("log", 1), ("flag", 0)]);
}

#[test]
fn data_that_was_durable_before_its_log_is_found_in_actual_states() {
    let mut script = Script::default();
    script.launch(0).persist(warp(0), FLAG, IN_TX).persist(warp(1), DATA + 128, 20);
    script.persist(warp(0), LOG, 1).persist(warp(1), LOG + 128, 2);
    script.persist(warp(0), DATA, 10).persist(warp(0), FLAG, COMPLETE);
    let Both { actual, .. } = judge_undo(&script);
    assert_eq!(actual.failures[0].point, 1);
    assert_eq!(witness(&actual), [("log", 0), ("flag", 0)]);
    assert_eq!(actual.failures[0].property, Property::Undo);
}

#[test]
fn a_transaction_that_says_complete_before_its_data_is_durable_is_found() {
    let mut script = Script::default();
    log(&mut script);
    script.persist(warp(0), FLAG, IN_TX).persist(warp(0), DATA, 10).store(warp(1), DATA + 128, 20);
    script.persist(warp(0), FLAG, COMPLETE).accepted(DATA + 128, 20);
    let Both { actual, allowed } = judge_undo(&script);
    assert_eq!(witness(&actual), [("data", 1), ("flag", 0)]);
    assert_eq!(witness(&allowed), [("data", 1), ("flag", 0)]);
}

#[test]
fn states_before_the_first_launch_are_the_hosts_business() {
    let mut script = Script::default();
    // The host puts the data there, after 8 other words.
    for word in 0..8 {
        script.performed(Author::Host, DATA + 4 + word * 4, 5).accepted(DATA + 4 + word * 4, 5);
    }
    script.launch(0).accepted(900, 0);
    let condition = Condition::new("input", |image: &PmImage| match image.word(DATA + 32) {
        Ok(5) => Ok(()),
        _ => Err("no input".to_owned()),
    });
    let checks: [&dyn Check; 1] = [&condition];
    let rules = Rules { checks: &checks, keep: 100, ..Rules::default() };
    let early = judge(&script, &rules, Domain::Adr);
    assert_eq!((early.actual.points, early.actual.failed), (10, 8));
    assert!(!early.allowed.holds());
    let rules = Rules { launches: 1, ..rules };
    let Both { actual, allowed } = judge(&script, &rules, Domain::Adr);
    assert_eq!((actual.points, actual.left_out, actual.failed), (2, 0, 0));
    assert!(allowed.points > 0 && allowed.holds());
}

#[test]
fn an_image_that_is_right_before_a_launch_is_judged_again_after_it() {
    // The data is not there when the launch begins, in the same image as at the start.
    let mut script = Script::default();
    script.store(warp(0), 900, 1).store(warp(0), 900, 0);
    script.accepted(900, 1).accepted(900, 0).launch(0).accepted(900, 0);
    let slots = vec![LogSlot { home: 904, log: 908, bytes: 4 }];
    let transactions = vec![Transaction { launch: 0, cta: None, flag: FLAG, slots }];
    let expected = Expected { old: vec![1; 4], new: vec![2; 4] };
    let rule = UndoRule::new(UndoLog { transactions }, vec![expected], false);
    let rules = Rules { undo: Some(&rule), keep: 10, ..Rules::default() };
    let Both { actual, allowed } = judge(&script, &rules, Domain::Adr);
    let points: Vec<u64> = actual.failures.iter().map(|failure| failure.point).collect();
    assert_eq!((points, actual.points, actual.distinct), (vec![2], 4, 3));
    assert_eq!(allowed.failures[0].point, 7);
}

#[test]
fn recovery_that_overwrites_a_log_it_still_needs_is_found_by_cutting_it_off() {
    // The second element lies where the first one's log is.
    let slots = vec![LogSlot { home: 0, log: 900, bytes: 4 }, LogSlot { home: 900, log: 904, bytes: 4 }];
    let transactions = vec![Transaction { launch: 0, cta: None, flag: FLAG, slots }];
    let expected = Expected { old: vec![1, 0, 0, 0, 7, 0, 0, 0], new: vec![2, 0, 0, 0, 8, 0, 0, 0] };
    let mut script = Script::default();
    script.launch(0).persist(warp(0), 900, 1).persist(warp(0), 904, 7).persist(warp(0), FLAG, IN_TX);
    for double in [false, true] {
        let log = UndoLog { transactions: transactions.clone() };
        let rule = UndoRule::new(log, vec![expected.clone()], double);
        let rules = Rules { undo: Some(&rule), keep: 10, ..Rules::default() };
        let last = judge(&script, &rules, Domain::Adr).actual.failures.pop();
        let found = last.map(|failure| (failure.property, failure.point));
        assert_eq!(found == Some((Property::Idempotent, 3)), double, "{found:?}");
    }
}

/// Data at 0, then a flag at 128 that says it is there.
fn message(image: &PmImage) -> Result<(), String> {
    let word = |address| image.word(address).map_err(|outside| outside.to_string());
    match (word(128)?, word(0)?) {
        (7, data) if data != 42 => Err(format!("the flag is set and the data is {data}")),
        _ => Ok(()),
    }
}

#[test]
fn message_passing_without_a_fence_is_right_by_timing_only() {
    let condition = Condition::new("message", message);
    let checks: [&dyn Check; 1] = [&condition];
    let rules = Rules { checks: &checks, keep: 10, ..Rules::default() };
    let mut bare = Script::default();
    bare.store(warp(0), 0, 42).store(warp(0), 128, 7).accepted(0, 42).accepted(128, 7);
    let Both { actual, allowed } = judge(&bare, &rules, Domain::Adr);
    assert!(actual.holds());
    assert_eq!(allowed.failures[0].property, Property::Check("message".into()));
    assert_eq!(allowed.failures[0].what, "the flag is set and the data is 1");
    let mut fenced = Script::default();
    fenced.persist(warp(0), 0, 42).persist(warp(0), 128, 7);
    assert!(judge(&fenced, &rules, Domain::Adr).allowed.holds());
    // Another warp's fence does not cover it, nor does a write-back before the store.
    let mut other = Script::default();
    other.store(warp(0), 0, 42).write_back(warp(0), 0).fence(warp(1)).persist(warp(0), 128, 7);
    assert!(!judge(&other, &rules, Domain::Adr).allowed.holds());
    let mut early = Script::default();
    early.write_back(warp(0), 0).store(warp(0), 0, 42).fence(warp(0)).persist(warp(0), 128, 7);
    assert!(!judge(&early, &rules, Domain::Adr).allowed.holds());
    // When the caches survive, what is performed is durable.
    assert!(judge(&bare, &rules, Domain::Eadr).allowed.holds());
}

#[test]
fn what_is_accepted_is_not_yet_durable_when_the_media_alone_survives() {
    let condition = Condition::new("message", message);
    let checks: [&dyn Check; 1] = [&condition];
    let rules = Rules { checks: &checks, keep: 10, ..Rules::default() };
    let mut script = Script::default();
    script.store(warp(0), 0, 42).store(warp(0), 128, 7).accepted(0, 42).accepted(128, 7);
    script.at_media(128, 7).at_media(0, 42);
    assert!(judge(&script, &rules, Domain::Adr).actual.holds());
    assert!(judge(&script, &rules, Domain::Eadr).actual.holds());
    let media = judge(&script, &rules, Domain::Media).actual;
    assert_eq!((media.failed, media.failures[0].point, media.failures[0].time), (1, 1, 7));
}

#[test]
fn a_store_that_crosses_words_may_be_torn() {
    let mut script = Script::default();
    let bytes = [9; 16];
    script.data(FactKind::Stored, 0, &bytes, warp(0));
    script.data(FactKind::Performed, 0, &bytes, Author::Sm(0));
    let whole = |image: &PmImage| match (image.word(0), image.word(8)) {
        (Ok(1), Ok(0)) | (Ok(0x0909_0909), Ok(0x0909_0909)) => Ok(()),
        other => Err(format!("{other:x?}")),
    };
    let condition = Condition::new("whole", whole);
    let checks: [&dyn Check; 1] = [&condition];
    let rules = Rules { checks: &checks, keep: 10, ..Rules::default() };
    assert!(!judge(&script, &rules, Domain::Adr).allowed.holds());
}

#[test]
fn recovery_of_the_callers_replaces_the_logs_own_and_its_faults_are_findings() {
    let mut script = Script::default();
    log(&mut script);
    script.persist(warp(0), FLAG, IN_TX).persist(warp(0), DATA, 10);
    let rule = rule();
    let lazy = |_: &mut PmImage| Ok(Vec::new());
    let rules = Rules { undo: Some(&rule), recovery: Some(&lazy), keep: 10, ..Rules::default() };
    let found = judge(&script, &rules, Domain::Adr).actual;
    assert_eq!(found.failures[0].what, format!("the flag at {FLAG:#x} is 1 after recovery"));
    let failing = |_: &mut PmImage| Err("lost its way".to_owned());
    let rules = Rules { recovery: Some(&failing), ..rules };
    let found = judge(&script, &rules, Domain::Adr).actual;
    assert_eq!((&found.failures[0].property, found.failed), (&Property::Recovery, found.judged));
}

#[test]
fn a_judgement_that_is_stopped_keeps_what_was_judged() {
    let mut script = Script::default();
    for nth in 0..1000 {
        script.accepted(nth % 200 * 4, nth as u32 + 100);
    }
    let (initial, stop, seen) = (initial(), AtomicBool::new(false), AtomicUsize::new(0));
    let model = Model { domain: Domain::Adr, promises: Promises::NONE };
    let order = RunOrder::new(&script.journal, &initial, model);
    let states = CrashStates::new(&script.journal, &initial, Domain::Adr).unwrap();
    let holds = |_: &PmImage| {
        let enough = seen.fetch_add(1, Ordering::Relaxed) >= 100;
        stop.fetch_or(enough, Ordering::Relaxed);
        Err("x".to_owned())
    };
    let condition = Condition::new("all wrong", holds);
    let checks: [&dyn Check; 1] = [&condition];
    let rules = Rules { checks: &checks, keep: 5, ..Rules::default() };
    let last = AtomicU64::new(0);
    let progress = |done, total| {
        assert!(done <= total);
        last.fetch_max(done, Ordering::Relaxed);
    };
    let watch = Watch { stop: &stop, progress: &progress };
    let verdict = judge_actual(&states, &order, &rules, &Regions::default(), Plan::All, 0, &watch).unwrap();
    assert!(verdict.stopped && !verdict.exhaustive);
    assert!((101..400).contains(&verdict.judged), "{}", verdict.judged);
    assert_eq!((verdict.judged, verdict.failures.len()), (verdict.failed, 5));
    assert!(last.load(Ordering::Relaxed) >= 96);
    assert_eq!(
        judge_allowed(&Allowed::new(&order, &initial, Regions::default(), Budget::default()), &rules, &watch).judged,
        0
    );
}

#[test]
fn a_verdict_is_the_same_on_any_number_of_threads_and_equal_images_are_judged_once() {
    let mut script = Script::default();
    for nth in 0..500_u64 {
        script.store(warp(0), nth % 7 * 128, (nth % 3) as u32).accepted(nth % 7 * 128, (nth % 3) as u32);
    }
    let holds = |image: &PmImage| match image.word(0) {
        Ok(2) => Err("two".to_owned()),
        _ => Ok(()),
    };
    let condition = Condition::new("no two", holds);
    let checks: [&dyn Check; 1] = [&condition];
    let rules = Rules { checks: &checks, keep: 7, ..Rules::default() };
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| judge(&script, &rules, Domain::Adr))
    };
    let (one, three) = (on(1), on(3));
    assert_eq!((&one.actual, &one.allowed), (&three.actual, &three.allowed));
    assert!(one.actual.distinct < one.actual.points && one.actual.judged == one.actual.distinct);
    assert_eq!(one.actual.failures.len(), 7);
}

/// A word of 5 at address 0 is found fault with.
fn no_five(image: &PmImage) -> Result<(), String> {
    match image.word(0) {
        Ok(5) => Err("five".to_owned()),
        _ => Ok(()),
    }
}

static NO_STOP: AtomicBool = AtomicBool::new(false);

/// points, distinct, judged, passed, left out, failed; exhaustive, stopped.
type Counts = ([u64; 6], [bool; 2]);

fn counts(verdict: &Verdict) -> Counts {
    let Verdict { points, distinct, judged, passed, left_out, failed, .. } = *verdict;
    ([points, distinct, judged, passed, left_out, failed], [verdict.exhaustive, verdict.stopped])
}

fn order_of<'a>(script: &'a Script, initial: &PmImage) -> RunOrder<'a> {
    let model = Model { domain: Domain::Adr, promises: Promises::NONE };
    RunOrder::new(&script.journal, initial, model)
}

#[test]
fn a_verdict_on_actual_states_counts_points_and_images_of_its_plan() {
    // The words at 0 and 4: [1, 0], [5, 0], [1, 0] again, [5, 0] again, [5, 7]; a launch begins after the
    // first change.
    let mut script = Script::default();
    script.accepted(0, 5).launch(0).accepted(0, 1).accepted(0, 5).accepted(4, 7);
    let initial = initial();
    let order = order_of(&script, &initial);
    let states = CrashStates::new(&script.journal, &initial, Domain::Adr).unwrap();
    let condition = Condition::new("no five", no_five);
    let checks: [&dyn Check; 1] = [&condition];
    let of = |plan, launches, stop: bool| {
        let rules = Rules { checks: &checks, launches, keep: 1, ..Rules::default() };
        let stop = AtomicBool::new(stop);
        let watch = Watch { stop: &stop, progress: &|_, _| {} };
        judge_actual(&states, &order, &rules, &Regions::default(), plan, 0, &watch).unwrap()
    };
    // Before the launch an image is another one than the same bytes after it: point 0 is one of its own.
    let all = of(Plan::All, 0, false);
    assert_eq!(counts(&all), ([5, 4, 4, 2, 0, 2], [true, false]));
    let count = &all.conditions[0];
    assert_eq!((count.name.as_str(), count.held, count.violated), ("no five", 2, 2));
    assert_eq!((all.failures.len(), all.failures[0].point, all.failures[0].time), (1, 1, 1));
    assert_eq!(count.first.as_ref().map(|first| (first.point, first.what.as_str())), Some((1, "five")));
    // [1, 0] and [5, 7].
    assert_eq!(counts(&of(Plan::Count(2), 0, false)), ([2, 2, 2, 1, 3, 1], [false, false]));
    assert_eq!(counts(&of(Plan::Count(5), 0, false)), counts(&all));
    assert_eq!(counts(&of(Plan::Only(4), 0, false)), ([1, 1, 1, 0, 4, 1], [false, false]));
    // Point 0 is before the launch.
    assert_eq!(counts(&of(Plan::All, 1, false)), ([4, 3, 3, 1, 0, 2], [true, false]));
    assert_eq!(counts(&of(Plan::Count(2), 1, false)).0[..5], [1, 1, 1, 0, 3]);
    assert_eq!(counts(&of(Plan::Only(0), 1, false)).0[..5], [1, 1, 1, 1, 3]);
    assert_eq!(counts(&of(Plan::All, 0, true)), ([5, 4, 0, 0, 0, 0], [false, true]));
    let beyond = BeyondEnd { asked: 5, changes: 4 };
    let watch = Watch { stop: &NO_STOP, progress: &|_, _| {} };
    let asked = judge_actual(&states, &order, &Rules::default(), &Regions::default(), Plan::Only(5), 0, &watch);
    assert_eq!(asked, Err(beyond));
}

#[test]
fn a_verdict_on_allowed_states_counts_what_its_budget_left_out() {
    let mut script = Script::default();
    script.launch(0).store(warp(0), 0, 5).store(warp(0), 128, 6).store(warp(0), 256, 7);
    let initial = initial();
    let order = order_of(&script, &initial);
    let condition = Condition::new("no five", no_five);
    let checks: [&dyn Check; 1] = [&condition];
    let of = |budget, launches, stop| {
        let allowed = Allowed::new(&order, &initial, Regions::default(), budget);
        let rules = Rules { checks: &checks, launches, keep: 2, ..Rules::default() };
        let stop = AtomicBool::new(stop);
        let verdict = judge_allowed(&allowed, &rules, &Watch { stop: &stop, progress: &|_, _| {} });
        assert_eq!(verdict.failures.len() as u64, verdict.failed.min(2));
        counts(&verdict)
    };
    // Before and after the launch 1 image, after the stores 2, 4 and 8, of which 1, 2 and 4 have the five.
    let all = Budget { torn: 0, random: 0, ..Budget::default() };
    assert_eq!(of(all, 0, false), ([16, 9, 9, 5, 0, 4], [true, false]));
    assert_eq!(of(all, 1, false), ([15, 8, 8, 4, 0, 4], [true, false]));
    assert_eq!(of(all, 2, false), ([0, 0, 0, 0, 0, 0], [true, false]));
    assert_eq!(of(all, 0, true), ([0, 0, 0, 0, 0, 0], [false, true]));
    // Just as many combinations as may be, and one more.
    assert_eq!(of(Budget { product: 8, ..all }, 0, false), of(all, 0, false));
    // All old, all new, each line alone and all but each: that is all of them, but not known to be.
    assert_eq!(of(Budget { product: 7, ..all }, 0, false), ([16, 9, 9, 5, 0, 4], [false, false]));
    // One line alone, and all but that.
    assert_eq!(of(Budget { product: 7, singles: 1, ..all }, 0, false).0[0], 12);
    assert_eq!(of(Budget { product: 7, random: 5, ..all }, 0, false).0[0], 21);
    // Torn lines at the three instants at which a line is open.
    assert_eq!(of(Budget { torn: 10, ..all }, 0, false).0[0], 46);
    // The instants after the first and the second store are no boundaries.
    assert_eq!(of(Budget { instants: 0, ..all }, 0, false), ([10, 9, 9, 5, 2, 4], [false, false]));
    let (some, flags) = of(Budget { instants: 1, ..all }, 0, false);
    assert_eq!((some[4], flags), (1, [false, false]));
    assert_eq!(of(Budget { boundaries: 0, ..all }, 0, false), ([6, 4, 4, 2, 3, 2], [false, false]));
}

#[test]
fn a_verdict_on_overtaking_counts_the_stores_that_its_budget_left_out() {
    let mut script = Script::default();
    script.store(warp(0), 0, 5).launch(0).store(warp(1), 128, 6).store(warp(2), 256, 7);
    let initial = initial();
    let order = order_of(&script, &initial);
    let overtaking = Overtaking::new(&order, &initial);
    let condition = Condition::new("no five", no_five);
    let checks: [&dyn Check; 1] = [&condition];
    let rules = Rules { checks: &checks, keep: 2, ..Rules::default() };
    let of = |count, launches, stop| {
        let stop = AtomicBool::new(stop);
        let rules = Rules { launches, ..rules };
        judge_overtaking(&overtaking, &rules, count, 1, &Watch { stop: &stop, progress: &|_, _| {} })
    };
    let all = of(3, 0, false);
    assert_eq!(counts(&all), ([3, 3, 3, 2, 0, 1], [true, false]));
    let Failure { level, point, choice, time, .. } = all.failures[0];
    assert_eq!((level, point, choice, time), (Level::Overtaking, 0, None, 1));
    assert_eq!(counts(&of(9, 0, false)), counts(&all));
    let some = counts(&of(2, 0, false));
    assert_eq!((&some.0[..3], some.0[4], some.1), (&[2, 2, 2][..], 1, [false, false]));
    // The first store is before the launch.
    assert_eq!(counts(&of(3, 1, false)), ([2, 2, 2, 2, 0, 0], [true, false]));
    assert_eq!(counts(&of(3, 0, true)), ([3, 3, 0, 0, 0, 0], [false, true]));
    // One by one; the performance of a store is none.
    let one = |store| judge_store(&overtaking, &rules, store).map(|verdict| counts(&verdict));
    assert_eq!(one(0), Some(([1, 1, 1, 0, 0, 1], [false, false])));
    assert_eq!(one(3), Some(([1, 1, 1, 1, 0, 0], [false, false])));
    assert_eq!(one(1), None);
    assert_eq!(one(1 << 20), None, "the journal has fewer facts");
    let again = judge_store(&overtaking, &rules, 0).unwrap();
    assert_eq!((&again.failures, again.conditions[0].violated), (&all.failures, 1));
}

#[test]
fn progress_is_told_every_32_images_and_at_the_end() {
    let mut script = Script::default();
    for nth in 0..69 {
        script.accepted(0, nth + 10);
    }
    let initial = initial();
    let order = order_of(&script, &initial);
    let states = CrashStates::new(&script.journal, &initial, Domain::Adr).unwrap();
    let told = std::sync::Mutex::new(Vec::new());
    let progress = |done, total| told.lock().unwrap().push((done, total));
    let watch = Watch { stop: &NO_STOP, progress: &progress };
    judge_actual(&states, &order, &Rules::default(), &Regions::default(), Plan::All, 0, &watch).unwrap();
    let mut told = told.into_inner().unwrap();
    told.sort_unstable();
    assert_eq!(told, [(32, 70), (64, 70), (70, 70)]);
}

#[test]
fn work_is_cut_into_at_most_64_chunks_that_cover_it() {
    assert_eq!((chunks(0).len(), chunks(64).len(), chunks(65).len(), chunks(129).len()), (0, 64, 33, 43));
    assert_eq!(chunks(2), [0..1, 1..2]);
    assert_eq!((chunks(65)[0].clone(), chunks(65)[32].clone()), (0..2, 64..65));
    assert_eq!(chunks(129).into_iter().flatten().collect::<Vec<_>>(), (0..129).collect::<Vec<_>>());
}

#[test]
fn the_first_place_of_each_hash_counts_and_a_launch_makes_another_image_of_the_same_bytes() {
    assert_eq!(first_of_each(vec![(7, 3), (2, 1), (7, 2), (9, 8), (2, 5)]), [1, 2, 8]);
    let hashes = [0, 1, 2].map(|begun| with_launches(5, begun));
    assert!(hashes[0] != hashes[1] && hashes[1] != hashes[2] && hashes[0] != hashes[2]);
    let [low, high] = [mix(u64::MAX), mix(0)].map(u128::from);
    assert_eq!((hashes[0], with_launches(6, 0)), (5 + (high << 64) + low, 6 + (high << 64) + low));
}

#[test]
fn a_check_that_does_not_bind_is_counted_and_no_failure() {
    struct Counted;
    impl Check for Counted {
        fn name(&self) -> &str {
            "counted"
        }

        fn judge(&self, _: &PmImage, recovered: &PmImage) -> Result<(), Violation> {
            no_five(recovered).map_err(Violation::in_words)
        }

        fn binds(&self) -> bool {
            false
        }
    }
    let mut script = Script::default();
    script.accepted(0, 5).accepted(0, 6);
    let initial = initial();
    let order = order_of(&script, &initial);
    let states = CrashStates::new(&script.journal, &initial, Domain::Adr).unwrap();
    let binding = Condition::new("binding", no_five);
    let checks: [&dyn Check; 2] = [&Counted, &binding];
    let rules = Rules { checks: &checks[..1], keep: 2, ..Rules::default() };
    let watch = Watch { stop: &NO_STOP, progress: &|_, _| {} };
    let of =
        |rules: &Rules<'_>| judge_actual(&states, &order, rules, &Regions::default(), Plan::All, 0, &watch).unwrap();
    let verdict = of(&rules);
    assert_eq!(counts(&verdict), ([3, 3, 3, 3, 0, 0], [true, false]));
    let count = &verdict.conditions[0];
    assert_eq!((count.held, count.violated, count.first.as_ref().map(|first| first.point)), (2, 1, Some(1)));
    let verdict = of(&Rules { checks: &checks, ..rules });
    assert_eq!(counts(&verdict), ([3, 3, 3, 2, 0, 1], [true, false]));
    assert_eq!(verdict.failures[0].property, Property::Check("binding".to_owned()));
    assert_eq!(
        format!("{:?}", Rules { checks: &checks, ..rules }),
        "Rules(undo false, recovery false, [\"counted\", \"binding\"], keep 2)"
    );
    assert_eq!(
        (format!("{binding:?}"), format!("{watch:?}")),
        ("Condition(binding)".into(), "Watch(stop false)".into())
    );
}
