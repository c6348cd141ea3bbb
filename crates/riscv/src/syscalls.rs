//! Linux's system calls that a static program of user mode needs, as a state machine without memory and
//! without time.
//!
//! ```text
//!  hart: ecall ─Call─> Os::perform ┬─CallStep::Read──> bytes, read for it, then again
//!                                  └─CallStep::Done──> Reply: the hart stores `writes`, does `then`; `wakes` run on
//! ```
//! A driver gives it a [`Call`] (a timed machine's component after a message, the functional driver in
//! place), reads what [`CallStep::Read`] asks for, and calls again with all that was read so far: nothing
//! changes before [`CallStep::Done`]. What a call writes to memory comes back as a list, which the calling
//! hart stores itself.
//!
//! Futexes: between the reading of `futex_wait`'s word and its `Done`, no other futex operation on that
//! address may be performed; the driver sees to it. When a thread ends, the driver stores its writes, then
//! calls [`Os::ended`], which frees the hart and wakes who waits for it.
//!
//! Files are in memory: a program reads those that it is given, and what it writes is part of the state. Of
//! more threads than harts those that wait give up theirs, then those whose time is over: the driver does
//! what [`Os::next_move`] says (`threads`).
//!
//! Not modelled: signals (handlers are kept, none is delivered), processes, pipes, sockets, files that are
//! mapped to be written, `MADV_DONTNEED`'s zeros.

mod call;
mod calls;
mod files;
mod log;
pub mod number;
mod output;
mod random;
mod space;
mod state;
mod threads;

pub use call::{Call, CallStep, Data, File, Move, Reply, Then, WaitingThread, Wake, Write};
pub use log::{LastCall, OsAt, OsLog};
pub use output::Written;
pub use state::Os;
pub use threads::FIRST_THREAD;

impl Os {
    /// Performs a call with what was read for it so far, in the order of its [`CallStep::Read`]s.
    pub fn perform(&mut self, call: &Call, read: &[Vec<u8>]) -> CallStep {
        calls::perform(self, call, read).unwrap_or_else(|step| step)
    }
}
