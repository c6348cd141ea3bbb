//! Persistent memory before the program begins.

use crate::run::Finished;
use durawarp_base::sparse;
use durawarp_kernel::memory::{FlatMemory, Medium, NVM_BASE};
use durawarp_machine::cpu::CpuMemory;
use durawarp_persist::{FactKind, Journal, PmImage};
use durawarp_riscv::memory::{MAIN_START, Memory, PM_START};
use durawarp_riscv::process::Process;

/// Lines of persistent memory are aligned to this.
const LINE_BYTES: usize = 128;

/// Persistent memory as a power failure before the first step would leave it.
pub(super) fn initial_image(memory: &FlatMemory) -> PmImage {
    let persistent = || memory.ranges().filter(|(start, _)| Medium::of(*start) == Medium::Nvm);
    let end = persistent().map(|(start, bytes)| start + bytes.len() as u64).max().unwrap_or(NVM_BASE);
    let mut image = PmImage::new(NVM_BASE, vec![0; ((end - NVM_BASE) as usize).next_multiple_of(LINE_BYTES)]);
    for (start, bytes) in persistent() {
        if let Err(outside) = image.write(start, bytes) {
            unreachable!("{outside}, which was measured");
        }
    }
    image
}

/// The same, of all that regions stored to in a run; what is behind the program's own memory is 0.
pub(super) fn covering(memory: &FlatMemory, finished: &Finished) -> PmImage {
    let image = initial_image(memory);
    let facts = finished.journal.iter().flat_map(Journal::facts);
    let stored = facts.filter(|fact| matches!(fact.kind, FactKind::Region(_)) && fact.mask != 0);
    let end = stored.map(|fact| fact.line + LINE_BYTES as u64).max().unwrap_or_default();
    let bytes = end.saturating_sub(image.base()).max(image.bytes().len() as u64) as usize;
    let mut all = PmImage::new(image.base(), vec![0; bytes.next_multiple_of(LINE_BYTES)]);
    sparse::overwrite(&mut all.bytes_mut()[..image.bytes().len()], image.bytes());
    all
}

/// First address and bytes of each window of a process that lies in persistent memory, with where.
fn persistent_windows(memory: &CpuMemory) -> impl Iterator<Item = (u64, usize, u64)> {
    let main = memory.windows.memory_bytes.saturating_sub(MAIN_START);
    let windows = [(MAIN_START, main), (PM_START, memory.windows.pm_bytes)];
    windows.into_iter().filter(|&(_, bytes)| bytes > 0).filter_map(|(start, bytes)| {
        let physical = memory.physical(start, bytes).filter(|&at| Medium::of(at) == Medium::Nvm)?;
        Some((start, bytes as usize, physical))
    })
}

/// The windows of a process as an image has them; what is not persistent is as at the start.
pub(super) fn windows_of(process: &Process, memory: &CpuMemory, image: &PmImage) -> Memory {
    let mut windows = process.memory();
    for (start, bytes, physical) in persistent_windows(memory) {
        if let (Some(place), Ok(survived)) = (windows.slice_mut(start, bytes), image.read(physical, bytes)) {
            sparse::overwrite(place, survived);
        }
    }
    windows
}
