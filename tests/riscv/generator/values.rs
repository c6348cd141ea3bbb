//! Random numbers, and the values that registers and memory begin with: many of them at the limits of
//! formats, at ties of rounding and at operands that have results of their own.

#[rustfmt::skip]
const INTEGERS: [u64; 32] = [
    0, 1, 2, 3, 31, 32, 63, 64, 0x7f, 0x80, 0x7ff, 0x7fff, 0x8000, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff,
    0x1_0000_0000, i64::MAX as u64, i64::MIN as u64, i64::MIN as u64 + 1, 0xffff_ffff_8000_0000,
    0xffff_ffff_7fff_ffff, u64::MAX, u64::MAX - 1, 0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210, (1 << 24) + 1,
    (1 << 53) + 1, (1 << 25) + 6, (1 << 54) + 4, (1 << 54) + 12, 0x00ff_00ff_00ff_00ff,
];

#[rustfmt::skip]
const DOUBLES: [f64; 36] = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.5, 1e-310, -5e-324, 1e308, -1.7e308, f64::INFINITY,
    f64::NEG_INFINITY, 2147483647.0, 2147483648.0, -2147483648.5, -2147483649.0, 4294967295.5, 4294967296.0, 9.3e18,
    1.9e19, -9.3e18, 7.38905609893065, 1.0000000000000002, 1.1754943508222875e-38, 1e-45, 7e-46, 3.5e38,
    3.4028235e38, 3.4028235677973366e38, 16777217.0, 1.0000000596046448, -1.0000001788139343,
];

#[rustfmt::skip]
const SINGLES: [f32; 23] = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-45, -1e-40, 3.4e38, -3.4e38, f32::INFINITY, f32::NEG_INFINITY,
    2147483648.0, -2147483648.0, 4294967040.0, 4294967296.0, 9.2e18, 1.9e19, 7.389056, 1.0000001,
];

#[rustfmt::skip]
const NANS: [u64; 8] = [
    0x7ff8_0000_0000_0000, 0xfff8_0000_0000_0000, 0x7ff0_0000_0000_0001, 0x7ff8_0000_0000_1234, 0xffff_ffff_7fc0_0000,
    0xffff_ffff_ffc0_0000, 0xffff_ffff_7f80_0001, 0xffff_ffff_7fc0_1234,
];

/// SplitMix64.
pub(crate) struct Random(pub(super) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn below(&mut self, end: u32) -> u32 {
        (self.next() >> 32) as u32 % end
    }

    pub(crate) fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u32) as usize]
    }

    /// A value for a register of either kind.
    pub(super) fn value(&mut self) -> u64 {
        match self.below(16) {
            0..6 => self.of(&INTEGERS),
            6..9 => self.of(&DOUBLES).to_bits(),
            9..11 => u64::from(self.of(&SINGLES).to_bits()) | 0xffff_ffff << 32,
            11 => self.of(&NANS),
            12 => self.next() >> self.below(64),
            // A double and a single near 1, that round.
            13 => self.next() >> 12 | u64::from(0x3f0 + self.below(32)) << 52 | (self.next() & 1) << 63,
            14 => u64::from(self.below(1 << 23) | (0x70 + self.below(32)) << 23) | 0xffff_ffff << 32,
            _ => self.next(),
        }
    }
}
