//! What an SM writes down: its journal, its timeline, its counters. The model reads nothing of it.
//!
//! Invariant: a fact has the time of the event that is handled, and the author that the program knows:
//! launch, CTA, warp of the CTA, pc.

use crate::coalescer::LineAccess;
use crate::msg::{Passed, Payload};
use crate::on_dram::OnDram;
use crate::stalls::{LinkParts, PersistStalls};
use durawarp_base::timeline::Label;
use durawarp_checkpoint::state;
use durawarp_engine::{Clock, Time};
use durawarp_kernel::launch::Launch;
use durawarp_kernel::memory::Medium;
use durawarp_persist::journal::{Author, FactKind, Notebook};
use durawarp_persist::outbox::Outbox;
use durawarp_persist::vocab::{PersistScope, RegionStep};

use super::by_kernel::ByKernel;
use super::cta::CtaSlot;
use super::slots::WarpSlot;
use super::wait::Wait;
use super::wiring::SmWiring;
use super::{BulkCounters, SmCounters, SmTimeline, TensorCounters};

/// Journal, timeline and counters.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) journal: Option<Box<Notebook>>,
    pub(super) timeline: Option<Box<SmTimeline>>,
    pub(super) counters: SmCounters,
    pub(super) tensor: TensorCounters,
    pub(super) bulk: BulkCounters,
    pub(super) by_kernel: ByKernel,
    pub(super) stalls: PersistStalls,
    /// Persistency operations on DRAM: the first of each kernel.
    pub(super) on_dram: Vec<OnDram>,
    /// Launches begun.
    pub(super) launches: u32,
    /// Numbers in the program of the launches in flight, by their places.
    numbers: Vec<u32>,
    /// Time of the event that is handled.
    pub(super) now: Time,
    clock: Clock,
    /// Constant delays on the way to a slice.
    link: LinkParts,
    sm: u16,
    warp_size: u32,
    /// The instruction of what is noted, where that is not the warp's next.
    pub(super) place: Option<u32>,
}

state!(Record {
    saved: counters, tensor, bulk, by_kernel, stalls, on_dram, launches, numbers, now; kept: journal, timeline, clock, link,
    sm, warp_size, place
});

impl Record {
    /// An empty record, with a journal or without.
    pub(super) fn new(journal: bool, w: &SmWiring, warp_size: u32) -> Self {
        Record {
            journal: journal.then(Box::default),
            timeline: None,
            counters: SmCounters::default(),
            tensor: TensorCounters::default(),
            bulk: BulkCounters::default(),
            by_kernel: ByKernel::default(),
            stalls: PersistStalls::default(),
            on_dram: Vec::new(),
            launches: 0,
            numbers: Vec::new(),
            now: 0,
            clock: w.clock,
            link: w.link,
            sm: w.index,
            warp_size,
            place: None,
        }
    }

    /// A launch, the `number`th of the program from 0, begins in a place.
    pub(super) fn begin_launch(&mut self, place: u8, number: u32) {
        let places = self.numbers.len().max(usize::from(place) + 1);
        self.numbers.resize(places, number);
        self.numbers[usize::from(place)] = number;
        self.launches += 1;
    }

    /// The number of the launch in a place.
    pub(super) fn launch(&self, place: u8) -> u32 {
        self.numbers.get(usize::from(place)).copied().unwrap_or_default()
    }

    /// The author of what a warp does now.
    pub(super) fn author(&self, slot: &WarpSlot) -> Author {
        let (cta, warp) = self.place(slot);
        Author::Warp {
            sm: self.sm,
            launch: self.launch(slot.launch),
            cta,
            warp,
            pc: self.place.unwrap_or(slot.warp.pc()),
        }
    }

    /// A warp's CTA, and its number there.
    fn place(&self, slot: &WarpSlot) -> (u32, u8) {
        let (cta, thread) = slot.warp.thread_of(0);
        (cta as u32, (thread / self.warp_size) as u8)
    }

    /// Notes a fact of a warp.
    pub(super) fn note(&mut self, slot: &WarpSlot, kind: FactKind, line: u64) {
        if self.journal.is_some() {
            let author = self.author(slot);
            self.note_of(author, kind, line);
        }
    }

    /// Notes a fact of an author.
    pub(super) fn note_of(&mut self, author: Author, kind: FactKind, line: u64) {
        if let Some(journal) = &mut self.journal {
            journal.note(self.now, kind, line, author);
        }
    }

    /// Notes a fact of a line of persistent memory, which the whole SM has done.
    pub(super) fn note_line(&mut self, kind: FactKind, line: u64) {
        if Medium::of(line) == Medium::Nvm {
            self.note_of(Author::Sm(self.sm), kind, line);
        }
    }

    /// Notes a store's bytes of a line.
    pub(super) fn note_store(&mut self, slot: &WarpSlot, kind: FactKind, access: LineAccess, payload: &Payload) {
        if self.journal.is_some()
            && let Payload::Line(line) = payload
        {
            let author = self.author(slot);
            if let Some(journal) = &mut self.journal {
                journal.note_data(self.now, kind, access.line, line.mask, author, &line.bytes);
            }
        }
    }

    /// Counts a persistency operation on DRAM at a warp's instruction, and notes the first of the kernel.
    pub(super) fn note_on_dram(&mut self, slot: &WarpSlot, launch: &Launch) {
        self.counters.pm_on_dram += 1;
        let (index, pc) = (self.launch(slot.launch), slot.warp.pc());
        OnDram::note(&mut self.on_dram, index, pc, launch);
    }

    /// The time of a cycle.
    pub(super) fn time_of(&self, cycle: u32) -> Time {
        self.clock.cycles(u64::from(cycle))
    }

    /// A CTA is in `slot` from now on.
    pub(super) fn cta_begins(&mut self, slot: usize, cta: &CtaSlot) {
        self.note_cta(cta, FactKind::CtaStarted);
        let launch = self.launch(cta.launch);
        if let Some(timeline) = &mut self.timeline {
            timeline.ctas.begin(slot, self.now, Label::Cta { launch, cta: cta.cta as u32 });
        }
    }

    /// A CTA has ended.
    pub(super) fn cta_ends(&mut self, slot: usize, cta: &CtaSlot) {
        self.note_cta(cta, FactKind::CtaEnded);
        if let Some(timeline) = &mut self.timeline {
            timeline.ctas.end(slot, self.now);
        }
        self.counters.ctas += 1;
    }

    fn note_cta(&mut self, cta: &CtaSlot, kind: FactKind) {
        self.note_of(Author::Cta { sm: self.sm, launch: self.launch(cta.launch), cta: cta.cta as u32 }, kind, 0);
    }

    /// A warp waits from `cycle` on, at an instruction of this name, unless it waits already.
    pub(super) fn stall_begins(&mut self, warp: usize, slot: &WarpSlot, at: &'static str, cycle: u32) {
        if self.timeline.is_some() {
            let (cta, number) = self.place(slot);
            let label = Label::Stall { at, launch: self.launch(slot.launch), cta, warp: number.into() };
            let time = self.time_of(cycle);
            if let Some(timeline) = &mut self.timeline {
                timeline.stalls.begin(warp, time, label);
            }
        }
    }

    /// A warp goes on.
    pub(super) fn stall_ends(&mut self, warp: usize, cycle: u32) {
        if let Some(timeline) = &mut self.timeline {
            timeline.stalls.end(warp, self.clock.cycles(u64::from(cycle)));
        }
    }

    /// A warp has come to a persist barrier of this scope.
    pub(super) fn barrier_begins(
        &mut self,
        slot: usize,
        cta: &CtaSlot,
        scope: PersistScope,
        at: &'static str,
        cycle: u32,
    ) {
        let launch = self.launch(cta.launch);
        if let Some(timeline) = self.timeline.as_mut().filter(|_| scope == PersistScope::Cta) {
            timeline.barrier_begins(slot, at, launch, cta.cta as u32, self.clock.cycles(u64::from(cycle)));
        }
    }

    /// A persist barrier of this scope opens.
    pub(super) fn barrier_ends(&mut self, slot: usize, scope: PersistScope, cycle: u32) {
        if let Some(timeline) = self.timeline.as_mut().filter(|_| scope == PersistScope::Cta) {
            timeline.barriers.end(slot, self.clock.cycles(u64::from(cycle)));
        }
    }

    /// Counts a warp's wait at a persist barrier, which has lasted until `cycle`.
    pub(super) fn count_barrier(&mut self, slot: &WarpSlot, scope: PersistScope, cycle: u32) {
        let cycles = u64::from(cycle.saturating_sub(slot.order.came));
        let (barriers, stall) = match scope {
            PersistScope::Thread => (&mut self.counters.pm_barriers_wi, &mut self.counters.pm_barriers_wi_stall),
            PersistScope::Cta => (&mut self.counters.pm_barriers_wg, &mut self.counters.pm_barriers_wg_stall),
            PersistScope::Kernel => (&mut self.counters.pm_barriers_kr, &mut self.counters.pm_barriers_kr_stall),
        };
        *barriers += 1;
        *stall += cycles;
        self.stalls.fences.record(self.clock.cycles(cycles));
    }

    /// Records where an acknowledged persist waited: core cycles since it was issued.
    pub(super) fn persist_ends(&mut self, passed: &Passed) -> u64 {
        self.stalls.record(passed, self.link, self.now);
        (self.now - passed.issued) / self.clock.period_ticks()
    }

    /// Notes what the handler says of regions, in the journal and in the timeline, where there are such.
    pub(super) fn note_regions(&mut self, outbox: &mut Outbox, slots: &[WarpSlot]) {
        if self.timeline.is_some() {
            let said: Vec<(RegionStep, Author)> = outbox.notes().collect();
            for (step, author) in said {
                let Author::WarpRegion { cta, warp, region, .. } = author else { continue };
                let is_author = |slot: &WarpSlot| slot.wait != Wait::NoWarp && self.place(slot) == (cta, warp);
                let slot = slots.iter().position(is_author).unwrap_or_default();
                if let Some(timeline) = &mut self.timeline {
                    timeline.regions.step(step, region, slot, self.sm, self.now);
                }
            }
        }
        if self.journal.is_some() {
            outbox.write_notes(self.journal.as_deref_mut(), self.now);
        } else {
            outbox.drop_notes();
        }
    }
}
