//! A persistency scheme from a name or a file, with overrides: its parameters composed, checked, and told
//! with the source of every value; the scheme built of them.
//!
//! ```toml
//! scheme = "NAME"   # a scheme, or another scheme file to start from
//! name = "mine"     # optional: what results call it
//! [NAME]            # `_` for what a key cannot have: nt_store
//! key = 1
//! ```
//! What schemes there are, with which parameters, is the [`catalogue`]. Invariant: an override is of exactly
//! one scheme, and of one that is run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::document::{Draft, Form, Override, ParameterDocument, ParameterTable, assumptions, written};
use durawarp_base::spec::Key;
use durawarp_machine::MachineSpec;
use durawarp_machine::cpu::CpuSpec;
use durawarp_persist::Scheme;
use durawarp_schemes::catalogue::{self, Entry, Parameters};

use super::compute::Compute;

/// A scheme, resolved.
#[derive(Debug, Clone)]
pub struct SchemeConfig {
    /// What it is called: the name of its file, else of the scheme.
    pub name: String,
    /// One line about it.
    pub description: String,
    /// The scheme, built of these parameters.
    pub built: Arc<dyn Scheme>,
    /// Every parameter, by `table.key`.
    pub values: BTreeMap<String, Value>,
    /// Where each comes from, by `table.key`.
    pub sources: BTreeMap<String, String>,
    table: String,
    keys: &'static [Key],
}

impl From<Arc<dyn Scheme>> for SchemeConfig {
    /// A scheme that was built elsewhere: its parameters, if it has any, are not known.
    fn from(built: Arc<dyn Scheme>) -> Self {
        SchemeConfig {
            name: built.name().to_owned(),
            description: built.description().to_owned(),
            built,
            values: BTreeMap::new(),
            sources: BTreeMap::new(),
            table: String::new(),
            keys: &[],
        }
    }
}

impl SchemeConfig {
    /// The scheme called `name_or_path` (a name, or a `.toml` file), with overrides applied.
    ///
    /// # Errors
    /// All faults of the file and of the overrides, each with its place. An override of another scheme is
    /// one.
    pub fn load(name_or_path: &str, overrides: &[Override]) -> Result<Self, Diagnostics> {
        Self::load_on(Compute::Gpu, name_or_path, overrides)
    }

    /// The same with the defaults of machines that compute so.
    ///
    /// # Errors
    /// As [`SchemeConfig::load`].
    pub fn load_on(compute: Compute, name_or_path: &str, overrides: &[Override]) -> Result<Self, Diagnostics> {
        load_of(catalogue::entries(), compute, &[name_or_path], overrides).map(|mut all| all.swap_remove(0))
    }

    /// Several schemes; an override is applied to all that it names, and names at least one.
    ///
    /// # Errors
    /// All faults of the files and of the overrides, each with its place.
    pub fn load_each(names_or_paths: &[&str], overrides: &[Override]) -> Result<Vec<Self>, Diagnostics> {
        load_of(catalogue::entries(), Compute::Gpu, names_or_paths, overrides)
    }

    /// The value in the key's unit, if there is such a key and it takes the value.
    pub(super) fn check(over: &Override) -> Result<Value, Diagnostics> {
        let form = form(catalogue::entries(), Compute::Gpu);
        let mut draft = Draft::empty(&form);
        draft.apply(over);
        draft.value(over)
    }

    /// What its table is called in files and overrides.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// Parameters without a source of their own: chosen, set by the user, or from a file that names none.
    pub fn assumptions(&self) -> Vec<(&str, &str)> {
        assumptions(&self.sources)
    }

    /// The value of `table.key` as text, for tables.
    pub fn value_of(&self, key: &str) -> String {
        match self.values.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        }
    }

    /// The resolved scheme as a scheme file, every value with its source.
    pub fn to_toml(&self) -> String {
        let (scheme, name, description) = (self.built.name(), &self.name, &self.description);
        let mut out = format!("scheme = {scheme:?}\nname = {name:?}\ndescription = {description:?}\n");
        if !self.keys.is_empty() {
            let value = |key: &Key| self.values.get(&format!("{}.{}", self.table, key.name)).cloned();
            let values = self.keys.iter().filter_map(|key| Some((key.name.to_owned(), value(key)?)));
            out += &written(&self.table, self.keys, &Value::Object(values.collect()), &self.sources);
        }
        out
    }
}

/// What scheme files are like.
fn form(entries: &[Entry], compute: Compute) -> Form {
    let table = |entry: &Entry| ParameterTable {
        name: entry.table(),
        keys: entry.parameters.as_ref().map_or(&[][..], |parameters| parameters.keys),
        of: Some(entry.name()),
    };
    let defaults = |of: &Parameters| of.on_cores.filter(|_| compute == Compute::Cpu).unwrap_or(of.defaults);
    let builtin = |entry: &Entry| (entry.name(), entry.parameters.as_ref().map_or("", defaults));
    let machines = MachineSpec::TABLES.iter().chain(CpuSpec::TABLES).map(|(table, _)| (*table).to_owned()).collect();
    Form {
        what: "scheme",
        kind: None,
        option: "--scheme",
        base_key: "scheme",
        base_required: true,
        builtin: entries.iter().map(builtin).collect(),
        tables: entries.iter().map(table).collect(),
        other: ("machine", machines),
        missing: "the scheme's own file must have them".to_owned(),
    }
}

/// Loads schemes of a catalogue.
fn load_of(
    entries: &[Entry],
    compute: Compute,
    names: &[&str],
    overrides: &[Override],
) -> Result<Vec<SchemeConfig>, Diagnostics> {
    let form = form(entries, compute);
    let (mut schemes, mut faults) = (Vec::new(), Diagnostics::default());
    let mut roots = BTreeSet::new();
    for name in names {
        let mut draft = Draft::read(&form, name);
        let root = entries.iter().find(|entry| Some(entry.name()) == draft.root());
        if let Some(entry) = root {
            for over in overrides.iter().filter(|over| over.table() == entry.table()) {
                draft.apply(over);
            }
        }
        roots.insert(draft.root());
        match draft.finish().and_then(|document| built(root, document)) {
            Ok(scheme) => schemes.push(scheme),
            // Two files of a scheme have the same overrides, hence the same faults.
            Err(found) => found.0.into_iter().for_each(|fault| {
                if !faults.0.contains(&fault) {
                    faults.push(fault);
                }
            }),
        }
    }
    // Whose overrides are out of place is known when every scheme is.
    let known: Option<Vec<&str>> = roots.into_iter().collect();
    for over in overrides {
        let owner = entries.iter().find(|entry| entry.table() == over.table() && over.key.contains('.'));
        match (owner, &known) {
            (None, _) => faults.push(form.unknown_table(over)),
            (Some(owner), Some(run)) if !run.contains(&owner.name()) => {
                let whose = format!("`{}` is of scheme `{}`", over.key, owner.name());
                let message = match run.as_slice() {
                    [only] => format!("{whose}, but the scheme is `{only}`"),
                    several => format!("{whose}, which is none of the schemes {}", several.join(", ")),
                };
                faults.push(Diagnostic::nowhere(&over.written(), message));
            }
            _ => {}
        }
    }
    faults.into_result(schemes)
}

fn built(root: Option<&Entry>, document: ParameterDocument) -> Result<SchemeConfig, Diagnostics> {
    let Some(entry) = root else { unreachable!("a scheme file without faults names its scheme") };
    let table = entry.table();
    let none = Map::new();
    let of_table = document.tables.get(&table).and_then(Value::as_object).unwrap_or(&none);
    let (built, keys) = match &entry.parameters {
        None => (entry.scheme.clone(), &[][..]),
        Some(parameters) => match parameters.build(of_table) {
            Ok(built) => (built, parameters.keys),
            Err(why) => {
                return Err(Diagnostics(why.iter().map(|(key, why)| document.blame(&table, key, why)).collect()));
            }
        },
    };
    let values = of_table.iter().map(|(key, value)| (format!("{table}.{key}"), value.clone())).collect();
    let description = match document.description {
        none if none.is_empty() => built.description().to_owned(),
        own => own,
    };
    Ok(SchemeConfig { name: document.name, description, built, values, sources: document.sources, table, keys })
}

#[cfg(test)]
mod tests;
