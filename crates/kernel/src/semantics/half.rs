//! Half precision (PTX ISA 9.7.4, "Half Precision Floating Point Instructions"): `.f16`, `.bf16` and pairs of
//! them.
//!
//! Every value goes to double precision, which holds it exactly, and comes back with one rounding. A product
//! of two halves is exact there. A sum is rounded to odd ([`rounding::to_odd`]), since exponents of `bf16`
//! span more bits than a double has; with 53 bits for 11 or 8 the final rounding is then that of the exact
//! sum.
//!
//! | step | what happens |
//! |---|---|
//! | operands | `.ftz`: a denormal becomes a zero of its sign |
//! | operation | exact, or rounded to odd |
//! | rounding | to nearest, ties to even; overflow gives infinity |
//! | result | `.ftz`: as operands. `.sat`: [0, 1], NaN to +0. `.relu`: negative and -0 to +0 |
//!
//! Invariants: a NaN result is `0x7fff`, but that `abs` and `neg` only move the sign bit; the same bits on
//! every host. `ex2` and `tanh` are the single-precision ones, rounded again: within half an ulp and a
//! little, where the ISA allows 2^-9.9 (`ex2.f16`), 2^-7 (`ex2.bf16`), 2^-10.987 (`tanh.f16`) and 2^-8
//! (`tanh.bf16`).
//!
//! Not modelled: `fma.oob`, the exact bits of a real GPU's special function unit.

use super::super::alu::{CvtPair, HalfExtreme, HalfFormat, HalfMode, HalfOp, HalfType, Round};
use super::super::ir::Inst;
use super::{Frame, approx, rounding, zip, zip3};

/// The NaN that half-precision arithmetic produces.
const NAN: u16 = 0x7fff;
const SIGN: u16 = 0x8000;

/// Fraction bits of the formats: they tell the formats apart below, as a constant of the compiler.
const F16: u32 = 10;
const BF16: u32 = 7;

/// The bits of infinity.
const fn infinity(fraction: u32) -> u16 {
    0x7fff >> fraction << fraction
}

/// The bias of the exponent.
const fn bias(fraction: u32) -> u64 {
    (1 << (14 - fraction)) - 1
}

/// The bits of a half as a double, exactly.
#[inline(always)]
fn widen<const FRACTION: u32>(bits: u16) -> f64 {
    f64::from(single::<FRACTION>(bits))
}

/// The bits of a half as a single, exactly.
#[inline(always)]
fn single<const FRACTION: u32>(bits: u16) -> f32 {
    if FRACTION == BF16 {
        return f32::from_bits(u32::from(bits) << 16);
    }
    // The exponent field moves as it is; 2^112 is the difference of the biases, also for denormals.
    let moved = u32::from(bits & !SIGN) << 13;
    let scaled = (f32::from_bits(moved) * f32::from_bits((127 + 112) << 23)).to_bits();
    let magnitude = if bits & infinity(F16) == infinity(F16) { moved | 0x7f80_0000 } else { scaled };
    f32::from_bits(magnitude | u32::from(bits & SIGN) << 16)
}

/// A double rounded to nearest, ties to even.
#[inline(always)]
fn narrow<const FRACTION: u32>(x: f64) -> u16 {
    let drop = 52 - FRACTION;
    let bits = x.to_bits();
    let (sign, magnitude) = ((bits >> 48) as u16 & SIGN, bits & (u64::MAX >> 1));
    // Half an ulp, less one where the last kept bit is even: a carry goes into the exponent.
    let rounded = magnitude + (1 << (drop - 1)) - 1 + (magnitude >> drop & 1);
    let normal = (rounded >> drop).wrapping_sub((1023 - bias(FRACTION)) << FRACTION);
    // Below the least normal number the sum with 2^52 denormal ulps rounds to a whole number of these.
    let ulps = f64::from_bits((1023 + 52 + 1 - bias(FRACTION) - u64::from(FRACTION)) << 52);
    let denormal = (f64::from_bits(magnitude) + ulps).to_bits() - ulps.to_bits();
    let least_normal = (1024 - bias(FRACTION)) << 52;
    let value = if magnitude < least_normal { denormal } else { normal.min(u64::from(infinity(FRACTION))) };
    if x.is_nan() { NAN } else { value as u16 | sign }
}

/// A denormal becomes a zero of its sign.
#[inline(always)]
fn flush<const FRACTION: u32>(bits: u16) -> u16 {
    if bits & infinity(FRACTION) == 0 { bits & SIGN } else { bits }
}

#[inline(always)]
fn is_nan<const FRACTION: u32>(bits: u16) -> bool {
    bits & !SIGN > infinity(FRACTION)
}

/// A negative half becomes +0.
#[inline(always)]
fn rectify(bits: u16) -> u16 {
    if bits & SIGN != 0 { 0 } else { bits }
}

/// Clamped to [0, 1]; NaN becomes +0. Positive halves are ordered as their bits.
#[inline(always)]
fn saturate<const FRACTION: u32>(bits: u16) -> u16 {
    let one = (bias(FRACTION) as u16) << FRACTION;
    if is_nan::<FRACTION>(bits) { 0 } else { rectify(bits).min(one) }
}

/// x + y, rounded to odd.
#[inline(always)]
fn sum(x: f64, y: f64) -> f64 {
    let s = x + y;
    // TwoSum (Knuth): exact, no overflow since |x|, |y| < 2^257.
    let yy = s - x;
    rounding::to_odd(s, (x - (s - yy)) + (y - yy))
}

#[inline(always)]
fn fused<const FRACTION: u32>(a: u16, b: u16, c: u16) -> u16 {
    narrow::<FRACTION>(sum(widen::<FRACTION>(a) * widen::<FRACTION>(b), widen::<FRACTION>(c)))
}

/// The pseudocode of `min`; `max` is that of the mirrored order. -0 is less than +0.
#[inline(always)]
fn extreme<const FRACTION: u32>(a: u16, b: u16, greater: bool, how: HalfExtreme) -> u16 {
    let sign = (a ^ b) & SIGN;
    let (a, b) = if how.xorsign { (a & !SIGN, b & !SIGN) } else { (a, b) };
    let (a_nan, b_nan) = (is_nan::<FRACTION>(a), is_nan::<FRACTION>(b));
    // Two's complement puts negative numbers in order.
    let key = |v: u16| (if v & SIGN != 0 { v ^ 0x7fff } else { v }) as i16;
    let first = (key(a) > key(b)) == greater;
    let picked = if a_nan || !b_nan && !first { b } else { a };
    let none = a_nan && b_nan || how.nan && (a_nan || b_nan);
    if none {
        NAN
    } else if how.xorsign {
        picked | sign
    } else {
        picked
    }
}

#[inline(always)]
pub(super) fn execute(f: &mut Frame<'_>, inst: &Inst, op: HalfOp, mode: HalfMode) {
    match mode.ty.format() {
        HalfFormat::F16 => operate::<F16>(f, inst, op, mode),
        HalfFormat::Bf16 => operate::<BF16>(f, inst, op, mode),
    }
}

#[inline(always)]
fn operate<const N: u32>(f: &mut Frame<'_>, inst: &Inst, op: HalfOp, mode: HalfMode) {
    match op {
        HalfOp::Add => lanes::<N>(f, inst, 2, mode, |a, b, _| narrow::<N>(sum(widen::<N>(a), widen::<N>(b)))),
        HalfOp::Sub => lanes::<N>(f, inst, 2, mode, |a, b, _| narrow::<N>(sum(widen::<N>(a), -widen::<N>(b)))),
        HalfOp::Mul => lanes::<N>(f, inst, 2, mode, |a, b, _| narrow::<N>(widen::<N>(a) * widen::<N>(b))),
        HalfOp::Fma => lanes::<N>(f, inst, 3, mode, fused::<N>),
        HalfOp::Min(how) => lanes::<N>(f, inst, 2, mode, |a, b, _| extreme::<N>(a, b, false, how)),
        HalfOp::Max(how) => lanes::<N>(f, inst, 2, mode, |a, b, _| extreme::<N>(a, b, true, how)),
        HalfOp::Abs => lanes::<N>(f, inst, 1, mode, |a, _, _| a & !SIGN),
        HalfOp::Neg => lanes::<N>(f, inst, 1, mode, |a, _, _| a ^ SIGN),
        HalfOp::Ex2 => lanes::<N>(f, inst, 1, mode, |a, _, _| narrow::<N>(f64::from(approx::ex2(single::<N>(a))))),
        HalfOp::Tanh => lanes::<N>(f, inst, 1, mode, |a, _, _| narrow::<N>(f64::from(libm::tanhf(single::<N>(a))))),
    }
}

/// d = value(a, b, c) in every lane, or in both halves of every lane.
#[inline(always)]
fn lanes<const FRACTION: u32>(
    f: &mut Frame<'_>,
    inst: &Inst,
    sources: usize,
    mode: HalfMode,
    value: impl Fn(u16, u16, u16) -> u16,
) {
    let input = |bits: u32| if mode.ftz { flush::<FRACTION>(bits as u16) } else { bits as u16 };
    let one = |a: u32, b: u32, c: u32| {
        let mut bits = value(input(a), input(b), input(c));
        if mode.ftz {
            bits = flush::<FRACTION>(bits);
        }
        if mode.sat {
            bits = saturate::<FRACTION>(bits);
        }
        u32::from(if mode.relu { rectify(bits) } else { bits })
    };
    let [a, b, c, _] = inst.src;
    let a = f.get32(a);
    // Unread operands repeat the first: a valid slot whose value does not matter.
    let b = if sources > 1 { f.get32(b) } else { a };
    let c = if sources > 2 { f.get32(c) } else { a };
    let out = if mode.ty.is_pair() {
        zip3(a, b, c, |a, b, c| one(a, b, c) | one(a >> 16, b >> 16, c >> 16) << 16)
    } else {
        zip3(a, b, c, one)
    };
    f.put32(inst.dst[0], &out);
}

/// Two singles become a pair.
#[inline(always)]
pub(super) fn pack(f: &mut Frame<'_>, inst: &Inst, cvt: CvtPair) {
    let half = |bits: u32| {
        let bits = convert(f64::from(f32::from_bits(bits)), cvt.to, cvt.round, cvt.relu);
        u32::from(if cvt.finite { finite(cvt.to, bits) } else { bits })
    };
    let out = zip(f.get32(inst.src[0]), f.get32(inst.src[1]), |a, b| half(a) << 16 | half(b));
    f.put32(inst.dst[0], &out);
}

/// A double as the bits of a half.
#[inline(always)]
pub(super) fn convert(x: f64, to: HalfFormat, round: Round, relu: bool) -> u16 {
    let bits = match (to, round) {
        (HalfFormat::F16, Round::Nearest) => narrow::<F16>(x),
        (HalfFormat::Bf16, Round::Nearest) => narrow::<BF16>(x),
        (_, Round::Zero | Round::Down | Round::Up) => rounding::double_to_half(x, to, round),
    };
    if relu { rectify(bits) } else { bits }
}

/// An infinity becomes the largest number of its sign.
#[inline(always)]
pub(super) fn finite(format: HalfFormat, bits: u16) -> u16 {
    let infinity = match format {
        HalfFormat::F16 => infinity(F16),
        HalfFormat::Bf16 => infinity(BF16),
    };
    if bits & !SIGN == infinity { bits - 1 } else { bits }
}

/// The bits of a half as a single, exactly; a denormal as a zero of its sign when `ftz`.
#[inline(always)]
pub(super) fn to_single(format: HalfFormat, bits: u16, ftz: bool) -> f32 {
    match format {
        HalfFormat::F16 => single::<F16>(if ftz { flush::<F16>(bits) } else { bits }),
        HalfFormat::Bf16 => single::<BF16>(if ftz { flush::<BF16>(bits) } else { bits }),
    }
}

/// The bits of 1.
pub(super) fn one(format: HalfFormat) -> u16 {
    match format {
        HalfFormat::F16 => 0x3c00,
        HalfFormat::Bf16 => 0x3f80,
    }
}

/// The lesser or the greater of two values, as `min` and `max` pick it.
pub(super) fn extreme_one(format: HalfFormat, a: u16, b: u16, greater: bool) -> u16 {
    let how = HalfExtreme { nan: false, xorsign: false };
    match format {
        HalfFormat::F16 => extreme::<F16>(a, b, greater, how),
        HalfFormat::Bf16 => extreme::<BF16>(a, b, greater, how),
    }
}

/// a + b of one value or of both of a pair, as `atom.add.noftz` adds.
pub(super) fn add(ty: HalfType, a: u32, b: u32) -> u32 {
    let one = |a: u32, b: u32| {
        let (x, y) = (to_single(ty.format(), a as u16, false), to_single(ty.format(), b as u16, false));
        u32::from(convert(sum(f64::from(x), f64::from(y)), ty.format(), Round::Nearest, false))
    };
    if ty.is_pair() { one(a, b) | one(a >> 16, b >> 16) << 16 } else { one(a, b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shortcut for round to nearest agrees with the general rounding at, beside and between all halves.
    fn narrow_agrees<const FRACTION: u32>(format: HalfFormat) {
        for bits in 0..=u16::MAX {
            let x = widen::<FRACTION>(bits);
            if is_nan::<FRACTION>(bits) {
                assert_eq!(narrow::<FRACTION>(x), NAN);
                continue;
            }
            assert_eq!(narrow::<FRACTION>(x), bits);
            let next = widen::<FRACTION>(if bits & !SIGN == infinity(FRACTION) { bits } else { bits + 1 });
            let between = if next.is_finite() { x / 2.0 + next / 2.0 } else { x };
            for x in [between, between.next_up(), between.next_down(), x.next_up(), x.next_down()] {
                let wanted = rounding::double_to_half(x, format, Round::Nearest);
                assert_eq!(narrow::<FRACTION>(x), wanted, "{x:e}");
            }
        }
    }

    #[test]
    fn every_half_survives_and_ties_go_to_even() {
        narrow_agrees::<F16>(HalfFormat::F16);
        narrow_agrees::<BF16>(HalfFormat::Bf16);
        // 65520 lies between the largest number and the next power of two.
        assert_eq!((narrow::<F16>(65519.99), narrow::<F16>(65520.0)), (0x7bff, 0x7c00));
        assert_eq!((narrow::<F16>(2f64.powi(-25)), narrow::<F16>(2f64.powi(-25) * 1.001)), (0, 1));
    }

    #[test]
    fn a_pair_is_added_value_by_value() {
        // 1 + 2 below, 65504 + 65504 above.
        assert_eq!(add(HalfType::F16x2, 0x7bff_3c00, 0x7bff_4000), 0x7c00_4200);
        assert_eq!(add(HalfType::Bf16x2, 0x3f80_4000, 0xbf80_4000), 0x0000_4080);
        assert_eq!(add(HalfType::F16, 0x7c00, 0xfc00), 0x7fff);
    }
}
