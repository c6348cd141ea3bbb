//! Figure 4 and Table II: line accesses, coalesced by half-warps, under store+clwb.

use crate::reproduce::ask::{coalescing, counts, localities};
use crate::reproduce::measured::{DEGREES, Runs};
use crate::reproduce::plan::Request;
use crate::reproduce::published;
use crate::reproduce::{Cell, Figure, Finding, Table};

const SCHEME: &str = "store+clwb";

/// Figure 4.
pub(super) fn degrees(request: &Request, runs: &Runs<'_>) -> Finding {
    let mut columns = vec!["kernel"];
    columns.extend(DEGREES.iter().map(|(name, _)| *name));
    columns.push("published");
    let title = "share of loads, stores and log updates (warp instructions) by their number of line accesses";
    let mut table = Table::new("fig4", title, &columns);
    let mut over_two = Vec::new();
    for kernel in &request.kernels {
        let Some(run) = runs.measured(kernel, SCHEME, true) else { continue };
        let shares = run.degrees();
        let mut row = vec![Cell::from(kernel.name)];
        row.extend(shares.iter().map(|&share| Cell::Number(share, 3)));
        row.push(Cell::from(match published::text("fig4", kernel.name, "coalesced") {
            Some("1") => "1 or 2",
            Some(_) => "un-coalesced",
            None => "not told",
        }));
        table.push(row);
        over_two.push((kernel.name, shares[2..].iter().sum()));
    }
    let notes = vec!["atomics are apart; the bars of the figure are in no text".to_owned()];
    Finding { figure: Figure::Fig4, tables: vec![table], asks: coalescing(&over_two), notes }
}

/// Table II, but for its localities.
pub(super) fn accesses(request: &Request, runs: &Runs<'_>) -> Finding {
    let columns = ["kernel", "log", "log, published", "off by", "all", "all, published", "off by", "why"];
    let mut table = Table::new("table2", "line accesses of log updates and of all", &columns);
    let mut found = Vec::new();
    for kernel in &request.kernels {
        let Some(run) = runs.measured(kernel, SCHEME, true) else { continue };
        let (log, all) = (run.log(), run.all());
        let mut row = vec![Cell::from(kernel.name)];
        for (quantity, ours) in [("log", log), ("all", all)] {
            let printed = published::number("table2", kernel.name, quantity);
            row.push(Cell::Count(ours));
            row.push(Cell::count(printed.map(|count| count as u64)));
            row.push(Cell::deviation(Some(ours as f64), printed));
        }
        row.push(Cell::from(kernel.note));
        table.push(row);
        found.push((kernel.name, log, all));
    }
    let mut asks = counts(&found, request.profile == "paper");
    asks.push(localities());
    let notes = vec![
        "log: accesses of log updates and flags, and of their write-backs; all: of loads, stores, atomics and write-backs"
            .to_owned(),
    ];
    Finding { figure: Figure::Table2, tables: vec![table], asks, notes }
}
