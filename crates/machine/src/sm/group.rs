//! Products of four warps (`wgmma`): when they are done, and the groups of them that warps wait for.
//!
//! ```text
//!   issue        17 cycles for each 64 columns: then the warp goes on
//!   tensor core  max(operations / rate, issue)      one product after another, of all warps of the scheduler
//!   tail         66 cycles from the end of its work: then it is done, and wait_group may end
//! ```
//! Each warp of a group has a quarter of the product, which takes its scheduler's tensor cores a quarter of
//! the SM's rate: as long as the whole product takes the SM. When a product is done is known when it issues,
//! so a wait is a cycle and no event. `wgmma.mma_async` waits for registers of a and d that other
//! instructions write, as the ISA's `wgmma.fence` orders them; the fence takes an issue and no more.
//!
//! Source of times: FlashGPU-Sim, `SM90_H100`, fitted there to microbenchmarks of an H100 (`[tensor]` of
//! `hopper-h100` has them). Chosen: a product's work begins with its issue. Invariant: products of a warp are
//! done in the order of their issue.
//!
//! Not modelled: four warps that wait for each other at a product; the banks of shared memory and the ports
//! of the register file that a product takes from other instructions; `wgmma` beside `mma` of another warp is
//! in the order of issue.

use std::collections::VecDeque;

use crate::coalescer::lanes_of;
use durawarp_checkpoint::value;
use durawarp_kernel::ir::{GroupProduct, GroupStep, MemKind};
use durawarp_kernel::launch::Launch;
use durawarp_kernel::warp::Warp;
use durawarp_persist::handler::SmEvent;

use super::cta::CtaSlot;
use super::handler_host::SmHost;
use super::parameters::{GroupTimes, TensorSpec};
use super::slots::{Fault, WarpSlot};

/// Products of a warp that are not done, and its groups.
#[derive(Debug, Default)]
pub(super) struct ProductQueue {
    /// When the last product since the last commit is done; 0 without one.
    open: u32,
    /// When the products of each committed group are, oldest first.
    committed: VecDeque<u32>,
    /// The first register of d of each product under way, and when it is done; oldest first.
    under_way: VecDeque<(u16, u32)>,
}

value!(record ProductQueue { open, committed, under_way });

impl ProductQueue {
    /// A product issues at `cycle`, when the tensor cores are free from `free_at` on. The first cycle in
    /// which its warp issues again.
    pub(super) fn begin(
        &mut self,
        accumulator: u16,
        times: GroupTimes,
        depth: u32,
        cycle: u32,
        free_at: &mut u32,
    ) -> u32 {
        let start = cycle.max(*free_at);
        *free_at = start + times.interval;
        let done = start + times.work + times.tail;
        // A longer tail before it does not let it overtake.
        let done = self.under_way.back().map_or(done, |&(_, last)| done.max(last));
        self.open = done;
        self.under_way.retain(|&(_, done)| done > cycle);
        let mut alike = self.under_way.iter().filter(|(of, _)| *of == accumulator);
        let before = alike.clone().count() + 1;
        // The issue of one more than there may be takes until the oldest of them is done.
        let held = if before > depth as usize {
            alike.nth(before - 1 - depth as usize).map_or(0, |&(_, done)| done)
        } else {
            0
        };
        self.under_way.push_back((accumulator, done));
        held.max(cycle + times.issue)
    }

    /// A warp commits, waits or fences at `cycle`. The first cycle in which it issues again.
    pub(super) fn step(&mut self, step: GroupStep, cycle: u32) -> u32 {
        match step {
            GroupStep::Commit => {
                let last = self.committed.back().copied().unwrap_or_default();
                self.committed.push_back(std::mem::take(&mut self.open).max(last));
                while self.committed.front().is_some_and(|&done| done <= cycle) {
                    self.committed.pop_front();
                }
                cycle + 1
            }
            GroupStep::Wait(kept) => {
                let awaited = self.committed.len().saturating_sub(kept as usize);
                self.committed.drain(..awaited).fold(cycle + 1, u32::max)
            }
            GroupStep::Fence | GroupStep::Multiply => cycle + 1,
        }
    }
}

/// What a product of a warp reads of shared memory carries knowledge of fences, as a load does. `each_read`
/// names the lanes, the addresses and the bytes of each chunk.
pub(super) fn read_factors(
    warp: usize,
    slot: &mut WarpSlot,
    cta: &mut CtaSlot,
    launch: &Launch,
    host: &mut SmHost,
    each_read: impl FnOnce(&Warp, &mut dyn FnMut(u64, &[u64; 64], u32)) -> Result<(), Fault>,
) -> Result<(), Fault> {
    slot.order.fenced = slot.order.fenced.max(cta.fenced);
    if !cta.writers.are_watched() {
        return Ok(());
    }
    let (memory, mut read) = (u64::from(launch.shared_bytes), false);
    each_read(&slot.warp, &mut |lanes, addresses, bytes| {
        // What lies beyond is a fault, which the product reports.
        let inside = lanes_of(lanes).map(|lane| addresses[lane]).filter(|at| at + u64::from(bytes) <= memory);
        read |= cta.writers.access(warp as u8, MemKind::Load, inside, bytes);
    })?;
    if read {
        host.tell(&SmEvent::SharedRead { launch: slot.launch });
    }
    Ok(())
}

impl TensorSpec {
    /// The times of a product on an SM of `schedulers` schedulers.
    pub(super) fn group_times(&self, product: &GroupProduct, schedulers: u32) -> GroupTimes {
        let (rate, tail) = self.rate_and_tail(product.elements);
        // A warp has a quarter of the work, a scheduler its share of the rate.
        let work = (u64::from(product.operations()) * u64::from(schedulers)).div_ceil(4 * u64::from(rate)) as u32;
        let issue = self.group_issue_cycles * u32::from(product.columns).div_ceil(64);
        let sooner = if product.a_in_registers { self.group_registers_cycles } else { 0 };
        GroupTimes { issue, work, interval: work.max(issue), tail: tail.saturating_sub(sooner) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: GroupTimes = GroupTimes { issue: 17, work: 32, interval: 32, tail: 66 };

    #[test]
    fn a_product_is_done_after_its_work_and_its_tail_and_the_next_one_an_interval_later() {
        let (mut queue, mut free_at) = (ProductQueue::default(), 0);
        assert_eq!(queue.begin(0, TIMES, 8, 100, &mut free_at), 117, "the warp goes on");
        assert_eq!(queue.begin(0, TIMES, 8, 117, &mut free_at), 134);
        assert_eq!((free_at, queue.step(GroupStep::Commit, 134)), (164, 135));
        assert_eq!(queue.step(GroupStep::Wait(0), 135), 132 + 32 + 66);
    }

    #[test]
    fn a_wait_leaves_the_last_groups_under_way() {
        let (mut queue, mut free_at) = (ProductQueue::default(), 0);
        for cycle in [0, 20, 40] {
            queue.begin(0, TIMES, 8, cycle, &mut free_at);
            queue.step(GroupStep::Commit, cycle + 17);
        }
        assert_eq!(queue.step(GroupStep::Wait(3), 60), 61, "nothing is awaited");
        assert_eq!(queue.step(GroupStep::Wait(1), 61), 32 + 32 + 66, "the second");
        assert_eq!(queue.step(GroupStep::Wait(0), 131), 64 + 32 + 66, "the third");
        assert_eq!(queue.step(GroupStep::Wait(0), 300), 301);
    }

    #[test]
    fn products_that_are_not_committed_are_awaited_by_no_wait() {
        let (mut queue, mut free_at) = (ProductQueue::default(), 0);
        queue.begin(0, TIMES, 8, 0, &mut free_at);
        assert_eq!(queue.step(GroupStep::Wait(0), 17), 18);
        queue.step(GroupStep::Commit, 18);
        assert_eq!(queue.step(GroupStep::Wait(0), 19), 98);
    }

    #[test]
    fn one_more_product_of_a_sum_than_there_may_be_holds_its_warp_until_the_oldest_is_done() {
        let goes_on = |accumulator: u16| {
            let (mut queue, mut free_at) = (ProductQueue::default(), 0);
            let mut cycle = 0;
            for n in 0..3 {
                cycle = queue.begin(if n == 2 { accumulator } else { 0 }, TIMES, 2, cycle, &mut free_at);
            }
            cycle
        };
        assert_eq!([goes_on(0), goes_on(4)], [98, 3 * 17], "of the same registers, of others");
    }
}
