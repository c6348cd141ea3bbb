//! Messages between a slice of the L2, or of homes, and its memory controller.
//!
//! ```text
//!   read    MemoryRead  ──> controller ── MemoryData ──────> a read credit is free
//!   write   MemoryWrite ──> controller ── MemoryAccepted ──> a write credit is free ── MemoryDurable
//! ```
//! The box of a line goes and comes back as those of [`super::payload`] do. Invariant: a write that is
//! durable when it is accepted has no second answer. Each type has a `digest` as those of [`super::packet`].

use durawarp_checkpoint::value;
use durawarp_engine::Time;

use super::line::Line;
use super::requester::Requester;

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
    /// Of its content, in the digest of a run.
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
    /// Of its content, in the digest of a run.
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
    /// Of its content, in the digest of a run.
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
    /// Of its content, in the digest of a run.
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
    /// Of its content, in the digest of a run.
    pub fn digest(&self) -> u64 {
        10 << 60 | u64::from(self.token)
    }
}
