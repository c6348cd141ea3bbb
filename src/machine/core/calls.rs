//! System calls of a hart's thread: what it does with the answers of the OS.
//!
//! What a call writes to memory the hart stores itself, through its store buffer, before it does the rest.

use std::collections::VecDeque;

use crate::machine::coherence::{CpuMsg, HartState};
use crate::machine::msg::Msg;
use crate::riscv::fault::FaultKind;
use crate::riscv::instruction::{A0, A7, SP, TP};
use crate::riscv::regions::{COMPLETE, PC_SLOT};
use crate::riscv::syscalls::{Call, Data, Reply, Then};

use super::commit;
use super::hart::{Hart, Moment};
use super::store_queue::{StoreEntry, StoreKind};
use super::thread::{Thread, Writing};

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
    m.cx.send(m.program.to_os, Msg::Cpu(CpuMsg::Call(call)), delay);
}

/// The OS has answered.
pub(super) fn answered(hart: &mut Hart, reply: Reply, m: &mut Moment<'_, '_>) {
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
    if m.policy.front_end {
        checkpoint(hart, &reply.then, &mut left, m);
    }
    hart.thread = Thread::Writing(Box::new(Writing { left, then: reply.then }), woken);
}

/// A thread that begins, or ends, does so with the region that the call is in: what it begins with is stored
/// there.
fn checkpoint(hart: &Hart, then: &Then, left: &mut VecDeque<(u64, u64, u8)>, m: &Moment<'_, '_>) {
    match *then {
        Then::Spawn { hart: Some(id), stack, thread, result, clear } => {
            let state = child(hart, stack, thread);
            let registers = state.registers.into_iter().skip(1);
            let slots = [state.frm.into()].into_iter().chain(registers).chain([
                state.pc | COMPLETE,
                result,
                clear.unwrap_or(0),
            ]);
            left.extend(slots.enumerate().map(|(slot, value)| (m.program.slot(id, slot), value, 8)));
        }
        Then::End => {
            let id = m.program.first_hart + u32::from(hart.index);
            left.push_back((m.program.slot(id, PC_SLOT), 0, 8));
        }
        _ => {}
    }
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
    let mut some = false;
    while !hart.stores.is_full()
        && let Some((address, value, width)) = writing.left.pop_front()
    {
        let (address, value) = (Some(address), Some(value));
        let kind = match address {
            Some(address) if m.program.is_checkpoint(address) => StoreKind::Checkpoint,
            _ => StoreKind::Store,
        };
        hart.stores.push(StoreEntry { number: 0, pc, address, value, width, kind });
        hart.stores.retire();
        commit::retired(hart.index, &hart.stores, cycle, m);
        some = true;
    }
    // The rest may wake or start threads: they must see what was written.
    if !hart.stores.is_empty() {
        return some;
    }
    // A wake may have overtaken the answer that says to wait.
    let (then, woken) = (writing.then, *woken);
    hart.thread = Thread::Running;
    match then {
        Then::Return(value) | Then::Yield(value) => hart.window.set(A0, value),
        Then::Wait => match woken {
            Some(result) => hart.window.set(A0, result),
            None => hart.thread = Thread::Waiting,
        },
        Then::Spawn { hart: child, stack, thread, result, .. } => {
            let state = Box::new(self::child(hart, stack, thread));
            let delay = m.program.until(cycle, m.cx);
            let begins = match child {
                Some(hart) => CpuMsg::Begin { hart, state, dependencies: m.policy.thread_begun() },
                None => CpuMsg::Born { thread: result, state },
            };
            m.cx.send(m.program.to_os, Msg::Cpu(begins), delay);
            hart.window.set(A0, result);
        }
        Then::End => {
            if m.policy.front_end {
                commit::end_region(hart, pc, cycle, m);
            }
            hart.thread = Thread::None;
            hart.front.leaves = false;
            let delay = m.program.until(cycle, m.cx);
            let id = m.program.first_hart + u32::from(hart.index);
            m.cx.send(m.program.to_os, Msg::Cpu(CpuMsg::Ended { hart: id }), delay);
        }
        Then::Exit(_) => hart.thread = Thread::Stopped,
        Then::Signal(number) => fail(hart, FaultKind::Signal(number), m),
        Then::NoFreeHart => fail(hart, FaultKind::NoFreeHart { harts: m.program.harts }, m),
    }
    true
}

/// A fault of the call that the hart stands behind.
#[cold]
fn fail(hart: &mut Hart, kind: FaultKind, m: &mut Moment<'_, '_>) {
    hart.thread = Thread::Stopped;
    let fault = m.program.fault(hart.index, hart.front.pc.wrapping_sub(4), kind);
    m.cx.fail(fault);
}

/// The wait of a hart is over.
pub(super) fn woken(hart: &mut Hart, result: u64) {
    match &mut hart.thread {
        Thread::Waiting => {
            hart.window.set(A0, result);
            hart.thread = Thread::Running;
        }
        Thread::Calling(woken) | Thread::Writing(_, woken) => *woken = Some(result),
        Thread::None | Thread::Running | Thread::Stopped => {}
    }
}
