//! What a home slice is asked, and the sets and numbers that its parts share.

use crate::coherence::Want;
use crate::line::Line;
use crate::ports::Requester;
use durawarp_checkpoint::value;
use durawarp_engine::Time;
use durawarp_persist::handler::Dependencies;

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
    /// That it has these bytes, and no core a copy.
    Write,
}

value!(choice Ask { Get(want), Clean { flush }, Write });

/// A request of a core, of the OS or of the NIC.
#[derive(Debug)]
pub(super) struct HomeRequest {
    pub(super) from: Requester,
    pub(super) tag: u16,
    pub(super) ask: Ask,
    /// Room, or the bytes that are written.
    pub(super) room: Box<Line>,
    /// What the bytes depend on from now on.
    pub(super) dependencies: Option<Box<Dependencies>>,
    pub(super) arrived: Time,
}

value!(record HomeRequest { from, tag, ask, room, dependencies, arrived });

/// An answer that waits for writes of its line to be durable.
#[derive(Debug)]
pub(super) struct PendingAnswer {
    pub(super) line: u64,
    pub(super) to: Requester,
    pub(super) since: Time,
    pub(super) answer: Answer,
}

value!(record PendingAnswer { line, to, since, answer });

/// What a clean or a write is answered.
#[derive(Debug)]
pub(super) enum Answer {
    /// To the core: [`CoreMsg::Cleaned`](crate::coherence::CoreMsg::Cleaned).
    Cleaned { tag: u16, room: Box<Line> },
    /// To the NIC: [`NicMsg::Written`](crate::verbs::NicMsg::Written).
    Written { tag: u16, room: Box<Line>, dependencies: Option<Box<Dependencies>> },
}

value!(choice Answer { Cleaned { tag, room }, Written { tag, room, dependencies } });
