//! Issue: what happens to a warp in the cycle in which its next instruction goes to a unit.

use crate::engine::Ctx;
use crate::kernel::fault::ProgramFault;
use crate::kernel::ir::{Class, Inst, MachineRead, MemKind, Op, Scope, Space};
use crate::kernel::launch::Launch;
use crate::machine::msg::Msg;
use crate::machine::scheduler::Unit;
use crate::persist::handler::Event;
use crate::persist::journal::FactKind;
use crate::persist::vocab::{FenceKind, PersistScope};

use super::Sm;
use super::wait::{Account, AfterFence, Wait};

impl Sm {
    /// Issues the next instruction of a warp that its scheduler has picked, and a second one where the machine can.
    pub(super) fn issue(&mut self, warp: usize, cycle: u32, launch: &Launch, cx: &mut Ctx<'_, Msg>) {
        let scheduler = usize::from(self.core.slots[warp].scheduler);
        let mut units = 0u8;
        for nth in 1..=self.p.sm.issue_width {
            let (class, unit) = (self.core.slots[warp].class, self.core.slots[warp].unit);
            units |= 1 << unit as u8;
            self.core.schedulers[scheduler].free_at[unit as usize] = cycle + self.core.interval[class as usize];
            self.core.class_counts[class as usize] += 1;
            self.execute(warp, class, cycle, launch, cx);
            if nth == self.p.sm.issue_width || !self.can_pair(warp, units, cycle, launch) {
                break;
            }
            let rank = self.core.slots[warp].rank;
            self.core.schedulers[scheduler].unready(rank);
        }
        let account = self.core.slots[warp].wait.account();
        self.core.accounts.issued_into(account);
        if account != Account::Empty {
            self.core.slots[warp].issued_at = cycle;
        }
    }

    /// A warp that has just issued can issue again in the same cycle, to a unit not in `units`.
    fn can_pair(&mut self, warp: usize, units: u8, cycle: u32, launch: &Launch) -> bool {
        let slot = &self.core.slots[warp];
        if slot.wait != Wait::Issue || slot.not_before > cycle || self.failed {
            return false;
        }
        let pc = slot.warp.pc() as usize;
        let unit = slot.unit;
        let registers_ready = launch.kernel.hazards[pc].check.iter().all(|&r| slot.ready_at[usize::from(r)] <= cycle);
        let free = self.core.schedulers[usize::from(slot.scheduler)].free_at[unit as usize] <= cycle;
        let may =
            units >> unit as u8 & 1 == 0 && registers_ready && free && (unit != Unit::Memory || self.lsu.has_room());
        // One that has to wait for the front-end buffer is set aside when it is picked.
        may && !(self.front_end.present && self.path_blocks(warp, launch, true))
    }

    fn execute(&mut self, warp: usize, class: Class, cycle: u32, launch: &Launch, cx: &mut Ctx<'_, Msg>) {
        let slot = &mut self.core.slots[warp];
        let pc = slot.warp.pc() as usize;
        let inst = &launch.kernel.code[pc];
        let lanes = slot.warp.guarded(inst);
        self.record.counters.thread_instructions += u64::from(lanes.count_ones());
        let latency = self.core.latency[class as usize];
        match inst.op {
            Op::Alu(_) => {
                slot.warp.alu(inst, launch, lanes);
                self.core.write_from(warp, pc, cycle + latency, launch);
                self.core.slots[warp].warp.advance();
            }
            Op::Mem(mem) => {
                if lanes != 0 && matches!(mem.kind, MemKind::Atomic | MemKind::Reduction) {
                    self.record.note(&self.core.slots[warp], FactKind::Synchronised, 0);
                    if self.leaving.order.is_some() {
                        self.core.share_fences(warp);
                    }
                    if self.host.wants.accesses && matches!(mem.space, Space::Global | Space::Generic) {
                        self.host.tell(&Event::Atomic);
                    }
                }
                if let Err(fault) = self.issue_memory(warp, pc, inst, mem, lanes, cycle, launch) {
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
                if lanes != 0 {
                    self.arrive(warp, barrier, lanes, cycle, launch);
                    return;
                }
                slot.warp.advance();
            }
            Op::Fence(scope) => {
                slot.warp.advance();
                if lanes != 0 {
                    self.record.note(&self.core.slots[warp], FactKind::Synchronised, 0);
                    self.orders_copies(warp);
                    if self.leaving.order.is_some() {
                        self.core.share_fences(warp);
                    }
                }
                if lanes != 0 && scope != Scope::Cta {
                    let durable = self.fence_persists(scope);
                    let then = if durable { AfterFence::Sfence } else { AfterFence::Nothing };
                    self.fence(warp, then, cycle, launch, cx);
                    return;
                }
            }
            Op::Exit => {
                slot.warp.exit(lanes);
                if slot.warp.is_done() {
                    self.warp_exited(warp, cycle, launch, cx);
                    return;
                }
                slot.not_before = cycle + latency;
            }
            Op::Trap(trap) => {
                if lanes != 0 {
                    let fault = ProgramFault::of_trap(trap, launch, &slot.warp, lanes);
                    self.fail(fault, cx);
                    return;
                }
                slot.warp.advance();
            }
            Op::Nop => slot.warp.advance(),
            Op::Pm(op) => {
                let waits = self.issue_persistency(warp, inst, op, lanes, launch);
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
                        return;
                    }
                    Err(fault) => {
                        self.fail(*fault, cx);
                        return;
                    }
                }
            }
            Op::Machine(read) => {
                self.read_machine(warp, inst, read, lanes, cycle, cx);
                self.core.write_from(warp, pc, cycle + latency, launch);
                self.core.slots[warp].warp.advance();
            }
        }
        self.core.settle(warp, cycle + 1, launch);
    }

    fn fence(&mut self, warp: usize, then: AfterFence, cycle: u32, launch: &Launch, cx: &mut Ctx<'_, Msg>) {
        let slot = &mut self.core.slots[warp];
        if slot.under_way.is_performed() {
            self.release(warp, then, cycle + 1, launch, cx);
        } else {
            self.core.enter(warp, Wait::Performed { then, cleaning: 0 }, cycle + 1);
        }
    }

    /// A fence's loads and stores are done: what others wrote must be seen from here on.
    pub(super) fn pass_fence(
        &mut self,
        warp: usize,
        then: AfterFence,
        cycle: u32,
        launch: &Launch,
        cx: &mut Ctx<'_, Msg>,
    ) {
        if self.p.l1.fence_invalidates {
            self.l1.invalidate_all();
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
            MachineRead::GlobalTimer => self.w.timebase.ps_of_ticks(cx.now()) / 1000,
            MachineRead::SmId => u64::from(self.w.index),
            MachineRead::NSmId => u64::from(self.p.sm.count),
            MachineRead::WarpId => warp as u64,
            MachineRead::NWarpId => u64::from(self.p.sm.warps),
        };
        self.core.slots[warp].warp.write_machine(inst, lanes, value);
    }
}
