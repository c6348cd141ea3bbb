//! Tables with a row a point: values of metrics, what came of it and how to repeat it, digests.

use super::super::label;
use super::super::reading::{PointState, Showing};
use super::tables::{columns, put, put_up_to};
use crate::report::{Column, Page, Table, count};
use durawarp_simulation::sweep::metrics;

/// Rows of results that are shown at once: what the page is about.
const RESULTS: usize = 100;

/// What a point does not have.
const NONE: &str = "n/a";

/// A value as a table shows it: whole numbers in full, others with four digits.
fn number(value: f64) -> String {
    match value.abs() {
        _ if value.fract() == 0.0 && (0.0..9e15).contains(&value) => count(value as u64),
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 1.0 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}

/// Columns of keys with more than one value, and what a point has there.
fn keys(showing: &Showing<'_>) -> Vec<usize> {
    let points = &showing.plan.points;
    let varies = |at: &usize| points.iter().any(|point| point.values[*at] != points[0].values[*at]);
    let varying: Vec<usize> = (0..showing.plan.columns.len()).filter(varies).collect();
    // One point, or points that differ in nothing: by what they run.
    if varying.is_empty() { vec![1] } else { varying }
}

/// What varies in words, and each fixed value once.
fn fixed(showing: &Showing<'_>) -> String {
    let varying = keys(showing);
    let Some(first) = showing.plan.points.first() else { return String::new() };
    let fixed = (0..showing.plan.columns.len()).filter(|at| !varying.contains(at));
    let fixed = fixed.map(|at| format!("{} = {}", showing.plan.columns[at], label::value(&first.values[at])));
    let fixed: Vec<String> = fixed.collect();
    if fixed.is_empty() { String::new() } else { format!("In all points: {}.", fixed.join(", ")) }
}

pub(super) fn results(page: &mut Page, showing: &Showing<'_>) {
    let plan = showing.plan;
    let keys = keys(showing);
    let related = plan.file.baseline.is_some();
    let mut header: Vec<Column> = keys.iter().map(|at| Column::text(&plan.columns[*at])).collect();
    for name in &plan.file.metrics {
        let unit = metrics::find(name).map(|metric| metric.unit).filter(|unit| unit != name);
        let unit = unit.map_or_else(String::new, |unit| format!(" ({unit})"));
        header.push(Column::number(&format!("{name}{unit}")));
        if related {
            header.push(Column::number(&format!("over {}", label::baseline(plan))));
        }
    }
    let mut table = Table::new(header);
    for (point, planned) in plan.points.iter().enumerate() {
        let mut row: Vec<String> = keys.iter().map(|at| label::value(&planned.values[*at])).collect();
        for metric in 0..plan.file.metrics.len() {
            let value = |point: usize| showing.readings[point].metrics[metric];
            row.push(value(point).map_or_else(|| NONE.to_owned(), number));
            if related {
                // What a limit cut is compared with nothing: its cycles are the limit's.
                let whole = |point: usize| value(point).filter(|_| showing.readings[point].state != PointState::Cut);
                let base = showing.baselines[point].and_then(whole).filter(|base| *base != 0.0);
                let over = whole(point).zip(base).map(|(own, base)| format!("{:.3}", own / base));
                row.push(over.unwrap_or_else(|| NONE.to_owned()));
            }
        }
        table.row(row);
    }
    let fixed = fixed(showing);
    if !fixed.is_empty() {
        page.paragraph(&fixed);
    }
    put_up_to(RESULTS, page, table, "Metrics");
    let mut meanings = Table::new(columns(&["metric", "unit", "what it is"]));
    for metric in plan.file.metrics.iter().filter_map(|name| metrics::find(name)) {
        meanings.row([metric.name, metric.unit, metric.meaning]);
    }
    page.folded_table("What the metrics are", meanings);
}

pub(super) fn states(page: &mut Page, showing: &Showing<'_>) {
    let mut bad = Table::new(columns(&["point", "state", "run it by itself"]));
    let mut good = bad.clone();
    for (point, planned) in showing.plan.points.iter().enumerate() {
        let command = showing.plan.batch.command(point);
        let row = |state: String| [planned.label.clone(), state, command.clone()];
        match &showing.readings[point].state {
            PointState::Good => good.row(row("done".to_owned())),
            PointState::Cut => good.row(row("cut by its cycle limit".to_owned())),
            PointState::Failed(why) => bad.row(row(format!("failed: {why}"))),
            PointState::Missing => bad.row(row("missing".to_owned())),
        }
    }
    if bad.rows.is_empty() {
        page.paragraph("No point failed and none is missing.");
    } else {
        put(page, bad, "Points without a result");
    }
    if !good.rows.is_empty() {
        page.folded_table(&format!("Commands that repeat the {} points that are done", good.rows.len()), good);
    }
}

pub(super) fn digests(page: &mut Page, showing: &Showing<'_>) {
    let mut table = Table::new(columns(&["point", "key", "digest", "memory digest", "result check"]));
    for (point, facts) in showing.facts() {
        let planned = &showing.plan.points[point];
        let check = if facts.checked { "passed" } else { "not done" };
        let key = &planned.key[..16];
        table.row([planned.label.as_str(), key, &facts.digest, &facts.memory_digest, check]);
    }
    if table.rows.is_empty() {
        page.paragraph("There are no results yet.");
        return;
    }
    page.paragraph(
        "A digest stands for every event of a run and every final state: the same version of the program on the same \
         inputs has the same digest at any number of threads. The key stands for all inputs.",
    );
    put(page, table, "Digests");
}
