//! Decisions by hand, cell by cell.

use std::collections::BTreeMap;

use super::*;
use crate::report::console::cells;
use durawarp_simulation::outcome::sample::under;

fn period(complete: bool) -> Period {
    Period {
        kernel: "nw".to_owned(),
        launch: 3,
        number: 5,
        complete,
        threshold_logs: 10_007,
        logs: 10_011,
        launch_logs: 60_000,
        begin_ticks: 7_000,
        end_ticks: 9_000,
        temporal_logs: 640,
        non_temporal_logs: 0,
        requests: 200,
        wait_cycles: 54_600,
        l1: Locality { t_all: 21, t_log: 22, s_all: 23, s_log: 24 },
        l2: Locality { t_all: 31, t_log: 32, s_all: 33, s_log: 34 },
        saturated: 41,
        spills: 42,
        refills: 43,
        path: "temporal".to_owned(),
        reason: "b".to_owned(),
        next_path: "non_temporal".to_owned(),
    }
}

fn selection(periods: Vec<Period>) -> Selection {
    Selection {
        periods,
        complete: 8,
        changes: 6,
        reasons: BTreeMap::from([("b".to_owned(), 5), ("f".to_owned(), 3)]),
        temporal_logs: 3_000,
        non_temporal_logs: 1_000,
        dropped_write_backs: 910,
        reservation_bytes: 7_565,
    }
}

#[test]
fn periods_and_their_sums_are_told() {
    let mut outcome = under("agpm", 10_000);
    let selection = selection(vec![period(true), Period { launch: 4, requests: 0, ..period(false) }]);
    outcome.scheme_report = Some(serde_json::to_value(&selection).unwrap());
    let Explanation { text, data } = explain(&outcome, &[]).unwrap();
    let (table, told) = text.split_once("\n\n  kernel, launch ").unwrap();
    assert_eq!(told.lines().count(), LEGEND.len() + REASONS.len());
    assert!(
        told.contains("  reason b     in the L1 both, of log updates too, whose share is strong: past the caches\n")
    );
    assert_eq!(
        cells(table),
        [
            "agpm on small",
            concat!(
                "kernel|launch|period|threshold|logs|CWPPR|l1 t all|t log|s all|s log|l2 t all|t log|s all|s ",
                "log|reason|path|next"
            ),
            "nw|3|5|10007|10011|273|21|22|23|24|31|32|33|34|b|T|NT",
            "nw|4|5|10007|10011|0|21|22|23|24|31|32|33|34|(b)|T|NT",
            "",
            "",
            "3000 log updates through the caches, 1000 past them (25.0 %); 910 write-backs dropped",
            "8 complete periods, 6 of them changed the way; reasons: b 5, f 3",
            "7565 bytes of entries to the reservation buffer and back",
        ]
    );
    assert_eq!(data, outcome.scheme_report.unwrap());
}

#[test]
fn forty_periods_are_shown_and_the_rest_counted() {
    let outcome = under("agpm", 10_000);
    let rows = |n: usize| {
        let text = text(&outcome, &selection(vec![period(true); n]));
        (text.matches("10011").count(), text.contains("  ... and 2 more periods\n"), text.contains("more"))
    };
    assert_eq!([rows(40), rows(42)], [(40, false, false), (40, true, true)]);
}

#[test]
fn reasons_are_told_in_a_few_characters() {
    assert_eq!(reasons(&selection(Vec::new())), "b 5, f 3");
    assert_eq!(reasons(&Selection::default()), "-");
    let none = text(&under("agpm", 10_000), &Selection::default());
    assert!(none.contains("0 complete periods, 0 of them changed the way; reasons: none, no period was complete\n"));
}

#[test]
fn a_period_is_a_step_of_its_kernel_with_its_way_and_a_launch_begins_a_line() {
    let first = Period { number: 0, path: "non_temporal".to_owned(), ..period(true) };
    let next = Period { number: 1, threshold_logs: 9_006, ..period(true) };
    let other = Period { kernel: "copy".to_owned(), number: 0, requests: 0, ..period(false) };
    let drawn = steps(&selection(vec![first, next, other]));
    let begins: Vec<bool> = drawn.steps.iter().map(|step| step.begins).collect();
    assert_eq!(begins, [true, false, true]);
    let expected = "period,series,way,threshold (log updates),CWPPR (core cycles)\n\
        0,nw,past the caches,10007.0,273.0\n1,nw,through the caches,9006.0,273.0\n2,copy,through the caches,10007.0,\n";
    assert_eq!(drawn.csv().unwrap(), expected);
    let svg = drawn.svg().unwrap();
    for words in
        ["nw, period 0: past the caches", "nw, period 1: through the caches", "copy, period 2: through the caches"]
    {
        assert!(svg.contains(words), "no {words} in {svg}");
    }
    // A kernel's two steps of a panel are one line; the last has no CWPPR.
    assert_eq!(svg.matches("class=\"step\"").count(), 2 + 1);
    assert!(steps(&Selection::default()).svg().unwrap_err().to_string().contains("no steps"));
}
