//! CTA dispatch: CTAs go round-robin over the SMs that have room, one every `cta_interval_cycles`.
//!
//! Where several launches run, their CTAs leave in the order of the list: those of a launch as long as an SM
//! has room for one, then those of the next. An SM holds CTAs of several launches if all that they take
//! together is there (`occupancy`). What L1 and shared memory split, an SM keeps split as it is while it has
//! a CTA; the first CTA of another launch on an empty SM brings the split of its own.
//!
//! The CTAs of a cluster leave together, once a GPC has room for all of them. They go over the SMs of the
//! GPC, several of them to one SM only where each has got one, or has no room.
//!
//! Source: GPGPU-Sim's CTA issue (one CTA a core a cycle) and its `gpgpu_concurrent_kernel_sm`; that a split
//! stays while CTAs run, CUDA C++ Programming Guide, compute capability 7.x. Invariants: an SM never holds
//! more CTAs than fit; CTAs of a launch depart in the order of their numbers, on edges of the core clock. Not
//! modelled: preemption; that parts of the register file may hold warps of several sizes less well.

use std::collections::VecDeque;
use std::ops::Range;

use durawarp_checkpoint::{state, value};
use durawarp_engine::{Clock, Time};

use crate::gpc::Gpcs;
use crate::occupancy::{Demand, SmLoad};
use crate::remote::ClusterPlaces;

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
    /// CTAs that have left, and those that a CTA has taken from the grid.
    sent: u64,
    /// CTAs that have ended, and these.
    done: u64,
    /// CTAs of a cluster.
    cluster: u32,
    /// Two of them whose ranks differ in the last bit alone lie in two SMs.
    paired: bool,
    /// A cluster of which CTAs have not left: the SM of each rank, and whether it splits its memory anew.
    placed: Vec<(u16, bool)>,
    /// When it leaves, and its CTAs that have left.
    leaves: (Time, usize),
}

value!(record Grid { sequence, demand, first, sent, done, cluster, paired, placed, leaves });

impl Grid {
    /// CTAs of a launch, the first of which leaves at `first` or after.
    pub(super) fn new(sequence: CtaSequence, demand: Demand, first: Time) -> Self {
        Grid {
            sequence,
            demand,
            first,
            sent: 0,
            done: 0,
            cluster: 1,
            paired: false,
            placed: Vec::new(),
            leaves: (0, 0),
        }
    }

    /// The same of a launch with clusters of `ctas` CTAs.
    pub(super) fn in_clusters(self, ctas: u32) -> Self {
        Grid { cluster: ctas, ..self }
    }

    /// The same of one whose kernel has pairs of CTAs, or not.
    pub(super) fn in_pairs(self, paired: bool) -> Self {
        Grid { paired, ..self }
    }

    /// The launch has clusters.
    pub(super) fn has_clusters(&self) -> bool {
        self.cluster > 1
    }

    /// The cluster of the CTA that has left last.
    pub(super) fn last_cluster(&self) -> Option<Box<ClusterPlaces>> {
        let sms = || self.placed.iter().map(|(sm, _)| *sm).collect();
        self.has_clusters().then(|| Box::new(ClusterPlaces { rank: self.leaves.1 as u32 - 1, sms: sms() }))
    }

    /// Ways of the L1 as its launch has an SM split its memory.
    pub(super) fn l1_ways(&self) -> Option<u32> {
        self.demand.l1_ways()
    }

    /// When the first CTA may leave.
    pub(super) fn first(&self) -> Time {
        self.first
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

    /// Takes the next cluster of which no CTA has left: the place of its first CTA. A launch that runs in
    /// part keeps all of its CTAs, as their number is what is measured.
    pub(super) fn take_cluster(&mut self) -> Option<u64> {
        if self.is_part() {
            return None;
        }
        let first = self.sequence.next()?;
        // The others of the cluster.
        (1..self.cluster).for_each(|_| _ = self.sequence.next());
        (self.sent, self.done) = (self.sent + u64::from(self.cluster), self.done + u64::from(self.cluster));
        Some(first)
    }

    /// CTAs of a cluster; 1 without clusters.
    pub(super) fn cluster_ctas(&self) -> u32 {
        self.cluster
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
    /// Where clusters may lie.
    gpcs: Gpcs,
}

state!(CtaDispatch { saved: pace, loads, next_sm, next_departure; kept: gpcs });

impl CtaDispatch {
    /// So many SMs without CTAs.
    pub(super) fn new(pace: Pace, sms: u32, gpcs: u32) -> Self {
        let loads = (0..sms).map(|_| SmLoad::default()).collect();
        CtaDispatch { pace, loads, next_sm: 0, next_departure: 0, gpcs: Gpcs::new(sms as u16, gpcs as u16) }
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
        if grid.has_clusters() {
            return self.depart_together(grid, now);
        }
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

    /// The same of a launch with clusters. All CTAs of one have room in a GPC before the first leaves; they
    /// leave at one time, and take as long as they would one by one.
    fn depart_together(&mut self, grid: &mut Grid, now: Time) -> Option<Departure> {
        if grid.leaves.1 == grid.placed.len() {
            if grid.sent == grid.ctas() {
                return None;
            }
            grid.placed = self.place_cluster(&grid.demand, grid.cluster, grid.paired)?;
            let at = self.pace.clock.edge_at_or_after(self.next_departure.max(grid.first).max(now));
            self.next_departure = at + self.pace.interval * Time::from(grid.cluster);
            grid.leaves = (at, 0);
        }
        let (sm, splits) = grid.placed[grid.leaves.1];
        let cta = grid.sequence.next()?;
        grid.leaves.1 += 1;
        grid.sent += 1;
        Some(Departure { sm, cta, at: grid.leaves.0, splits })
    }

    /// Takes room for a cluster in the first GPC that has it, from that of the next SM on; its CTAs go
    /// round-robin over the SMs of the GPC, those of a pair to two SMs, whose tensor cores they use. The SM
    /// of each rank, and whether it splits its memory anew.
    fn place_cluster(&mut self, demand: &Demand, ctas: u32, paired: bool) -> Option<Vec<(u16, bool)>> {
        let count = self.gpcs.count();
        let next = (0..count).find(|&gpc| self.gpcs.sms_of(gpc).contains(&(self.next_sm as u16))).unwrap_or(0);
        for gpc in (0..count).map(|more| (next + more) % count) {
            let sms = self.gpcs.sms_of(gpc);
            let mut loads: Vec<SmLoad> = self.loads[usize::from(sms.start)..usize::from(sms.end)].to_vec();
            let begins = if sms.contains(&(self.next_sm as u16)) { self.next_sm - usize::from(sms.start) } else { 0 };
            let (mut placed, mut at) = (Vec::<(u16, bool)>::new(), begins);
            for rank in 0..ctas {
                let all = loads.len();
                let of_peer =
                    placed.last().filter(|_| paired && rank % 2 == 1).map(|&(sm, _)| usize::from(sm - sms.start));
                let fits = |sm: &usize| loads[*sm].fits(demand) && of_peer != Some(*sm);
                let Some(sm) = (0..all).map(|i| (at + i) % all).find(fits) else { break };
                placed.push((sms.start + sm as u16, loads[sm].take(demand)));
                at = sm + 1;
            }
            if placed.len() == ctas as usize {
                self.loads.splice(usize::from(sms.start)..usize::from(sms.end), loads);
                self.next_sm = usize::from(sms.end) % self.loads.len();
                return Some(placed);
            }
        }
        None
    }

    /// CTAs that are resident at once on empty SMs, in clusters of `ctas`, where an SM holds `of_sm`.
    pub(super) fn most_in_clusters(&self, ctas: u32, of_sm: u32) -> u64 {
        let of_gpc = |sms: std::ops::Range<u16>| sms.len() as u64 * u64::from(of_sm) / u64::from(ctas);
        self.gpcs.iter().map(of_gpc).sum::<u64>() * u64::from(ctas)
    }

    /// A GPC has two SMs, for a pair of CTAs.
    pub(super) fn have_two_sms(&self) -> bool {
        self.gpcs.iter().any(|sms| sms.len() > 1)
    }

    /// There are GPCs.
    pub(super) fn has_gpcs(&self) -> bool {
        self.gpcs.count() > 0
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
        (CtaDispatch::new(pace, sms, 2), Grid::new(CtaSequence::whole(ctas), share(occupancy), 25))
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

    #[test]
    fn a_cluster_leaves_as_a_whole_for_one_gpc() {
        // Two GPCs of two SMs, which hold two CTAs each.
        let (mut sms, grid) = dispatch(12, 4, 2);
        let mut grid = grid.in_clusters(3);
        let expected = [(0, 0, 30), (1, 1, 30), (0, 2, 30), (2, 3, 90), (3, 4, 90), (2, 5, 90)];
        assert_eq!(departures((&mut sms, &mut grid), 0), expected, "each after three intervals");
        assert_eq!(grid.last_cluster(), Some(Box::new(ClusterPlaces { rank: 2, sms: vec![2, 3, 2] })));
        sms.end_cta(&mut grid, 0);
        assert_eq!(departures((&mut sms, &mut grid), 200), [], "two of three have room in a GPC, and one in the other");
        sms.end_cta(&mut grid, 1);
        assert_eq!(departures((&mut sms, &mut grid), 300), [(0, 6, 300), (1, 7, 300), (1, 8, 300)]);
        assert!(grid.waits_for_room() && grid.has_clusters());
        assert_eq!((sms.most_in_clusters(3, 2), sms.most_in_clusters(5, 2), sms.has_gpcs()), (6, 0, true));
    }

    #[test]
    fn the_ctas_of_a_pair_lie_on_two_sms() {
        let placed = |paired: bool| {
            let (mut sms, mut first) = dispatch(8, 4, 2);
            departures((&mut sms, &mut first), 0);
            // All are full; then the first alone has room, for two, and then its neighbour, too.
            (0..2).for_each(|_| sms.end_cta(&mut first, 0));
            let mut grid = Grid::new(CtaSequence::whole(2), share(2), 25).in_clusters(2).in_pairs(paired);
            let early = departures((&mut sms, &mut grid), 500);
            sms.end_cta(&mut first, 1);
            let late = departures((&mut sms, &mut grid), 600);
            [early, late].map(|left| {
                let mut of: Vec<u16> = left.into_iter().map(|(sm, ..)| sm).collect();
                of.sort_unstable();
                of
            })
        };
        assert_eq!(placed(false), [vec![0, 0], vec![]]);
        assert_eq!(placed(true), [vec![], vec![0, 1]]);
    }
}
