//! Clocks. All of them run with simulated time; those that tell the date begin at [`BEGIN_S`].

use super::reply::{Result, done, failed, write_words_if_any};
use crate::syscalls::call::{Call, CallStep, Then};
use crate::syscalls::number::{self, error};
use crate::syscalls::state::Os;

/// The date at which every process begins, in seconds since 1970: 2025-01-01 00:00:00 UTC. The same for each
/// run, so that a program that prints it prints the same; and no date that programs take for a clock that
/// was never set.
pub(super) const BEGIN_S: u64 = 1_735_689_600;

const NS_PER_S: u64 = 1_000_000_000;
/// Hertz of `times`, as `sysconf(_SC_CLK_TCK)` has it.
const TICKS_HZ: u64 = 100;

/// Clocks of `clock_gettime`.
mod id {
    pub(super) const REALTIME: i32 = 0;
    pub(super) const MONOTONIC: i32 = 1;
    pub(super) const PROCESS_CPU: i32 = 2;
    pub(super) const THREAD_CPU: i32 = 3;
    pub(super) const MONOTONIC_RAW: i32 = 4;
    pub(super) const REALTIME_COARSE: i32 = 5;
    pub(super) const MONOTONIC_COARSE: i32 = 6;
    pub(super) const BOOTTIME: i32 = 7;
    pub(super) const TAI: i32 = 11;
}

/// What a clock says when the process begins, in ns.
fn begin(clock: u64) -> std::result::Result<u64, u64> {
    use id::*;
    match clock as i32 {
        REALTIME | REALTIME_COARSE | TAI => Ok(BEGIN_S * NS_PER_S),
        MONOTONIC | PROCESS_CPU | THREAD_CPU | MONOTONIC_RAW | MONOTONIC_COARSE | BOOTTIME => Ok(0),
        // Of a thread or another process.
        clock if clock < 0 => Ok(0),
        _ => Err(error::EINVAL),
    }
}

/// The instant of the run that a clock calls 0: negative, and hence a number that wraps.
pub(super) fn absolute(clock: u64) -> Result<u64> {
    begin(clock).map(u64::wrapping_neg).map_err(failed)
}

/// An absolute time of the clock that tells the date, as an instant of the run.
pub(super) fn of_date(ns: u64) -> u64 {
    ns.saturating_sub(BEGIN_S * NS_PER_S)
}

/// Calls that tell a time.
pub(super) fn told(os: &mut Os, call: &Call) -> Result<CallStep> {
    use number::*;
    let [a0, a1, ..] = call.args;
    let now = call.now_ns;
    let (seconds, rest) = (now / NS_PER_S, now % NS_PER_S);
    let words = |os: &Os, address: u64, words: &[u64], then: u64| {
        Ok(done(write_words_if_any(os, address, words)?, Then::Return(then)))
    };
    match call.number {
        CLOCK_GETTIME => {
            let told = begin(a0).map_err(failed)?.saturating_add(now);
            words(os, a1, &[told / NS_PER_S, told % NS_PER_S], 0)
        }
        CLOCK_GETRES => {
            begin(a0).map_err(failed)?;
            words(os, a1, &[0, 1], 0)
        }
        GETTIMEOFDAY => words(os, a0, &[BEGIN_S + seconds, rest / 1000], 0),
        TIMES => {
            let ticks = now / (NS_PER_S / TICKS_HZ);
            words(os, a0, &[ticks, 0, 0, 0], ticks)
        }
        GETRUSAGE => {
            // `struct rusage`: user time, system time, 14 counts. All time is user time.
            let mut usage = [0; 18];
            (usage[0], usage[1]) = (seconds, rest / 1000);
            words(os, a1, &usage, 0)
        }
        _ => Ok(failed(error::ENOSYS)),
    }
}
