//! System calls of a hart's thread: what it does with the answers of the OS.
//!
//! What a call writes to memory the hart stores itself, through its store buffer, before it does the rest.

use std::collections::VecDeque;

use crate::coherence::{Begin, OsMsg};
use durawarp_riscv::fault::FaultKind;
use durawarp_riscv::hart_state::HartState;
use durawarp_riscv::instruction::{A0, A7, SP, TP};
use durawarp_riscv::regions::{COMPLETE, PC_SLOT, STEP_SLOT};
use durawarp_riscv::syscalls::{Call, Data, Reply, Then};

use super::commit;
use super::hart::{Hart, Moment};
use super::store_queue::{StoreEntry, StoreKind};
use super::thread::{Thread, Woken, Writing};

/// A hart stands behind `ecall`, and all before it is performed.
pub(super) fn call(hart: &mut Hart, cycle: u64, m: &mut Moment<'_, '_>) {
    let registers = hart.window.values();
    let args = std::array::from_fn(|i| registers[usize::from(A0) + i]);
    let number = registers[usize::from(A7)];
    let id = m.program.first_hart + u32::from(hart.index);
    m.record.counters.calls += 1;
    hart.thread = Thread::Calling(None);
    let call = Box::new(Call { hart: id, number, args, now_ns: m.program.ns(cycle) });
    let delay = m.program.until(cycle, m.cx);
    let dependencies = m.host.regions_so_far();
    m.program.to_os.send(OsMsg::Call { call, dependencies }, delay, m.cx);
}

/// The OS has answered, by this step.
pub(super) fn answered(hart: &mut Hart, reply: Reply, step: u64, m: &mut Moment<'_, '_>) {
    let woken = if let Thread::Calling(woken) = hart.thread { woken } else { None };
    if matches!(hart.thread, Thread::Stopped) {
        return;
    }
    let mut left = VecDeque::new();
    for write in reply.writes {
        let bytes = match write.data {
            Data::Bytes(bytes) => bytes,
            Data::Zeros(length) => vec![0; length as usize],
        };
        // The call has seen that they lie in memory: the end of what can be translated is not met.
        let mut at = 0;
        while at < bytes.len() {
            let address = write.address + at as u64;
            let some = (8 - address as usize % 8).min(bytes.len() - at);
            let Some(physical) = m.program.memory.physical(address, some as u64) else { break };
            let mut word = [0; 8];
            word[..some].copy_from_slice(&bytes[at..at + some]);
            left.push_back((physical, u64::from_le_bytes(word), some as u8));
            at += some;
        }
    }
    if m.host.policy.front_end {
        checkpoint(hart, &reply.then, step, &mut left, m);
    }
    hart.thread = Thread::Writing(Box::new(Writing { left, then: reply.then, over: false }), woken);
}

/// A call returns with the region that it is in, and a thread that begins, or ends, does so with it: the step
/// of the OS is stored there, and what the thread begins with.
fn checkpoint(hart: &Hart, then: &Then, step: u64, left: &mut VecDeque<(u64, u64, u8)>, m: &Moment<'_, '_>) {
    let own = m.program.first_hart + u32::from(hart.index);
    match *then {
        // It returns by a wake.
        Then::Wait => return,
        Then::Spawn { hart: Some(id), stack, thread, .. } => {
            left.extend(slots(&child(hart, stack, thread), id, m));
            left.push_back((m.program.slot(id, STEP_SLOT), step, 8));
        }
        Then::End => left.push_back((m.program.slot(own, PC_SLOT), 0, 8)),
        _ => {}
    }
    left.push_back((m.program.slot(own, STEP_SLOT), step, 8));
}

/// Stores of all that a hart of the machine goes on with.
fn slots(state: &HartState, id: u32, m: &Moment<'_, '_>) -> Vec<(u64, u64, u8)> {
    let registers = state.registers.into_iter().skip(1);
    let values = [state.fcsr.into()].into_iter().chain(registers).chain([state.pc | COMPLETE]);
    values.enumerate().map(|(slot, value)| (m.program.slot(id, slot), value, 8)).collect()
}

/// What a thread begins with: a copy of its parent as it stands behind the call.
fn child(hart: &Hart, stack: u64, thread: Option<u64>) -> HartState {
    let mut state = hart.state();
    state.registers[usize::from(A0)] = 0;
    state.registers[usize::from(SP)] = stack;
    if let Some(thread) = thread {
        state.registers[usize::from(TP)] = thread;
    }
    state
}

/// Stores more of what a call writes; when all is performed, does what follows. True when it did something.
pub(super) fn write(hart: &mut Hart, cycle: u64, m: &mut Moment<'_, '_>) -> bool {
    let pc = hart.front.pc;
    let Thread::Writing(writing, woken) = &mut hart.thread else { return false };
    // What the call has seen of other cores persists before it.
    if !m.host.may_synchronise(hart.index) {
        return false;
    }
    let mut some = false;
    while !hart.stores.is_full()
        && let Some((address, value, width)) = writing.left.pop_front()
    {
        let kind = if m.program.is_checkpoint(address) { StoreKind::Checkpoint } else { StoreKind::Store };
        let (address, value) = (Some(address), Some(value));
        hart.stores.push(StoreEntry { number: 0, pc, address, value, ready: cycle, width, kind });
        hart.stores.retire();
        commit::retired(hart.index, &hart.stores, cycle, m);
        some = true;
    }
    // The rest may wake or start threads: they must see what was written.
    if !hart.stores.is_empty() {
        return some;
    }
    // A wake may have overtaken the answer that says to wait.
    let (then, woken, over) = (writing.then, *woken, writing.over);
    hart.thread = Thread::Running;
    match then {
        Then::Return(value) | Then::Yield(value) => hart.window.set(A0, value),
        Then::Wait => {
            hart.thread = Thread::Waiting;
            if let Some(woken) = woken {
                self::woken(hart, woken, m);
            }
        }
        Then::Spawn { result, .. } if over => hart.window.set(A0, result),
        Then::Spawn { hart: child, stack, thread, result, .. } => {
            let state = Box::new(self::child(hart, stack, thread));
            let delay = m.program.until(cycle, m.cx);
            let begins = match child {
                Some(hart) => OsMsg::Begin(Begin { hart, state, dependencies: m.host.regions_so_far() }),
                None => OsMsg::Born { thread: result, state },
            };
            m.program.to_os.send(begins, delay, m.cx);
            hart.window.set(A0, result);
        }
        Then::End => {
            end_region(hart, pc, cycle, m);
            hart.thread = Thread::None;
            hart.front.leaves = false;
            let delay = m.program.until(cycle, m.cx);
            let id = m.program.first_hart + u32::from(hart.index);
            let dependencies = m.host.regions_so_far();
            m.program.to_os.send(OsMsg::Ended { hart: id, dependencies }, delay, m.cx);
        }
        Then::Exit(_) => {
            end_region(hart, pc, cycle, m);
            hart.thread = Thread::Stopped;
        }
        // The process has ended otherwise.
        Then::Signal(_) | Then::NoFreeHart if over => {}
        Then::Signal(number) => fail(hart, FaultKind::Signal(number), m),
        Then::NoFreeHart => fail(hart, FaultKind::NoFreeHart { harts: m.program.harts }, m),
    }
    if over {
        let state = hart.state();
        stopped(hart, &state, cycle, m);
    }
    true
}

/// The thread ends with its region, if there is one.
fn end_region(hart: &Hart, pc: u64, cycle: u64, m: &mut Moment<'_, '_>) {
    if m.host.policy.front_end {
        m.record.counters.regions += u64::from(has_stored(hart));
        commit::end_region(hart, pc, cycle, true, m);
    }
}

/// The program has stored in the region that is under way.
fn has_stored(hart: &Hart) -> bool {
    hart.regions.as_ref().is_some_and(|regions| regions.have_stored())
}

/// The process has ended, and this is the hart's state. Its region ends here as at an interrupt, with all
/// registers in their slots, so that the regions of others which come after it persist. One in which nothing
/// was stored is none. What a call is storing it stores first.
pub(super) fn stopped(hart: &mut Hart, state: &HartState, cycle: u64, m: &mut Moment<'_, '_>) {
    match &mut hart.thread {
        Thread::Running if m.host.policy.front_end => {
            let id = m.program.first_hart + u32::from(hart.index);
            let left = if has_stored(hart) { slots(state, id, m).into() } else { VecDeque::new() };
            hart.thread = Thread::Writing(Box::new(Writing { left, then: Then::Exit(0), over: false }), None);
        }
        Thread::Writing(writing, _) if m.host.policy.front_end => writing.over = true,
        // Before a call nothing is stored; but the region may have been begun (`id_draw = "paper"`).
        Thread::Calling(_) | Thread::Waiting if m.host.policy.front_end => {
            hart.thread = Thread::Stopped;
            commit::end_region(hart, hart.front.pc, cycle, true, m);
        }
        _ => hart.thread = Thread::Stopped,
    }
}

/// A fault of the call that the hart stands behind.
#[cold]
fn fail(hart: &mut Hart, kind: FaultKind, m: &mut Moment<'_, '_>) {
    hart.thread = Thread::Stopped;
    let fault = m.program.fault(hart.index, hart.front.pc.wrapping_sub(4), kind);
    m.cx.fail(fault);
}

/// The wait of a hart is over: its call returns.
pub(super) fn woken(hart: &mut Hart, by: Woken, m: &Moment<'_, '_>) {
    match &mut hart.thread {
        Thread::Waiting if m.host.policy.front_end => {
            let (mut left, then) = (VecDeque::new(), Then::Return(by.result));
            checkpoint(hart, &then, by.step, &mut left, m);
            hart.thread = Thread::Writing(Box::new(Writing { left, then, over: false }), None);
        }
        Thread::Waiting => {
            hart.window.set(A0, by.result);
            hart.thread = Thread::Running;
        }
        Thread::Calling(woken) | Thread::Writing(_, woken) => *woken = Some(by),
        Thread::None | Thread::Running | Thread::Stopped => {}
    }
}
