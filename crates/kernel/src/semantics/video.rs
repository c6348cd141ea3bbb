//! Video instructions (PTX ISA 9.7.16, "Scalar Video Instructions", and 9.7.17, "SIMD Video Instructions").
//!
//! Scalar: parts of a and b are extended by their types to 33 bits, the operation is exact, `.sat` clamps its
//! result to the range of d or of its part, and c joins in. The ISA's pseudocode says how many bits a result
//! without `.sat` has when it meets c: 33, so that a larger one wraps there (`.min` and `.max` see it). SIMD:
//! the same for each element, without the 33 bits; an element without `.sat` is truncated, or added in full
//! (`.add`).
//!
//! Choices where the ISA leaves one: elements outside the mask of `vset2` and `vset4` come from c, as the
//! pseudocode says (the text beside it names b). `vmad` without a scale gives the low 32 bits, and its
//! destination type does not matter, since the signs of the operands decide.
//!
//! Not modelled: that GPUs since Maxwell emulate most of these by several instructions.

use super::super::alu::{IntCmp, Video, VideoMad, VideoOp, VideoPart, VideoSecond, VideoSimd};
use super::super::ir::Inst;
use super::{Frame, zip, zip3};

/// The part of that number in `imm`.
fn part(inst: &Inst, index: u32) -> VideoPart {
    VideoPart::ALL[(inst.imm >> (3 * index) & 7) as usize]
}

/// `bits` bits from bit `first` on, extended.
#[inline(always)]
fn extract(value: u32, (first, bits): (u32, u32), signed: bool) -> i64 {
    let top = value << (32 - first - bits);
    if signed { i64::from(top as i32 >> (32 - bits)) } else { i64::from(top >> (32 - bits)) }
}

/// Clamped to the range of `bits` bits.
#[inline(always)]
fn clamp(value: i128, bits: u32, signed: bool) -> i64 {
    let (least, most) =
        if signed { (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1) } else { (0, (1i64 << bits) - 1) };
    value.clamp(i128::from(least), i128::from(most)) as i64
}

/// The exact result. Only a left shift needs more than 34 bits.
#[inline(always)]
fn operate(op: VideoOp, a: i64, b: i64) -> i128 {
    let amount = |wrap: bool| if wrap { b & 31 } else { b.min(32) } as u32;
    i128::from(match op {
        VideoOp::Add => a + b,
        VideoOp::Sub => a - b,
        VideoOp::AbsDiff => (a - b).abs(),
        VideoOp::Average => (a + b + i64::from(a + b >= 0)) >> 1,
        VideoOp::Min => a.min(b),
        VideoOp::Max => a.max(b),
        VideoOp::Shl(wrap) => return i128::from(a) << amount(wrap),
        VideoOp::Shr(wrap) => a >> amount(wrap),
        VideoOp::Set(cmp) => i64::from(match cmp {
            IntCmp::Eq => a == b,
            IntCmp::Ne => a != b,
            IntCmp::LtS | IntCmp::LtU => a < b,
            IntCmp::LeS | IntCmp::LeU => a <= b,
            IntCmp::GtS | IntCmp::GtU => a > b,
            IntCmp::GeS | IntCmp::GeU => a >= b,
        }),
    })
}

/// `vadd`, `vsub`, `vabsdiff`, `vmin`, `vmax`, `vshl`, `vshr`, `vset`
#[inline(never)]
pub(super) fn execute(f: &mut Frame<'_>, inst: &Inst, video: Video) {
    let [a_part, b_part, d_part] = [0, 1, 2].map(|index| part(inst, index).bits());
    let first = |a: u32, b: u32| {
        let exact = operate(video.op, extract(a, a_part, video.a_signed), extract(b, b_part, video.b_signed));
        if video.sat {
            clamp(exact, d_part.1, video.signed)
        } else {
            // The low 33 bits, by their sign.
            (exact as i64) << 31 >> 31
        }
    };
    let [a, b, c, _] = inst.src;
    let (a, b) = (f.get32(a), f.get32(b));
    let out = if video.second == VideoSecond::None {
        zip(a, b, |a, b| first(a, b) as u32)
    } else {
        zip3(a, b, f.get32(c), |a, b, c| {
            let (result, wide) = (first(a, b), extract(c, (0, 32), video.signed));
            match video.second {
                VideoSecond::None => result as u32,
                VideoSecond::Add => (result + wide) as u32,
                VideoSecond::Min => result.min(wide) as u32,
                VideoSecond::Max => result.max(wide) as u32,
                VideoSecond::Merge => insert(c, result, d_part),
            }
        })
    };
    f.put32(inst.dst[0], &out);
}

/// `c` with the low bits of `value` in a part.
#[inline(always)]
fn insert(c: u32, value: i64, (first, bits): (u32, u32)) -> u32 {
    let ones = u32::MAX >> (32 - bits) << first;
    c & !ones | (value as u32) << first & ones
}

/// `vmad`
#[inline(never)]
pub(super) fn multiply_add(f: &mut Frame<'_>, inst: &Inst, mad: VideoMad) {
    let [a_part, b_part] = [0, 1].map(|index| part(inst, index).bits());
    let signed = mad.a_signed || mad.b_signed || mad.minus_product || mad.minus_c;
    let [a, b, c, _] = inst.src;
    let out = zip3(f.get32(a), f.get32(b), f.get32(c), |a, b, c| {
        let a = i128::from(extract(a, a_part, mad.a_signed));
        let product = a * i128::from(extract(b, b_part, mad.b_signed));
        // The complement and one more: c has 32 bits when it is complemented.
        let product = if mad.minus_product { !product } else { product };
        let c = i128::from(extract(if mad.minus_c { !c } else { c }, (0, 32), signed));
        let carry = i128::from(mad.plus_one || mad.minus_product || mad.minus_c);
        let result = (product + c + carry) >> mad.shift;
        if mad.sat { clamp(result, 32, signed) as u32 } else { result as u32 }
    });
    f.put32(inst.dst[0], &out);
}

/// `vadd2`, `vadd4` and the others of these.
#[inline(never)]
pub(super) fn execute_simd(f: &mut Frame<'_>, inst: &Inst, video: VideoSimd) {
    let (elements, bits) = if video.quads { (4, 8) } else { (2, 16) };
    let selected = |a: u32, b: u32, index: u32, signed: bool| {
        let at = inst.imm as u32 >> (3 * index) & (2 * elements - 1);
        extract(if at < elements { a } else { b }, (at % elements * bits, bits), signed)
    };
    let [a, b, c, _] = inst.src;
    let out = zip3(f.get32(a), f.get32(b), f.get32(c), |a, b, c| {
        let mut d = c;
        for i in (0..elements).filter(|i| inst.imm >> (24 + i) & 1 != 0) {
            let (x, y) = (selected(a, b, i, video.a_signed), selected(a, b, 4 + i, video.b_signed));
            let exact = operate(video.op, x, y);
            let result = if video.sat { clamp(exact, bits, video.signed) } else { exact as i64 };
            d = if video.accumulate { d.wrapping_add(result as u32) } else { insert(d, result, (i * bits, bits)) };
        }
        d
    });
    f.put32(inst.dst[0], &out);
}
