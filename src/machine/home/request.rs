//! What a home slice is asked, and the sets and numbers that its parts share.

use crate::engine::Time;
use crate::machine::coherence::Want;
use crate::machine::line::Line;
use crate::machine::ports::Requester;

/// Cores, one bit each.
pub(super) type CoreSet = u64;

/// A transaction's number; tag of its read of memory.
pub(super) type TransactionId = u16;

/// What a request asks of its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    /// Its bytes, and a copy.
    Get(Want),
    /// That its bytes become durable; and that it leaves all caches.
    Clean { flush: bool },
}

/// A request of a core or of the OS.
#[derive(Debug)]
pub(super) struct HomeRequest {
    pub(super) from: Requester,
    pub(super) tag: u16,
    pub(super) ask: Ask,
    pub(super) room: Box<Line>,
    pub(super) arrived: Time,
}

/// A clean whose bytes are on their way.
#[derive(Debug)]
pub(super) struct PendingClean {
    pub(super) line: u64,
    pub(super) to: Requester,
    pub(super) tag: u16,
    pub(super) room: Box<Line>,
    pub(super) since: Time,
}
