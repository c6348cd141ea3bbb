//! CTAs of an SM: start, barriers, end; and what their warps wait for when nothing moves any more.
//!
//! Barriers count warps; a warp that has exited is not waited for (CUDA: "exited threads do not participate").

use std::sync::Arc;

use crate::engine::{self, Ctx, Time};
use crate::kernel::ir::{Barrier, Class, Op};
use crate::kernel::launch::Launch;
use crate::kernel::memory::CHECKPOINT_AREA;
use crate::machine::kernel_facts::kernel_facts;
use crate::machine::msg::Msg;
use crate::machine::shared_memory::Writers;
use crate::persist::handler::Event;
use crate::persist::journal::FactKind;
use crate::persist::vocab::Boundary;

use super::Sm;
use super::marker::Arrival;
use super::slots::{FenceOrder, UnderWay};
use super::wait::Wait;

/// One of a CTA's 16 barriers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BarrierState {
    /// Arrivals of warps since it last opened.
    arrivals: u32,
    /// Warp slots that have arrived.
    arrived: u64,
    /// Warp slots that wait.
    waiting: u64,
    /// Threads expected; 0 = all that have not exited.
    expected: u32,
    /// For `bar.red`: lanes whose predicate holds, and lanes that took part.
    votes: u32,
    voters: u32,
    /// What its warps know of fences that did not wait: who passes it knows the same.
    fenced: u64,
}

/// A resident CTA, or room for one.
#[derive(Debug, Default)]
pub(super) struct CtaSlot {
    pub(super) cta: u64,
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
    /// What warps that wrote its shared memory, or exited, knew of fences that did not wait: who reads it, or passes a
    /// barrier that did not wait for them, knows the same.
    pub(super) fenced: u64,
    barriers: [BarrierState; 16],
    /// Persist barriers of the CTA and of the kernel.
    pub(super) arrivals: [Arrival; 2],
    /// The cleaning that its end waits for; 0 for none.
    pub(super) releasing: u64,
    /// What its scheme wants at its end.
    pub(super) boundary: Boundary,
}

impl CtaSlot {
    fn is_free(&self) -> bool {
        self.left == 0 && self.flushing == 0 && self.releasing == 0
    }
}

impl Sm {
    /// A launch begins: its CTAs follow. The L1 forgets the previous one's lines.
    pub(super) fn start(&mut self, launch: Arc<Launch>) {
        assert!(self.core.ctas.iter().all(CtaSlot::is_free), "a launch begins while CTAs of another are resident");
        self.l1.begin_launch();
        if self.host.wants.accesses {
            let facts = kernel_facts(&launch, self.record.launches, self.p.sm.warp_size);
            self.host.tell(&Event::KernelStarts(&facts));
        }
        self.front_end.checkpoint_area = launch.addresses.extent_of(CHECKPOINT_AREA).unwrap_or_default();
        self.record.by_kernel.begin(&launch.kernel.name, self.counters());
        self.launch = Some(launch);
        self.record.launches += 1;
    }

    /// Puts a CTA's warps into free slots; they may issue from `cycle` on.
    pub(super) fn start_cta(&mut self, cta: u64, cycle: u32) {
        let Some(launch) = self.launch.take() else { unreachable!("a CTA without a launch") };
        let Some(index) = self.core.ctas.iter().position(CtaSlot::is_free) else {
            panic!("CTA {cta} sent to a full SM");
        };
        let warps = launch.warps_per_cta(self.p.sm.warp_size);
        let slot = &mut self.core.ctas[index];
        slot.cta = cta;
        slot.live = 0;
        slot.left = warps;
        slot.fenced = 0;
        slot.shared.clear();
        slot.shared.resize(launch.shared_bytes as usize, 0);
        slot.writers.begin(if self.host.wants.shared_memory { launch.shared_bytes } else { 0 });
        slot.barriers = [BarrierState::default(); 16];
        slot.arrivals = [Arrival::default(); 2];
        let mut free = 0;
        for warp in 0..warps {
            while self.core.slots[free].wait != Wait::NoWarp {
                free += 1;
            }
            self.start_warp(free, index, cta, warp, cycle, &launch);
        }
        self.launch = Some(launch);
        self.record.cta_begins(index, &self.core.ctas[index]);
    }

    fn start_warp(&mut self, at: usize, cta_slot: usize, cta: u64, warp: u32, cycle: u32, launch: &Launch) {
        let slot = &mut self.core.slots[at];
        slot.warp.start(launch, cta, warp, self.p.sm.warp_size);
        slot.ready_at.clear();
        slot.ready_at.resize(launch.kernel.scoreboard_entries(), 0);
        slot.cta = cta_slot as u8;
        slot.not_before = 0;
        slot.under_way = UnderWay::default();
        slot.order = FenceOrder::default();
        self.core.ctas[cta_slot].live |= 1 << at;
        let scheduler = usize::from(self.core.slots[at].scheduler);
        let slots = &mut self.core.slots;
        let rank = self.core.schedulers[scheduler].admit(at as u8, |slot, rank| slots[usize::from(slot)].rank = rank);
        self.core.slots[at].rank = rank;
        if self.host.wants.front_end {
            self.host.tell(&Event::WarpStarts { warp: at as u8, cta: cta_slot as u8 });
        }
        self.core.settle(at, cycle, launch);
    }

    /// A warp arrives at the barrier instruction at its pc in `cycle`, with `lanes`; it waits, or the barrier opens.
    pub(super) fn arrive(&mut self, warp: usize, barrier: Barrier, lanes: u64, cycle: u32, launch: &Launch) {
        self.record.note(&self.core.slots[warp], FactKind::BarrierReached, 0);
        let cta = usize::from(self.core.slots[warp].cta);
        let inst = &launch.kernel.code[self.core.slots[warp].warp.pc() as usize];
        let state = &mut self.core.ctas[cta].barriers[usize::from(barrier.id)];
        state.arrivals += 1;
        state.arrived |= 1 << warp;
        state.fenced = state.fenced.max(self.core.slots[warp].order.fenced);
        state.expected = u32::from(barrier.threads);
        state.votes += self.core.slots[warp].warp.barrier_votes(inst, lanes);
        state.voters += lanes.count_ones();
        if barrier.wait {
            state.waiting |= 1 << warp;
            self.core.enter(warp, Wait::Barrier, cycle);
        } else {
            self.core.slots[warp].warp.advance();
            self.core.settle(warp, cycle + 1, launch);
        }
        self.open_barriers(cta, cycle, launch);
    }

    /// Opens every barrier of a CTA that has all it waits for; its warps go on a control latency later.
    fn open_barriers(&mut self, cta: usize, cycle: u32, launch: &Launch) {
        for id in 0..16 {
            let barrier = self.core.ctas[cta].barriers[id];
            if barrier.arrivals == 0 {
                continue;
            }
            let live = self.core.ctas[cta].live;
            let complete = match barrier.expected {
                0 => barrier.arrived & live == live,
                threads => barrier.arrivals * self.p.sm.warp_size >= threads,
            };
            if !complete {
                continue;
            }
            self.core.ctas[cta].barriers[id] = BarrierState::default();
            let mut waiting = barrier.waiting;
            while waiting != 0 {
                let warp = waiting.trailing_zeros() as usize;
                waiting &= waiting - 1;
                self.pass_barrier(warp, barrier, cycle, launch);
            }
        }
    }

    fn pass_barrier(&mut self, warp: usize, opened: BarrierState, cycle: u32, launch: &Launch) {
        self.record.note(&self.core.slots[warp], FactKind::BarrierPassed, 0);
        let slot = &mut self.core.slots[warp];
        slot.order.fenced = slot.order.fenced.max(opened.fenced).max(self.core.ctas[usize::from(slot.cta)].fenced);
        let pc = slot.warp.pc() as usize;
        let inst = &launch.kernel.code[pc];
        if let Op::Barrier(barrier) = inst.op {
            let lanes = slot.warp.guarded(inst);
            slot.warp.write_barrier(inst, barrier, lanes, opened.votes, opened.voters);
        }
        let earliest = cycle + self.core.latency[Class::Control as usize];
        slot.not_before = slot.not_before.max(earliest);
        slot.warp.advance();
        self.core.write_from(warp, pc, earliest, launch);
        self.core.settle(warp, cycle, launch);
    }

    /// A warp's last lane has exited in `cycle`.
    pub(super) fn warp_exited(&mut self, warp: usize, cycle: u32, launch: &Launch, cx: &mut Ctx<'_, Msg>) {
        let cta = usize::from(self.core.slots[warp].cta);
        self.core.ctas[cta].live &= !(1 << warp);
        self.core.ctas[cta].fenced = self.core.ctas[cta].fenced.max(self.core.slots[warp].order.fenced);
        self.core.enter(warp, Wait::Drained, cycle);
        self.retire_if_drained(warp, cycle, cx);
        if self.core.ctas[cta].live != 0 {
            self.open_barriers(cta, cycle, launch);
            self.check_arrivals(cta, cycle, launch, cx);
        }
    }

    /// Frees an exited warp's slot when its last load and store are done; the last warp ends the CTA.
    pub(super) fn retire_if_drained(&mut self, warp: usize, cycle: u32, cx: &mut Ctx<'_, Msg>) {
        let slot = &self.core.slots[warp];
        if slot.wait != Wait::Drained
            || slot.under_way.loads > 0
            || slot.under_way.stores > 0
            || slot.under_way.persists > 0
        {
            return;
        }
        if self.front_end.present && !self.is_copied(warp) {
            self.front_end.draining |= 1 << warp;
            return;
        }
        let slot = &self.core.slots[warp];
        let (cta, rank) = (usize::from(slot.cta), slot.rank);
        let scheduler = usize::from(slot.scheduler);
        self.core.schedulers[scheduler].release(rank);
        self.core.enter(warp, Wait::NoWarp, cycle);
        self.core.ctas[cta].left -= 1;
        if self.core.ctas[cta].left == 0 {
            self.end_cta(cta, cx);
        }
    }

    /// What every resident warp, and the load-store unit, waits for.
    pub(super) fn report_waits(&self, out: &mut Vec<engine::Wait>) {
        let Some(launch) = &self.launch else { return };
        let kernel = &launch.kernel;
        for (index, slot) in self.core.slots.iter().enumerate().filter(|(_, s)| s.wait != Wait::NoWarp) {
            let pc = slot.warp.pc() as usize;
            let pos = kernel.pos.get(pc).copied().unwrap_or_default();
            let what = match slot.wait {
                Wait::NoWarp => continue,
                Wait::Issue => match kernel.code.get(pc).map(|i| i.op) {
                    Some(Op::Mem(_)) => "room in the load-store unit".to_owned(),
                    _ => "its unit".to_owned(),
                },
                Wait::Latency => "a result of fixed latency".to_owned(),
                Wait::Register => "memory data for its next instruction's registers".to_owned(),
                Wait::Barrier => self.describe_barrier(index),
                Wait::Performed { cleaning: 0, .. } => {
                    format!("{} stores and {} loads to be performed", slot.under_way.stores, slot.under_way.loads)
                }
                Wait::Performed { .. } => "what the L1 has combined to be performed".to_owned(),
                Wait::Durable { ordered, .. } => format!("{} persists to be durable", slot.under_way.awaited(ordered)),
                Wait::Marker(_) => format!("{} persists to be durable", slot.under_way.persists),
                Wait::Peers(_) => "a marker of its CTA or kernel".to_owned(),
                Wait::FrontEnd if slot.under_way.copying > 0 => {
                    format!("{} line accesses of its atomics, before its region ends", slot.under_way.copying)
                }
                Wait::FrontEnd => "the front-end buffer: room, a region's ID, or its atomic's turn".to_owned(),
                Wait::Drained => {
                    let (stores, loads, persists) =
                        (slot.under_way.stores, slot.under_way.loads, slot.under_way.persists);
                    format!("{stores} stores, {loads} loads and {persists} persists after its exit")
                }
            };
            out.push(engine::Wait {
                who: format!(
                    "warp {index} of CTA {} at {}:{}:{}",
                    self.core.ctas[usize::from(slot.cta)].cta,
                    kernel.file,
                    pos.line,
                    pos.column
                ),
                what,
                on: None,
                since: self.w.clock.cycles(u64::from(slot.since)),
            });
        }
        for (who, what) in self.host.report().waits {
            out.push(engine::Wait { who, what, on: None, since: 0 });
        }
        if let Some((dirty, left, stores)) = self.leaving.order.as_ref().and_then(|books| books.waiting()) {
            out.push(engine::Wait {
                who: format!("L1, {dirty} lines that leave in order"),
                what: format!("{left} of them on their way, with {stores} stores, to be durable"),
                on: None,
                since: 0,
            });
        }
        if let Some((requests, line)) = self.port.network.waiting() {
            out.push(engine::Wait {
                who: format!("miss queue, {requests} requests"),
                what: format!("a credit or the injection port, for line {line:#x}"),
                on: None,
                since: 0,
            });
        }
    }

    fn describe_barrier(&self, warp: usize) -> String {
        let cta = &self.core.ctas[usize::from(self.core.slots[warp].cta)];
        let mut arrivals = cta.arrivals.iter().zip(["wg", "kr"]);
        if let Some((arrival, name)) = arrivals.find(|(arrival, _)| arrival.holds(warp)) {
            let (count, live) = (arrival.count(), cta.live.count_ones());
            let others = if name == "kr" && count == live { "; other CTAs of the kernel have not" } else { "" };
            return format!("pm.barrier.{name}: {count} of {live} warps have arrived{others}");
        }
        let (id, barrier) = cta.barriers.iter().enumerate().find(|(_, b)| b.waiting >> warp & 1 == 1).unzip();
        let barrier = barrier.copied().unwrap_or_default();
        let expected = match barrier.expected {
            0 => cta.live.count_ones(),
            threads => threads / self.p.sm.warp_size,
        };
        format!("barrier {}: {} of {expected} warps have arrived", id.unwrap_or(0), barrier.arrivals)
    }
}
