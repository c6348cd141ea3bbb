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
//! Over 500 lines: one enum of operations and the small enums of their modifiers, a vocabulary that is looked
//! up as a whole.
//!
//! Invariant: an operation reads all of its sources before it writes a destination, so slots may coincide.

use durawarp_checkpoint::value;

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

/// A product of matrices, `mma.sync` with m = 16 and n = 8, or 8 and 8: elements of a and b, and those of c
/// and d.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixOp {
    /// Elements of a and b.
    pub factors: MatrixFactors,
    /// Elements of c and d.
    pub sums: MatrixSums,
    /// a has four registers and b two (else half of that): k is 16 for 16-bit elements, 8 for `tf32`, 32 for
    /// bytes and 8-bit floats, 64 for 4-bit integers, 256 for single bits.
    pub deep: bool,
    /// Which elements of its rows a has (`mma.sp`): half of them, with metadata and twice the registers of b.
    pub sparsity: Sparsity,
}

impl MatrixOp {
    /// A product whose a has every element.
    pub const fn dense(factors: MatrixFactors, sums: MatrixSums, deep: bool) -> Self {
        MatrixOp { factors, sums, deep, sparsity: Sparsity::Dense }
    }
}

/// The metadata of a sparse factor, by the number of those lanes in a group of four that have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sparsity {
    /// Every element is there.
    Dense,
    /// `mma.sp`
    AnyOrder(u8),
    /// `mma.sp::ordered_metadata`: indices ascend.
    Ascending(u8),
}

/// Elements of the factors of a matrix product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatrixFactors {
    /// Two half-precision values a register.
    Half(HalfFormat),
    /// `tf32`: the upper 19 bits of a single.
    Tf32,
    /// Four bytes a register, of a and of b signed or not.
    Bytes(bool, bool),
    /// Four 8-bit floats a register, of a and of b.
    Fp8(Fp8, Fp8),
    /// Eight 4-bit integers a register, of a and of b signed or not.
    Nibbles(bool, bool),
    /// 32 bits a register.
    Bits(BitProduct),
    /// Doubles, one a register (m8n8k4).
    Double,
    /// `f16` by quads of lanes (m8n8k4).
    Quads(QuadFactors),
}

/// What stands for the product of two bits, which are counted where it is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BitProduct {
    And,
    Xor,
}

/// The factors of `mma.m8n8k4` with halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuadFactors {
    /// a lies by columns.
    pub a_by_columns: bool,
    /// b lies by rows.
    pub b_by_rows: bool,
    /// Of sums in single precision: registers 4 to 7 (else 0 to 3).
    pub upper: bool,
}

/// Elements of the sums of a matrix product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatrixSums {
    /// Two `f16` a register.
    F16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// 32-bit integers, clamped to their range when `true` (`.satfinite`), else modulo 2^32.
    S32(bool),
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

/// What a video instruction does first. Operands are extended by their types, results are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VideoOp {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// |a - b|
    AbsDiff,
    /// (a + b) / 2, halves away from zero
    Average,
    /// min(a, b)
    Min,
    /// max(a, b)
    Max,
    /// a << b; b modulo 32 when `true`, else at most 32
    Shl(bool),
    /// a >> b, by the sign of a; b as above
    Shr(bool),
    /// compare(a, b) ? 1 : 0, on the extended values: signed comparisons only
    Set(IntCmp),
}

/// What a scalar video instruction does with its result and c.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VideoSecond {
    /// Nothing.
    None,
    /// result + c
    Add,
    /// min(result, c)
    Min,
    /// max(result, c)
    Max,
    /// c with the result in the part of d.
    Merge,
}

/// A scalar video instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Video {
    /// The first operation.
    pub op: VideoOp,
    /// The second operation.
    pub second: VideoSecond,
    pub a_signed: bool,
    pub b_signed: bool,
    /// The result and c are signed.
    pub signed: bool,
    /// Clamp the first result to the range of d, or of its part.
    pub sat: bool,
}

/// Which part of a register a scalar video instruction uses; the numbers are those in `imm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum VideoPart {
    /// All 32 bits.
    Word,
    /// Bits 0 to 7.
    B0,
    /// Bits 8 to 15.
    B1,
    /// Bits 16 to 23.
    B2,
    /// Bits 24 to 31.
    B3,
    /// Bits 0 to 15.
    H0,
    /// Bits 16 to 31.
    H1,
}

impl VideoPart {
    /// Every part, by its number.
    pub(crate) const ALL: [VideoPart; 7] =
        [VideoPart::Word, VideoPart::B0, VideoPart::B1, VideoPart::B2, VideoPart::B3, VideoPart::H0, VideoPart::H1];

    /// First bit and number of bits.
    pub(crate) fn bits(self) -> (u32, u32) {
        match self {
            VideoPart::Word => (0, 32),
            VideoPart::B0 => (0, 8),
            VideoPart::B1 => (8, 8),
            VideoPart::B2 => (16, 8),
            VideoPart::B3 => (24, 8),
            VideoPart::H0 => (0, 16),
            VideoPart::H1 => (16, 16),
        }
    }
}

/// `vmad`: d = (a * b + c + carry) >> shift.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VideoMad {
    pub a_signed: bool,
    pub b_signed: bool,
    /// -(a * b)
    pub minus_product: bool,
    pub minus_c: bool,
    /// One more (`.po`).
    pub plus_one: bool,
    /// Clamp to 32 bits.
    pub sat: bool,
    /// 0, 7 or 15.
    pub shift: u8,
}

/// A video instruction on pairs of 16 bits or quads of 8 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VideoSimd {
    /// What is done to each element.
    pub op: VideoOp,
    /// Four elements of 8 bits (else two of 16).
    pub quads: bool,
    /// Elements of a are signed.
    pub a_signed: bool,
    /// Elements of b are signed.
    pub b_signed: bool,
    /// Results are signed, for `sat`.
    pub signed: bool,
    /// Clamp each result to an element's range.
    pub sat: bool,
    /// c plus the results (else: the results, c where the mask is 0).
    pub accumulate: bool,
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

/// A comparison and what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Compare {
    /// How, on what.
    pub kind: CompareKind,
    /// How the predicate c joins in; `imm` bit 0 negates it.
    pub combine: Combine,
}

/// Comparison by operand type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompareKind {
    /// 16-bit integers.
    Int16(IntCmp),
    /// 32-bit integers.
    Int32(IntCmp),
    /// 64-bit integers.
    Int64(IntCmp),
    /// Single precision; `true` flushes denormals.
    F32(FloatCmp, bool),
    /// Double precision.
    F64(FloatCmp),
    /// Half precision; `true` flushes denormals.
    Half(FloatCmp, HalfType, bool),
}

/// What `set` writes when the comparison holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Truth {
    /// All ones.
    Ones,
    /// 1.0 in single precision.
    Single,
    /// 1.0 of a half-precision format.
    Half(HalfFormat),
}

/// Integer comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IntCmp {
    /// a == b
    Eq,
    /// a != b
    Ne,
    /// a < b, signed
    LtS,
    /// a <= b, signed
    LeS,
    /// a > b, signed
    GtS,
    /// a >= b, signed
    GeS,
    /// a < b, unsigned
    LtU,
    /// a <= b, unsigned
    LeU,
    /// a > b, unsigned
    GtU,
    /// a >= b, unsigned
    GeU,
}

/// Float comparisons; those that end in `u` are also true when an operand is NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FloatCmp {
    /// a == b, ordered
    Eq,
    /// a != b, ordered
    Ne,
    /// a < b
    Lt,
    /// a <= b
    Le,
    /// a > b
    Gt,
    /// a >= b
    Ge,
    /// a == b or unordered
    Equ,
    /// a != b or unordered
    Neu,
    /// a < b or unordered
    Ltu,
    /// a <= b or unordered
    Leu,
    /// a > b or unordered
    Gtu,
    /// a >= b or unordered
    Geu,
    /// Neither is NaN.
    Num,
    /// Either is NaN.
    Nan,
}

/// How a comparison joins a predicate: p = cmp op c, q = !cmp op c.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Combine {
    /// Not at all.
    None,
    And,
    Or,
    /// exclusive or
    Xor,
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

/// Float arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FloatOp {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// a * b
    Mul,
    /// a * b + c, one rounding
    Fma,
    /// a / b
    Div,
    /// 1 / a
    Rcp,
    /// square root of a
    Sqrt,
    /// The smaller number; a NaN loses.
    Min,
    /// The larger number; a NaN loses.
    Max,
    /// The smaller number; a NaN wins (`.NaN`).
    MinNan,
    /// The larger number; a NaN wins (`.NaN`).
    MaxNan,
    /// |a|
    Abs,
    /// -a
    Neg,
    /// b with the sign of a
    CopySign,
}

/// Rounding directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Round {
    /// To nearest, ties to even (`.rn`, `.rni`).
    Nearest,
    /// Towards zero (`.rz`, `.rzi`).
    Zero,
    /// Towards minus infinity (`.rm`, `.rmi`).
    Down,
    /// Towards plus infinity (`.rp`, `.rpi`).
    Up,
}

/// How a single-precision operation rounds and what it does at the ends of the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FloatMode {
    /// Direction.
    pub round: Round,
    /// Denormal inputs and results become zeros of the same sign.
    pub ftz: bool,
    /// The result is clamped to [0, 1], NaN to 0.
    pub sat: bool,
}

impl FloatMode {
    /// Round to nearest, denormals kept, no clamping.
    pub const PLAIN: FloatMode = FloatMode { round: Round::Nearest, ftz: false, sat: false };
}

/// The formats of half precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HalfFormat {
    /// IEEE binary16: 5 bits of exponent, 10 of fraction.
    F16,
    /// The upper half of a single: 8 bits of exponent, 7 of fraction.
    Bf16,
}

value!(choice HalfFormat { F16, Bf16 });

/// The types of half precision: one value in a 16-bit register, or two in a 32-bit one, the first in the
/// lower half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HalfType {
    /// `.f16`
    F16,
    /// `.f16x2`
    F16x2,
    /// `.bf16`
    Bf16,
    /// `.bf16x2`
    Bf16x2,
}

value!(choice HalfType { F16, F16x2, Bf16, Bf16x2 });

impl HalfType {
    /// The format of each value.
    pub fn format(self) -> HalfFormat {
        match self {
            HalfType::F16 | HalfType::F16x2 => HalfFormat::F16,
            HalfType::Bf16 | HalfType::Bf16x2 => HalfFormat::Bf16,
        }
    }

    /// Two values?
    pub fn is_pair(self) -> bool {
        matches!(self, HalfType::F16x2 | HalfType::Bf16x2)
    }
}

/// Half-precision operations; all that round do so to nearest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HalfOp {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// a * b
    Mul,
    /// a * b + c, one rounding
    Fma,
    /// The smaller number.
    Min(HalfExtreme),
    /// The larger number.
    Max(HalfExtreme),
    /// |a|
    Abs,
    /// -a
    Neg,
    /// 2^a
    Ex2,
    /// tanh(a)
    Tanh,
}

/// What modifies `min` and `max` of halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HalfExtreme {
    /// A NaN wins (`.NaN`); else it loses.
    pub nan: bool,
    /// Magnitudes are compared, and the sign is the exclusive or of both signs (`.xorsign.abs`).
    pub xorsign: bool,
}

/// On which halves an operation works, and what it does at the ends of the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HalfMode {
    /// Format, one value or two.
    pub ty: HalfType,
    /// Denormal inputs and results become zeros of the same sign.
    pub ftz: bool,
    /// The result is clamped to [0, 1], NaN to 0.
    pub sat: bool,
    /// A negative result becomes +0.
    pub relu: bool,
}

/// Single-precision approximations (`.approx`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApproxOp {
    /// 2^a
    Ex2,
    /// log2(a)
    Lg2,
    /// sin(a)
    Sin,
    /// cos(a)
    Cos,
    /// tanh(a)
    Tanh,
    /// 1 / sqrt(a)
    Rsqrt,
    /// 1 / a
    Rcp,
    /// sqrt(a)
    Sqrt,
    /// a / b, 0 when 2^126 < |b| < 2^128
    Div,
    /// a / b over the full range
    DivFull,
}

/// Float properties (`testp`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TestOp {
    /// Neither infinite nor NaN.
    Finite,
    Infinite,
    /// Not NaN.
    Number,
    /// NaN.
    NotANumber,
    /// Neither zero, denormal, infinite nor NaN.
    Normal,
    /// Denormal.
    Subnormal,
}

/// Number types as a conversion sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Num {
    /// 8 bits, unsigned.
    U8,
    /// 8 bits, signed.
    S8,
    /// 16 bits, unsigned.
    U16,
    /// 16 bits, signed.
    S16,
    /// 32 bits, unsigned.
    U32,
    /// 32 bits, signed.
    S32,
    /// 64 bits, unsigned.
    U64,
    /// 64 bits, signed.
    S64,
    /// Half precision (in a 16-bit register).
    F16,
    /// The upper half of a single (in a 16-bit register).
    Bf16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl Num {
    /// Floating point?
    pub fn is_float(self) -> bool {
        matches!(self, Num::F16 | Num::Bf16 | Num::F32 | Num::F64)
    }

    /// Bits.
    pub fn bits(self) -> u32 {
        match self {
            Num::U8 | Num::S8 => 8,
            Num::U16 | Num::S16 | Num::F16 | Num::Bf16 => 16,
            Num::U32 | Num::S32 | Num::F32 => 32,
            Num::U64 | Num::S64 | Num::F64 => 64,
        }
    }

    /// Signed integer?
    pub fn is_signed(self) -> bool {
        matches!(self, Num::S8 | Num::S16 | Num::S32 | Num::S64)
    }
}

/// A conversion. `wide_from` and `wide_to` tell the register banks, which may be wider than the types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cvt {
    /// Source type.
    pub from: Num,
    /// Destination type.
    pub to: Num,
    /// Direction of rounding, where the conversion can be inexact.
    pub round: Round,
    /// Round a float to an integral float (`.rni` and the others between equal float types).
    pub integral: bool,
    /// Flush single-precision denormals.
    pub ftz: bool,
    /// Clamp: integers to the destination's range, floats to [0, 1].
    pub sat: bool,
    /// A negative half becomes +0.
    pub relu: bool,
    /// A half that is too large becomes the largest number (`.satfinite`).
    pub finite: bool,
    /// The source register is 64-bit.
    pub wide_from: bool,
    /// The destination register is 64-bit; a narrower integer result is extended by its own sign.
    pub wide_to: bool,
}

impl Cvt {
    /// A conversion between 32-bit registers that is never inexact and clamps nothing.
    pub fn exact(from: Num, to: Num) -> Self {
        Cvt {
            from,
            to,
            round: Round::Nearest,
            integral: false,
            ftz: false,
            sat: false,
            relu: false,
            finite: false,
            wide_from: false,
            wide_to: false,
        }
    }
}

/// The formats of 8-bit floats: 4 bits of exponent and 3 of fraction, or 5 and 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fp8 {
    /// `.e4m3`
    E4m3,
    /// `.e5m2`
    E5m2,
}

/// A conversion to a pair of 8-bit floats (`.rn.satfinite`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ToFp8 {
    /// Format of both results.
    pub format: Fp8,
    /// From the two `f16` in a (else: the upper one from the single a, the lower one from the single b).
    pub halves: bool,
    /// Negative results become +0.
    pub relu: bool,
}

/// A conversion of a single to `tf32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CvtTf32 {
    /// Direction of rounding.
    pub round: Tf32Round,
    /// Negative results become +0.
    pub relu: bool,
    /// What is too large becomes the largest number (`.satfinite`).
    pub finite: bool,
}

/// Rounding to `tf32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tf32Round {
    /// To nearest, ties away from zero (`.rna`).
    Away,
    /// To nearest, ties to even (`.rn`).
    Even,
    /// Towards zero (`.rz`).
    Zero,
}

/// `cvt.pack`: a and b clamped, side by side, b lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CvtPack {
    /// Bits of each.
    pub bits: u8,
    /// Clamped to a signed range.
    pub signed: bool,
    /// The bits above them are the low bits of c.
    pub merges: bool,
}

/// A conversion of two singles to a pair of halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CvtPair {
    /// Format of both results.
    pub to: HalfFormat,
    /// Direction of rounding.
    pub round: Round,
    /// Negative results become +0.
    pub relu: bool,
    /// What is too large becomes the largest number (`.satfinite`).
    pub finite: bool,
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
