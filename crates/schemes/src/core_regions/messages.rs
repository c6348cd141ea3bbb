//! What handlers of cores, home slices and controllers tell each other of regions that each core orders.
//!
//! Public, so that a decorator around a handler can change messages on their way: tests make faulty machines
//! so.

use durawarp_checkpoint::{StateWriter, Storable, value};
use durawarp_persist::handler::SchemeMessage;
use durawarp_persist::journal::Author;

/// A region: its core, and how many regions that core opened before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CoreRegion {
    pub core: u16,
    /// From 0.
    pub number: u32,
}

value!(record CoreRegion { core, number });

impl CoreRegion {
    /// The author of its steps at a controller.
    pub(crate) fn at(self, controller: u16) -> Author {
        Author::HeldRegion { controller, order: self.core, region: self.number }
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
}

value!(record Copied { line, mask, bytes });

/// A message.
#[derive(Debug)]
pub enum CoreRegionMessage {
    /// Core to controller: a store of a region.
    Store(CoreRegion, Copied),
    /// Core to every controller: a region has ended.
    Boundary(CoreRegion),
    /// Controller to core: a store is here.
    Taken,
    /// Controller to controller: a region's boundary has come here, behind its stores.
    BoundaryAck(CoreRegion),
    /// Controller to core: it has written all that it has of a region of the core's.
    Persisted(CoreRegion),
    /// Core to every controller: tell me when this region of another core has persisted.
    Asked(CoreRegion),
    /// Controller to core: it has, here.
    Told(CoreRegion),
    /// Controller to home slice: a copy for this line has come.
    Arrived(u64),
}

value!(choice CoreRegionMessage {
    Store(region, copied), Boundary(region), Taken, BoundaryAck(region), Persisted(region), Asked(region), Told(region),
    Arrived(line),
});

impl SchemeMessage for CoreRegionMessage {
    fn save(&self, out: &mut StateWriter) {
        Storable::save(self, out);
    }

    fn digest(&self) -> u64 {
        let of = |kind: u64, region: &CoreRegion| kind << 56 ^ u64::from(region.core) << 32 ^ u64::from(region.number);
        match self {
            CoreRegionMessage::Store(region, copied) => {
                of(1, region) ^ copied.line ^ (copied.mask as u64).wrapping_mul(3) ^ (copied.mask >> 64) as u64
            }
            CoreRegionMessage::Boundary(region) => of(2, region),
            CoreRegionMessage::Taken => 3 << 56,
            CoreRegionMessage::BoundaryAck(region) => of(4, region),
            CoreRegionMessage::Persisted(region) => of(5, region),
            CoreRegionMessage::Asked(region) => of(6, region),
            CoreRegionMessage::Told(region) => of(7, region),
            CoreRegionMessage::Arrived(line) => 8 << 56 ^ line,
        }
    }
}
