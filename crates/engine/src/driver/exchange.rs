//! The end of a round between partitions: they exchange messages, and learn all workers' results of the
//! round.
//!
//! ```text
//!   worker 0: outbox[1] ──swap──> box[0->1][parity] ──swap──> worker 1: into its queue     (after the barrier)
//!   worker 1: outbox[0] ──swap──> box[1->0][parity] ──swap──> worker 0
//! ```
//! One batch a round and pair of partitions: the sender swaps its full Vec for the empty one in the box
//! *before* it publishes its line, the receiver swaps it out *after* it has read that line, and only if the
//! line says so. By the argument of `lines.rs` a box of one parity is emptied before it is filled again. The
//! lock of a box is therefore never contended; it is there so that the swap is safe Rust (`benches/engine.rs`
//! compares it with a channel of batches).
//!
//! Invariant: Vecs go round and are never dropped; at steady state nothing allocates.

use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use super::dice::Dice;
use super::lines::{Abandoned, Lines, Patience, Report};
use crate::event::Event;
use crate::loan::{Lend, Loan};
use crate::message::Message;
use crate::partition::Partition;

/// The end of a round, for one worker.
pub(crate) trait Exchange<M>: Lend<M> {
    /// The next component that is lent and that nobody runs: its own first.
    fn take(&mut self) -> Option<Loan<M>>;
    /// Hands a loan that was run to its owner.
    fn give_back(&mut self, loan: Loan<M>);
    /// Hands over what the partition sent, and takes in what was sent to it. Returns what all workers say
    /// together.
    fn meet(&mut self, partition: &mut Partition<M>, report: Report) -> Result<Report, Abandoned>;
}

/// One partition that holds every component: nothing to exchange.
#[derive(Debug)]
pub(crate) struct Alone;

impl<M> Lend<M> for Alone {
    #[inline]
    fn lends(&self) -> bool {
        false
    }

    fn lend(&mut self, _: &mut Vec<Loan<M>>) {}
}

impl<M: Message> Exchange<M> for Alone {
    #[inline]
    fn take(&mut self) -> Option<Loan<M>> {
        None
    }

    fn give_back(&mut self, _: Loan<M>) {}

    #[inline]
    fn meet(&mut self, _: &mut Partition<M>, report: Report) -> Result<Report, Abandoned> {
        Ok(report)
    }
}

/// Where the batches between partitions lie, and the barrier.
#[derive(Debug)]
pub(crate) struct Mailboxes<M> {
    pub(crate) lines: Lines,
    /// `boxes[from * workers + to]`, by parity of the round.
    boxes: Vec<[Mutex<Vec<Event<M>>>; 2]>,
    /// By worker.
    shelves: Vec<CachePadded<Shelf<M>>>,
}

/// The loans of one worker's partition.
#[derive(Debug)]
struct Shelf<M> {
    /// Those that nobody has taken.
    open: Mutex<Vec<Loan<M>>>,
    /// About how many they are, so that nobody locks an empty shelf.
    left: AtomicUsize,
    /// Those that were run.
    done: Mutex<Vec<Loan<M>>>,
}

impl<M> Shelf<M> {
    fn new() -> Self {
        Shelf { open: Mutex::new(Vec::new()), left: AtomicUsize::new(0), done: Mutex::new(Vec::new()) }
    }

    fn take(&self) -> Option<Loan<M>> {
        if self.left.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut open = lock(&self.open);
        let loan = open.pop();
        self.left.store(open.len(), Ordering::Relaxed);
        loan
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<M> Mailboxes<M> {
    pub(crate) fn new(workers: usize, patience: Patience) -> Self {
        let boxes = (0..workers * workers).map(|_| [Mutex::new(Vec::new()), Mutex::new(Vec::new())]);
        let shelves = (0..workers).map(|_| CachePadded::new(Shelf::new()));
        Mailboxes { lines: Lines::new(workers, patience), boxes: boxes.collect(), shelves: shelves.collect() }
    }
}

/// One worker's place at the mailboxes.
#[derive(Debug)]
pub(crate) struct WorkerPlace<'a, M> {
    mailboxes: &'a Mailboxes<M>,
    worker: usize,
    round: u64,
    spare: Vec<Event<M>>,
    dice: Option<Dice>,
    /// Time spent waiting for others.
    pub(crate) blocked: Duration,
}

impl<'a, M> WorkerPlace<'a, M> {
    /// The place of `worker`, on the calling thread, from `round` on: the number of rounds these mailboxes
    /// have seen. With `dice`, those of this seed decide.
    pub(crate) fn new(mailboxes: &'a Mailboxes<M>, worker: usize, round: u64, dice: Option<u64>) -> Self {
        mailboxes.lines.sit_down(worker);
        let dice = dice.map(|seed| Dice::of_worker(seed, worker, round));
        WorkerPlace { mailboxes, worker, round, spare: Vec::new(), dice, blocked: Duration::ZERO }
    }

    /// How many rounds the mailboxes have seen.
    pub(crate) fn round(&self) -> u64 {
        self.round
    }
}

impl<M> Lend<M> for WorkerPlace<'_, M> {
    #[inline]
    fn lends(&self) -> bool {
        true
    }

    fn lend(&mut self, loans: &mut Vec<Loan<M>>) {
        let shelf = &self.mailboxes.shelves[self.worker];
        let mut open = lock(&shelf.open);
        open.append(loans);
        shelf.left.store(open.len(), Ordering::Relaxed);
        drop(open);
        self.dice.iter_mut().for_each(Dice::pause);
    }
}

impl<M: Message> Exchange<M> for WorkerPlace<'_, M> {
    fn take(&mut self) -> Option<Loan<M>> {
        let shelves = &self.mailboxes.shelves;
        let mut first = self.worker;
        if let Some(dice) = &mut self.dice {
            dice.pause();
            // Somebody has to run what is lent here: other workers may all take nothing.
            if dice.once_in(4) {
                return shelves[self.worker].take();
            }
            first = dice.throw() as usize % shelves.len();
        }
        let (own_and_later, earlier) = (&shelves[first..], &shelves[..first]);
        own_and_later.iter().chain(earlier).find_map(|shelf| shelf.take())
    }

    fn give_back(&mut self, loan: Loan<M>) {
        lock(&self.mailboxes.shelves[loan.owner as usize].done).push(loan);
    }

    fn meet(&mut self, partition: &mut Partition<M>, mut report: Report) -> Result<Report, Abandoned> {
        let (me, round) = (self.worker, self.round);
        let workers = self.mailboxes.lines.workers();
        let parity = (round & 1) as usize;
        report.sent = 0;
        for (to, outbox) in partition.sink.outboxes.iter_mut().enumerate() {
            if !outbox.is_empty() {
                partition.sent_away += outbox.len() as u64;
                let mailbox = &self.mailboxes.boxes[me * workers + to][parity];
                mem::swap(outbox, &mut *lock(mailbox));
                debug_assert!(outbox.is_empty(), "a batch was not taken out in two rounds");
                // With more than 64 workers several share a bit. A worker that is addressed by mistake swaps
                // an empty box, which changes nothing.
                report.sent |= 1 << (to % 64);
            }
        }
        self.dice.iter_mut().for_each(Dice::pause);
        // After the batches: a worker that reads this line may take its batch at once.
        self.mailboxes.lines.publish(me, round, report);
        self.dice.iter_mut().for_each(Dice::pause);
        let mut all = report;
        for other in (0..workers).filter(|&other| other != me) {
            let theirs = if self.mailboxes.lines.is_there(other, round) {
                self.mailboxes.lines.read(me, other, round)?
            } else {
                // The clock is read only where this worker has to wait; most rounds find the line in place.
                let since = Instant::now();
                let theirs = self.mailboxes.lines.read(me, other, round)?;
                self.blocked += since.elapsed();
                theirs
            };
            if theirs.sent & 1 << (me % 64) != 0 {
                let mailbox = &self.mailboxes.boxes[other * workers + me][parity];
                mem::swap(&mut self.spare, &mut *lock(mailbox));
                partition.deliver(&mut self.spare);
            }
            all = all.with(theirs);
        }
        // Who took a loan gave it back before it published.
        for loan in lock(&self.mailboxes.shelves[me].done).drain(..) {
            partition.take_home(loan);
        }
        self.round += 1;
        Ok(all)
    }
}
