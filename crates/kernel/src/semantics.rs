//! What register-to-register instructions mean: one dispatch a warp instruction, then a loop over 32 lanes.
//!
//! Source: PTX ISA 8.x, section 9.7. Every family has a file; this one holds the operand access that they
//! share and the choice of instruction set. All lanes are computed, then merged into the destination under
//! the lane mask; so a lane loop has no branch and the compiler turns it into vector code.
//!
//! The executor is compiled twice: for the baseline instruction set, and (x86-64) for AVX2 with FMA, because
//! the baseline has neither wide vectors nor a fused multiply-add. Which one runs is decided once a process.
//!
//! Invariants: the same bits from both, and on every host (`semantics/portable.rs`); sources are read before
//! destinations are written; inactive lanes keep their values; no operation faults, whatever its operands.
//!
//! Choices where the ISA leaves one: a NaN result of arithmetic is `0x7fffffff` (f32), `0xfff8000000000000`
//! (f64) or `0x7fff` (half precision, as the ISA says); integer division by zero gives all ones, as does its
//! remainder.

#![deny(clippy::wildcard_enum_match_arm)]

pub(super) mod approx;
pub mod atomic;
mod bits;
mod canonical;
mod compare;
mod convert;
mod float;
mod frame;
mod half;
mod int;
mod lanes;
mod matrix;
mod matrix_group;
mod matrix_small;
mod matrix_sparse;
mod narrow;
pub(super) mod phase;
#[cfg(test)]
mod portable;
mod rounding;
mod scaled;
mod scaled_shape;
mod shared_matrix;
mod surface;
mod tensor_copy;
mod tensor_core;
mod tensor_operands;
mod tensor_pair;
mod tensor_shape;
mod tiny;
mod tiny_convert;
mod video;

use std::sync::OnceLock;

use super::alu::{AluOp, Split};
use super::ir::{Inst, LANES, NONE, Op};
use frame::{V32, V64, bits_of, map, negation, zip, zip3};

pub use frame::Registers;
pub(super) use frame::{Frame, get, merge};
pub(super) use matrix::{SCALES, multiply};
pub(super) use matrix_group::{CHUNK_BYTES, GroupMisfit, SharedFactors, multiply_group};
pub(super) use matrix_sparse::Misfit;
pub(super) use scaled::multiply_scaled;
pub(super) use tensor_copy::CopyOperands;
pub use tensor_copy::CopyValues;
pub(super) use tensor_core::multiply_in_tensor_memory;
pub(super) use tensor_operands::TensorMisfit;
pub use tensor_operands::TensorValues;
pub use tensor_pair::PairColumns;
pub(super) use tensor_pair::{columns_of_pair, multiply_for_pair};

/// Executes instructions one after the other in one register group.
///
/// # Panics
/// When one is not an [`Op::Alu`].
#[inline(always)]
fn execute_each<const FMA: bool>(f: &mut Frame<'_>, code: &[Inst]) {
    for inst in code {
        // What follows from the mask is found by who needs it: known beforehand, a flag of each lane would be
        // made for some rare operations before the first instruction, which costs as much as five.
        f.mask = std::hint::black_box(f.mask);
        let Op::Alu(op) = inst.op else { panic!("not an ALU instruction: {:?}", inst.op) };
        execute::<FMA>(f, inst, op);
    }
}

/// Executes `op` in one register group.
#[inline(always)]
fn execute<const FMA: bool>(f: &mut Frame<'_>, inst: &Inst, op: AluOp) {
    let [a, b, ..] = inst.src;
    let d = inst.dst[0];
    match op {
        AluOp::Mov32 => f.map32(inst, |a| a),
        AluOp::Mov64 => f.map64(inst, |a| a),
        AluOp::MovPred => f.put_p(d, f.get_p(a) ^ negation(inst)),
        AluOp::MovVec(wide) => move_vector(f, inst, wide),
        AluOp::Split(split) => pack(f, inst, split),
        AluOp::Int32(op) => int::execute32(f, inst, op),
        AluOp::Int64(op) => int::execute64(f, inst, op),
        // Integers. Narrow ones have a family of their own, as the upper half of a 16-bit register is
        // unspecified.
        AluOp::Int16(op) => int::execute16(f, inst, op),
        AluOp::PairAdd16 => int::add_pair16(f, inst),
        AluOp::PairExtreme16(extreme, relu) => int::extreme_pair16(f, inst, extreme, relu),
        AluOp::Rectified32(least) => int::rectified(f, inst, least),
        AluOp::MulWide32(signed) => int::mul_wide32(f, inst, signed),
        AluOp::MadWide32(signed) => int::mad_wide32(f, inst, signed),
        AluOp::MulWide16(signed) => int::mul_wide16(f, inst, signed, false),
        AluOp::MadWide16(signed) => int::mul_wide16(f, inst, signed, true),
        AluOp::Mul24 { signed, high, add, sat } => int::mul24(f, inst, signed, high, add, sat),
        AluOp::Saturating(op) => int::saturating(f, inst, op),
        AluOp::Carry(carry) => int::carry(f, inst, carry),
        AluOp::Count(op, wide) => bits::count(f, inst, op, wide),
        AluOp::Bfe { signed, wide } => bits::extract(f, inst, signed, wide),
        AluOp::Bfi(wide) => bits::insert(f, inst, wide),
        AluOp::Fns => bits::find_nth_set(f, inst),
        AluOp::Bmsk(wrap) => bits::mask(f, inst, wrap),
        AluOp::Prmt(mode) => bits::permute(f, inst, mode),
        AluOp::Lop3 => bits::lop3(f, inst),
        AluOp::Szext { signed, wrap } => narrow::extend_field(f, inst, signed, wrap),
        AluOp::Shf { left, wrap } => bits::funnel(f, inst, left, wrap),
        AluOp::Dp4a(sa, sb) => bits::dp4a(f, inst, sa, sb),
        AluOp::Dp2a(sa, sb, high) => bits::dp2a(f, inst, sa, sb, high),
        AluOp::Video(video) => video::execute(f, inst, video),
        AluOp::VideoMad(mad) => video::multiply_add(f, inst, mad),
        AluOp::VideoSimd(video) => video::execute_simd(f, inst, video),
        // Comparisons and selections. All lanes of `out` are computed; `put` leaves inactive ones as they
        // were.
        AluOp::Setp(compare) => compare::setp(f, inst, compare),
        AluOp::Set(compare, truth) => compare::set(f, inst, compare, truth),
        AluOp::Selp32 => {
            let mut out = *f.get32(b);
            merge(&mut out, f.get32(a), f.get_p(inst.src[2]) ^ negation(inst), u32::MAX, 0);
            f.put32(d, &out);
        }
        AluOp::Selp64 => {
            let mut out = *f.get64(b);
            merge(&mut out, f.get64(a), f.get_p(inst.src[2]) ^ negation(inst), u64::MAX, 0);
            f.put64(d, &out);
        }
        AluOp::Slct { wide, float, ftz } => compare::slct(f, inst, wide, float, ftz),
        AluOp::Pred(op) => compare::predicate(f, inst, op),
        // Floats. `FMA` says whether this copy of the executor may use the host's fused multiply-add.
        AluOp::F32(op, mode) => float::execute32::<FMA>(f, inst, op, mode),
        AluOp::PairF32(op, mode) => float::execute_pair::<FMA>(f, inst, op, mode),
        AluOp::F64(op, round) => float::execute64::<FMA>(f, inst, op, round),
        AluOp::Mixed(op, mode, from) => float::execute_mixed::<FMA>(f, inst, op, mode, from),
        AluOp::Half(op, mode) => half::execute(f, inst, op, mode),
        AluOp::Approx32(op, ftz) => approx::execute32(f, inst, op, ftz),
        AluOp::Approx64(rsqrt) => approx::execute64(f, inst, rsqrt),
        AluOp::Testp32(test) => compare::testp32(f, inst, test),
        AluOp::Testp64(test) => compare::testp64(f, inst, test),
        AluOp::Cvt(cvt) => convert::execute(f, inst, cvt),
        AluOp::CvtPair(cvt) => half::pack(f, inst, cvt),
        AluOp::ToFp8(to) => narrow::pack_fp8(f, inst, to),
        AluOp::FromFp8(from, relu) => narrow::unpack_fp8(f, inst, from, relu),
        AluOp::Tiny(cvt) => tiny_convert::convert(f, inst, cvt),
        AluOp::CvtTf32(cvt) => narrow::to_tf32(f, inst, cvt),
        AluOp::CvtPack(cvt) => narrow::pack_integers(f, inst, cvt),
        // Across lanes: sources are registers of other lanes, and the mask says which lanes take part.
        AluOp::Shfl(mode) => lanes::shuffle(f, inst, mode),
        AluOp::Vote(op) => lanes::vote(f, inst, op),
        AluOp::ActiveMask => f.put32(d, &[f.mask; LANES]),
        AluOp::Surface(access) => surface::address(f, inst, access),
        AluOp::IsSpace(space) => lanes::is_space(f, inst, space),
        AluOp::MapShared(wide) => lanes::map_shared(f, inst, wide),
        AluOp::RankOf(wide) => lanes::rank_of(f, inst, wide),
        AluOp::Elect => lanes::elect(f, inst),
        AluOp::Transpose => lanes::transpose(f, inst),
        AluOp::MatrixRows(transposed) => lanes::matrix_rows(f, inst, transposed),
        AluOp::Match(all, wide) => lanes::matching(f, inst, all, wide),
        AluOp::Redux(op) => lanes::reduce(f, inst, op),
        AluOp::PhasePending => f.put32(d, &map(f.get64(a), phase::pending)),
        AluOp::PhaseOver(parity) => compare::phase_over(f, inst, parity),
    }
}

#[inline(always)]
fn move_vector(f: &mut Frame<'_>, inst: &Inst, wide: bool) {
    if wide {
        let values = inst.src.map(|s| if s == NONE { [0; LANES] } else { *f.get64(s) });
        for (&d, value) in inst.dst.iter().zip(&values).filter(|(d, _)| **d != NONE) {
            f.put64(d, value);
        }
    } else {
        let values = inst.src.map(|s| if s == NONE { [0; LANES] } else { *f.get32(s) });
        for (&d, value) in inst.dst.iter().zip(&values).filter(|(d, _)| **d != NONE) {
            f.put32(d, value);
        }
    }
}

#[inline(always)]
fn pack(f: &mut Frame<'_>, inst: &Inst, split: Split) {
    let [a, b, c, m] = inst.src;
    match split {
        Split::Pack2x32 => {
            let out = zip(f.get32(a), f.get32(b), |a, b| u64::from(a) | u64::from(b) << 32);
            f.put64(inst.dst[0], &out);
        }
        Split::Pack2x16 => f.zip32(inst, |a, b| a & 0xffff | b << 16),
        Split::Pack2x8 => f.zip32(inst, |a, b| a & 0xff | (b & 0xff) << 8),
        Split::Pack4x16 => {
            let low = zip(f.get32(a), f.get32(b), |a, b| a & 0xffff | b << 16);
            let high = zip(f.get32(c), f.get32(m), |a, b| a & 0xffff | b << 16);
            let out = zip(&low, &high, |a, b| u64::from(a) | u64::from(b) << 32);
            f.put64(inst.dst[0], &out);
        }
        Split::Pack4x8 => {
            let low = zip(f.get32(a), f.get32(b), |a, b| a & 0xff | (b & 0xff) << 8);
            let high = zip(f.get32(c), f.get32(m), |a, b| a & 0xff | (b & 0xff) << 8);
            let out = zip(&low, &high, |a, b| a | b << 16);
            f.put32(inst.dst[0], &out);
        }
        Split::Unpack2x32 => unpack64(f, inst, 32),
        Split::Unpack4x16 => unpack64(f, inst, 16),
        Split::Unpack2x16 => unpack32(f, inst, 16),
        Split::Unpack4x8 | Split::Unpack2x8 => unpack32(f, inst, 8),
    }
}

#[inline(always)]
fn unpack64(f: &mut Frame<'_>, inst: &Inst, bits: u32) {
    let value = *f.get64(inst.src[0]);
    for (i, &d) in inst.dst.iter().enumerate().filter(|(_, d)| **d != NONE) {
        let out = map(&value, |v| (v >> (bits * i as u32) & (u64::MAX >> (64 - bits))) as u32);
        f.put32(d, &out);
    }
}

#[inline(always)]
fn unpack32(f: &mut Frame<'_>, inst: &Inst, bits: u32) {
    let value = *f.get32(inst.src[0]);
    for (i, &d) in inst.dst.iter().enumerate().filter(|(_, d)| **d != NONE) {
        let out = map(&value, |v| v >> (bits * i as u32) & (u32::MAX >> (32 - bits)));
        f.put32(d, &out);
    }
}

/// The executor: a function of the frame and of ALU instructions.
pub(super) type Executor = fn(&mut Frame<'_>, &[Inst]);

/// The executor for any host.
pub(super) fn execute_portable(f: &mut Frame<'_>, code: &[Inst]) {
    execute_each::<{ cfg!(any(target_arch = "aarch64", target_feature = "fma")) }>(f, code);
}

/// The executor for hosts with AVX2 and FMA, if this is one.
pub(super) fn execute_vector() -> Option<Executor> {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma,bmi2,lzcnt,popcnt")]
        fn execute_avx2(f: &mut Frame<'_>, code: &[Inst]) {
            execute_each::<true>(f, code);
        }
        let present = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        if present {
            // The only unsafe code of this module.
            #[allow(unsafe_code)]
            return Some(|f, code| {
                // SAFETY: `execute_avx2` is safe code whose only precondition is that the processor has the
                // features it was compiled for; this closure exists only when all five were just detected.
                unsafe { execute_avx2(f, code) }
            });
        }
    }
    None
}

/// The best executor for this host, chosen once.
#[inline]
pub(super) fn executor() -> Executor {
    static CHOICE: OnceLock<Executor> = OnceLock::new();
    *CHOICE.get_or_init(|| execute_vector().unwrap_or(execute_portable))
}
