//! What a program's recovery makes durable, step by step, as the functional driver shows it: where another
//! power failure may cut it off.
//!
//! | sequence | a step | states that its prefixes are |
//! |---|---|---|
//! | stored | a store to persistent memory | every line was written back at once, or caches survive |
//! | cleaned | a line that is cleaned | no line was written back early; a cleaned one was at once |
//!
//! Both are what the promise allows: a line may be written back whenever a cache likes to, and a cleaned line
//! is durable by the next durable fence at the latest. Where caches survive (eADR), only the first is left.
//!
//! Not modelled: other subsets of dirty lines; steps after [`MOST_STEPS`].

use std::collections::BTreeMap;

use durawarp_machine::cpu::CpuMemory;
use durawarp_persist::PmImage;
use durawarp_persist::undo::RecoveryStep;
use durawarp_persist::vocab::Domain;
use durawarp_riscv::functional::Observer;
use durawarp_riscv::memory::MemoryPlace;

/// Steps of a sequence that are kept.
const MOST_STEPS: usize = 1 << 20;

/// Bytes of a line.
const LINE: u64 = 64;

/// An observer of recovery.
#[derive(Debug)]
pub(super) struct DurableSteps<'a> {
    /// What recovery begins with.
    survived: &'a PmImage,
    memory: CpuMemory,
    domain: Domain,
    stored: Vec<RecoveryStep>,
    cleaned: Vec<RecoveryStep>,
    /// Lines of persistent memory that were stored to, as the caches have them.
    lines: BTreeMap<u64, [u8; LINE as usize]>,
}

impl<'a> DurableSteps<'a> {
    /// Nothing yet.
    pub(super) fn new(survived: &'a PmImage, memory: CpuMemory, domain: Domain) -> DurableSteps<'a> {
        DurableSteps { survived, memory, domain, stored: Vec::new(), cleaned: Vec::new(), lines: BTreeMap::new() }
    }

    /// The sequences that a failure may cut off anywhere.
    pub(super) fn into_sequences(self) -> Vec<Vec<RecoveryStep>> {
        if self.domain == Domain::Eadr { vec![self.stored] } else { vec![self.stored, self.cleaned] }
    }

    /// Where bytes lie, if that survives: main memory is a new process' even where it is persistent.
    fn persistent(&self, address: u64, bytes: u64) -> Option<u64> {
        match self.memory.windows.place(address, bytes)? {
            MemoryPlace::Persistent(offset) => Some(self.memory.persistent + offset),
            MemoryPlace::Main(_) => None,
        }
    }
}

impl Observer for DurableSteps<'_> {
    fn store(&mut self, _hart: u32, address: u64, bytes: &[u8]) {
        let Some(first) = self.persistent(address, bytes.len() as u64) else { return };
        for (at, byte) in (first..).zip(bytes) {
            let line = at - at % LINE;
            let survived = self.survived;
            let content = self.lines.entry(line).or_insert_with(|| content_of(survived, line));
            content[(at % LINE) as usize] = *byte;
        }
        if self.stored.len() < MOST_STEPS {
            self.stored.push(RecoveryStep { address: first, data: bytes.into() });
        }
    }

    fn clean(&mut self, _hart: u32, line: u64) {
        let Some(first) = self.persistent(line, LINE) else { return };
        // A line without stores is durable as it is.
        if let Some(content) = self.lines.get(&first)
            && self.cleaned.len() < MOST_STEPS
        {
            self.cleaned.push(RecoveryStep { address: first, data: content[..].into() });
        }
    }
}

/// A line of an image.
fn content_of(image: &PmImage, line: u64) -> [u8; LINE as usize] {
    let mut content = [0; LINE as usize];
    if let Ok(bytes) = image.read(line, LINE as usize) {
        content.copy_from_slice(bytes);
    }
    content
}
