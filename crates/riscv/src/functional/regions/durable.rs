//! What becomes durable of a run in regions: the stores of regions, and what committed ones leave.

use crate::functional::observer::Observer;
use crate::instruction::REGISTERS;
use crate::memory::Memory;
use crate::regions::{BoundaryReason, COMPLETE, PC_SLOT};
use crate::syscalls::{Os, Reply};

/// Slots of a hart: its registers by number, `fcsr` in place of x0, the pc.
pub type Slots = [u64; REGISTERS + 1];
/// What was counted of a run in regions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegionRunCounts {
    /// Instructions of the program.
    pub instructions: u64,
    /// Stores of the program's instructions.
    pub stores: u64,
    /// Registers stored by boundaries.
    pub checkpoints: u64,
    /// Boundaries that were executed, by [`BoundaryReason`] as it stands in [`BoundaryReason::ALL`].
    pub boundaries: [u64; BoundaryReason::ALL.len()],
    /// The most stores of one region, checkpoints and pc included.
    pub most_stores: u32,
}

impl RegionRunCounts {
    /// Regions: boundaries that were executed.
    pub fn regions(&self) -> u64 {
        self.boundaries.iter().sum()
    }

    /// All stores that regions made: the program's, checkpoints, one pc each.
    pub fn all_stores(&self) -> u64 {
        self.stores + self.checkpoints + self.regions()
    }
}

/// What a power failure leaves: memory, slots and the system as the committed regions made them.
#[derive(Debug)]
pub struct RegionImage {
    pub(super) memory: Memory,
    pub(super) slots: Vec<Slots>,
    pub(super) system: System,
}

/// What the system knows, and which harts run.
#[derive(Debug, Clone)]
pub(super) struct System {
    pub(super) os: Os,
    pub(super) running: Vec<bool>,
    pub(super) now_ns: u64,
    pub(super) left: LeftCalls,
}

/// What the system and harts have yet to hear of each other.
#[derive(Debug, Clone, Default)]
pub(super) struct LeftCalls {
    /// By hart: the answer to the call that it makes next, which the system has performed.
    pub(super) answers: Vec<Option<Reply>>,
    /// Harts whose thread has ended and frees its hart next.
    pub(super) ended: Vec<u32>,
}

/// A store of a region, to become durable.
#[derive(Debug)]
pub(super) enum RegionStore {
    Memory(u64, Vec<u8>),
    Slot(usize, usize, u64),
    /// What the system knows, and which harts run.
    System(Box<System>),
}

/// Keeps what is stored, for the hart that executes.
#[derive(Debug, Default)]
pub(super) struct StoreLog(pub(super) Vec<RegionStore>);

impl Observer for StoreLog {
    fn store(&mut self, _hart: u32, address: u64, bytes: &[u8]) {
        self.0.push(RegionStore::Memory(address, bytes.to_vec()));
    }
}

impl RegionImage {
    /// Memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Slots by hart.
    pub fn slots(&self) -> &[Slots] {
        &self.slots
    }

    /// A hart runs: it has a thread, which does not wait in a call.
    pub fn runs(&self, hart: usize) -> bool {
        self.system.running[hart]
    }

    /// What system calls have done.
    pub fn os(&self) -> &Os {
        &self.system.os
    }

    /// Where a hart goes on when its thread runs.
    pub fn pc(&self, hart: usize) -> Option<u64> {
        self.slots.get(hart).map(|slots| slots[PC_SLOT] & !COMPLETE)
    }

    /// Makes a store of a committed region durable.
    pub(super) fn apply(&mut self, store: RegionStore) {
        match store {
            RegionStore::Memory(address, bytes) => {
                if let Some(place) = self.memory.slice_mut(address, bytes.len()) {
                    place.copy_from_slice(&bytes);
                }
            }
            RegionStore::Slot(hart, register, value) => self.slots[hart][register] = value,
            RegionStore::System(system) => self.system = *system,
        }
    }
}
