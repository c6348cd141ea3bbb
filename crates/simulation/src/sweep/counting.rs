//! A run whose length is counted beside it, for who shows how far it is.
//!
//! A thread of its own counts on the functional driver. It begins late, as a short run is over before it is
//! counted; it does not begin where the host lacks the memory for a second image; it ends with the run.
//! Nothing of this changes a result.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};

use super::host::{Memory, Need, shortage};
use crate::run::{AnyExperiment, Conduct, Finished};

/// Wall-clock time after which a run that is watched is worth counting: it takes a core for some seconds.
pub const COUNTING_BEGINS: Duration = Duration::from_secs(2);

/// Simulates. A run that lasts longer than `begins` is counted beside it, if there is memory for that:
/// `counted` gets its instructions, as of [`AnyExperiment::functional_instructions`], unless the run is over
/// before.
pub fn run_counted(
    experiment: &AnyExperiment,
    conduct: &Conduct<'_>,
    begins: Option<Duration>,
    counted: &(dyn Fn(u64) + Sync),
) -> Finished {
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Dropped when the run is over, also by a panic.
        let (running, over) = bounded::<()>(0);
        if let Some(begins) = begins {
            let ends = &ends;
            scope.spawn(move || {
                let lasts = over.recv_timeout(begins) == Err(RecvTimeoutError::Timeout);
                let fits = || shortage(Need::of(experiment), Memory::of_host()).is_none();
                if lasts && fits() {
                    experiment.functional_instructions(ends).into_iter().for_each(counted);
                }
            });
        }
        let finished = experiment.run(conduct);
        ends.store(true, Ordering::Relaxed);
        drop(running);
        finished
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::run::Experiment;

    /// Instructions of the outcome, and those that were counted; 0 for none.
    fn of(profile: &str, max_cycles: Option<u64>, begins: Option<Duration>) -> [u64; 2] {
        let recipe = Experiment::of("gemm").profile(profile).reference(false);
        let experiment = recipe.build_any().unwrap().with_max_cycles(max_cycles);
        let told = AtomicU64::new(0);
        let conduct = Conduct { threads: 1, ..Conduct::default() };
        let finished =
            run_counted(&experiment, &conduct, begins, &|instructions| told.store(instructions, Ordering::Relaxed));
        [finished.outcome.warp_instructions(), told.into_inner()]
    }

    #[test]
    fn a_run_is_counted_while_it_lasts_and_its_end_ends_the_count() {
        let [simulated, counted] = of("ci", None, Some(Duration::ZERO));
        assert_eq!(simulated, counted, "on the functional driver a program takes a small part of the time");
        assert_eq!(of("default", Some(1), Some(Duration::ZERO))[1], 0, "the count would take minutes");
        assert_eq!(of("ci", None, None)[1], 0);
    }
}
