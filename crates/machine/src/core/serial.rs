//! Instructions that are executed alone: atomics, fences that wait, control registers, verbs, system calls.
//!
//! All of them wait until everything before has retired and every store is performed. An atomic then needs
//! its line for itself, `lr` too, and is performed in the event in which the line comes: so somebody always
//! gets on. An `sc` whose reservation is lost fails at once and asks for nothing; what holds the line until
//! the `sc` is in [`super::reserved`].

use crate::coherence::Want;
use durawarp_kernel::memory::Medium;
use durawarp_persist::handler::CoreFences;
use durawarp_persist::journal::FactKind;
use durawarp_riscv::decode::csr;
use durawarp_riscv::fault::FaultKind;
use durawarp_riscv::instruction::{Class, Inst, NOWHERE, Op};
use durawarp_riscv::semantics::{self, atomic};

use super::calls;
use super::cause::Cause;
use super::commit;
use super::execute::observed;
use super::hart::{Blocked, Hart, Moment, Stall};
use super::l1d::{LineState, line_of};
use super::region;
use super::reserved::Reservation;
use super::store_queue::{StoreEntry, StoreKind};
use super::verbs;
use super::weakened::OrderRule;
use super::window::{Retires, Source};

/// A fence of persistency has something to wait for.
pub(super) fn persist_waits(inst: &Inst, m: &Moment<'_, '_>) -> bool {
    match m.host.policy.fences {
        CoreFences::Wait => true,
        CoreFences::Order => inst.op == Op::PmDfence,
        CoreFences::Pass => false,
    }
}

/// A fence orders what is persistent without waiting.
pub(super) fn orders(inst: &Inst, m: &Moment<'_, '_>) -> bool {
    let by_fence = inst.class() == Class::Fence && m.program.spec.fence_persists;
    (inst.op == Op::PmOfence || by_fence) && m.host.policy.fences == CoreFences::Order
}

/// The instruction is one of durability.
fn is_persist(inst: &Inst, m: &Moment<'_, '_>) -> bool {
    let by_fence = inst.class() == Class::Fence && m.program.spec.fence_persists;
    (inst.class() == Class::Persist || by_fence) && persist_waits(inst, m)
}

fn cause(inst: &Inst, m: &Moment<'_, '_>) -> Cause {
    match inst.class() {
        Class::Amo | Class::LoadReserved | Class::StoreConditional => Cause::Atomic,
        Class::System => Cause::Call,
        _ if is_persist(inst, m) => Cause::Persist,
        _ => Cause::Fence,
    }
}

/// Gets on with the instruction that is executed alone.
pub(super) fn step(hart: &mut Hart, inst: &Inst, cycle: u64, m: &mut Moment<'_, '_>) -> Result<(), Stall> {
    let cause = cause(inst, m);
    let stall = |until| Err(Stall { cause, until });
    if !hart.window.is_empty() && !passes(hart, inst, OrderRule::AtomicsAfterLoads, m) {
        return stall(hart.retires_at(cycle));
    }
    if !hart.stores.is_empty() && !passes(hart, inst, OrderRule::AtomicsAfterStores, m) {
        // The store that is performed last has this looked at again.
        return stall(None);
    }
    if (m.host.policy.renaming || m.host.policy.synchronises) && !region::synchronise(hart, inst, cycle, m) {
        return Err(Stall { cause: Cause::Persist, until: None });
    }
    let waits = is_persist(inst, m);
    if waits && (m.cache.cleanings_of(hart.index) > 0 || !m.host.is_durable(hart.index))
        || orders(inst, m) && !m.host.admits(hart.index, (cycle, m.program.clock), &mut m.record.counters)
    {
        return stall(None);
    }
    // Now everything before it is done, and seen.
    let pc = hart.front.pc;
    match inst.class() {
        Class::Amo | Class::LoadReserved | Class::StoreConditional => {
            if !perform(hart, inst, pc, cycle, m) {
                return stall(None);
            }
        }
        Class::System => {
            go_on(hart, inst);
            calls::call(hart, cycle, m);
            return Ok(());
        }
        Class::Remote => verbs::perform(hart, inst, cycle, m),
        Class::Csr => {
            // All before it has retired: the exceptions are exact. Later instructions are dispatched with the
            // new rounding mode.
            let old = csr_value(hart, inst, cycle, m);
            let a = if let Source::Ready(a, _) = hart.window.source(inst.rs1) { a } else { 0 };
            if let Some(new) = semantics::csr_written(inst, old, a) {
                hart.set_fcsr(semantics::status_written(inst.imm & 0xfff, hart.fcsr(), new));
            }
            hart.window.push(pc, inst.rd, Retires::Plain, old, cycle + 1);
        }
        _ => {
            if orders(inst, m) {
                commit::order(hart, pc, cycle, m);
            }
            if waits {
                m.record.counters.durable_fences += 1;
                m.record.counters.durable_fence_cycles += cycle - hart.front.alone_since;
                m.record.note(m.program.clock.cycles(cycle), FactKind::FencePassed, hart.index, pc, 0);
            }
            hart.window.push(pc, NOWHERE, Retires::Plain, 0, cycle + 1);
        }
    }
    go_on(hart, inst);
    Ok(())
}

/// An atomic whose operands are there does not wait for what is older, on a core that lacks the rule.
#[cold]
fn passes(hart: &Hart, inst: &Inst, rule: OrderRule, m: &Moment<'_, '_>) -> bool {
    let known = |of| matches!(hart.window.source(of), Source::Ready(..));
    let lacks = m.program.weakened.lacks(rule) && cause(inst, m) == Cause::Atomic;
    lacks && known(inst.rs1) && known(inst.rs2) && hart.open_branches == 0
}

/// The instruction is executed; the next one follows.
fn go_on(hart: &mut Hart, inst: &Inst) {
    if !matches!(hart.front.blocked, Blocked::Fault) {
        hart.front.blocked = Blocked::No;
        if let Some(regions) = &mut hart.regions {
            regions.performed(hart.front.pc, inst, inst.class() != Class::System);
        }
        hart.front.pc = hart.front.pc.wrapping_add(u64::from(inst.length));
    }
}

/// The value of a control and status register.
pub(super) fn csr_value(hart: &Hart, inst: &Inst, cycle: u64, m: &Moment<'_, '_>) -> u64 {
    let number = inst.imm & 0xfff;
    semantics::status(number, hart.fcsr()).unwrap_or_else(|| match number {
        csr::CYCLE => cycle,
        csr::INSTRET => hart.window.next() - 1,
        csr::TIME => m.program.ns(cycle),
        _ => 0,
    })
}

/// Performs an atomic if its line is there; asks for the line otherwise.
fn perform(hart: &mut Hart, inst: &Inst, pc: u64, cycle: u64, m: &mut Moment<'_, '_>) -> bool {
    let value = |register| if let Source::Ready(value, _) = hart.window.source(register) { value } else { 0 };
    let (virtual_address, operand) = (value(inst.rs1), value(inst.rs2));
    let width = inst.width();
    let done = cycle + u64::from(m.program.spec.amo_cycles);
    let bytes = u64::from(width);
    // A fault of an instruction that is alone is one at once.
    let fault = if !virtual_address.is_multiple_of(bytes) {
        Some(FaultKind::MisalignedAtomic { address: virtual_address, bytes: width })
    } else if m.program.code.overlaps(virtual_address, bytes) && inst.class() != Class::LoadReserved {
        Some(FaultKind::CodeWrite { address: virtual_address })
    } else {
        None
    };
    let physical = m.program.memory.physical(virtual_address, bytes);
    let write = inst.class() != Class::LoadReserved;
    let unmapped = FaultKind::Unmapped { address: virtual_address, bytes, write };
    let (None, Some(address)) = (fault, physical) else {
        let number = hart.window.push(pc, NOWHERE, Retires::Plain, 0, cycle + 1);
        hart.note_fault(number, fault.unwrap_or(unmapped));
        return true;
    };
    let line = line_of(address);
    let reservation = Reservation { line, address, width };
    let reserved = hart.reserved.matches(reservation) || m.program.weakened.lacks(OrderRule::Reservations);
    if inst.class() == Class::StoreConditional && !reserved {
        m.record.counters.atomics += 1;
        m.record.counters.failed_conditionals += 1;
        let since = hart.reserved.end(cycle).unwrap_or(hart.front.alone_since);
        m.record.counters.failed_conditional_cycles += done - since;
        hart.window.push(pc, inst.rd, Retires::Plain, 1, done);
        return true;
    }
    // Others have waited for the line since an earlier reservation: it is theirs first.
    if !write && m.cache.kept.is_reserved(line) {
        return false;
    }
    let split = inst.class() == Class::Amo && m.program.weakened.lacks(OrderRule::AtomicReadWrite);
    let (want, needed) =
        if split { (Want::Shared, LineState::Shared) } else { (Want::Exclusive, LineState::Exclusive) };
    let Some(place) = m.cache.l1.look_up_in(line, needed) else {
        let delay = m.program.until(cycle + m.program.hit_cycles, m.cx);
        m.cache.ask(line, want, delay, &mut m.record.counters, m.cx);
        return false;
    };
    // The line may have brought something that has to come before.
    if !m.host.may_synchronise(hart.index) {
        return false;
    }
    if write
        && Medium::of(address) == Medium::Nvm
        && !m.host.admits(hart.index, (cycle, m.program.clock), &mut m.record.counters)
    {
        return false;
    }
    // The line is there: reading and writing are one event.
    m.record.counters.atomics += 1;
    let offset = (address - line) as usize;
    let old = m.cache.l1.read(place, offset, width.into());
    observed(hart.index, line, m);
    let (new, result) = match inst.class() {
        Class::LoadReserved => {
            let until = done + u64::from(m.program.spec.lr_hold_cycles);
            hart.reserved.reserve(reservation, hart.front.alone_since, until);
            (None, semantics::loaded(inst.op, old))
        }
        Class::StoreConditional => {
            hart.reserved.end(cycle);
            (Some(operand), 0)
        }
        _ => (Some(atomic::stored(inst.op, old, operand)), atomic::fetched(width, old)),
    };
    if split {
        // Its store is as any other.
        let number = hart.window.push(pc, inst.rd, Retires::Store, result, done);
        let (address, value, kind) = (Some(address), new, StoreKind::Store);
        hart.stores.push(StoreEntry { number, pc, address, value, ready: cycle, width, kind });
        return true;
    }
    if let Some(new) = new {
        let changes = m.cache.l1.write(place, offset, width.into(), new);
        if let Some(watch) = &mut m.record.watch
            && changes
        {
            watch.changed(hart.index);
        }
        m.changed.push((line, Some(hart.index)));
        m.record.retired(m.program.clock.cycles(cycle), hart.index, pc, address, width.into(), new);
        commit::performed(hart.index, pc, (address, width.into()), new, false, cycle, m);
        if m.host.policy.renaming && inst.class() == Class::Amo {
            region::atomic(hart, cycle, m);
        }
    }
    hart.window.push(pc, inst.rd, Retires::Plain, result, done);
    true
}
