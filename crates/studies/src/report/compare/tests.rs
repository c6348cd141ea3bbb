//! Runs by hand beside each other, cell by cell.

use super::*;
use crate::report::console::cells;
use durawarp_simulation::outcome::Backlog;
use durawarp_simulation::outcome::sample::{sample, set, under};

#[test]
fn a_comparison_has_a_row_a_run_then_the_best_static_and_a_bar_each() {
    let base = sample();
    let past = under("nt-store", 15_000);
    let mut through = under("store+clwb", 12_500);
    set(&mut through, "sm", "pm_log_stores", 0);
    let mut agpm = under("agpm", 11_250);
    agpm.scheme_variant = Some("agpm-sm".to_owned());
    agpm.scheme_report = Some(serde_json::json!({
        "periods": [], "complete": 5, "changes": 2, "reasons": { "a": 3, "f": 2 }, "temporal_logs": 7,
        "non_temporal_logs": 11, "dropped_write_backs": 13, "reservation_bytes": 17,
    }));
    let text = comparison(&base, &[&base, &past, &through, &agpm]);
    let (table, told) = text.split_once("\n\n  cycles ").unwrap();
    assert_eq!(told.lines().count(), LEGEND.len() + REASONS.len(), "{told}");
    assert_eq!(
        cells(table),
        [
            "nw (ci) on small",
            concat!(
                "scheme|cycles|x base|log updates|of these past|write-backs|L1>L2 B|L2>L1 ",
                "B|WPQ|energy|persist|fence|memory|barrier|reasons"
            ),
            "base|10000|1.000|240|29.6 %|351|71234|92345|15.0 %|-|10.6 %|8.4 %|29.8 %|4.0 %|-",
            "nt-store|15000|1.500|240|29.6 %|351|71234|92345|10.0 %|-|10.6 %|8.4 %|29.8 %|4.0 %|-",
            "store+clwb|12500|1.250|0|-|351|71234|92345|12.0 %|-|10.6 %|8.4 %|29.8 %|4.0 %|-",
            "agpm-sm|11250|1.125|240|29.6 %|351|71234|92345|13.3 %|-|10.6 %|8.4 %|29.8 %|4.0 %|a 3, f 2",
            "best-static (store+clwb)|12500|1.250",
            "",
            "base|1.000|###########################",
            "nt-store|1.500|########################################",
            "store+clwb|1.250|#################################",
            "agpm-sm|1.125|##############################",
        ]
    );
}

#[test]
fn what_schemes_left_to_be_written_stands_under_their_times() {
    let (base, mut gated) = (sample(), under("light-wsp", 20_000));
    assert!(!comparison(&base, &[&base, &gated]).contains("not in these times"));
    let drain = durawarp_simulation::outcome::sample::cycles(2_000);
    gated.backlog = Some(Backlog { gated_stores: 30, gated_entries: 40, queued_writes: 5, kept_writes: 0, drain });
    let text = comparison(&base, &[&base, &gated]);
    let told: Vec<String> = cells(&text).into_iter().skip_while(|line| !line.starts_with("not in these")).collect();
    assert_eq!(
        told[..2],
        [
            "not in these times, left when the program was over:".to_owned(),
            "light-wsp: 30 gated stores in 40 entries, 5 writes in write-pending queues; written 1.429 µs later (10.0 % of the run's time)"
                .to_owned(),
        ]
    );
}

#[test]
fn the_longest_bar_is_of_forty_characters_and_no_shorter_time_makes_it_longer() {
    let (base, fast) = (sample(), under("fast", 2_500));
    let text = comparison(&base, &[&fast]);
    let (table, told) = text.split_once("\n\n  cycles ").unwrap();
    assert_eq!(table.lines().last(), Some("  fast   0.250  ##########"), "beside the bar of the base");
    assert!(!told.contains("reason") && !told.contains("best-static"), "nothing selects, and one way alone was run");
}

#[test]
fn the_best_static_way_is_the_faster_one_where_both_were_run() {
    let [past, through, slow] = [("nt-store", 70), ("store+clwb", 80), ("store+clwb", 60)].map(|(s, n)| under(s, n));
    let other = under("agpm", 5);
    assert_eq!(best_static(&[&other, &through, &past]), Some(("nt-store", 70)));
    assert_eq!(best_static(&[&past, &slow]), Some(("store+clwb", 60)));
    assert_eq!(best_static(&[&past, &under("store+clwb", 70)]), Some(("nt-store", 70)), "equal");
    assert_eq!([best_static(&[&past, &other]), best_static(&[&through]), best_static(&[])], [None; 3]);
}

#[test]
fn bars_are_times_over_the_base_divided_by_what_warps_did() {
    let base = sample();
    let csv = comparison_figure(&base, &[&base, &under("nt-store", 20_000)]).csv().unwrap();
    let bar = |scheme: &str| -> Vec<(String, String)> {
        let rows = csv.lines().filter_map(|row| row.strip_prefix(&format!("{scheme},,"))?.split_once(','));
        rows.map(|(part, value)| (part.to_owned(), format!("{:.3}", value.parse::<f64>().unwrap()))).collect()
    };
    let parts = ["issue", "persist", "fence", "memory", "barrier", "other"];
    let expected = |values: [&str; 6]| -> Vec<(String, String)> {
        parts.into_iter().zip(values).map(|(part, value)| (part.to_owned(), value.to_owned())).collect()
    };
    assert_eq!(bar("base"), expected(["0.052", "0.106", "0.084", "0.298", "0.040", "0.420"]));
    assert_eq!(bar("nt-store"), expected(["0.104", "0.212", "0.168", "0.596", "0.080", "0.840"]));
}

#[test]
fn queues_are_as_full_as_their_entries_over_time_and_channels() {
    // 1,440,000 entry ticks, of 50,000 ticks times 64 entries times 3 channels.
    assert_eq!(wpq_occupancy(&sample()), 0.15);
    assert_eq!(wpq_occupancy(&under("twice as long", 20_000)), 0.075);
    let mut none = sample();
    none.machine.parameters.clear();
    assert_eq!(wpq_occupancy(&none), 0.0);
}
