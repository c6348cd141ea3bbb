//! Lines: how a result follows a parameter. What lies beyond a range that was asked for is clipped, never
//! moved.
//!
//! A point whose value is missing interrupts its line; its marker stands in a strip "n/a" below the data.
//! Points whose place on the x axis is not finite are in the CSV only.

use serde::{Deserialize, Serialize};

use super::axis::{Axis, Scale, Span, above_0_on, short};
use super::frame::{Beside, Frame, RIGHT, Under, Wanted};
use super::labels::spread;
use super::legend::{Key, LegendEntry};
use super::palette::{GREY, INK, Stroke, marker};
use super::sheet::{FigureError, Sheet, finite, some_of};
use super::svg::{Anchor, Element, Point, Text};
use super::text::{MIDDLE, SMALL};
use super::tidy::{Tidy, full};

/// Lines over an axis of numbers.
///
/// # Example: strong scaling
/// ```
/// use durawarp_plot::{Axis, LineSeries, Lines, Scale, Sheet};
/// let scaling = Lines {
///     sheet: Sheet::one_column(),
///     x: Axis::new("threads", "").scale(Scale::Log2),
///     y: Axis::new("speed-up", "").scale(Scale::Log2),
///     series: vec![LineSeries::of("SGEMM", &[(1.0, 1.0), (2.0, 1.9), (4.0, 3.5)])],
///     ideal: Some(LineSeries::of("ideal", &[(1.0, 1.0), (4.0, 4.0)])),
/// };
/// assert!(scaling.svg()?.contains("ideal"));
/// assert!(scaling.csv()?.contains("SGEMM,2.0,1.9,"));
/// # Ok::<(), durawarp_plot::FigureError>(())
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
    /// When there are no series or points, a logarithmic axis meets a value that is not above 0, or the paper
    /// is too small.
    pub fn svg(&self) -> Result<String, FigureError> {
        self.check()?;
        draw(self)
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

/// The dashes of a line to compare with.
const IDEAL: &[f64] = &[4.5, 2.0];
/// The dashes of a published value.
const PUBLISHED: &[f64] = &[8.0, 3.0];
/// Height of the strip for missing points, and its distance from the data.
const STRIP: f64 = 7.0;
const APART: f64 = 4.0;

fn draw(figure: &Lines) -> Result<String, FigureError> {
    let all = || figure.series.iter().chain(&figure.ideal);
    let xs = all().flat_map(|series| &series.points).map(|point| point.x);
    let ys = all().flat_map(|series| &series.points).filter_map(|point| finite(point.y));
    // Error bars do not stretch a logarithmic axis: one that reaches down to 0 has no end there.
    let linear = figure.y.scale == Scale::Linear;
    let ends = all().flat_map(|series| &series.points).filter_map(|p| Some((finite(p.y)?, finite(p.error)?)));
    let ends = ends.filter(|_| linear).flat_map(|(y, error)| [y - error, y + error]);
    let published = figure.series.iter().flat_map(|series| &series.published).copied();
    let (x, y) = (Span::tight(&figure.x, xs), Span::of(&figure.y, ys.chain(ends).chain(published.clone())));
    let mut legend: Vec<LegendEntry> = figure
        .series
        .iter()
        .enumerate()
        .map(|(i, series)| LegendEntry::new(Key::Line(Stroke::of(i)), &series.name))
        .collect();
    legend.extend(figure.ideal.as_ref().map(|ideal| LegendEntry::new(Key::Rule(GREY, IDEAL), &ideal.name)));
    if published.clone().next().is_some() {
        legend.push(LegendEntry::new(Key::Rule(GREY, PUBLISHED), "published"));
    }
    let sorted: Vec<Vec<LinePoint>> = figure.series.iter().map(LineSeries::sorted).collect();
    let missing = sorted.iter().flatten().any(|point| finite(point.y).is_none());
    let mut frame = Frame::new(&Wanted {
        sheet: &figure.sheet,
        legend: &legend,
        beside: Beside::Values(&figure.y, y),
        under: Under::Values(&figure.x, x),
        above: 3.0,
        below: if missing { APART + STRIP } else { 0.0 },
        right: RIGHT,
    })?;
    let plot = frame.plot;
    let place = |point: &LinePoint| {
        let (right, up) = (x.share(point.x)?, y.share(finite(point.y)?)?);
        // Far beyond the paper is as good as anything, and keeps numbers short.
        let (right, up) = (right.clamp(-50.0, 50.0), up.clamp(-50.0, 50.0));
        Some((plot.left + right * plot.width(), plot.bottom - up * plot.height()))
    };
    let clip = frame.clip();
    if let Some(ideal) = &figure.ideal {
        let points: Vec<Option<Point>> = ideal.sorted().iter().map(place).collect();
        frame.svg.broken_line("ideal", &points, (GREY, 0.9, IDEAL), &clip);
    }
    for (i, series) in figure.series.iter().enumerate() {
        for share in series.published.iter().filter_map(|value| y.share(finite(Some(*value))?)) {
            let at = plot.bottom - share.clamp(-50.0, 50.0) * plot.height();
            let ends = [Some((plot.left, at)), Some((plot.right, at))];
            frame.svg.broken_line("published", &ends, (Stroke::of(i).colour, 0.8, PUBLISHED), &clip);
        }
    }
    // Measured lines over those that they are compared with.
    for (i, points) in sorted.iter().enumerate() {
        let stroke = Stroke::of(i);
        let at: Vec<Option<Point>> = points.iter().map(place).collect();
        frame.svg.broken_line("line", &at, (stroke.colour, 1.1, stroke.dashes), &clip);
        for (point, at) in points.iter().zip(&at) {
            let (Some((px, py)), Some(value)) = (*at, finite(point.y)) else { continue };
            let inside =
                px >= plot.left - 0.1 && px <= plot.right + 0.1 && py >= plot.top - 0.1 && py <= plot.bottom + 0.1;
            if !inside {
                continue;
            }
            if let Some(error) = finite(point.error) {
                let end = |value: f64| {
                    let share = y.share(value).unwrap_or(0.0).clamp(0.0, 1.0);
                    plot.bottom - share * plot.height()
                };
                let (low, high) = (end(value - error.abs()), end(value + error.abs()));
                let ends =
                    [(px - 1.5, high), (px + 1.5, high), (px, high), (px, low), (px - 1.5, low), (px + 1.5, low)];
                frame.svg.polyline("error", &ends, stroke.colour, 0.6, &[]);
            }
            let told = format!("{}, {}: {}", figure.series[i].name, short(point.x), short(value));
            marker(&mut frame.svg, "marker", &stroke, (px, py), &told);
        }
    }
    frame.axes();
    if missing {
        strip(&mut frame, figure, &sorted, &x);
    }
    Ok(frame.svg.finish(&figure.sheet.title.clone().unwrap_or_else(|| figure.y.label())))
}

/// The markers of missing points below the data.
fn strip(frame: &mut Frame, figure: &Lines, sorted: &[Vec<LinePoint>], x: &Span) {
    let plot = frame.plot;
    let top = plot.bottom + APART;
    let middle = top + STRIP / 2.0;
    let band = Element::new("rect", "strip").number("x", plot.left).number("y", top);
    let band = band.number("width", plot.width()).number("height", STRIP).word("fill", "#eeeeee");
    frame.svg.put(band);
    let at = (plot.left - 4.0, middle + MIDDLE * SMALL + 0.3);
    frame.svg.text(&Text::new("missing", at, SMALL).anchor(Anchor::End).colour(GREY), "n/a");
    let mut gaps = Vec::new();
    for (i, points) in sorted.iter().enumerate() {
        for point in points.iter().filter(|point| finite(point.y).is_none()) {
            if let Some(share) = x.share(point.x).filter(|share| (-0.001..=1.001).contains(share)) {
                gaps.push((plot.left + share * plot.width(), i, point.x));
            }
        }
    }
    gaps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let wanted: Vec<f64> = gaps.iter().map(|gap| gap.0).collect();
    for ((_, i, x), at) in gaps.iter().zip(spread(&wanted, 5.5, plot.left, plot.right)) {
        let told = format!("{}, {}: n/a", figure.series[*i].name, short(*x));
        marker(&mut frame.svg, "gap", &Stroke::of(*i), (at, middle), &told);
    }
    let bottom = top + STRIP;
    frame.svg.line("axes", (plot.left, bottom), (plot.right, bottom), INK, 0.6, &[]);
}
