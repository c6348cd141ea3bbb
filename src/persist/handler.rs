//! The seam between a persistency scheme and the components that host it.
//!
//! A scheme is a factory of *handlers*: one for each SM, one for the command processor, and, where it wants them, one for each
//! L2 slice and one for a component of its own, the *hub*. A handler belongs to its host, hence to one partition. It decides
//! only what the schemes differ in: the way of a store, what a fence waits for, what a boundary brings to durability; and
//! what it tells its peers. The host does the rest: traffic, acknowledgements, credits. A scheme has no other state and no
//! other way to act, so it cannot break the engine's order.
//!
//! ```text
//!   SM handler ──messages──> hub handler <──messages── slice handlers        host handler ──> hub handler
//!           <──messages──          ──messages──>                 SM handler ──> slice handler
//! ```
//! Letters travel over links of their own latency and take no bandwidth of the crossbar; a slice's handler may have bytes moved
//! to memory reserved for it and back, as traffic of its slice. Invariant: a host asks a handler about accesses to persistent memory only; a handler that
//! steers loads is asked about global loads of either memory.

use std::fmt::Debug;

pub use super::event::{Admission, Departure, Event, HandlerReport, Interests, Offer};
pub use super::outbox::{Flush, Move, Outbox, Peer, SchemeMessage, opened};
pub use super::path::{ControllerHandler, Held, PathLinks, PathStore};
use super::storage::StorageCost;
use super::vocab::{
    Boundary, FenceKind, FenceRule, NonTemporalOrder, PersistScope, RegionRule, Route, StoreClass, StoreRule,
    WriteBackClass, WriteBackRule,
};

/// Where a handler sits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HandlerPlace {
    /// Number of its host among those of its kind.
    pub index: u16,
    /// SMs of the machine.
    pub sms: u16,
    /// L2 slices of the machine.
    pub slices: u16,
    /// Memory controllers of the machine.
    pub controllers: u16,
    /// Ticks in a ms.
    pub tick_khz: u64,
    /// The machine's L1s combine stores: what is stored stays there until it is cleaned.
    pub l1_combines: bool,
}

/// A kernel that starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelFacts {
    /// Its name.
    pub kernel: String,
    /// Launches before it.
    pub launch: u32,
    /// Warps of all its CTAs.
    pub warps: u64,
    /// Shared memory of a CTA, in bytes.
    pub shared_bytes: u32,
    /// It writes shared memory, has a barrier, and reads shared memory.
    pub communicates: bool,
    /// Whether its warps communicate through shared memory, where its manifest states it.
    pub stated_to_communicate: Option<bool>,
    /// Half-warps of 16 lanes that a warp has.
    pub half_warps_per_warp: u64,
    /// Non-temporal stores, log updates and write-backs of data that each warp executes; none when some are in a loop.
    pub persists_per_warp: Option<u64>,
    /// Write-backs of log updates that each warp executes, loops apart.
    pub log_write_backs_per_warp: u64,
}

/// A store to persistent memory that a warp issues.
#[derive(Debug, Clone, Copy)]
pub struct Store<'a> {
    /// What the program says about it.
    pub class: StoreClass,
    /// Warp slot.
    pub warp: u8,
    /// Line accesses after coalescing, to whatever memory.
    pub degree: u32,
    /// An atomic operation, of [`StoreClass::Data`]: it is performed at the L2, whatever way is answered.
    pub atomic: bool,
    /// The lines of persistent memory, each once.
    pub lines: &'a [u64],
    /// Line accesses to persistent memory; as many as lines, unless the coalescer makes several of one.
    pub accesses: u32,
    /// Slot of its CTA.
    pub cta: u8,
    /// Numbers of its CTA or SM that are behind a fence that its warp knows of, up to this one ([`IssueOrder::number`]).
    pub knows: u64,
}

impl<'a> Store<'a> {
    /// One of no particular warp, to no line.
    pub fn of(class: StoreClass) -> Self {
        Store { class, warp: 0, degree: 1, atomic: false, lines: &[], accesses: 0, cta: 0, knows: 0 }
    }

    /// One of no particular warp, to these lines, an access each.
    pub fn to(class: StoreClass, lines: &'a [u64]) -> Self {
        Store { lines, accesses: lines.len() as u32, degree: lines.len() as u32, ..Store::of(class) }
    }
}

/// A write-back of lines of persistent memory that a warp asks for.
#[derive(Debug, Clone, Copy)]
pub struct WriteBack<'a> {
    /// What the program says about it.
    pub class: WriteBackClass,
    /// Warp slot.
    pub warp: u8,
    /// The lines, each once.
    pub lines: &'a [u64],
}

/// A load of global memory that a warp issues; or one of its line accesses, which stalls in the L1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Line accesses after coalescing, to whatever memory.
    pub degree: u32,
    /// It goes by the read-only path (`ld.global.nc`).
    pub read_only: bool,
    /// An access of it stalls: its line is not in the L1, and every way of its set waits for a fill.
    pub stalled: bool,
    /// Where one stalls: the slice of its line has no room for a request now.
    pub slice_busy: bool,
}

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKind {
    /// It reads.
    Load,
    /// It writes, through the caches or past them.
    Store,
    /// An atomic operation.
    Atomic,
    /// It asks for a write-back or a flush.
    WriteBack,
}

/// An access to a line of persistent memory, as one level of caches serves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Address of the line's first byte.
    pub line: u64,
    /// Its bytes in the line; whole sectors for reads at the L2; none for write-backs.
    pub bytes: u128,
    /// What it does.
    pub kind: AccessKind,
    /// At an SM, the half-warps of 16 lanes that it serves: as many accesses as it is where half-warps are coalesced by
    /// themselves; else 0.
    pub half_warps: u8,
    /// At an SM, the slots of its warp and CTA; else 0.
    pub by: (u8, u8),
    /// At a slice, its requester; else 0.
    pub from: u16,
    /// At a slice, of a non-temporal store: the mark that its SM's handler gave it ([`StoreRule::mark`]); else 0.
    pub mark: u64,
    /// It belongs to a log update: it writes the log, or reads what the log saves.
    pub log: bool,
    /// What it asks for is in this cache.
    pub hit: bool,
}

/// A marker of a persist barrier at an SM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// Whose stores it is about.
    pub scope: PersistScope,
    /// Slots of the warp and of the CTA that issued it; of a kernel's marker, 0.
    pub by: (u8, u8),
}

/// A store to a line of persistent memory that is about to join its line's bytes in a combining L1. The SM's stores of this
/// kind are numbered in the order of issue, and join in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joining {
    /// Address of the line's first byte.
    pub line: u64,
    /// Slots of its warp and CTA.
    pub by: (u8, u8),
    /// Its number, from 1.
    pub number: u64,
    /// Those of its CTA up to this number are behind a fence that its warp knows of: they have to be durable before it. Less
    /// than its own number; 0 for none.
    pub after: u64,
}

/// How warps pass on what is in order: by an instruction of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synchronisation {
    /// A warp releases what it stored, to its CTA, or `wide`: to other SMs.
    Release {
        /// To other SMs.
        wide: bool,
    },
    /// A warp acquires, from its CTA, or `wide`: from other SMs.
    Acquire {
        /// From other SMs.
        wide: bool,
    },
}

/// What follows a [`Synchronisation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SynchronisationRule {
    /// What a release waits for.
    pub fence: FenceRule,
    /// The L1 forgets what is clean.
    pub forgets: bool,
}

/// A scheme's handler in a component: what its mechanism sees of what passes there, and how it acts.
pub trait Handler: Send + Debug {
    /// What it wants to hear of. Asked once.
    fn interests(&self) -> Interests {
        Interests::default()
    }

    /// Something is about to happen.
    fn offer(&mut self, _offer: &Offer<'_>, _outbox: &mut Outbox) -> Admission {
        Admission::Goes
    }

    /// Something has happened.
    fn event(&mut self, _event: &Event<'_>, _outbox: &mut Outbox) {}

    /// A CTA, in the command processor a kernel, has ended, and all its stores are performed.
    fn boundary(&mut self, _outbox: &mut Outbox) -> Boundary {
        Boundary::None
    }

    /// A peer has written.
    fn message(&mut self, _from: Peer, _message: Box<dyn SchemeMessage>, _outbox: &mut Outbox) {}

    /// Adds what it has to tell to a report.
    fn report(&self, _report: &mut HandlerReport) {}
}

/// A scheme's handler in an SM: its policy, beside its mechanism.
pub trait SmHandler: Handler {
    /// A warp stores to persistent memory.
    fn store(&mut self, store: &Store<'_>, _outbox: &mut Outbox) -> StoreRule {
        let past = store.class == StoreClass::NonTemporal;
        StoreRule::new(if past { Route::NonTemporal } else { Route::Temporal }, false)
    }

    /// A load that would use the L1 goes past it. Asked when a warp issues it, and in each cycle that it stalls.
    fn bypasses_l1(&mut self, _load: &Load) -> bool {
        false
    }

    /// A warp asks for the write-back of lines of persistent memory.
    fn write_back(&mut self, _write_back: &WriteBack<'_>, _outbox: &mut Outbox) -> WriteBackRule {
        WriteBackRule::Done
    }

    /// A warp issues a fence.
    fn fence(&mut self, _kind: FenceKind) -> FenceRule {
        FenceRule::WaitDurable
    }

    /// A warp releases or acquires. Asked of a handler that orders persists.
    fn synchronise(&mut self, _by: Synchronisation) -> SynchronisationRule {
        SynchronisationRule { fence: FenceRule::Pass, forgets: false }
    }
}

/// A scheme's handler in an L2 slice.
pub trait SliceHandler: Send + Debug {
    /// The slice serves an access.
    fn access(&mut self, _access: &Access, _outbox: &mut Outbox) {}

    /// A line leaves the slice to make room for another; its dirty bytes are written back.
    fn replaced(&mut self, _line: u64, _outbox: &mut Outbox) {}

    /// Of `ways` of a set, how many it wants to look at for one to make room, least recently used first; none to take
    /// the first as it is.
    fn victims(&self, _ways: usize) -> Option<usize> {
        None
    }

    /// A line may not make room now.
    fn keeps(&mut self, _line: u64) -> bool {
        false
    }

    /// It wants to hear when lines are durable.
    fn tracks_durability(&self) -> bool {
        false
    }

    /// A marker of an SM comes to the slice: the lines whose bytes must be durable before it is acknowledged, in order.
    /// The host writes back what is dirty of them, and waits for what is on its way.
    fn drain(&mut self, _from: u16, _lines: &mut Vec<u64>) {}

    /// No write of a line that has left the slice, or that a marker named, is on its way to durability any more. Told
    /// to a handler that tracks durability.
    fn durable(&mut self, _line: u64) {}

    /// What it counted, added up over all handlers of a machine: names with units last.
    fn tally(&self, _add: &mut dyn FnMut(&'static str, u64)) {}

    /// A peer has written.
    fn message(&mut self, _from: Peer, _message: Box<dyn SchemeMessage>, _outbox: &mut Outbox) {}
}

/// A scheme's handler in a component of its own.
pub trait HubHandler: Send + Debug {
    /// A peer has written.
    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox);

    /// Every word of its state in order, for the run's digest.
    fn state(&self, take: &mut dyn FnMut(u64));

    /// What it has to tell about the run, as plain data.
    fn report(&self) -> serde_json::Value {
        serde_json::Value::Null
    }
}

/// A scheme's handler in the command processor.
pub trait HostHandler: Send + Debug {
    /// A kernel starts. May write to the hub.
    fn kernel_start(&mut self, _kernel: &KernelFacts, _outbox: &mut Outbox) {}

    /// The last CTA of a kernel is done. May write to the hub.
    fn kernel_end(&mut self, _outbox: &mut Outbox) -> Boundary {
        Boundary::None
    }
}

/// A persistency scheme: what it is called, and a handler for every host.
pub trait Scheme: Send + Sync + Debug {
    /// Its name, as typed.
    fn name(&self) -> &'static str;

    /// What it is, in a sentence, with its source.
    fn description(&self) -> &'static str;

    /// The handler of an SM.
    fn sm_handler(&self, place: HandlerPlace) -> Box<dyn SmHandler>;

    /// The handler of an L2 slice, for a scheme that has one there.
    fn slice_handler(&self, _place: HandlerPlace) -> Option<Box<dyn SliceHandler>> {
        None
    }

    /// The handler of the scheme's own component, for a scheme that has one.
    fn hub_handler(&self, _place: HandlerPlace) -> Option<Box<dyn HubHandler>> {
        None
    }

    /// The handler of a memory controller, for a scheme that has one there.
    fn controller_handler(&self, _place: HandlerPlace) -> Option<Box<dyn ControllerHandler>> {
        None
    }

    /// Latencies of the links that a scheme with controllers' handlers has.
    fn path_links(&self) -> Option<PathLinks> {
        None
    }

    /// The handler of the command processor.
    fn host_handler(&self) -> Box<dyn HostHandler>;

    /// Its slices' handlers move bytes to memory of their own and back, which takes bandwidth.
    fn reserves_memory(&self) -> bool {
        false
    }

    /// What it cannot do on a machine of so many components: the parameter to blame, and why.
    fn unfit(&self, _: HandlerPlace) -> Option<(String, String)> {
        None
    }

    /// What it promises about the order of non-temporal stores.
    fn non_temporal_order(&self) -> NonTemporalOrder {
        NonTemporalOrder::ByFences
    }

    /// What the storage that it adds to a machine of these SMs and slices costs, where its paper says so.
    fn storage(&self, _: HandlerPlace) -> Vec<StorageCost> {
        Vec::new()
    }

    /// Kernels run formed into recoverable regions under it, with checkpoints, and everything is in persistent memory.
    fn regions(&self) -> Option<RegionRule> {
        None
    }

    /// Programs keep undo logs under it: automatic instrumentation applies, and log updates are performed.
    fn logs(&self) -> bool;

    /// Its SM handlers drop every log update ([`Route::Dropped`]): one that a program makes itself is not performed.
    fn drops_log_stores(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A handler that decides nothing.
    #[derive(Debug)]
    struct Plain;

    impl Handler for Plain {}
    impl SmHandler for Plain {}
    impl SliceHandler for Plain {}
    impl HostHandler for Plain {}

    #[test]
    fn a_handler_of_an_sm_that_decides_nothing_has_stores_take_their_own_way_and_fences_wait() {
        let (mut handler, outbox) = (Plain, &mut Outbox::default());
        assert_eq!(handler.interests(), Interests::default());
        for (class, route) in [
            (StoreClass::Data, Route::Temporal),
            (StoreClass::Log, Route::Temporal),
            (StoreClass::NonTemporal, Route::NonTemporal),
        ] {
            assert_eq!(SmHandler::store(&mut handler, &Store::of(class), outbox), StoreRule::new(route, false));
        }
        let of = Store::of(StoreClass::Log);
        assert_eq!((of.class, of.warp, of.degree, of.atomic, of.lines), (StoreClass::Log, 0, 1, false, &[][..]));
        let join = Offer::Join(Joining { line: 0, by: (0, 0), number: 1, after: 0 });
        assert_eq!(handler.offer(&join, outbox), Admission::Goes);
        assert!(!handler.bypasses_l1(&Load { degree: 32, read_only: false, stalled: true, slice_busy: true }));
        let write_back = WriteBack { class: WriteBackClass::Log, warp: 0, lines: &[] };
        assert_eq!(handler.write_back(&write_back, outbox), WriteBackRule::Done);
        assert_eq!(handler.fence(FenceKind::Ofence), FenceRule::WaitDurable);
        let passes = SynchronisationRule { fence: FenceRule::Pass, forgets: false };
        assert_eq!(handler.synchronise(Synchronisation::Acquire { wide: true }), passes);
        assert_eq!(handler.boundary(outbox), Boundary::None);
        assert!(outbox.is_empty());
    }

    #[test]
    fn handlers_of_slices_and_of_the_host_that_decide_nothing_keep_no_line_and_no_boundary() {
        let (mut handler, outbox) = (Plain, &mut Outbox::default());
        assert_eq!((handler.victims(16), handler.keeps(0), handler.tracks_durability()), (None, false, false));
        let mut lines = vec![128];
        SliceHandler::drain(&mut handler, 0, &mut lines);
        assert_eq!(lines, [128]);
        assert_eq!((handler.kernel_end(outbox), outbox.is_empty()), (Boundary::None, true));
    }
}
