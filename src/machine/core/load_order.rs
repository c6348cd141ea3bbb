//! Loads of a hart that bound before older ones: what keeps the order that other harts may see.
//!
//! | consistency | a line of such a load is lost | an older load binds to the same line |
//! |---|---|---|
//! | `tso` | the load and all after it are executed again | - |
//! | `rvwmo` | noted | executed again if the line was lost in between: loads of one address are in order |
//!
//! Invariant: both lists are in program order; an early load has an unbound one before it.

use std::collections::VecDeque;

/// A load that bound early.
#[derive(Debug, Clone, Copy)]
struct Early {
    number: u64,
    line: u64,
    /// Its line was lost since.
    lost: bool,
}

/// The loads of a hart by whether they have bound.
#[derive(Debug, Default)]
pub(super) struct LoadOrder {
    /// Dispatched, and without a value.
    unbound: VecDeque<u64>,
    early: VecDeque<Early>,
}

impl LoadOrder {
    /// A load is dispatched that cannot bind yet.
    pub(super) fn waits(&mut self, number: u64) {
        self.unbound.push_back(number);
    }

    /// The youngest load binds as it is dispatched.
    #[inline]
    pub(super) fn bound_at_once(&mut self, number: u64, line: u64) {
        if !self.unbound.is_empty() {
            self.early.push_back(Early { number, line, lost: false });
        }
    }

    /// A load that waited binds.
    pub(super) fn bound(&mut self, number: u64, line: u64) {
        if let Ok(at) = self.unbound.binary_search(&number) {
            self.unbound.remove(at);
        }
        let Some(&oldest) = self.unbound.front() else {
            self.early.clear();
            return;
        };
        if oldest < number {
            let at = self.early.partition_point(|early| early.number < number);
            self.early.insert(at, Early { number, line, lost: false });
        }
        while self.early.front().is_some_and(|early| early.number < oldest) {
            self.early.pop_front();
        }
    }

    /// A load that has just bound has bytes of another line, too.
    pub(super) fn has_bytes_of(&mut self, number: u64, line: u64) {
        if self.unbound.front().is_some_and(|&oldest| oldest < number) {
            let at = self.early.partition_point(|early| early.number <= number);
            self.early.insert(at, Early { number, line, lost: false });
        }
    }

    /// A line is lost, or another hart of the core has written it. The first load to be executed again.
    pub(super) fn lost(&mut self, line: u64, tso: bool) -> Option<u64> {
        let mut of_line = self.early.iter_mut().filter(|early| early.line == line);
        if tso {
            return of_line.next().map(|early| early.number);
        }
        of_line.for_each(|early| early.lost = true);
        None
    }

    /// A load binds to a line. The first younger one of the line to be executed again, as it has older bytes.
    pub(super) fn overtaken(&self, number: u64, line: u64) -> Option<u64> {
        let stale = |early: &&Early| early.lost && early.line == line && early.number > number;
        self.early.iter().find(stale).map(|early| early.number)
    }

    /// Forgets loads from this number on.
    pub(super) fn squash(&mut self, first: u64) {
        self.unbound.truncate(self.unbound.partition_point(|&number| number < first));
        self.early.truncate(self.early.partition_point(|early| early.number < first));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_early_until_all_before_it_have_bound() {
        let mut loads = LoadOrder::default();
        loads.bound_at_once(1, 0);
        loads.waits(2);
        loads.bound_at_once(3, 64);
        loads.waits(4);
        assert_eq!((loads.lost(0, true), loads.lost(64, true)), (None, Some(3)));
        loads.bound(4, 128);
        assert_eq!(loads.lost(128, true), Some(4));
        loads.bound(2, 192);
        assert_eq!([64, 128, 192].map(|line| loads.lost(line, true)), [None; 3]);
    }

    #[test]
    fn the_weak_order_executes_again_what_has_older_bytes_of_its_own_line() {
        let mut loads = LoadOrder::default();
        loads.waits(2);
        loads.bound_at_once(3, 64);
        assert_eq!((loads.overtaken(2, 64), loads.lost(64, false)), (None, None));
        assert_eq!((loads.overtaken(2, 64), loads.overtaken(2, 0)), (Some(3), None));
        loads.squash(3);
        assert_eq!(loads.overtaken(2, 64), None);
    }
}
