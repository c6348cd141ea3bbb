//! The layout that all kinds share: what stands above, beside and below the data takes its room first, the
//! data gets the rest. What a kind draws into the rest cannot touch labels.

use super::axis::{Axis, Span, Tick};
use super::labels::{NameRow, bands, slots};
use super::legend::{LegendEntry, PAD, foot, head};
use super::palette::{GRID, INK};
use super::sheet::{FigureError, Sheet};
use super::svg::{Anchor, Element, Rect, Svg, Text, number};
use super::text::{LEADING, MIDDLE, NORMAL, SMALL, balanced, cut, lines, text_width};

/// What stands left of the data.
#[derive(Debug)]
pub(super) enum Beside<'a> {
    Values(&'a Axis, Span),
    /// Names of rows, and of what they are.
    Names(&'a [String], &'a str),
}

/// What stands below the data.
#[derive(Debug)]
pub(super) enum Under<'a> {
    Values(&'a Axis, Span),
    /// Names of groups, whether a mean follows them, the names of each group's bars, and what the groups are.
    Groups {
        names: &'a [String],
        mean: Option<&'a str>,
        bars: &'a [Vec<String>],
        name: &'a str,
    },
    /// Nothing: a panel with another below it, which says what its places are.
    Panel,
}

/// What a kind of figure needs around its data.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) sheet: &'a Sheet,
    pub(super) legend: &'a [LegendEntry],
    pub(super) beside: Beside<'a>,
    pub(super) under: Under<'a>,
    /// Room above the data, for numbers.
    pub(super) above: f64,
    /// Room between the data and what is below.
    pub(super) below: f64,
    /// Room on the right.
    pub(super) right: f64,
}

/// A part of a sheet: from where to where down it, where its data begins at the least, and how much longer
/// than its data the name beside that may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) left: f64,
    pub(super) beyond: f64,
}

/// A figure whose surroundings are drawn.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) svg: Svg,
    /// Where the data belongs.
    pub(super) plot: Rect,
    /// The groups' rooms.
    pub(super) bands: Vec<(f64, f64)>,
    /// Where the paper for it ends, below.
    pub(super) end: f64,
}

/// Room on the right for half of the last number below the data.
pub(super) const RIGHT: f64 = 12.0;
/// Length of a tick.
const TICK: f64 = 2.5;

impl Frame {
    /// Lays everything out and draws all but the data.
    pub(super) fn new(wanted: &Wanted<'_>) -> Result<Frame, FigureError> {
        let sheet = wanted.sheet;
        let (width, height) = (sheet.width_pt, sheet.height_pt);
        for (what, value) in [("the width of the figure", width), ("the height of the figure", height)] {
            if !(value.is_finite() && (40.0..=10_000.0).contains(&value)) {
                let reason = "is no size of paper: 40 to 10000 pt are";
                return Err(FigureError::Unfit { what: what.to_owned(), value, reason });
            }
        }
        let mut svg = Svg::new(width, height);
        let (top, bottom) = (head(&mut svg, sheet, wanted.legend), foot(&mut svg, sheet));
        Frame::within(svg, wanted, Window { top, bottom, left: 0.0, beyond: 12.0 })
    }

    /// The same in a part of a sheet that has its head already.
    pub(super) fn within(svg: Svg, wanted: &Wanted<'_>, window: Window) -> Result<Frame, FigureError> {
        let (width, top) = (wanted.sheet.width_pt, window.top + wanted.above);
        let height = window.bottom + PAD;
        let right = width - wanted.right.max(PAD + 2.0);
        let under = if matches!(wanted.under, Under::Panel) { 0.0 } else { 24.0 };
        let (y_name, y_ticks) = wanted.beside_texts(height - top - wanted.below - under);
        let y_widest = y_ticks.iter().map(|tick| text_width(&tick.label, NORMAL)).fold(0.0, f64::max);
        let y_widest = y_widest.min(width * 0.3);
        // The name's lines need width, which decides how names below lie, which decides how long a line may
        // be.
        let mut wrapped = Vec::new();
        for count in 0..=4 {
            let names = if y_name.is_empty() { 0.0 } else { f64::from(count) * NORMAL * LEADING + 2.0 };
            let left = (PAD + names + y_widest + TICK + 2.0).max(window.left);
            let (left, rows) = wanted.rows_on_paper(left, right)?;
            let below: f64 = wanted.under_height(&rows);
            let plot = Rect { left, top, right, bottom: window.bottom - below - wanted.below };
            let longest = (plot.height() + window.beyond).min(window.bottom - PAD);
            wrapped = balanced(&y_name, NORMAL, longest);
            if wrapped.len() <= count as usize || count == 4 {
                for (what, needed_pt, have_pt) in
                    [("the data's height", 20.0, plot.height()), ("the data's width", 30.0, plot.width())]
                {
                    if have_pt < needed_pt {
                        return Err(FigureError::Room { what: what.to_owned(), needed_pt, have_pt });
                    }
                }
                let mut frame = Frame { svg, plot, bands: wanted.bands(left, right), end: window.bottom };
                frame.draw(wanted, &wrapped, &y_ticks, &rows);
                return Ok(frame);
            }
        }
        Err(FigureError::Room { what: format!("the name `{}`", wrapped.join(" ")), needed_pt: height, have_pt: top })
    }

    fn draw(&mut self, wanted: &Wanted<'_>, name: &[String], y_ticks: &[Tick], rows: &[NameRow]) {
        let plot = self.plot;
        if let Under::Groups { mean, .. } = wanted.under {
            // Every other group on a grey ground: the eye finds a bar's group without a line between them.
            let shaded = self.bands.len() - usize::from(mean.is_some());
            for (from, to) in self.bands[..shaded].iter().skip(1).step_by(2).filter(|_| shaded > 2) {
                let band = Element::new("rect", "band").number("x", *from).number("y", plot.top);
                let band = band.number("width", to - from).number("height", plot.height());
                self.svg.put(band.word("fill", "#f3f3f3"));
            }
        }
        for tick in y_ticks {
            let Some(y) = self.y(wanted, tick.value) else { continue };
            if matches!(wanted.beside, Beside::Values(..)) {
                let (short, long) = (plot.left - TICK * 0.6, plot.left - TICK);
                let from = if tick.label.is_empty() { short } else { long };
                self.svg.line("tick", (from, y), (plot.left, y), INK, 0.5, &[]);
                if !tick.label.is_empty() {
                    self.svg.line("grid", (plot.left, y), (plot.right, y), GRID, 0.4, &[]);
                }
            }
            let at = (plot.left - TICK - 1.5, y + MIDDLE * NORMAL);
            let size = NORMAL;
            let label = cut(&tick.label, size, plot.left - TICK - 1.5 - PAD);
            if !label.is_empty() {
                self.svg.text(&Text::new("y-label", at, size).anchor(Anchor::End), &label);
            }
        }
        let block = name.len() as f64 * NORMAL * LEADING;
        for (i, line) in name.iter().enumerate() {
            let half = text_width(line, NORMAL) / 2.0;
            let (least, most) = (PAD + half, self.end - half);
            let y = ((plot.top + plot.bottom) / 2.0).min(most).max(least);
            let x = PAD + NORMAL * 0.8 + block * i as f64 / name.len() as f64;
            self.svg.text(&Text::new("y-name", (x, y), NORMAL).anchor(Anchor::Middle).turned(-90.0), line);
        }
        self.draw_under(wanted, rows);
    }

    fn draw_under(&mut self, wanted: &Wanted<'_>, rows: &[NameRow]) {
        let plot = self.plot;
        let bottom = plot.bottom + wanted.below;
        let mut top = bottom;
        let name = match &wanted.under {
            Under::Values(axis, span) => {
                for tick in wanted.x_ticks(span, plot.width()) {
                    let Some(x) = span.share(tick.value).map(|share| plot.left + share * plot.width()) else {
                        continue;
                    };
                    let length = if tick.label.is_empty() { TICK * 0.6 } else { TICK };
                    self.svg.line("tick", (x, bottom), (x, bottom + length), INK, 0.5, &[]);
                    let at = (x, bottom + TICK + 1.0 + 0.74 * NORMAL);
                    if !tick.label.is_empty() {
                        self.svg.text(&Text::new("x-label", at, NORMAL).anchor(Anchor::Middle), &tick.label);
                    }
                }
                top += TICK + 1.0 + NORMAL;
                axis.label()
            }
            Under::Groups { name, .. } => {
                for row in rows {
                    row.draw(&mut self.svg, top);
                    top += row.height;
                }
                (*name).to_owned()
            }
            Under::Panel => String::new(),
        };
        // `top` is now where the ticks' labels or the rows of names end. The axis's name may be wider than
        // the plot: it stays on the sheet.
        let room = wanted.sheet.width_pt - 2.0 * PAD;
        for line in lines(&name, NORMAL, room) {
            top += NORMAL * LEADING;
            let half = text_width(&line, NORMAL) / 2.0;
            let x = ((plot.left + plot.right) / 2.0).min(wanted.sheet.width_pt - PAD - half).max(PAD + half);
            self.svg.text(&Text::new("x-name", (x, top), NORMAL).anchor(Anchor::Middle), &line);
        }
    }

    fn y(&self, wanted: &Wanted<'_>, value: f64) -> Option<f64> {
        let share = match &wanted.beside {
            Beside::Values(_, span) => span.share(value)?,
            // Rows are numbered from the top, and their names stand at their middles.
            Beside::Names(names, _) => 1.0 - (value + 0.5) / names.len() as f64,
        };
        Some(self.plot.bottom - share * self.plot.height())
    }

    /// Restricts lines to where data belongs. The name says which place that is, so that figures in one page
    /// do not clash.
    pub(super) fn clip(&mut self) -> String {
        let plot = self.plot;
        // Half a line's width more, or lines along an edge would be cut lengthwise.
        let sides = [plot.left, plot.top, plot.width(), plot.height()];
        let name = format!("clip-{}", sides.map(number).join("-"));
        let [left, top, width, height] =
            [plot.left - 0.7, plot.top - 0.7, plot.width() + 1.4, plot.height() + 1.4].map(number);
        self.svg.define(&name, || {
            format!(
                "<clipPath id=\"{name}\"><rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"/></clipPath>"
            )
        });
        name
    }

    /// The axes, drawn last: over the feet of bars.
    pub(super) fn axes(&mut self) {
        let Rect { left, top, right, bottom } = self.plot;
        self.svg.polyline("axes", &[(left, top), (left, bottom), (right, bottom)], INK, 0.6, &[]);
    }
}

impl Wanted<'_> {
    /// The name beside the data, and the values or names written there.
    fn beside_texts(&self, height: f64) -> (String, Vec<Tick>) {
        match &self.beside {
            Beside::Values(axis, span) => (axis.label(), span.ticks(((height / 13.0) as usize).clamp(2, 9))),
            Beside::Names(names, name) => {
                let ticks = names.iter().enumerate().map(|(i, n)| Tick { value: i as f64, label: n.clone() });
                ((*name).to_owned(), ticks.collect())
            }
        }
    }

    fn bands(&self, left: f64, right: f64) -> Vec<(f64, f64)> {
        match &self.under {
            Under::Values(..) | Under::Panel => Vec::new(),
            Under::Groups { names, mean, .. } => bands(left, right, names.len(), mean.is_some()),
        }
    }

    /// The rows of names below the data: of bars, where they have names that fit, and of groups.
    fn rows(&self, left: f64, right: f64) -> Result<Vec<NameRow>, FigureError> {
        let Under::Groups { names, mean, bars: bar_names, .. } = &self.under else { return Ok(Vec::new()) };
        let bands = bands(left, right, names.len(), mean.is_some());
        let (paper, longest) = (self.sheet.width_pt, self.sheet.height_pt * 0.4);
        let mut rows = Vec::new();
        let mut places = Vec::new();
        for (band, names) in bands.iter().zip(bar_names.iter()) {
            let middles = slots(*band, names.len()).into_iter().map(|(from, to)| (from + to) / 2.0);
            places.extend(middles.zip(names.iter().map(String::as_str)));
        }
        if !places.is_empty() {
            rows.push(NameRow::plan("bars", &places, paper, longest, false)?);
        }
        let all = names.iter().map(String::as_str).chain(*mean);
        let places: Vec<(f64, &str)> = bands.iter().map(|(from, to)| (from + to) / 2.0).zip(all).collect();
        rows.push(NameRow::plan("groups", &places, paper, longest, mean.is_some())?);
        Ok(rows)
    }

    /// The rows of names, and the left edge moved as far right as leaning names need: places move a little
    /// less than it.
    fn rows_on_paper(&self, mut left: f64, right: f64) -> Result<(f64, Vec<NameRow>), FigureError> {
        let mut rows = self.rows(left, right)?;
        for _ in 0..8 {
            let out = rows.iter().map(|row| row.sticks_out).fold(0.0, f64::max);
            if out <= 0.0 {
                break;
            }
            left += out + 0.5;
            rows = self.rows(left, right)?;
        }
        Ok((left, rows))
    }

    fn under_height(&self, rows: &[NameRow]) -> f64 {
        let room = self.sheet.width_pt - 2.0 * PAD;
        let name = |name: &str| lines(name, NORMAL, room).len() as f64 * NORMAL * LEADING + 1.5;
        match &self.under {
            Under::Values(axis, _) => TICK + 1.0 + NORMAL + name(&axis.label()),
            Under::Panel => 0.0,
            Under::Groups { name: text, .. } => {
                rows.iter().map(|row| row.height).sum::<f64>() + if text.is_empty() { 0.0 } else { name(text) }
            }
        }
    }

    /// As many values as can be written below without touching each other.
    fn x_ticks(&self, span: &Span, width: f64) -> Vec<Tick> {
        let apart = |ticks: &[Tick]| {
            let written = ticks.iter().filter(|tick| !tick.label.is_empty());
            let places: Vec<(f64, f64)> = written
                .filter_map(|tick| Some((span.share(tick.value)? * width, text_width(&tick.label, NORMAL) / 2.0)))
                .collect();
            places.windows(2).all(|pair| pair[1].0 - pair[0].0 >= pair[0].1 + pair[1].1 + SMALL / 2.0)
        };
        let most = (2..=12).rev().find(|most| apart(&span.ticks(*most))).unwrap_or(2);
        span.ticks(most)
    }
}
