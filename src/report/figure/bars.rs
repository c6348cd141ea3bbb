//! Grouped bars: kernels by schemes, over a baseline, with their means. This file has the data, what follows
//! from it, and its CSV; `bars_draw` draws.
//!
//! The mean is over the groups in which every series has a value above 0, so that the means of series can be compared; a
//! series without any value is left out of that. The error of the baseline does not enter those of others.

use serde::{Deserialize, Serialize};

use super::tidy::{Tidy, full};
use super::{Axis, FigureError, Sheet, bars_draw, finite, not_negative, same_length, some_of};

/// Bars in groups.
///
/// # Example: two kernels under two schemes
/// ```
/// use durawarp::report::figure::{Axis, BarSeries, Baseline, Better, GroupedBars, Mean, Sheet};
/// let bars = GroupedBars {
///     sheet: Sheet::one_column().better(Better::Lower),
///     axis: Axis::new("execution time over base", ""),
///     groups: vec!["NW".into(), "BFS".into()],
///     groups_name: String::new(),
///     series: vec![BarSeries::of("base", &[2.0e6, 5.0e6]), BarSeries::of("themis", &[2.2e6, 6.0e6])],
///     baseline: Baseline::Series { name: "base".into(), drawn: false },
///     mean: Mean::Geometric,
///     cut_off: Some(4.0),
/// };
/// assert!(bars.svg()?.starts_with("<svg"));
/// assert!(bars.csv()?.contains("bar,NW,themis,2200000.0,1.1,"));
/// # Ok::<(), durawarp::report::figure::FigureError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupedBars {
    /// Size and words.
    pub sheet: Sheet,
    /// The axis of what is drawn: of relative values where there is a baseline. Its scale is not used; the high end of
    /// its range acts as a cut-off.
    pub axis: Axis,
    /// Groups, such as kernels.
    pub groups: Vec<String>,
    /// What groups are, said below them; empty where their names say it.
    #[serde(default)]
    pub groups_name: String,
    /// Series, such as schemes.
    pub series: Vec<BarSeries>,
    /// What values are relative to.
    pub baseline: Baseline,
    /// The means that follow the groups as one more.
    #[serde(default)]
    pub mean: Mean,
    /// Bars above this are drawn broken, with their number on top. It is raised where the numbers have no room.
    #[serde(default)]
    pub cut_off: Option<f64>,
}

/// One series of bars.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BarSeries {
    /// Its name.
    pub name: String,
    /// A bar a group.
    pub bars: Vec<Bar>,
    /// What was published for its mean, relative to the baseline where there is one; else the mean of its
    /// bars' published values, where all of them have one.
    #[serde(default)]
    pub published_mean: Option<f64>,
}

impl BarSeries {
    /// A series of values alone.
    pub fn of(name: &str, values: &[f64]) -> BarSeries {
        BarSeries::new(name, values.iter().map(|value| Bar::from(*value)).collect())
    }

    /// A series of bars.
    pub fn new(name: &str, bars: Vec<Bar>) -> BarSeries {
        BarSeries { name: name.to_owned(), bars, published_mean: None }
    }
}

/// One bar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// Its value, before it is divided by the baseline's. `None` for "n/a".
    pub value: Option<f64>,
    /// Half the length of its error bar, in the unit of the value.
    #[serde(default)]
    pub error: Option<f64>,
    /// What was published for it: relative to the baseline, where there is one.
    #[serde(default)]
    pub published: Option<f64>,
}

impl From<f64> for Bar {
    fn from(value: f64) -> Bar {
        Bar { value: Some(value), ..Bar::default() }
    }
}

/// What values are relative to. It is a line at 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Baseline {
    /// Values stand for themselves.
    None,
    /// Values are relative already, to what has this name.
    Relative(String),
    /// Values are divided by those of a series.
    Series {
        /// Its name.
        name: String,
        /// Whether its bars are drawn too.
        drawn: bool,
    },
}

/// Which mean of its bars a series has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mean {
    /// None.
    #[default]
    None,
    /// The geometric one: of ratios.
    Geometric,
    /// The arithmetic one: where a paper takes that.
    Arithmetic,
}

impl Mean {
    /// Of values above 0; `None` without values or with one that is not finite or not above 0.
    fn of(self, values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
        let geometric = geometric_mean(values.clone())?;
        match self {
            Mean::None => None,
            Mean::Geometric => Some(geometric),
            Mean::Arithmetic => Some(values.clone().sum::<f64>() / values.count() as f64),
        }
    }

    /// In full, and as the figure names it.
    pub(super) fn names(self) -> [&'static str; 2] {
        match self {
            Mean::None | Mean::Geometric => ["geometric mean", "geomean"],
            Mean::Arithmetic => ["arithmetic mean", "mean"],
        }
    }
}

/// The geometric mean of values above 0; `None` without values or with one that is not finite or not above 0.
///
/// # Example
/// ```
/// use durawarp::report::figure::geometric_mean;
/// assert!((geometric_mean([1.0, 4.0]).unwrap() - 2.0).abs() < 1e-12);
/// assert_eq!(geometric_mean([]), None);
/// assert_eq!(geometric_mean([1.0, 0.0]), None);
/// ```
pub fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0u32);
    for value in values {
        if !(value.is_finite() && value > 0.0) {
            return None;
        }
        sum += libm::log(value);
        count += 1;
    }
    (count > 0).then(|| libm::exp(sum / f64::from(count)))
}

/// A series as it is drawn.
#[derive(Debug)]
pub(super) struct Relative<'a> {
    pub(super) name: &'a str,
    /// A bar a group, relative and finite, then that of the mean.
    pub(super) bars: Vec<Bar>,
    /// Not drawn, but in the CSV.
    pub(super) hidden: bool,
}

impl GroupedBars {
    /// The figure as an SVG document.
    ///
    /// # Errors
    /// When there are no groups or series, rows do not fit together, a value is negative, or the paper is too small.
    pub fn svg(&self) -> Result<String, FigureError> {
        let (series, of) = self.relative()?;
        bars_draw::draw(self, &series, of)
    }

    /// Its data as CSV: kind ("bar" or "mean"), group, series, value, relative value, relative error, published value,
    /// and of how many groups a mean is.
    ///
    /// # Errors
    /// When there are no groups or series, or rows do not fit together.
    pub fn csv(&self) -> Result<String, FigureError> {
        let (relative, of) = self.relative()?;
        let mut tidy = Tidy::new(&["kind", "group", "series", "value", "relative", "error", "published", "groups"]);
        let related = self.baseline != Baseline::None;
        for (i, group) in self.groups.iter().enumerate() {
            for (series, relative) in self.series.iter().zip(&relative) {
                let bar = relative.bars[i];
                let [value, error, published] = [series.bars[i].value, bar.error, bar.published].map(full);
                let over = full(bar.value.filter(|_| related));
                tidy.row(&["bar", group, &series.name, &value, &over, &error, &published, ""]);
            }
        }
        for series in relative.iter().filter(|_| self.mean != Mean::None) {
            let bar = series.bars[self.groups.len()];
            let mean = full(bar.value);
            let (value, over) = if related { ("", mean.as_str()) } else { (mean.as_str(), "") };
            let [name, _] = self.mean.names();
            tidy.row(&["mean", name, series.name, value, over, "", &full(bar.published), &of.to_string()]);
        }
        Ok(tidy.finish())
    }

    /// Values over the baseline's with their means, and of how many groups a mean is.
    fn relative(&self) -> Result<(Vec<Relative<'_>>, usize), FigureError> {
        self.check()?;
        let base = match &self.baseline {
            Baseline::None | Baseline::Relative(_) => None,
            Baseline::Series { name, .. } => match self.series.iter().find(|series| series.name == *name) {
                Some(series) => Some(series),
                None => return Err(FigureError::NoBaseline { name: name.clone() }),
            },
        };
        let hidden =
            |name: &str| matches!(&self.baseline, Baseline::Series { name: base, drawn: false } if base == name);
        let mut all: Vec<Relative<'_>> = Vec::new();
        for series in &self.series {
            let relative = |(i, bar): (usize, &Bar)| {
                // Over a baseline that is missing or 0, nothing is a number, and the bar becomes a gap.
                let over = |value: Option<f64>| match base {
                    None => finite(value),
                    Some(base) => finite(Some(finite(value)? / finite(base.bars[i].value)?)),
                };
                let value = over(bar.value);
                Bar { value, error: over(bar.error).filter(|_| value.is_some()), published: finite(bar.published) }
            };
            let bars = series.bars.iter().enumerate().map(relative).collect();
            all.push(Relative { name: &series.name, bars, hidden: hidden(&series.name) });
        }
        let of = self.add_means(&mut all);
        Ok((all, of))
    }

    fn add_means(&self, all: &mut [Relative<'_>]) -> usize {
        let some: Vec<&Relative<'_>> = all.iter().filter(|s| s.bars.iter().any(|bar| bar.value.is_some())).collect();
        let above_0 = |bar: &Bar| bar.value.is_some_and(|value| value > 0.0);
        let complete = |i: &usize| !some.is_empty() && some.iter().all(|series| above_0(&series.bars[*i]));
        let groups: Vec<usize> = (0..self.groups.len()).filter(complete).collect();
        if self.mean == Mean::None {
            return groups.len();
        }
        for (series, given) in all.iter_mut().zip(&self.series) {
            let mean = |of: &dyn Fn(&Bar) -> Option<f64>| {
                self.mean.of(groups.iter().map(|i| of(&series.bars[*i]).unwrap_or(f64::NAN)))
            };
            let published = finite(given.published_mean).or_else(|| mean(&|bar| bar.published));
            let bar = Bar { value: mean(&|bar| bar.value), error: None, published };
            series.bars.push(bar);
        }
        groups.len()
    }

    fn check(&self) -> Result<(), FigureError> {
        some_of("grouped bars", "groups", &self.groups)?;
        some_of("grouped bars", "series", &self.series)?;
        for series in &self.series {
            same_length(|| format!("series `{}`", series.name), self.groups.len(), series.bars.len())?;
            for (bar, group) in series.bars.iter().zip(&self.groups) {
                for value in [bar.value, bar.error, bar.published] {
                    not_negative(|| format!("`{}` of `{group}`", series.name), value)?;
                }
            }
            not_negative(|| format!("`{}` of the means", series.name), series.published_mean)?;
        }
        if let Some(value) = self.cut_off {
            let least = if self.baseline == Baseline::None { 0.0 } else { 1.0 };
            if !(value.is_finite() && value > least) {
                let reason = "is no cut-off: it has to be above the baseline";
                return Err(FigureError::Unfit { what: "the cut-off".to_owned(), value, reason });
            }
        }
        Ok(())
    }
}
