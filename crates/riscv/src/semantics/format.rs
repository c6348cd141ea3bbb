//! Binary formats of floating point, and values by their parts: sign, exponent, significand.
//!
//! A finite value is significand x 2^exponent. Values are bits of their format, singles in the low half.
//! Source: IEEE 754-2019, clause 3.4.

/// A binary format.
pub(super) trait Format {
    /// Bits of the fraction.
    const FRACTION: u32;
    /// Bits of the exponent.
    const EXPONENT: u32;

    /// Bits of a significand.
    const PRECISION: i32 = Self::FRACTION as i32 + 1;
    /// The exponent of the last place of the smallest numbers.
    const LAST_PLACE_MIN: i32 = 3 - (1 << (Self::EXPONENT - 1)) - Self::PRECISION;
    const SIGN: u64 = 1 << (Self::FRACTION + Self::EXPONENT);
    const INFINITY: u64 = ((1 << Self::EXPONENT) - 1) << Self::FRACTION;
    /// The smallest number that is not subnormal.
    const NORMAL_MIN: u64 = 1 << Self::FRACTION;
    /// Of a NaN: it is quiet.
    const QUIET: u64 = 1 << (Self::FRACTION - 1);
    const CANONICAL_NAN: u64 = Self::INFINITY | Self::QUIET;
}

/// 32 bits.
pub(super) struct Single;
/// 64 bits.
pub(super) struct Double;

impl Format for Single {
    const FRACTION: u32 = 23;
    const EXPONENT: u32 = 8;
}

impl Format for Double {
    const FRACTION: u32 = 52;
    const EXPONENT: u32 = 11;
}

/// What kind of value bits are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FloatKind {
    Zero,
    Finite,
    Infinite,
    Quiet,
    Signalling,
}

/// A value by its parts.
#[derive(Clone, Copy)]
pub(super) struct Unpacked {
    pub(super) negative: bool,
    pub(super) kind: FloatKind,
    pub(super) exponent: i32,
    pub(super) significand: u64,
}

impl Unpacked {
    pub(super) fn of<F: Format>(bits: u64) -> Unpacked {
        let fraction = bits & (F::NORMAL_MIN - 1);
        let biased = (bits & F::INFINITY) >> F::FRACTION;
        let kind = match (bits & F::INFINITY == F::INFINITY, fraction) {
            (true, 0) => FloatKind::Infinite,
            (true, _) if fraction & F::QUIET != 0 => FloatKind::Quiet,
            (true, _) => FloatKind::Signalling,
            (false, 0) if biased == 0 => FloatKind::Zero,
            (false, _) => FloatKind::Finite,
        };
        let significand = if biased == 0 { fraction } else { fraction | F::NORMAL_MIN };
        let exponent = F::LAST_PLACE_MIN + (biased as i32 - 1).max(0);
        Unpacked { negative: bits & F::SIGN != 0, kind, exponent, significand }
    }

    pub(super) fn is_nan(&self) -> bool {
        matches!(self.kind, FloatKind::Quiet | FloatKind::Signalling)
    }

    /// The same with the highest bit of the significand set.
    pub(super) fn normalised(self) -> Unpacked {
        let by = self.significand.leading_zeros();
        Unpacked { exponent: self.exponent - by as i32, significand: self.significand << by, ..self }
    }
}
