//! A streaming multiprocessor: warps, schedulers, execution units, load-store unit, L1D, shared memory.
//!
//! ```text
//!   CTAs ──> warp slots ─[scoreboard]─> ready masks ─[schedulers]─> issue ──> core / fp64 / sfu units
//!                 ▲                                                  └─────> LSU ──> L1D ──> miss queue ──> crossbar
//!                 └──────────── registers written, warps woken ◄──────────────────── replies ◄───────────────┘
//! ```
//! An instruction executes functionally when it issues; the scoreboard then keeps its results from being used
//! before their latency has passed. Load data goes to the registers when it comes. The SM wakes for a cycle
//! only if something can issue or move in it; while every warp waits it sleeps until the earliest timer or
//! message.
//!
//! Source: AGPM Table IV, the rest `SM6_TITANX`; every number is a parameter of [`SmSpec`], [`LatencySpec`]
//! and [`IntervalSpec`]. Invariants: a warp issues at most `issue_width` instructions a cycle, to different
//! units; a register is read only when its scoreboard entry allows; a CTA ends when all its loads and stores
//! are performed. Not modelled: instruction fetch (every instruction hits), operand collectors, write ports
//! of the register file; its read ports but of traces.

mod address_units;
mod barriers;
mod bulk;
mod bulk_admission;
mod bulk_copy;
mod bulk_peers;
mod bulk_reads;
mod bulk_shared;
mod bulk_stores;
mod bulk_table;
mod by_kernel;
mod cleaning;
mod cluster;
mod cluster_barrier;
mod cluster_link;
mod combine;
mod copies;
mod core;
mod cta;
mod cta_end;
mod dependents;
mod fences;
mod front_end;
mod group;
mod handler_host;
mod launches;
mod lsu;
mod memory;
mod memory_side;
mod moment;
mod ordered;
mod parameters;
mod persist;
mod persist_order;
mod port;
mod record;
mod register_reads;
mod registers;
mod report;
mod requests;
mod seat;
mod slots;
mod standing;
mod tensor_columns;
mod tensor_memory;
mod tensor_pair;
mod tensor_peers;
mod tensor_steps;
mod tensor_work;
mod timeline;
mod totals;
mod traced;
mod wait;
mod walk;
mod wiring;

use std::sync::Arc;

use durawarp_base::timeline::Growth;
use durawarp_checkpoint::{LoadFault, StateReader, StateWriter, Stateful, state};
use durawarp_engine::{Component, Ctx, Progress, StateDigest, Time};
use durawarp_kernel::fault::ProgramFault;
use durawarp_kernel::ir::Class;
use durawarp_kernel::launch::Launch;
use durawarp_kernel::traced::TraceFault;
use durawarp_kernel::warp::Warp;
use durawarp_persist::handler::{SmEvent, SmHandler};
use durawarp_persist::journal::Notebook;
use durawarp_persist::regions::RegionReport;

use super::kernel_facts::kernel_facts;
use super::msg::{LaunchPlace, Msg, PeerMessage, Receiver, SmMsg, deliver};
use super::on_dram::OnDram;
use super::queue_level::QueueLevel;
use super::remote::ClusterPlaces;
use super::scheduler::{Candidates, Unit, next_unit};
use super::stalls::PersistStalls;

pub use parameters::{
    BulkCounters, ClusterCounters, IntervalSpec, LatencySpec, SmCounters, SmSpec, TensorCounters, TensorSpec,
};
pub use standing::{CachedLine, OpenLoad, ResidentWarp, Residents, Stands};
pub use timeline::SmTimeline;
pub use wiring::{SmParameters, SmWiring};

use self::core::IssueCore;
use bulk::CopyEngine;
use cluster_link::{queue_access, serve_part};
use dependents::Dependents;
use fences::{FencePath, fence_path};
use front_end::FrontEndWaits;
use handler_host::SmHost;
use launches::LaunchTable;
use lsu::Lsu;
use memory_side::{MemorySide, memory_side};
use moment::{Moment, moment};
use record::Record;
use seat::Seat;
use totals::counted;
use wait::{Account, Wait};

/// A streaming multiprocessor: its parts, each of which owns its state.
#[derive(Debug)]
pub struct Sm {
    p: SmParameters,
    w: SmWiring,
    /// From the first launch on. It is out of the SM during an event, which borrows both.
    launches: Option<Box<LaunchTable>>,
    core: IssueCore,
    lsu: Lsu,
    memory: MemorySide,
    host: SmHost,
    front_end: FrontEndWaits,
    engine: CopyEngine,
    dependents: Dependents,
    record: Record,
    /// The program failed here: nothing issues any more.
    failed: bool,
}

state!(Sm { saved: launches, dependents, failed; parts: core, lsu, memory, host, front_end, engine, record; kept: p, w });

impl Sm {
    /// An idle SM that hosts a scheme's handler, and keeps a journal if asked to.
    pub fn new(p: SmParameters, w: SmWiring, handler: Box<dyn SmHandler>, journal: bool) -> Self {
        let wants = handler.interests();
        Sm {
            launches: None,
            core: IssueCore::new(&p),
            lsu: Lsu::new(&p),
            memory: memory_side(&p, &w, wants.persist_order),
            front_end: FrontEndWaits::new(wants.front_end, p.sm.coalescer, w.line_bytes),
            engine: CopyEngine::new(p.sm.warps),
            dependents: Dependents::default(),
            host: SmHost::new(handler, journal),
            record: Record::new(journal, &w, p.sm.warp_size),
            failed: false,
            p,
            w,
        }
    }

    /// What its handler counted.
    pub fn tally(&self, add: &mut dyn FnMut(&'static str, u64)) {
        self.host.report().counters.into_iter().for_each(|(name, value)| add(name, value));
    }

    /// What its handler saw of recoverable regions.
    pub fn region_report(&self) -> Option<RegionReport> {
        self.host.report().regions
    }

    /// Where its warps stand; none where there are none.
    pub fn residents(&self) -> Option<Residents<'_>> {
        let parts = (&self.core, &self.lsu, &self.memory);
        standing::residents(self.launches.as_deref()?, parts, self.p.l1.global_loads)
    }

    /// The journal it kept.
    pub fn journal(&self) -> Option<&Notebook> {
        self.record.journal.as_deref()
    }

    /// Where its persists waited.
    pub fn stalls(&self) -> &PersistStalls {
        &self.record.stalls
    }

    /// For each kernel that used persistency operations on DRAM: the first such instruction.
    pub fn on_dram(&self) -> &[OnDram] {
        &self.record.on_dram
    }

    /// Keeps a timeline from now on, of at most `spans` spans of each kind.
    pub fn keep_timeline(&mut self, spans: usize) {
        self.record.timeline = Some(Box::new(SmTimeline::new(spans)));
        self.host.outbox.keep_notes();
    }

    /// The timeline it kept.
    pub fn timeline(&self) -> Option<&SmTimeline> {
        self.record.timeline.as_deref()
    }

    /// Notes what was counted before the event at `now`, where a timeline is kept.
    #[inline]
    fn note_growth(&mut self, now: Time) {
        if self.record.timeline.is_some() {
            self.note_growth_at(now);
        }
    }

    #[cold]
    fn note_growth_at(&mut self, now: Time) {
        let Some(timeline) = &mut self.record.timeline else { return };
        let (counters, accounts, slots) = (&self.record.counters, &self.core.accounts, &self.core.slots);
        let instructions = self.core.class_counts.iter().sum();
        let spent = [accounts.resident(slots), accounts.total(Account::Memory, slots)];
        timeline.growth.note(now, &[instructions, counters.l1_loads, counters.l1_hits, spent[0], spent[1]]);
    }

    /// How its counters grew until `now`, where it kept a timeline.
    pub fn growth(&self, now: Time) -> Option<Growth> {
        let mut growth = self.record.timeline.as_ref()?.growth.clone();
        let all = self.counters();
        let counted = [all.warp_instructions, all.l1_loads, all.l1_hits, all.slots_resident, all.slots_memory];
        growth.note(now, &counted);
        Some(growth)
    }

    /// How full its queues are.
    pub fn queues(&self) -> [QueueLevel; 4] {
        let (p, network) = (&self.p, &self.memory.port.network);
        let resident = self.core.slots.iter().filter(|slot| slot.wait != Wait::NoWarp).count();
        [
            QueueLevel::new("SM warp slots", resident, self.core.slots.len()),
            QueueLevel::new("SM load-store queue", self.lsu.queue.len(), p.sm.lsu_entries as usize),
            QueueLevel::new("L1 MSHRs", self.memory.l1.misses().count(), p.l1.mshr_entries as usize),
            QueueLevel::new("L1 miss queue", network.waiting().map_or(0, |(requests, _)| requests), network.capacity()),
        ]
    }

    /// What it counted.
    pub fn counters(&self) -> SmCounters {
        counted(&self.core, &self.memory, &self.record)
    }

    /// What it counted of tensor cores and asynchronous copies, where it has tensor cores.
    pub fn tensor_counters(&self) -> Option<TensorCounters> {
        let n = &self.core.class_counts;
        self.p.tensor.is_present().then_some(TensorCounters {
            matrix_instructions: n[Class::Matrix as usize],
            matrix_half_instructions: n[Class::MatrixHalf as usize],
            ..self.record.tensor
        })
    }

    /// What it counted of bulk copies.
    pub fn bulk_counters(&self) -> BulkCounters {
        self.record.bulk
    }

    /// What it counted of clusters.
    pub fn cluster_counters(&self) -> ClusterCounters {
        self.lsu.remote.counted
    }

    /// The same by kernel, in the order of first launches.
    pub fn counters_by_kernel(&self) -> Vec<(String, SmCounters)> {
        self.record.by_kernel.totals(&self.counters())
    }

    /// A launch begins: its CTAs follow. The L1 forgets all lines: those of launches before it, and those of
    /// launches that go on, which may be older than what this one is to see.
    fn start(&mut self, launch: Arc<Launch>, at: LaunchPlace, l1_ways: Option<u32>) {
        let LaunchPlace { place, number, depends, beside } = at;
        let free = self.core.is_free();
        if free {
            self.memory.l1.begin_launch(l1_ways);
        } else {
            assert!(l1_ways.is_none(), "the L1 gets other ways while CTAs are resident");
            self.memory.l1.invalidate_all();
        }
        if self.host.wants.accesses {
            let facts = kernel_facts(&launch, (place, number), self.p.sm.warp_size);
            self.host.tell(&SmEvent::KernelStarts(&facts));
        }
        if let Some(order) = &self.memory.leaving.order {
            let number = order.issued();
            self.host.tell(&SmEvent::LaunchStarts { number, launch: place, beside, again: false });
        }
        self.front_end.begin_launch(&launch);
        // A front-end buffer looks ahead at registers; a second instruction of a cycle is judged behind the
        // first.
        self.core.defers = !self.front_end.present && self.p.sm.issue_width == 1;
        let warps = u64::from(self.p.sm.count) * u64::from(self.p.sm.warps);
        self.core.prefetches = Warp::prefetch_pays(&launch.kernel, warps, self.p.sm.warp_size);
        self.record.by_kernel.begin(place, &launch.kernel.name);
        if free {
            self.record.by_kernel.count_for(place, self.counters());
        }
        LaunchTable::begin(&mut self.launches, place, launch);
        self.dependents.begin(place, depends);
        self.record.begin_launch(place, number);
    }

    /// A CTA of the launch in a place comes; a free SM may give the L1 other ways for it.
    fn start_cta(
        &mut self,
        (cta, place): (u64, u8),
        l1_ways: Option<u32>,
        cluster: Option<Box<ClusterPlaces>>,
        cycle: u32,
    ) -> Result<(), TraceFault> {
        if l1_ways.is_some() || !self.record.by_kernel.counts_for(place) {
            let free = self.core.is_free();
            assert!(free || l1_ways.is_none(), "the L1 gets other ways while CTAs are resident");
            if l1_ways.is_some() {
                self.memory.l1.begin_launch(l1_ways);
            }
            if free {
                self.record.by_kernel.count_for(place, self.counters());
            }
        }
        let Some(launches) = &self.launches else { unreachable!("a CTA comes after its launch") };
        let cta = launches.at(place).cta_at(cta);
        let slot = self.core.start_cta(cta, cycle, (place, launches.at(place)), &mut self.host)?;
        self.core.ctas[slot].seat = cluster.map(|places| Seat::new(*places, self.core.slots.len()));
        self.record.cta_begins(slot, &self.core.ctas[slot]);
        Ok(())
    }

    /// Sends what the handler has written.
    #[inline(always)]
    fn send_messages(&mut self, cx: &mut Ctx<'_, Msg>) {
        if !self.host.outbox.is_empty() {
            self.send_all(cx);
        }
    }

    #[inline(never)]
    fn send_all(&mut self, cx: &mut Ctx<'_, Msg>) {
        self.record.note_regions(&mut self.host.outbox, &self.core.slots);
        for (to, message, delay) in self.host.outbox.take_timed() {
            self.w.ports.tell(to, message, delay, cx);
        }
    }

    /// Does what needs launches, of which one has begun.
    #[inline(always)]
    fn with_launches(&mut self, act: impl FnOnce(&mut Sm, &LaunchTable)) {
        let Some(launches) = self.launches.take() else { unreachable!("nothing happens before the first launch") };
        act(self, &launches);
        self.launches = Some(launches);
    }

    /// The first cycle at or after `now`.
    fn cycle_from(&self, now: Time) -> u32 {
        self.w.clock.cycle_at_or_after(now) as u32
    }

    /// One core cycle.
    fn tick(&mut self, cycle: u32, launches: &LaunchTable, cx: &mut Ctx<'_, Msg>) {
        self.core.accounts.tick(cycle);
        self.core.end_latencies(cycle);
        while let Some(load) = self.core.copies.take_landed(cycle) {
            self.land(load, cycle, launches, cx);
        }
        if self.core.tensor.due() <= cycle && !self.arrive_behind_products(cycle, launches, cx) {
            return;
        }
        self.step_lsu(cycle, launches, cx);
        if self.engine.is_busy() {
            self.step_engine(cycle, launches, cx);
        }
        for scheduler in 0..self.core.schedulers.len() {
            let ready = &self.core.schedulers[scheduler];
            if ready.wanted() == 0 {
                continue;
            }
            // One instruction may fill the load-store unit, so that it is asked for each scheduler.
            let candidates = ready.candidates(cycle, self.lsu.has_room());
            self.core.accounts.memory_full += u64::from(candidates.on_memory);
            self.core.accounts.unit_busy += u64::from(candidates.on_unit);
            if let Some((warp, others)) = self.pick(scheduler, candidates, cycle, launches) {
                self.core.accounts.not_selected += u64::from(others);
                if self.core.issue_deferred(scheduler, warp, cycle, launches, &mut self.record.counters) {
                    continue;
                }
                self.issue(warp, cycle, launches, cx);
                if self.failed {
                    return;
                }
            }
        }
        // Whatever ends a phase happens before or in a cycle.
        if self.core.awaiting != 0 {
            traced::end_phases(&mut self.core, cycle, self.p.shared.latency_cycles, launches);
        }
    }

    /// Arrivals behind products in tensor memory that are due happen. False: one failed.
    #[cold]
    fn arrive_behind_products(&mut self, cycle: u32, launches: &LaunchTable, cx: &mut Ctx<'_, Msg>) -> bool {
        let arrived = tensor_steps::arrive_behind_products(&mut self.core, cycle, launches);
        self.core.tensor.pairs.send(&self.w, cx);
        if let Err(fault) = arrived {
            self.fail(*fault, cx);
            return false;
        }
        true
    }

    /// Picks a warp among a scheduler's candidates, and how many others there are; those that the front-end
    /// buffer holds are set aside on the way.
    #[inline]
    fn pick(
        &mut self,
        scheduler: usize,
        candidates: Candidates,
        cycle: u32,
        launches: &LaunchTable,
    ) -> Option<(usize, u32)> {
        let Candidates { mut mask, mut count, .. } = candidates;
        while mask != 0 {
            let warp = usize::from(self.core.schedulers[scheduler].pick(mask));
            count -= 1;
            if !self.front_end.present {
                return Some((warp, count));
            }
            let launch = launches.of(&self.core.slots[warp]);
            if !self.front_end.holds(warp, cycle, launch, &mut self.core, &mut self.host) {
                return Some((warp, count));
            }
            mask &= !(1 << self.core.slots[warp].rank);
        }
        None
    }

    /// Asks to be woken for the next cycle in which something can happen.
    #[inline(always)]
    fn sleep(&mut self, cycle: u32, cx: &mut Ctx<'_, Msg>) {
        let mut next = self.core.timers.next_after(cycle).unwrap_or(u32::MAX);
        // Nothing can be earlier than the next cycle, and until then nobody sleeps.
        if next > cycle + 1 {
            next = next.min(self.next_of_others(cycle));
        }
        if next != u32::MAX {
            cx.wake_at(self.w.clock.cycles(u64::from(next)));
        }
    }

    /// The next cycle in which something can happen beside results of fixed latency; counts the ready warps
    /// that are kept back until then.
    fn next_of_others(&mut self, cycle: u32) -> u32 {
        let mut next = self.core.copies.next().map_or(u32::MAX, |at| at.max(cycle + 1));
        // What was due has happened.
        next = next.min(self.core.tensor.due());
        next = next.min(if self.engine.is_busy() { self.engine.next_after(cycle) } else { u32::MAX });
        let (mut on_unit, mut on_memory) = (0, 0);
        let memory_open = self.lsu.has_room();
        for (nth, s) in self.core.schedulers.iter().enumerate() {
            // A warp that a unit keeps back issues when the unit is free; one that the full load-store unit
            // keeps back, when that has moved on.
            let mut wanted = s.wanted();
            while wanted != 0 {
                let unit = next_unit(&mut wanted);
                let waiting = s.waiting(unit);
                let memory = unit == Unit::Memory as usize;
                if memory && (!memory_open || self.lsu.addresses.is_full(nth, cycle)) {
                    on_memory += waiting;
                } else {
                    on_unit += waiting;
                }
                if !memory || memory_open {
                    next = next.min(s.free_at[unit].max(cycle + 1));
                }
            }
        }
        let cleans = self.memory.leaving.cleaning.is_pending() || !self.host.outbox.cleans().is_empty();
        let leaves = !self.host.outbox.persists().is_empty() && self.memory.port.network.has_room();
        if leaves || cleans && !self.lsu.blocked {
            next = next.min(self.lsu.free_at.max(cycle + 1));
        }
        if !self.lsu.blocked && !self.lsu.queue.is_empty() {
            next = next.min(self.lsu.next_at().max(cycle + 1));
        }
        self.core.accounts.asleep_on_unit = on_unit;
        self.core.accounts.asleep_on_memory = on_memory;
        next
    }

    #[cold]
    fn fail(&mut self, fault: ProgramFault, cx: &mut Ctx<'_, Msg>) {
        self.failed = true;
        cx.fail(Box::new(fault));
    }

    /// Takes the replies that are out of the ejection port.
    fn take_replies(&mut self, launches: &LaunchTable, cx: &mut Ctx<'_, Msg>) {
        while let Some(reply) = self.memory.port.network.ejected(cx) {
            self.reply(reply, launches, cx);
        }
    }
}

impl Receiver for Sm {
    type Inbox = SmMsg;

    fn receive(&mut self, message: SmMsg, cx: &mut Ctx<'_, Msg>) {
        if self.failed {
            return;
        }
        // The clock of every part comes first: notes and messages of this event bear its time, and the slots
        // up to it are accounted by what warps waited for before it.
        self.record.now = cx.now();
        self.host.outbox.at(self.record.now);
        let cycle = self.cycle_from(cx.now());
        self.core.accounts.advance(cycle);
        self.note_growth(cx.now());
        match message {
            SmMsg::Reply(reply) => {
                if let Some(reply) = self.memory.port.network.eject(reply, cx) {
                    self.with_launches(|sm, launches| sm.reply(reply, launches, cx));
                }
            }
            SmMsg::Credit(credit) => {
                self.memory.port.network.credit(credit);
                self.memory.port.network.pump(cx);
                // A credit may have made room in the miss queue, for want of which the load-store unit stood.
                self.lsu.blocked &= !self.memory.port.network.has_room();
            }
            SmMsg::Invalidate { line, bytes } => {
                self.memory.port.network.bytes_in += u64::from(bytes);
                self.memory.give_up(line);
            }
            SmMsg::Start { launch, at, l1_ways } => self.start(launch, at, l1_ways),
            SmMsg::Cta { cta, place, l1_ways, cluster } => {
                if let Err(fault) = self.start_cta((cta, place), l1_ways, cluster, cycle) {
                    self.failed = true;
                    cx.fail(Box::new(fault));
                    return;
                }
            }
            SmMsg::Peer(PeerMessage { from, message }) => {
                self.host.handler.message(from, message, &mut self.host.outbox);
                let durable = self.memory.take_durables(&mut self.host, &mut self.record);
                if durable && self.launches.is_some() {
                    self.with_launches(|sm, launches| sm.persisted(cycle, launches, cx));
                }
                if let Some(launches) = self.launches.as_deref().filter(|_| self.front_end.present) {
                    let (core, host) = (&mut self.core, &mut self.host);
                    self.engine.look_again();
                    // The handler may have made room: warps that waited for it may issue, and those that only
                    // it kept from retirement retire.
                    let mut draining = self.front_end.changed(cycle, launches, core, host, &mut self.record);
                    while draining != 0 {
                        let warp = draining.trailing_zeros() as usize;
                        draining &= draining - 1;
                        self.retire_if_drained(warp, cycle, cx);
                    }
                }
            }
            SmMsg::Remote(access) => queue_access(access, &mut self.lsu),
            SmMsg::RemoteAnswer(access) => {
                self.with_launches(|sm, launches| sm.remote_answered(access, cycle, launches, cx));
            }
            SmMsg::Copied(part) => serve_part(part, &mut self.core, &mut self.record, &self.w, cx),
            SmMsg::CopiedAnswer(part) => {
                self.with_launches(|sm, launches| sm.part_answered(part, cycle, launches, cx));
            }
            SmMsg::Cluster(word) => {
                self.with_launches(|sm, launches| {
                    let counted = &mut sm.lsu.remote.counted;
                    cluster_barrier::receive(word, &mut sm.core, counted, &moment!(sm, cycle, launches));
                });
            }
            SmMsg::Pair(message) => {
                self.with_launches(|sm, launches| sm.pair_word(*message, cycle, launches, cx));
            }
            SmMsg::Cancelled { copy, first } => {
                self.with_launches(|sm, launches| sm.cancelled(copy, first, cycle, launches, cx));
            }
            SmMsg::PrerequisitesOver { place, beside } => {
                self.with_launches(|sm, launches| {
                    let (core, memory) = (&mut sm.core, &mut sm.memory);
                    let m = &mut moment!(sm, cycle, launches);
                    sm.dependents.prerequisites_over((place, beside), core, memory, m);
                });
            }
            SmMsg::Grid(order) => {
                self.with_launches(|sm, launches| fence_path!(sm, cycle, launches).grid(order));
            }
        }
        // Last, so that all messages that the handler made during the event leave together.
        self.send_messages(cx);
        cx.wake_at(self.w.clock.cycles(u64::from(cycle)));
    }
}

impl Component<Msg> for Sm {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        deliver(self, message, cx);
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        if self.failed || self.launches.is_none() {
            return;
        }
        let now = cx.now();
        self.record.now = now;
        self.host.outbox.at(now);
        let cycle = self.cycle_from(now);
        self.core.accounts.advance(cycle);
        self.note_growth(now);
        self.with_launches(|sm, launches| {
            sm.take_replies(launches, cx);
            sm.memory.port.network.pump(cx);
            sm.memory.port.release_held(&mut sm.host, now, cx);
            sm.lsu.blocked &= !sm.memory.port.network.has_room();
            if sm.w.clock.cycles(u64::from(cycle)) == now {
                sm.tick(cycle, launches, cx);
                sm.sleep(cycle, cx);
            } else {
                cx.wake_at(sm.w.clock.cycles(u64::from(cycle)));
            }
        });
        self.send_messages(cx);
    }

    fn waits(&self, out: &mut Vec<durawarp_engine::Wait>) {
        let Some(launches) = &self.launches else { return };
        report::report_warps(&self.core, launches, &self.record, out);
        report::report_memory(&self.host, &self.memory, out);
    }

    fn save(&self, out: &mut StateWriter) {
        Stateful::save(self, out);
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), LoadFault> {
        Stateful::load(self, from)?;
        if let Some(launches) = &self.launches {
            self.lsu.find_instructions(launches, &self.core.slots);
        }
        Ok(())
    }

    fn digest(&self) -> u64 {
        let mut digest = StateDigest::default();
        for slot in self.core.slots.iter().filter(|slot| slot.wait != Wait::NoWarp) {
            digest.word(slot.wait.account() as u64);
            let launch = self.launches.as_ref().map(|launches| launches.of(slot));
            slot.warp.caught_up(launch).each_word(&mut |word| digest.word(word));
        }
        self.core.ctas.iter().filter(|cta| cta.left > 0).for_each(|cta| digest.bytes(&cta.shared));
        self.memory.l1.digest(&mut digest);
        digest.word(u64::from(self.record.launches));
        digest.value()
    }

    fn progress(&self) -> Progress {
        Progress { work: self.core.class_counts.iter().sum(), ..Progress::default() }
    }
}
