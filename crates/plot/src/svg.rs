//! SVG text, element by element. Everything a figure draws goes through here, so text is always escaped,
//! numbers have at most two decimals (a hundredth of a point) and none of them is `NaN` or infinite.
//!
//! A line of text is drawn twice: as the outlines of its letters, which every viewer and converter shows
//! alike, and as invisible text of the same width over them, which is searched, selected and read aloud. An
//! embedded font would be the smaller file of long texts, but only browsers take one: Inkscape, LibreOffice,
//! librsvg and resvg do not.
//!
//! Why not a plotting crate: the usual one (plotters 0.3) puts its SVG on a grid of whole pixels, turns text
//! by right angles only, and has neither hatches nor dashes nor sizes in points. Bars here are 2.5 pt wide,
//! labels lean by 45 degrees, and series must differ without colour. What is left out: paths with curves,
//! images, scripts, style sheets.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::text::{self, text_width};

/// What is drawn without another colour.
const INK: &str = "#000000";

/// A place, in points from the top left corner.
pub(super) type Point = (f64, f64);

/// A rectangle by its edges, in points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rect {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Rect {
    pub(super) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(super) fn height(&self) -> f64 {
        self.bottom - self.top
    }
}

/// One element with its attributes, not yet written.
#[derive(Debug)]
pub(super) struct Element {
    name: &'static str,
    attributes: String,
}

impl Element {
    /// An element of a class: what it is in the figure ("bar", "tick"), for readers, tests and style sheets.
    pub(super) fn new(name: &'static str, class: &str) -> Element {
        let element = Element { name, attributes: String::new() };
        if class.is_empty() { element } else { element.word("class", class) }
    }

    pub(super) fn number(mut self, key: &str, value: f64) -> Element {
        let _ = write!(self.attributes, " {key}=\"{}\"", number(value));
        self
    }

    pub(super) fn word(mut self, key: &str, value: &str) -> Element {
        let _ = write!(self.attributes, " {key}=\"{}\"", escaped(value));
        self
    }

    pub(super) fn stroke(self, colour: &str, width: f64) -> Element {
        self.word("stroke", colour).number("stroke-width", width)
    }

    /// Dashes of these lengths; none for a solid line.
    pub(super) fn dashes(self, lengths: &[f64]) -> Element {
        if lengths.is_empty() { self } else { self.word("stroke-dasharray", &numbers(lengths)) }
    }
}

/// Where text ends that is put at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A line of text at a place: that of its anchor on the base line, turned about it.
#[derive(Debug)]
pub(super) struct Text<'a> {
    pub(super) class: &'a str,
    pub(super) at: Point,
    pub(super) size: f64,
    pub(super) anchor: Anchor,
    /// Degrees, clockwise.
    pub(super) turned: f64,
    pub(super) bold: bool,
    pub(super) colour: &'a str,
}

impl<'a> Text<'a> {
    pub(super) fn new(class: &'a str, at: Point, size: f64) -> Text<'a> {
        Text { class, at, size, anchor: Anchor::Start, turned: 0.0, bold: false, colour: INK }
    }

    pub(super) fn anchor(self, anchor: Anchor) -> Text<'a> {
        Text { anchor, ..self }
    }

    pub(super) fn turned(self, turned: f64) -> Text<'a> {
        Text { turned, ..self }
    }

    pub(super) fn bold(self, bold: bool) -> Text<'a> {
        Text { bold, ..self }
    }

    pub(super) fn colour(self, colour: &'a str) -> Text<'a> {
        Text { colour, ..self }
    }
}

/// A figure being written.
#[derive(Debug)]
pub(super) struct Svg {
    width: f64,
    height: f64,
    /// What fills refer to, by name. The name says what it is, so that several figures in one page agree.
    definitions: BTreeMap<String, String>,
    /// Letters that were looked up; `None` for one that the font cannot set alone.
    glyphs: BTreeMap<char, Option<Glyph>>,
    body: String,
}

/// A letter of the font.
#[derive(Debug)]
struct Glyph {
    /// Its outline, until it is among the definitions.
    outline: Option<String>,
    /// What it is called there; `None` for a space, which is not drawn.
    name: Option<String>,
    /// In units of the font.
    advance: u32,
}

impl Glyph {
    fn of(c: char) -> Option<Glyph> {
        let (outline, advance) = (text::outline(c)?, text::advance(c)?);
        // The name says which letter it is, so that several figures in one page agree.
        let name = (!outline.is_empty()).then(|| format!("glyph-{:x}", u32::from(c)));
        Some(Glyph { outline: Some(outline), name, advance })
    }
}

impl Svg {
    pub(super) fn new(width: f64, height: f64) -> Svg {
        Svg { width, height, definitions: BTreeMap::new(), glyphs: BTreeMap::new(), body: String::new() }
    }

    pub(super) fn put(&mut self, element: Element) {
        let _ = writeln!(self.body, "<{}{}/>", element.name, element.attributes);
    }

    /// An element that says what it shows when pointed at.
    pub(super) fn put_told(&mut self, element: Element, told: &str) {
        let Element { name, attributes } = element;
        let _ = writeln!(self.body, "<{name}{attributes}><title>{}</title></{name}>", escaped(told));
    }

    pub(super) fn line(&mut self, class: &str, from: Point, to: Point, colour: &str, width: f64, dashes: &[f64]) {
        let element = Element::new("line", class).number("x1", from.0).number("y1", from.1);
        let element = element.number("x2", to.0).number("y2", to.1).stroke(colour, width);
        self.put(element.dashes(dashes));
    }

    pub(super) fn polyline(&mut self, class: &str, points: &[Point], colour: &str, width: f64, dashes: &[f64]) {
        let element = Element::new("polyline", class).word("points", &places(points)).word("fill", "none");
        self.put(element.stroke(colour, width).word("stroke-linejoin", "round").dashes(dashes));
    }

    /// A line with gaps.
    pub(super) fn broken_line(
        &mut self,
        class: &str,
        points: &[Option<Point>],
        (colour, width, dashes): (&str, f64, &[f64]),
        clip: &str,
    ) {
        for part in points.split(Option::is_none).filter(|part| part.len() > 1) {
            let part: Vec<Point> = part.iter().copied().flatten().collect();
            let line = Element::new("polyline", class).word("points", &places(&part)).word("fill", "none");
            let line = line.stroke(colour, width).word("stroke-linejoin", "round").dashes(dashes);
            self.put(line.word("clip-path", &format!("url(#{clip})")));
        }
    }

    pub(super) fn text(&mut self, text: &Text<'_>, content: &str) {
        let Text { class, at, size, anchor, turned, bold, colour } = text;
        let drawn = self.outlines(text, content);
        let mut element = Element::new("text", class).number("x", at.0).number("y", at.1).number("font-size", *size);
        match anchor {
            Anchor::Start => {}
            Anchor::Middle => element = element.word("text-anchor", "middle"),
            Anchor::End => element = element.word("text-anchor", "end"),
        }
        if *turned != 0.0 {
            let about = format!("rotate({} {} {})", number(*turned), number(at.0), number(at.1));
            element = element.word("transform", &about);
        }
        if *bold {
            element = element.word("font-weight", "bold");
        }
        if *colour != INK {
            element = element.word("fill", colour);
        }
        if !content.trim().is_empty() {
            element = element.number("textLength", text_width(content, *size));
        }
        if drawn {
            element = element.number("fill-opacity", 0.0);
        }
        let _ = writeln!(self.body, "<text{}>{}</text>", element.attributes, escaped(content));
    }

    /// Draws a line of text letter by letter, if the font can.
    fn outlines(&mut self, text: &Text<'_>, content: &str) -> bool {
        let Svg { definitions, glyphs, body, .. } = self;
        let advances = content.chars().map(|c| {
            let glyph = glyphs.entry(c).or_insert_with(|| Glyph::of(c));
            glyph.as_ref().map(|glyph| glyph.advance)
        });
        let Some(width) = advances.sum::<Option<u32>>().map(f64::from) else { return false };
        let scale = text.size / text::units_per_em();
        let mut x = match text.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -width / 2.0,
            Anchor::End => -width,
        };
        let turned = if text.turned == 0.0 { String::new() } else { format!(" rotate({})", number(text.turned)) };
        let place = format!("translate({} {}){turned} scale({scale:.8})", number(text.at.0), number(text.at.1));
        let mut group = Element::new("g", "glyphs").word("transform", &place);
        if text.colour != INK {
            group = group.word("fill", text.colour);
        }
        if text.bold {
            // As wide as the others, so that widths are those of one font.
            group = group.stroke(text.colour, 0.04 * text::units_per_em());
        }
        let _ = writeln!(body, "<g{}>", group.attributes);
        for c in content.chars() {
            let Some(Some(Glyph { outline, name, advance })) = glyphs.get_mut(&c) else { continue };
            if let Some(name) = name {
                let _ = write!(body, "<use xlink:href=\"#{name}\" x=\"{}\"/>", number(x));
                if let Some(outline) = outline.take() {
                    definitions.insert(name.clone(), format!("<path id=\"{name}\" d=\"{outline}\"/>"));
                }
            }
            x += f64::from(*advance);
        }
        *body += "\n</g>\n";
        true
    }

    /// Keeps what a fill refers to.
    pub(super) fn define(&mut self, name: &str, definition: impl FnOnce() -> String) {
        if !self.definitions.contains_key(name) {
            self.definitions.insert(name.to_owned(), definition());
        }
    }

    /// The whole document. `name` is what the figure is called where it cannot be seen.
    pub(super) fn finish(self, name: &str) -> String {
        let (width, height) = (number(self.width), number(self.height));
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" width=\"{width}pt\" height=\"{height}pt\" viewBox=\"0 0 {width} \
             {height}\" font-family=\"{}\" role=\"img\">\n<title>{}</title>\n",
            text::FAMILY,
            escaped(name)
        );
        if !self.definitions.is_empty() {
            out += "<defs>\n";
            for definition in self.definitions.values() {
                out += definition;
                out.push('\n');
            }
            out += "</defs>\n";
        }
        // Pages may be dark; a figure is made for paper.
        let _ = writeln!(out, "<rect class=\"paper\" width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>");
        out + &self.body + "</svg>\n"
    }
}

/// A number with at most two decimals. What is no number becomes 0: no viewer shows a figure with `NaN` in
/// it.
pub(super) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn numbers(values: &[f64]) -> String {
    values.iter().map(|value| number(*value)).collect::<Vec<_>>().join(" ")
}

/// Points as an attribute.
pub(super) fn places(points: &[Point]) -> String {
    points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect::<Vec<_>>().join(" ")
}

/// Text as XML may hold it: marks escaped, line ends and tabs as spaces, characters that XML forbids as
/// U+FFFD.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            '\n' | '\r' | '\t' => out.push(' '),
            c if c.is_control() || ['\u{fffe}', '\u{ffff}'].contains(&c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_finite() {
        let cases = [(1.0, "1"), (0.126, "0.13"), (-0.001, "0"), (f64::NAN, "0"), (f64::INFINITY, "0"), (20.5, "20.5")];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn text_is_made_harmless() {
        assert_eq!(escaped("a<b>&\"c'\u{1}\n"), "a&lt;b&gt;&amp;&quot;c&#39;\u{fffd} ");
    }
}
