//! Experiments that are to be run: each by what it is made of, under its key.
//!
//! Sweeps, comparisons and papers all become one of these, so that they have the same runner, the same store
//! and, where they run the same thing, the same results. Invariants: everything is resolved and checked
//! before anything runs; no two points have the same key; machines, schemes and workloads that several points
//! name are read once.

use std::collections::BTreeMap;

use super::host::Memory;
use super::key;
use crate::config::AnyMachine;
use crate::config::Compute;
use crate::config::SchemeConfig;
use crate::run::{AnyExperiment, AnyResolved, Recipe, begins_within, demands};
use durawarp_base::diagnostic::Diagnostic;
use durawarp_base::diagnostic::Diagnostics;
use durawarp_workload::Demands;
use durawarp_workload::Workload;

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
    /// Bytes that its machine's caches take of the host.
    caches: u64,
}

/// A workload under a choice.
#[derive(Debug)]
struct Content {
    name: String,
    hash: String,
    bytes: u64,
    /// Those that it holds before the first step, in one server.
    filled: u64,
    warnings: Vec<Diagnostic>,
    /// Kept while there is room; else resolved again for each run.
    resolved: Option<AnyResolved>,
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
    /// Each with the text that stands for it in keys: points next to each other often have the same machine.
    machines: BTreeMap<String, (AnyMachine, String)>,
    schemes: BTreeMap<String, SchemeConfig>,
    /// Most bytes that a point may hold: what this host has.
    most_bytes: u64,
    /// Recipes that were added, twins and wrong ones too.
    added: u64,
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
            added: 0,
        }
    }
}

/// Bytes of contents that are kept for the runs; others are made again.
const KEPT_BYTES: u64 = 96 << 20;

/// Bytes of a content beside its buffers: its plan. Chosen.
const PLAN_BYTES: u64 = 16 << 10;

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

/// Digits of the hash at the start of a key.
const HASH_DIGITS: usize = 64;

fn key_of(recipe: &Recipe, machine: &str, scheme: &SchemeConfig, content: &str) -> Result<String, Diagnostics> {
    let key = key::of_run(machine, scheme, content, recipe.max_cycles, recipe.reference, recipe.sample);
    let key = if recipe.launches { key::of_launches(&key) } else { key };
    let Some((cycle, before)) = &recipe.fork else { return Ok(key) };
    // Of the same workload, or the experiment will not be built.
    let (machine, scheme) = before.load_own_parts()?;
    Ok(key::of_fork(&key, *cycle, &key_of(before, &key::of_machine(&machine), &scheme, content)?))
}

impl Batch {
    /// Resolves an experiment and adds it, unless it is there already: its number.
    ///
    /// # Errors
    /// Everything that is wrong with its machine, scheme and workload.
    pub fn add(&mut self, label: &str, work: u64, mut recipe: Recipe) -> Result<usize, Diagnostics> {
        let Batch { points, contents, kept, keys, known_contents, workloads, machines, schemes, most_bytes, added } =
            self;
        let mut faults = recipe.faults.clone();
        let mut keep = |found: Diagnostics| faults.0.extend(found.0);
        // What is given as a value has no name to be remembered by: a number that is used once.
        *added += 1;
        let named = |name: Option<&str>| name.map_or_else(|| format!("\0{added}"), str::to_owned);
        let workload_name = named(recipe.workload.name());
        let workload = known(workloads, workload_name.clone(), || recipe.load_workload());
        let of = workload.as_ref().ok().copied();
        let changes = (recipe.settings(of), &recipe.machine_set);
        let told = format!("{} {changes:?}", named(recipe.machine_for(of).name()));
        let machine = known(machines, told, || {
            let machine = recipe.load_machine(of)?;
            let text = key::of_machine(&machine);
            Ok((machine, text))
        });
        let machine = machine.map_err(|found| keep(recipe.advised(found, workload.as_ref().ok().copied()))).ok();
        let scheme_for = recipe.scheme_for(of);
        let compute = machine.map_or(Compute::Gpu, |(machine, _)| machine.compute());
        let told = format!("{} {:?} {compute}", named(scheme_for.name()), recipe.scheme_set);
        let scheme = known(schemes, told, || recipe.load_scheme(of, compute));
        let scheme = scheme.map_err(&mut keep).ok();
        recipe.choice.most_bytes.get_or_insert(*most_bytes);
        let demands = scheme.map_or_else(Demands::default, |scheme| demands(&*scheme.built));
        let told = format!("{workload_name} {:?} {demands:?}", recipe.choice);
        let content = match known_contents.get(&told) {
            Some(&at) => Some(at),
            None => {
                let resolved = workload.and_then(|workload| recipe.resolve(workload, scheme));
                resolved.map_err(&mut keep).ok().map(|resolved| {
                    let bytes = resolved.bytes();
                    *kept += bytes + PLAN_BYTES;
                    contents.push(Content {
                        name: resolved.describe().workload,
                        hash: key::of_content(&resolved),
                        bytes,
                        filled: resolved.filled_bytes(),
                        warnings: resolved.warnings().into_iter().cloned().collect(),
                        resolved: (*kept <= KEPT_BYTES).then_some(resolved),
                    });
                    known_contents.insert(told, contents.len() - 1);
                    contents.len() - 1
                })
            }
        };
        let (Some(machine), Some(scheme), Some(content)) = (machine, scheme, content) else { return Err(faults) };
        if !faults.0.is_empty() {
            return Err(faults);
        }
        let (machine, text) = machine;
        // No experiment is built yet: what it would begin with is asked of its parts.
        if let Some(most) = recipe.choice.most_bytes {
            let servers = machine.cpu().map_or(1, |machine| machine.spec.nodes.servers);
            let filled = contents[content].filled.saturating_mul(servers.into());
            begins_within(most, machine.cache_bytes(), filled)?;
        }
        let mut key = key_of(&recipe, text, scheme, &contents[content].hash)?;
        if scheme_for.name().is_none() {
            // What such a scheme does, its name and parameters do not tell.
            key += &format!("-{added}");
        }
        if let Some(&twin) = keys.get(&key) {
            return Ok(twin);
        }
        keys.insert(key.clone(), points.len());
        points.push(Point { key, label: label.to_owned(), work, recipe, content, caches: machine.cache_bytes() });
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

    /// Bytes that the caches of a point's machine take of the host.
    pub(super) fn cache_bytes(&self, point: usize) -> u64 {
        self.points[point].caches
    }

    /// How many workloads there are; equal ones are one.
    pub(super) fn contents(&self) -> usize {
        self.contents.len()
    }

    /// Number of a point's workload among them.
    pub(super) fn content_of(&self, point: usize) -> usize {
        self.points[point].content
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
    pub fn workload(&self, point: usize) -> Result<AnyResolved, Diagnostics> {
        let Point { recipe, content, .. } = &self.points[point];
        let content = &self.contents[*content];
        match &content.resolved {
            Some(resolved) => Ok(resolved.clone()),
            None => {
                let workload = recipe.load_workload()?;
                let compute = recipe.load_machine(Some(&workload))?.compute();
                recipe.resolve(&workload, Some(&recipe.load_scheme(Some(&workload), compute)?))
            }
        }
    }

    /// What a point runs.
    ///
    /// # Errors
    /// A file that it needs is not what it was; a kernel that its scheme's compiler cannot form.
    pub fn experiment(&self, point: usize) -> Result<AnyExperiment, Diagnostics> {
        let Point { recipe, key, label, content, .. } = &self.points[point];
        let (machine, scheme) = recipe.load_own_parts()?;
        let content = &self.contents[*content];
        let workload = self.workload(point)?;
        let hash = if content.resolved.is_some() { content.hash.clone() } else { key::of_content(&workload) };
        if key_of(recipe, &key::of_machine(&machine), &scheme, &hash)? != key[..HASH_DIGITS] {
            let message = "a machine, scheme or workload file was changed while the sweep ran: start it again";
            return Err(Diagnostic::nowhere(label, message).into());
        }
        recipe.of_parts(machine, workload, scheme)
    }

    /// The command line that runs a point by itself; two of one that begins as another.
    pub fn command(&self, point: usize) -> String {
        let recipe = &self.points[point].recipe;
        let Some((cycle, before)) = &recipe.fork else { return command_of(recipe) };
        let keys = before.keys();
        let changed = recipe.keys().into_iter().filter(|key| !keys.contains(key));
        let set: Vec<String> = changed.map(|(key, value)| quoted(&format!("--set={key}={value}"))).collect();
        let reference = if recipe.reference { "" } else { " --no-reference" };
        let begin = command_of(before);
        format!(
            "{begin} --checkpoint-at {cycle} fork.ckpt && durawarp run --from fork.ckpt{reference} {}",
            set.join(" ")
        )
    }
}

/// The command line that runs an experiment.
fn command_of(recipe: &Recipe) -> String {
    let choice = &recipe.choice;
    let mut words = vec!["durawarp".to_owned(), "run".to_owned()];
    for (key, value) in recipe.keys() {
        // Words have options of their own; all other keys are said with `--set`.
        let option = match key.as_str() {
            "workload" => {
                words.push(value);
                continue;
            }
            "launches" => {
                words.push("--launches".to_owned());
                continue;
            }
            "machine" | "scheme" | "profile" | "seed" | "instrument" | "flag_barrier" | "loop_log" | "max_cycles"
            | "kernels" | "opcodes" => [format!("--{}", key.replace('_', "-")), value],
            _ => match key.strip_prefix("inputs.") {
                Some(buffer) => ["--input".to_owned(), format!("{buffer}={value}")],
                None => ["--set".to_owned(), format!("{key}={value}")],
            },
        };
        words.extend(option);
    }
    if let Some(windows) = recipe.sample {
        words.push(format!("--sample={windows}"));
    }
    if choice.persistent {
        words.push("--persistent".to_owned());
    }
    if !recipe.reference {
        words.push("--no-reference".to_owned());
    }
    if !choice.args.is_empty() {
        words.push("--".to_owned());
        words.extend(choice.args.iter().cloned());
    }
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word as a shell reads it back.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
