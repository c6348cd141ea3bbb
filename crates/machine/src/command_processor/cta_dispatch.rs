//! CTA dispatch: the CTAs of one launch go round-robin over the SMs that have room, one every
//! `cta_interval_cycles`.
//!
//! Source: GPGPU-Sim's CTA issue (one CTA a core a cycle). Invariants: an SM never holds more CTAs than fit
//! (`occupancy`); CTAs depart in the order of their numbers, on edges of the core clock. Not modelled:
//! concurrent kernels, preemption.

use std::collections::VecDeque;
use std::ops::Range;

use durawarp_checkpoint::value;
use durawarp_engine::{Clock, Time};

/// When CTAs may leave the command processor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Core clock.
    pub(super) clock: Clock,
    /// From the host's launch to the first departure, in ticks.
    pub(super) launch_ticks: Time,
    /// Between two departures, in ticks.
    pub(super) interval: Time,
    /// To an SM, one way, in ticks.
    pub(super) command_ticks: Time,
}

value!(record Pace { clock, launch_ticks, interval, command_ticks });

/// A CTA on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Departure {
    /// The SM that will run it.
    pub(super) sm: u16,
    /// Its number in the launch.
    pub(super) cta: u64,
    /// When it leaves, in ticks.
    pub(super) at: Time,
}

/// The CTAs of a launch that run, in the order in which they leave.
#[derive(Debug)]
pub(super) struct CtaSequence {
    /// Those that have not left.
    left: VecDeque<Range<u64>>,
    ctas: u64,
    part: bool,
}

value!(record CtaSequence { left, ctas, part });

impl CtaSequence {
    /// All CTAs of a launch of `ctas`.
    pub(super) fn whole(ctas: u64) -> Self {
        CtaSequence { left: std::iter::once(0..ctas).collect(), ctas, part: false }
    }

    /// These CTAs alone.
    pub(super) fn part(ranges: Vec<Range<u64>>) -> Self {
        let ctas = ranges.iter().map(|range| range.end - range.start).sum();
        CtaSequence { left: ranges.into(), ctas, part: true }
    }

    /// How many there are.
    pub(super) fn ctas(&self) -> u64 {
        self.ctas
    }

    /// The next that leaves.
    fn next(&mut self) -> Option<u64> {
        while let Some(range) = self.left.front_mut() {
            if let Some(cta) = range.next() {
                return Some(cta);
            }
            self.left.pop_front();
        }
        None
    }
}

/// The launch whose CTAs are running.
#[derive(Debug)]
pub(super) struct CtaDispatch {
    sequence: CtaSequence,
    pace: Pace,
    /// CTAs that have left.
    sent: u64,
    /// CTAs that have ended.
    done: u64,
    /// By SM: CTAs that it has room for.
    room: Vec<u32>,
    next_sm: usize,
    next_departure: Time,
}

value!(record CtaDispatch { sequence, pace, sent, done, room, next_sm, next_departure });

impl CtaDispatch {
    /// CTAs of a launch, the first of which leaves at `first` or after; each of `sms` SMs holds `occupancy`
    /// CTAs.
    pub(super) fn new(sequence: CtaSequence, pace: Pace, sms: u32, occupancy: u32, first: Time) -> Self {
        let room = vec![occupancy; sms as usize];
        CtaDispatch { sequence, pace, sent: 0, done: 0, room, next_sm: 0, next_departure: first }
    }

    /// The next CTA that leaves; none when no SM has room or no CTA is left.
    pub(super) fn depart(&mut self, now: Time) -> Option<Departure> {
        let sms = self.room.len();
        let sm = (0..sms).map(|i| (self.next_sm + i) % sms).find(|&sm| self.room[sm] > 0)?;
        let cta = self.sequence.next()?;
        self.room[sm] -= 1;
        self.next_sm = (sm + 1) % sms;
        let at = self.pace.clock.edge_at_or_after(self.next_departure.max(now));
        self.next_departure = at + self.pace.interval;
        self.sent += 1;
        Some(Departure { sm: sm as u16, cta, at })
    }

    /// A CTA of an SM has ended.
    pub(super) fn end_cta(&mut self, sm: u16) {
        self.room[usize::from(sm)] += 1;
        self.done += 1;
    }

    /// Every CTA has ended.
    pub(super) fn is_over(&self) -> bool {
        self.done == self.ctas()
    }

    /// CTAs on SMs, once every CTA has left; none before, since those that wait for room come later.
    pub(super) fn last_resident(&self) -> Option<u64> {
        (self.sent == self.ctas()).then(|| self.ctas() - self.done)
    }

    /// Whether CTAs wait for room: who makes room gets the next, and no other SM hears of it.
    pub(super) fn waits_for_room(&self) -> bool {
        self.sent < self.ctas()
    }

    /// CTAs to run.
    pub(super) fn ctas(&self) -> u64 {
        self.sequence.ctas
    }

    /// Whether the launch runs in part.
    pub(super) fn is_part(&self) -> bool {
        self.sequence.part
    }

    /// CTAs that have left, and CTAs that have ended.
    pub(super) fn sent_and_done(&self) -> (u64, u64) {
        (self.sent, self.done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock of 10 ticks, two cycles between departures, the first at 25 or after.
    fn dispatch(ctas: u64, sms: u32, occupancy: u32) -> CtaDispatch {
        let pace = Pace { clock: Clock::of_period(10), launch_ticks: 25, interval: 20, command_ticks: 8 };
        CtaDispatch::new(CtaSequence::whole(ctas), pace, sms, occupancy, 25)
    }

    fn departures(dispatch: &mut CtaDispatch, now: Time) -> Vec<(u16, u64, Time)> {
        std::iter::from_fn(|| dispatch.depart(now)).map(|d| (d.sm, d.cta, d.at)).collect()
    }

    #[test]
    fn ctas_go_round_robin_one_an_interval_on_edges_of_the_clock() {
        let mut launch = dispatch(3, 2, 2);
        assert_eq!(departures(&mut launch, 0), [(0, 0, 30), (1, 1, 50), (0, 2, 70)]);
        assert_eq!((launch.sent_and_done(), launch.last_resident()), ((3, 0), Some(3)));
    }

    #[test]
    fn a_part_keeps_the_numbers_of_the_grid_and_leaves_no_gap_in_time() {
        let pace = Pace { clock: Clock::of_period(10), launch_ticks: 25, interval: 20, command_ticks: 8 };
        let mut launch = CtaDispatch::new(CtaSequence::part(vec![7..9, 9..9, 20..22]), pace, 2, 2, 25);
        assert_eq!(departures(&mut launch, 0), [(0, 7, 30), (1, 8, 50), (0, 20, 70), (1, 21, 90)]);
        assert_eq!((launch.ctas(), launch.last_resident(), launch.is_part()), (4, Some(4), true));
    }

    #[test]
    fn a_cta_waits_for_room_and_takes_the_sm_that_has_it() {
        let mut launch = dispatch(4, 2, 1);
        assert_eq!(departures(&mut launch, 0), [(0, 0, 30), (1, 1, 50)]);
        assert_eq!(launch.last_resident(), None, "two wait for room");
        launch.end_cta(1);
        assert_eq!(departures(&mut launch, 101), [(1, 2, 110)], "the next edge");
        launch.end_cta(1);
        assert_eq!(departures(&mut launch, 111), [(1, 3, 130)], "not before the interval is over");
        assert_eq!((launch.last_resident(), launch.is_over()), (Some(2), false));
        launch.end_cta(0);
        launch.end_cta(1);
        assert_eq!((launch.last_resident(), launch.is_over()), (Some(0), true));
    }
}
