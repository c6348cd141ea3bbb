//! Calls by which threads begin and wait.

use super::clock;
use super::reply::{Reader, Result, done, failed, missing, value, write};
use crate::syscalls::call::{Call, CallStep, Reply, Then};
use crate::syscalls::number::{self, error};
use crate::syscalls::state::Os;

/// Operations of `futex`, without the flags for private ones and for the clock.
mod operation {
    pub(super) const WAIT: u64 = 0;
    pub(super) const WAKE: u64 = 1;
    pub(super) const REQUEUE: u64 = 3;
    pub(super) const CMP_REQUEUE: u64 = 4;
    pub(super) const WAIT_BITSET: u64 = 9;
    pub(super) const WAKE_BITSET: u64 = 10;
    pub(super) const DATE: u64 = 256;
    pub(super) const FLAGS: u64 = 128 | DATE;
}

/// Flags of `clone`.
mod clone_flag {
    pub(super) const VM: u64 = 0x100;
    pub(super) const THREAD: u64 = 0x1_0000;
    pub(super) const SETTLS: u64 = 0x8_0000;
    pub(super) const PARENT_SETTID: u64 = 0x10_0000;
    pub(super) const CHILD_CLEARTID: u64 = 0x20_0000;
    pub(super) const CHILD_SETTID: u64 = 0x100_0000;
}

pub(super) fn nanoseconds([seconds, rest]: [u64; 2]) -> u64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

pub(super) fn futex(os: &mut Os, call: &Call, reader: &mut Reader<'_>) -> Result<CallStep> {
    let [address, operation, expected, fourth, other, last] = call.args;
    if !address.is_multiple_of(4) {
        return Err(failed(error::EINVAL));
    }
    let of_date = operation & operation::DATE != 0;
    let operation = operation & !operation::FLAGS;
    let bits =
        if matches!(operation, operation::WAIT_BITSET | operation::WAKE_BITSET) { last as u32 } else { u32::MAX };
    let woken = |(count, wakes): (u64, Vec<_>), moved: u64| {
        let count = count + moved;
        Ok(CallStep::Done(Reply { writes: Vec::new(), then: Then::Return(count), wakes }))
    };
    match operation {
        operation::WAIT | operation::WAIT_BITSET => {
            let time = reader.words_if_any(os, fourth)?.map(nanoseconds);
            let deadline = time.map(|time| {
                let at = match operation {
                    operation::WAIT => time.saturating_add(call.now_ns),
                    _ if of_date => clock::of_date(time),
                    _ => time,
                };
                (at, error::ETIMEDOUT.wrapping_neg())
            });
            // The word last: what it holds is compared in this instant.
            let word = reader.bytes(os, address, 4)?;
            if word != (expected as u32).to_le_bytes() {
                return Err(failed(error::EAGAIN));
            }
            if deadline.is_some_and(|(at, _)| at <= call.now_ns) {
                return Err(failed(error::ETIMEDOUT));
            }
            os.threads.wait(call.hart, Some(address), bits, deadline);
            Ok(done(Vec::new(), Then::Wait))
        }
        operation::WAKE | operation::WAKE_BITSET => woken(os.threads.wake(address, expected, bits), 0),
        operation::REQUEUE | operation::CMP_REQUEUE => {
            if operation == operation::CMP_REQUEUE && reader.bytes(os, address, 4)? != (last as u32).to_le_bytes() {
                return Err(failed(error::EAGAIN));
            }
            let wakes = os.threads.wake(address, expected, bits);
            let moved = os.threads.requeue(address, other, fourth);
            woken(wakes, moved)
        }
        _ => Ok(missing(os, number::FUTEX)),
    }
}

/// `nanosleep` and `clock_nanosleep`: until a time after `from`, which may wrap.
pub(super) fn sleep(os: &mut Os, call: &Call, reader: &mut Reader<'_>, time: u64, from: u64) -> Result<CallStep> {
    let time = nanoseconds(reader.words(os, time)?);
    // A date before the process began is over.
    let until = if (from as i64) < 0 { time.saturating_sub(from.wrapping_neg()) } else { time.saturating_add(from) };
    if until <= call.now_ns {
        return Ok(value(0));
    }
    os.threads.wait(call.hart, None, 0, Some((until, 0)));
    Ok(done(Vec::new(), Then::Wait))
}

/// `clone` of a thread. Another process is not supported.
pub(super) fn clone(os: &mut Os, call: &Call) -> Result<CallStep> {
    let [flags, stack, parent, thread, child, _] = call.args;
    let has = |flag: u64| flags & flag != 0;
    if !has(clone_flag::VM) || !has(clone_flag::THREAD) || stack == 0 {
        return Ok(missing(os, number::CLONE));
    }
    let Some((hart, number)) = os.threads.next() else {
        return Ok(done(Vec::new(), Then::NoFreeHart));
    };
    let mut writes = Vec::new();
    for (flag, address) in [(clone_flag::PARENT_SETTID, parent), (clone_flag::CHILD_SETTID, child)] {
        if has(flag) {
            writes.push(write(os, address, (number as u32).to_le_bytes().to_vec())?);
        }
    }
    let clear = (has(clone_flag::CHILD_CLEARTID) && child != 0).then_some(child);
    os.threads.start(hart, number, clear, call.now_ns);
    let thread = has(clone_flag::SETTLS).then_some(thread);
    Ok(done(writes, Then::Spawn { hart, stack, thread, result: number, clear }))
}
