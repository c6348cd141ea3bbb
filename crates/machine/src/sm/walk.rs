//! The walk of an instruction, and of a reply, through the parts of an SM.
//!
//! An instruction issues to its unit; a reply writes registers and lets its warp go on: past a fence, a wait
//! for durability, a persist barrier, or to its end and that of its CTA. The parts do the work and own the
//! state; here is their order.
//!
//! | part | what follows from its work |
//! |---|---|
//! | `fences.rs` | waits of fences and persist barriers |
//! | `cta_end.rs` | the end of a CTA |
//! | `cluster_barrier.rs`, `cluster_link.rs` | what SMs of a cluster send each other |
//! | `tensor_steps.rs`, `bulk.rs` | products and copies that go on by themselves |
//!
//! Invariant: what comes for a warp is followed by a look at what the warp waits for. Over 500 lines: an
//! instruction and a reply may each lead to any part, and both end at the same looks.

use crate::l1::Waiter;
use crate::msg::{Msg, Payload, Reply, RequestKind};
use crate::remote::{PairMessage, RemoteAccess, RemotePart};
use crate::scheduler::Unit;
use durawarp_engine::Ctx;
use durawarp_kernel::fault::ProgramFault;
use durawarp_kernel::ir::{Class, Inst, MemKind, Op, Scope, Space};
use durawarp_persist::handler::SmEvent;
use durawarp_persist::journal::FactKind;
use durawarp_persist::vocab::PersistScope;

use super::Sm;
use super::bulk::CopyEngine;
use super::cleaning::is_cleaning;
use super::cluster_barrier;
use super::cluster_link::{end_access, send_access, send_parts, serve_access};
use super::combine::Cleaned;
use super::cta_end::{CtaEnd, cta_end};
use super::fences::{FencePath, fence_path};
use super::launches::LaunchTable;
use super::lsu::GRID;
use super::memory::issue_memory;
use super::moment::{Moment, moment};
use super::persist;
use super::requests::{BULK_SHIFT, Stepped};
use super::slots::{Fault, count};
use super::tensor_pair;
use super::tensor_peers::PairScope;
use super::tensor_steps::{TensorIssue, step_group, step_tensor};
use super::traced::await_phase;
use super::wait::{Account, AfterFence, Wait};

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
            if let Err(fault) = self.execute(warp, class, late, cycle, launches, cx) {
                self.fail(*fault, cx);
            }
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
    ) -> Result<(), Fault> {
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
                let (core, lsu, memory) = (&mut self.core, &mut self.lsu, &mut self.memory);
                let m = &mut moment!(self, cycle, launches);
                issue_memory(warp, lanes, core, lsu, memory, &self.front_end, m)?;
                self.core.slots[warp].warp.advance();
                if std::mem::take(&mut self.host.store_waits) {
                    fence_path!(self, cycle + 1, launches).wait_durable(warp, false, None, cx);
                    return Ok(());
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
                moved?;
                self.core.write_from(warp, pc, cycle + latency, launch);
            }
            Op::Barrier(barrier) => {
                // Without lanes in it the warp does not take part, and passes.
                if lanes != 0 {
                    let barrier = slot.warp.barrier_at(barrier, inst, launch, lanes)?;
                    self.core.arrive(warp, barrier, lanes, cycle, launch, &mut self.record);
                    return Ok(());
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
                    fence_path!(self, cycle + 1, launches).fence(warp, then, cx);
                    return Ok(());
                }
            }
            Op::Exit => {
                // Only when its last lane has exited is the warp done; others go on at their own pc.
                slot.warp.exit(lanes);
                if slot.warp.is_done() {
                    return self.warp_exited(warp, cycle, launches, cx);
                }
                slot.not_before = cycle + latency;
                let cta = usize::from(slot.cta);
                self.tell_cluster(cta, cycle, launches, cx);
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
                multiplied?;
            }
            Op::Machine(read) => {
                slot.warp.write_machine(inst, lanes, moment!(self, cycle, launches).read(read, warp));
                slot.write_from(&launch.kernel.hazards[pc], cycle + latency);
                slot.warp.advance();
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
                if !self.execute_rare(warp, inst, lanes, cycle, launches, cx)? {
                    return Ok(());
                }
            }
        }
        self.core.settle_now(warp, cycle + 1, launch);
        Ok(())
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
    ) -> Result<bool, Fault> {
        let slot = &mut self.core.slots[warp];
        let launch = launches.of(slot);
        // What it waits for, if anything, from the next cycle on.
        let wait = match inst.op {
            Op::Cluster(step) if lanes != 0 => {
                let (core, counted) = (&mut self.core, &mut self.lsu.remote.counted);
                return cluster_barrier::step(warp, (step, lanes), core, counted, &moment!(self, cycle, launches), cx);
            }
            // The pc moves before the wait: after it the warp goes on.
            Op::Grid(step) => {
                slot.warp.advance();
                let m = &mut moment!(self, cycle, launches);
                let waits = lanes != 0 && self.dependents.step(warp, step, &self.core, m, cx);
                waits.then_some(Wait::Prerequisites)
            }
            Op::Trap(trap) if lanes != 0 => {
                return Err(Box::new(ProgramFault::of_trap(trap, launch, &slot.warp, lanes)));
            }
            Op::Pm(_) => {
                // As with memory, the pc moves after the issue, and before any wait, after which the warp
                // goes on there.
                let (core, lsu, memory) = (&mut self.core, &mut self.lsu, &mut self.memory);
                let m = &mut moment!(self, cycle, launches);
                let waits = persist::issue_persistency(warp, lanes, core, lsu, memory, &self.front_end, m);
                self.core.slots[warp].warp.advance();
                let Some((kind, rule)) = waits? else { return Ok(true) };
                let mut path = fence_path!(self, cycle + 1, launches);
                if kind.scope() == PersistScope::Kernel {
                    // CTAs synchronise there, in memory too: a fence of scope gpu comes first.
                    path.fence(warp, AfterFence::Barrier(kind, rule), cx);
                } else {
                    path.persist_fence(warp, kind, rule, cx);
                }
                return Ok(false);
            }
            // Copies go on by themselves: of their instructions only those wait that ask for their end.
            Op::BulkGroups(step) => {
                slot.warp.advance();
                if lanes != 0 { self.engine.copies.step_groups(warp, step) } else { None }
            }
            Op::Bulk(bulk) => {
                let cta = &self.core.ctas[usize::from(slot.cta)];
                let m = &mut moment!(self, cycle, launches);
                let issued = self.engine.issue(warp, inst, bulk, lanes, (slot, cta), m);
                slot.warp.advance();
                issued?.then_some(Wait::BulkDurable)
            }
            Op::Copies(step) => {
                slot.warp.advance();
                let kept = if lanes != 0 { self.core.copies.groups[warp].step(step) } else { None };
                kept.map(Wait::Copies)
            }
            Op::Registers(step) => return self.core.move_registers(warp, (step, lanes), cycle, launch),
            Op::WarpGroup(step) => {
                if lanes != 0 {
                    step_group(&mut self.core, (warp, step), (inst, lanes), &mut moment!(self, cycle, launches))?;
                }
                self.core.slots[warp].warp.advance();
                None
            }
            // It moves the pc itself, and waits where columns are not free.
            Op::Tensor(step) => {
                let issue = TensorIssue { warp, step, inst, lanes };
                let stepped = step_tensor(&mut self.core, issue, &mut moment!(self, cycle, launches));
                // Whatever it has come to, the peer hears of it.
                self.core.tensor.pairs.send(&self.w, cx);
                return stepped;
            }
            Op::AwaitPhase(parity) => {
                let times = (cycle, self.p.shared.latency_cycles);
                return Ok(await_phase(&mut self.core, warp, (lanes, parity), times, launches));
            }
            Op::Cluster(_) | Op::Trap(_) => {
                slot.warp.advance();
                None
            }
            _ => unreachable!("`execute` has the other instructions"),
        };
        if let Some(wait) = wait {
            self.core.enter(warp, wait, cycle + 1);
        }
        Ok(wait.is_none())
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
        let scope = PairScope::new(&self.p, &self.w, &self.record, launches);
        if let Err(fault) = tensor_pair::receive(&mut self.core, message, cycle, scope) {
            self.fail(*fault, cx);
        }
        self.core.tensor.pairs.send(&self.w, cx);
    }

    /// Tells the CTAs of a cluster when all lanes of one have come to its barrier that have not exited, or
    /// all have exited.
    #[inline]
    fn tell_cluster(&mut self, cta: usize, cycle: u32, launches: &LaunchTable, cx: &mut Ctx<'_, Msg>) {
        if self.core.ctas[cta].seat.is_some() {
            let counted = &mut self.lsu.remote.counted;
            cluster_barrier::tell(cta, &mut self.core, counted, &moment!(self, cycle, launches), cx);
        }
    }

    /// A request to another SM is answered.
    pub(super) fn remote_answered(
        &mut self,
        access: Box<RemoteAccess>,
        cycle: u32,
        launches: &LaunchTable,
        cx: &mut Ctx<'_, Msg>,
    ) {
        if let Err(fault) = end_access(&access, &mut self.core, launches) {
            self.fail(*fault, cx);
            return;
        }
        match access.from.load {
            Some(load) => self.answered(load, cycle, cycle, launches, cx),
            None => self.store_performed(usize::from(access.from.warp), 0, cycle, launches, cx),
        }
        self.lsu.remote.recycle(access);
    }

    /// Parts of copies leave for other SMs.
    #[inline]
    fn send_parts(&mut self, cycle: u32, launches: &LaunchTable, cx: &mut Ctx<'_, Msg>) {
        let remote = &mut self.lsu.remote;
        send_parts(&mut self.engine.copies, &self.core, remote, &moment!(self, cycle, launches), cx);
    }

    /// A part of a copy is in another SM.
    pub(super) fn part_answered(
        &mut self,
        part: Box<RemotePart>,
        cycle: u32,
        launches: &LaunchTable,
        cx: &mut Ctx<'_, Msg>,
    ) {
        match self.engine.copies.part_came(part, &mut self.core, launches) {
            Ok(None) => {}
            Ok(Some(warp)) => self.resume(warp, cycle, launches, cx),
            Err(fault) => self.fail(*fault, cx),
        }
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
        let m = &mut moment!(self, cycle, launches);
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
            Stepped::Leaves => {
                send_access(&self.core, &mut self.lsu.remote, &moment!(self, cycle, launches), cx);
            }
            Stepped::Serves { passes } => {
                let m = &mut moment!(self, cycle, launches);
                serve_access(passes, &mut self.core, &mut self.lsu.remote, m, cx);
            }
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
            match self.engine.copies.land(cycle, &mut self.core, launches, self.w.index) {
                Ok(None) => break,
                Ok(Some(warp)) => self.resume(warp, cycle, launches, cx),
                Err(fault) => {
                    self.fail(*fault, cx);
                    return;
                }
            }
        }
        let m = &mut moment!(self, cycle, launches);
        let (core, lsu, memory) = (&mut self.core, &mut self.lsu, &mut self.memory);
        if let Some(warp) = self.engine.step(core, lsu, memory, &mut self.front_end, m, cx) {
            self.resume(warp, cycle, launches, cx);
        }
        self.send_parts(cycle, launches, cx);
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
        self.send_parts(cycle, launches, cx);
        self.bulk_answered(copy + 1, cycle, launches, cx);
    }

    /// An asynchronous copy's bytes arrive in shared memory.
    #[inline(never)]
    pub(super) fn land(&mut self, load: u16, cycle: u32, launches: &LaunchTable, cx: &mut Ctx<'_, Msg>) {
        match self.lsu.land(load, &mut self.core, launches) {
            Ok(warp) => self.resume(warp, cycle, launches, cx),
            Err(fault) => self.fail(*fault, cx),
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
            wait @ (Wait::Bulk(_) | Wait::BulkReads(_)) if self.engine.copies.lets_go(warp, wait) => {
                self.core.settle(warp, cycle, launch);
            }
            Wait::BulkDurable if slot.under_way.bulk == 0 && slot.under_way.persists == 0 => {
                self.record.note(slot, FactKind::FencePassed, 0);
                self.core.settle(warp, cycle, launch);
            }
            Wait::Performed(then) if self.core.is_performed(warp) => {
                fence_path!(self, cycle, launches).release(warp, then, cx);
            }
            Wait::Durable { ordered, flushing: false, then } if slot.under_way.awaited(ordered) == 0 => {
                fence_path!(self, cycle, launches).pass_durable(warp, then, cx);
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
                self.send_parts(cycle, launches, cx);
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
                self.lsu.load(load).deliver_atomics(&mut self.core.slots, &atomics);
                self.lsu.spare_atomics.push(atomics);
                self.answered(load, cycle, cycle, launches, cx);
            }
            (RequestKind::WriteBackAll, _) => cta_end!(self).slice_written_back(reply.tag as usize, cx),
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
                    fence_path!(self, cycle, launches).grid_acknowledged(cx);
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
        fence_path!(self, cycle, launches).persisted(cx);
        self.released(cycle, launches, cx);
    }

    /// Lets those go on whose releases are complete.
    fn released(&mut self, cycle: u32, launches: &LaunchTable, cx: &mut Ctx<'_, Msg>) {
        if self.memory.leaving.releases != 0 {
            fence_path!(self, cycle, launches).released(cx);
            cta_end!(self).released(cx);
        }
    }

    /// A warp's last lane has exited in `cycle`.
    fn warp_exited(
        &mut self,
        warp: usize,
        cycle: u32,
        launches: &LaunchTable,
        cx: &mut Ctx<'_, Msg>,
    ) -> Result<(), Fault> {
        let launch = launches.of(&self.core.slots[warp]);
        let cta = self.core.exit(warp, cycle);
        if self.core.ctas[cta].live == 0 {
            self.core.slots[warp].warp.check_columns_freed(self.core.tensor.memory(cta), launch)?;
        }
        self.tell_cluster(cta, cycle, launches, cx);
        self.retire_if_drained(warp, cycle, cx);
        let arrived = self.core.open_without(cta, cycle, launch, &mut self.record);
        fence_path!(self, cycle, launches).all_arrived(arrived, cx);
        Ok(())
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
            cta_end!(self).end(cta, cx);
        }
    }
}
