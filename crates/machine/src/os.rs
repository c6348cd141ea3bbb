//! The operating system of a machine of cores, as a component: it performs system calls one at a time, reads
//! memory for them at the home slices, and wakes harts.
//!
//! ```text
//!  core ──Call, Ended──> queue ──> riscv::syscalls::Os ──Return, Wake, Stop──> cores   (os.syscall_ns more)
//!       ──Begin────────────────────────────────────────Begin──> the hart's core        (at once)
//!       ──Born, Left──> threads without a hart ──Leave, Begin──> cores   (os.syscall_ns; Begin os.switch_ns more)
//!                                     │ reading: Get Once ─> homes ─ Data ─> again
//! ```
//! | instant of a call | what happens |
//! |---|---|
//! | it arrives | it waits for those before it |
//! | its turn | it is performed; what it reads of memory comes line by line, then it is performed again |
//! | it is done | its effect on the OS is there; `now` of the call is this instant |
//! | `os.syscall_ns` later | the answer leaves, and the wakes |
//!
//! All that the OS says to cores of its own accord takes `os.syscall_ns`, so that no `Wake` overtakes the
//! `Return` that began the waiting. A deadline of a wait is looked at before anything else of its instant.
//!
//! Each call, end of a thread and end of waits by their deadlines is a *step*; steps are numbered, and each
//! answer and wake says which it is of. Where regions recover a program, a log of them gives the state after
//! any step ([`OsLog`]), and what steps follow from goes with them: a core's last region as it calls, and
//! that of lines which are read. So a hart that goes on from a call persists after all that the call could
//! have seen. Of more threads than harts those without a hart are here with their registers; who gets which
//! hart is the state machine's to say ([`Os::next_move`]), with `os.quantum_us` for threads that do not wait.
//!
//! Invariants: between the reading of a futex's word and the end of that call no other call is performed, nor
//! the end of a thread, which wakes a futex, too. After the end of the process nothing is performed and
//! nothing waits. Not modelled: the kernel's code, its memory traffic other than arguments, interrupts of
//! devices. Source of calls: [`durawarp_riscv::syscalls`].

mod parameters;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use durawarp_checkpoint::{state, state_methods, value};
use durawarp_engine::{Component, Ctx, StateDigest, Time, Timebase, Wait};
use durawarp_persist::dependency::{Dependencies, depend};
use durawarp_riscv::elf::Executable;
use durawarp_riscv::hart_state::HartState;
use durawarp_riscv::instruction::A0;
use durawarp_riscv::syscalls::{
    Call, CallStep, FIRST_THREAD, File, Move, Os, OsLog, Reply, Then, WaitingThread, Wake, number,
};

use super::coherence::{Begin, CoreMsg, LineData, OsMsg, SystemStep};
use super::cpu::CpuMemory;
use super::line_reader::LineReader;
use super::msg::{Msg, Receiver, deliver};
use super::ports::{Ports, To};
use super::verbs::NicMsg;

pub use parameters::{OsCounters, OsSpec};

/// Nanoseconds after which a deadline is never: more than any run has.
const NEVER_NS: u64 = 1 << 53;

/// How the OS is wired.
#[derive(Debug)]
pub struct OsWiring {
    pub ports: Ports,
    /// The machine's tick rate.
    pub timebase: Timebase,
    /// Where a process' memory lies.
    pub memory: CpuMemory,
    /// Harts of a core.
    pub harts: u32,
    /// The executable, whose objects are named where threads wait for them.
    pub image: Arc<Executable>,
}

/// What is to be done, in the order of arrival.
#[derive(Debug)]
enum Task {
    /// A call to perform.
    Call(Box<Call>),
    /// The thread of this hart has ended.
    Ended(u32),
}

value!(choice Task { Call(call), Ended(hart) });

/// The operating system.
#[derive(Debug)]
pub struct OperatingSystem {
    ports: Ports,
    clock: ProcessClock,
    harts: u32,
    costs: Costs,
    calls: Os,
    steps: Steps,
    /// Registers of the threads that have no hart.
    off: BTreeMap<u64, Box<HartState>>,
    image: Arc<Executable>,
    /// The first is being performed. With each: when it arrived.
    tasks: VecDeque<(Task, Time)>,
    /// What is read for the first task.
    reader: LineReader,
    /// By thread, from the first on: when its wait began.
    waiting_since: Vec<Time>,
    /// The earliest end of a wait, in ticks.
    deadline: Option<Time>,
    /// When the process ended, and its exit code.
    ended: Option<(Time, i32)>,
    /// The simulation halts once when the process has ended.
    halts: bool,
    counters: OsCounters,
    /// Ticks that calls waited for their turn, and harts for a wake.
    ticks: Waited,
}

/// The time of the process in nanoseconds, and of the simulation in ticks.
#[derive(Debug, Clone, Copy)]
struct ProcessClock {
    timebase: Timebase,
    /// Of the process when the simulation begins.
    begun_ns: u64,
}

impl ProcessClock {
    fn ns(&self, ticks: Time) -> u64 {
        self.begun_ns + self.timebase.ps_of_ticks(ticks) / 1000
    }

    fn ticks(&self, ns: u64) -> Time {
        self.timebase.ticks_of_ps(ns.saturating_sub(self.begun_ns) * 1000)
    }
}

state!(OperatingSystem {
    parts: calls, steps, reader; saved: off, tasks, waiting_since, deadline, ended, counters, ticks;
    kept: ports, clock, harts, costs, image, halts
});

/// What the OS takes, in ticks.
#[derive(Debug, Clone, Copy)]
struct Costs {
    /// For a call.
    syscall: Time,
    /// For a thread to take a hart: with the call that has it do so.
    switch: Time,
}

/// The steps of the OS.
#[derive(Debug, Default)]
struct Steps {
    /// How many there were.
    number: u64,
    /// What they were, where that is kept.
    log: Option<OsLog>,
    /// They follow from regions of the program, the last of each core.
    of_regions: bool,
    after: Dependencies,
}

state!(Steps { saved: number, after; kept: log, of_regions });

impl Steps {
    /// One more, which `note` writes down.
    fn step(&mut self, note: impl FnOnce(&mut OsLog)) {
        self.number += 1;
        if let Some(log) = &mut self.log {
            note(log);
        }
    }

    /// It follows from these, too.
    fn follow(&mut self, dependencies: Option<&Dependencies>) {
        for &of in dependencies.into_iter().flatten().filter(|_| self.of_regions) {
            depend(&mut self.after, of);
        }
    }

    /// The last one.
    fn last(&self) -> SystemStep {
        let after = (!self.after.is_empty()).then(|| Box::new(self.after.clone()));
        SystemStep { number: self.number, after }
    }
}

/// Sums of waiting, in ticks.
#[derive(Debug, Clone, Copy, Default)]
struct Waited {
    turn: Time,
    wake: Time,
}

value!(record Waited { turn, wake });

impl OperatingSystem {
    /// The OS of a process before its first instruction; `calls` has as many harts as the machine.
    pub fn new(spec: OsSpec, wiring: OsWiring, calls: Os) -> OperatingSystem {
        let OsWiring { ports, timebase, memory, harts, image } = wiring;
        OperatingSystem {
            ports,
            clock: ProcessClock { timebase, begun_ns: 0 },
            harts,
            costs: Costs {
                syscall: timebase.ticks_of_ps(spec.syscall_ns.ps),
                switch: timebase.ticks_of_ps(spec.syscall_ns.ps + spec.switch_ns.ps),
            },
            calls,
            steps: Steps::default(),
            off: BTreeMap::new(),
            image,
            tasks: VecDeque::new(),
            reader: LineReader::new(ports, memory),
            waiting_since: Vec::new(),
            deadline: None,
            ended: None,
            halts: false,
            counters: OsCounters::default(),
            ticks: Waited::default(),
        }
    }

    /// The process has run for this long when the simulation begins.
    pub fn begin_at(&mut self, begun_ns: u64) {
        self.clock.begun_ns = begun_ns;
    }

    /// Halts the simulation once when the process has ended.
    pub fn halt_at_end(&mut self) {
        self.halts = true;
    }

    /// Its steps follow from recoverable regions of the program; with `logs` it keeps them.
    pub fn follow_regions(&mut self, logs: bool) {
        self.steps.of_regions = true;
        self.steps.log = logs.then(OsLog::default);
    }

    /// Its steps, where it keeps them.
    pub fn log(&self) -> Option<&OsLog> {
        self.steps.log.as_ref()
    }

    /// When the process ended, in ticks, and its exit code; none while it runs.
    pub fn ended(&self) -> Option<(Time, i32)> {
        self.ended
    }

    /// What was written to standard output and standard error.
    pub fn output(&self) -> (&[u8], &[u8]) {
        self.calls.output()
    }

    /// Files that the program made or changed, by path.
    pub fn written_files(&self) -> impl Iterator<Item = File> + '_ {
        self.calls.written_files()
    }

    /// Calls that are not served, by number and how often they were made.
    pub fn unsupported(&self) -> impl Iterator<Item = (u64, u64)> {
        self.calls.unsupported()
    }

    /// The state of its calls; none while it performs one.
    pub fn idle(&self) -> Option<&Os> {
        self.tasks.is_empty().then_some(&self.calls)
    }

    /// What it counted.
    pub fn counters(&self) -> OsCounters {
        let ns = |ticks: Time| self.clock.timebase.ps_of_ticks(ticks) / 1000;
        let Waited { turn, wake } = self.ticks;
        OsCounters { read_lines: self.reader.lines(), turn_ns: ns(turn), wait_ns: ns(wake), ..self.counters }
    }

    /// A hart with the number of its thread, 0 where that has ended.
    fn thread_on(&self, hart: u32) -> String {
        match self.calls.thread(hart) {
            0 => format!("hart {hart}"),
            thread => format!("hart {hart} (thread {thread})"),
        }
    }

    fn core_of(&self, hart: u32) -> To<CoreMsg> {
        self.ports.to_core((hart / self.harts) as u16)
    }

    /// Says something to a core, `syscall_ns` from now.
    fn tell(&self, core: To<CoreMsg>, message: CoreMsg, cx: &mut Ctx<'_, Msg>) {
        core.send(message, self.costs.syscall, cx);
    }

    fn push(&mut self, task: Task, cx: &mut Ctx<'_, Msg>) {
        if self.ended.is_some() {
            return;
        }
        self.tasks.push_back((task, cx.now()));
        if self.tasks.len() == 1 {
            self.perform(cx);
        }
    }

    /// Performs tasks until one has to read memory or none is left.
    fn perform(&mut self, cx: &mut Ctx<'_, Msg>) {
        while let Some((task, arrived)) = self.tasks.front_mut() {
            let begins = !self.reader.has_read();
            if begins {
                self.ticks.turn += cx.now() - *arrived;
            }
            match task {
                Task::Ended(hart) => {
                    let hart = *hart;
                    self.tasks.pop_front();
                    let now_ns = self.clock.ns(cx.now());
                    self.steps.step(|log| log.ended(hart, now_ns));
                    match self.calls.ended(hart) {
                        Ok(wakes) => {
                            self.wake_harts(&wakes, cx);
                            self.share(cx);
                        }
                        Err(code) => self.end(code, cx),
                    }
                }
                Task::Call(call) => {
                    call.now_ns = self.clock.ns(cx.now());
                    match self.calls.perform(call, self.reader.read()) {
                        CallStep::Read { address, bytes } => {
                            self.reader.begin(address, bytes, cx);
                            return;
                        }
                        CallStep::Done(reply) => {
                            let hart = call.hart;
                            self.steps.step(|log| log.called(call, self.reader.read()));
                            self.tasks.pop_front();
                            self.reader.clear();
                            self.answer(hart, reply, cx);
                        }
                    }
                }
            }
        }
    }

    /// A call is done.
    fn answer(&mut self, hart: u32, mut reply: Reply, cx: &mut Ctx<'_, Msg>) {
        let wakes = std::mem::take(&mut reply.wakes);
        match reply.then {
            Then::Exit(code) => return self.end(code, cx),
            Then::Wait => self.wait_begins(hart, cx.now()),
            Then::Spawn { .. } => self.counters.threads += 1,
            Then::Return(_) | Then::Yield(_) | Then::End | Then::Signal(_) | Then::NoFreeHart => {}
        }
        self.tell(self.core_of(hart), CoreMsg::Return { hart, reply: Box::new(reply), step: self.steps.last() }, cx);
        self.wake_harts(&wakes, cx);
        self.share(cx);
        self.await_deadline(cx);
    }

    fn wait_begins(&mut self, hart: u32, now: Time) {
        let at = (self.calls.thread(hart).saturating_sub(FIRST_THREAD)) as usize;
        self.waiting_since.resize(self.waiting_since.len().max(at + 1), 0);
        self.waiting_since[at] = now;
    }

    /// When the wait of a thread began.
    fn waits_since(&self, thread: u64) -> Time {
        self.waiting_since.get(thread.saturating_sub(FIRST_THREAD) as usize).copied().unwrap_or(0)
    }

    /// Harts that others wait for change their threads.
    fn share(&mut self, cx: &mut Ctx<'_, Msg>) {
        while self.ended.is_none()
            && let Some(step) = self.calls.next_move(self.clock.ns(cx.now()))
        {
            match step {
                Move::Take { hart, preempts } => {
                    self.counters.preemptions += u64::from(preempts);
                    self.tell(self.core_of(hart), CoreMsg::Leave { hart }, cx);
                }
                Move::Give { hart, thread, result } => {
                    self.counters.switches += 1;
                    let Some(mut state) = self.off.remove(&thread) else { panic!("thread {thread} has no registers") };
                    if let Some(result) = result {
                        self.counters.wakes += 1;
                        self.ticks.wake += cx.now() - self.waits_since(thread);
                        state.registers[usize::from(A0)] = result;
                    }
                    let begin = Begin { hart, state, dependencies: None };
                    self.core_of(hart).send(CoreMsg::Begin(begin), self.costs.switch, cx);
                }
            }
        }
        if !self.off.is_empty() {
            self.await_deadline(cx);
        }
    }

    fn wake_harts(&mut self, wakes: &[Wake], cx: &mut Ctx<'_, Msg>) {
        for &Wake { hart, result } in wakes {
            self.counters.wakes += 1;
            self.ticks.wake += cx.now() - self.waits_since(self.calls.thread(hart));
            self.tell(self.core_of(hart), CoreMsg::Wake { hart, result, step: self.steps.last() }, cx);
        }
    }

    /// Sees to it that it wakes at the earliest deadline.
    fn await_deadline(&mut self, cx: &mut Ctx<'_, Msg>) {
        let at = self.calls.next_deadline().filter(|&ns| ns < NEVER_NS);
        self.deadline = at.map(|ns| self.clock.ticks(ns).max(cx.now()));
        if let Some(at) = self.deadline {
            cx.wake_at(at);
        }
    }

    /// Ends the waits whose deadline has come.
    fn expire(&mut self, cx: &mut Ctx<'_, Msg>) {
        if self.deadline.is_some_and(|at| at <= cx.now()) {
            let now_ns = self.clock.ns(cx.now());
            let expired = self.calls.expired(now_ns);
            if !expired.is_empty() {
                self.steps.step(|log| log.expired(now_ns));
            }
            self.counters.timeouts += expired.len() as u64;
            self.wake_harts(&expired, cx);
            self.share(cx);
            self.await_deadline(cx);
        }
    }

    /// The process has ended.
    fn end(&mut self, code: i32, cx: &mut Ctx<'_, Msg>) {
        let at = cx.now() + self.costs.syscall;
        self.ended = Some((at, code));
        (self.deadline, self.tasks) = (None, VecDeque::new());
        for core in self.ports.to_cores() {
            self.tell(core, CoreMsg::Stop, cx);
        }
        if self.ports.roster().clients > 0 {
            self.ports.to_nic().send(NicMsg::ProgramOver, self.costs.syscall, cx);
        }
        if self.halts {
            cx.wake_at(at);
        }
    }
}

impl Receiver for OperatingSystem {
    type Inbox = OsMsg;

    fn receive(&mut self, message: OsMsg, cx: &mut Ctx<'_, Msg>) {
        self.expire(cx);
        match message {
            OsMsg::Call { call, dependencies } => {
                self.counters.calls += 1;
                self.steps.follow(dependencies.as_deref());
                self.push(Task::Call(call), cx);
            }
            OsMsg::Ended { hart, dependencies } => {
                self.steps.follow(dependencies.as_deref());
                self.push(Task::Ended(hart), cx);
            }
            OsMsg::Data(LineData { tag, data, dependencies, .. }) => {
                self.steps.follow(dependencies.as_deref());
                if self.reader.receive(tag, data, cx) && self.ended.is_none() {
                    self.perform(cx);
                }
            }
            OsMsg::Left { hart, waits, state } => {
                self.off.insert(self.calls.thread(hart), state);
                self.calls.left(hart, waits);
                self.share(cx);
            }
            OsMsg::Born { thread, state } => {
                self.off.insert(thread, state);
                self.calls.born(thread);
                self.share(cx);
            }
            // A process that has ended starts nothing more.
            OsMsg::Begin(_) if self.ended.is_some() => {}
            OsMsg::Begin(begin) => self.core_of(begin.hart).send(CoreMsg::Begin(begin), 0, cx),
        }
    }
}

impl Component<Msg> for OperatingSystem {
    state_methods!();

    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        deliver(self, message, cx);
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        self.expire(cx);
        // This may have been the wake of an earlier deadline, which is no more.
        if let Some(at) = self.deadline {
            cx.wake_at(at);
        }
        match self.ended {
            // A wake for a deadline that is no more may come before.
            Some((at, _)) if self.halts && at > cx.now() => cx.wake_at(at),
            Some((at, _)) if self.halts && at == cx.now() => cx.halt(),
            _ => {}
        }
    }

    fn waits(&self, out: &mut Vec<Wait>) {
        if self.ended.is_some() {
            return;
        }
        for (task, since) in &self.tasks {
            let (who, what) = match task {
                Task::Call(call) => {
                    let name = number::name(call.number).map_or_else(|| call.number.to_string(), str::to_owned);
                    (call.hart, format!("system call {name}"))
                }
                Task::Ended(hart) => (*hart, "the end of its thread".to_owned()),
            };
            out.push(Wait { who: self.thread_on(who), what, on: None, since: *since });
        }
        for WaitingThread { thread, hart, futex } in self.calls.waiting() {
            let what = match futex {
                Some(address) => format!("a wake of futex {}", self.image.data_name(address)),
                None => "the end of its sleep".to_owned(),
            };
            let since = self.waits_since(thread);
            let who = hart.map_or_else(|| format!("thread {thread}, without a hart,"), |hart| self.thread_on(hart));
            out.push(Wait { who, what, on: None, since });
        }
    }

    fn digest(&self) -> u64 {
        let mut digest = StateDigest::default();
        let (at, code) = self.ended.unwrap_or_default();
        [at, code as u64, self.tasks.len() as u64, self.deadline.unwrap_or_default()]
            .into_iter()
            .for_each(|word| digest.word(word));
        for WaitingThread { thread, hart, futex } in self.calls.waiting() {
            digest.word(hart.map_or(thread << 32, u64::from));
            digest.word(futex.unwrap_or_default());
        }
        for (thread, state) in &self.off {
            digest.word(*thread);
            digest.word(state.pc);
        }
        let (stdout, stderr) = self.output();
        digest.bytes(stdout);
        digest.bytes(stderr);
        digest.value()
    }
}
