//! Which of a machine's numbers matter: each that has no source of its own, halved and doubled, over many
//! workloads.
//!
//! ```text
//! machine ─ numbers without a source ─┐
//! workloads ──────────────────────────┴> runs: as it is; each number halved; each doubled ─ batch ─> effects
//! ```
//! One number is changed at a time, so that what two of them do together is not seen. A change is of cycles,
//! relative to the machine as it is. Invariants: every number of the machine is in the result, with its
//! effects or with why it has none; a value that the machine does not take is told, not bent. Left out: words
//! (policies), numbers of schemes.

mod effect;

use serde_json::Value;

use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_machine::energy::is_beside_time;
use durawarp_simulation::config::{AnyMachine, Compute, Override, has_tensor_cores};
use durawarp_simulation::run::Recipe;
use durawarp_simulation::sweep::Batch;
use durawarp_workload::Workload;

pub use effect::{Change, Effect, Sensitivity, Spread};

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// Machine: a name or a file.
    pub machine: String,
    /// Changes to it: what is varied around them.
    pub machine_set: Vec<Override>,
    /// Scheme: a name or a file.
    pub scheme: String,
    /// Changes to it.
    pub scheme_set: Vec<Override>,
    /// Workloads, by names or paths; none for all that are built in.
    pub workloads: Vec<String>,
    /// Size of the problems, of workloads that have it.
    pub profile: String,
    /// Seed of every random content.
    pub seed: u64,
    /// Vary every number, not only those without a source.
    pub all: bool,
    /// Vary these keys only, where any are named.
    pub keys: Vec<String>,
}

/// What becomes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Factor {
    /// Half of it; of whole numbers the next lower one, of others three decimals.
    Halved,
    /// Twice it.
    Doubled,
}

impl Factor {
    /// Both.
    pub const ALL: [Factor; 2] = [Factor::Halved, Factor::Doubled];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Factor::Halved => "halved",
            Factor::Doubled => "doubled",
        }
    }

    /// The changed number, as it is typed; `None` where nothing changes.
    fn of(self, value: &Value) -> Option<String> {
        if let Some(whole) = value.as_u64() {
            let changed = match self {
                Factor::Halved => whole / 2,
                Factor::Doubled => whole.checked_mul(2)?,
            };
            return (changed != whole && changed > 0).then(|| changed.to_string());
        }
        let number = value.as_f64().filter(|number| *number != 0.0)?;
        let changed = if self == Factor::Halved { number / 2.0 } else { number * 2.0 };
        // Times are whole picoseconds.
        Some(((changed * 1e3).floor() / 1e3).to_string())
    }
}

/// A number of the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    /// `table.key`.
    pub key: String,
    /// Its value, in the key's unit.
    pub value: Value,
    /// Whose it is.
    pub source: String,
    /// Halved and doubled.
    pub variants: [Variant; 2],
}

/// A number, changed.
#[derive(Debug, Clone, PartialEq)]
pub enum Variant {
    /// What it is set to, and the point of each workload.
    Runs(String, Vec<usize>),
    /// Why it is not run.
    Not(String),
}

/// Everything that is to be run.
#[derive(Debug)]
pub struct Plan {
    machine: String,
    scheme: String,
    profile: String,
    workloads: Vec<String>,
    numbers: Vec<Number>,
    base: Vec<usize>,
    batch: Batch,
}

impl Plan {
    /// Looks everything up.
    ///
    /// # Errors
    /// Everything that is wrong with the machine, the scheme, the workloads and the keys.
    pub fn new(request: &Request) -> Result<Self, Diagnostics> {
        let mut faults = Diagnostics::default();
        let mut keep = |found: Diagnostics| faults.0.extend(found.0);
        let all = match Compute::of(&request.machine) {
            Compute::Gpu => Workload::builtin,
            Compute::Cpu => Workload::builtin_of_cpus,
        };
        // Of the built-in ones those that the machine can run.
        let tensor = has_tensor_cores(&request.machine);
        let runs = |name: &String| tensor || Workload::load(name).is_ok_and(|workload| !workload.needs_tensor_cores());
        let builtin = || all().into_iter().map(|listing| listing.name).filter(runs).collect();
        let workloads = if request.workloads.is_empty() { builtin() } else { request.workloads.clone() };
        let loaded: Vec<_> = workloads.iter().filter_map(|name| Workload::load(name).map_err(&mut keep).ok()).collect();
        let machine = AnyMachine::load(&request.machine, &request.machine_set).map_err(&mut keep).ok();
        let (Some(machine), true) = (machine, loaded.len() == workloads.len()) else { return Err(faults) };
        let recipe = |at: usize, over: Option<Override>| {
            let changes = request.machine_set.iter().chain(&request.scheme_set).cloned().chain(over);
            let recipe = Recipe::of(&workloads[at]).machine(&request.machine).scheme(&request.scheme);
            let recipe = changes.fold(recipe.seed(request.seed).reference(false), Recipe::change);
            if loaded[at].has_profile(&request.profile) { recipe.profile(&request.profile) } else { recipe }
        };
        let (mut batch, mut base) = (Batch::default(), Vec::new());
        for (at, workload) in workloads.iter().enumerate() {
            match batch.add(workload, 0, recipe(at, None)) {
                Ok(point) => base.push(point),
                Err(found) => {
                    keep(found);
                    // The scheme's faults are the same for all.
                    return Err(faults);
                }
            }
        }
        let numbers = chosen(request, &machine)?;
        let numbers = numbers.into_iter().map(|(key, value, source)| {
            // A value that the machine does not take is a result, with its reason, and no fault of the
            // request.
            let variants = Factor::ALL.map(|factor| {
                if is_beside_time(&key) {
                    return Variant::Not("no cycle follows from it".to_owned());
                }
                let Some(typed) = factor.of(&value) else {
                    return Variant::Not(format!("{value} cannot be {}", factor.name()));
                };
                let over = Override { key: key.clone(), value: typed.clone() };
                let mut points = Vec::new();
                for (at, workload) in workloads.iter().enumerate() {
                    let label = format!("{workload} {key}={typed}");
                    match batch.add(&label, 0, recipe(at, Some(over.clone()))) {
                        Ok(point) => points.push(point),
                        Err(found) => return Variant::Not(format!("{typed}: {}", first(&found))),
                    }
                }
                Variant::Runs(typed, points)
            });
            Number { key, value, source, variants }
        });
        let numbers = numbers.collect();
        let (machine, scheme, profile) = (machine.name().to_owned(), request.scheme.clone(), request.profile.clone());
        Ok(Plan { machine, scheme, profile, workloads, numbers, base, batch })
    }

    /// The runs.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }
}

/// The numbers to vary: key, value, source.
fn chosen(request: &Request, machine: &AnyMachine) -> Result<Vec<(String, Value, String)>, Diagnostics> {
    let values = machine.values();
    let mut faults = Diagnostics::default();
    for key in request.keys.iter().filter(|key| !values.contains_key(*key)) {
        let message = format!("`{}` has no parameter `{key}`", machine.name());
        let fault = Diagnostic::nowhere("--keys", message);
        faults.push(fault.with_nearest(key, values.keys().map(String::as_str)));
    }
    for key in request.keys.iter().filter(|key| values.get(*key).is_some_and(|value| !value.is_number())) {
        faults.push(Diagnostic::nowhere("--keys", format!("`{key}` is not a number: there is no half of it")));
    }
    let unsourced: Vec<&str> = machine.assumptions().into_iter().map(|(key, _)| key).collect();
    let is_asked_for = |key: &String| match request.keys.is_empty() {
        true => request.all || unsourced.contains(&key.as_str()),
        false => request.keys.contains(key),
    };
    let asked = values.into_iter().filter(|(key, value)| value.is_number() && is_asked_for(key));
    let with_source = |(key, value): (String, Value)| {
        let source = machine.sources().get(&key).cloned().unwrap_or_default();
        (key, value, source)
    };
    faults.into_result(asked.map(with_source).collect())
}

/// The first fault in a few words.
fn first(faults: &Diagnostics) -> String {
    faults.0.first().map_or_else(String::new, |fault| fault.message.clone())
}

#[cfg(test)]
mod tests;
