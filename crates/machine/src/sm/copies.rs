//! Asynchronous copies from global to shared memory (`cp.async`), and the groups that warps wait for.
//!
//! ```text
//! cp.async ──> load-store unit: a load of global memory ──> its last line is there: the bytes go to shared memory
//! commit_group: the copies since the last one are a group      wait_group N: all groups but the last N are there
//! ```
//! A copy is a load whose bytes collect aside in place of registers. All of its bytes arrive in shared memory
//! at once, in the cycle from which a register could be read. A warp that reads before it has waited finds
//! what was there before. What a lane does not read of its bytes (`src-size`) is zeros.
//!
//! Source: PTX ISA 9.7.9.25, "Asynchronous copy". Groups are a warp's here and a thread's in the ISA: where
//! lanes of a warp commit apart, a wait is for at least what each lane waits for. Invariants: groups are
//! complete in any order; what is under way for a group is counted once a warp instruction. Not modelled: the
//! write's passes through the banks of shared memory. A memory fence waits for copies too, as for loads.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::coalescer::lanes_of;
use durawarp_checkpoint::value;
use durawarp_kernel::fault::FaultKind;
use durawarp_kernel::ir::{CopyStep, Mem, MemKind};
use durawarp_kernel::launch::Launch;
use durawarp_kernel::semantics::atomic::{PhaseMisuse, arrive_once};
use durawarp_kernel::warp::CopyTargets;

use super::cta::CtaSlot;
use super::slots::{Fault, WarpSlot};

/// Copies of a warp that are under way, by group.
#[derive(Debug, Default)]
pub(super) struct CopyGroups {
    /// In the group that is not committed yet.
    open: u32,
    /// In committed groups, from the oldest that is not complete.
    committed: VecDeque<u32>,
    /// The number of the first of these.
    first: u64,
    /// Copies issued so far.
    issued: u64,
    /// Arrivals at barriers that wait for copies, oldest first.
    arrivals: Vec<LaterArrival>,
}

value!(record CopyGroups { open, committed, first, issued, arrivals });

/// An arrival of lanes at barriers in shared memory, once all copies before it are there.
#[derive(Debug)]
struct LaterArrival {
    /// It waits for copies with lesser numbers.
    behind: u64,
    /// How many of these are under way.
    left: u32,
    /// The address of each lane's barrier.
    at: Vec<u64>,
}

value!(record LaterArrival { behind, left, at });

/// What a copy is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket {
    group: u64,
    number: u64,
}

value!(record Ticket { group, number });

impl CopyGroups {
    /// A copy leaves.
    pub(super) fn begin(&mut self) -> Ticket {
        self.open += 1;
        self.issued += 1;
        Ticket { group: self.first + self.committed.len() as u64, number: self.issued - 1 }
    }

    /// Lanes arrive at barriers behind all copies so far; false when none of these is under way.
    pub(super) fn arrive_later(&mut self, at: impl Iterator<Item = u64>) -> bool {
        let left = self.open + self.committed.iter().sum::<u32>();
        if left > 0 {
            self.arrivals.push(LaterArrival { behind: self.issued, left, at: at.collect() });
        }
        left > 0
    }

    /// What left since the last commit is a group.
    pub(super) fn commit(&mut self) {
        self.committed.push_back(std::mem::take(&mut self.open));
        self.settle();
    }

    /// A warp commits a group, or begins to wait: for all its groups but so many of the last, if it must.
    pub(super) fn step(&mut self, step: CopyStep) -> Option<u32> {
        let kept = match step {
            CopyStep::Commit => {
                self.commit();
                return None;
            }
            CopyStep::Wait(kept) => kept,
            CopyStep::WaitAll => {
                self.commit();
                0
            }
        };
        (!self.are_complete(kept)).then_some(kept)
    }

    /// A copy has arrived; the barriers at which lanes arrive with it.
    pub(super) fn land(&mut self, copy: Ticket) -> Vec<u64> {
        match self.committed.get_mut((copy.group - self.first) as usize) {
            Some(left) => *left -= 1,
            None => self.open -= 1,
        }
        self.settle();
        for arrival in self.arrivals.iter_mut().filter(|arrival| copy.number < arrival.behind) {
            arrival.left -= 1;
        }
        // An arrival waits for all that the one before it waits for, so that they come in order.
        let due = self.arrivals.iter().take_while(|arrival| arrival.left == 0).count();
        self.arrivals.drain(..due).flat_map(|arrival| arrival.at).collect()
    }

    /// All committed groups but the last `kept` are complete.
    pub(super) fn are_complete(&self, kept: u32) -> bool {
        self.committed.len() <= kept as usize
    }

    fn settle(&mut self) {
        while self.committed.front() == Some(&0) {
            self.committed.pop_front();
            self.first += 1;
        }
    }
}

/// A copy under way: where its bytes go.
#[derive(Debug)]
pub(super) struct CopyUnderWay {
    pub(super) targets: CopyTargets,
    /// All lanes that execute it; fewer may read.
    pub(super) lanes: u64,
    pub(super) ticket: Ticket,
}

value!(record CopyUnderWay { targets, lanes, ticket });

/// Copies of all warps of an SM.
#[derive(Debug)]
pub(super) struct Copies {
    pub(super) groups: Vec<CopyGroups>,
    /// Loads whose bytes are there in a later cycle.
    landing: BinaryHeap<Reverse<(u32, u16)>>,
}

value!(record Copies { groups, landing });

impl Copies {
    pub(super) fn new(warps: u32) -> Self {
        Copies { groups: (0..warps).map(|_| CopyGroups::default()).collect(), landing: BinaryHeap::new() }
    }

    /// The bytes of a copy, a load, are there from `cycle` on.
    pub(super) fn lands_at(&mut self, cycle: u32, load: u16) {
        self.landing.push(Reverse((cycle, load)));
    }

    /// The first cycle in which something lands.
    #[inline]
    pub(super) fn next(&self) -> Option<u32> {
        self.landing.peek().map(|Reverse((cycle, _))| *cycle)
    }

    /// A load whose bytes are there at `cycle`.
    #[inline]
    pub(super) fn take_landed(&mut self, cycle: u32) -> Option<u16> {
        self.next().filter(|&at| at <= cycle)?;
        self.landing.pop().map(|Reverse((_, load))| load)
    }
}

/// Writes a copy's bytes, 16 apart a lane, to the shared memory of its warp's CTA.
pub(super) fn write_copy(warp: usize, slot: &WarpSlot, cta: &mut CtaSlot, copy: &CopyUnderWay, mem: Mem, words: &[u8]) {
    // As a store to shared memory does, it carries what its warp knows of fences.
    cta.fenced = cta.fenced.max(slot.order.fenced);
    let bytes = mem.bytes() as usize;
    let to = copy.targets.places(copy.lanes).map(|(_, to)| to);
    cta.writers.access(warp as u8, MemKind::Store, to, bytes as u32);
    for (lane, to) in copy.targets.places(copy.lanes) {
        let (at, read) = (to as usize, usize::from(copy.targets.bytes[lane]));
        let target = &mut cta.shared[at..at + bytes];
        // Where no lane reads there are no words at all.
        if read > 0 {
            target[..read].copy_from_slice(&words[16 * lane..16 * lane + read]);
        }
        target[read..].fill(0);
    }
}

/// A lane arrives at each of these barriers in shared memory.
///
/// # Errors
/// What is wrong with the first where it cannot.
pub(super) fn arrive(shared: &mut [u8], at: &[u64]) -> Result<(), PhaseMisuse> {
    at.iter().try_for_each(|&at| arrive_once(shared, at))
}

/// Finds that every lane of a copy writes inside of shared memory and reads inside of an allocation.
pub(super) fn check_copy(
    slot: &WarpSlot,
    targets: &CopyTargets,
    lanes: u64,
    from: &[u64; 64],
    bytes: u32,
    launch: &Launch,
) -> Result<(), Fault> {
    let shared = u64::from(launch.shared_bytes);
    for lane in lanes_of(lanes) {
        // What goes nowhere is checked as if it went to the first bytes.
        let to = Some(targets.to[lane]).filter(|&to| to != CopyTargets::NOWHERE).unwrap_or(0);
        let (from, read) = (from[lane], u32::from(targets.bytes[lane]));
        let past_shared = to.checked_add(u64::from(bytes)).is_none_or(|end| end > shared);
        // Only what is read must be there: a lane may read nothing.
        let inside = |last: u64| launch.addresses.containing(from, last).is_some();
        let past_global = read > 0 && !from.checked_add(u64::from(read) - 1).is_some_and(inside);
        let misaligned = |address: u64| !address.is_multiple_of(u64::from(bytes));
        let kind = match (past_shared, misaligned(to), misaligned(from), past_global) {
            (true, ..) => {
                let hint = format!("there are {shared} bytes");
                FaultKind::OutOfBounds { address: to, bytes, space: "shared", hint }
            }
            (_, true, ..) => FaultKind::Misaligned { address: to, bytes, space: "shared" },
            (_, _, true, _) => FaultKind::Misaligned { address: from, bytes, space: "global" },
            (_, _, _, true) => {
                let hint = launch.addresses.describe(from);
                FaultKind::OutOfBounds { address: from, bytes: read, space: "global", hint }
            }
            _ => continue,
        };
        return Err(Box::new(slot.fault(lane as u32, kind, launch)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_for_all_but_the_last_group_leaves_that_one_under_way() {
        let mut groups = CopyGroups::default();
        let first = [groups.begin(), groups.begin()];
        groups.commit();
        let second = groups.begin();
        groups.commit();
        groups.land(first[0]);
        assert!(!groups.are_complete(1) && groups.are_complete(2), "a copy of the first is under way");
        groups.land(first[1]);
        assert!(groups.are_complete(1) && !groups.are_complete(0));
        groups.land(second);
        assert!(groups.are_complete(0));
    }

    #[test]
    fn groups_complete_in_any_order_and_those_without_copies_are_complete_at_once() {
        let mut groups = CopyGroups::default();
        groups.commit();
        assert!(groups.are_complete(0));
        let [old, new] = [0; 2].map(|_| {
            let copy = groups.begin();
            groups.commit();
            copy
        });
        groups.land(new);
        assert!(!groups.are_complete(1), "the older one is awaited");
        groups.land(old);
        assert!(groups.are_complete(0));
    }

    #[test]
    fn a_copy_that_is_not_committed_is_awaited_by_no_group() {
        let mut groups = CopyGroups::default();
        let copy = groups.begin();
        assert!(groups.are_complete(0));
        groups.land(copy);
        groups.commit();
        assert!(groups.are_complete(0));
    }

    #[test]
    fn an_arrival_waits_for_the_copies_before_it_alone() {
        let mut groups = CopyGroups::default();
        assert!(!groups.arrive_later([8].into_iter()), "nothing is under way");
        let [first, second] = [0; 2].map(|_| groups.begin());
        assert!(groups.arrive_later([8, 16].into_iter()));
        let third = groups.begin();
        assert!(groups.arrive_later([24].into_iter()));
        assert_eq!([groups.land(second), groups.land(third)], [Vec::<u64>::new(), Vec::new()]);
        assert_eq!(groups.land(first), [8, 16, 24]);
    }

    #[test]
    fn what_lands_later_is_taken_in_its_cycle_and_not_before() {
        let mut copies = Copies::new(1);
        copies.lands_at(12, 3);
        copies.lands_at(10, 7);
        assert_eq!((copies.next(), copies.take_landed(9)), (Some(10), None));
        assert_eq!([10, 11, 12].map(|cycle| copies.take_landed(cycle)), [Some(7), None, Some(3)]);
    }
}
