//! Bulk copies of an SM under way: their numbers, the groups that their warps wait for, and how they end.
//!
//! ```text
//!   load                 all requests answered ── some cycles ──> its barriers ── parts answered ──> over
//!   store, reduction     all lines left: its reads end       all requests answered: its whole ends, it is over
//!   prefetch             all requests answered: it is over
//! ```
//! Source: PTX ISA 9.7.9.25.5 (completion by an `mbarrier`, or by a bulk group); groups are a warp's, as
//! those of `cp.async`. The cycles to the barrier are a parameter of shared memory. Invariants: a copy keeps
//! its number, and its warp's slot counts it, until it is over; bytes complete at the own barrier before
//! parts that say so leave for other CTAs. Not modelled: barriers that hear of a part of a copy's bytes: they
//! hear of all at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::remote::{CopySource, RemotePart};
use durawarp_checkpoint::state;
use durawarp_kernel::fault::FaultKind;
use durawarp_kernel::ir::BulkStep;
use durawarp_kernel::semantics::atomic::complete_bytes;

use super::bulk_copy::{BulkCopy, insert};
use super::bulk_peers::PartQueue;
use super::copies::{CopyGroups, Ticket};
use super::core::IssueCore;
use super::launches::LaunchTable;
use super::slots::Fault;
use super::wait::Wait;

/// Copies under way.
#[derive(Debug)]
pub(super) struct CopyTable {
    /// By number; those of free numbers are over.
    pub(super) list: Vec<BulkCopy>,
    free: Vec<u16>,
    /// Groups of each warp: reads of shared memory, whole copies.
    groups: Vec<[CopyGroups; 2]>,
    /// Loads whose bytes complete in a later cycle.
    landing: BinaryHeap<Reverse<(u32, u16)>>,
    /// Parts for other CTAs, which leave before the event is over.
    pub(super) parts: PartQueue,
}

state!(CopyTable { saved: list, free, groups, landing; kept: parts });

impl CopyTable {
    /// No copy is under way.
    pub(super) fn new(warps: u32) -> Self {
        CopyTable {
            list: Vec::new(),
            free: Vec::new(),
            groups: (0..warps).map(|_| Default::default()).collect(),
            landing: BinaryHeap::new(),
            parts: PartQueue::default(),
        }
    }

    /// A copy begins: its number.
    pub(super) fn insert(&mut self, copy: BulkCopy) -> u16 {
        insert(&mut self.list, &mut self.free, copy)
    }

    /// A copy of a warp begins whose end groups tell.
    pub(super) fn begin_in_groups(&mut self, warp: usize) -> [Ticket; 2] {
        self.groups[warp].each_mut().map(CopyGroups::begin)
    }

    /// A copy has read all of its shared memory.
    pub(super) fn end_reads(&mut self, warp: usize, reads: Ticket) {
        self.groups[warp][0].land(reads);
    }

    /// A warp commits a group, or begins to wait: for what, if it must.
    pub(super) fn step_groups(&mut self, warp: usize, step: BulkStep) -> Option<Wait> {
        let [reads, whole] = &mut self.groups[warp];
        match step {
            BulkStep::Commit => {
                reads.commit();
                whole.commit();
                None
            }
            BulkStep::WaitRead(kept) => (!reads.are_complete(kept)).then_some(Wait::BulkReads(kept)),
            BulkStep::Wait(kept) => (!whole.are_complete(kept)).then_some(Wait::Bulk(kept)),
        }
    }

    /// What a warp waits for here is complete.
    pub(super) fn lets_go(&self, warp: usize, wait: Wait) -> bool {
        let [reads, whole] = &self.groups[warp];
        match wait {
            Wait::BulkReads(kept) => reads.are_complete(kept),
            Wait::Bulk(kept) => whole.are_complete(kept),
            _ => false,
        }
    }

    /// A copy reads shared memory of the own CTA.
    pub(super) fn reads_shared(&self, number: u16) -> bool {
        self.list[usize::from(number)].bulk.kind.reads_shared()
    }

    /// Loads have bytes that complete in a later cycle.
    #[inline]
    pub(super) fn has_landing(&self) -> bool {
        !self.landing.is_empty()
    }

    /// The cycle in which the next of these complete.
    pub(super) fn next_landing(&self) -> u32 {
        self.landing.peek().map_or(u32::MAX, |Reverse((at, _))| *at)
    }

    /// A request of a copy is answered: a warp that may go on.
    pub(super) fn answered(&mut self, number: u16, cycle: u32, core: &mut IssueCore, arrive: u32) -> Option<usize> {
        let copy = &mut self.list[usize::from(number)];
        copy.left -= 1;
        let done = copy.left == 0 && copy.sent == copy.operands.bytes;
        if done { self.end(number, cycle, core, arrive) } else { None }
    }

    /// All requests of a copy are answered.
    pub(super) fn end(&mut self, number: u16, cycle: u32, core: &mut IssueCore, arrive: u32) -> Option<usize> {
        let copy = &self.list[usize::from(number)];
        let warp = usize::from(copy.warp);
        if copy.bulk.kind.completes() {
            self.landing.push(Reverse((cycle + arrive, number)));
            return None;
        }
        if let Some([_, whole]) = copy.tickets {
            self.groups[warp][1].land(whole);
        }
        self.free.push(number);
        core.slots[warp].under_way.bulk -= 1;
        Some(warp)
    }

    /// The bytes of a load complete at its barrier, where there is one by `cycle`: a warp that may go on.
    pub(super) fn land(
        &mut self,
        cycle: u32,
        core: &mut IssueCore,
        launches: &LaunchTable,
        sm: u16,
    ) -> Result<Option<usize>, Fault> {
        let Some(&Reverse((_, number))) = self.landing.peek().filter(|Reverse((at, _))| *at <= cycle) else {
            return Ok(None);
        };
        self.landing.pop();
        let copy = &mut self.list[usize::from(number)];
        let warp = usize::from(copy.warp);
        // At home at once; elsewhere by a message, whose answer ends the copy.
        let shared = &mut core.ctas[usize::from(core.slots[warp].cta)].shared;
        let mut counts = 0..copy.home_barriers;
        if let Err(misuse) = counts.try_for_each(|_| complete_bytes(shared, copy.operands.barrier, copy.operands.bytes))
        {
            return Err(copy.fault(FaultKind::Asynchronous(misuse.to_string()), &core.slots, launches));
        }
        copy.landed = true;
        self.parts.complete(copy, CopySource { sm, warp: copy.warp, copy: number });
        if copy.apart > 0 {
            return Ok(Some(warp));
        }
        self.free.push(number);
        core.slots[warp].under_way.bulk -= 1;
        Ok(Some(warp))
    }

    /// A part for another CTA is there: a warp that may go on.
    ///
    /// # Errors
    /// What was wrong there, at the copy's instruction.
    pub(super) fn part_came(
        &mut self,
        part: Box<RemotePart>,
        core: &mut IssueCore,
        launches: &LaunchTable,
    ) -> Result<Option<usize>, Fault> {
        let number = part.from.copy;
        let copy = &mut self.list[usize::from(number)];
        if let Some(what) = &part.fault {
            return Err(copy.fault(FaultKind::Asynchronous(what.clone()), &core.slots, launches));
        }
        self.parts.recycle(part);
        copy.apart -= 1;
        if copy.apart > 0 || !copy.landed {
            return Ok(None);
        }
        self.free.push(number);
        core.slots[usize::from(copy.warp)].under_way.bulk -= 1;
        Ok(Some(usize::from(copy.warp)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_tell_reads_of_shared_memory_from_whole_copies() {
        let mut copies = CopyTable::new(1);
        let tickets = copies.begin_in_groups(0);
        assert_eq!(copies.step_groups(0, BulkStep::Commit), None);
        assert_eq!(copies.step_groups(0, BulkStep::WaitRead(0)), Some(Wait::BulkReads(0)));
        copies.end_reads(0, tickets[0]);
        assert_eq!(copies.step_groups(0, BulkStep::WaitRead(0)), None);
        assert_eq!(copies.step_groups(0, BulkStep::Wait(1)), None);
        assert_eq!(copies.step_groups(0, BulkStep::Wait(0)), Some(Wait::Bulk(0)));
        assert!(!copies.lets_go(0, Wait::Bulk(0)));
        copies.groups[0][1].land(tickets[1]);
        assert!(copies.lets_go(0, Wait::Bulk(0)));
    }
}
