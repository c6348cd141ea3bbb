//! What messages between components carry: requests and replies of the L2, steps of barriers, words of a
//! scheme's handlers. Boxes that requests carry are in `payload`, reads and writes of memory in
//! `memory_packet`. Which component may receive which of it is in [`super::msg`].
//!
//! Each type has a `digest`: a number that stands for its content in the digest of a run. The top bits name
//! the kind of message, so that two kinds with the same fields seldom have one digest. The bytes of lines do
//! not enter.

use durawarp_checkpoint::value;
use durawarp_engine::Time;
use durawarp_persist::handler::{AccessKind, Peer, SchemeMessage};

use super::payload::Payload;
use super::requester::Requester;

/// Bytes of a packet's header on the crossbar (SM6: "read request 8 B control").
pub const HEADER_BYTES: u32 = 8;

/// What a request asks of an L2 slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// Return the sectors.
    Read,
    /// Write the payload's masked bytes; acknowledged.
    Write,
    /// Perform the atomics, return the old values.
    Atomic,
    /// Write the payload's masked bytes past the array; acknowledged when they are durable.
    NonTemporal,
    /// Write the line's dirty bytes back and keep it clean; acknowledged when all its bytes are durable.
    WriteBack,
    /// Have the line's bytes here, where they stay dirty; acknowledged at once.
    WriteBackToL2,
    /// As `WriteBack`, and the line leaves the cache.
    Flush,
    /// Write back every dirty line of persistent memory; acknowledged when all are durable.
    WriteBackAll,
    /// A marker of a persist barrier: write back what the slice's handler names; acknowledged when that is
    /// durable.
    Marker,
}

value!(choice RequestKind { Read, Write, Atomic, NonTemporal, WriteBack, WriteBackToL2, Flush, WriteBackAll, Marker });

impl RequestKind {
    /// Its payload is written.
    pub fn writes(self) -> bool {
        matches!(self, RequestKind::Write | RequestKind::NonTemporal)
    }

    /// It changes what the line holds.
    pub fn stores(self) -> bool {
        matches!(self, RequestKind::Write | RequestKind::Atomic | RequestKind::NonTemporal)
    }

    /// What it is to a persistency scheme.
    pub fn access(self) -> AccessKind {
        match self {
            RequestKind::Read => AccessKind::Load,
            RequestKind::Write | RequestKind::NonTemporal => AccessKind::Store,
            RequestKind::Atomic => AccessKind::Atomic,
            RequestKind::WriteBack
            | RequestKind::WriteBackToL2
            | RequestKind::Flush
            | RequestKind::WriteBackAll
            | RequestKind::Marker => AccessKind::WriteBack,
        }
    }

    /// Its acknowledgement is what fences wait for: it says that something is durable, as this machine reads
    /// it.
    pub fn persists(self) -> bool {
        matches!(
            self,
            RequestKind::NonTemporal
                | RequestKind::WriteBack
                | RequestKind::WriteBackToL2
                | RequestKind::Flush
                | RequestKind::WriteBackAll
                | RequestKind::Marker
        )
    }
}

/// Requester to L2 slice.
#[derive(Debug)]
pub struct Request {
    /// Address of the line's first byte.
    pub line: u64,
    /// The requester's own name for it; comes back in the reply.
    pub tag: u32,
    /// The component that sends it.
    pub from: Requester,
    /// What is asked.
    pub kind: RequestKind,
    /// Sectors concerned, one bit each.
    pub sectors: u8,
    /// Content, room, or operands.
    pub payload: Payload,
}

value!(record Request { line, tag, from, kind, sectors, payload });

impl Request {
    /// See the head of this file.
    pub fn digest(&self) -> u64 {
        self.line ^ u64::from(self.tag) << 40 ^ (self.kind as u64) << 61 ^ u64::from(self.sectors)
    }

    /// Payload bytes, after its header.
    pub fn payload_bytes(&self) -> u32 {
        match &self.payload {
            Payload::Atomics(atomics) => u32::from(atomics.count) * atomics.elem.bytes(),
            payload if self.kind.writes() => payload.line().map_or(0, |line| line.mask.count_ones()),
            _ => 0,
        }
    }
}

/// L2 slice to requester.
#[derive(Debug)]
pub struct Reply {
    /// The request's tag.
    pub tag: u32,
    /// What was asked.
    pub kind: RequestKind,
    /// Sectors returned.
    pub sectors: u8,
    /// The request's payload, filled or emptied.
    pub payload: Payload,
}

value!(record Reply { tag, kind, sectors, payload });

impl Reply {
    /// See the head of this file.
    pub fn digest(&self) -> u64 {
        1 << 63 | u64::from(self.tag) << 8 | u64::from(self.sectors)
    }
}

/// L2 slice or switch to requester: packets of the requester have left the input buffer of the slice, or of
/// the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credit {
    /// Which slice; the number of slices for the switch.
    pub slice: u16,
    pub packets: u16,
}

value!(record Credit { slice, packets });

impl Credit {
    /// See the head of this file.
    pub fn digest(&self) -> u64 {
        2 << 60 | u64::from(self.slice) << 16 | u64::from(self.packets)
    }
}

/// What an SM reports of a persist barrier of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridReport {
    /// All warps of a CTA are there.
    Reached {
        /// Which SM.
        sm: u16,
        /// Markers follow.
        marks: bool,
        /// When the first of them came: for the timeline alone.
        since: Time,
    },
    /// The SM's marker is acknowledged by every slice.
    Drained,
}

value!(choice GridReport { Reached { sm, marks, since }, Drained });

impl GridReport {
    /// See the head of this file.
    pub fn digest(&self) -> u64 {
        12 << 60
            | match self {
                GridReport::Reached { sm, marks, .. } => u64::from(*sm) << 1 | u64::from(*marks),
                GridReport::Drained => 2 << 32,
            }
    }
}

/// What the command processor has every SM do at a persist barrier of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridOrder {
    /// All CTAs are there: send a marker.
    Drain,
    /// Go on.
    Open,
}

value!(choice GridOrder { Drain, Open });

impl GridOrder {
    /// See the head of this file.
    pub fn digest(&self) -> u64 {
        12 << 60
            | match self {
                GridOrder::Drain => 1 << 32,
                GridOrder::Open => 3 << 32,
            }
    }
}

/// Between handlers of a persistency scheme.
#[derive(Debug)]
pub struct PeerMessage {
    /// Whose handler has written it.
    pub from: Peer,
    /// The scheme's own message.
    pub message: Box<dyn SchemeMessage>,
}

value!(record PeerMessage { from, message });

impl PeerMessage {
    /// See the head of this file.
    pub fn digest(&self) -> u64 {
        11 << 60 ^ self.message.digest()
    }
}
