//! What computes in a machine: the SMs of a GPU or CPU cores. A machine has one kind, and a machine file says
//! which: `kind = "cpu"`, or `"gpu"`.
//!
//! A file that says neither is of the kind of the machine that it starts from, and of a GPU when it starts
//! from none. Left out: which programs a kind runs (`workload`) and which schemes it has
//! ([`Scheme::machines`](durawarp_persist::Scheme::machines)).

use std::fmt;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::presets::{CPU_MACHINES, DEFAULT_CPU_MACHINE, DEFAULT_MACHINE, MACHINES};
use durawarp_base::document::{is_path, top_texts};
use durawarp_base::spec::{Key, Megahertz, Picojoules};
use durawarp_machine::MachineSpec;
use durawarp_machine::cpu::CpuSpec;
use durawarp_machine::device::Device;
use durawarp_machine::mapping::AddressMap;
use durawarp_machine::media::{MediaSpec, NvmSpec};

/// What computes in a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compute {
    /// Streaming multiprocessors.
    Gpu,
    /// Out-of-order cores.
    Cpu,
}

impl Compute {
    /// As machine files say it: the first is of files that do not.
    pub const WORDS: [&str; 2] = ["gpu", "cpu"];

    /// As machine files say it.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    /// Name and text of every built-in machine of the kind.
    pub fn builtin(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Compute::Gpu => &MACHINES,
            Compute::Cpu => &CPU_MACHINES,
        }
    }

    /// What `name_or_path` computes with. What cannot be read is taken for a GPU, whose reading tells what is
    /// wrong.
    pub fn of(name_or_path: &str) -> Self {
        Self::of_deep(name_or_path, 0)
    }

    fn of_deep(name_or_path: &str, depth: u32) -> Self {
        const DEEPEST: u32 = 8;
        if !is_path(name_or_path) {
            let cpu = CPU_MACHINES.iter().any(|(name, _)| *name == name_or_path);
            return if cpu { Compute::Cpu } else { Compute::Gpu };
        }
        let Ok(text) = durawarp_base::input::text(Path::new(name_or_path)) else { return Compute::Gpu };
        match top_texts(name_or_path, text, ["kind", "inherits"]) {
            [Some(word), _] => {
                if word == Compute::Cpu.word() {
                    Compute::Cpu
                } else {
                    Compute::Gpu
                }
            }
            [None, Some(base)] if depth < DEEPEST => {
                let beside = Path::new(name_or_path).parent().map(|folder| folder.join(&base));
                let beside = beside.filter(|path| base.ends_with(".toml") && path.exists());
                let base = beside.map_or(base, |path| path.to_string_lossy().into_owned());
                Self::of_deep(&base, depth + 1)
            }
            _ => Compute::Gpu,
        }
    }
}

impl fmt::Display for Compute {
    /// "a GPU", "CPU cores".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compute::Gpu => "a GPU",
            Compute::Cpu => "CPU cores",
        })
    }
}

/// What of a machine's parameters is about its memory devices.
#[derive(Debug)]
pub struct MemorySpecs<'a> {
    pub(super) dram: &'a mut MediaSpec,
    pub(super) nvm: &'a mut NvmSpec,
    /// What a refresh of DRAM costs.
    pub(super) refresh_energy: &'a mut Picojoules,
    pub(super) memory_mhz: Megahertz,
    /// Of a channel's data bus.
    pub(super) bytes_per_cycle: u32,
}

/// The parameters of a machine of one kind.
pub trait ComputeSpec: Clone + fmt::Debug + PartialEq + Serialize + DeserializeOwned + 'static {
    /// Its kind.
    const COMPUTE: Compute;
    /// Every table with its keys, in the order of declaration.
    const TABLES: &'static [(&'static str, &'static [Key])];
    /// Name and text of every built-in machine of the kind.
    const BUILTIN: &'static [(&'static str, &'static str)];
    /// The machine of the kind when none is named.
    const DEFAULT: &'static str;

    /// What is wrong with the values together: the key to blame, and why.
    fn faults(&self) -> Vec<(&'static str, String)>;

    /// What names the memory devices, and what they have to fit.
    fn memory(&mut self) -> MemorySpecs<'_>;

    /// Where addresses lie; devices of DRAM and of NVM are those of tables, where there are any.
    ///
    /// # Errors
    /// The machine cannot have its mapping.
    fn address_map(&self, tables: [Option<&Device>; 2]) -> Result<AddressMap, String>;
}

impl ComputeSpec for MachineSpec {
    const COMPUTE: Compute = Compute::Gpu;
    const TABLES: &'static [(&'static str, &'static [Key])] = MachineSpec::TABLES;
    const BUILTIN: &'static [(&'static str, &'static str)] = &MACHINES;
    const DEFAULT: &'static str = DEFAULT_MACHINE;

    fn faults(&self) -> Vec<(&'static str, String)> {
        self.faults()
    }

    fn memory(&mut self) -> MemorySpecs<'_> {
        let (memory_mhz, bytes_per_cycle) = (self.clock.memory_mhz, self.bus.bytes_per_cycle);
        let refresh_energy = &mut self.energy.dram_refresh_pj;
        MemorySpecs { dram: &mut self.dram, nvm: &mut self.nvm, refresh_energy, memory_mhz, bytes_per_cycle }
    }

    fn address_map(&self, tables: [Option<&Device>; 2]) -> Result<AddressMap, String> {
        self.address_map(tables)
    }
}

impl ComputeSpec for CpuSpec {
    const COMPUTE: Compute = Compute::Cpu;
    const TABLES: &'static [(&'static str, &'static [Key])] = CpuSpec::TABLES;
    const BUILTIN: &'static [(&'static str, &'static str)] = &CPU_MACHINES;
    const DEFAULT: &'static str = DEFAULT_CPU_MACHINE;

    fn faults(&self) -> Vec<(&'static str, String)> {
        self.faults()
    }

    fn memory(&mut self) -> MemorySpecs<'_> {
        let (memory_mhz, bytes_per_cycle) = (self.clock.memory_mhz, self.bus.bytes_per_cycle);
        let refresh_energy = &mut self.energy.dram_refresh_pj;
        MemorySpecs { dram: &mut self.dram, nvm: &mut self.nvm, refresh_energy, memory_mhz, bytes_per_cycle }
    }

    fn address_map(&self, tables: [Option<&Device>; 2]) -> Result<AddressMap, String> {
        self.address_map(tables)
    }
}
