//! Conversions in the five rounding modes, with the exceptions that they raise. To an integer: rounded;
//! outside its range it is invalid, and the end of the range, of a NaN the upper one.

use super::flagged::{Flagged, Rounding};
use super::format::{Double, Format, Single, Unpacked};
use super::nearest;
use super::rounding;

/// Integers that registers hold.
#[derive(Clone, Copy)]
pub(super) enum Integer {
    Word,
    UnsignedWord,
    Long,
    UnsignedLong,
}

/// To an integer. One of 32 bits is sign-extended, as the result of any operation on words.
#[inline]
pub(super) fn to_integer<F: Format>(bits: u64, to: Integer, mode: Rounding) -> Flagged {
    let value = Unpacked::of::<F>(bits);
    let within = |least: i128, most: i128| rounding::to_integer(value, least, most, mode);
    let (value, flags) = match to {
        Integer::Word => within(i32::MIN.into(), i32::MAX.into()),
        Integer::UnsignedWord => {
            let (value, flags) = within(0, u32::MAX.into());
            (i128::from(value as i32), flags)
        }
        Integer::Long => within(i64::MIN.into(), i64::MAX.into()),
        Integer::UnsignedLong => within(0, u64::MAX.into()),
    };
    Flagged { value: value as u64, flags }
}

/// Of an integer.
#[inline]
pub(super) fn of_integer<F: Format>(register: u64, from: Integer, mode: Rounding) -> Flagged {
    let (negative, magnitude) = match from {
        Integer::Word => ((register as i32) < 0, (register as i32).unsigned_abs().into()),
        Integer::UnsignedWord => (false, u64::from(register as u32)),
        Integer::Long => ((register as i64) < 0, (register as i64).unsigned_abs()),
        Integer::UnsignedLong => (false, register),
    };
    rounding::of_integer::<F>(negative, magnitude, mode)
}

/// A double as a single.
#[inline]
pub(super) fn narrowed(bits: u64, mode: Rounding) -> Flagged {
    if mode == Rounding::NearestEven
        && let Some((value, flags)) = nearest::narrow(f64::from_bits(bits))
    {
        return Flagged { value: value.to_bits().into(), flags };
    }
    rounding::narrow(bits, mode)
}

/// A single as a double: exact.
#[inline]
pub(super) fn widened(single: u32) -> Flagged {
    let nan = rounding::of_nan::<Double>(&[Unpacked::of::<Single>(single.into())]);
    nan.unwrap_or(Flagged { value: f64::from(f32::from_bits(single)).to_bits(), flags: 0 })
}
