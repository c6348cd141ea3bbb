//! Floating-point arithmetic in all five rounding modes, with the exceptions that it raises: by integers
//! alone.
//!
//! A finite value is significand x 2^exponent. Each operation computes its exact result, or one whose lowest
//! bit is set if anything lies below it, and [`round`] rounds that once. Values are bits of their format,
//! singles in the low half.
//!
//! Source: IEEE 754-2019; where it leaves a choice, The RISC-V Instruction Set Manual, volume I, chapters F
//! and D: NaNs that result are canonical, tininess is detected after rounding, and infinity times zero is
//! invalid whatever is added to it.

use super::flagged::{Flagged, flag, mode};
use super::format::{Double, FloatKind, Format, Single, Unpacked};

/// A finite value under way.
#[derive(Clone, Copy)]
struct Exact {
    negative: bool,
    exponent: i32,
    significand: u128,
}

impl Exact {
    fn of(value: Unpacked) -> Exact {
        let Unpacked { negative, exponent, significand, .. } = value;
        Exact { negative, exponent, significand: significand.into() }
    }

    /// The same with its highest bit in a place that leaves room for a carry. It is not zero.
    fn normalised(self) -> Exact {
        let by = self.significand.leading_zeros() as i32 - 3;
        Exact { exponent: self.exponent - by, significand: self.significand << by, ..self }
    }
}

fn canonical<F: Format>(flags: u8) -> Flagged {
    Flagged { value: F::CANONICAL_NAN, flags }
}

/// What any operation gives if an operand is a NaN.
pub(super) fn of_nan<F: Format>(operands: &[Unpacked]) -> Option<Flagged> {
    let any = operands.iter().any(Unpacked::is_nan);
    any.then(|| canonical::<F>(signalled(operands)))
}

/// The exception of operands of which one is a signalling NaN.
pub(super) fn signalled(operands: &[Unpacked]) -> u8 {
    if operands.iter().any(|operand| operand.kind == FloatKind::Signalling) { flag::NV } else { 0 }
}

fn signed<F: Format>(negative: bool, magnitude: u64) -> u64 {
    magnitude | if negative { F::SIGN } else { 0 }
}

fn exact<F: Format>(negative: bool, magnitude: u64) -> Flagged {
    Flagged { value: signed::<F>(negative, magnitude), flags: 0 }
}

/// A significand without its lowest bits, rounded, and whether that changed it.
pub(super) fn dropped(negative: bool, significand: u128, bits: i32, mode: u8) -> (u128, bool) {
    if bits <= 0 {
        return (significand << -bits, false);
    }
    // Nothing that is dropped has more than 127 bits: with 127 or more of them it is less than a half.
    let (kept, rest, half) = match bits {
        127.. => (0, u128::from(significand != 0), 2),
        _ => (significand >> bits, significand & ((1 << bits) - 1), 1 << (bits - 1)),
    };
    let up = match mode {
        mode::NEAREST_EVEN => rest > half || rest == half && kept & 1 == 1,
        mode::TOWARDS_ZERO => false,
        mode::DOWN => negative && rest != 0,
        mode::UP => !negative && rest != 0,
        _ => rest >= half,
    };
    (kept + u128::from(up), rest != 0)
}

/// Rounds a value that is not zero. Its lowest bit may stand for others below it if it has two bits more than
/// the format.
fn round<F: Format>(value: Exact, mode: u8) -> Flagged {
    let Exact { negative, exponent, significand } = value;
    let length = 128 - significand.leading_zeros() as i32;
    let excess = length - F::PRECISION;
    let place = (exponent + excess).max(F::LAST_PLACE_MIN);
    let (kept, inexact) = dropped(negative, significand, place - exponent, mode);
    // A significand of full length adds one to the exponent, and so does a carry out of it.
    let magnitude = (((place - F::LAST_PLACE_MIN) as u64) << F::FRACTION) + kept as u64;
    if magnitude >= F::INFINITY {
        let to_infinity = match mode {
            mode::TOWARDS_ZERO => false,
            mode::DOWN => negative,
            mode::UP => !negative,
            _ => true,
        };
        let magnitude = if to_infinity { F::INFINITY } else { F::INFINITY - 1 };
        return Flagged { value: signed::<F>(negative, magnitude), flags: flag::OF | flag::NX };
    }
    let mut flags = if inexact { flag::NX } else { 0 };
    if inexact && exponent + excess < F::LAST_PLACE_MIN {
        // After rounding: it is tiny unless it becomes normal with as many bits as normal numbers have, too.
        let is_normal = || dropped(negative, significand, excess, mode).0 >> F::PRECISION != 0;
        if magnitude < F::NORMAL_MIN || !is_normal() {
            flags |= flag::UF;
        }
    }
    Flagged { value: signed::<F>(negative, magnitude), flags }
}

/// The sum of two values that are not zero.
fn sum<F: Format>(a: Exact, b: Exact, mode: u8) -> Flagged {
    let (a, b) = (a.normalised(), b.normalised());
    let (high, low) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
    let below = (high.exponent - low.exponent).min(127);
    let shifted = low.significand >> below;
    let aligned = shifted | u128::from(shifted << below != low.significand);
    let mut value = high;
    if high.negative == low.negative {
        value.significand += aligned;
    } else if high.significand >= aligned {
        value.significand -= aligned;
    } else {
        value = Exact { significand: aligned - high.significand, ..low };
        value.exponent = high.exponent;
    }
    if value.significand == 0 { zero::<F>(mode) } else { round::<F>(value, mode) }
}

/// The zero that a sum of opposite values is.
fn zero<F: Format>(mode: u8) -> Flagged {
    exact::<F>(mode == mode::DOWN, 0)
}

pub(super) fn add<F: Format>(a: u64, b: u64, mode: u8) -> Flagged {
    let (x, y) = (Unpacked::of::<F>(a), Unpacked::of::<F>(b));
    if let Some(nan) = of_nan::<F>(&[x, y]) {
        return nan;
    }
    match (x.kind, y.kind) {
        (FloatKind::Infinite, FloatKind::Infinite) if x.negative != y.negative => canonical::<F>(flag::NV),
        (FloatKind::Infinite, _) => Flagged { value: a, flags: 0 },
        (_, FloatKind::Infinite) => Flagged { value: b, flags: 0 },
        (FloatKind::Zero, FloatKind::Zero) if x.negative != y.negative => zero::<F>(mode),
        (FloatKind::Zero, _) => Flagged { value: b, flags: 0 },
        (_, FloatKind::Zero) => Flagged { value: a, flags: 0 },
        _ => sum::<F>(Exact::of(x), Exact::of(y), mode),
    }
}

pub(super) fn multiply<F: Format>(a: u64, b: u64, mode: u8) -> Flagged {
    let (x, y) = (Unpacked::of::<F>(a), Unpacked::of::<F>(b));
    if let Some(nan) = of_nan::<F>(&[x, y]) {
        return nan;
    }
    let negative = x.negative != y.negative;
    match (x.kind, y.kind) {
        (FloatKind::Infinite, FloatKind::Zero) | (FloatKind::Zero, FloatKind::Infinite) => canonical::<F>(flag::NV),
        (FloatKind::Infinite, _) | (_, FloatKind::Infinite) => exact::<F>(negative, F::INFINITY),
        (FloatKind::Zero, _) | (_, FloatKind::Zero) => exact::<F>(negative, 0),
        _ => round::<F>(product(x, y), mode),
    }
}

fn product(x: Unpacked, y: Unpacked) -> Exact {
    Exact {
        negative: x.negative != y.negative,
        exponent: x.exponent + y.exponent,
        significand: u128::from(x.significand) * u128::from(y.significand),
    }
}

/// a x b + c, rounded once.
pub(super) fn multiply_add<F: Format>(a: u64, b: u64, c: u64, mode: u8) -> Flagged {
    let [x, y, z] = [a, b, c].map(Unpacked::of::<F>);
    let zero_by_infinity =
        matches!((x.kind, y.kind), (FloatKind::Infinite, FloatKind::Zero) | (FloatKind::Zero, FloatKind::Infinite));
    if zero_by_infinity {
        return canonical::<F>(flag::NV);
    }
    if let Some(nan) = of_nan::<F>(&[x, y, z]) {
        return nan;
    }
    let negative = x.negative != y.negative;
    let infinite = x.kind == FloatKind::Infinite || y.kind == FloatKind::Infinite;
    match (infinite, z.kind) {
        (true, FloatKind::Infinite) if negative != z.negative => return canonical::<F>(flag::NV),
        (true, _) => return exact::<F>(negative, F::INFINITY),
        (_, FloatKind::Infinite) => return Flagged { value: c, flags: 0 },
        _ => {}
    }
    match (x.kind == FloatKind::Zero || y.kind == FloatKind::Zero, z.kind) {
        (true, FloatKind::Zero) if negative != z.negative => zero::<F>(mode),
        (true, _) => Flagged { value: c, flags: 0 },
        (_, FloatKind::Zero) => round::<F>(product(x, y), mode),
        _ => sum::<F>(product(x, y), Exact::of(z), mode),
    }
}

pub(super) fn divide<F: Format>(a: u64, b: u64, mode: u8) -> Flagged {
    let (x, y) = (Unpacked::of::<F>(a), Unpacked::of::<F>(b));
    if let Some(nan) = of_nan::<F>(&[x, y]) {
        return nan;
    }
    let negative = x.negative != y.negative;
    match (x.kind, y.kind) {
        (FloatKind::Infinite, FloatKind::Infinite) | (FloatKind::Zero, FloatKind::Zero) => canonical::<F>(flag::NV),
        (FloatKind::Infinite, _) => exact::<F>(negative, F::INFINITY),
        (FloatKind::Zero, _) | (_, FloatKind::Infinite) => exact::<F>(negative, 0),
        (_, FloatKind::Zero) => Flagged { value: signed::<F>(negative, F::INFINITY), flags: flag::DZ },
        _ => {
            const MORE: i32 = 62;
            let (x, y) = (x.normalised(), y.normalised());
            let (dividend, divisor) = (u128::from(x.significand) << MORE, u128::from(y.significand));
            let quotient = dividend / divisor;
            let rest = u128::from(quotient * divisor != dividend);
            let exponent = x.exponent - y.exponent - MORE - 1;
            round::<F>(Exact { negative, exponent, significand: quotient << 1 | rest }, mode)
        }
    }
}

pub(super) fn square_root<F: Format>(a: u64, mode: u8) -> Flagged {
    let x = Unpacked::of::<F>(a);
    match x.kind {
        FloatKind::Quiet => canonical::<F>(0),
        FloatKind::Signalling => canonical::<F>(flag::NV),
        FloatKind::Zero => Flagged { value: a, flags: 0 },
        _ if x.negative => canonical::<F>(flag::NV),
        FloatKind::Infinite => Flagged { value: a, flags: 0 },
        FloatKind::Finite => {
            let x = x.normalised();
            // The exponent of a square is even.
            let more = 62 + (x.exponent & 1);
            let square = u128::from(x.significand) << more;
            let root = square.isqrt();
            let rest = u128::from(root * root != square);
            let exponent = (x.exponent - more) / 2 - 1;
            round::<F>(Exact { negative: false, exponent, significand: root << 1 | rest }, mode)
        }
    }
}

/// A double as a single.
pub(super) fn narrow(a: u64, mode: u8) -> Flagged {
    let x = Unpacked::of::<Double>(a);
    match x.kind {
        FloatKind::Quiet => canonical::<Single>(0),
        FloatKind::Signalling => canonical::<Single>(flag::NV),
        FloatKind::Infinite => exact::<Single>(x.negative, Single::INFINITY),
        FloatKind::Zero => exact::<Single>(x.negative, 0),
        FloatKind::Finite => round::<Single>(Exact::of(x), mode),
    }
}

/// An integer by its sign and magnitude.
pub(super) fn of_integer<F: Format>(negative: bool, magnitude: u64, mode: u8) -> Flagged {
    match magnitude {
        0 => exact::<F>(false, 0),
        _ => round::<F>(Exact { negative, exponent: 0, significand: magnitude.into() }, mode),
    }
}

/// An integer of the range from `least` to `most`. What lies outside of it, and NaN, is invalid and gives the
/// end of the range that is nearer; NaN the upper one.
pub(super) fn to_integer(value: Unpacked, least: i128, most: i128, mode: u8) -> (i128, u8) {
    let invalid = (if value.negative && !value.is_nan() { least } else { most }, flag::NV);
    let (magnitude, inexact) = match value.kind {
        FloatKind::Zero => return (0, 0),
        FloatKind::Finite if value.exponent <= 64 => {
            dropped(value.negative, value.significand.into(), -value.exponent, mode)
        }
        _ => return invalid,
    };
    let integer = if value.negative { -(magnitude as i128) } else { magnitude as i128 };
    if (least..=most).contains(&integer) { (integer, if inexact { flag::NX } else { 0 }) } else { invalid }
}
