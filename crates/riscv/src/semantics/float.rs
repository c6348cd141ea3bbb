//! Floating-point instructions on register values.
//!
//! A register has 64 bits; a single is boxed, with ones in its upper half, and reads as the canonical NaN if
//! it is not. Results that are NaN are canonical. Fused multiply-adds round once. Comparisons for less are
//! invalid with any NaN; those for equality, minimum and maximum with a signalling one.

use super::super::instruction::{Inst, Op, of_classes};
use super::convert::{self, Integer};
use super::flagged::{Flagged, Rounding, flag};
use super::format::{Double, FloatKind, Format, Single, Unpacked};
use super::nearest;
use super::rounding;

/// The canonical NaN of singles.
pub const CANONICAL_NAN_S: u32 = Single::CANONICAL_NAN as u32;
/// The canonical NaN of doubles.
pub const CANONICAL_NAN_D: u64 = Double::CANONICAL_NAN;

/// An operation asked for a rounding mode that is reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReservedRounding(
    /// The mode: 5, 6, or 7 in `fcsr`.
    pub u8,
);

/// A single as a register holds it.
#[inline]
pub(super) fn boxed(single: u32) -> u64 {
    u64::from(single) | 0xffff_ffff_0000_0000
}

#[inline]
fn single_bits(register: u64) -> u32 {
    if register >> 32 == 0xffff_ffff { register as u32 } else { CANONICAL_NAN_S }
}

/// A result in the format of singles.
#[inline]
fn in_box(result: Flagged) -> Flagged {
    Flagged { value: boxed(result.value as u32), ..result }
}

/// Without an exception.
#[inline]
fn quiet(value: u64) -> Flagged {
    Flagged { value, flags: 0 }
}

const SIGN_S: u32 = Single::SIGN as u32;
const SIGN_D: u64 = Double::SIGN;

/// The result of a floating-point instruction that is not a load or store, from its operands and `fcsr`.
///
/// # Errors
/// A rounding mode that is reserved.
///
/// # Panics
/// On an instruction of another class.
#[inline]
pub fn float(inst: &Inst, a: u64, b: u64, c: u64, fcsr: u8) -> Result<Flagged, ReservedRounding> {
    use Op::*;
    // Moves have no mode; their field is part of the operation and decoded as 0.
    let encoding = if inst.rm == Rounding::DYNAMIC { fcsr >> 5 } else { inst.rm };
    let mode = Rounding::decoded(encoding).ok_or(ReservedRounding(encoding))?;
    let [sa, sb, sc] = [a, b, c].map(single_bits);
    Ok(match inst.op {
        FaddS => add_s(sa, sb, mode),
        FsubS => add_s(sa, sb ^ SIGN_S, mode),
        FmulS => multiply_s(sa, sb, mode),
        FmaddS => multiply_add_s(sa, sb, sc, mode),
        FmsubS => multiply_add_s(sa, sb, sc ^ SIGN_S, mode),
        FnmsubS => multiply_add_s(sa ^ SIGN_S, sb, sc, mode),
        FnmaddS => multiply_add_s(sa ^ SIGN_S, sb, sc ^ SIGN_S, mode),
        FdivS => divide_s(sa, sb, mode),
        FsqrtS => square_root_s(sa, mode),
        FaddD => add_d(a, b, mode),
        FsubD => add_d(a, b ^ SIGN_D, mode),
        FmulD => multiply_d(a, b, mode),
        FmaddD => multiply_add_d(a, b, c, mode),
        FmsubD => multiply_add_d(a, b, c ^ SIGN_D, mode),
        FnmsubD => multiply_add_d(a ^ SIGN_D, b, c, mode),
        FnmaddD => multiply_add_d(a ^ SIGN_D, b, c ^ SIGN_D, mode),
        FdivD => divide_d(a, b, mode),
        FsqrtD => square_root_d(a, mode),
        FsgnjS => quiet(boxed(sa & !SIGN_S | sb & SIGN_S)),
        FsgnjnS => quiet(boxed(sa & !SIGN_S | !sb & SIGN_S)),
        FsgnjxS => quiet(boxed(sa ^ sb & SIGN_S)),
        FsgnjD => quiet(a & !SIGN_D | b & SIGN_D),
        FsgnjnD => quiet(a & !SIGN_D | !b & SIGN_D),
        FsgnjxD => quiet(a ^ b & SIGN_D),
        FminS => in_box(lesser::<Single>(sa.into(), sb.into(), 0)),
        FmaxS => in_box(lesser::<Single>(sa.into(), sb.into(), Single::SIGN)),
        FminD => lesser::<Double>(a, b, 0),
        FmaxD => lesser::<Double>(a, b, SIGN_D),
        FeqS => equal::<Single>(sa.into(), sb.into()),
        FltS => less::<Single>(sa.into(), sb.into(), |a, b| a < b),
        FleS => less::<Single>(sa.into(), sb.into(), |a, b| a <= b),
        FeqD => equal::<Double>(a, b),
        FltD => less::<Double>(a, b, |a, b| a < b),
        FleD => less::<Double>(a, b, |a, b| a <= b),
        FclassS => quiet(classified::<Single>(sa.into())),
        FclassD => quiet(classified::<Double>(a)),
        FmvXW => quiet(a as i32 as u64),
        FmvWX => quiet(boxed(a as u32)),
        FmvXD | FmvDX => quiet(a),
        FcvtWS => convert::to_integer::<Single>(sa.into(), Integer::Word, mode),
        FcvtWuS => convert::to_integer::<Single>(sa.into(), Integer::UnsignedWord, mode),
        FcvtLS => convert::to_integer::<Single>(sa.into(), Integer::Long, mode),
        FcvtLuS => convert::to_integer::<Single>(sa.into(), Integer::UnsignedLong, mode),
        FcvtWD => convert::to_integer::<Double>(a, Integer::Word, mode),
        FcvtWuD => convert::to_integer::<Double>(a, Integer::UnsignedWord, mode),
        FcvtLD => convert::to_integer::<Double>(a, Integer::Long, mode),
        FcvtLuD => convert::to_integer::<Double>(a, Integer::UnsignedLong, mode),
        FcvtSW => in_box(convert::of_integer::<Single>(a, Integer::Word, mode)),
        FcvtSWu => in_box(convert::of_integer::<Single>(a, Integer::UnsignedWord, mode)),
        FcvtSL => in_box(convert::of_integer::<Single>(a, Integer::Long, mode)),
        FcvtSLu => in_box(convert::of_integer::<Single>(a, Integer::UnsignedLong, mode)),
        FcvtDW => convert::of_integer::<Double>(a, Integer::Word, mode),
        FcvtDWu => convert::of_integer::<Double>(a, Integer::UnsignedWord, mode),
        FcvtDL => convert::of_integer::<Double>(a, Integer::Long, mode),
        FcvtDLu => convert::of_integer::<Double>(a, Integer::UnsignedLong, mode),
        FcvtSD => in_box(convert::narrowed(a, mode)),
        FcvtDS => convert::widened(sa),
        of_classes!(Alu Mul Div Branch Jump Load Store LoadReserved StoreConditional Amo Fence CacheLine Csr System)
        | of_classes!(Persist Remote Hint Illegal) => unreachable!("{} is not of floating point", inst.op.name()),
    })
}

/// Arithmetic of a format: the host's where it answers.
macro_rules! arithmetic {
    ($float:ty, $bits:ty, $format:ty, $nearest:ident, $result:expr, $add:ident $multiply:ident $multiply_add:ident $divide:ident $square_root:ident) => {
        #[inline]
        fn $add(a: $bits, b: $bits, mode: Rounding) -> Flagged {
            arithmetic!(mode, $nearest::add(a, b), $float, $result, rounding::add::<$format>(a, b))
        }

        #[inline]
        fn $multiply(a: $bits, b: $bits, mode: Rounding) -> Flagged {
            arithmetic!(mode, $nearest::multiply(a, b), $float, $result, rounding::multiply::<$format>(a, b))
        }

        #[inline]
        fn $multiply_add(a: $bits, b: $bits, c: $bits, mode: Rounding) -> Flagged {
            arithmetic!(mode, $nearest::multiply_add(a, b, c), $float, $result, rounding::multiply_add::<$format>(a, b, c))
        }

        #[inline]
        fn $divide(a: $bits, b: $bits, mode: Rounding) -> Flagged {
            arithmetic!(mode, $nearest::divide(a, b), $float, $result, rounding::divide::<$format>(a, b))
        }

        #[inline]
        fn $square_root(a: $bits, mode: Rounding) -> Flagged {
            arithmetic!(mode, $nearest::square_root(a), $float, $result, rounding::square_root::<$format>(a))
        }
    };
    ($mode:ident, $nearest:ident::$fast:ident($($operand:ident),+), $float:ty, $result:expr, rounding::$exact:ident::<$format:ty>($($same:ident),+)) => {{
        if $mode == Rounding::NearestEven
            && let Some((value, flags)) = nearest::$nearest::$fast($(<$float>::from_bits($operand)),+)
        {
            return $result(Flagged { value: u64::from(value.to_bits()), flags });
        }
        $result(rounding::$exact::<$format>($(u64::from($operand)),+, $mode))
    }};
}
arithmetic!(f32, u32, Single, single, in_box, add_s multiply_s multiply_add_s divide_s square_root_s);
arithmetic!(f64, u64, Double, double, std::convert::identity, add_d multiply_d multiply_add_d divide_d square_root_d);

/// Values in their order as integers: -0 before +0.
fn ordered<F: Format>(bits: u64) -> i64 {
    let magnitude = (bits & !F::SIGN) as i64;
    if bits & F::SIGN != 0 { -magnitude - 1 } else { magnitude }
}

/// The minimum of two, or with their signs turned by `sign` the maximum: a number before a NaN, -0 before +0.
fn lesser<F: Format>(a: u64, b: u64, sign: u64) -> Flagged {
    let [x, y] = [a, b].map(Unpacked::of::<F>);
    let value = match (x.is_nan(), y.is_nan()) {
        (true, true) => F::CANONICAL_NAN,
        (true, false) => b,
        (false, true) => a,
        (false, false) if ordered::<F>(a ^ sign) < ordered::<F>(b ^ sign) => a,
        (false, false) => b,
    };
    Flagged { value, flags: rounding::signalled(&[x, y]) }
}

/// Values in their order as integers, with one zero; none of a NaN.
fn comparable<F: Format>(bits: u64) -> Option<i64> {
    let magnitude = (bits & !F::SIGN) as i64;
    let number = if bits & F::SIGN != 0 { -magnitude } else { magnitude };
    (magnitude <= F::INFINITY as i64).then_some(number)
}

fn equal<F: Format>(a: u64, b: u64) -> Flagged {
    match (comparable::<F>(a), comparable::<F>(b)) {
        (Some(a), Some(b)) => quiet((a == b).into()),
        (None, _) | (_, None) => Flagged { value: 0, flags: rounding::signalled(&[a, b].map(Unpacked::of::<F>)) },
    }
}

#[inline]
fn less<F: Format>(a: u64, b: u64, is_so: impl Fn(i64, i64) -> bool) -> Flagged {
    match (comparable::<F>(a), comparable::<F>(b)) {
        (Some(a), Some(b)) => quiet(is_so(a, b).into()),
        (None, _) | (_, None) => Flagged { value: 0, flags: flag::NV },
    }
}

/// The bit that `fclass` sets.
fn classified<F: Format>(bits: u64) -> u64 {
    let value = Unpacked::of::<F>(bits);
    let subnormal = value.significand < F::NORMAL_MIN;
    let (below, above) = match value.kind {
        FloatKind::Infinite => (0, 7),
        FloatKind::Finite if subnormal => (2, 5),
        FloatKind::Finite => (1, 6),
        FloatKind::Zero => (3, 4),
        FloatKind::Signalling => (8, 8),
        FloatKind::Quiet => (9, 9),
    };
    1 << if value.negative { below } else { above }
}
