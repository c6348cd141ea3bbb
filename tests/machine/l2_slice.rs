//! An L2 slice with its memory controller, seen by a requester: values in the order of arrival whatever hits, misses,
//! merges, evictions and partial writes happen underneath; and its latencies as a data sheet.

use std::any::Any;
use std::collections::BTreeMap;

use durawarp::engine::*;
use durawarp::kernel::ir::{AtomOp, Elem};
use durawarp::kernel::memory::{DRAM_BASE, Medium, NVM_BASE};
use durawarp::machine::address::Interleave;
use durawarp::machine::crossbar::PortEnd;
use durawarp::machine::l2::{L2Counters, L2Slice, L2Spec, L2Wiring, MshrUnit, WriteMiss};
use durawarp::machine::media::{BusSpec, Media, NvmSpec};
use durawarp::machine::memory_controller::{ControllerSpec, MemoryController, MemoryScheduler, PagePolicy};
use durawarp::machine::msg::{
    Atomics, Credit, Line, Msg, Payload, Request, RequestKind, SliceMsg, SmMsg, sectors_touched,
};
use durawarp::machine::persistence::{PastAck, PastL2, PersistSpec};
use durawarp::machine::ports::{self, Endpoint, Roster};
use durawarp::machine::replacement::Replacement;
use durawarp::persist::{AccessKind, Domain};
use proptest::prelude::*;

use super::memory_controller::{dram, filled, ns, persist};

/// A reply: when, and its payload's bytes or old values.
#[derive(Debug, Clone)]
struct Answer {
    at: Time,
    kind: RequestKind,
    bytes: Vec<u8>,
    old: Vec<u64>,
}

#[derive(Debug)]
struct Requester {
    script: Vec<(Time, Option<Request>)>,
    next: usize,
    answers: BTreeMap<u32, Answer>,
    credits: u32,
}

impl Component<Msg> for Requester {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        match message {
            Msg::Sm(SmMsg::Reply(reply)) => {
                let (bytes, old) = match &reply.payload {
                    Payload::Line(line) => (line.bytes.to_vec(), Vec::new()),
                    Payload::Atomics(a) => (Vec::new(), a.a[..usize::from(a.count)].to_vec()),
                    Payload::None if reply.kind.access() == AccessKind::WriteBack => Default::default(),
                    Payload::None | Payload::Persist(_) => panic!("every payload comes back"),
                };
                let answer = Answer { at: cx.now(), kind: reply.kind, bytes, old };
                assert!(self.answers.insert(reply.tag, answer).is_none(), "answered twice: {}", reply.tag);
            }
            Msg::Sm(SmMsg::Credit(Credit { packets, .. })) => self.credits += u32::from(packets),
            other => panic!("unexpected {other:?}"),
        }
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        while self.next < self.script.len() && self.script[self.next].0 <= cx.now() {
            let request = self.script[self.next].1.take().expect("sent once");
            cx.send(Port(0), SliceMsg::Request(request).into(), 0);
            self.next += 1;
        }
        if let Some((at, _)) = self.script.get(self.next) {
            cx.wake_at(*at);
        }
    }
}

const IMAGE: usize = 1 << 14;

fn initial(i: usize) -> u8 {
    (i * 7 + i / 256) as u8
}

/// What a run left: answers by tag, credits returned, final DRAM and NVM bytes, counters.
struct Ran {
    answers: BTreeMap<u32, Answer>,
    credits: u32,
    memory: [Vec<u8>; 2],
    counters: L2Counters,
}

/// 1 GHz everywhere, links of 1 ns to the slice and 10 ns to memory; one slice, one channel.
fn run(l2: L2Spec, memory_credits: (u32, u32), script: Vec<(Time, Request)>) -> Ran {
    run_by(l2, &persist(Domain::Adr), memory_credits, script)
}

/// The same by other readings of persistency.
fn run_by(l2: L2Spec, persist: &PersistSpec, memory_credits: (u32, u32), script: Vec<(Time, Request)>) -> Ran {
    let clock = Clock::of_period(1);
    let base = Timebase::of_khz(&[1_000_000]).expect("1 GHz");
    let roster = Roster::new(1, Interleave::new(1, 1, 256));
    let (own, of_controller) = (roster.ports(Endpoint::Slice(0)), roster.ports(Endpoint::Controller(0)));
    let dram = dram();
    let nvm = NvmSpec::through(&dram, ns(480));
    let bus = BusSpec { bytes_per_cycle: 32, read_to_write_ns: ns(2), write_to_read_ns: ns(6) };
    let controller = ControllerSpec {
        channels: 1,
        mapping: "ours".into(),
        read_queue_entries: 8,
        write_queue_entries: 4,
        ingress_reads: 8,
        ingress_writes: 4,
        drain_high_entries: 3,
        drain_low_entries: 1,
        drain_idle_entries: 0,
        drain_min_writes: 1,
        row_hit_cap: 4,
        page: PagePolicy::Open,
        page_timeout_ns: ns(10),
        scheduler: MemoryScheduler::Frfcfs,
        blacklist_streak: 4,
        blacklist_clear_cycles: 10_000,
        service_quantum_cycles: 10_000_000,
        service_history_permille: 875,
        starvation_cycles: 100_000,
        front_ns: ns(10),
        back_ns: ns(10),
        forward_ns: ns(5),
    };
    let image: Vec<u8> = (0..IMAGE).map(initial).collect();
    let media = Media::new(&dram, &nvm, &bus, clock, base);
    let mut controller =
        MemoryController::new(controller, clock, 5, of_controller, media, [filled(&image), filled(&image)]);
    controller.set_persistence(persist, false);
    let wiring = L2Wiring { clock, ports: own, memory_credits, buffer_packets: 4, port: PortEnd::new(clock, 32) };
    let mut t = Topology::new();
    let script: Vec<_> = script.into_iter().map(|(at, r)| (at, Some(r))).collect();
    let first = script.first().map_or(0, |s| s.0);
    let requester = Requester { script, next: 0, answers: BTreeMap::new(), credits: 0 };
    let requester = t.add("requester", Box::new(requester));
    let mut slice = L2Slice::new(l2, wiring);
    slice.set_persistence(persist, false);
    let slice = t.add("slice", Box::new(slice));
    let mc = t.add("mc", Box::new(controller));
    t.connect(requester, Port(0), slice, Link { latency: 1, phase: 0 });
    t.connect(slice, own.to(Endpoint::Sm(0)), requester, Link { latency: 1, phase: 0 });
    t.connect(slice, own.to(Endpoint::CommandProcessor), requester, Link { latency: 1, phase: 0 });
    t.connect(slice, own.to(Endpoint::Controller(0)), mc, Link { latency: 10, phase: 0 });
    t.connect(mc, Port(0), slice, Link { latency: 10, phase: 0 });
    t.wake_at(requester, first);
    let mut sim = Simulation::new(t).expect("a valid topology");
    let end = sim.run(&RunOptions::default());
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    let any = |id| -> &dyn Any { sim.component(id) };
    let (requester, slice, mc) = (any(requester), any(slice), any(mc));
    let requester = requester.downcast_ref::<Requester>().expect("the requester");
    let slice = slice.downcast_ref::<L2Slice>().expect("the slice");
    let mc = mc.downcast_ref::<MemoryController>().expect("the controller");
    let mut memory = [mc.image(Medium::Dram).to_vec(), mc.image(Medium::Nvm).to_vec()];
    for (line, bytes, dirty) in slice.dirty_lines() {
        let (medium, start) =
            if line >= NVM_BASE { (1, (line - NVM_BASE) as usize) } else { (0, (line - DRAM_BASE) as usize) };
        for i in (0..128).filter(|i| dirty >> i & 1 == 1) {
            memory[medium][start + i] = bytes[i];
        }
    }
    Ran { answers: requester.answers.clone(), credits: requester.credits, memory, counters: *slice.counters() }
}

fn l2() -> L2Spec {
    L2Spec {
        line_bytes: 128,
        slices: 1,
        slice_kb: 1,
        ways: 2,
        replacement: Replacement::Lru,
        replacement_seed: 0,
        mshr_entries: 4,
        mshr_unit: MshrUnit::Line,
        mshr_merges: 4,
        pipeline_cycles: 0,
        port_bytes: 32,
        atomic_pass_cycles: 1,
        reply_flits: 16,
        inclusive: false,
        write_miss: WriteMiss::Validate,
        interleave_bytes: 256,
    }
}

fn read(line: u64, tag: u32, sectors: u8) -> Request {
    Request {
        line,
        tag,
        from: ports::Requester::sm(0),
        kind: RequestKind::Read,
        sectors,
        payload: Payload::Line(Box::default()),
    }
}

fn write(line: u64, tag: u32, byte: u8, mask: u128) -> Request {
    let data = Box::new(Line { bytes: [byte; 128], mask, log: false, launch: 0 });
    let sectors = sectors_touched(mask);
    Request {
        line,
        tag,
        from: ports::Requester::sm(0),
        kind: RequestKind::Write,
        sectors,
        payload: Payload::Line(data),
    }
}

fn past(line: u64, tag: u32, byte: u8, mask: u128) -> Request {
    Request { kind: RequestKind::NonTemporal, ..write(line, tag, byte, mask) }
}

fn clwb(kind: RequestKind, line: u64, tag: u32) -> Request {
    Request { kind, payload: Payload::None, ..read(line, tag, 0) }
}

fn add(line: u64, tag: u32, offset: u8, amount: u64, lanes: u8) -> Request {
    let mut atomics = Atomics { op: AtomOp::Add, elem: Elem::U32, count: lanes, ..Atomics::default() };
    for lane in 0..usize::from(lanes) {
        atomics.lane[lane] = lane as u8;
        atomics.offset[lane] = offset;
        atomics.a[lane] = amount;
    }
    let payload = Payload::Atomics(Box::new(atomics));
    Request {
        line,
        tag,
        from: ports::Requester::sm(0),
        kind: RequestKind::Atomic,
        sectors: 1 << (offset / 32),
        payload,
    }
}

const MISS: Time = 10 + 124 + 36 + 1 + 10;

#[test]
fn a_miss_takes_memory_and_two_reply_flits_more_than_nothing_and_a_hit_takes_only_the_flits() {
    let script = vec![(100, read(DRAM_BASE, 1, 1)), (1000, read(DRAM_BASE, 2, 1))];
    let ran = run(l2(), (8, 4), script);
    assert_eq!(ran.answers[&1].at, 100 + 1 + MISS + 2 + 1);
    assert_eq!(ran.answers[&2].at, 1000 + 1 + 2 + 1);
    assert_eq!((ran.counters.reads, ran.counters.read_hits, ran.counters.fetches), (2, 1, 1));
}

#[test]
fn a_store_miss_fetches_nothing_and_its_acknowledgement_is_one_flit() {
    let ran = run(l2(), (8, 4), vec![(100, write(DRAM_BASE, 1, 9, 0xff))]);
    assert_eq!(ran.answers[&1].at, 100 + 1 + 1 + 1);
    assert_eq!(ran.counters.fetches, 0);
}

#[test]
fn a_load_then_a_store_to_a_missing_line_returns_the_old_bytes() {
    let script = vec![(0, read(DRAM_BASE, 1, 1)), (1, write(DRAM_BASE, 2, 9, u128::MAX)), (2, read(DRAM_BASE, 3, 1))];
    let ran = run(l2(), (8, 4), script);
    assert_eq!(ran.answers[&1].bytes[0], initial(0), "the load is older than the store");
    assert_eq!(ran.answers[&3].bytes[0], 9, "the second load is younger");
}

#[test]
fn sectors_of_a_line_that_is_being_fetched_are_asked_for_at_once_and_each_once() {
    let script = [(100, 1, 0b0001), (101, 2, 0b0100), (102, 3, 0b0101), (103, 4, 0b1100)];
    let script = script.map(|(at, tag, sectors)| (at, read(DRAM_BASE, tag, sectors)));
    let ran = run(l2(), (8, 4), script.into());
    let first = 100 + 1 + MISS + 2 + 1;
    assert_eq!(ran.answers[&1].at, first);
    // A cycle later in the row that is open, behind the first reply's two flits.
    assert_eq!(ran.answers[&2].at, first + 2);
    assert!(ran.answers[&4].at < first + 20, "{}", ran.answers[&4].at);
    assert_eq!((ran.counters.fetches, ran.counters.mshr_merges), (3, 3), "sectors 0, 2 and 3");
}

#[test]
fn a_line_waits_for_sectors_that_a_store_has_written_meanwhile() {
    // The store covers the sector that the load behind it asked memory for.
    let sector = 0xffff_ffff << 64;
    let mut script = vec![(100, read(DRAM_BASE, 1, 1)), (101, write(DRAM_BASE, 2, 9, sector))];
    script.extend([(102, read(DRAM_BASE, 3, 0b0100)), (2000, read(DRAM_BASE, 4, 0b0101))]);
    let ran = run(l2(), (8, 4), script);
    assert_eq!((ran.answers[&3].bytes[64], ran.answers[&4].bytes[64]), (9, 9));
    assert_eq!(ran.answers[&4].bytes[0], initial(0));
    assert_eq!(ran.memory[0][64..96], [9; 32]);
}

#[test]
fn a_fill_leaves_bytes_written_before_it_alone() {
    let script = vec![(0, write(DRAM_BASE, 1, 9, 0b110)), (1, read(DRAM_BASE, 2, 1))];
    let ran = run(l2(), (8, 4), script);
    assert_eq!(ran.answers[&2].bytes[..4], [initial(0), 9, 9, initial(3)]);
}

#[test]
fn atomics_are_performed_lane_by_lane() {
    let script =
        vec![(0, write(DRAM_BASE, 1, 0, u128::MAX)), (1, add(DRAM_BASE, 2, 8, 5, 4)), (2, add(DRAM_BASE, 3, 8, 1, 1))];
    let ran = run(l2(), (8, 4), script);
    assert_eq!(ran.answers[&2].old, [0, 5, 10, 15]);
    assert_eq!(ran.answers[&3].old, [20]);
    assert_eq!(ran.counters.atomic_lanes, 5);
}

#[test]
fn an_atomic_takes_a_pass_a_sector_and_one_more_for_each_lane_on_an_address() {
    // To a line that is there: when the reply comes, by the offsets of words and whether old values are wanted.
    let answered = |atomic_pass_cycles: u32, returns: bool, offsets: &[u8]| {
        let mut request = add(DRAM_BASE, 2, 0, 1, offsets.len() as u8);
        let Payload::Atomics(atomics) = &mut request.payload else { unreachable!("it is an atomic") };
        atomics.offset[..offsets.len()].copy_from_slice(offsets);
        atomics.returns = returns;
        let script = vec![(0, write(DRAM_BASE, 1, 0, u128::MAX)), (1000, request)];
        run(L2Spec { atomic_pass_cycles, ..l2() }, (8, 4), script).answers[&2].at
    };
    let passes = |offsets: &[u8]| (answered(10, false, offsets) - answered(0, false, offsets)) / 10;
    let words: Vec<u8> = (0..32).map(|word| 4 * word).collect();
    assert_eq!(passes(&words), 4, "32 words of four sectors");
    assert_eq!(passes(&[0; 32]), 32, "one word");
    assert_eq!(passes(&[0, 4, 8, 28]), 1, "one sector");
    assert_eq!(passes(&[0, 0, 4, 32, 36, 36, 36]), 2 + 3);
    // 32 words back are four flits of 32 bytes behind the header, which goes alone where nobody wants them.
    assert_eq!(answered(0, true, &words) - answered(0, false, &words), 4);
}

#[test]
fn credits_come_back_in_batches_of_a_quarter_buffer() {
    let script = (0..8).map(|i| (i, read(DRAM_BASE + 128 * i, i as u32, 1))).collect();
    assert_eq!(run(l2(), (8, 4), script).credits, 8);
}

#[test]
fn a_full_mshr_makes_the_next_request_wait_for_the_fill() {
    let counted = |mshr_merges: u32| {
        let script = (0..4).map(|i| (100 + i, read(DRAM_BASE, i as u32, 1))).collect();
        let counters = run(L2Spec { mshr_merges, ..l2() }, (8, 4), script).counters;
        (counters.mshr_merges, counters.stalls, counters.read_hits)
    };
    assert_eq!(counted(4), (3, 0, 0), "four requests, three of them merged");
    assert_eq!(counted(3), (2, 1, 1), "the fourth waits for the fill, and hits");
    assert_eq!(counted(1), (0, 1, 3));
}

/// Merges and stalls of reads of one line's sectors, a cycle apart, where MSHRs are of a unit.
fn merged_and_stalled(mshr_unit: MshrUnit, [mshr_entries, mshr_merges]: [u32; 2], sectors: &[u8]) -> (u64, u64) {
    let script = sectors.iter().enumerate().map(|(i, &s)| (100 + i as u64, read(DRAM_BASE, i as u32, s))).collect();
    let counters = run(L2Spec { mshr_unit, mshr_entries, mshr_merges, ..l2() }, (8, 4), script).counters;
    (counters.mshr_merges, counters.stalls)
}

#[test]
fn where_mshrs_are_of_sectors_each_sector_has_its_own_merges() {
    let sectors = [0b0001, 0b0010, 0b0100, 0b1000];
    assert_eq!(merged_and_stalled(MshrUnit::Sector, [4, 1], &sectors), (3, 0));
    assert_eq!(merged_and_stalled(MshrUnit::Line, [4, 1], &sectors), (0, 3), "one request at a time");
    assert_eq!(merged_and_stalled(MshrUnit::Sector, [4, 2], &[0b0011, 0b0010, 0b0001]), (2, 0));
    assert_eq!(merged_and_stalled(MshrUnit::Sector, [4, 2], &[0b0011, 0b0010, 0b0010]), (1, 1), "a third of sector 1");
}

#[test]
fn where_mshrs_are_of_sectors_each_sector_on_its_way_takes_one() {
    let sectors = [0b0001, 0b0010, 0b0100];
    assert_eq!(merged_and_stalled(MshrUnit::Sector, [3, 4], &sectors), (2, 0));
    assert_eq!(merged_and_stalled(MshrUnit::Sector, [2, 4], &sectors), (1, 1), "the third waits for a fill");
    assert_eq!(merged_and_stalled(MshrUnit::Line, [1, 4], &sectors), (2, 0), "a line takes one");
    // More sectors than there are MSHRs have their turn when none is in use.
    assert_eq!(merged_and_stalled(MshrUnit::Sector, [2, 4], &[0b0001, 0b1111]), (0, 1));
    assert_eq!(merged_and_stalled(MshrUnit::Sector, [2, 4], &[0b1111, 0b1111]), (1, 0));
}

#[test]
fn the_line_that_leaves_is_the_one_used_longest_ago() {
    // One set, of all eight lines.
    let spec = L2Spec { ways: 8, ..l2() };
    let line = |number: u64| DRAM_BASE + 128 * number;
    let uses = [
        ("a load", read(line(0), 20, 1)),
        ("a store", write(line(0), 20, 9, u128::MAX)),
        ("an atomic", add(line(0), 20, 0, 1, 1)),
    ];
    for (what, used) in uses {
        // Eight lines fill the set; the first is used again, so that the ninth takes the place of the second.
        let script = (0..8).map(|number| (1000 * number, read(line(number), number as u32, 1)));
        let script = script.chain([(8000, used), (9000, read(line(8), 8, 1))]);
        let again = [(10_000, read(line(0), 30, 1)), (11_000, read(line(1), 31, 1))];
        let ran = run(spec.clone(), (8, 4), script.chain(again).collect());
        let waited = |tag: u32, from: Time| ran.answers[&tag].at - from;
        // The row is open.
        assert_eq!((waited(30, 10_000), waited(31, 11_000)), (1 + 2 + 1, 1 + MISS - 124 + 2 + 1), "{what}");
        assert_eq!(ran.counters.fetches, 8 + 1 + 1, "{what}");
    }
}

fn write_back_all(tag: u32) -> Request {
    Request { kind: RequestKind::WriteBackAll, payload: Payload::None, ..read(NVM_BASE, tag, 0) }
}

#[test]
fn a_write_back_of_everything_writes_each_dirty_line_of_persistent_memory() {
    // A set of eight lines, the last but one of DRAM; the controller has room for one write at a time.
    let base = |number: u64| if number == 6 { DRAM_BASE } else { NVM_BASE };
    let stores = (0..8).map(|number| (number, write(base(number) + 128 * number, number as u32, 9, 1)));
    let again = [(4000, write(NVM_BASE, 21, 8, 1)), (5000, write_back_all(22)), (6000, write_back_all(23))];
    let script = stores.chain([(100, write_back_all(20))]).chain(again).collect();
    let ran = run(L2Spec { ways: 8, ..l2() }, (8, 1), script);
    assert_eq!(ran.counters.writebacks, 7 + 1, "the second time, one line is dirty");
    assert!(ran.answers[&20].at > 100 + 7 * 20, "seven times there and back: {}", ran.answers[&20].at);
    let waited = [(22, 5000), (23, 6000)].map(|(tag, from)| ran.answers[&tag].at - from);
    assert_eq!(waited, [1 + 10 + 10 + 1 + 1, 1 + 1 + 1], "there and back, and at once");
}

#[test]
fn a_write_back_of_everything_waits_for_the_fill_of_a_dirty_line() {
    let stored = || (100, write(NVM_BASE, 1, 9, 0b110));
    let all = || (110, write_back_all(3));
    let ran = run(l2(), (8, 4), vec![stored(), all()]);
    let way = 1 + 10 + 10 + 1 + 1;
    assert_eq!((ran.answers[&3].at, ran.counters.writebacks), (110 + way, 1), "to memory and back");
    // A load wants bytes beside those stored.
    let ran = run(l2(), (8, 4), vec![stored(), (105, read(NVM_BASE, 2, 1)), all()]);
    assert_eq!(ran.answers[&2].bytes[..4], [initial(0), 9, 9, initial(3)]);
    // The fill comes, the load's bytes take the data port for a cycle, and the line is written.
    assert_eq!((ran.answers[&3].at, ran.counters.writebacks), (105 + MISS + 1 + way, 1));
}

#[test]
fn a_store_miss_that_fetches_waits_for_the_sectors_that_it_writes_in_part() {
    let fetching = || L2Spec { write_miss: WriteMiss::Fetch, ..l2() };
    let two_sectors = (u128::MAX >> 96) | 0xff << 32;
    let script = vec![(100, write(DRAM_BASE, 1, 9, two_sectors)), (1000, write(DRAM_BASE, 2, 8, 1 << 40))];
    let ran = run(fetching(), (8, 4), script);
    assert_eq!(ran.answers[&1].at, 100 + 1 + MISS + 1 + 1, "the second of the two is written in part");
    assert_eq!((ran.answers[&2].at, ran.counters.fetches), (1000 + 1 + 1 + 1, 1), "it is there now");
    let ran = run(fetching(), (8, 4), vec![(100, write(DRAM_BASE, 1, 9, u128::MAX >> 64))]);
    assert_eq!((ran.answers[&1].at, ran.counters.fetches), (100 + 1 + 1 + 1, 0), "two whole sectors lack nothing");
}

#[test]
fn by_the_naive_reading_a_store_miss_goes_on_to_memory_and_reads_its_sectors() {
    let naive = || L2Spec { write_miss: WriteMiss::Naive, ..l2() };
    let script = vec![
        (100, write(NVM_BASE, 1, 9, 0xff)),
        (101, read(NVM_BASE, 2, 1)),
        (3000, write(NVM_BASE, 3, 8, 1)),
        (4000, read(NVM_BASE, 4, 1)),
    ];
    let ran = run(naive(), (8, 4), script);
    assert_eq!(ran.answers[&1].at, 100 + 1 + 1 + 1, "it waits for nothing");
    assert!(ran.answers[&2].at > 100 + MISS, "who comes then waits for the fill");
    assert_eq!(ran.answers[&2].bytes[..9], [9, 9, 9, 9, 9, 9, 9, 9, initial(8)]);
    assert_eq!(ran.answers[&4].bytes[..2], [8, 9], "a hit stays in the L2");
    assert_eq!((ran.counters.fetches, ran.counters.writebacks), (1, 0));
}

#[test]
fn a_write_back_to_the_l2_is_acknowledged_there_and_writes_nothing() {
    let ran = |kind| {
        let ran = run(l2(), (8, 4), vec![(100, write(NVM_BASE, 1, 9, 1)), (110, clwb(kind, NVM_BASE, 2))]);
        (ran.answers[&2].at - 110, ran.counters.writebacks)
    };
    assert_eq!(ran(RequestKind::WriteBack), (1 + 10 + 10 + 1 + 1, 1));
    assert_eq!(ran(RequestKind::WriteBackToL2), (1 + 1 + 1, 0));
}

#[test]
fn a_store_past_the_array_is_acknowledged_at_acceptance_or_when_its_cells_are_written() {
    let at = |past_ack| {
        let persist = PersistSpec { past_ack, ..persist(Domain::Adr) };
        let script = vec![(100, past(NVM_BASE, 1, 9, 1)), (100, past(DRAM_BASE, 2, 9, 1))];
        let ran = run_by(l2(), &persist, (8, 4), script);
        [ran.answers[&1].at, ran.answers[&2].at]
    };
    let [nvm, dram] = at(PastAck::Accept);
    assert_eq!(nvm, 100 + 1 + 10 + 10 + 1 + 1);
    let late = at(PastAck::Media);
    assert!(late[0] >= nvm + 480, "the cells of its write: {late:?}");
    assert_eq!(late[1], dram, "DRAM has no such end");
}

#[test]
fn a_store_past_the_array_leaves_a_copy_that_has_its_bytes_or_none() {
    let ran = |past_l2| {
        let persist = PersistSpec { past_l2, ..persist(Domain::Adr) };
        let script = vec![
            (100, write(NVM_BASE, 1, 7, 0b110)),
            (1000, past(NVM_BASE, 2, 9, 0b011)),
            (3000, read(NVM_BASE, 3, 1)),
        ];
        let ran = run_by(l2(), &persist, (8, 4), script);
        assert_eq!(ran.answers[&3].bytes[..4], [9, 9, 7, initial(3)]);
        (ran.counters.writebacks, ran.answers[&3].at - 3000 > MISS)
    };
    // The store before had fetched nothing, so that the load misses anyhow; the other dirty byte leaves with
    // the copy.
    assert_eq!(ran(PastL2::Update).0, 0);
    assert_eq!(ran(PastL2::Invalidate), (1, true));
}

/// A load asks for sector 0; what follows waits for it, but for the fetch of sector 1 by the last of it.
fn behind_a_fill(past_l2: PastL2, write_miss: WriteMiss, then: Vec<Request>) -> Ran {
    let persist = PersistSpec { past_l2, ..persist(Domain::Adr) };
    let script = std::iter::once(read(NVM_BASE, 1, 1)).chain(then).zip(100..).map(|(request, at)| (at, request));
    run_by(L2Spec { write_miss, ..l2() }, &persist, (8, 4), script.collect())
}

#[test]
fn a_fill_brings_nothing_older_than_what_left_for_memory_while_it_was_under_way() {
    for past_l2 in [PastL2::Update, PastL2::Invalidate] {
        let then = vec![past(NVM_BASE, 2, 9, 0b11 << 32), read(NVM_BASE, 3, 0b10)];
        let ran = behind_a_fill(past_l2, WriteMiss::Fetch, then);
        assert_eq!(ran.answers[&3].bytes[32..35], [9, 9, initial(34)], "{past_l2:?}");
    }
    for kind in [RequestKind::WriteBack, RequestKind::Flush] {
        let then = vec![write(NVM_BASE, 2, 9, 0b11 << 32), clwb(kind, NVM_BASE, 3), read(NVM_BASE, 4, 0b10)];
        let ran = behind_a_fill(PastL2::Update, WriteMiss::Validate, then);
        assert_eq!(ran.answers[&4].bytes[32..35], [9, 9, initial(34)], "{kind:?}");
    }
}

#[derive(Debug, Clone)]
enum Op {
    Clean(RequestKind),
    Past(u8, u128),
    Read(u8),
    Write(u8, u128),
    Add(u8, u8),
}

fn ops() -> impl Strategy<Value = Vec<(u64, u8, Op, u64)>> {
    let mask = prop_oneof![
        Just(u128::MAX),
        (0u32..32, 1u32..5).prop_map(|(at, n)| ((1u128 << (4 * n)) - 1) << (4 * at)),
        any::<u128>().prop_filter("some byte", |m| *m != 0),
    ];
    let op = prop_oneof![
        (1u8..16).prop_map(Op::Read),
        (any::<u8>(), mask.clone()).prop_map(|(b, m)| Op::Write(b, m)),
        (any::<u8>(), mask).prop_map(|(b, m)| Op::Past(b, m)),
        (0u8..32, 1u8..5).prop_map(|(at, lanes)| Op::Add(at * 4, lanes)),
        prop_oneof![Just(RequestKind::WriteBack), Just(RequestKind::Flush)].prop_map(Op::Clean),
    ];
    prop::collection::vec((0u64..24, 0u8..2, op, 0u64..30), 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Against bytes in an array, request by request.
    #[test]
    fn every_request_sees_exactly_what_came_before_it_by_every_reading(
        ops in ops(), miss in 0usize..3, leaves in any::<bool>(), late in any::<bool>()
    ) {
        let mut reference = [(); 2].map(|()| (0..IMAGE).map(initial).collect::<Vec<u8>>());
        let mut expected: BTreeMap<u32, (u8, Vec<u8>, Vec<u64>)> = BTreeMap::new();
        let mut script = Vec::new();
        let mut now = 0;
        for (tag, (line, medium, op, gap)) in ops.iter().enumerate() {
            let tag = tag as u32;
            now += gap;
            let base = if *medium == 1 { NVM_BASE } else { DRAM_BASE };
            let address = base + 128 * line;
            let bytes = &mut reference[usize::from(*medium)][128 * *line as usize..128 * *line as usize + 128];
            match op {
                Op::Read(sectors) => {
                    expected.insert(tag, (*sectors, bytes.to_vec(), Vec::new()));
                    script.push((now, read(address, tag, *sectors)));
                }
                Op::Clean(kind) => script.push((now, clwb(*kind, address, tag))),
                Op::Write(byte, mask) | Op::Past(byte, mask) => {
                    for i in (0..128).filter(|i| mask >> i & 1 == 1) {
                        bytes[i] = *byte;
                    }
                    let store = if matches!(op, Op::Past(..)) { past } else { write };
                    script.push((now, store(address, tag, *byte, *mask)));
                }
                Op::Add(offset, lanes) => {
                    let at = usize::from(*offset);
                    let mut olds = Vec::new();
                    for _ in 0..*lanes {
                        let old = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
                        olds.push(u64::from(old));
                        bytes[at..at + 4].copy_from_slice(&old.wrapping_add(77).to_le_bytes());
                    }
                    expected.insert(tag, (0, Vec::new(), olds));
                    script.push((now, add(address, tag, *offset, 77, *lanes)));
                }
            }
        }
        let requests = script.len();
        let write_miss = [WriteMiss::Validate, WriteMiss::Fetch, WriteMiss::Naive][miss];
        let past_l2 = if leaves { PastL2::Invalidate } else { PastL2::Update };
        let past_ack = if late { PastAck::Media } else { PastAck::Accept };
        let persist = PersistSpec { past_l2, past_ack, ..persist(Domain::Adr) };
        let ran = run_by(L2Spec { write_miss, ..l2() }, &persist, (2, 1), script);
        prop_assert_eq!(ran.answers.len(), requests);
        for (tag, (sectors, bytes, olds)) in expected {
            let answer = &ran.answers[&tag];
            if answer.kind == RequestKind::Read {
                for i in (0..128).filter(|i| sectors >> (i / 32) & 1 == 1) {
                    prop_assert_eq!(answer.bytes[i], bytes[i], "request {} byte {}", tag, i);
                }
            } else {
                prop_assert_eq!(&answer.old, &olds, "request {}", tag);
            }
        }
        prop_assert_eq!(&ran.memory, &reference);
    }
}
