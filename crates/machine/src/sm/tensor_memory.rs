//! Tensor memory of an SM and products in it (`tcgen05`): who has its columns, and when products, loads and
//! stores are done.
//!
//! ```text
//!   alloc ──columns are free──> the CTA's        dealloc ──> free ──> the first warp that waits and fits
//!   mma    work = operations / rate       one product or copy after another, of all CTAs of the SM
//!   cp     work = bytes / rate            its tail is the latency of shared memory
//!   tail   from the end of its work: then it is done
//!   commit ──when all products and copies of the CTA so far are done──> arrival at the barrier
//! ```
//! The thread that begins a product or a copy goes on in the next cycle. Both are done in the order of issue
//! (PTX ISA 9.7.16.6.2, pipelined instructions). Loads and stores take a cycle a register of
//! their scheduler's port, then the latency of shared memory; a wait for them is a cycle and no event, since
//! it is known when they are done.
//!
//! Source of times: FlashGPU-Sim, `SM100_B200` (rate, tail, issue; the rate agrees with counters of a B200,
//! the tail is fitted there). Chosen, for lack of a source: the times of loads and stores; that warps which
//! wait for columns are served in the order in which they came; that a copy takes the products' turn and is
//! behind none of them sooner than its work. Invariant: products are done in the order of
//! their issue.
//!
//! Not modelled: the banks of shared memory that a product reads; what transfers take of the products' way to
//! tensor memory.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use durawarp_checkpoint::value;
use durawarp_kernel::tensor_memory::TensorMemory;

use super::parameters::TensorTimes;
use super::tensor_peers::{OtherBarrier, PairUnit};

/// An arrival behind products.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DueArrival {
    cycle: u32,
    /// Arrivals of a cycle are in the order of their issue.
    number: u64,
    /// The CTA, and its slot.
    pub(super) cta: u64,
    pub(super) slot: u8,
    /// Barriers in shared memory.
    pub(super) at: Vec<u64>,
    /// And in that of other CTAs.
    pub(super) others: Vec<OtherBarrier>,
}

value!(record DueArrival { cycle, number, cta, slot, at, others });

/// Tensor memory and the tensor cores that sum in it.
#[derive(Debug)]
pub(super) struct TensorUnit {
    /// Columns that no CTA has.
    free: u32,
    /// Warp slots that wait for columns, and how many, in the order in which they came.
    waiting: VecDeque<(u8, u32)>,
    /// When the next product may begin.
    free_at: u32,
    /// Of each CTA slot: its cells, and when its products are done.
    memories: Vec<TensorMemory>,
    done: Vec<u32>,
    /// Of each warp slot: when its loads are done, and its stores.
    transfers: Vec<[u32; 2]>,
    arrivals: BinaryHeap<Reverse<DueArrival>>,
    numbers: u64,
    /// The cycle of the first arrival, which every cycle of the SM asks for; the last one without any.
    due: u32,
    pub(super) pairs: PairUnit,
}

value!(record TensorUnit { free, waiting, free_at, memories, done, transfers, arrivals, numbers, due, pairs });

impl TensorUnit {
    /// So many columns, all free.
    pub(super) fn new(columns: u32, ctas: u32, warps: u32) -> Self {
        TensorUnit {
            free: columns,
            waiting: VecDeque::new(),
            free_at: 0,
            memories: (0..ctas).map(|_| TensorMemory::default()).collect(),
            done: vec![0; ctas as usize],
            transfers: vec![[0; 2]; warps as usize],
            arrivals: BinaryHeap::new(),
            numbers: 0,
            due: u32::MAX,
            pairs: PairUnit::new(ctas),
        }
    }

    /// A CTA begins in a slot.
    pub(super) fn begin(&mut self, slot: usize) {
        self.memories[slot].clear();
        self.pairs.begin(slot);
    }

    /// The cells of the CTA in a slot.
    pub(super) fn memory(&self, slot: usize) -> &TensorMemory {
        &self.memories[slot]
    }

    /// The same, to change.
    pub(super) fn memory_mut(&mut self, slot: usize) -> &mut TensorMemory {
        &mut self.memories[slot]
    }

    /// A warp asks for columns: whether it has them. If not, it waits.
    pub(super) fn take(&mut self, warp: u8, columns: u32) -> bool {
        let has = self.waiting.is_empty() && columns <= self.free;
        if has {
            self.free -= columns;
        } else {
            self.waiting.push_back((warp, columns));
        }
        has
    }

    /// Columns are free again: warps that have theirs now, and how many. None passes another.
    pub(super) fn give_back(&mut self, columns: u32) -> Vec<(u8, u32)> {
        self.free += columns;
        let mut served = Vec::new();
        while let Some(&(warp, columns)) = self.waiting.front().filter(|(_, columns)| *columns <= self.free) {
            self.free -= columns;
            served.push((warp, columns));
            self.waiting.pop_front();
        }
        served
    }

    /// A product of a CTA, or a copy, begins at `cycle` or when the tensor cores are free: the cycle.
    pub(super) fn multiply(&mut self, cta: usize, times: TensorTimes, cycle: u32) -> u32 {
        let done = self.occupy(times, cycle);
        // A longer tail before it does not let it overtake.
        self.done_by(cta, done);
        done - times.work - times.tail
    }

    /// The tensor cores work on a product from `cycle` on, or from when they are free: when it is done.
    pub(super) fn occupy(&mut self, TensorTimes { work, tail }: TensorTimes, cycle: u32) -> u32 {
        self.free_at = cycle.max(self.free_at) + work;
        self.free_at + tail
    }

    /// A product of a CTA is not done before `cycle`.
    pub(super) fn done_by(&mut self, cta: usize, cycle: u32) {
        self.done[cta] = self.done[cta].max(cycle);
    }

    /// A transfer of `registers` is issued: the first cycle of the warp's next instruction.
    pub(super) fn transfer(&mut self, warp: usize, loads: bool, registers: u32, latency: u32, cycle: u32) -> u32 {
        let done = &mut self.transfers[warp][usize::from(!loads)];
        *done = (*done).max(cycle + registers + latency);
        cycle + registers
    }

    /// Lanes arrive at barriers behind all products of their CTA so far; false where none is under way.
    pub(super) fn arrive_later(&mut self, (slot, cta): (u8, u64), at: impl Iterator<Item = u64>, cycle: u32) -> bool {
        let later = self.is_under_way(slot, cycle);
        if later {
            self.arrive_in_turn((slot, cta), at.collect(), Vec::new());
        }
        later
    }

    /// Products of a slot are under way.
    pub(super) fn is_under_way(&self, slot: u8, cycle: u32) -> bool {
        self.done[usize::from(slot)] > cycle || !self.pairs.is_answered(slot)
    }

    /// Arrives at barriers of the CTA and of others behind products that are under way.
    pub(super) fn arrive_in_turn(&mut self, of: (u8, u64), at: Vec<u64>, others: Vec<OtherBarrier>) {
        if let Some((at, others)) = self.pairs.hold(of, at, others) {
            self.arrive_at_end(of, at, others);
        }
    }

    /// The same of products whose end is known.
    pub(super) fn arrive_at_end(&mut self, (slot, cta): (u8, u64), at: Vec<u64>, others: Vec<OtherBarrier>) {
        let cycle = self.done[usize::from(slot)];
        self.numbers += 1;
        self.due = self.due.min(cycle);
        self.arrivals.push(Reverse(DueArrival { cycle, number: self.numbers, cta, slot, at, others }));
    }

    /// The first cycle in which somebody arrives; the last one where nobody does.
    #[inline(always)]
    pub(super) fn due(&self) -> u32 {
        self.due
    }

    /// An arrival that is due at `cycle`.
    pub(super) fn take_due(&mut self, cycle: u32) -> Option<DueArrival> {
        if self.due > cycle {
            return None;
        }
        let taken = self.arrivals.pop().map(|Reverse(due)| due);
        self.due = self.arrivals.peek().map_or(u32::MAX, |Reverse(due)| due.cycle);
        taken
    }

    /// When all loads of a warp are done, or all stores.
    pub(super) fn transferred(&self, warp: usize, loads: bool) -> u32 {
        self.transfers[warp][usize::from(!loads)]
    }

    /// Columns that are free, and how many a warp waits for.
    pub(super) fn describe(&self, warp: usize) -> String {
        if let Some(columns) = self.pairs.asked(warp) {
            let free = self.free;
            return format!("{columns} columns of tensor memory in both CTAs of a pair, of which {free} are free here");
        }
        let wanted = self.waiting.iter().find(|(slot, _)| usize::from(*slot) == warp).map_or(0, |one| one.1);
        format!("{wanted} columns of tensor memory, of which {} are free", self.free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_given_in_the_order_in_which_warps_ask_and_none_passes_another() {
        let mut unit = TensorUnit::new(512, 2, 4);
        assert!(unit.take(0, 256) && unit.take(1, 128));
        assert!(!unit.take(2, 256) && !unit.take(3, 64), "the fourth waits behind the third");
        assert_eq!(unit.give_back(64), []);
        assert!(unit.describe(2).starts_with("256 columns"), "{}", unit.describe(2));
        assert_eq!(unit.give_back(128), [(2, 256), (3, 64)]);
        assert_eq!(unit.free, 0);
    }

    #[test]
    fn products_follow_one_another_and_an_arrival_comes_behind_those_of_its_cta() {
        let mut unit = TensorUnit::new(512, 2, 4);
        unit.multiply(0, TensorTimes { work: 64, tail: 160 }, 100);
        unit.multiply(1, TensorTimes { work: 32, tail: 160 }, 101);
        assert_eq!((unit.done[0], unit.done[1], unit.free_at), (100 + 64 + 160, 164 + 32 + 160, 196));
        assert!(unit.arrive_later((1, 7), [8].into_iter(), 110) && unit.arrive_later((0, 6), [16].into_iter(), 111));
        assert_eq!(unit.due(), 324, "one cycle after the last of its work's tail");
        assert!(!unit.arrive_later((0, 6), [16].into_iter(), 324), "nothing is under way");
        assert!(unit.arrive_later((0, 6), [16].into_iter(), 323));
    }

    #[test]
    fn a_wait_is_for_the_last_transfer_of_its_kind() {
        let mut unit = TensorUnit::new(512, 1, 1);
        assert_eq!(unit.transfer(0, true, 64, 19, 10), 74);
        assert_eq!(unit.transfer(0, false, 1, 19, 74), 75);
        assert_eq!(unit.transfers[0], [10 + 64 + 19, 74 + 1 + 19]);
    }
}
