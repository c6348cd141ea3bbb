//! Faults of one trace file, each with its line; of very many the first are kept and the others counted.

use std::collections::BTreeSet;
use std::ops::Range;

use durawarp_base::diagnostic::{Diagnostic, Span};

/// Faults of a file that are told one by one.
const TOLD: usize = 20;

/// What is wrong with a file.
#[derive(Debug)]
pub(crate) struct TraceFaults {
    file: String,
    found: Vec<Diagnostic>,
    more: u64,
    /// Words that were told of once, and are not again.
    told: BTreeSet<String>,
}

/// A line as it is shown, and some of its bytes there: what is no text takes more or fewer bytes as a
/// replacement.
pub(crate) fn shown(line: &[u8], bytes: Range<usize>) -> (String, Range<usize>) {
    let until = |end: usize| String::from_utf8_lossy(&line[..end.min(line.len())]).len();
    (String::from_utf8_lossy(line).into_owned(), until(bytes.start)..until(bytes.end))
}

impl TraceFaults {
    pub(crate) fn new(file: &str) -> TraceFaults {
        TraceFaults { file: file.to_owned(), found: Vec::new(), more: 0, told: BTreeSet::new() }
    }

    /// A fault in a line, which may be no text.
    pub(crate) fn at(&mut self, number: u32, line: &[u8], bytes: Range<usize>, message: &str) {
        let (text, bytes) = shown(line, bytes);
        let fault = Diagnostic::at(&self.file, &text, bytes, message);
        let span = Span { line: number, ..fault.span };
        self.add(Diagnostic { span, ..fault });
    }

    /// A fault of a word, which is told where the word stands first.
    pub(crate) fn of_word(&mut self, word: &str, fault: impl FnOnce(&str) -> Diagnostic, number: u32) {
        if self.told.insert(word.to_owned()) {
            let fault = fault(&self.file);
            self.add(Diagnostic { span: Span { line: number, ..fault.span }, ..fault });
        }
    }

    /// A fault of the file as a whole.
    pub(crate) fn nowhere(&mut self, message: &str) {
        self.add(Diagnostic::nowhere(&self.file, message));
    }

    fn add(&mut self, fault: Diagnostic) {
        if self.found.len() < TOLD {
            self.found.push(fault);
        } else {
            self.more += 1;
        }
    }

    /// Nothing is wrong.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// No more faults are told one by one.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() == TOLD
    }

    /// The first fault.
    pub(crate) fn first(&self) -> Option<&Diagnostic> {
        self.found.first()
    }

    /// All of them, in the order in which they were found.
    pub(crate) fn into_faults(mut self) -> Vec<Diagnostic> {
        if self.more > 0 {
            self.found.push(Diagnostic::nowhere(&self.file, format!("and {} more faults", self.more)));
        }
        self.found
    }
}
