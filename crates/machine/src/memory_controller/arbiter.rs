//! Reads or writes, and which banks have served enough row hits: what a controller decides before it looks at
//! requests.
//!
//! | state | writes go first | until |
//! |---|---|---|
//! | reads | only when no read waits | the WPQ is at its high watermark |
//! | draining | yes | low watermark and `drain_min_writes` done; or empty; or `write_queue_entries` done |
//! | turn of the reads | to banks that no read wants | the reads that waited when the drain ended are done |
//!
//! Source: watermarks and the least number of writes of a drain as in gem5's memory controller, which ends a
//! drain after that many when reads wait; here it goes on to the low watermark, but not without end.
//! Invariant: no read waits for ever: of a bank's row hits `row_hit_cap` pass an older request, of writes as
//! many as the WPQ has entries pass a read. Below the high watermark a write waits as long as reads come
//! without a gap, as in gem5.

use crate::media::{BankId, Direction};
use durawarp_checkpoint::state;

use super::parameters::ControllerSpec;

/// What has been served, as far as the next choice depends on it.
#[derive(Debug)]
pub(super) struct Arbiter {
    /// Row hits in a row that passed an older request, one counter a bank.
    passed: Vec<u32>,
    /// Writes are being drained because the WPQ reached its high watermark.
    must_drain: bool,
    /// Writes drained since then.
    drained: u32,
    /// Reads whose turn it is before the next drain.
    turn: u32,
    last: Direction,
    /// Row hits in a row that may pass.
    hit_cap: u32,
    /// A write may wait for others to merge with it: every write is durable when it is accepted.
    may_idle: bool,
}

state!(Arbiter { sized: passed; saved: must_drain, drained, turn, last; kept: hit_cap, may_idle });

impl Arbiter {
    pub(super) fn new(hit_cap: u32, banks: usize) -> Self {
        Arbiter {
            passed: vec![0; banks],
            must_drain: false,
            drained: 0,
            turn: 0,
            last: Direction::Read,
            hit_cap,
            may_idle: true,
        }
    }

    /// Whether writes may wait for others to merge with them, from now on.
    pub(super) fn set_may_idle(&mut self, may_idle: bool) {
        self.may_idle = may_idle;
    }

    /// No request needs service now: the writes may wait for others to merge with them.
    pub(super) fn idles(&self, spec: &ControllerSpec, reads: usize, writes: usize) -> bool {
        let idle = if self.may_idle { spec.drain_idle_entries } else { 0 };
        !self.must_drain && reads == 0 && writes as u32 <= idle
    }

    /// Reads or writes first, at this edge.
    pub(super) fn direction(&mut self, spec: &ControllerSpec, reads: usize, writes: usize) -> Direction {
        let writes = writes as u32;
        if reads == 0 {
            self.turn = 0;
        }
        if !self.must_drain && self.turn == 0 && writes >= spec.drain_high_entries {
            self.must_drain = true;
            self.drained = 0;
        }
        let enough = writes <= spec.drain_low_entries && self.drained >= spec.drain_min_writes;
        // Writes that go on coming could keep the queue above its low watermark for ever.
        let too_many = self.drained >= spec.write_queue_entries && reads > 0;
        if self.must_drain && (enough || too_many || writes == 0) {
            self.must_drain = false;
            self.turn = if too_many { reads as u32 } else { 0 };
        }
        if self.must_drain || reads == 0 { Direction::Write } else { Direction::Read }
    }

    /// It is the turn of the reads: writes go to banks that no read wants.
    pub(super) fn is_turn_of_reads(&self) -> bool {
        self.turn > 0
    }

    /// The bank's hits may pass its older requests no more.
    pub(super) fn is_capped(&self, bank: BankId) -> bool {
        self.passed[usize::from(bank)] >= self.hit_cap
    }

    /// A hit of the bank passes an older request.
    pub(super) fn count_pass(&mut self, bank: BankId) {
        self.passed[usize::from(bank)] += 1;
    }

    /// The bank has another row open.
    pub(super) fn row_opened(&mut self, bank: BankId) {
        self.passed[usize::from(bank)] = 0;
    }

    /// A request is served; true when it goes the other way than the last one.
    pub(super) fn serve(&mut self, direction: Direction) -> bool {
        match direction {
            Direction::Read => self.turn = self.turn.saturating_sub(1),
            Direction::Write => self.drained += 1,
        }
        std::mem::replace(&mut self.last, direction) != direction
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_begins_at_the_high_watermark_and_ends_at_the_low_one_after_its_least_writes() {
        let (mut arbiter, spec) = (Arbiter::new(4, 1), ControllerSpec::small());
        assert_eq!(arbiter.direction(&spec, 1, 5), Direction::Read, "one below");
        assert_eq!(arbiter.direction(&spec, 1, 6), Direction::Write, "at the watermark");
        (0..2).for_each(|_| assert!(arbiter.serve(Direction::Write) || arbiter.drained > 1));
        assert_eq!(arbiter.direction(&spec, 1, 2), Direction::Write, "two writes are too few");
        arbiter.serve(Direction::Write);
        assert_eq!(arbiter.direction(&spec, 1, 3), Direction::Write, "one above the low watermark");
        assert_eq!(arbiter.direction(&spec, 1, 2), Direction::Read);
    }

    #[test]
    fn a_drain_without_end_gives_way_to_the_reads_that_wait() {
        let (mut arbiter, spec) = (Arbiter::new(4, 1), ControllerSpec::small());
        for _ in 0..8 {
            assert_eq!(arbiter.direction(&spec, 2, 8), Direction::Write);
            arbiter.serve(Direction::Write);
        }
        assert_eq!((arbiter.direction(&spec, 2, 8), arbiter.is_turn_of_reads()), (Direction::Read, true));
        arbiter.serve(Direction::Read);
        assert_eq!(arbiter.direction(&spec, 1, 8), Direction::Read, "the second of them");
        arbiter.serve(Direction::Read);
        assert_eq!((arbiter.direction(&spec, 1, 8), arbiter.is_turn_of_reads()), (Direction::Write, false));
    }

    #[test]
    fn few_writes_idle_where_acceptance_makes_them_durable() {
        let (mut arbiter, spec) = (Arbiter::new(4, 1), ControllerSpec::small());
        assert!(arbiter.idles(&spec, 0, 1) && !arbiter.idles(&spec, 0, 2) && !arbiter.idles(&spec, 1, 1));
        arbiter.set_may_idle(false);
        assert!(arbiter.idles(&spec, 0, 0) && !arbiter.idles(&spec, 0, 1));
    }

    #[test]
    fn a_banks_hits_are_capped_until_another_row_opens() {
        let mut arbiter = Arbiter::new(4, 2);
        (0..3).for_each(|_| arbiter.count_pass(1));
        assert!(!arbiter.is_capped(1));
        arbiter.count_pass(1);
        assert!(arbiter.is_capped(1) && !arbiter.is_capped(0));
        arbiter.row_opened(1);
        assert!(!arbiter.is_capped(1));
    }
}
