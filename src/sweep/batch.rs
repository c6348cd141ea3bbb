//! Experiments that are to be run: each by what it is made of, under its key.
//!
//! Sweeps, comparisons and papers all become one of these, so that they have the same runner, the same store and, where
//! they run the same thing, the same results. Invariants: everything is resolved and checked before anything runs; no two
//! points have the same key; machines, schemes and workloads that several points name are read once.

use std::collections::BTreeMap;

use super::host::Memory;
use super::key;
use crate::config::MachineConfig;
use crate::config::Override;
use crate::config::SchemeConfig;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::Diagnostics;
use crate::run::{Experiment, demands};
use crate::workload::FlagBarrier;
use crate::workload::Resolved;
use crate::workload::Workload;
use crate::workload::{Choice, Demands};

/// What an experiment is made of.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// Machine: a name or a file.
    pub machine: String,
    /// Changes to it.
    pub machine_set: Vec<Override>,
    /// Scheme: a name or a file.
    pub scheme: String,
    /// Changes to it.
    pub scheme_set: Vec<Override>,
    /// Workload: a name or a path.
    pub workload: String,
    /// Which of it.
    pub choice: Choice,
    /// Stop after so many core cycles: the run has failed then.
    pub max_cycles: Option<u64>,
    /// Compare the final memory with the functional driver's.
    pub reference: bool,
}

impl Recipe {
    /// Changes a parameter of the machine, of the scheme, or of the workload (`params.NAME`).
    pub fn set(&mut self, over: Override) {
        match over.key.strip_prefix("params.") {
            Some(name) => self.choice.params.push((name.to_owned(), over.value)),
            None if over.is_of_a_scheme() => self.scheme_set.push(over),
            None => self.machine_set.push(over),
        }
    }
}

/// A point.
#[derive(Debug, Clone)]
pub struct Point {
    /// What its result is kept by.
    pub key: String,
    /// What it is called in messages.
    pub label: String,
    /// How long it takes compared with the others, in any unit; 0 where that is not known.
    pub work: u64,
    recipe: Recipe,
    /// Number of its workload among the batch's.
    content: usize,
}

/// A workload under a choice.
#[derive(Debug)]
struct Content {
    name: String,
    hash: String,
    bytes: u64,
    demands: Demands,
    warnings: Vec<Diagnostic>,
    /// Kept while there is room; else resolved again for each run.
    resolved: Option<Resolved>,
}

/// Points to run.
#[derive(Debug)]
pub struct Batch {
    points: Vec<Point>,
    contents: Vec<Content>,
    /// Bytes of contents that are kept.
    kept: u64,
    keys: BTreeMap<String, usize>,
    known_contents: BTreeMap<String, usize>,
    workloads: BTreeMap<String, Workload>,
    // Points next to each other often have the same machine.
    machines: BTreeMap<String, MachineConfig>,
    schemes: BTreeMap<String, SchemeConfig>,
    /// Most bytes that a point's buffers may have: what this host has.
    most_bytes: u64,
}

impl Default for Batch {
    /// No points.
    fn default() -> Self {
        Batch {
            points: Vec::new(),
            contents: Vec::new(),
            kept: 0,
            keys: BTreeMap::new(),
            known_contents: BTreeMap::new(),
            workloads: BTreeMap::new(),
            machines: BTreeMap::new(),
            schemes: BTreeMap::new(),
            most_bytes: Memory::of_host().total_bytes,
        }
    }
}

/// Bytes of buffers that are kept for the runs.
const KEPT_BYTES: u64 = 1 << 30;

/// Machines, schemes and workloads that are remembered.
const REMEMBERED: usize = 256;

/// What is known by a name, or what `load` makes of it.
fn known<T>(
    all: &mut BTreeMap<String, T>,
    told: String,
    load: impl FnOnce() -> Result<T, Diagnostics>,
) -> Result<&T, Diagnostics> {
    if !all.contains_key(&told) {
        let loaded = load()?;
        if all.len() >= REMEMBERED {
            all.clear();
        }
        all.insert(told.clone(), loaded);
    }
    Ok(&all[&told])
}

impl Batch {
    /// Resolves an experiment and adds it, unless it is there already: its number.
    ///
    /// # Errors
    /// Everything that is wrong with its machine, scheme and workload.
    pub fn add(&mut self, label: &str, work: u64, mut recipe: Recipe) -> Result<usize, Diagnostics> {
        let Batch { points, contents, kept, keys, known_contents, workloads, machines, schemes, most_bytes } = self;
        let mut faults = Diagnostics::default();
        let mut keep = |found: Diagnostics| faults.0.extend(found.0);
        let told = format!("{} {:?}", recipe.machine, recipe.machine_set);
        let machine = known(machines, told, || MachineConfig::load(&recipe.machine, &recipe.machine_set));
        let machine = machine.map_err(&mut keep).ok();
        let told = format!("{} {:?}", recipe.scheme, recipe.scheme_set);
        let scheme = known(schemes, told, || SchemeConfig::load(&recipe.scheme, &recipe.scheme_set));
        let scheme = scheme.map_err(&mut keep).ok();
        let demands = scheme.map_or_else(Demands::default, |scheme| demands(&*scheme.built));
        let workload = known(workloads, recipe.workload.clone(), || Workload::load(&recipe.workload));
        recipe.choice.most_bytes.get_or_insert(*most_bytes);
        let told = format!("{} {:?} {demands:?}", recipe.workload, recipe.choice);
        let content = match known_contents.get(&told) {
            Some(&at) => Some(at),
            None => {
                let resolved = workload.and_then(|workload| workload.resolve_under(&recipe.choice, demands));
                resolved.map_err(&mut keep).ok().map(|resolved| {
                    let bytes = resolved.addresses().ranges().iter().map(|range| range.bytes).sum();
                    *kept += bytes;
                    contents.push(Content {
                        name: resolved.describe().workload,
                        hash: key::of_content(&resolved),
                        bytes,
                        demands,
                        warnings: resolved.warnings().cloned().collect(),
                        resolved: (*kept <= KEPT_BYTES).then_some(resolved),
                    });
                    known_contents.insert(told, contents.len() - 1);
                    contents.len() - 1
                })
            }
        };
        let (Some(machine), Some(scheme), Some(content)) = (machine, scheme, content) else { return Err(faults) };
        let Recipe { max_cycles, reference, .. } = recipe;
        let key = key::of_run(machine, scheme, &contents[content].hash, max_cycles, reference);
        if let Some(&twin) = keys.get(&key) {
            return Ok(twin);
        }
        keys.insert(key.clone(), points.len());
        points.push(Point { key, label: label.to_owned(), work, recipe, content });
        Ok(points.len() - 1)
    }

    /// The points, in the order in which they were added.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Name of a point's workload, hash of its content, bytes of its buffers.
    pub fn content(&self, point: usize) -> (&str, &str, u64) {
        let content = &self.contents[self.points[point].content];
        (&content.name, &content.hash, content.bytes)
    }

    /// What is odd about a point's workload.
    pub fn warnings(&self, point: usize) -> &[Diagnostic] {
        &self.contents[self.points[point].content].warnings
    }

    /// What a point is made of.
    pub fn recipe(&self, point: usize) -> &Recipe {
        &self.points[point].recipe
    }

    /// A point's workload, as it was when it was added unless there was no room to keep it.
    ///
    /// # Errors
    /// A file that it needs is not there any more, or wrong.
    pub fn workload(&self, point: usize) -> Result<Resolved, Diagnostics> {
        let Point { recipe, content, .. } = &self.points[point];
        let content = &self.contents[*content];
        match &content.resolved {
            Some(resolved) => Ok(resolved.clone()),
            None => Workload::load(&recipe.workload)?.resolve_under(&recipe.choice, content.demands),
        }
    }

    /// What a point runs.
    ///
    /// # Errors
    /// A file that it needs is not what it was; a kernel that its scheme's compiler cannot form.
    pub fn experiment(&self, point: usize) -> Result<Experiment, Diagnostics> {
        let Point { recipe, key, label, content, .. } = &self.points[point];
        let machine = MachineConfig::load(&recipe.machine, &recipe.machine_set)?;
        let scheme = SchemeConfig::load(&recipe.scheme, &recipe.scheme_set)?;
        let content = &self.contents[*content];
        let workload = self.workload(point)?;
        let Recipe { max_cycles, reference, .. } = *recipe;
        let hash = if content.resolved.is_some() { content.hash.clone() } else { key::of_content(&workload) };
        if key::of_run(&machine, &scheme, &hash, max_cycles, reference) != *key {
            let message = "a machine, scheme or workload file was changed while the sweep ran: start it again";
            return Err(Diagnostic::nowhere(label, message).into());
        }
        let experiment = Experiment::of_resolved(machine, workload, scheme)?;
        Ok(Experiment { max_cycles, reference, ..experiment })
    }

    /// The command line that runs a point by itself.
    pub fn command(&self, point: usize) -> String {
        let recipe = &self.points[point].recipe;
        let Recipe { machine, scheme, workload, choice, .. } = recipe;
        let mut words = vec!["durawarp".to_owned(), "run".to_owned(), workload.clone()];
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        option("--machine", machine.clone());
        option("--scheme", scheme.clone());
        if let Some(profile) = &choice.profile {
            option("--profile", profile.clone());
        }
        option("--seed", choice.seed.to_string());
        for Override { key, value } in recipe.machine_set.iter().chain(&recipe.scheme_set) {
            option("--set", format!("{key}={value}"));
        }
        for (name, value) in &choice.params {
            option("--set", format!("params.{name}={value}"));
        }
        for (buffer, file) in &choice.inputs {
            option("--input", format!("{buffer}={}", file.display()));
        }
        if let Some(mode) = choice.instrument.mode {
            option("--instrument", mode.to_string());
        }
        if let Some(barrier) = choice.instrument.flag_barrier {
            let word = FlagBarrier::ALL.iter().find(|(_, of)| *of == barrier);
            option("--flag-barrier", word.map_or("", |(word, _)| word).to_owned());
        }
        if let Some(loop_log) = choice.instrument.loop_log {
            option("--loop-log", loop_log.to_string());
        }
        if let Some(cycles) = recipe.max_cycles {
            option("--max-cycles", cycles.to_string());
        }
        if choice.persistent {
            words.push("--persistent".to_owned());
        }
        if !recipe.reference {
            words.push("--no-reference".to_owned());
        }
        words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
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
