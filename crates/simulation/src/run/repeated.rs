//! From a result to the recipe of its run.
//!
//! An outcome holds every parameter that it was made with. What it does not hold is refused or left to the
//! caller: workloads that are not built in are found by name only, contents of files are not in it, and of
//! arguments of a program of CPUs it does not tell which are those of the manifest.

use serde_json::Value;

use super::{Experiment, Recipe};
use crate::config::presets;
use crate::config::presets::{DEFAULT_CPU_MACHINE, DEFAULT_MACHINE};
use crate::outcome::{End, Outcome};
use durawarp_base::diagnostic::Diagnostic;
use durawarp_base::document::Override;

/// The recipe of the run that an outcome is of.
pub fn recipe_of(outcome: &Outcome) -> Recipe {
    let word = |key: &str| outcome.workload[key].as_str().unwrap_or_default().to_owned();
    let fallback = if outcome.is_of_a_cpu() { DEFAULT_CPU_MACHINE } else { DEFAULT_MACHINE };
    // All parameters follow, so that it does not matter which machine they change.
    let machine = presets::names().find(|name| *name == outcome.machine.name).unwrap_or(fallback);
    let mut recipe = Experiment::of(word("workload")).machine(machine).scheme(&outcome.scheme);
    recipe = recipe.seed(outcome.workload["seed"].as_u64().unwrap_or(0));
    let profile = word("profile");
    if !profile.is_empty() {
        recipe = recipe.profile(&profile);
    }
    for (name, value) in outcome.workload["params"].as_object().into_iter().flatten() {
        recipe = recipe.param(name, text(value));
    }
    for (key, value) in outcome.workload["instrument"].as_object().into_iter().flatten() {
        if ["mode", "flag_barrier", "loop_log", "reload"].contains(&key.as_str()) {
            let key = if key == "mode" { "instrument" } else { key };
            recipe = recipe.set(key, text(value));
        }
    }
    let all = outcome.machine.parameters.iter().chain(&outcome.scheme_parameters);
    for (key, parameter) in all {
        recipe = recipe.change(Override { key: key.clone(), value: text(&parameter.value) });
    }
    if outcome.from_checkpoint.is_some() {
        let message = "the result is of a run whose parameters changed on the way, and has those after it only";
        recipe = recipe.fault(Diagnostic::nowhere("from_checkpoint", message));
    }
    if let Some(region) = &outcome.region {
        recipe = recipe.set("roi", &region.of);
    }
    // One that was sampled is sampled again, and one that was cut is cut again.
    recipe = recipe.sample(outcome.sampling.as_ref().map(|sampling| sampling.windows));
    recipe.max_cycles(matches!(outcome.end, End::Cut { .. }).then_some(outcome.time.core_cycles))
}

/// A value as it is typed.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
