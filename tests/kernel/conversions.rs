//! Conversions between integers and floats of all widths, one line a case (`cases.rs` says how to read one). Meaning:
//! PTX ISA 8.x, section 9.7.9.21; of floats of 8 bits and fewer, the definitions of their formats.

use crate::cases::{M1, MIN32, MIN64, W, check, d, f};

#[test]
fn conversions_between_integers() {
    check(
        "32 = 32",
        &[
            ("cvt.s32.s8 d, a", &[0x1ff], W),
            ("cvt.u32.u8 d, a", &[0x1ff], 0xff),
            ("cvt.s8.s32 d, a", &[0x180], 0xffff_ff80),
            ("cvt.sat.s8.s32 d, a", &[0x180], 127),
            ("cvt.sat.u8.s32 d, a", &[W], 0),
            ("cvt.sat.u32.s32 d, a", &[W], 0),
            ("cvt.sat.s32.u32 d, a", &[W], 0x7fff_ffff),
            ("cvt.u32.s32 d, a", &[W], W),
        ],
    );
    check(
        "64 = 32",
        &[("cvt.s64.s32 d, a", &[W], M1), ("cvt.u64.u32 d, a", &[W], W), ("cvt.s64.s8 d, a", &[0x80], M1 - 127)],
    );
    check(
        "32 = 64",
        &[("cvt.u32.u64 d, a", &[0x1_2345_6789], 0x2345_6789), ("cvt.sat.s32.s64 d, a", &[1 << 40], 0x7fff_ffff)],
    );
    check("16 = 32", &[("cvt.u16.u32 d, a", &[0x1_2345], 0x2345), ("cvt.sat.u16.u32 d, a", &[0x1_2345], 0xffff)]);
    check("32 = 16", &[("cvt.u32.u16 d, a", &[0xffff], 0xffff), ("cvt.s32.s16 d, a", &[0xffff], W)]);
    check("64 = 16", &[("cvt.u64.u16 d, a", &[0xffff], 0xffff), ("cvt.s64.s16 d, a", &[0xffff], M1)]);
    check("16 = 16", &[("cvt.s16.s8 d, a", &[0x80], 0xff80), ("cvt.u16.u8 d, a", &[0x1ff], 0xff)]);
}

#[test]
fn conversions_with_floats() {
    check(
        "32 = 32",
        &[
            ("cvt.rn.f32.s32 d, a", &[W], f(-1.0)),
            ("cvt.rn.f32.u32 d, a", &[W], f(4_294_967_296.0)),
            ("cvt.rz.f32.u32 d, a", &[W], f(4_294_967_296.0) - 1),
            ("cvt.rp.f32.s32 d, a", &[16_777_217], f(16_777_218.0)),
            ("cvt.rm.f32.s32 d, a", &[16_777_219], f(16_777_218.0)),
            ("cvt.rzi.s32.f32 d, a", &[f(-1.7)], W),
            ("cvt.rni.s32.f32 d, a", &[f(2.5)], 2),
            ("cvt.rmi.s32.f32 d, a", &[f(-1.2)], 0xffff_fffe),
            ("cvt.rpi.s32.f32 d, a", &[f(1.2)], 2),
            ("cvt.rzi.u32.f32 d, a", &[f(-5.0)], 0),
            ("cvt.rzi.u32.f32 d, a", &[f(1e20)], W),
            ("cvt.rzi.s32.f32 d, a", &[f(f32::NAN)], 0),
            ("cvt.rzi.s32.f32 d, a", &[f(-1e20)], MIN32),
            ("cvt.rzi.ftz.u32.f32 d, a", &[1], 0),
            ("cvt.rpi.u32.f32 d, a", &[1], 1),
            ("cvt.rpi.ftz.u32.f32 d, a", &[1], 0),
            ("cvt.rni.f32.f32 d, a", &[f(2.5)], f(2.0)),
            ("cvt.rmi.f32.f32 d, a", &[f(-2.5)], f(-3.0)),
            ("cvt.rpi.f32.f32 d, a", &[f(-0.5)], f(-0.0)),
            ("cvt.rzi.f32.f32 d, a", &[f(-2.5)], f(-2.0)),
            ("cvt.sat.f32.f32 d, a", &[f(1.5)], f(1.0)),
            ("cvt.ftz.sat.f32.f32 d, a", &[f(f32::NAN)], 0),
            ("cvt.ftz.f32.f32 d, a", &[0x8000_0001], MIN32),
            ("cvt.rzi.s8.f32 d, a", &[f(300.0)], 127),
        ],
    );
    check(
        "64 = 32",
        &[
            ("cvt.f64.f32 d, a", &[f(1.5)], d(1.5)),
            ("cvt.ftz.f64.f32 d, a", &[1], 0),
            ("cvt.rn.f64.s32 d, a", &[W], d(-1.0)),
            ("cvt.rn.f64.u32 d, a", &[W], d(4_294_967_295.0)),
            ("cvt.rzi.s64.f32 d, a", &[f(-1e10)], (-10_000_000_000i64) as u64),
            ("cvt.rzi.u64.f32 d, a", &[f(f32::INFINITY)], M1),
        ],
    );
    check(
        "32 = 64",
        &[
            ("cvt.rn.f32.f64 d, a", &[d(0.1)], f(0.1)),
            ("cvt.rz.f32.f64 d, a", &[d(0.1)], f(0.1) - 1),
            ("cvt.rp.f32.f64 d, a", &[d(1e300)], f(f32::INFINITY)),
            ("cvt.rm.f32.f64 d, a", &[d(1e300)], f(f32::MAX)),
            ("cvt.rn.ftz.f32.f64 d, a", &[d(1e-40)], 0),
            ("cvt.rzi.s32.f64 d, a", &[d(-7.9)], 0xffff_fff9),
            ("cvt.rni.u32.f64 d, a", &[d(3.5)], 4),
            ("cvt.rn.f32.s64 d, a", &[M1], f(-1.0)),
            ("cvt.rn.f32.u64 d, a", &[M1], f(18_446_744_073_709_551_616.0)),
        ],
    );
    check(
        "64 = 64",
        &[
            ("cvt.rn.f64.s64 d, a", &[M1], d(-1.0)),
            ("cvt.rz.f64.u64 d, a", &[M1], d(18_446_744_073_709_551_616.0) - 1),
            ("cvt.rmi.f64.f64 d, a", &[d(-0.5)], d(-1.0)),
            ("cvt.sat.f64.f64 d, a", &[d(-0.5)], 0),
            ("cvt.rzi.u64.f64 d, a", &[d(1e30)], M1),
            ("cvt.rzi.s64.f64 d, a", &[d(-1e30)], MIN64),
        ],
    );
    check("16 = 32", &[("cvt.rn.f16.f32 d, a", &[f(1.0)], 0x3c00), ("cvt.rz.f16.f32 d, a", &[f(1e6)], 0x7bff)]);
    check("32 = 16", &[("cvt.f32.f16 d, a", &[0xc000], f(-2.0)), ("cvt.rn.f32.u16 d, a", &[0xffff], f(65535.0))]);
}

/// A finite 8-bit float by the definition of its format, for an independent table.
fn value_of_fp8(bits: u32, exponent_bits: u32) -> Option<f64> {
    let fraction_bits = 7 - exponent_bits;
    let bias = (1 << (exponent_bits - 1)) - 1;
    let (exponent, fraction) = ((bits & 0x7f) >> fraction_bits, bits & ((1 << fraction_bits) - 1));
    let special = match exponent_bits {
        4 => bits & 0x7f == 0x7f,
        _ => exponent == 31,
    };
    let part = f64::from(fraction) / f64::from(1 << fraction_bits);
    let magnitude = match exponent {
        0 => part * 2f64.powi(1 - bias),
        _ => (1.0 + part) * 2f64.powi(exponent as i32 - bias),
    };
    (!special).then_some(if bits & 0x80 != 0 { -magnitude } else { magnitude })
}

/// Every 8-bit float goes to halves exactly and comes back; what lies between two of them becomes the nearer one, and
/// the even one from the middle.
#[test]
fn eight_bit_floats_convert_by_their_tables() {
    for (name, exponent_bits, largest) in [("e4m3x2", 4, 0x7e), ("e5m2x2", 5, 0x7b)] {
        for bits in 0..256u32 {
            let Some(value) = value_of_fp8(bits, exponent_bits) else { continue };
            let single = f64::from(value as f32);
            assert_eq!(single, value);
            // A half holds each of them: compared by way of a single.
            let back = format!("cvt.rn.f16x2.{name} r1, a; mov.b32 {{h1, h2}}, r1; cvt.f32.f16 r2, h1; mov.b32 d, r2");
            check("32 = 16", &[(&back, &[u64::from(bits | 0x3800)], f(value as f32))]);
            let to = format!("cvt.rn.satfinite.{name}.f32 d, a, b");
            check("16 = 32, 32", &[(&to, &[f(value as f32), f(-value as f32)], u64::from(bits << 8 | bits ^ 0x80))]);
            if bits & 0x7f < largest && bits & 0x80 == 0 {
                let next = value_of_fp8(bits + 1, exponent_bits).unwrap();
                let middle = ((value + next) / 2.0) as f32;
                let even = if bits & 1 == 0 { bits } else { bits + 1 };
                let above = f32::from_bits(middle.to_bits() + 1);
                check("16 = 32, 32", &[(&to, &[f(middle), f(-above)], u64::from(even << 8 | (bits + 1) | 0x80))]);
            }
        }
        let to = format!("cvt.rn.satfinite.{name}.f32 d, a, b");
        let relu = format!("cvt.rn.satfinite.relu.{name}.f32 d, a, b");
        let halves = format!("cvt.rn.satfinite.{name}.f16x2 d, a");
        check("16 = 32, 32", &[(&to, &[f(1e9), f(f32::NEG_INFINITY)], u64::from(largest << 8 | largest | 0x80))]);
        check("16 = 32, 32", &[(&to, &[f(f32::NAN), f(-0.0)], 0x7f80), (&relu, &[f(-1.0), f(-0.0)], 0)]);
        check("16 = 32", &[(&halves, &[0xfbff_fc00], u64::from(largest << 8 | largest | 0x8080))]);
    }
}

/// A float of fewer than 8 bits by the definition of its format (OCP Microscaling Formats, 5.3).
fn value_of_tiny(bits: u32, exponent_bits: u32, fraction_bits: u32) -> f64 {
    let bias = [1, 1, 1, 3][exponent_bits as usize];
    let (exponent, fraction) = (bits >> fraction_bits & ((1 << exponent_bits) - 1), bits & ((1 << fraction_bits) - 1));
    let part = f64::from(fraction) / f64::from(1 << fraction_bits);
    let magnitude = match exponent {
        0 => part * 2f64.powi(1 - bias),
        _ => (1.0 + part) * 2f64.powi(exponent as i32 - bias),
    };
    if bits >> (exponent_bits + fraction_bits) & 1 == 1 { -magnitude } else { magnitude }
}

/// As of 8-bit floats: each goes to halves and comes back, and what lies between becomes the nearer one. What is too large,
/// and NaN, become the largest number.
#[test]
fn floats_of_6_and_4_bits_convert_by_their_tables() {
    for (name, exponent_bits, fraction_bits) in [("e2m3x2", 2, 3), ("e3m2x2", 3, 2), ("e2m1x2", 2, 1)] {
        let bits = exponent_bits + fraction_bits;
        let (sign, largest) = (1 << bits, (1 << bits) - 1);
        // A pair of 4 bits is a byte.
        let apart = if bits == 3 { 4 } else { 8 };
        let pair = |upper: u32, lower: u32| u64::from(upper << apart | lower);
        let types = if bits == 3 { "8 = 32, 32" } else { "16 = 32, 32" };
        let to = format!("cvt.rn.satfinite.{name}.f32 d, a, b");
        let value = |code: u32| value_of_tiny(code, exponent_bits, fraction_bits) as f32;
        for code in 0..=largest {
            let from = if bits == 3 { "8" } else { "16" };
            let back = format!("cvt.rn.f16x2.{name} r1, a; mov.b32 {{h1, h2}}, r1; cvt.f32.f16 r2, h1; mov.b32 d, r2");
            let upper = back.replace("f16 r2, h1", "f16 r2, h2");
            check(
                &format!("32 = {from}"),
                &[(&back, &[pair(1, code)], f(value(code))), (&upper, &[pair(code | sign, 1)], f(-value(code)))],
            );
            check(types, &[(&to, &[f(value(code)), f(-value(code))], pair(code, code | sign))]);
            if code < largest {
                let middle = (value(code) + value(code + 1)) / 2.0;
                let above = f32::from_bits(middle.to_bits() + 1);
                check(types, &[(&to, &[f(middle), f(-above)], pair(code + code % 2, (code + 1) | sign))]);
            }
        }
        let relu = format!("cvt.rn.satfinite.relu.{name}.f32 d, a, b");
        let halves = format!("cvt.rn.satfinite.{name}.f16x2 d, a");
        let bfloats = format!("cvt.rn.satfinite.{name}.bf16x2 d, a");
        let one = (0..=largest).find(|&code| value(code) == 1.0).unwrap();
        check(types, &[(&to, &[f(1e9), f(f32::NEG_INFINITY)], pair(largest, largest | sign))]);
        check(
            types,
            &[(&to, &[f(f32::NAN), f(-f32::NAN)], pair(largest, largest)), (&relu, &[f(-1.0), f(1.0)], pair(0, one))],
        );
        let types = if bits == 3 { "8 = 32" } else { "16 = 32" };
        check(
            types,
            &[
                (&halves, &[0x3c00_fc00], pair(one, largest | sign)),
                (&bfloats, &[0xff80_3f80], pair(largest | sign, one)),
            ],
        );
    }
}

/// `ue8m0`: powers of two by their exponents, without sign.
#[test]
fn scale_factors_convert_to_powers_of_two() {
    let [least, most] = [f32::from_bits(0x0040_0000), f32::from_bits(0x7f00_0000)];
    for (x, down, up) in [
        (1.0, 127, 127),
        (1.5, 127, 128),
        (-1.5, 127, 128),
        (0.75, 126, 127),
        (0.0, 0, 0),
        (f32::from_bits(1), 0, 0),
        (least, 0, 0),
        (f32::from_bits(0x0040_0001), 0, 1),
        (f32::from_bits(0x0080_0000), 1, 1),
        (most, 254, 254),
        (f32::MAX, 254, 255),
        (f32::INFINITY, 255, 255),
        (f32::NAN, 255, 255),
    ] {
        let finite = |power: u64| if x.is_nan() { power } else { power.min(254) };
        for (mode, power) in [("rz", down), ("rp", up), ("rz.satfinite", finite(down)), ("rp.satfinite", finite(up))] {
            let to = format!("cvt.{mode}.ue8m0x2.f32 d, a, b");
            check("16 = 32, 32", &[(&to, &[f(x), f(4.0)], power << 8 | 129), (&to, &[f(0.5), f(x)], 126 << 8 | power)]);
        }
    }
    check(
        "16 = 32",
        &[
            ("cvt.rz.ue8m0x2.bf16x2 d, a", &[0x3fc0_bf80], 127 << 8 | 127),
            ("cvt.rp.ue8m0x2.bf16x2 d, a", &[0x3fc0_0041], 128 << 8 | 1),
        ],
    );
    check(
        "32 = 16",
        &[
            ("cvt.rn.bf16x2.ue8m0x2 d, a", &[127 << 8 | 254], 0x3f80_7f00),
            ("cvt.rn.bf16x2.ue8m0x2 d, a", &[255 << 8], 0x7fff_0040),
        ],
    );
}

#[test]
fn singles_round_to_tf32() {
    check(
        "32 = 32",
        &[
            ("cvt.rna.tf32.f32 d, a", &[0x3f80_0fff], 0x3f80_0000),
            ("cvt.rna.tf32.f32 d, a", &[0x3f80_1000], 0x3f80_2000),
            ("cvt.rna.tf32.f32 d, a", &[0xbf80_1000], 0xbf80_2000),
            ("cvt.rna.tf32.f32 d, a", &[0x3fff_f000], 0x4000_0000),
            ("cvt.rna.tf32.f32 d, a", &[0x7f7f_ffff], 0x7f80_0000),
            ("cvt.rna.satfinite.tf32.f32 d, a", &[0x7f7f_ffff], 0x7f7f_e000),
            ("cvt.rn.tf32.f32 d, a", &[0x3f80_1000], 0x3f80_0000),
            ("cvt.rn.tf32.f32 d, a", &[0x3f80_3000], 0x3f80_4000),
            ("cvt.rz.tf32.f32 d, a", &[0xbf80_3fff], 0xbf80_2000),
            ("cvt.rn.relu.tf32.f32 d, a", &[0xbf80_3fff], 0),
        ],
    );
}

#[test]
fn halves_stay_finite() {
    check(
        "32 = 32, 32",
        &[
            ("cvt.rn.satfinite.f16x2.f32 d, a, b", &[f(1e9), f(f32::NEG_INFINITY)], 0x7bff_fbff),
            ("cvt.rn.satfinite.bf16x2.f32 d, a, b", &[f(f32::MAX), f(1.0)], 0x7f7f_3f80),
            ("cvt.rn.relu.satfinite.f16x2.f32 d, a, b", &[f(-1e9), f(65_520.0)], 0x7bff),
        ],
    );
    check("16 = 32", &[("cvt.rn.satfinite.f16.f32 d, a", &[f(65_520.0)], 0x7bff)]);
}
