//! A hart gives up its thread, as the OS wants it: for another thread, of more threads than harts.
//!
//! | the thread | the hart |
//! |---|---|
//! | runs | dispatches nothing more, and hands over registers and pc when nothing is under way |
//! | waits in a call | the same |
//! | has a call under way | goes on until it runs, waits or has ended |
//!
//! Nothing is under way when all is retired and performed, no line is being cleaned, and what was stored is
//! durable where the scheme says when.
//!
//! So nothing of the thread is left in the hart: what it does elsewhere comes after it. Its reservation is
//! lost. Schemes that keep something of a thread by its hart do not share harts: see the experiment's check.

use crate::coherence::OsMsg;

use super::cause::Cause;
use super::hart::{Hart, Moment, Stall};
use super::thread::Thread;

/// Gets on with it. Why nothing is dispatched; none where a call is under way.
#[cold]
pub(super) fn step(hart: &mut Hart, cycle: u64, m: &mut Moment<'_, '_>) -> Option<Stall> {
    let waits = match hart.thread {
        Thread::Running => false,
        Thread::Waiting => true,
        _ => return None,
    };
    let stall = |until| Some(Stall { cause: Cause::Call, until });
    if !hart.window.is_empty() {
        return stall(hart.retires_at(cycle));
    }
    // The store that is performed last, a cleaned line, or the scheme has this looked at again.
    if !hart.stores.is_empty() || m.cache.cleanings_of(hart.index) > 0 || !m.host.is_durable(hart.index) {
        return stall(None);
    }
    let state = Box::new(hart.state());
    hart.reserved.clear();
    (hart.thread, hart.front.leaves) = (Thread::None, false);
    let delay = m.program.until(cycle, m.cx);
    let hart = m.program.first_hart + u32::from(hart.index);
    m.program.to_os.send(OsMsg::Left { hart, waits, state }, delay, m.cx);
    stall(None)
}
