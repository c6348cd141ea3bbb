//! Dice in place of the wall clock and the host: for tests that want every decision of the driver taken in
//! every way.
//!
//! | decision | the clock takes it by | dice |
//! |---|---|---|
//! | how long a leg is | 1 to 400 ms | 1 to 64 rounds, short ones more often |
//! | one worker or all | what was faster | either |
//! | where components are | what they cost | anywhere, after every second leg |
//! | who runs a loan | who is done first | whose dice fall so; some workers run none of others' |
//! | who comes first to a meeting | what the host does | the same, with pauses |
//!
//! Invariant: dice decide nothing that a run without them could not come to. Of loans and meetings dice only
//! make the rare ways usual: the host has its part in them still.

use std::thread;
use std::time::Duration;

/// A worker that pauses at all pauses so long once in a while: longer than others spin and yield.
const LONG_PAUSE: Duration = Duration::from_micros(120);

/// A source of decisions: splitmix64, the same for the same seed.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// Those of one worker in one leg.
    pub(crate) fn of_worker(seed: u64, worker: usize, round: u64) -> Dice {
        let mut dice = Dice(seed ^ (worker as u64) << 48 ^ round);
        dice.throw();
        dice
    }

    /// Any number.
    pub(crate) fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// True at one of `times` throws on average.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.throw().is_multiple_of(times)
    }

    /// Whether one worker runs the next leg, and for how many rounds.
    pub(crate) fn leg(&mut self, workers: usize) -> (bool, u64) {
        let solo = workers == 1 || self.once_in(4);
        let most = 1 << (self.throw() % 7);
        (solo, 1 + self.throw() % most)
    }

    /// A pause, or none: to let others come first.
    pub(crate) fn pause(&mut self) {
        match self.throw() % 64 {
            0 => thread::sleep(LONG_PAUSE),
            yields @ 1..=16 => (0..yields.div_ceil(4)).for_each(|_| thread::yield_now()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_modes_and_legs_of_every_length_come() {
        let mut dice = Dice::new(7);
        let legs: Vec<_> = (0..4000).map(|_| dice.leg(2)).collect();
        let solo = legs.iter().filter(|(solo, _)| *solo).count();
        assert!((800..1200).contains(&solo), "{solo}");
        for rounds in 1..=64 {
            assert!(legs.iter().any(|leg| leg.1 == rounds), "{rounds}");
        }
        assert!((0..100).all(|_| dice.leg(1).0));
    }

    #[test]
    fn workers_throw_their_own() {
        let throws = |worker, round| Dice::of_worker(5, worker, round).throw();
        assert_eq!(throws(1, 3), throws(1, 3));
        assert!(throws(1, 3) != throws(2, 3) && throws(1, 3) != throws(1, 4));
    }
}
