//! The functional driver: runs a process on one flat memory, without time. The reference that timed runs are
//! compared with, and what runs recovery programs and goes on after a crash.
//!
//! Harts run in turn, in the order of their numbers, [`TURN`] instructions each; a turn ends early at `pause`
//! and when a thread yields or waits. Every access is performed at once, so that memory is sequentially
//! consistent. All of it is deterministic. Clocks: a hart's cycles and instructions are its instructions; the
//! time is [`TURN`] ns for each round over all harts, and jumps to the next deadline when every thread waits.
//! Of more threads than harts those that wait give theirs up at once, others after [`QUANTUM_NS`].
//!
//! A reservation (`lr`) ends when another hart runs, so that no other hart's store comes between it and its
//! `sc`. `fence`, cache-line operations and words of persistency have no effect beyond their count; remote
//! memory completes at once. An [`Observer`] is shown each store, cleaned line and fence of persistency.

#![deny(clippy::wildcard_enum_match_arm)]

mod hart;
mod observer;
mod regions;
mod resumed;
mod stepped;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::elf::Executable;
use super::fault::{CpuFault, FaultKind};
use super::hart_state::HartState;
use super::instruction::{A0, A7, SP, TP};
use super::memory::Memory;
use super::process::Process;
use super::repeat::repeats;
use super::syscalls::{Call, CallStep, Data, File, Move, Os, Reply, Then, WaitingThread, Wake, Written};
use super::verbs::{Logs, Peers};
use hart::{Context, Hart, SharedState, Turn};

pub use hart::PmCounts;
pub use observer::{Observer, PersistFence};
pub use regions::{RegionImage, RegionRun, RegionRunCounts, Slots};
pub use resumed::{SavedHart, SavedProcess, resume};
pub use stepped::FunctionalRun;

/// Rounds over all harts before it is looked for the first time whether they only repeat themselves.
const FIRST_LOOK: u64 = 64;

/// Instructions of a hart before the next one runs.
pub const TURN: u64 = 1000;

/// How long a thread keeps a hart that others wait for: ten turns.
pub const QUANTUM_NS: u64 = 10 * TURN;

/// How a process is run.
#[derive(Debug, Clone)]
pub struct Options<'a> {
    /// Harts: threads that run at once.
    pub harts: u32,
    /// Instructions of all harts together.
    pub instructions: u64,
    /// Files that the program may open.
    pub files: Vec<File>,
    /// Other servers that the program may post verbs to.
    pub peers: Peers,
    /// Set it to end the run early.
    pub stop: Option<&'a AtomicBool>,
}

impl Default for Options<'_> {
    /// One hart, no limit, no files, no other servers.
    fn default() -> Self {
        Options { harts: 1, instructions: u64::MAX, files: Vec::new(), peers: Peers::default(), stop: None }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The process ended with this exit code.
    Exited(i32),
    /// The program did something wrong.
    Fault(Box<CpuFault>),
    /// Every thread waits.
    Deadlock(Vec<WaitingThread>),
    /// Every thread that does not wait repeats itself for ever: its hart, the first instruction of its
    /// loop, and the address that it reads.
    Repeats(Vec<(u32, u64, Option<u64>)>),
    /// The limit of instructions was reached.
    Limit,
    /// It was stopped from outside.
    Stopped,
}

/// Threads that wait for each other, each with its futex, in words.
pub fn waits_in_words(threads: &[WaitingThread], image: &Executable) -> String {
    let wait = |&WaitingThread { thread, hart, futex }: &WaitingThread| {
        let who = hart.map_or_else(|| format!("thread {thread}"), |hart| format!("hart {hart}"));
        match futex {
            Some(address) => format!("{who} for a wake of futex {}", image.data_name(address)),
            None => format!("{who} for the end of its sleep"),
        }
    };
    threads.iter().map(wait).collect::<Vec<_>>().join(", ")
}

/// Harts that repeat themselves, in words.
pub fn repeats_in_words(harts: &[(u32, u64, Option<u64>)], image: &Executable) -> String {
    let one = |(hart, pc, read): &(u32, u64, Option<u64>)| {
        let reads = read.map_or_else(String::new, |address| format!(", which reads {}", image.data_name(address)));
        format!("hart {hart} at {}{reads}", image.code_name(*pc))
    };
    harts.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// What came of a run.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// What was written to standard output.
    pub stdout: Vec<u8>,
    /// What was written to standard error.
    pub stderr: Vec<u8>,
    /// The same by the threads that wrote it.
    pub written: Vec<Written>,
    /// Instructions of each hart.
    pub instructions: Vec<u64>,
    /// Words of persistency.
    pub pm: PmCounts,
    /// Files that the program made or changed, by path.
    pub files: Vec<File>,
    /// System calls that are not served, by number and how often they were made.
    pub unsupported_calls: Vec<(u64, u64)>,
    /// Memory as the program left it.
    pub memory: Memory,
    /// What it posted to other servers.
    pub logs: Logs,
}

/// Runs a process from its first instruction.
///
/// # Example: a program of four instructions
/// ```
/// use std::sync::Arc;
/// use durawarp_riscv::elf::{Executable, Segment};
/// use durawarp_riscv::functional::{End, Options, run};
/// use durawarp_riscv::process::{Process, Start};
/// // li a0, 41; addi a0, a0, 1; li a7, 93 (exit); ecall
/// let words = [0x0290_0513u32, 0x0015_0513, 0x05d0_0893, 0x0000_0073];
/// let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
/// let segment = Segment { address: 0x10000, memory_bytes: 16, bytes, executable: true };
/// let segments = vec![segment];
/// let (functions, objects) = (vec![], vec![]);
/// let image = Executable { entry: 0x10000, segments, functions, objects, headers: None, header_count: 0 };
/// let process = Process::new(image, Start::default()).unwrap();
/// let outcome = run(&process, process.memory(), &Options::default());
/// assert_eq!((outcome.end, outcome.instructions), (End::Exited(42), vec![4]));
/// ```
pub fn run(process: &Process, memory: Memory, options: &Options<'_>) -> Outcome {
    run_observed(process, memory, options, &mut ())
}

/// The same, with an observer. What it does cannot change the run.
pub fn run_observed<O: Observer>(
    process: &Process,
    memory: Memory,
    options: &Options<'_>,
    observer: &mut O,
) -> Outcome {
    let mut machine = Machine::begun(process, memory, options, observer);
    let end = machine.run(options.instructions, options.stop);
    machine.outcome(end)
}

#[derive(Debug)]
struct Machine<O> {
    shared: SharedState<O>,
    os: Os,
    harts: Vec<Hart>,
    /// Threads without a hart.
    off: BTreeMap<u64, Context>,
    image: Arc<Executable>,
    now_ns: u64,
    /// The hart that ran last.
    last: usize,
    round: Round,
}

/// How far a round over all harts has come: a run may stop within a turn, and goes on with the rest of it.
#[derive(Debug, Clone, Copy, Default)]
struct Round {
    /// The hart whose turn it is.
    at: usize,
    /// Instructions that are left of its turn; 0 before it begins.
    left: u64,
    /// A hart has run in this round.
    ran: bool,
}

impl<O: Observer> Machine<O> {
    /// Before the first instruction.
    fn begun(process: &Process, memory: Memory, options: &Options<'_>, observer: O) -> Machine<O> {
        let os = Os::new(process, options.harts, options.files.clone()).sharing(QUANTUM_NS);
        let mut harts: Vec<Hart> = (0..options.harts.max(1)).map(Hart::new).collect();
        harts[0].begin(process.image.entry, process.stack_pointer);
        let logs = Logs::new(options.peers, options.harts.max(1));
        let shared = SharedState { memory, code: process.code.clone(), pm: PmCounts::default(), logs, observer };
        let (image, off) = (Arc::clone(&process.image), BTreeMap::new());
        Machine { shared, os, harts, off, image, now_ns: 0, last: 0, round: Round::default() }
    }

    fn outcome(self, end: End) -> Outcome {
        let (stdout, stderr) = self.os.output();
        Outcome {
            end,
            stdout: stdout.to_vec(),
            stderr: stderr.to_vec(),
            written: self.os.written(),
            instructions: self.harts.iter().map(|hart| hart.instructions).collect(),
            pm: self.shared.pm,
            files: self.os.written_files().collect(),
            unsupported_calls: self.os.unsupported().collect(),
            memory: self.shared.memory,
            logs: self.shared.logs,
        }
    }

    /// Executes up to `instructions`, of all harts together.
    fn run(&mut self, instructions: u64, stop: Option<&AtomicBool>) -> End {
        let mut left = instructions;
        loop {
            if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return End::Stopped;
            }
            while self.round.at < self.harts.len() {
                let at = self.round.at;
                if self.round.left == 0 {
                    if !self.harts[at].running {
                        self.round.at += 1;
                        continue;
                    }
                    self.round.left = TURN;
                }
                self.round.ran = true;
                let before = self.harts[at].instructions;
                let ends_early = match self.turn(at, self.round.left.min(left)) {
                    Ok(ends_early) => ends_early,
                    Err(end) => return end,
                };
                let executed = self.harts[at].instructions - before;
                left -= executed;
                self.round.left -= executed;
                if ends_early || self.round.left == 0 {
                    self.round = Round { at: at + 1, left: 0, ran: true };
                    self.share();
                }
                if left == 0 {
                    return End::Limit;
                }
            }
            let ran = std::mem::take(&mut self.round).ran;
            self.now_ns = self.now_ns.saturating_add(TURN);
            if let Some(harts) = self.repeated() {
                return End::Repeats(harts);
            }
            if !ran {
                match self.os.next_deadline() {
                    Some(at) => self.now_ns = self.now_ns.max(at),
                    None => return End::Deadlock(self.os.waiting()),
                }
            }
            let wakes = self.os.expired(self.now_ns);
            self.wake(&wakes);
            self.share();
        }
    }

    /// Harts that others wait for change their threads.
    fn share(&mut self) {
        while let Some(step) = self.os.next_move(self.now_ns) {
            match step {
                Move::Take { hart, .. } => {
                    let of = &mut self.harts[hart as usize];
                    let waits = !std::mem::replace(&mut of.running, false);
                    self.off.insert(self.os.thread(hart), of.context());
                    self.os.left(hart, waits);
                }
                Move::Give { hart, thread, result } => {
                    let Some(context) = self.off.remove(&thread) else {
                        unreachable!("thread {thread} has no registers")
                    };
                    self.harts[hart as usize].enter(context);
                    if let Some(result) = result {
                        self.harts[hart as usize].registers.set(A0, result);
                    }
                }
            }
        }
    }

    /// What harts repeat, where all that run do so for ever. Looked for ever more rarely.
    fn repeated(&self) -> Option<Vec<(u32, u64, Option<u64>)>> {
        let rounds = self.now_ns / TURN;
        if rounds < FIRST_LOOK || !rounds.is_power_of_two() || self.os.next_deadline().is_some() {
            return None;
        }
        let read = |address, width: u8| {
            let mut word = [0; 8];
            let bytes = self.shared.memory.read(address, width.into())?;
            word[..bytes.len()].copy_from_slice(bytes);
            Some(u64::from_le_bytes(word))
        };
        let running = (0..).zip(&self.harts).filter(|(_, hart)| hart.running);
        let found = running.map(|(number, hart)| {
            let now = HartState { registers: hart.registers.first(), pc: hart.pc, fcsr: hart.fcsr };
            // An `sc` succeeds here: only other harts' turns come between.
            let found = repeats(&self.shared.code, &now, &read).ok().filter(|found| found.conditionals == 0)?;
            let decides = found.reads.iter().find(|read| read.decides).or(found.reads.first());
            Some((number, *found.pcs.first()?, decides.map(|read| read.address)))
        });
        found.collect::<Option<Vec<_>>>().filter(|found| !found.is_empty())
    }

    /// Up to `budget` instructions of one hart's turn, with the system calls that it makes. Whether its turn
    /// is over before.
    fn turn(&mut self, at: usize, budget: u64) -> Result<bool, End> {
        if self.last != at {
            self.harts[at].reservation = None;
            self.last = at;
        }
        let mut left = budget;
        while left > 0 {
            let hart = &mut self.harts[at];
            let before = hart.instructions;
            let end = hart.run(&mut self.shared, left, self.now_ns);
            left -= hart.instructions - before;
            match end {
                Turn::Over => {}
                Turn::Paused => return Ok(true),
                Turn::Fault(kind) => return Err(self.fault(at, kind)),
                Turn::Call => {
                    if !self.call(at)? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Performs the system call that a hart stands behind. Whether it goes on.
    fn call(&mut self, at: usize) -> Result<bool, End> {
        let reply = self.perform(at);
        self.answer(at, reply)
    }

    /// The system performs the call that a hart stands behind.
    fn perform(&mut self, at: usize) -> Reply {
        let hart = &self.harts[at];
        let args = std::array::from_fn(|i| hart.registers.get(A0 + i as u8));
        let call = Call { hart: at as u32, number: hart.registers.get(A7), args, now_ns: self.now_ns };
        let mut read = Vec::new();
        loop {
            match self.os.perform(&call, &read) {
                CallStep::Done(reply) => return reply,
                CallStep::Read { address, bytes } => {
                    let bytes = self.shared.memory.read(address, bytes as usize);
                    read.push(bytes.unwrap_or_default().to_vec());
                }
            }
        }
    }

    /// A hart has the answer to the call that it stands behind. Whether it goes on.
    fn answer(&mut self, at: usize, Reply { writes, then, wakes }: Reply) -> Result<bool, End> {
        for write in writes {
            let length = match &write.data {
                Data::Bytes(bytes) => bytes.len(),
                Data::Zeros(length) => *length as usize,
            };
            // The call has seen that it lies in memory.
            let Some(place) = self.shared.memory.slice_mut(write.address, length) else { continue };
            match write.data {
                Data::Bytes(bytes) => place.copy_from_slice(&bytes),
                Data::Zeros(_) => place.fill(0),
            }
            self.shared.observer.store(at as u32, write.address, place);
        }
        self.wake(&wakes);
        let hart = &mut self.harts[at];
        match then {
            Then::Return(value) => hart.registers.set(A0, value),
            Then::Yield(value) => {
                hart.registers.set(A0, value);
                return Ok(false);
            }
            Then::Wait => {
                hart.running = false;
                return Ok(false);
            }
            Then::Spawn { hart: child, stack, thread, result, .. } => {
                let mut context = hart.context();
                hart.registers.set(A0, result);
                context.registers.set(A0, 0);
                context.registers.set(SP, stack);
                if let Some(thread) = thread {
                    context.registers.set(TP, thread);
                }
                match child {
                    Some(child) => self.harts[child as usize].enter(context),
                    None => {
                        self.off.insert(result, context);
                        self.os.born(result);
                    }
                }
            }
            Then::End => {
                hart.running = false;
                let wakes = self.os.ended(at as u32).map_err(End::Exited)?;
                self.wake(&wakes);
                return Ok(false);
            }
            Then::Exit(code) => return Err(End::Exited(code)),
            Then::Signal(number) => return Err(self.fault_behind(at, FaultKind::Signal(number))),
            Then::NoFreeHart => {
                let harts = self.harts.len() as u32;
                return Err(self.fault_behind(at, FaultKind::NoFreeHart { harts }));
            }
        }
        Ok(true)
    }

    fn wake(&mut self, wakes: &[Wake]) {
        for wake in wakes {
            let hart = &mut self.harts[wake.hart as usize];
            hart.registers.set(A0, wake.result);
            hart.running = true;
        }
    }

    fn fault(&self, at: usize, kind: FaultKind) -> End {
        let pc = self.harts[at].pc;
        End::Fault(Box::new(CpuFault { kind, hart: at as u32, pc, symbol: self.image.symbol(pc) }))
    }

    /// A fault of the system call that a hart stands behind.
    fn fault_behind(&mut self, at: usize, kind: FaultKind) -> End {
        let hart = &mut self.harts[at];
        hart.pc = hart.pc.wrapping_sub(4);
        self.fault(at, kind)
    }
}
