//! Execution of instructions whose operands are there: loads, branches, arithmetic; and the pass over those
//! that waited.
//!
//! An instruction is executed once, when its last operand is known: its result has a cycle, which may lie
//! ahead. Order of accesses is the order of execution, which is that of events; cycles say when results may
//! be used. A load that finds its line nowhere, or an older store without address, waits in the window.

use crate::coherence::Want;
use durawarp_persist::handler::CoreEvent;
use durawarp_riscv::fault::FaultKind;
use durawarp_riscv::instruction::{Class, Inst, Op};
use durawarp_riscv::semantics;

use super::cache::{Asked, LoadWaiter};
use super::hart::{Blocked, Hart, Moment, Waiting};
use super::l1d::{line_of, ones};
use super::load_order::LoadLines;
use super::store_queue::Forwarded;
use super::weakened::OrderRule;
use super::window::Source;

/// What came of trying to execute a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loading {
    /// It has its value.
    Bound,
    /// Its line is under way, and it waits there.
    UnderWay,
    /// It must be tried again.
    Blocked,
}

/// Tries to execute a load whose address is known from cycle `at` on. `fresh`: it is dispatched just now.
pub(super) fn load(
    hart: &mut Hart,
    number: u64,
    inst: &Inst,
    address: u64,
    at: u64,
    fresh: bool,
    m: &mut Moment<'_, '_>,
) -> Loading {
    let width = inst.width();
    let Some(address) = m.program.memory.physical(address, width.into()) else {
        hart.window.complete(number, 0, at + 1);
        hart.note_fault(number, FaultKind::Unmapped { address, bytes: width.into(), write: false });
        settle(hart, number, LoadLines::of(0, 1), fresh, m);
        return Loading::Bound;
    };
    // Older stores come first: what they write is not in the L1 yet.
    let found = m.program.weakened.forwarded(hart.stores.forward(number, address, width));
    let Forwarded::Bytes { value, mask, ready } = found else {
        return Loading::Blocked;
    };
    let lines = LoadLines::of(address, width);
    let complete = (at + m.program.hit_cycles).max(forwarded_at(ready, mask, m));
    if u32::from(mask) == (1 << width) - 1 {
        m.record.counters.forwarded_loads += 1;
        bind(hart, number, inst.op, value, complete, lines, fresh, m);
        return Loading::Bound;
    }
    let line = lines.first;
    let offset = (address - line) as usize;
    if !lines.are_one() {
        return load_across(hart, number, inst, address, (value, mask), complete, fresh, m);
    }
    // The rest is in the L1, or comes with the line.
    match m.cache.l1.look_up(line) {
        Some(place) => {
            let bytes = merged(m.cache.l1.read(place, offset, width.into()), value, mask);
            observed(hart.index, line, m);
            bind(hart, number, inst.op, bytes, complete, lines, fresh, m);
            Loading::Bound
        }
        None => {
            let delay = m.program.until(complete, m.cx);
            match m.cache.ask(line, Want::Shared, delay, &mut m.record.counters, m.cx) {
                Asked::Sent(tag) | Asked::UnderWay(tag) => {
                    m.record.counters.l1_load_misses += 1;
                    let (hart, op, earliest) = (hart.index, inst.op, complete);
                    m.cache.wait(tag, LoadWaiter { hart, op, width, number, address, earliest });
                    Loading::UnderWay
                }
                Asked::Full => Loading::Blocked,
            }
        }
    }
}

/// A load across two lines: it binds when both are there at once.
#[expect(clippy::too_many_arguments, reason = "the tail of `load`, which is long enough")]
fn load_across(
    hart: &mut Hart,
    number: u64,
    inst: &Inst,
    address: u64,
    (value, mask): (u64, u8),
    complete: u64,
    fresh: bool,
    m: &mut Moment<'_, '_>,
) -> Loading {
    let (width, lines) = (usize::from(inst.width()), LoadLines::of(address, inst.width()));
    let LoadLines { first: line, last: next } = lines;
    let offset = (address - line) as usize;
    let first = 64 - offset;
    let places = [line, next].map(|line| m.cache.l1.look_up(line));
    if let [Some(low), Some(high)] = places {
        let low = m.cache.l1.read(low, offset, first);
        [line, next].into_iter().for_each(|line| observed(hart.index, line, m));
        let bytes = low | m.cache.l1.read(high, 0, width - first) << (8 * first);
        bind(hart, number, inst.op, merged(bytes, value, mask), complete, lines, fresh, m);
        return Loading::Bound;
    }
    // What is missing is asked for; the other line may be lost meanwhile, and is asked for then.
    let delay = m.program.until(complete, m.cx);
    for (line, place) in [line, next].into_iter().zip(places) {
        if place.is_none() {
            m.cache.ask(line, Want::Shared, delay, &mut m.record.counters, m.cx);
        }
    }
    Loading::Blocked
}

/// The first cycle in which a load may have bytes that the store queue has from a cycle on.
#[inline]
fn forwarded_at(ready: u64, mask: u8, m: &Moment<'_, '_>) -> u64 {
    if mask == 0 { 0 } else { ready + u64::from(m.program.spec.forward_cycles) }
}

/// Bytes of a line under those that older stores of the hart have yet to write.
#[inline]
fn merged(line: u64, stored: u64, mask: u8) -> u64 {
    if mask == 0 {
        return line;
    }
    let mut of_stores = 0;
    for byte in (0..8).filter(|&byte| mask >> byte & 1 == 1) {
        of_stores |= 0xff << (8 * byte);
    }
    line & !of_stores | stored & of_stores
}

/// A hart has loaded bytes of a line in the L1: what it stores next may follow from what others stored there.
#[inline]
pub(super) fn observed(hart: u8, line: u64, m: &mut Moment<'_, '_>) {
    if m.host.policy.dependencies {
        let time = m.program.clock.cycles(m.now).max(m.cx.now());
        m.record.observed(time, hart, line);
        m.host.tell(&CoreEvent::Observed { hart, line }, time, m.record.journal.as_mut(), m.cx);
    }
}

/// A load has its bytes.
#[expect(clippy::too_many_arguments, reason = "what a load is and what it found")]
#[inline]
fn bind(
    hart: &mut Hart,
    number: u64,
    op: Op,
    raw: u64,
    complete: u64,
    lines: LoadLines,
    fresh: bool,
    m: &mut Moment<'_, '_>,
) {
    hart.window.complete(number, semantics::loaded(op, raw), complete);
    settle(hart, number, lines, fresh, m);
}

/// A load has bound: its place in the order.
#[inline]
fn settle(hart: &mut Hart, number: u64, mut lines: LoadLines, fresh: bool, m: &mut Moment<'_, '_>) {
    if !lines.are_one() && m.program.weakened.lacks(OrderRule::SecondLine) {
        lines.last = lines.first;
    }
    if fresh {
        hart.loads.bound_at_once(number, lines);
        return;
    }
    if let Some(first) = hart.loads.bound(number, lines)
        && !m.program.weakened.lacks(OrderRule::SameAddressLoads)
    {
        hart.execute_again(first, m.now, m);
    }
}

/// A line has come that a load waited for.
pub(super) fn bind_waiter(hart: &mut Hart, waiter: &LoadWaiter, m: &mut Moment<'_, '_>) {
    // Loads of this hart after it may have been squashed by one before it in this very event.
    if waiter.number >= hart.window.next() {
        return;
    }
    let line = line_of(waiter.address);
    let found = m.program.weakened.forwarded(hart.stores.forward(waiter.number, waiter.address, waiter.width));
    let (Some(place), Forwarded::Bytes { value, mask, ready }) = (m.cache.l1.look_up(line), found) else {
        unreachable!("the line has just come, and older stores were known when the load was executed")
    };
    let raw = m.cache.l1.read(place, (waiter.address - line) as usize, waiter.width.into());
    let raw = merged(raw, value, mask) & ones(waiter.width.into());
    observed(hart.index, line, m);
    let complete = m.now.max(waiter.earliest).max(forwarded_at(ready, mask, m));
    let lines = LoadLines::of(waiter.address, waiter.width);
    bind(hart, waiter.number, waiter.op, raw, complete, lines, false, m);
}

/// Executes those of the waiting instructions whose operands have come, oldest first.
pub(super) fn pass(hart: &mut Hart, m: &mut Moment<'_, '_>) {
    let mut list = std::mem::take(&mut hart.waiting);
    let mut kept = 0;
    for at in 0..list.len() {
        let waiting = &mut list[at];
        // A squash on the way forgets this one and all that follow.
        if waiting.number >= hart.window.next() {
            hart.open_branches -= u32::from(waiting.inst.class() == Class::Branch);
            continue;
        }
        if !resolve(hart, waiting, m) {
            if kept < at {
                list[kept] = list[at];
            }
            kept += 1;
        }
    }
    list.truncate(kept);
    hart.waiting = list;
}

/// True when a waiting instruction needs to wait no more.
fn resolve(hart: &mut Hart, waiting: &mut Waiting, m: &mut Moment<'_, '_>) -> bool {
    let mut at = waiting.dispatched;
    let mut complete = true;
    for source in &mut waiting.sources {
        if let Source::Pending(number) = *source {
            *source = hart.window.result(number);
        }
        match *source {
            Source::Ready(_, ready) => at = at.max(ready),
            Source::Pending(_) => complete = false,
        }
    }
    let (inst, number) = (waiting.inst, waiting.number);
    // An address is worth knowing before the bytes are: loads behind the store may go on.
    if inst.class() == Class::Store
        && let Source::Ready(base, _) = waiting.sources[0]
    {
        set_address(hart, number, &inst, base, m);
    }
    if !complete {
        return false;
    }
    let [a, b, c] = waiting.sources.map(|source| if let Source::Ready(value, _) = source { value } else { 0 });
    match inst.class() {
        Class::Load => {
            // What kept it from binding may have gone just now; and what it finds in the L1 may have been
            // stored in a cycle that lies ahead.
            let at = at.max(m.now).max(hart.stores.performed_at());
            load(hart, number, &inst, semantics::address(&inst, a), at, false, m) != Loading::Blocked
        }
        Class::Branch => {
            resolve_branch(hart, waiting, semantics::taken(inst.op, a, b), at + 1, m);
            true
        }
        Class::Jump => {
            hart.window.complete(number, semantics::integer(&inst, waiting.pc, a, b), at + 1);
            if let Blocked::Jump(jump) = hart.front.blocked
                && jump == number
            {
                hart.front.blocked = Blocked::No;
                hart.front.pc = semantics::target(&inst, waiting.pc, a);
                hart.front.resume_at = at + 1;
                hart.front.redirected_by = waiting.pc;
            }
            true
        }
        Class::Store => {
            hart.stores.set_value(number, b, ready_at(waiting.sources[1]).max(waiting.dispatched));
            hart.window.complete(number, 0, at + 1);
            true
        }
        // A register that a region's end stores.
        Class::Persist => {
            hart.stores.set_value(number, b, at);
            hart.window.complete(number, 0, at + 1);
            true
        }
        Class::CacheLine => {
            set_address(hart, number, &inst, a, m);
            hart.window.complete(number, 0, at + 1);
            true
        }
        _ => {
            compute(hart, number, &inst, waiting.pc, [a, b, c], at, m);
            true
        }
    }
}

/// The cycle from which a source that has come is there.
fn ready_at(source: Source) -> u64 {
    if let Source::Ready(_, ready) = source { ready } else { 0 }
}

/// The result of an instruction that only computes.
#[inline]
pub(super) fn compute(
    hart: &mut Hart,
    number: u64,
    inst: &Inst,
    pc: u64,
    [a, b, c]: [u64; 3],
    at: u64,
    m: &mut Moment<'_, '_>,
) {
    let class = inst.class();
    let complete = at + m.program.latency(class);
    let value = match class {
        Class::Alu | Class::Mul | Class::Div => semantics::integer(inst, pc, a, b),
        _ => match semantics::float(inst, a, b, c, hart.frm << 5) {
            Ok(result) => {
                hart.window.raise(number, result.flags);
                result.value
            }
            Err(mode) => {
                hart.note_fault(number, FaultKind::Rounding { mode: mode.0 });
                0
            }
        },
    };
    hart.window.complete(number, value, complete);
}

/// The address of a store or line operation is known: it is translated, and its line asked for.
pub(super) fn set_address(hart: &mut Hart, number: u64, inst: &Inst, base: u64, m: &mut Moment<'_, '_>) {
    let (address, width) = match inst.class() {
        Class::CacheLine => (base & !63, 64),
        _ => (semantics::address(inst, base), u64::from(inst.width())),
    };
    if m.program.code.overlaps(address, width) && inst.class() == Class::Store {
        hart.note_fault(number, FaultKind::CodeWrite { address });
    }
    let Some(physical) = m.program.memory.physical(address, width) else {
        hart.stores.set_address(number, 0);
        hart.note_fault(number, FaultKind::Unmapped { address, bytes: width, write: true });
        return;
    };
    hart.stores.set_address(number, physical);
}

/// A branch that was predicted is resolved in a cycle.
fn resolve_branch(hart: &mut Hart, waiting: &Waiting, taken: bool, cycle: u64, m: &mut Moment<'_, '_>) {
    hart.open_branches -= 1;
    hart.window.complete(waiting.number, 0, cycle);
    m.record.counters.branches += 1;
    let Some(prediction) = waiting.prediction else { unreachable!("a branch that waits was predicted") };
    if hart.predictor.resolve(prediction, taken) {
        return;
    }
    m.record.counters.mispredictions += 1;
    let length = u64::from(waiting.inst.length);
    let pc = if taken { semantics::target(&waiting.inst, waiting.pc, 0) } else { waiting.pc.wrapping_add(length) };
    let resume_at = cycle + u64::from(m.program.spec.redirect_cycles);
    hart.squash(waiting.number + 1, pc, resume_at, m.cache);
    hart.front.redirected_by = waiting.pc;
}
