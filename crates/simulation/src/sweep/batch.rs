//! Experiments that are to be run: each by what it is made of, under its key.
//!
//! Sweeps, comparisons and papers all become one of these, so that they have the same runner, the same store
//! and, where they run the same thing, the same results. Invariants: everything is resolved and checked
//! before anything runs; no two points have the same key; machines, schemes and workloads that several points
//! name are read once.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::host::Memory;
use super::key;
use crate::config::AnyMachine;
use crate::config::Compute;
use crate::config::SchemeConfig;
use crate::run::{AnyExperiment, AnyResolved, Recipe, begins_within, demands};
use durawarp_base::diagnostic::Diagnostic;
use durawarp_base::diagnostic::Diagnostics;
use durawarp_workload::Workload;
use durawarp_workload::{Choice, Demands};

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
    /// Kept while there is room; else loaded again for its run.
    parts: Option<OwnParts>,
    /// Bytes that its machine's caches take of the host.
    caches: u64,
}

/// A machine, and the text that stands for it in keys.
type KeyedMachine = Arc<(AnyMachine, String)>;

/// What an experiment is made of beside its workload.
#[derive(Debug, Clone)]
struct OwnParts {
    machine: KeyedMachine,
    scheme: Arc<SchemeConfig>,
    /// Of the experiment that it begins as, where it begins as another one.
    before: Option<Box<OwnParts>>,
}

impl OwnParts {
    /// Reads them.
    fn load(recipe: &Recipe) -> Result<OwnParts, Diagnostics> {
        let (machine, scheme) = recipe.load_own_parts()?;
        let text = key::of_machine(&machine);
        let before = recipe.fork.as_ref().map(|(_, before)| OwnParts::load(before)).transpose()?.map(Box::new);
        Ok(OwnParts { machine: Arc::new((machine, text)), scheme: Arc::new(scheme), before })
    }

    /// The key of a recipe of these parts and of a workload with content of this hash.
    fn key(&self, recipe: &Recipe, content: &str) -> String {
        let OwnParts { machine, scheme, before } = self;
        let key = key::of_run(&machine.1, scheme, content, recipe.max_cycles, recipe.reference, recipe.sample);
        let key = if recipe.launches { key::of_launches(&key) } else { key };
        let key = recipe.roi.as_ref().map_or(key.clone(), |region| key::of_region(&key, &region.to_string()));
        match (&recipe.fork, before) {
            (Some((cycle, recipe)), Some(before)) => key::of_fork(&key, *cycle, &before.key(recipe, content)),
            _ => key,
        }
    }

    /// The experiment of a recipe of these parts and of a workload. What it begins as has the same workload,
    /// or one of its own where something of it was chosen otherwise.
    fn experiment(&self, recipe: &Recipe, workload: AnyResolved) -> Result<AnyExperiment, Diagnostics> {
        let OwnParts { machine, scheme, before } = self;
        let same = |other: &Recipe, parts: &OwnParts| {
            let Recipe { workload, choice, .. } = recipe;
            let unlimited = Choice { most_bytes: other.choice.most_bytes, ..choice.clone() };
            let named = workload.name().is_some() && workload.name() == other.workload.name();
            named && unlimited == other.choice && demands(&*scheme.built) == demands(&*parts.scheme.built)
        };
        let shared = before.as_ref().map(|parts| (parts, workload.clone()));
        recipe.of_parts(machine.0.clone(), workload, (**scheme).clone(), |recipe| match shared {
            Some((parts, workload)) if same(recipe, parts) => parts.experiment(recipe, workload),
            _ => recipe.build_any(),
        })
    }
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
    known_parts: KnownParts,
    /// Most bytes that a point may hold: what this host has.
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
            known_parts: KnownParts::default(),
            most_bytes: Memory::of_host().total_bytes,
        }
    }
}

/// Bytes of contents that are kept for the runs; others are made again.
const KEPT_BYTES: u64 = 96 << 20;

/// Bytes of a content beside its buffers: its plan. Chosen.
const PLAN_BYTES: u64 = 16 << 10;

/// Machines, schemes and workloads that are remembered, at most. Points keep their machine and scheme for
/// their run as long as no more than these were loaded. Chosen: of machines they are some 25 MB.
const REMEMBERED: usize = 1024;

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

/// Machines and schemes by what they are called and how they are changed.
#[derive(Debug, Default)]
struct KnownParts {
    machines: BTreeMap<String, KeyedMachine>,
    schemes: BTreeMap<String, Arc<SchemeConfig>>,
    /// How many were loaded so far.
    loaded: usize,
    /// Recipes that were looked at, twins and wrong ones too.
    added: u64,
}

impl KnownParts {
    /// What is given as a value has no name to be remembered by: a number that is used once.
    fn named(&self, name: Option<&str>) -> String {
        name.map_or_else(|| format!("\0{}", self.added), str::to_owned)
    }

    /// The machine of a recipe.
    fn machine(&mut self, recipe: &Recipe, workload: Option<&Workload>) -> Result<KeyedMachine, Diagnostics> {
        let changes = (recipe.settings(workload), &recipe.machine_set);
        let told = format!("{} {changes:?}", self.named(recipe.machine_for(workload).name()));
        let machine = known(&mut self.machines, told, || {
            self.loaded += 1;
            let machine = recipe.load_machine(workload)?;
            let text = key::of_machine(&machine);
            Ok(Arc::new((machine, text)))
        });
        machine.cloned()
    }

    /// The scheme of a recipe.
    fn scheme(
        &mut self,
        recipe: &Recipe,
        workload: Option<&Workload>,
        compute: Compute,
    ) -> Result<Arc<SchemeConfig>, Diagnostics> {
        let told = format!("{} {:?} {compute}", self.named(recipe.scheme_for(workload).name()), recipe.scheme_set);
        let scheme = known(&mut self.schemes, told, || {
            self.loaded += 1;
            Ok(Arc::new(recipe.load_scheme(workload, compute)?))
        });
        scheme.cloned()
    }
}

impl Batch {
    /// Resolves an experiment and adds it, unless it is there already: its number.
    ///
    /// # Errors
    /// Everything that is wrong with its machine, scheme and workload.
    pub fn add(&mut self, label: &str, work: u64, mut recipe: Recipe) -> Result<usize, Diagnostics> {
        let Batch { points, contents, kept, keys, known_contents, workloads, known_parts, most_bytes } = self;
        let mut faults = recipe.faults.clone();
        let mut keep = |found: Diagnostics| faults.0.extend(found.0);
        known_parts.added += 1;
        let workload_name = known_parts.named(recipe.workload.name());
        let workload = known(workloads, workload_name.clone(), || recipe.load_workload());
        let of = workload.as_ref().ok().copied();
        let machine = known_parts.machine(&recipe, of);
        let machine = machine.map_err(|found| keep(recipe.advised(found, workload.as_ref().ok().copied()))).ok();
        let compute = machine.as_ref().map_or(Compute::Gpu, |machine| machine.0.compute());
        let scheme = known_parts.scheme(&recipe, of, compute).map_err(&mut keep).ok();
        recipe.choice.most_bytes.get_or_insert(*most_bytes);
        let demands_of = |scheme: &SchemeConfig| demands(&*scheme.built);
        let demands = scheme.as_deref().map_or_else(Demands::default, demands_of);
        let told = format!("{workload_name} {:?} {demands:?}", recipe.choice);
        let content = match known_contents.get(&told) {
            Some(&at) => Some(at),
            None => {
                let resolved = workload.and_then(|workload| recipe.resolve(workload, scheme.as_deref()));
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
        // No experiment is built yet: what it would begin with is asked of its parts.
        let caches = machine.0.cache_bytes();
        if let Some(most) = recipe.choice.most_bytes {
            let servers = machine.0.cpu().map_or(1, |machine| machine.spec.nodes.servers);
            let filled = contents[content].filled.saturating_mul(servers.into());
            begins_within(most, caches, filled)?;
        }
        let before = match &recipe.fork {
            // Looked up as parts of another recipe: one that is a value has a number of its own.
            Some((_, before)) => {
                known_parts.added += 1;
                let machine = known_parts.machine(before, of)?;
                let scheme = known_parts.scheme(before, of, machine.0.compute())?;
                Some(Box::new(OwnParts { machine, scheme, before: None }))
            }
            None => None,
        };
        let parts = OwnParts { machine, scheme, before };
        let mut key = parts.key(&recipe, &contents[content].hash);
        if recipe.scheme_for(of).name().is_none() {
            // What such a scheme does, its name and parameters do not tell.
            key += &format!("-{}", known_parts.added);
        }
        if let Some(&twin) = keys.get(&key) {
            return Ok(twin);
        }
        keys.insert(key.clone(), points.len());
        let parts = (known_parts.loaded <= REMEMBERED).then_some(parts);
        points.push(Point { key, label: label.to_owned(), work, recipe, content, parts, caches });
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
        let Point { recipe, key, label, content, parts, .. } = &self.points[point];
        let workload = self.workload(point)?;
        let kept = self.contents[*content].resolved.is_some();
        let parts = match parts {
            // What was kept is what the key is of.
            Some(parts) if kept => return parts.experiment(recipe, workload),
            Some(parts) => parts,
            None => &OwnParts::load(recipe)?,
        };
        // What was read again may be something else by now.
        if !key.starts_with(&parts.key(recipe, &key::of_content(&workload))) {
            let message = "a machine, scheme or workload file was changed while the sweep ran: start it again";
            return Err(Diagnostic::nowhere(label, message).into());
        }
        parts.experiment(recipe, workload)
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
            "machine" | "scheme" | "profile" | "seed" | "instrument" | "flag_barrier" | "loop_log" | "reload"
            | "max_cycles" | "kernels" | "opcodes" | "roi" => [format!("--{}", key.replace('_', "-")), value],
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Experiment;

    #[test]
    fn a_machine_file_that_changes_after_planning_changes_no_point() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mine.toml");
        let write = |t_cl_ns: u32| {
            let text = "inherits = \"agpm-table4\"\nname = \"mine\"\n[dram]\n";
            std::fs::write(&file, format!("{text}t_cl_ns = {{ value = {t_cl_ns}, source = \"mine\" }}\n")).unwrap();
        };
        write(21);
        let recipe = || Experiment::of("vecadd").profile("ci").machine(file.to_str().unwrap());
        let mut batch = Batch::default();
        let forked = recipe().set("dram.t_cl_ns", 40).fork_from(500, recipe());
        for recipe in [recipe(), forked] {
            batch.add("a point", 1, recipe).unwrap_or_else(|faults| panic!("{faults}"));
        }
        write(22);
        let experiment = |point| batch.experiment(point).unwrap_or_else(|faults| panic!("{faults}"));
        let t_cl_ns = |of: &Experiment| of.machine.spec.dram.t_cl_ns.ps / 1000;
        assert_eq!(t_cl_ns(experiment(0).gpu().unwrap()), 21);
        let forked = experiment(1);
        let forked = forked.gpu().unwrap();
        assert_eq!((t_cl_ns(forked), t_cl_ns(&forked.fork.as_ref().unwrap().before)), (40, 21));
        // Where there is no room to keep what was read, the file is read again, and is another.
        batch.points.iter_mut().for_each(|point| point.parts = None);
        let told = [0, 1].map(|point| batch.experiment(point).unwrap_err().to_string());
        assert!(told.iter().all(|told| told.contains("was changed while the sweep ran")), "{told:?}");
    }
}
