//! Half precision: every instruction on `.f16`, `.bf16` and their pairs against a software float library, on random and on
//! awkward operands, and on values worked by hand (PTX ISA 9.7.4, 9.7.5, 9.7.9.21, 9.7.13.6).

use rustc_apfloat::ieee::{BFloat, Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

use crate::floats::{Operands, ROUNDINGS, Unit, canonical};
use crate::ptx_common::{Setup, run_text};

const ROUNDS: usize = 60;
const NEAREST: Round = Round::NearestTiesToEven;

/// A format under test: `F` is the library's.
struct Format {
    scalar: &'static str,
    pair: &'static str,
    fraction: u32,
}

const F16: Format = Format { scalar: "f16", pair: "f16x2", fraction: 10 };
const BF16: Format = Format { scalar: "bf16", pair: "bf16x2", fraction: 7 };

impl Format {
    fn infinity(&self) -> u64 {
        0x7fff >> self.fraction << self.fraction
    }

    fn is_nan(&self, bits: u64) -> bool {
        bits & 0x7fff > self.infinity()
    }

    fn flush(&self, bits: u64) -> u64 {
        if bits & self.infinity() == 0 { bits & 0x8000 } else { bits }
    }

    fn saturate(&self, bits: u64) -> u64 {
        let one = (self.infinity() / 2) >> self.fraction << self.fraction;
        if self.is_nan(bits) || bits & 0x8000 != 0 { 0 } else { bits.min(one) }
    }
}

fn relu(bits: u64) -> u64 {
    if bits & 0x8000 != 0 { 0 } else { bits }
}

fn of<F: Float>(bits: u64) -> F {
    F::from_bits(u128::from(bits))
}

/// Compares `{op}.{type}` on halves and, value by value, on pairs with `expected`.
fn check(format: &Format, op: &str, n: usize, expected: impl Fn(&[u64]) -> u64) {
    let names = ["a", "b", "c"][..n].join(", ");
    for (ty, width) in [(format.scalar, 16), (format.pair, 32)] {
        let instruction = format!("{op}.{ty} d, {names}");
        let mut unit = Unit::new(&instruction, &vec![width; n + 1]);
        let mut operands = Operands(u64::from(width) + u64::from(format.fraction));
        for _ in 0..ROUNDS {
            let mut halves = || operands.lanes(|o| o.float(16, format.fraction));
            let (low, high): (Vec<_>, Vec<_>) = (0..n).map(|_| (halves(), halves())).unzip();
            let sources: Vec<[u64; 32]> =
                low.iter().zip(&high).map(|(l, h)| std::array::from_fn(|i| l[i] | h[i] << 16)).collect();
            let found = unit.run(&sources);
            for lane in 0..32 {
                let inputs = |part: &[[u64; 32]]| part.iter().map(|s| s[lane]).collect::<Vec<u64>>();
                let mut wanted = expected(&inputs(&low));
                if width == 32 {
                    wanted |= expected(&inputs(&high)) << 16;
                }
                let given: Vec<u64> = sources.iter().map(|s| s[lane]).collect();
                assert_eq!(found[lane], wanted, "`{instruction}` of {given:#x?}: {:#x}, not {wanted:#x}", found[lane]);
            }
        }
    }
}

fn arithmetic<F: Float>(format: &Format) {
    let add = |v: &[u64]| canonical(of::<F>(v[0]).add_r(of(v[1]), NEAREST).value);
    let sub = |v: &[u64]| canonical(of::<F>(v[0]).sub_r(of(v[1]), NEAREST).value);
    let mul = |v: &[u64]| canonical(of::<F>(v[0]).mul_r(of(v[1]), NEAREST).value);
    let fma = |v: &[u64]| canonical(of::<F>(v[0]).mul_add_r(of(v[1]), of(v[2]), NEAREST).value);
    check(format, "add", 2, add);
    check(format, "add.rn", 2, add);
    check(format, "sub", 2, sub);
    check(format, "mul", 2, mul);
    check(format, "fma.rn", 3, fma);
    check(format, "fma.rn.relu", 3, |v| relu(fma(v)));
    check(format, "abs", 1, |v| v[0] & 0x7fff);
    check(format, "neg", 1, |v| v[0] ^ 0x8000);
    if format.scalar == "f16" {
        let flushed = |v: &[u64]| v.iter().map(|bits| format.flush(*bits)).collect::<Vec<u64>>();
        check(format, "add.ftz", 2, |v| format.flush(add(&flushed(v))));
        check(format, "mul.ftz.sat", 2, |v| format.saturate(format.flush(mul(&flushed(v)))));
        check(format, "sub.sat", 2, |v| format.saturate(sub(v)));
        check(format, "fma.rn.ftz", 3, |v| format.flush(fma(&flushed(v))));
        check(format, "fma.rn.sat", 3, |v| format.saturate(fma(v)));
        check(format, "fma.rn.ftz.relu", 3, |v| relu(format.flush(fma(&flushed(v)))));
        check(format, "abs.ftz", 1, |v| format.flush(v[0]) & 0x7fff);
        check(format, "neg.ftz", 1, |v| format.flush(v[0]) ^ 0x8000);
    }
}

#[test]
fn half_precision_arithmetic_is_rounded_once() {
    arithmetic::<Half>(&F16);
    arithmetic::<BFloat>(&BF16);
}

#[test]
fn sums_far_apart_are_rounded_once_where_a_double_cannot_hold_them() {
    let mut unit = Unit::new("fma.rn.bf16 d, a, b, c", &[16, 16, 16, 16]);
    // (1 + 2^-7) * (1 + 2^-1) = 1.51171875 is a tie between 1.5078125 (odd) and 1.515625. c = 2^-133 decides, far below
    // the 2^-52 that doubles near 1 are apart.
    for (c, wanted) in [(0x0000, 0x3fc2), (0x0001, 0x3fc2), (0x8001, 0x3fc1)] {
        assert_eq!(unit.run(&[[0x3f81; 32], [0x3fc0; 32], [c; 32]])[0], wanted, "c = {c:#x}");
    }
    let mut unit = Unit::new("fma.rn.f16 d, a, b, c", &[16, 16, 16, 16]);
    // 2048 + 1 is a tie between 2048 (even) and 2050; 2^-10 more is not.
    for (c, wanted) in [(0x3c00, 0x6800), (0x3c01, 0x6801)] {
        assert_eq!(unit.run(&[[0x6800; 32], [0x3c00; 32], [c; 32]])[0], wanted, "c = {c:#x}");
    }
}

fn extremes(format: &Format) {
    let key = |v: u64| (if v & 0x8000 != 0 { v ^ 0x7fff } else { v }) as u16 as i16;
    let pick = |v: &[u64], greater: bool, nan: bool| match (format.is_nan(v[0]), format.is_nan(v[1])) {
        (true, true) => 0x7fff,
        (true, false) | (false, true) if nan => 0x7fff,
        (true, false) => v[1],
        (false, true) => v[0],
        _ if greater => *v.iter().max_by_key(|v| key(**v)).unwrap(),
        _ => *v.iter().min_by_key(|v| key(**v)).unwrap(),
    };
    for (name, greater) in [("min", false), ("max", true)] {
        check(format, name, 2, |v| pick(v, greater, false));
        check(format, &format!("{name}.NaN"), 2, |v| pick(v, greater, true));
        check(format, &format!("{name}.NaN.xorsign.abs"), 2, |v| {
            let found = pick(&[v[0] & 0x7fff, v[1] & 0x7fff], greater, true);
            if format.is_nan(found) { found } else { found | (v[0] ^ v[1]) & 0x8000 }
        });
    }
}

#[test]
fn minimum_and_maximum_of_halves_order_the_zeros_and_know_nan() {
    extremes(&F16);
    extremes(&BF16);
    check(&F16, "min.ftz", 2, |v| {
        let [a, b] = [v[0], v[1]].map(|bits| F16.flush(bits));
        let key = |v: u64| (if v & 0x8000 != 0 { v ^ 0x7fff } else { v }) as u16 as i16;
        match (F16.is_nan(a), F16.is_nan(b)) {
            (true, true) => 0x7fff,
            (true, _) => b,
            (_, true) => a,
            _ if key(a) < key(b) => a,
            _ => b,
        }
    });
}

/// The library's order of two halves.
fn order<F: Float>(a: u64, b: u64) -> Option<std::cmp::Ordering> {
    of::<F>(a).partial_cmp(&of::<F>(b))
}

fn comparisons<F: Float>(format: &Format) {
    use std::cmp::Ordering::{Equal, Greater, Less};
    type Holds = fn(Option<std::cmp::Ordering>) -> bool;
    let table: [(&str, Holds); 14] = [
        ("eq", |o| o == Some(Equal)),
        ("ne", |o| o.is_some_and(|o| o != Equal)),
        ("lt", |o| o == Some(Less)),
        ("le", |o| o.is_some_and(|o| o != Greater)),
        ("gt", |o| o == Some(Greater)),
        ("ge", |o| o.is_some_and(|o| o != Less)),
        ("equ", |o| o.is_none_or(|o| o == Equal)),
        ("neu", |o| o != Some(Equal)),
        ("ltu", |o| o.is_none_or(|o| o == Less)),
        ("leu", |o| o != Some(Greater)),
        ("gtu", |o| o.is_none_or(|o| o == Greater)),
        ("geu", |o| o != Some(Less)),
        ("num", |o| o.is_some()),
        ("nan", |o| o.is_none()),
    ];
    let one = canonical(F::from_u128(1).value);
    for (name, holds) in table {
        let mut unit = Unit::new(&format!("setp.{name}.{} d, a, b", format.scalar), &[1, 16, 16]);
        let (scalar, pair) = (format.scalar, format.pair);
        let mut value = Unit::new(&format!("set.{name}.{scalar}.{scalar} d, a, b"), &[16, 16, 16]);
        let mut both = Unit::new(&format!("set.{name}.{pair}.{pair} d, a, b"), &[32, 32, 32]);
        let mut ones = Unit::new(&format!("set.{name}.u32.{pair} d, a, b"), &[32, 32, 32]);
        let mut operands = Operands(7);
        for _ in 0..ROUNDS / 4 {
            let a = operands.lanes(|o| o.float(16, format.fraction));
            // Equal operands and equal but for the sign, too.
            let b = std::array::from_fn(|i| match operands.bits() & 3 {
                0 => a[i],
                1 => a[i] ^ 0x8000,
                _ => operands.float(16, format.fraction),
            });
            let (p, d) = (unit.run(&[a, b]), value.run(&[a, b]));
            // Above: the operands the other way round.
            let crossed = |x: [u64; 32], y: [u64; 32]| std::array::from_fn(|i| x[i] | y[i] << 16);
            let sources = [crossed(a, b), crossed(b, a)];
            let (d2, u) = (both.run(&sources), ones.run(&sources));
            for i in 0..32 {
                let (low, high) = (holds(order::<F>(a[i], b[i])), holds(order::<F>(b[i], a[i])));
                let said = format!("{name}.{scalar} of {:#x}, {:#x}", a[i], b[i]);
                assert_eq!((p[i] == 1, d[i]), (low, if low { one } else { 0 }), "{said}");
                let both = |yes: u64| if low { yes } else { 0 } | if high { yes << 16 } else { 0 };
                assert_eq!((d2[i], u[i]), (both(one), both(0xffff)), "{said}");
            }
        }
    }
}

#[test]
fn comparisons_of_halves_order_numbers_and_know_unordered() {
    comparisons::<Half>(&F16);
    comparisons::<BFloat>(&BF16);
}

/// What a kernel with a first input word and a second leaves in the output word.
fn word(body: &str, inputs: [u32; 3]) -> u32 {
    let text = format!(
        ".entry k(.param .u64 i, .param .u64 o) {{ .reg .b64 in, out; .reg .b32 a, b, c, d; .reg .b16 x, y, z;
        .reg .pred p, q, s; ld.param.u64 in, [i]; ld.param.u64 out, [o];
        ld.global.b32 a, [in]; ld.global.b32 b, [in+4]; ld.global.b32 c, [in+8]; {body} st.global.b32 [out], d; ret; }}"
    );
    let input: Vec<u8> = inputs.iter().flat_map(|v| v.to_le_bytes()).collect();
    run_text(&text, &Setup { input: &input, ..Setup::default() }).u32s()[0]
}

#[test]
fn setp_of_a_pair_sets_a_predicate_a_half_and_combines_both() {
    // (1, 2) < (2, 1): below yes, above no.
    let body =
        |setp: &str| format!("setp.ne.u32 s, c, 0; {setp}; selp.b32 d, 1, 0, p; selp.b32 c, 2, 0, q; or.b32 d, d, c;");
    let pair = [0x4000_3c00, 0x3c00_4000, 0];
    assert_eq!(word(&body("setp.lt.f16x2 p|q, a, b"), pair), 1);
    assert_eq!(word(&body("setp.gt.f16x2 p|q, a, b"), pair), 2);
    assert_eq!(word(&body("setp.lt.or.f16x2 p|q, a, b, !s"), pair), 3);
    assert_eq!(word(&body("setp.lt.and.f16x2 p|q, a, b, s"), pair), 0);
    assert_eq!(word(&body("setp.lt.xor.bf16x2 p|q, a, b, !s"), pair), 2);
    // Denormals below, a denormal and a zero above: equal once flushed.
    let denormals = [0x8001_0001, 0x0000_0002, 0];
    assert_eq!(word(&body("setp.eq.f16x2 p|q, a, b"), denormals), 0);
    assert_eq!(word(&body("setp.eq.ftz.f16x2 p|q, a, b"), denormals), 3);
}

#[test]
fn set_of_halves_gives_the_masks_and_ones_that_the_isa_states() {
    let two = "mov.b32 {x, y}, a;";
    // a = (1, 2): lower 1 < upper 2.
    let a = [0x4000_3c00, 0, 0];
    assert_eq!(word(&format!("{two} set.lt.u32.f16 d, x, y;"), a), 0xffff_ffff);
    assert_eq!(word(&format!("{two} set.gt.s32.bf16 d, x, y;"), a), 0);
    assert_eq!(word(&format!("{two} set.lt.u16.f16 z, x, y; mov.b32 d, {{z, z}};"), a), 0xffff_ffff);
    assert_eq!(word(&format!("{two} set.lt.bf16.bf16 z, x, y; mov.b32 d, {{z, x}};"), a), 0x3c00_3f80);
    assert_eq!(word("set.lt.f16.s32 x, b, a; mov.b32 d, {x, x};", [1, 0xffff_ffff, 0]), 0x3c00_3c00);
    assert_eq!(word("set.lt.f16.f32 x, b, a; mov.b32 d, {x, x};", [0x3f80_0000, 0x4000_0000, 0]), 0);
    assert_eq!(word("setp.eq.u32 p, a, a; selp.b16 x, 7, 8, p; mov.b32 d, {x, x};", a), 0x0007_0007);
}

fn conversions<F>(format: &Format)
where
    F: Float + FloatConvert<Single> + FloatConvert<Double>,
    Single: FloatConvert<F>,
    Double: FloatConvert<F>,
{
    let scalar = format.scalar;
    // Out of every half, exactly: all 65536.
    let mut single = Unit::new(&format!("cvt.f32.{scalar} d, a"), &[32, 16]);
    let mut double = Unit::new(&format!("cvt.f64.{scalar} d, a"), &[64, 16]);
    for first in (0..=0xffff).step_by(32) {
        let a = std::array::from_fn(|i| first + i as u64);
        let found = (single.run(&[a]), double.run(&[a]));
        for (i, bits) in a.into_iter().enumerate() {
            let mut lost = false;
            let to: Single = of::<F>(bits).convert(&mut lost).value;
            let wide: Double = of::<F>(bits).convert(&mut lost).value;
            assert_eq!((found.0[i], found.1[i]), (canonical(to), canonical(wide)), "{scalar} {bits:#x}");
        }
    }
    // Into halves, from singles and doubles about them.
    for (name, round) in ROUNDINGS {
        for (from, bits, fraction) in [("f32", 32, 23), ("f64", 64, 52)] {
            let mut unit = Unit::new(&format!("cvt.{name}.{scalar}.{from} d, a"), &[16, bits]);
            let mut operands = Operands(3);
            for _ in 0..ROUNDS {
                let a = operands.lanes(|o| {
                    let random = o.float(bits, fraction);
                    // Ties, and the neighbours of ties, of the format.
                    let low = fraction - format.fraction;
                    match o.bits() & 3 {
                        0 => random >> (low - 1) << (low - 1),
                        1 => (random >> (low - 1) << (low - 1)).wrapping_add(1),
                        _ => random,
                    }
                });
                let found = unit.run(&[a]);
                for i in 0..32 {
                    let mut lost = false;
                    let wanted: F = if bits == 32 {
                        of::<Single>(a[i]).convert_r(round, &mut lost).value
                    } else {
                        of::<Double>(a[i]).convert_r(round, &mut lost).value
                    };
                    assert_eq!(found[i], canonical(wanted), "cvt.{name}.{scalar}.{from} of {:#x}", a[i]);
                }
            }
        }
    }
    // Integers, both ways.
    for (name, round) in ROUNDINGS {
        let mut to = Unit::new(&format!("cvt.{name}.{scalar}.s32 d, a"), &[16, 32]);
        let mut from = Unit::new(&format!("cvt.{name}i.s16.{scalar} d, a"), &[16, 16]);
        let mut operands = Operands(9);
        for _ in 0..ROUNDS {
            let (a, h) = (operands.lanes(Operands::integer), operands.lanes(|o| o.float(16, format.fraction)));
            let found = (to.run(&[a]), from.run(&[h]));
            for i in 0..32 {
                let wanted = canonical(F::from_i128_r(i128::from(a[i] as i32), round).value);
                let mut exact = false;
                let back = of::<F>(h[i]).to_i128_r(16, round, &mut exact).value as u64 & 0xffff;
                assert_eq!((found.0[i], found.1[i]), (wanted, back), "{name} {scalar} of {:#x}, {:#x}", a[i], h[i]);
            }
        }
    }
}

#[test]
fn halves_are_converted_from_and_to_everything() {
    conversions::<Half>(&F16);
    conversions::<BFloat>(&BF16);
}

#[test]
fn conversions_clamp_and_pack_as_the_isa_states() {
    let one = |instruction: &str, to: u32, from: u32, a: u64| Unit::new(instruction, &[to, from]).run(&[[a; 32]])[0];
    // -1 clamped, a NaN kept, 2 kept; .sat makes 2 one and the NaN zero.
    assert_eq!(one("cvt.rn.relu.f16.f32 d, a", 16, 32, 0xbf80_0000), 0);
    assert_eq!(one("cvt.rn.relu.f16.f32 d, a", 16, 32, 0xffc0_0000), 0x7fff);
    assert_eq!(one("cvt.rn.relu.bf16.f32 d, a", 16, 32, 0x4000_0000), 0x4000);
    assert_eq!(one("cvt.rn.sat.f16.f32 d, a", 16, 32, 0x4000_0000), 0x3c00);
    assert_eq!(one("cvt.rn.sat.f16.f32 d, a", 16, 32, 0x7fc0_0000), 0);
    // 3.5 to even, between the two formats, and to an integral value.
    assert_eq!(one("cvt.rni.f16.f16 d, a", 16, 16, 0x4300), 0x4400);
    assert_eq!(one("cvt.rn.bf16.f16 d, a", 16, 16, 0x3c01), 0x3f80);
    assert_eq!(one("cvt.rn.f16.bf16 d, a", 16, 16, 0x7f00), 0x7c00);
    // a = 1.5 is the upper half, b = -2 the lower.
    let pack = |instruction: &str, a: u64, b: u64| Unit::new(instruction, &[32; 3]).run(&[[a; 32], [b; 32]])[0];
    assert_eq!(pack("cvt.rn.f16x2.f32 d, a, b", 0x3fc0_0000, 0xc000_0000), 0x3e00_c000);
    assert_eq!(pack("cvt.rn.relu.f16x2.f32 d, a, b", 0x3fc0_0000, 0xc000_0000), 0x3e00_0000);
    // 1 + 3 * 2^-9: between 0x3f80 and 0x3f81, nearer to the latter.
    assert_eq!(pack("cvt.rn.bf16x2.f32 d, a, b", 0x3f80_c000, 0x3f80_c000), 0x3f81_3f81);
    assert_eq!(pack("cvt.rz.bf16x2.f32 d, a, b", 0x3f80_c000, 0xbf80_c000), 0x3f80_bf80);
}

#[test]
fn mixed_precision_rounds_the_exact_result_once_to_single() {
    for (name, round) in ROUNDINGS {
        let mut add = Unit::new(&format!("add.{name}.f32.f16 d, a, b"), &[32, 16, 32]);
        let mut sub = Unit::new(&format!("sub.{name}.f32.bf16 d, a, b"), &[32, 16, 32]);
        let mut fma = Unit::new(&format!("fma.{name}.f32.bf16 d, a, b, c"), &[32, 16, 16, 32]);
        let mut operands = Operands(5);
        for _ in 0..ROUNDS {
            let (a, b) = (operands.lanes(|o| o.float(16, 10)), operands.lanes(|o| o.float(16, 7)));
            let c = operands.lanes(|o| o.float(32, 23));
            let found = (add.run(&[a, c]), sub.run(&[b, c]), fma.run(&[b, a, c]));
            for i in 0..32 {
                let mut lost = false;
                let half: Single = of::<Half>(a[i]).convert(&mut lost).value;
                let [x, y]: [Single; 2] = [b[i], a[i]].map(|v| of::<BFloat>(v).convert(&mut lost).value);
                let z = of::<Single>(c[i]);
                let wanted = [half.add_r(z, round), x.sub_r(z, round), x.mul_add_r(y, z, round)];
                let wanted = wanted.map(|v| canonical(v.value));
                assert_eq!([found.0[i], found.1[i], found.2[i]], wanted, "{name}: {:#x} {:#x} {:#x}", a[i], b[i], c[i]);
            }
        }
    }
    let mut sat = Unit::new("fma.rn.sat.f32.f16 d, a, b, c", &[32, 16, 16, 32]);
    assert_eq!(sat.run(&[[0x4000; 32], [0x4000; 32], [0; 32]])[0], 0x3f80_0000);
}

/// The largest error of an approximation over every half for which `counts` holds.
fn worst(format: &Format, op: &str, to: impl Fn(u64) -> f64, error: impl Fn(f64, f64) -> Option<f64>) -> f64 {
    let mut unit = Unit::new(&format!("{op}.{} d, a", format.scalar), &[16, 16]);
    let mut most = 0f64;
    for first in (0..=0xffff).step_by(32) {
        let a = std::array::from_fn(|i| first + i as u64);
        let found = unit.run(&[a]);
        for i in 0..32 {
            if let Some(e) = error(to(a[i]), to(found[i])) {
                most = most.max(e);
            }
        }
    }
    most
}

#[test]
fn approximations_of_every_half_stay_within_the_errors_of_the_isa() {
    fn value<F: Float + FloatConvert<Double>>(bits: u64) -> f64 {
        let wide: Double = of::<F>(bits).convert(&mut false).value;
        f64::from_bits(wide.to_bits() as u64)
    }
    let (half, brain) = (value::<Half>, value::<BFloat>);
    // Where the result is a normal number.
    let relative = |least: f64, most: f64| {
        move |x: f64, r: f64| (x >= least && x <= most).then(|| (r - x.exp2()).abs() / x.exp2())
    };
    assert!(worst(&F16, "ex2.approx", half, relative(-14.0, 15.99)) < 2f64.powf(-9.9));
    assert!(worst(&BF16, "ex2.approx.ftz", brain, relative(-126.0, 127.9)) < 2f64.powf(-7.0));
    let absolute = |x: f64, r: f64| x.is_finite().then(|| (r - x.tanh()).abs());
    assert!(worst(&F16, "tanh.approx", half, absolute) < 2f64.powf(-10.987));
    assert!(worst(&BF16, "tanh.approx", brain, absolute) < 2f64.powf(-8.0));
    let mut ex2 = Unit::new("ex2.approx.f16 d, a", &[16, 16]);
    // -inf, -0, +inf, a NaN, 10, -24: the least denormal.
    for (a, wanted) in
        [(0xfc00, 0), (0x8000, 0x3c00), (0x7c00, 0x7c00), (0xfe00, 0x7fff), (0x4900, 0x6400), (0xce00, 1)]
    {
        assert_eq!(ex2.run(&[[a; 32]])[0], wanted, "{a:#x}");
    }
    let mut ex2 = Unit::new("ex2.approx.ftz.bf16x2 d, a", &[32, 32]);
    // 2^-130 is denormal and flushed; 2^1 beside it.
    assert_eq!(ex2.run(&[[0xc302_3f80; 32]])[0], 0x0000_4000);
}

#[test]
fn atomic_additions_of_halves_add_each_value_and_return_the_old_ones() {
    let text = |ty: &str, bits: u32| {
        format!(
            ".entry k(.param .u64 i, .param .u64 o) {{ .reg .b64 in, out, at; .reg .b32 t; .reg .b{bits} a, d;
            ld.param.u64 in, [i]; ld.param.u64 out, [o]; mov.u32 t, %tid.x; ld.global.b{bits} a, [in];
            red.global.add.noftz.{ty} [out], a; atom.global.add.noftz.{ty} d, [out], a;
            mul.wide.u32 at, t, 4; add.u64 out, out, at; st.global.b{bits} [out+8], d; ret; }}"
        )
    };
    let run = |ty: &str, bits: u32, a: u32, threads: u32| {
        let input = a.to_le_bytes();
        let setup = Setup { input: &input, output: 16, shape: (1, threads), ..Setup::default() };
        run_text(&text(ty, bits), &setup).u32s()
    };
    // Two threads add (1, 0.5) twice each; 16 bits beside a half stay as they are.
    assert_eq!(run("f16x2", 32, 0x3800_3c00, 2), [0x4000_4400, 0, 0x3c00_4000, 0x3e00_4200]);
    assert_eq!(run("f16", 16, 0x1234_3c00, 2), [0x4400, 0, 0x4000, 0x4200]);
    // bf16: 256 + 1 is a tie, and stays 256.
    assert_eq!(run("bf16", 16, 0x4380, 1), [0x4400, 0, 0x4380, 0]);
    assert_eq!(run("bf16x2", 32, 0xbf80_3f80, 2), [0xc080_4080, 0, 0xc000_4000, 0xc040_4040]);
}
