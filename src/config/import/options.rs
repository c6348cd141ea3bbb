//! The options of configuration files of GPGPU-Sim, as read and as used.
//!
//! An option is a word with a `-` and a letter first; its value is what follows up to the next option, on
//! this line or, within quotes, on several. `#` begins a comment.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::Range;

use crate::diagnostic::{Diagnostic, Diagnostics};

/// What was given for an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) name: String,
    pub(super) value: String,
    /// It set a key.
    pub(super) used: bool,
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "-{} {}", self.name, self.value)
    }
}

#[derive(Debug)]
struct Read {
    name: String,
    value: String,
    /// Which file, and where in it the value stands.
    file: usize,
    place: Range<usize>,
    used: Cell<bool>,
}

/// Every option of some files, in their order.
#[derive(Debug)]
pub(super) struct Options<'a> {
    files: &'a [(String, String)],
    all: Vec<Read>,
    strays: Vec<String>,
    faults: RefCell<Diagnostics>,
}

impl<'a> Options<'a> {
    pub(super) fn read(files: &'a [(String, String)]) -> Self {
        let mut options = Options { files, all: Vec::new(), strays: Vec::new(), faults: RefCell::default() };
        for (file, (_, text)) in files.iter().enumerate() {
            options.read_file(file, text);
        }
        options
    }

    fn read_file(&mut self, file: usize, text: &str) {
        let (mut start, mut open) = (0, None::<usize>);
        for line in text.split_inclusive('\n') {
            let at = start;
            start += line.len();
            let code = line.split('#').next().unwrap_or("").trim();
            if code.is_empty() {
                continue;
            }
            let place = at + line.find(code).unwrap_or(0);
            if let Some(option) = open {
                self.all[option].value += &code.replace(char::is_whitespace, "");
            } else if let Some(name) =
                code.strip_prefix('-').filter(|rest| rest.starts_with(|c: char| c.is_alphabetic()))
            {
                let (name, value) = name.split_once(char::is_whitespace).unwrap_or((name, ""));
                // Where the value stands: behind the option, or the option itself where it has none.
                let from = if value.is_empty() { place } else { place + code.len() - value.trim().len() };
                // The later one counts.
                self.all.retain(|read| read.name != name);
                self.all.push(Read {
                    name: name.to_owned(),
                    value: value.trim().to_owned(),
                    file,
                    place: from..place + code.len(),
                    used: Cell::new(false),
                });
            } else {
                self.strays.push(code.to_owned());
                continue;
            }
            let Some(last) = self.all.len().checked_sub(1) else { continue };
            open = (self.all[last].value.matches('"').count() % 2 == 1).then_some(last);
            if open.is_none() {
                self.all[last].value = self.all[last].value.replace('"', "").trim().to_owned();
            }
        }
    }

    fn find(&self, name: &str) -> Option<&Read> {
        let found = self.all.iter().find(|read| read.name == name)?;
        found.used.set(true);
        Some(found)
    }

    fn fault(&self, read: &Read, message: String) {
        let (name, text) = &self.files[read.file];
        self.faults.borrow_mut().push(Diagnostic::at(name, text, read.place.clone(), message));
    }

    /// The value of an option.
    pub(super) fn word(&self, name: &str) -> Option<&str> {
        self.find(name).map(|read| read.value.as_str())
    }

    /// So many numbers, or more, between commas or colons.
    pub(super) fn numbers(&self, name: &str, least: usize) -> Option<Vec<f64>> {
        let read = self.find(name)?;
        let numbers: Option<Vec<f64>> =
            read.value.split([',', ':']).map(|part| part.trim().parse().ok().filter(|n: &f64| *n >= 0.0)).collect();
        let found = numbers.filter(|numbers| numbers.len() >= least && numbers.len() < 64);
        if found.is_none() {
            let of = if least == 1 { "a number".to_owned() } else { format!("{least} numbers between `,` or `:`") };
            self.fault(read, format!("-{name} takes {of}, none less than 0; got `{}`", read.value));
        }
        found
    }

    /// A number.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.numbers(name, 1).and_then(|numbers| numbers.first().copied())
    }

    /// Words `NAME=NUMBER` between colons.
    pub(super) fn named(&self, name: &str) -> Vec<(String, f64)> {
        let Some(read) = self.find(name) else { return Vec::new() };
        let mut all = Vec::new();
        for part in read.value.split(':').filter(|part| !part.trim().is_empty()) {
            match part.split_once('=').and_then(|(word, value)| Some((word, value.trim().parse().ok()?))) {
                Some((word, value)) => all.push((word.trim().to_owned(), value)),
                None => self.fault(read, format!("-{name} takes NAME=NUMBER between `:`; got `{part}`")),
            }
        }
        all
    }

    /// A cache: sets, bytes of a line, ways, MSHRs, merges of one, entries of the miss queue.
    pub(super) fn cache(&self, name: &str) -> Option<[u64; 6]> {
        let read = self.find(name)?;
        let parts: Vec<Vec<&str>> = read.value.split(',').map(|part| part.split(':').collect()).collect();
        let number = |part: usize, at: usize| parts.get(part)?.get(at)?.trim().parse::<u64>().ok();
        let all = [(0, 1), (0, 2), (0, 3), (2, 1), (2, 2), (3, 0)].map(|(part, at)| number(part, at));
        let found: Option<Vec<u64>> = all.into_iter().collect();
        if found.is_none() {
            let form = "KIND:SETS:LINE:WAYS,R:W:A:WA:I,M:MSHRS:MERGES,QUEUE";
            self.fault(read, format!("-{name} takes {form}; got `{}`", read.value));
        }
        found.and_then(|found| found.try_into().ok())
    }

    /// Every option and whether it set a key.
    pub(super) fn all(&self) -> impl Iterator<Item = Given> {
        self.all.iter().map(|read| Given { name: read.name.clone(), value: read.value.clone(), used: read.used.get() })
    }

    /// Lines that are no options.
    pub(super) fn strays(&self) -> impl Iterator<Item = &str> {
        self.strays.iter().map(String::as_str)
    }

    /// Everything that was wrong with values.
    pub(super) fn faults(&self) -> Diagnostics {
        self.faults.borrow().clone()
    }
}
