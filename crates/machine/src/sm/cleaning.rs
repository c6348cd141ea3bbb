//! Cleanings of a combining L1: asked for in order, performed in any.
//!
//! A cleaning has a number, so that a release waits for what came before it only. Its write carries the low
//! bits of the number in its tag. Invariant: fewer cleanings are under way than tags can tell apart.

use std::collections::VecDeque;

use durawarp_checkpoint::value;
use durawarp_persist::sequence::Sequence;

/// Tags of cleanings begin here; warps' tags are below.
const CLEANING: u32 = 1 << 31;

/// Cleanings asked for and under way.
#[derive(Debug, Default)]
pub(super) struct Cleaning {
    /// Numbers and lines to be cleaned, in order.
    queue: VecDeque<(u64, u64)>,
    /// Cleanings asked for, and up to which all are performed.
    numbers: Sequence,
}

value!(record Cleaning { queue, numbers });

impl Cleaning {
    /// The number of a cleaning that is sent at once.
    pub(super) fn number(&mut self) -> u64 {
        self.numbers.issue()
    }

    /// A line is to be cleaned.
    pub(super) fn ask(&mut self, line: u64) {
        let number = self.number();
        self.queue.push_back((number, line));
    }

    /// A cleaning is performed.
    pub(super) fn perform(&mut self, number: u64) {
        self.numbers.complete(number);
    }

    /// The next cleaning: its number and its line.
    pub(super) fn first(&self) -> Option<(u64, u64)> {
        self.queue.front().copied()
    }

    /// Takes the next cleaning.
    pub(super) fn take_first(&mut self) -> Option<(u64, u64)> {
        self.queue.pop_front()
    }

    /// The last cleaning, unless all are performed.
    pub(super) fn last_open(&self) -> Option<u64> {
        (!self.numbers.is_settled()).then_some(self.numbers.issued())
    }

    /// Lines wait to be cleaned.
    #[inline]
    pub(super) fn is_pending(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The cleaning that a tag stands for is performed.
    pub(super) fn perform_tag(&mut self, tag: u32) {
        self.perform(self.of_tag(tag));
    }

    /// Up to which cleaning all are performed.
    pub(super) fn settled(&self) -> u64 {
        self.numbers.settled()
    }

    /// The cleaning that a tag stands for.
    fn of_tag(&self, tag: u32) -> u64 {
        let low = |number: u64| number as u32 & (CLEANING - 1);
        let first = self.numbers.settled() + 1;
        let ahead = (tag & (CLEANING - 1)).wrapping_sub(low(first)) & (CLEANING - 1);
        first + u64::from(ahead)
    }
}

/// A write's reply is of a cleaning.
pub(super) fn is_cleaning(tag: u32) -> bool {
    tag >= CLEANING
}

/// The tag of a cleaning.
pub(super) fn cleaning_tag(number: u64) -> u32 {
    CLEANING | number as u32 & (CLEANING - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_waits_for_what_was_cleaned_before_it_in_any_order() {
        let mut cleaning = Cleaning::default();
        for line in [0, 128, 256] {
            cleaning.ask(line);
        }
        cleaning.perform(2);
        cleaning.perform(3);
        assert_eq!(cleaning.numbers.settled(), 0);
        cleaning.perform(1);
        assert_eq!((cleaning.numbers.settled(), cleaning.numbers.issued()), (3, 3));
    }

    #[test]
    fn tags_stand_for_their_numbers_when_they_have_wrapped() {
        let last = u64::from(CLEANING) * 3 - 2;
        let mut cleaning = Cleaning { numbers: Sequence::after(last), ..Cleaning::default() };
        for number in last + 1..last + 6 {
            cleaning.ask(0);
            assert_eq!(cleaning.of_tag(CLEANING | number as u32 & (CLEANING - 1)), number);
        }
    }
}
