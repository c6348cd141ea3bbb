//! The dense intermediate representation that kernels are decoded into, once.
//!
//! One [`Inst`] a PTX instruction (but a surface access is its address and the access, and a few others
//! take several: `wmma`, `brx.idx`, `stmatrix`, `alloca`), program counters dense from 0, registers
//! allocated to dense slots in three banks (32-bit, 64-bit, predicate). Narrower PTX registers live in
//! 32-bit slots. A *slot* with [`CONST`] set names an entry of the launch's constant pool of that width
//! instead: immediates, parameters, symbol addresses. So the executor fetches every operand in the same
//! way, and no instruction carries a string.
//!
//! Invariants: every `Branch.target` is a valid pc; the last instruction of `code` is an `Exit`, a `Return`
//! or a branch; `pos`, `class` and `hazards` are as long as `code`, and `operand_reads` is, too, or empty.
//! `.func` bodies are inlined at their calls; those of functions that may call themselves are subroutines
//! after the kernel's own code, each with one `Return`.
//!
//! Here are the instruction and its operations; accesses to memory, kernels and what schedulers know of
//! instructions have a file each.

use super::alu::{AluOp, MatrixOp};
use durawarp_checkpoint::value;

mod asynchronous;
mod hazards;
mod memory;
mod operands;
mod program;
mod tensor_memory;
mod tensor_scaled;
mod warp_group;

pub use asynchronous::{BulkBytes, BulkKind, BulkStep, CopyStep, PhaseOp, TileMode};
pub use hazards::{Class, Hazards, MANY_CHECKS, MOST_CHECKS, ManyRegisters, SourcePos};
pub(crate) use memory::element;
pub use memory::{AddressIn, AtomOp, CacheOp, Elem, Mem, MemKind, Space, StoreHint, TexDims};
pub use operands::{OPERAND_SLOTS, OperandReads, SourceOperand};
pub(crate) use program::relocate;
pub use program::{
    ConstSource, ConstVar, GRID_WORKSPACE, GlobalVar, Kernel, LaunchBounds, Module, Param, Relocation, Special,
    SurfaceSize,
};
pub use tensor_memory::{TensorKind, TensorProduct, TensorShape, TensorStep, TensorTables, TensorVector, TracedTensor};
pub use tensor_scaled::{CopyShape, PaddedElements, ScaledKind, TensorCopy};
pub(crate) use warp_group::group_registers;
pub use warp_group::{GROUP_ROWS, GroupElements, GroupFactor, GroupOperands, GroupProduct, GroupStep};

/// Lanes of one register group; a 64-wide warp is two groups.
pub const LANES: usize = 32;

/// Bit that marks a slot as an index into the launch's constant pool.
pub const CONST: u16 = 0x8000;

/// No slot: an operand that is absent.
pub const NONE: u16 = 0x7fff;

/// The reconvergence point of a branch whose paths meet only at exit.
pub const NEVER: u32 = u32::MAX;

/// A register slot, or a constant ([`CONST`] set), or [`NONE`].
pub type Slot = u16;

/// One decoded instruction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inst {
    /// What it does, fully resolved: type and modifiers are in the variant.
    pub op: Op,
    /// The predicate that guards it.
    pub guard: Guard,
    /// Destinations. For a store: the data operands (one an element), which may be constants. [`NONE`] where
    /// absent. See [`Mem::is_pair`], too.
    pub dst: [Slot; 4],
    /// Sources. For a memory operation `src[0]` is the address, `src[1..]` an atomic's operands.
    pub src: [Slot; 4],
    /// Byte offset added to the address of a memory operation; otherwise an operation's small immediate.
    pub imm: i32,
}

impl Inst {
    /// It is an asynchronous store or reduction (`st.async`, `red.async`): what it writes completes at a
    /// barrier.
    #[inline]
    pub fn completes(&self, mem: Mem) -> bool {
        matches!(mem.kind, MemKind::Store | MemKind::Reduction) && self.src[3] != NONE
    }

    /// Does nothing.
    pub const NOP: Inst = Inst { op: Op::Nop, guard: Guard::ALWAYS, dst: [NONE; 4], src: [NONE; 4], imm: 0 };

    /// Register to register, and without a guard: only other instructions of its warp ask for its values.
    #[inline]
    pub fn is_free(&self) -> bool {
        matches!(self.op, Op::Alu(_)) && self.guard == Guard::ALWAYS
    }
}

/// A guard predicate: none, `@p` or `@!p`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard(pub u16);

impl Guard {
    /// No guard: every active lane executes.
    pub const ALWAYS: Guard = Guard(u16::MAX);

    /// The guard `@p` (or `@!p` when `negated`) of predicate slot `slot`.
    pub fn new(slot: Slot, negated: bool) -> Self {
        Guard(slot << 1 | u16::from(negated))
    }

    /// The predicate slot and whether it is negated; `None` for [`Guard::ALWAYS`].
    #[inline]
    pub fn parts(self) -> Option<(Slot, bool)> {
        (self != Guard::ALWAYS).then_some((self.0 >> 1, self.0 & 1 == 1))
    }
}

/// What an instruction does, as far as a machine must know.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Op {
    /// Register to register, warp-wide operations (shuffle, vote) included. Executed by `Warp::alu`.
    Alu(AluOp),
    /// A memory access of any space, textures included.
    Mem(Mem),
    /// A branch; taken lanes go to `target`, and both paths meet again at `reconverge` (or [`NEVER`]).
    Branch {
        /// Program counter of the taken path.
        target: u32,
        /// The immediate post-dominator of the branch, ways that only leave the kernel left aside.
        reconverge: u32,
    },
    /// A call of a recursive function's subroutine, by all lanes of the path. Each lane's return address, the
    /// next pc, goes to the 32-bit slot `dst[0]`. `src[0]` is the address of the callee's frame in local
    /// memory, `src[1]` the last address at which the frame fits, both 64-bit; with `imm` 1 it fits nowhere.
    /// A frame that does not fit is a fault.
    Call {
        /// Program counter of the subroutine.
        target: u32,
    },
    /// All lanes that were called together return, to the pc in the 32-bit slot `src[0]`.
    Return,
    /// A CTA barrier.
    Barrier(Barrier),
    /// A step at the barrier of a cluster of CTAs; the order of memory is a fence's before and behind it.
    Cluster(ClusterStep),
    /// A step of a launch that overlaps the one that it depends on.
    Grid(GridStep),
    /// A memory fence.
    Fence(Scope),
    /// The active lanes end.
    Exit,
    /// A fault of the simulated program.
    Trap(Trap),
    /// Nothing (an empty statement that still issues, as `pragma` never does).
    Nop,
    /// A persistent-memory operation that is not a plain store (see [`Mem::hint`] for those).
    Pm(PmOp),
    /// Reads something only the machine knows into `dst[0]`.
    Machine(MachineRead),
    /// A step of asynchronous copies ([`MemKind::Copy`]).
    Copies(CopyStep),
    /// A step of bulk copies in groups ([`Op::Bulk`]).
    BulkGroups(BulkStep),
    /// A bulk copy of each lane, past registers and L1. `src[0]` is the address in global memory (64-bit), to
    /// which `imm` is added, `src[1]` that in shared memory, `src[2]` the number of bytes, `src[3]` the
    /// address of its barrier (32-bit each; [`NONE`] where absent). Of a tile, `src[0]` is the generic
    /// address of the tensor's map, and the coordinates are `b` and `c[0]` of entry `imm` of
    /// [`Kernel::fragments`]; offsets of pixels are `c[2]`, `c[3]` and `metadata`. Of one to several CTAs,
    /// the mask of their ranks is `c[1]` there. Between shared memories `src[0]` is the address to read
    /// (32-bit).
    Bulk(Bulk),
    /// Registers of a thread change hands between the warp and its CTA (`setmaxnreg`). All lanes take part.
    Registers(RegisterStep),
    /// d = a b + c of matrices whose elements lie across a warp. `src` is the fragment of a, `dst` that of d;
    /// those of b and c, and metadata, are entry `imm` of [`Kernel::fragments`]. Executed by
    /// `Warp::multiply`.
    Matrix(MatrixOp),
    /// A step of products of four warps. A product's operands are entry `imm` of [`Kernel::group_products`].
    /// Executed by `Warp::multiply_group`. All lanes take part.
    WarpGroup(GroupStep),
    /// A warp of a trace waits at the `mbarrier` of each lane for the end of the phase of this parity.
    AwaitPhase(bool),
    /// A step of tensor memory and its products. Executed by `Warp::tensor_step`. All lanes take part but in
    /// a product, which is of a lane.
    Tensor(TensorStep),
}

impl Op {
    /// Only machines with tensor cores have it: products and loads of matrices, asynchronous copies and their
    /// barriers.
    pub fn is_of_tensor_cores(&self) -> bool {
        match self {
            Op::Matrix(_) | Op::Copies(_) | Op::WarpGroup(_) | Op::Tensor(_) | Op::AwaitPhase(_) => true,
            Op::Mem(mem) => {
                matches!(mem.kind, MemKind::Matrix(_) | MemKind::Copy) || matches!(mem.atom, AtomOp::Phase(_))
            }
            _ => false,
        }
    }
}

/// What lanes do at the barrier of their cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterStep {
    /// `barrier.cluster.arrive`.
    Arrive,
    /// `barrier.cluster.wait`: for the phase in which they arrived.
    Wait,
}

/// What a CTA does at the border of a launch that another depends on, or that depends on another
/// ([`Launch::programmatic`](crate::launch::Launch::programmatic)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridStep {
    /// `griddepcontrol.launch_dependents`: of this CTA the launch that depends on this one may begin.
    LaunchDependents,
    /// `griddepcontrol.wait`: for the end of the launches that this one depends on.
    Wait,
}

/// A bulk copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bulk {
    pub kind: BulkKind,
    /// What a reduction does with each element in global memory, or in shared memory of another CTA.
    pub atom: AtomOp,
    /// Type of these; of a tile's, that of its tensor.
    pub elem: Elem,
    /// Of a tile: dimensions of its tensor; else 0.
    pub dimensions: u8,
    /// Of a tile: what it has of its tensor.
    pub mode: TileMode,
    /// A load to several CTAs of the cluster, by a mask of their ranks; of an answer to `try_cancel`, to all.
    pub multicast: bool,
    /// Which of its bytes it moves.
    pub moves: BulkBytes,
    /// Of a load of a tile: its barrier may be that of the other CTA of a pair (`.cta_group::2`).
    pub paired: bool,
}

value!(record Bulk { kind, atom, elem, dimensions, mode, multicast, moves, paired });

impl Bulk {
    /// What it copies is a tile of a tensor, by a map.
    pub fn is_tile(self) -> bool {
        self.dimensions > 0
    }

    /// It has an entry of [`Kernel::fragments`].
    pub fn has_fragments(self) -> bool {
        self.is_tile() || self.multicast && self.kind != BulkKind::Cancel || self.moves != BulkBytes::All
    }
}

/// How many registers a thread of a warp has from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegisterStep {
    /// So many, the others go to the pool of its CTA (`setmaxnreg.dec`).
    Release(u16),
    /// So many, once the pool of its CTA has as many as that takes (`setmaxnreg.inc`).
    Request(u16),
}

/// Slots of the fragments of a matrix instruction that [`Inst`] has no room for, or of a tile's coordinates
/// and offsets, of the mask of CTAs, and of what says which bytes are copied; [`NONE`] where absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragments {
    /// Of the second factor; four where the first is sparse.
    pub b: [Slot; 4],
    /// Of the summand.
    pub c: [Slot; 4],
    /// The metadata of a sparse first factor.
    pub metadata: Slot,
}

/// What an [`Op::Trap`] reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trap {
    /// The program asks for it: `trap`.
    Asked,
    /// The address in `src[0]` (64-bit) is that of no function that an indirect call may reach.
    Callee,
    /// The number in `src[0]` (32-bit) is not less than this, the length of a list of branch targets.
    Target(u32),
}

/// A CTA barrier operation (`bar.sync`, `bar.arrive`, `bar.red`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Barrier {
    /// Barrier resource, 0 to 15.
    pub id: u8,
    /// Wait for it (`sync`, `red`) or only arrive.
    pub wait: bool,
    /// Threads expected: 0 = every thread of the CTA that has not exited.
    pub threads: u16,
    /// What `bar.red` makes of the predicates of all threads.
    pub red: BarrierRed,
    /// Registers have the resource and the threads: 32-bit `src[1]` and `src[2]`, [`NONE`] where it is stated
    /// here. [`super::warp::Warp::barrier_at`] reads them.
    pub in_registers: bool,
}

/// The reduction of a barrier (`bar.red`): predicate in `src[0]` (`imm` bit 0 negates it), result in
/// `dst[0]`.
///
/// The machine sums [`super::warp::Warp::barrier_votes`] of every arriving warp and hands
/// [`super::warp::Warp::write_barrier`] the sum and the number of threads that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarrierRed {
    /// None (`bar.sync`, `bar.arrive`).
    None,
    /// d(32) = number of threads whose predicate holds.
    Popc,
    /// p = every thread's predicate holds.
    And,
    /// p = some thread's predicate holds.
    Or,
}

/// Scopes of fences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// `.cta`
    Cta,
    /// `.gl` / `.gpu`
    Gpu,
    /// `.sys`
    Sys,
}

/// Persistent-memory operations other than stores (`specs` of the project: `workloads/README.md` lists their
/// syntax).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PmOp {
    /// Write the line back, keep it clean. Address in `src[0]` (64-bit, generic), `imm` offset; with
    /// [`NONE`] there, in the warp's trace.
    Clwb,
    /// The write-back that belongs to a log update; a scheme may drop or add it.
    ClwbLog,
    /// Write the line back and invalidate it.
    ClflushOpt,
    /// Wait until earlier persists of this warp are durable.
    Sfence,
    /// Order persists, do not wait.
    Ofence,
    /// Wait for durability.
    Dfence,
    /// Scoped persist barrier of the work-item.
    BarrierWi,
    /// Scoped persist barrier of the work-group, all of whose warps arrive ([`PmOp::gathers`]).
    BarrierWg,
    /// Scoped persist barrier of the kernel, all of whose CTAs arrive ([`PmOp::gathers`]).
    BarrierKr,
    /// A transaction starts; `imm` is its id.
    TxBegin,
    /// A transaction ends; `imm` is its id.
    TxEnd,
    /// A region boundary (LightWSP).
    Region,
    /// Persist acquire of a scope.
    Acquire(Scope),
    /// Persist release of a scope.
    Release(Scope),
}

/// Whose warps a persist barrier waits for, those that have exited left aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gathering {
    /// Those of the CTA, as `bar.sync` does.
    Cta,
    /// Those of every CTA of the launch. CTAs that have not begun are awaited, too.
    Grid,
}

impl PmOp {
    /// Whose warps arrive here before one of them goes on (scoped persist barriers: `sync_barrier` and
    /// `p_barrier` in one).
    pub fn gathers(self) -> Option<Gathering> {
        match self {
            PmOp::BarrierWg => Some(Gathering::Cta),
            PmOp::BarrierKr => Some(Gathering::Grid),
            _ => None,
        }
    }
}

/// What only the machine knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineRead {
    /// `%clock`: the SM's cycle counter, low 32 bits.
    Clock,
    /// `%clock_hi`: its high 32 bits.
    ClockHigh,
    /// `%clock64`.
    Clock64,
    /// `%globaltimer`: simulated nanoseconds.
    GlobalTimer,
    /// `%smid`.
    SmId,
    /// `%nsmid`.
    NSmId,
    /// `%warpid`: the warp slot in the SM.
    WarpId,
    /// `%nwarpid`.
    NWarpId,
}

impl MachineRead {
    /// Its destination is a 64-bit slot.
    pub fn is_wide(self) -> bool {
        matches!(self, MachineRead::Clock64 | MachineRead::GlobalTimer)
    }
}
