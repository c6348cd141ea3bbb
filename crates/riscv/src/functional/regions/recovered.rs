//! What a machine's recovery left of a process: its harts' slots, and the system after one of its steps.
//!
//! | a hart's last call | its hart's slots | it goes on |
//! |---|---|---|
//! | answered by a step that the hart's slots know of | behind the call | there |
//! | answered by a later step | before the call | with the call, which is answered and not performed again |
//! | waits | before the call | as one that waits in the call |
//! | was the thread's end | no pc | with no thread; the system frees the hart, if it has not |
//!
//! So a call takes effect once: with what other harts' regions saw of it, or with its own hart's region.
//! Source: the paper's system is formed into regions as programs are (V-A), so that recovery finds a call
//! where the system's own regions have come to. Invariant, which is checked: a hart whose call has been
//! performed stands before that call at the least, with the same arguments.

use crate::instruction::{A0, A7, Op};
use crate::memory::Memory;
use crate::process::Process;
use crate::regions::{COMPLETE, PC_SLOT, RegionTable, RegisterSet};
use crate::syscalls::{Call, LastCall, OsAt, Reply, Then};

use super::durable::{LeftCalls, RegionImage, Slots, System};

/// Bytes of `ecall`.
const CALL_BYTES: u64 = 4;

/// A hart's slots with what was computed, and which registers those are.
pub(super) fn restored(slots: &Slots, table: &RegionTable) -> (Slots, RegisterSet) {
    let (mut restored, mut computed) = (*slots, 0);
    if slots[PC_SLOT] & COMPLETE == 0 {
        for (register, recipe) in table.restore(slots[PC_SLOT]) {
            restored[usize::from(*register)] = recipe.value(|register| slots[usize::from(register)]);
            computed |= 1 << register;
        }
    }
    (restored, computed)
}

/// A hart stands before a call.
fn stands_before(slots: &Slots, call: &Call, process: &Process) -> bool {
    let arguments = &slots[usize::from(A0)..usize::from(A0) + call.args.len()];
    let inst = process.code.at(slots[PC_SLOT] & !COMPLETE);
    let numbered = slots[usize::from(A7)] == call.number && arguments == call.args;
    numbered && inst.is_some_and(|inst| inst.op == Op::Ecall)
}

impl RegionImage {
    /// What recovery left: memory, slots by hart, the step of the system after which each hart's last call
    /// returned, and the system after the latest of these steps.
    ///
    /// # Errors
    /// Committed regions saw a call of a hart that its own committed regions have not come to.
    pub fn recovered(
        memory: Memory,
        mut slots: Vec<Slots>,
        returned: &[u64],
        system: OsAt,
        process: &Process,
        table: &RegionTable,
    ) -> Result<RegionImage, String> {
        let OsAt { os, last, now_ns } = system;
        let mut running: Vec<bool> = slots.iter().map(|slots| slots[PC_SLOT] != 0).collect();
        let mut answers: Vec<Option<Reply>> = vec![None; slots.len()];
        for (hart, LastCall { call, answer }) in last.into_iter().enumerate().filter_map(|(at, of)| Some((at, of?))) {
            if answer.as_ref().is_some_and(|&(step, _)| step <= returned[hart]) {
                continue;
            }
            let (whole, _) = restored(&slots[hart], table);
            if !stands_before(&whole, &call, process) {
                let (pc, number) = (whole[PC_SLOT] & !COMPLETE, call.number);
                return Err(format!(
                    "the system has performed call {number} of hart {hart}, and its committed regions come to {pc:#x}"
                ));
            }
            match answer {
                Some((_, reply)) => answers[hart] = Some(reply),
                None => {
                    slots[hart] = whole;
                    slots[hart][PC_SLOT] = ((whole[PC_SLOT] & !COMPLETE) + CALL_BYTES) | COMPLETE;
                    running[hart] = false;
                }
            }
        }
        // A thread that the system knows and that has no pc has ended, or its parent is yet to begin it.
        let begun_later = |hart: u32| {
            let mut spawned = answers.iter().flatten();
            spawned.any(|reply| matches!(reply.then, Then::Spawn { hart: Some(child), .. } if child == hart))
        };
        let mut ended = Vec::new();
        for hart in 0..slots.len() as u32 {
            match (os.thread(hart) != 0, slots[hart as usize][PC_SLOT] != 0) {
                (true, false) if !begun_later(hart) => ended.push(hart),
                (false, true) => {
                    return Err(format!("the thread of hart {hart} has ended for the system, and goes on"));
                }
                _ => {}
            }
        }
        let left = LeftCalls { answers, ended };
        Ok(RegionImage { memory, slots, system: System { os, running, now_ns, left } })
    }
}
