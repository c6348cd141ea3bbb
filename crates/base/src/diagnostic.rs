//! What is wrong with a user's input, and where: the one vocabulary in which every room that reads text
//! (PTX, manifests, machine files, overrides) reports faults.
//!
//! It lies on the ground floor: it knows no room, prints nothing and colours nothing; `report` renders it.
//! Invariant: positions are 1-based lines and columns, columns counted in characters.

use std::fmt;

/// A place in a text: 1-based line and column, and the number of characters it covers (at least 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, serde::Serialize)]
pub struct Span {
    /// 1-based line; 0 when the fault has no place (a missing file, a command-line override).
    pub line: u32,
    /// 1-based column, in characters.
    pub column: u32,
    /// Characters covered on that line.
    pub length: u32,
}

impl Span {
    /// The place of `bytes` (a byte range) in `text`. A range over several lines covers its first line only;
    /// an end within a character is that character's.
    pub fn of_bytes(text: &str, bytes: std::ops::Range<usize>) -> Self {
        Marks::default().located(text, bytes).0
    }
}

/// Bytes from one mark to the next.
const MARK_BYTES: usize = 1024;

/// Longest line in bytes that a fault shows, and that its span reaches into.
const SHOWN_LINE_BYTES: usize = 4096;

/// Lines and columns of a text at places that are [`MARK_BYTES`] apart: each of many faults is found in
/// constant time, however long the text and its lines are. Without marks a place is counted from the text's
/// start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Marks(Vec<Mark>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Mark {
    at: usize,
    /// Line breaks before it.
    lines: u32,
    line_start: usize,
    /// Characters between the line's start and it.
    columns: u32,
}

impl Mark {
    /// The mark at `at`, which is not before this one.
    fn moved_to(self, text: &str, at: usize) -> Mark {
        let between = &text[self.at..at];
        let lines = self.lines.saturating_add(between.matches('\n').count() as u32);
        let (line_start, columns, counted) = match between.rfind('\n') {
            Some(last) => (self.at + last + 1, 0, &between[last + 1..]),
            None => (self.line_start, self.columns, between),
        };
        Mark { at, lines, line_start, columns: columns.saturating_add(counted.chars().count() as u32) }
    }
}

/// The last character boundary of a text up to `at`.
fn boundary_before(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

impl Marks {
    pub(crate) fn of(text: &str) -> Marks {
        let places = (0..text.len()).step_by(MARK_BYTES).map(|at| boundary_before(text, at));
        let marks = places.scan(Mark::default(), |last, at| {
            *last = last.moved_to(text, at);
            Some(*last)
        });
        Marks(marks.collect())
    }

    /// Where `bytes` of `text` are, and the line there unless it is too long to be shown.
    fn located<'t>(&self, text: &'t str, bytes: std::ops::Range<usize>) -> (Span, &'t str) {
        let start = boundary_before(text, bytes.start);
        let mark = self.0.get(start / MARK_BYTES).copied().filter(|mark| mark.at <= start).unwrap_or_default();
        let mark = mark.moved_to(text, start);
        let near = boundary_before(text, start + SHOWN_LINE_BYTES);
        let line_end = text[start..near].find('\n').map(|length| start + length);
        let line_end = line_end.or((near == text.len()).then_some(near));
        let end = bytes.end.clamp(start, line_end.unwrap_or(near));
        let end = (end..=near).find(|&end| text.is_char_boundary(end)).unwrap_or(near);
        let span = Span {
            line: mark.lines.saturating_add(1),
            column: mark.columns.saturating_add(1),
            length: (text[start..end].chars().count() as u32).max(1),
        };
        let line = line_end.map(|line_end| &text[mark.line_start..line_end]);
        let line = line.filter(|line| line.len() <= SHOWN_LINE_BYTES).unwrap_or("");
        (span, line.strip_suffix('\r').unwrap_or(line))
    }
}

/// One fault in a user's input.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Diagnostic {
    /// The file (or `--set KEY=VALUE`, or a built-in name) the fault is in.
    pub file: String,
    /// Where in it; `line` 0 when the fault has no place.
    pub span: Span,
    /// What is wrong and what was expected, in one sentence without a full stop.
    pub message: String,
    /// The text of the faulty line, for a caret under it; empty when there is none, or when it is too long to
    /// be shown.
    pub source_line: String,
    /// What to do about it: the nearest valid name, the valid range, an example.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A fault at a byte range of `text`, which is the content of `file`.
    pub fn at(file: &str, text: &str, bytes: std::ops::Range<usize>, message: impl Into<String>) -> Self {
        Self::by_marks(&Marks::default(), file, text, bytes, message)
    }

    /// The same by the text's marks.
    pub(crate) fn by_marks(
        marks: &Marks,
        file: &str,
        text: &str,
        bytes: std::ops::Range<usize>,
        message: impl Into<String>,
    ) -> Self {
        let (span, line) = marks.located(text, bytes);
        Diagnostic { file: file.to_owned(), span, message: message.into(), source_line: line.to_owned(), help: None }
    }

    /// A fault without a place in a text.
    pub fn nowhere(file: &str, message: impl Into<String>) -> Self {
        Diagnostic {
            file: file.to_owned(),
            span: Span::default(),
            message: message.into(),
            source_line: String::new(),
            help: None,
        }
    }

    /// The same fault with advice.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same fault with "did you mean" advice, if one of `valid` is near `found`.
    #[must_use]
    pub fn with_nearest<'a>(self, found: &str, valid: impl IntoIterator<Item = &'a str>) -> Self {
        self.with_nearest_or(found, valid, || None)
    }

    /// The same fault with "did you mean" advice, else with the advice `otherwise`.
    #[must_use]
    pub fn with_nearest_or<'a>(
        self,
        found: &str,
        valid: impl IntoIterator<Item = &'a str>,
        otherwise: impl FnOnce() -> Option<String>,
    ) -> Self {
        match nearest(found, valid).map(|near| format!("did you mean `{near}`?")).or_else(otherwise) {
            Some(help) => self.with_help(help),
            None => self,
        }
    }
}

impl fmt::Display for Diagnostic {
    /// `file:line:column: message`, the compiler convention that editors parse.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.span.line > 0 {
            write!(f, "{}:{}:{}: ", self.file, self.span.line, self.span.column)?;
        } else if !self.file.is_empty() {
            write!(f, "{}: ", self.file)?;
        }
        write!(f, "{}", self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

/// Every fault found in an input; never empty when it is an `Err`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Adds a fault.
    pub fn push(&mut self, fault: Diagnostic) {
        self.0.push(fault);
    }

    /// `Ok(value)` when nothing is wrong, all the faults otherwise.
    ///
    /// # Errors
    /// The collected faults, in the order of their files and places.
    pub fn into_result<T>(mut self, value: T) -> Result<T, Diagnostics> {
        if self.0.is_empty() {
            return Ok(value);
        }
        self.0.sort_by(|a, b| (&a.file, a.span).cmp(&(&b.file, b.span)));
        Err(self)
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(fault: Diagnostic) -> Self {
        Diagnostics(vec![fault])
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// The valid name that was meant, if one is near: the same name in other case, else the nearest in spelling.
/// Near is an edit distance of at most a third of the longer name (Damerau-Levenshtein), or a name that
/// contains `found`. Names of one letter are too short to guess.
pub fn nearest<'a>(found: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let valid: Vec<&str> = valid.into_iter().collect();
    if let Some(same) = valid.iter().copied().find(|name| name.eq_ignore_ascii_case(found)) {
        return Some(same);
    }
    // As many characters more are as many edits at least: a slip of the keyboard is not compared letter by
    // letter.
    let characters = found.chars().count();
    let much_longer =
        |name: &str| 3 * characters.saturating_sub(name.chars().count()) > found.len().max(name.len()) + 2;
    valid
        .into_iter()
        .filter(|name| name.len() > 1 && found.len() > 1 && !much_longer(name))
        .map(|name| (strsim::damerau_levenshtein(found, name), name))
        .filter(|(distance, name)| {
            let longer = found.len().max(name.len());
            *distance * 3 <= longer + 2 || (found.len() >= 3 && name.contains(found))
        })
        .min_by_key(|(distance, name)| (*distance, *name))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_range_becomes_a_line_and_a_column_of_characters() {
        let text = "a = 1\nµs = \"x\" # end\n";
        let start = text.find('"').unwrap();
        let span = Span::of_bytes(text, start..start + 3);
        assert_eq!((span.line, span.column, span.length), (2, 6, 3));
    }

    #[test]
    fn a_range_over_two_lines_covers_the_first() {
        let span = Span::of_bytes("ab\ncd", 1..4);
        assert_eq!((span.line, span.column, span.length), (1, 2, 1));
    }

    #[test]
    fn an_end_within_a_character_is_the_characters() {
        let text = "aµb";
        assert_eq!(Span::of_bytes(text, 2..2), Span { line: 1, column: 2, length: 1 });
        assert_eq!(Span::of_bytes(text, 0..2), Span { line: 1, column: 1, length: 2 });
        assert_eq!(Span::of_bytes(text, 9..99), Span { line: 1, column: 4, length: 1 });
        assert_eq!(Span::of_bytes("", 0..1), Span { line: 1, column: 1, length: 1 });
    }

    #[test]
    fn a_line_that_is_too_long_is_not_shown() {
        let text = format!("{}\nb", "x".repeat(SHOWN_LINE_BYTES + 1));
        let fault = Diagnostic::at("f", &text, 5..6, "");
        assert_eq!((fault.span.column, fault.source_line.as_str()), (6, ""));
        assert_eq!(Diagnostic::at("f", &text, text.len() - 1..text.len(), "").source_line, "b");
    }

    proptest::proptest! {
        /// Marks save counting and change nothing.
        #[test]
        fn a_place_is_the_same_by_marks(parts in proptest::collection::vec("[aµ\n]{0,900}", 1..9), at: usize, length in 0..99usize) {
            let text = parts.concat();
            let start = at % (text.len() + 2);
            let found = Marks::of(&text).located(&text, start..start + length);
            proptest::prop_assert_eq!(found, Marks::default().located(&text, start..start + length));
            if text.is_char_boundary(start) {
                let before = &text[..start];
                let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) as u32 + 1;
                proptest::prop_assert_eq!((found.0.line, found.0.column), (before.matches('\n').count() as u32 + 1, column));
            }
        }
    }

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not_offered() {
        let names = ["num_sms", "warps", "l2"];
        assert_eq!(nearest("num_smz", names), Some("num_sms"));
        assert_eq!(nearest("wraps", names), Some("warps"));
        assert_eq!(nearest("frequency", names), None);
        assert_eq!(nearest("WARPS", names), Some("warps"));
        assert_eq!(nearest("num_sms_too", names), Some("num_sms"));
        assert_eq!(nearest(&"num_sms".repeat(10_000_000), names), None, "what is far too long costs nothing");
        assert_eq!(nearest("m", ["n", "M"]), Some("M"), "another letter is no guess");
        assert_eq!(nearest("k", ["n"]), None);
    }

    #[test]
    fn faults_come_out_in_the_order_of_their_places() {
        let text = "one\ntwo\n";
        let mut all = Diagnostics::default();
        all.push(Diagnostic::at("f", text, 4..7, "second"));
        all.push(Diagnostic::at("f", text, 0..3, "first"));
        let shown = all.into_result(()).unwrap_err().to_string();
        assert_eq!(shown, "f:1:1: first\nf:2:1: second");
    }
}
