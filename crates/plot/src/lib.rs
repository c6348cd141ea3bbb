//! Figures for a two-column paper, as SVG text, from plain data; with each the same data as CSV text.
//!
//! Invariants: the same data gives the same bytes on every machine (no clock, no randomness, no font of the
//! host, and logarithms from `libm`); no data makes one panic; a value that is missing, NaN or infinite is a
//! gap that says "n/a"; series are told apart without colour; text is at least 6 pt at the size of print, and
//! labels do not cover each other: where there is no room for them, the answer is an error. Sizes are in
//! points (1/72 inch).
//!
//! ```text
//!  a kind of figure: bars, stacked, distribution, lines, cdf, steps, heat     its data, checks, CSV and drawing
//!      frame                                                                  what surrounds the data, and its room
//!      legend, labels, axis                                                   words and numbers around the data
//!      palette, text, svg, tidy, sheet                                        fills, widths of text, elements, rows
//! ```
//! A file uses those below its line, and a distribution is drawn by stacked bars.
//!
//! This module knows no simulator: `report` and `papers` fill these structs. Not drawn: curves, more than two
//! dimensions.

mod axis;
mod bars;
mod cdf;
mod distribution;
mod frame;
mod heat;
mod labels;
mod legend;
mod lines;
mod palette;
#[cfg(feature = "png")]
mod raster;
mod sheet;
mod stacked;
mod steps;
mod svg;
mod text;
mod tidy;

use serde::{Deserialize, Serialize};

pub use axis::{Axis, Scale};
pub use bars::{Bar, BarSeries, Baseline, GroupedBars, Mean, geometric_mean};
pub use cdf::{Cdf, CdfSeries};
pub use distribution::{Distribution, DistributionRow};
pub use heat::HeatMap;
pub use lines::{LinePoint, LineSeries, Lines};
#[cfg(feature = "png")]
pub use raster::png;
pub use sheet::{Better, FigureError, Sheet};
pub use stacked::{Stack, StackGroup, StackedBars};
pub use steps::{Step, Steps};
pub use text::text_width;
pub use tidy::Tidy;

/// A figure of any kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Figure {
    GroupedBars(GroupedBars),
    StackedBars(StackedBars),
    Lines(Lines),
    HeatMap(HeatMap),
    /// Cumulative distributions.
    Cdf(Cdf),
    /// Shares of classes.
    Distribution(Distribution),
    /// Quantities over steps.
    Steps(Steps),
}

/// What a figure of any kind does.
macro_rules! each {
    ($any:expr, $figure:ident => $does:expr) => {
        match $any {
            Figure::GroupedBars($figure) => $does,
            Figure::StackedBars($figure) => $does,
            Figure::Lines($figure) => $does,
            Figure::HeatMap($figure) => $does,
            Figure::Cdf($figure) => $does,
            Figure::Distribution($figure) => $does,
            Figure::Steps($figure) => $does,
        }
    };
}

impl Figure {
    /// Its size and words.
    pub fn sheet(&self) -> &Sheet {
        each!(self, figure => &figure.sheet)
    }

    /// The same, to be changed.
    pub fn sheet_mut(&mut self) -> &mut Sheet {
        each!(self, figure => &mut figure.sheet)
    }

    /// The figure as an SVG document.
    ///
    /// # Errors
    /// When there is nothing to draw, rows do not fit together, or the paper is too small.
    pub fn svg(&self) -> Result<String, FigureError> {
        each!(self, figure => figure.svg())
    }

    /// Its data as CSV: tidy (a row a value), with a header, numbers in full, missing values empty.
    ///
    /// # Errors
    /// When there is nothing to draw or rows do not fit together.
    pub fn csv(&self) -> Result<String, FigureError> {
        each!(self, figure => figure.csv())
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
