//! The record that the host of a formed program writes of itself, so that it can go on after a power failure.
//!
//! ```text
//! word 0: number of the latest entry, 0 before the first | entry of even number | entry of odd number
//! entry:  launches so far | replies | position: operation, flags, loops, bindings, extents | the replies
//! ```
//! An entry says where the host program was before a step that changes memory, how many launches it had asked
//! for, and what its reads for that step returned. It is written where a later look at memory may not find
//! what the host saw: before the first step that changes memory after a read or a copy. Steps in between can
//! be done again: a write leaves the same, and a launch's own area says how far it came.
//!
//! Host writes are durable in their order, each at once, and words of 8 bytes do not tear: an entry counts
//! once its number is there. Chosen for the port; the paper's host is the machine itself, its loops and
//! branches regions like any other. Left out: a copy that overlaps itself is not done again right when a
//! failure cuts it in two.

use crate::host::position::Position;
use durawarp_kernel::host::HostAction;
use durawarp_kernel::memory::FlatMemory;

/// Most values that the host program may read for one step.
const MAX_REPLIES: usize = 64;

/// Entries start at multiples of this.
const ALIGN: u64 = 128;

/// Where the record lies, and what positions of its host program look like.
#[derive(Debug, Clone)]
pub(crate) struct HostRecord {
    address: u64,
    like: Position,
}

/// An entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RecordEntry {
    /// Before the step.
    pub(crate) position: Position,
    /// Launches asked for before.
    pub(crate) launches: u32,
    /// What reads for the step returned.
    pub(crate) replies: Vec<u64>,
}

impl HostRecord {
    pub(crate) fn new(address: u64, like: Position) -> HostRecord {
        HostRecord { address, like }
    }

    /// Bytes of an entry.
    fn entry_bytes(&self) -> u64 {
        (8 * (2 + self.like.words().len() + MAX_REPLIES) as u64).next_multiple_of(ALIGN)
    }

    /// Bytes of the record, for positions of this shape.
    pub(crate) fn bytes(&self) -> u64 {
        ALIGN + 2 * self.entry_bytes()
    }

    fn place(&self, number: u64) -> u64 {
        self.address + ALIGN + (number & 1) * self.entry_bytes()
    }

    /// The writes that make `entry` the latest, the one of this number.
    ///
    /// # Errors
    /// More replies than an entry holds.
    pub(crate) fn writes(&self, number: u64, entry: &RecordEntry) -> Result<[HostAction; 2], String> {
        if entry.replies.len() > MAX_REPLIES {
            return Err(format!(
                "the host program reads {} values for one step; its record in persistent memory has room for {MAX_REPLIES}",
                entry.replies.len()
            ));
        }
        let head = [u64::from(entry.launches), entry.replies.len() as u64];
        let words = head.into_iter().chain(entry.position.words()).chain(entry.replies.iter().copied());
        let data = words.flat_map(u64::to_le_bytes).collect();
        let latest = HostAction::Write { address: self.address, data: number.to_le_bytes().to_vec() };
        Ok([HostAction::Write { address: self.place(number), data }, latest])
    }

    /// Number and content of the latest entry; none before the first.
    ///
    /// # Errors
    /// Memory that no host of this program has written.
    pub(crate) fn latest(&self, memory: &FlatMemory) -> Result<Option<(u64, RecordEntry)>, String> {
        let words = |address, count| memory.read_u64s(address, count).map_err(|fault| fault.to_string());
        let number = words(self.address, 1)?[0];
        if number == 0 {
            return Ok(None);
        }
        let (place, wrong) = (self.place(number), || format!("entry {number} is none of this program's"));
        let length = self.like.words().len();
        let entry = words(place, 2 + length)?;
        let (launches, replies) = (u32::try_from(entry[0]).map_err(|_| wrong())?, entry[1] as usize);
        let position =
            Position::of_words(&entry[2..], &self.like).filter(|_| replies <= MAX_REPLIES).ok_or_else(wrong)?;
        let replies = words(place + 8 * (2 + length) as u64, replies)?;
        Ok(Some((number, RecordEntry { position, launches, replies })))
    }
}
