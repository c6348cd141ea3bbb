//! What a controller has of each hart: requests between barriers, in the order in which its buffer sent them.
//!
//! The requests up to the first barrier are the hart's *ready set* R, those from there to the second its
//! *next set* N. A set is complete when each of its requests is durable; then the barrier goes, and N is R.
//! Only so many requests and barriers are looked at as an entry of the queue has room for; what is behind
//! waits in the persist buffer.
//!
//! Source: persistence parallelism, section IV-C. Invariants: no barrier is first; a request under way is in
//! R.

use std::collections::VecDeque;

use durawarp_checkpoint::value;
use durawarp_engine::Time;
use durawarp_persist::bytes::copy_masked;

use super::messages::Persist;

/// A request.
#[derive(Debug)]
pub(super) struct PersistRequest {
    pub(super) persist: Persist,
    pub(super) bank: u16,
    /// Its place in the order of arrival over all harts.
    pub(super) number: u64,
    /// When it came.
    pub(super) arrived: Time,
    /// It was handed to the write queue.
    pub(super) under_way: bool,
    /// It was ready while its bank served another.
    pub(super) stalled: bool,
    /// Messages that it came in.
    pub(super) persists: u32,
}

value!(record PersistRequest { persist, bank, number, arrived, under_way, stalled, persists });

/// A bank in a set of banks. They are few: of more than 128 two share a bit.
pub(super) fn bank_bit(bank: usize) -> u128 {
    1 << (bank % 128)
}

#[derive(Debug)]
enum QueueItem {
    Request(PersistRequest),
    Barrier,
}

value!(choice QueueItem { Request(request), Barrier });

/// The queue of a hart.
#[derive(Debug, Default)]
pub(super) struct Queue {
    items: VecDeque<QueueItem>,
    /// Requests of the ready set that are durable.
    durable: u64,
}

value!(record Queue { items, durable });

impl Queue {
    /// Bytes come for a request of the same entry that was not handed over: they join it. False where there
    /// is none.
    pub(super) fn join(&mut self, persist: &Persist) -> bool {
        let same = |item: &&mut QueueItem| matches!(item, QueueItem::Request(of) if of.persist.id == persist.id && !of.under_way);
        let Some(QueueItem::Request(request)) = self.items.iter_mut().rev().find(same) else { return false };
        let own = &mut request.persist;
        own.mask |= persist.mask;
        copy_masked(&mut own.bytes, &persist.bytes, persist.mask);
        own.author = persist.author;
        request.persists += 1;
        true
    }

    /// A request comes.
    pub(super) fn push(&mut self, request: PersistRequest) {
        self.items.push_back(QueueItem::Request(request));
    }

    /// A barrier comes: one is none where nothing is before it.
    pub(super) fn push_barrier(&mut self) {
        if matches!(self.items.back(), Some(QueueItem::Request(_))) {
            self.items.push_back(QueueItem::Barrier);
        }
    }

    /// The ready set, as far as an entry of so many units shows it.
    pub(super) fn ready(&self, units: usize) -> impl Iterator<Item = &PersistRequest> {
        self.items.iter().map_while(as_request).take(units)
    }

    /// The same, to be changed.
    pub(super) fn ready_mut(&mut self, units: usize) -> impl Iterator<Item = &mut PersistRequest> {
        self.items
            .iter_mut()
            .map_while(|item| match item {
                QueueItem::Request(request) => Some(request),
                QueueItem::Barrier => None,
            })
            .take(units)
    }

    /// The next set, as far as an entry with so many units and barrier registers shows it.
    pub(super) fn next(&self, units: usize, registers: usize) -> impl Iterator<Item = &PersistRequest> {
        let ready = self.items.iter().map_while(as_request).count();
        let shown = if registers > 1 { units.saturating_sub(ready) } else { 0 };
        self.items.iter().skip(ready + 1).map_while(as_request).take(shown)
    }

    /// The request of this number is durable: how many its set had, when it is complete with it, and another
    /// begins or may.
    pub(super) fn complete(&mut self, number: u64) -> Option<u64> {
        let at = self.items.iter().position(|item| as_request(item).is_some_and(|of| of.number == number));
        let Some(at) = at else { unreachable!("request {number} is durable twice") };
        self.items.remove(at);
        self.durable += 1;
        if !matches!(self.items.front(), Some(QueueItem::Barrier)) {
            return None;
        }
        self.items.pop_front();
        Some(std::mem::take(&mut self.durable))
    }

    /// Every request, the oldest first.
    pub(super) fn requests(&self) -> impl Iterator<Item = &PersistRequest> {
        self.items.iter().filter_map(as_request)
    }
}

fn as_request(item: &QueueItem) -> Option<&PersistRequest> {
    match item {
        QueueItem::Request(request) => Some(request),
        QueueItem::Barrier => None,
    }
}
