//! What the runs counted: Figures 8, 14 and 18, Table II, section V-G3.
//!
//! Rates are of all programs together: sums of what was counted over sums of what it is counted by.
//! Instructions are those of the programs; what regions insert is counted by itself.

use super::runs::LABEL;
use super::{ask, runs, waits};
use crate::papers::lightwsp::ask as port;
use crate::papers::lightwsp::counts::{Rates, idle_ns, scheme_count};
use crate::papers::lightwsp::published::told;
use crate::papers::{Cell, FigureTable, Finding, Request, Runs};
use durawarp_simulation::outcome::{Outcome, ratio};

type NamedOutcomes<'a> = Vec<(&'static str, Option<&'a Outcome>)>;

/// Programs under a scheme as it is.
fn outcomes<'a>(request: &Request, runs: &Runs<'a>, of: &runs::Variant) -> NamedOutcomes<'a> {
    runs::programs(request).into_iter().map(|program| (program, runs.outcome(&of.run(program)))).collect()
}

fn ns(outcome: &Outcome, cycles: u64) -> u64 {
    (cycles as f64 * 1e6 / outcome.machine.core_khz.max(1) as f64) as u64
}

/// What harts waited for their front-end buffers.
fn waited_ns(outcome: &Outcome) -> u64 {
    ns(outcome, outcome.total("core", "path_full_cycles"))
}

/// Figure 8.
pub(super) fn efficiency(request: &Request, runs: &Runs<'_>) -> Finding {
    const COLUMNS: [&str; 4] = ["program", "T_wait (ns)", "T_p (ns)", "waited of it"];
    let [of_ppa, own] = [0, 1].map(|at| outcomes(request, runs, &runs::by_efficiency()[at]));
    let own_rates = |persisting: fn(&Outcome) -> Option<u64>| {
        Rates::new(COLUMNS, 1.0, own.iter().copied(), |outcome| Some((waited_ns(outcome), persisting(outcome)?)))
    };
    // T_p as it would be of each region by itself, and as it was, with waits in queues.
    let waited = own_rates(idle_ns);
    let of_loaded = own_rates(|outcome| scheme_count(outcome, "regions_persisting_ns"));
    let ppa_rates = |persisting: fn(&Outcome) -> Option<u64>| {
        Rates::new(COLUMNS, 1.0, of_ppa.iter().copied(), |outcome| {
            Some((ns(outcome, scheme_count(outcome, "region_wait_cycles")?), persisting(outcome)?))
        })
    };
    let ppa = ppa_rates(written_back_ns);
    let ppa_loaded = ppa_rates(|outcome| Some(ns(outcome, scheme_count(outcome, "write_back_cycles")?)));
    // Of sums, so that a program weighs as much as it runs.
    let hidden = |rates: &Rates| rates.mean().map(|share| 1.0 - share);
    let (own, ppa_hidden) = (hidden(&waited), hidden(&ppa));
    let cause = waits::cause(runs, &runs::programs(request), &[runs::default()]);
    Finding {
        tables: vec![
            waited.table("fig8", "light-wsp: time until regions were persisted one by one, and what harts waited"),
            of_loaded.table("fig8_loaded", "the same, with T_p as it was in the run"),
            ppa.table("fig8_ppa", "PPA: time of write-backs one by one, and what harts waited at the ends of regions"),
            ppa_loaded.table("fig8_ppa_loaded", "the same, with T_p as it was in the run"),
            told("efficiency", &[("PPA", ppa_hidden), (runs::SCHEME, own)]),
        ],
        asks: vec![port::efficiency(waited.sums()), ask::hidden(ppa_hidden, own)],
        notes: [LABEL, FORMULA, LOADED].map(str::to_owned).into_iter().chain(cause).collect(),
        ..Finding::default()
    }
}

/// What T_p and T_wait are.
const FORMULA: &str = "the efficiency is (T_p - T_wait) / T_p, below 0 where harts wait longer than persisting each region by itself \
     would take. T_p is the paper's latency \"without using any optimizing techniques\", by a closed formula: of light-wsp, \
     where nothing else is under way, the path there and back and the entries' time on it, region by region; of PPA the \
     controller there and back and a hit of the shared cache, write-back by write-back. T_wait is of the run: what a hart's \
     oldest store waited for room in the front-end buffer; what harts waited at the ends of PPA's regions";

/// Why T_p of the run is none.
const LOADED: &str = "T_p as it was in the run (fig8_loaded) has the queues in it that T_wait is for: it grows with them, so that an \
     efficiency of it rises as the machine gets worse";

/// What write-backs take at least, in ns: the shared cache, and the controller there and back.
fn written_back_ns(outcome: &Outcome) -> Option<u64> {
    let parameter = |key: &str| outcome.machine.parameters.get(key)?.value.as_f64();
    let cache = ["llc.request_cycles", "llc.service_cycles", "llc.reply_cycles"].map(parameter);
    let cache = cache.into_iter().sum::<Option<f64>>()? * 1e6 / outcome.machine.core_khz.max(1) as f64;
    let each = cache + parameter("controller.front_ns")? + parameter("controller.back_ns")?;
    Some((scheme_count(outcome, "store_write_backs")? as f64 * each) as u64)
}

/// Table II.
pub(super) fn conflicts(request: &Request, runs: &Runs<'_>) -> Finding {
    let columns = ["program", "conflicts", "lines looked at", "rate"];
    let full = runs::with_victims("full");
    let outcomes = runs::few(request).into_iter().map(|program| (program, runs.outcome(&full.run(program))));
    let rates = Rates::new(columns, 1.0, outcomes, |outcome| {
        Some((scheme_count(outcome, "victim_conflicts_lines")?, scheme_count(outcome, "victims_searched_lines")?))
    });
    let mean = rates.mean();
    let title = "conflicts of lines that were to leave with copies on their way";
    let tables = vec![rates.table("table2", title), told("fig13", &[("conflict rate at most", mean)])];
    Finding { tables, asks: vec![port::conflicts(rates.sums())], notes: vec![LABEL.to_owned()], ..Finding::default() }
}

/// Figure 14.
pub(super) fn misses(request: &Request, runs: &Runs<'_>) -> Finding {
    let names: Vec<&str> = runs::VICTIMS.into_iter().chain([runs::STALE]).collect();
    let columns: Vec<&str> = ["program"].into_iter().chain(names.iter().copied()).collect();
    let mut table =
        FigureTable::new("fig14", "misses of the L1s, % of loads and stores, by policy of victims", &columns);
    // Rates of all are shown only where every program has every policy.
    let (mut sums, mut whole) = (vec![(0, 0); names.len()], true);
    for program in runs::few(request) {
        let counts = names.iter().map(|policy| {
            let outcome = runs.outcome(&runs::with_victims(policy).run(program))?;
            let of = |name| outcome.total("core", name);
            Some((of("l1_load_misses") + of("l1_store_misses"), of("loads") + of("stores")))
        });
        let counts: Vec<Option<(u64, u64)>> = counts.collect();
        whole &= counts.iter().all(Option::is_some);
        for (sum, (misses, of)) in sums.iter_mut().zip(counts.iter().map(|count| count.unwrap_or_default())) {
            *sum = (sum.0 + misses, sum.1 + of);
        }
        let share = |count: &Option<(u64, u64)>| Cell::number(count.map(|(misses, of)| ratio(misses, of) * 100.0));
        table.push(std::iter::once(Cell::from(program)).chain(counts.iter().map(share)).collect());
    }
    let shares: Vec<f64> = sums.iter().map(|(misses, of)| ratio(*misses, *of)).collect();
    let all = shares.iter().map(|share| if whole { Cell::Number(share * 100.0, 3) } else { Cell::None });
    table.push(std::iter::once(Cell::from("all")).chain(all).collect());
    // Published is by how much less than with stale loads.
    let fewer = |policy: usize| {
        let stale = shares[names.len() - 1];
        (whole && stale > 0.0).then(|| 1.0 - shares[policy] / stale)
    };
    let ours = [
        ("full: misses fewer by at most", fewer(0)),
        ("half: misses fewer by at most", fewer(1)),
        ("zero: misses fewer by at most", fewer(2)),
    ];
    Finding {
        tables: vec![table, told("fig14", &ours)],
        asks: vec![ask::misses([0, 1, 2].map(fewer), victims_conflicted(request, runs))],
        notes: vec![
            LABEL.to_owned(),
            "published are the largest reductions against stale loads of a suite, ours are those of all programs together"
                .to_owned(),
        ],
        ..Finding::default()
    }
}

/// Victims that conflicted under the policy that searches most, of the programs that figures of one parameter
/// have.
pub(super) fn victims_conflicted(request: &Request, runs: &Runs<'_>) -> u64 {
    let full = runs::with_victims(runs::VICTIMS[0]);
    let outcomes = runs::few(request).into_iter().filter_map(|program| runs.outcome(&full.run(program)));
    outcomes.filter_map(|outcome| scheme_count(outcome, "victim_conflicts_lines")).sum()
}

/// Figure 18.
pub(super) fn hits(request: &Request, runs: &Runs<'_>) -> Finding {
    let columns = ["program", "hits", "instructions", "per million"];
    let rates = Rates::new(columns, 1e6, outcomes(request, runs, &runs::default()).into_iter(), |outcome| {
        Some((scheme_count(outcome, "wpq_hits")?, outcome.warp_instructions()))
    });
    let mean = rates.mean();
    let tables = vec![
        rates.table("fig18", "reads that found bytes in the WPQ, per million instructions"),
        told("fig18", &[("hits per million instructions", mean)]),
    ];
    Finding { tables, asks: vec![port::hits(rates.sums())], notes: vec![LABEL.to_owned()], ..Finding::default() }
}

/// What regions of a run came to.
#[derive(Debug, Clone, Copy, Default)]
struct Regions {
    instructions: u64,
    inserted: u64,
    regions: u64,
    stores: u64,
}

impl Regions {
    fn of(outcome: &Outcome) -> Option<Regions> {
        let core = |name| outcome.total("core", name);
        Some(Regions {
            instructions: core("instructions"),
            inserted: core("inserted"),
            regions: core("regions"),
            stores: scheme_count(outcome, "feb_stores")?,
        })
    }

    fn add(&mut self, other: Regions) {
        self.instructions += other.instructions;
        self.inserted += other.inserted;
        self.regions += other.regions;
        self.stores += other.stores;
    }

    /// Instructions more, instructions a region, stores a region.
    fn statistics(self) -> [Option<f64>; 3] {
        let by = |part: u64, whole: u64| (whole > 0).then(|| ratio(part, whole));
        [
            by(self.inserted, self.instructions),
            by(self.instructions + self.inserted, self.regions),
            by(self.stores, self.regions),
        ]
    }
}

/// Section V-G3.
pub(super) fn regions(request: &Request, runs: &Runs<'_>) -> Finding {
    let columns = ["program", "regions", "more instructions", "instructions a region", "stores a region"];
    let mut table = FigureTable::new("g3", "regions of the programs as they ran", &columns);
    let row = |name: &str, of: Regions| {
        let [more, instructions, stores] = of.statistics();
        let number = |value: Option<f64>| value.map_or(Cell::None, |value| Cell::Number(value, 2));
        let more = more.map_or(Cell::None, Cell::Share);
        vec![Cell::from(name), Cell::Count(of.regions), more, number(instructions), number(stores)]
    };
    // A program that failed is in no sum.
    let mut sums = Regions::default();
    for (program, outcome) in outcomes(request, runs, &runs::default()) {
        let Some(of) = outcome.and_then(Regions::of) else { continue };
        table.push(row(program, of));
        sums.add(of);
    }
    table.push(row("all", sums));
    let statistics = sums.statistics();
    let names = ["more instructions", "instructions a region", "stores a region"];
    let ours: Vec<_> = names.into_iter().zip(statistics).collect();
    Finding {
        tables: vec![table, told("regions", &ours)],
        asks: port::regions(statistics),
        notes: vec![
            LABEL.to_owned(),
            "checkpoints and program counters count as instructions and as stores; a store across two lines is two copies"
                .to_owned(),
        ],
        ..Finding::default()
    }
}
