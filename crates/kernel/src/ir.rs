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
//! or a branch; `pos`, `class` and `hazards` are as long as `code`. `.func` bodies are inlined at their
//! calls; those of functions that may call themselves are subroutines after the kernel's own code, each with
//! one `Return`.
//!
//! Over 500 lines, nearly all of them type declarations and their docs: what front end and executors share
//! stands in one place.

use std::sync::Arc;

use super::alu::{AluOp, HalfFormat, HalfType, MatrixOp};
use durawarp_base::diagnostic::Diagnostic;
use durawarp_checkpoint::value;

mod asynchronous;
mod warp_group;

pub use asynchronous::{BulkBytes, BulkKind, BulkStep, CopyStep, PhaseOp};
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
    /// absent.
    pub dst: [Slot; 4],
    /// Sources. For a memory operation `src[0]` is the address, `src[1..]` an atomic's operands.
    pub src: [Slot; 4],
    /// Byte offset added to the address of a memory operation; otherwise an operation's small immediate.
    pub imm: i32,
}

impl Inst {
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
    /// [`Kernel::fragments`]; of one to several CTAs, the mask of their ranks is `c[1]` there. Between shared
    /// memories `src[0]` is the address to read (32-bit).
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
}

impl Op {
    /// Only machines with tensor cores have it: products and loads of matrices, asynchronous copies and their
    /// barriers.
    pub fn is_of_tensor_cores(&self) -> bool {
        match self {
            Op::Matrix(_) | Op::Copies(_) | Op::WarpGroup(_) => true,
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
    /// A load to several CTAs of the cluster, by a mask of their ranks; of an answer to `try_cancel`, to all.
    pub multicast: bool,
    /// Which of its bytes it moves.
    pub moves: BulkBytes,
}

value!(record Bulk { kind, atom, elem, dimensions, multicast, moves });

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
/// of the mask of CTAs, and of what says which bytes are copied; [`NONE`] where absent.
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

/// A memory access. 8 bytes; fits beside the operation's tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mem {
    /// Load, store, atomic, reduction, texture fetch.
    pub kind: MemKind,
    /// Which memory; `Generic` is resolved per lane at run time.
    pub space: Space,
    /// Type of one element in memory.
    pub elem: Elem,
    /// Elements a lane: 1, 2 or 4, contiguous.
    pub vec: u8,
    /// Cache operator.
    pub cache: CacheOp,
    /// What persistency it carries (loads and stores).
    pub hint: StoreHint,
    /// The atomic operation, for `Atomic` and `Reduction`.
    pub atom: AtomOp,
    /// Loads: the destination slots are 64-bit. Stores and atomics: the data slots are.
    pub wide: bool,
    /// Where its addresses are.
    pub address: AddressIn,
    /// Bytes of the vector that this is the first part of, to which it is aligned; else 0.
    pub whole: u8,
}

impl Mem {
    /// An asynchronous store or reduction (`st.async`, `red.async`): what it writes completes at a barrier.
    #[inline]
    pub fn completes(self, inst: &Inst) -> bool {
        matches!(self.kind, MemKind::Store | MemKind::Reduction) && inst.src[3] != NONE
    }

    /// Bytes that one lane accesses.
    pub fn bytes(self) -> u32 {
        self.elem.bytes() * u32::from(self.vec)
    }

    /// A load, texture fetch or asynchronous copy that looks into the L1, by its cache operator and by
    /// whether the L1 caches ordinary loads.
    pub fn looks_into_l1(self, caches_loads: bool) -> bool {
        match self.cache {
            CacheOp::ReadOnly => true,
            CacheOp::All | CacheOp::Streaming | CacheOp::NonTemporal => {
                caches_loads || matches!(self.kind, MemKind::Texture(_))
            }
            CacheOp::L2Only | CacheOp::Volatile => false,
        }
    }
}

/// Where the addresses of a memory access are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressIn {
    /// In the 64-bit slot `src[0]`.
    Wide,
    /// In the 32-bit slot `src[0]`.
    Narrow,
    /// In the warp's trace ([`super::traced`]).
    Trace,
}

impl AddressIn {
    /// In a slot of this width.
    pub fn slot(wide: bool) -> Self {
        if wide { AddressIn::Wide } else { AddressIn::Narrow }
    }
}

/// The kind of a memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemKind {
    /// Memory to registers.
    Load,
    /// Registers to memory. With an address in the 32-bit slot `src[3]`, its bytes complete at the `mbarrier`
    /// there, and so do those of a reduction.
    Store,
    /// Read-modify-write that returns the old value.
    Atomic,
    /// Read-modify-write without a result (`red`).
    Reduction,
    /// A texture fetch: coordinates in `src[0..3]`, four destinations, `imm` = texture index of the launch.
    Texture(TexDims),
    /// `ldmatrix`: one 8x8 matrix of 16-bit elements for each destination, from shared memory, transposed
    /// when `true`. Lanes 8 i to 8 i + 7 have the addresses of the rows of matrix i, 16 bytes each.
    Matrix(bool),
    /// `cp.async`: global memory to shared memory, past the registers. `src[0]` is the address in global
    /// memory, `src[1]` that in shared memory (64-bit when [`Mem::wide`]), to which the constant `src[3]` is
    /// added. `src[2]`, if there is one, is how many bytes are read; the others are zeros.
    Copy,
}

/// Dimensions and type of the coordinates of a texture fetch, in a byte beside the operation's tag.
/// Coordinates are x, y, z; of an array x, y and the layer, which is an integer and lies in the third place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TexDims(u8);

impl TexDims {
    const AXES: u8 = 0b0011;
    const FLOAT: u8 = 0b0100;
    const LAYERED: u8 = 0b1000;

    /// `tex.1d`, `.2d`, `.3d`, and of an array of layers `.a1d` and `.a2d`; none of other numbers of axes.
    pub(super) fn new(axes: usize, float: bool, layered: bool) -> Option<Self> {
        let most = if layered { 2 } else { 3 };
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        (1..=most)
            .contains(&axes)
            .then(|| TexDims(axes as u8 | flag(float, Self::FLOAT) | flag(layered, Self::LAYERED)))
    }

    /// Coordinates of a texel besides the layer.
    pub fn axes(self) -> usize {
        usize::from(self.0 & Self::AXES)
    }

    /// They are floats.
    pub fn is_float(self) -> bool {
        self.0 & Self::FLOAT != 0
    }

    /// There is a layer.
    pub fn is_layered(self) -> bool {
        self.0 & Self::LAYERED != 0
    }
}

/// State spaces as an access sees them. Kernel parameters are constants of the launch, not a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// Flat device memory, DRAM or NVM by address.
    Global,
    /// The CTA's shared memory, addressed from 0, and that of others of its cluster ([`super::cluster`]).
    Shared,
    /// The thread's own memory, addressed from 0.
    Local,
    /// The module's read-only constant bank, addressed from 0.
    Const,
    /// Any of the above, distinguished by the address windows of [`super::memory`].
    Generic,
}

/// The type of one element in memory: how bytes become a register value and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Elem {
    /// 8 bits, zero-extended on load.
    U8,
    /// 8 bits, sign-extended on load.
    S8,
    /// 16 bits, zero-extended on load.
    U16,
    /// 16 bits, sign-extended on load.
    S16,
    /// 32 bits (`b32`, `u32`), zero-extended into a 64-bit register.
    U32,
    /// 32 bits, sign-extended into a 64-bit register.
    S32,
    /// 32-bit float bits.
    F32,
    /// 64 bits.
    U64,
    /// 64 bits, signed (matters to atomics).
    S64,
    /// 64-bit float bits.
    F64,
}

value!(choice Elem { U8, S8, U16, S16, U32, S32, F32, U64, S64, F64 });

impl Elem {
    /// Bytes of one element.
    pub fn bytes(self) -> u32 {
        match self {
            Elem::U8 | Elem::S8 => 1,
            Elem::U16 | Elem::S16 => 2,
            Elem::U32 | Elem::S32 | Elem::F32 => 4,
            Elem::U64 | Elem::S64 | Elem::F64 => 8,
        }
    }
}

/// The first element of `data`, extended to 64 bits by its own sign.
pub(crate) fn element(elem: Elem, data: &[u8]) -> u64 {
    match elem {
        Elem::U8 => u64::from(data[0]),
        Elem::S8 => data[0] as i8 as u64,
        Elem::U16 => u64::from(u16::from_le_bytes([data[0], data[1]])),
        Elem::S16 => i16::from_le_bytes([data[0], data[1]]) as u64,
        Elem::U32 | Elem::F32 => u64::from(u32::from_le_bytes(data[..4].try_into().expect("four bytes"))),
        Elem::S32 => i32::from_le_bytes(data[..4].try_into().expect("four bytes")) as u64,
        Elem::U64 | Elem::S64 | Elem::F64 => u64::from_le_bytes(data[..8].try_into().expect("eight bytes")),
    }
}

/// Cache operators (PTX ISA, "Cache Operators"), with `volatile` and `relaxed` folded in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheOp {
    /// Cache at all levels (the default).
    All,
    /// `.cg`: cache at L2 only.
    L2Only,
    /// `.cs`: streaming, evict first.
    Streaming,
    /// `.cv` / `.volatile` / `.relaxed`: do not use a cached copy of the L1.
    Volatile,
    /// `.wt`: write through.
    NonTemporal,
    /// `.nc`: read-only data path.
    ReadOnly,
}

/// What persistency a load or a store carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreHint {
    /// An ordinary access.
    Plain,
    /// `pm.st.nt`: forced non-temporal.
    NonTemporal,
    /// `pm.st.log`: a log update whose path the persistency scheme picks. `pm.ld.log`: reads what a log
    /// update saves.
    Log,
}

/// Atomic operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtomOp {
    /// Not an atomic.
    None,
    /// old + a
    Add,
    /// old + a in half precision, each value of a pair by itself
    AddHalf(HalfType),
    /// old >= a ? 0 : old + 1
    Inc,
    /// old == 0 || old > a ? a : old - 1
    Dec,
    /// min(old, a)
    Min,
    /// max(old, a)
    Max,
    /// old & a
    And,
    /// old | a
    Or,
    /// old ^ a
    Xor,
    /// a
    Exch,
    /// old == a ? b : old
    Cas,
    /// min(old, a) of one half
    MinHalf(HalfFormat),
    /// max(old, a) of one half
    MaxHalf(HalfFormat),
    /// A step of the word of an `mbarrier`.
    Phase(PhaseOp),
}

value!(choice AtomOp {
    None, Add, AddHalf(kind), Inc, Dec, Min, Max, And, Or, Xor, Exch, Cas, MinHalf(format), MaxHalf(format), Phase(op),
});

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

/// What unit executes an instruction and how long it takes: the key into a machine's latency table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// 32- and 64-bit integer addition and subtraction, `sad`, `abs`, `neg`, and their video instructions.
    ///
    /// A video instruction has the class of its first operation: `vmad` multiplies, `vset` compares, `vshl`
    /// shifts.
    Int,
    /// Integer multiply and multiply-add.
    IntMul,
    /// Integer division and remainder.
    IntDiv,
    /// Moves, selects, logic, shifts, bit operations, signs of floats.
    Logic,
    /// Comparisons: `setp`, `set`, `testp`.
    Compare,
    /// `min` and `max` of integers, single and half precision.
    MinMax,
    /// Conversions: `cvt`.
    Convert,
    /// Single- and half-precision add, multiply, fused multiply-add.
    Fp32,
    /// Single-precision IEEE division, reciprocal and square root (`.rn` and the other roundings).
    Fp32Div,
    /// Double-precision add, multiply, fused multiply-add, `min`, `max`.
    Fp64,
    /// Double-precision division, reciprocal, square root.
    Fp64Div,
    /// Special functions (`.approx`): ex2, lg2, sin, cos, rsqrt, rcp, sqrt, div.
    Sfu,
    /// Shuffles, `match`, `redux`.
    Shuffle,
    /// Votes and the active mask.
    Vote,
    /// Reads of kernel parameters and constants.
    Const,
    /// Memory accesses (their latency is the memory system's).
    Mem,
    /// Branches, barriers, fences, exit.
    Control,
    /// Products of matrices: `mma` with four registers of a.
    Matrix,
    /// The same with two, half as deep.
    MatrixHalf,
}

value!(choice Class {
    Int, IntMul, IntDiv, Logic, Compare, MinMax, Convert, Fp32, Fp32Div, Fp64, Fp64Div, Sfu, Shuffle, Vote, Const, Mem,
    Control, Matrix, MatrixHalf,
});

impl Class {
    /// How many there are.
    pub const COUNT: usize = Class::MatrixHalf as usize + 1;
}

/// A place in a PTX file, 1-based.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SourcePos {
    pub line: u32,
    pub column: u32,
}

/// Registers that an instruction reads and writes, at most: fragments of `mma.sp`, metadata and its guard.
pub const MOST_CHECKS: usize = 18;

/// The registers an instruction must find ready, and those it makes busy, as scoreboard indices.
///
/// Scoreboard index of a register: 32-bit slots first, then 64-bit slots, then predicates (see [`Kernel`]).
/// Unused entries hold [`Kernel::no_register`], a scoreboard entry that is always ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hazards {
    /// Registers read (guard included), then those that are only written: all must be ready before issue.
    /// Never a constant.
    pub check: [u16; MOST_CHECKS],
    /// How many of `check` are read, and how many are used; [`MANY_CHECKS`] where all are in `many`.
    pub reads: u8,
    pub checks: u8,
    /// Registers written.
    pub set: [u16; 4],
    /// How many of `set` are used.
    pub sets: u8,
    /// The registers of an instruction that has more than there is room for.
    pub many: Option<Box<ManyRegisters>>,
}

/// [`Hazards::checks`] of an instruction whose registers are in [`Hazards::many`].
pub const MANY_CHECKS: u8 = u8::MAX;

/// Registers of a product of four warps, as scoreboard indices, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManyRegisters {
    /// Registers read, guard included.
    pub reads: Vec<u16>,
    /// Registers written.
    pub writes: Vec<u16>,
}

impl Hazards {
    /// Of an instruction that reads and writes these; `none` stands for no register. Doubles are left out.
    pub fn of(none: u16, reads: &[u16], writes: &[u16]) -> Hazards {
        let mut hazards =
            Hazards { check: [none; MOST_CHECKS], reads: 0, checks: 0, set: [none; 4], sets: 0, many: None };
        let mut checks: Vec<u16> = Vec::new();
        let mut add = |registers: &[u16]| {
            registers.iter().for_each(|register| {
                if !checks.contains(register) {
                    checks.push(*register);
                }
            });
            checks.len()
        };
        let (read, all) = (add(reads), add(writes));
        if all > MOST_CHECKS || writes.len() > hazards.set.len() {
            checks.truncate(read);
            hazards.checks = MANY_CHECKS;
            hazards.many = Some(Box::new(ManyRegisters { reads: checks, writes: writes.to_vec() }));
            return hazards;
        }
        hazards.check[..all].copy_from_slice(&checks);
        hazards.set[..writes.len()].copy_from_slice(writes);
        (hazards.reads, hazards.checks, hazards.sets) = (read as u8, all as u8, writes.len() as u8);
        hazards
    }

    /// The registers read, guard included.
    #[inline]
    pub fn read(&self) -> &[u16] {
        self.many.as_ref().map_or(&self.check[..usize::from(self.reads)], |many| &many.reads)
    }

    /// The registers written.
    #[inline]
    pub fn written(&self) -> &[u16] {
        self.many.as_ref().map_or(&self.set[..usize::from(self.sets)], |many| &many.writes)
    }
}

/// A kernel parameter as declared.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Param {
    /// Name in the PTX text.
    pub name: String,
    /// Byte offset in the parameter block.
    pub offset: u32,
    /// Size in bytes.
    pub bytes: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// PTX type as written: `.u64`, `.f32`, or `.b8` for a by-value struct.
    pub ptx_type: String,
}

/// What the directives of a kernel ask of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaunchBounds {
    /// Threads of a CTA at most: the product of `.maxntid`.
    pub most_threads: Option<u32>,
    /// `.reqntid`: the block, exactly.
    pub block: Option<[u32; 3]>,
    /// `.reqnctapercluster`: the CTAs of a cluster, exactly.
    pub cluster: Option<[u32; 3]>,
    /// `.explicitcluster`: a launch says how large clusters are, where `.reqnctapercluster` does not.
    pub explicit_cluster: bool,
    /// `.maxclusterrank`: CTAs of a cluster at most.
    pub most_cluster: Option<u32>,
}

impl LaunchBounds {
    /// Its launches have clusters of more than one CTA.
    pub fn has_clusters(&self) -> bool {
        self.explicit_cluster || self.cluster.is_some_and(|cluster| cluster != [1; 3])
    }
}

/// Where a constant-pool entry's value comes from; resolved once a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConstSource {
    Literal(u64),
    /// Bytes of the parameter block, read as an element and extended like a load.
    Param {
        /// Byte offset in the block.
        offset: u32,
        /// How to read it.
        elem: Elem,
    },
    /// The address of a module-scope `.global` variable plus an offset.
    Global {
        /// Index in [`Module::globals`].
        index: u32,
        /// Byte offset.
        offset: i64,
    },
    /// `%ntid`, component 0 to 2.
    BlockDim(u8),
    /// `%nctaid`, component 0 to 2.
    GridDim(u8),
    /// `%cluster_nctaid`, component 0 to 2.
    ClusterDim(u8),
    /// `%cluster_nctarank`.
    ClusterCtas,
    /// `%nclusterid`, component 0 to 2.
    ClusterGrid(u8),
    /// `%is_explicit_cluster`, 0 or 1.
    ExplicitCluster,
    /// Bytes of dynamic shared memory of the launch plus the static ones (`%total_smem_size`).
    TotalShared,
    /// Bytes of dynamic shared memory (`%dynamic_smem_size`).
    DynamicShared,
    /// A half of the address of the workspace of `grid.sync()`, [`GRID_WORKSPACE`]: `%envreg2`, `%envreg1`.
    GridWorkspace {
        /// Index in [`Module::globals`].
        index: u32,
        /// The upper 32 bits.
        high: bool,
    },
    /// The descriptor of a surface by its index in [`Kernel::surfaces`], one field a lane
    /// ([`super::launch::Surface::descriptor`]).
    Surface(u32),
    /// A size of a surface in elements.
    SurfaceSize {
        /// Index in [`Kernel::surfaces`].
        index: u32,
        /// Which size.
        size: SurfaceSize,
    },
}

/// The variable that a module has for `grid.sync()` where a kernel of it asks for one: `{u32 size, u32
/// barrier}` as the workspace of CUDA's cooperative launches (CCCL, `cuda/experimental/__hierarchy`).
pub const GRID_WORKSPACE: &str = "%grid_workspace";

/// What `suq` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SurfaceSize {
    /// Elements in x.
    Width,
    /// Rows.
    Height,
    /// Slices, or layers of an array.
    Depth,
}

/// What a special register holds when a warp starts; written into a 32-bit slot then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Special {
    /// `%tid`, component 0 to 2.
    Tid(u8),
    /// `%ctaid`, component 0 to 2.
    Ctaid(u8),
    /// `%cluster_ctaid`, component 0 to 2.
    ClusterCtaid(u8),
    /// `%cluster_ctarank`.
    ClusterRank,
    /// `%clusterid`, component 0 to 2.
    ClusterId(u8),
    /// `%laneid`.
    LaneId,
    /// `%lanemask_{eq,lt,le,gt,ge}`, in this order 0 to 4.
    LaneMask(u8),
    /// Number of the lane's group of 32 threads in the grid; every CTA starts with a group of its own. No PTX
    /// name: region formation addresses checkpoints with it (`regions.rs`).
    Group,
    /// Number of the lane in that group, 0 to 31.
    LaneOfGroup,
    /// Number of the CTA in the grid, x fastest; no PTX name either.
    Cta,
}

/// A kernel, ready to be launched.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// `.entry` name.
    pub name: String,
    /// File it came from.
    pub file: Arc<str>,
    /// Instructions; the program counter indexes them.
    pub code: Vec<Inst>,
    /// Timing class of each.
    pub class: Vec<Class>,
    /// Scoreboard needs of each.
    pub hazards: Vec<Hazards>,
    /// Place of each in the PTX text.
    pub pos: Vec<SourcePos>,
    /// 32-bit register slots.
    pub slots32: u16,
    /// 64-bit register slots.
    pub slots64: u16,
    /// Predicate slots.
    pub predicates: u16,
    /// 32-bit constant pool.
    pub consts32: Vec<ConstSource>,
    /// 64-bit constant pool.
    pub consts64: Vec<ConstSource>,
    /// What matrix instructions read besides their own operands.
    pub fragments: Vec<Fragments>,
    /// Products of four warps.
    pub group_products: Vec<GroupProduct>,
    /// Special registers to write when a warp starts: what, and the 32-bit slot.
    pub specials: Vec<(Special, Slot)>,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Size of the parameter block in bytes.
    pub param_bytes: u32,
    /// Static shared memory in bytes, padded so that dynamic shared memory starts aligned after it.
    pub shared_bytes: u32,
    /// Declares `.extern .shared` memory.
    pub dynamic_shared: bool,
    /// Local memory a thread, in bytes.
    pub local_bytes: u32,
    /// Bytes of it for the stack of recursive functions, 0 without any.
    pub stack_bytes: u32,
    /// Estimate of hardware 32-bit registers a thread: most values live at once, a 64-bit one counted twice.
    pub registers_per_thread: u32,
    /// What its directives ask of a launch.
    pub bounds: LaunchBounds,
    /// Names of textures it fetches from, in the order of `imm` of texture fetches.
    pub textures: Vec<String>,
    /// Names of surfaces that it loads from, stores to or asks for sizes.
    pub surfaces: Vec<String>,
    /// Stores and atomics that release (`.release`, `.acq_rel`), ascending.
    pub releases: Vec<u32>,
    /// Fences that order plain accesses before copies of the asynchronous proxy, ascending.
    pub proxy_fences: Vec<u32>,
    /// Where the parameter block lies in the launch's constant bank, if the kernel takes its address.
    pub param_bank: Option<u32>,
    /// Virtual registers of the PTX text that the code uses: 32-bit, 64-bit, predicates.
    pub virtual_registers: [u32; 3],
}

impl Kernel {
    /// Its CTAs wait for each other by `grid.sync()`: all of them must be resident at once.
    pub fn is_cooperative(&self) -> bool {
        let mut sources = self.consts32.iter().chain(&self.consts64);
        sources.any(|source| matches!(source, ConstSource::GridWorkspace { .. }))
    }

    /// Scoreboard entries a warp needs: every register and the always-ready one.
    pub fn scoreboard_entries(&self) -> usize {
        usize::from(self.no_register()) + 1
    }

    /// The scoreboard index of a predicate slot.
    pub fn predicate_register(&self, slot: u16) -> u16 {
        self.slots32 + self.slots64 + slot
    }

    /// The scoreboard index that stands for no register and is always ready.
    pub fn no_register(&self) -> u16 {
        self.predicate_register(self.predicates)
    }
}

/// A module-scope variable in global memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalVar {
    /// Name in the PTX text.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Alignment in bytes.
    pub align: u64,
    /// Initial bytes; shorter than `bytes` means zeros follow.
    pub init: Vec<u8>,
    /// Addresses to write into the initial bytes once the variables have theirs.
    pub relocations: Vec<Relocation>,
}

/// A 64-bit address inside an initialiser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relocation {
    /// Byte offset of the address in the initialised variable (or in the constant bank).
    pub at: u32,
    /// Index in [`Module::globals`].
    pub index: u32,
    /// Added to that variable's address.
    pub addend: i64,
}

/// A module-scope variable in the constant bank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConstVar {
    /// Name in the PTX text.
    pub name: String,
    /// Byte offset in the bank.
    pub offset: u32,
    /// Size in bytes.
    pub bytes: u32,
}

/// A PTX file, decoded.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Module {
    /// Kernels in file order.
    pub kernels: Vec<Arc<Kernel>>,
    /// `.global` variables.
    pub globals: Vec<GlobalVar>,
    /// `.const` variables; their initial bytes are in `const_bank`.
    pub consts: Vec<ConstVar>,
    /// Initial content of the constant bank.
    pub const_bank: Vec<u8>,
    /// Addresses of `.global` variables inside the constant bank.
    pub const_relocations: Vec<Relocation>,
    /// Accepted, but worth a word: `vprintf` calls that print nothing, say.
    pub warnings: Vec<Diagnostic>,
}

impl Module {
    /// The kernel of this name.
    pub fn kernel(&self, name: &str) -> Option<&Arc<Kernel>> {
        self.kernels.iter().find(|k| k.name == name)
    }

    /// The initial bytes of global variable `index`, all of them, when the variables lie at `addresses`.
    ///
    /// # Panics
    /// When `addresses` is shorter than [`Module::globals`].
    pub fn initial_bytes(&self, index: usize, addresses: &[u64]) -> Vec<u8> {
        let var = &self.globals[index];
        let mut bytes = var.init.clone();
        bytes.resize(var.bytes as usize, 0);
        relocate(&mut bytes, &var.relocations, addresses);
        bytes
    }
}

/// Writes the addresses that `relocations` ask for into `bytes`.
pub(super) fn relocate(bytes: &mut [u8], relocations: &[Relocation], addresses: &[u64]) {
    for r in relocations {
        let value = addresses[r.index as usize].wrapping_add_signed(r.addend);
        bytes[r.at as usize..r.at as usize + 8].copy_from_slice(&value.to_le_bytes());
    }
}
