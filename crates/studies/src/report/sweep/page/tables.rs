//! Tables of a page about points: shown, or folded away where they are long.

use crate::report::{Column, Page, Table};

/// Rows of a table that are shown at once; longer ones are folded away.
const ROWS: usize = 30;

/// A table of points: shown, or folded away where it is long.
pub(super) fn put(page: &mut Page, table: Table, caption: &str) {
    put_up_to(ROWS, page, table, caption);
}

pub(super) fn put_up_to(rows: usize, page: &mut Page, table: Table, caption: &str) {
    if table.rows.len() > rows {
        page.folded_table(&format!("{caption} ({} rows)", table.rows.len()), table);
    } else {
        page.table(table.caption(caption));
    }
}

pub(super) fn columns(names: &[&str]) -> Vec<Column> {
    names.iter().map(|name| Column::text(name)).collect()
}
