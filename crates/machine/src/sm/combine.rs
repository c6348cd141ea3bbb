//! Stores that combine in the L1, and how they leave it: one by one for want of room, together at a release.
//!
//! ```text
//!   store ──> line's bytes in the L1 ──cleaned──> write ──> slice ──> performed
//!                     ▲ S-FIFO full, victim, older bytes than an access past the L1, a marker, a release
//! ```
//! A store is the warp's no more once it has joined its line. A fence of scope gpu or sys, and the end of an
//! SM's last resident CTA, *release*: every dirty line is cleaned, but those of local memory that is written
//! back, and they wait until all that was cleaned is performed (`cleaning.rs`).
//!
//! Source: Gope et al. section 3 (write-combining L1 with byte masks, S-FIFO); QuickRelease (HPCA 2014).
//! Invariants: a line's bytes leave before any other request of the SM to that line; one line is cleaned a
//! cycle, ahead of the load-store unit's next access. Where stores of several launches are in a line, its
//! write is of the last one's launch. Not modelled: partial cleaning of a line; the mark of log updates on
//! combined bytes.

use crate::msg::{Msg, Payload, Request, RequestKind, sectors_touched};
use durawarp_engine::Ctx;
use durawarp_kernel::memory::Medium;
use durawarp_persist::handler::{Access, AccessKind, Admission, Departure, Marker, SmEvent};
use durawarp_persist::journal::FactKind;

use super::cleaning::cleaning_tag;
use super::handler_host::SmHost;
use super::lsu::Entry;
use super::memory_side::MemorySide;
use super::record::Record;

/// What the L1's cleaning came to in a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cleaned {
    /// No line is to be cleaned.
    Nothing,
    /// A line has left: that takes the cycle.
    Sent,
    /// The miss queue has no room for the next line.
    NoRoom,
    /// The next line had no bytes any more: its cleaning is performed.
    AtOnce,
}

impl MemorySide {
    /// A line has left an inclusive L2: it leaves the L1, or its combined bytes go down and bring it back
    /// there.
    pub(super) fn give_up(&mut self, line: u64) {
        if self.l1.is_dirty(line) {
            self.leaving.cleaning.ask(line);
        } else {
            self.l1.evict(line);
        }
    }

    /// Sends a line's combined bytes, if it has any. The caller has made sure of room in the miss queue.
    pub(super) fn clean_now(&mut self, line: u64, host: &mut SmHost, record: &mut Record, cx: &mut Ctx<'_, Msg>) {
        if self.l1.is_dirty(line) {
            let number = self.leaving.cleaning.number();
            self.send_cleaning(number, line, host, record, cx);
        }
    }

    fn send_cleaning(
        &mut self,
        number: u64,
        line: u64,
        host: &mut SmHost,
        record: &mut Record,
        cx: &mut Ctx<'_, Msg>,
    ) -> bool {
        // A line that is clean by now has left by another way since its cleaning was asked for: the number is
        // performed at once, so that a release does not wait for it.
        let mut content = self.port.line_pool.take();
        if !self.l1.clean(line, &mut content) {
            self.port.line_pool.give(content);
            self.leaving.cleaning.perform(number);
            return false;
        }
        record.counters.l1_cleanings += 1;
        record.note_line(FactKind::Cleaned, line);
        if host.wants.accesses && Medium::of(line) == Medium::Nvm {
            host.tell(&SmEvent::Cleaned(line));
        }
        let request = Request {
            line,
            tag: cleaning_tag(number),
            from: self.port.requester,
            kind: RequestKind::Write,
            sectors: sectors_touched(content.mask),
            payload: Payload::Line(content),
        };
        self.port.network.push(request, cx);
        true
    }

    /// A marker is at the head of the load-store unit: what its handler names leaves the L1 before it.
    pub(super) fn marker_at_head(&mut self, marker: &Marker, host: &mut SmHost) {
        host.tell(&SmEvent::Marker(marker));
        let lines = std::mem::take(host.outbox.cleans());
        if self.l1.combines() {
            lines.into_iter().for_each(|line| self.leaving.cleaning.ask(line));
        }
    }

    /// Takes over the lines that the handler wants cleaned.
    pub(super) fn take_cleans(&mut self, host: &mut SmHost) {
        for line in std::mem::take(host.outbox.cleans()) {
            self.leaving.cleaning.ask(line);
        }
    }

    /// Cleans the next line that is to be cleaned.
    pub(super) fn clean_next(&mut self, host: &mut SmHost, record: &mut Record, cx: &mut Ctx<'_, Msg>) -> Cleaned {
        let persist = loop {
            if let Some(&persist) = host.outbox.persists().front() {
                break Some(persist);
            }
            let Some((number, line)) = self.leaving.cleaning.first() else { return Cleaned::Nothing };
            if !self.must_leave(line, host) {
                break None;
            }
            // The handler was told: it may have named lines now.
            self.leaving.cleaning.take_first();
            if let Some(order) = &mut self.leaving.order {
                order.want(line, number);
            }
        };
        if !self.port.network.has_room() {
            return Cleaned::NoRoom;
        }
        if let Some(persist) = persist {
            host.outbox.persists().pop_front();
            self.send_persist(persist, host.wants.persists_by_l2, record, cx);
            return Cleaned::Sent;
        }
        match self.leaving.cleaning.take_first() {
            Some((number, line)) if self.send_cleaning(number, line, host, record, cx) => Cleaned::Sent,
            _ => Cleaned::AtOnce,
        }
    }

    /// The store of `head` joins its line; false when it lacks a way, room, or its handler's leave.
    pub(super) fn combine(
        &mut self,
        head: &mut Entry,
        (cta, launch): (u8, u8),
        host: &mut SmHost,
        record: &mut Record,
        cx: &mut Ctx<'_, Msg>,
    ) -> bool {
        let access = head.accesses[head.next];
        let (line, after) = (access.line, head.after);
        let departure = Departure { cta, line, is_load: false, is_non_temporal: false, after };
        // What may refuse is asked before the store is taken out of its entry: a refused head tries again,
        // unchanged.
        if host.admits(departure) != Admission::Goes
            || self.is_full_for(line, host)
            || !self.make_way(line, host, record, cx)
        {
            return false;
        }
        if self.is_ordered(line) && !(self.l1.has_way(line) && self.joins(line, (head.warp, cta), launch, after, host))
        {
            return false;
        }
        let Payload::Line(mut store) = std::mem::replace(&mut head.payloads[head.next], Payload::None) else {
            unreachable!("a store has a line")
        };
        store.launch = launch;
        // Read before the store joins, which makes the line dirty.
        let combined = self.l1.is_dirty(line);
        if !self.l1.combine(line, head.local, &store) {
            head.payloads[head.next] = Payload::Line(store);
            return false;
        }
        record.counters.l1_stores += 1;
        record.counters.l1_stores_combined += u64::from(combined);
        // The S-FIFO is over its entries now: its oldest line is cleaned, or, where the handler orders lines,
        // the handler is told that it must leave.
        if let Some(oldest) = self.l1.overflow() {
            record.counters.l1_cleanings_early += 1;
            if !self.must_leave(oldest, host) {
                self.leaving.cleaning.ask(oldest);
            }
        }
        if Medium::of(line) == Medium::Nvm {
            record.note_line(FactKind::Merged, line);
            if host.wants.accesses {
                let (bytes, kind, hit) = (store.mask, AccessKind::Store, combined);
                let (by, half_warps, log) = ((head.warp, cta), access.half_warps(), head.log);
                let access = Access { line, bytes, kind, half_warps, by, launch, from: 0, mark: 0, log, hit };
                host.tell(&SmEvent::Accessed(&access));
            }
        }
        self.tell_replaced(host);
        self.port.line_pool.give(store);
        true
    }

    /// Cleans the line that would have to leave for this one; false when there is no room in the miss queue
    /// for that.
    pub(super) fn make_way(
        &mut self,
        line: u64,
        host: &mut SmHost,
        record: &mut Record,
        cx: &mut Ctx<'_, Msg>,
    ) -> bool {
        if let Some(victim) = self.l1.dirty_victim(line) {
            if self.must_leave(victim, host) || !self.port.network.has_room() {
                return false;
            }
            self.clean_now(victim, host, record, cx);
        }
        true
    }

    /// The S-FIFO has no room for a line, as its head waits for its handler's word to leave.
    fn is_full_for(&mut self, line: u64, host: &mut SmHost) -> bool {
        self.leaving.order.is_some()
            && !self.l1.is_dirty(line)
            && self.l1.overflow().is_some_and(|head| self.must_leave(head, host))
    }

    /// Asks for every dirty line to be cleaned: the number of the last cleaning to wait for, if any.
    pub(super) fn release_all(&mut self) -> Option<u64> {
        for line in self.l1.dirty_lines() {
            self.leaving.cleaning.ask(line);
        }
        self.leaving.cleaning.last_open()
    }

    /// Tells a handler that watches of the line that left the L1 since it was told last.
    pub(super) fn tell_replaced(&mut self, host: &mut SmHost) {
        if let Some(line) = self.l1.take_replaced()
            && host.wants.accesses
            && Medium::of(line) == Medium::Nvm
        {
            host.tell(&SmEvent::Replaced(line));
        }
    }
}
