//! Threads on harts, and who waits for what: futexes, sleep, the end of a thread.
//!
//! A thread has the hart that it began on until it ends, unless there are more threads than harts and they
//! share them. Waiters of an address are woken in the order in which they came.
//!
//! ```text
//!            Give                       Take                     left
//!  Off, in ──────> On (runs, or waits) ─────> Leaving (the hart ─────> Off, in the queue
//!  the queue        │      in a call)          hands it over)       └─> Off, waits in a call ──wake──> the queue
//!      ▲            └──exit──> gone
//!      └─born── Unborn (began while every hart had a thread)
//! ```
//! | a thread is in the queue, and | it goes on |
//! |---|---|
//! | a hart has no thread | on that hart, the lowest |
//! | a thread waits in a call on its hart | there: that of the thread that has waited longest |
//! | a thread has had its hart for a quantum, or yields | there: that of the thread whose quantum ended first |
//!
//! The queue is served in its order: round robin. With as many harts as threads nothing of this happens.

use std::collections::VecDeque;

use super::call::{Move, WaitingThread, Wake};
use durawarp_checkpoint::{state, value};

/// Number of the first thread, and of the process.
pub const FIRST_THREAD: u64 = 100;

/// Where a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThreadPlace {
    /// This hart has it.
    On(u32),
    /// This hart is to give it up.
    Leaving(u32),
    /// The driver keeps its registers.
    Off,
    /// The driver does not have its registers yet.
    Unborn,
}

value!(choice ThreadPlace { On(hart), Leaving(hart), Off, Unborn });

#[derive(Debug, Clone, PartialEq, Eq)]
struct Thread {
    number: u64,
    /// The word that is set to 0 when it ends, and woken.
    clear: Option<u64>,
    place: ThreadPlace,
    /// What its call gives, which it waited in while it left its hart or had none.
    result: Option<u64>,
    /// It keeps its hart until then, ns.
    until_ns: u64,
}

value!(record Thread { number, clear, place, result, until_ns });

impl Thread {
    fn hart(&self) -> Option<u32> {
        match self.place {
            ThreadPlace::On(hart) | ThreadPlace::Leaving(hart) => Some(hart),
            ThreadPlace::Off | ThreadPlace::Unborn => None,
        }
    }

    fn is_leaving(&self) -> bool {
        matches!(self.place, ThreadPlace::Leaving(_))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Waiter {
    /// The thread.
    number: u64,
    /// The futex; `None` when it sleeps.
    address: Option<u64>,
    /// Wakes with one of these bits are meant for it.
    bits: u32,
    /// It ends by itself in this instant, ns, with this result.
    deadline: Option<(u64, u64)>,
}

value!(record Waiter { number, address, bits, deadline });

/// The threads of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Threads {
    harts: u32,
    /// In the order in which they began.
    threads: Vec<Thread>,
    /// In the order in which they came.
    waiters: Vec<Waiter>,
    /// Threads without a hart that could go on, in their order.
    queue: VecDeque<u64>,
    /// How long a thread keeps a hart that others wait for, ns; none where threads do not share harts.
    quantum_ns: Option<u64>,
    started: u64,
    /// What `exit` of the first thread said.
    code: i32,
}

state!(Threads { saved: threads, waiters, queue, started, code; kept: harts, quantum_ns });

impl Threads {
    pub(super) fn new(harts: u32) -> Threads {
        let first = Thread { number: FIRST_THREAD, clear: None, place: ThreadPlace::On(0), result: None, until_ns: 0 };
        Threads {
            harts: harts.max(1),
            threads: vec![first],
            waiters: Vec::new(),
            queue: VecDeque::new(),
            quantum_ns: None,
            started: 1,
            code: 0,
        }
    }

    pub(super) fn share(&mut self, quantum_ns: u64) {
        self.quantum_ns = Some(quantum_ns);
        self.threads.iter_mut().for_each(|thread| thread.until_ns = quantum_ns);
    }

    pub(super) fn harts(&self) -> u32 {
        self.harts
    }

    /// The thread of a hart.
    fn on(&self, hart: u32) -> Option<&Thread> {
        self.threads.iter().find(|thread| thread.hart() == Some(hart))
    }

    fn on_mut(&mut self, hart: u32) -> Option<&mut Thread> {
        self.threads.iter_mut().find(|thread| thread.hart() == Some(hart))
    }

    fn get(&self, number: u64) -> Option<&Thread> {
        self.threads.iter().find(|thread| thread.number == number)
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut Thread> {
        self.threads.iter_mut().find(|thread| thread.number == number)
    }

    /// The number of the thread on a hart.
    pub(super) fn number(&self, hart: u32) -> u64 {
        self.on(hart).map_or(0, |thread| thread.number)
    }

    pub(super) fn is_alive(&self, number: u64) -> bool {
        self.get(number).is_some()
    }

    pub(super) fn set_clear(&mut self, hart: u32, address: u64) {
        if let Some(thread) = self.on_mut(hart) {
            thread.clear = (address != 0).then_some(address);
        }
    }

    /// The word to be set to 0 when the thread of a hart ends.
    pub(super) fn clear(&self, hart: u32) -> Option<u64> {
        self.on(hart)?.clear
    }

    /// The first hart without a thread.
    fn free_hart(&self) -> Option<u32> {
        (0..self.harts).find(|&hart| self.on(hart).is_none())
    }

    /// Where the next thread would begin, and its number; none where every hart has one and they do not
    /// share them.
    pub(super) fn next(&self) -> Option<(Option<u32>, u64)> {
        let hart = self.free_hart();
        (hart.is_some() || self.quantum_ns.is_some()).then_some((hart, FIRST_THREAD + self.started))
    }

    /// Threads that have begun, the first among them.
    pub(super) fn begun(&self) -> u64 {
        self.started
    }

    /// Starts that thread there.
    pub(super) fn start(&mut self, hart: Option<u32>, number: u64, clear: Option<u64>, now_ns: u64) {
        let place = hart.map_or(ThreadPlace::Unborn, ThreadPlace::On);
        let until_ns = now_ns.saturating_add(self.quantum_ns.unwrap_or(0));
        self.threads.push(Thread { number, clear, place, result: None, until_ns });
        self.started += 1;
    }

    /// Remembers what the process ends with when all its threads have ended.
    pub(super) fn ending(&mut self, hart: u32, code: i32) {
        if self.number(hart) == FIRST_THREAD {
            self.code = code;
        }
    }

    pub(super) fn ended(&mut self, hart: u32) -> Result<Vec<Wake>, i32> {
        let at = self.threads.iter().position(|thread| thread.hart() == Some(hart));
        let thread = at.map(|at| self.threads.remove(at));
        if self.threads.is_empty() {
            return Err(self.code);
        }
        Ok(match thread.and_then(|thread| thread.clear) {
            Some(address) => self.wake(address, 1, u32::MAX).1,
            None => Vec::new(),
        })
    }

    pub(super) fn wait(&mut self, hart: u32, address: Option<u64>, bits: u32, deadline: Option<(u64, u64)>) {
        self.waiters.push(Waiter { number: self.number(hart), address, bits, deadline });
    }

    fn waits(&self, number: u64) -> bool {
        self.waiters.iter().any(|waiter| waiter.number == number)
    }

    /// Ends the waiting of those that are meant, each with its result. How many, and the wakes of those that
    /// have a hart.
    fn resume(&mut self, mut meant: impl FnMut(&Waiter) -> Option<u64>) -> (u64, Vec<Wake>) {
        let mut woken = Vec::new();
        self.waiters.retain(|waiter| match meant(waiter) {
            Some(result) => {
                woken.push((waiter.number, result));
                false
            }
            None => true,
        });
        let count = woken.len() as u64;
        let mut wakes = Vec::new();
        for (number, result) in woken {
            let Some(thread) = self.get_mut(number) else { continue };
            match thread.place {
                ThreadPlace::On(hart) => wakes.push(Wake { hart, result }),
                ThreadPlace::Leaving(_) | ThreadPlace::Unborn => thread.result = Some(result),
                ThreadPlace::Off => {
                    thread.result = Some(result);
                    self.queue.push_back(number);
                }
            }
        }
        (count, wakes)
    }

    /// Wakes up to `count` waiters of an address. How many, and the wakes of those that have a hart.
    pub(super) fn wake(&mut self, address: u64, count: u64, bits: u32) -> (u64, Vec<Wake>) {
        let mut left = count;
        self.resume(|waiter| {
            let meant = waiter.address == Some(address) && waiter.bits & bits != 0 && left > 0;
            left -= u64::from(meant);
            meant.then_some(0)
        })
    }

    /// Has up to `count` waiters of an address wait for another one. How many.
    pub(super) fn requeue(&mut self, from: u64, to: u64, count: u64) -> u64 {
        let moved = self.waiters.iter_mut().filter(|waiter| waiter.address == Some(from));
        let mut number = 0;
        for waiter in moved.take(usize::try_from(count).unwrap_or(usize::MAX)) {
            waiter.address = Some(to);
            number += 1;
        }
        number
    }

    /// More threads could go on than harts are about to be free.
    fn is_short(&self) -> bool {
        !self.queue.is_empty() && self.queue.len() > self.threads.iter().filter(|thread| thread.is_leaving()).count()
    }

    /// The threads that run on their harts.
    fn running(&self) -> impl Iterator<Item = &Thread> {
        self.threads.iter().filter(|thread| matches!(thread.place, ThreadPlace::On(_)) && !self.waits(thread.number))
    }

    pub(super) fn next_deadline(&self) -> Option<u64> {
        let waits = self.waiters.iter().filter_map(|waiter| waiter.deadline).map(|(at, _)| at);
        let quantum = self.is_short().then(|| self.running().map(|thread| thread.until_ns).min()).flatten();
        waits.chain(quantum).min()
    }

    pub(super) fn expired(&mut self, now_ns: u64) -> Vec<Wake> {
        self.resume(|waiter| waiter.deadline.filter(|(at, _)| *at <= now_ns).map(|(_, result)| result)).1
    }

    /// The thread of a hart has nothing to do: its quantum is over.
    pub(super) fn yields(&mut self, hart: u32, now_ns: u64) {
        if let Some(thread) = self.on_mut(hart) {
            thread.until_ns = thread.until_ns.min(now_ns);
        }
    }

    pub(super) fn born(&mut self, number: u64) {
        if let Some(thread) = self.get_mut(number)
            && thread.place == ThreadPlace::Unborn
        {
            thread.place = ThreadPlace::Off;
            self.queue.push_back(number);
        }
    }

    pub(super) fn left(&mut self, hart: u32, waits: bool) {
        let Some(thread) = self.on_mut(hart) else { return };
        thread.place = ThreadPlace::Off;
        let (number, has_result) = (thread.number, thread.result.is_some());
        if !waits || has_result {
            self.queue.push_back(number);
        }
    }

    pub(super) fn next_move(&mut self, now_ns: u64) -> Option<Move> {
        let quantum_ns = self.quantum_ns?;
        if self.queue.is_empty() {
            return None;
        }
        if let Some(hart) = self.free_hart() {
            let thread = self.queue.pop_front()?;
            let of = self.get_mut(thread)?;
            (of.place, of.until_ns) = (ThreadPlace::On(hart), now_ns.saturating_add(quantum_ns));
            return Some(Move::Give { hart, thread, result: of.result.take() });
        }
        if !self.is_short() {
            return None;
        }
        let is_on = |number: u64| self.get(number).is_some_and(|thread| matches!(thread.place, ThreadPlace::On(_)));
        let waits = self.waiters.iter().map(|waiter| waiter.number).find(|&number| is_on(number));
        let over = || {
            let over = self.running().filter(|thread| thread.until_ns <= now_ns);
            over.min_by_key(|thread| (thread.until_ns, thread.number)).map(|thread| thread.number)
        };
        let preempts = waits.is_none();
        let number = waits.or_else(over)?;
        let thread = self.get_mut(number)?;
        let hart = thread.hart()?;
        thread.place = ThreadPlace::Leaving(hart);
        Some(Move::Take { hart, preempts })
    }

    pub(super) fn waiting(&self) -> Vec<WaitingThread> {
        let waiting = |&Waiter { number, address, .. }: &Waiter| {
            let hart = self.get(number).and_then(Thread::hart);
            WaitingThread { thread: number, hart, futex: address }
        };
        self.waiters.iter().map(waiting).collect()
    }
}

#[cfg(test)]
mod tests;
