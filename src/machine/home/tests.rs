//! A home slice among two cores, a NIC and memory that are played: what the NIC writes. A tick is a cycle of
//! the slice, which takes 5; links take 10, a write to memory is durable 50 ticks after it was sent.

use std::any::Any;
use std::collections::BTreeSet;

use super::*;
use crate::engine::{ComponentId, Link, RunEnd, RunOptions, Simulation, Topology};
use crate::kernel::memory::NVM_BASE;
use crate::machine::address::Interleave;
use crate::machine::coherence::Want;
use crate::machine::ports::{Endpoint, Roster};
use crate::persist::handler::{Admission, Dependency, Event, Offer, Outbox, Peer, SchemeMessage, opened};

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
    Box::new(Line { bytes: [of; 128], mask: CPU_LINE_MASK, log: false })
}

/// What a neighbour of the slice heard: when, what, and the first byte of a line that came with it.
type Heard = (Time, String, u8);

/// A core that has changed each line it is probed for, the NIC, or memory, whose lines have the byte 9.
#[derive(Debug)]
struct Neighbour {
    role: Endpoint,
    heard: Vec<Heard>,
}

impl Neighbour {
    fn reply(&self, message: Msg, delay: Time, cx: &mut Ctx<'_, Msg>) {
        cx.send(roster().ports(self.role).to(Endpoint::Slice(0)), message, delay);
    }
}

impl Component<Msg> for Neighbour {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        let (what, byte) = match message {
            Msg::Cpu(CpuMsg::Data { data, .. }) => ("data".to_owned(), data.bytes[0]),
            Msg::Cpu(CpuMsg::Probe { line, invalidate, mut room, .. }) => {
                let Endpoint::Core(core) = self.role else { panic!("{:?} is probed", self.role) };
                room.bytes = [7; 128];
                let from = Requester::core(core);
                let ack = CpuMsg::ProbeAck { line, from, dirty: true, room, dependencies: None };
                self.reply(Msg::Cpu(ack), 0, cx);
                (format!("probe {invalidate}"), 0)
            }
            Msg::Cpu(CpuMsg::Written { tag, dependencies, .. }) => {
                let on = dependencies.map(|on| on.iter().map(|on| on.id).collect::<Vec<_>>()).unwrap_or_default();
                (format!("written {tag} {on:?}"), 0)
            }
            Msg::MemoryRead(read) => {
                let data = Msg::MemoryData { tag: read.tag, sectors: read.sectors, data: bytes(9) };
                self.reply(data, 0, cx);
                ("read".to_owned(), 0)
            }
            Msg::MemoryWrite(write) => {
                let (token, byte) = (write.token, write.data.bytes[0]);
                let at = cx.now() + 30;
                self.reply(Msg::MemoryAccepted { token, durable: true, at, room: write.data }, 30, cx);
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

impl Handler for Keeper {
    fn interests(&self) -> crate::persist::handler::Interests {
        crate::persist::handler::Interests { dependencies: true, ..Default::default() }
    }

    fn offer(&mut self, offer: &Offer<'_>, _: &mut Outbox) -> Admission {
        Admission::goes_if(!matches!(offer, Offer::Victim(line) if self.0.contains(line)))
    }

    fn event(&mut self, event: &Event<'_>, outbox: &mut Outbox) {
        match *event {
            Event::Taken { line, .. } => drop(self.0.insert(line)),
            Event::Given { line, .. } if self.0.contains(&line) => outbox.depend(Dependency { hart: 0, id: 3 }),
            _ => {}
        }
    }

    fn message(&mut self, _: Peer, message: Box<dyn SchemeMessage>, _: &mut Outbox) {
        let Release(line) = opened(message);
        self.0.remove(&line);
    }
}

/// The NIC writes a line; an entry of its own makes it durable, or nothing does.
fn write(number: u64, of: u8, persistent: bool) -> Msg {
    let on = || Box::new(Dependencies::from_slice(&[Dependency { hart: 2, id: 1 }]));
    let dependencies = persistent.then(on);
    Msg::Cpu(CpuMsg::Write {
        line: line(number),
        from: Requester::nic(2),
        tag: u16::from(of),
        data: bytes(of),
        dependencies,
    })
}

fn get(core: u16, number: u64, want: Want) -> Msg {
    Msg::Cpu(CpuMsg::Get { line: line(number), from: Requester::core(core), tag: 0, want, room: bytes(0) })
}

fn release(number: u64) -> Msg {
    Msg::Scheme { from: Peer::Nic, message: Box::new(Release(line(number))) }
}

/// What core 0, core 1, the NIC and memory hear when messages come to the slice at these times; what it
/// counted.
fn played(messages: Vec<(Time, Msg)>) -> ([Vec<Heard>; 4], HomeCounters) {
    let spec = LlcSpec {
        slices: 1,
        slice_kb: 1,
        ways: 1,
        mshr_entries: 2,
        request_cycles: 10,
        service_cycles: 5,
        reply_cycles: 10,
        interleave_bytes: 64,
    };
    let own = roster().ports(Endpoint::Slice(0));
    let mut home = HomeSlice::new(spec, HomeWiring { clock: Clock::of_period(1), ports: own, memory_credits: (4, 4) });
    home.host(Some(Box::new(Keeper::default())));
    let mut topology = Topology::new();
    let slice = topology.add("home", Box::new(home));
    let roles = [Endpoint::Core(0), Endpoint::Core(1), Endpoint::Nic, Endpoint::Controller(0), Endpoint::Os];
    for role in roles {
        let id = topology.add(role.to_string(), Box::new(Neighbour { role, heard: Vec::new() }));
        topology.connect(slice, own.to(role), id, Link { latency: 10, phase: 0 });
        topology.connect(id, roster().ports(role).to(Endpoint::Slice(0)), slice, Link { latency: 10, phase: 0 });
    }
    // Ports are dense: that of the NIC's client comes before those of slices.
    let client = topology.add("client", Box::new(Neighbour { role: Endpoint::Client(0), heard: Vec::new() }));
    let to_client = roster().ports(Endpoint::Nic).to(Endpoint::Client(0));
    topology.connect(ComponentId(3), to_client, client, Link { latency: 10, phase: 0 });
    messages.into_iter().for_each(|(at, message)| topology.post(slice, at, message));
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
