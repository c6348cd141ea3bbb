//! What AGPM publishes, as data: `agpm_published.csv`, each value with its place in the paper.
//!
//! Values are as printed; times are over those of `base` (203.39 % is 2.0339).

/// A published value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// "fig3", "table2", ...
    pub experiment: &'static str,
    /// Kernel as the paper names it, or "mean".
    pub kernel: &'static str,
    /// Scheme or column.
    pub quantity: &'static str,
    /// Value.
    pub value: &'static str,
    /// Where in the paper.
    pub source: &'static str,
}

/// All of them.
pub fn all() -> impl Iterator<Item = Published> {
    let rows = include_str!("agpm_published.csv").lines().skip(1);
    rows.filter_map(|row| {
        let mut cells = row.split(',');
        let mut next = || cells.next();
        Some(Published { experiment: next()?, kernel: next()?, quantity: next()?, value: next()?, source: next()? })
    })
}

/// A value as it is printed.
pub fn text(experiment: &str, kernel: &str, quantity: &str) -> Option<&'static str> {
    all().find(|row| (row.experiment, row.kernel, row.quantity) == (experiment, kernel, quantity)).map(|row| row.value)
}

/// A number.
pub fn number(experiment: &str, kernel: &str, quantity: &str) -> Option<f64> {
    text(experiment, kernel, quantity)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::kernels::KERNELS;
    use super::*;

    #[test]
    fn every_row_is_whole_and_none_is_there_twice() {
        let text = include_str!("agpm_published.csv");
        assert_eq!(all().count() + 1, text.lines().count());
        let mut keys: Vec<_> = all().map(|row| (row.experiment, row.kernel, row.quantity)).collect();
        keys.sort_unstable();
        let many = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), many);
        assert!(all().all(|row| !row.source.is_empty() && row.source != "source"));
    }

    #[test]
    fn table_2_is_that_of_the_tests() {
        let copy = include_str!("../../tests/data/agpm_table2.csv");
        let columns: Vec<&str> = copy.lines().next().unwrap().split(',').collect();
        for line in copy.lines().skip(1).filter(|line| !line.is_empty()) {
            let cells: Vec<&str> = line.split(',').collect();
            for (column, cell) in columns.iter().zip(&cells).skip(1) {
                assert_eq!(super::text("table2", cells[0], column), Some(*cell), "{} {column}", cells[0]);
            }
        }
    }

    #[test]
    fn the_types_of_table_1_are_nine_nine_and_four() {
        let count = |ty| KERNELS.iter().filter(|kernel| text("table1", kernel.name, "type") == Some(ty)).count();
        assert_eq!((count("I"), count("II"), count("III")), (9, 9, 4));
    }
}
