//! The entries of a file of registers (MSHRs), each made when it is first in use.
//!
//! Most of a large machine's are never in use in a short run, and sweeps assemble machines by the thousand.
//! Invariant: entries are taken in the order in which they would be if all were there: those that were
//! released, the last one first, then those that were never in use, by number.

use std::ops::{Index, IndexMut};

use durawarp_checkpoint::{Storable, state};

/// Entries, `most` of them at most.
#[derive(Debug)]
pub(crate) struct Entries<T> {
    made: Vec<T>,
    released: Vec<u16>,
    most: usize,
}

state!(Entries<T: Storable> { saved: made, released; kept: most });

impl<T: Default> Entries<T> {
    /// None in use.
    pub(crate) fn new(most: u32) -> Self {
        Entries { made: Vec::new(), released: Vec::new(), most: most as usize }
    }

    /// One can be taken.
    #[inline]
    pub(crate) fn has_free(&self) -> bool {
        !self.released.is_empty() || self.made.len() < self.most
    }

    /// How many are taken.
    #[inline]
    pub(crate) fn in_use(&self) -> usize {
        self.made.len() - self.released.len()
    }

    /// Takes one, as it was released, or new.
    ///
    /// # Panics
    /// When all are in use.
    #[inline]
    pub(crate) fn take(&mut self) -> u16 {
        self.released.pop().unwrap_or_else(|| {
            assert!(self.made.len() < self.most, "no entry is free");
            self.made.push(T::default());
            (self.made.len() - 1) as u16
        })
    }

    /// One is not in use any more.
    #[inline]
    pub(crate) fn release(&mut self, entry: u16) {
        self.released.push(entry);
    }

    /// All that were ever in use.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.made.iter()
    }
}

impl<T> Index<u16> for Entries<T> {
    type Output = T;

    #[inline]
    fn index(&self, entry: u16) -> &T {
        &self.made[usize::from(entry)]
    }
}

impl<T> IndexMut<u16> for Entries<T> {
    #[inline]
    fn index_mut(&mut self, entry: u16) -> &mut T {
        &mut self.made[usize::from(entry)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entries_are_taken_as_from_a_stack_that_has_all_of_them(steps in prop::collection::vec((any::<bool>(), 0usize..8), 0..80)) {
            let (mut entries, mut stack, mut taken) = (Entries::<u64>::new(8), (0..8u16).rev().collect::<Vec<_>>(), Vec::new());
            for (take, nth) in steps {
                prop_assert_eq!((entries.has_free(), entries.in_use()), (!stack.is_empty(), taken.len()));
                if take && !stack.is_empty() {
                    taken.push(entries.take());
                    prop_assert_eq!(taken.last().copied(), stack.pop());
                } else if !take && !taken.is_empty() {
                    let entry = taken.swap_remove(nth % taken.len());
                    entries.release(entry);
                    stack.push(entry);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "no entry is free")]
    fn no_more_are_taken_than_there_are() {
        let mut entries = Entries::<u64>::new(1);
        let first = entries.take();
        entries[first] = 7;
        entries.take();
    }
}
