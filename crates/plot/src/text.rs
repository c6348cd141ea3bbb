//! Text: the font of figures, how wide text is in it, and where lines break.
//!
//! The font is Noto Sans, which is part of the program (crate `ttf-noto-sans`, Apache-2.0). A figure is laid
//! out by its widths and drawn with its outlines, so that no host moves a letter. Not modelled: kerning, and
//! scripts that join or stack letters; a line with a character that the font cannot set alone is left to the
//! viewer's fonts.

use std::sync::LazyLock;

use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// Of text that the viewer sets, the fonts to try in this order.
pub(super) const FAMILY: &str = "'Noto Sans', Helvetica, Arial, 'Liberation Sans', sans-serif";

/// Least size of text in a figure, in points at the size of print.
pub(super) const SMALL: f64 = 6.0;
/// Size of most text.
pub(super) const NORMAL: f64 = 7.0;
/// Size of titles.
pub(super) const LARGE: f64 = 8.0;
/// How much wider a line of bold text is at the most: each letter is drawn with a rim.
pub(super) const BOLD: f64 = 1.02;
/// From one line of text to the next, over its size.
pub(super) const LEADING: f64 = 1.15;
/// From the middle of capitals to the base line, over the size: centres text about a point.
pub(super) const MIDDLE: f64 = 0.36;

static FONT: LazyLock<Face<'static>> =
    LazyLock::new(|| Face::parse(ttf_noto_sans::REGULAR, 0).expect("the font of the program can be read"));

/// Units of the font in the size of text.
pub(super) fn units_per_em() -> f64 {
    f64::from(FONT.units_per_em())
}

/// Width of a line of text of a size, in the unit of the size.
///
/// # Example
/// ```
/// use durawarp_plot::text_width;
/// assert!(text_width("StreamTriad", 7.0) > text_width("NW", 7.0));
/// assert_eq!(text_width("00", 10.0), 2.0 * text_width("7", 10.0));
/// ```
pub fn text_width(text: &str, size: f64) -> f64 {
    let units: u32 = text.chars().map(|c| advance(c).unwrap_or_else(|| estimate(c))).sum();
    f64::from(units) * size / units_per_em()
}

/// The glyph of a character that stands by itself.
fn glyph(c: char) -> Option<GlyphId> {
    FONT.glyph_index(c).filter(|glyph| FONT.glyph_hor_advance(*glyph).is_some_and(|advance| advance > 0))
}

/// From a character to the next, in units of the font.
pub(super) fn advance(c: char) -> Option<u32> {
    Some(u32::from(FONT.glyph_hor_advance(glyph(c)?)?))
}

/// The same of characters that the font has not: scripts from Hangul on fill a square, others are about as
/// wide as a capital.
fn estimate(c: char) -> u32 {
    let units = u32::from(FONT.units_per_em());
    if (c as u32) < 0x1100 { units * 2 / 3 } else { units }
}

/// The outline of a character as the data of a path, in units of the font, downwards from the base line;
/// empty for a space. `None` where the font cannot set the character alone.
pub(super) fn outline(c: char) -> Option<String> {
    let mut path = Outline::default();
    FONT.outline_glyph(glyph(c)?, &mut path);
    Some(path.0)
}

/// A path being written.
#[derive(Debug, Default)]
struct Outline(String);

impl Outline {
    fn step(&mut self, command: &str, places: &[f32]) {
        self.0 += command;
        // Fonts count upwards, figures downwards. Places are whole or halves, and print exactly.
        let numbers = places.iter().enumerate().map(|(i, place)| if i % 2 == 1 { 0.0 - place } else { *place });
        self.0 += &numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
    }
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.step("M", &[x, y]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.step("L", &[x, y]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.step("Q", &[x1, y1, x, y]);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.step("C", &[x1, y1, x2, y2, x, y]);
    }

    fn close(&mut self) {
        self.0.push('Z');
    }
}

/// Text in lines no wider than `room`, broken between words; a word that is wider alone is cut.
pub(super) fn lines(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(line, size) + text_width(" ", size) + text_width(word, size) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(cut(word, size, room)),
        }
    }
    lines
}

/// Text in as few lines as [`lines`] takes, but of lengths as equal as can be.
pub(super) fn balanced(text: &str, size: f64, room: f64) -> Vec<String> {
    let greedy = lines(text, size, room);
    let mut best = greedy.clone();
    // Lengths of lines are sums of words: a step of a point misses little.
    let mut narrower = room - 1.0;
    while narrower > room / 3.0 {
        let tried = lines(text, size, narrower);
        if tried.len() > greedy.len() || tried.iter().any(|line| line.ends_with('…')) {
            break;
        }
        best = tried;
        narrower -= 1.0;
    }
    best
}

/// Text no wider than `room`: its end becomes an ellipsis where it has to.
pub(super) fn cut(text: &str, size: f64, room: f64) -> String {
    if text_width(text, size) <= room {
        return text.to_owned();
    }
    let room = room - text_width("…", size);
    let mut width = 0.0;
    let kept = text.chars().take_while(|c| {
        width += text_width(c.encode_utf8(&mut [0; 4]), size);
        width <= room
    });
    kept.collect::<String>() + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_keep_all_of_them() {
        let text = "execution time normalised to base";
        let broken = lines(text, 7.0, 60.0);
        assert!(broken.len() > 1 && broken.iter().all(|line| text_width(line, 7.0) <= 60.0), "{broken:?}");
        assert_eq!(broken.join(" "), text);
        assert_eq!(balanced(text, 7.0, 96.0), ["execution time", "normalised to base"]);
        assert_eq!(balanced(text, 7.0, 200.0), [text]);
    }

    #[test]
    fn what_is_too_wide_is_cut() {
        let short = cut("a_kernel_with_a_very_long_name", 7.0, 40.0);
        assert!(short.ends_with('…') && text_width(&short, 7.0) <= 40.0, "{short}");
        assert_eq!(cut("NW", 7.0, 40.0), "NW");
        assert_eq!(cut("anything", 7.0, -5.0), "…");
    }
}
