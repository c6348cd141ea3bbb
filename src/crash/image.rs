//! Persistent memory before the program begins.

use crate::kernel::memory::{FlatMemory, Medium, NVM_BASE};
use crate::persist::PmImage;

/// Lines of persistent memory are aligned to this.
pub(super) const LINE_BYTES: usize = 128;

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
