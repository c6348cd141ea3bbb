//! Stacked bars: what a whole is made of, such as stalls or traffic, for kernels or for schemes within
//! kernels.
//!
//! A bar with a part that is missing shows the others and says "n/a": its length is not the whole. Names of
//! bars stand below them where they fit, else their order is said once; then every group has to have the same
//! bars.

use serde::{Deserialize, Serialize};

use super::axis::{Axis, Scale, Span, short};
use super::frame::{Beside, Frame, Under, Wanted};
use super::labels::{NumberLabel, close_gap, fits_into_gaps, room_above, slots, write_above};
use super::legend::{Key, LegendEntry, area};
use super::palette::Fill;
use super::sheet::{FigureError, Sheet, finite, not_negative, same_length, some_of};
use super::tidy::{Tidy, full};

/// Stacked bars in groups.
///
/// # Example: what warps of one kernel wait for
/// ```
/// use durawarp_plot::{Axis, Sheet, Stack, StackGroup, StackedBars};
/// let stalls = StackedBars {
///     sheet: Sheet::one_column(),
///     axis: Axis::new("resident warp cycles", "%"),
///     parts: vec!["issue".into(), "memory".into(), "persist".into()],
///     groups_name: String::new(),
///     groups: vec![StackGroup { name: "NW".into(), bars: vec![
///         Stack::of("base", &[40.0, 60.0, 0.0]),
///         Stack::of("themis", &[35.0, 50.0, 15.0]),
///     ] }],
/// };
/// assert!(stalls.svg()?.contains("persist"));
/// assert!(stalls.csv()?.contains("NW,themis,persist,15.0"));
/// # Ok::<(), durawarp_plot::FigureError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StackedBars {
    /// Size and words.
    pub sheet: Sheet,
    /// The axis of values. Its scale is not used.
    pub axis: Axis,
    /// What bars are made of, from the foot up.
    pub parts: Vec<String>,
    /// Groups, such as kernels.
    pub groups: Vec<StackGroup>,
    /// What groups are, said below them; empty where their names say it.
    #[serde(default)]
    pub groups_name: String,
}

/// Bars side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StackGroup {
    pub name: String,
    /// The bars, such as schemes.
    pub bars: Vec<Stack>,
}

/// One bar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stack {
    /// Name; empty where a group is one bar.
    pub name: String,
    /// A value a part; `None` for "n/a".
    pub values: Vec<Option<f64>>,
}

impl Stack {
    /// A bar without missing values.
    pub fn of(name: &str, values: &[f64]) -> Stack {
        Stack { name: name.to_owned(), values: values.iter().copied().map(Some).collect() }
    }
}

/// What a drawing of stacks does not take from the data.
pub(super) struct Look<'a> {
    pub(super) fill: &'a dyn Fn(usize) -> Fill,
    /// Stands before the legend.
    pub(super) legend_name: &'a str,
    /// The high end of the axis, where it is fixed.
    pub(super) high: Option<f64>,
}

impl StackedBars {
    /// The figure as an SVG document.
    ///
    /// # Errors
    /// When there are no groups, bars or parts, rows do not fit together, a value is negative, or the paper
    /// is too small.
    pub fn svg(&self) -> Result<String, FigureError> {
        let high = self.axis.range.map(|[_, high]| high);
        self.draw(&Look { fill: &|i| Fill::of(i + 1), legend_name: "", high })
    }

    /// Its data as CSV: group, bar, part, value.
    ///
    /// # Errors
    /// When there are no groups, bars or parts, or rows do not fit together.
    pub fn csv(&self) -> Result<String, FigureError> {
        self.check()?;
        let mut tidy = Tidy::new(&["group", "bar", "part", "value"]);
        for group in &self.groups {
            for bar in &group.bars {
                for (part, value) in self.parts.iter().zip(&bar.values) {
                    tidy.row(&[&group.name, &bar.name, part, &full(*value)]);
                }
            }
        }
        Ok(tidy.finish())
    }

    fn check(&self) -> Result<(), FigureError> {
        some_of("stacked bars", "groups", &self.groups)?;
        some_of("stacked bars", "parts", &self.parts)?;
        for group in &self.groups {
            some_of("stacked bars", "bars in a group", &group.bars)?;
            for bar in &group.bars {
                let what = || format!("bar `{}` of `{}`", bar.name, group.name);
                same_length(what, self.parts.len(), bar.values.len())?;
                for value in &bar.values {
                    not_negative(what, *value)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn draw(&self, look: &Look<'_>) -> Result<String, FigureError> {
        self.check()?;
        let mut legend: Vec<LegendEntry> = Vec::new();
        if !look.legend_name.is_empty() {
            legend.push(LegendEntry::new(Key::None, look.legend_name));
        }
        legend.extend(self.parts.iter().enumerate().map(|(i, part)| LegendEntry::new(Key::Area((look.fill)(i)), part)));
        let totals = self.bars().map(|bar| bar.values.iter().filter_map(|value| finite(*value)).sum::<f64>());
        let axis = Axis { scale: Scale::Linear, range: None, ..self.axis.clone() };
        let mut span = Span::of(&axis, totals.chain([0.0]));
        if let Some(high) = look.high.filter(|high| *high > 0.0 && high.is_finite()) {
            span.high = high;
        }
        let mut frame = self.frame(&legend, &axis, span)?;
        let mut labels = Vec::new();
        for (group, band) in self.groups.iter().zip(frame.bands.clone()) {
            let mut gap = None;
            for (bar, place) in group.bars.iter().zip(slots(band, group.bars.len())) {
                self.draw_bar(&mut frame, &group.name, bar, place, &span, look, &mut gap, &mut labels);
            }
            close_gap(&mut frame.svg, frame.plot, &mut gap, &mut labels);
        }
        write_above(&mut frame.svg, frame.plot, &labels);
        frame.axes();
        Ok(frame.svg.finish(&self.sheet.title.clone().unwrap_or_else(|| self.axis.label())))
    }

    fn bars(&self) -> impl Iterator<Item = &Stack> + Clone {
        self.groups.iter().flat_map(|group| &group.bars)
    }

    /// The surroundings, with names of bars below them if that fits.
    fn frame(&self, legend: &[LegendEntry], axis: &Axis, span: Span) -> Result<Frame, FigureError> {
        let names: Vec<String> = self.groups.iter().map(|group| group.name.clone()).collect();
        let of = |group: &StackGroup| group.bars.iter().map(|bar| bar.name.clone()).collect::<Vec<_>>();
        let bars: Vec<Vec<String>> = self.groups.iter().map(of).collect();
        let most = self.groups.iter().map(|group| group.bars.len()).max().unwrap_or(1);
        let in_gaps = fits_into_gaps(self.sheet.width_pt, self.groups.len(), most);
        let missing = self.bars().filter(|bar| match bar.values.iter().filter(|v| finite(**v).is_none()).count() {
            0 => false,
            all if all == bar.values.len() => !in_gaps,
            _ => true,
        });
        let frame = |bars: &[Vec<String>], name: &str| {
            Frame::new(&Wanted {
                sheet: &self.sheet,
                legend,
                beside: Beside::Values(axis, span),
                under: Under::Groups { names: &names, mean: None, bars, name },
                above: room_above(missing.clone().map(|_| "n/a".to_owned())),
                below: 0.0,
                right: 0.0,
            })
        };
        if bars.iter().flatten().all(String::is_empty) {
            return frame(&[], &self.groups_name);
        }
        // Names of bars that do not fit are said once for all groups, which is possible only where all have
        // the same.
        match frame(&bars, &self.groups_name) {
            Err(FigureError::Room { .. }) if bars.iter().all(|names| *names == bars[0]) => {
                let named = if self.groups_name.is_empty() { "group" } else { self.groups_name.as_str() };
                frame(&[], &format!("in each {named}, from the left: {}", bars[0].join(", ")))
            }
            other => other,
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a bar's drawing is one step of the loop over groups and bars")]
    fn draw_bar(
        &self,
        frame: &mut Frame,
        group: &str,
        bar: &Stack,
        (from, to): (f64, f64),
        span: &Span,
        look: &Look<'_>,
        gap: &mut Option<(f64, f64)>,
        labels: &mut Vec<NumberLabel>,
    ) {
        let plot = frame.plot;
        let y = |value: f64| plot.bottom - span.share(value).unwrap_or(0.0).clamp(0.0, 1.0) * plot.height();
        if bar.values.iter().all(|value| finite(*value).is_none()) {
            *gap = Some((gap.map_or(from, |(start, _)| start), to));
            return;
        }
        close_gap(&mut frame.svg, frame.plot, gap, labels);
        let mut below = 0.0;
        for (i, value) in bar.values.iter().enumerate() {
            let Some(value) = finite(*value) else { continue };
            let (foot, top) = (y(below), y(below + value));
            below += value;
            if foot - top > 0.0 {
                let named = if bar.name.is_empty() { group.to_owned() } else { format!("{group}, {}", bar.name) };
                let told = format!("{named}, {}: {}", self.parts[i], short(value));
                area(&mut frame.svg, "bar", (from, top, to - from, foot - top), &(look.fill)(i), &told);
            }
        }
        if bar.values.iter().any(|value| finite(*value).is_none()) {
            // What is missing would stand on top.
            labels.push(NumberLabel { x: (from + to) / 2.0, text: "n/a".to_owned(), gap: Some(y(below)) });
        }
    }
}
