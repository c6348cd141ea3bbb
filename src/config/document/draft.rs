//! Reading a document: texts and overrides into values with their places.
//!
//! Invariants: all faults are found before any is told; of two values of a key the one nearer to the user counts: an
//! override, then the file, then what it starts from.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::overrides::Override;
use super::super::value::{Scalar, check};
use super::{Document, Entry, Form, Origin, Table, UNNAMED, USER, is_path};
use crate::diagnostic::{Diagnostic, Diagnostics, Span};
use crate::spec::Key;

/// Values collected so far, by table and key.
#[derive(Debug)]
pub(in crate::config) struct Draft<'a> {
    form: &'a Form,
    asked: String,
    root: Option<&'static str>,
    name: String,
    description: String,
    entries: BTreeMap<(String, String), Entry>,
    faults: Diagnostics,
}

/// A text that is being read, and what it is called.
#[derive(Clone, Copy)]
struct Text<'a> {
    file: &'a str,
    text: &'a str,
}

impl Text<'_> {
    fn fault(self, at: Range<usize>, message: impl Into<String>) -> Diagnostic {
        Diagnostic::at(self.file, self.text, at, message)
    }
}

/// Documents may start from documents that start from others: so deep, then it is taken for a circle.
const MAX_INHERITANCE: u32 = 8;

fn scalar_of(value: &DeValue<'_>) -> Scalar {
    match value {
        DeValue::Integer(i) => {
            i64::from_str_radix(i.as_str(), i.radix()).map_or(Scalar::Other("a huge number"), Scalar::Whole)
        }
        DeValue::Float(x) => x.as_str().parse().map_or(Scalar::Other("a number"), Scalar::Decimal),
        DeValue::Boolean(b) => Scalar::Flag(*b),
        DeValue::String(s) => Scalar::Text(s.to_string()),
        DeValue::Array(_) => Scalar::Other("an array"),
        DeValue::Table(_) => Scalar::Other("a table"),
        DeValue::Datetime(_) => Scalar::Other("a date"),
    }
}

impl<'a> Draft<'a> {
    /// What a built-in name or a file says, with all that it starts from.
    pub(in crate::config) fn read(form: &'a Form, name_or_path: &str) -> Self {
        let mut draft = Draft {
            form,
            asked: name_or_path.to_owned(),
            root: None,
            name: String::new(),
            description: String::new(),
            entries: BTreeMap::new(),
            faults: Diagnostics::default(),
        };
        draft.read_from(name_or_path, None, 0);
        draft
    }

    /// The built-in document that it comes from in the end.
    pub(in crate::config) fn root(&self) -> Option<&'static str> {
        self.root
    }

    /// Reads a name or a file into the draft, its ancestors first. `asked` is where it was asked for.
    fn read_from(&mut self, name_or_path: &str, asked: Option<Diagnostic>, depth: u32) {
        let what = self.form.what;
        let complain = |message: String| match &asked {
            Some(place) => Diagnostic { message, ..place.clone() },
            None => Diagnostic::nowhere(self.form.option, message),
        };
        if depth > MAX_INHERITANCE {
            self.faults.push(complain(format!("{what} `{name_or_path}` inherits in a circle")));
            return;
        }
        let builtin = self.form.builtin.iter().find(|(name, _)| *name == name_or_path);
        let (text, root) = match (builtin, is_path(name_or_path)) {
            (Some((name, text)), false) => ((*text).to_owned(), Some(*name)),
            (None, false) => {
                let known: Vec<&str> = self.form.builtin.iter().map(|(name, _)| *name).collect();
                let fault = complain(format!(
                    "there is no {what} `{name_or_path}`; built in are {}, and a path to a .toml file works too",
                    known.join(", ")
                ));
                self.faults.push(fault.with_nearest(name_or_path, known));
                return;
            }
            (_, true) => match crate::input::text(Path::new(name_or_path)) {
                Ok(text) => (text, None),
                Err(error) => {
                    self.faults.push(complain(format!("cannot read {what} file `{name_or_path}`: {error}")));
                    return;
                }
            },
        };
        let whole = Text { file: name_or_path, text: &text };
        match DeTable::parse(&text) {
            Ok(document) => self.read_document(whole, document.get_ref(), root, depth),
            Err(error) => {
                let at = error.span().unwrap_or(0..0);
                self.faults.push(whole.fault(at, error.message()));
            }
        }
    }

    fn read_document(&mut self, text: Text<'_>, document: &DeTable<'_>, root: Option<&'static str>, depth: u32) {
        let (what, base_key) = (self.form.what, self.form.base_key);
        match document.iter().find(|(key, _)| key.get_ref() == base_key) {
            Some((_, value)) => {
                let place = text.fault(value.span(), "");
                match value.get_ref() {
                    // A built-in document may say what it is, to be an example.
                    DeValue::String(base) if root == Some(&**base) => self.root = root,
                    DeValue::String(base) => {
                        let relative = Path::new(text.file).parent().map(|folder| folder.join(&**base));
                        let near = relative.filter(|p| base.ends_with(".toml") && p.exists());
                        let base = near.map_or_else(|| base.to_string(), |p| p.to_string_lossy().into_owned());
                        self.read_from(&base, Some(place), depth + 1);
                    }
                    other => {
                        let message = format!("`{base_key}` expects a {what}'s name or file; got {}", other.type_str());
                        self.faults.push(Diagnostic { message, ..place });
                    }
                }
            }
            None if root.is_some() => self.root = root,
            None if self.form.base_required => {
                let names: Vec<&str> = self.form.builtin.iter().map(|(name, _)| *name).collect();
                let message = format!("a {what} file says what it starts from: {base_key} = \"NAME\"");
                let help = format!("names are {}", names.join(", "));
                self.faults.push(Diagnostic::nowhere(text.file, message).with_help(help));
            }
            None => {}
        }
        for (key, value) in document {
            let name: &str = key.get_ref();
            match (name, value.get_ref(), self.form.table(name)) {
                (name, ..) if name == base_key => {}
                ("name", DeValue::String(s), _) => self.name = s.to_string(),
                ("description", DeValue::String(s), _) => self.description = s.to_string(),
                ("name" | "description", other, _) => {
                    let message = format!("`{name}` expects a text; got {}", other.type_str());
                    self.faults.push(text.fault(value.span(), message));
                }
                (_, DeValue::Table(entries), Some(table)) => match (table.of, self.root) {
                    (Some(of), Some(root)) if of != root => {
                        let message = format!("`[{name}]` has the parameters of {what} `{of}`; this is `{root}`");
                        self.faults.push(text.fault(key.span(), message));
                    }
                    _ => self.read_table(text, table, entries),
                },
                (_, other, Some(_)) => {
                    let message = format!("`[{name}]` is a table of keys; got {}", other.type_str());
                    self.faults.push(text.fault(value.span(), message));
                }
                (_, _, None) => {
                    let known = self.form.table_names().chain(["name", "description", base_key]);
                    let message = format!("unknown key `{name}` in a {what} file");
                    self.faults.push(text.fault(key.span(), message).with_nearest(name, known));
                }
            }
        }
    }

    fn read_table(&mut self, text: Text<'_>, table: &Table, entries: &DeTable<'_>) {
        for (name, value) in entries {
            let Some(key) = table.keys.iter().find(|k| k.name == name.get_ref()) else {
                let fault = text.fault(name.span(), self.form.unknown_key(table, name.get_ref()));
                self.faults.push(self.form.with_nearest_key(fault, &table.name, name.get_ref()));
                continue;
            };
            let (scalar, span, source) = match value.get_ref() {
                DeValue::Table(parts) => match self.read_sourced(text, value, parts) {
                    Some(sourced) => sourced,
                    None => continue,
                },
                plain => (scalar_of(plain), value.span(), self.unnamed()),
            };
            let place = text.fault(span, "");
            match check(key, &scalar) {
                Ok(value) => {
                    let origin = Origin { file: place.file, span: place.span, source_line: place.source_line };
                    self.keep(table, key, Entry { value, source, origin });
                }
                Err(fault) => self.faults.push(Diagnostic { message: fault.message, help: fault.help, ..place }),
            }
        }
    }

    fn unnamed(&self) -> String {
        format!("{}{UNNAMED}", self.form.what)
    }

    fn keep(&mut self, table: &Table, key: &Key, entry: Entry) {
        self.entries.insert((table.name.clone(), key.name.to_owned()), entry);
    }

    /// `{ value = ..., source = "..." }`.
    fn read_sourced(
        &mut self,
        text: Text<'_>,
        whole: &Spanned<DeValue<'_>>,
        parts: &DeTable<'_>,
    ) -> Option<(Scalar, Range<usize>, String)> {
        let (mut scalar, mut source) = (None, self.unnamed());
        for (name, part) in parts {
            match (&**name.get_ref(), part.get_ref()) {
                ("value", value) => scalar = Some((scalar_of(value), part.span())),
                ("source", DeValue::String(s)) if !s.trim().is_empty() => source = s.to_string(),
                ("source", DeValue::String(_)) => {
                    self.faults.push(text.fault(part.span(), "`source` is empty: leave it out or say it"));
                }
                ("source", other) => {
                    let message = format!("`source` expects a text; got {}", other.type_str());
                    self.faults.push(text.fault(part.span(), message));
                }
                (other, _) => {
                    let message = format!("unexpected `{other}`: a value is `{{ value = ..., source = \"...\" }}`");
                    self.faults.push(text.fault(name.span(), message).with_nearest(other, ["value", "source"]));
                }
            }
        }
        if scalar.is_none() {
            let message = "expected `{ value = ..., source = \"...\" }`; there is no `value`";
            self.faults.push(text.fault(whole.span(), message));
        }
        scalar.map(|(scalar, span)| (scalar, span, source))
    }

    /// Changes a value, or notes why not.
    pub(in crate::config) fn apply(&mut self, over: &Override) {
        let written = over.written();
        let complain = |message: String| Diagnostic::nowhere(&written, message);
        let (Some((table, name)), form) = (over.key.split_once('.'), self.form) else {
            self.faults.push(self.form.unknown_table(over));
            return;
        };
        let Some(table) = form.table(table) else {
            self.faults.push(form.unknown_table(over));
            return;
        };
        let Some(key) = table.keys.iter().find(|k| k.name == name) else {
            let fault = complain(form.unknown_key(table, name));
            self.faults.push(form.with_nearest_key(fault, &table.name, name));
            return;
        };
        let text = over.value.trim_matches('"');
        let scalar = match (text.parse::<i64>(), text.parse::<f64>(), text) {
            (Ok(n), ..) => Scalar::Whole(n),
            (_, Ok(x), _) => Scalar::Decimal(x),
            (.., "true") => Scalar::Flag(true),
            (.., "false") => Scalar::Flag(false),
            _ => Scalar::Text(text.to_owned()),
        };
        match check(key, &scalar) {
            Ok(value) => {
                let origin = Origin { file: written, span: Span::default(), source_line: String::new() };
                self.keep(table, key, Entry { value, source: USER.to_owned(), origin });
            }
            Err(fault) => self.faults.push(Diagnostic { help: fault.help, ..complain(fault.message) }),
        }
    }

    /// A draft of nothing, to try changes on.
    pub(in crate::config) fn empty(form: &'a Form) -> Self {
        let (asked, name, description) = (String::new(), String::new(), String::new());
        Draft { form, asked, root: None, name, description, entries: BTreeMap::new(), faults: Diagnostics::default() }
    }

    /// The value of `table.key`, if nothing is wrong.
    pub(in crate::config) fn value(mut self, over: &Override) -> Result<Value, Diagnostics> {
        let (table, name) = over.key.split_once('.').unwrap_or((&over.key, ""));
        let entry = self.entries.remove(&(table.to_owned(), name.to_owned()));
        self.faults.into_result(entry.map_or(Value::Null, |entry| entry.value))
    }

    /// The document, if nothing is wrong and nothing is missing.
    pub(in crate::config) fn finish(mut self) -> Result<Document, Diagnostics> {
        let mut tables = Map::new();
        let mut sources = BTreeMap::new();
        let sound = self.faults.0.is_empty();
        let root = self.root;
        for table in self.form.tables.iter().filter(|table| table.of.is_none() || table.of == root) {
            let mut values = Map::new();
            let mut missing = Vec::new();
            for key in table.keys {
                match self.entries.get(&(table.name.clone(), key.name.to_owned())) {
                    Some(entry) => {
                        values.insert(key.name.to_owned(), entry.value.clone());
                        sources.insert(format!("{}.{}", table.name, key.name), entry.source.clone());
                    }
                    None => missing.push(key.name),
                }
            }
            if !missing.is_empty() && sound {
                let message = format!("`[{}]` lacks {}", table.name, missing.join(", "));
                self.faults.push(Diagnostic::nowhere(&self.asked, message).with_help(self.form.missing.clone()));
            }
            tables.insert(table.name.clone(), Value::Object(values));
        }
        let Draft { asked, name, description, entries, faults, .. } = self;
        let name = if name.is_empty() { asked.clone() } else { name };
        faults.into_result(Document { name, description, tables, sources, asked, entries })
    }
}
