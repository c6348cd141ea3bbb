//! Making a plan, in the order in which faults make sense: names, combinations, then each point as a whole.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::super::batch::Batch;
use super::super::file::{Axis, LOGGING, SweepFile, WORDS, same, text_of};
use super::super::key;
use super::planned::{Planned, label};
use crate::config::Override;
use crate::config::SchemeConfig;
use crate::config::{AnyMachine, is_of_a_scheme};
use crate::run::Recipe;
use crate::run::checkpoint::may_change;
use crate::run::default_machine;
use durawarp_base::diagnostic::Diagnostic;
use durawarp_base::diagnostic::Diagnostics;
use durawarp_base::document::Place;
use durawarp_workload::Mode;
use durawarp_workload::Workload;

/// More points are taken for a mistake.
const MAX_POINTS: usize = 1_000_000;

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

/// What a plan has before its figures are laid out.
pub(super) struct Points {
    pub(super) file: SweepFile,
    pub(super) columns: Vec<String>,
    pub(super) points: Vec<Planned>,
    pub(super) batch: Batch,
}

pub(super) fn points(file: SweepFile, columns: Vec<String>) -> Result<Points, Diagnostics> {
    let (tables, workloads) = (BTreeMap::new(), BTreeMap::new());
    let mut making = Making { file, columns, faults: Diagnostics::default(), tables, workloads };
    making.names();
    std::mem::take(&mut making.faults).into_result(())?;
    let assignments = making.assignments();
    making.keys_are_used(&assignments);
    if making.file.fork_at_cycle.is_some() && making.late_keys().next().is_none() {
        let message = "`fork_at_cycle` without an axis that could act from there on: a duration, an energy or a \
                       threshold";
        let fault = making.file.place.fault(message);
        making.faults.push(fault);
    }
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
            if let Err(found) = AnyMachine::load(&located(&folder, &text_of(&value)), &[]) {
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
        // A file that names no machine means the one of its workloads' kind.
        if let Some(machine) = self.file.base.get_mut("machine")
            && machine.place.start() == 0
        {
            machine.value = default_machine(self.workloads.values()).into();
        }
        // Profiles come last, as they are looked up in the workloads. One workload that has it is enough;
        // without any workload the fault is theirs.
        for (value, place) in profiles {
            let has = |workload: &Workload| workload.has_profile(&text_of(&value));
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
            // The number is read as digits, one an axis: the last axis changes fastest.
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

    /// Parameters of another scheme than the point's do not apply; nor does how to keep logs where a workload
    /// cannot.
    fn leave_out(&self, values: &mut Assignment) {
        let table = self.tables.get(&text_of(&values["scheme"])).cloned().unwrap_or_default();
        let workload = self.workloads.get(&text_of(&values["workload"]));
        let plain = workload.is_some_and(|workload| workload.instrument() == Mode::None);
        for (key, value) in values {
            let over = Override { key: key.clone(), value: String::new() };
            let of_logging = plain && LOGGING.contains(&key.as_str());
            if of_logging || is_of_a_scheme(&over) && over.table() != table {
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
    fn resolve(mut self, assignments: Vec<Assignment>) -> Result<Points, Diagnostics> {
        let (mut points, mut batch): (Vec<Planned>, Batch) = (Vec::new(), Batch::default());
        for values in assignments {
            if self.faults.0.len() >= TOLD {
                break;
            }
            let shown: Vec<Value> =
                self.columns.iter().map(|key| values.get(key).cloned().unwrap_or_default()).collect();
            let label = label(&self.file, &self.columns, &shown);
            let added = batch.add(&label, 0, self.recipe(&values));
            let Some(at) = self.keep(&values, &label, added) else { continue };
            if at < points.len() {
                let twin = &points[at].label;
                let message = format!("duplicate points: `{twin}` and `{label}` are the same run");
                self.faults.push(self.file.place.fault(message));
                continue;
            }
            points.push(Planned { key: batch.points()[at].key.clone(), values: shown, label });
        }
        let Making { file, columns, faults, .. } = self;
        faults.into_result(Points { file, columns, points, batch })
    }

    /// What a point runs. Where the file has `fork_at_cycle`, its values of axes that may change on the way
    /// act from there on, and before it has those of the base.
    fn recipe(&self, values: &Assignment) -> Recipe {
        let whole = self.recipe_of(values);
        let Some(cycle) = self.file.fork_at_cycle else { return whole };
        let mut before = values.clone();
        for key in self.late_keys() {
            match self.file.base.get(key) {
                Some(set) => before.insert(key.clone(), set.value.clone()),
                None => before.remove(key),
            };
        }
        whole.fork_from(cycle, self.recipe_of(&before))
    }

    /// Keys of axes that may change on the way.
    fn late_keys(&self) -> impl Iterator<Item = &String> {
        self.file.axes.iter().flat_map(|axis| &axis.keys).filter(|key| may_change(key))
    }

    fn recipe_of(&self, values: &Assignment) -> Recipe {
        let folder = &self.file.folder;
        let recipe = Recipe::of(located(folder, &text_of(&values["workload"])));
        let recipe = recipe.max_cycles(self.file.max_cycles).sample(self.file.sample).reference(self.file.reference);
        let recipe = recipe.launches(self.file.launches);
        values.iter().filter(|(_, value)| !value.is_null()).fold(recipe, |recipe, (key, value)| {
            let text = text_of(value);
            match key.as_str() {
                "machine" | "scheme" | "workload" => recipe.set(key, located(folder, &text)),
                _ if key.starts_with("inputs.") => recipe.set(key, located_file(folder, &text)),
                _ => recipe.set(key, text),
            }
        })
    }

    /// What was loaded, or its faults at the values that they are about, else at the top of the file with the
    /// point's name.
    fn keep<T>(&mut self, values: &Assignment, label: &str, found: Result<T, Diagnostics>) -> Option<T> {
        let found = match found {
            Ok(found) => return Some(found),
            Err(found) => found,
        };
        for fault in found.0 {
            // Faults do not carry the key that they are about. It is found by the name in the message or in
            // the option that the fault is reported under.
            let names = |key: &&String| {
                let last = key.rsplit('.').next().unwrap_or(key);
                fault.message.contains(&format!("`{key}`"))
                    || fault.file == format!("--set {key}={}", text_of(&values[*key]))
                    || fault.file.starts_with("--set params.") && fault.message.contains(&format!("`{last}`"))
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
