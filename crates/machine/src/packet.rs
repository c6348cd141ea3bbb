//! What messages between components carry: requests and replies, reads and writes of memory, steps of
//! barriers, words of a scheme's handlers. Which component may receive which of it is in [`super::msg`].
//!
//! Line payloads (`line`) are boxed and travel in circles: a load's request carries the empty box that its
//! reply brings back full, a store's acknowledgement returns the emptied one, so no component's pool runs dry
//! and none grows. A persist's request carries the times at which it passed each stage; its acknowledgement
//! brings them back, so no component keeps a record of it.
//!
//! Each type has a `digest`: a number that stands for its content in the digest of a run. The top bits name
//! the kind of message, so that two kinds with the same fields seldom have one digest. The bytes of lines do
//! not enter.

use durawarp_checkpoint::value;
use durawarp_engine::Time;
use durawarp_kernel::ir::{AtomOp, Elem};
use durawarp_persist::handler::{AccessKind, Peer, SchemeMessage};

use super::line::{Line, SECTOR_BYTES};
use super::requester::Requester;

/// Bytes of a packet's header on the crossbar (SM6: "read request 8 B control").
pub const HEADER_BYTES: u32 = 8;

/// Elements of one request of atomics at most: the halves of 64 lanes' 16 bytes.
pub const MAX_ATOMICS: usize = 128;

/// The lanes of one warp's atomic that fall into one line, in lane order; of atomics of 16 bytes each half,
/// the lower one first.
#[derive(Debug, Clone)]
pub struct Atomics {
    /// The operation.
    pub op: AtomOp,
    /// Operand type.
    pub elem: Elem,
    /// Address of the line's first byte, where the SM has a front-end buffer.
    pub line: u64,
    /// The SM wants values back: old ones for a destination, new ones for a front-end buffer.
    pub returns: bool,
    /// Two elements at a time are the halves of 16 bytes.
    pub pairs: bool,
    /// Place of the launch whose warp asks for it: schemes at the L2 are told.
    pub launch: u8,
    /// Elements in use of the arrays below.
    pub count: u8,
    /// Lane in the warp.
    pub lane: [u8; MAX_ATOMICS],
    /// Byte offset in the line.
    pub offset: [u8; MAX_ATOMICS],
    /// First operand; the old value once performed.
    pub a: [u64; MAX_ATOMICS],
    /// Second operand (compare-and-swap's new value); the new value once performed.
    pub b: [u64; MAX_ATOMICS],
}

value!(record Atomics { op, elem, line, returns, pairs, launch, count, lane, offset, a, b });

impl Atomics {
    /// One more element of a lane, with its operands.
    #[inline]
    pub fn push(&mut self, lane: u8, offset: u8, operands: (u64, u64)) {
        let at = usize::from(self.count);
        (self.lane[at], self.offset[at]) = (lane, offset);
        (self.a[at], self.b[at]) = operands;
        self.count += 1;
    }

    /// Operations: one a lane, or a stretch of a copy's elements.
    pub fn operations(&self) -> u32 {
        u32::from(self.count) >> u32::from(self.pairs)
    }

    /// Which half of 16 bytes an element is.
    pub fn half(&self, element: usize) -> usize {
        if self.pairs { element & 1 } else { 0 }
    }

    /// Passes of a slice's atomic unit: it takes a sector at a time, and of lanes on one address one at a
    /// time.
    pub fn passes(&self) -> u32 {
        let (mut lanes, mut most) = ([0; 128], [0; 4]);
        for &offset in &self.offset[..usize::from(self.count)] {
            let (own, most) = (&mut lanes[usize::from(offset)], &mut most[usize::from(offset) / SECTOR_BYTES as usize]);
            *own += 1;
            *most = (*own).max(*most);
        }
        most.iter().sum()
    }
}

impl Default for Atomics {
    fn default() -> Self {
        Atomics {
            op: AtomOp::None,
            elem: Elem::U32,
            line: 0,
            returns: true,
            pairs: false,
            launch: 0,
            count: 0,
            lane: [0; MAX_ATOMICS],
            offset: [0; MAX_ATOMICS],
            a: [0; MAX_ATOMICS],
            b: [0; MAX_ATOMICS],
        }
    }
}

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

/// When a persist passed where, in ticks; never earlier than the place before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    /// Its warp issued it.
    pub issued: Time,
    /// It left the load-store unit for the miss queue.
    pub left: Time,
    /// Its last flit left the injection port.
    pub sent: Time,
    /// All of it was out of the slice's ejection port.
    pub reached: Time,
    /// The slice performed it.
    pub served: Time,
    /// The last write that it waits for was accepted by its controller; as `served` where there is none.
    pub accepted: Time,
    /// All that it waits for was durable.
    pub durable: Time,
}

value!(record Passed { issued, left, sent, reached, served, accepted, durable });

/// A non-temporal store or a write-back of a warp, on its way and back.
#[derive(Debug, Default)]
pub struct Persist {
    /// The bytes of a non-temporal store; room for them on the way back.
    pub line: Option<Box<Line>>,
    /// The number of its departure from the SM; 0 where its handler asks for none.
    pub number: u64,
    /// The mark that its scheme gave it.
    pub mark: u64,
    /// Place of the launch whose warp issued it.
    pub launch: u8,
    /// When it passed where, so far.
    pub passed: Passed,
}

value!(record Persist { line, number, mark, launch, passed });

/// A box that a message carries, or none.
#[derive(Debug)]
pub enum Payload {
    /// Nothing.
    None,
    /// A line: content, or room for it.
    Line(Box<Line>),
    Atomics(Box<Atomics>),
    /// A persist of a warp.
    Persist(Box<Persist>),
}

value!(choice Payload { None, Line(line), Atomics(atomics), Persist(persist) });

impl Payload {
    /// The line in it.
    pub fn line(&self) -> Option<&Line> {
        match self {
            Payload::Line(line) => Some(line),
            Payload::Persist(persist) => persist.line.as_deref(),
            Payload::None | Payload::Atomics(_) => None,
        }
    }

    /// The bytes of a line that it writes.
    pub fn bytes(&self) -> u128 {
        match self {
            Payload::Atomics(atomics) => {
                let one = (1u128 << atomics.elem.bytes()) - 1;
                atomics.offset[..usize::from(atomics.count)].iter().fold(0, |mask, &at| mask | one << at)
            }
            payload => payload.line().map_or(0, |line| line.mask),
        }
    }

    /// The mark of a non-temporal store.
    pub fn mark(&self) -> u64 {
        if let Payload::Persist(persist) = self { persist.mark } else { 0 }
    }

    /// It belongs to a log update.
    pub fn is_log(&self) -> bool {
        self.line().is_some_and(|line| line.log)
    }

    /// The place of its launch.
    pub fn launch(&self) -> u8 {
        match self {
            Payload::None => 0,
            Payload::Line(line) => line.launch,
            Payload::Atomics(atomics) => atomics.launch,
            Payload::Persist(persist) => persist.launch,
        }
    }

    /// It is of the launch in a place.
    pub fn set_launch(&mut self, place: u8) {
        match self {
            Payload::None => {}
            Payload::Line(line) => line.launch = place,
            Payload::Atomics(atomics) => atomics.launch = place,
            Payload::Persist(persist) => persist.launch = place,
        }
    }

    /// The line in it, to change.
    pub fn line_mut(&mut self) -> Option<&mut Line> {
        match self {
            Payload::Line(line) => Some(line),
            Payload::Persist(persist) => persist.line.as_deref_mut(),
            Payload::None | Payload::Atomics(_) => None,
        }
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

/// Slice to memory controller: read sectors of a line.
#[derive(Debug)]
pub struct MemoryRead {
    /// Address of the line's first byte.
    pub line: u64,
    /// The slice's MSHR.
    pub tag: u16,
    /// The slice's place at its controller.
    pub slice: u8,
    /// Sectors wanted.
    pub sectors: u8,
    /// Whose request asked for it first; none for reads of a scheme or the controller. Schedulers rank it.
    pub from: Option<Requester>,
    /// Room for them.
    pub room: Box<Line>,
}

value!(record MemoryRead { line, tag, slice, sectors, from, room });

impl MemoryRead {
    /// See the head of this file.
    pub fn digest(&self) -> u64 {
        3 << 60 ^ self.line ^ u64::from(self.sectors)
    }
}

/// Slice to memory controller: write the masked bytes of a line.
#[derive(Debug)]
pub struct MemoryWrite {
    /// Address of the line's first byte.
    pub line: u64,
    /// The slice's place at its controller.
    pub slice: u8,
    /// The slice's name for it; comes back when it is accepted, and when it is durable.
    pub token: u16,
    /// It is durable to its slice when its cells are written, though the controller's queue survives.
    pub late: bool,
    /// A clean caused it: it goes through a DRAM cache to persistent memory. Without bytes it asks that those
    /// which came before are durable.
    pub through: bool,
    /// Content.
    pub data: Box<Line>,
}

value!(record MemoryWrite { line, slice, token, late, through, data });

impl MemoryWrite {
    /// See the head of this file.
    pub fn digest(&self) -> u64 {
        let mask = self.data.mask;
        4 << 60 ^ self.line ^ (mask as u64).wrapping_mul(3) ^ (mask >> 64) as u64
    }
}

/// Controller to slice: the sectors read; frees one read credit.
#[derive(Debug)]
pub struct MemoryData {
    /// The slice's MSHR.
    pub tag: u16,
    /// Sectors read.
    pub sectors: u8,
    /// Their content.
    pub data: Box<Line>,
}

value!(record MemoryData { tag, sectors, data });

impl MemoryData {
    /// See the head of this file.
    pub fn digest(&self) -> u64 {
        5 << 60 | u64::from(self.tag) << 8 | u64::from(self.sectors)
    }
}

/// Controller to slice: a write was accepted by the write-pending queue; frees one write credit.
#[derive(Debug)]
pub struct MemoryAccepted {
    /// The write's token.
    pub token: u16,
    /// It is durable now; if not, [`MemoryDurable`] follows.
    pub durable: bool,
    /// When it was accepted.
    pub at: Time,
    /// The emptied box.
    pub room: Box<Line>,
}

value!(record MemoryAccepted { token, durable, at, room });

impl MemoryAccepted {
    /// See the head of this file.
    pub fn digest(&self) -> u64 {
        6 << 60 | u64::from(self.token) | u64::from(self.durable) << 16
    }
}

/// Controller to slice: a write that was accepted before is durable.
#[derive(Debug, Clone, Copy)]
pub struct MemoryDurable {
    /// The write's token.
    pub token: u16,
    /// When it was.
    pub at: Time,
}

value!(record MemoryDurable { token, at });

impl MemoryDurable {
    /// See the head of this file.
    pub fn digest(&self) -> u64 {
        10 << 60 | u64::from(self.token)
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
