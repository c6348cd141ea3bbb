//! One worker or many: keeps the faster, by trying the other now and then. Pure arithmetic over what was
//! measured.
//!
//! ```text
//!   solo 1 ms ─> crew 2 ms ─> faster? ─> stay 25 ms ─> try the other 2 ms ─> faster? ─> stay 50 ms ─> ... 400 ms
//! ```
//! Windows with little work cost more in the barrier than two threads save, and how much work a window holds
//! changes as the model runs (a kernel's tail, a drain). So neither is decided beforehand. The time between
//! tries doubles while the answer stays the same: trying costs less than 2 % even when the other way is ten
//! times slower. Where a try takes longer, since its rounds do, all stays are as many times longer. Other
//! processes disturb measurements: a stay's rate is an average, and a try must win twice.
//!
//! Invariant: results never depend on what is decided here.

use std::mem;
use std::time::Duration;

use super::rounds::{Budget, Least, Pace};
use crate::options::Fallback;

/// How the next leg is to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Solo,
    Crew,
}

impl Mode {
    fn other(self) -> Mode {
        match self {
            Mode::Solo => Mode::Crew,
            Mode::Crew => Mode::Solo,
        }
    }
}

const FIRST: Duration = Duration::from_millis(1);
const WARM_UP: Duration = Duration::from_micros(500);
const TRY: Duration = Duration::from_millis(2);
/// A try has this many rounds at least, or events: where a round takes milliseconds (a cluster), one by
/// itself says little.
const TRY_LEAST: Least = Least { rounds: 16, events: 1 << 14 };
const SHORTEST_STAY: Duration = Duration::from_millis(25);
const LONGEST_STAY: Duration = Duration::from_millis(400);
/// A leg of a stay: between legs, balance is looked at.
const LEG: Duration = Duration::from_millis(25);
/// The crew must be this much faster to be preferred: it keeps cores busy that others could use.
const WORTH: f64 = 1.05;

/// What one more leg of a stay counts for, against all before it: one that another process disturbed must
/// not decide.
const NEW_LEG: f64 = 0.25;

/// Decides leg by leg.
#[derive(Debug)]
pub(crate) struct Chooser {
    fallback: Fallback,
    mode: Mode,
    /// Whether the current leg is a try of the mode that is not preferred.
    trying: bool,
    /// The try won once; it must win twice.
    won: bool,
    /// Events a second as lately measured.
    solo_rate: Option<f64>,
    crew_rate: Option<f64>,
    /// Until the next try, where a try takes [`TRY`].
    stay: Duration,
    left_of_stay: Duration,
    /// What the last try of one worker, and of the crew, took.
    tries: [Duration; 2],
    /// How often the crew was given up.
    pub(crate) fallbacks: u64,
}

impl Chooser {
    /// `workers` can run at a time.
    pub(crate) fn new(fallback: Fallback, workers: usize) -> Self {
        let solo = workers == 1 || fallback != Fallback::Never;
        Chooser {
            fallback: if workers == 1 { Fallback::Never } else { fallback },
            mode: if solo { Mode::Solo } else { Mode::Crew },
            trying: true,
            won: false,
            solo_rate: None,
            crew_rate: None,
            stay: SHORTEST_STAY,
            left_of_stay: Duration::ZERO,
            tries: [TRY; 2],
            fallbacks: 0,
        }
    }

    /// How to run the next leg, and for how long.
    pub(crate) fn next(&self) -> (Mode, Budget) {
        let budget = match self.fallback {
            Fallback::Forced { rounds } => Budget {
                warm_up: Duration::ZERO,
                measured: Duration::MAX,
                least: Least::default(),
                rounds: rounds.max(1),
            },
            Fallback::Never => {
                Budget { warm_up: Duration::ZERO, measured: LEG, least: Least::default(), rounds: u64::MAX }
            }
            Fallback::Measured if self.solo_rate.is_none() => {
                Budget { warm_up: Duration::ZERO, measured: FIRST, least: TRY_LEAST, rounds: u64::MAX }
            }
            Fallback::Measured if self.trying => {
                Budget { warm_up: WARM_UP, measured: TRY, least: TRY_LEAST, rounds: u64::MAX }
            }
            Fallback::Measured => Budget {
                warm_up: Duration::ZERO,
                measured: LEG.min(self.left_of_stay),
                least: Least::default(),
                rounds: u64::MAX,
            },
        };
        (self.mode, budget)
    }

    /// Learns what the leg came to.
    pub(crate) fn learn(&mut self, pace: Pace) {
        match self.fallback {
            Fallback::Never => return,
            Fallback::Forced { .. } => {
                self.mode = self.mode.other();
                self.fallbacks += u64::from(self.mode == Mode::Solo);
                return;
            }
            Fallback::Measured => {}
        }
        if pace.events > 0 && !pace.elapsed.is_zero() {
            let rate = pace.events as f64 / pace.elapsed.as_secs_f64();
            let known = match self.mode {
                Mode::Solo => &mut self.solo_rate,
                Mode::Crew => &mut self.crew_rate,
            };
            *known = Some(match *known {
                Some(before) if !self.trying => before + NEW_LEG * (rate - before),
                _ => rate,
            });
        }
        if !self.trying {
            self.left_of_stay = self.left_of_stay.saturating_sub(pace.elapsed);
            if self.left_of_stay < TRY {
                (self.mode, self.trying) = (self.mode.other(), true);
            }
            return;
        }
        self.tries[self.mode as usize] = pace.elapsed;
        let (Some(solo), Some(crew)) = (self.solo_rate, self.crew_rate) else {
            // Nothing to compare with yet: try the other, unless this leg measured nothing.
            self.mode = if self.solo_rate.is_some() { Mode::Crew } else { Mode::Solo };
            return;
        };
        let better = if crew > WORTH * solo { Mode::Crew } else { Mode::Solo };
        // Once may be chance: the rate of the other way is an average, that of a try is not.
        if better == self.mode && !mem::replace(&mut self.won, true) {
            return;
        }
        self.won = false;
        if better == self.mode {
            self.stay = SHORTEST_STAY; // the try won: look again soon
            self.fallbacks += u64::from(better == Mode::Solo);
        } else {
            self.stay = (self.stay * 2).min(LONGEST_STAY);
        }
        let longer = self.tries[better.other() as usize].div_duration_f64(TRY).max(1.0);
        (self.mode, self.trying, self.left_of_stay) = (better, false, self.stay.mul_f64(longer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs legs of a model with these rates (events a ms); returns the share of time in the crew.
    fn share_of_crew(chooser: &mut Chooser, ms: u64, solo: u64, crew: u64) -> f64 {
        share_of_rounds(chooser, ms, solo, crew, 1)
    }

    /// The same, of a model with so many events a round.
    fn share_of_rounds(chooser: &mut Chooser, ms: u64, solo: u64, crew: u64, round: u64) -> f64 {
        let (mut in_crew, mut total) = (Duration::ZERO, Duration::ZERO);
        while total < Duration::from_millis(ms) {
            let (mode, budget) = chooser.next();
            let rate = if mode == Mode::Crew { crew } else { solo };
            let rounds = budget.least.rounds.min(budget.least.events.div_ceil(round));
            let least = Duration::from_micros(rounds * round * 1000 / rate);
            let elapsed = budget.measured.max(least);
            let events = elapsed.as_micros() as u64 * rate / 1000;
            chooser.learn(Pace { events, elapsed });
            let spent = elapsed + budget.warm_up;
            total += spent;
            in_crew += if mode == Mode::Crew { spent } else { Duration::ZERO };
        }
        in_crew.as_secs_f64() / total.as_secs_f64()
    }

    #[test]
    fn the_faster_way_is_kept_and_the_other_hardly_tried() {
        let mut chooser = Chooser::new(Fallback::Measured, 2);
        assert!(share_of_crew(&mut chooser, 4000, 10_000, 1_000) < 0.02);
        let mut chooser = Chooser::new(Fallback::Measured, 2);
        assert!(share_of_crew(&mut chooser, 4000, 10_000, 19_000) > 0.98);
    }

    #[test]
    fn tries_of_long_rounds_are_as_much_rarer() {
        // A cluster: 2.5 ms a round of one worker, so that a try of it takes 40 ms.
        let share = |ms| share_of_rounds(&mut Chooser::new(Fallback::Measured, 2), ms, 2_400, 4_400, 6_000);
        let (short, long) = (share(1_000), share(10_000));
        assert!(short > 0.9 && long > 0.97, "{short} {long}");
        let mut chooser = Chooser::new(Fallback::Measured, 2);
        assert!(share_of_rounds(&mut chooser, 10_000, 4_400, 2_400, 6_000) < 0.03);
    }

    #[test]
    fn a_change_of_the_model_changes_the_way() {
        let mut chooser = Chooser::new(Fallback::Measured, 2);
        share_of_crew(&mut chooser, 4000, 10_000, 19_000);
        share_of_crew(&mut chooser, 1000, 10_000, 1_000);
        assert!(share_of_crew(&mut chooser, 1000, 10_000, 1_000) < 0.05);
        share_of_crew(&mut chooser, 1000, 10_000, 19_000);
        assert!(share_of_crew(&mut chooser, 1000, 10_000, 19_000) > 0.95);
    }

    #[test]
    fn one_worker_has_no_choice_and_never_none_either() {
        let mut alone = Chooser::new(Fallback::Measured, 1);
        assert_eq!(share_of_crew(&mut alone, 100, 1, 1_000), 0.0);
        let mut all = Chooser::new(Fallback::Never, 2);
        assert_eq!(share_of_crew(&mut all, 100, 1_000, 1), 1.0);
    }

    #[test]
    fn forced_changes_come_after_so_many_rounds() {
        let mut chooser = Chooser::new(Fallback::Forced { rounds: 3 }, 2);
        for mode in [Mode::Solo, Mode::Crew, Mode::Solo] {
            let (next, budget) = chooser.next();
            assert_eq!((next, budget.rounds), (mode, 3));
            chooser.learn(Pace::default());
        }
    }

    #[test]
    fn a_leg_that_measured_nothing_is_repeated() {
        let mut chooser = Chooser::new(Fallback::Measured, 2);
        chooser.learn(Pace::default());
        assert_eq!(chooser.next().0, Mode::Solo);
    }
}
