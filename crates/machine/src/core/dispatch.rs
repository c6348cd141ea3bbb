//! Dispatch: instruction after instruction enters the window, in program order along the predicted path.
//!
//! | instruction | operands are there | an operand waits for memory |
//! |---|---|---|
//! | arithmetic | executed, result at operands + latency | waits in the window |
//! | load, store | loads look for their bytes | waits; loads wait behind an unknown address |
//! | branch | resolved at operands + 1 cycle; a wrong prediction stops dispatch until then + redirect | predicted |
//! | indirect jump | goes on at its target, as one that is predicted | stops dispatch until the target is known |
//! | atomic, fence, call | executed alone, see [`super::serial`] | - |
//!
//! Not modelled: fetch and its cache, limits of execution units.

use crate::coherence::Want;
use durawarp_riscv::decode::csr;
use durawarp_riscv::fault::FaultKind;
use durawarp_riscv::instruction::{Class, Inst, NOWHERE, Op, X0};
use durawarp_riscv::semantics;

use super::cause::Cause;
use super::execute::{self, Loading};
use super::hart::{Blocked, Hart, Moment, Stall, Waiting};
use super::insert;
use super::l1d::{LineState, line_of};
use super::region;
use super::serial;
use super::store_queue::{StoreEntry, StoreKind};
use super::thread::Thread;
use super::weakened::OrderRule;
use super::window::{PENDING, Retires, Source};

/// A fence orders stores before it (bit 0) and loads (bit 1), as `Inst::ordered` has it.
const WRITES: u8 = 1;
const READS: u8 = 2;

/// Dispatches instructions in a cycle, at most one a slot: how many, and why not more.
#[inline]
pub(super) fn dispatch(hart: &mut Hart, cycle: u64, slots: u32, m: &mut Moment<'_, '_>) -> (u32, Option<Stall>) {
    let mut used = 0;
    while used < slots {
        if let Err(stall) = stretch(hart, cycle, slots, &mut used, m) {
            return (used, Some(stall));
        }
    }
    (used, None)
}

/// Dispatches instructions within the slots that are not used, up to one after which dispatch may be closed.
#[inline]
fn stretch(hart: &mut Hart, cycle: u64, slots: u32, used: &mut u32, m: &mut Moment<'_, '_>) -> Result<(), Stall> {
    if !matches!(hart.thread, Thread::Running) {
        return Err(Stall { cause: hart.thread.cause(), until: None });
    }
    if cycle < hart.front.resume_at {
        return Err(Stall { cause: Cause::Redirect, until: Some(hart.front.resume_at) });
    }
    // What stands at the head of dispatch may be waiting, though there is room behind it.
    match hart.front.blocked {
        Blocked::No => {}
        Blocked::Jump(_) => return Err(Stall { cause: Cause::Memory, until: None }),
        Blocked::Fault => return Err(Stall { cause: Cause::Execution, until: hart.retires_at(cycle) }),
        Blocked::Serial(inst) => {
            serial::step(hart, &inst, cycle, m)?;
            *used += 1;
            return Ok(());
        }
    }
    if hart.regions.is_some() || m.host.policy.renaming {
        one_of_region(hart, cycle, m)?;
        *used += 1;
        return Ok(());
    }
    let code = &m.program.code;
    // All that was asked above stays as it is, unless an instruction is seen to have changed it.
    while *used < slots {
        if hart.window.is_full() {
            return Err(hart.behind_oldest(cycle));
        }
        let pc = hart.front.pc;
        let Some(inst) = code.at(pc) else {
            fault(hart, pc, cycle, FaultKind::NoCode);
            *used += 1;
            return Ok(());
        };
        enter(hart, pc, inst, cycle, m)?;
        *used += 1;
        // A load or a store that faults closes dispatch; branches, jumps and all that is seldom may.
        let may_be_closed = match inst.class() {
            Class::Alu => false,
            Class::Load | Class::Store => hart.fault.is_some(),
            _ => true,
        };
        if may_be_closed {
            break;
        }
    }
    Ok(())
}

/// Dispatches the next instruction, or what a region inserts before it.
fn one_of_region(hart: &mut Hart, cycle: u64, m: &mut Moment<'_, '_>) -> Result<(), Stall> {
    if hart.window.is_full() {
        return Err(hart.behind_oldest(cycle));
    }
    let pc = hart.front.pc;
    if let Some(regions) = &mut hart.regions {
        // A thread begins behind the region that began it.
        if regions.begins {
            if !m.host.may_synchronise(hart.index) {
                return Err(Stall { cause: Cause::Persist, until: None });
            }
            regions.begins = false;
        }
        // What a boundary stores comes before the instruction.
        if !regions.are_inserted(pc) {
            return insert::dispatch(hart, cycle, m);
        }
    }
    let Some(&inst) = m.program.code.at(pc) else {
        fault(hart, pc, cycle, FaultKind::NoCode);
        return Ok(());
    };
    if m.host.policy.renaming {
        region::admit(hart, &inst, cycle, m)?;
    }
    enter(hart, pc, &inst, cycle, m)
}

/// An instruction enters the window, where there is room. Called, it took 14 host instructions more.
#[inline(always)]
fn enter(hart: &mut Hart, pc: u64, inst: &Inst, cycle: u64, m: &mut Moment<'_, '_>) -> Result<(), Stall> {
    match inst.class() {
        Class::Alu | Class::Mul | Class::Div | Class::Fp | Class::FpDiv | Class::FpMove | Class::FpConvert => {
            arithmetic(hart, pc, inst, cycle, m)?;
        }
        Class::Load => load(hart, pc, inst, cycle, m)?,
        Class::Store | Class::CacheLine => store(hart, pc, inst, cycle, m)?,
        Class::Branch => {
            branch(hart, pc, inst, cycle, m)?;
            return next(hart, pc, inst);
        }
        Class::Jump => {
            jump(hart, pc, inst, cycle)?;
            return next(hart, pc, inst);
        }
        _ => {
            return rare(hart, pc, inst, cycle, m);
        }
    }
    hart.front.pc = pc.wrapping_add(u64::from(inst.length));
    next(hart, pc, inst)
}

/// An instruction was dispatched: another one is at the head.
#[inline]
pub(super) fn next(hart: &mut Hart, pc: u64, inst: &Inst) -> Result<(), Stall> {
    if let Some(regions) = &mut hart.regions {
        regions.dispatched(pc, inst);
    }
    Ok(())
}

/// The values of an instruction's sources and the cycle from which all are there; none while one is pending.
#[inline]
fn ready(sources: &[Source; 3], cycle: u64) -> Option<([u64; 3], u64)> {
    let mut at = cycle;
    let mut values = [0; 3];
    for (value, source) in values.iter_mut().zip(sources) {
        let Source::Ready(of_source, ready) = *source else { return None };
        *value = of_source;
        at = at.max(ready);
    }
    Some((values, at))
}

#[inline]
fn sources(hart: &Hart, inst: &Inst) -> [Source; 3] {
    inst.sources().map(|register| hart.window.source(register))
}

#[inline]
fn arithmetic(hart: &mut Hart, pc: u64, inst: &Inst, cycle: u64, m: &mut Moment<'_, '_>) -> Result<(), Stall> {
    if inst.class() == Class::Alu {
        let ([a, b], ready) = hart.window.operands([inst.rs1, inst.rs2]);
        if ready != PENDING {
            hart.window.push(pc, inst.rd, Retires::Plain, semantics::integer(inst, pc, a, b), ready.max(cycle) + 1);
            return Ok(());
        }
    }
    let sources = sources(hart, inst);
    let Some((values, at)) = ready(&sources, cycle) else {
        hart.wait(pc, inst, sources, cycle, Retires::Plain)?;
        return Ok(());
    };
    let number = hart.window.push(pc, inst.rd, Retires::Plain, 0, PENDING);
    execute::compute(hart, number, inst, pc, values, at, m);
    Ok(())
}

fn load(hart: &mut Hart, pc: u64, inst: &Inst, cycle: u64, m: &mut Moment<'_, '_>) -> Result<(), Stall> {
    if hart.window.loads >= hart.room.1 {
        return Err(hart.behind_oldest(cycle));
    }
    let source = hart.window.source(inst.rs1);
    let sources = [source, Source::Ready(0, 0), Source::Ready(0, 0)];
    let Source::Ready(base, at) = source else {
        let number = hart.wait(pc, inst, sources, cycle, Retires::Load)?;
        m.record.counters.loads += 1;
        hart.loads.waits(number);
        return Ok(());
    };
    if hart.waiting.len() >= hart.room.0 {
        // It may have to wait, and must have room to.
        return Err(Stall { cause: Cause::Memory, until: None });
    }
    m.record.counters.loads += 1;
    let number = hart.window.push(pc, inst.rd, Retires::Load, 0, PENDING);
    let loading = execute::load(hart, number, inst, semantics::address(inst, base), at.max(cycle), true, m);
    if loading != Loading::Bound {
        hart.loads.waits(number);
    }
    if loading == Loading::Blocked {
        hart.waiting.push(Waiting { number, pc, inst: *inst, dispatched: cycle, sources, prediction: None });
    }
    Ok(())
}

fn store(hart: &mut Hart, pc: u64, inst: &Inst, cycle: u64, m: &mut Moment<'_, '_>) -> Result<(), Stall> {
    if hart.stores.is_full() {
        return Err(Stall { cause: Cause::Stores, until: hart.retires_at(cycle) });
    }
    // The value, and the address, may come from memory.
    let (base, source) = (hart.window.source(inst.rs1), hart.window.source(inst.rs2));
    let number = match (base, source) {
        (Source::Ready(_, of_base), Source::Ready(_, of_value)) => {
            hart.window.push(pc, inst.rd, Retires::Store, 0, of_base.max(of_value).max(cycle) + 1)
        }
        _ => hart.wait(pc, inst, [base, source, Source::Ready(0, 0)], cycle, Retires::Store)?,
    };
    // It enters the queue in program order, whatever is known of it: loads behind it look there.
    let kind = match inst.op {
        Op::CboClean => StoreKind::Clean,
        Op::CboFlush => StoreKind::Flush,
        _ => StoreKind::Store,
    };
    let (value, ready) = match (kind, source) {
        (StoreKind::Store, Source::Ready(value, ready)) => (Some(value), ready.max(cycle)),
        (StoreKind::Store, Source::Pending(_)) => (None, 0),
        _ => (Some(0), cycle),
    };
    let width = if kind == StoreKind::Store { inst.width() } else { 64 };
    hart.stores.push(StoreEntry { number, pc, address: None, value, ready, width, kind });
    if let Source::Ready(base, at) = base {
        execute::set_address(hart, number, inst, base, m);
        ask_ahead(hart, number, kind, at.max(cycle), m);
        if m.program.weakened.lacks(OrderRule::StoresAfterLoads) {
            perform_at_once(hart, m);
        }
    }
    Ok(())
}

/// A store that will be performed asks for its line when its address is known, so that it need not later.
fn ask_ahead(hart: &Hart, number: u64, kind: StoreKind, at: u64, m: &mut Moment<'_, '_>) {
    if hart.open_branches > 0 || kind != StoreKind::Store || hart.fault.is_some() {
        return;
    }
    let Some(address) = hart.stores.address_of(number) else { return };
    let line = line_of(address);
    if m.cache.l1.state(line) < LineState::Exclusive {
        let delay = m.program.until(at, m.cx);
        m.cache.ask(line, Want::Exclusive, delay, &mut m.record.counters, m.cx);
    }
}

/// The only store of the queue is performed when it is dispatched, before older loads have bound: a core
/// without that order does so, where the line is there and no branch is open.
#[cold]
fn perform_at_once(hart: &mut Hart, m: &mut Moment<'_, '_>) {
    let Some(&StoreEntry { address: Some(address), value: Some(value), width, kind, .. }) = hart.stores.only() else {
        return;
    };
    let line = line_of(address);
    if kind != StoreKind::Store || hart.open_branches > 0 || line_of(address + u64::from(width) - 1) != line {
        return;
    }
    if let Some(place) = m.cache.l1.look_up_in(line, LineState::Exclusive) {
        m.cache.l1.write(place, (address - line) as usize, width.into(), value);
        m.changed.push((line, Some(hart.index)));
        hart.stores.perform_first(width, m.now);
    }
}

fn branch(hart: &mut Hart, pc: u64, inst: &Inst, cycle: u64, m: &mut Moment<'_, '_>) -> Result<(), Stall> {
    let next = pc.wrapping_add(u64::from(inst.length));
    let ([a, b], ready) = hart.window.operands([inst.rs1, inst.rs2]);
    if ready == PENDING {
        let sources = sources(hart, inst);
        hart.wait(pc, inst, sources, cycle, Retires::Plain)?;
        let prediction = hart.predictor.predict(pc);
        if let Some(waiting) = hart.waiting.last_mut() {
            waiting.prediction = Some(prediction);
        }
        hart.open_branches += 1;
        hart.front.pc = if prediction.taken { semantics::target(inst, pc, 0) } else { next };
        return Ok(());
    }
    let at = ready.max(cycle);
    let taken = semantics::taken(inst.op, a, b);
    hart.window.push(pc, NOWHERE, Retires::Plain, 0, at + 1);
    m.record.counters.branches += 1;
    let prediction = hart.predictor.predict(pc);
    if !hart.predictor.resolve(prediction, taken) {
        m.record.counters.mispredictions += 1;
        hart.front.resume_at = at + 1 + u64::from(m.program.spec.redirect_cycles);
        hart.front.redirected_by = pc;
    }
    hart.front.pc = if taken { semantics::target(inst, pc, a) } else { next };
    Ok(())
}

fn jump(hart: &mut Hart, pc: u64, inst: &Inst, cycle: u64) -> Result<(), Stall> {
    let source = if inst.op == Op::Jal { Source::Ready(0, 0) } else { hart.window.source(inst.rs1) };
    match source {
        Source::Ready(a, ready) => {
            // Its target is predicted: dispatch goes on, though the register may come later.
            let complete = ready.max(cycle) + 1;
            hart.window.push(pc, inst.rd, Retires::Plain, semantics::integer(inst, pc, 0, 0), complete);
            hart.front.pc = semantics::target(inst, pc, a);
        }
        Source::Pending(_) => {
            let sources = [source, Source::Ready(0, 0), Source::Ready(0, 0)];
            let number = hart.wait(pc, inst, sources, cycle, Retires::Plain)?;
            hart.front.blocked = Blocked::Jump(number);
        }
    }
    Ok(())
}

/// Instructions that are seldom dispatched.
#[inline(never)]
fn rare(hart: &mut Hart, pc: u64, inst: &Inst, cycle: u64, m: &mut Moment<'_, '_>) -> Result<(), Stall> {
    let mut retires = Retires::Plain;
    match inst.class() {
        Class::Illegal => {
            fault(hart, pc, cycle, FaultKind::Unsupported { word: inst.imm as u32, bytes: inst.length });
            return Ok(());
        }
        Class::System if inst.op == Op::Ebreak => {
            fault(hart, pc, cycle, FaultKind::Breakpoint);
            return Ok(());
        }
        Class::Fence if !m.host.policy.renaming && !fence_waits(inst, m) => {
            if serial::orders(inst, m) {
                order(hart, pc, cycle)?;
                retires = Retires::Store;
            }
        }
        Class::Csr if reads_early(inst) => {
            let value = serial::csr_value(hart, inst, cycle, m);
            hart.window.push(pc, inst.rd, Retires::Plain, value, cycle + 1);
            hart.front.pc = pc.wrapping_add(u64::from(inst.length));
            return next(hart, pc, inst);
        }
        Class::Hint => {}
        Class::Persist => match inst.op {
            // It takes its place behind the stores before it, and nobody waits.
            Op::PmOfence if serial::orders(inst, m) => {
                order(hart, pc, cycle)?;
                retires = Retires::Store;
            }
            Op::PmOfence | Op::PmDfence if serial::persist_waits(inst, m) => return alone(hart, inst, cycle, m),
            Op::PmOfence | Op::PmDfence => {}
            Op::PmOp => retires = Retires::Operation,
            _ => m.record.counters.persistency_hints += 1,
        },
        _ => return alone(hart, inst, cycle, m),
    }
    hart.window.push(pc, NOWHERE, retires, 0, cycle + 1);
    hart.front.pc = pc.wrapping_add(u64::from(inst.length));
    next(hart, pc, inst)
}

/// An ordering fence of persistency goes through the store queue, so that it stands behind earlier stores.
fn order(hart: &mut Hart, pc: u64, cycle: u64) -> Result<(), Stall> {
    if hart.stores.is_full() {
        return Err(Stall { cause: Cause::Stores, until: hart.retires_at(cycle) });
    }
    let number = hart.window.next();
    let kind = StoreKind::Fence;
    hart.stores.push(StoreEntry { number, pc, address: Some(0), value: Some(0), ready: cycle, width: 0, kind });
    Ok(())
}

fn alone(hart: &mut Hart, inst: &Inst, cycle: u64, m: &mut Moment<'_, '_>) -> Result<(), Stall> {
    hart.front.blocked = Blocked::Serial(*inst);
    hart.front.alone_since = cycle;
    serial::step(hart, inst, cycle, m)
}

/// An ordinary fence has something to wait for: stores before it that loads behind it must not pass; under
/// the weak order loads before it, too.
fn fence_waits(inst: &Inst, m: &Moment<'_, '_>) -> bool {
    let (before, after) = inst.ordered();
    let has = |rule| !m.program.weakened.lacks(rule);
    before & WRITES != 0 && after & READS != 0 && has(OrderRule::FenceWritesReads)
        || !m.program.tso && before & READS != 0 && has(OrderRule::FenceReads)
        || m.program.spec.fence_persists && serial::persist_waits(inst, m)
        || m.host.policy.synchronises && before & READS != 0
}

/// A control register that is read only, and known at dispatch: exceptions of floating point are not, as
/// those of instructions before have yet to be raised.
fn reads_early(inst: &Inst) -> bool {
    inst.rs1 == X0 && csr_only_reads(inst) && !matches!(inst.imm & 0xfff, csr::FFLAGS | csr::FCSR)
}

fn csr_only_reads(inst: &Inst) -> bool {
    let immediate = inst.imm >> 12 & 0x1f;
    match inst.op {
        Op::Csrrs | Op::Csrrc => true,
        Op::Csrrsi | Op::Csrrci => immediate == 0,
        _ => matches!(inst.imm & 0xfff, csr::CYCLE | csr::TIME | csr::INSTRET),
    }
}

/// An instruction that is a fault, unless it is squashed.
fn fault(hart: &mut Hart, pc: u64, cycle: u64, kind: FaultKind) {
    let number = hart.window.push(pc, NOWHERE, Retires::Plain, 0, cycle + 1);
    hart.note_fault(number, kind);
}
