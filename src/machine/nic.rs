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
//! Source: persistence parallelism, section IV-B ("an additional persist buffer to process the remote
//! requests") and V ("the NIC sends back the persist validation signal"). Readings: a buffer for each
//! channel, that is for each client and for each hart of another server that posts here. Invariant: a verb
//! is acknowledged when all its lines, and all verbs before it in its channel, are durable, in that event.
//! Not modelled: data direct I/O (lines go past the shared cache, and no copies in caches are invalidated:
//! cores do not use the clients' memory), what the NIC itself takes.

use std::collections::VecDeque;

use crate::counters;
use crate::engine::{Component, Ctx, StateDigest, Time, Wait};
use crate::persist::handler::{Admission, Event, Handler, HandlerReport, Offer, Outbox, PathStore, Peer, report_of};
use crate::persist::journal::{Author, FactKind, Notebook};

use super::coherence::CPU_LINE_BYTES;
use super::handler_levels::HandlerLevels;
use super::msg::Msg;
use super::nodes::PeerChannels;
use super::ports::{Endpoint, Ports};
use super::verbs::{LINE_MASK, NetworkMsg, VerbPacket};

counters! {
    /// What the NIC counted.
    pub struct NicCounters {
        /// Packets of verbs received (packets)
        packets,
        /// Verbs received to their last byte (verbs)
        verbs,
        /// Bytes received (B)
        bytes,
        /// Lines that went to persist buffers (lines)
        lines,
        /// Verbs that are durable (verbs)
        durable_verbs,
        /// Acknowledgements sent (acknowledgements)
        acks,
        /// Packets after which lines waited for room in a buffer (packets)
        full_buffers,
    }
}

/// What a channel brings to its buffer.
#[derive(Debug)]
enum Arrival {
    /// A line.
    Line { line: u64, sequence: u64, bytes: Box<[u8; 128]> },
    /// The end of a verb.
    Barrier(VerbEnd),
}

/// A verb whose last line is here.
#[derive(Debug, Clone, Copy)]
struct VerbEnd {
    sequence: u64,
    acknowledged: bool,
}

/// A channel.
#[derive(Debug, Default)]
struct Channel {
    /// What has not gone to the buffer.
    arrivals: VecDeque<Arrival>,
    /// Verbs that did, and are not durable.
    verbs: VecDeque<VerbEnd>,
    /// When the last of its packets came.
    since: Time,
}

/// The network interface.
#[derive(Debug)]
pub struct Nic {
    ports: Ports,
    peers: PeerChannels,
    handler: Box<dyn Handler>,
    outbox: Outbox,
    channels: Vec<Channel>,
    counters: NicCounters,
    /// What it acknowledged, where it keeps a journal.
    journal: Option<Notebook>,
    /// What the handler held, where a timeline is kept.
    levels: Option<Box<HandlerLevels>>,
}

/// Who stores a line of a verb, as journals say it: the verb by its number.
fn author_of(ports: Ports, channel: u16, sequence: u64) -> Author {
    Author { sm: ports.roster().cores, warp: channel, pc: sequence as u32, ..Author::default() }
}

impl Nic {
    /// A NIC that hosts a scheme's handler, with so many channels, of which those of `peers` are other
    /// servers'; with `journal` it keeps one.
    pub fn new(handler: Box<dyn Handler>, ports: Ports, channels: u16, peers: PeerChannels, journal: bool) -> Nic {
        let channels = (0..channels).map(|_| Channel::default()).collect();
        Nic {
            ports,
            peers,
            handler,
            outbox: Outbox::default(),
            channels,
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

    fn receive(&mut self, packet: VerbPacket, now: Time) -> u16 {
        let VerbPacket { channel: number, sequence, address, bytes, last, acknowledged } = packet;
        self.counters.packets += 1;
        self.counters.bytes += bytes.len() as u64;
        let channel = &mut self.channels[usize::from(number)];
        channel.since = now;
        for (line, part) in (address..).step_by(CPU_LINE_BYTES as usize).zip(bytes.chunks(CPU_LINE_BYTES as usize)) {
            let mut bytes = Box::new([0; 128]);
            bytes[..part.len()].copy_from_slice(part);
            channel.arrivals.push_back(Arrival::Line { line, sequence, bytes });
        }
        if last {
            self.counters.verbs += 1;
            channel.arrivals.push_back(Arrival::Barrier(VerbEnd { sequence, acknowledged }));
        }
        number
    }

    /// Brings to the buffer what it has room for.
    fn advance(&mut self, number: u16) {
        let hart = number as u8;
        let channel = &mut self.channels[usize::from(number)];
        while !channel.arrivals.is_empty()
            && self.handler.offer(&Offer::Issue { warp: hart }, &mut self.outbox) == Admission::Goes
            && let Some(arrival) = channel.arrivals.pop_front()
        {
            match arrival {
                Arrival::Line { line, sequence, bytes } => {
                    self.counters.lines += 1;
                    let author = author_of(self.ports, number, sequence);
                    let of = PathStore { warp: hart, author, line, mask: LINE_MASK, bytes: &bytes, checkpoint: false };
                    self.handler.event(&Event::Stored(&of), &mut self.outbox);
                }
                Arrival::Barrier(verb) => {
                    channel.verbs.push_back(verb);
                    self.handler.event(&Event::Fenced { warp: hart }, &mut self.outbox);
                }
            }
        }
    }

    /// Sends what the handler has written, and acknowledges verbs that are durable.
    fn carry_out(&mut self, cx: &mut Ctx<'_, Msg>) {
        if let Some(levels) = &mut self.levels {
            levels.note(&*self.handler, cx.now());
        }
        for (to, message) in self.outbox.take() {
            cx.send(self.ports.to_peer(to), Msg::Scheme { from: Peer::Nic, message }, 0);
        }
        for author in std::mem::take(self.outbox.settled()) {
            let channel = author.warp;
            let Some(verb) = self.channels[usize::from(channel)].verbs.pop_front() else {
                unreachable!("a barrier of channel {channel} is durable twice")
            };
            self.counters.durable_verbs += 1;
            if verb.acknowledged {
                self.counters.acks += 1;
                if let Some(journal) = &mut self.journal {
                    let author = author_of(self.ports, channel, verb.sequence);
                    journal.note(cx.now(), FactKind::VerbAcknowledged, 0, author);
                }
                let ack = NetworkMsg::PersistAck { channel, sequence: verb.sequence };
                // What harts of other servers posted is acknowledged to their posters.
                let to = match self.peers.of(channel).filter(|_| self.ports.roster().peers > 0) {
                    Some((_, peer)) => Endpoint::Server(peer as u16 - 1),
                    None => Endpoint::Client(channel),
                };
                cx.send(self.ports.to(to), Msg::Network(ack), 0);
            }
        }
    }
}

impl Component<Msg> for Nic {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        self.outbox.at(cx.now());
        match message {
            Msg::Network(NetworkMsg::Verb(packet)) => {
                let channel = self.receive(*packet, cx.now());
                self.advance(channel);
                self.counters.full_buffers += u64::from(!self.channels[usize::from(channel)].arrivals.is_empty());
            }
            Msg::Scheme { from, message } => {
                self.handler.message(from, message, &mut self.outbox);
                (0..self.channels.len() as u16).for_each(|channel| self.advance(channel));
            }
            Msg::Network(NetworkMsg::ProgramOver) => {
                for client in self.ports.roster().clients() {
                    cx.send(self.ports.to(client), Msg::Network(NetworkMsg::ProgramOver), 0);
                }
            }
            other => panic!("a NIC received {other:?}"),
        }
        self.carry_out(cx);
    }

    fn wake(&mut self, _: &mut Ctx<'_, Msg>) {}

    fn waits(&self, out: &mut Vec<Wait>) {
        for (number, channel) in self.channels.iter().enumerate() {
            let (lines, verbs) = (channel.arrivals.len(), channel.verbs.len());
            if lines + verbs > 0 {
                let what = format!("room for {lines} lines and barriers, {verbs} verbs to be durable");
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
