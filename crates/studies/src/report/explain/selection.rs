//! Why a scheme that selects data paths chose as it did, period by period.
//!
//! A row is a period: its threshold and log updates, cycles that a persist waited on average (CWPPR), the
//! localities that the buffers counted (temporal and spatial, of all accesses and of log updates), the
//! reason, and the way before and after. A period that its kernel's end cut short decides nothing, and has
//! its reason in brackets. The drawing has threshold, CWPPR and way of every period that was kept, kernels
//! told apart.

use super::explanation::Explanation;
use crate::report::console::{align_right, legend, lines, plain_table};
use crate::report::numbers::{count, percent};
use crate::report::title::{origin, subject};
use durawarp_persist::selection::{Locality, Period, Selection};
use durawarp_persist::storage::StorageCost;
use durawarp_plot::{Axis, Figure, Sheet, Step, Steps};
use durawarp_simulation::outcome::{Outcome, ratio};

/// What the columns of periods are.
const LEGEND: [(&str, &str); 10] = [
    ("kernel, launch", "the kernel, and launches of the program before this one"),
    ("period", "its number in the launch"),
    ("threshold, logs", "log updates after which the period was to end, and those that it had"),
    ("CWPPR", "core cycles that a persist waited from issue to acknowledgement: a mean over those of the period"),
    ("l1, l2", "localities counted at the sampled SM's L1, and at the L2 slices; the four columns from there on"),
    ("t all, t log", "accesses with temporal locality (the same bytes again): of all, of log updates"),
    ("s all, s log", "accesses with temporal or spatial locality (the same line again): of all, of log updates"),
    (
        "reason",
        "why the next path follows (below); in brackets, the kernel's end cut the period short and nothing is decided",
    ),
    ("path, next", "path of log updates in the period, and in the next: T through the caches, NT past them"),
    ("reservation buffer", "memory that AGPM's buffers spill their entries to"),
];

/// The reasons of decisions (AGPM Table III and section IV-B), by the paper's letters.
pub(crate) const REASONS: [(&str, &str); 9] = [
    ("reason a", "in the L1 both localities, none of log updates: through the caches"),
    ("reason b", "in the L1 both, of log updates too, whose share is strong: past the caches"),
    ("reason c", "none in the L1, all four kinds in the L2: through the caches"),
    ("reason d", "in the L1 both, of log updates too, whose share is not strong: through the caches"),
    ("reason e", "few log updates: past the caches"),
    ("reason f", "no locality in L1 and L2: past the caches"),
    ("reason g", "in the L1 no temporal locality, but spatial, of log updates too: through the caches"),
    ("reason h", "the kernel communicates through shared memory: past the caches"),
    ("reason none", "no rule covers the counts: past the caches"),
];

/// Periods that are shown; the JSON has all that the run kept.
const SHOWN: usize = 40;

pub(super) fn explain(outcome: &Outcome, _: &[StorageCost]) -> Option<Explanation> {
    let selection = outcome.selection()?;
    Some(Explanation { text: text(outcome, &selection), data: outcome.scheme_report.clone()? })
}

/// The periods of a run as a drawing.
pub(super) fn draw(outcome: &Outcome) -> Option<Figure> {
    let drawn = steps(&outcome.selection()?);
    let title = format!("{}, {}", subject(outcome), outcome.scheme_name());
    Some(Steps { sheet: drawn.sheet.titled(&title).origin(&origin(outcome)), ..drawn }.into())
}

/// A step a period. A launch begins a line of its own; where no persist was acknowledged there is no CWPPR.
fn steps(selection: &Selection) -> Steps {
    let step = |period: &Period| Step {
        series: period.kernel.clone(),
        state: if period.path == "temporal" { "through the caches" } else { "past the caches" }.to_owned(),
        begins: period.number == 0,
        values: vec![Some(period.threshold_logs as f64), (period.requests > 0).then(|| period.cwppr())],
    };
    Steps {
        sheet: Sheet::two_columns().height(216.0),
        x: Axis::new("period", ""),
        panels: vec![Axis::new("threshold", "log updates"), Axis::new("CWPPR", "core cycles")],
        states: "way".to_owned(),
        steps: selection.periods.iter().map(step).collect(),
    }
}

/// The decisions of a run as a table and a summary.
fn text(outcome: &Outcome, selection: &Selection) -> String {
    let mut table = plain_table();
    let header = [
        "kernel",
        "launch",
        "period",
        "threshold",
        "logs",
        "CWPPR",
        "l1 t all",
        "t log",
        "s all",
        "s log",
        "l2 t all",
        "t log",
        "s all",
        "s log",
        "reason",
        "path",
        "next",
    ];
    table.set_header(header);
    // A long run has thousands of periods: the first ones are shown, the sums below are of all.
    for period in selection.periods.iter().take(SHOWN) {
        table.add_row(row(period));
    }
    align_right(&mut table, 1..header.len());
    let mut out = format!("{} on {}\n{}\n", outcome.scheme, outcome.machine.name, lines(&table, 1));
    if selection.periods.len() > SHOWN {
        out += &format!("  ... and {} more periods\n", count((selection.periods.len() - SHOWN) as u64));
    }
    // A summary by log updates, then by periods.
    let logs = selection.temporal_logs + selection.non_temporal_logs;
    let reasons: Vec<String> = selection.reasons.iter().map(|(reason, times)| format!("{reason} {times}")).collect();
    out += &format!(
        "\n  {} log updates through the caches, {} past them ({}); {} write-backs dropped\n",
        count(selection.temporal_logs),
        count(selection.non_temporal_logs),
        percent(ratio(selection.non_temporal_logs, logs)),
        count(selection.dropped_write_backs),
    );
    out += &format!(
        "  {} complete periods, {} of them changed the way; reasons: {}\n",
        count(selection.complete),
        count(selection.changes),
        if reasons.is_empty() { "none, no period was complete".to_owned() } else { reasons.join(", ") },
    );
    out += &format!("  {} bytes of entries to the reservation buffer and back\n", count(selection.reservation_bytes));
    out + "\n" + &legend(&LEGEND) + &legend(&REASONS)
}

fn row(period: &Period) -> Vec<String> {
    let counts = |at: &Locality| [at.t_all, at.t_log, at.s_all, at.s_log].map(count);
    let way = |path: &str| if path == "temporal" { "T" } else { "NT" }.to_owned();
    let reason = if period.complete { period.reason.clone() } else { format!("({})", period.reason) };
    let mut cells = vec![
        period.kernel.clone(),
        count(period.launch.into()),
        count(period.number.into()),
        count(period.threshold_logs),
        count(period.logs),
        format!("{:.0}", period.cwppr()),
    ];
    cells.extend(counts(&period.l1));
    cells.extend(counts(&period.l2));
    cells.extend([reason, way(&period.path), way(&period.next_path)]);
    cells
}

/// Decisions by reason in a few characters, for tables: "b 3, f 1".
pub fn reasons(selection: &Selection) -> String {
    let of = |(reason, times): (&String, &u64)| format!("{reason} {times}");
    let text: Vec<String> = selection.reasons.iter().map(of).collect();
    if text.is_empty() { "-".to_owned() } else { text.join(", ") }
}

#[cfg(test)]
mod tests;
