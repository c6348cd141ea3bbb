//! What an SM counted, kernel by kernel.
//!
//! Where launches run one after another, a launch begins only when all CTAs of the one before have ended,
//! with every load, store and persist of theirs done. So whatever an SM counts from the start of a launch to
//! the start of the next belongs to that launch, and the counts of all kernels together are the SM's.
//! Launches of one kernel share an account: programs launch a kernel hundreds of times.
//!
//! Where launches overlap, an SM counts for one of those whose CTAs it holds: for the first to come, until
//! the SM holds none of it; then for the earliest that is left. While an SM holds CTAs of one launch alone,
//! that is exact. The sum of all kernels is the SM's count in any case.

use super::SmCounters;
use durawarp_checkpoint::value;

/// Accounts of an SM, one a kernel.
#[derive(Debug, Default)]
pub(super) struct ByKernel {
    closed: Vec<(String, SmCounters)>,
    /// Accounts of the launches in flight, by their places.
    of_place: Vec<usize>,
    /// The place that is counted for, its account, and what was counted when that began.
    running: Option<(u8, usize, SmCounters)>,
}

value!(record ByKernel { closed, of_place, running });

impl ByKernel {
    /// A launch of `kernel` begins in a place.
    pub(super) fn begin(&mut self, place: u8, kernel: &str) {
        let account = self.closed.iter().position(|(name, _)| name == kernel).unwrap_or_else(|| {
            self.closed.push((kernel.to_owned(), SmCounters::default()));
            self.closed.len() - 1
        });
        let places = self.of_place.len().max(usize::from(place) + 1);
        self.of_place.resize(places, account);
        self.of_place[usize::from(place)] = account;
    }

    /// From here on, when the SM has counted `now`, it counts for the launch in a place.
    pub(super) fn count_for(&mut self, place: u8, now: SmCounters) {
        if let Some((_, account, from)) = &self.running {
            self.closed[*account].1.add_growth(from, &now);
        }
        self.running = Some((place, self.of_place[usize::from(place)], now));
    }

    /// It counts for the launch in this place.
    pub(super) fn counts_for(&self, place: u8) -> bool {
        self.running.as_ref().is_some_and(|(counted, ..)| *counted == place)
    }

    /// More than one launch was in flight at once.
    pub(super) fn has_several(&self) -> bool {
        self.of_place.len() > 1
    }

    /// Every kernel's counts, in the order of their first launches, when the SM has counted `now`.
    pub(super) fn totals(&self, now: &SmCounters) -> Vec<(String, SmCounters)> {
        let mut totals = self.closed.clone();
        if let Some((_, account, from)) = &self.running {
            totals[*account].1.add_growth(from, now);
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernels_launches_share_an_account_and_nothing_is_lost() {
        let ctas = |ctas| SmCounters { ctas, ..SmCounters::default() };
        let mut books = ByKernel::default();
        for (kernel, counted) in [("a", 0), ("b", 3), ("a", 10), ("a", 11)] {
            books.begin(0, kernel);
            books.count_for(0, ctas(counted));
        }
        assert_eq!(books.totals(&ctas(15)), [("a".to_owned(), ctas(3 + 1 + 4)), ("b".to_owned(), ctas(7))]);
    }

    #[test]
    fn launches_in_flight_are_counted_for_one_at_a_time_and_nothing_is_lost() {
        let ctas = |ctas| SmCounters { ctas, ..SmCounters::default() };
        let mut books = ByKernel::default();
        books.begin(0, "a");
        books.count_for(0, ctas(0));
        assert!(!books.has_several());
        books.begin(1, "b");
        assert!(books.counts_for(0) && !books.counts_for(1) && books.has_several());
        books.count_for(1, ctas(5));
        // Another launch takes the place of the first while the second is counted for.
        books.begin(0, "c");
        books.count_for(0, ctas(7));
        let totals = [("a".to_owned(), ctas(5)), ("b".to_owned(), ctas(2)), ("c".to_owned(), ctas(4))];
        assert_eq!(books.totals(&ctas(11)), totals);
    }
}
