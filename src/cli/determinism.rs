//! `durawarp check`.

use durawarp::config::{Compute, has_tensor_cores};
use durawarp::determinism::{Way, compare_all, run_one};
use durawarp::outcome::End;
use durawarp::report;
use durawarp::workload::Workload;

use super::args::CheckArgs;
use super::exit::{Exit, Stop};
use super::recipe::{SMALL, experiment};
use super::simulate::told_of;
use super::terminal;

pub(super) fn check(args: &CheckArgs) -> Result<Exit, Stop> {
    let of_cpus = args.subject.machine.as_ref().is_some_and(|machine| Compute::of(machine) == Compute::Cpu);
    let all = if of_cpus { Workload::builtin_of_cpus() } else { Workload::builtin() };
    // Workloads of clients need a machine of their own, those of tensor cores one that has some: others are
    // checked where they are named.
    let of = |name: &str, kind: fn(&Workload) -> bool| Workload::load(name).is_ok_and(|workload| kind(&workload));
    let has_tensor_cores = args.subject.machine.as_ref().is_none_or(|machine| has_tensor_cores(machine));
    let left_out =
        |name: &str| of(name, Workload::has_clients) || !has_tensor_cores && of(name, Workload::needs_tensor_cores);
    let all: Vec<String> = all.into_iter().map(|listed| listed.name).filter(|name| !left_out(name)).collect();
    let names = if args.workloads.is_empty() { &all } else { &args.workloads };
    // Every input is looked at before the first run.
    let mut experiments = Vec::new();
    for name in names {
        let experiment = experiment(name, args.scheme.scheme.as_deref(), &args.subject, Some(SMALL))?;
        experiments.push((name, experiment.with_max_cycles(args.max_cycles)));
    }
    let ways: Vec<Way> = args.threads.iter().flat_map(|&threads| Way::at(threads)).collect();
    let stop = Some(terminal::stop_flag());
    let mut exit = Exit::Good;
    for (name, experiment) in &experiments {
        let reference = run_one(experiment, &Way::REFERENCE, args.epoch_cycles, stop);
        if terminal::interrupted() {
            return Ok(terminal::interrupted_exit());
        }
        let outcome = &reference.outcome;
        let cycles = report::count(outcome.time.core_cycles);
        let epochs = reference.epochs.as_ref().map_or(0, |epochs| epochs.rows().count());
        terminal::print(&format!(
            "{name} on {}: {cycles} cycles, {epochs} epochs, digest {}\n",
            outcome.machine.name, outcome.digest
        ));
        // Whether the program is right and whether its runs are equal are two questions: a program with wrong
        // results is compared, too.
        let verdict = match (&outcome.end, &outcome.verification) {
            (End::Finished, Some(check)) if !check.passed => Some(check.failures.join("; ")),
            // A program without a reference, a trace, has nothing that could be wrong.
            (End::Finished, _) => None,
            (End::Cut { .. }, _) if args.max_cycles.is_some() => None,
            (End::Repeats(repeats), _) => Some(told_of(repeats, true)),
            (end, _) => Some(end.to_string()),
        };
        if let Some(why) = verdict {
            terminal::print(&format!("  FAILED  {}: {why}\n", Way::REFERENCE));
            exit = Exit::ProgramFailed;
        }
        let compared = compare_all(experiment, &reference, &ways, args.epoch_cycles, stop, |compared| {
            terminal::print(&match &compared.difference {
                None => format!("  equal   {}\n", compared.way),
                Some(difference) => format!("  DIFFERS {}: {difference}\n", compared.way),
            });
        });
        if compared.iter().any(|compared| compared.difference.is_some()) {
            exit = Exit::Different;
        }
        if terminal::interrupted() {
            return Ok(terminal::interrupted_exit());
        }
    }
    terminal::print(if exit == Exit::Good { "all equal\n" } else { "NOT all is well\n" });
    Ok(exit)
}
