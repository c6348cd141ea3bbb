//! A crash test by hand, as text.

use super::*;
use crate::report::console::cells;
use durawarp_oracle::verdict::{Failure, Persist, Verdict};
use durawarp_persist::vocab::Domain;
use durawarp_simulation::crash::conditions::Condition;
use durawarp_simulation::crash::{JudgedLevel, Judgement, Levels, Promise};
use durawarp_simulation::outcome::sample::sample;

fn verdict(level: JudgedLevel, [points, distinct, passed, failed]: [u64; 4]) -> Judgement {
    let verdict = Verdict { points, distinct, judged: distinct, passed, failed, ..Verdict::default() };
    Judgement { level, promises: Vec::new(), verdict, found: Vec::new() }
}

fn with(judgement: Judgement, change: impl FnOnce(&mut Verdict)) -> Judgement {
    let mut judgement = judgement;
    change(&mut judgement.verdict);
    judgement
}

fn persist(role: &str, [launch, cta, warp]: [u32; 3]) -> Persist {
    let role = role.to_owned();
    Persist { role, sm: 9, launch, cta, warp: warp as u16, pc: 11, line: 4096, address: 4100 }
}

fn by_kernel(role: &str, place: [u32; 3]) -> Placed {
    Placed {
        function: None,
        persist: persist(role, place),
        kernel: Some("nw".to_owned()),
        channel: None,
        source: Some(("nw.ptx".to_owned(), 37)),
        buffer: Some(("table".to_owned(), 516)),
    }
}

fn found(level: Level, choice: Option<u64>, core_cycle: u64) -> Found {
    let what = "the log is not there".to_owned();
    let (property, values) = (Property::Undo, Vec::new());
    let failure = Failure { property, level, point: 17, choice, time: 5, what, values, witness: None };
    Found { failure, missing: None, present: None, core_cycle, server: None }
}

fn report() -> CrashReport {
    let judgements = vec![
        with(verdict(JudgedLevel::History, [10, 9, 8, 0]), |v| v.exhaustive = true),
        with(verdict(JudgedLevel::Actual, [1_000, 900, 880, 20]), |v| v.left_out = 55),
        verdict(JudgedLevel::Allowed, [2_000, 1_900, 1_890, 0]),
        with(verdict(JudgedLevel::Overtaking, [30, 29, 12, 0]), |v| (v.stopped, v.judged) = (true, 13)),
    ];
    CrashReport {
        outcome: sample(),
        domain: Domain::Adr,
        recovery: "the undo log".to_owned(),
        promises: vec![Promise::RecoveryEnds, Promise::RecoveryAgain],
        unjudged: None,
        transactions: 1_234,
        image_bytes: 65_536,
        changes: 4_321,
        regions: Some(2_345),
        seed: 99,
        levels: Levels { judgements, channels: None },
        output: None,
        conditions: Vec::new(),
        wall_s: [1.5, 0.25],
    }
}

fn replay(state: &str) -> String {
    format!("try {state}")
}

fn told(report: &CrashReport) -> String {
    crash_summary(report, &replay)
}

#[test]
fn a_crash_test_is_told_in_full() {
    let text = told(&report());
    assert_eq!(
        cells(&text),
        [
            "nw (ci) on small, scheme base, domain adr, recovery by the undo log",
            "10000 cycles, 4321 changes of 65536 B of persistent memory, 1234 transactions, 2345 regions",
            "",
            "promised",
            "recovery comes to its end without a fault",
            "recovery cut off anywhere can start again (P8)",
            "",
            "judged",
            "states|distinct|consistent|failures",
            "history|10|9|8|0|all there are|ok",
            "level A, actual states|1000|900|880|20|a choice, 55 left out|FAILED",
            "level B, allowed states|2000|1900|1890|0|a choice of combinations|ok",
            "level C, overtaking warps|30|29|12|0|stopped after 13|ok",
            "level B: what this run's order of durability leaves open; a slower memory or a smaller persistence \
             domain leaves open more",
            "",
            "simulated in 1.500 s, judged in 250.000 ms, seed 99",
        ]
    );
    let with_nothing = CrashReport { unjudged: Some("there is none".to_owned()), ..report() };
    let text = told(&with_nothing);
    assert!(text.contains("\nNOTHING WAS JUDGED: there is none\n") && text.contains("nothing to judge"));
    let plain = CrashReport { transactions: 0, regions: None, ..report() };
    assert!(told(&plain).contains("4321 changes of 65536 B of persistent memory\n"));
}

#[test]
fn a_failure_is_told_with_the_two_persists_and_how_to_see_it_again() {
    let mut report = report();
    let first = found(Level::Actual, None, 7_654);
    let (missing, present) = (by_kernel("log", [1, 2, 3]), by_kernel("data", [1, 2, 4]));
    report.levels.judgements[1].found = vec![Found { missing: Some(missing), present: Some(present), ..first }];
    let text = told(&report);
    let lines: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("first failure")).collect();
    assert_eq!(
        lines,
        [
            "first failure of 20, at cycle 7654 (P3)",
            "  the log is not there",
            "  not durable: log at table+516, by kernel `nw` (nw.ptx:37), launch 1, CTA 2, warp 3, SM 9",
            "  durable:     data at table+516, by kernel `nw` (nw.ptx:37), launch 1, CTA 2, warp 4, SM 9",
            "  their order is one between warps of a CTA: a barrier's behind a fence",
            "  seen in this run; judge just this state: try A:17",
        ]
    );
}

#[test]
fn a_wrong_value_is_told_as_an_element_or_as_bytes_where_no_buffer_is_known() {
    let bytes = |expected| Some(WrongBytes { address: 0x1004, found: vec![7, 0], expected });
    let element = |ty: Option<&str>, given: &[&str]| WrongElement {
        name: "node.key[3]".to_owned(),
        ty: ty.map(str::to_owned),
        found: "7".to_owned(),
        expected: "at least 9".to_owned(),
        given: given.iter().map(|&text| text.to_owned()).collect(),
    };
    let of = |bytes, element| wrong(&WrongValue { bytes, element });
    let told = "node.key[3] (u16): found 7, expected at least 9";
    assert_eq!(of(bytes(None), Some(element(Some("u16"), &[]))), told);
    let given = ["flag[0] (u32) = 1", "flag[1] (u32) = 2"];
    let with = "node.key[3]: found 7, expected at least 9, given flag[0] (u32) = 1, flag[1] (u32) = 2";
    assert_eq!(of(None, Some(element(None, &given))), with);
    assert_eq!(of(bytes(None), None), "2 bytes at 0x1004: found 07 00");
    assert_eq!(of(bytes(Some(vec![8, 0])), None), "2 bytes at 0x1004: found 07 00, expected 08 00");

    let mut report = report();
    let mut first = found(Level::Actual, None, 7_654);
    first.failure.values = vec![WrongValue { bytes: None, element: Some(element(Some("u16"), &[])) }];
    report.levels.judgements[1].found = vec![first];
    assert!(told_lines(&report).contains(&format!("  {told}")));
}

fn told_lines(report: &CrashReport) -> Vec<String> {
    told(report).lines().map(str::to_owned).collect()
}

#[test]
fn the_order_of_two_persists_is_one_of_the_least_that_holds_both() {
    let of = |one: [u32; 3]| scope(&by_kernel("log", one), &by_kernel("log", [1, 2, 3]));
    assert_eq!(of([1, 2, 3]), "within a warp: a fence's");
    assert_eq!(of([1, 2, 4]), "between warps of a CTA: a barrier's behind a fence");
    assert_eq!(of([1, 3, 3]), "between CTAs of a launch");
    assert_eq!(of([2, 2, 3]), "between launches or with the host");
    let host = Placed { kernel: None, ..by_kernel("log", [1, 2, 3]) };
    assert_eq!(scope(&host, &by_kernel("log", [1, 2, 3])), "between launches or with the host");
    assert_eq!(placed(&host), "log at table+516, by the host");
    let bare = Placed { source: None, buffer: None, ..by_kernel("flag", [1, 2, 3]) };
    assert_eq!(placed(&bare), "flag at 0x1004, by kernel `nw`, launch 1, CTA 2, warp 3");
}

#[test]
fn a_state_has_the_name_of_its_level() {
    let name = |level, choice| state_name(&found(level, choice, 1));
    assert_eq!(name(Level::Actual, None), "A:17");
    assert_eq!(name(Level::Allowed, Some(5)), "B:17:5");
    assert_eq!(name(Level::Overtaking, None), "C:17");
    assert_eq!(name(Level::Program, None), "A:17");
}

#[test]
fn a_condition_is_told_with_what_the_manifest_expects() {
    let told = |expected, as_expected, violated: [u64; 3], first: Option<Found>| {
        let condition = Condition {
            name: "sum".to_owned(),
            holds: "a == b".to_owned(),
            on: "recovered",
            source: Some("section 4".to_owned()),
            expected,
            held: [1_000, 200, 30],
            violated,
            first,
            as_expected,
        };
        conditions(&CrashReport { conditions: vec![condition], ..report() }, &replay)
    };
    let none = [0; 3];
    let first = || Some(found(Level::Overtaking, None, 8_765));
    let verdict = |text: String| text.lines().next().unwrap().rsplit(": ").next().unwrap().to_owned();
    assert_eq!(
        told(Expected::Violated, true, [4, 5, 6], first()),
        "  sum: held on 1230 of 1245 images: violated, as the manifest says\n    recovered image: a == b\n    \
         section 4\n    first at cycle 8765: try C:17\n      the log is not there\n"
    );
    assert_eq!(verdict(told(Expected::Holds, true, none, None)), "ok");
    assert_eq!(verdict(told(Expected::Holds, false, [0, 0, 7], None)), "FAILED");
    assert_eq!(verdict(told(Expected::Violated, true, none, None)), "violated by none so far");
    assert_eq!(verdict(told(Expected::Violated, false, none, None)), "the manifest says that it is violated");
    assert_eq!(verdict(told(Expected::Nothing, true, none, None)), "not promised here");
    assert!(!told(Expected::Holds, false, [0, 0, 7], first()).contains("first at"), "it is told with the failures");
}
