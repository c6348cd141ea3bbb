//! Whose an override is, and whether its owner takes the value.
//!
//! The first word of a key names its owner: a table of the machine, or the table of a scheme. The names of
//! these never collide (a test holds it). Machines of both kinds have some tables in common. Left out: the
//! parameters of workloads (`params.`), which the workload looks at itself.

use serde_json::Value;

use super::compute::Compute;
use super::machine::{CpuMachine, MachineConfig};
use super::scheme::SchemeConfig;
use durawarp_base::diagnostic::Diagnostics;
use durawarp_base::document::Override;
use durawarp_base::spec::Key;
use durawarp_machine::MachineSpec;
use durawarp_machine::cpu::CpuSpec;
use durawarp_schemes::catalogue;

/// It belongs to a scheme, not to the machine.
pub fn is_of_a_scheme(over: &Override) -> bool {
    over.key.contains('.') && catalogue::entries().iter().any(|entry| entry.table() == over.table())
}

/// The value in the key's unit, if a machine or a scheme has the key and takes the value; not whether that
/// goes with others.
///
/// # Errors
/// What is wrong, without a place, and what may have been meant.
pub fn checked(over: &Override) -> Result<Value, Diagnostics> {
    if is_of_a_scheme(over) {
        return SchemeConfig::check(over);
    }
    match only_of(over) {
        Some(Compute::Cpu) => CpuMachine::check(over),
        _ => MachineConfig::<MachineSpec>::check(over),
    }
}

/// The kind of machines that alone has its key; where none has it, the one that alone has its table.
pub fn only_of(over: &Override) -> Option<Compute> {
    let table = |tables: &[(&str, &[Key])]| tables.iter().any(|(name, _)| *name == over.table());
    let key = |tables: &[(&str, &[Key])]| {
        tables.iter().any(|(table, keys)| keys.iter().any(|key| over.key == format!("{table}.{}", key.name)))
    };
    match ([key(MachineSpec::TABLES), key(CpuSpec::TABLES)], [table(MachineSpec::TABLES), table(CpuSpec::TABLES)]) {
        ([true, false], _) | ([false, false], [true, false]) => Some(Compute::Gpu),
        ([false, true], _) | ([false, false], [false, true]) => Some(Compute::Cpu),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_says_whose_it_is() {
        let of = |text: &str| Override::parse(text).map(|over| is_of_a_scheme(&over));
        assert_eq!(of("nt_store.x=1"), Ok(true));
        assert_eq!(of("l2.slice_kb=1"), Ok(false));
        assert_eq!(of("strict=1"), Ok(false), "a table is no key");
        assert!(of("l2.slice_kb").is_err());
    }

    #[test]
    fn a_key_is_of_one_kind_of_machines_or_of_both() {
        let of = |key: &str| only_of(&Override { key: key.to_owned(), value: "1".to_owned() });
        assert_eq!(of("core.count"), Some(Compute::Cpu));
        assert_eq!(of("core.cuont"), Some(Compute::Cpu), "a table of that kind");
        assert_eq!(of("l2.ways"), Some(Compute::Gpu));
        assert_eq!(of("clock.l2_mhz"), Some(Compute::Gpu), "a table that both have");
        assert_eq!((of("nvm.banks"), of("nvm.banksz"), of("cores")), (None, None, None));
        let checked = |text: &str| super::checked(&Override::parse(text).unwrap()).map_err(|faults| faults.to_string());
        assert_eq!(checked("core.count=4"), Ok(4.into()));
        assert!(checked("core.rob_entres=4").unwrap_err().contains("did you mean `core.rob_entries`?"));
    }

    #[test]
    fn no_scheme_is_called_like_a_table_of_the_machine_or_the_parameters_of_workloads() {
        for entry in catalogue::entries() {
            let table = entry.table();
            let machines = MachineSpec::TABLES.iter().chain(CpuSpec::TABLES);
            assert!(table != "params" && machines.clone().all(|(name, _)| *name != table), "{table}");
        }
    }
}
