//! Stores of regions that a controller has and memory has not yet: by slot, and by line for reads.
//!
//! Invariant: a line's stores are in the order of arrival, so that the later one is over the earlier one.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use slab::Slab;
use smallvec::SmallVec;

use durawarp_checkpoint::value;
use durawarp_persist::bytes::copy_masked;
use durawarp_persist::handler::{Flush, Held};

use super::messages::{Copied, CoreRegion};

/// A store that memory does not have yet.
#[derive(Debug)]
struct HeldStore {
    region: CoreRegion,
    copied: Copied,
}

value!(record HeldStore { region, copied });

/// The stores of a controller.
#[derive(Debug, Default)]
pub struct HeldStores {
    stores: Slab<HeldStore>,
    /// Looked up alone, never gone through.
    by_line: HashMap<u64, SmallVec<[usize; 2]>>,
    most: u64,
}

value!(record HeldStores { stores, by_line, most });

impl HeldStores {
    /// Takes a store: its slot.
    pub fn insert(&mut self, region: CoreRegion, copied: Copied) -> usize {
        let line = copied.line;
        let slot = self.stores.insert(HeldStore { region, copied });
        self.by_line.entry(line).or_default().push(slot);
        self.most = self.most.max(self.stores.len() as u64);
        slot
    }

    /// Memory has the store of a slot: its region, and its line.
    pub fn remove(&mut self, slot: usize) -> (CoreRegion, u64) {
        let HeldStore { region, copied } = self.stores.remove(slot);
        if let Some(slots) = self.by_line.get_mut(&copied.line) {
            slots.retain(|held| *held != slot);
            if slots.is_empty() {
                self.by_line.remove(&copied.line);
            }
        }
        (region, copied.line)
    }

    /// The write of a slot's store by a controller, with an undo log or without.
    pub fn flush(&self, slot: usize, controller: u16, logged: bool) -> Flush {
        let HeldStore { region, copied } = &self.stores[slot];
        Flush {
            token: slot as u64,
            author: region.at(controller),
            line: copied.line,
            mask: copied.mask,
            bytes: copied.bytes.clone(),
            logged,
            plain: false,
        }
    }

    /// Lays what is held of a line over its bytes; true where that is any of `mask`.
    pub fn overlay(&self, line: u64, mask: u128, bytes: &mut [u8; 128]) -> bool {
        let mut any = false;
        for &slot in self.by_line.get(&line).into_iter().flatten() {
            let copied = &self.stores[slot].copied;
            any |= copied.mask & mask != 0;
            copy_masked(bytes, &copied.bytes, copied.mask & mask);
        }
        any
    }

    /// Something of a line is held.
    pub fn holds(&self, line: u64) -> bool {
        self.by_line.contains_key(&line)
    }

    /// Lines of which something is held, and which of their bytes.
    pub fn lines(&self) -> BTreeMap<u64, u128> {
        let mut lines = BTreeMap::new();
        for (_, HeldStore { copied, .. }) in &self.stores {
            *lines.entry(copied.line).or_default() |= copied.mask;
        }
        lines
    }

    /// How much is held; each store takes an entry.
    pub fn held(&self) -> Held {
        let stores = self.stores.len() as u64;
        Held { stores, entries: stores }
    }

    /// The most stores that were held at a time.
    pub fn most(&self) -> u64 {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_line_the_store_that_came_later_is_read() {
        let mut held = HeldStores::default();
        let region = CoreRegion { core: 1, number: 4 };
        let store = |mask, byte| Copied { line: 64, mask, bytes: Box::new([byte; 128]) };
        let (first, second) = (held.insert(region, store(0b11, 7)), held.insert(region, store(0b10, 9)));
        let read = |held: &HeldStores, mask| {
            let mut bytes = [1; 128];
            (held.overlay(64, mask, &mut bytes), bytes[0], bytes[1], bytes[2])
        };
        assert_eq!(read(&held, u128::MAX), (true, 7, 9, 1));
        assert_eq!(read(&held, 0b100), (false, 1, 1, 1));
        assert_eq!((held.lines()[&64], held.held().stores, held.most()), (0b11, 2, 2));
        assert_eq!((held.remove(first), read(&held, u128::MAX)), ((region, 64), (true, 1, 9, 1)));
        held.remove(second);
        assert!(!held.holds(64) && held.lines().is_empty() && held.most() == 2);
    }
}
