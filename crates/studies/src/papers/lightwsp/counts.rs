//! What the runs counted: WPQ hits (Figure 18), conflicts of victims (Table II), efficiency (section V-C).
//!
//! Rates are of all kernels together: sums of what was counted over sums of what it is counted by, so that a
//! kernel weighs as much as it runs. Instructions are warp instructions of the formed kernels.

use super::ask;
use super::published::{LABEL, told};
use super::runs::{self, SCHEME, Variant};
use crate::papers::{Cell, FigureTable, Finding, Request, Run, Runs};
use durawarp_plot::geometric_mean;
use durawarp_simulation::outcome::Outcome;

/// A count by another, kernel by kernel.
#[derive(Debug)]
pub(crate) struct Rates {
    columns: [&'static str; 4],
    rows: Vec<(&'static str, u64, u64)>,
    scale: f64,
}

impl Rates {
    /// Of outcomes by name; of those that counted nothing there is no row.
    pub(crate) fn new<'o>(
        columns: [&'static str; 4],
        scale: f64,
        outcomes: impl Iterator<Item = (&'static str, Option<&'o Outcome>)>,
        counts: impl Fn(&Outcome) -> Option<(u64, u64)>,
    ) -> Rates {
        let row = |(name, outcome): (&'static str, Option<&Outcome>)| {
            let (count, by) = counts(outcome?)?;
            Some((name, count, by))
        };
        Rates { columns, rows: outcomes.filter_map(row).collect(), scale }
    }

    fn of(
        request: &Request,
        runs: &Runs<'_>,
        variant: &Variant,
        [count, by, rate]: [&'static str; 3],
        scale: f64,
        counts: impl Fn(&Outcome) -> Option<(u64, u64)>,
    ) -> Rates {
        let outcomes = request.kernels.iter().map(|&kernel| (kernel, runs.outcome(&variant.run(kernel))));
        Rates::new(["kernel", count, by, rate], scale, outcomes, counts)
    }

    fn rate(&self, count: u64, by: u64) -> Option<f64> {
        (by > 0).then(|| count as f64 * self.scale / by as f64)
    }

    /// Both counts, over all kernels.
    pub(crate) fn sums(&self) -> (u64, u64) {
        self.rows.iter().fold((0, 0), |sums, row| (sums.0 + row.1, sums.1 + row.2))
    }

    /// Over all kernels together.
    pub(crate) fn mean(&self) -> Option<f64> {
        let (count, by) = self.sums();
        self.rate(count, by)
    }

    /// A row each, and one of all.
    pub(crate) fn table(&self, name: &str, title: &str) -> FigureTable {
        let mut table = FigureTable::new(name, title, &self.columns);
        let (count, by) = self.sums();
        for &(kernel, count, by) in self.rows.iter().chain([&("all", count, by)]) {
            let rate = self.rate(count, by).map_or(Cell::None, |rate| Cell::Number(rate, 4));
            table.push(vec![Cell::from(kernel), Cell::Count(count), Cell::Count(by), rate]);
        }
        table
    }
}

/// A count of the scheme's.
pub(crate) fn scheme_count(outcome: &Outcome, name: &str) -> Option<u64> {
    outcome.scheme_counters.get(name).copied()
}

/// Table II.
pub(super) fn conflicts(request: &Request, runs: &Runs<'_>) -> Rates {
    let columns = ["conflicts", "lines looked at", "rate"];
    Rates::of(request, runs, &runs::default(), columns, 1.0, |outcome| {
        Some((scheme_count(outcome, "victim_conflicts_lines")?, scheme_count(outcome, "victims_searched_lines")?))
    })
}

/// Figure 18.
pub(super) fn hits(request: &Request, runs: &Runs<'_>) -> Finding {
    let columns = ["hits", "instructions", "per million"];
    let rates = Rates::of(request, runs, &runs::default(), columns, 1e6, |outcome| {
        Some((scheme_count(outcome, "wpq_hits")?, outcome.warp_instructions()))
    });
    let mean = rates.mean();
    let main = rates.table("fig18", "reads that found bytes in the gated WPQ, per million warp instructions");
    let tables = vec![main, told("fig18", &[("hits per million instructions", mean)])];
    let per_thread = "a warp instruction is counted once; the paper counts a thread's".to_owned();
    Finding {
        tables,
        asks: vec![ask::hits(rates.sums())],
        notes: vec![LABEL.to_owned(), per_thread],
        ..Finding::default()
    }
}

/// What kernels had yet to write when their launches were over, which no time of Figure 7 has.
pub(super) fn backlog(request: &Request, runs: &Runs<'_>) -> FigureTable {
    let columns = ["kernel", "gated stores", "queued writes", "written later (ns)", "time over base with that"];
    let mut table = FigureTable::new("fig7_backlog", "what was left to be written when the program was over", &columns);
    let mut times = Vec::new();
    for &kernel in &request.kernels {
        let of = |run: &Run| runs.outcome(run).and_then(|outcome| Some((outcome.time.ticks, outcome.backlog?)));
        let (Some((ticks, left)), base) = (of(&runs::default().run(kernel)), of(&runs::default().base(kernel))) else {
            continue;
        };
        let whole = base.map(|(of_base, left_of_base)| {
            (ticks + left.drain.ticks) as f64 / (of_base + left_of_base.drain.ticks).max(1) as f64
        });
        times.extend(whole);
        table.push(vec![
            Cell::from(kernel),
            Cell::Count(left.gated_stores),
            Cell::Count(left.queued_writes),
            Cell::Number(left.drain.ps as f64 / 1e3, 0),
            Cell::number(whole),
        ]);
    }
    let mean = Cell::number(geometric_mean(times));
    table.push(vec![Cell::from("mean"), Cell::None, Cell::None, Cell::None, mean]);
    table
}

/// A parameter of the scheme as it ran.
pub(super) fn parameter(outcome: &Outcome, name: &str) -> Option<f64> {
    outcome.scheme_parameters.get(&format!("light_wsp.{name}"))?.value.as_f64()
}

/// What warps waited for room in the front-end buffer, in ns.
fn waited_ns(outcome: &Outcome) -> u64 {
    (outcome.total("sm", "path_full_cycles") as f64 * 1e6 / outcome.machine.core_khz.max(1) as f64) as u64
}

/// What regions take from their end until they are known to be persisted (section III-A: all their stores
/// are at their controllers) where nothing else is under way and nothing was sent before the end, in ns: the
/// path's latency there and back, and their entries' time on the path. No ACK is of it: controllers exchange
/// these behind persistence (section IV-B), so that slower ones do not lengthen it.
pub(crate) fn idle_ns(outcome: &Outcome) -> Option<u64> {
    let (regions, entries) = (scheme_count(outcome, "regions")? as f64, scheme_count(outcome, "feb_entries")? as f64);
    let latency = 2.0 * parameter(outcome, "path_latency_ns")?;
    let entry = parameter(outcome, "entry_bytes")? * 1e3 / parameter(outcome, "path_mb_s")?;
    Some((regions * latency + entries * entry) as u64)
}

/// Section V-C.
pub(super) fn efficiency(request: &Request, runs: &Runs<'_>) -> Finding {
    let of = |persisting: fn(&Outcome) -> Option<u64>| {
        let columns = ["T_wait (ns)", "T_p (ns)", "waited of it"];
        Rates::of(request, runs, &runs::default(), columns, 1.0, |outcome| {
            Some((waited_ns(outcome), persisting(outcome)?))
        })
    };
    let (waited, of_loaded) = (of(idle_ns), of(|outcome| scheme_count(outcome, "regions_persisting_ns")));
    let mean = waited.mean().map(|share| 1.0 - share);
    let notes = vec![
        LABEL.to_owned(),
        "the efficiency is (T_p - T_wait) / T_p; T_wait is what warps waited for room in the front-end buffer, T_p what \
         persisting takes region by region, where nothing else is under way: the path there and back, and the entries' time \
         on it. In the second table T_p is that of the run, from regions' ends until all controllers had confirmed them: the \
         queues are in it that T_wait is for, so that it rises as the machine gets worse"
            .to_owned(),
        "PPA is not modelled".to_owned(),
    ];
    let tables = vec![
        waited.table("efficiency", "time until regions were persisted one by one, and what warps waited"),
        of_loaded.table("efficiency_loaded", "the same, with T_p as it was in the run"),
        told("efficiency", &[(SCHEME, mean)]),
    ];
    Finding { tables, asks: vec![ask::efficiency(waited.sums())], notes, ..Finding::default() }
}
