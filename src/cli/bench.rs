//! `durawarp bench`: how fast the simulator is on this host, by threads.
//!
//! A workload is run at every number of threads in turns, so that a slow spell of the host meets all of them;
//! the median of the repeats counts, and their spread is told. Wall time is that of the simulation: the
//! workload's loading and checks are not in it. Threads are those that `run --threads` would use: where more
//! do not pay, or there are fewer cores, fewer are at work.
//!
//! Invariant: digests of run and memory are those of one thread, or the command ends as `check` does. Not
//! measured: memory, start.

pub(super) mod round_trip;

use durawarp::outcome::Outcome;
use durawarp::report::{align_right, count, legend, lines, plain_table};
use durawarp::run::AnyExperiment;
use serde::Serialize;

use super::args::BenchArgs;
use super::exit::{Exit, Stop};
use super::output::Outputs;
use super::recipe::{SMALL, experiment};
use super::simulate::{complain, exit_of, threads};
use super::terminal;

/// A few built-in workloads: arithmetic in shared memory, streaming, atomics, an irregular graph.
const WORKLOADS: [&str; 4] = ["gemm_tiled", "stream_triad", "histogram", "bfs"];

/// What the columns are.
const LEGEND: [(&str, &str); 7] = [
    ("threads, at work", "asked for, and at most at work: fewer where more do not pay, or where there are fewer cores"),
    ("wall ms", "of the simulation: the median of the repeats"),
    ("spread", "the longest of them less the shortest, over the median"),
    ("M events/s", "million events of the engine a second of wall time"),
    ("M instr/s", "million warp instructions of the simulated program a second"),
    ("speed-up", "over one thread"),
    ("digests", "of the run and of final memory: equal to those of one thread, or DIFFERENT, which is a defect"),
];

/// The host.
#[derive(Debug, Serialize)]
struct Host {
    /// Cores that this process may use.
    cores: usize,
    architecture: &'static str,
    system: &'static str,
    /// Of a cache line between two threads; none where there is one core.
    core_round_trip_ns: Option<f64>,
    /// The simulator was built without optimisation.
    debug_build: bool,
}

/// A workload at a number of threads.
#[derive(Debug, Serialize)]
struct Rate {
    threads: usize,
    threads_at_work: usize,
    /// Median, least and greatest of the repeats.
    wall_s: [f64; 3],
    events_per_s: f64,
    warp_instructions_per_s: f64,
    speed_up: f64,
    /// Digests are those of one thread.
    equal: bool,
}

#[derive(Debug, Serialize)]
struct Measured {
    workload: String,
    profile: String,
    machine: String,
    scheme: String,
    digest: String,
    memory_digest: String,
    events: u64,
    warp_instructions: u64,
    rates: Vec<Rate>,
}

#[derive(Debug, Serialize)]
struct Report {
    host: Host,
    repeats: usize,
    workloads: Vec<Measured>,
}

/// Median, least and greatest.
fn spread(times: &mut [f64]) -> [f64; 3] {
    times.sort_by(f64::total_cmp);
    let middle = times.len() / 2;
    let median = if times.len() % 2 == 1 { times[middle] } else { (times[middle - 1] + times[middle]) / 2.0 };
    [median, times[0], times[times.len() - 1]]
}

/// `durawarp bench`.
pub(super) fn bench(args: &BenchArgs) -> Result<Exit, Stop> {
    let names: Vec<&str> = match args.workloads.is_empty() {
        true => WORKLOADS.to_vec(),
        false => args.workloads.iter().map(String::as_str).collect(),
    };
    // Every input is looked at before the first run.
    let mut experiments = Vec::new();
    for name in names {
        let experiment = experiment(name, args.scheme.scheme.as_deref(), &args.subject, Some(SMALL))?;
        experiments.push(experiment.with_reference(false));
    }
    let mut outputs = Outputs::default();
    let json = outputs.open("--json", args.json.as_deref());
    let stdout_is_taken = outputs.ready()?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut report = Report {
        host: Host {
            cores,
            architecture: std::env::consts::ARCH,
            system: std::env::consts::OS,
            core_round_trip_ns: (cores > 1).then(round_trip::round_trip_ns),
            debug_build: cfg!(debug_assertions),
        },
        repeats: args.repeats,
        workloads: Vec::new(),
    };
    let counts = counts(&args.threads, cores);
    let mut exit = Exit::Good;
    for experiment in &experiments {
        match measured(experiment, &counts, args.repeats) {
            Ok(measured) => report.workloads.push(measured),
            Err(failed) => {
                exit = failed;
                break;
            }
        }
    }
    let different = report.workloads.iter().flat_map(|measured| &measured.rates).any(|rate| !rate.equal);
    if !args.quiet && !report.workloads.is_empty() {
        // What was measured before a run that went wrong is shown and written all the same.
        terminal::show(&table(&report), stdout_is_taken);
    }
    if let Some(output) = json {
        output.write_json(&report)?;
    }
    Ok(if exit == Exit::Good && different { Exit::Different } else { exit })
}

/// Numbers of threads: those asked for, one thread first; without any, powers of two up to the cores.
fn counts(asked: &[usize], cores: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1), |threads| Some(threads * 2)).take_while(|&threads| threads <= cores);
    let mut counts: Vec<usize> = if asked.is_empty() { powers.collect() } else { asked.to_vec() };
    // 0 is one a core, as everywhere.
    counts.iter_mut().filter(|threads| **threads == 0).for_each(|threads| *threads = cores);
    counts.push(1);
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Runs a workload at every number of threads, or how the command ends when a run goes wrong.
fn measured(experiment: &AnyExperiment, counts: &[usize], repeats: usize) -> Result<Measured, Exit> {
    let mut times = vec![Vec::new(); counts.len()];
    let mut last: Vec<Option<Outcome>> = vec![None; counts.len()];
    let mut equal = vec![true; counts.len()];
    let mut digests = None;
    // Thread counts take turns within a repeat: a slow spell of the host meets all of them.
    for _ in 0..repeats {
        for (at, &count) in counts.iter().enumerate() {
            let mut conduct = threads(count);
            conduct.stop = Some(terminal::stop_flag());
            let outcome = experiment.run(&conduct).outcome;
            let exit = exit_of(&outcome);
            if exit != Exit::Good {
                complain(&outcome, true);
                return Err(exit);
            }
            // The first run of all, on one thread, sets the digests that every other run must have.
            let found = (outcome.digest.clone(), outcome.memory_digest.clone());
            equal[at] &= *digests.get_or_insert_with(|| found.clone()) == found;
            times[at].push(outcome.host.wall_s);
            last[at] = Some(outcome);
        }
    }
    let (Some(Some(one)), Some((digest, memory_digest))) = (last.first(), digests) else { return Err(Exit::Defect) };
    // Simulated work is the same at any number of threads, so that the rates differ by wall time alone.
    let (events, warp_instructions) = (one.engine.events, one.warp_instructions());
    let mut rates: Vec<Rate> = Vec::new();
    for (at, outcome) in last.iter().flatten().enumerate() {
        let wall_s = spread(&mut times[at]);
        let per_s = |count: u64| count as f64 / wall_s[0].max(1e-9);
        rates.push(Rate {
            threads: counts[at],
            threads_at_work: outcome.host.threads,
            wall_s,
            events_per_s: per_s(events),
            warp_instructions_per_s: per_s(warp_instructions),
            speed_up: rates.first().map_or(1.0, |first| first.wall_s[0] / wall_s[0].max(1e-9)),
            equal: equal[at],
        });
    }
    let text = |key: &str| one.workload[key].as_str().unwrap_or("?").to_owned();
    let (machine, scheme) = (one.machine.name.clone(), one.scheme_name().to_owned());
    let (workload, profile) = (text("workload"), text("profile"));
    Ok(Measured { workload, profile, machine, scheme, digest, memory_digest, events, warp_instructions, rates })
}

/// The report as text.
fn table(report: &Report) -> String {
    let Host { cores, architecture, system, core_round_trip_ns, debug_build } = &report.host;
    let trip = match core_round_trip_ns {
        Some(ns) => format!("a cache line's round trip between two threads {ns:.0} ns"),
        None => "one core: threads take turns, nothing travels between cores".to_owned(),
    };
    let plural = if *cores == 1 { "core" } else { "cores" };
    // The host comes first: rates mean nothing without it.
    let mut out = format!("{cores} {plural}, {architecture}, {system}; {trip}; {} repeats\n", report.repeats);
    if *debug_build {
        out += "this program was built without optimisation: its speed says little\n";
    }
    let mut table = plain_table();
    let header =
        ["workload", "threads", "at work", "wall ms", "spread", "M events/s", "M instr/s", "speed-up", "digests"];
    table.set_header(header);
    for measured in &report.workloads {
        for (nth, rate) in measured.rates.iter().enumerate() {
            let [median, least, most] = rate.wall_s;
            let name = if nth == 0 { format!("{} ({})", measured.workload, measured.profile) } else { String::new() };
            table.add_row([
                name,
                count(rate.threads as u64),
                count(rate.threads_at_work as u64),
                format!("{:.1}", median * 1e3),
                format!("{:.0} %", (most - least) / median.max(1e-9) * 100.0),
                format!("{:.2}", rate.events_per_s / 1e6),
                format!("{:.2}", rate.warp_instructions_per_s / 1e6),
                format!("{:.2}", rate.speed_up),
                if rate.equal { "equal" } else { "DIFFERENT" }.to_owned(),
            ]);
        }
    }
    align_right(&mut table, 1..header.len() - 1);
    out + &lines(&table, 1) + "\n" + &legend(&LEGEND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_of_times_is_between_the_middle_two() {
        assert_eq!(spread(&mut [3.0, 1.0, 2.0]), [2.0, 1.0, 3.0]);
        assert_eq!(spread(&mut [4.0, 1.0, 2.0, 9.0]), [3.0, 1.0, 9.0]);
    }

    #[test]
    fn one_thread_is_always_measured_and_none_named_are_powers_of_two_up_to_the_cores() {
        assert_eq!(counts(&[], 6), [1, 2, 4]);
        assert_eq!(counts(&[], 1), [1]);
        assert_eq!(counts(&[4, 2, 4], 2), [1, 2, 4]);
        assert_eq!(counts(&[0], 8), [1, 8]);
    }
}
