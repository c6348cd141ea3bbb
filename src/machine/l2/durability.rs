//! Durability at an L2 slice: writes on their way to memory, who waits for them, and write-backs on demand.
//!
//! Every write to memory has a *token* until it is durable. A write-through or a write-back is acknowledged when its
//! token is: at acceptance by the write-pending queue (ADR), when the cells are written (media), or, when the L2 itself
//! survives (eADR), at once. A write-back of a line that is clean because its bytes are already on their way waits for
//! these; that is what makes an acknowledgement sound whatever the cache did in between.
//!
//! Invariants: messages to the controller leave in the order of their causes, so that a read never overtakes a write of
//! the same line; an acknowledged byte is durable.

use std::collections::VecDeque;

use crate::engine::{Ctx, Time};
use crate::kernel::memory::Medium;
use crate::machine::msg::{Line, MemoryWrite, Msg, Payload, Persist, Reply, Request, RequestKind, copy_masked};
use crate::machine::persistence::{PastAck, PastL2, PersistSpec};
use crate::machine::ports::Requester;
use crate::persist::handler::Event;
use crate::persist::journal::{Author, FactKind, Notebook};
use crate::persist::vocab::Domain;
use crate::timeline::{Label, Level, Recorder};

use super::{L2Slice, NO_MSHR, Served};

/// A request that waits to be acknowledged, with its record where it has one.
#[derive(Debug)]
struct Asked {
    from: Requester,
    tag: u32,
    kind: RequestKind,
    persist: Option<Box<Persist>>,
}

/// Who is told when a write is durable.
#[derive(Debug)]
enum Waiter {
    Requester(Asked),
    /// One that waits for several, by its number.
    Sweep(u64),
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

/// An acknowledgement that waits for several writes, all of which have left: of one line, or of everything.
#[derive(Debug)]
struct Sweep {
    number: u64,
    asked: Asked,
    left: u32,
}

/// What a slice keeps for a timeline.
#[derive(Debug)]
pub struct SliceTimeline {
    /// By token: writes from their leaving the slice until they were durable, or accepted where they go to DRAM.
    pub writes: Recorder,
    /// How many are on their way, as the slice knows.
    pub under_way: Level,
}

/// A slice's books on durability.
#[derive(Debug)]
pub(super) struct Durability {
    domain: Domain,
    past_ack: PastAck,
    past_l2: PastL2,
    journal: Option<Box<Notebook>>,
    timeline: Option<Box<SliceTimeline>>,
    writes: Vec<InFlight>,
    free: Vec<u16>,
    /// Messages for the controller that wait for a write credit, with all that came after them.
    outbox: VecDeque<Msg>,
    /// Where the write-back of everything at the head of the input goes on.
    sweep_at: usize,
    sweeps: Vec<Sweep>,
    next_sweep: u64,
    /// Lines that a marker waits for; used again.
    named: Vec<u64>,
}

impl Durability {
    pub(super) fn new() -> Self {
        Durability {
            domain: Domain::Adr,
            past_ack: PastAck::Accept,
            past_l2: PastL2::Update,
            journal: None,
            timeline: None,
            writes: Vec::new(),
            free: Vec::new(),
            outbox: VecDeque::new(),
            sweep_at: 0,
            sweeps: Vec::new(),
            next_sweep: 0,
            named: Vec::new(),
        }
    }

    /// Messages wait for a write credit.
    pub(super) fn is_held_up(&self) -> bool {
        !self.outbox.is_empty()
    }

    fn open(&mut self, line: u64) -> u16 {
        let token = self.free.pop().unwrap_or_else(|| {
            self.writes.push(InFlight::default());
            (self.writes.len() - 1) as u16
        });
        let write = &mut self.writes[usize::from(token)];
        write.line = line;
        write.under_way = true;
        write.accepted = 0;
        token
    }

    /// The writes of the line that are not durable yet.
    fn of_line(&self, line: u64) -> impl Iterator<Item = u16> {
        let of =
            move |(token, write): (usize, &InFlight)| (write.under_way && write.line == line).then_some(token as u16);
        self.writes.iter().enumerate().filter_map(of)
    }
}

impl L2Slice {
    /// What survives a power failure, and hence when a write is acknowledged as durable, with what stores
    /// past the array do; and whether it keeps a journal.
    pub fn set_persistence(&mut self, spec: &PersistSpec, journal: bool) {
        self.durability.domain = spec.domain;
        self.durability.past_ack = spec.past_ack;
        self.durability.past_l2 = spec.past_l2;
        self.durability.journal = journal.then(Box::default);
    }

    /// The journal it kept.
    pub fn journal(&self) -> Option<&Notebook> {
        self.durability.journal.as_deref()
    }

    /// Keeps a timeline from now on, of up to so many spans and values.
    pub fn keep_timeline(&mut self, spans: usize) {
        let timeline = SliceTimeline { writes: Recorder::new(spans), under_way: Level::new(spans) };
        self.durability.timeline = Some(Box::new(timeline));
    }

    /// The timeline it kept.
    pub fn timeline(&self) -> Option<&SliceTimeline> {
        self.durability.timeline.as_deref()
    }

    /// Sends a message to the controller, behind those that wait for a credit.
    pub(super) fn send_to_memory(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        self.durability.outbox.push_back(message);
        self.pump_memory(cx);
    }

    /// Sends to the controller as far as credits allow.
    pub(super) fn pump_memory(&mut self, cx: &mut Ctx<'_, Msg>) {
        while let Some(head) = self.durability.outbox.front() {
            if matches!(head, Msg::MemoryWrite(_)) {
                if self.write_credits == 0 {
                    return;
                }
                self.write_credits -= 1;
            }
            if let Some(message) = self.durability.outbox.pop_front() {
                cx.send(self.ports.to_memory(), message, 0);
            }
        }
    }

    /// Sends a write to the controller and returns its token.
    pub(super) fn write_memory(&mut self, line: u64, data: Box<Line>, cx: &mut Ctx<'_, Msg>) -> u16 {
        self.write_memory_told(line, data, false, cx)
    }

    /// The same; where `late`, the slice hears of it only when the cells are written.
    fn write_memory_told(&mut self, line: u64, data: Box<Line>, late: bool, cx: &mut Ctx<'_, Msg>) -> u16 {
        let token = self.durability.open(line);
        let Durability { timeline, writes, free, .. } = &mut self.durability;
        if let Some(timeline) = timeline {
            let label = Label::Write { line, persistent: Medium::of(line) == Medium::Nvm };
            timeline.writes.begin(usize::from(token), cx.now(), label);
            timeline.under_way.note(cx.now(), (writes.len() - free.len()) as u64);
        }
        let write = MemoryWrite { line, slice: self.at_controller, token, late, data };
        self.send_to_memory(Msg::MemoryWrite(write), cx);
        token
    }

    /// A write was accepted by its controller.
    pub(super) fn accepted(&mut self, token: u16, at: Time) {
        self.durability.writes[usize::from(token)].accepted = at;
    }

    /// A write is durable since `at`: whoever waits for it is told.
    pub(super) fn durable(&mut self, token: u16, at: Time, cx: &mut Ctx<'_, Msg>) {
        let write = &mut self.durability.writes[usize::from(token)];
        write.under_way = false;
        let line = write.line;
        let times = [write.accepted, at];
        let mut waiters = std::mem::take(&mut write.waiters);
        self.durability.free.push(token);
        let Durability { timeline, writes, free, .. } = &mut self.durability;
        if let Some(timeline) = timeline {
            timeline.writes.end(usize::from(token), at);
            timeline.under_way.note(cx.now(), (writes.len() - free.len()) as u64);
        }
        for waiter in waiters.drain(..) {
            match waiter {
                Waiter::Requester(asked) => self.acknowledge(asked, times, cx),
                Waiter::Sweep(number) => self.sweep_advances(number, times, cx),
            }
        }
        // The list is used again.
        self.durability.writes[usize::from(token)].waiters = waiters;
        self.tell_durable(line);
    }

    /// Tells a handler that tracks durability of a line that has no write on its way any more.
    pub(super) fn tell_durable(&mut self, line: u64) {
        if self.wants.durability
            && Medium::of(line) == Medium::Nvm
            && (self.durability.domain == Domain::Eadr || self.durability.of_line(line).next().is_none())
            && let Some(handler) = &mut self.handler
        {
            handler.event(&Event::Durable(line), &mut self.outbox);
        }
    }

    fn sweep_advances(&mut self, number: u64, times: [Time; 2], cx: &mut Ctx<'_, Msg>) {
        let Some(at) = self.durability.sweeps.iter().position(|sweep| sweep.number == number) else { return };
        self.durability.sweeps[at].left -= 1;
        if self.durability.sweeps[at].left == 0 {
            let asked = self.durability.sweeps.remove(at).asked;
            self.acknowledge(asked, times, cx);
        }
    }

    /// Acknowledges a request; the last write that it waited for was accepted and durable at `times`, perhaps before it
    /// was served.
    fn acknowledge(&mut self, asked: Asked, times: [Time; 2], cx: &mut Ctx<'_, Msg>) {
        let Asked { from, tag, kind, persist } = asked;
        // A write-through brought a box, which went to the controller: another one goes back.
        let line = (kind == RequestKind::NonTemporal).then(|| self.line_pool.take());
        let payload = match (persist, line) {
            (Some(mut persist), line) => {
                persist.line = line;
                let passed = &mut persist.passed;
                passed.accepted = times[0].max(passed.served);
                passed.durable = times[1].max(passed.accepted);
                Payload::Persist(persist)
            }
            (None, Some(line)) => Payload::Line(line),
            (None, None) => Payload::None,
        };
        self.reply(from, Reply { tag, kind, sectors: 0, payload }, 0, 0, cx);
    }

    /// Writes to persistent memory as they become visible to all.
    pub(super) fn note_performed(&mut self, place: usize, mask: u128, from: Requester, cx: &Ctx<'_, Msg>) {
        let line = self.address[place];
        let Some(journal) = &mut self.durability.journal else { return };
        if Medium::of(line) == Medium::Nvm {
            let author = Author { sm: from.number(), ..Author::default() };
            journal.note_data(cx.now(), FactKind::Performed, line, mask, author, &self.data[place]);
        }
    }

    /// Performs a write-through: a copy in the cache takes the bytes too, but has nothing to write back for
    /// them; or it leaves, by the reading of that. Returns the bytes moved.
    pub(super) fn write_through(&mut self, place: Option<usize>, request: Request, cx: &mut Ctx<'_, Msg>) -> u32 {
        let Request { line: address, tag, from, kind, payload, .. } = request;
        let (line, persist) = match payload {
            // The host's writes are nobody's persists.
            Payload::Line(line) => (Some(line), None),
            Payload::Persist(mut persist) => {
                persist.passed.served = cx.now();
                (persist.line.take(), Some(persist))
            }
            Payload::None | Payload::Atomics(_) => (None, None),
        };
        let Some(line) = line else { panic!("a write-through without a line") };
        self.counters.write_throughs += 1;
        if let Some(place) = place {
            copy_masked(&mut self.data[place], &line.bytes, line.mask);
            self.dirty[place] &= !line.mask;
            if self.durability.past_l2 == PastL2::Invalidate {
                self.write_back(place, cx);
                // The tag stays, of a line without bytes.
                self.valid[place] = 0;
            }
        }
        if let Some(journal) = self.durability.journal.as_mut().filter(|_| Medium::of(address) == Medium::Nvm) {
            let author = Author { sm: from.number(), ..Author::default() };
            journal.note_data(cx.now(), FactKind::Performed, address, line.mask, author, &line.bytes);
        }
        let bytes = line.mask.count_ones();
        let late = self.durability.past_ack == PastAck::Media && Medium::of(address) == Medium::Nvm;
        let token = self.write_memory_told(address, line, late, cx);
        self.when_durable(token, Asked { from, tag, kind, persist }, cx);
        bytes
    }

    /// Acknowledges a request when the write is durable, which it is already when the L2 survives.
    fn when_durable(&mut self, token: u16, asked: Asked, cx: &mut Ctx<'_, Msg>) {
        match self.durability.domain {
            Domain::Eadr => self.acknowledge(asked, [cx.now(); 2], cx),
            _ => self.durability.writes[usize::from(token)].waiters.push(Waiter::Requester(asked)),
        }
    }

    /// Performs a write-back or a flush of a line that may be at `place`. Returns the bytes moved.
    pub(super) fn write_back_line(&mut self, place: Option<usize>, request: Request, cx: &mut Ctx<'_, Msg>) -> u32 {
        let Request { line, tag, from, kind, payload, .. } = request;
        let persist = match payload {
            Payload::Persist(mut persist) => {
                persist.passed.served = cx.now();
                Some(persist)
            }
            _ => None,
        };
        let asked = Asked { from, tag, kind, persist };
        self.counters.write_backs_asked += 1;
        if kind == RequestKind::WriteBackToL2 {
            self.acknowledge(asked, [cx.now(); 2], cx);
            return 0;
        }
        let mut bytes = 0;
        let survives = self.durability.domain == Domain::Eadr && kind == RequestKind::WriteBack;
        if let Some(place) = place {
            if !survives {
                bytes = self.dirty[place].count_ones();
                self.write_back(place, cx);
            }
            if kind == RequestKind::Flush {
                // The tag stays, of a line without bytes.
                self.valid[place] = 0;
            }
        }
        let mut waiting: smallvec::SmallVec<[u16; 4]> = self.durability.of_line(line).collect();
        match waiting.pop() {
            None => self.acknowledge(asked, [cx.now(); 2], cx),
            Some(only) if waiting.is_empty() || self.durability.domain == Domain::Eadr => {
                self.when_durable(only, asked, cx);
            }
            Some(one) => {
                waiting.push(one);
                let number = self.open_sweep(asked, waiting.len() as u32);
                for token in waiting {
                    self.durability.writes[usize::from(token)].waiters.push(Waiter::Sweep(number));
                }
            }
        }
        bytes
    }

    fn open_sweep(&mut self, asked: Asked, left: u32) -> u64 {
        let number = self.durability.next_sweep;
        self.durability.next_sweep += 1;
        self.durability.sweeps.push(Sweep { number, asked, left });
        number
    }

    /// A line of persistent memory has stores that its fill under way keeps back, or that the fill must not overwrite.
    fn fills_hold_stores(&self) -> bool {
        self.mshrs.iter().filter(|mshr| !mshr.queue.is_empty()).any(|mshr| {
            Medium::of(self.address[mshr.place]) == Medium::Nvm
                && (self.dirty[mshr.place] != 0 || mshr.queue.iter().any(|request| request.kind.stores()))
        })
    }

    /// Writes back what the handler wants to leave early; a line with a fill under way later.
    pub(super) fn clean_asked(&mut self, cx: &mut Ctx<'_, Msg>) {
        let mut lines = std::mem::take(self.outbox.cleans());
        lines.retain(|&line| {
            let place = self.tags.find(self.line_number(line)).filter(|&place| self.dirty[place] != 0);
            let filling = place.is_some_and(|place| self.mshr_of[place] != NO_MSHR);
            if let Some(place) = place.filter(|_| !filling && self.durability.domain != Domain::Eadr) {
                self.write_back(place, cx);
            }
            if !filling {
                self.tell_durable(line);
            }
            filling
        });
        *self.outbox.cleans() = lines;
    }

    /// A marker of a persist barrier: what the handler names is written back, and the marker waits for it.
    pub(super) fn marker(&mut self, request: Request, cx: &mut Ctx<'_, Msg>) -> Served {
        if self.fills_hold_stores() {
            return Served::Stalled(request);
        }
        let mut lines = std::mem::take(&mut self.durability.named);
        lines.clear();
        if let Some(handler) = &mut self.handler {
            // Lines that wait to be cleaned are no marker's.
            std::mem::swap(self.outbox.cleans(), &mut lines);
            handler.event(&Event::Drain(request.from.number()), &mut self.outbox);
            std::mem::swap(self.outbox.cleans(), &mut lines);
        }
        let Request { tag, from, kind, payload, .. } = request;
        let persist = match payload {
            Payload::Persist(mut persist) => {
                persist.passed.served = cx.now();
                Some(persist)
            }
            _ => None,
        };
        let asked = Asked { from, tag, kind, persist };
        let mut bytes = 0;
        if self.durability.domain == Domain::Eadr {
            self.acknowledge(asked, [cx.now(); 2], cx);
        } else {
            for &line in &lines {
                if let Some(place) = self.tags.find(self.line_number(line)) {
                    bytes += self.dirty[place].count_ones();
                    self.write_back(place, cx);
                }
            }
            lines.sort_unstable();
            let concerns = |write: &InFlight| write.under_way && lines.binary_search(&write.line).is_ok();
            let left = self.durability.writes.iter().filter(|write| concerns(write)).count() as u32;
            if left == 0 {
                self.acknowledge(asked, [cx.now(); 2], cx);
            } else {
                let number = self.open_sweep(asked, left);
                for write in self.durability.writes.iter_mut().filter(|write| concerns(write)) {
                    write.waiters.push(Waiter::Sweep(number));
                }
            }
        }
        for &line in &lines {
            self.tell_durable(line);
        }
        self.durability.named = lines;
        Served::Done(bytes)
    }

    /// Goes on writing back every dirty line of persistent memory, as far as credits and fills under way allow.
    pub(super) fn sweep(&mut self, request: Request, cx: &mut Ctx<'_, Msg>) -> Served {
        let mut bytes = 0;
        while self.durability.sweep_at < self.tags.places() {
            let place = self.durability.sweep_at;
            let dirty = self.dirty[place] != 0 && self.tags.line_at(place).is_some();
            if dirty && Medium::of(self.address[place]) == Medium::Nvm && self.durability.domain != Domain::Eadr {
                if self.write_credits == 0 || self.mshr_of[place] != NO_MSHR {
                    return Served::Stalled(request);
                }
                bytes += self.dirty[place].count_ones();
                self.write_back(place, cx);
            }
            self.durability.sweep_at += 1;
        }
        self.durability.sweep_at = 0;
        let Request { tag, from, kind, .. } = request;
        let asked = Asked { from, tag, kind, persist: None };
        let nvm = |write: &InFlight| write.under_way && Medium::of(write.line) == Medium::Nvm;
        let left = self.durability.writes.iter().filter(|write| nvm(write)).count() as u32;
        if left == 0 || self.durability.domain == Domain::Eadr {
            self.acknowledge(asked, [cx.now(); 2], cx);
        } else {
            let number = self.open_sweep(asked, left);
            for write in self.durability.writes.iter_mut().filter(|write| nvm(write)) {
                write.waiters.push(Waiter::Sweep(number));
            }
        }
        Served::Done(bytes)
    }
}
