//! The threads beside the caller's: they wait for a leg, run their partition through it, and give it back.
//!
//! ```text
//!   caller (worker 0):  lay partitions on desks ─ ring ─ run own partition ─ wait for the others ─ collect
//!   worker i:           wait for the bell ─ take the partition ─ run it ─ lay it back ─ tell
//! ```
//! Between legs workers sleep on a condition variable, which costs tens of microseconds a leg; inside a leg
//! they meet at `lines.rs`. Threads end when the run does, also when it unwinds.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::exchange::{Mailboxes, WorkerPlace};
use super::lines::{Abandoned, Patience};
use super::rounds::{self, Follow, Lead, LegEnd, Start, Watch};
use crate::message::Message;
use crate::partition::Partition;

/// All workers of a run.
#[derive(Debug)]
pub(crate) struct Crew<M> {
    mailboxes: Mailboxes<M>,
    desks: Vec<Mutex<Desk<M>>>,
    board: Mutex<Board>,
    /// Rung for a new leg, and when the crew is dismissed.
    bell: Condvar,
    /// Rung when a worker is done.
    done: Condvar,
}

#[derive(Debug)]
struct Desk<M> {
    partition: Option<Partition<M>>,
    left: Option<LegEnd>,
    blocked: Duration,
}

#[derive(Debug, Default)]
struct Board {
    /// Counts legs.
    leg: u64,
    start: Option<Start>,
    /// Rounds that the mailboxes have seen before this leg.
    first_round: u64,
    done: usize,
    dismissed: bool,
}

impl<M: Message> Crew<M> {
    /// A crew of `workers` (the caller included) on `cores` cores.
    pub(crate) fn new(workers: usize, cores: usize) -> Self {
        let patience = if workers <= cores { Patience::OWN_CORE } else { Patience::SHARED_CORE };
        let desk = || Mutex::new(Desk { partition: None, left: None, blocked: Duration::ZERO });
        Crew {
            mailboxes: Mailboxes::new(workers, patience),
            desks: (0..workers).map(|_| desk()).collect(),
            board: Mutex::new(Board::default()),
            bell: Condvar::new(),
            done: Condvar::new(),
        }
    }

    /// Runs one leg with all workers, on as many partitions. Returns what each left, in order.
    ///
    /// # Panics
    /// When a thread of the crew died: a bug of the engine, as panics of components are caught.
    pub(crate) fn leg(&self, partitions: &mut Vec<Partition<M>>, lead: &mut Lead<'_>, start: Start) -> Vec<LegEnd> {
        let first_round = {
            let mut board = lock(&self.board);
            for (desk, partition) in self.desks.iter().zip(partitions.drain(..)) {
                lock(desk).partition = Some(partition);
            }
            // The desks are full before the number of the leg changes, and both happen under the board's
            // lock: a worker that sees the new number finds its partition.
            board.leg += 1;
            board.start = Some(start);
            board.done = 0;
            board.first_round
        };
        self.bell.notify_all();
        let round = self.run(0, first_round, start, lead);
        let mut board = lock(&self.board);
        // Only the count says that all partitions are back. A worker that died never counts, so an abandoned
        // meeting ends the wait too.
        while round.is_ok() && board.done < self.desks.len() - 1 && !self.mailboxes.lines.is_abandoned() {
            board = self.done.wait(board).unwrap_or_else(PoisonError::into_inner);
        }
        match round {
            Ok(round) if board.done == self.desks.len() - 1 => board.first_round = round,
            _ => panic!("a thread of the crew died in a leg"),
        }
        let mut left = Vec::with_capacity(self.desks.len());
        for desk in &self.desks {
            let mut desk = lock(desk);
            partitions.extend(desk.partition.take());
            left.extend(desk.left.take());
        }
        left
    }

    /// Time that each worker spent blocked so far.
    pub(crate) fn blocked(&self) -> Vec<Duration> {
        self.desks.iter().map(|desk| lock(desk).blocked).collect()
    }

    /// The life of a thread of the crew.
    pub(crate) fn work(&self, worker: usize) {
        let guard = OnUnwind(self);
        let mut seen = 0;
        loop {
            let mut board = lock(&self.board);
            while board.leg == seen && !board.dismissed {
                board = self.bell.wait(board).unwrap_or_else(PoisonError::into_inner);
            }
            if board.dismissed {
                break;
            }
            seen = board.leg;
            let (Some(start), first_round) = (board.start, board.first_round) else {
                continue;
            };
            drop(board);
            if self.run(worker, first_round, start, &mut Follow).is_err() {
                break;
            }
            lock(&self.board).done += 1;
            self.done.notify_one();
        }
        drop(guard);
    }

    /// Runs the partition on a desk through a leg, and lays it back. Returns how many rounds the mailboxes
    /// have seen.
    fn run(&self, worker: usize, first_round: u64, start: Start, watch: &mut impl Watch) -> Result<u64, Abandoned> {
        let Some(mut partition) = lock(&self.desks[worker]).partition.take() else {
            return Err(Abandoned);
        };
        let mut seat = WorkerPlace::new(&self.mailboxes, worker, first_round, start.dice);
        let left = rounds::run(&mut partition, &mut seat, watch, start)?;
        let mut desk = lock(&self.desks[worker]);
        desk.blocked += seat.blocked;
        (desk.partition, desk.left) = (Some(partition), Some(left));
        Ok(seat.round())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends the crew home when the run ends, or unwinds.
#[derive(Debug)]
pub(crate) struct Dismissal<'a, M: Message>(pub(crate) &'a Crew<M>);

impl<M: Message> Drop for Dismissal<'_, M> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.mailboxes.lines.abandon();
        }
        lock(&self.0.board).dismissed = true;
        self.0.bell.notify_all();
    }
}

/// Marks the meeting as abandoned when a thread of the crew unwinds, so that no other thread waits for it.
struct OnUnwind<'a, M: Message>(&'a Crew<M>);

impl<M: Message> Drop for OnUnwind<'_, M> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.mailboxes.lines.abandon();
            let _board = lock(&self.0.board);
            self.0.done.notify_all();
        }
    }
}
