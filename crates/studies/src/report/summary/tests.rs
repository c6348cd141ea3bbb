//! A run by hand on one screen, cell by cell.

use serde_json::json;

use super::*;
use crate::report::console::cells;
use durawarp_simulation::outcome::sample::{cycles, sample, set, under};
use durawarp_simulation::outcome::{Backlog, Launch, Parameter, Verification};

#[test]
fn what_a_program_leaves_to_be_written_is_told_where_it_takes_time() {
    let mut outcome = sample();
    let line = |outcome: &Outcome| {
        let told = cells(&summary(outcome)).into_iter().find(|line| line.starts_with("left at the end"));
        told.map(|line| line.replace("left at the end|", ""))
    };
    let mut left = Backlog { gated_stores: 0, gated_entries: 0, queued_writes: 12, kept_writes: 12, drain: cycles(0) };
    outcome.backlog = Some(left);
    assert_eq!(line(&outcome), None, "nobody waits for these");
    (left.queued_writes, left.kept_writes, left.drain) = (20, 0, cycles(500));
    outcome.backlog = Some(left);
    let written = "written 357.1 ns later (5.0 % of the run's time)";
    assert_eq!(line(&outcome), Some(format!("20 writes in write-pending queues; {written}")));
    (left.gated_stores, left.gated_entries, left.kept_writes) = (1_234, 2_468, 3);
    outcome.backlog = Some(left);
    let gated = "1234 gated stores in 2468 entries, 20 writes in write-pending queues";
    assert_eq!(line(&outcome), Some(format!("{gated}; {written}, but for 3 that stay there")));
}

#[test]
fn what_was_counted_after_the_last_launch_is_what_is_left() {
    let mut outcome = sample();
    let after = |outcome: &Outcome| {
        let lines = cells(&summary(outcome));
        lines.into_iter().find_map(|line| Some(line.split_once("after the last|")?.1.split('|').next()?.to_owned()))
    };
    assert_eq!(after(&outcome), None);
    outcome.launches[0].counters.insert("sm.warp_instructions".to_owned(), 24_000);
    assert_eq!(after(&outcome).as_deref(), Some("1000"));
    // Whoever has an outcome in Python can change it.
    outcome.launches[0].counters.insert("sm.warp_instructions".to_owned(), u64::MAX);
    assert_eq!(after(&outcome).as_deref(), Some("0"));
}

#[test]
fn a_run_is_told_in_full() {
    let text = summary(&sample());
    assert_eq!(
        cells(&text),
        [
            "nw (ci, MODE=fast N=64) on small, scheme base",
            "cycles|10000 at 1400 MHz",
            "simulated time|7.143 µs",
            "instructions|25000 warp, 777000 thread",
            "IPC|2.50 warp (20.8 % of 12 peak), 77.7 thread",
            "L1|4000 loads, 72.5 % hit; 2307 stores; 42 loads past it",
            "L2|2000 reads, 24.5 % hit; 1600 writes, 63.0 % hit; 77 atomics",
            "DRAM|1200000 B read, 228571 B written, 200.0 GB/s",
            "NVM|300000 B read, 57143 B written, 50.0 GB/s",
            "persistency|603 stores (240 of logs), 351 write-backs, 94 fences; 412 lines persisted",
            "memory buses|62.5 % of 400.0 GB/s peak",
            "",
            "Launches",
            "kernel|grid|block|CTAs/SM|limited by|start cycle|cycles",
            "fill|6|32x4|2|registers|100|1500",
            "nw|5x3|8x4x2|4|registers|1700|8200",
            "",
            "Warp slots",
            "resident|39.1 %|of all warp slots; of these:",
            "issued|5.2 %|##",
            "waiting for memory data|29.8 %|############",
            "waiting for a result|12.0 %|#####",
            "load-store unit full|7.0 %|###",
            "unit busy|6.2 %|##",
            "ready, not selected|9.0 %|####",
            "at a barrier|4.0 %|##",
            "at a fence|8.4 %|###",
            "waiting for persists|10.6 %|####",
            "exited, draining|6.4 %|###",
            "",
            "Persists",
            "count|mean ns|p50|p99|max|share",
            "lsu|400|75.5|60|95.5|120|30.0 %|a place",
            "media|400|176|150|420.5|1130|70.0 %|its cells",
            "all|400|251.5|210|515.5|1234|100.0 %|from issue to acknowledgement",
            "fences|90|300|250|700.5|800|warps that had to wait until their persists were durable",
            "boundaries|12|501|450|910.5|950|ends of CTAs and kernels, for the write-back of the L2",
            "",
            "Result",
            "end|finished",
            "result check|passed",
            "memory digest|d2",
            "digest|d1",
            "",
            "Simulation",
            "wall time|500.000 ms",
            "speed|20.00 kcycles/s, 50.00 kwarp instructions/s",
            "threads|4, 13.7 % of their time waiting",
            "engine|84000 events in 700 rounds (120 a round), parallelism bound 5.3",
            "functional run|40.000 ms; the simulation took 12.5 times as long",
            "",
            "1 parameter has no source of its own: `durawarp config check small` tells which",
        ]
    );
}

/// The rows of a table whose first cell is this.
fn row(text: &str, name: &str) -> String {
    let found = text.lines().find(|line| line.trim_start().starts_with(name));
    found.unwrap_or_else(|| panic!("{name} in {text}")).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn persistency_tells_logs_and_those_left_out() {
    let with = |counters: &[(&str, u64)]| {
        let mut outcome = sample();
        counters.iter().for_each(|(name, value)| set(&mut outcome, "sm", name, *value));
        lines(&facts(&outcome), 1)
    };
    let head = "persistency 603 stores";
    let rest = "351 write-backs, 94 fences; 412 lines persisted";
    assert_eq!(row(&with(&[("pm_log_stores", 0)]), "persistency"), format!("{head}, {rest}"));
    assert_eq!(
        row(&with(&[("pm_log_stores_dropped", 77)]), "persistency"),
        format!("{head} (240 of logs, 77 of these left out by the scheme), {rest}")
    );
    let none = [("pm_stores", 0), ("pm_write_backs", 0), ("pm_fences", 0)];
    assert!(!with(&none).contains("persistency"));
    for one in 0..3 {
        let mut some = none;
        some[one].1 = 9;
        assert!(with(&some).contains("persistency"), "{some:?}");
    }
}

#[test]
fn beyond_eight_launches_are_summed_up() {
    let mut outcome = sample();
    let launch = |nth: u64| Launch { grid: [2, 3, 4], length: cycles(1000 + nth), ..outcome.launches[0].clone() };
    outcome.launches = (1..=10).map(launch).collect();
    let text = lines(&launches(&outcome), 0);
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(rows.len(), 1 + 8 + 1);
    assert_eq!(row(rows[8], "fill"), "fill 2x3x4 32x4 2 registers 100 1008");
    assert_eq!(row(rows[9], "2 more"), "2 more 2019");
    outcome.launches.truncate(8);
    assert_eq!(lines(&launches(&outcome), 0).lines().count(), 1 + 8);
}

#[test]
fn launches_tell_what_they_left_the_l1_where_it_is_one_with_shared_memory() {
    let mut outcome = sample();
    outcome.launches[0].l1_kb = Some(112);
    outcome.launches[0].shared_kb = Some(16);
    let text = lines(&launches(&outcome), 0);
    assert_eq!(row(&text, "kernel"), "kernel grid block CTAs/SM limited by L1 KiB shared KiB start cycle cycles");
    assert_eq!(row(&text, "fill"), "fill 6 32x4 2 registers 112 16 100 1500");
}

#[test]
fn every_end_has_its_words() {
    let told = |end: End| lines(&result(&Outcome { end, ..sample() }), 0);
    let waits = || vec!["sm 0: memory".to_owned(), "l2 3: credits".to_owned()];
    let first = |text: String| text.lines().next().unwrap().trim_start().to_owned();
    assert!(told(End::Deadlock { waits: waits() }).contains("DEADLOCK\n"));
    assert!(told(End::Deadlock { waits: waits() }).contains("l2 3: credits"));
    let cut = "end            cut: the cycle limit was reached; figures are of the part that ran";
    assert_eq!(first(told(End::Cut { waits: Vec::new() })), cut);
    assert!(!told(End::Cut { waits: Vec::new() }).contains("longest"));
    assert!(told(End::Cut { waits: waits() }).contains("waited longest:\n"));
    assert_eq!(first(told(End::Stopped)), "end            stopped; figures are of the part that ran");
    assert_eq!(first(told(End::Failed { error: "x:3".to_owned() })), "end            FAILED: x:3");
    assert_eq!(first(told(End::Panicked { message: "sm".to_owned() })), "end            SIMULATOR DEFECT: sm");
}

#[test]
fn the_check_of_the_result_is_told_with_what_was_compared() {
    let told = |verification: Option<Verification>| {
        row(&lines(&result(&Outcome { verification, ..sample() }), 0), "result check")
    };
    assert_eq!(told(None), "result check not done: the run did not finish");
    let checks = json!({ "checks": [
        { "name": "C", "outcome": "passed", "compared": 262_144 },
        { "name": "D", "outcome": "skipped", "compared": 7 },
        { "name": "E", "outcome": "passed" },
    ] });
    let of = |passed| Verification { passed, checks: checks.clone(), failures: vec!["C[3] is 7".to_owned()] };
    assert_eq!(told(Some(of(true))), "result check passed (elements compared: C: 262144, D: skipped, E)");
    assert_eq!(told(Some(of(false))), "result check FAILED");
    let failed = lines(&result(&Outcome { verification: Some(of(false)), ..sample() }), 0);
    assert!(failed.contains("C[3] is 7"));
}

#[test]
fn a_run_says_which_program_it_had() {
    let mut outcome = sample();
    outcome.workload["instrument"] =
        json!({ "mode": "cta_undo", "flag_barrier": "safe", "loop_log": false, "logs": true });
    let all = cells(&summary(&outcome));
    let at = all.iter().position(|row| row.starts_with("persistency|")).unwrap();
    assert_eq!(all[at - 1], "program|cta_undo, the first update logged, flag barrier safe");
}

#[test]
fn what_is_not_there_is_not_told() {
    let mut outcome = under("eadr", 10_000);
    outcome.launches.clear();
    outcome.persists = None;
    outcome.machine.parameters.clear();
    outcome.host.threads = 1;
    outcome.host.functional_s = 0.0;
    outcome.workload = json!({ "workload": "nw", "profile": "ci" });
    let text = summary(&outcome);
    assert!(text.starts_with("nw (ci) on small, scheme eadr\n"), "{text}");
    for absent in ["Launches", "Persists", "Validity", "no source", "functional", "waiting\n"] {
        assert!(!text.contains(absent), "{absent}");
    }
}

#[test]
fn caveats_are_told_except_those_that_have_a_list_of_their_own() {
    let mut outcome = sample();
    let caveat = |kind, text: &str| Caveat { kind, text: text.to_owned() };
    outcome.validity = vec![caveat(Kind::Unsourced, "one"), caveat(Kind::Cap, "two"), caveat(Kind::Saturated, "three")];
    let text = summary(&outcome);
    assert!(text.contains("\nValidity\n  cap: two\n  saturated: three\n"), "{text}");
    assert!(!text.contains("unsourced: one"));
}

#[test]
fn parameters_without_a_source_are_one_line_and_those_that_were_set_another() {
    let mut outcome = sample();
    let set = Parameter { value: json!(256), source: "user: --set".to_owned() };
    outcome.machine.parameters.insert("l2.slice_kb".to_owned(), set);
    let text = summary(&outcome);
    let told = "\n2 parameters have no source of their own: `durawarp config check small` lists them\n  set here: \
                l2.slice_kb=256\n";
    assert!(text.ends_with(told), "{text}");
}

#[test]
fn lines_are_wrapped_at_a_hundred_columns() {
    let words = |n: usize| wrapped(std::iter::repeat_n("123456789".to_owned(), n));
    assert_eq!(words(9).lines().map(str::len).collect::<Vec<_>>(), [91]);
    assert_eq!(words(10).lines().map(str::len).collect::<Vec<_>>(), [101]);
    assert_eq!(words(11).lines().map(str::len).collect::<Vec<_>>(), [101, 11]);
}
