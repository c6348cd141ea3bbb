//! What a paper publishes, as data: a CSV file, each value with its place in the paper.
//!
//! Columns: experiment, kernel, quantity, value, source. Values are as printed. No cell has a comma.

/// A published value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    /// "fig3", "table2", ...
    pub experiment: &'static str,
    /// Kernel as the paper names it, or "mean".
    pub kernel: &'static str,
    /// Scheme or column.
    pub quantity: &'static str,
    pub value: &'static str,
    /// Where in the paper.
    pub source: &'static str,
}

/// The published values of a paper.
#[derive(Debug, Clone, Copy)]
pub struct Published {
    /// The CSV file.
    pub csv: &'static str,
}

impl Published {
    /// All of them.
    pub fn all(self) -> impl Iterator<Item = Value> {
        self.csv.lines().skip(1).filter_map(|row| {
            let mut cells = row.split(',');
            let mut next = || cells.next();
            Some(Value { experiment: next()?, kernel: next()?, quantity: next()?, value: next()?, source: next()? })
        })
    }

    /// A value as it is printed.
    pub fn text(self, experiment: &str, kernel: &str, quantity: &str) -> Option<&'static str> {
        let wanted = (experiment, kernel, quantity);
        self.all().find(|row| (row.experiment, row.kernel, row.quantity) == wanted).map(|row| row.value)
    }

    /// A number.
    pub fn number(self, experiment: &str, kernel: &str, quantity: &str) -> Option<f64> {
        self.text(experiment, kernel, quantity)?.parse().ok()
    }

    /// Panics unless every row is whole, has a source, and is there once: for the tests of papers.
    #[cfg(test)]
    pub(super) fn check(self) {
        assert_eq!(self.all().count() + 1, self.csv.lines().count());
        let mut keys: Vec<_> = self.all().map(|row| (row.experiment, row.kernel, row.quantity)).collect();
        keys.sort_unstable();
        let many = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), many);
        assert!(self.all().all(|row| !row.source.is_empty() && row.source != "source"));
    }
}
