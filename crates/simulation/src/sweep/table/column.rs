//! What a column of a table of results is.

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Column {
    pub name: String,
    /// Its unit; empty for names and texts.
    pub unit: String,
    /// What it is.
    pub meaning: String,
}

impl Column {
    pub(super) fn new(name: &str, unit: &str, meaning: &str) -> Self {
        Column { name: name.to_owned(), unit: unit.to_owned(), meaning: meaning.to_owned() }
    }
}
