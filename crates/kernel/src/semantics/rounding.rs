//! Exact rounding in every direction, where the host offers only to-nearest.
//!
//! Single precision goes through double precision *rounded to odd*: a double holds more than 2 x 24 + 2 bits,
//! so one further rounding, in any direction, gives the correctly rounded result (Boldo and Melquiond,
//! "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", IEEE ToC 2008).
//! The rounding error of a double operation is itself exact (TwoSum, FMA residuals). Double precision uses
//! 128-bit integers.
//!
//! Invariants: pure integer and IEEE operations, the same bits on every host; NaNs are canonical.

use super::super::alu::{HalfFormat, Round};
use super::canonical::{NAN32, NAN64};

/// The double nearest to `sum + error` that has its last bit set if it is not exact. `error` is below half an
/// ulp.
#[inline(always)]
pub(super) fn to_odd(sum: f64, error: f64) -> f64 {
    let bits = sum.to_bits();
    if error == 0.0 || !sum.is_finite() || bits & 1 == 1 {
        return sum;
    }
    // Even and inexact: the odd neighbour on the side of the error.
    let away = (error > 0.0) == (sum > 0.0);
    f64::from_bits(if away { bits + 1 } else { bits - 1 })
}

/// The sum of a single and a double, rounded once.
pub(super) fn plus(sum: f32, product: f64) -> f32 {
    let wide = f64::from(sum);
    let total = wide + product;
    // The error of a sum of doubles is one (TwoSum).
    let of_sum = total - product;
    let error = (wide - of_sum) + (product - (total - of_sum));
    to_odd(total, error) as f32
}

/// Rounds a double that was rounded to odd to single precision. An exact zero keeps its sign.
#[inline(always)]
fn to_single(x: f64, round: Round) -> f32 {
    let r = x as f32;
    let wide = f64::from(r);
    let (up, down) = match round {
        Round::Nearest => (false, false),
        Round::Zero => (wide < x && x < 0.0, wide > x && x > 0.0),
        Round::Down => (false, wide > x),
        Round::Up => (wide < x, false),
    };
    if up {
        r.next_up_keeping_zero()
    } else if down {
        -(-r).next_up_keeping_zero()
    } else {
        r
    }
}

trait NextUp {
    fn next_up_keeping_zero(self) -> Self;
}

impl NextUp for f32 {
    /// The next number towards plus infinity; from the smallest negative one that is -0.
    #[inline(always)]
    fn next_up_keeping_zero(self) -> f32 {
        let bits = self.to_bits();
        if bits == 0x8000_0000 {
            f32::from_bits(1)
        } else if bits >> 31 == 0 {
            f32::from_bits(bits + 1)
        } else {
            f32::from_bits(bits - 1)
        }
    }
}

#[inline(always)]
fn canonical(x: f32) -> f32 {
    if x.is_nan() { f32::from_bits(NAN32) } else { x }
}

/// The sign of an exact zero sum: negative only when rounding down, unless both terms have one sign.
#[inline(always)]
fn zero_sum(x_negative: bool, y_negative: bool, round: Round) -> bool {
    if x_negative == y_negative { x_negative } else { round == Round::Down }
}

/// a + b in single precision.
#[inline(always)]
pub(super) fn add32(a: f32, b: f32, round: Round) -> f32 {
    sum32(f64::from(a), f64::from(b), round)
}

/// a * b in single precision. The product of two singles is exact in double precision.
#[inline(always)]
pub(super) fn mul32(a: f32, b: f32, round: Round) -> f32 {
    canonical(to_single(f64::from(a) * f64::from(b), round))
}

/// a * b + c in single precision, rounded once.
#[inline(always)]
pub(super) fn fma32(a: f32, b: f32, c: f32, round: Round) -> f32 {
    sum32(f64::from(a) * f64::from(b), f64::from(c), round)
}

#[inline(always)]
fn sum32(x: f64, y: f64, round: Round) -> f32 {
    let s = x + y;
    if s == 0.0 {
        return if zero_sum(x.is_sign_negative(), y.is_sign_negative(), round) { -0.0 } else { 0.0 };
    }
    // TwoSum (Knuth): exact, no overflow since |x|, |y| < 2^257.
    let yy = s - x;
    let error = (x - (s - yy)) + (y - yy);
    canonical(to_single(to_odd(s, error), round))
}

/// a / b in single precision.
#[inline(always)]
pub(super) fn div32(a: f32, b: f32, round: Round) -> f32 {
    let (a, b) = (f64::from(a), f64::from(b));
    let q = a / b;
    let odd = if q.is_finite() && q != 0.0 && b.is_finite() {
        let residual = libm::fma(-q, b, a);
        to_odd(q, if b < 0.0 { -residual } else { residual })
    } else {
        q
    };
    canonical(to_single(odd, round))
}

/// The square root in single precision.
#[inline(always)]
pub(super) fn sqrt32(a: f32, round: Round) -> f32 {
    let a = f64::from(a);
    let s = a.sqrt();
    let odd = if s.is_finite() && s > 0.0 { to_odd(s, libm::fma(-s, s, a)) } else { s };
    canonical(to_single(odd, round))
}

/// A double rounded to single precision.
#[inline(always)]
pub(super) fn narrow(x: f64, round: Round) -> f32 {
    canonical(to_single(x, round))
}

/// A finite number apart: (-1)^negative * significand * 2^exponent, `sticky` for bits lost below.
#[derive(Clone, Copy)]
struct Parts {
    negative: bool,
    exponent: i32,
    significand: u128,
}

fn parts(x: f64) -> Parts {
    let bits = x.to_bits();
    let biased = (bits >> 52 & 0x7ff) as i32;
    let fraction = u128::from(bits & ((1 << 52) - 1));
    Parts {
        negative: bits >> 63 == 1,
        exponent: if biased == 0 { -1074 } else { biased - 1075 },
        significand: if biased == 0 { fraction } else { fraction | 1 << 52 },
    }
}

/// The shape of a binary float format.
#[derive(Clone, Copy)]
struct Format {
    /// Bits of the significand, the hidden one included.
    precision: i32,
    /// Exponent of the last bit of a denormal.
    least: i32,
    /// Largest biased exponent (that of infinity).
    infinity: i32,
}

const SINGLE: Format = Format { precision: 24, least: -149, infinity: 255 };
const DOUBLE: Format = Format { precision: 53, least: -1074, infinity: 2047 };

fn half_format(format: HalfFormat) -> Format {
    match format {
        HalfFormat::F16 => Format { precision: 11, least: -24, infinity: 31 },
        HalfFormat::Bf16 => Format { precision: 8, least: -133, infinity: 255 },
    }
}

/// Rounds significand * 2^exponent (and a bit more, if `sticky`) to a format. The sign bit is left to the
/// caller.
fn round_magnitude(
    exponent: i32,
    significand: u128,
    sticky: bool,
    negative: bool,
    format: Format,
    round: Round,
) -> u64 {
    if significand == 0 && !sticky {
        return 0;
    }
    let width = 128 - significand.leading_zeros() as i32;
    // Exponent of the last kept bit.
    let last = (exponent + width - format.precision).max(format.least);
    let drop = last - exponent;
    let (kept, half, rest) = if drop <= 0 {
        (significand << -drop, false, sticky)
    } else if drop > 127 {
        (0, false, true)
    } else {
        let kept = significand >> drop;
        let half = significand >> (drop - 1) & 1 == 1;
        let rest = significand & ((1u128 << (drop - 1)) - 1) != 0;
        (kept, half, rest || sticky)
    };
    let up = match round {
        Round::Nearest => half && (rest || kept & 1 == 1),
        Round::Zero => false,
        Round::Down => negative && (half || rest),
        Round::Up => !negative && (half || rest),
    };
    let kept = kept as u64 + u64::from(up);
    // Denormals and normals join seamlessly when the hidden bit is added to the exponent field.
    let field = (last - format.least) as u64;
    let magnitude = kept + (field << (format.precision - 1));
    let infinity = (format.infinity as u64) << (format.precision - 1);
    if magnitude < infinity {
        return magnitude;
    }
    let away = match round {
        Round::Nearest => true,
        Round::Zero => false,
        Round::Down => negative,
        Round::Up => !negative,
    };
    if away { infinity } else { infinity - 1 }
}

fn pack64(negative: bool, exponent: i32, significand: u128, sticky: bool, round: Round) -> f64 {
    let magnitude = round_magnitude(exponent, significand, sticky, negative, DOUBLE, round);
    f64::from_bits(magnitude | u64::from(negative) << 63)
}

/// x + y for finite parts, exactly rounded.
fn sum64(x: Parts, y: Parts, round: Round) -> f64 {
    if x.significand == 0 && y.significand == 0 {
        return if zero_sum(x.negative, y.negative, round) { -0.0 } else { 0.0 };
    }
    // Both with their top bit at 125, the larger exponent first.
    let lift = |p: Parts| {
        let shift = p.significand.leading_zeros() as i32 - 2;
        Parts { significand: p.significand << shift, exponent: p.exponent - shift, ..p }
    };
    if x.significand == 0 || y.significand == 0 {
        let p = if x.significand == 0 { y } else { x };
        return pack64(p.negative, p.exponent, p.significand, false, round);
    }
    let (mut big, mut small) = (lift(x), lift(y));
    if (small.exponent, small.significand) > (big.exponent, big.significand) {
        std::mem::swap(&mut big, &mut small);
    }
    let shift = big.exponent - small.exponent;
    let (aligned, lost) = if shift == 0 {
        (small.significand, false)
    } else if shift > 126 {
        (0, true)
    } else {
        (small.significand >> shift, small.significand & ((1u128 << shift) - 1) != 0)
    };
    if big.negative == small.negative {
        pack64(big.negative, big.exponent, big.significand + aligned, lost, round)
    } else {
        // With bits lost below, the difference lies between this and one more: borrow, and stay sticky.
        let difference = big.significand - aligned - u128::from(lost);
        if difference == 0 && !lost {
            return if round == Round::Down { -0.0 } else { 0.0 };
        }
        pack64(big.negative, big.exponent, difference, lost, round)
    }
}

fn nan64() -> f64 {
    f64::from_bits(NAN64)
}

/// a + b in double precision.
pub(super) fn add64(a: f64, b: f64, round: Round) -> f64 {
    if !(a.is_finite() && b.is_finite()) {
        let s = a + b;
        return if s.is_nan() { nan64() } else { s };
    }
    sum64(parts(a), parts(b), round)
}

/// a * b in double precision.
pub(super) fn mul64(a: f64, b: f64, round: Round) -> f64 {
    if !(a.is_finite() && b.is_finite()) {
        let p = a * b;
        return if p.is_nan() { nan64() } else { p };
    }
    let (a, b) = (parts(a), parts(b));
    pack64(a.negative != b.negative, a.exponent + b.exponent, a.significand * b.significand, false, round)
}

/// a * b + c in double precision, rounded once.
pub(super) fn fma64(a: f64, b: f64, c: f64, round: Round) -> f64 {
    if !(a.is_finite() && b.is_finite() && c.is_finite()) {
        // A product that overflows only by its size must not meet an infinity of the other sign.
        let product = if a.is_finite() && b.is_finite() { 0.0 } else { a * b };
        let s = product + c;
        return if s.is_nan() { nan64() } else { s };
    }
    let (a, b) = (parts(a), parts(b));
    let product = Parts {
        negative: a.negative != b.negative,
        exponent: a.exponent + b.exponent,
        significand: a.significand * b.significand,
    };
    sum64(product, parts(c), round)
}

/// a / b in double precision.
pub(super) fn div64(a: f64, b: f64, round: Round) -> f64 {
    if !(a.is_finite() && b.is_finite()) || a == 0.0 || b == 0.0 {
        let q = a / b;
        return if q.is_nan() { nan64() } else { q };
    }
    let (a, b) = (parts(a), parts(b));
    // Top bit of the dividend at 127, so that the quotient has at least 75 bits.
    let shift = a.significand.leading_zeros() as i32;
    let dividend = a.significand << shift;
    let (q, r) = (dividend / b.significand, dividend % b.significand);
    pack64(a.negative != b.negative, a.exponent - shift - b.exponent, q, r != 0, round)
}

/// The square root in double precision.
pub(super) fn sqrt64(a: f64, round: Round) -> f64 {
    if a.is_nan() || a < 0.0 {
        return nan64();
    }
    if a == 0.0 || a.is_infinite() {
        return a;
    }
    let a = parts(a);
    // An even exponent, and at least 120 bits under the root.
    let mut shift = a.significand.leading_zeros() as i32 - 1;
    shift -= (a.exponent - shift) & 1;
    let radicand = a.significand << shift;
    let root = radicand.isqrt();
    pack64(false, (a.exponent - shift) / 2, root, root * root != radicand, round)
}

/// An integer as a single.
pub(super) fn int_to_single(value: i128, round: Round) -> f32 {
    let magnitude = round_magnitude(0, value.unsigned_abs(), false, value < 0, SINGLE, round) as u32;
    f32::from_bits(magnitude | u32::from(value < 0) << 31)
}

/// An integer as a double.
pub(super) fn int_to_double(value: i128, round: Round) -> f64 {
    pack64(value < 0, 0, value.unsigned_abs(), false, round)
}

/// An integer as the bits of a half.
pub(super) fn int_to_half(value: i128, format: HalfFormat, round: Round) -> u16 {
    let magnitude = round_magnitude(0, value.unsigned_abs(), false, value < 0, half_format(format), round) as u16;
    magnitude | u16::from(value < 0) << 15
}

/// A double as the bits of a half.
pub(super) fn double_to_half(x: f64, format: HalfFormat, round: Round) -> u16 {
    let sign = u16::from(x.is_sign_negative()) << 15;
    let shape = half_format(format);
    if x.is_nan() {
        return 0x7fff;
    }
    if x.is_infinite() {
        return (shape.infinity as u16) << (shape.precision - 1) | sign;
    }
    let p = parts(x);
    round_magnitude(p.exponent, p.significand, false, p.negative, shape, round) as u16 | sign
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_rounded_once() {
        // Half an ulp of 1 and a little, which a double of the sum alone would lose.
        let product = 24.0_f64.exp2().recip() * (1.0 + 52.0_f64.exp2().recip());
        assert_eq!(plus(1.0, product).to_bits(), 1.0_f32.to_bits() + 1);
        assert_eq!(plus(1.0, 24.0_f64.exp2().recip()), 1.0, "a tie");
        assert_eq!(plus(1.0, 24.0_f64.exp2().recip() + 120.0_f64.exp2().recip()), 1.0);
        assert_eq!(plus(1.0 + f32::EPSILON, 24.0_f64.exp2().recip()), 1.0 + 2.0 * f32::EPSILON, "a tie to even");
        assert_eq!(plus(1.0, -200.0_f64.exp2().recip()), 1.0);
        assert_eq!(plus(f32::MAX, 103.0_f64.exp2() * 0.999), f32::MAX);
        assert!(plus(0.0, 200.0_f64.exp2()).is_infinite() && plus(f32::INFINITY, -1e300).is_infinite());
    }
}
