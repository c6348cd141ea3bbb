//! Writes that devices of NVM hold outside their cells, where a power failure loses them (domain `media`): in
//! open rows (`nvm.write_mode=row_buffer`, rows not durable), or in a buffer that is not durable.
//!
//! | held in | is written to cells | by |
//! |---|---|---|
//! | a row, `row_write_when=idle` | after its last write | the devices |
//! | a row, `row_write_when=close` | when another row needs the bank | the devices |
//! | the same | when no request waits for the bank | the controller |
//! | a line of a buffer | when it makes room for another | the devices |
//! | the same | when no write waits for the line, as early as the cells take it | the controller |
//!
//! What the controller does is our choice: without it a fence waits until another row or line happens to be
//! needed. Invariant: a write counts as durable, and the journal has its bytes at the media, when all of its
//! slot is in the cells.

use smallvec::SmallVec;

use crate::media::SlotId;
use durawarp_checkpoint::state;

use super::pending_write::PendingWrite;

/// Writes in one slot, each with its line.
pub(super) type SlotWrites = SmallVec<[(u64, PendingWrite); 4]>;

/// Slots with writes that are not in cells.
#[derive(Debug)]
pub(super) struct HeldWrites {
    slots: Vec<SlotWrites>,
    /// Those that have some.
    held: Vec<SlotId>,
}

state!(HeldWrites { sized: slots; saved: held });

impl HeldWrites {
    pub(super) fn new(slots: usize) -> Self {
        HeldWrites { slots: (0..slots).map(|_| SlotWrites::default()).collect(), held: Vec::new() }
    }

    /// Writes that are not in cells.
    pub(super) fn len(&self) -> usize {
        self.held.iter().map(|&slot| self.slots[slot as usize].len()).sum()
    }

    /// The `at`-th slot with such writes.
    pub(super) fn slot(&self, at: usize) -> Option<SlotId> {
        self.held.get(at).copied()
    }

    /// A write has been transferred to a slot.
    pub(super) fn hold(&mut self, slot: SlotId, line: u64, write: PendingWrite) {
        let writes = &mut self.slots[slot as usize];
        if writes.is_empty() {
            self.held.push(slot);
        }
        writes.push((line, write));
    }

    /// A slot is in its cells: what it held, which is forgotten here.
    pub(super) fn take(&mut self, slot: SlotId) -> SlotWrites {
        self.held.retain(|&held| held != slot);
        std::mem::take(&mut self.slots[slot as usize])
    }
}
