//! Signals. What a program says of them is kept and told again; none is delivered. A signal that a program
//! sends itself is without effect where it is ignored, by the program or by default, and ends it otherwise.

use super::reply::{Reader, Result, done, failed, value, write_words_if_any};
use crate::syscalls::call::{Call, CallStep, Then};
use crate::syscalls::number::{self, error};
use crate::syscalls::state::Os;
use crate::syscalls::threads::FIRST_THREAD;

/// Numbers of signals.
mod known {
    pub(super) const KILL: u64 = 9;
    pub(super) const STOP: u64 = 19;
    pub(super) const URGENT: u64 = 23;
    /// Ignored by default: of a child, to go on, urgent data, of a window.
    pub(super) const IGNORED: [u64; 4] = [17, 18, URGENT, 28];
    pub(super) const LAST: u64 = 64;
}

/// Handlers that are none.
const DEFAULT: u64 = 0;
const IGNORE: u64 = 1;
/// `ss_flags` of a thread without a stack for signals.
const SS_DISABLE: u64 = 2;

/// `kill`, `tkill` and `tgkill`.
pub(super) fn send(os: &mut Os, call: &Call) -> CallStep {
    let [a0, a1, a2, ..] = call.args;
    let (thread, number) = if call.number == number::TGKILL { (a1, a2) } else { (a0, a1) };
    if !os.threads.is_alive(thread) && thread != FIRST_THREAD {
        return failed(error::ESRCH);
    }
    let handler = os.signals.get(&number).map_or(DEFAULT, |action| action[0]);
    match (number, handler) {
        (0, _) | (_, IGNORE) => value(0),
        (_, DEFAULT) if known::IGNORED.contains(&number) => value(0),
        // Run-time systems interrupt their threads with it, and go on without.
        (known::URGENT, _) => {
            os.note_missing(call.number);
            value(0)
        }
        _ => done(Vec::new(), Then::Signal(number as u32)),
    }
}

/// `rt_sigaction`: a handler, flags and a mask.
pub(super) fn action(os: &mut Os, call: &Call, reader: &mut Reader<'_>) -> Result<CallStep> {
    let [number, new, old, ..] = call.args;
    if number == 0 || number > known::LAST || new != 0 && matches!(number, known::KILL | known::STOP) {
        return Err(failed(error::EINVAL));
    }
    let set = reader.words_if_any::<3>(os, new)?;
    let held = os.signals.get(&number).copied().unwrap_or_default();
    let writes = write_words_if_any(os, old, &held)?;
    if let Some(set) = set {
        os.signals.insert(number, set);
    }
    Ok(done(writes, Then::Return(0)))
}

/// `sigaltstack`: address, flags and size of the stack that a thread has for signals.
pub(super) fn stack(os: &mut Os, call: &Call, reader: &mut Reader<'_>) -> Result<CallStep> {
    let [new, old, ..] = call.args;
    let set = reader.words_if_any::<3>(os, new)?;
    let thread = os.threads.number(call.hart);
    let held = os.signal_stacks.get(&thread).copied().unwrap_or([0, SS_DISABLE, 0]);
    let writes = write_words_if_any(os, old, &held)?;
    if let Some(set) = set {
        if set[1] & SS_DISABLE == 0 {
            os.signal_stacks.insert(thread, set);
        } else {
            os.signal_stacks.remove(&thread);
        }
    }
    Ok(done(writes, Then::Return(0)))
}
