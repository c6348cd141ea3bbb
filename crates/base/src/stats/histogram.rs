//! A histogram of integers: exact count, sum, least and greatest; percentiles within 1/64 of their value.
//!
//! Buckets are log-linear (as in HDR histograms): values below 128 have one each, every octave above is cut
//! into 64 of equal width. Nothing is allocated before the first value, and no more than up to the greatest
//! bucket in use.
//!
//! Invariants: merging histograms equals recording all their values in one, in any order; integers alone, so
//! that a percentile is the same on every host. Not kept: the values themselves, their order.

use durawarp_checkpoint::value;

/// Buckets that an octave is cut into, as a power of two.
const STEP_BITS: u32 = 6;
const STEPS: usize = 1 << STEP_BITS;

/// A histogram of integers.
///
/// # Example: a hundred values
/// ```
/// let mut h = durawarp_base::stats::Histogram::default();
/// (1..=100).for_each(|value| h.record(value));
/// assert_eq!((h.count(), h.sum(), h.percentile(50), h.percentile(99), h.max()), (100, 5050, 50, 99, 100));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    sum: u64,
    least: u64,
    greatest: u64,
}

value!(record Histogram { buckets, count, sum, least, greatest });

fn bucket_of(value: u64) -> usize {
    let shift = value.checked_ilog2().unwrap_or(0).saturating_sub(STEP_BITS);
    shift as usize * STEPS + (value >> shift) as usize
}

/// The greatest value of a bucket.
fn last_of(bucket: usize) -> u64 {
    let shift = (bucket / STEPS).saturating_sub(1);
    let top = (bucket - shift * STEPS) as u64;
    (top << shift) + ((1 << shift) - 1)
}

impl Histogram {
    /// Takes a value in. O(1).
    #[inline]
    pub fn record(&mut self, value: u64) {
        let bucket = bucket_of(value);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.least = if self.count == 0 { value } else { self.least.min(value) };
        self.greatest = self.greatest.max(value);
        self.count += 1;
        self.sum += value;
    }

    /// Takes in all values of another.
    pub fn add(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        if other.buckets.len() > self.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.least = if self.count == 0 { other.least } else { self.least.min(other.least) };
        self.greatest = self.greatest.max(other.greatest);
        self.count += other.count;
        self.sum += other.sum;
    }

    /// Values taken in.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The least of them; 0 without any.
    pub fn min(&self) -> u64 {
        self.least
    }

    /// The greatest of them; 0 without any.
    pub fn max(&self) -> u64 {
        self.greatest
    }

    /// The value of rank `ceil(percent/100 x count)` (nearest rank), or up to 1/64 of it more; never more
    /// than the greatest. 0 without any. O(buckets).
    pub fn percentile(&self, percent: u32) -> u64 {
        let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100).max(1);
        let mut below = 0u128;
        for (bucket, &values) in self.buckets.iter().enumerate() {
            below += u128::from(values);
            if below >= rank {
                return last_of(bucket).clamp(self.least, self.greatest);
            }
        }
        self.greatest
    }

    /// Each bucket that holds values, in order: the value that none of them exceeds (the greatest of all in
    /// the last), and how many there are. What a cumulative distribution is drawn of, within 1/64 of its
    /// values.
    pub fn steps(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let used = self.buckets.iter().enumerate().filter(|(_, values)| **values > 0);
        used.map(|(bucket, &values)| (last_of(bucket).min(self.greatest), values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        assert_eq!(
            [bucket_of(0), bucket_of(127), bucket_of(128), bucket_of(129), bucket_of(130)],
            [0, 127, 128, 128, 129]
        );
        for bucket in 0..=bucket_of(u64::MAX) {
            assert_eq!(bucket_of(last_of(bucket)), bucket);
            assert!(last_of(bucket) == u64::MAX || bucket_of(last_of(bucket) + 1) == bucket + 1);
        }
    }

    #[test]
    fn without_values_everything_is_zero_and_nothing_is_allocated() {
        let h = Histogram::default();
        assert_eq!((h.count(), h.sum(), h.min(), h.max(), h.percentile(50)), (0, 0, 0, 0, 0));
        assert_eq!(h.buckets.capacity(), 0);
    }

    #[test]
    fn steps_hold_every_value_in_order() {
        let mut h = Histogram::default();
        [5, 5, 9, 1_000_003].into_iter().for_each(|value| h.record(value));
        assert_eq!(h.steps().collect::<Vec<_>>(), [(5, 2), (9, 1), (1_000_003, 1)]);
        assert_eq!(Histogram::default().steps().count(), 0);
    }

    #[test]
    fn equal_values_have_exact_percentiles() {
        let mut h = Histogram::default();
        (0..10).for_each(|_| h.record(100_003));
        assert_eq!((h.percentile(1), h.percentile(50), h.percentile(100)), (100_003, 100_003, 100_003));
    }
}
