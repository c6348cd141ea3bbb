//! The command processor: runs the host program's steps on the device, dispatches CTAs, moves host data.
//!
//! Launches run one after another; the next step begins when every CTA of the last has ended and all its stores are
//! performed. CTAs go round-robin over the SMs that have room (`occupancy`), one every `cta_interval_cycles`. Host reads,
//! writes and copies travel through the crossbar to the L2 slices like anybody's accesses, a line at a time; reductions
//! and warm starts of the L2 take no time (`transfer`, `look`).
//!
//! Source: GPGPU-Sim's CTA issue (one CTA a core a cycle); launch latency `SM6_TITANX`. Invariants: an SM never holds more
//! CTAs than fit; exactly one step is under way. Not modelled: concurrent kernels, streams, preemption.

mod look;
mod transfer;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::counters;
use crate::engine::{Clock, Component, Ctx, Progress, StateDigest, Time, Wait};
use crate::kernel::host::{HostAction, HostProgram};
use crate::kernel::launch::Launch;
use crate::persist::handler::{Event, Handler, Outbox, Peer};
use crate::persist::journal::{Author, FactKind, Notebook};
use crate::persist::vocab::{Boundary, FenceKind};
use crate::spec;
use crate::stats::Histogram;
use crate::timeline::{Label, Recorder};

use super::crossbar::{CrossbarSpec, PortEnd};
use super::kernel_facts::kernel_facts;
use super::msg::{GridStep, LinePool, Msg, Payload, Reply, Request, RequestKind};
use super::network::Network;
use super::occupancy::Occupancy;
use super::ports::{Endpoint, Ports};
use super::shared_memory::SharedSpec;
use super::sm::SmSpec;
use crate::spec::Nanos;
use look::Looking;
use transfer::Piece;

spec! {
    /// Parameters of the command processor.
    pub struct DispatchSpec {
        /// From the host's launch to the first CTA's departure.
        launch_ns: Nanos,
        /// Between the command processor and an SM, one way.
        command_ns: Nanos,
        /// Core cycles from one CTA's departure to the next.
        cta_interval_cycles: u32 where 1..=10000,
        /// Line accesses of a host read, write or copy that may be under way at once.
        host_requests: u32 where 1..=1024,
    }
}

counters! {
    /// What the command processor counted.
    pub struct DispatchCounters {
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
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// When the host asked for it, in ticks, without what it did outside simulated time just before.
    pub start: Time,
    /// When its last store was performed and the command processor knew, in ticks.
    pub end: Time,
    /// CTAs an SM could hold, and why not more.
    pub occupancy: Occupancy,
}

/// The host program asked for something impossible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HostFault(pub String);

/// A persist barrier of a kernel.
#[derive(Debug, Clone, Copy, Default)]
struct Grid {
    /// CTAs that are there.
    reached: u64,
    /// Markers follow.
    marks: bool,
    /// SMs whose markers are not acknowledged.
    draining: u32,
    /// When the first warp was there.
    since: Option<Time>,
}

#[derive(Debug)]
enum Step {
    /// Between steps.
    Idle,
    /// CTAs of a launch are running.
    Running { launch: Arc<Launch>, next: u64, done: u64, room: Vec<u32>, next_sm: usize, grid: Grid },
    /// Slices write back what the kernel that has ended must leave durable.
    WritingBack { left: u32, since: Time },
    /// The host looks at memory outside simulated time.
    Looking(Looking),
    /// Lines are moving.
    Moving { waiting: VecDeque<Piece>, data: Vec<u8> },
    /// The host program is over.
    Over,
}

/// The command processor.
#[derive(Debug)]
pub struct CommandProcessor {
    spec: DispatchSpec,
    sm: SmSpec,
    shared: SharedSpec,
    clock: Clock,
    launch_ticks: Time,
    line_bytes: u32,
    ports: Ports,
    host: Box<dyn HostProgram>,
    handler: Box<dyn Handler>,
    outbox: Outbox,
    journal: Option<Box<Notebook>>,
    timeline: Option<Box<Recorder>>,
    network: Network,
    line_pool: LinePool,
    step: Step,
    in_flight: Vec<Option<Piece>>,
    /// What the host's last read returned.
    read: Option<u64>,
    /// Ticks of looks outside simulated time that no launch has given back.
    excused: Time,
    next_departure: Time,
    records: Vec<LaunchRecord>,
    /// How long kernels waited for the write-back of the L2.
    boundaries: Histogram,
    ended: Option<Time>,
    /// It halts the simulation then.
    halts: bool,
    ctas_known: u64,
    counters: DispatchCounters,
}

/// How the command processor is wired.
#[derive(Debug)]
pub struct DispatchWiring {
    /// Core clock.
    pub clock: Clock,
    /// `launch_ns` in ticks.
    pub launch_ticks: Time,
    /// Bytes of a line.
    pub line_bytes: u32,
    /// Its ports.
    pub ports: Ports,
    /// The crossbar, and its port at this end.
    pub crossbar: (CrossbarSpec, PortEnd),
}

impl CommandProcessor {
    /// A command processor that will run `host` when first woken.
    pub fn new(
        spec: DispatchSpec,
        sm: SmSpec,
        shared: SharedSpec,
        w: DispatchWiring,
        host: Box<dyn HostProgram>,
        handler: Box<dyn Handler>,
    ) -> Self {
        CommandProcessor {
            clock: w.clock,
            launch_ticks: w.launch_ticks,
            line_bytes: w.line_bytes,
            ports: w.ports,
            host,
            handler,
            outbox: Outbox::default(),
            journal: None,
            timeline: None,
            network: Network::new(&w.crossbar.0, w.ports, w.crossbar.1, spec.host_requests),
            line_pool: LinePool::default(),
            step: Step::Idle,
            in_flight: vec![None; spec.host_requests as usize],
            read: None,
            excused: 0,
            next_departure: 0,
            records: Vec::new(),
            boundaries: Histogram::default(),
            ended: None,
            halts: false,
            ctas_known: 0,
            counters: DispatchCounters::default(),
            spec,
            sm,
            shared,
        }
    }

    /// Halts the simulation when the host program is over.
    pub fn halt_at_end(&mut self) {
        self.halts = true;
    }

    /// Keeps a journal from now on.
    pub fn keep_journal(&mut self) {
        self.journal = Some(Box::default());
    }

    /// The journal it kept.
    pub fn journal(&self) -> Option<&Notebook> {
        self.journal.as_deref()
    }

    /// Keeps a timeline from now on, of up to so many spans.
    pub fn keep_timeline(&mut self, spans: usize) {
        self.timeline = Some(Box::new(Recorder::new(spans)));
    }

    /// The timeline it kept: persist barriers of kernels, until it told the SMs to go on.
    pub fn timeline(&self) -> Option<&Recorder> {
        self.timeline.as_deref()
    }

    fn note(&mut self, kind: FactKind, time: Time) {
        let author =
            Author { sm: self.ports.requester().number(), launch: self.records.len() as u32 - 1, ..Author::default() };
        if let Some(journal) = &mut self.journal {
            journal.note(time, kind, 0, author);
        }
    }

    /// How long kernels waited for the write-back of the L2, in ticks.
    pub fn boundaries(&self) -> &Histogram {
        &self.boundaries
    }

    /// Launches in order; one still running has `end` 0.
    pub fn launches(&self) -> &[LaunchRecord] {
        &self.records
    }

    /// What it counted.
    pub fn counters(&self) -> DispatchCounters {
        DispatchCounters { bytes_out: self.network.bytes_out, bytes_in: self.network.bytes_in, ..self.counters }
    }

    /// When the host program's last step was complete, in ticks.
    pub fn ended(&self) -> Option<Time> {
        self.ended
    }

    /// Takes steps until one needs time.
    fn advance(&mut self, cx: &mut Ctx<'_, Msg>) {
        while matches!(self.step, Step::Idle) {
            let action = match self.host.next(self.read.take()) {
                Ok(action) => action,
                Err(fault) => {
                    self.step = Step::Over;
                    cx.fail(Box::new(HostFault(fault)));
                    return;
                }
            };
            match action {
                HostAction::Launch(launch) => self.start(launch, cx),
                HostAction::Read { address, bytes } => {
                    let piece = Piece { from: Some(address), to: None, bytes, data_at: 0 };
                    self.step = Step::Moving { waiting: [piece].into(), data: Vec::new() };
                }
                HostAction::Write { address, data } => {
                    let waiting = self.pieces(None, Some(address), data.len() as u64);
                    self.step = Step::Moving { waiting, data };
                }
                HostAction::Copy { from, to, bytes } => {
                    let waiting = self.pieces(Some(from), Some(to), bytes);
                    self.step = Step::Moving { waiting, data: Vec::new() };
                }
                HostAction::Reduce(reduction) => self.reduce(reduction, cx),
                HostAction::Warm(ranges) => self.warm(ranges, cx),
                HostAction::Done => {
                    self.step = Step::Over;
                    self.ended = Some(cx.now() - self.excused);
                    if self.halts {
                        cx.halt();
                    }
                }
            }
            self.move_on(cx);
        }
    }

    fn start(&mut self, launch: Arc<Launch>, cx: &mut Ctx<'_, Msg>) {
        let occupancy = match Occupancy::of(&launch, &self.sm, &self.shared) {
            Ok(occupancy) => occupancy,
            Err(fault) => {
                self.step = Step::Over;
                cx.fail(Box::new(HostFault(fault)));
                return;
            }
        };
        let excused = self.excused.min(self.launch_ticks);
        self.excused -= excused;
        let launch_ticks = self.launch_ticks - excused;
        let facts = kernel_facts(&launch, self.records.len() as u32, self.sm.warp_size);
        self.outbox.at(cx.now());
        self.handler.event(&Event::KernelStarts(&facts), &mut self.outbox);
        self.send_messages(cx);
        for sm in self.ports.roster().sms() {
            cx.send(self.ports.to(sm), Msg::Start(launch.clone()), launch_ticks);
        }
        self.records.push(LaunchRecord {
            kernel: launch.kernel.name.clone(),
            grid: launch.grid,
            block: launch.block,
            start: cx.now() - excused,
            end: 0,
            occupancy: occupancy.clone(),
        });
        self.note(FactKind::KernelStarted, cx.now());
        self.ctas_known += launch.ctas();
        self.next_departure = cx.now() + launch_ticks;
        let room = vec![occupancy.ctas; self.sm.count as usize];
        self.step = Step::Running { launch, next: 0, done: 0, room, next_sm: 0, grid: Grid::default() };
        self.dispatch(cx);
    }

    /// Sends CTAs to SMs with room until there is no room or no CTA.
    fn dispatch(&mut self, cx: &mut Ctx<'_, Msg>) {
        let Step::Running { launch, next, room, next_sm, .. } = &mut self.step else {
            return;
        };
        let sms = room.len();
        while *next < launch.ctas() {
            let Some(sm) = (0..sms).map(|i| (*next_sm + i) % sms).find(|&sm| room[sm] > 0) else {
                return;
            };
            room[sm] -= 1;
            *next_sm = (sm + 1) % sms;
            let departure = self.clock.edge_at_or_after(self.next_departure.max(cx.now()));
            self.next_departure = departure + self.clock.cycles(u64::from(self.spec.cta_interval_cycles));
            cx.send(self.ports.to(Endpoint::Sm(sm as u16)), Msg::Cta(*next), departure - cx.now());
            *next += 1;
        }
    }

    fn cta_done(&mut self, sm: u16, cx: &mut Ctx<'_, Msg>) {
        let Step::Running { launch, done, room, .. } = &mut self.step else {
            panic!("SM {sm} ended a CTA of no launch");
        };
        room[usize::from(sm)] += 1;
        *done += 1;
        self.counters.ctas += 1;
        if *done == launch.ctas() {
            self.outbox.at(cx.now());
            let boundary = self.handler.boundary(&mut self.outbox);
            self.send_messages(cx);
            if boundary == Boundary::WriteBackL2 {
                let slices = self.ports.map().slices();
                self.step = Step::WritingBack { left: slices, since: cx.now() };
                for slice in 0..slices {
                    let line = self.ports.map().some_line_of(slice);
                    let request = self.request(line, 0, RequestKind::WriteBackAll, 0, Payload::None);
                    self.network.push(request, cx);
                }
            } else {
                self.end_launch(cx);
            }
        } else {
            self.dispatch(cx);
            self.check_grid(cx);
        }
    }

    /// A step of a persist barrier of the kernel.
    fn grid(&mut self, step: GridStep, cx: &mut Ctx<'_, Msg>) {
        let Step::Running { grid, .. } = &mut self.step else {
            panic!("{step:?} of no launch");
        };
        match step {
            GridStep::Reached { marks, since, .. } => {
                grid.reached += 1;
                grid.marks = marks;
                grid.since = Some(grid.since.map_or(since, |first| first.min(since)));
                self.check_grid(cx);
            }
            GridStep::Drained => {
                grid.draining -= 1;
                if grid.draining == 0 {
                    self.open_grid(cx);
                }
            }
            GridStep::Drain | GridStep::Open => panic!("the command processor received {step:?}"),
        }
    }

    /// When every CTA that has not ended is at the barrier: has the SMs send markers, or go on.
    fn check_grid(&mut self, cx: &mut Ctx<'_, Msg>) {
        let Step::Running { launch, next, done, grid, .. } = &mut self.step else { return };
        let complete = *next == launch.ctas() && grid.reached == launch.ctas() - *done;
        if grid.reached == 0 || !complete || grid.draining > 0 {
            return;
        }
        grid.reached = 0;
        if grid.marks {
            grid.draining = self.sm.count;
            self.tell_grid(GridStep::Drain, cx);
        } else {
            self.open_grid(cx);
        }
    }

    fn open_grid(&mut self, cx: &mut Ctx<'_, Msg>) {
        let Step::Running { grid, .. } = &mut self.step else { return };
        let since = grid.since.take();
        if let (Some(timeline), Some(since)) = (&mut self.timeline, since) {
            let launch = self.records.len() as u32 - 1;
            let label = Label::Barrier { at: FenceKind::BarrierKernel.name(), launch, cta: None };
            timeline.whole(0, since, cx.now(), label);
        }
        self.tell_grid(GridStep::Open, cx);
    }

    fn tell_grid(&self, step: GridStep, cx: &mut Ctx<'_, Msg>) {
        for sm in self.ports.roster().sms() {
            cx.send(self.ports.to(sm), Msg::Grid(step), 0);
        }
    }

    /// Sends what the handler has written.
    fn send_messages(&mut self, cx: &mut Ctx<'_, Msg>) {
        for (to, message) in self.outbox.take() {
            cx.send(self.ports.to_peer(to), Msg::Scheme { from: Peer::Host, message }, 0);
        }
    }

    fn end_launch(&mut self, cx: &mut Ctx<'_, Msg>) {
        if let Some(record) = self.records.last_mut() {
            record.end = cx.now();
        }
        self.note(FactKind::KernelEnded, cx.now());
        self.step = Step::Idle;
        self.advance(cx);
    }

    fn request(&self, address: u64, tag: usize, kind: RequestKind, sectors: u8, payload: Payload) -> Request {
        let line = address - address % u64::from(self.line_bytes);
        Request { line, tag: tag as u32, from: self.ports.requester(), kind, sectors, payload }
    }

    fn reply(&mut self, reply: Reply, cx: &mut Ctx<'_, Msg>) {
        if let Step::WritingBack { left, since } = &mut self.step {
            *left -= 1;
            if *left == 0 {
                self.boundaries.record(cx.now() - *since);
                self.end_launch(cx);
            }
            return;
        }
        self.moved(reply, cx);
    }
}

impl Component<Msg> for CommandProcessor {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        match message {
            Msg::CtaDone { sm } => self.cta_done(sm, cx),
            Msg::Grid(step) => self.grid(step, cx),
            Msg::Lines(lines) => self.looked(&lines, cx),
            Msg::Reply(reply) => {
                if let Some(reply) = self.network.eject(reply, cx) {
                    self.reply(reply, cx);
                }
            }
            Msg::Credit { slice, packets } => {
                self.network.credit(slice, packets);
                self.network.pump(cx);
            }
            other => panic!("the command processor received {other:?}"),
        }
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        while let Some(reply) = self.network.ejected(cx) {
            self.reply(reply, cx);
        }
        self.network.pump(cx);
        self.advance(cx);
    }

    fn waits(&self, out: &mut Vec<Wait>) {
        let what = match &self.step {
            Step::Idle | Step::Over => return,
            Step::Running { launch, next, done, grid, .. } if grid.reached > 0 => {
                let (ctas, kernel) = (launch.ctas(), &launch.kernel.name);
                format!(
                    "CTAs of kernel `{kernel}` at pm.barrier.kr: {} of {} are there, and {} have no room on any SM",
                    grid.reached,
                    ctas - done,
                    ctas - next
                )
            }
            Step::Running { launch, done, .. } => {
                format!("CTAs of kernel `{}`: {done} of {} have ended", launch.kernel.name, launch.ctas())
            }
            Step::WritingBack { left, .. } => format!("{left} L2 slices to write back a kernel's results"),
            Step::Looking(Looking { left, .. }) => format!("{left} L2 slices to answer a look at memory"),
            Step::Moving { waiting, .. } => format!("a host transfer: {} pieces are left", waiting.len()),
        };
        out.push(Wait { who: "host program".to_owned(), what, on: None, since: 0 });
    }

    fn digest(&self) -> u64 {
        let mut digest = StateDigest::default();
        let (step, at) = match &self.step {
            Step::Idle => (0, 0),
            Step::Running { next, done, .. } => (1, next << 32 ^ done),
            Step::WritingBack { left, .. } => (2, u64::from(*left)),
            Step::Moving { waiting, .. } => (3, waiting.len() as u64),
            Step::Over => (4, self.ended.unwrap_or_default()),
            Step::Looking(Looking { left, .. }) => (5, u64::from(*left)),
        };
        digest.word(step);
        digest.word(at);
        for LaunchRecord { grid, start, end, .. } in self.launches() {
            let ctas = grid.iter().map(|axis| u64::from(*axis)).product();
            [ctas, *start, *end].into_iter().for_each(|word| digest.word(word));
        }
        digest.value()
    }

    fn progress(&self) -> Progress {
        Progress { work: 0, steps_done: self.counters.ctas, steps_total: self.ctas_known }
    }
}
