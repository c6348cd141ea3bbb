//! Random numbers that are the same on every host, for ever: PCG XSL-RR 128/64 (O'Neill, HMC-CS-2014-0905),
//! one generator a buffer or graph. They are those of the crate `rand_pcg`, which a test compares, made eight
//! at a time: a state follows from that of some steps before by one multiplication, so that eight of these
//! are under way at once (1 ns a number, one after the other 2.5).
//!
//! The seed is mixed from (manifest's seed, run's seed, the init's own seed, name), so buffers are
//! independent of each other and of their order, and the run's seed changes them all.

/// Numbers that are made at once.
const BLOCK: usize = 8;

/// The generator's multiplier.
const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

/// A generator.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    /// The state whose number is next, when the block has been given out.
    next: u128,
    /// What 1 to `BLOCK` steps multiply a state by, and add to it then.
    steps: [(u128, u128); BLOCK],
    /// The numbers that were made last, and how many of them were given out.
    block: [u64; BLOCK],
    given: usize,
}

/// Seeds that all buffers of a run share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seeds {
    /// The manifest's `seed`.
    pub(crate) manifest: u64,
    /// The run's seed.
    pub(crate) run: u64,
}

impl Random {
    /// The generator of `name` ("buffer A").
    pub(crate) fn new(seeds: Seeds, own: u64, name: &str) -> Self {
        // FNV-1a of the name; then each seed is absorbed by a SplitMix64 step.
        let name = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        let mut state = name;
        let mut absorb = |seed: u64| {
            state = split_mix(state ^ seed);
            state
        };
        let words = [absorb(seeds.manifest), absorb(seeds.run), absorb(own), absorb(1)];
        let wide = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        Random::seeded(wide(words[0], words[2]), wide(words[1], words[3]))
    }

    /// The generator of `Pcg64::new`.
    fn seeded(state: u128, stream: u128) -> Self {
        let increment = stream << 1 | 1;
        let step = |state: u128| state.wrapping_mul(MULTIPLIER).wrapping_add(increment);
        Random::stepping(step(step(state.wrapping_add(increment))), MULTIPLIER, increment)
    }

    /// The generator of `next` and of what follows by this step.
    fn stepping(next: u128, multiplier: u128, increment: u128) -> Self {
        let mut steps = [(multiplier, increment); BLOCK];
        for at in 1..BLOCK {
            let (factor, sum) = steps[at - 1];
            steps[at] = (factor.wrapping_mul(multiplier), sum.wrapping_mul(multiplier).wrapping_add(increment));
        }
        Random { next, steps, block: [0; BLOCK], given: BLOCK }
    }

    /// The numbers to come, dealt out to `N` generators (at most `BLOCK`) in turns: each has every `N`th.
    ///
    /// # Panics
    /// When numbers were taken before.
    pub(crate) fn dealt<const N: usize>(self) -> [Random; N] {
        assert_eq!(self.given, BLOCK, "numbers of the block are left");
        let (multiplier, increment) = self.steps[N - 1];
        let first = |at: usize| at.checked_sub(1).map_or(self.next, |at| self.after(self.steps[at]));
        std::array::from_fn(|at| Random::stepping(first(at), multiplier, increment))
    }

    #[inline]
    fn after(&self, (factor, sum): (u128, u128)) -> u128 {
        self.next.wrapping_mul(factor).wrapping_add(sum)
    }

    /// 64 random bits.
    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        if self.given == BLOCK {
            let mut block = [0; BLOCK];
            self.make(&mut block, |bits| bits);
            (self.block, self.given) = (block, 0);
        }
        self.given += 1;
        self.block[self.given - 1]
    }

    /// Sets each to what `value` makes of the next 64 bits that are not in the block.
    #[inline(always)]
    fn make<T>(&mut self, out: &mut [T; BLOCK], value: impl Fn(u64) -> T) {
        let number = |state: u128| ((state >> 64) as u64 ^ state as u64).rotate_right((state >> 122) as u32);
        let (first, others) = out.split_first_mut().unwrap_or_else(|| unreachable!("a block is not empty"));
        *first = value(number(self.next));
        for (to, step) in others.iter_mut().zip(&self.steps) {
            *to = value(number(self.after(*step)));
        }
        self.next = self.after(self.steps[BLOCK - 1]);
    }

    /// Sets each to what `value` makes of 64 random bits, in their order.
    #[inline]
    pub(crate) fn fill<T>(&mut self, out: &mut [T], value: impl Fn(u64) -> T) {
        // What is left of the last block comes first.
        let (before, out) = out.split_at_mut(out.len().min(BLOCK - self.given));
        before.iter_mut().for_each(|to| *to = value(self.bits()));
        let (blocks, rest) = out.as_chunks_mut();
        blocks.iter_mut().for_each(|block| self.make(block, &value));
        rest.iter_mut().for_each(|to| *to = value(self.bits()));
    }

    /// An integer from 0 to `bound` - 1 (0 for `bound` 0). The bias is below `bound` / 2^64.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        below_of(self.bits(), bound)
    }

    /// A float from 0 (included) to 1 (excluded), a multiple of 2^-53.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        unit_of(self.bits())
    }
}

/// An integer from 0 to `bound` - 1 of these bits.
#[inline]
pub(crate) fn below_of(bits: u64, bound: u64) -> u64 {
    ((u128::from(bits) * u128::from(bound)) >> 64) as u64
}

/// A float from 0 to below 1 of the upper 53 bits.
#[inline]
pub(crate) fn unit_of(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// One step of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
fn split_mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The linear congruential generator of `init = {kind = "lcg"}`, simple enough to write again anywhere: x' =
/// x * 6364136223846793005 + 1442695040888963407 modulo 2^64 (Knuth's MMIX), of which the upper 32 bits are
/// used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lcg(u64);

impl Lcg {
    /// Starts at x = `seed`; the first value is of the x after it.
    pub(crate) fn new(seed: u64) -> Self {
        Lcg(seed)
    }

    /// The next 32 bits.
    pub(crate) fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_pcg::Pcg64;
    use rand_pcg::rand_core::Rng;

    #[test]
    fn numbers_are_those_of_the_crate() {
        for (state, stream) in [(0, 0), (42, 54), (u128::MAX, u128::MAX >> 1), (1 << 100, 3 << 90)] {
            let (mut one, mut other) = (Random::seeded(state, stream), Pcg64::new(state, stream));
            (0..3 * BLOCK).for_each(|_| assert_eq!(one.bits(), other.next_u64()));
        }
    }

    #[test]
    fn many_numbers_are_those_that_come_one_by_one() {
        let mut one = Random::seeded(42, 54);
        let mut other = one.clone();
        for count in [16, 3, 24, 5, 8, 1] {
            let mut many = vec![0; count];
            other.fill(&mut many, |bits| bits);
            many.iter().for_each(|bits| assert_eq!(*bits, one.bits()));
        }
    }

    #[test]
    fn numbers_that_are_dealt_out_are_those_of_one_generator() {
        let mut whole = Random::seeded(42, 54);
        let mut three: [Random; 3] = whole.clone().dealt();
        (0..3 * 20).for_each(|nth| assert_eq!(three[nth % 3].bits(), whole.bits(), "number {nth}"));
    }

    #[test]
    fn the_first_numbers_never_change() {
        let mut random = Random::new(Seeds { manifest: 1, run: 0 }, 0, "buffer A");
        let found = [random.bits(), random.bits(), random.bits()];
        assert_eq!(found, [15_411_361_096_066_966_025, 6_048_440_971_739_976_033, 2_939_197_087_002_808_489]);
        let mut lcg = Lcg::new(7);
        assert_eq!([lcg.next(), lcg.next(), lcg.next()], [2118330556, 4104526463, 3893713506]);
    }

    #[test]
    fn every_seed_and_the_name_matter() {
        let seeds = Seeds { manifest: 1, run: 0 };
        let all = [
            Random::new(seeds, 0, "buffer A").bits(),
            Random::new(Seeds { manifest: 2, ..seeds }, 0, "buffer A").bits(),
            Random::new(Seeds { run: 1, ..seeds }, 0, "buffer A").bits(),
            Random::new(seeds, 1, "buffer A").bits(),
            Random::new(seeds, 0, "buffer B").bits(),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(!all[i + 1..].contains(a), "{all:x?}");
        }
    }

    #[test]
    fn numbers_stay_in_their_range_and_reach_its_ends() {
        let mut random = Random::new(Seeds { manifest: 1, run: 0 }, 0, "range");
        let mut seen = [false; 6];
        for _ in 0..1000 {
            seen[random.below(6) as usize] = true;
            assert!((0.0..1.0).contains(&random.unit()));
        }
        assert_eq!(seen, [true; 6]);
        assert_eq!(random.below(1), 0);
    }
}
