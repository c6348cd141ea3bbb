//! A streaming multiprocessor: warps, schedulers, execution units, load-store unit, L1D, shared memory.
//!
//! ```text
//!   CTAs ──> warp slots ─[scoreboard]─> ready masks ─[schedulers]─> issue ──> core / fp64 / sfu units
//!                 ▲                                                  └─────> LSU ──> L1D ──> miss queue ──> crossbar
//!                 └──────────── registers written, warps woken ◄──────────────────── replies ◄───────────────┘
//! ```
//! An instruction executes functionally when it issues; the scoreboard then keeps its results from being used before
//! their latency has passed. Load data goes to the registers when it comes. The SM wakes for a cycle only if something
//! can issue or move in it; while every warp waits it sleeps until the earliest timer or message.
//!
//! Source: AGPM Table IV, the rest `SM6_TITANX`; every number is a parameter of [`SmSpec`], [`LatencySpec`] and
//! [`IntervalSpec`]. Invariants: a warp issues at most `issue_width` instructions a cycle, to different units;
//! a register is read only when its scoreboard entry allows; a CTA ends when all its loads and stores are performed.
//! Not modelled: instruction fetch (every instruction hits), operand-collector bank conflicts, register-file ports. Over 500
//! lines by a few: its fields, and how it wakes.

mod by_kernel;
mod combine;
mod cta;
mod front_end;
mod gate;
mod issue;
mod lsu;
mod marker;
mod memory;
mod ordered;
mod parameters;
mod persist;
mod requests;
mod slots;
mod timeline;
mod wait;

use std::sync::Arc;

use crate::engine::{Clock, Component, Ctx, Port, Progress, StateDigest, Time, Timebase};
use crate::kernel::fault::{FaultKind, ProgramFault};
use crate::kernel::ir::Class;
use crate::kernel::launch::Launch;
use crate::persist::handler::{Outbox, Peer, SmHandler};
use crate::persist::journal::Notebook;
use crate::persist::regions::RegionReport;

use super::coalescer::LineAccess;
use super::crossbar::{CrossbarSpec, PortEnd};
use super::l1::{L1, L1Spec, L1Writes, Waiter};
use super::msg::{Atomics, LinePool, Msg, Persist};
use super::network::Network;
use super::on_dram::OnDram;
use super::persistence::PersistSpec;
use super::ports::{Endpoint, Ports};
use super::scheduler::{Scheduler, UNITS, Unit};
use super::shared_memory::SharedSpec;
use super::stalls::{LinkParts, PersistStalls};
use super::timers::Timers;

pub use parameters::{IntervalSpec, LatencySpec, SmCounters, SmSpec};
pub use timeline::SmTimeline;

use by_kernel::ByKernel;
use combine::Cleaning;
use cta::CtaSlot;
use gate::Gate;
use lsu::Lsu;
use ordered::PersistOrder;
use slots::{Accounts, WarpSlot};
use wait::{Account, Wait};

/// How an SM is wired and what it shares with its neighbours' specifications.
#[derive(Debug, Clone)]
pub struct SmWiring {
    /// Index of the SM: its name as a requester.
    pub index: u16,
    /// Core clock.
    pub clock: Clock,
    /// The machine's tick rate, for `%globaltimer`.
    pub timebase: Timebase,
    /// Bytes of a cache line.
    pub line_bytes: u32,
    /// Its ports, and the address mapping.
    pub ports: Ports,
    /// The crossbar's port at this end, as made for both directions.
    pub port: PortEnd,
    /// Where the local memory of this SM's threads lies, and bytes a thread.
    pub local: (u64, u32),
    /// What fences mean for persistency.
    pub persist: PersistSpec,
    /// Constant delays on the way to a slice.
    pub link: LinkParts,
}

/// The parameters of an SM and of what it contains.
#[derive(Debug, Clone)]
pub struct SmParameters {
    /// Warps, schedulers, resources.
    pub sm: SmSpec,
    /// Latencies.
    pub latency: LatencySpec,
    /// Initiation intervals.
    pub interval: IntervalSpec,
    /// Shared memory.
    pub shared: SharedSpec,
    /// L1 data cache.
    pub l1: L1Spec,
    /// Crossbar.
    pub crossbar: CrossbarSpec,
}

/// A streaming multiprocessor.
#[derive(Debug)]
pub struct Sm {
    p: SmParameters,
    w: SmWiring,
    latency: [u32; Class::ALL.len()],
    interval: [u32; Class::ALL.len()],
    launch: Option<Arc<Launch>>,
    slots: Vec<WarpSlot>,
    schedulers: Vec<Scheduler>,
    timers: Timers,
    accounts: Accounts,
    ctas: Vec<CtaSlot>,
    lsu: Lsu,
    l1: L1,
    /// Lines that leave a write-combining L1.
    cleaning: Cleaning,
    /// Of a combining L1 whose handler orders what leaves.
    books: Option<Box<PersistOrder>>,
    /// Fences and CTAs that wait for cleanings.
    releases: u32,
    /// Slices that have not acknowledged the kernel's marker.
    grid_left: u32,
    network: Network,
    line_pool: LinePool,
    #[allow(clippy::vec_box, reason = "boxes are what is recycled: they travel in messages")]
    spare_atomics: Vec<Box<Atomics>>,
    accesses: Vec<LineAccess>,
    /// Lines of one write-back instruction.
    lines: Vec<u64>,
    handler: Box<dyn SmHandler>,
    /// The handler wants to hear of accesses.
    watched: bool,
    /// The handler's fences order what they do not wait for.
    orders: bool,
    /// The handler wants to be asked about loads.
    steers: bool,
    /// The handler has a front-end buffer.
    paths: bool,
    /// Warps that wait for it; those that found it full; those that have exited and wait for their copies to arrive.
    path_waiting: u64,
    path_full: u64,
    /// The launch's checkpoint area: its first address, and that behind it.
    checkpoint_area: (u64, u64),
    path_draining: u64,
    /// What it keeps in order for the handler.
    gate: Option<Box<Gate>>,
    outbox: Outbox,
    journal: Option<Box<Notebook>>,
    timeline: Option<Box<SmTimeline>>,
    stalls: PersistStalls,
    /// Persistency operations on DRAM: the first of each kernel.
    on_dram: Vec<OnDram>,
    #[allow(clippy::vec_box, reason = "boxes are what is recycled: they travel in messages")]
    spare_persists: Vec<Box<Persist>>,
    /// Launches begun.
    launches: u32,
    /// Time of the event that is handled.
    now: Time,
    /// Empty; recycled from fill to fill.
    waiters: Vec<Waiter>,
    class_counts: [u64; Class::ALL.len()],
    counters: SmCounters,
    by_kernel: ByKernel,
    /// The scheme has the warp that issues now wait until its store is durable.
    store_waits: bool,
    /// The program failed here: nothing issues any more.
    failed: bool,
}

impl Sm {
    /// An idle SM that hosts a scheme's handler, and keeps a journal if asked to.
    pub fn new(p: SmParameters, w: SmWiring, mut handler: Box<dyn SmHandler>, journal: bool) -> Self {
        let l = &p.latency;
        let i = &p.interval;
        let latency = [
            l.int_cycles,
            l.int_mul_cycles,
            l.int_div_cycles,
            l.logic_cycles,
            l.compare_cycles,
            l.min_max_cycles,
            l.convert_cycles,
            l.fp32_cycles,
            l.fp32_div_cycles,
            l.fp64_cycles,
            l.fp64_div_cycles,
            l.sfu_cycles,
            l.shuffle_cycles,
            l.vote_cycles,
            l.const_cycles,
            1,
            l.control_cycles,
        ];
        let interval = [
            i.int_cycles,
            i.int_mul_cycles,
            i.int_div_cycles,
            i.logic_cycles,
            i.compare_cycles,
            i.min_max_cycles,
            i.convert_cycles,
            i.fp32_cycles,
            i.fp32_div_cycles,
            i.fp64_cycles,
            i.fp64_div_cycles,
            i.sfu_cycles,
            i.shuffle_cycles,
            i.vote_cycles,
            i.const_cycles,
            i.memory_cycles,
            i.control_cycles,
        ];
        Sm {
            latency,
            interval,
            launch: None,
            slots: (0..p.sm.warps).map(|slot| WarpSlot::new((slot % p.sm.schedulers) as u8)).collect(),
            schedulers: (0..p.sm.schedulers).map(|_| Scheduler::new(p.sm.policy)).collect(),
            timers: Timers::default(),
            accounts: Accounts::default(),
            ctas: (0..p.sm.ctas).map(|_| CtaSlot::default()).collect(),
            lsu: Lsu::new(p.sm.lsu_entries),
            l1: L1::new(&p.l1, w.line_bytes),
            cleaning: Cleaning::default(),
            books: (handler.orders_persists() && p.l1.writes == L1Writes::Combine).then(Box::default),
            orders: handler.orders_persists(),
            releases: 0,
            grid_left: 0,
            network: Network::new(&p.crossbar, w.ports, w.port.clone(), p.l1.miss_queue_entries),
            line_pool: LinePool::default(),
            spare_atomics: Vec::new(),
            accesses: Vec::new(),
            lines: Vec::new(),
            watched: handler.watches(),
            steers: handler.steers_loads(),
            paths: handler.front_end().is_some(),
            path_waiting: 0,
            path_full: 0,
            checkpoint_area: (0, 0),
            path_draining: 0,
            gate: handler.gate().map(|spec| Box::new(Gate::new(spec, p.sm.ctas as usize))),
            handler,
            outbox: Outbox::of_host(journal),
            journal: journal.then(Box::default),
            timeline: None,
            stalls: PersistStalls::default(),
            on_dram: Vec::new(),
            spare_persists: Vec::new(),
            launches: 0,
            now: 0,
            waiters: Vec::new(),
            class_counts: [0; Class::ALL.len()],
            counters: SmCounters::default(),
            by_kernel: ByKernel::default(),
            store_waits: false,
            failed: false,
            p,
            w,
        }
    }

    /// What its handler counted.
    pub fn tally(&self, add: &mut dyn FnMut(&'static str, u64)) {
        self.handler.tally(add);
    }

    /// What its handler saw of recoverable regions.
    pub fn region_report(&self) -> Option<RegionReport> {
        self.handler.region_report()
    }

    /// What it counted.
    pub fn counters(&self) -> SmCounters {
        let n = &self.class_counts;
        let of = |class: Class| n[class as usize];
        let a = &self.accounts;
        SmCounters {
            warp_instructions: n.iter().sum(),
            int_instructions: of(Class::Int),
            int_mul_instructions: of(Class::IntMul),
            int_div_instructions: of(Class::IntDiv),
            logic_instructions: of(Class::Logic),
            compare_instructions: of(Class::Compare),
            min_max_instructions: of(Class::MinMax),
            convert_instructions: of(Class::Convert),
            fp32_instructions: of(Class::Fp32),
            fp32_div_instructions: of(Class::Fp32Div),
            fp64_instructions: of(Class::Fp64),
            fp64_div_instructions: of(Class::Fp64Div),
            sfu_instructions: of(Class::Sfu),
            shuffle_instructions: of(Class::Shuffle),
            vote_instructions: of(Class::Vote),
            const_instructions: of(Class::Const),
            memory_instructions: of(Class::Mem),
            control_instructions: of(Class::Control),
            bytes_out: self.network.bytes_out,
            bytes_in: self.network.bytes_in,
            active_cycles: a.active_cycles,
            slots_resident: a.resident,
            slots_issued: a.issued,
            slots_not_selected: a.not_selected,
            slots_unit_busy: a.unit_busy,
            slots_memory_full: a.memory_full,
            slots_execution: a.total[Account::Execution as usize],
            slots_memory: a.total[Account::Memory as usize],
            slots_barrier: a.total[Account::Barrier as usize],
            slots_fence: a.total[Account::Fence as usize],
            slots_persist: a.total[Account::Persist as usize],
            slots_draining: a.total[Account::Draining as usize],
            ..self.counters
        }
    }

    /// The same by kernel, in the order of first launches.
    pub fn counters_by_kernel(&self) -> Vec<(String, SmCounters)> {
        self.by_kernel.totals(&self.counters())
    }

    /// Port to the command processor.
    fn dispatch_port(&self) -> Port {
        self.w.ports.to(Endpoint::CommandProcessor)
    }

    /// Sends what the handler has written.
    fn send_messages(&mut self, cx: &mut Ctx<'_, Msg>) {
        if self.outbox.is_empty() {
            return;
        }
        self.note_regions();
        for (to, message, delay) in self.outbox.take_timed() {
            cx.send(self.w.ports.to_peer(to), Msg::Scheme { from: Peer::Sm(self.w.index), message }, delay);
        }
    }

    /// The first cycle at or after `now`.
    fn cycle_from(&self, now: Time) -> u32 {
        self.w.clock.cycle_at_or_after(now) as u32
    }

    fn enter(&mut self, warp: usize, wait: Wait, cycle: u32) {
        let slot = &mut self.slots[warp];
        let issued = slot.wait != Wait::NoWarp && slot.issued_at == self.accounts.cycle();
        self.accounts.moved(slot.wait.account(), wait.account(), issued);
        if wait == Wait::NoWarp {
            slot.issued_at = u32::MAX;
        }
        slot.wait = wait;
        slot.since = cycle;
    }

    /// Finds out what a warp's next instruction waits for; the earliest it can issue is `from`.
    fn settle(&mut self, warp: usize, from: u32, launch: &Launch) {
        let kernel = &*launch.kernel;
        let slot = &mut self.slots[warp];
        let pc = slot.warp.pc() as usize;
        slot.class = kernel.class[pc];
        slot.unit = Unit::of(slot.class);
        let mut at = slot.not_before;
        for &register in &kernel.hazards[pc].check {
            at = at.max(slot.ready_at[usize::from(register)]);
        }
        let wait = if at == slots::PENDING {
            Wait::Register
        } else if at <= from {
            self.schedulers[usize::from(slot.scheduler)].set_ready(slot.rank, slot.unit);
            Wait::Issue
        } else {
            slot.until = at;
            self.timers.insert(from, at, warp as u8);
            Wait::Latency
        };
        self.enter(warp, wait, from);
    }

    /// One core cycle.
    fn tick(&mut self, cycle: u32, launch: &Launch, cx: &mut Ctx<'_, Msg>) {
        self.accounts.tick(cycle);
        let mut due = self.timers.due(cycle);
        while due != 0 {
            let warp = due.trailing_zeros() as usize;
            due &= due - 1;
            if self.slots[warp].until > cycle {
                let until = self.slots[warp].until;
                self.timers.insert(cycle, until, warp as u8);
            } else {
                // Nothing but time could hold it back: the registers it needs are not written by anybody else.
                let slot = &self.slots[warp];
                self.schedulers[usize::from(slot.scheduler)].set_ready(slot.rank, slot.unit);
                self.enter(warp, Wait::Issue, cycle);
            }
        }
        self.step_lsu(cycle, launch, cx);
        for scheduler in 0..self.schedulers.len() {
            let s = &self.schedulers[scheduler];
            let waiting = (0..UNITS).fold(0, |all, unit| all | s.ready(unit));
            if waiting == 0 {
                continue;
            }
            let candidates = s.candidates(cycle, self.lsu.has_room());
            let kept_back = waiting & !candidates;
            let memory = (kept_back & s.ready(Unit::Memory as usize)).count_ones();
            self.accounts.memory_full += u64::from(memory);
            self.accounts.unit_busy += u64::from(kept_back.count_ones() - memory);
            if let Some((warp, others)) = self.pick(scheduler, candidates, cycle, launch) {
                self.accounts.not_selected += u64::from(others);
                self.issue(warp, cycle, launch, cx);
                if self.failed {
                    return;
                }
            }
        }
    }

    /// Picks a warp among a scheduler's candidates, and how many others there are; those that the front-end buffer holds are
    /// set aside on the way.
    #[inline]
    fn pick(&mut self, scheduler: usize, mut candidates: u64, cycle: u32, launch: &Launch) -> Option<(usize, u32)> {
        while candidates != 0 {
            let warp = usize::from(self.schedulers[scheduler].pick(candidates));
            if !self.paths || !self.held_by_path(warp, cycle, launch) {
                return Some((warp, candidates.count_ones() - 1));
            }
            candidates &= !(1 << self.slots[warp].rank);
        }
        None
    }

    /// Asks to be woken for the next cycle in which something can happen.
    fn sleep(&mut self, cycle: u32, cx: &mut Ctx<'_, Msg>) {
        let mut next = self.timers.next_after(cycle).unwrap_or(u32::MAX);
        let (mut on_unit, mut on_memory) = (0, 0);
        let memory_open = self.lsu.has_room();
        for s in &self.schedulers {
            for unit in 0..UNITS {
                let waiting = s.ready(unit).count_ones();
                if waiting == 0 {
                } else if unit == Unit::Memory as usize && !memory_open {
                    on_memory += waiting;
                } else {
                    on_unit += waiting;
                    next = next.min(s.free_at[unit].max(cycle + 1));
                }
            }
        }
        let cleans = self.cleaning.is_pending() || !self.outbox.cleans().is_empty();
        let leaves = !self.outbox.persists().is_empty() && self.network.has_room();
        if leaves || (cleans || !self.lsu.queue.is_empty()) && !self.lsu.blocked {
            next = next.min(self.lsu.free_at.max(cycle + 1));
        }
        self.accounts.asleep_on_unit = on_unit;
        self.accounts.asleep_on_memory = on_memory;
        if next != u32::MAX {
            cx.wake_at(self.w.clock.cycles(u64::from(next)));
        }
    }

    fn fail(&mut self, fault: ProgramFault, cx: &mut Ctx<'_, Msg>) {
        self.failed = true;
        cx.fail(Box::new(fault));
    }

    /// A fault of one lane of a warp at its current instruction.
    fn fault(&self, warp: usize, lane: u32, kind: FaultKind, launch: &Launch) -> ProgramFault {
        let warp = &self.slots[warp].warp;
        let (cta, thread) = warp.thread_of(lane);
        ProgramFault {
            kind,
            kernel: launch.kernel.name.clone(),
            file: launch.kernel.file.clone(),
            pos: launch.kernel.pos[warp.pc() as usize],
            cta: launch.cta_index(cta),
            thread: launch.thread_index(thread),
        }
    }

    /// Takes the replies that are out of the ejection port.
    fn receive(&mut self, launch: &Launch, cx: &mut Ctx<'_, Msg>) {
        while let Some(reply) = self.network.ejected(cx) {
            self.reply(reply, launch, cx);
        }
    }
}

impl Component<Msg> for Sm {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        if self.failed {
            return;
        }
        self.now = cx.now();
        self.outbox.at(self.now);
        let cycle = self.cycle_from(cx.now());
        self.accounts.advance(cycle);
        match message {
            Msg::Reply(reply) => {
                let Some(launch) = self.launch.take() else { unreachable!("a reply without a launch") };
                if let Some(reply) = self.network.eject(reply, cx) {
                    self.reply(reply, &launch, cx);
                }
                self.launch = Some(launch);
            }
            Msg::Credit { slice, packets } => {
                self.network.credit(slice, packets);
                self.network.pump(cx);
                self.lsu.blocked &= !self.network.has_room();
            }
            Msg::Invalidate { line } => self.give_up(line),
            Msg::Start(launch) => self.start(launch),
            Msg::Cta(cta) => self.start_cta(cta, cycle),
            Msg::Scheme { from, message } => {
                self.handler.message(from, message, &mut self.outbox);
                if self.paths {
                    self.path_changed(cycle, cx);
                }
            }
            Msg::Grid(step) => {
                let Some(launch) = self.launch.take() else { unreachable!("a kernel's barrier without a launch") };
                self.grid(step, cycle, &launch);
                self.launch = Some(launch);
            }
            other => panic!("an SM received {other:?}"),
        }
        self.send_messages(cx);
        cx.wake_at(self.w.clock.cycles(u64::from(cycle)));
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        if self.failed {
            return;
        }
        let now = cx.now();
        self.now = now;
        self.outbox.at(now);
        let cycle = self.cycle_from(now);
        let Some(launch) = self.launch.take() else { return };
        self.accounts.advance(cycle);
        self.receive(&launch, cx);
        self.network.pump(cx);
        self.release_held(cx);
        self.lsu.blocked &= !self.network.has_room();
        if self.w.clock.cycles(u64::from(cycle)) == now {
            self.tick(cycle, &launch, cx);
            self.sleep(cycle, cx);
        } else {
            cx.wake_at(self.w.clock.cycles(u64::from(cycle)));
        }
        self.launch = Some(launch);
        self.send_messages(cx);
    }

    fn waits(&self, out: &mut Vec<crate::engine::Wait>) {
        self.report_waits(out);
    }

    fn digest(&self) -> u64 {
        let mut digest = StateDigest::default();
        for slot in self.slots.iter().filter(|slot| slot.wait != Wait::NoWarp) {
            digest.word(slot.wait.account() as u64);
            slot.warp.each_word(&mut |word| digest.word(word));
        }
        self.ctas.iter().filter(|cta| cta.left > 0).for_each(|cta| digest.bytes(&cta.shared));
        self.l1.digest(&mut digest);
        digest.word(u64::from(self.launches));
        digest.value()
    }

    fn progress(&self) -> Progress {
        Progress { work: self.class_counts.iter().sum(), ..Progress::default() }
    }
}
