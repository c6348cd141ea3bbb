//! Words of region formation: options, errors, why a boundary is there, sets of registers.
//!
//! Source: LightWSP, sections III-C, IV-A, IV-C; options that the paper does not have say so.

use serde::Serialize;

use crate::decode::csr;
use crate::instruction::{A0, Class, Inst, Op, SP};

/// Number of the global pointer.
pub(crate) const GP: u8 = 3;

/// Bytes of a hart's slots: one for each register by its number, in place of x0 `fcsr`, and the pc.
pub const SLOTS_BYTES: u64 = 1024;
/// The slot of the pc; 0 of a hart without a thread.
pub const PC_SLOT: usize = 64;
/// The slot of the step of the system behind which the hart's last call returned: see
/// [`OsLog`](crate::syscalls::OsLog).
pub const STEP_SLOT: usize = 65;
/// Bit 0 of the pc's slot says that every register is in its slot, and none is computed.
pub const COMPLETE: u64 = 1;

/// A set of architectural registers, by number: bit r is register r. Bit 0, which x0 does not need, is
/// `fcsr`.
pub type RegisterSet = u64;

/// Rounding mode and accrued exceptions of floating point.
pub const STATUS: RegisterSet = 1;
/// Every register.
pub const ALL: RegisterSet = u64::MAX;
/// What is live wherever the program is: `fcsr`, the stack pointer, the global pointer.
pub(super) const ALWAYS: RegisterSet = STATUS | 1 << SP | 1 << GP;

/// The fewest stores that a threshold may be: an atomic with its result and the boundary are three.
pub const THRESHOLD_MIN: u32 = 4;
/// The most turns of a loop between two boundaries at its header.
pub const UNROLL_MAX: u32 = 8;

/// Where threads that synchronise end regions, beside atomics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncPlacement {
    /// Fences that order stores before loads, but for those right behind a load: what a program of x86 has as
    /// an instruction. Loads that acquire and stores that release are plain moves there, and so no boundary.
    /// The paper's. (gcc 12 makes an atomic of a store that releases: it has its boundaries.)
    X86,
    /// These, loads that acquire (a fence orders them before what follows), `pause`, and loops that poll.
    /// Ours: what a region has seen must not commit before the region that stored it, and who waits must not
    /// hold others up.
    Acquires,
    /// Every fence, before and behind, the store behind a release, `pause`, and loops that poll. Ours.
    Fences,
}

/// How regions are formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RegionOptions {
    /// Most stores of a hart in a region, checkpoints and the boundary's own included. The paper: half the
    /// write pending queue of 64 entries (section IV-A).
    pub threshold_stores: u32,
    /// Most turns of a loop between two boundaries at its header; 1: a boundary each turn. Chosen: the paper
    /// has regions almost three times as long, and no number.
    pub unroll_factor: u32,
    /// Take boundaries away where the threshold allows it.
    pub merge: bool,
    /// Do not store registers that recovery can compute from constants, the stack pointer or the global
    /// pointer.
    pub prune: bool,
    /// Boundaries after atomics and fences too, not only before (the paper's way).
    pub after_sync: bool,
    /// Which fences and loads have boundaries.
    pub sync: SyncPlacement,
}

impl Default for RegionOptions {
    fn default() -> Self {
        RegionOptions {
            threshold_stores: 32,
            unroll_factor: 4,
            merge: true,
            prune: true,
            after_sync: true,
            sync: SyncPlacement::Acquires,
        }
    }
}

/// Why a program cannot be formed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegionError {
    /// A single instruction may exceed the threshold.
    #[error(
        "a threshold of {0} stores is too small: an atomic, its result and the boundary are three, so at least {min} are needed",
        min = THRESHOLD_MIN
    )]
    Threshold(u32),
    /// A loop cannot be unrolled so often.
    #[error("an unroll factor of {0}: expected 1 to {max}", max = UNROLL_MAX)]
    Unroll(u32),
    /// The file has no functions.
    #[error("the program needs a symbol table: regions are formed function by function, and it is stripped")]
    Stripped,
}

/// Why there is a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundaryReason {
    /// A function begins.
    Entry,
    /// A function returns.
    Exit,
    /// A function is called.
    Call,
    /// A loop stores.
    Loop,
    /// A fence or an atomic follows.
    Order,
    /// A fence or an atomic precedes.
    AfterOrder,
    /// A system call follows, or precedes.
    System,
    /// The program has a `pm.region` here.
    Asked,
    /// The hart is about to wait for others (`pause`, a loop that polls).
    Waiting,
    /// The region would hold too many stores.
    Threshold,
    /// An indirect jump went to a place without a boundary: made as it is executed.
    Indirect,
    /// Code that no function has: a boundary before each instruction.
    Unknown,
}

impl BoundaryReason {
    /// Every reason.
    pub const ALL: [BoundaryReason; 12] = [
        BoundaryReason::Entry,
        BoundaryReason::Exit,
        BoundaryReason::Call,
        BoundaryReason::Loop,
        BoundaryReason::Order,
        BoundaryReason::AfterOrder,
        BoundaryReason::System,
        BoundaryReason::Asked,
        BoundaryReason::Waiting,
        BoundaryReason::Threshold,
        BoundaryReason::Indirect,
        BoundaryReason::Unknown,
    ];

    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            BoundaryReason::Entry => "a function begins",
            BoundaryReason::Exit => "a function returns",
            BoundaryReason::Call => "a call",
            BoundaryReason::Loop => "a loop stores",
            BoundaryReason::Order => "before a fence or atomic",
            BoundaryReason::AfterOrder => "behind a fence or atomic",
            BoundaryReason::System => "a system call",
            BoundaryReason::Asked => "pm.region",
            BoundaryReason::Waiting => "a hart waits",
            BoundaryReason::Threshold => "threshold",
            BoundaryReason::Indirect => "an indirect jump",
            BoundaryReason::Unknown => "code of no function",
        }
    }

    /// Whether merging may take it away.
    pub(super) const fn may_go(self) -> bool {
        matches!(self, BoundaryReason::Call | BoundaryReason::Loop | BoundaryReason::Threshold)
    }
}

/// The registers that an instruction writes; of a system call, that with its result. `exceptions`: the
/// program reads those of floating point somewhere, so that what accrues them writes `fcsr`. Elsewhere nobody
/// can tell, and nothing is stored for them.
#[inline]
pub fn written(inst: &Inst, exceptions: bool) -> RegisterSet {
    let status = match inst.class() {
        Class::Csr => [csr::FFLAGS, csr::FRM, csr::FCSR].contains(&(inst.imm & 0xfff)),
        Class::Fp | Class::FpDiv | Class::FpMove | Class::FpConvert => exceptions && raises(inst.op),
        _ => false,
    };
    let result = if inst.op == Op::Ecall { Some(A0) } else { inst.destination() };
    result.map_or(0, |rd| 1 << rd) | if status { STATUS } else { 0 }
}

/// An operation of floating point may raise an exception: all but moves of bits, of signs, and
/// classification.
const fn raises(op: Op) -> bool {
    use Op::*;
    !matches!(
        op,
        FsgnjS | FsgnjnS | FsgnjxS | FsgnjD | FsgnjnD | FsgnjxD | FclassS | FclassD | FmvXW | FmvWX | FmvXD | FmvDX
    )
}

/// Whether it reads the accrued exceptions of floating point.
pub(super) fn reads_exceptions(inst: &Inst) -> bool {
    inst.class() == Class::Csr && [csr::FFLAGS, csr::FCSR].contains(&(inst.imm & 0xfff)) && inst.destination().is_some()
}

/// Whether it stores: what a region's count of stores counts.
#[inline]
pub fn stores(inst: &Inst) -> bool {
    matches!(inst.class(), Class::Store | Class::Amo | Class::StoreConditional)
}
