//! Persists by hand, cell by cell.

use super::*;
use crate::report::console::cells;
use durawarp_simulation::outcome::sample::{sample, under};

#[test]
fn times_have_the_digits_they_are_worth() {
    assert_eq!([ns(0.0), ns(41.0), ns(41.54), ns(999.96), ns(1234.5)], ["0", "41", "41.5", "1000", "1235"]);
}

#[test]
fn stages_show_counts_times_and_shares_of_the_total() {
    let text = lines(&stages(&sample().persists.unwrap()), 1);
    assert_eq!(
        cells(&text),
        [
            "count|mean ns|p50|p99|max|share",
            "lsu|400|75.5|60|95.5|120|30.0 %|a place",
            "media|400|176|150|420.5|1130|70.0 %|its cells",
            "all|400|251.5|210|515.5|1234|100.0 %|from issue to acknowledgement",
            "fences|90|300|250|700.5|800|warps that had to wait until their persists were durable",
            "boundaries|12|501|450|910.5|950|ends of CTAs and kernels, for the write-back of the L2",
        ]
    );
}

#[test]
fn what_did_not_happen_has_no_row() {
    let persists = sample().persists.unwrap();
    let no_persists = Persists { total: Spread::default(), fences: Spread::default(), ..persists.clone() };
    let rows = |persists: &Persists| -> Vec<String> {
        let text = lines(&stages(persists), 0);
        text.lines().skip(1).map(|row| row.split_whitespace().next().unwrap().to_owned()).collect()
    };
    assert_eq!(rows(&no_persists), ["boundaries"]);
    assert_eq!(rows(&Persists { boundaries: Spread::default(), ..persists }), ["lsu", "media", "all", "fences"]);
}

#[test]
fn stalls_stand_beside_each_other_with_the_base_first() {
    let base = sample();
    let mut ends = under("epoch-cta", 15_000);
    let fences = Spread::default();
    ends.persists = ends.persists.map(|persists| Persists { fences, ..persists });
    let mut nothing = under("eadr", 9_000);
    nothing.persists = None;
    let text = stalls_table(&base, &[&base, &ends, &nothing]);
    assert_eq!(
        cells(&text),
        [
            concat!(
                "nw (ci) on small; stages: share of all persists' time, p50/p99 in ns; fences: how many, p50/p99 of ",
                "their wait in ns"
            ),
            "scheme|cycles|x base|persists|mean ns|fences|lsu|media",
            "base|10000|1.000|400|251.5|90|30.0 %|70.0 %",
            "250/700.5|60/95.5|150/420.5",
            "epoch-cta|15000|1.500|400|251.5|12 ends|30.0 %|70.0 %",
            "450/910.5|60/95.5|150/420.5",
            "eadr|9000|0.900|0|-|-|-|-",
        ]
    );
}

#[test]
fn bars_are_the_mean_persist_of_each_scheme_that_has_any() {
    let mut nothing = under("eadr", 9_000);
    nothing.persists = None;
    let base = sample();
    let mut half = under("agpm", 9_000);
    half.scheme_variant = Some("agpm-sm".to_owned());
    half.persists.as_mut().unwrap().total.count = 800;
    let csv = stalls_figure(&base, &[&nothing, &base, &half]).csv().unwrap();
    let rows = ["base,,lsu,75.5", "base,,media,176.0", "agpm-sm,,lsu,37.75", "agpm-sm,,media,88.0"];
    assert_eq!(csv.lines().skip(1).collect::<Vec<_>>(), rows);
}
