//! Conversions to and from floats of 6 and 4 bits, and scale factors (PTX ISA 9.7.9.21): `cvt` with `e2m3x2`,
//! `e3m2x2`, `e2m1x2` and `ue8m0x2`.
//!
//! | pair of | lies in | NaN becomes |
//! |---|---|---|
//! | `e2m3`, `e3m2` | the lower 6 bits of each byte of 16 bits | the largest number |
//! | `e2m1` | the halves of 8 bits | the largest number |
//! | `ue8m0` | the bytes of 16 bits | `0xff`, NaN |
//!
//! Rounding to floats is to nearest, ties to even, and never beyond the largest number. `ue8m0` has no sign:
//! that of a source is not looked at. A source of 2^-127 or less becomes 2^-127 (`0x00`); an infinity
//! `0xff`, with `.satfinite` `0xfe`, as does what `.rp` makes of more than 2^127.
//!
//! Source: what `cuda_fp4.hpp`, `cuda_fp6.hpp` and `cuda_fp8.hpp` do where there is no such instruction.

use super::super::alu::{HalfFormat, PairOf, Round, TinyCvt, TinyFloat};
use super::super::ir::Inst;
use super::{Frame, half, map, narrow, zip};

/// Converts.
#[cold]
pub(super) fn convert(f: &mut Frame<'_>, inst: &Inst, cvt: TinyCvt) {
    match cvt {
        TinyCvt::To { format, from, relu } => {
            let code = |x: f32| code_of(format, x, relu);
            // A pair of 4 bits is a byte.
            let apart = if format == TinyFloat::E2m1 { 4 } else { 8 };
            pairs(f, inst, from, |upper, lower| code(upper) << apart | code(lower));
        }
        TinyCvt::From { format, relu } => {
            let apart = if format == TinyFloat::E2m1 { 4 } else { 8 };
            let to_half = |code: u32| {
                let value = format.value(code);
                let value = if relu && value.is_sign_negative() { 0.0 } else { value };
                u32::from(half::convert(value.into(), HalfFormat::F16, Round::Nearest, false))
            };
            f.map32(inst, |a| to_half(a >> apart) << 16 | to_half(a));
        }
        TinyCvt::ToPowers { from, up, finite } => {
            let power = |x: f32| power_of(x, up, finite);
            pairs(f, inst, from, |upper, lower| power(upper) << 8 | power(lower));
        }
        TinyCvt::FromPowers => f.map32(inst, |a| bf16_of(a >> 8) << 16 | bf16_of(a)),
    }
}

/// d = what `pack` makes of the upper and the lower one of a pair.
fn pairs(f: &mut Frame<'_>, inst: &Inst, from: PairOf, pack: impl Fn(f32, f32) -> u32) {
    let a = f.get32(inst.src[0]);
    let out = match from {
        PairOf::Singles => zip(a, f.get32(inst.src[1]), |a, b| pack(f32::from_bits(a), f32::from_bits(b))),
        PairOf::Halves(format) => {
            let single = |bits: u32| half::to_single(format, bits as u16, false);
            map(a, |a| pack(single(a >> 16), single(a)))
        }
    };
    f.put32(inst.dst[0], &out);
}

/// The code of the float nearest to a single.
fn code_of(format: TinyFloat, x: f32, relu: bool) -> u32 {
    let (exponent, fraction, bias) = format.shape();
    let largest = (1 << (exponent + fraction)) - 1;
    if x.is_nan() {
        return largest;
    }
    if relu && x.is_sign_negative() {
        return 0;
    }
    narrow::magnitude(x, fraction as i32, bias as i32, largest)
        | u32::from(x.is_sign_negative()) << (exponent + fraction)
}

/// The power of two of a single.
fn power_of(x: f32, up: bool, finite: bool) -> u32 {
    let magnitude = x.to_bits() & 0x7fff_ffff;
    let exponent = magnitude >> 23;
    // 2^-127 is a denormal of singles, and the least power.
    let between = magnitude & 0x007f_ffff != 0 && magnitude > 0x0040_0000 && exponent < 0xff;
    let power = exponent + u32::from(up && between);
    if finite && !x.is_nan() { power.min(0xfe) } else { power }
}

/// A power of two as `bf16`.
fn bf16_of(power: u32) -> u32 {
    match power & 0xff {
        0 => 0x0040,
        0xff => 0x7fff,
        power => power << 7,
    }
}
