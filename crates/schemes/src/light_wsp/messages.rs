//! What LightWSP's handlers tell each other.
//!
//! A region is known by its order (one for the machine, or an SM's) and its ID in that order. Beside the ID,
//! which hardware has and which wraps, goes the region's number, which never wraps: journals need it,
//! decisions never look at it.
//!
//! Public, so that a decorator around a handler can change messages on their way: tests make faulty machines
//! so.

use durawarp_checkpoint::{StateWriter, Storable, value};
use durawarp_persist::handler::SchemeMessage;
use durawarp_persist::journal::Author;

/// A region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tag {
    /// Which order it is in: 0, or its SM.
    pub order: u16,
    /// Its ID, modulo 2^`id_bits`.
    pub id: u16,
    /// For journals.
    pub number: u32,
}

value!(record Tag { order, id, number });

impl Tag {
    /// The author of a region's step at a controller.
    pub(super) fn at(self, controller: u16) -> Author {
        Author::HeldRegion { controller, order: self.order, region: self.number }
    }
}

/// Bytes of a line, on the persist path.
#[derive(Debug, Clone)]
pub struct Copied {
    /// Address of the line's first byte.
    pub line: u64,
    /// Which bytes.
    pub mask: u128,
    /// Their content, each in its place in the line.
    pub bytes: Box<[u8; 128]>,
    /// Entries that they take.
    pub entries: u16,
}

value!(record Copied { line, mask, bytes, entries });

/// A message.
#[derive(Debug)]
pub enum RegionMessage {
    /// SM to controller: a store of a region of a warp.
    Store(Tag, u8, Copied),
    /// SM to every controller: a region of an owner (a warp, or a CTA by its place in the SM) has ended.
    Boundary(Tag, u8),
    /// Controller to SM: so many entries of a warp's are in the WPQ.
    Taken(u8, u16),
    /// Controller to SM: it has the boundary of an owner's region, and all stores before.
    Bounded(Tag, u8),
    /// Controller to controller: bdry-ACK.
    BoundaryAck(Tag),
    /// Controller to controller: flush-ACK.
    FlushAck(Tag),
    /// Controller to slice, or to the core that made it: a copy for this line has come.
    Arrived(u64),
    /// SM to sequencer: a warp's region needs an ID; its atomic, if it is one, keeps these lines.
    Draw(u8, Vec<u64>),
    /// SM to sequencer: a warp's region has an ID, its atomic wants these lines.
    Keep(u8, Vec<u64>),
    /// SM to sequencer: a warp's atomic is performed.
    Performed(u8),
    /// Sequencer to SM: the ID of a warp's region; where there was an atomic, it may go.
    Granted(u8, Tag),
    /// Sequencer to SM: a warp's atomic may go.
    Kept(u8),
    /// The first controller to an SM: one more of its regions is committed.
    Committed,
}

value!(choice RegionMessage {
    Store(tag, warp, copied), Boundary(tag, owner), Taken(warp, entries), Bounded(tag, owner), BoundaryAck(tag),
    FlushAck(tag), Arrived(line), Draw(warp, lines), Keep(warp, lines), Performed(warp), Granted(warp, tag), Kept(warp),
    Committed,
});

impl SchemeMessage for RegionMessage {
    fn save(&self, out: &mut StateWriter) {
        Storable::save(self, out);
    }

    fn digest(&self) -> u64 {
        let of = |kind: u64, a: u64, b: u64| kind << 56 ^ a << 24 ^ b;
        let tag = |tag: &Tag| u64::from(tag.order) << 16 | u64::from(tag.id);
        match self {
            RegionMessage::Store(region, warp, copied) => {
                let (low, high) = (copied.mask as u64, (copied.mask >> 64) as u64);
                of(1, tag(region), u64::from(*warp)) ^ copied.line ^ low.wrapping_mul(3) ^ high
            }
            RegionMessage::Boundary(region, owner) => of(2, tag(region), u64::from(*owner)),
            RegionMessage::Taken(warp, entries) => of(3, u64::from(*warp), u64::from(*entries)),
            RegionMessage::Bounded(region, owner) => of(4, tag(region), u64::from(*owner)),
            RegionMessage::BoundaryAck(region) => of(5, tag(region), 0),
            RegionMessage::FlushAck(region) => of(6, tag(region), 0),
            RegionMessage::Arrived(line) => of(7, 0, *line),
            RegionMessage::Draw(warp, lines) => of(8, u64::from(*warp), lines.iter().fold(0, |sum, line| sum ^ line)),
            RegionMessage::Keep(warp, lines) => of(9, u64::from(*warp), lines.iter().fold(0, |sum, line| sum ^ line)),
            RegionMessage::Performed(warp) => of(10, u64::from(*warp), 0),
            RegionMessage::Granted(warp, region) => of(11, tag(region), u64::from(*warp)),
            RegionMessage::Kept(warp) => of(12, u64::from(*warp), 0),
            RegionMessage::Committed => of(13, 0, 0),
        }
    }
}
