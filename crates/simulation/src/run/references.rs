//! Functional references that several runs of one workload share: it runs on the functional driver once.
//!
//! Invariants: a run is judged exactly as with a reference of its own. So only whole functional runs are
//! kept; one that took more instructions than a run allows its reference is run again, and fails as it would
//! have. Whoever shares one sees to it that the workload is the same, with its parameters and seed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use durawarp_kernel::functional::Limits;
use durawarp_workload::{FunctionalError, FunctionalRun};

/// What a functional run follows from, beside its workload: lanes of a warp, whether stores to logs are
/// dropped, and SMs of another machine.
type Way = (u32, bool, Option<u32>);

/// References of one workload.
#[derive(Debug)]
pub struct References {
    runs: Mutex<BTreeMap<Way, Arc<FunctionalRun>>>,
    /// What each may hold to be kept.
    most_bytes: u64,
}

impl References {
    /// None yet; one of more than `most_bytes` bytes is not kept.
    pub fn new(most_bytes: u64) -> References {
        References { runs: Mutex::default(), most_bytes }
    }

    /// Forgets all.
    pub(crate) fn clear(&self) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// How many are kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The reference under `limits`, or what `run` makes under them.
    pub(super) fn of(
        &self,
        limits: &Limits<'_>,
        run: impl FnOnce() -> Result<FunctionalRun, FunctionalError>,
    ) -> Result<Arc<FunctionalRun>, FunctionalError> {
        let way = (limits.warp_size, limits.drops_log_stores, limits.other_machine_sms);
        // Held while it runs: another run of the workload has nothing better to do than to wait for it.
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let allowed = |run: &FunctionalRun| {
            run.launches().iter().all(|launch| launch.counts.warp_instructions < limits.warp_instructions)
        };
        if let Some(kept) = runs.get(&way)
            && allowed(kept)
        {
            return Ok(kept.clone());
        }
        let made = Arc::new(run()?);
        let bytes: u64 = made.memory().ranges().map(|(_, bytes)| bytes.len() as u64).sum();
        if bytes <= self.most_bytes {
            runs.insert(way, made.clone());
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_workload::{Choice, Resolved, Workload};

    /// How often the functional driver runs when references are asked for under these limits of instructions,
    /// in this order, and whether each was there.
    fn runs(references: &References, ways: &[(u64, u32)]) -> (u32, Vec<bool>) {
        let choice = Choice { profile: Some("ci".to_owned()), ..Choice::default() };
        let workload: Resolved = Workload::load("vecadd").and_then(|workload| workload.resolve(&choice)).unwrap();
        let mut ran = 0;
        let came = ways.iter().map(|&(warp_instructions, warp_size)| {
            let limits = Limits { warp_instructions, warp_size, ..Limits::default() };
            let run = || {
                ran += 1;
                workload.run_functional(&limits)
            };
            references.of(&limits, run).is_ok()
        });
        let came = came.collect();
        (ran, came)
    }

    #[test]
    fn a_reference_runs_once_a_way_and_again_where_a_run_allows_it_less() {
        let most = Limits::default().warp_instructions;
        let shared = References::new(u64::MAX);
        assert_eq!(runs(&shared, &[(most, 32), (most, 32), (most, 64)]), (2, vec![true; 3]));
        let executed = shared.runs.lock().unwrap()[&(32, false, None)].launches()[0].counts.warp_instructions;
        assert_eq!(runs(&shared, &[(executed + 1, 32)]), (0, vec![true]));
        assert_eq!(
            runs(&shared, &[(executed - 1, 32), (most, 32)]),
            (1, vec![false, true]),
            "it fails as its own would"
        );
    }

    #[test]
    fn one_that_is_too_large_is_not_kept() {
        let most = Limits::default().warp_instructions;
        assert_eq!(runs(&References::new(40_000), &[(most, 32), (most, 32)]), (2, vec![true; 2]));
    }
}
