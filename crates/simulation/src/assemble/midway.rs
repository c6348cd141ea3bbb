//! What a machine of cores begins with that begins in the middle of a program: a process of one thread, and
//! caches and branch predictor as instructions before have left them.
//!
//! ```text
//!   functional driver ── memory, registers, system calls ──> controllers, core 0, OS
//!                     ── last use of each line ────────────> L1 of core 0 and home slices, in the order of uses
//!                     ── last branches ────────────────────> predictor of hart 0
//! ```
//! Caches that replace the least recently used line hold then what they would hold: of a line its last use
//! alone matters. Source: Barr, Pan, Zhang, Asanovic, *Accelerating Multiprocessor Simulation with a Memory
//! Timestamp Record*, ISPASS 2005. Invariants: the shared cache is inclusive; memory has the bytes of every
//! line. Not warmed: open rows, queues, DRAM caches, handlers of the scheme. Not exact: lines that a later
//! miss of the L1 alone would have kept recent in the shared cache; other policies of replacement; a line
//! that was written back, and read again, counts as changed still.

use durawarp_machine::address::Interleave;
use durawarp_machine::coherence::CPU_LINE_BYTES;
use durawarp_machine::core::Core;
use durawarp_machine::cpu::CpuMemory;
use durawarp_machine::home::HomeSlice;
use durawarp_riscv::hart_state::HartState;
use durawarp_riscv::memory::Memory;
use durawarp_riscv::syscalls::Os;

/// A process of one thread, on hart 0, between two instructions.
#[derive(Debug, Clone, Copy)]
pub struct Midway<'a> {
    pub memory: &'a Memory,
    /// What system calls have done.
    pub os: &'a Os,
    pub hart: &'a HartState,
    /// Nanoseconds since the process began.
    pub now_ns: u64,
    /// Virtual addresses of lines, that of the oldest last use first, and whether memory may lack its bytes.
    pub lines: &'a [(u64, bool)],
    /// Addresses and outcomes of branches, the oldest first.
    pub branches: &'a [(u64, bool)],
    /// Instructions after which core 0 halts the simulation, in rising order.
    pub halt_at: &'a [u64],
}

impl Midway<'_> {
    /// Brings the first core to where the process is.
    pub(super) fn begin(&self, core: &mut Core) {
        core.begin(0, self.hart.clone());
        core.warm_predictor(0, self.branches.iter().copied());
        core.halt_at(self.halt_at);
    }

    /// Fills the first core's L1 and the home slices.
    pub(super) fn warm(&self, core: &mut Core, homes: &mut [HomeSlice], map: Interleave, memory: CpuMemory) {
        let home_of = |line| map.slice_of(line) as usize;
        for &(address, changed) in self.lines {
            let bytes = self.memory.read(address, CPU_LINE_BYTES as usize).and_then(|bytes| bytes.first_chunk());
            let line = memory.physical(address, CPU_LINE_BYTES);
            let (Some(bytes), Some(line)) = (bytes, line) else { unreachable!("{address:#x} is no line of a window") };
            if let Some(left) = homes[home_of(line)].warm_line(line, bytes, 0, changed) {
                core.lose_line(left);
            }
            if let Some((left, true)) = core.warm_line(line, bytes, changed) {
                homes[home_of(left)].take_back(left);
            }
        }
    }
}
