//! Floating-point arithmetic on register values.
//!
//! A register has 64 bits; a single is boxed, with ones in its upper half, and reads as the canonical NaN if
//! it is not. Results that are NaN are canonical. Fused multiply-adds round once.

use super::super::instruction::{Class, Inst, Op};
use super::convert;

/// The canonical NaN of singles.
pub const CANONICAL_NAN_S: u32 = 0x7fc0_0000;
/// The canonical NaN of doubles.
pub const CANONICAL_NAN_D: u64 = 0x7ff8_0000_0000_0000;

/// An arithmetic operation asked for a rounding mode that is not modelled, or for one that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsupportedRounding(
    /// The mode: 1 towards zero, 2 down, 3 up, 4 to nearest with ties away from zero, 5 and above invalid.
    pub u8,
);

/// The hardware has it in one instruction; elsewhere the same bits are computed.
const FMA: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));

/// A single as a register holds it.
#[inline]
pub(super) fn boxed(single: u32) -> u64 {
    u64::from(single) | 0xffff_ffff_0000_0000
}

#[inline]
fn single_bits(register: u64) -> u32 {
    if register >> 32 == 0xffff_ffff { register as u32 } else { CANONICAL_NAN_S }
}

#[inline]
fn single(register: u64) -> f32 {
    f32::from_bits(single_bits(register))
}

#[inline]
fn of_single(value: f32) -> u64 {
    boxed(if value.is_nan() { CANONICAL_NAN_S } else { value.to_bits() })
}

#[inline]
fn of_double(value: f64) -> u64 {
    if value.is_nan() { CANONICAL_NAN_D } else { value.to_bits() }
}

#[inline]
fn fused_s(a: f32, b: f32, c: f32) -> u64 {
    of_single(if FMA { a.mul_add(b, c) } else { libm::fmaf(a, b, c) })
}

#[inline]
fn fused_d(a: f64, b: f64, c: f64) -> u64 {
    of_double(if FMA { a.mul_add(b, c) } else { libm::fma(a, b, c) })
}

/// The result of a floating-point instruction that is not a load or store, from its operands and the mode in
/// `frm`.
///
/// # Errors
/// Arithmetic in another rounding mode than to nearest even, and any operation in a mode that does not exist.
#[inline]
pub fn float(inst: &Inst, a: u64, b: u64, c: u64, frm: u8) -> Result<u64, UnsupportedRounding> {
    let mode = if inst.rm == 7 { frm } else { inst.rm };
    // Moves have no mode; their field is part of the operation and decoded as 0.
    if mode != 0 && (mode > 4 || matches!(inst.class(), Class::Fp | Class::FpDiv)) {
        return Err(UnsupportedRounding(mode));
    }
    Ok(match inst.class() {
        Class::FpConvert => converted(inst.op, a, mode),
        Class::FpMove => moved(inst.op, a, b),
        _ => computed(inst.op, a, b, c),
    })
}

#[inline]
fn computed(op: Op, a: u64, b: u64, c: u64) -> u64 {
    use Op::*;
    let s = || (single(a), single(b));
    let d = || (f64::from_bits(a), f64::from_bits(b));
    match op {
        FaddS => of_single(s().0 + s().1),
        FsubS => of_single(s().0 - s().1),
        FmulS => of_single(s().0 * s().1),
        FdivS => of_single(s().0 / s().1),
        FsqrtS => of_single(s().0.sqrt()),
        FmaddS => fused_s(s().0, s().1, single(c)),
        FmsubS => fused_s(s().0, s().1, -single(c)),
        FnmsubS => fused_s(-s().0, s().1, single(c)),
        FnmaddS => fused_s(-s().0, s().1, -single(c)),
        FaddD => of_double(d().0 + d().1),
        FsubD => of_double(d().0 - d().1),
        FmulD => of_double(d().0 * d().1),
        FdivD => of_double(d().0 / d().1),
        FsqrtD => of_double(d().0.sqrt()),
        FmaddD => fused_d(d().0, d().1, f64::from_bits(c)),
        FmsubD => fused_d(d().0, d().1, -f64::from_bits(c)),
        FnmsubD => fused_d(-d().0, d().1, f64::from_bits(c)),
        FnmaddD => fused_d(-d().0, d().1, -f64::from_bits(c)),
        _ => 0,
    }
}

const SIGN_S: u32 = 1 << 31;
const SIGN_D: u64 = 1 << 63;

fn moved(op: Op, a: u64, b: u64) -> u64 {
    use Op::*;
    let (sa, sb) = (single_bits(a), single_bits(b));
    let (fa, fb) = (single(a), single(b));
    let (da, db) = (f64::from_bits(a), f64::from_bits(b));
    match op {
        FsgnjS => boxed(sa & !SIGN_S | sb & SIGN_S),
        FsgnjnS => boxed(sa & !SIGN_S | !sb & SIGN_S),
        FsgnjxS => boxed(sa ^ sb & SIGN_S),
        FsgnjD => a & !SIGN_D | b & SIGN_D,
        FsgnjnD => a & !SIGN_D | !b & SIGN_D,
        FsgnjxD => a ^ b & SIGN_D,
        FminS => of_single(if lesser(fa.into(), fb.into()) { fa } else { fb }),
        FmaxS => of_single(if lesser((-fa).into(), (-fb).into()) { fa } else { fb }),
        FminD => of_double(if lesser(da, db) { da } else { db }),
        FmaxD => of_double(if lesser(-da, -db) { da } else { db }),
        FeqS => u64::from(fa == fb),
        FltS => u64::from(fa < fb),
        FleS => u64::from(fa <= fb),
        FeqD => u64::from(da == db),
        FltD => u64::from(da < db),
        FleD => u64::from(da <= db),
        FclassS => classified(fa.classify(), sa & SIGN_S != 0, sa & (1 << 22) != 0),
        FclassD => classified(da.classify(), a & SIGN_D != 0, a & (1 << 51) != 0),
        FmvXW => a as i32 as u64,
        FmvWX => boxed(a as u32),
        _ => a,
    }
}

/// The first is the minimum of both: a number before a NaN, -0 before +0.
fn lesser(a: f64, b: f64) -> bool {
    b.is_nan() || a < b || a == b && a.is_sign_negative()
}

/// The bit that `fclass` sets.
fn classified(class: std::num::FpCategory, negative: bool, quiet: bool) -> u64 {
    use std::num::FpCategory::*;
    let bit = match (class, negative) {
        (Infinite, true) => 0,
        (Normal, true) => 1,
        (Subnormal, true) => 2,
        (Zero, true) => 3,
        (Zero, false) => 4,
        (Subnormal, false) => 5,
        (Normal, false) => 6,
        (Infinite, false) => 7,
        (Nan, _) if quiet => 9,
        (Nan, _) => 8,
    };
    1 << bit
}

fn converted(op: Op, a: u64, mode: u8) -> u64 {
    use Op::*;
    let double = f64::from_bits(a);
    // A single is a double, exactly.
    let wide = || f64::from(single(a));
    match op {
        FcvtWS => convert::to_i32(wide(), mode),
        FcvtWuS => convert::to_u32(wide(), mode),
        FcvtLS => convert::to_i64(wide(), mode),
        FcvtLuS => convert::to_u64(wide(), mode),
        FcvtWD => convert::to_i32(double, mode),
        FcvtWuD => convert::to_u32(double, mode),
        FcvtLD => convert::to_i64(double, mode),
        FcvtLuD => convert::to_u64(double, mode),
        FcvtSW => of_single(convert::single_of(i128::from(a as i32), mode)),
        FcvtSWu => of_single(convert::single_of(i128::from(a as u32), mode)),
        FcvtSL => of_single(convert::single_of(i128::from(a as i64), mode)),
        FcvtSLu => of_single(convert::single_of(i128::from(a), mode)),
        FcvtDW => of_double(f64::from(a as i32)),
        FcvtDWu => of_double(f64::from(a as u32)),
        FcvtDL => of_double(convert::double_of(i128::from(a as i64), mode)),
        FcvtDLu => of_double(convert::double_of(i128::from(a), mode)),
        FcvtSD => of_single(convert::narrowed(double, mode)),
        FcvtDS => of_double(wide()),
        _ => 0,
    }
}
