//! A table as data, for documents: which columns it has, which of them hold numbers, and its rows as text.
//! How numbers are written is up to who fills it; how text is escaped is up to the document.

use serde::{Deserialize, Serialize};

/// A table.
///
/// # Example
/// ```
/// use durawarp_studies::report::{Column, Table};
/// let mut table = Table::new([Column::text("kernel"), Column::number("cycles")]);
/// table.row(["NW", "1024"]);
/// assert_eq!(table.rows.len(), 1);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// What it shows; a line above it.
    #[serde(default)]
    pub caption: Option<String>,
    pub columns: Vec<Column>,
    /// Its rows. Cells beyond the columns are not shown, missing ones are empty.
    pub rows: Vec<Vec<String>>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its header.
    pub name: String,
    /// Numbers, which stand on the right.
    pub numeric: bool,
}

impl Column {
    /// A column of text.
    pub fn text(name: &str) -> Column {
        Column { name: name.to_owned(), numeric: false }
    }

    /// A column of numbers.
    pub fn number(name: &str) -> Column {
        Column { name: name.to_owned(), numeric: true }
    }
}

impl Table {
    /// A table without rows yet.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Table {
        Table { caption: None, columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// With a caption.
    pub fn caption(self, caption: &str) -> Table {
        Table { caption: Some(caption.to_owned()), ..self }
    }

    /// Adds a row.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Rows with exactly as many cells as there are columns.
    pub(super) fn even_rows(&self) -> impl Iterator<Item = Vec<&str>> {
        self.rows
            .iter()
            .map(|row| (0..self.columns.len()).map(|i| row.get(i).map_or("", String::as_str)).collect::<Vec<&str>>())
    }
}
