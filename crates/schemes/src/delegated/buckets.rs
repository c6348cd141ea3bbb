//! Counts by fixed buckets, for the shape behind a mean: 1, 2, 3 to 4, 5 to 8, and more; shares by quarters.
//!
//! Invariant: each number that is counted is in one bucket.

use durawarp_checkpoint::value;
use durawarp_persist::HandlerReport;

/// Upper ends of all buckets but the last.
const ENDS: [u64; 4] = [1, 2, 4, 8];

/// How often a number was so large.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Buckets([u64; 5]);

value!(wrapper Buckets);

impl Buckets {
    /// Counts a number of 1 or more.
    pub(super) fn add(&mut self, number: u64) {
        self.0[ENDS.iter().take_while(|&&end| number > end).count()] += 1;
    }

    /// Counts a part of a whole: up to a quarter, a half, three quarters, below the whole, all of it.
    pub(super) fn add_share(&mut self, part: u64, whole: u64) {
        let at = if part >= whole { 4 } else { (part * 4).div_ceil(whole).saturating_sub(1) };
        self.0[at as usize] += 1;
    }

    /// Reports each bucket under its name.
    pub(super) fn report(&self, names: [&'static str; 5], report: &mut HandlerReport) {
        names.into_iter().zip(self.0).for_each(|(name, count)| report.count(name, count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_in_the_bucket_that_ends_with_it() {
        let mut buckets = Buckets::default();
        [1, 2, 3, 4, 5, 8, 9, 100].into_iter().for_each(|number| buckets.add(number));
        assert_eq!(buckets, Buckets([1, 1, 2, 2, 2]));
    }

    #[test]
    fn a_buffer_of_eight_is_full_with_eight_and_not_with_seven() {
        let mut buckets = Buckets::default();
        (1..=8).for_each(|entries| buckets.add_share(entries, 8));
        assert_eq!(buckets, Buckets([2, 2, 2, 1, 1]));
        let mut small = Buckets::default();
        small.add_share(1, 1);
        assert_eq!(small, Buckets([0, 0, 0, 0, 1]));
    }
}
