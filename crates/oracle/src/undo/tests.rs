//! Tests of what undo logging promises, image by image.

use super::*;
use durawarp_persist::undo::{LogSlot, Transaction};

/// Data at 0 and 4, logs at 8 and 12, flag at 16 (a second launch: logs at 24 and 28, flag at `second`).
fn rule(second: Option<u64>) -> UndoRule {
    let slots = |log| vec![LogSlot { home: 0, log, bytes: 4 }, LogSlot { home: 4, log: log + 4, bytes: 4 }];
    let mut transactions = vec![Transaction { launch: 0, cta: Some(0), flag: 16, slots: slots(8) }];
    let words = |words: [u32; 2]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut expected = vec![Expected { old: words([1, 2]), new: words([10, 20]) }];
    if let Some(flag) = second {
        transactions.push(Transaction { launch: 1, cta: Some(0), flag, slots: slots(24) });
        expected.push(Expected { old: words([10, 20]), new: words([11, 21]) });
    }
    UndoRule::new(UndoLog { transactions }, expected, true)
}

/// Words at 0, 4, ...: data 2, log 2, flag, second flag, second log 2.
fn holds(rule: &UndoRule, words: [u32; 8]) -> bool {
    let survived = PmImage::new(0, words.iter().flat_map(|word| word.to_le_bytes()).collect());
    let mut recovered = survived.clone();
    let steps = rule.recover(&mut recovered).unwrap();
    let mut out = Vec::new();
    rule.judge(&survived, 2, &recovered, None, &mut out);
    rule.judge_cuts(&survived, &steps, &recovered, &mut out);
    out.is_empty()
}

#[test]
fn data_is_all_old_or_all_new_after_recovery() {
    let rule = rule(None);
    let check = |words: [u32; 5], expected| {
        let [a, b, c, d, e] = words;
        assert_eq!(holds(&rule, [a, b, c, d, e, 0, 0, 0]), expected, "{words:?}");
    };
    check([1, 2, 0, 0, IDLE], true);
    check([1, 2, 1, 0, IDLE], true);
    check([1, 20, 1, 2, IDLE], false);
    check([1, 20, 1, 2, IN_TX], true);
    check([10, 20, 1, 0, IN_TX], false);
    check([10, 20, 1, 2, COMPLETE], true);
    check([10, 2, 1, 2, COMPLETE], false);
    check([10, 20, 1, 2, 7], false);
}

#[test]
fn an_element_counts_from_its_first_launch_on() {
    let rule = rule(None);
    let image = PmImage::new(0, vec![0; 64]);
    let judge = |begun| {
        let mut out = Vec::new();
        rule.judge(&image, begun, &image, None, &mut out);
        out.len()
    };
    assert_eq!((judge(0), judge(1)), (0, 1));
}

#[test]
fn a_later_launch_builds_on_the_latest_complete_one() {
    let rule = rule(Some(20));
    let check = |data: [u32; 2], flags: [u32; 2], expected| {
        let words = [data[0], data[1], 1, 2, flags[0], flags[1], 10, 20];
        assert_eq!(holds(&rule, words), expected, "{words:?}");
    };
    check([10, 20], [COMPLETE, IDLE], true);
    check([11, 20], [COMPLETE, IDLE], false);
    check([11, 20], [COMPLETE, IN_TX], true);
    check([11, 21], [COMPLETE, COMPLETE], true);
    check([10, 20], [COMPLETE, COMPLETE], false);
    // The first is rolled back after the second, over its new values.
    check([11, 21], [IN_TX, COMPLETE], false);
}

#[test]
fn a_flag_that_two_launches_share_allows_what_agrees_with_the_data() {
    let rule = rule(Some(16));
    let check = |data: [u32; 2], flag: u32, expected| {
        let words = [data[0], data[1], 1, 2, flag, 0, 10, 20];
        assert_eq!(holds(&rule, words), expected, "{words:?}");
    };
    check([1, 2], IDLE, true);
    check([10, 20], IDLE, true);
    check([10, 20], COMPLETE, true);
    check([11, 21], COMPLETE, true);
    check([1, 2], COMPLETE, false);
    check([10, 21], COMPLETE, false);
}

#[test]
fn slots_that_transactions_of_one_launch_share_are_reported() {
    let transaction = |launch, cta, home, log| Transaction {
        launch,
        cta: Some(cta),
        flag: 100 + u64::from(cta),
        slots: vec![LogSlot { home, log, bytes: 4 }],
    };
    let of = |transactions: Vec<Transaction>| {
        let expected = vec![Expected { old: vec![0; 4], new: vec![0; 4] }; transactions.len()];
        let found = UndoRule::new(UndoLog { transactions }, expected, false).overlaps();
        found.into_iter().map(|failure| failure.what).collect::<Vec<_>>()
    };
    assert_eq!(of(vec![transaction(0, 0, 0, 8), transaction(0, 1, 4, 12), transaction(1, 0, 0, 8)]), [""; 0]);
    let found = of(vec![transaction(0, 0, 0, 8), transaction(0, 1, 4, 11)]);
    assert_eq!(found, ["log slots of CTA 0 of launch 0 and of CTA 1 of launch 0 overlap at 0xb"]);
    let found = of(vec![transaction(0, 0, 0, 8), transaction(0, 1, 2, 12)]);
    assert_eq!(found, ["elements of CTA 0 of launch 0 and of CTA 1 of launch 0 overlap at 0x2"]);
}

#[test]
fn slots_that_overlap_in_part_across_launches_are_cut() {
    let transaction = |launch, home, log, bytes| Transaction {
        launch,
        cta: None,
        flag: 64 + u64::from(launch) * 4,
        slots: vec![LogSlot { home, log, bytes }],
    };
    let log = UndoLog { transactions: vec![transaction(0, 0, 16, 8), transaction(1, 4, 32, 8)] };
    let expected = vec![
        Expected { old: vec![0; 8], new: vec![1; 8] },
        Expected { old: vec![1, 1, 1, 1, 0, 0, 0, 0], new: vec![2; 8] },
    ];
    let rule = UndoRule::new(log, expected, false);
    let found: Vec<_> = rule.segments.iter().map(|s| (s.address, s.bytes, s.covers.len())).collect();
    assert_eq!(found, [(0, 4, 1), (4, 4, 2), (8, 4, 1)]);
    let mut image = PmImage::new(0, vec![0; 80]);
    image.write(0, &[1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2]).unwrap();
    image.write(64, &[2, 0, 0, 0, 2, 0, 0, 0]).unwrap();
    let mut out = Vec::new();
    rule.judge(&image, 2, &image, None, &mut out);
    assert_eq!(out, []);
}

#[test]
fn recovery_that_clears_the_flag_first_cannot_be_cut_off() {
    let rule = rule(None);
    let words: Vec<u8> = [10u32, 20, 1, 2, IN_TX].iter().flat_map(|word| word.to_le_bytes()).collect();
    let survived = PmImage::new(0, words);
    let mut recovered = survived.clone();
    let mut steps = rule.recover(&mut recovered).unwrap();
    let judge = |steps: &[RecoveryStep]| {
        let mut out = Vec::new();
        rule.judge_cuts(&survived, steps, &recovered, &mut out);
        out.into_iter().map(|finding| finding.property).collect::<Vec<_>>()
    };
    assert_eq!(judge(&steps), []);
    steps.rotate_right(1);
    assert_eq!(judge(&steps), [Property::Idempotent]);
}

fn image(words: &[u32]) -> PmImage {
    PmImage::new(0, words.iter().flat_map(|word| word.to_le_bytes()).collect())
}

/// The findings on an image after recovery.
fn findings(rule: &UndoRule, survived: &[u32], recovered: &[u32]) -> Vec<String> {
    let mut out = Vec::new();
    rule.judge(&image(survived), 2, &image(recovered), None, &mut out);
    assert!(out.iter().all(|finding| finding.property == Property::Undo && finding.witness.is_none()));
    let at = |value: &WrongValue| format!(" at {:#x}", value.bytes.as_ref().unwrap().address);
    let words = |finding: Finding| finding.what + &finding.values.iter().map(at).collect::<String>();
    out.into_iter().map(words).collect()
}

#[test]
fn a_wrong_element_is_told_with_the_reason_that_the_flag_gives() {
    let rule = rule(None);
    let check = |survived: [u32; 5], at: &str, why: &str| {
        let mut recovered = image(&survived);
        rule.recover(&mut recovered).unwrap();
        let words: Vec<u32> = (0..5).map(|word| recovered.word(word * 4).unwrap()).collect();
        let what = format!("CTA 0 of launch 0: an element is wrong after recovery: {why} at {at}");
        assert_eq!(findings(&rule, &survived, &words), [what]);
    };
    check([1, 20, 1, 2, IDLE], "0x4", "data is durable and the flag is not");
    check([10, 20, 1, 2, IDLE], "0x0", "data is durable and the flag is not (1 more elements are wrong)");
    check([10, 20, 1, 0, IN_TX], "0x4", "the flag is durable and the log is not");
    check([10, 2, 1, 2, COMPLETE], "0x4", "the flag says complete and the data is not durable");
    // Recovery that forgets the data.
    let why = "the log is durable, but rolling it back does not give the expected bytes";
    let what = format!("CTA 0 of launch 0: an element is wrong after recovery: {why} at 0x4");
    assert_eq!(findings(&rule, &[10, 20, 1, 2, IN_TX], &[1, 20, 1, 2, IDLE]), [what]);
}

#[test]
fn a_flag_that_is_no_flag_and_one_that_is_outside_are_told() {
    let rule = rule(None);
    assert_eq!(findings(&rule, &[1, 2, 1, 2, 7], &[1, 2, 1, 2, 7]), ["the flag at 0x10 is 7 after recovery"]);
    let outside = "4 bytes at 0x10 are not all in persistent memory";
    assert_eq!(findings(&rule, &[1, 2, 1, 2], &[1, 2, 1, 2]), [outside]);
    assert_eq!(rule.recover(&mut image(&[1, 2, 1, 2])), Err(outside.to_owned()));
}

#[test]
fn a_transaction_of_a_launch_is_called_after_it() {
    let slots = vec![LogSlot { home: 0, log: 8, bytes: 4 }];
    let log = UndoLog { transactions: vec![Transaction { launch: 1, cta: None, flag: 16, slots }] };
    let rule = UndoRule::new(log, vec![Expected { old: vec![1, 0, 0, 0], new: vec![9; 4] }], false);
    let why = "an element is wrong after recovery: data is durable and the flag is not at 0x0";
    let words = [2, 0, 1, 0, IDLE];
    assert_eq!(findings(&rule, &words, &words), [format!("launch 1: {why}")]);
    assert_eq!(rule.recover(&mut image(&[1, 0, 1, 0, IN_TX])), Ok(Vec::new()), "steps are not needed");
}

#[test]
fn one_overlap_of_either_kind_is_reported_of_each_launch() {
    let transaction = |launch, cta, log| Transaction {
        launch,
        cta: Some(cta),
        flag: 100 + u64::from(cta),
        slots: vec![LogSlot { home: u64::from(cta) * 8, log, bytes: 4 }],
    };
    // Three in launch 0 and two in launch 1 share a log, and none an element.
    let transactions: Vec<_> =
        [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)].map(|(launch, cta)| transaction(launch, cta, 64)).into();
    let expected = vec![Expected { old: vec![0; 4], new: vec![0; 4] }; 6];
    let found = UndoRule::new(UndoLog { transactions }, expected, false).overlaps();
    let whats: Vec<&str> = found.iter().map(|failure| failure.what.as_str()).collect();
    let of = |launch| format!("log slots of CTA 0 of launch {launch} and of CTA 1 of launch {launch} overlap at 0x40");
    assert_eq!(whats, [of(0), of(1)]);
    assert!(found.iter().all(|failure| (failure.level, failure.point, failure.time) == (Level::Program, 0, 0)));
    assert!(found.iter().all(|failure| failure.property == Property::Disjoint));
}
