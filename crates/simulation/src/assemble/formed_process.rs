//! A process as a scheme of recoverable regions runs it: its code formed into regions, and the checkpoints
//! that it begins with.
//!
//! Each hart has [`SLOTS_BYTES`] of checkpoints: a slot of 8 bytes for `fcsr`, one for each register by its
//! number, one for the program counter, one for the step of the system that its last call returned behind. A
//! hart whose program counter there is 0 runs no thread. Source: LightWSP, section III-C (slots by register
//! number).
//! Invariant: hart 0 begins at the program's entry, so that a power failure before its first boundary
//! restarts the program.

use std::sync::Arc;

use durawarp_riscv::instruction::SP;
use durawarp_riscv::process::Process;
use durawarp_riscv::regions::{COMPLETE, PC_SLOT, RegionTable, SLOTS_BYTES};

/// The code's regions, and what harts' checkpoints begin with.
#[derive(Debug, Clone)]
pub struct FormedProcess {
    /// The code.
    pub table: Arc<RegionTable>,
    /// Checkpoints of all harts of the machine, one hart behind the other.
    pub checkpoints: Vec<u8>,
}

impl FormedProcess {
    /// A formed process, with the checkpoints that `harts` harts start from.
    pub fn new(table: RegionTable, process: &Process, harts: u32) -> FormedProcess {
        let mut checkpoints = vec![0; SLOTS_BYTES as usize * harts as usize];
        let mut store =
            |slot: usize, value: u64| checkpoints[8 * slot..8 * slot + 8].copy_from_slice(&value.to_le_bytes());
        store(SP.into(), process.stack_pointer);
        store(PC_SLOT, process.image.entry | COMPLETE);
        FormedProcess { table: Arc::new(table), checkpoints }
    }
}
