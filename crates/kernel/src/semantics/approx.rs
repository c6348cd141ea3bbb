//! The `.approx` functions (PTX ISA 9.7.3): within the ISA's stated errors, and the same bits on every host.
//!
//! Computed in double precision from additions and multiplications alone (never the host's mathematical
//! library), then rounded once; so results are within about half an ulp, better than the hardware's. `rcp`,
//! `sqrt`, `rsqrt` and `div` are the IEEE operations. Not modelled: the exact bits of a real GPU's special
//! function unit.

use super::super::alu::ApproxOp;
use super::super::ir::Inst;
use super::canonical::{canon32, canon64, flush};
use super::{Frame, V32, map, zip};

#[inline(always)]
pub(super) fn execute32(f: &mut Frame<'_>, inst: &Inst, op: ApproxOp, ftz: bool) {
    let a = f.get32(inst.src[0]);
    let flushed;
    let a = if ftz {
        flushed = map(a, flush);
        &flushed
    } else {
        a
    };
    let mut out = match op {
        ApproxOp::Rsqrt => unary(a, |a| (1.0 / f64::from(a).sqrt()) as f32),
        ApproxOp::Rcp => unary(a, |a| 1.0 / a),
        ApproxOp::Sqrt => unary(a, f32::sqrt),
        ApproxOp::Ex2 => unary(a, ex2),
        ApproxOp::Lg2 => unary(a, lg2),
        ApproxOp::Sin => unary(a, |a| sine(a, 0)),
        ApproxOp::Cos => unary(a, |a| sine(a, 1)),
        ApproxOp::Tanh => unary(a, libm::tanhf),
        ApproxOp::Div | ApproxOp::DivFull => {
            let full = op == ApproxOp::DivFull;
            let b = f.get32(inst.src[1]);
            zip(a, b, |a, b| {
                let b = f32::from_bits(if ftz { flush(b) } else { b });
                let a = f32::from_bits(a);
                let q = a / b;
                // 2^126 < |b| < 2^128: the reciprocal underflows to 0.
                let tiny = !full && b.abs() > f32::from_bits(0x7e80_0000) && b.is_finite();
                canon32(if tiny && a.is_infinite() {
                    f32::NAN
                } else if tiny {
                    if q < 0.0 { -0.0 } else { q * 0.0 }
                } else {
                    q
                })
            })
        }
    };
    if ftz {
        out = map(&out, flush);
    }
    f.put32(inst.dst[0], &out);
}

#[inline(always)]
fn unary(a: &V32, f: impl Fn(f32) -> f32) -> V32 {
    map(a, |a| canon32(f(f32::from_bits(a))))
}

/// `rcp.approx.ftz.f64` and `rsqrt.approx.f64`: the upper half of the result only.
#[inline(always)]
pub(super) fn execute64(f: &mut Frame<'_>, inst: &Inst, rsqrt: bool) {
    f.map64(inst, |a| {
        let a = f64::from_bits(a);
        let r = if rsqrt { 1.0 / a.sqrt() } else { 1.0 / a };
        canon64(r) & 0xffff_ffff_0000_0000
    });
}

/// 2^x: x = n + r with |r| <= 1/2, e^(r ln 2) by its Taylor series, scaled by 2^n.
#[inline(always)]
pub(super) fn ex2(x: f32) -> f32 {
    // Beyond these, the result is infinite or zero anyway.
    let wide = f64::from(x).clamp(-300.0, 300.0);
    let n = wide.round_ties_even();
    let y = (wide - n) * std::f64::consts::LN_2;
    let series = 1.0
        + y * (1.0
            + y * (1.0 / 2.0
                + y * (1.0 / 6.0
                    + y * (1.0 / 24.0
                        + y * (1.0 / 120.0
                            + y * (1.0 / 720.0 + y * (1.0 / 5040.0 + y * (1.0 / 40320.0 + y * (1.0 / 362_880.0)))))))));
    // 1.5 * 2^52 puts the integer n into the low bits.
    let exponent = (n + 6_755_399_441_055_744.0).to_bits();
    let scale = f64::from_bits(exponent.wrapping_add(1023) << 52);
    let r = (series * scale) as f32;
    if x.is_nan() { x } else { r }
}

/// log2(x): x = m 2^e with sqrt(1/2) <= m < sqrt(2), the series of the inverse hyperbolic tangent.
#[inline(always)]
fn lg2(x: f32) -> f32 {
    let bits = f64::from(x).to_bits();
    // Exponent such that the mantissa lies around 1.
    const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    let e = (bits.wrapping_sub(ROOT_HALF) as i64) >> 52;
    let m = f64::from_bits(bits.wrapping_sub((e << 52) as u64));
    let t = (m - 1.0) / (m + 1.0);
    let s = t * t;
    let series = 1.0
        + s * (1.0 / 3.0
            + s * (1.0 / 5.0
                + s * (1.0 / 7.0
                    + s * (1.0 / 9.0 + s * (1.0 / 11.0 + s * (1.0 / 13.0 + s * (1.0 / 15.0 + s * (1.0 / 17.0))))))));
    let r = (e as f64 + 2.0 * std::f64::consts::LOG2_E * t * series) as f32;
    if x.is_nan() || x < 0.0 {
        f32::NAN
    } else if x == 0.0 {
        f32::NEG_INFINITY
    } else if x == f32::INFINITY {
        x
    } else {
        r
    }
}

/// sin(x + quarter pi/2): reduced to [-pi/4, pi/4] in double precision (Cody and Waite, three parts of pi/2).
#[inline(always)]
fn sine(x: f32, quarter: i64) -> f32 {
    // Larger arguments have no meaning at single precision; the reduction stays exact enough up to here.
    const FAR: f64 = 1.0e9;
    let wide = f64::from(x);
    let near = if wide.abs() < FAR { wide } else { 0.0 };
    let n = (near * std::f64::consts::FRAC_2_PI).round_ties_even();
    // pi/2 in parts of 33 bits, so that n times a part is exact.
    let r = near - n * 1.570_796_326_734_125_6 - n * 6.077_100_506_303_966e-11 - n * 2.022_266_248_795_950_6e-21;
    let s = r * r;
    let sin = r
        * (1.0
            + s * (-1.0 / 6.0
                + s * (1.0 / 120.0 + s * (-1.0 / 5040.0 + s * (1.0 / 362_880.0 + s * (-1.0 / 39_916_800.0))))));
    let cos = 1.0
        + s * (-1.0 / 2.0
            + s * (1.0 / 24.0
                + s * (-1.0 / 720.0 + s * (1.0 / 40320.0 + s * (-1.0 / 3_628_800.0 + s * (1.0 / 479_001_600.0))))));
    let quadrant = ((n + 6_755_399_441_055_744.0).to_bits() as i64).wrapping_add(quarter) & 3;
    let v = if quadrant & 1 == 0 { sin } else { cos };
    let v = if quadrant & 2 == 0 { v } else { -v };
    let v = if x == 0.0 && quarter == 0 { wide } else { v };
    if !x.is_finite() { f32::NAN } else { v as f32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(f: impl Fn(f32) -> f32, exact: impl Fn(f64) -> f64, from: f32, to: f32, relative: bool) -> f64 {
        let n = 200_000;
        (0..=n)
            .map(|i| {
                let x = from + (to - from) * (i as f32 / n as f32);
                let e = exact(f64::from(x));
                let d = (f64::from(f(x)) - e).abs();
                if relative { d / e.abs() } else { d }
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn errors_are_below_those_the_isa_states() {
        assert!(worst(ex2, f64::exp2, -125.0, 127.9, true) < 2f64.powf(-22.5));
        assert!(worst(lg2, f64::log2, 0.5, 2.0, false) < 2f64.powf(-22.0));
        assert!(worst(lg2, f64::log2, 3.0, 3e38, true) < 2f64.powf(-22.0));
        assert!(worst(|x| sine(x, 0), f64::sin, -3.15, 3.15, false) < 2f64.powf(-20.9));
        assert!(worst(|x| sine(x, 1), f64::cos, -3.15, 3.15, false) < 2f64.powf(-20.9));
        assert!(worst(|x| sine(x, 0), f64::sin, 1e6, 1e8, false) < 2f64.powf(-20.9));
    }

    #[test]
    fn special_values_follow_the_isa_tables() {
        assert_eq!(ex2(f32::NEG_INFINITY).to_bits(), 0);
        assert_eq!(ex2(f32::INFINITY), f32::INFINITY);
        assert_eq!(ex2(-0.0), 1.0);
        assert_eq!(ex2(10.0), 1024.0);
        assert_eq!(ex2(-149.0).to_bits(), 1);
        assert_eq!(lg2(0.0), f32::NEG_INFINITY);
        assert_eq!(lg2(-0.0), f32::NEG_INFINITY);
        assert!(lg2(-1.0).is_nan());
        assert_eq!(lg2(f32::INFINITY), f32::INFINITY);
        assert_eq!(lg2(8.0), 3.0);
        assert_eq!(lg2(f32::from_bits(1)), -149.0);
        assert_eq!(sine(-0.0, 0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(sine(0.0, 1), 1.0);
        assert!(sine(f32::INFINITY, 0).is_nan());
    }

    #[test]
    fn lanes_are_independent() {
        let a: V32 = std::array::from_fn(|i| (i as f32).to_bits());
        let out = unary(&a, ex2);
        for (i, &bits) in out.iter().enumerate() {
            assert_eq!(f32::from_bits(bits), 2f32.powi(i as i32));
        }
    }
}
