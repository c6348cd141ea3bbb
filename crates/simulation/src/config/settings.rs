//! What was typed as `--set`, by whom it is for: the machine, schemes, or the workload's parameters.

use super::{Override, is_of_a_scheme};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};

/// Everything that was set.
#[derive(Debug, Default)]
pub struct Settings {
    /// For the machine, and what is for nobody: reading the machine tells.
    pub machine: Vec<Override>,
    /// For schemes.
    pub schemes: Vec<Override>,
    /// For the workload: name and value.
    pub params: Vec<(String, String)>,
    /// What could not be read.
    pub faults: Diagnostics,
}

impl Settings {
    /// Tells them apart.
    pub fn read(set: &[String]) -> Self {
        let mut settings = Settings::default();
        for text in set {
            match Override::parse(text) {
                Ok(over) if is_of_a_scheme(&over) => settings.schemes.push(over),
                Ok(over) => match over.key.strip_prefix("params.") {
                    Some(name) => settings.params.push((name.to_owned(), over.value)),
                    None => settings.machine.push(over),
                },
                Err(message) => settings.faults.push(Diagnostic::nowhere("--set", message)),
            }
        }
        settings
    }
}
