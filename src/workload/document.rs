//! A TOML text with places: where a key or a value is, and the collector of everything that is wrong with it.
//!
//! `toml`'s serde front end stops at the first fault and knows no semantics, so the manifest is read from the spanned
//! document instead. Invariant: a [`Place`] is a byte range of the text it came from, on character boundaries.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{self, Diagnostic, Diagnostics};

use super::expr::Value;

/// The valid name that was meant, if one is near: the same name in other case, else the nearest in spelling. Names of
/// one letter are too short to guess.
pub(crate) fn nearest<'a>(found: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let valid: Vec<&str> = valid.into_iter().collect();
    let same = valid.iter().copied().find(|name| name.eq_ignore_ascii_case(found));
    let long = valid.iter().copied().filter(|name| name.len() > 1 && found.len() > 1);
    same.or_else(|| diagnostic::nearest(found, long))
}

/// `fault` with "did you mean", or with `otherwise`.
pub(crate) fn advised<'a>(
    fault: Diagnostic,
    found: &str,
    valid: impl IntoIterator<Item = &'a str>,
    otherwise: impl FnOnce() -> Option<String>,
) -> Diagnostic {
    match nearest(found, valid).map(|near| format!("did you mean `{near}`?")).or_else(otherwise) {
        Some(help) => fault.with_help(help),
        None => fault,
    }
}

/// A text and the name under which faults in it are reported.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// File name, as the user knows it.
    pub(crate) file: String,
    /// Content.
    pub(crate) text: String,
}

/// A byte range of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    source: Arc<Source>,
    bytes: Range<usize>,
}

impl Place {
    pub(crate) fn new(source: &Arc<Source>, bytes: Range<usize>) -> Self {
        Place { source: source.clone(), bytes }
    }

    /// The whole text.
    pub(crate) fn text(&self) -> &str {
        &self.source.text
    }

    /// A fault here.
    pub(crate) fn fault(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::at(&self.source.file, &self.source.text, self.bytes.clone(), message)
    }

    /// The part `at` of the string `decoded` that this place holds in quotes. A string that is written with escapes
    /// cannot be divided: the whole of it then.
    pub(crate) fn inside(&self, decoded: &str, at: Range<usize>) -> Place {
        let written = &self.source.text[self.bytes.clone()];
        let body = self.body();
        if !written[body..].starts_with(decoded) {
            return self.clone();
        }
        let start = self.bytes.start + body;
        Place { source: self.source.clone(), bytes: start + at.start..start + at.end }
    }

    /// Where the string `decoded` that this place holds in quotes begins, if its lines are those of the text: it is
    /// written without escapes, but for ends of lines.
    pub(crate) fn start_of(&self, decoded: &str) -> Option<usize> {
        let body = self.body();
        let unix = |text: &str| text.replace("\r\n", "\n");
        let written = &self.source.text[self.bytes.clone()];
        unix(&written[body..]).starts_with(&unix(decoded)).then_some(self.bytes.start + body)
    }

    /// Where in the place a string begins behind its quotes.
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
    pub(crate) fn start(&self) -> usize {
        self.bytes.start
    }
}

/// Parses a TOML text as far as it goes.
pub(crate) fn parse<'s>(source: &'s Source, faults: &mut Diagnostics) -> Spanned<DeTable<'s>> {
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    for error in errors {
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        faults.push(match error.span() {
            Some(span) => Diagnostic::at(&source.file, &source.text, span, message),
            None => Diagnostic::nowhere(&source.file, message),
        });
    }
    table
}

/// A value of the document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item<'a> {
    pub(crate) source: &'a Arc<Source>,
    value: &'a DeValue<'a>,
    /// Byte range of the value (of its header, for a `[table]`).
    start: usize,
    end: usize,
}

impl<'a> Item<'a> {
    pub(crate) fn new(source: &'a Arc<Source>, value: &'a Spanned<DeValue<'a>>) -> Self {
        let span = value.span();
        Item { source, value: value.get_ref(), start: span.start, end: span.end }
    }

    pub(crate) fn place(self) -> Place {
        Place::new(self.source, self.start..self.end)
    }

    /// The string, if it is one.
    pub(crate) fn text(self) -> Option<&'a str> {
        match self.value {
            DeValue::String(text) => Some(text.as_ref()),
            _ => None,
        }
    }

    /// The truth value, if it is one.
    pub(crate) fn boolean(self) -> Option<bool> {
        match self.value {
            DeValue::Boolean(value) => Some(*value),
            _ => None,
        }
    }

    /// The number, if it is one that fits.
    pub(crate) fn number(self) -> Option<Value> {
        match self.value {
            DeValue::Integer(i) => i64::from_str_radix(i.as_str(), i.radix()).ok().map(Value::Int),
            DeValue::Float(f) => f.as_str().parse().ok().map(Value::Float),
            _ => None,
        }
    }

    /// The elements, if it is an array.
    pub(crate) fn list(self) -> Option<Vec<Item<'a>>> {
        match self.value {
            DeValue::Array(items) => Some(items.iter().map(|item| Item::new(self.source, item)).collect()),
            _ => None,
        }
    }

    /// The table, if it is one.
    pub(crate) fn table(self) -> Option<Table<'a>> {
        match self.value {
            DeValue::Table(table) => Some(Table { source: self.source, table, start: self.start, end: self.end }),
            _ => None,
        }
    }

    /// What it is, for a message.
    pub(crate) fn described(self) -> Cow<'static, str> {
        match self.value {
            DeValue::String(text) => format!("the string \"{}\"", shortened(text)).into(),
            DeValue::Integer(i) => format!("the integer {i}").into(),
            DeValue::Float(f) => format!("the float {f}").into(),
            DeValue::Boolean(b) => format!("the truth value {b}").into(),
            DeValue::Datetime(_) => "a date".into(),
            DeValue::Array(_) => "a list".into(),
            DeValue::Table(_) => "a table".into(),
        }
    }
}

fn shortened(text: &str) -> String {
    let line = text.lines().next().unwrap_or("");
    match line.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

/// A table of the document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table<'a> {
    pub(crate) source: &'a Arc<Source>,
    table: &'a DeTable<'a>,
    start: usize,
    end: usize,
}

impl<'a> Table<'a> {
    pub(crate) fn root(source: &'a Arc<Source>, table: &'a Spanned<DeTable<'a>>) -> Self {
        Table { source, table: table.get_ref(), start: 0, end: 0 }
    }

    /// Its header, or all of an inline table.
    pub(crate) fn place(self) -> Place {
        Place::new(self.source, self.start..self.end)
    }

    pub(crate) fn get(self, key: &str) -> Option<Item<'a>> {
        self.table.get(key).map(|value| Item::new(self.source, value))
    }

    /// Keys and values, in file order.
    pub(crate) fn entries(self) -> impl Iterator<Item = (&'a str, Place, Item<'a>)> {
        self.table.iter().map(move |(key, value)| {
            (key.get_ref().as_ref(), Place::new(self.source, key.span()), Item::new(self.source, value))
        })
    }

    pub(crate) fn text(self, key: &str) -> Option<(&'a str, Place)> {
        let item = self.get(key)?;
        Some((item.text()?, item.place()))
    }

    pub(crate) fn table(self, key: &str) -> Option<Table<'a>> {
        self.get(key)?.table()
    }

    /// A list of tables, or one table.
    pub(crate) fn tables(self, key: &str) -> Vec<Table<'a>> {
        match self.get(key) {
            Some(item) => match item.list() {
                Some(items) => items.into_iter().filter_map(Item::table).collect(),
                None => item.table().into_iter().collect(),
            },
            None => Vec::new(),
        }
    }
}
