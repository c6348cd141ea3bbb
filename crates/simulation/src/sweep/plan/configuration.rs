//! A point with everything that it resolves to, by key, so that points can be compared.
//!
//! Invariant: what has the same value has the same text here, however it was given; what does not apply to
//! the point (the barrier of a log that its scheme does not keep) is not there. Left out: names of machines
//! and what their files call schemes, contents of buffers.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Plan;
use crate::config::derived::Derived;
use durawarp_base::diagnostic::Diagnostics;

/// Whether kernels run with undo logging: it follows from the scheme and the workload.
pub(crate) const UNDO_LOGS: &str = "undo logs";

/// What a point resolves to.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// Every parameter of machine, scheme and workload, what runs, and how it is instrumented.
    pub values: BTreeMap<String, Value>,
    /// What follows from the machine's parameters.
    pub derived: Vec<Derived>,
}

impl Plan {
    /// What a point resolves to.
    ///
    /// # Errors
    /// A file that it needs is not what it was.
    pub fn configuration(&self, point: usize) -> Result<Configuration, Diagnostics> {
        let recipe = self.batch.recipe(point);
        let (machine, scheme) = recipe.load_own_parts()?;
        let told = self.batch.workload(point)?.describe();
        let mut values = machine.values();
        values.extend(scheme.values.clone());
        let mut put = |key: &str, value: Value| values.insert(key.to_owned(), value);
        put("scheme", scheme.built.name().into());
        put("workload", told.workload.into());
        put("profile", told.profile.into());
        put("seed", told.seed.into());
        for (name, value) in &told.params {
            put(&format!("params.{name}"), serde_json::to_value(value).unwrap_or_default());
        }
        for (name, path) in &recipe.choice.inputs {
            put(&format!("inputs.{name}"), path.display().to_string().into());
        }
        put(UNDO_LOGS, told.instrument.is_some_and(|settings| settings.logs).into());
        if let Some(settings) = told.instrument {
            // Room for logs is made whether they are kept or not.
            put("instrument", settings.mode.to_string().into());
            put("loop_log", settings.loop_log.into());
            put("reload", settings.reload.into());
            if settings.logs {
                put("flag_barrier", serde_json::to_value(settings.flag_barrier).unwrap_or_default());
            }
        }
        Ok(Configuration { values, derived: machine.derived() })
    }
}
