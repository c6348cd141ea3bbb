//! The memory controller as a data sheet: latencies, queues, scheduling, acceptance and media, seen from
//! outside.
//!
//! A probe stands in for the L2 slices: it sends scripted requests and notes when replies arrive. Clock 1
//! GHz, a tick is a nanosecond, links take 1 ns, so times can be read off directly.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use durawarp::engine::*;
use durawarp::kernel::memory::{DRAM_BASE, Medium, NVM_BASE};
use durawarp::machine::address::Interleave;
use durawarp::machine::image::Image;
use durawarp::machine::media::{BusSpec, Devices, Media, MediaSpec, NvmSpec};
use durawarp::machine::memory_controller::{
    CellWear, ControllerCounters, ControllerSpec, MemoryController, MemoryScheduler, PagePolicy,
};
use durawarp::machine::msg::{
    ControllerMsg, Line, MemoryData, MemoryDurable, MemoryRead, MemoryWrite, Msg, PeerMessage, SliceMsg,
};
use durawarp::machine::persistence::{Clwb, MembarRule, PastAck, PastL1, PastL2, PersistSpec};
use durawarp::machine::ports::{Endpoint, Roster};
use durawarp::persist::journal::{Author, FactKind, Journal};
use durawarp::persist::vocab::Domain;
use durawarp::persist::{ControllerEvent, ControllerHandler, Flush, Handler, Outbox, Peer, SchemeMessage, opened};
use durawarp::spec::Nanos;
use smallvec::SmallVec;

/// What the probe saw come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    Data {
        at: Time,
        tag: u16,
        first: u8,
    },
    Accepted {
        at: Time,
    },
    /// Its cells were written at `done`.
    Durable {
        at: Time,
        done: Time,
    },
}

#[derive(Debug)]
struct Probe {
    script: Vec<(Time, Option<ControllerMsg>)>,
    seen: Vec<Seen>,
}

impl Component<Msg> for Probe {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        self.seen.push(match message {
            Msg::Slice(SliceMsg::MemoryData(MemoryData { tag, data, .. })) => {
                Seen::Data { at: cx.now(), tag, first: data.bytes[0] }
            }
            Msg::Slice(SliceMsg::MemoryAccepted(_)) => Seen::Accepted { at: cx.now() },
            Msg::Slice(SliceMsg::MemoryDurable(MemoryDurable { at: done, .. })) => Seen::Durable { at: cx.now(), done },
            other => panic!("unexpected {other:?}"),
        });
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        let now = cx.now();
        for (at, message) in &mut self.script {
            if *at == now {
                cx.send(Port(0), message.take().expect("sent once").into(), 0);
            }
        }
        if let Some((next, _)) = self.script.iter().find(|(at, _)| *at > now) {
            cx.wake_at(*next);
        }
    }
}

pub(super) fn filled(bytes: &[u8]) -> Image {
    let mut image = Image::new(bytes.len());
    image.write(0, bytes);
    image
}

pub(super) fn ns(ns: u64) -> Nanos {
    Nanos { ps: ns * 1000 }
}

pub(super) fn dram() -> MediaSpec {
    MediaSpec {
        banks: 4,
        row_bytes: 2048,
        t_rcd_ns: ns(124),
        t_cl_ns: ns(36),
        t_wl_ns: ns(36),
        t_rp_ns: ns(0),
        t_ras_ns: ns(124),
        t_ccd_ns: ns(1),
        bank_groups: 1,
        t_ccd_l_ns: ns(1),
        t_rrd_ns: ns(4),
        t_wr_ns: ns(6),
        ..MediaSpec::default()
    }
}

pub(super) fn spec() -> ControllerSpec {
    ControllerSpec {
        channels: 1,
        mapping: "ours".into(),
        read_queue_entries: 64,
        write_queue_entries: 8,
        ingress_reads: 64,
        ingress_writes: 64,
        drain_high_entries: 6,
        drain_low_entries: 2,
        drain_idle_entries: 0,
        drain_min_writes: 2,
        row_hit_cap: 4,
        page: PagePolicy::Open,
        page_timeout_ns: ns(1),
        scheduler: MemoryScheduler::Frfcfs,
        blacklist_streak: 4,
        blacklist_clear_cycles: 10_000,
        service_quantum_cycles: 10_000_000,
        service_history_permille: 875,
        starvation_cycles: 100_000,
        front_ns: ns(1),
        back_ns: ns(1),
        forward_ns: ns(10),
    }
}

pub(super) fn read(line: u64, tag: u16) -> ControllerMsg {
    read_of(line, tag, 0b1111)
}

pub(super) fn read_of(line: u64, tag: u16, sectors: u8) -> ControllerMsg {
    ControllerMsg::MemoryRead(MemoryRead { line, tag, slice: 0, sectors, from: None, room: Box::default() })
}

pub(super) fn write(line: u64, byte: u8, mask: u128) -> ControllerMsg {
    ControllerMsg::MemoryWrite(MemoryWrite {
        line,
        slice: 0,
        token: 0,
        late: false,
        through: false,
        data: Box::new(Line { bytes: [byte; 128], mask, log: false, launch: 0 }),
    })
}

/// Address (from the base of its medium) of row `row` of bank 0: rows rotate over the four banks.
pub(super) fn bank0(row: u64) -> u64 {
    (4 * row + (4 - row % 4) % 4) * 2048
}

pub(super) const FULL: u128 = u128::MAX;

/// Runs the script to the end; returns what came back, the counters and the DRAM image.
fn run(spec: ControllerSpec, script: Vec<(Time, ControllerMsg)>) -> (Vec<Seen>, ControllerCounters, Vec<u8>) {
    run_with(spec, None, script)
}

/// The same with a scheme's handler in the controller.
fn run_with(
    spec: ControllerSpec,
    handler: Option<Box<dyn ControllerHandler>>,
    script: Vec<(Time, ControllerMsg)>,
) -> (Vec<Seen>, ControllerCounters, Vec<u8>) {
    let ran = run_on(spec, &NvmSpec::through(&dram(), ns(480)), Domain::Adr, handler, script);
    (ran.seen, ran.counters, ran.dram)
}

/// Persistency by the default readings.
pub(super) fn persist(domain: Domain) -> PersistSpec {
    PersistSpec {
        domain,
        membar_gl: MembarRule::Fence,
        membar_sys: MembarRule::Fence,
        clwb: Clwb::Write,
        past_ack: PastAck::Accept,
        past_l1: PastL1::Evict,
        past_l2: PastL2::Update,
    }
}

/// What a controller came to.
pub(super) struct Ran {
    pub(super) seen: Vec<Seen>,
    pub(super) counters: ControllerCounters,
    dram: Vec<u8>,
    /// When which lines of persistent memory were in their cells, as the journal has it.
    pub(super) at_media: Vec<(Time, u64)>,
    /// Writes to cells, also by line.
    pub(super) wear: CellWear,
}

/// The same on another NVM, of which another part survives.
pub(super) fn run_on(
    spec: ControllerSpec,
    nvm: &NvmSpec,
    domain: Domain,
    handler: Option<Box<dyn ControllerHandler>>,
    script: Vec<(Time, ControllerMsg)>,
) -> Ran {
    run_on_devices(spec, (&Devices::default(), nvm), domain, handler, script)
}

/// The same with a device of a table.
pub(super) fn run_on_devices(
    spec: ControllerSpec,
    (devices, nvm): (&Devices<'_>, &NvmSpec),
    domain: Domain,
    handler: Option<Box<dyn ControllerHandler>>,
    script: Vec<(Time, ControllerMsg)>,
) -> Ran {
    let clock = Clock::of_period(1);
    let base = Timebase::of_khz(&[1_000_000]).expect("1 GHz");
    let bus = BusSpec { bytes_per_cycle: 32, read_to_write_ns: ns(2), write_to_read_ns: ns(6) };
    let media = Media::of(devices, &dram(), nvm, &bus, clock, base);
    run_media(spec, media, (clock, base), domain, handler, script)
}

/// The same on devices of another clock.
pub(super) fn run_media(
    spec: ControllerSpec,
    media: Media,
    (clock, base): (Clock, Timebase),
    domain: Domain,
    handler: Option<Box<dyn ControllerHandler>>,
    script: Vec<(Time, ControllerMsg)>,
) -> Ran {
    let image: Vec<u8> = (0..1 << 17).map(|i| (i / 128 % 251) as u8).collect();
    let ports = Roster::new(0, Interleave::new(1, 1, 256)).ports(Endpoint::Controller(0));
    let forward = base.ticks_of_ps(spec.forward_ns.ps);
    let mut controller = MemoryController::new(spec, clock, forward, ports, media, [filled(&image), filled(&image)]);
    controller.host(handler);
    controller.set_persistence(&persist(domain), true);
    controller.count_lines();
    let mut t = Topology::new();
    let first = script.first().map_or(0, |s| s.0);
    let script = script.into_iter().map(|(at, m)| (at, Some(m))).collect();
    let probe = t.add("probe", Box::new(Probe { script, seen: Vec::new() }));
    let mc = t.add("mc", Box::new(controller));
    t.connect(probe, Port(0), mc, Link { latency: 1, phase: 0 });
    t.connect(mc, Port(0), probe, Link { latency: 1, phase: 0 });
    t.wake_at(probe, first);
    let mut sim = Simulation::new(t).expect("a valid topology");
    let end = sim.run(&RunOptions::default());
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    let probe: &dyn Any = sim.component(probe);
    let mc: &dyn Any = sim.component(mc);
    let mc = mc.downcast_ref::<MemoryController>().expect("the controller");
    let seen = probe.downcast_ref::<Probe>().expect("the probe").seen.clone();
    let journal = Journal::merged(&[mc.journal().expect("it keeps one")]);
    let at_media = journal.facts().iter().filter(|fact| fact.kind == FactKind::AtMedia);
    let at_media = at_media.map(|fact| (fact.time, fact.line)).collect();
    let (counters, wear) = (*mc.counters(), mc.wear().clone());
    Ran { seen, counters, dram: mc.image(Medium::Dram).to_vec(), at_media, wear }
}

pub(super) fn data_times(seen: &[Seen]) -> Vec<(u16, Time)> {
    let time = |s: &Seen| if let Seen::Data { at, tag, .. } = s { Some((*tag, *at)) } else { None };
    seen.iter().filter_map(time).collect()
}

#[test]
fn an_unloaded_read_takes_front_activate_column_burst_back() {
    for base in [DRAM_BASE, NVM_BASE] {
        let (seen, ..) = run(spec(), vec![(100, read(base + 256, 1))]);
        let expected = 100 + 1 + 124 + 36 + 128 / 32 + 1;
        assert_eq!(seen, [Seen::Data { at: expected, tag: 1, first: 2 }]);
    }
}

#[test]
fn a_row_hit_skips_the_activate_and_another_row_pays_it_again() {
    let script =
        vec![(0, read(DRAM_BASE, 1)), (1000, read(DRAM_BASE + 1024, 2)), (2000, read(DRAM_BASE + bank0(1), 3))];
    let (seen, counters, _) = run(spec(), script);
    let miss = 1 + 124 + 36 + 4 + 1;
    assert_eq!(data_times(&seen), [(1, miss), (2, 1000 + miss - 124), (3, 2000 + miss)]);
    assert_eq!((counters.activates, counters.column_commands), (2, 3));
}

#[test]
fn a_write_is_accepted_at_once_and_reaches_the_media_later() {
    let (seen, counters, image) = run(spec(), vec![(50, write(DRAM_BASE, 7, FULL))]);
    assert_eq!(seen, [Seen::Accepted { at: 52 }], "the link there and back, nothing else");
    assert_eq!((counters.dram_accepted_bytes, counters.dram_written_bytes), (128, 128));
    assert_eq!(image[..129], [[7; 128].as_slice(), &[1]].concat());
}

#[test]
fn the_last_free_wpq_entry_accepts_and_the_next_write_waits_for_the_drain() {
    // Ten writes to one NVM bank at one instant: one goes to the bank at once, eight wait in entries.
    let script = (0..10).map(|i| (0, write(NVM_BASE + bank0(i), 1, FULL))).collect();
    let (seen, counters, _) = run(spec(), script);
    let accepted: Vec<Time> = seen.iter().map(|s| if let Seen::Accepted { at } = s { *at } else { 0 }).collect();
    assert_eq!(accepted[..9], [2; 9], "on arrival");
    assert_eq!(accepted[9], 1 + 480 + 1, "when the bank takes the next one");
    assert_eq!(counters.wpq_full_arrivals, 2, "the ninth found it full, too, for no time at all");
}

#[test]
fn a_read_sees_a_write_that_is_accepted_and_one_that_still_waits() {
    let mut script: Vec<(Time, ControllerMsg)> =
        (0..10).map(|i| (0, write(NVM_BASE + bank0(i), 100 + i as u8, FULL))).collect();
    script.push((1, read(NVM_BASE + bank0(5), 1)));
    script.push((1, read(NVM_BASE + bank0(9), 2)));
    let (seen, counters, _) = run(spec(), script);
    let values: Vec<(u16, u8)> = seen
        .iter()
        .filter_map(|s| if let Seen::Data { tag, first, .. } = s { Some((*tag, *first)) } else { None })
        .collect();
    assert!(values.contains(&(1, 105)) && values.contains(&(2, 109)), "{values:?}");
    assert!(counters.forwarded_reads >= 1);
}

#[test]
fn a_read_that_the_wpq_answers_takes_the_forward_latency() {
    // Bank 0 is busy with the first cell write, so the second waits in the queue.
    let script = vec![
        (0, write(NVM_BASE, 1, FULL)),
        (1, write(NVM_BASE + bank0(1), 9, FULL)),
        (20, read(NVM_BASE + bank0(1), 1)),
    ];
    let (seen, ..) = run(spec(), script);
    assert_eq!(data_times(&seen), [(1, 20 + 1 + 10 + 1)]);
}

#[test]
fn the_wpq_answers_a_read_when_it_has_all_of_it() {
    // Bank 0 is busy with the first cell write, so the second waits in the queue.
    let forwarded = |written: u128, sectors: u8| {
        let line = NVM_BASE + bank0(1);
        let script = vec![(0, write(NVM_BASE, 1, FULL)), (1, write(line, 9, written)), (20, read_of(line, 1, sectors))];
        let (seen, counters, _) = run(spec(), script);
        let waited = data_times(&seen)[0].1 - 20;
        assert_eq!(counters.forwarded_reads == 1, waited == 1 + 10 + 1, "{waited} ns");
        counters.forwarded_reads == 1
    };
    let sector = u128::from(u32::MAX);
    assert!(forwarded(FULL, 0b1111) && forwarded(sector, 0b0001) && forwarded(sector << 64, 0b0100));
    assert!(!forwarded(sector, 0b0010), "another sector");
    assert!(!forwarded(sector, 0b0011) && !forwarded(FULL >> 32, 0b1111), "a sector short");
    assert!(!forwarded(sector >> 1, 0b0001), "a byte short");
}

/// The arrival of the first read's data and the turnarounds of the bus, when `writes` writes and eight reads
/// of one row arrive together.
fn first_read_among(writes: u64, spec: ControllerSpec) -> (Time, u64) {
    let writes = (0..writes).map(|i| (0, write(DRAM_BASE + 128 * i, 1, FULL)));
    let reads = (0..8).map(|i| (0, read(DRAM_BASE + 1024 + 128 * i, i as u16)));
    let (seen, counters, _) = run(spec, writes.chain(reads).collect());
    (data_times(&seen)[0].1, counters.turnarounds)
}

#[test]
fn writes_go_before_reads_from_the_high_watermark_on_down_to_the_low_one() {
    let alone = 1 + 124 + 36 + 4 + 1;
    assert_eq!(first_read_among(5, spec()), (alone, 1), "one early");
    // Link, row, the writes' column and 4 ns each, turnaround, the read's column and 4 ns, link. Two writes
    // are left for the end: the bus turns to writes, to reads, and to writes.
    let after = |writes: u64| 1 + 124 + 36 + 4 * writes + 6 + 36 + 4 + 1;
    assert_eq!(first_read_among(6, spec()), (after(4), 3), "on time");
    for (low, fewest, writes) in [(2, 4, 4), (2, 5, 5), (3, 2, 3), (3, 4, 4), (0, 2, 6)] {
        let spec = ControllerSpec { drain_low_entries: low, drain_min_writes: fewest, ..spec() };
        assert_eq!(first_read_among(6, spec).0, after(writes), "down to {low}, {fewest} at least");
    }
}

#[test]
fn writes_to_a_waiting_line_merge() {
    let script = vec![
        (0, write(NVM_BASE, 1, FULL)),
        (1, write(NVM_BASE + bank0(1), 2, 0xffff)),
        (2, write(NVM_BASE + bank0(1), 3, 0xff00)),
    ];
    let (_, counters, _) = run(spec(), script);
    assert_eq!((counters.merged_writes, counters.merged_bytes), (1, 8));
    let accepted = counters.nvm_accepted_bytes;
    assert_eq!(accepted, counters.nvm_written_bytes + counters.merged_bytes, "conserved");
}

#[test]
fn an_nvm_write_keeps_reads_from_its_bank_but_not_from_others() {
    let script =
        vec![(0, write(NVM_BASE, 1, FULL)), (10, read(NVM_BASE + bank0(1), 1)), (10, read(NVM_BASE + 2048, 2))];
    let (seen, ..) = run(spec(), script);
    let times = data_times(&seen);
    assert_eq!(times[0], (2, 10 + 1 + 124 + 36 + 4 + 1), "another bank");
    assert_eq!(times[1], (1, 1 + 480 + 124 + 36 + 4 + 1), "the same bank, after the cell write");
}

#[test]
fn row_hits_pass_an_older_request_so_many_times_and_no_more() {
    // Row 0 is open when a conflicting read of the same bank arrives, then a crowd of hits.
    let mut script = vec![(0, read(DRAM_BASE, 0)), (200, read(DRAM_BASE + bank0(1), 99))];
    script.extend((1..=12).map(|i| (200, read(DRAM_BASE + 128 * i, i as u16))));
    let (seen, ..) = run(spec(), script);
    let order: Vec<u16> = data_times(&seen).iter().map(|d| d.0).collect();
    assert_eq!(order[..6], [0, 1, 2, 3, 4, 99], "four hits pass, then the older one is served");
}

#[test]
fn a_stream_reaches_the_bus_and_never_exceeds_it() {
    let lines = 400u64;
    let script = (0..lines).map(|i| (i / 16 * 64, read(DRAM_BASE + 128 * i, i as u16))).collect();
    let (seen, counters, _) = run(spec(), script);
    let last = data_times(&seen).iter().map(|d| d.1).max().expect("data");
    let busy = lines * 4;
    assert!(last >= busy, "{lines} lines in {last} ns exceed 32 B/ns");
    assert!(last - 162 <= busy * 5 / 4, "{lines} lines took {last} ns, the bus {busy}");
    assert_eq!(counters.dram_read_bytes, lines * 128);
}

/// Latency of a read at `from_base` of a medium among 3000 writes to these lines, one every `every_ns`, which
/// is more than the medium takes, so that the write queue is full.
fn read_among_writes(medium: u64, from_base: u64, lines: &[u64], every_ns: u64) -> Time {
    let write = |i: u64| (i * every_ns, write(medium + lines[i as usize % lines.len()], 1, FULL));
    let comes = 200 * every_ns;
    let script = (0..200).map(write).chain([(comes, read(medium + from_base, 9))]).chain((200..3000).map(write));
    data_times(&run(spec(), script.collect()).0)[0].1 - comes
}

#[test]
fn a_stream_of_writes_starves_no_read() {
    // Cells bound it: rows of one bank, 480 ns each. What the queue holds may go first: 8 writes with an
    // activation each.
    let rows: Vec<u64> = (0..15).map(bank0).collect();
    let (most, waited) = (9 * (480 + 124 + 36), read_among_writes(NVM_BASE, bank0(15), &rows, 100));
    assert!(waited < most, "a read of the writes' bank waited {waited} ns");
    let waited = read_among_writes(NVM_BASE, 2048, &rows, 100);
    assert!(waited < 500, "a read of another bank waits for the bus alone: {waited} ns");
    // The bus bounds it: a line in 4 ns, all banks. The read's bank is not written to.
    let lines: Vec<u64> = (0..48).map(|i| 3 * 2048 + i / 16 * 2048 + i % 16 * 128).collect();
    for from_base in [0, 2048, 2 * 2048, 15 * 2048] {
        let waited = read_among_writes(DRAM_BASE, from_base, &lines, 2);
        assert!(waited < 1000, "a read at {from_base} waited {waited} ns");
    }
}

#[test]
fn writes_that_may_idle_wait_for_others_to_merge_with_them() {
    let script = || {
        [(0, 0, 1), (1, 128, 2), (5000, 0, 3)].map(|(at, line, byte)| (at, write(DRAM_BASE + line, byte, FULL))).into()
    };
    let media_writes = |idle: u32| {
        let (_, counters, image) = run(ControllerSpec { drain_idle_entries: idle, ..spec() }, script());
        assert_eq!((image[0], image[128]), (3, 2), "reads see what is pending");
        (counters.dram_written_bytes, counters.merged_writes)
    };
    assert_eq!(media_writes(0), (3 * 128, 0));
    // One of the two goes, the oldest; the last write finds its line gone, and one of two again.
    assert_eq!(media_writes(1), (2 * 128, 0));
    assert_eq!(media_writes(2), (0, 1), "both stay, and the last write merges");
}

/// What a handler is told: to hold this value for the first bytes of a line, or to have the oldest that it
/// holds written.
#[derive(Debug)]
enum Told {
    Hold(u8),
    Write,
}

impl SchemeMessage for Told {
    fn digest(&self) -> u64 {
        0
    }
}

/// A handler that holds values of one line, and has every read wait for all of them.
#[derive(Debug, Default)]
struct Holder {
    mask: u128,
    held: Vec<(u64, u8)>,
    tokens: u64,
    /// It has them written behind an undo log, to lines of their own: rows of bank 0.
    logs: bool,
    written_at: Arc<Mutex<Vec<Time>>>,
}

impl Handler for Holder {
    fn message(&mut self, _: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        match opened(message) {
            Told::Hold(value) => {
                self.held.push((self.tokens, value));
                self.tokens += 1;
            }
            Told::Write => {
                let (token, value) = self.held[0];
                if self.logs {
                    self.held.remove(0);
                }
                let author = Author::HeldRegion { controller: 0, order: 0, region: 0 };
                let bytes = Box::new([value; 128]);
                let line = NVM_BASE + if self.logs { bank0(token % 15) } else { 0 };
                outbox.flush(Flush { token, author, line, mask: self.mask, bytes, logged: self.logs, plain: false });
            }
        }
    }
}

impl ControllerHandler for Holder {
    fn event(&mut self, event: &ControllerEvent, outbox: &mut Outbox) {
        if let ControllerEvent::Flushed(token) = *event {
            self.written_at.lock().unwrap().push(outbox.now());
            self.held.retain(|held| held.0 != token);
        }
    }

    fn overlay(&self, line: u64, _: u128, bytes: &mut [u8; 128]) -> bool {
        let Some(&(_, value)) = self.held.last().filter(|_| line == NVM_BASE) else { return false };
        bytes[0] = value;
        true
    }

    fn awaited(&mut self, _: u64, _: u128, _: &mut Outbox) -> SmallVec<[u64; 2]> {
        self.held.iter().map(|held| held.0).collect()
    }

    fn holds(&self, _: u64) -> bool {
        !self.held.is_empty()
    }

    fn lines(&self) -> BTreeMap<u64, u128> {
        BTreeMap::new()
    }
}

fn told(at: Time, told: Told) -> (Time, ControllerMsg) {
    (at, ControllerMsg::Peer(PeerMessage { from: Peer::Sm(0), message: Box::new(told) }))
}

#[test]
fn a_read_that_waits_for_held_stores_is_repeated_once_when_they_are_written() {
    let held = |mask: u128, script: Vec<(Time, ControllerMsg)>| {
        let (seen, counters, _) = run_with(spec(), Some(Box::new(Holder { mask, ..Holder::default() })), script);
        assert_eq!(counters.nvm_reads, 1, "it is one request");
        (seen, counters.nvm_read_bytes)
    };
    // Row and column: 124 + 36 ns, 4 ns on the bus, links.
    let (alone, bytes) = held(1, vec![(100, read(NVM_BASE, 3))]);
    assert_eq!((data_times(&alone), bytes), (vec![(3, 266)], 128));
    let script = |written: Time| {
        let stores = [told(50, Told::Hold(5)), (100, read(NVM_BASE, 3))];
        // A younger store comes, and goes on being held.
        stores.into_iter().chain([told(300, Told::Hold(6)), told(written, Told::Write)]).collect()
    };
    // What it got first is dropped. Its row is open now.
    let (seen, bytes) = held(1, script(1000));
    assert_eq!(seen, [Seen::Data { at: 1000 + 42, tag: 3, first: 6 }]);
    assert_eq!(bytes, 256, "the media are read again");
    // The write queue has all that it wants: as for any read.
    let (seen, bytes) = held(FULL, script(1000));
    assert_eq!(seen, [Seen::Data { at: 1000 + 12, tag: 3, first: 6 }]);
    assert_eq!(bytes, 128);
}

/// When flushes that are asked for at these times are in the write queue, and the latency of a read of
/// another bank among them.
fn flushes(spec: ControllerSpec, mask: u128, logs: bool, times: &[Time]) -> (Vec<Time>, Option<Time>) {
    let written_at = Arc::new(Mutex::new(Vec::new()));
    let mut script: Vec<(Time, ControllerMsg)> =
        times.iter().flat_map(|&at| [told(at, Told::Hold(1)), told(at, Told::Write)]).collect();
    script.push((30_050, read(NVM_BASE + 2048, 9)));
    script.sort_by_key(|(at, _)| *at);
    let handler = Holder { mask, logs, written_at: written_at.clone(), ..Holder::default() };
    let (seen, ..) = run_with(spec, Some(Box::new(handler)), script);
    let written_at = written_at.lock().unwrap().clone();
    (written_at, data_times(&seen).first().map(|(_, at)| at - 30_050))
}

#[test]
fn a_flush_with_an_undo_log_waits_for_the_bytes_that_it_replaces() {
    let at = |logs, times: &[Time]| flushes(spec(), FULL, logs, times).0;
    assert_eq!(at(false, &[100]), [101]);
    assert_eq!(at(true, &[100]), [101 + 124], "the row is opened");
    // Row after row of a bank: reads overlap with no other, as a bank has one row open.
    assert_eq!(at(true, &[100, 5_000, 10_000])[1..], [5_001 + 124, 10_001 + 124]);
}

#[test]
fn undo_logs_starve_no_read() {
    // Far more than the media take.
    let times: Vec<Time> = (0..2000).map(|i| 50 * i).collect();
    let (written, waited) = flushes(spec(), 1, true, &times);
    assert_eq!(written.len(), times.len());
    assert!(written[1999] > 1_000_000, "they wait for each other: {} ns", written[1999]);
    // Reads begin for what the write queue has room for: four at most.
    let most = 5 * (480 + 124 + 36);
    assert!(waited.is_some_and(|waited| waited < most), "a read of another bank waited {waited:?} ns");
}

#[test]
fn a_write_queue_with_one_free_entry_takes_a_flush_with_its_undo_log() {
    let one = ControllerSpec { write_queue_entries: 1, drain_high_entries: 1, drain_low_entries: 0, ..spec() };
    let idle = ControllerSpec { drain_idle_entries: 5, drain_high_entries: 6, write_queue_entries: 6, ..spec() };
    for spec in [one, idle] {
        let (written, _) = flushes(spec, 1, true, &[100, 200, 300, 400, 500, 600]);
        assert_eq!(written.len(), 6, "{written:?}");
    }
}
