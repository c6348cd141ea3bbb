//! Verbs that a program posts to other servers: what a descriptor says, what is wrong with one, and the
//! memory that verbs write, for drivers without a machine.
//!
//! ```text
//!  byte   0     4     8              16            24     28
//!         kind  peer  local address  offset        bytes  acknowledged
//!         u32   u32   u64            u64           u32    u32
//! ```
//! Kind 1 is the paper's `rdma_pwrite`: it writes `bytes` bytes from the program's memory at `offset` of a
//! log that the hart has at its peer, and they persist there. `peer` counts on from the own server, and
//! round: 1 is the next one, so that every server may run the same program. `acknowledged` is 1 where the
//! peer is to acknowledge the verb, and so all of the hart before it to this peer; else 0.
//!
//! Source: persistence parallelism, sections III and V; `hosts` of the design notes, 1.1. Ours: the layout,
//! logs of harts, peers by distance. Invariants: a verb that was read lies in its log and writes whole
//! lines. Not modelled: reads, verbs without persistence, memory regions and keys.

use std::fmt;

use durawarp_checkpoint::value;

/// Bytes of a descriptor.
pub const DESCRIPTOR_BYTES: u64 = 32;
/// The most bytes of a verb.
pub const VERB_MAX_BYTES: u64 = 1 << 20;
/// Verbs write whole lines of this many bytes.
pub const VERB_LINE_BYTES: u64 = 64;
/// The kind of a verb that persists.
const PWRITE: u32 = 1;

/// Whom a program may post to, and how much.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peers {
    /// Other servers; 0 without links between servers.
    pub count: u32,
    /// Bytes of a hart's log at each of them.
    pub log_bytes: u64,
}

/// A verb to post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verb {
    /// So many servers on.
    pub peer: u32,
    /// Virtual address of the bytes.
    pub local: u64,
    /// Where they go, from the first byte of the log.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
    /// It asks for an acknowledgement.
    pub acknowledged: bool,
}

value!(record Verb { peer, local, offset, bytes, acknowledged });

/// What is wrong with a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerbFault {
    /// The machine has no links between servers.
    NoPeers,
    /// A kind that is not known.
    Kind(u32),
    /// A server that does not exist.
    Peer {
        /// As it is named.
        peer: u64,
        /// Those that exist.
        count: u32,
    },
    /// No bytes, too many, or parts of lines.
    Bytes(u64),
    /// The offset is not that of a line.
    Offset(u64),
    /// The bytes do not lie in the log.
    Log {
        /// First byte.
        offset: u64,
        bytes: u64,
        log_bytes: u64,
    },
    /// Neither 0 nor 1 says whether it is acknowledged.
    Acknowledged(u32),
}

value!(choice VerbFault {
    NoPeers, Kind(kind), Peer { peer, count }, Bytes(bytes), Offset(offset), Log { offset, bytes, log_bytes },
    Acknowledged(word),
});

impl fmt::Display for VerbFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            VerbFault::NoPeers => write!(
                f,
                "a verb (rdma.post, rdma.poll) on a machine without links between servers (nodes.peer_log_kb)"
            ),
            VerbFault::Kind(kind) => write!(f, "a verb of kind {kind}, only {PWRITE} (rdma_pwrite) is known"),
            VerbFault::Peer { peer, count: 1 } => write!(f, "a verb to peer {peer}, only peer 1 exists"),
            VerbFault::Peer { peer, count } => write!(f, "a verb to peer {peer}, only peers 1 to {count} exist"),
            VerbFault::Bytes(bytes) => write!(
                f,
                "a verb of {bytes} bytes, which are not 1 to {} whole lines of {VERB_LINE_BYTES}",
                VERB_MAX_BYTES / VERB_LINE_BYTES
            ),
            VerbFault::Offset(offset) => {
                write!(f, "a verb to offset {offset} of a log, which is no multiple of {VERB_LINE_BYTES}")
            }
            VerbFault::Log { offset, bytes, log_bytes } => write!(
                f,
                "a verb of {bytes} bytes to offset {offset} of a log of {log_bytes} bytes (nodes.peer_log_kb)"
            ),
            VerbFault::Acknowledged(word) => {
                write!(f, "a verb whose word `acknowledged` is {word}, only 0 and 1 are known")
            }
        }
    }
}

impl Peers {
    /// A peer as a program names it.
    ///
    /// # Errors
    /// It does not exist.
    pub fn peer(self, peer: u64) -> Result<u32, VerbFault> {
        match (u32::try_from(peer), self.count) {
            (_, 0) => Err(VerbFault::NoPeers),
            (Ok(known), count) if (1..=count).contains(&known) => Ok(known),
            (_, count) => Err(VerbFault::Peer { peer, count }),
        }
    }

    /// What a descriptor says. Whether `local` lies in memory is not looked at.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn verb(self, descriptor: &[u8; DESCRIPTOR_BYTES as usize]) -> Result<Verb, VerbFault> {
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| descriptor[at + byte]));
        let double = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let peer = self.peer(word(4).into())?;
        let (offset, bytes, acknowledged) = (double(16), u64::from(word(24)), word(28));
        if word(0) != PWRITE {
            return Err(VerbFault::Kind(word(0)));
        }
        if bytes == 0 || bytes > VERB_MAX_BYTES || !bytes.is_multiple_of(VERB_LINE_BYTES) {
            return Err(VerbFault::Bytes(bytes));
        }
        if !offset.is_multiple_of(VERB_LINE_BYTES) {
            return Err(VerbFault::Offset(offset));
        }
        if offset.checked_add(bytes).is_none_or(|end| end > self.log_bytes) {
            return Err(VerbFault::Log { offset, bytes, log_bytes: self.log_bytes });
        }
        if acknowledged > 1 {
            return Err(VerbFault::Acknowledged(acknowledged));
        }
        Ok(Verb { peer, local: double(8), offset, bytes, acknowledged: acknowledged == 1 })
    }
}

/// The logs of a program's harts at all peers: hart by hart of the first peer, then of the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Logs {
    peers: Peers,
    harts: u32,
    bytes: Vec<u8>,
    /// By log: verbs until the last that asked for an acknowledgement, and all.
    verbs: Vec<(u64, u64)>,
}

impl Logs {
    /// Zeros.
    pub fn new(peers: Peers, harts: u32) -> Logs {
        let logs = (peers.count * harts) as usize;
        Logs { peers, harts, bytes: vec![0; logs * peers.log_bytes as usize], verbs: vec![(0, 0); logs] }
    }

    /// Whom they are at.
    pub fn peers(&self) -> Peers {
        self.peers
    }

    /// Their bytes, one log behind the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn log(&self, hart: u32, peer: u32) -> usize {
        ((peer - 1) * self.harts + hart) as usize
    }

    /// A verb of a hart is done.
    pub fn write(&mut self, hart: u32, verb: &Verb, bytes: &[u8]) {
        let log = self.log(hart, verb.peer);
        let at = log * self.peers.log_bytes as usize + verb.offset as usize;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        let (acknowledged, all) = &mut self.verbs[log];
        *all += 1;
        if verb.acknowledged {
            *acknowledged = *all;
        }
    }

    /// Verbs of a hart to a peer that are acknowledged: up to the last that asked for it.
    pub fn acknowledged(&self, hart: u32, peer: u32) -> u64 {
        self.verbs[self.log(hart, peer)].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEERS: Peers = Peers { count: 2, log_bytes: 4096 };

    fn descriptor(words: [u32; 8]) -> [u8; 32] {
        std::array::from_fn(|byte| words[byte / 4].to_le_bytes()[byte % 4])
    }

    #[test]
    fn a_descriptor_names_bytes_and_a_place_in_a_log() {
        let verb = PEERS.verb(&descriptor([1, 2, 0x40, 0x1, 3584, 0, 512, 1]));
        let expected = Verb { peer: 2, local: 0x1_0000_0040, offset: 3584, bytes: 512, acknowledged: true };
        assert_eq!(verb, Ok(expected));
    }

    #[test]
    fn what_is_wrong_with_a_descriptor_is_told() {
        for (words, fault) in [
            ([3, 1, 0, 0, 0, 0, 64, 0], VerbFault::Kind(3)),
            ([1, 0, 0, 0, 0, 0, 64, 0], VerbFault::Peer { peer: 0, count: 2 }),
            ([1, 3, 0, 0, 0, 0, 64, 0], VerbFault::Peer { peer: 3, count: 2 }),
            ([1, 1, 0, 0, 0, 0, 0, 0], VerbFault::Bytes(0)),
            ([1, 1, 0, 0, 0, 0, 96, 0], VerbFault::Bytes(96)),
            ([1, 1, 0, 0, 0, 0, (1 << 20) + 64, 0], VerbFault::Bytes((1 << 20) + 64)),
            ([1, 1, 0, 0, 32, 0, 64, 0], VerbFault::Offset(32)),
            ([1, 1, 0, 0, 4096, 0, 64, 0], VerbFault::Log { offset: 4096, bytes: 64, log_bytes: 4096 }),
            ([1, 1, 0, 0, 64, 0, 4096, 0], VerbFault::Log { offset: 64, bytes: 4096, log_bytes: 4096 }),
            ([1, 1, 0, 0, !63, !0, 64, 0], VerbFault::Log { offset: !63, bytes: 64, log_bytes: 4096 }),
            ([1, 1, 0, 0, 0, 0, 64, 2], VerbFault::Acknowledged(2)),
        ] {
            assert_eq!(PEERS.verb(&descriptor(words)), Err(fault), "{words:?}");
        }
        assert_eq!(Peers::default().peer(1), Err(VerbFault::NoPeers));
    }

    #[test]
    fn a_verb_without_an_acknowledgement_is_counted_with_the_next_that_asks_for_one() {
        let mut logs = Logs::new(PEERS, 3);
        let verb = |acknowledged| Verb { peer: 2, local: 0, offset: 64, bytes: 64, acknowledged };
        logs.write(1, &verb(false), &[7; 64]);
        assert_eq!(logs.acknowledged(1, 2), 0);
        logs.write(1, &verb(true), &[9; 64]);
        assert_eq!((logs.acknowledged(1, 2), logs.acknowledged(1, 1), logs.acknowledged(0, 2)), (2, 0, 0));
        // Three harts at the first peer, then hart 0 at the second.
        assert_eq!(logs.bytes()[4 * 4096 + 64..][..65], [[9; 64].as_slice(), &[0]].concat());
    }
}
