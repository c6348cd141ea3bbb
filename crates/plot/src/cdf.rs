//! Cumulative distributions: which share of samples is not above a value. Steps, since a sample is a sample;
//! markers at shares that differ between series, since steps have no points of their own to mark.
//!
//! Samples that are not finite have no place: they are left out and counted in the legend. On a logarithmic
//! axis what is not above 0 lies beyond the left edge, where the line then starts above 0.

use serde::{Deserialize, Serialize};

use super::axis::{Axis, Scale, Span, short};
use super::frame::{Beside, Frame, RIGHT, Under, Wanted};
use super::legend::{Key, LegendEntry};
use super::palette::{Stroke, marker};
use super::sheet::{FigureError, Sheet, finite, some_of};
use super::svg::Point;
use super::tidy::{Tidy, full};

/// Cumulative distributions of several series.
///
/// # Example: latencies of persists
/// ```
/// use durawarp_plot::{Axis, Cdf, CdfSeries, Scale, Sheet};
/// let latency = Cdf {
///     sheet: Sheet::one_column(),
///     x: Axis::new("latency of a persist", "ns").scale(Scale::Log10),
///     of: "persists".into(),
///     series: vec![CdfSeries::of("base", &[120.0, 80.0, 800.0, 80.0])],
/// };
/// assert_eq!(latency.csv()?, "series,x,share\nbase,80.0,0.5\nbase,120.0,0.75\nbase,800.0,1.0\n");
/// # Ok::<(), durawarp_plot::FigureError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cdf {
    /// Size and words.
    pub sheet: Sheet,
    /// The axis of samples' values.
    pub x: Axis,
    /// What samples are: "persists".
    pub of: String,
    /// The distributions.
    pub series: Vec<CdfSeries>,
}

/// One distribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CdfSeries {
    pub name: String,
    /// Values, and the share of samples that are not above each, from 0 to 1.
    pub points: Vec<[f64; 2]>,
    /// Samples left out, since they are no numbers.
    #[serde(default)]
    pub left_out: u64,
}

impl CdfSeries {
    /// The distribution of samples.
    pub fn of(name: &str, samples: &[f64]) -> CdfSeries {
        let mut values: Vec<f64> = samples.iter().copied().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let mut points: Vec<[f64; 2]> = Vec::new();
        for (i, value) in values.iter().enumerate() {
            let share = (i + 1) as f64 / values.len() as f64;
            match points.last_mut() {
                Some(last) if last[0] == *value => last[1] = share,
                _ => points.push([*value, share]),
            }
        }
        CdfSeries { name: name.to_owned(), points, left_out: (samples.len() - values.len()) as u64 }
    }

    fn finite(&self) -> impl Iterator<Item = [f64; 2]> + Clone {
        self.points.iter().copied().filter(|[value, share]| finite(Some(*value)).is_some() && share.is_finite())
    }

    /// The name, with what is missing.
    fn told(&self) -> String {
        let lost = self.left_out + (self.points.len() - self.finite().count()) as u64;
        match (self.finite().next(), lost) {
            (None, _) => format!("{} (n/a)", self.name),
            (Some(_), 0) => self.name.clone(),
            (Some(_), lost) => format!("{} ({lost} n/a)", self.name),
        }
    }

    /// The least value of which at least a share of samples is not above.
    fn quantile(&self, share: f64) -> Option<f64> {
        self.finite().find(|[_, reached]| *reached >= share).map(|[value, _]| value)
    }
}

impl Cdf {
    /// The figure as an SVG document.
    ///
    /// # Errors
    /// When there are no series, values or shares fall, a share is no share, or the paper is too small.
    pub fn svg(&self) -> Result<String, FigureError> {
        self.check()?;
        let x = Span::tight(&self.x, self.series.iter().flat_map(|series| series.finite().map(|[value, _]| value)));
        let y_axis = Axis::new(&format!("share of {}", self.of), "");
        let y = Span::new(Scale::Linear, 0.0, 1.0);
        let entry = |(i, series): (usize, &CdfSeries)| LegendEntry::new(Key::Line(Stroke::of(i)), &series.told());
        let legend: Vec<LegendEntry> = self.series.iter().enumerate().map(entry).collect();
        let mut frame = Frame::new(&Wanted {
            sheet: &self.sheet,
            legend: &legend,
            beside: Beside::Values(&y_axis, y),
            under: Under::Values(&self.x, x),
            above: 3.0,
            below: 0.0,
            right: RIGHT,
        })?;
        let clip = frame.clip();
        for (i, series) in self.series.iter().enumerate() {
            draw(&mut frame, series, Stroke::of(i), &x, &clip);
        }
        for (i, series) in self.series.iter().enumerate() {
            mark(&mut frame, series, i, self.series.len(), &x);
        }
        frame.axes();
        Ok(frame.svg.finish(&self.sheet.title.clone().unwrap_or_else(|| self.x.label())))
    }

    /// Its data as CSV: series, value, share.
    ///
    /// # Errors
    /// When there are no series, values or shares fall, or a share is no share.
    pub fn csv(&self) -> Result<String, FigureError> {
        self.check()?;
        let mut tidy = Tidy::new(&["series", "x", "share"]);
        for series in &self.series {
            for [value, share] in &series.points {
                tidy.row(&[&series.name, &full(Some(*value)), &full(Some(*share))]);
            }
        }
        Ok(tidy.finish())
    }

    fn check(&self) -> Result<(), FigureError> {
        some_of("a cumulative distribution", "series", &self.series)?;
        for series in &self.series {
            let unfit = |value, reason| {
                Err(FigureError::Unfit { what: format!("distribution `{}`", series.name), value, reason })
            };
            let mut before = [f64::NEG_INFINITY, 0.0];
            for point in series.finite() {
                if !(0.0..=1.0 + 1e-9).contains(&point[1]) {
                    return unfit(point[1], "is no share: these are from 0 to 1");
                }
                if point[0] < before[0] || point[1] < before[1] {
                    return unfit(point[0], "stands behind a greater value or share");
                }
                before = point;
            }
        }
        Ok(())
    }
}

fn place(frame: &Frame, x: &Span, value: f64) -> f64 {
    // What a logarithmic axis has no place for lies left of everything.
    frame.plot.left + x.share(value).unwrap_or(-1.0).clamp(-1.0, 2.0) * frame.plot.width()
}

fn draw(frame: &mut Frame, series: &CdfSeries, stroke: Stroke, x: &Span, clip: &str) {
    let plot = frame.plot;
    let up = |share: f64| plot.bottom - share * plot.height();
    let mut steps: Vec<Point> = Vec::new();
    let mut reached = 0.0;
    for [value, share] in series.finite() {
        let at = place(frame, x, value);
        // A step that nobody can see is left to the next: files stay small whatever the number of samples.
        let seen = steps.last().is_none_or(|(px, py)| at - px > 0.05 || py - up(share) > 0.05);
        if seen {
            let start = if steps.is_empty() { plot.left.min(at) } else { at };
            steps.extend([(start, up(reached)), (at, up(reached)), (at, up(share))]);
        }
        reached = share;
    }
    if !steps.is_empty() {
        let last = place(frame, x, x.high);
        steps.push((steps[steps.len() - 1].0.max(last), up(reached)));
        steps.dedup();
        let steps: Vec<Option<Point>> = steps.into_iter().map(Some).collect();
        frame.svg.broken_line("line", &steps, (stroke.colour, 1.1, stroke.dashes), clip);
    }
}

/// Markers at five shares, another five for each series.
fn mark(frame: &mut Frame, series: &CdfSeries, index: usize, of: usize, x: &Span) {
    let plot = frame.plot;
    for fifth in 0..5 {
        let share = (f64::from(fifth) + (index as f64 + 0.5) / of as f64) / 5.0;
        let Some(value) = series.quantile(share) else { continue };
        let at = place(frame, x, value);
        if (plot.left - 0.1..=plot.right + 0.1).contains(&at) {
            let told = format!("{}: {} of samples up to {}", series.name, short(share), short(value));
            let at = (at, plot.bottom - share * plot.height());
            marker(&mut frame.svg, "marker", &Stroke::of(index), at, &told);
        }
    }
}
