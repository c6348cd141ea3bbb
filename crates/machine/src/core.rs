//! An out-of-order CPU core with its L1 data cache, as one component.
//!
//! ```text
//!   dispatch ──> window (reorder buffer, waiting instructions) ──> retirement ──> store buffer ──> L1 ──> homes
//!      ▲             │ loads look in the store queue, then in the L1                            ◀──
//!      └── redirect ─┘
//! ```
//! An instruction is executed when its last operand is known, with a cycle from which its result may be used;
//! only what waits for a message waits in the window. A core executes several cycles in one event
//! (`core.batch_cycles`, at most the way to a home), as no message of it can be seen before. The order of
//! events is the order of memory: a load binds, and a store is performed, in an event.
//!
//! Source: machines of LightWSP (Table I) and of persistence parallelism (Table III); the window is that of a
//! generic out-of-order core. Invariants: wrong paths fetch lines, and nothing else of them is seen; every
//! dispatch slot is in one account; the store at the head of a store buffer, or an atomic that waits, is
//! performed in the event in which its line comes, so that somebody always gets on. Not modelled: fetch and
//! instruction cache, limits of execution units and of ports, translation, prefetchers, several nodes.

mod cache;
mod calls;
mod cause;
mod commit;
mod counters;
mod dispatch;
mod execute;
mod handler_host;
mod hart;
mod hart_regions;
mod insert;
mod kept;
mod l1d;
mod leave;
mod load_order;
mod marks;
mod parameters;
mod predictor;
mod program;
mod record;
mod region;
mod remote;
mod renaming;
mod reserved;
mod retire;
mod saved;
mod serial;
mod spinning;
mod standing;
mod store_queue;
#[cfg(test)]
mod tests;
mod thread;
mod verbs;
mod victims;
mod watch;
mod weakened;
mod window;
mod wiring;

use durawarp_base::timeline::Growth;
use durawarp_checkpoint::{state, state_methods};
use durawarp_engine::{Component, Ctx, Progress, StateDigest, Time, Wait};
use durawarp_persist::handler::{CoreHandler, Dependencies, HandlerReport};
use durawarp_persist::journal::Notebook;
use durawarp_riscv::code::CodeTable;
use durawarp_riscv::hart_state::HartState;

use super::coherence::{Begin, CoreMsg, LineData};
use super::cpu::CpuMemory;
use super::handler_levels::HandlerLevels;
use super::msg::{Msg, PeerMessage, Receiver, deliver};
use super::queue_level::QueueLevel;
use super::region_spans::RegionSpans;

pub use counters::CoreCounters;
pub use marks::PassedMark;
pub use parameters::{Consistency, CoreSpec, L1dSpec};
pub use saved::{SavedThread, Standing};
pub use watch::{HartTimeline, LostSlots, SlotPlaces};
#[doc(hidden)]
pub use weakened::OrderRule;
pub use wiring::CoreWiring;

use cache::Cache;
use cause::{Cause, Lost};
use commit::Committed;
use handler_host::CoreHost;
use hart::{Blocked, Hart, Moment};
use hart_regions::HartRegions;
use kept::{ArrivedLine, Filled, Probe};
use l1d::{L1d, LineBytes, LineState};
use marks::Marks;
use program::Program;
use record::CoreRecord;
use remote::Remote;
use retire::retire;
use thread::{Thread, Woken};

/// A core.
#[derive(Debug)]
pub struct Core {
    harts: Vec<Hart>,
    cache: Cache,
    program: Program,
    host: CoreHost,
    record: CoreRecord,
    remote: Remote,
    /// The first cycle that has not been executed.
    next: u64,
    /// See [`Moment::changed`]; empty between events.
    changed: Vec<(u64, Option<u8>)>,
    /// The process has ended.
    over: bool,
}

state!(Core { parts: harts, cache, host, record, remote; saved: next, over; kept: program, changed });

/// What a hart did in a cycle.
#[derive(Debug, Clone, Copy)]
struct Stepped {
    used: u32,
    /// Why it did not use more slots.
    lost: Option<Lost>,
    /// The next cycle in which it may do something by itself.
    next: Option<u64>,
}

impl Core {
    /// An idle core; with `journal` it keeps one.
    pub fn new(spec: CoreSpec, l1d: L1dSpec, wiring: CoreWiring, handler: Box<dyn CoreHandler>, journal: bool) -> Core {
        let formed = wiring.regions.as_ref().map(|(table, _)| HartRegions::new(table.clone(), wiring.code.clone()));
        let hart = |index: u8| Hart { regions: formed.clone().map(Box::new), ..Hart::new(index, &spec) };
        Core {
            harts: (0..spec.harts as u8).map(hart).collect(),
            cache: Cache::new(L1d::new(&l1d), spec.mshr_entries, wiring.ports),
            program: Program::new(&spec, &l1d, &wiring),
            host: CoreHost::new(handler, wiring.ports, journal),
            record: CoreRecord::new(spec.width, wiring.index, journal),
            remote: Remote::new(wiring.ports, spec.harts),
            next: 0,
            changed: Vec::new(),
            over: false,
        }
    }

    /// A hart of the machine, one of this core, begins to run before the simulation does; the core must be
    /// woken at 0.
    pub fn begin(&mut self, hart: u32, state: HartState) {
        let at = self.hart_of(hart);
        self.harts[at].begin(&state);
    }

    /// Halts the simulation when the core has retired one of these numbers of instructions. They rise.
    pub fn halt_at(&mut self, instructions: &[u64]) {
        self.record.marks = Marks::new(instructions);
    }

    /// The marks of [`Core::halt_at`] that it has passed.
    pub fn passed_marks(&self) -> &[PassedMark] {
        &self.record.marks.passed
    }

    /// Before the simulation: a line is in the L1, which this core alone has, `changed` or not. The line
    /// whose place it takes, and whether its home lacks its bytes.
    pub fn warm_line(&mut self, line: u64, bytes: &LineBytes, changed: bool) -> Option<(u64, bool)> {
        let left = self.cache.l1.warm(line, bytes, changed);
        left.map(|(line, state)| (line, state == LineState::Modified))
    }

    /// Before the simulation: a line has left the L1 with its home.
    pub fn lose_line(&mut self, line: u64) {
        if let Some(place) = self.cache.l1.find(line) {
            self.cache.l1.remove(place);
        }
    }

    /// Before the simulation: a hart of this core has seen these branches, each with its outcome.
    pub fn warm_predictor(&mut self, hart: u32, branches: impl IntoIterator<Item = (u64, bool)>) {
        let at = self.hart_of(hart);
        for (pc, taken) in branches {
            let prediction = self.harts[at].predictor.predict(pc);
            self.harts[at].predictor.resolve(prediction, taken);
        }
    }

    /// Takes a rule of the memory order away, for tests that have to notice it: see [`OrderRule`].
    #[doc(hidden)]
    pub fn weaken(&mut self, rule: OrderRule) {
        self.program.weakened.lose(rule);
    }

    /// What it has counted.
    pub fn counters(&self) -> &CoreCounters {
        &self.record.counters
    }

    /// How full its queues are, all harts together.
    pub fn queues(&self) -> [QueueLevel; 3] {
        let [mut window, mut stores] = [(0, 0); 2];
        for hart in &self.harts {
            let (in_window, in_queue) = (hart.window.level(), hart.stores.level());
            window = (window.0 + in_window.0 as usize, window.1 + in_window.1 as usize);
            stores = (stores.0 + in_queue.0, stores.1 + in_queue.1);
        }
        let mshrs = self.program.spec.mshr_entries as usize;
        [
            QueueLevel::new("reorder buffer", window.0, window.1),
            QueueLevel::new("store queue", stores.0, stores.1),
            QueueLevel::new("L1D MSHRs", self.cache.under_way().count(), mshrs),
        ]
    }

    /// What its handler has to tell.
    pub fn report(&self) -> HandlerReport {
        self.host.report()
    }

    /// How many harts it has.
    pub fn harts(&self) -> usize {
        self.harts.len()
    }

    /// What a power failure finds of a hart, by its number in the core: see [`SavedThread`].
    pub fn saved(&self, hart: usize) -> SavedThread {
        saved::of(&self.harts[hart], &self.program.code)
    }

    /// How often a store or an atomic has changed a value in its L1.
    pub fn changes(&self) -> u64 {
        self.cache.l1.changes()
    }

    /// Number of its first hart in the machine, what its harts execute, and where a process' memory lies.
    pub fn executes(&self) -> (u32, &CodeTable, CpuMemory) {
        (self.program.first_hart, &self.program.code, self.program.memory)
    }

    /// Lines whose homes lack their bytes: address, bytes, which of them. A later one of a line is newer.
    pub fn dirty_lines(&self) -> impl Iterator<Item = (u64, &[u8], u128)> {
        self.cache.dirty_lines()
    }

    /// What happened to persistent memory here, when it keeps a journal.
    pub fn journal(&self) -> Option<&Notebook> {
        self.record.journal.as_ref()
    }

    /// With a journal: it has the retirement of stores from now on, too.
    pub fn note_retirement(&mut self) {
        self.record.notes_retirement = self.record.journal.is_some();
    }

    /// With a journal: how many stores and atomics to persistent memory were performed.
    pub fn performed(&self) -> u64 {
        self.record.performed
    }

    /// Lines that the L1 has changed since they came: address and bytes.
    pub fn modified_lines(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.cache.l1.modified().map(|(line, bytes)| (line, &bytes[..]))
    }

    /// Notes from now on which instructions dispatch slots are lost at.
    pub fn keep_places(&mut self) {
        self.record.watch.get_or_insert_default().places = Some(SlotPlaces::default());
    }

    /// Dispatch slots by place, where it keeps them.
    pub fn places(&self) -> Option<&SlotPlaces> {
        self.record.watch.as_ref()?.places.as_ref()
    }

    /// Keeps a timeline from now on, of at most `spans` spans of each kind.
    pub fn keep_timeline(&mut self, spans: usize) {
        self.record.watch.get_or_insert_default().timeline = Some(HartTimeline::new(spans));
        self.host.keep_timeline(spans);
    }

    /// With a timeline: what the scheme's handler held of each hart.
    pub fn handler_levels(&self) -> Option<&HandlerLevels> {
        self.host.levels.as_deref()
    }

    /// With a timeline: recoverable regions of each hart.
    pub fn region_spans(&self) -> Option<&RegionSpans> {
        self.host.regions.as_deref()
    }

    /// The timeline, where it keeps one: what each hart did.
    pub fn timeline(&self) -> Option<&HartTimeline> {
        self.record.watch.as_ref()?.timeline.as_ref()
    }

    /// Notes what was counted before the event at `now`, where a timeline is kept.
    fn note_growth(&mut self, now: Time) {
        let CoreRecord { watch, counters, .. } = &mut self.record;
        if let Some(timeline) = watch.as_mut().and_then(|watch| watch.timeline.as_mut()) {
            timeline.growth.note(now, &grown(counters));
        }
    }

    /// How its counters grew until `now`, where it kept a timeline, in the order of `grown`.
    pub fn growth(&self, now: Time) -> Option<Growth> {
        let mut growth = self.timeline()?.growth.clone();
        growth.note(now, &grown(&self.record.counters));
        Some(growth)
    }

    /// Does something with a hart in this event, and tells the others what it changed.
    fn with<R>(
        &mut self,
        hart: usize,
        now: u64,
        cx: &mut Ctx<'_, Msg>,
        act: impl FnOnce(&mut Hart, &mut Moment<'_, '_>) -> R,
    ) -> R {
        let Core { harts, cache, program, host, record, remote, changed, .. } = self;
        let mut moment = Moment { now, program, cache, record, host, remote, cx, changed };
        let result = act(&mut harts[hart], &mut moment);
        if !self.changed.is_empty() {
            self.tell_changed(now, cx);
        }
        result
    }

    /// Lines have changed: loads that bound early are executed again, reservations end.
    fn tell_changed(&mut self, now: u64, cx: &mut Ctx<'_, Msg>) {
        // A hart that is alone has written these itself.
        if self.harts.len() == 1 && self.changed.iter().all(|(_, by)| by.is_some()) {
            self.changed.clear();
            return;
        }
        let mut lines = std::mem::take(&mut self.changed);
        let Core { harts, cache, program, host, record, remote, changed, .. } = self;
        let mut moment = Moment { now, program, cache, record, host, remote, cx, changed };
        for (line, by) in lines.drain(..) {
            if by.is_some() && moment.program.weakened.lacks(OrderRule::Siblings) {
                continue;
            }
            for hart in harts.iter_mut().filter(|hart| Some(hart.index) != by) {
                hart.line_changed(line, now, &mut moment);
            }
        }
        self.changed = lines;
    }

    /// One cycle of a hart, executed in cycle `now`: retirement, the store buffer, dispatch.
    #[inline]
    fn step(&mut self, at: usize, cycle: u64, now: u64, slots: u32, cx: &mut Ctx<'_, Msg>) -> Stepped {
        self.with(at, now, cx, |hart, m| {
            if !retire(hart, cycle, m) {
                return Stepped { used: 0, lost: Some(Lost::idle(hart.index)), next: None };
            }
            let committed = if hart.stores.has_retired() { commit::commit(hart, cycle, m) } else { Committed::Nothing };
            let wrote = matches!(hart.thread, Thread::Writing(..)) && calls::write(hart, cycle, m);
            let leaves = if hart.front.leaves { leave::step(hart, cycle, m) } else { None };
            let (used, stall) = match leaves {
                None => dispatch::dispatch(hart, cycle, slots, m),
                left => (0, left),
            };
            // What an instruction that is executed alone or a call waits for may be this very store.
            let soon = used > 0 || wrote || committed == Committed::Performed;
            let next = if soon {
                Some(cycle + 1)
            } else {
                let stores_wait = !hart.stores.is_empty() && !hart.stores.has_retired();
                let retires = if stores_wait { hart.retires_at(cycle) } else { None };
                let until = stall.and_then(|stall| stall.until);
                until.into_iter().chain(retires).min().map(|next| next.max(cycle + 1))
            };
            let lost = stall.map(|stall| lost(hart, stall.cause, m));
            watch(hart, used, lost, cycle, m);
            Stepped { used, lost, next }
        })
    }

    /// Executes a cycle, at `now`. The next one in which something may happen without a message.
    #[inline]
    fn cycle(&mut self, cycle: u64, now: u64, cx: &mut Ctx<'_, Msg>) -> Option<u64> {
        let width = self.program.spec.width;
        let harts = self.harts.len();
        if harts == 1 {
            let stepped = self.step(0, cycle, now, width, cx);
            self.record.cycle(cycle, stepped.used, stepped.lost);
            return stepped.next;
        }
        // Each hart has its share of the slots, and what the other leaves.
        let share = width / harts as u32;
        let first = cycle as usize % harts;
        let (mut used, mut next, mut lost) = (0, None, None::<Lost>);
        for turn in 0..harts {
            let at = (first + turn) % harts;
            let slots = if turn + 1 == harts { width - used } else { share.max(1) };
            let stepped = self.step(at, cycle, now, slots, cx);
            used += stepped.used;
            next = [next, stepped.next].into_iter().flatten().min();
            // A hart that has something to do says better why a slot is lost than an idle one.
            lost = match (lost, stepped.lost) {
                (None | Some(Lost { cause: Cause::Idle, .. }), Some(other)) => Some(other),
                (lost, _) => lost,
            };
        }
        if used < width && lost.is_none() {
            lost = Some(Lost { cause: Cause::Execution, ..Lost::idle(first as u8) });
        }
        self.record.cycle(cycle, used, lost);
        next
    }

    /// Executes cycles from now on, as far as an event may.
    fn run(&mut self, cx: &mut Ctx<'_, Msg>) {
        let now = self.program.clock.cycle_at_or_after(cx.now());
        let end = now + u64::from(self.program.spec.batch_cycles);
        let mut cycle = self.next.max(now);
        loop {
            if cycle >= end {
                cx.wake_at(self.program.clock.cycles(cycle));
                break;
            }
            let next = self.cycle(cycle, now, cx);
            self.next = cycle + 1;
            if self.record.counters.instructions >= self.record.marks.next {
                self.record.marks.pass(self.next, self.record.counters.instructions);
                cx.halt();
            }
            match next {
                Some(next) => cycle = next,
                None => break,
            }
        }
    }

    /// A message has come that something may have waited for.
    fn look_again(&mut self, cx: &mut Ctx<'_, Msg>) {
        let at = self.program.clock.cycles(self.next).max(self.program.clock.edge_at_or_after(cx.now()));
        cx.wake_at(at);
        self.wake_for_reserved(cx);
    }

    /// The first cycle in which a line may go that an `lr` holds; none where it may now.
    fn held_until(&self, line: u64, now: u64) -> Option<u64> {
        self.harts.iter().filter_map(|hart| hart.reserved.holds_until(line, now)).max()
    }

    /// Looks at probes that wait for an `lr` again when the first of them need not any longer.
    #[inline]
    fn wake_for_reserved(&self, cx: &mut Ctx<'_, Msg>) {
        if self.cache.kept.reserved.is_empty() {
            return;
        }
        let now = self.program.clock.cycle_at_or_after(cx.now());
        let due = |probe: &Probe| self.held_until(probe.line, now).unwrap_or(now);
        if let Some(due) = self.cache.kept.reserved.iter().map(due).min() {
            cx.wake_at(self.program.clock.cycles(due));
        }
    }

    /// Answers probes that have waited for an `lr` as long as they may.
    #[inline]
    fn release_reserved(&mut self, cx: &mut Ctx<'_, Msg>) {
        if self.cache.kept.reserved.is_empty() {
            return;
        }
        let now = self.program.clock.cycle_at_or_after(cx.now());
        for probe in std::mem::take(&mut self.cache.kept.reserved) {
            self.probe(probe, now, cx);
        }
    }

    /// What a hart of the machine goes on with, one of this core, follows from these. It is in the hart's
    /// slots.
    fn follow(&mut self, hart: u32, dependencies: Option<Box<Dependencies>>, cx: &mut Ctx<'_, Msg>) {
        let slots = dependencies.as_ref().map_or(0, |_| self.program.slot(hart, 0));
        self.host.taken(slots, dependencies, self.record.journal.as_mut(), cx);
    }

    fn hart_of(&self, hart: u32) -> usize {
        (hart - self.program.first_hart) as usize
    }

    /// A line has come: loads bind, then the stores and atomics that waited for it are performed.
    fn filled(&mut self, tag: u16, evicted: Option<u64>, now: u64, cx: &mut Ctx<'_, Msg>) {
        if let Some(line) = evicted
            && !self.program.weakened.lacks(OrderRule::Evictions)
        {
            self.changed.push((line, None));
            self.tell_changed(now, cx);
        }
        let waiters = self.cache.take_waiters(tag);
        for waiter in &waiters {
            self.with(waiter.hart.into(), now, cx, |hart, m| execute::bind_waiter(hart, waiter, m));
        }
        self.cache.return_waiters(tag, waiters);
        // Cycles that lie ahead may have been executed: what follows from the line comes after them.
        let cycle = now.max(self.next.saturating_sub(1));
        let mut performed = false;
        for at in 0..self.harts.len() {
            self.with(at, now, cx, |hart, m| {
                performed |= commit::commit(hart, cycle, m) == Committed::Performed;
                if let Blocked::Serial(inst) = hart.front.blocked
                    && hart.is_drained()
                    && matches!(hart.thread, Thread::Running)
                {
                    // A stall is counted where the next cycle is.
                    let _ = serial::step(hart, &inst, cycle, m);
                }
            });
        }
        // One store a cycle: this one was that of now.
        if performed {
            self.next = self.next.max(cycle + 1);
        }
        self.pass(now, cx);
    }

    /// A line has come, and may have to wait for a place.
    fn fill(&mut self, arrival: ArrivedLine, now: u64, cx: &mut Ctx<'_, Msg>) {
        let Core { cache, record, host, .. } = self;
        match cache.fill(arrival, &mut record.counters, host, cx) {
            Ok(Filled { tag, evicted, probe }) => {
                self.filled(tag, evicted, now, cx);
                // What waited for the line is performed: it may go on to who has asked since.
                if let Some(probe) = probe {
                    self.probe(probe, now, cx);
                }
            }
            Err(arrival) => cache.kept.wait(arrival),
        }
    }

    /// Lines that the scheme had stay may go now.
    fn release_kept(&mut self, cx: &mut Ctx<'_, Msg>) {
        let now = self.program.clock.cycle_at_or_after(cx.now());
        for line in self.cache.answer_recalls(&mut self.host, cx) {
            self.changed.push((line, None));
        }
        self.tell_changed(now, cx);
        for arrival in self.cache.kept.take_arrivals() {
            self.fill(arrival, now, cx);
        }
    }

    /// A home asks for a line.
    fn probe(&mut self, probe: Probe, now: u64, cx: &mut Ctx<'_, Msg>) {
        if self.held_until(probe.line, now).is_some() {
            self.cache.kept.reserved.push(probe);
            return;
        }
        let Some(probe) = self.cache.probe_now(probe, &mut self.host) else { return };
        let Probe { line, invalidate, room, .. } = probe;
        let lost = if self.host.policy.renaming && invalidate {
            region::probe(&mut self.cache, &mut self.host, line, room, cx)
        } else {
            self.cache.probe(line, invalidate, room, &mut self.host, cx)
        };
        if lost {
            self.changed.push((line, None));
            self.tell_changed(now, cx);
        }
    }

    /// What waited in the windows is looked at.
    fn pass(&mut self, now: u64, cx: &mut Ctx<'_, Msg>) {
        for at in 0..self.harts.len() {
            if !self.harts[at].waiting.is_empty() {
                self.with(at, now, cx, execute::pass);
            }
        }
    }

    /// The process has ended: what has retired is performed, and under a scheme of regions that of each hart
    /// ends there. Nothing else.
    fn stop(&mut self, now: u64, cx: &mut Ctx<'_, Msg>) {
        self.over = true;
        self.record.idle_until(now);
        for at in 0..self.harts.len() {
            self.with(at, now, cx, |hart, m| {
                // All that may, whatever the width: the process is over.
                let mut retired = hart.window.retired_count();
                while retire(hart, now, m) && hart.window.retired_count() != retired {
                    retired = hart.window.retired_count();
                }
                let state = saved::of(hart, &m.program.code).state;
                let (first, pc) = (hart.window.retired_count() + 1, hart.front.pc);
                hart.squash(first, pc, 0, m.cache);
                hart.reserved.clear();
                calls::stopped(hart, &state, now, m);
                watch(hart, 0, None, now, m);
            });
        }
    }

    /// Performs what stopped harts have retired.
    fn wind_down(&mut self, cx: &mut Ctx<'_, Msg>) {
        let now = self.program.clock.cycle_at_or_after(cx.now());
        for at in 0..self.harts.len() {
            let gets_on = |hart: &mut Hart, m: &mut Moment<'_, '_>| {
                let performed = commit::commit(hart, now, m) == Committed::Performed;
                calls::write(hart, now, m) || performed
            };
            while self.with(at, now, cx, gets_on) {}
        }
    }

    fn stopped(&self) -> bool {
        self.harts.iter().all(|hart| matches!(hart.thread, Thread::Stopped))
    }
}

/// What a timeline has rates of: retired instructions, loads and their misses; then slots, which are spent:
/// used, lost to memory, lost to durable fences.
fn grown(counters: &CoreCounters) -> [u64; 6] {
    let CoreCounters { instructions, loads, l1_load_misses, used_slots, memory_slots, persist_slots, .. } = *counters;
    [instructions, loads, l1_load_misses, used_slots, memory_slots, persist_slots]
}

/// What a hart loses slots to, with the place where that is watched.
#[inline]
fn lost(hart: &Hart, cause: Cause, m: &Moment<'_, '_>) -> Lost {
    let pc = if m.record.watch.is_some() { standing::place(hart, cause) } else { 0 };
    Lost { cause, hart: hart.index, pc }
}

/// Notes what a hart did in a cycle where that is watched.
#[inline]
fn watch(hart: &Hart, used: u32, lost: Option<Lost>, cycle: u64, m: &mut Moment<'_, '_>) {
    if let Some(watch) = &mut m.record.watch {
        watch.step(hart.index, used, standing::doing(hart, used, lost), m.program.clock.cycles(cycle));
    }
}

impl Receiver for Core {
    type Inbox = CoreMsg;

    fn receive(&mut self, message: CoreMsg, cx: &mut Ctx<'_, Msg>) {
        // First: what was counted before this event grew before it.
        self.note_growth(cx.now());
        self.release_reserved(cx);
        let now = self.program.clock.cycle_at_or_after(cx.now());
        match message {
            // A store, or a fence, may have waited for it.
            CoreMsg::Peer(PeerMessage { from, message }) => {
                self.host.receive(from, message, self.record.journal.as_mut(), cx);
                if self.host.policy.victims.is_some() {
                    self.release_kept(cx);
                }
            }
            CoreMsg::Data(LineData { tag, grant, data, dependencies }) => {
                let line = self.cache.line_of(tag);
                self.host.taken(line, dependencies, self.record.journal.as_mut(), cx);
                self.fill(ArrivedLine { tag, grant, data, probe: None }, now, cx);
            }
            CoreMsg::Probe { line, invalidate, recall, room } => {
                self.record.counters.probes += 1;
                self.probe(Probe { line, invalidate, recall, room }, now, cx);
            }
            CoreMsg::PutAck { line, room } => self.cache.put_is_acknowledged(line, room),
            CoreMsg::Cleaned { tag, room } if self.host.policy.renaming => {
                let Core { cache, host, record, program, .. } = self;
                let journal = record.journal.as_mut();
                if let Some(line) = region::written_back(cache, host, journal, program.clock, (tag, room), cx) {
                    self.changed.push((line, None));
                    self.tell_changed(now, cx);
                }
            }
            CoreMsg::Cleaned { tag, room } => {
                self.cache.cleaned(tag, room);
            }
            CoreMsg::Return { hart, reply, step } => {
                let at = self.hart_of(hart);
                self.follow(hart, step.after, cx);
                self.with(at, now, cx, |hart, m| calls::answered(hart, *reply, step.number, m));
            }
            CoreMsg::Wake { hart, result, step } => {
                let at = self.hart_of(hart);
                self.follow(hart, step.after, cx);
                self.with(at, now, cx, |hart, m| calls::woken(hart, Woken { result, step: step.number }, m));
            }
            CoreMsg::Begin(Begin { hart, state, dependencies }) => {
                self.follow(hart, dependencies, cx);
                // It may have been under way when the process ended.
                if !self.over {
                    self.begin(hart, *state);
                }
            }
            CoreMsg::Leave { hart } => {
                let at = self.hart_of(hart);
                let hart = &mut self.harts[at];
                hart.front.leaves = !matches!(hart.thread, Thread::None | Thread::Stopped);
            }
            CoreMsg::Posted { hart, peer, acknowledged } => {
                let at = self.hart_of(hart);
                self.remote.told(at, peer, acknowledged);
            }
            CoreMsg::Stop => self.stop(now, cx),
        }
        self.look_again(cx);
    }
}

impl Component<Msg> for Core {
    state_methods!();

    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        deliver(self, message, cx);
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        self.note_growth(cx.now());
        self.release_reserved(cx);
        if self.over || self.stopped() {
            self.wind_down(cx);
        } else {
            self.run(cx);
        }
        self.wake_for_reserved(cx);
    }

    fn waits(&self, out: &mut Vec<Wait>) {
        for hart in &self.harts {
            let what = match hart.thread {
                Thread::Running => match self.cache.under_way().next() {
                    Some(line) => format!("line {line:#x}"),
                    None => "an instruction to complete".to_owned(),
                },
                Thread::Calling(_) | Thread::Writing(..) => "the answer to its system call".to_owned(),
                // The OS tells of threads that wait in a call.
                Thread::None | Thread::Waiting | Thread::Stopped => continue,
            };
            let id = self.program.first_hart + u32::from(hart.index);
            let pc = hart.front.pc;
            let who = format!("hart {id} at {} ({pc:#x})", self.program.image.code_name(pc));
            out.push(Wait { who, what, on: None, since: self.program.clock.cycles(self.next) });
        }
    }

    fn digest(&self) -> u64 {
        let mut digest = StateDigest::default();
        for hart in &self.harts {
            digest.word(hart.window.retired_count() ^ u64::from(hart.fcsr()) << 56);
            digest.word(hart.front.pc);
            hart.window.values().into_iter().for_each(|value| digest.word(value));
        }
        for (line, bytes, _) in self.cache.dirty_lines() {
            digest.word(line);
            for word in bytes.chunks_exact(8) {
                digest.word(u64::from_le_bytes(word.try_into().unwrap_or_default()));
            }
        }
        digest.value()
    }

    fn progress(&self) -> Progress {
        Progress { work: self.record.counters.instructions, ..Progress::default() }
    }
}
