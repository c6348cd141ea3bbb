//! The command processor: runs the host program's steps on the device, dispatches CTAs, moves host data.
//!
//! ```text
//!   host_program ─ step ─> Launch:     in_flight, cta_dispatch ──CTAs──> SMs ──ended──> persistency
//!        ▲                             kernel_barrier <──reached, drained── SMs
//!        │                 Transfer:   dma ──requests──> crossbar ──replies──> dma
//!        │                 Look:       look ──> slices ──lines──> look
//!        └── next step when the last is complete
//! ```
//! Each part owns its state; this file owns which step is under way, and the ports. Launches of one stream
//! run one after another: the next begins when every CTA of the last has ended and all its stores are
//! performed.
//!
//! Launches of several streams overlap (`in_flight`): the program is read ahead up to a step that is no
//! launch, which begins when all launches before it are over. So do launches of one stream of which the later
//! is programmatic, from where the earlier one lets it begin. Only what the host of a trace copied in goes to
//! the L2 while launches run, at once and in list order, as Accel-Sim has it.
//!
//! Source: GPGPU-Sim's CTA issue (one CTA a core a cycle); launch latency `SM6_TITANX`; streams: Accel-Sim's
//! `accel-sim.cc`. Invariant: besides launches at most one step is under way. Not modelled: preemption,
//! copies of the host that overlap with launches.

mod admission;
mod cta_dispatch;
mod dma;
mod host_program;
mod in_flight;
mod kernel_barrier;
mod look;
mod persistency;

use std::sync::Arc;

use durawarp_base::counters;
use durawarp_base::spec;
use durawarp_base::stats::Histogram;
use durawarp_base::timeline::{Label, Recorder};
use durawarp_checkpoint::{LoadFault, StateReader, StateWriter, state, state_methods, value};
use durawarp_engine::{Clock, Component, Ctx, Progress, StateDigest, Time, Wait};
use durawarp_kernel::host::{HostAction, HostProgram, SampleStep};
use durawarp_kernel::launch::{Launch, LiveLaunches};
use durawarp_persist::handler::HostHandler;
use durawarp_persist::journal::{FactKind, Notebook};
use durawarp_persist::vocab::FenceKind;

use super::carveout::Carveout;
use super::contents::Contents;
use super::crossbar::{CrossbarSpec, PortEnd};
use super::kernel_facts::kernel_facts;
use super::l1::L1Spec;
use super::look::{Lines, Look};
use super::msg::{
    CommandProcessorMsg, GridOrder, GridReport, Msg, Payload, Receiver, Reply, Request, RequestKind, SliceMsg, SmMsg,
    deliver,
};
use super::network::Network;
use super::occupancy::Occupancy;
use super::ports::Ports;
use super::shared_memory::SharedSpec;
use super::sm::SmSpec;
use admission::Admission;
use cta_dispatch::{CtaDispatch, CtaSequence, Pace};
use dma::Dma;
use durawarp_base::spec::Nanos;
pub use host_program::HostFault;
use host_program::HostThread;
use in_flight::{InFlight, QueuedLaunch};
use kernel_barrier::Release;
use look::HostLook;
use persistency::HostPersistency;

spec! {
    /// Parameters of the command processor.
    pub struct CommandProcessorSpec {
        /// From the host's launch to the first CTA's departure.
        launch_ns: Nanos,
        /// Between the command processor and an SM, one way.
        command_ns: Nanos,
        /// Core cycles from one CTA's departure to the next.
        cta_interval_cycles: u32 where 1..=10000,
        /// Line accesses of a host read, write or copy that may be under way at once.
        host_requests: u32 where 1..=1024,
        /// Launches of different streams that may be in flight at once, waiting or running.
        concurrent_launches: u32 where 1..=128,
    }
}

counters! {
    /// What the command processor counted.
    pub struct CommandProcessorCounters {
        /// CTAs that have ended (CTAs)
        ctas,
        /// Line accesses that host transfers read (requests)
        host_reads,
        /// Line accesses that host transfers wrote (requests)
        host_writes,
        /// Bytes sent into the crossbar, headers included (bytes)
        bytes_out,
        /// Bytes received from the crossbar, headers included (bytes)
        bytes_in,
    }
}
/// One launch as it ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchRecord {
    /// Kernel name.
    pub kernel: String,
    /// Its stream.
    pub stream: u64,
    /// It may begin before the launch before it in its stream is over.
    pub programmatic: bool,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// When the host asked for it and its stream was free, in ticks, without what the host did outside
    /// simulated time just before; the last tick there is for one that has not begun.
    pub start: Time,
    /// When its last store was performed and the command processor knew, in ticks.
    pub end: Time,
    /// CTAs an SM could hold, and why not more.
    pub occupancy: Occupancy,
    /// How it splits memory that L1 and shared memory have together.
    pub carveout: Option<Carveout>,
    /// Of a launch that runs in part: when each CTA had ended, in order, in ticks.
    pub cta_ends: Vec<Time>,
}

value!(record LaunchRecord { kernel, stream, programmatic, grid, block, start, end, occupancy, carveout, cta_ends });

/// What is under way besides launches.
#[derive(Debug)]
enum Step {
    /// Between steps, or launches run.
    Idle,
    /// The host looks at memory outside simulated time.
    Looking(HostLook),
    /// Lines are moving.
    Transfer,
    /// The program's next step is not known yet.
    Paused,
    /// The host program is over.
    Over,
}

value!(choice Step { Idle, Looking(look), Transfer, Paused, Over });

/// The command processor.
#[derive(Debug)]
pub struct CommandProcessor {
    /// What an SM holds, by which launches are admitted.
    sm: SmSpec,
    shared: SharedSpec,
    l1: L1Spec,
    ports: Ports,
    network: Network,
    host: HostThread,
    step: Step,
    flight: InFlight,
    ctas: CtaDispatch,
    dma: Dma,
    persistency: HostPersistency,
    timeline: Option<Box<Recorder>>,
    /// By their numbers in the program.
    records: Vec<LaunchRecord>,
    /// CTAs of all launches so far, and those of them that have ended.
    ctas_known: u64,
    ctas_ended: u64,
}

state!(CommandProcessor {
    parts: network, host, dma, persistency, ctas; saved: step, flight, records, ctas_known, ctas_ended; kept: sm,
    shared, l1, ports, timeline
});

/// How the command processor is wired.
#[derive(Debug)]
pub struct CommandProcessorWiring {
    /// Core clock.
    pub clock: Clock,
    /// `launch_ns` in ticks.
    pub launch_ticks: Time,
    /// `command_ns` in ticks.
    pub command_ticks: Time,
    pub line_bytes: u32,
    pub ports: Ports,
    /// The crossbar, and its port at this end.
    pub crossbar: (CrossbarSpec, PortEnd),
}

impl CommandProcessor {
    /// A command processor that will run `host` when first woken.
    pub fn new(
        spec: CommandProcessorSpec,
        (sm, shared, l1): (SmSpec, SharedSpec, L1Spec),
        w: CommandProcessorWiring,
        host: Box<dyn HostProgram>,
        handler: Box<dyn HostHandler>,
    ) -> Self {
        let interval = w.clock.cycles(u64::from(spec.cta_interval_cycles));
        let pace = Pace { clock: w.clock, launch_ticks: w.launch_ticks, interval, command_ticks: w.command_ticks };
        CommandProcessor {
            ctas: CtaDispatch::new(pace, sm.count, sm.gpcs),
            sm,
            shared,
            l1,
            ports: w.ports,
            network: Network::new(&w.crossbar.0, w.ports, w.crossbar.1, spec.host_requests),
            host: HostThread::new(host),
            step: Step::Idle,
            flight: InFlight::new(1),
            dma: Dma::new(w.ports.requester(), w.line_bytes, spec.host_requests),
            persistency: HostPersistency::new(handler),
            timeline: None,
            records: Vec::new(),
            ctas_known: 0,
            ctas_ended: 0,
        }
    }

    /// Launches of the host program that still run.
    pub fn live_launches(&self) -> LiveLaunches {
        self.host.live()
    }

    /// Writes how far the host program is.
    pub fn save_program(&self, out: &mut StateWriter) {
        self.host.save_program(out);
    }

    /// Takes a host program that has not begun as far as a saved one; its launches are to be known to the
    /// reader of components.
    ///
    /// # Errors
    /// It has begun, or is another program.
    pub fn load_program(&mut self, from: &mut StateReader<'_>) -> Result<LiveLaunches, LoadFault> {
        self.host.load_program(from)
    }

    /// Launches that may overlap, where the program has any, run at once, up to `most` of them.
    pub fn overlap(&mut self, most: u32) {
        self.flight = InFlight::new(if self.host.overlaps() { most } else { 1 });
    }

    /// Launches may run at once.
    pub fn overlaps(&self) -> bool {
        self.flight.overlaps()
    }

    /// The most launches that ran at once.
    pub fn most_at_once(&self) -> u32 {
        self.flight.peak()
    }

    /// Halts the simulation when the host program is over.
    pub fn halt_at_end(&mut self) {
        self.host.halts = true;
    }

    /// Halts the simulation whenever a launch is over.
    pub fn halt_after_launches(&mut self) {
        self.host.halts_after_launches = true;
    }

    /// Keeps a journal from now on.
    pub fn keep_journal(&mut self) {
        self.persistency.keep_journal();
    }

    /// The journal, where it keeps one.
    pub fn journal(&self) -> Option<&Notebook> {
        self.persistency.journal()
    }

    /// Keeps a timeline from now on, of at most `spans` spans.
    pub fn keep_timeline(&mut self, spans: usize) {
        self.timeline = Some(Box::new(Recorder::new(spans)));
    }

    /// The timeline, where it keeps one: persist barriers of kernels, until the SMs are told to go on.
    pub fn timeline(&self) -> Option<&Recorder> {
        self.timeline.as_deref()
    }

    /// How long kernels waited for the write-back of the L2, in ticks.
    pub fn boundaries(&self) -> &Histogram {
        self.persistency.boundaries()
    }

    /// Launches in the order of the program; one that is not over has `end` 0.
    pub fn launches(&self) -> &[LaunchRecord] {
        &self.records
    }

    /// What it counted.
    pub fn counters(&self) -> CommandProcessorCounters {
        let (host_reads, host_writes) = self.dma.accesses();
        CommandProcessorCounters {
            ctas: self.ctas_ended,
            host_reads,
            host_writes,
            bytes_out: self.network.bytes_out,
            bytes_in: self.network.bytes_in,
        }
    }

    /// CTAs of launches that run which no SM has had room for.
    pub fn unstarted_ctas(&self) -> u64 {
        self.flight.running().iter().map(|running| running.grid.ctas() - running.grid.sent_and_done().0).sum()
    }

    /// When the host program's last step was complete, in ticks.
    pub fn ended(&self) -> Option<Time> {
        self.host.ended()
    }

    /// Takes steps until one needs time.
    fn advance(&mut self, cx: &mut Ctx<'_, Msg>) {
        while matches!(self.step, Step::Idle) {
            // Reads ahead, up to a step that is no launch.
            if self.flight.has_room() && !self.host.holds() {
                match self.host.next() {
                    Ok(HostAction::Launch(launch)) => {
                        let ctas = CtaSequence::whole(launch.ctas());
                        self.read(launch, ctas);
                    }
                    Ok(HostAction::Sample(SampleStep::Part(launch, ranges))) => {
                        self.read(launch, CtaSequence::part(ranges));
                    }
                    Ok(action) => self.host.hold(action),
                    Err(fault) => return self.fail(fault, cx),
                }
                if self.flight.has_room() && !self.host.holds() {
                    continue;
                }
            }
            // A step that takes no time (an empty transfer) leaves the processor idle: the next follows at
            // once. What a trace copied comes before the launches that were read with it.
            let copied = self.host.held().is_some_and(|held| matches!(held, HostAction::Warm(_)));
            let at_once = copied && self.flight.is_traced();
            if !at_once && !self.start_ready(cx) {
                return;
            }
            if !at_once && !self.flight.is_empty() {
                break;
            }
            if let Some(action) = self.host.take_held() {
                self.perform(action, cx);
                self.transfer(cx);
            }
        }
        if matches!(self.step, Step::Idle) {
            self.host.drop_hidden();
        }
    }

    /// Does a step that is no launch.
    fn perform(&mut self, action: HostAction, cx: &mut Ctx<'_, Msg>) {
        match action {
            HostAction::Launch(_) | HostAction::Sample(SampleStep::Part(..)) => unreachable!("a launch is not held"),
            HostAction::Sample(SampleStep::Replace(memory)) => {
                let contents = Contents::new(*self.ports.map(), memory.into_ranges());
                self.look(HostLook::replace(Arc::new(contents), self.ports.map().slices(), cx.now()), cx);
            }
            // The sampler wakes this component when it goes on. Until then it asks for nothing.
            HostAction::Sample(SampleStep::Pause) => {
                self.host.pause(cx.now());
                self.step = Step::Paused;
                cx.halt();
            }
            HostAction::Read { address, bytes } => {
                self.dma.read(address, bytes);
                self.step = Step::Transfer;
            }
            HostAction::Write { address, data } => {
                self.dma.write(address, data);
                self.step = Step::Transfer;
            }
            HostAction::Copy { from, to, bytes } => {
                self.dma.copy(from, to, bytes);
                self.step = Step::Transfer;
            }
            HostAction::Reduce(reduction) => {
                self.look(HostLook::reduce(reduction, self.ports.map().slices(), cx.now()), cx);
            }
            HostAction::Warm(ranges) => {
                self.look(HostLook::warm(ranges, self.ports.map().slices(), cx.now()), cx);
            }
            HostAction::Done => {
                self.step = Step::Over;
                self.host.end(cx.now());
                if self.host.halts {
                    cx.halt();
                }
            }
        }
    }

    /// The host program cannot go on.
    fn fail(&mut self, fault: HostFault, cx: &mut Ctx<'_, Msg>) {
        self.step = Step::Over;
        cx.fail(Box::new(fault));
    }

    /// A launch has been read.
    fn read(&mut self, launch: Arc<Launch>, sequence: CtaSequence) {
        self.records.push(LaunchRecord {
            kernel: launch.kernel.name.clone(),
            stream: launch.stream,
            programmatic: launch.programmatic,
            grid: launch.grid,
            block: launch.block,
            start: Time::MAX,
            end: 0,
            occupancy: Occupancy { ctas: 0, limit: String::new() },
            carveout: None,
            cta_ends: Vec::new(),
        });
        let number = self.records.len() as u32 - 1;
        self.flight.read(QueuedLaunch { launch, number, sequence });
    }

    /// Starts every launch that may begin. False when one cannot run at all.
    fn start_ready(&mut self, cx: &mut Ctx<'_, Msg>) -> bool {
        let Some(first) = self.flight.take_ready() else { return true };
        // What a look outside simulated time took is given back here, to all that it held up.
        let excused = self.host.give_back(self.ctas.pace().launch_ticks);
        let mut ready = Some(first);
        while let Some(waiting) = ready {
            if let Err(fault) = self.start(waiting, excused, cx) {
                self.fail(fault, cx);
                return false;
            }
            ready = self.flight.take_ready();
        }
        self.dispatch(cx);
        true
    }

    /// Starts a launch.
    fn start(&mut self, waiting: QueuedLaunch, excused: Time, cx: &mut Ctx<'_, Msg>) -> Result<(), HostFault> {
        let launch = waiting.launch.clone();
        let fits = Occupancy::with_demand(&launch, &self.sm, &self.shared, &self.l1);
        let (occupancy, mut demand) = fits.map_err(HostFault)?;
        let admission = Admission { launch: &launch, occupancy: &occupancy, ctas: &self.ctas };
        admission.admit(self.sm.count, self.flight.running().is_empty()).map_err(HostFault)?;
        let carveout = Carveout::of(&launch, occupancy.ctas, &self.shared, &self.l1);
        if let Some(carveout) = carveout {
            demand = demand.with_split(carveout.shared_kb, carveout.l1_ways(&self.l1));
        }
        let launch_ticks = self.ctas.pace().launch_ticks - excused;
        let facts = kernel_facts(&launch, (self.flight.free_place(), waiting.number), self.sm.warp_size);
        self.persistency.kernel_start(&facts, &self.ports, cx);
        // Where another launch runs, SMs split their memory when they get CTAs.
        let alone = self.flight.running().is_empty();
        let l1_ways = demand.l1_ways().filter(|_| alone);
        if alone {
            self.ctas.begin_alone(&demand);
        }
        let record = &mut self.records[waiting.number as usize];
        record.start = cx.now() - excused;
        record.occupancy = occupancy;
        record.carveout = carveout;
        self.persistency.note(FactKind::KernelStarted, waiting.number, cx.now());
        self.ctas_known += waiting.sequence.ctas();
        let at = self.flight.begin(waiting, demand, cx.now() + launch_ticks);
        for sm in self.ports.to_sms() {
            sm.send(SmMsg::Start { launch: launch.clone(), at, l1_ways }, launch_ticks, cx);
        }
        Ok(())
    }

    /// Sends CTAs to SMs with room until there is no room or no CTA.
    fn dispatch(&mut self, cx: &mut Ctx<'_, Msg>) {
        for running in self.flight.running_mut() {
            while let Some(departure) = self.ctas.depart(&mut running.grid, cx.now()) {
                let l1_ways = running.grid.l1_ways().filter(|_| departure.splits);
                let (cta, place, cluster) = (departure.cta, running.place, running.grid.last_cluster());
                let message = SmMsg::Cta { cta, place, l1_ways, cluster };
                self.ports.to_sm(departure.sm).send(message, departure.at - cx.now(), cx);
            }
        }
    }

    /// A CTA of an SM has ended; the kernel ends with its last.
    fn cta_done(&mut self, (sm, place): (u16, u8), let_go: bool, cx: &mut Ctx<'_, Msg>) {
        let running = self.flight.at(place);
        self.ctas.end_cta(&mut running.grid, sm);
        running.let_go += u64::from(!let_go);
        self.ctas_ended += 1;
        if running.grid.is_part() {
            self.records[running.number as usize].cta_ends.push(cx.now());
        }
        let (is_over, lets_go) = (running.grid.is_over(), running.lets_go());
        // A launch is over when those before it in its stream are.
        if !is_over || self.flight.depends(place) {
            self.dispatch(cx);
            self.check_barrier(place, cx);
            if lets_go && self.flight.waiting() > 0 {
                self.advance(cx);
            }
            return;
        }
        if self.persistency.kernel_end(place, &self.ports, cx) {
            return self.end_launches(place, cx);
        }
        self.write_back_l2(cx);
        if self.flight.overlaps() {
            self.dispatch(cx);
            self.advance(cx);
        }
    }

    /// Asks every slice to write back its dirty lines of persistent memory, where a launch that has ended is
    /// the next to wait for that. The launches before it in its stream are over.
    fn write_back_l2(&mut self, cx: &mut Ctx<'_, Msg>) {
        let (map, from) = (self.ports.map(), self.ports.requester());
        if !self.persistency.begins_write_back(map.slices()) {
            return;
        }
        for slice in 0..map.slices() {
            let (line, kind, payload) = (map.some_line_of(slice), RequestKind::WriteBackAll, Payload::None);
            self.network.push(Request { line, tag: 0, from, kind, sectors: 0, payload }, cx);
        }
    }

    /// A launch is over, and with it what depended on it and has nothing left to do.
    fn end_launches(&mut self, place: u8, cx: &mut Ctx<'_, Msg>) {
        let mut over = Some(place);
        while let Some(place) = over {
            let number = self.flight.at(place).number;
            self.records[number as usize].end = cx.now();
            self.persistency.note(FactKind::KernelEnded, number, cx.now());
            let next = self.flight.end(place);
            over = next.filter(|next| self.flight.at(*next).grid.is_over());
            // Its warps may pass `griddepcontrol.wait`. The launch itself may still be on its way.
            if let Some(place) = next.filter(|_| over.is_none()) {
                let after = self.flight.at(place).grid.first().saturating_sub(cx.now()) + 1;
                let (number, beside) = (self.flight.at(place).number, self.flight.places());
                self.persistency.note(FactKind::PrerequisitesOver, number, cx.now());
                self.ports.to_sms().for_each(|sm| sm.send(SmMsg::PrerequisitesOver { place, beside }, after, cx));
            }
            over = over.filter(|place| self.persistency.kernel_end(*place, &self.ports, cx));
        }
        self.write_back_l2(cx);
        if self.host.halts_after_launches {
            cx.halt();
        }
        // What comes next has not waited for a look since before this instant.
        if let Step::Looking(look) = &mut self.step {
            look.begin_anew(cx.now());
        }
        // CTAs of launches that run may have room now that the last of this one has left.
        self.dispatch(cx);
        self.advance(cx);
    }

    /// A CTA on an SM asks for a cluster that has not begun: it gets the next, which does not begin any more.
    fn cancel(&mut self, (sm, place, copy): (u16, u8, u16), cx: &mut Ctx<'_, Msg>) {
        let running = self.flight.at(place);
        let first = running.grid.take_cluster();
        if first.is_some() {
            let ctas = u64::from(running.grid.cluster_ctas());
            running.let_go += ctas;
            self.ctas_known -= ctas;
        }
        self.ports.to_sm(sm).send(SmMsg::Cancelled { copy, first }, 0, cx);
    }

    /// A CTA lets the launch begin that depends on its own.
    fn let_go(&mut self, place: u8, cx: &mut Ctx<'_, Msg>) {
        self.flight.at(place).let_go += 1;
        if self.flight.waiting() > 0 {
            self.advance(cx);
        }
    }

    /// An SM has a word on a persist barrier of the kernel.
    fn barrier(&mut self, report: GridReport, cx: &mut Ctx<'_, Msg>) {
        // A kernel with such a barrier runs alone.
        let [running] = self.flight.running_mut() else { panic!("{report:?} of no launch, or one of several") };
        let place = running.place;
        match report {
            GridReport::Reached { marks, since, .. } => {
                running.barrier.reach(marks, since);
                self.check_barrier(place, cx);
            }
            GridReport::Drained => {
                let release = running.barrier.drained();
                self.release(release, cx);
            }
        }
    }

    /// Goes on with the barrier when every CTA that has not ended is there: CTAs arrive, and CTAs end.
    fn check_barrier(&mut self, place: u8, cx: &mut Ctx<'_, Msg>) {
        let running = self.flight.at(place);
        let release = running.barrier.complete(running.grid.last_resident(), self.sm.count);
        self.release(release, cx);
    }

    /// Tells every SM how the barrier goes on.
    fn release(&mut self, release: Option<Release>, cx: &mut Ctx<'_, Msg>) {
        let order = match release {
            None => return,
            Some(Release::Drain) => GridOrder::Drain,
            Some(Release::Open { since }) => {
                let launch = self.flight.running().first().map_or(0, |running| running.number);
                if let (Some(timeline), Some(since)) = (&mut self.timeline, since) {
                    let label = Label::Barrier { at: FenceKind::BarrierKernel.name(), launch, cta: None };
                    timeline.whole(0, since, cx.now(), label);
                }
                GridOrder::Open
            }
        };
        self.ports.to_sms().for_each(|sm| sm.send(SmMsg::Grid(order), 0, cx));
    }

    /// Asks every slice at once, outside simulated time.
    fn look(&mut self, (host, look): (HostLook, Look), cx: &mut Ctx<'_, Msg>) {
        let look = Arc::new(look);
        self.ports.to_slices().for_each(|slice| slice.send(SliceMsg::Look(look.clone()), 0, cx));
        self.step = Step::Looking(host);
    }

    /// A slice has answered; the last answer ends the step.
    fn looked(&mut self, lines: &Lines, cx: &mut Ctx<'_, Msg>) {
        let Step::Looking(look) = &mut self.step else { panic!("lines of no look") };
        if !look.answer(lines) {
            return;
        }
        let ticks = look.ticks(cx.now());
        if self.flight.running().is_empty() {
            self.host.excuse(ticks)
        } else {
            self.host.hide(ticks)
        }
        match look.value() {
            Err(fault) => self.fail(HostFault(fault), cx),
            Ok(value) => {
                self.host.receive(value);
                self.step = Step::Idle;
                self.advance(cx);
            }
        }
    }

    /// Sends pieces of a transfer while tags are free; ends the step when none is left.
    fn transfer(&mut self, cx: &mut Ctx<'_, Msg>) {
        if !matches!(self.step, Step::Transfer) {
            return;
        }
        while let Some(request) = self.dma.next_request() {
            self.network.push(request, cx);
        }
        if self.dma.is_over() {
            self.step = Step::Idle;
        }
    }

    fn reply(&mut self, reply: Reply, cx: &mut Ctx<'_, Msg>) {
        // The host moves nothing while launches run.
        if self.persistency.writing_back().is_some() {
            if let Some(place) = self.persistency.written_back(cx.now()) {
                self.end_launches(place, cx);
            }
            return;
        }
        let (word, request) = self.dma.reply(reply);
        if word.is_some() {
            self.host.receive(word);
        }
        if let Some(request) = request {
            self.network.push(request, cx);
        }
        self.transfer(cx);
        self.advance(cx);
    }
}

impl Receiver for CommandProcessor {
    type Inbox = CommandProcessorMsg;

    fn receive(&mut self, message: CommandProcessorMsg, cx: &mut Ctx<'_, Msg>) {
        match message {
            CommandProcessorMsg::CtaDone { sm, place, let_go } => self.cta_done((sm, place), let_go, cx),
            CommandProcessorMsg::Grid(report) => self.barrier(report, cx),
            CommandProcessorMsg::Cancel { sm, place, copy } => self.cancel((sm, place, copy), cx),
            CommandProcessorMsg::LetsGo { place } => self.let_go(place, cx),
            CommandProcessorMsg::Lines(lines) => self.looked(&lines, cx),
            CommandProcessorMsg::Reply(reply) => {
                if let Some(reply) = self.network.eject(reply, cx) {
                    self.reply(reply, cx);
                }
            }
            CommandProcessorMsg::Credit(credit) => {
                self.network.credit(credit);
                self.network.pump(cx);
            }
        }
    }
}

impl Component<Msg> for CommandProcessor {
    state_methods!();

    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        deliver(self, message, cx);
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        self.host.go_on(cx.now());
        if matches!(self.step, Step::Paused) {
            self.step = Step::Idle;
        }
        while let Some(reply) = self.network.ejected(cx) {
            self.reply(reply, cx);
        }
        self.network.pump(cx);
        self.advance(cx);
    }

    fn waits(&self, out: &mut Vec<Wait>) {
        for running in self.flight.running() {
            let kernel = &self.records[running.number as usize].kernel;
            let (all, (sent, done)) = (running.grid.ctas(), running.grid.sent_and_done());
            let what = match running.barrier.reached() {
                0 => format!("CTAs of kernel `{kernel}`: {done} of {all} have ended"),
                reached => format!(
                    "CTAs of kernel `{kernel}` at pm.barrier.kr: {reached} of {} are there, and {} have no room on any SM",
                    all - done,
                    all - sent
                ),
            };
            // A scheme's write-back follows the last CTA.
            if done < all {
                out.push(Wait { who: "host program".to_owned(), what, on: None, since: 0 });
            }
        }
        let what = match &self.step {
            Step::Idle | Step::Over | Step::Paused => match self.persistency.writing_back() {
                Some(left) => format!("{left} L2 slices to write back a kernel's results"),
                None => return,
            },
            Step::Looking(look) => format!("{} L2 slices to answer a look at memory", look.left()),
            Step::Transfer => format!("a host transfer: {} pieces are left", self.dma.left()),
        };
        out.push(Wait { who: "host program".to_owned(), what, on: None, since: 0 });
    }

    fn digest(&self) -> u64 {
        let mut digest = StateDigest::default();
        let left = self.persistency.writing_back().map_or(0, u64::from);
        let (step, at) = match &self.step {
            Step::Idle if left > 0 && !self.flight.overlaps() => (2, left),
            Step::Idle if !self.flight.running().is_empty() => {
                let words = self.flight.running().iter().map(|running| {
                    let (sent, done) = running.grid.sent_and_done();
                    sent << 32 ^ done ^ u64::from(running.place) << 24
                });
                (1, words.fold(left << 48, |all, word| all.rotate_left(7) ^ word))
            }
            Step::Idle | Step::Paused => (0, 0),
            Step::Transfer => (3, self.dma.left() as u64),
            Step::Over => (4, self.host.ended().unwrap_or_default()),
            Step::Looking(look) => (5, u64::from(look.left())),
        };
        digest.word(step);
        digest.word(at);
        for LaunchRecord { grid, start, end, .. } in self.launches() {
            let ctas = grid.iter().map(|axis| u64::from(*axis)).product();
            [ctas, *start, *end].into_iter().for_each(|word| digest.word(word));
        }
        digest.value()
    }

    /// A CTA that waits for room goes to the SM that makes room. Once none waits, the SMs hear nothing until
    /// the next launch, and that takes long, unless a barrier of the kernel opens.
    fn answers_sender_only(&self) -> bool {
        let (Step::Idle, [first, others @ ..]) = (&self.step, self.flight.running()) else { return false };
        // The launch whose results are written back ends without a word of an SM.
        if self.persistency.writing_back().is_some() {
            return false;
        }
        let pace = self.ctas.pace();
        let launch_ticks = pace.launch_ticks.saturating_sub(self.host.excused());
        // Where other launches wait or run, one may end while CTAs wait for room, and the next begin.
        // A cluster goes to SMs that have made no room just now, and the end of a launch is told to all SMs
        // where another depends on it.
        if first.grid.has_clusters() && first.grid.waits_for_room() || self.flight.has_dependents() {
            return false;
        }
        let alone = others.is_empty() && self.flight.waiting() == 0 && !self.flight.overlaps();
        alone && first.grid.waits_for_room() || !first.barrier.is_possible() && launch_ticks >= 2 * pace.command_ticks
    }

    fn progress(&self) -> Progress {
        Progress { work: 0, steps_done: self.ctas_ended, steps_total: self.ctas_known }
    }
}
