//! Stores that combine in the L1, and how they leave it: one by one for want of room, together at a release.
//!
//! ```text
//!   store ──> line's bytes in the L1 ──cleaned──> write ──> slice ──> performed
//!                     ▲ S-FIFO full, victim, older bytes than an access past the L1, a marker, a release
//! ```
//! A store is the warp's no more once it has joined its line. A fence of scope gpu or sys, and the end of an SM's last
//! resident CTA, *release*: every dirty line but those of local memory that is written back is cleaned, and they wait until all that was cleaned is performed. Each
//! cleaning has a number, so that a release waits for what came before it only.
//!
//! Source: Gope et al. section 3 (write-combining L1 with byte masks, S-FIFO); QuickRelease (HPCA 2014). Invariants: a
//! line's bytes leave before any other request of the SM to that line; one line is cleaned a cycle, ahead of the
//! load-store unit's next access. Not modelled: partial cleaning of a line; the mark of log updates on combined bytes.

use std::collections::VecDeque;

use crate::engine::Ctx;
use crate::kernel::launch::Launch;
use crate::kernel::memory::Medium;
use crate::machine::coalescer::LineAccess;
use crate::machine::msg::{Msg, Payload, Request, RequestKind, sectors_touched};
use crate::persist::handler::{Access, AccessKind, Admission, Departure, Event};
use crate::persist::journal::FactKind;
use crate::persist::sequence::Sequence;
use crate::persist::vocab::Boundary;

use super::Sm;
use super::ordered::PersistOrder;
use super::wait::{AfterFence, Wait};

/// Tags of cleanings begin here; warps' tags are below.
const CLEANING: u32 = 1 << 31;

/// Cleanings asked for and under way.
#[derive(Debug, Default)]
pub(super) struct Cleaning {
    /// Numbers and lines to be cleaned, in order.
    queue: VecDeque<(u64, u64)>,
    /// Cleanings asked for, and up to which all are performed.
    numbers: Sequence,
}

impl Cleaning {
    pub(super) fn number(&mut self) -> u64 {
        self.numbers.issue()
    }

    /// A line is to be cleaned.
    pub(super) fn ask(&mut self, line: u64) {
        let number = self.number();
        self.queue.push_back((number, line));
    }

    pub(super) fn perform(&mut self, number: u64) {
        self.numbers.complete(number);
    }

    /// Lines wait to be cleaned.
    pub(super) fn is_pending(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The cleaning that a tag stands for.
    fn of_tag(&self, tag: u32) -> u64 {
        let low = |number: u64| number as u32 & (CLEANING - 1);
        let first = self.numbers.settled() + 1;
        let ahead = (tag & (CLEANING - 1)).wrapping_sub(low(first)) & (CLEANING - 1);
        first + u64::from(ahead)
    }
}

/// What leaves a combining L1: cleanings, who waits for them, and the order that a handler keeps.
#[derive(Debug)]
pub(super) struct Leaving {
    pub(super) cleaning: Cleaning,
    /// Fences and CTAs that wait for cleanings.
    pub(super) releases: u32,
    /// Persist order of dirty lines: present only where the handler orders what leaves a combining L1.
    pub(super) order: Option<Box<PersistOrder>>,
}

impl Leaving {
    /// Nothing is dirty; `ordered` where a handler says what leaves.
    pub(super) fn new(ordered: bool) -> Self {
        Leaving { cleaning: Cleaning::default(), releases: 0, order: ordered.then(Box::default) }
    }
}

impl Sm {
    /// A write's reply is of a cleaning.
    pub(super) fn is_cleaning(tag: u32) -> bool {
        tag >= CLEANING
    }

    /// The tag of a cleaning.
    pub(super) fn cleaning_tag(number: u64) -> u32 {
        CLEANING | number as u32 & (CLEANING - 1)
    }

    /// A line has left an inclusive L2: it leaves the L1, or its combined bytes go down and bring it back there.
    pub(super) fn give_up(&mut self, line: u64) {
        if self.l1.is_dirty(line) {
            self.leaving.cleaning.ask(line);
        } else {
            self.l1.evict(line);
        }
    }

    /// Sends a line's combined bytes, if it has any. The caller has made sure of room in the miss queue.
    pub(super) fn clean_now(&mut self, line: u64, cx: &mut Ctx<'_, Msg>) {
        if self.l1.is_dirty(line) {
            let number = self.leaving.cleaning.number();
            self.send_cleaning(number, line, cx);
        }
    }

    fn send_cleaning(&mut self, number: u64, line: u64, cx: &mut Ctx<'_, Msg>) -> bool {
        let mut room = self.port.line_pool.take();
        if !self.l1.clean(line, &mut room) {
            self.port.line_pool.give(room);
            self.leaving.cleaning.perform(number);
            return false;
        }
        self.record.counters.l1_cleanings += 1;
        self.record.note_line(FactKind::Cleaned, line);
        if self.host.wants.accesses && Medium::of(line) == Medium::Nvm {
            self.host.tell(&Event::Cleaned(line));
        }
        let request = Request {
            line,
            tag: Self::cleaning_tag(number),
            from: self.w.ports.requester(),
            kind: RequestKind::Write,
            sectors: sectors_touched(room.mask),
            payload: Payload::Line(room),
        };
        self.port.network.push(request, cx);
        true
    }

    /// Cleans the next line that is to be cleaned; true when that, or want of room for it, takes the cycle.
    pub(super) fn step_cleaning(&mut self, cycle: u32, launch: &Launch, cx: &mut Ctx<'_, Msg>) -> bool {
        for line in std::mem::take(self.host.outbox.cleans()) {
            self.leaving.cleaning.ask(line);
        }
        loop {
            let persist = self.host.outbox.persists().front().copied();
            if persist.is_none() {
                let Some(&(number, line)) = self.leaving.cleaning.queue.front() else { return false };
                if self.must_leave(line) {
                    self.leaving.cleaning.queue.pop_front();
                    if let Some(books) = &mut self.leaving.order {
                        books.want(line, number);
                    }
                    continue;
                }
            }
            if !self.port.network.has_room() {
                self.lsu.blocked = true;
                return true;
            }
            if let Some((line, id)) = persist {
                self.host.outbox.persists().pop_front();
                self.send_persist(line, id, cx);
                return true;
            }
            if let Some((number, line)) = self.leaving.cleaning.queue.pop_front()
                && self.send_cleaning(number, line, cx)
            {
                return true;
            }
            self.released(cycle, launch, cx);
        }
    }

    /// A cleaning is performed.
    pub(super) fn cleaned(&mut self, tag: u32, cycle: u32, launch: &Launch, cx: &mut Ctx<'_, Msg>) {
        self.leaving.cleaning.perform(self.leaving.cleaning.of_tag(tag));
        self.released(cycle, launch, cx);
    }

    /// The head's store joins its line; false when it lacks a way, room, or leave of the gate.
    pub(super) fn combine_next(
        &mut self,
        access: LineAccess,
        cycle: u32,
        launch: &Launch,
        cx: &mut Ctx<'_, Msg>,
    ) -> bool {
        let Some(head) = self.lsu.queue.front() else { unreachable!("there is a head") };
        let (warp, line, local) = (usize::from(head.warp), access.line, head.local);
        let (cta, after) = (self.core.slots[warp].cta, head.after);
        let departure = Departure { cta, line, is_load: false, is_non_temporal: false, after };
        if self.host.admits(departure) != Admission::Goes || self.is_full_for(line) || !self.make_way(line, cx) {
            return false;
        }
        if self.is_ordered(line) && !(self.l1.has_way(line) && self.joins(line, warp, after)) {
            return false;
        }
        let Some(head) = self.lsu.queue.front_mut() else { unreachable!("there is a head") };
        let at = head.next;
        let Payload::Line(store) = std::mem::replace(&mut head.payloads[at], Payload::None) else {
            unreachable!("a store has a line")
        };
        let log = head.log;
        let combined = self.l1.is_dirty(line);
        if !self.l1.combine(line, local, &store) {
            let Some(head) = self.lsu.queue.front_mut() else { unreachable!("there is a head") };
            head.payloads[at] = Payload::Line(store);
            return false;
        }
        self.record.counters.l1_stores += 1;
        self.record.counters.l1_stores_combined += u64::from(combined);
        if let Some(head) = self.l1.overflow() {
            self.record.counters.l1_cleanings_early += 1;
            if !self.must_leave(head) {
                self.leaving.cleaning.ask(head);
            }
        }
        if Medium::of(line) == Medium::Nvm {
            self.record.note_line(FactKind::Merged, line);
            if self.host.wants.accesses {
                let by = (warp as u8, self.core.slots[warp].cta);
                let (bytes, kind, hit) = (store.mask, AccessKind::Store, combined);
                let half_warps = access.half_warps();
                let access = Access { line, bytes, kind, half_warps, by, from: 0, mark: 0, log, hit };
                self.host.tell(&Event::Accessed(&access));
            }
        }
        self.tell_replaced();
        self.port.line_pool.give(store);
        self.core.slots[warp].under_way.stores -= 1;
        self.resume(warp, cycle, launch, cx);
        true
    }

    /// Cleans the line that would have to leave for this one; false when there is no room in the miss queue for that.
    pub(super) fn make_way(&mut self, line: u64, cx: &mut Ctx<'_, Msg>) -> bool {
        if let Some(victim) = self.l1.dirty_victim(line) {
            if self.must_leave(victim) {
                return false;
            }
            if !self.port.network.has_room() {
                return false;
            }
            self.clean_now(victim, cx);
        }
        true
    }

    /// The S-FIFO has no room for a line, as its head waits for its handler's word to leave.
    fn is_full_for(&mut self, line: u64) -> bool {
        self.leaving.order.is_some()
            && !self.l1.is_dirty(line)
            && self.l1.overflow().is_some_and(|head| self.must_leave(head))
    }

    /// Asks for every dirty line to be cleaned: the number of the last cleaning to wait for, if any.
    fn release_all(&mut self) -> Option<u64> {
        for line in self.l1.dirty_lines() {
            self.leaving.cleaning.ask(line);
        }
        let numbers = &self.leaving.cleaning.numbers;
        (!numbers.is_settled()).then_some(numbers.issued())
    }

    /// A fence whose warp has nothing under way: it passes when all that was stored by this SM is performed.
    pub(super) fn release(
        &mut self,
        warp: usize,
        then: AfterFence,
        cycle: u32,
        launch: &Launch,
        cx: &mut Ctx<'_, Msg>,
    ) {
        match self.release_all() {
            None => self.pass_fence(warp, then, cycle, launch, cx),
            Some(cleaning) => {
                self.leaving.releases += 1;
                let wait = Wait::Performed { then, cleaning };
                if matches!(self.core.slots[warp].wait, Wait::Performed { .. }) {
                    // It waits at its fence already, since then.
                    self.core.slots[warp].wait = wait;
                } else {
                    self.core.enter(warp, wait, cycle);
                }
            }
        }
    }

    /// A CTA's last warp is gone: it must wait for what combines in the L1 if its scheme asks for more, or if no other
    /// CTA is there to see to it later. True when it waits.
    pub(super) fn release_cta(&mut self, cta: usize) -> bool {
        let last = || self.core.ctas.iter().enumerate().all(|(other, slot)| other == cta || slot.left == 0);
        if !self.l1.combines() || self.core.ctas[cta].boundary == Boundary::None && !last() {
            return false;
        }
        let Some(last) = self.release_all() else { return false };
        self.core.ctas[cta].releasing = last;
        self.leaving.releases += 1;
        true
    }

    /// Lets those go on whose releases are complete.
    pub(super) fn released(&mut self, cycle: u32, launch: &Launch, cx: &mut Ctx<'_, Msg>) {
        if self.leaving.releases == 0 {
            return;
        }
        let settled = self.leaving.cleaning.numbers.settled();
        let complete = |releasing: u64| releasing != 0 && releasing <= settled;
        for warp in 0..self.core.slots.len() {
            if let Wait::Performed { then, cleaning } = self.core.slots[warp].wait
                && complete(cleaning)
            {
                self.leaving.releases -= 1;
                self.pass_fence(warp, then, cycle, launch, cx);
            }
        }
        for cta in 0..self.core.ctas.len() {
            if complete(self.core.ctas[cta].releasing) {
                self.core.ctas[cta].releasing = 0;
                self.leaving.releases -= 1;
                self.leave_cta(cta, cx);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_waits_for_what_was_cleaned_before_it_in_any_order() {
        let mut cleaning = Cleaning::default();
        for line in [0, 128, 256] {
            cleaning.ask(line);
        }
        cleaning.perform(2);
        cleaning.perform(3);
        assert_eq!(cleaning.numbers.settled(), 0);
        cleaning.perform(1);
        assert_eq!((cleaning.numbers.settled(), cleaning.numbers.issued()), (3, 3));
    }

    #[test]
    fn tags_stand_for_their_numbers_when_they_have_wrapped() {
        let last = u64::from(CLEANING) * 3 - 2;
        let mut cleaning = Cleaning { numbers: Sequence::after(last), ..Cleaning::default() };
        for number in last + 1..last + 6 {
            cleaning.ask(0);
            assert_eq!(cleaning.of_tag(CLEANING | number as u32 & (CLEANING - 1)), number);
        }
    }
}
