//! Float arithmetic (PTX ISA 9.7.3): add, sub, mul, fma, div, rcp, sqrt, min, max, abs, neg, copysign.
//!
//! Round-to-nearest operations are the host's IEEE operations in vector loops, whole arrays at a time: flush
//! inputs, operate, flush the result, saturate. The other directions go through [`super::rounding`].
//!
//! Invariant: a NaN that arithmetic produces is [`NAN32`] or [`NAN64`], because hosts differ in what they
//! produce. `abs`, `neg` and `copysign` only move sign bits.

use super::super::alu::{FloatMode, FloatOp, HalfFormat, Round};
use super::super::ir::{Inst, LANES};
use super::canonical::{canon32, canon64, flush};
use super::{Frame, V32, V64, half, map, rounding, zip, zip3};

/// Clamped to [0, 1]; NaN and -0 become +0.
#[inline(always)]
pub(super) fn saturate(bits: u32) -> u32 {
    let x = f32::from_bits(bits);
    // Written so that NaN fails the first comparison.
    if x > 0.0 { if x < 1.0 { bits } else { 0x3f80_0000 } } else { 0 }
}

#[inline(always)]
fn unary32(a: &V32, f: impl Fn(f32) -> f32) -> V32 {
    map(a, |a| canon32(f(f32::from_bits(a))))
}

#[inline(always)]
fn binary32(a: &V32, b: &V32, f: impl Fn(f32, f32) -> f32) -> V32 {
    zip(a, b, |a, b| canon32(f(f32::from_bits(a), f32::from_bits(b))))
}

#[inline(always)]
fn fma32<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { libm::fmaf(a, b, c) }
}

#[inline(always)]
fn fma64<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FMA { a.mul_add(b, c) } else { libm::fma(a, b, c) }
}

/// The pattern of the operations that do not round.
macro_rules! unrounded {
    () => {
        FloatOp::Min
            | FloatOp::Max
            | FloatOp::MinNan
            | FloatOp::MaxNan
            | FloatOp::Abs
            | FloatOp::Neg
            | FloatOp::CopySign
    };
}

/// How many sources an operation reads.
#[inline(always)]
fn arity(op: FloatOp) -> usize {
    match op {
        FloatOp::Rcp | FloatOp::Sqrt | FloatOp::Abs | FloatOp::Neg => 1,
        FloatOp::Fma => 3,
        FloatOp::Add | FloatOp::Sub | FloatOp::Mul | FloatOp::Div | FloatOp::Min | FloatOp::Max => 2,
        FloatOp::MinNan | FloatOp::MaxNan | FloatOp::CopySign => 2,
    }
}

#[inline(always)]
pub(super) fn execute32<const FMA: bool>(f: &mut Frame<'_>, inst: &Inst, op: FloatOp, mode: FloatMode) {
    let [sa, sb, sc, _] = inst.src;
    let n = arity(op);
    let a = f.get32(sa);
    // Unread operands repeat the first: a valid slot whose value does not matter.
    let b = if n > 1 { f.get32(sb) } else { a };
    let c = if n > 2 { f.get32(sc) } else { a };
    let out =
        if mode == FloatMode::PLAIN { nearest32::<FMA>(op, a, b, c) } else { general32::<FMA>(op, mode, a, b, c) };
    f.put32(inst.dst[0], &out);
}

/// Add, sub, mul or fma of the lower halves, and of the upper ones.
#[inline(always)]
pub(super) fn execute_pair<const FMA: bool>(f: &mut Frame<'_>, inst: &Inst, op: FloatOp, mode: FloatMode) {
    let [sa, sb, sc, _] = inst.src;
    let (a, b) = (f.get64(sa), f.get64(sb));
    let c = if arity(op) > 2 { f.get64(sc) } else { a };
    let half = |upper: u32| {
        let of = |v: &V64| map(v, |v| (v >> (32 * upper)) as u32);
        general32::<FMA>(op, mode, &of(a), &of(b), &of(c))
    };
    let out = zip(&half(0), &half(1), |low, high| u64::from(low) | u64::from(high) << 32);
    f.put64(inst.dst[0], &out);
}

/// The last operand is single precision, the others are halves.
#[inline(always)]
pub(super) fn execute_mixed<const FMA: bool>(
    f: &mut Frame<'_>,
    inst: &Inst,
    op: FloatOp,
    mode: FloatMode,
    from: HalfFormat,
) {
    let [sa, sb, sc, _] = inst.src;
    let single = |v: &V32| map(v, |v| half::to_single(from, v as u16, false).to_bits());
    let a = single(f.get32(sa));
    let out = if op == FloatOp::Fma {
        general32::<FMA>(op, mode, &a, &single(f.get32(sb)), f.get32(sc))
    } else {
        general32::<FMA>(op, mode, &a, f.get32(sb), &a)
    };
    f.put32(inst.dst[0], &out);
}

#[inline(always)]
fn nearest32<const FMA: bool>(op: FloatOp, a: &V32, b: &V32, c: &V32) -> V32 {
    match op {
        FloatOp::Add => binary32(a, b, |a, b| a + b),
        FloatOp::Sub => binary32(a, b, |a, b| a - b),
        FloatOp::Mul => binary32(a, b, |a, b| a * b),
        FloatOp::Fma => {
            zip3(a, b, c, |a, b, c| canon32(fma32::<FMA>(f32::from_bits(a), f32::from_bits(b), f32::from_bits(c))))
        }
        FloatOp::Div => binary32(a, b, |a, b| a / b),
        FloatOp::Rcp => unary32(a, |a| 1.0 / a),
        FloatOp::Sqrt => unary32(a, f32::sqrt),
        FloatOp::Min => binary32(a, b, min32),
        FloatOp::Max => binary32(a, b, |a, b| -min32(-a, -b)),
        FloatOp::MinNan => binary32(a, b, |a, b| if a.is_nan() || b.is_nan() { f32::NAN } else { min32(a, b) }),
        FloatOp::MaxNan => binary32(a, b, |a, b| if a.is_nan() || b.is_nan() { f32::NAN } else { -min32(-a, -b) }),
        FloatOp::Abs => map(a, |a| a & 0x7fff_ffff),
        FloatOp::Neg => map(a, |a| a ^ 0x8000_0000),
        FloatOp::CopySign => zip(a, b, |a, b| a & 0x8000_0000 | b & 0x7fff_ffff),
    }
}

/// The smaller, a number rather than a NaN, -0 rather than +0.
#[inline(always)]
fn min32(a: f32, b: f32) -> f32 {
    if a.is_nan() {
        b
    } else if b.is_nan() || a < b {
        a
    } else if a == b {
        f32::from_bits(a.to_bits() | b.to_bits())
    } else {
        b
    }
}

#[inline(always)]
fn min64(a: f64, b: f64) -> f64 {
    if a.is_nan() {
        b
    } else if b.is_nan() || a < b {
        a
    } else if a == b {
        f64::from_bits(a.to_bits() | b.to_bits())
    } else {
        b
    }
}

#[inline(always)]
fn general32<const FMA: bool>(op: FloatOp, mode: FloatMode, a: &V32, b: &V32, c: &V32) -> V32 {
    let flushed;
    let (a, b, c) = if mode.ftz {
        flushed = [map(a, flush), map(b, flush), map(c, flush)];
        (&flushed[0], &flushed[1], &flushed[2])
    } else {
        (a, b, c)
    };
    let mut out = match mode.round {
        Round::Nearest => nearest32::<FMA>(op, a, b, c),
        Round::Zero => directed32(op, a, b, c, Round::Zero),
        Round::Down => directed32(op, a, b, c, Round::Down),
        Round::Up => directed32(op, a, b, c, Round::Up),
    };
    if mode.ftz {
        out = map(&out, flush);
    }
    if mode.sat {
        out = map(&out, saturate);
    }
    out
}

#[inline(always)]
fn directed32(op: FloatOp, a: &V32, b: &V32, c: &V32, round: Round) -> V32 {
    match op {
        FloatOp::Add => binary32(a, b, |a, b| rounding::add32(a, b, round)),
        FloatOp::Sub => binary32(a, b, |a, b| rounding::add32(a, -b, round)),
        FloatOp::Mul => binary32(a, b, |a, b| rounding::mul32(a, b, round)),
        FloatOp::Fma => zip3(a, b, c, |a, b, c| {
            canon32(rounding::fma32(f32::from_bits(a), f32::from_bits(b), f32::from_bits(c), round))
        }),
        FloatOp::Div => binary32(a, b, |a, b| rounding::div32(a, b, round)),
        FloatOp::Rcp => unary32(a, |a| rounding::div32(1.0, a, round)),
        FloatOp::Sqrt => unary32(a, |a| rounding::sqrt32(a, round)),
        unrounded!() => nearest32::<false>(op, a, b, c),
    }
}

#[inline(always)]
fn unary64(a: &V64, f: impl Fn(f64) -> f64) -> V64 {
    map(a, |a| canon64(f(f64::from_bits(a))))
}

#[inline(always)]
fn binary64(a: &V64, b: &V64, f: impl Fn(f64, f64) -> f64) -> V64 {
    zip(a, b, |a, b| canon64(f(f64::from_bits(a), f64::from_bits(b))))
}

#[inline(always)]
pub(super) fn execute64<const FMA: bool>(f: &mut Frame<'_>, inst: &Inst, op: FloatOp, round: Round) {
    let [sa, sb, sc, _] = inst.src;
    let n = arity(op);
    let a = f.get64(sa);
    let b = if n > 1 { f.get64(sb) } else { a };
    let c = if n > 2 { f.get64(sc) } else { a };
    let out = if round == Round::Nearest { nearest64::<FMA>(op, a, b, c) } else { directed64(op, a, b, c, round) };
    f.put64(inst.dst[0], &out);
}

#[inline(always)]
fn nearest64<const FMA: bool>(op: FloatOp, a: &V64, b: &V64, c: &V64) -> V64 {
    const SIGN: u64 = 1 << 63;
    match op {
        FloatOp::Add => binary64(a, b, |a, b| a + b),
        FloatOp::Sub => binary64(a, b, |a, b| a - b),
        FloatOp::Mul => binary64(a, b, |a, b| a * b),
        FloatOp::Fma => {
            zip3(a, b, c, |a, b, c| canon64(fma64::<FMA>(f64::from_bits(a), f64::from_bits(b), f64::from_bits(c))))
        }
        FloatOp::Div => binary64(a, b, |a, b| a / b),
        FloatOp::Rcp => unary64(a, |a| 1.0 / a),
        FloatOp::Sqrt => unary64(a, f64::sqrt),
        FloatOp::Min => binary64(a, b, min64),
        FloatOp::Max => binary64(a, b, |a, b| -min64(-a, -b)),
        FloatOp::MinNan => binary64(a, b, |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { min64(a, b) }),
        FloatOp::MaxNan => binary64(a, b, |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { -min64(-a, -b) }),
        FloatOp::Abs => map(a, |a| a & !SIGN),
        FloatOp::Neg => map(a, |a| a ^ SIGN),
        FloatOp::CopySign => zip(a, b, |a, b| a & SIGN | b & !SIGN),
    }
}

#[inline(never)]
fn directed64(op: FloatOp, a: &V64, b: &V64, c: &V64, round: Round) -> V64 {
    let mut out = [0; LANES];
    for i in 0..LANES {
        let (x, y, z) = (f64::from_bits(a[i]), f64::from_bits(b[i]), f64::from_bits(c[i]));
        let r = match op {
            FloatOp::Add => rounding::add64(x, y, round),
            FloatOp::Sub => rounding::add64(x, -y, round),
            FloatOp::Mul => rounding::mul64(x, y, round),
            FloatOp::Fma => rounding::fma64(x, y, z, round),
            FloatOp::Div => rounding::div64(x, y, round),
            FloatOp::Rcp => rounding::div64(1.0, x, round),
            FloatOp::Sqrt => rounding::sqrt64(x, round),
            unrounded!() => return nearest64::<false>(op, a, b, c),
        };
        out[i] = canon64(r);
    }
    out
}
