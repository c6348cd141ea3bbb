//! What points of a sweep share: functional references of their workloads, freed with the last point that has
//! one, and beginnings of those whose parameters change on the way.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::batch::Batch;
use crate::run::References;
use crate::run::checkpoint::Beginnings;

/// Bytes of references that are kept at a time, at most.
const KEPT_BYTES: u64 = 1 << 30;

/// References by workload, and beginnings.
#[derive(Debug)]
pub(super) struct SharedParts<'a> {
    beginnings: Beginnings<'a>,
    /// Of each content of the batch that several points have, and how many of these are still to be judged.
    of: Vec<Option<(References, AtomicUsize)>>,
}

impl<'a> SharedParts<'a> {
    /// For these points.
    pub(super) fn new(batch: &Batch, points: &[usize], beginnings: Beginnings<'a>) -> SharedParts<'a> {
        let mut left = vec![0; batch.contents()];
        for &point in points {
            left[batch.content_of(point)] += 1;
        }
        let sharing = left.iter().filter(|points| **points > 1).count().max(1) as u64;
        let of = |points| (points > 1).then(|| (References::new(KEPT_BYTES / sharing), AtomicUsize::new(points)));
        SharedParts { beginnings, of: left.into_iter().map(of).collect() }
    }

    /// The references of a point's workload, for the time that `run` takes; none where no other point has it.
    pub(super) fn within<T>(
        &self,
        batch: &Batch,
        point: usize,
        run: impl FnOnce(Option<&References>, &Beginnings<'a>) -> T,
    ) -> T {
        let Some((references, left)) = &self.of[batch.content_of(point)] else { return run(None, &self.beginnings) };
        let result = run(Some(references), &self.beginnings);
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
        let shared = SharedParts::new(&batch, &[0, 1, 2], Beginnings::default());
        let address = |point| shared.within(&batch, point, |found, _| found.map(std::ptr::from_ref));
        let first = address(0);
        assert!(first.is_some() && address(1).is_none());
        assert_eq!(address(2), first);
        let alone = SharedParts::new(&batch, &[0, 1], Beginnings::default());
        assert!(alone.within(&batch, 0, |found, _| found.is_none()), "the other point is not to run");
    }
}
