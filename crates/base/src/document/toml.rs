//! A TOML text as items with places, and the collector of everything that is wrong with its syntax.
//!
//! `toml`'s serde front end stops at the first fault and knows no semantics, so documents are read from the
//! spanned items instead.

use std::borrow::Cow;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::place::{Place, SourceText};
use super::value::Value;
use crate::diagnostic::{Diagnostic, Diagnostics};

/// Parses a TOML text as far as it goes.
pub fn parse<'s>(source: &'s SourceText, faults: &mut Diagnostics) -> Spanned<DeTable<'s>> {
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    for error in errors {
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        faults.push(match error.span() {
            Some(span) => source.fault(span, message),
            None => Diagnostic::nowhere(&source.file, message),
        });
    }
    table
}

/// A value of the document.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    pub source: &'a Arc<SourceText>,
    value: &'a DeValue<'a>,
    /// Byte range of the value (of its header, for a `[table]`).
    start: usize,
    end: usize,
}

impl<'a> Item<'a> {
    pub(crate) fn new(source: &'a Arc<SourceText>, value: &'a Spanned<DeValue<'a>>) -> Self {
        let span = value.span();
        Item { source, value: value.get_ref(), start: span.start, end: span.end }
    }

    pub fn place(self) -> Place {
        Place::new(self.source, self.start..self.end)
    }

    /// The string, if it is one.
    pub fn text(self) -> Option<&'a str> {
        match self.value {
            DeValue::String(text) => Some(text.as_ref()),
            _ => None,
        }
    }

    /// The truth value, if it is one.
    pub fn boolean(self) -> Option<bool> {
        match self.value {
            DeValue::Boolean(value) => Some(*value),
            _ => None,
        }
    }

    /// The number, if it is one that fits.
    pub fn number(self) -> Option<Value> {
        match self.value {
            DeValue::Integer(i) => i64::from_str_radix(i.as_str(), i.radix()).ok().map(Value::Int),
            DeValue::Float(f) => f.as_str().parse().ok().map(Value::Float),
            _ => None,
        }
    }

    /// The elements, if it is an array.
    pub fn list(self) -> Option<Vec<Item<'a>>> {
        match self.value {
            DeValue::Array(items) => Some(items.iter().map(|item| Item::new(self.source, item)).collect()),
            _ => None,
        }
    }

    /// The table, if it is one.
    pub fn table(self) -> Option<TomlTable<'a>> {
        match self.value {
            DeValue::Table(table) => Some(TomlTable { source: self.source, table, start: self.start, end: self.end }),
            _ => None,
        }
    }

    /// What it is, for a message.
    pub fn described(self) -> Cow<'static, str> {
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
pub struct TomlTable<'a> {
    pub source: &'a Arc<SourceText>,
    table: &'a DeTable<'a>,
    start: usize,
    end: usize,
}

impl<'a> TomlTable<'a> {
    pub fn root(source: &'a Arc<SourceText>, table: &'a Spanned<DeTable<'a>>) -> Self {
        TomlTable { source, table: table.get_ref(), start: 0, end: 0 }
    }

    /// Its header, or all of an inline table.
    pub fn place(self) -> Place {
        Place::new(self.source, self.start..self.end)
    }

    pub fn get(self, key: &str) -> Option<Item<'a>> {
        self.table.get(key).map(|value| Item::new(self.source, value))
    }

    /// Keys and values, in file order.
    pub fn entries(self) -> impl Iterator<Item = (&'a str, Place, Item<'a>)> {
        self.table.iter().map(move |(key, value)| {
            (key.get_ref().as_ref(), Place::new(self.source, key.span()), Item::new(self.source, value))
        })
    }

    pub fn text(self, key: &str) -> Option<(&'a str, Place)> {
        let item = self.get(key)?;
        Some((item.text()?, item.place()))
    }

    pub fn table(self, key: &str) -> Option<TomlTable<'a>> {
        self.get(key)?.table()
    }

    /// A list of tables, or one table.
    pub fn tables(self, key: &str) -> Vec<TomlTable<'a>> {
        match self.get(key) {
            Some(item) => match item.list() {
                Some(items) => items.into_iter().filter_map(Item::table).collect(),
                None => item.table().into_iter().collect(),
            },
            None => Vec::new(),
        }
    }
}
