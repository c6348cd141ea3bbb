//! Canonical results of float arithmetic: one NaN of each precision, denormals flushed to zero.
//!
//! Source: `semantics.rs`, "Choices where the ISA leaves one".

/// The NaN that single-precision arithmetic produces.
pub(super) const NAN32: u32 = 0x7fff_ffff;
/// The NaN that double-precision arithmetic produces.
pub(super) const NAN64: u64 = 0xfff8_0000_0000_0000;

#[inline(always)]
pub(super) fn canon32(x: f32) -> u32 {
    if x.is_nan() { NAN32 } else { x.to_bits() }
}

#[inline(always)]
pub(super) fn canon64(x: f64) -> u64 {
    if x.is_nan() { NAN64 } else { x.to_bits() }
}

/// A denormal becomes a zero of its sign.
#[inline(always)]
pub(super) fn flush(bits: u32) -> u32 {
    if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}
