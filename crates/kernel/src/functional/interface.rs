//! The interface of the functional driver: limits of a run, its counts and errors, and its observers.
//!
//! Invariant: observers see a run and do not change it; `Starts` alone changes what a CTA starts with.

use std::sync::atomic::AtomicBool;

use super::super::fault::ProgramFault;
use super::super::ir::{Class, Space};
use super::super::memory::FlatMemory;
use super::super::warp::Warp;

/// Instructions of one warp before the next warp of its CTA runs.
pub(crate) const SLICE: u32 = 1024;

/// How far a run may go.
#[derive(Debug, Clone, Copy)]
pub struct Limits<'a> {
    /// Warp instructions of the launch.
    pub warp_instructions: u64,
    /// CTAs that may be under way at once, those that wait at `pm.barrier.kr` left aside.
    pub resident_ctas: usize,
    /// Lanes of a warp, 32 or 64.
    pub warp_size: u32,
    /// Set it to end the run early.
    pub stop: Option<&'a AtomicBool>,
    /// Log updates (`pm.st.log`) to persistent memory are left out, as by a scheme that has no use for logs.
    pub drops_log_stores: bool,
    /// SMs of another machine, which gives other values to `%clock`, `%smid` and what else only a machine
    /// knows. A result that differs between two runs follows from such a value.
    pub other_machine_sms: Option<u32>,
}

impl Default for Limits<'_> {
    fn default() -> Self {
        Limits {
            warp_instructions: u64::MAX,
            resident_ctas: 1024,
            warp_size: 32,
            stop: None,
            drops_log_stores: false,
            other_machine_sms: None,
        }
    }
}

/// What a launch executed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions, one a warp.
    pub warp_instructions: u64,
    /// Instructions, one a lane whose guard held.
    pub thread_instructions: u64,
    /// Warp instructions by class, in the order of [`Class`].
    pub by_class: [u64; Class::COUNT],
    /// Memory fences.
    pub fences: u64,
    /// PM operations that are not stores.
    pub pm_operations: u64,
    /// Log updates to persistent memory that were left out, one a lane ([`Limits::drops_log_stores`]).
    pub log_stores_dropped: u64,
}

/// How a run ended before its time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The program did something wrong.
    #[error("{0}")]
    Fault(Box<ProgramFault>),
    /// Some warps wait for a barrier that no other warp will reach.
    #[error("kernel `{kernel}`, CTA {cta:?}: deadlock, {waiting}")]
    Deadlock {
        /// Kernel name.
        kernel: String,
        /// CTA index.
        cta: [u32; 3],
        /// Which warps wait where.
        waiting: String,
    },
    /// Every warp that does not wait repeats itself for ever.
    #[error("kernel `{kernel}` repeats itself for ever: {at}")]
    Repeats {
        /// Kernel name.
        kernel: String,
        /// Where a warp was that repeats itself.
        at: String,
    },
    /// The instruction limit was reached.
    #[error("kernel `{kernel}` executed {limit} warp instructions without ending: {at}")]
    InstructionLimit {
        /// Kernel name.
        kernel: String,
        limit: u64,
        /// Where a warp was that had not ended.
        at: String,
    },
    /// The caller's flag was set.
    #[error("stopped")]
    Stopped,
}

impl From<ProgramFault> for RunError {
    fn from(fault: ProgramFault) -> Self {
        RunError::Fault(Box::new(fault))
    }
}

/// Whose write it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Writer {
    /// CTA, by its number in the grid.
    pub cta: u64,
    /// How often that CTA has passed `pm.barrier.wg` or `pm.barrier.kr`.
    pub epoch: u32,
}

/// An observer of writes to global memory. It gets the writer, address and bytes of each lane's write, in the
/// driver's order.
pub type Writes<'a> = &'a mut dyn FnMut(Writer, u64, &[u8]);

/// An event of a run, as an observer gets it, in the driver's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A warp executes the instruction at `pc`; what it writes follows.
    Issued {
        /// CTA number.
        cta: u64,
        /// Warp of that CTA.
        warp: u32,
        /// Program counter.
        pc: u32,
        /// Lanes of its path.
        active: u64,
        /// Those whose guard holds.
        lanes: u64,
    },
    /// A warp is about to access memory other than its threads' own; a generic access once for each space.
    Accessed(&'a WarpAccess<'a>),
    /// A warp arrives at a barrier of its CTA.
    Arrived {
        /// CTA number.
        cta: u64,
        /// Warp of that CTA.
        warp: u32,
        /// The barrier's number, where registers have it, too; 16 for `pm.barrier.wg`.
        barrier: u8,
    },
    /// A barrier of a CTA opens: these warps have waited at it.
    Opened {
        /// CTA number.
        cta: u64,
        /// Its number; 16 for `pm.barrier.wg`.
        barrier: u8,
        /// Warps that go on.
        waiting: u64,
    },
    /// A warp arrives at the barrier of its cluster, or passes it.
    AtCluster {
        /// CTA number.
        cta: u64,
        /// Warp of that CTA.
        warp: u32,
        /// It passes.
        passes: bool,
        /// The barrier's phase, from 0.
        phase: u32,
    },
    /// A bulk copy completes bytes at a barrier in shared memory.
    Completes {
        /// CTA number.
        cta: u64,
        /// Warp of that CTA, which issued the copy.
        warp: u32,
        /// The CTA in whose shared memory the barrier is.
        owner: u64,
        /// Address of the barrier.
        barrier: u64,
    },
    /// A warp arrives at a barrier behind its products in tensor memory, as one of several.
    Commits {
        /// CTA number.
        cta: u64,
        /// Warp of that CTA.
        warp: u32,
        /// The CTA in whose shared memory the barrier is.
        owner: u64,
        /// Address of the barrier.
        barrier: u64,
    },
    /// Every CTA has arrived at `pm.barrier.kr`, or has ended.
    Gathered,
    /// A CTA has ended.
    Ended {
        /// CTA number.
        cta: u64,
    },
    /// A lane has written these bytes of global memory.
    Wrote {
        /// Who, and in which epoch.
        writer: Writer,
        /// First address.
        address: u64,
        /// What is there now.
        bytes: &'a [u8],
    },
}

/// An access of a warp to one space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarpAccess<'a> {
    /// CTA number.
    pub cta: u64,
    /// Warp of that CTA.
    pub warp: u32,
    /// The CTA whose shared memory it accesses.
    pub owner: u64,
    /// Program counter.
    pub pc: u32,
    /// Global, shared or constant memory.
    pub space: Space,
    /// What it does there.
    pub kind: AccessKind,
    /// Lanes that access.
    pub lanes: u64,
    /// Address of each, in that space.
    pub addresses: &'a [u64; 64],
    /// Bytes that a lane accesses.
    pub bytes: u32,
    /// Lanes whose write changes what is there; all where that is not known before, or not wanted
    /// ([`Wanted::changes`]).
    pub changes: u64,
}

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKind {
    Read,
    /// Writes.
    Write,
    /// Reads and writes in one.
    Atomic,
}

impl AccessKind {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            AccessKind::Read => "load",
            AccessKind::Write => "store",
            AccessKind::Atomic => "atomic",
        }
    }
}

/// Which events an observer is told of that cost something to tell; all others it gets in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// [`Event::Issued`].
    pub issued: bool,
    /// [`Event::Accessed`].
    pub accesses: bool,
    /// Of accesses, which writes change something ([`WarpAccess::changes`]).
    pub changes: bool,
    /// [`Event::Wrote`].
    pub writes: bool,
}

/// Sees the events of a run that it wants.
pub struct Observer<'a> {
    /// What it wants.
    pub wanted: Wanted,
    /// It is told.
    pub tell: &'a mut dyn FnMut(Event<'_>),
}

impl std::fmt::Debug for Observer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

/// What a CTA starts with, to be changed before it runs.
#[derive(Debug)]
pub enum Start<'a> {
    /// Memory of a CTA, all zeros; it comes before the CTA's warps.
    Memory {
        /// CTA number.
        cta: u64,
        /// Its shared memory.
        shared: &'a mut [u8],
        /// The local memory of its threads in turn, and of the lanes that are missing in its last warp.
        local: &'a mut [u8],
    },
    /// A warp at the kernel's entry. One that is left without lanes has ended.
    Warp(&'a mut Warp),
}

/// Changes what CTAs start with, and sees global memory as it is then.
pub type Starts<'a> = &'a mut dyn FnMut(Start<'_>, &FlatMemory);
