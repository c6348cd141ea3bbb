//! How a warp goes on: fences, durability, persist barriers, its end and that of its CTA.
//!
//! ```text
//!   pm.barrier.wi   warp ──────────────────────────────> marker ─> L1: lines of the handler's FIFO are cleaned, in order
//!   pm.barrier.wg   all warps of the CTA ──────────────> marker        then one marker to each slice, behind them
//!   pm.barrier.kr   all CTAs ─> command processor ─> every SM: marker ─> command processor ─> all go on
//! ```
//! Arrival at a barrier of a CTA or a kernel is part of the instruction, whatever the scheme; what follows is the scheme's:
//! nothing, a wait for the warp's own persists, or a marker ([`FenceRule`]). CTAs that meet at a barrier of the kernel see
//! what the others wrote before it, as behind a fence of scope gpu; the warps of a CTA share an L1.
//!
//! Source: Gope et al. section 6.1. Invariants: a marker reaches a slice behind all that was cleaned before it; nobody
//! goes on before every slice has acknowledged. Not modelled: preemption, by which the paper lets a kernel's CTAs arrive
//! that are not resident: such a barrier is a deadlock here, and reported as one.

use crate::engine::Ctx;
use crate::kernel::launch::Launch;
use crate::machine::msg::{GridStep, Msg};
use crate::persist::handler::{Event, Marker};
use crate::persist::journal::FactKind;
use crate::persist::vocab::{FenceKind, FenceRule, PersistScope};

use super::Sm;
use super::barriers::AllArrived;
use super::lsu::{GRID, NO_LOAD};
use super::wait::Wait;

impl Sm {
    /// A warp has issued a fence of persistency in the cycle before `from`, and does what its scheme says.
    pub(super) fn persist_fence(
        &mut self,
        warp: usize,
        kind: FenceKind,
        rule: FenceRule,
        from: u32,
        launch: &Launch,
        cx: &mut Ctx<'_, Msg>,
    ) {
        let scope = kind.scope();
        self.core.slots[warp].order.came = from;
        if (scope, rule) != (PersistScope::Thread, FenceRule::Pass) {
            self.record.stall_begins(warp, &self.core.slots[warp], kind.name(), from);
        }
        if self.host.wants.persist_order && scope == PersistScope::Thread {
            self.record.note(&self.core.slots[warp], FactKind::PersistReached(scope), 0);
        }
        match (scope, rule) {
            (PersistScope::Thread, FenceRule::Pass) => {
                self.core.settle(warp, from, launch);
            }
            (PersistScope::Thread, FenceRule::Marker) => {
                self.record.note(&self.core.slots[warp], FactKind::PersistReached(scope), 0);
                self.mark(warp, scope);
                self.core.enter(warp, Wait::Marker(scope), from);
            }
            (_, FenceRule::Pass | FenceRule::Marker) => {
                self.arrive_persist(warp, scope, rule == FenceRule::Marker, from, launch, cx);
            }
            (_, FenceRule::WaitDurable | FenceRule::Ordered) => {
                let then = (scope != PersistScope::Thread).then_some(scope);
                self.wait_durable(warp, rule == FenceRule::Ordered, then, from, launch, cx);
            }
        }
    }

    /// A warp comes to a persist barrier of its CTA or kernel.
    pub(super) fn arrive_persist(
        &mut self,
        warp: usize,
        scope: PersistScope,
        marks: bool,
        cycle: u32,
        launch: &Launch,
        cx: &mut Ctx<'_, Msg>,
    ) {
        self.record.note(&self.core.slots[warp], FactKind::BarrierReached, 0);
        if marks || self.host.wants.persist_order {
            self.record.note(&self.core.slots[warp], FactKind::PersistReached(scope), 0);
        }
        let arrived = self.core.arrive_persist(warp, scope, marks, cycle, launch, &mut self.record);
        self.all_arrived(arrived, cx);
    }

    /// What follows when the last warp of a CTA has come to a persist barrier, if it has.
    fn all_arrived(&mut self, arrived: Option<AllArrived>, cx: &mut Ctx<'_, Msg>) {
        match arrived {
            None => {}
            Some(AllArrived::Marks(warp)) => self.mark(warp, PersistScope::Cta),
            Some(AllArrived::AtKernel { marks, since }) => {
                let step = GridStep::Reached { sm: self.w.index, marks, since };
                cx.send(self.dispatch_port(), Msg::Grid(step), 0);
            }
        }
    }

    /// Appends a marker behind all that the SM has issued.
    fn mark(&mut self, warp: usize, scope: PersistScope) {
        let marker = Marker { scope, by: (warp as u8, self.core.slots[warp].cta) };
        let entry = self.lsu.marker(warp as u8, marker, self.w.ports.map(), self.record.now);
        self.record.counters.pm_markers += 1;
        self.enqueue(warp, NO_LOAD, entry);
    }

    /// A marker is at the head of the load-store unit: what its handler names leaves the L1 before it.
    pub(super) fn drain(&mut self) {
        let marker = self.lsu.send_marker();
        self.host.tell(&Event::Marker(&marker));
        let lines = std::mem::take(self.host.outbox.cleans());
        if self.l1.combines() {
            lines.into_iter().for_each(|line| self.leaving.cleaning.ask(line));
        }
    }

    /// The command processor speaks of a kernel's persist barrier.
    pub(super) fn grid(&mut self, step: GridStep, cycle: u32, launch: &Launch) {
        match step {
            GridStep::Drain => {
                self.core.await_kernel(cycle);
                let marker = Marker { scope: PersistScope::Kernel, by: (0, 0) };
                let entry = self.lsu.marker(GRID, marker, self.w.ports.map(), self.record.now);
                self.record.counters.pm_markers += 1;
                self.host.grid_left = self.w.ports.map().slices();
                self.record.counters.persists += u64::from(self.host.grid_left);
                self.lsu.queue.push_back(entry);
            }
            GridStep::Open => {
                // What other SMs wrote before must be seen from here on.
                if self.p.l1.fence_invalidates {
                    self.l1.invalidate_all();
                }
                if let Some(order) = &self.leaving.order {
                    self.host.tell(&Event::KernelBarrier(order.issued()));
                }
                self.core.open_kernel(cycle, launch, &mut self.record);
            }
            GridStep::Reached { .. } | GridStep::Drained => panic!("an SM received {step:?}"),
        }
    }

    /// A slice has acknowledged the kernel's marker.
    pub(super) fn grid_acknowledged(&mut self, cx: &mut Ctx<'_, Msg>) {
        self.host.grid_left -= 1;
        if self.host.grid_left == 0 {
            cx.send(self.dispatch_port(), Msg::Grid(GridStep::Drained), 0);
        }
    }

    /// A warp's last lane has exited in `cycle`.
    pub(super) fn warp_exited(&mut self, warp: usize, cycle: u32, launch: &Launch, cx: &mut Ctx<'_, Msg>) {
        let cta = self.core.exit(warp, cycle);
        self.retire_if_drained(warp, cycle, cx);
        let arrived = self.core.open_without(cta, cycle, launch, &mut self.record);
        self.all_arrived(arrived, cx);
    }

    /// Frees an exited warp's slot when its last load and store are done; the last warp ends the CTA.
    pub(super) fn retire_if_drained(&mut self, warp: usize, cycle: u32, cx: &mut Ctx<'_, Msg>) {
        let slot = &self.core.slots[warp];
        if slot.wait != Wait::Drained || !slot.under_way.is_empty() {
            return;
        }
        if self.front_end.present && !self.front_end.is_copied(warp, slot, &mut self.host, &self.record) {
            return;
        }
        if let Some(cta) = self.core.retire(warp, cycle) {
            self.end_cta(cta, cx);
        }
    }
}
