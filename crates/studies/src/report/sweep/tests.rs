//! Figures and the page of a sweep whose results were made by hand.

use super::*;
use durawarp_simulation::outcome::sample::{set, under};
use durawarp_simulation::sweep::record::State;
use durawarp_simulation::sweep::sample::results;
use durawarp_simulation::sweep::{Plan, Store};

const FILE: &str = r#"
schema = 1
name = "it"
metrics = ["cycles", "time_ns", "ipc"]
baseline = { scheme = "base" }
[base]
workload = "vecadd"
profile = "ci"
[[axis]]
key = "scheme"
values = ["base", "strict"]
[[axis]]
key = "params.N"
values = [64, 256]
[[figure]]
kind = "bars"
x = "params.N"
y = "cycles"
group = "scheme"
normalise = true
[[figure]]
kind = "bars"
name = "mean"
x = "scheme"
y = "cycles"
mean = "params.N"
normalise = true
[[figure]]
kind = "stacked"
name = "stalls"
x = "params.N"
y = "stalls"
group = "scheme"
normalise = true
[[figure]]
kind = "stacked"
name = "persists"
x = "params.N"
y = "persists"
group = "scheme"
normalise = true
[[figure]]
kind = "scaling"
x = "params.N"
y = "cycles"
group = "scheme"
[[figure]]
kind = "scaling"
name = "speed"
x = "params.N"
y = "ipc"
group = "scheme"
"#;

/// Of the four points: 10,000 and 20,000 cycles of the base, 15,000 and 80,000 of the other. The last one
/// issues twice as many instructions as the others, and its persists wait twice as long for the media.
fn all() -> (tempfile::TempDir, Plan, Store) {
    let mut last = under("strict", 80_000);
    set(&mut last, "sm", "warp_instructions", 50_000);
    last.persists.as_mut().unwrap().stages[1].spread.sum_ns *= 2.0;
    results(
        FILE,
        &[
            (0, State::Good, under("base", 10_000)),
            (1, State::Good, under("base", 20_000)),
            (2, State::Good, under("strict", 15_000)),
            (3, State::Good, last),
        ],
    )
}

/// The rows of a figure's data, numbers with three digits.
fn rows(showing: &Showing<'_>, name: &str) -> Vec<String> {
    let drawn = showing.figures().into_iter().find(|figure| figure.name == name).unwrap();
    assert_eq!(drawn.notes, [""; 0], "{name}");
    let csv = drawn.figure.unwrap().csv().unwrap();
    let cell = |cell: &str| cell.parse().map_or_else(|_| cell.to_owned(), |number: f64| format!("{number:.3}"));
    csv.lines().skip(1).map(|row| row.split(',').map(cell).collect::<Vec<_>>().join(",")).collect()
}

#[test]
fn bars_are_over_the_base_of_the_same_size_and_means_are_geometric() {
    let (_folder, plan, store) = all();
    let showing = Showing::read(&plan, &store).unwrap();
    assert_eq!(rows(&showing, "it-bars"), ["bar,64.000,strict,1.500,1.500,,,", "bar,256.000,strict,4.000,4.000,,,"]);
    // The root of 1.5 times 4.
    let name = "execution time over base";
    let expected = [format!("bar,base,{name},1.000,1.000,,,"), format!("bar,strict,{name},2.449,2.449,,,")];
    assert_eq!(rows(&showing, "mean"), expected);
}

#[test]
fn stacked_bars_are_over_the_base_part_by_part() {
    let (_folder, plan, store) = all();
    let showing = Showing::read(&plan, &store).unwrap();
    let bar = |figure: &str, at: &str| -> Vec<String> {
        rows(&showing, figure).iter().filter_map(|row| Some(row.strip_prefix(at)?.to_owned())).collect()
    };
    let strict = ["issued,0.079", "memory,0.453", "execution,0.183", "memory full,0.106", "unit busy,0.094"];
    let rest = ["not selected,0.137", "barrier,0.061", "fence,0.128", "persist,0.161", "draining,0.097"];
    assert_eq!(bar("stalls", "64.000,strict,"), [strict, rest].concat(), "1.5 times their shares");
    assert_eq!(bar("stalls", "256.000,strict,")[1], "memory,1.209", "4 times");
    assert_eq!(bar("persists", "64.000,strict,"), ["lsu,0.300", "media,0.700"]);
    // 75.5 and 352 ns over 251.5 ns.
    assert_eq!(bar("persists", "256.000,strict,"), ["lsu,0.300", "media,1.400"]);
}

#[test]
fn a_speed_up_is_over_the_least_and_grows_where_times_fall_or_rates_rise() {
    let (_folder, plan, store) = all();
    let showing = Showing::read(&plan, &store).unwrap();
    let of = |figure: &str| -> Vec<String> {
        rows(&showing, figure).iter().filter_map(|row| Some(row.split_once(",256.000,")?.1.to_owned())).collect()
    };
    assert_eq!(of("it-scaling"), ["0.500,", "0.188,", "4.000,"], "10 over 20, 15 over 80; the ideal");
    assert_eq!(of("speed"), ["0.500,", "0.375,", "4.000,"], "1.25 over 2.5, 0.625 over 1.667");
    assert_eq!(rows(&showing, "speed").iter().filter(|row| row.contains(",64.000,1.000,")).count(), 3);
}

/// The rows of a page's tables, with bars between cells.
fn cells(html: &str) -> Vec<String> {
    let text = |cell: &str| {
        let parts = cell.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
        parts.collect::<String>().replace("&#x2f;", "/").trim().to_owned()
    };
    let row = |row: &str| {
        let row = row.split("</tr>").next().unwrap_or("").replace("<th", "<td");
        let cells: Vec<String> = row.split("<td").skip(1).map(|cell| text(&format!("<{cell}"))).collect();
        cells.join("|")
    };
    html.split("<tr").skip(1).map(row).collect()
}

#[test]
fn the_page_has_every_metric_beside_what_it_is_over_the_base() {
    let (_folder, plan, store) = results(
        FILE,
        &[
            (0, State::Good, under("base", 10_000)),
            (2, State::Good, under("strict", 15_000)),
            (3, State::Failed, under("strict", 80_000)),
        ],
    );
    let showing = Showing::read(&plan, &store).unwrap();
    let html = showing.page().unwrap().html().unwrap();
    let all = cells(&html);
    let none = "n/a|n/a|n/a|n/a|n/a|n/a";
    let expected = [
        "scheme|params.N|cycles (core cycles)|over base|time_ns (ns)|over base|\
         ipc (warp instructions/core cycle)|over base"
            .to_owned(),
        "base|64|10000|1.000|7143|1.000|2.500|1.000".to_owned(),
        format!("base|256|{none}"),
        "strict|64|15000|1.500|10714|1.500|1.667|0.667".to_owned(),
        format!("strict|256|{none}"),
    ];
    assert_eq!(all[..5], expected);
    assert!(all.iter().any(|row| row.starts_with("vecadd strict params.N=256|failed: it broke|durawarp run vecadd ")));
    let digests = all.iter().filter(|row| row.ends_with("|d1|d2|passed")).count();
    assert_eq!(digests, 2, "of the points that have results");
    assert!(html.contains("4 points: 2 done, 1 failed, 1 missing. Simulated by durawarp 1.2.3"));
}

#[test]
fn what_a_limit_cut_has_values_and_is_compared_with_nothing() {
    let points = [
        (0, State::Good, under("base", 10_000)),
        (1, State::Cut, under("base", 20_000)),
        (2, State::Good, under("strict", 15_000)),
        (3, State::Cut, under("strict", 80_000)),
    ];
    let (_folder, plan, store) = results(FILE, &points);
    let showing = Showing::read(&plan, &store).unwrap();
    let all = cells(&showing.page().unwrap().html().unwrap());
    assert_eq!(all[2], "base|256|20000|n/a|14286|n/a|1.250|n/a");
    assert_eq!(all[3], "strict|64|15000|1.500|10714|1.500|1.667|0.667");
    let drawn = showing.figures().into_iter().find(|figure| figure.name == "it-bars").unwrap();
    let told = "n/a since what the cycle limit cut is compared with nothing: vecadd base params.N=256";
    assert!(drawn.notes.iter().any(|note| note.starts_with(told)), "{:?}", drawn.notes);
    let csv = drawn.figure.unwrap().csv().unwrap();
    assert!(csv.contains("bar,64,strict,1.5") && !csv.contains("bar,256,strict,4"), "{csv}");
}
