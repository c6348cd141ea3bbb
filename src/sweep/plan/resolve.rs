//! Making a plan, in the order in which faults make sense: names, combinations, then each point as a whole.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::super::file::{Axis, LOGGING, SweepFile, WORDS, same, text_of};
use super::super::key;
use super::{Content, KEPT_BYTES, MAX_POINTS, Plan, Planned, Recipe, label};
use crate::config::MachineConfig;
use crate::config::Override;
use crate::config::SchemeConfig;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::Diagnostics;
use crate::workload::Choice;
use crate::workload::Mode;
use crate::workload::Overrides;
use crate::workload::Workload;
use crate::workload::document::Place;

/// Faults of points as a whole that are told.
const TOLD: usize = 20;

/// Key and value of a point, before it is known what applies.
type Assignment = BTreeMap<String, Value>;

/// The making of a plan.
struct Making {
    file: SweepFile,
    columns: Vec<String>,
    faults: Diagnostics,
    /// Schemes by what they are called, with the table of their parameters.
    tables: BTreeMap<String, String>,
    workloads: BTreeMap<String, Workload>,
}

pub(super) fn plan(file: SweepFile, columns: Vec<String>) -> Result<Plan, Diagnostics> {
    let (tables, workloads) = (BTreeMap::new(), BTreeMap::new());
    let mut making = Making { file, columns, faults: Diagnostics::default(), tables, workloads };
    making.names();
    std::mem::take(&mut making.faults).into_result(())?;
    let assignments = making.assignments();
    making.keys_are_used(&assignments);
    std::mem::take(&mut making.faults).into_result(())?;
    making.resolve(assignments)
}

/// A path beside the sweep file if there is one, else as it is written.
fn located(folder: &Path, name: &str) -> String {
    let is_path = name.ends_with(".toml") || name.contains(['/', '\\']);
    if is_path { located_file(folder, name) } else { name.to_owned() }
}

/// A file beside the sweep file if there is one, else as it is written.
fn located_file(folder: &Path, name: &str) -> String {
    let beside = folder.join(name);
    if beside.exists() { beside.to_string_lossy().into_owned() } else { name.to_owned() }
}

/// Keeps what was loaded, and not more than a few.
fn remember<T>(known: &mut BTreeMap<String, T>, told: &str, loaded: Option<T>) {
    if known.len() >= 256 {
        known.clear();
    }
    known.extend(loaded.map(|loaded| (told.to_owned(), loaded)));
}

impl Making {
    /// Every value of a key, with its place.
    fn values_of(&self, key: &str) -> Vec<(Value, Place)> {
        let of_axes = self.file.axes.iter().filter_map(|axis| Some((axis, axis.keys.iter().position(|k| k == key)?)));
        let of_axes: Vec<(Value, Place)> = of_axes
            .flat_map(|(axis, at)| axis.rows.iter().map(move |row| (row.values[at].clone(), row.place.clone())))
            .collect();
        match of_axes.is_empty() {
            true => self.file.base.get(key).map(|set| (set.value.clone(), set.place.clone())).into_iter().collect(),
            false => of_axes,
        }
    }

    /// The faults of something that the file names, told where it names it.
    fn blame(&mut self, place: &Place, found: Diagnostics) {
        for fault in found.0 {
            // A file of its own has places of its own.
            let told = match fault.span.line {
                0 => Diagnostic { help: fault.help, ..place.fault(fault.message) },
                _ => fault,
            };
            if !self.faults.0.contains(&told) {
                self.faults.push(told);
            }
        }
    }

    /// Reads every machine, scheme and workload that is named.
    fn names(&mut self) {
        let folder = self.file.folder.clone();
        for (value, place) in self.values_of("machine") {
            if let Err(found) = MachineConfig::load(&located(&folder, &text_of(&value)), &[]) {
                self.blame(&place, found);
            }
        }
        for (value, place) in self.values_of("scheme") {
            match SchemeConfig::load(&located(&folder, &text_of(&value)), &[]) {
                Ok(scheme) => {
                    self.tables.insert(text_of(&value), scheme.table().to_owned());
                }
                Err(found) => self.blame(&place, found),
            }
        }
        let profiles = self.values_of("profile");
        for (value, place) in self.values_of("workload") {
            match Workload::load(&located(&folder, &text_of(&value))) {
                Ok(workload) => {
                    self.workloads.insert(text_of(&value), workload);
                }
                Err(found) => self.blame(&place, found),
            }
        }
        for (value, place) in profiles {
            let has = |workload: &Workload| workload.listing().profiles.contains(&text_of(&value));
            if !self.workloads.is_empty() && !self.workloads.values().any(has) {
                let known: BTreeSet<String> = self.workloads.values().flat_map(|w| w.listing().profiles).collect();
                let fault = place.fault(format!("no workload of this sweep has a profile `{}`", text_of(&value)));
                self.faults.push(fault.with_nearest(&text_of(&value), known.iter().map(String::as_str)));
            }
        }
    }

    /// Every combination that is not excluded, with what does not apply left out.
    fn assignments(&mut self) -> Vec<Assignment> {
        let count = self.file.axes.iter().try_fold(1usize, |all, axis| all.checked_mul(axis.rows.len()));
        let Some(count) = count.filter(|count| *count <= MAX_POINTS) else {
            let message = format!("more than {MAX_POINTS} points: too many for one sweep");
            self.faults.push(self.file.place.fault(message));
            return Vec::new();
        };
        let base: Assignment = self.file.base.iter().map(|(key, set)| (key.clone(), set.value.clone())).collect();
        let mut dropped = vec![0usize; self.file.exclude.len()];
        let (mut seen, mut all) = (BTreeSet::new(), Vec::new());
        for number in 0..count {
            let mut values = base.clone();
            let mut rest = number;
            for Axis { keys, rows, .. } in self.file.axes.iter().rev() {
                let row = &rows[rest % rows.len()];
                rest /= rows.len();
                values.extend(keys.iter().cloned().zip(row.values.iter().cloned()));
            }
            let excluded = self.file.exclude.iter().position(|selection| {
                selection.keys.iter().all(|(key, wanted)| {
                    values.get(key).is_some_and(|value| wanted.iter().any(|wanted| same(wanted, value)))
                })
            });
            if let Some(by) = excluded {
                dropped[by] += 1;
                continue;
            }
            self.leave_out(&mut values);
            let told: Vec<String> =
                values.iter().map(|(key, value)| format!("{key}={}", key::canonical(value))).collect();
            // What differs only in what does not apply is one point.
            if seen.insert(told.join(" ")) {
                all.push(values);
            }
        }
        for (selection, count) in self.file.exclude.iter().zip(dropped) {
            if count == 0 {
                self.faults.push(selection.place.fault("this excludes no point that is not excluded already"));
            }
        }
        if all.is_empty() && self.faults.0.is_empty() {
            let place = self.file.exclude.first().map_or(&self.file.place, |selection| &selection.place);
            self.faults.push(place.fault(format!("zero points: all {count} are excluded")));
        }
        all
    }

    /// Parameters of another scheme than the point's do not apply; nor does how to keep logs where a workload cannot.
    fn leave_out(&self, values: &mut Assignment) {
        let table = self.tables.get(&text_of(&values["scheme"])).cloned().unwrap_or_default();
        let workload = self.workloads.get(&text_of(&values["workload"]));
        let plain = workload.is_some_and(|workload| workload.instrument() == Mode::None);
        for (key, value) in values {
            let over = Override { key: key.clone(), value: String::new() };
            let of_logging = plain && LOGGING.contains(&key.as_str());
            if of_logging || over.is_of_a_scheme() && over.table() != table {
                *value = Value::Null;
            }
        }
    }

    fn keys_are_used(&mut self, assignments: &[Assignment]) {
        let of_axes = self.file.axes.iter().flat_map(|axis| axis.keys.iter().zip(&axis.places));
        let of_base = self.file.base.iter().map(|(key, set)| (key, &set.place));
        let mut faults = Vec::new();
        for (key, place) in of_axes.chain(of_base) {
            let unused = |values: &Assignment| values.get(key).is_none_or(Value::is_null);
            if assignments.is_empty() || !assignments.iter().all(unused) {
                continue;
            }
            let message = match key.split_once('.') {
                Some((table, _)) => format!("`{key}` is of scheme `{table}`, which no point runs"),
                None => format!("`{key}` is of workloads with an `[instrument]`, of which this sweep has none"),
            };
            faults.push(place.fault(message));
        }
        self.faults.0.extend(faults);
    }

    /// Loads what each point needs and gives it its key.
    fn resolve(mut self, assignments: Vec<Assignment>) -> Result<Plan, Diagnostics> {
        let (mut points, mut contents, mut kept): (Vec<Planned>, Vec<Content>, u64) = (Vec::new(), Vec::new(), 0);
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let mut keys: BTreeMap<String, usize> = BTreeMap::new();
        // Points next to each other often have the same machine.
        let mut machines: BTreeMap<String, MachineConfig> = BTreeMap::new();
        let mut schemes: BTreeMap<String, SchemeConfig> = BTreeMap::new();
        for values in assignments {
            if self.faults.0.len() >= TOLD {
                break;
            }
            let shown: Vec<Value> =
                self.columns.iter().map(|key| values.get(key).cloned().unwrap_or_default()).collect();
            let label = label(&self.file, &self.columns, &shown);
            let mut recipe = self.recipe(&values);
            let told = format!("{} {:?}", recipe.machine, recipe.machine_set);
            if !machines.contains_key(&told) {
                let loaded = MachineConfig::load(&recipe.machine, &recipe.machine_set);
                remember(&mut machines, &told, self.keep(&values, &label, loaded));
            }
            let machine = machines.get(&told);
            let told = format!("{} {:?}", recipe.scheme, recipe.scheme_set);
            if !schemes.contains_key(&told) {
                let loaded = SchemeConfig::load(&recipe.scheme, &recipe.scheme_set);
                remember(&mut schemes, &told, self.keep(&values, &label, loaded));
            }
            let (Some(machine), Some(scheme)) = (machine, schemes.get(&told)) else { continue };
            let choice = self.choice(&values, scheme.built.logs());
            let path = located(&self.file.folder, &text_of(&values["workload"]));
            let told = format!("{path} {choice:?}");
            recipe.content = match known.get(&told) {
                Some(&at) => at,
                None => {
                    let resolved = self.workloads[&text_of(&values["workload"])].resolve(&choice);
                    let Some(resolved) = self.keep(&values, &label, resolved) else { continue };
                    let bytes = resolved.addresses().ranges().iter().map(|range| range.bytes).sum();
                    kept += bytes;
                    contents.push(Content {
                        path,
                        choice,
                        name: resolved.describe().workload,
                        hash: key::of_content(&resolved),
                        bytes,
                        resolved: (kept <= KEPT_BYTES).then_some(resolved),
                    });
                    known.insert(told, contents.len() - 1);
                    contents.len() - 1
                }
            };
            let SweepFile { max_cycles, reference, .. } = self.file;
            let key = key::of_run(machine, scheme, &contents[recipe.content].hash, max_cycles, reference);
            if let Some(&twin) = keys.get(&key) {
                let message = format!("duplicate points: `{}` and `{label}` are the same run", points[twin].label);
                self.faults.push(self.file.place.fault(message));
                continue;
            }
            keys.insert(key.clone(), points.len());
            points.push(Planned { key, values: shown, label, recipe });
        }
        let Making { file, columns, faults, .. } = self;
        faults.into_result(Plan { file, columns, points, grids: Vec::new(), contents })
    }

    fn recipe(&self, values: &Assignment) -> Recipe {
        let named = |key: &str| located(&self.file.folder, &text_of(&values[key]));
        let (mut machine_set, mut scheme_set) = (Vec::new(), Vec::new());
        for (key, value) in values.iter().filter(|(key, value)| key.contains('.') && !value.is_null()) {
            let over = Override { key: key.clone(), value: text_of(value) };
            match key.starts_with("params.") || key.starts_with("inputs.") {
                true => {}
                false if over.is_of_a_scheme() => scheme_set.push(over),
                false => machine_set.push(over),
            }
        }
        Recipe { machine: named("machine"), machine_set, scheme: named("scheme"), scheme_set, content: 0 }
    }

    fn choice(&self, values: &Assignment, logs: bool) -> Choice {
        let applying = || values.iter().filter(|(_, value)| !value.is_null());
        let param = |(key, value): (&String, &Value)| Some((key.strip_prefix("params.")?.to_owned(), text_of(value)));
        let input = |(key, value): (&String, &Value)| {
            Some((key.strip_prefix("inputs.")?.to_owned(), located_file(&self.file.folder, &text_of(value)).into()))
        };
        let word = |key: &str| values.get(key).map(text_of);
        Choice {
            profile: Some(text_of(&values["profile"])),
            params: applying().filter_map(param).collect(),
            seed: values["seed"].as_u64().unwrap_or(0),
            inputs: applying().filter_map(input).collect(),
            logs,
            instrument: Overrides {
                mode: word("instrument").and_then(|word| word.parse().ok()),
                flag_barrier: word("flag_barrier").and_then(|word| word.parse().ok()),
                loop_log: values.get("loop_log").and_then(Value::as_bool),
            },
        }
    }

    /// What was loaded, or its faults at the values that they are about, else at the top of the file with the point's name.
    fn keep<T>(&mut self, values: &Assignment, label: &str, found: Result<T, Diagnostics>) -> Option<T> {
        let found = match found {
            Ok(found) => return Some(found),
            Err(found) => found,
        };
        for fault in found.0 {
            let names = |key: &&String| {
                let last = key.rsplit('.').next().unwrap_or(key);
                fault.message.contains(&format!("`{key}`"))
                    || fault.file == format!("--set {key}={}", text_of(&values[*key]))
                    || fault.file.starts_with("--param ") && fault.message.contains(&format!("`{last}`"))
                    || key.starts_with("inputs.") && fault.file.starts_with(&format!("--input {last}="))
                    || WORDS.contains(&key.as_str()) && fault.message.contains(&format!(" {key} `"))
            };
            let place = values.keys().find(names).and_then(|key| self.place_of(key, &values[key]));
            let told = match place {
                _ if fault.span.line > 0 => fault,
                Some(place) => Diagnostic { help: fault.help, ..place.fault(fault.message) },
                None => {
                    let message = format!("point `{label}`: {}", fault.message);
                    Diagnostic { help: fault.help, ..self.file.place.fault(message) }
                }
            };
            if !self.faults.0.contains(&told) {
                self.faults.push(told);
            }
        }
        None
    }

    /// Where a point's value of a key is written.
    fn place_of(&self, key: &str, value: &Value) -> Option<Place> {
        self.values_of(key).into_iter().find(|(other, _)| same(other, value)).map(|(_, place)| place)
    }
}
