//! Fences and persist barriers: what a warp waits for there, and what follows.
//!
//! ```text
//!   pm.barrier.wi   warp ──────────────────────────────> marker ─> L1: lines that the handler names are cleaned
//!   pm.barrier.wg   all warps of the CTA ──────────────> marker        then one marker to each slice
//!   pm.barrier.kr   all CTAs ─> command processor ─> every SM: marker ─> command processor ─> all go on
//! ```
//! A fence goes through these steps, each of which may take no time:
//!
//! | step | ends when | then |
//! |---|---|---|
//! | `fence` | the warp's accesses are performed | `release` |
//! | `release` | all lines that the L1 has combined are performed | `pass_fence` |
//! | `pass_fence` | at once: the L1 forgets its lines | the warp goes on, or `persist_fence` |
//! | `persist_fence` | as the scheme's [`FenceRule`] says | the warp goes on |
//!
//! Arrival at a barrier of a CTA or a kernel is part of the instruction, whatever the scheme; what follows is
//! the scheme's: nothing, a wait for the warp's own persists, or a marker. CTAs that meet at a barrier of the
//! kernel see what the others wrote before it, as after a fence of scope gpu; the warps of a CTA share an L1.
//!
//! Source: Gope et al. section 6.1. Invariants: a marker reaches a slice after all that was cleaned before
//! it; no warp goes on before every slice has acknowledged. Not modelled: preemption, by which the paper lets
//! a kernel's CTAs arrive that are not resident: such a barrier is a deadlock here, and reported as one.

use crate::msg::{CommandProcessorMsg, GridOrder, GridReport, Msg};
use durawarp_engine::Ctx;
use durawarp_persist::handler::{Marker, SmEvent};
use durawarp_persist::journal::FactKind;
use durawarp_persist::vocab::{FenceKind, FenceRule, PersistScope};

use super::barriers::AllArrived;
use super::core::IssueCore;
use super::lsu::{GRID, Lsu};
use super::memory_side::MemorySide;
use super::moment::Moment;
use super::wait::{AfterFence, Wait};

/// The parts of an SM that fences and persist barriers act on.
#[derive(Debug)]
pub(super) struct FencePath<'a> {
    pub(super) core: &'a mut IssueCore,
    pub(super) lsu: &'a mut Lsu,
    pub(super) memory: &'a mut MemorySide,
    /// Warps go on, or wait, from its cycle on: for one that issues, the cycle after its issue.
    pub(super) m: Moment<'a>,
}

impl FencePath<'_> {
    /// The warp goes on with its next instruction.
    fn settle(&mut self, warp: usize) {
        let launch = self.m.launch(&self.core.slots[warp]);
        self.core.settle(warp, self.m.cycle, launch);
    }

    /// A warp has issued a fence.
    pub(super) fn fence(&mut self, warp: usize, then: AfterFence, cx: &mut Ctx<'_, Msg>) {
        if self.core.is_performed(warp) {
            self.release(warp, then, cx);
        } else {
            self.core.enter(warp, Wait::Performed(then), self.m.cycle);
        }
    }

    /// A fence whose warp has nothing under way: it passes when all stores of this SM are performed.
    pub(super) fn release(&mut self, warp: usize, then: AfterFence, cx: &mut Ctx<'_, Msg>) {
        match self.memory.release_all() {
            None => self.pass_fence(warp, then, cx),
            Some(cleaning) => {
                self.memory.leaving.releases += 1;
                self.core.slots[warp].releasing = cleaning;
                let wait = Wait::Released(then);
                if matches!(self.core.slots[warp].wait, Wait::Performed(_)) {
                    // It waits at its fence already, since then.
                    self.core.stays(warp, wait);
                } else {
                    self.core.enter(warp, wait, self.m.cycle);
                }
            }
        }
    }

    /// Fences pass whose releases are complete.
    pub(super) fn released(&mut self, cx: &mut Ctx<'_, Msg>) {
        for warp in 0..self.core.slots.len() {
            let slot = &self.core.slots[warp];
            if let Wait::Released(then) = slot.wait
                && self.memory.leaving.is_complete(slot.releasing)
            {
                self.memory.leaving.releases -= 1;
                self.pass_fence(warp, then, cx);
            }
        }
    }

    /// A fence's loads and stores are done: what others wrote must be seen from here on.
    fn pass_fence(&mut self, warp: usize, then: AfterFence, cx: &mut Ctx<'_, Msg>) {
        if self.m.p.l1.fence_invalidates {
            self.memory.l1.invalidate_all();
        }
        match then {
            AfterFence::Nothing => self.settle(warp),
            AfterFence::Sfence => {
                let rule = self.m.host.handler.fence(FenceKind::Sfence);
                self.persist_fence(warp, FenceKind::Sfence, rule, cx);
            }
            AfterFence::Barrier(kind, rule) => self.persist_fence(warp, kind, rule, cx),
        }
    }

    /// A warp has issued a fence of persistency, and does what its scheme says.
    pub(super) fn persist_fence(&mut self, warp: usize, kind: FenceKind, rule: FenceRule, cx: &mut Ctx<'_, Msg>) {
        let (scope, from) = (kind.scope(), self.m.cycle);
        self.core.slots[warp].order.came = from;
        if (scope, rule) != (PersistScope::Thread, FenceRule::Pass) {
            self.m.record.stall_begins(warp, &self.core.slots[warp], kind.name(), from);
        }
        if self.m.host.wants.persist_order && scope == PersistScope::Thread {
            self.m.record.note(&self.core.slots[warp], FactKind::PersistReached(scope), 0);
        }
        // A thread's barrier is a matter of its warp; one of a CTA or kernel first needs every warp to
        // arrive.
        match (scope, rule) {
            (PersistScope::Thread, FenceRule::Pass) => {
                self.m.record.note(&self.core.slots[warp], FactKind::FenceSkipped(kind), 0);
                self.settle(warp);
            }
            (PersistScope::Thread, FenceRule::Marker) => {
                self.m.record.note(&self.core.slots[warp], FactKind::PersistReached(scope), 0);
                self.mark(warp, scope);
                self.core.enter(warp, Wait::Marker(scope), from);
            }
            (_, FenceRule::Pass | FenceRule::Marker) => self.arrive(warp, scope, rule == FenceRule::Marker, cx),
            (_, FenceRule::WaitDurable | FenceRule::Ordered) => {
                let then = (scope != PersistScope::Thread).then_some(scope);
                self.wait_durable(warp, rule == FenceRule::Ordered, then, cx);
            }
        }
    }

    /// A warp comes to a persist barrier of its CTA or kernel.
    fn arrive(&mut self, warp: usize, scope: PersistScope, marks: bool, cx: &mut Ctx<'_, Msg>) {
        let (slot, record) = (&self.core.slots[warp], &mut *self.m.record);
        record.note(slot, FactKind::BarrierReached, 0);
        if marks || self.m.host.wants.persist_order {
            record.note(slot, FactKind::PersistReached(scope), 0);
        }
        let launch = self.m.launches.of(slot);
        let arrived = self.core.arrive_persist(warp, scope, marks, self.m.cycle, launch, record);
        self.all_arrived(arrived, cx);
    }

    /// What follows when the last warp of a CTA has come to a persist barrier, if it has.
    pub(super) fn all_arrived(&mut self, arrived: Option<AllArrived>, cx: &mut Ctx<'_, Msg>) {
        match arrived {
            None => {}
            Some(AllArrived::Marks(warp)) => self.mark(warp, PersistScope::Cta),
            Some(AllArrived::AtKernel { marks, since }) => {
                let report = GridReport::Reached { sm: self.m.w.index, marks, since };
                self.m.w.ports.to_command_processor().send(CommandProcessorMsg::Grid(report), 0, cx);
            }
        }
    }

    /// Appends a marker to all that the SM has issued.
    fn mark(&mut self, warp: usize, scope: PersistScope) {
        let marker = Marker { scope, by: (warp as u8, self.core.slots[warp].cta) };
        let entry = self.lsu.marker(warp as u8, marker, self.m.w.ports.map(), self.m.record.now);
        self.m.record.counters.pm_markers += 1;
        self.lsu.enqueue(entry, &mut self.core.slots[warp], self.m.record);
    }

    /// The warp goes on, or comes to the persist barrier that follows, when all its persists are durable;
    /// where the others are `ordered`, when its write-backs are.
    pub(super) fn wait_durable(
        &mut self,
        warp: usize,
        ordered: bool,
        then: Option<PersistScope>,
        cx: &mut Ctx<'_, Msg>,
    ) {
        // One that is no fence is a store for which its scheme makes the warp wait.
        let from = self.m.cycle;
        self.m.record.stall_begins(warp, &self.core.slots[warp], "durable store", from);
        let flushing = !ordered && self.memory.is_unpersisted(&self.core.slots[warp]);
        if flushing {
            let (cta, number) = (self.core.slots[warp].cta, self.core.slots[warp].order.non_temporal);
            self.m.host.tell(&SmEvent::Flush { cta, number });
        }
        if self.core.slots[warp].under_way.awaited(ordered) == 0 && !flushing {
            self.core.slots[warp].since = from;
            self.pass_durable(warp, then, cx);
        } else {
            self.core.enter(warp, Wait::Durable { ordered, flushing, then }, from);
        }
    }

    /// A line that left by its handler's word is durable: warps go on that waited for no other.
    pub(super) fn persisted(&mut self, cx: &mut Ctx<'_, Msg>) {
        for warp in 0..self.core.slots.len() {
            if let Wait::Durable { ordered, flushing: true, then } = self.core.slots[warp].wait
                && !self.memory.is_unpersisted(&self.core.slots[warp])
            {
                self.core.stays(warp, Wait::Durable { ordered, flushing: false, then });
                if self.core.slots[warp].under_way.awaited(ordered) == 0 {
                    self.pass_durable(warp, then, cx);
                }
            }
        }
    }

    /// The persists that a warp waited for are durable.
    pub(super) fn pass_durable(&mut self, warp: usize, then: Option<PersistScope>, cx: &mut Ctx<'_, Msg>) {
        let cycle = self.m.cycle;
        let waited = cycle - self.core.slots[warp].since.min(cycle);
        self.m.record.stalls.fences.record(self.m.w.clock.cycles(u64::from(waited)));
        let slot = &mut self.core.slots[warp];
        if slot.under_way.persists == 0 && !self.memory.is_unpersisted(slot) {
            self.m.record.note(slot, FactKind::FencePassed, 0);
        } else {
            slot.order.fenced = slot.order.fenced.max(slot.order.non_temporal);
            self.memory.pass_ordered(slot, self.m.host, self.m.record);
        }
        match then {
            Some(scope) => self.arrive(warp, scope, false, cx),
            None => {
                self.m.record.stall_ends(warp, cycle);
                self.settle(warp);
            }
        }
    }

    /// The command processor speaks of a kernel's persist barrier.
    pub(super) fn grid(&mut self, order: GridOrder) {
        let Moment { cycle, launches, p, w, host, record } = &mut self.m;
        match order {
            GridOrder::Drain => {
                self.core.await_kernel(*cycle);
                let marker = Marker { scope: PersistScope::Kernel, by: (0, 0) };
                let entry = self.lsu.marker(GRID, marker, w.ports.map(), record.now);
                record.counters.pm_markers += 1;
                host.grid_left = w.ports.map().slices();
                record.counters.persists += u64::from(host.grid_left);
                self.lsu.push(entry);
            }
            GridOrder::Open => {
                // What other SMs wrote before must be seen from here on.
                if p.l1.fence_invalidates {
                    self.memory.l1.invalidate_all();
                }
                if let Some(order) = &self.memory.leaving.order {
                    host.tell(&SmEvent::KernelBarrier(order.issued()));
                }
                self.core.open_kernel(*cycle, launches, record);
            }
        }
    }

    /// A slice has acknowledged the kernel's marker.
    pub(super) fn grid_acknowledged(&mut self, cx: &mut Ctx<'_, Msg>) {
        self.m.host.grid_left -= 1;
        if self.m.host.grid_left == 0 {
            let report = CommandProcessorMsg::Grid(GridReport::Drained);
            self.m.w.ports.to_command_processor().send(report, 0, cx);
        }
    }
}

/// The parts of an SM that fences act on, when warps go on from a cycle on.
macro_rules! fence_path {
    ($sm:ident, $from:expr, $launches:expr) => {
        FencePath { core: &mut $sm.core, lsu: &mut $sm.lsu, memory: &mut $sm.memory, m: moment!($sm, $from, $launches) }
    };
}

pub(super) use fence_path;
