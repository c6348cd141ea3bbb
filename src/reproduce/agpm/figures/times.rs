//! Figures 3 and 7: normalised execution times.

use crate::reproduce::agpm::ask::{Times, every_scheme as ask_every, static_paths as ask_static};
use crate::reproduce::agpm::kernels_of;
use crate::reproduce::agpm::measured::measured;
use crate::reproduce::agpm::published::PUBLISHED;
use crate::reproduce::agpm::runs::{SCHEMES, STATIC, timed};
use crate::reproduce::{Cell, Finding, Request, Runs, Table};

/// Times over those of `base`.
fn times(request: &Request, runs: &Runs<'_>, schemes: &[&'static str]) -> Times {
    let mut times = Times::default();
    for kernel in kernels_of(request) {
        let Some(base) = measured(runs, kernel, &timed(kernel, "base")) else { continue };
        for scheme in schemes {
            if let Some(run) = measured(runs, kernel, &timed(kernel, scheme)) {
                times.add(kernel.name, scheme, run.ticks() as f64 / base.ticks().max(1) as f64);
            }
        }
    }
    times
}

/// Schemes of which there is any time.
fn there<'s>(times: &Times, schemes: &[&'s str]) -> Vec<&'s str> {
    schemes.iter().copied().filter(|scheme| times.mean(scheme).is_some()).collect()
}

/// A row a kernel, then the means, ours and published.
fn table(name: &str, request: &Request, times: &Times, schemes: &[&str], best: bool) -> Table {
    let mut columns = vec!["kernel", "type"];
    columns.extend(schemes);
    if best {
        columns.push("best static");
    }
    let mut table = Table::new(name, "time over base", &columns);
    for kernel in kernels_of(request) {
        let ty = PUBLISHED.text("table1", kernel.name, "type").unwrap_or("-");
        let mut row = vec![Cell::from(kernel.name), Cell::from(ty)];
        row.extend(schemes.iter().map(|scheme| Cell::number(times.of(kernel.name, scheme))));
        if best {
            row.push(Cell::number(times.best_static(kernel.name)));
        }
        table.push(row);
    }
    let mut means = |title: &str, of: &dyn Fn(&str) -> Cell, last: Cell| {
        let mut row = vec![Cell::from(title), Cell::from("")];
        row.extend(schemes.iter().map(|scheme| of(scheme)));
        if best {
            row.push(last);
        }
        table.push(row);
    };
    let printed = |scheme: &str| PUBLISHED.number(name, "mean", scheme);
    means("mean", &|scheme| Cell::number(times.mean(scheme)), Cell::number(times.mean_best_static()));
    means("mean, published", &|scheme| Cell::number(printed(scheme)), Cell::None);
    means("off by", &|scheme| Cell::deviation(times.mean(scheme), printed(scheme)), Cell::None);
    table
}

/// Single kernels that the paper's text tells of.
fn told(times: &Times) -> Table {
    let mut table =
        Table::new("fig3_told", "kernels that the text tells of", &["kernel", "scheme", "ours", "published", "off by"]);
    for row in PUBLISHED.all().filter(|row| row.experiment == "fig3" && row.kernel != "mean") {
        let (ours, value) = (times.of(row.kernel, row.quantity), row.value.parse().ok());
        table.push(vec![
            Cell::from(row.kernel),
            Cell::from(row.quantity),
            Cell::number(ours),
            Cell::number(value),
            Cell::deviation(ours, value),
        ]);
    }
    table
}

/// Figure 3.
pub(in crate::reproduce::agpm) fn static_paths(request: &Request, runs: &Runs<'_>) -> Finding {
    let times = times(request, runs, &STATIC);
    let main = table("fig3", request, &times, &there(&times, &STATIC), false);
    let notes = vec!["means are over the kernels that were run; the paper's are over 22".to_owned()];
    Finding { tables: vec![main, told(&times)], asks: ask_static(&times), notes, ..Finding::default() }
}

/// Figure 7.
pub(in crate::reproduce::agpm) fn every_scheme(request: &Request, runs: &Runs<'_>) -> Finding {
    let times = times(request, runs, &SCHEMES);
    let schemes = there(&times, &SCHEMES);
    let main = table("fig7", request, &times, &schemes, true);
    let mut notes = vec![
        "best static: the better of nt-store and store+clwb for each kernel, which no choice once a kernel can beat"
            .to_owned(),
    ];
    for kernel in ["StreamTriad", "SSSP1"] {
        let best = schemes.iter().filter(|scheme| **scheme != "base").filter_map(|s| Some((times.of(kernel, s)?, *s)));
        if let Some((_, best)) = best.min_by(|a, b| a.0.total_cmp(&b.0)) {
            notes.push(format!("{kernel}: the best here is {best}; the paper sees bucl (not asked for)"));
        }
    }
    let tables = vec![main, readings(&times)];
    Finding { tables, asks: ask_every(&times), notes, ..Finding::default() }
}

/// AGPM against the others both ways: the paper's "at least 24.37 %" are percentage points of normalised time.
fn readings(times: &Times) -> Table {
    let columns = ["against", "points", "points, published", "relative", "relative, published"];
    let mut table =
        Table::new("fig7_gain", "agpm's gain, in percentage points of normalised time and relative", &columns);
    for scheme in &SCHEMES[1..6] {
        let points = |agpm: Option<f64>, other: Option<f64>| Some((other? - agpm?) * 100.0);
        let relative = |agpm: Option<f64>, other: Option<f64>| Some(1.0 - agpm? / other?);
        let ours = (times.mean("agpm"), times.mean(scheme));
        let printed = (PUBLISHED.number("fig7", "mean", "agpm"), PUBLISHED.number("fig7", "mean", scheme));
        let share = |value: Option<f64>| value.map_or(Cell::None, Cell::Share);
        let number = |value: Option<f64>| value.map_or(Cell::None, |value| Cell::Number(value, 2));
        table.push(vec![
            Cell::from(*scheme),
            number(points(ours.0, ours.1)),
            number(points(printed.0, printed.1)),
            share(relative(ours.0, ours.1)),
            share(relative(printed.0, printed.1)),
        ]);
    }
    table
}
