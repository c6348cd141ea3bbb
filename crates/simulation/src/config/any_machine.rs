//! A machine of either kind, where what computes in it does not matter: commands about configurations,
//! recipes before the workload is known.

use std::collections::BTreeMap;

use serde_json::Value;

use super::compute::Compute;
use super::derived::Derived;
use super::device::{Devices, tables};
use super::machine::{CpuMachine, MachineConfig};
use durawarp_base::diagnostic::Diagnostics;
use durawarp_base::document::{Override, Setting};

/// A machine with a GPU or with CPU cores, resolved.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyMachine {
    /// With a GPU.
    Gpu(Box<MachineConfig>),
    /// With CPU cores.
    Cpu(Box<CpuMachine>),
}

impl From<MachineConfig> for AnyMachine {
    fn from(machine: MachineConfig) -> Self {
        AnyMachine::Gpu(Box::new(machine))
    }
}

impl From<CpuMachine> for AnyMachine {
    fn from(machine: CpuMachine) -> Self {
        AnyMachine::Cpu(Box::new(machine))
    }
}

/// The same expression of either machine.
macro_rules! of_either {
    ($any:expr, $machine:ident => $body:expr) => {
        match $any {
            AnyMachine::Gpu($machine) => $body,
            AnyMachine::Cpu($machine) => $body,
        }
    };
}

impl AnyMachine {
    /// The machine called `name_or_path` (a built-in name, or a `.toml` file), with overrides applied.
    ///
    /// # Errors
    /// All faults of the file and of the overrides, each with its place.
    pub fn load(name_or_path: &str, overrides: &[Override]) -> Result<Self, Diagnostics> {
        Self::load_with(name_or_path, &[], overrides)
    }

    /// The same with what a program of CPUs sets of its machine; machines with a GPU are not for it anyway.
    pub(crate) fn load_with(
        name_or_path: &str,
        settings: &[Setting],
        overrides: &[Override],
    ) -> Result<Self, Diagnostics> {
        Ok(match Compute::of(name_or_path) {
            Compute::Gpu => MachineConfig::load(name_or_path, overrides)?.into(),
            Compute::Cpu => CpuMachine::read_with(name_or_path, settings, overrides)?.into(),
        })
    }

    /// What computes in it.
    pub fn compute(&self) -> Compute {
        match self {
            AnyMachine::Gpu(_) => Compute::Gpu,
            AnyMachine::Cpu(_) => Compute::Cpu,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        of_either!(self, machine => &machine.name)
    }

    /// One line about it.
    pub fn description(&self) -> &str {
        of_either!(self, machine => &machine.description)
    }

    /// Where each number comes from, by `table.key`.
    pub fn sources(&self) -> &BTreeMap<String, String> {
        of_either!(self, machine => &machine.sources)
    }

    /// As [`MachineConfig::assumptions`].
    pub fn assumptions(&self) -> Vec<(&str, &str)> {
        of_either!(self, machine => machine.assumptions())
    }

    /// As [`MachineConfig::to_toml`].
    pub fn to_toml(&self) -> String {
        of_either!(self, machine => machine.to_toml())
    }

    /// Every parameter by `table.key`.
    pub fn values(&self) -> BTreeMap<String, Value> {
        of_either!(self, machine => machine.values())
    }

    /// Every parameter, table by table.
    pub fn tables(&self) -> Value {
        of_either!(self, machine => serde_json::to_value(&machine.spec).unwrap_or_default())
    }

    /// The value of `table.key` as text, for tables.
    pub fn value_of(&self, table: &str, key: &str) -> String {
        of_either!(self, machine => machine.value_of(table, key))
    }

    /// What follows from its parameters, of each kind always the same quantities in the same order.
    pub(crate) fn derived(&self) -> Vec<Derived> {
        of_either!(self, machine => machine.derived())
    }

    /// Its memory devices: the DRAM's and the NVM's, `None` for plain ones.
    pub fn devices(&self) -> &Devices {
        of_either!(self, machine => &machine.devices)
    }

    /// What each bit of an address decides, a line each.
    pub fn mapping_bits(&self) -> Vec<String> {
        of_either!(self, machine => machine.spec.address_map(tables(&machine.devices)))
            .map_or_else(|_| Vec::new(), |map| map.bits())
    }

    /// Bytes that its caches take of the host.
    pub fn cache_bytes(&self) -> u64 {
        match self {
            AnyMachine::Gpu(machine) => machine.spec.cache_bytes(),
            AnyMachine::Cpu(machine) => machine.spec.cache_bytes(),
        }
    }

    /// The machine, if it has a GPU.
    pub fn gpu(&self) -> Option<&MachineConfig> {
        match self {
            AnyMachine::Gpu(machine) => Some(machine),
            AnyMachine::Cpu(_) => None,
        }
    }

    /// The machine, if it has CPU cores.
    pub fn cpu(&self) -> Option<&CpuMachine> {
        match self {
            AnyMachine::Cpu(machine) => Some(machine),
            AnyMachine::Gpu(_) => None,
        }
    }
}
