//! Numbers given in order whose work completes in any order, and up to which all of it is complete.
//!
//! ```text
//!   1 2 3 4 | 5 . 7 . . | 10        | given: 9, done: 5 and 7
//!   settled = 4          next
//! ```
//! What a release, a fence or an ordered store waits for is a prefix of the numbers: everything before it is
//! done. Invariants: a number is given once and done once; `settled` never goes back. O(1) a number,
//! amortised; a bit's worth of memory for each that is open.

use std::collections::VecDeque;

use durawarp_checkpoint::value;

/// A sequence of numbers from 1 on.
///
/// # Example: the second is done before the first
/// ```
/// use durawarp_persist::sequence::Sequence;
/// let mut sequence = Sequence::default();
/// let (first, second) = (sequence.issue(), sequence.issue());
/// sequence.complete(second);
/// assert_eq!(sequence.settled(), 0);
/// sequence.complete(first);
/// assert_eq!((sequence.settled(), sequence.is_settled()), (2, true));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Sequence {
    issued: u64,
    /// All up to this number are done.
    settled: u64,
    /// Of the numbers after `settled`: which are done. The first is not.
    done: VecDeque<bool>,
}

value!(record Sequence { issued, settled, done });

impl Sequence {
    /// A sequence of which so many numbers have been given and done.
    pub fn after(settled: u64) -> Sequence {
        Sequence { issued: settled, settled, done: VecDeque::new() }
    }

    /// Gives the next number.
    #[inline]
    pub fn issue(&mut self) -> u64 {
        self.issued += 1;
        self.done.push_back(false);
        self.issued
    }

    /// A number is done.
    ///
    /// # Panics
    /// When it was not given, or is done already and settled.
    #[inline]
    pub fn complete(&mut self, number: u64) {
        match self.done.get_mut((number.wrapping_sub(self.settled).wrapping_sub(1)) as usize) {
            Some(done) => *done = true,
            None => panic!("number {number} is not among those open: {} to {}", self.settled + 1, self.issued),
        }
        while self.done.front() == Some(&true) {
            self.done.pop_front();
            self.settled += 1;
        }
    }

    /// The last number given.
    pub fn issued(&self) -> u64 {
        self.issued
    }

    /// All up to this number are done.
    pub fn settled(&self) -> u64 {
        self.settled
    }

    /// All numbers that were given are done.
    pub fn is_settled(&self) -> bool {
        self.settled == self.issued
    }

    /// Numbers given and not settled: also those that are done after one that is not.
    pub fn open(&self) -> u64 {
        self.issued - self.settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    #[should_panic(expected = "number 3 is not among those open: 1 to 2")]
    fn a_number_that_was_not_given_is_not_done() {
        let mut sequence = Sequence::default();
        sequence.issue();
        sequence.issue();
        sequence.complete(3);
    }

    proptest! {
        #[test]
        fn settled_is_the_longest_prefix_of_what_is_done(
            start in 0u64..1000,
            steps in proptest::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..200),
        ) {
            let mut sequence = Sequence::after(start);
            let (mut open, mut issued) = (BTreeSet::new(), start);
            for (issue, which) in steps {
                if issue || open.is_empty() {
                    issued += 1;
                    open.insert(sequence.issue());
                } else {
                    let number = *open.iter().nth(which.index(open.len())).unwrap();
                    open.remove(&number);
                    sequence.complete(number);
                }
                let settled = open.first().map_or(issued, |first| first - 1);
                prop_assert_eq!((sequence.issued(), sequence.settled()), (issued, settled));
                prop_assert_eq!((sequence.open(), sequence.is_settled()), (issued - settled, open.is_empty()));
            }
        }
    }
}
