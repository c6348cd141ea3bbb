//! Shares of classes that have an order, such as accesses by how many lines they touch: bars of 100 %, one a
//! row, drawn upright. Colours go from light to dark with the classes' order. A row with a missing count has
//! no shares: it is "n/a".

use serde::{Deserialize, Serialize};

use super::axis::Axis;
use super::palette::Fill;
use super::sheet::{FigureError, Sheet, finite, not_negative, same_length, some_of};
use super::stacked::{Look, Stack, StackGroup, StackedBars};
use super::tidy::{Tidy, full};

/// Shares of ordered classes.
///
/// # Example: lines touched by a warp's access
/// ```
/// use durawarp_plot::{Distribution, DistributionRow, Sheet};
/// let degrees = Distribution {
///     sheet: Sheet::one_column(),
///     of: "accesses".into(),
///     class: "lines".into(),
///     classes: vec!["1".into(), "2".into(), "32".into()],
///     rows: vec![DistributionRow::of("NW", &[30.0, 10.0, 10.0])],
/// };
/// assert!(degrees.csv()?.contains("NW,1,30.0,0.6"));
/// # Ok::<(), durawarp_plot::FigureError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Size and words.
    pub sheet: Sheet,
    /// What is counted: "accesses".
    pub of: String,
    /// What classes are: "lines touched".
    pub class: String,
    /// Classes in their order.
    pub classes: Vec<String>,
    /// Rows, such as kernels.
    pub rows: Vec<DistributionRow>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DistributionRow {
    pub name: String,
    /// A count a class, not shares; `None` for "n/a".
    pub counts: Vec<Option<f64>>,
}

impl DistributionRow {
    /// A row without missing counts.
    pub fn of(name: &str, counts: &[f64]) -> DistributionRow {
        DistributionRow { name: name.to_owned(), counts: counts.iter().copied().map(Some).collect() }
    }

    /// Shares of 1; all missing when a count is, or when there is nothing.
    fn shares(&self) -> Vec<Option<f64>> {
        let counts: Option<Vec<f64>> = self.counts.iter().map(|count| finite(*count)).collect();
        let counts = counts.unwrap_or_default();
        let whole: f64 = counts.iter().sum();
        if whole > 0.0 && whole.is_finite() {
            counts.into_iter().map(|count| Some(count / whole)).collect()
        } else {
            vec![None; self.counts.len()]
        }
    }
}

impl Distribution {
    /// The figure as an SVG document.
    ///
    /// # Errors
    /// When there are no rows or classes, rows do not fit together, a count is negative, or the paper is too
    /// small.
    pub fn svg(&self) -> Result<String, FigureError> {
        self.check()?;
        let percent = |share: Option<f64>| share.map(|share| share * 100.0);
        let stack = |row: &DistributionRow| StackGroup {
            name: row.name.clone(),
            bars: vec![Stack { name: String::new(), values: row.shares().into_iter().map(percent).collect() }],
        };
        let stacked = StackedBars {
            groups_name: String::new(),
            sheet: self.sheet.clone(),
            axis: Axis::new(&self.of, "%"),
            parts: self.classes.clone(),
            groups: self.rows.iter().map(stack).collect(),
        };
        let count = self.classes.len();
        stacked.draw(&Look { fill: &|i| Fill::ordered(i, count), legend_name: &self.class, high: Some(100.0) })
    }

    /// Its data as CSV: row, class, count, share of 1.
    ///
    /// # Errors
    /// When there are no rows or classes, or rows do not fit together.
    pub fn csv(&self) -> Result<String, FigureError> {
        self.check()?;
        let mut tidy = Tidy::new(&["row", "class", "count", "share"]);
        for row in &self.rows {
            for ((class, count), share) in self.classes.iter().zip(&row.counts).zip(row.shares()) {
                tidy.row(&[&row.name, class, &full(*count), &full(share)]);
            }
        }
        Ok(tidy.finish())
    }

    fn check(&self) -> Result<(), FigureError> {
        some_of("a distribution", "rows", &self.rows)?;
        some_of("a distribution", "classes", &self.classes)?;
        for row in &self.rows {
            same_length(|| format!("row `{}`", row.name), self.classes.len(), row.counts.len())?;
            for count in &row.counts {
                not_negative(|| format!("row `{}`", row.name), *count)?;
            }
        }
        Ok(())
    }
}
