//! The state of a process that its system calls see and change.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand_pcg::Pcg64;

use super::call::{File, Wake};
use super::files::Files;
use super::output::Written;
use super::space::Space;
use super::threads::Threads;
use crate::riscv::code::CodeTable;
use crate::riscv::memory::Windows;
use crate::riscv::process::Process;

/// The state of a process that its system calls see and change.
#[derive(Debug, Clone)]
pub struct Os {
    pub(super) process: Fixed,
    pub(super) space: Space,
    pub(super) threads: Threads,
    pub(super) files: Files,
    pub(super) random: Pcg64,
    /// Calls that are not modelled, and how often they were made.
    pub(super) unsupported: BTreeMap<u64, u64>,
}

/// What does not change while a process runs.
#[derive(Debug, Clone)]
pub(super) struct Fixed {
    pub(super) windows: Windows,
    pub(super) code: Arc<CodeTable>,
    pub(super) stack_bytes: u64,
    pub(super) program: String,
}

/// The sequence of the generator behind `getrandom`.
const RANDOM_STREAM: u128 = 2;

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
            files: Files::new(files),
            random: Pcg64::new(start.seed.into(), RANDOM_STREAM),
            unsupported: BTreeMap::new(),
        }
    }

    /// The thread of this hart has ended and its writes are stored. Wakes who waits for it; `Err` with the
    /// exit code when it was the last one.
    ///
    /// # Errors
    /// No error: the process has ended.
    pub fn ended(&mut self, hart: u32) -> Result<Vec<Wake>, i32> {
        self.threads.ended(hart)
    }

    /// The earliest instant in ns at which a waiting ends by itself.
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

    /// The harts that wait, each with the address of its futex; none when it sleeps.
    pub fn waiting(&self) -> Vec<(u32, Option<u64>)> {
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

    /// Calls that are not modelled, by number and how often they were made. They gave ENOSYS.
    pub fn unsupported(&self) -> impl Iterator<Item = (u64, u64)> {
        self.unsupported.iter().map(|(&number, &times)| (number, times))
    }
}
