//! Drawings of the figures of times: grouped bars over `base`, a group a kernel.
//!
//! Where most bars are above the cut, equal factors are equally high: a cut would break most of them, and one
//! that is raised to the longest leaves the others no height.
//! Invariant: nothing is drawn that the first table of the finding does not show.

use crate::papers::{Cell, FigureTable};
use durawarp_plot::Figure as Drawing;
use durawarp_plot::{Axis, Bar, BarSeries, Baseline, Better, GroupedBars, Mean, Scale, Sheet};

/// Bars above this are drawn broken, unless most are.
const CUT_OFF: f64 = 4.0;

/// A series a column behind the kernels' names. The row of means is drawn as such, published means as marks.
pub(super) fn bars(tables: &[FigureTable]) -> Drawing {
    bars_of(&tables[0], "execution time over base (GPU port)").into()
}

/// Published means are of the paper's programs: they stand beside ours whatever kernels were run.
pub(crate) fn bars_of(table: &FigureTable, axis: &str) -> GroupedBars {
    let is_mean = |row: &&Vec<Cell>| row[0].shown().starts_with("mean");
    let rows: Vec<&Vec<Cell>> = table.rows.iter().filter(|row| !is_mean(row)).collect();
    let published = table.rows.iter().find(|row| row[0] == Cell::from("mean, published"));
    let value = |cell: &Cell| if let Cell::Number(value, _) = cell { Some(*value) } else { None };
    let series = table.columns.iter().enumerate().skip(1).map(|(at, column)| BarSeries {
        published_mean: published.and_then(|row| value(&row[at])),
        ..BarSeries::new(column, rows.iter().map(|row| Bar { value: value(&row[at]), ..Bar::default() }).collect())
    });
    let series: Vec<BarSeries> = series.collect();
    let values = || series.iter().flat_map(|series| &series.bars).filter_map(|bar| bar.value);
    let scale = if most_are_cut(values()) { Scale::Log10 } else { Scale::Linear };
    GroupedBars {
        groups_name: String::new(),
        sheet: Sheet::two_columns().height(160.0).better(Better::Lower),
        axis: Axis::new(axis, "").scale(scale),
        groups: rows.iter().map(|row| row[0].shown()).collect(),
        series,
        baseline: Baseline::Relative("base".to_owned()),
        mean: Mean::Geometric,
        cut_off: Some(CUT_OFF),
    }
}

/// More than half of these are above the cut.
fn most_are_cut(values: impl Iterator<Item = f64> + Clone) -> bool {
    values.clone().filter(|value| *value > CUT_OFF).count() * 2 > values.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_is_logarithmic_where_most_bars_are_above_the_cut() {
        let drawn = |times: [f64; 4]| {
            let mut table = FigureTable::new("fig16", "", &["program", "8 threads", "64 threads"]);
            for (program, times) in [("is", &times[..2]), ("radix", &times[2..])] {
                table.push(
                    [vec![Cell::from(program)], times.iter().map(|time| Cell::Number(*time, 3)).collect()].concat(),
                );
            }
            bars_of(&table, "")
        };
        let scale = |times| drawn(times).axis.scale;
        assert_eq!(scale([3.0, 25.0, 4.1, 4.2]), Scale::Log10);
        assert_eq!(scale([3.0, 25.0, 4.0, 4.2]), Scale::Linear, "half is not most");
    }

    #[test]
    fn a_kernel_is_a_group_and_the_row_of_means_is_none() {
        let mut table = FigureTable::new("fig15", "", &["kernel", "path 1 GB/s", "path 4 GB/s"]);
        for (kernel, times) in [("atax", [1.5, 1.25]), ("bfs", [9.0, 1.0]), ("mean", [3.67, 1.12])] {
            table.push([vec![Cell::from(kernel)], times.map(|time| Cell::Number(time, 3)).to_vec()].concat());
        }
        let drawn = bars_of(&table, "");
        assert_eq!(drawn.groups, ["atax", "bfs"]);
        assert_eq!(drawn.series.iter().map(|series| series.bars[1].value).collect::<Vec<_>>(), [Some(9.0), Some(1.0)]);
        assert!(bars(&[table.clone()]).svg().unwrap().contains("path 4 GB/s"));
        table.push(vec![Cell::from("mean, published"), Cell::Number(1.09, 3), Cell::None]);
        let published = bars_of(&table, "");
        assert_eq!(published.groups, drawn.groups);
        assert_eq!(published.series.iter().map(|s| s.published_mean).collect::<Vec<_>>(), [Some(1.09), None]);
    }
}
