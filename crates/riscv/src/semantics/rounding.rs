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

use super::flagged::{Flagged, Rounding, flag};
use super::format::FloatKind::{Finite, Infinite, Quiet, Signalling, Zero};
use super::format::{Double, Format, Single, Unpacked};

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
    if operands.iter().any(|operand| operand.kind == Signalling) { flag::NV } else { 0 }
}

fn signed<F: Format>(negative: bool, magnitude: u64) -> u64 {
    magnitude | if negative { F::SIGN } else { 0 }
}

fn exact<F: Format>(negative: bool, magnitude: u64) -> Flagged {
    Flagged { value: signed::<F>(negative, magnitude), flags: 0 }
}

/// A significand without its lowest bits, rounded, and whether that changed it.
pub(super) fn dropped(negative: bool, significand: u128, bits: i32, mode: Rounding) -> (u128, bool) {
    if bits <= 0 {
        return (significand << -bits, false);
    }
    // Nothing that is dropped has more than 127 bits: with 127 or more of them it is less than a half.
    let (kept, rest, half) = match bits {
        127.. => (0, u128::from(significand != 0), 2),
        _ => (significand >> bits, significand & ((1 << bits) - 1), 1 << (bits - 1)),
    };
    let up = match mode {
        Rounding::NearestEven => rest > half || rest == half && kept & 1 == 1,
        Rounding::TowardsZero => false,
        Rounding::Down => negative && rest != 0,
        Rounding::Up => !negative && rest != 0,
        Rounding::NearestAway => rest >= half,
    };
    (kept + u128::from(up), rest != 0)
}

/// Rounds a value that is not zero. Its lowest bit may stand for others below it if it has two bits more than
/// the format.
fn round<F: Format>(value: Exact, mode: Rounding) -> Flagged {
    let Exact { negative, exponent, significand } = value;
    let length = 128 - significand.leading_zeros() as i32;
    let excess = length - F::PRECISION;
    let place = (exponent + excess).max(F::LAST_PLACE_MIN);
    let (kept, inexact) = dropped(negative, significand, place - exponent, mode);
    // A significand of full length adds one to the exponent, and so does a carry out of it.
    let magnitude = (((place - F::LAST_PLACE_MIN) as u64) << F::FRACTION) + kept as u64;
    if magnitude >= F::INFINITY {
        let to_infinity = match mode {
            Rounding::TowardsZero => false,
            Rounding::Down => negative,
            Rounding::Up => !negative,
            Rounding::NearestEven | Rounding::NearestAway => true,
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
fn sum<F: Format>(a: Exact, b: Exact, mode: Rounding) -> Flagged {
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
fn zero<F: Format>(mode: Rounding) -> Flagged {
    exact::<F>(mode == Rounding::Down, 0)
}

pub(super) fn add<F: Format>(a: u64, b: u64, mode: Rounding) -> Flagged {
    let (x, y) = (Unpacked::of::<F>(a), Unpacked::of::<F>(b));
    match (x.kind, y.kind) {
        (Quiet | Signalling, _) | (_, Quiet | Signalling) => canonical::<F>(signalled(&[x, y])),
        (Infinite, Infinite) if x.negative != y.negative => canonical::<F>(flag::NV),
        (Infinite, _) => Flagged { value: a, flags: 0 },
        (_, Infinite) => Flagged { value: b, flags: 0 },
        (Zero, Zero) if x.negative != y.negative => zero::<F>(mode),
        (Zero, _) => Flagged { value: b, flags: 0 },
        (_, Zero) => Flagged { value: a, flags: 0 },
        (Finite, Finite) => sum::<F>(Exact::of(x), Exact::of(y), mode),
    }
}

pub(super) fn multiply<F: Format>(a: u64, b: u64, mode: Rounding) -> Flagged {
    let (x, y) = (Unpacked::of::<F>(a), Unpacked::of::<F>(b));
    let negative = x.negative != y.negative;
    match (x.kind, y.kind) {
        (Quiet | Signalling, _) | (_, Quiet | Signalling) => canonical::<F>(signalled(&[x, y])),
        (Infinite, Zero) | (Zero, Infinite) => canonical::<F>(flag::NV),
        (Infinite, _) | (_, Infinite) => exact::<F>(negative, F::INFINITY),
        (Zero, _) | (_, Zero) => exact::<F>(negative, 0),
        (Finite, Finite) => round::<F>(product(x, y), mode),
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
pub(super) fn multiply_add<F: Format>(a: u64, b: u64, c: u64, mode: Rounding) -> Flagged {
    let [x, y, z] = [a, b, c].map(Unpacked::of::<F>);
    let negative = x.negative != y.negative;
    let product_kind = match (x.kind, y.kind) {
        // Invalid, whatever is added to it.
        (Infinite, Zero) | (Zero, Infinite) => return canonical::<F>(flag::NV),
        (Quiet | Signalling, _) | (_, Quiet | Signalling) => Quiet,
        (Infinite, _) | (_, Infinite) => Infinite,
        (Zero, _) | (_, Zero) => Zero,
        (Finite, Finite) => Finite,
    };
    match (product_kind, z.kind) {
        (Quiet | Signalling, _) | (_, Quiet | Signalling) => canonical::<F>(signalled(&[x, y, z])),
        (Infinite, Infinite) if negative != z.negative => canonical::<F>(flag::NV),
        (Infinite, _) => exact::<F>(negative, F::INFINITY),
        (_, Infinite) => Flagged { value: c, flags: 0 },
        (Zero, Zero) if negative != z.negative => zero::<F>(mode),
        (Zero, _) => Flagged { value: c, flags: 0 },
        (Finite, Zero) => round::<F>(product(x, y), mode),
        (Finite, Finite) => sum::<F>(product(x, y), Exact::of(z), mode),
    }
}

pub(super) fn divide<F: Format>(a: u64, b: u64, mode: Rounding) -> Flagged {
    let (x, y) = (Unpacked::of::<F>(a), Unpacked::of::<F>(b));
    let negative = x.negative != y.negative;
    match (x.kind, y.kind) {
        (Quiet | Signalling, _) | (_, Quiet | Signalling) => canonical::<F>(signalled(&[x, y])),
        (Infinite, Infinite) | (Zero, Zero) => canonical::<F>(flag::NV),
        (Infinite, _) => exact::<F>(negative, F::INFINITY),
        (Zero, _) | (_, Infinite) => exact::<F>(negative, 0),
        (_, Zero) => Flagged { value: signed::<F>(negative, F::INFINITY), flags: flag::DZ },
        (Finite, Finite) => {
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

pub(super) fn square_root<F: Format>(a: u64, mode: Rounding) -> Flagged {
    let x = Unpacked::of::<F>(a);
    match x.kind {
        Quiet | Signalling => canonical::<F>(signalled(&[x])),
        Zero => Flagged { value: a, flags: 0 },
        Infinite | Finite if x.negative => canonical::<F>(flag::NV),
        Infinite => Flagged { value: a, flags: 0 },
        Finite => {
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
pub(super) fn narrow(a: u64, mode: Rounding) -> Flagged {
    let x = Unpacked::of::<Double>(a);
    match x.kind {
        Quiet | Signalling => canonical::<Single>(signalled(&[x])),
        Infinite => exact::<Single>(x.negative, Single::INFINITY),
        Zero => exact::<Single>(x.negative, 0),
        Finite => round::<Single>(Exact::of(x), mode),
    }
}

/// An integer by its sign and magnitude.
pub(super) fn of_integer<F: Format>(negative: bool, magnitude: u64, mode: Rounding) -> Flagged {
    match magnitude {
        0 => exact::<F>(false, 0),
        _ => round::<F>(Exact { negative, exponent: 0, significand: magnitude.into() }, mode),
    }
}

/// An integer of the range from `least` to `most`. What lies outside of it, and NaN, is invalid and gives the
/// end of the range that is nearer; NaN the upper one.
pub(super) fn to_integer(value: Unpacked, least: i128, most: i128, mode: Rounding) -> (i128, u8) {
    let invalid = (if value.negative && !value.is_nan() { least } else { most }, flag::NV);
    let (magnitude, inexact) = match value.kind {
        Zero => return (0, 0),
        Finite if value.exponent <= 64 => dropped(value.negative, value.significand.into(), -value.exponent, mode),
        Finite | Infinite | Quiet | Signalling => return invalid,
    };
    let integer = if value.negative { -(magnitude as i128) } else { magnitude as i128 };
    if (least..=most).contains(&integer) { (integer, if inexact { flag::NX } else { 0 }) } else { invalid }
}
