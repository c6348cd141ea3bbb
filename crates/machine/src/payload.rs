//! Boxes that requests to the L2 carry, and their replies: lines, atomics, persists.
//!
//! Line payloads (`line`) are boxed and travel in circles: a load's request carries the empty box that its
//! reply brings back full, a store's acknowledgement returns the emptied one, so no component's pool runs dry
//! and none grows. A persist's request carries the times at which it passed each stage; its acknowledgement
//! brings them back, so no component keeps a record of it.

use durawarp_checkpoint::value;
use durawarp_engine::Time;
use durawarp_kernel::ir::{AtomOp, Elem};

use super::line::{Line, SECTOR_BYTES};

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
