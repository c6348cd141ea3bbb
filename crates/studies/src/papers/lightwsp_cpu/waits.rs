//! What harts and controllers waited for under LightWSP: the cause of the verdicts of Figures 7 and 8.

use super::runs::{self, SCHEME, Variant};
use crate::papers::lightwsp::counts::scheme_count;
use crate::papers::{Cell, FigureTable, Request, Runs};
use durawarp_simulation::outcome::{Outcome, ratio};

/// Waits of a run, or of several, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Waits {
    ticks: u64,
    /// Of all threads, and of all controllers.
    thread_ticks: u64,
    controller_ticks: u64,
    regions: u64,
    /// For the front-end buffer, of all threads.
    buffer: u64,
    /// For boundaries, bdry-ACKs, flushes and flush-ACKs, of all controllers.
    stages: [u64; 4],
}

impl Waits {
    fn of(outcome: &Outcome) -> Waits {
        let controllers = outcome.regions().map(|report| report.controllers).unwrap_or_default();
        let mut stages = [0; 4];
        for of in &controllers {
            let own = [of.boundary_ticks, of.boundary_ack_ticks, of.flush_ticks, of.flush_ack_ticks];
            stages.iter_mut().zip(own).for_each(|(sum, ticks)| *sum += ticks);
        }
        let ticks = outcome.time.ticks;
        let threads = 1 + outcome.count_of("os", "threads").unwrap_or_default();
        let cycle = ratio(ticks, outcome.time.core_cycles);
        Waits {
            ticks,
            thread_ticks: ticks * threads,
            controller_ticks: ticks * controllers.len() as u64,
            regions: scheme_count(outcome, "regions").unwrap_or_default(),
            buffer: (outcome.total("core", "path_full_cycles") as f64 * cycle) as u64,
            stages,
        }
    }

    fn add(&mut self, other: Waits) {
        self.ticks += other.ticks;
        self.thread_ticks += other.thread_ticks;
        self.controller_ticks += other.controller_ticks;
        self.regions += other.regions;
        self.buffer += other.buffer;
        self.stages.iter_mut().zip(other.stages).for_each(|(sum, ticks)| *sum += ticks);
    }

    /// Share of the threads' time, and of the controllers'.
    fn shares(&self) -> [f64; 5] {
        let [boundary, acks, flush, flush_acks] = self.stages.map(|ticks| ratio(ticks, self.controller_ticks));
        [ratio(self.buffer, self.thread_ticks), boundary, acks, flush, flush_acks]
    }

    /// What controllers' oldest regions waited for longest; of equals the later stage.
    fn longest(&self) -> ((&'static str, &'static str), f64) {
        let [_, stages @ ..] = self.shares();
        let all = STAGES.into_iter().zip(stages);
        all.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((STAGES[0], 0.0))
    }

    fn row(&self, name: &str, tick_khz: u64, left_ns: Option<f64>) -> Vec<Cell> {
        let ns = ratio(self.ticks, self.regions) * 1e6 / tick_khz.max(1) as f64;
        let mut row = vec![Cell::from(name), Cell::Count(self.regions), Cell::Number(ns, 1)];
        row.extend(self.shares().map(|share| Cell::Number(share * 100.0, 1)));
        row.push(Cell::number(left_ns));
        row
    }
}

/// What a controller's oldest region waits for, in the order of [`Waits::stages`], and why.
const STAGES: [(&str, &str); 4] = [
    ("boundaries", "stores and boundaries that cores have yet to send by the persist path"),
    ("bdry-ACKs", "each controller hears of a boundary from all others"),
    ("flushes", "the writes of a region, of which its queue takes no more"),
    (
        "flush-ACKs",
        "one region is written after the other, and each takes an exchange of light_wsp.ack_latency_ns (section IV-B)",
    ),
];

/// In a sentence what runs waited for longest, bar by bar; none where a bar has no run.
pub(super) fn cause(runs: &Runs<'_>, programs: &[&'static str], bars: &[Variant]) -> Option<String> {
    let of_bar = |bar: &Variant| {
        let mut sum = Waits::default();
        let outcomes = programs.iter().filter_map(|program| runs.outcome(&bar.run(program)));
        outcomes.for_each(|outcome| sum.add(Waits::of(outcome)));
        let ((stage, _), share) = sum.longest();
        (sum.regions > 0).then(|| format!("{}: {stage}, {:.0} %", bar.name, share * 100.0))
    };
    let longest = bars.iter().filter(|bar| bar.scheme == SCHEME).map(of_bar).collect::<Option<Vec<_>>>()?;
    Some(format!("cause: controllers' oldest regions waited longest for {} of the time (see fig7)", longest.join("; ")))
}

/// A row a program, and one of all together; in a sentence what most of the time went to.
pub(super) fn table(request: &Request, runs: &Runs<'_>) -> (FigureTable, Option<String>) {
    let columns = [
        "program",
        "regions",
        "ns a region",
        "% front-end buffer",
        "% boundaries",
        "% bdry-ACKs",
        "% flushes",
        "% flush-ACKs",
        "written later (ns)",
    ];
    let title = "light-wsp: shares of the run in which threads' oldest stores waited for the front-end buffer, and in which \
                 controllers' oldest regions waited";
    let mut table = FigureTable::new("fig7_waits", title, &columns);
    // All programs of a page run on one machine, so that ticks may be added.
    let (mut sum, mut tick_khz) = (Waits::default(), 1);
    for program in runs::programs(request) {
        let Some(outcome) = runs.outcome(&runs::default().run(program)) else { continue };
        tick_khz = outcome.machine.tick_khz;
        let waits = Waits::of(outcome);
        let left = outcome.backlog.as_ref().map(|left| left.drain.ps as f64 / 1e3);
        table.push(waits.row(program, tick_khz, left));
        sum.add(waits);
    }
    // What most of the time went to is the cause of the verdicts.
    if sum.regions == 0 {
        return (table, None);
    }
    table.push(sum.row("all", tick_khz, None));
    let [buffer, ..] = sum.shares();
    let ((stage, why), share) = sum.longest();
    let cause = format!(
        "cause: a region ends every {:.1} ns of all cores together; controllers' oldest regions wait longest for {stage}, {:.0} % \
         of the time: {why}; behind them queues fill, and threads' oldest stores wait {:.0} % of their time for the front-end \
         buffer",
        ratio(sum.ticks, sum.regions) * 1e6 / tick_khz.max(1) as f64,
        share * 100.0,
        buffer * 100.0,
    );
    (table, Some(cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_base::stats::Table;
    use durawarp_persist::regions::{ControllerWaits, RegionReport};
    use durawarp_simulation::outcome::sample::under;

    #[test]
    fn shares_are_of_all_threads_and_of_all_controllers() {
        // A run of 1,000 cycles of so many ticks, with three threads beside the first, and two controllers.
        let mut outcome = under("light-wsp", 1_000);
        let table = |kind: &str, name: &str, count: u64| Table {
            kind: kind.to_owned(),
            names: vec![name.to_owned()],
            docs: vec![String::new()],
            rows: vec![vec![count]],
        };
        outcome.counters = vec![table("core", "path_full_cycles", 2_000), table("os", "threads", 3)];
        outcome.scheme_counters = [("regions".to_owned(), 50)].into();
        let whole = outcome.time.ticks;
        let waits = ControllerWaits { boundary_ticks: whole / 10, flush_ack_ticks: whole / 2, ..Default::default() };
        let report = RegionReport { controllers: vec![waits, ControllerWaits::default()], ..RegionReport::default() };
        outcome.scheme_report = serde_json::to_value(report).ok();
        let mut waits = Waits::of(&outcome);
        assert_eq!(waits.shares(), [0.5, 0.05, 0.0, 0.0, 0.25]);
        assert_eq!(waits.longest(), (STAGES[3], 0.25));
        waits.add(waits);
        assert_eq!((waits.shares(), waits.regions), ([0.5, 0.05, 0.0, 0.0, 0.25], 100));
    }
}
