//! Arithmetic to nearest even by the host's, with the exceptions that it raises, where these are cheap to
//! know: operands and result are ordinary numbers. Elsewhere there is no answer, and
//! [`rounding`](super::rounding) has it: NaN, infinities, overflow, results that are or were subnormal.
//!
//! Whether a result is exact follows from its own value. Of a sum it is the error that two more sums tell
//! (Knuth's TwoSum). A product is its highest bit down to a lowest one, which is that of one operand times
//! that of the other: it is exact if its last place does not lie above. A quotient, or root, is exact if what
//! it was made of comes back, looked at without trailing zeros. Invariant: an answer is that of
//! [`rounding`](super::rounding).

/// The hardware has it in one instruction; elsewhere the same bits are computed.
const FMA: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));

/// The bits of a number that is neither zero nor infinite.
trait Bits {
    /// The exponent as it is encoded, 0 of a subnormal number.
    fn biased(self) -> i32;
    /// The significand without trailing zeros, as an integer.
    fn odd(self) -> u64;
    /// The exponent of the lowest bit that is set, counted from the last place of the smallest number.
    fn lowest(self) -> i32;
    /// The exponent of the last place, counted in the same way.
    fn last_place(self) -> i32;
}

macro_rules! bits {
    ($float:ty, $bits:ty) => {
        impl Bits for $float {
            #[inline]
            fn biased(self) -> i32 {
                (self.abs().to_bits() >> (<$float>::MANTISSA_DIGITS - 1)) as i32
            }

            #[inline]
            fn odd(self) -> u64 {
                const HIDDEN: $bits = 1 << (<$float>::MANTISSA_DIGITS - 1);
                let fraction = self.to_bits() & (HIDDEN - 1);
                let significand = u64::from(fraction | if self.biased() > 0 { HIDDEN } else { 0 });
                significand >> significand.trailing_zeros()
            }

            #[inline]
            fn lowest(self) -> i32 {
                // Above the fraction of a normal number is a bit that is set, of any other there is one in
                // it.
                let fraction = self.to_bits() | 1 << (<$float>::MANTISSA_DIGITS - 1);
                self.last_place() + fraction.trailing_zeros() as i32
            }

            #[inline]
            fn last_place(self) -> i32 {
                self.biased().max(1) - 1
            }
        }
    };
}
bits!(f32, u32);
bits!(f64, u64);

macro_rules! nearest {
    ($module:ident, $float:ty, $fused:path) => {
        pub(super) mod $module {
            use crate::semantics::flagged::flag;
            use crate::semantics::nearest::{Bits, FMA};

            /// A result that was not subnormal before it was rounded, nor overflows.
            #[inline]
            pub(super) fn is_ordinary(value: $float) -> bool {
                let magnitude = value.abs();
                magnitude > <$float>::MIN_POSITIVE && magnitude < <$float>::INFINITY
            }

            #[inline]
            pub(super) fn flags(exact: bool) -> u8 {
                if exact { 0 } else { flag::NX }
            }

            /// The exponent of a product's lowest bit.
            #[inline]
            fn lowest_of_product(a: $float, b: $float) -> i32 {
                // What exponents are counted from is in the sum twice.
                const FROM: i32 = <$float>::MIN_EXP - <$float>::MANTISSA_DIGITS as i32;
                a.lowest() + b.lowest() + FROM
            }

            #[inline]
            pub(in super::super) fn add(a: $float, b: $float) -> Option<($float, u8)> {
                let sum = a + b;
                let of_b = sum - a;
                let error = (a - (sum - of_b)) + (b - of_b);
                // A sum that is subnormal is exact.
                error.is_finite().then_some((sum, flags(error == 0.0)))
            }

            #[inline]
            pub(in super::super) fn multiply(a: $float, b: $float) -> Option<($float, u8)> {
                let product = a * b;
                is_ordinary(product).then(|| (product, flags(lowest_of_product(a, b) >= product.last_place())))
            }

            /// a x b + c.
            #[inline]
            pub(in super::super) fn multiply_add(a: $float, b: $float, c: $float) -> Option<($float, u8)> {
                let value = if FMA { a.mul_add(b, c) } else { $fused(a, b, c) };
                if !is_ordinary(value) || a == 0.0 || b == 0.0 || c == 0.0 {
                    return None;
                }
                let (of_product, of_c) = (lowest_of_product(a, b), c.lowest());
                // Where the lowest bits meet they cancel, and the sum's lowest bit is a higher one.
                (of_product != of_c).then(|| (value, flags(of_product.min(of_c) >= value.last_place())))
            }

            #[inline]
            pub(in super::super) fn divide(a: $float, b: $float) -> Option<($float, u8)> {
                let quotient = a / b;
                let is_exact = || u128::from(quotient.odd()) * u128::from(b.odd()) == u128::from(a.odd());
                (is_ordinary(quotient) && is_ordinary(b)).then(|| (quotient, flags(is_exact())))
            }

            #[inline]
            pub(in super::super) fn square_root(a: $float) -> Option<($float, u8)> {
                let root = a.sqrt();
                let is_exact = || u128::from(root.odd()) * u128::from(root.odd()) == u128::from(a.odd());
                is_ordinary(root).then(|| (root, flags(is_exact())))
            }
        }
    };
}
nearest!(single, f32, libm::fmaf);
nearest!(double, f64, libm::fma);

/// A double as a single.
#[inline]
pub(super) fn narrow(a: f64) -> Option<(f32, u8)> {
    let value = a as f32;
    single::is_ordinary(value).then(|| (value, single::flags(f64::from(value) == a)))
}
