//! Grouped bars: kernels by schemes, over a baseline, with their means.
//!
//! The mean is over the groups in which every series has a value above 0, so that the means of series can be
//! compared; a series without any value is left out of that. The error of the baseline does not enter those
//! of others.
//!
//! Bars above the cut-off end at it with a gap in them, and their numbers stand above the data. A cut that
//! more than a quarter of all bars or half of a series pass is raised until no more do, and left out where it
//! then saves little. A missing bar says "n/a": in its gap where that is wide enough, else above, like a
//! number.
//!
//! On a logarithmic axis nothing is cut: equal factors are equally high. Bars stand on its low end, which is
//! the baseline where no value is below it.

use serde::{Deserialize, Serialize};

use super::axis::{Axis, Scale, Span, above_0_on, short};
use super::frame::{Beside, Frame, Under, Wanted};
use super::labels::{NumberLabel, PITCH, close_gap, fits_into_gaps, room_above, slots, write_above};
use super::legend::{Key, LegendEntry, area, published};
use super::palette::{Fill, INK};
use super::sheet::{FigureError, Sheet, finite, not_negative, same_length, some_of};
use super::tidy::{Tidy, full};

/// Bars in groups.
///
/// # Example: two kernels under two schemes
/// ```
/// use durawarp_plot::{Axis, BarSeries, Baseline, Better, GroupedBars, Mean, Sheet};
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
/// # Ok::<(), durawarp_plot::FigureError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupedBars {
    /// Size and words.
    pub sheet: Sheet,
    /// The axis of what is drawn: of relative values where there is a baseline. The high end of a linear
    /// one's range acts as a cut-off.
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
    /// Bars above this are drawn broken, with their number on top. It is raised where the numbers have no
    /// room, or more than a quarter of all bars or half of a series would be broken.
    #[serde(default)]
    pub cut_off: Option<f64>,
}

/// One series of bars.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BarSeries {
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
        name: String,
        /// Whether its bars are drawn too.
        drawn: bool,
    },
}

/// Which mean of its bars a series has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mean {
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
    fn names(self) -> [&'static str; 2] {
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
/// use durawarp_plot::geometric_mean;
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
struct Relative<'a> {
    name: &'a str,
    /// A bar a group, relative and finite, then that of the mean.
    bars: Vec<Bar>,
    /// Not drawn, but in the CSV.
    hidden: bool,
}

impl GroupedBars {
    /// The figure as an SVG document.
    ///
    /// # Errors
    /// When there are no groups or series, rows do not fit together, a value is negative (on a logarithmic
    /// axis: not above 0), or the paper is too small.
    pub fn svg(&self) -> Result<String, FigureError> {
        let (series, of) = self.relative()?;
        draw(self, &series, of)
    }

    /// Its data as CSV: kind ("bar" or "mean"), group, series, value, relative value, relative error,
    /// published value, and of how many groups a mean is.
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

/// The line of the baseline.
const BASELINE: (&str, &[f64]) = ("#c00000", &[3.0, 1.5]);

fn draw(figure: &GroupedBars, series: &[Relative<'_>], of: usize) -> Result<String, FigureError> {
    let shown: Vec<&Relative<'_>> = series.iter().filter(|series| !series.hidden).collect();
    if shown.is_empty() {
        return Err(FigureError::Empty { figure: "grouped bars", what: "series to draw beside the baseline" });
    }
    // The axis comes first: legend and margins depend on which values lie beyond it.
    for series in &shown {
        for bar in &series.bars {
            above_0_on(&figure.axis, series.name, bar.value)?;
            above_0_on(&figure.axis, series.name, bar.published)?;
        }
    }
    let cut = cut_off(figure, &shown);
    let span = span(figure, &shown, cut);
    let axis = figure.axis.clone();
    let all = || shown.iter().flat_map(|series| &series.bars);
    let beyond = |value: Option<f64>| value.filter(|value| *value > span.high);
    let mut legend = Vec::new();
    for (i, series) in shown.iter().enumerate() {
        legend.push(LegendEntry::new(Key::Area(fill(figure, series, i)), series.name));
    }
    match &figure.baseline {
        Baseline::Relative(name) | Baseline::Series { name, drawn: false } => {
            legend.push(LegendEntry::new(Key::Rule(BASELINE.0, BASELINE.1), &format!("{name} = 1")));
        }
        Baseline::None | Baseline::Series { .. } => {}
    }
    if all().any(|bar| bar.published.is_some()) {
        legend.push(LegendEntry::new(Key::Diamond, "published"));
    }
    if all().any(|bar| beyond(bar.published).is_some()) {
        legend.push(LegendEntry::new(Key::Above, "published, above the axis"));
    }
    let numbers = all().filter_map(|bar| beyond(bar.value)).map(short);
    // Where gaps between bars are too narrow for "n/a", it stands above the plot, as the numbers of cut bars
    // do.
    let lane = !fits_into_gaps(figure.sheet.width_pt, figure.groups.len() + 1, shown.len());
    let missing = all().filter(|bar| lane && bar.value.is_none()).map(|_| "n/a".to_owned());
    let above = room_above(numbers.chain(missing));
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
    // Labels above the plot are collected over all groups and written together.
    let mut labels = Vec::new();
    for group in 0..frame.bands.len() {
        let name = figure.groups.get(group).map_or(figure.mean.names()[0], String::as_str);
        draw_group(figure, &mut frame, &shown, group, name, &span, &mut labels);
    }
    write_above(&mut frame.svg, frame.plot, &labels);
    let plot = frame.plot;
    // Lines and axes last, over the bars.
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

/// The fill of a series: that of its place among all, so that hiding the baseline changes no other's. White
/// stays for a baseline.
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

/// The greatest shares of all bars, and of a series' bars, that a cut may break: what breaks more hides what
/// the figure is about.
const BROKEN: [f64; 2] = [0.25, 0.5];
/// How far above a raised cut the longest bar is at the least: less saves no height that is worth a broken
/// bar.
const WORTH: f64 = 1.5;

/// Where bars are cut, if they are: as asked, or higher where it would break too many or their numbers have
/// no room.
fn cut_off(figure: &GroupedBars, shown: &[&Relative<'_>]) -> Option<f64> {
    if figure.axis.scale != Scale::Linear {
        return None;
    }
    let asked = figure.cut_off.or(figure.axis.range.map(|[_, high]| high).filter(|high| high.is_finite()))?;
    let mut all = Vec::new();
    let mut raised = asked;
    // The least cut that breaks no more than `most` of these.
    let least = |values: &mut Vec<f64>, most: usize| {
        values.sort_by(|a, b| b.total_cmp(a));
        values.get(most).copied().unwrap_or(asked)
    };
    for series in shown {
        let mut values: Vec<f64> = series.bars.iter().filter_map(|bar| bar.value).collect();
        all.extend_from_slice(&values);
        let most = ((values.len() as f64 * BROKEN[1]) as usize).max(1);
        raised = raised.max(least(&mut values, most));
    }
    let gaps = shown.iter().flat_map(|series| &series.bars).filter(|bar| bar.value.is_none()).count();
    // The data has at least this much of the width.
    let room = (figure.sheet.width_pt * 0.75 / PITCH) as usize;
    let most = room.saturating_sub(gaps).min(((all.len() as f64 * BROKEN[0]) as usize).max(1));
    raised = raised.max(least(&mut all, most));
    let longest = all.first().copied().filter(|longest| *longest > asked)?;
    if raised == asked {
        return Some(asked);
    }
    let cut = Span::of(&Axis::new("", ""), [0.0, raised].into_iter()).high;
    (longest > cut * WORTH).then_some(cut)
}

fn span(figure: &GroupedBars, shown: &[&Relative<'_>], cut: Option<f64>) -> Span {
    if let Some(cut) = cut {
        return Span::new(Scale::Linear, 0.0, cut);
    }
    let tops = shown.iter().flat_map(|series| &series.bars).flat_map(|bar| {
        let end = bar.value.map(|value| value + bar.error.unwrap_or(0.0));
        [end, bar.published].into_iter().flatten()
    });
    let related = figure.baseline != Baseline::None;
    let axis = Axis { range: None, ..figure.axis.clone() };
    if axis.scale != Scale::Linear {
        // Of a mean of nothing there is no bar.
        return Span::of(&axis, tops.chain(related.then_some(1.0)));
    }
    Span::of(&axis, tops.chain([0.0, if related { 1.05 } else { 0.0 }]))
}

fn draw_group(
    figure: &GroupedBars,
    frame: &mut Frame,
    shown: &[&Relative<'_>],
    group: usize,
    name: &str,
    span: &Span,
    labels: &mut Vec<NumberLabel>,
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
                close_gap(&mut frame.svg, plot, &mut gap, labels);
                let told = format!("{name}, {}: {}", series.name, short(value));
                let place = (from, y(value), to - from, plot.bottom - y(value));
                area(&mut frame.svg, "bar", place, &fill(figure, series, i), &told);
                // A bar that ends above the axis is shown broken, and its number stands above the plot: its
                // height says nothing.
                if value > span.high {
                    let (low, high) = (plot.top + 6.2, plot.top + 4.6);
                    frame.svg.line("break", (from - 0.5, low), (to + 0.5, high), "#ffffff", 1.3, &[]);
                    labels.push(NumberLabel { x: middle, text: short(value), gap: None });
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
    close_gap(&mut frame.svg, plot, &mut gap, labels);
    for (x, y, above, told) in marks {
        published(&mut frame.svg, "published", (x, y), above, &told);
    }
}
