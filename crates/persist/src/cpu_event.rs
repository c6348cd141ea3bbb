//! What hosts of a machine of CPUs tell handlers and ask them, in its own words: harts, lines, channels.
//!
//! | host | told | asked |
//! |---|---|---|
//! | core | [`CoreEvent`] | [`CoreOffer`]; once, its [`CorePolicy`] |
//! | home slice | [`HomeEvent`] | whether a line stays ([`HomeHandler::keeps`]) |
//! | NIC | [`NicEvent`] | whether a channel's buffer has room ([`NicHandler::has_room`]) |
//!
//! Memory controllers serve both machines ([`super::event::ControllerEvent`]). A hart is a number in its
//! core. Invariant: a handler that does not ask for something in its policy hears nothing of it.
//!
//! | offer | answer `Waits` | answer `Held` |
//! |---|---|---|
//! | `Issue` | the hart's store buffer stands still | - |
//! | `Victim` | the line stays | - |
//! | `Durable` | the hart waits; at a region's end write-backs may leave now | - |
//! | `Rename` | the hart's region ends first | it waits until an instruction retires |
//! | `GiveUp` | the line stays until its write-backs are acknowledged; one may leave now | - |
//!
//! [`HomeHandler::keeps`]: super::handler::HomeHandler::keeps
//! [`NicHandler::has_room`]: super::handler::NicHandler::has_room

use super::access::PathStore;
use super::dependency::Dependency;
use super::event::VictimSearch;
use super::journal::Author;
use super::vocab::RegionEnd;

/// What fences and cleans of persistency do in a core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CoreFences {
    /// Cleaned lines are written back, and every fence waits until they are durable.
    #[default]
    Wait,
    /// `pm.ofence` takes its place among the stores that the handler hears of; `pm.dfence` waits until all
    /// before it is durable ([`CoreOffer::Durable`]). Cleans do nothing.
    Order,
    /// Nothing.
    Pass,
}

/// What a core does for its handler, and what the handler wants to hear of. It does not change in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CorePolicy {
    /// What fences and cleans do.
    pub fences: CoreFences,
    /// It hears of what harts store, load and order, and which lines go from cache to cache.
    pub dependencies: bool,
    /// It has a front-end buffer: it hears of stores, of ends of regions, and of lines that go.
    pub front_end: bool,
    /// Harts ask it before atomics, `fence`s behind loads, calls and a thread's beginning
    /// ([`CoreOffer::Durable`]). With `front_end`.
    pub synchronises: bool,
    /// It holds registers of stores, and has lines of stores written back
    /// ([`Outbox::clean`](super::outbox::Outbox::clean)).
    pub renaming: bool,
    /// It is offered dirty lines of persistent memory that the L1 is to evict.
    pub victims: Option<VictimSearch>,
}

/// Something that is about to happen in a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoreOffer {
    /// A store to persistent memory, or an ordering fence, leaves the store buffer.
    Issue(u8),
    /// A dirty line leaves the L1 to make room for another.
    Victim(u64),
    /// A fence, or the end of a region, lets a hart go on that waits until all that it stored to persistent
    /// memory is durable, or all that it has to come after.
    Durable(u8),
    /// An instruction that writes a register is dispatched, and needs a physical one.
    Rename {
        /// The hart.
        hart: u8,
        /// The register: integers from 0, floating-point from 32.
        register: u8,
        /// Instructions of the hart that have been dispatched and not retired, and write one of its kind.
        in_flight: u32,
    },
    /// A line leaves the L1: another core will write it, or, changed since it was written back, it makes
    /// room.
    GiveUp(u64),
}

/// Something that has happened in a core.
#[derive(Debug, Clone, Copy)]
pub enum CoreEvent<'a> {
    /// A hart's store buffer waits to be let on, or does not any more.
    AwaitsIssue {
        /// The hart.
        hart: u8,
        /// It waits.
        waits: bool,
    },
    /// A hart has stored to persistent memory, in the order of memory.
    Stored(&'a PathStore<'a>),
    /// A hart has stored to memory that is not persistent.
    StoredVolatile {
        /// The hart.
        hart: u8,
        /// Address of the line's first byte.
        line: u64,
    },
    /// What an atomic of a hart wrote has been stored.
    AtomicPerformed(u8),
    /// A hart has loaded bytes that are in the L1.
    Observed {
        /// The hart.
        hart: u8,
        /// Address of the line's first byte.
        line: u64,
    },
    /// An ordering fence has left the store buffer.
    Fenced(u8),
    /// A line goes home, or its bytes: what these depend on goes with them
    /// ([`Outbox::depend`](super::outbox::Outbox::depend)).
    Given(u64),
    /// A line has come, or its bytes, which depend on these.
    Taken {
        /// Address of the line's first byte.
        line: u64,
        /// What must be durable before all that follows from it.
        dependencies: &'a [Dependency],
    },
    /// A hart has a thread begin in another, or calls the OS: what that depends on goes with it
    /// ([`Outbox::depend`](super::outbox::Outbox::depend)).
    ThreadBegun,
    /// A hart's recoverable region ends.
    RegionEnds {
        /// The hart.
        hart: u8,
        /// The same, for journals.
        author: Author,
        /// Its thread ends, or stops: no other region follows.
        last: bool,
    },
    /// An instruction retires.
    Retired {
        /// The hart.
        hart: u8,
        /// The register that it writes.
        register: Option<u8>,
        /// Registers that it stores by, a bit each: address and data.
        stored: u64,
    },
    /// What the handler had written back ([`Outbox::clean`](super::outbox::Outbox::clean)) is durable, of a
    /// line the oldest first.
    WrittenBack {
        /// Address of the line's first byte.
        line: u64,
        /// Core cycles since it left.
        cycles: u64,
    },
    /// A hart's region has ended: all that it stored is durable.
    RegionPersisted {
        /// The hart.
        hart: u8,
        /// Why it ends.
        reason: RegionEnd,
        /// Core cycles that the hart has waited for it.
        waited: u64,
    },
}

/// Something that has happened in a home slice.
#[derive(Debug, Clone, Copy)]
pub enum HomeEvent<'a> {
    /// A core, or the NIC, brings a line or its bytes, which depend on these.
    Taken {
        /// Address of the line's first byte.
        line: u64,
        /// What must be durable before all that follows from it.
        dependencies: &'a [Dependency],
    },
    /// A line, or its bytes, goes to a core, or the NIC overwrites it: what these depend on goes along
    /// ([`Outbox::depend`](super::outbox::Outbox::depend)).
    Given {
        /// Address of the line's first byte.
        line: u64,
        /// The core, by its number; behind the last of them the NIC.
        to: u16,
    },
}

/// Something that has happened in the NIC.
#[derive(Debug, Clone, Copy)]
pub enum NicEvent<'a> {
    /// A line of a verb goes to its channel's buffer.
    Stored(&'a PathStore<'a>),
    /// The same, on its way to its home, with what makes it durable
    /// ([`Outbox::depend`](super::outbox::Outbox::depend)): what it depends on itself is not known, and it
    /// stays until [`NicEvent::Answered`]. A channel has one such line.
    Posted(&'a PathStore<'a>),
    /// The home of a channel's line has it.
    Answered {
        /// The channel.
        channel: u8,
        /// What must be durable before it.
        dependencies: &'a [Dependency],
    },
    /// A verb of a channel has ended: it is settled ([`Outbox::settle`](super::outbox::Outbox::settle)) once,
    /// in the order of the channel, when all before it is durable.
    VerbEnds(u8),
}
