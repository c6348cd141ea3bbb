//! `durawarp scaling`: what a run would gain from more threads, predicted from one run on one thread.
//!
//! The run times every component in every round; the engine's own placement of components is then followed
//! for each number of threads (`durawarp::engine::Scaling` says what a prediction is made of). Rounds, events
//! and placement are the run's own, so that no core is needed to predict for. Not predicted: what moving
//! messages and state between the caches of cores costs.

use durawarp::engine::{Barrier, Parts, Scaling, ThreadScaling};
use durawarp::outcome::Outcome;
use durawarp::report::{align_right, count, legend, lines, plain_table};
use durawarp::run::Conduct;
use serde::Serialize;

use super::args::ScalingArgs;
use super::exit::{Exit, Stop};
use super::output::Outputs;
use super::recipe::experiment;
use super::run_progress::with_progress;
use super::simulate::{complain, exit_of, threads};
use super::terminal;

/// What the columns are.
const LEGEND: [(&str, &str); 8] = [
    (
        "speed-up",
        "over one thread: with measured costs of components (outliers clipped), and with the usual cost of an event",
    ),
    ("barrier ns", "of a round: measured here up to the cores that there are, more threads in proportion"),
    ("even", "share of the time on so many threads in which the work would be done if it could be shared out evenly"),
    ("component", "share lost as one component (with those fused with it) has more than its part of the work"),
    ("windows", "share lost as the load of components differs from round to round"),
    ("placement", "share lost as partitions are less even in a round than components allow"),
    ("barrier", "share spent at the barrier of rounds"),
    ("alone", "share lost in stretches that one thread runs, as more do not pay there"),
];

/// What no run on few cores can tell.
const ASSUMED: &str = "assumed: every core as fast as the one of this run; a barrier of more threads than this host has \
                       cores costs in proportion; moving messages between caches and sharing memory bandwidth cost \
                       nothing. So speed-ups are upper bounds.\n\n";

/// A barrier is measured as its fastest rounds. Cores of idle servers take about 100 ns a thread; beyond ten
/// times as much other work holds threads up. Chosen.
const BUSY_NS_A_THREAD: f64 = 1000.0;

/// A prediction as JSON.
#[derive(Debug, Serialize)]
struct ScalingReport {
    workload: String,
    profile: String,
    machine: String,
    scheme: String,
    /// The simulator was built without optimisation.
    debug_build: bool,
    /// Of the traced run: core cycles; rounds, each for `stride` of the run; events; ns on one thread.
    core_cycles: u64,
    rounds: u64,
    stride: u64,
    events: u64,
    one_thread_ns: f64,
    /// The most threads that the barrier was measured with; 1 where it was not.
    barrier_measured_to: usize,
    heaviest: Vec<Heavy>,
    threads: Vec<Row>,
    /// The least number of threads within a tenth of the best.
    advised_threads: usize,
}

#[derive(Debug, Serialize)]
struct Heavy {
    components: String,
    share: f64,
}

#[derive(Debug, Serialize)]
struct Row {
    threads: usize,
    barrier_ns: f64,
    speed_up_clipped: f64,
    speed_up_events: f64,
    /// What is lost most, under measured costs; none where little is.
    bound_by: Option<&'static str>,
    /// Shares of the time on so many threads, under measured costs.
    even: f64,
    component: f64,
    windows: f64,
    placement: f64,
    barrier: f64,
    alone: f64,
}

impl Row {
    fn of(at: &ThreadScaling) -> Row {
        let Parts { even, component, windows, placement, barrier, alone } = at.clipped;
        let [even, component, windows, placement, barrier, alone] =
            [even, component, windows, placement, barrier, alone].map(|part| part / at.clipped.time().max(1e-12));
        Row {
            threads: at.threads,
            barrier_ns: at.barrier_ns,
            speed_up_clipped: at.clipped.speed_up(),
            speed_up_events: at.events.speed_up(),
            bound_by: at.clipped.bound(),
            even,
            component,
            windows,
            placement,
            barrier,
            alone,
        }
    }
}

/// `durawarp scaling`.
pub(super) fn scaling(args: &ScalingArgs) -> Result<Exit, Stop> {
    let experiment = experiment(&args.workload, args.scheme.scheme.as_deref(), &args.subject, None)?;
    let experiment = experiment.with_max_cycles(args.max_cycles).with_reference(false);
    let mut outputs = Outputs::default();
    let json = outputs.open("--json", args.json.as_deref());
    let stdout_is_taken = outputs.ready()?;
    let name = experiment.describe().workload;
    let conduct = Conduct { scaling: Some(&args.threads), ..threads(1) };
    let finished = with_progress(&experiment, &name, &conduct, args.quiet);
    complain(&finished.outcome, args.quiet);
    let exit = exit_of(&finished.outcome);
    let Some((scaling, barrier)) = &finished.scaling else { return Ok(exit) };
    let report = report(&finished.outcome, scaling, barrier);
    if !args.quiet {
        terminal::show(&table(&report), stdout_is_taken);
    }
    if let Some(output) = json {
        output.write_json(&report)?;
    }
    Ok(exit)
}

fn report(outcome: &Outcome, scaling: &Scaling, barrier: &Barrier) -> ScalingReport {
    let text = |key: &str| outcome.workload[key].as_str().unwrap_or("?").to_owned();
    let heavy = |(components, share): &(String, f64)| Heavy { components: components.clone(), share: *share };
    ScalingReport {
        workload: text("workload"),
        profile: text("profile"),
        machine: outcome.machine.name.clone(),
        scheme: outcome.scheme_name().to_owned(),
        debug_build: cfg!(debug_assertions),
        core_cycles: outcome.time.core_cycles,
        rounds: scaling.rounds,
        stride: scaling.stride,
        events: scaling.events,
        one_thread_ns: scaling.one_thread_ns,
        barrier_measured_to: barrier.most_measured(),
        heaviest: scaling.heaviest.iter().map(heavy).collect(),
        threads: scaling.threads.iter().map(Row::of).collect(),
        advised_threads: scaling.advised(),
    }
}

/// The report as text.
fn table(report: &ScalingReport) -> String {
    let ScalingReport { workload, profile, machine, scheme, .. } = report;
    let mut out = format!("{workload} ({profile}) on {machine}, scheme {scheme}: traced on one thread, ");
    // A run without an event has no round.
    let rounds = report.rounds.max(1);
    out += &format!(
        "{} rounds of {:.1} µs and {:.0} events",
        count(report.rounds),
        report.one_thread_ns / rounds as f64 / 1e3,
        report.events as f64 / rounds as f64
    );
    if report.stride > 1 {
        out += &format!(", one of {} of the run", count(report.stride));
    }
    out += "\n";
    if report.debug_build {
        out += "this program was built without optimisation: costs of components are not those of a release build\n";
    }
    if report.barrier_measured_to == 1 {
        out += "one core: the barrier is not measured but assumed\n";
    }
    // Of what was measured and what follows in proportion the first says it.
    if let Some(row) = report.threads.iter().find(|row| row.barrier_ns > BUSY_NS_A_THREAD * row.threads as f64) {
        out += &format!(
            "a barrier of {:.0} ns for {} threads is that of a busy host: on an idle one more threads pay\n",
            row.barrier_ns, row.threads
        );
    }
    let mut table = plain_table();
    table.set_header([
        "threads",
        "speed-up",
        "bound by",
        "barrier ns",
        "even",
        "component",
        "windows",
        "placement",
        "barrier",
        "alone",
    ]);
    for row in &report.threads {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        // On a disturbed host the usual costs may give less than the measured ones.
        let (low, high) =
            (row.speed_up_clipped.min(row.speed_up_events), row.speed_up_clipped.max(row.speed_up_events));
        table.add_row([
            count(row.threads as u64),
            format!("{low:.1} to {high:.1}"),
            row.bound_by.unwrap_or("-").to_owned(),
            format!("{:.0}", row.barrier_ns),
            percent(row.even),
            percent(row.component),
            percent(row.windows),
            percent(row.placement),
            percent(row.barrier),
            percent(row.alone),
        ]);
    }
    align_right(&mut table, 0..2);
    align_right(&mut table, 3..10);
    out += &(lines(&table, 1) + "\n");
    let heaviest = report.heaviest.iter().map(|of| format!("{} {:.1} %", of.components, of.share * 100.0));
    out += &format!("heaviest: {}\n", heaviest.collect::<Vec<_>>().join(", "));
    out += &format!(
        "least threads within a tenth of the best of these: {} (`run --threads auto` asks so, up to the cores of its host)\n\n",
        report.advised_threads
    );
    out += ASSUMED;
    out + &legend(&LEGEND)
}
