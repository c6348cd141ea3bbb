//! What an SM counted, kernel by kernel.
//!
//! A launch begins only when all CTAs of the one before have ended, with every load, store and persist of
//! theirs done. So whatever an SM counts from the start of a launch to the start of the next belongs to that
//! launch, and the counts of all kernels together are the SM's. Launches of one kernel share an account:
//! programs launch a kernel hundreds of times.

use super::SmCounters;
use durawarp_checkpoint::value;

/// Accounts of an SM, one a kernel.
#[derive(Debug, Default)]
pub(super) struct ByKernel {
    closed: Vec<(String, SmCounters)>,
    /// The kernel that runs, and what was counted when its launch began.
    running: Option<(usize, SmCounters)>,
}

value!(record ByKernel { closed, running });

impl ByKernel {
    /// A launch of `kernel` begins, when the SM has counted `now`.
    pub(super) fn begin(&mut self, kernel: &str, now: SmCounters) {
        if let Some((running, from)) = &self.running {
            self.closed[*running].1.add_growth(from, &now);
        }
        let account = self.closed.iter().position(|(name, _)| name == kernel).unwrap_or_else(|| {
            self.closed.push((kernel.to_owned(), SmCounters::default()));
            self.closed.len() - 1
        });
        self.running = Some((account, now));
    }

    /// Every kernel's counts, in the order of their first launches, when the SM has counted `now`.
    pub(super) fn totals(&self, now: &SmCounters) -> Vec<(String, SmCounters)> {
        let mut totals = self.closed.clone();
        if let Some((running, from)) = &self.running {
            totals[*running].1.add_growth(from, now);
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
            books.begin(kernel, ctas(counted));
        }
        assert_eq!(books.totals(&ctas(15)), [("a".to_owned(), ctas(3 + 1 + 4)), ("b".to_owned(), ctas(7))]);
    }
}
