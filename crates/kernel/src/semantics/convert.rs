//! Conversions (PTX ISA 9.7.9.21, `cvt`).
//!
//! The common pairs are vector loops; everything else goes lane by lane through [`lane`], which is the
//! definition. Narrow values are extended by their own sign to whatever register holds them. Float to integer
//! clamps to the destination's range, NaN gives 0.

use super::super::alu::{Cvt, HalfFormat, Num, Round};
use super::super::ir::{Inst, LANES};
use super::canonical::{canon32, canon64, flush};
use super::float::saturate;
use super::{Frame, half, map, rounding};

#[inline(always)]
pub(super) fn execute(f: &mut Frame<'_>, inst: &Inst, cvt: Cvt) {
    let (a, d) = (inst.src[0], inst.dst[0]);
    let plain = !cvt.sat && !cvt.ftz && !cvt.finite;
    // What compilers emit most, as loops that the compiler turns into vector code. Every arm gives the bits
    // that `lane` gives; other modifiers and types go there.
    match (cvt.from, cvt.to, cvt.wide_from, cvt.wide_to) {
        (Num::U32, Num::U64 | Num::S64, false, true) if plain => {
            let out = map(f.get32(a), u64::from);
            f.put64(d, &out);
        }
        (Num::S32, Num::U64 | Num::S64, false, true) if plain => {
            let out = map(f.get32(a), |a| a as i32 as u64);
            f.put64(d, &out);
        }
        (Num::U64 | Num::S64, Num::U32 | Num::S32, true, false) if plain => {
            let out = map(f.get64(a), |a| a as u32);
            f.put32(d, &out);
        }
        (Num::U16, Num::U32 | Num::S32, false, false) if plain => f.map32(inst, |a| a & 0xffff),
        (Num::S16, Num::U32 | Num::S32, false, false) if plain => f.map32(inst, |a| a as i16 as u32),
        (Num::U32 | Num::S32, Num::U16, false, false) if plain => f.map32(inst, |a| a & 0xffff),
        // Rust converts integers to singles, and narrows doubles, to nearest even. So only that rounding is
        // here.
        (Num::S32, Num::F32, false, false) if cvt.round == Round::Nearest && !cvt.sat => {
            f.map32(inst, |a| (a as i32 as f32).to_bits());
        }
        (Num::U32, Num::F32, false, false) if cvt.round == Round::Nearest && !cvt.sat => {
            f.map32(inst, |a| (a as f32).to_bits());
        }
        (Num::S32, Num::F64, false, true) if plain => {
            let out = map(f.get32(a), |a| f64::from(a as i32).to_bits());
            f.put64(d, &out);
        }
        (Num::U32, Num::F64, false, true) if plain => {
            let out = map(f.get32(a), |a| f64::from(a).to_bits());
            f.put64(d, &out);
        }
        // Rust's `as` clamps to the destination's range and makes NaN 0, as PTX asks.
        (Num::F32, Num::S32, false, false) if !cvt.ftz => match cvt.round {
            Round::Zero => f.map32(inst, |a| f32::from_bits(a) as i32 as u32),
            Round::Nearest => f.map32(inst, |a| f32::from_bits(a).round_ties_even() as i32 as u32),
            Round::Down => f.map32(inst, |a| f32::from_bits(a).floor() as i32 as u32),
            Round::Up => f.map32(inst, |a| f32::from_bits(a).ceil() as i32 as u32),
        },
        (Num::F32, Num::U32, false, false) if !cvt.ftz && cvt.round == Round::Zero => {
            f.map32(inst, |a| f32::from_bits(a) as u32);
        }
        (Num::F32, Num::F32, false, false) if cvt.integral && plain => match cvt.round {
            Round::Zero => f.map32(inst, |a| canon32(f32::from_bits(a).trunc())),
            Round::Nearest => f.map32(inst, |a| canon32(f32::from_bits(a).round_ties_even())),
            Round::Down => f.map32(inst, |a| canon32(f32::from_bits(a).floor())),
            Round::Up => f.map32(inst, |a| canon32(f32::from_bits(a).ceil())),
        },
        (Num::F32, Num::F32, false, false) if cvt.sat && !cvt.ftz && !cvt.integral => f.map32(inst, saturate),
        (Num::F32, Num::F64, false, true) if plain => {
            let out = map(f.get32(a), |a| canon64(f64::from(f32::from_bits(a))));
            f.put64(d, &out);
        }
        (Num::F64, Num::F32, true, false) if plain && cvt.round == Round::Nearest => {
            let out = map(f.get64(a), |a| canon32(f64::from_bits(a) as f32));
            f.put32(d, &out);
        }
        // Halves to singles are exact, so any rounding gives the same.
        (Num::F16, Num::F32, false, false) if plain && !cvt.integral => {
            f.map32(inst, |a| canon32(half::to_single(HalfFormat::F16, a as u16, false)));
        }
        (Num::Bf16, Num::F32, false, false) if plain && !cvt.integral => {
            f.map32(inst, |a| canon32(half::to_single(HalfFormat::Bf16, a as u16, false)));
        }
        (Num::F32, Num::F16, false, false) if plain && cvt.round == Round::Nearest => {
            let (to, relu) = (HalfFormat::F16, cvt.relu);
            f.map32(inst, |a| u32::from(half::convert(f64::from(f32::from_bits(a)), to, Round::Nearest, relu)));
        }
        (Num::F32, Num::Bf16, false, false) if plain && cvt.round == Round::Nearest => {
            let (to, relu) = (HalfFormat::Bf16, cvt.relu);
            f.map32(inst, |a| u32::from(half::convert(f64::from(f32::from_bits(a)), to, Round::Nearest, relu)));
        }
        _ => general(f, inst, cvt),
    }
}

#[inline(never)]
fn general(f: &mut Frame<'_>, inst: &Inst, cvt: Cvt) {
    let a = if cvt.wide_from { *f.get64(inst.src[0]) } else { map(f.get32(inst.src[0]), u64::from) };
    let mut out = [0; LANES];
    for i in 0..LANES {
        out[i] = lane(cvt, a[i]);
    }
    if cvt.wide_to {
        f.put64(inst.dst[0], &out);
    } else {
        f.put32(inst.dst[0], &map(&out, |v| v as u32));
    }
}

/// What a source is, apart from its type.
#[derive(Clone, Copy)]
enum Value {
    Int(i128),
    Float(f64),
}

/// The conversion of one value: register bits in, register bits out.
fn lane(cvt: Cvt, bits: u64) -> u64 {
    // Every integer type fits `i128` and every float type an `f64`, so nothing is rounded before the
    // destination is known.
    let value = match cvt.from {
        Num::F16 => Value::Float(f64::from(half::to_single(HalfFormat::F16, bits as u16, false))),
        Num::Bf16 => Value::Float(f64::from(half::to_single(HalfFormat::Bf16, bits as u16, false))),
        Num::F32 => {
            let bits = if cvt.ftz { flush(bits as u32) } else { bits as u32 };
            Value::Float(f64::from(f32::from_bits(bits)))
        }
        Num::F64 => Value::Float(f64::from_bits(bits)),
        Num::U8 | Num::S8 | Num::U16 | Num::S16 => Value::Int(integer(cvt.from, bits)),
        Num::U32 | Num::S32 | Num::U64 | Num::S64 => Value::Int(integer(cvt.from, bits)),
    };
    let integral = |x: f64| if cvt.integral { to_integral(x, cvt.round) } else { x };
    let to_half = |format: HalfFormat| match value {
        Value::Int(v) => u64::from(rounding::int_to_half(v, format, cvt.round)),
        Value::Float(x) => {
            let x = integral(x);
            let x = if cvt.sat { f64::from_bits(saturate64(x.to_bits())) } else { x };
            let bits = half::convert(x, format, cvt.round, cvt.relu);
            u64::from(if cvt.finite { half::finite(format, bits) } else { bits })
        }
    };
    let to_integer = |to: Num| match value {
        Value::Int(v) => extend(to, if cvt.sat { clamp(to, v) } else { v as u64 }),
        // NaN gives 0; far values saturate at the ends of `i128`, beyond every destination.
        Value::Float(x) => extend(to, clamp(to, to_integral(x, cvt.round) as i128)),
    };
    match (cvt.to, value) {
        (Num::F32, Value::Int(v)) => finish32(cvt, rounding::int_to_single(v, cvt.round)),
        (Num::F32, Value::Float(x)) => finish32(cvt, rounding::narrow(integral(x), cvt.round)),
        (Num::F64, Value::Int(v)) => finish64(cvt, rounding::int_to_double(v, cvt.round)),
        (Num::F64, Value::Float(x)) => finish64(cvt, integral(x)),
        (Num::F16, _) => to_half(HalfFormat::F16),
        (Num::Bf16, _) => to_half(HalfFormat::Bf16),
        (Num::U8 | Num::S8 | Num::U16 | Num::S16 | Num::U32 | Num::S32 | Num::U64 | Num::S64, _) => to_integer(cvt.to),
    }
}

fn finish32(cvt: Cvt, x: f32) -> u64 {
    let bits = if cvt.ftz { flush(canon32(x)) } else { canon32(x) };
    u64::from(if cvt.sat { saturate(bits) } else { bits })
}

fn finish64(cvt: Cvt, x: f64) -> u64 {
    if cvt.sat { saturate64(canon64(x)) } else { canon64(x) }
}

fn saturate64(bits: u64) -> u64 {
    let x = f64::from_bits(bits);
    if x > 0.0 { x.min(1.0).to_bits() } else { 0 }
}

/// The integer in a register, read as a type.
fn integer(from: Num, bits: u64) -> i128 {
    let extended = extend(from, bits);
    if from.is_signed() { i128::from(extended as i64) } else { i128::from(extended) }
}

/// The low bits of a value, extended to 64 by the sign of the type.
fn extend(to: Num, bits: u64) -> u64 {
    let shift = 64 - to.bits();
    if to.is_signed() { ((bits << shift) as i64 >> shift) as u64 } else { bits << shift >> shift }
}

fn clamp(to: Num, value: i128) -> u64 {
    let (least, most) = if to.is_signed() {
        (-(1i128 << (to.bits() - 1)), (1i128 << (to.bits() - 1)) - 1)
    } else {
        (0, (1i128 << to.bits()) - 1)
    };
    value.clamp(least, most) as u64
}

fn to_integral(x: f64, round: Round) -> f64 {
    match round {
        Round::Nearest => x.round_ties_even(),
        Round::Zero => x.trunc(),
        Round::Down => x.floor(),
        Round::Up => x.ceil(),
    }
}
