//! Drawings of the figures by size: a line a column, times over the baseline.
//!
//! Invariant: nothing is drawn that the first table of the finding does not show.

use crate::report::figure::Figure as Drawing;
use crate::report::figure::{Axis, Better, LinePoint, LineSeries, Lines, Scale, Sheet};
use crate::reproduce::{Cell, Table};

/// The column of sizes; curves are behind it.
const SIZE: usize = 1;

fn number(cell: &Cell) -> Option<f64> {
    if let Cell::Number(value, _) = cell { Some(*value) } else { None }
}

/// A line a column.
pub(super) fn lines(tables: &[Table]) -> Drawing {
    lines_of(&tables[0]).into()
}

fn lines_of(table: &Table) -> Lines {
    let series = (SIZE + 1..table.columns.len()).map(|column| {
        let point = |row: &Vec<Cell>| Some(LinePoint { x: number(&row[SIZE])?, y: number(&row[column]), error: None });
        LineSeries { name: table.columns[column].clone(), points: table.rows.iter().filter_map(point).collect() }
    });
    Lines {
        sheet: Sheet::one_column().better(Better::Lower),
        x: Axis::new("tree", "MB").scale(Scale::Log2),
        y: Axis::new("time over DRAM without barriers", ""),
        series: series.collect(),
        ideal: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_behind_the_size_is_a_line_and_a_gap_stays_one() {
        let mut table = Table::new("fig5", "", &["CTAs", "tree (MB)", "wg", "kr"]);
        table.push(vec![Cell::Count(4), Cell::Number(1.0, 2), Cell::Number(1.1, 3), Cell::None]);
        table.push(vec![Cell::Count(8), Cell::Number(2.0, 2), Cell::Number(1.2, 3), Cell::Number(1.5, 3)]);
        let drawn = lines_of(&table);
        assert_eq!(drawn.series.iter().map(|line| line.name.as_str()).collect::<Vec<_>>(), ["wg", "kr"]);
        assert_eq!(drawn.series[0].points[1], LinePoint { x: 2.0, y: Some(1.2), error: None });
        assert_eq!(drawn.series[1].points[0].y, None);
        assert!(lines(&[table]).svg().unwrap().contains("kr"));
    }
}
