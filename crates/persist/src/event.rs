//! What hosts of GPUs and memory controllers tell handlers and ask them: a host has three verbs for a
//! mechanism of a scheme, and knows none of them. Hosts of CPUs have events of their own
//! ([`super::cpu_event`]).
//!
//! | verb | when | what a handler may do |
//! |---|---|---|
//! | event | something has happened | change its state, write to its [`Outbox`](super::outbox::Outbox) |
//! | offer | something is about to happen | let it go, have it held, or have it wait; it is offered again |
//! | [`HandlerReport`] | the run is over, or stuck | count, explain |
//!
//! | host | events | offers |
//! |---|---|---|
//! | SM | [`SmEvent`] | [`SmOffer`] |
//! | L2 slice | [`SliceEvent`] | whether a line stays, a request goes ([`keeps`], [`admits`]) |
//! | memory controller, of either machine | [`ControllerEvent`] | - |
//! | command processor | [`HostHandler`](super::handler::HostHandler) | - |
//!
//! [`keeps`]: super::handler::SliceHandler::keeps
//! [`admits`]: super::handler::SliceHandler::admits
//!
//! A handler says once what it wants to hear of ([`SmInterests`], [`SliceInterests`]), so that a host does
//! not pay for what no handler wants. Invariants: an offer has no effect by itself, unless its table row says
//! so; what has gone is told as an event.
//!
//! | offer | answer `Waits` | answer `Held` |
//! |---|---|---|
//! | `Departure` | it and all behind it in the load-store unit wait | the host keeps it, others pass |
//! | `Release` | it stays held | - |
//! | `Join` | the store, and all behind it, wait | - |
//! | `Issue`, `Atomic` | the warp waits; an atomic's first offer asks for its turn | - |
//! | `Retire` | the warp's slot stays taken | - |

use super::access::{Access, Joining, KernelFacts, LaunchSet, Marker, PathStore};
use super::journal::Author;
use super::regions::RegionReport;

/// What a handler in an SM wants to hear of, or to be asked about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SmInterests {
    /// Accesses, lines that are replaced or cleaned, acknowledgements, atomics, kernels that start.
    pub accesses: bool,
    /// Warps that read in shared memory what another warp wrote, their own CTA's or another's of the cluster.
    pub shared_memory: bool,
    /// Which loads go past the L1.
    pub loads: bool,
    /// Requests that are about to leave the SM. A handler whose fences are
    /// [`FenceRule::Ordered`](super::vocab::FenceRule::Ordered) keeps order by these, or by `persist_order`.
    pub departures: bool,
    /// Its fences order what they do not wait for. Where the L1 combines stores, lines of persistent memory
    /// leave it then by [`Outbox::persist`](super::outbox::Outbox::persist) alone.
    pub persist_order: bool,
    /// What leaves by `Outbox::persist` goes to the L2, where the scheme's handlers of slices keep the order
    /// on; they say what is durable, and the SM's passes it on
    /// ([`Outbox::durable`](super::outbox::Outbox::durable)).
    pub persists_by_l2: bool,
    /// Warps ask it before they issue a store to persistent memory, and it gets a copy of what they store.
    pub front_end: bool,
    /// A warp waits until its store is durable: for bulk copies to persistent memory, too, which then leave
    /// line by line.
    pub stores_wait: bool,
}

/// What a handler in an L2 slice wants to hear of, beside accesses and lines that are replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SliceInterests {
    /// Lines whose writes are durable.
    pub durability: bool,
    /// It is asked before a store, an atomic or a write-back of an SM is served
    /// ([`admits`](super::handler::SliceHandler::admits)).
    pub admissions: bool,
    /// It is offered dirty lines of persistent memory that may make room for another.
    pub victims: Option<VictimSearch>,
}

/// Of the ways of a set, least recently used first, how many a slice, or an L1, looks at for one that its
/// handler lets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VictimSearch {
    /// All.
    Full,
    /// The first half.
    Half,
    /// The first.
    First,
}

impl VictimSearch {
    /// Ways that are looked at.
    #[inline]
    pub fn ways(self, ways: usize) -> usize {
        match self {
            VictimSearch::Full => ways,
            VictimSearch::Half => (ways / 2).max(1),
            VictimSearch::First => 1,
        }
    }
}

/// A request that is about to leave an SM for a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// Slot of its CTA.
    pub cta: u8,
    /// Address of the line's first byte.
    pub line: u64,
    /// It reads.
    pub is_load: bool,
    /// It is a non-temporal store.
    pub is_non_temporal: bool,
    /// What must be durable before it, as the handler numbered it when it was issued ([`IssueOrder`]), or
    /// what its warp knows of.
    ///
    /// [`IssueOrder`]: super::vocab::IssueOrder
    pub after: u64,
}

/// Something that is about to happen in an SM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmOffer<'a> {
    /// A request leaves the load-store unit of an SM.
    Departure(Departure),
    /// A request that is held leaves the SM, by its number.
    Release(u64),
    /// A store joins its line in a combining L1. Once it may, it has joined.
    Join(Joining),
    /// A warp issues an instruction that stores to persistent memory.
    Issue {
        /// Warp slot.
        warp: u8,
    },
    /// A warp issues an atomic on these lines. The first offer asks for its turn (`asks`); a later one
    /// looks.
    Atomic {
        /// Warp slot.
        warp: u8,
        /// The lines of persistent memory, each once; none when it looks.
        lines: &'a [u64],
        /// It asks.
        asks: bool,
    },
    /// A warp that has exited is retired: what it stored need not be followed any more.
    Retire {
        /// Warp slot.
        warp: u8,
    },
}

/// The answer to an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It happens now.
    Goes,
    /// The host keeps it aside, and offers its release.
    Held,
    /// Not now.
    Waits,
}

impl Admission {
    /// `Goes`, or `Waits`.
    pub fn goes_if(goes: bool) -> Admission {
        if goes { Admission::Goes } else { Admission::Waits }
    }
}

/// Something that has happened in an SM.
#[derive(Debug, Clone, Copy)]
pub enum SmEvent<'a> {
    /// A kernel starts; its CTAs follow.
    KernelStarts(&'a KernelFacts),
    /// The L1 serves an access. Stores and atomics pass it, and evict the line where it is.
    Accessed(&'a Access),
    /// A line leaves the L1 to make room for another.
    Replaced(u64),
    /// Where the L1 combines stores: the dirty bytes of a line have left it, at its handler's word or not.
    Cleaned(u64),
    /// A warp issues an atomic on global memory, of either kind.
    Atomic,
    /// A warp has read in shared memory what another warp of its CTA, or of its cluster, wrote.
    SharedRead {
        /// Place of its launch among those in flight.
        launch: u8,
    },
    /// A marker comes to the L1: the handler has the lines cleaned that must leave before it
    /// ([`Outbox::clean`]).
    ///
    /// [`Outbox::clean`]: super::outbox::Outbox::clean
    Marker(&'a Marker),
    /// A request has left the load-store unit under this number, or is `held`.
    Departed {
        /// The request.
        departure: Departure,
        /// Its number, from 1, in the order of departure.
        number: u64,
        /// The host keeps it.
        held: bool,
    },
    /// A request that was held has left.
    Released(u64),
    /// A non-temporal store or a write-back is acknowledged as durable.
    Acknowledged {
        /// Its number; 0 where departures are not asked for.
        number: u64,
        /// Core cycles since its warp issued it.
        cycles: u64,
        /// Place of its launch among those in flight.
        launch: u8,
    },
    /// A fence has let its warp go on without having waited for its non-temporal stores.
    FenceOrdered {
        /// Slot of the CTA.
        cta: u8,
        /// The number of the last of them ([`IssueOrder`](super::vocab::IssueOrder)).
        number: u64,
        /// The warp.
        author: Author,
    },
    /// Something waits for a dirty line to leave. Told again until it has.
    Wanted(u64),
    /// Something waits for the stores of a CTA up to this number to be durable, those to come to the L1 yet
    /// among them.
    Flush {
        /// Slot of the CTA.
        cta: u8,
        /// The number.
        number: u64,
    },
    /// A persist barrier of the kernel opens at this SM: its stores up to this number are before the barrier.
    KernelBarrier(u64),
    /// Where the handler orders what leaves a combining L1: a launch starts, or what a launch that runs
    /// depended on is over (`again`). Of the SM's stores up to this number, those of launches that are not in
    /// flight come before its stores from now on. Told to every SM at one instant.
    LaunchStarts {
        /// The number.
        number: u64,
        /// Place of the launch.
        launch: u8,
        /// Launches in flight, the starting one left out: of these no store comes first.
        beside: LaunchSet,
        /// It runs already.
        again: bool,
    },
    /// What left as `id` by [`Outbox::persist`](super::outbox::Outbox::persist) is durable, or performed at
    /// the L2 where it went there.
    Persisted(u64),
    /// A warp begins.
    WarpStarts {
        /// Warp slot.
        warp: u8,
        /// Slot of its CTA.
        cta: u8,
    },
    /// A warp is about to issue: it waits to be admitted, or does not any more.
    AwaitsIssue {
        /// Warp slot.
        warp: u8,
        /// It waits.
        waits: bool,
    },
    /// A warp has stored, in program order.
    Stored(&'a PathStore<'a>),
    /// An atomic of a warp is performed, and what it wrote has been stored here.
    AtomicPerformed {
        /// Warp slot.
        warp: u8,
    },
    /// A warp has issued a fence: what it stores behind it may depend on what others stored.
    Fenced {
        /// Warp slot.
        warp: u8,
    },
    /// A warp's recoverable region ends.
    RegionEnds {
        /// Warp slot.
        warp: u8,
        /// The warp.
        author: Author,
    },
    /// A warp has exited.
    WarpExits {
        /// Warp slot.
        warp: u8,
        /// The warp.
        author: Author,
    },
}

/// Something that has happened in an L2 slice.
#[derive(Debug, Clone, Copy)]
pub enum SliceEvent<'a> {
    /// The slice serves an access.
    Accessed(&'a Access),
    /// A line leaves the slice to make room for another.
    Replaced(u64),
    /// A marker of an SM comes to the slice. What the handler has cleaned now ([`Outbox::clean`]) must be
    /// durable before the marker is acknowledged; the host writes back what is dirty of these lines, and
    /// waits for what is on its way.
    ///
    /// [`Outbox::clean`]: super::outbox::Outbox::clean
    Drain(u16),
    /// No write of a line that has left the slice, or that a marker named, is on its way to durability any
    /// more.
    Durable(u64),
}

/// Something that has happened in a memory controller.
#[derive(Debug, Clone, Copy)]
pub enum ControllerEvent {
    /// The write queue has taken a flush, by its token: memory has its bytes, and they survive.
    Flushed(u64),
    /// A read found some of its bytes in the controller's handler.
    ReadHit,
    /// A plain flush is durable, by its token.
    Persisted(u64),
}

/// What a handler has to tell at the end, or when a run is stuck.
#[derive(Debug, Default)]
pub struct HandlerReport {
    /// What it counted, by names with units last; added up over all handlers of a machine.
    pub counters: Vec<(&'static str, u64)>,
    /// What it saw of recoverable regions, under a scheme that has them.
    pub regions: Option<RegionReport>,
    /// What else it has to tell, as plain data; of a hub.
    pub results: serde_json::Value,
    /// Who waits in it, and for what.
    pub waits: Vec<(String, String)>,
}

impl HandlerReport {
    /// Reports a counter.
    pub fn count(&mut self, name: &'static str, value: u64) {
        self.counters.push((name, value));
    }
}
