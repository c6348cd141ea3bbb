//! A home slice among two cores, a NIC and memory that are played: what the NIC writes. A tick is a cycle of
//! the slice, which takes 5; links take 10, a write to memory is durable 50 ticks after it was sent.

use std::any::Any;
use std::collections::BTreeSet;

use super::*;
use crate::address::Interleave;
use crate::coherence::{LineData, OsMsg, Want};
use crate::msg::ControllerMsg;
use crate::ports::{Endpoint, Roster};
use crate::replacement::Replacement;
use durawarp_engine::{ComponentId, Link, RunEnd, RunOptions, Simulation, Topology};
use durawarp_kernel::memory::NVM_BASE;
use durawarp_persist::handler::{Dependency, Handler, HomeEvent, HomeHandler, Outbox, Peer, SchemeMessage, opened};

/// From line 1 to the next of its set, of 16 sets of one line: the index is folded.
const APART: u64 = 15;

fn roster() -> Roster {
    Roster { clients: 1, ddio: true, ..Roster::of_cores(2, Interleave::new(1, 1, 64)) }
}

/// A line by its number.
fn line(number: u64) -> u64 {
    NVM_BASE + CPU_LINE_BYTES * number
}

fn bytes(of: u8) -> Box<Line> {
    Box::new(Line { bytes: [of; 128], mask: CPU_LINE_MASK, log: false, launch: 0 })
}

/// What a neighbour of the slice heard: when, what, and the first byte of a line that came with it.
type Heard = (Time, String, u8);

/// A core that has changed each line it is probed for, and brings what a recalled line depends on; the NIC, the
/// OS, or memory, whose lines have the byte 9.
#[derive(Debug)]
struct Neighbour {
    role: Endpoint,
    heard: Vec<Heard>,
}

impl Neighbour {
    fn reply(&self, message: HomeMsg, delay: Time, cx: &mut Ctx<'_, Msg>) {
        cx.send(roster().ports(self.role).to(Endpoint::Home(0)), message.into(), delay);
    }
}

impl Component<Msg> for Neighbour {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        let (what, byte) = match message {
            Msg::Core(CoreMsg::Data(LineData { data, dependencies, .. }))
            | Msg::Os(OsMsg::Data(LineData { data, dependencies, .. })) => {
                assert!(dependencies.is_none() || self.role != Endpoint::Os, "what the OS reads is not followed");
                ("data".to_owned(), data.bytes[0])
            }
            Msg::Core(CoreMsg::Probe { line, invalidate, mut room, recall }) => {
                let Endpoint::Core(core) = self.role else { panic!("{:?} is probed", self.role) };
                room.bytes = [7; 128];
                let from = Requester::core(core);
                let on = || Box::new(Dependencies::from_slice(&[Dependency { hart: core, id: 1 }]));
                let ack = HomeMsg::ProbeAck { line, from, dirty: true, room, dependencies: recall.then(on) };
                self.reply(ack, 0, cx);
                (if recall { "recall".to_owned() } else { format!("probe {invalidate}") }, 0)
            }
            Msg::Nic(NicMsg::Written { tag, dependencies, .. }) => {
                let on = dependencies.map(|on| on.iter().map(|on| on.id).collect::<Vec<_>>()).unwrap_or_default();
                (format!("written {tag} {on:?}"), 0)
            }
            Msg::Core(CoreMsg::PutAck { .. }) => ("put".to_owned(), 0),
            Msg::Core(CoreMsg::Cleaned { .. }) => ("cleaned".to_owned(), 0),
            Msg::Controller(ControllerMsg::MemoryRead(read)) => {
                let data = MemoryData { tag: read.tag, sectors: read.sectors, data: bytes(9) };
                self.reply(data.into(), 0, cx);
                ("read".to_owned(), 0)
            }
            Msg::Controller(ControllerMsg::MemoryWrite(write)) => {
                let (token, byte) = (write.token, write.data.bytes[0]);
                let at = cx.now() + 30;
                let accepted = MemoryAccepted { token, durable: true, at, room: write.data };
                self.reply(accepted.into(), 30, cx);
                ("write".to_owned(), byte)
            }
            other => panic!("{other:?}"),
        };
        self.heard.push((cx.now(), what, byte));
    }

    fn wake(&mut self, _: &mut Ctx<'_, Msg>) {}
}

/// A line may leave.
#[derive(Debug)]
struct Release(u64);

impl SchemeMessage for Release {
    fn digest(&self) -> u64 {
        self.0
    }
}

/// Keeps lines that depend on something until it is told.
#[derive(Debug, Default)]
struct Keeper(BTreeSet<u64>);

impl HomeHandler for Keeper {
    fn keeps(&mut self, line: u64) -> bool {
        self.0.contains(&line)
    }

    fn event(&mut self, event: &HomeEvent<'_>, outbox: &mut Outbox) {
        match *event {
            HomeEvent::Taken { line, .. } => drop(self.0.insert(line)),
            HomeEvent::Given { line, .. } if self.0.contains(&line) => outbox.depend(Dependency { hart: 0, id: 3 }),
            HomeEvent::Given { .. } => {}
        }
    }
}

impl Handler for Keeper {
    fn message(&mut self, _: Peer, message: Box<dyn SchemeMessage>, _: &mut Outbox) {
        let Release(line) = opened(message);
        self.0.remove(&line);
    }
}

/// The NIC writes a line; an entry of its own makes it durable, or nothing does.
fn write(number: u64, of: u8, persistent: bool) -> HomeMsg {
    let on = || Box::new(Dependencies::from_slice(&[Dependency { hart: 2, id: 1 }]));
    let dependencies = persistent.then(on);
    let (line, from, tag) = (line(number), Requester::nic(2), u16::from(of));
    HomeMsg::Write { line, from, tag, data: bytes(of), dependencies }
}

fn get(core: u16, number: u64, want: Want) -> HomeMsg {
    HomeMsg::Get { line: line(number), from: Requester::core(core), tag: 0, want, room: bytes(0) }
}

/// A core gives up a line that it has changed to 7, as its answers to probes say.
fn put(core: u16, number: u64) -> HomeMsg {
    let from = Requester::core(core);
    HomeMsg::Put { line: line(number), from, data: bytes(7), dependencies: None }
}

/// A clean of a core that has not changed the line.
fn clean(core: u16, number: u64, flush: bool, at_once: bool) -> HomeMsg {
    let (from, room) = (Requester::core(core), bytes(0));
    HomeMsg::Clean { line: line(number), from, tag: 0, flush, at_once, dirty: false, room, dependencies: None }
}

fn release(number: u64) -> HomeMsg {
    HomeMsg::Peer(PeerMessage { from: Peer::Nic, message: Box::new(Release(line(number))) })
}

/// What core 0, core 1, the NIC and memory hear when messages come to the slice at these times, under a scheme
/// that keeps lines; what it counted.
fn played(messages: Vec<(Time, HomeMsg)>) -> ([Vec<Heard>; 4], HomeCounters) {
    played_under(Some(Box::new(Keeper::default())), false, messages)
}

/// The same under any scheme, or none, over a memory with caches of its own or without.
fn played_under(
    handler: Option<Box<dyn HomeHandler>>,
    memory_caches: bool,
    messages: Vec<(Time, HomeMsg)>,
) -> ([Vec<Heard>; 4], HomeCounters) {
    played_in(spec(1, Replacement::Lru), handler, memory_caches, messages)
}

/// A slice of 1 KiB.
fn spec(ways: u32, replacement: Replacement) -> LlcSpec {
    LlcSpec {
        slices: 1,
        slice_kb: 1,
        ways,
        replacement,
        replacement_seed: 0,
        mshr_entries: 2,
        request_cycles: 10,
        service_cycles: 5,
        reply_cycles: 10,
        interleave_bytes: 64,
    }
}

/// The same in a slice with these parameters.
fn played_in(
    spec: LlcSpec,
    handler: Option<Box<dyn HomeHandler>>,
    memory_caches: bool,
    messages: Vec<(Time, HomeMsg)>,
) -> ([Vec<Heard>; 4], HomeCounters) {
    let own = roster().ports(Endpoint::Home(0));
    let mut home = HomeSlice::new(spec, HomeWiring { clock: Clock::of_period(1), ports: own, memory_credits: (1, 4) });
    home.host(handler);
    if memory_caches {
        home.set_memory_caches();
    }
    let mut topology = Topology::new();
    let slice = topology.add("home", Box::new(home));
    let roles = [Endpoint::Core(0), Endpoint::Core(1), Endpoint::Nic, Endpoint::Controller(0), Endpoint::Os];
    for role in roles {
        let id = topology.add(role.to_string(), Box::new(Neighbour { role, heard: Vec::new() }));
        topology.connect(slice, own.to(role), id, Link { latency: 10, phase: 0 });
        topology.connect(id, roster().ports(role).to(Endpoint::Home(0)), slice, Link { latency: 10, phase: 0 });
    }
    // Ports are dense: that of the NIC's client comes before those of slices.
    let client = topology.add("client", Box::new(Neighbour { role: Endpoint::Client(0), heard: Vec::new() }));
    let to_client = roster().ports(Endpoint::Nic).to(Endpoint::Client(0));
    topology.connect(ComponentId(3), to_client, client, Link { latency: 10, phase: 0 });
    messages.into_iter().for_each(|(at, message)| topology.post(slice, at, message.into()));
    let mut simulation = Simulation::new(topology).unwrap();
    let end = simulation.run(&RunOptions::default());
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    let of = |id: u32| simulation.component(ComponentId(id)) as &dyn Any;
    let heard = [1, 2, 3, 4].map(|id| of(id).downcast_ref::<Neighbour>().unwrap().heard.clone());
    (heard, *of(0).downcast_ref::<HomeSlice>().unwrap().counters())
}

fn heard(at: Time, what: &str, byte: u8) -> Heard {
    (at, what.to_owned(), byte)
}

#[test]
fn a_line_of_the_nics_takes_a_place_without_being_read_and_is_what_cores_get() {
    let ([_, core, nic, memory], counters) = played(vec![(100, write(1, 4, true)), (200, get(1, 1, Want::Shared))]);
    assert_eq!((nic, memory), (vec![heard(115, "written 4 []", 0)], vec![]));
    assert_eq!(core, [heard(215, "data", 4)]);
    assert_eq!((counters.nic_writes, counters.nic_write_hits, counters.fetches), (1, 0, 0));
}

#[test]
fn a_line_that_makes_room_ages_its_set_as_srrip_asks() {
    // Lines of one set of two ways. 0 and 9 are hit. 18 takes the place of 0, which makes 9 distant; so 27
    // takes the place of 9, and 18 is there still.
    let reads = [0, 9, 0, 9, 18, 27, 18];
    let messages = (1..).zip(reads).map(|(nth, line)| (100 * nth, get(0, line, Want::Once))).collect();
    let counters = played_in(spec(2, Replacement::Srrip), None, false, messages).1;
    assert_eq!((counters.gets, counters.fetches, counters.get_hits), (7, 4, 3));
}

#[test]
fn every_copy_leaves_before_a_line_is_overwritten_and_what_it_depended_on_goes_with_the_answer() {
    let script = vec![
        (100, get(0, 1, Want::Exclusive)),
        (200, write(1, 4, true)),
        (201, get(1, 1, Want::Shared)),
        (300, write(1, 5, true)),
    ];
    let ([owner, reader, nic, _], counters) = played(script);
    // Fetched in 20 ticks; probed at 200 + 5 + 10, answered 10 later.
    assert_eq!(owner, [heard(135, "data", 9), heard(215, "probe true", 0)]);
    assert_eq!(nic[0], heard(225 + 15, "written 4 []", 0));
    // What the owner had changed is overwritten, also for those that waited.
    assert_eq!(reader, [heard(240, "data", 4), heard(315, "probe true", 0)]);
    assert_eq!(nic[1], heard(340, "written 5 [3]", 0), "the first write is not durable");
    assert_eq!(counters.nic_write_hits, 2);
}

#[test]
fn a_line_stays_until_it_is_durable_and_leaves_unwritten_in_that_very_tick() {
    let script = |at| vec![(100, write(1, 4, true)), (110, write(1 + APART, 5, true)), (at, release(1))];
    for at in [400, 401] {
        let ([_, _, nic, memory], counters) = played(script(at));
        assert_eq!(nic, [heard(115, "written 4 []", 0), heard(at + 15, "written 5 []", 0)]);
        assert_eq!((memory, counters.dropped_lines, counters.held_fetches), (vec![], 1, 1));
    }
}

#[test]
fn a_line_that_nothing_makes_durable_is_written_when_it_leaves_and_answered_for_when_that_is_durable() {
    let script = vec![(100, write(1, 4, false)), (200, write(1 + APART, 5, false)), (201, write(1, 6, true))];
    let ([_, _, nic, memory], counters) = played(script);
    assert_eq!(memory, [heard(210, "write", 4), heard(211, "write", 5)]);
    let expected = [heard(115, "written 4 []", 0), heard(215, "written 5 []", 0), heard(265, "written 6 []", 0)];
    assert_eq!(nic, expected, "at 250 the write of 4 is durable");
    assert_eq!((counters.writebacks, counters.dropped_lines), (2, 0));
}

#[test]
fn a_put_that_crosses_a_probe_brings_its_bytes_once() {
    // Core 0 is asked at 215 to share what it has put at 205; core 1 has that cleaned without waiting for the answer.
    let crossed = |clean_at| {
        let script = vec![
            (100, get(0, 1, Want::Exclusive)),
            (200, get(1, 1, Want::Once)),
            (205, put(0, 1)),
            (clean_at, clean(1, 1, false, true)),
            (400, get(1, 1 + APART, Want::Once)),
        ];
        played_under(None, false, script)
    };
    let ([owner, reader, _, memory], counters) = crossed(210);
    assert_eq!(owner, [heard(135, "data", 9), heard(215, "probe false", 0), heard(220, "put", 0)]);
    // Core 1 has its line with the answer, at 225, and the clean when memory has the bytes.
    assert_eq!(reader[0], heard(240, "data", 7));
    assert_eq!(reader[1], heard(275, "cleaned", 0));
    // Memory has the bytes, so that the line makes room without a write.
    let [read, write] = ["read", "write"].map(|what| move |at, byte| heard(at, what, byte));
    assert_eq!(memory, [read(110, 0), write(220, 7), read(410, 0)]);
    assert_eq!((counters.writebacks, counters.dirty_probe_acks), (1, 1));
    // With the clean one tick after the answer it is the same: the answer brings nothing.
    let ([.., memory], _) = crossed(226);
    assert_eq!(memory, [read(110, 0), write(236, 7), read(410, 0)]);
}

#[test]
fn a_clean_that_does_not_wait_asks_the_core_that_may_have_newer_bytes() {
    let script = vec![(100, get(0, 1, Want::Exclusive)), (200, clean(1, 1, false, true))];
    let ([owner, cleaner, _, memory], _) = played_under(None, false, script);
    assert_eq!(owner, [heard(135, "data", 9), heard(215, "probe false", 0)]);
    assert_eq!((memory[1].clone(), cleaner), (heard(235, "write", 7), vec![heard(290, "cleaned", 0)]));
}

#[test]
fn readers_lose_a_line_that_the_nic_overwrites_once_and_both_of_them() {
    let script = vec![
        (100, get(0, 1, Want::Shared)),
        (200, get(1, 1, Want::Shared)),
        (300, write(1, 4, true)),
        (400, write(1, 5, true)),
    ];
    let ([first, second, nic, _], counters) = played(script);
    assert_eq!(first, [heard(135, "data", 9), heard(215, "probe false", 0), heard(315, "probe true", 0)]);
    assert_eq!(second, [heard(240, "data", 7), heard(315, "probe true", 0)]);
    // Nobody has the line when it is written again.
    assert_eq!(nic, [heard(340, "written 4 []", 0), heard(415, "written 5 [3]", 0)]);
    assert_eq!(counters.probes, 3);
}

#[test]
fn a_line_that_a_core_brings_when_it_is_recalled_stays_until_it_may_leave_and_no_other_word_frees_it() {
    for at in [400, 401] {
        let script = vec![
            (100, get(0, 1, Want::Exclusive)),
            (200, get(1, 1 + APART, Want::Once)),
            (300, release(5)),
            (at, release(1)),
        ];
        let ([owner, reader, _, memory], counters) = played(script);
        assert_eq!(owner, [heard(135, "data", 9), heard(215, "recall", 0)]);
        assert_eq!(reader, [heard(at + 15, "data", 9)]);
        assert_eq!(memory, [heard(110, "read", 0), heard(210, "read", 0)], "the scheme has written it");
        assert_eq!((counters.kept_lines, counters.dropped_lines), (1, 1));
    }
}

#[test]
fn what_an_entry_makes_durable_after_plain_bytes_is_not_written_and_the_os_follows_nothing() {
    let os = Requester::os(2);
    let read = HomeMsg::Get { line: line(1), from: os, tag: 0, want: Want::Once, room: bytes(0) };
    let script = vec![
        (100, write(1, 4, false)),
        (200, write(1, 6, true)),
        (250, read),
        (300, release(1)),
        (400, write(1 + APART, 5, true)),
    ];
    let ([_, _, nic, memory], counters) = played(script);
    assert_eq!(memory, []);
    assert_eq!((nic.len(), counters.dropped_lines, counters.writebacks), (3, 1, 0));
}

#[test]
fn a_line_of_the_nics_needs_no_credit_of_memorys() {
    // Memory has room for one read, which is under way.
    let script = vec![(100, get(0, 2, Want::Shared)), (101, write(1, 4, true))];
    let ([reader, _, nic, _], _) = played(script);
    assert_eq!((nic, reader), (vec![heard(116, "written 4 []", 0)], vec![heard(135, "data", 9)]));
}

#[test]
fn a_clean_of_a_line_that_is_not_here_goes_on_to_memorys_cache_if_there_is_one() {
    let cleaned = |caches| played_under(None, caches, vec![(100, clean(0, 1, false, false))]).0;
    let [core, .., memory] = cleaned(false);
    assert_eq!((core, memory), (vec![heard(115, "cleaned", 0)], vec![]));
    let [core, .., memory] = cleaned(true);
    assert_eq!((core, memory), (vec![heard(165, "cleaned", 0)], vec![heard(110, "write", 0)]));
}
