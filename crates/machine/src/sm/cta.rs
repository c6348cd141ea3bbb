//! A CTA in an SM: its warps, its shared memory, its barriers.
//!
//! Invariant: a slot is free when no warp, no slice and no cleaning of its CTA is under way.

use crate::shared_memory::Writers;
use durawarp_checkpoint::value;
use durawarp_engine::Time;
use durawarp_persist::vocab::{Boundary, PersistScope};

use super::registers::RegisterPool;
use super::seat::Seat;

/// One of a CTA's 16 barriers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BarrierState {
    /// Arrivals of warps since it last opened.
    pub(super) arrivals: u32,
    /// Warp slots that have arrived.
    pub(super) arrived: u64,
    /// Warp slots that wait.
    pub(super) waiting: u64,
    /// Threads expected; 0 = all that have not exited.
    pub(super) expected: u32,
    /// For `bar.red`: lanes whose predicate holds, and lanes that took part.
    pub(super) votes: u32,
    pub(super) voters: u32,
    /// What its warps know of fences that did not wait: who passes it knows the same.
    pub(super) fenced: u64,
}

value!(record BarrierState { arrivals, arrived, waiting, expected, votes, voters, fenced });

impl BarrierState {
    /// Every thread that it waits for has arrived, where the warps `live` have not exited.
    pub(super) fn is_complete(&self, live: u64, warp_size: u32) -> bool {
        match self.expected {
            0 => self.arrived & live == live,
            threads => self.arrivals * warp_size >= threads,
        }
    }
}

/// A persist barrier of a CTA or a kernel, as far as one CTA is concerned.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PersistArrival {
    /// Warp slots that wait.
    pub(super) waiting: u64,
    /// A marker follows.
    pub(super) marks: bool,
    /// Every warp is there, and whoever acts on that has been told.
    pub(super) told: bool,
    /// When the first came.
    pub(super) since: Time,
}

value!(record PersistArrival { waiting, marks, told, since });

/// A resident CTA, or room for one.
#[derive(Debug, Default)]
pub(super) struct CtaSlot {
    pub(super) cta: u64,
    /// The place of its launch.
    pub(super) launch: u8,
    /// Warp slots with live lanes.
    pub(super) live: u64,
    /// Warps not yet retired.
    pub(super) left: u32,
    /// L2 slices that still write back for it, after its last warp.
    pub(super) flushing: u32,
    /// When its last warp was done, if slices write back for it.
    pub(super) ended: Time,
    pub(super) shared: Vec<u8>,
    /// Who wrote each word of it last.
    pub(super) writers: Writers,
    /// What warps that wrote its shared memory, or exited, knew of fences that did not wait: who reads it, or
    /// passes a barrier that did not wait for them, knows the same.
    pub(super) fenced: u64,
    pub(super) barriers: [BarrierState; 16],
    /// Warps that came to a barrier which has opened, and of which stores are under way since.
    pub(super) storing: u64,
    /// Persist barriers of the CTA and of the kernel.
    arrivals: [PersistArrival; 2],
    /// The cleaning that its end waits for; 0 for none.
    pub(super) releasing: u64,
    /// What its scheme wants at its end.
    pub(super) boundary: Boundary,
    /// Registers that its warps pass on.
    pub(super) registers: RegisterPool,
    /// Its place in its cluster, where it has one or has come to the barrier of one.
    pub(super) seat: Option<Box<Seat>>,
}

value!(record CtaSlot {
    cta, launch, live, left, flushing, ended, shared, writers, fenced, barriers, storing, arrivals, releasing,
    boundary, registers, seat,
});

impl CtaSlot {
    /// No CTA is there.
    pub(super) fn is_free(&self) -> bool {
        self.left == 0 && self.flushing == 0 && self.releasing == 0
    }

    /// A CTA of so many warps is there from now on; the writers of `watched` bytes of its shared memory are
    /// recorded.
    pub(super) fn begin(&mut self, (launch, cta): (u8, u64), warps: u32, shared_bytes: u32, watched: u32) {
        self.cta = cta;
        self.launch = launch;
        self.live = 0;
        self.left = warps;
        self.fenced = 0;
        self.shared.clear();
        self.shared.resize(shared_bytes as usize, 0);
        self.writers.begin(watched);
        self.barriers = [BarrierState::default(); 16];
        self.storing = 0;
        self.arrivals = [PersistArrival::default(); 2];
        self.registers.clear();
        self.seat = None;
    }

    /// Its persist barrier of a scope.
    pub(super) fn arrival(&mut self, scope: PersistScope) -> &mut PersistArrival {
        &mut self.arrivals[usize::from(scope == PersistScope::Kernel)]
    }

    /// A slice has written back everything for its end; true when that was the last.
    pub(super) fn slice_written_back(&mut self) -> bool {
        self.flushing -= 1;
        self.flushing == 0
    }

    /// The barrier of the cluster, for a report.
    pub(super) fn describe_cluster(&self) -> String {
        let (there, ctas) = self.seat.as_ref().map_or((0, 1), |seat| (seat.phases.there(), seat.phases.ctas()));
        format!("barrier.cluster: {there} of {ctas} CTAs have arrived")
    }

    /// The barrier that a warp waits at, for a report.
    pub(super) fn describe_barrier(&self, warp: usize, warp_size: u32) -> String {
        let live = self.live.count_ones();
        let mut arrivals = self.arrivals.iter().zip(["wg", "kr"]);
        if let Some((arrival, name)) = arrivals.find(|(arrival, _)| arrival.waiting >> warp & 1 == 1) {
            let count = arrival.waiting.count_ones();
            let others = if name == "kr" && count == live { "; other CTAs of the kernel have not" } else { "" };
            return format!("pm.barrier.{name}: {count} of {live} warps have arrived{others}");
        }
        let (id, barrier) = self.barriers.iter().enumerate().find(|(_, b)| b.waiting >> warp & 1 == 1).unzip();
        let barrier = barrier.copied().unwrap_or_default();
        let expected = match barrier.expected {
            0 => live,
            threads => threads / warp_size,
        };
        format!("barrier {}: {} of {expected} warps have arrived", id.unwrap_or(0), barrier.arrivals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_waits_for_its_threads_or_for_every_warp_that_has_not_exited() {
        let all = BarrierState { arrivals: 2, arrived: 0b011, ..BarrierState::default() };
        assert!(!all.is_complete(0b111, 32) && all.is_complete(0b011, 32));
        let of_threads = |expected| BarrierState { expected, ..all };
        assert!(!of_threads(96).is_complete(0b111, 32) && of_threads(64).is_complete(0b111, 32));
    }

    #[test]
    fn a_slot_is_free_when_the_last_slice_has_written_back_for_its_cta() {
        let mut slot = CtaSlot { flushing: 2, ..CtaSlot::default() };
        assert!(!slot.slice_written_back() && !slot.is_free());
        assert!(slot.slice_written_back() && slot.is_free());
    }
}
