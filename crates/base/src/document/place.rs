//! A place in a text, at which faults are reported: a text and a range of its bytes.
//!
//! Invariant: a [`Place`] is on character boundaries of its text.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::diagnostic::{Diagnostic, Marks};

/// A text and the name under which faults in it are reported.
#[derive(Debug, PartialEq, Eq)]
pub struct SourceText {
    /// File name, as the user knows it.
    pub file: String,
    /// Content.
    pub text: String,
    marks: OnceLock<Marks>,
}

impl SourceText {
    pub fn new(file: &str, text: String) -> Self {
        SourceText { file: file.to_owned(), text, marks: OnceLock::new() }
    }

    /// A fault at these bytes.
    pub(crate) fn fault(&self, bytes: Range<usize>, message: impl Into<String>) -> Diagnostic {
        let marks = self.marks.get_or_init(|| Marks::of(&self.text));
        Diagnostic::by_marks(marks, &self.file, &self.text, bytes, message)
    }
}

/// A byte range of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    source: Arc<SourceText>,
    bytes: Range<usize>,
}

impl Place {
    pub fn new(source: &Arc<SourceText>, bytes: Range<usize>) -> Self {
        Place { source: source.clone(), bytes }
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.source.text
    }

    /// A fault here.
    pub fn fault(&self, message: impl Into<String>) -> Diagnostic {
        self.source.fault(self.bytes.clone(), message)
    }

    /// The part `at` of the string `decoded` that this place holds in quotes. A string that is written with
    /// escapes cannot be divided: the whole of it then.
    pub fn inside(&self, decoded: &str, at: Range<usize>) -> Place {
        let written = &self.source.text[self.bytes.clone()];
        let body = self.body();
        if !written[body..].starts_with(decoded) {
            return self.clone();
        }
        let start = self.bytes.start + body;
        Place { source: self.source.clone(), bytes: start + at.start..start + at.end }
    }

    /// Where the string `decoded` that this place holds in quotes begins, if its lines are those of the text:
    /// it is written without escapes, but for ends of lines.
    pub fn start_of(&self, decoded: &str) -> Option<usize> {
        let body = self.body();
        let unix = |text: &str| text.replace("\r\n", "\n");
        let written = &self.source.text[self.bytes.clone()];
        unix(&written[body..]).starts_with(&unix(decoded)).then_some(self.bytes.start + body)
    }

    /// Where in the place a string begins after its opening quotes.
    fn body(&self) -> usize {
        match &self.source.text[self.bytes.clone()] {
            w if w.starts_with("\"\"\"") || w.starts_with("'''") => {
                let newline = w[3..].starts_with("\r\n").then_some(2).or(w[3..].starts_with('\n').then_some(1));
                3 + newline.unwrap_or(0)
            }
            w if w.starts_with(['"', '\'']) => 1,
            _ => 0,
        }
    }

    /// First byte: the order of places in the text.
    pub fn start(&self) -> usize {
        self.bytes.start
    }
}
