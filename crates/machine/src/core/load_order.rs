//! Loads of a hart that bound before older ones: what keeps the order that other harts may see.
//!
//! | consistency | a line of such a load is lost | an older load binds to one of its lines |
//! |---|---|---|
//! | `tso` | the load and all after it are executed again | - |
//! | `rvwmo` | noted | executed again if a line was lost in between: loads of one address are in order |
//!
//! A load whose bytes come from older stores of its hart alone is one of these, too: they may be performed,
//! and their lines lost, before an older load binds. Source: unprivileged ISA, chapter RVWMO, preserved
//! program order, rule 2, read by whole lines. Invariants: both lists are in program order; an early load has
//! an unbound one before it.

use std::collections::VecDeque;

use super::l1d::line_of;
use durawarp_checkpoint::value;

/// The lines of a load's first and of its last byte, which are two of a load across lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LoadLines {
    pub(super) first: u64,
    pub(super) last: u64,
}

value!(record LoadLines { first, last });

impl LoadLines {
    /// The lines of `width` bytes at an address.
    #[inline]
    pub(super) fn of(address: u64, width: u8) -> LoadLines {
        LoadLines { first: line_of(address), last: line_of(address + u64::from(width) - 1) }
    }

    /// There is one line only.
    #[inline]
    pub(super) fn are_one(self) -> bool {
        self.first == self.last
    }

    fn has(self, line: u64) -> bool {
        self.first == line || self.last == line
    }
}

/// A load that bound early.
#[derive(Debug, Clone, Copy)]
struct Early {
    number: u64,
    lines: LoadLines,
    /// One of its lines was lost since.
    lost: bool,
}

value!(record Early { number, lines, lost });

/// The loads of a hart by whether they have bound.
#[derive(Debug, Default)]
pub(super) struct LoadOrder {
    /// Dispatched, and without a value.
    unbound: VecDeque<u64>,
    early: VecDeque<Early>,
}

value!(record LoadOrder { unbound, early });

impl LoadOrder {
    /// A load is dispatched that cannot bind yet.
    pub(super) fn waits(&mut self, number: u64) {
        self.unbound.push_back(number);
    }

    /// The youngest load binds as it is dispatched.
    #[inline]
    pub(super) fn bound_at_once(&mut self, number: u64, lines: LoadLines) {
        if !self.unbound.is_empty() {
            self.early.push_back(Early { number, lines, lost: false });
        }
    }

    /// A load that waited binds. The first younger one that has older bytes of one of its lines: it is to be
    /// executed again.
    #[must_use]
    pub(super) fn bound(&mut self, number: u64, lines: LoadLines) -> Option<u64> {
        // Before anything is forgotten: this load may be the last one that younger ones were early of.
        let stale = |early: &&Early| {
            early.lost && early.number > number && (early.lines.has(lines.first) || early.lines.has(lines.last))
        };
        let overtaken = self.early.iter().find(stale).map(|early| early.number);
        if let Ok(at) = self.unbound.binary_search(&number) {
            self.unbound.remove(at);
        }
        let Some(&oldest) = self.unbound.front() else {
            self.early.clear();
            return overtaken;
        };
        if oldest < number {
            let at = self.early.partition_point(|early| early.number < number);
            self.early.insert(at, Early { number, lines, lost: false });
        }
        while self.early.front().is_some_and(|early| early.number < oldest) {
            self.early.pop_front();
        }
        overtaken
    }

    /// A line is lost, or another hart of the core has written it. The first load to be executed again.
    #[must_use]
    pub(super) fn lost(&mut self, line: u64, tso: bool) -> Option<u64> {
        let mut of_line = self.early.iter_mut().filter(|early| early.lines.has(line));
        if tso {
            return of_line.next().map(|early| early.number);
        }
        of_line.for_each(|early| early.lost = true);
        None
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

    /// One line.
    fn at(line: u64) -> LoadLines {
        LoadLines::of(line, 8)
    }

    #[test]
    fn a_load_is_early_until_all_before_it_have_bound() {
        let mut loads = LoadOrder::default();
        loads.bound_at_once(1, at(0));
        loads.waits(2);
        loads.bound_at_once(3, at(64));
        loads.waits(4);
        assert_eq!((loads.lost(0, true), loads.lost(64, true)), (None, Some(3)));
        assert_eq!(loads.bound(4, at(128)), None);
        assert_eq!(loads.lost(128, true), Some(4));
        assert_eq!(loads.bound(2, at(192)), None);
        assert_eq!([64, 128, 192].map(|line| loads.lost(line, true)), [None; 3]);
    }

    #[test]
    fn the_weak_order_executes_again_what_has_older_bytes_of_its_own_line() {
        for (lost, binds, again) in [(64, 64, Some(3)), (64, 0, None), (0, 64, None)] {
            let mut loads = LoadOrder::default();
            loads.waits(2);
            loads.bound_at_once(3, at(64));
            assert_eq!(loads.lost(lost, false), None);
            // The last load that had not bound: nothing is early after it.
            assert_eq!(loads.bound(2, at(binds)), again, "{lost} is lost, {binds} bound");
            assert_eq!(loads.lost(64, true), None);
        }
    }

    #[test]
    fn what_was_squashed_is_not_executed_again() {
        let mut loads = LoadOrder::default();
        loads.waits(2);
        loads.bound_at_once(3, at(64));
        assert_eq!(loads.lost(64, false), None);
        loads.squash(3);
        assert_eq!(loads.bound(2, at(64)), None);
    }

    #[test]
    fn both_lines_of_a_load_across_lines_count_of_the_early_one_and_of_the_older_one() {
        let across = LoadLines::of(60, 8);
        assert_eq!((across, across.are_one()), (LoadLines { first: 0, last: 64 }, false));
        for line in [0, 64] {
            let early = |lines| {
                let mut loads = LoadOrder::default();
                loads.waits(2);
                loads.bound_at_once(3, lines);
                loads
            };
            assert_eq!(early(across).lost(line, true), Some(3), "{line}");
            for (younger, older) in [(across, at(line)), (at(line), across)] {
                let mut loads = early(younger);
                assert_eq!(loads.lost(line, false), None);
                assert_eq!(loads.bound(2, older), Some(3), "{younger:?} before {older:?}");
            }
        }
    }
}
