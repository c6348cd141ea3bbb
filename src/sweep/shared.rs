//! Functional references of a sweep's workloads, shared by the points that run the same one, and freed with
//! the last of them.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::batch::Batch;
use crate::run::References;

/// Bytes of references that are kept at a time, at most.
const KEPT_BYTES: u64 = 1 << 30;

/// References by workload.
#[derive(Debug)]
pub(super) struct SharedReferences {
    /// Of each content of the batch that several points have, and how many of these are still to be judged.
    of: Vec<Option<(References, AtomicUsize)>>,
}

impl SharedReferences {
    /// For these points.
    pub(super) fn new(batch: &Batch, points: &[usize]) -> SharedReferences {
        let mut left = vec![0; batch.contents()];
        for &point in points {
            left[batch.content_of(point)] += 1;
        }
        let sharing = left.iter().filter(|points| **points > 1).count().max(1) as u64;
        let of = |points| (points > 1).then(|| (References::new(KEPT_BYTES / sharing), AtomicUsize::new(points)));
        SharedReferences { of: left.into_iter().map(of).collect() }
    }

    /// Those of a point's workload, for the time that `run` takes; none where no other point has it.
    pub(super) fn within<T>(&self, batch: &Batch, point: usize, run: impl FnOnce(Option<&References>) -> T) -> T {
        let Some((references, left)) = &self.of[batch.content_of(point)] else { return run(None) };
        let result = run(Some(references));
        // After a panic a point is never counted: its references are freed at the sweep's end.
        if left.fetch_sub(1, Ordering::Relaxed) == 1 {
            references.clear();
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Experiment;

    #[test]
    fn points_of_one_workload_share_and_others_do_not() {
        let mut batch = Batch::default();
        let recipe = |elements: u64| Experiment::of("vecadd").profile("ci").param("N", elements);
        for (elements, scheme) in [(300, "store+clwb"), (600, "base"), (300, "nt-store")] {
            batch.add("a point", 1, recipe(elements).scheme(scheme)).unwrap_or_else(|faults| panic!("{faults}"));
        }
        let shared = SharedReferences::new(&batch, &[0, 1, 2]);
        let address = |point| shared.within(&batch, point, |found| found.map(std::ptr::from_ref));
        let first = address(0);
        assert!(first.is_some() && address(1).is_none());
        assert_eq!(address(2), first);
        let alone = SharedReferences::new(&batch, &[0, 1]);
        assert!(alone.within(&batch, 0, |found| found.is_none()), "the other point is not to run");
    }
}
