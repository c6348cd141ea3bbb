//! Exact simulated time: ticks, clocks, and their conversion.
//!
//! One tick is 1 / lcm(all clock frequencies), so every clock edge of every domain is an exact integer and no
//! rounding ever accumulates. Wall-clock units (ns) convert once, when a machine is built.
//!
//! Not modelled: clocks that change frequency during a run, phase offsets between domains (all have an edge
//! at 0).

use durawarp_checkpoint::value;

/// Simulated time, and durations, in ticks of the machine's [`Timebase`].
pub type Time = u64;

/// The tick rate of a machine: the least common multiple of its clock frequencies.
///
/// ```
/// use durawarp_engine::Timebase;
/// let base = Timebase::of_khz(&[1_800_000, 1_400_000, 1_200_000]).unwrap();
/// assert_eq!(base.tick_khz(), 25_200_000); // 25.2 GHz
/// assert_eq!(base.clock(1_800_000).period_ticks(), 14);
/// assert_eq!(base.ticks_of_ps(160_000), 4032); // 160 ns
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timebase {
    tick_khz: u64,
}

impl Timebase {
    /// The timebase of these clock frequencies, in kHz.
    ///
    /// Returns `None` when a frequency is 0, the list is empty, or the common multiple exceeds 2^53 kHz.
    pub fn of_khz(frequencies_khz: &[u64]) -> Option<Self> {
        fn gcd(a: u64, b: u64) -> u64 {
            if b == 0 { a } else { gcd(b, a % b) }
        }
        let mut tick_khz: u64 = 1;
        for &f in frequencies_khz {
            if f == 0 {
                return None;
            }
            tick_khz = (tick_khz / gcd(tick_khz, f)).checked_mul(f).filter(|&khz| khz <= 1 << 53)?;
        }
        (!frequencies_khz.is_empty()).then_some(Timebase { tick_khz })
    }

    /// Frequencies near these, in kHz, that have a timebase: each rounded to the finest grid (1, 2, 5, 10,
    /// 20, 50 ... kHz) on which all of them have one. `None` for a frequency of 0 or an empty list.
    pub fn nearest_khz(frequencies_khz: &[u64]) -> Option<Vec<u64>> {
        // On a grid of 1 GHz and more, frequencies are small multiples of it: one of these fits any real
        // clocks.
        let grids = (0..=9).flat_map(|zeros| [1, 2, 5].map(|digit| digit * 10u64.pow(zeros)));
        let rounded = |grid: u64| frequencies_khz.iter().map(move |&f| ((f + grid / 2) / grid).max(1) * grid).collect();
        let possible = !frequencies_khz.is_empty() && !frequencies_khz.contains(&0);
        grids.map(rounded).find(|near: &Vec<u64>| possible && Timebase::of_khz(near).is_some())
    }

    /// Ticks per millisecond, that is, the tick frequency in kHz.
    pub fn tick_khz(self) -> u64 {
        self.tick_khz
    }

    /// The clock of a frequency in kHz that this timebase was built from.
    ///
    /// # Panics
    /// When the frequency does not divide the tick rate: it was not in the list the timebase was built from.
    pub fn clock(self, frequency_khz: u64) -> Clock {
        assert!(
            frequency_khz > 0 && self.tick_khz.is_multiple_of(frequency_khz),
            "{frequency_khz} kHz does not divide the tick rate of {} kHz",
            self.tick_khz
        );
        Clock::of_period(self.tick_khz / frequency_khz)
    }

    /// A duration in picoseconds as ticks, rounded up to a whole tick.
    pub fn ticks_of_ps(self, ps: u64) -> Time {
        (u128::from(ps) * u128::from(self.tick_khz)).div_ceil(1_000_000_000) as Time
    }

    /// A time in ticks as picoseconds, rounded to the nearest.
    pub fn ps_of_ticks(self, ticks: Time) -> u64 {
        ((u128::from(ticks) * 1_000_000_000 + u128::from(self.tick_khz) / 2) / u128::from(self.tick_khz)) as u64
    }
}

/// A clock domain: edges at every multiple of its period, from tick 0 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    period: Time,
    /// 2^64 / period, rounded up: a multiplication in place of a division, exact for times below
    /// `exact_below`.
    reciprocal: u64,
    exact_below: Time,
}

value!(record Clock { period, reciprocal, exact_below });

impl Clock {
    /// A clock with this period in ticks.
    ///
    /// # Panics
    /// When the period is 0.
    pub fn of_period(period: Time) -> Self {
        assert!(period > 0, "a clock's period is at least one tick");
        // With e = reciprocal * period - 2^64 < period, t * reciprocal / 2^64 exceeds t / period by t * e /
        // (period * 2^64), less than t / 2^64: too little to reach the next integer while t < 2^64 / period.
        let reciprocal = if period == 1 { 0 } else { u64::MAX / period + 1 };
        Clock { period, reciprocal, exact_below: if period == 1 { 0 } else { u64::MAX / period } }
    }

    /// Ticks from one edge to the next.
    pub fn period_ticks(self) -> Time {
        self.period
    }

    /// The duration of `cycles` cycles in ticks.
    #[inline]
    pub fn cycles(self, cycles: u64) -> Time {
        cycles * self.period
    }

    /// The earliest edge at or after `t`.
    #[inline]
    pub fn edge_at_or_after(self, t: Time) -> Time {
        self.cycle_at_or_after(t) * self.period
    }

    /// The number of the earliest cycle whose edge is at or after `t`.
    #[inline]
    pub fn cycle_at_or_after(self, t: Time) -> u64 {
        let passed = self.cycle_of(t);
        passed + u64::from(passed * self.period != t)
    }

    /// The earliest edge strictly after `t`.
    pub fn edge_after(self, t: Time) -> Time {
        self.edge_at_or_after(t + 1)
    }

    /// How many whole cycles have passed at `t`.
    #[inline]
    pub fn cycle_of(self, t: Time) -> u64 {
        if t < self.exact_below {
            ((u128::from(t) * u128::from(self.reciprocal)) >> 64) as u64
        } else {
            t / self.period
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edge_of_the_paper_machine_is_an_integer() {
        let base = Timebase::of_khz(&[1_800_000, 1_400_000, 1_200_000]).unwrap();
        let periods = [1_800_000, 1_400_000, 1_200_000].map(|f| base.clock(f).period_ticks());
        assert_eq!(periods, [14, 18, 21]);
    }

    #[test]
    fn an_edge_is_its_own_edge_at_or_after_but_not_its_edge_after() {
        let clock = Clock::of_period(14);
        assert_eq!(clock.edge_at_or_after(28), 28);
        assert_eq!(clock.edge_at_or_after(29), 42);
        assert_eq!(clock.edge_after(28), 42);
        assert_eq!(clock.edge_after(27), 28);
    }

    #[test]
    fn cycles_are_counted_as_by_division() {
        for period in [1u64, 2, 3, 7, 14, 18, 21, 64, 12_345, 1 << 40] {
            let clock = Clock::of_period(period);
            for multiple in
                [0u64, 1, 2, 1000, 123_456_789, (1 << 40) / period, u64::MAX / period / 2, u64::MAX / period]
            {
                let Some(edge) = period.checked_mul(multiple) else { continue };
                for t in [edge, edge.saturating_add(1), edge.saturating_sub(1)] {
                    assert_eq!(clock.cycle_of(t), t / period, "{t} of {period}");
                    if let Some(edge) = t.checked_next_multiple_of(period) {
                        assert_eq!((clock.edge_at_or_after(t), clock.cycle_at_or_after(t)), (edge, edge / period));
                    }
                }
            }
        }
    }

    #[test]
    fn picoseconds_round_up_to_whole_ticks_and_come_back() {
        let base = Timebase::of_khz(&[1_417_000, 2_500_000]).unwrap();
        assert_eq!(base.tick_khz(), 3_542_500_000);
        assert_eq!(base.ticks_of_ps(1), 4);
        assert_eq!(base.ps_of_ticks(base.ticks_of_ps(160_000)), 160_000);
    }

    #[test]
    fn impossible_frequencies_are_refused() {
        assert_eq!(Timebase::of_khz(&[]), None);
        assert_eq!(Timebase::of_khz(&[0]), None);
        assert_eq!(Timebase::of_khz(&[999_999_937, 999_999_893, 999_999_883]), None);
    }
}
