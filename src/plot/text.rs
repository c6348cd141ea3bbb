//! How wide text is, without a font: the widths of Helvetica, which Arial and Liberation Sans share. Layout
//! trusts these estimates with a little to spare; a reader without any of the three gets another sans serif,
//! up to a tenth wider.

/// Fonts to try, in this order.
pub(super) const FAMILY: &str = "Helvetica, Arial, 'Liberation Sans', sans-serif";

/// Least size of text in a figure, in points at the size of print.
pub(super) const SMALL: f64 = 6.0;
/// Size of most text.
pub(super) const NORMAL: f64 = 7.0;
/// Size of titles.
pub(super) const LARGE: f64 = 8.0;
/// From one line of text to the next, over its size.
pub(super) const LEADING: f64 = 1.15;
/// From the middle of capitals to the base line, over the size: centres text about a point.
pub(super) const MIDDLE: f64 = 0.36;

/// Of the characters from the space to the tilde, in thousandths of the size.
const WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, // space to /
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, // 0 to ?
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, // @ to O
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, // P to _
    333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, // ` to o
    556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584, // p to ~
];

/// Estimated width of a line of text of a size, in the unit of the size.
///
/// # Example
/// ```
/// use durawarp::plot::text_width;
/// assert!(text_width("StreamTriad", 7.0) > text_width("NW", 7.0));
/// assert_eq!(text_width("00", 10.0), 11.12);
/// ```
pub fn text_width(text: &str, size: f64) -> f64 {
    let thousandths: u32 = text.chars().map(width).sum();
    f64::from(thousandths) * size / 1000.0
}

fn width(c: char) -> u32 {
    match (c as u32).checked_sub(32).and_then(|index| WIDTHS.get(index as usize)) {
        Some(width) => u32::from(*width),
        // Letters with accents and Greek ones are about as wide as a capital; scripts from Hangul on fill a
        // square.
        None if (c as u32) < 0x1100 => 667,
        None => 1000,
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
