//! What happens to persistent memory in a component, as plain data: accesses of warps, of caches, markers,
//! kernels, stores on persist paths.
//!
//! Hosts fill these in, handlers read them ([`super::event`], [`super::handler`]). Lines are addresses of
//! their first byte; lines of an access are each there once.

use super::journal::Author;
use super::vocab::{FenceRule, PersistScope, StoreClass, WriteBackClass};
use durawarp_checkpoint::value;

/// A kernel that starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelFacts {
    /// Its name.
    pub kernel: String,
    /// Its place among the launches in flight; 0 where launches run one after another.
    pub place: u8,
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
    /// Addresses of the flags of its transactions: from the first, and past the last; equal where it has
    /// none.
    pub flags: [u64; 2],
    /// Half-warps of 16 lanes that a warp has.
    pub half_warps_per_warp: u64,
    /// Non-temporal stores, log updates and write-backs of data that each warp executes; none when some are
    /// in a loop.
    pub persists_per_warp: Option<u64>,
    /// Write-backs of log updates that each warp executes, loops apart.
    pub log_write_backs_per_warp: u64,
}

value!(record KernelFacts {
    kernel, place, launch, warps, shared_bytes, communicates, stated_to_communicate, flags, half_warps_per_warp,
    persists_per_warp, log_write_backs_per_warp,
});

/// Launches in flight, by their places: at most 128 are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LaunchSet {
    places: [u64; 2],
}

value!(record LaunchSet { places });

impl LaunchSet {
    /// The launches in these places.
    ///
    /// # Panics
    /// A place is over 127.
    pub fn of(places: impl IntoIterator<Item = u8>) -> LaunchSet {
        let mut set = LaunchSet::default();
        for place in places {
            set.places[usize::from(place / 64)] |= 1 << (place % 64);
        }
        set
    }

    /// None is.
    pub fn is_empty(self) -> bool {
        self.places == [0; 2]
    }

    /// Their places, in order.
    pub fn places(self) -> impl Iterator<Item = u8> {
        (0..128).filter(move |&place| self.places[usize::from(place / 64)] >> (place % 64) & 1 == 1)
    }
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
    /// Place of its launch among those in flight.
    pub launch: u8,
    /// Numbers of its CTA or SM that are behind a fence that its warp knows of, up to this one
    /// (`IssueOrder::number`).
    pub knows: u64,
}

impl<'a> Store<'a> {
    /// One of no particular warp, to no line.
    pub fn of(class: StoreClass) -> Self {
        Store { class, warp: 0, degree: 1, atomic: false, lines: &[], accesses: 0, cta: 0, launch: 0, knows: 0 }
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
    /// Place of its launch among those in flight.
    pub launch: u8,
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
    /// At an SM, the half-warps of 16 lanes that it serves: as many accesses as it is where half-warps are
    /// coalesced by themselves; else 0.
    pub half_warps: u8,
    /// At an SM, the slots of its warp and CTA; at a slice, of a store or a write-back, the slot of the warp;
    /// else 0.
    pub by: (u8, u8),
    /// Place of its launch among those in flight; 0 where launches run one after another, and of what a
    /// combining L1 lets go.
    pub launch: u8,
    /// At a slice, its requester; else 0.
    pub from: u16,
    /// At a slice, of a non-temporal store: the mark that its SM's handler gave it (`StoreRule::mark`);
    /// else 0.
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

value!(record Marker { scope, by });

/// A store to a line of persistent memory that is about to join its line's bytes in a combining L1. The SM's
/// stores of this kind are numbered in the order of issue, and join in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joining {
    /// Address of the line's first byte.
    pub line: u64,
    /// Slots of its warp and CTA.
    pub by: (u8, u8),
    /// Place of its launch among those in flight.
    pub launch: u8,
    /// Its number, from 1.
    pub number: u64,
    /// Those of its CTA up to this number are behind a fence that its warp knows of: they have to be durable
    /// before it. Less than its own number; 0 for none.
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

/// Bytes of a line that have been stored, on their way around the caches beside the store itself.
#[derive(Debug, Clone, Copy)]
pub struct PathStore<'a> {
    /// By whom: a warp slot of an SM, a hart of a core, a channel of the NIC.
    pub by: u8,
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
