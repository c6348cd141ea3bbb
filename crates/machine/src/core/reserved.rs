//! The reservation of a hart, from `lr` to `sc`, and the line that it holds meanwhile.
//!
//! ```text
//!  lr performed ──hold: a probe of the line waits──> sc, or lr_hold_cycles are over ──> the probe is answered
//!               └──reservation: sc may succeed─────> sc, or the line is lost or written by another hart
//! ```
//! `lr` takes its line for itself, so that an `sc` that succeeds needs nobody. While the hold lasts, the core
//! answers no probe of the line: a constrained loop ends with its `sc` before another core gets the line, and
//! so one hart succeeds. The hold is bounded: an `lr` without `sc` delays others for a set time only. An `lr`
//! of a line for which a probe waits is performed after the probe, so that harts take turns.
//!
//! Source: the unprivileged ISA, "Eventual Success of Store-Conditional Instructions"; the data caches of
//! Rocket Chip and BOOM, which hold the line for `lrscCycles` = 80. Invariant: a probe waits at most until
//! the hold ends that it met. Not modelled: a time after a hold in which `lr` is refused.

use durawarp_checkpoint::value;

/// What an `sc` must match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reservation {
    pub(super) line: u64,
    pub(super) address: u64,
    pub(super) width: u8,
}

value!(record Reservation { line, address, width });

/// Reservation and hold of a hart.
#[derive(Debug, Default)]
pub(super) struct Reserved {
    reservation: Option<Reservation>,
    /// The line that probes wait for, and the first cycle in which they do not.
    hold: Option<(u64, u64)>,
    /// Cycle in which the `lr` came to the head of dispatch.
    since: Option<u64>,
}

value!(record Reserved { reservation, hold, since });

impl Reserved {
    /// An `lr` that stood at the head since a cycle is performed; its line is held until another one.
    pub(super) fn reserve(&mut self, reservation: Reservation, since: u64, until: u64) {
        *self = Reserved { reservation: Some(reservation), hold: Some((reservation.line, until)), since: Some(since) };
    }

    /// An `sc` of these bytes would succeed.
    pub(super) fn matches(&self, of: Reservation) -> bool {
        self.reservation == Some(of)
    }

    /// An `sc` is performed in a cycle, or fails. Returns the cycle in which its `lr` came to the head of
    /// dispatch, if there was one.
    pub(super) fn end(&mut self, cycle: u64) -> Option<u64> {
        self.reservation = None;
        self.hold = self.hold.map(|(line, until)| (line, until.min(cycle)));
        self.since.take()
    }

    /// A line is lost to the core, or written by another hart.
    pub(super) fn line_changed(&mut self, line: u64) {
        self.reservation = self.reservation.filter(|reservation| reservation.line != line);
        self.hold = self.hold.filter(|&(held, _)| held != line);
    }

    /// The first cycle in which a probe of a line need not wait for this hart; none where it does not now.
    #[inline]
    pub(super) fn holds_until(&self, line: u64, now: u64) -> Option<u64> {
        self.hold.filter(|&(held, until)| held == line && now < until).map(|(_, until)| until)
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        *self = Reserved::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: Reservation = Reservation { line: 64, address: 72, width: 4 };

    #[test]
    fn a_line_is_held_until_the_sc_or_the_end_of_the_hold() {
        let mut reserved = Reserved::default();
        reserved.reserve(OF, 5, 90);
        assert_eq!((reserved.holds_until(64, 89), reserved.holds_until(64, 90)), (Some(90), None));
        assert_eq!(reserved.holds_until(0, 10), None, "another line");
        assert!(reserved.matches(OF) && !reserved.matches(Reservation { width: 8, ..OF }));
        assert_eq!(reserved.end(20), Some(5));
        assert!(!reserved.matches(OF));
        assert_eq!((reserved.holds_until(64, 19), reserved.holds_until(64, 20)), (Some(20), None));
        assert_eq!(reserved.end(30), None, "an sc without an lr");
    }

    #[test]
    fn a_line_that_changes_ends_both_and_another_line_neither() {
        let mut reserved = Reserved::default();
        reserved.reserve(OF, 5, 90);
        reserved.line_changed(128);
        assert!(reserved.matches(OF) && reserved.holds_until(64, 6).is_some());
        reserved.line_changed(64);
        assert!(!reserved.matches(OF) && reserved.holds_until(64, 6).is_none());
    }
}
