//! Drawings of the figures by size: a line a column, times over the baseline.
//!
//! Invariant: nothing is drawn of ours that the first table of the finding does not show. Where the paper's
//! text has the overhead of a line, a value or both ends of a range, these stand beside it; a bound alone
//! ("at most") is in the tables.

use super::published::PUBLISHED;
use crate::papers::{Cell, FigureTable};
use durawarp_plot::Figure as Drawing;
use durawarp_plot::{Axis, Better, LinePoint, LineSeries, Lines, Scale, Sheet};

/// The column of sizes; curves are behind it.
const SIZE: usize = 1;

fn number(cell: &Cell) -> Option<f64> {
    if let Cell::Number(value, _) = cell { Some(*value) } else { None }
}

/// A line a column.
pub(super) fn lines(tables: &[FigureTable]) -> Drawing {
    lines_of(&tables[0]).into()
}

/// Published times of a line over those of the baseline.
fn published(figure: &str, line: &str) -> Vec<f64> {
    let overhead = |quantity: &str| PUBLISHED.number(figure, "B+tree", quantity);
    let ends = || Some(vec![overhead(&format!("{line}_least"))?, overhead(&format!("{line}_most"))?]);
    let all = overhead(line).map(|value| vec![value]).or_else(ends).unwrap_or_default();
    all.into_iter().map(|overhead| 1.0 + overhead).collect()
}

fn lines_of(table: &FigureTable) -> Lines {
    let series = (SIZE + 1..table.columns.len()).map(|column| {
        let point = |row: &Vec<Cell>| Some(LinePoint { x: number(&row[SIZE])?, y: number(&row[column]), error: None });
        let name = &table.columns[column];
        LineSeries {
            published: published(&table.name, name),
            ..LineSeries::new(name, table.rows.iter().filter_map(point).collect())
        }
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
        let mut table = FigureTable::new("fig5", "", &["CTAs", "tree (MB)", "wg", "kr"]);
        table.push(vec![Cell::Count(4), Cell::Number(1.0, 2), Cell::Number(1.1, 3), Cell::None]);
        table.push(vec![Cell::Count(8), Cell::Number(2.0, 2), Cell::Number(1.2, 3), Cell::Number(1.5, 3)]);
        let drawn = lines_of(&table);
        assert_eq!(drawn.series.iter().map(|line| line.name.as_str()).collect::<Vec<_>>(), ["wg", "kr"]);
        assert_eq!(drawn.series[0].points[1], LinePoint { x: 2.0, y: Some(1.2), error: None });
        assert_eq!(drawn.series[1].points[0].y, None);
        let of = |drawn: &Lines| drawn.series.iter().map(|line| line.published.clone()).collect::<Vec<_>>();
        assert_eq!(of(&drawn), [vec![1.08, 1.1], vec![1.25]]);
        let svg = lines(&[table.clone()]).svg().unwrap();
        assert_eq!(svg.matches("class=\"published\"").count(), 3);
        assert!(svg.contains("kr") && drawn.csv().unwrap().contains("\"kr, published\",,1.25,"));
        table.name = "fig6".to_owned();
        assert_eq!(of(&lines_of(&table)), [vec![], Vec::<f64>::new()], "a bound is no value");
    }
}
