//! Writes of a slice that are not durable yet, the acknowledgements that wait for them, the slice's journal
//! and timeline.
//!
//! A request is acknowledged when its writes are durable: at acceptance by the write-pending queue (ADR),
//! when the cells are written (media), or, when the L2 itself survives (eADR), at once. Which acknowledgement
//! waits for which write is the matter of `writes_under_way`.
//!
//! Invariant: an acknowledged byte is durable.

use smallvec::SmallVec;

use crate::msg::{Line, MAX_LINE_BYTES, Payload, Persist, Request, RequestKind};
use crate::persistence::{PastAck, PastL2, PersistSpec};
use crate::ports::Requester;
use crate::slice_timeline::SliceTimeline;
use crate::writes_under_way::{Due, WritesUnderWay};
use durawarp_checkpoint::{state, value};
use durawarp_engine::Time;
use durawarp_kernel::memory::Medium;
use durawarp_persist::journal::{Author, FactKind, Notebook};
use durawarp_persist::vocab::Domain;

/// A request that is served and not acknowledged.
#[derive(Debug)]
pub(super) struct PendingAck {
    pub(super) from: Requester,
    pub(super) tag: u32,
    pub(super) kind: RequestKind,
    /// When it passed where, of a warp's persist.
    pub(super) persist: Option<Box<Persist>>,
}

value!(record PendingAck { from, tag, kind, persist });

impl PendingAck {
    /// That of a request which is served `now`, and the line that it brought.
    pub(super) fn of(request: Request, now: Time) -> (PendingAck, Option<Box<Line>>) {
        let Request { from, tag, kind, payload, .. } = request;
        let (persist, line) = match payload {
            // The host's writes are no warp's persists.
            Payload::Line(line) => (None, Some(line)),
            Payload::Persist(mut persist) => {
                persist.passed.served = now;
                let line = persist.line.take();
                (Some(persist), line)
            }
            Payload::None | Payload::Atomics(_) => (None, None),
        };
        (PendingAck { from, tag, kind, persist }, line)
    }
}

/// An acknowledgement that is due, and when the last write that it waited for was accepted and durable.
pub(super) type DueAck = Due<PendingAck>;

/// Writes on their way to durability.
#[derive(Debug)]
pub(super) struct Durability {
    domain: Domain,
    past_ack: PastAck,
    past_l2: PastL2,
    journal: Option<Box<Notebook>>,
    timeline: Option<Box<SliceTimeline>>,
    writes: WritesUnderWay<PendingAck>,
}

state!(Durability { saved: writes; kept: domain, past_ack, past_l2, journal, timeline });

impl Durability {
    /// No write yet, in domain ADR.
    pub(super) fn new() -> Self {
        Durability {
            domain: Domain::Adr,
            past_ack: PastAck::Accept,
            past_l2: PastL2::Update,
            journal: None,
            timeline: None,
            writes: WritesUnderWay::new(),
        }
    }

    /// What survives a power failure, how non-temporal stores are read, and whether there is a journal.
    pub(super) fn set(&mut self, spec: &PersistSpec, journal: bool) {
        self.domain = spec.domain;
        self.past_ack = spec.past_ack;
        self.past_l2 = spec.past_l2;
        self.journal = journal.then(Box::default);
    }

    /// The journal.
    pub(super) fn journal(&self) -> Option<&Notebook> {
        self.journal.as_deref()
    }

    /// Keeps a timeline from now on.
    pub(super) fn keep_timeline(&mut self, spans: usize) {
        self.timeline = Some(Box::new(SliceTimeline::new(spans)));
    }

    /// The timeline.
    pub(super) fn timeline(&self) -> Option<&SliceTimeline> {
        self.timeline.as_deref()
    }

    /// The timeline, to note in.
    pub(super) fn timeline_mut(&mut self) -> Option<&mut SliceTimeline> {
        self.timeline.as_deref_mut()
    }

    /// The L2 survives a power failure.
    pub(super) fn l2_survives(&self) -> bool {
        self.domain == Domain::Eadr
    }

    /// A non-temporal store to this line is durable to its slice only when its cells are written.
    pub(super) fn waits_for_media(&self, line: u64) -> bool {
        self.past_ack == PastAck::Media && Medium::of(line) == Medium::Nvm
    }

    /// A non-temporal store invalidates the copy of its line in the array.
    pub(super) fn non_temporal_invalidates(&self) -> bool {
        self.past_l2 == PastL2::Invalidate
    }

    /// A write to memory begins; returns its token.
    pub(super) fn open(&mut self, line: u64, now: Time) -> u16 {
        let token = self.writes.open(line);
        if let Some(timeline) = &mut self.timeline {
            timeline.opened(token, line, now, self.writes.len());
        }
        token
    }

    /// A write was accepted by its controller.
    pub(super) fn accepted(&mut self, token: u16, at: Time) {
        self.writes.accepted(token, at);
    }

    /// A write is durable since `at`, as the slice knows `now`: its line, and what is acknowledged for it, in
    /// order.
    pub(super) fn durable(&mut self, token: u16, at: Time, now: Time) -> (u64, SmallVec<[DueAck; 2]>) {
        let due = self.writes.durable(token, at);
        if let Some(timeline) = &mut self.timeline {
            timeline.durable(token, at, now, self.writes.len());
        }
        due
    }

    /// Acknowledges when a write is durable; returns what is due at once, since the L2 survives.
    pub(super) fn await_write(&mut self, token: u16, ack: PendingAck) -> Option<PendingAck> {
        if self.l2_survives() {
            return Some(ack);
        }
        self.writes.await_write(token, ack);
        None
    }

    /// Acknowledges when every write that is under way to one of these lines is durable; returns what is due
    /// at once, since there is none or the L2 survives.
    pub(super) fn await_lines(&mut self, ack: PendingAck, of: impl Fn(u64) -> bool) -> Option<PendingAck> {
        if self.l2_survives() { Some(ack) } else { self.writes.await_lines(ack, of) }
    }

    /// No write of a line is under way, or none needs to be.
    pub(super) fn is_durable(&self, line: u64) -> bool {
        self.l2_survives() || !self.writes.concern(line)
    }

    /// Journals a write to persistent memory as it becomes visible to all: an SM's, or the host's.
    pub(super) fn note_performed(
        &mut self,
        line: u64,
        mask: u128,
        by: Option<u16>,
        bytes: &[u8; MAX_LINE_BYTES],
        now: Time,
    ) {
        let Some(journal) = &mut self.journal else { return };
        if Medium::of(line) == Medium::Nvm {
            let author = by.map_or(Author::Host, Author::Sm);
            journal.note_data(now, FactKind::Performed, line, mask, author, bytes);
        }
    }
}
