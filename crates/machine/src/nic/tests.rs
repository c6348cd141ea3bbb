//! A NIC among a client, a home and a controller that are played, with buffers that are played: what goes to
//! the buffers, and when. Links take 10 ticks; a home answers 20 after it was asked.

use std::any::Any;
use std::sync::{Arc, Mutex};

use super::*;
use crate::address::Interleave;
use crate::ports::{Endpoint, Roster};
use durawarp_engine::{ComponentId, Link, RunEnd, RunOptions, Simulation, Topology};
use durawarp_kernel::memory::NVM_BASE;
use durawarp_persist::handler::{Dependencies, Handler, Peer, SchemeMessage};

/// What buffers, home or client heard: when, and what.
type Heard = (Time, String);

/// Where all of them note it.
type Notes = Arc<Mutex<Vec<Heard>>>;

fn note(notes: &Notes, now: Time, what: String) {
    notes.lock().unwrap().push((now, what));
}

/// An entry of a channel is free; `settled` where it was a fence.
#[derive(Debug)]
struct Freed {
    channel: u8,
    settled: bool,
}

impl SchemeMessage for Freed {
    fn digest(&self) -> u64 {
        u64::from(self.channel)
    }
}

/// A buffer for each channel; `room` is how many entries each has free.
#[derive(Debug)]
struct Buffers {
    room: [u32; 2],
    notes: Notes,
}

impl Buffers {
    fn enter(&mut self, channel: u8, what: String, outbox: &Outbox) {
        let room = &mut self.room[usize::from(channel)];
        note(&self.notes, outbox.now(), what);
        *room = room.checked_sub(1).expect("a buffer holds no more than its entries");
    }
}

impl NicHandler for Buffers {
    fn has_room(&mut self, channel: u8) -> bool {
        self.room[usize::from(channel)] > 0
    }

    fn event(&mut self, event: &NicEvent<'_>, outbox: &mut Outbox) {
        match *event {
            NicEvent::Stored(store) | NicEvent::Posted(store) => {
                self.enter(store.by, format!("line {} of {}", number(store.line), store.by), outbox);
                if matches!(event, NicEvent::Posted(_)) {
                    outbox.depend(Dependency { hart: 2, id: number(store.line) });
                }
            }
            NicEvent::Answered { channel, dependencies } => {
                let on: Vec<(u16, u64)> = dependencies.iter().map(|on| (on.hart, on.id)).collect();
                note(&self.notes, outbox.now(), format!("answered {channel} {on:?}"));
            }
            NicEvent::VerbEnds(channel) => self.enter(channel, format!("fence of {channel}"), outbox),
        }
    }
}

impl Handler for Buffers {
    fn message(&mut self, _: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        let Freed { channel, settled } = durawarp_persist::handler::opened(message);
        self.room[usize::from(channel)] += 1;
        if settled {
            outbox.settle(Author::Channel(channel.into()));
        }
    }
}

/// A client, a controller, or a home, which says of line n that it depends on entry 10 n of hart 1.
#[derive(Debug)]
struct Neighbour {
    role: Endpoint,
    roster: Roster,
    notes: Notes,
}

impl Component<Msg> for Neighbour {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        let what = match message {
            Msg::Home(HomeMsg::Write { line, tag, data, dependencies, .. }) => {
                let on = dependencies.map(|on| on[0].id);
                let before = on.map(|id| Box::new(Dependencies::from_slice(&[Dependency { hart: 1, id: 10 * id }])));
                let answer = NicMsg::Written { tag, room: data, dependencies: before };
                self.roster.ports(self.role).to_nic().send(answer, 10, cx);
                format!("home has line {} with {on:?}", number(line))
            }
            Msg::Client(ClientMsg::PersistAck(PersistAck { channel, sequence })) => {
                format!("ack {sequence} of {channel}")
            }
            Msg::Client(ClientMsg::WriteReply { channel, sequence }) => format!("reply {sequence} of {channel}"),
            other => panic!("{other:?} at {}", self.role),
        };
        note(&self.notes, cx.now(), what);
    }

    fn wake(&mut self, _: &mut Ctx<'_, Msg>) {}
}

fn number(line: u64) -> u64 {
    (line - NVM_BASE) / CPU_LINE_BYTES
}

/// A verb of a channel: it writes `lines` lines, of which `first` is the first.
fn verb(channel: u16, sequence: u64, first: u64, lines: usize, persistent: bool) -> NicMsg {
    NicMsg::Verb(Box::new(VerbPacket {
        channel,
        sequence,
        address: NVM_BASE + CPU_LINE_BYTES * first,
        bytes: vec![1; CPU_LINE_BYTES as usize * lines].into(),
        last: true,
        acknowledged: true,
        persistent,
    }))
}

/// One of a line that asks for no acknowledgement.
fn unasked(channel: u16, sequence: u64, line: u64) -> NicMsg {
    let mut message = verb(channel, sequence, line, 1, true);
    if let NicMsg::Verb(packet) = &mut message {
        packet.acknowledged = false;
    }
    message
}

fn freed(channel: u8, settled: bool) -> NicMsg {
    NicMsg::Peer(PeerMessage { from: Peer::Controller(0), message: Box::new(Freed { channel, settled }) })
}

/// All that is heard when messages come to a NIC of two channels whose buffers have so much room.
fn played(ddio: bool, room: u32, messages: Vec<(Time, NicMsg)>) -> Vec<Heard> {
    played_and_counted(ddio, room, messages).0
}

/// The same, and what the NIC counted.
fn played_and_counted(ddio: bool, room: u32, messages: Vec<(Time, NicMsg)>) -> (Vec<Heard>, NicCounters) {
    let roster = Roster { clients: 2, ddio, paths: true, ..Roster::of_cores(1, Interleave::new(1, 1, 64)) };
    let (own, notes) = (roster.ports(Endpoint::Nic), Notes::default());
    let buffers = Buffers { room: [room; 2], notes: notes.clone() };
    let mut topology = Topology::new();
    let peers = PeerChannels { first: 2, harts: 1 };
    let nic = topology.add("nic", Box::new(Nic::new(Box::new(buffers), own, 2, peers, false)));
    let roles = [Endpoint::Client(0), Endpoint::Client(1), Endpoint::Controller(0)];
    for role in roles.into_iter().chain(ddio.then_some(Endpoint::Home(0))) {
        let id = topology.add(role.to_string(), Box::new(Neighbour { role, roster, notes: notes.clone() }));
        topology.connect(nic, own.to(role), id, Link { latency: 10, phase: 0 });
        if let Endpoint::Home(_) = role {
            connect_home(&mut topology, roster, id, nic);
        }
    }
    messages.into_iter().for_each(|(at, message)| topology.post(nic, at, message.into()));
    let mut simulation = Simulation::new(topology).unwrap();
    let end = simulation.run(&RunOptions::default());
    // Where the script ends before a verb is durable, the NIC waits still.
    assert!(matches!(end, RunEnd::Finished { .. } | RunEnd::Deadlock { .. }), "{end:?}");
    let counters = (simulation.component(nic) as &dyn Any).downcast_ref::<Nic>().unwrap().counters();
    drop(simulation);
    let mut heard = Arc::into_inner(notes).unwrap().into_inner().unwrap();
    // Components run alone through a round.
    heard.sort_by_key(|(at, _)| *at);
    (heard, counters)
}

/// A home answers the NIC; its other ports lead to itself, as ports have no gaps.
fn connect_home(topology: &mut Topology<Msg>, roster: Roster, home: ComponentId, nic: ComponentId) {
    let ports = roster.ports(Endpoint::Home(0));
    for role in [Endpoint::Core(0), Endpoint::Os, Endpoint::Controller(0)] {
        topology.connect(home, ports.to(role), home, Link { latency: 10, phase: 0 });
    }
    topology.connect(home, ports.to(Endpoint::Nic), nic, Link { latency: 10, phase: 0 });
}

fn heard(at: Time, what: &str) -> Heard {
    (at, what.to_owned())
}

#[test]
fn lines_and_the_end_of_a_verb_enter_the_buffer_in_the_tick_in_which_it_has_room() {
    let script = vec![(100, verb(0, 1, 0, 2, true)), (200, freed(0, false)), (300, freed(0, false))];
    let told = played(false, 1, script);
    assert_eq!(told, [heard(100, "line 0 of 0"), heard(200, "line 1 of 0"), heard(300, "fence of 0")]);
    // With room for all of it nothing waits, and of one entry less the fence does.
    for (room, fence, full) in [(3, 100, 0), (2, 200, 1)] {
        let script = vec![(100, verb(0, 1, 0, 2, true)), (200, freed(0, false))];
        let (told, counters) = played_and_counted(false, room, script);
        assert_eq!((&told[2], counters.full_buffers), (&heard(fence, "fence of 0"), full));
    }
}

#[test]
fn what_the_home_says_that_a_line_depends_on_goes_to_the_lines_buffer() {
    let told = played(true, 4, vec![(100, verb(0, 1, 3, 2, true))]);
    let expected = [
        heard(100, "line 3 of 0"),
        heard(110, "home has line 3 with Some(3)"),
        heard(130, "answered 0 [(1, 30)]"),
        // One line of a channel is with its home at a time.
        heard(130, "line 4 of 0"),
        heard(140, "home has line 4 with Some(4)"),
        heard(160, "answered 0 [(1, 40)]"),
        heard(160, "fence of 0"),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_line_that_nothing_makes_durable_takes_no_room_and_its_verb_is_replied_to_from_the_cache() {
    let told = played(true, 0, vec![(100, verb(1, 7, 3, 1, false))]);
    assert_eq!(told, [heard(110, "home has line 3 with None"), heard(140, "reply 7 of 1")]);
}

#[test]
fn room_of_one_channel_is_not_that_of_another_and_verbs_are_acknowledged_in_their_order() {
    let script = vec![
        (100, verb(0, 1, 0, 1, true)),
        (101, verb(1, 1, 8, 2, true)),
        (102, verb(0, 2, 1, 1, true)),
        // The second verb of channel 0 waits for entries of its first, the fence of channel 1 for its lines.
        (200, freed(0, false)),
        (210, freed(1, false)),
        (300, freed(0, true)),
        (310, freed(0, false)),
        (320, freed(1, true)),
        (400, freed(0, true)),
    ];
    let expected = [
        heard(100, "line 0 of 0"),
        heard(100, "fence of 0"),
        heard(101, "line 8 of 1"),
        heard(101, "line 9 of 1"),
        heard(200, "line 1 of 0"),
        heard(210, "fence of 1"),
        heard(300, "fence of 0"),
        heard(310, "ack 1 of 0"),
        heard(330, "ack 1 of 1"),
        heard(410, "ack 2 of 0"),
    ];
    assert_eq!(played(false, 2, script), expected);
}

#[test]
fn a_verb_that_does_not_ask_is_durable_without_a_word() {
    let script =
        vec![(100, unasked(0, 1, 0)), (101, verb(0, 2, 1, 1, true)), (200, freed(0, true)), (300, freed(0, true))];
    let told = played(false, 4, script);
    let acks: Vec<&Heard> = told.iter().filter(|(_, what)| what.starts_with("ack")).collect();
    assert_eq!(acks, [&heard(310, "ack 2 of 0")]);
}
