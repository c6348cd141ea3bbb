//! Accesses to memory (PTX ISA 9.7.9, 9.7.10, 9.7.13): spaces, elements, addresses, hints, what atomics do.

use durawarp_checkpoint::value;

use super::super::alu::{HalfFormat, HalfType};
use super::asynchronous::PhaseOp;

/// A memory access. 8 bytes; fits beside the operation's tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mem {
    /// Load, store, atomic, reduction, texture fetch.
    pub kind: MemKind,
    /// Which memory; `Generic` is resolved per lane at run time.
    pub space: Space,
    /// Type of one element in memory.
    pub elem: Elem,
    /// Elements a lane: 1, 2 or 4, contiguous. Of atomics 1, or the 2 halves of 16 bytes.
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
    /// Bytes that one lane accesses.
    #[inline]
    pub fn bytes(self) -> u32 {
        self.elem.bytes() * u32::from(self.vec)
    }

    /// An atomic of 16 bytes: it exchanges, or compares and swaps, both halves at once. It has each operand
    /// by halves: the old value goes to `dst[0]` and `dst[1]`, the first operand is in `src[1]` and `src[2]`,
    /// the new value of a compare-and-swap in `dst[2]` and `dst[3]`, which are read.
    pub fn is_pair(self) -> bool {
        matches!(self.kind, MemKind::Atomic | MemKind::Reduction) && self.vec == 2
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
    /// In the warp's trace ([`crate::traced`]).
    Trace,
    /// The same of an asynchronous store or reduction, in the lower half; in the upper half is the address of
    /// the barrier at which its bytes complete.
    TraceWithBarrier,
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
    pub(crate) fn new(axes: usize, float: bool, layered: bool) -> Option<Self> {
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
    /// The CTA's shared memory, addressed from 0, and that of others of its cluster ([`crate::cluster`]).
    Shared,
    /// The thread's own memory, addressed from 0.
    Local,
    /// The module's read-only constant bank, addressed from 0.
    Const,
    /// Any of the above, distinguished by the address windows of [`crate::memory`].
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
    #[inline]
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
