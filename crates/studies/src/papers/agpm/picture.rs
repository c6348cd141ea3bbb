//! Drawings of findings, from their tables: Figures 3, 5 and 7 as grouped bars over `base`, Figure 4 as
//! distributions, the selector's reasons as stacked bars.
//!
//! Invariant: nothing is drawn that a table of the finding does not show. Most of the paper's own bars are in
//! no text: where its text has one, or a mean of all 22 kernels, a mark stands at our bar.

use super::super::{Cell, FigureTable};
use super::kernels;
use durawarp_plot::Figure as Drawing;
use durawarp_plot::{
    Axis, Bar, BarSeries, Baseline, Better, Distribution, DistributionRow, GroupedBars, Mean, Sheet, Stack, StackGroup,
    StackedBars,
};

/// Bars above this are drawn broken.
const CUT_OFF: f64 = 4.0;

fn value(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Number(value, _) => Some(*value),
        Cell::Count(count) => Some(*count as f64),
        Cell::Text(_) | Cell::Share(_) | Cell::None => None,
    }
}

fn name(row: &[Cell]) -> &str {
    match row.first() {
        Some(Cell::Text(text)) => text,
        _ => "",
    }
}

/// Rows of kernels, not those of means.
fn of_kernels(table: &FigureTable) -> impl Iterator<Item = &Vec<Cell>> {
    table.rows.iter().filter(|row| kernels::find(name(row)).is_some())
}

/// Bars of the columns for which `wanted` holds, a group a row.
fn bars<'t>(
    rows: impl Iterator<Item = &'t Vec<Cell>> + Clone,
    columns: &[String],
    wanted: impl Fn(&str) -> bool,
) -> (Vec<String>, Vec<BarSeries>) {
    let series = columns.iter().enumerate().filter(|(_, column)| wanted(column)).map(|(at, column)| BarSeries {
        ..BarSeries::new(column, rows.clone().map(|row| Bar { value: value(&row[at]), ..Bar::default() }).collect())
    });
    (rows.clone().map(|row| name(row).to_owned()).collect(), series.collect())
}

/// Figures 3 and 7.
pub(super) fn times(tables: &[FigureTable]) -> Drawing {
    bars_of_times(&tables[0], tables.iter().find(|table| table.name.ends_with("_told"))).into()
}

/// Figure 5.
pub(super) fn traffic(tables: &[FigureTable]) -> Drawing {
    let table = &tables[0];
    let (groups, series) = bars(table.rows.iter(), &table.columns, |column| column.contains(", "));
    let bars = GroupedBars {
        groups_name: String::new(),
        sheet: Sheet::one_column(),
        axis: Axis::new("bytes between L1 and L2 over base", ""),
        groups,
        series,
        baseline: Baseline::Relative("base".to_owned()),
        mean: Mean::None,
        cut_off: Some(CUT_OFF),
    };
    bars.into()
}

/// Figure 4.
pub(super) fn degrees(tables: &[FigureTable]) -> Drawing {
    shares_of_degrees(&tables[0]).into()
}

/// The selector's reasons.
pub(super) fn reasons(tables: &[FigureTable]) -> Drawing {
    shares_of_reasons(&tables[1]).into()
}

/// A bar a kernel with the published reason behind its name; reasons that no period has are left out.
fn shares_of_reasons(table: &FigureTable) -> StackedBars {
    let count = |row: &Vec<Cell>, at: usize| value(&row[at]).unwrap_or(0.0);
    let rows: Vec<&Vec<Cell>> = of_kernels(table).collect();
    let parts: Vec<usize> =
        (3..table.columns.len()).filter(|&at| rows.iter().any(|row| count(row, at) > 0.0)).collect();
    let group = |row: &&Vec<Cell>| {
        let all: f64 = parts.iter().map(|&at| count(row, at)).sum();
        let share = |&at: &usize| (all > 0.0).then(|| count(row, at) / all * 100.0);
        let bars = vec![Stack { name: String::new(), values: parts.iter().map(share).collect() }];
        StackGroup { name: format!("{} ({})", name(row), row[1].shown()), bars }
    };
    StackedBars {
        sheet: Sheet::two_columns().height(160.0),
        axis: Axis::new("periods", "%").range(0.0, 100.0),
        parts: parts.iter().map(|&at| table.columns[at].clone()).collect(),
        groups: rows.iter().map(group).collect(),
        groups_name: "kernel (published reason)".to_owned(),
    }
}

/// Means are arithmetic, as the paper's are. A published mean is of all kernels: beside that of fewer it is
/// not drawn.
fn bars_of_times(table: &FigureTable, told: Option<&FigureTable>) -> GroupedBars {
    let rows: Vec<&Vec<Cell>> = of_kernels(table).collect();
    let scheme = |column: &str| !["kernel", "type", "base"].contains(&column);
    let (groups, mut series) = bars(rows.iter().copied(), &table.columns, scheme);
    let means = table.rows.iter().find(|row| name(row) == "mean, published" && rows.len() == kernels::KERNELS.len());
    for series in &mut series {
        let column = table.columns.iter().position(|column| *column == series.name);
        series.published_mean = means.zip(column).and_then(|(row, at)| value(&row[at]));
        for row in told.into_iter().flat_map(|told| &told.rows).filter(|row| row[1].shown() == series.name) {
            if let Some(group) = groups.iter().position(|group| group == name(row)) {
                series.bars[group].published = value(&row[3]);
            }
        }
    }
    GroupedBars {
        groups_name: String::new(),
        sheet: Sheet::two_columns().height(160.0).better(Better::Lower),
        axis: Axis::new("execution time over base", ""),
        groups,
        series,
        baseline: Baseline::Relative("base".to_owned()),
        mean: Mean::Arithmetic,
        cut_off: Some(CUT_OFF),
    }
}

fn shares_of_degrees(table: &FigureTable) -> Distribution {
    let classes = &table.columns[1..table.columns.len() - 1];
    let row = |row: &Vec<Cell>| DistributionRow {
        name: name(row).to_owned(),
        counts: row[1..=classes.len()].iter().map(value).collect(),
    };
    Distribution {
        sheet: Sheet::two_columns().height(160.0),
        of: "loads and stores".to_owned(),
        class: "line accesses".to_owned(),
        classes: classes.to_vec(),
        rows: of_kernels(table).map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_drawn_and_means_are_not() {
        let mut table = FigureTable::new("fig3", "", &["kernel", "type", "base", "nt-store"]);
        for (kernel, time) in [("ATAX1", 1.5), ("GEMM", 9.0), ("mean", 5.25)] {
            let base = Cell::Number(1.0, 3);
            table.push(vec![Cell::from(kernel), Cell::from("I"), base, Cell::Number(time, 3)]);
        }
        table.push(vec![Cell::from("mean, published"), Cell::from(""), Cell::None, Cell::Number(2.0339, 3)]);
        let mut told = FigureTable::new("fig3_told", "", &["kernel", "scheme", "ours", "published", "off by"]);
        for (kernel, scheme) in [("GEMM", "nt-store"), ("GEMM", "themis"), ("SAD1", "nt-store")] {
            let numbers = [9.0, 3.25].map(|time| Cell::Number(time, 3));
            told.push([vec![Cell::from(kernel), Cell::from(scheme)], numbers.to_vec(), vec![Cell::None]].concat());
        }
        let drawn = bars_of_times(&table, Some(&told));
        assert_eq!(drawn.groups, ["ATAX1", "GEMM"]);
        assert_eq!(drawn.series[0].bars.iter().map(|bar| bar.published).collect::<Vec<_>>(), [None, Some(3.25)]);
        assert_eq!(drawn.series[0].published_mean, None, "two kernels are not 22");
        assert_eq!(drawn.series.len(), 1, "base is the line at 1");
        assert_eq!(drawn.series[0].bars[1].value, Some(9.0));
        let svg = times(&[table.clone(), told]).svg().unwrap();
        assert!(svg.contains("GEMM") && svg.contains("GEMM, nt-store: published 3.25"));
        table.rows =
            kernels::NAMES.map(|kernel| [vec![Cell::from(kernel)], table.rows[0][1..].to_vec()].concat()).into();
        table.push(vec![Cell::from("mean, published"), Cell::from(""), Cell::None, Cell::Number(2.0339, 3)]);
        assert_eq!(bars_of_times(&table, None).series[0].published_mean, Some(2.0339));
    }

    #[test]
    fn periods_are_drawn_as_shares_of_the_reasons_that_there_are() {
        let mut table = FigureTable::new("reasons_periods", "", &["kernel", "published", "periods", "a", "b", "f"]);
        for (kernel, counts) in [("ATAX1", [0, 9, 3]), ("BFS", [0, 0, 0])] {
            let mut row = vec![Cell::from(kernel), Cell::from("b"), Cell::from("complete")];
            row.extend(counts.map(Cell::Count));
            table.push(row);
        }
        let drawn = shares_of_reasons(&table);
        assert_eq!(drawn.parts, ["b", "f"]);
        assert_eq!(drawn.groups[0].name, "ATAX1 (b)");
        assert_eq!(drawn.groups[0].bars[0].values, [Some(75.0), Some(25.0)]);
        assert_eq!(drawn.groups[1].bars[0].values, [None, None], "no period, no share");
        assert!(reasons(&[table.clone(), table]).svg().unwrap().contains("published reason"));
    }

    #[test]
    fn shares_are_drawn_by_class() {
        let mut table = FigureTable::new("fig4", "", &["kernel", "1", "2", "published"]);
        table.push(vec![Cell::from("ATAX1"), Cell::Number(0.75, 3), Cell::Number(0.25, 3), Cell::from("1 or 2")]);
        let drawn = shares_of_degrees(&table);
        assert_eq!((drawn.classes.len(), drawn.rows[0].counts.clone()), (2, vec![Some(0.75), Some(0.25)]));
    }
}
