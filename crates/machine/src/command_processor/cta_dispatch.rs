//! CTA dispatch: CTAs go round-robin over the SMs that have room, one every `cta_interval_cycles`.
//!
//! Where several launches run, their CTAs leave in the order of the list: those of a launch as long as an SM
//! has room for one, then those of the next. An SM holds CTAs of several launches if all that they take
//! together is there (`occupancy`). What L1 and shared memory split, an SM keeps split as it is while it has
//! a CTA; the first CTA of another launch on an empty SM brings the split of its own.
//!
//! Source: GPGPU-Sim's CTA issue (one CTA a core a cycle) and its `gpgpu_concurrent_kernel_sm`; that a split
//! stays while CTAs run, CUDA C++ Programming Guide, compute capability 7.x. Invariants: an SM never holds
//! more CTAs than fit; CTAs of a launch depart in the order of their numbers, on edges of the core clock. Not
//! modelled: preemption; that parts of the register file may hold warps of several sizes less well.

use std::collections::VecDeque;
use std::ops::Range;

use durawarp_checkpoint::value;
use durawarp_engine::{Clock, Time};

use crate::occupancy::{Demand, SmLoad};

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
    /// The SM is empty and splits its memory anew.
    pub(super) splits: bool,
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

/// The CTAs of a launch that runs.
#[derive(Debug)]
pub(super) struct Grid {
    sequence: CtaSequence,
    /// What each takes.
    demand: Demand,
    /// When the first may leave.
    first: Time,
    /// CTAs that have left.
    sent: u64,
    /// CTAs that have ended.
    done: u64,
}

value!(record Grid { sequence, demand, first, sent, done });

impl Grid {
    /// CTAs of a launch, the first of which leaves at `first` or after.
    pub(super) fn new(sequence: CtaSequence, demand: Demand, first: Time) -> Self {
        Grid { sequence, demand, first, sent: 0, done: 0 }
    }

    /// Ways of the L1 as its launch has an SM split its memory.
    pub(super) fn l1_ways(&self) -> Option<u32> {
        self.demand.l1_ways()
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

/// Which SM the next CTA goes to, and when.
#[derive(Debug)]
pub(super) struct CtaDispatch {
    pace: Pace,
    /// What is taken of each SM.
    loads: Vec<SmLoad>,
    next_sm: usize,
    next_departure: Time,
}

value!(record CtaDispatch { pace, loads, next_sm, next_departure });

impl CtaDispatch {
    /// So many SMs without CTAs.
    pub(super) fn new(pace: Pace, sms: u32) -> Self {
        let loads = (0..sms).map(|_| SmLoad::default()).collect();
        CtaDispatch { pace, loads, next_sm: 0, next_departure: 0 }
    }

    /// When CTAs may leave.
    pub(super) fn pace(&self) -> Pace {
        self.pace
    }

    /// A launch begins while no other runs: the first SM is the next, and all split their memory as it has
    /// them.
    pub(super) fn begin_alone(&mut self, demand: &Demand) {
        self.next_sm = 0;
        self.next_departure = 0;
        self.loads.iter_mut().for_each(|load| load.split(demand));
    }

    /// The next CTA of a launch that leaves; none when no SM has room or no CTA is left.
    pub(super) fn depart(&mut self, grid: &mut Grid, now: Time) -> Option<Departure> {
        let sms = self.loads.len();
        let sm = (0..sms).map(|i| (self.next_sm + i) % sms).find(|&sm| self.loads[sm].fits(&grid.demand))?;
        let cta = grid.sequence.next()?;
        let splits = self.loads[sm].take(&grid.demand);
        self.next_sm = (sm + 1) % sms;
        let at = self.pace.clock.edge_at_or_after(self.next_departure.max(grid.first).max(now));
        self.next_departure = at + self.pace.interval;
        grid.sent += 1;
        Some(Departure { sm: sm as u16, cta, at, splits })
    }

    /// A CTA of an SM has ended.
    pub(super) fn end_cta(&mut self, grid: &mut Grid, sm: u16) {
        self.loads[usize::from(sm)].give(&grid.demand);
        grid.done += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each of `occupancy` CTAs takes of an SM.
    fn share(occupancy: u32) -> Demand {
        Demand::of_shares([1, 1, 1, 1, 0], [occupancy; 5])
    }

    /// A clock of 10 ticks, two cycles between departures, the first at 25 or after.
    fn dispatch(ctas: u64, sms: u32, occupancy: u32) -> (CtaDispatch, Grid) {
        let pace = Pace { clock: Clock::of_period(10), launch_ticks: 25, interval: 20, command_ticks: 8 };
        (CtaDispatch::new(pace, sms), Grid::new(CtaSequence::whole(ctas), share(occupancy), 25))
    }

    fn departures((dispatch, grid): (&mut CtaDispatch, &mut Grid), now: Time) -> Vec<(u16, u64, Time)> {
        std::iter::from_fn(|| dispatch.depart(grid, now)).map(|d| (d.sm, d.cta, d.at)).collect()
    }

    #[test]
    fn ctas_go_round_robin_one_an_interval_on_edges_of_the_clock() {
        let (mut sms, mut grid) = dispatch(3, 2, 2);
        assert_eq!(departures((&mut sms, &mut grid), 0), [(0, 0, 30), (1, 1, 50), (0, 2, 70)]);
        assert_eq!((grid.sent_and_done(), grid.last_resident()), ((3, 0), Some(3)));
    }

    #[test]
    fn a_part_keeps_the_numbers_of_the_grid_and_leaves_no_gap_in_time() {
        let (mut sms, _) = dispatch(0, 2, 2);
        let mut grid = Grid::new(CtaSequence::part(vec![7..9, 9..9, 20..22]), share(2), 25);
        assert_eq!(departures((&mut sms, &mut grid), 0), [(0, 7, 30), (1, 8, 50), (0, 20, 70), (1, 21, 90)]);
        assert_eq!((grid.ctas(), grid.last_resident(), grid.is_part()), (4, Some(4), true));
    }

    #[test]
    fn a_cta_waits_for_room_and_takes_the_sm_that_has_it() {
        let (mut sms, mut grid) = dispatch(4, 2, 1);
        assert_eq!(departures((&mut sms, &mut grid), 0), [(0, 0, 30), (1, 1, 50)]);
        assert_eq!(grid.last_resident(), None, "two wait for room");
        sms.end_cta(&mut grid, 1);
        assert_eq!(departures((&mut sms, &mut grid), 101), [(1, 2, 110)], "the next edge");
        sms.end_cta(&mut grid, 1);
        assert_eq!(departures((&mut sms, &mut grid), 111), [(1, 3, 130)], "not before the interval is over");
        assert_eq!((grid.last_resident(), grid.is_over()), (Some(2), false));
        sms.end_cta(&mut grid, 0);
        sms.end_cta(&mut grid, 1);
        assert_eq!((grid.last_resident(), grid.is_over()), (Some(0), true));
    }

    #[test]
    fn ctas_of_two_launches_share_an_sm_as_far_as_both_fit() {
        let (mut sms, mut first) = dispatch(2, 2, 4);
        let half = Demand::of_shares([1, 2, 1, 1, 0], [4; 5]);
        let mut second = Grid::new(CtaSequence::whole(9), half, 60);
        assert_eq!(departures((&mut sms, &mut first), 0), [(0, 0, 30), (1, 1, 50)]);
        assert_eq!(departures((&mut sms, &mut second), 0), [(0, 0, 70), (1, 1, 90)], "1 + 2 + 2 warps are too many");
        sms.end_cta(&mut first, 1);
        assert_eq!(departures((&mut sms, &mut second), 200), [(1, 2, 200)]);
    }

    #[test]
    fn a_split_of_memory_stays_while_an_sm_has_a_cta() {
        let (mut sms, _) = dispatch(0, 1, 1);
        let of = |bytes, kb| Demand::of_shares([1, 1, 1, 1, bytes], [9; 5]).with_split(kb, kb);
        let [small, large] = [(512, 1), (2048, 4)].map(|(bytes, kb)| of(bytes, kb));
        let grid = |demand: &Demand, ctas| Grid::new(CtaSequence::whole(ctas), demand.clone(), 0);
        let (mut first, mut second, mut third) = (grid(&small, 1), grid(&large, 3), grid(&small, 1));
        sms.begin_alone(&small);
        let splits = |sms: &mut CtaDispatch, grid: &mut Grid| sms.depart(grid, 0).map(|departure| departure.splits);
        assert_eq!(splits(&mut sms, &mut first), Some(false), "all were told at the launch");
        assert_eq!(splits(&mut sms, &mut second), None, "1 KiB has no room for 2");
        sms.end_cta(&mut first, 0);
        assert_eq!(splits(&mut sms, &mut second), Some(true));
        assert_eq!(splits(&mut sms, &mut third), Some(false), "it fits beside the other");
        assert_eq!(splits(&mut sms, &mut second), None, "2.5 of 4 KiB are taken");
    }
}
