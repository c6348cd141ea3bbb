//! What stands above the data: title, the note which direction is better, and the legend. The legend is one
//! line where it fits, else columns; it never shares room with data. And what stands below all: the line that
//! says of what the figure is.

use super::palette::{self, Fill, GREY, INK, Stroke};
use super::sheet::{Better, Sheet};
use super::svg::{Anchor, Element, Svg, Text};
use super::text::{BOLD, LARGE, LEADING, MIDDLE, NORMAL, SMALL, cut, lines, text_width};

/// What a legend shows beside a name.
#[derive(Debug, Clone, Copy)]
pub(super) enum Key {
    /// Nothing: words that say what the others are.
    None,
    Area(Fill),
    Line(Stroke),
    /// A line without markers.
    Rule(&'static str, &'static [f64]),
    /// A published value.
    Diamond,
    /// A published value above the cut-off.
    Above,
}

/// A line of the legend.
#[derive(Debug)]
pub(super) struct LegendEntry {
    pub(super) key: Key,
    pub(super) text: String,
}

impl LegendEntry {
    pub(super) fn new(key: Key, text: &str) -> LegendEntry {
        LegendEntry { key, text: text.to_owned() }
    }

    fn key_width(&self) -> f64 {
        if matches!(self.key, Key::None) { 0.0 } else { KEY + 3.0 }
    }

    fn width(&self) -> f64 {
        self.key_width() + text_width(&self.text, NORMAL)
    }
}

/// Free paper around everything.
pub(super) const PAD: f64 = 3.0;
/// Width of what stands before a name.
const KEY: f64 = 13.0;
/// Between two entries.
const GAP: f64 = 10.0;

/// Draws all that stands above the data and says where it ends.
pub(super) fn head(svg: &mut Svg, sheet: &Sheet, legend: &[LegendEntry]) -> f64 {
    let line = NORMAL * LEADING + 1.0;
    let mut top = PAD;
    let note = sheet.better.map(|better| match better {
        Better::Lower => "lower is better",
        Better::Higher => "higher is better",
    });
    let note_width = note.map_or(0.0, |note| text_width(note, NORMAL) + 2.0 * GAP);
    let room = sheet.width_pt - 2.0 * PAD;
    let mut note_top = None;
    if let Some(title) = sheet.title.as_deref().filter(|title| !title.trim().is_empty()) {
        note_top = Some(top + (LARGE - NORMAL) * 0.72);
        for text in lines(title, LARGE * BOLD, room - note_width) {
            svg.text(&Text::new("title", (PAD, top + 0.75 * LARGE), LARGE).bold(true), &text);
            top += LARGE * LEADING;
        }
        top += 2.0;
    }
    let total: f64 = legend.iter().map(|entry| entry.width() + GAP).sum::<f64>() - GAP;
    let beside = if note_top.is_none() { note_width } else { 0.0 };
    if legend.is_empty() || total <= room - beside {
        // All in one line, the note at its end.
        let mut x = PAD + (room - beside - total).max(0.0) / 2.0;
        for entry in legend {
            draw(svg, entry, x, top, room);
            x += entry.width() + GAP;
        }
        note_top = note_top.or(Some(top));
        if !legend.is_empty() || beside > 0.0 {
            top += line;
        }
    } else {
        // The note is one more cell, the last.
        let cells = legend.len() + usize::from(beside > 0.0);
        let widest = legend.iter().map(|entry| entry.width() + GAP).fold(beside, f64::max).min(room);
        let fit = ((room + GAP) / widest).floor().max(1.0) as usize;
        let rows = cells.div_ceil(fit);
        let columns = cells.div_ceil(rows);
        let left = PAD + (room + GAP - columns as f64 * widest).max(0.0) / 2.0;
        note_top = note_top.or(Some(top + (rows - 1) as f64 * line));
        for (i, entry) in legend.iter().enumerate() {
            draw(svg, entry, left + (i % columns) as f64 * widest, top + (i / columns) as f64 * line, widest);
        }
        top += rows as f64 * line;
    }
    if let (Some(note), Some(note_top)) = (note, note_top) {
        let right = sheet.width_pt - PAD;
        let base = note_top + 0.75 * NORMAL;
        svg.text(&Text::new("note", (right, base), NORMAL).anchor(Anchor::End).colour(GREY), note);
        arrow(svg, right - text_width(note, NORMAL) - 6.0, note_top, sheet.better == Some(Better::Higher));
    }
    top + 2.0
}

/// Draws what stands below all and says where the paper above it ends.
pub(super) fn foot(svg: &mut Svg, sheet: &Sheet) -> f64 {
    let origin = lines(sheet.origin.as_deref().unwrap_or_default(), SMALL, sheet.width_pt - 2.0 * PAD);
    let top = sheet.height_pt - PAD - origin.len() as f64 * SMALL * LEADING;
    for (i, line) in origin.iter().enumerate() {
        let base = top + (i as f64 + 0.78) * SMALL * LEADING;
        svg.text(&Text::new("origin", (PAD, base), SMALL).colour(GREY), line);
    }
    // Apart from names below the data.
    if origin.is_empty() { top } else { top - 2.0 }
}

/// An arrow up or down. Fonts do not all have one.
fn arrow(svg: &mut Svg, x: f64, top: f64, up: bool) {
    let (tail, tip) = if up { (top + 6.0, top) } else { (top, top + 6.0) };
    let back = if up { tip + 2.4 } else { tip - 2.4 };
    svg.line("arrow", (x, tail), (x, tip), GREY, 0.8, &[]);
    svg.polyline("arrow", &[(x - 1.8, back), (x, tip), (x + 1.8, back)], GREY, 0.8, &[]);
}

fn draw(svg: &mut Svg, entry: &LegendEntry, x: f64, top: f64, room: f64) {
    let (height, middle) = (6.0, top + 3.2);
    match &entry.key {
        Key::None => {}
        Key::Area(fill) => area(svg, "swatch", (x, middle - height / 2.0, KEY, height), fill, ""),
        Key::Line(stroke) => {
            svg.line("swatch", (x, middle), (x + KEY, middle), stroke.colour, 1.1, stroke.dashes);
            palette::marker(svg, "swatch", stroke, (x + KEY / 2.0, middle), "");
        }
        Key::Rule(colour, dashes) => svg.line("swatch", (x, middle), (x + KEY, middle), colour, 0.9, dashes),
        Key::Diamond => published(svg, "swatch", (x + KEY / 2.0, middle), false, ""),
        Key::Above => published(svg, "swatch", (x + KEY / 2.0, middle), true, ""),
    }
    let text = cut(&entry.text, NORMAL, room - entry.key_width());
    let base = middle + MIDDLE * NORMAL;
    svg.text(&Text::new("legend", (x + entry.key_width(), base), NORMAL), &text);
}

/// A filled rectangle: left, top, width, height. It is moved to its place, so that its hatch starts at its
/// foot, as in the legend.
pub(super) fn area(svg: &mut Svg, class: &str, place: (f64, f64, f64, f64), fill: &Fill, told: &str) {
    let (x, y, width, height) = place;
    let foot = format!("translate({} {})", super::svg::number(x), super::svg::number(y + height));
    let element = Element::new("rect", class).word("transform", &foot).number("y", -height);
    let element = element.number("width", width).number("height", height);
    let paint = fill.paint(svg);
    svg.put_told(element.word("fill", &paint).stroke(INK, 0.35), told);
}

/// The mark of a published value; a triangle where that lies above what is drawn.
pub(super) fn published(svg: &mut Svg, class: &str, (x, y): (f64, f64), above: bool, told: &str) {
    let r = 1.7;
    let element = if above {
        palette::polygon(class, &[(x, y - r), (x + r, y + r), (x - r, y + r)])
    } else {
        palette::polygon(class, &palette::diamond((x, y), r))
    };
    svg.put_told(element.word("fill", "#ffffff").stroke(INK, 0.6), told);
}
