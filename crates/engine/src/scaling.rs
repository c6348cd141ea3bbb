//! How fast a traced run would be on many threads: pure arithmetic over its component-rounds.
//!
//! ```text
//!   time on N threads  =  sum over rounds of  (busiest worker + barrier)    partitions: placement.rs, loan.rs
//!                      =  work / N  +  component  +  windows  +  placement  +  barrier  +  alone
//! ```
//! | part | what is lost in it | what would help |
//! |---|---|---|
//! | component | a block is heavier than its share of the work, over a whole leg | splitting that component |
//! | windows | the load of blocks differs from round to round, beyond that | wider rounds, asynchrony |
//! | placement | partitions, with what they lend, are less even in a round than blocks allow | more that is lent |
//! | barrier | threads meet once a round | wider rounds, fewer threads |
//! | alone | legs that the driver runs on one thread, as more do not pay | more work a round |
//!
//! Two cost models bracket the truth. *Events*: the median cost of an event of the component's tier, times
//! its events: real variation is ignored, hence optimistic. *Clipped*: as measured, but at most
//! `CLIP_MEDIANS` medians: some preemptions of the host are in it, hence pessimistic.
//!
//! Not modelled: moving messages and lines between the caches of cores, memory bandwidth that threads
//! share, tries of the other way (`driver/pace.rs`). So a prediction is an upper bound in these respects.

use super::cell::Cell;
use super::loan::lent;
use super::placement::{Blocks, Placement};
use super::tiers::MAX_TIERS;
use super::trace::{ComponentRound, RoundTrace};

/// An outlier counts as so many usual events: chosen by us.
const CLIP_MEDIANS: f32 = 6.0;

/// Legs of the driver in ns: the first, on one thread, and those after it.
const FIRST_LEG_NS: f64 = 1e6;
const LEG_NS: f64 = 25e6;

/// The crew must be this much faster than one thread: the driver's rule.
const WORTH: f64 = 1.05;

/// A number of threads within this share of the best speed-up is as good.
const NEAR_BEST: f64 = 0.9;

/// What a run would come to on more threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    /// Rounds that were traced, each of which stands for `stride` of the run.
    pub rounds: u64,
    /// See `rounds`.
    pub stride: u64,
    /// Events of the traced rounds.
    pub events: u64,
    /// Their time on one thread, outliers clipped, in ns.
    pub one_thread_ns: f64,
    /// The heaviest blocks of components that share a thread, heaviest first: name, share of all work.
    pub heaviest: Vec<(String, f64)>,
    /// By number of threads, as asked for.
    pub threads: Vec<ThreadScaling>,
}

/// A number of threads, under both cost models.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadScaling {
    /// Threads.
    pub threads: usize,
    /// Of a round, in ns.
    pub barrier_ns: f64,
    /// Under measured costs, outliers clipped: pessimistic.
    pub clipped: Parts,
    /// Under the usual cost of an event: optimistic.
    pub events: Parts,
}

/// Where the time of a number of threads goes, as shares of the time on one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Parts {
    /// The work, evenly shared.
    pub even: f64,
    /// See the head of this file.
    pub component: f64,
    /// See the head of this file.
    pub windows: f64,
    /// See the head of this file.
    pub placement: f64,
    /// See the head of this file.
    pub barrier: f64,
    /// See the head of this file.
    pub alone: f64,
}

impl Parts {
    /// All of it.
    pub fn time(&self) -> f64 {
        self.even + self.component + self.windows + self.placement + self.barrier + self.alone
    }

    /// Over one thread.
    pub fn speed_up(&self) -> f64 {
        if self.time() > 0.0 { 1.0 / self.time() } else { 1.0 }
    }

    /// The greatest loss by name; none where less than a twentieth is lost.
    pub fn bound(&self) -> Option<&'static str> {
        let losses = [
            ("component", self.component),
            ("windows", self.windows),
            ("placement", self.placement),
            ("barrier", self.barrier),
            ("alone", self.alone),
        ];
        let (name, most) = losses.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        (most > 0.05 * self.time()).then_some(name)
    }
}

impl ThreadScaling {
    /// The middle of both models.
    pub fn speed_up(&self) -> f64 {
        (self.clipped.speed_up() + self.events.speed_up()) / 2.0
    }
}

impl Scaling {
    /// The least number of threads whose speed-up is within a tenth of the best.
    pub fn advised(&self) -> usize {
        let best = self.threads.iter().map(ThreadScaling::speed_up).fold(1.0, f64::max);
        let good = |at: &&ThreadScaling| at.speed_up() >= NEAR_BEST * best;
        let least = self.threads.iter().filter(good).map(|at| at.threads).min();
        if NEAR_BEST * best <= 1.0 { 1 } else { least.unwrap_or(1) }
    }
}

/// What is known of the components of a traced run.
#[derive(Debug)]
pub(crate) struct Traced<'a> {
    trace: &'a RoundTrace,
    blocks: &'a Blocks,
    block_of: Vec<u32>,
    tier_of: Vec<u8>,
    may_be_lent: Vec<bool>,
    /// Usual cost of an event, in ns, by tier.
    median_ns: [f32; MAX_TIERS],
}

impl<'a> Traced<'a> {
    pub(crate) fn new<M>(trace: &'a RoundTrace, blocks: &'a Blocks, cells: &[Cell<M>]) -> Self {
        let (tier_of, may_be_lent) = cells.iter().map(|cell| (cell.tier, cell.may_be_lent())).unzip();
        Traced::of_tiers(trace, blocks, tier_of, may_be_lent)
    }

    fn of_tiers(trace: &'a RoundTrace, blocks: &'a Blocks, tier_of: Vec<u8>, may_be_lent: Vec<bool>) -> Self {
        let mut block_of = vec![0; tier_of.len()];
        blocks.each(|block, component| block_of[component as usize] = block);
        let median_ns = std::array::from_fn(|tier| median_of_tier(trace, &tier_of, tier));
        Traced { trace, blocks, block_of, tier_of, may_be_lent, median_ns }
    }

    /// The prediction; `names` of components, the cost of a barrier in ns by threads.
    pub(crate) fn scaling(&self, names: &[String], threads: &[usize], barrier_ns: impl Fn(usize) -> f64) -> Scaling {
        let clipped = |record: &ComponentRound| self.clipped_ns(record);
        let by_events = |record: &ComponentRound| self.median_ns[self.tier(record)] * record.events as f32;
        let at = |&threads: &usize| {
            let barrier_ns = barrier_ns(threads);
            ThreadScaling {
                threads,
                barrier_ns,
                clipped: self.parts(threads, barrier_ns, clipped),
                events: self.parts(threads, barrier_ns, by_events),
            }
        };
        // A block is what no placement parts: it is told of by the names of all its components.
        let mut of_block = vec![0.0; self.blocks.len()];
        for record in self.trace.records() {
            of_block[self.block(record)] += f64::from(clipped(record));
        }
        let one_thread_ns: f64 = of_block.iter().sum();
        let mut name_of = vec![String::new(); self.blocks.len()];
        self.blocks.each(|block, component| {
            let (name, own) = (&mut name_of[block as usize], &names[component as usize]);
            *name = if name.is_empty() { own.clone() } else { format!("{name} + {own}") };
        });
        let shares = of_block.iter().map(|ns| ns / one_thread_ns.max(1.0));
        let mut heaviest: Vec<(String, f64)> = name_of.into_iter().zip(shares).collect();
        heaviest.sort_by(|a, b| b.1.total_cmp(&a.1));
        heaviest.truncate(3);
        Scaling {
            rounds: self.trace.rounds().count() as u64,
            stride: self.trace.stride(),
            events: self.trace.records().iter().map(|record| u64::from(record.events)).sum(),
            one_thread_ns,
            heaviest,
            threads: threads.iter().map(at).collect(),
        }
    }

    fn tier(&self, record: &ComponentRound) -> usize {
        usize::from(self.tier_of[record.component as usize])
    }

    fn block(&self, record: &ComponentRound) -> usize {
        self.block_of[record.component as usize] as usize
    }

    /// Which components partitions lend that are placed so.
    fn lent(&self, placed: &[u32], workers: usize) -> Vec<bool> {
        let each: Vec<_> =
            (0..placed.len()).map(|id| self.may_be_lent[id].then_some((placed[id], self.tier_of[id]))).collect();
        lent(&each, workers)
    }

    fn clipped_ns(&self, record: &ComponentRound) -> f32 {
        record.ns.min(CLIP_MEDIANS * self.median_ns[self.tier(record)] * record.events as f32)
    }

    /// The run on `threads` threads, leg by leg.
    fn parts(&self, threads: usize, barrier_ns: f64, cost: impl Fn(&ComponentRound) -> f32) -> Parts {
        let workers = threads.min(self.blocks.len()).max(1);
        let (mut all, mut one_ns) = (Parts::default(), 0.0);
        let mut placed = self.blocks.place(&Placement::Auto, workers);
        let mut lent = self.lent(&placed, workers);
        let mut leg = Leg::new(self, workers);
        // The driver begins with one thread, and learns costs from it.
        let mut alone = true;
        for round in self.trace.rounds() {
            leg.round(round, (&placed, &lent), barrier_ns, &cost);
            let over = if alone { leg.one_ns >= FIRST_LEG_NS } else { leg.crew_ns.min(leg.one_ns) >= LEG_NS };
            if over {
                leg.end(alone, &mut all, &mut one_ns);
                placed = self.blocks.better(&leg.loads, &placed, workers).unwrap_or(placed);
                lent = self.lent(&placed, workers);
                leg.clear();
                alone = false;
            }
        }
        leg.end(alone, &mut all, &mut one_ns);
        let share = |ns: f64| if one_ns > 0.0 { ns / one_ns } else { 0.0 };
        Parts {
            even: share(all.even),
            component: share(all.component),
            windows: share(all.windows),
            placement: share(all.placement),
            barrier: share(all.barrier),
            alone: share(all.alone),
        }
    }
}

/// Rounds between two looks at the balance; ns.
struct Leg<'a> {
    traced: &'a Traced<'a>,
    workers: usize,
    /// By component.
    loads: Vec<f64>,
    /// By block: in the leg, and in the round.
    of_block: Vec<f64>,
    in_round: Vec<f64>,
    /// By worker, in the round: what it runs, and what its partition lends.
    of_worker: Vec<f64>,
    loans: Vec<Vec<f64>>,
    one_ns: f64,
    crew_ns: f64,
    barrier_ns: f64,
    /// The busiest worker of each round, summed, and the least that any placement of blocks could reach.
    busiest_ns: f64,
    least_ns: f64,
}

impl<'a> Leg<'a> {
    fn new(traced: &'a Traced<'a>, workers: usize) -> Self {
        let blocks = traced.blocks.len();
        Leg {
            traced,
            workers,
            loads: vec![0.0; traced.tier_of.len()],
            of_block: vec![0.0; blocks],
            in_round: vec![0.0; blocks],
            of_worker: vec![0.0; workers],
            loans: vec![Vec::new(); workers],
            one_ns: 0.0,
            crew_ns: 0.0,
            barrier_ns: 0.0,
            busiest_ns: 0.0,
            least_ns: 0.0,
        }
    }

    fn clear(&mut self) {
        self.loads.fill(0.0);
        self.of_block.fill(0.0);
        (self.one_ns, self.crew_ns, self.barrier_ns) = (0.0, 0.0, 0.0);
        (self.busiest_ns, self.least_ns) = (0.0, 0.0);
    }

    fn round(
        &mut self,
        round: &[ComponentRound],
        (placed, lent): (&[u32], &[bool]),
        barrier_ns: f64,
        cost: impl Fn(&ComponentRound) -> f32,
    ) {
        let stride = self.traced.trace.stride() as f64;
        // With inner rounds a component, and with fused ones a block, comes several times.
        let (mut one, mut heaviest) = (0.0, 0.0f64);
        for record in round {
            let (ns, block) = (f64::from(cost(record)), self.traced.block(record));
            one += ns;
            self.loads[record.component as usize] += ns * stride;
            self.of_block[block] += ns * stride;
            self.in_round[block] += ns;
            heaviest = heaviest.max(self.in_round[block]);
            let worker = placed[record.component as usize] as usize;
            if lent[record.component as usize] {
                self.loans[worker].push(ns);
            } else {
                self.of_worker[worker] += ns;
            }
        }
        let busiest = self.work_off();
        for record in round {
            self.in_round[self.traced.block(record)] = 0.0;
        }
        self.of_worker.fill(0.0);
        self.one_ns += one * stride;
        self.busiest_ns += busiest * stride;
        self.least_ns += heaviest.max(one / self.workers as f64) * stride;
        self.barrier_ns += barrier_ns * stride;
        self.crew_ns += (busiest + barrier_ns) * stride;
    }

    /// Who is done takes what is lent, its own first. Returns when the last worker is done.
    fn work_off(&mut self) -> f64 {
        let workers = self.workers;
        let left: usize = self.loans.iter().map(Vec::len).sum();
        for _ in 0..left {
            let Some(first) = (0..workers).min_by(|&a, &b| self.of_worker[a].total_cmp(&self.of_worker[b])) else {
                break;
            };
            let next = (0..workers).find_map(|i| self.loans[(first + i) % workers].pop());
            self.of_worker[first] += next.unwrap_or(0.0);
        }
        self.of_worker.iter().copied().fold(0.0, f64::max)
    }

    /// Adds the leg to what all legs came to.
    fn end(&self, alone: bool, all: &mut Parts, one_ns: &mut f64) {
        let even = self.one_ns / self.workers as f64;
        *one_ns += self.one_ns;
        all.even += even;
        if alone || WORTH * self.crew_ns > self.one_ns {
            all.alone += self.one_ns - even;
            return;
        }
        let block = self.of_block.iter().copied().fold(0.0, f64::max).max(even);
        all.component += block - even;
        all.windows += (self.least_ns - block).max(0.0);
        all.placement += self.busiest_ns - self.least_ns;
        all.barrier += self.barrier_ns;
    }
}

/// Median of what an event of the tier cost in a component-round, in ns.
fn median_of_tier(trace: &RoundTrace, tier_of: &[u8], tier: usize) -> f32 {
    let of_tier =
        |record: &&ComponentRound| usize::from(tier_of[record.component as usize]) == tier && record.events > 0;
    let mut each: Vec<f32> =
        trace.records().iter().filter(of_tier).map(|record| record.ns / record.events as f32).collect();
    if each.is_empty() {
        return 0.0;
    }
    let middle = each.len() / 2;
    *each.select_nth_unstable_by(middle, f32::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ComponentId;

    /// A trace of rounds of (component, events, ns).
    fn trace(rounds: u64, of_round: impl Fn(u64) -> Vec<(u32, u64, u64)>) -> RoundTrace {
        let mut trace = RoundTrace::default();
        for round in 0..rounds {
            assert!(trace.takes_next());
            let components = of_round(round);
            components.iter().for_each(|&(component, events, ns)| trace.add(ComponentId(component), events, ns));
            trace.end_round(0);
        }
        trace
    }

    /// Nothing is lent.
    fn scaling(trace: &RoundTrace, components: usize, threads: &[usize], barrier_ns: f64) -> Scaling {
        with_loans(trace, vec![false; components], threads, barrier_ns)
    }

    fn with_loans(trace: &RoundTrace, may_be_lent: Vec<bool>, threads: &[usize], barrier_ns: f64) -> Scaling {
        let components = may_be_lent.len();
        let blocks = Blocks::new(components, &[], &[]);
        let names: Vec<String> = (0..components).map(|id| format!("c{id}")).collect();
        let traced = Traced::of_tiers(trace, &blocks, vec![0; components], may_be_lent);
        traced.scaling(&names, threads, |threads| if threads > 1 { barrier_ns } else { 0.0 })
    }

    #[test]
    fn even_components_scale_to_their_number() {
        // 8 components of 100 us in each of 1,000 rounds; the first leg of 1 ms is alone.
        let even = trace(1000, |_| (0..8).map(|id| (id, 100, 100_000)).collect());
        let found = scaling(&even, 8, &[1, 2, 4, 8, 16], 0.0);
        let speed_ups: Vec<f64> = found.threads.iter().map(|at| at.speed_up().round()).collect();
        assert_eq!(speed_ups, [1.0, 2.0, 4.0, 8.0, 8.0]);
        assert_eq!((found.advised(), found.events), (8, 800_000));
    }

    #[test]
    fn a_heavy_component_bounds_the_run_and_is_named() {
        // One of five has half of the work: no number of threads gives more than 2.
        let load = |id| if id == 3 { 4 } else { 1 };
        let heavy = trace(1000, |_| (0..5).map(|id| (id, 100 * load(id), 100_000 * load(id))).collect());
        let found = scaling(&heavy, 5, &[2, 4], 0.0);
        assert_eq!(found.heaviest[0], ("c3".to_owned(), 0.5));
        let four = &found.threads[1].clipped;
        assert!((1.98..=2.0).contains(&four.speed_up()), "{four:?}");
        assert_eq!((four.bound(), found.advised()), (Some("component"), 2));
    }

    #[test]
    fn components_that_take_turns_are_bound_by_windows() {
        // Equal loads over the run, but only one component has work in a round.
        let turns = trace(4000, |round| vec![((round % 4) as u32, 100, 100_000)]);
        let two = scaling(&turns, 4, &[2], 0.0).threads[0].clipped;
        assert_eq!((two.bound(), two.speed_up()), (Some("alone"), 1.0), "the driver falls back to one thread");
        // With a little of all others in each round the crew pays, and windows are what it loses by.
        let mostly =
            |round: u64| (0..4).map(move |id| (id, 100, if u64::from(id) == round % 4 { 80_000 } else { 40_000 }));
        let four = scaling(&trace(4000, |round| mostly(round).collect()), 4, &[4], 0.0).threads[0].clipped;
        assert_eq!(four.bound(), Some("windows"));
        assert!((2.4..=2.5).contains(&four.speed_up()), "200 us of work, the busiest 80 us: {four:?}");
    }

    #[test]
    fn who_is_done_early_takes_what_another_lends() {
        // Three components each, of 120 us here and 60 us there, in turns: even over the run, not in a round.
        let us = |round: u64, id: u32| if u64::from(id / 3) == round % 2 { 120_000 } else { 60_000 };
        let turns = trace(4000, |round| (0..6).map(|id| (id, 100, us(round, id))).collect());
        let kept = scaling(&turns, 6, &[2], 0.0).threads[0].clipped;
        assert!((1.49..=1.51).contains(&kept.speed_up()), "540 us, of which one has 360: {kept:?}");
        let lent = with_loans(&turns, vec![true; 6], &[2], 0.0).threads[0].clipped;
        assert!((1.79..=1.81).contains(&lent.speed_up()), "180 and 120 us more than 240: {lent:?}");
    }

    #[test]
    fn the_barrier_counts_once_a_round() {
        let short = trace(100_000, |_| (0..2).map(|id| (id, 10, 1_000)).collect());
        let two = scaling(&short, 2, &[2], 500.0).threads[0].clipped;
        assert!((1.30..=1.34).contains(&two.speed_up()), "2,000 ns become 1,000 and 500: {two:?}");
        assert_eq!(two.bound(), Some("barrier"));
        let slow = scaling(&short, 2, &[2], 5_000.0);
        assert_eq!((slow.threads[0].speed_up(), slow.advised()), (1.0, 1));
    }

    #[test]
    fn parts_add_up_and_an_outlier_counts_as_a_few_usual_events() {
        let noisy = trace(3000, |round| {
            let preempted = if round == 1500 { 900_000_000 } else { 10_000 };
            vec![(0, 100, preempted), (1, 100, 10_000)]
        });
        let found = scaling(&noisy, 2, &[2], 100.0);
        assert!((found.one_thread_ns - (3000.0 * 20_000.0 + 50_000.0)).abs() < 20.0, "{}", found.one_thread_ns);
        let two = &found.threads[0];
        assert!(two.events.speed_up() >= two.clipped.speed_up());
        assert!((two.events.time() - (0.5 + 100.0 / 20_000.0)).abs() < 0.02, "{two:?}");
    }
}
