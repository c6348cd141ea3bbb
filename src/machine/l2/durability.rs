//! Writes of a slice that are not durable yet, the acknowledgements that wait for them, the slice's journal
//! and timeline.
//!
//! Every write to memory has a *token* until it is durable. A request is acknowledged when its writes are: at
//! acceptance by the write-pending queue (ADR), when the cells are written (media), or, when the L2 itself
//! survives (eADR), at once. A write-back of a line that is clean because its bytes are already on their way
//! waits for these; that is what makes an acknowledgement sound whatever the cache did in between.
//!
//! Invariant: an acknowledged byte is durable.

use smallvec::SmallVec;

use crate::engine::Time;
use crate::kernel::memory::Medium;
use crate::machine::msg::{Line, MAX_LINE_BYTES, Payload, Persist, Request, RequestKind};
use crate::machine::persistence::{PastAck, PastL2, PersistSpec};
use crate::machine::ports::Requester;
use crate::persist::journal::{Author, FactKind, Notebook};
use crate::persist::vocab::Domain;
use crate::timeline::{Label, Level, Recorder};

/// A request that is served and not acknowledged.
#[derive(Debug)]
pub(super) struct PendingAck {
    pub(super) from: Requester,
    pub(super) tag: u32,
    pub(super) kind: RequestKind,
    /// When it passed where, of a warp's persist.
    pub(super) persist: Option<Box<Persist>>,
}

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
pub(super) type DueAck = (PendingAck, [Time; 2]);

/// What waits for a write.
#[derive(Debug)]
enum Waiter {
    /// An acknowledgement that waits for this write alone.
    Ack(PendingAck),
    /// One that waits for several, by its number.
    Group(u64),
}

/// A write that is not durable yet.
#[derive(Debug, Default)]
struct InFlight {
    line: u64,
    under_way: bool,
    /// When its controller accepted it, once that is known.
    accepted: Time,
    waiters: Vec<Waiter>,
}

/// An acknowledgement that waits for several writes.
#[derive(Debug)]
struct GroupAck {
    number: u64,
    ack: PendingAck,
    /// Writes that are not durable.
    left: u32,
}

/// What a slice keeps for a timeline.
#[derive(Debug)]
pub struct SliceTimeline {
    /// By token: writes from their leaving the slice until they were durable, or accepted where they go to
    /// DRAM.
    pub writes: Recorder,
    /// How many are on their way, as the slice knows.
    pub under_way: Level,
}

/// Writes on their way to durability.
#[derive(Debug)]
pub(super) struct Durability {
    domain: Domain,
    past_ack: PastAck,
    past_l2: PastL2,
    journal: Option<Box<Notebook>>,
    timeline: Option<Box<SliceTimeline>>,
    /// By token.
    writes: Vec<InFlight>,
    free: Vec<u16>,
    groups: Vec<GroupAck>,
    next_group: u64,
}

impl Durability {
    /// No write yet, in domain ADR.
    pub(super) fn new() -> Self {
        Durability {
            domain: Domain::Adr,
            past_ack: PastAck::Accept,
            past_l2: PastL2::Update,
            journal: None,
            timeline: None,
            writes: Vec::new(),
            free: Vec::new(),
            groups: Vec::new(),
            next_group: 0,
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
        let timeline = SliceTimeline { writes: Recorder::new(spans), under_way: Level::new(spans) };
        self.timeline = Some(Box::new(timeline));
    }

    /// The timeline.
    pub(super) fn timeline(&self) -> Option<&SliceTimeline> {
        self.timeline.as_deref()
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
        let token = self.free.pop().unwrap_or_else(|| {
            self.writes.push(InFlight::default());
            (self.writes.len() - 1) as u16
        });
        let write = &mut self.writes[usize::from(token)];
        write.line = line;
        write.under_way = true;
        write.accepted = 0;
        if let Some(timeline) = &mut self.timeline {
            let label = Label::Write { line, persistent: Medium::of(line) == Medium::Nvm };
            timeline.writes.begin(usize::from(token), now, label);
            timeline.under_way.note(now, (self.writes.len() - self.free.len()) as u64);
        }
        token
    }

    /// A write was accepted by its controller.
    pub(super) fn accepted(&mut self, token: u16, at: Time) {
        self.writes[usize::from(token)].accepted = at;
    }

    /// A write is durable since `at`, as the slice knows `now`: its line, and what is acknowledged for it, in
    /// order.
    pub(super) fn durable(&mut self, token: u16, at: Time, now: Time) -> (u64, SmallVec<[DueAck; 2]>) {
        let write = &mut self.writes[usize::from(token)];
        write.under_way = false;
        let line = write.line;
        let times = [write.accepted, at];
        let mut waiters = std::mem::take(&mut write.waiters);
        let mut due = SmallVec::new();
        self.free.push(token);
        if let Some(timeline) = &mut self.timeline {
            timeline.writes.end(usize::from(token), at);
            timeline.under_way.note(now, (self.writes.len() - self.free.len()) as u64);
        }
        for waiter in waiters.drain(..) {
            match waiter {
                Waiter::Ack(ack) => due.push((ack, times)),
                Waiter::Group(number) => due.extend(self.advance(number).map(|ack| (ack, times))),
            }
        }
        // The list is used again.
        self.writes[usize::from(token)].waiters = waiters;
        (line, due)
    }

    /// One more write of a group is durable: the acknowledgement, with the last of them.
    fn advance(&mut self, number: u64) -> Option<PendingAck> {
        let at = self.groups.iter().position(|group| group.number == number)?;
        self.groups[at].left -= 1;
        (self.groups[at].left == 0).then(|| self.groups.remove(at).ack)
    }

    /// Acknowledges when a write is durable; returns what is due at once, since the L2 survives.
    pub(super) fn await_write(&mut self, token: u16, ack: PendingAck) -> Option<PendingAck> {
        if self.l2_survives() {
            return Some(ack);
        }
        self.writes[usize::from(token)].waiters.push(Waiter::Ack(ack));
        None
    }

    /// Acknowledges when every write that is under way to one of these lines is durable; returns what is due
    /// at once, since there is none or the L2 survives.
    pub(super) fn await_lines(&mut self, ack: PendingAck, of: impl Fn(u64) -> bool) -> Option<PendingAck> {
        let concerns = |write: &InFlight| write.under_way && of(write.line);
        let left = self.writes.iter().filter(|write| concerns(write)).count() as u32;
        if left == 0 || self.l2_survives() {
            return Some(ack);
        }
        let number = self.next_group;
        self.next_group += 1;
        self.groups.push(GroupAck { number, ack, left });
        for write in self.writes.iter_mut().filter(|write| concerns(write)) {
            write.waiters.push(Waiter::Group(number));
        }
        None
    }

    /// No write of a line is under way, or none needs to be.
    pub(super) fn is_durable(&self, line: u64) -> bool {
        self.l2_survives() || !self.writes.iter().any(|write| write.under_way && write.line == line)
    }

    /// Journals a write to persistent memory as it becomes visible to all.
    pub(super) fn note_performed(
        &mut self,
        line: u64,
        mask: u128,
        from: Requester,
        bytes: &[u8; MAX_LINE_BYTES],
        now: Time,
    ) {
        let Some(journal) = &mut self.journal else { return };
        if Medium::of(line) == Medium::Nvm {
            let author = Author { sm: from.number(), ..Author::default() };
            journal.note_data(now, FactKind::Performed, line, mask, author, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(tag: u32) -> PendingAck {
        PendingAck { from: Requester::sm(0), tag, kind: RequestKind::WriteBack, persist: None }
    }

    fn due(writes: &mut Durability, token: u16, at: Time) -> Vec<(u32, [Time; 2])> {
        writes.accepted(token, at - 5);
        writes.durable(token, at, at).1.into_iter().map(|(ack, times)| (ack.tag, times)).collect()
    }

    #[test]
    fn a_line_is_acknowledged_with_the_last_of_its_writes_under_way() {
        let mut writes = Durability::new();
        let tokens = [128, 256, 128].map(|line| writes.open(line, 0));
        assert!(writes.await_lines(ack(9), |line| line == 128).is_none());
        assert!(writes.await_write(tokens[1], ack(8)).is_none());
        assert_eq!(due(&mut writes, tokens[2], 40), [], "the first is on its way");
        assert!(!writes.is_durable(128));
        assert_eq!(due(&mut writes, tokens[0], 50), [(9, [45, 50])]);
        assert!(writes.is_durable(128));
        assert_eq!(due(&mut writes, tokens[1], 60), [(8, [55, 60])]);
    }

    #[test]
    fn nothing_under_way_is_acknowledged_at_once() {
        let mut writes = Durability::new();
        let token = writes.open(128, 0);
        assert_eq!(writes.await_lines(ack(1), |line| line == 256).unwrap().tag, 1);
        assert!(writes.await_lines(ack(2), |line| line == 128).is_none());
        assert_eq!(due(&mut writes, token, 7), [(2, [2, 7])]);
        assert_eq!(writes.open(256, 8), token, "a token is used again");
        assert_eq!(due(&mut writes, token, 9), [], "with no waiter of the write before");
    }
}
