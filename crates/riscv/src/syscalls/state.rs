//! The state of a process that its system calls see and change.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::call::{File, Move, WaitingThread, Wake};
use super::files::Files;
use super::output::Written;
use super::random::RandomBytes;
use super::space::Space;
use super::threads::Threads;
use crate::code::CodeTable;
use crate::memory::Windows;
use crate::process::Process;
use durawarp_checkpoint::state;

/// The state of a process that its system calls see and change.
#[derive(Debug, Clone, PartialEq)]
pub struct Os {
    pub(super) process: Fixed,
    pub(super) space: Space,
    pub(super) threads: Threads,
    pub(super) files: Files,
    pub(super) random: RandomBytes,
    /// Handler, flags and mask of each signal that the program said something of.
    pub(super) signals: BTreeMap<u64, [u64; 3]>,
    /// By thread: address, flags and size of its stack for signals.
    pub(super) signal_stacks: BTreeMap<u64, [u64; 3]>,
    /// Calls that are not modelled, and how often they were made.
    pub(super) unsupported: BTreeMap<u64, u64>,
}

state!(Os {
    parts: space, threads, random; saved: files, signals, signal_stacks, unsupported; kept: process
});

/// What does not change while a process runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fixed {
    pub(super) windows: Windows,
    pub(super) code: Arc<CodeTable>,
    pub(super) stack_bytes: u64,
    pub(super) program: String,
}

impl Os {
    /// The state before the first instruction: hart 0 runs the first thread, the other harts are free.
    pub fn new(process: &Process, harts: u32, files: Vec<File>) -> Os {
        let start = &process.start;
        Os {
            process: Fixed {
                windows: start.windows,
                code: process.code.clone(),
                stack_bytes: start.stack_bytes,
                program: start.name.clone(),
            },
            space: Space::new(process.heap_start, process.stack_start),
            threads: Threads::new(harts),
            files: Files::new(files, start.stdin.as_deref()),
            random: RandomBytes::new(start.seed),
            signals: BTreeMap::new(),
            signal_stacks: BTreeMap::new(),
            unsupported: BTreeMap::new(),
        }
    }

    /// Threads share harts from now on: one that others wait for keeps its hart for this long, in ns.
    #[must_use]
    pub fn sharing(mut self, quantum_ns: u64) -> Os {
        self.threads.share(quantum_ns);
        self
    }

    /// The next step by which threads share harts, now; the driver does it, and asks again. It asks after
    /// every call, end of a thread, end of a wait, and [`born`](Os::born) or [`left`](Os::left) thread.
    pub fn next_move(&mut self, now_ns: u64) -> Option<Move> {
        self.threads.next_move(now_ns)
    }

    /// The registers of a thread that began without a hart are with the driver.
    pub fn born(&mut self, thread: u64) {
        self.threads.born(thread);
    }

    /// A hart has given up its thread, which may wait in a call.
    pub fn left(&mut self, hart: u32, waits: bool) {
        self.threads.left(hart, waits);
    }

    /// The thread of this hart has ended and its writes are stored. Wakes who waits for it; `Err` with the
    /// exit code when it was the last one.
    ///
    /// # Errors
    /// No error: the process has ended.
    pub fn ended(&mut self, hart: u32) -> Result<Vec<Wake>, i32> {
        self.threads.ended(hart)
    }

    /// The earliest instant in ns at which a waiting ends by itself, or a thread's time on its hart.
    pub fn next_deadline(&self) -> Option<u64> {
        self.threads.next_deadline()
    }

    /// The harts whose waiting ends by itself until this instant.
    pub fn expired(&mut self, now_ns: u64) -> Vec<Wake> {
        self.threads.expired(now_ns)
    }

    /// The number of the thread on a hart; 0 without one.
    pub fn thread(&self, hart: u32) -> u64 {
        self.threads.number(hart)
    }

    /// Threads that have begun, the first among them.
    pub fn threads_begun(&self) -> u64 {
        self.threads.begun()
    }

    /// The threads that wait in a call, in the order in which they came.
    pub fn waiting(&self) -> Vec<WaitingThread> {
        self.threads.waiting()
    }

    /// What was written to standard output and standard error.
    pub fn output(&self) -> (&[u8], &[u8]) {
        self.files.output.bytes()
    }

    /// What each thread wrote, by its number and in its order.
    pub fn written(&self) -> Vec<Written> {
        self.files.output.by_thread()
    }

    /// Files that the program has made or changed, and not deleted, by path.
    pub fn written_files(&self) -> impl Iterator<Item = File> + '_ {
        self.files.written()
    }

    /// Something that a call asks for is not served.
    pub(super) fn note_missing(&mut self, number: u64) {
        *self.unsupported.entry(number).or_default() += 1;
    }

    /// Calls that are not served, or not in all that was asked of them, by number and how often they were
    /// made.
    pub fn unsupported(&self) -> impl Iterator<Item = (u64, u64)> {
        self.unsupported.iter().map(|(&number, &times)| (number, times))
    }
}
