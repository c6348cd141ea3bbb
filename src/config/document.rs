//! A document: a TOML text with tables of parameters, as machines and schemes are written. Read with what it starts from,
//! changed by overrides, every value kept with its source and its place.
//!
//! ```toml
//! inherits = "BASE"                                   # or `scheme`: the document to start from
//! name = "mine"
//! [table]
//! key = 1                                             # a value
//! other = { value = 2, source = "where it is from" }  # a value with its owner
//! ```
//! What may be in it is a [`Form`]; a [`Draft`] reads. Left out: whether values go with each other, which the owner of the
//! tables knows.

mod draft;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

pub(super) use self::draft::Draft;
use super::overrides::Override;
use crate::diagnostic::{Diagnostic, Span, nearest};
use crate::spec::Key;

/// What may be in documents of a kind.
#[derive(Debug)]
pub(super) struct Form {
    /// What they describe: "machine".
    pub(super) what: &'static str,
    /// The option that names one.
    pub(super) option: &'static str,
    /// The key that names the document to start from, and whether a file must have it.
    pub(super) base_key: &'static str,
    pub(super) base_required: bool,
    /// Built-in documents: name and text.
    pub(super) builtin: Vec<(&'static str, &'static str)>,
    /// The tables.
    pub(super) tables: Vec<Table>,
    /// What the other kind of documents describes, and its tables, which an override may have meant.
    pub(super) other: (&'static str, Vec<String>),
    /// Advice on keys that are missing.
    pub(super) missing: String,
}

/// A table that a document may have.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) keys: &'static [Key],
    /// Only documents that start from this built-in one have it.
    pub(super) of: Option<&'static str>,
}

/// A document, read and complete.
#[derive(Debug)]
pub(super) struct Document {
    /// Its own name, else what was asked for.
    pub(super) name: String,
    pub(super) description: String,
    /// Every table with every key.
    pub(super) tables: Map<String, Value>,
    /// Where each value comes from, by `table.key`.
    pub(super) sources: BTreeMap<String, String>,
    asked: String,
    entries: BTreeMap<(String, String), Entry>,
}

/// Where a value was written, to blame it when it does not go with the others.
#[derive(Debug, Clone)]
struct Origin {
    file: String,
    span: Span,
    source_line: String,
}

#[derive(Debug, Clone)]
struct Entry {
    value: Value,
    source: String,
    origin: Origin,
}

/// Source of a value given on the command line.
const USER: &str = "user: --set";

/// End of the source of a value in a file that names none; before it what the file describes.
const UNNAMED: &str = " file without a source";

/// Values without a source of their own: chosen, set by the user, or from a file that names none.
pub(super) fn assumptions(sources: &BTreeMap<String, String>) -> Vec<(&str, &str)> {
    sources.iter().filter(|(_, s)| is_unowned(s)).map(|(k, s)| (k.as_str(), s.as_str())).collect()
}

/// A source that is none.
pub(super) fn is_unowned(source: &str) -> bool {
    source.starts_with("chosen") || source == USER || source.ends_with(UNNAMED)
}

/// A table with its sources as it is written in a document.
pub(super) fn written(table: &str, keys: &[Key], values: &Value, sources: &BTreeMap<String, String>) -> String {
    let mut out = format!("\n[{table}]\n");
    for key in keys {
        let value = &values[key.name];
        let source = sources.get(&format!("{table}.{}", key.name)).map_or("", String::as_str);
        out.push_str(&format!("{} = {{ value = {value}, source = {source:?} }}\n", key.name));
    }
    out
}

/// It is a path, not a name.
pub(super) fn is_path(name_or_path: &str) -> bool {
    name_or_path.ends_with(".toml") || name_or_path.contains(['/', '\\'])
}

impl Form {
    fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    fn table_names(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(|table| table.name.as_str())
    }

    /// "Did you mean", first in the same table, then in all of them.
    fn with_nearest_key(&self, fault: Diagnostic, table: &str, name: &str) -> Diagnostic {
        let own = self.table(table).map_or(&[][..], |table| table.keys);
        if let Some(near) = nearest(name, own.iter().map(|k| k.name)) {
            return fault.with_help(format!("did you mean `{table}.{near}`?"));
        }
        let all = self.tables.iter().flat_map(|table| table.keys.iter().map(move |key| (&table.name, key.name)));
        let last = name.rsplit('.').next().unwrap_or(name);
        match all
            .filter(|(_, key)| nearest(last, [*key]).is_some())
            .min_by_key(|(_, key)| strsim::damerau_levenshtein(last, key))
        {
            Some((table, key)) => fault.with_help(format!("did you mean `{table}.{key}`?")),
            None => fault,
        }
    }

    /// What is wrong with a key that there is not.
    fn unknown_key(&self, table: &Table, name: &str) -> String {
        match (table.keys, table.of) {
            ([], Some(of)) => format!("unknown key `{}.{name}`: {} `{of}` has no parameters", table.name, self.what),
            _ => format!("unknown key `{}.{name}`", table.name),
        }
    }

    /// What is wrong with an override of a table that there is not.
    pub(super) fn unknown_table(&self, over: &Override) -> Diagnostic {
        let (written, table) = (over.written(), over.table());
        if over.key.contains('.') {
            let message = format!("there is no table `{table}` in a {}", self.what);
            let (other, elsewhere) = &self.other;
            let fault = Diagnostic::nowhere(&written, message);
            if elsewhere.iter().any(|name| name == table) {
                return fault.with_help(format!("it is a {other}'s"));
            }
            return fault.with_nearest(table, self.table_names().chain(elsewhere.iter().map(String::as_str)));
        }
        let message = format!("unknown key `{}`: {} keys are TABLE.KEY", over.key, self.what);
        self.with_nearest_key(Diagnostic::nowhere(&written, message), "", &over.key)
    }
}

impl Document {
    /// A fault of values that do not go together, told where the value of `table.key` was written.
    pub(super) fn blame(&self, table: &str, key: &str, why: &str) -> Diagnostic {
        let message = format!("`{table}.{key}`: {why}");
        match self.entries.get(&(table.to_owned(), key.to_owned())) {
            Some(Entry { origin, .. }) => Diagnostic {
                file: origin.file.clone(),
                span: origin.span,
                source_line: origin.source_line.clone(),
                message,
                help: None,
            },
            None => Diagnostic::nowhere(&self.asked, message),
        }
    }
}
