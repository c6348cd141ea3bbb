//! `limits`: what each reading of the protocol allows at most, beside what runs came to; which sentence of
//! the paper can hold beside which of its figures.
//!
//! The bounds are arithmetic (`limits/bounds.rs`) on the parameters of machine, scheme and readings
//! (`limits/numbers.rs`). Invariant: no run is above a bound of its own parameters. That is asked: a machine
//! that does more than its protocol allows does not meet it.

mod bounds;
mod measured;
mod numbers;

use super::ask::{self, Ask};
use super::runs::{self, LABEL};
use crate::papers::lightwsp::published::PUBLISHED;
use crate::papers::{Cell, FigureTable, Finding, Request, Runs};
use bounds::{BusyCores, MeanRegion, RateBound};
use durawarp_plot::Figure as Drawing;
use durawarp_plot::geometric_mean;
use durawarp_plot::{Axis, Bar, BarSeries, Baseline, Better, GroupedBars, Mean, Scale, Sheet};
use measured::Measured;
use numbers::{NamedBound, ProtocolNumbers};

/// The paper's mean region (section V-G3).
fn region_of_paper() -> Option<MeanRegion> {
    let of = |quantity| PUBLISHED.number("regions", "mean", quantity);
    Some(MeanRegion { instructions: of("instructions a region")?, stores: of("stores a region")? })
}

/// That of runs together.
fn region_of(runs: &[&Measured]) -> Option<MeanRegion> {
    let sum = |of: fn(&MeanRegion) -> f64| runs.iter().map(|run| of(&run.region) * run.regions).sum::<f64>();
    let regions: f64 = runs.iter().map(|run| run.regions).sum();
    let of = |sum: f64| sum / regions;
    (regions > 0.0).then(|| MeanRegion {
        instructions: of(sum(|region| region.instructions)),
        stores: of(sum(|region| region.stores)),
    })
}

fn ipc_cell(ipc: Option<f64>) -> Cell {
    ipc.map_or(Cell::None, |ipc| Cell::Number(ipc, 2))
}

/// What each reading allows, and how many programs with threads are faster than that under `base`.
fn readings(bounds: &[NamedBound], cores: BusyCores, with_threads: &[&Measured]) -> FigureTable {
    let columns =
        ["reading", "numbers", "regions a us", "highest IPC a core", "with our regions", "programs faster under base"];
    let title = "what each reading allows: all cores of the machine, regions as large as the paper's, then as ours";
    let mut table = FigureTable::new("limits", title, &columns);
    let (papers, ours) = (region_of_paper(), region_of(with_threads));
    for NamedBound { reading, numbers, bound } in bounds {
        let ipc = |region: Option<MeanRegion>| bound.ipc(region?, cores);
        let rate = papers.and_then(|region| bound.regions_ns(region, cores));
        let most = |run: &Measured| bound.ipc(run.region, run.cores);
        let faster = with_threads.iter().filter(|run| most(run).is_some_and(|most| most < run.ipc_of_base)).count();
        table.push(vec![
            Cell::from(reading.as_str()),
            Cell::from(numbers.as_str()),
            rate.map_or(Cell::None, |rate| Cell::Number(rate * 1e3, 1)),
            ipc_cell(ipc(papers)),
            ipc_cell(ipc(ours)),
            Cell::Text(format!("{faster} of {}", with_threads.len())),
        ]);
    }
    table
}

/// What programs came to, and how near their own bounds.
fn programs<'m>(all: impl Iterator<Item = &'m Measured>) -> FigureTable {
    let columns = [
        "program",
        "commit",
        "cores",
        "instructions a region",
        "stores a region",
        "IPC a core, base",
        "IPC a core",
        "regions a us",
        "% of serial ACKs",
        "% of its paths",
        "% of PMEM",
    ];
    let title = "what programs came to, and how much that is of what their own parameters allow";
    let mut table = FigureTable::new("limits_programs", title, &columns);
    all.for_each(|run| table.push(run.row()));
    table
}

/// Instructions a cycle of a core, program by program: as they were, and as each bound allows.
fn speeds(own: &[Measured], pipelined: &[Measured], bounds: &[NamedBound]) -> FigureTable {
    // Those that a picture has room for: the others are in the next table.
    let shown = |bound: &&NamedBound| match bound.bound {
        RateBound::SerialAcks { .. } | RateBound::PathOfCore { .. } => true,
        RateBound::Writes { bytes_a_store, .. } => bytes_a_store <= numbers::CHARGES[0].0,
        RateBound::OverlappedAcks | RateBound::PathShared { .. } => false,
    };
    let names = bounds.iter().filter(shown).map(|bound| format!("at most: {}", bound.reading));
    let columns: Vec<String> =
        ["program", "base", runs::SCHEME, runs::PIPELINED].map(str::to_owned).into_iter().chain(names).collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = FigureTable::new("limits_ipc", "instructions a cycle of a core, and what bounds allow", &columns);
    for run in own {
        let other = pipelined.iter().find(|other| other.program == run.program).map(|other| other.ipc);
        let mut row = vec![Cell::from(run.program)];
        row.extend([Some(run.ipc_of_base), Some(run.ipc), other].map(ipc_cell));
        row.extend(bounds.iter().filter(shown).map(|bound| ipc_cell(bound.bound.ipc(run.region, run.cores))));
        table.push(row);
    }
    table
}

/// A sentence of the paper, a figure that it stands beside with its overhead, and what bounds both.
struct Claim {
    sentence: &'static str,
    figure: &'static str,
    overhead: Option<f64>,
    read_as: String,
    bound: RateBound,
    cores: BusyCores,
}

/// Which sentence can hold beside which figure: up to which speed of a program under `base`.
fn claims(request: &Request, bounds: &[NamedBound], own: ProtocolNumbers) -> Vec<Claim> {
    const HIDES: &str = "IV-B: LRPO can naturally hide the latency of the ACKs communication";
    let of = |figure: &str, kernel: &str, quantity: &str| PUBLISHED.number(figure, kernel, quantity);
    let acks = bounds.iter().filter(|of| matches!(of.bound, RateBound::SerialAcks { .. }));
    let many = BusyCores { count: f64::from(runs::THREADS[runs::THREADS.len() - 1]), ..own.cores };
    let mut all = Vec::new();
    // Each latency of an ACK, with the cores of Figure 7 and the most of section V-F5.
    for NamedBound { numbers, bound, .. } in acks {
        let read_as = format!("serial, {numbers}");
        all.push(Claim {
            sentence: HIDES,
            figure: "Fig. 7: mean overhead, 8 cores",
            overhead: of("fig7", "mean", "light-wsp"),
            read_as: read_as.clone(),
            bound: *bound,
            cores: own.cores,
        });
        all.push(Claim {
            sentence: HIDES,
            figure: "V-F5: vacation with 64 threads",
            overhead: of("fig16", "vacation", "overhead at 16 to 64 threads"),
            read_as,
            bound: *bound,
            cores: many,
        });
    }
    // Figure 17's machine with Optane, by what a store may be charged.
    if let Some(pmem) = ProtocolNumbers::with(request, CXL_PMEM, &[]) {
        let charged = numbers::CHARGES.iter().filter_map(|(bytes, words)| Some((pmem.writes(*bytes)?, words)));
        all.extend(charged.map(|(bound, words)| Claim {
            sentence: "Table III: Intel Optane, write 2.3 GB/s",
            figure: "V-F6: mean overhead with CXL",
            overhead: of("fig17", "mean", "overhead at most"),
            read_as: format!("a device a controller, {words}"),
            bound,
            cores: pmem.cores,
        }));
    }
    // "On-chip network" does not say whose path it is.
    for (read_as, bound) in [("of each core", own.path_of_core()), ("of all cores together", own.path_shared())] {
        all.push(Claim {
            sentence: "Table I: persist path, 4 GB/s bandwidth on-chip network",
            figure: "Fig. 7: mean overhead, 8 cores",
            overhead: of("fig7", "mean", "light-wsp"),
            read_as: read_as.to_owned(),
            bound,
            cores: own.cores,
        });
    }
    all
}

/// The machine of Figure 17 with Optane.
const CXL_PMEM: &str = "cxl-pmem-cpu";

fn sentences(claims: &[Claim], with_threads: &[&Measured]) -> FigureTable {
    let columns =
        ["sentence", "beside", "published overhead", "read as", "holds up to this IPC a core under base", "ours above"];
    let title = "which sentence can hold beside which figure, with regions as large as the paper's";
    let mut table = FigureTable::new("limits_sentences", title, &columns);
    for Claim { sentence, figure, overhead, read_as, bound, cores } in claims {
        // A program that loses so much is as fast as the bound at the most.
        let most = region_of_paper().and_then(|region| Some(bound.ipc(region, *cores)? * (1.0 + (*overhead)?)));
        let above = most.map(|most| with_threads.iter().filter(|run| run.ipc_of_base > most).count());
        let above = above.map(|above| format!("{above} of {}", with_threads.len()));
        table.push(vec![
            Cell::from(*sentence),
            Cell::from(*figure),
            overhead.map_or(Cell::None, Cell::Share),
            Cell::from(read_as.as_str()),
            ipc_cell(most),
            above.map_or(Cell::None, Cell::Text),
        ]);
    }
    table
}

/// No run is above a bound of its own parameters.
fn kept<'m>(all: impl Iterator<Item = &'m Measured>) -> Ask {
    let shares = all.flat_map(|run| {
        let named = ["serial ACKs", "its paths", "PMEM"].into_iter().zip(run.shares);
        named.filter_map(|(what, share)| Some((format!("{} ({}), {what}", run.program, run.commit), share?)))
    });
    ask::within_bounds(shares.max_by(|a, b| a.1.total_cmp(&b.1)))
}

/// The finding.
pub(super) fn finding(request: &Request, runs: &Runs<'_>) -> Finding {
    let measured = |of: &runs::Variant| {
        let programs = runs::programs(request).into_iter();
        let run = |name| Measured::of(name, runs.outcome(&of.base(name))?, runs.outcome(&of.run(name))?);
        programs.filter_map(run).collect::<Vec<_>>()
    };
    let own = measured(&runs::default());
    let pipelined = measured(&runs::pipelined());
    let with_threads: Vec<&Measured> = own.iter().filter(|run| run.cores.count > 1.0).collect();
    let bounds = numbers::readings(request);
    let Some(numbers) = ProtocolNumbers::with(request, &request.machine, &[]) else {
        return Finding { unmeasured: Some("the machine has no CPU cores"), ..Finding::default() };
    };
    // Those of the run's own parameters: under a reading they are that reading's.
    let hidden: Vec<(&'static str, f64, f64)> = with_threads
        .iter()
        .filter_map(|run| Some((run.program, run.ipc_of_base, run.acks.ipc(run.region, run.cores)?)))
        .collect();
    let mean = geometric_mean(with_threads.iter().map(|run| run.ipc_of_base));
    let needed = region_of_paper().zip(mean).map(|(region, ipc)| 1.0 / numbers.cores.regions_ns(ipc, region));
    let all = || own.iter().chain(&pipelined);
    let mut notes = vec![LABEL.to_owned(), MEANING.to_owned(), MERGED.to_owned()];
    notes.extend(needed.map(|ns| {
        format!(
            "eight cores at the speed that our programs with threads have under base end one of the paper's regions every {ns:.1} \
             ns: serial ACKs that take longer slow them"
        )
    }));
    Finding {
        tables: vec![
            speeds(&own, &pipelined, &bounds),
            readings(&bounds, numbers.cores, &with_threads),
            programs(all()),
            sentences(&claims(request, &bounds, numbers), &with_threads),
        ],
        asks: vec![kept(all()), ask::hidden_acks(&hidden)],
        notes,
        ..Finding::default()
    }
}

/// What the columns mean.
const MEANING: &str = "IPC is the program's, without what regions insert, of the cores that have a thread; a program with threads \
     that is faster under base than a bound loses the difference at least";
/// What the bounds of writes leave out.
const MERGED: &str = "stores to one line that wait together in a write queue are one write: a program whose stores merge is less \
     bound by PMEM than its stores a region say; the share of PMEM is of bytes that were written";

/// Speeds as bars, a group a program; equal factors are equally high.
pub(super) fn picture(tables: &[FigureTable]) -> Drawing {
    let table = &tables[0];
    let value =
        |cell: &Cell| if let Cell::Number(value, _) = cell { Some(*value).filter(|ipc| *ipc > 0.0) } else { None };
    let bars = |at: usize| table.rows.iter().map(|row| Bar { value: value(&row[at]), ..Bar::default() }).collect();
    let series = table.columns.iter().enumerate().skip(1).map(|(at, name)| BarSeries::new(name, bars(at)));
    GroupedBars {
        groups_name: String::new(),
        sheet: Sheet::two_columns().height(180.0).better(Better::Higher),
        axis: Axis::new("instructions a cycle of a core", "").scale(Scale::Log10),
        groups: table.rows.iter().map(|row| row[0].shown()).collect(),
        series: series.collect(),
        baseline: Baseline::None,
        mean: Mean::None,
        cut_off: None,
    }
    .into()
}
