//! Drawings: Figures 9 and 10 as bars over `epoch`, Figure 11 as lines by cores, Figure 12 as bars over Sync,
//! Figure 13 as lines by size.
//!
//! Invariant: nothing is drawn that the tables of the finding do not show.

use crate::papers::{Cell, FigureTable};
use durawarp_plot::Figure as Drawing;
use durawarp_plot::{
    Axis, Bar, BarSeries, Baseline, Better, GroupedBars, LinePoint, LineSeries, Lines, Mean, Scale, Sheet,
};

fn number(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Number(value, _) => Some(*value),
        Cell::Count(count) => Some(*count as f64),
        _ => None,
    }
}

/// What a table has a group for: its rows, but for means.
fn groups(table: &FigureTable) -> impl Iterator<Item = &Vec<Cell>> {
    table.rows.iter().filter(|row| !row[0].shown().starts_with("mean"))
}

/// BROI over Epoch, a group a program and a bar a scenario; the published means as marks.
pub(super) fn ratios(tables: &[FigureTable]) -> Drawing {
    let series = |table: &FigureTable| {
        let (_, scenario) = table.title.split_once(", ").unwrap_or_default();
        let published = table.rows.iter().find(|row| row[0] == Cell::from("mean, published"));
        let bars = groups(table).map(|row| Bar { value: number(&row[1]), ..Bar::default() });
        BarSeries {
            published_mean: published.and_then(|row| number(&row[1])),
            ..BarSeries::new(&format!("broi, {scenario}"), bars.collect())
        }
    };
    let title = tables[0].title.split(',').next().unwrap_or_default();
    let bars = GroupedBars {
        groups_name: String::new(),
        sheet: Sheet::one_column().better(Better::Higher),
        axis: Axis::new(&format!("{title} over epoch"), ""),
        groups: groups(&tables[0]).map(|row| row[0].shown()).collect(),
        series: tables.iter().map(series).collect(),
        baseline: Baseline::Relative("epoch".to_owned()),
        mean: Mean::Geometric,
        cut_off: None,
    };
    bars.into()
}

/// BSP over Sync, a group a mix, with what is published.
pub(super) fn mixes(tables: &[FigureTable]) -> Drawing {
    let table = &tables[0];
    let bar = |row: &Vec<Cell>| Bar { value: number(&row[1]), published: number(&row[2]), ..Bar::default() };
    let mean = table.rows.iter().find(|row| row[0] == Cell::from("mean"));
    let bars = GroupedBars {
        groups_name: String::new(),
        sheet: Sheet::one_column().better(Better::Higher),
        axis: Axis::new(&format!("{} over sync", table.title), ""),
        groups: groups(table).map(|row| row[0].shown()).collect(),
        series: vec![BarSeries {
            published_mean: mean.and_then(|row| number(&row[2])),
            ..BarSeries::new("bsp", groups(table).map(bar).collect())
        }],
        baseline: Baseline::Relative("sync".to_owned()),
        mean: Mean::Geometric,
        cut_off: None,
    };
    bars.into()
}

/// Throughput of clients by bytes of an epoch.
pub(super) fn elements(tables: &[FigureTable]) -> Drawing {
    let table = &tables[0];
    let line = |(name, column): (&str, usize)| {
        let point = |row: &Vec<Cell>| Some(LinePoint { x: number(&row[0])?, y: number(&row[column]), error: None });
        LineSeries::new(name, table.rows.iter().filter_map(point).collect())
    };
    let lines = Lines {
        sheet: Sheet::one_column().better(Better::Higher),
        x: Axis::new("bytes of an epoch", "B").scale(Scale::Log2),
        y: Axis::new("transactions of clients", "M/s"),
        series: [("sync", 2), ("bsp", 3)].map(line).to_vec(),
        ideal: None,
    };
    lines.into()
}

/// Columns of Figure 11 that are lines.
const LINES: std::ops::Range<usize> = 2..6;

/// Operational throughput by cores.
pub(super) fn scaling(tables: &[FigureTable]) -> Drawing {
    let table = &tables[0];
    let series = LINES.map(|column| {
        let point = |row: &Vec<Cell>| Some(LinePoint { x: number(&row[0])?, y: number(&row[column]), error: None });
        LineSeries::new(&table.columns[column], table.rows.iter().filter_map(point).collect())
    });
    let lines = Lines {
        sheet: Sheet::one_column().better(Better::Higher),
        x: Axis::new("cores of 2 threads", "").scale(Scale::Log2),
        y: Axis::new("operational throughput", "Mops"),
        series: series.collect(),
        ideal: None,
    };
    lines.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_a_group_and_means_are_marks() {
        let mut table = FigureTable::new("fig10", "operational throughput, local", &["program", "broi over epoch"]);
        for (name, ratio) in [("hash", 1.25), ("sps", 1.5), ("mean", 1.37), ("mean, published", 1.28)] {
            table.push(vec![Cell::from(name), Cell::Number(ratio, 3)]);
        }
        let drawn = ratios(&[table]);
        let (svg, csv) = (drawn.svg().unwrap(), drawn.csv().unwrap());
        assert!(svg.contains("hash") && svg.contains("sps") && svg.contains("epoch"));
        assert!(csv.contains("1.25") && csv.contains("1.28"), "{csv}");
    }

    #[test]
    fn scenarios_are_bars_of_a_group_and_mixes_have_their_published_gain() {
        let mut local = FigureTable::new("fig9", "memory throughput, local", &["program", "broi over epoch"]);
        local.push(vec![Cell::from("hash"), Cell::Number(1.25, 3)]);
        let mut hybrid = FigureTable::new("fig9_hybrid", "memory throughput, hybrid", &["program", "broi over epoch"]);
        hybrid.push(vec![Cell::from("hash"), Cell::Number(1.75, 3)]);
        let csv = ratios(&[local, hybrid]).csv().unwrap();
        assert!(csv.contains("broi, hybrid") && csv.contains("1.75"), "{csv}");
        let mut table = FigureTable::new("fig12", "transactions", &["workload", "bsp over sync", "published"]);
        table.push(vec![Cell::from("tpcc"), Cell::Number(2.25, 3), Cell::Number(2.5, 3)]);
        let csv = mixes(&[table]).csv().unwrap();
        assert!(csv.contains("2.25") && csv.contains("2.5"), "{csv}");
    }

    #[test]
    fn a_protocol_is_a_line_by_bytes() {
        let mut table = FigureTable::new("fig13", "", &["bytes", "gain", "sync", "bsp"]);
        for bytes in [128, 256] {
            table.push(vec![Cell::Count(bytes), Cell::Number(2.0, 3), Cell::Number(0.5, 3), Cell::Number(1.0, 3)]);
        }
        let csv = elements(&[table]).csv().unwrap();
        assert!(csv.contains("sync") && csv.contains("128") && !csv.contains("gain"), "{csv}");
    }

    #[test]
    fn each_scheme_is_a_line_by_cores() {
        let columns = ["cores", "threads", "epoch", "broi", "epoch, alone", "broi, alone", "banks"];
        let mut table = FigureTable::new("fig11", "", &columns);
        for cores in [2, 4] {
            let numbers = [1.0, 2.0, 3.0, 4.0, 50.0].map(|value| Cell::Number(value, 3));
            table.push([vec![Cell::Count(cores), Cell::Count(cores * 2)], numbers.to_vec()].concat());
        }
        let drawn = scaling(&[table]);
        let csv = drawn.csv().unwrap();
        assert!(csv.contains("broi, alone") && !csv.contains("banks"), "{csv}");
        assert!(drawn.svg().unwrap().contains("Mops"));
    }
}
