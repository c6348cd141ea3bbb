//! Quantities that are constant for a step and then change: a panel each, one below the other over the same
//! steps, with a strip below that says which state each step was in.
//!
//! ```text
//!   cycles |      __       a line a series: its colour and dashes tell it from the others
//!          |__  _|
//!   logs   |  __
//!          |_|  |__
//!   way    [//][   ]       the state of each step
//!           0  1  2  3     steps in order
//! ```
//! Each step belongs to one series. A line is broken where the series changes, where a `begins` step is, and
//! at a missing value. Steps are as wide as each other, whatever time they took.

use serde::{Deserialize, Serialize};

use super::axis::{Axis, Span};
use super::frame::{Beside, Frame, RIGHT, Under, Wanted, Window};
use super::legend::{Key, LegendEntry, PAD, area, foot, head};
use super::palette::{Fill, Stroke};
use super::sheet::{FigureError, Sheet, finite, not_negative, same_length, some_of};
use super::svg::{Anchor, Point, Svg, Text};
use super::text::{MIDDLE, NORMAL, SMALL, cut};
use super::tidy::{Tidy, full};

/// Height of the strip of states, and its distance from the data.
const STRIP: f64 = 8.0;
const APART: f64 = 4.0;
/// Between two panels.
const GAP: f64 = 13.0;

/// Quantities over steps.
///
/// # Example: two periods of one kernel
/// ```
/// use durawarp_plot::{Axis, Sheet, Step, Steps};
/// let step = |state: &str, threshold: f64| Step {
///     series: "atax".into(), state: state.into(), begins: false, values: vec![Some(threshold)],
/// };
/// let steps = Steps {
///     sheet: Sheet::one_column(),
///     x: Axis::new("period", ""),
///     panels: vec![Axis::new("threshold", "logs")],
///     states: "way".into(),
///     steps: vec![step("past", 10000.0), step("through", 9000.0)],
/// };
/// assert!(steps.svg()?.contains("through"));
/// assert!(steps.csv()?.contains("1,atax,through,9000.0"));
/// # Ok::<(), durawarp_plot::FigureError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Steps {
    /// Size and words.
    pub sheet: Sheet,
    /// What steps are. Its scale is not used.
    pub x: Axis,
    /// The axes of values, a panel each, from the top; linear.
    pub panels: Vec<Axis>,
    /// What states are.
    pub states: String,
    /// Steps in order, from 0.
    pub steps: Vec<Step>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Whose it is.
    pub series: String,
    /// The state it was in.
    pub state: String,
    /// It does not follow from the step before, though it may be of the same series.
    #[serde(default)]
    pub begins: bool,
    /// A value a panel; `None` for a gap.
    pub values: Vec<Option<f64>>,
}

impl Steps {
    /// The figure as an SVG document.
    ///
    /// # Errors
    /// When there are no steps or panels, a step has not one value a panel, a value is negative, or the paper
    /// is too small.
    pub fn svg(&self) -> Result<String, FigureError> {
        self.check()?;
        let spans: Vec<Span> = (0..self.panels.len()).map(|panel| self.span(panel)).collect();
        let x = Span::of(&self.x.clone().range(0.0, self.steps.len() as f64), std::iter::empty());
        let legend = self.legend();
        let width = self.sheet.width_pt;
        // Panels begin at one edge, that of the widest numbers: once to find it, once to draw.
        let mut left = 0.0;
        let mut drawn = None;
        for _ in 0..2 {
            let mut svg = Svg::new(width, self.sheet.height_pt);
            let mut top = head(&mut svg, &self.sheet, &legend) + 3.0;
            // Panels share what head and foot leave.
            let end = foot(&mut svg, &self.sheet);
            let under = APART + STRIP + 2.0 * NORMAL + 8.0;
            let room = end - top - under - GAP * (self.panels.len() - 1) as f64;
            for (panel, axis) in self.panels.iter().enumerate() {
                let last = panel + 1 == self.panels.len();
                let bottom = top + room / self.panels.len() as f64;
                let wanted = Wanted {
                    sheet: &self.sheet,
                    legend: &[],
                    beside: Beside::Values(axis, spans[panel]),
                    under: if last { Under::Values(&self.x, x) } else { Under::Panel },
                    above: 0.0,
                    below: if last { APART + STRIP } else { 0.0 },
                    right: RIGHT,
                };
                let bottom = if last { end } else { bottom };
                let mut frame = Frame::within(svg, &wanted, Window { top, bottom, left, beyond: 0.0 })?;
                left = frame.plot.left.max(left);
                self.draw_panel(&mut frame, panel, &spans[panel]);
                frame.axes();
                if last {
                    self.draw_states(&mut frame);
                }
                top = bottom + GAP;
                svg = frame.svg;
            }
            drawn = Some(svg);
        }
        let title = self.sheet.title.clone().unwrap_or_else(|| self.x.label());
        Ok(drawn.map(|svg| svg.finish(&title)).unwrap_or_default())
    }

    /// Its data as CSV: step, series, state, then a column a panel.
    ///
    /// # Errors
    /// When there are no steps or panels, or a step has not one value a panel.
    pub fn csv(&self) -> Result<String, FigureError> {
        self.check()?;
        let labels: Vec<String> = self.panels.iter().map(Axis::label).collect();
        let mut header = vec![self.x.name.as_str(), "series", self.states.as_str()];
        header.extend(labels.iter().map(String::as_str));
        let mut tidy = Tidy::new(&header);
        for (at, step) in self.steps.iter().enumerate() {
            let mut row = vec![at.to_string(), step.series.clone(), step.state.clone()];
            row.extend(step.values.iter().map(|value| full(*value)));
            tidy.row(&row);
        }
        Ok(tidy.finish())
    }

    fn check(&self) -> Result<(), FigureError> {
        some_of("steps", "panels", &self.panels)?;
        some_of("steps", "steps", &self.steps)?;
        for (at, step) in self.steps.iter().enumerate() {
            same_length(|| format!("step {at}"), self.panels.len(), step.values.len())?;
            for value in &step.values {
                not_negative(|| format!("step {at}"), *value)?;
            }
        }
        Ok(())
    }

    fn span(&self, panel: usize) -> Span {
        let values = self.steps.iter().filter_map(|step| finite(step.values[panel]));
        Span::of(&Axis::new("", ""), values.chain([0.0]))
    }

    /// Series, and states, in the order in which they first come.
    fn named<'s>(&'s self, of: impl Fn(&'s Step) -> &'s str) -> Vec<&'s str> {
        let mut names: Vec<&str> = Vec::new();
        for step in &self.steps {
            if !names.contains(&of(step)) {
                names.push(of(step));
            }
        }
        names
    }

    fn legend(&self) -> Vec<LegendEntry> {
        let series = self.named(|step| &step.series);
        let (states, name) = (self.named(|step| &step.state), format!("{}:", self.states));
        let line = |(at, name): (usize, &&str)| {
            let stroke = Stroke::of(at);
            LegendEntry::new(Key::Rule(stroke.colour, stroke.dashes), name)
        };
        let fill = |(at, name): (usize, &&str)| LegendEntry::new(Key::Area(Fill::of(at + 1)), name);
        let series: Vec<LegendEntry> = series.iter().enumerate().map(line).collect();
        let states = states.iter().enumerate().map(fill);
        series.into_iter().chain([LegendEntry::new(Key::None, &name)]).chain(states).collect()
    }

    /// Where a step begins and ends.
    fn edges(&self, frame: &Frame, at: usize) -> [f64; 2] {
        let edge = |at: usize| frame.plot.left + frame.plot.width() * at as f64 / self.steps.len() as f64;
        [edge(at), edge(at + 1)]
    }

    fn draw_panel(&self, frame: &mut Frame, panel: usize, span: &Span) {
        let plot = frame.plot;
        let series = self.named(|step| &step.series);
        let y = |value: f64| plot.bottom - span.share(value).unwrap_or(0.0).clamp(0.0, 1.0) * plot.height();
        let mut line: Vec<Point> = Vec::new();
        let draw = |frame: &mut Frame, line: &mut Vec<Point>, of: &str| {
            let stroke = Stroke::of(series.iter().position(|name| *name == of).unwrap_or(0));
            if !line.is_empty() {
                frame.svg.polyline("step", line, stroke.colour, 1.1, stroke.dashes);
            }
            line.clear();
        };
        for (at, step) in self.steps.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| &self.steps[before]);
            if let Some(before) = before.filter(|before| step.begins || before.series != step.series) {
                draw(frame, &mut line, &before.series);
            }
            let [from, to] = self.edges(frame, at);
            match finite(step.values[panel]) {
                Some(value) => line.extend([(from, y(value)), (to, y(value))]),
                None => draw(frame, &mut line, &step.series),
            }
        }
        if let Some(last) = self.steps.last() {
            draw(frame, &mut line, &last.series);
        }
    }

    /// The strip: a box for steps of one series and state that follow each other.
    fn draw_states(&self, frame: &mut Frame) {
        let plot = frame.plot;
        let top = plot.bottom + APART;
        let states = self.named(|step| &step.state);
        let name = cut(&self.states, SMALL, plot.left - 4.0 - PAD);
        let at = (plot.left - 4.0, top + STRIP / 2.0 + MIDDLE * SMALL);
        frame.svg.text(&Text::new("states", at, SMALL).anchor(Anchor::End), &name);
        let mut from = 0;
        for of in self.steps.chunk_by(|a, b| (&a.series, &a.state) == (&b.series, &b.state)) {
            let to = from + of.len() - 1;
            let ([left, _], [_, right]) = (self.edges(frame, from), self.edges(frame, to));
            let state = states.iter().position(|name| **name == of[0].state).unwrap_or(0);
            let ends = if from == to { from.to_string() } else { format!("{from} to {to}") };
            let told = format!("{}, {} {ends}: {}", of[0].series, self.x.name, of[0].state);
            area(&mut frame.svg, "state", (left, top, right - left, STRIP), &Fill::of(state + 1), &told);
            from = to + 1;
        }
    }
}
