//! Draws grouped bars. Bars above the cut-off end at it with a gap in them, and their numbers stand upright above the data,
//! moved apart as far as they must be, each joined to its bar by a line. A missing bar says "n/a": in its gap where that is
//! wide enough, else above, like a number.

use super::FigureError;
use super::above::{self, Above, PITCH};
use super::axis::{Axis, Scale, Span, short};
use super::bars::{Bar, Baseline, GroupedBars, Mean, Relative};
use super::frame::{Beside, Frame, Under, Wanted};
use super::legend::{Entry, Key, area, published};
use super::palette::{Fill, INK};
use super::under::bars as slots;

/// The line of the baseline.
const BASELINE: (&str, &[f64]) = ("#c00000", &[3.0, 1.5]);

pub(super) fn draw(figure: &GroupedBars, series: &[Relative<'_>], of: usize) -> Result<String, FigureError> {
    let shown: Vec<&Relative<'_>> = series.iter().filter(|series| !series.hidden).collect();
    if shown.is_empty() {
        return Err(FigureError::Empty { figure: "grouped bars", what: "series to draw beside the baseline" });
    }
    let cut = cut_off(figure, &shown);
    let span = span(figure, &shown, cut);
    let axis = Axis { scale: Scale::Linear, ..figure.axis.clone() };
    let all = || shown.iter().flat_map(|series| &series.bars);
    let beyond = |value: Option<f64>| value.filter(|value| *value > span.high);
    let mut legend = Vec::new();
    for (i, series) in shown.iter().enumerate() {
        legend.push(Entry::new(Key::Area(fill(figure, series, i)), series.name));
    }
    match &figure.baseline {
        Baseline::Relative(name) | Baseline::Series { name, drawn: false } => {
            legend.push(Entry::new(Key::Rule(BASELINE.0, BASELINE.1), &format!("{name} = 1")));
        }
        Baseline::None | Baseline::Series { .. } => {}
    }
    if all().any(|bar| bar.published.is_some()) {
        legend.push(Entry::new(Key::Diamond, "published"));
    }
    if all().any(|bar| beyond(bar.published).is_some()) {
        legend.push(Entry::new(Key::Above, "published, above the axis"));
    }
    let numbers = all().filter_map(|bar| beyond(bar.value)).map(short);
    let lane = !above::fits_into_gaps(figure.sheet.width_pt, figure.groups.len() + 1, shown.len());
    let missing = all().filter(|bar| lane && bar.value.is_none()).map(|_| "n/a".to_owned());
    let above = above::height(numbers.chain(missing));
    let mean = match of {
        all if all == figure.groups.len() => figure.mean.names()[1].to_owned(),
        some => format!("{} of {some}", figure.mean.names()[1]),
    };
    let with_means = figure.mean != Mean::None;
    let mut frame = Frame::new(&Wanted {
        sheet: &figure.sheet,
        legend: &legend,
        beside: Beside::Values(&axis, span),
        under: Under::Groups {
            names: &figure.groups,
            mean: with_means.then_some(mean.as_str()),
            bars: &[],
            name: &figure.groups_name,
        },
        above,
        below: 0.0,
        right: 0.0,
    })?;
    let mut labels = Vec::new();
    for group in 0..frame.bands.len() {
        let name = figure.groups.get(group).map_or(figure.mean.names()[0], String::as_str);
        draw_group(figure, &mut frame, &shown, group, name, &span, &mut labels);
    }
    above::write(&mut frame, &labels);
    let plot = frame.plot;
    if figure.baseline != Baseline::None
        && let Some(share) = span.share(1.0)
    {
        let y = plot.bottom - share * plot.height();
        frame.svg.line("baseline", (plot.left, y), (plot.right, y), BASELINE.0, 0.7, BASELINE.1);
    }
    if with_means && let [.., before, last] = frame.bands[..] {
        let x = (before.1 + last.0) / 2.0;
        frame.svg.line("separator", (x, plot.top), (x, plot.bottom), INK, 0.6, &[]);
    }
    frame.axes();
    Ok(frame.svg.finish(&figure.sheet.title.clone().unwrap_or_else(|| figure.axis.label())))
}

/// The fill of a series: that of its place among all, so that hiding the baseline changes no other's. White stays for a
/// baseline.
fn fill(figure: &GroupedBars, series: &Relative<'_>, index: usize) -> Fill {
    match &figure.baseline {
        Baseline::Series { name, drawn: true } => {
            let base = figure.series.iter().position(|other| other.name == *name).unwrap_or(0);
            match series.name == name {
                true => Fill::of(0),
                false => Fill::of(if index < base { index + 1 } else { index }),
            }
        }
        _ => Fill::of(index + 1),
    }
}

/// Where bars are cut, if they are: as asked, or higher where not all numbers would have room.
fn cut_off(figure: &GroupedBars, shown: &[&Relative<'_>]) -> Option<f64> {
    let asked = figure.cut_off.or(figure.axis.range.map(|[_, high]| high).filter(|high| high.is_finite()))?;
    let all = || shown.iter().flat_map(|series| &series.bars);
    let mut beyond: Vec<f64> = all().filter_map(|bar| bar.value).filter(|value| *value > asked).collect();
    beyond.sort_by(|a, b| b.total_cmp(a));
    let gaps = all().filter(|bar| bar.value.is_none()).count();
    // The data has at least this much of the width.
    let room = (figure.sheet.width_pt * 0.75 / PITCH) as usize;
    let cut = beyond.get(room.saturating_sub(gaps)).copied().unwrap_or(asked);
    Some(cut).filter(|_| !beyond.is_empty())
}

fn span(figure: &GroupedBars, shown: &[&Relative<'_>], cut: Option<f64>) -> Span {
    if let Some(cut) = cut {
        return Span::new(Scale::Linear, 0.0, cut);
    }
    let tops = shown.iter().flat_map(|series| &series.bars).flat_map(|bar| {
        let end = bar.value.map(|value| value + bar.error.unwrap_or(0.0));
        [end, bar.published].into_iter().flatten()
    });
    let line = if figure.baseline == Baseline::None { 0.0 } else { 1.05 };
    Span::of(&Axis { range: None, scale: Scale::Linear, ..figure.axis.clone() }, tops.chain([0.0, line]))
}

fn draw_group(
    figure: &GroupedBars,
    frame: &mut Frame,
    shown: &[&Relative<'_>],
    group: usize,
    name: &str,
    span: &Span,
    labels: &mut Vec<Above>,
) {
    let plot = frame.plot;
    let places = slots(frame.bands[group], shown.len());
    let y = |value: f64| plot.bottom - span.share(value).unwrap_or(0.0).clamp(0.0, 1.0) * plot.height();
    // Marks lie over all bars of the group.
    let mut marks = Vec::new();
    let mut gap: Option<(f64, f64)> = None;
    for (i, series) in shown.iter().enumerate() {
        let Bar { value, error, published: mark } = series.bars[group];
        let (from, to) = places[i];
        let middle = (from + to) / 2.0;
        match value {
            None => gap = Some((gap.map_or(from, |(start, _)| start), to)),
            Some(value) => {
                above::close(frame, &mut gap, labels);
                let told = format!("{name}, {}: {}", series.name, short(value));
                let place = (from, y(value), to - from, plot.bottom - y(value));
                area(&mut frame.svg, "bar", place, &fill(figure, series, i), &told);
                if value > span.high {
                    let (low, high) = (plot.top + 6.2, plot.top + 4.6);
                    frame.svg.line("break", (from - 0.5, low), (to + 0.5, high), "#ffffff", 1.3, &[]);
                    labels.push(Above { x: middle, text: short(value), gap: None });
                } else if let Some(error) = error {
                    let (low, high) = (y((value - error).max(0.0)), y(value + error));
                    let cap = ((to - from) * 0.3).min(2.0);
                    let ends = [(middle - cap, high), (middle + cap, high), (middle, high), (middle, low)];
                    let ends = [&ends[..], &[(middle - cap, low), (middle + cap, low)]].concat();
                    frame.svg.polyline("error", &ends, INK, 0.5, &[]);
                }
            }
        }
        if let Some(mark) = mark {
            let told = format!("{name}, {}: published {}", series.name, short(mark));
            let at = if mark > span.high { plot.top + 2.0 } else { y(mark) };
            marks.push((middle, at, mark > span.high, told));
        }
    }
    above::close(frame, &mut gap, labels);
    for (x, y, above, told) in marks {
        published(&mut frame.svg, "published", (x, y), above, &told);
    }
}
