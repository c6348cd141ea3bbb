//! Where persists waited: the stages of one run, and of several runs beside each other.
//!
//! Shares are of the time of all persists together. Percentiles are within 1/64 (see [`Spread`]).

use comfy_table::Table;

use super::console::{align_right, lines, plain_table};
use super::numbers::{count, percent};
use super::title::{origin, subject};
use durawarp_base::diagnostic::Diagnostic;
use durawarp_plot::{Axis, Better, Figure, Sheet, Stack, StackGroup, StackedBars};
use durawarp_simulation::outcome::{Outcome, Persists, Spread, ratio};

/// A time in ns with as many digits as it is worth: "0", "41", "41.5", "1234".
fn ns(value: f64) -> String {
    let tenths = (value * 10.0).round() as u64;
    if tenths.is_multiple_of(10) || tenths >= 10_000 {
        count((tenths + 5) / 10)
    } else {
        format!("{}.{}", tenths / 10, tenths % 10)
    }
}

fn figures(spread: &Spread) -> [String; 5] {
    [count(spread.count), ns(spread.mean_ns()), ns(spread.p50_ns), ns(spread.p99_ns), ns(spread.max_ns)]
}

/// One run's stages, total and waits.
pub(super) fn stages(persists: &Persists) -> Table {
    let mut table = plain_table();
    table.set_header(["", "count", "mean ns", "p50", "p99", "max", "share", ""]);
    let mut row = |name: &str, spread: &Spread, share: String, meaning: &str| {
        let [n, mean, p50, p99, max] = figures(spread);
        table.add_row([name, &n, &mean, &p50, &p99, &max, &share, meaning]);
    };
    if persists.total.count > 0 {
        for stage in &persists.stages {
            let share = percent(ratio(stage.spread.sum_ticks, persists.total.sum_ticks));
            row(&stage.name, &stage.spread, share, &stage.meaning);
        }
        row("all", &persists.total, percent(1.0), "from issue to acknowledgement");
    }
    for (name, spread, meaning) in [
        ("fences", &persists.fences, "warps that had to wait until their persists were durable"),
        ("boundaries", &persists.boundaries, "ends of CTAs and kernels, for the write-back of the L2"),
    ] {
        if spread.count > 0 {
            row(name, spread, String::new(), meaning);
        }
    }
    align_right(&mut table, 1..7);
    table
}

/// Several runs of one workload beside each other, a row each; cycles are relative to those of `base`.
pub fn stalls_table(base: &Outcome, runs: &[&Outcome]) -> String {
    // The stages are named by the first run that has persists, and found by place in the others.
    let stage_names = runs.iter().find_map(|run| run.persists.as_ref());
    let stage_names: Vec<&str> = stage_names.iter().flat_map(|p| &p.stages).map(|stage| stage.name.as_str()).collect();
    let mut table = plain_table();
    let fixed = ["scheme", "cycles", "x base", "persists", "mean ns", "fences"];
    table.set_header(fixed.iter().chain(&stage_names));
    for run in runs {
        let none = Persists::default();
        let persists = run.persists.as_ref().unwrap_or(&none);
        let spread = |spread: &Spread| match spread.count {
            0 => "-".to_owned(),
            _ => format!("{}/{}", ns(spread.p50_ns), ns(spread.p99_ns)),
        };
        // A scheme without fences may have ends of regions in their place; a run that has neither waits
        // nowhere.
        let waits = match (persists.fences.count, persists.boundaries.count) {
            (0, 0) => "-".to_owned(),
            (0, ends) => format!("{} ends\n{}", count(ends), spread(&persists.boundaries)),
            (fences, _) => format!("{}\n{}", count(fences), spread(&persists.fences)),
        };
        let mut row = vec![
            run.scheme_name().to_owned(),
            count(run.time.core_cycles),
            format!("{:.3}", ratio(run.time.core_cycles, base.time.core_cycles)),
            count(persists.total.count),
            if persists.total.count > 0 { ns(persists.total.mean_ns()) } else { "-".to_owned() },
            waits,
        ];
        for at in 0..stage_names.len() {
            row.push(match persists.stages.get(at).filter(|_| persists.total.count > 0) {
                None => "-".to_owned(),
                Some(stage) => {
                    let share = percent(ratio(stage.spread.sum_ticks, persists.total.sum_ticks));
                    format!("{share}\n{}", spread(&stage.spread))
                }
            });
        }
        table.add_row(row);
    }
    align_right(&mut table, 1..fixed.len() + stage_names.len());
    let text = |key: &str| base.workload[key].as_str().unwrap_or("?").to_owned();
    format!(
        "{} ({}) on {}; stages: share of all persists' time, p50/p99 in ns; fences: how many, p50/p99 of their wait in ns\n{}",
        text("workload"),
        text("profile"),
        base.machine.name,
        lines(&table, 1)
    )
}

/// Why a program of CPUs has no such table.
pub fn no_stalls_of_cpus() -> Diagnostic {
    let message = "stages of persists are those of a GPU's; `run` says where the slots of cores went";
    Diagnostic::nowhere("stalls", message)
}

/// Mean time of a persist under each scheme that has any, stage by stage, as bars.
pub fn stalls_figure(base: &Outcome, runs: &[&Outcome]) -> Figure {
    let with = || runs.iter().filter_map(|run| Some((run, run.persists.as_ref().filter(|p| p.total.count > 0)?)));
    let bar = |(run, persists): (&&Outcome, &Persists)| {
        let count = persists.total.count.max(1) as f64;
        let values: Vec<f64> = persists.stages.iter().map(|stage| stage.spread.sum_ns / count).collect();
        StackGroup { name: run.scheme_name().to_owned(), bars: vec![Stack::of("", &values)] }
    };
    let parts = with().next().map(|(_, persists)| persists.stages.iter().map(|stage| stage.name.clone()).collect());
    StackedBars {
        groups_name: String::new(),
        sheet: Sheet::two_columns().titled(&subject(base)).origin(&origin(base)).better(Better::Lower),
        axis: Axis::new("mean time of a persist", "ns"),
        parts: parts.unwrap_or_default(),
        groups: with().map(bar).collect(),
    }
    .into()
}

#[cfg(test)]
mod tests;
