//! Register-to-register operations, fully resolved by type, rounding and saturation.
//!
//! Source: PTX ISA 8.x, section 9.7 "Instructions". Meaning is in [`super::semantics`]; this file is
//! vocabulary only.
//!
//! Operand banks follow from the operation: "32" reads and writes 32-bit slots, "64" 64-bit slots, `p`
//! predicate slots. A narrower PTX register (8 or 16 bits) lives in a 32-bit slot **whose upper bits are
//! unspecified**: every operation on a narrow type extends its sources first, so nothing may trust them. A
//! predicate source slot with [`super::ir::CONST`] set is the constant false (low bit 0) or true (low bit 1).
//!
//! Here is the enum of all operations, and what those on integers and lanes need; the other families have a
//! file each.
//!
//! Invariant: an operation reads all of its sources before it writes a destination, so slots may coincide.

mod compare;
mod convert;
mod float;
mod matrix;
mod tiny;
mod video;

pub(crate) use compare::{Combine, Compare, CompareKind, FloatCmp, IntCmp, Truth};
pub(crate) use convert::{Cvt, CvtPack, CvtPair, CvtTf32, Fp8, Num, Tf32Round, ToFp8};
pub(crate) use float::{
    ApproxOp, FloatMode, FloatOp, HalfExtreme, HalfFormat, HalfMode, HalfOp, HalfType, Round, TestOp,
};
pub(crate) use matrix::{BitProduct, MatrixFactors, MatrixOp, MatrixSums, QuadFactors, Sparsity};
pub(crate) use tiny::{PairOf, ScaledFactors, TinyCvt, TinyFloat};
pub(crate) use video::VideoPart;
pub(crate) use video::{Video, VideoMad, VideoOp, VideoSecond, VideoSimd};

/// An ALU operation. `d`, `e` are `dst[0]`, `dst[1]`; `a`, `b`, `c`, `m` are `src[0]` to `src[3]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AluOp {
    /// d = a, 32-bit.
    Mov32,
    /// d = a, 64-bit.
    Mov64,
    /// d = a, predicates.
    MovPred,
    /// Every present `dst[i]` = `src[i]` (`ld.param.v2`, `.v4`), 64-bit slots when `true`.
    MovVec(bool),
    /// Between one wide register and the elements of a vector.
    Split(Split),
    /// Integer operation on 32-bit slots.
    Int32(IntOp),
    /// Integer operation on 64-bit slots (a shift's amount is in a 32-bit slot).
    Int64(IntOp),
    /// Integer operation on 16-bit values in 32-bit slots.
    Int16(IntOp),
    /// a + b of both halves of 32-bit slots.
    PairAdd16,
    /// The smaller or larger of both halves of 32-bit slots; negative results become 0 when `true`.
    PairExtreme16(IntExtreme, bool),
    /// The smaller (`true`) or larger of signed 32-bit slots, or 0 when that is negative (`.relu`).
    Rectified32(bool),
    /// d(64) = a(32) * b(32), signed when `true`.
    MulWide32(bool),
    /// d(64) = a(32) * b(32) + c(64), signed when `true`.
    MadWide32(bool),
    /// d(32) = a(16) * b(16), signed when `true`.
    MulWide16(bool),
    /// d(32) = a(16) * b(16) + c(32), signed when `true`.
    MadWide16(bool),
    /// 24-bit multiplication.
    Mul24 {
        /// Sign-extend the 24-bit operands.
        signed: bool,
        /// Bits 16 to 47 of the product instead of 0 to 31.
        high: bool,
        /// Add c.
        add: bool,
        /// Saturate the signed sum (`.hi.sat`).
        sat: bool,
    },
    /// Saturating signed 32-bit operation.
    Saturating(SatOp),
    /// Addition or subtraction with carry.
    Carry(Carry),
    /// Bit counting; d is 32-bit, a is 64-bit when the flag says so.
    Count(CountOp, bool),
    /// Bit-field extract, 64-bit a and d when `wide`; b, c 32-bit.
    Bfe {
        /// Sign-extend.
        signed: bool,
        /// 64-bit.
        wide: bool,
    },
    /// Bit-field insert of a into b at c, of m bits; 64-bit a, b, d when `true`.
    Bfi(bool),
    /// Position of the n-th set bit of a from bit b on, n = c: upwards, or downwards when c is negative.
    Fns,
    /// b ones from bit a on; positions wrap around (else clamp) when `true`.
    Bmsk(bool),
    /// Byte permutation.
    Prmt(PrmtMode),
    /// Three-input logic; the low 8 bits of `imm` are the truth table. p (`dst[1]`, optional) = (d is not 0)
    /// and the predicate m, or these with bit 8 of `imm`; bit 9 negates m. d may be absent then.
    Lop3,
    /// The low b bits of a, extended (`szext`).
    Szext {
        /// By their sign, else by zeros.
        signed: bool,
        /// b modulo 32 (else all of a when b is 32 or more).
        wrap: bool,
    },
    /// Funnel shift of the pair b:a by c.
    Shf {
        /// Left (else right).
        left: bool,
        /// Amount modulo 32 (else clamped to 32).
        wrap: bool,
    },
    /// Dot product of bytes (`dp4a`) with accumulate: a and b signed or not.
    Dp4a(bool, bool),
    /// Dot product of two 16-bit halves of a with two bytes of b (`dp2a`): signedness of a, of b, upper
    /// bytes.
    Dp2a(bool, bool, bool),
    /// Scalar video operation on parts of a and b, then on c; `imm` holds the parts of a, b and d
    /// ([`VideoPart`]), 3 bits each from the lowest.
    Video(Video),
    /// Video multiply-add on parts of a and b; `imm` holds these, as above.
    VideoMad(VideoMad),
    /// Video operation on pairs of 16 bits or quads of 8 bits; c is merged or accumulated. `imm` holds, from
    /// the lowest bit, the elements of b:a that become a's, 3 bits each, 12 bits for b's in the same way, and
    /// 4 bits of mask.
    VideoSimd(VideoSimd),
    /// p, q = compare(a, b) combined with the predicate c. On pairs of halves p is the lower comparison, q
    /// the upper one.
    Setp(Compare),
    /// d = compare(a, b) ? true : 0, on pairs of halves in each half of d. Combined with the predicate c.
    Set(Compare, Truth),
    /// d = predicate c ? a : b, 32-bit.
    Selp32,
    /// d = predicate c ? a : b, 64-bit.
    Selp64,
    /// d = c >= 0 ? a : b. 64-bit a, b, d when `wide`; c is a float when `float`.
    Slct {
        /// 64-bit data.
        wide: bool,
        /// c is `.f32` (else `.s32`).
        float: bool,
        /// A denormal c counts as zero.
        ftz: bool,
    },
    /// Logic on predicates.
    Pred(PredOp),
    /// Single-precision arithmetic.
    F32(FloatOp, FloatMode),
    /// Single-precision arithmetic on both halves of 64-bit slots (`.f32x2`).
    PairF32(FloatOp, FloatMode),
    /// Double-precision arithmetic.
    F64(FloatOp, Round),
    /// Single-precision add, sub or fma whose operands but the last are halves of this format.
    Mixed(FloatOp, FloatMode, HalfFormat),
    /// Half-precision arithmetic and approximations.
    Half(HalfOp, HalfMode),
    /// Single-precision approximation; `true` flushes denormals.
    Approx32(ApproxOp, bool),
    /// Double-precision `rcp.approx.ftz` (or `rsqrt.approx` with `true`).
    Approx64(bool),
    /// p = a (32) has this property.
    Testp32(TestOp),
    /// p = a (64) has this property.
    Testp64(TestOp),
    /// Conversion.
    Cvt(Cvt),
    /// Conversion of two singles to a pair of halves: the upper half of d from a, the lower from b.
    CvtPair(CvtPair),
    /// Conversion of singles or halves to a pair of 8-bit floats.
    ToFp8(ToFp8),
    /// Conversion of a pair of 8-bit floats to a pair of `f16`, negative ones to +0 when `true`.
    FromFp8(Fp8, bool),
    /// Conversion of a pair to or from floats of fewer than 8 bits, or scale factors.
    Tiny(TinyCvt),
    /// Conversion of a single to `tf32`.
    CvtTf32(CvtTf32),
    /// Two integers clamped and packed.
    CvtPack(CvtPack),
    /// Shuffle: d = a of another lane, p (`dst[1]`, optional) = that lane is in range.
    Shfl(ShflMode),
    /// Warp vote over the predicate a.
    Vote(VoteOp),
    /// d = mask of the lanes that execute this (within their group of 32).
    ActiveMask,
    /// d(64) = the address of a surface's bytes at x = a, y = b, z or layer = c, by the descriptor m
    /// ([`super::ir::ConstSource::Surface`]), p = they are within its bounds. d is
    /// [`super::memory::OUTSIDE_SURFACE`] where they are not.
    Surface(SurfaceAccess),
    /// p = the generic address a (64) lies in the space.
    IsSpace(SpaceTest),
    /// d = the address a of shared memory, in the CTA of rank b of the cluster; c is the own rank. 64-bit a
    /// and d, which may be generic, when `true`.
    MapShared(bool),
    /// d(32) = the rank of the CTA whose shared memory the address a names; b is the own rank. 64-bit a when
    /// `true`.
    RankOf(bool),
    /// p = this is the lowest of the lanes in the mask a that execute this, d = its number.
    Elect,
    /// d = a transposed: fragments of an 8 x 8 matrix of 16-bit elements (`movmatrix`).
    Transpose,
    /// Lane 8 i + r gets row r, of 16 bytes in `dst`, of matrix i, whose fragment is `src[i]` (`stmatrix`);
    /// of its transpose when `true`.
    MatrixRows(bool),
    /// `match.any.sync` (or `.all` with `true`); a is 64-bit when the second flag says so.
    Match(bool, bool),
    /// `redux.sync` over 32-bit a.
    Redux(ReduxOp),
    /// p = the phase of an `mbarrier` is over, by its word a (64) and the state b (64), or the parity b (32)
    /// when `true`.
    PhaseOver(bool),
    /// d(32) = arrivals that were pending in the state a (64) of an `mbarrier`.
    PhasePending,
}

impl AluOp {
    /// Whether a lane's result depends on other lanes, or on which of them execute.
    pub fn is_across_lanes(self) -> bool {
        matches!(self, AluOp::Shfl(_) | AluOp::Vote(_) | AluOp::ActiveMask | AluOp::Match(..) | AluOp::Redux(_))
            || matches!(self, AluOp::Elect | AluOp::Transpose | AluOp::MatrixRows(_))
    }
}

/// Moves between a register and the elements of a vector operand; lowest element first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Split {
    /// d(64) = {a(32), b(32)}
    Pack2x32,
    /// {d(32), e(32)} = a(64)
    Unpack2x32,
    /// d(32) = {a(16), b(16)}
    Pack2x16,
    /// {d(16), e(16)} = a(32)
    Unpack2x16,
    /// d(64) = {a(16), b(16), c(16), m(16)}
    Pack4x16,
    /// four 16-bit elements of a(64)
    Unpack4x16,
    /// d(32) = {a(8), b(8), c(8), m(8)}
    Pack4x8,
    /// four 8-bit elements of a(32)
    Unpack4x8,
    /// d(16) = {a(8), b(8)}
    Pack2x8,
    /// {d(8), e(8)} = a(16)
    Unpack2x8,
}

/// The smaller or the larger of two integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IntExtreme {
    /// The smaller, signed.
    MinS,
    /// The smaller, unsigned.
    MinU,
    /// The larger, signed.
    MaxS,
    /// The larger, unsigned.
    MaxU,
}

impl IntExtreme {
    /// The smaller or larger, signed or not.
    pub fn new(least: bool, signed: bool) -> Self {
        match (least, signed) {
            (true, true) => IntExtreme::MinS,
            (true, false) => IntExtreme::MinU,
            (false, true) => IntExtreme::MaxS,
            (false, false) => IntExtreme::MaxU,
        }
    }
}

/// What joins the values of lanes (`redux`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReduxOp {
    /// Their sum.
    Add,
    /// The smallest or largest.
    Extreme(IntExtreme),
    /// The bits that all have.
    And,
    /// The bits that any has.
    Or,
    /// The bits that an odd number of them have.
    Xor,
}

/// Integer operations whose result has the width of their operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IntOp {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// Low half of a * b.
    MulLo,
    /// High half of the signed product.
    MulHiS,
    /// High half of the unsigned product.
    MulHiU,
    /// Low half of a * b, plus c.
    MadLo,
    /// High half of the signed product, plus c.
    MadHiS,
    /// High half of the unsigned product, plus c.
    MadHiU,
    /// a / b, signed; all ones when b is 0.
    DivS,
    /// a / b, unsigned; all ones when b is 0.
    DivU,
    /// a % b, signed; all ones when b is 0.
    RemS,
    /// a % b, unsigned; all ones when b is 0.
    RemU,
    /// min(a, b), signed.
    MinS,
    /// min(a, b), unsigned.
    MinU,
    /// max(a, b), signed.
    MaxS,
    /// max(a, b), unsigned.
    MaxU,
    /// a & b
    And,
    /// a | b
    Or,
    /// a ^ b
    Xor,
    /// a << b, 0 when b >= width.
    Shl,
    /// a >> b, arithmetic, sign when b >= width.
    ShrS,
    /// a >> b, logical, 0 when b >= width.
    ShrU,
    /// |a|
    Abs,
    /// -a
    Neg,
    /// ~a
    Not,
    /// a == 0
    Cnot,
    /// Bits of a reversed.
    Brev,
    /// c + |a - b|, signed.
    SadS,
    /// c + |a - b|, unsigned.
    SadU,
}

/// Saturating signed 32-bit operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SatOp {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// High half of a * b, plus c.
    MadHi,
}

/// Extended-precision arithmetic. The carry is a predicate register: read from `m`, written to `e`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Carry {
    /// What is added to or subtracted from what.
    pub op: CarryOp,
    /// 64-bit a, b, c, d.
    pub wide: bool,
    /// Uses the carry in `m`; a subtraction borrows one when it is clear.
    pub takes: bool,
    /// Writes the carry to `e`; a subtraction clears it when it borrows.
    pub gives: bool,
}

/// Which extended-precision operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CarryOp {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// low(a * b) + c
    MadLo,
    /// high(a * b) + c, signed product
    MadHiS,
    /// high(a * b) + c, unsigned product
    MadHiU,
}

/// Bit-counting operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CountOp {
    /// Ones.
    Popc,
    /// Leading zeros.
    Clz,
    /// Position of the most significant one, or all ones.
    BfindU,
    /// Position of the most significant bit that differs from the sign, or all ones.
    BfindS,
    /// The left shift that brings the bit found to the top.
    BfindShiftU,
    /// The same for signed values.
    BfindShiftS,
}

/// Modes of `prmt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PrmtMode {
    /// Four selectors of four bits.
    Index,
    /// Forward 4 extract.
    F4e,
    /// Backward 4 extract.
    B4e,
    /// Replicate 8.
    Rc8,
    /// Edge clamp left.
    Ecl,
    /// Edge clamp right.
    Ecr,
    /// Replicate 16.
    Rc16,
}

/// Logic on predicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PredOp {
    /// a & b
    And,
    /// a | b
    Or,
    /// a ^ b
    Xor,
    /// !a
    Not,
}

/// Which bytes of a surface an access names (`suld.b`, `sust.b`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SurfaceAccess {
    /// Bytes of the access.
    pub bytes: u8,
    /// c is the layer of an array, unsigned; else a coordinate, signed.
    pub layered: bool,
    /// Coordinates beyond the bounds become the nearest ones within (`.clamp`).
    pub clamp: bool,
}

/// Shuffle modes. Operands: a value, b lane or delta, c clamp and segment mask, m member mask (ignored).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShflMode {
    /// From lane - b.
    Up,
    /// From lane + b.
    Down,
    /// From lane ^ b.
    Bfly,
    /// From lane b.
    Idx,
}

/// Votes. `imm` bit 0 negates the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VoteOp {
    /// p = true in every executing lane.
    All,
    /// p = true in one executing lane at least.
    Any,
    /// p = the same in every executing lane.
    Uni,
    /// d = mask of the executing lanes where it is true.
    Ballot,
}

/// Address spaces that `isspacep` asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpaceTest {
    /// Global memory.
    Global,
    /// Shared memory of any CTA of the cluster.
    Shared,
    /// The own CTA's shared memory.
    SharedCta,
    /// Local memory.
    Local,
    /// Constant bank.
    Const,
}
