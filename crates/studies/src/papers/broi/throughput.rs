//! Section III's motivation and Figures 9 to 11: what the five programs came to under `epoch` and `broi`,
//! alone and beside clients.
//!
//! Every time is that of the whole program: the structure is filled and checked by one thread before and
//! after the operations, as the paper too divides by the time of "the whole benchmarks execution". Memory
//! throughput is of bytes read from and written to NVM devices; a write has the bytes that stores changed.
//! Means of ratios are geometric; the paper does not say how it averages.

use super::ask;
use super::published::PUBLISHED;
use super::runs::{self, CORES, HARTS, SCHEMES};
use crate::papers::{Cell, FigureTable, Finding, Request, Run, Runs};
use durawarp_plot::geometric_mean;
use durawarp_simulation::outcome::{Outcome, ratio};

/// What to know when reading Figures 9 to 11.
const WHOLE: &str = "times are of the whole program: one thread fills and checks the structure before and after the operations, \
     where the schemes differ little";

/// Buckets that have a lock in common, as in `workloads/hash/hash.c`.
const BUCKETS_A_LOCK: u32 = 8;

/// What the hybrid scenario is where clients do not wait.
const OPEN: &str = "open: beside 4 clients that begin a transaction every 13 us, however many are under way, as traces of \
     remote requests do that the paper replays; chosen: what clients that wait begin beside hash under epoch at default";

/// What the hybrid scenario is.
const HYBRID: &str = "hybrid: beside 4 clients of the machine (65 % of transactions write 6 epochs of 512 B under BSP, after 5 us of \
     computing), which persist as long as the program runs";

fn count(outcome: &Outcome, kind: &str, name: &str) -> u64 {
    outcome.count_of(kind, name).unwrap_or(0)
}

fn of_scheme(outcome: &Outcome, name: &str) -> u64 {
    outcome.scheme_counters.get(name).copied().unwrap_or(0)
}

/// Until program and clients are done.
fn ns(outcome: &Outcome) -> f64 {
    outcome.time.ps as f64 / 1e3
}

/// Until the program is over.
fn program_ns(outcome: &Outcome) -> f64 {
    let ended = outcome.process.as_ref().and_then(|process| process.ended);
    ended.map_or_else(|| ns(outcome), |ended| ended.ps as f64 / 1e3)
}

/// Millions of operations a second.
fn mops(outcome: &Outcome) -> f64 {
    count(outcome, "core", "operations") as f64 / program_ns(outcome).max(1.0) * 1e3
}

/// Bytes of NVM a nanosecond, which are GB a second.
fn gb_s(outcome: &Outcome) -> f64 {
    let bytes = ["nvm_read_bytes", "nvm_written_bytes"].map(|name| count(outcome, "memory_controller", name));
    bytes.iter().sum::<u64>() as f64 / ns(outcome).max(1.0)
}

/// Rows opened for each access of memory.
fn opened(outcome: &Outcome) -> f64 {
    let [rows, accesses] = ["activates", "column_commands"].map(|name| count(outcome, "memory_controller", name));
    ratio(rows, accesses)
}

/// A program alone, or beside clients.
#[derive(Clone, Copy)]
struct Scenario {
    name: &'static str,
    /// What the paper calls it.
    published: &'static str,
    run: fn(&'static str, &'static str) -> Run,
}

const SCENARIOS: [Scenario; 3] = [
    Scenario { name: "local", published: "local", run: runs::local },
    Scenario { name: "hybrid", published: "hybrid", run: runs::hybrid },
    Scenario { name: "open", published: "hybrid", run: runs::open },
];

/// Both schemes' values of a program.
fn pair(runs: &Runs<'_>, of: Scenario, program: &'static str, value: fn(&Outcome) -> f64) -> [Option<f64>; 2] {
    SCHEMES.map(|scheme| runs.outcome(&(of.run)(program, scheme)).map(value))
}

/// What a figure divides.
#[derive(Clone, Copy)]
struct Quantity {
    figure: &'static str,
    title: &'static str,
    unit: &'static str,
    value: fn(&Outcome) -> f64,
}

/// BROI over Epoch by program, with a table of both; the means where all are there.
struct Ratios {
    bars: Vec<(&'static str, Option<f64>)>,
    mean: Option<f64>,
    /// Of the values themselves.
    means: [Option<f64>; 2],
    table: FigureTable,
}

fn mean_of(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.collect::<Option<Vec<f64>>>().and_then(geometric_mean)
}

impl Ratios {
    fn of(request: &Request, runs: &Runs<'_>, of: Scenario, what: Quantity) -> Self {
        let Quantity { figure, title, unit, value } = what;
        let [epoch, broi] = SCHEMES.map(|scheme| format!("{scheme} ({unit})"));
        let name = if of.name == SCENARIOS[0].name { figure.to_owned() } else { format!("{figure}_{}", of.name) };
        let title = format!("{title}, {}", of.name);
        let mut table = FigureTable::new(&name, &title, &["program", "broi over epoch", &epoch, &broi]);
        let (mut bars, mut values) = (Vec::new(), Vec::new());
        for program in runs::programs(request) {
            let [epoch, broi] = pair(runs, of, program, value);
            let gain = epoch.zip(broi).filter(|(epoch, _)| *epoch > 0.0).map(|(epoch, broi)| broi / epoch);
            table.push(vec![Cell::from(program), Cell::number(gain), Cell::number(epoch), Cell::number(broi)]);
            bars.push((program, gain));
            values.push([epoch, broi]);
        }
        let mean = mean_of(bars.iter().map(|(_, gain)| *gain));
        let means = [0, 1].map(|scheme| mean_of(values.iter().map(|values| values[scheme])));
        table.push([vec![Cell::from("mean")], [mean, means[0], means[1]].map(Cell::number).to_vec()].concat());
        let published = PUBLISHED.number(figure, "mean", of.published);
        table.push(vec![Cell::from("mean, published"), Cell::number(published), Cell::None, Cell::None]);
        Ratios { bars, mean, means, table }
    }
}

/// Section III.
pub(super) fn motivation(request: &Request, runs: &Runs<'_>) -> Finding {
    let columns = ["program", "requests", "% stalled", "entries", "% with conflicts between threads", "banks busy"];
    let mut table =
        FigureTable::new("motivation", "requests under epoch that their banks and other threads stall", &columns);
    let outcomes: Vec<_> =
        runs::programs(request).map(|program| (program, runs.outcome(&runs::local(program, SCHEMES[0])))).collect();
    let names = [
        "persist_requests",
        "persist_bank_stalled",
        "persist_entries",
        "persist_fence_entries",
        "persist_dependent_entries",
        "persist_banks_summed",
        "persist_issues",
    ];
    // A row a program, then all requests together: the paper's share is of all.
    let mut all = [0; 7];
    let mut row = |name: &str, [requests, stalled, stores, fences, dependent, banks, issues]: [u64; 7]| {
        table.push(vec![
            Cell::from(name),
            Cell::Count(requests),
            Cell::Number(ratio(stalled, requests) * 100.0, 1),
            Cell::Count(stores + fences),
            Cell::Number(ratio(dependent, stores + fences) * 100.0, 2),
            Cell::Number(ratio(banks, issues), 2),
        ]);
    };
    for (program, outcome) in &outcomes {
        if let Some(outcome) = outcome {
            let counts = names.map(|name| of_scheme(outcome, name));
            row(program, counts);
            all.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }
    row("all", all);
    let published = |quantity| PUBLISHED.number("motivation", "all", quantity).map(|share| share * 100.0);
    let [stalled, conflicts] =
        ["requests stalled by bank conflicts", "requests with conflicts between threads"].map(published);
    let (stalled, conflicts) = (Cell::number(stalled), Cell::number(conflicts));
    table.push(vec![Cell::from("all, published"), Cell::None, stalled, Cell::None, conflicts, Cell::None]);
    // An ask is of all programs that were wanted, or of none.
    let whole = !outcomes.is_empty() && outcomes.iter().all(|(_, outcome)| outcome.is_some());
    let stalled = (whole && all[0] > 0).then(|| ratio(all[1], all[0]));
    let (sizes, rare) = conflicts_by_size(runs);
    let notes = [
        "stalled: handed over, or ready, while the bank had another request in the write queue or at its device",
        "conflicts between threads: entries of persist buffers, fences included, behind a store of another hart that was not \
         durable; threads share structures here and take locks, at these sizes few of them. The published share is that of \
         applications in other work (section IV-C1): of its own programs the paper has none, so that nothing is asked of ours \
         by profile, but of a table in which threads seldom meet",
    ];
    let tables = if request.kernels.contains(&runs::SCALED) { vec![table, sizes] } else { vec![table] };
    Finding {
        tables,
        asks: ask::motivation(stalled, rare),
        notes: notes.map(str::to_owned).to_vec(),
        ..Finding::default()
    }
}

/// Entries of persist buffers of hash's operations, and of these such as wait for other threads, by keys and
/// locks; the share of the last size.
fn conflicts_by_size(runs: &Runs<'_>) -> (FigureTable, Option<f64>) {
    let columns = ["keys", "locks", "entries", "behind other threads", "%"];
    let title = "entries of hash's operations alone under epoch, 8 threads, by keys and locks";
    let mut table = FigureTable::new("motivation_sizes", title, &columns);
    let mut last = None;
    for sizes in runs::CONFLICTING {
        let counted = |operations| {
            let outcome = runs.outcome(&runs::conflicting(sizes, operations))?;
            let [stores, fences, dependent] = ["persist_entries", "persist_fence_entries", "persist_dependent_entries"]
                .map(|name| of_scheme(outcome, name));
            Some([stores + fences, dependent])
        };
        // What one thread does before and after the operations is in both runs.
        let counts = counted(true).zip(counted(false));
        let own = counts.map(|(with, without)| [0, 1].map(|at| with[at].saturating_sub(without[at])));
        last = own.filter(|[entries, _]| *entries > 0).map(|[entries, dependent]| ratio(dependent, entries));
        let [keys, buckets] = sizes;
        let mut row = [keys, buckets / BUCKETS_A_LOCK].map(|count| Cell::Count(count.into())).to_vec();
        row.extend([0, 1].map(|at| Cell::count(own.map(|own| own[at]))));
        row.push(last.map_or(Cell::None, |share| Cell::Number(share * 100.0, 2)));
        table.push(row);
    }
    (table, last)
}

/// Figure 9.
pub(super) fn memory(request: &Request, runs: &Runs<'_>) -> Finding {
    let what = Quantity { figure: "fig9", title: "memory throughput", unit: "GB/s", value: gb_s };
    let [local, hybrid, open] = SCENARIOS.map(|of| Ratios::of(request, runs, of, what));
    let notes = [
        WHOLE,
        "bytes read from and written to NVM; a write has the bytes that stores changed, not its whole line",
        HYBRID,
        OPEN,
        "hybrid: until the last transaction that was begun before the program's end is committed",
    ];
    let rows = [SCENARIOS[0], SCENARIOS[1]].map(|of| {
        let each: Vec<_> = runs::programs(request).map(|program| pair(runs, of, program, opened)).collect();
        [0, 1].map(|scheme| mean_of(each.iter().map(|rows| rows[scheme])))
    });
    let mut asks = vec![ask::memory(&local.bars, local.mean)];
    asks.extend(ask::hybrid_gains(local.mean, hybrid.mean, open.mean));
    asks.extend(ask::hybrid_throughput([local.means, hybrid.means], rows));
    let tables = vec![local.table, hybrid.table, open.table];
    Finding { tables, asks, notes: notes.map(str::to_owned).to_vec(), ..Finding::default() }
}

/// Figure 10.
pub(super) fn operations(request: &Request, runs: &Runs<'_>) -> Finding {
    let what = Quantity { figure: "fig10", title: "operational throughput", unit: "Mops", value: mops };
    let [local, hybrid, open] = SCENARIOS.map(|of| Ratios::of(request, runs, of, what));
    let of_broi = |program| (program, pair(runs, SCENARIOS[0], program, mops)[1]);
    let of_broi: Vec<_> = runs::programs(request).map(of_broi).collect();
    let mut asks = ask::operations(&local.bars, local.mean, &of_broi);
    asks.extend(ask::hybrid_gains(local.mean, hybrid.mean, open.mean));
    let notes = [WHOLE, HYBRID, OPEN, "hybrid: operations until the program's own end"];
    let tables = vec![local.table, hybrid.table, open.table];
    Finding { tables, asks, notes: notes.map(str::to_owned).to_vec(), ..Finding::default() }
}

/// Millions of operations a second, of the time beyond that of the same program without operations.
fn alone(with: &Outcome, without: &Outcome) -> Option<f64> {
    let ns = ns(with) - ns(without);
    (ns > 0.0).then(|| count(with, "core", "operations") as f64 / ns * 1e3)
}

/// Banks that had a request under way when one was handed over, as a share of all.
fn busy(outcome: &Outcome) -> f64 {
    let banks = outcome.machine.parameters.get("nvm.banks").and_then(|of| of.value.as_u64()).unwrap_or(1);
    ratio(of_scheme(outcome, "persist_banks_summed"), of_scheme(outcome, "persist_issues") * banks.max(1))
}

/// Figure 11.
pub(super) fn scaling(request: &Request, runs: &Runs<'_>) -> Finding {
    let columns = [
        "cores",
        "threads",
        "epoch",
        "broi",
        "epoch, operations alone",
        "broi, operations alone",
        "broi, % of banks busy",
    ];
    let mut table = FigureTable::new("fig11", "hash on more cores, Mops", &columns);
    let mut points = Vec::new();
    for cores in CORES {
        let of = |scheme, operations| -> Run { runs::scaled(request, scheme, cores, operations) };
        // The whole program, and what of it is not its operations.
        let outcomes = SCHEMES.map(|scheme| runs.outcome(&of(scheme, true)));
        let without = SCHEMES.map(|scheme| runs.outcome(&of(scheme, false)));
        let [epoch, broi] = outcomes.map(|outcome| outcome.map(mops));
        let [epoch_alone, broi_alone] = [0, 1].map(|at| alone(outcomes[at]?, without[at]?));
        let banks = outcomes[1].map(busy);
        points.push((cores, broi.zip(banks).map(|(mops, banks)| [mops, banks])));
        let counts = [cores, cores * HARTS].map(|count| Cell::Count(count.into()));
        let numbers = [epoch, broi, epoch_alone, broi_alone].map(Cell::number);
        let banks = banks.map_or(Cell::None, |share| Cell::Number(share * 100.0, 1));
        table.push([counts.to_vec(), numbers.to_vec(), vec![banks]].concat());
    }
    let notes = [
        WHOLE,
        "operations alone: those of the time beyond the same run without operations",
        "BROI entries are as many as harts; the operations of a thread, keys and buckets are the same on all (chosen: the paper's \
         table is in no text)",
        "banks busy: with a request under way when one is handed over, of 8",
    ];
    let tables = if request.kernels.contains(&runs::SCALED) { vec![table] } else { Vec::new() };
    Finding {
        tables,
        asks: vec![ask::scaling(&points)],
        notes: notes.map(str::to_owned).to_vec(),
        ..Finding::default()
    }
}
