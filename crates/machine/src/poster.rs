//! What posts the verbs of a server's harts to other servers: the sending half of its NIC.
//!
//! ```text
//!  core ──Post──> queue ─ read descriptor, then bytes ─> port ──Verb, a packet at a time──> NIC of the peer
//!       <──Posted──              (Get Once at homes)          <──PersistAck─────────────────
//! ```
//! Posts are taken in the order in which they come, one after the other: the descriptor is read at the
//! homes, then the bytes that it names, coherently with every store that the hart had performed when it
//! posted. Then the packets leave the port as a client's do. Each hart has a channel to each peer
//! ([`super::nodes`]), and its verbs there persist in the order in which they were posted. How many are
//! acknowledged is told to the hart's core, where `rdma.poll` reads it.
//!
//! Source: persistence parallelism, sections III and V; what a descriptor says is that of
//! [`durawarp_riscv::verbs`]. Invariants: a fault of a descriptor is one of the instruction that posted it; a
//! hart hears of every acknowledgement once. Not modelled: completion queues in memory (the count goes to the
//! core), several posts that are read at a time, losses.

use std::collections::VecDeque;
use std::sync::Arc;

use durawarp_base::counters;
use durawarp_checkpoint::{state, state_methods, value};
use durawarp_engine::{Component, Ctx, StateDigest, Time, Timebase, Wait};
use durawarp_persist::journal::{Author, FactKind, Notebook};
use durawarp_riscv::elf::Executable;
use durawarp_riscv::fault::{CpuFault, FaultKind};
use durawarp_riscv::verbs::{DESCRIPTOR_BYTES, Peers, VERB_LINE_BYTES, Verb};

use super::coherence::{CPU_LINE_BYTES, CoreMsg, LineData};
use super::cpu::CpuMemory;
use super::line_reader::LineReader;
use super::msg::{Msg, Receiver, deliver};
use super::nodes::PeerChannels;
use super::ports::Ports;
use super::verbs::{NetworkSpec, NicMsg, PersistAck, PosterMsg, SendingPort, VerbHead, note_verb};

const _: () = assert!(VERB_LINE_BYTES == CPU_LINE_BYTES, "verbs write the lines of the machine");

counters! {
    /// What a poster counted.
    pub struct PosterCounters {
        /// Verbs posted (verbs)
        verbs,
        /// Bytes posted (B)
        bytes,
        /// Lines read at the homes: of descriptors and of what is posted (lines)
        read_lines,
        /// Acknowledgements that came (acknowledgements)
        acks,
        /// Time from a post that asked for an acknowledgement until that came, summed (ns)
        latency_ns,
    }
}

/// How a poster is wired.
#[derive(Debug)]
pub struct PosterWiring {
    pub ports: Ports,
    /// The machine's tick rate.
    pub timebase: Timebase,
    /// Where the program's memory lies.
    pub memory: CpuMemory,
    /// The executable, whose functions are named in faults.
    pub image: Arc<Executable>,
    /// Whom harts may post to.
    pub peers: Peers,
    /// Harts of a core.
    pub harts: u32,
    /// The harts' channels at their peers.
    pub channels: PeerChannels,
    /// Physical address of the first log at a peer.
    pub logs: u64,
    /// It keeps journals of what it posts.
    pub journal: bool,
}

/// A post that is not sent.
#[derive(Debug)]
struct Post {
    hart: u32,
    descriptor: u64,
    pc: u64,
    arrived: Time,
    /// What the descriptor says, once it is read.
    verb: Option<Verb>,
}

value!(record Post { hart, descriptor, pc, arrived, verb });

/// A hart's channel to a peer.
#[derive(Debug, Default)]
struct HartChannel {
    /// Verbs that were sent.
    sent: u64,
    /// Of these, that asked for an acknowledgement.
    asked: u32,
    /// Those whose acknowledgement has not come: number, and when they were posted.
    awaited: VecDeque<(u64, Time)>,
}

value!(record HartChannel { sent, asked, awaited });

/// The sending half of a server's NIC.
#[derive(Debug)]
pub struct Poster {
    wiring: PosterWiring,
    posts: VecDeque<Post>,
    reader: LineReader,
    port: SendingPort,
    /// By channel, from the first of the peers'.
    channels: Vec<HartChannel>,
    counters: PosterCounters,
    latency: Time,
    /// By peer: what was posted to it, where journals are kept.
    journals: Vec<Notebook>,
}

state!(Poster {
    parts: reader, port; sized: channels; saved: posts, counters, latency; kept: wiring, journals
});

impl Poster {
    /// A poster that has nothing to do.
    pub fn new(network: NetworkSpec, wiring: PosterWiring) -> Poster {
        let harts = u32::from(wiring.ports.roster().cores) * wiring.harts;
        let (channels, peers) = (harts * wiring.peers.count, wiring.peers.count);
        Poster {
            posts: VecDeque::new(),
            reader: LineReader::new(wiring.ports, wiring.memory),
            port: SendingPort::new(network, wiring.timebase),
            channels: (0..channels).map(|_| HartChannel::default()).collect(),
            counters: PosterCounters::default(),
            latency: 0,
            journals: (0..if wiring.journal { peers } else { 0 }).map(|_| Notebook::default()).collect(),
            wiring,
        }
    }

    /// What it counted.
    pub fn counters(&self) -> PosterCounters {
        let latency_ns = self.wiring.timebase.ps_of_ticks(self.latency) / 1000;
        PosterCounters { read_lines: self.reader.lines(), latency_ns, ..self.counters }
    }

    /// What it posted to a peer, from 1, where it keeps journals.
    pub fn journal(&self, peer: u32) -> Option<&Notebook> {
        self.journals.get(peer as usize - 1)
    }

    /// Begins to read what the first post names.
    fn begin(&mut self, cx: &mut Ctx<'_, Msg>) {
        let Some(post) = self.posts.front() else { return };
        match post.verb {
            None => self.reader.begin(post.descriptor, DESCRIPTOR_BYTES, cx),
            Some(verb) => self.reader.begin(verb.local, verb.bytes, cx),
        }
    }

    /// What the first post names is read.
    fn advance(&mut self, cx: &mut Ctx<'_, Msg>) {
        let Some(post) = self.posts.front_mut() else { unreachable!("nothing is read for nobody") };
        let read = self.reader.read().last().map_or(&[][..], Vec::as_slice);
        if let Some(verb) = post.verb {
            let bytes = read.to_vec();
            let Some(post) = self.posts.pop_front() else { unreachable!("it was there") };
            self.send(&post, verb, &bytes, cx);
        } else {
            let descriptor = read.try_into().unwrap_or_else(|_| unreachable!("a descriptor was asked for"));
            let verb = self.wiring.peers.verb(descriptor).map_err(FaultKind::Verb).and_then(|verb| {
                let there = self.wiring.memory.physical(verb.local, verb.bytes).is_some();
                let outside = FaultKind::Unmapped { address: verb.local, bytes: verb.bytes, write: false };
                if there { Ok(verb) } else { Err(outside) }
            });
            match verb {
                Ok(verb) => post.verb = Some(verb),
                Err(kind) => {
                    let symbol = self.wiring.image.symbol(post.pc);
                    return cx.fail(Box::new(CpuFault { kind, hart: post.hart, pc: post.pc, symbol }));
                }
            }
        }
        self.reader.clear();
        self.begin(cx);
    }

    fn send(&mut self, post: &Post, verb: Verb, bytes: &[u8], cx: &mut Ctx<'_, Msg>) {
        let PosterWiring { peers, channels, logs, .. } = self.wiring;
        let number = channels.channel(post.hart, verb.peer);
        let log = u64::from(number - channels.first);
        let channel = &mut self.channels[log as usize];
        channel.sent += 1;
        let head = VerbHead {
            channel: number,
            sequence: channel.sent,
            address: logs + log * peers.log_bytes + verb.offset,
            acknowledged: verb.acknowledged,
            persistent: true,
        };
        // A transaction ends with a verb that is to be acknowledged.
        let (transaction, sequence) = (channel.asked, head.sequence as u32);
        let author = Author::PostedVerb { channel: number, transaction, sequence };
        if verb.acknowledged {
            channel.asked += 1;
            channel.awaited.push_back((head.sequence, post.arrived));
        }
        if let Some(journal) = self.journals.get_mut(verb.peer as usize - 1) {
            note_verb(journal, FactKind::VerbPosted, cx.now(), head.address, author, bytes);
        }
        self.counters.verbs += 1;
        self.counters.bytes += verb.bytes;
        let to = self.wiring.ports.to_nic_at(verb.peer);
        for (packet, delay) in self.port.packets(head, bytes, cx.now()) {
            to.send(NicMsg::Verb(packet), delay, cx);
        }
    }

    fn acknowledged(&mut self, PersistAck { channel: number, sequence }: PersistAck, cx: &mut Ctx<'_, Msg>) {
        let Some((hart, peer)) = self.wiring.channels.of(number) else {
            unreachable!("channel {number} is a client's")
        };
        let channel = &mut self.channels[usize::from(number - self.wiring.channels.first)];
        let Some((awaited, since)) = channel.awaited.pop_front() else {
            unreachable!("an acknowledgement that nobody waits for")
        };
        assert_eq!(awaited, sequence, "acknowledgements of a channel come in order");
        self.counters.acks += 1;
        self.latency += cx.now() - since;
        let core = self.wiring.ports.to_core((hart / self.wiring.harts) as u16);
        core.send(CoreMsg::Posted { hart, peer, acknowledged: sequence }, 0, cx);
    }
}

impl Receiver for Poster {
    type Inbox = PosterMsg;

    fn receive(&mut self, message: PosterMsg, cx: &mut Ctx<'_, Msg>) {
        match message {
            PosterMsg::Post { hart, descriptor, pc } => {
                self.posts.push_back(Post { hart, descriptor, pc, arrived: cx.now(), verb: None });
                if self.posts.len() == 1 {
                    self.begin(cx);
                }
            }
            PosterMsg::Data(LineData { tag, data, .. }) => {
                if self.reader.receive(tag, data, cx) {
                    self.advance(cx);
                }
            }
            PosterMsg::PersistAck(ack) => self.acknowledged(ack, cx),
        }
    }
}

impl Component<Msg> for Poster {
    state_methods!();

    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        deliver(self, message, cx);
    }

    fn wake(&mut self, _: &mut Ctx<'_, Msg>) {}

    fn waits(&self, out: &mut Vec<Wait>) {
        for post in &self.posts {
            let what = format!("the bytes of its verb at {:#x}", post.descriptor);
            out.push(Wait { who: format!("hart {}", post.hart), what, on: None, since: post.arrived });
        }
        for (channel, number) in self.channels.iter().zip(self.wiring.channels.first..) {
            let Some((hart, peer)) = self.wiring.channels.of(number) else { continue };
            for &(sequence, since) in &channel.awaited {
                let what = format!("the acknowledgement of verb {sequence} by peer {peer}");
                out.push(Wait { who: format!("hart {hart}"), what, on: None, since });
            }
        }
    }

    fn digest(&self) -> u64 {
        let mut digest = StateDigest::default();
        [self.counters.verbs, self.counters.bytes, self.counters.acks, self.latency, self.posts.len() as u64]
            .into_iter()
            .for_each(|word| digest.word(word));
        digest.value()
    }
}
