//! The seam of a persist path beside the caches: a front-end buffer in each SM, links, and a scheme's handler in each memory
//! controller.
//!
//! ```text
//!   warp ──stores──> caches, whose dirty lines are dropped
//!     └──copies──> front-end buffer ──messages──> controller's handler ──flushes──> write queue
//! ```
//! Source: LightWSP (Zhou, Zeng, Jung), sections III and IV. Invariant: a host asks about persistent memory only.

use std::collections::BTreeMap;
use std::fmt::Debug;

use smallvec::SmallVec;

use super::journal::Author;
use super::outbox::{Outbox, Peer, SchemeMessage};
use super::regions::RegionReport;

/// Bytes of a line that a warp has stored, on their way around the caches beside the store itself.
#[derive(Debug, Clone, Copy)]
pub struct PathStore<'a> {
    /// Warp slot.
    pub warp: u8,
    /// Who stores, for journals.
    pub author: Author,
    /// Address of the line's first byte.
    pub line: u64,
    /// Bytes of the line.
    pub mask: u128,
    /// Their content.
    pub bytes: &'a [u8; 128],
    /// The line is of the checkpoint area.
    pub checkpoint: bool,
}

/// What a controller's handler holds back from memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// Stores of lines.
    pub stores: u64,
    /// Entries that these take, or would take if they had room.
    pub entries: u64,
}

/// Latencies of links between handlers, in ps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathLinks {
    /// Between an SM and the first controller.
    pub path_ps: u64,
    /// Between two controllers beside each other.
    pub ack_ps: u64,
    /// More for every controller that lies between: the machine's controllers stand in a row, SMs before the first.
    pub step_ps: u64,
    /// Between the hub and SMs or controllers.
    pub hub_ps: u64,
}

/// A scheme's handler in a memory controller, for a scheme that writes persistent memory by itself: then dirty lines of
/// persistent memory leave the L2 without being written.
pub trait ControllerHandler: Send + Debug {
    /// A peer has written.
    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox);

    /// The write queue has taken a flush: memory has its bytes, and they survive.
    fn flushed(&mut self, token: u64, outbox: &mut Outbox);

    /// Puts what it holds of a line's bytes over what memory has; true where there is any of `mask`.
    fn overlay(&self, line: u64, mask: u128, bytes: &mut [u8; 128]) -> bool;

    /// A read found some of its bytes here.
    fn hit(&mut self);

    /// Which stores such a read waits for, by the tokens of their flushes: the host repeats it once these are written, and does not
    /// ask again then. None: it returns what is held. Invariant: they will be written though the read has not been
    /// answered; the handler may see to that now.
    fn awaited(&mut self, _line: u64, _mask: u128, _outbox: &mut Outbox) -> SmallVec<[u64; 2]> {
        SmallVec::new()
    }

    /// It holds something of a line.
    fn holds(&self, line: u64) -> bool;

    /// Lines of which it holds something, and which of their bytes.
    fn lines(&self) -> BTreeMap<u64, u128>;

    /// How much it holds.
    fn held(&self) -> Held {
        Held::default()
    }

    /// What it counted, added up over all handlers of a machine: names with units last.
    fn tally(&self, _add: &mut dyn FnMut(&'static str, u64)) {}

    /// What it saw of recoverable regions, under a scheme that has them.
    fn region_report(&self) -> Option<RegionReport> {
        None
    }

    /// What it waits for, for a report of a run that got stuck.
    fn waits(&self) -> Option<String>;
}
