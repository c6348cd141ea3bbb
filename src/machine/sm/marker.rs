//! Persist barriers at an SM: who waits for whom, and the marker that brings a scope's stores to durability.
//!
//! ```text
//!   pm.barrier.wi   warp ──────────────────────────────> marker ─> L1: lines of the handler's FIFO are cleaned, in order
//!   pm.barrier.wg   all warps of the CTA ──────────────> marker        then one marker to each slice, behind them
//!   pm.barrier.kr   all CTAs ─> command processor ─> every SM: marker ─> command processor ─> all go on
//! ```
//! Arrival at a barrier of a CTA or a kernel is part of the instruction, whatever the scheme; what follows is the scheme's:
//! nothing, a wait for the warp's own persists, or a marker ([`FenceRule`]). A warp that has exited is not waited for. CTAs
//! that meet at a barrier of the kernel see what the others wrote before it, as behind a fence of scope gpu; the warps of a
//! CTA share an L1.
//!
//! Source: Gope et al. section 6.1. Invariants: a marker reaches a slice behind all that was cleaned before it; nobody
//! goes on before every slice has acknowledged. Not modelled: preemption, by which the paper lets a kernel's CTAs arrive
//! that are not resident: such a barrier is a deadlock here, and reported as one.

use crate::engine::{Ctx, Time};
use crate::kernel::ir::Class;
use crate::kernel::launch::Launch;
use crate::machine::coalescer::LineAccess;
use crate::machine::msg::{GridStep, Msg, Payload, RequestKind};
use crate::persist::handler::{Event, Marker};
use crate::persist::journal::FactKind;
use crate::persist::vocab::{FenceKind, FenceRule, PersistScope};

use super::Sm;
use super::lsu::{NO_LOAD, Work};
use super::wait::Wait;

/// Stands for the kernel where a warp would be named.
pub(super) const GRID: u8 = u8::MAX;

/// A persist barrier of a CTA or a kernel, as far as one CTA is concerned.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Arrival {
    /// Warp slots that wait.
    waiting: u64,
    /// A marker follows.
    marks: bool,
    /// The command processor knows that the whole CTA is there.
    told: bool,
    /// When the first came.
    since: Time,
}

impl Arrival {
    /// How many warps have come.
    pub(super) fn count(&self) -> u32 {
        self.waiting.count_ones()
    }

    /// A warp waits at it.
    pub(super) fn holds(&self, warp: usize) -> bool {
        self.waiting >> warp & 1 == 1
    }
}

fn place(scope: PersistScope) -> usize {
    usize::from(scope == PersistScope::Kernel)
}

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
        let cta = usize::from(self.core.slots[warp].cta);
        let at = if scope == PersistScope::Cta { FenceKind::BarrierCta } else { FenceKind::BarrierKernel };
        self.record.barrier_begins(cta, &self.core.ctas[cta], scope, at.name(), cycle);
        let arrival = &mut self.core.ctas[cta].arrivals[place(scope)];
        if arrival.waiting == 0 {
            arrival.since = self.w.clock.cycles(u64::from(cycle));
        }
        arrival.waiting |= 1 << warp;
        arrival.marks = marks;
        self.core.enter(warp, Wait::Barrier, cycle);
        self.check_arrivals(cta, cycle, launch, cx);
    }

    /// Goes on with a CTA's persist barriers that all its warps have come to.
    pub(super) fn check_arrivals(&mut self, cta: usize, cycle: u32, launch: &Launch, cx: &mut Ctx<'_, Msg>) {
        for scope in [PersistScope::Cta, PersistScope::Kernel] {
            let live = self.core.ctas[cta].live;
            let arrival = &mut self.core.ctas[cta].arrivals[place(scope)];
            if arrival.waiting == 0 || arrival.waiting & live != live || arrival.told {
                continue;
            }
            arrival.told = true;
            let (marks, since) = (arrival.marks, arrival.since);
            let first = arrival.waiting.trailing_zeros() as usize;
            match (scope, marks) {
                (PersistScope::Kernel, marks) => {
                    let step = GridStep::Reached { sm: self.w.index, marks, since };
                    cx.send(self.dispatch_port(), Msg::Grid(step), 0);
                }
                (_, true) => {
                    self.mark(first, scope);
                    self.wait_grouped(cta, scope, Some(first), cycle);
                }
                (_, false) => self.open_arrival(cta, scope, cycle, launch),
            }
        }
    }

    /// The warps of a CTA wait for durability from now on, together; one of them may have issued the marker.
    fn wait_grouped(&mut self, cta: usize, scope: PersistScope, marker: Option<usize>, cycle: u32) {
        let mut waiting = self.core.ctas[cta].arrivals[place(scope)].waiting;
        while waiting != 0 {
            let warp = waiting.trailing_zeros() as usize;
            waiting &= waiting - 1;
            let wait = if marker == Some(warp) { Wait::Marker(scope) } else { Wait::Peers(scope) };
            self.core.enter(warp, wait, cycle);
        }
    }

    /// All have come, and what they stored is durable where the scheme cares: a CTA's warps go on.
    fn open_arrival(&mut self, cta: usize, scope: PersistScope, cycle: u32, launch: &Launch) {
        self.record.barrier_ends(cta, scope, cycle);
        let arrival = std::mem::take(&mut self.core.ctas[cta].arrivals[place(scope)]);
        let warps = |mut waiting: u64| {
            std::iter::from_fn(move || {
                let warp = waiting.trailing_zeros() as usize;
                waiting &= waiting.wrapping_sub(1);
                (warp < 64).then_some(warp)
            })
        };
        let fenced = warps(arrival.waiting).map(|warp| self.core.slots[warp].order.fenced).max().unwrap_or_default();
        for warp in warps(arrival.waiting) {
            self.record.note(&self.core.slots[warp], FactKind::BarrierPassed, 0);
            if arrival.marks {
                self.record.note(&self.core.slots[warp], FactKind::PersistPassed(scope), 0);
                self.record.count_barrier(&self.core.slots[warp], scope, cycle);
            }
            self.record.stall_ends(warp, cycle);
            let slot = &mut self.core.slots[warp];
            slot.order.fenced = slot.order.fenced.max(fenced);
            slot.not_before = slot.not_before.max(cycle + self.core.latency[Class::Control as usize]);
            self.core.settle(warp, cycle, launch);
        }
    }

    /// Appends a marker behind all that the SM has issued.
    fn mark(&mut self, warp: usize, scope: PersistScope) {
        let entry = self.marker_entry(warp as u8, Marker { scope, by: (warp as u8, self.core.slots[warp].cta) });
        self.enqueue(warp, NO_LOAD, entry);
    }

    fn marker_entry(&mut self, warp: u8, marker: Marker) -> Box<super::lsu::Entry> {
        let mut entry = self.lsu.entry(warp, Work::Mark, NO_LOAD);
        entry.kind = RequestKind::Marker;
        entry.marker = Some(marker);
        entry.issued = self.record.now;
        for slice in 0..self.w.ports.map().slices() {
            entry.accesses.push(LineAccess { line: self.w.ports.map().some_line_of(slice), sectors: 0, lanes: 0 });
            entry.payloads.push(Payload::None);
        }
        self.record.counters.pm_markers += 1;
        entry
    }

    /// A marker is at the head of the load-store unit: what its handler names leaves the L1 before it.
    pub(super) fn drain(&mut self) {
        let Some(head) = self.lsu.queue.front_mut() else { unreachable!("there is a head") };
        head.work = Work::Send;
        let Some(marker) = head.marker.take() else { unreachable!("a marker's entry") };
        self.host.tell(&Event::Marker(&marker));
        let lines = std::mem::take(self.host.outbox.cleans());
        if self.l1.combines() {
            lines.into_iter().for_each(|line| self.leaving.cleaning.ask(line));
        }
    }

    /// Every slice has acknowledged a marker of a warp or of its CTA.
    pub(super) fn marker_passed(&mut self, warp: usize, scope: PersistScope, cycle: u32, launch: &Launch) {
        if scope == PersistScope::Thread {
            self.record.note(&self.core.slots[warp], FactKind::PersistPassed(scope), 0);
            self.record.count_barrier(&self.core.slots[warp], scope, cycle);
            self.record.stall_ends(warp, cycle);
            self.core.settle(warp, cycle, launch);
        } else {
            self.open_arrival(usize::from(self.core.slots[warp].cta), scope, cycle, launch);
        }
    }

    /// The command processor speaks of a kernel's persist barrier.
    pub(super) fn grid(&mut self, step: GridStep, cycle: u32, launch: &Launch) {
        let ctas =
            |sm: &Sm| (0..sm.core.ctas.len()).filter(|&cta| sm.core.ctas[cta].arrivals[1].told).collect::<Vec<_>>();
        match step {
            GridStep::Drain => {
                for cta in ctas(self) {
                    self.wait_grouped(cta, PersistScope::Kernel, None, cycle);
                }
                let entry = self.marker_entry(GRID, Marker { scope: PersistScope::Kernel, by: (0, 0) });
                self.host.grid_left = self.w.ports.map().slices();
                self.record.counters.persists += u64::from(self.host.grid_left);
                self.lsu.queue.push_back(entry);
            }
            GridStep::Open => {
                // What other SMs wrote before must be seen from here on.
                if self.p.l1.fence_invalidates {
                    self.l1.invalidate_all();
                }
                if let Some(books) = &self.leaving.order {
                    self.host.tell(&Event::KernelBarrier(books.issued()));
                }
                for cta in ctas(self) {
                    self.open_arrival(cta, PersistScope::Kernel, cycle, launch);
                }
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
}
