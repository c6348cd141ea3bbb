//! From a sweep file to its points: every one resolved, checked and given its key before anything runs.
//!
//! A point is a value for each key. A parameter of a scheme does not apply to points of another scheme: its value is null
//! there, and points that differ in nothing else are one. Invariants: points are in the order of the axes, the last varying
//! fastest; no two have the same key; everything that is wrong is told at once, at its place in the file.

pub mod configuration;
mod resolve;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::file::{SweepFile, WORDS, same, text_of};
use super::grid::{self, Grid};
use super::key;
use crate::config::MachineConfig;
use crate::config::Override;
use crate::config::SchemeConfig;
use crate::diagnostic::Diagnostics;
use crate::run::Experiment;
use crate::workload::Choice;
use crate::workload::Resolved;
use crate::workload::Workload;

/// The points of a sweep.
#[derive(Debug)]
pub struct Plan {
    /// What it was made of.
    pub file: SweepFile,
    /// The keys that points are told by: [`WORDS`], then those of axes.
    pub columns: Vec<String>,
    /// The points.
    pub points: Vec<Planned>,
    /// Of each figure of the file, the figures that it comes to.
    pub grids: Vec<Vec<Grid>>,
    contents: Vec<Content>,
}

/// A point of a sweep.
#[derive(Debug, Clone)]
pub struct Planned {
    /// What its result is kept by.
    pub key: String,
    /// A value for each column; null where it does not apply.
    pub values: Vec<Value>,
    /// What it is called in messages.
    pub label: String,
    recipe: Recipe,
}

/// What an experiment is made of.
#[derive(Debug, Clone, Default)]
struct Recipe {
    machine: String,
    machine_set: Vec<Override>,
    scheme: String,
    scheme_set: Vec<Override>,
    /// Number of its workload among the plan's.
    content: usize,
}

/// A workload under a choice.
#[derive(Debug)]
struct Content {
    path: String,
    choice: Choice,
    name: String,
    hash: String,
    bytes: u64,
    /// Kept while there is room; else resolved again for each run.
    resolved: Option<Resolved>,
}

/// More points are taken for a mistake.
const MAX_POINTS: usize = 1_000_000;

/// Bytes of buffers that are kept for the runs.
const KEPT_BYTES: u64 = 1 << 30;

impl Plan {
    /// Resolves every point of a sweep file.
    ///
    /// # Errors
    /// Everything that is wrong with it, with machines, schemes and workloads that it names, or with their combinations.
    pub fn new(file: SweepFile) -> Result<Self, Diagnostics> {
        let mut columns: Vec<String> = WORDS.iter().map(|word| (*word).to_owned()).collect();
        for key in file.axes.iter().flat_map(|axis| &axis.keys) {
            if !columns.contains(key) {
                columns.push(key.clone());
            }
        }
        let mut plan = resolve::plan(file, columns)?;
        let mut faults = Diagnostics::default();
        let mut grids = Vec::new();
        for figure in &plan.file.figures {
            match grid::of(&plan, figure) {
                Ok(found) => grids.push(found),
                Err(fault) => faults.push(fault),
            }
        }
        plan.grids = grids;
        faults.into_result(plan)
    }

    /// Reads a sweep file and resolves its points.
    ///
    /// # Errors
    /// As [`SweepFile::load`] and [`Plan::new`].
    pub fn load(path: &Path) -> Result<Self, Diagnostics> {
        Plan::new(SweepFile::load(path)?)
    }

    /// Name of a point's workload, hash of its content, bytes of its buffers.
    pub fn content(&self, point: usize) -> (&str, &str, u64) {
        let content = &self.contents[self.points[point].recipe.content];
        (&content.name, &content.hash, content.bytes)
    }

    /// What a point runs.
    ///
    /// # Errors
    /// A file that it needs is not what it was.
    pub fn experiment(&self, point: usize) -> Result<Experiment, Diagnostics> {
        let Planned { recipe, key, .. } = &self.points[point];
        let machine = MachineConfig::load(&recipe.machine, &recipe.machine_set)?;
        let scheme = SchemeConfig::load(&recipe.scheme, &recipe.scheme_set)?;
        let content = &self.contents[recipe.content];
        let workload = match &content.resolved {
            Some(resolved) => resolved.clone(),
            None => Workload::load(&content.path)?.resolve(&content.choice)?,
        };
        let SweepFile { max_cycles, reference, .. } = self.file;
        let hash = if content.resolved.is_some() { content.hash.clone() } else { key::of_content(&workload) };
        if key::of_run(&machine, &scheme, &hash, max_cycles, reference) != *key {
            let message = "a machine, scheme or workload file was changed while the sweep ran: start it again";
            return Err(crate::diagnostic::Diagnostic::nowhere(&self.points[point].label, message).into());
        }
        Ok(Experiment { machine, workload, scheme, max_cycles, reference })
    }

    /// The command line that runs a point by itself.
    pub fn command(&self, point: usize) -> String {
        let recipe = &self.points[point].recipe;
        let content = &self.contents[recipe.content];
        let mut words = vec!["durawarp".to_owned(), "run".to_owned(), content.path.clone()];
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        option("--machine", recipe.machine.clone());
        option("--scheme", recipe.scheme.clone());
        if let Some(profile) = &content.choice.profile {
            option("--profile", profile.clone());
        }
        option("--seed", content.choice.seed.to_string());
        for Override { key, value } in recipe.machine_set.iter().chain(&recipe.scheme_set) {
            option("--set", format!("{key}={value}"));
        }
        for (name, value) in &content.choice.params {
            option("--set", format!("params.{name}={value}"));
        }
        for (buffer, path) in &content.choice.inputs {
            option("--input", format!("{buffer}={}", path.display()));
        }
        let instrument = content.choice.instrument;
        if let Some(mode) = instrument.mode {
            option("--instrument", mode.to_string());
        }
        if let Some(barrier) = instrument.flag_barrier {
            let word = crate::workload::FlagBarrier::ALL.iter().find(|(_, of)| *of == barrier);
            option("--flag-barrier", word.map_or("", |(word, _)| word).to_owned());
        }
        if let Some(loop_log) = instrument.loop_log {
            option("--loop-log", loop_log.to_string());
        }
        if let Some(cycles) = self.file.max_cycles {
            option("--max-cycles", cycles.to_string());
        }
        if !self.file.reference {
            words.push("--no-reference".to_owned());
        }
        words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    /// The point that each point's results are related to: the same but for the keys of `baseline`.
    pub fn baselines(&self) -> Vec<Option<usize>> {
        let Some(baseline) = &self.file.baseline else { return vec![None; self.points.len()] };
        let text = |value: &Value| key::canonical(value);
        let varies = |column: &String| !baseline.keys.iter().any(|(key, _)| key == column);
        // What stays, with parameters of schemes left out where the baseline's scheme has none: there they are null.
        let mut known: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let rest = |planned: &Planned| {
            let kept = planned
                .values
                .iter()
                .zip(&self.columns)
                .filter(|(_, column)| varies(column) && !self.is_of_a_scheme(column));
            kept.map(|(value, _)| text(value)).collect::<Vec<_>>().join(" ")
        };
        for (at, planned) in self.points.iter().enumerate() {
            let is_one = baseline.keys.iter().all(|(key, values)| {
                let column = self.columns.iter().position(|column| column == key);
                // Not a column: all points have it.
                column.is_none_or(|column| values.iter().any(|value| same(value, &planned.values[column])))
            });
            if is_one {
                known.entry(rest(planned)).or_default().push(at);
            }
        }
        let of = |planned: &Planned| {
            let candidates = known.get(&rest(planned))?;
            let agrees = |at: &&usize| {
                let own = self.points[**at].values.iter().zip(&planned.values).zip(&self.columns);
                own.filter(|(_, column)| varies(column))
                    .all(|((one, other), _)| one.is_null() || other.is_null() || same(one, other))
            };
            match candidates.iter().filter(agrees).copied().collect::<Vec<_>>()[..] {
                [only] => Some(only),
                _ => None,
            }
        };
        self.points.iter().map(of).collect()
    }

    fn is_of_a_scheme(&self, key: &str) -> bool {
        Override { key: key.to_owned(), value: String::new() }.is_of_a_scheme()
    }
}

/// A word as a shell reads it back.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// What a point is called: what it runs, then what varies.
fn label(file: &SweepFile, columns: &[String], values: &[Value]) -> String {
    let varies = |column: &String| file.axes.iter().any(|axis| axis.keys.contains(column));
    let shown = |(column, value): (&String, &Value)| match column.as_str() {
        _ if value.is_null() => None,
        "machine" | "profile" | "seed" if !varies(column) => None,
        "workload" | "scheme" => Some(text_of(value)),
        _ => Some(format!("{column}={}", text_of(value))),
    };
    columns.iter().zip(values).filter_map(shown).collect::<Vec<_>>().join(" ")
}
