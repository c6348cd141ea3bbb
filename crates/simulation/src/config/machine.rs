//! A machine from a name or a file, with overrides: composed, checked, and told with the source of every
//! number.

use std::collections::BTreeMap;

use serde_json::Value;

use super::compute::{Compute, ComputeSpec};
use super::device::{Devices, devices, leave_to_device, tables};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::document::{Draft, Form, FormKind, Override, ParameterTable, Setting, assumptions, written};
use durawarp_base::spec::Key;
use durawarp_machine::MachineSpec;
use durawarp_machine::cpu::CpuSpec;
use durawarp_machine::sm::TensorSpec;
use durawarp_schemes::catalogue;

/// A machine, resolved: one with a GPU, unless `S` says otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineConfig<S = MachineSpec> {
    pub name: String,
    /// One line about it.
    pub description: String,
    /// Every parameter.
    pub spec: S,
    /// Where each number comes from, by `table.key`.
    pub sources: BTreeMap<String, String>,
    /// Its memory devices, resolved: the DRAM's and the NVM's, `None` for plain ones.
    pub devices: Devices,
}

/// A machine of CPU cores, resolved.
pub type CpuMachine = MachineConfig<CpuSpec>;

/// What files of machines of a kind are like.
fn form<S: ComputeSpec>() -> Form {
    let other = match S::COMPUTE {
        Compute::Gpu => Compute::Cpu,
        Compute::Cpu => Compute::Gpu,
    };
    let elsewhere = other.builtin().iter().map(|(name, _)| *name).collect();
    let table = |&(name, keys): &(&str, &'static [Key])| ParameterTable { name: name.to_owned(), keys, of: None };
    Form {
        what: "machine",
        option: "--machine",
        base_key: "inherits",
        base_required: false,
        kind: Some(FormKind { word: S::COMPUTE.word(), words: &Compute::WORDS, elsewhere, other: other.word() }),
        builtin: S::BUILTIN.to_vec(),
        tables: S::TABLES.iter().map(table).collect(),
        other: ("scheme", catalogue::entries().iter().map(catalogue::Entry::table).collect()),
        missing: format!("or start from another machine: inherits = \"{}\"", S::DEFAULT),
    }
}

impl MachineConfig {
    /// The machine with a GPU called `name_or_path` (a built-in name, or a `.toml` file), with overrides
    /// applied.
    ///
    /// # Errors
    /// All faults of the file and of the overrides, each with its place.
    pub fn load(name_or_path: &str, overrides: &[Override]) -> Result<Self, Diagnostics> {
        Self::read(name_or_path, overrides)
    }
}

/// The machine with a GPU of this name or path has something of its tensor cores; one that cannot be read has
/// not.
fn has(name_or_path: &str, what: impl FnOnce(&TensorSpec) -> bool) -> bool {
    MachineConfig::load(name_or_path, &[]).is_ok_and(|machine: MachineConfig| what(&machine.spec.tensor))
}

/// The machine with a GPU of this name or path has tensor cores; one that cannot be read has none.
pub fn has_tensor_cores(name_or_path: &str) -> bool {
    has(name_or_path, TensorSpec::is_present)
}

/// The machine with a GPU of this name or path has products of four warps (`wgmma`); one that cannot be read
/// has none.
pub fn has_warp_groups(name_or_path: &str) -> bool {
    has(name_or_path, TensorSpec::has_groups)
}

/// The machine with a GPU of this name or path has tensor memory (`tcgen05`); one that cannot be read has
/// none.
pub fn has_tensor_memory(name_or_path: &str) -> bool {
    has(name_or_path, TensorSpec::has_memory)
}

impl<S: ComputeSpec> MachineConfig<S> {
    /// The machine of this kind called `name_or_path`, with overrides applied.
    ///
    /// # Errors
    /// As [`MachineConfig::load`].
    pub fn read(name_or_path: &str, overrides: &[Override]) -> Result<Self, Diagnostics> {
        Self::read_with(name_or_path, &[], overrides)
    }

    /// The same with what a workload sets: it counts more than the file, and less than an override.
    pub(crate) fn read_with(
        name_or_path: &str,
        settings: &[Setting],
        overrides: &[Override],
    ) -> Result<Self, Diagnostics> {
        let form = form::<S>();
        let mut draft = Draft::read(&form, name_or_path);
        settings.iter().for_each(|setting| draft.set(setting));
        for over in overrides {
            draft.apply(over);
        }
        leave_to_device(&mut draft);
        let mut document = draft.finish()?;
        let mut spec: S = match serde_json::from_value(Value::Object(document.tables.clone())) {
            Ok(spec) => spec,
            Err(error) => {
                return Err(Diagnostic::nowhere(name_or_path, format!("inconsistent machine: {error}")).into());
            }
        };
        let mut faults = Diagnostics::default();
        for (key, why) in spec.faults() {
            let (table, name) = key.split_once('.').unwrap_or((key, ""));
            faults.push(document.blame(table, name, &why));
        }
        let devices = devices(spec.memory(), &mut document, &mut faults);
        // A mapping is looked at on sizes that are sound.
        if faults.0.is_empty() {
            let why = spec.address_map(tables(&devices)).err();
            faults.0.extend(why.map(|why| document.blame("controller", "mapping", &why)));
        }
        let (name, description, sources) = (document.name, document.description, document.sources);
        faults.into_result(MachineConfig { name, description, spec, sources, devices })
    }

    /// The value in the key's unit, if there is such a key and it takes the value.
    pub(super) fn check(over: &Override) -> Result<Value, Diagnostics> {
        let form = form::<S>();
        let mut draft = Draft::empty(&form);
        draft.apply(over);
        draft.value(over)
    }

    /// Numbers without a source of their own: chosen, set by the user, or from a file that names none.
    pub fn assumptions(&self) -> Vec<(&str, &str)> {
        assumptions(&self.sources)
    }

    /// The resolved machine as a machine file, every value with its source.
    pub fn to_toml(&self) -> String {
        let mut out = match S::COMPUTE {
            // The kind of files that say none.
            Compute::Gpu => String::new(),
            Compute::Cpu => format!("kind = {:?}\n", S::COMPUTE.word()),
        };
        out += &format!("name = {:?}\ndescription = {:?}\n", self.name, self.description);
        let values = serde_json::to_value(&self.spec).unwrap_or_default();
        for (table, keys) in S::TABLES {
            out += &written(table, keys, &values[*table], &self.sources);
        }
        out
    }

    /// Every parameter by `table.key`.
    pub fn values(&self) -> BTreeMap<String, Value> {
        let values = serde_json::to_value(&self.spec).unwrap_or_default();
        let of = |&(table, keys): &(&str, &[Key])| {
            let of_key = |key: &Key| (format!("{table}.{}", key.name), values[table][key.name].clone());
            keys.iter().map(of_key).collect::<Vec<_>>()
        };
        S::TABLES.iter().flat_map(of).collect()
    }

    /// The value of `table.key` as text, for tables.
    pub fn value_of(&self, table: &str, key: &str) -> String {
        match &serde_json::to_value(&self.spec).unwrap_or_default()[table][key] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}
