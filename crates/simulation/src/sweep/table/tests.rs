//! The table of a plan whose results were made by hand.

use super::*;
use crate::outcome::sample::{set, under};
use crate::sweep::sample::results;

const FILE: &str = r#"
schema = 1
name = "it"
baseline = { scheme = "base" }
[base]
workload = "vecadd"
profile = "ci"
[[axis]]
key = "scheme"
values = ["base", "strict"]
[[axis]]
key = "params.N"
values = [64, 256, 1024]
"#;

/// Scheme and size of the rows, and what comes after these.
fn rows(table: &Table) -> Vec<String> {
    let text = String::from_utf8(table.csv()).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        [&cells[4..5], &cells[7..]].concat().join(",")
    };
    text.lines().map(row).collect()
}

#[test]
fn values_are_over_those_of_the_baseline_of_the_same_size() {
    let (_folder, plan, store) = results(
        FILE,
        &[
            (0, State::Good, under("base", 10_000)),
            (1, State::Good, under("base", 20_000)),
            (2, State::Good, under("base", 40_000)),
            (3, State::Good, under("strict", 15_000)),
            (4, State::Cut, under("strict", 22_000)),
            (5, State::Failed, under("strict", 50_000)),
        ],
    );
    let names = ["cycles", "ipc"].map(str::to_owned);
    let long = of(&plan, &store, &names, false).unwrap();
    let columns = "params.N,metric,value,unit,relative,warnings";
    let ipc = "warp instructions/core cycle";
    let expected = [
        format!("scheme,{columns}"),
        "base,64,cycles,10000,core cycles,1.0,".to_owned(),
        format!("base,64,ipc,2.5,{ipc},1.0,"),
        "base,256,cycles,20000,core cycles,1.0,".to_owned(),
        format!("base,256,ipc,1.25,{ipc},1.0,"),
        "base,1024,cycles,40000,core cycles,1.0,".to_owned(),
        format!("base,1024,ipc,0.625,{ipc},1.0,"),
        "strict,64,cycles,15000,core cycles,1.5,".to_owned(),
        format!("strict,64,ipc,1.6666666666666667,{ipc},0.6666666666666667,"),
        "strict,256,cycles,22000,core cycles,,".to_owned(),
        format!("strict,256,ipc,1.1363636363636365,{ipc},,"),
    ];
    assert_eq!(rows(&long), expected, "what was cut is over nothing, and what failed has no values");
    let wide = of(&plan, &store, &names, true).unwrap();
    let header = "scheme,params.N,state,why,warnings,cycles,cycles.relative,ipc,ipc.relative";
    assert_eq!(rows(&wide)[0], header);
    assert_eq!(
        rows(&wide)[4..],
        [
            "strict,64,good,,,15000,1.5,1.6666666666666667,0.6666666666666667",
            "strict,256,cut,,,22000,,1.1363636363636365,",
            "strict,1024,failed,it broke,,,,,",
        ]
    );
}

#[test]
fn without_a_baselines_result_or_with_one_of_0_there_is_no_relation() {
    let mut empty = under("base", 20_000);
    set(&mut empty, "l2", "atomics", 0);
    let (_folder, plan, store) = results(
        FILE,
        &[
            (1, State::Good, empty),
            (2, State::Cut, under("base", 30_000)),
            (3, State::Good, under("strict", 15_000)),
            (4, State::Good, under("strict", 22_000)),
            (5, State::Good, under("strict", 33_000)),
        ],
    );
    let wide = rows(&of(&plan, &store, &["l2.atomics".to_owned()], true).unwrap());
    assert_eq!(wide[1], "base,64,missing,,,,");
    assert_eq!(wide[4..], ["strict,64,good,,,77,", "strict,256,good,,,77,", "strict,1024,good,,,77,"]);
}
