//! What a hart runs.
//!
//! ```text
//!  Running ──ecall──> Calling ──Return──> Writing ──all performed──┬─> Running
//!                                                                  ├─> Waiting ──Wake──> Running
//!                                                                  └─> None (the thread has ended)
//! ```

use std::collections::VecDeque;

use durawarp_checkpoint::value;
use durawarp_riscv::syscalls::Then;

use super::cause::Cause;

/// What a call still has to write, and what comes then.
#[derive(Debug)]
pub(super) struct Writing {
    /// Physical addresses, bytes and how many of them: each in one granule of 8.
    pub(super) left: VecDeque<(u64, u64, u8)>,
    /// [`Then::Exit`] of a hart that stops: its region ends.
    pub(super) then: Then,
    /// The process has ended meanwhile.
    pub(super) over: bool,
}

value!(record Writing { left, then, over });

/// The end of a wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Woken {
    /// What goes into a0.
    pub(super) result: u64,
    /// The step of the OS that ended it.
    pub(super) step: u64,
}

value!(record Woken { result, step });

/// What a hart runs.
#[derive(Debug)]
pub(super) enum Thread {
    /// Nothing.
    None,
    /// Instructions.
    Running,
    /// The OS has its call. A wake that has overtaken the answer.
    Calling(Option<Woken>),
    /// The call is answered, and what it writes is being stored.
    Writing(Box<Writing>, Option<Woken>),
    /// Its call waits.
    Waiting,
    /// Nothing any more: the process has ended.
    Stopped,
}

value!(choice Thread { None, Running, Calling(woken), Writing(writing, woken), Waiting, Stopped });

impl Thread {
    /// What its lost slots are counted as.
    pub(super) fn cause(&self) -> Cause {
        match self {
            Thread::Calling(_) | Thread::Writing(..) => Cause::Call,
            Thread::None | Thread::Running | Thread::Waiting | Thread::Stopped => Cause::Idle,
        }
    }
}
