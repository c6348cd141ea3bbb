//! The work of a round: the keys of its events, grouped by component, then sorted.
//!
//! ```text
//! opened:  (t3,#1) (t4,#0) (wake,#2) (t9,#1) ...        slot order: nearly sorted by time
//! groups:  #1: [t3 t9]   #0: [t4]   #2: []              order of first appearance
//! ```
//! A counting sort groups (two passes over 24-byte keys, no comparison); each group is then sorted by its
//! packed key right before its component runs, when it is in the cache anyway. A key of a group is 128 bits,
//! `offset in the window: 32 | tie: 64 | payload: 32`, so one integer comparison orders it.
//!
//! Invariants: groups run in any order with the same results, as nothing sent in a round arrives in it
//! elsewhere. A wake-up note only makes its component run; when it wakes is in the component's own slot.

use super::event::Key;
use super::time::Time;

/// A message of the open round, ordered by time, then tie.
pub(crate) type RoundKey = u128;

/// After all messages of a round; its time is past any bound.
pub(crate) const NO_KEY: RoundKey = RoundKey::MAX;

/// Packs the key of a message `offset` ticks after the round's beginning.
#[inline]
pub(crate) fn round_key(offset: u32, tie: u64, payload: u32) -> RoundKey {
    RoundKey::from(offset) << 96 | RoundKey::from(tie) << 32 | RoundKey::from(payload)
}

/// Ticks from the round's beginning.
#[inline]
pub(crate) fn offset_of(key: RoundKey) -> Time {
    (key >> 96) as Time
}

#[inline]
pub(crate) fn tie_of(key: RoundKey) -> u64 {
    (key >> 32) as u64
}

#[inline]
pub(crate) fn payload_of(key: RoundKey) -> u32 {
    key as u32
}

/// The key of the same message, kept at another place.
#[inline]
pub(crate) fn with_payload(key: RoundKey, payload: u32) -> RoundKey {
    key >> 32 << 32 | RoundKey::from(payload)
}

/// A component that has something to do in the round, and where its keys are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group {
    /// Index of the component in its partition.
    pub(crate) to: u32,
    start: u32,
    end: u32,
}

/// The grouped keys of one round; recycled from round to round.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// The keys as opened; filled by the caller.
    pub(crate) opened: Vec<Key>,
    /// 0 for a component that has nothing to do, else the place of its group in `groups`, plus one.
    group_of: Vec<u32>,
    groups: Vec<Group>,
    keys: Vec<RoundKey>,
}

impl Agenda {
    pub(crate) fn new(components: usize) -> Self {
        Agenda { opened: Vec::new(), group_of: vec![0; components], groups: Vec::new(), keys: Vec::new() }
    }

    /// Groups the opened keys, which are of a round that begins at `from`.
    pub(crate) fn arrange(&mut self, from: Time) {
        self.groups.clear();
        // First the sizes (in `end`), ...
        for key in &self.opened {
            let group = &mut self.group_of[key.to as usize];
            if *group == 0 {
                self.groups.push(Group { to: key.to, start: 0, end: 0 });
                *group = self.groups.len() as u32;
            }
            self.groups[*group as usize - 1].end += u32::from(key.payload != Key::WAKE);
        }
        // ... then the places; `end` now counts up from `start` to the end, ...
        let mut next = 0;
        for group in &mut self.groups {
            let size = group.end;
            (group.start, group.end) = (next, next);
            next += size;
        }
        // ... while the keys are dealt out.
        if self.keys.len() < next as usize {
            self.keys.resize(next as usize, NO_KEY);
        }
        for key in self.opened.drain(..) {
            if key.payload != Key::WAKE {
                let group = &mut self.groups[self.group_of[key.to as usize] as usize - 1];
                debug_assert!(key.time >= from && key.time - from < u64::from(u32::MAX));
                self.keys[group.end as usize] = round_key((key.time - from) as u32, key.tie, key.payload);
                group.end += 1;
            }
        }
        for group in &self.groups {
            self.group_of[group.to as usize] = 0;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// Puts the groups of components that `last` picks behind all others. Returns how many the others are.
    pub(crate) fn put_last(&mut self, last: impl Fn(u32) -> bool) -> usize {
        let mut first = 0;
        for at in 0..self.groups.len() {
            if !last(self.groups[at].to) {
                self.groups.swap(first, at);
                first += 1;
            }
        }
        first
    }

    /// The component of group `index`, and its keys in order.
    #[inline]
    pub(crate) fn group(&mut self, index: usize) -> (u32, &[RoundKey]) {
        let group = self.groups[index];
        let keys = &mut self.keys[group.start as usize..group.end as usize];
        sort(keys);
        (group.to, keys)
    }
}

/// Sorts keys that are nearly in order: by insertion, until that has moved more than a real sort would cost.
#[inline]
fn sort(keys: &mut [RoundKey]) {
    let mut moves_left = 8 * keys.len();
    for i in 1..keys.len() {
        let key = keys[i];
        let mut hole = i;
        while hole > 0 && keys[hole - 1] > key {
            keys[hole] = keys[hole - 1];
            hole -= 1;
        }
        keys[hole] = key;
        let moves = i - hole;
        if moves > moves_left {
            keys.sort_unstable();
            return;
        }
        moves_left -= moves;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(time: Time, tie: u64, to: u32, payload: u32) -> Key {
        Key { time, tie, to, payload }
    }

    #[test]
    fn each_component_gets_its_own_keys_in_order() {
        let mut agenda = Agenda::new(4);
        for _ in 0..2 {
            agenda.opened = vec![key(107, 1, 1, 0), key(103, 9, 1, 1), key(103, 2, 1, 2), key(101, 0, 3, 3)];
            agenda.arrange(100);
            assert_eq!(agenda.len(), 2);
            let (to, keys) = agenda.group(0);
            assert_eq!((to, keys), (1, &[round_key(3, 2, 2), round_key(3, 9, 1), round_key(7, 1, 0)][..]));
            let (to, keys) = agenda.group(1);
            assert_eq!((to, keys), (3, &[round_key(1, 0, 3)][..]));
        }
    }

    #[test]
    fn a_wake_note_makes_its_component_run_without_a_key() {
        let mut agenda = Agenda::new(2);
        agenda.opened = vec![key(5, 0, 1, Key::WAKE), key(6, 0, 1, Key::WAKE)];
        agenda.arrange(0);
        assert_eq!(agenda.len(), 1);
        assert_eq!(agenda.group(0), (1, &[][..]));
    }

    proptest! {
        #[test]
        fn sorts_whatever_comes(mut keys in proptest::collection::vec(any::<u128>(), 0..200)) {
            let mut expected = keys.clone();
            expected.sort();
            sort(&mut keys);
            prop_assert_eq!(keys, expected);
        }

        #[test]
        fn packs_and_unpacks(offset in any::<u32>(), tie in any::<u64>(), payload in any::<u32>()) {
            let key = round_key(offset, tie, payload);
            prop_assert_eq!((offset_of(key), tie_of(key), payload_of(key)), (u64::from(offset), tie, payload));
        }
    }
}
