//! The pending-event set of one partition: a timing wheel of unsorted slots, and a heap for what is far.
//!
//! ```text
//!   slot:   first                                first + N - 1      far: heap of keys
//!            [k k k] [ ] [k] [k k] [ ] ... [k]        |             (time >= end of the wheel)
//!               |                                     |
//!   open(bound) takes whole slots, in order  <--------+
//!   payloads:  [m][m][ ][m][m] ...   a slab; keys point into it, so messages move once in and once out
//! ```
//! A push appends 24 bytes to a slot and moves the message to the slab: O(1), no comparison. Nothing is
//! sorted before its round opens; slots then come in order of time, so what is left to sort is nearly sorted.
//! Sizes: the wheel has up to 4096 slots and [`Horizon`] fits 8 to 127 of them in a window; a wider window of
//! a tier is run in steps.
//!
//! Source: hashed timing wheels (Varghese and Lauck, 1987), with slots of more than a tick.
//!
//! Invariant: `first` never passes a pending event. Every Vec is recycled: at steady state nothing allocates.
//! Not here: wake-up slots (a key only says that one may be due), and the order of events (see `agenda.rs`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::event::{Key, NEVER};
use super::horizon::Horizon;
use super::tiers::Tiers;
use super::time::Time;

/// Two levels of 64 bits find the next occupied slot, so there are at most 64 * 64.
const MAX_SLOTS: u64 = 64 * 64;
const MIN_SLOTS: u64 = 256;

/// The pending events of one partition.
#[derive(Debug)]
pub(crate) struct Queue<M> {
    horizon: Horizon,
    slots: Vec<Vec<Key>>,
    /// One bit a slot that holds keys, and one bit a word of them that is not zero.
    occupied: Vec<u64>,
    occupied_words: u64,
    /// The number of the slot that the wheel begins with: no pending event is before.
    first: u64,
    far: BinaryHeap<Reverse<Key>>,
    payloads: Slab<M>,
}

impl<M> Queue<M> {
    /// An empty set whose wheel covers the longest link four times, if it can.
    pub(crate) fn new(horizon: Horizon, longest_latency: Time) -> Self {
        let wanted = horizon.slot_of(longest_latency).saturating_mul(4).max(horizon.slots_per_window() * 32);
        let slots = wanted.clamp(MIN_SLOTS, MAX_SLOTS).next_power_of_two();
        Queue {
            horizon,
            slots: (0..slots).map(|_| Vec::new()).collect(),
            occupied: vec![0; slots as usize / 64],
            occupied_words: 0,
            first: 0,
            far: BinaryHeap::new(),
            payloads: Slab::new(),
        }
    }

    /// An empty set for each tier.
    pub(crate) fn of_tiers(tiers: &Tiers, longest_latency: Time) -> Vec<Self> {
        (0..tiers.count()).map(|tier| Queue::new(tiers.slots(tier), longest_latency)).collect()
    }

    /// Adds a message. O(1), or O(log n) when it is beyond the wheel.
    #[inline]
    pub(crate) fn push(&mut self, time: Time, tie: u64, to: u32, message: M) {
        let payload = self.payloads.insert(message);
        self.place(Key { time, tie, to, payload });
    }

    /// Adds a note that a component may want to wake at `time`.
    #[inline]
    pub(crate) fn push_wake(&mut self, time: Time, to: u32) {
        self.place(Key { time, tie: super::event::Tie::WAKE.0, to, payload: Key::WAKE });
    }

    /// Keeps a message aside, without a time: it is the caller's to order. For messages of the round that is
    /// open.
    #[inline]
    pub(crate) fn store(&mut self, message: M) -> u32 {
        self.payloads.insert(message)
    }

    /// Takes a message out, once.
    #[inline]
    pub(crate) fn take(&mut self, payload: u32) -> M {
        self.payloads.take(payload)
    }

    #[inline]
    fn place(&mut self, key: Key) {
        let slot = self.horizon.slot_of(key.time);
        debug_assert!(slot >= self.first, "an event at {} is before the wheel", key.time);
        if slot - self.first < self.slots.len() as u64 {
            let index = slot as usize & (self.slots.len() - 1);
            let keys = &mut self.slots[index];
            if keys.is_empty() {
                self.occupied[index / 64] |= 1 << (index % 64);
                self.occupied_words |= 1 << (index / 64);
            }
            keys.push(key);
        } else {
            self.place_far(key);
        }
    }

    #[cold]
    #[inline(never)]
    fn place_far(&mut self, key: Key) {
        assert_ne!(key.time, NEVER, "an event at the end of time cannot happen");
        self.far.push(Reverse(key));
    }

    /// Puts the key of a message back that was opened, and not taken.
    pub(crate) fn put_back(&mut self, key: Key) {
        self.place(key);
    }

    /// A lower bound of the earliest pending time when all before `reached` is done, but for components that
    /// are behind. [`NEVER`] when nothing is pending.
    pub(crate) fn earliest(&self, reached: Time) -> Time {
        self.horizon.earliest(self.earliest_slot_start(), reached)
    }

    /// A lower bound of the earliest pending time: the start of its slot. [`NEVER`] when nothing is pending.
    pub(crate) fn earliest_slot_start(&self) -> Time {
        match self.next_occupied() {
            Some(slot) => self.horizon.slot_start(slot),
            None => self.far.peek().map_or(NEVER, |Reverse(key)| {
                let slot = self.horizon.slot_of(key.time);
                self.horizon.slot_start(slot)
            }),
        }
    }

    /// The first occupied slot of the wheel, at or after `first`.
    #[inline]
    fn next_occupied(&self) -> Option<u64> {
        if self.occupied_words == 0 {
            return None;
        }
        let mask = self.slots.len() as u64 - 1;
        let start = (self.first & mask) as usize;
        let (word, bit) = (start / 64, start % 64);
        let here = self.occupied[word] >> bit << bit;
        let index = if here != 0 {
            word * 64 + here.trailing_zeros() as usize
        } else {
            // The words after this one, else the first ones, of which this word's low bits are the last.
            let after = self.occupied_words & (!0u64).checked_shl(word as u32 + 1).unwrap_or(0);
            let words = if after != 0 { after } else { self.occupied_words };
            let next = words.trailing_zeros() as usize;
            next * 64 + self.occupied[next].trailing_zeros() as usize
        };
        Some(self.first + ((index as u64).wrapping_sub(start as u64) & mask))
    }

    /// Moves the beginning of the wheel to the slot of `from`, before which nothing may be pending.
    pub(crate) fn advance(&mut self, from: Time) {
        let first = self.horizon.slot_of(from);
        debug_assert!(self.next_occupied().is_none_or(|slot| slot >= first), "the wheel passed an event");
        self.first = first;
        if !self.far.is_empty() {
            self.bring_near();
        }
    }

    /// The end of the wheel: before it, no event is far.
    pub(crate) fn end(&self) -> Time {
        self.first.saturating_add(self.slots.len() as u64).saturating_mul(self.horizon.slot_ticks())
    }

    /// Far events that the wheel covers now go into it.
    #[inline(never)]
    fn bring_near(&mut self) {
        let end = self.first.saturating_add(self.slots.len() as u64);
        while let Some(Reverse(key)) = self.far.peek() {
            if self.horizon.slot_of(key.time) >= end {
                break;
            }
            let Some(Reverse(key)) = self.far.pop() else { break };
            self.place(key);
        }
    }

    /// Appends the keys of all events before `bound` to `out`, slot by slot; their payloads stay until taken.
    /// The wheel must have been advanced to the round before, and must cover it.
    pub(crate) fn open(&mut self, bound: Time, out: &mut Vec<Key>) {
        debug_assert!(bound <= self.end(), "a round longer than the wheel");
        let end = self.horizon.slot_of(bound);
        let mask = self.slots.len() - 1;
        while let Some(slot) = self.next_occupied() {
            if slot >= end {
                if slot == end {
                    self.open_part(slot as usize & mask, bound, out);
                }
                break;
            }
            let index = slot as usize & mask;
            out.append(&mut self.slots[index]);
            self.vacate(index);
        }
    }

    /// A clipped round ends inside a slot: what is at or after `bound` stays.
    fn open_part(&mut self, index: usize, bound: Time, out: &mut Vec<Key>) {
        if self.horizon.slot_start(self.horizon.slot_of(bound)) == bound {
            return;
        }
        let keys = &mut self.slots[index];
        out.extend(keys.iter().copied().filter(|key| key.time < bound));
        keys.retain(|key| key.time >= bound);
        if keys.is_empty() {
            self.vacate(index);
        }
    }

    #[inline]
    fn vacate(&mut self, index: usize) {
        let word = &mut self.occupied[index / 64];
        *word &= !(1 << (index % 64));
        if *word == 0 {
            self.occupied_words &= !(1 << (index / 64));
        }
    }

    /// Every key of the set, with its message unless it is of a wake-up, in no particular order.
    pub(crate) fn pending(&self) -> impl Iterator<Item = (Key, Option<&M>)> {
        let far = self.far.iter().map(|Reverse(key)| key);
        let of = |key: &Key| self.payloads.items.get(key.payload as usize).and_then(Option::as_ref);
        self.slots.iter().flatten().chain(far).map(move |key| (*key, of(key)))
    }

    /// Every message of the set with its key, in no particular order.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (Key, &M)> {
        self.pending().filter_map(|(key, message)| Some((key, message?)))
    }

    /// Empties the set, handing out every message and wake-up note, in no particular order.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(Key, Option<M>)) {
        let payloads = &mut self.payloads;
        let mut out = |key: Key| {
            let message = (key.payload != Key::WAKE).then(|| payloads.take(key.payload));
            each(key, message);
        };
        for word in 0..self.occupied.len() {
            while self.occupied[word] != 0 {
                let index = word * 64 + self.occupied[word].trailing_zeros() as usize;
                self.slots[index].drain(..).for_each(&mut out);
                self.occupied[word] &= self.occupied[word] - 1;
            }
        }
        self.occupied_words = 0;
        self.far.drain().for_each(|Reverse(key)| out(key));
    }
}

/// Messages by index; a freed index is the next one used, so it is still in the cache.
#[derive(Debug)]
struct Slab<M> {
    items: Vec<Option<M>>,
    free: Vec<u32>,
}

impl<M> Slab<M> {
    fn new() -> Self {
        Slab { items: Vec::new(), free: Vec::new() }
    }

    #[inline]
    fn insert(&mut self, message: M) -> u32 {
        if let Some(index) = self.free.pop() {
            self.items[index as usize] = Some(message);
            index
        } else {
            self.grow(message)
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, message: M) -> u32 {
        let index = self.items.len();
        assert!(index < Key::WAKE as usize, "more than {} messages are pending", Key::WAKE);
        self.items.push(Some(message));
        index as u32
    }

    #[inline]
    fn take(&mut self, index: u32) -> M {
        let Some(message) = self.items[index as usize].take() else {
            panic!("message {index} was taken twice: a bug of the engine")
        };
        self.free.push(index);
        message
    }
}
