//! Whose an override is, and whether its owner takes the value.
//!
//! The first word of a key names its owner: a table of the machine, or the table of a scheme. The names of
//! these never collide (a test holds it). Left out: the parameters of workloads (`params.`), which the
//! workload looks at itself.

use serde_json::Value;

use super::machine::MachineConfig;
use super::scheme::SchemeConfig;
use crate::diagnostic::Diagnostics;
use crate::document::Override;
use crate::schemes::catalogue;

impl Override {
    /// It belongs to a scheme, not to the machine.
    pub fn is_of_a_scheme(&self) -> bool {
        self.key.contains('.') && catalogue::entries().iter().any(|entry| entry.table() == self.table())
    }

    /// The value in the key's unit, if a machine or a scheme has the key and takes the value; not whether
    /// that goes with others.
    ///
    /// # Errors
    /// What is wrong, without a place, and what may have been meant.
    pub fn check(&self) -> Result<Value, Diagnostics> {
        if self.is_of_a_scheme() { SchemeConfig::check(self) } else { MachineConfig::check(self) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::MachineSpec;

    #[test]
    fn the_first_word_says_whose_it_is() {
        let of = |text: &str| Override::parse(text).map(|over| over.is_of_a_scheme());
        assert_eq!(of("nt_store.x=1"), Ok(true));
        assert_eq!(of("l2.slice_kb=1"), Ok(false));
        assert_eq!(of("strict=1"), Ok(false), "a table is no key");
        assert!(of("l2.slice_kb").is_err());
    }

    #[test]
    fn no_scheme_is_called_like_a_table_of_the_machine_or_the_parameters_of_workloads() {
        for entry in catalogue::entries() {
            let table = entry.table();
            assert!(table != "params" && MachineSpec::TABLES.iter().all(|(name, _)| *name != table), "{table}");
        }
    }
}
