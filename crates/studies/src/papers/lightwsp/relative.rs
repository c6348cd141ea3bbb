//! Times over those of a base, by kernel or program and by bar of a figure; geometric means of them.

use super::ask::Bars;
use super::published::PUBLISHED;
use crate::papers::{Cell, FigureTable};
use durawarp_plot::geometric_mean;

/// Times over those of a base.
#[derive(Debug)]
pub(crate) struct Times {
    /// What a row is.
    of: &'static str,
    names: Vec<String>,
    rows: Vec<(&'static str, Vec<Option<f64>>)>,
}

impl Times {
    /// Rows of one name and a time a bar each.
    pub(crate) fn new(
        of: &'static str,
        names: impl Iterator<Item = String>,
        rows: impl Iterator<Item = (&'static str, Vec<Option<f64>>)>,
    ) -> Times {
        Times { of, names: names.collect(), rows: rows.collect() }
    }

    /// Mean times of the bars, over the rows of which all are there. A bar that no row has is none of them.
    pub(crate) fn means(&self) -> Vec<Option<f64>> {
        let exists: Vec<bool> =
            (0..self.names.len()).map(|at| self.rows.iter().any(|(_, times)| times[at].is_some())).collect();
        let is_whole =
            |times: &[Option<f64>]| times.iter().zip(&exists).all(|(time, exists)| time.is_some() || !exists);
        let whole = || self.rows.iter().filter(|(_, times)| is_whole(times));
        (0..self.names.len()).map(|at| geometric_mean(whole().filter_map(|(_, times)| times[at]))).collect()
    }

    /// Mean overheads by name.
    pub(crate) fn bars(&self) -> Bars {
        let overheads = self.means().into_iter().map(|mean| mean.map(|mean| mean - 1.0));
        Bars(self.names.iter().cloned().zip(overheads).collect())
    }

    /// Rows and their times.
    pub(crate) fn rows(&self) -> &[(&'static str, Vec<Option<f64>>)] {
        &self.rows
    }

    /// With a row of means, and one of published means where a paper's text has any.
    pub(crate) fn table(&self, name: &str) -> FigureTable {
        let columns: Vec<&str> = std::iter::once(self.of).chain(self.names.iter().map(String::as_str)).collect();
        let mut table = FigureTable::new(name, "time over base, both with everything in persistent memory", &columns);
        let means = ("mean", self.means());
        for (row, times) in self.rows.iter().chain([&means]) {
            let times = times.iter().map(|time| Cell::number(*time));
            table.push(std::iter::once(Cell::from(*row)).chain(times).collect());
        }
        let published = |bar: &String| PUBLISHED.number(name, "mean", bar).map(|overhead| 1.0 + overhead);
        let published: Vec<Option<f64>> = self.names.iter().map(published).collect();
        if published.iter().any(Option::is_some) {
            let cells = published.into_iter().map(Cell::number);
            table.push(std::iter::once(Cell::from("mean, published")).chain(cells).collect());
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_over_whole_rows_and_leave_out_a_bar_that_nobody_has() {
        let rows = [("a", vec![Some(2.0), None, Some(4.0)]), ("b", vec![Some(8.0), None, Some(1.0)])];
        let of = |rows: &[(&'static str, Vec<Option<f64>>)]| {
            let names = ["x", "y", "z"].map(str::to_owned);
            Times::new("program", names.into_iter(), rows.iter().cloned()).means()
        };
        assert_eq!(of(&rows), [Some(4.0), None, Some(2.0)]);
        let cut = [rows[0].clone(), ("c", vec![Some(9.0), None, None])];
        assert_eq!(of(&cut), [Some(2.0), None, Some(4.0)], "a row that is not whole counts for no bar");
    }
}
