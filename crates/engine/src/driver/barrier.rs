//! What the barrier of a round costs on this host, measured with the barrier itself, where there are cores.
//!
//! Beyond the cores that there are it is extrapolated: each worker reads every other worker's line, so that
//! the cost grows with their number. On one core nothing can be measured, and [`ASSUMED_NS_A_THREAD`] stands
//! for it.

use std::thread;
use std::time::Instant;

use super::lines::{Lines, Patience, Report};
use crate::event::NEVER;
use crate::tiers::MAX_TIERS;

/// Without cores to measure on: chosen by us. Two cores of a server processor (AMD Zen 4) were measured to
/// pass a cache line to and fro in 108 to 127 ns.
const ASSUMED_NS_A_THREAD: f64 = 100.0;

/// Rounds of a burst, and bursts, of which the fastest counts: the others were disturbed. On a busy host a
/// longer burst would hardly be spared.
const ROUNDS: u64 = 100;
const BURSTS: u64 = 100;

/// What a round's barrier costs, by threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Barrier {
    /// Threads, and ns a round, from 2 threads on.
    measured: Vec<(usize, f64)>,
}

impl Barrier {
    /// Measures it with 2, 4, ... threads, as many as there are cores: some ms.
    pub fn of_host() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let powers = std::iter::successors(Some(2), |threads| Some(threads * 2));
        Barrier { measured: powers.take_while(|&threads| threads <= cores).map(|n| (n, round_ns(n))).collect() }
    }

    /// As measured elsewhere: threads and ns a round, in rising order.
    pub fn of_measured(measured: Vec<(usize, f64)>) -> Self {
        Barrier { measured }
    }

    /// The cost of a round with `threads` threads, in ns; 0 with one.
    pub fn ns(&self, threads: usize) -> f64 {
        if threads < 2 {
            return 0.0;
        }
        let exact = self.measured.iter().find(|(measured, _)| *measured == threads);
        let a_thread = self.measured.last().map_or(ASSUMED_NS_A_THREAD, |(measured, ns)| ns / *measured as f64);
        exact.map_or(a_thread * threads as f64, |(_, ns)| *ns)
    }

    /// The most threads that it was measured with; 1 where it was not.
    pub fn most_measured(&self) -> usize {
        self.measured.last().map_or(1, |(threads, _)| *threads)
    }
}

/// A round of nothing but the barrier, in ns.
fn round_ns(threads: usize) -> f64 {
    let lines = Lines::new(threads, Patience::OWN_CORE);
    let nothing = Report { next: [NEVER; MAX_TIERS], events: 0, heaviest: 0, sent: 0, flags: 0 };
    let work = |me: usize| {
        lines.sit_down(me);
        let mut least = f64::INFINITY;
        for burst in 0..BURSTS {
            let since = Instant::now();
            for round in burst * ROUNDS..(burst + 1) * ROUNDS {
                lines.publish(me, round, nothing);
                for other in (0..threads).filter(|&other| other != me) {
                    // No worker of these abandons the meeting.
                    _ = lines.read(me, other, round);
                }
            }
            least = least.min(since.elapsed().as_nanos() as f64 / ROUNDS as f64);
        }
        least
    };
    thread::scope(|scope| {
        for me in 1..threads {
            let work = &work;
            scope.spawn(move || work(me));
        }
        work(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_counts_and_the_rest_grows_with_the_threads() {
        let barrier = Barrier::of_measured(vec![(2, 150.0), (4, 240.0)]);
        assert_eq!([1, 2, 4, 16].map(|threads| barrier.ns(threads)), [0.0, 150.0, 240.0, 960.0]);
        assert_eq!(Barrier::of_measured(Vec::new()).ns(8), 8.0 * ASSUMED_NS_A_THREAD);
    }

    #[test]
    fn the_host_is_measured_up_to_its_cores() {
        let (barrier, cores) = (Barrier::of_host(), thread::available_parallelism().map_or(1, usize::from));
        assert!(barrier.most_measured() <= cores && 2 * barrier.most_measured() > cores);
        assert!(barrier.ns(2) > 1.0);
    }
}
