//! What LightWSP publishes in its text and tables: `published.csv`. Overheads and rates are shares (9.0 % is
//! 0.09). The bars of its figures are in no text.

use crate::papers::published::Published;
use crate::papers::{Cell, FigureTable};

/// The values.
pub(crate) const PUBLISHED: Published = Published { csv: include_str!("published.csv") };

/// What to know when reading any figure.
pub(super) const LABEL: &str = "a GPU port of a CPU scheme: a warp stands for the paper's thread, kernels for its programs; `durawarp reproduce lightwsp-cpu` \
     has the paper's own machine";

/// Published values of a figure, and ours where we have one.
pub(crate) fn told(figure: &str, ours: &[(&str, Option<f64>)]) -> FigureTable {
    let columns = ["published for", "quantity", "published", "ours", "source"];
    let mut table = FigureTable::new(&format!("{figure}_told"), "what the paper's text and tables say", &columns);
    for row in PUBLISHED.all().filter(|row| row.experiment == figure) {
        let own = ours.iter().find(|(quantity, _)| row.kernel == "mean" && *quantity == row.quantity);
        table.push(vec![
            Cell::from(row.kernel),
            Cell::from(row.quantity),
            Cell::from(row.value),
            own.map_or(Cell::None, |(_, value)| value.map_or(Cell::None, |value| Cell::Number(value, 4))),
            Cell::from(row.source),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_whole_and_none_is_there_twice() {
        PUBLISHED.check();
    }
}
