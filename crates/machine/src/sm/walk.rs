//! The walk of an instruction, and of a reply, through the parts of an SM.
//!
//! An instruction issues to its unit; a reply writes registers and lets its warp go on: past a fence, a wait
//! for durability, a persist barrier, or to its end and that of its CTA. The parts do the work and own the
//! state; here is their order.
//!
//! ```text
//!   pm.barrier.wi   warp ──────────────────────────────> marker ─> L1: lines that the handler names are cleaned
//!   pm.barrier.wg   all warps of the CTA ──────────────> marker        then one marker to each slice
//!   pm.barrier.kr   all CTAs ─> command processor ─> every SM: marker ─> command processor ─> all go on
//! ```
//! Arrival at a barrier of a CTA or a kernel is part of the instruction, whatever the scheme; what follows is
//! the scheme's: nothing, a wait for the warp's own persists, or a marker ([`FenceRule`]). CTAs that meet at
//! a barrier of the kernel see what the others wrote before it, as behind a fence of scope gpu; the warps of
//! a CTA share an L1.
//!
//! Source: Gope et al. section 6.1. Invariants: a marker reaches a slice behind all that was cleaned before
//! it; nobody goes on before every slice has acknowledged. Not modelled: preemption, by which the paper lets
//! a kernel's CTAs arrive that are not resident: such a barrier is a deadlock here, and reported as one. Over
//! 500 lines: what a warp waits for may lead to any other wait.

use crate::l1::Waiter;
use crate::msg::{CommandProcessorMsg, GridOrder, GridReport, Msg, Payload, Reply, RequestKind, SmMsg};
use crate::remote::{ClusterCta, ClusterWord, PairMessage, RemoteAccess, RemoteKind, RemotePart};
use crate::scheduler::Unit;
use crate::shared_memory::OF_OTHER_CTAS;
use durawarp_engine::Ctx;
use durawarp_kernel::fault::{FaultKind, ProgramFault};
use durawarp_kernel::ir::{Class, ClusterStep, GridStep, GroupStep, Inst, MachineRead, MemKind, Op, Scope, Space};
use durawarp_kernel::launch::Launch;
use durawarp_persist::handler::{LaunchSet, Marker, SmEvent};
use durawarp_persist::journal::FactKind;
use durawarp_persist::vocab::{Boundary, FenceKind, FenceRule, PersistScope};

use super::Sm;
use super::barriers::AllArrived;
use super::bulk::CopyEngine;
use super::bulk_peers::{PartAnswer, perform_part};
use super::cleaning::is_cleaning;
use super::cluster::{ended, perform, tell_shared, write_answer};
use super::combine::Cleaned;
use super::copies::{arrive, write_copy};
use super::cta::CtaSlot;
use super::group::read_factors;
use super::launches::LaunchTable;
use super::lsu::GRID;
use super::memory::issue_memory;
use super::moment::Moment;
use super::persist;
use super::requests::{BULK_SHIFT, Stepped};
use super::seat::Seat;
use super::slots::{Fault, count};
use super::tensor_pair;
use super::tensor_peers::PairScope;
use super::tensor_steps::{TensorIssue, step_tensor};
use super::traced::await_phase;
use super::wait::{Account, AfterFence, Wait};

/// What an SM tells the tensor memory of pairs of itself.
macro_rules! pair_scope {
    ($sm:ident, $launches:expr) => {
        PairScope {
            here: $sm.w.index,
            record: &$sm.record,
            launches: $launches,
            spec: &$sm.p.tensor,
            latency: $sm.p.shared.latency_cycles,
        }
    };
}

/// A cycle of an SM, with the fields that it takes.
macro_rules! moment {
    ($sm:ident, $cycle:expr, $launches:expr) => {
        &mut Moment {
            cycle: $cycle,
            launches: $launches,
            p: &$sm.p,
            w: &$sm.w,
            host: &mut $sm.host,
            record: &mut $sm.record,
        }
    };
}

/// The warp that a request's tag names, and the bulk copy's number and 1, or 0.
#[inline]
fn warp_and_bulk(tag: u32) -> (usize, u16) {
    ((tag & ((1 << BULK_SHIFT) - 1)) as usize, (tag >> BULK_SHIFT) as u16)
}

impl Sm {
    /// Issues the next instruction of a warp that its scheduler has picked, and a second one where the
    /// machine can.
    #[inline(always)]
    pub(super) fn issue(&mut self, warp: usize, cycle: u32, launches: &LaunchTable, cx: &mut Ctx<'_, Msg>) {
        let mut units = 0u8;
        for nth in 1..=self.p.sm.issue_width {
            let slot = &self.core.slots[warp];
            let (class, unit, scheduler) = (slot.next.class, slot.next.unit, usize::from(slot.scheduler));
            units |= 1 << unit as u8;
            self.core.schedulers[scheduler].free_at[unit as usize] = cycle + self.core.interval[class as usize];
            self.core.class_counts[class as usize] += 1;
            let places = unit == Unit::Memory && self.lsu.addresses.is_present();
            if places {
                self.lsu.addresses.issues(scheduler, cycle);
            }
            let late = self.core.read_operands(warp, cycle, launches);
            self.execute(warp, class, late, cycle, launches, cx);
            // All its entries are in the load-store unit: how many places are left decides when the scheduler
            // may issue another one.
            if places {
                let free_at = &mut self.core.schedulers[scheduler].free_at[unit as usize];
                *free_at = self.lsu.addresses.issued(scheduler, cycle, *free_at);
            }
            if nth == self.p.sm.issue_width || !self.can_pair(warp, units, cycle, launches) {
                break;
            }
            let rank = self.core.slots[warp].rank;
            self.core.schedulers[scheduler].unready(rank);
        }
        let slot = &mut self.core.slots[warp];
        self.core.accounts.issued_into(slot.account);
        if slot.account != Account::Empty {
            slot.issued_at = cycle;
        }
    }

    /// A warp that has just issued can issue again in the same cycle, to a unit not in `units`.
    fn can_pair(&mut self, warp: usize, units: u8, cycle: u32, launches: &LaunchTable) -> bool {
        let slot = &self.core.slots[warp];
        let launch = launches.of(slot);
        if slot.wait != Wait::Issue || self.failed {
            return false;
        }
        let unit = slot.next.unit;
        let registers_ready = slot.ready_from(&launch.kernel.hazards[slot.warp.pc() as usize]) <= cycle;
        let free = self.core.schedulers[usize::from(slot.scheduler)].free_at[unit as usize] <= cycle;
        let may =
            units >> unit as u8 & 1 == 0 && registers_ready && free && (unit != Unit::Memory || self.lsu.has_room());
        // One that has to wait for the front-end buffer is set aside when it is picked.
        may && !(self.front_end.present && self.front_end.blocks(warp, launch, true, slot, &mut self.host))
    }

    /// Executes the next instruction of a warp, whose result is `late` by cycles for which its operands wait.
    #[inline(always)]
    fn execute(
        &mut self,
        warp: usize,
        class: Class,
        late: u32,
        cycle: u32,
        launches: &LaunchTable,
        cx: &mut Ctx<'_, Msg>,
    ) {
        let slot = &mut self.core.slots[warp];
        let launch = launches.of(slot);
        let pc = slot.warp.pc() as usize;
        let inst = &launch.kernel.code[pc];
        let latency = self.core.latency[class as usize] + late;
        slot.warp.catch_up(launch);
        let lanes = slot.warp.guarded(inst);
        self.record.counters.thread_instructions += u64::from(count(lanes));
        // Each arm moves the pc itself, and returns early when something other than a register's latency
        // decides when the warp goes on: then `settle` at the end must not set its wait anew.
        match inst.op {
            Op::Alu(_) => {
                slot.warp.alu(inst, launch, lanes);
                slot.warp.advance();
                slot.write_from(&launch.kernel.hazards[pc], cycle + latency);
            }
            Op::Mem(mem) => {
                // As a fence does, an atomic passes on what warps know of fences. That comes before the
                // issue, which orders the atomic after the fences that its warp knows.
                if lanes != 0 && matches!(mem.kind, MemKind::Atomic | MemKind::Reduction) {
                    self.record.note(&self.core.slots[warp], FactKind::Synchronised, 0);
                    if self.memory.leaving.order.is_some() {
                        self.core.share_fences(warp);
                    }
                    if self.host.wants.accesses && matches!(mem.space, Space::Global | Space::Generic) {
                        self.host.tell(&SmEvent::Atomic);
                    }
                }
                // The pc moves only after the issue, which reads the instruction there and names it in a
                // fault.
                let issued = {
                    let (core, lsu, memory, m) =
                        (&mut self.core, &mut self.lsu, &mut self.memory, moment!(self, cycle, launches));
                    issue_memory(warp, lanes, core, lsu, memory, &self.front_end, m)
                };
                if let Err(fault) = issued {
                    self.fail(*fault, cx);
                    return;
                }
                self.core.slots[warp].warp.advance();
                if std::mem::take(&mut self.host.store_waits) {
                    self.wait_durable(warp, false, None, cycle + 1, launch, cx);
                    return;
                }
            }
            Op::Branch { target, reconverge } => {
                // Read before the branch, which changes the active lanes.
                let active = slot.warp.active();
                self.record.counters.divergent_branches += u64::from(lanes != 0 && lanes != active);
                slot.warp.branch(lanes, target, reconverge);
                slot.not_before = cycle + latency;
            }
            Op::Call { .. } | Op::Return => {
                let moved = match inst.op {
                    Op::Call { target } => slot.warp.call(inst, launch, target),
                    _ => slot.warp.ret(inst, launch),
                };
                slot.not_before = cycle + latency;
                if let Err(fault) = moved {
                    self.fail(*fault, cx);
                    return;
                }
                self.core.write_from(warp, pc, cycle + latency, launch);
            }
            Op::Barrier(barrier) => {
                // Without lanes in it the warp does not take part, and passes.
                if lanes != 0 {
                    let barrier = match slot.warp.barrier_at(barrier, inst, launch, lanes) {
                        Ok(barrier) => barrier,
                        Err(fault) => {
                            self.fail(*fault, cx);
                            return;
                        }
                    };
                    self.core.arrive(warp, barrier, lanes, cycle, launch, &mut self.record);
                    return;
                }
                slot.warp.advance();
            }
            Op::Fence(scope) => {
                slot.warp.advance();
                if lanes != 0 {
                    self.record.note(&self.core.slots[warp], FactKind::Synchronised, 0);
                    self.front_end.orders_copies(warp, &mut self.host);
                    if self.memory.leaving.order.is_some() {
                        self.core.share_fences(warp);
                    }
                }
                // A fence of scope cta waits for nothing: the warps of a CTA share this SM's L1.
                if lanes != 0 && scope != Scope::Cta {
                    let durable = persist::fence_persists(scope, &self.w.persist);
                    let then = if durable { AfterFence::Sfence } else { AfterFence::Nothing };
                    self.fence(warp, then, cycle, launch, cx);
                    return;
                }
            }
            Op::Exit => {
                // Only when its last lane has exited is the warp done; others go on at their own pc.
                slot.warp.exit(lanes);
                if slot.warp.is_done() {
                    self.warp_exited(warp, cycle, launch, cx);
                    return;
                }
                slot.not_before = cycle + latency;
                let cta = usize::from(slot.cta);
                self.tell_cluster(cta, cycle, launch, cx);
            }
            Op::Nop => {
                // What a trace names only by its class and its registers.
                slot.warp.advance();
                slot.write_from(&launch.kernel.hazards[pc], cycle + latency);
            }
            Op::Matrix(_) => {
                let multiplied = slot.warp.multiply(inst, launch, lanes);
                slot.warp.advance();
                slot.write_from(&launch.kernel.hazards[pc], cycle + latency);
                if let Err(fault) = multiplied {
                    self.fail(*fault, cx);
                    return;
                }
            }
            Op::Machine(read) => {
                self.read_machine(warp, inst, read, lanes, cycle, cx);
                self.core.write_from(warp, pc, cycle + latency, launch);
                self.core.slots[warp].warp.advance();
            }
            Op::Cluster(_)
            | Op::Grid(_)
            | Op::Trap(_)
            | Op::Pm(_)
            | Op::BulkGroups(_)
            | Op::Bulk(_)
            | Op::Copies(_)
            | Op::Registers(_)
            | Op::WarpGroup(_)
            | Op::AwaitPhase(_)
            | Op::Tensor(_) => {
                if !self.execute_rare(warp, inst, lanes, cycle, launches, cx) {
                    return;
                }
            }
        }
        self.core.settle_now(warp, cycle + 1, launch);
    }

    /// What plain kernels have none of, apart from [`Sm::execute`], which is part of each cycle and stays
    /// small so. False where the warp does not go on in the next cycle.
    #[inline(never)]
    fn execute_rare(
        &mut self,
        warp: usize,
        inst: &Inst,
        lanes: u64,
        cycle: u32,
        launches: &LaunchTable,
        cx: &mut Ctx<'_, Msg>,
    ) -> bool {
        let slot = &mut self.core.slots[warp];
        let launch = launches.of(slot);
        match inst.op {
            Op::Cluster(step) if lanes != 0 => match self.at_cluster(warp, step, lanes, cycle, launch, cx) {
                Ok(true) => {}
                Ok(false) => return false,
                Err(fault) => {
                    self.fail(*fault, cx);
                    return false;
                }
            },
            Op::Cluster(_) => slot.warp.advance(),
            Op::Grid(step) => {
                // The pc moves before the wait: behind it the warp goes on.
                slot.warp.advance();
                if lanes != 0 && self.at_grid(warp, step, cx) {
                    self.core.enter(warp, Wait::Prerequisites, cycle + 1);
                    return false;
                }
            }
            Op::Trap(trap) => {
                if lanes != 0 {
                    let fault = ProgramFault::of_trap(trap, launch, &slot.warp, lanes);
                    self.fail(fault, cx);
                    return false;
                }
                slot.warp.advance();
            }
            Op::Pm(_) => {
                // As with memory, the pc moves after the issue, and before any wait, after which the warp
                // goes on there.
                let m = moment!(self, cycle, launches);
                let (core, lsu, memory) = (&mut self.core, &mut self.lsu, &mut self.memory);
                let waits = persist::issue_persistency(warp, lanes, core, lsu, memory, &self.front_end, m);
                self.core.slots[warp].warp.advance();
                match waits {
                    Ok(None) => {}
                    Ok(Some((kind, rule))) => {
                        if kind.scope() == PersistScope::Kernel {
                            // CTAs synchronise there, in memory too: a fence of scope gpu comes first.
                            self.fence(warp, AfterFence::Barrier(kind, rule), cycle, launch, cx);
                        } else {
                            self.persist_fence(warp, kind, rule, cycle + 1, launch, cx);
                        }
                        return false;
                    }
                    Err(fault) => {
                        self.fail(*fault, cx);
                        return false;
                    }
                }
            }
            // Copies go on by themselves: of their instructions only those wait that ask for their end.
            Op::BulkGroups(step) => {
                slot.warp.advance();
                if lanes != 0
                    && let Some(wait) = self.engine.step_groups(warp, step)
                {
                    self.core.enter(warp, wait, cycle + 1);
                    return false;
                }
            }
            Op::Bulk(bulk) => {
                let m = moment!(self, cycle, launches);
                let slot = &mut self.core.slots[warp];
                let cta = &self.core.ctas[usize::from(slot.cta)];
                let issued = self.engine.issue(warp, inst, bulk, lanes, (slot, cta), m);
                self.core.slots[warp].warp.advance();
                match issued {
                    Ok(false) => {}
                    Ok(true) => {
                        self.core.enter(warp, Wait::BulkDurable, cycle + 1);
                        return false;
                    }
                    Err(fault) => {
                        self.fail(*fault, cx);
                        return false;
                    }
                }
            }
            Op::Copies(step) => {
                slot.warp.advance();
                if lanes != 0
                    && let Some(kept) = self.core.copies.groups[warp].step(step)
                {
                    self.core.enter(warp, Wait::Copies(kept), cycle + 1);
                    return false;
                }
            }
            // Registers that others have yet to release are waited for behind the instruction.
            Op::Registers(step) => {
                let pc = slot.warp.pc();
                let whole = slot.warp.check_whole(launch, lanes, "setmaxnreg");
                slot.warp.advance();
                let moved = whole.and_then(|()| match lanes {
                    0 => Ok(false),
                    _ => self.core.move_registers(warp, step, pc, cycle, launch),
                });
                match moved {
                    Ok(false) => {}
                    Ok(true) => return false,
                    Err(fault) => {
                        self.fail(*fault, cx);
                        return false;
                    }
                }
            }
            Op::WarpGroup(step) => {
                if lanes != 0
                    && let Err(fault) = self.warp_group(warp, step, inst, lanes, cycle, launch)
                {
                    self.fail(*fault, cx);
                    return false;
                }
                self.core.slots[warp].warp.advance();
            }
            // It moves the pc itself, and waits where columns are not free.
            Op::Tensor(step) => {
                let issue = TensorIssue { warp, step, inst, lanes, cycle };
                let stepped = self.tensor_step(issue, launches);
                // Whatever it has come to, the peer hears of it.
                self.send_pair_words(cx);
                match stepped {
                    Ok(true) => {}
                    Ok(false) => return false,
                    Err(fault) => {
                        self.fail(*fault, cx);
                        return false;
                    }
                }
            }
            Op::AwaitPhase(parity) => {
                let times = (cycle, self.p.shared.latency_cycles);
                if !await_phase(&mut self.core, warp, (lanes, parity), times, launches) {
                    return false;
                }
            }
            _ => unreachable!("`execute` has the other instructions"),
        }
        true
    }

    /// A step of tensor memory; false where the warp waits.
    #[cold]
    fn tensor_step(&mut self, issue: TensorIssue<'_>, launches: &LaunchTable) -> Result<bool, Fault> {
        if issue.lanes == 0 {
            self.core.slots[issue.warp].warp.advance();
            return Ok(true);
        }
        self.record.tensor.tensor_products += u64::from(issue.step.elements().is_some());
        step_tensor(&mut self.core, issue, pair_scope!(self, launches), &mut self.host)
    }

    /// A word on the tensor memory of a pair of CTAs is here.
    #[cold]
    pub(super) fn pair_word(
        &mut self,
        message: PairMessage,
        cycle: u32,
        launches: &LaunchTable,
        cx: &mut Ctx<'_, Msg>,
    ) {
        if let Err(fault) = tensor_pair::receive(&mut self.core, message, cycle, pair_scope!(self, launches)) {
            self.fail(*fault, cx);
        }
        self.send_pair_words(cx);
    }

    /// Words on the tensor memory of pairs leave for other SMs.
    #[inline]
    pub(super) fn send_pair_words(&mut self, cx: &mut Ctx<'_, Msg>) {
        if !self.core.tensor.pairs.is_silent() {
            self.send_all_pair_words(cx);
        }
    }

    #[cold]
    fn send_all_pair_words(&mut self, cx: &mut Ctx<'_, Msg>) {
        for (sm, message) in self.core.tensor.pairs.leaving() {
            self.w.ports.to_sm(sm).send(SmMsg::Pair(message), 0, cx);
        }
    }

    /// A step of products of four warps: values at once, and when the warp goes on.
    fn warp_group(
        &mut self,
        warp: usize,
        step: GroupStep,
        inst: &Inst,
        lanes: u64,
        cycle: u32,
        launch: &Launch,
    ) -> Result<(), Fault> {
        let slot = &mut self.core.slots[warp];
        if step != GroupStep::Multiply {
            slot.warp.check_whole(launch, lanes, step.name())?;
            slot.not_before = self.core.products[warp].step(step, cycle);
            return Ok(());
        }
        let cta = &mut self.core.ctas[usize::from(slot.cta)];
        read_factors(warp, slot, cta, launch, &mut self.host, |warp, read| {
            warp.each_group_read(inst, launch, lanes, read)
        })?;
        slot.warp.multiply_group(inst, launch, lanes, &cta.shared)?;
        self.record.tensor.group_products += 1;
        // The tensor cores of its scheduler are taken in the order of issue, whenever the work begins.
        let product = &launch.kernel.group_products[inst.imm as usize];
        let times = self.p.tensor.group_times(product, self.p.sm.schedulers);
        let free_at = &mut self.core.schedulers[usize::from(slot.scheduler)].free_at[Unit::Tensor as usize];
        let depth = self.p.tensor.group_depth;
        let queue = &mut self.core.products[warp];
        slot.not_before = queue.begin(product.accumulator, times, depth, cycle, free_at);
        if product.ends_group {
            queue.step(GroupStep::Commit, cycle);
        }
        Ok(())
    }

    fn fence(&mut self, warp: usize, then: AfterFence, cycle: u32, launch: &Launch, cx: &mut Ctx<'_, Msg>) {
        if self.core.is_performed(warp) {
            self.release(warp, then, cycle + 1, launch, cx);
        } else {
            self.core.enter(warp, Wait::Performed(then), cycle + 1);
        }
    }

    /// Lanes of a warp come to the barrier of their cluster; true where the warp goes on.
    fn at_cluster(
        &mut self,
        warp: usize,
        step: ClusterStep,
        lanes: u64,
        cycle: u32,
        launch: &Launch,
        cx: &mut Ctx<'_, Msg>,
    ) -> Result<bool, Fault> {
        let slots = self.core.slots.len();
        let slot = &mut self.core.slots[warp];
        let cta = usize::from(slot.cta);
        let seat = self.core.ctas[cta].seat.get_or_insert_with(|| Seat::alone(slots));
        // The order of memory is a fence's, before or behind this instruction.
        let passes = match step {
            ClusterStep::Arrive => seat.arrivals.arrive(warp, lanes).map(|()| true),
            ClusterStep::Wait => seat.arrivals.wait(warp, lanes),
        };
        match passes {
            Ok(true) => slot.warp.advance(),
            Ok(false) => {
                seat.waiting |= 1 << warp;
                self.core.enter(warp, Wait::Cluster, cycle);
                return Ok(false);
            }
            Err(misuse) => {
                let kind = FaultKind::Asynchronous(misuse.to_string());
                return Err(Box::new(slot.fault(lanes.trailing_zeros(), kind, launch)));
            }
        }
        if step == ClusterStep::Arrive {
            self.tell_cluster(cta, cycle, launch, cx);
        }
        Ok(true)
    }

    /// A warp lets the launch begin that depends on its own, or comes to a wait for those that its own
    /// depends on; true where it waits.
    fn at_grid(&mut self, warp: usize, step: GridStep, cx: &mut Ctx<'_, Msg>) -> bool {
        let cta = &self.core.ctas[usize::from(self.core.slots[warp].cta)];
        let place = cta.launch;
        match step {
            GridStep::Wait => {
                let waits = self.dependents.depends(place);
                if !waits {
                    self.record.note(&self.core.slots[warp], FactKind::PrerequisitesPassed, 0);
                }
                waits
            }
            GridStep::LaunchDependents => {
                if self.dependents.let_go(place, cta.cta) {
                    self.w.ports.to_command_processor().send(CommandProcessorMsg::LetsGo { place }, 0, cx);
                }
                false
            }
        }
    }

    /// What a launch depended on is over: its warps see in memory what that has written.
    pub(super) fn prerequisites_over(&mut self, (place, beside): (u8, LaunchSet), cycle: u32, launches: &LaunchTable) {
        self.dependents.begin(place, false);
        self.memory.l1.invalidate_all();
        if let Some(order) = &self.memory.leaving.order {
            let number = order.issued();
            self.host.tell(&SmEvent::LaunchStarts { number, launch: place, beside, again: true });
        }
        for warp in 0..self.core.slots.len() {
            let slot = &mut self.core.slots[warp];
            if slot.wait == Wait::Prerequisites && slot.launch == place {
                self.record.note(slot, FactKind::PrerequisitesPassed, 0);
                slot.not_before = slot.not_before.max(cycle + self.core.latency[Class::Control as usize]);
                self.core.settle(warp, cycle, launches.at(place));
            }
        }
    }

    /// Tells the CTAs of a cluster when all lanes of one have come to its barrier that have not exited, or
    /// all have exited.
    #[inline]
    fn tell_cluster(&mut self, cta: usize, cycle: u32, launch: &Launch, cx: &mut Ctx<'_, Msg>) {
        if self.core.ctas[cta].seat.is_some() {
            self.tell_seated(cta, cycle, launch, cx);
        }
    }

    #[inline(never)]
    fn tell_seated(&mut self, cta: usize, cycle: u32, launch: &Launch, cx: &mut Ctx<'_, Msg>) {
        let (slots, slot) = (&self.core.slots, &mut self.core.ctas[cta]);
        let Some(seat) = &mut slot.seat else { return };
        let (ends, live) = (slot.live == 0, slot.live);
        let lanes = |warp: usize| if live >> warp & 1 == 1 { slots[warp].warp.live() } else { 0 };
        if !ends && !seat.arrivals.complete(lanes) {
            return;
        }
        let (number, rank) = (self.record.launch(slot.launch), seat.rank);
        if seat.sms.is_empty() {
            // A cluster by itself needs no words.
            if !ends {
                seat.phases.arrive(rank);
                self.open_cluster(cta, cycle, launch);
            }
            return;
        }
        // A word for each CTA, the own one too: all of them count alike.
        for (other, &sm) in (0..).zip(&seat.sms) {
            let to = seat.peer(launch, number, slot.cta, other);
            self.w.ports.to_sm(sm).send(SmMsg::Cluster(ClusterWord { to, rank, ends }), 0, cx);
        }
    }

    /// The place here of a CTA that has not ended.
    fn find_cta(&self, of: ClusterCta) -> Option<usize> {
        let is = |slot: &CtaSlot| slot.left > 0 && slot.cta == of.cta && self.record.launch(slot.launch) == of.launch;
        self.core.ctas.iter().position(is)
    }

    /// A CTA of a cluster has come to the cluster's barrier, or has ended. One that has ended here hears
    /// nothing.
    pub(super) fn cluster_word(&mut self, word: ClusterWord, cycle: u32, launches: &LaunchTable) {
        let Some(cta) = self.find_cta(word.to) else { return };
        let slot = &mut self.core.ctas[cta];
        let launch = launches.at(slot.launch);
        let Some(seat) = &mut slot.seat else { unreachable!("a CTA of a cluster has its seat") };
        if word.ends {
            seat.phases.end(word.rank)
        } else {
            seat.phases.arrive(word.rank)
        }
        self.open_cluster(cta, cycle, launch);
    }

    /// Ends the phase of a cluster's barrier to which all have come: warps of a CTA that waited go on.
    fn open_cluster(&mut self, cta: usize, cycle: u32, launch: &Launch) {
        let Some(seat) = &mut self.core.ctas[cta].seat else { return };
        if !seat.phases.end_phase() {
            return;
        }
        self.lsu.remote.counted.cluster_phases += 1;
        seat.arrivals.end_phase();
        let mut waiting = std::mem::take(&mut seat.waiting);
        while waiting != 0 {
            let warp = waiting.trailing_zeros() as usize;
            waiting &= waiting - 1;
            let slot = &mut self.core.slots[warp];
            let inst = &launch.kernel.code[slot.warp.pc() as usize];
            let lanes = slot.warp.guarded(inst);
            let Some(seat) = &mut self.core.ctas[cta].seat else { return };
            let passes = seat.arrivals.wait(warp, lanes);
            assert_eq!(passes, Ok(true), "warp {warp} waits for a phase that is over");
            slot.warp.advance();
            slot.not_before = slot.not_before.max(cycle + self.core.latency[Class::Control as usize]);
            self.core.settle(warp, cycle, launch);
        }
    }

    /// A request to shared memory of another SM leaves.
    #[inline(never)]
    fn send_remote(&mut self, cycle: u32, cx: &mut Ctx<'_, Msg>) {
        let access = self.lsu.remote.take_leaving();
        let warp = &self.core.slots[usize::from(access.from.warp)];
        let Some(seat) = &self.core.ctas[usize::from(warp.cta)].seat else {
            unreachable!("a CTA of a cluster has its seat")
        };
        let sm = seat.sms[access.to.rank as usize];
        let bytes = access.bytes_there();
        self.send_over_link(bytes, cycle, sm, SmMsg::Remote(access), cx);
    }

    /// Sends a message with `bytes` of shared memory to another SM, from `cycle` on, when the link is free.
    fn send_over_link(&mut self, bytes: u32, cycle: u32, sm: u16, message: SmMsg, cx: &mut Ctx<'_, Msg>) {
        let leaves = self.lsu.remote.take_link(bytes, self.p.shared.cluster_bytes, cycle).unwrap_or(cycle);
        let delay = self.w.clock.cycles(u64::from(leaves)) - cx.now();
        self.w.ports.to_sm(sm).send(message, delay, cx);
    }

    /// A request of another SM is served, and answered when its values would be there for a warp of this SM.
    #[inline(never)]
    fn serve_remote(&mut self, passes: u32, cycle: u32, cx: &mut Ctx<'_, Msg>) {
        let mut access = self.lsu.remote.take_serving();
        match self.find_cta(access.to) {
            Some(cta) => {
                let cta = &mut self.core.ctas[cta];
                tell_shared(cta, &access, &mut self.host);
                perform(&mut cta.shared, &mut access);
            }
            None => access.fault = Some((access.lanes.trailing_zeros() as u8, ended(access.to.rank))),
        }
        self.lsu.remote.counted.cluster_served += 1;
        self.record.counters.shared_conflict_passes += u64::from(passes - 1);
        let ready = match access.kind {
            RemoteKind::Store | RemoteKind::Atomic(false) => passes,
            RemoteKind::Load | RemoteKind::Atomic(true) => self.p.shared.latency_cycles - 1 + (passes - 1),
        };
        let (sm, bytes) = (access.from.sm, access.bytes_back());
        self.send_over_link(bytes, cycle + ready, sm, SmMsg::RemoteAnswer(access), cx);
    }

    /// A request to another SM is answered.
    pub(super) fn remote_answered(
        &mut self,
        access: Box<RemoteAccess>,
        cycle: u32,
        launches: &LaunchTable,
        cx: &mut Ctx<'_, Msg>,
    ) {
        let (warp, pc) = (usize::from(access.from.warp), access.from.pc);
        let slot = &mut self.core.slots[warp];
        let launch = launches.of(slot);
        if let Some((lane, what)) = &access.fault {
            let kind = FaultKind::Asynchronous(what.clone());
            let fault = ProgramFault::new(kind, launch, &slot.warp, pc, u32::from(*lane));
            self.fail(fault, cx);
            return;
        }
        write_answer(&mut slot.warp, &launch.kernel.code[pc as usize], launch, &access);
        match access.from.load {
            Some(load) => self.answered(load, cycle, cycle, launches, cx),
            None => self.store_performed(warp, 0, cycle, launches, cx),
        }
        self.lsu.remote.recycle(access);
    }

    /// Parts of copies leave for other SMs.
    #[inline]
    fn send_parts(&mut self, cx: &mut Ctx<'_, Msg>) {
        if !self.engine.parts.is_empty() {
            self.send_all_parts(cx);
        }
    }

    #[inline(never)]
    fn send_all_parts(&mut self, cx: &mut Ctx<'_, Msg>) {
        let (cycle, width) = (self.cycle_from(cx.now()), self.p.shared.cluster_bytes);
        let mut leaving = std::mem::take(&mut self.engine.parts.leaving);
        for part in leaving.drain(..) {
            let cta = usize::from(self.core.slots[usize::from(part.from.warp)].cta);
            let Some(seat) = &self.core.ctas[cta].seat else { unreachable!("a CTA of a cluster has its seat") };
            let sm = seat.sms[part.to.rank as usize];
            // What comes from global memory takes no time of the link, and its turn there.
            let bytes = if self.engine.reads_shared(part.from.copy) { part.bytes() } else { 0 };
            let leaves = self.lsu.remote.take_link(bytes, width, cycle);
            let delay = leaves.map_or(0, |leaves| self.w.clock.cycles(u64::from(leaves)) - cx.now());
            self.w.ports.to_sm(sm).send(SmMsg::Copied(part), delay, cx);
        }
        // The list is used again.
        self.engine.parts.leaving = leaving;
    }

    /// A part of another SM's copy is here.
    pub(super) fn serve_part(&mut self, mut part: Box<RemotePart>, cx: &mut Ctx<'_, Msg>) {
        part.fault = match self.find_cta(part.to) {
            Some(cta) => {
                let cta = &mut self.core.ctas[cta];
                for &(at, bytes) in &part.pieces {
                    cta.writers.access(OF_OTHER_CTAS, MemKind::Store, std::iter::once(at.into()), bytes.into());
                }
                perform_part(&mut cta.shared, &part).err()
            }
            None => Some(ended(part.to.rank)),
        };
        self.record.bulk.bulk_parts_served += 1;
        self.w.ports.to_sm(part.from.sm).send(SmMsg::CopiedAnswer(part), 0, cx);
    }

    /// A part of a copy is in another SM.
    pub(super) fn part_answered(
        &mut self,
        part: Box<RemotePart>,
        cycle: u32,
        launches: &LaunchTable,
        cx: &mut Ctx<'_, Msg>,
    ) {
        let warp = usize::from(part.from.warp);
        match self.engine.part_came(part, &mut self.core) {
            PartAnswer::Nothing => {}
            PartAnswer::Over => self.resume(warp, cycle, launches, cx),
            PartAnswer::Wrong { what, pc, lane } => {
                let slot = &self.core.slots[warp];
                let kind = FaultKind::Asynchronous(what);
                self.fail(ProgramFault::new(kind, launches.of(slot), &slot.warp, pc, lane), cx);
            }
        }
    }

    /// A fence's loads and stores are done: what others wrote must be seen from here on.
    fn pass_fence(&mut self, warp: usize, then: AfterFence, cycle: u32, launch: &Launch, cx: &mut Ctx<'_, Msg>) {
        if self.p.l1.fence_invalidates {
            self.memory.l1.invalidate_all();
        }
        match then {
            AfterFence::Nothing => self.core.settle(warp, cycle, launch),
            AfterFence::Sfence => {
                let rule = self.host.handler.fence(FenceKind::Sfence);
                self.persist_fence(warp, FenceKind::Sfence, rule, cycle, launch, cx);
            }
            AfterFence::Barrier(kind, rule) => self.persist_fence(warp, kind, rule, cycle, launch, cx),
        }
    }

    fn read_machine(&mut self, warp: usize, inst: &Inst, read: MachineRead, lanes: u64, cycle: u32, cx: &Ctx<'_, Msg>) {
        let value = match read {
            MachineRead::Clock | MachineRead::Clock64 => u64::from(cycle),
            MachineRead::ClockHigh => u64::from(cycle) >> 32,
            MachineRead::GlobalTimer => self.w.timebase.ps_of_ticks(cx.now()) / 1000,
            MachineRead::SmId => u64::from(self.w.index),
            MachineRead::NSmId => u64::from(self.p.sm.count),
            MachineRead::WarpId => warp as u64,
            MachineRead::NWarpId => u64::from(self.p.sm.warps),
        };
        self.core.slots[warp].warp.write_machine(inst, lanes, value);
    }

    /// One cycle of the load-store unit: a line that is to be cleaned, or the next access of the head entry.
    pub(super) fn step_lsu(&mut self, cycle: u32, launches: &LaunchTable, cx: &mut Ctx<'_, Msg>) {
        if self.lsu.blocked {
            self.lsu.blocked = self.host.outbox.persists().is_empty() || !self.memory.port.network.has_room();
        }
        if self.lsu.blocked || self.lsu.free_at > cycle {
            return;
        }
        // Most cycles of a kernel that computes have nothing for it.
        let leaves = !self.host.outbox.persists().is_empty()
            || self.memory.leaving.cleaning.is_pending()
            || !self.host.outbox.cleans().is_empty();
        if !leaves && self.lsu.queue.is_empty() {
            return;
        }
        if leaves && self.clean_lines(cycle, launches, cx) {
            return;
        }
        // Lines that are cleaned have no address to compute.
        if self.lsu.next_at() > cycle {
            return;
        }
        let m = moment!(self, cycle, launches);
        let stepped = self.lsu.step(&mut self.memory, &mut self.core.slots, m, cx);
        if self.lsu.addresses.is_present()
            && let Some((scheduler, free_at)) = self.lsu.addresses.opened(cycle)
        {
            let held_until = self.core.register_reads.held_until(scheduler);
            self.core.schedulers[scheduler].free_at[Unit::Memory as usize] = free_at.max(held_until);
        }
        match stepped {
            Stepped::Nothing => {}
            Stepped::Answered { load, ready } => self.answered(load, ready, cycle, launches, cx),
            Stepped::Leaves => self.send_remote(cycle, cx),
            Stepped::Serves { passes } => self.serve_remote(passes, cycle, cx),
            Stepped::Joined { warp, bulk } => {
                self.store_performed(warp, bulk, cycle, launches, cx);
            }
        }
    }

    /// Lines that are to be cleaned go before all others: true where one takes this cycle, or waits for room.
    #[inline(never)]
    fn clean_lines(&mut self, cycle: u32, launches: &LaunchTable, cx: &mut Ctx<'_, Msg>) -> bool {
        self.memory.take_cleans(&mut self.host);
        loop {
            match self.memory.clean_next(&mut self.host, &mut self.record, cx) {
                Cleaned::Nothing => return false,
                Cleaned::Sent => return true,
                Cleaned::NoRoom => {
                    self.lsu.blocked = true;
                    return true;
                }
                Cleaned::AtOnce => self.released(cycle, launches, cx),
            }
        }
    }

    /// A line access of a store is performed.
    fn store_performed(&mut self, warp: usize, bulk: u16, cycle: u32, launches: &LaunchTable, cx: &mut Ctx<'_, Msg>) {
        let others = self.core.store_performed(warp);
        self.bulk_answered(bulk, cycle, launches, cx);
        self.resume(warp, cycle, launches, cx);
        if others {
            for other in 0..self.core.slots.len() {
                let slot = &self.core.slots[other];
                if slot.cta == self.core.slots[warp].cta && matches!(slot.wait, Wait::Performed(_)) {
                    self.resume(other, cycle, launches, cx);
                }
            }
        }
    }

    /// A line access of a load is answered, and usable from `ready` on.
    fn answered(&mut self, load: u16, ready: u32, cycle: u32, launches: &LaunchTable, cx: &mut Ctx<'_, Msg>) {
        if let Some(done) = self.lsu.answer(load, ready, &mut self.core.slots, launches) {
            if done.copies {
                self.core.copies.lands_at(done.ready, load);
                return;
            }
            let launch = launches.of(&self.core.slots[done.warp]);
            self.core.write_from(done.warp, done.pc, done.ready, launch);
            self.core.slots[done.warp].under_way.loads -= 1;
            self.bulk_answered(done.bulk, cycle, launches, cx);
            self.resume(done.warp, cycle, launches, cx);
        }
    }

    /// A cycle of the copy engine: bytes that complete, then the next line.
    #[inline(never)]
    pub(super) fn step_engine(&mut self, cycle: u32, launches: &LaunchTable, cx: &mut Ctx<'_, Msg>) {
        loop {
            match self.engine.land(cycle, &mut self.core, launches, self.w.index) {
                Ok(None) => break,
                Ok(Some(warp)) => self.resume(warp, cycle, launches, cx),
                Err(fault) => {
                    self.fail(*fault, cx);
                    return;
                }
            }
        }
        let m = moment!(self, cycle, launches);
        let (core, lsu, memory) = (&mut self.core, &mut self.lsu, &mut self.memory);
        if let Some(warp) = self.engine.step(core, lsu, memory, &mut self.front_end, m, cx) {
            self.resume(warp, cycle, launches, cx);
        }
        self.send_parts(cx);
    }

    /// A request is answered that bears the number of a bulk copy, if `bulk` is not 0.
    #[inline]
    fn bulk_answered(&mut self, bulk: u16, cycle: u32, launches: &LaunchTable, cx: &mut Ctx<'_, Msg>) {
        if bulk != 0
            && let Some(warp) = self.engine.answered(bulk - 1, cycle, &mut self.core, self.p.shared.bulk_arrive_cycles)
        {
            self.resume(warp, cycle, launches, cx);
        }
    }

    /// The command processor has answered a CTA that asked for a cluster that has not begun.
    pub(super) fn cancelled(
        &mut self,
        copy: u16,
        first: Option<u64>,
        cycle: u32,
        launches: &LaunchTable,
        cx: &mut Ctx<'_, Msg>,
    ) {
        self.record.bulk.clusters_cancelled += u64::from(first.is_some());
        self.engine.grid_answered(copy, first, &mut self.core, launches, self.w.index);
        self.send_parts(cx);
        self.bulk_answered(copy + 1, cycle, launches, cx);
    }

    /// An asynchronous copy's bytes arrive in shared memory.
    #[inline(never)]
    pub(super) fn land(&mut self, load: u16, cycle: u32, launches: &LaunchTable, cx: &mut Ctx<'_, Msg>) {
        let (lsu, core) = (&mut self.lsu, &mut self.core);
        let mut landed = None;
        lsu.land(load, |warp, copy, mem, words| {
            let slot = &core.slots[warp];
            write_copy(warp, slot, &mut core.ctas[usize::from(slot.cta)], copy, mem, words);
            landed = Some((warp, copy.ticket));
        });
        if let Some((warp, copy)) = landed {
            let arrivals = self.core.copies.groups[warp].land(copy);
            let cta = usize::from(self.core.slots[warp].cta);
            if let Err(misuse) = arrive(&mut self.core.ctas[cta].shared, &arrivals) {
                let slot = &self.core.slots[warp];
                let kind = FaultKind::Asynchronous(misuse.to_string());
                let lane = slot.warp.live().trailing_zeros().min(31);
                self.fail(slot.fault(lane, kind, launches.of(slot)), cx);
                return;
            }
            self.core.slots[warp].under_way.loads -= 1;
            self.resume(warp, cycle, launches, cx);
        }
    }

    /// Something a warp may have waited for has come.
    #[inline(always)]
    fn resume(&mut self, warp: usize, cycle: u32, launches: &LaunchTable, cx: &mut Ctx<'_, Msg>) {
        // A warp that hides its latencies goes on with others' registers: it waits for nothing that comes.
        if !matches!(self.core.slots[warp].wait, Wait::Issue | Wait::Latency) {
            self.resume_waiting(warp, cycle, launches, cx);
        }
    }

    fn resume_waiting(&mut self, warp: usize, cycle: u32, launches: &LaunchTable, cx: &mut Ctx<'_, Msg>) {
        let slot = &self.core.slots[warp];
        let launch = launches.of(slot);
        // Of some waits what came is one part of several, so that the warp goes on waiting.
        match slot.wait {
            Wait::Register => self.core.settle(warp, cycle, launch),
            Wait::Copies(kept) if self.core.copies.groups[warp].are_complete(kept) => {
                self.core.settle(warp, cycle, launch);
            }
            wait @ (Wait::Bulk(_) | Wait::BulkReads(_)) if self.engine.lets_go(warp, wait) => {
                self.core.settle(warp, cycle, launch);
            }
            Wait::BulkDurable if slot.under_way.bulk == 0 && slot.under_way.persists == 0 => {
                self.record.note(slot, FactKind::FencePassed, 0);
                self.core.settle(warp, cycle, launch);
            }
            Wait::Performed(then) if self.core.is_performed(warp) => {
                self.release(warp, then, cycle, launch, cx);
            }
            Wait::Durable { ordered, flushing: false, then } if slot.under_way.awaited(ordered) == 0 => {
                self.pass_durable(warp, then, cycle, launch, cx);
            }
            Wait::Marker(scope) if slot.under_way.persists == 0 => {
                self.core.pass_marker(warp, scope, cycle, launch, &mut self.record);
            }
            Wait::Drained => self.retire_if_drained(warp, cycle, cx),
            _ => {}
        }
    }

    /// A reply is out of the ejection port.
    pub(super) fn reply(&mut self, reply: Reply, launches: &LaunchTable, cx: &mut Ctx<'_, Msg>) {
        let cycle = self.cycle_from(cx.now());
        // Any reply may free what the head of the load-store unit lacks: it tries again.
        self.lsu.blocked = false;
        match (reply.kind, reply.payload) {
            (RequestKind::Read, Payload::Line(line)) if CopyEngine::is_read(reply.tag) => {
                let (line_bytes, sm) = (self.w.line_bytes, self.w.index);
                if self.engine.is_map(reply.tag) {
                    let counters = &mut self.record.bulk;
                    let came = self.engine.map_came(reply.tag, &line, line_bytes, &self.core, launches, counters);
                    self.memory.port.line_pool.give(line);
                    if let Err(fault) = came {
                        self.fail(*fault, cx);
                    }
                    return;
                }
                let number = self.engine.line_came(reply.tag, &line, line_bytes, &mut self.core, sm);
                self.send_parts(cx);
                self.memory.port.line_pool.give(line);
                self.bulk_answered(number + 1, cycle, launches, cx);
            }
            (RequestKind::Read, Payload::Line(line)) => {
                // One fill answers every load that merged with its miss. The list is taken out of `self` and
                // put back empty, so that no fill allocates one.
                let mut waiters = std::mem::take(&mut self.lsu.waiters);
                self.memory.l1.fill(reply.tag as u16, reply.sectors, &line, &mut waiters);
                for Waiter { load, part, lanes } in waiters.drain(..) {
                    self.lsu.load(load).deliver(&mut self.core.slots, part, lanes, &line.bytes, launches);
                    self.answered(load, cycle, cycle, launches, cx);
                }
                self.lsu.waiters = waiters;
                self.memory.port.line_pool.give(line);
            }
            (RequestKind::Write, Payload::Line(line)) => {
                self.memory.port.line_pool.give(line);
                // A cleaning's tag lies above all warps' numbers.
                if is_cleaning(reply.tag) {
                    self.memory.leaving.cleaning.perform_tag(reply.tag);
                    self.released(cycle, launches, cx);
                    return;
                }
                let (warp, bulk) = warp_and_bulk(reply.tag);
                self.store_performed(warp, bulk, cycle, launches, cx);
            }
            (RequestKind::Atomic, Payload::Atomics(atomics)) => {
                let load = reply.tag as u16;
                // Before `answered`, which may close the load: the copy needs its warp.
                if self.front_end.present {
                    let warp = usize::from(self.lsu.load(load).warp);
                    let (slot, pool) = (&mut self.core.slots[warp], &mut self.memory.port.line_pool);
                    if self.front_end.copy_atomics(warp, slot, &atomics, pool, &mut self.host, &self.record) {
                        let launch = launches.of(&self.core.slots[warp]);
                        self.core.settle(warp, cycle, launch);
                    }
                }
                let pending = self.lsu.load(load);
                let returns = matches!(pending.inst.op, Op::Mem(m) if m.kind == MemKind::Atomic);
                if returns {
                    let (warp, inst) = (usize::from(pending.warp), pending.inst);
                    for i in 0..usize::from(atomics.count) {
                        let (lane, half) = (u32::from(atomics.lane[i]), atomics.half(i));
                        self.core.slots[warp].warp.write_atomic(&inst, lane, half, atomics.a[i]);
                    }
                }
                self.lsu.spare_atomics.push(atomics);
                self.answered(load, cycle, cycle, launches, cx);
            }
            (RequestKind::WriteBackAll, _) => self.slice_written_back(reply.tag as usize, cx),
            (RequestKind::Write, Payload::Persist(persist)) => {
                self.memory.persist_performed(persist, &mut self.host);
                self.released(cycle, launches, cx);
            }
            (RequestKind::NonTemporal, Payload::Persist(persist)) if is_cleaning(reply.tag) => {
                self.memory.persisted(persist, &mut self.host, &mut self.record);
                self.persisted(cycle, launches, cx);
            }
            (_, Payload::Persist(persist)) => {
                self.memory.port.end_persist(persist, &mut self.host, &mut self.record);
                // The marker of a kernel's barrier is no warp's; it must not be taken from a slot's count.
                if reply.tag == u32::from(GRID) {
                    self.grid_acknowledged(cx);
                    return;
                }
                let (warp, bulk) = warp_and_bulk(reply.tag);
                self.core.slots[warp].under_way.persists -= 1;
                self.core.slots[warp].under_way.throughs -= u32::from(reply.kind == RequestKind::NonTemporal);
                self.bulk_answered(bulk, cycle, launches, cx);
                self.resume(warp, cycle, launches, cx);
            }
            (kind, payload) => panic!("a reply to a {kind:?} with {payload:?}"),
        }
    }

    /// A line that left by its handler's word is durable.
    pub(super) fn persisted(&mut self, cycle: u32, launches: &LaunchTable, cx: &mut Ctx<'_, Msg>) {
        for warp in 0..self.core.slots.len() {
            if let Wait::Durable { ordered, flushing: true, then } = self.core.slots[warp].wait
                && !self.memory.is_unpersisted(&self.core.slots[warp])
            {
                self.core.stays(warp, Wait::Durable { ordered, flushing: false, then });
                self.resume(warp, cycle, launches, cx);
            }
        }
        self.released(cycle, launches, cx);
    }

    /// A fence whose warp has nothing under way: it passes when all that was stored by this SM is performed.
    fn release(&mut self, warp: usize, then: AfterFence, cycle: u32, launch: &Launch, cx: &mut Ctx<'_, Msg>) {
        match self.memory.release_all() {
            None => self.pass_fence(warp, then, cycle, launch, cx),
            Some(cleaning) => {
                self.memory.leaving.releases += 1;
                self.core.slots[warp].releasing = cleaning;
                let wait = Wait::Released(then);
                if matches!(self.core.slots[warp].wait, Wait::Performed(_)) {
                    // It waits at its fence already, since then.
                    self.core.stays(warp, wait);
                } else {
                    self.core.enter(warp, wait, cycle);
                }
            }
        }
    }

    /// A CTA's last warp is gone: it must wait for what combines in the L1 if its scheme asks for more, or if
    /// no other CTA of its launch is there to see to it later. True when it waits.
    fn release_cta(&mut self, cta: usize) -> bool {
        let launch = self.core.ctas[cta].launch;
        let elsewhere = |slot: &CtaSlot| slot.left == 0 || slot.launch != launch;
        let last = || self.core.ctas.iter().enumerate().all(|(other, slot)| other == cta || elsewhere(slot));
        if !self.memory.l1.combines() || self.core.ctas[cta].boundary == Boundary::None && !last() {
            return false;
        }
        let Some(last) = self.memory.release_all() else { return false };
        self.core.ctas[cta].releasing = last;
        self.memory.leaving.releases += 1;
        true
    }

    /// Lets those go on whose releases are complete.
    fn released(&mut self, cycle: u32, launches: &LaunchTable, cx: &mut Ctx<'_, Msg>) {
        if self.memory.leaving.releases == 0 {
            return;
        }
        let settled = self.memory.leaving.cleaning.settled();
        let complete = |releasing: u64| releasing != 0 && releasing <= settled;
        for warp in 0..self.core.slots.len() {
            let slot = &self.core.slots[warp];
            if let Wait::Released(then) = slot.wait
                && complete(slot.releasing)
            {
                self.memory.leaving.releases -= 1;
                let launch = launches.of(slot);
                self.pass_fence(warp, then, cycle, launch, cx);
            }
        }
        for cta in 0..self.core.ctas.len() {
            if complete(self.core.ctas[cta].releasing) {
                self.core.ctas[cta].releasing = 0;
                self.memory.leaving.releases -= 1;
                self.leave_cta(cta, cx);
            }
        }
    }

    /// A warp has issued a fence of persistency in the cycle before `from`, and does what its scheme says.
    fn persist_fence(
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
        // A thread's barrier is a matter of its warp; one of a CTA or kernel first needs every warp to
        // arrive.
        match (scope, rule) {
            (PersistScope::Thread, FenceRule::Pass) => {
                self.record.note(&self.core.slots[warp], FactKind::FenceSkipped(kind), 0);
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
    fn arrive_persist(
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
                let report = GridReport::Reached { sm: self.w.index, marks, since };
                self.w.ports.to_command_processor().send(CommandProcessorMsg::Grid(report), 0, cx);
            }
        }
    }

    /// Appends a marker behind all that the SM has issued.
    fn mark(&mut self, warp: usize, scope: PersistScope) {
        let marker = Marker { scope, by: (warp as u8, self.core.slots[warp].cta) };
        let entry = self.lsu.marker(warp as u8, marker, self.w.ports.map(), self.record.now);
        self.record.counters.pm_markers += 1;
        self.lsu.enqueue(entry, &mut self.core.slots[warp], &mut self.record);
    }

    /// The command processor speaks of a kernel's persist barrier.
    pub(super) fn grid(&mut self, order: GridOrder, cycle: u32, launches: &LaunchTable) {
        match order {
            GridOrder::Drain => {
                self.core.await_kernel(cycle);
                let marker = Marker { scope: PersistScope::Kernel, by: (0, 0) };
                let entry = self.lsu.marker(GRID, marker, self.w.ports.map(), self.record.now);
                self.record.counters.pm_markers += 1;
                self.host.grid_left = self.w.ports.map().slices();
                self.record.counters.persists += u64::from(self.host.grid_left);
                self.lsu.push(entry);
            }
            GridOrder::Open => {
                // What other SMs wrote before must be seen from here on.
                if self.p.l1.fence_invalidates {
                    self.memory.l1.invalidate_all();
                }
                if let Some(order) = &self.memory.leaving.order {
                    self.host.tell(&SmEvent::KernelBarrier(order.issued()));
                }
                self.core.open_kernel(cycle, launches, &mut self.record);
            }
        }
    }

    /// A slice has acknowledged the kernel's marker.
    fn grid_acknowledged(&mut self, cx: &mut Ctx<'_, Msg>) {
        self.host.grid_left -= 1;
        if self.host.grid_left == 0 {
            self.w.ports.to_command_processor().send(CommandProcessorMsg::Grid(GridReport::Drained), 0, cx);
        }
    }

    /// A warp's last lane has exited in `cycle`.
    fn warp_exited(&mut self, warp: usize, cycle: u32, launch: &Launch, cx: &mut Ctx<'_, Msg>) {
        let cta = self.core.exit(warp, cycle);
        let memory = self.core.tensor.memory(cta);
        if self.core.ctas[cta].live == 0
            && let Err(fault) = self.core.slots[warp].warp.check_columns_freed(memory, launch)
        {
            self.fail(*fault, cx);
            return;
        }
        self.tell_cluster(cta, cycle, launch, cx);
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

    /// The warp goes on, or comes to the persist barrier that follows, when all its persists are durable;
    /// where the others are `ordered`, when its write-backs are.
    fn wait_durable(
        &mut self,
        warp: usize,
        ordered: bool,
        then: Option<PersistScope>,
        from: u32,
        launch: &Launch,
        cx: &mut Ctx<'_, Msg>,
    ) {
        // One that is no fence is a store that its scheme has the warp wait for.
        self.record.stall_begins(warp, &self.core.slots[warp], "durable store", from);
        let flushing = !ordered && self.memory.is_unpersisted(&self.core.slots[warp]);
        if flushing {
            let (cta, number) = (self.core.slots[warp].cta, self.core.slots[warp].order.non_temporal);
            self.host.tell(&SmEvent::Flush { cta, number });
        }
        if self.core.slots[warp].under_way.awaited(ordered) == 0 && !flushing {
            self.core.slots[warp].since = from;
            self.pass_durable(warp, then, from, launch, cx);
        } else {
            self.core.enter(warp, Wait::Durable { ordered, flushing, then }, from);
        }
    }

    /// What a warp waited for is durable.
    fn pass_durable(
        &mut self,
        warp: usize,
        then: Option<PersistScope>,
        cycle: u32,
        launch: &Launch,
        cx: &mut Ctx<'_, Msg>,
    ) {
        let waited = cycle - self.core.slots[warp].since.min(cycle);
        self.record.stalls.fences.record(self.w.clock.cycles(u64::from(waited)));
        let slot = &mut self.core.slots[warp];
        if slot.under_way.persists == 0 && !self.memory.is_unpersisted(slot) {
            self.record.note(slot, FactKind::FencePassed, 0);
        } else {
            slot.order.fenced = slot.order.fenced.max(slot.order.non_temporal);
            self.memory.pass_ordered(slot, &mut self.host, &mut self.record);
        }
        match then {
            Some(scope) => self.arrive_persist(warp, scope, false, cycle, launch, cx),
            None => {
                self.record.stall_ends(warp, cycle);
                self.core.settle(warp, cycle, launch);
            }
        }
    }

    /// A CTA's last warp is gone: ends the CTA, once what its scheme wants durable is.
    fn end_cta(&mut self, cta: usize, cx: &mut Ctx<'_, Msg>) {
        self.core.ctas[cta].boundary = self.host.handler.boundary(&mut self.host.outbox);
        if !self.release_cta(cta) {
            self.leave_cta(cta, cx);
        }
    }

    /// Ends a CTA all of whose stores are performed.
    fn leave_cta(&mut self, cta: usize, cx: &mut Ctx<'_, Msg>) {
        if self.core.ctas[cta].boundary == Boundary::WriteBackL2 {
            let slices = self.w.ports.map().slices();
            self.core.ctas[cta].flushing = slices;
            self.core.ctas[cta].ended = cx.now();
            for slice in 0..slices {
                self.memory.port.write_back_slice(self.w.ports.map().some_line_of(slice), cta, cx);
            }
        } else {
            self.report_cta(cta, cx);
        }
    }

    /// A slice has written back everything for a CTA that ends.
    fn slice_written_back(&mut self, cta: usize, cx: &mut Ctx<'_, Msg>) {
        if self.core.ctas[cta].slice_written_back() {
            self.record.stalls.boundaries.record(cx.now() - self.core.ctas[cta].ended);
            self.report_cta(cta, cx);
        }
    }

    fn report_cta(&mut self, cta: usize, cx: &mut Ctx<'_, Msg>) {
        self.record.cta_ends(cta, &self.core.ctas[cta]);
        let CtaSlot { cta, launch: place, .. } = self.core.ctas[cta];
        let let_go = self.dependents.end(place, cta);
        let done = CommandProcessorMsg::CtaDone { sm: self.w.index, place, let_go };
        self.w.ports.to_command_processor().send(done, 0, cx);
        self.count_for_resident();
    }
}
