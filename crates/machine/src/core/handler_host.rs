//! The scheme in a core: its handler, and what the core asks and tells it.
//!
//! | policy | what the handler hears of, and is asked about |
//! |---|---|
//! | `dependencies` | stores that leave the store buffer, loads, lines that come and go |
//! | `front_end` | stores that leave the store buffer, with checkpoints; ends of regions; lines that go |
//! | `synchronises` | lines that come; whether a hart may go on at atomics, fences, calls, a thread's beginning |
//! | `renaming` | as [`super::region`] says |
//! | `victims` | dirty lines of persistent memory that the L1 is to evict |
//!
//! All in the order of events, which is the order of memory. What it writes leaves when the cycle of its
//! cause comes, which may lie ahead of the event.

use crate::coherence::CPU_LINE_BYTES;
use crate::handler_levels::HandlerLevels;
use crate::msg::Msg;
use crate::ports::{Endpoint, Ports};
use crate::region_spans::RegionSpans;
use durawarp_checkpoint::state;
use durawarp_engine::{Clock, Ctx, Time};
use durawarp_persist::handler::{
    Admission, CoreEvent, CoreHandler, CoreOffer, CorePolicy, Dependencies, HandlerReport, Outbox, PathStore, Peer,
    SchemeMessage, report_of,
};
use durawarp_persist::journal::{Author, Notebook};

use super::counters::CoreCounters;

/// The scheme's handler in a core.
#[derive(Debug)]
pub(super) struct CoreHost {
    handler: Box<dyn CoreHandler>,
    outbox: Outbox,
    ports: Ports,
    pub(super) policy: CorePolicy,
    /// Harts that wait for it, and since which cycle.
    awaits: u64,
    awaited_since: Vec<u64>,
    /// The latest cycle that the handler was told of, which may lie ahead of the event, in ticks.
    told: Time,
    /// What the handler held, where a timeline is kept.
    pub(super) levels: Option<Box<HandlerLevels>>,
    /// The same: its regions.
    pub(super) regions: Option<Box<RegionSpans>>,
}

state!(CoreHost {
    parts: handler, outbox; saved: awaits, awaited_since, told; kept: ports, policy, levels, regions
});

/// A store as it leaves the store buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Performed {
    pub(super) hart: u8,
    pub(super) author: Author,
    /// Physical address, of bytes of one line.
    pub(super) address: u64,
    pub(super) width: usize,
    /// Its bytes, little-endian.
    pub(super) value: u64,
    pub(super) checkpoint: bool,
}

impl CoreHost {
    pub(super) fn new(handler: Box<dyn CoreHandler>, ports: Ports, journal: bool) -> CoreHost {
        CoreHost {
            policy: handler.policy(),
            handler,
            outbox: Outbox::of_host(journal),
            ports,
            awaits: 0,
            awaited_since: Vec::new(),
            told: 0,
            levels: None,
            regions: None,
        }
    }

    /// Keeps a timeline from now on, of at most `spans` spans of each kind.
    pub(super) fn keep_timeline(&mut self, spans: usize) {
        self.levels = Some(Box::new(HandlerLevels::new(spans)));
        self.regions = Some(Box::new(RegionSpans::new(spans)));
        self.outbox.keep_notes();
    }

    /// What the handler has to tell.
    pub(super) fn report(&self) -> HandlerReport {
        report_of(&*self.handler)
    }

    /// A store to persistent memory, or an ordering fence, may leave the store buffer in this cycle.
    pub(super) fn admits(&mut self, hart: u8, (cycle, clock): (u64, Clock), counters: &mut CoreCounters) -> bool {
        if !self.hears_stores() {
            return true;
        }
        self.outbox.at(clock.cycles(cycle));
        let goes = self.handler.offer(&CoreOffer::Issue(hart), &mut self.outbox) == Admission::Goes;
        let waited = self.awaits >> hart & 1 == 1;
        if self.policy.front_end && goes == waited {
            // Who waits has a place among those that do, and gives it up.
            self.awaits ^= 1 << hart;
            self.account(hart, cycle, goes, counters);
            self.handler.event(&CoreEvent::AwaitsIssue { hart, waits: !goes }, &mut self.outbox);
        }
        goes
    }

    /// A hart begins to wait for its front-end buffer, or need not wait any longer.
    fn account(&mut self, hart: u8, cycle: u64, goes: bool, counters: &mut CoreCounters) {
        let hart = usize::from(hart);
        self.awaited_since.resize(self.awaited_since.len().max(hart + 1), 0);
        if goes {
            counters.path_full_cycles += cycle.saturating_sub(self.awaited_since[hart]);
        } else {
            self.awaited_since[hart] = cycle;
        }
    }

    /// The handler hears of stores.
    #[inline]
    pub(super) fn hears_stores(&self) -> bool {
        self.policy.dependencies || self.policy.front_end
    }

    /// All that a hart stored to persistent memory is durable, as far as the handler keeps it.
    pub(super) fn is_durable(&mut self, hart: u8) -> bool {
        !self.policy.dependencies || self.handler.offer(&CoreOffer::Durable(hart), &mut self.outbox) == Admission::Goes
    }

    /// Something is about to happen.
    pub(super) fn offer(&mut self, offer: &CoreOffer) -> Admission {
        self.handler.offer(offer, &mut self.outbox)
    }

    /// The lines that the handler has written back.
    pub(super) fn take_cleans(&mut self) -> Vec<u64> {
        std::mem::take(self.outbox.cleans())
    }

    /// Something has happened at `time`, now or in a later cycle of this event.
    pub(super) fn tell(
        &mut self,
        event: &CoreEvent<'_>,
        time: Time,
        journal: Option<&mut Notebook>,
        cx: &mut Ctx<'_, Msg>,
    ) {
        self.outbox.at(time);
        self.told = time;
        self.handler.event(event, &mut self.outbox);
        self.carry_out(time, journal, cx);
    }

    /// A hart has stored to persistent memory.
    pub(super) fn stored(
        &mut self,
        store: &Performed,
        time: Time,
        journal: Option<&mut Notebook>,
        cx: &mut Ctx<'_, Msg>,
    ) {
        let offset = (store.address % CPU_LINE_BYTES) as usize;
        let mut bytes = [0; 128];
        bytes[offset..offset + store.width].copy_from_slice(&store.value.to_le_bytes()[..store.width]);
        let of = PathStore {
            by: store.hart,
            author: store.author,
            line: store.address - offset as u64,
            mask: ((1u128 << store.width) - 1) << offset,
            bytes: &bytes,
            checkpoint: store.checkpoint,
        };
        self.tell(&CoreEvent::Stored(&of), time, journal, cx);
    }

    /// A peer has written.
    pub(super) fn receive(
        &mut self,
        from: Peer,
        message: Box<dyn SchemeMessage>,
        journal: Option<&mut Notebook>,
        cx: &mut Ctx<'_, Msg>,
    ) {
        // What a buffer has may have been stored in a cycle that lies ahead: it leaves no earlier.
        let time = if self.policy.front_end { self.told.max(cx.now()) } else { cx.now() };
        self.outbox.at(time);
        self.handler.message(from, message, &mut self.outbox);
        self.carry_out(time, journal, cx);
    }

    /// What goes home with a line depends on.
    pub(super) fn dependencies(&mut self, line: u64) -> Option<Box<Dependencies>> {
        if !self.hears_stores() {
            return None;
        }
        self.handler.event(&CoreEvent::Given(line), &mut self.outbox);
        self.outbox.take_dependencies()
    }

    /// A line has come. A handler that has harts wait may have questions at once.
    pub(super) fn taken(
        &mut self,
        line: u64,
        dependencies: Option<Box<Dependencies>>,
        journal: Option<&mut Notebook>,
        cx: &mut Ctx<'_, Msg>,
    ) {
        let Some(dependencies) = dependencies else { return };
        let event = CoreEvent::Taken { line, dependencies: &dependencies };
        if self.policy.synchronises {
            self.tell(&event, self.told.max(cx.now()), journal, cx);
        } else {
            self.handler.event(&event, &mut self.outbox);
        }
    }

    /// What depends on regions so far: a thread that begins in another core, what the OS does.
    pub(super) fn regions_so_far(&mut self) -> Option<Box<Dependencies>> {
        if !self.policy.synchronises {
            return None;
        }
        self.handler.event(&CoreEvent::ThreadBegun, &mut self.outbox);
        self.outbox.take_dependencies()
    }

    /// Nothing that a hart has to come after keeps it from synchronising.
    pub(super) fn may_synchronise(&mut self, hart: u8) -> bool {
        !self.policy.synchronises || self.offer(&CoreOffer::Durable(hart)) == Admission::Goes
    }

    fn carry_out(&mut self, time: Time, journal: Option<&mut Notebook>, cx: &mut Ctx<'_, Msg>) {
        if let Some(levels) = &mut self.levels {
            levels.note(&*self.handler, time);
        }
        let Endpoint::Core(index) = self.ports.owner() else { unreachable!("a core's handler is at a core") };
        if let Some(regions) = &mut self.regions {
            for (step, author) in self.outbox.notes() {
                if let Author::HartRegion { hart, region, .. } = author {
                    regions.step(step, region, hart.into(), index, time);
                }
            }
        }
        match journal {
            Some(journal) => self.outbox.write_notes(Some(journal), time),
            None => self.outbox.drop_notes(),
        }
        let ahead = time - cx.now();
        for (to, message, delay) in self.outbox.take_timed() {
            self.ports.tell(to, message, ahead + delay, cx);
        }
    }
}
