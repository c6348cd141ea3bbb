//! What figures of all kinds share: the sheet that they are drawn on, the checks of their data, and why there
//! is no figure.

use serde::{Deserialize, Serialize};

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

/// What all kinds of figures have: a size, and words above and below the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sheet {
    /// Title; papers mostly do with the caption.
    #[serde(default)]
    pub title: Option<String>,
    /// Which direction is better, said above the data.
    #[serde(default)]
    pub better: Option<Better>,
    /// Of what the figure is (profile, machine, version): a small line below everything.
    #[serde(default)]
    pub origin: Option<String>,
    /// Width at the size of print, in points.
    pub width_pt: f64,
    /// Height at the size of print, in points.
    pub height_pt: f64,
}

impl Sheet {
    /// Across both columns: 7 x 2 inches.
    pub fn two_columns() -> Sheet {
        Sheet { title: None, better: None, origin: None, width_pt: 504.0, height_pt: 144.0 }
    }

    /// One column: 3.33 x 2 inches.
    pub fn one_column() -> Sheet {
        Sheet { title: None, better: None, origin: None, width_pt: 240.0, height_pt: 144.0 }
    }

    /// With the line that says of what it is.
    pub fn origin(self, origin: &str) -> Sheet {
        Sheet { origin: Some(origin.to_owned()), ..self }
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

/// A value that can be drawn. The ends of an axis are up to ten times beyond its values and have to be
/// numbers too.
pub(super) fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.abs() <= 1e300)
}

pub(super) fn same_length(what: impl FnOnce() -> String, expected: usize, found: usize) -> Result<(), FigureError> {
    if expected == found { Ok(()) } else { Err(FigureError::Shape { what: what(), expected, found }) }
}

pub(super) fn some_of<T>(figure: &'static str, what: &'static str, of: &[T]) -> Result<(), FigureError> {
    if of.is_empty() { Err(FigureError::Empty { figure, what }) } else { Ok(()) }
}

pub(super) fn not_negative(what: impl FnOnce() -> String, value: Option<f64>) -> Result<(), FigureError> {
    match finite(value) {
        Some(value) if value < 0.0 => {
            Err(FigureError::Unfit { what: what(), value, reason: "is negative: bars start at 0" })
        }
        _ => Ok(()),
    }
}
