//! The persist barrier of a kernel: all CTAs reach it, markers drain if the scheme sends any, all CTAs go on.
//!
//! | state | left when | for |
//! |---|---|---|
//! | gathering | all CTAs that have not ended are there | draining (with markers) or gathering of the next |
//! | draining | every SM says that its marker is acknowledged | gathering of the next |
//!
//! Source: Gope et al. section 6 (barriers of the kernel scope). Invariant: it opens only when no CTA waits
//! for room on an SM, since such a CTA has not reached it. Not modelled: two barriers under way; a warp waits
//! at one at a time.

use durawarp_checkpoint::value;
use durawarp_engine::Time;
use durawarp_kernel::ir::{Kernel, Op, PmOp};

/// What every SM is told next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Release {
    /// Send a marker.
    Drain,
    /// Go on. `since` is when the first warp reached the barrier.
    Open { since: Option<Time> },
}

/// The barrier under way of a launch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KernelBarrier {
    /// CTAs at the barrier.
    reached: u64,
    /// Markers follow.
    marks: bool,
    /// SMs whose markers are not acknowledged.
    draining: u32,
    /// When the first warp reached it.
    since: Option<Time>,
    /// The kernel has such a barrier.
    possible: bool,
}

value!(record KernelBarrier { reached, marks, draining, since, possible });

impl KernelBarrier {
    /// The barriers of a launch of `kernel`; none was reached yet.
    pub(super) fn of(kernel: &Kernel) -> KernelBarrier {
        let possible = kernel.code.iter().any(|inst| matches!(inst.op, Op::Pm(PmOp::BarrierKr)));
        KernelBarrier { possible, ..KernelBarrier::default() }
    }

    /// Whether the kernel has such a barrier.
    pub(super) fn is_possible(&self) -> bool {
        self.possible
    }

    /// CTAs at the barrier.
    pub(super) fn reached(&self) -> u64 {
        self.reached
    }

    /// A CTA has reached it; its first warp did at `since`.
    pub(super) fn reach(&mut self, marks: bool, since: Time) {
        self.reached += 1;
        self.marks = marks;
        self.since = Some(self.since.map_or(since, |first| first.min(since)));
    }

    /// The end of gathering, when all `resident` CTAs are here; `resident` is none while CTAs wait for room.
    pub(super) fn complete(&mut self, resident: Option<u64>, sms: u32) -> Option<Release> {
        if self.reached == 0 || resident != Some(self.reached) || self.draining > 0 {
            return None;
        }
        self.reached = 0;
        if self.marks {
            self.draining = sms;
            Some(Release::Drain)
        } else {
            Some(self.open())
        }
    }

    /// An SM's marker is acknowledged; the last one opens the barrier.
    pub(super) fn drained(&mut self) -> Option<Release> {
        self.draining -= 1;
        (self.draining == 0).then(|| self.open())
    }

    fn open(&mut self) -> Release {
        Release::Open { since: self.since.take() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_with_the_last_cta_and_not_while_one_waits_for_room() {
        let mut barrier = KernelBarrier::default();
        barrier.reach(false, 90);
        assert_eq!(barrier.complete(Some(2), 3), None, "one of two");
        barrier.reach(false, 80);
        assert_eq!(barrier.complete(None, 3), None, "a third has no room yet");
        assert_eq!(barrier.complete(Some(2), 3), Some(Release::Open { since: Some(80) }));
        assert_eq!(barrier.complete(Some(0), 3), None, "opened once");
    }

    #[test]
    fn with_markers_it_opens_when_the_last_sm_has_drained() {
        let mut barrier = KernelBarrier::default();
        barrier.reach(true, 5);
        assert_eq!(barrier.complete(Some(1), 2), Some(Release::Drain));
        assert_eq!((barrier.complete(Some(0), 2), barrier.drained()), (None, None));
        assert_eq!(barrier.drained(), Some(Release::Open { since: Some(5) }));
    }
}
