//! The SM's way to its slices: the crossbar port, and the boxes that travel through it and are recycled.

use crate::msg::{LinePool, Msg, Payload, Persist, Request, RequestKind};
use crate::network::Network;
use crate::ports::Requester;
use durawarp_checkpoint::state;
use durawarp_engine::{Ctx, Time};
use durawarp_persist::handler::SmEvent;
use durawarp_persist::journal::FactKind;

use super::handler_host::SmHost;
use super::record::Record;
use super::wiring::{SmParameters, SmWiring};

/// What requests leave by.
#[derive(Debug)]
pub(super) struct SlicePort {
    pub(super) network: Network,
    pub(super) line_pool: LinePool,
    #[allow(clippy::vec_box, reason = "boxes are what is recycled: they travel in messages")]
    spare_persists: Vec<Box<Persist>>,
    /// The SM, as slices know it.
    pub(super) requester: Requester,
}

state!(SlicePort { parts: network; kept: line_pool, spare_persists, requester });

impl SlicePort {
    /// An idle port.
    pub(super) fn new(p: &SmParameters, w: &SmWiring) -> Self {
        SlicePort {
            network: Network::new(&p.crossbar, w.ports, w.port.clone(), p.l1.miss_queue_entries),
            line_pool: LinePool::default(),
            spare_persists: Vec::new(),
            requester: w.ports.requester(),
        }
    }

    /// A persist leaves the load-store unit, with what it writes: from now on its record travels with it.
    pub(super) fn begin_persist(&mut self, payload: Payload, issued: Time, mark: u64, now: Time) -> Payload {
        let mut persist = self.spare_persists.pop().unwrap_or_default();
        persist.launch = payload.launch();
        if let Payload::Line(line) = payload {
            persist.line = Some(line);
        }
        persist.mark = mark;
        persist.passed.issued = issued;
        persist.passed.left = now;
        Payload::Persist(persist)
    }

    /// Takes the box of a persist back, whose acknowledgement says nothing of durability.
    pub(super) fn recycle_persist(&mut self, mut persist: Box<Persist>) {
        if let Some(line) = persist.line.take() {
            self.line_pool.give(line);
        }
        self.spare_persists.push(persist);
    }

    /// A persist's acknowledgement is here.
    pub(super) fn end_persist(&mut self, mut persist: Box<Persist>, host: &mut SmHost, record: &mut Record) {
        let number = std::mem::take(&mut persist.number);
        let cycles = record.persist_ends(&persist.passed);
        if number != 0 || host.wants.accesses {
            host.tell(&SmEvent::Acknowledged { number, cycles, launch: persist.launch });
            for author in host.outbox.settled().drain(..) {
                record.note_of(author, FactKind::FenceSettled, 0);
            }
        }
        self.recycle_persist(persist);
    }

    /// Sends held requests that nothing holds any more, as far as the miss queue has room.
    #[inline]
    pub(super) fn release_held(&mut self, host: &mut SmHost, now: Time, cx: &mut Ctx<'_, Msg>) {
        if host.holds_any() {
            self.release_all(host, now, cx);
        }
    }

    fn release_all(&mut self, host: &mut SmHost, now: Time, cx: &mut Ctx<'_, Msg>) {
        while self.network.has_room()
            && let Some(mut request) = host.release()
        {
            if let Payload::Persist(persist) = &mut request.payload {
                persist.passed.left = now;
            }
            self.network.push(request, cx);
        }
    }

    /// Asks the slice of a line to write back everything, for the CTA in a slot.
    pub(super) fn write_back_slice(&mut self, line: u64, cta: usize, cx: &mut Ctx<'_, Msg>) {
        let (from, kind) = (self.requester, RequestKind::WriteBackAll);
        self.network.push(Request { line, tag: cta as u32, from, kind, sectors: 0, payload: Payload::None }, cx);
    }
}
