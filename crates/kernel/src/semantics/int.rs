//! Integer arithmetic, logic and shifts (PTX ISA 9.7.1, 9.7.2, 9.7.8).
//!
//! Division by zero and its remainder give all ones in every width; `MIN / -1` wraps. Both are what NVIDIA's
//! compilers make of these operations, where the ISA says "unspecified".

use super::super::alu::{Carry, CarryOp, IntExtreme, IntOp, SatOp};
use super::super::ir::Inst;
use super::{Frame, zip, zip3};

#[inline(always)]
pub(super) fn execute32(f: &mut Frame<'_>, inst: &Inst, op: IntOp) {
    match op {
        IntOp::Add => f.zip32(inst, u32::wrapping_add),
        IntOp::Sub => f.zip32(inst, u32::wrapping_sub),
        IntOp::MulLo => f.zip32(inst, u32::wrapping_mul),
        IntOp::MulHiS => f.zip32(inst, mul_hi_s32),
        IntOp::MulHiU => f.zip32(inst, mul_hi_u32),
        IntOp::MadLo => f.zip3_32(inst, |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        IntOp::MadHiS => f.zip3_32(inst, |a, b, c| mul_hi_s32(a, b).wrapping_add(c)),
        IntOp::MadHiU => f.zip3_32(inst, |a, b, c| mul_hi_u32(a, b).wrapping_add(c)),
        IntOp::DivS => f.zip32(inst, div_s32),
        IntOp::DivU => f.zip32(inst, |a, b| a.checked_div(b).unwrap_or(u32::MAX)),
        IntOp::RemS => f.zip32(inst, rem_s32),
        IntOp::RemU => f.zip32(inst, |a, b| a.checked_rem(b).unwrap_or(u32::MAX)),
        IntOp::MinS => f.zip32(inst, |a, b| (a as i32).min(b as i32) as u32),
        IntOp::MinU => f.zip32(inst, u32::min),
        IntOp::MaxS => f.zip32(inst, |a, b| (a as i32).max(b as i32) as u32),
        IntOp::MaxU => f.zip32(inst, u32::max),
        IntOp::And => f.zip32(inst, |a, b| a & b),
        IntOp::Or => f.zip32(inst, |a, b| a | b),
        IntOp::Xor => f.zip32(inst, |a, b| a ^ b),
        // PTX clamps shift amounts at the width of the type; Rust has no shift by the width or more.
        IntOp::Shl => f.zip32(inst, |a, b| if b > 31 { 0 } else { a << (b & 31) }),
        IntOp::ShrS => f.zip32(inst, |a, b| ((a as i32) >> b.min(31)) as u32),
        IntOp::ShrU => f.zip32(inst, |a, b| if b > 31 { 0 } else { a >> (b & 31) }),
        IntOp::Abs => f.map32(inst, |a| (a as i32).wrapping_abs() as u32),
        IntOp::Neg => f.map32(inst, u32::wrapping_neg),
        IntOp::Not => f.map32(inst, |a| !a),
        IntOp::Cnot => f.map32(inst, |a| u32::from(a == 0)),
        IntOp::Brev => f.map32(inst, u32::reverse_bits),
        IntOp::SadS => f.zip3_32(inst, |a, b, c| c.wrapping_add((a as i32).abs_diff(b as i32))),
        IntOp::SadU => f.zip3_32(inst, |a, b, c| c.wrapping_add(a.abs_diff(b))),
    }
}

#[inline(always)]
pub(super) fn execute64(f: &mut Frame<'_>, inst: &Inst, op: IntOp) {
    match op {
        IntOp::Add => f.zip64(inst, u64::wrapping_add),
        IntOp::Sub => f.zip64(inst, u64::wrapping_sub),
        IntOp::MulLo => f.zip64(inst, u64::wrapping_mul),
        IntOp::MulHiS => f.zip64(inst, mul_hi_s64),
        IntOp::MulHiU => f.zip64(inst, mul_hi_u64),
        IntOp::MadLo => f.zip3_64(inst, |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        IntOp::MadHiS => f.zip3_64(inst, |a, b, c| mul_hi_s64(a, b).wrapping_add(c)),
        IntOp::MadHiU => f.zip3_64(inst, |a, b, c| mul_hi_u64(a, b).wrapping_add(c)),
        IntOp::DivS => f.zip64(inst, |a, b| if b == 0 { u64::MAX } else { (a as i64).wrapping_div(b as i64) as u64 }),
        IntOp::DivU => f.zip64(inst, |a, b| a.checked_div(b).unwrap_or(u64::MAX)),
        IntOp::RemS => f.zip64(inst, |a, b| if b == 0 { u64::MAX } else { (a as i64).wrapping_rem(b as i64) as u64 }),
        IntOp::RemU => f.zip64(inst, |a, b| a.checked_rem(b).unwrap_or(u64::MAX)),
        IntOp::MinS => f.zip64(inst, |a, b| (a as i64).min(b as i64) as u64),
        IntOp::MinU => f.zip64(inst, u64::min),
        IntOp::MaxS => f.zip64(inst, |a, b| (a as i64).max(b as i64) as u64),
        IntOp::MaxU => f.zip64(inst, u64::max),
        IntOp::And => f.zip64(inst, |a, b| a & b),
        IntOp::Or => f.zip64(inst, |a, b| a | b),
        IntOp::Xor => f.zip64(inst, |a, b| a ^ b),
        // Amounts are 32-bit registers whatever the type, so these are not `zip64`; they clamp at the width
        // as in 32 bits.
        IntOp::Shl => shift64(f, inst, |a, b| if b > 63 { 0 } else { a << (b & 63) }),
        IntOp::ShrS => shift64(f, inst, |a, b| ((a as i64) >> b.min(63)) as u64),
        IntOp::ShrU => shift64(f, inst, |a, b| if b > 63 { 0 } else { a >> (b & 63) }),
        IntOp::Abs => f.map64(inst, |a| (a as i64).wrapping_abs() as u64),
        IntOp::Neg => f.map64(inst, u64::wrapping_neg),
        IntOp::Not => f.map64(inst, |a| !a),
        IntOp::Cnot => f.map64(inst, |a| u64::from(a == 0)),
        IntOp::Brev => f.map64(inst, u64::reverse_bits),
        IntOp::SadS => f.zip3_64(inst, |a, b, c| c.wrapping_add((a as i64).abs_diff(b as i64))),
        IntOp::SadU => f.zip3_64(inst, |a, b, c| c.wrapping_add(a.abs_diff(b))),
    }
}

/// 16-bit operations whose result depends on more than the low 16 bits of the sources; the others are the
/// 32-bit ones, because the upper bits of a narrow register are unspecified.
#[inline(always)]
pub(super) fn execute16(f: &mut Frame<'_>, inst: &Inst, op: IntOp) {
    // Only sources are cut to 16 bits: a result may leave anything in the upper half, which is unspecified.
    let (s, u) = (|v: u32| v as i16 as u32, |v: u32| v & 0xffff);
    match op {
        IntOp::MulHiS => f.zip32(inst, |a, b| s(a).wrapping_mul(s(b)) >> 16),
        IntOp::MulHiU => f.zip32(inst, |a, b| u(a).wrapping_mul(u(b)) >> 16),
        IntOp::MadHiS => f.zip3_32(inst, |a, b, c| (s(a).wrapping_mul(s(b)) >> 16).wrapping_add(c)),
        IntOp::MadHiU => f.zip3_32(inst, |a, b, c| (u(a).wrapping_mul(u(b)) >> 16).wrapping_add(c)),
        IntOp::DivS => f.zip32(inst, |a, b| div_s32(s(a), s(b))),
        IntOp::DivU => f.zip32(inst, |a, b| u(a).checked_div(u(b)).unwrap_or(u32::MAX)),
        IntOp::RemS => f.zip32(inst, |a, b| rem_s32(s(a), s(b))),
        IntOp::RemU => f.zip32(inst, |a, b| u(a).checked_rem(u(b)).unwrap_or(u32::MAX)),
        IntOp::MinS => f.zip32(inst, |a, b| (s(a) as i32).min(s(b) as i32) as u32),
        IntOp::MinU => f.zip32(inst, |a, b| u(a).min(u(b))),
        IntOp::MaxS => f.zip32(inst, |a, b| (s(a) as i32).max(s(b) as i32) as u32),
        IntOp::MaxU => f.zip32(inst, |a, b| u(a).max(u(b))),
        IntOp::ShrS => f.zip32(inst, |a, b| ((s(a) as i32) >> b.min(31)) as u32),
        IntOp::ShrU => f.zip32(inst, |a, b| if b > 31 { 0 } else { u(a) >> (b & 31) }),
        IntOp::Abs => f.map32(inst, |a| (s(a) as i32).wrapping_abs() as u32),
        IntOp::Cnot => f.map32(inst, |a| u32::from(u(a) == 0)),
        IntOp::SadS => f.zip3_32(inst, |a, b, c| c.wrapping_add((s(a) as i32).abs_diff(s(b) as i32))),
        IntOp::SadU => f.zip3_32(inst, |a, b, c| c.wrapping_add(u(a).abs_diff(u(b)))),
        IntOp::Add
        | IntOp::Sub
        | IntOp::MulLo
        | IntOp::MadLo
        | IntOp::And
        | IntOp::Or
        | IntOp::Xor
        | IntOp::Shl
        | IntOp::Neg
        | IntOp::Not
        | IntOp::Brev => execute32(f, inst, op),
    }
}

#[inline(always)]
fn shift64(f: &mut Frame<'_>, inst: &Inst, op: impl Fn(u64, u32) -> u64) {
    let out = zip(f.get64(inst.src[0]), f.get32(inst.src[1]), op);
    f.put64(inst.dst[0], &out);
}

#[inline(always)]
fn mul_hi_s32(a: u32, b: u32) -> u32 {
    ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32
}

#[inline(always)]
fn mul_hi_u32(a: u32, b: u32) -> u32 {
    ((u64::from(a) * u64::from(b)) >> 32) as u32
}

#[inline(always)]
fn mul_hi_s64(a: u64, b: u64) -> u64 {
    ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64
}

#[inline(always)]
fn mul_hi_u64(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

#[inline(always)]
fn div_s32(a: u32, b: u32) -> u32 {
    if b == 0 { u32::MAX } else { (a as i32).wrapping_div(b as i32) as u32 }
}

#[inline(always)]
fn rem_s32(a: u32, b: u32) -> u32 {
    if b == 0 { u32::MAX } else { (a as i32).wrapping_rem(b as i32) as u32 }
}

#[inline(always)]
pub(super) fn mul_wide32(f: &mut Frame<'_>, inst: &Inst, signed: bool) {
    let (a, b) = (f.get32(inst.src[0]), f.get32(inst.src[1]));
    let out = if signed {
        zip(a, b, |a, b| (i64::from(a as i32) * i64::from(b as i32)) as u64)
    } else {
        zip(a, b, |a, b| u64::from(a) * u64::from(b))
    };
    f.put64(inst.dst[0], &out);
}

#[inline(always)]
pub(super) fn mad_wide32(f: &mut Frame<'_>, inst: &Inst, signed: bool) {
    let (a, b, c) = (f.get32(inst.src[0]), f.get32(inst.src[1]), f.get64(inst.src[2]));
    let out = if signed {
        zip3(a, b, c, |a, b, c| c.wrapping_add((i64::from(a as i32) * i64::from(b as i32)) as u64))
    } else {
        zip3(a, b, c, |a, b, c| c.wrapping_add(u64::from(a) * u64::from(b)))
    };
    f.put64(inst.dst[0], &out);
}

#[inline(always)]
pub(super) fn mul_wide16(f: &mut Frame<'_>, inst: &Inst, signed: bool, add: bool) {
    let extend = |v: u32| if signed { v as i16 as u32 } else { v & 0xffff };
    if add {
        f.zip3_32(inst, |a, b, c| extend(a).wrapping_mul(extend(b)).wrapping_add(c));
    } else {
        f.zip32(inst, |a, b| extend(a).wrapping_mul(extend(b)));
    }
}

#[inline(always)]
pub(super) fn mul24(f: &mut Frame<'_>, inst: &Inst, signed: bool, high: bool, add: bool, sat: bool) {
    let extend = |v: u32| {
        if signed { i64::from((v << 8) as i32 >> 8) } else { i64::from(v & 0xff_ffff) }
    };
    let product = |a: u32, b: u32| (extend(a) * extend(b)) >> if high { 16 } else { 0 };
    if add && sat {
        f.zip3_32(inst, |a, b, c| (product(a, b) as i32).saturating_add(c as i32) as u32);
    } else if add {
        f.zip3_32(inst, |a, b, c| (product(a, b) as u32).wrapping_add(c));
    } else {
        f.zip32(inst, |a, b| product(a, b) as u32);
    }
}

#[inline(always)]
pub(super) fn saturating(f: &mut Frame<'_>, inst: &Inst, op: SatOp) {
    match op {
        SatOp::Add => f.zip32(inst, |a, b| (a as i32).saturating_add(b as i32) as u32),
        SatOp::Sub => f.zip32(inst, |a, b| (a as i32).saturating_sub(b as i32) as u32),
        SatOp::MadHi => f.zip3_32(inst, |a, b, c| (mul_hi_s32(a, b) as i32).saturating_add(c as i32) as u32),
    }
}

/// a + b of both halves of 32 bits.
#[inline(always)]
pub(super) fn add_pair16(f: &mut Frame<'_>, inst: &Inst) {
    f.zip32(inst, |a, b| a.wrapping_add(b) & 0xffff | (a & !0xffff).wrapping_add(b & !0xffff));
}

/// The smaller or larger of both halves of 32 bits.
#[inline(always)]
pub(super) fn extreme_pair16(f: &mut Frame<'_>, inst: &Inst, extreme: IntExtreme, relu: bool) {
    let pair = |of: fn(u16, u16) -> u16| {
        move |a: u32, b: u32| {
            let one = |a: u32, b: u32| {
                let value = of(a as u16, b as u16);
                u32::from(if relu && (value as i16) < 0 { 0 } else { value })
            };
            one(a, b) | one(a >> 16, b >> 16) << 16
        }
    };
    match extreme {
        IntExtreme::MinS => f.zip32(inst, pair(|a, b| (a as i16).min(b as i16) as u16)),
        IntExtreme::MinU => f.zip32(inst, pair(u16::min)),
        IntExtreme::MaxS => f.zip32(inst, pair(|a, b| (a as i16).max(b as i16) as u16)),
        IntExtreme::MaxU => f.zip32(inst, pair(u16::max)),
    }
}

/// `min.relu.s32`, `max.relu.s32`
#[inline(always)]
pub(super) fn rectified(f: &mut Frame<'_>, inst: &Inst, least: bool) {
    if least {
        f.zip32(inst, |a, b| (a as i32).min(b as i32).max(0) as u32);
    } else {
        f.zip32(inst, |a, b| (a as i32).max(b as i32).max(0) as u32);
    }
}

/// Extended precision. The flag is the carry of an adder, which subtracts by adding the complement and one: a
/// subtraction clears it when it borrows, and borrows one more when it is clear. So chains of one kind are as
/// the ISA has them, and a chain of both kinds is as cards have it (`tests/kernel/measured.rs`).
#[inline(always)]
pub(super) fn carry(f: &mut Frame<'_>, inst: &Inst, carry: Carry) {
    let [a, b, c, m] = inst.src;
    let complement = if carry.op == CarryOp::Sub { u32::MAX } else { 0 };
    let carry_in = if carry.takes { f.get_p(m) ^ complement } else { 0 };
    let mut carry_out = 0u32;
    // A macro, because the widths differ in registers, types and high products, but in no step.
    macro_rules! lanes {
        ($get:ident, $put:ident, $zero:expr, $hi_s:expr, $hi_u:expr, $int:ty) => {{
            let (va, vb) = (*f.$get(a), *f.$get(b));
            let vc = match carry.op {
                CarryOp::Add | CarryOp::Sub => $zero,
                CarryOp::MadLo | CarryOp::MadHiS | CarryOp::MadHiU => *f.$get(c),
            };
            let mut out = $zero;
            for i in 0..out.len() {
                let flag = <$int>::from(carry_in >> i & 1 != 0);
                let (x, y) = match carry.op {
                    CarryOp::Add | CarryOp::Sub => (va[i], vb[i]),
                    CarryOp::MadLo => (va[i].wrapping_mul(vb[i]), vc[i]),
                    CarryOp::MadHiS => ($hi_s(va[i], vb[i]), vc[i]),
                    CarryOp::MadHiU => ($hi_u(va[i], vb[i]), vc[i]),
                };
                let ((r, o1), (r2, o2));
                if carry.op == CarryOp::Sub {
                    (r, o1) = x.overflowing_sub(y);
                    (r2, o2) = r.overflowing_sub(flag);
                } else {
                    (r, o1) = x.overflowing_add(y);
                    (r2, o2) = r.overflowing_add(flag);
                }
                out[i] = r2;
                // At most one of the two steps overflows: after the first one did, what is left is too far
                // from the end.
                carry_out |= u32::from(o1 | o2) << i;
            }
            f.$put(inst.dst[0], &out);
        }};
    }
    if carry.wide {
        lanes!(get64, put64, [0u64; 32], mul_hi_s64, mul_hi_u64, u64);
    } else {
        lanes!(get32, put32, [0u32; 32], mul_hi_s32, mul_hi_u32, u32);
    }
    // Last: the flag that was taken and the one that is given may be the same predicate.
    if carry.gives {
        f.put_p(inst.dst[1], carry_out ^ complement);
    }
}
