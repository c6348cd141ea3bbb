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
    /// The place of `bytes` (a byte range) in `text`. A range over several lines covers its first line only.
    pub fn of_bytes(text: &str, bytes: std::ops::Range<usize>) -> Self {
        let start = bytes.start.min(text.len());
        let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |i| start + i);
        let end = bytes.end.clamp(start, line_end);
        Span {
            line: text[..start].matches('\n').count() as u32 + 1,
            column: text[line_start..start].chars().count() as u32 + 1,
            length: (text[start..end].chars().count() as u32).max(1),
        }
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
    /// The text of the faulty line, for a caret under it; empty when there is none.
    pub source_line: String,
    /// What to do about it: the nearest valid name, the valid range, an example.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A fault at a byte range of `text`, which is the content of `file`.
    pub fn at(file: &str, text: &str, bytes: std::ops::Range<usize>, message: impl Into<String>) -> Self {
        let span = Span::of_bytes(text, bytes);
        Diagnostic {
            file: file.to_owned(),
            span,
            message: message.into(),
            source_line: text.lines().nth(span.line as usize - 1).unwrap_or("").to_owned(),
            help: None,
        }
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
    valid
        .into_iter()
        .filter(|name| name.len() > 1 && found.len() > 1)
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
    fn the_nearest_name_is_found_and_a_far_one_is_not_offered() {
        let names = ["num_sms", "warps", "l2"];
        assert_eq!(nearest("num_smz", names), Some("num_sms"));
        assert_eq!(nearest("wraps", names), Some("warps"));
        assert_eq!(nearest("frequency", names), None);
        assert_eq!(nearest("WARPS", names), Some("warps"));
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
