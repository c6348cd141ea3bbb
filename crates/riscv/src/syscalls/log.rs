//! What a system has done, step by step: its state after any step is what these steps make of a new one.
//!
//! A step is a call that was performed, the end of a thread, or the end of waits whose deadline came. Steps
//! are numbered from 1. A call changes nothing but by what it was asked and what it read, so that a log of
//! these takes the place of a copy of the state after each step: it grows with calls, and not with the state.
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

#[cfg(test)]
mod tests {
    use super::super::number::{BRK, CLONE, FUTEX, WRITE};
    use super::super::state::Os;
    use super::*;
    use crate::elf::Executable;
    use crate::process::{Process, Start};

    const VM_THREAD: u64 = 0x100 | 0x1_0000;

    fn new_system() -> Os {
        let (segments, functions, objects) = (vec![], vec![], vec![]);
        let image = Executable { entry: 0x10000, segments, functions, objects, headers: None, header_count: 0 };
        Os::new(&Process::new(image, Start::default()).unwrap(), 2, vec![])
    }

    /// A thread that waits at a futex, and a first one that writes, wakes it and asks for memory.
    fn log() -> OsLog {
        let mut log = OsLog::default();
        let mut step = |hart, number, args: &[u64], now_ns, read: &[Vec<u8>]| {
            let mut all = [0; 6];
            all[..args.len()].copy_from_slice(args);
            log.called(&Call { hart, number, args: all, now_ns }, read);
        };
        step(0, CLONE, &[VM_THREAD, 0x8000], 10, &[]);
        step(1, FUTEX, &[0x2_0000, 0, 5], 20, &[5u32.to_le_bytes().to_vec()]);
        step(0, WRITE, &[1, 0x2_0000, 2], 30, &[b"hi".to_vec()]);
        step(0, FUTEX, &[0x2_0000, 1, 1], 40, &[]);
        step(0, BRK, &[0], 50, &[]);
        log
    }

    #[test]
    fn a_system_is_as_after_each_of_its_steps() {
        let at = |steps| log().after(steps, new_system(), 2);
        let none = at(0);
        assert_eq!((none.os.thread(1), none.now_ns, none.last), (0, 0, vec![None, None]));
        let waits = at(2);
        assert_eq!((waits.os.thread(1), waits.os.waiting().len(), waits.now_ns), (101, 1, 20));
        assert!(waits.last[1].as_ref().is_some_and(|last| last.answer.is_none()));
        assert_eq!(waits.os.output().0, b"");
        assert_eq!(at(3).os.output().0, b"hi");
        let woken = at(4);
        let answer = woken.last[1].as_ref().and_then(|last| last.answer.as_ref());
        assert!(woken.os.waiting().is_empty() && answer.is_some_and(|(step, _)| *step == 4));
        assert_eq!(at(5).last[0].as_ref().map(|last| last.call.number), Some(BRK));
        assert_eq!(log().steps(), 5);
    }
}
