//! Heat maps: a value for each pair of a row and a column, as a colour and as a number. Colours are viridis;
//! numbers are black or white, whichever reads better on the cell's colour.

use serde::{Deserialize, Serialize};

use super::axis::{Axis, Span, above_0_on, short};
use super::frame::{Beside, Frame, Under, Wanted};
use super::legend::PAD;
use super::palette::{GREY, INK, hex, readable_on, viridis};
use super::sheet::{FigureError, Sheet, finite, same_length, some_of};
use super::svg::{Anchor, Element, Rect, Text};
use super::text::{LEADING, MIDDLE, NORMAL, SMALL, cut, text_width};
use super::tidy::{Tidy, full};

/// Values of rows by columns.
///
/// # Example: slow-down by two parameters
/// ```
/// use durawarp_plot::{Axis, HeatMap, Sheet};
/// let map = HeatMap {
///     sheet: Sheet::one_column(),
///     axis: Axis::new("slow-down", ""),
///     rows_name: "WPQ entries".into(),
///     rows: vec!["32".into(), "64".into()],
///     columns_name: "NVM write latency (ns)".into(),
///     columns: vec!["160".into(), "320".into()],
///     values: vec![vec![Some(1.2), Some(1.6)], vec![Some(1.1), None]],
/// };
/// assert!(map.svg()?.contains("1.60"));
/// assert!(map.csv()?.contains("64,320,\n"));
/// # Ok::<(), durawarp_plot::FigureError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeatMap {
    /// Size and words.
    pub sheet: Sheet,
    /// The values: name, unit, scale and range of the colours.
    pub axis: Axis,
    /// What rows are.
    pub rows_name: String,
    /// Rows, from the top.
    pub rows: Vec<String>,
    /// What columns are.
    pub columns_name: String,
    /// Columns, from the left.
    pub columns: Vec<String>,
    /// A row of values each row; `None` for "n/a".
    pub values: Vec<Vec<Option<f64>>>,
}

/// Width of the scale of colours.
const BAR: f64 = 7.0;

impl HeatMap {
    /// The figure as an SVG document.
    ///
    /// # Errors
    /// When there are no rows or columns, they do not fit the values, or the paper is too small for the
    /// numbers.
    pub fn svg(&self) -> Result<String, FigureError> {
        self.check()?;
        let values = || self.values.iter().flatten().filter_map(|value| finite(*value));
        let span = Span::of(&self.axis, values());
        // The height of the plot decides how many ticks the colours have, and is not known before the frame;
        // so the margin is made for any number of them.
        let ticks = (2..=6).flat_map(|most| span.ticks(most));
        let widest = ticks.map(|tick| text_width(&tick.label, NORMAL)).fold(0.0, f64::max);
        let right = PAD + 6.0 + BAR + 4.0 + widest + 3.0 + NORMAL * LEADING;
        let mut frame = Frame::new(&Wanted {
            sheet: &self.sheet,
            legend: &[],
            beside: Beside::Names(&self.rows, &self.rows_name),
            under: Under::Groups { names: &self.columns, mean: None, bars: &[], name: &self.columns_name },
            above: 3.0,
            below: 0.0,
            right,
        })?;
        let plot = frame.plot;
        let height = plot.height() / self.rows.len() as f64;
        let width = plot.width() / self.columns.len() as f64;
        let written = self.format(width - 1.5, height)?;
        for (i, row) in self.values.iter().enumerate() {
            for (j, value) in row.iter().enumerate() {
                let (x, y) = (plot.left + width * j as f64, plot.top + height * i as f64);
                let value = finite(*value);
                let share = value.and_then(|value| span.share(value));
                let colour = share.map_or([0xe4, 0xe4, 0xe4], viridis);
                let cell = Element::new("rect", "cell").number("x", x).number("y", y).number("width", width);
                let cell = cell.number("height", height).word("fill", &hex(colour)).stroke("#ffffff", 0.5);
                let text = value.map_or_else(|| "n/a".to_owned(), written);
                frame.svg.put_told(cell, &format!("{}, {}: {text}", self.rows[i], self.columns[j]));
                let at = (x + width / 2.0, y + height / 2.0 + MIDDLE * SMALL);
                let class = if value.is_some() { "value" } else { "missing" };
                let ink = if value.is_some() { readable_on(colour) } else { GREY };
                frame.svg.text(&Text::new(class, at, SMALL).anchor(Anchor::Middle).colour(ink), &text);
            }
        }
        self.colours(&mut frame, &span);
        Ok(frame.svg.finish(&self.sheet.title.clone().unwrap_or_else(|| self.axis.label())))
    }

    /// Its data as CSV: row, column, value.
    ///
    /// # Errors
    /// When there are no rows or columns, or they do not fit the values.
    pub fn csv(&self) -> Result<String, FigureError> {
        self.check()?;
        let mut tidy = Tidy::new(&["row", "column", "value"]);
        for (row, values) in self.rows.iter().zip(&self.values) {
            for (column, value) in self.columns.iter().zip(values) {
                tidy.row(&[row, column, &full(*value)]);
            }
        }
        Ok(tidy.finish())
    }

    fn check(&self) -> Result<(), FigureError> {
        some_of("a heat map", "rows", &self.rows)?;
        some_of("a heat map", "columns", &self.columns)?;
        same_length(|| "the heat map".to_owned(), self.rows.len(), self.values.len())?;
        for (name, row) in self.rows.iter().zip(&self.values) {
            same_length(|| format!("row `{name}`"), self.columns.len(), row.len())?;
            for value in row {
                above_0_on(&self.axis, name, *value)?;
            }
        }
        Ok(())
    }

    /// How numbers are written: with as many digits as fit into every cell.
    fn format(&self, width: f64, height: f64) -> Result<fn(f64) -> String, FigureError> {
        let formats: [fn(f64) -> String; 3] = [short, |v| format!("{v:.1}"), |v| format!("{v:.0}")];
        let values = || self.values.iter().flatten().filter_map(|value| finite(*value));
        let missing =
            if values().count() < self.rows.len() * self.columns.len() { text_width("n/a", SMALL) } else { 0.0 };
        let widest =
            |format: fn(f64) -> String| values().map(|v| text_width(&format(v), SMALL)).fold(missing, f64::max);
        let room = |what: &str, needed_pt, have_pt| {
            Err(FigureError::Room { what: format!("the {what} of a cell"), needed_pt, have_pt })
        };
        if height < SMALL * 1.05 {
            return room("height", SMALL * 1.05, height);
        }
        match formats.into_iter().find(|format| widest(*format) <= width) {
            Some(format) => Ok(format),
            None => room("width", widest(formats[2]), width),
        }
    }

    /// The scale of colours on the right.
    fn colours(&self, frame: &mut Frame, span: &Span) {
        let Rect { top, right, bottom, .. } = frame.plot;
        let height = bottom - top;
        frame.svg.define("viridis", || {
            let stop = |i: u32| {
                let share = f64::from(i) / 10.0;
                format!("<stop offset=\"{share:.1}\" stop-color=\"{}\"/>", hex(viridis(share)))
            };
            let stops: String = (0..=10).map(stop).collect();
            format!("<linearGradient id=\"viridis\" x1=\"0\" y1=\"1\" x2=\"0\" y2=\"0\">{stops}</linearGradient>")
        });
        let left = right + 6.0;
        let bar = Element::new("rect", "colours").number("x", left).number("y", top).number("width", BAR);
        frame.svg.put(bar.number("height", height).word("fill", "url(#viridis)").stroke(INK, 0.4));
        let most = ((height / 12.0) as usize).clamp(2, 6);
        for tick in span.ticks(most).iter().filter(|tick| !tick.label.is_empty()) {
            let Some(y) = span.share(tick.value).map(|share| bottom - share * height) else { continue };
            frame.svg.line("tick", (left + BAR, y), (left + BAR + 2.0, y), INK, 0.5, &[]);
            let at = (left + BAR + 3.5, y + MIDDLE * NORMAL);
            frame.svg.text(&Text::new("y-label", at, NORMAL), &tick.label);
        }
        let x = self.sheet.width_pt - PAD - NORMAL * 0.3;
        let name = cut(&self.axis.label(), NORMAL, frame.end - PAD);
        let half = text_width(&name, NORMAL) / 2.0;
        let y = ((top + bottom) / 2.0).min(frame.end - half).max(PAD + half);
        frame.svg.text(&Text::new("y-name", (x, y), NORMAL).anchor(Anchor::Middle).turned(-90.0), &name);
    }
}
