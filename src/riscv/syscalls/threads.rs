//! Threads on harts, and who waits for what: futexes, sleep, the end of a thread.
//!
//! A thread has a hart for itself from its `clone` to its end. Waiters of an address are woken in the order
//! in which they came.

use super::call::Wake;

/// Number of the first thread, and of the process.
pub const FIRST_THREAD: u64 = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Thread {
    number: u64,
    /// The word that is set to 0 when it ends, and woken.
    clear: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Waiter {
    hart: u32,
    /// The futex; `None` when it sleeps.
    address: Option<u64>,
    /// Wakes with one of these bits are meant for it.
    bits: u32,
    /// It ends by itself in this instant, ns, with this result.
    deadline: Option<(u64, u64)>,
}

/// The threads of a process.
#[derive(Debug, Clone)]
pub(super) struct Threads {
    /// By hart.
    threads: Vec<Option<Thread>>,
    /// In the order in which they came.
    waiters: Vec<Waiter>,
    started: u64,
    /// What `exit` of the first thread said.
    code: i32,
}

impl Threads {
    pub(super) fn new(harts: u32) -> Threads {
        let mut threads = vec![None; harts.max(1) as usize];
        threads[0] = Some(Thread { number: FIRST_THREAD, clear: None });
        Threads { threads, waiters: Vec::new(), started: 1, code: 0 }
    }

    pub(super) fn harts(&self) -> u32 {
        self.threads.len() as u32
    }

    fn thread_mut(&mut self, hart: u32) -> Option<&mut Thread> {
        self.threads.get_mut(hart as usize)?.as_mut()
    }

    /// The number of the thread on a hart.
    pub(super) fn number(&self, hart: u32) -> u64 {
        self.threads.get(hart as usize).and_then(Option::as_ref).map_or(0, |thread| thread.number)
    }

    pub(super) fn is_alive(&self, number: u64) -> bool {
        self.threads.iter().flatten().any(|thread| thread.number == number)
    }

    pub(super) fn set_clear(&mut self, hart: u32, address: u64) {
        if let Some(thread) = self.thread_mut(hart) {
            thread.clear = (address != 0).then_some(address);
        }
    }

    /// The word to be set to 0 when the thread of a hart ends.
    pub(super) fn clear(&self, hart: u32) -> Option<u64> {
        self.threads.get(hart as usize)?.as_ref()?.clear
    }

    /// The first free hart and the number of the thread that would be next.
    pub(super) fn next(&self) -> Option<(u32, u64)> {
        let hart = self.threads.iter().position(Option::is_none)?;
        Some((hart as u32, FIRST_THREAD + self.started))
    }

    /// Threads that have begun, the first among them.
    pub(super) fn begun(&self) -> u64 {
        self.started
    }

    /// Starts that thread there.
    pub(super) fn start(&mut self, hart: u32, number: u64, clear: Option<u64>) {
        self.threads[hart as usize] = Some(Thread { number, clear });
        self.started += 1;
    }

    /// Remembers what the process ends with when all its threads have ended.
    pub(super) fn ending(&mut self, hart: u32, code: i32) {
        if self.number(hart) == FIRST_THREAD {
            self.code = code;
        }
    }

    pub(super) fn ended(&mut self, hart: u32) -> Result<Vec<Wake>, i32> {
        let thread = self.threads.get_mut(hart as usize).and_then(Option::take);
        if self.threads.iter().all(Option::is_none) {
            return Err(self.code);
        }
        Ok(match thread.and_then(|thread| thread.clear) {
            Some(address) => self.wake(address, 1, u32::MAX),
            None => Vec::new(),
        })
    }

    pub(super) fn wait(&mut self, hart: u32, address: Option<u64>, bits: u32, deadline: Option<(u64, u64)>) {
        self.waiters.push(Waiter { hart, address, bits, deadline });
    }

    /// Wakes up to `count` waiters of an address.
    pub(super) fn wake(&mut self, address: u64, count: u64, bits: u32) -> Vec<Wake> {
        let mut woken = Vec::new();
        self.waiters.retain(|waiter| {
            let meant = waiter.address == Some(address) && waiter.bits & bits != 0 && (woken.len() as u64) < count;
            if meant {
                woken.push(Wake { hart: waiter.hart, result: 0 });
            }
            !meant
        });
        woken
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

    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.waiters.iter().filter_map(|waiter| waiter.deadline).map(|(at, _)| at).min()
    }

    pub(super) fn expired(&mut self, now_ns: u64) -> Vec<Wake> {
        let mut woken = Vec::new();
        self.waiters.retain(|waiter| match waiter.deadline {
            Some((at, result)) if at <= now_ns => {
                woken.push(Wake { hart: waiter.hart, result });
                false
            }
            _ => true,
        });
        woken
    }

    pub(super) fn waiting(&self) -> Vec<(u32, Option<u64>)> {
        self.waiters.iter().map(|waiter| (waiter.hart, waiter.address)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_of_an_address_are_woken_in_their_order_up_to_a_count() {
        let mut threads = Threads::new(4);
        for (hart, address) in [(3, 64), (1, 64), (2, 128), (0, 64)] {
            threads.wait(hart, Some(address), u32::MAX, None);
        }
        let harts = |wakes: Vec<Wake>| wakes.iter().map(|wake| wake.hart).collect::<Vec<_>>();
        assert_eq!(harts(threads.wake(64, 2, u32::MAX)), [3, 1]);
        assert_eq!(harts(threads.wake(64, 2, u32::MAX)), [0]);
        assert_eq!(threads.waiting(), [(2, Some(128))]);
        assert_eq!((threads.requeue(128, 64, 5), harts(threads.wake(64, 1, 1))), (1, vec![2]));
    }

    #[test]
    fn a_wake_reaches_those_that_asked_for_one_of_its_bits() {
        let mut threads = Threads::new(2);
        threads.wait(0, Some(8), 0b01, None);
        threads.wait(1, Some(8), 0b10, None);
        assert_eq!(threads.wake(8, 9, 0b10), [Wake { hart: 1, result: 0 }]);
    }

    #[test]
    fn a_deadline_ends_a_waiting_at_its_instant() {
        let mut threads = Threads::new(2);
        threads.wait(0, None, 0, Some((500, 7)));
        threads.wait(1, Some(8), 1, Some((400, 9)));
        assert_eq!(threads.next_deadline(), Some(400));
        assert_eq!((threads.expired(399), threads.expired(400)), (vec![], vec![Wake { hart: 1, result: 9 }]));
    }

    #[test]
    fn a_thread_that_ends_frees_its_hart_and_wakes_one_waiter() {
        let mut threads = Threads::new(2);
        assert_eq!(threads.next(), Some((1, 101)));
        threads.start(1, 101, Some(96));
        assert_eq!(threads.next(), None);
        threads.wait(0, Some(96), u32::MAX, None);
        assert_eq!(threads.ended(1), Ok(vec![Wake { hart: 0, result: 0 }]));
        assert_eq!(threads.next(), Some((1, 102)));
        threads.ending(0, 3);
        assert_eq!(threads.ended(0), Err(3));
    }
}
