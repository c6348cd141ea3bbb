//! The math functions that `workloads/include/clang/math.cuh` has in software, compiled by clang: their errors over the whole
//! range, against libm in double precision. NVIDIA's own need no such test: what their compilers emit are instructions.

use crate::kernels::Device;

fn device<const N: usize>(buffers: [usize; N]) -> (Device, [u64; N]) {
    Device::new("math.clang.ptx", include_str!("ptx/math.clang.ptx"), buffers)
}

/// Numbers of every magnitude and both signs, and those where functions change their ways.
fn floats(n: usize) -> Vec<f32> {
    let special = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE];
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    let any = |k: usize, bits: u32| match k % 3 {
        // Any bits, then magnitudes that functions are used with, then near 1.
        0 => f32::from_bits(bits << 8 | bits >> 16),
        1 => (bits as f32 / 8_388_608.0 - 1.0) * 10f32.powi(k as i32 % 7 - 3),
        _ => 1.0 + (bits as f32 / 8_388_608.0 - 1.0) * 0.5,
    };
    special.into_iter().chain((0..n).map(|k| any(k, next()))).collect()
}

/// Distance in units of the last place of the expected value, infinite where one is NaN and the other is not.
fn ulps32(found: f32, expected: f64) -> f64 {
    let rounded = expected as f32;
    if found == rounded || (found.is_nan() && rounded.is_nan()) {
        return 0.0;
    }
    // An overflow by a rounding is near the largest number.
    let found =
        if found.is_infinite() { f64::from(f32::MAX.copysign(found)) * (1.0 + 2f64.powi(-24)) } else { found.into() };
    let exponent = expected.abs().max(f64::from(f32::MIN_POSITIVE)).log2().floor();
    let distance = ((found - expected) / (exponent - 23.0).exp2()).abs();
    if distance.is_nan() { f64::INFINITY } else { distance }
}

fn ulps64(found: f64, expected: f64) -> f64 {
    match found == expected || (found.is_nan() && expected.is_nan()) {
        true => 0.0,
        false if found.is_nan() || expected.is_nan() => f64::INFINITY,
        false => (found.to_bits() as i64 - expected.to_bits() as i64).unsigned_abs() as f64,
    }
}

fn of_floats(name: &str, x: &[f32], y: &[f32]) -> Vec<f32> {
    let bytes = 4 * x.len();
    let (mut d, [from, second, to]) = device([bytes, bytes, bytes]);
    d.memory.write_f32s(from, x).unwrap();
    d.memory.write_f32s(second, y).unwrap();
    let params = d.block(name).u64(from).u64(second).u64(to).u32(x.len() as u32).finish();
    d.run(name, [x.len().div_ceil(128) as u32, 1, 1], [128, 1, 1], 0, &params);
    d.memory.read_f32s(to, x.len()).unwrap()
}

fn of_doubles(name: &str, x: &[f64], y: &[f64]) -> Vec<f64> {
    let bytes = 8 * x.len();
    let (mut d, [from, second, to]) = device([bytes, bytes, bytes]);
    let write = |values: &[f64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    d.memory.write(from, &write(x)).unwrap();
    d.memory.write(second, &write(y)).unwrap();
    let params = d.block(name).u64(from).u64(second).u64(to).u32(x.len() as u32).finish();
    d.run(name, [x.len().div_ceil(128) as u32, 1, 1], [128, 1, 1], 0, &params);
    let found = d.memory.read(to, bytes).unwrap();
    found.chunks_exact(8).map(|v| f64::from_le_bytes(v.try_into().unwrap())).collect()
}

/// What is farther than `most` units of the last place, each with its input.
fn far(name: &str, most: f64, errors: impl Iterator<Item = (f64, String)>, wrong: &mut Vec<String>) {
    let mut errors: Vec<(f64, String)> = errors.filter(|(error, _)| *error > most).collect();
    errors.sort_by(|a, b| b.0.total_cmp(&a.0));
    wrong.extend(errors.into_iter().take(3).map(|(error, what)| format!("{name}: {error:.2} ulp: {what}")));
}

#[test]
fn functions_of_single_precision_are_within_their_errors() {
    type Reference = fn(f64) -> f64;
    // Sines are NaN from 2^31 on, as the header says.
    fn small(x: f64, f: Reference) -> f64 {
        if x.abs() < 2f64.powi(31) { f(x) } else { f64::NAN }
    }
    let functions: [(&str, f64, Reference); 19] = [
        ("expf_", 4.0, libm::exp),
        ("exp2f_", 4.0, libm::exp2),
        ("exp10f_", 4.0, libm::exp10),
        ("expm1f_", 4.0, libm::expm1),
        ("logf_", 4.0, libm::log),
        ("log2f_", f64::INFINITY, libm::log2),
        ("log10f_", 4.0, libm::log10),
        ("log1pf_", 4.0, libm::log1p),
        ("sinf_", 4.0, |x| small(x, libm::sin)),
        ("cosf_", 4.0, |x| small(x, libm::cos)),
        ("tanf_", 4.0, |x| small(x, libm::tan)),
        ("sinhf_", 4.0, libm::sinh),
        ("coshf_", 4.0, libm::cosh),
        ("tanhf_", 4.0, libm::tanh),
        ("asinf_", 4.0, libm::asin),
        ("acosf_", 4.0, libm::acos),
        ("atanf_", 4.0, libm::atan),
        ("cbrtf_", 1.0, libm::cbrt),
        ("roundf_", 0.0, libm::round),
    ];
    let x = floats(6_000);
    let mut wrong = Vec::new();
    for (name, most, reference) in functions {
        let found = of_floats(name, &x, &x);
        let error = |(x, found): (&f32, f32)| {
            let expected = reference(f64::from(*x));
            // The instruction's error of a logarithm is an absolute one between 1/2 and 2.
            let error = match name {
                "log2f_" if (f64::from(found) - expected).abs() < 2f64.powi(-21) => 0.0,
                "log2f_" => ulps32(found, expected) * 1e9,
                _ => ulps32(found, expected),
            };
            (error, format!("of {x:e} is {found:e}, not {expected:e}"))
        };
        let most = if name == "log2f_" { 4e9 } else { most };
        far(name, most, x.iter().zip(found).map(error), &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn functions_of_two_numbers_are_within_their_errors() {
    type Reference = fn(f64, f64) -> f64;
    let functions: [(&str, f64, Reference); 4] = [
        ("powf_", 1.0, libm::pow),
        ("atan2f_", 4.0, libm::atan2),
        ("hypotf_", 1.0, libm::hypot),
        ("fmodf_", 0.0, libm::fmod),
    ];
    let mut x = floats(6_000);
    let mut y: Vec<f32> = x.iter().rev().copied().collect();
    // Every pair of special numbers, and whole exponents.
    let special = floats(0);
    for a in &special {
        x.extend(std::iter::repeat_n(*a, special.len()));
        y.extend(&special);
    }
    for n in -20..20i8 {
        x.extend([-1.5, 3.0, -0.0]);
        y.extend([f32::from(n); 3]);
    }
    let mut wrong = Vec::new();
    for (name, most, reference) in functions {
        let found = of_floats(name, &x, &y);
        let error = |((x, y), found): ((&f32, &f32), f32)| {
            let expected = reference(f64::from(*x), f64::from(*y));
            (ulps32(found, expected), format!("of {x:e} and {y:e} is {found:e}, not {expected:e}"))
        };
        far(name, most, x.iter().zip(&y).zip(found).map(error), &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn functions_of_double_precision_are_within_their_errors() {
    type Reference = fn(f64) -> f64;
    fn small(x: f64, f: Reference) -> f64 {
        if x.abs() < 2f64.powi(31) { f(x) } else { f64::NAN }
    }
    let functions: [(&str, f64, Reference); 10] = [
        ("exp_", 4.0, libm::exp),
        ("exp2_", 4.0, libm::exp2),
        ("exp10_", 4.0, libm::exp10),
        ("log_", 4.0, libm::log),
        ("log2_", 4.0, libm::log2),
        ("log10_", 4.0, libm::log10),
        ("sin_", 4.0, |x| small(x, libm::sin)),
        ("cos_", 4.0, |x| small(x, libm::cos)),
        ("tan_", 4.0, |x| small(x, libm::tan)),
        ("round_", 0.0, libm::round),
    ];
    // Also with bits that singles do not have.
    let x: Vec<f64> = floats(4_000).into_iter().map(|x| f64::from(x) * (1.0 + 2f64.powi(-40))).collect();
    let mut wrong = Vec::new();
    for (name, most, reference) in functions {
        let found = of_doubles(name, &x, &x);
        let error = |(x, found): (&f64, f64)| {
            let expected = reference(*x);
            (ulps64(found, expected), format!("of {x:e} is {found:e}, not {expected:e}"))
        };
        far(name, most, x.iter().zip(found).map(error), &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn exponents_and_fractions_are_exact() {
    let x = floats(3_000);
    let n: Vec<f32> = (0..x.len()).map(|k| (k as f32 * 37.0) % 601.0 - 300.0).collect();
    for ((x, n), found) in x.iter().zip(&n).zip(of_floats("ldexpf_", &x, &n)) {
        // Exact unless the result is so small that bits are lost.
        let expected = libm::ldexp(f64::from(*x), *n as i32);
        let most = if expected.abs() < f64::from(f32::MIN_POSITIVE) { 1.0 } else { 0.0 };
        assert!(ulps32(found, expected) <= most, "{x:e} 2^{n}: {found:e}, not {expected:e}");
    }
    let wide: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
    let exponents: Vec<f64> = n.iter().map(|n| f64::from(*n) * 2.0).collect();
    for ((x, n), found) in wide.iter().zip(&exponents).zip(of_doubles("ldexp_", &wide, &exponents)) {
        let expected = libm::ldexp(*x, *n as i32);
        assert!(ulps64(found, expected) <= 1.0, "{x:e} 2^{n}: {found:e}, not {expected:e}");
    }
    let finite: Vec<f32> = x.into_iter().filter(|x| x.is_finite()).collect();
    assert_eq!(of_floats("halves_", &finite, &finite), finite, "fractions and exponents make the number again");
}
