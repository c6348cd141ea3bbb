//! What a system has done, step by step: its state after any step is what these steps make of a new one.
//!
//! A step is a call that was performed, the end of a thread, or the end of waits whose deadline came. Steps are
//! numbered from 1. A call changes nothing but by what it was asked and what it read, so that a log of these
//! takes the place of a copy of the state after each step: it grows with calls, and not with the state.
//!
//! Invariant: steps performed again on a new system of the same process give the same answers. Not modelled:
//! what a call has written to memory, which is its hart's.

use super::call::{Call, CallStep, Reply, Then, Wake};
use super::state::Os;

/// A step.
#[derive(Debug, Clone, PartialEq, Eq)]
enum OsStep {
    /// A call, with what was read for it.
    Call(Box<Call>, Vec<Vec<u8>>),
    /// The thread of this hart has ended.
    Ended(u32),
    /// Waits have ended by their deadlines.
    Expired,
}

/// The steps of a system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OsLog {
    /// Each with its instant, in ns.
    steps: Vec<(OsStep, u64)>,
}

/// The last call of a hart, as the system has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastCall {
    /// What was asked.
    pub call: Call,
    /// The step that answered it, and the answer; none while the call waits.
    pub answer: Option<(u64, Reply)>,
}

/// A system after some of its steps.
#[derive(Debug, Clone)]
pub struct OsAt {
    /// Its state.
    pub os: Os,
    /// By hart: its last call.
    pub last: Vec<Option<LastCall>>,
    /// When the last step was, in ns since the process began.
    pub now_ns: u64,
}

impl OsLog {
    /// A call is performed.
    pub fn called(&mut self, call: &Call, read: &[Vec<u8>]) {
        self.steps.push((OsStep::Call(Box::new(*call), read.to_vec()), call.now_ns));
    }

    /// The thread of a hart has ended.
    pub fn ended(&mut self, hart: u32, now_ns: u64) {
        self.steps.push((OsStep::Ended(hart), now_ns));
    }

    /// Waits have ended by their deadlines.
    pub fn expired(&mut self, now_ns: u64) {
        self.steps.push((OsStep::Expired, now_ns));
    }

    /// How many steps there are.
    pub fn steps(&self) -> u64 {
        self.steps.len() as u64
    }

    /// What the first `steps` steps make of a new system.
    pub fn after(&self, steps: u64, mut os: Os, harts: usize) -> OsAt {
        let mut last: Vec<Option<LastCall>> = vec![None; harts];
        let mut now_ns = 0;
        for ((step, at), number) in self.steps.iter().zip(1..=steps) {
            now_ns = now_ns.max(*at);
            let wakes = match step {
                OsStep::Call(call, read) => {
                    let CallStep::Done(mut reply) = os.perform(call, read) else {
                        unreachable!("a call that was performed has all that it reads")
                    };
                    let wakes = std::mem::take(&mut reply.wakes);
                    let answer = (reply.then != Then::Wait).then_some((number, reply));
                    last[call.hart as usize] = Some(LastCall { call: **call, answer });
                    wakes
                }
                // The end of the last thread wakes nobody.
                OsStep::Ended(hart) => os.ended(*hart).unwrap_or_default(),
                OsStep::Expired => os.expired(*at),
            };
            for Wake { hart, result } in wakes {
                if let Some(last) = &mut last[hart as usize] {
                    let reply = Reply { writes: Vec::new(), then: Then::Return(result), wakes: Vec::new() };
                    last.answer = Some((number, reply));
                }
            }
        }
        OsAt { os, last, now_ns }
    }
}
