//! Why dispatch slots are lost: the accounts of [`super::CoreCounters`].

use durawarp_checkpoint::value;

/// Why a hart dispatched nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    Memory,
    Execution,
    Stores,
    Redirect,
    Atomic,
    Fence,
    Persist,
    Call,
    Idle,
}

value!(choice Cause { Memory, Execution, Stores, Redirect, Atomic, Fence, Persist, Call, Idle });

impl Cause {
    /// The counter of its slots, without `_slots`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Cause::Memory => "memory",
            Cause::Execution => "execution",
            Cause::Stores => "store",
            Cause::Redirect => "redirect",
            Cause::Atomic => "atomic",
            Cause::Fence => "fence",
            Cause::Persist => "persist",
            Cause::Call => "call",
            Cause::Idle => "idle",
        }
    }
}

/// Slots that were lost, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lost {
    pub(super) cause: Cause,
    pub(super) hart: u8,
    /// The instruction; 0 where there is none, or nothing is watched.
    pub(super) pc: u64,
}

value!(record Lost { cause, hart, pc });

impl Lost {
    /// Of a hart without anything to do.
    pub(super) fn idle(hart: u8) -> Lost {
        Lost { cause: Cause::Idle, hart, pc: 0 }
    }
}
