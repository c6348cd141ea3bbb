//! Tables for a terminal: columns without rules between them, numbers to the right, no blanks at the ends of
//! lines.

use comfy_table::{CellAlignment, Table, presets};

/// An empty table.
pub fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table
}

/// Puts the cells of these columns to the right; columns that the table does not have are passed over.
pub fn align_right(table: &mut Table, columns: impl IntoIterator<Item = usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// The table's lines, so many blanks in; each cell has one of its own before it.
pub fn lines(table: &Table, indent: usize) -> String {
    table.lines().map(|line| format!("{:indent$}{}\n", "", line.trim_end())).collect()
}

/// What the columns and marks of a table mean, a line each.
pub fn legend(meanings: &[(&str, &str)]) -> String {
    let mut table = plain_table();
    for (what, meaning) in meanings {
        table.add_row([what, meaning]);
    }
    lines(&table, 1)
}

/// The lines of a text without blanks around them and with a bar between cells, for tests.
#[cfg(test)]
pub(super) fn cells(text: &str) -> Vec<String> {
    let cells = |line: &str| line.split("  ").map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let line = |line| cells(line).into_iter().filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join("|");
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_below_each_other_and_lines_end_with_their_text() {
        let mut table = plain_table();
        table.add_row(["a", "7", "x"]);
        table.add_row(["bc", "10", ""]);
        align_right(&mut table, [1, 9]);
        assert_eq!(lines(&table, 1), "  a    7  x\n  bc  10\n");
    }

    #[test]
    fn a_legend_is_a_line_a_column() {
        let told = legend(&[("IPC", "instructions a cycle"), ("ns", "time")]);
        assert_eq!(told, "  IPC  instructions a cycle\n  ns   time\n");
    }
}
