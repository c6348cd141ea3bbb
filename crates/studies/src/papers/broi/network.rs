//! Figures 4, 12 and 13: clients that persist over the network, with every epoch acknowledged before the next
//! is posted (Sync) or with the last alone (BSP).
//!
//! Throughput is that of all clients, each over its own time. What a transaction persists and how long a
//! client computes is chosen, and the same for all mixes: the ratio follows from these, so that a table
//! varies them. The network is calibrated to Figure 4, which is an input and no evidence. Nothing else of it
//! is: the paper measured clients of real machines, with delays for the network.

use super::ask;
use super::published::PUBLISHED;
use super::runs::{self, COMPUTE_US, ELEMENTS, EPOCHS, PROTOCOLS, SWEPT};
use crate::papers::{Cell, FigureTable, Finding, Request, Run, Runs};
use durawarp_plot::geometric_mean;
use durawarp_simulation::outcome::{Outcome, ratio};

/// What to know of all of them.
const CHOSEN: &str = "epochs of a transaction, their bytes and the clients' computing are chosen (6 of 512 B, the paper's own example, and \
     5 us), the same for all mixes: the paper gives none of them";

/// A counter of each client.
fn of_clients<'o>(outcome: &'o Outcome, name: &str) -> impl Iterator<Item = u64> + use<'o> {
    let table = outcome.counters.iter().find(|table| table.kind == "client");
    let column = table.and_then(|table| table.names.iter().position(|own| own == name));
    let rows = table.map_or(&[][..], |table| &table.rows[..]);
    rows.iter().filter_map(move |row| Some(row[column?]))
}

/// Millions of transactions a second, of all clients.
fn throughput(outcome: &Outcome) -> f64 {
    let each = of_clients(outcome, "transactions").zip(of_clients(outcome, "busy_ns"));
    each.map(|(transactions, ns)| ratio(transactions, ns) * 1e3).sum()
}

/// Mean time to persist a transaction, in us.
fn latency(outcome: &Outcome) -> f64 {
    let total = |name| of_clients(outcome, name).sum::<u64>();
    ratio(total("latency_ns"), total("writes")) / 1e3
}

/// A value under each protocol, and that under BSP over that under Sync.
struct Gain {
    each: [Option<f64>; 2],
    ratio: Option<f64>,
}

impl Gain {
    fn of(runs: &Runs<'_>, run: impl Fn(&'static str) -> Run, value: fn(&Outcome) -> f64) -> Gain {
        let each = PROTOCOLS.map(|protocol| runs.outcome(&run(protocol)).map(value));
        let ratio = each[0].zip(each[1]).filter(|(sync, _)| *sync > 0.0).map(|(sync, bsp)| bsp / sync);
        Gain { each, ratio }
    }
}

/// Figure 4.
pub(super) fn calibration(_: &Request, runs: &Runs<'_>) -> Finding {
    let columns = ["server", "sync over bsp", "us to persist, sync", "us to persist, bsp"];
    let mut table = FigureTable::new("fig4", "a transaction of 6 epochs of 512 B, of one client alone", &columns);
    let of = |network_alone| Gain::of(runs, |protocol| runs::alone(protocol, network_alone), latency);
    let (network, server) = (of(true), of(false));
    let over = |gain: &Gain| gain.ratio.map(|ratio| 1.0 / ratio);
    for (name, gain) in [("none: the network alone", &network), ("with its NVRAM", &server)] {
        let cells = [over(gain), gain.each[0], gain.each[1]].map(Cell::number);
        table.push([vec![Cell::from(name)], cells.to_vec()].concat());
    }
    let published = PUBLISHED.number("fig4", "6 epochs of 512 B", "round trips fewer");
    table.push(vec![Cell::from("published"), Cell::number(published), Cell::None, Cell::None]);
    let share = network.each[0].zip(server.each[0]).map(|(network, whole)| network / whole);
    // Shown, and not asked: both follow from what was chosen.
    let share = share.map_or(Cell::None, |share| Cell::Number(share * 100.0, 1));
    let mut trips =
        FigureTable::new("fig4_trips", "round trips of the time to persist under sync, %", &["ours", "published"]);
    trips.push(vec![share, Cell::from("more than 90")]);
    let notes = [
        "CALIBRATED, no evidence: latency and bandwidth of the network were chosen for these two numbers (network.latency_ns, \
         network.mb_s)",
        "the network alone: NVRAM of which no access takes time; what is left is the way to the controller and its bus",
    ];
    Finding {
        tables: vec![table, trips],
        unmeasured: Some("latency and bandwidth of the network were chosen for these numbers"),
        notes: notes.map(str::to_owned).to_vec(),
        ..Finding::default()
    }
}

/// Figure 12.
pub(super) fn mixes(request: &Request, runs: &Runs<'_>) -> Finding {
    let columns = [
        "workload",
        "bsp over sync",
        "published",
        "sync (M transactions/s)",
        "bsp (M transactions/s)",
        "sync (us to persist)",
        "bsp (us to persist)",
    ];
    let mut table = FigureTable::new("fig12", "transactions of clients a second", &columns);
    let mut bars = Vec::new();
    for mix in runs::mixes(request) {
        let run = |protocol| runs::remote(mix, protocol);
        let (gain, times) = (Gain::of(runs, run, throughput), Gain::of(runs, run, latency));
        let name = mix.trim_end_matches("_remote");
        let published = PUBLISHED.number("fig12", name, "BSP over Sync");
        let numbers = [gain.ratio, published, gain.each[0], gain.each[1], times.each[0], times.each[1]];
        table.push([vec![Cell::from(name)], numbers.map(Cell::number).to_vec()].concat());
        bars.push((name, gain.ratio));
    }
    if bars.is_empty() {
        return Finding::default();
    }
    // The paper's mean is of its abstract, which does not say how it averages.
    let all: Option<Vec<f64>> = bars.iter().map(|(_, gain)| *gain).collect();
    let mean = all.and_then(geometric_mean);
    let headline = PUBLISHED.number("fig12", "mean", "BSP over Sync");
    let means = [vec![Cell::from("mean"), Cell::number(mean), Cell::number(headline)], vec![Cell::None; 4]];
    table.push(means.concat());
    let notes = [
        CHOSEN,
        "ctree and hashmap insert in every transaction: with the same transaction they are the same mix",
        "mean: geometric; the paper's 1.93 is that of its abstract",
    ];
    let asks = ask::mixes(&bars, mean);
    let tables = vec![table, swept(runs)];
    Finding { tables, asks, notes: notes.map(str::to_owned).to_vec(), ..Finding::default() }
}

/// What is chosen, varied.
fn swept(runs: &Runs<'_>) -> FigureTable {
    let epochs = EPOCHS.map(|epochs| format!("{epochs} epochs"));
    let columns: Vec<&str> = ["computing (us)"].into_iter().chain(epochs.iter().map(String::as_str)).collect();
    let title = format!("{}: bsp over sync by what is chosen", SWEPT.trim_end_matches("_remote"));
    let mut table = FigureTable::new("fig12_chosen", &title, &columns);
    for us in COMPUTE_US {
        let gain = |epochs| Gain::of(runs, |protocol| runs::varied(protocol, us, epochs), throughput).ratio;
        table.push([vec![Cell::Count(us.into())], EPOCHS.map(|epochs| Cell::number(gain(epochs))).to_vec()].concat());
    }
    table
}

/// Figure 13.
pub(super) fn elements(request: &Request, runs: &Runs<'_>) -> Finding {
    if !runs::mixes(request).any(|mix| mix == SWEPT) {
        return Finding::default();
    }
    let columns = ["bytes of an epoch", "bsp over sync", "sync (M transactions/s)", "bsp (M transactions/s)"];
    let mut table = FigureTable::new("fig13", "hashmap by size of an element", &columns);
    let mut points = Vec::new();
    for bytes in ELEMENTS {
        let Gain { each, ratio } = Gain::of(runs, |protocol| runs::sized(protocol, bytes), throughput);
        points.push((bytes, ratio));
        let numbers = [ratio, each[0], each[1]].map(Cell::number);
        table.push([vec![Cell::Count(bytes.into())], numbers.to_vec()].concat());
    }
    let notes =
        [CHOSEN.to_owned(), "the paper's text has no numbers: effective from 128 to 4096 B, less beyond".to_owned()];
    Finding { tables: vec![table], asks: ask::elements(&points), notes: notes.to_vec(), ..Finding::default() }
}
