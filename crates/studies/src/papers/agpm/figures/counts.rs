//! Figure 4 and Table II: line accesses, coalesced by half-warps, under store+clwb.

use crate::papers::agpm::ask::{CountedRow, coalescing, counts, localities, rows as ask_rows};
use crate::papers::agpm::decisions::Periods;
use crate::papers::agpm::kernels;
use crate::papers::agpm::measured::{DEGREES, localities as counted_localities, measured};
use crate::papers::agpm::published::PUBLISHED;
use crate::papers::agpm::runs::{READINGS, counted, counting};
use crate::papers::{Cell, FigureTable, Finding, Request, Runs};
use durawarp_persist::selection::Locality;
use durawarp_schemes::agpm::reason::{Evidence, Reason, Rules};

/// Figure 4.
pub(crate) fn degrees(request: &Request, runs: &Runs<'_>) -> Finding {
    let mut columns = vec!["kernel"];
    columns.extend(DEGREES.iter().map(|(name, _)| *name));
    columns.push("published");
    let title = "share of loads, stores and log updates (warp instructions) by their number of line accesses";
    let mut table = FigureTable::new("fig4", title, &columns);
    let mut over_two = Vec::new();
    for kernel in kernels::of(request) {
        let Some(run) = measured(runs, kernel, &counted(kernel)) else { continue };
        let shares = run.degrees();
        let mut row = vec![Cell::from(kernel.name)];
        row.extend(shares.iter().map(|&share| Cell::Number(share, 3)));
        row.push(Cell::from(match PUBLISHED.text("fig4", kernel.name, "coalesced") {
            Some("1") => "1 or 2",
            Some(_) => "un-coalesced",
            None => "not told",
        }));
        table.push(row);
        over_two.push((kernel.name, shares[2..].iter().sum()));
    }
    let notes = vec!["atomics are apart; the bars of the figure are in no text".to_owned()];
    Finding { tables: vec![table], asks: coalescing(&over_two), notes, ..Finding::default() }
}

/// Table II: its ten columns by the first reading, its counts of accesses by the request's program, its
/// localities by each reading.
pub(crate) fn accesses(request: &Request, runs: &Runs<'_>) -> Finding {
    let columns = ["kernel", "log", "log, published", "off by", "all", "all, published", "off by", "why"];
    let mut table = FigureTable::new("table2_accesses", "line accesses of log updates and of all", &columns);
    let mut found = Vec::new();
    for kernel in kernels::of(request) {
        let Some(run) = measured(runs, kernel, &counted(kernel)) else { continue };
        let (log, all) = (run.log(), run.all());
        let mut row = vec![Cell::from(kernel.name)];
        for (quantity, ours) in [("log", log), ("all", all)] {
            let printed = PUBLISHED.number("table2", kernel.name, quantity);
            row.push(Cell::Count(ours));
            row.push(Cell::count(printed.map(|count| count as u64)));
            row.push(Cell::deviation(Some(ours as f64), printed));
        }
        row.push(Cell::from(kernel.note));
        table.push(row);
        found.push((kernel.name, log, all));
    }
    let mut asks = counts(&found, request.has_paper_sizes());
    // The localities come by each reading; Table II itself stands before them.
    let (same, mut tables) = zeros(request, runs);
    asks.push(localities(&same));
    let (rows, whole) = rows(request, runs);
    asks.extend(ask_rows(&whole, request.has_paper_sizes()));
    tables.insert(0, table);
    tables.insert(0, rows);
    let mut notes: Vec<String> =
        READINGS.iter().map(|reading| format!("reading `{}`: {}", reading.name, reading.meaning)).collect();
    notes.push(
        "log: accesses of log updates and flags, and of their write-backs; all: of loads, stores, atomics and write-backs"
            .to_owned(),
    );
    Finding { tables, asks, notes, ..Finding::default() }
}

/// Table II's columns of localities, in order.
const COLUMNS: [&str; 8] =
    ["l1d_t_all", "l1d_t_log", "l1d_s_all", "l1d_s_log", "l2_t_all", "l2_t_log", "l2_s_all", "l2_s_log"];

fn counts_of(at: &[Locality; 2]) -> [u64; 8] {
    let [a, b] = at.map(|at| [at.t_all, at.t_log, at.s_all, at.s_log]);
    std::array::from_fn(|column| if column < 4 { a[column] } else { b[column - 4] })
}

/// How far a count may be from the published one.
const NEAR: f64 = 0.05;

/// A count is near the published one, or both are zero.
fn is_near(ours: u64, published: f64) -> bool {
    if published == 0.0 { ours == 0 } else { (ours as f64 / published - 1.0).abs() <= NEAR }
}

/// Table II by the first reading, three rows a kernel: ours, the published, the ratio; and what is to be
/// asked of each kernel. Both of `log` and `all` are of the same run as the localities.
fn rows(request: &Request, runs: &Runs<'_>) -> (FigureTable, Vec<CountedRow>) {
    let reading = &READINGS[0];
    let mut columns = vec!["kernel", "of"];
    columns.extend(COLUMNS);
    columns.extend(["all", "log", "within 5 %", "reason"]);
    let title = format!("Table II by the reading `{}`, beside the published one", reading.name);
    let mut table = FigureTable::new("table2", &title, &columns);
    let mut found = Vec::new();
    for kernel in kernels::of(request) {
        let Some(at) = counted_localities(runs, kernel, reading) else { continue };
        let Some(run) = measured(runs, kernel, &counting(kernel, reading)) else { continue };
        let counts = counts_of(&at);
        let ours: Vec<u64> = counts.into_iter().chain([run.all(), run.log()]).collect();
        let published: Vec<f64> = COLUMNS
            .into_iter()
            .chain(["all", "log"])
            .map(|column| PUBLISHED.number("table2", kernel.name, column).unwrap_or(f64::NAN))
            .collect();
        let near = ours.iter().zip(&published).filter(|(ours, published)| is_near(**ours, **published)).count();
        // Reason h comes before all others, so that one of its periods says what the kernel is.
        let of_shared = |periods: Periods| periods.own.iter().any(|period| period.reason == Reason::H.letter());
        let shared_memory = run.periods().is_some_and(of_shared);
        let evidence = Evidence { l1: at[0], l2: at[1], logs: run.log(), shared_memory };
        let reason = Rules::PAPER.reason(&evidence);
        let letter = PUBLISHED.text("table2", kernel.name, "reason").unwrap_or("-");
        // The same columns three times, what is said of the kernel beside its own counts.
        let mut row = vec![Cell::from(kernel.name), Cell::from("ours")];
        row.extend(ours.iter().map(|count| Cell::Count(*count)));
        row.extend([Cell::Text(format!("{near} of 10")), Cell::from(reason.letter())]);
        table.push(row);
        let mut row = vec![Cell::from(""), Cell::from("published")];
        row.extend(published.iter().map(|count| Cell::Count(*count as u64)));
        row.extend([Cell::from(""), Cell::from(letter)]);
        table.push(row);
        let mut row = vec![Cell::from(""), Cell::from("ratio")];
        row.extend(ours.iter().zip(&published).map(|(ours, published)| match *published {
            0.0 => Cell::None,
            published => Cell::Number(*ours as f64 / published, 3),
        }));
        row.extend([Cell::from(""), Cell::from("")]);
        table.push(row);
        let localities = (0..8).filter(|at| is_near(ours[*at], published[*at])).count();
        found.push(CountedRow {
            kernel: kernel.name,
            localities,
            reason: [reason, Reason::of(letter).unwrap_or(Reason::None)],
        });
    }
    (table, found)
}

/// Localities by each reading: how many kernels have the paper's zeros, and a table.
fn zeros(request: &Request, runs: &Runs<'_>) -> (Vec<(&'static str, usize, usize)>, Vec<FigureTable>) {
    let (mut same, mut tables) = (Vec::new(), Vec::new());
    for (number, reading) in READINGS.iter().enumerate() {
        let mut columns = vec!["kernel"];
        columns.extend(COLUMNS);
        columns.extend(["zeros as published", "published zeros differ in"]);
        let name = format!("table2_localities_{}", number + 1);
        let mut table = FigureTable::new(&name, &format!("localities by the reading `{}`", reading.name), &columns);
        let (mut right, mut of) = (0, 0);
        for kernel in kernels::of(request) {
            let Some(found) = counted_localities(runs, kernel, reading) else { continue };
            let counts = counts_of(&found);
            let mut row = vec![Cell::from(kernel.name)];
            row.extend(counts.map(Cell::Count));
            // Only what is zero is compared with the paper, not the counts.
            let differs = |column: &usize| {
                let printed = PUBLISHED.number("table2", kernel.name, COLUMNS[*column]).unwrap_or(0.0);
                (printed == 0.0) != (counts[*column] == 0)
            };
            let different: Vec<&str> = (0..8).filter(differs).map(|column| COLUMNS[column]).collect();
            right += usize::from(different.is_empty());
            of += 1;
            row.push(Cell::from(if different.is_empty() { "yes" } else { "no" }));
            row.push(Cell::Text(different.join(" ")));
            table.push(row);
        }
        if of > 0 {
            same.push((reading.name, right, of));
            tables.push(table);
        }
    }
    (same, tables)
}
