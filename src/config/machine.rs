//! A machine from a name or a file, with overrides: composed, checked, and told with the source of every number.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Diagnostics, Span};
use crate::machine::MachineSpec;
use crate::spec::Key;

use super::presets;
use super::value::{Scalar, check};

/// One `--set TABLE.KEY=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// `TABLE.KEY`.
    pub key: String,
    /// The value as typed.
    pub value: String,
}

impl Override {
    /// Splits `KEY=VALUE`.
    ///
    /// # Errors
    /// When there is no `=`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((key, value)) => Ok(Override { key: key.trim().to_owned(), value: value.trim().to_owned() }),
            None => Err(format!("expected KEY=VALUE, for example l2.slice_kb=256; got `{text}`")),
        }
    }
}

/// A machine, resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineConfig {
    /// Its name.
    pub name: String,
    /// One line about it.
    pub description: String,
    /// Every parameter.
    pub spec: MachineSpec,
    /// Where each number comes from, by `table.key`.
    pub sources: BTreeMap<String, String>,
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

/// Values collected so far, by table and key.
#[derive(Debug, Default)]
struct Draft {
    name: String,
    description: String,
    entries: BTreeMap<(String, String), Entry>,
    faults: Diagnostics,
}

/// Machine files may inherit from files that inherit: so deep, then it is taken for a circle.
const MAX_INHERITANCE: u32 = 8;

impl MachineConfig {
    /// The machine called `name_or_path` (a built-in name, or a `.toml` file), with overrides applied.
    ///
    /// # Errors
    /// All faults of the file and of the overrides, each with its place.
    pub fn load(name_or_path: &str, overrides: &[Override]) -> Result<Self, Diagnostics> {
        let mut draft = Draft::default();
        draft.read(name_or_path, None, 0);
        for over in overrides {
            draft.apply(over);
        }
        draft.finish(name_or_path)
    }

    /// Numbers without a source of their own: chosen, set by the user, or from a file that names none.
    pub fn assumptions(&self) -> Vec<(&str, &str)> {
        let owned = |source: &str| !(source.starts_with("chosen") || source == USER || source == UNNAMED);
        self.sources.iter().filter(|(_, s)| !owned(s)).map(|(k, s)| (k.as_str(), s.as_str())).collect()
    }

    /// The resolved machine as a machine file, every value with its source.
    pub fn to_toml(&self) -> String {
        let mut out = format!("name = {:?}\ndescription = {:?}\n", self.name, self.description);
        let values = serde_json::to_value(&self.spec).unwrap_or_default();
        for (table, keys) in MachineSpec::TABLES {
            out.push_str(&format!("\n[{table}]\n"));
            for key in *keys {
                let value = &values[*table][key.name];
                let source = self.sources.get(&format!("{table}.{}", key.name)).map_or("", String::as_str);
                out.push_str(&format!("{} = {{ value = {value}, source = {source:?} }}\n", key.name));
            }
        }
        out
    }

    /// The value of `table.key` as text, for tables.
    pub fn value_of(&self, table: &str, key: &str) -> String {
        match &serde_json::to_value(&self.spec).unwrap_or_default()[table][key] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

/// Source of a value given on the command line.
const USER: &str = "user: --set";
/// Source of a value in a file that names none.
const UNNAMED: &str = "machine file without a source";

fn table_of(name: &str) -> Option<&'static [Key]> {
    MachineSpec::TABLES.iter().find(|(table, _)| *table == name).map(|(_, keys)| *keys)
}

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

impl Draft {
    /// Reads a named machine or a file into the draft, its ancestors first. `asked` is where it was asked for.
    fn read(&mut self, name_or_path: &str, asked: Option<Diagnostic>, depth: u32) {
        let complain = |message: String| match &asked {
            Some(place) => Diagnostic { message, ..place.clone() },
            None => Diagnostic::nowhere("--machine", message),
        };
        if depth > MAX_INHERITANCE {
            self.faults.push(complain(format!("machine `{name_or_path}` inherits in a circle")));
            return;
        }
        let is_path = name_or_path.ends_with(".toml") || name_or_path.contains(['/', '\\']);
        let text = match (presets::find(name_or_path), is_path) {
            (Some(text), false) => text.to_owned(),
            (None, false) => {
                let known = presets::MACHINES.map(|(name, _)| name);
                let fault = complain(format!(
                    "there is no machine `{name_or_path}`; built in are {}, and a path to a .toml file works too",
                    known.join(", ")
                ));
                self.faults.push(fault.with_nearest(name_or_path, known));
                return;
            }
            (_, true) => match std::fs::read_to_string(name_or_path) {
                Ok(text) => text,
                Err(error) => {
                    self.faults.push(complain(format!("cannot read machine file `{name_or_path}`: {error}")));
                    return;
                }
            },
        };
        match DeTable::parse(&text) {
            Ok(document) => self.read_document(name_or_path, &text, document.get_ref(), depth),
            Err(error) => {
                let at = error.span().unwrap_or(0..0);
                self.faults.push(Diagnostic::at(name_or_path, &text, at, error.message().to_owned()));
            }
        }
    }

    fn read_document(&mut self, file: &str, text: &str, document: &DeTable<'_>, depth: u32) {
        if let Some((_, value)) = document.iter().find(|(key, _)| key.get_ref() == "inherits") {
            let place = Diagnostic::at(file, text, value.span(), "");
            match value.get_ref() {
                DeValue::String(base) => {
                    let relative = Path::new(file).parent().map(|folder| folder.join(&**base));
                    let near = relative.filter(|p| base.ends_with(".toml") && p.exists());
                    let base = near.map_or_else(|| base.to_string(), |p| p.to_string_lossy().into_owned());
                    self.read(&base, Some(place), depth + 1);
                }
                other => {
                    let message = format!("`inherits` expects a machine's name or file; got {}", other.type_str());
                    self.faults.push(Diagnostic { message, ..place });
                }
            }
        }
        for (key, value) in document {
            let name: &str = key.get_ref();
            match (name, value.get_ref()) {
                ("inherits", _) => {}
                ("name", DeValue::String(s)) => self.name = s.to_string(),
                ("description", DeValue::String(s)) => self.description = s.to_string(),
                ("name" | "description", other) => {
                    let message = format!("`{name}` expects a text; got {}", other.type_str());
                    self.faults.push(Diagnostic::at(file, text, value.span(), message));
                }
                (table, DeValue::Table(entries)) if table_of(table).is_some() => {
                    self.read_table(file, text, table, entries);
                }
                (table, other) if table_of(table).is_some() => {
                    let message = format!("`[{table}]` is a table of keys; got {}", other.type_str());
                    self.faults.push(Diagnostic::at(file, text, value.span(), message));
                }
                _ => {
                    let known = MachineSpec::TABLES.iter().map(|(table, _)| *table);
                    let known = known.chain(["name", "description", "inherits"]);
                    let message = format!("unknown key `{name}` in a machine file");
                    self.faults.push(Diagnostic::at(file, text, key.span(), message).with_nearest(name, known));
                }
            }
        }
    }

    fn read_table(&mut self, file: &str, text: &str, table: &str, entries: &DeTable<'_>) {
        let keys = table_of(table).unwrap_or_default();
        for (name, value) in entries {
            let Some(key) = keys.iter().find(|k| k.name == name.get_ref()) else {
                let fault =
                    Diagnostic::at(file, text, name.span(), format!("unknown key `{table}.{}`", name.get_ref()));
                self.faults.push(with_nearest_key(fault, table, name.get_ref()));
                continue;
            };
            let (scalar, span, source) = match value.get_ref() {
                DeValue::Table(parts) => match self.read_sourced(file, text, value, parts) {
                    Some(sourced) => sourced,
                    None => continue,
                },
                plain => (scalar_of(plain), value.span(), UNNAMED.to_owned()),
            };
            let place = Diagnostic::at(file, text, span, "");
            match check(key, &scalar) {
                Ok(value) => {
                    let origin =
                        Origin { file: file.to_owned(), span: place.span, source_line: place.source_line.clone() };
                    self.entries.insert((table.to_owned(), key.name.to_owned()), Entry { value, source, origin });
                }
                Err(fault) => self.faults.push(Diagnostic { message: fault.message, help: fault.help, ..place }),
            }
        }
    }

    /// `{ value = ..., source = "..." }`.
    fn read_sourced(
        &mut self,
        file: &str,
        text: &str,
        whole: &Spanned<DeValue<'_>>,
        parts: &DeTable<'_>,
    ) -> Option<(Scalar, std::ops::Range<usize>, String)> {
        let (mut scalar, mut source) = (None, UNNAMED.to_owned());
        for (name, part) in parts {
            match (&**name.get_ref(), part.get_ref()) {
                ("value", value) => scalar = Some((scalar_of(value), part.span())),
                ("source", DeValue::String(s)) if !s.trim().is_empty() => source = s.to_string(),
                ("source", DeValue::String(_)) => {
                    self.faults.push(Diagnostic::at(
                        file,
                        text,
                        part.span(),
                        "`source` is empty: leave it out or say it",
                    ));
                }
                ("source", other) => {
                    let message = format!("`source` expects a text; got {}", other.type_str());
                    self.faults.push(Diagnostic::at(file, text, part.span(), message));
                }
                (other, _) => {
                    let message = format!("unexpected `{other}`: a value is `{{ value = ..., source = \"...\" }}`");
                    let fault = Diagnostic::at(file, text, name.span(), message);
                    self.faults.push(fault.with_nearest(other, ["value", "source"]));
                }
            }
        }
        if scalar.is_none() {
            let message = "expected `{ value = ..., source = \"...\" }`; there is no `value`";
            self.faults.push(Diagnostic::at(file, text, whole.span(), message));
        }
        scalar.map(|(scalar, span)| (scalar, span, source))
    }

    fn apply(&mut self, over: &Override) {
        let written = format!("--set {}={}", over.key, over.value);
        let complain = |message: String| Diagnostic::nowhere(&written, message);
        let Some((table, name)) = over.key.split_once('.') else {
            let fault = complain(format!("unknown key `{}`: machine keys are TABLE.KEY", over.key));
            self.faults.push(with_nearest_key(fault, "", &over.key));
            return;
        };
        let Some(keys) = table_of(table) else {
            let known = MachineSpec::TABLES.iter().map(|(table, _)| *table);
            self.faults.push(complain(format!("there is no table `{table}` in a machine")).with_nearest(table, known));
            return;
        };
        let Some(key) = keys.iter().find(|k| k.name == name) else {
            let fault = complain(format!("unknown key `{}`", over.key));
            self.faults.push(with_nearest_key(fault, table, name));
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
                let entry = Entry { value, source: USER.to_owned(), origin };
                self.entries.insert((table.to_owned(), name.to_owned()), entry);
            }
            Err(fault) => self.faults.push(Diagnostic { help: fault.help, ..complain(fault.message) }),
        }
    }

    fn finish(mut self, asked: &str) -> Result<MachineConfig, Diagnostics> {
        let mut tables = Map::new();
        let mut sources = BTreeMap::new();
        let sound = self.faults.0.is_empty();
        for (table, keys) in MachineSpec::TABLES {
            let mut values = Map::new();
            let mut missing = Vec::new();
            for key in *keys {
                match self.entries.get(&((*table).to_owned(), key.name.to_owned())) {
                    Some(entry) => {
                        values.insert(key.name.to_owned(), entry.value.clone());
                        sources.insert(format!("{table}.{}", key.name), entry.source.clone());
                    }
                    None => missing.push(key.name),
                }
            }
            if !missing.is_empty() && sound {
                let message = format!("`[{table}]` lacks {}", missing.join(", "));
                let help = format!("or start from another machine: inherits = \"{}\"", presets::DEFAULT_MACHINE);
                self.faults.push(Diagnostic::nowhere(asked, message).with_help(help));
            }
            tables.insert((*table).to_owned(), Value::Object(values));
        }
        if !self.faults.0.is_empty() {
            return Err(self.faults.into_result(()).unwrap_err());
        }
        let spec: MachineSpec = match serde_json::from_value(Value::Object(tables)) {
            Ok(spec) => spec,
            Err(error) => return Err(Diagnostic::nowhere(asked, format!("inconsistent machine: {error}")).into()),
        };
        for (key, why) in spec.faults() {
            let (table, name) = key.split_once('.').unwrap_or((key, ""));
            let message = format!("`{key}`: {why}");
            self.faults.push(match self.entries.get(&(table.to_owned(), name.to_owned())) {
                Some(Entry { origin, .. }) => Diagnostic {
                    file: origin.file.clone(),
                    span: origin.span,
                    source_line: origin.source_line.clone(),
                    message,
                    help: None,
                },
                None => Diagnostic::nowhere(asked, message),
            });
        }
        let name = if self.name.is_empty() { asked.to_owned() } else { self.name };
        self.faults.into_result(MachineConfig { name, description: self.description, spec, sources })
    }
}

/// "Did you mean", first in the same table, then in all of them.
fn with_nearest_key(fault: Diagnostic, table: &str, name: &str) -> Diagnostic {
    let own = table_of(table).unwrap_or_default();
    if let Some(near) = crate::diagnostic::nearest(name, own.iter().map(|k| k.name)) {
        return fault.with_help(format!("did you mean `{table}.{near}`?"));
    }
    let all = MachineSpec::TABLES.iter().flat_map(|(table, keys)| keys.iter().map(move |key| (*table, key.name)));
    let last = name.rsplit('.').next().unwrap_or(name);
    match all
        .filter(|(_, key)| crate::diagnostic::nearest(last, [*key]).is_some())
        .min_by_key(|(_, key)| strsim::damerau_levenshtein(last, key))
    {
        Some((table, key)) => fault.with_help(format!("did you mean `{table}.{key}`?")),
        None => fault,
    }
}
