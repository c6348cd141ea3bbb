//! One memory channel by itself: its controller and devices, driven by streams of requests as fast as they
//! go.
//!
//! ```text
//!  source ──a cycle──> memory controller, media ──a cycle──> source
//! ```
//! A stream's requests are sent in order, one a cycle, as long as fewer of its reads are on their way than
//! may be, and fewer of its writes wait for acceptance. Streams are sent beside each other: each has its own
//! bounds. Source: the loops that drive Ramulator and DRAMsim3 by themselves. Invariants: the result is a
//! function of its arguments; each request is answered once. Not here: caches, networks, schemes; bytes are
//! moved, but they say nothing.

use std::any::Any;

use durawarp_base::spec::Nanos;
use durawarp_engine::{
    Clock, Component, ComponentId, Ctx, Link, Port, RunEnd, RunOptions, Simulation, Time, Timebase, Topology,
};
use durawarp_kernel::memory::Medium;
use durawarp_machine::address::Interleave;
use durawarp_machine::device::Device;
use durawarp_machine::image::Image;
use durawarp_machine::media::{BankId, BusSpec, CommandRecord, Devices, Media, MediaSpec, NvmSpec};
use durawarp_machine::memory_controller::{
    ControllerCounters, ControllerSpec, MemoryController, MemoryScheduler, PagePolicy,
};
use durawarp_machine::msg::{
    ControllerMsg, Line, MAX_LINE_BYTES, MemoryAccepted, MemoryData, MemoryRead, MemoryWrite, Msg, SECTOR_BYTES,
    SliceMsg,
};
use durawarp_machine::ports::{Endpoint, Requester, Roster};

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelRequest {
    /// Address of its first byte.
    pub address: u64,
    /// It writes.
    pub write: bool,
    /// The first cycle at which it may be sent.
    pub from: u64,
}

/// Requests that are sent in this order.
#[derive(Debug, Clone)]
pub struct RequestStream {
    /// The requests.
    pub requests: Vec<ChannelRequest>,
    /// Reads that may be on their way; while there are as many, nothing is sent.
    pub reads_in_flight: usize,
    /// Writes that may wait for acceptance; while there are as many, nothing is sent.
    pub writes_waiting: usize,
}

/// What is driven, and by requests of which size.
#[derive(Debug)]
pub struct OneChannel {
    /// Its controller.
    pub spec: ControllerSpec,
    /// Its devices.
    pub media: Media,
    /// The clock of both, and of the source.
    pub clock: Clock,
    /// The ticks of that clock.
    pub base: Timebase,
    /// Bytes of each request: whole sectors, a line at most.
    pub request_bytes: u32,
    /// Bytes of either medium that requests go to, from its first.
    pub bytes: usize,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct ChannelRun {
    /// From the first request until the last answer is back, in cycles.
    pub cycles: u64,
    /// Mean of the reads' times from sending to data, in cycles, without the two cycles of the way.
    pub read_cycles: f64,
    /// The reads of each stream.
    pub reads: Vec<StreamReads>,
    /// What the controller counted.
    pub counters: ControllerCounters,
    /// Commands to DRAM of a table, in the order in which they were decided.
    pub commands: Vec<CommandRecord>,
}

/// How long the reads of a stream took, from sending to data.
#[derive(Debug, Clone, Copy, Default)]
pub struct StreamReads {
    /// How many.
    pub count: u64,
    /// All of them together, in ticks.
    pub ticks: Time,
    /// The longest, in ticks.
    pub longest_ticks: Time,
}

impl StreamReads {
    /// Their mean, in ticks.
    pub fn mean_ticks(&self) -> f64 {
        self.ticks as f64 / self.count.max(1) as f64
    }
}

/// What sends the requests and takes the answers.
#[derive(Debug)]
struct Source {
    streams: Vec<Sending>,
    cycle: Time,
    sectors: u8,
    mask: u128,
    /// When a read was sent, and of which stream, by its tag.
    sent: Vec<(Time, usize)>,
    free_tags: Vec<u16>,
    reads: Vec<StreamReads>,
    last: Time,
}

#[derive(Debug)]
struct Sending {
    stream: RequestStream,
    next: usize,
    reads: usize,
    writes: usize,
}

impl Sending {
    /// The first cycle of the next request, where nothing else keeps it.
    fn may_send_from(&self) -> Option<u64> {
        let RequestStream { requests, reads_in_flight, writes_waiting } = &self.stream;
        let has_room = self.reads < *reads_in_flight && self.writes < *writes_waiting;
        requests.get(self.next).filter(|_| has_room).map(|request| request.from)
    }
}

impl Source {
    fn new(streams: &[RequestStream], cycle: Time, request_bytes: u32) -> Source {
        let tags = streams.iter().map(|stream| stream.reads_in_flight).sum::<usize>();
        let sending = |stream: &RequestStream| Sending { stream: stream.clone(), next: 0, reads: 0, writes: 0 };
        Source {
            streams: streams.iter().map(sending).collect(),
            cycle,
            sectors: (u16::MAX >> (16 - request_bytes / SECTOR_BYTES)) as u8,
            mask: u128::MAX >> (MAX_LINE_BYTES as u32 - request_bytes),
            sent: vec![(0, 0); tags],
            free_tags: (0..tags as u16).collect(),
            reads: vec![StreamReads::default(); streams.len()],
            last: 0,
        }
    }

    /// Asks for the cycle of the next request that may go, after this one.
    fn wake_for_next(&self, cx: &mut Ctx<'_, Msg>) {
        if let Some(from) = self.streams.iter().filter_map(Sending::may_send_from).min() {
            cx.wake_at((from * self.cycle).max(cx.now() + self.cycle));
        }
    }

    /// The next request of a stream.
    fn message(&mut self, of: usize, now: Time) -> ControllerMsg {
        let sending = &mut self.streams[of];
        let ChannelRequest { address: line, write, .. } = sending.stream.requests[sending.next];
        sending.next += 1;
        if write {
            sending.writes += 1;
            let data = Box::new(Line { bytes: [1; MAX_LINE_BYTES], mask: self.mask, log: false, launch: 0 });
            let token = of as u16;
            ControllerMsg::MemoryWrite(MemoryWrite { line, slice: 0, token, late: false, through: false, data })
        } else {
            sending.reads += 1;
            let tag = self.free_tags.pop().expect("a tag for each read on its way");
            self.sent[usize::from(tag)] = (now, of);
            let (sectors, room) = (self.sectors, Box::default());
            // To schedulers each stream is a requester.
            let from = Some(Requester::core(of as u16));
            ControllerMsg::MemoryRead(MemoryRead { line, tag, slice: 0, sectors, from, room })
        }
    }
}

impl Component<Msg> for Source {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        match message {
            Msg::Slice(SliceMsg::MemoryData(MemoryData { tag, .. })) => {
                let (sent, of) = self.sent[usize::from(tag)];
                self.streams[of].reads -= 1;
                self.free_tags.push(tag);
                let (reads, ticks) = (&mut self.reads[of], cx.now() - sent);
                *reads = StreamReads {
                    count: reads.count + 1,
                    ticks: reads.ticks + ticks,
                    longest_ticks: reads.longest_ticks.max(ticks),
                };
            }
            Msg::Slice(SliceMsg::MemoryAccepted(MemoryAccepted { token, .. })) => {
                self.streams[usize::from(token)].writes -= 1;
            }
            Msg::Slice(SliceMsg::MemoryDurable(_)) => return,
            other => panic!("no answer to a request: {other:?}"),
        }
        self.last = cx.now();
        self.wake_for_next(cx);
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        for of in 0..self.streams.len() {
            if self.streams[of].may_send_from().is_some_and(|from| from * self.cycle <= cx.now()) {
                let message = self.message(of, cx.now());
                cx.send(Port(0), message.into(), 0);
            }
        }
        self.wake_for_next(cx);
    }
}

impl OneChannel {
    /// A controller as the references were driven: queues of 64 and 64, open page, FR-FCFS, 64 row hits
    /// before an older request, a nanosecond to and fro.
    pub fn queues_of_64() -> ControllerSpec {
        let cycle = Nanos { ps: 1000 };
        ControllerSpec {
            channels: 1,
            mapping: "ours".into(),
            read_queue_entries: 64,
            write_queue_entries: 64,
            ingress_reads: 1024,
            ingress_writes: 1024,
            drain_high_entries: 51,
            drain_low_entries: 13,
            drain_idle_entries: 0,
            drain_min_writes: 16,
            row_hit_cap: 64,
            page: PagePolicy::Open,
            page_timeout_ns: cycle,
            scheduler: MemoryScheduler::Frfcfs,
            blacklist_streak: 4,
            blacklist_clear_cycles: 10_000,
            service_quantum_cycles: 10_000_000,
            service_history_permille: 875,
            starvation_cycles: 100_000,
            front_ns: cycle,
            back_ns: cycle,
            forward_ns: cycle,
        }
    }

    /// A channel of a device from a table, as the references were driven: queues of 64 and 64, open page,
    /// FR-FCFS, 64 row hits before an older request. A tick is a cycle of the device. Requests are of an
    /// atom, and go to the first `rows` of its banks. Of `dram` refreshes alone count: which, and when.
    pub fn of_device(device: &Device, dram: &MediaSpec, rows: u32) -> OneChannel {
        // Writes drain from four fifths of the queue down to one fifth.
        let (clock, base) = (Clock::of_period(1), Timebase::of_khz(&[1_000_000]).expect("1 GHz"));
        let own = &device.organisation;
        let banks: u32 = own.levels.iter().map(|(_, count)| count).product();
        let cycle = Nanos { ps: 1000 };
        let bus = BusSpec { bytes_per_cycle: 32, read_to_write_ns: cycle, write_to_read_ns: cycle };
        let devices = Devices { dram: Some(device), nvm: None };
        // Requests go to DRAM alone.
        let nvm = NvmSpec::through(&MediaSpec::default(), cycle);
        OneChannel {
            spec: OneChannel::queues_of_64(),
            media: Media::of(&devices, dram, &nvm, &bus, clock, base),
            clock,
            base,
            request_bytes: own.atom_bytes,
            bytes: (banks * rows) as usize * own.row_bytes as usize,
        }
    }

    /// The channel-local address of each row's first byte that `bytes` have, by bank and row: the devices'
    /// mapping, inverted by asking it. A row's bytes lie together.
    pub fn rows(&self, medium: Medium, row_bytes: u32) -> Vec<((BankId, u32), u64)> {
        let firsts = (0..self.bytes as u64).step_by(row_bytes as usize);
        let place = |first| self.media.place(medium, first);
        firsts.map(|first| ((place(first).bank, place(first).row), first)).collect()
    }

    /// Sends all requests and waits for all answers.
    ///
    /// # Panics
    /// When a request lies beyond the bytes that there are, or the controller leaves one unanswered.
    pub fn run(self, streams: &[RequestStream]) -> ChannelRun {
        let OneChannel { spec, media, clock, base, request_bytes, bytes } = self;
        let cycle = clock.cycles(1);
        let ports = Roster::new(0, Interleave::new(1, 1, 256)).ports(Endpoint::Controller(0));
        let forward = base.ticks_of_ps(spec.forward_ns.ps);
        let images = [Image::new(bytes), Image::new(bytes)];
        let mut topology = Topology::new();
        let source = topology.add("source", Box::new(Source::new(streams, cycle, request_bytes)));
        let controller = MemoryController::new(spec, clock, forward, ports, media, images);
        let controller = topology.add("controller", Box::new(controller));
        topology.connect(source, Port(0), controller, Link { latency: cycle, phase: 0 });
        topology.connect(controller, Port(0), source, Link { latency: cycle, phase: 0 });
        topology.wake_at(source, 0);
        let mut simulation = Simulation::new(topology).expect("two components and a link each way");
        let end = durawarp_machine::run(&mut simulation, &RunOptions::default());
        assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
        // Every request has its answer.
        let source: &Source = component(&simulation, source);
        let left: usize = source.streams.iter().map(|of| of.reads + of.writes).sum();
        assert_eq!(left, 0, "requests without an answer");
        let (latency, reads) = source.reads.iter().fold((0, 0), |(a, b), own| (a + own.ticks, b + own.count));
        let controller: &MemoryController = component(&simulation, controller);
        ChannelRun {
            cycles: source.last / cycle,
            read_cycles: (latency / cycle) as f64 / reads.max(1) as f64 - 2.0,
            reads: source.reads.clone(),
            counters: *controller.counters(),
            commands: controller.commands().to_vec(),
        }
    }
}

fn component<C: Any>(simulation: &Simulation<Msg>, id: ComponentId) -> &C {
    let component: &dyn Any = simulation.component(id);
    component.downcast_ref().expect("of this type")
}
