//! The form of a document of parameters: machines and schemes are written in it.
//!
//! ```toml
//! inherits = "BASE"                                   # or `scheme`: the document to start from
//! name = "mine"
//! [table]
//! key = 1                                             # a value
//! other = { value = 2, source = "where it is from" }  # a value with its source
//! ```
//! A [`Draft`](super::Draft) reads it. Not here: which values are compatible; the owner of the tables checks
//! that.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::overrides::Override;
use crate::diagnostic::{Diagnostic, nearest};
use crate::spec::Key;

/// What may be in documents of a kind.
#[derive(Debug)]
pub struct Form {
    /// What documents of this kind describe: "machine".
    pub what: &'static str,
    /// The command-line option that names one.
    pub option: &'static str,
    /// The key that names the document to start from, and whether a file must have it.
    pub base_key: &'static str,
    pub base_required: bool,
    /// Which of several kinds these documents are, if there are kinds: their key `kind` says it.
    pub kind: Option<FormKind>,
    /// Built-in documents: name and text.
    pub builtin: Vec<(&'static str, &'static str)>,
    pub tables: Vec<ParameterTable>,
    /// What the other kind of document describes, and its tables: an override may belong there.
    pub other: (&'static str, Vec<String>),
    /// Advice on keys that are missing.
    pub missing: String,
}

/// One of the kinds that documents are of: those of the others are named, so that they are not taken for
/// unknown.
#[derive(Debug)]
pub struct FormKind {
    /// As documents say it.
    pub word: &'static str,
    /// The words of all kinds; the first is of documents that neither say one nor start from another.
    pub words: &'static [&'static str],
    /// Built-in documents of the other kind, and its word.
    pub elsewhere: Vec<&'static str>,
    pub other: &'static str,
}

/// A table that a document may have.
#[derive(Debug)]
pub struct ParameterTable {
    pub name: String,
    pub keys: &'static [Key],
    /// Only documents that start from this built-in one have it.
    pub of: Option<&'static str>,
}

/// Source of a value given on the command line.
pub const USER_SOURCE: &str = "user: --set";

/// The source of a value in a file that names none ends in this, after what the file describes.
pub(super) const UNNAMED: &str = " file without a source";

/// Values without a source of their own: chosen, set by the user, or from a file that names none.
pub fn assumptions(sources: &BTreeMap<String, String>) -> Vec<(&str, &str)> {
    sources.iter().filter(|(_, s)| is_unowned(s)).map(|(k, s)| (k.as_str(), s.as_str())).collect()
}

/// The source names no owner: the value was chosen, set by the user, or written without one.
pub fn is_unowned(source: &str) -> bool {
    source.starts_with("chosen") || source == USER_SOURCE || source.ends_with(UNNAMED)
}

/// A table with its sources as it is written in a document.
pub fn written(table: &str, keys: &[Key], values: &Value, sources: &BTreeMap<String, String>) -> String {
    let mut out = format!("\n[{table}]\n");
    for key in keys {
        let value = &values[key.name];
        let source = sources.get(&format!("{table}.{}", key.name)).map_or("", String::as_str);
        out.push_str(&format!("{} = {{ value = {value}, source = {source:?} }}\n", key.name));
    }
    out
}

/// Whether it is a path rather than a name. No built-in name has a dot: a file that has one is meant, and its
/// reading tells what it is not.
pub fn is_path(name_or_path: &str) -> bool {
    let is_a_file = || name_or_path.contains('.') && Path::new(name_or_path).is_file();
    name_or_path.ends_with(".toml") || name_or_path.contains(['/', '\\']) || is_a_file()
}

impl Form {
    pub(super) fn table(&self, name: &str) -> Option<&ParameterTable> {
        self.tables.iter().find(|table| table.name == name)
    }

    pub(super) fn table_names(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(|table| table.name.as_str())
    }

    /// "Did you mean", first in the same table, then in all of them.
    pub(super) fn with_nearest_key(&self, fault: Diagnostic, table: &str, name: &str) -> Diagnostic {
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

    /// What is wrong with a key that the table does not have.
    pub(super) fn unknown_key(&self, table: &ParameterTable, name: &str) -> String {
        match (table.keys, table.of) {
            ([], Some(of)) => format!("unknown key `{}.{name}`: {} `{of}` has no parameters", table.name, self.what),
            _ => format!("unknown key `{}.{name}`", table.name),
        }
    }

    /// What is wrong with an override of an unknown table.
    pub fn unknown_table(&self, over: &Override) -> Diagnostic {
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
