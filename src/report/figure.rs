//! Figures for a two-column paper, as SVG text, from plain data; with each the same data as CSV text.
//!
//! Invariants: the same data gives the same bytes on every machine (no clock, no randomness, no fonts, and logarithms from
//! `libm`); no data makes one panic; a value that is missing, NaN or infinite is a gap that says "n/a"; series are told
//! apart without colour; text is at least 6 pt at the size of print, and labels do not cover each other: where there is no
//! room for them, the answer is an error. Sizes are in points (1/72 inch).
//!
//! Left out: files, curves, more than two dimensions, and any knowledge of outcomes: `report` fills these structs.

mod above;
mod axis;
mod bars;
mod bars_draw;
mod cdf;
mod distribution;
mod frame;
mod heat;
mod legend;
mod lines;
mod lines_draw;
mod palette;
#[cfg(feature = "png")]
mod raster;
mod spread;
mod stacked;
mod steps;
mod svg;
mod text;
mod tidy;
mod under;

use serde::{Deserialize, Serialize};

pub use axis::{Axis, Scale};
pub use bars::{Bar, BarSeries, Baseline, GroupedBars, Mean, geometric_mean};
pub use cdf::{Cdf, CdfSeries};
pub use distribution::{Distribution, DistributionRow};
pub use heat::HeatMap;
pub use lines::{LinePoint, LineSeries, Lines};
#[cfg(feature = "png")]
pub use raster::Raster;
pub use stacked::{Stack, StackGroup, StackedBars};
pub use steps::{Step, Steps};
pub use text::text_width;

/// Why there is no figure.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FigureError {
    /// Nothing to draw.
    #[error("{figure}: there are no {what}")]
    Empty {
        /// Kind of figure.
        figure: &'static str,
        /// What is missing.
        what: &'static str,
    },
    /// A row is shorter or longer than what it belongs to.
    #[error("{what} has {found} values, {expected} are due")]
    Shape {
        /// The row.
        what: String,
        /// How many values are due.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// The baseline is not among the series.
    #[error("no series is called `{name}`, which the others are to be divided by")]
    NoBaseline {
        /// The name looked for.
        name: String,
    },
    /// A value that the kind of figure has no place for.
    #[error("{what}: {value} {reason}")]
    Unfit {
        /// Whose value.
        what: String,
        /// The value.
        value: f64,
        /// Why it has no place.
        reason: &'static str,
    },
    /// The paper is too small for what is to stand on it.
    #[error("{what}: {needed_pt:.0} pt are needed, there are {have_pt:.0}")]
    Room {
        /// What has no room.
        what: String,
        /// How much it needs.
        needed_pt: f64,
        /// How much there is.
        have_pt: f64,
    },
}

/// Which values are good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// The lower the better.
    Lower,
    /// The higher the better.
    Higher,
}

/// What all kinds of figures have: a size, and words above the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sheet {
    /// Title; papers mostly do with the caption.
    #[serde(default)]
    pub title: Option<String>,
    /// Which direction is better, said above the data.
    #[serde(default)]
    pub better: Option<Better>,
    /// Width at the size of print, in points.
    pub width_pt: f64,
    /// Height at the size of print, in points.
    pub height_pt: f64,
}

impl Sheet {
    /// Across both columns: 7 x 2 inches.
    pub fn two_columns() -> Sheet {
        Sheet { title: None, better: None, width_pt: 504.0, height_pt: 144.0 }
    }

    /// One column: 3.33 x 2 inches.
    pub fn one_column() -> Sheet {
        Sheet { title: None, better: None, width_pt: 240.0, height_pt: 144.0 }
    }

    /// With a title.
    pub fn titled(self, title: &str) -> Sheet {
        Sheet { title: Some(title.to_owned()), ..self }
    }

    /// With the note which direction is better.
    pub fn better(self, better: Better) -> Sheet {
        Sheet { better: Some(better), ..self }
    }

    /// Of another height.
    pub fn height(self, height_pt: f64) -> Sheet {
        Sheet { height_pt, ..self }
    }
}

/// A figure of any kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Figure {
    /// Grouped bars.
    GroupedBars(GroupedBars),
    /// Stacked bars.
    StackedBars(StackedBars),
    /// Lines.
    Lines(Lines),
    /// A heat map.
    HeatMap(HeatMap),
    /// Cumulative distributions.
    Cdf(Cdf),
    /// Shares of classes.
    Distribution(Distribution),
    /// Quantities over steps.
    Steps(Steps),
}

impl Figure {
    /// Its size and words.
    pub fn sheet(&self) -> &Sheet {
        match self {
            Figure::GroupedBars(figure) => &figure.sheet,
            Figure::StackedBars(figure) => &figure.sheet,
            Figure::Lines(figure) => &figure.sheet,
            Figure::HeatMap(figure) => &figure.sheet,
            Figure::Cdf(figure) => &figure.sheet,
            Figure::Distribution(figure) => &figure.sheet,
            Figure::Steps(figure) => &figure.sheet,
        }
    }

    /// The same, to be changed.
    pub fn sheet_mut(&mut self) -> &mut Sheet {
        match self {
            Figure::GroupedBars(figure) => &mut figure.sheet,
            Figure::StackedBars(figure) => &mut figure.sheet,
            Figure::Lines(figure) => &mut figure.sheet,
            Figure::HeatMap(figure) => &mut figure.sheet,
            Figure::Cdf(figure) => &mut figure.sheet,
            Figure::Distribution(figure) => &mut figure.sheet,
            Figure::Steps(figure) => &mut figure.sheet,
        }
    }

    /// The figure as an SVG document.
    ///
    /// # Errors
    /// When there is nothing to draw, rows do not fit together, or the paper is too small.
    pub fn svg(&self) -> Result<String, FigureError> {
        match self {
            Figure::GroupedBars(figure) => figure.svg(),
            Figure::StackedBars(figure) => figure.svg(),
            Figure::Lines(figure) => figure.svg(),
            Figure::HeatMap(figure) => figure.svg(),
            Figure::Cdf(figure) => figure.svg(),
            Figure::Distribution(figure) => figure.svg(),
            Figure::Steps(figure) => figure.svg(),
        }
    }

    /// Its data as CSV: tidy (a row a value), with a header, numbers in full, missing values empty.
    ///
    /// # Errors
    /// When there is nothing to draw or rows do not fit together.
    pub fn csv(&self) -> Result<String, FigureError> {
        match self {
            Figure::GroupedBars(figure) => figure.csv(),
            Figure::StackedBars(figure) => figure.csv(),
            Figure::Lines(figure) => figure.csv(),
            Figure::HeatMap(figure) => figure.csv(),
            Figure::Cdf(figure) => figure.csv(),
            Figure::Distribution(figure) => figure.csv(),
            Figure::Steps(figure) => figure.csv(),
        }
    }
}

macro_rules! kinds {
    ($($kind:ident),*) => { $(
        impl From<$kind> for Figure {
            fn from(figure: $kind) -> Figure {
                Figure::$kind(figure)
            }
        }
    )* };
}

kinds!(GroupedBars, StackedBars, Lines, HeatMap, Cdf, Distribution, Steps);

/// A value that can be drawn. The ends of an axis are up to ten times beyond its values and have to be numbers too.
fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.abs() <= 1e300)
}

fn same_length(what: impl FnOnce() -> String, expected: usize, found: usize) -> Result<(), FigureError> {
    if expected == found { Ok(()) } else { Err(FigureError::Shape { what: what(), expected, found }) }
}

fn some_of<T>(figure: &'static str, what: &'static str, of: &[T]) -> Result<(), FigureError> {
    if of.is_empty() { Err(FigureError::Empty { figure, what }) } else { Ok(()) }
}

fn not_negative(what: impl FnOnce() -> String, value: Option<f64>) -> Result<(), FigureError> {
    match finite(value) {
        Some(value) if value < 0.0 => {
            Err(FigureError::Unfit { what: what(), value, reason: "is negative: bars start at 0" })
        }
        _ => Ok(()),
    }
}
