//! Recovery by the program's own kernels, which a manifest's `[[recovery]]` runs at boot after a power
//! failure.
//!
//! ```text
//!  survived image ─> PM ranges ─┐
//!  initial contents ─> DRAM ────┴─ functional driver ─> PM ranges ─> recovered image
//! ```
//! DRAM is lost in a power failure: its buffers hold their initial contents again (inputs are loaded again),
//! and every name stands for its own buffer, whatever the program had swapped. Kernels run as they are,
//! without instrumentation, and their persistency operations take no effect here: each write counts as
//! durable before the next, in the order of the functional driver.
//!
//! Invariant: the same image gives the same result. A recovery that faults, deadlocks or goes beyond its
//! limit is an error that names its kernel and line. Not modelled: time, caches, recovery on the timed
//! machine.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::WorkloadHost;
use super::functional::{Action, FunctionalError, drive};
use crate::plan::image::image;
use crate::plan::{ProgramPart, RunPlan};
use durawarp_kernel::functional::{self, Limits, RunError};
use durawarp_kernel::memory::{FlatMemory, Medium};
use durawarp_persist::undo::RecoveryStep;

/// Host writes are durable in pieces of this many bytes, the words that a power failure does not tear.
const WORD: u64 = 8;

/// A program that runs at boot. Shared by all threads that judge.
#[derive(Debug, Clone)]
pub struct Recovery {
    plan: Arc<RunPlan>,
    /// Initial contents of all ranges, shared until the first write.
    ranges: Vec<(u64, Arc<Vec<u8>>)>,
}

impl Recovery {
    pub(crate) fn new(plan: &Arc<RunPlan>) -> Option<Recovery> {
        let ranges = || image(plan).into_ranges().collect();
        (!plan.recovery.is_empty()).then(|| Recovery { plan: plan.clone(), ranges: ranges() })
    }

    /// Warp instructions that it may take.
    pub fn limit(&self) -> u64 {
        self.plan.manifest.recovery.limit
    }

    /// Runs on the bytes of persistent memory from address `base` on, and leaves there what it makes of them.
    /// With `steps`, its writes to persistent memory come back in their order.
    ///
    /// # Errors
    /// The fault of the program, with its kernel and line.
    pub fn run(
        &self,
        base: u64,
        image: &mut [u8],
        warp_size: u32,
        steps: bool,
        stop: Option<&AtomicBool>,
    ) -> Result<Vec<RecoveryStep>, String> {
        let kept = |start: u64| self.ranges.binary_search_by_key(&start, |range| range.0).ok();
        let mut memory =
            FlatMemory::shared(&self.plan.addresses, |start| kept(start).map(|at| self.ranges[at].1.clone()));
        let offset = |start: u64, bytes: usize| (start - base) as usize..(start - base) as usize + bytes;
        // Only persistent memory has survived; DRAM holds its initial contents.
        for (start, bytes) in persistent(&mut memory, &self.plan) {
            bytes.copy_from_slice(&image[offset(start, bytes.len())]);
        }
        let mut told: Vec<RecoveryStep> = Vec::new();
        let mut left = self.limit();
        let mut host = WorkloadHost::for_part(self.plan.clone(), ProgramPart::Recovery, self.limit());
        let mut note = |address: u64, data: &[u8]| {
            if steps && Medium::of(address) == Medium::Nvm {
                told.push(RecoveryStep { address, data: data.into() });
            }
        };
        let done = drive(&mut host, &mut memory, &mut |action, memory| {
            match action {
                Action::Launch(launch) => {
                    let limits = Limits { warp_instructions: left, warp_size, stop, ..Limits::default() };
                    let mut told = |_, address: u64, data: &[u8]| note(address, data);
                    let writes: Option<functional::Writes<'_>> = if steps { Some(&mut told) } else { None };
                    // All launches share one limit, so that a loop of launches ends, too.
                    left -= functional::run_watched(launch, memory, &limits, writes)?.warp_instructions;
                }
                Action::Gathered => {}
                // A second power failure may come between any two words of what the host writes.
                Action::Written(address, bytes) => {
                    let end = address + bytes as u64;
                    let mut at = address;
                    while at < end {
                        let next = (at / WORD * WORD + WORD).min(end);
                        note(at, memory.read(at, (next - at) as usize)?);
                        at = next;
                    }
                }
            }
            Ok(())
        });
        done.map_err(|fault| self.message(fault))?;
        for (start, bytes) in persistent(&mut memory, &self.plan) {
            image[offset(start, bytes.len())].copy_from_slice(bytes);
        }
        Ok(told)
    }

    fn message(&self, fault: FunctionalError) -> String {
        match fault {
            FunctionalError::Kernel(RunError::InstructionLimit { kernel, at, .. }) => {
                format!("recovery does not end: kernel `{kernel}`, {at} (recovery_limit = {})", self.limit())
            }
            FunctionalError::Kernel(RunError::Repeats { kernel, at }) => {
                format!("recovery does not end: kernel `{kernel}` repeats itself for ever, {at}")
            }
            fault => format!("recovery fails: {fault}"),
        }
    }
}

/// The ranges in persistent memory.
fn persistent<'m>(memory: &'m mut FlatMemory, plan: &RunPlan) -> Vec<(u64, &'m mut [u8])> {
    // Other ranges stay shared.
    let in_pm = |start: &u64| Medium::of(*start) == Medium::Nvm;
    let starts: Vec<u64> = plan.addresses.ranges().iter().map(|range| range.start).filter(in_pm).collect();
    memory.some_ranges_mut(&starts)
}
