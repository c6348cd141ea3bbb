//! What clients and the server's NIC say to each other, and the network between them.
//!
//! ```text
//!  client i ──Verb, a packet at a time──> NIC        (client's port: bytes / mb_s; then latency_ns)
//!           <──PersistAck, WriteReply──              (latency_ns)
//!  poster   ──the same──> NIC of another server ──PersistAck──> poster
//!           <──ProgramOver─────────────  <── OS        (latency_ns; os.link_ns)
//! ```
//! A verb writes a run of bytes to the server's persistent memory (the paper's `rdma_pwrite`). Verbs of a
//! channel persist in the order in which they were posted, each as one epoch. One that asks for it is
//! acknowledged when it is durable, and all before it are. A verb that is not persistent (`rdma_write`) is
//! replied to when others may see it; nobody promises that it is ever durable.
//!
//! Source: persistence parallelism, sections III and V. Not modelled: headers, the bytes of an
//! acknowledgement, the server's own port, switches, loss; RDMA reads.

use durawarp_base::spec;
use durawarp_base::spec::Nanos;
use durawarp_checkpoint::{state, value};
use durawarp_engine::{Time, Timebase};
use durawarp_persist::dependency::Dependencies;
use durawarp_persist::journal::{Author, FactKind, Notebook};

use super::coherence::{CPU_LINE_BYTES, LineData, content, depends};
use super::line::Line;
use super::packet::PeerMessage;

/// All bytes of a line: verbs write whole lines.
pub(super) const LINE_MASK: u128 = (1 << CPU_LINE_BYTES) - 1;

spec! {
    /// Parameters of the network between clients and the server.
    pub struct NetworkSpec {
        /// From a client to the server's NIC, and back.
        latency_ns: Nanos,
        /// Bandwidth of a client's port, in MB/s (10^6 B/s).
        mb_s: u32 where 1..=1000000,
        /// Bytes of a verb that travel together.
        packet_bytes: u32 where 64..=65536,
    }
}

/// Where a verb goes, and which it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct VerbHead {
    pub(super) channel: u16,
    pub(super) sequence: u64,
    pub(super) address: u64,
    pub(super) acknowledged: bool,
    pub(super) persistent: bool,
}

/// The end of a port that verbs leave: packets go one after the other, each after its bytes at the port's
/// bandwidth.
#[derive(Debug)]
pub(super) struct SendingPort {
    network: NetworkSpec,
    timebase: Timebase,
    /// When it has sent all.
    free: Time,
}

state!(SendingPort { saved: free; kept: network, timebase });

impl SendingPort {
    pub(super) fn new(network: NetworkSpec, timebase: Timebase) -> SendingPort {
        SendingPort { network, timebase, free: 0 }
    }

    /// The packets of a verb, each with how much later than now it leaves.
    pub(super) fn packets(
        &mut self,
        head: VerbHead,
        bytes: &[u8],
        now: Time,
    ) -> impl Iterator<Item = (Box<VerbPacket>, Time)> {
        let VerbHead { channel, sequence, address, acknowledged, persistent } = head;
        let each = self.network.packet_bytes as usize;
        bytes.chunks(each).enumerate().map(move |(nth, part)| {
            let at = nth * each;
            let ps = part.len() as u64 * 1_000_000 / u64::from(self.network.mb_s);
            self.free = self.free.max(now) + self.timebase.ticks_of_ps(ps);
            let packet = VerbPacket {
                channel,
                sequence,
                address: address + at as u64,
                bytes: part.into(),
                last: at + part.len() == bytes.len(),
                acknowledged,
                persistent,
            };
            (Box::new(packet), self.free - now)
        })
    }
}

/// The lines of a verb that is posted, as the oracle knows them.
pub(super) fn note_verb(journal: &mut Notebook, kind: FactKind, now: Time, address: u64, author: Author, bytes: &[u8]) {
    for (line, part) in (address..).step_by(CPU_LINE_BYTES as usize).zip(bytes.chunks(CPU_LINE_BYTES as usize)) {
        let mut content = [0; 128];
        content[..part.len()].copy_from_slice(part);
        journal.note_data(now, kind, line, LINE_MASK, author, &content);
    }
}

/// A part of a verb.
#[derive(Debug)]
pub struct VerbPacket {
    /// The client's channel, or the hart's.
    pub channel: u16,
    /// The verb's number in its channel, from 1.
    pub sequence: u64,
    /// Physical address of the first byte, that of a line.
    pub address: u64,
    /// The bytes, of whole lines.
    pub bytes: Box<[u8]>,
    /// The verb ends with it.
    pub last: bool,
    /// The verb asks for an acknowledgement.
    pub acknowledged: bool,
    /// The verb is to be durable.
    pub persistent: bool,
}

value!(record VerbPacket { channel, sequence, address, bytes, last, acknowledged, persistent });

/// What a NIC receives.
#[derive(Debug)]
pub enum NicMsg {
    /// From a client, or from the poster of another server.
    Verb(Box<VerbPacket>),
    /// From a home: the line of a [`HomeMsg::Write`](super::coherence::HomeMsg::Write) is in the shared
    /// cache. That does not make it durable.
    Written {
        /// The tag of its `Write`.
        tag: u16,
        /// The emptied box.
        room: Box<Line>,
        /// What must be durable before it.
        dependencies: Option<Box<Dependencies>>,
    },
    /// From the OS: the server's program is over.
    ProgramOver,
    /// To its handler.
    Peer(PeerMessage),
}

value!(choice NicMsg { Verb(packet), Written { tag, room, dependencies }, ProgramOver, Peer(message) });

/// From a NIC to a client or a poster: this verb, and all before it in the channel, are durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersistAck {
    pub channel: u16,
    /// The verb's number.
    pub sequence: u64,
}

value!(record PersistAck { channel, sequence });

/// What a client receives.
#[derive(Debug)]
pub enum ClientMsg {
    /// Verbs are durable.
    PersistAck(PersistAck),
    /// Others may see what this verb wrote, which is not persistent.
    WriteReply {
        channel: u16,
        /// The verb's number.
        sequence: u64,
    },
    /// The server's program is over.
    ProgramOver,
}

value!(choice ClientMsg { PersistAck(ack), WriteReply { channel, sequence }, ProgramOver });

/// What a poster receives.
#[derive(Debug)]
pub enum PosterMsg {
    /// From a core: a hart posts a verb; all that it stored before is performed.
    Post {
        hart: u32,
        /// Virtual address of the descriptor, which lies in memory.
        descriptor: u64,
        /// Address of the instruction, for faults.
        pc: u64,
    },
    /// From a home: a line.
    Data(LineData),
    /// From the NIC of another server: verbs are durable.
    PersistAck(PersistAck),
}

value!(choice PosterMsg { Post { hart, descriptor, pc }, Data(line), PersistAck(ack) });

/// A number for a verb or an answer to it: the kind is in the highest four bits.
fn of_channel(kind: u64, channel: u16, sequence: u64) -> u64 {
    kind << 60 ^ u64::from(channel) << 44 ^ sequence
}

/// The number of the end of a program.
const OVER: u64 = 3 << 60;

impl NicMsg {
    /// A number that stands for its content, for digests; bytes do not enter.
    pub fn digest(&self) -> u64 {
        match self {
            NicMsg::Verb(packet) => {
                let flags = u64::from(packet.last) << 43 ^ u64::from(!packet.persistent) << 42;
                of_channel(1, packet.channel, packet.sequence) ^ packet.address.rotate_left(9) ^ flags
            }
            // A bit that no address has tells it apart from the question.
            NicMsg::Written { tag, dependencies, .. } => {
                content(15, 0, 0, (*tag).into()) ^ 1 << 59 ^ depends(dependencies.as_deref())
            }
            NicMsg::ProgramOver => OVER,
            NicMsg::Peer(message) => message.digest(),
        }
    }
}

impl PersistAck {
    fn digest(self) -> u64 {
        of_channel(2, self.channel, self.sequence)
    }
}

impl ClientMsg {
    /// A number that stands for its content, for digests.
    pub fn digest(&self) -> u64 {
        match self {
            ClientMsg::PersistAck(ack) => ack.digest(),
            ClientMsg::ProgramOver => OVER,
            ClientMsg::WriteReply { channel, sequence } => of_channel(4, *channel, *sequence),
        }
    }
}

impl PosterMsg {
    /// A number that stands for its content, for digests.
    pub fn digest(&self) -> u64 {
        match self {
            PosterMsg::Post { hart, descriptor, .. } => content(15, *descriptor, (*hart).into(), 0) ^ 1 << 58,
            PosterMsg::Data(line) => line.digest(),
            PosterMsg::PersistAck(ack) => ack.digest(),
        }
    }
}
