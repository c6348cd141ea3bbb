//! What a home slice has under way: one transaction a line, and the requests that wait behind it.
//!
//! | phase | ends with |
//! |---|---|
//! | held | an MSHR, a way and memory credit, in the order of arrival over all lines of the slice |
//! | fetching | the line's bytes from memory, and a place free for it |
//! | probing | the last acknowledgement |
//! | recalling | the last acknowledgement: the line leaves the slice |
//! | kept | the scheme's word that memory has the line's bytes |
//! | ready | the next request of its line, in this event |
//!
//! Invariants: a line has at most one transaction, which is found by the line's place, or by its address
//! where it is not in the array; requests of a line are served in the order of their arrival; a transaction
//! without requests ends in the event in which its last step does.

use std::collections::VecDeque;

use hashbrown::HashMap;

use crate::line::Line;
use durawarp_checkpoint::value;
use durawarp_engine::Time;

use super::request::{CoreSet, HomeRequest, TransactionId};

/// How far a transaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its last step is over.
    Ready,
    /// Its fetch waits for an MSHR, a way or credit.
    Held,
    /// Its line is fetched.
    Fetching,
    /// Cores give the line up, or keep a copy to read.
    Probing { invalidate: bool },
    /// Cores give the line up, which makes room for that of another transaction.
    Recalling { fetch: TransactionId },
    /// They have, and the line stays until memory has its bytes.
    Kept { fetch: TransactionId },
}

value!(choice Phase {
    Ready, Held, Fetching, Probing { invalidate }, Recalling { fetch }, Kept { fetch },
});

/// A transaction of a line.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) line: u64,
    pub(super) place: Option<usize>,
    pub(super) phase: Phase,
    /// When the phase began.
    pub(super) since: Time,
    /// Cores that have not acknowledged.
    pub(super) awaited: CoreSet,
    /// Cores that were probed.
    pub(super) probed: CoreSet,
    /// The request that is being served.
    pub(super) head: Option<HomeRequest>,
    /// Memory's bytes, until there is a place for them.
    pub(super) fetched: Option<Box<Line>>,
    pub(super) queue: VecDeque<HomeRequest>,
}

value!(record Transaction { line, place, phase, since, awaited, probed, head, fetched, queue });

/// Transactions of a slice.
#[derive(Debug, Default)]
pub(super) struct Transactions {
    all: Vec<Transaction>,
    free: Vec<TransactionId>,
    /// By line, of lines that are not in the array. Looked up alone, never gone through.
    absent: HashMap<u64, TransactionId>,
    /// Those that wait for an MSHR, a way or credit.
    held: VecDeque<TransactionId>,
    /// Those whose last step is over.
    ready: VecDeque<TransactionId>,
    /// Those whose line stays.
    kept: Vec<TransactionId>,
    /// Those that have an MSHR.
    fetching: u32,
}

value!(record Transactions { all, free, absent, held, ready, kept, fetching });

impl Transactions {
    /// The transaction of a line that is not in the array.
    #[inline]
    pub(super) fn of_absent(&self, line: u64) -> Option<TransactionId> {
        if self.absent.is_empty() { None } else { self.absent.get(&line).copied() }
    }

    /// A transaction.
    #[inline]
    pub(super) fn at(&self, id: TransactionId) -> &Transaction {
        &self.all[usize::from(id)]
    }

    /// A transaction, to change.
    #[inline]
    pub(super) fn at_mut(&mut self, id: TransactionId) -> &mut Transaction {
        &mut self.all[usize::from(id)]
    }

    /// A transaction of a line begins; one that is not in the array has no place.
    ///
    /// # Panics
    /// At 65,536 of them.
    pub(super) fn begin(&mut self, line: u64, place: Option<usize>, now: Time) -> TransactionId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.all.push(Transaction {
                line: 0,
                place: None,
                phase: Phase::Ready,
                since: 0,
                awaited: 0,
                probed: 0,
                head: None,
                fetched: None,
                queue: VecDeque::new(),
            });
            let Ok(id) = TransactionId::try_from(self.all.len() - 1) else { panic!("65,536 transactions of a slice") };
            id
        });
        let transaction = self.at_mut(id);
        (transaction.line, transaction.place, transaction.since) = (line, place, now);
        if place.is_none() {
            self.absent.insert(line, id);
        }
        id
    }

    /// A transaction is over.
    pub(super) fn end(&mut self, id: TransactionId) {
        let Transaction { line, place, queue, head, .. } = self.at(id);
        debug_assert!(queue.is_empty() && head.is_none(), "line {line:#x} ends with requests");
        if place.is_none() {
            let line = *line;
            self.absent.remove(&line);
        }
        self.free.push(id);
    }

    /// A transaction's line has come to a place, or has left the array.
    pub(super) fn move_to(&mut self, id: TransactionId, place: Option<usize>) {
        let transaction = self.at_mut(id);
        let line = transaction.line;
        let before = std::mem::replace(&mut transaction.place, place);
        match (before, place) {
            (None, Some(_)) => self.absent.remove(&line),
            (Some(_), None) => self.absent.insert(line, id),
            _ => None,
        };
    }

    /// A transaction enters a phase.
    pub(super) fn set_phase(&mut self, id: TransactionId, phase: Phase, now: Time) {
        let transaction = self.at_mut(id);
        (transaction.phase, transaction.since) = (phase, now);
        match phase {
            Phase::Ready => self.ready.push_back(id),
            Phase::Held => self.held.push_back(id),
            Phase::Fetching => self.fetching += 1,
            Phase::Kept { .. } => self.kept.push(id),
            Phase::Probing { .. } | Phase::Recalling { .. } => {}
        }
    }

    /// Those whose line stays, in the order in which they came to.
    pub(super) fn take_kept(&mut self) -> Vec<TransactionId> {
        std::mem::take(&mut self.kept)
    }

    /// The line of one stays on.
    pub(super) fn keep(&mut self, id: TransactionId) {
        self.kept.push(id);
    }

    /// A fetch is over: its MSHR is free.
    pub(super) fn fetched(&mut self) {
        self.fetching -= 1;
    }

    /// MSHRs in use.
    pub(super) fn fetching(&self) -> u32 {
        self.fetching
    }

    /// The fetch that is next.
    pub(super) fn first_held(&self) -> Option<TransactionId> {
        self.held.front().copied()
    }

    /// The fetch that was next starts.
    pub(super) fn pop_held(&mut self) {
        self.held.pop_front();
    }

    /// A transaction whose last step is over, the first in order.
    pub(super) fn pop_ready(&mut self) -> Option<TransactionId> {
        while let Some(id) = self.ready.pop_front() {
            // A line that was ready and is recalled instead has another phase.
            if self.at(id).phase == Phase::Ready {
                return Some(id);
            }
        }
        None
    }

    /// Nothing is to be done before the next message.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        self.held.is_empty() && self.ready.is_empty()
    }

    /// Every transaction that is not over, by number.
    pub(super) fn open(&self) -> impl Iterator<Item = &Transaction> {
        // In the order of numbers, which is the same in every run. A transaction that is over has no request,
        // and is no recall, nor a line that stays.
        self.all.iter().filter(|transaction| {
            let kept = matches!(transaction.phase, Phase::Kept { .. });
            transaction.head.is_some() || !transaction.queue.is_empty() || transaction.awaited != 0 || kept
        })
    }
}
