//! A table of a reproduction: numbers with their precision, as text and as comma-separated values.
//!
//! In text a number has as many digits as it deserves; in CSV it is exact.

use comfy_table::{CellAlignment, presets};

use crate::report;
use durawarp_plot::Tidy;

/// A cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    Count(u64),
    /// A number, with digits after the point for people.
    Number(f64, usize),
    /// A share of 1.
    Share(f64),
    /// Nothing is known.
    None,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_owned())
    }
}

impl Cell {
    /// A number that may not be there, for people to three digits.
    pub fn number(value: Option<f64>) -> Self {
        value.map_or(Cell::None, |value| Cell::Number(value, 3))
    }

    /// A count that may not be there.
    pub fn count(value: Option<u64>) -> Self {
        value.map_or(Cell::None, Cell::Count)
    }

    /// How far `ours` is from `published`, as a share of it.
    pub(crate) fn deviation(ours: Option<f64>, published: Option<f64>) -> Self {
        match (ours, published) {
            (Some(ours), Some(published)) if published != 0.0 => Cell::Share(ours / published - 1.0),
            _ => Cell::None,
        }
    }

    /// For people.
    pub fn shown(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Count(count) => report::count(*count),
            Cell::Number(value, digits) => format!("{value:.digits$}"),
            Cell::Share(share) => format!("{:+.2} %", share * 100.0),
            Cell::None => "-".to_owned(),
        }
    }

    /// For programs: exact.
    fn exact(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Count(count) => count.to_string(),
            Cell::Number(value, _) | Cell::Share(value) => value.to_string(),
            Cell::None => String::new(),
        }
    }
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureTable {
    /// Name of its file, without an ending.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Names of the columns, units included.
    pub columns: Vec<String>,
    /// Rows, each with a cell a column.
    pub rows: Vec<Vec<Cell>>,
}

impl FigureTable {
    /// An empty one.
    pub fn new(name: &str, title: &str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        FigureTable { name: name.to_owned(), title: title.to_owned(), columns, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<Cell>) {
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row);
    }

    /// As comma-separated values.
    pub fn csv(&self) -> String {
        let header: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        let mut tidy = Tidy::new(&header);
        for row in &self.rows {
            tidy.row(&row.iter().map(Cell::exact).collect::<Vec<_>>());
        }
        tidy.finish()
    }

    /// As columns for a terminal.
    pub fn text(&self) -> String {
        let mut table = comfy_table::Table::new();
        table.load_preset(presets::NOTHING);
        table.set_header(&self.columns);
        for row in &self.rows {
            table.add_row(row.iter().map(Cell::shown));
        }
        for number in 0..self.columns.len() {
            let words = self.rows.iter().all(|row| matches!(row[number], Cell::Text(_)));
            if let (false, Some(column)) = (words, table.column_mut(number)) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let lines: String = table.lines().map(|line| format!("  {}\n", line.trim_end())).collect();
        format!("{}\n{lines}", self.title)
    }

    /// For a page.
    pub fn page(&self) -> report::Table {
        let words = |number: usize| self.rows.iter().all(|row| matches!(row[number], Cell::Text(_)));
        let column = |(number, name): (usize, &String)| match words(number) {
            true => report::Column::text(name),
            false => report::Column::number(name),
        };
        let mut table = report::Table::new(self.columns.iter().enumerate().map(column)).caption(&self.title);
        for row in &self.rows {
            table.row(row.iter().map(Cell::shown));
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_exact_for_programs_and_short_for_people() {
        let mut table = FigureTable::new("t", "A table", &["kernel", "x base", "log"]);
        table.push(vec![Cell::from("a, \"b\""), Cell::Number(1.0 / 3.0, 2), Cell::Count(180_170)]);
        table.push(vec![Cell::from("c"), Cell::None, Cell::deviation(Some(102.0), Some(100.0))]);
        table.push(vec![Cell::from("=1+1\r"), Cell::Number(-1.5, 1), Cell::Count(0)]);
        let csv = table.csv();
        assert_eq!(csv.lines().nth(1), Some("\"a, \"\"b\"\"\",0.3333333333333333,180170"));
        assert_eq!(csv.lines().nth(2).map(|line| line.starts_with("c,,0.02")), Some(true), "{csv}");
        assert!(csv.ends_with("\n\"'=1+1\r\",-1.5,0\n"), "a cell is no formula, nor two rows: {csv:?}");
        let text = table.text();
        assert!(text.contains("0.33") && text.contains("180170") && text.contains("+2.00 %"), "{text}");
        let mut page = report::Markdown::new();
        page.table(&table.page());
        let page = page.finish();
        assert!(page.contains("+2.00 %") && page.contains("A table"), "{page}");
    }
}
