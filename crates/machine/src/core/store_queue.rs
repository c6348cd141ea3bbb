//! The store queue of a hart: stores and cache-line operations from dispatch until they are performed, in
//! program order. What has retired is the store buffer.
//!
//! Loads look here first, byte by byte, the youngest older store first. A load behind a store whose address
//! is not known yet waits. Invariant: entries are in program order; the first `retired` of them may be
//! performed.

use std::collections::VecDeque;

use durawarp_checkpoint::{state, value};

use super::l1d::ones;

/// What an entry does when it is performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreKind {
    /// It writes bytes.
    Store,
    /// `cbo.clean`.
    Clean,
    /// `cbo.flush`.
    Flush,
    /// An ordering fence of persistency.
    Fence,
    /// It writes a register to its slot; no load of the program reads it.
    Checkpoint,
    /// It writes the program counter to its slot, and the region ends.
    RegionEnd,
}

value!(choice StoreKind { Store, Clean, Flush, Fence, Checkpoint, RegionEnd });

/// An entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoreEntry {
    /// Number of its instruction; 0 of what a system call writes.
    pub(super) number: u64,
    pub(super) pc: u64,
    /// Physical address, once it is known.
    pub(super) address: Option<u64>,
    /// Bytes, little-endian, once they are known.
    pub(super) value: Option<u64>,
    /// The cycle from which they are there, which may lie ahead.
    pub(super) ready: u64,
    pub(super) width: u8,
    pub(super) kind: StoreKind,
}

value!(record StoreEntry { number, pc, address, value, ready, width, kind });

/// What the store queue has of a load's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forwarded {
    /// These, one bit of the mask a byte; none of them for a mask of 0.
    Bytes {
        /// Bytes at their places.
        value: u64,
        /// Which.
        mask: u8,
        /// The cycle from which the last of them is there.
        ready: u64,
    },
    /// An older store's address, or the bytes that it writes there, are not known yet.
    Unknown,
}

/// Stores by their 8-byte granules: a load of a granule that counts none has no store to look for.
const FILTER: usize = 256;

/// A count of the filter that says nothing.
const FULL: u8 = u8::MAX;

/// The store queue.
#[derive(Debug)]
pub(super) struct StoreQueue {
    entries: VecDeque<StoreEntry>,
    capacity: usize,
    retired: usize,
    /// Numbers of the entries whose address is not known, in program order.
    unknown: Vec<u64>,
    /// The cycle in which an entry was performed last.
    performed_at: u64,
    filter: [u8; FILTER],
}

state!(StoreQueue { saved: entries, retired, unknown, performed_at, filter; kept: capacity });

fn granules(address: u64, width: u8) -> [usize; 2] {
    [address, address + u64::from(width) - 1].map(|at| (at >> 3) as usize % FILTER)
}

impl StoreQueue {
    /// An empty queue.
    pub(super) fn new(capacity: u32) -> StoreQueue {
        let capacity = capacity as usize;
        let entries = VecDeque::with_capacity(capacity);
        StoreQueue { entries, capacity, retired: 0, unknown: Vec::new(), performed_at: 0, filter: [0; FILTER] }
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= self.capacity
    }

    /// Entries in use, of how many.
    pub(super) fn level(&self) -> (usize, usize) {
        (self.entries.len(), self.capacity)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Stores that have retired and are not performed.
    #[inline]
    pub(super) fn has_retired(&self) -> bool {
        self.retired > 0
    }

    /// The oldest entry, if it has retired.
    #[inline]
    pub(super) fn first_retired(&self) -> Option<&StoreEntry> {
        if self.retired > 0 { self.entries.front() } else { None }
    }

    /// The entry, where there is one alone.
    pub(super) fn only(&self) -> Option<&StoreEntry> {
        if self.entries.len() == 1 { self.entries.front() } else { None }
    }

    /// Entries that have retired, the oldest first.
    pub(super) fn retired(&self) -> impl Iterator<Item = &StoreEntry> {
        self.entries.iter().take(self.retired)
    }

    /// The cycle, which may lie ahead, in which an entry was performed last.
    pub(super) fn performed_at(&self) -> u64 {
        self.performed_at
    }

    #[inline]
    fn count(&mut self, entry: &StoreEntry, up: bool) {
        let Some(address) = entry.address.filter(|_| entry.kind == StoreKind::Store) else { return };
        let [first, last] = granules(address, entry.width);
        self.count_in(first, up);
        if last != first {
            self.count_in(last, up);
        }
    }

    #[inline]
    fn count_in(&mut self, granule: usize, up: bool) {
        let counted = &mut self.filter[granule];
        // A queue has at most 1,024 entries: a count that is full stays so, and is never relied upon.
        *counted = match (up, *counted) {
            (_, FULL) => FULL,
            (true, count) => count + 1,
            (false, count) => count - 1,
        };
    }

    /// Takes an entry in, in program order.
    pub(super) fn push(&mut self, entry: StoreEntry) {
        if entry.address.is_none() {
            self.unknown.push(entry.number);
        }
        self.count(&entry, true);
        self.entries.push_back(entry);
    }

    #[inline]
    fn place(&self, number: u64) -> Option<usize> {
        // Most often it was dispatched just now.
        let last = self.entries.len().wrapping_sub(1);
        if self.entries.back()?.number == number {
            return Some(last);
        }
        self.entries.binary_search_by_key(&number, |entry| entry.number).ok()
    }

    /// The address of a store, if it is known.
    pub(super) fn address_of(&self, number: u64) -> Option<u64> {
        self.entries[self.place(number)?].address
    }

    /// The address of a store is known.
    pub(super) fn set_address(&mut self, number: u64, address: u64) {
        let Some(place) = self.place(number) else { return };
        if self.entries[place].address.replace(address).is_none() {
            self.unknown.retain(|&of| of != number);
            let entry = self.entries[place];
            self.count(&entry, true);
        }
    }

    /// The bytes of a store are known.
    pub(super) fn set_value(&mut self, number: u64, value: u64, ready: u64) {
        if let Some(place) = self.place(number) {
            let entry = &mut self.entries[place];
            (entry.value, entry.ready) = (Some(value), ready);
        }
    }

    /// The oldest entry that had not retired has.
    #[inline]
    pub(super) fn retire(&mut self) {
        self.retired += 1;
    }

    /// The entry that has retired last.
    pub(super) fn last_retired(&self) -> Option<&StoreEntry> {
        self.entries.get(self.retired.checked_sub(1)?)
    }

    /// The oldest entry is performed in a cycle.
    pub(super) fn pop(&mut self, cycle: u64) {
        if let Some(entry) = self.entries.pop_front() {
            self.retired -= 1;
            self.performed_at = cycle;
            self.count(&entry, false);
        }
    }

    /// The first bytes of the oldest entry are performed: a store of the others is left. Loads find what is
    /// performed in the L1, where others may have written since.
    pub(super) fn perform_first(&mut self, bytes: u8, cycle: u64) {
        let Some(&entry) = self.entries.front() else { return };
        self.performed_at = cycle;
        let left = StoreEntry {
            address: entry.address.map(|address| address + u64::from(bytes)),
            value: entry.value.map(|value| value.checked_shr(8 * u32::from(bytes)).unwrap_or(0)),
            width: entry.width - bytes,
            ..entry
        };
        self.count(&entry, false);
        self.count(&left, true);
        self.entries[0] = left;
    }

    /// Has the oldest retired store of a line be the oldest entry whose line is `there`, if no older store
    /// has bytes of it: a core without the order of stores does so.
    #[cold]
    pub(super) fn reorder(&mut self, there: impl Fn(u64) -> bool) -> bool {
        let bytes = |entry: &StoreEntry| entry.address.map(|at| (at, at + u64::from(entry.width)));
        let apart = |one: &StoreEntry, other: &StoreEntry| {
            let (Some(one), Some(other)) = (bytes(one), bytes(other)) else { return false };
            one.1 <= other.0 || other.1 <= one.0
        };
        let goes = |&at: &usize| {
            let entry = &self.entries[at];
            let older = self.entries.iter().take(at);
            entry.kind == StoreKind::Store
                && bytes(entry).is_some_and(|(first, end)| there(first) && there(end - 1))
                && older.clone().all(|older| older.kind == StoreKind::Store && apart(older, entry))
        };
        let Some(at) = (1..self.retired).find(goes) else { return false };
        let entry = self.entries.remove(at);
        entry.into_iter().for_each(|entry| self.entries.push_front(entry));
        true
    }

    /// Forgets entries from this number on, none of which has retired.
    pub(super) fn squash(&mut self, first: u64) {
        self.unknown.truncate(self.unknown.partition_point(|&number| number < first));
        while let Some(&entry) = self.entries.back().filter(|entry| entry.number >= first) {
            self.entries.pop_back();
            self.count(&entry, false);
        }
    }

    /// What older stores write of the `width` bytes at an address, for the load of this number.
    #[inline]
    pub(super) fn forward(&self, number: u64, address: u64, width: u8) -> Forwarded {
        let granules = granules(address, width);
        let [first, last] = granules.map(|granule| self.filter[granule]);
        if first | last == 0 {
            // No store that is known has bytes of it; one that is not known may.
            let behind_unknown = self.unknown.first().is_some_and(|&oldest| oldest < number);
            let none = Forwarded::Bytes { value: 0, mask: 0, ready: 0 };
            return if behind_unknown { Forwarded::Unknown } else { none };
        }
        // Entries that may say something: those of both granules count twice, unless there is one.
        let counted = usize::from(first) + if granules[0] == granules[1] { 0 } else { usize::from(last) };
        let left = if first == FULL || last == FULL { usize::MAX } else { self.unknown.len() + counted };
        self.search(number, (address, width), granules, left)
    }

    /// Looks at entries, the youngest first, until `left` counts of the load's granules and of unknown
    /// addresses are met: older ones say nothing.
    fn search(&self, number: u64, (address, width): (u64, u8), of: [usize; 2], mut left: usize) -> Forwarded {
        let all = ((1u16 << width) - 1) as u8;
        let (mut value, mut mask, mut ready) = (0, 0u8, 0);
        // The youngest older store has the word for a byte, and those before it for what it leaves open.
        for entry in self.entries.iter().rev() {
            if left == 0 {
                break;
            }
            let older = entry.number < number;
            let Some(at) = entry.address else {
                if older {
                    return Forwarded::Unknown;
                }
                left -= 1;
                continue;
            };
            if entry.kind != StoreKind::Store {
                continue;
            }
            let [first, last] = granules(at, entry.width);
            let in_first = first == of[0] || last == of[0];
            let in_last = of[1] != of[0] && (first == of[1] || last == of[1]);
            left -= usize::from(in_first) + usize::from(in_last);
            if !(in_first || in_last)
                || !older
                || at >= address + u64::from(width)
                || address >= at + u64::from(entry.width)
            {
                continue;
            }
            // Most often it has all of them.
            if mask == 0 && at <= address && address + u64::from(width) <= at + u64::from(entry.width) {
                let Some(stored) = entry.value else { return Forwarded::Unknown };
                let value = stored >> (8 * (address - at)) & ones(width.into());
                return Forwarded::Bytes { value, mask: all, ready: entry.ready };
            }
            let missing = all & !mask;
            for byte in (0..width).filter(|&byte| missing >> byte & 1 == 1) {
                let of_store = (address + u64::from(byte)).wrapping_sub(at);
                if of_store < entry.width.into() {
                    let Some(stored) = entry.value else { return Forwarded::Unknown };
                    value |= (stored >> (8 * of_store) & 0xff) << (8 * byte);
                    mask |= 1 << byte;
                    ready = ready.max(entry.ready);
                }
            }
            if mask == all {
                break;
            }
        }
        Forwarded::Bytes { value, mask, ready }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn store(number: u64, address: Option<u64>, value: Option<u64>, width: u8) -> StoreEntry {
        StoreEntry { number, pc: 0, address, value, ready: 10 * number, width, kind: StoreKind::Store }
    }

    #[test]
    fn a_load_gets_the_youngest_older_bytes() {
        let mut queue = StoreQueue::new(8);
        queue.push(store(1, Some(0x100), Some(0x8877_6655_4433_2211), 8));
        queue.push(store(3, Some(0x102), Some(0xaa), 1));
        queue.push(store(5, Some(0x100), Some(0), 8));
        assert_eq!(queue.forward(4, 0x100, 4), Forwarded::Bytes { value: 0x44aa_2211, mask: 15, ready: 30 });
        assert_eq!(queue.forward(4, 0x106, 4), Forwarded::Bytes { value: 0x8877, mask: 3, ready: 10 });
        assert_eq!(queue.forward(1, 0x100, 8), Forwarded::Bytes { value: 0, mask: 0, ready: 0 });
        assert_eq!(queue.forward(9, 0x100, 8), Forwarded::Bytes { value: 0, mask: 255, ready: 50 });
    }

    #[test]
    fn a_load_waits_behind_what_is_not_known() {
        let mut queue = StoreQueue::new(8);
        queue.push(store(1, None, Some(1), 8));
        queue.push(store(2, Some(0x200), None, 4));
        assert_eq!(queue.forward(3, 0x300, 8), Forwarded::Unknown);
        queue.set_address(1, 0x100);
        assert_eq!(queue.forward(3, 0x300, 8), Forwarded::Bytes { value: 0, mask: 0, ready: 0 });
        assert_eq!(queue.forward(3, 0x200, 1), Forwarded::Unknown);
        queue.set_value(2, 0x0403_0201, 7);
        assert_eq!(queue.forward(3, 0x202, 1), Forwarded::Bytes { value: 3, mask: 1, ready: 7 });
    }

    /// What a load finds by asking every older store for each of its bytes.
    fn plain(entries: &[StoreEntry], number: u64, address: u64, width: u8) -> Forwarded {
        let (mut value, mut mask, mut ready) = (0, 0, 0);
        for entry in entries.iter().rev().filter(|entry| entry.number < number) {
            let Some(at) = entry.address else { return Forwarded::Unknown };
            for byte in 0..width {
                let of_store = (address + u64::from(byte)).wrapping_sub(at);
                if mask >> byte & 1 == 0 && of_store < u64::from(entry.width) {
                    let Some(stored) = entry.value else { return Forwarded::Unknown };
                    value |= (stored >> (8 * of_store) & 0xff) << (8 * byte);
                    (mask, ready) = (mask | 1 << byte, ready.max(entry.ready));
                }
            }
            if u32::from(mask) == (1 << width) - 1 {
                break;
            }
        }
        Forwarded::Bytes { value, mask, ready }
    }

    proptest! {
        #[test]
        fn a_load_finds_what_a_look_at_every_byte_finds(
            // Stores: address, bytes as a power of two, whether address and value are known.
            stores in prop::collection::vec((0u64..48, 0u32..4, prop::bool::weighted(0.9), prop::bool::weighted(0.9)), 1..24),
            performed in 0usize..6,
            squashed in 0u64..6,
            loads in prop::collection::vec((0u64..56, 0u32..4, 0u64..52), 1..12),
        ) {
            let mut queue = StoreQueue::new(64);
            let mut entries = Vec::new();
            for (i, &(address, log, knows_address, knows_value)) in stores.iter().enumerate() {
                // One granule apart or 256 of them: places of the filter are shared.
                let address = 0x1000 + address % 24 + if address < 24 { 0 } else { 8 * FILTER as u64 };
                let value = knows_value.then_some(0x0101_0101_0101_0101 * (i as u64 + 1));
                // The oldest can be performed: all is known of them.
                let known = i < performed;
                let entry = store(
                    2 * i as u64 + 1,
                    (known || knows_address).then_some(address),
                    if known { Some(i as u64 + 1) } else { value },
                    1 << log,
                );
                queue.push(entry);
                entries.push(entry);
            }
            for _ in 0..performed.min(entries.len()) {
                queue.retire();
                queue.pop(9);
                entries.remove(0);
            }
            queue.squash(2 * (stores.len() as u64 - squashed.min(stores.len() as u64)) + 1);
            entries.retain(|entry| entry.number < 2 * (stores.len() as u64 - squashed.min(stores.len() as u64)) + 1);
            for (address, log, number) in loads {
                let (address, width) = (0x1000 + address, 1 << log);
                prop_assert_eq!(queue.forward(number, address, width), plain(&entries, number, address, width));
            }
        }
    }

    #[test]
    fn what_is_performed_of_a_store_is_forwarded_no_more() {
        let mut queue = StoreQueue::new(8);
        queue.push(store(1, Some(0x13c), Some(0x8877_6655_4433_2211), 8));
        queue.retire();
        assert_eq!(queue.forward(2, 0x13c, 8), Forwarded::Bytes { value: 0x8877_6655_4433_2211, mask: 255, ready: 10 });
        queue.perform_first(4, 8);
        let none = Forwarded::Bytes { value: 0, mask: 0, ready: 0 };
        assert_eq!(queue.forward(2, 0x13c, 8), Forwarded::Bytes { value: 0x8877_6655 << 32, mask: 0xf0, ready: 10 });
        assert_eq!(queue.forward(2, 0x13c, 4), none);
        assert_eq!(queue.retired().map(|entry| (entry.address, entry.width)).collect::<Vec<_>>(), [(Some(0x140), 4)]);
        queue.pop(9);
        assert_eq!(queue.forward(2, 0x140, 4), none);
    }

    #[test]
    fn a_squash_forgets_the_youngest() {
        let mut queue = StoreQueue::new(2);
        queue.push(store(1, Some(0x100), Some(1), 8));
        queue.push(store(2, None, None, 8));
        assert!(queue.is_full());
        queue.squash(2);
        assert_eq!(queue.forward(9, 0x108, 8), Forwarded::Bytes { value: 0, mask: 0, ready: 0 });
        queue.retire();
        assert!(queue.has_retired());
        queue.pop(12);
        let none = Forwarded::Bytes { value: 0, mask: 0, ready: 0 };
        assert_eq!((queue.is_empty(), queue.forward(9, 0x100, 8)), (true, none));
        assert_eq!(queue.performed_at(), 12);
    }
}
