//! IEEE exactness: every rounding float instruction and conversion against a software float library, on random and on
//! awkward operands; the approximations against the errors that the ISA states (PTX ISA 8.x, 9.7.3 and 9.7.9.21).

use std::sync::Arc;

use durawarp::kernel::ir::{Module, Op};
use durawarp::kernel::launch::{Binding, Launch};
use durawarp::kernel::memory::AddressMap;
use durawarp::kernel::ptx;
use durawarp::kernel::warp::Warp;
use rustc_apfloat::ieee::{Double, Half, Quad, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

pub(crate) const ROUNDINGS: [(&str, Round); 4] = [
    ("rn", Round::NearestTiesToEven),
    ("rz", Round::TowardZero),
    ("rm", Round::TowardNegative),
    ("rp", Round::TowardPositive),
];

/// One instruction on a warp of 32 lanes whose registers the test sets.
pub(crate) struct Unit {
    launch: Launch,
    warp: Warp,
    widths: Vec<u32>,
}

impl Unit {
    /// `widths`: of the destination `d` and the sources `a`, `b`, `c`; 1 is a predicate.
    pub(crate) fn new(instruction: &str, widths: &[u32]) -> Unit {
        let declared: String = ["d", "a", "b", "c"]
            .iter()
            .zip(widths)
            .map(
                |(name, bits)| {
                    if *bits == 1 { format!(".reg .pred {name}; ") } else { format!(".reg .b{bits} {name}; ") }
                },
            )
            .collect();
        let text = format!(".version 8.0 .entry k() {{ {declared} {instruction}; ret; }}");
        let module: Module = ptx::parse("unit.ptx", &text).unwrap_or_else(|e| panic!("{e}"));
        let binding = Binding {
            grid: [1; 3],
            block: [32, 1, 1],
            dynamic_shared: 0,
            params: &[],
            globals: &[],
            const_bank: None,
            textures: &[],
            surfaces: &[],
            registers: None,
            cluster: None,
            addresses: Arc::new(AddressMap::default()),
        };
        let launch = Launch::bind(&module, &module.kernels[0], &binding).unwrap();
        let mut warp = Warp::default();
        warp.start(&launch, 0, 0, 32);
        Unit { launch, warp, widths: widths.to_vec() }
    }

    pub(crate) fn run(&mut self, sources: &[[u64; 32]]) -> [u64; 32] {
        let inst = self.launch.kernel.code[0];
        assert!(matches!(inst.op, Op::Alu(_)));
        for (i, values) in sources.iter().enumerate() {
            let (slot, registers) = (usize::from(inst.src[i]), &mut self.warp.groups_mut()[0]);
            match self.widths[i + 1] {
                64 => registers.r64[slot] = *values,
                _ => registers.r32[slot] = values.map(|v| v as u32),
            }
        }
        self.warp.alu(&inst, &self.launch, u64::from(u32::MAX));
        let (slot, registers) = (usize::from(inst.dst[0]), &self.warp.groups_mut()[0]);
        match self.widths[0] {
            64 => registers.r64[slot],
            1 => std::array::from_fn(|i| u64::from(registers.predicates[slot] >> i & 1)),
            16 => registers.r32[slot].map(|v| u64::from(v & 0xffff)),
            _ => registers.r32[slot].map(u64::from),
        }
    }
}

/// Operands: random bits, and values near the ends and corners of a format.
pub(crate) struct Operands(pub(crate) u64);

impl Operands {
    pub(crate) fn bits(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A float of `bits` bits with `fraction` fraction bits.
    pub(crate) fn float(&mut self, bits: u32, fraction: u32) -> u64 {
        let random = self.bits();
        let keep = u64::MAX >> (64 - bits);
        let exponents = (1u64 << (bits - fraction - 1)) - 1;
        let of = |sign: u64, exponent: u64, f: u64| {
            (sign & 1) << (bits - 1) | exponent << fraction | f & ((1 << fraction) - 1)
        };
        let few = random >> 40 & 7;
        let value = match random & 15 {
            0 => of(random >> 8, 0, few),              // zeros and the least denormals
            1 => of(random >> 8, exponents, few & 1),  // infinities and NaNs
            2 => of(random >> 8, exponents - 1, !few), // the largest numbers
            3 => of(random >> 8, 1, few),              // the least normal ones
            4 => of(random >> 8, 0, random >> 16),     // denormals
            5 | 6 => of(random >> 8, exponents / 2 + few, random >> 30 << (fraction - 4)), // short fractions
            7..=9 => of(random >> 8, exponents / 2 - 4 + few, random >> 12), // near one
            10 => of(random >> 8, exponents / 2, if few & 1 == 0 { few } else { !few }), // one and its neighbours
            11 => of(random >> 8, exponents / 2 + fraction as u64 - 2 + few, random >> 12), // about the last integers
            _ => random,
        };
        value & keep
    }

    pub(crate) fn integer(&mut self) -> u64 {
        let random = self.bits();
        match random & 7 {
            0 => random >> 60,
            1 => u64::MAX - (random >> 60),
            2 => (1u64 << 63).wrapping_add(random >> 60).wrapping_sub(4),
            3 => (1u64 << (random >> 58)).wrapping_add(random >> 20 & 3).wrapping_sub(1),
            4 => (1u64 << 31).wrapping_add(random >> 60).wrapping_sub(4),
            _ => random >> (random >> 10 & 63),
        }
    }

    pub(crate) fn lanes(&mut self, mut f: impl FnMut(&mut Self) -> u64) -> [u64; 32] {
        std::array::from_fn(|_| f(self))
    }
}

const ROUNDS: usize = 60;

/// Compares an instruction on `n` float sources of `bits` bits with `expected`.
fn check(instruction: &str, bits: u32, n: usize, expected: impl Fn(&[u64]) -> u64) {
    let widths = vec![bits; n + 1];
    let mut unit = Unit::new(instruction, &widths);
    let mut operands = Operands(u64::from(bits));
    let fraction = if bits == 64 { 52 } else { 23 };
    for _ in 0..ROUNDS {
        let sources: Vec<[u64; 32]> = (0..n).map(|_| operands.lanes(|o| o.float(bits, fraction))).collect();
        let found = unit.run(&sources);
        for lane in 0..32 {
            let inputs: Vec<u64> = sources.iter().map(|s| s[lane]).collect();
            let wanted = expected(&inputs);
            assert_eq!(found[lane], wanted, "`{instruction}` of {inputs:#x?}: {:#x}, not {wanted:#x}", found[lane]);
        }
    }
}

/// The NaN that arithmetic gives: 0x7fffffff, or the default NaN of the host in double precision.
pub(crate) fn canonical<F: Float>(x: F) -> u64 {
    match (x.is_nan(), F::BITS) {
        (true, 16) => 0x7fff,
        (true, 32) => 0x7fff_ffff,
        (true, _) => 0xfff8 << 48,
        _ => x.to_bits() as u64,
    }
}

fn flush(bits: u64) -> u64 {
    if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}

fn saturate(bits: u64) -> u64 {
    let x = f32::from_bits(bits as u32);
    if x.is_nan() || x <= 0.0 { 0 } else { u64::from(x.min(1.0).to_bits()) }
}

fn arithmetic<F: Float>(suffix: &str, bits: u32) {
    let float = |bits: &u64| F::from_bits(u128::from(*bits));
    for (name, round) in ROUNDINGS {
        let op = |op: &str, sources: &str| format!("{op}.{name}.{suffix} d, {sources}");
        check(&op("add", "a, b"), bits, 2, |v| canonical(float(&v[0]).add_r(float(&v[1]), round).value));
        check(&op("sub", "a, b"), bits, 2, |v| canonical(float(&v[0]).sub_r(float(&v[1]), round).value));
        check(&op("mul", "a, b"), bits, 2, |v| canonical(float(&v[0]).mul_r(float(&v[1]), round).value));
        check(&op("div", "a, b"), bits, 2, |v| canonical(float(&v[0]).div_r(float(&v[1]), round).value));
        check(&op("rcp", "a"), bits, 1, |v| canonical(F::from_u128(1).value.div_r(float(&v[0]), round).value));
        check(&op("fma", "a, b, c"), bits, 3, |v| {
            canonical(float(&v[0]).mul_add_r(float(&v[1]), float(&v[2]), round).value)
        });
    }
}

#[test]
fn single_precision_arithmetic_is_correctly_rounded_in_every_direction() {
    arithmetic::<Single>("f32", 32);
}

#[test]
fn double_precision_arithmetic_is_correctly_rounded_in_every_direction() {
    arithmetic::<Double>("f64", 64);
}

/// The root rounded in a direction, found from the nearest one by exact squares.
fn root<F: Float + FloatConvert<Quad>>(a: F, nearest: F, round: Round) -> F {
    if nearest.is_nan() || nearest.is_infinite() || nearest.is_zero() {
        return nearest;
    }
    let mut lost = false;
    let wide: Quad = a.convert(&mut lost).value;
    // Twice 53 bits fit into 113, so squares are exact.
    let square = |x: F| {
        let mut lost = false;
        let x: Quad = x.convert(&mut lost).value;
        (x * x).value
    };
    let step = |x: F, up: bool| F::from_bits(if up { x.to_bits() + 1 } else { x.to_bits() - 1 });
    match round {
        Round::NearestTiesToEven => nearest,
        Round::TowardPositive if square(nearest) < wide => step(nearest, true),
        Round::TowardPositive => nearest,
        _ if square(nearest) > wide => step(nearest, false),
        _ => nearest,
    }
}

#[test]
fn square_roots_are_correctly_rounded_in_every_direction() {
    for (name, round) in ROUNDINGS {
        check(&format!("sqrt.{name}.f32 d, a"), 32, 1, |v| {
            let a = f32::from_bits(v[0] as u32);
            let of = |x: f32| Single::from_bits(u128::from(x.to_bits()));
            canonical(root(of(a), of(a.sqrt()), round))
        });
        check(&format!("sqrt.{name}.f64 d, a"), 64, 1, |v| {
            let a = f64::from_bits(v[0]);
            let of = |x: f64| Double::from_bits(u128::from(x.to_bits()));
            canonical(root(of(a), of(a.sqrt()), round))
        });
    }
}

#[test]
fn ftz_flushes_operands_and_results_and_sat_clamps() {
    let single = |bits: u64| Single::from_bits(u128::from(flush(bits)));
    for (name, round) in ROUNDINGS {
        check(&format!("add.{name}.ftz.f32 d, a, b"), 32, 2, |v| {
            flush(canonical(single(v[0]).add_r(single(v[1]), round).value))
        });
        check(&format!("mul.{name}.ftz.sat.f32 d, a, b"), 32, 2, |v| {
            saturate(flush(canonical(single(v[0]).mul_r(single(v[1]), round).value)))
        });
        check(&format!("div.{name}.ftz.f32 d, a, b"), 32, 2, |v| {
            flush(canonical(single(v[0]).div_r(single(v[1]), round).value))
        });
        check(&format!("fma.{name}.ftz.f32 d, a, b, c"), 32, 3, |v| {
            flush(canonical(single(v[0]).mul_add_r(single(v[1]), single(v[2]), round).value))
        });
        check(&format!("fma.{name}.sat.f32 d, a, b, c"), 32, 3, |v| {
            let of = |bits: u64| Single::from_bits(u128::from(bits));
            saturate(canonical(of(v[0]).mul_add_r(of(v[1]), of(v[2]), round).value))
        });
    }
}

#[test]
fn minimum_and_maximum_prefer_numbers_and_order_the_zeros() {
    let pick = |a: f64, b: f64, greater: bool, nan: bool| {
        if nan && (a.is_nan() || b.is_nan()) || a.is_nan() && b.is_nan() {
            return f64::NAN;
        }
        if a.is_nan() || b.is_nan() {
            return if a.is_nan() { b } else { a };
        }
        // `total_cmp` puts -0 below +0.
        if (a.total_cmp(&b) == std::cmp::Ordering::Less) == greater { b } else { a }
    };
    for (name, greater) in [("min", false), ("max", true)] {
        for (modifier, nan) in [("", false), (".NaN", true)] {
            check(&format!("{name}{modifier}.f32 d, a, b"), 32, 2, |v| {
                let [a, b] = [v[0], v[1]].map(|bits| f64::from(f32::from_bits(bits as u32)));
                let r = pick(a, b, greater, nan) as f32;
                if r.is_nan() { 0x7fff_ffff } else { u64::from(r.to_bits()) }
            });
        }
        check(&format!("{name}.f64 d, a, b"), 64, 2, |v| {
            let r = pick(f64::from_bits(v[0]), f64::from_bits(v[1]), greater, false);
            if r.is_nan() { 0xfff8 << 48 } else { r.to_bits() }
        });
    }
}

#[test]
fn comparisons_order_numbers_and_know_unordered() {
    use std::cmp::Ordering::{Equal, Greater, Less};
    for (name, holds) in [
        ("eq", [false, true, false, false]),
        ("ne", [true, false, true, false]),
        ("lt", [true, false, false, false]),
        ("le", [true, true, false, false]),
        ("gt", [false, false, true, false]),
        ("ge", [false, true, true, false]),
        ("equ", [false, true, false, true]),
        ("neu", [true, false, true, true]),
        ("ltu", [true, false, false, true]),
        ("leu", [true, true, false, true]),
        ("gtu", [false, false, true, true]),
        ("geu", [false, true, true, true]),
        ("num", [true, true, true, false]),
        ("nan", [false, false, false, true]),
    ] {
        for bits in [32, 64] {
            let mut unit = Unit::new(&format!("setp.{name}.f{bits} d, a, b"), &[1, bits, bits]);
            let mut operands = Operands(7);
            for _ in 0..ROUNDS {
                let a = operands.lanes(|o| o.float(bits, if bits == 64 { 52 } else { 23 }));
                // Equal operands and equal but for the sign, too.
                let b = std::array::from_fn(|i| match operands.bits() & 3 {
                    0 => a[i],
                    1 => a[i] ^ 1 << (bits - 1),
                    _ => operands.float(bits, if bits == 64 { 52 } else { 23 }),
                });
                let found = unit.run(&[a, b]);
                for i in 0..32 {
                    let of = |v: u64| if bits == 64 { f64::from_bits(v) } else { f64::from(f32::from_bits(v as u32)) };
                    let case = match of(a[i]).partial_cmp(&of(b[i])) {
                        Some(Less) => 0,
                        Some(Equal) => 1,
                        Some(Greater) => 2,
                        None => 3,
                    };
                    assert_eq!(found[i] == 1, holds[case], "setp.{name}.f{bits} of {:#x}, {:#x}", a[i], b[i]);
                }
            }
        }
    }
}

/// Runs a conversion from a float format to anything.
fn convert(instruction: &str, to: u32, from: u32, expected: impl Fn(u64) -> u64) {
    let mut unit = Unit::new(instruction, &[to, from]);
    let mut operands = Operands(u64::from(to) << 8 | u64::from(from));
    for round in 0..ROUNDS {
        let a = operands.lanes(|o| match (from, round % 2) {
            (16, _) => o.float(16, 10),
            (32, 0) => o.float(32, 23),
            (32, _) => o.float(32, 23) & !0x4000_0000 | 0x4000_0000 & o.bits() | 0x3f00_0000 & o.bits(),
            _ => o.float(64, 52),
        });
        let found = unit.run(&[a]);
        for i in 0..32 {
            let wanted = expected(a[i]);
            assert_eq!(found[i], wanted, "`{instruction}` of {:#x}: {:#x}, not {wanted:#x}", a[i], found[i]);
        }
    }
}

fn to_integers<F: Float>(from: &str, bits: u32) {
    for (name, round) in ROUNDINGS {
        for (to, width) in
            [("u8", 8), ("s8", 8), ("u16", 16), ("s16", 16), ("u32", 32), ("s32", 32), ("u64", 64), ("s64", 64)]
        {
            let register = width.max(16);
            convert(&format!("cvt.{name}i.{to}.{from} d, a"), register, bits, |a| {
                let x = F::from_bits(u128::from(a));
                let mut exact = false;
                // Saturates at the ends of the type, NaN gives 0: what PTX asks for.
                let value = if to.starts_with('s') {
                    x.to_i128_r(width as usize, round, &mut exact).value as u64
                } else {
                    x.to_u128_r(width as usize, round, &mut exact).value as u64
                };
                value & (u64::MAX >> (64 - register))
            });
        }
    }
}

#[test]
fn floats_become_integers_with_rounding_and_clamping() {
    to_integers::<Single>("f32", 32);
    to_integers::<Double>("f64", 64);
    to_integers::<Half>("f16", 16);
}

#[test]
fn integers_become_floats_with_rounding() {
    for (from, width) in
        [("u8", 16u32), ("s8", 16), ("u16", 16), ("s16", 16), ("u32", 32), ("s32", 32), ("u64", 64), ("s64", 64)]
    {
        let bits: u32 = from[1..].parse().unwrap();
        for (to, to_bits) in [("f16", 16), ("f32", 32), ("f64", 64)] {
            for (name, round) in ROUNDINGS {
                let instruction = format!("cvt.{name}.{to}.{from} d, a");
                let mut unit = Unit::new(&instruction, &[to_bits, width]);
                let mut operands = Operands(u64::from(bits));
                for _ in 0..ROUNDS {
                    let a = operands.lanes(Operands::integer);
                    let found = unit.run(&[a]);
                    for i in 0..32 {
                        let shift = 64 - bits;
                        let value = if from.starts_with('s') {
                            i128::from((a[i] << shift) as i64 >> shift)
                        } else {
                            i128::from(a[i] << shift >> shift)
                        };
                        let wanted = match to_bits {
                            16 => canonical(Half::from_i128_r(value, round).value),
                            32 => canonical(Single::from_i128_r(value, round).value),
                            _ => canonical(Double::from_i128_r(value, round).value),
                        };
                        assert_eq!(found[i], wanted, "`{instruction}` of {value}");
                    }
                }
            }
        }
    }
}

#[test]
fn floats_become_other_floats_with_rounding() {
    fn between<F: FloatConvert<T>, T: Float>(to: &str, from: &str) {
        for (name, round) in ROUNDINGS {
            let widens = T::BITS > F::BITS;
            let name = if widens { String::new() } else { format!(".{name}") };
            convert(&format!("cvt{name}.{to}.{from} d, a"), T::BITS as u32, F::BITS as u32, |a| {
                let mut lost = false;
                let x = F::from_bits(u128::from(a));
                if x.is_nan() {
                    return canonical(T::NAN);
                }
                canonical(x.convert_r(round, &mut lost).value)
            });
        }
    }
    between::<Half, Single>("f32", "f16");
    between::<Half, Double>("f64", "f16");
    between::<Single, Half>("f16", "f32");
    between::<Single, Double>("f64", "f32");
    between::<Double, Half>("f16", "f64");
    between::<Double, Single>("f32", "f64");
    for (name, round) in ROUNDINGS {
        convert(&format!("cvt.{name}i.f32.f32 d, a"), 32, 32, |a| {
            canonical(Single::from_bits(u128::from(a)).round_to_integral(round).value)
        });
        convert(&format!("cvt.{name}i.f64.f64 d, a"), 64, 64, |a| {
            canonical(Double::from_bits(u128::from(a)).round_to_integral(round).value)
        });
        convert(&format!("cvt.{name}.sat.f32.f64 d, a"), 32, 64, |a| {
            let mut lost = false;
            let narrow: Single = Double::from_bits(u128::from(a)).convert_r(round, &mut lost).value;
            saturate(canonical(narrow))
        });
    }
}

/// The worst error of an instruction on single-precision operands spread over a range, by `error(found, operands)`.
fn worst(instruction: &str, ranges: &[(f32, f32)], error: impl Fn(f64, &[f64]) -> f64) -> f64 {
    let widths = vec![32; ranges.len() + 1];
    let mut unit = Unit::new(instruction, &widths);
    let mut operands = Operands(5);
    let mut most = 0f64;
    for _ in 0..500 {
        let sources: Vec<[u64; 32]> = ranges
            .iter()
            .map(|&(from, to)| {
                operands
                    .lanes(|o| u64::from((from + (to - from) * ((o.bits() >> 40) as f32 / (1 << 24) as f32)).to_bits()))
            })
            .collect();
        let found = unit.run(&sources);
        for lane in 0..32 {
            let of = |bits: u64| f64::from(f32::from_bits(bits as u32));
            let inputs: Vec<f64> = sources.iter().map(|s| of(s[lane])).collect();
            most = most.max(error(of(found[lane]), &inputs));
        }
    }
    most
}

#[test]
fn approximations_keep_the_errors_that_the_isa_states() {
    let relative = |f: fn(f64) -> f64| move |found: f64, v: &[f64]| ((found - f(v[0])) / f(v[0])).abs();
    let absolute = |f: fn(f64) -> f64| move |found: f64, v: &[f64]| (found - f(v[0])).abs();
    // rcp.approx: 1 ulp; sqrt.approx: 2^-23 relative; rsqrt.approx: 2^-22.9 relative; div.approx and .full: 2 ulp.
    assert!(worst("rcp.approx.f32 d, a", &[(1.0, 2.0)], relative(f64::recip)) < 2f64.powi(-23));
    assert!(worst("sqrt.approx.f32 d, a", &[(0.0, 1e10)], relative(f64::sqrt)) < 2f64.powi(-23));
    assert!(worst("rsqrt.approx.f32 d, a", &[(1.0, 4.0)], relative(|x| 1.0 / x.sqrt())) < 2f64.powf(-22.9));
    for name in ["approx", "full"] {
        let error = worst(&format!("div.{name}.f32 d, a, b"), &[(1.0, 9.0), (0.1, 7.0)], |found, v| {
            ((found - v[0] / v[1]) / (v[0] / v[1])).abs()
        });
        assert!(error < 2.0 * 2f64.powi(-23));
    }
    // ex2.approx: 2^-22.5 relative; lg2.approx: 2^-22.6 absolute where the result is within [-1, 1], else relative;
    // sin.approx, cos.approx: 2^-20.9 absolute in [-pi, pi]; tanh.approx: 2^-11 relative.
    assert!(worst("ex2.approx.f32 d, a", &[(-120.0, 120.0)], relative(f64::exp2)) < 2f64.powf(-22.5));
    assert!(worst("lg2.approx.f32 d, a", &[(0.5, 2.0)], absolute(f64::log2)) < 2f64.powf(-22.6));
    assert!(worst("lg2.approx.f32 d, a", &[(2.5, 1e9)], relative(f64::log2)) < 2f64.powf(-22.6));
    assert!(worst("sin.approx.f32 d, a", &[(-3.1, 3.1)], absolute(f64::sin)) < 2f64.powf(-20.9));
    assert!(worst("cos.approx.f32 d, a", &[(-3.1, 3.1)], absolute(f64::cos)) < 2f64.powf(-20.9));
    assert!(worst("tanh.approx.f32 d, a", &[(-5.0, 5.0)], relative(f64::tanh)) < 2f64.powi(-11));
}
