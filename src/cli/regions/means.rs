//! Means of regions, beside the paper's.

use durawarp::report::{align_right, lines, plain_table};
use serde::Serialize;

/// Means over the paper's 38 applications on a CPU (LightWSP, section V-G3): instructions and stores of a
/// region, and how many more instructions run.
pub(super) const PAPER: Means =
    Means { instructions_per_region: 91.33, stores_per_region: 11.29, more_instructions_percent: 7.03 };

/// Dynamic means.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Means {
    pub(super) instructions_per_region: f64,
    pub(super) stores_per_region: f64,
    pub(super) more_instructions_percent: f64,
}

impl Means {
    /// As cells of a table.
    pub(super) fn cells(self) -> [String; 3] {
        [
            format!("{:.2}", self.instructions_per_region),
            format!("{:.2}", self.stores_per_region),
            format!("{:+.2} %", self.more_instructions_percent),
        ]
    }
}

/// Lines of a table whose columns but the first are numbers.
pub(super) fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    table_of(header, rows, 1..header.len())
}

/// Lines of a table of which these columns are numbers.
pub(super) fn table_of(header: &[&str], rows: Vec<Vec<String>>, numbers: std::ops::Range<usize>) -> String {
    let mut table = plain_table();
    table.set_header(header);
    table.add_rows(rows);
    align_right(&mut table, numbers);
    lines(&table, 2)
}
