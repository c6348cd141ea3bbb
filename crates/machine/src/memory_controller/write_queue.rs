//! The write-pending queue (WPQ): writes that are accepted and not yet at the media, and writes that wait for
//! an entry.
//!
//! | domain | the slice hears at acceptance | and when the cells are written |
//! |---|---|---|
//! | ADR, eADR | durable | - |
//! | ADR, of a late write (`past_ack=media`) | accepted | durable |
//! | media | accepted (DRAM: durable) | durable |
//!
//! Invariants: the queue never exceeds its capacity; no write passes one that waits for an entry; a younger
//! write to a line that has an entry merges with it, and becomes durable with it.

use std::collections::VecDeque;

use crate::media::{DeviceRow, Direction};
use crate::msg::{MemoryAccepted, MemoryWrite, Msg, copy_masked};
use crate::ports::Ports;
use crate::request_queue::{At, NO_SOURCE, QueueOrder, RequestQueue};
use durawarp_checkpoint::state;
use durawarp_engine::{Ctx, Time};
use durawarp_kernel::memory::Medium;
use durawarp_persist::journal::FactKind;
use durawarp_persist::outbox::Flush;
use durawarp_persist::vocab::Domain;

use super::held_writes::HeldWrites;
use super::notes::Notes;
use super::parameters::ControllerCounters;
use super::pending_write::{DRAM_CACHE, NOBODY, PendingWrite};

/// The WPQ of a channel.
#[derive(Debug)]
pub(super) struct WriteQueue {
    pub(super) queue: RequestQueue<PendingWrite>,
    /// Writes that found it full, in order.
    waiting: VecDeque<MemoryWrite>,
    capacity: usize,
    /// When it took or gave up an entry last.
    changed_at: Time,
    domain: Domain,
    /// Writes in devices that are not in cells, where a power failure loses them.
    pub(super) held: Option<Box<HeldWrites>>,
}

state!(WriteQueue { parts: queue, held; saved: waiting, changed_at; kept: capacity, domain });

impl WriteQueue {
    /// An empty queue over `banks` banks.
    pub(super) fn new(capacity: u32, order: QueueOrder, banks: usize) -> Self {
        WriteQueue {
            queue: RequestQueue::new(Direction::Write, order, banks),
            waiting: VecDeque::new(),
            capacity: capacity as usize,
            changed_at: 0,
            domain: Domain::Adr,
            held: None,
        }
    }

    /// What survives a power failure; and where devices lose what they hold, their slots.
    pub(super) fn set_domain(&mut self, domain: Domain, held: Option<Box<HeldWrites>>) {
        self.domain = domain;
        self.held = held;
    }

    /// Entries in use.
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Free entries.
    pub(super) fn free(&self) -> usize {
        self.capacity - self.len()
    }

    /// Writes that wait for an entry.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// When it took or gave up an entry last.
    pub(super) fn changed_at(&self) -> Time {
        self.changed_at
    }

    /// It takes one more write at once.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.is_empty() && self.free() > 0
    }

    /// Queues a write that waits for an entry, after those that wait already.
    pub(super) fn push_waiting(&mut self, write: MemoryWrite) {
        self.waiting.push_back(write);
    }

    /// The bytes of a line that its entry will write.
    pub(super) fn pending(&mut self, row: DeviceRow, line: u64) -> u128 {
        self.queue.find_mut(row, line).map_or(0, |write| write.mask)
    }

    /// Adds what was in use since the last change.
    fn count_occupancy(&mut self, now: Time, counters: &mut ControllerCounters) {
        counters.wpq_entry_ticks += self.queue.len() as u64 * (now - self.changed_at);
        self.changed_at = now;
    }

    /// A write takes a free entry.
    pub(super) fn push(
        &mut self,
        row: DeviceRow,
        line: u64,
        mask: u128,
        now: Time,
        counters: &mut ControllerCounters,
        notes: &mut Notes,
    ) {
        self.count_occupancy(now, counters);
        self.queue.push(row, line, NO_SOURCE, PendingWrite { mask, ..Default::default() });
        notes.occupancy(now, self.len());
    }

    /// The queue takes a write, if it can: as a merge, or into a free entry.
    pub(super) fn accept(
        &mut self,
        row: DeviceRow,
        write: &MemoryWrite,
        now: Time,
        counters: &mut ControllerCounters,
        notes: &mut Notes,
    ) -> bool {
        if write.through && write.data.mask == 0 {
            // All that it waits for is accepted.
            return true;
        }
        if let Some(entry) = self.queue.find_mut(row, write.line) {
            counters.merged_writes += 1;
            counters.merged_bytes += u64::from((entry.mask & write.data.mask).count_ones());
            entry.mask |= write.data.mask;
        } else if self.free() > 0 {
            self.push(row, write.line, write.data.mask, now, counters, notes);
        } else {
            return false;
        }
        // Of a handler's writes, the handler itself says what they are to the journal.
        if Medium::of(write.line) == Medium::Nvm && write.slice != NOBODY {
            self.accept_persistent(row, write, now, notes);
        }
        let bytes = u64::from(write.data.mask.count_ones());
        match Medium::of(write.line) {
            Medium::Dram => {
                counters.dram_writes += 1;
                counters.dram_accepted_bytes += bytes;
            }
            Medium::Nvm => {
                counters.nvm_writes += 1;
                counters.nvm_accepted_bytes += bytes;
            }
        }
        true
    }

    /// A write is durable to its slice when its cells are written, not when it is accepted.
    pub(super) fn is_late(&self, write: &MemoryWrite) -> bool {
        self.domain == Domain::Media || write.late
    }

    /// What acceptance of a write to persistent memory means beside its entry.
    fn accept_persistent(&mut self, row: DeviceRow, write: &MemoryWrite, now: Time, notes: &mut Notes) {
        let late = self.is_late(write);
        if !late && !notes.keeps_journal() {
            return;
        }
        let Some(entry) = self.queue.find_mut(row, write.line) else { unreachable!("it was accepted") };
        if late && write.slice != DRAM_CACHE {
            entry.told_later.push((write.slice, write.token));
        }
        if notes.keeps_journal() {
            notes.data(now, FactKind::Accepted, write.line, write.data.mask, &write.data.bytes);
            // Only where acceptance does not make it durable may the entry's bytes differ from memory's at
            // the media.
            if self.domain == Domain::Media {
                let accepted = entry.accepted.get_or_insert_with(Box::default);
                copy_masked(&mut accepted.bytes, &write.data.bytes, write.data.mask);
            }
        }
    }

    /// What acceptance of a handler's plain write means beside its entry: true when it is durable with it.
    pub(super) fn accept_plain(&mut self, row: DeviceRow, flush: &Flush, now: Time, notes: &mut Notes) -> bool {
        notes.data_of(flush.author, now, FactKind::Accepted, flush.line, flush.mask, &flush.bytes);
        if self.domain != Domain::Media {
            return true;
        }
        let Some(entry) = self.queue.find_mut(row, flush.line) else { unreachable!("it was accepted") };
        entry.flushes.push((flush.author, flush.token));
        if notes.keeps_journal() {
            let accepted = entry.accepted.get_or_insert_with(Box::default);
            copy_masked(&mut accepted.bytes, &flush.bytes, flush.mask);
        }
        false
    }

    /// Tells a slice that its write is accepted, and whether it is durable.
    pub(super) fn acknowledge(&self, write: MemoryWrite, ports: &Ports, cx: &mut Ctx<'_, Msg>) {
        if write.slice == DRAM_CACHE {
            return;
        }
        let durable = !self.is_late(&write) || Medium::of(write.line) == Medium::Dram;
        let accepted = MemoryAccepted { token: write.token, durable, at: cx.now(), room: write.data };
        ports.to_own(write.slice).send(accepted, 0, cx);
    }

    /// The oldest write that waits for an entry.
    pub(super) fn pop_waiting(&mut self) -> Option<MemoryWrite> {
        self.waiting.pop_front()
    }

    /// The write that came out last goes on waiting, before all others.
    pub(super) fn unpop_waiting(&mut self, write: MemoryWrite) {
        self.waiting.push_front(write);
    }

    /// An entry leaves for the media: its row, line and write.
    pub(super) fn remove(
        &mut self,
        at: At,
        now: Time,
        counters: &mut ControllerCounters,
        notes: &mut Notes,
    ) -> (u32, u64, PendingWrite) {
        self.count_occupancy(now, counters);
        let removed = self.queue.remove(at);
        notes.occupancy(now, self.len());
        removed
    }
}
