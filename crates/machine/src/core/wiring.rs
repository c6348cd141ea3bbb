//! What a core is made of beside its parameters: its place, its clock, its program.

use std::sync::Arc;

use crate::cpu::CpuMemory;
use crate::ports::Ports;
use durawarp_engine::{Clock, Timebase};
use durawarp_riscv::code::CodeTable;
use durawarp_riscv::elf::Executable;
use durawarp_riscv::regions::RegionTable;

/// What a core is joined with, and what it executes.
#[derive(Debug)]
pub struct CoreWiring {
    /// Number of the core.
    pub index: u16,
    /// Core clock.
    pub clock: Clock,
    /// The machine's tick rate, for clocks that programs read.
    pub timebase: Timebase,
    /// Its ports, and the address mapping.
    pub ports: Ports,
    /// Where the windows of the process lie.
    pub memory: CpuMemory,
    /// The code of the process.
    pub code: Arc<CodeTable>,
    /// Its executable, whose functions are named in faults.
    pub image: Arc<Executable>,
    /// The program formed into regions, and the physical address of the harts' checkpoints, under a scheme
    /// of these.
    pub regions: Option<(Arc<RegionTable>, u64)>,
}
