//! The options of configuration files of GPGPU-Sim, as read and as used.
//!
//! An option is a word with a `-` and a letter first; its value is what follows up to the next option, on
//! this line or, within quotes, on several. `#` begins a comment. What no file gives is GPGPU-Sim's default.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::Range;

use super::cache::CacheFields;
use super::known::{self, KnownOption};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};

/// What was given for an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) name: String,
    pub(super) value: String,
    /// It set a key.
    pub(super) used: bool,
    /// Its row in the table of options, if it has one.
    pub(super) known: Option<&'static KnownOption>,
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
    told: RefCell<Vec<String>>,
}

impl<'a> Options<'a> {
    pub(super) fn read(files: &'a [(String, String)]) -> Self {
        let mut options = Options {
            files,
            all: Vec::new(),
            strays: Vec::new(),
            faults: RefCell::default(),
            told: RefCell::default(),
        };
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

    /// Whether a file gives the option.
    pub(super) fn gives(&self, name: &str) -> bool {
        self.all.iter().any(|read| read.name == name)
    }

    /// Whether a file gives an option whose name begins like this.
    pub(super) fn gives_any(&self, start: &str) -> bool {
        self.all.iter().any(|read| read.name.starts_with(start))
    }

    /// The source of a key that the option sets.
    pub(super) fn source(&self, name: &str) -> String {
        match known::find(name).and_then(|known| known.default).filter(|_| !self.gives(name)) {
            Some(default) => format!("-{name}, by default {default}"),
            None => format!("-{name}"),
        }
    }

    /// A fault of the option, at its value.
    pub(super) fn blame(&self, name: &str, message: String) {
        let fault = match self.all.iter().find(|read| read.name == name) {
            Some(read) => {
                let (file, text) = &self.files[read.file];
                Diagnostic::at(file, text, read.place.clone(), message)
            }
            None => Diagnostic::nowhere(self.files.first().map_or("", |(file, _)| file), message),
        };
        self.faults.borrow_mut().push(fault);
    }

    /// Notes a part of an option that has no counterpart, if a file gives the option.
    pub(super) fn tell(&self, name: &str, what: &str) {
        if self.gives(name) {
            self.told.borrow_mut().push(format!("-{name}: {what}"));
        }
    }

    /// Parts of options without a counterpart.
    pub(super) fn told(&self) -> Vec<String> {
        self.told.borrow().clone()
    }

    /// The value of an option: what a file gives, or GPGPU-Sim's own.
    pub(super) fn word(&self, name: &str) -> Option<&str> {
        match self.all.iter().find(|read| read.name == name) {
            Some(read) => {
                read.used.set(true);
                Some(&read.value)
            }
            None => known::find(name)?.default,
        }
    }

    /// So many numbers, or more, between commas or colons.
    pub(super) fn numbers(&self, name: &str, least: usize) -> Option<Vec<f64>> {
        let text = self.word(name)?;
        let number = |part: &str| part.trim().parse().ok().filter(|n: &f64| *n >= 0.0 && n.is_finite());
        let numbers: Option<Vec<f64>> = text.split([',', ':']).map(number).collect();
        let found = numbers.filter(|numbers| numbers.len() >= least && numbers.len() < 64);
        if found.is_none() {
            let of = if least == 1 { "a number".to_owned() } else { format!("{least} numbers between `,` or `:`") };
            self.blame(name, format!("-{name} takes {of}, none less than 0; got `{text}`"));
        }
        found
    }

    /// A number.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.numbers(name, 1).and_then(|numbers| numbers.first().copied())
    }

    /// Words `NAME=NUMBER` between colons, or numbers alone, which have these names.
    pub(super) fn named(&self, name: &str, order: &[&str]) -> Vec<(String, f64)> {
        let Some(text) = self.word(name) else { return Vec::new() };
        if !text.contains('=') {
            let numbers = self.numbers(name, order.len()).unwrap_or_default();
            return order.iter().map(|&word| word.to_owned()).zip(numbers).collect();
        }
        let mut all = Vec::new();
        for part in text.split([':', ';']).filter(|part| !part.trim().is_empty()) {
            let pair = part.split_once('=').and_then(|(word, value)| Some((word, value.trim().parse::<f64>().ok()?)));
            match pair.filter(|(_, value)| *value >= 0.0 && value.is_finite()) {
                Some((word, value)) => all.push((word.trim().to_owned(), value)),
                None => self.blame(name, format!("-{name} takes NAME=NUMBER between `:`; got `{part}`")),
            }
        }
        all
    }

    /// A cache; none where there is none.
    pub(super) fn cache(&self, name: &str) -> Option<CacheFields> {
        let text = self.word(name)?;
        if text == "none" {
            return None;
        }
        let found = CacheFields::parse(text);
        if found.is_none() {
            self.blame(name, format!("-{name} takes {}; got `{text}`", CacheFields::FORM));
        }
        found
    }

    /// Every option that the files give.
    pub(super) fn all(&self) -> impl Iterator<Item = Given> {
        self.all.iter().map(|read| Given {
            name: read.name.clone(),
            value: read.value.clone(),
            used: read.used.get(),
            known: known::find(&read.name),
        })
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
