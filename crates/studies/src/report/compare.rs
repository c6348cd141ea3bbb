//! One workload under several schemes beside each other: time over that of `base`, which way stores to
//! persistent memory took, what moved between L1 and L2, how full the write-pending queues were, and what
//! warps waited for.
//!
//! `reasons` are decisions of a scheme that selects ways, by the paper's letters; `best-static` is computed,
//! not run. Bytes are of all links between SMs and slices, headers included. Occupancy of the write-pending
//! queues is entries in use, averaged over the run and all channels, of those there are.

use super::console::{align_right, legend, lines, plain_table};
use super::cores;
use super::energy;
use super::explain::{REASONS, reasons};
use super::numbers::{count, percent};
use super::title::{origin, subject};
use durawarp_plot::{Axis, Better, Figure, Sheet, Stack, StackGroup, StackedBars};
use durawarp_simulation::outcome::{Outcome, ratio};

/// Widest bar of a normalised time, in characters.
const BAR: f64 = 40.0;

/// What the columns are.
const LEGEND: [(&str, &str); 14] = [
    ("cycles", "core cycles of the program, from its start until its last step was done"),
    ("x base", "cycles over those of base; the bars below"),
    ("log updates", "stores to undo logs (warp instructions)"),
    (
        "of these past",
        "share of them that went past the caches to the memory controller; the others stay in the caches",
    ),
    ("write-backs", "write-backs and flushes of lines that the program issued (warp instructions)"),
    ("L1>L2 B, L2>L1 B", "bytes from the SMs to the L2 slices, and back, headers included"),
    ("WPQ", "entries of the write-pending queues in use, of those there are: a mean over time and channels"),
    ("energy", "of what is counted: `durawarp run` tells its parts, and what is not in it"),
    ("persist", "share of resident warp cycles: waiting for persists to be durable"),
    ("fence", "the same: waiting at a fence for stores to be performed"),
    ("memory", "the same: waiting for the data of a load or an atomic"),
    ("barrier", "the same: waiting at a barrier for other warps"),
    ("best-static", "the faster of nt-store and store+clwb, computed from their rows"),
    ("reasons", "why a scheme that selects the path of log updates chose one, and how many times each:"),
];

/// Runs of one workload, a row each; times are relative to those of `base`.
pub fn comparison(base: &Outcome, runs: &[&Outcome]) -> String {
    if base.is_of_a_cpu() {
        return cores::comparison(base, runs);
    }
    let mut table = plain_table();
    let header = [
        "scheme",
        "cycles",
        "x base",
        "log updates",
        "of these past",
        "write-backs",
        "L1>L2 B",
        "L2>L1 B",
        "WPQ",
        "energy",
        "persist",
        "fence",
        "memory",
        "barrier",
        "reasons",
    ];
    table.set_header(header);
    for run in runs {
        let sm = |name: &str| run.total("sm", name);
        // Waits are shares of all warps' time, so that runs of unequal length can be compared.
        let resident = sm("slots_resident");
        let share = |name: &str| percent(ratio(sm(name), resident));
        let logs = sm("pm_log_stores");
        let past = sm("pm_log_stores_past");
        table.add_row([
            run.scheme_name().to_owned(),
            count(run.time.core_cycles),
            format!("{:.3}", ratio(run.time.core_cycles, base.time.core_cycles)),
            count(logs),
            if logs > 0 { percent(ratio(past, logs)) } else { "-".to_owned() },
            count(sm("pm_write_backs")),
            count(sm("bytes_out")),
            count(sm("bytes_in")),
            percent(wpq_occupancy(run)),
            energy::total(run),
            share("slots_persist"),
            share("slots_fence"),
            share("slots_memory"),
            share("slots_barrier"),
            run.selection().map_or_else(|| "-".to_owned(), |selection| reasons(&selection)),
        ]);
    }
    // No run of its own: the bound for a scheme that chooses once a kernel.
    if let Some((best, cycles)) = best_static(runs) {
        let relative = format!("{:.3}", ratio(cycles, base.time.core_cycles));
        table.add_row([format!("best-static ({best})"), count(cycles), relative]);
    }
    align_right(&mut table, 1..header.len());
    let text = |key: &str| base.workload[key].as_str().unwrap_or("?").to_owned();
    let mut out =
        format!("{} ({}) on {}\n{}\n", text("workload"), text("profile"), base.machine.name, lines(&table, 1));
    let relative = |run: &Outcome| ratio(run.time.core_cycles, base.time.core_cycles);
    // The longest time has the full width; it is at least base's own, 1.
    let longest = runs.iter().map(|run| relative(run)).fold(1.0, f64::max);
    out += &backlogs(runs);
    let width = runs.iter().map(|run| run.scheme_name().len()).max().unwrap_or(0);
    for run in runs {
        let bar = "#".repeat((relative(run) / longest * BAR).round() as usize);
        out += &format!("  {:width$}  {:6.3}  {bar}\n", run.scheme_name(), relative(run));
    }
    // The legend explains only what the table has.
    let selects = runs.iter().any(|run| run.selection().is_some());
    let static_ones = best_static(runs).is_some();
    let shown = LEGEND.into_iter().filter(|(what, _)| match *what {
        "best-static" => static_ones,
        "reasons" => selects,
        _ => true,
    });
    let reasons = REASONS.into_iter().filter(|_| selects);
    out + "\n" + &legend(&shown.chain(reasons).collect::<Vec<_>>())
}

/// What is not in a scheme's time: what it had yet to write when the program was over.
fn backlogs(runs: &[&Outcome]) -> String {
    let left = |run: &&Outcome| {
        let left = run.backlog.as_ref().filter(|backlog| backlog.is_some())?;
        Some(format!("    {}: {}\n", run.scheme_name(), super::backlog::backlog(left, run.time.ticks)))
    };
    let lines: String = runs.iter().filter_map(left).collect();
    if lines.is_empty() { lines } else { format!("  not in these times, left when the program was over:\n{lines}\n") }
}

/// The better of the two static ways of log updates, where both were run: a bound for schemes that choose
/// once a kernel.
pub(super) fn best_static<'a>(runs: &[&'a Outcome]) -> Option<(&'a str, u64)> {
    let of = |name: &str| runs.iter().find(|run| run.scheme == name).map(|run| (&*run.scheme, run.time.core_cycles));
    let (past, through) = (of("nt-store")?, of("store+clwb")?);
    Some(if past.1 <= through.1 { past } else { through })
}

/// Where warp cycles go, in the drawing: name and counter; the rest is "other".
const PARTS: [(&str, &str); 5] = [
    ("issue", "slots_issued"),
    ("persist", "slots_persist"),
    ("fence", "slots_fence"),
    ("memory", "slots_memory"),
    ("barrier", "slots_barrier"),
];

/// Times over that of `base` as bars, each divided by what its resident warps' cycles were spent on.
pub fn comparison_figure(base: &Outcome, runs: &[&Outcome]) -> Figure {
    if base.is_of_a_cpu() {
        return cores::comparison_figure(base, runs);
    }
    let bar = |run: &&Outcome| {
        let relative = ratio(run.time.core_cycles, base.time.core_cycles);
        let resident = run.total("sm", "slots_resident");
        let share = |counter: &str| ratio(run.total("sm", counter), resident);
        let mut values: Vec<f64> = PARTS.iter().map(|(_, counter)| relative * share(counter)).collect();
        values.push((relative - values.iter().sum::<f64>()).max(0.0));
        StackGroup { name: run.scheme_name().to_owned(), bars: vec![Stack::of("", &values)] }
    };
    let parts = PARTS.iter().map(|(name, _)| *name).chain(["other"]).map(str::to_owned).collect();
    StackedBars {
        groups_name: String::new(),
        sheet: Sheet::two_columns().titled(&subject(base)).origin(&origin(base)).better(Better::Lower),
        axis: Axis::new("time over base, by what warps waited for", ""),
        parts,
        groups: runs.iter().map(bar).collect(),
    }
    .into()
}

/// Entries of the write-pending queues in use, of those there are, averaged over time and channels.
fn wpq_occupancy(run: &Outcome) -> f64 {
    let entries = run.machine.parameters.get("controller.write_queue_entries");
    let entries = entries.and_then(|parameter| parameter.value.as_u64()).unwrap_or(0);
    let channels = run.rows_of("memory_controller") as u64;
    ratio(run.total("memory_controller", "wpq_entry_ticks"), run.time.ticks * entries * channels)
}

#[cfg(test)]
mod tests;
