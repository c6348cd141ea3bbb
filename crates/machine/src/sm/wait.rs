//! What a warp waits for, as one value: where its cycles are counted, when it goes on, and what a report says
//! follow from it.
//!
//! | wait | goes on when | counted as |
//! |---|---|---|
//! | `Issue` | its scheduler picks it | ready |
//! | `Latency` | the cycle has come that its scoreboard names | execution |
//! | `Register` | memory has written the registers of its next instruction | memory |
//! | `Barrier` | the barrier opens | barrier |
//! | `Cluster` | the barrier of its cluster opens | barrier |
//! | `Prerequisites` | the launches that its own depends on are over | barrier |
//! | `Registers` | the pool of its CTA has those that it asks for | barrier |
//! | `TensorMemory` | columns of tensor memory are free | barrier |
//! | `Phase` | the phases are over that it awaits at barriers in shared memory, as its trace says | barrier |
//! | `Copies` | all its groups of asynchronous copies but the last ones have arrived | memory |
//! | `Bulk` | all its groups of bulk copies but the last ones are complete | memory |
//! | `BulkReads` | these have read shared memory | memory |
//! | `BulkDurable` | its bulk copies are complete, each line durable, as its scheme asks | persist |
//! | `Performed` | its loads and stores are performed, and what others stored before a barrier of its CTA | fence |
//! | `Released` | what the L1 has combined is performed, too | fence |
//! | `Durable` | its persists are durable; behind an ordered fence, its write-backs | persist |
//! | `Marker` | every slice has acknowledged the marker that it has issued | persist |
//! | `Peers` | the marker of another warp, or of the command processor, is acknowledged | persist |
//! | `FrontEnd` | the front-end buffer admits its next instruction | persist |
//! | `Drained` | it has exited; what it issued is done | draining |
//!
//! Invariant: a warp waits for one thing at a time; what follows a fence is part of what the warp waits for.

use durawarp_checkpoint::value;
use durawarp_persist::vocab::{FenceKind, FenceRule, PersistScope};

/// What a warp slot waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Wait {
    /// No warp is there.
    #[default]
    NoWarp,
    /// Its unit, and its turn: it is in a ready mask of its scheduler.
    Issue,
    /// A result of fixed latency: it is in the timers.
    Latency,
    /// A register that memory will write.
    Register,
    /// A barrier of its CTA, or a persist barrier that others have yet to come to.
    Barrier,
    /// The barrier of its cluster.
    Cluster,
    /// The end of the launches that its own depends on.
    Prerequisites,
    /// Registers that other warps of its CTA have yet to release.
    Registers,
    /// Columns of tensor memory that other warps of the SM have.
    TensorMemory,
    /// Phases of barriers in shared memory.
    Phase,
    /// Its groups of asynchronous copies, but the last ones, of this number.
    Copies(u32),
    /// Its groups of bulk copies, but the last ones, of this number.
    Bulk(u32),
    /// What these read of shared memory.
    BulkReads(u32),
    /// Its bulk copies, which its scheme has it wait for.
    BulkDurable,
    /// Its loads and stores, at a fence.
    Performed(
        /// What the fence asks for then.
        AfterFence,
    ),
    /// At a fence, what the L1 has combined, up to the cleaning that its slot names (`WarpSlot::releasing`).
    Released(
        /// What the fence asks for then.
        AfterFence,
    ),
    /// Its persists.
    Durable {
        /// Its non-temporal stores need not be durable, as the scheme keeps them in order.
        ordered: bool,
        /// Stores of it are in an L1 whose handler decides when they leave.
        flushing: bool,
        /// The persist barrier that it comes to then.
        then: Option<PersistScope>,
    },
    /// A marker that it has issued, for itself or for its CTA.
    Marker(PersistScope),
    /// A marker that another warp, or the command processor, has issued.
    Peers(PersistScope),
    /// The front-end buffer of its scheme.
    FrontEnd,
    /// It has exited: its accesses, and its copies in a front-end buffer.
    Drained,
}

value!(choice Wait {
    NoWarp, Issue, Latency, Register, Barrier, Cluster, Prerequisites, Registers, TensorMemory, Phase, Copies(groups), Bulk(groups), BulkReads(groups), BulkDurable, Performed(then), Released(then),
    Durable { ordered, flushing, then }, Marker(scope), Peers(scope), FrontEnd, Drained,
});

/// What an ordinary fence asks for once loads and stores are performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterFence {
    Nothing,
    /// Durability, as the machine says that such a fence does.
    Sfence,
    /// The persist barrier that the fence belongs to.
    Barrier(FenceKind, FenceRule),
}

value!(choice AfterFence { Nothing, Sfence, Barrier(kind, rule) });

/// A wait that is passed in memory is written in parts and read whole, which costs 10 % of a run of `fma`.
const _: () = assert!(size_of::<Wait>() <= 8, "a wait is passed in a register");

/// Where the cycles of a warp slot are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Account {
    /// No warp.
    Empty,
    /// Split further by why it did not issue.
    Ready,
    /// Fixed latencies.
    Execution,
    /// Data of loads.
    Memory,
    Barrier,
    /// Fences.
    Fence,
    /// Durability.
    Persist,
    /// After its exit.
    Draining,
}

value!(choice Account { Empty, Ready, Execution, Memory, Barrier, Fence, Persist, Draining });

/// Number of accounts.
pub(super) const ACCOUNTS: usize = 8;

impl Account {
    /// Those of warps that are there.
    pub(super) const RESIDENT: [Account; ACCOUNTS - 1] = [
        Account::Ready,
        Account::Execution,
        Account::Memory,
        Account::Barrier,
        Account::Fence,
        Account::Persist,
        Account::Draining,
    ];
}

impl Wait {
    /// Where its cycles are counted.
    #[inline]
    pub(super) fn account(self) -> Account {
        match self {
            Wait::NoWarp => Account::Empty,
            Wait::Issue => Account::Ready,
            Wait::Latency => Account::Execution,
            Wait::Register | Wait::Copies(_) | Wait::Bulk(_) | Wait::BulkReads(_) => Account::Memory,
            Wait::Barrier | Wait::Cluster | Wait::Prerequisites => Account::Barrier,
            Wait::Registers | Wait::TensorMemory | Wait::Phase => Account::Barrier,
            Wait::Performed(_) | Wait::Released(_) => Account::Fence,
            Wait::Durable { .. } | Wait::BulkDurable => Account::Persist,
            Wait::Marker(_) | Wait::Peers(_) | Wait::FrontEnd => Account::Persist,
            Wait::Drained => Account::Draining,
        }
    }
}
