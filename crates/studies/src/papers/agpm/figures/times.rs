//! Figures 3 and 7, Table I: normalised execution times, and types of kernels by them.

use crate::papers::agpm::ask::{SAME, Times, every_scheme as ask_every, static_paths as ask_static};
use crate::papers::agpm::kernels;
use crate::papers::agpm::measured::measured;
use crate::papers::agpm::published::PUBLISHED;
use crate::papers::agpm::runs::{SCHEMES, STATIC, timed};
use crate::papers::{Cell, FigureTable, Finding, Request, Runs};

/// Times over those of `base`.
fn times(request: &Request, runs: &Runs<'_>, schemes: &[&'static str]) -> Times {
    let mut times = Times::default();
    for kernel in kernels::of(request) {
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
fn table(name: &str, request: &Request, times: &Times, schemes: &[&str], best: bool) -> FigureTable {
    let mut columns = vec!["kernel", "type"];
    columns.extend(schemes);
    if best {
        columns.push("best static");
    }
    let mut table = FigureTable::new(name, "time over base", &columns);
    for kernel in kernels::of(request) {
        let ty = PUBLISHED.text("table1", kernel.name, "type").unwrap_or("-");
        let mut row = vec![Cell::from(kernel.name), Cell::from(ty)];
        row.extend(schemes.iter().map(|scheme| Cell::number(times.of(kernel.name, scheme))));
        if best {
            row.push(Cell::number(times.best_static(kernel.name)));
        }
        table.push(row);
    }
    // Below the kernels, with the same columns: our means, the paper's, and how far apart they are.
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
fn told(name: &str, times: &Times) -> FigureTable {
    let columns = ["kernel", "scheme", "ours", "published", "off by"];
    let mut table = FigureTable::new(name, "kernels that the text tells of (section III)", &columns);
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

/// Table I's types of our own times: beyond 5 % store+clwb is better (I) or nt-store (II), else neither
/// (III).
fn types(request: &Request, times: &Times) -> FigureTable {
    let columns = ["kernel", "nt-store", "store+clwb", "points", "type", "relative", "type by it", "type, published"];
    let mut table = FigureTable::new("table1", "types by the difference of the static ways", &columns);
    let (mut all, mut same) = (0, [0u64; 2]);
    for kernel in kernels::of(request) {
        let (Some(nt), Some(t)) = (times.of(kernel.name, STATIC[1]), times.of(kernel.name, STATIC[2])) else {
            continue;
        };
        let published = PUBLISHED.text("table1", kernel.name, "type").unwrap_or("-");
        let gaps = [nt - t, (nt - t) / nt.min(t)];
        let found = gaps.map(type_of);
        all += 1;
        for (same, found) in same.iter_mut().zip(found) {
            *same += u64::from(found == published);
        }
        let points = Cell::Number(gaps[0] * 100.0, 2);
        let mut row = vec![Cell::from(kernel.name), Cell::number(Some(nt)), Cell::number(Some(t)), points];
        row.extend([Cell::from(found[0]), Cell::Share(gaps[1]), Cell::from(found[1]), Cell::from(published)]);
        table.push(row);
    }
    let agree = |same: u64| Cell::Text(format!("{same} of {all}"));
    let gap = || Cell::from("");
    let name = Cell::from("as published");
    table.push(vec![name, gap(), gap(), gap(), agree(same[0]), gap(), agree(same[1]), gap()]);
    table
}

/// The type of a kernel by how much longer nt-store takes, as a share (section III: "diff > 5 %").
fn type_of(longer: f64) -> &'static str {
    match longer {
        longer if longer > SAME => "I",
        longer if longer < -SAME => "II",
        _ => "III",
    }
}

/// Figure 3.
pub(crate) fn static_paths(request: &Request, runs: &Runs<'_>) -> Finding {
    let times = times(request, runs, &STATIC);
    let main = table("fig3", request, &times, &there(&times, &STATIC), false);
    let notes = vec![
        "means are over the kernels that were run; the paper's are over 22".to_owned(),
        "types: Table I's `diff` is taken in percentage points of base's time, as the paper's other differences are; of the \
         better way's time it is the relative one"
            .to_owned(),
    ];
    let tables = vec![main, told("fig3_told", &times), types(request, &times)];
    Finding { tables, asks: ask_static(&times), notes, ..Finding::default() }
}

/// Figure 7.
pub(crate) fn every_scheme(request: &Request, runs: &Runs<'_>) -> Finding {
    let times = times(request, runs, &SCHEMES);
    let schemes = there(&times, &SCHEMES);
    let main = table("fig7", request, &times, &schemes, true);
    let notes = vec![
        "best static: the better of nt-store and store+clwb for each kernel, which no choice once a kernel can beat"
            .to_owned(),
    ];
    let tables = vec![main, told("fig7_told", &times), readings(&times)];
    Finding { tables, asks: ask_every(&times), notes, ..Finding::default() }
}

/// AGPM against the others both ways: the paper's "at least 24.37 %" are percentage points of normalised
/// time.
fn readings(times: &Times) -> FigureTable {
    let columns = ["against", "points", "points, published", "relative", "relative, published"];
    let mut table =
        FigureTable::new("fig7_gain", "agpm's gain, in percentage points of normalised time and relative", &columns);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::find;

    #[test]
    fn a_kernel_has_a_type_of_its_own_beyond_5_percent() {
        assert_eq!([0.0499, 0.0501, -0.0499, -0.0501].map(type_of), ["III", "I", "III", "II"]);
    }

    #[test]
    fn types_are_by_points_and_relative_and_those_as_published_are_counted() {
        let kernels = ["SAD1", "ATAX1", "SGEMM", "BFS", "GEMM"].map(str::to_owned);
        let request = Request::new(find("agpm").unwrap()).only(&[], &kernels).unwrap();
        let mut times = Times::default();
        for (kernel, nt, t) in [("SAD1", 3.25, 2.5), ("ATAX1", 2.0, 2.0625), ("SGEMM", 1.0, 1.0), ("BFS", 4.0, 4.125)] {
            times.add(kernel, "nt-store", nt);
            times.add(kernel, "store+clwb", t);
        }
        times.add("GEMM", "nt-store", 1.0);
        let table = types(&request, &times);
        let row = |row: &Vec<Cell>| [0, 3, 4, 5, 6, 7].map(|at| row[at].shown()).join(" | ");
        let rows: Vec<String> = table.rows.iter().map(row).collect();
        assert_eq!(
            rows,
            [
                "SAD1 | 75.00 | I | +30.00 % | I | I",
                // In the paper's order of kernels; GEMM was not run both ways.
                "SGEMM | 0.00 | III | +0.00 % | III | II",
                "ATAX1 | -6.25 | II | -3.12 % | III | II",
                "BFS | -12.50 | II | -3.12 % | III | III",
                "as published |  | 2 of 4 |  | 2 of 4 | ",
            ]
        );
    }
}
