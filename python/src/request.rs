//! From keys and values to the recipe of an experiment.

use std::path::PathBuf;

use durawarp::sweep::host::Memory;
use durawarp::{Experiment, Recipe};
use pyo3::prelude::*;

/// The profile where many runs or much judging follow and none is named, as on the command line.
const SMALL: &str = "ci";

/// What is simulated, as plain data.
#[derive(Debug, Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Request {
    /// Keys of [`Recipe::set`] in order, `workload` the first.
    keys: Vec<(String, String)>,
    /// Arguments of a program of CPUs.
    args: Vec<String>,
    /// Every buffer in persistent memory.
    persistent: bool,
    /// Compare with the functional driver.
    pub(crate) reference: bool,
    /// In the profile `ci`, if the workload has it and none is named.
    small: bool,
}

impl Request {
    /// The recipe.
    pub(crate) fn recipe(&self) -> Recipe {
        let recipe = of_keys(&self.keys).args(&self.args).persistent(self.persistent).reference(self.reference);
        let recipe = recipe.most_bytes(Memory::of_host().total_bytes);
        if self.small { recipe.profile_if_any(SMALL) } else { recipe }
    }

    /// The value of a key, if it is set.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        self.keys.iter().rev().find(|(own, _)| own == key).map(|(_, value)| value.as_str())
    }
}

/// The recipe of these keys.
pub(crate) fn of_keys(keys: &[(String, String)]) -> Recipe {
    keys.iter().fold(Experiment::of(""), |recipe, (key, value)| recipe.set(key, value))
}

/// How many runs go on at a time.
#[derive(Debug, Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Work {
    /// 0 for one a core.
    pub(crate) jobs: usize,
    /// Memory that they may need together.
    pub(crate) memory_gib: Option<u64>,
    /// Folder of results.
    pub(crate) results: Option<PathBuf>,
    /// One of so many parts of the points, from 0.
    pub(crate) shard: Option<(u32, u32)>,
    /// Points that failed before are not run again.
    pub(crate) keep_failed: bool,
}
