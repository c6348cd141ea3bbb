//! The instruction to which a lost dispatch slot is charged, and what the hart does meanwhile.
//!
//! | a slot lost to | is noted at |
//! |---|---|
//! | memory, execution | the oldest instruction of the window, which does not retire |
//! | a full store queue | the oldest store that has retired, or else the oldest instruction |
//! | a wrong prediction | the branch, or the load that is executed again |
//! | atomics, fences, calls | that instruction |

use durawarp_riscv::instruction::A7;
use durawarp_riscv::syscalls::number::FUTEX;

use super::cause::{Cause, Lost};
use super::hart::Hart;
use super::thread::Thread;
use super::watch::Doing;

/// Bytes of `ecall`, which a hart in a call stands behind.
const ECALL_BYTES: u64 = 4;

/// What a hart that used so many slots does, and the instruction at which; nothing without a thread.
pub(super) fn doing(hart: &Hart, used: u32, lost: Option<Lost>) -> Option<(Doing, u64)> {
    let what = match (&hart.thread, lost.map(|lost| lost.cause)) {
        (Thread::None | Thread::Stopped, _) => return None,
        (Thread::Waiting, _) => {
            let futex = hart.window.values()[usize::from(A7)] == FUTEX;
            if futex { Doing::WaitsForFutex } else { Doing::WaitsInCall }
        }
        (Thread::Calling(_) | Thread::Writing(..), _) => Doing::Call,
        (Thread::Running, _) if used > 0 => Doing::Runs,
        (Thread::Running, Some(Cause::Persist)) => Doing::DurableFence,
        (Thread::Running, Some(Cause::Memory | Cause::Stores | Cause::Atomic | Cause::Fence)) => Doing::WaitsForMemory,
        (Thread::Running, _) => Doing::Runs,
    };
    Some((what, lost.map_or(hart.front.pc, |lost| lost.pc)))
}

/// The instruction that slots of a hart are lost at.
pub(super) fn place(hart: &Hart, cause: Cause) -> u64 {
    let oldest = || hart.window.oldest().map_or(hart.front.pc, |oldest| oldest.pc);
    match cause {
        Cause::Memory | Cause::Execution => oldest(),
        Cause::Stores => hart.stores.first_retired().map_or_else(oldest, |store| store.pc),
        Cause::Redirect => hart.front.redirected_by,
        Cause::Atomic | Cause::Fence | Cause::Persist => hart.front.pc,
        Cause::Call | Cause::Idle => match hart.thread {
            Thread::None | Thread::Stopped => 0,
            Thread::Running => hart.front.pc,
            Thread::Calling(_) | Thread::Writing(..) | Thread::Waiting => hart.front.pc.wrapping_sub(ECALL_BYTES),
        },
    }
}
