//! Reading a document of parameters: texts and overrides into values with their sources and places.
//!
//! Invariants: all faults are found before any is reported; of two values of a key the one nearer to the user
//! counts: an override, then the file, then what the file starts from.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

use super::form::{Form, ParameterTable, UNNAMED, USER_SOURCE, is_path};
use super::overrides::{Override, Setting};
use super::place::{Place, SourceText};
use super::scalar::{Scalar, check};
use super::toml::{Item, TomlTable, parse};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::spec::Key;

/// Values collected so far, by table and key.
#[derive(Debug)]
pub struct Draft<'a> {
    form: &'a Form,
    asked: String,
    root: Option<&'static str>,
    name: String,
    description: String,
    values: SourcedValues,
    faults: Diagnostics,
}

/// By table and key.
type ByKey = BTreeMap<(String, String), SourcedValue>;

/// Values by table and key: those of a built-in document, which all drafts share that start from it, and
/// those that count more.
#[derive(Debug, Clone, Default)]
struct SourcedValues {
    shared: Arc<ByKey>,
    own: ByKey,
}

impl SourcedValues {
    fn get(&self, table: &str, key: &str) -> Option<&SourcedValue> {
        let at = (table.to_owned(), key.to_owned());
        self.own.get(&at).or_else(|| self.shared.get(&at))
    }
}

/// A built-in document as it was read. A sweep starts from one for each of its points.
#[derive(Debug, Clone)]
struct BuiltinRead {
    root: Option<&'static str>,
    name: String,
    description: String,
    values: Arc<ByKey>,
}

/// By its name, its text (schemes have one for each kind of machine), and what it describes.
static BUILTIN_READ: Mutex<BTreeMap<[&'static str; 3], BuiltinRead>> = Mutex::new(BTreeMap::new());

/// A value, where it comes from, and a fault without a message at the place where it was written.
#[derive(Debug, Clone)]
struct SourcedValue {
    value: Value,
    source: String,
    written: Diagnostic,
}

/// A document, read and complete.
#[derive(Debug)]
pub struct ParameterDocument {
    /// Its own name, else what was asked for.
    pub name: String,
    pub description: String,
    /// Every table with every key.
    pub tables: Map<String, Value>,
    /// Where each value comes from, by `table.key`.
    pub sources: BTreeMap<String, String>,
    asked: String,
    values: SourcedValues,
}

/// How deep documents may start from documents that start from others; a deeper chain is taken for a circle.
const MAX_INHERITANCE: u32 = 8;

/// Keys at the top of a TOML text; none of one that cannot be parsed.
pub fn top_keys(file: &str, text: String) -> Vec<String> {
    let source = Arc::new(SourceText::new(file, text));
    let mut faults = Diagnostics::default();
    let document = parse(&source, &mut faults);
    match faults.0.is_empty() {
        true => TomlTable::root(&source, &document).entries().map(|(key, ..)| key.to_owned()).collect(),
        false => Vec::new(),
    }
}

/// The texts of some keys at the top of a TOML text; none of one that cannot be parsed.
pub fn top_texts<const N: usize>(file: &str, text: String, keys: [&str; N]) -> [Option<String>; N] {
    let source = Arc::new(SourceText::new(file, text));
    let mut faults = Diagnostics::default();
    let document = parse(&source, &mut faults);
    let root = TomlTable::root(&source, &document);
    keys.map(|key| root.text(key).filter(|_| faults.0.is_empty()).map(|(text, _)| text.to_owned()))
}

/// The values of a built-in document's tables, in the units of `keys`; which are missing is not looked at.
///
/// # Errors
/// Everything that is wrong with the text, as a fault of `keys` or of TOML.
pub fn parameters_of(text: &str, keys: &'static [Key]) -> Result<Map<String, Value>, Diagnostics> {
    let source = Arc::new(SourceText::new("built in", text.to_owned()));
    let mut faults = Diagnostics::default();
    let document = parse(&source, &mut faults);
    let mut values = Map::new();
    let tables = TomlTable::root(&source, &document).entries().filter_map(|(.., item)| item.table());
    for (name, place, item) in tables.flat_map(TomlTable::entries) {
        let Some(key) = keys.iter().find(|key| key.name == name) else {
            faults.push(place.fault(format!("unknown key `{name}`")));
            continue;
        };
        let item = item.table().and_then(|parts| parts.get("value")).unwrap_or(item);
        match check(key, &Scalar::from_item(item)) {
            Ok(value) => _ = values.insert(name.to_owned(), value),
            Err(fault) => faults.push(item.place().fault(fault.message)),
        }
    }
    faults.into_result(values)
}

impl<'a> Draft<'a> {
    /// A draft of nothing, to try changes on.
    pub fn empty(form: &'a Form) -> Self {
        Draft {
            form,
            asked: String::new(),
            root: None,
            name: String::new(),
            description: String::new(),
            values: SourcedValues::default(),
            faults: Diagnostics::default(),
        }
    }

    /// What a built-in name or a file says, with all that it starts from.
    pub fn read(form: &'a Form, name_or_path: &str) -> Self {
        let mut draft = Draft { asked: name_or_path.to_owned(), ..Self::empty(form) };
        draft.read_from(name_or_path, None, 0);
        draft
    }

    /// The built-in document at the end of the chain that it starts from.
    pub fn root(&self) -> Option<&'static str> {
        self.root
    }

    /// Reads a name or a file into the draft, what it starts from first. `asked` is where it was asked for.
    fn read_from(&mut self, name_or_path: &str, asked: Option<Place>, depth: u32) {
        let what = self.form.what;
        let fault = |message: String| match &asked {
            Some(place) => place.fault(message),
            None => Diagnostic::nowhere(self.form.option, message),
        };
        if depth > MAX_INHERITANCE {
            self.faults.push(fault(format!("{what} `{name_or_path}` inherits in a circle")));
            return;
        }
        let builtin = self.form.builtin.iter().find(|(name, _)| *name == name_or_path);
        let known = builtin.filter(|_| !is_path(name_or_path)).map(|&(name, text)| [name, text, what]);
        if let Some(at) = known
            && let Some(read) = BUILTIN_READ.lock().unwrap_or_else(PoisonError::into_inner).get(&at).cloned()
        {
            (self.root, self.name, self.description) = (read.root, read.name, read.description);
            self.values = SourcedValues { shared: read.values, own: BTreeMap::new() };
            return;
        }
        let (text, root) = match (builtin, is_path(name_or_path)) {
            (Some((name, text)), false) => ((*text).to_owned(), Some(*name)),
            // A name of the other kind is not unknown, and one like it would not help.
            (None, false) if self.is_elsewhere(name_or_path) => {
                let message = format!("{what} `{name_or_path}` {}", self.of_another_kind());
                let known = self.form.builtin.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
                self.faults.push(fault(message).with_help(format!("of this kind are {known}")));
                return;
            }
            (None, false) => {
                let known: Vec<&str> = self.form.builtin.iter().map(|(name, _)| *name).collect();
                let message = format!(
                    "there is no {what} `{name_or_path}`; built in are {}, and a path to a .toml file works too",
                    known.join(", ")
                );
                self.faults.push(fault(message).with_nearest(name_or_path, known));
                return;
            }
            (_, true) => match crate::input::text(Path::new(name_or_path)) {
                Ok(text) => (text, None),
                Err(error) => {
                    self.faults.push(fault(format!("cannot read {what} file `{name_or_path}`: {error}")));
                    return;
                }
            },
        };
        let source = Arc::new(SourceText::new(name_or_path, text));
        let mut syntax = Diagnostics::default();
        let document = parse(&source, &mut syntax);
        // What follows a broken line can mean anything: the faults of the syntax come alone.
        match syntax.0.is_empty() {
            true => self.read_document(TomlTable::root(&source, &document), root, depth),
            false => self.faults.0.extend(syntax.0),
        }
        // Nothing was read before it: a document names what it starts from, which is read first.
        if let Some(at) = known
            && self.faults.0.is_empty()
        {
            let mut all = std::mem::take(&mut self.values);
            let values = if all.shared.is_empty() {
                Arc::new(all.own)
            } else {
                let mut whole = (*all.shared).clone();
                whole.append(&mut all.own);
                Arc::new(whole)
            };
            self.values.shared = values.clone();
            let read =
                BuiltinRead { root: self.root, name: self.name.clone(), description: self.description.clone(), values };
            BUILTIN_READ.lock().unwrap_or_else(PoisonError::into_inner).insert(at, read);
        }
    }

    /// It is the name of a built-in document of another kind.
    fn is_elsewhere(&self, name: &str) -> bool {
        self.form.kind.as_ref().is_some_and(|kind| kind.elsewhere.contains(&name))
    }

    /// "is of kind `cpu`, and ..."
    fn of_another_kind(&self) -> String {
        let Some(kind) = &self.form.kind else { return String::new() };
        format!("is of kind `{}`, and one of kind `{}` is wanted here", kind.other, kind.word)
    }

    /// Whether a document is of the kind that is read. Another one is a fault: nothing else of it is read.
    fn is_of_kind(&mut self, document: TomlTable<'_>, builtin: bool) -> bool {
        let Some(kind) = &self.form.kind else { return true };
        let what = self.form.what;
        let fault = match document.get("kind") {
            Some(item) => match item.text() {
                Some(word) if word == kind.word => return true,
                Some(word) if word == kind.other => {
                    item.place().fault(format!("this {what} {}", self.of_another_kind()))
                }
                Some(word) => {
                    let all = kind.words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ");
                    let fault = item.place().fault(format!("`kind` of a {what} is {all}, found `{word}`"));
                    fault.with_nearest(word, kind.words.iter().copied())
                }
                None => item.place().fault(format!("`kind` expects a word; got {}", item.described())),
            },
            None if builtin || kind.word == kind.words[0] || document.get(self.form.base_key).is_some() => return true,
            None => {
                let message = format!("a {what} that does not say its `kind` is of kind `{}`", kind.words[0]);
                let help = format!("one of kind `{}` is wanted here: kind = \"{}\"", kind.word, kind.word);
                Diagnostic::nowhere(&document.source.file, message).with_help(help)
            }
        };
        self.faults.push(fault);
        false
    }

    fn read_document(&mut self, document: TomlTable<'_>, root: Option<&'static str>, depth: u32) {
        let (what, base_key) = (self.form.what, self.form.base_key);
        if !self.is_of_kind(document, root.is_some()) {
            return;
        }
        // The base comes first, wherever the document names it: what follows overrides its values, and the
        // tables below are checked against the root that it leads to.
        match document.get(base_key) {
            Some(item) => match item.text() {
                // A built-in document may say what it is, to be an example.
                Some(base) if root == Some(base) => self.root = root,
                Some(base) => {
                    let relative = Path::new(&document.source.file).parent().map(|folder| folder.join(base));
                    let near = relative.filter(|p| base.ends_with(".toml") && p.exists());
                    let base = near.map_or_else(|| base.to_owned(), |p| p.to_string_lossy().into_owned());
                    self.read_from(&base, Some(item.place()), depth + 1);
                    // Which kind this one is meant to be is not known: its tables are not looked at.
                    if self.is_elsewhere(&base) {
                        return;
                    }
                }
                None => {
                    let got = item.described();
                    let message = format!("`{base_key}` expects a {what}'s name or file; got {got}");
                    self.faults.push(item.place().fault(message));
                }
            },
            None if root.is_some() => self.root = root,
            None if self.form.base_required => {
                let names: Vec<&str> = self.form.builtin.iter().map(|(name, _)| *name).collect();
                let message = format!("a {what} file says what it starts from: {base_key} = \"NAME\"");
                let help = format!("names are {}", names.join(", "));
                self.faults.push(Diagnostic::nowhere(&document.source.file, message).with_help(help));
            }
            None => {}
        }
        for (name, place, item) in document.entries() {
            match (name, item.text(), self.form.table(name)) {
                (name, ..) if name == base_key || name == "kind" && self.form.kind.is_some() => {}
                ("name", Some(text), _) => self.name = text.to_owned(),
                ("description", Some(text), _) => self.description = text.to_owned(),
                ("name" | "description", None, _) => {
                    let message = format!("`{name}` expects a text; got {}", item.described());
                    self.faults.push(item.place().fault(message));
                }
                (.., Some(table)) => match (item.table(), table.of, self.root) {
                    (None, ..) => {
                        let message = format!("`[{name}]` is a table of keys; got {}", item.described());
                        self.faults.push(item.place().fault(message));
                    }
                    (_, Some(of), Some(root)) if of != root => {
                        let message = format!("`[{name}]` has the parameters of {what} `{of}`; this is `{root}`");
                        self.faults.push(place.fault(message));
                    }
                    (Some(entries), ..) => self.read_table(table, entries),
                },
                (.., None) => {
                    let known = self.form.table_names().chain(["name", "description", base_key]);
                    let message = format!("unknown key `{name}` in a {what} file");
                    self.faults.push(place.fault(message).with_nearest(name, known));
                }
            }
        }
    }

    fn read_table(&mut self, table: &ParameterTable, entries: TomlTable<'_>) {
        for (name, place, item) in entries.entries() {
            let Some(key) = table.keys.iter().find(|k| k.name == name) else {
                let fault = place.fault(self.form.unknown_key(table, name));
                self.faults.push(self.form.with_nearest_key(fault, &table.name, name));
                continue;
            };
            let (item, source) = match item.table() {
                Some(parts) => match self.read_sourced(parts) {
                    Some(sourced) => sourced,
                    None => continue,
                },
                None => (item, self.unnamed()),
            };
            self.take(table, key, &Scalar::from_item(item), source, item.place().fault(""));
        }
    }

    /// Keeps a value, or the fault of it at the place where it was written.
    fn take(&mut self, table: &ParameterTable, key: &Key, scalar: &Scalar, source: String, written: Diagnostic) {
        match check(key, scalar) {
            Ok(value) => {
                let value = SourcedValue { value, source, written };
                self.values.own.insert((table.name.clone(), key.name.to_owned()), value);
            }
            Err(fault) => self.faults.push(Diagnostic { message: fault.message, help: fault.help, ..written }),
        }
    }

    fn unnamed(&self) -> String {
        format!("{}{UNNAMED}", self.form.what)
    }

    /// `{ value = ..., source = "..." }`.
    fn read_sourced<'t>(&mut self, parts: TomlTable<'t>) -> Option<(Item<'t>, String)> {
        let (mut value, mut source) = (None, self.unnamed());
        for (name, place, part) in parts.entries() {
            match (name, part.text()) {
                ("value", _) => value = Some(part),
                ("source", Some(text)) if !text.trim().is_empty() => source = text.to_owned(),
                ("source", Some(_)) => {
                    self.faults.push(part.place().fault("`source` is empty: leave it out or say it"));
                }
                ("source", None) => {
                    self.faults.push(part.place().fault(format!("`source` expects a text; got {}", part.described())));
                }
                (other, _) => {
                    let message = format!("unexpected `{other}`: a value is `{{ value = ..., source = \"...\" }}`");
                    self.faults.push(place.fault(message).with_nearest(other, ["value", "source"]));
                }
            }
        }
        if value.is_none() {
            let message = "expected `{ value = ..., source = \"...\" }`; there is no `value`";
            self.faults.push(parts.place().fault(message));
        }
        Some((value?, source))
    }

    /// Changes a value, or notes why not.
    pub fn apply(&mut self, over: &Override) {
        self.change(over, USER_SOURCE.to_owned(), Diagnostic::nowhere(&over.written(), ""));
    }

    /// As [`Draft::apply`], for what another document sets.
    pub fn set(&mut self, setting: &Setting) {
        self.change(&setting.over, setting.source.clone(), setting.written.clone());
    }

    fn change(&mut self, over: &Override, source: String, written: Diagnostic) {
        let form = self.form;
        let Some((table, name)) = over.key.split_once('.').and_then(|(t, name)| Some((form.table(t)?, name))) else {
            self.faults.push(form.unknown_table(over));
            return;
        };
        let Some(key) = table.keys.iter().find(|k| k.name == name) else {
            let fault = Diagnostic { message: form.unknown_key(table, name), ..written };
            self.faults.push(form.with_nearest_key(fault, &table.name, name));
            return;
        };
        self.take(table, key, &Scalar::typed(key, &over.value), source, written);
    }

    /// What `table.key` says so far.
    pub fn given(&self, table: &str, key: &str) -> Option<&Value> {
        self.values.get(table, key).map(|found| &found.value)
    }

    /// The value of `table.key`, if nothing is wrong.
    pub fn value(mut self, over: &Override) -> Result<Value, Diagnostics> {
        let (table, name) = over.key.split_once('.').unwrap_or((&over.key, ""));
        let found = self.values.own.remove(&(table.to_owned(), name.to_owned()));
        self.faults.into_result(found.map_or(Value::Null, |found| found.value))
    }

    /// The document, if nothing is wrong and nothing is missing.
    pub fn finish(mut self) -> Result<ParameterDocument, Diagnostics> {
        let mut tables = Map::new();
        let mut sources = BTreeMap::new();
        let sound = self.faults.0.is_empty();
        let root = self.root;
        for table in self.form.tables.iter().filter(|table| table.of.is_none() || table.of == root) {
            let mut values = Map::new();
            let mut missing = Vec::new();
            for key in table.keys {
                match self.values.get(&table.name, key.name) {
                    Some(found) => {
                        values.insert(key.name.to_owned(), found.value.clone());
                        sources.insert(format!("{}.{}", table.name, key.name), found.source.clone());
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
        let Draft { asked, name, description, values, faults, .. } = self;
        let name = if name.is_empty() { asked.clone() } else { name };
        faults.into_result(ParameterDocument { name, description, tables, sources, asked, values })
    }
}

impl ParameterDocument {
    /// A fault of values that do not go together, at the place where the value of `table.key` was written.
    pub fn blame(&self, table: &str, key: &str, why: &str) -> Diagnostic {
        let message = format!("`{table}.{key}`: {why}");
        match self.values.get(table, key) {
            Some(found) => Diagnostic { message, ..found.written.clone() },
            None => Diagnostic::nowhere(&self.asked, message),
        }
    }
}
