//! The network interface of the server: what clients post goes to the scheme's persist buffers, and is
//! acknowledged when it is durable.
//!
//! ```text
//!  client, or poster of another server
//!         ──Verb──> its channel's FIFO ──line by line, then a barrier──> handler (a buffer for each channel)
//!         <──PersistAck── the verb is durable <──settled── handler <──Drained── controller
//! ```
//! A line waits in its channel's FIFO until the channel's buffer has room; so does the barrier behind the
//! last line of a verb ("the hardware will treat the data block in rdma_pwrite as in one barrier region").
//! The way from here to the controller is the scheme's.
//!
//! With data direct I/O (`nic.ddio`) a line goes to its home slice of the shared cache first, and has its
//! place in the buffer from then on. The home keeps it until it is durable; it leaves for the controller when
//! the home has answered what it depends on. A line of a verb that is not persistent goes to its home alone.
//! Without, lines go past the shared cache, and verbs that are not persistent are refused.
//!
//! With data direct I/O a channel has one line with its home at a time, so that lines are there in their
//! order. A verb is acknowledged when it is durable in any case: what the cache has is not. One that is not
//! persistent is replied to when its last line is in the cache.
//!
//! Source: persistence parallelism, section IV-B ("an additional persist buffer to process the remote
//! requests") and V ("the NIC sends back the persist validation signal"). Readings: a buffer for each
//! channel, that is for each client and for each hart of another server that posts here. Invariant: a verb
//! is acknowledged when all its lines, and all verbs before it in its channel, are durable, in that event.
//! That one line at a time is with its home is ours: a home answers in a few ns, and a line takes 46 ns on
//! the network. Not modelled: copies in caches of lines that go past these (cores do not use the clients'
//! memory), ways of the cache for I/O alone, what the NIC itself takes.

mod parameters;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use durawarp_checkpoint::{state, state_methods, value};
use durawarp_engine::{Component, Ctx, StateDigest, Time, Wait};
use durawarp_persist::handler::{Dependency, HandlerReport, NicEvent, NicHandler, Outbox, PathStore, report_of};
use durawarp_persist::journal::{Author, FactKind, Notebook};

use super::coherence::{CPU_LINE_BYTES, HomeMsg};
use super::handler_levels::HandlerLevels;
use super::line::LinePool;
use super::msg::{Msg, PeerMessage, Receiver, deliver};
use super::nodes::PeerChannels;
use super::ports::Ports;
use super::verbs::{ClientMsg, LINE_MASK, NicMsg, PersistAck, VerbPacket};

pub use parameters::{NicCounters, NicSpec};

/// What a channel brings to its buffer.
#[derive(Debug)]
enum Arrival {
    Line {
        line: u64,
        sequence: u64,
        bytes: Box<[u8; 128]>,
        persistent: bool,
    },
    /// The end of a verb.
    Barrier(VerbEnd),
}

value!(choice Arrival { Line { line, sequence, bytes, persistent }, Barrier(verb) });

impl Arrival {
    /// It takes room in the channel's buffer.
    fn persists(&self) -> bool {
        match self {
            Arrival::Line { persistent, .. } => *persistent,
            Arrival::Barrier(verb) => verb.persistent,
        }
    }
}

/// A verb whose last line is here.
#[derive(Debug, Clone, Copy)]
struct VerbEnd {
    sequence: u64,
    acknowledged: bool,
    persistent: bool,
}

value!(record VerbEnd { sequence, acknowledged, persistent });

/// A channel.
#[derive(Debug, Default)]
struct ClientChannel {
    /// What has not gone to the buffer.
    arrivals: VecDeque<Arrival>,
    /// Verbs that did, and are not durable.
    verbs: VecDeque<VerbEnd>,
    /// A line is with its home: it persists, or not.
    at_home: Option<bool>,
    /// When the last of its packets came.
    since: Time,
}

value!(record ClientChannel { arrivals, verbs, at_home, since });

/// The network interface.
#[derive(Debug)]
pub struct Nic {
    ports: Ports,
    /// Lines go to the shared cache.
    ddio: bool,
    peers: PeerChannels,
    handler: Box<dyn NicHandler>,
    outbox: Outbox,
    channels: Vec<ClientChannel>,
    /// Boxes for lines that go to their homes.
    rooms: LinePool,
    counters: NicCounters,
    /// What it acknowledged, where it keeps a journal.
    journal: Option<Notebook>,
    /// What the handler held, where a timeline is kept.
    levels: Option<Box<HandlerLevels>>,
}

state!(Nic { parts: handler, outbox; sized: channels; saved: counters; kept: ports, ddio, peers, rooms, journal, levels });

impl Nic {
    /// A NIC that hosts a scheme's handler, with so many channels, of which those of `peers` are other
    /// servers'; with `journal` it keeps one.
    pub fn new(handler: Box<dyn NicHandler>, ports: Ports, channels: u16, peers: PeerChannels, journal: bool) -> Nic {
        let channels = (0..channels).map(|_| ClientChannel::default()).collect();
        Nic {
            ports,
            ddio: ports.roster().ddio,
            peers,
            handler,
            outbox: Outbox::default(),
            channels,
            rooms: LinePool::default(),
            counters: NicCounters::default(),
            journal: journal.then(Notebook::default),
            levels: None,
        }
    }

    /// What it acknowledged, when it keeps a journal.
    pub fn journal(&self) -> Option<&Notebook> {
        self.journal.as_ref()
    }

    /// What it counted.
    pub fn counters(&self) -> NicCounters {
        self.counters
    }

    /// Keeps a timeline from now on, of at most `spans` values of a channel.
    pub fn keep_timeline(&mut self, spans: usize) {
        self.levels = Some(Box::new(HandlerLevels::new(spans)));
    }

    /// With a timeline: entries of each channel's persist buffer.
    pub fn handler_levels(&self) -> Option<&HandlerLevels> {
        self.levels.as_deref()
    }

    /// What the scheme tells about the run.
    pub fn report(&self) -> HandlerReport {
        report_of(&*self.handler)
    }

    fn take_packet(&mut self, packet: VerbPacket, now: Time) -> u16 {
        let VerbPacket { channel: number, sequence, address, bytes, last, acknowledged, persistent } = packet;
        self.counters.packets += 1;
        self.counters.bytes += bytes.len() as u64;
        let channel = &mut self.channels[usize::from(number)];
        channel.since = now;
        for (line, part) in (address..).step_by(CPU_LINE_BYTES as usize).zip(bytes.chunks(CPU_LINE_BYTES as usize)) {
            let mut bytes = Box::new([0; 128]);
            bytes[..part.len()].copy_from_slice(part);
            channel.arrivals.push_back(Arrival::Line { line, sequence, bytes, persistent });
        }
        if last {
            self.counters.verbs += 1;
            channel.arrivals.push_back(Arrival::Barrier(VerbEnd { sequence, acknowledged, persistent }));
        }
        number
    }

    /// Brings to the buffer, or to the shared cache, what it has room for.
    fn advance(&mut self, number: u16, cx: &mut Ctx<'_, Msg>) {
        // A channel's lines are in the cache in their order: one at a time is on its way there.
        while let channel = &mut self.channels[usize::from(number)]
            && channel.at_home.is_none()
            && let Some(arrival) = channel.arrivals.front()
            && (!arrival.persists() || self.handler.has_room(number as u8))
            && let Some(arrival) = channel.arrivals.pop_front()
        {
            match arrival {
                Arrival::Line { line, sequence, bytes, persistent } => {
                    self.pass_on((number, sequence), line, &bytes, persistent, cx);
                }
                Arrival::Barrier(verb) if verb.persistent => {
                    self.channels[usize::from(number)].verbs.push_back(verb);
                    self.handler.event(&NicEvent::VerbEnds(number as u8), &mut self.outbox);
                }
                Arrival::Barrier(VerbEnd { sequence, acknowledged, .. }) => {
                    if acknowledged {
                        self.counters.replies += 1;
                        let reply = ClientMsg::WriteReply { channel: number, sequence };
                        self.ports.to_client(number).send(reply, 0, cx);
                    }
                }
            }
        }
    }

    /// A line of a verb goes to the channel's buffer, and to its home if lines go there.
    fn pass_on(
        &mut self,
        (number, sequence): (u16, u64),
        line: u64,
        bytes: &[u8; 128],
        persistent: bool,
        cx: &mut Ctx<'_, Msg>,
    ) {
        let author = Author::Verb { channel: number, sequence: sequence as u32 };
        let of = PathStore { by: number as u8, author, line, mask: LINE_MASK, bytes, checkpoint: false };
        self.counters.lines += u64::from(persistent);
        if !self.ddio {
            self.handler.event(&NicEvent::Stored(&of), &mut self.outbox);
            return;
        }
        if persistent {
            self.handler.event(&NicEvent::Posted(&of), &mut self.outbox);
        }
        self.write_home(number, line, bytes, persistent, cx);
    }

    /// Sends a line to its home, with the entry that makes it durable.
    fn write_home(&mut self, number: u16, line: u64, bytes: &[u8; 128], persistent: bool, cx: &mut Ctx<'_, Msg>) {
        self.counters.cached_lines += 1;
        self.counters.plain_lines += u64::from(!persistent);
        self.channels[usize::from(number)].at_home = Some(persistent);
        let dependencies = self.outbox.take_dependencies();
        debug_assert_eq!(dependencies.is_some(), persistent, "a line of the channel is in its buffer");
        let mut data = self.rooms.take();
        (data.bytes, data.mask) = (*bytes, LINE_MASK);
        let write = HomeMsg::Write { line, from: self.ports.requester(), tag: number, data, dependencies };
        self.ports.to_home_of(line).send(write, 0, cx);
    }

    /// A channel's line is in the shared cache; what must be durable before it.
    fn at_home(&mut self, number: u16, dependencies: &[Dependency], cx: &mut Ctx<'_, Msg>) {
        let Some(persistent) = self.channels[usize::from(number)].at_home.take() else {
            panic!("channel {number} has no line with its home")
        };
        if persistent {
            self.handler.event(&NicEvent::Answered { channel: number as u8, dependencies }, &mut self.outbox);
        }
        self.advance(number, cx);
    }

    /// A channel's client, or the poster of the harts of another server, hears that verbs are durable.
    fn acknowledge(&self, channel: u16, sequence: u64, cx: &mut Ctx<'_, Msg>) {
        let ack = PersistAck { channel, sequence };
        match self.peers.of(channel).filter(|_| self.ports.roster().peers > 0) {
            Some((_, peer)) => self.ports.to_poster_at(peer).send(ack, 0, cx),
            None => self.ports.to_client(channel).send(ack, 0, cx),
        }
    }

    /// Sends what the handler has written, and acknowledges verbs that are durable.
    fn carry_out(&mut self, cx: &mut Ctx<'_, Msg>) {
        if let Some(levels) = &mut self.levels {
            levels.note(&*self.handler, cx.now());
        }
        for (to, message) in self.outbox.take() {
            self.ports.tell(to, message, 0, cx);
        }
        for author in std::mem::take(self.outbox.settled()) {
            let Author::Channel(channel) = author else { unreachable!("{author:?} is no channel") };
            let Some(verb) = self.channels[usize::from(channel)].verbs.pop_front() else {
                unreachable!("a barrier of channel {channel} is durable twice")
            };
            self.counters.durable_verbs += 1;
            if verb.acknowledged {
                self.counters.acks += 1;
                if let Some(journal) = &mut self.journal {
                    let author = Author::Verb { channel, sequence: verb.sequence as u32 };
                    journal.note(cx.now(), FactKind::VerbAcknowledged, 0, author);
                }
                self.acknowledge(channel, verb.sequence, cx);
            }
        }
    }
}

impl Receiver for Nic {
    type Inbox = NicMsg;

    fn receive(&mut self, message: NicMsg, cx: &mut Ctx<'_, Msg>) {
        self.outbox.at(cx.now());
        match message {
            NicMsg::Verb(packet) => {
                let channel = self.take_packet(*packet, cx.now());
                self.advance(channel, cx);
                self.counters.full_buffers += u64::from(!self.channels[usize::from(channel)].arrivals.is_empty());
            }
            NicMsg::Peer(PeerMessage { from, message }) => {
                self.handler.message(from, message, &mut self.outbox);
                (0..self.channels.len() as u16).for_each(|channel| self.advance(channel, cx));
            }
            NicMsg::Written { tag, room, dependencies } => {
                self.rooms.give(room);
                self.at_home(tag, dependencies.as_deref().map_or(&[][..], |on| on), cx);
            }
            NicMsg::ProgramOver => {
                for client in 0..self.ports.roster().clients {
                    self.ports.to_client(client).send(ClientMsg::ProgramOver, 0, cx);
                }
            }
        }
        self.carry_out(cx);
    }
}

impl Component<Msg> for Nic {
    state_methods!();

    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        deliver(self, message, cx);
    }

    fn wake(&mut self, _: &mut Ctx<'_, Msg>) {}

    fn waits(&self, out: &mut Vec<Wait>) {
        for (number, channel) in self.channels.iter().enumerate() {
            let (lines, verbs) = (channel.arrivals.len(), channel.verbs.len());
            if lines + verbs > 0 || channel.at_home.is_some() {
                let home = if channel.at_home.is_some() { "a line's home, " } else { "" };
                let what = format!("{home}room for {lines} lines and barriers, {verbs} verbs to be durable");
                out.push(Wait { who: format!("channel {number}"), what, on: None, since: channel.since });
            }
        }
    }

    fn digest(&self) -> u64 {
        let mut digest = StateDigest::default();
        digest.word(self.counters.lines);
        digest.word(self.counters.durable_verbs);
        digest.word(self.counters.acks);
        digest.value()
    }
}
