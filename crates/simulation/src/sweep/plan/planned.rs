//! A point of a sweep, by its values.

use serde_json::Value;

use crate::sweep::file::{SweepFile, text_of};

/// A point of a sweep.
#[derive(Debug, Clone)]
pub struct Planned {
    /// What its result is kept by.
    pub key: String,
    /// A value for each column; null where it does not apply.
    pub values: Vec<Value>,
    /// What it is called in messages.
    pub label: String,
}

/// What a point is called: what it runs, then what varies.
pub(super) fn label(file: &SweepFile, columns: &[String], values: &[Value]) -> String {
    let varies = |column: &String| file.axes.iter().any(|axis| axis.keys.contains(column));
    let shown = |(column, value): (&String, &Value)| match column.as_str() {
        _ if value.is_null() => None,
        "machine" | "profile" | "seed" if !varies(column) => None,
        "workload" | "scheme" => Some(text_of(value)),
        _ => Some(format!("{column}={}", text_of(value))),
    };
    columns.iter().zip(values).filter_map(shown).collect::<Vec<_>>().join(" ")
}
