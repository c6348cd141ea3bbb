//! Headline figures of machines of CPU cores in one table: `cargo bench --bench cpu_table [part of a name]`.
//!
//! Whole runs of built-in programs in their default sizes, 8 threads on `lightwsp-cpu`, one thread of the host,
//! without the functional driver. With and without journals take turns, and the best of each counts.

#![allow(clippy::disallowed_methods, reason = "measuring time is what this is for")]

#[path = "../src/allocator.rs"]
mod allocator;

use durawarp::Experiment;
use durawarp::outcome::End;
use durawarp::run::{AnyExperiment, Conduct};

const TURNS: usize = 5;

/// Target of one thread, in million instructions a second.
const PROGRAMS: [(&str, f64); 6] =
    [("stencil_cpu", 15.0), ("treap", 10.0), ("sps", 5.0), ("hash", 5.0), ("rbtree", 5.0), ("ssca2", 5.0)];

/// The most memory this process had so far, in MiB; 0 where the system does not tell.
fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok()).map_or(0.0, |kib| kib / 1024.0)
}

/// Instructions of a run, cycles, and the seconds of its simulation.
fn timed(experiment: &AnyExperiment, journal: bool) -> (u64, u64, f64) {
    let outcome = experiment.run(&Conduct { journal, ..Conduct::default() }).outcome;
    assert_eq!(outcome.end, End::Finished);
    (outcome.total("core", "instructions"), outcome.time.core_cycles, outcome.host.wall_s)
}

fn main() {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).unwrap_or_default();
    for (name, target) in PROGRAMS.into_iter().filter(|(name, _)| name.contains(&filter)) {
        let recipe = Experiment::of(name).machine("lightwsp-cpu").reference(false);
        let experiment = recipe.build_any().expect("a built-in program");
        let (mut plain, mut journal, mut known) = (f64::MAX, f64::MAX, None);
        for _ in 0..TURNS {
            let (instructions, cycles, seconds) = timed(&experiment, false);
            plain = plain.min(seconds);
            journal = journal.min(timed(&experiment, true).2);
            assert_eq!(*known.get_or_insert((instructions, cycles)), (instructions, cycles), "{name}: two results");
        }
        let Some((instructions, cycles)) = known else { continue };
        println!(
            "{name:12} {:5.2} M instructions, IPC {:4.2} | {:5.1} M/s (target {target:.0}) | with journals {:4.2} of it | \
             peak {:.0} MiB",
            instructions as f64 / 1e6,
            instructions as f64 / cycles as f64,
            instructions as f64 / plain / 1e6,
            plain / journal,
            peak_mib(),
        );
    }
}
