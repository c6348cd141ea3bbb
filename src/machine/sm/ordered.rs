//! Lines of persistent memory that leave a combining L1 in the order of a scheme: the books of who waits for what.
//!
//! ```text
//!   store ──[handler: join?]──> line in the L1 ──[handler: Outbox::persist]──> write-through ──> memory
//!              ▲ number, and what is ordered before it                       └──acknowledged──> handler, fences, releases
//! ```
//! Stores are numbered in the order of issue, and join their lines in it. A fence that does not wait makes its warp's later
//! stores come after the numbers so far; who passes a barrier of the CTA, reads its shared memory, or follows an atomic or a
//! memory fence of the CTA knows of the fences before. The *handler* decides which line leaves when; where the machine needs a
//! line to leave (its way, its place in the S-FIFO, a release, a load or an atomic of other bytes), it asks and waits.
//!
//! Source: Gope et al. section 6.1 (alternative implementation), after BPFS. Invariants: what waits is the head of the
//! load-store unit, a fence, or the end of a CTA, never what a line needs to leave; one line leaves a cycle, ahead of the
//! unit's next access, so that nothing joins bytes that are about to leave. A release waits until what it cleans is durable
//! (its write-through has no earlier answer). Not modelled: a load that misses other bytes of a dirty line could be merged
//! with these; here the line leaves first.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::Ctx;
use crate::kernel::launch::Launch;
use crate::kernel::memory::Medium;
use crate::machine::msg::{Msg, Payload, Persist, Request, RequestKind, sectors_touched};
use crate::persist::handler::{Event, Joining, Offer};
use crate::persist::journal::{Author, FactKind};

use super::Sm;
use super::wait::Wait;

/// A store: its CTA's slot and its number.
type Numbered = (u8, u64);

/// What left together.
#[derive(Debug, Default)]
struct Left {
    stores: Vec<Numbered>,
    /// Cleanings that are performed with it.
    cleanings: Vec<u64>,
}

/// The books of stores to persistent memory that are not durable yet.
#[derive(Debug, Default)]
pub(super) struct PersistOrder {
    issued: u64,
    joined: u64,
    pending: BTreeSet<Numbered>,
    /// By line, the stores in its dirty bytes.
    dirty: BTreeMap<u64, Vec<Numbered>>,
    /// By the handler's name for it, what is under way.
    left: BTreeMap<u64, Left>,
    /// Lines that are to be cleaned, with the numbers of the cleanings.
    wanted: Vec<(u64, u64)>,
    /// Fences that did not wait: CTA, up to which number, who.
    unsettled: Vec<(u8, u64, Author)>,
}

impl PersistOrder {
    /// A warp of a CTA issues so many stores: the number of the last.
    pub(super) fn issue(&mut self, cta: u8, count: u64) -> u64 {
        self.pending.extend((1..=count).map(|nth| (cta, self.issued + nth)));
        self.issued += count;
        self.issued
    }

    /// Stores issued so far.
    pub(super) fn issued(&self) -> u64 {
        self.issued
    }

    /// Some of a CTA's stores up to a number are not durable.
    pub(super) fn is_pending(&self, cta: u8, number: u64) -> bool {
        self.pending.range((cta, 0)..=(cta, number)).next().is_some()
    }

    /// A fence lets its warp go on without having waited.
    pub(super) fn fence(&mut self, cta: u8, number: u64, author: Author) {
        self.unsettled.push((cta, number, author));
    }

    /// A line must leave for a cleaning.
    pub(super) fn want(&mut self, line: u64, cleaning: u64) {
        self.wanted.push((line, cleaning));
    }

    fn join(&mut self, line: u64, cta: u8) {
        self.joined += 1;
        self.dirty.entry(line).or_default().push((cta, self.joined));
    }

    fn leave(&mut self, line: u64, id: u64, cleaning: u64) {
        let mut left = Left { stores: self.dirty.remove(&line).unwrap_or_default(), cleanings: vec![cleaning] };
        self.wanted.retain(|&(wanted, cleaning)| {
            left.cleanings.extend((wanted == line).then_some(cleaning));
            wanted != line
        });
        self.left.insert(id, left);
    }

    /// What left is durable: the cleanings performed with it, and who fenced what is settled now.
    fn arrive(&mut self, id: u64) -> (Vec<u64>, Vec<Author>) {
        let left = self.left.remove(&id).unwrap_or_default();
        for store in &left.stores {
            self.pending.remove(store);
        }
        let unsettled = std::mem::take(&mut self.unsettled);
        let (open, settled): (Vec<_>, Vec<_>) =
            unsettled.into_iter().partition(|&(cta, number, _)| self.is_pending(cta, number));
        self.unsettled = open;
        (left.cleanings, settled.into_iter().map(|(.., author)| author).collect())
    }

    /// Who waits, for a report: lines that must leave, writes under way, stores not durable.
    pub(super) fn waiting(&self) -> Option<(usize, usize, usize)> {
        (!self.pending.is_empty()).then_some((self.dirty.len(), self.left.len(), self.pending.len()))
    }
}

impl Sm {
    /// A line leaves the L1 by its handler's word alone.
    pub(super) fn is_ordered(&self, line: u64) -> bool {
        self.leaving.order.is_some() && Medium::of(line) == Medium::Nvm
    }

    /// True when a line has dirty bytes that only its handler lets leave; it is told that they must.
    pub(super) fn must_leave(&mut self, line: u64) -> bool {
        let waits = self.is_ordered(line) && self.l1.is_dirty(line);
        if waits {
            self.host.tell(&Event::Wanted(line));
        }
        waits
    }

    /// The head's store may join its line now.
    pub(super) fn joins(&mut self, line: u64, warp: usize, after: u64) -> bool {
        let cta = self.core.slots[warp].cta;
        let Some(books) = &mut self.leaving.order else { return true };
        let store = Joining { line, by: (warp as u8, cta), number: books.joined + 1, after };
        let joins = self.host.allows(&Offer::Join(store));
        if joins {
            books.join(line, cta);
        }
        joins
    }

    /// The head is an atomic on persistent memory behind fences that did not wait: true while it has to.
    pub(super) fn atomic_waits(&mut self, line: u64, warp: usize, after: u64) -> bool {
        let cta = self.core.slots[warp].cta;
        let waits = Medium::of(line) == Medium::Nvm
            && self.leaving.order.as_ref().is_some_and(|books| books.is_pending(cta, after));
        if waits {
            self.host.tell(&Event::Flush { cta, number: after });
        }
        waits
    }

    /// What a warp stored is not all known to be durable.
    pub(super) fn is_unpersisted(&self, warp: usize) -> bool {
        let slot = &self.core.slots[warp];
        self.leaving.order.as_ref().is_some_and(|books| books.is_pending(slot.cta, slot.order.past))
    }

    /// Sends a line's bytes to memory, as the handler has said. The caller has made sure of room in the miss queue.
    pub(super) fn send_persist(&mut self, line: u64, id: u64, cx: &mut Ctx<'_, Msg>) {
        let mut room = self.port.line_pool.take();
        let dirty = self.l1.clean(line, &mut room);
        assert!(dirty, "a handler has a line leave that has no dirty bytes");
        self.record.counters.l1_cleanings += 1;
        self.record.counters.persists += 1;
        self.record.note_line(FactKind::Cleaned, line);
        let number = self.leaving.cleaning.number();
        if let Some(books) = &mut self.leaving.order {
            books.leave(line, id, number);
        }
        let sectors = sectors_touched(room.mask);
        let payload = self.port.begin_persist(Payload::Line(room), self.record.now, id, self.record.now);
        let (tag, from) = (Self::cleaning_tag(number), self.w.ports.requester());
        self.port.network.push(Request { line, tag, from, kind: RequestKind::NonTemporal, sectors, payload }, cx);
    }

    /// What left is durable.
    pub(super) fn persisted(&mut self, persist: Box<Persist>, cycle: u32, launch: &Launch, cx: &mut Ctx<'_, Msg>) {
        let id = persist.mark;
        self.end_persist(persist);
        let Some(books) = &mut self.leaving.order else { unreachable!("a line left by its handler's word") };
        let (cleanings, settled) = books.arrive(id);
        for author in settled {
            if let Some(journal) = &mut self.record.journal {
                journal.note(self.record.now, FactKind::FenceSettled, 0, author);
            }
        }
        for number in cleanings {
            self.leaving.cleaning.perform(number);
        }
        self.host.tell(&Event::Persisted(id));
        for warp in 0..self.core.slots.len() {
            if let Wait::Durable { ordered, flushing: true, then } = self.core.slots[warp].wait
                && !self.is_unpersisted(warp)
            {
                self.core.slots[warp].wait = Wait::Durable { ordered, flushing: false, then };
                self.resume(warp, cycle, launch, cx);
            }
        }
        self.released(cycle, launch, cx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_settled_when_its_ctas_stores_before_it_are_durable_in_whatever_order() {
        let mut books = PersistOrder::default();
        let author = Author { warp: 3, ..Author::default() };
        assert_eq!((books.issue(0, 2), books.issue(1, 1), books.issue(0, 1)), (2, 3, 4));
        books.fence(0, 2, author);
        for (line, cta) in [(0, 0), (128, 0), (256, 1), (128, 0)] {
            books.join(line, cta);
        }
        books.want(128, 7);
        books.leave(128, 50, 8);
        books.leave(0, 51, 9);
        assert_eq!(books.arrive(50), (vec![8, 7], vec![]));
        assert!(books.is_pending(0, 2) && books.is_pending(1, 3));
        assert_eq!(books.arrive(51), (vec![9], vec![author]), "the other CTA's store is not waited for");
        assert!(!books.is_pending(0, 4) && books.is_pending(1, 3));
    }
}
