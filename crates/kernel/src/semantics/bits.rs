//! Bit fields, byte permutation, three-input logic, funnel shifts, dot products (PTX ISA 9.7.1, 9.7.8).

use super::super::alu::{CountOp, PrmtMode};
use super::super::ir::{Inst, NONE};
use super::{Frame, bits_of, map, zip3};

#[inline(always)]
pub(super) fn count(f: &mut Frame<'_>, inst: &Inst, op: CountOp, wide: bool) {
    let find = |v: u64, msb: u32, shift: bool| {
        // `v` has at most msb + 1 bits.
        if v == 0 {
            u32::MAX
        } else {
            let at = 63 - v.leading_zeros();
            if shift { msb - at } else { at }
        }
    };
    let positive32 = |a: u32| u64::from(if (a as i32) < 0 { !a } else { a });
    let positive64 = |a: u64| if (a as i64) < 0 { !a } else { a };
    let out = if wide {
        let a = f.get64(inst.src[0]);
        match op {
            CountOp::Popc => map(a, |a| a.count_ones()),
            CountOp::Clz => map(a, |a| a.leading_zeros()),
            CountOp::BfindU => map(a, |a| find(a, 63, false)),
            CountOp::BfindS => map(a, |a| find(positive64(a), 63, false)),
            CountOp::BfindShiftU => map(a, |a| find(a, 63, true)),
            CountOp::BfindShiftS => map(a, |a| find(positive64(a), 63, true)),
        }
    } else {
        let a = f.get32(inst.src[0]);
        match op {
            CountOp::Popc => map(a, |a| a.count_ones()),
            CountOp::Clz => map(a, |a| a.leading_zeros()),
            CountOp::BfindU => map(a, |a| find(u64::from(a), 31, false)),
            CountOp::BfindS => map(a, |a| find(positive32(a), 31, false)),
            CountOp::BfindShiftU => map(a, |a| find(u64::from(a), 31, true)),
            CountOp::BfindShiftS => map(a, |a| find(positive32(a), 31, true)),
        }
    };
    f.put32(inst.dst[0], &out);
}

/// `len` bits of `a` from `pos`; bits beyond the word are zero, or the sign of the field.
#[inline(always)]
fn field(a: u64, pos: u32, len: u32, msb: u32, signed: bool) -> u64 {
    let (pos, len) = (pos & 0xff, len & 0xff);
    let shifted = if pos > msb { 0 } else { a >> (pos & 63) };
    let keep = if len >= 64 { u64::MAX } else { (1 << (len & 63)) - 1 };
    // Bits above the word are not part of the field.
    let inside = if pos > msb { 0 } else { u64::MAX >> (63 - (msb - pos)) };
    let sign = signed && len > 0 && a >> (pos + len - 1).min(msb) & 1 == 1;
    if sign { shifted & keep | !(keep & inside) } else { shifted & keep }
}

#[inline(always)]
pub(super) fn extract(f: &mut Frame<'_>, inst: &Inst, signed: bool, wide: bool) {
    let [a, b, c, _] = inst.src;
    if wide {
        let out = zip3(f.get64(a), f.get32(b), f.get32(c), |a, b, c| field(a, b, c, 63, signed));
        f.put64(inst.dst[0], &out);
    } else {
        f.zip3_32(inst, |a, b, c| field(u64::from(a), b, c, 31, signed) as u32);
    }
}

/// `b` with `len` bits from `pos` replaced by the low bits of `a`.
#[inline(always)]
fn inserted(a: u64, b: u64, pos: u32, len: u32, msb: u32) -> u64 {
    let (pos, len) = (pos & 0xff, len & 0xff);
    if pos > msb {
        return b;
    }
    let keep = if len >= 64 { u64::MAX } else { (1 << (len & 63)) - 1 };
    let field = keep << pos;
    b & !field | (a << pos) & field
}

#[inline(always)]
pub(super) fn insert(f: &mut Frame<'_>, inst: &Inst, wide: bool) {
    let [a, b, c, m] = inst.src;
    let (pos, len) = (*f.get32(c), *f.get32(m));
    if wide {
        let (a, b) = (*f.get64(a), *f.get64(b));
        let mut out = b;
        for i in 0..out.len() {
            out[i] = inserted(a[i], b[i], pos[i], len[i], 63);
        }
        f.put64(inst.dst[0], &out);
    } else {
        let (a, b) = (*f.get32(a), *f.get32(b));
        let mut out = b;
        for i in 0..out.len() {
            out[i] = inserted(u64::from(a[i]), u64::from(b[i]), pos[i], len[i], 31) as u32;
        }
        f.put32(inst.dst[0], &out);
    }
}

/// The pseudo-code of the ISA's `fns`.
fn nth_set(mask: u32, base: u32, offset: i32) -> u32 {
    if base > 31 {
        return u32::MAX;
    }
    if offset == 0 {
        return if mask >> base & 1 == 1 { base } else { u32::MAX };
    }
    let (up, n) = (offset > 0, offset.unsigned_abs());
    // Keep the bits on the side that is searched, and drop the n - 1 nearest.
    let mut left = if up { mask >> base << base } else { mask << (31 - base) >> (31 - base) };
    for _ in 1..n.min(33) {
        left = if up {
            left & left.wrapping_sub(1)
        } else {
            left & !(1u32 << 31).checked_shr(left.leading_zeros()).unwrap_or(0)
        };
    }
    match (left, up) {
        (0, _) => u32::MAX,
        (_, true) => left.trailing_zeros(),
        (_, false) => 31 - left.leading_zeros(),
    }
}

#[inline(always)]
pub(super) fn find_nth_set(f: &mut Frame<'_>, inst: &Inst) {
    f.zip3_32(inst, |a, b, c| nth_set(a, b, c as i32));
}

#[inline(always)]
pub(super) fn mask(f: &mut Frame<'_>, inst: &Inst, wrap: bool) {
    f.zip32(inst, |a, b| {
        let (from, n) = if wrap { (a & 31, b & 31) } else { (a, b) };
        if from > 31 { 0 } else { (if n > 31 { u32::MAX } else { (1 << n) - 1 }) << from }
    });
}

#[inline(always)]
pub(super) fn permute(f: &mut Frame<'_>, inst: &Inst, mode: PrmtMode) {
    f.zip3_32(inst, |a, b, c| {
        let pool = u64::from(a) | u64::from(b) << 32;
        let s = c & 3;
        let selectors: [u32; 4] = match mode {
            PrmtMode::Index => [c & 15, c >> 4 & 15, c >> 8 & 15, c >> 12 & 15],
            PrmtMode::F4e => [s, s + 1, s + 2, s + 3],
            PrmtMode::B4e => [s, (s + 7) & 7, (s + 6) & 7, (s + 5) & 7],
            PrmtMode::Rc8 => [s; 4],
            PrmtMode::Ecl => [s, s.max(1), s.max(2), 3],
            PrmtMode::Ecr => [0, s.min(1), s.min(2), s],
            PrmtMode::Rc16 => [(c & 1) * 2, (c & 1) * 2 + 1, (c & 1) * 2, (c & 1) * 2 + 1],
        };
        let mut out = 0;
        for (i, selector) in selectors.into_iter().enumerate() {
            let byte = (pool >> (8 * (selector & 7))) as u8;
            let byte = if selector & 8 != 0 { ((byte as i8) >> 7) as u8 } else { byte };
            out |= u32::from(byte) << (8 * i);
        }
        out
    });
}

#[inline(always)]
pub(super) fn lop3(f: &mut Frame<'_>, inst: &Inst) {
    let table = inst.imm as u32;
    // One full-width mask an entry of the truth table.
    let entry: [u32; 8] = std::array::from_fn(|i| 0u32.wrapping_sub(table >> i & 1));
    let [a, b, c, m] = inst.src;
    let out = zip3(f.get32(a), f.get32(b), f.get32(c), |a, b, c| {
        let (na, nb, nc) = (!a, !b, !c);
        entry[0] & na & nb & nc
            | entry[1] & na & nb & c
            | entry[2] & na & b & nc
            | entry[3] & na & b & c
            | entry[4] & a & nb & nc
            | entry[5] & a & nb & c
            | entry[6] & a & b & nc
            | entry[7] & a & b & c
    });
    let [d, p, ..] = inst.dst;
    if p != NONE {
        let with = f.get_p(m) ^ 0u32.wrapping_sub(table >> 9 & 1);
        let set = bits_of(|lane| out[lane] != 0);
        f.put_p(p, if table >> 8 & 1 == 1 { set | with } else { set & with });
    }
    if d != NONE {
        f.put32(d, &out);
    }
}

#[inline(always)]
pub(super) fn funnel(f: &mut Frame<'_>, inst: &Inst, left: bool, wrap: bool) {
    f.zip3_32(inst, |a, b, c| {
        let pair = u64::from(b) << 32 | u64::from(a);
        let n = if wrap { c & 31 } else { c.min(32) };
        if left { (pair << n >> 32) as u32 } else { (pair >> n) as u32 }
    });
}

#[inline(always)]
pub(super) fn dp4a(f: &mut Frame<'_>, inst: &Inst, signed_a: bool, signed_b: bool) {
    f.zip3_32(inst, |a, b, c| {
        let mut sum = c;
        for i in 0..4 {
            sum = sum.wrapping_add(byte(a, i, signed_a).wrapping_mul(byte(b, i, signed_b)));
        }
        sum
    });
}

#[inline(always)]
pub(super) fn dp2a(f: &mut Frame<'_>, inst: &Inst, signed_a: bool, signed_b: bool, high: bool) {
    let first = if high { 2 } else { 0 };
    f.zip3_32(inst, |a, b, c| {
        let half = |i: u32| {
            let v = a >> (16 * i);
            if signed_a { v as i16 as u32 } else { v & 0xffff }
        };
        c.wrapping_add(half(0).wrapping_mul(byte(b, first, signed_b))).wrapping_add(half(1).wrapping_mul(byte(
            b,
            first + 1,
            signed_b,
        )))
    });
}

#[inline(always)]
fn byte(v: u32, i: u32, signed: bool) -> u32 {
    let v = (v >> (8 * i)) as u8;
    if signed { v as i8 as u32 } else { u32::from(v) }
}
