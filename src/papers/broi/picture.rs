//! Drawings: Figures 9 and 10 as bars over `epoch`, Figure 11 as lines by cores.
//!
//! Invariant: nothing is drawn that the first table of the finding does not show.

use crate::papers::{Cell, FigureTable};
use crate::plot::Figure as Drawing;
use crate::plot::{
    Axis, Bar, BarSeries, Baseline, Better, GroupedBars, LinePoint, LineSeries, Lines, Mean, Scale, Sheet,
};

fn number(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Number(value, _) => Some(*value),
        Cell::Count(count) => Some(*count as f64),
        _ => None,
    }
}

/// BROI over Epoch, a group a program; the published mean as a mark.
pub(super) fn ratios(tables: &[FigureTable]) -> Drawing {
    let table = &tables[0];
    let of_programs: Vec<_> = table.rows.iter().filter(|row| !row[0].shown().starts_with("mean")).collect();
    let published = table.rows.iter().find(|row| row[0] == Cell::from("mean, published"));
    let bars = of_programs.iter().map(|row| Bar { value: number(&row[1]), ..Bar::default() });
    let bars = GroupedBars {
        groups_name: String::new(),
        sheet: Sheet::one_column().better(Better::Higher),
        axis: Axis::new(&format!("{} over epoch", table.title.split(',').next().unwrap_or_default()), ""),
        groups: of_programs.iter().map(|row| row[0].shown()).collect(),
        series: vec![BarSeries {
            published_mean: published.and_then(|row| number(&row[1])),
            ..BarSeries::new("broi", bars.collect())
        }],
        baseline: Baseline::Relative("epoch".to_owned()),
        mean: Mean::Geometric,
        cut_off: None,
    };
    bars.into()
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
