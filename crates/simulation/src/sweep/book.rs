//! The books of a sweep: which point runs next, and how far all of them are.
//!
//! Longest first, so that the last to end is short; a point that does not fit into the memory that is left
//! waits while shorter ones that fit go before it. One point may always run, however large. A point can be
//! put back once, to come after all others: somebody else is at it. Invariant: every point that is not put
//! back is given out once.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How a sweep is getting on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Points of the sweep.
    pub points: usize,
    /// Points that are done, failed ones too.
    pub done: usize,
    /// Points that run.
    pub running: usize,
    /// Points that failed.
    pub failed: usize,
    /// Warp instructions simulated so far, all points together.
    pub warp_instructions: u64,
    /// These, a second.
    pub warp_instructions_per_s: f64,
    /// Seconds since the sweep began.
    pub elapsed_s: f64,
    /// Seconds left, as the work that is done suggests; unknown before the first point is done.
    pub left_s: Option<f64>,
}

/// What a point needs, as estimated.
#[derive(Debug, Clone, Copy)]
pub struct Need {
    /// Work in any unit that is the same for all points.
    pub work: u64,
    /// Bytes of memory while it runs.
    pub bytes: u64,
}

/// The order in which points are given out while all fit: the longest first; equal work: in their order.
pub(super) fn in_order(needs: &[Need]) -> Vec<usize> {
    let mut points: Vec<usize> = (0..needs.len()).collect();
    points.sort_by_key(|&point| std::cmp::Reverse(needs[point].work));
    points
}

/// Points that wait, and the memory of those that run.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Point and its need, the longest last.
    left: Vec<(usize, Need)>,
    /// Points that were put back.
    back: std::collections::BTreeSet<usize>,
    running: usize,
    bytes_used: u64,
    bytes: u64,
}

/// What a worker does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// This point.
    Run(usize),
    /// Wait until another is done.
    Wait,
    /// Nothing is left.
    Nothing,
}

impl Waiting {
    pub(super) fn new(needs: &[Need], bytes: u64) -> Self {
        let left = in_order(needs).into_iter().rev().map(|point| (point, needs[point])).collect();
        Waiting { left, back: std::collections::BTreeSet::new(), running: 0, bytes_used: 0, bytes }
    }

    /// Gives out the longest point that fits.
    pub(super) fn next(&mut self) -> Next {
        if self.left.is_empty() {
            return Next::Nothing;
        }
        let room = self.bytes.saturating_sub(self.bytes_used);
        let fits = |(_, need): &(usize, Need)| need.bytes <= room;
        let at = match self.left.iter().rposition(fits) {
            Some(at) => at,
            None if self.running == 0 => self.left.len() - 1,
            None => return Next::Wait,
        };
        let (point, need) = self.left.remove(at);
        self.running += 1;
        self.bytes_used += need.bytes;
        Next::Run(point)
    }

    /// Points that are not done.
    pub(super) fn remaining(&self) -> usize {
        self.left.len() + self.running
    }

    /// The point was put back before.
    pub(super) fn is_back(&self, point: usize) -> bool {
        self.back.contains(&point)
    }

    /// A point that was given out comes again, after all others.
    pub(super) fn put_back(&mut self, point: usize, need: Need) {
        self.done(need);
        self.back.insert(point);
        self.left.insert(0, (point, need));
    }

    /// A point that ran is done.
    pub(super) fn done(&mut self, need: Need) {
        self.running -= 1;
        self.bytes_used -= need.bytes;
    }
}

/// How far the points are, told by the workers.
#[derive(Debug)]
pub(super) struct Tally {
    needs: Vec<Need>,
    /// Warp instructions of each point so far.
    instructions: Vec<AtomicU64>,
    /// Estimated work of points that are done.
    work_done: AtomicU64,
    running: AtomicUsize,
    done: AtomicUsize,
    failed: AtomicUsize,
}

impl Tally {
    pub(super) fn new(needs: Vec<Need>) -> Self {
        Tally {
            instructions: needs.iter().map(|_| AtomicU64::new(0)).collect(),
            needs,
            work_done: AtomicU64::new(0),
            running: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            failed: AtomicUsize::new(0),
        }
    }

    pub(super) fn begin(&self) {
        self.running.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn advance(&self, point: usize, instructions: u64) {
        self.instructions[point].store(instructions, Ordering::Relaxed);
    }

    pub(super) fn end(&self, point: usize, failed: bool) {
        self.running.fetch_sub(1, Ordering::Relaxed);
        self.done.fetch_add(1, Ordering::Relaxed);
        self.failed.fetch_add(usize::from(failed), Ordering::Relaxed);
        self.work_done.fetch_add(self.needs[point].work, Ordering::Relaxed);
    }

    /// A point that began will begin again.
    pub(super) fn put_back(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    /// How the sweep is getting on after `elapsed_s` seconds.
    pub(super) fn progress(&self, elapsed_s: f64) -> Progress {
        let all: u64 = self.needs.iter().map(|need| need.work).sum();
        let work_done = self.work_done.load(Ordering::Relaxed);
        let done = self.done.load(Ordering::Relaxed);
        let instructions: u64 = self.instructions.iter().map(|count| count.load(Ordering::Relaxed)).sum();
        Progress {
            points: self.needs.len(),
            done,
            running: self.running.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            warp_instructions: instructions,
            warp_instructions_per_s: instructions as f64 / elapsed_s.max(1e-9),
            elapsed_s,
            left_s: (work_done > 0).then(|| elapsed_s * (all - work_done) as f64 / work_done as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(all: &[(u64, u64)]) -> Vec<Need> {
        all.iter().map(|&(work, bytes)| Need { work, bytes }).collect()
    }

    #[test]
    fn the_longest_goes_first_and_equals_in_their_order() {
        let mut waiting = Waiting::new(&needs(&[(1, 0), (5, 0), (3, 0), (5, 0)]), 10);
        let order: Vec<Next> = (0..5).map(|_| waiting.next()).collect();
        assert_eq!(order, [Next::Run(1), Next::Run(3), Next::Run(2), Next::Run(0), Next::Nothing]);
    }

    #[test]
    fn what_does_not_fit_waits_and_smaller_ones_pass() {
        let all = needs(&[(9, 8), (8, 8), (7, 2), (1, 30)]);
        let mut waiting = Waiting::new(&all, 10);
        assert_eq!(waiting.next(), Next::Run(0));
        assert_eq!(waiting.next(), Next::Run(2), "the second longest does not fit");
        assert_eq!(waiting.next(), Next::Wait);
        waiting.done(all[0]);
        assert_eq!(waiting.next(), Next::Run(1));
        waiting.done(all[1]);
        assert_eq!(waiting.next(), Next::Wait, "the largest runs alone");
        waiting.done(all[2]);
        assert_eq!(waiting.next(), Next::Run(3), "larger than all there is, it runs all the same");
    }

    #[test]
    fn what_is_put_back_comes_after_all_others() {
        let all = needs(&[(1, 0), (5, 4), (3, 0)]);
        let mut waiting = Waiting::new(&all, 10);
        assert_eq!((waiting.next(), waiting.remaining()), (Next::Run(1), 3));
        waiting.put_back(1, all[1]);
        assert_eq!((waiting.next(), waiting.next(), waiting.is_back(0)), (Next::Run(2), Next::Run(0), false));
        assert_eq!((waiting.next(), waiting.is_back(1), waiting.next()), (Next::Run(1), true, Next::Nothing));
        waiting.done(all[1]);
        assert_eq!((waiting.bytes_used, waiting.remaining()), (0, 2));
    }

    #[test]
    fn time_left_follows_the_work_that_is_left() {
        let tally = Tally::new(needs(&[(30, 0), (10, 0)]));
        assert_eq!(tally.progress(5.0).left_s, None);
        tally.begin();
        tally.begin();
        tally.advance(0, 600);
        tally.advance(1, 200);
        tally.end(1, true);
        let now = tally.progress(2.0);
        assert_eq!((now.points, now.done, now.running, now.failed), (2, 1, 1, 1));
        assert_eq!((now.left_s, now.warp_instructions_per_s), (Some(6.0), 400.0));
    }
}
