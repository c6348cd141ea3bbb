//! Two ways in which two workers can hand over a batch of events each, round by round, without a model behind them.
//!
//! | way | a batch travels | a round ends |
//! |---|---|---|
//! | [`Way::Swap`] | its `Vec` is swapped for the empty one in a box that both can lock | by a stamp of the worker's own |
//! | [`Way::Channel`] | its `Vec` is sent; the one that comes is the next to be filled | when the other's batch has come |
//!
//! `Swap` does what `engine/driver/exchange.rs` and `lines.rs` do, without what they report and without parking.

use std::hint::{black_box, spin_loop};
use std::mem;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use crossbeam_utils::CachePadded;

/// As large as an event of the machine.
type Event = [u64; 8];

/// How batches travel.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    /// Vecs are swapped under a lock that nobody contends for.
    Swap,
    /// Vecs are sent over bounded channels.
    Channel,
}

/// Runs `rounds` rounds on two threads; in each, both hand over a batch of `events` events. Returns the sum of all events.
pub(crate) fn hand_over(way: Way, rounds: u64, events: usize) -> u64 {
    match way {
        Way::Swap => swap(rounds, events),
        Way::Channel => channel(rounds, events),
    }
}

fn fill(batch: &mut Vec<Event>, round: u64, events: usize) {
    batch.extend((0..events as u64).map(|at| [round + at; 8]));
}

fn drain(batch: &mut Vec<Event>) -> u64 {
    batch.drain(..).map(|event| black_box(event)[0]).sum()
}

struct Side {
    stamp: CachePadded<AtomicU64>,
    /// What it hands over, by parity of the round.
    boxes: [Mutex<Vec<Event>>; 2],
}

fn swap(rounds: u64, events: usize) -> u64 {
    let side = || Side { stamp: CachePadded::new(AtomicU64::new(0)), boxes: Default::default() };
    let sides = [side(), side()];
    let work = |me: usize| {
        let (mine, theirs) = (&sides[me], &sides[1 - me]);
        let (mut outbox, mut spare, mut sum) = (Vec::new(), Vec::new(), 0);
        for round in 1..=rounds {
            let parity = (round & 1) as usize;
            fill(&mut outbox, round, events);
            if events > 0 {
                mem::swap(&mut outbox, &mut mine.boxes[parity].lock().unwrap());
            }
            mine.stamp.store(round, Ordering::Release);
            let mut spins = 0;
            while theirs.stamp.load(Ordering::Acquire) < round {
                spins += 1;
                if spins < 300 { spin_loop() } else { thread::yield_now() }
            }
            if events > 0 {
                mem::swap(&mut spare, &mut theirs.boxes[parity].lock().unwrap());
                sum += drain(&mut spare);
            }
        }
        sum
    };
    both(|| work(0), || work(1))
}

fn channel(rounds: u64, events: usize) -> u64 {
    // A worker is a round ahead of the other at most.
    let (ways, back) = (bounded(2), bounded(2));
    let work = |out: &Sender<Vec<Event>>, from: &Receiver<Vec<Event>>| {
        let (mut outbox, mut sum) = (Vec::new(), 0);
        for round in 1..=rounds {
            fill(&mut outbox, round, events);
            out.send(mem::take(&mut outbox)).unwrap();
            outbox = from.recv().unwrap();
            sum += drain(&mut outbox);
        }
        sum
    };
    both(|| work(&ways.0, &back.1), || work(&back.0, &ways.1))
}

fn both(one: impl FnOnce() -> u64, other: impl FnOnce() -> u64 + Send) -> u64 {
    thread::scope(|scope| {
        let other = scope.spawn(other);
        one() + other.join().unwrap()
    })
}
