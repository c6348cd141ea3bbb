//! Conversions to and from formats narrower than a register's types (PTX ISA 9.7.9.21, `cvt`, and 9.7.9.22,
//! `cvt.pack`): 8-bit floats, `tf32`, packed integers; and `szext`.
//!
//! | format | exponent, fraction | largest | NaN |
//! |---|---|---|---|
//! | `e4m3` | 4 (bias 7), 3 | 448 (`0x7e`); no infinities | `0x7f` |
//! | `e5m2` | 5 (bias 15), 2 | 57,344 (`0x7b`) | `0x7f` |
//! | `tf32` | 8 (bias 127), 10, in a single's upper 19 bits | that of a single | `0x7fffe000`; `.rna`: cut |
//!
//! Rounding to 8-bit floats is to nearest, ties to even; what would be above the largest number becomes that
//! number (`.satfinite`, which these conversions have). Values that a card gave are in
//! `tests/kernel/measured.rs`.

use super::super::alu::{CvtPack, CvtTf32, Fp8, HalfFormat, Round, Tf32Round, ToFp8};
use super::super::ir::Inst;
use super::{Frame, half, map, zip};

const SIGN: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7f80_0000;
/// The NaN of `.rn` and `.rz` to `tf32`.
const NAN_TF32: u32 = 0x7fff_e000;

/// Bits of the fraction, the bias, and the largest number of a format.
const fn shape(format: Fp8) -> (i32, i32, u32) {
    match format {
        Fp8::E4m3 => (3, 7, 0x7e),
        Fp8::E5m2 => (2, 15, 0x7b),
    }
}

/// A single as an 8-bit float.
pub(super) fn to_fp8(format: Fp8, x: f32, relu: bool) -> u32 {
    let (fraction, bias, largest) = shape(format);
    if x.is_nan() {
        return 0x7f;
    }
    if relu && x.is_sign_negative() {
        return 0;
    }
    magnitude(x, fraction, bias, largest) | if x.is_sign_negative() { 0x80 } else { 0 }
}

/// The code of a number without its sign. The format has `fraction` bits of fraction.
pub(super) fn magnitude(x: f32, fraction: i32, bias: i32, largest: u32) -> u32 {
    let magnitude = f64::from(x.abs());
    // Exponents below the least normal one share its spacing.
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(1 - bias);
    // A power of two in doubles: quotient and rounding are exact.
    let spacing = f64::from_bits(((exponent - fraction + 1023) as u64) << 52);
    let code = match x.is_finite() {
        true => (magnitude / spacing).round_ties_even() as u32 + (((exponent + bias - 1) as u32) << fraction),
        false => largest,
    };
    code.min(largest)
}

/// An 8-bit float as a half, exactly.
fn to_half(format: Fp8, bits: u32, relu: bool) -> u32 {
    let bits = bits & 0xff;
    let (negative, magnitude) = (bits & 0x80 != 0, bits & 0x7f);
    let half = match format {
        // The upper byte of a half.
        Fp8::E5m2 if magnitude > 0x7c => 0x7fff,
        Fp8::E5m2 => bits << 8,
        Fp8::E4m3 if magnitude == 0x7f => 0x7fff,
        Fp8::E4m3 => {
            // Exponent and fraction move as they are; 2^8 is the difference of the biases, also for
            // denormals.
            let scaled = f64::from(half::to_single(HalfFormat::F16, (magnitude << 7) as u16, false)) * 256.0;
            u32::from(half::convert(scaled, HalfFormat::F16, Round::Nearest, false)) | (bits & 0x80) << 8
        }
    };
    if relu && negative && half != 0x7fff { 0 } else { half }
}

/// An 8-bit float, the low byte of `bits`, as a single, exactly.
#[inline]
pub(super) fn single_of_fp8(format: Fp8, bits: u32) -> f32 {
    let (fraction, bias, largest) = shape(format);
    let (magnitude, sign) = (bits & 0x7f, (bits & 0x80) << 24);
    let magnitude = match magnitude > largest {
        // Of `e5m2` the code after the largest number is infinity.
        true if format == Fp8::E5m2 && magnitude == largest + 1 => f32::INFINITY,
        true => f32::NAN,
        // Exponent and fraction move as they are, also of denormals; a power of two makes up for the biases.
        false => f32::from_bits(magnitude << (23 - fraction)) * f32::from_bits(((254 - bias) as u32) << 23),
    };
    f32::from_bits(magnitude.to_bits() | sign)
}

/// d = 8-bit floats of the singles a (upper) and b, or of the halves in a.
pub(super) fn pack_fp8(f: &mut Frame<'_>, inst: &Inst, to: ToFp8) {
    let single = |bits: u32| to_fp8(to.format, f32::from_bits(bits), to.relu);
    let of_half = |bits: u32| to_fp8(to.format, half::to_single(HalfFormat::F16, bits as u16, false), to.relu);
    let a = f.get32(inst.src[0]);
    let out = match to.halves {
        true => map(a, |a| of_half(a >> 16) << 8 | of_half(a)),
        false => zip(a, f.get32(inst.src[1]), |a, b| single(a) << 8 | single(b)),
    };
    f.put32(inst.dst[0], &out);
}

/// d = the two 8-bit floats in a as halves.
pub(super) fn unpack_fp8(f: &mut Frame<'_>, inst: &Inst, from: Fp8, relu: bool) {
    f.map32(inst, |a| to_half(from, a >> 8, relu) << 16 | to_half(from, a, relu));
}

pub(super) fn to_tf32(f: &mut Frame<'_>, inst: &Inst, cvt: CvtTf32) {
    f.map32(inst, |a| {
        let (sign, magnitude) = (a & SIGN, a & !SIGN);
        // `.rna` only cuts a NaN, so that one may become an infinity: cards have it so.
        if magnitude > INFINITY && cvt.round != Tf32Round::Away {
            return NAN_TF32;
        }
        if cvt.relu && sign != 0 {
            return 0;
        }
        // A carry goes into the exponent; that of the largest number makes infinity.
        let half = match cvt.round {
            Tf32Round::Away if magnitude < INFINITY => 0x1000,
            Tf32Round::Even => 0xfff + (magnitude >> 13 & 1),
            Tf32Round::Away | Tf32Round::Zero => 0,
        };
        let rounded = (magnitude + half) & !0x1fff;
        // One less makes the largest number of infinity.
        sign | if cvt.finite && rounded >= INFINITY { rounded - 0x2000 } else { rounded }
    });
}

/// d = c << 2 n | a << n | b of n bits each; without c, n is 16.
pub(super) fn pack_integers(f: &mut Frame<'_>, inst: &Inst, cvt: CvtPack) {
    let bits = u32::from(cvt.bits);
    let (least, most) = if cvt.signed { (-1 << (bits - 1), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
    let part = |value: u32| (value as i32).clamp(least, most) as u32 & ((1 << bits) - 1);
    if cvt.merges {
        f.zip3_32(inst, |a, b, c| c << (2 * bits) | part(a) << bits | part(b));
    } else {
        f.zip32(inst, |a, b| part(a) << bits | part(b));
    }
}

/// The low b bits of a, extended by their sign or zeros; b modulo 32, or all of a when b is greater.
pub(super) fn extend_field(f: &mut Frame<'_>, inst: &Inst, signed: bool, wrap: bool) {
    f.zip32(inst, |a, b| {
        if !wrap && b >= 32 {
            return a;
        }
        match (b & 31, signed) {
            (0, _) => 0,
            (bits, true) => ((a << (32 - bits)) as i32 >> (32 - bits)) as u32,
            (bits, false) => a << (32 - bits) >> (32 - bits),
        }
    });
}
