//! CTAs and barriers in the core of an SM: start, arrival, opening, exit; and registers that warps of a CTA
//! pass on, which others wait for as at a barrier.
//!
//! Barriers count warps; a warp that has exited is not waited for (CUDA: "exited threads do not
//! participate"). Arrival at a persist barrier of a CTA or of the kernel is the same under every scheme; what
//! follows when the last warp of the CTA has come is given back to the SM as an [`AllArrived`].
//!
//! Invariant: a warp waits at one barrier at a time.

use crate::remote::ClusterCta;
use durawarp_engine::Time;
use durawarp_kernel::fault::{FaultKind, ProgramFault};
use durawarp_kernel::ir::{Barrier, Class, Op, RegisterStep};
use durawarp_kernel::launch::Launch;
use durawarp_kernel::traced::TraceFault;
use durawarp_persist::handler::SmEvent;
use durawarp_persist::journal::FactKind;
use durawarp_persist::vocab::{FenceKind, PersistScope};

use super::core::IssueCore;
use super::cta::{BarrierState, CtaSlot};
use super::group::ProductQueue;
use super::handler_host::SmHost;
use super::launches::LaunchTable;
use super::record::Record;
use super::registers::Taken;
use super::slots::{Fault, FenceOrder, UnderWay};
use super::wait::Wait;

/// What follows when every warp of a CTA has come to a persist barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AllArrived {
    /// A warp issues the marker of its CTA.
    Marks(usize),
    /// The command processor hears of it; a marker follows when the whole kernel has come, if it `marks`.
    AtKernel {
        /// A marker follows.
        marks: bool,
        /// When the first warp came.
        since: Time,
    },
}

/// Warp slots of a mask, in order.
fn warps_of(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let warp = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (warp < 64).then_some(warp)
    })
}

impl IssueCore {
    /// No CTA is resident.
    pub(super) fn is_free(&self) -> bool {
        self.ctas.iter().all(CtaSlot::is_free)
    }

    /// The slot of a CTA of a cluster that has not ended.
    pub(super) fn find_cta(&self, of: ClusterCta, record: &Record) -> Option<usize> {
        let is = |slot: &CtaSlot| slot.left > 0 && slot.cta == of.cta && record.launch(slot.launch) == of.launch;
        self.ctas.iter().position(is)
    }

    /// Puts a CTA's warps into free slots; they may issue from `cycle` on. The slot of the CTA.
    ///
    /// # Errors
    /// Its trace is not to be had.
    ///
    /// # Panics
    /// When there is no room for it.
    pub(super) fn start_cta(
        &mut self,
        cta: u64,
        cycle: u32,
        (place, launch): (u8, &Launch),
        host: &mut SmHost,
    ) -> Result<usize, TraceFault> {
        let Some(index) = self.ctas.iter().position(CtaSlot::is_free) else {
            panic!("CTA {cta} sent to a full SM");
        };
        let warps = launch.warps_per_cta(self.warp_size);
        // The trace comes first: without it nothing of the CTA is there.
        let traced = launch.traced.as_ref().map(|traced| traced.warps(cta)).transpose()?;
        let mut traced = traced.into_iter().flatten();
        let watched = if host.wants.shared_memory { launch.shared_bytes } else { 0 };
        self.ctas[index].begin((place, cta), warps, launch.shared_bytes, watched);
        self.tensor.begin(index);
        let mut free = 0;
        for warp in 0..warps {
            while self.slots[free].wait != Wait::NoWarp {
                free += 1;
            }
            self.place_warp(free, index, warp, launch);
            if let Some(trace) = traced.next() {
                self.slots[free].warp.follow(trace);
            }
            if host.wants.front_end {
                host.tell(&SmEvent::WarpStarts { warp: free as u8, cta: index as u8 });
            }
            self.settle(free, cycle, launch);
        }
        Ok(index)
    }

    fn place_warp(&mut self, at: usize, cta: usize, warp: u32, launch: &Launch) {
        let slot = &mut self.slots[at];
        slot.warp.start(launch, self.ctas[cta].cta, warp, self.warp_size);
        slot.ready_at.clear();
        slot.ready_at.resize(launch.kernel.scoreboard_entries(), 0);
        slot.cta = cta as u8;
        slot.launch = self.ctas[cta].launch;
        slot.not_before = 0;
        self.products[at] = ProductQueue::default();
        slot.under_way = UnderWay::default();
        slot.order = FenceOrder::default();
        self.ctas[cta].live |= 1 << at;
        self.ctas[cta].registers.admit(at as u8, launch.registers_per_thread as u16);
        let scheduler = usize::from(self.slots[at].scheduler);
        let slots = &mut self.slots;
        let rank = self.schedulers[scheduler].admit(at as u8, |slot, rank| slots[usize::from(slot)].rank = rank);
        self.slots[at].rank = rank;
    }

    /// A warp arrives at the barrier instruction at its pc in `cycle`, with `lanes`; it waits, or the barrier
    /// opens.
    pub(super) fn arrive(
        &mut self,
        warp: usize,
        barrier: Barrier,
        lanes: u64,
        cycle: u32,
        launch: &Launch,
        record: &mut Record,
    ) {
        let slot = &mut self.slots[warp];
        record.note(slot, FactKind::BarrierReached, 0);
        let cta = usize::from(slot.cta);
        let inst = &launch.kernel.code[slot.warp.pc() as usize];
        let state = &mut self.ctas[cta].barriers[usize::from(barrier.id)];
        state.arrivals += 1;
        state.arrived |= 1 << warp;
        state.fenced = state.fenced.max(slot.order.fenced);
        state.expected = u32::from(barrier.threads);
        state.votes += slot.warp.barrier_votes(inst, lanes);
        state.voters += lanes.count_ones();
        // Arrivals that wait and arrivals that do not (`bar.arrive`) count alike. The barrier opens after the
        // warp's own state is set: the warp may be the last, and is woken then as the others are.
        if barrier.wait {
            state.waiting |= 1 << warp;
            self.enter(warp, Wait::Barrier, cycle);
        } else {
            slot.warp.advance();
            self.settle(warp, cycle + 1, launch);
        }
        self.open_barriers(cta, cycle, launch, record);
    }

    /// Opens every barrier of a CTA that has all it waits for; its warps go on a control latency later.
    fn open_barriers(&mut self, cta: usize, cycle: u32, launch: &Launch, record: &mut Record) {
        let barriers = self.ctas[cta].barriers.iter().enumerate();
        let mut awaited = barriers.fold(0u16, |set, (id, barrier)| set | u16::from(barrier.arrivals > 0) << id);
        while awaited != 0 {
            let id = awaited.trailing_zeros() as usize;
            awaited &= awaited - 1;
            let barrier = self.ctas[cta].barriers[id];
            if !barrier.is_complete(self.ctas[cta].live, self.warp_size) {
                continue;
            }
            self.ctas[cta].barriers[id] = BarrierState::default();
            self.note_storing(cta, barrier.arrived);
            for warp in warps_of(barrier.waiting) {
                record.note(&self.slots[warp], FactKind::BarrierPassed, 0);
                self.pass_barrier(warp, barrier, cycle, launch);
            }
        }
    }

    /// A barrier of a CTA opens, to which these warps came: what they stored is before all that follows it.
    fn note_storing(&mut self, cta: usize, arrived: u64) {
        for warp in warps_of(arrived) {
            let under_way = &mut self.slots[warp].under_way;
            under_way.before_barrier = under_way.stores > 0;
            self.ctas[cta].storing |= u64::from(under_way.before_barrier) << warp;
        }
    }

    /// A store of a warp is performed; true when fences of other warps of its CTA may have waited for it.
    #[inline]
    pub(super) fn store_performed(&mut self, warp: usize) -> bool {
        let slot = &mut self.slots[warp];
        slot.under_way.stores -= 1;
        if slot.under_way.stores > 0 || !slot.under_way.before_barrier {
            return false;
        }
        slot.under_way.before_barrier = false;
        let storing = &mut self.ctas[usize::from(slot.cta)].storing;
        *storing &= !(1 << warp);
        *storing == 0
    }

    /// A fence of a warp has nothing to wait for: what the warp has accessed is performed, and so is what
    /// others stored before a barrier of their CTA (PTX ISA, "Causality order": a fence is cumulative).
    #[inline]
    pub(super) fn is_performed(&self, warp: usize) -> bool {
        let slot = &self.slots[warp];
        slot.under_way.is_performed() && self.ctas[usize::from(slot.cta)].storing == 0
    }

    fn pass_barrier(&mut self, warp: usize, opened: BarrierState, cycle: u32, launch: &Launch) {
        let slot = &mut self.slots[warp];
        slot.order.fenced = slot.order.fenced.max(opened.fenced).max(self.ctas[usize::from(slot.cta)].fenced);
        let pc = slot.warp.pc() as usize;
        let inst = &launch.kernel.code[pc];
        if let Op::Barrier(barrier) = inst.op {
            let lanes = slot.warp.guarded(inst);
            slot.warp.write_barrier(inst, barrier, lanes, opened.votes, opened.voters);
        }
        let earliest = cycle + self.latency[Class::Control as usize];
        slot.not_before = slot.not_before.max(earliest);
        slot.warp.advance();
        self.write_from(warp, pc, earliest, launch);
        self.settle(warp, cycle, launch);
    }

    /// A warp's last lane has exited in `cycle`: its CTA, whose barriers wait for it no more.
    pub(super) fn exit(&mut self, warp: usize, cycle: u32) -> usize {
        let slot = &self.slots[warp];
        let index = usize::from(slot.cta);
        let cta = &mut self.ctas[index];
        cta.live &= !(1 << warp);
        cta.fenced = cta.fenced.max(slot.order.fenced);
        self.enter(warp, Wait::Drained, cycle);
        self.register_reads.forget(warp as u8);
        index
    }

    /// Opens the barriers of a CTA that waited only for a warp that has exited.
    pub(super) fn open_without(
        &mut self,
        cta: usize,
        cycle: u32,
        launch: &Launch,
        record: &mut Record,
    ) -> Option<AllArrived> {
        if self.ctas[cta].live == 0 {
            return None;
        }
        self.open_barriers(cta, cycle, launch, record);
        self.check_arrivals(cta, cycle, launch, record)
    }

    /// Frees the slot of an exited warp: its CTA, where that was the last warp of it.
    pub(super) fn retire(&mut self, warp: usize, cycle: u32) -> Option<usize> {
        let slot = &self.slots[warp];
        let (cta, rank) = (usize::from(slot.cta), slot.rank);
        self.schedulers[usize::from(slot.scheduler)].release(rank);
        self.enter(warp, Wait::NoWarp, cycle);
        self.ctas[cta].left -= 1;
        (self.ctas[cta].left == 0).then_some(cta)
    }

    /// A warp comes to a persist barrier of its CTA or kernel.
    pub(super) fn arrive_persist(
        &mut self,
        warp: usize,
        scope: PersistScope,
        marks: bool,
        cycle: u32,
        launch: &Launch,
        record: &mut Record,
    ) -> Option<AllArrived> {
        let cta = usize::from(self.slots[warp].cta);
        let at = if scope == PersistScope::Cta { FenceKind::BarrierCta } else { FenceKind::BarrierKernel };
        record.barrier_begins(cta, &self.ctas[cta], scope, at.name(), cycle);
        let arrival = self.ctas[cta].arrival(scope);
        if arrival.waiting == 0 {
            arrival.since = record.time_of(cycle);
        }
        arrival.waiting |= 1 << warp;
        arrival.marks = marks;
        self.enter(warp, Wait::Barrier, cycle);
        self.check_arrivals(cta, cycle, launch, record)
    }

    /// Goes on with the persist barrier of a CTA that all its warps have come to.
    fn check_arrivals(&mut self, cta: usize, cycle: u32, launch: &Launch, record: &mut Record) -> Option<AllArrived> {
        for scope in [PersistScope::Cta, PersistScope::Kernel] {
            let live = self.ctas[cta].live;
            let arrival = self.ctas[cta].arrival(scope);
            if arrival.waiting == 0 || arrival.waiting & live != live || arrival.told {
                continue;
            }
            arrival.told = true;
            let (marks, since) = (arrival.marks, arrival.since);
            if scope == PersistScope::Kernel {
                return Some(AllArrived::AtKernel { marks, since });
            } else if marks {
                let first = arrival.waiting.trailing_zeros() as usize;
                self.wait_grouped(cta, scope, Some(first), cycle);
                return Some(AllArrived::Marks(first));
            }
            self.open_arrival(cta, scope, cycle, launch, record);
        }
        None
    }

    /// The warps of a CTA wait for durability from now on, together; one of them may issue the marker.
    fn wait_grouped(&mut self, cta: usize, scope: PersistScope, marker: Option<usize>, cycle: u32) {
        for warp in warps_of(self.ctas[cta].arrival(scope).waiting) {
            let wait = if marker == Some(warp) { Wait::Marker(scope) } else { Wait::Peers(scope) };
            self.enter(warp, wait, cycle);
        }
    }

    /// All have come, and what they stored is durable where the scheme cares: a CTA's warps go on.
    fn open_arrival(&mut self, cta: usize, scope: PersistScope, cycle: u32, launch: &Launch, record: &mut Record) {
        record.barrier_ends(cta, scope, cycle);
        let arrival = std::mem::take(self.ctas[cta].arrival(scope));
        self.note_storing(cta, arrival.waiting);
        let fenced = warps_of(arrival.waiting).map(|warp| self.slots[warp].order.fenced).max().unwrap_or_default();
        for warp in warps_of(arrival.waiting) {
            record.note(&self.slots[warp], FactKind::BarrierPassed, 0);
            if arrival.marks {
                record.note(&self.slots[warp], FactKind::PersistPassed(scope), 0);
                record.count_barrier(&self.slots[warp], scope, cycle);
            }
            record.stall_ends(warp, cycle);
            let slot = &mut self.slots[warp];
            slot.order.fenced = slot.order.fenced.max(fenced);
            slot.not_before = slot.not_before.max(cycle + self.latency[Class::Control as usize]);
            self.settle(warp, cycle, launch);
        }
    }

    /// Every slice has acknowledged a marker of a warp or of its CTA.
    pub(super) fn pass_marker(
        &mut self,
        warp: usize,
        scope: PersistScope,
        cycle: u32,
        launch: &Launch,
        record: &mut Record,
    ) {
        if scope == PersistScope::Thread {
            record.note(&self.slots[warp], FactKind::PersistPassed(scope), 0);
            record.count_barrier(&self.slots[warp], scope, cycle);
            record.stall_ends(warp, cycle);
            self.settle(warp, cycle, launch);
        } else {
            self.open_arrival(usize::from(self.slots[warp].cta), scope, cycle, launch, record);
        }
    }

    /// The kernel's marker is on its way: every CTA that has come to the barrier of the kernel waits for it.
    pub(super) fn await_kernel(&mut self, cycle: u32) {
        for cta in 0..self.ctas.len() {
            if self.ctas[cta].arrival(PersistScope::Kernel).told {
                self.wait_grouped(cta, PersistScope::Kernel, None, cycle);
            }
        }
    }

    /// The barrier of the kernel opens.
    pub(super) fn open_kernel(&mut self, cycle: u32, launches: &LaunchTable, record: &mut Record) {
        for cta in 0..self.ctas.len() {
            if self.ctas[cta].arrival(PersistScope::Kernel).told {
                let launch = launches.at(self.ctas[cta].launch);
                self.open_arrival(cta, PersistScope::Kernel, cycle, launch, record);
            }
        }
    }

    /// A warp issues `setmaxnreg`. False when it waits, after the instruction, for registers that others have
    /// yet to release.
    ///
    /// # Errors
    /// What the ISA leaves undefined.
    pub(super) fn move_registers(
        &mut self,
        warp: usize,
        (step, lanes): (RegisterStep, u64),
        cycle: u32,
        launch: &Launch,
    ) -> Result<bool, Fault> {
        let slot = &mut self.slots[warp];
        let pc = slot.warp.pc();
        slot.warp.check_whole(launch, lanes, "setmaxnreg")?;
        slot.warp.advance();
        if lanes == 0 {
            return Ok(true);
        }
        let taken = self.ctas[usize::from(slot.cta)].registers.step(warp as u8, step).map_err(|what| {
            let lane = slot.warp.live().trailing_zeros();
            Box::new(ProgramFault::new(FaultKind::Unsupported(what), launch, &slot.warp, pc, lane))
        })?;
        let Taken::Passes(others) = taken else {
            self.enter(warp, Wait::Registers, cycle + 1);
            return Ok(false);
        };
        // As at a barrier that opens: a control latency later.
        for other in others.into_iter().map(usize::from) {
            let earliest = cycle + self.latency[Class::Control as usize];
            let slot = &mut self.slots[other];
            slot.not_before = slot.not_before.max(earliest);
            self.settle(other, cycle, launch);
        }
        Ok(true)
    }
}
