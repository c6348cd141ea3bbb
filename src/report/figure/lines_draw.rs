//! Draws lines with markers and error bars. What lies beyond a range that was asked for is clipped, never moved.

use super::axis::{Scale, Span, short};
use super::frame::{Beside, Frame, Under, Wanted};
use super::legend::{Entry, Key};
use super::lines::{LinePoint, LineSeries, Lines};
use super::palette::{GREY, INK, Stroke, marker};
use super::spread::spread;
use super::svg::{Anchor, Element, Point, Svg, Text, number, places};
use super::text::{MIDDLE, SMALL};
use super::{FigureError, finite};

/// The dashes of a line to compare with.
pub(super) const IDEAL: &[f64] = &[4.5, 2.0];
/// The dashes of a published value.
const PUBLISHED: &[f64] = &[8.0, 3.0];
/// Height of the strip for missing points, and its distance from the data.
const STRIP: f64 = 7.0;
const APART: f64 = 4.0;
/// Room on the right for half of the last number below.
pub(super) const RIGHT: f64 = 12.0;

pub(super) fn draw(figure: &Lines) -> Result<String, FigureError> {
    let all = || figure.series.iter().chain(&figure.ideal);
    let xs = all().flat_map(|series| &series.points).map(|point| point.x);
    let ys = all().flat_map(|series| &series.points).filter_map(|point| finite(point.y));
    // Error bars do not stretch a logarithmic axis: one that reaches down to 0 has no end there.
    let linear = figure.y.scale == Scale::Linear;
    let ends = all().flat_map(|series| &series.points).filter_map(|p| Some((finite(p.y)?, finite(p.error)?)));
    let ends = ends.filter(|_| linear).flat_map(|(y, error)| [y - error, y + error]);
    let published = figure.series.iter().flat_map(|series| &series.published).copied();
    let (x, y) = (Span::tight(&figure.x, xs), Span::of(&figure.y, ys.chain(ends).chain(published.clone())));
    let mut legend: Vec<Entry> = figure
        .series
        .iter()
        .enumerate()
        .map(|(i, series)| Entry::new(Key::Line(Stroke::of(i)), &series.name))
        .collect();
    legend.extend(figure.ideal.as_ref().map(|ideal| Entry::new(Key::Rule(GREY, IDEAL), &ideal.name)));
    if published.clone().next().is_some() {
        legend.push(Entry::new(Key::Rule(GREY, PUBLISHED), "published"));
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
    let clip = clip(&mut frame);
    if let Some(ideal) = &figure.ideal {
        let points: Vec<Option<Point>> = ideal.sorted().iter().map(place).collect();
        broken_line(&mut frame.svg, "ideal", &points, (GREY, 0.9, IDEAL), &clip);
    }
    for (i, series) in figure.series.iter().enumerate() {
        for share in series.published.iter().filter_map(|value| y.share(finite(Some(*value))?)) {
            let at = plot.bottom - share.clamp(-50.0, 50.0) * plot.height();
            let ends = [Some((plot.left, at)), Some((plot.right, at))];
            broken_line(&mut frame.svg, "published", &ends, (Stroke::of(i).colour, 0.8, PUBLISHED), &clip);
        }
    }
    for (i, points) in sorted.iter().enumerate() {
        let stroke = Stroke::of(i);
        let at: Vec<Option<Point>> = points.iter().map(place).collect();
        broken_line(&mut frame.svg, "line", &at, (stroke.colour, 1.1, stroke.dashes), &clip);
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

/// Restricts lines to where data belongs. The name says which place that is, so that figures in one page do not clash.
pub(super) fn clip(frame: &mut Frame) -> String {
    let plot = frame.plot;
    // Half a line's width more, or lines along an edge would be cut lengthwise.
    let sides = [plot.left, plot.top, plot.width(), plot.height()];
    let name = format!("clip-{}", sides.map(number).join("-"));
    let [left, top, width, height] =
        [plot.left - 0.7, plot.top - 0.7, plot.width() + 1.4, plot.height() + 1.4].map(number);
    frame.svg.define(&name, || {
        format!(
            "<clipPath id=\"{name}\"><rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"/></clipPath>"
        )
    });
    name
}

/// A line with gaps.
pub(super) fn broken_line(
    svg: &mut Svg,
    class: &str,
    points: &[Option<Point>],
    (colour, width, dashes): (&str, f64, &[f64]),
    clip: &str,
) {
    for part in points.split(Option::is_none).filter(|part| part.len() > 1) {
        let part: Vec<Point> = part.iter().copied().flatten().collect();
        let line = Element::new("polyline", class).word("points", &places(&part)).word("fill", "none");
        let line = line.stroke(colour, width).word("stroke-linejoin", "round").dashes(dashes);
        svg.put(line.word("clip-path", &format!("url(#{clip})")));
    }
}
