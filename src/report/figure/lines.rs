//! Lines: how a result follows a parameter. This file has the data, its checks and its CSV; `lines_draw` draws.
//!
//! A point whose value is missing interrupts its line; its marker stands in a strip "n/a" below the data. Points whose
//! place on the x axis is not finite are in the CSV only.

use serde::{Deserialize, Serialize};

use super::tidy::{Tidy, full};
use super::{Axis, FigureError, Scale, Sheet, finite, lines_draw, some_of};

/// Lines over an axis of numbers.
///
/// # Example: strong scaling
/// ```
/// use durawarp::report::figure::{Axis, LineSeries, Lines, Scale, Sheet};
/// let scaling = Lines {
///     sheet: Sheet::one_column(),
///     x: Axis::new("threads", "").scale(Scale::Log2),
///     y: Axis::new("speed-up", "").scale(Scale::Log2),
///     series: vec![LineSeries::of("SGEMM", &[(1.0, 1.0), (2.0, 1.9), (4.0, 3.5)])],
///     ideal: Some(LineSeries::of("ideal", &[(1.0, 1.0), (4.0, 4.0)])),
/// };
/// assert!(scaling.svg()?.contains("ideal"));
/// assert!(scaling.csv()?.contains("SGEMM,2.0,1.9,"));
/// # Ok::<(), durawarp::report::figure::FigureError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lines {
    /// Size and words.
    pub sheet: Sheet,
    /// The axis below.
    pub x: Axis,
    /// The axis of values.
    pub y: Axis,
    /// The lines.
    pub series: Vec<LineSeries>,
    /// A line to compare with: dashed, grey, without markers.
    #[serde(default)]
    pub ideal: Option<LineSeries>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LineSeries {
    /// Name.
    pub name: String,
    /// Its points; drawn in the order of their places.
    pub points: Vec<LinePoint>,
    /// What was published for all its places: a value, or the ends of a range. Level lines of its colour.
    #[serde(default)]
    pub published: Vec<f64>,
}

/// One point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LinePoint {
    /// Where.
    pub x: f64,
    /// Its value; `None` for "n/a".
    pub y: Option<f64>,
    /// Half the length of its error bar.
    #[serde(default)]
    pub error: Option<f64>,
}

impl LineSeries {
    /// A line of places and values.
    pub fn of(name: &str, points: &[(f64, f64)]) -> LineSeries {
        let point = |(x, y): &(f64, f64)| LinePoint { x: *x, y: Some(*y), error: None };
        LineSeries::new(name, points.iter().map(point).collect())
    }

    /// A line of points.
    pub fn new(name: &str, points: Vec<LinePoint>) -> LineSeries {
        LineSeries { name: name.to_owned(), points, published: Vec::new() }
    }

    /// Points that have a place, in its order.
    pub(super) fn sorted(&self) -> Vec<LinePoint> {
        let mut points: Vec<LinePoint> =
            self.points.iter().copied().filter(|point| finite(Some(point.x)).is_some()).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        points
    }
}

impl Lines {
    /// The figure as an SVG document.
    ///
    /// # Errors
    /// When there are no series or points, a logarithmic axis meets a value that is not above 0, or the paper is too small.
    pub fn svg(&self) -> Result<String, FigureError> {
        self.check()?;
        lines_draw::draw(self)
    }

    /// Its data as CSV: series, x, y, error. The ideal line is one of the series; published values are of a
    /// series' name with ", published", and have no place.
    ///
    /// # Errors
    /// When there are no series or points.
    pub fn csv(&self) -> Result<String, FigureError> {
        self.check()?;
        let mut tidy = Tidy::new(&["series", "x", "y", "error"]);
        for series in self.series.iter().chain(&self.ideal) {
            for point in &series.points {
                tidy.row(&[&series.name, &full(Some(point.x)), &full(point.y), &full(point.error)]);
            }
            for value in &series.published {
                tidy.row(&[&format!("{}, published", series.name), "", &full(Some(*value)), ""]);
            }
        }
        Ok(tidy.finish())
    }

    fn check(&self) -> Result<(), FigureError> {
        some_of("lines", "series", &self.series)?;
        let points: Vec<_> = self.series.iter().flat_map(|series| &series.points).collect();
        some_of("lines", "points", &points)?;
        for series in self.series.iter().chain(&self.ideal) {
            for point in &series.points {
                above_0_on(&self.x, &series.name, Some(point.x))?;
                above_0_on(&self.y, &series.name, point.y)?;
            }
            for value in &series.published {
                above_0_on(&self.y, &series.name, Some(*value))?;
            }
        }
        Ok(())
    }
}

/// A logarithmic axis has no place for 0 and less.
pub(super) fn above_0_on(axis: &Axis, name: &str, value: Option<f64>) -> Result<(), FigureError> {
    match finite(value) {
        Some(value) if value <= 0.0 && axis.scale != Scale::Linear => {
            let what = format!("`{name}` on the axis `{}`", axis.name);
            Err(FigureError::Unfit { what, value, reason: "has no place on a logarithmic scale" })
        }
        _ => Ok(()),
    }
}
