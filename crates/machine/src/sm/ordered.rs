//! Lines of persistent memory that leave a combining L1 in the order of a scheme: who waits for what.
//!
//! ```text
//!   store ──[handler: join?]──> line in the L1 ──[handler: Outbox::persist]──> write-through ──> memory
//!              ▲ number, and what is ordered before it                       └──acknowledged──> handler, fences
//! ```
//! Where the handler has lines leave for the L2 ([`SmInterests::persists_by_l2`]), the write is an ordinary
//! one: it is performed there, and later the scheme's handlers say that it is durable.
//!
//! [`SmInterests::persists_by_l2`]: durawarp_persist::handler::SmInterests::persists_by_l2
//!
//! Stores are numbered in the order of issue, and join their lines in it. A fence that does not wait makes
//! its warp's later stores come after the numbers so far; who passes a barrier of the CTA, reads its shared
//! memory, or follows an atomic or a memory fence of the CTA knows of the fences before. The *handler*
//! decides which line leaves when; where the machine needs a line to leave (its way, its place in the S-FIFO,
//! a release, a load or an atomic of other bytes), it asks and waits.
//!
//! Source: Gope et al. section 6.1 (alternative implementation), after BPFS. Invariants: what waits is the
//! head of the load-store unit, a fence, or the end of a CTA, never what a line needs to leave; one line
//! leaves a cycle, ahead of the unit's next access, so that nothing joins bytes that are about to leave. A
//! release waits until what it cleans is durable, or performed at the L2 (a write-through has no earlier
//! answer). Not modelled: a load that misses other bytes of a dirty line could be merged with these; here the
//! line leaves first.

use crate::msg::{Msg, Payload, Persist, Request, RequestKind, sectors_touched};
use durawarp_engine::Ctx;
use durawarp_kernel::memory::Medium;
use durawarp_persist::handler::{Joining, SmEvent, SmOffer};
use durawarp_persist::journal::FactKind;

use super::cleaning::cleaning_tag;
use super::handler_host::SmHost;
use super::memory_side::MemorySide;
use super::record::Record;
use super::slots::WarpSlot;

impl MemorySide {
    /// A line leaves the L1 by its handler's word alone.
    pub(super) fn is_ordered(&self, line: u64) -> bool {
        self.leaving.order.is_some() && Medium::of(line) == Medium::Nvm
    }

    /// True when a line has dirty bytes that only its handler lets leave; it is told that they must.
    pub(super) fn must_leave(&self, line: u64, host: &mut SmHost) -> bool {
        let waits = self.is_ordered(line) && self.l1.is_dirty(line);
        if waits {
            host.tell(&SmEvent::Wanted(line));
        }
        waits
    }

    /// A store of a warp and its CTA may join its line now.
    pub(super) fn joins(&mut self, line: u64, by: (u8, u8), launch: u8, after: u64, host: &mut SmHost) -> bool {
        let Some(order) = &mut self.leaving.order else { return true };
        let store = Joining { line, by, launch, number: order.next_join(), after };
        let joins = host.allows(&SmOffer::Join(store));
        if joins {
            order.join(line, by.1);
        }
        joins
    }

    /// The head is an atomic on persistent memory behind fences that did not wait: true while it has to.
    pub(super) fn atomic_waits(&self, line: u64, cta: u8, after: u64, host: &mut SmHost) -> bool {
        let waits = Medium::of(line) == Medium::Nvm
            && self.leaving.order.as_ref().is_some_and(|order| order.is_pending(cta, after));
        if waits {
            host.tell(&SmEvent::Flush { cta, number: after });
        }
        waits
    }

    /// What a warp stored is not all known to be durable.
    pub(super) fn is_unpersisted(&self, slot: &WarpSlot) -> bool {
        self.leaving.order.as_ref().is_some_and(|order| order.is_pending(slot.cta, slot.order.non_temporal))
    }

    /// Sends a line's bytes to memory, or to the L2, as the handler has said. The caller has made sure of
    /// room in the miss queue.
    pub(super) fn send_persist(
        &mut self,
        (line, id): (u64, u64),
        by_l2: bool,
        record: &mut Record,
        cx: &mut Ctx<'_, Msg>,
    ) {
        let mut content = self.port.line_pool.take();
        let dirty = self.l1.clean(line, &mut content);
        assert!(dirty, "a handler has a line leave that has no dirty bytes");
        record.counters.l1_cleanings += 1;
        record.counters.persists += u64::from(!by_l2);
        record.note_line(FactKind::Cleaned, line);
        let number = self.leaving.cleaning.number();
        if let Some(order) = &mut self.leaving.order {
            order.leave(line, id, number);
        }
        let sectors = sectors_touched(content.mask);
        let payload = self.port.begin_persist(Payload::Line(content), record.now, id, record.now);
        let (tag, from) = (cleaning_tag(number), self.port.requester);
        let kind = if by_l2 { RequestKind::Write } else { RequestKind::NonTemporal };
        self.port.network.push(Request { line, tag, from, kind, sectors, payload }, cx);
    }

    /// What left for the L2 is performed there.
    pub(super) fn persist_performed(&mut self, persist: Box<Persist>, host: &mut SmHost) {
        let id = persist.mark;
        self.port.recycle_persist(persist);
        let Some(order) = &mut self.leaving.order else { unreachable!("a line left by its handler's word") };
        for number in order.perform(id) {
            self.leaving.cleaning.perform(number);
        }
        host.tell(&SmEvent::Persisted(id));
    }

    /// What the handler says to be durable of what left for the L2; false where that is nothing.
    pub(super) fn take_durables(&mut self, host: &mut SmHost, record: &mut Record) -> bool {
        let ids = std::mem::take(host.outbox.durables());
        let Some(order) = self.leaving.order.as_mut().filter(|_| !ids.is_empty()) else { return false };
        for id in ids {
            // The slice's reply may come behind the word that what it performed is durable.
            let (cleanings, settled) = order.arrive(id);
            for number in cleanings {
                self.leaving.cleaning.perform(number);
            }
            for author in settled {
                record.note_of(author, FactKind::FenceSettled, 0);
            }
        }
        true
    }

    /// What left is durable.
    pub(super) fn persisted(&mut self, persist: Box<Persist>, host: &mut SmHost, record: &mut Record) {
        let id = persist.mark;
        self.port.end_persist(persist, host, record);
        let Some(order) = &mut self.leaving.order else { unreachable!("a line left by its handler's word") };
        let (cleanings, settled) = order.arrive(id);
        for author in settled {
            record.note_of(author, FactKind::FenceSettled, 0);
        }
        for number in cleanings {
            self.leaving.cleaning.perform(number);
        }
        host.tell(&SmEvent::Persisted(id));
    }

    /// A fence lets its warp go on before what it stored is durable.
    pub(super) fn pass_ordered(&mut self, slot: &WarpSlot, host: &mut SmHost, record: &mut Record) {
        record.note(slot, FactKind::FenceOrdered, 0);
        record.counters.pm_fences_ordered += 1;
        let (cta, number, author) = (slot.cta, slot.order.non_temporal, record.author(slot));
        host.tell(&SmEvent::FenceOrdered { cta, number, author });
        if record.journal.is_some()
            && let Some(order) = &mut self.leaving.order
        {
            order.fence(cta, number, author);
        }
    }
}
